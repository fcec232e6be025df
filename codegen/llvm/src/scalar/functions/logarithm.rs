//! Logarithms, and the inverse hyperbolic functions, which are logarithms.

use super::{Digits, avx512_each, fabs, has_avx512, polynomial, sqrt};
use crate::scalar::float::copysign;
use crate::{Emit, FloatPredicate, IntPredicate, Prim, Result, Value};

/// Of `f32`: ln 2 in 24 bits rounded down, and the rest: both positive, so that infinite exponents do not
/// cancel.
const LN_2_F32: [f64; 2] = [0.693_147_122_859_954_8, 5.769_999_7e-8];
/// The same of `f64`.
const LN_2: [f64; 2] = [std::f64::consts::LN_2, 2.319_046_813_846_299_6e-17];
/// `(ln(1 + f) - f + f^2/2) / f^3` on `[-1/4, 1/2]`, relative to the logarithm 2^-30.
const LOG_F32: [f64; 9] = [
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
/// `(ln((1 + s) / (1 - s)) / s - 2) / s^2` in `s^2`, on `s^2 <= 0.0401`, relative to the logarithm 2^-62.
const LOG: [f64; 8] = [
    0.666666666666666,
    0.4000000000005694,
    0.28571428555769784,
    0.22222224302698096,
    0.18181665519104598,
    0.1539112319233834,
    0.1317341540449789,
    0.13844257168525984,
];
/// The same, 2^-35.
const LOG_FEW: [f64; 4] = [0.6666666305876031, 0.40000867482293767, 0.285067935919356, 0.24103478569653783];

/// The bit fields of a float.
#[derive(Clone, Copy)]
pub(super) struct Layout {
    int: Prim,
    fraction: u32,
    /// The pattern of 3/4: the least significand.
    least: u64,
    /// The least normal number.
    normal: f64,
}

impl Layout {
    /// How far the exponent is from the low end.
    pub(super) fn shift<'ctx>(&self, e: &Emit<'_, 'ctx>) -> Value<'ctx> {
        e.int(self.int, u64::from(self.fraction))
    }
}

pub(super) const fn layout(prim: Prim) -> Layout {
    match prim {
        Prim::F64 => {
            Layout { int: Prim::I64, fraction: 52, least: 0x3fe8_0000_0000_0000, normal: f64::MIN_POSITIVE }
        }
        _ => Layout { int: Prim::I32, fraction: 23, least: 0x3f40_0000, normal: f32::MIN_POSITIVE as f64 },
    }
}

/// `e ln 2 + ln(1 + f + low)`. Of `f64` as FDLIBM's: `f - (f^2/2 - s (f^2/2 + R))`, `s = f / (2 + f)`.
pub(super) fn combine<'ctx>(
    e: &Emit<'_, 'ctx>,
    exponent: Value<'ctx>,
    f: Value<'ctx>,
    low: Option<Value<'ctx>>,
    digits: Digits,
) -> Result<Value<'ctx>> {
    if e.prim_of(f) == Prim::F32 {
        let ln_2 = LN_2_F32.map(|x| e.float(Prim::F32, x));
        let p = e.fma(polynomial(e, f, &LOG_F32)?, f, e.f32(-0.5))?;
        let tail = e.fma(exponent, ln_2[1], e.fmul(e.fmul(f, f)?, p)?)?;
        return e.fma(exponent, ln_2[0], e.fadd(f, tail)?);
    }
    let terms: &[f64] = if digits == Digits::All { &LOG } else { &LOG_FEW };
    let s = e.fdiv(f, e.fadd(f, e.f64(2.0))?)?;
    let z = e.fmul(s, s)?;
    let half = e.fmul(e.fmul(f, f)?, e.f64(0.5))?;
    let with_r = e.fma(polynomial(e, z, terms)?, z, half)?;
    let mut tail = e.fma(exponent, e.f64(LN_2[1]), e.fmul(s, with_r)?)?;
    if let Some(low) = low {
        tail = e.fadd(tail, low)?;
    }
    let log = e.fsub(f, e.fsub(half, tail)?)?;
    e.fma(exponent, e.f64(LN_2[0]), log)
}

