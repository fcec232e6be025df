//! Simpler numbers in attributes: windows, padding, slices, indices, groups.

use hlo::attrs::{
    AttrKey, AttrValue, ConvDims, Direction, FftType, PaddingDim, RngAlgorithm, SliceDim, Transpose,
    WindowDim,
};
use hlo::{Attrs, InstrId, Opcode};

use super::Edit;
use super::dims::{refit, refit_holding};
use crate::reduce::Candidate;
use crate::reduce::program::all_instructions;
use crate::reduce::search::Context;

/// Sets an attribute and makes shapes fit again.
fn set(id: InstrId, key: AttrKey, value: AttrValue) -> Edit {
    Box::new(move |c| put(c, id, &[(key, value.clone())]))
}

fn put(c: &mut Candidate, id: InstrId, values: &[(AttrKey, AttrValue)]) -> bool {
    change(c, id, values) && refit(c)
}

/// The same, with windows that give as much as before.
fn set_holding(id: InstrId, key: AttrKey, value: AttrValue) -> Edit {
    Box::new(move |c| change(c, id, &[(key, value.clone())]) && refit_holding(c))
}

fn change(c: &mut Candidate, id: InstrId, values: &[(AttrKey, AttrValue)]) -> bool {
    if !c.alive(id) {
        return false;
    }
    let attrs = &mut c.module.instr_mut(id).attrs;
    let mut changed = false;
    for (key, value) in values {
        if attrs.get(*key) != Some(value) {
            attrs.set(*key, value.clone());
            changed = true;
        }
    }
    changed
}

/// Simpler values of one dimension, the simplest first.
fn padding(p: PaddingDim) -> Vec<PaddingDim> {
    let half = |n: i64| n / 2;
    let mut all = vec![
        PaddingDim::default(),
        PaddingDim { interior: 0, ..p },
        PaddingDim { low: 0, ..p },
        PaddingDim { high: 0, ..p },
        PaddingDim { low: p.low.signum(), high: p.high.signum(), interior: p.interior.min(1) },
        PaddingDim { interior: half(p.interior), ..p },
        PaddingDim { low: half(p.low), ..p },
        PaddingDim { high: half(p.high), ..p },
        PaddingDim { low: p.low - p.low.signum(), ..p },
        PaddingDim { high: p.high - p.high.signum(), ..p },
        PaddingDim { interior: p.interior - p.interior.signum(), ..p },
    ];
    all.dedup();
    all.retain(|q| *q != p);
    all
}

fn window(w: WindowDim, sizes: bool) -> Vec<WindowDim> {
    let plain = WindowDim::default();
    let mut all = vec![
        WindowDim { size: w.size, ..plain },
        WindowDim { stride: 1, ..w },
        WindowDim { pad_low: 0, pad_high: 0, ..w },
        WindowDim { pad_low: 0, ..w },
        WindowDim { pad_high: 0, ..w },
        WindowDim { base_dilation: 1, ..w },
        WindowDim { window_dilation: 1, ..w },
        WindowDim { reversal: false, ..w },
        WindowDim { stride: 2, ..w },
        WindowDim { base_dilation: 2, ..w },
        WindowDim { window_dilation: 2, ..w },
        WindowDim { pad_low: w.pad_low.signum(), ..w },
        WindowDim { pad_high: w.pad_high.signum(), ..w },
        WindowDim { pad_low: w.pad_low - w.pad_low.signum(), ..w },
        WindowDim { pad_high: w.pad_high - w.pad_high.signum(), ..w },
    ];
    if sizes {
        all.extend([
            WindowDim { size: 1, ..w },
            WindowDim { size: 2, ..w },
            WindowDim { size: w.size - 1, ..w },
        ]);
    }
    all.retain(|q| *q != w && q.size >= 1);
    all
}

fn slice(s: SliceDim) -> Vec<SliceDim> {
    let mut all = vec![
        SliceDim { start: 0, limit: s.limit - s.start, stride: 1 },
        SliceDim { stride: 1, ..s },
        SliceDim { start: 0, limit: s.limit - s.start, stride: s.stride },
        SliceDim { start: 1, limit: s.limit - s.start + 1, stride: s.stride },
        SliceDim { stride: 2, ..s },
        SliceDim { start: 0, ..s },
    ];
    let taken = (s.limit - s.start + s.stride - 1) / s.stride.max(1);
    all.push(SliceDim { start: s.start, limit: s.start + taken, stride: 1 });
    all.push(SliceDim { start: 0, limit: taken, stride: 1 });
    all.push(SliceDim { limit: s.start + (taken - 1) * s.stride + 1, ..s });
    all.retain(|q| {
        *q != s && q.limit >= q.start && (q.start, q.limit, q.stride) <= (s.start.max(1), s.limit, s.stride)
    });
    all
}

