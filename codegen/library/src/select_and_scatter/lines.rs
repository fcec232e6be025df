//! Windows along the last axis in lanes, where an element has few neighbours: first all windows of a line
//! select, one window position at a time, then their sources are added in order.
//!
//! Each task has a band of the first axis of the result; windows that span two bands select in both.
//!
//! **Invariant:** each element sees its sources in the order of the windows.

use hlo_library_base::memory::Shared;
use hlo_library_base::simd::{Work, vectorized, vectorized_or};
use hlo_library_base::{Call, Sent, sizes};
use smallvec::SmallVec;

use super::super::window::{Axis, Run, advance, locate, outputs, positions};
use super::sums::{BLOCK_NEIGHBOURS, Number, Planes, Stays, with_comparison};

/// The minimum of elements of a band.
const MIN_BAND_ELEMENTS: usize = 1 << 14;

/// The maximum of bands.
const MAX_BANDS: usize = 16;

/// The maximum of neighbours.
const MAX_NEIGHBOURS: usize = 16;

/// Nothing is selected.
const NONE_SELECTED: u32 = u32::MAX;

impl Planes<'_> {
    /// Whether neighbours are few and lines have at least `least` windows.
    pub(super) fn fit_lines(&self, least: usize) -> bool {
        let long = |last: &Axis| last.is_dense() && last.output >= least;
        (1..MAX_NEIGHBOURS).contains(&self.inner) && self.axes.last().is_some_and(long)
    }

    /// Lines of windows, each plane of neighbours by itself.
    ///
    /// # Safety
    /// As [`Planes::run`].
    pub(super) unsafe fn run_lines<T: Number>(&self, call: &Call<'_>) {
        let &Planes { axes, outer, inner, elements, windows, stays } = self;
        let Some((first, _)) = axes.split_first() else { return };
        let planes = outer * inner;
        let rows = first.input;
        let bands = MAX_BANDS
            .div_ceil(planes.max(1))
            .min(elements / inner / sizes::from(MIN_BAND_ELEMENTS))
            .clamp(1, rows.max(1));
        let sent = Sent(*call);
        call.pool.run(planes * bands, &|item| {
            let (call, plane, band) = (sent.get(), item / bands, item % bands);
            let part = |i: usize, n: usize| {
                // SAFETY: `plane` is below the number of planes in the array.
                unsafe { Shared::<T>::new(call.arguments[i]).offset(plane / inner * n + plane % inner) }
            };
            let arrays = [part(0, elements), part(1, windows), part(3, elements)];
            // SAFETY: the initial value is one element.
            let init = unsafe { *call.arguments[2].cast::<T>() };
            let band = [band, band + 1].map(|band| rows * band / bands);
            // SAFETY: as the caller says; items have different offsets in the result.
            unsafe {
                with_comparison!(stays,
                    stays => Lines { axes, arrays, init, inner, band, stays }.run_specialized(),
                    else Lines { axes, arrays, init, inner, band, stays }.run());
            }
        });
    }
}

/// The windows of one plane, whose elements are `inner` apart, and a band of its result.
///
/// **Invariant:** the arrays have the elements and windows of the axes, and nothing else accesses the band.
#[derive(Clone, Copy)]
struct Lines<'a, T, C> {
    axes: &'a [Axis],
    /// The operand, the source, the result.
    arrays: [Shared<T>; 3],
    init: T,
    inner: usize,
    /// Rows along the first axis.
    band: [usize; 2],
    stays: C,
}

impl<T: Number, C: Fn(T::Wide, T::Wide) -> bool + Copy> Lines<'_, T, C> {
    /// The number of windows of a line that are computed at a time, in parts of about the same size; `None`:
    /// there are no windows.
    fn each(&self) -> Option<usize> {
        let windows = self.axes.last()?.output;
        Some(windows.div_ceil(windows.div_ceil(BLOCK_NEIGHBOURS).max(1)))
    }

    /// Computes the band, parts of lines of at most [`BLOCK_NEIGHBOURS`] windows at a time.
    ///
    /// # Safety
    /// The invariant.
    unsafe fn run(self) {
        match self.each() {
            Some(each @ 0..=16) => vectorized(Parts::<_, 16> { lines: self, each }),
            Some(each) => vectorized(Parts::<_, BLOCK_NEIGHBOURS> { lines: self, each }),
            None => {}
        }
    }

    /// As [`Lines::run`], by code specialized for about as many windows where there is some.
    ///
    /// # Safety
    /// The invariant.
    unsafe fn run_specialized(self) {
        let Some(each) = self.each() else { return };
        let any = || self.run_baseline(each);
        match each {
            0..=16 => vectorized_or(Parts::<_, 16> { lines: self, each }, any),
            17..=32 => vectorized_or(Parts::<_, 32> { lines: self, each }, any),
            33..=48 => vectorized_or(Parts::<_, 48> { lines: self, each }, any),
            _ => vectorized_or(Parts::<_, BLOCK_NEIGHBOURS> { lines: self, each }, any),
        }
    }

    /// As [`Lines::run`], for machines without the widest vectors. Compiled once for all specializations.
    #[inline(never)]
    fn run_baseline(self, each: usize) {
        match each {
            0..=16 => Parts::<_, 16> { lines: self, each }.run(),
            _ => Parts::<_, BLOCK_NEIGHBOURS> { lines: self, each }.run(),
        }
    }
}

