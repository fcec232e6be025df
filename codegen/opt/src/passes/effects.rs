//! Side effects of instructions.

use std::cell::RefCell;

use hlo::attrs::AttrKey;
use hlo::{ComputationId, InstrId, Module, Opcode};
use hlo_interp::custom_call::exchanges;
use rustc_hash::FxHashMap;

/// Side effects, memoized by computation, so that callees are not searched again for each caller. It stays
/// valid while no called computation gains an effect: new ones are searched when first asked for, and one
/// that has lost an effect may still count as having it.
#[derive(Debug)]
pub struct Effects {
    /// The kinds of effects.
    own: fn(&Module, InstrId) -> bool,
    known: RefCell<FxHashMap<ComputationId, bool>>,
}

impl Default for Effects {
    fn default() -> Self {
        Self { own, known: RefCell::default() }
    }
}

/// Whether an instruction has an effect of its own.
fn own(module: &Module, id: InstrId) -> bool {
    let flags = module.instr(id).opcode.flags();
    flags.collective || flags.side_effect && !is_pure_call(module, id)
}

/// Whether it is a custom call that has no side effect.
pub fn is_pure_call(module: &Module, id: InstrId) -> bool {
    let instr = module.instr(id);
    let target = instr.attrs.str(AttrKey::CustomCallTarget).unwrap_or_default();
    instr.opcode == Opcode::CustomCall
        && !instr.attrs.bool(AttrKey::CustomCallHasSideEffect)
        && !exchanges(target)
}

/// Whether it has one other than to draw random numbers, whose state follows the ordinals that copies keep.
fn own_beyond_drawing(module: &Module, id: InstrId) -> bool {
    own(module, id) && !matches!(module.instr(id).opcode, Opcode::Rng | Opcode::RngGetAndUpdateState)
}

impl Effects {
    /// Effects that copies of an instruction would have twice.
    pub fn beyond_drawing() -> Self {
        Self { own: own_beyond_drawing, known: RefCell::default() }
    }

    /// Whether an instruction, or something that it calls, has a side effect. Random numbers are given by
    /// counters of the instruction itself, so that `rng` has an effect on itself alone, but it counts.
    /// Asynchronous pairs stay together.
    pub fn has(&self, module: &Module, id: InstrId) -> bool {
        (self.own)(module, id)
            || module.instr(id).attrs.called_computations().into_iter().any(|c| self.within(module, c))
    }

    /// Whether an unused instruction may be removed: it has no effect of its own and calls nothing with one.
    pub fn removable(&self, module: &Module, id: InstrId) -> bool {
        module.instr(id).opcode != Opcode::Parameter && !self.has(module, id)
    }

    /// Whether something in a computation has an effect.
    fn within(&self, module: &Module, computation: ComputationId) -> bool {
        let mut known = self.known.borrow_mut();
        let mut pending = vec![computation];
        // Callees first: calls form no cycle.
        while let Some(&c) = pending.last() {
            if known.contains_key(&c) {
                pending.pop();
                continue;
            }
            let (mut effect, waiting) = (false, pending.len());
            for id in module.instructions(c) {
                effect |= (self.own)(module, id);
                for called in module.instr(id).attrs.called_computations() {
                    match known.get(&called) {
                        Some(has) => effect |= has,
                        None => pending.push(called),
                    }
                }
                if effect {
                    break;
                }
            }
            if effect || pending.len() == waiting {
                pending.truncate(waiting - 1);
                known.insert(c, effect);
            }
        }
        known[&computation]
    }
}
