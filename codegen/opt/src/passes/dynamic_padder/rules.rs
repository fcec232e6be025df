//! The rules for padded arrays, opcode by opcode.

use hlo::attrs::{AttrKey, AttrValue, Attrs, Direction, PaddingDim};
use hlo::builder::ComputationBuilder;
use hlo::{Dims, ElementType, InstrId, Opcode, Shape};
use smallvec::SmallVec;

use super::folds::{reduce, reduce_window};
use super::masks::{behind, iota, repeated, shared, valid, zeros_behind};
use super::{Sizes, View, checked_size, must_reach, number, view};
use crate::passes::edit::{Edit, ints};
use crate::passes::facts;

/// The padded result and its sizes. `None`: there is no rule.
pub(super) fn padded(e: &mut Edit<'_>) -> Option<View> {
    let opcode = e.at().opcode;
    match opcode {
        Opcode::SetDimensionSize => set_dimension_size(e),
        Opcode::DynamicReshape => dynamic_reshape(e),
        Opcode::Reshape => reshape(e),
        Opcode::Broadcast => broadcast(e),
        Opcode::Transpose => transpose(e),
        Opcode::Reverse => reverse(e),
        Opcode::Slice => slice(e),
        Opcode::DynamicSlice => dynamic_slice(e),
        Opcode::Pad => pad(e),
        Opcode::Concatenate => concatenate(e),
        Opcode::Reduce => reduce(e),
        Opcode::ReduceWindow => reduce_window(e),
        Opcode::Dot => dot(e),
        Opcode::Sort => sort(e),
        Opcode::Gather => gather(e),
        Opcode::Map | Opcode::Copy => elementwise(e),
        _ if opcode.flags().elementwise => elementwise(e),
        _ => None,
    }
}

pub(super) fn views(e: &mut Edit<'_>) -> Option<Vec<View>> {
    let operands = e.at().operands().to_vec();
    operands.into_iter().map(|o| view(e, o)).collect()
}

pub(super) fn arrays(views: &[View]) -> Vec<InstrId> {
    views.iter().map(|v| v.array).collect()
}

pub(super) fn dim_indices(values: &[i64]) -> Option<Vec<usize>> {
    values.iter().map(|&v| usize::try_from(v).ok()).collect()
}

/// The instruction itself on other operands, with a result of its bounds.
pub(super) fn again(e: &mut Edit<'_>, operands: &[InstrId]) -> Option<InstrId> {
    let shape = e.at().shape.as_array()?;
    let shape = Shape::array(shape.element_type, &shape.dims.clone());
    let (opcode, attrs) = (e.at().opcode, e.at().attrs.clone());
    e.shaped(opcode, shape, operands, attrs)
}

fn elementwise(e: &mut Edit<'_>) -> Option<View> {
    let rank = e.at().shape.as_array()?.rank();
    let mut views = views(e)?;
    let mut sizes = Sizes::new();
    for d in 0..rank {
        let all: Vec<Option<InstrId>> = views.iter().filter_map(|v| v.sizes.get(d)).copied().collect();
        let size = shared(e, &all, true)?;
        let several = all.iter().flatten().any(|&s| Some(s) != size);
        if several {
            for view in views.iter_mut().filter(|v| v.sizes.len() == rank) {
                view.array = repeated(e, view, d)?;
            }
        }
        sizes.push(size);
    }
    let array = again(e, &arrays(&views))?;
    Some(View { array, sizes })
}

fn set_dimension_size(e: &mut Edit<'_>) -> Option<View> {
    let [x, size] = e.operands()?;
    let &[d] = e.at().attrs.ints(AttrKey::Dimensions)? else { return None };
    let d = usize::try_from(d).ok()?;
    let mut view = view(e, x)?;
    let bound = *e.array(view.array)?.dims.get(d)?;
    if view.sizes[d].is_some() {
        // It may grow; the new elements are zeros.
        view.array = zeros_behind(e, &view)?;
    }
    let size = checked_size(e, size, bound, d)?;
    let dynamic = e.at().shape.as_array()?.is_dynamic_dim(d);
    if !dynamic && facts::integer(e.module, size) != Some(i128::from(bound)) {
        return None;
    }
    view.sizes[d] = dynamic.then_some(size);
    Some(view)
}

