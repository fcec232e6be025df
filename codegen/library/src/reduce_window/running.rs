//! Windows along one axis in a few operations a result: growing windows are a scan; a sliding window is a
//! suffix of one block and a prefix of the next (van Herk; Gil and Werman), so that nothing is ever
//! subtracted. Along contiguous lines, where vectors hold neighbouring windows, each is combined from windows
//! of 1, 2, 4, ... elements (doubling).

use hlo_library_base::memory::Shared;
use hlo_library_base::sizes;

use super::{TASKS, Work, direct, fill, tasks};
use crate::window::{Axis, Form};

/// Neighbouring lines that are folded together.
const FOLDED_LINES: usize = 512;

/// Elements from which on several tasks fold a line, if lines are few.
const LONG_LINE_ELEMENTS: usize = 1 << 16;

/// Interleaved lines whose rows are too short to be folded one at a time.
pub(super) const INTERLEAVED_LINES: usize = 16;

/// The maximum of elements of lines that are scanned many in one call.
const SHORT_LINE_ELEMENTS: usize = 32;

/// Elements of a block of a long line that are folded in lanes.
const LANES: usize = 64;

fn slides(axis: &Axis) -> bool {
    axis.is_plain() && axis.window > 4
}

/// Results of a line that are computed together by doubling, and the elements that their windows span;
/// `None`: the axis has another form.
fn doubling(axis: &Axis, inner: usize) -> Option<[usize; 2]> {
    if inner != 1 || !slides(axis) || axis.window > 1 << 16 {
        return None;
    }
    let (stride, _) = axis.placement();
    let together = (axis.window / stride).max((1 << 12) / stride).clamp(1, axis.output.max(1));
    let reach = (together - 1).checked_mul(stride)?.checked_add(axis.window)?;
    (reach <= 4 * (together + axis.window + (1 << 12))).then_some([together, reach])
}

/// Elements of memory that a task needs for an axis with `inner` neighbouring lines.
pub(super) fn scratch(axis: &Axis, inner: usize) -> usize {
    match axis.form() {
        Form::Identity => 0,
        Form::Prefix | Form::Suffix | Form::Growing => FOLDED_LINES.min(inner).max(LANES),
        Form::Any if slides(axis) => match doubling(axis, inner) {
            Some([_, reach]) => reach,
            None => axis.input.saturating_mul(2 * FOLDED_LINES.min(inner)),
        },
        Form::Any => 0,
    }
}

/// Folds along the middle axis of `[outer, axis, inner]`.
///
/// # Safety
/// `x` and `out` are dense arrays of those sizes; each task has [`scratch`] elements of memory.
pub(super) unsafe fn along(
    work: Work<'_>,
    axis: &Axis,
    [outer, inner]: [usize; 2],
    x: Shared<u8>,
    out: Shared<u8>,
) {
    let form = axis.form();
    let long =
        axis.input.saturating_mul(inner) >= sizes::from(LONG_LINE_ELEMENTS) && axis.input >= LANES * TASKS;
    let few = outer < TASKS / 4 && long && work.fold.identity.is_some();
    // SAFETY: as the caller says, in all cases; tasks have different lines.
    unsafe {
        match form {
            Form::Prefix | Form::Suffix if inner <= INTERLEAVED_LINES && few => {
                for lines in 0..outer {
                    let at = lines * axis.input * inner * work.fold.bytes;
                    let rows = (axis.input, inner);
                    long_lines(&work, rows, form == Form::Suffix, x.offset(at), out.offset(at));
                }
            }
            Form::Prefix | Form::Suffix if inner == 1 && axis.input <= SHORT_LINE_ELEMENTS => {
                tasks(work.pool, outer, axis.input, &|_, lines| {
                    let at = lines.start * axis.input * work.fold.bytes;
                    let (x, out) = (x.offset(at).pointer(), out.offset(at).pointer());
                    let lines = (lines.len(), axis.input);
                    (work.fold.scan_each)(x, out, lines, work.first.0.as_ptr(), form == Form::Suffix);
                })
            }
            Form::Prefix | Form::Suffix if inner <= INTERLEAVED_LINES => {
                tasks(work.pool, outer, axis.input * inner, &|task, range| {
                    let carries = work.scratch(task);
                    for lines in range {
                        let at = lines * axis.input * inner * work.fold.bytes;
                        work.begin(carries, inner);
                        let (x, out) = (x.offset(at).pointer(), out.offset(at).pointer());
                        work.fold.scan_lines(x, out, (axis.input, inner), carries, form == Form::Suffix);
                    }
                })
            }
            Form::Prefix | Form::Suffix | Form::Growing => {
                columns(&work, outer, inner, axis, &|lines, scratch| {
                    growing(&work, axis, form, lines, inner, x, out, scratch);
                })
            }
            Form::Any if doubling(axis, inner).is_some() => {
                let [together, reach] = doubling(axis, inner).unwrap_or([1, 1]);
                let parts = axis.output.div_ceil(together);
                tasks(work.pool, outer * parts, reach, &|task, range| {
                    for i in range {
                        let first = i % parts * together;
                        let results = first..axis.output.min(first + together);
                        let (line, size) = (i / parts, work.fold.bytes);
                        let to = out.offset((line * axis.output + first) * size);
                        powers(
                            &work,
                            axis,
                            results,
                            x.offset(line * axis.input * size),
                            to,
                            work.scratch(task),
                        );
                    }
                });
            }
            Form::Any if slides(axis) => columns(&work, outer, inner, axis, &|lines, scratch| {
                sliding(&work, axis, lines, inner, x, out, scratch)
            }),
            Form::Identity | Form::Any => {
                let axes = [Axis::identity(outer), *axis, Axis::identity(inner)];
                direct::windows(work, &direct::Plan::new(&axes, true, false), None, x, out)
            }
        }
    }
}

