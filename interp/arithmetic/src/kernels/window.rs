//! Sums of windows of a dense row-major array of any rank: reduce-window with an addition, and cumulative
//! sums as its special case.
//!
//! Output position `o` and window position `w` of an axis meet the operand at `p = o * stride + w *
//! window_dilation - padding_low`, an element if `p` is a multiple of `base_dilation` and `p / base_dilation`
//! is inside; everything else is absent. Terms are ordered by window position, row-major; modes are those of
//! [`super::reduce`], with `init` first.
//!
//! A cumulative sum of `n` numbers is a window of `n` with `padding_low = n - 1` (forwards) or 0 (backwards).
//! Long windows along one axis cost a few operations per output, however long they are: the axis is divided
//! into blocks as long as the window, and each window is a suffix of one block and a prefix of the next (van
//! Herk; Gil and Werman), so that nothing is ever subtracted and error bounds stay those of the window
//! itself.

use hlo_threads::cancel;
use hlo_threads::parallel;
use smallvec::SmallVec;

use super::SEQUENTIAL;
use crate::sum::fast::{Columns, Partial};
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

    /// Whether every output is its own element.
    #[inline]
    fn is_identity(&self) -> bool {
        *self == Self::identity(self.input)
    }

    /// The outputs that have an element at window position `w`, where the operand is not dilated.
    #[inline]
    fn outputs(&self, w: usize) -> std::ops::Range<usize> {
        // Output o meets element o * stride - start.
        let start = self.padding_low.saturating_sub((w as i64).saturating_mul(self.window_dilation as i64));
        let reach = |bound: i64| bound.clamp(0, i64::MAX).unsigned_abs() as usize;
        let first = reach(start).div_ceil(self.stride);
        let end = reach(start.saturating_add(self.input as i64)).div_ceil(self.stride).min(self.output);
        first.min(end)..end
    }

    /// The element at window position `w` of output `o`.
    #[inline]
    pub fn locate(&self, o: usize, w: usize) -> Option<usize> {
        let reach = (w as i64).saturating_mul(self.window_dilation as i64).saturating_sub(self.padding_low);
        let p = (o as i64).saturating_mul(self.stride as i64).saturating_add(reach);
        let p = usize::try_from(p).ok()?;
        (p % self.base_dilation == 0 && p / self.base_dilation < self.input).then_some(p / self.base_dilation)
    }

    /// The elements of output `o`, in the order of the window.
    #[inline]
    pub fn present(&self, o: usize) -> impl Iterator<Item = usize> {
        cancel::polled(0..self.window).filter_map(move |w| self.locate(o, w))
    }

    /// The elements of output `o`, where nothing is dilated.
    #[inline]
    pub fn range(&self, o: usize) -> std::ops::Range<usize> {
        let start = (o as i64).saturating_mul(self.stride as i64).saturating_sub(self.padding_low);
        let end = start.saturating_add(self.window as i64).clamp(0, self.input as i64);
        (start.clamp(0, end) as usize)..end as usize
    }
}

/// Inner axes of a window, between whose elements cancellation is not polled.
pub const POLL_AXES: usize = 2;

/// Lines of a window between two polls.
const POLL_LINES: usize = 256;

/// Windows along one axis shorter than this are summed term by term.
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
    let mut summed = axes.iter().enumerate().filter(|(_, axis)| !axis.is_identity());
    if let (Accumulate::Exact, Some((at, axis)), None) = (mode, summed.next(), summed.next())
        && axis.window >= SHORT
        && axis.base_dilation == 1
        && axis.window_dilation == 1
    {
        let inner = axes[at + 1..].iter().map(|axis| axis.input).product();
        return sliding(axis, inner, init, x, out);
    }
    // The last axes along which nothing is summed are one.
    let outer = axes.iter().rposition(|axis| !axis.is_identity()).map_or(0, |at| at + 1);
    let mut collapsed: SmallVec<[WindowAxis; 4]> = axes[..outer].into();
    if outer < axes.len() || collapsed.is_empty() {
        collapsed.push(WindowAxis::identity(axes[outer..].iter().map(|axis| axis.input).product()));
    }
    let (line, leading) = collapsed.split_last().expect("at least one axis");
    let windows = Windows { line, leading, init, x };
    let work = axes.iter().fold(out.len(), |work, axis| work.saturating_mul(axis.window));
    let row = |scratch: &mut Lines<T>, (index, out): (usize, &mut [O])| match mode {
        Accumulate::Exact => windows.exact(scratch, index, out),
        Accumulate::Region => windows.literal(scratch, index, out),
    };
    if work < SEQUENTIAL {
        let mut scratch = Lines::default();
        out.chunks_mut(line.output).enumerate().for_each(|item| row(&mut scratch, item));
    } else {
        let least = (SEQUENTIAL * line.output).div_ceil(4 * work);
        let group = least.max(1) * line.output;
        parallel::pieces(out, group, 1, &|i, out| {
            let mut scratch = Lines::default();
            let rows = out.chunks_mut(line.output).enumerate();
            rows.for_each(|(k, out)| row(&mut scratch, (i * group / line.output + k, out)));
        });
    }
}

