//! Exact products of matrices and vectors: each element of a matrix is used once, so that packing it, as
//! [`super::engine`] does, would take longer than the product.

use hlo_threads::parallel;

use super::Real;
use super::algebra::Algebra;
use super::gemm::{Gemm, View};
use crate::sum::Rounded;

/// Outputs that are summed side by side where the matrix is contiguous across them.
const STRIP: usize = 512;
/// Terms that one task adds at least.
const TASK: usize = 1 << 15;

/// `out[r] = sum_k matrix[r][k] * vector[k]`, in each batch.
struct Product<'a, T> {
    matrix: View<'a, T>,
    vector: Vec<T>,
    k: usize,
}

/// Multiplies if one side is a vector and the matrix is contiguous along one of its dimensions; says whether
/// it did.
pub(super) fn real<T: Real, O: Rounded>(dims: Gemm, lhs: View<T>, rhs: View<T>, out: &mut [O]) -> bool {
    if !T::Exact::THIN || out.is_empty() {
        return false;
    }
    let (matrix, vector, rows) = if dims.n == 1 {
        (lhs, View { row: rhs.column, column: rhs.row, ..rhs }, dims.m)
    } else if dims.m == 1 {
        (View { row: rhs.column, column: rhs.row, ..rhs }, lhs, dims.n)
    } else {
        return false;
    };
    if matrix.column != 1 && matrix.row != 1 {
        return false;
    }
    let mut values = vec![T::default(); dims.batch * dims.k];
    if dims.k > 0 {
        for (batch, values) in values.chunks_exact_mut(dims.k).enumerate() {
            vector.copy_row(batch, 0, 0, values);
        }
    }
    let product = Product { matrix, vector: values, k: dims.k };
    if matrix.column == 1 {
        let least = TASK.div_ceil(dims.k.max(1));
        parallel::pieces(out, least, 1, &|i, out| {
            for (at, out) in out.iter_mut().enumerate() {
                let (batch, row) = ((i * least + at) / rows, (i * least + at) % rows);
                *out = product.row(batch, row);
            }
        });
    } else if dims.batch == 1 {
        parallel::pieces(out, STRIP, 1, &|i, out| product.strip(0, i * STRIP, out));
    } else {
        let least = TASK.div_ceil((dims.k * rows).max(1));
        parallel::pieces(out, rows, least, &|batch, out| {
            for (i, out) in out.chunks_mut(STRIP).enumerate() {
                product.strip(batch, i * STRIP, out);
            }
        });
    }
    true
}

impl<T: Real> Product<'_, T> {
    fn vector(&self, batch: usize) -> &[T] {
        &self.vector[batch * self.k..][..self.k]
    }

    /// One output, of a contiguous row.
    fn row<O: Rounded>(&self, batch: usize, row: usize) -> O {
        if self.k == 0 {
            return self.slowly(batch, row);
        }
        let terms = &self.matrix.data[self.matrix.at(batch, row, 0)..][..self.k];
        T::Exact::line(terms, self.vector(batch)).settle().unwrap_or_else(|| self.slowly(batch, row))
    }

    /// Outputs from `first` on, along which the matrix is contiguous.
    fn strip<O: Rounded>(&self, batch: usize, first: usize, out: &mut [O]) {
        let (mut s, mut abs) = ([0.0; STRIP], [0.0; STRIP]);
        let (s, abs) = (&mut s[..out.len()], &mut abs[..out.len()]);
        for (k, &x) in self.vector(batch).iter().enumerate() {
            let terms = &self.matrix.data[self.matrix.at(batch, first, k)..][..out.len()];
            T::Exact::across(terms, x, s, abs);
        }
        for (row, (out, (&s, &abs))) in out.iter_mut().zip(s.iter().zip(&*abs)).enumerate() {
            let sum = T::Exact::across_sum(s, abs, self.k);
            *out = sum.settle().unwrap_or_else(|| self.slowly(batch, first + row));
        }
    }

    #[cold]
    fn slowly<O: Rounded>(&self, batch: usize, row: usize) -> O {
        let vector = self.vector(batch).iter().enumerate();
        let terms: Vec<(T, T)> =
            vector.map(|(k, &x)| (self.matrix.data[self.matrix.at(batch, row, k)], x)).collect();
        let close = T::Exact::closely(&terms).and_then(|sum| sum.settle());
        close
            .or_else(|| T::Exact::slowly(terms.into_iter()).settle())
            .expect("invariant: the terms themselves decide")
    }
}
