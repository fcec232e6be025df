//! Double-double arithmetic: a number as the unevaluated sum of two `f64`s, about 106 bits of precision.
//!
//! Invariant: a [`Dd`] is normalized, `hi` being the nearest `f64` to `hi + lo`. Operations have a relative
//! error below 2^-102 as long as no part of them leaves the normal range of `f64` (bounds of Joldes, Muller
//! and Popescu, "Tight and rigorous error bounds for basic building blocks of double-word arithmetic").
//! [`Wide`] adds an exponent for results that do leave it, and does the one rounding into an element type.

use std::ops::{Add, Div, Mul, Neg, Sub};

use super::{Float, Scalar};

/// `hi + lo`, about 106 significant bits.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Dd {
    /// The leading part.
    pub hi: f64,
    /// What it misses: at most half a unit in its last place.
    pub lo: f64,
}

/// The sum and its rounding error, exactly.
#[inline]
pub fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let part = sum - a;
    (sum, (a - (sum - part)) + (b - part))
}

/// [`two_sum`] for `|a| >= |b|` or `a == 0`.
#[inline]
fn quick_two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    (sum, b - (sum - a))
}

/// The product and its rounding error, exactly unless that underflows.
#[inline]
pub fn two_product(a: f64, b: f64) -> (f64, f64) {
    let product = a * b;
    (product, a.mul_add(b, -product))
}

impl Dd {
    /// 0.
    pub const ZERO: Self = Self { hi: 0.0, lo: 0.0 };
    /// 1.
    pub const ONE: Self = Self { hi: 1.0, lo: 0.0 };

    /// From parts that are already normalized.
    #[inline]
    pub const fn new(hi: f64, lo: f64) -> Self {
        Self { hi, lo }
    }

    /// The exact product, unless its low part underflows.
    #[inline]
    pub fn product(a: f64, b: f64) -> Self {
        let (hi, lo) = two_product(a, b);
        Self { hi, lo }
    }

    /// The sum of the terms with one error: `hi` is the exact sum correctly rounded, `lo` the rest with a
    /// relative error of 2^-52 and never 0 unless it is.
    pub fn sum(terms: &[f64]) -> Self {
        const MOST: usize = 8;
        assert!(terms.len() <= MOST, "no formula has more terms");
        // A nonoverlapping expansion of the exact sum, its parts of increasing magnitude (Shewchuk).
        let mut parts = [0.0; MOST];
        for (count, &term) in terms.iter().enumerate() {
            let mut carry = term;
            for part in &mut parts[..count] {
                (carry, *part) = two_sum(carry, *part);
            }
            parts[count] = carry;
        }
        let mut rest = parts[..terms.len()].iter().rev().copied();
        let mut hi = rest.next().unwrap_or(0.0);
        let mut lo = 0.0;
        for part in rest.by_ref() {
            (hi, lo) = quick_two_sum(hi, part);
            if lo != 0.0 {
                break;
            }
        }
        // What is left is below the last bit of `lo` or nearly: add it, and if it vanishes, leave its sign
        // behind.
        let rest = rest.fold(0.0, |sum, part| sum + part);
        let with_rest = lo + rest;
        let lo = if rest != 0.0 && with_rest == lo {
            if rest > 0.0 { lo.next_up() } else { lo.next_down() }
        } else {
            with_rest
        };
        let (hi, lo) = quick_two_sum(hi, lo);
        Self { hi, lo }
    }

    /// Multiplied by a power of two; exact unless it leaves the normal range.
    #[inline]
    pub fn scale(self, factor: f64) -> Self {
        Self { hi: self.hi * factor, lo: self.lo * factor }
    }

    /// The magnitude.
    #[inline]
    pub fn abs(self) -> Self {
        if self.hi.is_sign_negative() { -self } else { self }
    }

