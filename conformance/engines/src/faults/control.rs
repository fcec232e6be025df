//! Calls, loops, branches and fusions.

use hlo::attrs::{AttrKey, AttrValue, Direction};
use hlo::{ComputationId, ElementType, InstrId, Opcode};
use rustc_hash::FxHashSet;

use super::edit::Edit;
use super::{Family, Needs, Row, row};

pub(super) const ROWS: &[Row] = &[
    row(
        "while-runs-once-too-often",
        Family::Control,
        "The trip count of a loop that counts up to a limit includes the limit.",
        "https://github.com/tensorflow/tensorflow/pull/123069",
        &[Opcode::While],
        while_runs_once_too_often,
    )
    .needing(Needs::CONTROL),
    row(
        "while-runs-at-least-once",
        Family::Control,
        "A loop whose condition is false from the beginning runs once: its condition is checked after the body.",
        "https://github.com/openxla/xla/pull/48454",
        &[Opcode::While],
        while_runs_at_least_once,
    )
    .needing(Needs::CONTROL),
    row(
        "while-carried-value-invariant",
        Family::Control,
        "A value that the body of a loop changes is taken for invariant.",
        "https://github.com/tensorflow/tensorflow/issues/123067",
        &[Opcode::While],
        while_carried_value_invariant,
    )
    .needing(Needs::CONTROL),
    row(
        "while-carried-values-share-buffer",
        Family::Control,
        "Two values of one shape that a loop carries end up in each other's place.",
        "https://github.com/llvm/llvm-project/issues/219456",
        &[Opcode::While],
        while_carried_values_share_buffer,
    )
    .needing(Needs::CONTROL),
    row(
        "conditional-predicate-as-index",
        Family::Control,
        "A `conditional` on a predicate is turned into one on an index, true being 1, without swapping the branches.",
        "https://github.com/jax-ml/jax/issues/5900",
        &[Opcode::Conditional],
        conditional_predicate_as_index,
    )
    .needing(Needs::CONTROL),
    row(
        "fusion-outputs-swapped",
        Family::Fusion,
        "A fusion of several outputs writes two of one shape into each other's buffer.",
        "https://github.com/jax-ml/jax/issues/39100",
        &[Opcode::Fusion],
        fusion_outputs_swapped,
    )
    .needing(Needs::FUSION),
    row(
        "fusion-operand-taken-for-another",
        Family::Fusion,
        "Of two operands of a fusion that have one shape the second is taken for the first.",
        "https://github.com/jax-ml/jax/issues/39486",
        &[Opcode::Fusion],
        fusion_operand_taken_for_another,
    )
    .needing(Needs::FUSION),
    row(
        "fused-update-reads-its-own-output",
        Family::Fusion,
        "In a fusion that updates an operand in place, what else reads the operand sees the update.",
        "https://github.com/openxla/xla/issues/49176",
        &[Opcode::Fusion],
        fused_update_reads_its_own_output,
    )
    .needing(Needs::FUSION),
];

/// The numbers of the elements of its state that a loop's condition reads; `None` if it reads the state
/// otherwise.
fn read_by_condition(e: &Edit<'_>) -> Option<FxHashSet<i64>> {
    let condition = e.called(AttrKey::Condition)?;
    let state = e.module().computation(condition).parameters().first().copied().flatten()?;
    e.module()
        .users(state)
        .iter()
        .map(|u| {
            let user = e.instr(u.user);
            (user.opcode == Opcode::GetTupleElement).then_some(())?;
            user.attrs.int(AttrKey::Index)
        })
        .collect()
}

/// The elements that the body of a loop returns for the next iteration, and its state.
fn carried(e: &Edit<'_>) -> Option<(ComputationId, InstrId, Vec<InstrId>)> {
    e.is(Opcode::While)?;
    let body = e.called(AttrKey::Body)?;
    let next = e.operands_of(e.module().root(body), Opcode::Tuple)?;
    let state = e.module().computation(body).parameters().first().copied().flatten()?;
    Some((body, state, next))
}

/// Whether an instruction of a body is element `n` of the state.
fn is_element(e: &Edit<'_>, id: InstrId, state: InstrId, n: usize) -> bool {
    let instr = e.instr(id);
    instr.opcode == Opcode::GetTupleElement
        && instr.operands() == [state]
        && instr.attrs.int(AttrKey::Index) == Some(n as i64)
}

fn while_runs_once_too_often(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::While)?;
    let condition = e.called(AttrKey::Condition)?;
    let root = e.module().root(condition);
    e.operands_of(root, Opcode::Compare)?;
    let other = |d| match d {
        Direction::Lt => Direction::Le,
        Direction::Gt => Direction::Ge,
        Direction::Le | Direction::Ge | Direction::Eq | Direction::Ne => d,
    };
    // Only counters: a float may never reach its limit. What wraps would count for ever.
    let (counter, direction) = (e.instr(root).operands()[0], *e.instr(root).attrs.direction()?);
    e.integer(counter)?;
    (other(direction) != direction).then_some(())?;
    let limit = e.splat_value(e.instr(root).operands()[1])?;
    let ty = e.integer(counter)?;
    let ends = [0, 1u128 << (ty.bits() - 1), (1u128 << (ty.bits() - 1)) - 1, u128::MAX >> (128 - ty.bits())];
    (!ends[1..].contains(&limit) && (limit != 0 || ty.is_signed_integer())).then_some(())?;
    let copy = e.copy_of(condition, |id, new, _| {
        if id == root {
            new.attrs.set(AttrKey::Direction, AttrValue::Direction(other(direction)));
        }
    })?;
    e.with_attr(AttrKey::Condition, AttrValue::Computation(copy))
}

