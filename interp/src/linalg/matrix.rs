//! Matrices over a wide field.

use std::ops::{Index, IndexMut, Range};

use crate::scalar::dd::exponent_of;
use crate::scalar::wide::{Field, Real, Widened, abs};

/// A matrix, column after column. **Invariant:** `elements` holds `rows * columns` numbers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Matrix<F> {
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
    pub(crate) fn zeros(rows: usize, columns: usize) -> Self {
        Self { rows, columns, elements: vec![F::default(); rows * columns] }
    }

    /// 1 on the diagonal.
    pub(crate) fn identity(rows: usize, columns: usize) -> Self {
        Self::from_fn(rows, columns, |i, j| if i == j { F::one() } else { F::default() })
    }

    /// From a function of row and column.
    pub(crate) fn from_fn(rows: usize, columns: usize, f: impl Fn(usize, usize) -> F) -> Self {
        let elements =
            (0..columns).flat_map(|j| (0..rows).map(move |i| (i, j))).map(|(i, j)| f(i, j)).collect();
        Self { rows, columns, elements }
    }

    /// From elements in row-major order.
    pub(crate) fn widened<T: Widened<Wide = F>>(elements: &[T], rows: usize, columns: usize) -> Self {
        Self::from_fn(rows, columns, |i, j| elements[i * columns + j].widen())
    }

    /// Appends the rounded elements in row-major order.
    pub(crate) fn narrow_into<T: Widened<Wide = F>>(&self, out: &mut Vec<T>) {
        out.extend((0..self.rows).flat_map(|i| (0..self.columns).map(move |j| T::narrow(self[(i, j)]))));
    }

    /// Number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub(crate) fn columns(&self) -> usize {
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
    pub(crate) fn elements(&self) -> &[F] {
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
    pub(crate) fn adjoint(&self) -> Self {
        Self::from_fn(self.columns, self.rows, |i, j| self[(j, i)].conj())
    }

    /// Whether all elements are finite.
    pub(crate) fn is_finite(&self) -> bool {
        self.elements.iter().all(|x| x.is_finite())
    }

    /// Multiplies by a power of two such that algorithms which form squares neither overflow nor underflow, and gives the
    /// exponent to undo it by: 0 for nearly all matrices.
    pub(crate) fn tame(&mut self) -> i32 {
        let e = excess(&self.elements);
        if e != 0 {
            shift(&mut self.elements, -e);
        }
        e
    }
}

/// The largest magnitude of a part; NaN if there is one.
pub(crate) fn largest<F: Field>(x: &[F]) -> f64 {
    x.iter().fold(0.0, |largest: f64, &x| {
        let size = abs(x.real()).to_f64().max(abs(x.imag()).to_f64());
        if x.real().to_f64().is_nan() || x.imag().to_f64().is_nan() || largest.is_nan() {
            f64::NAN
        } else {
            largest.max(size)
        }
    })
}

/// The exponent of the largest magnitude if squares and products of such numbers leave the range in which double-double
/// arithmetic is precise, otherwise 0.
pub(crate) fn excess<F: Field>(x: &[F]) -> i32 {
    let largest = largest(x);
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

/// The inner product of a vector with that of a guide.
pub(crate) fn agreement<R: Real>(x: &[R], guide: &[R]) -> f64 {
    x.iter().zip(guide).map(|(x, g)| x.to_f64() * g.to_f64()).sum()
}

/// Changes the sign.
pub(crate) fn negate<F: Field>(x: &mut [F]) {
    x.iter_mut().for_each(|x| *x = -*x);
}

/// The Euclidean norm.
pub(crate) fn norm<F: Field>(x: &[F]) -> F::Real {
    let e = excess(x);
    let mut sum = F::Real::default();
    for &x in x {
        let x = if e == 0 { x } else { F::from_parts(x.real().shifted(-e), x.imag().shifted(-e)) };
        sum = sum + x.norm();
    }
    let root = sum.root();
    if e == 0 { root } else { root.shifted(e) }
}

/// The square root of the sum of two squares.
pub(crate) fn hypotenuse<R: Real>(x: R, y: R) -> R {
    norm(&[x, y])
}
