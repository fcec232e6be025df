//! A long accumulator: sums of `f64` values and of products of two `f64` values without any rounding.
//!
//! The sum is a fixed-point number whose lowest bit weighs 2^-2176 and whose highest weighs 2^2175, which
//! holds every product of two finite `f64` (multiples of 2^-2148, below 2^2048) with headroom for more than
//! 2^64 of them. It is kept in carry-save form: digit `i` is an `i64` that weighs 2^(32 i - 2176), an
//! addition touches at most three digits and propagates nothing; carries are resolved when a digit could
//! overflow and when the sum is read.
//!
//! What is not a number on that grid is a flag: NaN beats everything, +inf with -inf is NaN, an infinity
//! beats every finite sum. A sum that is exactly zero is -0 if there was an addend and every addend was -0,
//! else +0, which is what round-to-nearest addition gives in any order.

/// Bits per digit.
const DIGIT: u32 = 32;
/// Exponent of the lowest bit of digit 0.
const LOW: i32 = -2176;
/// 136 * 32 = 4352 bits, the top of which is the sign.
const DIGITS: usize = 136;
/// Each addition adds less than 2^32 in magnitude to a digit that carrying left below 2^32.
const MAX_PENDING: u32 = 1 << 30;

/// An exact sum. See the module's text.
#[derive(Clone, Debug)]
pub struct Long {
    digits: [i64; DIGITS],
    pending: u32,
    nan: bool,
    pos_inf: bool,
    neg_inf: bool,
    /// An addend was seen.
    any: bool,
    /// An addend other than -0 was seen.
    not_neg_zero: bool,
}

impl Default for Long {
    fn default() -> Self {
        Self::new()
    }
}

/// How [`Long`] is read as an `f64`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rounding {
    NearestEven,
    Odd,
}

/// `|x|` as `mantissa * 2^exponent`, for finite `x`.
#[inline]
fn split(x: f64) -> (u64, i32) {
    let bits = x.to_bits();
    let field = ((bits >> 52) & 0x7ff) as i32;
    let fraction = bits & ((1 << 52) - 1);
    if field == 0 { (fraction, -1074) } else { (fraction | 1 << 52, field - 1075) }
}

impl Long {
    /// The empty sum, which reads as +0.
    pub fn new() -> Self {
        Long {
            digits: [0; DIGITS],
            pending: 0,
            nan: false,
            pos_inf: false,
            neg_inf: false,
            any: false,
            not_neg_zero: false,
        }
    }

    /// Adds `x`.
    #[inline]
    pub fn add(&mut self, x: f64) {
        self.any = true;
        if !x.is_finite() {
            self.special(x);
        } else if x == 0.0 {
            self.not_neg_zero |= x.is_sign_positive();
        } else {
            self.not_neg_zero = true;
            let (mantissa, exponent) = split(x);
            self.add_scaled(mantissa, exponent, x.is_sign_negative());
        }
    }

    /// Subtracts `x`: the same as adding `-x`.
    #[inline]
    pub fn sub(&mut self, x: f64) {
        self.add(-x);
    }

    /// Adds the exact product `a * b`: no rounding, no underflow, no overflow.
    #[inline]
    pub fn add_product(&mut self, a: f64, b: f64) {
        if !(a.is_finite() && b.is_finite()) {
            self.any = true;
            // With an operand that is not finite the product is one of NaN, inf and -inf, and IEEE
            // multiplication exact.
            self.special(a * b);
        } else if a == 0.0 || b == 0.0 {
            self.any = true;
            self.not_neg_zero |= a.is_sign_positive() == b.is_sign_positive();
        } else {
            self.any = true;
            self.not_neg_zero = true;
            let (ma, ea) = split(a);
            let (mb, eb) = split(b);
            let negative = a.is_sign_negative() != b.is_sign_negative();
            let product = u128::from(ma) * u128::from(mb);
            self.add_scaled(product as u64, ea + eb, negative);
            let high = (product >> 64) as u64;
            if high != 0 {
                self.add_scaled(high, ea + eb + 64, negative);
            }
        }
    }

    /// Adds everything that `other` holds.
    pub fn merge(&mut self, other: &Long) {
        let mut other = other.clone();
        other.carry();
        self.carry();
        for (mine, theirs) in self.digits.iter_mut().zip(other.digits) {
            *mine += theirs;
        }
        self.carry();
        self.nan |= other.nan;
        self.pos_inf |= other.pos_inf;
        self.neg_inf |= other.neg_inf;
        self.any |= other.any;
        self.not_neg_zero |= other.not_neg_zero;
    }

    /// The sum rounded once, to nearest, ties to even.
    pub fn to_f64(&self) -> f64 {
        self.read(Rounding::NearestEven)
    }

    /// The sum rounded once to `f32`, to nearest, ties to even.
    pub fn to_f32(&self) -> f32 {
        self.to_odd_f64() as f32
    }

