//! Small matrices of any element type, right operands with contiguous columns: rows of the result are vectors
//! of columns, a few rows at a time.

use std::ops::Range;

use super::{BatchedSmall, Extents, Operands};
use crate::dot::step::Step;

/// The maximum number of rows of a register tile.
const MAX_TILE_ROWS: usize = 4;

/// A function that computes the products of some matrices.
type Products<S> =
    unsafe fn(&BatchedSmall, Range<usize>, Operands<'_, <S as Step>::Word>, *mut <S as Step>::Sum);

/// # Safety
/// As [`BatchedSmall::products`].
pub(super) unsafe fn columns<S: Step>(
    small: &BatchedSmall,
    matrices: Range<usize>,
    operands: Operands<'_, S::Word>,
    to: *mut S::Sum,
) {
    let Extents { m, n, k, .. } = small.extents;
    // By rows, vectors of columns and terms: short loops over each are no loops.
    macro_rules! each {
        ($($rows:literal: $($terms:literal)*;)*) => {
            match (m, n.div_ceil(S::N), k) {
                $($(($rows, 1, $terms) => all::<S, $rows, 1, $terms>,)*)*
                $(
                    ($rows, 1, _) => all::<S, $rows, 1, 0>,
                    ($rows, 2, _) => all::<S, $rows, 2, 0>,
                    ($rows, 3, _) => all::<S, $rows, 3, 0>,
                    ($rows, _, _) => all::<S, $rows, 4, 0>,
                )*
                (_, 1, _) => high::<S, 1>,
                (_, 2, _) => high::<S, 2>,
                (_, 3, _) => high::<S, 3>,
                (_, _, _) => high::<S, 4>,
            }
        };
    }
    let products: Products<S> = each! {
        1: 2 3 4;
        2: 2 3 4;
        3: 2 3 4;
        4: 2 3 4;
    };
    // SAFETY: the caller's.
    unsafe { products(small, matrices, operands, to) }
}

/// Matrices of so few rows that these are computed at once.
#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq")]
unsafe fn all<S: Step, const ROWS: usize, const VECTORS: usize, const TERMS: usize>(
    small: &BatchedSmall,
    matrices: Range<usize>,
    operands: Operands<'_, S::Word>,
    to: *mut S::Sum,
) {
    let elements = ROWS * small.extents.n;
    for (index, matrix) in matrices.enumerate() {
        let [a, b] = operands.of(matrix);
        // SAFETY: the caller's: the rows are there.
        unsafe { tile::<S, ROWS, VECTORS, TERMS>(small, a, b, to.add(index * elements)) };
    }
}

/// Matrices of more rows.
#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq")]
unsafe fn high<S: Step, const VECTORS: usize>(
    small: &BatchedSmall,
    matrices: Range<usize>,
    operands: Operands<'_, S::Word>,
    to: *mut S::Sum,
) {
    let Extents { m, n, .. } = small.extents;
    for (index, matrix) in matrices.enumerate() {
        let [a, b] = operands.of(matrix);
        for row in (0..m).step_by(MAX_TILE_ROWS) {
            let a = a.wrapping_offset(row as isize * small.left[0]);
            // SAFETY: the caller's: the rows are there.
            unsafe {
                let to = to.add((index * m + row) * n);
                match m - row {
                    1 => tile::<S, 1, VECTORS, 0>(small, a, b, to),
                    2 => tile::<S, 2, VECTORS, 0>(small, a, b, to),
                    3 => tile::<S, 3, VECTORS, 0>(small, a, b, to),
                    _ => tile::<S, MAX_TILE_ROWS, VECTORS, 0>(small, a, b, to),
                }
            }
        }
    }
}

/// Some rows by all columns. `TERMS`: how many there are, or 0.
#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq")]
#[inline]
unsafe fn tile<S: Step, const ROWS: usize, const VECTORS: usize, const TERMS: usize>(
    small: &BatchedSmall,
    a: *const S::Word,
    b: *const S::Word,
    to: *mut S::Sum,
) {
    let Extents { n, k, .. } = small.extents;
    let terms = if TERMS > 0 { TERMS } else { k };
    let lanes = |v: usize| (n - S::N * v).min(S::N);
    // SAFETY: the caller's: the machine has the instructions; lanes beyond the last column are not touched.
    unsafe {
        let mut sums = [[S::zero(); VECTORS]; ROWS];
        for term in 0..terms as isize {
            let a = a.wrapping_offset(term * small.left[1]);
            let b = b.wrapping_offset(term * small.right[1]);
            let mut line = [S::load_part(b, lanes(0)); VECTORS];
            for (v, line) in line.iter_mut().enumerate().skip(1) {
                *line = S::load_part(b.add(S::N * v), lanes(v));
            }
            for (row, sums) in sums.iter_mut().enumerate() {
                let x = S::splat(*a.offset(row as isize * small.left[0]));
                for (sum, &line) in sums.iter_mut().zip(&line) {
                    *sum = S::madd(x, line, *sum);
                }
            }
        }
        for (row, sums) in sums.iter().enumerate() {
            for (v, &sum) in sums.iter().enumerate() {
                S::store(sum, to.add(row * n + S::N * v), lanes(v), false);
            }
        }
    }
}
