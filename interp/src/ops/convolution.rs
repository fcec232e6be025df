//! `convolution`: any number of spatial dimensions, feature or batch groups, strides, dilations, padding of either sign,
//! reversal. Arithmetic is that of [`super::contract`], but integers are accumulated in 64 bits and saturate to the result
//! type. Positions in the padding or in the holes of a dilated operand contribute nothing, not even `0 * inf`. Terms are
//! ordered by window position, row-major, with the input features inside.

use hlo::num_complex::Complex;
use hlo::{AttrKey, BufferOf, with_buffer};

use super::common::{arrays, dims};
use super::contract::{self, Job};
use super::dot::check_precision;
use super::strided::{pack, select, strides};
use super::{Args, Cx};
use crate::error::Result;
use crate::kernels::conv::{self, ConvAxis, ConvShape};
use crate::kernels::{Integer, Real};
use crate::sum::{Accumulate, Rounded};
use crate::value::{Sizes, Tensor, Value};

/// `convolution(lhs, rhs)`.
pub(super) fn convolution(cx: &Cx<'_>, args: Args) -> Result<Value> {
    if cx.attrs().sparsity().is_some() || args.len() > 2 {
        return Err(cx.unsupported("with sparsity_config"));
    }
    check_precision(cx)?;
    let [lhs, rhs] = arrays(args);
    let Some(labels) = cx.attrs().conv_dims() else { return Err(cx.unsupported("without dim_labels")) };
    if labels.unknown.iter().any(|unknown| !unknown.is_empty()) {
        return Err(cx.unsupported("with dimensions labelled ?"));
    }
    let place = |d: i64| usize::try_from(d).expect("invariant: the verifier checked dim_labels");
    let order = |first: i64, spatial: &[i64], rest: &[i64]| -> Sizes {
        [&[first][..], spatial, rest].concat().into_iter().map(place).collect()
    };
    let lhs_order = order(labels.input_batch, &labels.input_spatial, &[labels.input_feature]);
    // Spatial dimensions first; the order of the kernel's last two is (input, output).
    let rhs_order: Sizes = labels
        .kernel_spatial
        .iter()
        .chain([&labels.kernel_input_feature, &labels.kernel_output_feature])
        .map(|&d| place(d))
        .collect();
    let out_order = order(labels.output_batch, &labels.output_spatial, &[labels.output_feature]);

    let lhs_sizes = select(&lhs.sizes(), &lhs_order);
    let rhs_sizes = select(&rhs.sizes(), &rhs_order);
    let shape = shape(cx, &lhs_sizes, &rhs_sizes)?;
    let lhs = permuted(cx, lhs, &lhs_order)?;
    let rhs = permuted(cx, rhs, &rhs_order)?;

    let mut out_sizes = Sizes::from_elem(shape.batch / shape.batch_groups, 1);
    out_sizes.extend(shape.axes.iter().map(|axis| axis.output));
    out_sizes.push(shape.features);
    let ty = cx.array_shape().element_type;
    let n = out_sizes.iter().product();
    let out = contract::run(cx, &Windows(shape), lhs, rhs, n, ty)?;
    // Back from (batch, spatial, feature): the inverse permutation.
    let mut inverse = Sizes::from_elem(0, out_order.len());
    out_order.iter().enumerate().for_each(|(from, &to)| inverse[to] = from);
    Ok(permuted(cx, Tensor::new(dims(&out_sizes), out), &inverse)?.into())
}

/// The extents of a convolution of operands in canonical order.
fn shape(cx: &Cx<'_>, lhs: &[usize], rhs: &[usize]) -> Result<ConvShape> {
    let groups = |key| usize::try_from(cx.attrs().int(key).unwrap_or(1)).unwrap_or(0);
    let (feature_groups, batch_groups) =
        (groups(AttrKey::FeatureGroupCount), groups(AttrKey::BatchGroupCount));
    let spatial = lhs.len() - 2;
    let window = cx.attrs().window().map_or(&[][..], |w| &w.dims);
    let (batch, channels, features) = (lhs[0], lhs[spatial + 1], rhs[spatial + 1]);
    let all = feature_groups * batch_groups;
    if all == 0
        || feature_groups > 1 && batch_groups > 1
        || !features.is_multiple_of(all)
        || !channels.is_multiple_of(feature_groups)
        || !batch.is_multiple_of(batch_groups)
    {
        return Err(cx.unsupported("with such groups"));
    }
    if window.len() != spatial {
        return Err(cx.unsupported("with a window of another rank"));
    }
    let axes = window.iter().enumerate().map(|(i, w)| {
        let (input, kernel) = (lhs[1 + i], rhs[i]);
        let at_least_one = |x: i64| usize::try_from(x).unwrap_or(1).max(1);
        let (stride, input_dilation) = (at_least_one(w.stride), at_least_one(w.base_dilation));
        let kernel_dilation = at_least_one(w.window_dilation);
        let padded = dilated(input, input_dilation).saturating_add(w.pad_low).saturating_add(w.pad_high);
        let output = placements(padded, dilated(kernel, kernel_dilation), stride);
        let (padding_low, reversed) = (w.pad_low, w.reversal);
        ConvAxis { input, kernel, output, stride, padding_low, input_dilation, kernel_dilation, reversed }
    });
    Ok(ConvShape { batch, channels, features, axes: axes.collect(), feature_groups, batch_groups })
}

/// Extent of `n` elements that are `dilation` apart.
pub(super) fn dilated(n: usize, dilation: usize) -> i64 {
    n.checked_sub(1)
        .map_or(0, |gaps| (gaps.saturating_mul(dilation).saturating_add(1)).min(i64::MAX as usize) as i64)
}

/// How many times a window of an extent fits into another one.
pub(super) fn placements(base: i64, window: i64, stride: usize) -> usize {
    match usize::try_from(base.saturating_sub(window)) {
        Ok(room) if base > 0 => room / stride + 1,
        Ok(_) | Err(_) => 0,
    }
}

fn permuted(cx: &Cx<'_>, x: Tensor, order: &[usize]) -> Result<Tensor> {
    if order.iter().enumerate().all(|(i, &d)| i == d) {
        return Ok(x);
    }
    cx.session.check_memory(cx.instr, Some(x.bytes()))?;
    let sizes = x.sizes();
    let (new_sizes, new_steps) = (select(&sizes, order), select(&strides(&sizes), order));
    let buffer = with_buffer!(x.buffer(), v => BufferOf::wrap(pack(v, &new_sizes, &new_steps)));
    Ok(Tensor::new(dims(&new_sizes), buffer))
}

struct Windows(ConvShape);

impl Job for Windows {
    const SATURATES: bool = true;

    fn real<T: Real, O: Rounded>(&self, mode: Accumulate, lhs: &[T], rhs: &[T], out: &mut [O]) {
        conv::real(mode, &self.0, lhs, rhs, out);
    }

    fn complex<T: Real, O: Rounded>(
        &self,
        mode: Accumulate,
        lhs: &[Complex<T>],
        rhs: &[Complex<T>],
        out: &mut [Complex<O>],
    ) {
        conv::complex(mode, &self.0, lhs, rhs, out);
    }

    fn int<T: Integer>(&self, lhs: &[T], rhs: &[T], out: &mut [T]) {
        conv::int(&self.0, lhs, rhs, out);
    }
}
