//! [`FloatFormat`]: a binary floating-point format described by data, with a soft encoder and decoder.
//!
//! Invariant: [`FloatFormat::encode`] rounds an `f64` once, to nearest with ties to even, and
//! [`FloatFormat::decode`] is exact. Hence any operation evaluated exactly (or correctly rounded to more than
//! `2p + 2` bits, for `p` the precision of the format) in `f64` and then encoded is correctly rounded in the
//! format.

/// What the bit patterns outside the ordinary numbers mean, and so what a number too large to represent
/// becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Specials {
    /// IEEE 754: the largest exponent holds infinities (fraction 0) and NaNs. Overflow gives an infinity.
    Ieee,
    /// `fn`: no infinity; only the all-ones pattern (either sign) is NaN. Overflow gives NaN.
    FiniteNan,
    /// `fnuz`: no infinity and no negative zero, whose pattern is the only NaN. Overflow gives NaN.
    NanIsNegativeZero,
    /// No infinity and no NaN: every pattern is a number. Overflow saturates. NaN becomes negative zero, as
    /// in XLA.
    NumbersOnly,
    /// `e8m0fnu`: an unsigned power of two without zero; all ones is NaN. Zero, negative numbers, infinities
    /// and numbers too large become NaN; positive numbers below the smallest become the smallest.
    Scale,
}

/// A binary floating-point format of at most 32 bits: sign (but for [`Specials::Scale`]), exponent, fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FloatFormat {
    /// Width of the exponent field.
    pub exponent_bits: u32,
    /// Width of the fraction field; the precision is one more.
    pub mantissa_bits: u32,
    /// Exponent bias: a normal number with exponent field `e` has the magnitude `1.f * 2^(e - bias)`.
    pub bias: i32,
    /// The meaning of the remaining patterns.
    pub specials: Specials,
}

impl FloatFormat {
    /// IEEE 754 binary16.
    pub const F16: Self = Self::new(5, 10, 15, Specials::Ieee);
    /// bfloat16: the upper half of binary32.
    pub const BF16: Self = Self::new(8, 7, 127, Specials::Ieee);
    /// IEEE 754 binary32.
    pub const F32: Self = Self::new(8, 23, 127, Specials::Ieee);

    /// Describes a format. All fields are stated: the bias is not derived from the exponent's width.
    pub const fn new(exponent_bits: u32, mantissa_bits: u32, bias: i32, specials: Specials) -> Self {
        Self { exponent_bits, mantissa_bits, bias, specials }
    }

    /// Width of a number in bits.
    pub const fn bits(self) -> u32 {
        self.has_sign() as u32 + self.exponent_bits + self.mantissa_bits
    }

    /// Number of significant bits, the leading one included.
    pub const fn precision(self) -> u32 {
        self.mantissa_bits + 1
    }

    /// Whether negative numbers exist.
    #[inline]
    pub const fn has_sign(self) -> bool {
        !matches!(self.specials, Specials::Scale)
    }

    /// Whether the format has infinities.
    #[inline]
    pub const fn has_infinity(self) -> bool {
        matches!(self.specials, Specials::Ieee)
    }

    /// Whether the format has a NaN.
    pub const fn has_nan(self) -> bool {
        !matches!(self.specials, Specials::NumbersOnly)
    }

    /// Whether the format has a zero.
    #[inline]
    pub const fn has_zero(self) -> bool {
        !matches!(self.specials, Specials::Scale)
    }

    /// Whether the format tells -0 from +0.
    #[inline]
    pub const fn has_negative_zero(self) -> bool {
        matches!(self.specials, Specials::Ieee | Specials::FiniteNan | Specials::NumbersOnly)
    }

    /// The mask of the sign bit; 0 without one.
    #[inline]
    pub const fn sign_mask(self) -> u32 {
        if self.has_sign() { 1 << (self.exponent_bits + self.mantissa_bits) } else { 0 }
    }

    /// The mask of exponent and fraction.
    #[inline]
    pub const fn magnitude_mask(self) -> u32 {
        ((1u64 << (self.exponent_bits + self.mantissa_bits)) - 1) as u32
    }

