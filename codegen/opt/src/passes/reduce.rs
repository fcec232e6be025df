//! Simplification of reductions: nothing, or only one element, to fold; stacked operands; several in one; two
//! in a row.
//!
//! - Of one element `x` a reduction gives `f(init, x)`, a sum too: the exact value of two terms, rounded
//!   once, is their addition.
//! - Dimensions of size 1 change neither the elements nor their order.
//! - A reduction over the dimension of a stack (concatenation) folds the parts one by one, in order: the
//!   stack is not materialized. Sums of floats stay.
//! - A short last dimension whose elements others slice is unrolled into slices, if the order is not
//!   observable.
//! - A variadic reduction of independent operands is split, if the order is not observable: separate loops
//!   need not keep it.
//! - A reduction of a transposed array is done in storage order ([`reduce_order`]).
//! - Two reductions in a row are merged if the order of the terms is not observable (integers, logic, maximum
//!   and minimum, which canonicalize NaNs and order zeros) and the first starts from the neutral element.
//!   Sums of floats round in between, so they stay.

use hlo::attrs::{AttrKey, AttrValue, SliceDim, WindowDim};
use hlo::{ComputationId, ElementType, InstrId, Module, Opcode, Use};

use super::calls::lanes;
use super::edit::{Edit, each_outside_folds, ints, whole};
use super::facts::{is_ieee, splat};
use super::{PassCx, reduce_order, stacks, windows};

pub(super) fn run(module: &mut Module, cx: &mut PassCx<'_>) -> u64 {
    each_outside_folds(module, cx.fuel, |e| match e.at().opcode {
        Opcode::Reduce => reduce(e)
            .or_else(|| separate(e))
            .or_else(|| in_a_row(e))
            .or_else(|| stacks::folded(e))
            .or_else(|| as_slices(e))
            .or_else(|| reduce_order::in_storage_order(e)),
        Opcode::ReduceWindow => window(e)
            .or_else(|| windows::whole(e))
            .or_else(|| windows::padded(e))
            .or_else(|| windows::spread(e))
            .or_else(|| windows::tiles(e))
            .or_else(|| windows::unrolled(e)),
        _ => None,
    })
}

/// The result of what gives one array or a tuple of them.
pub(super) fn result(e: &mut Edit<'_>, parts: &[InstrId]) -> Option<InstrId> {
    match (parts, e.at().shape.as_tuple()) {
        (&[one], None) => Some(one),
        (parts, Some(_)) => e.tuple(parts),
        (_, None) => None,
    }
}

/// Operands and initial values, if their types are those of the results.
pub(super) fn inputs(e: &Edit<'_>) -> Option<(Vec<InstrId>, Vec<InstrId>)> {
    let operands = e.at().operands();
    let (arrays, inits) = operands.split_at(operands.len() / 2);
    let leaves = e.at().shape.leaves();
    let same = arrays.iter().zip(inits).zip(leaves).all(|((&x, &init), out)| {
        let ty = out.element_type();
        e.array(x).map(|a| a.element_type) == ty
            && e.array(init).is_some_and(|a| Some(a.element_type) == ty && a.dims.is_empty())
    });
    same.then(|| (arrays.to_vec(), inits.to_vec()))
}

fn reduce(e: &mut Edit<'_>) -> Option<InstrId> {
    let (arrays, inits) = inputs(e)?;
    let reduced = e.at().attrs.ints(AttrKey::Dimensions)?.to_vec();
    let dims = e.array(*arrays.first()?)?.dims.clone();
    let is_reduced = |d: usize| reduced.contains(&(d as i64));
    let kept: Vec<i64> = (0..dims.len()).filter(|&d| !is_reduced(d)).map(|d| dims[d]).collect();
    // All reduced dimensions have size 1.
    if (0..dims.len()).all(|d| !is_reduced(d) || dims[d] == 1) {
        let callee = e.at().attrs.computation(AttrKey::ToApply)?;
        let mut operands = Vec::with_capacity(2 * arrays.len());
        for &init in &inits {
            operands.push(e.fill_dims(init, &kept)?);
        }
        for &x in &arrays {
            operands.push(if kept[..] == dims[..] { x } else { e.reshape(x, &kept)? });
        }
        let parts = lanes(e, callee, &operands, &kept)?;
        return result(e, &parts);
    }
    if !(0..dims.len()).any(|d| is_reduced(d) && dims[d] == 1) {
        return None;
    }
    // Some have: the others are still reduced.
    let stays: Vec<usize> = (0..dims.len()).filter(|&d| !(is_reduced(d) && dims[d] == 1)).collect();
    let smaller: Vec<i64> = stays.iter().map(|&d| dims[d]).collect();
    let dimensions: Vec<i64> =
        (0i64..).zip(&stays).filter(|(_, d)| is_reduced(**d)).map(|(i, _)| i).collect();
    let mut operands = Vec::with_capacity(2 * arrays.len());
    for &x in &arrays {
        operands.push(e.reshape(x, &smaller)?);
    }
    operands.extend(&inits);
    let (attrs, shape) =
        (e.at().attrs.clone().with(AttrKey::Dimensions, ints(&dimensions)), e.at().shape.clone());
    e.shaped(Opcode::Reduce, shape, &operands, attrs)
}

