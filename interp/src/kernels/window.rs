//! Sums of windows of a dense row-major array of any rank: reduce-window with an addition, and cumulative sums as its
//! special case.
//!
//! Output position `o` and window position `w` of an axis meet the operand at `p = o * stride + w * window_dilation -
//! padding_low`, an element if `p` is a multiple of `base_dilation` and `p / base_dilation` is inside; everything else is
//! absent. Terms are ordered by window position, row-major; modes are those of [`super::reduce`], with `init` first.
//!
//! A cumulative sum of `n` numbers is a window of `n` with `padding_low = n - 1` (forwards) or 0 (backwards). Long
//! windows along one axis cost a few operations per output, however long they are: the axis is cut into blocks as long as
//! the window, and each window is a suffix of one block and a prefix of the next (van Herk; Gil and Werman), so that
//! nothing is ever subtracted and error bounds stay those of the window itself.

use rayon::prelude::*;
use smallvec::SmallVec;

use super::SEQUENTIAL;
use crate::sum::fast::{self, Partial};
use crate::sum::{Accumulate, Long, Rounded, Term};

/// One axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowAxis {
    /// Extent of the operand.
    pub input: usize,
    /// Extent of the window.
    pub window: usize,
    /// Extent of the result.
    pub output: usize,
    /// Window stride.
    pub stride: usize,
    /// Padding before the (dilated) operand, negative to skip some of it.
    pub padding_low: i64,
    /// Distance of the operand's elements, at least 1.
    pub base_dilation: usize,
    /// Distance of the window's elements, at least 1.
    pub window_dilation: usize,
}

impl WindowAxis {
    /// An axis along which nothing is summed.
    pub fn identity(extent: usize) -> Self {
        WindowAxis {
            input: extent,
            window: 1,
            output: extent,
            stride: 1,
            padding_low: 0,
            base_dilation: 1,
            window_dilation: 1,
        }
    }

    /// A cumulative sum: output `i` sums elements `0..=i`, or `i..` if `reverse`.
    pub fn cumulative(extent: usize, reverse: bool) -> Self {
        let padding_low = if reverse { 0 } else { extent as i64 - 1 };
        WindowAxis { window: extent, padding_low, ..Self::identity(extent) }
    }

    /// The element at window position `w` of output `o`.
    #[inline]
    pub(crate) fn locate(&self, o: usize, w: usize) -> Option<usize> {
        let p = (o * self.stride + w * self.window_dilation) as i64 - self.padding_low;
        let p = usize::try_from(p).ok()?;
        (p % self.base_dilation == 0 && p / self.base_dilation < self.input).then_some(p / self.base_dilation)
    }

    /// The elements of output `o`, where nothing is dilated.
    pub(crate) fn range(&self, o: usize) -> std::ops::Range<usize> {
        let start = (o * self.stride) as i64 - self.padding_low;
        let end = (start + self.window as i64).clamp(0, self.input as i64);
        (start.clamp(0, end) as usize)..end as usize
    }
}

/// Windows along one axis shorter than this are summed one by one.
const SHORT: usize = 16;

/// Sums the windows of real numbers.
///
/// `init` is rounded to `O` by [`Accumulate::Region`] and taken as it is by [`Accumulate::Exact`].
pub fn real<T: Term, O: Rounded>(mode: Accumulate, axes: &[WindowAxis], init: f64, x: &[T], out: &mut [O]) {
    assert_eq!(x.len(), axes.iter().map(|axis| axis.input).product::<usize>(), "operand of {axes:?}");
    assert_eq!(out.len(), axes.iter().map(|axis| axis.output).product::<usize>(), "result of {axes:?}");
    if out.is_empty() {
        return;
    }
    let mut summed = axes.iter().enumerate().filter(|(_, axis)| **axis != WindowAxis::identity(axis.input));
    if let (Accumulate::Exact, Some((at, axis)), None) = (mode, summed.next(), summed.next())
        && axis.window >= SHORT
        && axis.base_dilation == 1
        && axis.window_dilation == 1
    {
        let inner = axes[at + 1..].iter().map(|axis| axis.input).product();
        return sliding(axis, inner, init, x, out);
    }
    let window = axes.iter().fold(1, |size: usize, axis| size.saturating_mul(axis.window));
    let each = |terms: &mut Vec<T>, (index, out): (usize, &mut O)| {
        terms.clear();
        gather(axes, index, x, terms);
        *out = match mode {
            Accumulate::Exact => fast::sum(init, terms),
            Accumulate::Region => {
                terms.iter().fold(O::from_f64(init), |acc, x| O::from_f64(acc.to_f64() + x.widen()))
            }
        };
    };
    if out.len().saturating_mul(window) < SEQUENTIAL {
        let mut terms = Vec::new();
        out.iter_mut().enumerate().for_each(|item| each(&mut terms, item));
    } else {
        let least = SEQUENTIAL.div_ceil(4 * window);
        out.par_iter_mut().with_min_len(least).enumerate().for_each_init(Vec::new, each);
    }
}

