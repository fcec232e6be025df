//! Simplification of reshapes, transposes, copies, bitcasts and conversions: no-ops, and two in a row as one.
//!
//! Arithmetic on a reshape of rows that are concatenated from short parts is done on the rows.
//!
//! All of them but conversions (and that arithmetic, which is the same on each element) move elements and
//! never read them. A conversion to the same type copies; for the others see [`convert`].

use hlo::attrs::AttrKey;
use hlo::{ElementType, InstrId, Module, Opcode, Shape};
use rustc_hash::FxHashSet;

use super::PassCx;
use super::edit::{Edit, each_outside_folds};
use super::facts::{MIN_PART_WIDTH, dimension, is_ieee, nan_is_canonical};

pub(super) fn run(module: &mut Module, cx: &mut PassCx<'_>) -> u64 {
    each_outside_folds(module, cx.fuel, |e| match e.at().opcode {
        Opcode::Reshape => reshape(e),
        Opcode::Transpose => transpose(e),
        Opcode::Copy => Some(e.operand(0)?),
        Opcode::Bitcast => bitcast(e),
        Opcode::BitcastConvert => bits(e),
        Opcode::Convert => convert(e).or_else(|| of_rows(e)),
        opcode if opcode.is_elementwise() => of_rows(e),
        _ => None,
    })
}

/// The maximum length of a chain that is looked through.
const MAX_CHAIN: usize = 64;

/// Arithmetic on rows that were concatenated from short parts and then reshaped to longer rows: moved before
/// the reshape, where vector lanes can hold the same part of each row.
fn of_rows(e: &mut Edit<'_>) -> Option<InstrId> {
    if e.at().opcode == Opcode::BitcastConvert {
        return None;
    }
    let &reshaped = e.at().operands().iter().find(|&&o| e.instr(o).opcode == Opcode::Reshape)?;
    let rows = *e.instr(reshaped).operands().first()?;
    let dims = e.array(rows)?.dims.clone();
    let (own, ty) = (e.array(e.id())?.dims.clone(), e.at().shape.element_type()?);
    let row = |dims: &[i64]| dims.iter().rev().find(|&&n| n != 1).copied().unwrap_or(1);
    let everywhere = e.module.users(reshaped).iter().all(|u| e.instr(u.user).opcode.is_elementwise());
    let same_type = e.array(rows)?.element_type == e.array(reshaped)?.element_type;
    if !everywhere || !same_type || row(&own) <= row(&dims) || !is_concat_of_short_parts(e, rows) {
        return None;
    }
    let operands = e.at().operands().to_vec();
    let mut all = Vec::with_capacity(operands.len());
    for o in operands {
        let instr = e.instr(o);
        all.push(match instr.opcode {
            Opcode::Reshape => {
                let from = *instr.operands().first()?;
                let same =
                    e.array(from)?.dims == dims && e.array(from)?.element_type == e.array(o)?.element_type;
                same.then_some(from)?
            }
            _ if instr.shape.is_scalar() => o,
            Opcode::Broadcast => {
                let scalar = *instr.operands().first().filter(|&&s| e.instr(s).shape.is_scalar())?;
                e.fill_dims(scalar, &dims)?
            }
            _ => return None,
        });
    }
    let (opcode, attrs) = (e.at().opcode, e.at().attrs.clone());
    let made = e.shaped(opcode, Shape::array(ty, &dims), &all, attrs)?;
    e.reshape(made, &own)
}

/// Whether rows are a concatenation of short parts, or arithmetic on one.
fn is_concat_of_short_parts(e: &Edit<'_>, rows: InstrId) -> bool {
    let Some(dims) = e.array(rows).map(|a| &a.dims) else { return false };
    let inner = dims.iter().rposition(|&n| n != 1);
    let (mut pending, mut seen) = (vec![rows], FxHashSet::default());
    while let Some(at) = pending.pop().filter(|_| seen.len() < MAX_CHAIN) {
        let instr = e.instr(at);
        if instr.opcode.is_elementwise() {
            let same = |o: &InstrId| e.array(*o).is_some_and(|a| a.dims == *dims);
            pending.extend(instr.operands().iter().copied().filter(|o| same(o) && seen.insert(*o)));
        } else if instr.opcode == Opcode::Concatenate {
            let along = dimension(instr);
            let short = |&o: &InstrId| {
                along.and_then(|d| e.array(o)?.dims.get(d).copied()).is_some_and(|n| n < MIN_PART_WIDTH)
            };
            if along == inner && instr.operands().iter().all(short) {
                return true;
            }
        }
    }
    false
}

