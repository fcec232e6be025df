//! LU factors with partial pivoting: panels of columns, each factored in a column-major copy, then exchanges,
//! a solution and a product to its right.

use faer::dyn_stack::{MemStack, StackReq};
use faer::linalg::matmul::matmul;
use faer::prelude::IntoConst;
use faer::{Accum, Par};

use crate::MARGIN;
use crate::field::{Field, Part, matrix, subtract, transpose};

/// Columns of a panel.
const PANEL_COLUMNS: usize = 32;

/// Columns of a panel that are eliminated before the others of it are updated.
const STRIP_COLUMNS: usize = 8;

pub(crate) fn scratch<T: Field>(m: usize, n: usize) -> StackReq {
    let steps = m.min(n);
    let doubt =
        StackReq::all_of(&[StackReq::new::<T>(steps), StackReq::new::<T::Part>(steps.saturating_mul(2))]);
    StackReq::any_of(&[StackReq::new::<T>(m.saturating_mul(PANEL_COLUMNS.min(n))), doubt])
}

pub(crate) fn factor<T: Field>(
    a: &mut [T],
    m: usize,
    n: usize,
    pivots: &mut [i32],
    stack: &mut MemStack,
) -> i32 {
    let steps = m.min(n);
    let (mut panel, _) = stack.make_with(m * PANEL_COLUMNS.min(n), |_| T::default());
    let mut info = 0;
    for k in (0..steps).step_by(PANEL_COLUMNS) {
        let (rows, size) = (m - k, PANEL_COLUMNS.min(steps - k));
        let panel = &mut panel[..rows * size];
        transpose(&a[k * n + k..], n, rows, size, panel);
        let pivots = &mut pivots[k..k + size];
        let singular = eliminate(panel, rows, size, pivots);
        if let Some(step) = singular.filter(|_| info == 0) {
            info = (k + step + 1) as i32;
        }
        for i in 0..rows {
            let row = &mut a[(k + i) * n + k..][..size];
            row.iter_mut().enumerate().for_each(|(j, x)| *x = panel[j * rows + i]);
        }
        for (j, pivot) in pivots.iter_mut().enumerate() {
            let other = *pivot as usize;
            exchange(a, n, k + j, k + other, 0..k);
            exchange(a, n, k + j, k + other, k + size..n);
            *pivot += k as i32 + 1;
        }
        if k + size == n {
            continue;
        }
        // Rows of U: substitution with the unit triangle.
        for i in 1..size {
            let (before, own) = a.split_at_mut((k + i) * n);
            let own = &mut own[k + size..n];
            for j in 0..i {
                subtract(own, panel[j * rows + i], &before[(k + j) * n + k + size..][..n - k - size]);
            }
        }
        let (_, top, left, rest) = matrix(a, m, n).split_at_mut(k + size, k + size);
        let (top, left) = (top.into_const(), left.into_const());
        let top = top.submatrix(k, 0, size, n - k - size);
        let left = left.submatrix(0, k, m - k - size, size);
        matmul(rest, Accum::Add, left, top, -T::one(), Par::Seq);
    }
    info
}

/// Whether elimination in wider arithmetic would choose the same pivots, as far as factors by [`factor`]
/// tell: all are numbers, no other element of a column came near its pivot, and no pivot is next to nothing
/// beside what its column had above it.
pub(crate) fn is_decided<T: Field>(factors: &[T], m: usize, n: usize, stack: &mut MemStack) -> bool {
    let steps = m.min(n);
    if !factors.iter().all(|x| x.finite()) {
        return false;
    }
    let (pivots, stack) = stack.make_with(steps, |k| factors[k * n + k]);
    let (limits, stack) = stack.make_with(steps, |k| pivots[k].size() * T::Part::narrow(1.0 - MARGIN));
    let (mut above, _) = stack.make_with(steps, |_| T::Part::narrow(0.0));
    for (i, row) in factors.chunks_exact(n.max(1)).enumerate() {
        // What was not chosen is its multiplier's share of the pivot.
        let eliminated = row[..i.min(steps)].iter().zip(&*pivots).zip(&*limits);
        if eliminated.fold(false, |near, ((&l, &pivot), &limit)| near | ((l * pivot).size() >= limit)) {
            return false;
        }
        if i < steps && pivots[i].size() <= above[i] * T::Part::narrow(MARGIN) {
            return false;
        }
        for (above, x) in above.iter_mut().zip(row).skip(i + 1) {
            let size = x.size();
            *above = if size > *above { size } else { *above };
        }
    }
    true
}

fn exchange<T>(a: &mut [T], n: usize, i: usize, j: usize, columns: std::ops::Range<usize>) {
    if i == j {
        return;
    }
    let (above, below) = a.split_at_mut(j * n);
    above[i * n..][columns.clone()].swap_with_slice(&mut below[columns]);
}

/// Factors a column-major panel; pivots from 0. The result is the first step whose pivot is 0.
fn eliminate<T: Field>(a: &mut [T], m: usize, n: usize, pivots: &mut [i32]) -> Option<usize> {
    let mut singular = None;
    for first in (0..n).step_by(STRIP_COLUMNS) {
        let end = (first + STRIP_COLUMNS).min(n);
        for k in first..end {
            let (before, own) = a.split_at_mut(k * m);
            let column = &mut own[..m];
            // What the strip's columns before this one do to it.
            for j in first..k {
                let l = &before[j * m..][..m];
                let factor = column[j];
                subtract(&mut column[j + 1..], factor, &l[j + 1..]);
            }
            let pivot = k + largest(&column[k..]);
            pivots[k] = pivot as i32;
            let top = column[pivot];
            if pivot != k {
                // All columns but those after the strip, which are exchanged when they are reached.
                for j in 0..=k {
                    a.swap(j * m + k, j * m + pivot);
                }
                for j in k + 1..end {
                    a.swap(j * m + k, j * m + pivot);
                }
            }
            if top == T::default() {
                singular = singular.or(Some(k));
            } else {
                for x in &mut a[k * m + k + 1..(k + 1) * m] {
                    *x = x.over(top);
                }
            }
        }
        for j in end..n {
            for (k, &pivot) in (first..end).zip(&pivots[first..]) {
                a.swap(j * m + k, j * m + pivot as usize);
            }
            let (before, own) = a.split_at_mut(j * m);
            let column = &mut own[..m];
            for k in first..end {
                let factor = column[k];
                subtract(&mut column[k + 1..], factor, &before[k * m + k + 1..(k + 1) * m]);
            }
        }
    }
    singular
}

/// The index of the first largest element; a NaN counts as the largest only at index 0.
fn largest<T: Field>(x: &[T]) -> usize {
    let Some((&first, rest)) = x.split_first() else { return 0 };
    let mut best = (0, first.size());
    for (i, x) in rest.iter().enumerate() {
        let size = x.size();
        if size > best.1 {
            best = (i + 1, size);
        }
    }
    best.0
}
