//! Functions that are not exact, on `f32` and `f64`.
//!
//! Emitted inline, without branches but for operands that are rare, and without tables: reduction of the argument, a polynomial fitted to the relative
//! error (least squares, reweighted until the error is level, coefficients rounded one after the other), reconstruction. Fused multiply-add is used throughout: results
//! are the same on scalars and on vectors of any width. Measured errors over all 2^32 operands: SEMANTICS.md, "Compiled code". What has no code here is a call
//! of the runtime ([`crate::runtime::functions`]).

mod error_function;
mod exponential;
mod logarithm;
mod power;
mod trigonometric;

use hlo::Opcode;

use super::kind::{Binary, Function};
use crate::cpu::llvm::{Emit, FloatPredicate, Prim, Result, Value};
use crate::runtime::functions::symbol;

/// A function of one operand, of `f32` or `f64`.
pub(super) fn unary<'ctx>(e: &Emit<'_, 'ctx>, function: Function, x: Value<'ctx>) -> Result<Value<'ctx>> {
    let prim = e.prim_of(x);
    let single = prim == Prim::F32;
    match function {
        Function::Sqrt => e.intrinsic("llvm.sqrt", &[x.get_type()], &[x]),
        Function::Rsqrt => e.fdiv(e.float(prim, 1.0), e.intrinsic("llvm.sqrt", &[x.get_type()], &[x])?),
        Function::Exponential if single => exponential::exp(e, x),
        Function::ExponentialMinusOne if single => exponential::expm1(e, x),
        Function::Logistic if single => exponential::logistic(e, x),
        Function::Tanh if single => exponential::tanh(e, x),
        Function::Log if single => logarithm::log(e, x),
        Function::LogPlusOne if single => logarithm::log1p(e, x),
        Function::Sine if single => trigonometric::sine(e, x),
        Function::Cosine if single => trigonometric::cosine(e, x),
        Function::Erf if single => error_function::erf(e, x),
        Function::Acos
        | Function::Acosh
        | Function::Asin
        | Function::Asinh
        | Function::Atanh
        | Function::Cbrt
        | Function::Cosine
        | Function::Cosh
        | Function::Erf
        | Function::Exponential
        | Function::ExponentialMinusOne
        | Function::Log
        | Function::LogPlusOne
        | Function::Logistic
        | Function::Sine
        | Function::Sinh
        | Function::Tan
        | Function::Tanh => call(e, function.opcode(), prim, &[x]),
    }
}

/// `a^b`.
pub(super) fn power<'ctx>(e: &Emit<'_, 'ctx>, a: Value<'ctx>, b: Value<'ctx>) -> Result<Value<'ctx>> {
    match e.prim_of(a) {
        Prim::F32 => power::power(e, a, b),
        prim => call(e, Binary::Power.opcode(), prim, &[a, b]),
    }
}

/// The angle of the point (b, a).
pub(super) fn atan2<'ctx>(e: &Emit<'_, 'ctx>, a: Value<'ctx>, b: Value<'ctx>) -> Result<Value<'ctx>> {
    call(e, Binary::Atan2.opcode(), e.prim_of(a), &[a, b])
}

fn suffix(prim: Prim) -> &'static str {
    if prim == Prim::F32 { "f32" } else { "f64" }
}

/// Calls a function of the runtime for each lane.
fn call<'ctx>(
    e: &Emit<'_, 'ctx>,
    opcode: Opcode,
    prim: Prim,
    operands: &[Value<'ctx>],
) -> Result<Value<'ctx>> {
    let name = symbol(opcode, suffix(prim));
    e.each_lane(operands, prim, |e, lane| e.external(&name, prim, lane))
}

/// `fast`, but where `|x| > limit` what the runtime's function gives: for operands that are rare. Lanes are gone through only if there is one.
fn beyond<'ctx>(
    e: &Emit<'_, 'ctx>,
    opcode: Opcode,
    x: Value<'ctx>,
    limit: f64,
    fast: Value<'ctx>,
) -> Result<Value<'ctx>> {
    let prim = e.prim_of(x);
    let name = symbol(opcode, suffix(prim));
    let one = e.scalar();
    let far =
        |e: &Emit<'_, 'ctx>, x: Value<'ctx>| e.fcmp(FloatPredicate::OGT, fabs(e, x)?, e.float(prim, limit));
    let mask = far(e, x)?;
    let any =
        if e.lanes == 1 { mask } else { e.intrinsic("llvm.vector.reduce.or", &[mask.get_type()], &[mask])? };
    let rare = || -> Result<Vec<Value<'ctx>>> {
        if e.lanes == 1 {
            return Ok(vec![e.external(&name, prim, &[x])?]);
        }
        let (from, to) = (e.stack(prim, e.lanes)?.into(), e.stack(prim, e.lanes)?.into());
        e.store(x, from, 64)?;
        e.store(fast, to, 64)?;
        let bytes = one.i64((prim.bytes() * u64::from(e.lanes)).cast_signed());
        one.for_range(one.i64(0), bytes, one.i64(prim.bytes().cast_signed()), |offset| {
            let lane = one.load(prim, one.address(from, offset)?, prim.bytes() as u32)?;
            one.if_then(far(&one, lane)?, || {
                let result = one.external(&name, prim, &[lane])?;
                one.store(result, one.address(to, offset)?, prim.bytes() as u32).map(|_| ())
            })
        })?;
        Ok(vec![e.load(prim, to, 64)?])
    };
    Ok(e.if_else(any, rare, || Ok(vec![fast]))?[0])
}

