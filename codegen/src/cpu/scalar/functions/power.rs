//! `a^b` of `f32`: through `f64`, whose logarithm is good enough for every exponent.

use super::{at_least, at_most, fabs, polynomial, rint, scale};
use crate::cpu::llvm::{Emit, FloatPredicate, Prim, Result, Value};
use crate::cpu::scalar::float::copysign;

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

/// `a^b`, with the special values of IEEE 754-2019 section 9.2.1.
pub(super) fn power<'ctx>(e: &Emit<'_, 'ctx>, a: Value<'ctx>, b: Value<'ctx>) -> Result<Value<'ctx>> {
    let (one, zero, infinity) = (e.f32(1.0), e.f32(0.0), e.f32(f32::INFINITY));
    let magnitude = fabs(e, a)?;
    // log2 |a|: every f32 is a normal f64.
    let wide = e.fpext(magnitude, Prim::F64)?;
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
    let result = scale(e, p, e.fptrunc(n, Prim::F32)?)?;
    // A negative base: odd exponents give its sign, those that are not integers no number, unless it is infinite.
    let integral = e.fcmp(FloatPredicate::OEQ, rint(e, b)?, b)?;
    let half = e.fmul(b, e.f32(0.5))?;
    let odd = e.and(integral, e.fcmp(FloatPredicate::ONE, rint(e, half)?, half)?)?;
    let signed = e.select(odd, copysign(e, result, a)?, result)?;
    let negative =
        e.and(e.fcmp(FloatPredicate::OLT, a, zero)?, e.fcmp(FloatPredicate::ONE, magnitude, infinity)?)?;
    let none = e.and(negative, e.fcmp(FloatPredicate::UNE, rint(e, b)?, b)?)?;
    let result = e.select(none, e.f32(f32::NAN), signed)?;
    let unit = e.or(e.fcmp(FloatPredicate::OEQ, a, one)?, e.fcmp(FloatPredicate::OEQ, b, zero)?)?;
    e.select(unit, one, result)
}
