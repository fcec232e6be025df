//! An instruction replaced by one of its operands, or by another value that is there already.

use hlo::attrs::{AttrKey, AttrValue};
use hlo::{Attrs, InstrId, Module, Opcode, Shape};

use super::Edit;
use crate::reduce::Candidate;
use crate::reduce::program::all_instructions;
use crate::reduce::search::Context;

/// Whether what an instruction computes from is its operand's operands: it takes something out of a tuple, or
/// ends what another one has started.
fn through(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::GetTupleElement
            | Opcode::CopyDone
            | Opcode::AsyncDone
            | Opcode::AllGatherDone
            | Opcode::AllReduceDone
            | Opcode::CollectivePermuteDone
    )
}

/// The values that an instruction computes from, directly and through tuples.
fn sources(module: &Module, id: InstrId) -> Vec<InstrId> {
    let i = module.instr(id);
    let mut all: Vec<InstrId> = Vec::new();
    for &operand in i.operands() {
        all.push(operand);
        let o = module.instr(operand);
        match o.opcode {
            Opcode::Tuple => all.extend(o.operands()),
            _ if through(i.opcode) => {
                for &inner in o.operands() {
                    all.push(inner);
                    if module.instr(inner).opcode == Opcode::Tuple {
                        all.extend(module.instr(inner).operands());
                    }
                }
            }
            _ => {}
        }
    }
    let mut seen = rustc_hash::FxHashSet::default();
    all.retain(|o| seen.insert(*o));
    all
}

fn replaceable(module: &Module, id: InstrId) -> bool {
    let i = module.instr(id);
    let used = !module.users(id).is_empty() || module.root(i.parent()) == id;
    used && !matches!(i.opcode, Opcode::Parameter | Opcode::Constant | Opcode::Tuple)
}

fn same(a: &Shape, b: &Shape) -> bool {
    a.compatible(b) && a.leaves().iter().all(|s| s.as_array().is_some())
}

/// Puts `new` in place of `old`, which may come before it only in the same computation.
fn put(c: &mut Candidate, old: InstrId, new: InstrId) -> bool {
    let fits = c.alive(old)
        && c.alive(new)
        && old != new
        && c.module.instr(old).parent() == c.module.instr(new).parent()
        && same(&c.module.instr(old).shape, &c.module.instr(new).shape)
        && replaceable(&c.module, old);
    if fits {
        c.replace(old, new);
    }
    fits
}

/// Each instruction, by the first of its operands that has its shape.
pub(super) fn operands(context: &Context<'_>) -> Vec<Edit> {
    let module = &context.program.module;
    let mut edits: Vec<Edit> = Vec::new();
    for id in all_instructions(module).filter(|&id| replaceable(module, id)) {
        let shape = &module.instr(id).shape;
        if let Some(new) = sources(module, id).into_iter().find(|&o| same(shape, &module.instr(o).shape)) {
            edits.push(Box::new(move |c| put(c, id, new)));
        }
    }
    edits
}

/// Each instruction, by any operand, one that is first made to fit if need be, and by any parameter or
/// constant of its shape.
pub(super) fn anything(context: &Context<'_>) -> Vec<Edit> {
    let module = &context.program.module;
    let mut edits: Vec<Edit> = Vec::new();
    for id in all_instructions(module).filter(|&id| replaceable(module, id)) {
        let i = module.instr(id);
        for new in sources(module, id) {
            if same(&i.shape, &module.instr(new).shape) {
                edits.push(Box::new(move |c| put(c, id, new)));
            }
        }
        for other in module.instructions(i.parent()).take_while(|&o| o != id) {
            let o = module.instr(other);
            if matches!(o.opcode, Opcode::Parameter | Opcode::Constant) && same(&i.shape, &o.shape) {
                edits.push(Box::new(move |c| put(c, id, other)));
            }
        }
        for new in sources(module, id) {
            edits.push(Box::new(move |c| put_fitted(c, id, new)));
            edits.push(Box::new(move |c| super::dims::put_resized(c, id, new)));
        }
    }
    edits
}

/// Puts `new`, converted, reshaped or broadcast, in place of `old`.
fn put_fitted(c: &mut Candidate, old: InstrId, new: InstrId) -> bool {
    if !c.alive(old) || !c.alive(new) || c.module.instr(old).parent() != c.module.instr(new).parent() {
        return false;
    }
    let (o, n) = (c.module.instr(old), c.module.instr(new));
    let (Some(to), Some(from)) = (o.shape.as_array(), n.shape.as_array()) else { return false };
    let is_already = |opcode| o.opcode == opcode && o.operands() == [new];
    let shape = o.shape.without_layout();
    let dims = |v: Vec<i64>| Attrs::new().with(AttrKey::Dimensions, AttrValue::Ints(v.into()));
    let (opcode, attrs) = if to.element_type != from.element_type {
        if to.dims != from.dims {
            return false;
        }
        (Opcode::Convert, Attrs::new())
    } else if to.checked_elements() == from.checked_elements() {
        (Opcode::Reshape, Attrs::new())
    } else if from.rank() == 0 {
        (Opcode::Broadcast, dims(Vec::new()))
    } else {
        return false;
    };
    if is_already(opcode) || o.opcode == opcode {
        return false;
    }
    let fitted = c.add_before(old, opcode, shape, &[new], attrs);
    c.replace(old, fitted);
    true
}
