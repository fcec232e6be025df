//! Symmetric and Hermitian matrices: reduction to tridiagonal form (`sytrd`, `hetrd`), and
//! [`super::implicit_ql`] up to order 25 or without vectors, beyond that [`divide`]: `syevd` and `heevd` as
//! LAPACK computes them.

use std::ops::Range;

use hlo_threads::cancel;

use super::householder::{multiply, reflector};
use super::implicit_ql::TridiagonalIteration;
use super::matrix::{add_multiple, agreement, dot, negate, total};
use super::rotations::Rotations;
use super::{Matrix, Triangle, divide};
use crate::wide::{Field, Real};

/// The largest order for which LAPACK iterates: beyond it, it divides.
pub(super) const BY_ITERATION: usize = 25;

/// Q^H A Q = T, real and tridiagonal.
#[derive(Clone, Debug)]
pub struct Tridiagonal<F: Field> {
    /// In the triangle that held A: T and the tails of the reflectors. The other triangle is as it was.
    pub reduced: Matrix<F>,
    /// The diagonal of T.
    pub diagonal: Vec<F::Real>,
    /// The off-diagonal of T.
    pub off_diagonal: Vec<F::Real>,
    /// The factors tau of the reflectors.
    pub taus: Vec<F>,
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
    // What is still to be subtracted from rows and columns from k on: v w^H + w v^H.
    let mut update: Option<(Vec<F>, Vec<F>)> = None;
    for k in 0..n.saturating_sub(1) {
        cancel::poll();
        if let Some((v, w)) = &update {
            subtract(&mut a.column_mut(k)[k..], v, w);
        }
        let tau = reflector(&mut a.column_mut(k)[k + 1..]);
        taus.push(tau);
        let rest = update.as_ref().map(|(v, w)| (&v[1..], &w[1..]));
        if tau.is_zero() {
            if let Some((v, w)) = rest {
                for j in 0..v.len() {
                    subtract(&mut a.column_mut(k + 1 + j)[k + 1 + j..], &v[j..], &w[j..]);
                }
            }
            update = None;
            continue;
        }
        let v: Vec<F> = std::iter::once(F::one()).chain(a.column(k)[k + 2..].iter().copied()).collect();
        let mut w = product(&mut a, k + 1, rest, &v);
        w.iter_mut().for_each(|w| *w = tau * *w);
        let back = -(tau * dot(&w, &v)).scaled(half);
        add_multiple(&mut w, &v, back);
        update = Some((v, w));
    }
    if let (Some((v, w)), Some(k)) = (&update, n.checked_sub(1)) {
        subtract(&mut a.column_mut(k)[k..], v, w);
    }
    let diagonal = (0..n).map(|i| a[(i, i)].real()).collect();
    let off_diagonal = (1..n).map(|i| a[(i, i - 1)].real()).collect();
    Tridiagonal { reduced: a, diagonal, off_diagonal, taus, triangle: Triangle::Lower }
}

/// Subtracts from a column, from its diagonal element on, what v w^H + w v^H has there.
fn subtract<F: Field>(column: &mut [F], v: &[F], w: &[F]) {
    let (vj, wj) = (v[0].conj(), w[0].conj());
    for ((x, &v), &w) in column.iter_mut().zip(v).zip(w) {
        *x = x.minus_product(v, wj).minus_product(w, vj);
    }
    column[0] = F::from_real(column[0].real());
}

/// The product of the matrix from row and column `first` on, held by its lower triangle, and a vector, once v
/// w^H + w v^H is subtracted from the matrix, if that is still to be done: both in one pass over it. Columns
/// are divided into parts of about as many elements, whose products are added in the end: how many parts
/// depends on the order alone.
fn product<F: Field>(a: &mut Matrix<F>, first: usize, update: Option<(&[F], &[F])>, v: &[F]) -> Vec<F> {
    let (n, height) = (v.len(), a.rows());
    let count = super::parts(n * n / 2);
    let mut rest = &mut a.elements_mut()[first * height..];
    let (mut parts, mut start) = (Vec::with_capacity(count), 0);
    for k in 1..=count {
        // What is below the diagonal of the columns from c on is a triangle of the order n - c.
        let left = (n as f64 * ((count - k) as f64 / count as f64).sqrt()) as usize;
        let end = if k == count { n } else { (n - left) / COLUMNS * COLUMNS };
        let (columns, others) = rest.split_at_mut((end - start) * height);
        parts.push(Part { columns, start, end, out: vec![F::default(); n - start] });
        (rest, start) = (others, end);
    }
    super::each_part::<F, _>(&mut parts, &|part| part.multiply(first, height, update, v));
    let mut parts = parts.into_iter();
    let mut out = parts.next().map_or_else(Vec::new, |part| part.out);
    for Part { start, out: more, .. } in parts {
        out[start..].iter_mut().zip(more).for_each(|(out, more)| *out = *out + more);
    }
    out
}

/// Columns of a lower triangle, and their part of [`product`]: elements from `start` on.
struct Part<'a, F> {
    columns: &'a mut [F],
    start: usize,
    end: usize,
    out: Vec<F>,
}

