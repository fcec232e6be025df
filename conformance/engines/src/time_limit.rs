//! Limits on the time of work in this process: what takes longer is cancelled.
//!
//! One thread waits for the deadlines of all work and cancels its token ([`hlo_threads::cancel`]); the work
//! ends where it polls that next: the interpreter, the judge and the compiler's passes within milliseconds; a
//! compiled program between two chunks of a kernel; LLVM between two units.
//! **Invariant:** without a limit nothing here costs anything, and what a run gives does not depend on limits
//! that it keeps.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use hlo_threads::cancel::CancellationToken;

use hlo_execution::run::Outcome;
use hlo_system::exit::Failure;

/// Why work was not finished.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unfinished {
    /// It took longer than this.
    TimedOut(Duration),
    /// The system gives no thread that would look at the clock.
    NoThread,
}

impl Unfinished {
    /// The outcome of a run of an engine.
    pub fn outcome(self, engine: &str) -> Outcome {
        match self {
            Unfinished::TimedOut(limit) => Outcome::timed_out(engine, limit),
            Unfinished::NoThread => Outcome::exhausted("the system gives no thread for `--timeout`"),
        }
    }
}

/// Does work that may take so long. Errors: it was not finished.
pub fn within<R>(limit: Duration, work: impl FnOnce() -> R) -> Result<R, Unfinished> {
    let token = CancellationToken::new();
    let _alarm = Alarm::set(limit, token.clone()).ok_or(Unfinished::NoThread)?;
    token.run(work).map_err(|_| Unfinished::TimedOut(limit))
}

/// Does work of a command, which may take so long in all. Errors: those of the work, and
/// [`hlo_system::exit::Exit::Trap`] if it was not finished.
pub fn command_within<T>(
    limit: Option<Duration>,
    what: &str,
    work: impl FnOnce() -> Result<T, Failure>,
) -> Result<T, Failure> {
    let Some(limit) = limit else { return work() };
    within(limit, work).unwrap_or_else(|unfinished| Err(unfinished.outcome(what).failure()))
}

/// The deadlines of all work, each with a number of its own.
#[derive(Default)]
struct Deadlines {
    pending: BTreeMap<(Instant, u64), CancellationToken>,
    numbers: u64,
    /// A thread looks after them.
    watched: bool,
}

struct Watchdog {
    deadlines: Mutex<Deadlines>,
    /// There is an earlier deadline.
    earlier: Condvar,
}

impl Watchdog {
    fn get() -> &'static Watchdog {
        static WATCHDOG: OnceLock<Watchdog> = OnceLock::new();
        WATCHDOG.get_or_init(|| Watchdog { deadlines: Mutex::default(), earlier: Condvar::new() })
    }

    fn lock(&self) -> MutexGuard<'_, Deadlines> {
        self.deadlines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Cancels what is late, for as long as the process lives.
    fn watch(&self) {
        let mut deadlines = self.lock();
        loop {
            let now = Instant::now();
            while let Some(entry) = deadlines.pending.first_entry()
                && entry.key().0 <= now
            {
                entry.remove().cancel();
            }
            let next = deadlines.pending.keys().next().map(|&(deadline, _)| deadline - now);
            deadlines = match next {
                Some(wait) => {
                    self.earlier.wait_timeout(deadlines, wait).unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.earlier.wait(deadlines).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }
}

/// A deadline that is pending as long as this lives.
struct Alarm(Option<(Instant, u64)>);

impl Alarm {
    /// `None`: there is no thread to look after it.
    fn set(limit: Duration, token: CancellationToken) -> Option<Alarm> {
        if limit.is_zero() {
            token.cancel();
        }
        let watchdog = Watchdog::get();
        let mut deadlines = watchdog.lock();
        if !deadlines.watched {
            let watch = || Watchdog::get().watch();
            std::thread::Builder::new().name("hlo-deadlines".into()).stack_size(1 << 18).spawn(watch).ok()?;
            deadlines.watched = true;
        }
        // A time that no clock reaches is no limit.
        let Some(deadline) = Instant::now().checked_add(limit) else { return Some(Alarm(None)) };
        deadlines.numbers += 1;
        let key = (deadline, deadlines.numbers);
        deadlines.pending.insert(key, token);
        if deadlines.pending.keys().next() == Some(&key) {
            watchdog.earlier.notify_one();
        }
        Some(Alarm(Some(key)))
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        if let Some(key) = self.0.take() {
            Watchdog::get().lock().pending.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use hlo_threads::cancel::poll;

    use super::*;

    /// Polls until it is cancelled.
    fn endless() -> ! {
        loop {
            poll();
            std::thread::yield_now();
        }
    }

    #[test]
    fn what_takes_longer_ends_and_what_does_not_is_left_alone() {
        let (short, long) = (Duration::from_millis(20), Duration::from_secs(3600));
        assert_eq!(within(long, || 7), Ok(7));
        assert_eq!(within(Duration::MAX, || 7), Ok(7));
        assert_eq!(within(short, || endless()), Err::<(), _>(Unfinished::TimedOut(short)));
        assert_eq!(within(Duration::ZERO, poll), Err(Unfinished::TimedOut(Duration::ZERO)));
        // The earliest deadline counts, whichever way they are nested.
        let inner = within(long, || within(short, || endless()));
        assert_eq!(inner, Ok(Err::<(), _>(Unfinished::TimedOut(short))));
        let outer = within(short, || within(long, || endless()));
        assert_eq!(outer, Err::<Result<(), _>, _>(Unfinished::TimedOut(short)));
        // Others are waited for beside.
        let sums: Vec<_> = std::thread::scope(|scope| {
            let each = |i| scope.spawn(move || within(short, || if i % 2 == 0 { i } else { endless() }));
            let threads: Vec<_> = (0..8).map(each).collect();
            threads.into_iter().map(|t| t.join().expect("no panic").ok()).collect()
        });
        assert_eq!(sums, [Some(0), None, Some(2), None, Some(4), None, Some(6), None]);
    }
}
