//! Tridiagonal systems: `gtsv`, and the solver of JAX that perturbs small pivots.

use hlo_threads::cancel;

use super::Matrix;
use crate::wide::{Field, Real, abs, larger};

/// A tridiagonal matrix of order n and right-hand sides.
#[derive(Clone, Debug)]
pub struct System<F> {
    /// n - 1 elements below the diagonal (afterwards: the second diagonal above that of U, and the last
    /// element as it was).
    pub lower: Vec<F>,
    /// n elements (afterwards: the diagonal of U).
    pub diagonal: Vec<F>,
    /// n - 1 elements above it (afterwards: those of U).
    pub upper: Vec<F>,
    /// n rows (afterwards: the solutions).
    pub b: Matrix<F>,
}

impl<F: Field> System<F> {
    fn map<G: Field>(&self, f: impl Fn(F) -> G + Copy) -> System<G> {
        let of = |x: &[F]| x.iter().map(|&x| f(x)).collect();
        System {
            lower: of(&self.lower),
            diagonal: of(&self.diagonal),
            upper: of(&self.upper),
            b: self.b.map(f),
        }
    }

    fn is_finite(&self) -> bool {
        let parts = [&self.lower, &self.diagonal, &self.upper];
        parts.iter().all(|x| x.iter().all(|x| x.is_finite())) && self.b.is_finite()
    }

    /// Solves by Gaussian elimination with partial pivoting, in place. The error is the step whose pivot is
    /// exactly 0. If infinities come up, the system is solved again in `f64`, where they survive.
    pub fn solve(&mut self) -> Result<(), usize> {
        let mut plain = self.map(F::plain);
        let done = self.eliminate();
        if self.is_finite() {
            return done;
        }
        let done = plain.eliminate();
        *self = plain.map(F::from_plain);
        done
    }

    fn eliminate(&mut self) -> Result<(), usize> {
        let (n, columns) = (self.diagonal.len(), self.b.columns());
        let System { lower: dl, diagonal: d, upper: du, b } = self;
        for k in 0..n.saturating_sub(1) {
            cancel::poll();
            if d[k].size() >= dl[k].size() {
                if d[k].is_zero() {
                    return Err(k);
                }
                let factor = dl[k] / d[k];
                d[k + 1] = d[k + 1] - factor * du[k];
                for j in 0..columns {
                    b[(k + 1, j)] = b[(k + 1, j)] - factor * b[(k, j)];
                }
                if k + 2 < n {
                    dl[k] = F::default();
                }
            } else {
                let factor = d[k] / dl[k];
                d[k] = dl[k];
                let below = d[k + 1];
                d[k + 1] = du[k] - factor * below;
                du[k] = below;
                if k + 2 < n {
                    dl[k] = du[k + 1];
                    du[k + 1] = -(factor * dl[k]);
                }
                for j in 0..columns {
                    let above = b[(k, j)];
                    b[(k, j)] = b[(k + 1, j)];
                    b[(k + 1, j)] = above - factor * b[(k + 1, j)];
                }
            }
        }
        if n > 0 && d[n - 1].is_zero() {
            return Err(n - 1);
        }
        for j in 0..columns {
            let x = b.column_mut(j);
            for k in (0..n).rev() {
                let mut sum = x[k];
                if k + 1 < n {
                    sum = sum - du[k] * x[k + 1];
                }
                if k + 2 < n {
                    sum = sum - dl[k] * x[k + 2];
                }
                x[k] = sum / d[k];
            }
        }
        Ok(())
    }

