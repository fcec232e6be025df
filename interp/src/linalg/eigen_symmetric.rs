//! Symmetric and Hermitian matrices: reduction to tridiagonal form (`sytrd`, `hetrd`) and the implicit QL and QR iteration on
//! it (`steqr`), together `syevd` and `heevd` as LAPACK computes them up to order 25.

use super::householder::{Reflectors, reflector};
use super::matrix::{add_multiple, agreement, dot, hypotenuse, negate, total};
use super::rotation::rotation;
use super::turns::Turns;
use super::{Matrix, Triangle};
use crate::scalar::wide::{Field, Real, abs};

/// The largest order for which LAPACK iterates: beyond it, it divides.
pub(super) const BY_ITERATION: usize = 25;

/// Q^H A Q = T, real and tridiagonal.
#[derive(Clone, Debug)]
pub(crate) struct Tridiagonal<F: Field> {
    /// In the triangle that held A: T and the tails of the reflectors. The other triangle is as it was.
    pub(crate) reduced: Matrix<F>,
    /// The diagonal of T.
    pub(crate) diagonal: Vec<F::Real>,
    /// What is beside the diagonal of T.
    pub(crate) off_diagonal: Vec<F::Real>,
    /// The factors tau of the reflectors.
    pub(crate) taus: Vec<F>,
    triangle: Triangle,
}

/// Reduces the matrix that one triangle holds; of its diagonal only real parts count.
pub(crate) fn tridiagonal<F: Field>(a: Matrix<F>, triangle: Triangle) -> Tridiagonal<F> {
    match triangle {
        Triangle::Lower => lower(a),
        // From the other end: the lower triangle of the matrix with rows and columns reversed.
        Triangle::Upper => {
            let Tridiagonal { reduced, mut diagonal, mut off_diagonal, mut taus, .. } = lower(reversed(&a));
            diagonal.reverse();
            off_diagonal.reverse();
            taus.reverse();
            Tridiagonal { reduced: reversed(&reduced), diagonal, off_diagonal, taus, triangle }
        }
    }
}

fn reversed<F: Field>(a: &Matrix<F>) -> Matrix<F> {
    let (m, n) = (a.rows(), a.columns());
    Matrix::from_fn(m, n, |i, j| a[(m - 1 - i, n - 1 - j)])
}

fn lower<F: Field>(mut a: Matrix<F>) -> Tridiagonal<F> {
    let n = a.rows();
    let half = F::Real::from_f64(0.5);
    let mut taus = Vec::with_capacity(n.saturating_sub(1));
    for i in 0..n {
        a[(i, i)] = F::from_real(a[(i, i)].real());
    }
    for k in 0..n.saturating_sub(1) {
        let tau = reflector(&mut a.column_mut(k)[k + 1..]);
        taus.push(tau);
        if tau.is_zero() {
            continue;
        }
        let v: Vec<F> = std::iter::once(F::one()).chain(a.column(k)[k + 2..].iter().copied()).collect();
        let mut w = product(&a, k + 1, &v);
        w.iter_mut().for_each(|w| *w = tau * *w);
        let back = -(tau * dot(&w, &v)).scaled(half);
        add_multiple(&mut w, &v, back);
        for j in 0..v.len() {
            let (vj, wj) = (v[j].conj(), w[j].conj());
            let column = &mut a.column_mut(k + 1 + j)[k + 1 + j..];
            for ((x, &v), &w) in column.iter_mut().zip(&v[j..]).zip(&w[j..]) {
                *x = x.minus_product(v, wj).minus_product(w, vj);
            }
            column[0] = F::from_real(column[0].real());
        }
    }
    let diagonal = (0..n).map(|i| a[(i, i)].real()).collect();
    let off_diagonal = (1..n).map(|i| a[(i, i - 1)].real()).collect();
    Tridiagonal { reduced: a, diagonal, off_diagonal, taus, triangle: Triangle::Lower }
}