/// Replaces one element of a list by each of its alternatives.
fn each<T: Copy>(list: &[T], alternatives: impl Fn(T) -> Vec<T>) -> Vec<Vec<T>> {
    let mut all = Vec::new();
    for (i, &x) in list.iter().enumerate() {
        for y in alternatives(x) {
            let mut changed = list.to_vec();
            changed[i] = y;
            all.push(changed);
        }
    }
    all
}

/// All edits.
pub(super) fn simpler(context: &Context<'_>) -> Vec<Edit> {
    let module = &context.program.module;
    let windows = all_instructions(module).any(|id| module.instr(id).opcode == Opcode::ReduceWindow);
    let mut edits: Vec<Edit> = Vec::new();
    for id in all_instructions(module) {
        let i = module.instr(id);
        if let Some(p) = i.attrs.padding() {
            for p in each(p, padding) {
                edits.push(set(id, AttrKey::Padding, AttrValue::Padding(p.clone().into())));
                if windows {
                    edits.push(set_holding(id, AttrKey::Padding, AttrValue::Padding(p.into())));
                }
            }
        }
        if let Some(s) = i.attrs.slices() {
            for s in each(s, slice) {
                edits.push(set(id, AttrKey::Slice, AttrValue::Slices(s.into())));
            }
        }
        if let Some(w) = i.attrs.window() {
            let sizes = i.opcode != Opcode::Convolution;
            for dims in each(&w.dims, |w| window(w, sizes)) {
                let w = hlo::attrs::Window { dims: dims.into() };
                edits.push(set(id, AttrKey::Window, AttrValue::Window(Box::new(w))));
            }
        }
        if let Some(d) = i.attrs.conv_dims() {
            edits.push(conv_in_order(id, d));
        }
        if matches!(i.opcode, Opcode::Reverse | Opcode::Reduce) {
            for k in 0..i.attrs.ints_or_empty(AttrKey::Dimensions).len() {
                edits.push(Box::new(move |c| fewer_dimensions(c, id, k)));
            }
        }
        edits.extend(words(id, i.opcode, &i.attrs));
    }
    edits
}

/// One dimension less that is reversed; or reduced, which then is in the result.
fn fewer_dimensions(c: &mut Candidate, id: InstrId, k: usize) -> bool {
    if !c.alive(id) || c.module.instr(id).opcode != Opcode::Reverse {
        return false;
    }
    let mut list = c.module.instr(id).attrs.ints_or_empty(AttrKey::Dimensions).to_vec();
    if list.len() <= 1 || k >= list.len() {
        return false;
    }
    list.remove(k);
    put(c, id, &[(AttrKey::Dimensions, AttrValue::Ints(list.into()))])
}

/// Transposes the operands of a convolution so that its dimensions are in order.
fn conv_in_order(id: InstrId, old: &ConvDims) -> Edit {
    let n = old.input_spatial.len() as i64;
    let order = |batch: i64, feature: i64, spatial: &[i64], batch_first: bool| -> Vec<i64> {
        let mut order = Vec::new();
        if batch_first {
            order.push(batch);
            order.extend_from_slice(spatial);
        } else {
            order.extend_from_slice(spatial);
            order.push(batch);
        }
        order.push(feature);
        order
    };
    let input = order(old.input_batch, old.input_feature, &old.input_spatial, true);
    let kernel = order(old.kernel_input_feature, old.kernel_output_feature, &old.kernel_spatial, false);
    let output = order(old.output_batch, old.output_feature, &old.output_spatial, true);
    let new = ConvDims {
        input_batch: 0,
        input_feature: n + 1,
        input_spatial: (1..=n).collect(),
        kernel_input_feature: n,
        kernel_output_feature: n + 1,
        kernel_spatial: (0..n).collect(),
        output_batch: 0,
        output_feature: n + 1,
        output_spatial: (1..=n).collect(),
        unknown: Default::default(),
    };
    Box::new(move |c| {
        if !c.alive(id) || c.module.instr(id).attrs.conv_dims() == Some(&new) {
            return false;
        }
        let operands = c.module.instr(id).operands().to_vec();
        let entry = c.module.entry();
        // The operands must be parameters of their own, which can be transposed with their values.
        let own = |c: &Candidate, o: InstrId| {
            c.module.instr(o).opcode == Opcode::Parameter
                && c.module.instr(o).parent() == entry
                && c.module.users(o).len() == 1
        };
        if !own(c, operands[0]) || !own(c, operands[1]) || operands.len() != 2 || c.module.root(entry) != id {
            return false;
        }
        let done = transpose_parameter(c, operands[0], &input)
            .and_then(|()| transpose_parameter(c, operands[1], &kernel));
        if done.is_none() {
            return false;
        }
        let Some(shape) = c.module.instr(id).shape.as_array().map(|a| permuted_shape(a, &output)) else {
            return false;
        };
        let i = c.module.instr_mut(id);
        let Some(shape) = shape else { return false };
        i.shape = hlo::Shape::Array(shape);
        i.attrs.set(AttrKey::DimLabels, AttrValue::ConvDims(Box::new(new.clone())));
        true
    })
}

