//! Factorization by reflectors: `geqrf`, `orgqr` and `ungqr`, `ormqr` and `unmqr`.

use std::sync::{Mutex, PoisonError};

use hlo_threads::parallel;

use super::Matrix;
use super::householder::{BLOCK, Block, Reflectors, TASK, reflect, reflector};
use crate::wide::Field;

/// Elements up to which reflectors are applied one by one: the matrix is in the nearest cache.
const SMALL: usize = 1 << 13;

/// A = Q R, Q a product of reflectors.
#[derive(Clone, Debug)]
pub struct Qr<F> {
    /// R and, below the diagonal, the tails of the reflectors.
    pub factors: Matrix<F>,
    /// The factors tau of the reflectors.
    pub taus: Vec<F>,
}

/// Factors a matrix.
pub(crate) fn factor<F: Field>(mut a: Matrix<F>) -> Qr<F> {
    let (m, n) = (a.rows(), a.columns());
    let steps = m.min(n);
    if m * n <= SMALL {
        let taus = (0..steps).map(|k| step(&mut a, k)).collect();
        return Qr { factors: a, taus };
    }
    let mut taus = panel(&mut a.elements_mut()[..steps.min(BLOCK) * m], m, 0);
    let mut block = Block::of(a.elements(), m, 0, &taus);
    let mut first = taus.len();
    while first < n {
        // The next columns first, and their reflectors right then: they are found while others apply these to
        // what is after them.
        let next = (steps - first).min(BLOCK);
        let (next, rest) = a.elements_mut()[first * m..].split_at_mut(next * m);
        let found = Mutex::new(None);
        let parts: Vec<Mutex<&mut [F]>> =
            std::iter::once(next).chain(rest.chunks_mut(TASK * m)).map(Mutex::new).collect();
        parallel::tasks(parts.len(), &|i| {
            let mut columns = parts[i].lock().unwrap_or_else(PoisonError::into_inner);
            block.apply(&mut columns, m, true);
            if i == 0 && !columns.is_empty() {
                let taus = panel(&mut columns, m, first);
                let block = Block::of(&columns, m, first, &taus);
                *found.lock().unwrap_or_else(PoisonError::into_inner) = Some((taus, block));
            }
        });
        drop(parts);
        let Some((more, next)) = found.into_inner().unwrap_or_else(PoisonError::into_inner) else { break };
        first += more.len();
        taus.extend(more);
        block = next;
    }
    Qr { factors: a, taus }
}

/// Clears columns of that height below row `row`, `row + 1`, ..., and gives the taus.
fn panel<F: Field>(columns: &mut [F], height: usize, row: usize) -> Vec<F> {
    let count = columns.len() / height.max(1);
    let clear = |k: usize| {
        let (before, after) = columns.split_at_mut((k + 1) * height);
        let tau = reflector(&mut before[k * height..][row + k..]);
        reflect(after, height, row + k, &before[k * height..][row + k + 1..], tau.conj());
        tau
    };
    (0..count).map(clear).collect()
}

/// Clears column k below the diagonal, and gives tau.
pub(super) fn step<F: Field>(a: &mut Matrix<F>, k: usize) -> F {
    let height = a.rows();
    let (before, after) = a.elements_mut().split_at_mut((k + 1) * height);
    let tau = reflector(&mut before[k * height..][k..]);
    reflect(after, height, k, &before[k * height..][k + 1..], tau.conj());
    tau
}

/// The first columns of H1 H2 ... Hk, as many as `reflectors` has: their tails are below its diagonal. There
/// must be at least as many rows as columns, and as columns as taus.
pub(crate) fn form<F: Field>(reflectors: &Matrix<F>, taus: &[F]) -> Matrix<F> {
    let (rows, columns) = (reflectors.rows(), reflectors.columns());
    if rows * columns <= SMALL {
        let mut q = Matrix::identity(rows, columns);
        for (k, &tau) in taus.iter().enumerate().rev() {
            let after = &mut q.elements_mut()[k * rows..];
            reflect(after, rows, k, &reflectors.column(k)[k + 1..], tau);
        }
        return q;
    }
    of(reflectors, taus).form(reflectors.rows(), reflectors.columns())
}

fn of<F: Field>(reflectors: &Matrix<F>, taus: &[F]) -> Reflectors<F> {
    Reflectors::new(0, taus, |k| &reflectors.column(k)[k + 1..])
}

/// Multiplies c by Q = H1 H2 ... Hk or by Q^H, from the left or from the right. The tails are below the
/// diagonal of `reflectors`.
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
    let mut adjoint_of_c = c.adjoint();
    q.apply(&mut adjoint_of_c, !adjoint);
    *c = adjoint_of_c.adjoint();
}
