//! Simplification of slices, concatenations, padding, broadcasts and reversals: no-ops, and two in a row as
//! one. They copy elements and never read them.

use hlo::attrs::{AttrKey, PaddingDim, SliceDim};
use hlo::{InstrId, Module, Opcode, Use};

use super::PassCx;
use super::edit::{Edit, each_outside_folds};
use super::facts::{dimension, long_dims};

pub(super) fn run(module: &mut Module, cx: &mut PassCx<'_>) -> u64 {
    each_outside_folds(module, cx.fuel, |e| {
        let opcode = e.at().opcode;
        let moves = matches!(
            opcode,
            Opcode::Slice
                | Opcode::Concatenate
                | Opcode::Pad
                | Opcode::Broadcast
                | Opcode::Reverse
                | Opcode::Reshape
                | Opcode::Transpose
                | Opcode::DynamicSlice
                | Opcode::Gather
        );
        if !moves || mixed(e) {
            return None;
        }
        match opcode {
            Opcode::Slice => slice(e),
            Opcode::Concatenate => concatenate(e),
            Opcode::Pad => pad(e),
            Opcode::Broadcast => broadcast(e),
            Opcode::Reverse => reverse(e),
            Opcode::Reshape => reshape_of_broadcast(e),
            Opcode::Transpose => transpose_of_broadcast(e),
            _ => None,
        }
        .or_else(|| repeated(e))
    })
}

/// Whether a result has another type than the operand that it was copied from: a conversion too.
fn mixed(e: &Edit<'_>) -> bool {
    let ty = e.at().shape.element_type();
    let data = if e.at().opcode == Opcode::Concatenate { e.at().operands() } else { &e.at().operands()[..1] };
    ty.is_none()
        || data.iter().any(|&o| e.array(o).map(|a| a.element_type) != ty)
        || e.array(e.id()).is_none()
}

/// Movement of a splat is a splat.
fn repeated(e: &mut Edit<'_>) -> Option<InstrId> {
    let x = e.operand(0)?;
    if e.at().opcode == Opcode::Broadcast
        || e.at().opcode == Opcode::Concatenate
        || e.at().opcode == Opcode::Pad
    {
        return None;
    }
    let inner = e.instr(x);
    if inner.opcode != Opcode::Broadcast {
        return None;
    }
    let scalar = *inner.operands().first().filter(|&&o| e.instr(o).shape.is_scalar())?;
    let dims = e.array(e.id())?.dims.clone();
    // An index into it may be anything, but it does not trap: it is clamped.
    e.fill_dims(scalar, &dims)
}

fn slice(e: &mut Edit<'_>) -> Option<InstrId> {
    let x = e.operand(0)?;
    if e.array(x)?.dims == e.array(e.id())?.dims {
        // As many elements along each dimension are all of them, in their order.
        return Some(x);
    }
    let outer = e.at().attrs.slices()?.to_vec();
    let inner = e.instr(x);
    if inner.opcode == Opcode::Slice {
        let y = *inner.operands().first()?;
        let first = inner.attrs.slices()?.to_vec();
        if first.len() != outer.len() || e.array(y)?.element_type != e.array(x)?.element_type {
            return None;
        }
        let both: Option<Vec<SliceDim>> = first.iter().zip(&outer).map(|(a, b)| composed(*a, *b)).collect();
        return e.slice(y, &both?);
    }
    if inner.opcode == Opcode::Concatenate {
        return slice_of_concatenate(e, x, &outer);
    }
    if inner.opcode == Opcode::Broadcast {
        return slice_of_broadcast(e, x, &outer);
    }
    None
}

/// A slice of a broadcast is a broadcast of a slice.
fn slice_of_broadcast(e: &mut Edit<'_>, x: InstrId, slices: &[SliceDim]) -> Option<InstrId> {
    let y = *e.instr(x).operands().first()?;
    let mapping = e.instr(x).attrs.ints_or_empty(AttrKey::Dimensions).to_vec();
    if mapping.is_empty() || e.array(y)?.element_type != e.array(x)?.element_type {
        return None;
    }
    let dims = e.array(e.id())?.dims.clone();
    let own: Option<Vec<SliceDim>> =
        mapping.iter().map(|&d| slices.get(usize::try_from(d).ok()?).copied()).collect();
    let own = own?;
    let all = own.iter().zip(&e.array(y)?.dims).all(|(s, &d)| *s == super::edit::whole(d));
    let y = if all { y } else { e.slice(y, &own)? };
    e.broadcast(y, &dims, &mapping)
}