    /// The square root; of a negative number NaN.
    #[inline]
    pub fn sqrt(self) -> Self {
        if self.hi == 0.0 {
            return self;
        }
        let root = self.hi.sqrt();
        let rest = self - Self::product(root, root);
        let (hi, lo) = quick_two_sum(root, rest.hi / (2.0 * root));
        Self { hi, lo }
    }
}

impl From<f64> for Dd {
    #[inline]
    fn from(x: f64) -> Self {
        Self { hi: x, lo: 0.0 }
    }
}

impl Neg for Dd {
    type Output = Self;

    #[inline]
    fn neg(self) -> Self {
        Self { hi: -self.hi, lo: -self.lo }
    }
}

impl Add for Dd {
    type Output = Self;

    #[inline]
    fn add(self, rhs: Self) -> Self {
        let (sum, error) = two_sum(self.hi, rhs.hi);
        let (low_sum, low_error) = two_sum(self.lo, rhs.lo);
        let (hi, lo) = quick_two_sum(sum, error + low_sum);
        let (hi, lo) = quick_two_sum(hi, low_error + lo);
        Self { hi, lo }
    }
}

impl Sub for Dd {
    type Output = Self;

    #[inline]
    fn sub(self, rhs: Self) -> Self {
        self + -rhs
    }
}

impl Mul for Dd {
    type Output = Self;

    #[inline]
    fn mul(self, rhs: Self) -> Self {
        let (product, error) = two_product(self.hi, rhs.hi);
        let cross = self.lo * rhs.hi + self.hi * rhs.lo;
        let (hi, lo) = quick_two_sum(product, error + cross);
        Self { hi, lo }
    }
}

impl PartialOrd for Dd {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        match self.hi.partial_cmp(&other.hi)? {
            std::cmp::Ordering::Equal => self.lo.partial_cmp(&other.lo),
            order @ (std::cmp::Ordering::Less | std::cmp::Ordering::Greater) => Some(order),
        }
    }
}

impl Div for Dd {
    type Output = Self;

    #[inline]
    fn div(self, rhs: Self) -> Self {
        let first = self.hi / rhs.hi;
        let rest = self - rhs * Self::from(first);
        let second = rest.hi / rhs.hi;
        let rest = rest - rhs * Self::from(second);
        let third = rest.hi / rhs.hi;
        let (hi, lo) = quick_two_sum(first, second);
        Self { hi, lo } + Self::from(third)
    }
}

/// `value * 2^exponent`.
#[derive(Clone, Copy, Debug)]
pub struct Wide {
    pub(super) value: Dd,
    pub(super) exponent: i32,
}

impl From<f64> for Wide {
    #[inline]
    fn from(x: f64) -> Self {
        Self { value: Dd::from(x), exponent: 0 }
    }
}

impl From<Dd> for Wide {
    #[inline]
    fn from(value: Dd) -> Self {
        Self { value, exponent: 0 }
    }
}

impl Neg for Wide {
    type Output = Self;

    #[inline]
    fn neg(self) -> Self {
        Self { value: -self.value, exponent: self.exponent }
    }
}

impl Mul for Wide {
    type Output = Self;

    #[inline]
    fn mul(self, rhs: Self) -> Self {
        if self.is_special() || rhs.is_special() {
            return Self::from(self.value.hi * rhs.value.hi);
        }
        let (a, b) = (self.normalize(), rhs.normalize());
        Self { value: a.value * b.value, exponent: a.exponent.saturating_add(b.exponent) }
    }
}

impl Div for Wide {
    type Output = Self;

    #[inline]
    fn div(self, rhs: Self) -> Self {
        if self.is_special() || rhs.is_special() {
            return Self::from(self.value.hi / rhs.value.hi);
        }
        let (a, b) = (self.normalize(), rhs.normalize());
        Self { value: a.value / b.value, exponent: a.exponent.saturating_sub(b.exponent) }
    }
}

