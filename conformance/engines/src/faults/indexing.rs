//! Slices at computed offsets, gathers and scatters.

use hlo::attrs::{AttrKey, AttrValue, Direction, PaddingDim};
use hlo::builder::ComputationBuilder;
use hlo::{Attrs, ElementType, InstrId, Opcode, Shape};

use super::edit::{Edit, ints};
use super::movement::inverse;
use super::{Family, Needs, Row, row};

pub(super) const ROWS: &[Row] = &[
    row(
        "dynamic-slice-negative-from-end",
        Family::Indexing,
        "A negative start index of a `dynamic-slice` counts from the end instead of being clamped to 0.",
        "https://github.com/jax-ml/jax/pull/3649",
        &[Opcode::DynamicSlice],
        dynamic_slice_negative_from_end,
    ),
    row(
        "dynamic-slice-clamped-without-size",
        Family::Indexing,
        "Start indices of a `dynamic-slice` are clamped to the dimension, whatever the size of the slice, which then reaches beyond the end.",
        "https://github.com/openxla/xla/pull/48024",
        &[Opcode::DynamicSlice],
        dynamic_slice_clamped_without_size,
    ),
    row(
        "dynamic-slices-composed-unclamped",
        Family::Indexing,
        "A `dynamic-slice` of a `dynamic-slice` becomes one at the sum of the starts, which are clamped only together.",
        "https://github.com/openxla/xla/issues/49121",
        &[Opcode::DynamicSlice],
        dynamic_slices_composed_unclamped,
    )
    .needing(Needs::CHAIN),
    row(
        "dynamic-update-slice-dropped-out-of-range",
        Family::Indexing,
        "A `dynamic-update-slice` whose start indices need clamping writes nothing.",
        "https://github.com/openxla/xla/issues/49118",
        &[Opcode::DynamicUpdateSlice],
        dynamic_update_slice_dropped_out_of_range,
    ),
    row(
        "dynamic-update-slice-starts-rotated",
        Family::Indexing,
        "The start indices of a `dynamic-update-slice` of several dimensions are bound to the wrong dimensions.",
        "https://github.com/openxla/xla/issues/49119",
        &[Opcode::DynamicUpdateSlice],
        dynamic_update_slice_starts_rotated,
    ),
    row(
        "stale-in-place-update",
        Family::Indexing,
        "A `dynamic-update-slice` in place of its operand's buffer starts from what was there before the operand was written.",
        "https://github.com/openxla/xla/pull/13253",
        &[Opcode::DynamicUpdateSlice],
        stale_in_place_update,
    )
    .needing(Needs::CHAIN),
    row(
        "unsigned-index-sign-extended",
        Family::Indexing,
        "Unsigned start indices with the top bit set are taken for negative ones and clamped to 0.",
        "https://github.com/openxla/xla/issues/48717",
        &[Opcode::DynamicSlice, Opcode::DynamicUpdateSlice, Opcode::Gather],
        unsigned_index_sign_extended,
    ),
    row(
        "gather-index-map-ignored",
        Family::Indexing,
        "The components of the index vectors of a `gather` index its dimensions in ascending order, whatever `start_index_map` says.",
        "https://github.com/openxla/xla/pull/42306",
        &[Opcode::Gather],
        gather_index_map_ignored,
    ),
    row(
        "gather-windows-last",
        Family::Indexing,
        "A `gather` writes its windows as if they were the last dimensions of the result.",
        "https://github.com/jax-ml/jax/issues/33479",
        &[Opcode::Gather],
        gather_windows_last,
    ),
    row(
        "gather-batch-reads-first",
        Family::Indexing,
        "A `gather` with batching dimensions reads the first batch for all of them.",
        "https://github.com/jax-ml/jax/issues/39025",
        &[Opcode::Gather],
        gather_batch_reads_first,
    ),
    row(
        "scatter-index-map-ignored",
        Family::Indexing,
        "The components of the index vectors of a `scatter` index its dimensions in ascending order, whatever `scatter_dims_to_operand_dims` says.",
        "https://github.com/openxla/xla/pull/34870",
        &[Opcode::Scatter],
        scatter_index_map_ignored,
    ),
    row(
        "scatter-lost-update",
        Family::Indexing,
        "Of several updates of a `scatter` to one place only the last counts: each is applied to what was there before all of them.",
        "https://github.com/openxla/xla/pull/31746",
        &[Opcode::Scatter],
        scatter_lost_update,
    ),
    row(
        "scatter-clamps",
        Family::Indexing,
        "Updates of a `scatter` that are out of range are moved into it as `gather` does, instead of being dropped.",
        "https://github.com/jax-ml/jax/pull/2895",
        &[Opcode::Scatter],
        scatter_clamps,
    ),
    row(
        "scatter-windows-last",
        Family::Indexing,
        "A `scatter` reads its update windows as if they were the last dimensions of the updates.",
        "https://github.com/openxla/xla/pull/44890",
        &[Opcode::Scatter],
        scatter_windows_last,
    ),
    row(
        "scatter-in-reverse-order",
        Family::Indexing,
        "A `scatter` applies its updates from the last to the first, so that of overwriting ones the first stays.",
        "https://github.com/openxla/xla/pull/31063",
        &[Opcode::Scatter],
        scatter_in_reverse_order,
    ),
];

