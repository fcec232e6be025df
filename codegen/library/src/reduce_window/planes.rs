//! Windows along the last axis and others before it: small arrays one behind the other, axis by axis, and as many lines at once as stand like one.
//!
//! A pass along an axis that has neighbours folds rows of them; where windows are one element apart, those of all outputs with whole windows are one row.
//! The last pass is along lines. If a line's elements are a whole number of strides, lines one behind the other are gone through as one: an output that
//! sees beyond its line is wrong, and done again with all others of its column.
//!
//! Only the last pass begins with the initial value. With more than one pass the order of elements does not matter.

use std::ops::Range;

use hlo_library_base::floats::Narrow;
use hlo_library_base::memory::{Shared, prefetch};
use hlo_library_base::simd::vectorized;
use hlo_library_base::workspace::with_workspace;
use smallvec::SmallVec;

use super::line::AHEAD;
use super::{TOGETHER, Work, tasks};
use crate::width::with_width;
use crate::window::{Axes, Axis, Run};

/// Elements that a pass leaves for the next one, about.
const ELEMENTS: usize = 1 << 14;

/// Elements that a piece sees, at most.
const REACHED: usize = 1 << 18;

/// Results of a line that is done for itself.
const LONG: usize = 256;

type Rows = SmallVec<[*const u8; 64]>;

/// What there is to do, and how it is cut.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// Arrays, one behind the other.
    count: usize,
    /// The first axis with windows, and all behind it: the last one is a line.
    axes: Axes,
    /// Outputs of the first axis in a piece, if not all; or arrays in a piece.
    outputs: usize,
    arrays: usize,
    /// Elements of a piece of the operand, and of what a pass leaves, at most.
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
        // What passes leave of one output of the first axis, at most.
        let each = axes[1..].iter().fold(1usize, |n, a| n.saturating_mul(a.input.max(a.output)));
        let first = &axes[0];
        // A line is not cut.
        let cut = if before.is_empty() { first.output } else { (ELEMENTS / each).min(first.output) };
        let most = if before.is_empty() { first.input.max(first.output) } else { each };
        if cut == 0 || most > ELEMENTS {
            return None;
        }
        let outputs = first.output.div_ceil(first.output.div_ceil(cut).max(1));
        let array = if before.is_empty() { most } else { each.saturating_mul(outputs) };
        let arrays = if outputs < first.output { 1 } else { (ELEMENTS / array).max(1) };
        let arrays = arrays.min(count.div_ceil(super::TASKS)).max(1);
        let elements = if outputs < first.output { first.reach(outputs) } else { first.input };
        let reached =
            axes[1..].iter().fold(arrays.saturating_mul(elements), |n, a| n.saturating_mul(a.input));
        if reached > REACHED {
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
                let place = at * input + elements.start * inner;
                let result = at * output + outputs.start * (output / first.output);
                let results = arrays * outputs.len() * (output / first.output);
                // SAFETY: the piece is in the operand, and that of the result nobody else's; there is memory for all of it.
                unsafe {
                    let buffers = [memory, memory.add(left)];
                    let wide = memory.add(2 * left);
                    let from = match narrow {
                        Some(narrow) => {
                            let to = Shared::<f32>::new(wide).slice_mut(0, arrays * elements.len() * inner);
                            vectorized(|| narrow.widen(x.pointer(), place, to));
                            wide.cast_const()
                        }
                        None => x.offset(place * size).pointer().cast_const(),
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
    /// Goes along all axes.
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

    /// Along an axis of rows of `inner` neighbours, in each of `outer` arrays that begin with the first of `elements`.
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

    /// Folds rows of `n` elements, some at a time, of which those of the next call are `stride` rows further on.
    unsafe fn fold(&self, to: *mut u8, n: usize, stride: usize, mut sources: Rows) {
        let (fold, size) = (self.work.fold, self.work.fold.bytes);
        let Some(&first) = sources.first() else {
            let identity = fold.identity.unwrap_or(0).to_ne_bytes();
            // SAFETY: the caller's: the results are this task's.
            return super::fill(unsafe { Shared::<u8>::new(to).slice_mut(0, n * size) }, &identity[..size]);
        };
        let mut at = 0;
        while at < n {
            let some = (n - at).min(TOGETHER / size);
            for line in (0..some * size * stride).step_by(64) {
                prefetch(first.wrapping_add(at * size * stride + AHEAD + line));
            }
            // SAFETY: the caller's: the rows are there, and the results this task's.
            unsafe { fold.fresh(to.add(at * size), some, &sources) };
            sources.iter_mut().for_each(|source| *source = source.wrapping_add(some * size));
            at += some;
        }
    }

    /// Along the last axis, in `outer` lines; results begin with the initial value. `spare` is for lines that are longer than the results.
    unsafe fn lines(&self, axis: &Axis, outer: usize, x: *const u8, spare: *mut u8, out: *mut u8) {
        let size = self.work.fold.bytes;
        let (stride, _) = axis.placement();
        let pitch = axis.input / stride;
        // SAFETY: the caller's: the lines are there, and the results this task's.
        unsafe {
            if !axis.input.is_multiple_of(stride) || axis.output > pitch.min(LONG) {
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

/// Windows along elements without neighbours: `runs` are the outputs within `outputs` that have an element at a position of their window, for each position,
/// and `lines` where element 0 is, or would be, of each line that is folded. Some results at a time; where all positions exist and elements stand as results
/// do, they are sums of rows.
///
/// # Safety
/// The elements are there; `out`, where the first of the outputs is, has room for them, nobody else's.
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
        let some = at..limit.min(at + TOGETHER / size);
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
