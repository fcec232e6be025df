//! Real floating-point arithmetic, f4 to f64.
//!
//! Invariant: every result is the exact result rounded once, to nearest with ties to even, in its own type;
//! denormals are kept; a NaN result is canonical. A type narrower than f32 is computed in f64 and rounded: an
//! f64 result that is itself correctly rounded can be rounded again without harm to any precision p with 2p +
//! 2 <= 53 for + - * / and square root (Figueroa; Boldo & Melquiond), and 2 * 11 + 2 = 24. f64's exponent
//! range covers products and quotients of the narrow types without its own under- or overflow.

use half::{bf16, f16};
use hlo::small_float::{
    F4E2M1FN, F6E2M3FN, F6E3M2FN, F8E3M4, F8E4M3, F8E4M3B11FNUZ, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ,
    F8E8M0FNU, FloatFormat, Specials,
};

use super::{Number, Scalar, math};

/// A real floating-point element type.
pub trait Float: Scalar + PartialOrd + Number {
    /// Width in bits.
    const BITS: u32;
    /// Width of the fraction field.
    const MANTISSA_BITS: u32;
    /// What the special patterns mean.
    const SPECIALS: Specials;
    /// The canonical NaN; in a type without NaN what NaN is converted to, negative zero.
    const NAN: Self;
    /// The largest finite number.
    const MAX: Self;
    /// +infinity, if there is one.
    const INFINITY: Option<Self>;

    /// The value, exactly.
    fn to_f64(self) -> f64;
    /// The pattern, zero-extended.
    fn to_raw(self) -> u64;
    /// The number with this pattern; bits above the width are dropped.
    fn from_raw(raw: u64) -> Self;

    /// The mask of the sign bit, 0 in the type without sign.
    const SIGN: u64 = match Self::SPECIALS {
        Specials::Scale => 0,
        _ => 1 << (Self::BITS - 1),
    };

    /// The pattern of [`Float::NAN`].
    const NAN_RAW: u64;

    /// The pattern of infinity in an IEEE type.
    const INFINITY_RAW: u64 = ((1 << (Self::BITS - 1 - Self::MANTISSA_BITS)) - 1) << Self::MANTISSA_BITS;

    /// Whether this is a NaN.
    #[inline]
    fn is_nan(self) -> bool {
        self.to_f64().is_nan()
    }

    /// HLO's `is-finite`: neither NaN nor infinity.
    #[inline]
    fn is_finite(self) -> bool {
        self.to_f64().is_finite()
    }

    /// Whether the sign bit is set.
    #[inline]
    fn is_negative(self) -> bool {
        self.to_raw() & Self::SIGN != 0
    }

    /// The magnitude: the sign bit cleared, a NaN's payload kept. A NaN that is the pattern of -0 stays.
    #[inline]
    fn abs(self) -> Self {
        match Self::SPECIALS {
            Specials::Ieee | Specials::FiniteNan | Specials::NumbersOnly => {
                Self::from_raw(self.to_raw() & !Self::SIGN)
            }
            Specials::NanIsNegativeZero if self.to_raw() == Self::SIGN => self,
            Specials::NanIsNegativeZero => Self::from_raw(self.to_raw() & !Self::SIGN),
            Specials::Scale => self,
        }
    }

    /// The largest integer not above; the sign of zero is kept.
    #[inline]
    fn floor(self) -> Self {
        Self::from_f64(self.to_f64().floor())
    }

    /// The smallest integer not below; -0 for operands in (-1, -0].
    #[inline]
    fn ceil(self) -> Self {
        Self::from_f64(self.to_f64().ceil())
    }

    /// The nearest integer, halves away from zero.
    #[inline]
    fn round_nearest_afz(self) -> Self {
        Self::from_f64(self.to_f64().round())
    }

    /// The nearest integer, halves to even.
    #[inline]
    fn round_nearest_even(self) -> Self {
        Self::from_f64(self.to_f64().round_ties_even())
    }

    /// IEEE 754-2019 maximum: NaN if either is, -0 < +0.
    #[inline]
    fn maximum(self, rhs: Self) -> Self {
        // Nothing compares with a NaN: a NaN on the right falls to the last branch.
        let first = self > rhs || self.is_nan() || (self == rhs && rhs.is_negative());
        canonical(if first { self } else { rhs })
    }

