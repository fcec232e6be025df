//! Inverse functions, powers and angles of complex numbers; see [`super::complex`].

use super::super::functions::{self, Digits};
use super::angle::{PI, atan2, atan2_f64, direction, sin_cos_pi};
use super::complex::{Parts, Point, exact, log_modulus, nan, over_i, sqrt_dd};
use super::dd::{Dd, Wide, sum_of_products, two_product, two_sum};
use super::ops::{Cond, Num, first};
use super::real;
use hlo::elementwise::Function;

/// Square roots of 1 + z and 1 - z, whose real parts are exact in double-double.
fn roots_about_one<'o, 'ctx>(z: Point<'o, 'ctx>) -> [[Dd<'o, 'ctx>; 2]; 2] {
    let one = z.re.ops.number(1.0);
    [
        sqrt_dd(two_sum(one, z.re), Dd::from(z.im)).map(Wide::to_dd),
        sqrt_dd(two_sum(one, -z.re), Dd::from(-z.im)).map(Wide::to_dd),
    ]
}

/// Whether a number is so large that inverse sines and cosines are logarithms of 2z, and ln |2z|: what they are
/// besides is of the order of |z|^-2. Products of the roots of smaller ones do not overflow.
fn log_of_twice<'o, 'ctx>(z: Point<'o, 'ctx>) -> (Cond<'o, 'ctx>, Wide<'o, 'ctx>) {
    let is_large = z.is_finite() & z.largest().gt(f64::powi(2.0, 300));
    (is_large, Wide::from_dd(real::log(z.modulus().shift(1.0))))
}

/// Kahan: with the two roots no term cancels.
pub(super) fn asin<'o, 'ctx>(z: Point<'o, 'ctx>) -> Parts<'o, 'ctx> {
    let [[p, q], [r, s]] = roots_about_one(z);
    let re = atan2(Dd::from(z.re), p * r - q * s);
    let im = Wide::from_dd(real::asinh(q * r - p * s));
    let at_infinity = over_i(asinh_at_infinity(z.times_i()));
    let (is_large, log) = log_of_twice(z);
    let large = [atan2(Dd::from(z.re), Dd::from(z.im.abs())), log.copysign(z.im)];
    let cases = [(is_large, large), (z.is_finite(), [re.copysign(z.re), im.copysign(z.im)])];
    first(&cases, at_infinity)
}

pub(super) fn asinh<'o, 'ctx>(z: Point<'o, 'ctx>) -> Parts<'o, 'ctx> {
    z.is_finite().pick(over_i(asin(z.times_i())), asinh_at_infinity(z))
}

fn asinh_at_infinity<'o, 'ctx>(z: Point<'o, 'ctx>) -> Parts<'o, 'ctx> {
    let ops = z.re.ops;
    let infinite = exact(ops.infinity().copysign(z.re), atan2_f64(z.im, z.re.abs()));
    first(&[(z.is_infinite(), infinite), (z.im.eq(0.0), exact(ops.nan(), z.im))], nan(z))
}

pub(super) fn acos<'o, 'ctx>(z: Point<'o, 'ctx>) -> Parts<'o, 'ctx> {
    let ops = z.re.ops;
    let [[p, q], [r, s]] = roots_about_one(z);
    let re = atan2(r.abs(), p.abs()).shift(1.0);
    let im = Wide::from_dd(real::asinh(p * s - q * r));
    let infinite = exact(atan2_f64(z.im.abs(), z.re), -ops.infinity().copysign(z.im));
    let half_pi = ops.number(std::f64::consts::FRAC_PI_2);
    let (is_large, log) = log_of_twice(z);
    let large = [atan2(Dd::from(z.im.abs()), Dd::from(z.re)), log.copysign(-z.im)];
    let cases = [
        (is_large, large),
        (z.is_finite(), [re, im.copysign(-z.im)]),
        (z.is_infinite(), infinite),
        (z.re.eq(0.0), exact(half_pi, ops.nan())),
    ];
    first(&cases, nan(z))
}

pub(super) fn acosh<'o, 'ctx>(z: Point<'o, 'ctx>) -> Parts<'o, 'ctx> {
    let ops = z.re.ops;
    let one = ops.number(1.0);
    let [p, q] = sqrt_dd(two_sum(z.re, one), Dd::from(z.im)).map(Wide::to_dd);
    let [r, s] = sqrt_dd(two_sum(z.re, -one), Dd::from(z.im)).map(Wide::to_dd);
    let re = Wide::from_dd(real::asinh(p * r + q * s));
    let im = atan2(s, p.abs()).shift(1.0);
    let infinite = exact(ops.infinity(), atan2_f64(z.im, z.re));
    let (is_large, log) = log_of_twice(z);
    let large = [log, atan2(Dd::from(z.im), Dd::from(z.re))];
    let usual = [re.copysign(one), im.copysign(z.im)];
    first(&[(is_large, large), (z.is_finite(), usual), (z.is_infinite(), infinite)], nan(z))
}

