//! Architectures: what they are called, what a kernel may use of them, and what that costs.
//!
//! Figures of one multiprocessor are those of the CUDA C++ Programming Guide, "Technical Specifications per
//! Compute Capability"; multiprocessors and bandwidth are those of the data-center GPU of the architecture.

use std::fmt;
use std::str::FromStr;

/// A GPU architecture to compile for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Arch {
    /// Turing (T4).
    Sm75,
    /// Ampere (A100).
    Sm80,
    /// Hopper (H100, H200).
    #[default]
    Sm90,
    /// Blackwell (B200).
    Sm100,
    /// Blackwell (RTX 50).
    Sm120,
}

/// The resources and rates of an architecture.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Figures {
    /// Multiprocessors.
    pub multiprocessors: u32,
    /// Threads that a multiprocessor holds at once.
    pub resident_threads: u32,
    /// Bytes of shared memory that a block may have without asking for more.
    pub shared_bytes: u32,
    /// The maximum number of bytes of shared memory that a block may ask for.
    pub shared_bytes_opt_in: u32,
    /// 32-bit registers of a multiprocessor.
    pub registers: u32,
    /// Bytes of device memory that are read or written in a second.
    pub bytes_per_second: f64,
}

/// The maximum number of threads of a block.
pub const MAX_THREADS: u32 = 1024;
/// Threads of a warp.
pub const WARP: u32 = 32;
/// The maximum number of blocks along the second and third dimension of a grid.
pub const MAX_GRID_YZ: i64 = 65535;
/// The maximum number of blocks along the first dimension of a grid.
pub const MAX_GRID_X: i64 = 0x7fff_ffff;

impl Arch {
    /// All of them.
    pub const ALL: [Arch; 5] = [Arch::Sm75, Arch::Sm80, Arch::Sm90, Arch::Sm100, Arch::Sm120];

    /// NVIDIA's name, such as `sm_90`.
    pub const fn name(self) -> &'static str {
        match self {
            Arch::Sm75 => "sm_75",
            Arch::Sm80 => "sm_80",
            Arch::Sm90 => "sm_90",
            Arch::Sm100 => "sm_100",
            Arch::Sm120 => "sm_120",
        }
    }

    /// Major and minor compute capability.
    pub const fn capability(self) -> (u32, u32) {
        match self {
            Arch::Sm75 => (7, 5),
            Arch::Sm80 => (8, 0),
            Arch::Sm90 => (9, 0),
            Arch::Sm100 => (10, 0),
            Arch::Sm120 => (12, 0),
        }
    }

    /// Its figures.
    pub const fn figures(self) -> Figures {
        let (multiprocessors, resident_threads, opt_in, gigabytes) = match self {
            Arch::Sm75 => (40, 1024, 64 << 10, 320.0),
            Arch::Sm80 => (108, 2048, 163 << 10, 1555.0),
            Arch::Sm90 => (132, 2048, 227 << 10, 3350.0),
            Arch::Sm100 => (148, 2048, 227 << 10, 8000.0),
            Arch::Sm120 => (170, 1536, 99 << 10, 1792.0),
        };
        Figures {
            multiprocessors,
            resident_threads,
            shared_bytes: 48 << 10,
            shared_bytes_opt_in: opt_in,
            registers: 64 << 10,
            bytes_per_second: gigabytes * 1e9,
        }
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An architecture of no such name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownArch(String);

impl fmt::Display for UnknownArch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known: Vec<&str> = Arch::ALL.iter().map(|a| a.name()).collect();
        write!(f, "unknown GPU architecture \"{}\": there are {}", self.0, known.join(", "))
    }
}

impl std::error::Error for UnknownArch {}

impl FromStr for Arch {
    type Err = UnknownArch;

    fn from_str(name: &str) -> Result<Self, UnknownArch> {
        Self::ALL.into_iter().find(|a| a.name() == name).ok_or_else(|| UnknownArch(name.to_owned()))
    }
}
