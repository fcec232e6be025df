//! `sort`: any number of operands, along any dimension, by any comparator. Always stable.
//!
//! The algorithm is a merge sort that takes from the right run exactly if the comparator says that its head
//! comes before the head of the left one: it ends, and gives a permutation, whatever the comparator says. A
//! comparator that is a strict weak order leaves no choice of result; for others the result is that of this
//! merge, on runs of 1, 2, 4, ... elements from the left. A comparator of one key is recognized and its keys
//! are sorted as integers, which gives the same result.

mod keys;
mod merge;

use hlo::literal::BufferOf;
use hlo::{AttrKey, with_buffer};
use hlo_threads::parallel;

use super::common::{dims, region, same_types};
use super::strided::SEQUENTIAL;
use super::{Args, Cx};
use crate::error::Result;
use crate::value::{Sizes, Tensor, Value};

pub(super) use keys::{Direction, top};

/// An array seen as lines along one dimension.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lines {
    /// Elements of a line.
    pub(super) len: usize,
    /// Distance of successive elements.
    pub(super) stride: usize,
    /// The number of lines.
    pub(super) count: usize,
}

impl Lines {
    pub(super) fn new(sizes: &[usize], dimension: usize) -> Self {
        let len = sizes.get(dimension).copied().unwrap_or(1);
        let stride = sizes.iter().skip(dimension + 1).product();
        let total: usize = sizes.iter().product();
        Self { len, stride, count: total.checked_div(len).unwrap_or(0) }
    }

    /// The offset of a line.
    #[inline]
    pub(super) fn start(&self, line: usize) -> usize {
        line / self.stride * self.stride * self.len + line % self.stride
    }
}

/// `sort(operands...)`.
pub(super) fn sort(cx: &Cx<'_>, args: Args) -> Result<Value> {
    let operands: Vec<Tensor> = args.into_iter().map(Value::into_array).collect();
    let Some(first) = operands.first() else { return Err(cx.unsupported("without operands")) };
    let sizes = first.sizes();
    let dimension = cx.attrs().ints_or_empty(AttrKey::Dimensions).first().copied().unwrap_or(0);
    let lines = Lines::new(&sizes, usize::try_from(dimension).unwrap_or(usize::MAX));
    if u32::try_from(lines.len).is_err() {
        return Err(cx.unsupported("of 2^32 elements or more"));
    }
    let region = region(cx, AttrKey::ToApply)?;
    let both = operands.iter().enumerate().flat_map(|(i, x)| [(2 * i, x), (2 * i + 1, x)]);
    same_types(cx, &region, both)?;
    let order = if lines.len < 2 { None } else { Some(order(cx, &region, &operands, lines)?) };
    let results = operands.into_iter().map(|operand| -> Result<Value> {
        let Some(order) = &order else { return Ok(operand.into()) };
        let sorted = with_buffer!(operand.buffer(), x => permuted(cx, x, lines, order, &sizes)?);
        Ok(sorted.into())
    });
    let results: Vec<Value> = results.collect::<Result<_>>()?;
    Ok(super::common::results(cx, results))
}

/// For each line, the indices of its elements in sorted order.
pub(super) fn order(
    cx: &Cx<'_>,
    region: &crate::region::Region,
    operands: &[Tensor],
    lines: Lines,
) -> Result<Vec<u32>> {
    cx.reserve::<u64>(lines.len.saturating_mul(lines.count).saturating_mul(2))?;
    if lines.len == 0 {
        return Ok(Vec::new());
    }
    if let Some(order) = region.as_order()
        && let Some(sorted) = operands.get(order.key).and_then(|key| keys::sort(key, order, lines))
    {
        cx.applied(region, sorted.len());
        return Ok(sorted);
    }
    merge::sort(cx, region, operands, lines)
}

/// The elements in the order that was found.
fn permuted<T: BufferOf>(cx: &Cx<'_>, x: &[T], lines: Lines, order: &[u32], sizes: &Sizes) -> Result<Tensor> {
    let mut out = cx.overwritten::<T>(x.len())?;
    if lines.stride == 1 {
        let copy = |((line, out), order): ((usize, &mut [T]), &[u32])| {
            let x = &x[line * lines.len..][..lines.len];
            out.iter_mut().zip(order).for_each(|(out, &from)| *out = x[from as usize]);
        };
        let least = (SEQUENTIAL / lines.len).max(1);
        parallel::pieces(&mut out, lines.len, least, &|line, out| {
            copy(((line, out), &order[line * lines.len..][..lines.len]));
        });
    } else {
        // All lines of one outer index at a time: their elements are interleaved in the result.
        let plane = lines.stride * lines.len;
        let copy = |((outer, out), order): ((usize, &mut [T]), &[u32])| {
            let x = &x[outer * plane..][..plane];
            for (k, out) in out.chunks_exact_mut(lines.stride).enumerate() {
                for (i, out) in out.iter_mut().enumerate() {
                    *out = x[order[i * lines.len + k] as usize * lines.stride + i];
                }
            }
        };
        parallel::pieces(&mut out, plane, 1, &|outer, out| {
            copy(((outer, out), &order[outer * plane..][..plane]));
        });
    }
    Ok(Tensor::from_vec(dims(sizes), out))
}