fn broadcast(e: &mut Edit<'_>) -> Option<View> {
    let mapping = dim_indices(e.at().attrs.ints_or_empty(AttrKey::Dimensions))?;
    let view = view(e, e.operand(0)?)?;
    let mut sizes: Sizes = SmallVec::from_elem(None, e.at().shape.as_array()?.rank());
    for (&to, &size) in mapping.iter().zip(&view.sizes) {
        *sizes.get_mut(to)? = size;
    }
    let array = again(e, &[view.array])?;
    Some(View { array, sizes })
}

fn transpose(e: &mut Edit<'_>) -> Option<View> {
    let permutation = dim_indices(e.at().attrs.ints(AttrKey::Dimensions)?)?;
    let view = view(e, e.operand(0)?)?;
    let sizes = permutation.iter().map(|&d| view.sizes.get(d).copied()).collect::<Option<Sizes>>()?;
    let array = again(e, &[view.array])?;
    Some(View { array, sizes })
}

/// Reversal: the valid elements end up at the end of the padded array, and are moved to the front.
fn reverse(e: &mut Edit<'_>) -> Option<View> {
    let dims = dim_indices(e.at().attrs.ints_or_empty(AttrKey::Dimensions))?;
    let view = view(e, e.operand(0)?)?;
    let mut array = again(e, &[view.array])?;
    let bounds = e.array(array)?.dims.clone();
    for d in dims {
        let Some(size) = *view.sizes.get(d)? else { continue };
        let ty = e.array(array)?.element_type;
        let zero = e.scalar_bits(ty, 0);
        let mut padding: Vec<PaddingDim> = vec![PaddingDim { low: 0, high: 0, interior: 0 }; bounds.len()];
        padding[d].high = bounds[d];
        let long = e.pad(array, zero, &padding)?;
        let bound = number(e, bounds[d])?;
        let start = e.binary(Opcode::Subtract, bound, size)?;
        let mut operands = vec![long];
        for i in 0..bounds.len() {
            operands.push(if i == d { start } else { number(e, 0)? });
        }
        let attrs = Attrs::new().with(AttrKey::DynamicSliceSizes, ints(&bounds));
        array = e.add(Opcode::DynamicSlice, &operands, attrs)?;
    }
    Some(View { array, sizes: view.sizes })
}

/// `max(n, 0)`
pub(super) fn positive(e: &mut Edit<'_>, n: InstrId) -> Option<InstrId> {
    let zero = number(e, 0)?;
    e.binary(Opcode::Maximum, n, zero)
}

/// The part of the box that is valid; in a static dimension all of it is.
fn slice(e: &mut Edit<'_>) -> Option<View> {
    let slices = e.at().attrs.slices()?.to_vec();
    let view = view(e, e.operand(0)?)?;
    let shape = e.at().shape.as_array()?.clone();
    let bounds = e.array(view.array)?.dims.clone();
    let mut sizes = Sizes::new();
    for (d, (s, &size)) in slices.iter().zip(&view.sizes).enumerate() {
        sizes.push(match size {
            None => None,
            Some(size) if !shape.is_dynamic_dim(d) => {
                must_reach(e, d, size, bounds[d], s.limit)?;
                None
            }
            Some(size) => {
                let (start, limit) = (number(e, s.start)?, number(e, s.limit)?);
                let (before, stride) = (number(e, s.stride - 1)?, number(e, s.stride)?);
                let end = e.binary(Opcode::Minimum, size, limit)?;
                let length = e.binary(Opcode::Subtract, end, start)?;
                let length = positive(e, length)?;
                let length = e.binary(Opcode::Add, length, before)?;
                Some(e.binary(Opcode::Divide, length, stride)?)
            }
        });
    }
    let array = again(e, &[view.array])?;
    Some(View { array, sizes })
}

/// A slice of a whole dynamic dimension is its valid part, from the beginning.
fn dynamic_slice(e: &mut Edit<'_>) -> Option<View> {
    let lengths = e.at().attrs.ints(AttrKey::DynamicSliceSizes)?.to_vec();
    let view = view(e, e.operand(0)?)?;
    let bounds = e.array(view.array)?.dims.clone();
    let mut operands = e.at().operands().to_vec();
    if operands.len() != bounds.len() + 1 {
        return None;
    }
    operands[0] = view.array;
    for d in (0..bounds.len()).filter(|&d| view.sizes[d].is_some()) {
        if lengths[d] != bounds[d] {
            return None;
        }
        let ty = e.array(operands[d + 1])?.element_type;
        operands[d + 1] = e.scalar_bits(ty, 0);
    }
    let array = again(e, &operands)?;
    Some(View { array, sizes: view.sizes })
}

