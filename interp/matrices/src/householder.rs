//! Elementary reflectors H = I - tau v v^H with v = (1, tail), as LAPACK's `larfg` makes them: H^H maps a
//! vector to (beta, 0, ..., 0) with beta real and of the opposite sign to the real part of the first element.

use std::ops::Range;

use hlo_threads::parallel;

use super::Matrix;
use super::matrix::{add_multiple, dots, excess_of, hypotenuse, largest, norm_with, shift};
use super::product::{COLUMNS, Left, rows_of};
use crate::wide::{Field, Real};

/// Reflectors that are applied together.
pub(crate) const BLOCK: usize = 36;
/// Columns of a task.
pub(super) const TASK: usize = 4 * COLUMNS;

/// Replaces a vector by (beta, tail) and gives tau, which is 0 if the vector is already of the form (real, 0,
/// ..., 0).
pub(crate) fn reflector<F: Field>(x: &mut [F]) -> F {
    let Some((first, tail)) = x.split_first() else { return F::default() };
    let (first, rest) = (largest(&[*first]), largest(tail));
    // NaN if one of them is.
    let e = excess_of::<F>(if first > rest || first.is_nan() { first } else { rest });
    if e != 0 {
        shift(x, -e);
        let tau = reflector_in_range(x, None);
        shift(&mut x[..1], e);
        if tau.is_zero() {
            shift(&mut x[1..], e);
        }
        return tau;
    }
    reflector_in_range(x, Some(rest))
}

/// [`reflector`] of what has no excess. `rest` is the largest magnitude but for the first element, if that is
/// known.
fn reflector_in_range<F: Field>(x: &mut [F], rest: Option<f64>) -> F {
    let Some((first, tail)) = x.split_first_mut() else { return F::default() };
    let alpha = *first;
    let tail_norm = norm_with(tail, excess_of::<F>(rest.unwrap_or_else(|| largest(tail))));
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
    let height = a.rows();
    let columns = &mut a.elements_mut()[columns.start * height..columns.end * height];
    reflect(columns, height, row, tail, tau);
}

/// Applies H from the left to the rows from `row` on of columns of that height: four at a time, which changes
/// no bit.
pub(super) fn reflect<F: Field>(columns: &mut [F], height: usize, row: usize, tail: &[F], tau: F) {
    if tau.is_zero() || height == 0 {
        return;
    }
    match *tail {
        [one] => return reflect_few(columns, height, row, [one], tau),
        [one, two] => return reflect_few(columns, height, row, [one, two], tau),
        _ => {}
    }
    let mut groups = columns.chunks_exact_mut(4 * height);
    for group in &mut groups {
        let (left, right) = group.split_at_mut(2 * height);
        let ((a, b), (c, d)) = (left.split_at_mut(height), right.split_at_mut(height));
        reflect_some([a, b, c, d], row, tail, tau);
    }
    for column in groups.into_remainder().chunks_exact_mut(height) {
        reflect_some([column], row, tail, tau);
    }
}

/// The same for short vectors: bulge chasing has millions of them.
fn reflect_few<F: Field, const N: usize>(columns: &mut [F], height: usize, row: usize, tail: [F; N], tau: F) {
    for column in columns.chunks_exact_mut(height) {
        let Some((first, rest)) = column[row..].split_first_mut() else { return };
        let Some(rest) = rest.first_chunk_mut::<N>() else { return };
        let mut product = F::default();
        for (x, &y) in tail.iter().zip(&*rest) {
            product = product + F::default().plus_product(x.conj(), y);
        }
        let sum = tau * (*first + product);
        *first = *first - sum;
        add_multiple(rest, &tail, -sum);
    }
}

fn reflect_some<F: Field, const N: usize>(mut columns: [&mut [F]; N], row: usize, tail: &[F], tau: F) {
    let products: [F; N] = dots(tail, std::array::from_fn(|c| &columns[c][row + 1..]));
    for (column, product) in columns.iter_mut().zip(products) {
        let sum = tau * (column[row] + product);
        column[row] = column[row] - sum;
        add_multiple(&mut column[row + 1..], tail, -sum);
    }
}

