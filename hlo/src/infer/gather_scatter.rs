//! `gather` and `scatter`.
//!
//! Stricter than XLA where that crashes or is silent: batching dimensions agree in size, and a dimension of
//! the operand has one role (offset/window, collapsed/inserted, batching).

use smallvec::SmallVec;

use super::InferError;
use super::cx::{Cx, DimList, Inferred, count, list, show_array, size};
use super::reduce::check_reducer;
use super::types::{Classes, same_size};
use crate::attrs::AttrKey;
use crate::diag::codes;
use crate::shape::{ArrayShape, Shape, UNBOUNDED};

type Indices = SmallVec<[usize; 4]>;

/// The indices operand of a gather or scatter: a vector of start indices along `vector_dim`, which may be one
/// past the last dimension: then each element is an index vector of one.
struct StartIndices<'a> {
    shape: &'a ArrayShape,
    vector_dim: usize,
    /// Length of an index vector.
    length: i64,
}

impl<'a> StartIndices<'a> {
    fn new(cx: &Cx<'a>, operand: usize) -> Result<Self, InferError> {
        let shape = cx.array(operand)?;
        cx.require_type(operand, Classes::INTEGER)?;
        let d = cx.int(AttrKey::IndexVectorDim)?;
        let vector_dim = usize::try_from(d).ok().filter(|&d| d <= shape.rank()).ok_or_else(|| {
            cx.error(codes::DIMENSION_OUT_OF_RANGE, format!("index_vector_dim {d} is out of range"))
                .at(operand, format!("this has {}", count(shape.rank(), "dimension")))
                .label(format!("must be 0 to {}", shape.rank()))
        })?;
        let length = shape.dims.get(vector_dim).copied().unwrap_or(1);
        Ok(Self { shape, vector_dim, length })
    }

    /// Rank with the index vector's dimension, be it there or not.
    fn expanded_rank(&self) -> usize {
        self.shape.rank() + usize::from(self.vector_dim == self.shape.rank())
    }

    /// The dimensions that are not the index vector's.
    fn batch_dims(&self) -> impl Iterator<Item = usize> {
        (0..self.shape.rank()).filter(|&d| d != self.vector_dim)
    }
}

/// Fails if an index vector does not have an entry for each dimension that it maps to.
fn check_index_map(cx: &Cx, key: AttrKey, operand: usize, indices: &StartIndices) -> Result<(), InferError> {
    let map = cx.ints(key)?;
    if same_size(i64::try_from(map.len()).unwrap_or(i64::MAX), indices.length) {
        return Ok(());
    }
    Err(cx
        .error(
            codes::INDEX_VECTOR,
            format!(
                "{} has {}, but index vectors have {}",
                key.text(),
                count(map.len(), "dimension"),
                size(indices.length)
            ),
        )
        .at(
            operand,
            format!(
                "this is {}, index vectors are along dimension {}",
                show_array(indices.shape),
                indices.vector_dim
            ),
        ))
}

/// Batching dimensions of operand and indices: as many, of equal sizes, and not the index vector's.
fn check_batching(
    cx: &Cx,
    keys: [AttrKey; 2],
    operand: &ArrayShape,
    indices: (usize, &StartIndices),
) -> Result<(Indices, Indices), InferError> {
    let [operand_key, indices_key] = keys;
    let (number, indices) = indices;
    let operand_dims = cx.attrs.ints_or_empty(operand_key);
    let index_dims = cx.attrs.ints_or_empty(indices_key);
    if operand_dims.len() != index_dims.len() {
        return Err(cx.error(
            codes::BATCHING_DIMENSIONS,
            format!(
                "{} names {}, {} {}",
                operand_key.text(),
                count(operand_dims.len(), "dimension"),
                indices_key.text(),
                index_dims.len()
            ),
        ));
    }
    cx.ascending(operand_key.text(), operand_dims)?;
    let operand_dims = cx.dimensions(operand_key.text(), operand_dims, operand.rank())?;
    let index_dims = cx.dimensions(indices_key.text(), index_dims, indices.shape.rank())?;
    if index_dims.contains(&indices.vector_dim) {
        return Err(cx.error(
            codes::BATCHING_DIMENSIONS,
            format!(
                "dimension {} of the indices holds index vectors, it cannot be a batching dimension",
                indices.vector_dim
            ),
        ));
    }
    for (&o, &i) in operand_dims.iter().zip(&index_dims) {
        if !same_size(operand.dims[o], indices.shape.dims[i]) {
            return Err(cx
                .error(codes::BATCHING_DIMENSIONS, "batching dimensions have different sizes")
                .at(0, format!("dimension {o} of {} has size {}", show_array(operand), size(operand.dims[o])))
                .at(
                    number,
                    format!(
                        "dimension {i} of {} has size {}",
                        show_array(indices.shape),
                        size(indices.shape.dims[i])
                    ),
                ));
        }
    }
    Ok((operand_dims, index_dims))
}