/// The product of the matrix from row and column `first` on, held by its lower triangle, and a vector. Columns are taken by fours; what a
/// column's rows below the four give to its own element are [`LANES`] sums, then their sum by halves.
fn product<F: Field>(a: &Matrix<F>, first: usize, v: &[F]) -> Vec<F> {
    let n = v.len();
    let mut out = vec![F::default(); n];
    for start in (0..n).step_by(COLUMNS) {
        let end = (start + COLUMNS).min(n);
        for j in start..end {
            let column = &a.column(first + j)[first..];
            out[j] = out[j].plus_product(column[j], v[j]);
            for i in j + 1..end {
                out[i] = out[i].plus_product(column[i], v[j]);
                out[j] = out[j].plus_product(column[i].conj(), v[i]);
            }
        }
        if end == n {
            break;
        }
        let columns: [&[F]; COLUMNS] = std::array::from_fn(|c| &a.column(first + start + c)[first + end..]);
        let factors: [F; COLUMNS] = std::array::from_fn(|c| v[start + c]);
        let (before, below) = out.split_at_mut(end);
        let (chunks, rest) = below.as_chunks_mut();
        let mut sums = gather(columns.map(|x| x.as_chunks().0), &factors, v[end..].as_chunks().0, chunks);
        let at = n - end - rest.len();
        for ((column, &factor), sums) in columns.iter().zip(&factors).zip(&mut sums) {
            for (((out, sum), &x), &v) in rest.iter_mut().zip(sums).zip(&column[at..]).zip(&v[end + at..]) {
                *out = out.plus_product(x, factor);
                *sum = sum.plus_product(x.conj(), v);
            }
        }
        for (out, sums) in before[start..].iter_mut().zip(sums) {
            *out = *out + total(sums);
        }
    }
    out
}

/// Adds multiples of columns to `out`, and gives the parts of their inner products with `v`.
fn gather<F: Field>(
    columns: [&[[F; LANES]]; COLUMNS],
    factors: &[F; COLUMNS],
    v: &[[F; LANES]],
    out: &mut [[F; LANES]],
) -> [[F; LANES]; COLUMNS] {
    let columns = columns.map(|x| &x[..out.len()]);
    let mut sums = [[F::default(); LANES]; COLUMNS];
    for (i, (out, v)) in out.iter_mut().zip(v).enumerate() {
        let mut own = *out;
        for c in 0..COLUMNS {
            let x = &columns[c][i];
            for l in 0..LANES {
                own[l] = own[l].plus_product(x[l], factors[c]);
                sums[c][l] = sums[c][l].plus_product(x[l].conj(), v[l]);
            }
        }
        *out = own;
    }
    sums
}

/// Columns of [`product`] that are taken together.
const COLUMNS: usize = 4;
/// Sums of [`product`] for one element.
const LANES: usize = 8;

impl<F: Field> Tridiagonal<F> {
    /// Q z.
    pub(crate) fn multiply(&self, z: Matrix<F>) -> Matrix<F> {
        let apply = |reduced: &Matrix<F>, taus: &[F], mut z: Matrix<F>| {
            Reflectors::new(1, taus, |k| &reduced.column(k)[k + 2..]).apply(&mut z, false);
            z
        };
        match self.triangle {
            Triangle::Lower => apply(&self.reduced, &self.taus, z),
            Triangle::Upper => {
                let flipped =
                    |z: &Matrix<F>| Matrix::from_fn(z.rows(), z.columns(), |i, j| z[(z.rows() - 1 - i, j)]);
                let taus: Vec<F> = self.taus.iter().rev().copied().collect();
                flipped(&apply(&reversed(&self.reduced), &taus, flipped(&z)))
            }
        }
    }
}

/// Eigenvalues in ascending order and the eigenvectors.
#[derive(Clone, Debug)]
pub(crate) struct Eigen<F: Field> {
    pub(crate) values: Vec<F::Real>,
    /// Absent if nobody wanted them.
    pub(crate) vectors: Option<Matrix<F>>,
}

