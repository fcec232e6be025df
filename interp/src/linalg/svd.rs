//! Singular values and vectors (values alone: [`super::dqds`]): the implicit QR iteration (`bdsqr`) on the bidiagonal form ([`super::bidiagonal`]), together `gesvd`, and
//! `gesdd` as LAPACK computes it up to [`BY_ITERATION`] singular values; beyond, [`super::divide_bidiagonal`] takes the iteration's place.

use super::Matrix;
use super::bidiagonal::Bidiagonal;
use super::divide_bidiagonal;
use super::dqds;
use super::eigen_symmetric::{BY_ITERATION, plain_decides};
use super::matrix::{agreement, hypotenuse, negate};
use super::qr;
use super::rotation::rotation;
use super::turns::Turns;
use crate::parallel;
use crate::scalar::wide::{Field, Real, abs};

/// Which of LAPACK's drivers to follow where factors are not unique.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Driver {
    /// `gesdd`.
    DivideAndConquer,
    /// `gesvd`.
    Iteration,
}

/// How many singular vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Vectors {
    /// None.
    None,
    /// As many as there are singular values.
    Thin,
    /// All of both spaces.
    Full,
}

/// A = U S V^H, singular values in descending order.
#[derive(Clone, Debug)]
pub(crate) struct Svd<F: Field> {
    pub(crate) values: Vec<F::Real>,
    /// U and V, if wanted.
    pub(crate) vectors: Option<(Matrix<F>, Matrix<F>)>,
}

impl Driver {
    /// Whether a matrix of that many rows and columns, the columns being fewer, is first factored as Q R.
    fn factors_first<F: Field>(self, rows: usize, columns: usize) -> bool {
        // LAPACK: int(11/6 n), int(17/9 n) of complex numbers; int(1.6 n) in f32 arithmetic.
        let (n, rows) = (columns as u64, rows as u64);
        rows >= match self {
            Driver::DivideAndConquer if F::COMPLEX => n * 17 / 9,
            Driver::DivideAndConquer => n * 11 / 6,
            Driver::Iteration => n * 8 / 5,
        }
    }
}

/// Singular values, and vectors if wanted, with the signs of an iteration that is `coarse`. The error is how many elements beside the
/// diagonal are left, as `info` says it.
pub(crate) fn svd<F: Field>(
    mut a: Matrix<F>,
    vectors: Vectors,
    driver: Driver,
    coarse: f64,
) -> Result<Svd<F>, usize> {
    let (m, n) = (a.rows(), a.columns());
    if !a.is_finite() {
        return Err(m.min(n).max(1));
    }
    let exponent = a.tame();
    let guide = plain_decides::<F>(coarse) && vectors != Vectors::None;
    let guide = guide.then(|| svd(a.map(F::plain), vectors, driver, coarse).ok()?.vectors).flatten();
    let mut found = decompose(a, vectors, driver, (!plain_decides::<F>(coarse)).then_some(coarse))?;
    if let (Some(both), Some(guide)) = (&mut found.vectors, &guide) {
        // What is 0 but for the rounding of the wide arithmetic has some value in f64.
        let order = F::Real::from_f64(m.max(n) as f64 * 64.0 * F::Real::ULP);
        let nothing = found.values.first().map_or(F::Real::default(), |&largest| largest * order);
        take_signs(&found.values, nothing, (&mut both.0, &mut both.1), (&guide.0, &guide.1));
    }
    for x in &mut found.values {
        *x = x.shifted(exponent);
    }
    Ok(found)
}

/// Changes signs of pairs of vectors so that they agree with those of a guide. Of a singular value of 0, or `nothing`, the two vectors have
/// nothing to do with each other.
fn take_signs<F: Field, G: Field>(
    values: &[F::Real],
    nothing: F::Real,
    (u, v): (&mut Matrix<F>, &mut Matrix<F>),
    guide: (&Matrix<G>, &Matrix<G>),
) {
    for (j, &value) in values.iter().enumerate() {
        let left = agreement(u.column(j), guide.0.column(j));
        let right = agreement(v.column(j), guide.1.column(j));
        let (left, right) = if value <= nothing { (left, right) } else { (left + right, left + right) };
        if left < 0.0 {
            negate(u.column_mut(j));
        }
        if right < 0.0 {
            negate(v.column_mut(j));
        }
    }
}

