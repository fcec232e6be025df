//! Data movement: operations that copy elements and never look at them. The payload of a NaN goes along.

mod bitcast;
mod bits;
mod dynamic;
pub(crate) mod strided;

use hlo::diag::codes;
use hlo::literal::BufferOf;
use hlo::{AttrKey, Buffer, Dims, with_element_type};

pub(super) use bitcast::bitcast;
pub(super) use bits::bitcast_convert;
pub(crate) use bits::reinterpret_block;
pub(super) use dynamic::{dynamic_reshape, get_dimension_size, resized, set_dimension_size};
use hlo_arithmetic::scalar::Scalar;
use strided::{StridedView, Strides, copy};

use super::elementwise::chunks_mut;
use super::{Args, Cx};
use crate::error::Result;
use crate::value::{Sizes, Tensor, Value, elements, sizes};

/// A dense tensor of `dims` from a strided box of another.
pub(super) fn gather_box(cx: &Cx<'_>, x: &Tensor, dims: &[i64], view: &StridedView) -> Result<Tensor> {
    fn of<T: BufferOf>(cx: &Cx<'_>, x: &Tensor, dims: &[i64], view: &StridedView) -> Result<Tensor> {
        let mut out = cx.overwritten::<T>(elements(dims))?;
        let sizes = sizes(dims);
        copy(&sizes, x.slice::<T>(), view, &mut out, &StridedView::dense(&sizes));
        Ok(Tensor::from_vec(dims, out))
    }
    with_element_type!(x.element_type(), T => of::<T>(cx, x, dims, view))
}

/// The only operand, or the first one.
fn first(args: Args) -> Tensor {
    super::control::first(args).into_array()
}

fn list(cx: &Cx<'_>, key: AttrKey) -> Sizes {
    sizes(cx.attrs().ints_or_empty(key))
}

/// `broadcast`: dimension `i` of the operand becomes dimension `dimensions[i]` of the result.
pub(super) fn broadcast(cx: &Cx<'_>, args: Args) -> Result<Value> {
    let x = first(args);
    let mapped = list(cx, AttrKey::Dimensions);
    let mut dims = cx.array_shape().dims.clone();
    let operand = StridedView::dense(&x.sizes());
    let mut view = StridedView { offset: 0, strides: Strides::from_elem(0, dims.len()) };
    for ((&d, &size), &stride) in mapped.iter().zip(x.dims()).zip(&operand.strides) {
        // Of a dynamic dimension the operand knows the size.
        dims[d] = size;
        view.strides[d] = stride;
    }
    if elements(&dims) == x.len() && mapped.is_sorted() {
        return Ok(x.reshaped(dims).into());
    }
    Ok(gather_box(cx, &x, &dims, &view)?.into())
}

/// `reshape`: the same elements in row-major order.
pub(super) fn reshape(cx: &Cx<'_>, args: Args) -> Result<Value> {
    let x = first(args);
    let dims = dynamic::reshaped_dims(cx, &x)?;
    Ok(x.reshaped(dims).into())
}

/// `transpose`: dimension `i` of the result is dimension `dimensions[i]` of the operand.
pub(super) fn transpose(cx: &Cx<'_>, args: Args) -> Result<Value> {
    let order = list(cx, AttrKey::Dimensions);
    Ok(permuted(cx, first(args), &order)?.into())
}

/// The tensor with its dimensions in another order.
pub(super) fn permuted(cx: &Cx<'_>, x: Tensor, order: &[usize]) -> Result<Tensor> {
    let dims: Dims = order.iter().map(|&d| x.dims()[d]).collect();
    let moved = order.iter().filter(|&&d| x.dims()[d] != 1);
    if moved.is_sorted() || x.is_empty() {
        return Ok(x.reshaped(dims));
    }
    let operand = StridedView::dense(&x.sizes());
    let view = StridedView { offset: 0, strides: order.iter().map(|&d| operand.strides[d]).collect() };
    gather_box(cx, &x, &dims, &view)
}

