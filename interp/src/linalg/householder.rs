//! Elementary reflectors H = I - tau v v^H with v = (1, tail), as LAPACK's `larfg` makes them: H^H maps a vector to
//! (beta, 0, ..., 0) with beta real and of the opposite sign to the real part of the first element.

use std::ops::Range;

use super::Matrix;
use super::matrix::{add_multiple, dot, excess, hypotenuse, norm, shift};
use super::product::{COLUMNS, Left, rows_of};
use crate::parallel;
use crate::scalar::wide::{Field, Real};

/// Reflectors that are applied together.
pub(crate) const BLOCK: usize = 36;
/// Columns of a task.
const TASK: usize = 4 * COLUMNS;

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
        let sum = tau * (column[0] + dot(tail, &column[1..]));
        column[0] = column[0] - sum;
        add_multiple(&mut column[1..], tail, -sum);
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
        add_multiple(&mut sums, &a.column(column + 1 + k)[rows.clone()], v);
    }
    for sum in &mut sums {
        *sum = *sum * tau;
    }
    for (k, v) in std::iter::once(F::one()).chain(tail.iter().copied()).enumerate() {
        add_multiple(&mut a.column_mut(column + k)[rows.clone()], &sums, -v.conj());
    }
}

/// The product H1 H2 ... Hk = I - V T V^H of reflectors, each of which begins one row below the one before it.
pub(crate) struct Block<F> {
    row: usize,
    /// V^H, V, T and T^H.
    adjoint: Left<F>,
    vectors: Left<F>,
    factor: Left<F>,
    factor_adjoint: Left<F>,
    count: usize,
    rows: usize,
}

impl<F: Field> Block<F> {
    /// The first reflector begins in that row. Tails are of falling length, to the last row of what they are applied to.
    pub(crate) fn new(row: usize, tails: &[&[F]], taus: &[F]) -> Self {
        let count = tails.len();
        let rows = tails.first().map_or(0, |tail| tail.len() + 1);
        let element = |i: usize, j: usize| match i.checked_sub(j) {
            None => F::default(),
            Some(0) => F::one(),
            Some(below) => tails[j][below - 1],
        };
        let adjoint = Left::new(count, rows, |first, row, out| {
            for (r, out) in out.iter_mut().enumerate() {
                *out = element(row, first + r).conj();
            }
        });
        let vectors = Left::new(rows, count, |first, column, out| {
            for (r, out) in out.iter_mut().enumerate() {
                *out = element(first + r, column);
            }
        });
        // -V^H V, of which what is above the diagonal counts.
        let mut products = Matrix::zeros(count, count);
        let mut right = vec![[F::default(); COLUMNS]; rows];
        for (group, columns) in products.elements_mut().chunks_mut((COLUMNS * count).max(1)).enumerate() {
            for (i, right) in right.iter_mut().enumerate() {
                for (c, x) in right[..columns.len() / count].iter_mut().enumerate() {
                    *x = element(i, group * COLUMNS + c);
                }
            }
            adjoint.subtract(&right, columns, count, 0);
        }
        // By columns: what came before, times how much of it the new reflector has.
        let mut t = Matrix::zeros(count, count);
        for j in 0..count {
            let mut column = vec![F::default(); j];
            for l in 0..j {
                add_multiple(&mut column[..=l], &t.column(l)[..=l], products[(l, j)] * taus[j]);
            }
            t.column_mut(j)[..j].copy_from_slice(&column);
            t[(j, j)] = taus[j];
        }
        let left = |t: &Matrix<F>| {
            Left::new(count, count, |first, k, out| {
                out.copy_from_slice(&t.column(k)[first..][..out.len()]);
            })
        };
        Self { row, adjoint, vectors, factor: left(&t), factor_adjoint: left(&t.adjoint()), count, rows }
    }

    /// Multiplies columns of `height` rows from the left by the product, or by its adjoint.
    pub(crate) fn apply(&self, columns: &mut [F], height: usize, adjoint: bool) {
        if self.count == 0 || height == 0 {
            return;
        }
        let factor = if adjoint { &self.factor_adjoint } else { &self.factor };
        parallel::pieces(columns, TASK * height, 1, &|_, columns| {
            let mut right = vec![[F::default(); COLUMNS]; self.rows];
            let mut sums = vec![F::default(); self.count * COLUMNS];
            for group in columns.chunks_mut(COLUMNS * height) {
                rows_of(group, height, self.row, &mut right);
                // Each product comes with the opposite sign.
                for left in [&self.adjoint, factor] {
                    sums.fill(F::default());
                    let depth = if std::ptr::eq(left, factor) { self.count } else { self.rows };
                    left.subtract(&right[..depth], &mut sums, self.count, 0);
                    rows_of(&sums, self.count, 0, &mut right[..self.count]);
                }
                self.vectors.subtract(&right[..self.count], group, height, self.row);
            }
        });
    }
}

/// Reflectors, each of which begins one row below the one before it, in blocks.
pub(crate) struct Reflectors<F> {
    blocks: Vec<Block<F>>,
}

impl<F: Field> Reflectors<F> {
    /// Reflector k begins in row `row + k`; its tail is that.
    pub(crate) fn new<'a>(row: usize, taus: &[F], tail: impl Fn(usize) -> &'a [F]) -> Self
    where
        F: 'a,
    {
        let block = |(i, taus): (usize, &[F])| {
            let tails: Vec<&[F]> = (0..taus.len()).map(|k| tail(i * BLOCK + k)).collect();
            Block::new(row + i * BLOCK, &tails, taus)
        };
        Self { blocks: taus.chunks(BLOCK).enumerate().map(block).collect() }
    }

    /// Multiplies from the left by their product, or by its adjoint.
    pub(crate) fn apply(&self, c: &mut Matrix<F>, adjoint: bool) {
        let height = c.rows();
        let apply = |block: &Block<F>| block.apply(c.elements_mut(), height, adjoint);
        if adjoint { self.blocks.iter().for_each(apply) } else { self.blocks.iter().rev().for_each(apply) }
    }

    /// Their product: of as many columns.
    pub(crate) fn form(&self, rows: usize, columns: usize) -> Matrix<F> {
        let mut q = Matrix::identity(rows, columns);
        for block in self.blocks.iter().rev() {
            // What is left of and above a block is that of the identity.
            let first = block.row.min(columns);
            block.apply(&mut q.elements_mut()[first * rows..], rows, false);
        }
        q
    }
}