fn pad(e: &mut Edit<'_>) -> Option<View> {
    let padding = e.at().attrs.padding()?.to_vec();
    let [x, value] = e.operands()?;
    let view = view(e, x)?;
    let inside = behind(e, &view, value)?;
    let mut sizes = Sizes::new();
    for (p, &size) in padding.iter().zip(&view.sizes) {
        sizes.push(match size {
            None => None,
            Some(size) => {
                let one = number(e, 1)?;
                let gaps = e.binary(Opcode::Subtract, size, one)?;
                let gaps = positive(e, gaps)?;
                let interior = number(e, p.interior)?;
                let gaps = e.binary(Opcode::Multiply, gaps, interior)?;
                let edges = number(e, p.low.checked_add(p.high)?)?;
                let length = e.binary(Opcode::Add, size, gaps)?;
                let length = e.binary(Opcode::Add, length, edges)?;
                Some(positive(e, length)?)
            }
        });
    }
    let array = again(e, &[inside, value])?;
    Some(View { array, sizes })
}

/// Each part is written where the previous ones end, over their padding.
fn concatenate(e: &mut Edit<'_>) -> Option<View> {
    let &[along] = e.at().attrs.ints(AttrKey::Dimensions)? else { return None };
    let along = usize::try_from(along).ok()?;
    let views = views(e)?;
    let bounds = e.at().shape.as_array()?.dims.clone();
    let mut sizes = Sizes::new();
    for d in 0..bounds.len() {
        if d == along {
            sizes.push(None);
            continue;
        }
        let all: Vec<Option<InstrId>> = views.iter().map(|v| v.sizes[d]).collect();
        sizes.push(shared(e, &all, false)?);
    }
    if views.iter().all(|v| v.sizes[along].is_none()) {
        let array = again(e, &arrays(&views))?;
        return Some(View { array, sizes });
    }
    let ty = e.at().shape.element_type()?;
    let zero = e.scalar_bits(ty, 0);
    let mut array = e.fill_dims(zero, &bounds)?;
    let mut end = number(e, 0)?;
    for view in &views {
        let mut operands = vec![array, view.array];
        for d in 0..bounds.len() {
            operands.push(if d == along { end } else { number(e, 0)? });
        }
        array = e.add(Opcode::DynamicUpdateSlice, &operands, Attrs::new())?;
        let length = match view.sizes[along] {
            Some(size) => size,
            None => {
                let bound = e.array(view.array)?.dims[along];
                number(e, bound)?
            }
        };
        end = e.binary(Opcode::Add, end, length)?;
    }
    sizes[along] = Some(end);
    Some(View { array, sizes })
}

/// Products of padding are -0, the neutral element of sums; a sum of no products is 0.
fn dot(e: &mut Edit<'_>) -> Option<View> {
    let attrs = e.at().attrs.clone();
    let list = |key| dim_indices(attrs.ints_or_empty(key));
    let contracting = [list(AttrKey::LhsContractingDims)?, list(AttrKey::RhsContractingDims)?];
    let batch = [list(AttrKey::LhsBatchDims)?, list(AttrKey::RhsBatchDims)?];
    let views = views(e)?;
    let [lhs, rhs] = &views[..] else { return None };
    let mut folded =
        [lhs, rhs].map(|v| View { array: v.array, sizes: SmallVec::from_elem(None, v.sizes.len()) });
    let mut counts = Vec::new();
    for (&i, &j) in contracting[0].iter().zip(&contracting[1]) {
        let size = shared(e, &[lhs.sizes[i], rhs.sizes[j]], false)?;
        folded[0].sizes[i] = size;
        folded[1].sizes[j] = size;
        counts.extend(size);
    }
    let mut sizes = Sizes::new();
    for (&i, &j) in batch[0].iter().zip(&batch[1]) {
        sizes.push(shared(e, &[lhs.sizes[i], rhs.sizes[j]], false)?);
    }
    for (side, view) in [lhs, rhs].into_iter().enumerate() {
        let free =
            (0..view.sizes.len()).filter(|d| !contracting[side].contains(d) && !batch[side].contains(d));
        sizes.extend(free.map(|d| view.sizes[d]));
    }
    if counts.is_empty() {
        let array = again(e, &[lhs.array, rhs.array])?;
        return Some(View { array, sizes });
    }
    let mut operands = Vec::new();
    for (side, view) in folded.iter().enumerate() {
        let ty = e.array(view.array)?.element_type;
        let number = if side == 0 { -0.0 } else { 0.0 };
        let bits = match ty {
            _ if ty.is_integer() => 0,
            _ if ty.is_float() && facts::is_ieee(ty) => facts::float_bits(ty, number)?,
            _ => return None,
        };
        let fill = e.scalar_bits(ty, bits);
        operands.push(behind(e, view, fill)?);
    }
    let mut array = again(e, &operands)?;
    let ty = e.array(array)?.element_type;
    for count in counts {
        let none = number(e, 0)?;
        let empty = e.compare(Direction::Eq, count, none)?;
        let empty = e.fill(empty, array)?;
        let zero = e.scalar_bits(ty, 0);
        let zeros = e.fill(zero, array)?;
        array = e.select(empty, zeros, array)?;
    }
    Some(View { array, sizes })
}