/// [`svd`] of a finite and tame matrix. With a guide of the second half of it, if that is to be `coarse`.
fn decompose<F: Field>(
    a: Matrix<F>,
    vectors: Vectors,
    driver: Driver,
    coarse: Option<f64>,
) -> Result<Svd<F>, usize> {
    let (m, n) = (a.rows(), a.columns());
    let coarse = coarse.filter(|&coarse| coarse > F::Real::ULP);
    let wide = m < n;
    // What has fewer columns than rows.
    let tall = if wide { a.adjoint() } else { a };
    let (rows, size) = (tall.rows(), tall.columns());
    let first = driver.factors_first::<F>(rows, size).then(|| qr::factor(tall.clone()));
    let core = match &first {
        None => tall,
        Some(qr) => {
            let r =
                Matrix::from_fn(size, size, |i, j| if i <= j { qr.factors[(i, j)] } else { F::default() });
            if wide { r.adjoint() } else { r }
        }
    };
    // Without that step, the bidiagonal form of the adjoint is that of the matrix, transposed.
    let transposed = wide && first.is_none();
    let bidiagonal = Bidiagonal::new(core);
    let (mut d, mut e) = (bidiagonal.diagonal.clone(), bidiagonal.off_diagonal.clone());
    if vectors == Vectors::None
        && let Some(values) = dqds::singular_values(&d, &e)
    {
        return Ok(Svd { values, vectors: None });
    }
    let kept = if vectors == Vectors::None { 0 } else { size };
    let form = Form { lower: transposed, driver };
    let (mut u, mut v, guide);
    if kept > BY_ITERATION && driver == Driver::DivideAndConquer {
        let ulps = [Some(F::Real::ULP), coarse];
        let run = |i: usize| divide_bidiagonal::singular(&d, &e, transposed, ulps[i].unwrap_or(F::Real::ULP));
        let mut found = parallel::collect(ulps.iter().flatten().count(), &run).into_iter();
        let of = found.next().ok_or(size)??;
        (d, u, v) = (of.values, of.u, of.v);
        guide = found.next().and_then(Result::ok).map(|of| (of.u, of.v));
    } else {
        let (mut turned_u, mut turned_v) = (Turns::identity(kept, size), Turns::identity(kept, size));
        guide = coarse.filter(|_| kept > 0).and_then(|coarse| {
            let (mut d, mut e, mut u, mut v) = (d.clone(), e.clone(), turned_u.clone(), turned_v.clone());
            iterate(&mut d, &mut e, form, &mut u, &mut v, coarse).ok().map(|()| (u.finish(), v.finish()))
        });
        iterate(&mut d, &mut e, form, &mut turned_u, &mut turned_v, F::Real::ULP)?;
        (u, v) = (turned_u.finish(), turned_v.finish());
    }
    if let Some((guide_u, guide_v)) = guide {
        take_signs::<F::Real, F::Real>(&d, F::Real::default(), (&mut u, &mut v), (&guide_u, &guide_v));
    }
    if vectors == Vectors::None {
        return Ok(Svd { values: d, vectors: None });
    }
    let columns = if vectors == Vectors::Full { rows } else { size };
    let embedded = |x: &Matrix<F>| {
        Matrix::from_fn(rows, columns, |i, j| match (x.rows() > i, x.columns() > j) {
            (true, true) => x[(i, j)],
            _ if i == j => F::one(),
            _ => F::default(),
        })
    };
    let (u, v) = (u.map(F::from_real), v.map(F::from_real));
    let (u, v) = match first {
        Some(qr) => {
            let (u, v) = (bidiagonal.left(u), bidiagonal.right(v));
            let mut long = embedded(if wide { &v } else { &u });
            qr::multiply(&qr.factors, &qr.taus, &mut long, true, false);
            if wide { (u, long) } else { (long, v) }
        }
        None if wide => (bidiagonal.right(u), bidiagonal.left(embedded(&v))),
        None => (bidiagonal.left(embedded(&u)), bidiagonal.right(v)),
    };
    Ok(Svd { values: d, vectors: Some((u, v)) })
}

