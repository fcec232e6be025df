//! `a^b`: of `f32` through `f64`, whose logarithm is good enough for every exponent; of `f64` through a
//! logarithm in two parts.

use super::logarithm::split_any;
use super::{at_least, at_most, fabs, polynomial, rint, scale};
use crate::scalar::float::copysign;
use crate::{Emit, FloatPredicate, Prim, Result, Value};

/// `log2(1 + f) / f` on `[-1/4, 1/2]`, 2^-38.
const LOG2: [f64; 14] = [
    1.4426950408885892,
    -0.7213475205964408,
    0.48089834737926257,
    -0.3606737211213482,
    0.28853889406994404,
    -0.24045192693329176,
    0.20610961301441758,
    -0.18026483737468912,
    0.15992706561051787,
    -0.1447643177871371,
    0.1365951520844337,
    -0.1266679016004399,
    0.09034969241367173,
    -0.032171165360573316,
];
/// `(2^r - 1) / r` on `|r| <= 1/2`, 2^-28.
const EXP2: [f64; 6] = [
    0.6931471824645996,
    0.24022650718688965,
    0.055503588169813156,
    0.009618077427148819,
    0.0013391312677413225,
    0.00015456395340152085,
];
/// `log2((1 + s) / (1 - s)) / s` in `z = s^2 <= 0.0401`: the first two terms in two parts each, and the rest
/// divided by `z^2`, 2^-68.
const LOG2_LEADING: [[f64; 2]; 2] =
    [[2.8853900817779268, 4.0710547481862066e-17], [0.9617966939259756, 5.0577616648125907e-17]];
const LOG2_REST: [f64; 8] = [
    0.5770780163555813,
    0.4121985831133158,
    0.32059889752180626,
    0.2623082380978362,
    0.22195004177406805,
    0.19247288146225186,
    0.16722962061953497,
    0.18144588797890668,
];

/// What IEEE 754-2019 section 9.2.1 says of negative bases and of 1, where `result` is `|a|^b`.
fn of_sign<'ctx>(
    e: &Emit<'_, 'ctx>,
    a: Value<'ctx>,
    b: Value<'ctx>,
    result: Value<'ctx>,
) -> Result<Value<'ctx>> {
    let prim = e.prim_of(a);
    let (one, zero, infinity) = (e.float(prim, 1.0), e.float(prim, 0.0), e.float(prim, f64::INFINITY));
    // A negative base: odd exponents give its sign, those that are not integers no number, unless it is
    // infinite.
    let whole = rint(e, b)?;
    let integral = e.fcmp(FloatPredicate::OEQ, whole, b)?;
    let half = e.fmul(b, e.float(prim, 0.5))?;
    let odd = e.and(integral, e.fcmp(FloatPredicate::ONE, rint(e, half)?, half)?)?;
    let signed = e.select(odd, copysign(e, result, a)?, result)?;
    let negative =
        e.and(e.fcmp(FloatPredicate::OLT, a, zero)?, e.fcmp(FloatPredicate::ONE, fabs(e, a)?, infinity)?)?;
    let none = e.and(negative, e.fcmp(FloatPredicate::UNE, whole, b)?)?;
    let result = e.select(none, e.float(prim, f64::NAN), signed)?;
    let unit = e.or(e.fcmp(FloatPredicate::OEQ, a, one)?, e.fcmp(FloatPredicate::OEQ, b, zero)?)?;
    e.select(unit, one, result)
}

/// `a^b` of `f32`.
pub(super) fn power<'ctx>(e: &Emit<'_, 'ctx>, a: Value<'ctx>, b: Value<'ctx>) -> Result<Value<'ctx>> {
    let one = e.f32(1.0);
    // log2 |a|: every f32 is a normal f64.
    let wide = e.fpext(fabs(e, a)?, Prim::F64)?;
    let bits = e.bitcast(wide, Prim::I64)?;
    let n = e.ashr(e.sub(bits, e.i64(0x3fe8_0000_0000_0000))?, e.i64(52))?;
    let m = e.bitcast(e.sub(bits, e.shl(n, e.i64(52))?)?, Prim::F64)?;
    let f = e.fsub(m, e.f64(1.0))?;
    let n = e.sitofp(e.trunc(n, Prim::I32)?, Prim::F64)?;
    let log = e.fma(polynomial(e, f, &LOG2)?, f, n)?;
    let log = e.select(e.fcmp(FloatPredicate::OLT, wide, e.f64(f64::INFINITY))?, log, wide)?;
    let log = e.select(e.fcmp(FloatPredicate::OEQ, wide, e.f64(0.0))?, e.f64(f64::NEG_INFINITY), log)?;
    // A finite exponent, so that its product with the logarithm of 1 is 0.
    let exponent = at_most(e, at_least(e, e.fpext(b, Prim::F64)?, -1e40)?, 1e40)?;
    let z = at_most(e, at_least(e, e.fmul(log, exponent)?, -200.0)?, 200.0)?;
    let n = rint(e, z)?;
    let r = e.fptrunc(e.fsub(z, n)?, Prim::F32)?;
    let p = e.fma(polynomial(e, r, &EXP2)?, r, one)?;
    of_sign(e, a, b, scale(e, p, e.fptrunc(n, Prim::F32)?)?)
}