/// `n`, an integer, with `m = x / 2^n` in `[3/4, 3/2)`, and `m`, of positive normal numbers.
pub(super) fn split<'ctx>(e: &Emit<'_, 'ctx>, x: Value<'ctx>) -> Result<(Value<'ctx>, Value<'ctx>)> {
    let prim = e.prim_of(x);
    let form = layout(prim);
    let fraction = e.int(form.int, u64::from(form.fraction));
    let bits = e.bitcast(x, form.int)?;
    let n = e.ashr(e.sub(bits, e.int(form.int, form.least))?, fraction)?;
    Ok((n, e.bitcast(e.sub(bits, e.shl(n, fraction)?)?, prim)?))
}

/// An integer as a float; it fits into 32 bits.
pub(super) fn to_float<'ctx>(e: &Emit<'_, 'ctx>, n: Value<'ctx>, prim: Prim) -> Result<Value<'ctx>> {
    e.sitofp(e.trunc(n, Prim::I32)?, prim)
}

/// [`split`] of any positive number, `n` as a float. With AVX-512 of 0 and infinity `n` is infinite and `m`
/// 1, and of negative numbers they are NaN; otherwise of what is not positive and finite anything.
pub(super) fn split_any<'ctx>(e: &Emit<'_, 'ctx>, x: Value<'ctx>) -> Result<(Value<'ctx>, Value<'ctx>)> {
    let prim = e.prim_of(x);
    // The fraction between 3/4 and 3/2, NaN of negative numbers.
    let interval = e.scalar().i32(0b1011);
    let m = avx512_each(e, x, "getmant", &|x| vec![x, interval, x])?;
    let exponent = avx512_each(e, x, "getexp", &|x| vec![x, x])?;
    if let (Some(m), Some(exponent)) = (m, exponent) {
        let one = e.float(prim, 1.0);
        // A significand of 3/2 and more was halved.
        let halved = e.fcmp(FloatPredicate::OLT, m, one)?;
        return Ok((e.select(halved, e.fadd(exponent, one)?, exponent)?, m));
    }
    let form = layout(prim);
    let subnormal = e.fcmp(FloatPredicate::OLT, x, e.float(prim, form.normal))?;
    let bits = form.fraction.cast_signed();
    let normal = e.select(subnormal, e.fmul(x, e.float(prim, 2f64.powi(bits)))?, x)?;
    let (n, m) = split(e, normal)?;
    let n = to_float(e, n, prim)?;
    Ok((e.select(subnormal, e.fsub(n, e.float(prim, f64::from(bits)))?, n)?, m))
}

/// `ln x`
pub(super) fn log<'ctx>(e: &Emit<'_, 'ctx>, x: Value<'ctx>, digits: Digits) -> Result<Value<'ctx>> {
    let prim = e.prim_of(x);
    let (n, m) = split_any(e, x)?;
    let result = combine(e, n, e.fsub(m, e.float(prim, 1.0))?, None, digits)?;
    if has_avx512(e, x) {
        return Ok(result);
    }
    edges(e, x, 0.0, result)
}

/// -infinity where `x` is at the pole, NaN below it, infinity and NaN where it is those.
fn edges<'ctx>(e: &Emit<'_, 'ctx>, x: Value<'ctx>, pole: f64, result: Value<'ctx>) -> Result<Value<'ctx>> {
    let prim = e.prim_of(x);
    let (pole, infinity) = (e.float(prim, pole), e.float(prim, f64::INFINITY));
    let result = e.select(e.fcmp(FloatPredicate::ULT, x, infinity)?, result, x)?;
    let result = e.select(e.fcmp(FloatPredicate::OEQ, x, pole)?, e.float(prim, f64::NEG_INFINITY), result)?;
    e.select(e.fcmp(FloatPredicate::ULT, x, pole)?, e.float(prim, f64::NAN), result)
}

