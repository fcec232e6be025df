//! Triangular systems: right-hand sides in panels, each contiguous while it is solved.
//!
//! A panel of n by [`PANEL`] elements is about what the second-level cache holds, and panels are computed
//! independently, by several threads. **Invariant:** panels depend on the sizes alone, so that the same
//! operands give the same bits at every number of threads.

use hlo_library_base::memory::Shared;
use hlo_linalg::{Element, MemStack, System};

/// Right-hand sides of a panel.
const PANEL: usize = 128;

/// Rows and columns of the tiles of a transposition.
const TILE: usize = 16;

/// Panels of that many right-hand sides.
pub(super) fn panels(count: usize) -> usize {
    count.div_ceil(PANEL).max(1)
}

/// Right-hand sides of the widest panel.
pub(super) fn width(count: usize) -> usize {
    count.min(PANEL)
}

/// The right-hand sides of a panel.
fn of(panel: usize, count: usize) -> std::ops::Range<usize> {
    (panel * PANEL).min(count)..((panel + 1) * PANEL).min(count)
}

/// `op(a) x = b`: right-hand sides are columns; b and x are n by `columns`.
///
/// # Safety
/// `x` has as many elements as `b`, and nothing else accesses those of this panel.
pub(super) unsafe fn columns<T: Element>(
    (a, n): (&[T], usize),
    (b, columns): (&[T], usize),
    x: Shared<T>,
    panel: usize,
    system: System,
    stack: &mut MemStack,
) {
    let own = of(panel, columns);
    let width = own.len();
    if width == columns {
        // SAFETY: the only panel is all of x.
        let x = unsafe { x.slice_mut(0, n * columns) };
        x.copy_from_slice(b);
        return T::solve(a, n, x, columns, system, stack);
    }
    let (mut solved, stack) = stack.make_with(n * width, |i| b[i / width * columns + own.start + i % width]);
    T::solve(a, n, &mut solved, width, system, stack);
    for (i, row) in solved.chunks_exact(width).enumerate() {
        // SAFETY: a row of this panel.
        unsafe { x.slice_mut(i * columns + own.start, width) }.copy_from_slice(row);
    }
}

/// `x op(a) = b`, which is `op(a)^T x^T = b^T`: right-hand sides are rows; b and x are `rows` by n.
///
/// # Safety
/// As [`columns`].
pub(super) unsafe fn rows<T: Element>(
    (a, n): (&[T], usize),
    (b, rows): (&[T], usize),
    x: Shared<T>,
    panel: usize,
    system: System,
    stack: &mut MemStack,
) {
    let own = of(panel, rows);
    let width = own.len();
    // SAFETY: the rows of this panel are contiguous.
    let x = unsafe { x.slice_mut(own.start * n, width * n) };
    let (mut solved, stack) = stack.make_with(n * width, |_| T::default());
    transpose(&b[own.start * n..own.end * n], n, width, &mut solved);
    let system = System { transposed: !system.transposed, ..system };
    T::solve(a, n, &mut solved, width, system, stack);
    transpose(&solved, width, n, x);
}

/// A transposed copy: `to` (columns by rows) of `from` (rows by columns).
fn transpose<T: Copy>(from: &[T], columns: usize, rows: usize, to: &mut [T]) {
    for i0 in (0..rows).step_by(TILE) {
        let i1 = (i0 + TILE).min(rows);
        for j0 in (0..columns).step_by(TILE) {
            for j in j0..(j0 + TILE).min(columns) {
                for i in i0..i1 {
                    to[j * rows + i] = from[i * columns + j];
                }
            }
        }
    }
}
