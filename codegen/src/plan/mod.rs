//! The launch plan: the steps that the runtime executes, in order, with control flow.

pub mod lower;
mod rotate;

use hlo_library::LibraryCall;
use hlo_opt::buffers::{Copy, Slice};

/// A sequence of steps.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The steps.
    pub steps: Vec<Step>,
}

/// One copy of the body of a loop, for one rotation of its state's buffers.
#[derive(Clone, Debug)]
pub struct Rotation {
    /// Computes the predicate.
    pub condition: Plan,
    /// A `pred[]`.
    pub predicate: Slice,
    /// Computes the next state into the buffers that the next rotation reads.
    pub body: Plan,
    /// Runs when the loop ends: copies the state to its assigned buffers.
    pub finish: Plan,
}

/// A step. Slices are of the program's [`hlo_opt::buffers::Assignment`].
#[derive(Clone, Debug)]
pub struct Step {
    /// The name of the instruction that it executes, for profiles and errors.
    pub name: String,
    /// The instruction, for those who watch a run; `None`: the step is auxiliary.
    pub executes: Option<Box<Executed>>,
    /// The action.
    pub action: Action,
}

/// An instruction that a step executes.
#[derive(Clone, Debug)]
pub struct Executed {
    /// The instruction, of the lowered module.
    pub instr: hlo::InstrId,
    /// The chain of `call`s from the enclosing computation with steps of its own: their steps are inlined.
    pub calls: Vec<hlo::InstrId>,
    /// The slices of its result's array leaves afterwards; `None`: the step computes it in part, or it is not
    /// there yet.
    pub result: Option<Vec<Slice>>,
}

impl Executed {
    /// The arrays of its result, if it is there as a whole and no two of them overlap.
    pub fn visible(&self) -> Option<&[Slice]> {
        let result = self.result.as_deref()?;
        let mut slices: Vec<&Slice> = result.iter().filter(|s| s.bytes > 0).collect();
        slices.sort_unstable_by_key(|s| (s.allocation, s.offset));
        let apart =
            |w: &[&Slice]| w[0].allocation != w[1].allocation || w[0].offset + w[0].bytes <= w[1].offset;
        slices.windows(2).all(apart).then_some(result)
    }
}

impl Step {
    /// A copy.
    fn copy(name: &str, Copy { from, to }: Copy) -> Step {
        Step { name: name.to_owned(), executes: None, action: Action::Copy { from, to } }
    }
}

/// The action of a step.
#[derive(Clone, Debug)]
pub enum Action {
    /// Launches a kernel of the program.
    Kernel {
        /// An index into [`crate::program::Program::kernels`].
        kernel: usize,
        /// Its arguments, as [`hlo_library_base::KernelFn`] orders them, scratch included.
        arguments: Vec<Slice>,
    },
    /// A library call.
    Library {
        /// The call, with all of its static parameters.
        op: Box<LibraryCall>,
        /// Array leaves of its operands, then of its result.
        arguments: Vec<Slice>,
        /// Its scratch memory.
        scratch: Option<Slice>,
        /// The kernels of its applied computations, indices into [`crate::program::Program::kernels`].
        regions: Vec<usize>,
        /// The epilogue kernel for rows that are finished, and its arguments
        /// ([`crate::kernel::Request::Epilogue`]).
        epilogue: Option<(usize, Vec<Slice>)>,
    },
    /// Copies bytes between disjoint slices of the same size.
    Copy {
        /// The source.
        from: Slice,
        /// The destination.
        to: Slice,
    },
    /// Runs `condition`, and while `predicate` is then true `body`; each iteration takes the next rotation,
    /// the first again after the last.
    While {
        /// One, or as many as buffers rotate through.
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
    /// Runs an instruction of [`crate::program::Program::module`] in the interpreter: communication, random
    /// numbers, or (`--fallback`) what is not compiled.
    Interpret {
        /// The instruction.
        instr: hlo::InstrId,
        /// Array leaves of its operands, then of its result. (Operands that are pending are not read.)
        arguments: Vec<Slice>,
    },
}
