//! Data movement.

use hlo::attrs::{AttrKey, AttrValue, PaddingDim};
use hlo::{ElementType, InstrId, Opcode};

use super::edit::Edit;
use super::{Family, Needs, Row, row};

pub(super) const ROWS: &[Row] = &[
    row(
        "pad-low-sign",
        Family::Movement,
        "The low padding of a `pad` has the wrong sign.",
        "https://github.com/jax-ml/jax/issues/26888",
        &[Opcode::Pad],
        pad_low_sign,
    ),
    row(
        "pad-negative-edge-ignored",
        Family::Movement,
        "A `pad` that cuts at the low edge cuts at the high one.",
        "https://github.com/jax-ml/jax/pull/512",
        &[Opcode::Pad],
        pad_negative_edge_ignored,
    ),
    row(
        "concatenate-offsets-of-first",
        Family::Movement,
        "Operands of a `concatenate` lie at multiples of the size of the first one, later ones on top.",
        "https://github.com/jax-ml/jax/issues/2178",
        &[Opcode::Concatenate],
        concatenate_offsets_of_first,
    ),
    row(
        "transpose-by-inverse",
        Family::Layout,
        "A `transpose` uses the inverse of its permutation for the strides.",
        "https://github.com/jax-ml/jax/issues/129",
        &[Opcode::Transpose],
        transpose_by_inverse,
    ),
    row(
        "transpose-with-unit-dimension-is-bitcast",
        Family::Layout,
        "A `transpose` of an array with a dimension of size 1 keeps the elements where they are.",
        "https://github.com/openxla/xla/pull/18441",
        &[Opcode::Transpose],
        transpose_with_unit_dimension_is_bitcast,
    ),
    row(
        "reshape-of-transpose-is-reshape",
        Family::Layout,
        "A `reshape` of a `transpose` is a reshape of what was transposed.",
        "https://github.com/jax-ml/jax/pull/865",
        &[Opcode::Reshape],
        reshape_of_transpose_is_reshape,
    )
    .needing(Needs::CHAIN),
    row(
        "reshape-in-column-major",
        Family::Layout,
        "A `reshape` between several dimensions takes the elements in column-major order.",
        "https://github.com/jax-ml/jax/issues/23100",
        &[Opcode::Reshape],
        reshape_in_column_major,
    ),
    row(
        "broadcast-strides-swapped",
        Family::Layout,
        "A `broadcast` of two or more dimensions reads the last two with each other's strides.",
        "https://github.com/openxla/xla/issues/46897",
        &[Opcode::Broadcast],
        broadcast_strides_swapped,
    ),
];

fn padding_of(e: &Edit<'_>) -> Option<Vec<PaddingDim>> {
    e.is(Opcode::Pad)?;
    Some(e.me().attrs.padding()?.to_vec())
}

/// The pad once more, with other padding that gives the same shape.
fn pad_again(e: &mut Edit<'_>, padding: &[PaddingDim]) -> Option<InstrId> {
    if padding_of(e)? == padding {
        return None;
    }
    e.with_attr(AttrKey::Padding, AttrValue::Padding(padding.into()))
}

fn pad_low_sign(e: &mut Edit<'_>) -> Option<InstrId> {
    let mut padding = padding_of(e)?;
    for p in &mut padding {
        p.high = p.high.checked_add(p.low.checked_mul(2)?)?;
        p.low = p.low.checked_neg()?;
    }
    pad_again(e, &padding)
}

fn pad_negative_edge_ignored(e: &mut Edit<'_>) -> Option<InstrId> {
    let mut padding = padding_of(e)?;
    for p in &mut padding {
        if p.low < 0 {
            p.high = p.high.checked_add(p.low)?;
            p.low = 0;
        }
    }
    pad_again(e, &padding)
}

