//! Loops that never run become their initial state, loops that run once their body. A carried value that the body hands on unchanged is what it
//! was at the beginning; one that nothing but itself looks at is not carried.
//!
//! Each rests on the loop ending. A loop that does not end has no result to keep, and ends only where fuel does; one that is not needed for the
//! result does not run in the interpreter either.

use std::cmp::Ordering;

use hlo::attrs::{AttrKey, AttrValue, Attrs, Direction};
use hlo::{ComputationId, InstrId, Module, NewInstruction, Opcode, Shape};
use rustc_hash::FxHashSet;

use super::Fuel;
use super::calls::inline;
use super::edit::{Edit, each_outside_folds, folds, has_effect, has_run_time_sizes, pinned, removable};
use super::facts::integer;

pub(super) fn run(module: &mut Module, fuel: &mut Fuel) -> u64 {
    let mut applied = each_outside_folds(module, fuel, |e| match e.at().opcode {
        Opcode::While => short(e),
        Opcode::GetTupleElement => unchanged(e),
        _ => None,
    });
    if has_run_time_sizes(module) {
        return applied;
    }
    let (folds, pinned) = (folds(module), pinned(module));
    let all: Vec<InstrId> = module.computations().iter().flat_map(|&c| module.instructions(c)).collect();
    for id in all {
        if !module.is_removed(id)
            && module.instr(id).opcode == Opcode::While
            && !folds.contains(&module.instr(id).parent())
            && drop_unused(module, id, &pinned, fuel)
        {
            applied += 1;
        }
    }
    applied
}

/// The computations of a loop.
fn parts(module: &Module, id: InstrId) -> Option<[ComputationId; 2]> {
    let attrs = &module.instr(id).attrs;
    Some([attrs.computation(AttrKey::Condition)?, attrs.computation(AttrKey::Body)?])
}

fn parameter(module: &Module, c: ComputationId) -> Option<InstrId> {
    *module.computation(c).parameters().first()?
}

/// A loop that runs not at all or once.
fn short(e: &mut Edit<'_>) -> Option<InstrId> {
    if has_effect(e.module, e.id()) {
        return None;
    }
    let [condition, body] = parts(e.module, e.id())?;
    let init = e.operand(0)?;
    match trips(e.module, condition, body, init)? {
        0 => Some(init),
        _ => inline(e, body, &[init]),
    }
}

/// How often a loop runs, if that is 0 or 1 times for sure.
fn trips(module: &Module, condition: ComputationId, body: ComputationId, init: InstrId) -> Option<u64> {
    let root = module.root(condition);
    if let Some(go_on) = integer(module, root) {
        return (go_on == 0).then_some(0);
    }
    let root = module.instr(root);
    let &[a, b] = root.operands() else { return None };
    if root.opcode != Opcode::Compare {
        return None;
    }
    let state = parameter(module, condition)?;
    let direction = *root.attrs.direction()?;
    let (counter, bound, swapped) = match (integer(module, a), integer(module, b)) {
        (None, Some(bound)) => (element(module, state, a)?, bound, false),
        (Some(bound), None) => (element(module, state, b)?, bound, true),
        (_, _) => return None,
    };
    let holds = |x: i128| {
        let order = if swapped { bound.cmp(&x) } else { x.cmp(&bound) };
        match direction {
            Direction::Eq => order == Ordering::Equal,
            Direction::Ne => order != Ordering::Equal,
            Direction::Lt => order == Ordering::Less,
            Direction::Le => order != Ordering::Greater,
            Direction::Gt => order == Ordering::Greater,
            Direction::Ge => order != Ordering::Less,
        }
    };
    let first = integer(module, at(module, init, counter)?)?;
    if !holds(first) {
        return Some(0);
    }
    // What the first run of the body makes of the counter: a sum with a constant, or a constant.
    let next = at(module, module.root(body), counter)?;
    let second = match integer(module, next) {
        Some(constant) => constant,
        None => {
            let sum = module.instr(next);
            let &[x, y] = sum.operands() else { return None };
            let state = parameter(module, body)?;
            let step = match (sum.opcode, element(module, state, x), element(module, state, y)) {
                (Opcode::Add, Some(c), None) if c == counter => integer(module, y)?,
                (Opcode::Add, None, Some(c)) if c == counter => integer(module, x)?,
                (Opcode::Subtract, Some(c), None) if c == counter => -integer(module, y)?,
                (_, _, _) => return None,
            };
            wrapped(first.checked_add(step)?, sum.shape.element_type()?)?
        }
    };
    (!holds(second)).then_some(1)
}

