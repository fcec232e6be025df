//! Calls, fusions and maps replaced by what they call; conditionals by one branch.

use hlo::attrs::{AttrKey, AttrValue};
use hlo::{Attrs, ComputationId, InstrId, NewInstruction, Opcode, Shape};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::Edit;
use crate::reduce::Candidate;
use crate::reduce::program::all_instructions;
use crate::reduce::search::Context;

/// Copies the instructions of a computation before `anchor`, with these values for its parameters. Returns
/// its result there.
pub(super) fn inlined(
    c: &mut Candidate,
    callee: ComputationId,
    arguments: &[InstrId],
    anchor: InstrId,
) -> Option<InstrId> {
    let mut map: FxHashMap<InstrId, InstrId> = FxHashMap::default();
    let ids: Vec<InstrId> = c.module.instructions(callee).collect();
    for id in ids {
        let i = c.module.instr(id);
        if i.opcode == Opcode::Parameter {
            let number = usize::try_from(i.parameter_number()?).ok()?;
            map.insert(id, *arguments.get(number)?);
            continue;
        }
        let operands: Option<SmallVec<[InstrId; 2]>> =
            i.operands().iter().map(|o| map.get(o).copied()).collect();
        let (opcode, shape, attrs, span, operands) =
            (i.opcode, i.shape.clone(), i.attrs.clone(), i.span, operands?);
        let before = i.control_predecessors.iter().filter_map(|p| map.get(p).copied()).collect();
        let name = c.module.unique_name(opcode.name());
        let copy =
            c.module.insert_before(anchor, NewInstruction { opcode, shape, name, operands, attrs, span });
        c.module.instr_mut(copy).control_predecessors = before;
        map.insert(id, copy);
    }
    map.get(&c.module.root(callee)).copied()
}

/// A copy of a computation, for one caller to change.
pub(super) fn copied(
    c: &mut Candidate,
    callee: ComputationId,
) -> Option<(ComputationId, FxHashMap<InstrId, InstrId>)> {
    let name = c.module.computation(callee).name.clone();
    let name = c.module.unique_computation_name(&name);
    let copy = c.module.add_computation(name, hlo::Span::NONE);
    let mut map: FxHashMap<InstrId, InstrId> = FxHashMap::default();
    let ids: Vec<InstrId> = c.module.instructions(callee).collect();
    for id in ids {
        let i = c.module.instr(id);
        let operands: Option<SmallVec<[InstrId; 2]>> =
            i.operands().iter().map(|o| map.get(o).copied()).collect();
        let new = NewInstruction {
            opcode: i.opcode,
            shape: i.shape.clone(),
            name: i.name.clone(),
            operands: operands?,
            attrs: i.attrs.clone(),
            span: i.span,
        };
        map.insert(id, c.module.append(copy, new));
    }
    let root = *map.get(&c.module.root(callee))?;
    c.module.set_root(copy, root);
    Some((copy, map))
}

/// Each call, fusion and map by its computation's instructions.
pub(super) fn inline(context: &Context<'_>) -> Vec<Edit> {
    let module = &context.program.module;
    let mut edits: Vec<Edit> = Vec::new();
    for id in all_instructions(module) {
        match module.instr(id).opcode {
            Opcode::Call | Opcode::Fusion => edits.push(Box::new(move |c| inline_call(c, id))),
            Opcode::AsyncDone => edits.push(Box::new(move |c| inline_async(c, id))),
            Opcode::Map => edits.push(Box::new(move |c| inline_map(c, id))),
            _ => {}
        }
    }
    edits
}

fn inline_call(c: &mut Candidate, id: InstrId) -> bool {
    if !c.alive(id) {
        return false;
    }
    let i = c.module.instr(id);
    let Some(&callee) = i.attrs.called_computations().first() else { return false };
    let arguments = i.operands().to_vec();
    let Some(result) = inlined(c, callee, &arguments, id) else { return false };
    c.replace(id, result);
    true
}

