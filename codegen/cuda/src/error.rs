//! What can go wrong, each with what a person can do about it.

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a call to the device failed.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum Error {
    /// There is no driver.
    #[error("there is no CUDA driver: {message}")]
    NoLibrary {
        /// The error of the loader.
        message: String,
    },
    /// The library lacks functions: it is no driver, or an old one.
    #[error("{library} lacks {}: it is no CUDA driver, or older than CUDA 12.8", symbols.join(", "))]
    MissingSymbols {
        /// The library.
        library: String,
        /// The functions that it lacks.
        symbols: Vec<&'static str>,
    },
    /// The driver is too old.
    #[error("the CUDA driver is of CUDA {}; CUDA {} or newer is needed", version(*found), version(*needed))]
    OldDriver {
        /// Its version: 1000 * major + 10 * minor.
        found: i32,
        /// The smallest that is supported.
        needed: i32,
    },
    /// The driver sees no device.
    #[error("the CUDA driver finds no device: {message}")]
    NoDevice {
        /// The error of the driver.
        message: String,
    },
    /// No device of this number.
    #[error("there is no CUDA device {ordinal}: {}", match count { 1 => "the only one is 0".to_owned(), n => format!("they are 0 to {}", n - 1) })]
    NoSuchDevice {
        /// The number that was asked for.
        ordinal: usize,
        /// The number of devices.
        count: usize,
    },
    /// The device lacks something that this crate needs.
    #[error("CUDA device {device} cannot be used: {what}")]
    Unsupported {
        /// Its name.
        device: String,
        /// The missing function.
        what: String,
    },
    /// There is not enough memory.
    #[error("CUDA is out of memory: {bytes} bytes asked for{}", match free { Some(free) => format!(", {free} free"), None => String::new() })]
    OutOfMemory {
        /// The requested bytes.
        bytes: u64,
        /// The free bytes, if the driver reports them.
        free: Option<u64>,
    },
    /// The driver does not compile a PTX text.
    #[error("the CUDA driver does not compile the PTX{}: {name}{}", location(kernel.as_deref(), *line), if log.is_empty() { String::new() } else { format!("\n{log}") })]
    Compile {
        /// The status.
        name: String,
        /// The log.
        log: String,
        /// The kernel that the log names.
        kernel: Option<String>,
        /// The line that the log names.
        line: Option<u32>,
    },
    /// A module has no function or variable of a name.
    #[error("the module has no `{name}`")]
    NoSuchSymbol {
        /// The name.
        name: String,
    },
    /// A launch was refused; nothing ran.
    #[error("kernel `{kernel}` cannot be launched: {message}")]
    Launch {
        /// The kernel.
        kernel: String,
        /// Why.
        message: String,
    },
    /// A kernel failed while it ran. The device is unusable for this process from now on.
    #[error("kernel `{kernel}` failed: {message}")]
    Kernel {
        /// The kernel that was launched last before the failure was seen.
        kernel: String,
        /// The error of the driver.
        message: String,
    },
    /// The device did not finish in time. It is not used any more.
    #[error("the device did not finish in {seconds} s; the last kernel launched was `{kernel}`")]
    Timeout {
        /// The kernel that was launched last.
        kernel: String,
        /// The limit.
        seconds: f64,
    },
    /// The device failed earlier.
    #[error("the CUDA device is not usable any more: {cause}")]
    Broken {
        /// The first failure.
        cause: String,
    },
    /// A range is outside of a buffer.
    #[error("{bytes} bytes at offset {offset} are outside of a buffer of {length} bytes")]
    Range {
        /// First byte.
        offset: u64,
        /// The number.
        bytes: u64,
        /// The buffer's length.
        length: u64,
    },
    /// Another failure of the driver.
    #[error("{call}: {name}: {message}")]
    Driver {
        /// The function.
        call: &'static str,
        /// The code.
        code: i32,
        /// Its name.
        name: String,
        /// Its text.
        message: String,
    },
}

impl Error {
    /// Whether this machine cannot run anything at all: there is no driver or no device that can be used.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        match self {
            Error::NoLibrary { .. }
            | Error::MissingSymbols { .. }
            | Error::OldDriver { .. }
            | Error::NoDevice { .. }
            | Error::NoSuchDevice { .. }
            | Error::Unsupported { .. } => true,
            Error::OutOfMemory { .. }
            | Error::Compile { .. }
            | Error::NoSuchSymbol { .. }
            | Error::Launch { .. }
            | Error::Kernel { .. }
            | Error::Timeout { .. }
            | Error::Broken { .. }
            | Error::Range { .. }
            | Error::Driver { .. } => false,
        }
    }
}

/// `12.8` of 12080.
fn version(v: i32) -> String {
    format!("{}.{}", v / 1000, v % 1000 / 10)
}

fn location(kernel: Option<&str>, line: Option<u32>) -> String {
    let kernel = kernel.map(|k| format!(" of kernel `{k}`")).unwrap_or_default();
    let line = line.map(|l| format!(", line {l}")).unwrap_or_default();
    format!("{kernel}{line}")
}
