//! Elementary functions of complex numbers.
//!
//! Invariant: for finite operands each part of a result is evaluated in double-double and rounded once. Its
//! relative error before rounding is below 2^-95, so that it is correctly rounded unless the exact value is
//! that close to the middle between two numbers, with these exceptions:
//! - The real parts of `exponential_minus_one` and `logistic` are differences. Their error is below 2^-95 of
//!   the larger term: relative to the part it grows where that nearly cancels.
//! - `power` and `cbrt`: the error is below 2^-90 of the modulus of the result; for `power` times the modulus
//!   of `exponent * log(base)` where that is larger than 1. A part that is exactly 0 because the base is on
//!   an axis or a diagonal and the exponent is real is 0. An exponent with a part of 2^100 or more is
//!   evaluated in f64: its angle has no certain digit in any case.
//! - `atan2`: an error below 2^-90 of the modulus of the result; on the cut, where the angle is pi or -pi,
//!   the sign may be lost with that error.
//! - The inverse functions of c128 lose bits when an operand has a part below 2^-900 that is not 0.
//!
//! On the real axis, inside the domain of the real function, the real part is that function's (see
//! [`super::complex`]), which is correctly rounded.
//!
//! Operands that are not finite, signed zeros and branch cuts follow C99 Annex G; where that differs from
//! XLA:CPU, SEMANTICS.md says so.

use num_complex::Complex;

use super::{
    complex::{divide, sum_of_products},
    constants::{LN_2, PI},
    dd::{Dd, Wide, exponent_of, power_of_two, scale, two_product, two_sum},
    dd_math as real, trig,
};

/// The parts of a result.
type Parts = [Wide; 2];
type Operand = Complex<f64>;

const NAN: Parts = [Wide { value: Dd::new(f64::NAN, 0.0), exponent: 0 }; 2];

fn exact(re: f64, im: f64) -> Parts {
    [Wide::from(re), Wide::from(im)]
}

fn is_finite(z: Operand) -> bool {
    z.re.is_finite() && z.im.is_finite()
}

fn is_infinite(z: Operand) -> bool {
    z.re.is_infinite() || z.im.is_infinite()
}

/// The product of a real function of infinite or zero value and the direction of a finite angle.
fn along(modulus: f64, sin: Dd, cos: Dd) -> Parts {
    exact(modulus * cos.hi, modulus * sin.hi)
}

/// i z.
fn times_i(z: Operand) -> Operand {
    Complex::new(-z.im, z.re)
}

/// -i z.
fn over_i([re, im]: Parts) -> Parts {
    [im, -re]
}

pub(super) fn sign(z: Operand) -> Parts {
    if z.re == 0.0 && z.im == 0.0 {
        return exact(0.0, 0.0);
    }
    if !is_finite(z) {
        let modulus = core_math::hypot(z.re, z.im);
        return exact(z.re / modulus, z.im / modulus);
    }
    let modulus = real::modulus(Dd::from(z.re), Dd::from(z.im));
    [Wide::from(z.re) / modulus, Wide::from(z.im) / modulus]
}

pub(super) fn exponential(z: Operand) -> Parts {
    if z.im == 0.0 {
        return if z.re.is_finite() {
            [real::exp(Dd::from(z.re)), Wide::from(z.im)]
        } else {
            exact(if z.re == f64::NEG_INFINITY { 0.0 } else { z.re }, z.im)
        };
    }
    match (z.re, z.im.is_finite()) {
        (f64::NEG_INFINITY, false) => exact(0.0, 0.0),
        (f64::INFINITY, false) => exact(f64::INFINITY, f64::NAN),
        (_, false) => NAN,
        (re, true) if re.is_nan() => NAN,
        (re, true) => {
            let (sin, cos) = trig::sin_cos(z.im);
            match re {
                f64::NEG_INFINITY => along(0.0, sin, cos),
                f64::INFINITY => along(f64::INFINITY, sin, cos),
                _ => {
                    let modulus = real::exp(Dd::from(re));
                    [modulus * Wide::from(cos), modulus * Wide::from(sin)]
                }
            }
        }
    }
}

