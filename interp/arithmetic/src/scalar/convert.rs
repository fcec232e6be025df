//! Conversion between all pairs of the 32 element types, through four carriers.
//!
//! Invariant: every element type embeds exactly in its carrier (`i64`, `u64`, `f64`, `Complex<f64>`), and
//! each type is made from each carrier with at most one rounding; so every conversion rounds at most once. An
//! element loop over [`convert()`] is monomorphic: no carrier is chosen at run time.

use std::any::Any;

use half::{bf16, f16};
use hlo::{
    Element,
    small_float::{
        F4E2M1FN, F6E2M3FN, F6E3M2FN, F8E3M4, F8E4M3, F8E4M3B11FNUZ, F8E4M3FN, F8E4M3FNUZ, F8E5M2,
        F8E5M2FNUZ, F8E8M0FNU, FloatFormat,
    },
    small_int::{S1, S2, S4, U1, U2, U4},
};
use num_complex::Complex;

use super::float::canonical;

/// An element type as [`convert()`] sees it.
pub trait Scalar: Element + PartialEq {
    /// What holds every value of the type exactly.
    type Carrier: Carrier;

    /// The value, exactly. A NaN loses its payload at the latest on the way out of the carrier.
    fn carrier(self) -> Self::Carrier;
    /// From a signed integer: modulo 2^BITS; to float, one rounding to nearest even; to pred, whether it is
    /// not 0.
    fn from_i64(x: i64) -> Self;
    /// From an unsigned integer: modulo 2^BITS; to float, one rounding to nearest even; to pred, whether it
    /// is not 0.
    fn from_u64(x: u64) -> Self;
    /// From a real number: to integer, truncated and saturated, NaN gives 0; to float, one rounding to
    /// nearest even and NaN canonical; to pred, whether it is not 0 (NaN is not).
    fn from_f64(x: f64) -> Self;
    /// From a complex number: its real part.
    fn from_complex(x: Complex<f64>) -> Self {
        Self::from_f64(x.re)
    }
}

/// One of the four types that values pass through.
pub trait Carrier: Copy {
    /// Leaves the carrier.
    fn into_scalar<T: Scalar>(self) -> T;
}

impl Carrier for i64 {
    #[inline]
    fn into_scalar<T: Scalar>(self) -> T {
        T::from_i64(self)
    }
}

impl Carrier for u64 {
    #[inline]
    fn into_scalar<T: Scalar>(self) -> T {
        T::from_u64(self)
    }
}

impl Carrier for f64 {
    #[inline]
    fn into_scalar<T: Scalar>(self) -> T {
        T::from_f64(self)
    }
}

impl Carrier for Complex<f64> {
    #[inline]
    fn into_scalar<T: Scalar>(self) -> T {
        T::from_complex(self)
    }
}

/// HLO's `convert` of one element. A type converted to itself is copied, the payload of a NaN included.
#[inline]
pub fn convert<A: Scalar, B: Scalar>(x: A) -> B {
    match (&x as &dyn Any).downcast_ref::<B>() {
        Some(same) => *same,
        None => x.carrier().into_scalar(),
    }
}

impl Scalar for bool {
    type Carrier = u64;

    #[inline]
    fn carrier(self) -> u64 {
        u64::from(self)
    }

    #[inline]
    fn from_i64(x: i64) -> Self {
        x != 0
    }

    #[inline]
    fn from_u64(x: u64) -> Self {
        x != 0
    }

    #[inline]
    fn from_f64(x: f64) -> Self {
        x != 0.0
    }
}

macro_rules! native_ints {
    ($($carrier:ident: $($name:ident)*;)*) => {$($(
        impl Scalar for $name {
            type Carrier = $carrier;

            #[inline]
            fn carrier(self) -> $carrier {
                self as $carrier
            }

            #[inline]
            fn from_i64(x: i64) -> Self {
                x as $name
            }

            #[inline]
            fn from_u64(x: u64) -> Self {
                x as $name
            }

            #[inline]
            fn from_f64(x: f64) -> Self {
                x as $name // saturates, and takes NaN to 0
            }
        }
    )*)*};
}

