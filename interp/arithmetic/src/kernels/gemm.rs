//! Batched matrix products of strided views: `out[b] = lhs[b] * rhs[b]`, `m` x `k` by `k` x `n`, `out`
//! row-major.
//!
//! To compute a dot whose contracting dimensions (in order, the last fastest) form one axis of constant
//! stride in each operand, describe the operands with [`View`] and call [`real`], [`complex`] or [`int`];
//! otherwise copy the operand to (batch, free, contracting) first. Transposed operands need no copy.
//!
//! * [`Accumulate::Exact`]: `out[i][j]` is the exact value of `0 + sum_k lhs[i][k] * rhs[k][j]`, rounded once
//!   into the result type. The leading 0 makes a zero result +0, and that of `k = 0` as well. For complex
//!   numbers the real part is one exact sum of `2k` products, and the imaginary part another.
//! * [`Accumulate::Region`]: from +0, for `k` in increasing order `acc = fl(acc + fl(a * b))` in the
//!   operands' type (`f32` or `f64`), and one rounding into the result type at the end.
//!
//! NaN results are canonical. Infinities and NaN are as IEEE arithmetic on the terms has them in any order: a
//! NaN operand, `inf * 0` or `inf - inf` makes NaN; the overflow of an intermediate does not exist in exact
//! mode.

use num_complex::Complex;

use super::algebra::{RegionComplex, RegionReal, Wrapping};
use super::engine::{Extents, Lhs, Output, Rhs, multiply};
use super::{Integer, Real, gemv};
use crate::sum::fast::Total;
use crate::sum::{Accumulate, Rounded};

/// Extents of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gemm {
    /// Independent products.
    pub batch: usize,
    /// Rows of `lhs` and of `out`.
    pub m: usize,
    /// Columns of `lhs`, rows of `rhs`.
    pub k: usize,
    /// Columns of `rhs` and of `out`.
    pub n: usize,
}

/// A batch of matrices in a slice: element (batch, row, column) is at `batch * b + row * r + column * c`.
#[derive(Clone, Copy, Debug)]
pub struct View<'a, T> {
    /// The elements.
    pub data: &'a [T],
    /// Distance of successive matrices.
    pub batch: usize,
    /// Distance of successive rows.
    pub row: usize,
    /// Distance of successive columns.
    pub column: usize,
}

impl<'a, T: Copy> View<'a, T> {
    /// Dense row-major matrices, one after the other.
    pub fn row_major(data: &'a [T], rows: usize, columns: usize) -> Self {
        View { data, batch: rows * columns, row: columns, column: 1 }
    }

    /// Dense column-major matrices (that is, stored transposed), one after the other.
    pub fn column_major(data: &'a [T], rows: usize, columns: usize) -> Self {
        View { data, batch: rows * columns, row: 1, column: rows }
    }

    #[inline(always)]
    pub(super) fn at(&self, batch: usize, row: usize, column: usize) -> usize {
        batch * self.batch + row * self.row + column * self.column
    }

    /// Copies part of a row.
    #[inline]
    pub(super) fn copy_row(&self, batch: usize, row: usize, column: usize, out: &mut [T]) {
        if out.is_empty() {
            return;
        }
        let data = &self.data[self.at(batch, row, column)..];
        if self.column == 1 {
            out.copy_from_slice(&data[..out.len()]);
        } else if self.column == 0 {
            out.fill(data[0]);
        } else {
            for (to, &from) in out.iter_mut().zip(data.iter().step_by(self.column)) {
                *to = from;
            }
        }
    }

    fn check(&self, what: &str, batch: usize, rows: usize, columns: usize) {
        if batch != 0 && rows != 0 && columns != 0 {
            let last = self.at(batch - 1, rows - 1, columns - 1);
            assert!(last < self.data.len(), "{what} view ends at {last} of {}", self.data.len());
        }
    }

    fn map<U: Copy>(&self, data: &'a [U]) -> View<'a, U> {
        View { data, batch: self.batch, row: self.row, column: self.column }
    }
}

/// The rows of all matrices of a view, numbered on.
struct Rows<'a, T> {
    view: View<'a, T>,
    m: usize,
}

impl<T: Copy + Sync> Lhs<T> for Rows<'_, T> {
    fn holes(&self) -> bool {
        false
    }

    fn fill(&self, row: usize, k: usize, out: &mut [T]) {
        self.view.copy_row(row / self.m, row % self.m, k, out);
    }

    fn present(&self, _row: usize, _k: usize) -> bool {
        true
    }
}

impl<T: Copy + Sync> Rhs<T> for View<'_, T> {
    fn fill(&self, batch: usize, k: usize, column: usize, out: &mut [T]) {
        self.copy_row(batch, k, column, out);
    }

    fn get(&self, batch: usize, k: usize, column: usize) -> T {
        self.data[self.at(batch, k, column)]
    }
}

/// A complex operand read as a real one of `2k` columns: real and imaginary parts interleaved.
pub(super) struct RealRows<L>(pub(super) L);

impl<T: Real, L: Lhs<Complex<T>>> Lhs<T> for RealRows<L> {
    fn holes(&self) -> bool {
        self.0.holes()
    }