fn fabs<'ctx>(e: &Emit<'_, 'ctx>, x: Value<'ctx>) -> Result<Value<'ctx>> {
    e.intrinsic("llvm.fabs", &[x.get_type()], &[x])
}

fn rint<'ctx>(e: &Emit<'_, 'ctx>, x: Value<'ctx>) -> Result<Value<'ctx>> {
    e.intrinsic("llvm.roundeven", &[x.get_type()], &[x])
}

/// `c[0] + c[1] x + c[2] x^2 + ...`
fn polynomial<'ctx>(e: &Emit<'_, 'ctx>, x: Value<'ctx>, c: &[f64]) -> Result<Value<'ctx>> {
    let prim = e.prim_of(x);
    let (&last, rest) = c.split_last().expect("invariant: a polynomial has coefficients");
    rest.iter().rev().try_fold(e.float(prim, last), |sum, &c| e.fma(sum, x, e.float(prim, c)))
}

/// `x`, but `low` below it; a NaN stays. One instruction on x86.
fn at_least<'ctx>(e: &Emit<'_, 'ctx>, x: Value<'ctx>, low: f64) -> Result<Value<'ctx>> {
    let low = e.float(e.prim_of(x), low);
    e.select(e.fcmp(FloatPredicate::OGT, low, x)?, low, x)
}

/// `x`, but `high` above it; a NaN stays. One instruction on x86.
fn at_most<'ctx>(e: &Emit<'_, 'ctx>, x: Value<'ctx>, high: f64) -> Result<Value<'ctx>> {
    let high = e.float(e.prim_of(x), high);
    e.select(e.fcmp(FloatPredicate::OLT, high, x)?, high, x)
}

/// The suffix of AVX-512 intrinsics for vectors of `f32` on these lanes and the type of their masks; `None` where there are none.
fn avx512<'ctx>(e: &Emit<'_, 'ctx>) -> Option<(&'static str, Value<'ctx>)> {
    match e.lanes {
        _ if !e.avx512 => None,
        16 => Some(("512", e.scalar().int(Prim::I16, 0xffff))),
        8 => Some(("256", e.scalar().int(Prim::I8, 0xff))),
        _ => None,
    }
}

/// `x * 2^n` for an integral `n` in `[-252, 254]`, with one rounding where `1/2 <= |x| <= 2`.
fn scale<'ctx>(e: &Emit<'_, 'ctx>, x: Value<'ctx>, n: Value<'ctx>) -> Result<Value<'ctx>> {
    if let Some((width, mask)) = avx512(e) {
        let name = format!("llvm.x86.avx512.mask.scalef.ps.{width}");
        let current = e.scalar().i32(4);
        let rounding: &[Value<'ctx>] = if width == "512" { &[current] } else { &[] };
        return e.intrinsic(&name, &[], &[&[x, n, x, mask], rounding].concat());
    }
    let whole =
        e.sub(e.bitcast(e.fadd(n, e.f32(MAGIC))?, Prim::I32)?, e.i32(MAGIC.to_bits().cast_signed()))?;
    let half = e.ashr(whole, e.i32(1))?;
    let power = |n| e.bitcast(e.shl(e.add(n, e.i32(127))?, e.i32(23))?, Prim::F32);
    e.fmul(e.fmul(x, power(half)?)?, power(e.sub(whole, half)?)?)
}

/// Added to a small number it rounds to an integer, which is then in the low bits of the pattern. (A conversion to integers is poison for a NaN.)
const MAGIC: f32 = 12_582_912.0;

/// `2^n` for integral `n` in `[-126, 127]`; of anything else anything.
fn power_of_two<'ctx>(e: &Emit<'_, 'ctx>, n: Value<'ctx>) -> Result<Value<'ctx>> {
    let bits = e.bitcast(e.fadd(n, e.f32(MAGIC))?, Prim::I32)?;
    e.bitcast(e.add(e.shl(bits, e.i32(23))?, e.i32(0x3f80_0000))?, Prim::F32)
}
