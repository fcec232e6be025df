//! Shapes, attributes and values after a change of dimensions.

use std::ops::Range;
use std::sync::Arc;

use hlo::attrs::{AttrKey, AttrValue, Attrs, Ints, PaddingDim, SliceDim, Window, WindowDim};
use hlo::{ArrayLiteral, ArrayShape, ConstantValue, InstrId, Literal, Opcode, Shape};
use smallvec::SmallVec;

use super::classes::{Change, Dims, Var};
use super::solve::{extents, padded, placements};
use crate::reduce::Candidate;
use crate::reduce::program::input_offsets;
use crate::reduce::values::{box_positions, take};

/// Which part of an array is kept where it shrinks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Keep {
    /// The first elements.
    First,
    /// The last elements.
    Last,
}

/// An instruction after the change.
struct New {
    id: InstrId,
    shape: Shape,
    attrs: Option<Attrs>,
    operands: Option<Vec<InstrId>>,
}

/// Carries out what `dims` has decided. `None` if some instruction cannot follow; then the candidate is
/// unusable.
pub(super) fn rewrite(c: &mut Candidate, decide: impl FnOnce(&mut Dims<'_>) -> Option<Keep>) -> Option<()> {
    let (new, inputs) = {
        let mut dims = Dims::new(&c.module);
        let keep = decide(&mut dims)?;
        dims.solve()?;
        let mut new = Vec::new();
        for id in dims.instructions() {
            new.push(dims.rewritten(id, keep)?);
        }
        (new, cropped_inputs(c, &dims, keep)?)
    };
    for n in new {
        let i = c.module.instr_mut(n.id);
        i.shape = n.shape;
        if let Some(attrs) = n.attrs {
            i.attrs = attrs;
        }
        if let Some(operands) = n.operands {
            c.module.set_operands(n.id, &operands);
        }
    }
    for (device, at, array) in inputs {
        c.inputs[device][at] = array;
    }
    Some(())
}

fn cropped_inputs(c: &Candidate, dims: &Dims<'_>, keep: Keep) -> Option<Vec<(usize, usize, ArrayLiteral)>> {
    let mut cropped = Vec::new();
    for (p, at) in input_offsets(&c.module) {
        if !dims.live.has(p) {
            continue;
        }
        let leaves = c.module.instr(p).shape.leaves();
        let arrays =
            leaves.iter().enumerate().filter(|(_, s)| matches!(s, Shape::Array(_) | Shape::Buffer(_)));
        for (n, (leaf, _)) in arrays.enumerate() {
            let range = dims.leaf(p, leaf);
            if range.clone().all(|v| dims.change(v).is_none()) {
                continue;
            }
            for (device, inputs) in c.inputs.iter().enumerate() {
                cropped.push((device, at + n, crop(inputs.get(at + n)?, dims, range.clone(), keep)?));
            }
        }
    }
    cropped.sort_by_key(|c| (c.0, c.1));
    Some(cropped)
}

fn crop(array: &ArrayLiteral, dims: &Dims<'_>, range: Range<Var>, keep: Keep) -> Option<ArrayLiteral> {
    if array.dims.len() != range.len() {
        return None;
    }
    let sizes: Vec<i64> = range.clone().map(|v| dims.size(v)).collect();
    // What grows repeats the last element.
    let mut result = array.clone();
    for (d, &size) in sizes.iter().enumerate() {
        let old = result.dims[d];
        let mut whole: Vec<i64> = result.dims.to_vec();
        if size <= old {
            let start = if keep == Keep::First { 0 } else { old - size };
            let mut starts = vec![0; whole.len()];
            starts[d] = start;
            let from = whole.clone();
            whole[d] = size;
            result.buffer = take(&result.buffer, &box_positions(&from, &starts, &whole)).into();
        } else {
            if old == 0 {
                return None;
            }
            let inner: usize = whole[d + 1..].iter().product::<i64>() as usize;
            let outer: usize = whole[..d].iter().product::<i64>() as usize;
            let mut positions = Vec::new();
            for o in 0..outer {
                for k in 0..size {
                    let row = o * old as usize + k.min(old - 1) as usize;
                    positions.extend(row * inner..(row + 1) * inner);
                }
            }
            whole[d] = size;
            result.buffer = take(&result.buffer, &positions).into();
        }
        result.dims = whole.into();
    }
    result.dims = range.filter(|&v| dims.change(v) != Some(Change::Drop)).map(|v| dims.size(v)).collect();
    Some(result)
}

impl Dims<'_> {
    fn dropped(&self, v: Var) -> bool {
        self.change(v) == Some(Change::Drop)
    }

    /// The number of a dimension after the change; `None` if it is dropped.
    fn renumbered(&self, range: &Range<Var>, d: usize) -> Option<i64> {
        let v = range.start + d;
        if d >= range.len() || self.dropped(v) {
            return None;
        }
        Some((range.start..v).filter(|&v| !self.dropped(v)).count() as i64)
    }

    fn renumbered_list(&self, range: &Range<Var>, list: &[i64]) -> Ints {
        list.iter().filter_map(|&d| self.renumbered(range, usize::try_from(d).ok()?)).collect()
    }

    fn new_array(&self, a: &ArrayShape, range: Range<Var>) -> ArrayShape {
        let mut new = ArrayShape::new(a.element_type, &[]);
        for (d, v) in range.clone().enumerate() {
            if !self.dropped(v) {
                new.dynamic |= u64::from(a.is_dynamic_dim(d)) << new.dims.len();
                new.dims.push(self.size(v));
            }
        }
        if new.dims.len() == a.dims.len() {
            new.layout.clone_from(&a.layout);
        }
        new
    }

    fn new_shape(&self, shape: &Shape, id: InstrId, leaf: &mut usize) -> Shape {
        match shape {
            Shape::Array(a) => {
                *leaf += 1;
                Shape::Array(self.new_array(a, self.leaf(id, *leaf - 1)))
            }
            Shape::Tuple(t) => Shape::tuple(t.iter().map(|s| self.new_shape(s, id, leaf))),
            Shape::Token | Shape::Opaque | Shape::Buffer(_) => {
                *leaf += 1;
                shape.clone()
            }
        }
    }

    fn touched(&self, id: InstrId) -> bool {
        let changed = |id: InstrId| {
            (0..self.leaf_count(id)).any(|leaf| self.leaf(id, leaf).any(|v| self.change(v).is_some()))
        };
        changed(id) || self.module.instr(id).operands().iter().any(|&o| changed(o))
    }

    fn rewritten(&self, id: InstrId, keep: Keep) -> Option<New> {
        let i = self.module.instr(id);
        let shape = self.new_shape(&i.shape, id, &mut 0);
        let mut new = New { id, shape, attrs: None, operands: None };
        if !self.touched(id) {
            return Some(new);
        }
        let (a, to) = (self.operand(id, 0), self.of(id));
        let ints = |key| i.attrs.ints_or_empty(key).to_vec();
        let mut attrs = i.attrs.clone();
        match i.opcode {
            Opcode::Constant => {
                let ConstantValue::Given(literal) = i.attrs.constant_value()? else { return None };
                let array = crop(literal.as_array()?, self, to, keep)?;
                let value = ConstantValue::Given(Arc::new(Literal::Array(array)));
                attrs.set(AttrKey::ConstantValue, AttrValue::Literal(value));
            }
            Opcode::Iota => {
                let d = usize::try_from(i.attrs.int(AttrKey::IotaDimension)?).ok()?;
                attrs.set(AttrKey::IotaDimension, AttrValue::Int(self.renumbered(&to, d)?));
            }
            Opcode::Broadcast => {
                let kept = a.clone().enumerate().filter(|&(_, v)| !self.dropped(v));
                let map = ints(AttrKey::Dimensions);
                let map: Option<Ints> =
                    kept.map(|(n, _)| self.renumbered(&to, usize::try_from(*map.get(n)?).ok()?)).collect();
                attrs.set(AttrKey::Dimensions, AttrValue::Ints(map?));
            }
            Opcode::Transpose | Opcode::Reverse | Opcode::Reduce => {
                let list = self.renumbered_list(&a, &ints(AttrKey::Dimensions));
                attrs.set(AttrKey::Dimensions, AttrValue::Ints(list));
            }
            Opcode::Map if i.attrs.get(AttrKey::Dimensions).is_some() => {
                let rank = to.clone().filter(|&v| !self.dropped(v)).count() as i64;
                attrs.set(AttrKey::Dimensions, AttrValue::Ints((0..rank).collect()));
            }
            Opcode::Sort
            | Opcode::Concatenate
            | Opcode::Scan
            | Opcode::GetDimensionSize
            | Opcode::SetDimensionSize => {
                let d = usize::try_from(*ints(AttrKey::Dimensions).first()?).ok()?;
                let d = self.renumbered(&a, d)?;
                attrs.set(AttrKey::Dimensions, AttrValue::Ints(SmallVec::from_slice(&[d])));
            }
            Opcode::Slice => {
                let slices = a.zip(to).zip(i.attrs.slices()?).filter(|((a, _), _)| !self.dropped(*a));
                let slices: Option<Vec<SliceDim>> = slices.map(|((a, b), s)| self.slice(a, b, s)).collect();
                attrs.set(AttrKey::Slice, AttrValue::Slices(slices?.into()));
            }
            Opcode::Pad => {
                let padding = a.zip(to).zip(i.attrs.padding()?).filter(|((a, _), _)| !self.dropped(*a));
                let padding: Option<Vec<PaddingDim>> =
                    padding.map(|((a, b), p)| pad(self.size(a), self.size(b), p)).collect();
                attrs.set(AttrKey::Padding, AttrValue::Padding(padding?.into()));
            }
            Opcode::ReduceWindow => self.set_window(&mut attrs, a, to)?,
            Opcode::SelectAndScatter => self.set_window(&mut attrs, a, self.operand(id, 1))?,
            Opcode::Convolution => self.set_convolution(&mut attrs, id)?,
            Opcode::DynamicSlice | Opcode::DynamicUpdateSlice => {
                let first = if i.opcode == Opcode::DynamicSlice { 1 } else { 2 };
                if i.opcode == Opcode::DynamicSlice {
                    let sizes = to.filter(|&v| !self.dropped(v)).map(|v| self.size(v)).collect();
                    attrs.set(AttrKey::DynamicSliceSizes, AttrValue::Ints(sizes));
                }
                if a.clone().any(|v| self.dropped(v)) {
                    let operands = i.operands();
                    if operands.len() != first + a.len() {
                        return None;
                    }
                    let kept = a.clone().filter(|&v| !self.dropped(v)).map(|v| operands[first + v - a.start]);
                    new.operands = Some(operands[..first].iter().copied().chain(kept).collect());
                }
            }
            Opcode::Gather => self.set_gather(&mut attrs, id)?,
            Opcode::Scatter => self.set_scatter(&mut attrs, id)?,
            Opcode::Dot | Opcode::ScaledDot => {
                let b = self.operand(id, 1);
                for (key, range) in [
                    (AttrKey::LhsBatchDims, &a),
                    (AttrKey::LhsContractingDims, &a),
                    (AttrKey::RhsBatchDims, &b),
                    (AttrKey::RhsContractingDims, &b),
                ] {
                    if let Some(list) = i.attrs.ints(key) {
                        attrs.set(key, AttrValue::Ints(self.renumbered_list(range, list)));
                    }
                }
            }
            Opcode::Fft => {
                let rank = ints(AttrKey::FftLength).len();
                let longer =
                    if self.size(a.end.checked_sub(1)?) > self.size(to.end.checked_sub(1)?) { a } else { to };
                let first = longer.end.checked_sub(rank)?;
                let lengths: Ints = (first..longer.end).map(|v| self.size(v)).collect();
                attrs.set(AttrKey::FftLength, AttrValue::Ints(lengths));
            }
            Opcode::Topk => {
                let last = self.leaf(id, 0).end.checked_sub(1)?;
                attrs.set(AttrKey::K, AttrValue::Int(self.size(last)));
            }
            Opcode::BatchNormGrad | Opcode::BatchNormInference | Opcode::BatchNormTraining => {
                let d = usize::try_from(i.attrs.int(AttrKey::FeatureIndex)?).ok()?;
                attrs.set(AttrKey::FeatureIndex, AttrValue::Int(self.renumbered(&a, d)?));
            }
            Opcode::Reshape => {
                attrs.remove(AttrKey::InferredDimension);
            }
            // Nothing in their attributes is a number or a size of a dimension, or nothing of theirs changes.
            _ => {}
        }
        new.attrs = Some(attrs);
        Some(new)
    }

    fn slice(&self, a: Var, b: Var, s: &SliceDim) -> Option<SliceDim> {
        let (n, m) = (self.size(a), self.size(b));
        if self.class(a) == self.class(b) {
            return Some(SliceDim { start: 0, limit: n, stride: 1 });
        }
        let span = |stride: i64| if m == 0 { 0 } else { (m - 1) * stride + 1 };
        let stride = if span(s.stride) <= n { s.stride } else { 1 };
        let span = span(stride);
        let start = s.start.min(n - span);
        // The limit may say more than the elements that are taken: as it was, or to the end, where that takes
        // as many.
        let taken = |limit: i64| limit >= start && (limit - start + stride - 1) / stride == m;
        let kept = s.limit - (s.start - start);
        let to_end = s.limit == self.old_size(a);
        let limit = [kept, n, start + span].into_iter().skip(usize::from(to_end && n != kept));
        let limit = limit.into_iter().find(|&l| l <= n && taken(l)).unwrap_or(start + span);
        (start >= 0).then_some(SliceDim { start, limit, stride })
    }

    fn set_window(&self, attrs: &mut Attrs, from: Range<Var>, to: Range<Var>) -> Option<()> {
        let Some(old) = attrs.window().cloned() else { return Some(()) };
        let dims = from.zip(to).zip(&old.dims).filter(|((a, _), _)| !self.dropped(*a));
        let dims: Option<SmallVec<[WindowDim; 2]>> =
            dims.map(|((a, b), w)| window(self.size(a), self.size(b), w, true)).collect();
        attrs.set(AttrKey::Window, AttrValue::Window(Box::new(Window { dims: dims? })));
        Some(())
    }

    fn set_convolution(&self, attrs: &mut Attrs, id: InstrId) -> Option<()> {
        let (a, k, to) = (self.operand(id, 0), self.operand(id, 1), self.of(id));
        let mut d = attrs.conv_dims()?.clone();
        let old = attrs.window().cloned().unwrap_or_default();
        let at = |range: &Range<Var>, d: i64| usize::try_from(d).ok().filter(|&d| d < range.len());
        let mut window_dims = SmallVec::new();
        for (n, w) in old.dims.iter().enumerate() {
            let from = a.start + at(&a, *d.input_spatial.get(n)?)?;
            let by = k.start + at(&k, *d.kernel_spatial.get(n)?)?;
            let result = to.start + at(&to, *d.output_spatial.get(n)?)?;
            if !self.dropped(from) {
                let w = WindowDim { size: self.size(by), ..*w };
                window_dims.push(window(self.size(from), self.size(result), &w, false)?);
            }
        }
        let one = |range: &Range<Var>, d: i64| self.renumbered(range, at(range, d)?);
        d.input_spatial = self.renumbered_list(&a, &d.input_spatial);
        d.kernel_spatial = self.renumbered_list(&k, &d.kernel_spatial);
        d.output_spatial = self.renumbered_list(&to, &d.output_spatial);
        d.input_batch = one(&a, d.input_batch)?;
        d.input_feature = one(&a, d.input_feature)?;
        d.kernel_input_feature = one(&k, d.kernel_input_feature)?;
        d.kernel_output_feature = one(&k, d.kernel_output_feature)?;
        d.output_batch = one(&to, d.output_batch)?;
        d.output_feature = one(&to, d.output_feature)?;
        attrs.set(AttrKey::DimLabels, AttrValue::ConvDims(Box::new(d)));
        attrs.set(AttrKey::Window, AttrValue::Window(Box::new(Window { dims: window_dims })));
        Some(())
    }

    /// The number of the dimension of index vectors; past the last if it is dropped.
    fn index_vector(&self, indices: &Range<Var>, d: i64) -> Option<i64> {
        let d = usize::try_from(d).ok()?;
        let rank = indices.clone().filter(|&v| !self.dropped(v)).count() as i64;
        Some(if d >= indices.len() { rank } else { self.renumbered(indices, d).unwrap_or(rank) })
    }

    fn set_gather(&self, attrs: &mut Attrs, id: InstrId) -> Option<()> {
        let (a, indices, to) = (self.operand(id, 0), self.operand(id, 1), self.of(id));
        let roles = super::indexing::gather(self.module, id)?;
        let old = attrs.ints(AttrKey::SliceSizes)?.to_vec();
        let mut sizes = Ints::new();
        for (d, v) in a.clone().enumerate().filter(|&(_, v)| !self.dropped(v)) {
            let result = roles.windows.iter().find(|w| w.0 == d).map(|w| to.start + w.1);
            sizes.push(
                result.map_or_else(|| old.get(d).copied().unwrap_or(1).min(self.size(v)), |r| self.size(r)),
            );
        }
        attrs.set(AttrKey::SliceSizes, AttrValue::Ints(sizes));
        self.set_lists(
            attrs,
            &a,
            &[AttrKey::CollapsedSliceDims, AttrKey::StartIndexMap, AttrKey::OperandBatchingDims],
        );
        self.set_lists(attrs, &indices, &[AttrKey::StartIndicesBatchingDims]);
        self.set_lists(attrs, &to, &[AttrKey::OffsetDims]);
        let vector = self.index_vector(&indices, attrs.int(AttrKey::IndexVectorDim)?)?;
        attrs.set(AttrKey::IndexVectorDim, AttrValue::Int(vector));
        Some(())
    }

    fn set_scatter(&self, attrs: &mut Attrs, id: InstrId) -> Option<()> {
        let n = self.module.instr(id).operands().len() / 2;
        let (a, indices, updates) = (self.operand(id, 0), self.operand(id, n), self.operand(id, n + 1));
        let of_operand =
            [AttrKey::InsertedWindowDims, AttrKey::ScatterDimsToOperandDims, AttrKey::InputBatchingDims];
        self.set_lists(attrs, &a, &of_operand);
        self.set_lists(attrs, &indices, &[AttrKey::ScatterIndicesBatchingDims]);
        self.set_lists(attrs, &updates, &[AttrKey::UpdateWindowDims]);
        let vector = self.index_vector(&indices, attrs.int(AttrKey::IndexVectorDim)?)?;
        attrs.set(AttrKey::IndexVectorDim, AttrValue::Int(vector));
        Some(())
    }

    fn set_lists(&self, attrs: &mut Attrs, range: &Range<Var>, keys: &[AttrKey]) {
        for &key in keys {
            if let Some(list) = attrs.ints(key) {
                let list = self.renumbered_list(range, list);
                attrs.set(key, AttrValue::Ints(list));
            }
        }
    }
}