fn reshape(e: &mut Edit<'_>) -> Option<InstrId> {
    let x = e.operand(0)?;
    let (from, to) = (e.array(x)?, e.array(e.id())?);
    // A change of type on the way is a conversion.
    if from.element_type != to.element_type {
        return None;
    }
    if from.dims == to.dims {
        return Some(x);
    }
    let inner = e.instr(x);
    let y = *inner.operands().first()?;
    if inner.opcode == Opcode::Reshape && e.array(y)?.element_type == to.element_type {
        let dims = to.dims.clone();
        return if e.array(y)?.dims == dims { Some(y) } else { e.reshape(y, &dims) };
    }
    None
}

fn transpose(e: &mut Edit<'_>) -> Option<InstrId> {
    let x = e.operand(0)?;
    let permutation = e.at().attrs.ints(AttrKey::Dimensions)?.to_vec();
    let (from, to) = (e.array(x)?, e.array(e.id())?);
    if from.element_type != to.element_type {
        return None;
    }
    if permutation.iter().enumerate().all(|(i, &p)| p == i as i64) {
        return Some(x);
    }
    let to = to.dims.clone();
    // Dimensions of size 1 may be anywhere, so where only these move the elements keep their order.
    let long = |&&p: &&i64| usize::try_from(p).is_ok_and(|p| from.dims.get(p).is_some_and(|&d| d != 1));
    if permutation.iter().filter(long).is_sorted() {
        return e.reshape(x, &to);
    }
    let inner = e.instr(x);
    let y = *inner.operands().first()?;
    if inner.opcode == Opcode::Transpose && e.array(y)?.element_type == from.element_type {
        let first = inner.attrs.ints(AttrKey::Dimensions)?.to_vec();
        let both: Option<Vec<i64>> =
            permutation.iter().map(|&p| first.get(usize::try_from(p).ok()?).copied()).collect();
        return e.transpose(y, &both?);
    }
    None
}

/// The same memory with the same layout: the same elements. Without layouts both are row-major, and it is a
/// reshape.
fn bitcast(e: &mut Edit<'_>) -> Option<InstrId> {
    let x = e.operand(0)?;
    let (from, to) = (e.array(x)?, e.array(e.id())?);
    if from == to {
        return Some(x);
    }
    let plain =
        |a: &hlo::ArrayShape| a.layout.as_ref().is_none_or(|l| **l == hlo::Layout::row_major(a.rank()));
    let same_number = from.checked_elements() == to.checked_elements();
    if from.element_type == to.element_type && same_number && plain(from) && plain(to) {
        let dims = to.dims.clone();
        return e.reshape(x, &dims);
    }
    None
}

/// To the same type, or there and back at the same width: the same bits.
fn bits(e: &mut Edit<'_>) -> Option<InstrId> {
    let x = e.operand(0)?;
    let to = e.array(e.id())?;
    if e.array(x)? == to {
        return Some(x);
    }
    let inner = e.instr(x);
    let y = *inner.operands().first()?;
    let same_width = e.array(y)?.element_type.bits() == e.array(x)?.element_type.bits();
    // A predicate keeps one bit of its byte.
    let pred = [y, x].iter().any(|&i| e.array(i).is_some_and(|a| a.element_type == ElementType::Pred));
    (inner.opcode == Opcode::BitcastConvert && same_width && !pred && e.array(y)?.same_dims(to)).then_some(y)
}

/// - To the same type: a copy, NaN payloads included.
/// - `a -> b -> c` of integers is `a -> c` where `c` is no wider than `b` and `b` no narrower than `a` (the
///   low bits of `c` are those of the extended `a`), or where `b` holds every value of `a`.
/// - `a -> b -> c` of floats where `b` holds every value of `a` is `a -> c`: the first rounds nothing, and
///   NaNs are canonical at the end of both. Back to `a` that is `a` itself only if `a` has no other NaN.
fn convert(e: &mut Edit<'_>) -> Option<InstrId> {
    let x = e.operand(0)?;
    let (b, c) = (e.array(x)?.element_type, e.array(e.id())?.element_type);
    if b == c {
        return Some(x);
    }
    let inner = e.instr(x);
    if inner.opcode != Opcode::Convert {
        return None;
    }
    let y = *inner.operands().first()?;
    let a = e.array(y)?.element_type;
    let whole = |ty: ElementType| ty.is_integer();
    if [a, b, c].iter().all(|&ty| whole(ty)) {
        let low_bits = b.bits() >= a.bits() && c.bits() <= b.bits();
        if !low_bits && !b.holds(a) {
            return None;
        }
        return if a == c { Some(y) } else { e.convert(y, c) };
    }
    if [a, b, c].iter().all(|&ty| is_ieee(ty)) && b.holds(a) {
        if a == c {
            return nan_is_canonical(e.module, y).then_some(y);
        }
        return e.convert(y, c);
    }
    None
}