pub(super) fn exponential_minus_one(z: Operand) -> Parts {
    if !is_finite(z) {
        let [re, im] = exponential(z);
        return [if z.re == f64::NEG_INFINITY { Wide::from(-1.0) } else { re }, im];
    }
    let modulus_minus_one = real::exp_minus_one(Dd::from(z.re));
    if z.im == 0.0 {
        return [modulus_minus_one.copy_sign(z.re), Wide::from(z.im)];
    }
    let modulus = real::exp(Dd::from(z.re));
    let (sin, cos) = trig::sin_cos(z.im);
    let im =
        if z.im.abs() < power_of_two(-60) { modulus * Wide::from(z.im) } else { modulus * Wide::from(sin) };
    if modulus.exponent > 200 {
        return [modulus * Wide::from(cos), im];
    }
    // e^x cos y - 1 = (e^x - 1) cos y - 2 sin(y/2)^2.
    let (half_sin, _) = trig::sin_cos(z.im * 0.5);
    let versine = (half_sin * half_sin).scale(2.0);
    let re = if versine.hi == 0.0 {
        modulus_minus_one.copy_sign(z.re)
    } else {
        Wide::from(modulus_minus_one.to_dd() * cos - versine)
    };
    [re, im]
}

pub(super) fn log(z: Operand) -> Parts {
    [log_modulus(z), angle(z.im, Dd::from(z.re))]
}

/// ln |z|.
fn log_modulus(z: Operand) -> Wide {
    if is_infinite(z) {
        return Wide::from(f64::INFINITY);
    }
    if !is_finite(z) {
        return Wide::from(f64::NAN);
    }
    if z.re == 0.0 && z.im == 0.0 {
        return Wide::from(f64::NEG_INFINITY);
    }
    let largest = z.re.abs().max(z.im.abs());
    if (0.5..2.0).contains(&largest) {
        // |z|^2 - 1 without cancellation.
        let ((x, x_low), (y, y_low)) = (two_product(z.re, z.re), two_product(z.im, z.im));
        let excess = Dd::sum(&[x, y, -1.0, x_low, y_low]);
        if excess.hi.abs() < 0.5 {
            return Wide::from(real::log_plus_one(excess).scale(0.5));
        }
    }
    Wide::from(real::log(real::modulus(Dd::from(z.re), Dd::from(z.im))))
}

/// The angle of the point (x, y), infinities and NaN as C's atan2.
fn angle(y: f64, x: Dd) -> Wide {
    if y.is_finite() && x.hi.is_finite() {
        trig::atan2(Dd::from(y), x)
    } else {
        Wide::from(core_math::atan2(y, x.hi))
    }
}

pub(super) fn log_plus_one(z: Operand) -> Parts {
    let (hi, lo) = two_sum(1.0, z.re);
    if !is_finite(z) {
        return [log_modulus(z), angle(z.im, Dd::from(hi))];
    }
    let shifted = Dd::new(hi, lo);
    let im = angle(z.im, shifted);
    let largest = z.re.abs().max(z.im.abs());
    if largest < power_of_two(-300) {
        // x + y^2 / 2; the next term, -x^2 / 2, is below the last bit.
        return [sum_of_products(z.re, 1.0, z.im, z.im * 0.5), im];
    }
    if largest < power_of_two(300) {
        // |1 + z|^2 - 1 without cancellation.
        let ((x, x_low), (y, y_low)) = (two_product(z.re, z.re), two_product(z.im, z.im));
        let excess = Dd::sum(&[2.0 * z.re, x, y, x_low, y_low]);
        if excess.hi > -0.5 {
            return [Wide::from(real::log_plus_one(excess).scale(0.5)), im];
        }
        if shifted.hi == 0.0 && z.im == 0.0 {
            return [Wide::from(f64::NEG_INFINITY), im];
        }
    }
    [Wide::from(real::log(real::modulus(shifted, Dd::from(z.im)))), im]
}

pub(super) fn sinh(z: Operand) -> Parts {
    if is_finite(z) {
        let ((sinh, cosh), (sin, cos)) = (real::sinh_cosh(z.re), trig::sin_cos(z.im));
        return [sinh * Wide::from(cos), cosh * exact_sine(z.im, sin)];
    }
    if z.im == 0.0 {
        exact(z.re, z.im)
    } else if !z.im.is_finite() {
        let kept = z.re == 0.0 || z.re.is_infinite();
        exact(if kept { z.re } else { f64::NAN }, f64::NAN)
    } else if z.re.is_nan() {
        NAN
    } else {
        let (sin, cos) = trig::sin_cos(z.im);
        exact(z.re * cos.hi, f64::INFINITY * sin.hi)
    }
}

