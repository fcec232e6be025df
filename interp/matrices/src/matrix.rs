//! Matrices over a wide field.

use std::ops::{Index, IndexMut, Range};

use hlo_arithmetic::scalar::dd::exponent_of;
use hlo_threads::parallel;

use crate::wide::{Field, Real, Widened};

/// Columns of a part that is transposed at a time: a cache line of f32.
const WIDE: usize = 16;
/// Rows of it: a cache line of f64.
const HIGH: usize = 8;
/// Elements that are worth a task.
const MANY: usize = 1 << 15;

/// A matrix, column after column. **Invariant:** `elements` holds `rows * columns` numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix<F> {
    rows: usize,
    columns: usize,
    elements: Vec<F>,
}

impl<F> Index<(usize, usize)> for Matrix<F> {
    type Output = F;

    #[inline(always)]
    fn index(&self, (row, column): (usize, usize)) -> &F {
        &self.elements[column * self.rows + row]
    }
}

impl<F> IndexMut<(usize, usize)> for Matrix<F> {
    #[inline(always)]
    fn index_mut(&mut self, (row, column): (usize, usize)) -> &mut F {
        &mut self.elements[column * self.rows + row]
    }
}

impl<F: Field> Matrix<F> {
    /// All 0.
    pub fn zeros(rows: usize, columns: usize) -> Self {
        Self { rows, columns, elements: vec![F::default(); rows * columns] }
    }

    /// 1 on the diagonal.
    pub(crate) fn identity(rows: usize, columns: usize) -> Self {
        let mut out = Self::zeros(rows, columns);
        out.elements.iter_mut().step_by(rows + 1).take(columns).for_each(|x| *x = F::one());
        out
    }

    /// From a function of row and column.
    pub(crate) fn from_fn(rows: usize, columns: usize, f: impl Fn(usize, usize) -> F) -> Self {
        let mut elements = Vec::with_capacity(rows * columns);
        for j in 0..columns {
            elements.extend((0..rows).map(|i| f(i, j)));
        }
        Self { rows, columns, elements }
    }

    /// From elements in row-major order.
    pub fn widened<T: Widened<Wide = F>>(elements: &[T], rows: usize, columns: usize) -> Self {
        let mut out = Self::zeros(rows, columns);
        parallel::pieces(&mut out.elements, WIDE * rows, MANY.div_ceil(WIDE * rows + 1), &|piece, out| {
            let first = piece * WIDE;
            for i in (0..rows).step_by(HIGH) {
                let source = elements[i * columns..].chunks(columns);
                if out.len() == WIDE * rows && i + HIGH <= rows {
                    let mut block = [[F::default(); HIGH]; WIDE];
                    for (r, row) in source.take(HIGH).enumerate() {
                        for (block, x) in block.iter_mut().zip(&row[first..first + WIDE]) {
                            block[r] = x.widen();
                        }
                    }
                    for (column, block) in out.chunks_exact_mut(rows).zip(&block) {
                        column[i..i + HIGH].copy_from_slice(block);
                    }
                    continue;
                }
                for (r, row) in source.take(HIGH).enumerate() {
                    for (column, x) in out.chunks_exact_mut(rows).zip(&row[first..]) {
                        column[i + r] = x.widen();
                    }
                }
            }
        });
        out
    }

    /// Appends the rounded elements in row-major order.
    pub fn narrow_into<T: Widened<Wide = F>>(&self, out: &mut Vec<T>) {
        let start = out.len();
        out.resize(start + self.rows * self.columns, T::narrow(F::default()));
        self.narrow_to(&mut out[start..]);
    }

