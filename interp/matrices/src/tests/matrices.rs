//! Matrices to test with, easy and hard, over any field.

use crate::Matrix;
use crate::wide::{Field, Real};

/// Numbers between -1 and 1, the same in every run (Knuth's linear congruential generator).
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}

/// A random matrix. Elements have 53 bits, whatever the field.
pub(super) fn random<F: Field>(m: usize, n: usize, seed: u64) -> Matrix<F> {
    let mut numbers = Numbers(seed);
    let mut out = Matrix::zeros(m, n);
    for x in out.elements_mut() {
        let (re, im) = (numbers.next(), numbers.next());
        *x = F::from_parts(F::Real::from_f64(re), F::Real::from_f64(im));
    }
    out
}

/// From real numbers.
pub(super) fn of<F: Field>(m: usize, n: usize, f: impl Fn(usize, usize) -> f64) -> Matrix<F> {
    Matrix::from_fn(m, n, |i, j| F::from_real(F::Real::from_f64(f(i, j))))
}

pub(super) fn times<F: Field>(a: &Matrix<F>, b: &Matrix<F>) -> Matrix<F> {
    assert_eq!(a.columns(), b.rows());
    Matrix::from_fn(a.rows(), b.columns(), |i, j| {
        (0..a.columns()).fold(F::default(), |sum, k| sum + a[(i, k)] * b[(k, j)])
    })
}

pub(super) fn minus<F: Field>(a: &Matrix<F>, b: &Matrix<F>) -> Matrix<F> {
    assert_eq!((a.rows(), a.columns()), (b.rows(), b.columns()));
    Matrix::from_fn(a.rows(), a.columns(), |i, j| a[(i, j)] - b[(i, j)])
}

/// The Frobenius norm.
pub(super) fn size<F: Field>(a: &Matrix<F>) -> f64 {
    crate::matrix::norm(a.elements()).to_f64()
}

/// How far from orthonormal the columns are, in units of rounding.
pub(super) fn skew<F: Field>(q: &Matrix<F>) -> f64 {
    let n = q.columns();
    size(&minus(&times(&q.adjoint(), q), &Matrix::identity(n, n))) / F::Real::ULP
}

/// How far one matrix is from another, in units of rounding of the size of a third.
pub(super) fn distance<F: Field>(a: &Matrix<F>, b: &Matrix<F>, scale: &Matrix<F>) -> f64 {
    let scale = size(scale);
    let difference = size(&minus(a, b));
    if difference == 0.0 { 0.0 } else { difference / (scale * F::Real::ULP) }
}

/// An orthogonal matrix: the product of a few reflections.
pub(super) fn orthogonal<F: Field>(n: usize, seed: u64) -> Matrix<F> {
    let qr = crate::qr::factor(random::<F>(n, n, seed));
    crate::qr::form(&qr.factors, &qr.taus)
}

/// Q D Q^H.
pub(super) fn with_eigenvalues<F: Field>(values: &[f64], seed: u64) -> Matrix<F> {
    let n = values.len();
    let q = orthogonal::<F>(n, seed);
    let d = of::<F>(n, n, |i, j| if i == j { values[i] } else { 0.0 });
    times(&times(&q, &d), &q.adjoint())
}

/// Named matrices of any shape.
pub(super) fn general<F: Field>() -> Vec<(&'static str, Matrix<F>)> {
    let graded = |i: usize, j: usize| f64::powi(10.0, -(2 * (i + j) as i32));
    vec![
        ("empty", Matrix::zeros(0, 0)),
        ("no rows", Matrix::zeros(0, 3)),
        ("no columns", Matrix::zeros(3, 0)),
        ("one", random(1, 1, 1)),
        ("zero of order 1", Matrix::zeros(1, 1)),
        ("zeros", Matrix::zeros(4, 3)),
        ("identity", Matrix::identity(5, 5)),
        ("a row", random(1, 6, 2)),
        ("a column", random(6, 1, 3)),
        ("random", random(7, 7, 4)),
        ("tall", random(9, 4, 5)),
        ("a little tall", random(6, 5, 6)),
        ("wide", random(4, 9, 7)),
        ("a little wide", random(5, 6, 8)),
        ("graded", {
            let r = random::<F>(8, 8, 9);
            Matrix::from_fn(8, 8, |i, j| r[(i, j)].scaled(F::Real::from_f64(graded(i, j))))
        }),
        ("rank 2 of 6", times(&random::<F>(6, 2, 10), &random::<F>(2, 6, 11))),
        ("equal rows", of(5, 5, |_, j| 1.0 + j as f64)),
        ("a zero column", of(5, 4, |i, j| if j == 1 { 0.0 } else { (i * j + i) as f64 - 3.0 })),
        ("Hilbert", of(8, 8, |i, j| 1.0 / (i + j + 1) as f64)),
        ("permutation", of(6, 6, |i, j| f64::from((i + 2) % 6 == j))),
        ("orthogonal", orthogonal(6, 12)),
        ("large", of(4, 4, |i, j| f64::powi(2.0, 1000) * ((3 * i + 5 * j) % 7) as f64)),
        ("small", of(4, 4, |i, j| f64::powi(2.0, -900) * ((3 * i + 5 * j) % 7) as f64)),
        ("medium", random(25, 25, 13)),
        ("triangular", of(6, 6, |i, j| if i <= j { 1.0 + (i * j) as f64 } else { 0.0 })),
        ("integers", of(3, 3, |i, j| (3 * i + j + 1) as f64)),
    ]
}

