//! Schur forms of Hessenberg matrices, by the iteration with double shifts for real matrices and with single
//! shifts for complex ones: `hseqr` as LAPACK computes it up to order 75 (`lahqr`).

use std::ops::Range;

use hlo_threads::cancel;

use super::Matrix;
use super::balance::balance;
use super::hessenberg::reduce;
use super::householder::reflector;
use super::matrix::{agreement, hypotenuse, negate, shift};
use super::rotation::{Rotation, rotate, rotation};
use crate::wide::{Complex, Field, Real, abs};

/// Z^H A Z = T, triangular; over the real numbers with blocks of order 2 on the diagonal for conjugate pairs
/// of eigenvalues.
#[derive(Clone, Debug)]
pub struct Schur<F: Field> {
    /// T.
    pub t: Matrix<F>,
    /// Z.
    pub z: Matrix<F>,
    /// Eigenvalues, in the order of the diagonal.
    pub values: Vec<Complex<F::Real>>,
}

/// A field whose Hessenberg matrices have a Schur form.
pub(crate) trait Triangularize: Field {
    /// Makes `h` triangular up to what is below `ulp`, multiplies `z` by the transformation, and gives the
    /// eigenvalues; of a `z` without rows these alone, `h` is nothing afterwards. `guide` has their
    /// approximate values in the order that they are to have, or is empty: each is the first shift for its
    /// position. The error is the number of eigenvalues up to and including the last one that was not found.
    fn triangularize(
        h: &mut Matrix<Self>,
        z: &mut Matrix<Self>,
        active: Range<usize>,
        ulp: f64,
        guide: &[Complex<Self::Real>],
    ) -> Result<Vec<Complex<Self::Real>>, usize>;

    /// Takes the signs of Schur vectors from a guide, where there are only signs to take.
    fn follow(schur: &mut Schur<Self>, guide: &Matrix<Self>);
}

/// The Schur form: `gees`, with the order and signs of an iteration that is `coarse`. The error is as in
/// [`Triangularize::triangularize`].
pub(crate) fn schur<F: Triangularize>(mut a: Matrix<F>, coarse: f64) -> Result<Schur<F>, usize> {
    if !a.is_finite() {
        return Err(a.rows().max(1));
    }
    let exponent = a.tame();
    let balance = balance(&mut a, false);
    let mut schur = of_balanced(a, balance.active.clone(), Wanted::Vectors, coarse)?;
    balance.undo(&mut schur.z, true);
    shift(schur.t.elements_mut(), exponent);
    shift(&mut schur.values, exponent);
    Ok(schur)
}

/// What is looked at of a Schur form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wanted {
    /// The eigenvalues.
    Values,
    /// All.
    Vectors,
}

/// The Schur form of a matrix that is triangular outside of `active`. If values alone are wanted, `t` and `z`
/// are nothing, and the values to the bit the same.
pub(super) fn of_balanced<F: Triangularize>(
    a: Matrix<F>,
    active: Range<usize>,
    wanted: Wanted,
    coarse: f64,
) -> Result<Schur<F>, usize> {
    let n = a.rows();
    let reduced = reduce(a, active.clone());
    let mut z = if wanted == Wanted::Vectors { reduced.vectors() } else { Matrix::zeros(0, n) };
    let mut t = reduced.matrix();
    let (mut guide_t, mut guide_z) = (t.clone(), z.clone());
    let guide = F::triangularize(&mut guide_t, &mut guide_z, active.clone(), coarse, &[]);
    let hints = guide.as_deref().unwrap_or_default();
    let values = F::triangularize(&mut t, &mut z, active, F::Real::ULP, hints)?;
    let mut schur = Schur { t, z, values };
    if guide.is_ok() && wanted == Wanted::Vectors {
        F::follow(&mut schur, &guide_z);
    }
    Ok(schur)
}

/// The rows and columns that a step on those from `start` to `last` has to reach: all, or if `z` has no rows
/// these alone.
fn reach<F: Field>(h: &Matrix<F>, z: &Matrix<F>, start: usize, last: usize) -> (usize, usize) {
    if z.rows() == 0 { (start, last + 1) } else { (0, h.rows()) }
}

