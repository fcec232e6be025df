//! LAPACK's routines on one matrix: the arithmetic of custom calls (`ops/lapack`) for who has matrices in memory already.
//!
//! Matrices are row-major slices, which sizes must fit. **Invariant:** results are those of the custom calls to the bit, whoever computes them
//! and on however many threads.

use hlo::num_complex::Complex;

pub use crate::linalg::eigen_symmetric::Eigenvectors;
use crate::linalg::svd::{Driver, Vectors};
use crate::linalg::{Matrix, Triangle, eigen_symmetric, lu, qr, svd};
use crate::parallel;
use crate::scalar::wide::{Field, Real, Widened};

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

/// What precedes and follows a multiplication by Q.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Side {
    /// Q c rather than c Q.
    pub left: bool,
    /// The adjoint of Q rather than Q.
    pub adjoint: bool,
}

/// Calls `f` with each number below `n`, on the threads there are ([`crate::with_threads`]); what `f` does is then done by one each.
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
    /// `syevd`, `heevd` of n by n, of which one triangle is looked at: eigenvectors, if all are wanted, eigenvalues, `info`; NaN if that is not 0.
    fn syevd(
        a: &[Self],
        n: usize,
        lower: bool,
        wanted: Eigenvectors,
        vectors: &mut [Self],
        values: &mut [Self::Real],
    ) -> i32;
    /// `gesdd`, or `gesvd` by iteration, of m by n: singular values, vectors, `info`; NaN if that is not 0. Vectors that are not wanted are 0.
    fn gesdd(
        a: &[Self],
        size: (usize, usize),
        singular: Singular,
        iteration: bool,
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

fn syevd<T: Widened, R: Widened<Wide = <T::Wide as Field>::Real>>(
    a: &[T],
    n: usize,
    lower: bool,
    wanted: Eigenvectors,
    vectors: &mut [T],
    values: &mut [R],
    coarse: f64,
) -> i32 {
    let triangle = if lower { Triangle::Lower } else { Triangle::Upper };
    match eigen_symmetric::eigen(Matrix::widened(a, n, n), triangle, wanted, coarse) {
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
    a: &[T],
    (m, n): (usize, usize),
    (singular, driver): (Singular, Driver),
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
    let found = if a.elements().iter().any(is_nan) {
        Err(-4)
    } else {
        svd::svd(a, vectors, driver, coarse).map_err(|k| k as i32)
    };
    if singular == Singular::No {
        let zero = T::narrow(T::Wide::default());
        u.fill(zero);
        vt.fill(zero);
    }
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
                a: &[Self],
                n: usize,
                lower: bool,
                wanted: Eigenvectors,
                vectors: &mut [Self],
                values: &mut [$real],
            ) -> i32 {
                syevd(a, n, lower, wanted, vectors, values, f64::from(<$real>::EPSILON))
            }

            fn gesdd(
                a: &[Self],
                size: (usize, usize),
                singular: Singular,
                iteration: bool,
                values: &mut [$real],
                vectors: (&mut [Self], &mut [Self]),
            ) -> i32 {
                let driver = if iteration { Driver::Iteration } else { Driver::DivideAndConquer };
                gesdd(a, size, (singular, driver), values, vectors, f64::from(<$real>::EPSILON))
            }
        }
    )*};
}
elements!(f32, f32; f64, f64; Complex<f32>, f32; Complex<f64>, f64);