/// `ln sqrt(a^2 + b^2)` for `|a| >= |b|` of `f64` whose squares neither overflow nor vanish; with few digits
/// numbers of `f32`.
pub(super) fn log_of_modulus<'ctx>(
    e: &Emit<'_, 'ctx>,
    a: Value<'ctx>,
    b: Value<'ctx>,
    narrow: bool,
    digits: Digits,
) -> Result<Value<'ctx>> {
    let one = e.f64(1.0);
    let log = if narrow {
        // The larger square is exact, and close to 1 what it lacks too.
        let square = e.fmul(b, b)?;
        let (n, m) = split(e, e.fma(a, a, square)?)?;
        let near = e.icmp(IntPredicate::EQ, n, e.i64(0))?;
        let f = e.fadd(e.fma(a, a, e.f64(-1.0))?, square)?;
        let f = e.select(near, f, e.fsub(m, one)?)?;
        combine(e, to_float(e, n, Prim::F64)?, f, None, digits)?
    } else {
        let ([p, p_low], [q, q_low]) = (two_product(e, a, a)?, two_product(e, b, b)?);
        let [sum, low] = two_sum(e, p, q)?;
        let low = e.fadd(low, e.fadd(p_low, q_low)?)?;
        let (n, m) = split(e, sum)?;
        let low = e.fdiv(e.fmul(low, inverse_power(e, n, Prim::F64)?)?, m)?;
        combine(e, to_float(e, n, Prim::F64)?, e.fsub(m, one)?, Some(low), digits)?
    };
    e.fmul(log, e.f64(0.5))
}

/// `2^-n` of an integer of the width of the float, which may be one below the least normal exponent: then
/// anything.
fn inverse_power<'ctx>(e: &Emit<'_, 'ctx>, n: Value<'ctx>, prim: Prim) -> Result<Value<'ctx>> {
    let form = layout(prim);
    let one = e.bitcast(e.float(prim, 1.0), form.int)?;
    e.bitcast(e.sub(one, e.shl(n, e.int(form.int, u64::from(form.fraction)))?)?, prim)
}

/// `ln(1 + x)`: with `1 + x = 2^n m`, the reduced argument `x 2^-n + (2^-n - 1)` is rounded once.
pub(super) fn log1p<'ctx>(e: &Emit<'_, 'ctx>, x: Value<'ctx>, digits: Digits) -> Result<Value<'ctx>> {
    let prim = e.prim_of(x);
    let one = e.float(prim, 1.0);
    let (n, m) = split(e, e.fadd(x, one)?)?;
    let power = inverse_power(e, n, prim)?;
    let f = e.fma(x, power, e.fsub(power, one)?)?;
    let large = e.fcmp(FloatPredicate::OGT, x, e.float(prim, LARGE))?;
    let f = e.select(large, e.fsub(m, one)?, f)?;
    let result = combine(e, to_float(e, n, prim)?, f, None, digits)?;
    let result = edges(e, x, -1.0, result)?;
    // -0 of -0.
    copysign(e, result, x)
}

/// Beyond it `1 + x` is `x`.
const LARGE: f64 = 1.152_921_504_606_847e18;

/// The sum and what its rounding took.
pub(super) fn two_sum<'ctx>(e: &Emit<'_, 'ctx>, a: Value<'ctx>, b: Value<'ctx>) -> Result<[Value<'ctx>; 2]> {
    let sum = e.fadd(a, b)?;
    let part = e.fsub(sum, a)?;
    Ok([sum, e.fadd(e.fsub(a, e.fsub(sum, part)?)?, e.fsub(b, part)?)?])
}

