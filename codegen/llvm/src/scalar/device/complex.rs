//! Functions of complex numbers: those of the interpreter (`hlo_arithmetic::scalar::complex_math`, whose
//! documentation says what they rest on), as expressions.
//!
//! Finite operands are evaluated in double-double; operands that are not finite, signed zeros and branch cuts
//! follow C99 Annex G.

use super::angle::{atan2, atan2_f64, direction, sin_cos};
use super::dd::{Dd, Wide, sum_of_products, two_product, two_sum};
use super::ops::{Cond, Num, first};
use super::real;

/// The parts of a result.
pub(super) type Parts<'o, 'ctx> = [Wide<'o, 'ctx>; 2];

/// An operand.
#[derive(Clone, Copy)]
pub(super) struct Point<'o, 'ctx> {
    pub(super) re: Num<'o, 'ctx>,
    pub(super) im: Num<'o, 'ctx>,
}

impl<'o, 'ctx> Point<'o, 'ctx> {
    pub(super) fn is_finite(self) -> Cond<'o, 'ctx> {
        self.re.is_finite() & self.im.is_finite()
    }

    pub(super) fn is_infinite(self) -> Cond<'o, 'ctx> {
        self.re.is_infinite() | self.im.is_infinite()
    }

    /// i z.
    pub(super) fn times_i(self) -> Self {
        Self { re: -self.im, im: self.re }
    }

    fn dd(self) -> [Dd<'o, 'ctx>; 2] {
        [Dd::from(self.re), Dd::from(self.im)]
    }

    pub(super) fn modulus(self) -> Wide<'o, 'ctx> {
        let [re, im] = self.dd();
        real::modulus(re, im)
    }

    /// The larger magnitude.
    pub(super) fn largest(self) -> Num<'o, 'ctx> {
        self.re.abs().max(self.im.abs())
    }

    pub(super) fn is_zero(self) -> Cond<'o, 'ctx> {
        self.re.eq(0.0) & self.im.eq(0.0)
    }
}

pub(super) fn exact<'o, 'ctx>(re: Num<'o, 'ctx>, im: Num<'o, 'ctx>) -> Parts<'o, 'ctx> {
    [Wide::from(re), Wide::from(im)]
}

pub(super) fn nan<'o, 'ctx>(z: Point<'o, 'ctx>) -> Parts<'o, 'ctx> {
    exact(z.re.ops.nan(), z.re.ops.nan())
}

/// -i z.
pub(super) fn over_i<'o, 'ctx>([re, im]: Parts<'o, 'ctx>) -> Parts<'o, 'ctx> {
    [im, -re]
}

pub(super) fn sign<'o, 'ctx>(z: Point<'o, 'ctx>) -> Parts<'o, 'ctx> {
    let zero = z.re.ops.number(0.0);
    let hypot = real::hypot(z.re, z.im);
    let modulus = z.modulus();
    let cases = [(z.is_zero(), exact(zero, zero)), (!z.is_finite(), exact(z.re / hypot, z.im / hypot))];
    first(&cases, [Wide::from(z.re) / modulus, Wide::from(z.im) / modulus])
}

pub(super) fn exponential<'o, 'ctx>(z: Point<'o, 'ctx>) -> Parts<'o, 'ctx> {
    let ops = z.re.ops;
    let (zero, infinity) = (ops.number(0.0), ops.infinity());
    let modulus = real::exp(Dd::from(z.re));
    let [sin, cos] = sin_cos(z.im);
    let (low, high) = (z.re.eq(f64::NEG_INFINITY), z.re.eq(f64::INFINITY));
    let steady = z.im.is_finite();
    let axis = [z.re.is_finite().pick(modulus, Wide::from(low.pick(zero, z.re))), Wide::from(z.im)];
    let cases = [
        (z.im.eq(0.0), axis),
        (!steady & low, exact(zero, zero)),
        (!steady & high, exact(infinity, ops.nan())),
        (!steady | z.re.is_nan(), nan(z)),
        (low, exact(zero * cos.hi, zero * sin.hi)),
        (high, exact(infinity * cos.hi, infinity * sin.hi)),
    ];
    first(&cases, [modulus * Wide::from_dd(cos), modulus * Wide::from_dd(sin)])
}

