//! Common subexpression elimination, within computations: instructions with equal opcode, shape and layout,
//! operands and attributes (except those that say nothing about the value); called computations are compared
//! by structure (not those of loops, each of which is called once). What has an effect, or a state of its
//! own, stays; so do constants whose values follow from their names.

use std::hash::{Hash, Hasher};

use hlo::attrs::{AttrKey, AttrValue, Attrs};
use hlo::{ComputationId, ConstantValue, InstrId, Instruction, Module, Opcode, with_buffer};
use rustc_hash::{FxHashMap, FxHasher};

use super::PassCx;
use super::deduplicate::same_but_who_is_called;
use super::edit::{Edit, each_outside_folds};
use super::facts::is_elided;

pub(super) fn run(module: &mut Module, cx: &mut PassCx<'_>) -> u64 {
    let mut known: FxHashMap<u64, Vec<InstrId>> = FxHashMap::default();
    let mut computation: Option<ComputationId> = None;
    each_outside_folds(module, cx.fuel, |e| {
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
        || e.has_effect()
        // Custom calls without a side effect are functions of their operands; one without operands allocates.
        || e.at().opcode == Opcode::CustomCall && e.at().operands().is_empty()
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

/// A hash of what [`alike`] compares. It includes the attributes that distinguish many instructions on the
/// same operands: elements of a large tuple, slices of an array, constants.
fn key(instr: &Instruction) -> u64 {
    let mut hasher = FxHasher::default();
    (instr.opcode, &instr.shape, instr.operands()).hash(&mut hasher);
    for (key, value) in instr.attrs.iter().filter(|(key, _)| !NOTES.contains(key)) {
        key.hash(&mut hasher);
        if let AttrValue::Int(i) = value {
            i.hash(&mut hasher);
        }
        if let AttrValue::Ints(ints) = value {
            ints.hash(&mut hasher);
        }
        if let AttrValue::Slices(slices) = value {
            slices.hash(&mut hasher);
        }
    }
    if let Some(ConstantValue::Given(literal)) = instr.attrs.constant_value()
        && let Some(array) = literal.as_array()
    {
        let some = |i: usize| with_buffer!(&*array.buffer, v => v.get(i).map(|x| hlo::Bits::bits(*x)));
        [some(0), some(1), some(array.buffer.len() / 2)].hash(&mut hasher);
    }
    hasher.finish()
}

/// Attributes that say nothing about the value.
const NOTES: &[AttrKey] = &[AttrKey::Metadata, AttrKey::Origin, AttrKey::Statistics];

fn alike(module: &Module, a: InstrId, b: InstrId) -> bool {
    let (a, b) = (module.instr(a), module.instr(b));
    a.opcode == b.opcode
        && a.shape == b.shape
        && a.operands() == b.operands()
        && same_but_who_is_called(module, &a.attrs, &b.attrs)
}

/// Whether attributes are equal except for [`NOTES`].
pub fn same_attributes(a: &Attrs, b: &Attrs) -> bool {
    let said = |attrs: &Attrs| attrs.iter().filter(|(key, _)| !NOTES.contains(key)).count();
    said(a) == said(b)
        && a.iter().filter(|(key, _)| !NOTES.contains(key)).all(|(key, value)| b.get(key) == Some(value))
}
