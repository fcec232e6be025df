//! Fewer elements in the tuples that called computations take and give.

use hlo::attrs::{AttrKey, AttrValue};
use hlo::{ComputationId, InstrId, Module, NewInstruction, Opcode, Shape};

use super::Edit;
use super::calls::copied;
use super::loops::{kept, reads, renumber, without};
use crate::reduce::Candidate;
use crate::reduce::program::all_instructions;
use crate::reduce::search::Context;

/// Whether the shape of an instruction may change: nothing but get-tuple-elements read it, or it is the
/// result of the program.
pub(super) fn result_is_open(module: &Module, id: InstrId) -> Option<Vec<InstrId>> {
    let parent = module.instr(id).parent();
    if module.root(parent) == id && parent != module.entry() {
        return None;
    }
    let users: Vec<InstrId> = module.users(id).iter().map(|u| u.user).collect();
    users.iter().all(|&u| module.instr(u).opcode == Opcode::GetTupleElement).then_some(users)
}

/// Each element of the result of a call, fusion or conditional, dropped; each tuple that a branch or a call
/// takes, made smaller.
pub(super) fn elements(context: &Context<'_>) -> Vec<Edit> {
    let module = &context.program.module;
    let mut edits: Vec<Edit> = Vec::new();
    for id in all_instructions(module) {
        let i = module.instr(id);
        if !matches!(i.opcode, Opcode::Call | Opcode::Fusion | Opcode::Conditional) {
            continue;
        }
        if let Some(elements) = i.shape.as_tuple() {
            for k in 0..elements.len() {
                edits.push(Box::new(move |c| drop_result(c, id, k).is_some()));
            }
        }
        let callees = i.attrs.called_computations();
        let first = usize::from(i.opcode == Opcode::Conditional);
        for (slot, &operand) in i.operands().iter().enumerate().skip(first) {
            let Some(elements) = module.instr(operand).shape.as_tuple() else { continue };
            if i.opcode == Opcode::Conditional {
                let Some(&callee) = callees.get(slot - 1) else { continue };
                for k in 0..elements.len() {
                    edits.push(Box::new(move |c| drop_argument(c, id, slot, callee, k).is_some()));
                }
                if elements.len() == 1 {
                    edits.push(Box::new(move |c| unwrap_argument(c, id, slot, callee).is_some()));
                }
            } else {
                edits.push(Box::new(move |c| flatten_argument(c, id, slot).is_some()));
            }
        }
    }
    edits
}

/// Makes an instruction call a copy of what it calls.
fn own_callee(c: &mut Candidate, id: InstrId, callee: ComputationId) -> Option<ComputationId> {
    let (copy, _) = copied(c, callee)?;
    let mut first = true;
    c.module.instr_mut(id).attrs.map_computations(|called| {
        if called == callee && std::mem::take(&mut first) { copy } else { called }
    });
    Some(copy)
}

fn drop_result(c: &mut Candidate, id: InstrId, k: usize) -> Option<()> {
    if !c.alive(id) {
        return None;
    }
    let shape = c.module.instr(id).shape.clone();
    let n = shape.as_tuple()?.len();
    let users = result_is_open(&c.module, id)?;
    let read = |u: &InstrId| c.module.instr(*u).attrs.int(AttrKey::Index) == Some(k as i64);
    if k >= n || users.iter().any(read) {
        return None;
    }
    let callees = c.module.instr(id).attrs.called_computations();
    let single = n == 2;
    let copies: Vec<ComputationId> =
        callees.iter().map(|&callee| copied(c, callee).map(|c| c.0)).collect::<Option<_>>()?;
    for &copy in &copies {
        let root = c.module.root(copy);
        if c.module.instr(root).opcode != Opcode::Tuple {
            return None;
        }
        let left = kept(c.module.instr(root).operands(), k);
        let new = match *left {
            [only] if single => only,
            _ => c.add_tuple(root, &left),
        };
        c.module.set_root(copy, new);
    }
    let mut copies = copies.into_iter();
    c.module.instr_mut(id).attrs.map_computations(|called| copies.next().unwrap_or(called));
    let left = without(&shape, k)?;
    if single {
        c.module.instr_mut(id).shape = left.as_tuple()?.first()?.clone();
        for u in users {
            c.replace(u, id);
            c.module.remove(u);
        }
    } else {
        c.module.instr_mut(id).shape = left;
        for u in users {
            renumber(c, u, k, None)?;
        }
    }
    Some(())
}