pub(super) fn exponential_minus_one<'o, 'ctx>(z: Point<'o, 'ctx>) -> Parts<'o, 'ctx> {
    let ops = z.re.ops;
    let [re, im] = exponential(z);
    let low = z.re.eq(f64::NEG_INFINITY);
    let unbounded = [low.pick(Wide::from(ops.number(-1.0)), re), im];
    let modulus_minus_one = real::exp_minus_one(Dd::from(z.re));
    let modulus = real::exp(Dd::from(z.re));
    let [sin, cos] = sin_cos(z.im);
    let im = modulus * exact_sine(z.im, sin);
    // e^x cos y - 1 = (e^x - 1) cos y - 2 sin(y/2)^2.
    let [half_sin, _] = sin_cos(z.im * 0.5);
    let versine = (half_sin * half_sin).times(2.0);
    let signed = modulus_minus_one.copysign(z.re);
    let re = Wide::from_dd(modulus_minus_one.to_dd() * cos - versine);
    let re = versine.hi.eq(0.0).pick(signed, re);
    let cases = [
        (!z.is_finite(), unbounded),
        (z.im.eq(0.0), [signed, Wide::from(z.im)]),
        (modulus.exponent.gt(200.0), [modulus * Wide::from_dd(cos), im]),
    ];
    first(&cases, [re, im])
}

pub(super) fn log<'o, 'ctx>(z: Point<'o, 'ctx>) -> Parts<'o, 'ctx> {
    [log_modulus(z), angle(z.im, Dd::from(z.re))]
}

/// ln |z|.
pub(super) fn log_modulus<'o, 'ctx>(z: Point<'o, 'ctx>) -> Wide<'o, 'ctx> {
    let ops = z.re.ops;
    let largest = z.largest();
    // |z|^2 - 1 without cancellation.
    let (x, y) = (two_product(z.re, z.re), two_product(z.im, z.im));
    let excess = Dd::sum(&[x.hi, y.hi, ops.number(-1.0), x.lo, y.lo]);
    let near = largest.ge(0.5) & largest.lt(2.0) & excess.hi.abs().lt(0.5);
    let value = Wide::of(ops.branch(
        near,
        || Wide::from_dd(real::log_plus_one(excess).times(0.5)).flat(),
        || Wide::from_dd(real::log(z.modulus())).flat(),
    ));
    let number = |x: f64| Wide::from(ops.number(x));
    let cases = [
        (z.is_infinite(), number(f64::INFINITY)),
        (!z.is_finite(), number(f64::NAN)),
        (z.is_zero(), number(f64::NEG_INFINITY)),
    ];
    first(&cases, value)
}

/// The angle of the point (x, y), infinities and NaN as C's atan2.
fn angle<'o, 'ctx>(y: Num<'o, 'ctx>, x: Dd<'o, 'ctx>) -> Wide<'o, 'ctx> {
    let plain = Wide::from(atan2_f64(y, x.hi));
    (y.is_finite() & x.hi.is_finite()).pick(atan2(Dd::from(y), x), plain)
}

pub(super) fn log_plus_one<'o, 'ctx>(z: Point<'o, 'ctx>) -> Parts<'o, 'ctx> {
    let ops = z.re.ops;
    let shifted = two_sum(ops.number(1.0), z.re);
    let finite = z.is_finite();
    let im = finite.pick(angle(z.im, shifted), angle(z.im, Dd::from(shifted.hi)));
    let largest = z.largest();
    // x + y^2 / 2; the next term, -x^2 / 2, is below the last bit.
    let small = sum_of_products(z.re, ops.number(1.0), z.im, z.im * 0.5);
    // |1 + z|^2 - 1 without cancellation.
    let (x, y) = (two_product(z.re, z.re), two_product(z.im, z.im));
    let excess = Dd::sum(&[z.re + z.re, x.hi, y.hi, x.lo, y.lo]);
    let usual = largest.lt(f64::powi(2.0, 300));
    let far_from_pole = usual & excess.hi.gt(-0.5);
    let pole = shifted.hi.eq(0.0) & z.im.eq(0.0);
    let value = Wide::of(ops.branch(
        far_from_pole,
        || Wide::from_dd(real::log_plus_one(excess).times(0.5)).flat(),
        || Wide::from_dd(real::log(real::modulus(shifted, Dd::from(z.im)))).flat(),
    ));
    let cases = [
        (!finite, log_modulus(z)),
        (largest.lt(f64::powi(2.0, -300)), small),
        (pole, Wide::from(ops.number(f64::NEG_INFINITY))),
    ];
    [first(&cases, value), im]
}

