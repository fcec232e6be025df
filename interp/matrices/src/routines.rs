//! LAPACK's routines on one matrix: the arithmetic of custom calls (`ops/lapack`), for callers that have
//! matrices in memory already.
//!
//! Matrices are row-major slices, which sizes must fit. **Invariant:** results are those of the custom calls
//! to the bit, whoever computes them and on however many threads. An exception is [`Arithmetic::Own`]:
//! eigenvectors and singular vectors of f64 then come from the same algorithm in f64, which is where the
//! signs of the custom calls come from, too; so what differs is what [`rounding`] and the distances of the
//! values say.

use hlo::num_complex::Complex;
use hlo_threads::parallel;

use crate::eigen_symmetric::{Eigen, Eigenvectors};
use crate::svd::{Driver, Svd, Vectors};
use crate::wide::{Field, Real, Widened};
use crate::{Matrix, Triangle, eigen_symmetric, lu, qr, svd};

/// Which singular vectors are wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Singular {
    /// None.
    No,
    /// As many as there are singular values.
    Thin,
    /// All.
    Full,
}

/// The side and form of a multiplication by Q.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Side {
    /// Q c rather than c Q.
    pub left: bool,
    /// The adjoint of Q rather than Q.
    pub adjoint: bool,
}

/// The arithmetic of a decomposition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arithmetic {
    /// Wider than the element type.
    Wide,
    /// The element type, if that is f64 (or its complex numbers) and the vectors are determined well enough;
    /// otherwise as [`Arithmetic::Wide`].
    Own,
}

/// Units of rounding that a reflector with that many elements is off by, and what it is applied to relatively
/// to its norm: the norm, the inner products, and what is subtracted (Higham, Accuracy and Stability of
/// Numerical Algorithms, 2nd edition, lemmas 19.1 to 19.3), one at a time or many together.
pub fn reflector_units(m: usize) -> f64 {
    8.0 * (m as f64 + 8.0)
}

/// At least how much a matrix of m by n must change, by its Frobenius norm relative to its own, for the
/// singular (eigen-) values and vectors of [`Arithmetic::Own`] to be exact; and how far the vectors computed
/// are from those. Two-sided reflectors, as many as there are columns, are each off by [`reflector_units`];
/// what rotations and merging do is less.
pub fn rounding(m: usize, n: usize, complex: bool) -> f64 {
    let times = if complex { 4.0 } else { 1.0 };
    reflector_units(m) * times * (n as f64 + 8.0) * (f64::EPSILON / 2.0)
}

/// The distance of a value, of those in order, to the nearest of its neighbours.
pub fn gap(values: &[f64], i: usize) -> f64 {
    let to = |j: Option<usize>| {
        j.and_then(|j| values.get(j)).map_or(f64::INFINITY, |other| (other - values[i]).abs())
    };
    to(i.checked_sub(1)).min(to(i.checked_add(1)))
}

/// By how many times [`rounding`] values must differ for their vectors to be determined well enough, and in
/// complex matrices the component that is real by how many times what the vectors are off by then must differ
/// from 0.
const APART: f64 = 256.0;

/// Calls `f` with each number below `n`, on the threads there are ([`hlo_threads::parallel::with_threads`]);
/// what `f` does is then done by one each.
pub fn each(n: usize, f: &(dyn Fn(usize) + Sync)) {
    parallel::tasks(n, f);
}

/// An element type of LAPACK.
pub trait Element: Copy + Sized + 'static {
    /// The type of its parts.
    type Real: Copy + 'static;

    /// `getrf` of m by n: factors, pivots from 1, `info`.
    fn getrf(a: &[Self], size: (usize, usize), factors: &mut [Self], pivots: &mut [i32]) -> i32;
    /// `geqrf` of m by n: R and tails of reflectors, and their factors.
    fn geqrf(a: &[Self], size: (usize, usize), factors: &mut [Self], taus: &mut [Self]);
    /// `orgqr`, `ungqr` of reflectors m by n, n <= m, not more taus than columns.
    fn orgqr(reflectors: &[Self], size: (usize, usize), taus: &[Self], q: &mut [Self]);
    /// `ormqr`, `unmqr` of reflectors m by n and a matrix of that size.
    fn ormqr(
        reflectors: (&[Self], usize, usize),
        taus: &[Self],
        c: (&[Self], usize, usize),
        side: Side,
        out: &mut [Self],
    );
    /// `syevd`, `heevd` of n by n, of which one triangle is looked at, the lower one if that is true:
    /// eigenvectors, if all are wanted, eigenvalues, `info`; NaN if that is not 0.
    fn syevd(
        a: (&[Self], usize, bool),
        wanted: Eigenvectors,
        arithmetic: Arithmetic,
        vectors: &mut [Self],
        values: &mut [Self::Real],
    ) -> i32;
    /// `gesdd`, or `gesvd` by iteration, of m by n: singular values, vectors, `info`; NaN if that is not 0.
    /// Vectors that are not wanted are 0.
    fn gesdd(
        a: (&[Self], usize, usize),
        singular: Singular,
        iteration: bool,
        arithmetic: Arithmetic,
        values: &mut [Self::Real],
        vectors: (&mut [Self], &mut [Self]),
    ) -> i32;
}