/// sin x given its double-double: for tiny x, x itself, whose product loses nothing when it is subnormal.
fn exact_sine(x: f64, sin: Dd) -> Wide {
    Wide::from(if x.abs() < power_of_two(-60) { Dd::from(x) } else { sin })
}

pub(super) fn cosh(z: Operand) -> Parts {
    if is_finite(z) {
        let ((sinh, cosh), (sin, cos)) = (real::sinh_cosh(z.re), trig::sin_cos(z.im));
        return [cosh * Wide::from(cos), sinh * exact_sine(z.im, sin)];
    }
    if z.im == 0.0 {
        exact(z.re.abs(), z.im * 1f64.copysign(z.re))
    } else if z.re == 0.0 {
        exact(f64::NAN, 0.0)
    } else if z.re.is_infinite() && !z.im.is_finite() {
        exact(f64::INFINITY, f64::NAN)
    } else if z.re.is_nan() || !z.im.is_finite() {
        NAN
    } else {
        let (sin, cos) = trig::sin_cos(z.im);
        exact(f64::INFINITY * cos.hi, z.re * sin.hi)
    }
}

pub(super) fn tanh(z: Operand) -> Parts {
    if z.re.is_infinite() {
        let (sin, cos) = if z.im.is_finite() { trig::sin_cos(z.im) } else { (Dd::ZERO, Dd::ONE) };
        let zero = if z.im == 0.0 { z.im } else { 0f64.copysign(sin.hi * cos.hi) };
        return exact(1f64.copysign(z.re), zero);
    }
    if !is_finite(z) {
        return if z.im == 0.0 { exact(f64::NAN, z.im) } else { NAN };
    }
    let (sin, cos) = trig::sin_cos(z.im);
    let numerator = exact_sine(z.im, sin) * Wide::from(cos);
    if z.re.abs() > 40.0 {
        // ±1, and 4 sin y cos y e^-2|x|: what they leave out is e^-2|x| of them, below the last bit.
        let decay = real::exp(Dd::product(-2.0, z.re.abs()));
        return [Wide::from(1f64.copysign(z.re)), (numerator * decay).shift(2)];
    }
    let (sinh, cosh) = real::sinh_cosh(z.re);
    let sinh_dd = sinh.to_dd();
    let denominator = Wide::from(sinh_dd * sinh_dd + cos * cos);
    [sinh * cosh / denominator, numerator / denominator]
}

pub(super) fn sine(z: Operand) -> Parts {
    over_i(sinh(times_i(z)))
}

pub(super) fn cosine(z: Operand) -> Parts {
    cosh(times_i(z))
}

pub(super) fn tan(z: Operand) -> Parts {
    over_i(tanh(times_i(z)))
}

/// sqrt(x + iy) of a finite number given in double-double, times 2^shift in the second result.
fn sqrt_dd(x: Dd, y: Dd) -> Parts {
    if x.hi == 0.0 && y.hi == 0.0 {
        return [Wide::from(0.0), Wide::from(y.hi)];
    }
    // An even exponent is taken out, so that the parts are near 1.
    let e = exponent_of(if x.hi.abs() > y.hi.abs() { x.hi } else { y.hi }) & !1;
    let scaled = |part: Dd| Dd::new(scale(part.hi, -e), scale(part.lo, -e));
    let sum = scaled(x).abs() + real::modulus(scaled(x), scaled(y)).to_dd();
    let larger = Wide::from(sum.scale(0.5).sqrt());
    let smaller = (Wide::from(y).shift(-e) / larger.shift(1)).shift(e / 2);
    let larger = larger.shift(e / 2);
    if x.hi.is_sign_negative() && x.hi != 0.0 {
        [smaller.copy_sign(1.0), larger.copy_sign(y.hi)]
    } else {
        [larger, smaller]
    }
}

pub(super) fn sqrt(z: Operand) -> Parts {
    if is_finite(z) {
        return sqrt_dd(Dd::from(z.re), Dd::from(z.im));
    }
    if z.im.is_infinite() {
        return exact(f64::INFINITY, z.im);
    }
    match z.re {
        f64::INFINITY => exact(f64::INFINITY, if z.im.is_nan() { f64::NAN } else { 0f64.copysign(z.im) }),
        f64::NEG_INFINITY if z.im.is_nan() => exact(f64::NAN, f64::INFINITY),
        f64::NEG_INFINITY => exact(0.0, f64::INFINITY.copysign(z.im)),
        _ => NAN,
    }
}

