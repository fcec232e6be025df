//! Tridiagonal matrices by dividing, solving the halves and merging: `stedc`, as `syevd` uses it beyond [`super::eigen_symmetric::BY_ITERATION`].
//!
//! A matrix is two of half the size and a rank-one matrix rho v v^T. The eigenvectors of the halves turn that into a diagonal matrix and
//! rho z z^T, whose eigenvalues are the roots of a rational function; its eigenvectors come from the roots by Loewner's formula (Gu and
//! Eisenstat), so that they are orthogonal however close roots are. What z hardly touches, and one of two columns whose values hardly differ,
//! is left out (*deflated*) first. Which, and the signs of z, decide the signs of the eigenvectors: both are as LAPACK has them, to the same
//! unit of rounding.

use super::Matrix;
use super::eigen_symmetric::{BY_ITERATION, iterate};
use super::matrix::{hypotenuse, total};
use super::product::{COLUMNS, Left};
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

/// Which rows of a column are not 0.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rows {
    First,
    Both,
    Second,
}

/// The columns of both halves.
struct Columns<R> {
    height: usize,
    split: usize,
    values: Vec<R>,
    z: Vec<R>,
    rows: Vec<Rows>,
    /// Full columns, one after the other.
    elements: Vec<R>,
}

impl<R: Real> Columns<R> {
    fn column(&self, j: usize) -> &[R] {
        &self.elements[j * self.height..][..self.height]
    }

    /// Turns columns i < j of values that hardly differ, so that z does not touch the first any more.
    fn turn(&mut self, i: usize, j: usize, c: R, s: R) {
        let (low, high) = (i.min(j), i.max(j));
        let (before, after) = self.elements.split_at_mut(high * self.height);
        let (a, b) = (&mut before[low * self.height..][..self.height], &mut after[..self.height]);
        let (x, y) = if i < j { (a, b) } else { (b, a) };
        for (x, y) in x.iter_mut().zip(y) {
            (*x, *y) = (*x * c + *y * s, *y * c - *x * s);
        }
        let (a, b) = (self.values[i], self.values[j]);
        (self.values[i], self.values[j]) = (a * (c * c) + b * (s * s), a * (s * s) + b * (c * c));
        if self.rows[i] != self.rows[j] {
            self.rows[j] = Rows::Both;
        }
    }
}

/// The matrix whose halves are solved, and which has `rho` beside its diagonal between them.
fn merge<R: Real>(first: Solved<R>, second: Solved<R>, rho: R, ulp: f64) -> Solved<R> {
    let (split, n) = (first.0.len(), first.0.len() + second.0.len());
    let mut of = Columns {
        height: n,
        split,
        values: [first.0, second.0].concat(),
        z: Vec::with_capacity(n),
        rows: (0..n).map(|j| if j < split { Rows::First } else { Rows::Second }).collect(),
        elements: vec![R::default(); n * n],
    };
    let scale = R::one() / R::from_f64(2.0).root();
    for j in 0..n {
        let column = &mut of.elements[j * n..][..n];
        let z = if j < split {
            column[..split].copy_from_slice(first.1.column(j));
            column[split - 1]
        } else {
            column[split..].copy_from_slice(second.1.column(j - split));
            if rho < R::default() { -column[split] } else { column[split] }
        };
        of.z.push(z * scale);
    }
    let rho = abs(rho) + abs(rho);
    // Ascending; of equal ones those of the first half first.
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&a, &b| of.values[a].partial_cmp(&of.values[b]).unwrap_or(std::cmp::Ordering::Equal));
    let (kept, deflated) = deflate(&mut of, &order, rho, ulp);
    let mut roots = Roots {
        d: kept.iter().map(|&j| of.values[j]).collect(),
        z: kept.iter().map(|&j| of.z[j]).collect(),
        rho,
        ulp,
    };
    let (found, s) = roots.solve();
    // Kept ones ascend, and so do deflated ones: both together.
    let places = {
        let mut all: Vec<(R, usize)> = found.iter().copied().zip(0..).collect();
        all.extend(deflated.iter().enumerate().map(|(i, &j)| (of.values[j], kept.len() + i)));
        all.sort_by(|a, b| a.0.partial_cmp(&b.0).unwrap_or(std::cmp::Ordering::Equal));
        all
    };
    let products = multiply(&of, &kept, &s);
    let mut vectors = Matrix::zeros(n, n);
    for (to, &(_, from)) in places.iter().enumerate() {
        let column = match from.checked_sub(kept.len()) {
            Some(i) => of.column(deflated[i]),
            None => products.column(from),
        };
        vectors.column_mut(to).copy_from_slice(column);
    }
    (places.into_iter().map(|p| p.0).collect(), vectors)
}

