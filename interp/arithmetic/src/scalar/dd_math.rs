//! Exponential, logarithm and hyperbolic functions in double-double.
//!
//! Invariant: for finite arguments the relative error of each result is below 2^-96. Infinities and NaN are
//! the caller's, but for `exp`, which saturates.

use super::{
    constants::{INVERSE_FACTORIAL, INVERSE_ODD, LN_2, LN_2_LEADING, LN_2_TRAILING},
    dd::{Dd, Wide, exponent_of, power_of_two, scale},
};

/// Below this the reduced exponential needs no power of two: slightly less than ln(2) / 2.
const SMALL: f64 = 0.34;

/// e^x. Beyond ±100000 the exponent is clamped where every type has overflowed or underflowed.
pub(super) fn exp(x: Dd) -> Wide {
    let x = if x.hi.abs() > 1e5 { Dd::from(x.hi.clamp(-1e5, 1e5)) } else { x };
    let k = (x.hi / LN_2.hi).round();
    let reduced = Dd::sum(&[x.hi, -k * LN_2_LEADING, x.lo]) - Dd::from(k) * LN_2_TRAILING;
    Wide { value: Dd::ONE + exp_minus_one_small(reduced), exponent: k as i32 }
}

/// e^x - 1 for |x| <= 0.35, by its series at x / 512 and nine doublings.
fn exp_minus_one_small(x: Dd) -> Dd {
    const DOUBLINGS: i32 = 9;
    if x.hi.abs() < power_of_two(-200) {
        return x;
    }
    let x = x.scale(power_of_two(-DOUBLINGS));
    let series = INVERSE_FACTORIAL[2..=9].iter().rev().fold(Dd::ZERO, |sum, &term| (sum + term) * x);
    let mut result = x + series * x;
    for _ in 0..DOUBLINGS {
        result = result.scale(2.0) + result * result;
    }
    result
}

/// e^x - 1.
pub(super) fn exp_minus_one(x: Dd) -> Wide {
    if x.hi.abs() < SMALL {
        return Wide::from(exp_minus_one_small(x));
    }
    let exp = exp(x);
    if exp.exponent > 200 {
        return exp; // 1 is far below the last bit
    }
    Wide::from(exp.to_dd() - Dd::ONE)
}

/// sinh x and cosh x.
pub(super) fn sinh_cosh(x: f64) -> (Wide, Wide) {
    let magnitude = x.abs();
    let (sinh, cosh) = if magnitude > 80.0 {
        let half = exp(Dd::from(magnitude)).shift(-1); // e^-2x is below the last bit
        (half, half)
    } else {
        let reduced = exp_minus_one(Dd::from(magnitude)).to_dd();
        let exp = Dd::ONE + reduced;
        let sinh = if magnitude < power_of_two(-60) {
            Wide::from(magnitude) // the next term, x^3/6, is below the last bit
        } else {
            Wide::from((reduced + reduced / exp).scale(0.5))
        };
        (sinh, Wide::from((exp + Dd::ONE / exp).scale(0.5)))
    };
    (if x.is_sign_negative() { -sinh } else { sinh }, cosh)
}

/// ln(1 + x) for x > -1.
pub(super) fn log_plus_one(x: Dd) -> Dd {
    if x.hi.abs() < power_of_two(-110) {
        return x;
    }
    if x.hi.abs() >= 0.125 {
        return log(Wide::from(Dd::ONE + x));
    }
    // 2 atanh(x / (2 + x)).
    let ratio = x / (Dd::from(2.0) + x);
    let square = ratio * ratio;
    let series = INVERSE_ODD[1..].iter().rev().fold(Dd::ZERO, |sum, &term| (sum + term) * square);
    (ratio + series * ratio).scale(2.0)
}

/// ln x for x > 0.
pub(super) fn log(x: Wide) -> Dd {
    let x = x.normalize();
    let (mut mantissa, mut exponent) = (x.value, x.exponent);
    if mantissa.hi > std::f64::consts::SQRT_2 {
        mantissa = mantissa.scale(0.5);
        exponent += 1;
    }
    let log = if (mantissa.hi - 1.0).abs() < 0.125 {
        log_plus_one(mantissa - Dd::ONE)
    } else {
        // One step of Newton's method of third order from the f64 logarithm.
        let start = core_math::log(mantissa.hi);
        let error = mantissa * exp(Dd::from(-start)).to_dd() - Dd::ONE;
        Dd::from(start) + (error - (error * error).scale(0.5))
    };
    if exponent == 0 { log } else { Dd::from(f64::from(exponent)) * LN_2 + log }
}

/// asinh x, with the sign of x.
pub(super) fn asinh(x: Dd) -> Dd {
    let magnitude = x.abs();
    let result = if magnitude.hi > power_of_two(60) {
        log(Wide::from(magnitude).shift(1)) // ln 2x; the next term, 1/(4x^2), is below the last bit
    } else if magnitude.hi < power_of_two(-60) {
        magnitude // the next term is x^3/6
    } else {
        let square = magnitude * magnitude;
        log_plus_one(magnitude + square / (Dd::ONE + (Dd::ONE + square).sqrt()))
    };
    if x.hi.is_sign_negative() { -result } else { result }
}

/// |x + iy| for parts that are not both 0 and finite.
pub(super) fn modulus(x: Dd, y: Dd) -> Wide {
    let e = exponent_of(if x.hi.abs() > y.hi.abs() { x.hi } else { y.hi });
    let down = |part: Dd| Dd::new(scale(part.hi, -e), scale(part.lo, -e));
    let (x, y) = (down(x), down(y));
    Wide { value: (x * x + y * y).sqrt(), exponent: e }
}