/// Replaces an async-done by what was started.
fn inline_async(c: &mut Candidate, id: InstrId) -> bool {
    if !c.alive(id) || c.module.instr(id).opcode != Opcode::AsyncDone {
        return false;
    }
    let mut start = c.module.instr(id).operands()[0];
    let mut late = Vec::new();
    while c.module.instr(start).opcode == Opcode::AsyncUpdate {
        let operands = c.module.instr(start).operands();
        late.extend_from_slice(&operands[1..]);
        start = operands[0];
    }
    let i = c.module.instr(start);
    let (Some(callee), true) = (i.attrs.computation(AttrKey::Calls), late.is_empty()) else { return false };
    let arguments = i.operands().to_vec();
    let Some(result) = inlined(c, callee, &arguments, id) else { return false };
    c.replace(id, result);
    // Start and updates have effects of their own: nothing else would remove them.
    let mut step = Some(id);
    while let Some(s) = step {
        let next = c.module.instr(s).operands().first().copied();
        if !c.module.users(s).is_empty() || c.module.root(c.module.instr(s).parent()) == s {
            break;
        }
        c.module.remove(s);
        step = next.filter(|_| s != start);
    }
    true
}

/// A map's computation on whole arrays: elementwise instructions as they are, constants broadcast.
fn inline_map(c: &mut Candidate, id: InstrId) -> bool {
    if !c.alive(id) {
        return false;
    }
    let i = c.module.instr(id);
    let (Some(callee), Some(dims)) =
        (i.attrs.computation(AttrKey::ToApply), i.shape.as_array().map(|a| a.dims.clone()))
    else {
        return false;
    };
    let arguments = i.operands().to_vec();
    let elementwise = |id: InstrId| {
        let i = c.module.instr(id);
        i.opcode.is_elementwise() || matches!(i.opcode, Opcode::Parameter | Opcode::Constant)
    };
    if !c.module.instructions(callee).all(elementwise) {
        return false;
    }
    let inside: Vec<InstrId> = c.module.instructions(callee).collect();
    let Some((copy, map)) = copied(c, callee) else { return false };
    for id in inside.iter().map(|i| map[i]) {
        let Some(a) = c.module.instr(id).shape.as_array() else { return false };
        let wide = Shape::array(a.element_type, &dims);
        if c.module.instr(id).opcode == Opcode::Constant {
            if dims.is_empty() {
                continue;
            }
            let attrs = Attrs::new().with(AttrKey::Dimensions, AttrValue::Ints(SmallVec::new()));
            let new = NewInstruction { attrs, ..NewInstruction::new(Opcode::Broadcast, wide, &[]) };
            let broadcast = c.module.insert_after(copy, Some(id), new);
            c.module.replace_all_uses(id, broadcast);
            c.module.set_operands(broadcast, &[id]);
        } else {
            c.module.instr_mut(id).shape = wide;
        }
    }
    let Some(result) = inlined(c, copy, &arguments, id) else { return false };
    c.replace(id, result);
    true
}

/// Each conditional by each of its branches.
pub(super) fn branches(context: &Context<'_>) -> Vec<Edit> {
    let module = &context.program.module;
    let mut edits: Vec<Edit> = Vec::new();
    for id in all_instructions(module).filter(|&id| module.instr(id).opcode == Opcode::Conditional) {
        for n in 0..module.instr(id).operands().len().saturating_sub(1) {
            edits.push(Box::new(move |c| {
                if !c.alive(id) {
                    return false;
                }
                let i = c.module.instr(id);
                let (callee, argument) =
                    (i.attrs.called_computations().get(n).copied(), i.operands().get(n + 1).copied());
                let (Some(callee), Some(argument)) = (callee, argument) else { return false };
                let Some(result) = inlined(c, callee, &[argument], id) else { return false };
                c.replace(id, result);
                true
            }));
        }
    }
    edits
}
