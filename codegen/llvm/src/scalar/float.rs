//! Real floats: arithmetic, comparison, roundings, reduced precision.
//!
//! What is exact or correctly rounded is that in the float that the type is computed in ([`super::narrow`]),
//! and rounded again.

use hlo::attrs::Direction;
use hlo::small_float::{FloatFormat, Specials};
use hlo::{ElementType, TypeClass};

use super::convert::convert;
use super::device;
use super::functions;
use super::int::{compare as compare_ints, wrap};
use super::narrow::{Rounding, computed, format_of, widen};
use super::value::{Computed, Val, register};
use crate::{Emit, Error, FloatPredicate, IntPredicate, Prim, Result, Value};
use hlo::elementwise::{Binary, Unary};

pub(super) fn call1<'ctx>(e: &Emit<'_, 'ctx>, name: &str, x: Value<'ctx>) -> Result<Value<'ctx>> {
    e.intrinsic(name, &[x.get_type()], &[x])
}

/// `|magnitude|` with the sign of another.
pub(super) fn copysign<'ctx>(
    e: &Emit<'_, 'ctx>,
    magnitude: Value<'ctx>,
    sign: Value<'ctx>,
) -> Result<Value<'ctx>> {
    e.intrinsic("llvm.copysign", &[sign.get_type()], &[magnitude, sign])
}

/// An operation of one operand; `None` if floats have no such.
pub(super) fn unary<'ctx>(e: &Emit<'_, 'ctx>, op: Unary, x: &Val<'ctx>) -> Result<Option<Val<'ctx>>> {
    let name = match op {
        Unary::Abs => return abs(e, x).map(Some),
        Unary::Negate => return negate(e, x).map(Some),
        Unary::Ceil => "llvm.ceil",
        Unary::Floor => "llvm.floor",
        Unary::RoundNearestAfz => "llvm.round",
        Unary::RoundNearestEven => "llvm.roundeven",
        Unary::Sign => return sign(e, x).map(Some),
        Unary::CountLeadingZeros | Unary::Not | Unary::Popcnt => return Ok(None),
    };
    computed(e, [x], Rounding::Any, |[x]| call1(e, name, x)).map(Some)
}

/// The sign bit cleared, a payload kept.
fn abs<'ctx>(e: &Emit<'_, 'ctx>, x: &Val<'ctx>) -> Result<Val<'ctx>> {
    let a = x.single();
    let Some(format) = format_of(x.ty) else {
        let cleared = if keeps_payloads(e, x) {
            on_bits(e, a, |bits, sign| e.and(bits, e.not(sign)?))?
        } else {
            call1(e, "llvm.fabs", a)?
        };
        return Ok(Val { computed: x.computed, ..Val::one(x.ty, cleared) });
    };
    let prim = register(x.ty);
    let cleared = e.and(a, e.int(prim, u64::from(format.magnitude_mask())))?;
    let result = match format.specials {
        Specials::Ieee | Specials::FiniteNan | Specials::NumbersOnly => cleared,
        Specials::NanIsNegativeZero => {
            let is_nan = e.icmp(IntPredicate::EQ, a, e.int(prim, u64::from(format.sign_mask())))?;
            e.select(is_nan, a, cleared)?
        }
        Specials::Scale => a,
    };
    Ok(Val { computed: x.computed, ..Val::one(x.ty, result) })
}

/// The sign bit flipped, a payload kept (the sign of a NaN that arithmetic made is not).
fn negate<'ctx>(e: &Emit<'_, 'ctx>, x: &Val<'ctx>) -> Result<Val<'ctx>> {
    let a = x.single();
    let Some(format) = format_of(x.ty) else {
        return Ok(Val { computed: x.computed, ..Val::one(x.ty, negated(e, x, a)?) });
    };
    let prim = register(x.ty);
    let flipped = e.xor(a, e.int(prim, u64::from(format.sign_mask())))?;
    let result = match format.specials {
        Specials::Ieee | Specials::FiniteNan | Specials::NumbersOnly => flipped,
        Specials::NanIsNegativeZero => {
            let magnitude = e.and(a, e.int(prim, u64::from(format.magnitude_mask())))?;
            let stays = e.icmp(IntPredicate::EQ, magnitude, e.int(prim, 0))?;
            e.select(stays, a, flipped)?
        }
        Specials::Scale => e.int(prim, u64::from(format.converted_nan_bits())),
    };
    Ok(Val { computed: x.computed, ..Val::one(x.ty, result) })
}

