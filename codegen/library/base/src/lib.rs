//! The base of library calls: their interface ([`Operation`]) and arguments ([`Call`]), threads, raw memory,
//! and the instruction sets that may be used.
//!
//! | part | holds |
//! |---|---|
//! | [`pool`] | threads |
//! | [`portable`] | what a launch calls: machine code or an evaluation |
//! | [`memory`], [`workspace`] | raw memory as slices; memory that a thread keeps |
//! | [`configuration`] | which of the following code is compiled and executed for |
//! | [`isa`], [`simd`] | instruction sets; hot loops for the widest vectors |
//! | [`tuning`], [`sizes`] | what is fastest by microarchitecture, and from which sizes on |
//! | [`floats`], `transpose` | floats of 16 bits as f32 and back; rows that become columns |
//!
//! **Invariant:** bits of results depend on none of it.

#![allow(
    unsafe_code,
    reason = "operations on raw memory, with the instructions of the machine: library calls are the layer for it"
)]

pub mod configuration;
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
/// `arguments` points to an array of pointers, one for each argument, in this order: the array leaves of the
/// operands, the array leaves of the result, and the scratch memory if the kernel asks for some. Arrays are
/// dense and row-major, with elements as [`hlo::literal::Buffer`] has them (`pred`: one byte, 0 or 1;
/// sub-byte types: one normalized byte each; complex: pairs), and aligned to 64 bytes unless they are slices
/// of larger buffers.
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
    /// The epilogue: called with ranges of finished rows of the result (a row: the last dimension), each row
    /// once, from any thread.
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

/// An operation of a library call, with all static facts that its execution needs.
///
/// **Invariants:** results are bit-identical for any number of threads, since work is split by shapes alone.
/// Execution allocates nothing beyond the scratch memory that was asked for, unless a library that it calls
/// does.
pub trait Operation {
    /// Its strategy, by the names of docs/compiler.md: "GEMV", "split-K GEMM", "direct convolution", "radix
    /// sort", ...
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

    /// Whether a call writes all of its results; false of sorts of which only a part is used.
    fn is_whole(&self) -> bool {
        true
    }

    /// Bytes of constant operands in packed form, which is made once, before all calls. `None`: packing gains
    /// nothing.
    /// **Invariant:** results have the same bits with packed operands and without.
    fn prepared_bytes(&self, _constant: &[bool]) -> Option<u64> {
        None
    }

    /// Packs [`PREPARED_OPERAND`].
    ///
    /// # Safety
    /// At `to` there are as many bytes as [`Operation::prepared_bytes`] said, aligned to 64. The operand is
    /// valid, and does not change as long as calls are given the packed form.
    unsafe fn prepare(&self, _arguments: &[*const u8], _to: *mut u8, _pool: &Pool) -> Prepared {
        Prepared::Beside
    }

    /// Executes it.
    ///
    /// # Safety
    /// The pointers of `call` are valid for the arrays of the instruction that this was made of; results
    /// overlap neither operands nor each other, unless the operation says so; packed operands are those of
    /// this call.
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