/// The eigenvalues of the matrix that one triangle holds, and its eigenvectors if wanted, with the signs of an iteration that is
/// `coarse`. The error is how many eigenvalues were not found, as `info` says it.
pub(crate) fn eigen<F: Field>(
    mut a: Matrix<F>,
    triangle: Triangle,
    vectors: bool,
    coarse: f64,
) -> Result<Eigen<F>, usize> {
    let n = a.rows();
    for j in 0..n {
        for i in 0..n {
            let other = match triangle {
                Triangle::Lower => i < j,
                Triangle::Upper => i > j,
            };
            if other {
                a[(i, j)] = F::default();
            }
        }
        a[(j, j)] = F::from_real(a[(j, j)].real());
    }
    if !a.is_finite() {
        return Err(n);
    }
    let exponent = a.tame();
    let reduced = tridiagonal(a, triangle);
    let (mut d, mut e) = (reduced.diagonal.clone(), reduced.off_diagonal.clone());
    let mut z = Turns::identity(if vectors { n } else { 0 }, n);
    // Beyond that, LAPACK's signs are those of another algorithm.
    let guide = (vectors && n <= BY_ITERATION).then(|| {
        let (mut d, mut e, mut z) = (d.clone(), e.clone(), z.clone());
        iterate(&mut d, &mut e, &mut z, coarse).ok().map(|()| z.finish())
    });
    iterate(&mut d, &mut e, &mut z, F::Real::ULP)?;
    let mut z = z.finish();
    if let Some(guide) = guide.flatten() {
        for j in 0..n {
            if agreement(z.column(j), guide.column(j)) < 0.0 {
                negate(z.column_mut(j));
            }
        }
    }
    for x in &mut d {
        *x = x.shifted(exponent);
    }
    let vectors = vectors.then(|| reduced.multiply(z.map(F::from_real)));
    Ok(Eigen { values: d, vectors })
}

/// Diagonalizes a tridiagonal matrix up to what is below `ulp` beside its diagonal, turns the columns of `z` with it, and sorts. The
/// error is how many elements beside the diagonal are left.
fn iterate<R: Real>(d: &mut [R], e: &mut [R], z: &mut Turns<R>, ulp: f64) -> Result<(), usize> {
    let n = d.len();
    let epsilon = R::from_f64(ulp / 2.0);
    let mut budget = 30 * n;
    let mut start = 0;
    while start < n {
        if start > 0 {
            e[start - 1] = R::default();
        }
        // The block up to the next element that is as good as 0.
        let end = (start..n - 1)
            .find(|&m| {
                let limit = abs(d[m]).root() * abs(d[m + 1]).root() * epsilon;
                abs(e[m]) <= limit
            })
            .unwrap_or(n - 1);
        if end < n - 1 {
            e[end] = R::default();
        }
        let next = end + 1;
        if end > start {
            // From the end that has the larger diagonal element towards the other.
            if abs(d[end]) < abs(d[start]) {
                qr(d, e, z, (end, start), &mut budget, ulp);
            } else {
                ql(d, e, z, (start, end), &mut budget, ulp);
            }
            if budget == 0 {
                let left = e.iter().filter(|e| !e.is_zero()).count();
                if left > 0 {
                    return Err(left);
                }
            }
        }
        start = next;
    }
    sort(d, z);
    Ok(())
}

/// Ascending, by selection.
fn sort<R: Real>(d: &mut [R], z: &mut Turns<R>) {
    for i in 0..d.len() {
        let mut least = i;
        for j in i + 1..d.len() {
            if d[j] < d[least] {
                least = j;
            }
        }
        d.swap(i, least);
        z.swap(i, least);
    }
}

/// Whether an element beside the diagonal is as good as 0.
fn negligible<R: Real>(e: R, d: R, next: R, ulp: f64) -> bool {
    let epsilon = ulp / 2.0;
    let limit = (abs(d) * R::from_f64(epsilon * epsilon)) * abs(next) + R::from_f64(R::TINY);
    e * e <= limit
}

/// Implicit QL: eigenvalues split off at `l`, which goes up to `end`.
fn ql<R: Real>(
    d: &mut [R],
    e: &mut [R],
    z: &mut Turns<R>,
    (mut l, end): (usize, usize),
    budget: &mut usize,
    ulp: f64,
) {
    while l <= end {
        let m = (l..end).find(|&m| negligible(e[m], d[m], d[m + 1], ulp)).unwrap_or(end);
        if m < end {
            e[m] = R::default();
        }
        if m == l {
            l += 1;
            continue;
        }
        if m == l + 1 {
            let Pair { larger, smaller, c, s } = pair(d[l], e[l], d[l + 1]);
            z.turn(l, c, s);
            (d[l], d[l + 1], e[l]) = (larger, smaller, R::default());
            l += 2;
            continue;
        }
        if *budget == 0 {
            return;
        }
        *budget -= 1;
        let mut g = d[m] - d[l] + shift(d[l + 1] - d[l], e[l]);
        let (mut s, mut c, mut p) = (R::one(), R::one(), R::default());
        for i in (l..m).rev() {
            let (f, b) = (s * e[i], c * e[i]);
            let turned = rotation(g, f);
            (c, s) = (turned.c, turned.s);
            if i != m - 1 {
                e[i + 1] = turned.r;
            }
            g = d[i + 1] - p;
            let r = (d[i] - g) * s + (c * b) + (c * b);
            p = s * r;
            d[i + 1] = g + p;
            g = c * r - b;
            z.turn(i, c, -s);
        }
        d[l] = d[l] - p;
        e[l] = g;
    }
}

