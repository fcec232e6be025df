//! Simplification of loops: a trip count of 0 or 1, invariant and dead state.
//!
//! A loop that never runs becomes its initial state, one that runs once its body. An element that the body
//! hands on unchanged is its initial value; one that only itself depends on is removed.
//!
//! Each rests on the loop terminating. A loop that does not terminate has no result to keep, and ends only
//! where fuel does; one that is not needed for the result does not run in the interpreter either.

use hlo::attrs::{AttrKey, AttrValue, Attrs};
use hlo::{InstrId, Module, NewInstruction, Opcode, Shape};
use rustc_hash::FxHashSet;

use super::PassCx;
use super::calls::inline;
use super::edit::{Edit, Survey, each_outside_folds};
use super::loops::{Calls, at, is_invariant, parameter, parts, trip_count};

pub(super) fn run(module: &mut Module, cx: &mut PassCx<'_>) -> u64 {
    let mut applied = each_outside_folds(module, cx.fuel, |e| match e.at().opcode {
        Opcode::While => short(e),
        Opcode::GetTupleElement => unchanged(e),
        _ => None,
    });
    let survey = Survey::of(module);
    if survey.run_time_sizes {
        return applied;
    }
    let all: Vec<InstrId> = module.computations().iter().flat_map(|&c| module.instructions(c)).collect();
    let calls = Calls::of(module);
    for id in all {
        if !module.is_removed(id)
            && module.instr(id).opcode == Opcode::While
            && !survey.folds.contains(&module.instr(id).parent())
            && drop_unused(module, id, &survey, &calls, cx)
        {
            applied += 1;
        }
    }
    applied
}

/// A loop of trip count 0 or 1.
fn short(e: &mut Edit<'_>) -> Option<InstrId> {
    if e.has_effect() {
        return None;
    }
    let [_, body] = parts(e.module, e.id())?;
    let init = e.operand(0)?;
    match trip_count(e.module, e.id())? {
        0 => Some(init),
        1 => inline(e, body, &[init]),
        _ => None,
    }
}

/// An element of a loop's result that is loop invariant.
fn unchanged(e: &mut Edit<'_>) -> Option<InstrId> {
    let of = e.operand(0)?;
    if e.instr(of).opcode != Opcode::While {
        return None;
    }
    let index = e.at().attrs.int(AttrKey::Index)?;
    let [_, body] = parts(e.module, of)?;
    if !is_invariant(e.module, body, index) {
        return None;
    }
    let init = *e.instr(of).operands().first()?;
    match at(e.module, init, Some(index)) {
        Some(value) => Some(value),
        None => e.get(init, index),
    }
}

/// Whether all users of a value take elements of it.
fn only_elements(module: &Module, id: InstrId) -> bool {
    let parent = module.instr(id).parent();
    module.root(parent) != id
        && module.users(id).iter().all(|u| module.instr(u.user).opcode == Opcode::GetTupleElement)
}

/// Removes dead elements of a loop's state: those that neither its users, nor its condition, nor an effect,
/// nor a live element depend on.
fn drop_unused(
    module: &mut Module,
    id: InstrId,
    survey: &Survey,
    calls: &Calls,
    cx: &mut PassCx<'_>,
) -> bool {
    let Some(keep) = kept(module, id, survey, calls) else { return false };
    if !cx.fuel.take() {
        return false;
    }
    apply(module, id, &keep, survey);
    true
}

