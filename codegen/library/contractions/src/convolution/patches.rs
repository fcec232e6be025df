//! The left operand of a convolution as a matrix: a row for each output position, a term for each window
//! position and channel.
//!
//! Nothing of it is in memory but what is being packed: *implicit* patches. A term whose position is in the
//! padding, or in a hole of a dilated operand, is packed as zero; `Patches::present` tells it from a zero
//! that is there.

use std::ops::Range;

use smallvec::SmallVec;

use crate::dot::source::{Load, MAX_PANEL_WIDTH, Run, Source};
use crate::dot::steps::Steps;

/// One spatial axis of a convolution.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Axis {
    /// Extent of the left operand.
    pub(super) input: usize,
    /// Its stride, in elements.
    pub(super) input_stride: isize,
    /// Extent of the window.
    pub(super) kernel: usize,
    /// Extent of the result.
    pub(super) output: usize,
    /// Distance of output positions.
    pub(super) stride: isize,
    /// Padding before the (dilated) input.
    pub(super) padding: isize,
    /// Distance of input elements.
    pub(super) input_dilation: isize,
    /// Distance of window elements.
    pub(super) kernel_dilation: isize,
}

impl Axis {
    /// Where, in elements, window position `w` of the output position that begins at `origin` is, if it is
    /// there.
    #[inline(always)]
    fn locate(&self, origin: isize, w: usize) -> Option<isize> {
        let mut p = origin + w as isize * self.kernel_dilation;
        if self.input_dilation > 1 {
            if p % self.input_dilation != 0 {
                return None;
            }
            p /= self.input_dilation;
        }
        (p >= 0 && p < self.input as isize).then(|| p * self.input_stride)
    }

    /// Whether some term is absent.
    pub(super) fn has_holes(&self) -> bool {
        let last = (self.output as isize - 1) * self.stride - self.padding
            + (self.kernel as isize - 1) * self.kernel_dilation;
        self.input_dilation > 1 || self.padding > 0 || last >= self.input as isize
    }
}

/// Where the window positions of a tap are, relative to a row, along axes.
#[inline(always)]
fn locate_along(axes: &[Axis], origins: &[isize], tap: &[usize]) -> Option<isize> {
    let mut offset = 0;
    for ((axis, &origin), &w) in axes.iter().zip(origins).zip(tap) {
        offset += axis.locate(origin, w)?;
    }
    Some(offset)
}

/// A dimension of the rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Digit {
    /// The batch, and its stride in the left operand.
    Batch(isize),
    /// A spatial axis.
    Axis(usize),
}

/// What is known of the patches when a program is compiled.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    pub(super) axes: SmallVec<[Axis; 3]>,
    /// Dimensions of the rows, the slowest first.
    pub(super) rows: SmallVec<[(usize, Digit); 4]>,
    /// Channels that a window sees.
    pub(super) channels: usize,
    pub(super) channel_stride: isize,
    /// Groups (and, if they are not rows, the examples of a batch).
    pub(super) batch: Steps,
}

impl Shape {
    /// Window positions.
    pub(super) fn taps(&self) -> usize {
        self.axes.iter().map(|axis| axis.kernel).product()
    }

    /// Whether some term is absent.
    pub(super) fn has_holes(&self) -> bool {
        self.axes.iter().any(Axis::has_holes)
    }

    /// How many of the last axes have their window positions, and the channels, one after the other in
    /// memory, so that a row of a window is one run.
    fn merged(&self) -> bool {
        let run = self.channels as isize * self.channel_stride;
        self.channel_stride == 1
            && self.channels < 16
            && self.axes.last().is_some_and(|axis| {
                axis.input_dilation == 1 && axis.kernel > 1 && axis.kernel_dilation * axis.input_stride == run
            })
    }

    /// Offset (without those of axes) and origins of a row.
    fn row(&self, mut row: usize, origins: &mut [isize]) -> isize {
        let mut offset = 0;
        for &(n, digit) in self.rows.iter().rev() {
            let at = (row % n) as isize;
            row /= n;
            match digit {
                Digit::Batch(stride) => offset += at * stride,
                Digit::Axis(i) => origins[i] = at * self.axes[i].stride - self.axes[i].padding,
            }
        }
        offset
    }