/// `slice`: every `stride`th element from `start` to before `limit`, in each dimension.
pub(super) fn slice(cx: &Cx<'_>, args: Args) -> Result<Value> {
    let x = first(args);
    let slices = cx.attrs().slices().unwrap_or(&[]);
    let operand = StridedView::dense(&x.sizes());
    let mut view = StridedView { offset: 0, strides: Strides::new() };
    let mut dims = Dims::new();
    for (d, (s, &size)) in slices.iter().zip(x.dims()).enumerate() {
        // Of a dynamic dimension a dynamic one takes what there is.
        let limit = if cx.array_shape().is_dynamic_dim(d) { s.limit.min(size) } else { s.limit };
        if limit > size {
            return Err(cx.trap(
                codes::BAD_DYNAMIC_SIZE,
                format!("slice to {limit} of dimension {d}, whose run-time size is {size}"),
            ));
        }
        let n = (limit - s.start).max(0);
        dims.push(n / s.stride + i64::from(n % s.stride != 0));
        view.offset += s.start.min(size) as usize * operand.strides[d] as usize;
        // A stride that is never taken may be anything.
        view.strides.push(operand.strides[d].wrapping_mul(s.stride as isize));
    }
    if *dims == *x.dims() {
        return Ok(x.into());
    }
    Ok(gather_box(cx, &x, &dims, &view)?.into())
}

/// Start indices clamped so that a box of `sizes` is inside `dims`. They are scalars, or one vector.
fn starts(indices: &[Value], dims: &[i64], sizes: &[i64]) -> Sizes {
    let clamp = |(i, index): (usize, i64)| index.clamp(0, (dims[i] - sizes[i]).max(0)) as usize;
    if let [Value::Array(vector)] = indices
        && vector.rank() == 1
    {
        return (0..vector.len()).map(|i| vector.index_at(i)).enumerate().map(clamp).collect();
    }
    indices.iter().map(|v| v.expect_array().index_at(0)).enumerate().map(clamp).collect()
}

/// `dynamic-slice`: a box of constant sizes at clamped start indices.
pub(super) fn dynamic_slice(cx: &Cx<'_>, mut args: Args) -> Result<Value> {
    let indices: Args = args.drain(1..).collect();
    let x = first(args);
    let bounds = &cx.operand_shape(0).dims;
    let dims: Dims = cx.attrs().ints_or_empty(AttrKey::DynamicSliceSizes).into();
    // The whole of a dynamic dimension is what there is of it.
    let dims: Dims = dims
        .iter()
        .zip(bounds)
        .zip(x.dims())
        .map(|((&d, &b), &size)| if d == b { size } else { d })
        .collect();
    if *dims == *x.dims() {
        return Ok(x.into());
    }
    fits_inside(cx, &dims, x.dims())?;
    let mut view = StridedView::dense(&x.sizes());
    view.offset = starts(&indices, x.dims(), &dims)
        .iter()
        .zip(&view.strides)
        .map(|(&start, &stride)| start * stride as usize)
        .sum();
    Ok(gather_box(cx, &x, &dims, &view)?.into())
}

/// Refuses a box that is larger than the run-time sizes of the array.
fn fits_inside(cx: &Cx<'_>, dims: &[i64], array: &[i64]) -> Result<()> {
    if dims.iter().zip(array).all(|(d, a)| d <= a) {
        return Ok(());
    }
    let message = format!("{}: a box of {dims:?} in an array of run-time sizes {array:?}", cx.instr.opcode);
    Err(cx.trap(codes::BAD_DYNAMIC_SIZE, message))
}

