//! Windows along the last axis and others before it: contiguous small arrays, axis by axis, and as many lines
//! at once as can be iterated as one.
//!
//! A pass along an axis that has neighbours folds rows of them; where windows are one element apart, those of
//! all outputs with whole windows are one row. The last pass is along lines. If a line's elements are a
//! multiple of the stride, contiguous lines are iterated as one: outputs whose windows reach beyond their
//! line are wrong then, and computed again with all others of their column.
//!
//! Only the last pass begins with the initial value. With more than one pass the order of elements does not
//! matter.

use std::ops::Range;

use hlo_library_base::floats::Narrow;
use hlo_library_base::memory::{Shared, prefetch};
use hlo_library_base::simd::vectorized;
use hlo_library_base::workspace::with_workspace;
use smallvec::SmallVec;

use super::line::PREFETCH_BYTES;
use super::{ROW_BYTES, Work, tasks};
use crate::width::with_width;
use crate::window::{Axes, Axis, Run};

/// About how many elements a pass leaves for the next one.
const PASS_ELEMENTS: usize = 1 << 14;

/// The maximum of elements that the windows of a piece contain.
const MAX_REACHED_ELEMENTS: usize = 1 << 18;

/// Results from which on a line is folded by itself.
const LONG_LINE_RESULTS: usize = 256;

type Rows = SmallVec<[*const u8; 64]>;

/// The passes, and how they are divided into pieces.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// Arrays, contiguous.
    count: usize,
    /// The first axis with windows, and all behind it: the last one is a line.
    axes: Axes,
    /// Outputs of the first axis in a piece, if those are not all; or arrays in a piece.
    outputs: usize,
    arrays: usize,
    /// The maxima of elements of a piece of the operand, and of what a pass leaves.
    reached: usize,
    left: usize,
}

impl Plan {
    /// For these axes, if they are of this kind. `free`: the order of elements does not matter.
    pub(super) fn new(axes: &[Axis], free: bool) -> Option<Plan> {
        let begin = axes.iter().position(|a| !a.is_identity())?;
        let (leading, axes) = axes.split_at(begin);
        let (line, before) = axes.split_last()?;
        let busy = axes.iter().filter(|a| !a.is_identity()).count();
        if line.is_identity() || busy > 1 && !free || axes.iter().any(|a| !a.is_dense() || a.input == 0) {
            return None;
        }
        let count: usize = leading.iter().map(|a| a.output).product();
        // The maximum that passes leave of one output of the first axis.
        let each = axes[1..].iter().fold(1usize, |n, a| n.saturating_mul(a.input.max(a.output)));
        let first = &axes[0];
        // A line is not divided.
        let outputs_per_piece =
            if before.is_empty() { first.output } else { (PASS_ELEMENTS / each).min(first.output) };
        let most = if before.is_empty() { first.input.max(first.output) } else { each };
        if outputs_per_piece == 0 || most > PASS_ELEMENTS {
            return None;
        }
        let outputs = first.output.div_ceil(first.output.div_ceil(outputs_per_piece).max(1));
        let array = if before.is_empty() { most } else { each.saturating_mul(outputs) };
        let arrays = if outputs < first.output { 1 } else { (PASS_ELEMENTS / array).max(1) };
        let arrays = arrays.min(count.div_ceil(super::TASKS)).max(1);
        let elements = if outputs < first.output { first.reach(outputs) } else { first.input };
        let reached =
            axes[1..].iter().fold(arrays.saturating_mul(elements), |n, a| n.saturating_mul(a.input));
        if reached > MAX_REACHED_ELEMENTS {
            return None;
        }
        Some(Plan { count, axes: axes.into(), outputs, arrays, reached, left: arrays * array })
    }