/// sin x given its double-double: for tiny x, x itself, whose product loses nothing when it is subnormal.
fn exact_sine<'o, 'ctx>(x: Num<'o, 'ctx>, sin: Dd<'o, 'ctx>) -> Wide<'o, 'ctx> {
    Wide::from_dd(x.abs().lt(f64::powi(2.0, -60)).pick(Dd::from(x), sin))
}

pub(super) fn sinh<'o, 'ctx>(z: Point<'o, 'ctx>) -> Parts<'o, 'ctx> {
    let ops = z.re.ops;
    let [sinh, cosh] = real::sinh_cosh(z.re);
    let [sin, cos] = sin_cos(z.im);
    let kept = z.re.eq(0.0) | z.re.is_infinite();
    let cases = [
        (z.is_finite(), [sinh * Wide::from_dd(cos), cosh * exact_sine(z.im, sin)]),
        (z.im.eq(0.0), exact(z.re, z.im)),
        (!z.im.is_finite(), exact(kept.pick(z.re, ops.nan()), ops.nan())),
        (z.re.is_nan(), nan(z)),
    ];
    first(&cases, exact(z.re * cos.hi, ops.infinity() * sin.hi))
}

pub(super) fn cosh<'o, 'ctx>(z: Point<'o, 'ctx>) -> Parts<'o, 'ctx> {
    let ops = z.re.ops;
    let [sinh, cosh] = real::sinh_cosh(z.re);
    let [sin, cos] = sin_cos(z.im);
    let turning = !z.im.is_finite();
    let cases = [
        (z.is_finite(), [cosh * Wide::from_dd(cos), sinh * exact_sine(z.im, sin)]),
        (z.im.eq(0.0), exact(z.re.abs(), z.im * ops.number(1.0).copysign(z.re))),
        (z.re.eq(0.0), exact(ops.nan(), ops.number(0.0))),
        (z.re.is_infinite() & turning, exact(ops.infinity(), ops.nan())),
        (z.re.is_nan() | turning, nan(z)),
    ];
    first(&cases, exact(ops.infinity() * cos.hi, z.re * sin.hi))
}

pub(super) fn tanh<'o, 'ctx>(z: Point<'o, 'ctx>) -> Parts<'o, 'ctx> {
    let ops = z.re.ops;
    let one = ops.number(1.0);
    let [sin, cos] = sin_cos(z.im);
    let numerator = exact_sine(z.im, sin) * Wide::from_dd(cos);
    // ±1, and 4 sin y cos y e^-2|x|: what they leave out is e^-2|x| of them, below the last bit.
    let decay = real::exp(real::minus_twice(z.re));
    let saturated = [Wide::from(one.copysign(z.re)), (numerator * decay).shift(2.0)];
    let [sinh, cosh] = real::sinh_cosh(z.re);
    let sinh_dd = sinh.to_dd();
    let denominator = Wide::from_dd(sinh_dd * sinh_dd + cos * cos);
    let product = sin.hi * cos.hi;
    let zero = z.im.is_finite().pick(product, ops.number(0.0)).zero();
    let cases = [
        (z.re.is_infinite(), exact(one.copysign(z.re), z.im.eq(0.0).pick(z.im, zero))),
        (!z.is_finite() & z.im.eq(0.0), exact(ops.nan(), z.im)),
        (!z.is_finite(), nan(z)),
        (z.re.abs().gt(40.0), saturated),
    ];
    first(&cases, [sinh * cosh / denominator, numerator / denominator])
}

pub(super) fn sine<'o, 'ctx>(z: Point<'o, 'ctx>) -> Parts<'o, 'ctx> {
    over_i(sinh(z.times_i()))
}

pub(super) fn cosine<'o, 'ctx>(z: Point<'o, 'ctx>) -> Parts<'o, 'ctx> {
    cosh(z.times_i())
}

