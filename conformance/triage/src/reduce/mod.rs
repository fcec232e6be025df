//! Reduction: the smallest program with the same failure.
//!
//! A *candidate* is a program with its inputs; an [`Oracle`] says how it fails, if it does. Starting from a
//! failing program, edits that make it smaller by [`Metric`] are tried, and kept where the failure stays the
//! same ([`Signature`]). Edits come from moves (`moves/`, one file a family), ordered from those that can
//! take away most to those that tidy up.
//!
//! **Invariants:**
//! - what an oracle sees verifies, and so does what is returned; every program that is kept failed, and
//!   failed again when asked twice;
//! - each step makes the metric smaller, so reduction ends; it ends where no move applies any more, so that
//!   reducing the result again changes nothing;
//! - which candidate is kept depends on the order of candidates alone, never on threads or time (but for
//!   `max_time`).

mod metric;
mod moves;
mod oracle;
pub mod program;
mod record;
mod search;
mod store;
#[cfg(test)]
mod tests;
mod values;

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hlo::{ArrayLiteral, Module, Opcode};
use serde::{Deserialize, Serialize};

pub use metric::Metric;
pub use oracle::{Command, Differential, Match};
pub use program::text;
pub use search::{Report, Step, reduce};

/// A program and what it is run on.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// A program that verifies.
    pub module: Module,
    /// For each device the arrays of its parameters, tuples flattened, tokens left out: `arg0, arg1, ...`.
    pub inputs: Vec<Vec<ArrayLiteral>>,
}

/// The kind of failure.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Results that rounding does not explain.
    Wrong,
    /// The engine's process died.
    Crash,
    /// The engine trapped where the reference did not, or the other way round.
    Trap,
    /// The engine did not end in time.
    Timeout,
    /// The engine refuses the program.
    Unsupported,
    /// A command ended with a code other than 0.
    Command,
}

impl Kind {
    /// As people read it.
    pub fn describe(self) -> &'static str {
        match self {
            Kind::Wrong => "wrong result",
            Kind::Crash => "crash",
            Kind::Trap => "trap",
            Kind::Timeout => "timeout",
            Kind::Unsupported => "unsupported",
            Kind::Command => "failing command",
        }
    }
}

/// The signature of a failure.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Signature {
    /// The kind of failure.
    pub kind: Kind,
    /// The opcode to blame, where that is known.
    pub opcode: Option<Opcode>,
    /// A code of a diagnostic, an exit code, matched text.
    pub code: Option<String>,
    /// The engine that fails, and the other one.
    pub engine: String,
}

impl std::fmt::Display for Signature {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.kind.describe())?;
        if let Some(opcode) = self.opcode {
            write!(f, ", {opcode}")?;
        }
        if let Some(code) = &self.code {
            write!(f, ", {code}")?;
        }
        if self.engine.is_empty() { Ok(()) } else { write!(f, ", {}", self.engine) }
    }
}

/// Says how a program fails.
pub trait Oracle: Sync {
    /// The failure of a candidate that verifies; `None` if it does not fail, or if nothing can be said about
    /// it (the reference cannot run it within its limits).
    fn check(&self, candidate: &Candidate) -> Option<Signature>;

    /// The same where a run need not execute more than `fuel` instructions: one that does has a loop that
    /// edits have made endless, and does not count as failing.
    fn check_within(&self, candidate: &Candidate, fuel: u64) -> Option<Signature> {
        let _ = fuel;
        self.check(candidate)
    }

    /// Why nothing can be said any more of any candidate: the environment lacks something.
    fn trouble(&self) -> Option<String> {
        None
    }
}

/// The first thing that an oracle lacked.
#[derive(Clone, Debug, Default)]
pub struct Trouble(Arc<OnceLock<String>>);

impl Trouble {
    /// A result without its error, which is remembered.
    pub fn of<T>(&self, result: Result<T, String>) -> Option<T> {
        result.map_err(|what| self.0.get_or_init(|| what).len()).ok()
    }

    /// The resource that was lacking.
    pub fn get(&self) -> Option<String> {
        self.0.get().cloned()
    }
}

impl<F: Fn(&Candidate) -> Option<Signature> + Sync> Oracle for F {
    fn check(&self, candidate: &Candidate) -> Option<Signature> {
        self(candidate)
    }
}

/// The limits of a reduction.
#[derive(Clone, Debug)]
pub struct Options {
    /// The number of candidates that are tried at once.
    pub jobs: usize,
    /// Stop after this time.
    pub max_time: Option<Duration>,
    /// The maximum of candidates.
    pub max_candidates: Option<u64>,
    /// The number of runs of the oracle on the original.
    pub repeat: u32,
    /// The maximum of instructions that a run of the original by the reference executes.
    pub fuel: u64,
    /// Where the best program and what was tried are kept, so that a later run goes on from there.
    pub store: Option<PathBuf>,
    /// What the failure is looked for with; a store made with something else is not gone on with.
    pub identity: String,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            jobs: 1,
            max_time: None,
            max_candidates: None,
            repeat: 3,
            fuel: 20_000_000,
            store: None,
            identity: String::new(),
        }
    }
}

/// Why there was nothing to reduce.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotReduced {
    /// The program does not fail.
    #[error("the program does not fail: nothing to reduce")]
    NoFailure,
    /// The program does not verify.
    #[error("the program does not verify")]
    Invalid,
    /// The store cannot be written.
    #[error("{0}")]
    Store(String),
    /// The environment lacks something, so that nothing can be said of candidates.
    #[error("{0}")]
    Environment(String),
}
