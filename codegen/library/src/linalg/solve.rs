//! Triangular systems: right-hand sides in panels, each contiguous while it is solved.
//!
//! A panel of n by [`PANEL`] elements is about what the second-level cache holds, and panels are computed
//! independently, by several threads. **Invariant:** panels depend on the sizes alone, so that the same
//! operands give the same bits at every number of threads.

use hlo_library_base::memory::Shared;
use hlo_linalg::{Element, MemStack, System};

/// Right-hand sides of a panel.
const PANEL: usize = 128;

/// Panels of that many right-hand sides.
pub(super) fn panels(count: usize) -> usize {
    count.div_ceil(PANEL).max(1)
}

/// Right-hand sides of the widest panel.
pub(super) fn width(count: usize) -> usize {
    count.min(PANEL)
}

/// Right-hand sides that are copied to working memory: none of a single panel of columns.
pub(super) fn copied(count: usize, left: bool) -> usize {
    if left && panels(count) == 1 { 0 } else { width(count) }
}

/// The right-hand sides of a panel.
fn of(panel: usize, count: usize) -> std::ops::Range<usize> {
    (panel * PANEL).min(count)..((panel + 1) * PANEL).min(count)
}

/// The right-hand sides of a matrix.
#[derive(Clone, Copy)]
pub(super) struct Sides<'a, T> {
    pub(super) b: &'a [T],
    /// They are the columns of b in `op(a) x = b`, rather than its rows in `x op(a) = b`, which is
    /// `op(a)^T x^T = b^T`.
    pub(super) left: bool,
    pub(super) count: usize,
}

/// Solves a panel; `a` is n by n, b and x are n by `count`, or `count` by n.
///
/// # Safety
/// `x` has as many elements as `b`, and nothing else accesses those of this panel.
pub(super) unsafe fn panel<T: Element>(
    (a, n): (&[T], usize),
    Sides { b, left, count }: Sides<'_, T>,
    x: Shared<T>,
    panel: usize,
    system: System,
    stack: &mut MemStack,
) {
    let own = of(panel, count);
    let width = own.len();
    if copied(count, left) == 0 {
        // SAFETY: the only panel is all of x.
        let x = unsafe { x.slice_mut(0, n * count) };
        x.copy_from_slice(b);
        return T::solve(a, n, x, count, system, stack);
    }
    let (mut solved, stack) = stack.make_with(n * width, |_| T::default());
    if left {
        for (i, row) in solved.chunks_exact_mut(width).enumerate() {
            row.copy_from_slice(&b[i * count..][own.clone()]);
        }
        T::solve(a, n, &mut solved, width, system, stack);
        for (i, row) in solved.chunks_exact(width).enumerate() {
            // SAFETY: a row of this panel.
            unsafe { x.slice_mut(i * count + own.start, width) }.copy_from_slice(row);
        }
    } else {
        T::transpose(&b[own.start * n..own.end * n], width, n, &mut solved);
        let system = System { transposed: !system.transposed, ..system };
        T::solve(a, n, &mut solved, width, system, stack);
        // SAFETY: the rows of this panel are contiguous.
        T::transpose(&solved, n, width, unsafe { x.slice_mut(own.start * n, width * n) });
    }
}
