//! Quick sums with proven error bounds, and the test whether a bound decides the rounding.
//!
//! Notation: `u` = 2^-53, the unit roundoff of `f64`; `eta` = 2^-1074, its least subnormal.
//!
//! Facts used below. Additions of `f64` never underflow inexactly: a sum below 2^-1021 is exact.
//! * TwoSum (Knuth): `s = fl(a + b)`, and `a + b = s + e` exactly unless an intermediate overflows, in which case `s` or
//!   `e` is not finite.
//! * TwoProduct (Dekker, Veltkamp): `p = fl(a b)`, `|a b - (p + e)| <= 5 eta`, and exactly zero unless something
//!   underflows; unless an intermediate overflows, in which case `p` or `e` is not finite (Ogita, Rump, Oishi,
//!   "Accurate sum and dot product", 2005, section 2). With a fused multiply-add: the same, with `eta / 2`.
//! * Summing `n` numbers in `f64` in *any* order is off by at most `(n - 1) u sum|x|`, without higher-order terms
//!   (Jeannerod and Rump, "Improved error bounds for inner products in floating-point arithmetic", 2013), and along a
//!   tree of height `h` by at most `h u / (1 - h u) sum|x|`.
//!
//! Once a value that is not finite has entered `s` or `c` of the algorithms here it stays: finite results have seen only
//! finite intermediates. So every caller has one rule: what is not finite is not decided, and the long accumulator (which
//! knows the rules for infinities and NaN) answers.

use super::{Long, Rounded};

/// Unit roundoff of `f64`.
pub const U: f64 = f64::EPSILON / 2.0;

/// Numbers summed as one block before their sum joins a [`Partial`].
pub(crate) const BLOCK: usize = 1024;

/// Independent accumulators within a block of a contiguous sum.
const LANES: usize = 8;

/// `a + b` as a rounded sum and its error.
#[inline(always)]
pub fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let s = a + b;
    let bb = s - a;
    (s, (a - (s - bb)) + (b - bb))
}

/// `a` as two halves of at most 26 bits each (Veltkamp).
#[inline(always)]
pub(crate) fn halves(a: f64) -> (f64, f64) {
    let t = 134_217_729.0 * a;
    let high = t - (t - a);
    (high, a - high)
}

/// `a * b` as a rounded product and its error, given the halves of both.
#[inline(always)]
pub(crate) fn two_product(a: f64, (ah, al): (f64, f64), b: f64, (bh, bl): (f64, f64)) -> (f64, f64) {
    let p = a * b;
    (p, ((ah * bh - p) + ah * bl + al * bh) + al * bl)
}

/// The rounding of every real number within `e` of `s`, if it is the same for all.
#[inline]
pub fn settle<O: Rounded>(s: f64, e: f64) -> Option<O> {
    if e == 0.0 {
        return s.is_finite().then(|| O::from_f64(s));
    }
    // `s ± e` are rounded sums, off by at most u (|s| + e), which the slack outweighs.
    let radius = e * (1.0 + 8.0 * U) + s.abs() * (4.0 * U);
    if !(radius.is_finite() && s.is_finite()) {
        return None;
    }
    let value = O::from_f64(s - radius);
    value.same(O::from_f64(s + radius)).then_some(value)
}

/// A sum that lies within `err` of `s + c`; nothing is known of it if one of the three is not finite.
#[derive(Clone, Copy, Debug)]
pub struct Partial {
    /// The leading part.
    pub s: f64,
    /// The correction, unevaluated.
    pub c: f64,
    /// Bound of what both miss.
    pub err: f64,
}

impl Partial {
    /// The empty sum. -0 is the identity of addition: a sum of nothing but -0 stays -0.
    pub const EMPTY: Partial = Partial { s: -0.0, c: 0.0, err: 0.0 };

    /// Exactly `x`.
    pub fn exactly(x: f64) -> Self {
        Partial { s: x, c: 0.0, err: 0.0 }
    }