pub(super) fn rsqrt(z: Operand) -> Parts {
    if z.re == 0.0 && z.im == 0.0 {
        return exact(f64::INFINITY, f64::NAN);
    }
    if is_infinite(z) {
        return exact(0.0, 0f64.copysign(if z.im.is_nan() { -1.0 } else { -z.im }));
    }
    if !is_finite(z) {
        return NAN;
    }
    let [re, im] = sqrt(z);
    let modulus = real::modulus(Dd::from(z.re), Dd::from(z.im));
    [re / modulus, -(im / modulus)]
}

pub(super) fn cbrt(z: Operand) -> Parts {
    if z.im == 0.0 && (z.re >= 0.0 || z.re.is_nan()) {
        if z.re == 0.0 || !z.re.is_finite() {
            return exact(z.re, z.im);
        }
        let third = real::log(Wide::from(z.re)) / Dd::from(3.0);
        return [real::exp(third), Wide::from(z.im)];
    }
    if is_finite(z) {
        let modulus = real::exp(log_modulus(z).to_dd() / Dd::from(3.0));
        let angle = trig::atan2(Dd::from(z.im), Dd::from(z.re)) / Wide::from(3.0);
        let [re, im] = direction(angle);
        return [modulus * re, modulus * im];
    }
    if !is_infinite(z) || z.re.is_nan() || z.im.is_nan() {
        return NAN;
    }
    let angle = core_math::atan2(z.im, z.re) / 3.0;
    exact(f64::INFINITY * core_math::cos(angle), f64::INFINITY * core_math::sin(angle))
}

/// cos and sin.
fn direction(angle: Wide) -> Parts {
    let angle = angle.normalize();
    if angle.exponent < -60 {
        return [Wide::from(1.0), angle]; // the next terms, a^2/2 and a^3/6, are below the last bit
    }
    let (sin, cos) = trig::sin_cos_dd(angle.to_dd());
    [Wide::from(cos), Wide::from(sin)]
}

pub(super) fn power(base: Operand, exponent: Operand) -> Parts {
    if (exponent.re == 0.0 && exponent.im == 0.0) || (base.re == 1.0 && base.im == 0.0) {
        return exact(1.0, 0.0);
    }
    if base.re == 0.0 && base.im == 0.0 {
        return if exponent.re > 0.0 && exponent.im == 0.0 { exact(0.0, 0.0) } else { NAN };
    }
    if base.re == f64::INFINITY && base.im == 0.0 && exponent.im == 0.0 {
        if exponent.re > 0.0 {
            return exact(f64::INFINITY, 0.0);
        }
        if exponent.re < 0.0 {
            return exact(0.0, 0.0);
        }
    }
    let limit = power_of_two(100);
    if !(is_finite(base) && exponent.re.abs() < limit && exponent.im.abs() < limit) {
        return power_at_infinity(base, exponent);
    }
    let log = log_modulus(base).to_dd();
    let wide_angle = trig::atan2(Dd::from(base.im), Dd::from(base.re));
    let angle = wide_angle.to_dd();
    let (c, d) = (Dd::from(exponent.re), Dd::from(exponent.im));
    let modulus = real::exp(c * log - d * angle);
    // On an axis or a diagonal the angle is a multiple of a right angle: exactly, while the exponent is real.
    let [re, im] = match right_angles(base) {
        Some(count) if exponent.im == 0.0 && (exponent.re * count).abs() < power_of_two(53) => {
            // `count` has two bits: the product is exact or nearly, and then the general way is as good.
            if exponent.re.mul_add(count, -(exponent.re * count)) == 0.0 {
                let (sin, cos) = trig::sin_cos_pi(exponent.re * count);
                [Wide::from(cos), Wide::from(sin)]
            } else {
                direction(Wide::from(c) * wide_angle)
            }
        }
        _ if exponent.im == 0.0 => direction(Wide::from(c) * wide_angle),
        _ => direction(Wide::from(d * log + c * angle)),
    };
    [modulus * re, modulus * im]
}