    /// Elements of an array: of the operand and of the result.
    fn sizes(&self) -> [usize; 2] {
        [self.axes.iter().map(|a| a.input).product(), self.axes.iter().map(|a| a.output).product()]
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
    let [input, output] = plan.sizes();
    let first = &plan.axes[0];
    let inner = input / first.input;
    let (pieces, parts) = (plan.count.div_ceil(plan.arrays), first.output.div_ceil(plan.outputs));
    // What passes leave, one after the other; the operand and the result in the wider type.
    let [left, reached] = [plan.left * size, plan.reached * size].map(|n| n.next_multiple_of(64));
    let wide = if narrow.is_some() { reached + left } else { 0 };
    tasks(work.pool, pieces * parts, plan.left, &|_, range| {
        with_workspace(2 * left + wide, |memory| {
            for piece in range {
                let (at, part) = (piece / parts * plan.arrays, piece % parts);
                let arrays = plan.arrays.min(plan.count - at);
                let outputs = part * plan.outputs..first.output.min((part + 1) * plan.outputs);
                let elements = if parts == 1 { 0..first.input } else { first.span(&outputs) };
                let offset = at * input + elements.start * inner;
                let result = at * output + outputs.start * (output / first.output);
                let results = arrays * outputs.len() * (output / first.output);
                // SAFETY: the piece is in the operand, and that of the result not aliased; there is memory
                // for all of it.
                unsafe {
                    let buffers = [memory, memory.add(left)];
                    let wide = memory.add(2 * left);
                    let from = match narrow {
                        Some(narrow) => {
                            let to = Shared::<f32>::new(wide).slice_mut(0, arrays * elements.len() * inner);
                            vectorized(|| narrow.widen(x.pointer(), offset, to));
                            wide.cast_const()
                        }
                        None => x.offset(offset * size).pointer().cast_const(),
                    };
                    let to = match narrow {
                        Some(_) => wide.add(reached),
                        None => out.offset(result * size).pointer(),
                    };
                    let piece = Piece { work: &work, axes: &plan.axes, arrays, outputs, elements };
                    piece.passes(from, buffers, to);
                    if let Some(narrow) = narrow {
                        let from = Shared::<f32>::new(wide.add(reached)).slice(0, results);
                        vectorized(|| narrow.narrow(from, out.pointer(), result));
                    }
                }
            }
        });
    });
}

/// Some arrays, or some outputs of the first axis of one, and the elements that those see.
struct Piece<'a> {
    work: &'a Work<'a>,
    axes: &'a [Axis],
    arrays: usize,
    outputs: Range<usize>,
    elements: Range<usize>,
}

impl Piece<'_> {
    /// The passes along all axes.
    unsafe fn passes(&self, x: *const u8, buffers: [*mut u8; 2], out: *mut u8) {
        let (mut from, mut outer, [mut to, mut other]) = (x, self.arrays, buffers);
        for (i, axis) in self.axes.iter().enumerate() {
            let (outputs, elements) = match i {
                0 => (self.outputs.clone(), self.elements.clone()),
                _ => (0..axis.output, 0..axis.input),
            };
            let rest = &self.axes[i + 1..];
            // SAFETY: what a pass leaves fits a buffer, and it reads the operand or the other one.
            unsafe {
                if rest.is_empty() {
                    self.lines(axis, outer, from, to, out);
                } else if !axis.is_identity() {
                    let inner = rest.iter().map(|a| a.input).product();
                    self.rows(axis, [outer, inner], (&outputs, &elements), from, to);
                    from = to.cast_const();
                    std::mem::swap(&mut to, &mut other);
                }
            }
            outer *= outputs.len();
        }
    }

    /// Along an axis of rows of `inner` neighbours, in each of `outer` arrays that begin with the first of
    /// `elements`.
    unsafe fn rows(
        &self,
        axis: &Axis,
        [outer, inner]: [usize; 2],
        (outputs, elements): (&Range<usize>, &Range<usize>),
        x: *const u8,
        out: *mut u8,
    ) {
        let row = inner * self.work.fold.bytes;
        let whole = axis.whole(outputs);
        let stride = axis.placement().0;
        for k in 0..outer {
            let x = x.wrapping_add(k * elements.len() * row);
            let mut o = outputs.start;
            while o < outputs.end {
                let count = if stride == 1 && whole.contains(&o) { whole.end - o } else { 1 };
                let of = |w| axis.locate(o, w).map(|e| x.wrapping_add((e - elements.start) * row));
                let sources: Rows = (0..axis.window).filter_map(of).collect();
                // SAFETY: the caller's: the rows are there, and the results this task's.
                unsafe {
                    let to = out.add((k * outputs.len() + o - outputs.start) * row);
                    self.fold(to, count * inner, stride, sources);
                }
                o += count;
            }
        }
    }

    /// Folds rows of `n` elements, some at a time; the sources advance by `stride` rows for each result.
    unsafe fn fold(&self, to: *mut u8, n: usize, stride: usize, mut sources: Rows) {
        let (fold, size) = (self.work.fold, self.work.fold.bytes);
        let Some(&first) = sources.first() else {
            let identity = fold.identity.unwrap_or(0).to_ne_bytes();
            // SAFETY: the caller's: the results are this task's.
            return super::fill(unsafe { Shared::<u8>::new(to).slice_mut(0, n * size) }, &identity[..size]);
        };
        let mut at = 0;
        while at < n {
            let some = (n - at).min(ROW_BYTES / size);
            for line in (0..some * size * stride).step_by(64) {
                prefetch(first.wrapping_add(at * size * stride + PREFETCH_BYTES + line));
            }
            // SAFETY: the caller's: the rows are there, and the results this task's.
            unsafe { fold.fresh(to.add(at * size), some, &sources) };
            sources.iter_mut().for_each(|source| *source = source.wrapping_add(some * size));
            at += some;
        }
    }

    /// Along the last axis, in `outer` lines; results begin with the initial value. `spare` is for lines that
    /// are longer than the results.
    unsafe fn lines(&self, axis: &Axis, outer: usize, x: *const u8, spare: *mut u8, out: *mut u8) {
        let size = self.work.fold.bytes;
        let (stride, _) = axis.placement();
        let pitch = axis.input / stride;
        // SAFETY: the caller's: the lines are there, and the results this task's.
        unsafe {
            if !axis.input.is_multiple_of(stride) || axis.output > pitch.min(LONG_LINE_RESULTS) {
                let all: SmallVec<[Run; 64]> =
                    (0..axis.window).filter_map(|w| axis.run(w, &(0..axis.output))).collect();
                for line in 0..outer {
                    let x = x.wrapping_add(line * axis.input * size);
                    line_of(
                        self.work,
                        &all,
                        &[x],
                        false,
                        &(0..axis.output),
                        out.add(line * axis.output * size),
                    );
                }
                return;
            }
            let dense = axis.output == pitch;
            let to = if dense { out } else { spare };
            let one = axis.joined(outer, pitch);
            let runs: SmallVec<[Run; 64]> =
                (0..one.window).filter_map(|w| one.run(w, &(0..one.output))).collect();
            line_of(self.work, &runs, &[x], false, &(0..one.output), to);
            let whole = axis.whole(&(0..axis.output));
            for o in (0..axis.output).filter(|o| !whole.contains(o)) {
                let column = to.add(o * size);
                with_width!(size, T => {
                    let first = self.work.first.0.as_ptr().cast::<T>().read_unaligned();
                    for line in 0..outer {
                        *column.cast::<T>().add(line * pitch) = first;
                    }
                });
                for element in (0..axis.window).filter_map(|w| axis.locate(o, w)) {
                    let x = x.wrapping_add(element * size);
                    (self.work.fold.strided)(column, outer, x, (pitch, axis.input));
                }
            }
            if !dense {
                for line in 0..outer {
                    let from = to.add(line * pitch * size).cast_const();
                    let n = axis.output * size;
                    out.add(line * n).copy_from_nonoverlapping(from, n);
                }
            }
        }
    }
}