    fn fill(&self, row: usize, k: usize, out: &mut [T]) {
        let mut pairs = [Complex::<T>::default(); 64];
        let (mut at, mut filled) = (k, 0);
        while filled < out.len() {
            let wanted = (at % 2 + out.len() - filled).div_ceil(2).min(pairs.len());
            self.0.fill(row, at / 2, &mut pairs[..wanted]);
            for x in pairs[..wanted].iter().flat_map(|x| [x.re, x.im]).skip(at % 2) {
                if filled < out.len() {
                    out[filled] = x;
                    filled += 1;
                }
            }
            at = k + filled;
        }
    }

    fn present(&self, row: usize, k: usize) -> bool {
        self.0.present(row, k / 2)
    }
}

/// A complex operand read as a real one of `2k` rows and `2n` columns, such that the real product of
/// [`RealRows`] with it is the complex product, real and imaginary parts interleaved: `x + iy` is the block
/// `[x y; -y x]`.
pub(super) struct RealBlocks<R>(pub(super) R);

impl<T: Real, R: Rhs<Complex<T>>> Rhs<T> for RealBlocks<R> {
    fn fill(&self, batch: usize, k: usize, column: usize, out: &mut [T]) {
        for (at, out) in out.iter_mut().enumerate() {
            *out = self.get(batch, k, column + at);
        }
    }

    fn get(&self, batch: usize, k: usize, column: usize) -> T {
        let x = self.0.get(batch, k / 2, column / 2);
        match (k % 2, column % 2) {
            (0, 0) => x.re,
            (0, _) => x.im,
            (_, 0) => T::default() - x.im,
            (_, _) => x.re,
        }
    }
}

/// Stores a real product of [`RealRows`] and [`RealBlocks`] into complex elements.
pub(super) fn store_part<O: Rounded>(row: &mut [Complex<O>], column: usize, x: O) {
    let element = &mut row[column / 2];
    if column.is_multiple_of(2) {
        element.re = x;
    } else {
        element.im = x;
    }
}

/// Rounds both parts.
pub(super) fn round_parts<O: Rounded>(sum: &Complex<Total>) -> Option<Complex<O>> {
    Some(Complex { re: sum.re.settle()?, im: sum.im.settle()? })
}

fn store<O>(row: &mut [O], column: usize, x: O) {
    row[column] = x;
}

fn check<T: Copy, U>(dims: Gemm, lhs: &View<T>, rhs: &View<T>, out: &[U]) -> Extents {
    let Gemm { batch, m, k, n } = dims;
    lhs.check("lhs", batch, m, k);
    rhs.check("rhs", batch, k, n);
    assert_eq!(out.len(), batch * m * n, "result of {dims:?}");
    Extents { batch, m, k, n }
}

fn widened<T: Real>(x: &[T]) -> Vec<f64> {
    x.iter().map(|x| x.widen()).collect()
}

/// A product of real matrices.
pub fn real<T: Real, O: Rounded>(mode: Accumulate, dims: Gemm, lhs: View<T>, rhs: View<T>, out: &mut [O]) {
    let extents = check(dims, &lhs, &rhs, out);
    let rows = Rows { view: lhs, m: dims.m };
    let output = Output { round: Total::settle, store, stride: dims.n };
    match mode {
        Accumulate::Region => multiply::<RegionReal<T>, _, _>(extents, &rows, &rhs, out, &output),
        Accumulate::Exact if O::WIDE && T::NARROW => {
            let (l, r) = (widened(lhs.data), widened(rhs.data));
            real(mode, dims, lhs.map(&l), rhs.map(&r), out);
        }
        Accumulate::Exact if gemv::real(dims, lhs, rhs, out) => {}
        Accumulate::Exact => multiply::<T::Exact, _, _>(extents, &rows, &rhs, out, &output),
    }
}

/// A product of complex matrices.
pub fn complex<T: Real, O: Rounded>(
    mode: Accumulate,
    dims: Gemm,
    lhs: View<Complex<T>>,
    rhs: View<Complex<T>>,
    out: &mut [Complex<O>],
) {
    let extents = check(dims, &lhs, &rhs, out);
    let rows = Rows { view: lhs, m: dims.m };
    match mode {
        Accumulate::Region => {
            let output = Output { round: round_parts, store, stride: dims.n };
            multiply::<RegionComplex<T>, _, _>(extents, &rows, &rhs, out, &output);
        }
        Accumulate::Exact => {
            let extents = Extents { k: 2 * dims.k, n: 2 * dims.n, ..extents };
            let output = Output { round: Total::settle, store: store_part, stride: dims.n };
            multiply::<T::Exact, _, _>(extents, &RealRows(rows), &RealBlocks(rhs), out, &output);
        }
    }
}

/// A product of integer matrices, modulo 2^width in both modes. Narrower or sub-byte integers: widen, and
/// truncate the result.
pub fn int<T: Integer>(dims: Gemm, lhs: View<T>, rhs: View<T>, out: &mut [T]) {
    let extents = check(dims, &lhs, &rhs, out);
    let rows = Rows { view: lhs, m: dims.m };
    let output = Output { round: |&x: &T| Some(x), store, stride: dims.n };
    multiply::<Wrapping<T>, _, _>(extents, &rows, &rhs, out, &output);
}
