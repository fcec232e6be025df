//! Gathers and scatters of one window become dynamic slices and in-place updates.
//!
//! A gather clamps each component of its start index so that the window is in bounds, as `dynamic-slice`
//! does. A scatter drops a window that is out of bounds, which `dynamic-update-slice` does not: there the
//! window is written back as it was, or the index is known to be in bounds. The combiner is applied once to
//! each element of the window, in its type, so it may be unrolled into instructions.
//!
//! A gather of few columns at constant indices is a concatenation of slices. A scatter of one element into
//! each row is a selection for each element where all of them are written anyway: whether it is at the row's
//! index.

use hlo::attrs::{AttrKey, AttrValue, Attrs, Direction};
use hlo::{ElementType, InstrId, Module, Opcode, Shape};

use super::PassCx;
use super::calls::lanes;
use super::edit::{Edit, each_outside_folds, ints};
use super::facts::{self, MAX_INTERLEAVED_COLUMNS, integer};

pub(super) fn run(module: &mut Module, cx: &mut PassCx<'_>) -> u64 {
    each_outside_folds(module, cx.fuel, |e| match e.at().opcode {
        Opcode::Gather => gather(e).or_else(|| known_columns(e)),
        Opcode::Scatter => scatter(e),
        _ => None,
    })
}

/// The start of the only window of a gather or scatter: a scalar for each dimension of the operand.
struct Start {
    indices: Vec<InstrId>,
    ty: ElementType,
}

/// `None` if there are several windows. `map` is the operand dimension of each component of the index vector.
fn start(e: &mut Edit<'_>, indices: InstrId, rank: usize, map: &[i64]) -> Option<Start> {
    let array = e.array(indices)?;
    let ty = array.element_type;
    if array.checked_elements()? != i64::try_from(map.len()).ok()? || !ty.is_integer() {
        return None;
    }
    let zero = e.scalar_bits(ty, 0);
    let mut starts = vec![zero; rank];
    if let Some((_, bits)) = super::facts::splat(e.module, indices) {
        let scalar = e.scalar_bits(ty, bits);
        for &d in map {
            *starts.get_mut(usize::try_from(d).ok()?)? = scalar;
        }
        return Some(Start { indices: starts, ty });
    }
    let n = map.len() as i64;
    let flat = if e.array(indices)?.rank() == 1 { indices } else { e.reshape(indices, &[n])? };
    for (k, &d) in (0i64..).zip(map) {
        let one = if n == 1 { flat } else { e.cut(flat, 0, k, k + 1)? };
        *starts.get_mut(usize::try_from(d).ok()?)? = e.reshape(one, &[])?;
    }
    Some(Start { indices: starts, ty })
}

fn dynamic_slice(e: &mut Edit<'_>, x: InstrId, start: &Start, sizes: &[i64]) -> Option<InstrId> {
    let operands: Vec<InstrId> = std::iter::once(x).chain(start.indices.iter().copied()).collect();
    e.add(Opcode::DynamicSlice, &operands, Attrs::new().with(AttrKey::DynamicSliceSizes, ints(sizes)))
}

fn gather(e: &mut Edit<'_>) -> Option<InstrId> {
    let [x, indices] = e.operands()?;
    let (rank, dims) = (e.array(x)?.rank(), e.array(e.id())?.dims.clone());
    if e.array(x)?.element_type != e.array(e.id())?.element_type {
        return None;
    }
    let map = e.at().attrs.ints_or_empty(AttrKey::StartIndexMap).to_vec();
    let sizes = e.at().attrs.ints(AttrKey::SliceSizes)?.to_vec();
    if dims.iter().product::<i64>() != sizes.iter().product::<i64>() {
        return None;
    }
    let start = start(e, indices, rank, &map)?;
    let window = dynamic_slice(e, x, &start, &sizes)?;
    // Offset dimensions are in order, all others have size 1.
    if sizes[..] == dims[..] { Some(window) } else { e.reshape(window, &dims) }
}

/// A gather of few elements of each row, at the same constant indices in all.
fn known_columns(e: &mut Edit<'_>) -> Option<InstrId> {
    let [x, indices] = e.operands()?;
    let (array, dims) = (e.array(x)?.clone(), e.array(e.id())?.dims.clone());
    let (&size, outer) = array.dims.split_last()?;
    let last = outer.len() as i64;
    let attrs = &e.at().attrs;
    let of_rows = attrs.ints_or_empty(AttrKey::StartIndexMap) == [last]
        && attrs.ints_or_empty(AttrKey::CollapsedSliceDims) == [last]
        && attrs.ints_or_empty(AttrKey::OperandBatchingDims).is_empty()
        && attrs.ints_or_empty(AttrKey::OffsetDims).iter().copied().eq(0..last)
        && attrs.ints(AttrKey::SliceSizes)?.split_last() == Some((&1, outer));
    let count = e.array(indices)?.checked_elements()?;
    let converts = array.element_type != e.array(e.id())?.element_type;
    if !of_rows
        || converts
        || size == 0
        || !(1..=MAX_INTERLEAVED_COLUMNS).contains(&count)
        || array.is_dynamic()
    {
        return None;
    }
    // A run of consecutive indices is one part.
    let mut parts: Vec<(i64, i64)> = Vec::new();
    for index in facts::integers(e.module, indices)? {
        let at = i64::try_from(index.clamp(0, i128::from(size) - 1)).ok()?;
        match parts.last_mut() {
            Some(part) if part.1 == at => part.1 += 1,
            _ => parts.push((at, at + 1)),
        }
    }
    let parts: Option<Vec<InstrId>> =
        parts.into_iter().map(|(low, high)| e.cut(x, outer.len(), low, high)).collect();
    let parts = parts?;
    let all = if let [one] = parts[..] { one } else { e.concatenate(&parts, last)? };
    e.reshape(all, &dims)
}