/// The angle of a point on an axis or a diagonal in right angles.
fn right_angles(z: Operand) -> Option<f64> {
    let count = if z.im == 0.0 {
        if z.re > 0.0 { 0.0 } else { 2.0 }
    } else if z.re == 0.0 {
        1.0
    } else if z.re.abs() == z.im.abs() {
        if z.re > 0.0 { 0.5 } else { 1.5 }
    } else {
        return None;
    };
    Some(f64::copysign(count, z.im))
}

/// [`power`] in f64, where a part is infinite or so large that the result is, or is 0, or has no certain
/// angle.
fn power_at_infinity(base: Operand, exponent: Operand) -> Parts {
    let (log, angle) =
        (core_math::log(core_math::hypot(base.re, base.im)), core_math::atan2(base.im, base.re));
    let times = |x: f64, y: f64| if x == 0.0 { 0.0 } else { x * y };
    let modulus = core_math::exp(times(exponent.re, log) - times(exponent.im, angle));
    let angle = times(exponent.im, log) + times(exponent.re, angle);
    if base.re.is_nan() || base.im.is_nan() || !angle.is_finite() {
        return NAN;
    }
    exact(modulus * core_math::cos(angle), times(core_math::sin(angle), modulus))
}

pub(super) fn logistic(z: Operand) -> Parts {
    if z.re.is_infinite() {
        let (sin, cos) = if z.im.is_finite() { trig::sin_cos(z.im) } else { (Dd::ZERO, Dd::ONE) };
        let im = if z.im == 0.0 { z.im } else { 0f64.copysign(sin.hi) };
        return exact(if z.re > 0.0 { 1.0 } else { 0f64.copysign(cos.hi) }, im);
    }
    if !is_finite(z) {
        return if z.im == 0.0 { exact(f64::NAN, z.im) } else { NAN };
    }
    // With E = e^-|x|: (1 + E cos y, E sin y) / D for x >= 0 and E (E + cos y, sin y) / D for x < 0, where
    // D = |1 + E e^iy|^2 = (1 - E)^2 + 4 E cos(y/2)^2.
    let decay = real::exp(Dd::from(-z.re.abs()));
    let decay_dd = decay.to_dd();
    let one_minus = -real::exp_minus_one(Dd::from(-z.re.abs())).to_dd();
    let (sin, cos) = trig::sin_cos(z.im);
    let (_, half_cos) = trig::sin_cos(z.im * 0.5);
    let denominator = Wide::from(one_minus * one_minus + (decay_dd * half_cos * half_cos).scale(4.0));
    let im = decay * exact_sine(z.im, sin) / denominator;
    let re = if z.re >= 0.0 {
        Wide::from(Dd::ONE + decay_dd * cos) / denominator
    } else {
        decay * Wide::from(decay_dd + cos) / denominator
    };
    [re, im]
}

/// 1 + z and 1 - z have exact real parts in double-double; these are their square roots.
fn roots_about_one(z: Operand) -> [[Dd; 2]; 2] {
    let part = |(hi, lo): (f64, f64)| Dd::new(hi, lo);
    let to_dd = |parts: Parts| parts.map(Wide::to_dd);
    [
        to_dd(sqrt_dd(part(two_sum(1.0, z.re)), Dd::from(z.im))),
        to_dd(sqrt_dd(part(two_sum(1.0, -z.re)), Dd::from(-z.im))),
    ]
}

/// ln |2z| of a number so large that inverse sines and cosines are logarithms of 2z: what they are besides is
/// of the order of |z|^-2. Products of the roots of smaller ones do not overflow.
fn log_of_twice(z: Operand) -> Option<Wide> {
    let is_large = z.re.abs().max(z.im.abs()) > power_of_two(300);
    is_large.then(|| Wide::from(log_modulus(z).to_dd() + LN_2))
}

pub(super) fn asin(z: Operand) -> Parts {
    if !is_finite(z) {
        return over_i(asinh_at_infinity(times_i(z)));
    }
    if let Some(log) = log_of_twice(z) {
        return [angle(z.re, Dd::from(z.im.abs())), log.copy_sign(z.im)];
    }
    // Kahan: with the two roots no term cancels.
    let [[p, q], [r, s]] = roots_about_one(z);
    let re = trig::atan2(Dd::from(z.re), p * r - q * s);
    let im = Wide::from(real::asinh(q * r - p * s));
    [re.copy_sign(z.re), im.copy_sign(z.im)]
}