/// Iterations without a deflation after which the shift is an exceptional one, as LAPACK's.
const EXCEPTIONAL_ITERATIONS: usize = 10;

impl<R: Real> Triangularize for R {
    fn triangularize(
        h: &mut Matrix<R>,
        z: &mut Matrix<R>,
        active: Range<usize>,
        ulp: f64,
        guide: &[Complex<R>],
    ) -> Result<Vec<Complex<R>>, usize> {
        let n = h.rows();
        let mut values: Vec<Complex<R>> = (0..n).map(|i| Complex::from_real(h[(i, i)])).collect();
        let mut end = active.end;
        let rounds = 30 * active.len().max(10);
        // Eigenvalues split off at the end of the active block.
        while end > active.start {
            let last = end - 1;
            let mut start = active.start;
            let mut found = false;
            for round in 1..=rounds + 1 {
                cancel::poll();
                start = small_subdiagonal(h, active.clone(), start, last, ulp);
                if start > active.start {
                    h[(start, start - 1)] = R::default();
                }
                if start + 1 >= last {
                    found = true;
                    break;
                }
                let shifts = match guide.get(last) {
                    Some(w) if round == 1 => [*w, w.conj()],
                    _ => shifts(h, start, last, round),
                };
                francis(h, z, start, last, shifts, ulp);
            }
            if !found {
                return Err(end);
            }
            if start == last {
                values[last] = Complex::from_real(h[(last, last)]);
            } else {
                (values[start], values[last]) = standardize(h, z, start, ulp);
                if let Some(w) = guide.get(start)
                    && h[(last, start)].is_zero()
                    && distance(values[last], *w) < distance(values[start], *w)
                {
                    exchange(h, z, start);
                    values.swap(start, last);
                }
            }
            end = start;
        }
        Ok(values)
    }

    fn follow(schur: &mut Schur<R>, guide: &Matrix<R>) {
        let n = schur.t.rows();
        let mut j = 0;
        while j < n {
            let pair = j + 1 < n && !schur.t[(j + 1, j)].is_zero();
            if pair {
                let parts = |i: usize| [j, j + 1].map(|j| agreement(schur.z.column(i), guide.column(j)));
                let [first, second] = [parts(j), parts(j + 1)];
                // A block stays in standard form if its vectors are exchanged, too.
                if first[0].abs() + second[1].abs() < first[1].abs() + second[0].abs() {
                    schur.swap_pair(j);
                }
            }
            for j in j..=j + usize::from(pair) {
                if agreement(schur.z.column(j), guide.column(j)) < 0.0 {
                    negate(schur.z.column_mut(j));
                    negate(schur.t.column_mut(j));
                    for k in 0..n {
                        schur.t[(j, k)] = -schur.t[(j, k)];
                    }
                }
            }
            j += 1 + usize::from(pair);
        }
    }
}

impl<R: Real> Schur<R> {
    /// Exchanges the vectors of a block of order 2 with equal elements on its diagonal.
    fn swap_pair(&mut self, j: usize) {
        self.z.swap_columns(j, j + 1);
        self.t.swap_columns(j, j + 1);
        let n = self.t.rows();
        self.t.swap_rows(j, j + 1, 0..n);
    }
}

fn distance<R: Real>(a: Complex<R>, b: Complex<R>) -> R {
    (a - b).size()
}

/// Exchanges two real eigenvalues that follow each other on the diagonal.
fn exchange<R: Real>(h: &mut Matrix<R>, z: &mut Matrix<R>, i: usize) {
    let (top, end) = reach(h, z, i, i + 1);
    let (a, d) = (h[(i, i)], h[(i + 1, i + 1)]);
    let Rotation { c, s, .. } = rotation(h[(i, i + 1)], d - a);
    for j in i + 2..end {
        let (x, y) = (h[(i, j)], h[(i + 1, j)]);
        (h[(i, j)], h[(i + 1, j)]) = (x * c + y * s, y * c - x * s);
    }
    let (left, right) = h.two_columns_mut(i, i + 1);
    rotate((&mut left[top..i], &mut right[top..i]), c, s);
    rotate(z.two_columns_mut(i, i + 1), c, s);
    (h[(i, i)], h[(i + 1, i + 1)]) = (d, a);
}