/// Whether a NaN of a value is to keep its payload through an instruction of floats, which on a GPU gives any
/// NaN.
fn keeps_payloads<'ctx>(e: &Emit<'_, 'ctx>, x: &Val<'ctx>) -> bool {
    e.gpu && !x.is_arithmetic()
}

/// A register of a value with the sign bit flipped.
pub(super) fn negated<'ctx>(e: &Emit<'_, 'ctx>, x: &Val<'ctx>, register: Value<'ctx>) -> Result<Value<'ctx>> {
    if keeps_payloads(e, x) {
        return on_bits(e, register, |bits, sign| e.xor(bits, sign));
    }
    e.fneg(register)
}

/// What integers make of the pattern of an `f32` or `f64`, and the one of its sign bit.
fn on_bits<'ctx>(
    e: &Emit<'_, 'ctx>,
    x: Value<'ctx>,
    f: impl FnOnce(Value<'ctx>, Value<'ctx>) -> Result<Value<'ctx>>,
) -> Result<Value<'ctx>> {
    let prim = e.prim_of(x);
    let int = Prim::int(prim.bits());
    let sign = e.with_lanes(e.lanes_of(x)).int(int, 1 << (prim.bits() - 1));
    e.bitcast(f(e.bitcast(x, int)?, sign)?, prim)
}

/// -1 or 1; zeros and NaNs as they are.
fn sign<'ctx>(e: &Emit<'_, 'ctx>, x: &Val<'ctx>) -> Result<Val<'ctx>> {
    computed(e, [x], Rounding::Any, |[x]| {
        let prim = e.prim_of(x);
        let keep = e.fcmp(FloatPredicate::UEQ, x, e.float(prim, 0.0))?;
        let unit = copysign(e, e.float(prim, 1.0), x)?;
        e.select(keep, x, unit)
    })
}

/// An operation of two operands; `None` if floats have no such.
pub(super) fn binary<'ctx>(
    e: &Emit<'_, 'ctx>,
    op: Binary,
    x: &Val<'ctx>,
    y: &Val<'ctx>,
) -> Result<Option<Val<'ctx>>> {
    let by = |rounding, f: &dyn Fn(Value<'ctx>, Value<'ctx>) -> Result<Value<'ctx>>| {
        computed(e, [x, y], rounding, |[a, b]| f(a, b)).map(Some)
    };
    let (any, arithmetic, exact) = (Rounding::Any, Rounding::Arithmetic, Rounding::Exact);
    match op {
        Binary::Add => by(arithmetic, &|a, b| e.fadd(a, b)),
        Binary::Subtract => by(arithmetic, &|a, b| e.fsub(a, b)),
        Binary::Multiply => by(arithmetic, &|a, b| e.fmul(a, b)),
        Binary::Divide => by(arithmetic, &|a, b| e.fdiv(a, b)),
        Binary::Maximum => by(exact, &|a, b| extreme(e, true, a, b)),
        Binary::Minimum => by(exact, &|a, b| extreme(e, false, a, b)),
        Binary::Remainder => by(any, &|a, b| remainder(e, a, b)),
        Binary::Power => by(any, &|a, b| functions::power(e, a, b)),
        Binary::Atan2 => by(any, &|a, b| functions::atan2(e, a, b)),
        Binary::And
        | Binary::Mulhi
        | Binary::Or
        | Binary::ShiftLeft
        | Binary::ShiftRightArithmetic
        | Binary::ShiftRightLogical
        | Binary::Xor => Ok(None),
    }
}