/// Lines in parts of at most `N` windows, which are computed as `N`.
struct Parts<L, const N: usize> {
    lines: L,
    each: usize,
}

/// What the windows of a part have selected.
struct Selected<W, const N: usize> {
    best: [W; N],
    index: [u32; N],
}

impl<W: Copy, const N: usize> Selected<W, N> {
    /// Compares with the elements of a row, of which those of `count` lanes from `first` on exist, at the
    /// indices `index`, `index + distance`, ....
    #[allow(clippy::needless_range_loop, reason = "of chained iterators LLVM makes no vectors")]
    #[inline(always)]
    fn select(
        &mut self,
        row: &[W],
        [first, count]: [u32; 2],
        [index, distance]: [u32; 2],
        stays: impl Fn(W, W) -> bool + Copy,
    ) {
        let row = &row[..N];
        for l in 0..N {
            let lane = (l as u32).wrapping_sub(first);
            let (best, at, x) = (self.best[l], self.index[l], row[l]);
            let take = (lane < count) & !((at != NONE_SELECTED) & stays(best, x));
            self.best[l] = if take { x } else { best };
            self.index[l] = if take { index.wrapping_add(lane.wrapping_mul(distance)) } else { at };
        }
    }
}

/// Gathers elements that are `step` apart.
///
/// # Safety
/// There is an element for each one of `to`.
#[inline(always)]
unsafe fn fetch<T: Copy>(from: *const T, step: usize, to: &mut [T]) {
    // Constant steps become vector loads and shuffles.
    macro_rules! each {
        ($step:expr) => {
            for (i, to) in to.iter_mut().enumerate() {
                // SAFETY: the caller's.
                *to = unsafe { *from.add(i * $step) };
            }
        };
    }
    match step {
        1 => each!(1),
        2 => each!(2),
        3 => each!(3),
        4 => each!(4),
        _ => each!(step),
    }
}

impl<T: Number, C: Fn(T::Wide, T::Wide) -> bool + Copy, const N: usize> Work for Parts<Lines<'_, T, C>, N> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let Parts { lines: Lines { axes, arrays: [x, source, out], init, inner, band, stays }, each } = self;
        let Some((last, leading)) = axes.split_last() else { return };
        let across: usize = axes.iter().skip(1).map(|a| a.input).product();
        let band = band.map(|row| row * across);
        for index in band[0]..band[1] {
            // SAFETY: the band is in the result, here and below.
            unsafe { *out.pointer().add(index * inner) = init };
        }
        let (mut rows, mut runs) = (SmallVec::<[usize; 16]>::new(), SmallVec::<[Run; 16]>::new());
        let mut at: SmallVec<[usize; 6]> = SmallVec::from_elem(0, leading.len());
        let mut selected = Selected { best: [T::Wide::default(); N], index: [NONE_SELECTED; N] };
        let (mut memory, mut wide) = ([init; N], [T::Wide::default(); BLOCK_NEIGHBOURS]);
        for line in 0..outputs(leading) {
            rows.clear();
            let exist = (0..positions(leading)).filter_map(|w| locate(leading, &at, w));
            rows.extend(exist.map(|row| row * last.input));
            advance(leading, &mut at);
            for first in (0..last.output).step_by(each) {
                let part = first..last.output.min(first + each);
                let span = last.span(&part);
                if !rows.iter().any(|row| row + span.start < band[1] && row + span.end > band[0]) {
                    continue;
                }
                runs.clear();
                runs.extend((0..last.window).filter_map(|w| last.run(w, &part)));
                selected.index.fill(NONE_SELECTED);
                for row in &rows {
                    for run in &runs {
                        let (index, lane) = (row + run.element, run.first - first);
                        // SAFETY: a run has an element for each of its outputs.
                        unsafe {
                            let from = x.pointer().cast_const().add(index * inner);
                            fetch(from, run.distance * inner, &mut memory[lane..lane + run.count]);
                        }
                        let lanes = [lane as u32, run.count as u32];
                        let indices = [index as u32, run.distance as u32];
                        selected.select(T::widen(&memory, &mut wide), lanes, indices, stays);
                    }
                }
                for (window, &index) in (line * last.output + first..).zip(&selected.index[..part.len()]) {
                    if (band[0]..band[1]).contains(&(index as usize)) {
                        // SAFETY: there is a source for each window.
                        unsafe {
                            let to = out.pointer().add(index as usize * inner);
                            T::add(&[*source.pointer().add(window * inner)], std::slice::from_mut(&mut *to));
                        }
                    }
                }
            }
        }
    }
}
