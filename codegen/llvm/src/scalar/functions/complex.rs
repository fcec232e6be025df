//! Functions of complex numbers: the formulas for finite operands of usual magnitude; all others, and so all
//! special values, are given to the runtime.
//!
//! Parts of `c64` are computed in `f64`, where nothing in their range over- or underflows, and rounded once.
//! Errors are measured by the modulus of a result: within the cap of the table of opcodes. What has no
//! formula here is a call of the runtime for each lane.

use hlo::{ElementType, Opcode};

use super::exponential::{exp, expm1, sinh_cosh};
use super::inverse::atan2;
use super::logarithm::{log_of_modulus, log1p};
use super::trigonometric::{limit, sine_cosine};
use super::{Digits, at_least, at_most, fabs, rare, sqrt};
use crate::scalar::complex::Operation;
use crate::scalar::device;
use crate::scalar::float::copysign;
use crate::{Emit, FloatPredicate, Prim, Result, Value};
use hlo::elementwise::{Binary, Function};
use hlo_codegen::runtime::functions::symbol;

/// Both parts.
type Pair<'ctx> = [Value<'ctx>; 2];

/// What is computed with: `f64`, of `f32` parts if narrow.
#[derive(Clone, Copy)]
struct Format {
    narrow: bool,
    digits: Digits,
    /// Squares and products of parts between these are normal numbers, whose last places are too.
    range: [f64; 2],
}

const NARROW: Format = Format { narrow: true, digits: Digits::Few, range: [0.0, f64::INFINITY] };
const WIDE: Format = Format {
    narrow: false,
    digits: Digits::All,
    range: [3.872_591_914_849_318e-121, 2.582_249_878_086_908_6e120],
};

fn format(ty: ElementType) -> Format {
    if ty == ElementType::C64 { NARROW } else { WIDE }
}

/// The formula, and the lanes where it holds.
struct Fast<'ctx> {
    value: Pair<'ctx>,
    holds: Value<'ctx>,
}

fn below<'ctx>(e: &Emit<'_, 'ctx>, x: Value<'ctx>, limit: f64) -> Result<Value<'ctx>> {
    e.fcmp(FloatPredicate::OLT, x, e.f64(limit))
}

/// The magnitudes of the parts, the larger one first, and where they are in range. A NaN is in none.
fn ordered<'ctx>(
    e: &Emit<'_, 'ctx>,
    [a, b]: Pair<'ctx>,
    format: Format,
) -> Result<(Pair<'ctx>, Value<'ctx>)> {
    let (a, b) = (fabs(e, a)?, fabs(e, b)?);
    let first = e.fcmp(FloatPredicate::OGT, a, b)?;
    let (large, small) = (e.select(first, a, b)?, e.select(first, b, a)?);
    let some = e.fcmp(FloatPredicate::OGT, large, e.f64(format.range[0]))?;
    Ok(([large, small], e.and(some, below(e, e.fadd(a, b)?, format.range[1])?)?))
}

fn is_zero<'ctx>(e: &Emit<'_, 'ctx>, x: Value<'ctx>) -> Result<Value<'ctx>> {
    e.fcmp(FloatPredicate::OEQ, x, e.f64(0.0))
}

fn negative<'ctx>(e: &Emit<'_, 'ctx>, x: Value<'ctx>) -> Result<Value<'ctx>> {
    e.fcmp(FloatPredicate::OLT, x, e.f64(0.0))
}

/// Exponents that neither over- nor underflow `f64`, and angles that are reduced inline.
fn usual<'ctx>(e: &Emit<'_, 'ctx>, exponent: Value<'ctx>, angle: Value<'ctx>) -> Result<Value<'ctx>> {
    e.and(below(e, fabs(e, exponent)?, 700.0)?, below(e, fabs(e, angle)?, limit(Prim::F64))?)
}

/// `e^a (cos b + i sin b)`
fn exponential<'ctx>(e: &Emit<'_, 'ctx>, [a, b]: Pair<'ctx>, digits: Digits) -> Result<Fast<'ctx>> {
    let radius = exp(e, a, digits)?;
    let [sine, cosine] = sine_cosine(e, b, digits)?;
    Ok(Fast { value: [e.fmul(radius, cosine)?, e.fmul(radius, sine)?], holds: usual(e, a, b)? })
}