/// Fails if two lists of dimensions have one in common.
fn disjoint(cx: &Cx, a: (AttrKey, &[usize]), b: (AttrKey, &[usize])) -> Result<(), InferError> {
    match a.1.iter().find(|d| b.1.contains(d)) {
        None => Ok(()),
        Some(d) => Err(cx.error(
            codes::DIMENSION_REPEATED,
            format!("dimension {d} is both in {} and in {}", a.0.text(), b.0.text()),
        )),
    }
}

/// `gather`
pub(super) fn gather(cx: &Cx) -> Inferred {
    let a = cx.array(0)?;
    let indices = StartIndices::new(cx, 1)?;
    let offset_dims = cx.ints(AttrKey::OffsetDims)?;
    let rank = offset_dims.len() + indices.expanded_rank() - 1;
    cx.ascending("offset_dims", offset_dims)?;
    let offset_dims = cx.dimensions("offset_dims", offset_dims, rank)?;
    check_index_map(cx, AttrKey::StartIndexMap, 1, &indices)?;
    let map = cx.dimensions("start_index_map", cx.ints(AttrKey::StartIndexMap)?, a.rank())?;
    let collapsed = cx.ints(AttrKey::CollapsedSliceDims)?;
    cx.ascending("collapsed_slice_dims", collapsed)?;
    let collapsed = cx.dimensions("collapsed_slice_dims", collapsed, a.rank())?;
    let keys = [AttrKey::OperandBatchingDims, AttrKey::StartIndicesBatchingDims];
    let (batching, _) = check_batching(cx, keys, a, (1, &indices))?;
    disjoint(cx, (AttrKey::CollapsedSliceDims, &collapsed), (keys[0], &batching))?;
    disjoint(cx, (AttrKey::StartIndexMap, &map), (keys[0], &batching))?;

    let slice_sizes = cx.ints(AttrKey::SliceSizes)?;
    if slice_sizes.len() != a.rank() {
        return Err(cx
            .error(
                codes::DIMENSION_COUNT,
                format!(
                    "slice_sizes={} has {} for {}",
                    list(slice_sizes),
                    count(slice_sizes.len(), "size"),
                    count(a.rank(), "dimension")
                ),
            )
            .at(0, format!("this is {}", show_array(a))));
    }
    if a.rank() != offset_dims.len() + collapsed.len() + batching.len() {
        return Err(cx
            .error(
                codes::DIMENSION_ROLES,
                format!(
                    "{} of the operand, but {} offset, {} collapsed and {} batching ones",
                    count(a.rank(), "dimension"),
                    offset_dims.len(),
                    collapsed.len(),
                    batching.len()
                ),
            )
            .at(0, format!("this is {}", show_array(a))));
    }
    for (i, &n) in slice_sizes.iter().enumerate() {
        super::movement::written_slice_fits(cx, i, n, a)?;
    }
    let mut dropped_empty = None;
    for (what, dims) in [("collapsed", &collapsed), ("batching", &batching)] {
        for &d in dims {
            if slice_sizes[d] > 1 {
                return Err(cx.error(
                    codes::SLICE_SIZE,
                    format!(
                        "{what} dimension {d} of the operand has slice size {}, it must be 1",
                        slice_sizes[d]
                    ),
                ));
            }
            if slice_sizes[d] == 0 {
                dropped_empty = Some(d);
            }
        }
    }
    let mut out = DimList::new();
    let mut windows = (0..a.rank()).filter(|d| !collapsed.contains(d) && !batching.contains(d));
    let mut batches = indices.batch_dims();
    let mut empty = false;
    for i in 0..rank {
        let (n, dynamic) = if offset_dims.contains(&i) {
            let d = windows.next().expect("invariant: as many offset dimensions as dimensions that are kept");
            (slice_sizes[d], slice_sizes[d] == a.dims[d] && a.is_dynamic_dim(d))
        } else {
            let d = batches.next().expect("invariant: the rank counts them");
            (indices.shape.dims[d], indices.shape.is_dynamic_dim(d))
        };
        empty |= n == 0;
        out.push(n, dynamic);
    }
    if let Some(d) = dropped_empty
        && !empty
    {
        return Err(cx.error(
            codes::SLICE_SIZE,
            format!("dimension {d} has slice size 0, but the result has elements"),
        ));
    }
    cx.build(a.element_type, out)
}

