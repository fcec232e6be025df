//! Factorizations and reductions: `getrf`, `geqrf`, `geqp3`, `orgqr`, `ormqr`, `potrf`, `gehrd`, `sytrd`.

use hlo::Element;
use hlo::ElementType::S32;
use hlo_matrices::Decompose;
use hlo_matrices::wide::Widened;
use hlo_threads::parallel::collect;

use super::LapackElement;
use super::shapes::{Core, Job};
use crate::error::Result;
use crate::value::Value;

/// Appends rounded numbers.
pub(super) fn narrow<T: Widened>(out: &mut Vec<T>, x: &[T::Wide]) {
    out.extend(x.iter().map(|&x| T::narrow(x)));
}

/// `(factors, pivots from 1, info) = getrf(a)`.
pub(super) fn getrf<T: LapackElement>(job: &Job<'_>) -> Result<Option<Value>> {
    job.operands(1)?;
    job.config(&[])?;
    let (a, batch) = job.matrices::<T>(0)?;
    let (matrix, line) = (Core::Matrix(a.rows, a.columns), Core::Line(a.rows.min(a.columns)));
    let Some(count) = job.expect(&batch, &[(T::TYPE, matrix), (S32, line), (S32, Core::One)])? else {
        return Ok(None);
    };
    let (mut factors, mut pivots, mut info) = (Vec::<T>::new(), Vec::new(), Vec::new());
    for lu in collect(count, &|i| T::Wide::lu(&|| a.get(i))) {
        lu.factors.narrow_into(&mut factors);
        pivots.extend(lu.pivots.iter().map(|&p| p as i32 + 1));
        info.push(lu.singular.map_or(0, |k| k as i32 + 1));
    }
    Ok(Some(job.results(vec![
        job.result(&batch, matrix, factors),
        job.result(&batch, line, pivots),
        job.result(&batch, Core::One, info),
    ])))
}

/// `(factors, taus) = geqrf(a)`.
pub(super) fn geqrf<T: LapackElement>(job: &Job<'_>) -> Result<Option<Value>> {
    job.operands(1)?;
    job.config(&[])?;
    let (a, batch) = job.matrices::<T>(0)?;
    let (matrix, line) = (Core::Matrix(a.rows, a.columns), Core::Line(a.rows.min(a.columns)));
    let Some(count) = job.expect(&batch, &[(T::TYPE, matrix), (T::TYPE, line)])? else { return Ok(None) };
    let (mut factors, mut taus) = (Vec::<T>::new(), Vec::<T>::new());
    for qr in collect(count, &|i| T::Wide::qr(a.get(i))) {
        qr.factors.narrow_into(&mut factors);
        narrow(&mut taus, &qr.taus);
    }
    Ok(Some(job.results(vec![job.result(&batch, matrix, factors), job.result(&batch, line, taus)])))
}

/// `(factors, columns from 1, taus) = geqp3(a, columns that stay in front)`.
pub(super) fn geqp3<T: LapackElement>(job: &Job<'_>) -> Result<Option<Value>> {
    job.operands(2)?;
    job.config(&[])?;
    let (a, batch) = job.matrices::<T>(0)?;
    let fixed = job.lines::<i32>(1, &batch)?;
    if fixed.len != a.columns {
        return job.unsupported(&format!("with {} columns and {} pivots", a.columns, fixed.len));
    }
    let (matrix, columns) = (Core::Matrix(a.rows, a.columns), Core::Line(a.columns));
    let line = Core::Line(a.rows.min(a.columns));
    let Some(count) = job.expect(&batch, &[(T::TYPE, matrix), (S32, columns), (T::TYPE, line)])? else {
        return Ok(None);
    };
    let (mut factors, mut order, mut taus) = (Vec::<T>::new(), Vec::new(), Vec::<T>::new());
    let done = collect(count, &|i| {
        let mut columns = fixed.slice(i).to_vec();
        let qr = T::Wide::qr_pivoted(a.get(i), &mut columns);
        (qr, columns)
    });
    for (qr, columns) in done {
        qr.factors.narrow_into(&mut factors);
        order.extend(columns);
        narrow(&mut taus, &qr.taus);
    }
    Ok(Some(job.results(vec![
        job.result(&batch, matrix, factors),
        job.result(&batch, columns, order),
        job.result(&batch, line, taus),
    ])))
}

/// `q = orgqr(reflectors, taus)`.
pub(super) fn orgqr<T: LapackElement>(job: &Job<'_>) -> Result<Option<Value>> {
    job.operands(2)?;
    job.config(&[])?;
    let (a, batch) = job.matrices::<T>(0)?;
    let taus = job.lines::<T>(1, &batch)?;
    if a.columns > a.rows || taus.len > a.columns {
        return job.unsupported(&format!("of {} by {} and {} reflectors", a.rows, a.columns, taus.len));
    }
    let matrix = Core::Matrix(a.rows, a.columns);
    let Some(count) = job.expect(&batch, &[(T::TYPE, matrix)])? else { return Ok(None) };
    let mut out = Vec::<T>::new();
    for q in collect(count, &|i| T::Wide::form_q(&a.get(i), &taus.get(i))) {
        q.narrow_into(&mut out);
    }
    Ok(Some(job.results(vec![job.result(&batch, matrix, out)])))
}