    /// The sum of both.
    #[inline]
    #[must_use]
    pub fn plus(self, other: Partial) -> Partial {
        let (s, sigma) = two_sum(self.s, other.s);
        let t = self.c + other.c;
        let c = t + sigma;
        let mut err = self.err + other.err;
        if t != 0.0 || c != 0.0 {
            // Two roundings, each off by at most u times its result; the factor pays for the roundings of `err` itself,
            // the subnormal for underflow in it.
            err = (err + (t.abs() + c.abs()) * U) * (1.0 + 8.0 * U) + f64::from_bits(1);
        }
        Partial { s, c, err }
    }

    /// The rounding of the sum, if the bound decides it.
    #[inline]
    pub fn settle<O: Rounded>(self) -> Option<O> {
        let (h, l) = two_sum(self.s, self.c);
        if !(h.is_finite() && l.is_finite() && self.err.is_finite()) {
            return None;
        }
        if self.err == 0.0 {
            // Adding a zero correction would turn -0 into +0.
            return match (self.c == 0.0, l == 0.0) {
                (true, _) => Some(O::from_f64(self.s)),
                (false, true) => Some(O::from_f64(h)),
                (false, false) => O::enclosed(h, l, l),
            };
        }
        // `l ± err` round by at most u (|l| + err), or not at all below 2^-1021.
        let radius = self.err * (1.0 + 8.0 * U) + l.abs() * (4.0 * U) + f64::from_bits(1 << 14);
        O::enclosed(h, l - radius, l + radius)
    }
}

/// A real type that sums are made of: `f32` (also for every narrower float, decoded) or `f64`.
pub trait Term: Copy + Default + Send + Sync + 'static {
    /// The value, exactly.
    fn widen(self) -> f64;

    /// The sum of at most [`BLOCK`] numbers, without infinities: an infinite or NaN addend makes `s` so.
    fn block(x: &[Self]) -> Partial;

    /// Adds the rows of `x`, at most [`BLOCK`] of them and each of `sums.len()` numbers at a distance of `stride`, to
    /// `sums`, one sum for each column.
    fn columns(x: &[Self], stride: usize, sums: &mut [Partial]);
}

/// Columns that [`Term::columns`] handles at a time: their accumulators stay in the first-level cache.
const STRIP: usize = 128;

impl Term for f32 {
    #[inline(always)]
    fn widen(self) -> f64 {
        f64::from(self)
    }

    /// Plain `f64` accumulation in lanes. The tree has a height of at most `n / LANES + 3` (one more for what the lanes
    /// leave over, folded into lane 0), and `sum|x|`, computed alike, is low by that relative error at most.
    fn block(x: &[f32]) -> Partial {
        let (chunks, rest) = x.as_chunks::<LANES>();
        let mut s = [-0.0f64; LANES];
        let mut a = [0.0f64; LANES];
        for chunk in chunks {
            for lane in 0..LANES {
                let x = f64::from(chunk[lane]);
                s[lane] += x;
                a[lane] += x.abs();
            }
        }
        for (lane, &x) in rest.iter().enumerate() {
            s[lane] += f64::from(x);
            a[lane] += f64::from(x).abs();
        }
        let total = ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
        let abs = ((a[0] + a[1]) + (a[2] + a[3])) + ((a[4] + a[5]) + (a[6] + a[7]));
        let height = (x.len() / LANES + 4) as f64;
        Partial { s: total, c: 0.0, err: if x.len() <= 1 { 0.0 } else { height * U * abs * 1.001 } }
    }

