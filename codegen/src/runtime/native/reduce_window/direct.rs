//! Windows one by one, a row of results at a time, elements in the order of the window.

use smallvec::SmallVec;

use super::{TASKS, Work, tasks};
use crate::runtime::native::memory::Shared;
use crate::runtime::native::window::{Axes, Axis, positions};

/// Rows that are folded at a time.
const TOGETHER: usize = 64;

/// Results of a row from which several tasks compute it, if there are few rows.
const LONG_ROW: usize = 1 << 14;

/// The axes before the last, and the last: trailing axes without windows are one.
fn rows(axes: &[Axis]) -> (Axes, Axis) {
    let busy = axes.iter().rposition(|a| !a.is_identity()).map_or(0, |i| i + 1);
    let (leading, line) = match axes.split_last() {
        Some((last, leading)) if busy == axes.len() => (leading, *last),
        Some(_) | None => (&axes[..busy], Axis::identity(axes[busy..].iter().map(|a| a.input).product())),
    };
    (leading.into(), line)
}

/// Whether a row of elements is folded over the leading axes first, and then along itself.
fn in_two_steps(leading: &[Axis], line: &Axis) -> bool {
    !line.is_identity() && positions(leading) > 1
}

/// Elements of memory that a task needs.
pub(super) fn scratch(axes: &[Axis]) -> usize {
    let (leading, line) = rows(axes);
    if in_two_steps(&leading, &line) { line.input } else { 0 }
}

/// Computes all windows.
///
/// # Safety
/// `x` and `out` are dense arrays of the axes' inputs and outputs; each task has [`scratch`] elements of memory.
pub(super) unsafe fn windows(work: Work<'_>, axes: &[Axis], x: Shared<u8>, out: Shared<u8>) {
    let (leading, line) = rows(axes);
    let count: usize = leading.iter().map(|a| a.output).product();
    let row_work = line.output.saturating_mul(positions(axes).min(1 << 16));
    // Few long rows are cut, at even places: two parts of a complex number stay together.
    let cuts = if count < TASKS && line.output >= LONG_ROW && !in_two_steps(&leading, &line) {
        TASKS.div_ceil(count.max(1))
    } else {
        1
    };
    tasks(work.pool, count * cuts, row_work / cuts, &|task, range| {
        let mut at: SmallVec<[usize; 6]> = SmallVec::from_elem(0, leading.len());
        let mut index = range.start / cuts;
        for (at, axis) in at.iter_mut().zip(&leading).rev() {
            *at = index % axis.output;
            index /= axis.output;
        }
        for item in range {
            let (row, cut) = (item / cuts, item % cuts);
            let bound = |cut: usize| if cut == cuts { line.output } else { (line.output * cut / cuts) & !1 };
            let part = bound(cut)..bound(cut + 1);
            // SAFETY: as the caller says; tasks have different rows or parts of them.
            unsafe {
                one(
                    &work,
                    &leading,
                    &line,
                    &at,
                    x,
                    out.offset(row * line.output * work.fold.bytes),
                    part,
                    work.scratch(task),
                )
            };
            if cut + 1 == cuts {
                for (at, axis) in at.iter_mut().zip(&leading).rev() {
                    *at += 1;
                    if *at < axis.output {
                        break;
                    }
                    *at = 0;
                }
            }
        }
    });
}

/// The results `part` of a row.
#[expect(clippy::too_many_arguments, reason = "one call; they are what a row is")]
unsafe fn one(
    work: &Work<'_>,
    leading: &[Axis],
    line: &Axis,
    at: &[usize],
    x: Shared<u8>,
    row: Shared<u8>,
    part: std::ops::Range<usize>,
    scratch: *mut u8,
) {
    let (fold, size) = (work.fold, work.fold.bytes);
    // SAFETY: as the caller says; window positions that exist are in the operand.
    unsafe {
        let out = row.offset(part.start * size).pointer();
        work.begin(out, part.len());
        let mut sources: SmallVec<[*const u8; TOGETHER]> = SmallVec::new();
        let source = |i: usize| x.offset(i * line.input * size).pointer().cast_const();
        if line.is_identity() {
            let flush = |sources: &mut SmallVec<[*const u8; TOGETHER]>| {
                (fold.rows)(out, part.len(), sources);
                sources.clear();
            };
            visit(leading, at, 0, &mut |i| {
                sources.push(source(i).add(part.start * size));
                if sources.len() == TOGETHER {
                    flush(&mut sources);
                }
            });
            flush(&mut sources);
        } else if fold.identity.is_some() && in_two_steps(leading, line) {
            let identity = fold.identity.unwrap_or(0).to_ne_bytes();
            super::fill(Shared::<u8>::new(scratch).slice_mut(0, line.input * size), &identity[..size]);
            visit(leading, at, 0, &mut |i| {
                sources.push(source(i));
                if sources.len() == TOGETHER {
                    (fold.rows)(scratch, line.input, &sources);
                    sources.clear();
                }
            });
            (fold.rows)(scratch, line.input, &sources);
            along(work, line, scratch, out, &part);
        } else {
            visit(leading, at, 0, &mut |i| along(work, line, source(i), out, &part));
        }
    }
}

/// Folds the elements of a row into results of its windows.
unsafe fn along(work: &Work<'_>, line: &Axis, x: *const u8, out: *mut u8, part: &std::ops::Range<usize>) {
    let (fold, size) = (work.fold, work.fold.bytes);
    // SAFETY: as the caller says.
    unsafe {
        if line.base_is_plain() {
            for w in 0..line.window {
                if let Some((outputs, element, stride)) = line.run(w, part) {
                    let to = out.add((outputs.start - part.start) * size);
                    (fold.strided)(to, outputs.len(), x.add(element * size), stride);
                }
            }
        } else {
            for o in part.clone() {
                for element in (0..line.window).filter_map(|w| line.locate(o, w)) {
                    (fold.strided)(out.add((o - part.start) * size), 1, x.add(element * size), 1);
                }
            }
        }
    }
}

/// Calls `each` with the index of every element of a window that exists, row-major. `base` is 0; the recursion is as deep as the rank.
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
