//! What a run executes.

use std::sync::{Mutex, MutexGuard, PoisonError};

use hlo::{ComputationId, InstrId, Module, Opcode};
use hlo_interp::Device;
use hlo_interp::Value;
use hlo_interp::observe::{Flow, Observer, Site};
use rustc_hash::FxHashSet;

use hlo_generate::legal::{Key, key_of};

/// Collects pairs of opcode and element type: of instructions that had a result with elements (or a token),
/// and of those in computations that were applied to at least one element.
#[derive(Debug, Default)]
pub struct Executed {
    pairs: Mutex<FxHashSet<(Opcode, Key)>>,
}

impl Executed {
    /// The pairs so far.
    pub fn take(&self) -> FxHashSet<(Opcode, Key)> {
        std::mem::take(&mut self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, FxHashSet<(Opcode, Key)>> {
        // A set of pairs is whole whatever thread panicked.
        self.pairs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn has_elements(value: &Value) -> bool {
    match value {
        Value::Array(a) => !a.is_empty(),
        Value::Tuple(t) => t.iter().any(has_elements),
        Value::Token | Value::Pending(_) => true,
    }
}

impl Observer for Executed {
    fn only_looks_on(&self) -> bool {
        true
    }

    fn leave(&self, site: &Site<'_>, result: &Value) -> Flow {
        if has_elements(result) {
            self.lock().insert((site.instr().opcode, key_of(site.module, site.instr())));
        }
        Flow::Continue
    }

    fn applied(&self, module: &Module, _at: InstrId, computation: ComputationId, _on: Device, _n: u64) {
        // Where it is no bytecode, its instructions are told one by one as well.
        let pairs = module.instructions(computation).map(|i| module.instr(i));
        self.lock().extend(pairs.map(|i| (i.opcode, key_of(module, i))));
    }
}