/// Where the start indices of a dynamic slice or update begin among its operands; `None` for the form with
/// one vector of indices.
fn starts_of(e: &Edit<'_>) -> Option<usize> {
    let first = if e.me().opcode == Opcode::DynamicSlice { 1 } else { 2 };
    let rank = e.array(e.operand(0)?)?.rank();
    (e.operands().len() == first + rank && rank > 0).then_some(first)
}

fn dynamic_slice_negative_from_end(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::DynamicSlice)?;
    let first = starts_of(e)?;
    let (mut operands, attrs) = (e.operands(), e.attrs());
    let dims = e.array(operands[0])?.dims;
    e.integer(operands[first])?.is_signed_integer().then_some(())?;
    for (start, &size) in operands[first..].iter_mut().zip(&dims) {
        let (zero, size) = (e.int(*start, 0)?, e.int(*start, i128::from(size))?);
        let negative = e.compare(Direction::Lt, *start, zero)?;
        let from_end = e.bin(Opcode::Add, *start, size)?;
        *start = e.select(negative, from_end, *start)?;
    }
    e.again(&operands, attrs)
}

fn dynamic_slice_clamped_without_size(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::DynamicSlice)?;
    starts_of(e)?;
    let (mut operands, attrs) = (e.operands(), e.attrs());
    let sizes = e.result()?.dims;
    sizes.iter().any(|&s| s > 1).then_some(())?;
    let ty = e.ty(operands[0])?;
    let padding: Vec<PaddingDim> =
        sizes.iter().map(|&s| PaddingDim { low: 0, high: (s - 1).max(0), interior: 0 }).collect();
    let zero = e.scalar(ty, 0.0);
    operands[0] = e.pad(operands[0], zero, &padding)?;
    e.again(&operands, attrs)
}

fn dynamic_slices_composed_unclamped(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::DynamicSlice)?;
    let first = starts_of(e)?;
    let inner = e.operands_of(e.operand(0)?, Opcode::DynamicSlice)?;
    let outer = e.operands();
    (inner.len() == outer.len()).then_some(())?;
    let mut operands = vec![inner[0]];
    for (&a, &b) in inner[first..].iter().zip(&outer[first..]) {
        let (a, b) = (e.convert(a, ElementType::S64)?, e.convert(b, ElementType::S64)?);
        operands.push(e.bin(Opcode::Add, a, b)?);
    }
    let attrs = e.attrs();
    e.again(&operands, attrs)
}

fn dynamic_update_slice_dropped_out_of_range(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::DynamicUpdateSlice)?;
    let first = starts_of(e)?;
    let (operands, attrs) = (e.operands(), e.attrs());
    let (dims, sizes) = (e.array(operands[0])?.dims, e.array(operands[1])?.dims);
    let mut inside: Option<InstrId> = None;
    for (i, &start) in operands[first..].iter().enumerate() {
        let wide = e.convert(start, ElementType::S64)?;
        let (zero, last) = (e.int(wide, 0)?, e.int(wide, i128::from(dims[i] - sizes[i]))?);
        let (low, high) = (e.compare(Direction::Ge, wide, zero)?, e.compare(Direction::Le, wide, last)?);
        let both = e.bin(Opcode::And, low, high)?;
        inside = Some(match inside {
            Some(p) => e.bin(Opcode::And, p, both)?,
            None => both,
        });
    }
    let updated = e.again(&operands, attrs)?;
    let everywhere = e.spread(inside?, operands[0])?;
    e.select(everywhere, updated, operands[0])
}

fn dynamic_update_slice_starts_rotated(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::DynamicUpdateSlice)?;
    let first = starts_of(e)?;
    let (mut operands, attrs) = (e.operands(), e.attrs());
    let starts = &mut operands[first..];
    (starts.len() > 1).then_some(())?;
    starts.rotate_left(1);
    e.again(&operands, attrs)
}