    /// IEEE 754-2019 minimum: NaN if either is, -0 < +0.
    #[inline]
    fn minimum(self, rhs: Self) -> Self {
        let first = self < rhs || self.is_nan() || (self == rhs && self.is_negative());
        canonical(if first { self } else { rhs })
    }

    /// `minimum(high, maximum(self, low))`: NaN if any is, `high` if `low > high`.
    #[inline]
    fn clamp_between(self, low: Self, high: Self) -> Self {
        self.maximum(low).minimum(high)
    }

    /// A key whose order is TOTALORDER: -NaN < -inf < ... < -0 < +0 < ... < +inf < +NaN, NaNs by payload. The
    /// only NaN of a `fnuz` type is below every number, that of `f8e8m0fnu` above.
    #[inline]
    fn total_order_key(self) -> i64 {
        let raw = self.to_raw();
        let magnitude = (raw & !Self::SIGN) as i64;
        match (raw & Self::SIGN != 0, Self::SPECIALS) {
            (false, _) => magnitude,
            (true, Specials::NanIsNegativeZero) if magnitude == 0 => -(Self::SIGN as i64),
            (true, Specials::NanIsNegativeZero) => -magnitude,
            (true, Specials::Ieee | Specials::FiniteNan | Specials::NumbersOnly | Specials::Scale) => {
                -1 - magnitude
            }
        }
    }

    /// The next larger number: from the largest finite number to infinity if there is one, else unchanged.
    /// NaN and +infinity are unchanged. The two zeros are one number: the next larger than either is the
    /// smallest positive.
    fn next_up(self) -> Self {
        let raw = self.to_raw();
        if self.is_nan() || (raw == Self::MAX.to_raw() && Self::INFINITY.is_none()) {
            return self;
        }
        if Self::INFINITY.is_some_and(|infinity| raw == infinity.to_raw()) {
            return self;
        }
        let magnitude = raw & !Self::SIGN;
        if raw & Self::SIGN == 0 {
            Self::from_raw(magnitude + 1)
        } else if magnitude == 0 {
            Self::from_raw(1)
        } else if magnitude == 1 && Self::SPECIALS == Specials::NanIsNegativeZero {
            Self::from_raw(0)
        } else {
            Self::from_raw(Self::SIGN | (magnitude - 1))
        }
    }

    /// The next smaller number: the mirror image of [`Float::next_up`]; `f8e8m0fnu` ends at 2^-127.
    fn next_down(self) -> Self {
        if Self::SIGN == 0 {
            return match self.to_raw() {
                0 => self,
                _ if self.is_nan() => self,
                raw => Self::from_raw(raw - 1),
            };
        }
        if self.is_nan() {
            return self;
        }
        self.negate().next_up().negate()
    }

    /// sqrt(self^2 + rhs^2) without intermediate overflow; infinite if either is, even with a NaN.
    #[inline]
    fn hypot(self, rhs: Self) -> Self {
        Self::from_f64(core_math::hypot(self.to_f64(), rhs.to_f64()))
    }

    /// The error function.
    #[inline]
    fn erf(self) -> Self {
        Self::from_f64(core_math::erf(self.to_f64()))
    }
}

/// `x`, or the canonical NaN.
///
/// Decided on the pattern, in integers: LLVM takes the sign and payload of a NaN that arithmetic gives for
/// undetermined and would fold a selection between it and a NaN constant into nothing.
#[inline]
pub fn canonical<T: Float>(x: T) -> T {
    let raw = x.to_raw();
    let is_nan = match T::SPECIALS {
        Specials::Ieee => raw & !T::SIGN > T::INFINITY_RAW,
        Specials::FiniteNan | Specials::NanIsNegativeZero | Specials::NumbersOnly | Specials::Scale => {
            x.is_nan()
        }
    };
    T::from_raw(if is_nan { T::NAN_RAW } else { raw })
}

