//! Factorization by reflectors: `geqrf`, `orgqr` and `ungqr`, `ormqr` and `unmqr`.

use super::Matrix;
use super::householder::{apply_left, apply_right, reflector};
use crate::scalar::wide::Field;

/// A = Q R, Q a product of reflectors.
#[derive(Clone, Debug)]
pub(crate) struct Qr<F> {
    /// R and, below the diagonal, the tails of the reflectors.
    pub(crate) factors: Matrix<F>,
    /// The factors tau of the reflectors.
    pub(crate) taus: Vec<F>,
}

/// Factors a matrix.
pub(crate) fn factor<F: Field>(mut a: Matrix<F>) -> Qr<F> {
    let steps = a.rows().min(a.columns());
    let taus = (0..steps).map(|k| step(&mut a, k)).collect();
    Qr { factors: a, taus }
}

/// Clears column k below the diagonal, and gives tau.
pub(super) fn step<F: Field>(a: &mut Matrix<F>, k: usize) -> F {
    let tau = reflector(&mut a.column_mut(k)[k..]);
    let tail = a.column(k)[k + 1..].to_vec();
    let columns = a.columns();
    apply_left(a, &tail, tau.conj(), k, k + 1..columns);
    tau
}

/// The first columns of H1 H2 ... Hk, as many as `reflectors` has: their tails are below its diagonal. There must be at least as
/// many rows as columns, and as columns as taus.
pub(crate) fn form<F: Field>(reflectors: &Matrix<F>, taus: &[F]) -> Matrix<F> {
    let (m, n) = (reflectors.rows(), reflectors.columns());
    let mut q = Matrix::identity(m, n);
    for (k, &tau) in taus.iter().enumerate().rev() {
        apply_left(&mut q, &reflectors.column(k)[k + 1..], tau, k, k..n);
    }
    q
}

/// Multiplies c by Q = H1 H2 ... Hk or by Q^H, from the left or from the right. The tails are below the diagonal of `reflectors`.
pub(crate) fn multiply<F: Field>(
    reflectors: &Matrix<F>,
    taus: &[F],
    c: &mut Matrix<F>,
    left: bool,
    adjoint: bool,
) {
    let (rows, columns) = (c.rows(), c.columns());
    let mut apply = |k: usize| {
        let tau = if adjoint { taus[k].conj() } else { taus[k] };
        let tail = &reflectors.column(k)[k + 1..];
        if left {
            apply_left(c, tail, tau, k, 0..columns);
        } else {
            apply_right(c, tail, tau, 0..rows, k);
        }
    };
    if left == adjoint { (0..taus.len()).for_each(apply) } else { (0..taus.len()).rev().for_each(&mut apply) }
}
