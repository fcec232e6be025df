//! Data movement.

use hlo::attrs::{AttrKey, AttrValue, PaddingDim, SliceDim};
use hlo::{ElementType, InstrId, Opcode};

use super::edit::{Edit, ints};
use super::{Family, Needs, Row, row};

pub(super) const ROWS: &[Row] = &[
    row(
        "pad-low-sign",
        Family::Movement,
        "The low padding of a `pad` has the wrong sign.",
        "@padlow",
        &[Opcode::Pad],
        pad_low_sign,
    ),
    row(
        "pad-interior-dropped",
        Family::Movement,
        "The interior padding of a `pad` goes to the end of the dimension.",
        "@padint",
        &[Opcode::Pad],
        pad_interior_dropped,
    ),
    row(
        "pad-negative-edge-ignored",
        Family::Movement,
        "A `pad` that cuts at the low edge cuts at the high one.",
        "@padneg",
        &[Opcode::Pad],
        pad_negative_edge_ignored,
    ),
    row(
        "strided-slice-aligned-to-limit",
        Family::Movement,
        "A `slice` with a stride counts back from its limit, so that it starts late where the stride does not divide the range.",
        "@slicelimit",
        &[Opcode::Slice],
        strided_slice_aligned_to_limit,
    ),
    row(
        "slice-of-slice-adds-starts",
        Family::Movement,
        "A slice of a strided slice starts at the sum of both starts, without the inner stride.",
        "@slslice",
        &[Opcode::Slice],
        slice_of_slice_adds_starts,
    )
    .needing(Needs::CHAIN),
    row(
        "reverse-first-dimension-only",
        Family::Movement,
        "A `reverse` of several dimensions reverses the first of them.",
        "@reverse",
        &[Opcode::Reverse],
        reverse_first_dimension_only,
    ),
    row(
        "concatenate-offsets-of-first",
        Family::Movement,
        "Operands of a `concatenate` lie at multiples of the size of the first one, later ones on top.",
        "@concat",
        &[Opcode::Concatenate],
        concatenate_offsets_of_first,
    ),
    row(
        "iota-other-dimension",
        Family::Movement,
        "An `iota` of several dimensions counts along the neighbour of its dimension.",
        "@iota",
        &[Opcode::Iota],
        iota_other_dimension,
    ),
    row(
        "dimension-size-is-bound",
        Family::Movement,
        "`get-dimension-size` of a dynamic dimension is its bound.",
        "@gds",
        &[Opcode::GetDimensionSize],
        dimension_size_is_bound,
    ),
    row(
        "concatenate-of-slices-is-operand",
        Family::Movement,
        "A `concatenate` of slices of one array that are as long as it together is that array, whatever their order.",
        "@concatslice",
        &[Opcode::Concatenate],
        concatenate_of_slices_is_operand,
    )
    .needing(Needs::CHAIN),
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
        "transposes-composed-in-wrong-order",
        Family::Layout,
        "Two transposes in a row are merged into one with the permutations composed the wrong way round.",
        "@transcomp",
        &[Opcode::Transpose],
        transposes_composed_in_wrong_order,
    )
    .needing(Needs::CHAIN),
    row(
        "reshape-of-transpose-is-reshape",
        Family::Layout,
        "A `reshape` of a `transpose` is a reshape of what was transposed.",
        "@reshtrans",
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
        "@bcast",
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

fn pad_interior_dropped(e: &mut Edit<'_>) -> Option<InstrId> {
    let mut padding = padding_of(e)?;
    let dims = e.array(e.operand(0)?)?.dims;
    for (p, d) in padding.iter_mut().zip(dims) {
        p.high = p.high.checked_add(p.interior.checked_mul((d - 1).max(0))?)?;
        p.interior = 0;
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

fn slices_of(e: &Edit<'_>, id: InstrId) -> Option<Vec<SliceDim>> {
    Some(e.instr(id).attrs.slices()?.to_vec())
}

/// How many elements a slice takes of a dimension.
fn taken(s: &SliceDim) -> i64 {
    if s.limit > s.start { (s.limit - s.start - 1) / s.stride + 1 } else { 0 }
}

fn strided_slice_aligned_to_limit(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Slice)?;
    let mut slices = slices_of(e, e.at())?;
    let before = slices.clone();
    for s in &mut slices {
        if s.limit > s.start {
            s.start += (s.limit - 1 - s.start) % s.stride;
        }
    }
    if slices == before {
        return None;
    }
    e.with_attr(AttrKey::Slice, AttrValue::Slices(slices.into()))
}

fn slice_of_slice_adds_starts(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Slice)?;
    let inner = e.operand(0)?;
    let x = *e.operands_of(inner, Opcode::Slice)?.first()?;
    let (first, second) = (slices_of(e, inner)?, slices_of(e, e.at())?);
    let joined: Vec<SliceDim> = first
        .iter()
        .zip(&second)
        .map(|(a, b)| {
            let (start, stride) = (a.start + b.start, a.stride * b.stride);
            let n = taken(b);
            SliceDim { start, limit: if n == 0 { start } else { start + (n - 1) * stride + 1 }, stride }
        })
        .collect();
    let wrong = first.iter().zip(&second).any(|(a, b)| a.stride > 1 && b.start > 0);
    wrong.then_some(())?;
    e.slice(x, &joined)
}

fn reverse_first_dimension_only(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Reverse)?;
    let dims = e.me().attrs.ints(AttrKey::Dimensions)?.to_vec();
    (dims.len() > 1).then_some(())?;
    e.with_attr(AttrKey::Dimensions, ints(&dims[..1]))
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

fn iota_other_dimension(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Iota)?;
    let rank = e.result()?.rank() as i64;
    (rank > 1).then_some(())?;
    let dim = e.me().attrs.int(AttrKey::IotaDimension)?;
    let other = if dim + 1 < rank { dim + 1 } else { dim - 1 };
    e.with_attr(AttrKey::IotaDimension, AttrValue::Int(other))
}