/// `sum + x * y`, or `0 + x * y`, rounded once.
pub(super) fn multiply_add<'ctx>(
    e: &Emit<'_, 'ctx>,
    sum: Option<&Val<'ctx>>,
    x: &Val<'ctx>,
    y: &Val<'ctx>,
) -> Result<Val<'ctx>> {
    let rounding = Rounding::Arithmetic;
    match sum {
        Some(sum) => computed(e, [x, y, sum], rounding, |[a, b, c]| e.fma(a, b, c)),
        None => computed(e, [x, y], rounding, |[a, b]| e.fadd(e.fmul(a, b)?, e.float(e.prim_of(a), 0.0))),
    }
}

/// `x / by` of `f32`, rounded correctly, without a division: for quotients, dividends that are not 0 and a
/// divisor between 2^-100 and 2^100. Dividends are no NaNs, and integers up to `integers` if that is given.
///
/// With the reciprocal in two pieces, the first one not above it, `q` is off by less than a unit in the last
/// place; so `x - q by` is exact, and what it adds, times the rounded reciprocal, rounds as the quotient does
/// (Markstein). The second piece has the sign of the first, and the rest is that of the opposite number:
/// zeros keep their signs. For small integers the uncorrected quotient is tried.
pub fn quotient<'ctx>(
    e: &Emit<'_, 'ctx>,
    x: &Val<'ctx>,
    by: f32,
    integers: Option<u16>,
) -> Result<Val<'ctx>> {
    let divisor = f64::from(by.abs());
    let rounded = divisor.recip() as f32;
    // Exact: products of two `f32`, next to 1.
    let rest = |first: f32| 1.0 - divisor * f64::from(first);
    let first = if rest(rounded) < 0.0 { rounded.next_down() } else { rounded };
    let second = (rest(first) / divisor) as f32;
    let all = |f: &dyn Fn(f32) -> f32| {
        integers.is_some_and(|n| (1..=n).all(|n| f(f32::from(n)) == f32::from(n) / by.abs()))
    };
    let a = x.single();
    let a = if by < 0.0 { e.fneg(a)? } else { a };
    let product = e.fmul(a, e.f32(rounded))?;
    if second == 0.0 || all(&|x| x * rounded) {
        return Ok(Val::one(ElementType::F32, product));
    }
    let q = e.fma(a, e.f32(first), e.fmul(a, e.f32(second))?)?;
    if all(&|x| x.mul_add(first, x * second)) {
        return Ok(Val::one(ElementType::F32, q));
    }
    let rest = e.fma(q, e.f32(by.abs()), e.fneg(a)?)?;
    Ok(Val::one(ElementType::F32, e.fma(rest, e.f32(-rounded), q)?))
}

/// C's `fmod`, exact. Of `f32` in `f64`: the nearest multiple of the divisor is taken away as long as any
/// lane has more than it. With `q` the quotient rounded to 53 bits, `r - q y` is a multiple of the last bits
/// of `r` and of `q y` and at most half of the latter's unit, so it is exact.
fn remainder<'ctx>(e: &Emit<'_, 'ctx>, a: Value<'ctx>, b: Value<'ctx>) -> Result<Value<'ctx>> {
    if e.prim_of(a) == Prim::F64 {
        return e.each_lane(&[a, b], Prim::F64, |e, lane| match lane {
            &[x, y] if e.gpu => device::remainder(e, x, y),
            lane => e.external("fmod", Prim::F64, lane),
        });
    }
    let (infinity, zero) = (e.f64(f64::INFINITY), e.f64(0.0));
    let x = call1(e, "llvm.fabs", e.fpext(a, Prim::F64)?)?;
    let y = call1(e, "llvm.fabs", e.fpext(b, Prim::F64)?)?;
    // Lanes of infinite dividends, zero divisors and NaNs are computed as 0 rem 1.
    let fine = e.and(e.fcmp(FloatPredicate::OLT, x, infinity)?, e.fcmp(FloatPredicate::OGT, y, zero)?)?;
    let start = e.select(fine, x, zero)?;
    let bounded = e.intrinsic("llvm.minnum", &[y.get_type()], &[y, e.f64(f64::MAX)])?;
    let divisor = e.select(fine, bounded, e.f64(1.0))?;
    let rest = e.do_while(&[start], |state| {
        let quotient = call1(e, "llvm.roundeven", e.fdiv(state[0], divisor)?)?;
        let rest = e.fma(e.fneg(quotient)?, divisor, state[0])?;
        let left = e.fcmp(FloatPredicate::OGE, call1(e, "llvm.fabs", rest)?, divisor)?;
        let left = if e.lanes == 1 {
            left
        } else {
            e.intrinsic("llvm.vector.reduce.or", &[left.get_type()], &[left])?
        };
        Ok((left, vec![rest]))
    })?[0];
    let below = e.fcmp(FloatPredicate::OLT, rest, zero)?;
    let rest = e.select(below, e.fadd(rest, divisor)?, rest)?;
    let signed = copysign(e, e.fptrunc(rest, Prim::F32)?, a)?;
    e.select(fine, signed, e.f32(f32::NAN))
}