/// `log2 x` of a positive number in two parts: `n + s (C0 + C1 z + z^2 ...)` with `s = (m - 1) / (m + 1)`,
/// its square and the first two terms in two parts.
fn log2<'ctx>(e: &Emit<'_, 'ctx>, x: Value<'ctx>) -> Result<[Value<'ctx>; 2]> {
    let one = e.f64(1.0);
    let (n, m) = split_any(e, x)?;
    let f = e.fsub(m, one)?;
    let sum = e.fadd(m, one)?;
    let sum_low = e.fsub(m, e.fsub(sum, one)?)?;
    let inverse = e.fdiv(one, sum)?;
    let s = e.fmul(f, inverse)?;
    let minus = e.fneg(s)?;
    let s_low = e.fmul(e.fma(minus, sum_low, e.fma(minus, sum, f)?)?, inverse)?;

    let z = e.fmul(s, s)?;
    let z_low = e.fma(e.fadd(s, s)?, s_low, e.fma(s, s, e.fneg(z)?)?)?;
    let [[c0, c0_low], [c1, c1_low]] = LOG2_LEADING.map(|c| c.map(|x| e.f64(x)));
    let rest = e.fmul(e.fmul(z, z)?, polynomial(e, z, &LOG2_REST)?)?;
    let linear = e.fmul(z, c1)?;
    let linear_low = e.fma(z, c1, e.fneg(linear)?)?;
    let linear_low = e.fma(z_low, c1, e.fma(z, c1_low, linear_low)?)?;
    let t = e.fadd(c0, linear)?;
    let t_low = e.fadd(e.fsub(c0, t)?, linear)?;
    let t_low = e.fadd(t_low, e.fadd(e.fadd(linear_low, c0_low)?, rest)?)?;

    let product = e.fmul(s, t)?;
    let product_low = e.fma(s, t, e.fneg(product)?)?;
    let product_low = e.fma(s_low, t, e.fma(s, t_low, product_low)?)?;
    // An integer that is 0 or larger than the fraction.
    let log = e.fadd(n, product)?;
    let low = e.fadd(e.fadd(e.fsub(n, log)?, product)?, product_low)?;
    // Made disjoint.
    let high = e.fadd(log, low)?;
    Ok([high, e.fadd(e.fsub(log, high)?, low)?])
}

/// `a^b` of `f64`.
pub(super) fn power_f64<'ctx>(e: &Emit<'_, 'ctx>, a: Value<'ctx>, b: Value<'ctx>) -> Result<Value<'ctx>> {
    let (zero, infinity) = (e.f64(0.0), e.f64(f64::INFINITY));
    let magnitude = fabs(e, a)?;
    let [log, log_low] = log2(e, magnitude)?;
    // No product overflows, and every result that is no number of the type stays one.
    let exponent = at_most(e, at_least(e, b, -1e25)?, 1e25)?;
    let y = e.fmul(exponent, log)?;
    let y_low = e.fma(exponent, log_low, e.fma(exponent, log, e.fneg(y)?)?)?;
    let y = at_most(e, at_least(e, y, -1100.0)?, 1100.0)?;
    let y_low = at_most(e, at_least(e, y_low, -0.01)?, 0.01)?;
    let n = rint(e, y)?;
    let r = e.fadd(e.fsub(y, n)?, y_low)?;
    let result = super::exponential::exp2(e, r, n)?;
    // Bases that are 0 or infinite.
    let is_zero = e.fcmp(FloatPredicate::OEQ, magnitude, zero)?;
    let is_infinite = e.fcmp(FloatPredicate::OEQ, magnitude, infinity)?;
    let down = e.fcmp(FloatPredicate::OLT, b, zero)?;
    let pole = e.select(e.xor(is_zero, down)?, zero, infinity)?;
    let result = e.select(e.or(is_zero, is_infinite)?, pole, result)?;
    let result = e.select(e.fcmp(FloatPredicate::UNO, a, b)?, e.f64(f64::NAN), result)?;
    of_sign(e, a, b, result)
}