/// Windows along elements without neighbours: `runs` are the outputs within `outputs` that have an element at
/// a position of their window, for each position, and `lines` the address of element 0 (perhaps in padding)
/// of each line that is folded. Results are computed in blocks; where all positions exist and elements are as
/// far apart as results, as sums of rows.
///
/// # Safety
/// The elements are there; `out`, where the first of the outputs is, has space for them, and is not aliased.
pub(super) unsafe fn line_of(
    work: &Work<'_>,
    runs: &[Run],
    lines: &[*const u8],
    begun: bool,
    outputs: &Range<usize>,
    out: *mut u8,
) {
    let (fold, size) = (work.fold, work.fold.bytes);
    let Range { start, end } = *outputs;
    let whole = match (runs.iter().all(Run::is_dense), runs.iter().map(|r| r.first).max()) {
        (true, Some(first)) => first..runs.iter().map(|r| r.first + r.count).min().unwrap_or(end).max(first),
        (_, _) => end..end,
    };
    let mut at = start;
    while at < end {
        let inside = whole.contains(&at);
        let limit = match inside {
            true => whole.end,
            false if at < whole.start => whole.start,
            false => end,
        };
        let some = at..limit.min(at + ROW_BYTES / size);
        at = some.end;
        let element = |x: &*const u8, element: usize| x.wrapping_add(element * size);
        // SAFETY: as the caller says.
        unsafe {
            let out = |o: usize| out.add((o - start) * size);
            if inside {
                let initial = (!begun).then_some(work.first.0.as_ptr());
                let each = |x| runs.iter().map(move |r| element(x, r.element + (some.start - r.first)));
                let rows: Rows = initial.into_iter().chain(lines.iter().flat_map(each)).collect();
                let to = out(some.start);
                match begun {
                    true => fold.rows(to, some.len(), &rows),
                    false => fold.fresh(to, some.len(), &rows),
                }
                continue;
            }
            if !begun {
                work.begin(out(some.start), some.len());
            }
            for x in lines {
                for run in runs.iter().filter_map(|run| run.within(&some)) {
                    (fold.strided)(
                        out(run.first),
                        run.count,
                        element(x, run.element),
                        (run.step, run.distance),
                    );
                }
            }
        }
    }
}
