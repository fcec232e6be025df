//! Functions that are not exact, on `f32` and `f64`.
//!
//! Emitted inline, without branches but for operands that are rare, and without tables in memory: reduction
//! of the argument, a polynomial fitted to the relative error (least squares, reweighted until the error is
//! level, coefficients rounded one after the other), reconstruction. Fused multiply-add is used throughout:
//! results are the same on scalars and on vectors of any width. Where roundings add up to more than two units
//! in the last place, what they took is computed and put back. Measured errors: SEMANTICS.md, "Compiled
//! elementwise code". Operands that are rare, such as huge angles, are given to the runtime
//! ([`hlo_codegen::runtime::functions`]), a lane at a time.
//!
//! The functions of `f32` that programs seldom use, and the parts of `c64`, are those of `f64` with fewer
//! terms ([`Digits::Few`]), rounded.

mod complex;
mod error_function;
mod exponential;
mod inverse;
mod logarithm;
mod pieces;
mod power;
mod roots;
mod trigonometric;

use super::device;
use crate::{Emit, FloatPredicate, Prim, Result, Value};
use hlo::elementwise::Function;
use hlo_codegen::runtime::functions::symbol;

/// How good a function of `f64` is. `f32` has one form of each, but for what is rounded to `bf16`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Digits {
    /// For results in `f64`.
    All,
    /// A relative error of 2^-31: for results that are rounded to `f32`.
    Few,
    /// Of numbers of `bf16` in `f32`, as exact as it takes for that all results are rounded to the right
    /// `bf16`.
    Bf16,
}

/// A function of one operand, of `f32` or `f64`.
pub(super) fn unary<'ctx>(
    e: &Emit<'_, 'ctx>,
    function: Function,
    x: Value<'ctx>,
    digits: Digits,
) -> Result<Value<'ctx>> {
    let prim = e.prim_of(x);
    let all = Digits::All;
    // Of `f32` in `f64`.
    let wide = |f: &dyn Fn(Value<'ctx>, Digits) -> Result<Value<'ctx>>| match prim {
        Prim::F64 => f(x, Digits::All),
        _ => e.fptrunc(f(e.fpext(x, Prim::F64)?, Digits::Few)?, Prim::F32),
    };
    match function {
        Function::Sqrt => sqrt(e, x),
        Function::Rsqrt => e.fdiv(e.float(prim, 1.0), sqrt(e, x)?),
        Function::Exponential if digits == Digits::Bf16 => exponential::exp_bf16(e, x),
        Function::Exponential => exponential::exp(e, x, all),
        Function::ExponentialMinusOne => exponential::expm1(e, x, all),
        Function::Logistic => exponential::logistic(e, x),
        Function::Tanh => exponential::tanh(e, x),
        Function::Log => logarithm::log(e, x, all),
        Function::LogPlusOne => logarithm::log1p(e, x, all),
        Function::Sine => trigonometric::sine(e, x),
        Function::Cosine => trigonometric::cosine(e, x),
        Function::Erf if prim == Prim::F64 => error_function::erf_f64(e, x),
        Function::Erf => error_function::erf(e, x),
        Function::Tan => {
            let fast = wide(&|x, digits| trigonometric::tan(e, x, digits))?;
            beyond(e, Function::Tan, x, trigonometric::limit(Prim::F64), fast)
        }
        Function::Acos => wide(&|x, digits| inverse::acos(e, x, digits)),
        Function::Acosh => wide(&|x, digits| logarithm::acosh(e, x, digits)),
        Function::Asin => wide(&|x, digits| inverse::asin(e, x, digits)),
        Function::Asinh => wide(&|x, digits| logarithm::asinh(e, x, digits)),
        Function::Atanh => wide(&|x, digits| logarithm::atanh(e, x, digits)),
        Function::Cbrt => wide(&|x, digits| roots::cbrt(e, x, digits)),
        Function::Cosh => wide(&|x, digits| exponential::cosh(e, x, digits)),
        Function::Sinh => wide(&|x, digits| exponential::sinh(e, x, digits)),
    }
}

