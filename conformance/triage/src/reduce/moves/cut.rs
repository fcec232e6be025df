//! Cutting a program: behind the failure, before it, down to one output, and values in place of what computes
//! them.

use hlo::{ArrayLiteral, InstrId, Literal, Module, Opcode, Shape};
use rustc_hash::FxHashSet;

use super::Edit;
use crate::reduce::Candidate;
use crate::reduce::search::Context;

/// Whether a value can be an output: an array, or a tuple of arrays.
fn is_output(shape: &Shape) -> bool {
    shape.leaves().iter().all(|s| s.as_array().is_some())
}

/// Whether a value can be the result: not what another instruction has to end.
fn can_be_result(module: &Module, id: InstrId) -> bool {
    let started = [
        Opcode::AsyncStart,
        Opcode::AsyncUpdate,
        Opcode::CopyStart,
        Opcode::AllGatherStart,
        Opcode::AllReduceStart,
        Opcode::CollectivePermuteStart,
    ];
    is_output(&module.instr(id).shape) && !started.contains(&module.instr(id).opcode)
}

fn entry_order(module: &Module) -> Vec<InstrId> {
    module.instructions(module.entry()).collect()
}

/// Makes a value the result.
pub(super) fn set_root(c: &mut Candidate, root: InstrId) -> bool {
    let entry = c.module.entry();
    if !c.alive(root) || c.module.root(entry) == root || !can_be_result(&c.module, root) {
        return false;
    }
    c.module.set_root(entry, root);
    true
}

/// The first instructions of the program, from few to many; what they leave unused is the result.
pub(super) fn prefixes(context: &Context<'_>) -> Vec<Edit> {
    let module = &context.program.module;
    let n = entry_order(module).len();
    (1..n).map(|k| Box::new(move |c: &mut Candidate| prefix(c, k)) as Edit).collect()
}

fn prefix(c: &mut Candidate, k: usize) -> bool {
    let order = entry_order(&c.module);
    let (kept, cut) = order.split_at(k.min(order.len()));
    let cut: FxHashSet<InstrId> = cut.iter().copied().collect();
    let sinks: Vec<InstrId> = kept
        .iter()
        .copied()
        .filter(|&id| {
            let i = c.module.instr(id);
            i.opcode != Opcode::Parameter
                && can_be_result(&c.module, id)
                && c.module.users(id).iter().all(|u| cut.contains(&u.user))
        })
        .collect();
    let entry = c.module.entry();
    let Some(&last) = kept.last() else { return false };
    let root = match *sinks {
        [] => return false,
        [only] => only,
        _ => {
            let shape = Shape::tuple(sinks.iter().map(|&s| c.module.instr(s).shape.clone()));
            let name = c.module.unique_name("tuple");
            let new = hlo::NewInstruction::new(Opcode::Tuple, shape, &sinks).named(name);
            c.module.insert_after(entry, Some(last), new)
        }
    };
    c.module.set_root(entry, root);
    // What is behind must not stay for its side effects.
    remove_unless_needed(c, &order[k.min(order.len())..]);
    true
}

/// Removes instructions that nothing uses, from the last to the first.
fn remove_unless_needed(c: &mut Candidate, ids: &[InstrId]) {
    let root = c.module.root(c.module.entry());
    let ordering: FxHashSet<InstrId> = entry_order(&c.module)
        .iter()
        .flat_map(|&id| c.module.instr(id).control_predecessors.clone())
        .collect();
    for &id in ids.iter().rev() {
        let parameter = c.module.instr(id).opcode == Opcode::Parameter;
        if id != root && !parameter && c.module.users(id).is_empty() && !ordering.contains(&id) {
            c.module.remove(id);
        }
    }
}

/// The last instructions of the program, from few to many: what they use of the others comes as parameters.
pub(super) fn suffixes(context: &Context<'_>) -> Vec<Edit> {
    let order = entry_order(&context.program.module);
    let mut edits: Vec<Edit> = Vec::new();
    for k in (1..order.len()).rev() {
        let module = &context.program.module;
        let before: FxHashSet<InstrId> = order[..k].iter().copied().collect();
        // Only where something is cut: between parameters nothing is.
        if module.instr(order[k]).opcode == Opcode::Parameter || edits.len() > 4096 {
            continue;
        }
        let crossing: Vec<InstrId> = order[..k]
            .iter()
            .copied()
            .filter(|&id| {
                module.instr(id).opcode != Opcode::Parameter
                    && module.users(id).iter().any(|u| !before.contains(&u.user))
            })
            .collect();
        if crossing.is_empty() || crossing.len() > 256 {
            continue;
        }
        let values: Vec<_> =
            crossing.iter().filter_map(|&id| Some((id, context.recorded().on_devices(id)?))).collect();
        edits.push(Box::new(move |c| {
            let mut applied = false;
            for (id, value) in &values {
                applied |= put_parameter(c, *id, value.clone());
            }
            applied
        }));
    }
    edits
}

fn put_parameter(c: &mut Candidate, id: InstrId, value: Vec<hlo::ArrayLiteral>) -> bool {
    let fits = c.alive(id)
        && c.module.instr(id).parent() == c.module.entry()
        && c.module.instr(id).opcode != Opcode::Parameter
        && value.iter().all(|v| c.module.instr(id).shape.as_array().is_some_and(|a| a.same_dims(&v.shape())));
    if !fits {
        return false;
    }
    let Some(p) = c.add_parameter(value) else { return false };
    c.module.instr_mut(p).shape = c.module.instr(id).shape.clone();
    c.replace(id, p);
    true
}

