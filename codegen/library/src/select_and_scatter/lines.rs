//! Windows along the last axis together, where an element has few neighbours: first all of a line's windows select, a position of the window at a time,
//! then their sources are added one after the other.
//!
//! Tasks have bands of the first axis of the result: windows that reach into two of them select in both.
//!
//! **Invariant:** each element sees its sources in the order of the windows.

use hlo_library_base::memory::Shared;
use hlo_library_base::simd::{Work, vectorized, vectorized_or};
use hlo_library_base::{Call, Sent, sizes};
use smallvec::SmallVec;

use super::super::window::{Axis, Run, advance, locate, outputs, positions};
use super::sums::{Number, Planes, Stays, WIDE, with_comparison};

/// Elements of a band, at least.
const BAND: usize = 1 << 14;

/// Tasks for so many bands, at most.
const BANDS: usize = 16;

/// So many neighbours select together.
const NEIGHBOURS: usize = 16;

/// Nothing is selected.
const NOWHERE: u32 = u32::MAX;

impl Planes<'_> {
    /// Whether neighbours are few and lines have windows enough: `least`.
    pub(super) fn fit_lines(&self, least: usize) -> bool {
        let long = |last: &Axis| last.is_dense() && last.output >= least;
        (1..NEIGHBOURS).contains(&self.inner) && self.axes.last().is_some_and(long)
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
        let bands =
            BANDS.div_ceil(planes.max(1)).min(elements / inner / sizes::from(BAND)).clamp(1, rows.max(1));
        let sent = Sent(*call);
        call.pool.run(planes * bands, &|item| {
            let (call, plane, band) = (sent.get(), item / bands, item % bands);
            let part = |i: usize, n: usize| {
                // SAFETY: there are so many such planes in the array.
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

/// The windows of one plane, of which each element is `inner` from the next, and a band of its result.
///
/// **Invariant:** the arrays have the elements and windows of the axes, and nobody else uses the band.
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
    /// How many windows of a line are computed at a time, parts of about the same size; `None`: there are none.
    fn each(&self) -> Option<usize> {
        let windows = self.axes.last()?.output;
        Some(windows.div_ceil(windows.div_ceil(WIDE).max(1)))
    }

    /// Computes the band, parts of lines of at most [`WIDE`] windows at a time.
    ///
    /// # Safety
    /// The invariant.
    unsafe fn run(self) {
        match self.each() {
            Some(each @ 0..=16) => vectorized(Parts::<_, 16> { lines: self, each }),
            Some(each) => vectorized(Parts::<_, WIDE> { lines: self, each }),
            None => {}
        }
    }

    /// As [`Lines::run`], by code for about as many windows where that is compiled.
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
            _ => vectorized_or(Parts::<_, WIDE> { lines: self, each }, any),
        }
    }

    /// As [`Lines::run`], for machines without the widest vectors. Compiled once for all specializations.
    #[inline(never)]
    fn run_baseline(self, each: usize) {
        match each {
            0..=16 => Parts::<_, 16> { lines: self, each }.run(),
            _ => Parts::<_, WIDE> { lines: self, each }.run(),
        }
    }
}

/// Lines in parts of so many windows, which are computed as `N`.
struct Parts<L, const N: usize> {
    lines: L,
    each: usize,
}

/// What the windows of a part have selected.
struct Selected<W, const N: usize> {
    best: [W; N],
    place: [u32; N],
}

impl<W: Copy, const N: usize> Selected<W, N> {
    /// Goes on with the elements of a row, of which those of `count` lanes from `first` on exist, at `place`, `place + distance`, ....
    #[allow(clippy::needless_range_loop, reason = "of chained iterators LLVM makes no vectors")]
    #[inline(always)]
    fn select(
        &mut self,
        row: &[W],
        [first, count]: [u32; 2],
        [place, distance]: [u32; 2],
        stays: impl Fn(W, W) -> bool + Copy,
    ) {
        let row = &row[..N];
        for l in 0..N {
            let lane = (l as u32).wrapping_sub(first);
            let (best, at, x) = (self.best[l], self.place[l], row[l]);
            let take = (lane < count) & !((at != NOWHERE) & stays(best, x));
            self.best[l] = if take { x } else { best };
            self.place[l] = if take { place.wrapping_add(lane.wrapping_mul(distance)) } else { at };
        }
    }
}

/// Elements so far apart, one behind the other.
///
/// # Safety
/// There is one for each place.
#[inline(always)]
unsafe fn fetch<T: Copy>(from: *const T, step: usize, to: &mut [T]) {
    // Steps that are known make loads of neighbours.
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
        for place in band[0]..band[1] {
            // SAFETY: the band is in the result, here and below.
            unsafe { *out.pointer().add(place * inner) = init };
        }
        let (mut rows, mut runs) = (SmallVec::<[usize; 16]>::new(), SmallVec::<[Run; 16]>::new());
        let mut at: SmallVec<[usize; 6]> = SmallVec::from_elem(0, leading.len());
        let mut selected = Selected { best: [T::Wide::default(); N], place: [NOWHERE; N] };
        let (mut memory, mut wide) = ([init; N], [T::Wide::default(); WIDE]);
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
                selected.place.fill(NOWHERE);
                for row in &rows {
                    for run in &runs {
                        let (place, lane) = (row + run.element, run.first - first);
                        // SAFETY: a run has an element for each of its outputs.
                        unsafe {
                            let from = x.pointer().cast_const().add(place * inner);
                            fetch(from, run.distance * inner, &mut memory[lane..lane + run.count]);
                        }
                        let lanes = [lane as u32, run.count as u32];
                        let places = [place as u32, run.distance as u32];
                        selected.select(T::widen(&memory, &mut wide), lanes, places, stays);
                    }
                }
                for (window, &place) in (line * last.output + first..).zip(&selected.place[..part.len()]) {
                    if (band[0]..band[1]).contains(&(place as usize)) {
                        // SAFETY: there is a source for each window.
                        unsafe {
                            let to = out.pointer().add(place as usize * inner);
                            T::add(&[*source.pointer().add(window * inner)], std::slice::from_mut(&mut *to));
                        }
                    }
                }
            }
        }
    }
}