/// Padding sorts last: a flag is compared first.
fn sort(e: &mut Edit<'_>) -> Option<View> {
    let &[along] = e.at().attrs.ints(AttrKey::Dimensions)? else { return None };
    let along = usize::try_from(along).ok()?;
    let views = views(e)?;
    let [view] = &views[..] else { return None };
    let Some(size) = *view.sizes.get(along)? else {
        let array = again(e, &[view.array])?;
        return Some(View { array, sizes: view.sizes.clone() });
    };
    let comparator = e.at().attrs.computation(AttrKey::ToApply)?;
    let mut folded = View { array: view.array, sizes: SmallVec::from_elem(None, view.sizes.len()) };
    folded.sizes[along] = Some(size);
    let flags = valid(e, &folded)??;
    let ty = e.array(view.array)?.element_type;
    let mut b = ComputationBuilder::new(e.module, "flagged");
    let (value, flag) = (Shape::scalar(ty), Shape::scalar(ElementType::Pred));
    let (u, v) = (b.parameter("u", value.clone()), b.parameter("v", value));
    let (p, q) = (b.parameter("p", flag.clone()), b.parameter("q", flag));
    let less = b.call(comparator, &[u, v]).ok()?;
    let last = b.unary(Opcode::Not, q).ok()?;
    let less = b.binary(Opcode::Or, last, less).ok()?;
    b.binary(Opcode::And, p, less).ok()?;
    let region = b.finish();
    e.before_caller(region);
    let attrs = e.at().attrs.clone().with(AttrKey::ToApply, AttrValue::Computation(region));
    let pair = e.add(Opcode::Sort, &[view.array, flags], attrs)?;
    let array = e.get(pair, 0)?;
    Some(View { array, sizes: view.sizes.clone() })
}

/// Indices have run-time sizes, not what they index.
fn gather(e: &mut Edit<'_>) -> Option<View> {
    let [x, indices] = e.operands()?;
    let (x, indices) = (view(e, x)?, view(e, indices)?);
    let vector = usize::try_from(e.at().attrs.int(AttrKey::IndexVectorDim)?).ok()?;
    let offsets = dim_indices(e.at().attrs.ints_or_empty(AttrKey::OffsetDims))?;
    let points = indices.sizes.get(vector).copied().flatten();
    if !x.is_static() || points.is_some() {
        return None;
    }
    let batch: Sizes =
        indices.sizes.iter().enumerate().filter(|(d, _)| *d != vector).map(|(_, &s)| s).collect();
    let mut batch = batch.into_iter();
    let rank = e.at().shape.as_array()?.rank();
    let mut sizes = Sizes::new();
    for d in 0..rank {
        sizes.push(if offsets.contains(&d) { None } else { batch.next()? });
    }
    let array = again(e, &[x.array, indices.array])?;
    Some(View { array, sizes })
}

