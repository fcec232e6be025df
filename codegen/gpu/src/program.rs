//! Programs: the compiler's output, as data that [`crate::run`] executes.

use std::sync::Arc;

use hlo::{ArrayShape, Literal, Shape};
use hlo_codegen::program::arrays;
use hlo_codegen::run_time_sizes::RunTimeSizes;
use hlo_opt::buffers::{Assignment, Slice};

use crate::arch::Arch;

/// An argument of a launch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Argument {
    /// The address of a slice of the program's memory.
    Slice(Slice),
    /// A number.
    Word(u64),
}

/// A launch of a kernel function.
#[derive(Clone, PartialEq, Debug)]
pub struct Launch {
    /// The symbol of the function.
    pub symbol: String,
    /// Blocks along each dimension.
    pub grid: [u32; 3],
    /// Threads of a block along each dimension.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub shared_bytes: u32,
    /// Its arguments.
    pub arguments: Vec<Argument>,
}

/// The action of a step.
#[derive(Clone, PartialEq, Debug)]
pub enum Action {
    /// Launches a kernel function.
    Launch(Launch),
    /// Copies bytes between disjoint slices of the same size.
    Copy {
        /// The source.
        from: Slice,
        /// The destination.
        to: Slice,
    },
    /// Sets all bytes of a slice.
    Fill {
        /// The slice.
        to: Slice,
        /// The byte.
        byte: u8,
    },
    /// Runs `condition`, and while `predicate` is then true `body`, and again.
    While {
        /// Computes the predicate.
        condition: Plan,
        /// A `pred[]`.
        predicate: Slice,
        /// Computes the next state, in place.
        body: Plan,
        /// The trip count, where it is known: then nothing is read back, and the condition is not computed.
        iterations: Option<u64>,
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
}

/// A step.
#[derive(Clone, PartialEq, Debug)]
pub struct Step {
    /// The instruction that it executes, for profiles and errors.
    pub name: String,
    /// The action.
    pub action: Action,
}

/// A sequence of steps.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Plan {
    /// Which of the program's plans it is: the entry, a body, a condition, a branch.
    pub ordinal: u32,
    /// The steps.
    pub steps: Vec<Step>,
}

/// A sequence of adjacent launches, copies and fills in a plan, without control flow: what one graph
/// executes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SequenceId {
    /// The ordinal of the plan.
    pub plan: u32,
    /// Its first step.
    pub first: u32,
}

impl Step {
    /// Whether a device executes it by itself: it is no control flow.
    pub fn is_straight(&self) -> bool {
        match self.action {
            Action::Launch(_) | Action::Copy { .. } | Action::Fill { .. } => true,
            Action::While { .. } | Action::Conditional { .. } => false,
        }
    }
}

impl Plan {
    /// The number of kernel launches, those of loops and branches counted once.
    pub fn launches(&self) -> usize {
        let of = |step: &Step| match &step.action {
            Action::Launch(_) => 1,
            Action::Copy { .. } | Action::Fill { .. } => 0,
            Action::While { condition, body, .. } => condition.launches() + body.launches(),
            Action::Conditional { branches, .. } => branches.iter().map(Plan::launches).sum(),
        };
        self.steps.iter().map(of).sum()
    }
}

/// A compiled program.
#[derive(Debug)]
pub struct Program {
    /// The entry's name.
    pub name: String,
    /// The target architecture.
    pub arch: Arch,
    /// Shapes of the entry's parameters.
    pub parameters: Vec<Shape>,
    /// Shape of the entry's result.
    pub result: Shape,
    /// Texts of PTX, each a module of its own; the symbols of kernels are unique over all of them.
    pub ptx: Vec<Arc<str>>,
    /// For each symbol of a kernel function the module that has it.
    pub symbols: rustc_hash::FxHashMap<String, usize>,
    /// The buffer assignment.
    pub buffers: Assignment,
    /// Values of the constant allocations, by `AllocationKind::Constant`.
    pub constants: Vec<Arc<Literal>>,
    /// The launch plan.
    pub plan: Plan,
    /// The adapter for arguments or results whose sizes are known at run time.
    pub run_time_sizes: Option<RunTimeSizes>,
}

impl Program {
    /// The array leaves of all parameters, in order.
    pub fn parameter_leaves(&self) -> impl Iterator<Item = &ArrayShape> {
        self.parameters.iter().flat_map(arrays)
    }

    /// The array leaves of the result, in order.
    pub fn result_leaves(&self) -> Vec<&ArrayShape> {
        arrays(&self.result).collect()
    }
}