fn narrow<T: Widened>(out: &mut [T], x: &[T::Wide]) {
    out.iter_mut().zip(x).for_each(|(out, &x)| *out = T::narrow(x));
}

fn nan<T: Widened>(out: &mut [T]) {
    out.fill(T::narrow(T::Wide::from_real(<T::Wide as Field>::Real::from_f64(f64::NAN))));
}

fn wide<T: Widened>(x: &[T]) -> Vec<T::Wide> {
    x.iter().map(|x| x.widen()).collect()
}

fn getrf<T: Widened>(a: &[T], (m, n): (usize, usize), factors: &mut [T], pivots: &mut [i32]) -> i32 {
    let lu = lu::factor(|| Matrix::widened(a, m, n));
    lu.factors.narrow_to(factors);
    pivots.iter_mut().zip(&lu.pivots).for_each(|(out, &p)| *out = p as i32 + 1);
    lu.singular.map_or(0, |k| k as i32 + 1)
}

fn geqrf<T: Widened>(a: &[T], (m, n): (usize, usize), factors: &mut [T], taus: &mut [T]) {
    let qr = qr::factor(Matrix::widened(a, m, n));
    qr.factors.narrow_to(factors);
    narrow(taus, &qr.taus);
}

fn ormqr<T: Widened>(
    (reflectors, m, n): (&[T], usize, usize),
    taus: &[T],
    (c, rows, columns): (&[T], usize, usize),
    Side { left, adjoint }: Side,
    out: &mut [T],
) {
    let mut c = Matrix::widened(c, rows, columns);
    qr::multiply(&Matrix::widened(reflectors, m, n), &wide(taus), &mut c, left, adjoint);
    c.narrow_to(out);
}

/// Whether values (ascending or descending) and vectors, of which `real` are the components that the
/// algorithm makes real, are determined well enough; `off` is what the values are off by.
fn determined(values: &[f64], real: impl Iterator<Item = f64>, off: f64, complex: bool) -> bool {
    let mut real = real;
    (0..values.len()).all(|i| {
        let gap = gap(values, i);
        let phase = real.next().map_or(1.0, f64::abs);
        gap > APART * off && (!complex || phase * gap > APART * off)
    })
}