/// What is diagonalized, and as who does it.
#[derive(Clone, Copy)]
struct Form {
    /// Whether the second diagonal is below the first.
    lower: bool,
    driver: Driver,
}

/// Diagonalizes a bidiagonal matrix as a driver does: as [`diagonalize`], and its order of equal values.
fn iterate<R: Real>(
    d: &mut [R],
    e: &mut [R],
    Form { lower, driver }: Form,
    u: &mut Turns<R>,
    v: &mut Turns<R>,
    ulp: f64,
) -> Result<(), usize> {
    if d.len() == 1 && driver == Driver::DivideAndConquer {
        if d[0].to_f64().is_sign_negative() {
            d[0] = -d[0];
            u.negate(0);
        }
        return Ok(());
    }
    diagonalize(d, e, lower, u, v, ulp)?;
    if driver == Driver::DivideAndConquer {
        // Once more in each direction: that changes the order of equal ones.
        let mut swap = |i, j| {
            u.swap(i, j);
            v.swap(i, j);
        };
        exchange(d, |x, least| x < least, &mut swap);
        exchange(d, |x, largest| x > largest, &mut swap);
    }
    Ok(())
}

/// Diagonalizes a bidiagonal matrix up to what is below `ulp`, turns the columns of `u` and `v` with it, makes the diagonal positive
/// and sorts it, descending.
pub(super) fn diagonalize<R: Real>(
    d: &mut [R],
    e: &mut [R],
    lower: bool,
    u: &mut Turns<R>,
    v: &mut Turns<R>,
    ulp: f64,
) -> Result<(), usize> {
    if lower {
        other_side(d, e, |i, c, s| u.turn(i, c, s));
    }
    Iteration { d: &mut *d, e, u: &mut *u, v: &mut *v, ulp }.run()?;
    for (i, x) in d.iter_mut().enumerate() {
        if *x < R::default() {
            *x = -*x;
            v.negate(i);
        } else if x.is_zero() {
            *x = R::default();
        }
    }
    for end in (1..d.len()).rev() {
        let least = (0..=end).fold(0, |least, j| if d[j] <= d[least] { j } else { least });
        d.swap(least, end);
        u.swap(least, end);
        v.swap(least, end);
    }
    Ok(())
}

/// Turns the second diagonal of a bidiagonal matrix to the other side of the first, and says by which rotation (c, s) of each element and
/// the next. With as many elements as the first, its last one becomes 0.
pub(super) fn other_side<R: Real>(d: &mut [R], e: &mut [R], mut turned: impl FnMut(usize, R, R)) {
    for i in 0..e.len() {
        let by = rotation(d[i], e[i]);
        d[i] = by.r;
        e[i] = match d.get_mut(i + 1) {
            Some(next) => {
                let off = by.s * *next;
                *next = by.c * *next;
                off
            }
            None => R::default(),
        };
        turned(i, by.c, by.s);
    }
}

/// Sorts by exchanging each value with that which comes before all that follow it, and says which.
pub(super) fn exchange<R: Real>(
    d: &mut [R],
    before: impl Fn(R, R) -> bool,
    mut swapped: impl FnMut(usize, usize),
) {
    for i in 0..d.len() {
        let first = (i..d.len()).fold(i, |first, j| if before(d[j], d[first]) { j } else { first });
        d.swap(i, first);
        swapped(i, first);
    }
}

/// The iteration on an upper bidiagonal matrix.
struct Iteration<'a, R> {
    d: &'a mut [R],
    e: &'a mut [R],
    u: &'a mut Turns<R>,
    v: &'a mut Turns<R>,
    ulp: f64,
}

