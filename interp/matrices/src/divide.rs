//! Tridiagonal matrices by dividing, solving the halves and merging: `stedc`, as `syevd` uses it beyond
//! [`super::eigen_symmetric::BY_ITERATION`].
//!
//! A matrix is two of half the size and a rank-one matrix rho v v^T. The eigenvectors of the halves transform
//! it to a diagonal matrix and rho z z^T, whose eigenvalues are the roots of a rational function
//! ([`super::secular`]). What z hardly touches, and one of two columns whose values hardly differ, is left
//! out (*deflated*) first. Which, and the signs of z, decide the signs of the eigenvectors: both are as
//! LAPACK has them, to the same unit of rounding. Where that is coarser than what is computed to, signs of
//! the smallest parts come from an iteration up to it, and what would be left out up to it says where the
//! vectors point that stand for it here ([`LeftOut`]). If something is in [doubt](Decisions::doubt), all of
//! it is done up to the coarser unit, too.

use super::Matrix;
use super::chase;
use super::eigen_symmetric::{BY_ITERATION, take_signs};
use super::implicit_ql::TridiagonalIteration;
use super::matrix::negate;
use super::rotations::Rotations;
use super::secular::{
    Columns, Decisions, LeftOut, Poles, Roots, Rows, ascending, deflate, largest, normalize,
};
use crate::wide::{Real, abs};

/// Eigenvalues in ascending order and the eigenvectors, or of these the first and the last row.
type Solved<R> = (Vec<R>, Matrix<R>);

/// Which rows of eigenvectors are computed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    All,
    /// The first and the last: what merging looks at.
    Edges,
}

impl Reach {
    /// Those rows of some eigenvectors.
    fn of<R: Real>(self, z: Matrix<R>) -> Matrix<R> {
        match self {
            Reach::All => z,
            Reach::Edges => {
                let last = z.rows().saturating_sub(1);
                Matrix::from_fn(2, z.columns(), |i, j| z[(if i == 0 { 0 } else { last }, j)])
            }
        }
    }
}

/// Diagonalizes, up to what is below `ulp`, with the signs that there are up to what is below `coarse`. The
/// error is that of the iteration on a small part.
pub(crate) fn eigen<R: Real>(d: &[R], e: &[R], ulp: f64, coarse: Option<f64>) -> Result<Solved<R>, usize> {
    let (mut found, guide) = Decisions::guided(ulp, coarse, |decisions| eigen_by(d, e, decisions))?;
    if let Some((_, guide)) = guide {
        take_signs(&mut found.1, &guide);
    }
    Ok(found)
}

fn eigen_by<R: Real>(d: &[R], e: &[R], decisions: &Decisions) -> Result<Solved<R>, usize> {
    let (values, parts) = blocks(d, e, decisions, Reach::All)?;
    let n = d.len();
    let (mut vectors, mut start) = (Matrix::zeros(n, n), 0);
    for part in parts {
        let end = start + part.columns();
        for j in start..end {
            vectors.column_mut(j)[start..end].copy_from_slice(part.column(j - start));
        }
        start = end;
    }
    if values.is_sorted_by(|a, b| a <= b) {
        return Ok((values, vectors));
    }
    let order = ascending(&values);
    let mut sorted = Matrix::zeros(n, n);
    for (j, &i) in order.iter().enumerate() {
        sorted.column_mut(j).copy_from_slice(vectors.column(i));
    }
    Ok((order.into_iter().map(|i| values[i]).collect(), sorted))
}

/// The eigenvalues of [`eigen`] alone.
pub(crate) fn values<R: Real>(d: &[R], e: &[R], ulp: f64) -> Result<Vec<R>, usize> {
    let (values, _) = blocks(d, e, &Decisions::new(ulp, None), Reach::Edges)?;
    Ok(ascending(&values).into_iter().map(|i| values[i]).collect())
}

/// The eigenvalues of the blocks along the diagonal that nothing joins, one block after the other, and the
/// eigenvectors of each.
fn blocks<R: Real>(
    d: &[R],
    e: &[R],
    decisions: &Decisions,
    reach: Reach,
) -> Result<(Vec<R>, Vec<Matrix<R>>), usize> {
    let n = d.len();
    let (mut values, mut vectors) = (Vec::with_capacity(n), Vec::new());
    let mut start = 0;
    while start < n {
        // The block up to the next element that is negligible.
        let negligible = |m: &usize| {
            let size = abs(d[*m]).root() * abs(d[*m + 1]).root();
            decisions.negligible(|ulp| abs(e[*m]) <= size * R::from_f64(ulp / 2.0))
        };
        let end = (start..n - 1).find(negligible).map_or(n, |m| m + 1);
        let (mut d, mut e) = (d[start..end].to_vec(), e[start..end - 1].to_vec());
        let norm = largest(d.iter().chain(&e));
        let (own, part) = if end - start > BY_ITERATION && !norm.is_zero() {
            d.iter_mut().chain(&mut e).for_each(|x| *x = *x / norm);
            // All parts are halved as often as the largest is.
            let (mut depth, mut longest) = (0, end - start);
            while longest > BY_ITERATION {
                (depth, longest) = (depth + 1, longest.div_ceil(2));
            }
            let (own, part) = solve(&mut d, &mut e, depth, decisions, reach)?;
            (own.into_iter().map(|x| x * norm).collect(), part)
        } else {
            small(&d, &e, decisions, reach)?
        };
        values.extend(own);
        vectors.push(part);
        start = end;
    }
    Ok((values, vectors))
}