/// `(e^a - 1) cos b + (cos b - 1) + i e^a sin b`
fn exponential_minus_one<'ctx>(e: &Emit<'_, 'ctx>, [a, b]: Pair<'ctx>, digits: Digits) -> Result<Fast<'ctx>> {
    let one = e.f64(1.0);
    let q = expm1(e, a, digits)?;
    let [sine, cosine] = sine_cosine(e, b, digits)?;
    let left = negative(e, cosine)?;
    let quotient = e.fdiv(e.fneg(e.fmul(sine, sine)?)?, e.fadd(one, e.select(left, one, cosine)?)?)?;
    let rest = e.select(left, e.fsub(cosine, one)?, quotient)?;
    let re = e.fma(q, cosine, rest)?;
    Ok(Fast { value: [re, e.fma(q, sine, sine)?], holds: usual(e, a, b)? })
}

/// `ln |z| + i arg z`
fn logarithm<'ctx>(
    e: &Emit<'_, 'ctx>,
    [a, b]: Pair<'ctx>,
    format: Format,
    digits: Digits,
) -> Result<Fast<'ctx>> {
    let ([large, small], holds) = ordered(e, [a, b], format)?;
    let re = log_of_modulus(e, large, small, format.narrow, digits)?;
    Ok(Fast { value: [re, atan2(e, b, a, digits)?], holds })
}

/// `ln(1 + 2a + a^2 + b^2) / 2 + i arg(1 + z)`, of narrow parts.
fn log_plus_one<'ctx>(e: &Emit<'_, 'ctx>, [a, b]: Pair<'ctx>, digits: Digits) -> Result<Fast<'ctx>> {
    let one = e.f64(1.0);
    let squares = e.fma(a, a, e.fmul(b, b)?)?;
    let sum = e.fadd(squares, e.fadd(a, a)?)?;
    // Close to -1 the distance to it is exact.
    let x = e.fadd(a, one)?;
    let distance = e.fma(x, x, e.fmul(b, b)?)?;
    let sum = e.select(below(e, distance, 0.25)?, e.fsub(distance, one)?, sum)?;
    let re = e.fmul(log1p(e, sum, digits)?, e.f64(0.5))?;
    let far = e.fcmp(FloatPredicate::OGT, distance, e.f64(1e-6))?;
    let holds = e.and(far, below(e, distance, f64::INFINITY)?)?;
    Ok(Fast { value: [re, atan2(e, b, x, digits)?], holds })
}

/// `t = sqrt((|z| + |a|) / 2)` and `|b| / 2t`, on the side of `a`.
fn square_root<'ctx>(
    e: &Emit<'_, 'ctx>,
    [a, b]: Pair<'ctx>,
    format: Format,
) -> Result<(Fast<'ctx>, Value<'ctx>)> {
    let ([large, small], holds) = ordered(e, [a, b], format)?;
    let modulus = sqrt(e, e.fma(large, large, e.fmul(small, small)?)?)?;
    let t = sqrt(e, e.fmul(e.fadd(modulus, fabs(e, a)?)?, e.f64(0.5))?)?;
    let u = e.fdiv(e.fmul(fabs(e, b)?, e.f64(0.5))?, t)?;
    let left = negative(e, a)?;
    let value = [e.select(left, u, t)?, copysign(e, e.select(left, t, u)?, b)?];
    Ok((Fast { value, holds }, modulus))
}

/// `(sinh a cosh a + i sin b cos b) / (sinh^2 a + cos^2 b)`
fn hyperbolic_tangent<'ctx>(e: &Emit<'_, 'ctx>, [a, b]: Pair<'ctx>, digits: Digits) -> Result<Fast<'ctx>> {
    // From there on the real part is 1 in every digit, and the imaginary one is negligible next to it.
    let bounded = at_most(e, at_least(e, a, -350.0)?, 350.0)?;
    let [sinh, cosh] = sinh_cosh(e, bounded, digits)?;
    let [sine, cosine] = sine_cosine(e, b, digits)?;
    let below = e.fma(sinh, sinh, e.fmul(cosine, cosine)?)?;
    let value = [e.fdiv(e.fmul(sinh, cosh)?, below)?, e.fdiv(e.fmul(sine, cosine)?, below)?];
    Ok(Fast { value, holds: usual(e, bounded, b)? })
}