pub(super) fn tan<'o, 'ctx>(z: Point<'o, 'ctx>) -> Parts<'o, 'ctx> {
    over_i(tanh(z.times_i()))
}

/// sqrt(x + iy) of a finite number given in double-double.
pub(super) fn sqrt_dd<'o, 'ctx>(x: Dd<'o, 'ctx>, y: Dd<'o, 'ctx>) -> Parts<'o, 'ctx> {
    let ([a, b], [c, d]) = (x.flat(), y.flat());
    let [a, b, c, d, e, f] = x.hi.ops.call("dd_complex_sqrt", [a, b, c, d], |ops, [a, b, c, d]| {
        let (x, y) = (Dd { hi: a, lo: b }, Dd { hi: c, lo: d });
        // An even exponent is taken out, so that the parts are near 1.
        let half = (x.hi.abs().max(y.hi.abs()).exponent() * 0.5).floor();
        let n = half + half;
        let (scaled_x, scaled_y) = (x.scale(-n), y.scale(-n));
        let sum = scaled_x.abs() + real::modulus(scaled_x, scaled_y).to_dd();
        let larger = Wide::from_dd(sum.times(0.5).sqrt());
        let smaller = (Wide::from_dd(y).shift_by(-n) / larger.shift(1.0)).shift_by(half);
        let larger = larger.shift_by(half);
        let left = x.hi.lt(0.0);
        let mirrored = [smaller.copysign(ops.number(1.0)), larger.copysign(y.hi)];
        let zero = x.hi.eq(0.0) & y.hi.eq(0.0);
        let cases = [(zero, exact(ops.number(0.0), y.hi)), (left, mirrored)];
        let [re, im] = first(&cases, [larger, smaller]).map(Wide::flat);
        [re[0], re[1], re[2], im[0], im[1], im[2]]
    });
    [Wide::of([a, b, c]), Wide::of([d, e, f])]
}

pub(super) fn sqrt<'o, 'ctx>(z: Point<'o, 'ctx>) -> Parts<'o, 'ctx> {
    let ops = z.re.ops;
    let (infinity, none) = (ops.infinity(), ops.nan());
    let [re, im] = z.dd();
    let blind = z.im.is_nan();
    let low = z.re.eq(f64::NEG_INFINITY);
    let cases = [
        (z.is_finite(), sqrt_dd(re, im)),
        (z.im.is_infinite(), exact(infinity, z.im)),
        (z.re.eq(f64::INFINITY), exact(infinity, blind.pick(none, z.im.zero()))),
        (low & blind, exact(none, infinity)),
        (low, exact(ops.number(0.0), infinity.copysign(z.im))),
    ];
    first(&cases, nan(z))
}

pub(super) fn rsqrt<'o, 'ctx>(z: Point<'o, 'ctx>) -> Parts<'o, 'ctx> {
    let ops = z.re.ops;
    let (zero, [re, im]) = (ops.number(0.0), sqrt(z));
    let modulus = z.modulus();
    let cases = [
        (z.is_zero(), exact(ops.infinity(), ops.nan())),
        (z.is_infinite(), exact(zero, z.im.is_nan().pick(-zero, (-z.im).zero()))),
        (!z.is_finite(), nan(z)),
    ];
    first(&cases, [re / modulus, -(im / modulus)])
}

pub(super) fn cbrt<'o, 'ctx>(z: Point<'o, 'ctx>) -> Parts<'o, 'ctx> {
    let ops = z.re.ops;
    let three = Dd::constant(ops, [3.0, 0.0]);
    let [x, y] = z.dd();
    // On the positive axis that is the logarithm of the number itself, and the angle 0.
    let modulus = real::exp(log_modulus(z).to_dd() / three);
    let [re, im] = direction(atan2(y, x) / Wide::from_dd(three));
    let axis = z.im.eq(0.0) & (z.re.ge(0.0) | z.re.is_nan());
    let [sin, cos] = sin_cos(atan2_f64(z.im, z.re) / 3.0);
    let cases = [
        (axis & (z.re.eq(0.0) | !z.re.is_finite()), exact(z.re, z.im)),
        (axis, [modulus, Wide::from(z.im)]),
        (z.is_finite(), [modulus * re, modulus * im]),
        (!z.is_infinite() | z.re.is_nan() | z.im.is_nan(), nan(z)),
    ];
    first(&cases, exact(ops.infinity() * cos.hi, ops.infinity() * sin.hi))
}

