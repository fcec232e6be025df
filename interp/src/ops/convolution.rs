//! `convolution`: any number of spatial dimensions, feature or batch groups, strides, dilations, padding of
//! either sign, reversal. Arithmetic is that of [`super::contract`], but integers are accumulated in 64 bits
//! and saturate to the result type. Positions in the padding or in the holes of a dilated operand contribute
//! nothing, not even `0 * inf`. Terms are ordered by window position, row-major, with the input features
//! inside.

use hlo::attrs::SparsitySide;
use hlo::diag::codes;
use hlo::{AttrKey, Buffer, BufferOf, with_buffer};
use hlo_arithmetic::kernels::conv::{ConvAxis, ConvShape};
use hlo_products::Contraction;

use super::common::{arrays, dims, integers};
use super::contract;
use super::dot::check_precision;
use super::strided::{pack, select, strides};
use super::{Args, Cx};
use crate::error::Result;
use crate::value::{Sizes, Tensor, Value};

/// `convolution(lhs, rhs)`.
pub(super) fn convolution(cx: &Cx<'_>, args: Args) -> Result<Value> {
    check_precision(cx)?;
    let [lhs, rhs] = operands(cx, args)?;
    let Some(labels) = cx.attrs().conv_dims() else { return Err(cx.unsupported("without dim_labels")) };
    if labels.unknown.iter().any(|unknown| !unknown.is_empty()) {
        return Err(cx.unsupported("with dimensions labelled ?"));
    }
    let dimension = |d: i64| usize::try_from(d).expect("invariant: the verifier checked dim_labels");
    let order = |first: i64, spatial: &[i64], rest: &[i64]| -> Sizes {
        [&[first][..], spatial, rest].concat().into_iter().map(dimension).collect()
    };
    let lhs_order = order(labels.input_batch, &labels.input_spatial, &[labels.input_feature]);
    // Spatial dimensions first; the order of the kernel's last two is (input, output).
    let rhs_order: Sizes = labels
        .kernel_spatial
        .iter()
        .chain([&labels.kernel_input_feature, &labels.kernel_output_feature])
        .map(|&d| dimension(d))
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
    let declared = cx.array_shape();
    let static_dims = (0..declared.rank()).filter(|&d| !declared.is_dynamic_dim(d));
    if static_dims.clone().any(|d| {
        out_order.iter().position(|&o| o == d).is_some_and(|at| dims(&out_sizes)[at] != declared.dims[d])
    }) {
        return Err(cx.unsupported("with a sparse left operand of this shape"));
    }
    let ty = contract::sum_type(cx);
    let n = out_sizes.iter().product();
    let out = contract::run(cx, &Contraction::Convolution(&shape), lhs, rhs, n, ty)?;
    // Back from (batch, spatial, feature): the inverse permutation.
    let mut inverse = Sizes::from_elem(0, out_order.len());
    out_order.iter().enumerate().for_each(|(from, &to)| inverse[to] = from);
    Ok(permuted(cx, Tensor::new(dims(&out_sizes), out), &inverse)?.into())
}

/// The two operands, made dense where `sparsity_config` says that only one element of each block is there.
fn operands(cx: &Cx<'_>, args: Args) -> Result<[Tensor; 2]> {
    let mut all: Vec<Tensor> = args.into_iter().map(Value::into_array).collect();
    let Some(config) = cx.attrs().sparsity() else {
        return Ok(arrays(all.into_iter().map(Value::Array).collect()));
    };
    for (side, n) in [(&config.lhs, 0), (&config.rhs, 1)] {
        let Some(side) = side else { continue };
        let indices = side.idx.and_then(|idx| all.get(usize::try_from(idx).ok()?));
        let indices = indices.ok_or_else(|| cx.unsupported("with sparsity without indices"))?;
        all[n] = dense(cx, &all[n], indices, side)?;
    }
    Ok(arrays(all.into_iter().map(Value::Array).collect()))
}

/// An operand with `block_size` times as many elements along a dimension: those of a block are 0, but for
/// one.
fn dense(cx: &Cx<'_>, x: &Tensor, positions: &Tensor, side: &SparsitySide) -> Result<Tensor> {
    fn of<T: BufferOf>(cx: &Cx<'_>, x: &[T], n: usize, offsets: &[usize]) -> Result<Buffer> {
        let mut out = cx.vec::<T>(n)?;
        offsets.iter().zip(x).for_each(|(&at, &x)| out[at] = x);
        Ok(T::wrap(out))
    }
    let block = usize::try_from(side.block_size).unwrap_or(0);
    let dimension = usize::try_from(side.dimension).unwrap_or(usize::MAX);
    let plain = side.num_non_zero == 1 && side.stride.unwrap_or(1) == 1 && block > 0;
    if !plain || x.dims() != positions.dims() || !positions.element_type().is_integer() {
        return Err(cx.unsupported("with this sparsity_config"));
    }
    let mut sizes = x.sizes();
    let Some(size) = sizes.get_mut(dimension) else {
        return Err(cx.unsupported("with this sparsity_config"));
    };
    let row: usize = x.sizes()[dimension + 1..].iter().product();
    let too_large = || cx.unsupported("of a size beyond 2^63");
    *size = size.checked_mul(block).ok_or_else(too_large)?;
    let n = sizes.iter().try_fold(1usize, |n, &s| n.checked_mul(s)).ok_or_else(too_large)?;
    let mut offsets = Vec::with_capacity(x.len());
    for (i, &position) in integers(positions).iter().enumerate() {
        let position = usize::try_from(position).ok().filter(|&p| p < block);
        let Some(position) = position else {
            let message = format!("an element is at a position outside of its block of {block}");
            return Err(cx.trap(codes::POSITION_OUTSIDE_BLOCK, message));
        };
        // Element (outer, inner) of rows becomes (outer * block + position, inner).
        offsets.push((i / row.max(1) * block + position) * row + i % row.max(1));
    }
    let buffer = with_buffer!(x.buffer(), x => of(cx, x, n, &offsets)?);
    Ok(Tensor::new(dims(&sizes), buffer))
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

/// The number of positions at which a window of an extent fits into another one.
pub(super) fn placements(base: i64, window: i64, stride: usize) -> usize {
    match usize::try_from(base.saturating_sub(window)) {
        Ok(last) if base > 0 => last / stride + 1,
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
