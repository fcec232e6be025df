//! Cancellation of work under way: a token that long loops poll.
//!
//! [`CancellationToken::run`] sets the token of the thread that calls it; work that is spread over other
//! threads hands it on ([`with`]). A loop that may take long calls [`poll`] once a block of work, which costs
//! a load; once somebody has called [`CancellationToken::cancel`], it unwinds the stack up to `run`.
//! Unwinding needs no error type in kernels that cannot fail otherwise, and drops what was half done.
//! **Invariants:** it calls no panic hook; whoever catches panics hands this one on ([`Cancelled::rethrow`]);
//! nothing here reads a clock, so what a run gives depends on nothing but when somebody else cancels it, and
//! then it gives nothing.

use std::any::Any;
use std::cell::RefCell;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Cheap iterations of a loop between two polls.
const POLL_ITERATIONS: usize = 4096;

thread_local! {
    static CURRENT: RefCell<Option<CancellationToken>> = const { RefCell::new(None) };
}

/// A cancellation token. Clones are the same token.
#[derive(Clone, Debug)]
pub struct CancellationToken(Arc<Node>);

#[derive(Debug)]
struct Node {
    cancelled: AtomicBool,
    /// The parent token.
    parent: Option<CancellationToken>,
}

/// The work was cancelled: an error, and the payload that unwinds the stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("cancelled")]
pub struct Cancelled;

impl Cancelled {
    /// Continues unwinding if a caught panic is a cancellation; otherwise returns it.
    pub fn rethrow(panic: Box<dyn Any + Send>) -> Box<dyn Any + Send> {
        if panic.is::<Cancelled>() { resume_unwind(panic) } else { panic }
    }
}

impl Default for CancellationToken {
    fn default() -> Self {
        Self::new()
    }
}

impl CancellationToken {
    /// A child token of this thread's: it is cancelled with that, too.
    pub fn new() -> Self {
        Self(Arc::new(Node { cancelled: AtomicBool::new(false), parent: current() }))
    }

    /// Asks the work to end.
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::Relaxed);
    }

    /// Whether it is to end.
    pub fn is_cancelled(&self) -> bool {
        let mut node = &*self.0;
        loop {
            if node.cancelled.load(Ordering::Relaxed) {
                return true;
            }
            match &node.parent {
                Some(parent) => node = &parent.0,
                None => return false,
            }
        }
    }

    /// Runs the work. Unwinding that an outer token caused continues.
    pub fn run<R>(&self, work: impl FnOnce() -> R) -> Result<R, Cancelled> {
        let done = catch_unwind(AssertUnwindSafe(|| with(Some(self.clone()), work)));
        done.map_err(|panic| {
            if panic.is::<Cancelled>() && self.0.cancelled.load(Ordering::Relaxed) {
                Cancelled
            } else {
                resume_unwind(panic)
            }
        })
    }
}

/// This thread's token.
pub fn current() -> Option<CancellationToken> {
    CURRENT.with_borrow(Clone::clone)
}

/// Runs something that belongs to the work of this token.
pub fn with<R>(token: Option<CancellationToken>, work: impl FnOnce() -> R) -> R {
    struct Restore(Option<CancellationToken>);
    impl Drop for Restore {
        fn drop(&mut self) {
            CURRENT.replace(self.0.take());
        }
    }
    let _restore = Restore(CURRENT.replace(token));
    work()
}

/// Runs one of many tasks of this token's work. A task that is cancelled is skipped or ends early, without
/// unwinding its worker: unwinding would repeat for each of the other tasks. So the thread that waits for all
/// tasks polls afterwards.
pub(crate) fn task(token: Option<&CancellationToken>, work: impl FnOnce()) {
    let Some(token) = token else { return with(None, work) };
    if token.is_cancelled() {
        return;
    }
    let done = catch_unwind(AssertUnwindSafe(|| with(Some(token.clone()), work)));
    if let Err(panic) = done
        && !(panic.is::<Cancelled>() && token.is_cancelled())
    {
        resume_unwind(panic);
    }
}

/// Unwinds the stack if the work of this thread was cancelled.
#[inline]
pub fn poll() {
    CURRENT.with_borrow(|token| poll_token(token.as_ref()));
}

/// The same, for a token that was fetched before.
#[inline]
pub fn poll_token(token: Option<&CancellationToken>) {
    if token.is_some_and(CancellationToken::is_cancelled) {
        unwind();
    }
}

#[cold]
fn unwind() -> ! {
    resume_unwind(Box::new(Cancelled))
}

/// The range, polled once in that many iterations that cost next to nothing each.
pub fn polled(range: Range<usize>) -> impl Iterator<Item = usize> {
    let start = range.start;
    range.inspect(move |i| {
        if (i - start) % POLL_ITERATIONS == POLL_ITERATIONS - 1 {
            poll();
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polls_unwind_to_the_token_that_was_cancelled() {
        poll();
        let (outer, reached) = (CancellationToken::new(), AtomicBool::new(false));
        let done = outer.run(|| {
            let inner = CancellationToken::new();
            inner.cancel();
            assert_eq!(inner.run(|| polled(0..POLL_ITERATIONS).sum::<usize>()), Err(Cancelled));
            poll();
            // What is cancelled further out ends what is further in.
            outer.cancel();
            assert!(CancellationToken::new().is_cancelled());
            let inner = CancellationToken::new();
            let never = inner.run(poll);
            reached.store(true, Ordering::Relaxed);
            never
        });
        assert_eq!((done, reached.into_inner()), (Err(Cancelled), false));
        poll();
        assert!(current().is_none());
    }

    #[test]
    fn other_panics_stay_panics() {
        let token = CancellationToken::new();
        token.cancel();
        let run = || token.run(|| resume_unwind(Box::new("else")));
        let panic = catch_unwind(AssertUnwindSafe(run)).expect_err("a panic");
        assert_eq!(Cancelled::rethrow(panic).downcast_ref::<&str>(), Some(&"else"));
    }

    #[test]
    fn a_polled_range_is_the_range() {
        for n in [0, 1, POLL_ITERATIONS - 1, POLL_ITERATIONS, 2 * POLL_ITERATIONS + 1] {
            assert!(polled(3..3 + n).eq(3..3 + n));
        }
        assert_eq!(polled(usize::MAX - 2..usize::MAX).count(), 2);
    }
}