/// Named Hermitian matrices.
pub(super) fn hermitian<F: Field>() -> Vec<(&'static str, Matrix<F>)> {
    let made = |a: Matrix<F>| {
        let b = a.adjoint();
        Matrix::from_fn(a.rows(), a.rows(), |i, j| a[(i, j)] + b[(i, j)])
    };
    let n = 21;
    vec![
        ("empty", Matrix::zeros(0, 0)),
        ("one", made(random(1, 1, 1))),
        ("two", made(random(2, 2, 2))),
        ("zeros", Matrix::zeros(4, 4)),
        ("identity", Matrix::identity(5, 5)),
        ("random", made(random(9, 9, 3))),
        (
            "Wilkinson",
            of(n, n, |i, j| match i.abs_diff(j) {
                0 => (i as f64 - 10.0).abs(),
                1 => 1.0,
                _ => 0.0,
            }),
        ),
        ("repeated", made(with_eigenvalues(&[1.0, 1.0, 1.0, 2.0, 2.0, -3.0], 4))),
        ("rank 1", made(with_eigenvalues(&[0.0, 0.0, 0.0, 5.0], 5))),
        ("clustered", made(with_eigenvalues(&[1.0, 1.0 + 1e-12, 1.0 - 1e-12, 1e-9, 2e-9], 6))),
        ("graded", of(8, 8, |i, j| f64::powi(10.0, -(2 * (i + j) as i32)))),
        ("graded from below", of(8, 8, |i, j| f64::powi(10.0, 2 * (i + j) as i32 - 28))),
        ("Hilbert", of(10, 10, |i, j| 1.0 / (i + j + 1) as f64)),
        ("diagonal", of(5, 5, |i, j| if i == j { 3.0 - i as f64 } else { 0.0 })),
        ("large", of(4, 4, |i, j| f64::powi(2.0, 1000) * ((i + j) % 5) as f64)),
        ("small", of(4, 4, |i, j| f64::powi(2.0, -900) * ((i + j) % 5) as f64)),
        ("medium", made(random(30, 30, 7))),
    ]
}

/// Named square matrices for eigenvalues.
pub(super) fn square<F: Field>() -> Vec<(&'static str, Matrix<F>)> {
    let mut all: Vec<_> = general::<F>().into_iter().filter(|(_, a)| a.rows() == a.columns()).collect();
    all.extend([
        ("rotation", of(2, 2, |i, j| if i == j { 0.0 } else { j as f64 - i as f64 })),
        ("Jordan", of(6, 6, |i, j| f64::from(i == j) + f64::from(i + 1 == j))),
        ("nilpotent", of(5, 5, |i, j| f64::from(i + 1 == j))),
        ("lower Jordan", of(5, 5, |i, j| 2.0 * f64::from(i == j) + f64::from(i == j + 1))),
        (
            "companion",
            of(8, 8, |i, j| match (i, j) {
                (0, _) => -(j as f64 + 1.0),
                (i, j) => f64::from(i == j + 1),
            }),
        ),
        ("cyclic", of(7, 7, |i, j| f64::from((i + 1) % 7 == j))),
        ("Frank", of(9, 9, |i, j| if i > j + 1 { 0.0 } else { 9.0 - i.max(j) as f64 })),
        ("unbalanced", of(4, 4, |i, j| f64::powi(10.0, 4 * (i as i32 - j as i32)) * (1.0 + (i * j) as f64))),
        (
            "block triangular",
            of(7, 7, |i, j| if i > j + 2 { 0.0 } else { ((2 * i + 3 * j) % 5) as f64 - 2.0 }),
        ),
        ("skew", of(6, 6, |i, j| (i as f64 - j as f64) * (1.0 + (i * j) as f64))),
        // Shifts of this one repeat until an exceptional one.
        (
            "stubborn",
            of(4, 4, |i, j| match (i, j) {
                (0, 3) => 1.0,
                (i, j) => f64::from(i == j + 1),
            }),
        ),
    ]);
    all
}
