//! Triangular systems that are solved by the inverse of the matrix.

use crate::balls::{Ball, Row, Unit};
use crate::{UNKNOWN, gamma};

/// What a solver by the inverse of a triangular matrix goes through, in magnitudes. With `M` the inverse of the
/// matrix of magnitudes `|a|` whose elements off the diagonal are negative, `|A^-1| <= M`, and the solution is
/// off by some units of `M |A| M |b|` (Higham, Accuracy and Stability of Numerical Algorithms, section 14.2.1,
/// and the product with `b`).
#[derive(Debug)]
pub struct Inverse<'a> {
    n: usize,
    /// The elements below the diagonal by rows, in the order of the steps.
    rows: &'a Row,
    diagonal: &'a [Ball],
    unit: Unit,
    /// How large elements of the inverse may be while it is computed; infinite where that overflows.
    largest: f64,
}

impl<'a> Inverse<'a> {
    /// Of a matrix of order `n`. `most`: what arithmetic of the type does not leave.
    pub fn new(n: usize, rows: &'a Row, diagonal: &'a [Ball], unit: Unit, most: f64) -> Inverse<'a> {
        let mut inverse = Inverse { n, rows, diagonal, unit, largest: UNKNOWN };
        let size = |x: Ball| x.size + x.off;
        let (ones, along) = (vec![1.0; n], diagonal.iter().map(|&d| size(d)).collect::<Vec<f64>>());
        let (sums, scaled) = (inverse.solved(&ones), inverse.solved(&along));
        // Scaled to a unit diagonal by rows or by columns, before the inversion and after it.
        let quotients = (0..n).flat_map(|i| (0..i).map(move |j| (i, j))).map(|(i, j)| {
            let x = rows.size[i * n + j] + rows.off[i * n + j];
            x / inverse.least(i).min(inverse.least(j))
        });
        let products = (0..n).map(|i| (sums[i] * along[i]).max(scaled[i]).max(sums[i]).max(along[i]));
        let largest = quotients
            .chain(products)
            .fold(1.0, |most: f64, x| if x.is_nan() { UNKNOWN } else { most.max(x) });
        inverse.largest = if largest < most { largest } else { UNKNOWN };
        inverse
    }

    fn least(&self, i: usize) -> f64 {
        (self.diagonal[i].size - self.diagonal[i].off).max(0.0)
    }

    /// `M x`.
    fn solved(&self, x: &[f64]) -> Vec<f64> {
        let mut solved = vec![0.0; self.n];
        for i in 0..self.n {
            let row = self.rows.part(i * self.n, i);
            let sum: f64 = (0..i).map(|j| (row.size[j] + row.off[j]) * solved[j]).sum();
            solved[i] = (x[i] + sum) / self.least(i) * (1.0 + (self.n as f64 + 4.0) * f64::EPSILON);
        }
        solved
    }

    /// What the solution is off by, by magnitudes on the right; infinite where it may overflow.
    pub fn off(&self, given: &[f64], most: f64) -> Vec<f64> {
        let x = self.solved(given);
        let sum: f64 = given.iter().sum();
        if self.largest == UNKNOWN || !std::iter::once(&sum).chain(&x).all(|&x| x < most) {
            return vec![UNKNOWN; self.n];
        }
        let product: Vec<f64> = (0..self.n)
            .map(|i| {
                let row = self.rows.part(i * self.n, i);
                let below: f64 = (0..i).map(|j| (row.size[j] + row.off[j]) * x[j]).sum();
                below + (self.diagonal[i].size + self.diagonal[i].off) * x[i]
            })
            .collect();
        let n = self.n as f64;
        let small = self.unit.absolute * (2.0 * n + 8.0) * self.largest;
        let units = gamma(3.0 * n + 12.0, self.unit.relative);
        let of = self.solved(&product);
        (0..self.n)
            .map(|i| {
                let off = units * of[i] + small * (1.0 + sum * (1.0 + 1.0 / self.least(i)));
                if off.is_nan() { UNKNOWN } else { off }
            })
            .collect()
    }
}