fn stale_in_place_update(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::DynamicUpdateSlice)?;
    let (mut operands, attrs) = (e.operands(), e.attrs());
    let written = e.instr(operands[0]);
    let in_place = written.opcode.flags().elementwise || written.opcode == Opcode::DynamicUpdateSlice;
    in_place.then_some(())?;
    let shape = e.array(operands[0])?;
    let before = *written.operands().first()?;
    e.array(before)?.same_dims(&shape).then_some(())?;
    operands[0] = before;
    e.again(&operands, attrs)
}

/// Unsigned indices with those whose top bit is set as 0.
fn sign_extended(e: &mut Edit<'_>, index: InstrId) -> Option<InstrId> {
    let ty = e.integer(index).filter(|ty| ty.is_unsigned_integer())?;
    let (zero, half) = (e.int(index, 0)?, e.int(index, 1i128 << (ty.bits() - 1))?);
    let top = e.compare(Direction::Ge, index, half)?;
    e.select(top, zero, index)
}

fn unsigned_index_sign_extended(e: &mut Edit<'_>) -> Option<InstrId> {
    let opcode = e.one_of(&[Opcode::DynamicSlice, Opcode::DynamicUpdateSlice, Opcode::Gather])?;
    let (mut operands, attrs) = (e.operands(), e.attrs());
    let first = if opcode == Opcode::Gather { 1 } else { starts_of(e)? };
    for index in &mut operands[first..] {
        *index = sign_extended(e, *index)?;
    }
    e.again(&operands, attrs)
}

fn with_sorted(e: &mut Edit<'_>, key: AttrKey) -> Option<InstrId> {
    let mut map = e.me().attrs.ints(key)?.to_vec();
    (!map.is_sorted()).then_some(())?;
    map.sort_unstable();
    e.with_attr(key, ints(&map))
}

fn gather_index_map_ignored(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Gather)?;
    with_sorted(e, AttrKey::StartIndexMap)
}

fn scatter_index_map_ignored(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Scatter)?;
    with_sorted(e, AttrKey::ScatterDimsToOperandDims)
}

fn gather_windows_last(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Gather)?;
    let (operands, shape) = (e.operands(), e.result()?);
    let offset = e.me().attrs.ints(AttrKey::OffsetDims)?.to_vec();
    let rank = shape.rank() as i64;
    let last: Vec<i64> = (rank - offset.len() as i64..rank).collect();
    (offset != last).then_some(())?;
    let attrs = e.attrs().with(AttrKey::OffsetDims, ints(&last));
    let gathered = e.add(Opcode::Gather, &operands, attrs)?;
    e.reshape(gathered, &shape.dims)
}

fn gather_batch_reads_first(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Gather)?;
    let (mut operands, attrs) = (e.operands(), e.attrs());
    let batching = attrs.ints(AttrKey::OperandBatchingDims)?.to_vec();
    let dims = e.array(operands[0])?.dims;
    batching.iter().any(|&d| dims[d as usize] > 1).then_some(())?;
    let mut first = operands[0];
    for &d in &batching {
        first = e.cut(first, d as usize, 0, dims[d as usize].min(1))?;
    }
    let rest: Vec<i64> = (0..dims.len() as i64).filter(|d| !batching.contains(d)).collect();
    let kept: Vec<i64> = rest.iter().map(|&d| dims[d as usize]).collect();
    let one = e.reshape(first, &kept)?;
    operands[0] = e.broadcast(one, &dims, &rest)?;
    e.again(&operands, attrs)
}

/// The operand, the indices and the updates of a scatter of one operand.
fn scatter_parts(e: &Edit<'_>) -> Option<(InstrId, InstrId, InstrId)> {
    e.is(Opcode::Scatter)?;
    if let [x, indices, updates] = *e.operands() { Some((x, indices, updates)) } else { None }
}

fn scatter_lost_update(e: &mut Edit<'_>) -> Option<InstrId> {
    let (x, indices, updates) = scatter_parts(e)?;
    let attrs = e.attrs();
    let region = e.called(AttrKey::ToApply)?;
    let (ty, updated) = (e.ty(x)?, e.array(updates)?);
    let overwrite = |b: &mut ComputationBuilder<'_>, ty| {
        b.parameter("old", Shape::scalar(ty));
        b.parameter("new", Shape::scalar(ty));
        Ok(())
    };
    let last = e.region("last_update", |b| overwrite(b, ty))?;
    let any = e.region("any_update", |b| overwrite(b, ElementType::Pred))?;
    let of = |region| attrs.clone().with(AttrKey::ToApply, AttrValue::Computation(region));
    let last = e.add(Opcode::Scatter, &[x, indices, updates], of(last))?;
    let (no, yes) = (e.scalar(ElementType::Pred, 0.0), e.scalar(ElementType::Pred, 1.0));
    let (nowhere, there) = (e.spread(no, x)?, e.broadcast(yes, &updated.dims, &[])?);
    let touched = e.add(Opcode::Scatter, &[nowhere, indices, there], of(any))?;
    let all: Vec<i64> = (0..e.array(x)?.rank() as i64).collect();
    let map = Attrs::new()
        .with(AttrKey::Dimensions, ints(&all))
        .with(AttrKey::ToApply, AttrValue::Computation(region));
    let applied = e.add(Opcode::Map, &[x, last], map)?;
    e.select(touched, applied, x)
}

