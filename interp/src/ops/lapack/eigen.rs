//! Eigenvalues, Schur forms and singular values: `syevd`, `geev`, `gees`, `gesdd`, `gesvd`.
//!
//! What LAPACK overwrites with unspecified values is the operand; vectors that were not asked for are 0. A
//! matrix whose decomposition fails has a positive `info` (or -4, of operands that are not finite, where
//! jaxlib and LAPACK say so), and NaN in all results.

use hlo::Element;
use hlo::ElementType::S32;
use hlo_matrices::eigen_symmetric::Eigenvectors;
use hlo_matrices::svd::{Driver, Vectors};
use hlo_matrices::wide::{self, Field, Real, Widened};
use hlo_matrices::{Decompose, Matrix};
use hlo_threads::parallel::collect;

use super::LapackElement;
use super::factor::narrow;
use super::shapes::{Core, Job};
use crate::error::Result;
use crate::value::{Sizes, Value};

/// `N` and `V`.
const WANTED: [(u8, bool); 2] = [(b'N', false), (b'V', true)];

/// Appends a matrix, or NaNs if there is none.
fn narrow_or_nan<T: Widened>(out: &mut Vec<T>, x: Option<&Matrix<T::Wide>>, size: usize) {
    match x {
        Some(x) => x.narrow_into(out),
        None => out.extend(std::iter::repeat_n(nan::<T>(), size)),
    }
}

fn nan<T: Widened>() -> T {
    T::narrow(T::Wide::from_real(<T::Wide as Field>::Real::from_f64(f64::NAN)))
}

/// Appends numbers, or NaNs if there are none.
fn line_or_nan<T: Widened>(out: &mut Vec<T>, x: Option<&[T::Wide]>, size: usize) {
    match x {
        Some(x) => narrow(out, x),
        None => out.extend(std::iter::repeat_n(nan::<T>(), size)),
    }
}

/// `(eigenvectors, eigenvalues, info) = syevd(a)`.
pub(super) fn syevd<T: LapackElement>(job: &Job<'_>) -> Result<Option<Value>> {
    job.operands(1)?;
    let config = job.config(&["mode", "uplo"])?;
    let (vectors, triangle) = (config.choice("mode", &WANTED)?, config.triangle()?);
    let (a, batch) = job.square::<T>(0)?;
    let n = a.rows;
    let (matrix, line) = (Core::Matrix(n, n), Core::Line(n));
    let real = <T::Real>::TYPE;
    let Some(count) = job.expect(&batch, &[(T::TYPE, matrix), (real, line), (S32, Core::One)])? else {
        return Ok(None);
    };
    let (mut z, mut w, mut info) = (Vec::<T>::new(), Vec::new(), Vec::new());
    let wanted = if vectors { Eigenvectors::All } else { Eigenvectors::No };
    for eigen in collect(count, &|i| T::Wide::eigen_symmetric(a.get(i), triangle, wanted, T::EPSILON)) {
        let found = eigen.as_ref().ok();
        line_or_nan::<T::Real>(&mut w, found.map(|e| &e.values[..]), n);
        if vectors {
            narrow_or_nan(&mut z, found.and_then(|e| e.vectors.as_ref()), n * n);
        }
        info.push(eigen.err().map_or(0, |k| k as i32));
    }
    let z = if vectors { job.result(&batch, matrix, z) } else { job.untouched(0) };
    Ok(Some(job.results(vec![z, job.result(&batch, line, w), job.result(&batch, Core::One, info)])))
}

