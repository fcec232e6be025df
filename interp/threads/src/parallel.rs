//! Data parallelism: work on pieces of a result, on several threads.
//!
//! One instance of the thread pool's machinery serves all callers: the work is behind a `dyn`, called once
//! per task. Instantiated for every closure and element type, that machinery was most of the crate's code.
//! **Invariants:** how work is divided changes no bit: a piece depends on its number alone. Every task
//! belongs to the caller's [`cancel`] token, which is polled before it.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError};

use rayon::prelude::*;

use crate::cancel;

/// Lent threads, [`with_threads`].
pub trait Threads: Send + Sync {
    /// How many, including the caller's.
    fn count(&self) -> usize;

    /// Calls `f` once with each number below `n`, and returns when all calls have returned.
    fn run(&self, n: usize, f: &(dyn Fn(usize) + Sync));
}

/// The workers of a thread's tasks.
#[derive(Clone)]
enum Workers {
    /// The pool of the process.
    Own,
    /// Those of a caller that waits for them.
    Lent(Arc<dyn Threads>),
    /// The thread itself, which is one of those.
    Alone,
}

thread_local! {
    static WORKERS: RefCell<Workers> = const { RefCell::new(Workers::Own) };
}

/// Sets a thread's workers, and restores them when it is dropped.
struct Set(Workers);

impl Set {
    fn new(workers: Workers) -> Self {
        Self(WORKERS.replace(workers))
    }
}

impl Drop for Set {
    fn drop(&mut self) {
        WORKERS.replace(std::mem::replace(&mut self.0, Workers::Own));
    }
}

/// Runs `f` with these threads as workers instead of the process's own: threads that wait for work start it
/// sooner.
pub fn with_threads<R>(threads: Arc<dyn Threads>, f: impl FnOnce() -> R) -> R {
    let _set = Set::new(Workers::Lent(threads));
    f()
}

fn workers() -> Workers {
    WORKERS.with_borrow(Workers::clone)
}

/// The number of threads that would do the work.
pub fn threads() -> usize {
    match workers() {
        Workers::Own => rayon::current_num_threads(),
        Workers::Lent(threads) => threads.count(),
        Workers::Alone => 1,
    }
}

/// Whether work would be done by this thread alone.
fn alone() -> bool {
    threads() == 1
}

/// Whether threads wait for work: those of the process take as long to start as some microseconds of work.
pub fn starts_at_once() -> bool {
    matches!(workers(), Workers::Lent(_))
}

/// Calls `f` with `0..n`, on all threads there are.
pub fn tasks(n: usize, f: &(dyn Fn(usize) + Sync)) {
    let token = cancel::current();
    let polled = |i| {
        cancel::poll_token(token.as_ref());
        f(i);
    };
    if n <= 1 || alone() {
        return (0..n).for_each(polled);
    }
    match workers() {
        Workers::Own => {
            (0..n).into_par_iter().for_each(|i| cancel::task(token.as_ref(), || f(i)));
            cancel::poll_token(token.as_ref());
        }
        Workers::Lent(threads) => threads.run(n, &|i| {
            let _set = Set::new(Workers::Alone);
            cancel::with(token.clone(), || polled(i));
        }),
        Workers::Alone => (0..n).for_each(polled),
    }
}

/// Calls `f` with the number and the elements of each piece of `size` elements (the last may be shorter). A
/// task takes `pieces_a_task` of them (0 counts as 1).
pub fn pieces<T: Send>(
    out: &mut [T],
    size: usize,
    pieces_a_task: usize,
    f: &(dyn Fn(usize, &mut [T]) + Sync),
) {
    let size = size.max(1);
    let pieces_a_task = pieces_a_task.max(1);
    let span = size.saturating_mul(pieces_a_task);
    if out.len() <= span || alone() {
        // Pieces may be single elements: the token is asked for once.
        let token = cancel::current();
        out.chunks_mut(size).enumerate().for_each(|(i, piece)| {
            cancel::poll_token(token.as_ref());
            f(i, piece);
        });
        return;
    }
    // A lock per task is what it takes to hand out disjoint pieces by number without unsafe code; it is never
    // contended.
    let spans: Vec<Mutex<&mut [T]>> = out.chunks_mut(span).map(Mutex::new).collect();
    tasks(spans.len(), &|task| {
        let mut span = spans[task].lock().unwrap_or_else(PoisonError::into_inner);
        span.chunks_mut(size).enumerate().for_each(|(i, piece)| f(task * pieces_a_task + i, piece));
    });
}

/// The results of `f` for `0..n`, in order.
pub fn collect<R: Send>(n: usize, f: &(dyn Fn(usize) -> R + Sync)) -> Vec<R> {
    let mut out: Vec<Option<R>> = (0..n).map(|_| None).collect();
    pieces(&mut out, 1, 1, &|i, slot| slot[0] = Some(f(i)));
    out.into_iter().map(|r| r.expect("invariant: every piece is computed")).collect()
}

/// Work on a piece, by its number, that may fail.
pub type TryPiece<'f, T, E> = dyn Fn(usize, &mut [T]) -> Result<(), E> + Sync + 'f;

/// Calls `f` as [`pieces`] does; the error of the first piece that has one. Errors are rare: the other pieces
/// are still computed.
pub fn try_pieces<T: Send, E: Send>(
    out: &mut [T],
    size: usize,
    pieces_a_task: usize,
    f: &TryPiece<'_, T, E>,
) -> Result<(), E> {
    let failed: Mutex<Option<(usize, E)>> = Mutex::new(None);
    pieces(out, size, pieces_a_task, &|i, piece| {
        if let Err(e) = f(i, piece) {
            let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
            if failed.as_ref().is_none_or(|(first, _)| i < *first) {
                *failed = Some((i, e));
            }
        }
    });
    failed.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), |(_, e)| Err(e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_get_their_numbers_however_they_are_grouped() {
        for (len, size, group) in [(0, 3, 1), (10, 3, 1), (10, 3, 2), (9, 3, 7), (1000, 7, 0), (5, 100, 2)] {
            let mut out = vec![usize::MAX; len];
            pieces(&mut out, size, group, &|i, piece| piece.fill(i));
            let expected: Vec<usize> = (0..len).map(|i| i / size).collect();
            assert_eq!(out, expected, "{len} in {size}, {group} a task");
        }
        assert_eq!(collect(100, &|i| i * i), (0..100).map(|i| i * i).collect::<Vec<_>>());
    }

    /// Threads that count how often they are asked.
    struct Counting(Mutex<usize>);

    impl Threads for Counting {
        fn count(&self) -> usize {
            2
        }

        fn run(&self, n: usize, f: &(dyn Fn(usize) + Sync)) {
            *self.0.lock().unwrap() += 1;
            std::thread::scope(|scope| {
                for i in 0..n {
                    scope.spawn(move || f(i));
                }
            });
        }
    }

    #[test]
    fn lent_threads_do_the_outer_tasks() {
        let threads = Arc::new(Counting(Mutex::new(0)));
        let sums = || collect(5, &|i| collect(4, &|j| i * j).into_iter().sum::<usize>());
        let lent = with_threads(Arc::clone(&threads) as Arc<dyn Threads>, sums);
        assert_eq!(lent, [0, 6, 12, 18, 24]);
        assert_eq!(*threads.0.lock().unwrap(), 1);
        assert_eq!(sums(), lent);
        assert_eq!(*threads.0.lock().unwrap(), 1);
    }
}