    /// Window positions along each axis of a tap.
    fn tap(&self, mut tap: usize, out: &mut [usize]) {
        for (i, axis) in self.axes.iter().enumerate().rev() {
            out[i] = tap % axis.kernel;
            tap /= axis.kernel;
        }
    }

    /// Where the channels of a tap are, relative to the row.
    #[inline(always)]
    fn locate(&self, origins: &[isize], tap: &[usize]) -> Option<isize> {
        locate_along(&self.axes, origins, tap)
    }

    /// Where the first term of a merged row of taps is or would be, relative to the row, if the other axes'
    /// positions are there.
    fn locate_merged(&self, origins: &[isize], tap: &[usize]) -> Option<isize> {
        let (last, others) = self.axes.split_last()?;
        Some(locate_along(others, origins, tap)? + origins[others.len()] * last.input_stride)
    }

    /// Which terms of a merged row of taps are inside of the operand.
    fn present_in_row(&self, origins: &[isize]) -> Range<usize> {
        let (Some(axis), Some(&origin)) = (self.axes.last(), origins.last()) else { return 0..0 };
        // Positions up to which this many taps are before one.
        let before = |position: isize| {
            let taps = (position - origin + axis.kernel_dilation - 1).div_euclid(axis.kernel_dilation);
            taps.clamp(0, axis.kernel as isize) as usize
        };
        before(0) * self.channels..before(axis.input as isize) * self.channels
    }

    /// Whether the terms of a tap are there for a row.
    pub(super) fn present(&self, row: usize, tap: usize) -> bool {
        let mut origins: SmallVec<[isize; 4]> = SmallVec::from_elem(0, self.axes.len());
        let mut at: SmallVec<[usize; 4]> = SmallVec::from_elem(0, self.axes.len());
        self.row(row, &mut origins);
        self.tap(tap, &mut at);
        self.locate(&origins, &at).is_some()
    }
}

/// The patches of a convolution.
pub(super) struct Patches<'a, T> {
    pub(super) base: *const T,
    pub(super) shape: &'a Shape,
}

// SAFETY: it is only read.
unsafe impl<T: Sync> Sync for Patches<'_, T> {}

/// Part of a row of a window: the terms `first..end` of a tap (or of a merged row of taps).
#[derive(Clone, Copy)]
struct Segment {
    first: usize,
    end: usize,
}

impl<T> Patches<'_, T> {
    /// Writes the terms of a segment of one row; `from` is `None` if they are absent.
    #[inline]
    unsafe fn line<W: Copy + Default>(&self, from: Option<isize>, segment: Segment, out: *mut W, width: usize)
    where
        T: Load<W>,
    {
        let words = (segment.end - segment.first).div_ceil(T::GROUP);
        let step = self.shape.channel_stride;
        for word in 0..words {
            let term = segment.first + word * T::GROUP;
            // SAFETY: the caller's: the terms are there, or absent.
            unsafe {
                *out.add(word * width) = match from {
                    Some(offset) => {
                        let present = (segment.end - term).min(T::GROUP);
                        T::word(self.base.offset(offset + term as isize * step), step, present)
                    }
                    None => W::default(),
                };
            }
        }
    }
}