/// The greater or the smaller number: a NaN if one is, and -0 is smaller than +0.
///
/// x86's own instruction gives the second operand of zeros and where one is a NaN. In both orders it gives
/// two zeros, of which `and` and `or` are those of the signs asked for, and otherwise one number twice: a
/// shorter chain than LLVM's, which exchanges operands by their signs first (but knows more about constants).
fn extreme<'ctx>(e: &Emit<'_, 'ctx>, greater: bool, a: Value<'ctx>, b: Value<'ctx>) -> Result<Value<'ctx>> {
    if !e.x86 || e.is_constant(a) || e.is_constant(b) {
        let name = if greater { "llvm.maximum" } else { "llvm.minimum" };
        return e.intrinsic(name, &[a.get_type()], &[a, b]);
    }
    let predicate = if greater { FloatPredicate::OGT } else { FloatPredicate::OLT };
    let prim = e.prim_of(a);
    let one = |a, b| e.bitcast(e.select(e.fcmp(predicate, a, b)?, a, b)?, Prim::int(prim.bits()));
    let (first, second) = (one(a, b)?, one(b, a)?);
    let both = if greater { e.and(first, second)? } else { e.or(first, second)? };
    let unordered = e.fcmp(FloatPredicate::UNO, a, b)?;
    e.select(unordered, e.float(prim, f64::NAN), e.bitcast(both, prim)?)
}

/// Comparison; `total` by the total order.
pub(super) fn compare<'ctx>(
    e: &Emit<'_, 'ctx>,
    direction: Direction,
    total: bool,
    x: &Val<'ctx>,
    y: &Val<'ctx>,
) -> Result<Value<'ctx>> {
    if total {
        let signed = x.ty != ElementType::F8E8M0FNU;
        return compare_ints(e, direction, signed, order_key(e, x)?, order_key(e, y)?);
    }
    let predicate = match direction {
        Direction::Eq => FloatPredicate::OEQ,
        Direction::Ne => FloatPredicate::UNE,
        Direction::Lt => FloatPredicate::OLT,
        Direction::Le => FloatPredicate::OLE,
        Direction::Gt => FloatPredicate::OGT,
        Direction::Ge => FloatPredicate::OGE,
    };
    e.fcmp(predicate, widen(e, x)?, widen(e, y)?)
}

