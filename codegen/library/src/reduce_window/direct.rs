//! Windows one by one, a line of results at a time, elements in the order of the window.
//!
//! A line is along the last axis that has windows; the elements of the axes behind it are neighbours. Where
//! the order of elements does not matter and windows share elements, lines of the operand are folded over the
//! axes before first, and then along themselves. Narrow floats are widened a line at a time, and kept so
//! while windows contain them.

use std::ops::Range;

use hlo_library_base::floats::Narrow;
use hlo_library_base::memory::Shared;
use hlo_library_base::simd::vectorized;
use hlo_library_base::workspace::with_workspace;
use smallvec::SmallVec;

use super::line::{BLOCK_NEIGHBOURS, Line, PREFETCH_BYTES};
use super::planes::line_of;
use super::{Work, tasks};
use crate::window::{Axes, Axis, Run, advance, positions};

/// Rows that are folded at a time, and widened rows that are kept.
const FOLDED_ROWS: usize = 64;
const KEPT_ROWS: usize = 16;

/// The maximum of elements of a line that is copied.
const MAX_COPIED_ELEMENTS: usize = 1 << 14;

/// Neighbours of a piece, of a line that has more than twice as many.
const PIECE_NEIGHBOURS: usize = 2048;

/// About how many elements of results a piece has, if there are few.
const PIECE_ELEMENTS: usize = 1 << 13;

/// The maximum of bytes of a short row of a window.
const SHORT_ROW_BYTES: usize = 1 << 10;

/// The maximum of windows, or of window positions, that are tabulated once for all lines.
const MAX_LISTED_WINDOWS: usize = 1 << 16;

/// The loops over windows, and how they are divided into pieces.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    leading: Axes,
    line: Axis,
    inner: usize,
    /// Over the leading axes first, then along the line.
    two: bool,
    /// Results along the line and neighbours of a piece.
    outputs: usize,
    width: usize,
    /// Rows that are kept widened.
    kept: usize,
}

impl Plan {
    /// For these axes. `free`: the order of elements does not matter; `narrow`: they are widened.
    pub(super) fn new(axes: &[Axis], free: bool, narrow: bool) -> Plan {
        let busy = axes.iter().rposition(|a| !a.is_identity()).map_or(0, |i| i + 1);
        let all = |axes: &[Axis]| axes.iter().map(|a| a.input).product::<usize>();
        let (leading, line, inner) = match axes[..busy].split_last() {
            Some((line, leading)) => (Axes::from(leading), *line, all(&axes[busy..])),
            None => (Axes::new(), Axis::identity(all(axes)), 1),
        };
        let width = if inner > 2 * PIECE_NEIGHBOURS { PIECE_NEIGHBOURS } else { inner };
        let rows = positions(&leading);
        // Loads for each result: of all elements; or in two passes, those of a line of sums and then along
        // it.
        let (window, stride) = (line.window, line.placement().0);
        let shares = inner < BLOCK_NEIGHBOURS / 4
            || rows.saturating_mul(window) > rows.saturating_mul(stride) + window + 1;
        let two = free && rows > 1 && width == inner && !line.is_identity() && shares;
        let mut outputs = line.output;
        while (two || narrow)
            && outputs > 1
            && line.reach(outputs).saturating_mul(width) > MAX_COPIED_ELEMENTS
        {
            outputs = outputs.div_ceil(2);
        }
        let count: usize = leading.iter().map(|a| a.output).product();
        let pieces = |outputs: usize| {
            count
                .saturating_mul(line.output.div_ceil(outputs.max(1)))
                .saturating_mul(inner.div_ceil(width.max(1)))
        };
        let work =
            |outputs: usize| outputs.saturating_mul(width).saturating_mul(positions(axes).min(1 << 16));
        // Even offsets: the two parts of a complex number stay together.
        while pieces(outputs) < super::TASKS
            && work(outputs) > 2 * PIECE_ELEMENTS
            && outputs > line.window.max(64)
        {
            outputs = outputs.div_ceil(2).next_multiple_of(2);
        }
        Plan { leading, line, inner, two, outputs: outputs.max(1), width, kept: rows.clamp(1, KEPT_ROWS) }
    }

    /// Whether lines can be widened one at a time.
    pub(super) fn narrows(&self) -> bool {
        self.line.reach(self.outputs).saturating_mul(self.width) <= MAX_COPIED_ELEMENTS
    }

