//! The launch plan: what the runtime does, in order, with control flow.

pub mod lower;
mod rotate;

use hlo_library::LibraryCall;
use hlo_opt::buffers::{Copy, Slice};

/// Steps in order.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The steps.
    pub steps: Vec<Step>,
}

/// One copy of the body of a loop: for one of the assignments of buffers to its state.
#[derive(Clone, Debug)]
pub struct Rotation {
    /// Computes the predicate.
    pub condition: Plan,
    /// A `pred[]`.
    pub predicate: Slice,
    /// Computes the next state, where the next rotation wants it.
    pub body: Plan,
    /// Runs when the loop ends: brings the state where it is expected then.
    pub finish: Plan,
}

/// One thing to do. Slices are of the program's [`hlo_opt::buffers::Assignment`].
#[derive(Clone, Debug)]
pub struct Step {
    /// The instruction that it executes, for profiles and errors.
    pub name: String,
    /// The instruction itself, for who watches a run; `None`: it does something else on the way.
    pub executes: Option<Box<Executed>>,
    /// What is done.
    pub action: Action,
}

/// An instruction that a step executes.
#[derive(Clone, Debug)]
pub struct Executed {
    /// The instruction, of the lowered module.
    pub instr: hlo::InstrId,
    /// The `call`s that led there from the computation of the steps around it: their steps are among those.
    pub calls: Vec<hlo::InstrId>,
    /// Where the array leaves of its result are then; `None`: the step leaves it in part, or it is not there yet.
    pub result: Option<Vec<Slice>>,
}

impl Executed {
    /// The arrays of its result, if it is there as a whole and no two of them share a place.
    pub fn visible(&self) -> Option<&[Slice]> {
        let result = self.result.as_deref()?;
        let mut places: Vec<&Slice> = result.iter().filter(|s| s.bytes > 0).collect();
        places.sort_unstable_by_key(|s| (s.allocation, s.offset));
        let apart =
            |w: &[&Slice]| w[0].allocation != w[1].allocation || w[0].offset + w[0].bytes <= w[1].offset;
        places.windows(2).all(apart).then_some(result)
    }
}

impl Step {
    /// A copy.
    fn copy(name: &str, Copy { from, to }: Copy) -> Step {
        Step { name: name.to_owned(), executes: None, action: Action::Copy { from, to } }
    }
}

/// What a step does.
#[derive(Clone, Debug)]
pub enum Action {
    /// Launches a kernel of the program.
    Kernel {
        /// Its place in [`crate::program::Program::kernels`].
        kernel: usize,
        /// Its arguments, as [`hlo_library::KernelFn`] orders them, scratch included.
        arguments: Vec<Slice>,
    },
    /// Calls an operation that was compiled with this program.
    Library {
        /// The operation, with all of its static facts.
        op: Box<LibraryCall>,
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
    /// Runs `condition`, and while `predicate` is then true `body`: of one rotation after the other, from the first again after the last.
    While {
        /// One, or as many as its state has places that it goes through.
        rotations: Vec<Rotation>,
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