/// Indices and updates have run-time sizes: padded indices are out of bounds.
pub(super) fn scatter(e: &mut Edit<'_>) -> Option<InstrId> {
    let views = views(e)?;
    let n = views.len() / 2;
    let (indices, updates) = (views.get(n)?, views.get(n + 1..)?);
    let vector = usize::try_from(e.at().attrs.int(AttrKey::IndexVectorDim)?).ok()?;
    let windows = dim_indices(e.at().attrs.ints_or_empty(AttrKey::UpdateWindowDims))?;
    let point = indices.sizes.get(vector).copied().flatten();
    if point.is_some() || views[..n].iter().any(|v| !v.is_static()) {
        return None;
    }
    // An empty index vector has the only possible position.
    if indices.sizes.len() > vector && e.array(indices.array)?.dims[vector] == 0 {
        return None;
    }
    let batch: Vec<usize> = (0..indices.sizes.len()).filter(|&d| d != vector).collect();
    let mut valid = View { array: indices.array, sizes: SmallVec::from_elem(None, indices.sizes.len()) };
    for (i, &d) in batch.iter().enumerate() {
        let mut all = vec![indices.sizes[d]];
        for update in updates {
            let scattered: Vec<usize> = (0..update.sizes.len()).filter(|d| !windows.contains(d)).collect();
            all.push(update.sizes[*scattered.get(i)?]);
        }
        valid.sizes[d] = shared(e, &all, false)?;
    }
    if updates.iter().any(|u| windows.iter().any(|&w| u.sizes.get(w).copied().flatten().is_some())) {
        return None;
    }
    let ty = e.array(indices.array)?.element_type;
    let outside = e.scalar_bits(ty, u128::MAX >> (128 - ty.bits()));
    let indices = behind(e, &valid, outside)?;
    let mut operands = arrays(&views[..n]);
    operands.push(indices);
    operands.extend(arrays(updates));
    // Out-of-bounds indices keep the declared order of indices, and no two are equal.
    let attrs = e.at().attrs.clone().with(AttrKey::IndicesAreSorted, AttrValue::Bool(false));
    let (opcode, shape) = (e.at().opcode, e.at().shape.clone());
    e.shaped(opcode, shape, &operands, attrs)
}

/// Groups of dimensions whose bounds have the same product correspond: one keeps its sizes, or one dimension
/// of the result holds all elements.
fn reshape(e: &mut Edit<'_>) -> Option<View> {
    let view = view(e, e.operand(0)?)?;
    let shape = e.at().shape.as_array()?.clone();
    let inferred = e.at().attrs.int(AttrKey::InferredDimension).and_then(|d| usize::try_from(d).ok());
    let bounds = e.array(view.array)?.dims.clone();
    let mut sizes: Sizes = SmallVec::from_elem(None, shape.rank());
    // Whether valid elements have the same offsets in the padded arrays as in the real ones.
    let mut in_place = true;
    for (from, to) in runs(&bounds, &shape.dims)? {
        if bounds[from.clone()] == shape.dims[to.clone()] {
            sizes[to].copy_from_slice(&view.sizes[from]);
            continue;
        }
        if from.clone().all(|d| view.sizes[d].is_none()) {
            continue;
        }
        // Elements that must exist.
        if to.clone().all(|d| shape.dims[d] == 1 && !shape.is_dynamic_dim(d)) {
            for d in from {
                if let Some(size) = view.sizes[d] {
                    must_reach(e, d, size, bounds[d], bounds[d])?;
                }
            }
            continue;
        }
        let only = |wanted: &dyn Fn(usize) -> bool| {
            let mut all = to.clone().filter(|&d| wanted(d));
            all.next().filter(|_| all.next().is_none())
        };
        let free = only(&|d| shape.is_dynamic_dim(d))
            .or_else(|| inferred.filter(|d| to.contains(d)))
            .or_else(|| only(&|d| shape.dims[d] != 1))?;
        if to.clone().any(|d| d != free && shape.dims[d] != 1) || !shape.is_dynamic_dim(free) {
            return None;
        }
        let mut count = number(e, 1)?;
        for d in from.clone() {
            let size = match view.sizes[d] {
                Some(size) => size,
                None => number(e, bounds[d])?,
            };
            count = e.binary(Opcode::Multiply, count, size)?;
        }
        sizes[free] = Some(count);
        let first = from.clone().find(|&d| bounds[d] != 1);
        in_place &= from.clone().all(|d| view.sizes[d].is_none() || Some(d) == first);
    }
    if in_place {
        let array = e.reshape(view.array, &shape.dims)?;
        return Some(View { array, sizes });
    }
    relaid(e, &view, &shape.dims, sizes)
}

type Run = std::ops::Range<usize>;

/// The shortest groups of dimensions with the same product.
fn runs(a: &[i64], b: &[i64]) -> Option<Vec<(Run, Run)>> {
    let (mut i, mut j) = (0, 0);
    let mut runs = Vec::new();
    while i < a.len() || j < b.len() {
        let (from, to) = (i, j);
        let (mut m, mut n) = (1i64, 1i64);
        if i < a.len() {
            m = a[i];
            i += 1;
        }
        if j < b.len() {
            n = b[j];
            j += 1;
        }
        while m != n {
            if m < n && i < a.len() {
                m = m.checked_mul(a[i])?;
                i += 1;
            } else if n < m && j < b.len() {
                n = n.checked_mul(b[j])?;
                j += 1;
            } else {
                return None;
            }
        }
        runs.push((from..i, to..j));
    }
    Some(runs)
}

