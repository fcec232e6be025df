//! Memory that a thread keeps from one chunk of work to the next: buffers of packing, sorting and sums are
//! there while it computes one.
//!
//! **Invariant:** it is aligned to cache lines, all of it has been written to, and a thread has one user of a
//! workspace at a time.

use std::cell::RefCell;

/// A cache line.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// Memory that grows to the largest size that was requested.
#[derive(Default)]
pub struct Workspace(Vec<Line>);

thread_local! {
    static WORKSPACE: RefCell<Workspace> = const { RefCell::new(Workspace::new()) };
    static COUNTERS: RefCell<Workspace> = const { RefCell::new(Workspace::new()) };
}

impl Workspace {
    /// None yet.
    pub const fn new() -> Self {
        Workspace(Vec::new())
    }

    /// The address of `bytes` bytes, aligned to 64. Their contents are unspecified.
    #[inline]
    pub fn reserve(&mut self, bytes: usize) -> *mut u8 {
        let lines = bytes.div_ceil(64);
        if self.0.len() < lines {
            self.0.resize(lines, Line([0; 64]));
        }
        self.0.as_mut_ptr().cast()
    }
}

/// Calls `f` with `bytes` bytes of this thread's workspace, aligned to 64.
pub fn with_workspace<R>(bytes: usize, f: impl FnOnce(*mut u8) -> R) -> R {
    WORKSPACE.with_borrow_mut(|workspace| f(workspace.reserve(bytes)))
}

/// Calls `f` with `bytes` bytes of this thread beside its workspace, aligned to 64: for the counters of the
/// chunks of work that this thread started.
pub fn with_counters<R>(bytes: usize, f: impl FnOnce(*mut u8) -> R) -> R {
    COUNTERS.with_borrow_mut(|counters| f(counters.reserve(bytes)))
}