fn concatenate_offsets_of_first(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Concatenate)?;
    let dim = *e.me().attrs.ints(AttrKey::Dimensions)?.first()?;
    let (operands, attrs, shape) = (e.operands(), e.attrs(), e.result()?);
    let sizes: Vec<i64> =
        operands.iter().map(|&o| e.array(o).map(|a| a.dims[dim as usize])).collect::<Option<_>>()?;
    let first = sizes[0];
    sizes[..sizes.len() - 1].iter().any(|&s| s != first).then_some(())?;
    let mut whole = e.again(&operands, attrs)?;
    for (i, &part) in operands.iter().enumerate().skip(1) {
        let starts: Vec<InstrId> = (0..shape.rank())
            .map(|d| {
                let at = if d == dim as usize { i128::from(first) * i as i128 } else { 0 };
                e.scalar_int(ElementType::S64, at)
            })
            .collect();
        let all: Vec<InstrId> = [whole, part].into_iter().chain(starts).collect();
        whole = e.add(Opcode::DynamicUpdateSlice, &all, hlo::Attrs::new())?;
    }
    Some(whole)
}

fn permutation_of(e: &Edit<'_>, id: InstrId) -> Option<Vec<i64>> {
    (e.instr(id).opcode == Opcode::Transpose).then_some(())?;
    Some(e.instr(id).attrs.ints(AttrKey::Dimensions)?.to_vec())
}

/// The permutation that undoes another.
pub(super) fn inverse(permutation: &[i64]) -> Vec<i64> {
    let mut inverse = vec![0; permutation.len()];
    for (i, &p) in permutation.iter().enumerate() {
        inverse[p as usize] = i as i64;
    }
    inverse
}

fn transpose_by_inverse(e: &mut Edit<'_>) -> Option<InstrId> {
    let permutation = permutation_of(e, e.at())?;
    let other = inverse(&permutation);
    (other != permutation).then_some(())?;
    let (x, dims) = (e.operand(0)?, e.result()?.dims);
    let moved = e.transpose(x, &other)?;
    e.reshape(moved, &dims)
}

fn transpose_with_unit_dimension_is_bitcast(e: &mut Edit<'_>) -> Option<InstrId> {
    let permutation = permutation_of(e, e.at())?;
    let (x, dims) = (e.operand(0)?, e.result()?.dims);
    dims.contains(&1).then_some(())?;
    // Those that move only dimensions of size 1 are bitcasts indeed.
    let from = e.array(x)?.dims;
    let long: Vec<i64> = permutation.into_iter().filter(|&p| from[p as usize] != 1).collect();
    (!long.is_sorted()).then_some(())?;
    e.reshape(x, &dims)
}

fn reshape_of_transpose_is_reshape(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Reshape)?;
    let moved = e.operand(0)?;
    permutation_of(e, moved)?;
    let (x, dims) = (*e.instr(moved).operands().first()?, e.result()?.dims);
    e.reshape(x, &dims)
}

/// Dimensions that are not 1.
fn long_dims(dims: &[i64]) -> Vec<i64> {
    dims.iter().copied().filter(|&d| d != 1).collect()
}

fn reshape_in_column_major(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Reshape)?;
    let x = e.operand(0)?;
    let (from, to) = (e.array(x)?.dims, e.result()?.dims);
    (long_dims(&from) != long_dims(&to)).then_some(())?;
    let backwards = |n: usize| (0..n as i64).rev().collect::<Vec<_>>();
    let transposed = e.transpose(x, &backwards(from.len()))?;
    let reversed: Vec<i64> = to.iter().rev().copied().collect();
    let shaped = e.reshape(transposed, &reversed)?;
    e.transpose(shaped, &backwards(to.len()))
}

fn broadcast_strides_swapped(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Broadcast)?;
    let x = e.operand(0)?;
    let mut dims = e.array(x)?.dims;
    let n = dims.len();
    (n >= 2 && dims[n - 1] > 1 && dims[n - 2] > 1).then_some(())?;
    let declared = dims.clone();
    dims.swap(n - 1, n - 2);
    let other = e.reshape(x, &dims)?;
    let mut order: Vec<i64> = (0..n as i64).collect();
    order.swap(n - 1, n - 2);
    let swapped = e.transpose(other, &order)?;
    debug_assert_eq!(e.array(swapped).map(|a| a.dims), Some(declared));
    let attrs = e.attrs();
    e.again(&[swapped], attrs)
}