impl<R: Real> Iteration<'_, R> {
    fn run(&mut self) -> Result<(), usize> {
        let n = self.d.len();
        if n < 2 {
            return Ok(());
        }
        let tolerance = R::from_f64(tolerance_in_units(self.ulp) * self.ulp / 2.0);
        let size = R::from_f64(n as f64);
        let steps = 6 * n;
        let threshold = {
            let mut mu = abs(self.d[0]);
            let mut least = mu;
            for i in 1..n {
                if least.is_zero() {
                    break;
                }
                mu = abs(self.d[i]) * (mu / (mu + abs(self.e[i - 1])));
                least = if mu < least { mu } else { least };
            }
            let relative = tolerance * least / size.root();
            let absolute = R::from_f64(6.0 * R::TINY) * size * size;
            if relative > absolute { relative } else { absolute }
        };
        let mut budget = steps.saturating_mul(n).saturating_add(n);
        // The block of the last round, and whether it was chased downwards.
        let mut last = None;
        let mut down = true;
        let mut end = n - 1;
        while end > 0 {
            // The block that ends there begins after an element that is as good as 0.
            let mut largest = abs(self.d[end]);
            let mut start = 0;
            for i in (0..end).rev() {
                let (on, off) = (abs(self.d[i]), abs(self.e[i]));
                if off <= threshold {
                    self.e[i] = R::default();
                    start = i + 1;
                    break;
                }
                for x in [on, off] {
                    largest = if x > largest { x } else { largest };
                }
            }
            if start == end {
                end -= 1;
                continue;
            }
            if start + 1 == end {
                self.pair(start);
                end = end.saturating_sub(2);
                continue;
            }
            if last.is_none_or(|(old_start, old_end)| start > old_end || end < old_start) {
                down = abs(self.d[start]) >= abs(self.d[end]);
            }
            let Some(least) = self.split(start, end, down, tolerance) else { continue };
            last = Some((start, end));
            if budget <= end - start {
                return Err(self.e.iter().filter(|e| !e.is_zero()).count());
            }
            budget -= end - start;
            let shift = self.shift(start, end, down, least / largest, tolerance);
            match (shift.is_zero(), down) {
                (true, true) => self.zero_shift_down(start, end),
                (true, false) => self.zero_shift_up(start, end),
                (false, true) => self.chase_down(start, end, shift),
                (false, false) => self.chase_up(start, end, shift),
            }
            let last_off = if down { end - 1 } else { start };
            if abs(self.e[last_off]) <= threshold {
                self.e[last_off] = R::default();
            }
        }
        Ok(())
    }

    /// Looks for an element beside the diagonal that is as good as 0 relative to those around it. If there is one, it becomes
    /// 0; otherwise gives a lower bound of the smallest singular value of the block.
    fn split(&mut self, start: usize, end: usize, down: bool, tolerance: R) -> Option<R> {
        let far = if down { end - 1 } else { start };
        let beside = if down { end } else { start };
        if abs(self.e[far]) <= tolerance * abs(self.d[beside]) {
            self.e[far] = R::default();
            return None;
        }
        let mut mu = abs(self.d[if down { start } else { end }]);
        let mut least = mu;
        for step in 0..end - start {
            let (off, on) =
                if down { (start + step, start + step + 1) } else { (end - 1 - step, end - 1 - step) };
            if abs(self.e[off]) <= tolerance * mu {
                self.e[off] = R::default();
                return None;
            }
            mu = abs(self.d[on]) * (mu / (mu + abs(self.e[off])));
            least = if mu < least { mu } else { least };
        }
        Some(least)
    }

    /// The shift: the smaller singular value of the last two rows, or 0 if a shift would spoil the small singular values.
    fn shift(&self, start: usize, end: usize, down: bool, ratio: R, tolerance: R) -> R {
        let epsilon = R::from_f64(self.ulp / 2.0);
        let limit = tolerance * R::from_f64(0.01);
        let limit = if epsilon > limit { epsilon } else { limit };
        if R::from_f64((end - start + 1).max(self.d.len()) as f64) * tolerance * ratio <= limit {
            return R::default();
        }
        let (top, corner) = if down { (self.d[start], end - 1) } else { (self.d[end], start) };
        let shift = smaller_singular_value(self.d[corner], self.e[corner], self.d[corner + 1]);
        let top = abs(top);
        if top > R::default() {
            let relative = shift / top;
            if relative * relative < epsilon {
                return R::default();
            }
        }
        shift
    }

    fn zero_shift_down(&mut self, start: usize, end: usize) {
        let (mut c, mut old_c, mut old_s) = (R::one(), R::one(), R::default());
        for i in start..end {
            let right = rotation(self.d[i] * c, self.e[i]);
            if i > start {
                self.e[i - 1] = old_s * right.r;
            }
            let left = rotation(old_c * right.r, self.d[i + 1] * right.s);
            self.d[i] = left.r;
            (c, old_c, old_s) = (right.c, left.c, left.s);
            self.v.turn(i, right.c, right.s);
            self.u.turn(i, left.c, left.s);
        }
        let h = self.d[end] * c;
        self.d[end] = h * old_c;
        self.e[end - 1] = h * old_s;
    }

    fn zero_shift_up(&mut self, start: usize, end: usize) {
        let (mut c, mut old_c, mut old_s) = (R::one(), R::one(), R::default());
        for i in (start + 1..=end).rev() {
            let left = rotation(self.d[i] * c, self.e[i - 1]);
            if i < end {
                self.e[i] = old_s * left.r;
            }
            let right = rotation(old_c * left.r, self.d[i - 1] * left.s);
            self.d[i] = right.r;
            (c, old_c, old_s) = (left.c, right.c, right.s);
            self.v.turn(i - 1, right.c, -right.s);
            self.u.turn(i - 1, left.c, -left.s);
        }
        let h = self.d[start] * c;
        self.d[start] = h * old_c;
        self.e[start] = h * old_s;
    }

    fn chase_down(&mut self, start: usize, end: usize, shift: R) {
        let mut f = bulge(self.d[start], shift);
        let mut g = self.e[start];
        for i in start..end {
            let right = rotation(f, g);
            if i > start {
                self.e[i - 1] = right.r;
            }
            f = right.c * self.d[i] + right.s * self.e[i];
            self.e[i] = right.c * self.e[i] - right.s * self.d[i];
            g = right.s * self.d[i + 1];
            self.d[i + 1] = right.c * self.d[i + 1];
            let left = rotation(f, g);
            self.d[i] = left.r;
            f = left.c * self.e[i] + left.s * self.d[i + 1];
            self.d[i + 1] = left.c * self.d[i + 1] - left.s * self.e[i];
            if i + 1 < end {
                g = left.s * self.e[i + 1];
                self.e[i + 1] = left.c * self.e[i + 1];
            }
            self.v.turn(i, right.c, right.s);
            self.u.turn(i, left.c, left.s);
        }
        self.e[end - 1] = f;
    }

    fn chase_up(&mut self, start: usize, end: usize, shift: R) {
        let mut f = bulge(self.d[end], shift);
        let mut g = self.e[end - 1];
        for i in (start + 1..=end).rev() {
            let left = rotation(f, g);
            if i < end {
                self.e[i] = left.r;
            }
            f = left.c * self.d[i] + left.s * self.e[i - 1];
            self.e[i - 1] = left.c * self.e[i - 1] - left.s * self.d[i];
            g = left.s * self.d[i - 1];
            self.d[i - 1] = left.c * self.d[i - 1];
            let right = rotation(f, g);
            self.d[i] = right.r;
            f = right.c * self.e[i - 1] + right.s * self.d[i - 1];
            self.d[i - 1] = right.c * self.d[i - 1] - right.s * self.e[i - 1];
            if i > start + 1 {
                g = right.s * self.e[i - 2];
                self.e[i - 2] = right.c * self.e[i - 2];
            }
            self.v.turn(i - 1, right.c, -right.s);
            self.u.turn(i - 1, left.c, -left.s);
        }
        self.e[start] = f;
    }

    /// Diagonalizes a block of order 2.
    fn pair(&mut self, i: usize) {
        let pair = pair(self.d[i], self.e[i], self.d[i + 1]);
        (self.d[i], self.e[i], self.d[i + 1]) = (pair.larger, R::default(), pair.smaller);
        self.v.turn(i, pair.right.0, pair.right.1);
        self.u.turn(i, pair.left.0, pair.left.1);
    }
}