/// The sizes are operands.
fn dynamic_reshape(e: &mut Edit<'_>) -> Option<View> {
    let (&x, given) = e.at().operands().split_first()?;
    let given = given.to_vec();
    let view = view(e, x)?;
    let shape = e.at().shape.as_array()?.clone();
    if given.len() != shape.rank() {
        return None;
    }
    // Another number of elements stops the program; whether that is possible must be known now.
    let constant = |size: InstrId| facts::integer(e.module, size);
    let all: i128 = given.iter().map(|&s| constant(s)).product::<Option<i128>>()?;
    let bounds = e.array(view.array)?.dims.clone();
    let mut there: i128 = 1;
    for (&size, &bound) in view.sizes.iter().zip(&bounds) {
        there *= size.map_or(Some(i128::from(bound)), constant)?;
    }
    let fits = given
        .iter()
        .zip(&shape.dims)
        .all(|(&s, &bound)| constant(s).is_some_and(|n| (0..=i128::from(bound)).contains(&n)));
    if all != there || !fits {
        return None;
    }
    let mut sizes = Sizes::new();
    for (d, &size) in given.iter().enumerate() {
        let size = e.convert(size, ElementType::S32)?;
        let whole = !shape.is_dynamic_dim(d);
        if whole && facts::integer(e.module, given[d]) != Some(i128::from(shape.dims[d])) {
            return None;
        }
        sizes.push((!whole).then_some(size));
    }
    relaid(e, &view, &shape.dims, sizes)
}

/// The elements in row-major order, in an array of other bounds and sizes.
fn relaid(e: &mut Edit<'_>, view: &View, bounds: &Dims, sizes: Sizes) -> Option<View> {
    let from = e.array(view.array)?.dims.clone();
    let flat = from.iter().try_fold(1i64, |n, &d| n.checked_mul(d))?;
    let wide = bounds.iter().try_fold(1i64, |n, &d| n.checked_mul(d))?;
    i32::try_from(flat.max(wide)).ok()?;
    if flat == 0 || wide == 0 {
        let ty = e.array(view.array)?.element_type;
        let zero = e.scalar_bits(ty, 0);
        let array = e.fill_dims(zero, bounds)?;
        return Some(View { array, sizes });
    }
    // The linear index of an element: of its index in the result, by the run-time sizes.
    let mut linear = number(e, 0)?;
    linear = e.fill_dims(linear, bounds)?;
    for d in 0..bounds.len() {
        let size = match sizes[d] {
            Some(size) => size,
            None => number(e, bounds[d])?,
        };
        let size = e.fill_dims(size, bounds)?;
        linear = e.binary(Opcode::Multiply, linear, size)?;
        let index = iota(e, bounds, d)?;
        linear = e.binary(Opcode::Add, linear, index)?;
    }
    // Its offset among the padded elements.
    let mut at = number(e, 0)?;
    at = e.fill_dims(at, bounds)?;
    let mut stride = 1;
    for d in (0..from.len()).rev() {
        let size = match view.sizes[d] {
            Some(size) => {
                let one = number(e, 1)?;
                e.binary(Opcode::Maximum, size, one)?
            }
            None => number(e, from[d])?,
        };
        let size = e.fill_dims(size, bounds)?;
        let index = e.binary(Opcode::Remainder, linear, size)?;
        linear = e.binary(Opcode::Divide, linear, size)?;
        let step = number(e, stride)?;
        let step = e.fill_dims(step, bounds)?;
        let index = e.binary(Opcode::Multiply, index, step)?;
        at = e.binary(Opcode::Add, at, index)?;
        stride *= from[d];
    }
    let x = e.reshape(view.array, &[flat])?;
    let attrs = Attrs::new()
        .with(AttrKey::OffsetDims, ints(&[]))
        .with(AttrKey::CollapsedSliceDims, ints(&[0]))
        .with(AttrKey::StartIndexMap, ints(&[0]))
        .with(AttrKey::IndexVectorDim, AttrValue::Int(bounds.len() as i64))
        .with(AttrKey::SliceSizes, ints(&[1]));
    let array = e.add(Opcode::Gather, &[x, at], attrs)?;
    Some(View { array, sizes })
}
