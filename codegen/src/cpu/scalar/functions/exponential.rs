//! `e^x` and what is made of it, of `f32`.

use super::{at_least, at_most, fabs, polynomial, power_of_two, rint, scale};
use crate::cpu::llvm::{Emit, FloatPredicate, Result, Value};
use crate::cpu::scalar::float::copysign;

/// ln 2 in 16 bits, whose multiples by integers of 8 bits are exact, and the rest.
const LN_2: [f32; 2] = [0.693_145_75, 1.428_606_8e-6];
/// `(e^r - 1 - r) / r^2` on `|r| <= 0.35`, 2^-28.
const EXP: [f64; 5] =
    [0.5, 0.16666512191295624, 0.04166644811630249, 0.00836966186761856, 0.0013936636969447136];
/// The same, relative to `e^r - 1`, 2^-26.
const EXPM1: [f64; 5] = [
    0.4999999701976776,
    0.16666539013385773,
    0.04166753217577934,
    0.008367149159312248,
    0.001386274816468358,
];

/// `n` and `r` with `x = n ln 2 + r`, `|r| <= 0.35`.
fn reduce<'ctx>(e: &Emit<'_, 'ctx>, x: Value<'ctx>) -> Result<(Value<'ctx>, Value<'ctx>)> {
    let n = rint(e, e.fmul(x, e.f32(std::f32::consts::LOG2_E))?)?;
    let r = e.fma(n, e.f32(-LN_2[0]), x)?;
    Ok((n, e.fma(n, e.f32(-LN_2[1]), r)?))
}

/// `e^x`: beyond the bounds it is 0 or overflows.
pub(super) fn exp<'ctx>(e: &Emit<'_, 'ctx>, x: Value<'ctx>) -> Result<Value<'ctx>> {
    let x = at_most(e, at_least(e, x, -105.0)?, 89.0)?;
    let (n, r) = reduce(e, x)?;
    let p = polynomial(e, r, &EXP)?;
    // 1 + (r + r^2 p)
    let tail = e.fma(e.fmul(r, r)?, p, r)?;
    scale(e, e.fadd(tail, e.f32(1.0))?, n)
}

/// `2^n` and `e^r - 1` of the reduced argument.
fn parts<'ctx>(e: &Emit<'_, 'ctx>, x: Value<'ctx>) -> Result<(Value<'ctx>, Value<'ctx>)> {
    let (n, r) = reduce(e, x)?;
    let p = polynomial(e, r, &EXPM1)?;
    Ok((n, e.fma(e.fmul(r, r)?, p, r)?))
}

/// `e^x - 1 = 2^n (e^r - 1) + (2^n - 1)`, at half the scale, since `n` may be 128.
pub(super) fn expm1<'ctx>(e: &Emit<'_, 'ctx>, x: Value<'ctx>) -> Result<Value<'ctx>> {
    // Below it is -1.
    let bounded = at_most(e, at_least(e, x, -20.0)?, 89.0)?;
    let (n, q) = parts(e, bounded)?;
    let half = power_of_two(e, e.fsub(n, e.f32(1.0))?)?;
    let result = e.fma(half, q, e.fsub(half, e.f32(0.5))?)?;
    let result = e.fadd(result, result)?;
    let tiny = e.fcmp(FloatPredicate::ULT, fabs(e, x)?, e.f32(2f32.powi(-26)))?;
    e.select(tiny, x, result)
}

/// `t / (t + 2)` for `t = e^2|x| - 1`.
pub(super) fn tanh<'ctx>(e: &Emit<'_, 'ctx>, x: Value<'ctx>) -> Result<Value<'ctx>> {
    let magnitude = at_most(e, fabs(e, x)?, 10.0)?;
    let (n, q) = parts(e, e.fadd(magnitude, magnitude)?)?;
    let power = power_of_two(e, n)?;
    let t = e.fma(power, q, e.fsub(power, e.f32(1.0))?)?;
    copysign(e, e.fdiv(t, e.fadd(t, e.f32(2.0))?)?, x)
}

/// `1 / (1 + e^-x)`, or `e^x / (1 + e^x)` of a negative one.
pub(super) fn logistic<'ctx>(e: &Emit<'_, 'ctx>, x: Value<'ctx>) -> Result<Value<'ctx>> {
    let a = exp(e, e.fneg(fabs(e, x)?)?)?;
    let one = e.f32(1.0);
    let above = e.select(e.fcmp(FloatPredicate::OLT, x, e.f32(0.0))?, a, one)?;
    e.fdiv(above, e.fadd(a, one)?)
}