fn small<R: Real>(d: &[R], e: &[R], decisions: &Decisions, reach: Reach) -> Result<Solved<R>, usize> {
    let (values, z, signed) = begun(d, e, decisions.ulp).diagonalized(decisions.coarse)?;
    if !signed {
        decisions.doubt.set(true);
    }
    Ok((values, reach.of(z)))
}

/// By the iteration.
fn begun<R: Real>(d: &[R], e: &[R], ulp: f64) -> TridiagonalIteration<R> {
    TridiagonalIteration::new(d.to_vec(), e.to_vec(), Rotations::identity(d.len(), d.len()), ulp)
}

fn finished<R: Real>(TridiagonalIteration { d, z, .. }: TridiagonalIteration<R>, reach: Reach) -> Solved<R> {
    (d, reach.of(z.finish()))
}

fn solve<R: Real>(
    d: &mut [R],
    e: &mut [R],
    depth: usize,
    decisions: &Decisions,
    reach: Reach,
) -> Result<Solved<R>, usize> {
    let n = d.len();
    if depth == 0 {
        return small(d, e, decisions, reach);
    }
    let half = n / 2;
    let rho = e[half - 1];
    d[half - 1] = d[half - 1] - abs(rho);
    d[half] = d[half] - abs(rho);
    let ((left, right), (before, after)) = (d.split_at_mut(half), e.split_at_mut(half));
    let before = &mut before[..half - 1];
    let (first, second);
    if depth == 1 && decisions.coarse.is_none() {
        let (mut one, mut two) = (begun(left, before, decisions.ulp), begun(right, after, decisions.ulp));
        chase::run_both(&mut one, &mut two).into_iter().collect::<Result<(), usize>>()?;
        (first, second) = (finished(one, reach), finished(two, reach));
    } else {
        first = solve(left, before, depth - 1, decisions, reach)?;
        second = solve(right, after, depth - 1, decisions, reach)?;
    }
    Ok(merge(first, second, rho, decisions, reach))
}

/// The matrix whose halves are solved, coupled by the off-diagonal element `rho`.
fn merge<R: Real>(
    first: Solved<R>,
    second: Solved<R>,
    rho: R,
    decisions: &Decisions,
    reach: Reach,
) -> Solved<R> {
    let (split, n) = (first.0.len(), first.0.len() + second.0.len());
    // Eigenvectors and eigenvalues of both halves, and how far z touches each.
    let (height, above) = if reach == Reach::All { (n, split) } else { (2, 1) };
    let (mut columns, mut values) = (Columns::new(height, n, above), [first.0, second.0].concat());
    let mut z = Vec::with_capacity(n);
    let scale = R::one() / R::from_f64(2.0).root();
    for j in 0..n {
        let touched = if j < split {
            let column = first.1.column(j);
            columns.push(Rows::First, &column[..above]);
            column[column.len() - 1]
        } else {
            let column = second.1.column(j - split);
            columns.push(Rows::Second, &column[column.len() - (height - above)..]);
            if rho < R::default() { -column[0] } else { column[0] }
        };
        z.push(touched * scale);
    }
    let rho = abs(rho) + abs(rho);
    // Of equal values those of the first half first.
    let order = ascending(&values);
    let size = largest(values.iter().chain(&z));
    let left_out = decisions.coarse.map(|coarse| {
        let (mut values, mut z) = (values.clone(), z.clone());
        LeftOut::new(n, |rotate| {
            Deflation { rho, size, ulp: coarse }.deflate(&order, &mut values, &mut z, rotate).1
        })
    });
    let mut rotated = 0;
    let own = Deflation { rho, size, ulp: decisions.ulp };
    let (kept, deflated) = own.deflate(&order, &mut values, &mut z, &mut |i, j, c, s| {
        columns.rotate(i, j, c, s);
        rotated += 1;
    });
    let of_kept = |x: &[R]| kept.iter().map(|&j| x[j]).collect();
    let roots = Roots { d: of_kept(&values), z: of_kept(&z), rho, poles: Poles::Values, ulp: decisions.ulp };
    let (mut found, mut s) = roots.solve();
    (0..kept.len()).for_each(|j| normalize(s.column_mut(j)));
    if let Some(left_out) = left_out {
        let opposite = decisions.opposite(&s, &kept, &left_out, rotated);
        opposite.into_iter().for_each(|j| negate(s.column_mut(j)));
    }
    // Kept ones ascend, and so do deflated ones: both together.
    found.extend(deflated.iter().map(|&j| values[j]));
    let order = ascending(&found);
    let vectors = columns.ordered(&columns.times(&kept, &s), &deflated, &order);
    (order.into_iter().map(|i| found[i]).collect(), vectors)
}

/// What of two halves is negligible up to `ulp`, and so left out.
struct Deflation<R> {
    rho: R,
    /// The largest of values and z.
    size: R,
    ulp: f64,
}

impl<R: Real> Deflation<R> {
    fn deflate(
        &self,
        order: &[usize],
        values: &mut [R],
        z: &mut [R],
        rotate: &mut dyn FnMut(usize, usize, R, R),
    ) -> (Vec<usize>, Vec<usize>) {
        let least = R::from_f64(8.0 * (self.ulp / 2.0)) * self.size;
        deflate(
            order,
            z,
            |z| self.rho * abs(z) <= least,
            |i, j, c, s| {
                let (a, b) = (values[i], values[j]);
                let close = abs((b - a) * c * s) <= least;
                if close {
                    rotate(i, j, c, s);
                    values[i] = a * (c * c) + b * (s * s);
                    values[j] = a * (s * s) + b * (c * c);
                }
                close
            },
        )
    }
}