/// Neighbouring lines of an outer index.
#[derive(Clone, Copy)]
struct Lines {
    outer: usize,
    first: usize,
    count: usize,
}

/// Divides the lines of an array into neighbours.
fn columns(work: &Work<'_>, outer: usize, inner: usize, axis: &Axis, each: &(dyn Fn(Lines, *mut u8) + Sync)) {
    let blocks = inner.div_ceil(FOLDED_LINES);
    tasks(
        work.pool,
        outer * blocks,
        axis.input.max(axis.output).saturating_mul(FOLDED_LINES.min(inner)),
        &|task, range| {
            for i in range {
                let first = i % blocks * FOLDED_LINES;
                each(
                    Lines { outer: i / blocks, first, count: FOLDED_LINES.min(inner - first) },
                    work.scratch(task),
                );
            }
        },
    );
}

/// A few interleaved lines, so long that several tasks fold them: pieces are reduced first, and then scanned
/// with the carry of those before them.
unsafe fn long_lines(
    work: &Work<'_>,
    (n, lines): (usize, usize),
    down: bool,
    x: Shared<u8>,
    out: Shared<u8>,
) {
    /// An element for each line.
    #[derive(Clone, Copy)]
    #[repr(align(16))]
    struct Carries([u8; 16 * INTERLEAVED_LINES]);
    let (fold, size) = (work.fold, work.fold.bytes);
    let identity = fold.identity.unwrap_or(0).to_ne_bytes();
    let piece = |i: usize| n * i / TASKS..n * (i + 1) / TASKS;
    // Whole rows.
    let together = LANES / lines * lines;
    // SAFETY: as the caller says; tasks have different pieces, and memory for LANES elements each.
    unsafe {
        work.pool.run(TASKS, &|i| {
            let lanes = work.scratch(i);
            fill(Shared::<u8>::new(lanes).slice_mut(0, LANES * size), &identity[..size]);
            let range = piece(i);
            let (first, elements) = (range.start * lines, range.len() * lines);
            let whole = elements / together;
            for block in 0..whole {
                let from = x.offset((first + block * together) * size).pointer();
                fold.rows(lanes, together, &[from.cast_const()]);
            }
            let rest = x.offset((first + whole * together) * size).pointer();
            fold.rows(lanes, elements - whole * together, &[rest.cast_const()]);
            for lane in (lines..together).step_by(lines) {
                fold.rows(lanes, lines, &[lanes.add(lane * size).cast_const()]);
            }
        });
        // The reduction of each piece becomes the carry into the next.
        let mut before = Carries([0; 16 * INTERLEAVED_LINES]);
        let row = lines * size;
        before.0[..row].copy_from_slice(&work.first.0[..row]);
        for i in 0..TASKS {
            let lanes = work.scratch(if down { TASKS - 1 - i } else { i });
            let mut next = before;
            fold.rows(next.0.as_mut_ptr(), lines, &[lanes.cast_const()]);
            lanes.copy_from_nonoverlapping(before.0.as_ptr(), row);
            before = next;
        }
        work.pool.run(TASKS, &|i| {
            let (range, carries) = (piece(i), work.scratch(i));
            let at = range.start * row;
            let (x, out) = (x.offset(at).pointer(), out.offset(at).pointer());
            fold.scan_lines(x, out, (range.len(), lines), carries, down);
        });
    }
}

/// Windows that all begin at the first element (or all end with the last).
#[expect(clippy::too_many_arguments, reason = "one call; they are what the lines are")]
unsafe fn growing(
    work: &Work<'_>,
    axis: &Axis,
    form: Form,
    lines: Lines,
    inner: usize,
    x: Shared<u8>,
    out: Shared<u8>,
    accumulators: *mut u8,
) {
    let (fold, size) = (work.fold, work.fold.bytes);
    // SAFETY: as the caller says.
    unsafe {
        let source = |i: usize| {
            x.offset(((lines.outer * axis.input + i) * inner + lines.first) * size).pointer().cast_const()
        };
        let result =
            |o: usize| out.offset(((lines.outer * axis.output + o) * inner + lines.first) * size).pointer();
        work.begin(accumulators, lines.count);
        let mut taken = 0;
        for o in 0..axis.output {
            let o = if form == Form::Suffix { axis.output - 1 - o } else { o };
            if form == Form::Suffix {
                fold.rows(accumulators, lines.count, &[source(o)]);
            } else {
                let end = axis.range(o).end;
                for i in taken..end {
                    fold.rows(accumulators, lines.count, &[source(i)]);
                }
                taken = end.max(taken);
            }
            result(o).copy_from_nonoverlapping(accumulators, lines.count * size);
        }
    }
}