impl<F: Field> Part<'_, F> {
    /// Columns are taken by twos; what a column's rows below the two give to its own element are [`LANES`]
    /// sums, then their sum by halves.
    fn multiply(&mut self, first: usize, height: usize, update: Option<(&[F], &[F])>, v: &[F]) {
        let Part { columns, start: from, end: to, out } = self;
        let (n, from) = (v.len(), *from);
        for start in (from..*to).step_by(COLUMNS) {
            let end = (start + COLUMNS).min(*to);
            for j in start..end {
                let column = &mut columns[(j - from) * height..][first..height];
                if let Some((old, w)) = update {
                    subtract(&mut column[j..end], &old[j..], &w[j..]);
                }
                out[j - from] = out[j - from].plus_product(column[j], v[j]);
                for i in j + 1..end {
                    out[i - from] = out[i - from].plus_product(column[i], v[j]);
                    out[j - from] = out[j - from].plus_product(column[i].conj(), v[i]);
                }
            }
            if end == n || end - start < COLUMNS {
                break;
            }
            let (one, two) = columns[(start - from) * height..].split_at_mut(height);
            let mut pair = Pairs {
                columns: [&mut one[first + end..], &mut two[first + end..height]],
                factors: [v[start], v[start + 1]],
                v: &v[end..],
                update: update.map(|(old, w)| Older {
                    v: &old[end..],
                    w: &w[end..],
                    vs: [old[start].conj(), old[start + 1].conj()],
                    ws: [w[start].conj(), w[start + 1].conj()],
                }),
            };
            let (before, below) = out.split_at_mut(end - from);
            for (out, sums) in before[start - from..].iter_mut().zip(pair.gather(below)) {
                *out = *out + total(sums);
            }
        }
    }
}

/// Two columns below their diagonal blocks, and what they are multiplied by.
struct Pairs<'a, F> {
    columns: [&'a mut [F]; COLUMNS],
    factors: [F; COLUMNS],
    v: &'a [F],
    update: Option<Older<'a, F>>,
}

/// What is still to be subtracted from some columns: vectors below them, and their own elements, conjugated.
struct Older<'a, F> {
    v: &'a [F],
    w: &'a [F],
    vs: [F; COLUMNS],
    ws: [F; COLUMNS],
}

impl<F: Field> Pairs<'_, F> {
    /// Updates the columns, adds multiples of them to `out`, and gives the parts of their inner products with
    /// `v`.
    fn gather(&mut self, out: &mut [F]) -> [[F; LANES]; COLUMNS] {
        let mut sums = [[F::default(); LANES]; COLUMNS];
        let whole = out.len() / LANES * LANES;
        self.lanes::<LANES>(out, 0..whole, &mut sums);
        let half = whole + (out.len() - whole) / HALF * HALF;
        self.lanes::<HALF>(out, whole..half, &mut sums);
        // Row i of those that are left is for sum i modulo LANES, as ever.
        let [one, two] = &mut self.columns;
        for i in half..out.len() {
            if let Some(Older { v, w, vs: [v0, v1], ws: [w0, w1] }) = self.update {
                one[i] = one[i].minus_product(v[i], w0).minus_product(w[i], v0);
                two[i] = two[i].minus_product(v[i], w1).minus_product(w[i], v1);
            }
            let (x, y, v) = (one[i], two[i], self.v[i]);
            out[i] = out[i].plus_product(x, self.factors[0]).plus_product(y, self.factors[1]);
            let [first, second] = &mut sums;
            first[i % LANES] = first[i % LANES].plus_product(x.conj(), v);
            second[i % LANES] = second[i % LANES].plus_product(y.conj(), v);
        }
        sums
    }

    /// Does so to rows, a multiple of `L` of them.
    #[inline(always)]
    fn lanes<const L: usize>(&mut self, out: &mut [F], rows: Range<usize>, sums: &mut [[F; LANES]; COLUMNS]) {
        let [one, two] = &mut self.columns;
        let (one, two) = (one[rows.clone()].as_chunks_mut::<L>().0, two[rows.clone()].as_chunks_mut::<L>().0);
        let (out, v) = (out[rows.clone()].as_chunks_mut::<L>().0, self.v[rows.clone()].as_chunks::<L>().0);
        let [f, g] = self.factors;
        let mut own = sums.map(|sums| std::array::from_fn::<F, L, _>(|l| sums[l]));
        let step =
            |x: &mut [F; L], y: &mut [F; L], out: &mut [F; L], v: &[F; L], own: &mut [[F; L]; COLUMNS]| {
                for l in 0..L {
                    out[l] = out[l].plus_product(x[l], f).plus_product(y[l], g);
                    own[0][l] = own[0][l].plus_product(x[l].conj(), v[l]);
                    own[1][l] = own[1][l].plus_product(y[l].conj(), v[l]);
                }
            };
        let parts = one.iter_mut().zip(two).zip(out).zip(v);
        if let Some(Older { v: old, w, vs: [v0, v1], ws: [w0, w1] }) = self.update {
            let older = old[rows.clone()].as_chunks::<L>().0.iter().zip(w[rows].as_chunks::<L>().0);
            for ((((x, y), out), v), (old, w)) in parts.zip(older) {
                let (mut a, mut b, mut sum) = (*x, *y, *out);
                for l in 0..L {
                    a[l] = a[l].minus_product(old[l], w0).minus_product(w[l], v0);
                    b[l] = b[l].minus_product(old[l], w1).minus_product(w[l], v1);
                }
                step(&mut a, &mut b, &mut sum, v, &mut own);
                (*x, *y, *out) = (a, b, sum);
            }
        } else {
            for (((x, y), out), v) in parts {
                step(x, y, out, v, &mut own);
            }
        }
        for (sums, own) in sums.iter_mut().zip(own) {
            sums[..L].copy_from_slice(&own);
        }
    }
}