pub(super) fn asinh(z: Operand) -> Parts {
    if !is_finite(z) { asinh_at_infinity(z) } else { over_i(asin(times_i(z))) }
}

fn asinh_at_infinity(z: Operand) -> Parts {
    if is_infinite(z) {
        let im = core_math::atan2(z.im, z.re.abs());
        return exact(f64::INFINITY.copysign(z.re), im);
    }
    if z.im == 0.0 { exact(f64::NAN, z.im) } else { NAN }
}

pub(super) fn acos(z: Operand) -> Parts {
    if !is_finite(z) {
        if is_infinite(z) {
            return exact(core_math::atan2(z.im.abs(), z.re), -f64::INFINITY.copysign(z.im));
        }
        return if z.re == 0.0 { exact(std::f64::consts::FRAC_PI_2, f64::NAN) } else { NAN };
    }
    if let Some(log) = log_of_twice(z) {
        return [angle(z.im.abs(), Dd::from(z.re)), log.copy_sign(-z.im)];
    }
    let [[p, q], [r, s]] = roots_about_one(z);
    let re = trig::atan2(r.abs(), p.abs()).shift(1);
    let im = Wide::from(real::asinh(p * s - q * r));
    [re, im.copy_sign(-z.im)]
}

pub(super) fn acosh(z: Operand) -> Parts {
    if !is_finite(z) {
        if is_infinite(z) {
            return exact(f64::INFINITY, core_math::atan2(z.im, z.re));
        }
        return NAN;
    }
    if let Some(log) = log_of_twice(z) {
        return [log, angle(z.im, Dd::from(z.re))];
    }
    let part = |(hi, lo): (f64, f64)| Dd::new(hi, lo);
    let [p, q] = sqrt_dd(part(two_sum(z.re, 1.0)), Dd::from(z.im)).map(Wide::to_dd);
    let [r, s] = sqrt_dd(part(two_sum(z.re, -1.0)), Dd::from(z.im)).map(Wide::to_dd);
    let re = Wide::from(real::asinh(p * r + q * s));
    let im = trig::atan2(s, p.abs()).shift(1);
    [re.copy_sign(1.0), im.copy_sign(z.im)]
}

pub(super) fn atanh(z: Operand) -> Parts {
    let half_pi = Wide::from(PI).shift(-1).copy_sign(z.im);
    if !is_finite(z) {
        return if is_infinite(z) {
            let im = if z.im.is_nan() { Wide::from(f64::NAN) } else { half_pi };
            [Wide::from(0f64.copysign(z.re)), im]
        } else if z.re == 0.0 {
            exact(z.re, f64::NAN)
        } else {
            NAN
        };
    }
    if z.re.abs().max(z.im.abs()) > power_of_two(300) {
        // Re 1/z; all that follows is below the last bit.
        let modulus = real::modulus(Dd::from(z.re), Dd::from(z.im));
        return [Wide::from(z.re) / modulus / modulus, half_pi];
    }
    let ((x, x_low), (y, y_low)) = (two_product(z.re, z.re), two_product(z.im, z.im));
    let rest = Dd::sum(&[1.0, -x, -y, -x_low, -y_low]);
    let im = trig::atan2(Dd::from(2.0 * z.im), rest).shift(-1).copy_sign(z.im);
    let (hi, lo) = two_sum(1.0, -z.re.abs());
    if hi == 0.0 && z.im == 0.0 {
        return [Wide::from(f64::INFINITY.copysign(z.re)), im];
    }
    let distance = real::modulus(Dd::new(hi, lo), Dd::from(z.im));
    let ratio = (Wide::from(z.re.abs()) / distance / distance).shift(2).normalize();
    let log = if ratio.exponent < -120 {
        ratio // ln(1 + t) is t as far as the last bit
    } else if ratio.exponent > 200 {
        Wide::from(real::log(ratio))
    } else {
        Wide::from(real::log_plus_one(ratio.to_dd()))
    };
    [log.shift(-2).copy_sign(z.re), im]
}

