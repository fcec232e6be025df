//! Bidiagonal matrices by dividing, solving the halves and merging: `bdsdc`, as `gesdd` uses it beyond
//! [`BY_ITERATION`].
//!
//! An upper bidiagonal matrix without one of its rows is two matrices of about half the size, the first with
//! one column more than rows. The singular vectors of these transform the row to z and the other rows to a
//! diagonal matrix D: B B^T becomes D^2 + z z^T, and the singular values are the square roots of the roots of
//! a rational function ([`super::secular`]). As where eigenvectors are merged ([`super::divide`]), what is
//! left out (*deflated*) and the signs of z decide the signs of the vectors: both are as LAPACK has them, to
//! the same unit of rounding.

use super::Matrix;
use super::chase;
use super::eigen_symmetric::BY_ITERATION;
use super::implicit_qr::{BidiagonalIteration, exchange, other_side};
use super::matrix::{agreement, hypotenuse, negate};
use super::rotations::Rotations;
use super::secular::{
    Columns, Decisions, LeftOut, Poles, Roots, Rows, ascending, deflate, largest, normalize,
};
use super::svd::take_signs;
use crate::wide::{Real, abs};

/// B = U S V^T.
#[derive(Debug)]
pub(crate) struct Solved<R> {
    pub(crate) values: Vec<R>,
    pub(crate) u: Matrix<R>,
    /// With one column more than there are values where B has: that B v is 0.
    pub(crate) v: Matrix<R>,
}

/// The singular values, descending, and vectors of a square matrix with `d` on its diagonal and `e` above it
/// (or below, if `lower`), up to what is below `ulp`, with the signs that there are up to what is below
/// `coarse`. The error is that of the iteration on a small part.
pub(crate) fn singular<R: Real>(
    d: &[R],
    e: &[R],
    lower: bool,
    ulp: f64,
    coarse: Option<f64>,
) -> Result<Solved<R>, usize> {
    let run = |decisions: &Decisions| singular_by(d, e, lower, decisions);
    let (mut found, guide) = Decisions::guided(ulp, coarse, run)?;
    if let Some(guide) = guide {
        take_signs(&found.values, R::default(), (&mut found.u, &mut found.v), (&guide.u, &guide.v));
    }
    Ok(found)
}

fn singular_by<R: Real>(d: &[R], e: &[R], lower: bool, decisions: &Decisions) -> Result<Solved<R>, usize> {
    let n = d.len();
    let (mut d, mut e) = (d.to_vec(), e.to_vec());
    let mut rotations = Vec::new();
    if lower {
        other_side(&mut d, &mut e, |_, c, s| rotations.push((c, s)));
    }
    let (mut u, mut v) = (Matrix::identity(n, n), Matrix::identity(n, n));
    let norm = largest(d.iter().chain(&e));
    if !norm.is_zero() {
        d.iter_mut().chain(&mut e).for_each(|x| *x = *x / norm);
        let epsilon = |ulp: f64| R::from_f64(0.9 * (ulp / 2.0));
        let negligible = |x: R| decisions.negligible(|ulp| abs(x) < epsilon(ulp));
        for x in d.iter_mut().filter(|x| negligible(**x)) {
            *x = epsilon(decisions.ulp).with_sign_of(*x);
        }
        let mut start = 0;
        while start < n {
            let end = (start..n - 1).find(|&i| negligible(e[i])).map_or(n, |i| i + 1);
            let of = if start > 0 && start + 1 == n {
                // The last element by itself is no matter of the iteration.
                let sign = R::one().with_sign_of(d[start]);
                Solved {
                    values: vec![abs(d[start])],
                    u: Matrix::from_fn(1, 1, |_, _| sign),
                    v: Matrix::identity(1, 1),
                }
            } else {
                let mut depth = 0;
                while (end - start) >> depth > BY_ITERATION {
                    depth += 1;
                }
                solve(&d[start..end], &e[start..end - 1], depth, decisions)?
            };
            for (j, &value) in of.values.iter().enumerate() {
                d[start + j] = value * norm;
                u.column_mut(start + j)[start..end].copy_from_slice(of.u.column(j));
                v.column_mut(start + j)[start..end].copy_from_slice(of.v.column(j));
            }
            start = end;
        }
    }
    exchange(
        &mut d,
        |x, most| x > most,
        |i, j| {
            u.swap_columns(i, j);
            v.swap_columns(i, j);
        },
    );
    for column in u.elements_mut().chunks_exact_mut(n.max(1)) {
        for (i, &(c, s)) in rotations.iter().enumerate().rev() {
            let (x, y) = (column[i], column[i + 1]);
            (column[i], column[i + 1]) = (x * c - y * s, y * c + x * s);
        }
    }
    Ok(Solved { values: d, u, v })
}