/// The operation that a computation of two scalars of one type consists of, as the interpreter recognizes it:
/// through copies and calls, and conversions that do nothing.
pub fn operation(module: &Module, c: ComputationId) -> Option<(Opcode, ElementType)> {
    let root = module.instr(module.root(c));
    let ty = root.shape.element_type().filter(|_| root.shape.is_scalar())?;
    let &[Some(a), Some(b)] = module.computation(c).parameters() else { return None };
    let typed = [a, b]
        .iter()
        .all(|&p| module.instr(p).shape.is_scalar() && module.instr(p).shape.element_type() == Some(ty));
    if !typed {
        return None;
    }
    let operands = root.operands();
    let both = operands == [a, b] || operands == [b, a] && root.opcode.commutes(ty);
    if both && root.opcode.is_elementwise() {
        return Some((root.opcode, ty));
    }
    hlo_interp::binary_of(module, c).filter(|op| op.commutes(ty)).map(|op| (op, ty))
}

/// Whether terms may be folded in any order and grouping, to the bit.
pub(super) fn is_exact(opcode: Opcode, ty: ElementType) -> bool {
    let discrete = ty.is_integer() || ty == ElementType::Pred;
    match opcode {
        Opcode::And | Opcode::Or | Opcode::Xor => discrete,
        Opcode::Add | Opcode::Multiply => discrete,
        Opcode::Maximum | Opcode::Minimum => discrete || is_ieee(ty),
        _ => false,
    }
}

/// The bits of the neutral element of an operation of [`is_exact`].
pub(super) fn identity(opcode: Opcode, ty: ElementType) -> Option<u128> {
    let bits = ty.bits();
    let ones = if ty == ElementType::Pred { 1 } else { u128::MAX >> (128 - bits) };
    let sign = 1u128 << (bits - 1);
    // Infinity of a type of `is_ieee`: the exponent's bits.
    let infinity = || super::facts::float_bits(ty, f64::INFINITY);
    Some(match opcode {
        Opcode::Add | Opcode::Or | Opcode::Xor => 0,
        Opcode::Multiply => 1,
        Opcode::And => ones,
        Opcode::Maximum if is_ieee(ty) => infinity()? | sign,
        Opcode::Minimum if is_ieee(ty) => infinity()?,
        Opcode::Maximum if ty.is_signed_integer() => sign,
        Opcode::Minimum if ty.is_signed_integer() => ones ^ sign,
        Opcode::Maximum => 0,
        Opcode::Minimum => ones,
        _ => return None,
    })
}

/// Splits a variadic reduction of independent operands.
fn separate(e: &mut Edit<'_>) -> Option<InstrId> {
    let (arrays, inits) = inputs(e)?;
    let callee = e.at().attrs.computation(AttrKey::ToApply)?;
    let root = e.instr(e.module.root(callee));
    let parts = root.operands().to_vec();
    if arrays.len() < 2 || root.opcode != Opcode::Tuple || parts.len() != arrays.len() {
        return None;
    }
    let parameters = e.module.computation(callee).parameters().to_vec();
    let mut operations = Vec::with_capacity(parts.len());
    for (k, &part) in parts.iter().enumerate() {
        let (a, b) = ((*parameters.get(k)?)?, (*parameters.get(arrays.len() + k)?)?);
        let instr = e.instr(part);
        let ty = instr.shape.element_type()?;
        let own = instr.operands() == [a, b] || instr.operands() == [b, a] && instr.opcode.commutes(ty);
        if !own || !is_exact(instr.opcode, ty) {
            return None;
        }
        operations.push((instr.opcode, ty));
    }
    let mut made = Vec::with_capacity(parts.len());
    for ((&x, &init), (opcode, ty)) in arrays.iter().zip(&inits).zip(operations) {
        let region = e.region(opcode, ty)?;
        let attrs = e.at().attrs.clone().with(AttrKey::ToApply, AttrValue::Computation(region));
        let shape = e.at().shape.leaves().get(made.len()).map(|&s| s.clone())?;
        made.push(e.shaped(Opcode::Reduce, shape, &[x, init], attrs)?);
    }
    result(e, &made)
}