/// Sizes of a scatter's windows, in dimensions of the operand.
fn scatter_window(e: &Edit<'_>) -> Option<Vec<i64>> {
    let (x, _, updates) = scatter_parts(e)?;
    let attrs = &e.me().attrs;
    let (rank, updates) = (e.array(x)?.rank() as i64, e.array(updates)?.dims);
    let absent = |d: &i64| {
        attrs.ints_or_empty(AttrKey::InsertedWindowDims).contains(d)
            || attrs.ints_or_empty(AttrKey::InputBatchingDims).contains(d)
    };
    let mut sizes = attrs.ints_or_empty(AttrKey::UpdateWindowDims).iter().map(|&d| updates[d as usize]);
    (0..rank).map(|d| if absent(&d) { Some(1) } else { sizes.next() }).collect()
}

fn scatter_clamps(e: &mut Edit<'_>) -> Option<InstrId> {
    let (x, indices, updates) = scatter_parts(e)?;
    let (window, dims) = (scatter_window(e)?, e.array(x)?.dims);
    let attrs = e.attrs();
    let map = attrs.ints(AttrKey::ScatterDimsToOperandDims)?;
    let ty = e.integer(indices)?;
    let (_, maximum) = ty.integer_limits()?;
    let limits: Vec<i128> = map
        .iter()
        .map(|&d| i128::from((dims[d as usize] - window[d as usize]).max(0)).min(maximum))
        .collect();
    let shape = e.array(indices)?;
    let vector = attrs.int(AttrKey::IndexVectorDim)?;
    let limits = e.integers(ty, &limits);
    let limits = if vector == shape.rank() as i64 {
        let scalar = e.reshape(limits, &[])?;
        e.spread(scalar, indices)?
    } else {
        e.broadcast(limits, &shape.dims, &[vector])?
    };
    let zero = e.int(indices, 0)?;
    let clamped = e.add(Opcode::Clamp, &[zero, indices, limits], Attrs::new())?;
    e.again(&[x, clamped, updates], attrs)
}

fn scatter_windows_last(e: &mut Edit<'_>) -> Option<InstrId> {
    let (x, indices, updates) = scatter_parts(e)?;
    let attrs = e.attrs();
    let shape = e.array(updates)?;
    let window = attrs.ints(AttrKey::UpdateWindowDims)?.to_vec();
    let rank = shape.rank() as i64;
    // Batch dimensions first, windows last, and back to where they are.
    let order: Vec<i64> = (0..rank).filter(|d| !window.contains(d)).chain(window.iter().copied()).collect();
    (!order.is_sorted()).then_some(())?;
    let dims: Vec<i64> = order.iter().map(|&d| shape.dims[d as usize]).collect();
    let other = e.reshape(updates, &dims)?;
    let back = e.transpose(other, &inverse(&order))?;
    e.again(&[x, indices, back], attrs)
}

fn scatter_in_reverse_order(e: &mut Edit<'_>) -> Option<InstrId> {
    let (x, indices, updates) = scatter_parts(e)?;
    let attrs = e.attrs();
    // Batching dimensions go with those of the operand.
    attrs.ints_or_empty(AttrKey::ScatterIndicesBatchingDims).is_empty().then_some(())?;
    let vector = attrs.int(AttrKey::IndexVectorDim)?;
    let window = attrs.ints_or_empty(AttrKey::UpdateWindowDims);
    let of_indices: Vec<i64> = (0..e.array(indices)?.rank() as i64).filter(|&d| d != vector).collect();
    let of_updates: Vec<i64> = (0..e.array(updates)?.rank() as i64).filter(|d| !window.contains(d)).collect();
    (!of_indices.is_empty()).then_some(())?;
    let (indices, updates) = (e.reverse(indices, &of_indices)?, e.reverse(updates, &of_updates)?);
    e.again(&[x, indices, updates], attrs)
}