/// Of a real type `(real parts, imaginary parts, left, right, info) = geev(a)`; of a complex type the
/// eigenvalues are one result.
pub(super) fn geev<T: LapackElement>(job: &Job<'_>) -> Result<Option<Value>> {
    job.operands(1)?;
    let config = job.config(&["compute_left", "compute_right"])?;
    let (left, right) = (config.choice("compute_left", &WANTED)?, config.choice("compute_right", &WANTED)?);
    let (a, batch) = job.square::<T>(0)?;
    let n = a.rows;
    let (matrix, line) = (Core::Matrix(n, n), Core::Line(n));
    let (real, complex) = (<T::Real>::TYPE, <T::Complex>::TYPE);
    let vectors = (complex, matrix);
    let values: &[_] = if T::Wide::COMPLEX { &[(complex, line)] } else { &[(real, line); 2] };
    let Some(count) = job.expect(&batch, &[values, &[vectors, vectors, (S32, Core::One)]].concat())? else {
        return Ok(None);
    };
    let mut values = Values::<T>::new();
    let (mut vl, mut vr, mut info) = (Vec::<T::Complex>::new(), Vec::<T::Complex>::new(), Vec::new());
    for eigen in collect(count, &|i| {
        let a = a.get(i);
        if a.is_finite() { T::Wide::eigen(a, left, right, T::EPSILON).map_err(|k| k as i32) } else { Err(-4) }
    }) {
        let found = eigen.as_ref().ok();
        values.push(found.map(|e| &e.values[..]), n);
        if left {
            narrow_or_nan(&mut vl, found.and_then(|e| e.left.as_ref()), n * n);
        }
        if right {
            narrow_or_nan(&mut vr, found.and_then(|e| e.right.as_ref()), n * n);
        }
        info.push(eigen.err().unwrap_or(0));
    }
    let mut out = values.results(job, &batch, line);
    for (vectors, wanted) in [(vl, left), (vr, right)] {
        let vectors = if wanted { vectors } else { vec![T::Complex::default(); count * n * n] };
        out.push(job.result(&batch, matrix, vectors));
    }
    out.push(job.result(&batch, Core::One, info));
    Ok(Some(job.results(out)))
}

/// The real numbers of a type's wide arithmetic.
type WideReal<T> = <<T as Widened>::Wide as Field>::Real;

/// Eigenvalues of general matrices, in the form of the results.
struct Values<T: LapackElement> {
    re: Vec<T::Real>,
    im: Vec<T::Real>,
    complex: Vec<T::Complex>,
}

impl<T: LapackElement> Values<T> {
    fn new() -> Self {
        Self { re: Vec::new(), im: Vec::new(), complex: Vec::new() }
    }

    /// Appends the values of a matrix, or NaNs if there are none.
    fn push(&mut self, values: Option<&[wide::Complex<WideReal<T>>]>, n: usize) {
        if T::Wide::COMPLEX {
            return line_or_nan(&mut self.complex, values, n);
        }
        let part = |of: fn(&wide::Complex<WideReal<T>>) -> WideReal<T>| {
            values.map(|values| values.iter().map(of).collect::<Vec<_>>())
        };
        line_or_nan(&mut self.re, part(|w| w.re).as_deref(), n);
        line_or_nan(&mut self.im, part(|w| w.im).as_deref(), n);
    }

    fn results(self, job: &Job<'_>, batch: &Sizes, line: Core) -> Vec<Value> {
        if T::Wide::COMPLEX {
            return vec![job.result(batch, line, self.complex)];
        }
        vec![job.result(batch, line, self.re), job.result(batch, line, self.im)]
    }
}

