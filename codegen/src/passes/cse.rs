//! One instruction for several of a computation that do the same to the same operands: same opcode, shape with layout, operands and
//! attributes but for what says nothing about the value. What has an effect, or a state of its own, stays; so do constants whose values
//! follow from their names.

use std::hash::{Hash, Hasher};

use hlo::attrs::AttrKey;
use hlo::{ComputationId, InstrId, Instruction, Module, Opcode};
use rustc_hash::{FxHashMap, FxHasher};

use super::Fuel;
use super::edit::{Edit, each_outside_folds, has_effect};
use super::facts::is_elided;

pub(super) fn run(module: &mut Module, fuel: &mut Fuel) -> u64 {
    let mut known: FxHashMap<u64, Vec<InstrId>> = FxHashMap::default();
    let mut computation: Option<ComputationId> = None;
    each_outside_folds(module, fuel, |e| {
        if computation.replace(e.at().parent()) != Some(e.at().parent()) {
            known.clear();
        }
        merged(e, &mut known)
    })
}

fn merged(e: &Edit<'_>, known: &mut FxHashMap<u64, Vec<InstrId>>) -> Option<InstrId> {
    let (module, id) = (&*e.module, e.id());
    if e.at().opcode == Opcode::Parameter
        || is_elided(module, id)
        || has_effect(module, id)
        // States and promises are of the instruction itself.
        || e.at().opcode.flags().side_effect
    {
        return None;
    }
    let same = known.entry(key(e.at())).or_default();
    let found = same.iter().copied().find(|&other| !module.is_removed(other) && alike(module, id, other));
    if found.is_none() {
        same.push(id);
    }
    found
}

fn key(instr: &Instruction) -> u64 {
    let mut hasher = FxHasher::default();
    (instr.opcode, &instr.shape, instr.operands()).hash(&mut hasher);
    hasher.finish()
}

/// Attributes that say nothing about the value.
const NOTES: &[AttrKey] = &[AttrKey::Metadata, AttrKey::Origin, AttrKey::Statistics];

fn alike(module: &Module, a: InstrId, b: InstrId) -> bool {
    let (a, b) = (module.instr(a), module.instr(b));
    let attrs = |i: &Instruction| {
        let mut attrs = i.attrs.clone();
        for &key in NOTES {
            attrs.remove(key);
        }
        attrs
    };
    a.opcode == b.opcode && a.shape == b.shape && a.operands() == b.operands() && attrs(a) == attrs(b)
}
