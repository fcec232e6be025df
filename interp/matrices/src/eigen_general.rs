//! Eigenvalues and eigenvectors of general matrices: `geev`, by way of the Schur form (`trevc`).

use hlo_arithmetic::scalar::dd::exponent_of;
use hlo_threads::cancel;

use super::Matrix;
use super::balance::balance;
use super::lu::first_of_largest;
use super::matrix::{largest, norm, shift};
use super::schur::{Schur, Triangularize, Wanted, of_balanced};
use crate::wide::{Complex, Field, Real, abs};

/// Eigenvalues in the order of the Schur form, and eigenvectors v with A v = w v (right) and v^H A = w v^H
/// (left), if wanted.
#[derive(Clone, Debug)]
pub struct Eigen<R: Real> {
    /// The eigenvalues.
    pub values: Vec<Complex<R>>,
    /// The left eigenvectors.
    pub left: Option<Matrix<Complex<R>>>,
    /// The right eigenvectors.
    pub right: Option<Matrix<Complex<R>>>,
}

/// A field whose matrices have eigenvectors.
pub(crate) trait Vectors: Triangularize {
    /// The eigenvectors of Z T Z^H, right or left, of any length.
    fn vectors(
        t: &Matrix<Self>,
        z: &Matrix<Self>,
        values: &[Complex<Self::Real>],
        right: bool,
    ) -> Matrix<Complex<Self::Real>>;

    /// Normalizes the phase of a vector of norm 1 as LAPACK does.
    fn phase(vector: &mut [Complex<Self::Real>]);
}

/// Eigenvalues, and vectors if wanted. Vectors have norm 1, and their largest element is real (of a complex
/// matrix: positive). Order and signs are those of an iteration that is `coarse`. The error is as in
/// [`Triangularize::triangularize`].
pub(crate) fn eigen<F: Vectors>(
    mut a: Matrix<F>,
    left: bool,
    right: bool,
    coarse: f64,
) -> Result<Eigen<F::Real>, usize> {
    if !a.is_finite() {
        return Err(a.rows().max(1));
    }
    let exponent = a.tame();
    let balance = balance(&mut a, true);
    let wanted = if left || right { Wanted::Vectors } else { Wanted::Values };
    let Schur { t, z, mut values } = of_balanced(a, balance.active.clone(), wanted, coarse)?;
    let vectors = |right: bool| {
        let mut vectors = F::vectors(&t, &z, &values, right);
        balance.undo(&mut vectors, right);
        for j in 0..vectors.columns() {
            let column = vectors.column_mut(j);
            let length = norm(column);
            for x in &mut *column {
                *x = Complex { re: x.re / length, im: x.im / length };
            }
            F::phase(column);
        }
        vectors
    };
    let left = left.then(|| vectors(false));
    let right = right.then(|| vectors(true));
    shift(&mut values, exponent);
    Ok(Eigen { values, left, right })
}

/// The matrix whose right eigenvectors are the left ones of `t`, conjugated eigenvalues and all, from the
/// last element to the first.
fn flipped<F: Field>(t: &Matrix<F>) -> Matrix<F> {
    let n = t.rows();
    Matrix::from_fn(n, n, |i, j| t[(n - 1 - j, n - 1 - i)].conj())
}

/// The smallest difference of eigenvalues that is distinguished from 0.
fn least<R: Real>(value: Complex<R>, order: usize) -> R {
    let relative = R::from_f64(R::ULP) * value.size();
    let absolute = R::from_f64(R::TINY * (order as f64 / R::ULP));
    if relative > absolute { relative } else { absolute }
}

/// Solves (T - value) x = 0 for the elements before `known`, the others being given. `t` is upper triangular,
/// perhaps with blocks of order 2. All of `x` is scaled by a power of two whenever it becomes too large.
fn solve<G: Field>(t: &Matrix<G>, value: G, least: G::Real, known: usize, x: &mut [G]) {
    let (before, after) = x.split_at_mut(known);
    for (k, &x) in after.iter().enumerate() {
        if !x.is_zero() {
            for (b, &t) in before.iter_mut().zip(t.column(known + k)) {
                *b = *b - t * x;
            }
        }
    }
    let mut end = known;
    while end > 0 {
        cancel::poll();
        let j = end - 1;
        let start = if j > 0 && !t[(j, j - 1)].is_zero() { j - 1 } else { j };
        if start == j {
            let mut pivot = t[(j, j)] - value;
            if pivot.size() < least {
                pivot = G::from_real(least);
            }
            scale_down(x, &[j], pivot.size());
            x[j] = x[j] / pivot;
        } else {
            solve_block(t, value, least, start, x);
        }
        let top = largest(&x[start..=j]);
        if top != 0.0 && top.is_finite() && exponent_of(top) > G::Real::SAFE {
            shift(x, -exponent_of(top));
        }
        for k in start..=j {
            let (before, after) = x.split_at_mut(start);
            let x = after[k - start];
            for (b, &t) in before.iter_mut().zip(t.column(k)) {
                *b = *b - t * x;
            }
        }
        end = start;
    }
}

/// Scales `x` down if dividing its elements at these indices by a number of that size could overflow.
fn scale_down<G: Field>(x: &mut [G], indices: &[usize], size: G::Real) {
    let top = indices.iter().map(|&i| largest(&x[i..=i])).fold(0.0, f64::max);
    let bottom = size.to_f64();
    if top == 0.0 || bottom == 0.0 || !top.is_finite() || !bottom.is_finite() {
        return;
    }
    let e = exponent_of(top) - exponent_of(bottom);
    if e > G::Real::SAFE {
        shift(x, -e);
    }
}