    /// Elements of a copied line.
    fn copied(&self) -> usize {
        self.line.reach(self.outputs) * self.width
    }
}

/// Computes all windows.
///
/// # Safety
/// `x` and `out` are dense arrays of the axes' inputs and outputs, of the narrow type if there is one.
pub(super) unsafe fn windows(
    work: Work<'_>,
    plan: &Plan,
    narrow: Option<&Narrow>,
    x: Shared<u8>,
    out: Shared<u8>,
) {
    let size = work.fold.bytes;
    let Plan { leading, line, .. } = plan;
    let count: usize = leading.iter().map(|a| a.output).product();
    let (parts, blocks) = (line.output.div_ceil(plan.outputs), plan.inner.div_ceil(plan.width.max(1)));
    let each = plan.outputs * plan.width * positions(leading).saturating_mul(line.window).min(1 << 16);
    // The elements of each window of a line, or the runs of elements at each position of a window.
    let listed: Option<Vec<_>> = (plan.inner > 1 && line.output <= MAX_LISTED_WINDOWS)
        .then(|| (0..line.output).map(|o| line.first_and_count(o)).collect());
    let runs: Option<Vec<_>> = (plan.inner == 1 && parts == 1 && line.window <= MAX_LISTED_WINDOWS)
        .then(|| (0..line.window).filter_map(|w| line.run(w, &(0..line.output))).collect());
    let whole = line.span(&(0..line.output));
    let copies = if narrow.is_some() { plan.kept } else { 0 } + usize::from(plan.two);
    let copied = if copies > 0 { plan.copied() } else { 0 };
    let results = if narrow.is_some() { plan.outputs * plan.width } else { 0 };
    tasks(work.pool, count * parts * blocks, each, &|_, range| {
        with_workspace(size * (copies * copied + results), |memory| {
            let mut at: SmallVec<[usize; 6]> = SmallVec::from_elem(0, leading.len());
            let mut index = range.start % count;
            for (at, axis) in at.iter_mut().zip(leading).rev() {
                *at = index % axis.output;
                index /= axis.output;
            }
            let mut task = Task {
                work: &work,
                plan,
                narrow,
                x,
                // SAFETY: the memory has space for the copies, of which the last is of sums, and then the
                // results.
                sums: unsafe { memory.add(size * (copies.saturating_sub(1)) * copied) },
                // SAFETY: as above.
                results: unsafe { memory.add(size * copies * copied) },
                memory,
                copied,
                rows: SmallVec::new(),
                time: 0,
            };
            for item in range {
                let (index, part, block) = (item % count, item / count % parts, item / count / parts);
                let outputs = part * plan.outputs..line.output.min((part + 1) * plan.outputs);
                let neighbours = block * plan.width..plan.inner.min((block + 1) * plan.width);
                let mut some = SmallVec::<[(usize, usize); 64]>::new();
                let spans = match &listed {
                    Some(listed) => &listed[outputs.clone()],
                    None if plan.inner > 1 => {
                        some.extend(outputs.clone().map(|o| line.first_and_count(o)));
                        &some[..]
                    }
                    None => &[],
                };
                let elements = if parts == 1 { whole.clone() } else { line.span(&outputs) };
                let piece = Piece { outputs, neighbours, elements, spans, runs: runs.as_deref() };
                // SAFETY: as the caller says; pieces are different parts of the result.
                unsafe { task.piece(&at, index, &piece, out) };
                advance(leading, &mut at);
            }
        });
    });
}

/// A part of a line.
struct Piece<'a> {
    outputs: Range<usize>,
    neighbours: Range<usize>,
    /// The elements that they reach over.
    elements: Range<usize>,
    /// The first element and the number of elements of each window; empty if there are no neighbours: then
    /// `runs` has those at each position of a window, if they were tabulated.
    spans: &'a [(usize, usize)],
    runs: Option<&'a [Run]>,
}

/// A row that was widened.
struct Row {
    /// The row's index, its first element and its first neighbour.
    of: [usize; 3],
    /// The time of its last use.
    time: usize,
}