/// `ln(1 + x + low)` for finite `x >= 0`, plus ln 2 where `x` is large and the mask says so.
fn log1p_of_two<'ctx>(
    e: &Emit<'_, 'ctx>,
    [x, low]: [Value<'ctx>; 2],
    doubled: Option<Value<'ctx>>,
) -> Result<Value<'ctx>> {
    let one = e.f64(1.0);
    let (n, m) = split(e, e.fadd(x, one)?)?;
    let power = inverse_power(e, n, Prim::F64)?;
    let [f, rest] = two_sum(e, e.fmul(x, power)?, e.fsub(power, one)?)?;
    let rest = e.fma(low, power, rest)?;
    let large = e.fcmp(FloatPredicate::OGT, x, e.f64(LARGE))?;
    let (f, rest) = (e.select(large, e.fsub(m, one)?, f)?, e.select(large, e.f64(0.0), rest)?);
    let mut exponent = to_float(e, n, Prim::F64)?;
    if let Some(mask) = doubled {
        exponent = e.select(mask, e.fadd(exponent, one)?, exponent)?;
    }
    // ln(1 + f + rest) = ln(1 + f) + rest / (1 + f)
    combine(e, exponent, f, Some(e.fdiv(rest, e.fadd(one, f)?)?), Digits::All)
}

/// `ln(1 + x)`, plus ln 2 where the mask says so.
fn log1p_or_double<'ctx>(
    e: &Emit<'_, 'ctx>,
    x: Value<'ctx>,
    doubled: Value<'ctx>,
    digits: Digits,
) -> Result<Value<'ctx>> {
    let more = e.select(doubled, e.f64(std::f64::consts::LN_2), e.f64(0.0))?;
    e.fadd(log1p(e, x, digits)?, more)
}

/// The product and what its rounding took.
pub(super) fn two_product<'ctx>(
    e: &Emit<'_, 'ctx>,
    a: Value<'ctx>,
    b: Value<'ctx>,
) -> Result<[Value<'ctx>; 2]> {
    let product = e.fmul(a, b)?;
    Ok([product, e.fma(a, b, e.fneg(product)?)?])
}

/// The square root of a sum of two, in two parts; 0 of 0.
pub(super) fn root<'ctx>(e: &Emit<'_, 'ctx>, [x, low]: [Value<'ctx>; 2]) -> Result<[Value<'ctx>; 2]> {
    let root = sqrt(e, x)?;
    let rest = e.fadd(e.fma(e.fneg(root)?, root, x)?, low)?;
    let rest = e.fdiv(rest, e.fadd(root, root)?)?;
    let zero = e.fcmp(FloatPredicate::OEQ, root, e.f64(0.0))?;
    Ok([root, e.select(zero, e.f64(0.0), rest)?])
}

/// Of `f64` operands, as the other inverse hyperbolic functions: `ln(1 + |x| + x^2 / (1 + sqrt(1 + x^2)))`,
/// of large ones `ln 2|x|`.
pub(super) fn asinh<'ctx>(e: &Emit<'_, 'ctx>, x: Value<'ctx>, digits: Digits) -> Result<Value<'ctx>> {
    let (one, infinity) = (e.f64(1.0), e.f64(f64::INFINITY));
    let magnitude = fabs(e, x)?;
    let large = e.fcmp(FloatPredicate::OGT, magnitude, e.f64(LARGE))?;
    let a = e.select(large, one, magnitude)?;
    if digits == Digits::Few {
        let square = e.fmul(a, a)?;
        let quotient = e.fdiv(square, e.fadd(one, sqrt(e, e.fadd(square, one)?)?)?)?;
        let u = e.select(large, magnitude, e.fadd(a, quotient)?)?;
        return copysign(e, log1p_or_double(e, u, large, digits)?, x);
    }
    let [square, square_low] = two_product(e, a, a)?;
    let [sum, sum_low] = two_sum(e, one, square)?;
    let [r, r_low] = root(e, [sum, e.fadd(sum_low, square_low)?])?;
    let [below, below_low] = two_sum(e, one, r)?;
    let below_low = e.fadd(below_low, r_low)?;
    let quotient = e.fdiv(square, below)?;
    let rest = e.fadd(e.fma(e.fneg(quotient)?, below, square)?, square_low)?;
    let rest = e.fdiv(e.fma(e.fneg(quotient)?, below_low, rest)?, below)?;
    let [u, u_low] = two_sum(e, a, quotient)?;
    let (u, u_low) = (e.select(large, magnitude, u)?, e.fadd(u_low, rest)?);
    let result = log1p_of_two(e, [u, u_low], Some(large))?;
    let tiny = e.fcmp(FloatPredicate::OLT, magnitude, e.f64(2f64.powi(-30)))?;
    // x - x^3/6
    let cubed = e.fma(e.fmul(square, e.f64(-1.0 / 6.0))?, a, a)?;
    let result = e.select(tiny, cubed, result)?;
    let result = e.select(e.fcmp(FloatPredicate::ULT, magnitude, infinity)?, result, magnitude)?;
    copysign(e, result, x)
}

