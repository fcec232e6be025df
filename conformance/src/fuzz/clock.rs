//! The clock of a hunt: steps in this process cannot be ended from outside, but their delay is noticed.
//!
//! **Invariant:** a step of a worker is on its dial from its beginning to its end, so that one look at the
//! clock sees every step that takes too long; each is told once.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A program on an engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Step {
    /// The program's number.
    pub number: u64,
    /// Which of the hunt's engines.
    pub engine: usize,
}

/// The step of each worker, and its start.
pub(super) struct Clock {
    limit: Duration,
    dials: Vec<Mutex<Option<(Step, Instant)>>>,
}

impl Clock {
    /// Of `workers` workers, with a limit on the time of a step.
    pub(super) fn new(workers: usize, limit: Duration) -> Self {
        Self { limit, dials: (0..workers).map(|_| Mutex::new(None)).collect() }
    }

    /// Takes a step of a worker.
    pub(super) fn take<T>(&self, worker: usize, step: Step, work: impl FnOnce() -> T) -> T {
        *self.dial(worker) = Some((step, Instant::now()));
        let done = work();
        *self.dial(worker) = None;
        done
    }

    /// A step that takes too long.
    pub(super) fn overdue(&self) -> Option<Step> {
        (0..self.dials.len()).find_map(|worker| {
            let mut dial = self.dial(worker);
            let (step, since) = (*dial)?;
            (since.elapsed() >= self.limit).then(|| {
                *dial = None;
                step
            })
        })
    }

    fn dial(&self, worker: usize) -> MutexGuard<'_, Option<(Step, Instant)>> {
        self.dials[worker].lock().unwrap_or_else(PoisonError::into_inner)
    }
}