fn scatter(e: &mut Edit<'_>) -> Option<InstrId> {
    let [x, indices, updates] = e.operands()?;
    let (dims, ty) = (e.array(x)?.dims.clone(), e.array(x)?.element_type);
    let update_dims = e.array(updates)?.dims.clone();
    if e.array(updates)?.element_type != ty || e.array(e.id())?.element_type != ty {
        return None;
    }
    if e.array(updates)?.checked_elements()? == 0 {
        return Some(x);
    }
    let attrs = &e.at().attrs;
    let combiner = attrs.computation(AttrKey::ToApply)?;
    let map = attrs.ints_or_empty(AttrKey::ScatterDimsToOperandDims).to_vec();
    let window = attrs.ints_or_empty(AttrKey::UpdateWindowDims).to_vec();
    let dropped =
        [attrs.ints_or_empty(AttrKey::InsertedWindowDims), attrs.ints_or_empty(AttrKey::InputBatchingDims)]
            .concat();
    // The window in the dimensions of the operand.
    let mut kept = window.iter().map(|&w| update_dims.get(usize::try_from(w).ok()?).copied());
    let sizes: Option<Vec<i64>> =
        (0i64..).zip(&dims).map(|(d, _)| if dropped.contains(&d) { Some(1) } else { kept.next()? }).collect();
    let sizes = sizes?;
    let scattered = (0i64..).zip(&update_dims).filter(|(u, _)| !window.contains(u)).map(|(_, &n)| n);
    if scattered.product::<i64>() != 1 {
        return one_each(e);
    }
    let start = start(e, indices, dims.len(), &map)?;
    let inside = inside(e, &start, &map, &dims, &sizes)?;
    if inside == Inside::Never {
        return Some(x);
    }
    let window = if update_dims[..] == sizes[..] { updates } else { e.reshape(updates, &sizes)? };
    let replaces = replaces(e.module, combiner)?;
    let mut new = window;
    let mut old = None;
    if !replaces || inside != Inside::Always {
        old = Some(dynamic_slice(e, x, &start, &sizes)?);
    }
    if let (false, Some(old)) = (replaces, old) {
        new = *lanes(e, combiner, &[old, window], &sizes)?.first()?;
    }
    if let (Inside::Asked(p), Some(old)) = (inside, old) {
        new = e.select(p, new, old)?;
    }
    let operands: Vec<InstrId> = [x, new].into_iter().chain(start.indices).collect();
    e.add(Opcode::DynamicUpdateSlice, &operands, Attrs::new())
}

/// The maximum length of rows for which a selection per element pays, if the previous values are unknown.
const MAX_UNROLLED: i64 = 16;