/// Appends the terms of one output, in order.
fn gather<T: Copy>(axes: &[WindowAxis], index: usize, x: &[T], terms: &mut Vec<T>) {
    let mut outputs = SmallVec::<[usize; 4]>::from_elem(0, axes.len());
    let mut rest = index;
    for (o, axis) in outputs.iter_mut().zip(axes).rev() {
        *o = rest % axis.output;
        rest /= axis.output;
    }
    gather_axis(axes, &outputs, 0, x, terms);
}

/// Appends the terms below one element of the axes before; the recursion is as deep as the rank.
fn gather_axis<T: Copy>(axes: &[WindowAxis], outputs: &[usize], base: usize, x: &[T], terms: &mut Vec<T>) {
    let (Some((axis, axes)), Some((&o, outputs))) = (axes.split_first(), outputs.split_first()) else {
        terms.push(x[base]);
        return;
    };
    if axis.base_dilation == 1 && axis.window_dilation == 1 {
        for p in axis.range(o) {
            gather_axis(axes, outputs, base * axis.input + p, x, terms);
        }
    } else {
        for p in (0..axis.window).filter_map(|w| axis.locate(o, w)) {
            gather_axis(axes, outputs, base * axis.input + p, x, terms);
        }
    }
}

/// Exact sums of long windows along one axis, `inner` elements apart.
fn sliding<T: Term, O: Rounded>(axis: &WindowAxis, inner: usize, init: f64, x: &[T], out: &mut [O]) {
    let lines = |(outer, out): (usize, &mut [O])| {
        let x = &x[outer * axis.input * inner..(outer + 1) * axis.input * inner];
        let mut line: Vec<T> = Vec::with_capacity(axis.input);
        let mut scratch = Scratch::default();
        for column in 0..inner {
            line.clear();
            line.extend(x.iter().skip(column).step_by(inner));
            scratch.slide(axis, init, &line, |o, value| out[o * inner + column] = value);
        }
    };
    if x.len() < SEQUENTIAL {
        out.chunks_mut(axis.output * inner).enumerate().for_each(lines);
    } else {
        out.par_chunks_mut(axis.output * inner).enumerate().for_each(lines);
    }
}

/// Sums of the pieces of two blocks of a line.
#[derive(Default)]
struct Scratch {
    /// `suffix[i]`: the sum from element `i` of the window's first block to that block's end.
    suffix: Vec<Partial>,
    /// `prefix[i]`: the sum up to and with element `i` of the block that the window ends in.
    prefix: Vec<Partial>,
}

impl Scratch {
    fn slide<T: Term, O: Rounded>(
        &mut self,
        axis: &WindowAxis,
        init: f64,
        x: &[T],
        mut put: impl FnMut(usize, O),
    ) {
        let (n, block) = (x.len(), axis.window);
        // Where no sum of finite elements can overflow, a sum that is not finite is what the elements make it.
        let finite = |x: f64| if x.is_finite() { x.abs() } else { 0.0 };
        let largest = x.iter().map(|x| finite(x.widen())).fold(finite(init), f64::max);
        let final_if_infinite = largest < f64::MAX / (4.0 * (n as f64 + 1.0));
        let (mut suffix_of, mut prefix_of) = (usize::MAX, usize::MAX);
        for o in 0..axis.output {
            let range = axis.range(o);
            let sum = if range.is_empty() {
                Partial::EMPTY
            } else {
                let (first, last) = (range.start / block, (range.end - 1) / block);
                // Within one block a window is a prefix, or clipped at the end of the line (or ends with the block) and
                // a suffix.
                let as_suffix = first != last || !range.start.is_multiple_of(block);
                let as_prefix = first != last || !as_suffix;
                if as_suffix && suffix_of != first {
                    let piece = &x[first * block..((first + 1) * block).min(n)];
                    running(&mut self.suffix, piece.iter().rev());
                    self.suffix.reverse();
                    suffix_of = first;
                }
                if as_prefix && prefix_of != last {
                    let piece = &x[last * block..((last + 1) * block).min(n)];
                    running(&mut self.prefix, piece.iter());
                    prefix_of = last;
                }
                match (as_suffix, as_prefix) {
                    (true, true) => {
                        self.suffix[range.start % block].plus(self.prefix[(range.end - 1) % block])
                    }
                    (true, false) => self.suffix[range.start % block],
                    (false, _) => self.prefix[(range.end - 1) % block],
                }
            };
            let sum = sum.plus(Partial::exactly(init));
            let value = if !sum.s.is_finite() && final_if_infinite {
                O::from_f64(sum.s)
            } else {
                sum.settle().unwrap_or_else(|| {
                    let mut long = Long::new();
                    long.add(init);
                    x[range].iter().for_each(|&x| long.add(x.widen()));
                    O::from_long(&long)
                })
            };
            put(o, value);
        }
    }
}

/// Sums of the first 1, 2, 3, ... elements.
fn running<'a, T: Term>(sums: &mut Vec<Partial>, x: impl Iterator<Item = &'a T>) {
    sums.clear();
    sums.extend(x.scan(Partial::EMPTY, |sum, x| {
        *sum = sum.plus(Partial::exactly(x.widen()));
        Some(*sum)
    }));
}