/// Values ascend. With as many elements above the diagonal as on it, the matrix has one column more than
/// rows.
fn solve<R: Real>(d: &[R], e: &[R], depth: usize, decisions: &Decisions) -> Result<Solved<R>, usize> {
    if depth == 0 {
        return small(d, e, decisions);
    }
    let row = d.len() / 2;
    let ((left, before), (right, after)) = ((&d[..row], &e[..row]), (&d[row + 1..], &e[row + 1..]));
    let (first, second);
    if depth == 1 && decisions.coarse.is_none() {
        let (mut one, mut two) = (begun(left, before, decisions.ulp), begun(right, after, decisions.ulp));
        chase::run_both(&mut one, &mut two).into_iter().collect::<Result<(), usize>>()?;
        (first, second) = (finished(one), finished(two));
    } else {
        first = solve(left, before, depth - 1, decisions)?;
        second = solve(right, after, depth - 1, decisions)?;
    }
    Ok(merge(first, second, (d[row], e[row]), decisions))
}

fn small<R: Real>(d: &[R], e: &[R], decisions: &Decisions) -> Result<Solved<R>, usize> {
    let mut part = begun(d, e, decisions.ulp);
    let Some(coarse) = decisions.coarse else {
        chase::run(&mut part)?;
        return Ok(finished(part));
    };
    let mut rough = begun(d, e, coarse);
    let [done, roughly] = chase::run_both(&mut part, &mut rough);
    done?;
    let mut found = finished(part);
    match roughly {
        Ok(()) => {
            let guide = finished(rough);
            take_signs(&found.values, R::default(), (&mut found.u, &mut found.v), (&guide.u, &guide.v));
            // The column that B takes to 0.
            for j in found.values.len()..found.v.columns() {
                if agreement(found.v.column(j), guide.v.column(j)) < 0.0 {
                    negate(found.v.column_mut(j));
                }
            }
        }
        Err(_) => decisions.doubt.set(true),
    }
    Ok(found)
}

/// By the iteration.
fn begun<R: Real>(d: &[R], e: &[R], ulp: f64) -> BidiagonalIteration<R> {
    let (mut d, mut e, n) = (d.to_vec(), e.to_vec(), d.len());
    let wide = !d.is_empty() && e.len() == n;
    let m = n + usize::from(wide);
    let (u, mut v) = (Rotations::identity(n, n), Rotations::identity(m, m));
    if wide {
        // The last column goes, and what was above the diagonal is below it.
        other_side(&mut d, &mut e, |i, c, s| v.rotate(i, c, s));
        e.truncate(n - 1);
    }
    BidiagonalIteration::new((d, e), wide, (u, v), ulp)
}

fn finished<R: Real>(BidiagonalIteration { mut d, mut u, mut v, .. }: BidiagonalIteration<R>) -> Solved<R> {
    exchange(
        &mut d,
        |x, least| x < least,
        |i, j| {
            u.swap(i, j);
            v.swap(i, j);
        },
    );
    Solved { values: d, u: u.finish(), v: v.finish() }
}

/// Both halves' values and vectors, and how far z touches each; first what belongs to the row between them,
/// with a value of 0.
struct Halves<R> {
    values: Vec<R>,
    z: Vec<R>,
    u: Columns<R>,
    v: Columns<R>,
}