/// Windows of any shape, computed for all outputs along the last axis at a time.
struct Windows<'a, T> {
    /// The last axis.
    line: &'a WindowAxis,
    /// The others.
    leading: &'a [WindowAxis],
    init: f64,
    x: &'a [T],
}

/// Buffers of one thread.
struct Lines<T> {
    columns: Columns,
    sums: Vec<Partial>,
    terms: Vec<T>,
    bases: Vec<usize>,
}

impl<T> Default for Lines<T> {
    fn default() -> Self {
        Lines { columns: Columns::default(), sums: Vec::new(), terms: Vec::new(), bases: Vec::new() }
    }
}

impl<T: Term> Windows<'_, T> {
    /// Calls `add` with the terms that window position after window position adds to the outputs of row
    /// `index`: each time a run of outputs that begins at some output.
    fn terms(
        &self,
        bases: &mut Vec<usize>,
        buffer: &mut Vec<T>,
        index: usize,
        mut add: impl FnMut(usize, &[T]),
    ) {
        let line = self.line;
        bases.clear();
        let outputs = unravel(self.leading, index);
        locate(self.leading, &outputs, 0, &mut |base| bases.push(base * line.input));
        for (i, &base) in bases.iter().enumerate() {
            if i % POLL_LINES == POLL_LINES - 1 {
                cancel::poll();
            }
            let x = &self.x[base..base + line.input];
            for w in cancel::polled(0..line.window) {
                if line.base_dilation == 1 {
                    let outputs = line.outputs(w);
                    let Some(first) = (!outputs.is_empty()).then(|| line.locate(outputs.start, w)).flatten()
                    else {
                        continue;
                    };
                    if line.stride == 1 {
                        add(outputs.start, &x[first..first + outputs.len()]);
                    } else {
                        buffer.clear();
                        buffer.extend(x[first..].iter().step_by(line.stride).take(outputs.len()));
                        add(outputs.start, buffer);
                    }
                } else {
                    for o in 0..line.output {
                        if let Some(p) = line.locate(o, w) {
                            add(o, &x[p..p + 1]);
                        }
                    }
                }
            }
        }
    }

    fn exact<O: Rounded>(&self, scratch: &mut Lines<T>, index: usize, out: &mut [O]) {
        let Lines { columns, sums, terms, bases } = scratch;
        sums.clear();
        sums.resize(out.len(), Partial::exactly(self.init));
        columns.reset(out.len());
        self.terms(bases, terms, index, |first, x| {
            columns.add(first, x);
            if columns.full() {
                columns.flush::<T>(sums);
            }
        });
        columns.flush::<T>(sums);
        for (o, (out, sum)) in out.iter_mut().zip(sums).enumerate() {
            *out = sum.settle().unwrap_or_else(|| self.slowly(bases, o));
        }
    }

    fn literal<O: Rounded>(&self, scratch: &mut Lines<T>, index: usize, out: &mut [O]) {
        out.fill(O::from_f64(self.init));
        self.terms(&mut scratch.bases, &mut scratch.terms, index, |first, x| {
            for (acc, x) in out[first..].iter_mut().zip(x) {
                *acc = O::from_f64(acc.to_f64() + x.widen());
            }
        });
    }

    /// Output `o` of the row whose lines begin at `bases`.
    #[cold]
    fn slowly<O: Rounded>(&self, bases: &[usize], o: usize) -> O {
        let mut long = Long::new();
        long.add(self.init);
        for base in bases {
            for p in self.line.present(o) {
                long.add(self.x[base + p].widen());
            }
        }
        O::from_long(&long)
    }
}