struct Task<'a> {
    work: &'a Work<'a>,
    plan: &'a Plan,
    narrow: Option<&'a Narrow>,
    x: Shared<u8>,
    memory: *mut u8,
    sums: *mut u8,
    results: *mut u8,
    /// Elements of a copy.
    copied: usize,
    rows: SmallVec<[Row; KEPT_ROWS]>,
    time: usize,
}

/// The results of a piece and their pitch in neighbours; the pitch of elements.
#[derive(Clone, Copy)]
struct To {
    out: *mut u8,
    out_pitch: usize,
    pitch: usize,
}

impl Task<'_> {
    /// Computes a piece of the line at `at`.
    unsafe fn piece(&mut self, at: &[usize], index: usize, piece: &Piece<'_>, out: Shared<u8>) {
        let (size, plan) = (self.work.fold.bytes, self.plan);
        let (outputs, width) = (piece.outputs.len(), piece.neighbours.len());
        let offset = (index * plan.line.output + piece.outputs.start) * plan.inner + piece.neighbours.start;
        let pitch = if self.narrow.is_some() || plan.two { width } else { plan.inner };
        // SAFETY: as the caller says: the piece is there, and the memory is this task's.
        unsafe {
            let to = match self.narrow {
                Some(_) => To { out: self.results, out_pitch: width, pitch },
                None => To { out: out.offset(offset * size).pointer(), out_pitch: plan.inner, pitch },
            };
            let mut sources = SmallVec::<[*const u8; FOLDED_ROWS]>::new();
            let (mut begun, most) = (false, if self.narrow.is_some() { plan.kept } else { FOLDED_ROWS });
            self.time += 1;
            visit(&plan.leading, at, 0, &mut |i| {
                if sources.len() == most {
                    self.fold(&sources, begun, piece, to);
                    sources.clear();
                    begun = true;
                    self.time += 1;
                }
                sources.push(self.source(i, piece));
            });
            self.fold(&sources, begun, piece, to);
            if plan.two {
                self.along(&[self.sums.cast_const()], false, piece, to);
            }
            if let Some(narrow) = self.narrow {
                let from = Shared::<f32>::new(self.results);
                let rows = if width == plan.inner { [1, outputs * width] } else { [outputs, width] };
                for row in 0..rows[0] {
                    let from = from.slice(row * width, rows[1]);
                    vectorized(|| narrow.narrow(from, out.pointer(), offset + row * plan.inner));
                }
            }
        }
    }

    /// The elements of a piece of row `i`.
    unsafe fn source(&mut self, i: usize, piece: &Piece<'_>) -> *const u8 {
        let (size, plan) = (self.work.fold.bytes, self.plan);
        let (first, width) = (piece.neighbours.start, piece.neighbours.len());
        let offset = (i * plan.line.input + piece.elements.start) * plan.inner + first;
        let Some(narrow) = self.narrow else {
            // SAFETY: the caller's: the row is in the operand.
            return unsafe { self.x.offset(offset * size) }.pointer().cast_const();
        };
        let of = [i, piece.elements.start, first];
        let slot = match self.rows.iter().position(|row| row.of == of) {
            Some(slot) => {
                self.rows[slot].time = self.time;
                // SAFETY: there is memory for [`KEPT_ROWS`] copies.
                return unsafe { self.memory.add(slot * self.copied * size) }.cast_const();
            }
            None if self.rows.len() < plan.kept => {
                self.rows.push(Row { of, time: self.time });
                self.rows.len() - 1
            }
            // The one that this window does not contain, or has folded already.
            None => {
                let oldest = (0..self.rows.len()).min_by_key(|&slot| self.rows[slot].time).unwrap_or(0);
                self.rows[oldest] = Row { of, time: self.time };
                oldest
            }
        };
        // SAFETY: the row is in the operand; there is memory for [`KEPT_ROWS`] copies.
        unsafe {
            let to = self.memory.add(slot * self.copied * size);
            let rows = if width == plan.inner {
                [1, piece.elements.len() * width]
            } else {
                [piece.elements.len(), width]
            };
            for row in 0..rows[0] {
                let to = Shared::<f32>::new(to).slice_mut(row * width, rows[1]);
                vectorized(|| narrow.widen(self.x.pointer(), offset + row * plan.inner, to));
            }
            to.cast_const()
        }
    }

    /// Folds rows, the first ones or more of them, into sums or into results.
    unsafe fn fold(&self, sources: &[*const u8], begun: bool, piece: &Piece<'_>, to: To) {
        let (fold, size) = (self.work.fold, self.work.fold.bytes);
        if !self.plan.two {
            // SAFETY: the caller's.
            return unsafe { self.along(sources, begun, piece, to) };
        }
        let all = piece.elements.len() * piece.neighbours.len();
        // SAFETY: the caller's: there is memory for the sums.
        unsafe {
            let rest = match sources.split_first() {
                Some((first, rest)) if !begun => {
                    self.sums.copy_from_nonoverlapping(*first, all * size);
                    rest
                }
                None if !begun => {
                    let identity = fold.identity.unwrap_or(0).to_ne_bytes();
                    super::fill(Shared::<u8>::new(self.sums).slice_mut(0, all * size), &identity[..size]);
                    sources
                }
                Some(_) | None => sources,
            };
            fold.rows(self.sums, all, rest);
        }
    }

    /// The prefetch distance in bytes: to the elements of later windows, if rows are read in place and are
    /// too short and too far apart for the hardware prefetcher; in the same line, or, if lines are short, in
    /// those of the next line of results. 0: nothing is prefetched.
    fn ahead(&self, width: usize) -> usize {
        let (plan, size) = (self.plan, self.work.fold.bytes);
        let row = plan.line.window.saturating_mul(width * size);
        let in_place = self.narrow.is_none() && !plan.two;
        if !self.work.far || !in_place || row > SHORT_ROW_BYTES || plan.line.placement().0 < 2 {
            return 0;
        }
        let line = plan.line.input * plan.inner * size;
        let next = plan.leading.last().map_or(1, |axis| axis.placement().0);
        if line < 2 * PREFETCH_BYTES { line.saturating_mul(next) } else { PREFETCH_BYTES }
    }

    /// Folds elements of lines (each given by the first one of the piece) into results of its windows.
    unsafe fn along(&self, lines: &[*const u8], begun: bool, piece: &Piece<'_>, to: To) {
        let (fold, size) = (self.work.fold, self.work.fold.bytes);
        let (line, width) = (&self.plan.line, piece.neighbours.len());
        let first: SmallVec<[*const u8; FOLDED_ROWS]> =
            lines.iter().map(|line| line.wrapping_sub(piece.elements.start * to.pitch * size)).collect();
        // SAFETY: the caller's: window positions that exist are in the lines.
        unsafe {
            if self.plan.inner == 1 {
                let some: SmallVec<[Run; FOLDED_ROWS]>;
                let runs = match piece.runs {
                    Some(runs) => runs,
                    None => {
                        some = (0..line.window).filter_map(|w| line.run(w, &piece.outputs)).collect();
                        &some[..]
                    }
                };
                return line_of(self.work, runs, &first, begun, &piece.outputs, to.out);
            }
            let all = Line {
                rows: &first,
                spans: piece.spans,
                step: line.distance(),
                pitch: to.pitch,
                width,
                first: if begun { std::ptr::null() } else { self.work.first.0.as_ptr() },
                out: to.out,
                out_pitch: to.out_pitch,
                ahead: self.ahead(width),
            };
            if let Some(windows) = fold.windows {
                return windows(&all);
            }
            for (o, &(element, count)) in piece.spans.iter().enumerate() {
                let out = to.out.add(o * to.out_pitch * size);
                if !begun {
                    self.work.begin(out, width);
                }
                for x in &first {
                    for i in 0..count {
                        let at = (element + i * all.step) * to.pitch;
                        fold.rows(out, width, &[x.wrapping_add(at * size)]);
                    }
                }
            }
        }
    }
}

/// Calls `each` with the index of every element of a window that exists, row-major. `base` is 0; the
/// recursion is as deep as the rank.
fn visit(axes: &[Axis], output: &[usize], base: usize, each: &mut impl FnMut(usize)) {
    let (Some((axis, axes)), Some((&o, output))) = (axes.split_first(), output.split_first()) else {
        return each(base);
    };
    if axis.is_plain() {
        for p in axis.range(o) {
            visit(axes, output, base * axis.input + p, each);
        }
    } else {
        for p in (0..axis.window).filter_map(|w| axis.locate(o, w)) {
            visit(axes, output, base * axis.input + p, each);
        }
    }
}