native_ints! {
    i64: i8 i16 i32 i64;
    u64: u8 u16 u32 u64;
}

macro_rules! small_ints {
    ($($carrier:ident: $($name:ident)*;)*) => {$($(
        impl Scalar for $name {
            type Carrier = $carrier;

            #[inline]
            fn carrier(self) -> $carrier {
                self.get() as $carrier
            }

            #[inline]
            fn from_i64(x: i64) -> Self {
                $name::from_i64(x)
            }

            #[inline]
            fn from_u64(x: u64) -> Self {
                $name::from_u64(x)
            }

            #[inline]
            fn from_f64(x: f64) -> Self {
                $name::from_i64((x as i64).clamp($name::MIN.to_i64(), $name::MAX.to_i64()))
            }
        }
    )*)*};
}

small_ints! {
    i64: S1 S2 S4;
    u64: U1 U2 U4;
}

/// An `f64` that rounds to any format of at most 51 bits of precision as `x` does: exact where it fits,
/// otherwise truncated with the last bit set ("rounded to odd").
#[inline]
fn odd_from_u64(x: u64) -> f64 {
    const DROPPED: u64 = (1 << 11) - 1;
    if x >> 53 == 0 {
        x as f64
    } else {
        // 53 bits at most from bit 11 up: the conversion is exact.
        ((x & !DROPPED) | (u64::from(x & DROPPED != 0) << 11)) as f64
    }
}

#[inline]
fn odd_from_i64(x: i64) -> f64 {
    let magnitude = odd_from_u64(x.unsigned_abs());
    if x < 0 { -magnitude } else { magnitude }
}

macro_rules! wide_floats {
    ($($name:ident)*) => {$(
        impl Scalar for $name {
            type Carrier = f64;

            #[inline]
            fn carrier(self) -> f64 {
                self as f64
            }

            #[inline]
            fn from_i64(x: i64) -> Self {
                x as $name
            }

            #[inline]
            fn from_u64(x: u64) -> Self {
                x as $name
            }

            #[inline]
            fn from_f64(x: f64) -> Self {
                canonical(x as $name)
            }
        }

        impl Scalar for Complex<$name> {
            type Carrier = Complex<f64>;

            #[inline]
            fn carrier(self) -> Complex<f64> {
                Complex::new(self.re as f64, self.im as f64)
            }

            #[inline]
            fn from_i64(x: i64) -> Self {
                Complex::new(x as $name, 0.0)
            }

            #[inline]
            fn from_u64(x: u64) -> Self {
                Complex::new(x as $name, 0.0)
            }

            #[inline]
            fn from_f64(x: f64) -> Self {
                Complex::new(<$name as Scalar>::from_f64(x), 0.0)
            }

            #[inline]
            fn from_complex(x: Complex<f64>) -> Self {
                Complex::new(<$name as Scalar>::from_f64(x.re), <$name as Scalar>::from_f64(x.im))
            }
        }
    )*};
}

wide_floats! { f32 f64 }

macro_rules! narrow_floats {
    ($($name:ident: $to_f64:expr, $from_f64:expr;)*) => {$(
        impl Scalar for $name {
            type Carrier = f64;

            #[inline]
            fn carrier(self) -> f64 {
                let to_f64: fn(Self) -> f64 = $to_f64;
                to_f64(self)
            }

            #[inline]
            fn from_i64(x: i64) -> Self {
                <$name as Scalar>::from_f64(odd_from_i64(x))
            }

            #[inline]
            fn from_u64(x: u64) -> Self {
                <$name as Scalar>::from_f64(odd_from_u64(x))
            }

            #[inline]
            fn from_f64(x: f64) -> Self {
                let from_f64: fn(f64) -> Self = $from_f64;
                from_f64(x)
            }
        }
    )*};
}