pub(super) fn atanh<'o, 'ctx>(z: Point<'o, 'ctx>) -> Parts<'o, 'ctx> {
    let ops = z.re.ops;
    let number = |x: f64| ops.number(x);
    let half_pi = Wide::from_dd(Dd::constant(ops, PI)).shift(-1.0).copysign(z.im);
    let blind = Wide::from(ops.nan());
    let infinite = [Wide::from(z.re.zero()), z.im.is_nan().pick(blind, half_pi)];
    // Re 1/z; all that follows is below the last bit.
    let modulus = z.modulus();
    let far = [Wide::from(z.re) / modulus / modulus, half_pi];
    let (x, y) = (two_product(z.re, z.re), two_product(z.im, z.im));
    let rest = Dd::sum(&[number(1.0), -x.hi, -y.hi, -x.lo, -y.lo]);
    let im = atan2(Dd::from(z.im + z.im), rest).shift(-1.0).copysign(z.im);
    let to_pole = two_sum(number(1.0), -z.re.abs());
    let pole = [Wide::from(ops.infinity().copysign(z.re)), im];
    let distance = real::modulus(to_pole, Dd::from(z.im));
    let ratio = (Wide::from(z.re.abs()) / distance / distance).shift(2.0).normalize();
    // ln(1 + t) is t as far as the last bit.
    let small = ratio.value.hi.eq(0.0) | ratio.exponent.lt(-120.0);
    let large = Wide::from_dd(real::log(ratio));
    let usual = Wide::from_dd(real::log_plus_one(ratio.to_dd()));
    let log = first(&[(small, ratio), (ratio.exponent.gt(200.0), large)], usual);
    let cases = [
        (z.is_infinite(), infinite),
        (!z.is_finite() & z.re.eq(0.0), exact(z.re, ops.nan())),
        (!z.is_finite(), nan(z)),
        (z.largest().gt(f64::powi(2.0, 300)), far),
        (to_pole.hi.eq(0.0) & z.im.eq(0.0), pole),
    ];
    first(&cases, [log.shift(-2.0).copysign(z.re), im])
}

/// -i ln((x + iy) / sqrt(x^2 + y^2)).
pub(super) fn angle<'o, 'ctx>(y: Point<'o, 'ctx>, x: Point<'o, 'ctx>) -> Parts<'o, 'ctx> {
    let ops = y.re.ops;
    let zero = ops.number(0.0);
    let real_case = (y.re.is_finite() & x.re.is_finite())
        .pick(atan2(Dd::from(y.re), Dd::from(x.re)), Wide::from(atan2_f64(y.re, x.re)));
    // Both operands times one power of two leave the result.
    let n = -x.largest().max(y.largest()).exponent();
    let [a, b, c, d] = [y.re, y.im, x.re, x.im].map(|part| part.scale(n));
    // The modulus of the quotient from |x + iy|^2 - |x - iy|^2 = 4 (ad - bc).
    let (plus, minus) = ([two_sum(c, -b), two_sum(d, a)], [two_sum(c, b), two_sum(d, -a)]);
    let squared = |z: [Dd<'o, 'ctx>; 2]| z[0] * z[0] + z[1] * z[1];
    let (plus_squared, minus_squared) = (squared(plus), squared(minus));
    let difference = sum_of_products(a, d, -b, c).to_dd().times(4.0);
    let up = difference.hi.ge(0.0);
    let quotient = up.pick(difference, -difference) / up.pick(minus_squared, plus_squared);
    let log = real::log_plus_one(quotient);
    let im = up.pick(-log, log);
    // Its angle.
    let [aa, bb, cc, dd] = [a, b, c, d].map(|x| two_product(x, x));
    let re = Dd::sum(&[cc.hi, aa.hi, -dd.hi, -bb.hi, cc.lo, aa.lo, -dd.lo, -bb.lo]);
    let cross = sum_of_products(c, d, a, b).to_dd().times(2.0);
    let [p, q] = sqrt_dd(re, cross).map(Wide::to_dd);
    let angle = atan2(plus[1] * p - plus[0] * q, plus[0] * p + plus[1] * q);
    let cases = [
        (y.im.eq(0.0) & x.im.eq(0.0), [real_case, Wide::from(zero)]),
        (!x.is_finite() | !y.is_finite(), nan(x)),
        (plus_squared.hi.eq(0.0) | minus_squared.hi.eq(0.0), nan(x)),
    ];
    first(&cases, [angle, Wide::from_dd(im.times(0.25))])
}

