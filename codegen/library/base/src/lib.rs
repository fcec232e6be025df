//! What every library call rests on: what one is called with ([`Call`]) and says of itself ([`Operation`]), threads, raw memory, and which instructions of the
//! machine may be used.
//!
//! | part | holds |
//! |---|---|
//! | [`pool`] | threads |
//! | [`portable`] | what a launch calls: machine code or an evaluation |
//! | [`memory`], [`workspace`] | raw memory as slices; memory that a thread keeps |
//! | [`isa`], [`simd`] | instruction sets; hot loops for the widest vectors |
//! | [`tuning`], [`sizes`] | what is fastest by microarchitecture, and from which sizes on |
//! | [`floats`], `transpose` | floats of 16 bits as f32 and back; rows that become columns |
//!
//! **Invariant:** bits of results depend on none of it.

#![allow(
    unsafe_code,
    reason = "operations on raw memory, with the instructions of the machine: library calls are the room for it"
)]

mod cores;
pub mod floats;
pub mod isa;
pub mod memory;
pub mod pool;
pub mod portable;
pub mod simd;
pub mod sizes;
#[cfg(target_arch = "x86_64")]
pub mod transpose;
pub mod tuning;
mod unsupported;
pub mod workspace;

use std::sync::Arc;

use hlo::ComputationId;

use crate::pool::Pool;
use crate::portable::Function;

pub use unsupported::{REFUSAL, Unsupported};

/// `fn(arguments, begin, end)`: does the units `begin..end`.
///
/// `arguments` points to as many pointers as the kernel has arguments, in this order: every array leaf of the operands, every array leaf of the
/// result, then the scratch memory if the kernel asks for some. Arrays lie dense and row-major in the types of [`hlo::literal::Buffer`]
/// (`pred` a byte of 0 or 1, sub-byte types a normalized byte each, complex numbers as pairs), aligned to 64 bytes unless they are parts of larger buffers.
pub type KernelFn = unsafe extern "C" fn(arguments: *const *mut u8, begin: u64, end: u64);

/// What an operation is called with.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    /// Array leaves of the operands, then of the result: dense, row-major, as [`KernelFn`] says.
    pub arguments: &'a [*mut u8],
    /// As many bytes as [`Operation::scratch_bytes`] said, aligned to 64; undefined contents.
    pub scratch: *mut u8,
    /// The kernels of [`Operation::regions`], in order.
    pub regions: &'a [Function],
    /// Called with a range of finished rows of the result (rows: all dimensions but the last), each row once, from any thread.
    pub epilogue: Option<&'a (dyn Fn(u64, u64) + Sync)>,
    /// What [`Operation::prepare`] has written; null: nothing.
    pub prepared: *const u8,
    /// Threads.
    pub pool: &'a Arc<Pool>,
}

/// A call that several threads carry out together.
#[derive(Clone, Copy)]
pub struct Sent<'a>(pub Call<'a>);

impl<'a> Sent<'a> {
    /// The call, as a whole: so that closures capture what may be sent.
    #[inline]
    pub fn get(&self) -> &Call<'a> {
        &self.0
    }
}

// SAFETY: threads use the pointers for different elements; each operation says how.
unsafe impl Send for Sent<'_> {}
// SAFETY: as above.
unsafe impl Sync for Sent<'_> {}

/// What every operation says and does. It holds every static fact that running it needs.
///
/// **Invariants:** the result is the same to the bit whatever the number of threads (work is split by shapes alone); an operation allocates nothing while it runs
/// but takes the scratch memory that it asked for, where a library that it calls allows that.
pub trait Operation {
    /// How it is computed, by the names of docs/compiler.md: "GEMV", "split-K GEMM", "direct convolution", "radix sort", ...
    fn strategy(&self) -> &'static str;

    /// Bytes of scratch memory that a call needs.
    fn scratch_bytes(&self) -> u64 {
        0
    }

    /// The applied computations that it calls as `Request::Map` kernels.
    fn regions(&self) -> Vec<ComputationId> {
        Vec::new()
    }

    /// Bytes read and written, and arithmetic operations, of a call: for profiles.
    fn cost(&self) -> (u64, u64);

    /// Whether a call leaves all of its results: not what only sorts that are looked at in part do.
    fn is_whole(&self) -> bool {
        true
    }

    /// Bytes of what calls would find ready if some of the operands are constant, packed once before all of them: `None` if nothing would be gained.
    /// **Invariant:** results have the same bits with it and without.
    fn prepared_bytes(&self, _constant: &[bool]) -> Option<u64> {
        None
    }

    /// Packs [`PREPARED_OPERAND`].
    ///
    /// # Safety
    /// [`Operation::prepared_bytes`] said how many bytes there are at `to`, aligned to 64; the operand is valid and will not change as long as calls are given them.
    unsafe fn prepare(&self, _arguments: &[*const u8], _to: *mut u8, _pool: &Pool) -> Prepared {
        Prepared::Beside
    }

    /// Executes it.
    ///
    /// # Safety
    /// The pointers of `call` are valid for the arrays of the instruction that this was made of, results overlap neither operands nor each other unless the
    /// operation says so, and what was prepared was prepared of these operands.
    unsafe fn run(&self, call: Call<'_>);
}

/// What becomes of an operand that was prepared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Prepared {
    /// Calls may read it too.
    Beside,
    /// No call reads it any more.
    Instead,
}

/// Bytes of the header of a packed operand, which holds a fact about its values (whether all are finite, the
/// smallest magnitude). As many as arrays are aligned to, so that what follows is aligned as well.
pub const PREPARED_HEADER_BYTES: usize = 64;

/// The operand that is prepared where it is constant: the right one, which holds the weights.
pub const PREPARED_OPERAND: usize = 1;