/// `Q c`, `Q^H c`, `c Q` or `c Q^H` `= ormqr(reflectors, taus, c)`.
pub(super) fn ormqr<T: LapackElement>(job: &Job<'_>) -> Result<Option<Value>> {
    job.operands(3)?;
    let config = job.config(&["left", "transpose"])?;
    let (left, adjoint) = (config.bool("left")?, config.bool("transpose")?);
    let (c, batch) = job.matrices::<T>(2)?;
    let a = job.more_matrices::<T>(0, &batch)?;
    let taus = job.lines::<T>(1, &batch)?;
    let order = if left { c.rows } else { c.columns };
    if a.rows != order || taus.len > order || taus.len > a.columns {
        return job.unsupported(&format!(
            "of {} by {} with {} reflectors in {} by {}",
            c.rows, c.columns, taus.len, a.rows, a.columns
        ));
    }
    let matrix = Core::Matrix(c.rows, c.columns);
    let Some(count) = job.expect(&batch, &[(T::TYPE, matrix)])? else { return Ok(None) };
    let mut out = Vec::<T>::new();
    let done = collect(count, &|i| {
        let mut c = c.get(i);
        T::Wide::multiply_q(&a.get(i), &taus.get(i), &mut c, left, adjoint);
        c
    });
    for c in done {
        c.narrow_into(&mut out);
    }
    Ok(Some(job.results(vec![job.result(&batch, matrix, out)])))
}

/// `(factor, info) = potrf(a)`: the other triangle is that of `a`. If `info` is k, so are rows and columns k
/// and beyond.
pub(super) fn potrf<T: LapackElement>(job: &Job<'_>) -> Result<Option<Value>> {
    job.operands(1)?;
    let triangle = job.config(&["uplo"])?.triangle()?;
    let (a, batch) = job.square::<T>(0)?;
    let matrix = Core::Matrix(a.rows, a.columns);
    let Some(count) = job.expect(&batch, &[(T::TYPE, matrix), (S32, Core::One)])? else { return Ok(None) };
    let (mut factors, mut info) = (Vec::<T>::new(), Vec::new());
    let done = collect(count, &|i| {
        let mut a = a.get(i);
        let done = T::Wide::cholesky(&mut a, triangle);
        (a, done)
    });
    for (factor, done) in done {
        factor.narrow_into(&mut factors);
        info.push(done.err().map_or(0, |k| k as i32 + 1));
    }
    Ok(Some(job.results(vec![job.result(&batch, matrix, factors), job.result(&batch, Core::One, info)])))
}

/// `(factors, taus, info) = gehrd(a)` of the rows and columns `low` to `high`, from 1.
pub(super) fn gehrd<T: LapackElement>(job: &Job<'_>) -> Result<Option<Value>> {
    job.operands(1)?;
    let config = job.config(&["low", "high"])?;
    let (low, high) = (config.int("low")?, config.int("high")?);
    let (a, batch) = job.square::<T>(0)?;
    let n = a.rows;
    let (first, last) = (usize::try_from(low.saturating_sub(1)), usize::try_from(high));
    let active = match (first, last) {
        // LAPACK: 1 <= low <= high <= n, or low = 1 and high = 0 for n = 0.
        (Ok(first), Ok(last)) if last <= n && (first < last || (n == 0 && first == 0)) => first..last,
        _ => return job.unsupported(&format!("of rows {low} to {high} of {n}")),
    };
    let (matrix, line) = (Core::Matrix(n, n), Core::Line(n.saturating_sub(1)));
    let Some(count) = job.expect(&batch, &[(T::TYPE, matrix), (T::TYPE, line), (S32, Core::One)])? else {
        return Ok(None);
    };
    let (mut factors, mut taus) = (Vec::<T>::new(), Vec::<T>::new());
    for done in collect(count, &|i| T::Wide::hessenberg(a.get(i), active.clone())) {
        done.factors.narrow_into(&mut factors);
        narrow(&mut taus, &done.taus);
    }
    Ok(Some(job.results(vec![
        job.result(&batch, matrix, factors),
        job.result(&batch, line, taus),
        job.result(&batch, Core::One, vec![0i32; count]),
    ])))
}

/// `(factors, diagonal, off-diagonal, taus, info) = sytrd(a)`.
pub(super) fn sytrd<T: LapackElement>(job: &Job<'_>) -> Result<Option<Value>> {
    job.operands(1)?;
    let triangle = job.config(&["uplo"])?.triangle()?;
    let (a, batch) = job.square::<T>(0)?;
    let n = a.rows;
    let (matrix, line, short) = (Core::Matrix(n, n), Core::Line(n), Core::Line(n.saturating_sub(1)));
    let real = <T::Real>::TYPE;
    let expected = [(T::TYPE, matrix), (real, line), (real, short), (T::TYPE, short), (S32, Core::One)];
    let Some(count) = job.expect(&batch, &expected)? else { return Ok(None) };
    let (mut factors, mut d, mut e, mut taus) = (Vec::<T>::new(), Vec::new(), Vec::new(), Vec::<T>::new());
    for done in collect(count, &|i| T::Wide::tridiagonal(a.get(i), triangle)) {
        done.reduced.narrow_into(&mut factors);
        narrow::<T::Real>(&mut d, &done.diagonal);
        narrow::<T::Real>(&mut e, &done.off_diagonal);
        narrow(&mut taus, &done.taus);
    }
    Ok(Some(job.results(vec![
        job.result(&batch, matrix, factors),
        job.result(&batch, line, d),
        job.result(&batch, short, e),
        job.result(&batch, short, taus),
        job.result(&batch, Core::One, vec![0i32; count]),
    ])))
}