fn in_a_row(e: &mut Edit<'_>) -> Option<InstrId> {
    let [x, init] = e.operands()?;
    let inner = e.instr(x);
    let outer_type = e.array(e.id())?.element_type;
    if inner.opcode != Opcode::Reduce || e.module.users(x).len() != 1 {
        return None;
    }
    let &[y, first] = inner.operands() else { return None };
    let callee = inner.attrs.computation(AttrKey::ToApply)?;
    let (opcode, ty) = operation(e.module, callee)?;
    let same = operation(e.module, e.at().attrs.computation(AttrKey::ToApply)?)? == (opcode, ty);
    let typed = [y, first, x, init].iter().all(|&i| e.array(i).is_some_and(|a| a.element_type == ty));
    let nothing = splat(e.module, first).is_some_and(|(_, bits)| identity(opcode, ty) == Some(bits));
    if !same || !typed || outer_type != ty || !is_exact(opcode, ty) || !nothing {
        return None;
    }
    let in_inner = inner.attrs.ints(AttrKey::Dimensions)?.to_vec();
    let rank = e.array(y)?.rank() as i64;
    let left: Vec<i64> = (0..rank).filter(|d| !in_inner.contains(d)).collect();
    let mut dimensions = in_inner;
    for &d in e.at().attrs.ints(AttrKey::Dimensions)? {
        dimensions.push(*left.get(usize::try_from(d).ok()?)?);
    }
    dimensions.sort_unstable();
    let (attrs, shape) =
        (e.at().attrs.clone().with(AttrKey::Dimensions, ints(&dimensions)), e.at().shape.clone());
    e.shaped(Opcode::Reduce, shape, &[y, init], attrs)
}

/// The maximum number of elements that are folded as that many slices.
const MAX_SLICES: i64 = 4;

/// A short last dimension whose elements others slice (channels of a picture): all of it then is elementwise.
fn as_slices(e: &mut Edit<'_>) -> Option<InstrId> {
    let [x, init] = e.operands()?;
    let dims = e.array(x)?.dims.clone();
    let (&last, kept) = dims.split_last()?;
    let one = |s: &SliceDim| s.limit - s.start == 1;
    let channel = |u: &Use| {
        let user = e.instr(u.user);
        user.opcode == Opcode::Slice && user.attrs.slices().and_then(|s| s.last()).is_some_and(one)
    };
    let beside = e.module.users(x).iter().any(channel);
    if !(2..=MAX_SLICES).contains(&last)
        || e.at().attrs.ints(AttrKey::Dimensions)? != [kept.len() as i64]
        || !beside
    {
        return None;
    }
    inputs(e)?;
    let callee = e.at().attrs.computation(AttrKey::ToApply)?;
    let (opcode, ty) = operation(e.module, callee)?;
    if !is_exact(opcode, ty) {
        return None;
    }
    let mut folded = e.fill_dims(init, kept)?;
    for n in 0..last {
        let element = e.part(x, kept.len(), n, kept)?;
        folded = *lanes(e, callee, &[folded, element], kept)?.first()?;
    }
    Some(folded)
}

/// Windows of one element.
fn window(e: &mut Edit<'_>) -> Option<InstrId> {
    let (arrays, inits) = inputs(e)?;
    let dims = e.array(*arrays.first()?)?.dims.clone();
    let window = e.at().attrs.window()?.dims.clone();
    let alone = |w: &WindowDim| w.size == 1 && w.pad_low == 0 && w.pad_high == 0 && w.base_dilation == 1;
    if window.len() != dims.len() || !window.iter().all(alone) || dims.contains(&0) {
        return None;
    }
    let callee = e.at().attrs.computation(AttrKey::ToApply)?;
    let out = e.at().shape.leaves().first()?.as_array()?.dims.clone();
    let slices: Vec<SliceDim> =
        window.iter().zip(&dims).map(|(w, &d)| SliceDim { stride: w.stride, ..whole(d) }).collect();
    let mut operands = Vec::with_capacity(2 * arrays.len());
    for &init in &inits {
        operands.push(e.fill_dims(init, &out)?);
    }
    for &x in &arrays {
        operands.push(if out == dims { x } else { e.slice(x, &slices)? });
    }
    let parts = lanes(e, callee, &operands, &out)?;
    result(e, &parts)
}
