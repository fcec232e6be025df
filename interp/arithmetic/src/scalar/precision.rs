//! `reduce-precision` and `stochastic-convert`.

use half::f16;
use hlo::small_float::Specials;

use super::{Float, Int, Scalar, dd};

/// HLO's `reduce-precision`: `x` rounded to nearest even to an IEEE float of `exponent_bits` and
/// `mantissa_bits`. What is too large for it becomes infinite (or what the type makes of infinity), what
/// would be subnormal in it becomes zero, unless it has at least as many exponent bits as the type. A NaN is
/// kept with its payload, but becomes +infinity if `mantissa_bits` is 0.
///
/// The 16-, 32- and 64-bit types are rounded in their own format: a subnormal of the type has the fixed point
/// of its subnormals. Narrower types are rounded as f16 (`f8e8m0fnu` as f32) and converted back, as XLA:CPU
/// does.
///
/// XLA's verifier asks for at least one exponent bit; 0 is taken for 1 here.
pub fn reduce_precision<T: Float>(x: T, exponent_bits: u32, mantissa_bits: u32) -> T {
    if x.is_nan() {
        return match T::INFINITY {
            Some(infinity) if mantissa_bits == 0 => infinity,
            _ => x,
        };
    }
    if T::BITS >= 16 {
        reduce_in_format(x, exponent_bits, mantissa_bits)
    } else if T::SPECIALS == Specials::Scale {
        T::from_f64(
            reduce_in_format(<f32 as Scalar>::from_f64(x.to_f64()), exponent_bits, mantissa_bits).to_f64(),
        )
    } else {
        T::from_f64(
            reduce_in_format(<f16 as Scalar>::from_f64(x.to_f64()), exponent_bits, mantissa_bits).to_f64(),
        )
    }
}

/// [`reduce_precision`] of an IEEE type and a number that is not NaN.
fn reduce_in_format<T: Float>(x: T, exponent_bits: u32, mantissa_bits: u32) -> T {
    let format_exponent_bits = T::BITS - T::MANTISSA_BITS - 1;
    let (sign, mut magnitude) = (x.to_raw() & T::SIGN, x.to_raw() & !T::SIGN);
    if mantissa_bits < T::MANTISSA_BITS {
        // A carry out of the fraction moves into the exponent, at the end to infinity.
        let dropped = T::MANTISSA_BITS - mantissa_bits;
        let last = magnitude >> dropped & 1;
        magnitude = (magnitude + (1 << (dropped - 1)) - 1 + last) >> dropped << dropped;
    }
    if exponent_bits < format_exponent_bits {
        let bias = (1u64 << (format_exponent_bits - 1)) - 1;
        let reach = (1u64 << (exponent_bits.max(1) - 1)) - 1;
        let field = magnitude >> T::MANTISSA_BITS;
        if field > bias + reach {
            magnitude = ((1 << format_exponent_bits) - 1) << T::MANTISSA_BITS;
        } else if field <= bias - reach {
            magnitude = 0;
        }
    }
    T::from_raw(sign | magnitude)
}

/// HLO's `stochastic-convert`: the magnitude of `x` truncated, plus one if `random` is less than the fraction
/// dropped, scaled to the range of the random type. NaN gives 0; what is not in range, infinities included,
/// saturates.
///
/// `random` has as many bits as `x`, and `R` is a signed type of any width (the verifier sees to both).
pub fn stochastic_convert<T: Float, U: Int, R: Int>(x: T, random: U) -> R {
    let x = x.to_f64();
    if x.is_nan() {
        return R::wrap(0);
    }
    // Both ends are exact in f64, or round away from zero beyond every value of the type.
    if x >= R::MAX.extend() as f64 {
        return R::MAX;
    }
    if x <= R::MIN.extend() as f64 {
        return R::MIN;
    }
    let truncated = x.trunc();
    let fraction = (x - truncated).abs() * dd::power_of_two(U::BITS as i32);
    // The fraction is below 2^BITS, and so is its integer part.
    let away = random.bits() < fraction as u64;
    let magnitude = truncated.abs() as u64 + u64::from(away);
    R::wrap(if x < 0.0 { (magnitude as i64).wrapping_neg() } else { magnitude as i64 })
}