/// max(10, min(100, (ulp/2)^(-1/8))), of the units of rounding that there are.
fn tolerance_in_units(ulp: f64) -> f64 {
    if ulp == f64::from(f32::EPSILON) {
        10.0
    } else if ulp == f64::EPSILON {
        // 2^(53/8).
        98.701_492_826_102_4
    } else {
        100.0
    }
}

/// The first element of the vector that starts a chase.
fn bulge<R: Real>(d: R, shift: R) -> R {
    (abs(d) - shift) * (R::one().with_sign_of(d) + shift / d)
}

/// The smaller singular value of (f g; 0 h): `las2`.
fn smaller_singular_value<R: Real>(f: R, g: R, h: R) -> R {
    let (f, g, h) = (abs(f), abs(g), abs(h));
    let (least, most) = if f < h { (f, h) } else { (h, f) };
    if least.is_zero() {
        return R::default();
    }
    let one = R::one();
    let (sum, difference) = (one + least / most, (most - least) / most);
    if g < most {
        let ratio = g / most;
        let c = R::from_f64(2.0) / (hypotenuse(sum, ratio) + hypotenuse(difference, ratio));
        return least * c;
    }
    let ratio = most / g;
    if ratio.is_zero() {
        return (least * most) / g;
    }
    let c = one / (hypotenuse(one, sum * ratio) + hypotenuse(one, difference * ratio));
    let half = (least * c) * ratio;
    half + half
}

