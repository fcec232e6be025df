//! Custom calls: what the interpreter knows of them, and how a program that embeds it adds its own.
//!
//! A target is looked up among the caller's ([`Registry`], in [`Options`](crate::Options)) and then among those built in:
//! `TopK`, annotations that change no value (`Sharding` and the like), changes between whole arrays and shards, and library calls. Any other target is refused
//! by name.

use std::fmt;
use std::sync::Arc;

use hlo::{Instruction, Module};
use rustc_hash::FxHashMap;

use crate::error::{ErrorKind, REFUSAL, Result, RunError};
use crate::ops::shards;
use crate::value::Value;

pub use crate::device::sdy::MANUAL_AXES;
pub use crate::device::tiling::Tiling;
pub use crate::ops::shards::Direction;

/// An implementation of one target, or of several.
pub trait CustomCall: Send + Sync {
    /// Computes the result of a call. It must be of the shape that the call says, and depend on nothing but the call and
    /// the operands. Operands that do not fit are for [`Call::unsupported`] or [`Call::trap`] to report.
    fn run(&self, call: &Call<'_>, operands: Vec<Value>) -> Result<Value>;
}

impl<F> CustomCall for F
where
    F: Fn(&Call<'_>, Vec<Value>) -> Result<Value> + Send + Sync,
{
    fn run(&self, call: &Call<'_>, operands: Vec<Value>) -> Result<Value> {
        self(call, operands)
    }
}

/// A call: the instruction, in its module.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// Target, shapes, attributes.
    pub instruction: &'a Instruction,
    /// Where called computations are.
    pub module: &'a Module,
}

/// Whether the calls of a target exchange values with other devices, as collectives do: those that join shards.
pub fn exchanges(target: &str) -> bool {
    shards::direction(target) == Some(Direction::ToWhole)
}

/// What a call to a target that is built in computes.
#[derive(Debug)]
pub enum Meaning {
    /// Its operands.
    Same,
    /// What this HLO computes, whose parameters are the operands.
    Expansion(Box<Module>),
    /// The largest or smallest elements of each line, by its computation, and their indices.
    TopK,
    /// Something that one right answer exists for, and that is no HLO.
    Exact,
    /// Something that implementations may differ in, or nothing that is known.
    Open,
}

impl Call<'_> {
    /// What the call computes, unless the caller has an implementation of its target.
    pub fn meaning(&self) -> Meaning {
        crate::ops::meaning(self)
    }

    /// Whether the target is one of those built in, and takes a call of this form: what is known of that without values. Errors: what a run would refuse.
    pub fn check(&self) -> Result<()> {
        crate::ops::check_custom_call(self)
    }

    /// How the call cuts each of its operands into shards, or joins them, and in which direction; `None` if its target is not one of those that do.
    /// Errors: why that cannot be said.
    pub fn shards(&self) -> Option<Result<(Direction, Vec<Option<Tiling>>)>> {
        let direction = shards::direction(self.target())?;
        let tilings = shards::tilings(self, direction).map_err(|why| self.unsupported(&why));
        Some(tilings.map(|tilings| (direction, tilings)))
    }

    /// `custom_call_target`.
    pub fn target(&self) -> &str {
        self.instruction.attrs.str(hlo::AttrKey::CustomCallTarget).unwrap_or_default()
    }

    /// The text of `backend_config`, empty if there is none.
    pub fn backend_config(&self) -> &str {
        self.instruction.attrs.backend_config().map_or("", |config| config.text())
    }

    /// The error that this form of the call is not supported; `why` goes on from the name of the target.
    pub fn unsupported(&self, why: &str) -> RunError {
        let code = hlo::diag::codes::UNSUPPORTED_CUSTOM_CALL;
        let message = format!("{REFUSAL}a custom call to {:?} {why}", self.target());
        RunError::at(self.instruction, ErrorKind::Unsupported, code, message)
    }

    /// The error that the call went wrong.
    pub fn trap(&self, message: impl fmt::Display) -> RunError {
        let code = hlo::diag::codes::CUSTOM_CALL_FAILED;
        let message = format!("custom call to {:?}: {message}", self.target());
        RunError::at(self.instruction, ErrorKind::Trap, code, message)
    }
}

/// Implementations by target.
#[derive(Clone, Default)]
pub struct Registry(FxHashMap<Box<str>, Arc<dyn CustomCall>>);

impl Registry {
    /// Adds an implementation, or replaces one, built in or not.
    pub fn insert(&mut self, target: &str, implementation: impl CustomCall + 'static) {
        self.0.insert(target.into(), Arc::new(implementation));
    }

    /// The implementation of a target.
    pub fn get(&self, target: &str) -> Option<&dyn CustomCall> {
        self.0.get(target).map(|call| &**call)
    }
}

/// The targets, sorted.
impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut targets: Vec<&str> = self.0.keys().map(|target| &**target).collect();
        targets.sort_unstable();
        f.debug_set().entries(targets).finish()
    }
}
