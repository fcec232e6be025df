//! Loops: one iteration in place of all, and less state.

use hlo::attrs::{AttrKey, AttrValue};
use hlo::{ArrayLiteral, ComputationId, InstrId, Literal, Module, Opcode, Shape};

use super::Edit;
use super::calls::{copied, inlined};
use super::signatures::result_is_open;
use crate::reduce::Candidate;
use crate::reduce::program::all_instructions;
use crate::reduce::search::Context;

fn loops(module: &Module) -> impl Iterator<Item = InstrId> + '_ {
    all_instructions(module).filter(|&id| module.instr(id).opcode == Opcode::While)
}

/// Each loop, by one and by two applications of its body, and by the last one.
pub(super) fn unrolled(context: &Context<'_>) -> Vec<Edit> {
    let module = &context.program.module;
    let mut edits: Vec<Edit> = Vec::new();
    for id in loops(module) {
        for times in [1, 2] {
            edits.push(Box::new(move |c| {
                if !c.alive(id) {
                    return false;
                }
                let i = c.module.instr(id);
                let (Some(body), Some(&init)) = (i.attrs.computation(AttrKey::Body), i.operands().first())
                else {
                    return false;
                };
                let mut value = init;
                for _ in 0..times {
                    let Some(next) = inlined(c, body, &[value], id) else { return false };
                    value = next;
                }
                c.replace(id, value);
                true
            }));
        }
        let body = module.instr(id).attrs.computation(AttrKey::Body);
        let read = body.and_then(|b| reads(module, b)).map(|(_, users)| users).unwrap_or_default();
        let last = |&u: &InstrId| Some((index(module, u)?, context.recorded().last(u)?));
        let state: Vec<(usize, ArrayLiteral)> = read.iter().filter_map(last).collect();
        if !state.is_empty() {
            edits.push(Box::new(move |c| last_iteration(c, id, &state).is_some()));
        }
    }
    edits
}

/// A loop, by its body applied to the state that the last iteration reads, as far as that is known.
fn last_iteration(c: &mut Candidate, id: InstrId, state: &[(usize, ArrayLiteral)]) -> Option<()> {
    if !c.alive(id) {
        return None;
    }
    let i = c.module.instr(id);
    let (body, &init) = (i.attrs.computation(AttrKey::Body)?, i.operands().first()?);
    let mut elements = c.elements(init, id);
    for (k, value) in state {
        let constant = c.add_constant(id, Literal::Array(value.clone()));
        *elements.get_mut(*k)? = constant;
    }
    let start = c.add_tuple(id, &elements);
    let value = inlined(c, body, &[start], id)?;
    c.replace(id, value);
    Some(())
}

/// Each element of a loop's state, dropped; and a state of one element, without its tuple.
pub(super) fn state(context: &Context<'_>) -> Vec<Edit> {
    let module = &context.program.module;
    let mut edits: Vec<Edit> = Vec::new();
    for id in loops(module) {
        let Some(elements) = module.instr(id).shape.as_tuple().map(<[Shape]>::len) else { continue };
        // What the element is at first: in place of it where it is read.
        let initial = |k: usize| -> Option<ArrayLiteral> {
            let init = module.instr(module.instr(id).operands()[0]);
            let operand = *init.operands().get(k).filter(|_| init.opcode == Opcode::Tuple)?;
            context.recorded().value(operand).filter(|v| v.buffer.len() <= 64)
        };
        for k in 0..elements {
            let initial = initial(k);
            if elements > 1 {
                edits.push(Box::new(move |c| drop_element(c, id, k, initial.as_ref())));
            }
        }
        if elements == 1 {
            edits.push(Box::new(move |c| untuple(c, id)));
        }
    }
    edits
}

/// The parameter of a computation of one, and its users, all of which must be get-tuple-elements.
pub(super) fn reads(module: &Module, computation: ComputationId) -> Option<(InstrId, Vec<InstrId>)> {
    let &[Some(parameter)] = module.computation(computation).parameters() else { return None };
    let users: Vec<InstrId> = module.users(parameter).iter().map(|u| u.user).collect();
    let all = users.iter().all(|&u| module.instr(u).opcode == Opcode::GetTupleElement);
    all.then_some((parameter, users))
}

fn index(module: &Module, id: InstrId) -> Option<usize> {
    usize::try_from(module.instr(id).attrs.int(AttrKey::Index)?).ok()
}

pub(super) fn without(shape: &Shape, k: usize) -> Option<Shape> {
    let elements = shape.as_tuple()?;
    Some(Shape::tuple(elements.iter().enumerate().filter(|&(i, _)| i != k).map(|(_, s)| s.clone())))
}

fn drop_element(c: &mut Candidate, id: InstrId, k: usize, initial: Option<&ArrayLiteral>) -> bool {
    dropped(c, id, k, initial).is_some()
}