/// The row of the last element below the diagonal that is negligible, of those up to `last`; otherwise
/// `start`. By the criterion of Ahues and Tisseur.
fn small_subdiagonal<F: Field>(
    h: &Matrix<F>,
    active: Range<usize>,
    start: usize,
    last: usize,
    ulp: f64,
) -> usize {
    let ulp = F::Real::from_f64(ulp);
    let tiny = F::Real::from_f64(F::Real::TINY * (active.len() as f64 / F::Real::ULP));
    for k in (start + 1..=last).rev() {
        let below = h[(k, k - 1)].size();
        if below <= tiny {
            return k;
        }
        let mut around = h[(k - 1, k - 1)].size() + h[(k, k)].size();
        if around.is_zero() {
            if k >= active.start + 2 {
                around = around + abs(h[(k - 1, k - 2)].real());
            }
            if k + 1 < active.end {
                around = around + abs(h[(k + 1, k)].real());
            }
        }
        if abs(h[(k, k - 1)].real()) <= ulp * around {
            let above = h[(k - 1, k)].size();
            let (ab, ba) = ordered(below, above);
            let (aa, bb) = ordered(h[(k, k)].size(), (h[(k - 1, k - 1)] - h[(k, k)]).size());
            let sum = aa + ab;
            let limit = ulp * (bb * (aa / sum));
            if ba * (ab / sum) <= if limit > tiny { limit } else { tiny } {
                return k;
            }
        }
    }
    start
}

/// The larger and the smaller.
fn ordered<R: Real>(a: R, b: R) -> (R, R) {
    if a > b { (a, b) } else { (b, a) }
}

/// The two shifts of a round: the eigenvalues of the last block of order 2, or twice the one that is nearer
/// to the last element.
fn shifts<R: Real>(h: &Matrix<R>, start: usize, last: usize, round: usize) -> [Complex<R>; 2] {
    let made_up = |size: R, corner: R| {
        let h11 = R::from_f64(0.75) * size + corner;
        [h11, R::from_f64(-0.4375) * size, size, h11]
    };
    let [h11, h12, h21, h22] = if round.is_multiple_of(2 * EXCEPTIONAL_ITERATIONS) {
        made_up(abs(h[(last, last - 1)]) + abs(h[(last - 1, last - 2)]), h[(last, last)])
    } else if round.is_multiple_of(EXCEPTIONAL_ITERATIONS) {
        made_up(abs(h[(start + 1, start)]) + abs(h[(start + 2, start + 1)]), h[(start, start)])
    } else {
        [h[(last - 1, last - 1)], h[(last - 1, last)], h[(last, last - 1)], h[(last, last)]]
    };
    let size = abs(h11) + abs(h12) + abs(h21) + abs(h22);
    if size.is_zero() {
        return [Complex::default(); 2];
    }
    let [h11, h12, h21, h22] = [h11, h12, h21, h22].map(|x| x / size);
    let mean = (h11 + h22) * R::from_f64(0.5);
    let determinant = (h11 - mean) * (h22 - mean) - h12 * h21;
    let root = abs(determinant).root();
    if determinant >= R::default() {
        let (re, im) = (mean * size, root * size);
        return [Complex { re, im }, Complex { re, im: -im }];
    }
    let (a, b) = (mean + root, mean - root);
    let nearer = if abs(a - h22) <= abs(b - h22) { a } else { b };
    [Complex::from_real(nearer * size); 2]
}

