//! Reduction to Hessenberg form: `gehrd`, `orghr`.

use std::ops::Range;

use hlo_threads::cancel;

use super::Matrix;
use super::householder::{Reflectors, apply_left, apply_right, reflector};
use crate::wide::Field;

/// Q^H A Q = H.
#[derive(Clone, Debug)]
pub struct Hessenberg<F> {
    /// H and, below the subdiagonal, the tails of the reflectors.
    pub factors: Matrix<F>,
    /// The factors tau of the reflectors: one less than rows, 0 outside of the active ones.
    pub taus: Vec<F>,
}

/// Reduces the rows and columns of `active`; outside of them the matrix must be upper triangular already.
pub(crate) fn reduce<F: Field>(mut a: Matrix<F>, active: Range<usize>) -> Hessenberg<F> {
    let n = a.rows();
    let mut taus = vec![F::default(); n.saturating_sub(1)];
    let steps = active.start..active.end.saturating_sub(1);
    for (k, tau_k) in taus.iter_mut().enumerate().take(steps.end).skip(steps.start) {
        cancel::poll();
        let tau = reflector(&mut a.column_mut(k)[k + 1..active.end]);
        let tail = a.column(k)[(k + 2).min(active.end)..active.end].to_vec();
        apply_right(&mut a, &tail, tau, 0..active.end, k + 1);
        apply_left(&mut a, &tail, tau.conj(), k + 1, k + 1..n);
        *tau_k = tau;
    }
    Hessenberg { factors: a, taus }
}

impl<F: Field> Hessenberg<F> {
    /// Q.
    pub(crate) fn vectors(&self) -> Matrix<F> {
        let n = self.factors.rows();
        Reflectors::new(1, &self.taus, |k| &self.factors.column(k)[k + 2..]).form(n, n)
    }

    /// H alone.
    pub(crate) fn matrix(self) -> Matrix<F> {
        let mut factors = self.factors;
        for j in 0..factors.rows() {
            let below = (j + 2).min(factors.rows());
            factors.column_mut(j)[below..].fill(F::default());
        }
        factors
    }
}
