//! What the compiler makes: data that the runtime executes.

use hlo::Literal;
use std::sync::Arc;

use crate::buffers::Assignment;
use crate::kernel::Kernel;
use crate::plan::Plan;

/// A compiled program.
#[derive(Debug)]
pub struct Program {
    /// The entry's name.
    pub name: String,
    /// Relocatable object code (ELF), each loaded by itself; symbols are unique over all of them.
    pub objects: Vec<Vec<u8>>,
    /// The kernels that the plan launches.
    pub kernels: Vec<Kernel>,
    /// Where every value lies.
    pub buffers: Assignment,
    /// Values of the constant allocations, by [`crate::buffers::AllocationKind::Constant`].
    pub constants: Vec<Arc<Literal>>,
    /// What to do, in order.
    pub plan: Plan,
}