/// One step of the iteration on the rows and columns from `start` to `last`.
fn francis<R: Real>(
    h: &mut Matrix<R>,
    z: &mut Matrix<R>,
    start: usize,
    last: usize,
    shifts: [Complex<R>; 2],
    ulp: f64,
) {
    let (top, end) = reach(h, z, start, last);
    let ulp = R::from_f64(ulp);
    let [one, two] = shifts;
    // Two small elements below the diagonal in a row let the bulge start there.
    let mut first = start;
    let mut v = [R::default(); 3];
    for m in (start..last - 1).rev() {
        let size = abs(h[(m, m)] - two.re) + abs(two.im) + abs(h[(m + 1, m)]);
        let below = h[(m + 1, m)] / size;
        v = [
            below * h[(m, m + 1)] + (h[(m, m)] - one.re) * ((h[(m, m)] - two.re) / size)
                - one.im * (two.im / size),
            below * (h[(m, m)] + h[(m + 1, m + 1)] - one.re - two.re),
            below * h[(m + 2, m + 1)],
        ];
        let size = abs(v[0]) + abs(v[1]) + abs(v[2]);
        v = v.map(|x| x / size);
        first = m;
        if m == start {
            break;
        }
        let around = abs(h[(m - 1, m - 1)]) + abs(h[(m, m)]) + abs(h[(m + 1, m + 1)]);
        if abs(h[(m, m - 1)]) * (abs(v[1]) + abs(v[2])) <= ulp * abs(v[0]) * around {
            break;
        }
    }
    for k in first..last {
        let size = 3.min(last + 1 - k);
        if k > first {
            v[..size].copy_from_slice(&h.column(k - 1)[k..k + size]);
        }
        let tau = reflector(&mut v[..size]);
        if k > first {
            h[(k, k - 1)] = v[0];
            h.column_mut(k - 1)[k + 1..k + size].fill(R::default());
        } else if first > start {
            // Not -h, so that it is right for tau = 0 too.
            h[(k, k - 1)] = h[(k, k - 1)] * (R::one() - tau);
        }
        let tail = &v[1..size];
        super::householder::apply_left(h, tail, tau, k, k..end);
        super::householder::apply_right(h, tail, tau, top..(k + 4).min(last + 1), k);
        super::householder::apply_right(z, tail, tau, 0..z.rows(), k);
    }
}

/// Brings a block of order 2 into standard form (`lanv2`): upper triangular, or with equal elements on the
/// diagonal and opposite signs beside it. Returns its eigenvalues.
fn standardize<R: Real>(
    h: &mut Matrix<R>,
    z: &mut Matrix<R>,
    i: usize,
    ulp: f64,
) -> (Complex<R>, Complex<R>) {
    let (top, end) = reach(h, z, i, i + 1);
    let block = Block::new([h[(i, i)], h[(i, i + 1)], h[(i + 1, i)], h[(i + 1, i + 1)]], ulp);
    let Block { a, b, c, d, cosine, sine } = block;
    (h[(i, i)], h[(i, i + 1)], h[(i + 1, i)], h[(i + 1, i + 1)]) = (a, b, c, d);
    for j in i + 2..end {
        let (x, y) = (h[(i, j)], h[(i + 1, j)]);
        (h[(i, j)], h[(i + 1, j)]) = (x * cosine + y * sine, y * cosine - x * sine);
    }
    let (left, right) = h.two_columns_mut(i, i + 1);
    rotate((&mut left[top..i], &mut right[top..i]), cosine, sine);
    rotate(z.two_columns_mut(i, i + 1), cosine, sine);
    let im = if c.is_zero() { R::default() } else { abs(b).root() * abs(c).root() };
    (Complex { re: a, im }, Complex { re: d, im: -im })
}

/// (a b; c d) in standard form, and the rotation that brought it there.
struct Block<R> {
    a: R,
    b: R,
    c: R,
    d: R,
    cosine: R,
    sine: R,
}