    /// The sum rounded to *odd*: itself if it is an `f64`, else whichever of its two `f64` neighbours has an
    /// odd last mantissa bit (so [`f64::MAX`] beyond the finite range, and the smallest subnormal below it).
    ///
    /// A rounding to nearest of this value into any format of at most 51 significant bits whose least
    /// subnormal is at least 2^-1072 equals that rounding of the exact sum. Such a format has its values and
    /// its midpoints on a grid at least twice as coarse as the even `f64`s around, so they all have an even
    /// last bit: rounding to odd neither moves a sum across one nor onto one (Boldo and Melquiond, "Emulation
    /// of FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008).
    pub fn to_odd_f64(&self) -> f64 {
        self.read(Rounding::Odd)
    }

    /// Records an addend that is not finite.
    #[cold]
    fn special(&mut self, x: f64) {
        self.not_neg_zero = true;
        self.nan |= x.is_nan();
        self.pos_inf |= x == f64::INFINITY;
        self.neg_inf |= x == f64::NEG_INFINITY;
    }

    /// Adds `±mantissa * 2^exponent`; the exponent is at least -2148 and the value below 2^2049.
    #[inline]
    fn add_scaled(&mut self, mantissa: u64, exponent: i32, negative: bool) {
        let offset = (exponent - LOW) as u32;
        let wide = u128::from(mantissa) << (offset % DIGIT);
        let sign = if negative { -1 } else { 1 };
        let at = (offset / DIGIT) as usize;
        let digits: &mut [i64] = &mut self.digits[at..at + 3];
        digits[0] += sign * i64::from(wide as u32);
        digits[1] += sign * i64::from((wide >> 32) as u32);
        digits[2] += sign * i64::from((wide >> 64) as u32);
        self.pending += 1;
        if self.pending == MAX_PENDING {
            self.carry();
        }
    }

    /// Brings every digit but the last into `0..2^32`; the last carries the sign.
    fn carry(&mut self) {
        let mut carry = 0;
        for digit in &mut self.digits[..DIGITS - 1] {
            let sum = *digit + carry;
            *digit = sum & 0xffff_ffff;
            carry = sum >> DIGIT;
        }
        self.digits[DIGITS - 1] += carry;
        self.pending = 0;
    }

    fn read(&self, rounding: Rounding) -> f64 {
        if self.nan || (self.pos_inf && self.neg_inf) {
            return f64::NAN;
        }
        if self.pos_inf {
            return f64::INFINITY;
        }
        if self.neg_inf {
            return f64::NEG_INFINITY;
        }
        let mut value = self.clone();
        value.carry();
        let negative = value.digits[DIGITS - 1] < 0;
        if negative {
            for digit in &mut value.digits {
                *digit = -*digit;
            }
            value.carry();
        }
        let Some(top) = value.digits.iter().rposition(|&digit| digit != 0) else {
            return if self.any && !self.not_neg_zero { -0.0 } else { 0.0 };
        };
        // The three highest digits hold at least 65 significant bits; of the rest only whether it is zero
        // matters.
        let digit = |back: usize| top.checked_sub(back).map_or(0, |at| value.digits[at] as u128);
        let head = digit(0) << 64 | digit(1) << 32 | digit(2);
        let sticky = value.digits[..top.saturating_sub(2)].iter().any(|&digit| digit != 0);
        let exponent = LOW + (top as i32 - 2) * DIGIT as i32;
        let magnitude = round_magnitude(head, exponent, sticky, rounding);
        if negative { -magnitude } else { magnitude }
    }
}

/// `head * 2^exponent`, plus something positive below one unit of `head` if `sticky`, as an `f64`; `head >=
/// 2^64`.
fn round_magnitude(head: u128, exponent: i32, sticky: bool, rounding: Rounding) -> f64 {
    let top = exponent + 127 - head.leading_zeros() as i32;
    if top > 1023 {
        return if rounding == Rounding::Odd { f64::MAX } else { f64::INFINITY };
    }
    let last = (top - 52).max(-1074);
    let drop = (last - exponent) as u32;
    let (kept, rest) = if drop >= 128 { (0, head) } else { (head >> drop, head & ((1 << drop) - 1)) };
    let mut kept = kept as u64;
    match rounding {
        Rounding::Odd => kept |= u64::from(rest != 0 || sticky),
        Rounding::NearestEven => {
            // A value so small that `drop > 128` is below half the smallest subnormal.
            let half = if drop > 128 { u128::MAX } else { 1 << (drop - 1) };
            let up = rest > half || (rest == half && (sticky || kept & 1 == 1));
            kept += u64::from(up);
        }
    }
    // `kept` has its top bit at 52 in the normal range and lower below it; a carry out of it moves the
    // exponent on.
    let field = if top >= -1022 { (top + 1022) as u64 } else { 0 };
    f64::from_bits((field << 52) + kept)
}