/// The live elements; `None` if all are live, or if the loop cannot be changed.
fn kept(module: &Module, id: InstrId, survey: &Survey, calls: &Calls) -> Option<Vec<usize>> {
    let [condition, body] = parts(module, id)?;
    let instr = module.instr(id);
    let n = instr.shape.as_tuple()?.len();
    let (in_condition, in_body) = (parameter(module, condition)?, parameter(module, body)?);
    let root = module.root(body);
    let mut inside = [condition, body].into_iter().flat_map(|c| module.instructions(c));
    if !calls.own([condition, body])
        || instr.attrs.get(AttrKey::Sharding).is_some()
        || survey.pinned.contains(&id)
        || module.users(id).iter().any(|u| survey.pinned.contains(&u.user))
        || inside
            .any(|i| survey.pinned.contains(&i) || module.instr(i).attrs.get(AttrKey::Sharding).is_some())
        || module.instr(root).opcode != Opcode::Tuple
        || !module.users(root).is_empty()
        || ![id, in_condition, in_body].iter().all(|&i| only_elements(module, i))
    {
        return None;
    }
    let index = |i: InstrId| usize::try_from(module.instr(i).attrs.int(AttrKey::Index)?).ok();
    let elements = |of: InstrId| module.users(of).iter().filter_map(|u| index(u.user)).collect::<Vec<_>>();
    let mut live = vec![false; n];
    for u in module.users(id) {
        let user = u.user;
        if !module.users(user).is_empty() || module.root(module.instr(user).parent()) == user {
            live[index(user)?] = true;
        }
    }
    elements(in_condition).into_iter().for_each(|i| live[i] = true);
    // What of the body the effects and the live elements need.
    let mut needed: FxHashSet<InstrId> = FxHashSet::default();
    let mut pending: Vec<InstrId> =
        module.instructions(body).filter(|&i| i != in_body && !survey.effects.removable(module, i)).collect();
    pending.extend((0..n).filter(|&i| live[i]).map(|i| module.instr(root).operands()[i]));
    while let Some(i) = pending.pop() {
        if !needed.insert(i) {
            continue;
        }
        let instr = module.instr(i);
        pending.extend(instr.operands());
        if instr.opcode == Opcode::GetTupleElement && instr.operands() == [in_body] {
            let i = index(i)?;
            if !std::mem::replace(&mut live[i], true) {
                pending.push(module.instr(root).operands()[i]);
            }
        }
    }
    let keep: Vec<usize> = (0..n).filter(|&i| live[i]).collect();
    (keep.len() < n && !keep.is_empty()).then_some(keep)
}

fn apply(module: &mut Module, id: InstrId, keep: &[usize], survey: &Survey) {
    let [condition, body] = parts(module, id).expect("invariant: asked before");
    let root = module.root(body);
    let only = |shape: &Shape| {
        let all = shape.as_tuple().expect("invariant: the state is a tuple");
        Shape::tuple(keep.iter().map(|&i| all[i].clone()))
    };
    // The initial state.
    let init = module.instr(id).operands()[0];
    let (shape, span) = (module.instr(init).shape.clone(), module.instr(id).span);
    let mut elements = Vec::new();
    for &i in keep {
        elements.push(match at(module, init, Some(i as i64)) {
            Some(value) => value,
            None => {
                let element = shape.as_tuple().expect("invariant: the state is a tuple")[i].clone();
                let attrs = Attrs::new().with(AttrKey::Index, AttrValue::Int(i as i64));
                let name = module.unique_name(Opcode::GetTupleElement.name());
                let new = NewInstruction::new(Opcode::GetTupleElement, element, &[init]);
                module.insert_before(id, NewInstruction { name, attrs, span, ..new })
            }
        });
    }
    let name = module.unique_name(Opcode::Tuple.name());
    let new = NewInstruction::new(Opcode::Tuple, only(&shape), &elements);
    let new_init = module.insert_before(id, NewInstruction { name, span, ..new });
    module.set_operand(id, 0, new_init);
    // The body's result.
    let operands: Vec<InstrId> = keep.iter().map(|&i| module.instr(root).operands()[i]).collect();
    module.set_operands(root, &operands);
    // Everything that became unused, among it all readers of dead elements.
    let dead: Vec<InstrId> = module.instructions(body).collect();
    for i in dead.into_iter().rev() {
        if i != root && module.users(i).is_empty() && survey.effects.removable(module, i) {
            module.remove(i);
        }
    }
    let states: Vec<InstrId> =
        [condition, body].into_iter().filter_map(|c| parameter(module, c)).chain([id]).collect();
    for &state in &states {
        for u in module.users(state).to_vec() {
            let index = module.instr(u.user).attrs.int(AttrKey::Index);
            match keep.iter().position(|&k| Some(k as i64) == index) {
                Some(n) => module.instr_mut(u.user).attrs.set(AttrKey::Index, AttrValue::Int(n as i64)),
                None => module.remove(u.user),
            }
        }
    }
    for i in states.into_iter().chain([root]) {
        let shape = only(&module.instr(i).shape);
        let instr = module.instr_mut(i);
        instr.shape = shape;
        instr.attrs.remove(AttrKey::Origin);
    }
    for c in [condition, body] {
        module.computation_mut(c).declared = None;
    }
    super::edit::sweep(module, init, survey);
}
