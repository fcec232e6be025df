//! The implicit QR iteration on a bidiagonal matrix: `bdsqr`.

use hlo_threads::cancel;

use super::chase::Iteration;
use super::matrix::hypotenuse;
use super::rotation::rotation;
use super::rotations::Rotations;
use crate::wide::{Real, abs};

/// A bidiagonal matrix that is being diagonalized down to off-diagonal elements below `ulp`; the columns of
/// `u` and `v` are rotated with it.
pub(super) struct BidiagonalIteration<R> {
    pub(super) d: Vec<R>,
    e: Vec<R>,
    pub(super) u: Rotations<R>,
    pub(super) v: Rotations<R>,
    ulp: f64,
    tolerance: R,
    /// Off-diagonal elements up to this are negligible.
    threshold: R,
    /// Steps that are left.
    budget: usize,
    /// The block of the last round, and whether it was chased downwards.
    last: Option<(usize, usize)>,
    down: bool,
    /// The row where what is not done ends.
    end: usize,
}

impl<R: Real> BidiagonalIteration<R> {
    /// Of an upper bidiagonal matrix, or of a `lower` one.
    pub(super) fn new(
        (mut d, mut e): (Vec<R>, Vec<R>),
        lower: bool,
        (mut u, v): (Rotations<R>, Rotations<R>),
        ulp: f64,
    ) -> Self {
        if lower {
            other_side(&mut d, &mut e, |i, c, s| u.rotate(i, c, s));
        }
        let n = d.len();
        let tolerance = R::from_f64(tolerance_in_units(ulp) * ulp / 2.0);
        let threshold = threshold(&d, &e, tolerance);
        let budget = (6 * n).saturating_mul(n).saturating_add(n);
        let end = n.saturating_sub(1);
        Self { d, e, u, v, ulp, tolerance, threshold, budget, last: None, down: true, end }
    }