/// A number in the range of its type.
fn wrapped(x: i128, ty: hlo::ElementType) -> Option<i128> {
    let shift = 128 - ty.bits();
    if ty.is_signed_integer() {
        Some((x << shift) >> shift)
    } else if ty.is_unsigned_integer() {
        Some(((x.cast_unsigned() << shift) >> shift).cast_signed())
    } else {
        None
    }
}

/// Which element of the state an instruction is; of a state that is no tuple, `None` within.
fn element(module: &Module, state: InstrId, id: InstrId) -> Option<Option<i64>> {
    if id == state {
        return module.instr(state).shape.as_array().map(|_| None);
    }
    let instr = module.instr(id);
    (instr.opcode == Opcode::GetTupleElement && instr.operands() == [state])
        .then(|| instr.attrs.int(AttrKey::Index))
        .flatten()
        .map(Some)
}

/// The instruction that makes an element of a state.
fn at(module: &Module, state: InstrId, element: Option<i64>) -> Option<InstrId> {
    match element {
        None => Some(state),
        Some(i) => {
            let tuple = module.instr(state);
            (tuple.opcode == Opcode::Tuple)
                .then(|| tuple.operands().get(usize::try_from(i).ok()?).copied())
                .flatten()
        }
    }
}

/// An element of a loop's result that the body hands on.
fn unchanged(e: &mut Edit<'_>) -> Option<InstrId> {
    let of = e.operand(0)?;
    if e.instr(of).opcode != Opcode::While {
        return None;
    }
    let index = e.at().attrs.int(AttrKey::Index)?;
    let [_, body] = parts(e.module, of)?;
    let state = parameter(e.module, body)?;
    let next = at(e.module, e.module.root(body), Some(index))?;
    if element(e.module, state, next) != Some(Some(index)) {
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

/// Drops the elements of a loop's state that neither its users, nor its condition, nor an effect, nor a carried value among these look at.
fn drop_unused(module: &mut Module, id: InstrId, pinned: &FxHashSet<InstrId>, fuel: &mut Fuel) -> bool {
    let Some(keep) = kept(module, id, pinned) else { return false };
    if !fuel.take() {
        return false;
    }
    apply(module, id, &keep, pinned);
    true
}

/// The elements to keep; `None` if those are all, or if the loop cannot be changed.
fn kept(module: &Module, id: InstrId, pinned: &FxHashSet<InstrId>) -> Option<Vec<usize>> {
    let [condition, body] = parts(module, id)?;
    let instr = module.instr(id);
    let n = instr.shape.as_tuple()?.len();
    let (in_condition, in_body) = (parameter(module, condition)?, parameter(module, body)?);
    let root = module.root(body);
    let callers = module
        .computations()
        .iter()
        .flat_map(|&c| module.instructions(c))
        .flat_map(|i| module.instr(i).attrs.called_computations())
        .filter(|&c| c == condition || c == body)
        .count();
    let mut inside = [condition, body].into_iter().flat_map(|c| module.instructions(c));
    if callers != 2
        || instr.attrs.get(AttrKey::Sharding).is_some()
        || pinned.contains(&id)
        || module.users(id).iter().any(|u| pinned.contains(&u.user))
        || inside.any(|i| pinned.contains(&i) || module.instr(i).attrs.get(AttrKey::Sharding).is_some())
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
    // What is needed of the body, from its effects and the live elements.
    let mut needed: FxHashSet<InstrId> = FxHashSet::default();
    let mut pending: Vec<InstrId> =
        module.instructions(body).filter(|&i| i != in_body && !removable(module, i)).collect();
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

fn apply(module: &mut Module, id: InstrId, keep: &[usize], pinned: &FxHashSet<InstrId>) {
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
    // What the body hands on.
    let operands: Vec<InstrId> = keep.iter().map(|&i| module.instr(root).operands()[i]).collect();
    module.set_operands(root, &operands);
    // What nothing needs any more, which is all that looks at an element that is not kept.
    let dead: Vec<InstrId> = module.instructions(body).collect();
    for i in dead.into_iter().rev() {
        if i != root && module.users(i).is_empty() && removable(module, i) {
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
    super::edit::sweep(module, init, pinned);
}