/// `a^b`.
pub(super) fn power<'ctx>(e: &Emit<'_, 'ctx>, a: Value<'ctx>, b: Value<'ctx>) -> Result<Value<'ctx>> {
    match e.prim_of(a) {
        Prim::F64 => power::power_f64(e, a, b),
        _ => power::power(e, a, b),
    }
}

/// The angle of the point (b, a).
pub(super) fn atan2<'ctx>(e: &Emit<'_, 'ctx>, a: Value<'ctx>, b: Value<'ctx>) -> Result<Value<'ctx>> {
    if e.prim_of(a) == Prim::F64 {
        return inverse::atan2(e, a, b, Digits::All);
    }
    let angle = inverse::atan2(e, e.fpext(a, Prim::F64)?, e.fpext(b, Prim::F64)?, Digits::Few)?;
    e.fptrunc(angle, Prim::F32)
}

pub(super) use trigonometric::of_reduced_angle;

pub(super) use complex::{binary as complex_binary, modulus, sign as complex_sign, unary as complex_unary};

/// `fast`, but where `|x| > limit` what the runtime's function gives.
fn beyond<'ctx>(
    e: &Emit<'_, 'ctx>,
    function: Function,
    x: Value<'ctx>,
    limit: f64,
    fast: Value<'ctx>,
) -> Result<Value<'ctx>> {
    let prim = e.prim_of(x);
    let far = e.fcmp(FloatPredicate::OGT, fabs(e, x)?, e.float(prim, limit))?;
    let name = symbol(function.opcode(), if prim == Prim::F32 { "f32" } else { "f64" });
    let slow = |one: &Emit<'_, 'ctx>, lane: &[Value<'ctx>]| {
        let value = if one.gpu {
            device::of_angle(one, function, lane[0])?
        } else {
            one.external(&name, prim, lane)?
        };
        Ok(vec![value])
    };
    Ok(rare(e, far, &[x], &[fast], &slow)?[0])
}

/// What is computed of scalars where the fast way does not hold.
type Slow<'f, 'ctx> = &'f dyn Fn(&Emit<'_, 'ctx>, &[Value<'ctx>]) -> Result<Vec<Value<'ctx>>>;

/// `fast`, but on the lanes of `mask`, which are rare, what a function of scalars gives of the operands.
/// Lanes are gone through only if there is one.
pub(super) fn rare<'ctx>(
    e: &Emit<'_, 'ctx>,
    mask: Value<'ctx>,
    operands: &[Value<'ctx>],
    fast: &[Value<'ctx>],
    slow: Slow<'_, 'ctx>,
) -> Result<Vec<Value<'ctx>>> {
    let (one, lanes) = (e.scalar(), e.lanes_of(mask));
    let wide = e.with_lanes(lanes);
    if e.gpu && lanes > 1 {
        // Few lanes, whose registers cannot be indexed: one after the other.
        let mut all = fast.to_vec();
        for lane in 0..lanes {
            let pick = |x: &[Value<'ctx>]| x.iter().map(|&x| e.extract(x, lane)).collect::<Result<Vec<_>>>();
            let (operands, fast) = (pick(operands)?, pick(fast)?);
            let results = rare(&one, e.extract(mask, lane)?, &operands, &fast, slow)?;
            for (all, result) in all.iter_mut().zip(results) {
                *all = e.insert(*all, result, lane)?;
            }
        }
        return Ok(all);
    }
    let prim = e.prim_of(operands[0]);
    let lane_by_lane = || -> Result<Vec<Value<'ctx>>> {
        if lanes == 1 {
            return slow(&one, operands);
        }
        let spill = |x: Value<'ctx>| -> Result<Value<'ctx>> {
            let slot = one.stack(e.prim_of(x), lanes)?.into();
            wide.store(x, slot, 64)?;
            Ok(slot)
        };
        let from = operands.iter().map(|&x| spill(x)).collect::<Result<Vec<_>>>()?;
        let to = fast.iter().map(|&x| spill(x)).collect::<Result<Vec<_>>>()?;
        let set = spill(wide.zext(mask, Prim::I8)?)?;
        let at =
            |slot, prim: Prim, lane| one.address(slot, one.mul(lane, one.i64(prim.bytes().cast_signed()))?);
        one.for_range(one.i64(0), one.i64(i64::from(lanes)), one.i64(1), |lane| {
            let is_set = one.load(Prim::I8, at(set, Prim::I8, lane)?, 1)?;
            one.if_then(one.trunc(is_set, Prim::I1)?, || {
                let load = |&slot: &Value<'ctx>| one.load(prim, at(slot, prim, lane)?, prim.bytes() as u32);
                let scalars = from.iter().map(load).collect::<Result<Vec<_>>>()?;
                for (result, &slot) in slow(&one, &scalars)?.into_iter().zip(&to) {
                    let prim = one.prim_of(result);
                    one.store(result, at(slot, prim, lane)?, prim.bytes() as u32)?;
                }
                Ok(())
            })
        })?;
        fast.iter().zip(&to).map(|(x, &slot)| wide.load(e.prim_of(*x), slot, 64)).collect()
    };
    e.if_else(e.any(mask)?, lane_by_lane, || Ok(fast.to_vec()))
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
    rest.iter().rev().try_fold(e.float(prim, last), |sum, &c| e.fma(sum, x, e.float_in_memory(prim, c)?))
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

/// The AVX-512 instruction `vNAMEps` or `vNAMEpd`, whose operands `f` makes of `x`, on all lanes of `x`, by
/// registers of 64 bytes or one of 32; `None` where there is none.
fn avx512_each<'ctx>(
    e: &Emit<'_, 'ctx>,
    x: Value<'ctx>,
    name: &str,
    f: &dyn Fn(Value<'ctx>) -> Vec<Value<'ctx>>,
) -> Result<Option<Value<'ctx>>> {
    avx512_pairs(e, x, x, name, &|x, _| f(x))
}