/// An integer whose order is TOTALORDER: -NaN < -inf < ... < -0 < +0 < ... < +inf < +NaN. The NaN of a `fnuz`
/// type comes first, that of `f8e8m0fnu`, whose key is unsigned, last. For sort keys too.
pub fn order_key<'ctx>(e: &Emit<'_, 'ctx>, x: &Val<'ctx>) -> Result<Value<'ctx>> {
    let bits = super::convert::pattern(e, *x)?;
    let prim = e.prim_of(bits);
    let format = format_of(x.ty);
    if format.is_some_and(|f| f.specials == Specials::Scale) {
        return Ok(bits);
    }
    let unused = prim.bits() - x.ty.bits();
    // The sign at the top.
    let bits = if unused == 0 { bits } else { e.shl(bits, e.int(prim, u64::from(unused)))? };
    let negative = e.ashr(bits, e.int(prim, u64::from(prim.bits() - 1)))?;
    if format.is_some_and(|f| f.specials == Specials::NanIsNegativeZero) {
        let lowest = e.int(prim, 0x80);
        let is_negative = e.icmp(IntPredicate::SLT, bits, e.int(prim, 0))?;
        let is_nan = e.icmp(IntPredicate::EQ, bits, lowest)?;
        let mirrored = e.select(is_negative, e.sub(lowest, bits)?, bits)?;
        return e.select(is_nan, lowest, mirrored);
    }
    e.xor(bits, e.lshr(negative, e.int(prim, 1))?)
}

/// The integer by which a float of 16 bits or `f32` is compared with others for the greatest (or the least)
/// of all: the order of [`order_key`], rotated by as many numbers as there are NaNs of a sign, so that all
/// NaNs come behind the infinity that is looked for. `ty` is a signed integer of as many bits.
pub fn extreme_key<'ctx>(
    e: &Emit<'_, 'ctx>,
    ty: ElementType,
    least: bool,
    x: &Val<'ctx>,
) -> Result<Val<'ctx>> {
    // All NaNs are behind the infinity, canonical or not.
    let key = order_key(e, &Val { computed: Computed::Nowhere, ..*x })?;
    let nans = e.int(e.prim_of(key), u64::from(nans_of_a_sign(x.ty)));
    Ok(Val::one(ty, if least { e.add(key, nans)? } else { e.sub(key, nans)? }))
}

/// The float of type `ty` that [`extreme_key`] made an integer of; the canonical NaN for every NaN.
pub fn of_extreme_key<'ctx>(
    e: &Emit<'_, 'ctx>,
    ty: ElementType,
    least: bool,
    key: &Val<'ctx>,
) -> Result<Val<'ctx>> {
    let (key, nans) = (key.single(), u64::from(nans_of_a_sign(ty)));
    let prim = e.prim_of(key);
    let (highest, lowest) = (u64::MAX >> (65 - prim.bits()), 1u64 << (prim.bits() - 1));
    // Behind the infinity are the patterns of both signs' NaNs.
    let behind = 2 * nans;
    let (is_nan, key) = if least {
        let infinity = e.int(prim, lowest + behind);
        (e.icmp(IntPredicate::SLT, key, infinity)?, e.sub(key, e.int(prim, nans))?)
    } else {
        let infinity = e.int(prim, highest - behind);
        (e.icmp(IntPredicate::SGT, key, infinity)?, e.add(key, e.int(prim, nans))?)
    };
    let negative = e.ashr(key, e.int(prim, u64::from(prim.bits() - 1)))?;
    let bits = e.xor(key, e.lshr(negative, e.int(prim, 1))?)?;
    let nan = ty.float_format().map_or(0, |f| u64::from(f.converted_nan_bits()));
    super::convert::of_pattern(e, ty, e.select(is_nan, e.int(prim, nan), bits)?)
}

/// How many patterns of each sign are NaNs.
fn nans_of_a_sign(ty: ElementType) -> u32 {
    ty.float_format().map_or(0, |f| f.magnitude_mask() - f.max_bits() - 1)
}