/// The columns that z touches, and the others.
fn deflate<R: Real>(of: &mut Columns<R>, order: &[usize], rho: R, ulp: f64) -> (Vec<usize>, Vec<usize>) {
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
                of.turn(i, j, c, s);
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

/// The eigenvectors of the halves times those of the rank-one problem.
fn multiply<R: Real>(of: &Columns<R>, kept: &[usize], s: &Matrix<R>) -> Matrix<R> {
    let n = of.height;
    let mut out = Matrix::zeros(n, kept.len());
    for (first, count, none) in [(0, of.split, Rows::Second), (of.split, n - of.split, Rows::First)] {
        let some: Vec<usize> = (0..kept.len()).filter(|&k| of.rows[kept[k]] != none).collect();
        // It subtracts.
        let left = Left::new(count, some.len(), |row, k, out| {
            let from = &of.column(kept[some[k]])[first + row..];
            out.iter_mut().zip(from).for_each(|(out, &x)| *out = -x);
        });
        let mut right = vec![[R::default(); COLUMNS]; some.len()];
        for (group, columns) in out.elements_mut().chunks_mut(COLUMNS * n).enumerate() {
            for (right, &k) in right.iter_mut().zip(&some) {
                for (c, x) in right[..columns.len() / n].iter_mut().enumerate() {
                    *x = s[(k, group * COLUMNS + c)];
                }
            }
            left.subtract(&right, columns, n, first);
        }
    }
    out
}

/// The diagonal matrix of `d`, ascending, and rho z z^T, rho being positive: 1 / rho + sum z^2 / (d - x) has its eigenvalues as roots.
struct Roots<R> {
    d: Vec<R>,
    z: Vec<R>,
    rho: R,
    ulp: f64,
}

/// Sums of a part of the function, and of its derivative.
const SUMS: usize = 8;

impl<R: Real> Roots<R> {
    /// Eigenvalues and eigenvectors.
    fn solve(&mut self) -> Solved<R> {
        let k = self.d.len();
        let mut values = Vec::with_capacity(k);
        // Column j: d - x of root j.
        let mut s = Matrix::zeros(k, k);
        if k == 1 {
            s[(0, 0)] = R::one();
            return (vec![self.d[0] + self.rho * self.z[0] * self.z[0]], s);
        }
        for j in 0..k {
            values.push(self.root(j, s.column_mut(j)));
        }
        // The z that has exactly these roots.
        let mut squares: Vec<R> = (0..k).map(|i| s[(i, i)]).collect();
        for j in 0..k {
            let (here, column) = (self.d[j], s.column(j));
            let (before, after) = squares.split_at_mut(j);
            let part = |squares: &mut [R], first: usize| {
                for ((x, &delta), &d) in squares.iter_mut().zip(&column[first..]).zip(&self.d[first..]) {
                    *x = *x * (delta / (d - here));
                }
            };
            part(before, 0);
            part(&mut after[1..], j + 1);
        }
        let z: Vec<R> = squares.iter().zip(&self.z).map(|(&x, &z)| abs(x).root().with_sign_of(z)).collect();
        for j in 0..k {
            let column = s.column_mut(j);
            column.iter_mut().zip(&z).for_each(|(x, &z)| *x = z / *x);
            let length = super::matrix::norm(column);
            column.iter_mut().for_each(|x| *x = *x / length);
        }
        (values, s)
    }

    /// Sums of z^2 / delta and z^2 / delta^2 over some terms.
    fn sums(z: &[R], delta: &[R]) -> (R, R) {
        let mut lanes = [[R::default(); SUMS]; 2];
        let mut add = |z: &[R], delta: &[R]| {
            let [value, slope] = &mut lanes;
            for (((value, slope), &z), &delta) in value.iter_mut().zip(slope).zip(z).zip(delta) {
                let t = z / delta;
                *value = value.plus_product(z, t);
                *slope = slope.plus_product(t, t);
            }
        };
        let ((zs, z_rest), (deltas, rest)) = (z.as_chunks::<SUMS>(), delta.as_chunks::<SUMS>());
        zs.iter().zip(deltas).for_each(|(z, delta)| add(z, delta));
        add(z_rest, rest);
        (total(lanes[0]), total(lanes[1]))
    }

    /// Root j, and d minus it.
    fn root(&self, j: usize, delta: &mut [R]) -> R {
        let (d, z) = (&self.d[..], &self.z[..]);
        let (k, zero, two) = (d.len(), R::default(), R::from_f64(2.0));
        let four = two * two;
        let inverse = R::one() / self.rho;
        let last = j + 1 == k;
        // The two poles beside the root, or before it.
        let (low, high) = if last { (j - 1, j) } else { (j, j + 1) };
        let gap = d[high] - d[low];
        let reach = if last {
            let sum = z.iter().fold(zero, |sum, &z| sum + z * z);
            self.rho * (sum + sum * R::from_f64(16.0 * R::ULP))
        } else {
            gap
        };
        // In the middle of where the root can be.
        let middle = reach / two;
        let from = if last { high } else { low };
        let fill = |delta: &mut [R], origin: usize, x: R| {
            let origin = d[origin];
            delta.iter_mut().zip(d).for_each(|(delta, &d)| *delta = (d - origin) - x);
        };
        fill(delta, from, middle);
        let (before, after) =
            (Self::sums(&z[..low], &delta[..low]).0, Self::sums(&z[high + 1..], &delta[high + 1..]).0);
        let c = inverse + before + after;
        let (zl, zh) = (z[low] * z[low], z[high] * z[high]);
        let there = c + zl / delta[low] + zh / delta[high];
        // From the pole that the root is nearer to: x, and what it is between.
        let (origin, mut x, mut least, mut most);
        let root_of = |x: R| if x > zero { x.root() } else { zero };
        if last {
            origin = high;
            let (a, b) = (zl + zh - c * gap, zh * gap);
            let root = root_of(a * a + four * b * c);
            let guess = if a < zero { (two * b) / (root - a) } else { (a + root) / (two * c) };
            (least, most) = if there > zero { (zero, middle) } else { (middle, reach) };
            x = guess;
        } else if there > zero {
            origin = low;
            let (a, b) = (c * gap + zl + zh, zl * gap);
            let root = root_of(a * a - four * b * c);
            x = if a > zero { (two * b) / (a + root) } else { (a - root) / (two * c) };
            (least, most) = (zero, middle);
        } else {
            origin = high;
            let (a, b) = (c * gap - zl - zh, zh * gap);
            let root = root_of(a * a + four * b * c);
            x = if a < zero { (two * b) / (a - root) } else { -((a + root) / (two * c)) };
            (least, most) = (-middle, zero);
        }
        let inside = |x: R, least: R, most: R| x > least && x < most;
        if !inside(x, least, most) {
            x = (least + most) / two;
        }
        let epsilon = R::from_f64(self.ulp / 2.0);
        for _ in 0..MOST {
            fill(delta, origin, x);
            let ((psi, dpsi), (phi, dphi)) =
                (Self::sums(&z[..high], &delta[..high]), Self::sums(&z[high..], &delta[high..]));
            let f = inverse + psi + phi;
            let slope = dpsi + dphi;
            let size = inverse + abs(psi) + abs(phi);
            if abs(f) <= epsilon * (R::from_f64(8.0) * size + abs(x) * slope) {
                break;
            }
            if f < zero {
                least = x
            } else {
                most = x
            }
            let (dl, dh) = (delta[low], delta[high]);
            let c = f - dl * dpsi - dh * dphi;
            let a = (dl + dh) * f - dl * dh * slope;
            let b = dl * dh * f;
            let root = root_of(a * a - four * b * c);
            let mut step = if last == (a < zero) {
                (two * b) / if last { a - root } else { a + root }
            } else if c.is_zero() {
                zero
            } else {
                (if last { a + root } else { a - root }) / (two * c)
            };
            // Always towards the root, never beyond what is known.
            let towards = f * step < zero;
            if !towards {
                step = -(f / slope);
            }
            let mut next = x + step;
            if !inside(next, least, most) {
                next = (least + most) / two;
            }
            if next == x || !inside(next, least, most) {
                break;
            }
            x = next;
        }
        d[origin] + x
    }
}

/// The most steps towards a root; halving alone would take fewer.
const MOST: usize = 200;