/// The same as [`apply_right`] of a few elements, to the first columns.
fn apply_right_few<F: Field, const N: usize>(
    columns: &mut [F],
    height: usize,
    rows: Range<usize>,
    tail: [F; N],
    tau: F,
) {
    let mut columns = columns.chunks_exact_mut(height).map(|column| &mut column[rows.clone()]);
    let Some(first) = columns.next() else { return };
    let mut others: [&mut [F]; N] = std::array::from_fn(|_| columns.next().unwrap_or_default());
    let count = first.len();
    if others.iter().any(|column| column.len() != count) {
        return;
    }
    for (i, x) in first.iter_mut().enumerate() {
        let mut sum = *x;
        for (other, &v) in others.iter().zip(&tail) {
            sum = sum.plus_product(other[i], v);
        }
        sum = sum * tau;
        *x = x.plus_product(sum, -F::one().conj());
        for (other, &v) in others.iter_mut().zip(&tail) {
            other[i] = other[i].plus_product(sum, -v.conj());
        }
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
    let height = a.rows();
    let columns = &mut a.elements_mut()[column * height..];
    match *tail {
        [one] => return apply_right_few(columns, height, rows, [one], tau),
        [one, two] => return apply_right_few(columns, height, rows, [one, two], tau),
        _ => {}
    }
    let mut sums = a.column(column)[rows.clone()].to_vec();
    let part = |k: usize| &a.column(column + 1 + k)[rows.clone()];
    let (fours, rest) = tail.as_chunks::<4>();
    for (k, v) in fours.iter().enumerate() {
        let parts = [0, 1, 2, 3].map(|c| &part(4 * k + c)[..sums.len()]);
        for (i, sum) in sums.iter_mut().enumerate() {
            let mut own = *sum;
            for (part, &v) in parts.iter().zip(v) {
                own = own.plus_product(part[i], v);
            }
            *sum = own;
        }
    }
    for (k, &v) in rest.iter().enumerate() {
        add_multiple(&mut sums, part(4 * fours.len() + k), v);
    }
    for sum in &mut sums {
        *sum = *sum * tau;
    }
    for (k, v) in std::iter::once(F::one()).chain(tail.iter().copied()).enumerate() {
        add_multiple(&mut a.column_mut(column + k)[rows.clone()], &sums, -v.conj());
    }
}

/// The product H1 H2 ... Hk = I - V T V^H of reflectors, each of which begins one row below the one before
/// it.
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
    /// The first reflector begins in that row. Tails are of falling length, to the last row of what they are
    /// applied to.
    pub(crate) fn new(row: usize, tails: &[&[F]], taus: &[F]) -> Self {
        let count = tails.len();
        let rows = tails.first().map_or(0, |tail| tail.len() + 1);
        // V, with its 1s and the 0s above them.
        let mut v = Matrix::zeros(rows, count);
        for (j, tail) in tails.iter().enumerate() {
            let column = v.column_mut(j);
            column[j] = F::one();
            column[j + 1..].copy_from_slice(tail);
        }
        let adjoint = Left::of_columns(count, rows, |j| v.column(j));
        let vectors = Left::new(rows, count, |first, column, out| {
            out.copy_from_slice(&v.column(column)[first..][..out.len()]);
        });
        // By columns: what came before, times how much of it the new reflector has.
        let mut t = Matrix::zeros(count, count);
        let mut products = vec![F::default(); count];
        for j in 0..count {
            // V^H v, from where v begins.
            let new = &v.column(j)[j..];
            let mut l = 0;
            while l + 4 <= j {
                let parts: [F; 4] = dots(new, std::array::from_fn(|c| &v.column(l + c)[j..]));
                products[l..l + 4].copy_from_slice(&parts);
                l += 4;
            }
            for (l, product) in products.iter_mut().enumerate().take(j).skip(l) {
                *product = dots(new, [&v.column(l)[j..]])[0];
            }
            let (before, column) = t.elements_mut().split_at_mut(j * count);
            for (l, (earlier, product)) in before.chunks_exact(count).zip(&products).enumerate() {
                // The product the other way round is the conjugate.
                add_multiple(&mut column[..=l], &earlier[..=l], -(product.conj() * taus[j]));
            }
            column[j] = taus[j];
        }
        let factor = Left::new(count, count, |first, k, out| {
            out.copy_from_slice(&t.column(k)[first..][..out.len()]);
        });
        let factor_adjoint = Left::of_columns(count, count, |k| t.column(k));
        Self { row, adjoint, vectors, factor, factor_adjoint, count, rows }
    }

    /// Of columns of that height, tails below row `row`, `row + 1`, ...
    pub(super) fn of(columns: &[F], height: usize, row: usize, taus: &[F]) -> Self {
        let tails: Vec<&[F]> = (0..taus.len()).map(|k| &columns[k * height..][row + k + 1..height]).collect();
        Self::new(row, &tails, taus)
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

/// Rows up to which reflectors are applied one after the other: to make blocks of them is more work.
const FEW: usize = 40;

/// Multiplies a matrix from the left by a product of reflectors, each of which begins one row below the one
/// before it: reflector k in row `row + k`, its tail is that.
pub(super) fn multiply<'a, F: Field + 'a>(
    row: usize,
    taus: &[F],
    tail: impl Fn(usize) -> &'a [F] + Sync,
    c: &mut Matrix<F>,
) {
    let height = c.rows();
    if height > FEW {
        return Reflectors::new(row, taus, tail).apply(c, false);
    }
    for (k, &tau) in taus.iter().enumerate().rev() {
        reflect(c.elements_mut(), height, row + k, tail(k), tau);
    }
}

/// Reflectors, each of which begins one row below the one before it, in blocks.
pub(crate) struct Reflectors<F> {
    blocks: Vec<Block<F>>,
}

impl<F: Field> Reflectors<F> {
    /// Reflector k begins in row `row + k`; its tail is that.
    pub(crate) fn new<'a>(row: usize, taus: &[F], tail: impl Fn(usize) -> &'a [F] + Sync) -> Self
    where
        F: 'a,
    {
        let block = |i: usize| {
            let first = i * BLOCK;
            let taus = &taus[first..(first + BLOCK).min(taus.len())];
            let tails: Vec<&[F]> = (0..taus.len()).map(|k| tail(first + k)).collect();
            Block::new(row + first, &tails, taus)
        };
        Self { blocks: parallel::collect(taus.len().div_ceil(BLOCK), &block) }
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
