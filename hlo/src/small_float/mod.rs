//! The floating-point types of 8 bits and fewer, as newtypes over a byte.
//!
//! Invariants: the bits above a type's width are zero; conversions to a small type round once, to nearest
//! with ties to even ([`FloatFormat::encode`]); conversions from one are exact. Comparison (`==`, `<`) is
//! that of the values: NaN is unequal to itself and -0 equals +0. Compare [`to_bits`](F8E5M2::to_bits) for
//! identity.

mod format;

pub use format::{FloatFormat, Specials};

use std::{cmp::Ordering, fmt};

macro_rules! small_floats {
    ($($(#[$doc:meta])* $name:ident($text:literal): $exponent:literal, $mantissa:literal, $bias:literal, $specials:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Default)]
        #[repr(transparent)]
        pub struct $name(u8);

        impl $name {
            /// The format, from which every other fact follows.
            pub const FORMAT: FloatFormat = FloatFormat::new($exponent, $mantissa, $bias, Specials::$specials);
            /// The type's name in HLO text.
            pub const NAME: &'static str = $text;
            /// Width in bits.
            pub const BITS: u32 = Self::FORMAT.bits();
            /// The canonical quiet positive NaN, or the only one. In a type without NaN: what NaN is
            /// converted to, which is negative zero.
            pub const NAN: Self = Self(Self::FORMAT.converted_nan_bits() as u8);
            /// +infinity, if the type has infinities.
            pub const INFINITY: Option<Self> = match Self::FORMAT.infinity_bits() {
                Some(bits) => Some(Self(bits as u8)),
                None => None,
            };
            /// The largest finite number.
            pub const MAX: Self = Self(Self::FORMAT.max_bits() as u8);
            /// The smallest finite number, `-MAX` where negative numbers exist.
            pub const MIN: Self = Self(Self::FORMAT.min_bits() as u8);
            /// The smallest positive normal number.
            pub const MIN_POSITIVE: Self = Self(Self::FORMAT.min_positive_normal_bits() as u8);
            const TABLE: [f32; 256] = Self::FORMAT.table();

            /// The number with this pattern; the bits above the type's width are dropped.
            #[inline]
            pub const fn from_bits(bits: u8) -> Self {
                Self(bits & (Self::FORMAT.magnitude_mask() | Self::FORMAT.sign_mask()) as u8)
            }

            /// The pattern, in the low bits.
            #[inline]
            pub const fn to_bits(self) -> u8 {
                self.0
            }

            /// The nearest number, ties to even; overflow and NaN as [`Specials`] says.
            // Not inlined: a loop over elements for each of many operations would contain the encoder each
            // time.
            #[inline(never)]
            pub const fn from_f64(x: f64) -> Self {
                Self(Self::FORMAT.encode(x) as u8)
            }

            /// The nearest number, ties to even; overflow and NaN as [`Specials`] says.
            pub const fn from_f32(x: f32) -> Self {
                Self::from_f64(x as f64)
            }

            /// The value, exactly. NaN gives the canonical NaN.
            #[inline]
            pub const fn to_f64(self) -> f64 {
                self.to_f32() as f64
            }

            /// The value, exactly. NaN gives the canonical NaN.
            #[inline]
            pub const fn to_f32(self) -> f32 {
                const TABLE: &[f32; 256] = &$name::TABLE;
                TABLE[self.0 as usize]
            }

            /// Whether this is a NaN.
            #[inline]
            pub const fn is_nan(self) -> bool {
                Self::FORMAT.is_nan(self.0 as u32)
            }

            /// Whether this is an infinity.
            #[inline]
            pub const fn is_infinite(self) -> bool {
                Self::FORMAT.is_infinite(self.0 as u32)
            }

            /// Whether this is neither a NaN nor an infinity.
            #[inline]
            pub const fn is_finite(self) -> bool {
                !self.is_nan() && !self.is_infinite()
            }

            /// Whether the sign bit is set: true for negative zero, and for the NaN of a `fnuz` type.
            #[inline]
            pub const fn is_sign_negative(self) -> bool {
                self.0 as u32 & Self::FORMAT.sign_mask() != 0
            }
        }

        impl From<$name> for f32 {
            fn from(x: $name) -> f32 {
                x.to_f32()
            }
        }

        impl From<$name> for f64 {
            fn from(x: $name) -> f64 {
                x.to_f64()
            }
        }

        impl PartialEq for $name {
            #[inline]
            fn eq(&self, other: &Self) -> bool {
                self.to_f32() == other.to_f32()
            }
        }

        impl PartialOrd for $name {
            #[inline]
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                self.to_f32().partial_cmp(&other.to_f32())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}_{}", self.to_f32(), Self::NAME)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.to_f32(), f)
            }
        }
    )*};
}

small_floats! {
    /// 5 exponent bits, 2 fraction bits, IEEE infinities and NaNs. Largest number 57344.
    F8E5M2("f8e5m2"): 5, 2, 15, Ieee;
    /// 4 exponent bits, 3 fraction bits, IEEE infinities and NaNs. Largest number 240.
    F8E4M3("f8e4m3"): 4, 3, 7, Ieee;
    /// 4 exponent bits, 3 fraction bits, no infinity, one NaN per sign. Largest number 448.
    F8E4M3FN("f8e4m3fn"): 4, 3, 7, FiniteNan;
    /// 4 exponent bits, 3 fraction bits, bias 11, no infinity, one NaN in place of -0. Largest number 30.
    F8E4M3B11FNUZ("f8e4m3b11fnuz"): 4, 3, 11, NanIsNegativeZero;
    /// 3 exponent bits, 4 fraction bits, IEEE infinities and NaNs. Largest number 15.5.
    F8E3M4("f8e3m4"): 3, 4, 3, Ieee;
    /// 5 exponent bits, 2 fraction bits, bias 16, no infinity, one NaN in place of -0. Largest number 57344.
    F8E5M2FNUZ("f8e5m2fnuz"): 5, 2, 16, NanIsNegativeZero;
    /// 4 exponent bits, 3 fraction bits, bias 8, no infinity, one NaN in place of -0. Largest number 240.
    F8E4M3FNUZ("f8e4m3fnuz"): 4, 3, 8, NanIsNegativeZero;
    /// The powers of two from 2^-127 to 2^127 and a NaN: no sign, no zero, no infinity. `default()` is
    /// 2^-127.
    F8E8M0FNU("f8e8m0fnu"): 8, 0, 127, Scale;
    /// 2 exponent bits, 1 fraction bit, every pattern a number. Largest number 6.
    F4E2M1FN("f4e2m1fn"): 2, 1, 1, NumbersOnly;
    /// 3 exponent bits, 2 fraction bits, every pattern a number. Largest number 28.
    F6E3M2FN("f6e3m2fn"): 3, 2, 3, NumbersOnly;
    /// 2 exponent bits, 3 fraction bits, every pattern a number. Largest number 7.5.
    F6E2M3FN("f6e2m3fn"): 2, 3, 1, NumbersOnly;
}