fn while_runs_at_least_once(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::While)?;
    let (body, init, attrs) = (e.called(AttrKey::Body)?, e.operand(0)?, e.attrs());
    // Only counters that one more iteration does not bring back to a limit that they have passed: others
    // might never end.
    let condition = e.module().root(e.called(AttrKey::Condition)?);
    let counter = *e.operands_of(condition, Opcode::Compare)?.first()?;
    e.integer(counter)?.is_signed_integer().then_some(())?;
    (!matches!(e.instr(condition).attrs.direction()?, Direction::Eq | Direction::Ne)).then_some(())?;
    let body = e.copy_of(body, |_, _, _| {})?;
    let call = hlo::Attrs::new().with(AttrKey::ToApply, AttrValue::Computation(body));
    let first = e.add(Opcode::Call, &[init], call)?;
    e.again(&[first], attrs)
}

fn while_carried_value_invariant(e: &mut Edit<'_>) -> Option<InstrId> {
    let (body, state, next) = carried(e)?;
    let read = read_by_condition(e)?;
    let changed = (0..next.len()).find(|&i| {
        !read.contains(&(i as i64)) && !is_element(e, next[i], state, i) && e.array(next[i]).is_some()
    })?;
    // The element of the state, as something that the copy has before its root.
    let same = e.module().instructions(body).find(|&id| is_element(e, id, state, changed))?;
    let root = e.module().root(body);
    let copy = e.copy_of(body, |id, new, copies| {
        if id == root {
            new.operands[changed] = copies[&same];
        }
    })?;
    e.with_attr(AttrKey::Body, AttrValue::Computation(copy))
}

/// Two elements of a tuple with the same shape and different values.
fn alike(e: &Edit<'_>, parts: &[InstrId], skip: impl Fn(usize) -> bool) -> Option<(usize, usize)> {
    let pairs = (0..parts.len()).flat_map(|i| (i + 1..parts.len()).map(move |j| (i, j)));
    pairs.filter(|&(i, j)| !skip(i) && !skip(j)).find(|&(i, j)| {
        let same = || Some(e.array(parts[i])?.same_dims(&e.array(parts[j])?));
        parts[i] != parts[j] && same() == Some(true)
    })
}

fn while_carried_values_share_buffer(e: &mut Edit<'_>) -> Option<InstrId> {
    let (body, _, next) = carried(e)?;
    let read = read_by_condition(e)?;
    let (i, j) = alike(e, &next, |n| read.contains(&(n as i64)))?;
    let root = e.module().root(body);
    let copy = e.copy_of(body, |id, new, _| {
        if id == root {
            new.operands.swap(i, j);
        }
    })?;
    e.with_attr(AttrKey::Body, AttrValue::Computation(copy))
}

fn conditional_predicate_as_index(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Conditional)?;
    let (mut operands, mut attrs) = (e.operands(), e.attrs());
    e.ty(operands[0]).filter(|&ty| ty == ElementType::Pred)?;
    let AttrValue::Computation(yes) = attrs.remove(AttrKey::TrueComputation)? else { return None };
    let AttrValue::Computation(no) = attrs.remove(AttrKey::FalseComputation)? else { return None };
    attrs.set(AttrKey::BranchComputations, AttrValue::Computations([yes, no].into()));
    operands[0] = e.convert(operands[0], ElementType::S32)?;
    e.again(&operands, attrs)
}

fn fusion_outputs_swapped(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Fusion)?;
    let fused = e.called(AttrKey::Calls)?;
    let root = e.module().root(fused);
    let parts = e.operands_of(root, Opcode::Tuple)?;
    let (i, j) = alike(e, &parts, |_| false)?;
    let copy = e.copy_of(fused, |id, new, _| {
        if id == root {
            new.operands.swap(i, j);
        }
    })?;
    e.with_attr(AttrKey::Calls, AttrValue::Computation(copy))
}

fn fusion_operand_taken_for_another(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Fusion)?;
    let (mut operands, attrs) = (e.operands(), e.attrs());
    let (i, j) = alike(e, &operands, |_| false)?;
    operands[j] = operands[i];
    e.again(&operands, attrs)
}

fn fused_update_reads_its_own_output(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Fusion)?;
    let fused = e.called(AttrKey::Calls)?;
    let order: Vec<InstrId> = e.module().instructions(fused).collect();
    // The first update in place of a parameter, and whoever reads that parameter after it.
    let (at, base) = order.iter().enumerate().find_map(|(at, &id)| {
        let base = *e.operands_of(id, Opcode::DynamicUpdateSlice)?.first()?;
        (e.instr(base).opcode == Opcode::Parameter && e.module().users(base).len() > 1).then_some((at, base))
    })?;
    let update = order[at];
    let later: FxHashSet<InstrId> =
        e.module().users(base).iter().map(|u| u.user).filter(|user| order[at + 1..].contains(user)).collect();
    (!later.is_empty()).then_some(())?;
    let copy = e.copy_of(fused, |id, new, copies| {
        if later.contains(&id) {
            new.operands.iter_mut().filter(|o| **o == copies[&base]).for_each(|o| *o = copies[&update]);
        }
    })?;
    e.with_attr(AttrKey::Calls, AttrValue::Computation(copy))
}
