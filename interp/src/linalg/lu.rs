//! Gaussian elimination with partial pivoting: `getrf`.

use super::Matrix;
use crate::scalar::wide::{Field, Real, abs};

/// P A = L U.
#[derive(Clone, Debug)]
pub(crate) struct Lu<F> {
    /// U and, below the diagonal, L without its diagonal of 1s.
    pub(crate) factors: Matrix<F>,
    /// The row that step k exchanged with row k.
    pub(crate) pivots: Vec<usize>,
    /// The first step whose pivot is exactly 0.
    pub(crate) singular: Option<usize>,
}

/// Factors a matrix. The pivot is the first of the largest elements by the sum of the magnitudes of the parts; elements that
/// differ by less than the rounding errors of the wide field count as equal. If infinities come up, the matrix is factored
/// again in `f64`, where they survive.
pub(crate) fn factor<F: Field>(a: Matrix<F>) -> Lu<F> {
    let plain = a.map(F::plain);
    let lu = eliminate(a);
    if lu.factors.is_finite() {
        return lu;
    }
    let Lu { factors, pivots, singular } = eliminate(plain);
    Lu { factors: factors.map(F::from_plain), pivots, singular }
}

fn eliminate<F: Field>(mut a: Matrix<F>) -> Lu<F> {
    let (m, n) = (a.rows(), a.columns());
    let mut pivots = Vec::with_capacity(m.min(n));
    let mut singular = None;
    for k in 0..m.min(n) {
        let sizes: Vec<_> = a.column(k)[k..].iter().map(|x| x.size()).collect();
        let pivot = k + first_of_largest(&sizes);
        pivots.push(pivot);
        a.swap_rows(k, pivot, 0..n);
        let top = a[(k, k)];
        if top.is_zero() {
            singular = singular.or(Some(k));
        } else {
            for x in &mut a.column_mut(k)[k + 1..] {
                *x = *x / top;
            }
        }
        for j in k + 1..n {
            let (left, right) = a.two_columns_mut(k, j);
            let factor = right[k];
            if factor.is_zero() {
                continue;
            }
            for (&l, x) in left[k + 1..].iter().zip(&mut right[k + 1..]) {
                *x = *x - l * factor;
            }
        }
    }
    Lu { factors: a, pivots, singular }
}

/// Where the first of the largest numbers is, up to rounding; a NaN counts as large only in the first place. 0 of an empty list.
pub(crate) fn first_of_largest<R: Real>(sizes: &[R]) -> usize {
    let Some(&first) = sizes.first() else { return 0 };
    let largest = sizes.iter().fold(first, |largest, &x| if x > largest { x } else { largest });
    let slack = abs(largest) * R::from_f64(R::ULP * NEAR);
    sizes.iter().position(|&x| x >= largest - slack).unwrap_or(0)
}

/// How many units of rounding of the wide field are no difference.
const NEAR: f64 = 4096.0;