/// A reshape that adds or drops dimensions of size 1 commutes with a broadcast.
fn reshape_of_broadcast(e: &mut Edit<'_>) -> Option<InstrId> {
    let x = e.operand(0)?;
    let inner = e.instr(x);
    let y = *inner.operands().first().filter(|_| inner.opcode == Opcode::Broadcast)?;
    let dim_map = long_dims(&e.array(x)?.dims, &e.array(e.id())?.dims)?;
    if e.array(y)?.element_type != e.array(x)?.element_type || e.array(y)?.dims.contains(&1) {
        return None;
    }
    let mapping = inner.attrs.ints_or_empty(AttrKey::Dimensions);
    let mapping: Option<Vec<i64>> =
        mapping.iter().map(|&d| dim_map.get(usize::try_from(d).ok()?).copied().flatten()).collect();
    let dims = e.array(e.id())?.dims.clone();
    e.broadcast(y, &dims, &mapping?)
}

/// A permutation of a broadcast's result, if the operand's dimensions keep their order.
fn transpose_of_broadcast(e: &mut Edit<'_>) -> Option<InstrId> {
    let x = e.operand(0)?;
    let inner = e.instr(x);
    let y = *inner.operands().first().filter(|_| inner.opcode == Opcode::Broadcast)?;
    let permutation = e.at().attrs.ints(AttrKey::Dimensions)?;
    let mapping = inner.attrs.ints_or_empty(AttrKey::Dimensions);
    let position = |d: &i64| Some(permutation.iter().position(|p| p == d)? as i64);
    let mapping: Option<Vec<i64>> = mapping.iter().map(position).collect();
    let mapping = mapping.filter(|m| m.is_sorted())?;
    if e.array(y)?.element_type != e.array(x)?.element_type {
        return None;
    }
    let dims = e.array(e.id())?.dims.clone();
    e.broadcast(y, &dims, &mapping)
}

/// Element `i` of the outer one is `a.start + (b.start + i * b.stride) * a.stride` of the array.
fn composed(a: SliceDim, b: SliceDim) -> Option<SliceDim> {
    let start = b.start.checked_mul(a.stride)?.checked_add(a.start)?;
    let stride = a.stride.checked_mul(b.stride)?;
    let n = (b.limit - b.start + b.stride - 1).div_euclid(b.stride);
    let limit =
        if n == 0 { start } else { (n - 1).checked_mul(stride)?.checked_add(start)?.checked_add(1)? };
    Some(SliceDim { start, limit, stride })
}

/// The minimum number of slices across the parts of a concatenation that makes it worth materializing: a
/// stencil's.
const MIN_CROSSING_SLICES: usize = 4;
/// Concatenations with more parts or users are not analyzed: it would take as long as all of the module.
const MAX_PARTS_AND_USERS: (usize, usize) = (8, 256);

/// Whether a part is computed for a materialized concatenation alone, and would be recomputed or materialized
/// too if something else read it.
fn is_made_for(module: &Module, part: InstrId, whole: InstrId) -> bool {
    let instr = module.instr(part);
    let stored = || {
        let (users, slices) =
            (module.users(whole), |user: &Use| module.instr(user.user).opcode == Opcode::Slice);
        let across = |user: &&Use| slice_crosses_parts(module, user.user, whole);
        let few = module.instr(whole).operands().len() <= MAX_PARTS_AND_USERS.0
            && users.len() <= MAX_PARTS_AND_USERS.1;
        module.root(module.instr(whole).parent()) == whole
            || !users.iter().all(slices)
            || few && users.iter().filter(across).take(MIN_CROSSING_SLICES).count() == MIN_CROSSING_SLICES
    };
    let alone = || module.users(part).iter().all(|user| user.user == whole);
    match instr.opcode {
        // Edges of padding, for instance, are taken from it, too.
        Opcode::Concatenate | Opcode::Pad => stored(),
        Opcode::Copy => false,
        opcode => opcode.is_elementwise() && alone() && stored(),
    }
}