/// Singular values, with signs, and vectors of (f g; 0 h), as (cosine, sine): `lasv2`.
struct Pair<R> {
    larger: R,
    smaller: R,
    left: (R, R),
    right: (R, R),
}

fn pair<R: Real>(f: R, g: R, h: R) -> Pair<R> {
    let (zero, one, two) = (R::default(), R::one(), R::from_f64(2.0));
    let swap = abs(h) > abs(f);
    let (big, small) = if swap { (h, f) } else { (f, h) };
    let (a, b, c) = (abs(big), abs(small), abs(g));
    let mut dominant = if swap { 3 } else { 1 };
    // Cosines and sines on the left and on the right.
    let (smaller, larger, cl, sl, cr, sr);
    if c.is_zero() {
        (smaller, larger) = (b, a);
        (cl, sl, cr, sr) = (one, zero, one, zero);
    } else {
        if c > a {
            dominant = 2;
        }
        if c > a && (a / c).to_f64() < R::ULP / 2.0 {
            larger = c;
            smaller = if b > one { a / (c / b) } else { (a / c) * b };
            (cl, sl, cr, sr) = (one, small / g, big / g, one);
        } else {
            let difference = a - b;
            let l = if difference == a { one } else { difference / a };
            let m = g / big;
            let t = two - l;
            let s = hypotenuse(t, m);
            let r = if l.is_zero() { abs(m) } else { hypotenuse(l, m) };
            let mean = (s + r) * R::from_f64(0.5);
            (smaller, larger) = (b / mean, a * mean);
            let t = if (m * m).is_zero() {
                if l.is_zero() {
                    two.with_sign_of(big) * one.with_sign_of(g)
                } else {
                    g / difference.with_sign_of(big) + m / t
                }
            } else {
                (m / (s + t) + m / (r + l)) * (one + mean)
            };
            let length = hypotenuse(t, two);
            (cr, sr) = (two / length, t / length);
            (cl, sl) = ((cr + sr * m) / mean, (small / big) * sr / mean);
        }
    }
    let (left, right) = if swap { ((sr, cr), (sl, cl)) } else { ((cl, sl), (cr, sr)) };
    let sign = |x: R| one.with_sign_of(x);
    let total = match dominant {
        1 => sign(right.0) * sign(left.0) * sign(f),
        2 => sign(right.1) * sign(left.0) * sign(g),
        _ => sign(right.1) * sign(left.1) * sign(h),
    };
    Pair {
        larger: larger.with_sign_of(total),
        smaller: smaller.with_sign_of(total * sign(f) * sign(h)),
        left,
        right,
    }
}
