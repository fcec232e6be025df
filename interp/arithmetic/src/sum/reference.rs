//! An independent statement of what exact sums are, in arbitrary-precision integers, for tests.

use num_bigint::{BigInt, BigUint, Sign};

/// Everything is a multiple of 2^-`SCALE`.
const SCALE: i32 = 2148;

fn integer(x: f64) -> BigInt {
    let bits = x.to_bits();
    let (field, fraction) = ((bits >> 52 & 0x7ff) as i32, bits & ((1 << 52) - 1));
    let (mantissa, exponent) =
        if field == 0 { (fraction, -1074) } else { (fraction + (1 << 52), field - 1075) };
    let magnitude = BigInt::from(mantissa) << (exponent + 1074);
    if x.is_sign_negative() { -magnitude } else { magnitude }
}

/// The sum of products, rounded to `precision` bits with a minimum exponent (that of the last bit of
/// subnormals) and a largest finite value, as IEEE formats are. `None` stands for a sum that is exactly zero,
/// whose sign is up to the caller.
pub(crate) fn round_sum(terms: &[(f64, f64)], precision: u64, least: i32, largest: f64) -> Option<f64> {
    if terms.iter().any(|(a, b)| !a.is_finite() || !b.is_finite()) {
        // IEEE arithmetic on one huge representative of each product: only the signs of infinities and NaN
        // matter.
        let sign = |x: f64| if x.is_finite() && x != 0.0 { x.signum() } else { x };
        let special = |&(a, b): &(f64, f64)| {
            let p = sign(a) * sign(b);
            if p.is_finite() { 0.0 } else { p }
        };
        return Some(terms.iter().map(special).sum());
    }
    let total: BigInt = terms.iter().map(|&(a, b)| integer(a) * integer(b)).sum();
    let (sign, magnitude) = total.into_parts();
    if sign == Sign::NoSign {
        return None;
    }
    // value = magnitude * 2^-SCALE; the last kept bit weighs 2^last.
    let last = (magnitude.bits() as i32 - SCALE - precision as i32).max(least);
    let drop = last + SCALE;
    let value = if drop <= 0 {
        (magnitude, -SCALE)
    } else {
        let unit = BigUint::from(1u8) << drop;
        let (quotient, rest) = (&magnitude >> drop, &magnitude % &unit);
        let twice = rest << 1;
        let up = twice > unit || (twice == unit && quotient.bit(0));
        (if up { quotient + 1u8 } else { quotient }, last)
    };
    let (mantissa, exponent) = value;
    let spare = mantissa.trailing_zeros().unwrap_or(0);
    let mantissa = mantissa >> spare;
    let exponent = exponent + spare as i32;
    let value = if mantissa.bits() as i32 + exponent > 1024 {
        f64::INFINITY
    } else {
        let m = u64::try_from(&mantissa).expect("at most 53 bits") as f64;
        // In two steps: 2^exponent alone may be subnormal or too large. Both are exact.
        let half = exponent / 2;
        m * 2f64.powi(half) * 2f64.powi(exponent - half)
    };
    let value = if value > largest { f64::INFINITY } else { value };
    Some(if sign == Sign::Minus { -value } else { value })
}

/// [`round_sum`] for `f64`; exactly zero gives +0.
pub(crate) fn sum_f64(terms: &[(f64, f64)]) -> f64 {
    round_sum(terms, 53, -1074, f64::MAX).unwrap_or(0.0)
}

/// [`round_sum`] for `f32`; exactly zero gives +0.
pub(crate) fn sum_f32(terms: &[(f64, f64)]) -> f32 {
    round_sum(terms, 24, -149, f64::from(f32::MAX)).unwrap_or(0.0) as f32
}

/// The same as `x`, but NaN made canonical.
pub(crate) fn canonical(x: f64) -> u64 {
    if x.is_nan() { f64::NAN.to_bits() } else { x.to_bits() }
}

/// See [`canonical`].
pub(crate) fn canonical_f32(x: f32) -> u32 {
    if x.is_nan() { f32::NAN.to_bits() } else { x.to_bits() }
}