pub(super) fn logistic<'o, 'ctx>(z: Point<'o, 'ctx>) -> Parts<'o, 'ctx> {
    let ops = z.re.ops;
    let (zero, one) = (ops.number(0.0), ops.number(1.0));
    // With E = e^-|x|: (1 + E cos y, E sin y) / D for x >= 0 and E (E + cos y, sin y) / D for x < 0, where
    // D = |1 + E e^iy|^2 = (1 - E)^2 + 4 E cos(y/2)^2.
    let exponent = Dd::from(-z.re.abs());
    let decay = real::exp(exponent);
    let decay_dd = decay.to_dd();
    let one_minus = -real::exp_minus_one(exponent).to_dd();
    let [sin, cos] = sin_cos(z.im);
    let [_, half_cos] = sin_cos(z.im * 0.5);
    let denominator = Wide::from_dd(one_minus * one_minus + (decay_dd * half_cos * half_cos).times(4.0));
    let im = decay * exact_sine(z.im, sin) / denominator;
    let right = Wide::from_dd(Dd::one(ops) + decay_dd * cos) / denominator;
    let left = decay * Wide::from_dd(decay_dd + cos) / denominator;
    let re = z.re.ge(0.0).pick(right, left);
    // At the ends the signs of the zeros.
    let steady = z.im.is_finite();
    let (end_sin, end_cos) = (steady.pick(sin.hi, zero), steady.pick(cos.hi, one));
    let end_im = z.im.eq(0.0).pick(z.im, end_sin.zero());
    let end = exact(z.re.gt(0.0).pick(one, end_cos.zero()), end_im);
    let cases = [
        (z.re.is_infinite(), end),
        (!z.is_finite() & z.im.eq(0.0), exact(ops.nan(), z.im)),
        (!z.is_finite(), nan(z)),
    ];
    first(&cases, [re, im])
}

/// The product, each part of it an exact sum rounded once; of operands that are not finite the plain formula.
pub(super) fn multiply<'o, 'ctx>(x: Point<'o, 'ctx>, y: Point<'o, 'ctx>) -> Parts<'o, 'ctx> {
    let plain = exact(x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re);
    let exact = [sum_of_products(x.re, y.re, -x.im, y.im), sum_of_products(x.re, y.im, x.im, y.re)];
    (x.is_finite() & y.is_finite()).pick(exact, plain)
}

/// The quotient.
pub(super) fn divide<'o, 'ctx>(a: Point<'o, 'ctx>, b: Point<'o, 'ctx>) -> Parts<'o, 'ctx> {
    let ops = a.re.ops;
    let (zero, one, infinity) = (ops.number(0.0), ops.number(1.0), ops.infinity());
    let square = sum_of_products(b.re, b.re, b.im, b.im);
    let quotient =
        [sum_of_products(a.re, b.re, a.im, b.im) / square, sum_of_products(a.im, b.re, -a.re, b.im) / square];
    // C99 Annex G: 1 with the sign for an infinite part, 0 for any other. A NaN has no sign to pass on.
    let boxed = |x: Num<'o, 'ctx>| {
        let sign = x.is_nan().pick(zero, x);
        x.is_infinite().pick(one, zero).copysign(sign)
    };
    let pole = infinity.copysign(b.re);
    let above = {
        let (re, im) = (boxed(a.re), boxed(a.im));
        exact(infinity * (re * b.re + im * b.im), infinity * (im * b.re - re * b.im))
    };
    let below = {
        let (re, im) = (boxed(b.re), boxed(b.im));
        exact(zero * (a.re * re + a.im * im), zero * (a.im * re - a.re * im))
    };
    let (finite_a, finite_b) = (a.is_finite(), b.is_finite());
    let cases = [
        (finite_a & finite_b & b.im.eq(0.0) & !b.re.eq(0.0), exact(a.re / b.re, a.im / b.re)),
        (b.is_zero(), exact(pole * a.re, pole * a.im)),
        (finite_a & finite_b, quotient),
        (a.is_infinite() & finite_b, above),
        (finite_a & b.is_infinite(), below),
    ];
    first(&cases, nan(a))
}