/// Neighbouring results of a line by doubling: windows of powers of two, at most one for each element.
unsafe fn powers(
    work: &Work<'_>,
    axis: &Axis,
    results: std::ops::Range<usize>,
    x: Shared<u8>,
    to: Shared<u8>,
    elements: *mut u8,
) {
    let (fold, size, n) = (work.fold, work.fold.bytes, results.len());
    let (stride, origin) = axis.placement();
    let identity = fold.identity.unwrap_or(0).to_ne_bytes();
    let reach = (n.max(1) - 1) * stride + axis.window;
    let first = (results.start * stride) as i64 + origin;
    // The elements within the array that the windows span.
    let begin = first.saturating_neg().clamp(0, reach as i64) as usize;
    let end = (axis.input as i64).saturating_sub(first).clamp(begin as i64, reach as i64) as usize;
    // SAFETY: as the caller says; there is memory for the elements.
    unsafe {
        let all = Shared::<u8>::new(elements);
        fill(all.slice_mut(0, begin * size), &identity[..size]);
        fill(all.slice_mut(end * size, (reach - end) * size), &identity[..size]);
        if begin < end {
            let from = x.offset((first + begin as i64) as usize * size);
            elements.add(begin * size).copy_from_nonoverlapping(from.pointer(), (end - begin) * size);
        }
        work.begin(to.pointer(), n);
        // `elements[i]` is the window of `power` elements from `i` on.
        let (mut power, mut done) = (1, 0);
        while done < axis.window {
            if axis.window & power != 0 {
                (fold.strided)(to.pointer(), n, elements.add(done * size), (1, stride));
                done += power;
            }
            let left = reach - (2 * power - 1).min(reach);
            // Each is read before what is behind it is written.
            fold.rows(elements, left, &[elements.add(power * size).cast_const()]);
            power *= 2;
        }
    }
}

/// Windows that slide.
unsafe fn sliding(
    work: &Work<'_>,
    axis: &Axis,
    lines: Lines,
    inner: usize,
    x: Shared<u8>,
    out: Shared<u8>,
    scratch: *mut u8,
) {
    let (fold, size) = (work.fold, work.fold.bytes);
    let (n, block, row) = (axis.input, axis.window, lines.count * work.fold.bytes);
    // SAFETY: as the caller says; there is memory for two rows of the lines for each element.
    unsafe {
        let source =
            |i: usize| x.offset(((lines.outer * n + i) * inner + lines.first) * size).pointer().cast_const();
        let result =
            |o: usize| out.offset(((lines.outer * axis.output + o) * inner + lines.first) * size).pointer();
        // Suffixes and prefixes of blocks: from each element to the end of its block, and from the beginning
        // to each element.
        let ends = |i: usize| scratch.add(i * row);
        let starts = |i: usize| scratch.add((n + i) * row);
        for i in 0..n {
            ends(i).copy_from_nonoverlapping(source(i), row);
            starts(i).copy_from_nonoverlapping(source(i), row);
        }
        if lines.count == 1 {
            let identity = fold.identity.unwrap_or(0).to_ne_bytes();
            for first in (0..n).step_by(block) {
                let len = block.min(n - first);
                let (mut up, mut down) = (identity, identity);
                (fold.scan)(source(first), starts(first), len, up.as_mut_ptr(), false);
                (fold.scan)(source(first), ends(first), len, down.as_mut_ptr(), true);
            }
        } else {
            for i in (0..n.saturating_sub(1)).rev().filter(|i| (i + 1) % block != 0) {
                fold.rows(ends(i), lines.count, &[ends(i + 1).cast_const()]);
            }
            for i in (1..n).filter(|i| i % block != 0) {
                fold.rows(starts(i), lines.count, &[starts(i - 1).cast_const()]);
            }
        }
        for o in 0..axis.output {
            let (range, to) = (axis.range(o), result(o));
            work.begin(to, lines.count);
            if range.is_empty() {
                continue;
            }
            let (first, last) = (range.start, range.end - 1);
            let sources: &[*const u8] = match (first / block == last / block, first % block == 0) {
                (false, _) => &[ends(first), starts(last)],
                // A window within one block is a prefix of it, or is cut off by the end of the operand.
                (true, true) => &[starts(last)],
                (true, false) => &[ends(first)],
            };
            fold.rows(to, lines.count, sources);
        }
    }
}