    /// Writes the rounded elements in row-major order.
    pub fn narrow_to<T: Widened<Wide = F>>(&self, out: &mut [T]) {
        let (rows, columns) = (self.rows, self.columns);
        parallel::pieces(out, HIGH * columns, MANY.div_ceil(HIGH * columns + 1), &|piece, out| {
            let first = piece * HIGH;
            for j in (0..columns).step_by(WIDE) {
                let source = self.elements[j * rows..].chunks_exact(rows);
                if out.len() == HIGH * columns && j + WIDE <= columns {
                    let mut block = [[T::narrow(F::default()); WIDE]; HIGH];
                    for (c, column) in source.take(WIDE).enumerate() {
                        for (block, &x) in block.iter_mut().zip(&column[first..first + HIGH]) {
                            block[c] = T::narrow(x);
                        }
                    }
                    for (row, block) in out.chunks_exact_mut(columns).zip(&block) {
                        row[j..j + WIDE].copy_from_slice(block);
                    }
                    continue;
                }
                for (c, column) in source.take(WIDE).enumerate() {
                    for (row, &x) in out.chunks_exact_mut(columns).zip(&column[first..]) {
                        row[j + c] = T::narrow(x);
                    }
                }
            }
        });
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// A column.
    #[inline(always)]
    pub(crate) fn column(&self, j: usize) -> &[F] {
        &self.elements[j * self.rows..][..self.rows]
    }

    /// A column.
    #[inline(always)]
    pub(crate) fn column_mut(&mut self, j: usize) -> &mut [F] {
        &mut self.elements[j * self.rows..][..self.rows]
    }

    /// Two columns, the first before the second.
    pub(crate) fn two_columns_mut(&mut self, i: usize, j: usize) -> (&mut [F], &mut [F]) {
        let (before, after) = self.elements.split_at_mut(j * self.rows);
        (&mut before[i * self.rows..][..self.rows], &mut after[..self.rows])
    }

    /// Exchanges two columns.
    pub(crate) fn swap_columns(&mut self, i: usize, j: usize) {
        if i != j {
            let (a, b) = self.two_columns_mut(i.min(j), i.max(j));
            a.swap_with_slice(b);
        }
    }

    /// Exchanges two rows within some columns.
    pub(crate) fn swap_rows(&mut self, i: usize, j: usize, columns: Range<usize>) {
        if i != j {
            for column in columns {
                self.column_mut(column).swap(i, j);
            }
        }
    }

    /// All elements, column after column.
    pub fn elements(&self) -> &[F] {
        &self.elements
    }

    /// All elements, column after column.
    pub(crate) fn elements_mut(&mut self) -> &mut [F] {
        &mut self.elements
    }

    /// Of other elements.
    pub(crate) fn map<G: Field>(&self, f: impl Fn(F) -> G) -> Matrix<G> {
        let elements = self.elements.iter().map(|&x| f(x)).collect();
        Matrix { rows: self.rows, columns: self.columns, elements }
    }

    /// Conjugated and transposed.
    pub fn adjoint(&self) -> Self {
        Self::from_fn(self.columns, self.rows, |i, j| self[(j, i)].conj())
    }

    /// Whether all elements are finite.
    pub fn is_finite(&self) -> bool {
        self.elements.iter().all(|x| x.is_finite())
    }

    /// Multiplies by a power of two such that algorithms which form squares neither overflow nor underflow,
    /// and gives the exponent to undo it by: 0 for nearly all matrices.
    pub(crate) fn tame(&mut self) -> i32 {
        let e = excess(&self.elements);
        if e != 0 {
            shift(&mut self.elements, -e);
        }
        e
    }
}

/// Partial results of what is gathered from a vector: element i goes to number i modulo this, the rest is a
/// tree.
const LANES: usize = 16;

/// The largest magnitude of a part; NaN if there is one.
pub(crate) fn largest<F: Field>(x: &[F]) -> f64 {
    let join = |most: &mut f64, nan: &mut f64, x: F| {
        let (re, im) = (x.real().to_f64(), x.imag().to_f64());
        for part in [re.abs(), if F::COMPLEX { im.abs() } else { 0.0 }] {
            *most = if part > *most { part } else { *most };
            // NaN once it is.
            *nan += part * 0.0;
        }
    };
    let (mut most, mut nan) = ([0.0f64; LANES], [0.0f64; LANES]);
    if x.len() < LANES {
        x.iter().for_each(|&x| join(&mut most[0], &mut nan[0], x));
        if !nan[0].is_nan() {
            return most[0];
        }
    }
    let mut gather = |x: &[F]| {
        most.iter_mut().zip(&mut nan).zip(x).for_each(|((most, nan), &x)| join(most, nan, x));
    };
    let (chunks, rest) = x.as_chunks::<LANES>();
    chunks.iter().for_each(|chunk| gather(chunk));
    gather(rest);
    // An infinity is not a number here either; it is the largest nevertheless.
    let has_nan = nan.iter().any(|nan| nan.is_nan())
        && x.iter().any(|x| x.real().to_f64().is_nan() || x.imag().to_f64().is_nan());
    if has_nan { f64::NAN } else { most.iter().fold(0.0, |most, &x| f64::max(most, x)) }
}

/// The inner product x^H y, of as many elements as x has: [`LANES`] sums, then their sum by halves; of a few
/// elements one sum.
pub(crate) fn dot<F: Field>(x: &[F], y: &[F]) -> F {
    let y = &y[..x.len()];
    if x.len() < LANES {
        return x.iter().zip(y).fold(F::default(), |sum, (x, &y)| sum.plus_product(x.conj(), y));
    }
    let mut lanes = [F::default(); LANES];
    let mut add = |x: &[F], y: &[F]| {
        for ((sum, &x), &y) in lanes.iter_mut().zip(x).zip(y) {
            *sum = sum.plus_product(x.conj(), y);
        }
    };
    let ((chunks, rest), (others, others_rest)) = (x.as_chunks::<LANES>(), y.as_chunks::<LANES>());
    chunks.iter().zip(others).for_each(|(x, y)| add(x, y));
    add(rest, others_rest);
    total(lanes)
}

/// Sums that [`dots`] has for each column.
const SUMS: usize = 8;

/// The inner products x^H y with some vectors y, of as many elements as x has: [`SUMS`] sums each, then their
/// sum by halves.
#[inline(always)]
pub(crate) fn dots<F: Field, const N: usize>(x: &[F], ys: [&[F]; N]) -> [F; N] {
    let ys = ys.map(|y| &y[..x.len()]);
    let mut sums = [[F::default(); SUMS]; N];
    let (chunks, rest) = x.as_chunks::<SUMS>();
    let parts = ys.map(|y| &y.as_chunks::<SUMS>().0[..chunks.len()]);
    for (i, x) in chunks.iter().enumerate() {
        for (sums, part) in sums.iter_mut().zip(&parts) {
            for l in 0..SUMS {
                sums[l] = sums[l].plus_product(x[l].conj(), part[i][l]);
            }
        }
    }
    let at = x.len() - rest.len();
    for (sums, y) in sums.iter_mut().zip(&ys) {
        for ((sum, &x), &y) in sums.iter_mut().zip(rest).zip(&y[at..]) {
            *sum = sum.plus_product(x.conj(), y);
        }
    }
    sums.map(total)
}

/// The sum by halves of a power of two of numbers.
pub(crate) fn total<F: Field, const N: usize>(mut lanes: [F; N]) -> F {
    let mut half = N / 2;
    while half > 0 {
        for i in 0..half {
            lanes[i] = lanes[i] + lanes[i + half];
        }
        half /= 2;
    }
    lanes[0]
}

/// y += x factor.
pub(crate) fn add_multiple<F: Field>(y: &mut [F], x: &[F], factor: F) {
    for (y, &x) in y.iter_mut().zip(x) {
        *y = y.plus_product(x, factor);
    }
}

/// The exponent of the largest magnitude if squares and products of such numbers leave the range in which
/// double-double arithmetic is precise, otherwise 0.
pub(crate) fn excess<F: Field>(x: &[F]) -> i32 {
    excess_of::<F>(largest(x))
}

/// [`excess`], of the largest magnitude.
pub(crate) fn excess_of<F: Field>(largest: f64) -> i32 {
    if largest == 0.0 || !largest.is_finite() {
        return 0;
    }
    let e = exponent_of(largest);
    if e.abs() > F::Real::SAFE { e } else { 0 }
}

/// Multiplies by 2^e.
pub(crate) fn shift<F: Field>(x: &mut [F], e: i32) {
    for x in x {
        *x = F::from_parts(x.real().shifted(e), x.imag().shifted(e));
    }
}

/// The real part of the inner product of a vector with that of a guide, of the same field or in f64.
pub(crate) fn agreement<F: Field, G: Field>(x: &[F], guide: &[G]) -> f64 {
    let product = |(x, g): (&F, &G)| {
        let real = x.real().to_f64() * g.real().to_f64();
        if F::COMPLEX { real + x.imag().to_f64() * g.imag().to_f64() } else { real }
    };
    x.iter().zip(guide).map(product).sum()
}

/// Changes the sign.
pub(crate) fn negate<F: Field>(x: &mut [F]) {
    x.iter_mut().for_each(|x| *x = -*x);
}

/// The Euclidean norm.
pub(crate) fn norm<F: Field>(x: &[F]) -> F::Real {
    norm_with(x, excess(x))
}

/// [`norm`], of a vector whose [`excess`] is known.
pub(crate) fn norm_with<F: Field>(x: &[F], excess: i32) -> F::Real {
    match excess {
        0 => dot(x, x).real().root(),
        e => {
            let mut near = x.to_vec();
            shift(&mut near, -e);
            dot(&near, &near).real().root().shifted(e)
        }
    }
}

/// The square root of the sum of two squares.
#[inline(always)]
pub(crate) fn hypotenuse<R: Real>(x: R, y: R) -> R {
    let (a, b) = (x.to_f64().abs(), y.to_f64().abs());
    let largest = if a > b { a } else { b };
    // Also what is not a number needs no scaling.
    let e = if largest == 0.0 || !largest.is_finite() { 0 } else { exponent_of(largest) };
    if e.abs() <= R::SAFE {
        return (x * x).plus_product(y, y).root();
    }
    let (x, y) = (x.shifted(-e), y.shifted(-e));
    (x * x).plus_product(y, y).root().shifted(e)
}