fn dropped(c: &mut Candidate, id: InstrId, k: usize, initial: Option<&ArrayLiteral>) -> Option<()> {
    if !c.alive(id) || c.module.instr(id).opcode != Opcode::While {
        return None;
    }
    let i = c.module.instr(id);
    let shape = i.shape.clone();
    if shape.as_tuple()?.len() <= k.max(1) {
        return None;
    }
    let (init, condition, body) =
        (i.operands()[0], i.attrs.computation(AttrKey::Condition)?, i.attrs.computation(AttrKey::Body)?);
    let left = without(&shape, k)?;
    // What reads the loop's result must be get-tuple-elements of other elements, or of this one where it is
    // known.
    let users = result_is_open(&c.module, id)?;
    if initial.is_none() && users.iter().any(|&u| index(&c.module, u) == Some(k)) {
        return None;
    }
    let (condition, _) = copied(c, condition)?;
    let (body, _) = copied(c, body)?;
    for computation in [condition, body] {
        let (parameter, users) = reads(&c.module, computation)?;
        for u in users {
            renumber(c, u, k, initial)?;
        }
        c.module.instr_mut(parameter).shape = left.clone();
    }
    let root = c.module.root(body);
    if c.module.instr(root).opcode != Opcode::Tuple {
        return None;
    }
    let kept = kept(c.module.instr(root).operands(), k);
    let new = c.add_tuple(root, &kept);
    c.module.set_root(body, new);
    let elements = c.elements(init, id);
    let init = c.add_tuple(id, &self::kept(&elements, k));
    for u in users {
        renumber(c, u, k, initial)?;
    }
    c.module.set_operands(id, &[init]);
    let i = c.module.instr_mut(id);
    i.shape = left;
    i.attrs.set(AttrKey::Condition, AttrValue::Computation(condition));
    i.attrs.set(AttrKey::Body, AttrValue::Computation(body));
    Some(())
}

pub(super) fn kept(all: &[InstrId], k: usize) -> Vec<InstrId> {
    all.iter().enumerate().filter(|&(i, _)| i != k).map(|(_, &o)| o).collect()
}

/// A get-tuple-element of a tuple that loses element `k`; one of `k` itself becomes a constant.
pub(super) fn renumber(c: &mut Candidate, id: InstrId, k: usize, value: Option<&ArrayLiteral>) -> Option<()> {
    let at = index(&c.module, id)?;
    if at == k {
        let only_dead = c.module.users(id).is_empty() && c.module.root(c.module.instr(id).parent()) != id;
        if only_dead {
            // Nothing reads it: any element will do.
            c.module.instr_mut(id).attrs.set(AttrKey::Index, AttrValue::Int(0));
            return Some(());
        }
        let constant = c.add_constant(id, Literal::Array(value?.clone()));
        c.replace(id, constant);
        c.module.instr_mut(id).attrs.set(AttrKey::Index, AttrValue::Int(0));
    } else if at > k {
        c.module.instr_mut(id).attrs.set(AttrKey::Index, AttrValue::Int(at as i64 - 1));
    }
    Some(())
}

fn untuple(c: &mut Candidate, id: InstrId) -> bool {
    untupled(c, id).is_some()
}

fn untupled(c: &mut Candidate, id: InstrId) -> Option<()> {
    if !c.alive(id) || c.module.instr(id).opcode != Opcode::While {
        return None;
    }
    let i = c.module.instr(id);
    let [element] = i.shape.as_tuple()? else { return None };
    let element = element.clone();
    let (init, condition, body) =
        (i.operands()[0], i.attrs.computation(AttrKey::Condition)?, i.attrs.computation(AttrKey::Body)?);
    let users = result_is_open(&c.module, id)?;
    let (condition, _) = copied(c, condition)?;
    let (body, _) = copied(c, body)?;
    for computation in [condition, body] {
        let (parameter, users) = reads(&c.module, computation)?;
        for u in users {
            c.replace(u, parameter);
            c.module.remove(u);
        }
        c.module.instr_mut(parameter).shape = element.clone();
    }
    let root = c.module.root(body);
    let &[only] = c.module.instr(root).operands() else { return None };
    if c.module.instr(root).opcode != Opcode::Tuple {
        return None;
    }
    c.module.set_root(body, only);
    let init = *c.elements(init, id).first()?;
    c.module.set_operands(id, &[init]);
    for u in users {
        c.replace(u, id);
        c.module.remove(u);
    }
    let i = c.module.instr_mut(id);
    i.shape = element;
    i.attrs.set(AttrKey::Condition, AttrValue::Computation(condition));
    i.attrs.set(AttrKey::Body, AttrValue::Computation(body));
    Some(())
}