/// Neither infinite nor NaN.
pub(super) fn is_finite<'ctx>(e: &Emit<'_, 'ctx>, x: &Val<'ctx>) -> Result<Value<'ctx>> {
    let (prim, bits) = (Prim::int(x.ty.bits().next_power_of_two().max(8)), super::convert::pattern(e, *x)?);
    let below = |mask: u64, limit: u64| {
        let magnitude = e.and(bits, e.int(prim, mask))?;
        e.icmp(IntPredicate::ULT, magnitude, e.int(prim, limit))
    };
    let Some(format) = format_of(x.ty) else {
        let (infinity, sign) =
            if prim == Prim::I32 { (0x7f80_0000, 1 << 31) } else { (0x7ff0_0000_0000_0000, 1 << 63) };
        return below(!sign, infinity);
    };
    match format.specials {
        Specials::Ieee | Specials::FiniteNan | Specials::Scale => {
            below(u64::from(format.magnitude_mask()), u64::from(format.max_bits()) + 1)
        }
        Specials::NanIsNegativeZero => {
            e.icmp(IntPredicate::NE, bits, e.int(prim, u64::from(format.sign_mask())))
        }
        Specials::NumbersOnly => Ok(e.bool(true)),
    }
}

/// `minimum(high, maximum(x, low))`.
pub(super) fn clamp<'ctx>(
    e: &Emit<'_, 'ctx>,
    low: &Val<'ctx>,
    x: &Val<'ctx>,
    high: &Val<'ctx>,
) -> Result<Val<'ctx>> {
    computed(e, [low, x, high], Rounding::Any, |[low, x, high]| {
        extreme(e, false, extreme(e, true, x, low)?, high)
    })
}

/// `reduce-precision`: see the interpreter's `reduce_precision`, of which this is the branch-free form.
pub(super) fn reduce_precision<'ctx>(
    e: &Emit<'_, 'ctx>,
    x: &Val<'ctx>,
    exponent_bits: u32,
    mantissa_bits: u32,
) -> Result<Val<'ctx>> {
    let format = format_of(x.ty);
    let reduced = match format {
        None => reduce_in_format(e, x, exponent_bits, mantissa_bits)?,
        Some(_) if x.ty.bits() == 16 => reduce_in_format(e, x, exponent_bits, mantissa_bits)?,
        Some(f) => {
            let through = if f.specials == Specials::Scale { ElementType::F32 } else { ElementType::F16 };
            let wider = convert(e, *x, through)?;
            convert(e, reduce_in_format(e, &wider, exponent_bits, mantissa_bits)?, x.ty)?
        }
    };
    // A NaN stays, but is infinite without mantissa bits, where there is infinity.
    let has_infinity = format.is_none_or(FloatFormat::has_infinity);
    let wide = widen(e, x)?;
    let is_nan = e.fcmp(FloatPredicate::UNO, wide, wide)?;
    let of_nan = match format {
        _ if mantissa_bits != 0 || !has_infinity => *x,
        Some(f) => Val::of_bits(e, x.ty, u128::from(f.max_bits() + 1)),
        None => Val::one(x.ty, e.float(register(x.ty), f64::INFINITY)),
    };
    select(e, is_nan, &of_nan, &reduced)
}

/// Of an IEEE type of 16, 32 or 64 bits.
fn reduce_in_format<'ctx>(
    e: &Emit<'_, 'ctx>,
    x: &Val<'ctx>,
    exponent_bits: u32,
    mantissa_bits: u32,
) -> Result<Val<'ctx>> {
    let raw = super::convert::pattern(e, *x)?;
    let prim = e.prim_of(raw);
    let mantissa = match format_of(x.ty) {
        Some(f) => f.mantissa_bits,
        None if prim == Prim::I32 => 23,
        None => 52,
    };
    let int = |n: u64| e.int(prim, n);
    let width = x.ty.bits();
    let format_exponent_bits = width - mantissa - 1;
    let sign = e.and(raw, int(1 << (width - 1)))?;
    let mut magnitude = e.and(raw, int((1 << (width - 1)) - 1))?;
    if mantissa_bits < mantissa {
        let dropped = u64::from(mantissa - mantissa_bits);
        let last = e.and(e.lshr(magnitude, int(dropped))?, int(1))?;
        let sum = e.add(e.add(magnitude, int((1 << (dropped - 1)) - 1))?, last)?;
        magnitude = e.and(sum, int(!((1 << dropped) - 1)))?;
    }
    if exponent_bits < format_exponent_bits {
        let bias = (1u64 << (format_exponent_bits - 1)) - 1;
        let reach = (1u64 << (exponent_bits.max(1) - 1)) - 1;
        let infinity = ((1 << format_exponent_bits) - 1) << mantissa;
        let too_large = e.icmp(IntPredicate::UGE, magnitude, int((bias + reach + 1) << mantissa))?;
        let too_small = e.icmp(IntPredicate::ULT, magnitude, int((bias - reach + 1) << mantissa))?;
        magnitude = e.select(too_small, int(0), e.select(too_large, int(infinity), magnitude)?)?;
    }
    super::convert::of_pattern(e, x.ty, e.or(sign, magnitude)?)
}

