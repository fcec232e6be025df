//! Run-time sizes of dimensions.
//!
//! A tensor has its run-time sizes and nothing beyond them; so a dimension that is made smaller and then
//! larger again is filled with zeros.

use hlo::diag::codes;
use hlo::{AttrKey, Dims, UNBOUNDED, with_element_type};

use super::{StridedView, copy, first, gather_box, list};
use crate::error::Result;
use crate::ops::{Args, Cx};
use crate::value::{Sizes, Tensor, Value, elements, sizes};

/// `get-dimension-size`: an `s32`.
pub(crate) fn get_dimension_size(cx: &Cx<'_>, args: Args) -> Value {
    let size = first(args).dims()[list(cx, AttrKey::Dimensions)[0]];
    Tensor::scalar(i32::try_from(size).unwrap_or(i32::MAX)).into()
}

/// `set-dimension-size`: the operand sliced, or extended with zeros, to a size within the bound.
pub(crate) fn set_dimension_size(cx: &Cx<'_>, args: Args) -> Result<Value> {
    let [x, size] = crate::ops::control::arrays(args);
    let d = list(cx, AttrKey::Dimensions)[0];
    let size = size.index_at(0);
    check_bound(cx, d, size)?;
    let mut dims: Dims = x.dims().into();
    dims[d] = size;
    Ok(resized(cx, &x, &dims)?.into())
}

/// A tensor sliced, or extended with zeros, to other sizes.
pub(crate) fn resized(cx: &Cx<'_>, x: &Tensor, dims: &[i64]) -> Result<Tensor> {
    fn of<T: hlo::BufferOf>(cx: &Cx<'_>, x: &Tensor, dims: &[i64]) -> Result<Tensor> {
        let n = hlo::ArrayShape::new(T::TYPE, dims).checked_elements().and_then(|n| usize::try_from(n).ok());
        let mut out = cx.vec::<T>(n.ok_or_else(|| cx.unsupported(&format!("to sizes {dims:?}")))?)?;
        let inside: Sizes = x.sizes().iter().zip(sizes(dims)).map(|(&a, b)| a.min(b)).collect();
        copy(
            &inside,
            x.slice::<T>(),
            &StridedView::dense(&x.sizes()),
            &mut out,
            &StridedView::dense(&sizes(dims)),
        );
        Ok(Tensor::from_vec(dims, out))
    }
    if *dims == *x.dims() {
        return Ok(x.clone());
    }
    if dims.iter().zip(x.dims()).all(|(new, old)| new <= old) {
        return gather_box(cx, x, dims, &StridedView::dense(&x.sizes()));
    }
    with_element_type!(x.element_type(), T => of::<T>(cx, x, dims))
}

/// Refuses a size that is not within the bound of a dimension of the result.
fn check_bound(cx: &Cx<'_>, d: usize, size: i64) -> Result<()> {
    let bound = cx.array_shape().dims[d];
    if size >= 0 && (bound == UNBOUNDED || size <= bound) {
        return Ok(());
    }
    Err(cx.trap(codes::BAD_DYNAMIC_SIZE, format!("size {size} of dimension {d}, whose bound is {bound}")))
}

/// `dynamic-reshape`: the sizes are operands.
pub(crate) fn dynamic_reshape(cx: &Cx<'_>, mut args: Args) -> Result<Value> {
    let given: Args = args.drain(1..).collect();
    let x = first(args);
    let dims: Dims = given.iter().map(|v| v.expect_array().index_at(0)).collect();
    for (d, &size) in dims.iter().enumerate() {
        check_bound(cx, d, size)?;
    }
    let n = hlo::ArrayShape::new(x.element_type(), &dims).checked_elements();
    if n != i64::try_from(x.len()).ok() {
        let message = format!("dynamic-reshape of {} elements to run-time sizes {dims:?}", x.len());
        return Err(cx.trap(codes::BAD_DYNAMIC_SIZE, message));
    }
    Ok(x.reshaped(dims).into())
}

/// The run-time sizes of a reshape's result. Runs of dimensions whose bounds have the same product
/// correspond; a run may have one dynamic dimension in the result, or the same dimensions on both sides.
pub(crate) fn reshaped_dims(cx: &Cx<'_>, x: &Tensor) -> Result<Dims> {
    let shape = cx.array_shape();
    if !shape.is_dynamic() && elements(&shape.dims) == x.len() {
        return Ok(shape.dims.clone());
    }
    let unknown = || cx.unsupported(&format!("from run-time sizes {:?} to {shape}", x.dims()));
    let bounds = &cx.operand_shape(0).dims;
    let mut dims = shape.dims.clone();
    let (mut i, mut j) = (0, 0);
    while i < bounds.len() || j < dims.len() {
        let (from, to) = (i, j);
        let (mut a, mut b) = (1i64, 1i64);
        if i < bounds.len() {
            a = bounds[i];
            i += 1;
        }
        if j < dims.len() {
            b = shape.dims[j];
            j += 1;
        }
        while a != b {
            if a < b && i < bounds.len() {
                a = a.checked_mul(bounds[i]).ok_or_else(unknown)?;
                i += 1;
            } else if b < a && j < dims.len() {
                b = b.checked_mul(shape.dims[j]).ok_or_else(unknown)?;
                j += 1;
            } else {
                return Err(unknown());
            }
        }
        if bounds[from..i] == shape.dims[to..j] {
            dims[to..j].copy_from_slice(&x.dims()[from..i]);
            continue;
        }
        let n: i64 = x.dims()[from..i].iter().product();
        let free = free(cx, &shape.dims, to..j);
        let rest: i64 = (to..j).filter(|&d| Some(d) != free).map(|d| shape.dims[d]).product();
        match free {
            None if rest == n => {}
            Some(d) if rest > 0 && n % rest == 0 => dims[d] = n / rest,
            Some(_) | None => return Err(unknown()),
        }
    }
    Ok(dims)
}

/// The dimension of a run of the result that takes what the others leave: the dynamic one, that which
/// `inferred_dimension` names, or the only one that is not 1.
fn free(cx: &Cx<'_>, dims: &[i64], run: std::ops::Range<usize>) -> Option<usize> {
    let only = |condition: &dyn Fn(usize) -> bool| {
        let mut all = run.clone().filter(|&d| condition(d));
        all.next().filter(|_| all.next().is_none())
    };
    let inferred = cx.attrs().int(AttrKey::InferredDimension).and_then(|d| usize::try_from(d).ok());
    only(&|d| cx.array_shape().is_dynamic_dim(d))
        .or_else(|| inferred.filter(|d| run.contains(d)))
        .or_else(|| only(&|d| dims[d] != 1))
}
