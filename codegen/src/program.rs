//! Programs: the compiler's output, as data that the runtime executes.

use hlo::{ArrayShape, Literal, Module, Shape};
use hlo_library_base::portable::Evaluate;
use hlo_opt::buffers::Assignment;
use std::sync::Arc;

use crate::kernel::Kernel;
use crate::plan::Plan;
use crate::run_time_sizes::RunTimeSizes;

/// The code of kernels.
#[derive(Clone, Debug)]
pub enum Code {
    /// Relocatable object code (ELF), each loaded separately; symbols are unique over all of them.
    Objects(Vec<Arc<[u8]>>),
    /// The evaluator of each kernel; `None`: nothing launches it.
    Evaluated(Vec<Option<Arc<dyn Evaluate>>>),
}

impl Default for Code {
    fn default() -> Self {
        Code::Objects(Vec::new())
    }
}

impl Code {
    /// The object code, if it is machine code.
    pub fn objects(&self) -> &[Arc<[u8]>] {
        match self {
            Code::Objects(objects) => objects,
            Code::Evaluated(_) => &[],
        }
    }
}

/// A compiled program.
#[derive(Debug)]
pub struct Program {
    /// The entry's name.
    pub name: String,
    /// Shapes of the entry's parameters.
    pub parameters: Vec<Shape>,
    /// Shape of the entry's result.
    pub result: Shape,
    /// The code of its kernels.
    pub code: Code,
    /// The kernels that the plan launches.
    pub kernels: Vec<Kernel>,
    /// The buffer assignment.
    pub buffers: Assignment,
    /// Values of the constant allocations, by [`hlo_opt::buffers::AllocationKind::Constant`].
    pub constants: Vec<Arc<Literal>>,
    /// The launch plan.
    pub plan: Plan,
    /// The module, if the plan has instructions for the interpreter.
    pub module: Option<Arc<Module>>,
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

/// The array leaves of a shape, in depth-first order.
pub fn arrays(shape: &Shape) -> impl Iterator<Item = &ArrayShape> + Clone {
    shape.leaves().into_iter().filter_map(Shape::as_array)
}