    /// The solutions by elimination with scaled partial pivoting, in which a pivot so small that a solution
    /// would overflow is made larger by about `epsilon` times the largest element of U. `epsilon` and `tiny`
    /// (the smallest number whose reciprocal does not overflow) are those of the element type.
    pub fn solve_perturbed(self, epsilon: f64, tiny: f64) -> Matrix<F> {
        let System { lower, diagonal, upper, b } = self;
        let (n, columns) = (diagonal.len(), b.columns());
        let zero = F::default();
        if n == 0 {
            return b;
        }
        let size = |x: F| x.modulus();
        let upper = |k: usize| upper.get(k).copied().unwrap_or(zero);
        // The diagonals of U.
        let mut u = vec![[zero; 3]; n];
        u[0] = [diagonal[0], upper(0), zero];
        let mut largest = larger(size(u[0][0]), size(u[0][1]));
        let mut scale = size(u[0][0]) + size(u[0][1]);
        let mut x = b;
        for k in 0..n - 1 {
            let below = lower[k];
            u[k + 1][0] = diagonal[k + 1];
            let next_scale = size(below) + size(diagonal[k + 1]) + size(upper(k + 1));
            if below.is_zero() {
                scale = next_scale;
                u[k + 1][1] = upper(k + 1);
            } else {
                let stay = if u[k][0].is_zero() { F::Real::default() } else { size(u[k][0]) / scale };
                if size(below) / next_scale <= stay {
                    scale = next_scale;
                    let factor = below / u[k][0];
                    u[k + 1][0] = u[k + 1][0] - factor * u[k][1];
                    u[k + 1][1] = upper(k + 1);
                    for j in 0..columns {
                        x[(k + 1, j)] = x[(k + 1, j)] - factor * x[(k, j)];
                    }
                } else {
                    let factor = u[k][0] / below;
                    let above = u[k][1];
                    u[k] = [below, diagonal[k + 1], upper(k + 1)];
                    u[k + 1][0] = above - factor * diagonal[k + 1];
                    u[k + 1][1] = -(factor * upper(k + 1));
                    for j in 0..columns {
                        let (old, row) = (x[(k, j)], x[(k + 1, j)]);
                        x[(k + 1, j)] = old - factor * row;
                        x[(k, j)] = row;
                    }
                    scale = size(u[k + 1][0]) + size(u[k + 1][1]);
                }
            }
            if k + 2 < n {
                largest = u[k].iter().fold(largest, |largest, &u| larger(largest, size(u)));
            }
        }
        largest = larger(largest, size(u[n - 1][0]));
        let perturbation = F::Real::from_f64(epsilon) * largest;
        for k in (0..n).rev() {
            let mut row: Vec<F> = (0..columns)
                .map(|j| {
                    let mut sum = x[(k, j)];
                    for step in 1..3.min(n - k) {
                        sum = sum - u[k][step] * x[(k + step, j)];
                    }
                    sum
                })
                .collect();
            let pivot = perturbed(u[k][0], perturbation, &mut row, tiny);
            for (j, x_j) in row.into_iter().enumerate() {
                x[(k, j)] = x_j / pivot;
            }
        }
        x
    }
}

/// A pivot by which a row can be divided without overflow; the row may be scaled with it.
fn perturbed<F: Field>(mut pivot: F, by: F::Real, row: &mut [F], tiny: f64) -> F {
    let (one, two) = (F::Real::one(), F::Real::from_f64(2.0));
    let (tiny, huge) = (F::Real::from_f64(tiny), F::Real::from_f64(1.0 / tiny));
    let mut by = larger(abs(by), tiny).with_sign_of(pivot.real());
    let largest = row.iter().fold(F::Real::default(), |largest, x| larger(largest, x.modulus()));
    // Each round doubles what is added, so the magnitude reaches 1 long before the limit.
    for _ in 0..4096 {
        let size = pivot.modulus();
        // Nothing helps a NaN.
        if size >= one || size.to_f64().is_nan() {
            break;
        }
        if size < tiny && !size.is_zero() && largest * tiny <= size {
            pivot = pivot.scaled(huge);
            row.iter_mut().for_each(|x| *x = x.scaled(huge));
            break;
        }
        if size < tiny || largest > size * huge {
            pivot = pivot + F::from_real(by);
            by = by * two;
        } else {
            break;
        }
    }
    pivot
}
