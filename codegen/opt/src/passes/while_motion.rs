//! Loop-invariant code motion: invariant computations are hoisted out of loops, constants are sunk into them;
//! and full unrolling of short loops.
//!
//! Hoisted instructions may run although the loop makes no iteration. None of them traps, ends the program or
//! has an effect, and none runs a loop of its own, so this is not observable. They compute the same values by
//! the same instructions, and state that goes through a loop unchanged keeps its bits.

use hlo::attrs::AttrKey;
use hlo::opcode::NumericRow;
use hlo::{ComputationId, ElementType, InstrId, Instruction, Module, NewInstruction, Opcode, Shape};
use rustc_hash::{FxHashMap, FxHashSet};

use super::PassCx;
use super::calls::inline;
use super::edit::{Edit, each_outside_folds, same_but_layout};
use super::effects::Effects;
use super::facts::{is_heavy_fold, literal};
use super::loop_state::{Loop, each_loop};
use super::loops::{at, is_invariant, parts, trip_count};

/// A result larger than everything that it is computed from is hoisted only up to this size: it is live as
/// long as the loop runs.
const MAX_GROWN_BYTES: i64 = 256 << 10;
/// Fewer elements than this are not worth an element of the state.
const MIN_STATE_ELEMENTS: i64 = 16;
/// The maximum trip count of a loop that is unrolled, and the maximum number of instructions after unrolling.
const MAX_ITERATIONS: u64 = 32;
const MAX_UNROLLED: u64 = 256;
/// The instructions that an integer quotient counts as (there are no vector instructions for it).
const INTEGER_QUOTIENT_OPS: u64 = 8;
/// The same of an elementary function: long code, for whole vectors and again for the remainder.
const ELEMENTARY_FUNCTION_OPS: u64 = 16;
/// The same of an operation on complex numbers.
const COMPLEX_OPS: u64 = 4;

pub(super) fn hoist(module: &mut Module, cx: &mut PassCx<'_>) -> u64 {
    each_loop(module, |module, l| hoist_from(module, l, cx).unwrap_or(0))
}

/// About as cheap to compute as to read: hoisted only as a part of something else.
fn is_cheap(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::Constant
            | Opcode::Iota
            | Opcode::Broadcast
            | Opcode::Reshape
            | Opcode::Bitcast
            | Opcode::Slice
            | Opcode::Transpose
            | Opcode::Reverse
            | Opcode::Copy
            | Opcode::GetTupleElement
            | Opcode::Tuple
    )
}

/// Whether an instruction calls LAPACK: its routines give results for whatever matrices.
fn is_decomposition(module: &Module, id: InstrId) -> bool {
    let instr = module.instr(id);
    instr.opcode == Opcode::CustomCall
        && instr
            .attrs
            .str(AttrKey::CustomCallTarget)
            .is_some_and(|target| hlo_library::lapack::routine(target).is_some())
}

/// Whether it is one of the results of such a call.
fn of_decomposition(module: &Module, id: InstrId) -> bool {
    let instr = module.instr(id);
    instr.opcode == Opcode::GetTupleElement
        && instr.shape.as_array().is_some()
        && is_decomposition(module, instr.operands()[0])
}

/// Whether an instruction of a loop may run before the loop.
fn may_move(module: &Module, effects: &Effects, id: InstrId) -> bool {
    let instr = module.instr(id);
    let stays = matches!(
        instr.opcode,
        Opcode::Parameter
            | Opcode::While
            | Opcode::Call
            | Opcode::Conditional
            | Opcode::Fusion
            | Opcode::AsyncStart
            | Opcode::AsyncUpdate
            | Opcode::AsyncDone
            | Opcode::OptBarrier
    ) || instr.opcode == Opcode::CustomCall && !is_decomposition(module, id);
    // A computation that is applied to elements may call one with a loop.
    let plain = |c: ComputationId| {
        module.instructions(c).all(|i| module.instr(i).attrs.called_computations().is_empty())
    };
    !stays
        && instr.control_predecessors.is_empty()
        && !super::facts::is_elided(module, id)
        && effects.removable(module, id)
        && instr.shape.leaves().iter().all(|s| s.as_array().is_some())
        && instr.attrs.called_computations().into_iter().all(plain)
}