    /// Looks for an off-diagonal element that is negligible relative to its neighbours. If there is one, it
    /// becomes 0; otherwise gives a lower bound of the smallest singular value of the block.
    fn split(&mut self, start: usize, end: usize) -> Option<R> {
        let (down, tolerance) = (self.down, self.tolerance);
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

    /// The shift: the smaller singular value of the last two rows, or 0 if a shift would spoil the small
    /// singular values.
    fn shift(&self, start: usize, end: usize, ratio: R) -> R {
        let (down, tolerance) = (self.down, self.tolerance);
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

    /// Diagonalizes a block of order 2.
    fn pair(&mut self, i: usize) {
        let pair = pair(self.d[i], self.e[i], self.d[i + 1]);
        (self.d[i], self.e[i], self.d[i + 1]) = (pair.larger, R::default(), pair.smaller);
        self.v.rotate(i, pair.right.0, pair.right.1);
        self.u.rotate(i, pair.left.0, pair.left.1);
    }
}

/// A chase from one end of a block to the other.
pub(super) struct Chase<R> {
    start: usize,
    end: usize,
    /// The row where it is; where it goes to is one of the two above.
    at: usize,
    down: bool,
    state: State<R>,
}

/// What is carried from row to row.
enum State<R> {
    /// With a shift: the vector that is rotated.
    Shifted { f: R, g: R },
    /// Without one.
    Plain { c: R, old_c: R, old_s: R },
}

impl<R: Real> Iteration for BidiagonalIteration<R> {
    type Chase = Chase<R>;

    fn begin(&mut self) -> Result<Option<Chase<R>>, usize> {
        while self.end > 0 {
            cancel::poll();
            let end = self.end;
            // The block that ends there begins after an element that is negligible.
            let mut largest = abs(self.d[end]);
            let mut start = 0;
            for i in (0..end).rev() {
                let (on, off) = (abs(self.d[i]), abs(self.e[i]));
                if off <= self.threshold {
                    self.e[i] = R::default();
                    start = i + 1;
                    break;
                }
                for x in [on, off] {
                    largest = if x > largest { x } else { largest };
                }
            }
            if start == end {
                self.end -= 1;
                continue;
            }
            if start + 1 == end {
                self.pair(start);
                self.end = end.saturating_sub(2);
                continue;
            }
            if self.last.is_none_or(|(old_start, old_end)| start > old_end || end < old_start) {
                self.down = abs(self.d[start]) >= abs(self.d[end]);
            }
            let Some(least) = self.split(start, end) else { continue };
            self.last = Some((start, end));
            if self.budget <= end - start {
                return Err(self.e.iter().filter(|e| !e.is_zero()).count());
            }
            self.budget -= end - start;
            let shift = self.shift(start, end, least / largest);
            let down = self.down;
            let (at, off) = if down { (start, start) } else { (end, end - 1) };
            let state = if shift.is_zero() {
                State::Plain { c: R::one(), old_c: R::one(), old_s: R::default() }
            } else {
                State::Shifted { f: bulge(self.d[at], shift), g: self.e[off] }
            };
            return Ok(Some(Chase { start, end, at, down, state }));
        }
        Ok(None)
    }

    fn left(chase: &Chase<R>) -> usize {
        if chase.down { chase.end - chase.at } else { chase.at - chase.start }
    }

    #[inline(always)]
    fn step(&mut self, chase: &mut Chase<R>) {
        let BidiagonalIteration { d, e, u, v, .. } = self;
        let &mut Chase { start, end, at, down, ref mut state } = chase;
        // The next row, the off-diagonal element between both, and the one before.
        let (next, off, before) = if down { (at + 1, at, at.wrapping_sub(1)) } else { (at - 1, at - 1, at) };
        let begins = at == if down { start } else { end };
        let ends = next == if down { end } else { start };
        let (first, second);
        match state {
            State::Shifted { f, g } => {
                first = rotation(*f, *g);
                if !begins {
                    e[before] = first.r;
                }
                let (on, beside) = (d[at], e[off]);
                let rotated = first.c * on + first.s * beside;
                let beside = first.c * beside - first.s * on;
                let below = first.c * d[next];
                second = rotation(rotated, first.s * d[next]);
                d[at] = second.r;
                *f = second.c * beside + second.s * below;
                d[next] = second.c * below - second.s * beside;
                e[off] = beside;
                if !ends {
                    let beyond = if down { off + 1 } else { off - 1 };
                    *g = second.s * e[beyond];
                    e[beyond] = second.c * e[beyond];
                }
            }
            State::Plain { c, old_c, old_s } => {
                first = rotation(d[at] * *c, e[off]);
                if !begins {
                    e[before] = *old_s * first.r;
                }
                second = rotation(*old_c * first.r, d[next] * first.s);
                d[at] = second.r;
                (*c, *old_c, *old_s) = (first.c, second.c, second.s);
            }
        }
        if down {
            v.rotate(at, first.c, first.s);
            u.rotate(at, second.c, second.s);
        } else {
            u.rotate(next, first.c, -first.s);
            v.rotate(next, second.c, -second.s);
        }
        chase.at = next;
    }

    fn end(&mut self, Chase { start, end, down, state, .. }: Chase<R>) {
        let (on, off) = if down { (end, end - 1) } else { (start, start) };
        match state {
            State::Shifted { f, .. } => self.e[off] = f,
            State::Plain { c, old_c, old_s } => {
                let h = self.d[on] * c;
                self.d[on] = h * old_c;
                self.e[off] = h * old_s;
            }
        }
        if abs(self.e[off]) <= self.threshold {
            self.e[off] = R::default();
        }
    }

    /// Makes the diagonal positive, and descending.
    fn sort(&mut self) {
        let Self { d, u, v, .. } = self;
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
    }
}

/// What may be taken for 0, relatively to a bound of the smallest singular value or absolutely.
fn threshold<R: Real>(d: &[R], e: &[R], tolerance: R) -> R {
    let Some(&first) = d.first() else { return R::default() };
    let size = R::from_f64(d.len() as f64);
    let mut mu = abs(first);
    let mut least = mu;
    for (&on, &off) in d[1..].iter().zip(e) {
        if least.is_zero() {
            break;
        }
        mu = abs(on) * (mu / (mu + abs(off)));
        least = if mu < least { mu } else { least };
    }
    let relative = tolerance * least / size.root();
    let absolute = R::from_f64(6.0 * R::TINY) * size * size;
    if relative > absolute { relative } else { absolute }
}

/// Rotations the second diagonal of a bidiagonal matrix to the other side of the first, and says by which
/// rotation (c, s) of each element and the next. With as many elements as the first, its last one becomes 0.
pub(super) fn other_side<R: Real>(d: &mut [R], e: &mut [R], mut rotate: impl FnMut(usize, R, R)) {
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
        rotate(i, by.c, by.s);
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