/// `e` such that `2^e <= |x| < 2^(e+1)`, for a finite `x` other than 0.
#[inline]
pub fn exponent_of(x: f64) -> i32 {
    let field = (x.to_bits() >> 52 & 0x7ff) as i32;
    if field == 0 { -1011 - x.abs().to_bits().leading_zeros() as i32 } else { field - 1023 }
}

/// `x * 2^e`, rounding at most in its last step.
#[inline]
pub fn scale(mut x: f64, mut e: i32) -> f64 {
    const STEP: i32 = 1000;
    e = e.clamp(-3 * STEP, 3 * STEP);
    while e > STEP {
        x *= power_of_two(STEP);
        e -= STEP;
    }
    while e < -STEP {
        x *= power_of_two(-STEP);
        e += STEP;
    }
    x * power_of_two(e)
}

/// 2^e for a normal result.
#[inline]
pub(super) fn power_of_two(e: i32) -> f64 {
    f64::from_bits(((e + 1023) as u64) << 52)
}

impl Wide {
    /// Zero, infinite or NaN: then `value.hi` says all.
    #[inline]
    fn is_special(self) -> bool {
        self.value.hi == 0.0 || !self.value.hi.is_finite()
    }

    /// The magnitude with the sign of `sign`.
    #[inline]
    pub fn copy_sign(self, sign: f64) -> Self {
        if self.value.hi.is_sign_negative() == sign.is_sign_negative() { self } else { -self }
    }

    /// The same number with `1 <= |hi| < 2`, so that products and quotients stay in range. Zeros, infinities
    /// and NaNs stay.
    #[inline]
    pub fn normalize(self) -> Self {
        if self.is_special() {
            return self;
        }
        let e = exponent_of(self.value.hi);
        Self {
            value: Dd::new(scale(self.value.hi, -e), scale(self.value.lo, -e)),
            exponent: self.exponent.saturating_add(e),
        }
    }

    /// Multiplied by 2^e.
    #[inline]
    pub fn shift(self, e: i32) -> Self {
        Self { value: self.value, exponent: self.exponent.saturating_add(e) }
    }

    /// The number as a [`Dd`]; only for one in range.
    #[inline]
    pub fn to_dd(self) -> Dd {
        Dd::new(scale(self.value.hi, self.exponent), scale(self.value.lo, self.exponent))
    }

    /// Rounded once to nearest even; NaN becomes canonical.
    #[inline]
    pub fn to_f64(self) -> f64 {
        let Dd { hi, lo } = self.value;
        if self.is_special() {
            return <f64 as Scalar>::from_f64(hi);
        }
        let missing = -1022i64 - (i64::from(exponent_of(hi)) + i64::from(self.exponent));
        if missing <= 0 {
            return scale(hi, self.exponent);
        }
        // Subnormal: round the 53 bits and the sign of what follows them at the last bit that there is.
        let sign = hi.to_bits() & <f64 as Float>::SIGN;
        if missing > 54 {
            return f64::from_bits(sign);
        }
        let significand = (scale(hi.abs(), -exponent_of(hi)).to_bits() & ((1 << 52) - 1)) | 1 << 52;
        let sticky = if lo == 0.0 {
            0
        } else if lo.is_sign_negative() == hi.is_sign_negative() {
            1
        } else {
            -1
        };
        let exact = (u128::from(significand) << 2).wrapping_add_signed(sticky);
        let shift = missing as u32 + 2;
        let kept = exact >> shift;
        let rounded = (exact + (1 << (shift - 1)) - 1 + (kept & 1)) >> shift;
        f64::from_bits(sign | rounded as u64)
    }

    /// Rounded once to nearest even; NaN becomes canonical.
    #[inline]
    pub fn to_f32(self) -> f32 {
        <f32 as Scalar>::from_f64(self.to_odd_f64())
    }