fn hoist_from(module: &mut Module, l: &Loop<'_>, cx: &mut PassCx<'_>) -> Option<u64> {
    // Loop-invariant instructions.
    let mut same: FxHashSet<InstrId> = FxHashSet::default();
    let mut leaves: FxHashMap<InstrId, i64> = FxHashMap::default();
    let all: Vec<InstrId> = module.instructions(l.body).collect();
    for &id in &all {
        let instr = module.instr(id);
        if instr.operands() == [l.in_body] {
            let index = instr.attrs.int(AttrKey::Index)?;
            if is_invariant(module, l.body, index) {
                same.insert(id);
                leaves.insert(id, index);
            }
            continue;
        }
        if instr.operands().iter().all(|o| same.contains(o))
            && (!instr.operands().is_empty() || is_cheap(instr.opcode))
            && may_move(module, &l.survey.effects, id)
        {
            same.insert(id);
        }
    }
    // Those of them that variant instructions use, perhaps through something cheap that stays.
    let mut inside: FxHashSet<InstrId> = FxHashSet::default();
    let mut roots: Vec<InstrId> = Vec::new();
    for &id in all.iter().rev().filter(|id| same.contains(id)) {
        let needed = module.users(id).iter().any(|u| !same.contains(&u.user) || inside.contains(&u.user));
        if !needed || leaves.contains_key(&id) {
            continue;
        }
        let made = of_decomposition(module, id);
        if !made && (is_cheap(module.instr(id).opcode) || !is_worth_it(module, id)) {
            inside.insert(id);
        } else {
            roots.push(id);
        }
    }
    roots.reverse();
    roots.retain(|_| cx.fuel.take());
    if roots.is_empty() {
        return None;
    }
    // The same instructions before the loop.
    let mut needed: FxHashSet<InstrId> = roots.iter().copied().collect();
    for &id in all.iter().rev() {
        if needed.contains(&id) && !leaves.contains_key(&id) {
            needed.extend(module.instr(id).operands().iter().copied());
        }
    }
    let mut map: FxHashMap<InstrId, InstrId> = FxHashMap::default();
    for &id in all.iter().filter(|id| needed.contains(id)) {
        let outside = match leaves.get(&id) {
            Some(&index) => {
                l.first(module, index).expect("invariant: the state is a tuple with this element")
            }
            None => {
                let name = module.unique_name(&module.instr(id).name.clone());
                let instr = module.instr(id);
                let new = NewInstruction {
                    opcode: instr.opcode,
                    shape: instr.shape.clone(),
                    name,
                    operands: instr.operands().iter().map(|o| map[o]).collect(),
                    attrs: instr.attrs.clone(),
                    span: instr.span,
                };
                module.insert_before(l.id, new)
            }
        };
        map.insert(id, outside);
    }
    let values: Vec<InstrId> = roots.iter().map(|r| map[r]).collect();
    let inside = l.carry(module, &values).expect("invariant: the state is a tuple");
    for (&old, &new) in roots.iter().zip(&inside) {
        module.replace_all_uses(old, new);
    }
    for &old in roots.iter().rev() {
        super::edit::sweep(module, old, l.survey);
    }
    Some(roots.len() as u64)
}

/// Whether an element of the state costs less than computing it in each iteration.
fn is_worth_it(module: &Module, id: InstrId) -> bool {
    let instr = module.instr(id);
    let Some(array) = instr.shape.as_array() else { return false };
    let bytes = |s: &Shape| s.checked_bytes().unwrap_or(i64::MAX);
    let operands =
        instr.operands().iter().map(|&o| bytes(&module.instr(o).shape)).fold(0, i64::saturating_add);
    let few =
        instr.opcode.is_elementwise() && array.checked_elements().is_none_or(|n| n < MIN_STATE_ELEMENTS);
    !few && bytes(&instr.shape) <= operands.max(MAX_GROWN_BYTES)
}

pub(super) fn sink(module: &mut Module, cx: &mut PassCx<'_>) -> u64 {
    each_loop(module, |module, l| sink_into(module, l, cx))
}

