//! What is known of matrices over a wide field, compiled here, once: functions that are generic would be
//! compiled again in each crate that calls them.

use std::ops::Range;

use hlo_arithmetic::scalar::dd::Dd;

use super::eigen_symmetric::{Eigenvectors, Tridiagonal};
use super::svd::{Driver, Svd, Vectors};
use super::triangular::System;
use super::{Hessenberg, Lu, Matrix, Qr, Schur, Triangle};
use super::{
    cholesky, eigen_general, eigen_symmetric, hessenberg, lu, qr, qr_pivoted, schur, svd, triangular,
};
use crate::wide::{Complex, Field, Real};

/// A field whose matrices are factored and decomposed.
pub trait Decompose: Field {
    /// P A = L U of the matrix that `a` makes, more than once if infinities come up. The pivot is the first
    /// of the largest elements by the sum of the magnitudes of the parts.
    fn lu(a: &dyn Fn() -> Matrix<Self>) -> Lu<Self>;

    /// A = Q R.
    fn qr(a: Matrix<Self>) -> Qr<Self>;

    /// A P = Q R. `columns` says which columns stay in front (those that are not 0) and becomes P: column j
    /// of A P is column `columns[j] - 1` of A.
    fn qr_pivoted(a: Matrix<Self>, columns: &mut [i32]) -> Qr<Self>;

    /// The first columns of Q, as many as `reflectors` has: their tails are below its diagonal. There must be
    /// at least as many rows as columns, and as columns as taus.
    fn form_q(reflectors: &Matrix<Self>, taus: &[Self]) -> Matrix<Self>;

    /// Multiplies c by Q or by Q^H, from the left or from the right. The tails are below the diagonal of
    /// `reflectors`.
    fn multiply_q(reflectors: &Matrix<Self>, taus: &[Self], c: &mut Matrix<Self>, left: bool, adjoint: bool);

    /// A = L L^H or A = U^H U of the matrix that one triangle holds, in that triangle. The error is the step
    /// at which the square of a diagonal element is not positive; what comes after it stays as it is.
    fn cholesky(a: &mut Matrix<Self>, triangle: Triangle) -> Result<(), usize>;

    /// Q^H A Q = H of the rows and columns of `active`; outside of them the matrix must be upper triangular.
    fn hessenberg(a: Matrix<Self>, active: Range<usize>) -> Hessenberg<Self>;

    /// Q^H A Q = T of the matrix that one triangle holds; of its diagonal only real parts count.
    fn tridiagonal(a: Matrix<Self>, triangle: Triangle) -> Tridiagonal<Self>;

    /// The eigenvalues of the symmetric or Hermitian matrix that one triangle holds, and its eigenvectors if
    /// wanted, with the signs of an iteration that is `coarse`. The error is how many eigenvalues were not
    /// found.
    fn eigen_symmetric(
        a: Matrix<Self>,
        triangle: Triangle,
        vectors: Eigenvectors,
        coarse: f64,
    ) -> Result<eigen_symmetric::Eigen<Self>, usize>;

    /// Eigenvalues, and eigenvectors if wanted, in the order and with the signs of an iteration that is
    /// `coarse`. The error is the number of eigenvalues up to and including the last one that was not found.
    fn eigen(
        a: Matrix<Self>,
        left: bool,
        right: bool,
        coarse: f64,
    ) -> Result<eigen_general::Eigen<Self::Real>, usize>;

    /// The Schur form, with the order and signs of an iteration that is `coarse`. The error is that of
    /// [`Decompose::eigen`].
    fn schur(a: Matrix<Self>, coarse: f64) -> Result<Schur<Self>, usize>;

    /// Singular values, and vectors if wanted, with the signs of an iteration that is `coarse`. The error is
    /// how many elements beside the diagonal are left.
    fn svd(a: Matrix<Self>, vectors: Vectors, driver: Driver, coarse: f64) -> Result<Svd<Self>, usize>;

    /// Replaces B by the solution of a triangular system.
    fn solve_triangular(a: &Matrix<Self>, b: &mut Matrix<Self>, system: System);
}

macro_rules! decompose {
    ($($t:ty),*) => {$(
        impl Decompose for $t {
            fn lu(a: &dyn Fn() -> Matrix<Self>) -> Lu<Self> {
                lu::factor(a)
            }

            fn qr(a: Matrix<Self>) -> Qr<Self> {
                qr::factor(a)
            }

            fn qr_pivoted(a: Matrix<Self>, columns: &mut [i32]) -> Qr<Self> {
                qr_pivoted::factor(a, columns)
            }

            fn form_q(reflectors: &Matrix<Self>, taus: &[Self]) -> Matrix<Self> {
                qr::form(reflectors, taus)
            }

            fn multiply_q(
                reflectors: &Matrix<Self>,
                taus: &[Self],
                c: &mut Matrix<Self>,
                left: bool,
                adjoint: bool,
            ) {
                qr::multiply(reflectors, taus, c, left, adjoint);
            }

            fn cholesky(a: &mut Matrix<Self>, triangle: Triangle) -> Result<(), usize> {
                cholesky::factor(a, triangle, |square| square.to_f64() > 0.0)
            }

            fn hessenberg(a: Matrix<Self>, active: Range<usize>) -> Hessenberg<Self> {
                hessenberg::reduce(a, active)
            }

            fn tridiagonal(a: Matrix<Self>, triangle: Triangle) -> Tridiagonal<Self> {
                eigen_symmetric::tridiagonal(a, triangle)
            }

            fn eigen_symmetric(
                a: Matrix<Self>,
                triangle: Triangle,
                vectors: Eigenvectors,
                coarse: f64,
            ) -> Result<eigen_symmetric::Eigen<Self>, usize> {
                eigen_symmetric::eigen(a, triangle, vectors, coarse)
            }

            fn eigen(
                a: Matrix<Self>,
                left: bool,
                right: bool,
                coarse: f64,
            ) -> Result<eigen_general::Eigen<Self::Real>, usize> {
                eigen_general::eigen(a, left, right, coarse)
            }

            fn schur(a: Matrix<Self>, coarse: f64) -> Result<Schur<Self>, usize> {
                schur::schur(a, coarse)
            }

            fn svd(a: Matrix<Self>, vectors: Vectors, driver: Driver, coarse: f64) -> Result<Svd<Self>, usize> {
                svd::svd(a, vectors, driver, coarse)
            }

            fn solve_triangular(a: &Matrix<Self>, b: &mut Matrix<Self>, system: System) {
                triangular::solve(a, b, system);
            }
        }
    )*};
}
decompose!(f64, Dd, Complex<f64>, Complex<Dd>);