/// The output of each axis from its number in row-major order.
#[inline]
fn unravel(axes: &[WindowAxis], index: usize) -> SmallVec<[usize; 4]> {
    let mut outputs = SmallVec::from_elem(0, axes.len());
    let mut rest = index;
    for (o, axis) in outputs.iter_mut().zip(axes).rev() {
        *o = rest % axis.output;
        rest /= axis.output;
    }
    outputs
}

/// Visits the elements of one output's window, in order; the recursion is as deep as the rank.
fn locate(axes: &[WindowAxis], outputs: &[usize], base: usize, visit: &mut impl FnMut(usize)) {
    let (Some((axis, axes)), Some((&o, outputs))) = (axes.split_first(), outputs.split_first()) else {
        return visit(base);
    };
    if axes.len() == POLL_AXES {
        cancel::poll();
    }
    for p in axis.present(o) {
        locate(axes, outputs, base * axis.input + p, visit);
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
        parallel::pieces(out, axis.output * inner, 1, &|i, out| lines((i, out)));
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
        // Where no sum of finite elements can overflow, a sum that is not finite is what the elements make
        // it.
        let finite = |x: f64| if x.is_finite() { x.abs() } else { 0.0 };
        let largest = x.iter().map(|x| finite(x.widen())).fold(finite(init), f64::max);
        let final_if_infinite = largest < f64::MAX / (4.0 * (n as f64 + 1.0));
        let (mut suffix_of, mut prefix_of) = (usize::MAX, usize::MAX);
        let mut long = SlidingLong::default();
        for o in 0..axis.output {
            let range = axis.range(o);
            let sum = if range.is_empty() {
                Partial::EMPTY
            } else {
                let (first, last) = (range.start / block, (range.end - 1) / block);
                // Within one block a window is a prefix, or clipped at the end of the line (or ends with the
                // block) and a suffix.
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
                sum.settle().unwrap_or_else(|| long.over(x, range, init))
            };
            put(o, value);
        }
    }
}

/// The exact sum of a window that moves on: each element is added once and subtracted once, which loses
/// nothing.
#[derive(Default)]
struct SlidingLong {
    finite: Long,
    nan: usize,
    positive: usize,
    negative: usize,
    range: std::ops::Range<usize>,
}

impl SlidingLong {
    /// Moves to a window that begins and ends no earlier than the last one, and rounds its sum with `init`.
    #[cold]
    fn over<T: Term, O: Rounded>(&mut self, x: &[T], range: std::ops::Range<usize>, init: f64) -> O {
        if range.start >= self.range.end {
            *self = SlidingLong { range: range.start..range.start, ..Self::default() };
        }
        for x in &x[self.range.start..range.start] {
            let x = x.widen();
            match self.special(x) {
                Some(count) => *count -= 1,
                None => self.finite.sub(x),
            }
        }
        for x in &x[self.range.end..range.end] {
            let x = x.widen();
            match self.special(x) {
                Some(count) => *count += 1,
                None => self.finite.add(x),
            }
        }
        self.range = range;
        // A sum that is exactly zero has two addends of different sign or a +0, else no slow path would have
        // been asked: it is +0, and the subtractions have made it so.
        let mut sum = self.finite.clone();
        let specials =
            [(self.nan, f64::NAN), (self.positive, f64::INFINITY), (self.negative, f64::NEG_INFINITY)];
        specials.iter().filter(|(count, _)| *count > 0).for_each(|&(_, x)| sum.add(x));
        sum.add(init);
        O::from_long(&sum)
    }

    /// The counter of a value that is not finite.
    #[inline]
    fn special(&mut self, x: f64) -> Option<&mut usize> {
        if x.is_nan() {
            Some(&mut self.nan)
        } else if x == f64::INFINITY {
            Some(&mut self.positive)
        } else if x == f64::NEG_INFINITY {
            Some(&mut self.negative)
        } else {
            None
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