fn norm(values: &[f64]) -> f64 {
    values.iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// Numbers in f64, in wider arithmetic.
fn widened<W: Real, P: Real>(values: &[P]) -> Vec<W> {
    values.iter().map(|x| W::from_f64(x.to_f64())).collect()
}

/// What is found in f64. `None`: nothing, or what is not determined well enough.
fn eigen_plain<T: Widened>(
    a: &Matrix<T::Wide>,
    triangle: Triangle,
    wanted: Eigenvectors,
    coarse: f64,
) -> Option<Eigen<T::Wide>> {
    let n = a.rows();
    let found = eigen_symmetric::eigen(a.map(Field::plain), triangle, wanted, coarse).ok()?;
    let wide = Eigen {
        values: widened(&found.values),
        vectors: found.vectors.as_ref().map(|z| z.map(T::Wide::from_plain)),
    };
    let Some(z) = &found.vectors else { return Some(wide) };
    let values: Vec<f64> = found.values.iter().map(|x| x.to_f64()).collect();
    let off = rounding(n, n, T::Wide::COMPLEX) * norm(&values);
    // The reduction leaves that row alone.
    let row = if triangle == Triangle::Lower { 0 } else { n.saturating_sub(1) };
    let real = (0..n).map(|j| z[(row, j)].real().to_f64());
    determined(&values, real, off, T::Wide::COMPLEX).then_some(wide)
}

/// The same of singular values.
fn singular_plain<T: Widened>(
    a: &Matrix<T::Wide>,
    vectors: Vectors,
    driver: Driver,
    coarse: f64,
) -> Option<Svd<T::Wide>> {
    let (m, n) = (a.rows(), a.columns());
    if vectors == Vectors::Full && m != n {
        return None;
    }
    let found = svd::svd(a.map(Field::plain), vectors, driver, coarse).ok()?;
    let both = found.vectors.as_ref();
    let wide = Svd {
        values: widened(&found.values),
        vectors: both.map(|(u, v)| (u.map(T::Wide::from_plain), v.map(T::Wide::from_plain))),
    };
    let Some((u, v)) = both else { return Some(wide) };
    // The values of the matrix with this and its adjoint off a zero diagonal: these, their negatives, and 0
    // of what there are more of.
    let mut values: Vec<f64> = found.values.iter().map(|x| x.to_f64()).collect();
    let off = rounding(m, n, T::Wide::COMPLEX) * norm(&values);
    let size = values.len();
    values.extend(values.last().map(|&least| if m == n { -least } else { 0.0 }));
    let short = if m < n { u } else { v };
    let real = (0..size).map(|j| short[(0, j)].real().to_f64());
    (values.len() < 2 || determined(&values[..], real, off, T::Wide::COMPLEX)).then_some(wide)
}

fn syevd<T: Widened, R: Widened<Wide = <T::Wide as Field>::Real>>(
    (a, n, lower): (&[T], usize, bool),
    wanted: Eigenvectors,
    arithmetic: Arithmetic,
    vectors: &mut [T],
    values: &mut [R],
    coarse: f64,
) -> i32 {
    let triangle = if lower { Triangle::Lower } else { Triangle::Upper };
    let a = Matrix::widened(a, n, n);
    let own = arithmetic == Arithmetic::Own && eigen_symmetric::plain_decides::<T::Wide>(coarse);
    let own = own.then(|| eigen_plain::<T>(&a, triangle, wanted, coarse)).flatten();
    match own.map_or_else(|| eigen_symmetric::eigen(a, triangle, wanted, coarse), Ok) {
        Ok(found) => {
            narrow(values, &found.values);
            if let Some(z) = found.vectors {
                z.narrow_to(vectors);
            }
            0
        }
        Err(k) => {
            nan(values);
            if wanted == Eigenvectors::All {
                nan(vectors);
            }
            k as i32
        }
    }
}

fn gesdd<T: Widened, R: Widened<Wide = <T::Wide as Field>::Real>>(
    (a, m, n): (&[T], usize, usize),
    (singular, driver, arithmetic): (Singular, Driver, Arithmetic),
    values: &mut [R],
    (u, vt): (&mut [T], &mut [T]),
    coarse: f64,
) -> i32 {
    let vectors = match singular {
        Singular::No => Vectors::None,
        Singular::Thin => Vectors::Thin,
        Singular::Full => Vectors::Full,
    };
    let a = Matrix::widened(a, m, n);
    let is_nan = |x: &T::Wide| x.real().to_f64().is_nan() || x.imag().to_f64().is_nan();
    if singular == Singular::No {
        let zero = T::narrow(T::Wide::default());
        u.fill(zero);
        vt.fill(zero);
    }
    let own = arithmetic == Arithmetic::Own && eigen_symmetric::plain_decides::<T::Wide>(coarse);
    let own = own.then(|| singular_plain::<T>(&a, vectors, driver, coarse)).flatten();
    let found = match own {
        Some(found) => Ok(found),
        None if a.elements().iter().any(is_nan) => Err(-4),
        None => svd::svd(a, vectors, driver, coarse).map_err(|k| k as i32),
    };
    match found {
        Ok(found) => {
            narrow(values, &found.values);
            if let Some((left, right)) = found.vectors {
                left.narrow_to(u);
                right.adjoint().narrow_to(vt);
            }
            0
        }
        Err(info) => {
            nan(values);
            if singular != Singular::No {
                nan(u);
                nan(vt);
            }
            info
        }
    }
}

macro_rules! elements {
    ($($t:ty, $real:ty);*) => {$(
        impl Element for $t {
            type Real = $real;

            fn getrf(a: &[Self], size: (usize, usize), factors: &mut [Self], pivots: &mut [i32]) -> i32 {
                getrf(a, size, factors, pivots)
            }

            fn geqrf(a: &[Self], size: (usize, usize), factors: &mut [Self], taus: &mut [Self]) {
                geqrf(a, size, factors, taus);
            }

            fn orgqr(reflectors: &[Self], (m, n): (usize, usize), taus: &[Self], q: &mut [Self]) {
                qr::form(&Matrix::widened(reflectors, m, n), &wide(taus)).narrow_to(q);
            }

            fn ormqr(
                reflectors: (&[Self], usize, usize),
                taus: &[Self],
                c: (&[Self], usize, usize),
                side: Side,
                out: &mut [Self],
            ) {
                ormqr(reflectors, taus, c, side, out);
            }

            fn syevd(
                a: (&[Self], usize, bool),
                wanted: Eigenvectors,
                arithmetic: Arithmetic,
                vectors: &mut [Self],
                values: &mut [$real],
            ) -> i32 {
                syevd(a, wanted, arithmetic, vectors, values, f64::from(<$real>::EPSILON))
            }

            fn gesdd(
                a: (&[Self], usize, usize),
                singular: Singular,
                iteration: bool,
                arithmetic: Arithmetic,
                values: &mut [$real],
                vectors: (&mut [Self], &mut [Self]),
            ) -> i32 {
                let driver = if iteration { Driver::Iteration } else { Driver::DivideAndConquer };
                let coarse = f64::from(<$real>::EPSILON);
                gesdd(a, (singular, driver, arithmetic), values, vectors, coarse)
            }
        }
    )*};
}
elements!(f32, f32; f64, f64; Complex<f32>, f32; Complex<f64>, f64);
