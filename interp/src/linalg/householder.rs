//! Elementary reflectors H = I - tau v v^H with v = (1, tail), as LAPACK's `larfg` makes them: H^H maps a vector to
//! (beta, 0, ..., 0) with beta real and of the opposite sign to the real part of the first element.

use std::ops::Range;

use super::Matrix;
use super::matrix::{excess, hypotenuse, norm, shift};
use crate::scalar::wide::{Field, Real};

/// Replaces a vector by (beta, tail) and gives tau, which is 0 if the vector is already of the form (real, 0, ..., 0).
pub(crate) fn reflector<F: Field>(x: &mut [F]) -> F {
    let e = excess(x);
    if e != 0 {
        shift(x, -e);
        let tau = reflector_in_range(x);
        shift(&mut x[..1], e);
        if tau.is_zero() {
            shift(&mut x[1..], e);
        }
        return tau;
    }
    reflector_in_range(x)
}

fn reflector_in_range<F: Field>(x: &mut [F]) -> F {
    let Some((first, tail)) = x.split_first_mut() else { return F::default() };
    let alpha = *first;
    let tail_norm = norm(tail);
    if tail_norm.is_zero() && alpha.imag().is_zero() {
        return F::default();
    }
    let beta = -hypotenuse(alpha.modulus(), tail_norm).with_sign_of(alpha.real());
    let tau = F::from_parts((beta - alpha.real()) / beta, -(alpha.imag() / beta));
    let bottom = alpha - F::from_real(beta);
    for x in tail {
        *x = *x / bottom;
    }
    *first = F::from_real(beta);
    tau
}

/// Applies H from the left to the rows from `row` on of some columns.
pub(crate) fn apply_left<F: Field>(a: &mut Matrix<F>, tail: &[F], tau: F, row: usize, columns: Range<usize>) {
    if tau.is_zero() {
        return;
    }
    for j in columns {
        let column = &mut a.column_mut(j)[row..];
        let mut sum = column[0];
        for (&v, &x) in tail.iter().zip(&column[1..]) {
            sum = sum + v.conj() * x;
        }
        sum = tau * sum;
        column[0] = column[0] - sum;
        for (&v, x) in tail.iter().zip(&mut column[1..]) {
            *x = *x - v * sum;
        }
    }
}

/// Applies H from the right to some rows of the columns from `column` on.
pub(crate) fn apply_right<F: Field>(
    a: &mut Matrix<F>,
    tail: &[F],
    tau: F,
    rows: Range<usize>,
    column: usize,
) {
    if tau.is_zero() || rows.is_empty() {
        return;
    }
    let mut sums = a.column(column)[rows.clone()].to_vec();
    for (k, &v) in tail.iter().enumerate() {
        for (sum, &x) in sums.iter_mut().zip(&a.column(column + 1 + k)[rows.clone()]) {
            *sum = *sum + x * v;
        }
    }
    for sum in &mut sums {
        *sum = *sum * tau;
    }
    for (k, v) in std::iter::once(F::one()).chain(tail.iter().copied()).enumerate() {
        for (&sum, x) in sums.iter().zip(&mut a.column_mut(column + k)[rows.clone()]) {
            *x = *x - sum * v.conj();
        }
    }
}