/// A scatter of at most one element into each row, whose dimension is a batching one or indexed by an iota.
fn one_each(e: &mut Edit<'_>) -> Option<InstrId> {
    let [x, indices, updates] = e.operands()?;
    let (dims, update_dims) = (e.array(x)?.dims.clone(), e.array(updates)?.dims.clone());
    let index_dims = e.array(indices)?.dims.clone();
    let index_type = e.array(indices)?.element_type;
    let attrs = &e.at().attrs;
    let combiner = attrs.computation(AttrKey::ToApply)?;
    let map = attrs.ints_or_empty(AttrKey::ScatterDimsToOperandDims).to_vec();
    let batching = attrs.ints_or_empty(AttrKey::InputBatchingDims).to_vec();
    let indices_batching = attrs.ints_or_empty(AttrKey::ScatterIndicesBatchingDims).to_vec();
    let vector = usize::try_from(attrs.int(AttrKey::IndexVectorDim)?).ok()?;
    if !attrs.ints_or_empty(AttrKey::UpdateWindowDims).is_empty() {
        return None;
    }
    // Dimensions of updates are those of index vectors, in order. What each component of these is.
    let batch = |d: usize| if d > vector { d - 1 } else { d };
    let components = components(e.module, indices, vector, map.len())?;
    let mut update_dim = vec![None; dims.len()];
    for (d, from) in batching.iter().zip(&indices_batching) {
        *update_dim.get_mut(usize::try_from(*d).ok()?)? = Some(batch(usize::try_from(*from).ok()?));
    }
    let mut chosen = None;
    for (&d, &component) in map.iter().zip(&components) {
        let d = usize::try_from(d).ok()?;
        let counts = (0..index_dims.len()).filter(|&i| i != vector).find(|&i| {
            index_dims[i] > 1
                && dims.get(d) == Some(&index_dims[i])
                && facts::counts_along(e.module, component, i)
        });
        match (counts, chosen) {
            (Some(i), _) => *update_dim.get_mut(d)? = Some(batch(i)),
            (None, None) => chosen = Some((d, component)),
            (None, Some(_)) => return None,
        }
    }
    let (along, component) = chosen?;
    // Rows are all other dimensions, in the order of the updates'; the remaining ones have size 1.
    let rows: Vec<usize> = (0..dims.len()).filter(|&d| d != along).collect();
    let row_update_dims: Option<Vec<usize>> = rows.iter().map(|&d| update_dim[d]).collect();
    let row_update_dims = row_update_dims?;
    let row_dims: Vec<i64> = rows.iter().map(|&d| dims[d]).collect();
    let same = row_update_dims.iter().zip(&row_dims).all(|(&p, n)| update_dims.get(p) == Some(n));
    if !same || !row_update_dims.is_sorted_by(|a, b| a < b) || update_dim[along].is_some() {
        return None;
    }
    if update_dims.iter().product::<i64>() != row_dims.iter().product() {
        return None;
    }
    let n = dims[along];
    let known = facts::splat(e.module, x).is_some();
    if !known && n > MAX_UNROLLED || i128::from(n) - 1 > index_type.integer_limits()?.1 {
        return None;
    }
    let mapping: Vec<i64> = rows.iter().map(|&d| d as i64).collect();
    let index = e.reshape(component, &row_dims)?;
    let index = e.broadcast(index, &dims, &mapping)?;
    let update = e.reshape(updates, &row_dims)?;
    let update = e.broadcast(update, &dims, &mapping)?;
    let shape = e.array(index)?.without_layout();
    let dim = Attrs::new().with(AttrKey::IotaDimension, AttrValue::Int(along as i64));
    let count = e.shaped(Opcode::Iota, Shape::Array(shape), &[], dim)?;
    let here = e.compare(Direction::Eq, count, index)?;
    let new = if replaces(e.module, combiner)? {
        update
    } else {
        *lanes(e, combiner, &[x, update], &dims)?.first()?
    };
    e.select(here, new, x)
}

/// The components of index vectors, each with size 1 in the vectors' dimension (or without it): parts of a
/// concatenation, or the only one.
fn components(module: &Module, indices: InstrId, vector: usize, count: usize) -> Option<Vec<InstrId>> {
    if count == 1 {
        return Some(vec![indices]);
    }
    let instr = module.instr(indices);
    let parts = instr.operands();
    let ty = instr.shape.element_type();
    let one = |&p: &InstrId| {
        let part = module.instr(p).shape.as_array();
        part.is_some_and(|a| a.dims.get(vector) == Some(&1)) && module.instr(p).shape.element_type() == ty
    };
    let along = instr.attrs.ints_or_empty(AttrKey::Dimensions).first().and_then(|&d| usize::try_from(d).ok());
    let fits = instr.opcode == Opcode::Concatenate && along == Some(vector) && parts.len() == count;
    (fits && parts.iter().all(one)).then(|| parts.to_vec())
}

/// Whether a combiner returns the update (an overwrite).
fn replaces(module: &Module, combiner: hlo::ComputationId) -> Option<bool> {
    let parameters = module.computation(combiner).parameters();
    (parameters.len() == 2).then(|| parameters.get(1) == Some(&Some(module.root(combiner))))
}

/// Whether a window is inside of its operand.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Inside {
    Always,
    /// The value of a constant scalar predicate.
    Asked(InstrId),
    Never,
}

fn inside(e: &mut Edit<'_>, start: &Start, map: &[i64], dims: &[i64], sizes: &[i64]) -> Option<Inside> {
    let mut all = None;
    let both = |e: &mut Edit<'_>, p: InstrId, all: &mut Option<InstrId>| {
        *all = Some(match *all {
            Some(q) => e.binary(Opcode::And, q, p)?,
            None => p,
        });
        Some(())
    };
    for &d in map {
        let d = usize::try_from(d).ok()?;
        let (index, most) = (*start.indices.get(d)?, i128::from(dims.get(d)? - sizes.get(d)?));
        if let Some(at) = integer(e.module, index) {
            if !(0..=most).contains(&at) {
                return Some(Inside::Never);
            }
            continue;
        }
        let (least, largest) = start.ty.integer_limits()?;
        if least < 0 {
            let zero = e.scalar_bits(start.ty, 0);
            let p = e.compare(Direction::Ge, index, zero)?;
            both(e, p, &mut all)?;
        }
        if most < largest {
            let bound = e.scalar_bits(start.ty, u128::try_from(most).ok()?);
            let p = e.compare(Direction::Le, index, bound)?;
            both(e, p, &mut all)?;
        }
    }
    Some(all.map_or(Inside::Always, Inside::Asked))
}