/// The same of two operands.
fn avx512_pairs<'ctx>(
    e: &Emit<'_, 'ctx>,
    x: Value<'ctx>,
    y: Value<'ctx>,
    name: &str,
    f: &dyn Fn(Value<'ctx>, Value<'ctx>) -> Vec<Value<'ctx>>,
) -> Result<Option<Value<'ctx>>> {
    let (prim, lanes) = (e.prim_of(x), e.lanes_of(x));
    let bits = prim.bits() * lanes;
    if !has_avx512(e, x) {
        return Ok(None);
    }
    if bits == 1024 {
        let half = lanes / 2;
        let pick = |x, from: u32| e.shuffle(x, x, &(from..from + half).collect::<Vec<_>>());
        let low = avx512_pairs(e, pick(x, 0)?, pick(y, 0)?, name, f)?;
        let high = avx512_pairs(e, pick(x, half)?, pick(y, half)?, name, f)?;
        return match (low, high) {
            (Some(low), Some(high)) => e.shuffle(low, high, &(0..lanes).collect::<Vec<_>>()).map(Some),
            (_, _) => Ok(None),
        };
    }
    let mask = e.scalar().int(if lanes == 16 { Prim::I16 } else { Prim::I8 }, (1 << lanes) - 1);
    let mut operands = f(x, y);
    operands.push(mask);
    if bits == 512 {
        operands.push(e.scalar().i32(4));
    }
    let name = format!("llvm.x86.avx512.mask.{name}.{}.{bits}", if prim == Prim::F32 { "ps" } else { "pd" });
    e.intrinsic(&name, &[], &operands).map(Some)
}

/// Whether [`avx512_each`] takes it.
fn has_avx512<'ctx>(e: &Emit<'_, 'ctx>, x: Value<'ctx>) -> bool {
    let bits = e.prim_of(x).bits() * e.lanes_of(x);
    e.avx512 && matches!(bits, 256 | 512 | 1024)
}