/// Sinks constants, splats and iotas: they replace the elements of the state that always have that value.
fn sink_into(module: &mut Module, l: &Loop<'_>, cx: &mut PassCx<'_>) -> u64 {
    let mut applied = 0;
    for state in [l.in_condition, l.in_body] {
        for u in module.users(state).to_vec() {
            let element = u.user;
            let Some(index) = module.instr(element).attrs.int(AttrKey::Index) else { continue };
            let root = |u: &hlo::Use| u.user == l.root && i64::from(u.operand) == index;
            if !is_invariant(module, l.body, index) || module.users(element).iter().all(root) {
                continue;
            }
            let Some(init) = module.instr(l.id).operands().first().copied() else { continue };
            let Some(value) = at(module, init, Some(index)) else { continue };
            let is_root = module.root(module.instr(element).parent()) == element;
            let fits = same_but_layout(&module.instr(element).shape, &module.instr(value).shape);
            if is_root || !fits || !is_constant(module, value) || !cx.fuel.take() {
                continue;
            }
            let new = copy_constant(module, value, element);
            for u in module.users(element).to_vec() {
                if !root(&u) || state != l.in_body {
                    module.set_operand(u.user, u.operand as usize, new);
                }
            }
            super::edit::sweep(module, element, l.survey);
            applied += 1;
        }
    }
    applied
}

/// A constant of the text, a splat or an iota.
fn is_constant(module: &Module, id: InstrId) -> bool {
    let instr = module.instr(id);
    match instr.opcode {
        Opcode::Constant => literal(module, id).is_some(),
        Opcode::Iota => true,
        Opcode::Broadcast => instr.operands().iter().all(|&o| literal(module, o).is_some()),
        _ => false,
    }
}

/// A copy before an instruction of another computation.
fn copy_constant(module: &mut Module, id: InstrId, before: InstrId) -> InstrId {
    let operands: Vec<InstrId> =
        module.instr(id).operands().to_vec().into_iter().map(|o| copy_constant(module, o, before)).collect();
    let name = module.unique_name(&module.instr(id).name.clone());
    let instr = module.instr(id);
    let new = NewInstruction {
        opcode: instr.opcode,
        shape: instr.shape.clone(),
        name,
        operands: operands.into(),
        attrs: instr.attrs.clone(),
        span: instr.span,
    };
    module.insert_before(before, new)
}

/// Full unrolling of loops with a small trip count. The counter becomes a constant in each iteration.
pub(super) fn unroll(module: &mut Module, cx: &mut PassCx<'_>) -> u64 {
    each_outside_folds(module, cx.fuel, unrolled)
}

fn unrolled(e: &mut Edit<'_>) -> Option<InstrId> {
    if e.at().opcode != Opcode::While {
        return None;
    }
    let [_, body] = parts(e.module, e.id())?;
    let iterations = trip_count(e.module, e.id()).filter(|n| (2..=MAX_ITERATIONS).contains(n))?;
    let of =
        |instr: &Instruction, class: fn(ElementType) -> bool| instr.shape.element_type().is_some_and(class);
    let costs = |i: InstrId| {
        let instr = e.instr(i);
        match instr.opcode {
            Opcode::Parameter => 0,
            opcode if is_cheap(opcode) => 0,
            Opcode::Select => 1,
            // There are no vector instructions for integer division.
            Opcode::Divide | Opcode::Remainder if of(instr, ElementType::is_integer) => INTEGER_QUOTIENT_OPS,
            opcode => {
                let first = instr.operands().first().map_or(instr, |&o| e.instr(o));
                let long = matches!(opcode.numeric_row(), NumericRow::Elementary(_));
                (if long { ELEMENTARY_FUNCTION_OPS } else { 1 })
                    * if of(first, ElementType::is_complex) { COMPLEX_OPS } else { 1 }
            }
        }
    };
    let size: u64 = e.module.instructions(body).map(costs).sum();
    let calls = |i: InstrId| {
        let instr = e.instr(i);
        matches!(instr.opcode, Opcode::While | Opcode::Call | Opcode::Conditional | Opcode::CustomCall)
    };
    if size.saturating_mul(iterations) > MAX_UNROLLED
        || e.has_effect()
        || e.module.instructions(body).any(|i| calls(i) || is_heavy_fold(e.module, i))
    {
        return None;
    }
    let mut state = e.operand(0)?;
    for _ in 0..iterations {
        state = inline(e, body, &[state])?;
    }
    Some(state)
}
