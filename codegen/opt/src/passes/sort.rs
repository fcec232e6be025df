//! Simplification of sorts: empty ones, top-1, operands that are carried along unused, and short sorts as
//! sorting networks.
//!
//! An odd-even transposition network, which exchanges neighbours only if the right one comes before the left
//! one, is a stable sort if the comparator is an order. It is elementwise, so it is vectorized and fused with
//! its producers, and of a median only half of it is left.
//!
//! A line of one element stays as it is, bits and all. The comparator reads the two elements of each operand
//! by parameter number; an operand whose two parameters are unused decides nothing, and need not be moved if
//! its result is unused.

use hlo::attrs::{AttrKey, Direction};
use hlo::{ComputationId, ElementType, InstrId, Module, NewInstruction, Opcode};
use rustc_hash::FxHashMap;

use super::PassCx;
use super::calls::lanes;
use super::edit::{Edit, each_outside_folds};
use super::facts;
use super::reduce::result;
use super::stacks::known_part;
use hlo_library::sort::is_order;

pub(super) fn run(module: &mut Module, cx: &mut PassCx<'_>) -> u64 {
    each_outside_folds(module, cx.fuel, |e| match e.at().opcode {
        Opcode::Sort => sort(e).or_else(|| network(e)),
        Opcode::Topk => first_of_one(e),
        _ => None,
    })
}

/// Top-1 of a line of one element is that element, at index 0.
fn first_of_one(e: &mut Edit<'_>) -> Option<InstrId> {
    let x = *e.at().operands().first()?;
    let array = e.array(x)?.clone();
    let [values, indices] = e.at().shape.as_tuple()? else { return None };
    let (values, indices) = (values.as_array()?, indices.as_array()?.clone());
    let alike = values.without_layout() == array.without_layout() && indices.dims == array.dims;
    if !alike || array.dims.last() != Some(&1) {
        return None;
    }
    let zero = e.scalar_bits(indices.element_type, 0);
    let zeros = e.fill_dims(zero, &indices.dims)?;
    e.tuple(&[x, zeros])
}

fn sort(e: &mut Edit<'_>) -> Option<InstrId> {
    let operands = e.at().operands().to_vec();
    let dim = usize::try_from(*e.at().attrs.ints(AttrKey::Dimensions)?.first()?).ok()?;
    let same = |e: &Edit<'_>, x: InstrId, i: usize| {
        let leaves = e.at().shape.leaves();
        leaves.get(i).is_some_and(|s| s.element_type() == e.instr(x).shape.element_type())
    };
    let tuple = e.at().shape.as_tuple().is_some();
    if e.array(*operands.first()?)?.dims.get(dim).is_some_and(|&n| n <= 1)
        && operands.iter().enumerate().all(|(i, &x)| same(e, x, i))
    {
        return if tuple { e.tuple(&operands) } else { Some(operands[0]) };
    }
    if !tuple || e.module.root(e.at().parent()) == e.id() {
        return None;
    }
    let comparator = e.at().attrs.computation(AttrKey::ToApply)?;
    let mut used = vec![false; operands.len()];
    for u in e.module.users(e.id()) {
        let user = e.instr(u.user);
        if user.opcode != Opcode::GetTupleElement {
            return None;
        }
        *used.get_mut(usize::try_from(user.attrs.int(AttrKey::Index)?).ok()?)? = true;
    }
    for (i, p) in e.module.computation(comparator).parameters().iter().enumerate() {
        let p = (*p)?;
        if !e.module.users(p).is_empty() || e.module.root(comparator) == p {
            *used.get_mut(i / 2)? = true;
        }
    }
    let keep: Vec<usize> = (0..operands.len()).filter(|&i| used[i]).collect();
    if keep.len() == operands.len() || keep.is_empty() {
        return None;
    }
    let smaller = without(e, comparator, &keep)?;
    let kept: Vec<InstrId> = keep.iter().map(|&i| operands[i]).collect();
    let mut attrs = e.at().attrs.clone();
    attrs.map_computations(|_| smaller);
    let sorted = e.add(Opcode::Sort, &kept, attrs)?;
    // The same tuple as before: unused elements are the operands.
    let mut parts = Vec::with_capacity(operands.len());
    for (i, &x) in operands.iter().enumerate() {
        parts.push(match keep.iter().position(|&k| k == i) {
            Some(_) if keep.len() == 1 => sorted,
            Some(n) => e.get(sorted, n as i64)?,
            None => x,
        });
    }
    e.tuple(&parts)
}

