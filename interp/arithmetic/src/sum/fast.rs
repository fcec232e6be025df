//! Quick sums with proven error bounds, and the test whether a bound decides the rounding.
//!
//! Notation: `u` = 2^-53, the unit roundoff of `f64`; `eta` = 2^-1074, its smallest subnormal.
//!
//! Facts used below. Additions of `f64` never underflow inexactly: a sum below 2^-1021 is exact.
//! * TwoSum (Knuth): `s = fl(a + b)`, and `a + b = s + e` exactly unless an intermediate overflows, in which
//!   case `s` or `e` is not finite.
//! * TwoProduct (Dekker, Veltkamp): `p = fl(a b)`, `|a b - (p + e)| <= 5 eta`, and exactly zero unless
//!   something underflows; unless an intermediate overflows, in which case `p` or `e` is not finite (Ogita,
//!   Rump, Oishi, "Accurate sum and dot product", 2005, section 2). With a fused multiply-add: the same, with
//!   `eta / 2`.
//! * Summing `n` numbers in `f64` in *any* order is off by at most `(n - 1) u sum|x|`, without higher-order
//!   terms (Jeannerod and Rump, "Improved error bounds for inner products in floating-point arithmetic",
//!   2013), and along a tree of height `h` by at most `h u / (1 - h u) sum|x|`.
//!
//! Once a value that is not finite has entered `s` or `c` of the algorithms here it stays: finite results
//! have seen only finite intermediates. So every caller has one rule: what is not finite is not decided, and
//! the long accumulator (which knows the rules for infinities and NaN) answers.

use super::rounded::agreed;
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
    // Where the machine has no fused multiply-add, one in software would take far longer than this.
    let e = if cfg!(target_feature = "fma") {
        a.mul_add(b, -p)
    } else {
        ((ah * bh - p) + ah * bl + al * bh) + al * bl
    };
    (p, e)
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
    agreed(s - radius, s + radius)
}

/// A sum that is within `err` of `s + c`. It is `s` if the others are zero, whatever `s` is; nothing is known
/// of it if otherwise one of the three is not finite.
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
    #[inline]
    pub fn exactly(x: f64) -> Self {
        Partial { s: x, c: 0.0, err: 0.0 }
    }

    /// The sum of both.
    #[inline]
    #[must_use]
    pub fn plus(self, other: Partial) -> Partial {
        let (s, sigma) = two_sum(self.s, other.s);
        // What the two additions lose is known exactly, so a sum that loses nothing stays certain.
        let (t, lost) = two_sum(self.c, other.c);
        let (c, lost_too) = two_sum(t, sigma);
        let mut err = self.err + other.err;
        if lost != 0.0 || lost_too != 0.0 {
            err += lost.abs() + lost_too.abs();
        }
        // Pays for the rounding of at most three additions of `err` itself, which underflow only to what is
        // exact.
        err *= 1.0 + 8.0 * U;
        Partial { s, c, err }
    }

    /// The rounding of the sum, if the bound decides it.
    #[inline]
    pub fn settle<O: Rounded>(self) -> Option<O> {
        if self.c == 0.0 && self.err == 0.0 {
            return Some(O::from_f64(self.s));
        }
        if !O::WIDE {
            // For a narrow type the correction hardly ever matters.
            let value = settle(self.s, (self.c.abs() + self.err) * (1.0 + 4.0 * U));
            if value.is_some() {
                return value;
            }
        }
        let (h, l) = two_sum(self.s, self.c);
        if !(h.is_finite() && l.is_finite() && self.err.is_finite()) {
            return None;
        }
        if self.err == 0.0 {
            return if l == 0.0 { Some(O::from_f64(h)) } else { O::enclosed(h, l, l) };
        }
        // `l ± err` round by at most u (|l| + err), or not at all below 2^-1021.
        let radius = self.err * (1.0 + 8.0 * U) + l.abs() * (4.0 * U) + f64::from_bits(1 << 14);
        O::enclosed(h, l - radius, l + radius)
    }
}

/// A sum before it is rounded into a result type. Computing sums up to here keeps the heavy loops independent
/// of the many result types.
#[derive(Debug)]
pub enum Total {
    /// Within a bound.
    Near(Partial),
    /// Known.
    Exactly(Box<Long>),
}

impl Total {
    /// A sum that is known to be `x`, perhaps NaN or infinite.
    #[inline]
    pub fn of(x: f64) -> Self {
        Total::Near(Partial::exactly(x))
    }

    /// The rounding of the sum, if it is decided.
    #[inline]
    pub fn settle<O: Rounded>(&self) -> Option<O> {
        match self {
            Total::Near(partial) => partial.settle(),
            Total::Exactly(long) => Some(O::from_long(long)),
        }
    }
}

/// Sums of columns: each is a running sum, its correction, and the sum of absolute values.
#[derive(Default)]
pub(crate) struct Columns {
    s: Vec<f64>,
    c: Vec<f64>,
    a: Vec<f64>,
    terms: usize,
}

impl Columns {
    /// Empties `width` sums.
    pub(crate) fn reset(&mut self, width: usize) {
        self.terms = 0;
        self.s.clear();
        self.s.resize(width, -0.0);
        self.c.clear();
        self.c.resize(width, 0.0);
        self.a.clear();
        self.a.resize(width, 0.0);
    }