macro_rules! native_floats {
    ($($name:ident $bits:ident $canonical_nan:literal $exponent:literal $hypot:ident $erf:ident $pow:ident;)*) => {$(
        impl Float for $name {
            const BITS: u32 = $bits::BITS;
            const MANTISSA_BITS: u32 = <$name>::MANTISSA_DIGITS - 1;
            const SPECIALS: Specials = Specials::Ieee;
            const NAN: Self = <$name>::from_bits($canonical_nan);
            const NAN_RAW: u64 = $canonical_nan;
            const MAX: Self = <$name>::MAX;
            const INFINITY: Option<Self> = Some(<$name>::INFINITY);

            #[inline]
            fn to_f64(self) -> f64 {
                self as f64
            }

            #[inline]
            fn to_raw(self) -> u64 {
                u64::from(self.to_bits())
            }

            #[inline]
            fn from_raw(raw: u64) -> Self {
                <$name>::from_bits(raw as $bits)
            }

            #[inline]
            fn is_nan(self) -> bool {
                <$name>::is_nan(self)
            }

            #[inline]
            fn is_finite(self) -> bool {
                <$name>::is_finite(self)
            }

            #[inline]
            fn hypot(self, rhs: Self) -> Self {
                canonical(core_math::$hypot(self, rhs))
            }

            #[inline]
            fn erf(self) -> Self {
                canonical(core_math::$erf(self))
            }
        }

        impl Number for $name {
            #[inline]
            fn zero() -> Self {
                0.0
            }

            #[inline]
            fn one() -> Self {
                1.0
            }

            #[inline]
            fn add(self, rhs: Self) -> Self {
                canonical(self + rhs)
            }

            #[inline]
            fn subtract(self, rhs: Self) -> Self {
                canonical(self - rhs)
            }

            #[inline]
            fn multiply(self, rhs: Self) -> Self {
                canonical(self * rhs)
            }

            #[inline]
            fn divide(self, rhs: Self) -> Self {
                canonical(self / rhs)
            }

            /// C's `fmod`: exact.
            #[inline]
            fn remainder(self, rhs: Self) -> Self {
                canonical(self % rhs)
            }

            #[inline]
            fn negate(self) -> Self {
                -self
            }

            #[inline]
            fn power(self, exponent: Self) -> Self {
                if self == 1.0 || exponent == 0.0 { 1.0 } else { canonical(core_math::$pow(self, exponent)) }
            }

            #[inline]
            fn sign(self) -> Self {
                let keep = self.is_nan() || self == 0.0;
                canonical(if keep { self } else { <$name>::copysign(1.0, self) })
            }
        }
    )*};
}

native_floats! {
    f32 u32 0x7fc0_0000 8 hypotf erff powf;
    f64 u64 0x7ff8_0000_0000_0000 11 hypot erf pow;
}

macro_rules! narrow_floats {
    ($($name:ident $raw:ident $format:expr;)*) => {$(
        impl Float for $name {
            const BITS: u32 = $format.bits();
            const MANTISSA_BITS: u32 = $format.mantissa_bits;
            const SPECIALS: Specials = $format.specials;
            const NAN: Self = $name::from_bits($format.converted_nan_bits() as $raw);
            const NAN_RAW: u64 = $format.converted_nan_bits() as u64;
            const MAX: Self = $name::from_bits($format.max_bits() as $raw);
            const INFINITY: Option<Self> = match $format.infinity_bits() {
                Some(bits) => Some($name::from_bits(bits as $raw)),
                None => None,
            };

            #[inline]
            fn to_f64(self) -> f64 {
                self.carrier()
            }

            #[inline]
            fn to_raw(self) -> u64 {
                u64::from(self.to_bits())
            }

            #[inline]
            fn from_raw(raw: u64) -> Self {
                $name::from_bits(raw as $raw)
            }
        }

        impl Number for $name {
            #[inline]
            fn zero() -> Self {
                <Self as Scalar>::from_f64(0.0)
            }

            #[inline]
            fn one() -> Self {
                <Self as Scalar>::from_f64(1.0)
            }

            #[inline]
            fn add(self, rhs: Self) -> Self {
                <Self as Scalar>::from_f64(self.carrier() + rhs.carrier())
            }

            #[inline]
            fn subtract(self, rhs: Self) -> Self {
                <Self as Scalar>::from_f64(self.carrier() - rhs.carrier())
            }

            #[inline]
            fn multiply(self, rhs: Self) -> Self {
                <Self as Scalar>::from_f64(self.carrier() * rhs.carrier())
            }

            #[inline]
            fn divide(self, rhs: Self) -> Self {
                <Self as Scalar>::from_f64(self.carrier() / rhs.carrier())
            }

            /// C's `fmod`: exact.
            #[inline]
            fn remainder(self, rhs: Self) -> Self {
                <Self as Scalar>::from_f64(self.carrier() % rhs.carrier())
            }

            #[inline]
            fn negate(self) -> Self {
                match <Self as Float>::SPECIALS {
                    Specials::Ieee | Specials::FiniteNan | Specials::NumbersOnly => {
                        Self::from_raw(self.to_raw() ^ <Self as Float>::SIGN)
                    }
                    Specials::NanIsNegativeZero if self.to_raw() & !<Self as Float>::SIGN == 0 => self,
                    Specials::NanIsNegativeZero => Self::from_raw(self.to_raw() ^ <Self as Float>::SIGN),
                    Specials::Scale => <Self as Float>::NAN,
                }
            }

            #[inline]
            fn power(self, exponent: Self) -> Self {
                <Self as Scalar>::from_f64(math::power(self.carrier(), exponent.carrier()))
            }

            #[inline]
            fn sign(self) -> Self {
                <Self as Scalar>::from_f64(Number::sign(self.carrier()))
            }
        }
    )*};
}