/// `dynamic-update-slice`: the operand with a box at clamped start indices replaced. In place if the operand
/// is not shared.
pub(super) fn dynamic_update_slice(cx: &Cx<'_>, mut args: Args) -> Result<Value> {
    fn of<T: BufferOf>(buffer: &mut Buffer, update: &Tensor, view: &StridedView) {
        let out = T::slice_mut(buffer).expect("invariant: the verifier checked the element type");
        let sizes = update.sizes();
        copy(&sizes, update.slice::<T>(), &StridedView::dense(&sizes), out, view);
    }
    let indices: Args = args.drain(2..).collect();
    let update = args.pop().expect("invariant: the verifier checked the number of operands").into_array();
    let mut x = first(args);
    let update = super::elementwise::convert(cx, update, x.element_type())?;
    fits_inside(cx, update.dims(), x.dims())?;
    let mut view = StridedView::dense(&x.sizes());
    view.offset = starts(&indices, x.dims(), update.dims())
        .iter()
        .zip(&view.strides)
        .map(|(&start, &stride)| start * stride as usize)
        .sum();
    let ty = x.element_type();
    if let Some(buffer) = x.unique() {
        with_element_type!(ty, T => of::<T>(buffer, &update, &view));
        return Ok(x.into());
    }
    with_element_type!(ty, T => cx.reserve::<T>(x.len()))?;
    let dims: Dims = x.dims().into();
    let mut buffer = x.into_buffer();
    with_element_type!(ty, T => of::<T>(&mut buffer, &update, &view));
    Ok(Tensor::new(dims, buffer).into())
}

/// What a `pad` does to one dimension: element `first + i` of the operand, for `i` up to `count`, goes to `at
/// + i * step`.
struct Padded {
    size: i64,
    first: usize,
    count: usize,
    at: usize,
    step: isize,
}

/// Any numbers may stand in the text; `None` if the size does not fit.
fn padded(n: i64, p: &hlo::attrs::PaddingDim) -> Option<Padded> {
    let (n, low, high, interior) =
        (i128::from(n), i128::from(p.low), i128::from(p.high), i128::from(p.interior));
    let size = (low + high + n + (n - 1).max(0) * interior).max(0);
    let step = interior + 1;
    // Elements at positions before 0 or from `size` on are removed.
    let first = if low < 0 { (-low + step - 1) / step } else { 0 };
    let last = (size - 1 - low).div_euclid(step).min(n - 1);
    let count = (last - first + 1).max(0);
    let within = |x: i128| if count > 0 { usize::try_from(x).ok() } else { Some(0) };
    Some(Padded {
        size: i64::try_from(size).ok()?,
        first: within(first)?,
        count: usize::try_from(count).ok()?,
        at: within(low + first * step)?,
        // A step that is never taken may be anything.
        step: if count > 1 { isize::try_from(step).ok()? } else { 1 },
    })
}

/// `pad`: elements added (or, where negative, removed) before and after, and added between.
pub(super) fn pad(cx: &Cx<'_>, args: Args) -> Result<Value> {
    fn of<T: BufferOf>(cx: &Cx<'_>, x: &Tensor, value: &Tensor, padding: &[Padded]) -> Result<Tensor> {
        let dims: Dims = padding.iter().map(|p| p.size).collect();
        let n = hlo::ArrayShape::new(T::TYPE, &dims).checked_elements().and_then(|n| usize::try_from(n).ok());
        let mut out = cx.overwritten::<T>(n.ok_or_else(|| cx.unsupported(&format!("to sizes {dims:?}")))?)?;
        let value = value.slice::<T>()[0];
        chunks_mut(&mut out, &|_, out| out.fill(value));
        let (mut source, mut target) = (StridedView::dense(&x.sizes()), StridedView::dense(&sizes(&dims)));
        for (d, p) in padding.iter().enumerate() {
            source.offset += p.first * source.strides[d] as usize;
            target.offset += p.at * target.strides[d] as usize;
            target.strides[d] *= p.step;
        }
        let inside: Sizes = padding.iter().map(|p| p.count).collect();
        copy(&inside, x.slice::<T>(), &source, &mut out, &target);
        Ok(Tensor::from_vec(dims, out))
    }
    let [x, value] = super::control::arrays(args);
    let value = super::elementwise::convert(cx, value, x.element_type())?;
    let padding = cx.attrs().padding().unwrap_or(&[]);
    let padding: Option<Vec<Padded>> = x.dims().iter().zip(padding).map(|(&n, p)| padded(n, p)).collect();
    let padding = padding.ok_or_else(|| cx.unsupported("to a size beyond 2^63"))?;
    with_element_type!(x.element_type(), T => of::<T>(cx, &x, &value, &padding)).map(Value::from)
}