/// Padding that makes `m` of `n`; as it was where that does so.
fn pad(n: i64, m: i64, p: &PaddingDim) -> Option<PaddingDim> {
    let mut p = *p;
    let mut more = m - padded(n, &p)?;
    // What is there beyond need goes first, from the end.
    for side in [&mut p.high, &mut p.low] {
        let less = (-more).clamp(0, (*side).max(0));
        *side -= less;
        more += less;
    }
    p.high += more;
    Some(p)
}

/// A window of which `m` fit over `n`; as it was where that is so.
fn window(n: i64, m: i64, w: &WindowDim, resizable: bool) -> Option<WindowDim> {
    if placements(n, w) == Some(m) {
        return Some(*w);
    }
    if resizable {
        let smaller = (1..w.size.min(n.max(1) + 1)).rev().map(|size| WindowDim { size, ..*w });
        if let Some(w) = smaller.into_iter().find(|w| placements(n, w) == Some(m)) {
            return Some(w);
        }
    }
    let (base, extent) = extents(n, w)?;
    let wanted = if m == 0 { 0 } else { (m - 1).checked_mul(w.stride)?.checked_add(extent)? };
    let high = wanted - base - w.pad_low;
    let w = WindowDim { pad_high: high, ..*w };
    (placements(n, &w) == Some(m)).then_some(w)
}