narrow_floats! {
    f16 u16 FloatFormat::F16;
    bf16 u16 FloatFormat::BF16;
    F8E5M2 u8 F8E5M2::FORMAT;
    F8E4M3 u8 F8E4M3::FORMAT;
    F8E4M3FN u8 F8E4M3FN::FORMAT;
    F8E4M3B11FNUZ u8 F8E4M3B11FNUZ::FORMAT;
    F8E3M4 u8 F8E3M4::FORMAT;
    F8E5M2FNUZ u8 F8E5M2FNUZ::FORMAT;
    F8E4M3FNUZ u8 F8E4M3FNUZ::FORMAT;
    F8E8M0FNU u8 F8E8M0FNU::FORMAT;
    F4E2M1FN u8 F4E2M1FN::FORMAT;
    F6E3M2FN u8 F6E3M2FN::FORMAT;
    F6E2M3FN u8 F6E2M3FN::FORMAT;
}

#[cfg(test)]
mod tests {
    use super::{super::Elementary, *};

    /// The tests in `interp/arithmetic/tests` run unoptimized; loops like these are what the optimizer sees.
    /// The hardware's own NaN for an invalid operation is negative on x86 and positive on Arm.
    #[test]
    fn optimized_loops_give_canonical_nans() {
        fn all<T: Float>(x: &[T], y: &[T], operation: impl Fn(T, T) -> T) {
            let results: Vec<T> = x.iter().zip(y).map(|(x, y)| operation(*x, *y)).collect();
            assert!(results.iter().all(|r| r.to_raw() == T::NAN_RAW), "{results:?}");
        }
        fn check<T: Float + Elementary>() {
            let infinity = T::from_f64(f64::INFINITY);
            let nan = T::from_raw(T::NAN_RAW | T::SIGN | 1);
            let (zeros, infinities, nans) = (vec![T::zero(); 64], vec![infinity; 64], vec![nan; 64]);
            let minus = vec![infinity.negate(); 64];
            all(&infinities, &minus, T::add);
            all(&infinities, &infinities, T::subtract);
            all(&infinities, &zeros, T::multiply);
            all(&zeros, &zeros, T::divide);
            all(&infinities, &infinities, T::divide);
            all(&infinities, &infinities, T::remainder);
            all(&nans, &zeros, T::add);
            all(&nans, &zeros, T::maximum);
            all(&zeros, &nans, T::maximum);
            all(&nans, &nans, T::minimum);
            all(&minus, &minus, |x, _| x.sqrt());
            all(&nans, &nans, |x, _| x.sqrt());
            all(&nans, &nans, |x, _| x.sign());
            all(&nans, &nans, |x, _| x.floor());
            all(&nans, &nans, |x, y| x.clamp_between(y, x));
            all(&nans, &nans, |x, _| T::from_f64(x.to_f64()));
        }
        check::<f32>();
        check::<f64>();
        check::<f16>();
    }
}