/// `scatter(operands..., indices, updates...)`
pub(super) fn scatter(cx: &Cx) -> Inferred {
    let n = cx.operands.len() / 2;
    if cx.operands.len() != 2 * n + 1 {
        return Err(cx
            .error(codes::WRONG_ARITY, format!("{} given", count(cx.operands.len(), "operand")))
            .label("takes as many updates as operands, and indices between them"));
    }
    let indices = StartIndices::new(cx, n)?;
    for i in 0..n {
        scatter_one(cx, i, n, &indices)?;
    }
    let signature = cx.signature(AttrKey::ToApply)?;
    let mut types = SmallVec::<[_; 2]>::new();
    let mut updates = SmallVec::<[_; 2]>::new();
    for i in 0..n {
        types.push((i, cx.array(i)?.element_type));
        updates.push((n + 1 + i, cx.array(n + 1 + i)?.element_type));
    }
    check_reducer(cx, AttrKey::ToApply, &signature, &types, &updates)?;
    if n == 1 {
        return Ok(cx.operands[0].without_layout());
    }
    Ok(Shape::tuple(cx.operands[..n].iter().map(|s| s.without_layout())))
}

/// One operand of a scatter with its updates.
fn scatter_one(cx: &Cx, i: usize, n: usize, indices: &StartIndices) -> Result<(), InferError> {
    let (a, number) = (cx.array(i)?, n + 1 + i);
    let updates = cx.array(number)?;
    // All operands have one shape and all updates another (StableHLO, scatter C1 and C3): the same dimension
    // numbers and indices go with each.
    if i > 0 {
        cx.require_same_dims(0, i)?;
        cx.require_same_dims(n + 1, number)?;
    }
    let window = cx.ints(AttrKey::UpdateWindowDims)?;
    let rank = indices.expanded_rank() - 1 + window.len();
    if updates.rank() != rank {
        return Err(cx
            .error(codes::RANK, format!("updates have {}, not {rank}", count(updates.rank(), "dimension")))
            .at(number, format!("this is {}", show_array(updates)))
            .label(format!(
                "{} of the indices and {} of the window",
                indices.expanded_rank() - 1,
                window.len()
            )));
    }
    cx.ascending("update_window_dims", window)?;
    let window = cx.dimensions("update_window_dims", window, updates.rank())?;
    let inserted = cx.ints(AttrKey::InsertedWindowDims)?;
    cx.ascending("inserted_window_dims", inserted)?;
    let inserted = cx.dimensions("inserted_window_dims", inserted, a.rank())?;
    let keys = [AttrKey::InputBatchingDims, AttrKey::ScatterIndicesBatchingDims];
    let (batching, _) = check_batching(cx, keys, a, (n, indices))?;
    if a.rank() != window.len() + inserted.len() + batching.len() {
        return Err(cx
            .error(
                codes::DIMENSION_ROLES,
                format!(
                    "{} of the operand, but {} window, {} inserted and {} batching ones",
                    count(a.rank(), "dimension"),
                    window.len(),
                    inserted.len(),
                    batching.len()
                ),
            )
            .at(i, format!("this is {}", show_array(a))));
    }
    check_index_map(cx, AttrKey::ScatterDimsToOperandDims, n, indices)?;
    let map =
        cx.dimensions("scatter_dims_to_operand_dims", cx.ints(AttrKey::ScatterDimsToOperandDims)?, a.rank())?;
    disjoint(cx, (AttrKey::InsertedWindowDims, &inserted), (keys[0], &batching))?;
    disjoint(cx, (AttrKey::ScatterDimsToOperandDims, &map), (keys[0], &batching))?;

    let kept = (0..a.rank()).filter(|d| !inserted.contains(d) && !batching.contains(d));
    for (&u, d) in window.iter().zip(kept) {
        let (m, most) = (updates.dims[u], a.dims[d]);
        if m != UNBOUNDED && most != UNBOUNDED && m > most {
            return Err(cx
                .error(
                    codes::SLICE_SIZE,
                    format!("the window of updates has size {m} where the operand has {most}"),
                )
                .at(i, format!("dimension {d} of {} has size {most}", show_array(a)))
                .at(number, format!("dimension {u} of {} has size {m}", show_array(updates))));
        }
    }
    let scattered = (0..updates.rank()).filter(|d| !window.contains(d));
    for (u, d) in scattered.zip(indices.batch_dims()) {
        if !same_size(updates.dims[u], indices.shape.dims[d]) {
            return Err(cx
                .error(codes::UPDATES_SHAPE, "updates and indices have different sizes")
                .at(
                    n,
                    format!(
                        "dimension {d} of {} has size {}",
                        show_array(indices.shape),
                        size(indices.shape.dims[d])
                    ),
                )
                .at(
                    number,
                    format!("dimension {u} of {} has size {}", show_array(updates), size(updates.dims[u])),
                ));
        }
    }
    Ok(())
}