    /// Adds a term to each column from `first` on; at most [`BLOCK`] times.
    #[inline]
    pub(crate) fn add<T: Term>(&mut self, first: usize, x: &[T]) {
        self.terms += 1;
        let range = first..first + x.len();
        T::accumulate(x, &mut self.s[range.clone()], &mut self.c[range.clone()], &mut self.a[range]);
    }

    /// Whether it is time for [`Columns::flush`].
    #[inline]
    pub(crate) fn full(&self) -> bool {
        self.terms >= BLOCK
    }

    /// Moves the sums to `sums`.
    pub(crate) fn flush<T: Term>(&mut self, sums: &mut [Partial]) {
        for (j, sum) in sums.iter_mut().enumerate() {
            *sum = sum.plus(Partial { s: self.s[j], c: self.c[j], err: T::bound(self.terms, self.a[j]) });
        }
        self.reset(sums.len());
    }
}

/// A real type that sums are made of: `f32` (also for every narrower float, decoded) or `f64`.
pub trait Term: Copy + Default + Send + Sync + 'static {
    /// The value, exactly.
    fn widen(self) -> f64;

    /// Adds `x` elementwise to running sums `s` with corrections `c`, and `|x|` to `a`.
    fn accumulate(x: &[Self], s: &mut [f64], c: &mut [f64], a: &mut [f64]);

    /// How far a sum `s + c` of at most [`BLOCK`] terms by [`Term::accumulate`] may be off, `abs` being the
    /// computed `a`.
    fn bound(terms: usize, abs: f64) -> f64;

    /// The sum of at most [`BLOCK`] numbers.
    fn block(x: &[Self]) -> Partial;
}

/// Numbers up to which a sum is not worth lanes.
const SHORT: usize = 2 * LANES;

impl Term for f32 {
    #[inline(always)]
    fn widen(self) -> f64 {
        f64::from(self)
    }

    #[inline]
    fn accumulate(x: &[f32], s: &mut [f64], _c: &mut [f64], a: &mut [f64]) {
        for ((s, a), &x) in s.iter_mut().zip(a).zip(x) {
            *s += f64::from(x);
            *a += f64::from(x).abs();
        }
    }

    /// Plain `f64` accumulation along a tree of that height; `sum|x|`, computed in the same way, is low by
    /// that much relatively.
    #[inline]
    fn bound(terms: usize, abs: f64) -> f64 {
        if terms <= 1 { 0.0 } else { terms as f64 * U * abs * 1.001 }
    }

    #[inline]
    fn block(x: &[f32]) -> Partial {
        if x.len() <= SHORT {
            let (mut s, mut a) = (-0.0, 0.0);
            for &x in x {
                s += f64::from(x);
                a += f64::from(x).abs();
            }
            return Partial { s, c: 0.0, err: Self::bound(x.len(), a) };
        }
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
        // A lane has at most one more term than there are chunks, and three additions join the lanes.
        Partial { s: total, c: 0.0, err: Self::bound(chunks.len() + 4, abs) }
    }
}

impl Term for f64 {
    #[inline(always)]
    fn widen(self) -> f64 {
        self
    }

    #[inline]
    fn accumulate(x: &[f64], s: &mut [f64], c: &mut [f64], a: &mut [f64]) {
        for (((s, c), a), &x) in s.iter_mut().zip(c).zip(a).zip(x) {
            let (sum, sigma) = two_sum(*s, x);
            *s = sum;
            *c += sigma;
            *a += x.abs();
        }
    }

    /// Compensated accumulation: `s` is exact but for the errors `sigma` of its additions, which TwoSum
    /// yields exactly; their sum `c` is what rounds. `|sigma_i| <= u |s_i| <= 1.001 u abs`, so `sum|sigma| <=
    /// 1.001 n u abs`, and summing them is off by at most `n u` times that. The bound underflows only where
    /// every `sigma` is below 2^-1021, and their sum exact.
    #[inline]
    fn bound(terms: usize, abs: f64) -> f64 {
        let n = terms as f64;
        if terms <= 1 { 0.0 } else { n * n * (U * U) * abs * 1.01 }
    }

    #[inline]
    fn block(x: &[f64]) -> Partial {
        const LANES: usize = 4;
        let (mut s, mut c, mut a) = ([-0.0f64; LANES], [0.0f64; LANES], [0.0f64; LANES]);
        if x.len() <= SHORT {
            for x in x {
                Self::accumulate(&[*x], &mut s[..1], &mut c[..1], &mut a[..1]);
            }
            return Partial { s: s[0], c: c[0], err: Self::bound(x.len(), a[0]) };
        }
        let (chunks, rest) = x.as_chunks::<LANES>();
        for chunk in chunks {
            for lane in 0..LANES {
                let (sum, sigma) = two_sum(s[lane], chunk[lane]);
                s[lane] = sum;
                c[lane] += sigma;
                a[lane] += chunk[lane].abs();
            }
        }
        Self::accumulate(rest, &mut s, &mut c, &mut a);
        let lane =
            |lane: usize| Partial { s: s[lane], c: c[lane], err: Self::bound(chunks.len() + 1, a[lane]) };
        lane(0).plus(lane(1)).plus(lane(2).plus(lane(3)))
    }
}

/// A bound on a contiguous sum of any length.
pub fn partial<T: Term>(x: &[T]) -> Partial {
    if x.len() <= BLOCK {
        return T::block(x);
    }
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
