//! The launch plan: what the runtime does, in order, with control flow.

pub mod lower;

use crate::buffers::Slice;
use crate::runtime::native::Native;

/// Steps in order.
#[derive(Debug, Default)]
pub struct Plan {
    /// The steps.
    pub steps: Vec<Step>,
}

/// One thing to do. Slices are of the program's [`crate::buffers::Assignment`].
#[derive(Debug)]
pub struct Step {
    /// The instruction that it executes, for profiles and errors.
    pub name: String,
    /// What is done.
    pub action: Action,
}

/// What a step does.
#[derive(Debug)]
pub enum Action {
    /// Launches a kernel of the program.
    Kernel {
        /// Its place in [`crate::program::Program::kernels`].
        kernel: usize,
        /// Its arguments, as [`crate::kernel::KernelFn`] orders them, scratch included.
        arguments: Vec<Slice>,
    },
    /// Calls an operation that was compiled with this program.
    Native {
        /// The operation, with all of its static facts.
        op: Box<Native>,
        /// Array leaves of its operands, then of its result.
        arguments: Vec<Slice>,
        /// Its scratch memory.
        scratch: Option<Slice>,
        /// The kernels that it calls (its applied computations), places in [`crate::program::Program::kernels`].
        regions: Vec<usize>,
        /// A kernel for the rows that it has finished, and its arguments ([`crate::kernel::Request::Epilogue`]).
        epilogue: Option<(usize, Vec<Slice>)>,
    },
    /// Copies bytes between slices of the same size that do not overlap.
    Copy {
        /// From here.
        from: Slice,
        /// To there.
        to: Slice,
    },
    /// Runs `condition`, and while `predicate` is then true `body`.
    While {
        /// Computes the predicate.
        condition: Plan,
        /// A `pred[]`.
        predicate: Slice,
        /// Computes the next state in place.
        body: Plan,
    },
    /// Runs one of the branches.
    Conditional {
        /// A `pred[]` (true: the first branch) or an `s32[]` (out of range: the last).
        selector: Slice,
        /// Whether it is a `pred[]`.
        is_predicate: bool,
        /// Each leaves its result in the slices of the conditional's.
        branches: Vec<Plan>,
    },
    /// Runs an instruction of [`crate::program::Program::module`] in the interpreter: what communicates, draws random numbers or (`--fallback`) is not
    /// compiled.
    Interpret {
        /// The instruction.
        instr: hlo::InstrId,
        /// Array leaves of its operands, then of its result. (Those of operands whose values are promised are not looked at.)
        arguments: Vec<Slice>,
    },
}