/// `ln(1 + t + sqrt(t (t + 2)))` for `t = x - 1`, of large ones `ln 2x`.
pub(super) fn acosh<'ctx>(e: &Emit<'_, 'ctx>, x: Value<'ctx>, digits: Digits) -> Result<Value<'ctx>> {
    let (one, infinity) = (e.f64(1.0), e.f64(f64::INFINITY));
    let large = e.fcmp(FloatPredicate::OGT, x, e.f64(LARGE))?;
    let a = e.select(large, one, x)?;
    let t = e.fsub(a, one)?;
    if digits == Digits::Few {
        let r = sqrt(e, e.fmul(t, e.fadd(a, one)?)?)?;
        let u = e.select(large, x, e.fadd(t, r)?)?;
        let result = log1p_or_double(e, u, large, digits)?;
        return e.select(e.fcmp(FloatPredicate::OLT, x, one)?, e.f64(f64::NAN), result);
    }
    let [above, above_low] = two_sum(e, a, one)?;
    let [product, product_low] = two_product(e, t, above)?;
    let [r, r_low] = root(e, [product, e.fma(t, above_low, product_low)?])?;
    let [u, u_low] = two_sum(e, t, r)?;
    let (u, u_low) = (e.select(large, x, u)?, e.fadd(u_low, r_low)?);
    let result = log1p_of_two(e, [u, u_low], Some(large))?;
    let result = e.select(e.fcmp(FloatPredicate::ULT, x, infinity)?, result, x)?;
    e.select(e.fcmp(FloatPredicate::OLT, x, one)?, e.f64(f64::NAN), result)
}

/// `ln(1 + 2|x| / (1 - |x|)) / 2`
pub(super) fn atanh<'ctx>(e: &Emit<'_, 'ctx>, x: Value<'ctx>, digits: Digits) -> Result<Value<'ctx>> {
    let one = e.f64(1.0);
    let magnitude = fabs(e, x)?;
    if digits == Digits::Few {
        let quotient = e.fdiv(e.fadd(magnitude, magnitude)?, e.fsub(one, magnitude)?)?;
        // Beyond 1 it is less than -1.
        return copysign(e, e.fmul(log1p(e, quotient, digits)?, e.f64(0.5))?, x);
    }
    let [below, below_low] = two_sum(e, one, e.fneg(magnitude)?)?;
    let inverse = e.fdiv(one, below)?;
    let above = e.fadd(magnitude, magnitude)?;
    let quotient = e.fmul(above, inverse)?;
    let rest = e.fma(e.fneg(quotient)?, below, above)?;
    let rest = e.fmul(e.fma(e.fneg(quotient)?, below_low, rest)?, inverse)?;
    let result = e.fmul(log1p_of_two(e, [quotient, rest], None)?, e.f64(0.5))?;
    let result = e.select(
        e.fcmp(FloatPredicate::OLT, magnitude, e.f64(2f64.powi(-30)))?,
        e.fma(e.fmul(e.fmul(magnitude, magnitude)?, e.f64(1.0 / 3.0))?, magnitude, magnitude)?,
        result,
    )?;
    let pole = e.fcmp(FloatPredicate::OEQ, magnitude, one)?;
    let result = e.select(pole, e.f64(f64::INFINITY), result)?;
    let inside = e.fcmp(FloatPredicate::OLE, magnitude, one)?;
    copysign(e, e.select(inside, result, e.f64(f64::NAN))?, x)
}
