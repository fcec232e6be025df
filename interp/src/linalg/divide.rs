//! Tridiagonal matrices by dividing, solving the halves and merging: `stedc`, as `syevd` uses it beyond [`super::eigen_symmetric::BY_ITERATION`].
//!
//! A matrix is two of half the size and a rank-one matrix rho v v^T. The eigenvectors of the halves turn that into a diagonal matrix and
//! rho z z^T, whose eigenvalues are the roots of a rational function ([`super::secular`]). What z hardly touches, and one of two columns
//! whose values hardly differ, is left out (*deflated*) first. Which, and the signs of z, decide the signs of the eigenvectors: both are as
//! LAPACK has them, to the same unit of rounding.

use super::Matrix;
use super::eigen_symmetric::{BY_ITERATION, iterate};
use super::matrix::hypotenuse;
use super::secular::{Columns, Poles, Roots, Rows, normalize};
use super::turns::Turns;
use crate::scalar::wide::{Real, abs};

/// Eigenvalues in ascending order and the eigenvectors.
type Solved<R> = (Vec<R>, Matrix<R>);

/// Diagonalizes, up to what is below `ulp`. The error is that of the iteration on a small part.
pub(crate) fn eigen<R: Real>(d: &[R], e: &[R], ulp: f64) -> Result<Solved<R>, usize> {
    let n = d.len();
    let epsilon = R::from_f64(ulp / 2.0);
    let (mut values, mut vectors) = (Vec::with_capacity(n), Matrix::zeros(n, n));
    let mut start = 0;
    while start < n {
        // The block up to the next element that is as good as 0.
        let negligible = |m: &usize| abs(e[*m]) <= abs(d[*m]).root() * abs(d[*m + 1]).root() * epsilon;
        let end = (start..n - 1).find(negligible).map_or(n, |m| m + 1);
        let (mut d, mut e) = (d[start..end].to_vec(), e[start..end - 1].to_vec());
        let norm =
            d.iter().chain(&e).fold(R::default(), |most, &x| if abs(x) > most { abs(x) } else { most });
        let (own, part) = if end - start > BY_ITERATION && !norm.is_zero() {
            d.iter_mut().chain(&mut e).for_each(|x| *x = *x / norm);
            // All parts are halved as often as the largest is.
            let (mut depth, mut largest) = (0, end - start);
            while largest > BY_ITERATION {
                (depth, largest) = (depth + 1, largest.div_ceil(2));
            }
            let (own, part) = solve(&mut d, &mut e, depth, ulp)?;
            (own.into_iter().map(|x| x * norm).collect(), part)
        } else {
            small(&mut d, &mut e, ulp)?
        };
        values.extend(own);
        for j in start..end {
            vectors.column_mut(j)[start..end].copy_from_slice(part.column(j - start));
        }
        start = end;
    }
    if values.is_sorted_by(|a, b| a <= b) {
        return Ok((values, vectors));
    }
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&a, &b| values[a].partial_cmp(&values[b]).unwrap_or(std::cmp::Ordering::Equal));
    let mut sorted = Matrix::zeros(n, n);
    for (j, &i) in order.iter().enumerate() {
        sorted.column_mut(j).copy_from_slice(vectors.column(i));
    }
    Ok((order.into_iter().map(|i| values[i]).collect(), sorted))
}

fn small<R: Real>(d: &mut [R], e: &mut [R], ulp: f64) -> Result<Solved<R>, usize> {
    let mut z = Turns::identity(d.len(), d.len());
    iterate(d, e, &mut z, ulp)?;
    Ok((d.to_vec(), z.finish()))
}

fn solve<R: Real>(d: &mut [R], e: &mut [R], depth: usize, ulp: f64) -> Result<Solved<R>, usize> {
    let n = d.len();
    if depth == 0 {
        return small(d, e, ulp);
    }
    let half = n / 2;
    let rho = e[half - 1];
    d[half - 1] = d[half - 1] - abs(rho);
    d[half] = d[half] - abs(rho);
    let ((left, right), (before, after)) = (d.split_at_mut(half), e.split_at_mut(half));
    let first = solve(left, &mut before[..half - 1], depth - 1, ulp)?;
    let second = solve(right, after, depth - 1, ulp)?;
    Ok(merge(first, second, rho, ulp))
}