/// `a` where the condition holds, else `b`: bits.
pub fn select<'ctx>(
    e: &Emit<'_, 'ctx>,
    condition: Value<'ctx>,
    a: &Val<'ctx>,
    b: &Val<'ctx>,
) -> Result<Val<'ctx>> {
    use super::value::Parts;
    let parts = match (a.parts, b.parts) {
        (Parts::Two(ar, ai), Parts::Two(br, bi)) => {
            Parts::Two(e.select(condition, ar, br)?, e.select(condition, ai, bi)?)
        }
        (Parts::One(a), Parts::One(b)) => Parts::One(e.select(condition, a, b)?),
        (Parts::One(_), Parts::Two(_, _)) | (Parts::Two(_, _), Parts::One(_)) => {
            return Err(Error::Llvm("selection between a real and a complex number".into()));
        }
    };
    Ok(Val { ty: a.ty, parts, computed: Computed::select(e, condition, a.computed, b.computed)? })
}

/// `stochastic-convert`: the magnitude truncated, plus one if the random bits are less than the fraction,
/// scaled.
pub(super) fn stochastic_convert<'ctx>(
    e: &Emit<'_, 'ctx>,
    x: &Val<'ctx>,
    random: &Val<'ctx>,
    to: ElementType,
) -> Result<Val<'ctx>> {
    if to.class() != TypeClass::Signed {
        return Err(Error::Llvm(format!("stochastic-convert to {to}")));
    }
    let a = widen(e, x)?;
    let a = if e.prim_of(a) == Prim::F64 { a } else { e.fpext(a, Prim::F64)? };
    let bits = to.bits();
    let (low, high) = (i64::MIN >> (64 - bits), i64::MAX >> (64 - bits));
    let truncated = call1(e, "llvm.trunc", a)?;
    let fraction = call1(e, "llvm.fabs", e.fsub(a, truncated)?)?;
    let scaled = e.fmul(fraction, e.f64(2f64.powi(random.ty.bits().cast_signed())))?;
    let integer = e.ty(Prim::I64);
    let saturated = |x: Value<'ctx>| e.intrinsic("llvm.fptoui.sat", &[integer, x.get_type()], &[x]);
    let random = e.zext(super::convert::pattern(e, *random)?, Prim::I64)?;
    let away = e.zext(e.icmp(IntPredicate::ULT, random, saturated(scaled)?)?, Prim::I64)?;
    let magnitude = e.add(saturated(call1(e, "llvm.fabs", truncated)?)?, away)?;
    let negative = e.fcmp(FloatPredicate::OLT, a, e.f64(0.0))?;
    let result = e.select(negative, e.neg(magnitude)?, magnitude)?;
    let above = e.fcmp(FloatPredicate::OGE, a, e.f64(high as f64))?;
    let below = e.fcmp(FloatPredicate::OLE, a, e.f64(low as f64))?;
    let result = e.select(above, e.i64(high), result)?;
    let result = e.select(below, e.i64(low), result)?;
    let is_nan = e.fcmp(FloatPredicate::UNO, a, a)?;
    let result = e.select(is_nan, e.i64(0), result)?;
    wrap(e, to, e.resize(result, register(to), true)?)
}