// Without the detection of processor features that `half` does each time.
#[inline]
fn f16_to_f64(x: f16) -> f64 {
    let bits = u64::from(x.to_bits());
    let (sign, magnitude) = (bits >> 15 << 63, bits & 0x7fff);
    // The shifted fields have an exponent of another bias, which a factor corrects, of subnormals too.
    let finite = f64::from_bits(magnitude << 42) * f64::from_bits((2 * 1023 - 15) << 52);
    let special = f64::from_bits(0x7ff << 52 | magnitude << 42);
    f64::from_bits(sign | if magnitude < 0x7c00 { finite } else { special }.to_bits())
}

#[inline]
fn bf16_to_f64(x: bf16) -> f64 {
    f64::from(f32::from_bits(u32::from(x.to_bits()) << 16))
}

// `half`'s own `from_f64` rounds to f32 first on some processors, which is two roundings.
#[inline]
fn f16_from_f64(x: f64) -> f16 {
    f16::from_bits(encode_half(FloatFormat::F16, x))
}

#[inline]
fn bf16_from_f64(x: f64) -> bf16 {
    bf16::from_bits(encode_half(FloatFormat::BF16, x))
}

/// [`FloatFormat::encode`] for the IEEE formats of 16 bits, without branches, so that loops become vector
/// code.
#[inline(always)]
fn encode_half(format: FloatFormat, x: f64) -> u16 {
    const MAGNITUDE: u64 = u64::MAX >> 1;
    const INFINITY: u64 = 0x7ff << 52;
    let bits = x.to_bits();
    let absolute = bits & MAGNITUDE;
    let field = |exponent: i32| ((exponent + 1023) as u64) << 52;
    let dropped = 52 - format.mantissa_bits;
    // Subnormal: the addition rounds at the last bit that the format has.
    let unit = field(1 - format.bias + dropped as i32);
    let small = (f64::from_bits(absolute) + f64::from_bits(unit)).to_bits().wrapping_sub(unit);
    // A carry out of the fraction moves into the exponent field.
    let rounded = (absolute + ((1 << (dropped - 1)) - 1) + (absolute >> dropped & 1)) >> dropped;
    let large = rounded.wrapping_sub(((1023 - format.bias) as u64) << format.mantissa_bits);
    let magnitude = if absolute < field(1 - format.bias) { small } else { large };
    // Both are below 2^15 where they count; infinities are beyond every number, as is what overflows.
    let infinity = u64::from(format.max_bits()) + 1;
    let magnitude = if magnitude < infinity { magnitude } else { infinity };
    let signed = magnitude | bits >> 63 << 15;
    let nan = u64::from(format.converted_nan_bits());
    (if absolute > INFINITY { nan } else { signed }) as u16
}

narrow_floats! {
    f16: f16_to_f64, f16_from_f64;
    bf16: bf16_to_f64, bf16_from_f64;
    F8E5M2: F8E5M2::to_f64, F8E5M2::from_f64;
    F8E4M3: F8E4M3::to_f64, F8E4M3::from_f64;
    F8E4M3FN: F8E4M3FN::to_f64, F8E4M3FN::from_f64;
    F8E4M3B11FNUZ: F8E4M3B11FNUZ::to_f64, F8E4M3B11FNUZ::from_f64;
    F8E3M4: F8E3M4::to_f64, F8E3M4::from_f64;
    F8E5M2FNUZ: F8E5M2FNUZ::to_f64, F8E5M2FNUZ::from_f64;
    F8E4M3FNUZ: F8E4M3FNUZ::to_f64, F8E4M3FNUZ::from_f64;
    F8E8M0FNU: F8E8M0FNU::to_f64, F8E8M0FNU::from_f64;
    F4E2M1FN: F4E2M1FN::to_f64, F4E2M1FN::from_f64;
    F6E3M2FN: F6E3M2FN::to_f64, F6E3M2FN::from_f64;
    F6E2M3FN: F6E2M3FN::to_f64, F6E2M3FN::from_f64;
}