    /// The pattern of the largest finite number.
    #[inline]
    pub const fn max_bits(self) -> u32 {
        match self.specials {
            Specials::Ieee => self.magnitude_mask() - (1 << self.mantissa_bits),
            Specials::FiniteNan | Specials::Scale => self.magnitude_mask() - 1,
            Specials::NanIsNegativeZero | Specials::NumbersOnly => self.magnitude_mask(),
        }
    }

    /// The pattern of the smallest (most negative) finite number; for [`Specials::Scale`] the smallest power
    /// of two.
    pub const fn min_bits(self) -> u32 {
        if self.has_sign() { self.max_bits() | self.sign_mask() } else { 0 }
    }

    /// The pattern of +infinity, if there is one.
    pub const fn infinity_bits(self) -> Option<u32> {
        if self.has_infinity() { Some(self.max_bits() + 1) } else { None }
    }

    /// The pattern of the canonical NaN (quiet, positive, no payload) or of the only one, if there is one.
    #[inline]
    pub const fn nan_bits(self) -> Option<u32> {
        match self.specials {
            Specials::Ieee => Some(self.max_bits() + 1 + (1 << (self.mantissa_bits - 1))),
            Specials::FiniteNan | Specials::Scale => Some(self.magnitude_mask()),
            Specials::NanIsNegativeZero => Some(self.sign_mask()),
            Specials::NumbersOnly => None,
        }
    }

    /// What NaN is converted to: [`Self::nan_bits`], or negative zero in a format without NaN.
    ///
    /// XLA:CPU gives negative zero for NaNs of both signs; ml_dtypes gives +0 for a NaN with the sign bit
    /// set.
    #[inline]
    pub const fn converted_nan_bits(self) -> u32 {
        match self.nan_bits() {
            Some(bits) => bits,
            None => self.sign_mask(),
        }
    }

    /// The pattern of the smallest positive number, subnormals included.
    pub const fn min_positive_bits(self) -> u32 {
        if self.has_zero() { 1 } else { 0 }
    }

    /// The pattern of the smallest positive normal number.
    pub const fn min_positive_normal_bits(self) -> u32 {
        if self.has_zero() { 1 << self.mantissa_bits } else { 0 }
    }

    /// The gap between 1 and the next larger number.
    pub const fn epsilon(self) -> f64 {
        power_of_two(-(self.mantissa_bits as i32))
    }

    /// Whether every value of `other` is one of this format: its numbers (all whole multiples of its
    /// smallest, of no more significant bits than it has), its zeros, its infinities, and that there is a
    /// NaN.
    pub const fn holds(self, other: Self) -> bool {
        self.precision() >= other.precision()
            && self.decode(self.max_bits()) >= other.decode(other.max_bits())
            && self.decode(self.min_positive_bits()) <= other.decode(other.min_positive_bits())
            && (self.has_sign() || !other.has_sign())
            && (self.has_zero() || !other.has_zero())
            && (self.has_negative_zero() || !other.has_negative_zero())
            && (self.has_infinity() || !other.has_infinity())
            && (self.has_nan() || !other.has_nan())
    }

    /// Whether `bits` is a NaN.
    #[inline]
    pub const fn is_nan(self, bits: u32) -> bool {
        match self.specials {
            Specials::Ieee => bits & self.magnitude_mask() > self.max_bits() + 1,
            Specials::FiniteNan | Specials::Scale => bits & self.magnitude_mask() == self.magnitude_mask(),
            Specials::NanIsNegativeZero => bits == self.sign_mask(),
            Specials::NumbersOnly => false,
        }
    }

    /// Whether `bits` is an infinity.
    #[inline]
    pub const fn is_infinite(self, bits: u32) -> bool {
        self.has_infinity() && bits & self.magnitude_mask() == self.max_bits() + 1
    }