/// A copy of a comparator that takes the operands `keep` alone.
fn without(e: &mut Edit<'_>, c: ComputationId, keep: &[usize]) -> Option<ComputationId> {
    let ids: Vec<InstrId> = e.module.instructions(c).collect();
    // Called computations would have to stand before the copy.
    if ids.iter().any(|&id| {
        !e.instr(id).attrs.called_computations().is_empty() || !e.instr(id).control_predecessors.is_empty()
    }) {
        return None;
    }
    let name = e.module.unique_computation_name(&e.module.computation(c).name.clone());
    let span = e.module.computation(c).span;
    let copy = e.module.add_computation(name, span);
    e.first(copy);
    let mut map: FxHashMap<InstrId, InstrId> = FxHashMap::default();
    for id in ids {
        let instr = e.instr(id);
        let mut attrs = instr.attrs.clone();
        if let Some(n) = instr.parameter_number() {
            let n = usize::try_from(n).ok()?;
            let Some(position) = keep.iter().position(|&k| k == n / 2) else { continue };
            attrs.set(AttrKey::ParameterNumber, hlo::attrs::AttrValue::Int((2 * position + n % 2) as i64));
        }
        let operands = instr.operands().iter().map(|o| map.get(o).copied()).collect::<Option<_>>()?;
        let new = NewInstruction {
            opcode: instr.opcode,
            shape: instr.shape.clone(),
            name: instr.name.clone(),
            operands,
            attrs,
            span: instr.span,
        };
        let new = e.module.append(copy, new);
        map.insert(id, new);
    }
    e.module.set_root(copy, *map.get(&e.module.root(c))?);
    Some(copy)
}

/// The maximum length of a line that is sorted by a network, and the maximum number of instructions of one.
const MAX_ELEMENTS: usize = 8;
/// The same for rows, whose elements are sliced and put together again: longer ones take longer to compile
/// than they are worth.
const MAX_ROW_ELEMENTS: usize = 6;
const MAX_INSTRUCTIONS: usize = 600;
/// The minimum number of lines for which it pays.
const MIN_LINES: i64 = 2048;

