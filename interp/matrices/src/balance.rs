//! Permutation and scaling that make a matrix closer to triangular and its rows and columns of like norms:
//! `gebal`, `gebak`.

use std::ops::Range;

use super::Matrix;
use super::matrix::norm;
use crate::wide::{Field, Real};

/// What was done to a matrix.
#[derive(Clone, Debug)]
pub(crate) struct Balance {
    /// The rows and columns that are not triangular yet.
    pub(crate) active: Range<usize>,
    /// Of the active ones: the exponent of the power of two that column i was multiplied and row i divided
    /// by.
    exponents: Vec<i32>,
    /// The exchanges of rows and columns, in the order in which they were made.
    swaps: Vec<(usize, usize)>,
}

/// Moves rows with no other element than that on the diagonal to the end, columns with no other to the start;
/// then, if `scaling`, scales the rest by powers of two.
pub(crate) fn balance<F: Field>(a: &mut Matrix<F>, scaling: bool) -> Balance {
    let n = a.rows();
    let mut swaps = Vec::new();
    let (mut low, mut high) = (0, n);
    let mut exchange = |a: &mut Matrix<F>, i: usize, j: usize, low: usize, high: usize| {
        swaps.push((i, j));
        if i != j {
            let (left, right) = a.two_columns_mut(i.min(j), i.max(j));
            left[..high].swap_with_slice(&mut right[..high]);
            a.swap_rows(i, j, low..n);
        }
    };
    // In each round `high` shrinks at most as fast as i, and `low` grows at most as fast as j.
    let mut again = true;
    while again {
        again = false;
        for i in (0..high).rev() {
            if (0..high).all(|j| j == i || a[(i, j)].is_zero()) {
                exchange(a, i, high - 1, low, high);
                again = true;
                high -= 1;
            }
        }
    }
    again = high > 0;
    while again {
        again = false;
        let first = low;
        for j in first..high {
            if (low..high).all(|i| i == j || a[(i, j)].is_zero()) {
                exchange(a, j, low, low, high);
                again = true;
                low += 1;
            }
        }
    }
    // LAPACK leaves the last one active.
    if high == 0 && n > 0 {
        high = 1;
    }
    let mut exponents = vec![0; n];
    if scaling {
        scale(a, low..high, &mut exponents);
    }
    Balance { active: low..high, exponents, swaps }
}

/// Scales until no row and column together become shorter by 5% or more.
fn scale<F: Field>(a: &mut Matrix<F>, active: Range<usize>, exponents: &mut [i32]) {
    // No matrix that is not graded beyond all measure gets there.
    let most = F::Real::SAFE;
    let n = a.rows();
    let factor = F::Real::from_f64(0.95);
    let mut rounds = 0;
    let mut again = true;
    while again && rounds < 1000 {
        again = false;
        rounds += 1;
        for i in active.clone() {
            let column = norm(&a.column(i)[active.clone()]);
            let row = norm(&active.clone().map(|j| a[(i, j)]).collect::<Vec<F>>());
            if column.is_zero() || row.is_zero() {
                continue;
            }
            let (mut c, mut r, mut e) = (column, row, 0i32);
            while c < r.shifted(-1) && e < most {
                (c, r, e) = (c.shifted(1), r.shifted(-1), e + 1);
            }
            while c.shifted(-1) >= r && e > -most {
                (c, r, e) = (c.shifted(-1), r.shifted(1), e - 1);
            }
            if e == 0 || c + r >= factor * (column + row) || (exponents[i] + e).abs() > most {
                continue;
            }
            exponents[i] += e;
            again = true;
            for j in active.start..n {
                a[(i, j)] = shifted(a[(i, j)], -e);
            }
            for x in &mut a.column_mut(i)[..active.end] {
                *x = shifted(*x, e);
            }
        }
    }
}

fn shifted<F: Field>(x: F, e: i32) -> F {
    F::from_parts(x.real().shifted(e), x.imag().shifted(e))
}

impl Balance {
    /// Rotations right (otherwise left) eigenvectors, or Schur vectors, into those of the matrix that was
    /// balanced.
    pub(crate) fn undo<F: Field>(&self, vectors: &mut Matrix<F>, right: bool) {
        let columns = vectors.columns();
        for i in self.active.clone() {
            let e = if right { self.exponents[i] } else { -self.exponents[i] };
            if e != 0 {
                for j in 0..columns {
                    vectors[(i, j)] = shifted(vectors[(i, j)], e);
                }
            }
        }
        for &(i, j) in self.swaps.iter().rev() {
            vectors.swap_rows(i, j, 0..columns);
        }
    }
}