/// Implicit QR: eigenvalues split off at `l`, which goes down to `end`.
fn qr<R: Real>(
    d: &mut [R],
    e: &mut [R],
    z: &mut Turns<R>,
    (mut l, end): (usize, usize),
    budget: &mut usize,
    ulp: f64,
) {
    loop {
        let m = (end + 1..=l).rev().find(|&m| negligible(e[m - 1], d[m], d[m - 1], ulp)).unwrap_or(end);
        if m > end {
            e[m - 1] = R::default();
        }
        let done = if m == l {
            1
        } else if m + 1 == l {
            let Pair { larger, smaller, c, s } = pair(d[l - 1], e[l - 1], d[l]);
            z.turn(l - 1, c, s);
            (d[l - 1], d[l], e[l - 1]) = (larger, smaller, R::default());
            2
        } else {
            0
        };
        if done > 0 {
            match l.checked_sub(done) {
                Some(next) if next >= end => l = next,
                _ => return,
            }
            continue;
        }
        if *budget == 0 {
            return;
        }
        *budget -= 1;
        let mut g = d[m] - d[l] + shift(d[l - 1] - d[l], e[l - 1]);
        let (mut s, mut c, mut p) = (R::one(), R::one(), R::default());
        for i in m..l {
            let (f, b) = (s * e[i], c * e[i]);
            let turned = rotation(g, f);
            (c, s) = (turned.c, turned.s);
            if i != m {
                e[i - 1] = turned.r;
            }
            g = d[i] - p;
            let r = (d[i + 1] - g) * s + (c * b) + (c * b);
            p = s * r;
            d[i] = g + p;
            g = c * r - b;
            z.turn(i, c, s);
        }
        d[l] = d[l] - p;
        e[l - 1] = g;
    }
}

/// Wilkinson's shift, from the difference of two diagonal elements and what is beside them, without the diagonal element.
fn shift<R: Real>(difference: R, e: R) -> R {
    let g = difference / (e + e);
    let r = hypotenuse(g, R::one());
    e / (g + r.with_sign_of(g))
}

/// The eigenvalues of a symmetric matrix of order 2, and (c, s), the eigenvector of the one of larger magnitude.
struct Pair<R> {
    larger: R,
    smaller: R,
    c: R,
    s: R,
}

fn pair<R: Real>(a: R, b: R, c: R) -> Pair<R> {
    let half = R::from_f64(0.5);
    let (sum, difference, twice) = (a + c, a - c, b + b);
    let root = hypotenuse(difference, twice);
    let (big, small) = if abs(a) > abs(c) { (a, c) } else { (c, a) };
    let zero = R::default();
    let (larger, smaller, first) = if sum < zero {
        let larger = (sum - root) * half;
        (larger, (big / larger) * small - (b / larger) * b, false)
    } else if sum > zero {
        let larger = (sum + root) * half;
        (larger, (big / larger) * small - (b / larger) * b, true)
    } else {
        (root * half, -(root * half), true)
    };
    let second = difference >= zero;
    let cosine = if second { difference + root } else { difference - root };
    let (mut cs, mut sn) = if abs(cosine) > abs(twice) {
        let cotangent = -(twice / cosine);
        let sn = R::one() / hypotenuse(R::one(), cotangent);
        (cotangent * sn, sn)
    } else if twice.is_zero() {
        (R::one(), zero)
    } else {
        let tangent = -(cosine / twice);
        let cs = R::one() / hypotenuse(R::one(), tangent);
        (cs, tangent * cs)
    };
    if first == second {
        (cs, sn) = (-sn, cs);
    }
    Pair { larger, smaller, c: cs, s: sn }
}