pub(super) fn power<'o, 'ctx>(base: Point<'o, 'ctx>, exponent: Point<'o, 'ctx>) -> Parts<'o, 'ctx> {
    let ops = base.re.ops;
    let (zero, one, infinity) = (ops.number(0.0), ops.number(1.0), ops.infinity());
    let limit = f64::powi(2.0, 100);
    let log = log_modulus(base).to_dd();
    let wide_angle = atan2(Dd::from(base.im), Dd::from(base.re));
    let angle = wide_angle.to_dd();
    let (c, d) = (Dd::from(exponent.re), Dd::from(exponent.im));
    let is_real = exponent.im.eq(0.0);
    let modulus = real::exp(c * log - d * angle);
    // On an axis or a diagonal the angle is a multiple of a right angle: exactly, while the exponent is real.
    // `count` has two bits: the product is exact or nearly, and then the general way is as good.
    let (straight, count) = right_angles(base);
    let product = exponent.re * count;
    let certain =
        straight & is_real & product.abs().lt(f64::powi(2.0, 53)) & exponent.re.fma(count, -product).eq(0.0);
    let [sin, cos] = sin_cos_pi(product).map(Wide::from_dd);
    let general = is_real.pick(Wide::from_dd(c) * wide_angle, Wide::from_dd(d * log + c * angle));
    let [re, im] = certain.pick([cos, sin], direction(general));
    let finite = base.is_finite() & exponent.re.abs().lt(limit) & exponent.im.abs().lt(limit);
    let grows = exponent.re.gt(0.0);
    let (is_zero, at_infinity) = (base.is_zero(), base.re.eq(f64::INFINITY) & base.im.eq(0.0) & is_real);
    let cases = [
        (exponent.is_zero() | (base.re.eq(1.0) & base.im.eq(0.0)), exact(one, zero)),
        (is_zero & grows & is_real, exact(zero, zero)),
        (is_zero, nan(base)),
        (at_infinity & grows, exact(infinity, zero)),
        (at_infinity & exponent.re.lt(0.0), exact(zero, zero)),
        (finite, [modulus * re, modulus * im]),
    ];
    first(&cases, power_at_infinity(base, exponent))
}

/// Whether a point is on an axis or a diagonal, and its angle in right angles.
fn right_angles<'o, 'ctx>(z: Point<'o, 'ctx>) -> (Cond<'o, 'ctx>, Num<'o, 'ctx>) {
    let ops = z.re.ops;
    let right = z.re.gt(0.0);
    let by_side = |a: f64, b: f64| right.pick(ops.number(a), ops.number(b));
    let (on_axis, up, diagonal) = (z.im.eq(0.0), z.re.eq(0.0), z.re.abs().eq(z.im.abs()));
    let count = first(&[(on_axis, by_side(0.0, 2.0)), (up, ops.number(1.0))], by_side(0.5, 1.5));
    (on_axis | up | diagonal, count.copysign(z.im))
}

/// [`power`] in f64, where a part is infinite or so large that the result is, or is 0, or has no certain
/// angle.
fn power_at_infinity<'o, 'ctx>(base: Point<'o, 'ctx>, exponent: Point<'o, 'ctx>) -> Parts<'o, 'ctx> {
    let ops = base.re.ops;
    let function = |f: Function, x: Num<'o, 'ctx>| ops.emit(|e| functions::unary(e, f, x.value, Digits::All));
    let log = function(Function::Log, real::hypot(base.re, base.im));
    let angle = atan2_f64(base.im, base.re);
    let times = |x: Num<'o, 'ctx>, y: Num<'o, 'ctx>| x.eq(0.0).pick(ops.number(0.0), x * y);
    let modulus = function(Function::Exponential, times(exponent.re, log) - times(exponent.im, angle));
    let angle = times(exponent.im, log) + times(exponent.re, angle);
    let none = base.re.is_nan() | base.im.is_nan() | !angle.is_finite();
    let re = modulus * function(Function::Cosine, angle);
    let im = times(function(Function::Sine, angle), modulus);
    none.pick(nan(base), exact(re, im))
}
