//! A second target for the kernels of a run: each launch is repeated there on a copy of the memory that it
//! began with.
//!
//! **Invariant:** a run goes on with the interpreter's results, so that each kernel is compared alone.

use std::fmt;
use std::sync::Arc;

use hlo::ElementType;

/// Variables of a module by name, with what they hold.
pub type Variables = Vec<(String, Arc<[u8]>)>;

/// A launch as the interpreter executed it.
#[derive(Clone, Debug)]
pub struct Mirrored<'r> {
    /// The file of the text.
    pub file: &'r str,
    /// The text.
    pub ptx: &'r str,
    /// The instruction that the kernel executes.
    pub instruction: &'r str,
    /// The kernel.
    pub kernel: &'r str,
    /// Blocks of the grid.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub shared_bytes: u64,
    /// For each argument its memory and the offset there.
    pub arguments: Vec<(usize, u64)>,
    /// For each argument the type of its elements, and its bytes.
    pub elements: Vec<(ElementType, usize)>,
    /// The variables of the module, and what they hold before.
    pub variables: Variables,
    /// Memory before.
    pub before: Vec<Arc<[u8]>>,
    /// Memory after, by the interpreter.
    pub after: Vec<Vec<u8>>,
}

/// The observer of launches.
pub trait Mirror: Send + Sync {
    /// A kernel was executed.
    fn launched(&self, launch: Mirrored<'_>);
}

/// A mirror, where there is one.
#[derive(Clone, Default)]
pub(super) struct Watching(pub(super) Option<Arc<dyn Mirror>>);

impl fmt::Debug for Watching {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Mirror" } else { "no mirror" })
    }
}