impl<R: Real> Block<R> {
    fn new([a, b, c, d]: [R; 4], ulp: f64) -> Self {
        let (zero, one, half) = (R::default(), R::one(), R::from_f64(0.5));
        if c.is_zero() {
            return Self { a, b, c, d, cosine: one, sine: zero };
        }
        if b.is_zero() {
            return Self { a: d, b: -c, c: zero, d: a, cosine: zero, sine: one };
        }
        let negative = |x: R| x.to_f64().is_sign_negative();
        if (a - d).is_zero() && negative(b) != negative(c) {
            return Self { a, b, c, d, cosine: one, sine: zero };
        }
        let difference = a - d;
        let p = difference * half;
        let (most, least) = ordered(abs(b), abs(c));
        let least = least * one.with_sign_of(b) * one.with_sign_of(c);
        let size = ordered(abs(p), most).0;
        let discriminant = (p / size) * p + (most / size) * least;
        if discriminant >= R::from_f64(4.0 * ulp) {
            // Two real eigenvalues.
            let root = p + (size.root() * discriminant.root()).with_sign_of(p);
            let length = hypotenuse(c, root);
            return Self {
                a: d + root,
                b: b - c,
                c: zero,
                d: d - (most / root) * least,
                cosine: root / length,
                sine: c / length,
            };
        }
        // Complex, or real and nearly equal: first make the diagonal equal.
        let sum = b + c;
        let length = hypotenuse(sum, difference);
        let mut cosine = (half * (one + abs(sum) / length)).root();
        let mut sine = -(p / (length * cosine)) * one.with_sign_of(sum);
        let (aa, bb) = (a * cosine + b * sine, b * cosine - a * sine);
        let (cc, dd) = (c * cosine + d * sine, d * cosine - c * sine);
        let (a, b) = (aa * cosine + cc * sine, bb * cosine + dd * sine);
        let (c, d) = (cc * cosine - aa * sine, dd * cosine - bb * sine);
        let mean = (a + d) * half;
        if c.is_zero() {
            return Self { a: mean, b, c, d: mean, cosine, sine };
        }
        if b.is_zero() {
            (cosine, sine) = (-sine, cosine);
            return Self { a: mean, b: -c, c: b, d: mean, cosine, sine };
        }
        if negative(b) != negative(c) {
            return Self { a: mean, b, c, d: mean, cosine, sine };
        }
        // Real after all.
        let (root_b, root_c) = (abs(b).root(), abs(c).root());
        let p = (root_b * root_c).with_sign_of(c);
        let length = abs(b + c).root();
        let (c1, s1) = (root_b / length, root_c / length);
        Self {
            a: mean + p,
            b: b - c,
            c: zero,
            d: mean - p,
            cosine: cosine * c1 - sine * s1,
            sine: cosine * s1 + sine * c1,
        }
    }
}

impl<R: Real> Triangularize for Complex<R> {
    fn triangularize(
        h: &mut Matrix<Self>,
        z: &mut Matrix<Self>,
        active: Range<usize>,
        ulp: f64,
        guide: &[Complex<R>],
    ) -> Result<Vec<Complex<R>>, usize> {
        let n = h.rows();
        // What is below the diagonal becomes real.
        for i in active.start + 1..active.end {
            let below = h[(i, i - 1)];
            if !below.im.is_zero() {
                let modulus = below.modulus();
                let phase = below.scaled(R::one() / modulus);
                h[(i, i - 1)] = Self::from_real(modulus);
                scale_row(h, i, i..n, phase.conj());
                scale_column(h, i, 0..(i + 2).min(n), phase);
                scale_column(z, i, 0..n, phase);
            }
        }
        let mut end = active.end;
        let rounds = 30 * active.len().max(10);
        while end > active.start {
            let last = end - 1;
            let mut start = active.start;
            let mut found = false;
            for round in 1..=rounds + 1 {
                cancel::poll();
                start = small_subdiagonal(h, active.clone(), start, last, ulp);
                if start > active.start {
                    h[(start, start - 1)] = Self::default();
                }
                if start == last {
                    found = true;
                    break;
                }
                let shift = match guide.get(last) {
                    Some(w) if round == 1 => *w,
                    _ => single_shift(h, start, last, round),
                };
                single_step(h, z, start, last, shift, ulp);
            }
            if !found {
                return Err(end);
            }
            end = start;
        }
        Ok((0..n).map(|i| h[(i, i)]).collect())
    }

    /// Phases are free, and those of LAPACK are made of rounding errors.
    fn follow(_: &mut Schur<Self>, _: &Matrix<Self>) {}
}

fn scale_row<F: Field>(h: &mut Matrix<F>, i: usize, columns: Range<usize>, factor: F) {
    for j in columns {
        h[(i, j)] = h[(i, j)] * factor;
    }
}

fn scale_column<F: Field>(h: &mut Matrix<F>, j: usize, rows: Range<usize>, factor: F) {
    for x in &mut h.column_mut(j)[rows] {
        *x = *x * factor;
    }
}