    fn columns(x: &[f32], stride: usize, sums: &mut [Partial]) {
        for (strip, sums) in sums.chunks_mut(STRIP).enumerate() {
            let mut s = [-0.0f64; STRIP];
            let mut a = [0.0f64; STRIP];
            let width = sums.len();
            let mut height = 0;
            for row in x[strip * STRIP..].chunks(stride) {
                let row = &row[..width];
                for ((s, a), &x) in s[..width].iter_mut().zip(&mut a[..width]).zip(row) {
                    *s += f64::from(x);
                    *a += f64::from(x).abs();
                }
                height += 1;
            }
            for ((sum, s), a) in sums.iter_mut().zip(s).zip(a) {
                let err = if height <= 1 { 0.0 } else { f64::from(height) * U * a * 1.001 };
                *sum = sum.plus(Partial { s, c: 0.0, err });
            }
        }
    }
}

/// Bound of a compensated sum of `n` numbers of absolute sum `abs`.
///
/// `s` is exact but for the errors `sigma` of its additions, which TwoSum yields exactly; their sum `c` is what rounds.
/// `|sigma_i| <= u |s_i| <= 1.001 u abs`, so `sum|sigma| <= 1.001 n u abs`, and summing them in `f64` is off by at most
/// `n u` times that. For `n <= BLOCK` the product below underflows only where the `sigma` are below 2^-1021 and their
/// sum exact.
fn compensated_bound(n: usize, abs: f64) -> f64 {
    let n = n as f64 + 1.0;
    if n <= 2.0 { 0.0 } else { n * n * (U * U) * abs * 1.01 }
}

impl Term for f64 {
    #[inline(always)]
    fn widen(self) -> f64 {
        self
    }

    fn block(x: &[f64]) -> Partial {
        const LANES: usize = 4;
        let (chunks, rest) = x.as_chunks::<LANES>();
        let mut s = [-0.0f64; LANES];
        let mut c = [0.0f64; LANES];
        let mut a = [0.0f64; LANES];
        for chunk in chunks {
            for lane in 0..LANES {
                let (sum, sigma) = two_sum(s[lane], chunk[lane]);
                s[lane] = sum;
                c[lane] += sigma;
                a[lane] += chunk[lane].abs();
            }
        }
        for (lane, &x) in rest.iter().enumerate() {
            let (sum, sigma) = two_sum(s[lane], x);
            s[lane] = sum;
            c[lane] += sigma;
            a[lane] += x.abs();
        }
        let terms = chunks.len() + 1;
        let lane = |lane: usize| Partial { s: s[lane], c: c[lane], err: compensated_bound(terms, a[lane]) };
        lane(0).plus(lane(1)).plus(lane(2).plus(lane(3)))
    }

    fn columns(x: &[f64], stride: usize, sums: &mut [Partial]) {
        for (strip, sums) in sums.chunks_mut(STRIP).enumerate() {
            let mut s = [-0.0f64; STRIP];
            let mut c = [0.0f64; STRIP];
            let mut a = [0.0f64; STRIP];
            let width = sums.len();
            let mut rows = 0;
            for row in x[strip * STRIP..].chunks(stride) {
                let row = &row[..width];
                for (((s, c), a), &x) in
                    s[..width].iter_mut().zip(&mut c[..width]).zip(&mut a[..width]).zip(row)
                {
                    let (sum, sigma) = two_sum(*s, x);
                    *s = sum;
                    *c += sigma;
                    *a += x.abs();
                }
                rows += 1;
            }
            for (at, sum) in sums.iter_mut().enumerate() {
                *sum = sum.plus(Partial { s: s[at], c: c[at], err: compensated_bound(rows, a[at]) });
            }
        }
    }
}

/// A bound on a contiguous sum of any length.
pub fn partial<T: Term>(x: &[T]) -> Partial {
    x.chunks(BLOCK).map(T::block).fold(Partial::EMPTY, Partial::plus)
}

/// The exact sum of `init` and of `x`, rounded once.
pub fn sum<T: Term, O: Rounded>(init: f64, x: &[T]) -> O {
    partial(x).plus(Partial::exactly(init)).settle().unwrap_or_else(|| {
        let mut long = Long::new();
        long.add(init);
        x.iter().for_each(|&x| long.add(x.widen()));
        O::from_long(&long)
    })
}
