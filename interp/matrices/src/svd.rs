//! Singular values and vectors (values alone: [`super::dqds`]): [`super::implicit_qr`] on the bidiagonal form
//! ([`super::bidiagonal`]), together `gesvd`, and `gesdd` as LAPACK computes it up to [`BY_ITERATION`]
//! singular values; beyond, [`divide_bidiagonal`] replaces the iteration.

use super::bidiagonal::Bidiagonal;
use super::divide_bidiagonal::{self, Solved};
use super::eigen_symmetric::{BY_ITERATION, plain_decides};
use super::implicit_qr::{BidiagonalIteration, exchange};
use super::matrix::{agreement, negate};
use super::rotations::Rotations;
use super::{Matrix, chase, dqds, qr};
use crate::wide::{Field, Real};

/// Which of LAPACK's drivers to follow where factors are not unique.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driver {
    /// `gesdd`.
    DivideAndConquer,
    /// `gesvd`.
    Iteration,
}

/// How many singular vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vectors {
    /// None.
    None,
    /// As many as there are singular values.
    Thin,
    /// All of both spaces.
    Full,
}

/// A = U S V^H, singular values in descending order.
#[derive(Clone, Debug)]
pub struct Svd<F: Field> {
    /// The singular values.
    pub values: Vec<F::Real>,
    /// U and V, if wanted.
    pub vectors: Option<(Matrix<F>, Matrix<F>)>,
}

impl Driver {
    /// Whether a matrix of that many rows and columns, the columns being fewer, is first factored as Q R.
    fn factors_first<F: Field>(self, rows: usize, columns: usize) -> bool {
        // LAPACK: int(11/6 n), int(17/9 n) of complex numbers; int(1.6 n) in f32 arithmetic.
        let (n, rows) = (columns as u64, rows as u64);
        rows >= match self {
            Driver::DivideAndConquer if F::COMPLEX => n * 17 / 9,
            Driver::DivideAndConquer => n * 11 / 6,
            Driver::Iteration => n * 8 / 5,
        }
    }
}

/// Singular values, and vectors if wanted, with the signs of an iteration that is `coarse`. The error is how
/// many elements beside the diagonal are left, as `info` says it.
pub(crate) fn svd<F: Field>(
    mut a: Matrix<F>,
    vectors: Vectors,
    driver: Driver,
    coarse: f64,
) -> Result<Svd<F>, usize> {
    let (m, n) = (a.rows(), a.columns());
    if !a.is_finite() {
        return Err(m.min(n).max(1));
    }
    let exponent = a.tame();
    let guide = plain_decides::<F>(coarse) && vectors != Vectors::None;
    let guide = guide.then(|| svd(a.map(F::plain), vectors, driver, coarse).ok()?.vectors).flatten();
    let mut found = decompose(a, vectors, driver, (!plain_decides::<F>(coarse)).then_some(coarse))?;
    if let (Some(both), Some(guide)) = (&mut found.vectors, &guide) {
        // What is 0 but for the rounding of the wide arithmetic has some value in f64.
        let order = F::Real::from_f64(m.max(n) as f64 * 64.0 * F::Real::ULP);
        let nothing = found.values.first().map_or(F::Real::default(), |&largest| largest * order);
        take_signs(&found.values, nothing, (&mut both.0, &mut both.1), (&guide.0, &guide.1));
    }
    for x in &mut found.values {
        *x = x.shifted(exponent);
    }
    Ok(found)
}

/// Changes signs of pairs of vectors so that they agree with those of a guide. Of a singular value of 0, or
/// `nothing`, the two vectors have nothing to do with each other.
pub(super) fn take_signs<F: Field, G: Field>(
    values: &[F::Real],
    nothing: F::Real,
    (u, v): (&mut Matrix<F>, &mut Matrix<F>),
    guide: (&Matrix<G>, &Matrix<G>),
) {
    for (j, &value) in values.iter().enumerate() {
        let left = agreement(u.column(j), guide.0.column(j));
        let right = agreement(v.column(j), guide.1.column(j));
        let (left, right) = if value <= nothing { (left, right) } else { (left + right, left + right) };
        if left < 0.0 {
            negate(u.column_mut(j));
        }
        if right < 0.0 {
            negate(v.column_mut(j));
        }
    }
}