/// Eigenvalues and eigenvectors of both halves, and how far z touches each.
struct Halves<R> {
    columns: Columns<R>,
    values: Vec<R>,
    z: Vec<R>,
}

/// The matrix whose halves are solved, and which has `rho` beside its diagonal between them.
fn merge<R: Real>(first: Solved<R>, second: Solved<R>, rho: R, ulp: f64) -> Solved<R> {
    let (split, n) = (first.0.len(), first.0.len() + second.0.len());
    let mut of = Halves {
        columns: Columns::new(n, split),
        values: [first.0, second.0].concat(),
        z: Vec::with_capacity(n),
    };
    let scale = R::one() / R::from_f64(2.0).root();
    for j in 0..n {
        let z = if j < split {
            let column = first.1.column(j);
            of.columns.push(Rows::First, column);
            column[split - 1]
        } else {
            let column = second.1.column(j - split);
            of.columns.push(Rows::Second, column);
            if rho < R::default() { -column[0] } else { column[0] }
        };
        of.z.push(z * scale);
    }
    let rho = abs(rho) + abs(rho);
    // Ascending; of equal ones those of the first half first.
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&a, &b| of.values[a].partial_cmp(&of.values[b]).unwrap_or(std::cmp::Ordering::Equal));
    let (kept, deflated) = deflate(&mut of, &order, rho, ulp);
    let roots = Roots {
        d: kept.iter().map(|&j| of.values[j]).collect(),
        z: kept.iter().map(|&j| of.z[j]).collect(),
        rho,
        poles: Poles::Values,
        ulp,
    };
    let (found, mut s) = roots.solve();
    (0..kept.len()).for_each(|j| normalize(s.column_mut(j)));
    // Kept ones ascend, and so do deflated ones: both together.
    let places = {
        let mut all: Vec<(R, usize)> = found.iter().copied().zip(0..).collect();
        all.extend(deflated.iter().enumerate().map(|(i, &j)| (of.values[j], kept.len() + i)));
        all.sort_by(|a, b| a.0.partial_cmp(&b.0).unwrap_or(std::cmp::Ordering::Equal));
        all
    };
    let products = of.columns.times(&kept, &s);
    let mut vectors = Matrix::zeros(n, n);
    for (to, &(_, from)) in places.iter().enumerate() {
        let column = match from.checked_sub(kept.len()) {
            Some(i) => of.columns.column(deflated[i]),
            None => products.column(from),
        };
        vectors.column_mut(to).copy_from_slice(column);
    }
    (places.into_iter().map(|p| p.0).collect(), vectors)
}

/// The columns that z touches, and the others.
fn deflate<R: Real>(of: &mut Halves<R>, order: &[usize], rho: R, ulp: f64) -> (Vec<usize>, Vec<usize>) {
    let largest =
        of.values.iter().chain(&of.z).fold(R::default(), |m, &x| if abs(x) > m { abs(x) } else { m });
    let least = R::from_f64(8.0 * (ulp / 2.0)) * largest;
    let (mut kept, mut deflated) = (Vec::new(), Vec::new());
    let mut last: Option<usize> = None;
    for &j in order {
        if rho * abs(of.z[j]) <= least {
            deflated.push(j);
            continue;
        }
        if let Some(i) = last {
            let length = hypotenuse(of.z[j], of.z[i]);
            let (c, s) = (of.z[j] / length, -(of.z[i] / length));
            if abs((of.values[j] - of.values[i]) * c * s) <= least {
                of.z[j] = length;
                of.z[i] = R::default();
                of.columns.turn(i, j, c, s);
                let (a, b) = (of.values[i], of.values[j]);
                of.values[i] = a * (c * c) + b * (s * s);
                of.values[j] = a * (s * s) + b * (c * c);
                deflated.push(i);
            } else {
                kept.push(i);
            }
        }
        last = Some(j);
    }
    kept.extend(last);
    (kept, deflated)
}
