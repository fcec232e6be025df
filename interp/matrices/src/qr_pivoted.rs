//! Factorization by reflectors with column pivoting: `geqp3`.

use hlo_threads::cancel;

use super::Matrix;
use super::lu::first_of_largest;
use super::matrix::norm;
use super::qr::{Qr, step};
use crate::wide::Field;

/// A P = Q R. `columns` says which columns stay in front (those that are not 0, in their order) and becomes
/// P: column j of A P is column `columns[j] - 1` of A. Of the free columns each step takes the first of those
/// whose rest has the largest norm; norms that differ by less than the rounding errors of the wide field
/// count as equal.
pub(crate) fn factor<F: Field>(mut a: Matrix<F>, columns: &mut [i32]) -> Qr<F> {
    let (m, n) = (a.rows(), a.columns());
    let mut fixed = 0;
    for j in 0..n {
        let stays = columns[j] != 0;
        columns[j] = j as i32 + 1;
        if stays {
            a.swap_columns(j, fixed);
            columns[j] = columns[fixed];
            columns[fixed] = j as i32 + 1;
            fixed += 1;
        }
    }
    let mut taus = Vec::with_capacity(m.min(n));
    for k in 0..m.min(n) {
        cancel::poll();
        if k >= fixed {
            let norms: Vec<_> = (k..n).map(|j| norm(&a.column(j)[k..])).collect();
            let pivot = k + first_of_largest(&norms);
            a.swap_columns(k, pivot);
            columns.swap(k, pivot);
        }
        taus.push(step(&mut a, k));
    }
    Qr { factors: a, taus }
}
