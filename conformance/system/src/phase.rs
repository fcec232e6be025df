//! What a comparison is doing, and how long each part of it takes.
//!
//! **Invariant:** at any moment one phase counts, the innermost: the times of all phases add up to the time
//! spent in them.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A part of the work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Reading and verifying the program.
    Read,
    /// Making or reading inputs.
    Inputs,
    /// The engine compiles.
    Compile,
    /// The reference runs.
    Reference,
    /// The engine runs.
    Run,
    /// The reference runs with bounds, by which differing results are judged.
    Bounds,
    /// The engine is replayed instruction by instruction, or run in pieces.
    Replay,
    /// Each instruction is run as a program of its own.
    Alone,
    /// The program is run after each of some passes.
    Passes,
}

impl Phase {
    /// All of them, in the order of a run.
    pub const ALL: [Phase; 9] = [
        Phase::Read,
        Phase::Inputs,
        Phase::Compile,
        Phase::Reference,
        Phase::Run,
        Phase::Bounds,
        Phase::Replay,
        Phase::Alone,
        Phase::Passes,
    ];

    /// For lists of times.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Read => "read",
            Phase::Inputs => "inputs",
            Phase::Compile => "compile",
            Phase::Reference => "reference",
            Phase::Run => "run",
            Phase::Bounds => "bounds",
            Phase::Replay => "replay",
            Phase::Alone => "alone",
            Phase::Passes => "passes",
        }
    }

    /// For people who wait.
    pub fn describe(self) -> &'static str {
        match self {
            Phase::Read => "reading the program",
            Phase::Inputs => "making inputs",
            Phase::Compile => "compiling",
            Phase::Reference => "running the reference",
            Phase::Run => "running",
            Phase::Bounds => "judging: the reference runs again, with bounds",
            Phase::Replay => "judging: instruction by instruction",
            Phase::Alone => "running instructions alone",
            Phase::Passes => "running the program after each pass",
        }
    }

    fn index(self) -> usize {
        self as usize
    }
}

/// The phases of a command.
#[derive(Debug)]
pub struct Phases {
    begun: Instant,
    state: Mutex<State>,
    /// The cost of the program, for messages while it runs.
    cost: Mutex<Option<String>>,
}

impl Default for Phases {
    fn default() -> Self {
        Self { begun: Instant::now(), state: Mutex::default(), cost: Mutex::default() }
    }
}

#[derive(Debug, Default)]
struct State {
    /// The phases entered and not left, innermost last, and since when the innermost counts.
    open: Vec<Phase>,
    since: Option<Instant>,
    spent: [Duration; Phase::ALL.len()],
}

impl State {
    /// Counts the time until now for the innermost phase.
    fn count(&mut self) {
        let now = Instant::now();
        if let (Some(&phase), Some(since)) = (self.open.last(), self.since) {
            self.spent[phase.index()] += now - since;
        }
        self.since = Some(now);
    }
}

impl Phases {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something in a phase.
    pub fn during<T>(&self, phase: Phase, work: impl FnOnce() -> T) -> T {
        /// Leaves the phase, by a panic too.
        struct Leave<'a>(&'a Phases);
        impl Drop for Leave<'_> {
            fn drop(&mut self) {
                let mut state = self.0.lock();
                state.count();
                state.open.pop();
            }
        }
        {
            let mut state = self.lock();
            state.count();
            state.open.push(phase);
        }
        let _leave = Leave(self);
        work()
    }

    /// The innermost phase, and how long it has lasted in all.
    pub fn current(&self) -> Option<(Phase, Duration)> {
        let mut state = self.lock();
        state.count();
        state.open.last().map(|&phase| (phase, state.spent[phase.index()]))
    }

    /// Says what the program costs.
    pub fn estimate(&self, cost: String) {
        *self.cost.lock().unwrap_or_else(PoisonError::into_inner) = Some(cost);
    }

    /// Its cost, as far as that is known; only once.
    pub fn take_estimate(&self) -> Option<String> {
        self.cost.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The time of a phase so far.
    pub fn spent(&self, phase: Phase) -> Duration {
        self.lock().spent[phase.index()]
    }

    /// The time since this was made.
    pub fn total(&self) -> Duration {
        self.begun.elapsed()
    }

    /// The phases that took any time, with it.
    pub fn all(&self) -> Vec<(Phase, Duration)> {
        let state = self.lock();
        let spent = |p: Phase| state.spent[p.index()];
        Phase::ALL.into_iter().map(|p| (p, spent(p))).filter(|(_, t)| !t.is_zero()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::sleep;

    #[test]
    fn the_innermost_phase_counts() {
        let (phases, ms) = (Phases::default(), Duration::from_millis);
        let start = Instant::now();
        phases.during(Phase::Run, || {
            sleep(ms(20));
            phases.during(Phase::Compile, || {
                sleep(ms(30));
                assert_eq!(phases.current().map(|(p, _)| p), Some(Phase::Compile));
            });
            assert_eq!(phases.current().map(|(p, _)| p), Some(Phase::Run));
        });
        let total = start.elapsed();
        assert_eq!(phases.current(), None);
        assert!(phases.spent(Phase::Compile) >= ms(30) && phases.spent(Phase::Run) >= ms(20));
        let all: Duration = phases.all().iter().map(|(_, t)| *t).sum();
        assert!(all <= total, "{all:?} of {total:?}");
        assert_eq!(phases.all().iter().map(|(p, _)| p.name()).collect::<Vec<_>>(), ["compile", "run"]);
    }
}