/// The angle of a quotient `z = y / x` of less than 2^-19 where the principal root of `x^2 + y^2` is near `x`:
/// `atan(z) = z (1 - z^2/3 + z^4/5 - z^6/7 + ...)`, whose error is one of the result and not of 1. `None`: it
/// is larger, zero, or the root may be the other one.
fn small_angle(y: Operand, x: Operand) -> Option<Parts> {
    /// The next term, `z^8/9`, is below 2^-150.
    const MAX_EXPONENT: i32 = -20;
    /// What is nearer to the cut has the general formula, whose root may be either there.
    const MIN_COSINE_EXPONENT: i32 = -90;
    let quotient = divide(y, x);
    let exponents = quotient.iter().filter(|part| part.value.hi != 0.0).map(|part| part.normalize().exponent);
    let e = exponents.max().filter(|&e| e < MAX_EXPONENT)?;
    // `|z|^2 < Re(x) / (4 |x|)`, by exponents: the sum of squares is on the same side of the cut as `x^2`. Of
    // the left side 2^(2e + 3) is more, of the right one 2^(cosine - 3.5) less.
    let cosine = exponent_of(x.re) - exponent_of(x.re.abs().max(x.im.abs()));
    if !(x.re > 0.0 && cosine >= MIN_COSINE_EXPONENT && 2 * e + 7 <= cosine) {
        return None;
    }
    let product = |[a, b]: [Dd; 2], [c, d]: [Dd; 2]| [a * c - b * d, a * d + b * c];
    let z = quotient.map(|part| part.shift(-e).to_dd());
    let square = product(z, z).map(|part| part.scale(scale(1.0, 2 * e)));
    let inverse = |n: f64| Dd::from(1.0) / Dd::from(n);
    let inner = [inverse(5.0) - square[0] * inverse(7.0), -(square[1] * inverse(7.0))];
    let [re, im] = product(square, inner);
    let rest = product(z, product(square, [re - inverse(3.0), im]));
    let sum = |k: usize| Wide { value: z[k] + rest[k], exponent: e };
    // Of an exact zero the sign is that of larger angles.
    let im = if quotient[1].value.hi == 0.0 { Wide::from(-0.0) } else { sum(1) };
    Some([sum(0), im])
}

pub(super) fn atan2(y: Operand, x: Operand) -> Parts {
    if y.im == 0.0 && x.im == 0.0 {
        return [angle(y.re, Dd::from(x.re)), Wide::from(0.0)];
    }
    if !is_finite(x) || !is_finite(y) {
        return NAN;
    }
    if let Some(parts) = small_angle(y, x) {
        return parts;
    }
    // Both operands times one power of two leave the result.
    let largest =
        [y.re, y.im, x.re, x.im].into_iter().fold(0.0, |largest: f64, part| largest.max(part.abs()));
    let e = exponent_of(largest);
    let [a, b, c, d] = [y.re, y.im, x.re, x.im].map(|part| scale(part, -e));
    // -i ln((x + iy) / sqrt(x^2 + y^2)): the modulus of the quotient from |x + iy|^2 - |x - iy|^2 = 4 (ad -
    // bc).
    let part = |p: f64, q: f64| {
        let (hi, lo) = two_sum(p, q);
        Dd::new(hi, lo)
    };
    let (plus, minus) = ([part(c, -b), part(d, a)], [part(c, b), part(d, -a)]);
    let squared = |z: [Dd; 2]| z[0] * z[0] + z[1] * z[1];
    let (plus_squared, minus_squared) = (squared(plus), squared(minus));
    if plus_squared.hi == 0.0 || minus_squared.hi == 0.0 {
        return NAN;
    }
    let difference = sum_of_products(a, d, -b, c).to_dd().scale(4.0);
    let im = if difference.hi >= 0.0 {
        -real::log_plus_one(difference / minus_squared)
    } else {
        real::log_plus_one(-difference / plus_squared)
    };
    // Its angle.
    let square = |p: f64| two_product(p, p);
    let ((aa, aa_low), (bb, bb_low), (cc, cc_low), (dd, dd_low)) =
        (square(a), square(b), square(c), square(d));
    let re = Dd::sum(&[cc, aa, -dd, -bb, cc_low, aa_low, -dd_low, -bb_low]);
    let cross = sum_of_products(c, d, a, b).to_dd().scale(2.0);
    let [p, q] = sqrt_dd(re, cross).map(Wide::to_dd);
    let angle = trig::atan2(plus[1] * p - plus[0] * q, plus[0] * p + plus[1] * q);
    [angle, Wide::from(im.scale(0.25))]
}