/// Whether a slice takes elements of several parts of a concatenation.
fn slice_crosses_parts(module: &Module, slice: InstrId, whole: InstrId) -> bool {
    let taken = |d: usize| module.instr(slice).attrs.slices()?.get(d).copied();
    dimension(module.instr(whole))
        .and_then(taken)
        .is_some_and(|taken| taken.start < taken.limit && part_with(module, whole, taken).is_none())
}

/// The last element that a strided slice takes, which may be before its limit.
fn last_taken(SliceDim { start, limit, stride }: SliceDim) -> i64 {
    start + (limit - start - 1).div_euclid(stride) * stride
}

/// The part of a concatenation that contains everything that a slice takes along its dimension: its index,
/// and where it begins.
fn part_with(module: &Module, whole: InstrId, taken: SliceDim) -> Option<(usize, i64)> {
    let d = dimension(module.instr(whole))?;
    let last = last_taken(taken);
    let mut before = 0;
    for (k, &part) in module.instr(whole).operands().iter().enumerate() {
        let end = before + *module.instr(part).shape.as_array()?.dims.get(d)?;
        if taken.start >= before && last < end {
            return Some((k, before));
        }
        before = end;
    }
    None
}

/// A slice of a single part.
fn slice_of_concatenate(e: &mut Edit<'_>, x: InstrId, slices: &[SliceDim]) -> Option<InstrId> {
    let d = dimension(e.instr(x))?;
    let taken = *slices.get(d)?;
    if taken.limit <= taken.start {
        return None;
    }
    let (k, before) = part_with(e.module, x, taken)?;
    let parts = &e.instr(x).operands()[..=k];
    let ty = e.array(x)?.element_type;
    if parts.iter().any(|&part| e.array(part).is_none_or(|a| a.element_type != ty)) {
        return None;
    }
    let part = parts[k];
    if is_made_for(e.module, part, x) {
        return None;
    }
    let mut slices = slices.to_vec();
    slices[d] =
        SliceDim { start: taken.start - before, limit: last_taken(taken) - before + 1, stride: taken.stride };
    e.slice(part, &slices)
}

/// Without empty parts, and with nested concatenations flattened.
fn concatenate(e: &mut Edit<'_>) -> Option<InstrId> {
    let dim = *e.at().attrs.ints(AttrKey::Dimensions)?.first()?;
    let d = usize::try_from(dim).ok()?;
    let mut parts = Vec::new();
    for &part in e.at().operands() {
        let instr = e.instr(part);
        if *e.array(part)?.dims.get(d)? == 0 {
            continue;
        }
        let same = |o: &InstrId| e.array(*o).map(|a| a.element_type) == e.array(part).map(|a| a.element_type);
        if instr.opcode == Opcode::Concatenate
            && instr.attrs.ints(AttrKey::Dimensions) == Some(&[dim])
            && instr.operands().iter().all(same)
        {
            parts.extend_from_slice(instr.operands());
        } else {
            parts.push(part);
        }
    }
    let mut joined: Vec<InstrId> = Vec::with_capacity(parts.len());
    for part in parts {
        match joined.last().and_then(|&last| joint(e, last, part, d)) {
            Some(both) => *joined.last_mut()? = both,
            None => joined.push(part),
        }
    }
    let parts = joined;
    match parts[..] {
        [] => None,
        [one] => Some(one),
        _ if parts == e.at().operands() => None,
        _ => e.concatenate(&parts, dim),
    }
}

/// Two adjacent slices of the same array.
fn joint(e: &mut Edit<'_>, a: InstrId, b: InstrId, d: usize) -> Option<InstrId> {
    let (first, second) = (e.instr(a), e.instr(b));
    if first.opcode != Opcode::Slice
        || second.opcode != Opcode::Slice
        || first.operands() != second.operands()
    {
        return None;
    }
    let x = *first.operands().first()?;
    if e.array(x)?.element_type != e.array(a)?.element_type {
        return None;
    }
    let mut both = first.attrs.slices()?.to_vec();
    let (one, other) = (*both.get(d)?, *second.attrs.slices()?.get(d)?);
    let end = one.start + (one.limit - one.start + one.stride - 1).div_euclid(one.stride) * one.stride;
    let goes_on = other.start == end && other.stride == one.stride;
    both[d].limit = other.limit;
    let others =
        (0..both.len()).all(|i| i == d || Some(&both[i]) == second.attrs.slices().and_then(|s| s.get(i)));
    (goes_on && others).then(|| e.slice(x, &both))?
}