/// `1 / (1 + w)` for `w = e^-z`, of `a < 0` as `w / (1 + w)` for `w = e^z`, with `p = 1 + Re w`. Close to the
/// poles, where `w` is -1, `p` and `Re w + |w|` are made of `1 + cos b` and `|w| - 1`, without cancellation;
/// elsewhere of `w` itself, which are fewer roundings.
fn logistic<'ctx>(e: &Emit<'_, 'ctx>, [a, b]: Pair<'ctx>, digits: Digits) -> Result<Fast<'ctx>> {
    let one = e.f64(1.0);
    let exponent = e.fneg(fabs(e, a)?)?;
    let (radius, q) = (exp(e, exponent, digits)?, expm1(e, exponent, digits)?);
    let [sine, cosine] = sine_cosine(e, b, digits)?;
    let near = e.and(negative(e, cosine)?, e.fcmp(FloatPredicate::OGT, radius, e.f64(0.5))?)?;
    let k = e.fdiv(e.fmul(sine, sine)?, e.fsub(one, cosine)?)?;
    let p = e.select(near, e.fma(q, cosine, k)?, e.fma(radius, cosine, one)?)?;
    let s = e.fmul(radius, sine)?;
    let below = e.fma(p, p, e.fmul(s, s)?)?;
    let sum = e.select(near, e.fadd(k, q)?, e.fadd(cosine, radius)?)?;
    let above = e.select(negative(e, a)?, e.fmul(radius, sum)?, p)?;
    Ok(Fast { value: [e.fdiv(above, below)?, e.fdiv(s, below)?], holds: usual(e, a, b)? })
}

/// The formula of a function, if it has one.
fn formula<'ctx>(
    e: &Emit<'_, 'ctx>,
    f: Function,
    z: Pair<'ctx>,
    format: Format,
) -> Result<Option<Fast<'ctx>>> {
    let (digits, [a, b]) = (format.digits, z);
    // Sine and cosine of one part, both hyperbolic functions of the other.
    let mixed = |angle, exponent| -> Result<[Value<'ctx>; 5]> {
        let [sine, cosine] = sine_cosine(e, angle, digits)?;
        let [sinh, cosh] = sinh_cosh(e, exponent, digits)?;
        Ok([sine, cosine, sinh, cosh, usual(e, exponent, angle)?])
    };
    Ok(Some(match f {
        Function::Exponential => exponential(e, z, digits)?,
        Function::ExponentialMinusOne => exponential_minus_one(e, z, digits)?,
        Function::Log => logarithm(e, z, format, digits)?,
        Function::LogPlusOne if format.narrow => log_plus_one(e, z, digits)?,
        Function::Sqrt => square_root(e, z, format)?.0,
        Function::Rsqrt => {
            let (Fast { value: [x, y], holds }, modulus) = square_root(e, z, format)?;
            Fast { value: [e.fdiv(x, modulus)?, e.fdiv(e.fneg(y)?, modulus)?], holds }
        }
        Function::Cbrt if format.narrow => {
            let Fast { value, holds } = logarithm(e, z, format, digits)?;
            let third = |x| e.fmul(x, e.f64(1.0 / 3.0));
            Fast { value: exponential(e, [third(value[0])?, third(value[1])?], digits)?.value, holds }
        }
        Function::Sine => {
            let [sine, cosine, sinh, cosh, holds] = mixed(a, b)?;
            Fast { value: [e.fmul(sine, cosh)?, e.fmul(cosine, sinh)?], holds }
        }
        Function::Cosine => {
            let [sine, cosine, sinh, cosh, holds] = mixed(a, b)?;
            Fast { value: [e.fmul(cosine, cosh)?, e.fmul(e.fneg(sine)?, sinh)?], holds }
        }
        Function::Sinh => {
            let [sine, cosine, sinh, cosh, holds] = mixed(b, a)?;
            Fast { value: [e.fmul(sinh, cosine)?, e.fmul(cosh, sine)?], holds }
        }
        Function::Cosh => {
            let [sine, cosine, sinh, cosh, holds] = mixed(b, a)?;
            Fast { value: [e.fmul(cosh, cosine)?, e.fmul(sinh, sine)?], holds }
        }
        Function::Tanh => hyperbolic_tangent(e, z, digits)?,
        Function::Tan => {
            // -i tanh(iz)
            let Fast { value: [x, y], holds } = hyperbolic_tangent(e, [b, a], digits)?;
            Fast { value: [y, x], holds }
        }
        Function::Logistic => logistic(e, z, digits)?,
        Function::Acos
        | Function::Acosh
        | Function::Asin
        | Function::Asinh
        | Function::Atanh
        | Function::Cbrt
        | Function::Erf
        | Function::LogPlusOne => return Ok(None),
    }))
}