/// Of a real type `(T, Z, real parts, imaginary parts, selected, info) = gees(a)`; of a complex type the
/// eigenvalues are one result. Eigenvalues are not ordered, so none is selected.
pub(super) fn gees<T: LapackElement>(job: &Job<'_>) -> Result<Option<Value>> {
    job.operands(1)?;
    let config = job.config(&["mode", "sort"])?;
    let vectors = config.choice("mode", &WANTED)?;
    config.choice("sort", &[(b'N', ())])?;
    let (a, batch) = job.square::<T>(0)?;
    let n = a.rows;
    let (matrix, line) = (Core::Matrix(n, n), Core::Line(n));
    let values: &[_] = if T::Wide::COMPLEX { &[(T::TYPE, line)] } else { &[(T::TYPE, line); 2] };
    let expected = [&[(T::TYPE, matrix); 2], values, &[(S32, Core::One); 2]].concat();
    let Some(count) = job.expect(&batch, &expected)? else { return Ok(None) };
    let mut values = Values::<T>::new();
    let (mut t, mut z, mut info) = (Vec::<T>::new(), Vec::<T>::new(), Vec::new());
    for schur in collect(count, &|i| T::Wide::schur(a.get(i), T::EPSILON)) {
        let found = schur.as_ref().ok();
        narrow_or_nan(&mut t, found.map(|s| &s.t), n * n);
        if vectors {
            narrow_or_nan(&mut z, found.map(|s| &s.z), n * n);
        }
        values.push(found.map(|s| &s.values[..]), n);
        info.push(schur.err().map_or(0, |k| k as i32));
    }
    if !vectors {
        z = vec![T::default(); count * n * n];
    }
    let mut out = vec![job.result(&batch, matrix, t), job.result(&batch, matrix, z)];
    out.extend(values.results(job, &batch, line));
    out.push(job.result(&batch, Core::One, vec![0i32; count]));
    out.push(job.result(&batch, Core::One, info));
    Ok(Some(job.results(out)))
}

/// `(overwritten, singular values, u, vt, info) = gesdd(a)` and `gesvd(a)`.
pub(super) fn svd<T: LapackElement>(job: &Job<'_>, driver: Driver) -> Result<Option<Value>> {
    job.operands(1)?;
    let config = job.config(&["mode"])?;
    let modes = [(b'A', Vectors::Full), (b'S', Vectors::Thin), (b'N', Vectors::None)];
    let vectors = config.choice("mode", &modes)?;
    let (a, batch) = job.matrices::<T>(0)?;
    let (m, n, size) = (a.rows, a.columns, a.rows.min(a.columns));
    // Without vectors there are still results for them, thin or full.
    let full = match vectors {
        Vectors::Full => true,
        Vectors::Thin => false,
        Vectors::None => job.sizes_of_result(2) == Some([m, m]),
    };
    let (matrix, line) = (Core::Matrix(m, n), Core::Line(size));
    let u_core = Core::Matrix(m, if full { m } else { size });
    let vt_core = Core::Matrix(if full { n } else { size }, n);
    let real = <T::Real>::TYPE;
    let expected = [(T::TYPE, matrix), (real, line), (T::TYPE, u_core), (T::TYPE, vt_core), (S32, Core::One)];
    let Some(count) = job.expect(&batch, &expected)? else { return Ok(None) };
    let (mut s, mut u, mut vt, mut info) = (Vec::new(), Vec::<T>::new(), Vec::<T>::new(), Vec::new());
    let (u_size, vt_size) = (u_core.len(), vt_core.len());
    for svd in collect(count, &|i| {
        let a = a.get(i);
        let has_nan = a.elements().iter().any(|x| x.real() != x.real() || x.imag() != x.imag());
        if has_nan { Err(-4) } else { T::Wide::svd(a, vectors, driver, T::EPSILON).map_err(|k| k as i32) }
    }) {
        let found = svd.as_ref().ok();
        line_or_nan::<T::Real>(&mut s, found.map(|svd| &svd.values[..]), size);
        if vectors != Vectors::None {
            let both = found.and_then(|svd| svd.vectors.as_ref());
            narrow_or_nan(&mut u, both.map(|(u, _)| u), u_size);
            narrow_or_nan(&mut vt, both.map(|(_, v)| v.adjoint()).as_ref(), vt_size);
        }
        info.push(svd.err().unwrap_or(0));
    }
    if vectors == Vectors::None {
        (u, vt) = (vec![T::default(); count * u_size], vec![T::default(); count * vt_size]);
    }
    Ok(Some(job.results(vec![
        job.untouched(0),
        job.result(&batch, line, s),
        job.result(&batch, u_core, u),
        job.result(&batch, vt_core, vt),
        job.result(&batch, Core::One, info),
    ])))
}