impl<W: Copy + Default, T: Load<W> + Sync> Source<W> for Patches<'_, T> {
    unsafe fn pack(
        &self,
        batch: usize,
        first: usize,
        count: usize,
        word: usize,
        words: usize,
        out: *mut W,
        width: usize,
    ) {
        let shape = self.shape;
        let rank = shape.axes.len();
        let mut offsets = [0isize; MAX_PANEL_WIDTH];
        let mut origins: SmallVec<[isize; 256]> = SmallVec::from_elem(0, rank * count);
        let base = shape.batch.offset(batch);
        for i in 0..count {
            offsets[i] = base + shape.row(first + i, &mut origins[i * rank..(i + 1) * rank]);
        }
        // Rows that differ from the one before in its offset alone (examples of a batch) find what is there
        // as it does.
        let mut alike = [false; MAX_PANEL_WIDTH];
        for i in 1..count {
            alike[i] = origins[i * rank..(i + 1) * rank] == origins[(i - 1) * rank..i * rank];
        }
        // A part of a merged row can begin anywhere if words are single terms.
        let merged = shape.merged() && T::GROUP == 1;
        let mut present = [(0, 0); MAX_PANEL_WIDTH];
        for i in (0..count).filter(|_| merged) {
            let Range { start, end } = shape.present_in_row(&origins[i * rank..(i + 1) * rank]);
            present[i] = (start, end);
        }
        // Terms that are one run if they are there.
        let run = if merged { shape.channels * shape.axes[rank - 1].kernel } else { shape.channels };
        let mut at: SmallVec<[usize; 4]> = SmallVec::from_elem(0, rank);
        let (mut term, end) =
            (word * T::GROUP, ((word + words) * T::GROUP).min(shape.taps() * shape.channels));
        let mut out = out;
        while term < end {
            let mut segment = Segment { first: term % run, end: (term % run + end - term).min(run) };
            let tap = term / run * (run / shape.channels);
            shape.tap(tap, &mut at);
            let mut from: [Option<isize>; MAX_PANEL_WIDTH] = [None; MAX_PANEL_WIDTH];
            for i in 0..count {
                let origins = &origins[i * rank..(i + 1) * rank];
                from[i] = if alike[i] {
                    from[i - 1].map(|from| from - offsets[i - 1] + offsets[i])
                } else {
                    let there =
                        if merged { shape.locate_merged(origins, &at) } else { shape.locate(origins, &at) };
                    there.map(|offset| offsets[i] + offset)
                };
            }
            // Up to where all rows that are there have their terms, or all of them together do not.
            let mut all = true;
            if merged {
                let mut common = 0..run;
                for i in (0..count).filter(|&i| from[i].is_some()) {
                    common = common.start.max(present[i].0)..common.end.min(present[i].1);
                }
                all = common.contains(&segment.first);
                let change = if all { common.end } else { common.start };
                if (segment.first + 1..segment.end).contains(&change) && !common.is_empty() {
                    segment.end = change;
                }
            }
            let words = (segment.end - segment.first).div_ceil(T::GROUP);
            let there = from[..count].iter().flatten().next();
            // SAFETY: the caller's; located terms are inside of the operand.
            unsafe {
                if let Some(&there) = there.filter(|_| all) {
                    // Absent rows are packed as another one, and then zeroed.
                    let rows = from.map(|from| from.unwrap_or(there));
                    let offset = segment.first as isize * shape.channel_stride;
                    let run = Run {
                        base: self.base.wrapping_offset(offset),
                        rows: &rows[..count],
                        step: shape.channel_stride,
                        length: segment.end - segment.first,
                        width,
                    };
                    run.pack(out);
                    for i in (0..count).filter(|&i| from[i].is_none()) {
                        for word in 0..words {
                            *out.add(word * width + i) = W::default();
                        }
                    }
                } else {
                    for i in 0..count {
                        let Segment { first, end } = segment;
                        let (start, stop) = if from[i].is_some() { present[i] } else { (0, 0) };
                        let (start, stop) = (start.clamp(first, end), stop.clamp(first, end));
                        let parts = [(None, first, start), (from[i], start, stop), (None, stop, end)];
                        for (from, first, end) in parts.into_iter().filter(|part| part.1 < part.2) {
                            let at = (first - segment.first) * width;
                            self.line(from, Segment { first, end }, out.add(at + i), width);
                        }
                    }
                    for word in 0..words {
                        for i in count..width {
                            *out.add(word * width + i) = W::default();
                        }
                    }
                }
                out = out.add(words * width);
            }
            term += segment.end - segment.first;
        }
    }

    fn in_place(&self, _batch: usize) -> Option<(*const W, isize, isize)> {
        None
    }
}
