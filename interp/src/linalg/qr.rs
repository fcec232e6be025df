//! Factorization by reflectors: `geqrf`, `orgqr` and `ungqr`, `ormqr` and `unmqr`.

use super::Matrix;
use super::householder::{BLOCK, Block, Reflectors, apply_left, reflector};
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
    let (m, n) = (a.rows(), a.columns());
    let steps = m.min(n);
    let mut taus = Vec::with_capacity(steps);
    for first in (0..steps).step_by(BLOCK) {
        let end = (first + BLOCK).min(steps);
        taus.extend((first..end).map(|k| clear(&mut a, k, end)));
        if end < n {
            let (before, after) = a.elements_mut().split_at_mut(end * m);
            let tails: Vec<&[F]> = (first..end).map(|k| &before[k * m..][k + 1..m]).collect();
            Block::new(first, &tails, &taus[first..]).apply(after, m, true);
        }
    }
    Qr { factors: a, taus }
}

/// Clears column k below the diagonal, and gives tau.
pub(super) fn step<F: Field>(a: &mut Matrix<F>, k: usize) -> F {
    let columns = a.columns();
    clear(a, k, columns)
}

/// Clears column k below the diagonal, and gives tau; columns from `end` on wait.
fn clear<F: Field>(a: &mut Matrix<F>, k: usize, end: usize) -> F {
    let tau = reflector(&mut a.column_mut(k)[k..]);
    let tail = a.column(k)[k + 1..].to_vec();
    apply_left(a, &tail, tau.conj(), k, k + 1..end);
    tau
}

/// The first columns of H1 H2 ... Hk, as many as `reflectors` has: their tails are below its diagonal. There must be at least as
/// many rows as columns, and as columns as taus.
pub(crate) fn form<F: Field>(reflectors: &Matrix<F>, taus: &[F]) -> Matrix<F> {
    of(reflectors, taus).form(reflectors.rows(), reflectors.columns())
}

fn of<F: Field>(reflectors: &Matrix<F>, taus: &[F]) -> Reflectors<F> {
    Reflectors::new(0, taus, |k| &reflectors.column(k)[k + 1..])
}

/// Multiplies c by Q = H1 H2 ... Hk or by Q^H, from the left or from the right. The tails are below the diagonal of `reflectors`.
pub(crate) fn multiply<F: Field>(
    reflectors: &Matrix<F>,
    taus: &[F],
    c: &mut Matrix<F>,
    left: bool,
    adjoint: bool,
) {
    let q = of(reflectors, taus);
    if left {
        return q.apply(c, adjoint);
    }
    // c Q is (Q^H c^H)^H.
    let mut turned = c.adjoint();
    q.apply(&mut turned, !adjoint);
    *c = turned.adjoint();
}