/// Parts as they are computed with.
fn widened<'ctx, const N: usize>(e: &Emit<'_, 'ctx>, parts: [Value<'ctx>; N]) -> Result<[Value<'ctx>; N]> {
    let mut wide = parts;
    for x in &mut wide {
        *x = e.fpext(*x, Prim::F64)?;
    }
    Ok(wide)
}

/// The formula where it holds, elsewhere what the runtime's function gives of the operands.
fn joined<'ctx>(
    e: &Emit<'_, 'ctx>,
    operation: Operation,
    ty: ElementType,
    operands: &[Value<'ctx>],
    fast: Fast<'ctx>,
) -> Result<Pair<'ctx>> {
    let prim = e.prim_of(operands[0]);
    let value = fast.value.into_iter().map(|x| e.fptrunc(x, prim)).collect::<Result<Vec<_>>>()?;
    let name = symbol(operation.opcode(), ty.name());
    let slot = if e.gpu { None } else { Some(e.stack(prim, 2)?.into()) };
    let result = rare(e, e.not(fast.holds)?, operands, &value, &|one, lane| {
        let Some(slot) = slot else { return Ok(operation.on_device(one, lane)?.to_vec()) };
        one.external_call(&name, None, &[lane, &[slot]].concat())?;
        let part = prim.bytes();
        let re = one.load(prim, slot, part as u32)?;
        Ok(vec![re, one.load(prim, one.address_at(slot, part)?, part as u32)?])
    })?;
    Ok([result[0], result[1]])
}

/// A function of one operand; `None`: there is no formula.
pub(in super::super) fn unary<'ctx>(
    e: &Emit<'_, 'ctx>,
    f: Function,
    ty: ElementType,
    z: Pair<'ctx>,
) -> Result<Option<Pair<'ctx>>> {
    let Some(fast) = formula(e, f, widened(e, z)?, format(ty))? else { return Ok(None) };
    joined(e, Operation::Function(f), ty, &z, fast).map(Some)
}

/// `sign`: `z / |z|`.
pub(in super::super) fn sign<'ctx>(e: &Emit<'_, 'ctx>, ty: ElementType, z: Pair<'ctx>) -> Result<Pair<'ctx>> {
    let [a, b] = widened(e, z)?;
    let ([large, small], holds) = ordered(e, [a, b], format(ty))?;
    let modulus = sqrt(e, e.fma(large, large, e.fmul(small, small)?)?)?;
    // Zeros are as frequent as any number.
    let zero = is_zero(e, e.fadd(large, small)?)?;
    let modulus = e.select(zero, e.f64(1.0), modulus)?;
    let value = [e.fdiv(a, modulus)?, e.fdiv(b, modulus)?];
    joined(e, Operation::Sign, ty, &z, Fast { value, holds: e.or(holds, zero)? })
}

/// Quotients and powers; `None`: there is no formula. Theirs are long: each is a function of its own.
pub(in super::super) fn binary<'ctx>(
    e: &Emit<'_, 'ctx>,
    op: Binary,
    ty: ElementType,
    operands: [Value<'ctx>; 4],
) -> Result<Option<Pair<'ctx>>> {
    let of = match op {
        Binary::Divide => quotient,
        Binary::Power if format(ty).narrow => power,
        _ => return Ok(None),
    };
    let name = symbol(op.opcode(), ty.name());
    let all = e.outlined(&format!("{name}.lanes"), 2, &operands, |e, operands| {
        let parts = widened(e, [operands[0], operands[1], operands[2], operands[3]])?;
        Ok(joined(e, Operation::Binary(op), ty, operands, of(e, parts, format(ty))?)?.to_vec())
    })?;
    Ok(Some([all[0], all[1]]))
}