/// Columns of [`Part`] that are taken together.
const COLUMNS: usize = 2;
/// Sums of [`Part`] for one element.
const LANES: usize = 8;
/// A vector of f64.
const HALF: usize = 4;

impl<F: Field> Tridiagonal<F> {
    /// Q z.
    pub(crate) fn multiply(&self, z: Matrix<F>) -> Matrix<F> {
        let apply = |reduced: &Matrix<F>, taus: &[F], mut z: Matrix<F>| {
            multiply(1, taus, |k| &reduced.column(k)[k + 2..], &mut z);
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

/// Which eigenvectors are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eigenvectors {
    /// None.
    No,
    /// All, but they are not read: eigenvalues are to the bit those that come with them.
    Unread,
    /// All.
    All,
}

/// Eigenvalues in ascending order and the eigenvectors.
#[derive(Clone, Debug)]
pub struct Eigen<F: Field> {
    /// The eigenvalues.
    pub values: Vec<F::Real>,
    /// Absent if they were not asked for.
    pub vectors: Option<Matrix<F>>,
}

/// The eigenvalues of the matrix that one triangle holds, and its eigenvectors if wanted, with the signs of
/// an iteration that is `coarse`. The error is how many eigenvalues were not found, as `info` says it.
pub(crate) fn eigen<F: Field>(
    mut a: Matrix<F>,
    triangle: Triangle,
    vectors: Eigenvectors,
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
    let guide = plain_decides::<F>(coarse) && vectors == Eigenvectors::All;
    let guide = guide.then(|| eigen(a.map(F::plain), triangle, vectors, coarse).ok()?.vectors).flatten();
    let mut found = diagonalize(a, triangle, vectors, (!plain_decides::<F>(coarse)).then_some(coarse))?;
    if let (Some(z), Some(guide)) = (&mut found.vectors, &guide) {
        take_signs(z, guide);
    }
    for x in &mut found.values {
        *x = x.shifted(exponent);
    }
    Ok(found)
}

/// [`eigen`] of a finite and tame matrix, its other triangle being 0. With a guide of the second half of it,
/// if that is to be `coarse`.
fn diagonalize<F: Field>(
    a: Matrix<F>,
    triangle: Triangle,
    vectors: Eigenvectors,
    coarse: Option<f64>,
) -> Result<Eigen<F>, usize> {
    let n = a.rows();
    let coarse = coarse.filter(|&coarse| coarse > F::Real::ULP);
    let reduced = tridiagonal(a, triangle);
    let (d, e) = (reduced.diagonal.clone(), reduced.off_diagonal.clone());
    if vectors == Eigenvectors::Unread && n > BY_ITERATION {
        return Ok(Eigen { values: divide::values(&d, &e, F::Real::ULP)?, vectors: None });
    }
    let vectors = vectors == Eigenvectors::All;
    if vectors && n > BY_ITERATION {
        let (values, z) = divide::eigen(&d, &e, F::Real::ULP, coarse)?;
        return Ok(Eigen { values, vectors: Some(reduced.multiply(z.map(F::from_real))) });
    }
    let z = Rotations::identity(if vectors { n } else { 0 }, n);
    let iteration = TridiagonalIteration::new(d, e, z, F::Real::ULP);
    let (values, z, _signed) = iteration.diagonalized(coarse.filter(|_| vectors))?;
    let vectors = vectors.then(|| reduced.multiply(z.map(F::from_real)));
    Ok(Eigen { values, vectors })
}

/// Whether the guide that is `coarse` is the whole algorithm in f64: the field is wider than that, and
/// elements are f64.
pub(crate) fn plain_decides<F: Field>(coarse: f64) -> bool {
    F::Real::ULP < f64::ULP && coarse <= f64::ULP
}

/// Changes signs of columns so that they agree with those of a guide.
pub(super) fn take_signs<F: Field, G: Field>(z: &mut Matrix<F>, guide: &Matrix<G>) {
    for j in 0..z.columns() {
        if agreement(z.column(j), guide.column(j)) < 0.0 {
            negate(z.column_mut(j));
        }
    }
}
