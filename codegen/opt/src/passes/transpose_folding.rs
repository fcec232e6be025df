//! Folds transposes and widening conversions into the contractions that read or follow them.
//!
//! A `dot` names its dimensions, so a permuted operand is the operand with other dimension numbers; free
//! dimensions must stay in order, because the result's order follows them. Terms are added in the order in
//! which contracting dimensions are listed, which stays. A transpose of the result that puts the right
//! operand's free dimensions before the left's is the product with swapped operands; products commute to the
//! bit (NaNs are canonical). Operands are converted to the result's type before they are multiplied
//! (SEMANTICS.md, "Sums"), so a conversion to that type from a narrower float is done anyway.

use hlo::attrs::{AttrKey, AttrValue, Attrs};
use hlo::{InstrId, Module, Opcode, Shape};

use super::PassCx;
use super::edit::{Edit, each_outside_folds, ints};

pub(super) fn run(module: &mut Module, cx: &mut PassCx<'_>) -> u64 {
    let mut applied = 0;
    // One operand at a time, and what its operand then is.
    loop {
        let n = each_outside_folds(module, cx.fuel, |e| match e.at().opcode {
            Opcode::Dot => (0..2).find_map(|side| transposed(e, side).or_else(|| widened(e, side))),
            Opcode::Transpose => swapped(e),
            _ => None,
        });
        applied += n;
        if n == 0 {
            return applied;
        }
    }
}

const BATCH: [AttrKey; 2] = [AttrKey::LhsBatchDims, AttrKey::RhsBatchDims];
const CONTRACTING: [AttrKey; 2] = [AttrKey::LhsContractingDims, AttrKey::RhsContractingDims];

/// The free dimensions of a side, in order.
fn free(attrs: &Attrs, side: usize, rank: usize) -> Vec<i64> {
    let (batch, contracting) = (attrs.ints_or_empty(BATCH[side]), attrs.ints_or_empty(CONTRACTING[side]));
    (0..rank as i64).filter(|d| !batch.contains(d) && !contracting.contains(d)).collect()
}

fn plain_dot(e: &Edit<'_>, id: InstrId) -> bool {
    let instr = e.instr(id);
    instr.opcode == Opcode::Dot && instr.operands().len() == 2 && e.array(id).is_some()
}

fn transposed(e: &mut Edit<'_>, side: usize) -> Option<InstrId> {
    if !plain_dot(e, e.id()) {
        return None;
    }
    let operands: [InstrId; 2] = e.operands()?;
    let transpose = e.instr(operands[side]);
    if transpose.opcode != Opcode::Transpose {
        return None;
    }
    let x = *transpose.operands().first()?;
    if e.array(x)?.element_type != e.array(operands[side])?.element_type {
        return None;
    }
    let permutation = transpose.attrs.ints(AttrKey::Dimensions)?.to_vec();
    let to = |d: &i64| permutation.get(usize::try_from(*d).ok()?).copied();
    let attrs = e.at().attrs.clone();
    let kept: Vec<i64> = free(&attrs, side, permutation.len()).iter().map(to).collect::<Option<_>>()?;
    if !kept.is_sorted() {
        return None;
    }
    let mut new = attrs.clone();
    for key in [BATCH[side], CONTRACTING[side]] {
        if let Some(list) = attrs.ints(key) {
            new.set(key, ints(&list.iter().map(to).collect::<Option<Vec<i64>>>()?));
        }
    }
    let mut with = operands;
    with[side] = x;
    let shape = e.at().shape.clone();
    e.shaped(Opcode::Dot, shape, &with, new)
}

fn widened(e: &mut Edit<'_>, side: usize) -> Option<InstrId> {
    if !plain_dot(e, e.id()) {
        return None;
    }
    let operands: [InstrId; 2] = e.operands()?;
    let convert = e.instr(operands[side]);
    if convert.opcode != Opcode::Convert {
        return None;
    }
    let x = *convert.operands().first()?;
    let (from, ty) = (e.array(x)?.element_type, e.array(e.id())?.element_type);
    let other = e.array(operands[1 - side])?.element_type;
    // The fast kernels are those of equal types, so both operands must have the same.
    let twin = e.instr(operands[1 - side]);
    let twin_from = match (twin.opcode, twin.operands()) {
        (Opcode::Convert, &[y]) => e.array(y)?.element_type,
        _ => other,
    };
    let widening = from.is_float() && ty.is_float() && from.bits() < ty.bits();
    if !widening
        || !ty.holds(from)
        || e.array(operands[side])?.element_type != ty
        || twin_from != from
        || e.at().attrs.precisions().is_some_and(|p| p.contains(&hlo::attrs::Precision::PackedNibble))
    {
        return None;
    }
    let (attrs, shape) = (e.at().attrs.clone(), e.at().shape.clone());
    let mut with = operands;
    with[side] = x;
    e.shaped(Opcode::Dot, shape, &with, attrs)
}

fn swapped(e: &mut Edit<'_>) -> Option<InstrId> {
    let dot = e.operand(0)?;
    if !plain_dot(e, dot)
        || e.module.users(dot).len() != 1
        || e.array(dot)?.element_type != e.array(e.id())?.element_type
    {
        return None;
    }
    let permutation = e.at().attrs.ints(AttrKey::Dimensions)?.to_vec();
    let &[l, r] = e.instr(dot).operands() else { return None };
    let attrs = e.instr(dot).attrs.clone();
    let batch = attrs.ints_or_empty(BATCH[0]).len() as i64;
    let m = free(&attrs, 0, e.array(l)?.rank()).len() as i64;
    let n = free(&attrs, 1, e.array(r)?.rank()).len() as i64;
    let wanted = (0..batch).chain(batch + m..batch + m + n).chain(batch..batch + m);
    if m == 0 || n == 0 || !permutation.iter().copied().eq(wanted) {
        return None;
    }
    let mut new = attrs.clone();
    for keys in [BATCH, CONTRACTING] {
        for side in 0..2 {
            match attrs.get(keys[1 - side]) {
                Some(value) => new.set(keys[side], value.clone()),
                None => {
                    new.remove(keys[side]);
                }
            }
        }
    }
    if let Some(AttrValue::Precisions(p)) = attrs.get(AttrKey::OperandPrecision) {
        new.set(AttrKey::OperandPrecision, AttrValue::Precisions(p.iter().rev().copied().collect()));
    }
    let shape: Shape = e.at().shape.clone();
    e.shaped(Opcode::Dot, shape, &[r, l], new)
}