/// Short lines: odd-even transposition, round after round.
fn network(e: &mut Edit<'_>) -> Option<InstrId> {
    let operands = e.at().operands().to_vec();
    let dim = usize::try_from(*e.at().attrs.ints(AttrKey::Dimensions)?.first()?).ok()?;
    let dims = e.array(*operands.first()?)?.dims.clone();
    let most = if dim + 1 == dims.len() { MAX_ROW_ELEMENTS } else { MAX_ELEMENTS };
    let count = usize::try_from(*dims.get(dim)?).ok().filter(|n| (2..=most).contains(n))?;
    let comparator = e.at().attrs.computation(AttrKey::ToApply)?;
    let exchanges = count * (count - 1) / 2;
    let kept: Vec<i64> = (0..dims.len()).filter(|&d| d != dim).map(|d| dims[d]).collect();
    let lines = kept.iter().fold(1i64, |n, &d| n.saturating_mul(d));
    let work = exchanges * (e.module.computation(comparator).len() + 2 * operands.len());
    let types: Vec<ElementType> =
        operands.iter().map(|&o| e.array(o).map(|a| a.element_type)).collect::<Option<_>>()?;
    let leaves = e.at().shape.leaves();
    let same = leaves.iter().zip(&types).all(|(s, &ty)| s.element_type() == Some(ty));
    if lines < MIN_LINES || work > MAX_INSTRUCTIONS || !same || !is_order(e.module, comparator, &types) {
        return None;
    }
    // For each operand its elements, each of all lines.
    let mut all: Vec<Vec<InstrId>> = Vec::with_capacity(operands.len());
    for &x in &operands {
        let mut elements = Vec::with_capacity(count);
        for n in 0..count as i64 {
            elements.push(match known_part(e, x, dim, n, &kept) {
                Some(known) => known,
                None => e.part(x, dim, n, &kept)?,
            });
        }
        all.push(elements);
    }
    let of = key(e, comparator);
    let mut keys = Vec::new();
    for n in (0..count).filter(|_| of.is_some()) {
        let twice: Vec<InstrId> = all.iter().flat_map(|x| [x[n], x[n]]).collect();
        let compared = *lanes(e, comparator, &twice, &kept)?.first()?;
        let own = *e.instr(compared).operands().first()?;
        keys.push(integer_key(e, own, &kept)?);
    }
    for round in 0..count {
        for left in (round % 2..count - 1).step_by(2) {
            let exchange = match of {
                Some((direction, true)) => e.compare(direction, keys[left + 1], keys[left])?,
                Some((direction, false)) => e.compare(direction, keys[left], keys[left + 1])?,
                None => {
                    let both: Vec<InstrId> = all.iter().flat_map(|x| [x[left + 1], x[left]]).collect();
                    *lanes(e, comparator, &both, &kept)?.first()?
                }
            };
            let more = if of.is_some() { Some(&mut keys) } else { None };
            for x in all.iter_mut().chain(more) {
                let (a, b) = (x[left], x[left + 1]);
                x[left] = e.select(exchange, b, a)?;
                x[left + 1] = e.select(exchange, a, b)?;
            }
        }
    }
    let mut one = dims.clone();
    one[dim] = 1;
    let mut sorted = Vec::with_capacity(all.len());
    for elements in all {
        let parts = elements.into_iter().map(|x| e.reshape(x, &one)).collect::<Option<Vec<_>>>()?;
        sorted.push(e.concatenate(&parts, dim as i64)?);
    }
    result(e, &sorted)
}

/// For a comparator that compares a function of one row with the same function of the other: the direction,
/// and whether the first row's is on the left.
fn key(e: &Edit<'_>, comparator: ComputationId) -> Option<(Direction, bool)> {
    let root = e.instr(e.module.root(comparator));
    let direction = root.attrs.direction().filter(|_| root.opcode == Opcode::Compare)?;
    let mut pending = vec![*root.operands().first()?];
    let mut first = None;
    while let Some(id) = pending.pop() {
        let instr = e.instr(id);
        if instr.opcode == Opcode::Parameter {
            first = Some(instr.attrs.int(AttrKey::ParameterNumber)? % 2 == 0);
        }
        pending.extend(instr.operands());
    }
    Some((*direction, first?))
}

/// Integers in the order of a key: for floats that of TOTALORDER.
fn integer_key(e: &mut Edit<'_>, key: InstrId, kept: &[i64]) -> Option<InstrId> {
    let ty = e.array(key)?.element_type;
    if !ty.is_float() {
        return Some(key);
    }
    let of = facts::signed_pattern_type(ty)?;
    let bits = e.bits_as(key, of)?;
    let filled = |e: &mut Edit<'_>, bits: u128| {
        let scalar = e.scalar_bits(of, bits);
        e.fill_dims(scalar, kept)
    };
    let most = filled(e, u128::from(of.bits()) - 1)?;
    let magnitude = filled(e, (1 << (of.bits() - 1)) - 1)?;
    let sign = e.binary(Opcode::ShiftRightArithmetic, bits, most)?;
    let flip = e.binary(Opcode::And, sign, magnitude)?;
    e.binary(Opcode::Xor, bits, flip)
}