fn quotient<'ctx>(e: &Emit<'_, 'ctx>, [a, b, c, d]: [Value<'ctx>; 4], format: Format) -> Result<Fast<'ctx>> {
    let (_, divisor) = ordered(e, [c, d], format)?;
    let ([large, small], number) = ordered(e, [a, b], format)?;
    let zero = is_zero(e, e.fadd(large, small)?)?;
    let below = e.fma(c, c, e.fmul(d, d)?)?;
    let re = e.fma(a, c, e.fmul(b, d)?)?;
    let im = e.fma(b, c, e.fneg(e.fmul(a, d)?)?)?;
    let holds = e.and(divisor, e.or(number, zero)?)?;
    Ok(Fast { value: [e.fdiv(re, below)?, e.fdiv(im, below)?], holds })
}

/// The angle is so large that it takes all digits of the logarithm.
fn power<'ctx>(e: &Emit<'_, 'ctx>, [a, b, c, d]: [Value<'ctx>; 4], format: Format) -> Result<Fast<'ctx>> {
    let Fast { value: [x, y], holds } = logarithm(e, [a, b], format, Digits::All)?;
    let exponent = e.fsub(e.fmul(c, x)?, e.fmul(d, y)?)?;
    let angle = e.fadd(e.fmul(c, y)?, e.fmul(d, x)?)?;
    let fast = exponential(e, [exponent, angle], Digits::Few)?;
    let small = below(e, fabs(e, angle)?, 1_048_576.0)?;
    Ok(Fast { holds: e.and(e.and(holds, small)?, fast.holds)?, ..fast })
}

/// `abs`: the square root of the sum of squares, where that is so far from the ends of the range that no
/// square matters that underflows. On other lanes `f32` parts go through `f64`, `f64` parts through the
/// runtime.
pub(in super::super) fn modulus<'ctx>(
    e: &Emit<'_, 'ctx>,
    ty: ElementType,
    [a, b]: Pair<'ctx>,
) -> Result<Value<'ctx>> {
    let prim = e.prim_of(a);
    let least = if prim == Prim::F32 { 2f64.powi(-100) } else { 2f64.powi(-900) };
    let root = |a, b| -> Result<[Value<'ctx>; 2]> {
        let sum = e.fma(a, a, e.fmul(b, b)?)?;
        Ok([sum, sqrt(e, sum)?])
    };
    let [sum, fast] = root(a, b)?;
    let infinity = e.float(prim, f64::INFINITY);
    let below = e.fcmp(FloatPredicate::OLT, sum, infinity)?;
    let inside = e.and(e.fcmp(FloatPredicate::OGE, sum, e.float(prim, least))?, below)?;
    let most = e.intrinsic("llvm.maxnum", &[a.get_type()], &[fabs(e, a)?, fabs(e, b)?])?;
    let zero = e.fcmp(FloatPredicate::OEQ, most, e.float(prim, 0.0))?;
    let odd = e.not(e.or(inside, e.and(zero, below)?)?)?;
    if prim == Prim::F64 {
        let name = symbol(Opcode::Abs, ty.name());
        let exact = rare(e, odd, &[a, b], &[fast], &|one, lane| {
            Ok(vec![match lane {
                &[re, im] if one.gpu => device::modulus(one, [re, im])?,
                lane => one.external(&name, prim, lane)?,
            }])
        })?;
        return Ok(exact[0]);
    }
    let careful = || {
        let [_, exact] = root(e.fpext(a, Prim::F64)?, e.fpext(b, Prim::F64)?)?;
        // Also with a NaN, which is not the greater one.
        let infinite = e.fcmp(FloatPredicate::OEQ, most, infinity)?;
        let exact = e.select(infinite, infinity, e.fptrunc(exact, prim)?)?;
        Ok(vec![e.select(odd, exact, fast)?])
    };
    Ok(e.if_else(e.any(odd)?, careful, || Ok(vec![fast]))?[0])
}