    /// Rounds `x` once, to nearest, ties to even. What is too large, and NaN: see [`Specials`]. A NaN result
    /// is the canonical one whatever the sign and payload of `x` (XLA keeps the sign, also of an overflow to
    /// NaN).
    #[inline]
    pub const fn encode(self, x: f64) -> u32 {
        if x.is_nan() {
            return self.converted_nan_bits();
        }
        if matches!(self.specials, Specials::Scale) {
            return self.encode_scale(x);
        }
        const MAGNITUDE: u64 = u64::MAX >> 1;
        let bits = x.to_bits();
        let absolute = bits & MAGNITUDE;
        let sign = if bits > MAGNITUDE { self.sign_mask() } else { 0 };
        let min_exponent = 1 - self.bias;
        let magnitude = if absolute < power_of_two(min_exponent).to_bits() {
            // Subnormal: the addition rounds at the last bit that the format has.
            let unit = power_of_two(min_exponent - self.mantissa_bits as i32 + 52);
            (f64::from_bits(absolute) + unit).to_bits() - unit.to_bits()
        } else {
            // A carry out of the fraction moves into the exponent field.
            let dropped = 52 - self.mantissa_bits;
            let odd = (absolute >> dropped) & 1;
            let rounded = (absolute + (1 << (dropped - 1)) - 1 + odd) >> dropped;
            rounded - (((1023 - self.bias) as u64) << self.mantissa_bits)
        };
        if magnitude > self.max_bits() as u64 {
            return match self.specials {
                Specials::Ieee => sign | (self.max_bits() + 1),
                Specials::NumbersOnly => sign | self.max_bits(),
                Specials::FiniteNan | Specials::NanIsNegativeZero | Specials::Scale => {
                    self.converted_nan_bits()
                }
            };
        }
        if magnitude == 0 && !self.has_negative_zero() { 0 } else { sign | magnitude as u32 }
    }

    /// [`Self::encode`] for a power-of-two format. The candidates are `2^k` and `2^(k+1)`, and ties go up
    /// (the one significant bit is always odd). Between the two smallest numbers every value goes up, as XLA
    /// and ml_dtypes do for an `f32`.
    const fn encode_scale(self, x: f64) -> u32 {
        if x <= 0.0 {
            return self.converted_nan_bits();
        }
        let bits = x.to_bits();
        let exponent = (bits >> 52) as i32 - 1023 + self.bias;
        let fraction = bits & ((1 << 52) - 1);
        if exponent < 0 {
            return 0;
        }
        let up = if exponent == 0 { fraction > 0 } else { fraction >= 1 << 51 };
        let rounded = exponent as u32 + up as u32;
        if rounded > self.max_bits() { self.converted_nan_bits() } else { rounded }
    }

    /// The value of `bits`, exactly. Bits above the format's width are ignored; every NaN gives [`f64::NAN`].
    pub const fn decode(self, bits: u32) -> f64 {
        let bits = bits & (self.magnitude_mask() | self.sign_mask());
        if self.is_nan(bits) {
            return f64::NAN;
        }
        let magnitude = bits & self.magnitude_mask();
        let field = (magnitude >> self.mantissa_bits) as i32;
        let fraction = magnitude & ((1 << self.mantissa_bits) - 1);
        let absolute = if self.is_infinite(bits) {
            f64::INFINITY
        } else if field == 0 && self.has_zero() {
            fraction as f64 * power_of_two(1 - self.bias - self.mantissa_bits as i32)
        } else {
            (fraction | (1 << self.mantissa_bits)) as f64
                * power_of_two(field - self.bias - self.mantissa_bits as i32)
        };
        if bits & self.sign_mask() != 0 { -absolute } else { absolute }
    }

    /// [`Self::decode`] of the 256 patterns of a byte, as `f32`: exact for every format of at most 8 bits.
    pub const fn table(self) -> [f32; 256] {
        let mut table = [0.0; 256];
        let mut bits = 0;
        while bits < table.len() {
            table[bits] = self.decode(bits as u32) as f32;
            bits += 1;
        }
        table
    }
}

/// `2^e` for the exponent of a normal `f64`.
const fn power_of_two(e: i32) -> f64 {
    f64::from_bits(((e + 1023) as u64) << 52)
}