/// [`svd`] of a finite and tame matrix. With a guide of the second half of it, if that is to be `coarse`.
fn decompose<F: Field>(
    a: Matrix<F>,
    vectors: Vectors,
    driver: Driver,
    coarse: Option<f64>,
) -> Result<Svd<F>, usize> {
    let (m, n) = (a.rows(), a.columns());
    let coarse = coarse.filter(|&coarse| coarse > F::Real::ULP);
    let wide = m < n;
    // What has fewer columns than rows.
    let tall = if wide { a.adjoint() } else { a };
    let (rows, size) = (tall.rows(), tall.columns());
    let first = driver.factors_first::<F>(rows, size).then(|| qr::factor(tall.clone()));
    let core = match &first {
        None => tall,
        Some(qr) => {
            let r =
                Matrix::from_fn(size, size, |i, j| if i <= j { qr.factors[(i, j)] } else { F::default() });
            if wide { r.adjoint() } else { r }
        }
    };
    // Without that step, the bidiagonal form of the adjoint is that of the matrix, transposed.
    let transposed = wide && first.is_none();
    let bidiagonal = Bidiagonal::new(core);
    let (d, e) = (bidiagonal.diagonal.clone(), bidiagonal.off_diagonal.clone());
    if vectors == Vectors::None
        && let Some(values) = dqds::singular_values(&d, &e)
    {
        return Ok(Svd { values, vectors: None });
    }
    let kept = if vectors == Vectors::None { 0 } else { size };
    let coarse = coarse.filter(|_| kept > 0);
    let (found, guide) = if kept > BY_ITERATION && driver == Driver::DivideAndConquer {
        (divide_bidiagonal::singular(&d, &e, transposed, F::Real::ULP, coarse)?, None)
    } else {
        by_iteration((d, e), Form { lower: transposed, driver }, kept, coarse)?
    };
    let Solved { values: d, mut u, mut v } = found;
    if let Some(guide) = guide {
        take_signs::<F::Real, F::Real>(&d, F::Real::default(), (&mut u, &mut v), (&guide.u, &guide.v));
    }
    if vectors == Vectors::None {
        return Ok(Svd { values: d, vectors: None });
    }
    let columns = if vectors == Vectors::Full { rows } else { size };
    let embedded = |x: &Matrix<F>| {
        if (rows, columns) == (x.rows(), x.columns()) {
            return x.clone();
        }
        Matrix::from_fn(rows, columns, |i, j| match (x.rows() > i, x.columns() > j) {
            (true, true) => x[(i, j)],
            _ if i == j => F::one(),
            _ => F::default(),
        })
    };
    let (u, v) = (u.map(F::from_real), v.map(F::from_real));
    let (u, v) = match first {
        Some(qr) => {
            let (u, v) = (bidiagonal.left(u), bidiagonal.right(v));
            let mut long = embedded(if wide { &v } else { &u });
            qr::multiply(&qr.factors, &qr.taus, &mut long, true, false);
            if wide { (u, long) } else { (long, v) }
        }
        None if wide => (bidiagonal.right(u), bidiagonal.left(embedded(&v))),
        None => (bidiagonal.left(embedded(&u)), bidiagonal.right(v)),
    };
    Ok(Svd { values: d, vectors: Some((u, v)) })
}

/// What is diagonalized, and as who does it.
#[derive(Clone, Copy)]
struct Form {
    /// Whether the second diagonal is below the first.
    lower: bool,
    driver: Driver,
}

/// Diagonalizes a bidiagonal matrix as a driver does, with `kept` rows of the vectors, and in addition down
/// to `coarse`.
fn by_iteration<R: Real>(
    (d, e): (Vec<R>, Vec<R>),
    Form { lower, driver }: Form,
    kept: usize,
    coarse: Option<f64>,
) -> Result<(Solved<R>, Option<Solved<R>>), usize> {
    let n = d.len();
    let identity = || (Rotations::identity(kept, n), Rotations::identity(kept, n));
    if n == 1 && driver == Driver::DivideAndConquer {
        let (mut d, (mut u, v)) = (d, identity());
        if d[0].to_f64().is_sign_negative() {
            d[0] = -d[0];
            u.negate(0);
        }
        return Ok((Solved { values: d, u: u.finish(), v: v.finish() }, None));
    }
    let begun = |ulp: f64| BidiagonalIteration::new((d.clone(), e.clone()), lower, identity(), ulp);
    let finished = |BidiagonalIteration { mut d, mut u, mut v, .. }| {
        if driver == Driver::DivideAndConquer {
            // Once more in each direction: that changes the order of equal ones.
            let mut swap = |i, j| {
                u.swap(i, j);
                v.swap(i, j);
            };
            exchange(&mut d, |x, least| x < least, &mut swap);
            exchange(&mut d, |x, largest| x > largest, &mut swap);
        }
        Solved { values: d, u: u.finish(), v: v.finish() }
    };
    let mut fine = begun(R::ULP);
    let Some(coarse) = coarse else {
        chase::run(&mut fine)?;
        return Ok((finished(fine), None));
    };
    let mut rough = begun(coarse);
    let [done, roughly] = chase::run_both(&mut fine, &mut rough);
    done?;
    Ok((finished(fine), roughly.ok().map(|()| finished(rough))))
}