/// `reverse`: the named dimensions run backwards.
pub(super) fn reverse(cx: &Cx<'_>, args: Args) -> Result<Value> {
    let x = first(args);
    let mut view = StridedView::dense(&x.sizes());
    if x.is_empty() {
        return Ok(x.into());
    }
    for d in list(cx, AttrKey::Dimensions) {
        view.offset += (x.sizes()[d] - 1) * view.strides[d] as usize;
        view.strides[d] = -view.strides[d];
    }
    Ok(gather_box(cx, &x, x.dims(), &view)?.into())
}

/// `concatenate`: the operands one after the other along a dimension.
pub(super) fn concatenate(cx: &Cx<'_>, args: Args) -> Result<Value> {
    fn of<T: BufferOf>(cx: &Cx<'_>, parts: &[Tensor], dims: &[i64], along: usize) -> Result<Tensor> {
        let mut out = cx.overwritten::<T>(elements(dims))?;
        let mut target = StridedView::dense(&sizes(dims));
        for part in parts {
            let sizes = part.sizes();
            if part.is_empty() {
                continue;
            }
            copy(&sizes, part.slice::<T>(), &StridedView::dense(&sizes), &mut out, &target);
            target.offset += sizes[along] * target.strides[along] as usize;
        }
        Ok(Tensor::from_vec(dims, out))
    }
    let along = list(cx, AttrKey::Dimensions)[0];
    let ty = cx.array_shape().element_type;
    let parts = args.into_iter().map(|v| super::elementwise::convert(cx, v.into_array(), ty));
    let mut parts = parts.collect::<Result<Vec<_>>>()?;
    let mut dims: Dims = parts[0].dims().into();
    for part in &parts[1..] {
        if part.dims().iter().zip(&dims).enumerate().any(|(d, (a, b))| d != along && a != b) {
            let message = format!("concatenate of run-time sizes {dims:?} and {:?}", part.dims());
            return Err(cx.trap(codes::BAD_DYNAMIC_SIZE, message));
        }
        dims[along] += part.dims()[along];
    }
    if parts.len() == 1 {
        return Ok(parts.swap_remove(0).into());
    }
    with_element_type!(ty, T => of::<T>(cx, &parts, &dims, along)).map(Value::from)
}

/// `iota`: the index along a dimension, converted to the element type.
pub(super) fn iota(cx: &Cx<'_>) -> Result<Value> {
    fn of<T: BufferOf + Scalar>(cx: &Cx<'_>, along: usize) -> Result<Tensor> {
        let shape = cx.array_shape();
        let n = shape.checked_elements().and_then(|n| usize::try_from(n).ok());
        let mut out = cx.overwritten::<T>(n.ok_or_else(|| cx.unsupported("of an unbounded shape"))?)?;
        let sizes = sizes(&shape.dims);
        let (size, inner) = (sizes[along], sizes[along + 1..].iter().product::<usize>());
        chunks_mut(&mut out, &|start, mut out| {
            let mut i = start / inner % size;
            if inner == 1 {
                for o in out {
                    *o = T::from_u64(i as u64);
                    i = if i + 1 == size { 0 } else { i + 1 };
                }
                return;
            }
            let mut run = inner - start % inner;
            while !out.is_empty() {
                let (now, rest) = out.split_at_mut(run.min(out.len()));
                now.fill(T::from_u64(i as u64));
                out = rest;
                i = if i + 1 == size { 0 } else { i + 1 };
                run = inner;
            }
        });
        Ok(Tensor::from_vec(shape.dims.clone(), out))
    }
    let along = cx.attrs().int(AttrKey::IotaDimension).and_then(|d| usize::try_from(d).ok());
    let along = along.ok_or_else(|| cx.unsupported("without iota_dimension"))?;
    with_element_type!(cx.array_shape().element_type, T => of::<T>(cx, along)).map(Value::from)
}
