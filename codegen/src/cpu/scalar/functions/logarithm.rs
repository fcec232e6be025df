//! Logarithms of `f32`.

use super::{avx512, polynomial};
use crate::cpu::llvm::{Emit, FloatPredicate, Prim, Result, Value};
use crate::cpu::scalar::float::copysign;

/// ln 2 in 24 bits rounded down, and the rest: both positive, so that infinite exponents do not cancel.
const LN_2: [f32; 2] = [f32::from_bits(0x3f31_7217), 5.769_999e-8];
/// `(ln(1 + f) - f + f^2/2) / f^3` on `[-1/4, 1/2]`, relative to the logarithm 2^-30.
const LOG: [f64; 9] = [
    0.33333340287208557,
    -0.2500016689300537,
    0.1999957263469696,
    -0.16655197739601135,
    0.1427689492702484,
    -0.1273004412651062,
    0.11697513610124588,
    -0.09098660945892334,
    0.037514422088861465,
];
/// The pattern of 3/4: the least significand.
const LEAST: i32 = 0x3f40_0000;

/// `e ln 2 + ln(1 + f)`
fn combine<'ctx>(e: &Emit<'_, 'ctx>, exponent: Value<'ctx>, f: Value<'ctx>) -> Result<Value<'ctx>> {
    let p = e.fma(polynomial(e, f, &LOG)?, f, e.f32(-0.5))?;
    let tail = e.fma(exponent, e.f32(LN_2[1]), e.fmul(e.fmul(f, f)?, p)?)?;
    e.fma(exponent, e.f32(LN_2[0]), e.fadd(f, tail)?)
}

/// `n` with `m = x / 2^n` in `[3/4, 3/2)`, and `m`, of positive normal numbers.
fn split<'ctx>(e: &Emit<'_, 'ctx>, x: Value<'ctx>) -> Result<(Value<'ctx>, Value<'ctx>)> {
    let bits = e.bitcast(x, Prim::I32)?;
    let n = e.ashr(e.sub(bits, e.i32(LEAST))?, e.i32(23))?;
    Ok((n, e.bitcast(e.sub(bits, e.shl(n, e.i32(23))?)?, Prim::F32)?))
}

/// `ln x`
pub(super) fn log<'ctx>(e: &Emit<'_, 'ctx>, x: Value<'ctx>) -> Result<Value<'ctx>> {
    let one = e.f32(1.0);
    if let Some((width, mask)) = avx512(e) {
        // These instructions know subnormals, and make an infinite exponent of 0 and infinity, and NaN of negative numbers.
        let (interval, current) = (e.scalar().i32(0b1011), e.scalar().i32(4));
        let rounding: &[Value<'ctx>] = if width == "512" { &[current] } else { &[] };
        let name = format!("llvm.x86.avx512.mask.getmant.ps.{width}");
        let m = e.intrinsic(&name, &[], &[&[x, interval, x, mask], rounding].concat())?;
        let name = format!("llvm.x86.avx512.mask.getexp.ps.{width}");
        let exponent = e.intrinsic(&name, &[], &[&[x, x, mask], rounding].concat())?;
        // A significand of 3/2 and more was halved.
        let halved = e.fcmp(FloatPredicate::OLT, m, one)?;
        let exponent = e.select(halved, e.fadd(exponent, one)?, exponent)?;
        return combine(e, exponent, e.fsub(m, one)?);
    }
    let infinity = e.f32(f32::INFINITY);
    let subnormal = e.fcmp(FloatPredicate::OLT, x, e.f32(f32::MIN_POSITIVE))?;
    let normal = e.select(subnormal, e.fmul(x, e.f32(2f32.powi(23)))?, x)?;
    let (n, m) = split(e, normal)?;
    let n = e.sitofp(n, Prim::F32)?;
    let n = e.select(subnormal, e.fsub(n, e.f32(23.0))?, n)?;
    let result = combine(e, n, e.fsub(m, one)?)?;
    edges(e, x, e.f32(0.0), infinity, result)
}

/// -infinity where `x` is at the pole, NaN below it, infinity and NaN where it is those.
fn edges<'ctx>(
    e: &Emit<'_, 'ctx>,
    x: Value<'ctx>,
    pole: Value<'ctx>,
    infinity: Value<'ctx>,
    result: Value<'ctx>,
) -> Result<Value<'ctx>> {
    let result = e.select(e.fcmp(FloatPredicate::ULT, x, infinity)?, result, x)?;
    let result = e.select(e.fcmp(FloatPredicate::OEQ, x, pole)?, e.f32(f32::NEG_INFINITY), result)?;
    e.select(e.fcmp(FloatPredicate::ULT, x, pole)?, e.f32(f32::NAN), result)
}

/// `ln(1 + x)`: with `1 + x = 2^n m`, the reduced argument `x 2^-n + (2^-n - 1)` is rounded once.
pub(super) fn log1p<'ctx>(e: &Emit<'_, 'ctx>, x: Value<'ctx>) -> Result<Value<'ctx>> {
    let one = e.f32(1.0);
    let (n, m) = split(e, e.fadd(x, one)?)?;
    let power = e.bitcast(e.sub(e.i32(0x3f80_0000), e.shl(n, e.i32(23))?)?, Prim::F32)?;
    let f = e.fma(x, power, e.fsub(power, one)?)?;
    let large = e.fcmp(FloatPredicate::OGT, x, e.f32(2f32.powi(30)))?;
    let f = e.select(large, e.fsub(m, one)?, f)?;
    let result = combine(e, e.sitofp(n, Prim::F32)?, f)?;
    let result = edges(e, x, e.f32(-1.0), e.f32(f32::INFINITY), result)?;
    // -0 of -0.
    copysign(e, result, x)
}