/// One block of order 2 of [`solve`], by elimination with complete pivoting.
fn solve_block<G: Field>(t: &Matrix<G>, value: G, least: G::Real, i: usize, x: &mut [G]) {
    let m = [[t[(i, i)] - value, t[(i, i + 1)]], [t[(i + 1, i)], t[(i + 1, i + 1)] - value]];
    let indices = [(0, 0), (0, 1), (1, 0), (1, 1)];
    let (mut r, mut c) = indices[first_of_largest(&indices.map(|(r, c)| m[r][c].size()))];
    let mut top = m[r][c];
    let (mut other, mut below, mut corner) = (m[r][1 - c], m[1 - r][c], m[1 - r][1 - c]);
    if top.size() < least {
        (r, c) = (0, 0);
        (top, other, below, corner) = (G::from_real(least), G::default(), G::default(), G::from_real(least));
    }
    let factor = below / top;
    let mut pivot = corner - factor * other;
    if pivot.size() < least {
        pivot = G::from_real(least);
    }
    scale_down(x, &[i, i + 1], if pivot.size() < top.size() { pivot.size() } else { top.size() });
    let (first, second) = (x[i + r], x[i + 1 - r]);
    let second = (second - factor * first) / pivot;
    let first = (first - other * second) / top;
    x[i + c] = first;
    x[i + 1 - c] = second;
}

/// The product of a matrix and a vector.
fn product<F: Field>(z: &Matrix<F>, x: &[F]) -> Vec<F> {
    let mut out = vec![F::default(); z.rows()];
    for (j, &x) in x.iter().enumerate() {
        if !x.is_zero() {
            for (out, &z) in out.iter_mut().zip(z.column(j)) {
                *out = *out + z * x;
            }
        }
    }
    out
}

impl<R: Real> Vectors for R {
    fn vectors(t: &Matrix<R>, z: &Matrix<R>, values: &[Complex<R>], right: bool) -> Matrix<Complex<R>> {
        let n = t.rows();
        let flip = if right { None } else { Some(flipped(t)) };
        let solved = flip.as_ref().unwrap_or(t);
        let pairs = values.iter().any(|w| !w.im.is_zero());
        let complex = |m: &Matrix<R>| m.map(Complex::from_real);
        let lifted = pairs.then(|| (complex(solved), complex(z)));
        let mut out = Matrix::zeros(n, n);
        let mut i = 0;
        while i < n {
            let w = values[i];
            let least = least(w, n);
            if let (Some((solved, z)), false) = (&lifted, w.im.is_zero() || i + 1 == n) {
                let (above, below) = (t[(i, i + 1)], t[(i + 1, i)]);
                let large = abs(above) >= abs(below);
                // The elements of the pair's own block: the first real, the second imaginary.
                let own = match (right, large) {
                    (true, true) => (R::one(), w.im / above),
                    (true, false) => (-(w.im / below), R::one()),
                    (false, true) => (w.im / above, R::one()),
                    (false, false) => (R::one(), -(w.im / below)),
                };
                let mut x = vec![Complex::default(); n];
                let index = |i: usize| if right { i } else { n - 1 - i };
                x[index(i)].re = own.0;
                x[index(i + 1)].im = own.1;
                let value = if right { w } else { w.conj() };
                solve(solved, value, least, index(i).min(index(i + 1)), &mut x);
                if !right {
                    x.reverse();
                }
                let x = product(z, &x);
                for (k, x) in x.into_iter().enumerate() {
                    (out[(k, i)], out[(k, i + 1)]) = (x, x.conj());
                }
                i += 2;
            } else {
                let mut x = vec![R::default(); n];
                let index = if right { i } else { n - 1 - i };
                x[index] = R::one();
                solve(solved, w.re, least, index, &mut x);
                if !right {
                    x.reverse();
                }
                for (k, x) in product(z, &x).into_iter().enumerate() {
                    out[(k, i)] = Complex::from_real(x);
                }
                i += 1;
            }
        }
        out
    }

    fn phase(vector: &mut [Complex<R>]) {
        if vector.iter().all(|x| x.im.is_zero()) {
            return;
        }
        let k = largest_element(vector);
        let top = vector[k];
        // The real part keeps its sign.
        let length = if top.re.is_zero() { top.modulus() } else { top.modulus().with_sign_of(top.re) };
        rotate(vector, k, top, length);
    }
}

impl<R: Real> Vectors for Complex<R> {
    fn vectors(t: &Matrix<Self>, z: &Matrix<Self>, values: &[Self], right: bool) -> Matrix<Self> {
        let n = t.rows();
        let flip = if right { None } else { Some(flipped(t)) };
        let solved = flip.as_ref().unwrap_or(t);
        let mut out = Matrix::zeros(n, n);
        for (i, &w) in values.iter().enumerate() {
            let mut x = vec![Self::default(); n];
            let index = if right { i } else { n - 1 - i };
            x[index] = Self::one();
            solve(solved, if right { w } else { w.conj() }, least(w, n), index, &mut x);
            if !right {
                x.reverse();
            }
            out.column_mut(i).copy_from_slice(&product(z, &x));
        }
        out
    }

    fn phase(vector: &mut [Self]) {
        let k = largest_element(vector);
        if let Some(&top) = vector.get(k) {
            rotate(vector, k, top, top.modulus());
        }
    }
}

/// Where the largest element of a vector is.
fn largest_element<R: Real>(vector: &[Complex<R>]) -> usize {
    first_of_largest(&vector.iter().map(|x| x.norm()).collect::<Vec<_>>())
}

/// Rotations a vector by the phase that makes element k, which is `top`, of that length.
fn rotate<R: Real>(vector: &mut [Complex<R>], k: usize, top: Complex<R>, length: R) {
    let phase = Complex { re: top.re / length, im: -(top.im / length) };
    for x in &mut *vector {
        *x = *x * phase;
    }
    vector[k].im = R::default();
}