/// The matrix that consists of both, and of the row between them with `alpha` on the diagonal and `beta` off
/// it.
fn merge<R: Real>(
    first: Solved<R>,
    second: Solved<R>,
    (alpha, beta): (R, R),
    decisions: &Decisions,
) -> Solved<R> {
    let row = first.values.len();
    let n = row + 1 + second.values.len();
    let m = row + 1 + second.v.columns();
    // Not 0: no element of the diagonal is.
    let norm = largest(first.values.iter().chain(&second.values).chain(&[alpha, beta]));
    let (alpha, beta) = (alpha / norm, beta / norm);
    let mut of = Halves {
        values: vec![R::default()],
        z: vec![R::default()],
        u: Columns::new(n, n, row + 1),
        v: Columns::new(m, n, row + 1),
    };
    of.values.extend(first.values.iter().chain(&second.values).map(|&x| x / norm));
    // The row is alpha and beta times these, besides what z of both halves is.
    let here = first.v.column(row);
    let beyond = (m > n).then(|| second.v.column(second.values.len()));
    let (own, other) = (alpha * here[row], beyond.map_or(R::default(), |x| beta * x[0]));
    let length = if m > n { hypotenuse(own, other) } else { own };
    let negligible = |x: R| decisions.negligible(|ulp| abs(x) <= tolerance(ulp));
    let mut unit = vec![R::default(); row + 1];
    unit[row] = R::one();
    of.u.push(Rows::First, &unit);
    let mut none = None;
    match beyond {
        Some(beyond) => {
            let (c, s) =
                if negligible(length) { (R::one(), R::default()) } else { (own / length, other / length) };
            let both =
                |x: R, y: R| here.iter().map(|&h| h * x).chain(beyond.iter().map(|&b| b * y)).collect();
            let touched: Vec<R> = both(c, s);
            let untouched: Vec<R> = both(-s, c);
            of.v.push(Rows::Both, &touched);
            none = Some(untouched);
        }
        None => of.v.push(Rows::First, here),
    }
    of.z[0] = if negligible(length) { tolerance(decisions.ulp) } else { length };
    for j in 0..row {
        of.z.push(alpha * first.v[(row, j)]);
        of.u.push(Rows::First, first.u.column(j));
        of.v.push(Rows::First, first.v.column(j));
    }
    for j in 0..second.values.len() {
        of.z.push(beta * second.v[(0, j)]);
        of.u.push(Rows::Second, second.u.column(j));
        of.v.push(Rows::Second, second.v.column(j));
    }
    // The row's own is always kept; of equal values those of the first half come first.
    let order = &ascending(&of.values)[1..];
    let left_out = decisions.coarse.map(|coarse| {
        let mut z = of.z.clone();
        LeftOut::new(n, |rotate| deflated(order, &of.values, &mut z, tolerance(coarse), rotate).1)
    });
    let mut rotated = 0;
    let Halves { values, z, u, v } = &mut of;
    let (mut kept, deflated) = deflated(order, values, z, tolerance(decisions.ulp), &mut |i, j, c, s| {
        u.rotate(i, j, c, s);
        v.rotate(i, j, c, s);
        rotated += 1;
    });
    kept.insert(0, 0);
    let (mut found, left, right) =
        solved(&of, &kept, decisions, left_out.map(|left_out| (left_out, rotated)));
    // Kept ones ascend, and so do deflated ones: both together.
    found.extend(deflated.iter().map(|&j| of.values[j]));
    let order = ascending(&found);
    let (u, mut v) = (of.u.ordered(&left, &deflated, &order), of.v.ordered(&right, &deflated, &order));
    if let Some(none) = none {
        v.column_mut(n).copy_from_slice(&none);
    }
    Solved { values: order.into_iter().map(|i| found[i] * norm).collect(), u, v }
}

/// The singular values of what was kept, and left and right vectors.
fn solved<R: Real>(
    of: &Halves<R>,
    kept: &[usize],
    decisions: &Decisions,
    left_out: Option<(LeftOut<R>, usize)>,
) -> (Vec<R>, Matrix<R>, Matrix<R>) {
    let mut d: Vec<R> = kept.iter().map(|&j| of.values[j]).collect();
    let z: Vec<R> = kept.iter().map(|&j| of.z[j]).collect();
    if let &[z] = &z[..] {
        let one = Matrix::identity(1, 1);
        let (mut u, v) = (of.u.times(kept, &one), of.v.times(kept, &one));
        if z <= R::default() {
            negate(u.column_mut(0));
        }
        return (vec![abs(z)], u, v);
    }
    let half = |ulp: f64| tolerance::<R>(ulp) / R::from_f64(2.0);
    if decisions.negligible(|ulp| d[1] <= half(ulp)) {
        d[1] = half(decisions.ulp);
    }
    let roots = Roots { d: d.clone(), z, rho: R::one(), poles: Poles::Squares, ulp: decisions.ulp };
    let (values, mut right) = roots.solve();
    let mut left = Matrix::zeros(d.len(), d.len());
    for j in 0..d.len() {
        let (x, y) = (left.column_mut(j), right.column_mut(j));
        x.iter_mut().zip(&*y).zip(&d).for_each(|((x, &y), &d)| *x = d * y);
        x[0] = -R::one();
        normalize(x);
        normalize(y);
    }
    if let Some((left_out, rotated)) = left_out {
        let [one, two] = [&left, &right].map(|s| decisions.opposite(s, kept, &left_out, rotated));
        if one != two {
            decisions.doubt.set(true);
        }
        for j in two {
            negate(left.column_mut(j));
            negate(right.column_mut(j));
        }
    }
    (values, of.u.times(kept, &left), of.v.times(kept, &right))
}

/// What is left out for z to be negligible, up to `tolerance`.
fn deflated<R: Real>(
    order: &[usize],
    values: &[R],
    z: &mut [R],
    tolerance: R,
    rotate: &mut dyn FnMut(usize, usize, R, R),
) -> (Vec<usize>, Vec<usize>) {
    deflate(
        order,
        z,
        |z| abs(z) <= tolerance,
        |i, j, c, s| {
            let close = abs(values[j] - values[i]) <= tolerance;
            if close {
                rotate(i, j, c, s);
            }
            close
        },
    )
}

/// What is negligible, relatively to the largest of values, alpha and beta, which is 1.
fn tolerance<R: Real>(ulp: f64) -> R {
    R::from_f64(8.0 * (ulp / 2.0))
}