/// The shift of a round: the eigenvalue of the last block of order 2 that is nearer to the last element.
fn single_shift<R: Real>(h: &Matrix<Complex<R>>, start: usize, last: usize, round: usize) -> Complex<R> {
    if round.is_multiple_of(2 * EXCEPTIONAL_ITERATIONS) {
        return h[(last, last)] + Complex::from_real(R::from_f64(0.75) * abs(h[(last, last - 1)].re));
    }
    if round.is_multiple_of(EXCEPTIONAL_ITERATIONS) {
        return h[(start, start)] + Complex::from_real(R::from_f64(0.75) * abs(h[(start + 1, start)].re));
    }
    let t = h[(last, last)];
    let u = root(h[(last - 1, last)]) * root(h[(last, last - 1)]);
    if u.is_zero() {
        return t;
    }
    let x = (h[(last - 1, last - 1)] - t).scaled(R::from_f64(0.5));
    let size = ordered(u.size(), x.size()).0;
    let (xs, us) = (x.scaled(R::one() / size), u.scaled(R::one() / size));
    let mut y = root(xs * xs + us * us).scaled(size);
    if x.re * y.re + x.im * y.im < R::default() {
        y = -y;
    }
    t - u * (u / (x + y))
}

/// The principal square root.
fn root<R: Real>(z: Complex<R>) -> Complex<R> {
    if z.is_zero() {
        return z;
    }
    let half = R::from_f64(0.5);
    let modulus = z.modulus();
    let larger = ((modulus + abs(z.re)) * half).root();
    let smaller = z.im * half / larger;
    if z.re.to_f64().is_sign_negative() {
        Complex { re: abs(smaller), im: larger.with_sign_of(z.im) }
    } else {
        Complex { re: larger, im: smaller }
    }
}

/// One step of the iteration on the rows and columns from `start` to `last`.
fn single_step<R: Real>(
    h: &mut Matrix<Complex<R>>,
    z: &mut Matrix<Complex<R>>,
    start: usize,
    last: usize,
    shift: Complex<R>,
    ulp: f64,
) {
    let (top, end) = reach(h, z, start, last);
    let ulp = R::from_f64(ulp);
    let mut first = start;
    let mut v = [Complex::default(); 2];
    for m in (start..last).rev() {
        let (h11, h22) = (h[(m, m)], h[(m + 1, m + 1)]);
        let below = h[(m + 1, m)].re;
        let shifted = h11 - shift;
        let size = shifted.size() + abs(below);
        let inverse = R::one() / size;
        let (shifted, below) = (shifted.scaled(inverse), below * inverse);
        v = [shifted, Complex::from_real(below)];
        first = m;
        if m == start {
            break;
        }
        let left = abs(h[(m, m - 1)].re) * abs(below);
        if left <= ulp * (shifted.size() * (h11.size() + h22.size())) {
            break;
        }
    }
    for k in first..last {
        if k > first {
            v.copy_from_slice(&h.column(k - 1)[k..k + 2]);
        }
        let tau = reflector(&mut v);
        if k > first {
            h[(k, k - 1)] = v[0];
            h[(k + 1, k - 1)] = Complex::default();
        }
        let tail = &v[1..];
        super::householder::apply_left(h, tail, tau.conj(), k, k..end);
        super::householder::apply_right(h, tail, tau, top..(k + 3).min(last + 1), k);
        super::householder::apply_right(z, tail, tau, 0..z.rows(), k);
        if k == first && first > start {
            // The step began below two small elements: keep what is below the diagonal real.
            let phase = Complex::one() - tau;
            let phase = phase.scaled(R::one() / phase.modulus());
            h[(first + 1, first)] = h[(first + 1, first)] * phase.conj();
            if first + 2 <= last {
                h[(first + 2, first + 1)] = h[(first + 2, first + 1)] * phase;
            }
            for j in first..=last {
                if j != first + 1 {
                    scale_row(h, j, j + 1..end, phase);
                    scale_column(h, j, top..j, phase.conj());
                    scale_column(z, j, 0..z.rows(), phase.conj());
                }
            }
        }
    }
    let below = h[(last, last - 1)];
    if !below.im.is_zero() {
        let modulus = below.modulus();
        let phase = below.scaled(R::one() / modulus);
        h[(last, last - 1)] = Complex::from_real(modulus);
        scale_row(h, last, last + 1..end, phase.conj());
        scale_column(h, last, top..last, phase);
        scale_column(z, last, 0..z.rows(), phase);
    }
}