/// Each value that something uses, as a parameter with the value that it has.
pub(super) fn recorded_parameters(context: &Context<'_>) -> Vec<Edit> {
    let module = &context.program.module;
    let mut edits: Vec<Edit> = Vec::new();
    for id in entry_order(module) {
        let i = module.instr(id);
        if matches!(i.opcode, Opcode::Parameter | Opcode::Constant | Opcode::Iota)
            || module.users(id).is_empty()
        {
            continue;
        }
        if let Some(value) = context.recorded().on_devices(id) {
            edits.push(Box::new(move |c| put_parameter(c, id, value.clone())));
        }
    }
    edits
}

/// The largest value that becomes a constant.
const MAX_CONSTANT_ELEMENTS: usize = 1024;

/// Each value of called computations, as a constant with the value that it has first, or, where it runs
/// several times, last.
pub(super) fn recorded_constants(context: &Context<'_>) -> Vec<Edit> {
    let module = &context.program.module;
    let mut edits: Vec<Edit> = Vec::new();
    let mut lasts: Vec<Edit> = Vec::new();
    for id in crate::reduce::program::all_instructions(module) {
        let i = module.instr(id);
        let small = context.recorded().len(id).is_some_and(|n| n <= MAX_CONSTANT_ELEMENTS);
        if !small
            || i.opcode == Opcode::Constant
            || module.users(id).is_empty() && module.root(i.parent()) != id
        {
            continue;
        }
        if i.parent() == module.entry() && module.root(i.parent()) == id {
            continue;
        }
        let constant = |value: ArrayLiteral| -> Edit {
            Box::new(move |c| {
                if !c.alive(id)
                    || !c.module.instr(id).shape.as_array().is_some_and(|a| a.same_dims(&value.shape()))
                {
                    return false;
                }
                let constant = c.add_constant(id, Literal::Array(value.clone()));
                c.replace(id, constant);
                true
            })
        };
        let (first, last) = (context.recorded().value(id), context.recorded().last(id));
        lasts.extend(last.filter(|l| first.as_ref() != Some(l)).map(constant));
        edits.extend(first.map(constant));
    }
    // Together the first values are tried, one by one the last ones too.
    edits.append(&mut lasts);
    edits
}

/// Each element of the result, dropped.
pub(super) fn outputs(context: &Context<'_>) -> Vec<Edit> {
    let module = &context.program.module;
    let root = module.root(module.entry());
    if module.instr(root).opcode != Opcode::Tuple {
        return Vec::new();
    }
    let mut dropped: Vec<InstrId> = module.instr(root).operands().to_vec();
    dropped.sort();
    dropped.dedup();
    dropped
        .into_iter()
        .map(|operand| Box::new(move |c: &mut Candidate| drop_output(c, operand)) as Edit)
        .collect()
}

fn drop_output(c: &mut Candidate, operand: InstrId) -> bool {
    let entry = c.module.entry();
    let root = c.module.root(entry);
    if c.module.instr(root).opcode != Opcode::Tuple {
        return false;
    }
    let left: Vec<InstrId> =
        c.module.instr(root).operands().iter().copied().filter(|&o| o != operand).collect();
    if left.is_empty() || left.len() == c.module.instr(root).operands().len() {
        return false;
    }
    let new = c.add_tuple(root, &left);
    c.module.set_root(entry, new);
    true
}

/// One element as the result.
pub(super) fn single_output(context: &Context<'_>) -> Vec<Edit> {
    let module = &context.program.module;
    let root = module.root(module.entry());
    let Some(elements) = module.instr(root).shape.as_tuple() else { return Vec::new() };
    (0..elements.len())
        .map(|k| {
            Box::new(move |c: &mut Candidate| {
                let entry = c.module.entry();
                let root = c.module.root(entry);
                let Some(shape) = c.module.instr(root).shape.as_tuple().and_then(|t| t.get(k)).cloned()
                else {
                    return false;
                };
                if c.module.instr(root).opcode == Opcode::Tuple {
                    let operand = c.module.instr(root).operands()[k];
                    return set_root(c, operand);
                }
                let attrs = hlo::Attrs::new().with(hlo::AttrKey::Index, hlo::AttrValue::Int(k as i64));
                let name = c.module.unique_name("get-tuple-element");
                let new = hlo::NewInstruction {
                    attrs,
                    ..hlo::NewInstruction::new(Opcode::GetTupleElement, shape, &[root])
                };
                let new = c.module.insert_after(entry, Some(root), new.named(name));
                c.module.set_root(entry, new);
                true
            }) as Edit
        })
        .collect()
}

/// Inner values as the result: all of a small program, the operands of the root of a large one.
pub(super) fn roots(context: &Context<'_>) -> Vec<Edit> {
    let module = &context.program.module;
    let root = module.root(module.entry());
    let order = entry_order(module);
    let ids: Vec<InstrId> = if order.len() <= 400 {
        order.into_iter().filter(|&id| module.instr(id).opcode != Opcode::Parameter).collect()
    } else {
        module.instr(root).operands().to_vec()
    };
    let parameters = module.computation(module.entry()).parameters().iter().flatten().copied();
    ids.into_iter()
        .chain(parameters)
        .map(|id| Box::new(move |c: &mut Candidate| set_root(c, id)) as Edit)
        .collect()
}
