//! `topk`: the `k` largest or smallest elements along the last dimension, in order, and their indices. Floats
//! compare by TOTALORDER (so +NaN is the largest, and -0 below +0); of equal elements those of lower index
//! come first.

use hlo::literal::BufferOf;
use hlo::{AttrKey, TypeClass, with_buffer};

use super::common::{arrays, dims, number, results};
use super::sort::{Direction, Lines, top};
use super::{Args, Cx};
use crate::error::Result;
use crate::value::{Tensor, Value};

/// `topk(operand)`: (values, indices).
pub(super) fn topk(cx: &Cx<'_>, args: Args) -> Result<Value> {
    let [x] = arrays(args);
    let k = number(cx, AttrKey::K)?;
    let largest = cx.attrs().bool_or(AttrKey::Largest, true);
    let (values, indices) = select(cx, &x, k, largest)?;
    Ok(results(cx, vec![values.into(), indices.into()]))
}

/// The first `k` elements in descending (or ascending) order, and their indices as s32.
pub(super) fn select(cx: &Cx<'_>, x: &Tensor, k: usize, largest: bool) -> Result<(Tensor, Tensor)> {
    let mut sizes = x.sizes();
    let Some(last) = sizes.last_mut() else { return Err(cx.unsupported("of a scalar")) };
    let len = *last;
    // A dynamic dimension may have fewer than k elements.
    let k = k.min(len);
    *last = k;
    if i32::try_from(len).is_err() {
        return Err(cx.unsupported("of 2^31 elements or more"));
    }
    if x.element_type().class() == TypeClass::Complex {
        return Err(cx.unsupported("of complex numbers"));
    }
    let lines = Lines::new(&x.sizes(), x.rank() - 1);
    cx.reserve::<u64>(k.saturating_mul(lines.count).saturating_mul(2))?;
    let direction = if largest { Direction::Descending } else { Direction::Ascending };
    let order = top(x, k, direction, lines).ok_or_else(|| cx.unsupported("of complex numbers"))?;
    let values = with_buffer!(x.buffer(), v => taken(v, &order, k, lines));
    let indices: Vec<i32> = order.iter().map(|&i| i as i32).collect();
    Ok((Tensor::new(dims(&sizes), values), Tensor::from_vec(dims(&sizes), indices)))
}

pub(super) fn taken<T: BufferOf>(x: &[T], order: &[u32], k: usize, lines: Lines) -> hlo::Buffer {
    let line_of = |i: usize| i / k.max(1);
    T::wrap(order.iter().enumerate().map(|(i, &from)| x[line_of(i) * lines.len + from as usize]).collect())
}