    /// Rounded to odd: truncated, with the last bit set if anything is lost. A second rounding, to at most 51
    /// bits, then sees what this one dropped. (A result below the normal range of `f64`, where nothing
    /// narrower has numbers, is merely near.)
    #[inline]
    pub fn to_odd_f64(self) -> f64 {
        let Dd { hi, lo } = self.value;
        if self.is_special() {
            return hi;
        }
        let bits = hi.to_bits();
        let odd = if lo == 0.0 || bits & 1 != 0 {
            bits
        } else if lo.is_sign_negative() == hi.is_sign_negative() {
            bits + 1
        } else {
            bits - 1
        };
        scale(f64::from_bits(odd), self.exponent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_round_once() {
        let tiny = f64::powi(2.0, -200);
        let half_ulp = f64::powi(2.0, -53);
        assert_eq!(Dd::sum(&[1.0, half_ulp]).hi, 1.0, "tie to even");
        assert_eq!(Dd::sum(&[1.0, half_ulp, tiny]).hi, 1.0f64.next_up(), "just above the tie");
        assert_eq!(Dd::sum(&[half_ulp, -tiny, 1.0]).hi, 1.0, "just below the tie");
        assert_eq!(Dd::sum(&[1e300, 1.0, -1e300, tiny]), Dd::new(1.0, tiny));
        assert_eq!(Dd::sum(&[1e300, 3.0, -1e300, -3.0]), Dd::ZERO);
        assert_eq!(Dd::sum(&[]), Dd::ZERO);
    }

    #[test]
    fn rounding_into_subnormals() {
        let wide = |hi, lo, exponent| Wide { value: Dd::new(hi, lo), exponent }.to_f64();
        let min = f64::from_bits(1);
        assert_eq!(wide(1.0, 0.0, -1074), min);
        assert_eq!(wide(1.5, 0.0, -1074), 2.0 * min, "tie to even");
        assert_eq!(wide(2.5, 0.0, -1074), 2.0 * min, "tie to even");
        assert_eq!(wide(2.5, 1e-20, -1074), 3.0 * min);
        assert_eq!(wide(2.5, -1e-20, -1074), 2.0 * min);
        assert_eq!(wide(-1.5, 1e-20, -1074), -min);
        assert_eq!(wide(1.0, 0.0, -1075), 0.0, "tie to even");
        assert_eq!(wide(1.0, 1e-20, -1075), min);
        assert_eq!(wide(1.0, 0.0, -5000), 0.0);
        assert!(wide(-1.0, 0.0, -5000).is_sign_negative());
        assert_eq!(wide(1.0, 0.0, 5000), f64::INFINITY);
        assert_eq!(wide(f64::from_bits(12345), 0.0, 0), f64::from_bits(12345));
        assert_eq!(wide(1.0f64.next_up(), 0.0, -1022), f64::MIN_POSITIVE.next_up());
    }

    #[test]
    fn rounding_to_f32() {
        let wide = |hi, lo, exponent| Wide { value: Dd::new(hi, lo), exponent }.to_f32();
        let middle = 1.0 + f64::powi(2.0, -24);
        assert_eq!(wide(middle, 0.0, 0), 1.0, "tie to even");
        assert_eq!(wide(middle, 1e-20, 0), 1.0f32.next_up());
        assert_eq!(wide(middle, -1e-20, 0), 1.0);
        assert_eq!(wide(1.5, 0.0, -149), 2.0 * f32::from_bits(1));
        assert_eq!(wide(1.5, -1e-20, -149), f32::from_bits(1));
        assert_eq!(wide(1.0, 0.0, 128), f32::INFINITY);
        assert!(wide(f64::NAN, 0.0, 0).is_nan());
    }

    #[test]
    fn exponents() {
        for (x, e) in
            [(1.0, 0), (1.99, 0), (-2.0, 1), (0.75, -1), (f64::MIN_POSITIVE, -1022), (f64::MAX, 1023)]
        {
            assert_eq!(exponent_of(x), e);
        }
        assert_eq!(exponent_of(f64::from_bits(1)), -1074);
        assert_eq!(exponent_of(f64::from_bits(3)), -1073);
    }
}