/// Padding of nothing, or cropping alone (a slice).
fn pad(e: &mut Edit<'_>) -> Option<InstrId> {
    let x = e.operand(0)?;
    let dims = e.array(x)?.dims.clone();
    let none = e.at().attrs.padding()?.iter().zip(&dims).all(|(p, &d)| {
        // Interior padding does not matter with fewer than two elements.
        *p == PaddingDim { interior: p.interior, ..PaddingDim::default() } && (p.interior == 0 || d < 2)
    });
    if none {
        return Some(x);
    }
    let cut = |(p, &d): (&PaddingDim, &i64)| {
        (p.low <= 0 && p.high <= 0 && p.interior == 0).then_some(SliceDim {
            start: -p.low,
            limit: d + p.high,
            stride: 1,
        })
    };
    let slices: Option<Vec<SliceDim>> = e.at().attrs.padding()?.iter().zip(&dims).map(cut).collect();
    let slices = slices.filter(|s| s.iter().all(|s| s.start <= s.limit))?;
    e.slice(x, &slices)
}

fn broadcast(e: &mut Edit<'_>) -> Option<InstrId> {
    let x = e.operand(0)?;
    let mapping = e.at().attrs.ints_or_empty(AttrKey::Dimensions).to_vec();
    if e.array(x)?.dims == e.array(e.id())?.dims && mapping.iter().enumerate().all(|(i, &m)| m == i as i64) {
        return Some(x);
    }
    let inner = e.instr(x);
    let y = *inner.operands().first()?;
    if e.array(y)?.element_type != e.array(x)?.element_type {
        return None;
    }
    if inner.opcode == Opcode::Reshape {
        // Dimensions of size 1 need no reshape to be added.
        let dims = e.array(e.id())?.dims.clone();
        let dim_map = long_dims(&e.array(y)?.dims, &e.array(x)?.dims)?;
        let mapping: Option<Vec<i64>> =
            dim_map.into_iter().map(|p| mapping.get(usize::try_from(p?).ok()?).copied()).collect();
        return e.broadcast(y, &dims, &mapping?);
    }
    if inner.opcode != Opcode::Broadcast {
        return None;
    }
    let first = inner.attrs.ints_or_empty(AttrKey::Dimensions).to_vec();
    let both: Option<Vec<i64>> =
        first.iter().map(|&f| mapping.get(usize::try_from(f).ok()?).copied()).collect();
    let dims = e.array(e.id())?.dims.clone();
    e.broadcast(y, &dims, &both?)
}

/// Reversal of dimensions of size 1 is a no-op; twice is none.
fn reverse(e: &mut Edit<'_>) -> Option<InstrId> {
    let x = e.operand(0)?;
    let sizes = e.array(x)?.dims.clone();
    let dims = e.at().attrs.ints(AttrKey::Dimensions)?.to_vec();
    let long = |&d: &i64| usize::try_from(d).is_ok_and(|d| sizes.get(d).is_some_and(|&n| n > 1));
    let mut needed: Vec<i64> = dims.iter().copied().filter(long).collect();
    let inner = e.instr(x);
    if inner.opcode == Opcode::Reverse {
        let y = *inner.operands().first()?;
        let first: Vec<i64> = inner.attrs.ints(AttrKey::Dimensions)?.to_vec();
        if e.array(y)?.element_type == e.array(x)?.element_type {
            let once =
                |a: &[i64], b: &[i64]| a.iter().copied().filter(|d| !b.contains(d)).collect::<Vec<_>>();
            let mut both = once(&needed, &first);
            both.extend(once(&first, &needed).iter().filter(|d| long(d)));
            both.sort_unstable();
            return e.reverse(y, &both);
        }
    }
    if needed.len() == dims.len() {
        return None;
    }
    needed.sort_unstable();
    e.reverse(x, &needed)
}
