//! Systems of equations: `trsm`, `gtsv`, `tridiagonal_solve_perturbed`.

use hlo::ElementType::{self, S32};
use hlo::num_complex::Complex;
use hlo_matrices::{Decompose, triangular, tridiagonal};
use hlo_threads::parallel::collect;

use super::LapackElement;
use super::factor::narrow;
use super::shapes::{Core, Job};
use crate::error::Result;
use crate::value::Value;

/// `x = trsm(a, b)`: `op(a) x = b` or `x op(a) = b`.
pub(super) fn trsm<T: LapackElement>(job: &Job<'_>) -> Result<Option<Value>> {
    job.operands(2)?;
    let config = job.config(&["side", "uplo", "trans_x", "diag"])?;
    let choices = [(b'N', (false, false)), (b'T', (true, false)), (b'C', (true, true))];
    let (transposed, conjugated) = config.choice("trans_x", &choices)?;
    let system = triangular::System {
        left: config.choice("side", &[(b'L', true), (b'R', false)])?,
        triangle: config.triangle()?,
        unit: config.choice("diag", &[(b'U', true), (b'N', false)])?,
        transposed,
        conjugated,
    };
    let (a, batch) = job.square::<T>(0)?;
    let b = job.more_matrices::<T>(1, &batch)?;
    if a.rows != if system.left { b.rows } else { b.columns } {
        return job.unsupported(&format!("of order {} for {} by {}", a.rows, b.rows, b.columns));
    }
    let matrix = Core::Matrix(b.rows, b.columns);
    let Some(count) = job.expect(&batch, &[(T::TYPE, matrix)])? else { return Ok(None) };
    let mut out = Vec::<T>::new();
    let done = collect(count, &|i| {
        let mut b = b.get(i);
        T::Wide::solve_triangular(&a.get(i), &mut b, system);
        b
    });
    for x in done {
        x.narrow_into(&mut out);
    }
    Ok(Some(job.results(vec![job.result(&batch, matrix, out)])))
}

/// `(second diagonal of U, diagonal, first diagonal, x, info) = gtsv(below, diagonal, above, b)`. The first
/// element below the diagonal and the last one above it have no meaning and stay. If `info` is not 0, the
/// elimination stopped there.
pub(super) fn gtsv<T: LapackElement>(job: &Job<'_>) -> Result<Option<Value>> {
    job.operands(4)?;
    job.config(&[])?;
    let (b, batch) = job.matrices::<T>(3)?;
    let n = b.rows;
    let lines = [job.lines::<T>(0, &batch)?, job.lines::<T>(1, &batch)?, job.lines::<T>(2, &batch)?];
    if lines.iter().any(|line| line.len != n) {
        return job.unsupported("with diagonals of another length than the right-hand side");
    }
    let (matrix, line) = (Core::Matrix(n, b.columns), Core::Line(n));
    let expected = [(T::TYPE, line), (T::TYPE, line), (T::TYPE, line), (T::TYPE, matrix), (S32, Core::One)];
    let Some(count) = job.expect(&batch, &expected)? else { return Ok(None) };
    let done = collect(count, &|i| {
        let [mut lower, diagonal, mut upper] = [0, 1, 2].map(|k| lines[k].get(i));
        let first = if n == 0 { lower.split_off(0) } else { lower.drain(..1).collect() };
        let last = upper.split_off(n.saturating_sub(1));
        let mut system = tridiagonal::System { lower, diagonal, upper, b: b.get(i) };
        let done = system.solve();
        (system, first, last, done)
    });
    let (mut dl, mut d, mut du, mut x, mut info) =
        (Vec::<T>::new(), Vec::<T>::new(), Vec::<T>::new(), Vec::<T>::new(), Vec::new());
    for (system, first, last, done) in done {
        narrow(&mut dl, &first);
        narrow(&mut dl, &system.lower);
        narrow(&mut d, &system.diagonal);
        narrow(&mut du, &system.upper);
        narrow(&mut du, &last);
        system.b.narrow_into(&mut x);
        info.push(done.err().map_or(0, |k| k as i32 + 1));
    }
    Ok(Some(job.results(vec![
        job.result(&batch, line, dl),
        job.result(&batch, line, d),
        job.result(&batch, line, du),
        job.result(&batch, matrix, x),
        job.result(&batch, Core::One, info),
    ])))
}

/// `x = tridiagonal_solve_perturbed(below, diagonal, above, b)`.
pub(super) fn perturbed_of_any_type(job: &Job<'_>) -> Result<Option<Value>> {
    match job.element_type(3)? {
        ElementType::F32 => perturbed::<f32>(job),
        ElementType::F64 => perturbed::<f64>(job),
        ElementType::C64 => perturbed::<Complex<f32>>(job),
        ElementType::C128 => perturbed::<Complex<f64>>(job),
        ty => job.unsupported(&format!("of type {ty}")),
    }
}

fn perturbed<T: LapackElement>(job: &Job<'_>) -> Result<Option<Value>> {
    job.operands(4)?;
    job.config(&[])?;
    let (b, batch) = job.matrices::<T>(3)?;
    let n = b.rows;
    let lines = [job.lines::<T>(0, &batch)?, job.lines::<T>(1, &batch)?, job.lines::<T>(2, &batch)?];
    if lines.iter().any(|line| line.len != n) {
        return job.unsupported("with diagonals of another length than the right-hand side");
    }
    let matrix = Core::Matrix(n, b.columns);
    let Some(count) = job.expect(&batch, &[(T::TYPE, matrix)])? else { return Ok(None) };
    let mut out = Vec::<T>::new();
    let done = collect(count, &|i| {
        let [lower, diagonal, upper] = [0, 1, 2].map(|k| lines[k].get(i));
        let lower = lower.get(1..).unwrap_or_default().to_vec();
        let upper = upper[..n.saturating_sub(1)].to_vec();
        tridiagonal::System { lower, diagonal, upper, b: b.get(i) }.solve_perturbed(T::EPSILON, T::TINY)
    });
    for x in done {
        x.narrow_into(&mut out);
    }
    Ok(Some(job.results(vec![job.result(&batch, matrix, out)])))
}