/// `x * 2^n` of a positive `x`, for an integral `n` that leaves half of it an exponent of the type, with one
/// rounding where `1/2 <= x <= 2`.
fn scale<'ctx>(e: &Emit<'_, 'ctx>, x: Value<'ctx>, n: Value<'ctx>) -> Result<Value<'ctx>> {
    if let Some(scaled) = avx512_pairs(e, x, n, "scalef", &|x, n| vec![x, n, x])? {
        return Ok(scaled);
    }
    let prim = e.prim_of(x);
    let (int, form) = (Prim::int(prim.bits()), logarithm::layout(prim));
    let magic = e.float(prim, magic(prim));
    let whole = e.sub(e.bitcast(e.fadd(n, magic)?, int)?, e.bitcast(magic, int)?)?;
    let one = e.bitcast(e.float(prim, 1.0), int)?;
    let power = |n| e.bitcast(e.add(e.shl(n, form.shift(e))?, one)?, prim);
    // Half of it, and the rest.
    let half = match prim {
        // Without a shift of signed 64-bit integers, which there is in AVX-512 only.
        Prim::F64 => e.sext(e.ashr(e.trunc(whole, Prim::I32)?, e.i32(1))?, Prim::I64)?,
        _ => e.ashr(whole, e.i32(1))?,
    };
    product(e, e.fmul(x, power(half)?)?, power(e.sub(whole, half)?)?)
}

/// `(1 + tail) * 2^n`, rounded as a sum and, by [`scale`], once more as a product; `1/2 <= 1 + tail <= 2`.
fn scaled_sum<'ctx>(e: &Emit<'_, 'ctx>, tail: Value<'ctx>, n: Value<'ctx>) -> Result<Value<'ctx>> {
    let prim = e.prim_of(tail);
    if e.gpu || has_avx512(e, tail) {
        return scale(e, e.fadd(tail, e.float(prim, 1.0))?, n);
    }
    let (int, form) = (Prim::int(prim.bits()), logarithm::layout(prim));
    let (magic, one) = (e.float(prim, magic(prim)), e.bitcast(e.float(prim, 1.0), int)?);
    let power = |n| e.bitcast(e.add(e.shl(n, form.shift(e))?, one)?, prim);
    // `n` and half of it as the low bits of patterns, whose other bits the shift drops.
    let whole = e.bitcast(e.fadd(n, magic)?, int)?;
    let half = e.bitcast(e.fma(n, e.float(prim, 0.5), magic)?, int)?;
    // Multiplying both terms by a power of two leaves the rounding of the sum as it is, since no exponent
    // ends there.
    let first = power(half)?;
    product(e, e.fma(tail, first, first)?, power(e.sub(whole, half)?)?)
}

/// The product of positive numbers. On x86 plus 0, which changes none: on Zen 3 an addition waits for a
/// subnormal product, or for one that is too small to be a number, but not for a fused operation's result.
fn product<'ctx>(e: &Emit<'_, 'ctx>, a: Value<'ctx>, b: Value<'ctx>) -> Result<Value<'ctx>> {
    if e.x86 { e.fma(a, b, e.float(e.prim_of(a), 0.0)) } else { e.fmul(a, b) }
}

/// Added to a small number it rounds to an integer, which is then in the low bits of the pattern. (A
/// conversion to integers is poison for a NaN.)
const fn magic(prim: Prim) -> f64 {
    match prim {
        Prim::F64 => 6_755_399_441_055_744.0,
        _ => 12_582_912.0,
    }
}

/// `2^n` for integral `n` that are exponents of normal numbers; of anything else anything.
pub(super) fn power_of_two<'ctx>(e: &Emit<'_, 'ctx>, n: Value<'ctx>) -> Result<Value<'ctx>> {
    let prim = e.prim_of(n);
    let (int, form) = (Prim::int(prim.bits()), logarithm::layout(prim));
    let bits = e.bitcast(e.fadd(n, e.float(prim, magic(prim)))?, int)?;
    let one = e.bitcast(e.float(prim, 1.0), int)?;
    e.bitcast(e.add(e.shl(bits, form.shift(e))?, one)?, prim)
}

fn sqrt<'ctx>(e: &Emit<'_, 'ctx>, x: Value<'ctx>) -> Result<Value<'ctx>> {
    e.intrinsic("llvm.sqrt", &[x.get_type()], &[x])
}