/// The number of the parameter of a branch is always 0.
fn drop_argument(c: &mut Candidate, id: InstrId, slot: usize, callee: ComputationId, k: usize) -> Option<()> {
    let (operand, shape) = argument(c, id, slot, callee)?;
    if shape.as_tuple()?.len() < 2 {
        return None;
    }
    let (_, users) = reads(&c.module, callee)?;
    if users.iter().any(|&u| c.module.instr(u).attrs.int(AttrKey::Index) == Some(k as i64)) {
        return None;
    }
    let copy = own_callee(c, id, callee)?;
    let (parameter, users) = reads(&c.module, copy)?;
    for u in users {
        renumber(c, u, k, None)?;
    }
    c.module.instr_mut(parameter).shape = without(&shape, k)?;
    let elements = c.elements(operand, id);
    let new = c.add_tuple(id, &kept(&elements, k));
    c.module.set_operand(id, slot, new);
    Some(())
}

fn argument(c: &Candidate, id: InstrId, slot: usize, callee: ComputationId) -> Option<(InstrId, Shape)> {
    if !c.alive(id) || !c.module.instr(id).attrs.called_computations().contains(&callee) {
        return None;
    }
    let operand = *c.module.instr(id).operands().get(slot)?;
    Some((operand, c.module.instr(operand).shape.clone()))
}

fn unwrap_argument(c: &mut Candidate, id: InstrId, slot: usize, callee: ComputationId) -> Option<()> {
    let (operand, shape) = argument(c, id, slot, callee)?;
    let [element] = shape.as_tuple()? else { return None };
    let copy = own_callee(c, id, callee)?;
    let (parameter, users) = reads(&c.module, copy)?;
    for u in users {
        c.replace(u, parameter);
        c.module.remove(u);
    }
    c.module.instr_mut(parameter).shape = element.clone();
    let only = *c.elements(operand, id).first()?;
    c.module.set_operand(id, slot, only);
    Some(())
}

/// A tuple that a call or fusion takes, as a parameter for each element.
fn flatten_argument(c: &mut Candidate, id: InstrId, slot: usize) -> Option<()> {
    if !c.alive(id) {
        return None;
    }
    let callee = *c.module.instr(id).attrs.called_computations().first()?;
    let (operand, shape) = argument(c, id, slot, callee)?;
    let shapes = shape.as_tuple()?.to_vec();
    let copy = own_callee(c, id, callee)?;
    let parameters: Vec<InstrId> =
        c.module.computation(copy).parameters().iter().copied().collect::<Option<_>>()?;
    let tuple = *parameters.get(slot)?;
    let users: Vec<InstrId> = c.module.users(tuple).iter().map(|u| u.user).collect();
    let reads = |u: InstrId| {
        c.module
            .instr(u)
            .attrs
            .int(AttrKey::Index)
            .filter(|_| c.module.instr(u).opcode == Opcode::GetTupleElement)
    };
    let indices: Vec<i64> = users.iter().map(|&u| reads(u)).collect::<Option<_>>()?;
    if c.module.root(copy) == tuple {
        return None;
    }
    let mut new = Vec::new();
    for (n, shape) in (parameters.len()..).zip(shapes) {
        let attrs = hlo::Attrs::new().with(AttrKey::ParameterNumber, AttrValue::Int(n as i64));
        let instr = NewInstruction { attrs, ..NewInstruction::new(Opcode::Parameter, shape, &[]) };
        new.push(c.module.insert_after(copy, None, instr));
    }
    for (u, index) in users.into_iter().zip(indices) {
        let p = *new.get(usize::try_from(index).ok()?)?;
        c.replace(u, p);
        c.module.remove(u);
    }
    // The old parameter stays, unused, until the program is tidied up.
    for element in c.elements(operand, id) {
        c.module.push_operand(id, element);
    }
    Some(())
}