fn dimension_size_is_bound(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::GetDimensionSize)?;
    let dim = usize::try_from(*e.me().attrs.ints(AttrKey::Dimensions)?.first()?).ok()?;
    let operand = e.instr(e.operand(0)?).shape.as_array()?.clone();
    (operand.is_dynamic_dim(dim) && operand.dims[dim] >= 0).then_some(())?;
    Some(e.scalar_int(ElementType::S32, i128::from(operand.dims[dim])))
}

fn concatenate_of_slices_is_operand(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Concatenate)?;
    let mut whole = None;
    for part in e.operands() {
        let x = *e.operands_of(part, Opcode::Slice)?.first()?;
        slices_of(e, part)?.iter().all(|s| s.stride == 1).then_some(())?;
        (*whole.get_or_insert(x) == x).then_some(())?;
    }
    let whole = whole?;
    (e.operands().len() > 1 && e.array(whole)?.same_dims(&e.result()?)).then_some(whole)
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

fn transposes_composed_in_wrong_order(e: &mut Edit<'_>) -> Option<InstrId> {
    let outer = permutation_of(e, e.at())?;
    let inner_id = e.operand(0)?;
    let inner = permutation_of(e, inner_id)?;
    let right: Vec<i64> = outer.iter().map(|&p| inner[p as usize]).collect();
    let wrong: Vec<i64> = inner.iter().map(|&p| outer[p as usize]).collect();
    (right != wrong).then_some(())?;
    let (x, dims) = (*e.instr(inner_id).operands().first()?, e.result()?.dims);
    let moved = e.transpose(x, &wrong)?;
    e.reshape(moved, &dims)
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
    let turned = e.transpose(x, &backwards(from.len()))?;
    let reversed: Vec<i64> = to.iter().rev().copied().collect();
    let shaped = e.reshape(turned, &reversed)?;
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