fn permuted_shape(a: &hlo::ArrayShape, order: &[i64]) -> Option<hlo::ArrayShape> {
    let dims: Option<Vec<i64>> =
        order.iter().map(|&d| a.dims.get(usize::try_from(d).ok()?).copied()).collect();
    Some(hlo::ArrayShape::new(a.element_type, &dims?)).filter(|n| n.rank() == a.rank())
}

/// Permutes the dimensions of a parameter and of its values.
fn transpose_parameter(c: &mut Candidate, p: InstrId, order: &[i64]) -> Option<()> {
    let shape = permuted_shape(c.module.instr(p).shape.as_array()?, order)?;
    let at = *crate::reduce::program::input_offsets(&c.module).get(&p)?;
    for device in &mut c.inputs {
        let old = device.get(at)?;
        let dims: Vec<usize> = old.dims.iter().map(|&d| d as usize).collect();
        let mut strides = vec![1usize; dims.len()];
        for d in (0..dims.len().saturating_sub(1)).rev() {
            strides[d] = strides[d + 1] * dims[d + 1];
        }
        let mut positions = vec![0usize];
        for &d in order {
            let d = usize::try_from(d).ok()?;
            positions = positions
                .iter()
                .flat_map(|p| (0..dims[d]).map(|i| p + i * strides[d]).collect::<Vec<_>>())
                .collect();
        }
        let buffer = crate::reduce::values::take(&old.buffer, &positions);
        device[at] = hlo::ArrayLiteral { dims: shape.dims.clone(), buffer: buffer.into() };
    }
    c.module.instr_mut(p).shape = hlo::Shape::Array(shape);
    Some(())
}

/// Attributes that are words, truth values and single numbers.
fn words(id: InstrId, opcode: Opcode, attrs: &Attrs) -> Vec<Edit> {
    let mut edits: Vec<Edit> = Vec::new();
    for key in [AttrKey::Lower, AttrKey::UnitDiagonal, AttrKey::IsReverse, AttrKey::LeftSide] {
        if attrs.get(key).is_some() && attrs.bool(key) {
            edits.push(set(id, key, AttrValue::Bool(false)));
        }
    }
    if attrs.transpose().is_some_and(|t| *t != Transpose::No) {
        edits.push(set(id, AttrKey::TransposeA, AttrValue::Transpose(Transpose::No)));
    }
    if attrs.fft_type().is_some_and(|t| *t == FftType::Ifft) {
        edits.push(set(id, AttrKey::FftType, AttrValue::FftType(FftType::Fft)));
    }
    if attrs.rng_algorithm().is_some_and(|a| *a != RngAlgorithm::Default) {
        edits.push(set(id, AttrKey::RngAlgorithm, AttrValue::RngAlgorithm(RngAlgorithm::Default)));
    }
    if opcode == Opcode::Compare && attrs.compare_type().is_some() {
        edits.push(Box::new(move |c| {
            c.alive(id) && c.module.instr_mut(id).attrs.remove(AttrKey::CompareType).is_some()
        }));
    }
    if attrs.direction().is_some_and(|d| *d != Direction::Lt) {
        edits.push(set(id, AttrKey::Direction, AttrValue::Direction(Direction::Lt)));
    }
    if opcode == Opcode::ReducePrecision {
        for (key, values) in [(AttrKey::ExponentBits, [8, 5]), (AttrKey::MantissaBits, [0, 4])] {
            let now = attrs.int(key).unwrap_or(0);
            for v in values.into_iter().filter(|&v| v < now) {
                edits.push(set(id, key, AttrValue::Int(v)));
            }
        }
    }
    edits
}
