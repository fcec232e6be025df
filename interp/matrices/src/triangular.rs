//! Triangular systems: `trsm`.

use super::{Matrix, Triangle};
use crate::wide::Field;

/// What is done to the matrix of a triangular system.
#[derive(Clone, Copy, Debug)]
pub struct System {
    /// op(A) X = B; otherwise X op(A) = B.
    pub left: bool,
    /// Where A is.
    pub triangle: Triangle,
    /// Whether the diagonal counts as 1s.
    pub unit: bool,
    /// Whether op transposes.
    pub transposed: bool,
    /// Whether op conjugates.
    pub conjugated: bool,
}

/// Solves for X by substitution, in place of B. A system whose solution is not finite is solved again in
/// `f64`, where infinities survive.
pub(crate) fn solve<F: Field>(a: &Matrix<F>, b: &mut Matrix<F>, system: System) {
    if b.elements().is_empty() {
        return;
    }
    let op = Op { a, system };
    if system.left {
        let columns = hlo_threads::parallel::collect(b.columns(), &|j| op.solve(b.column(j)));
        for (j, column) in columns.into_iter().enumerate() {
            b.column_mut(j).copy_from_slice(&column);
        }
        return;
    }
    let rows = hlo_threads::parallel::collect(b.rows(), &|i| {
        let row: Vec<F> = (0..b.columns()).map(|j| b[(i, j)]).collect();
        op.solve(&row)
    });
    for (i, row) in rows.into_iter().enumerate() {
        for (j, x) in row.into_iter().enumerate() {
            b[(i, j)] = x;
        }
    }
}

struct Op<'a, F> {
    a: &'a Matrix<F>,
    system: System,
}

impl<F: Field> Op<'_, F> {
    fn solve(&self, b: &[F]) -> Vec<F> {
        let x = self.substitute(b, |x| x);
        if x.iter().all(|x| x.is_finite()) {
            return x;
        }
        let b: Vec<F::Plain> = b.iter().map(|x| x.plain()).collect();
        self.substitute(&b, F::plain).into_iter().map(F::from_plain).collect()
    }

    /// One right-hand side, in any field.
    fn substitute<G: Field>(&self, b: &[G], convert: impl Fn(F) -> G) -> Vec<G> {
        let System { left, triangle, unit, transposed, conjugated } = self.system;
        // x op(A) = b is op(A)^T x^T = b^T: one more transposition, without conjugation.
        let swapped = transposed == left;
        let element = |i: usize, j: usize| {
            let x = convert(if swapped { self.a[(j, i)] } else { self.a[(i, j)] });
            if conjugated { x.conj() } else { x }
        };
        // After a transposition the other triangle is the one that is there.
        let forward = (triangle == Triangle::Lower) != swapped;
        let n = b.len();
        let mut x = b.to_vec();
        for step in 0..n {
            let i = if forward { step } else { n - 1 - step };
            let before = if forward { 0..i } else { i + 1..n };
            let mut sum = x[i];
            for j in before {
                sum = sum - element(i, j) * x[j];
            }
            x[i] = if unit { sum } else { sum / element(i, i) };
        }
        x
    }
}
