//! Operations that are compiled with this crate rather than with the program: contractions, convolutions, sorting, transforms, linear algebra. A program
//! holds one as a [`Native`]: a description that was made when it was compiled, with every static fact that running it needs.
//!
//! One file (or folder) a family. **Invariants:** the result is the same to the bit whatever the number of threads (work is split by shapes alone); an
//! operation allocates nothing while it runs but takes the scratch memory that it asked for, where a library that it calls allows that.

use hlo::{ComputationId, InstrId, Module};

use crate::Unsupported;
use crate::kernel::KernelFn;
use crate::runtime::pool::Pool;

/// What an operation is called with.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    /// Array leaves of the operands, then of the result: dense, row-major, as [`KernelFn`] says.
    pub arguments: &'a [*mut u8],
    /// As many bytes as [`Native::scratch_bytes`] said, aligned to 64; undefined contents.
    pub scratch: *mut u8,
    /// The kernels of [`Native::regions`], in order.
    pub regions: &'a [KernelFn],
    /// Called with a range of finished rows of the result (rows: all dimensions but the last), each row once, from any thread.
    pub epilogue: Option<&'a (dyn Fn(u64, u64) + Sync)>,
    /// Threads.
    pub pool: &'a Pool,
}

/// An operation and all of its static facts.
#[derive(Clone, Debug)]
pub enum Native {}

impl Native {
    /// The operation that executes an instruction; `None` if its opcode is not executed this way. Errors: a case of it that is not supported.
    pub fn of(module: &Module, id: InstrId) -> Option<Result<Native, Unsupported>> {
        let _ = (module, id);
        None
    }

    /// Bytes of scratch memory that a call needs.
    pub fn scratch_bytes(&self) -> u64 {
        match *self {}
    }

    /// The applied computations that it calls as [`crate::kernel::Request::Map`] kernels.
    pub fn regions(&self) -> Vec<ComputationId> {
        match *self {}
    }

    /// Bytes read and written, and arithmetic operations, of a call: for profiles.
    pub fn cost(&self) -> (u64, u64) {
        match *self {}
    }

    /// Executes it.
    ///
    /// # Safety
    /// The pointers of `call` are valid for the arrays of the instruction that this was made of, results overlap neither operands nor each other.
    #[expect(unused_variables, reason = "there is no operation yet")]
    pub unsafe fn run(&self, call: Call<'_>) {
        match *self {}
    }
}
