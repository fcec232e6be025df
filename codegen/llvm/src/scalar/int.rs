//! Integers and `pred`.

use hlo::ElementType;
use hlo::attrs::Direction;

use super::value::{Val, register};
use crate::{Emit, IntPredicate, Prim, Result, Value};
use hlo::elementwise::{Binary, Unary};

/// Whether a type is one of `s1`, `s2`, `s4`.
pub(super) fn is_sub_byte_signed(ty: ElementType) -> bool {
    ty.is_sub_byte() && ty.is_signed_integer()
}

/// The low bits of a register as a value of the type.
pub(super) fn wrap<'ctx>(e: &Emit<'_, 'ctx>, ty: ElementType, x: Value<'ctx>) -> Result<Val<'ctx>> {
    if !ty.is_sub_byte() {
        return Ok(Val::one(ty, x));
    }
    let prim = e.prim_of(x);
    let unused = e.int(prim, u64::from(prim.bits() - ty.bits()));
    let x = if ty.is_signed_integer() {
        e.ashr(e.shl(x, unused)?, unused)?
    } else {
        e.and(x, e.int(prim, (1 << ty.bits()) - 1))?
    };
    Ok(Val::one(ty, x))
}

/// The bits of a value, zeros above.
fn unsigned<'ctx>(e: &Emit<'_, 'ctx>, x: &Val<'ctx>) -> Result<Value<'ctx>> {
    if is_sub_byte_signed(x.ty) {
        return e.and(x.single(), e.int(Prim::I8, (1 << x.ty.bits()) - 1));
    }
    Ok(x.single())
}

fn call<'ctx>(e: &Emit<'_, 'ctx>, name: &str, arguments: &[Value<'ctx>]) -> Result<Value<'ctx>> {
    e.intrinsic(name, &[arguments[0].get_type()], arguments)
}

/// Which of two integers.
pub(super) fn extreme<'ctx>(
    e: &Emit<'_, 'ctx>,
    signed: bool,
    max: bool,
    a: Value<'ctx>,
    b: Value<'ctx>,
) -> Result<Value<'ctx>> {
    let name = match (signed, max) {
        (true, true) => "llvm.smax",
        (true, false) => "llvm.smin",
        (false, true) => "llvm.umax",
        (false, false) => "llvm.umin",
    };
    call(e, name, &[a, b])
}

/// An operation of one operand; `None` if integers have no such.
pub(super) fn unary<'ctx>(e: &Emit<'_, 'ctx>, op: Unary, x: &Val<'ctx>) -> Result<Option<Val<'ctx>>> {
    let (ty, a) = (x.ty, x.single());
    let (prim, signed) = (register(ty), ty.is_signed_integer());
    let result = match op {
        Unary::Abs if signed => call2(e, "llvm.abs", a, e.scalar().bool(false))?,
        Unary::Abs => a,
        Unary::Negate => e.neg(a)?,
        Unary::Sign if signed => {
            let zero = e.int(prim, 0);
            let above = e.zext(e.icmp(IntPredicate::SGT, a, zero)?, prim)?;
            e.or(above, e.ashr(a, e.int(prim, u64::from(prim.bits() - 1)))?)?
        }
        Unary::Sign => e.zext(e.icmp(IntPredicate::NE, a, e.int(prim, 0))?, prim)?,
        Unary::Not => e.not(a)?,
        Unary::Popcnt => call(e, "llvm.ctpop", &[unsigned(e, x)?])?,
        Unary::CountLeadingZeros => {
            let all = call2(e, "llvm.ctlz", unsigned(e, x)?, e.scalar().bool(false))?;
            e.sub(all, e.int(prim, u64::from(prim.bits() - ty.bits())))?
        }
        Unary::Ceil | Unary::Floor | Unary::RoundNearestAfz | Unary::RoundNearestEven => return Ok(None),
    };
    wrap(e, ty, result).map(Some)
}

fn call2<'ctx>(e: &Emit<'_, 'ctx>, name: &str, a: Value<'ctx>, flag: Value<'ctx>) -> Result<Value<'ctx>> {
    e.intrinsic(name, &[a.get_type()], &[a, flag])
}

/// An operation of two operands; `None` if integers have no such.
pub(super) fn binary<'ctx>(
    e: &Emit<'_, 'ctx>,
    op: Binary,
    x: &Val<'ctx>,
    y: &Val<'ctx>,
) -> Result<Option<Val<'ctx>>> {
    let (ty, a, b) = (x.ty, x.single(), y.single());
    let (prim, signed) = (register(ty), ty.is_signed_integer());
    let bits = e.int(prim, u64::from(ty.bits()));
    let zero = e.int(prim, 0);
    let in_range = |e: &Emit<'_, 'ctx>| e.icmp(IntPredicate::ULT, b, bits);
    // For NVPTX LLVM 22 drops the test of the amount, since PTX shifts by 32 bits of it and clamps: so it is
    // one of 32 bits.
    let shift = |amount: Value<'ctx>| if e.gpu { call(e, "llvm.umin", &[amount, bits]) } else { Ok(amount) };
    let result = match op {
        Binary::Add => e.add(a, b)?,
        Binary::Subtract => e.sub(a, b)?,
        Binary::Multiply => e.mul(a, b)?,
        Binary::Divide => divide(e, ty, a, b)?.0,
        Binary::Remainder => divide(e, ty, a, b)?.1,
        Binary::Power => power(e, signed, a, b)?,
        Binary::Maximum => extreme(e, signed, true, a, b)?,
        Binary::Minimum => extreme(e, signed, false, a, b)?,
        Binary::And => e.and(a, b)?,
        Binary::Or => e.or(a, b)?,
        Binary::Xor => e.xor(a, b)?,
        // A shift by too much is poison, which the selection drops.
        Binary::ShiftLeft => e.select(in_range(e)?, e.shl(a, shift(b)?)?, zero)?,
        Binary::ShiftRightLogical => e.select(in_range(e)?, e.lshr(unsigned(e, x)?, shift(b)?)?, zero)?,
        Binary::ShiftRightArithmetic => {
            let most = e.int(prim, u64::from(prim.bits() - 1));
            let unused = e.int(prim, u64::from(prim.bits() - ty.bits()));
            let signed = e.ashr(e.shl(a, unused)?, unused)?;
            e.ashr(signed, call(e, "llvm.umin", &[b, most])?)?
        }
        Binary::Mulhi => {
            let wide = Prim::int(2 * prim.bits());
            let product = e.mul(e.resize(a, wide, signed)?, e.resize(b, wide, signed)?)?;
            e.trunc(e.lshr(product, e.int(wide, u64::from(ty.bits())))?, prim)?
        }
        Binary::Atan2 => return Ok(None),
    };
    wrap(e, ty, result).map(Some)
}

/// Quotient and remainder: x/0 is all ones, x%0 is x, MIN/-1 is MIN and MIN%-1 is 0.
fn divide<'ctx>(
    e: &Emit<'_, 'ctx>,
    ty: ElementType,
    a: Value<'ctx>,
    b: Value<'ctx>,
) -> Result<(Value<'ctx>, Value<'ctx>)> {
    let (prim, signed) = (register(ty), ty.is_signed_integer());
    let (zero, one, ones) = (e.int(prim, 0), e.int(prim, 1), e.int(prim, u64::MAX));
    let by_zero = e.icmp(IntPredicate::EQ, b, zero)?;
    let by_minus_one = e.icmp(IntPredicate::EQ, b, ones)?;
    let special = if signed { e.or(by_zero, by_minus_one)? } else { by_zero };
    let safe = e.select(special, one, b)?;
    let quotient = quotient(e, prim, signed, a, safe)?;
    let remainder = e.sub(a, e.mul(quotient, safe)?)?;
    let quotient = if signed { e.select(by_minus_one, e.neg(a)?, quotient)? } else { quotient };
    Ok((e.select(by_zero, ones, quotient)?, e.select(by_zero, a, remainder)?))
}

/// Of a divisor that is neither 0 nor, if signed, -1. There are no vector instructions for it: by constants
/// LLVM multiplies; otherwise up to 32 bits go through floats, whose rounded quotient is never at or beyond
/// the next integer, since the exact one is at least 1/divisor away from it.
fn quotient<'ctx>(
    e: &Emit<'_, 'ctx>,
    prim: Prim,
    signed: bool,
    a: Value<'ctx>,
    b: Value<'ctx>,
) -> Result<Value<'ctx>> {
    let float = match prim.bits() {
        _ if e.lanes == 1 || e.gpu || e.is_constant(b) => None,
        8 => Some(Prim::F32),
        16 => Some(Prim::F32),
        32 => Some(Prim::F64),
        _ => None,
    };
    match (float, signed) {
        (Some(float), true) => {
            let quotient = e.fdiv(e.sitofp(a, float)?, e.sitofp(b, float)?)?;
            let wide = e.fptosi(quotient, Prim::I32)?;
            e.resize(wide, prim, true)
        }
        (Some(float), false) => {
            let quotient = e.fdiv(e.uitofp(a, float)?, e.uitofp(b, float)?)?;
            let wide = e.fptoui(quotient, Prim::I32)?;
            e.resize(wide, prim, false)
        }
        (None, true) => e.sdiv(a, b),
        (None, false) => e.udiv(a, b),
    }
}

/// By squaring, as long as any lane has exponent bits left.
fn power<'ctx>(
    e: &Emit<'_, 'ctx>,
    signed: bool,
    base: Value<'ctx>,
    exponent: Value<'ctx>,
) -> Result<Value<'ctx>> {
    let prim = e.prim_of(base);
    let (zero, one) = (e.int(prim, 0), e.int(prim, 1));
    let state = e.do_while(&[base, exponent, one], |state| {
        let (base, exponent, result) = (state[0], state[1], state[2]);
        let odd = e.icmp(IntPredicate::NE, e.and(exponent, one)?, zero)?;
        let result = e.select(odd, e.mul(result, base)?, result)?;
        let (base, rest) = (e.mul(base, base)?, e.lshr(exponent, one)?);
        let left = if e.lanes == 1 {
            rest
        } else {
            e.intrinsic("llvm.vector.reduce.or", &[rest.get_type()], &[rest])?
        };
        let more = e.icmp(IntPredicate::NE, left, e.scalar().int(prim, 0))?;
        Ok((more, vec![base, rest, result]))
    })?;
    if !signed {
        return Ok(state[2]);
    }
    let negative = e.icmp(IntPredicate::SLT, exponent, zero)?;
    let of_one = e.zext(e.icmp(IntPredicate::EQ, base, one)?, prim)?;
    e.select(negative, of_one, state[2])
}

/// Comparison of registers.
pub fn compare<'ctx>(
    e: &Emit<'_, 'ctx>,
    direction: Direction,
    signed: bool,
    a: Value<'ctx>,
    b: Value<'ctx>,
) -> Result<Value<'ctx>> {
    let predicate = match (direction, signed) {
        (Direction::Eq, _) => IntPredicate::EQ,
        (Direction::Ne, _) => IntPredicate::NE,
        (Direction::Lt, true) => IntPredicate::SLT,
        (Direction::Le, true) => IntPredicate::SLE,
        (Direction::Gt, true) => IntPredicate::SGT,
        (Direction::Ge, true) => IntPredicate::SGE,
        (Direction::Lt, false) => IntPredicate::ULT,
        (Direction::Le, false) => IntPredicate::ULE,
        (Direction::Gt, false) => IntPredicate::UGT,
        (Direction::Ge, false) => IntPredicate::UGE,
    };
    e.icmp(predicate, a, b)
}

/// An operation of one operand on `pred`, which is arithmetic on 0 and 1; `None` if it has no such.
pub(super) fn pred_unary<'ctx>(e: &Emit<'_, 'ctx>, op: Unary, x: &Val<'ctx>) -> Result<Option<Val<'ctx>>> {
    Ok(match op {
        Unary::Not => Some(Val::of_bool(e.not(x.single())?)),
        Unary::Abs | Unary::Sign | Unary::Popcnt | Unary::Negate => Some(*x),
        Unary::CountLeadingZeros
        | Unary::Ceil
        | Unary::Floor
        | Unary::RoundNearestAfz
        | Unary::RoundNearestEven => None,
    })
}

/// An operation of two operands on `pred`; `None` if it has no such.
pub(super) fn pred_binary<'ctx>(
    e: &Emit<'_, 'ctx>,
    op: Binary,
    x: &Val<'ctx>,
    y: &Val<'ctx>,
) -> Result<Option<Val<'ctx>>> {
    let (a, b) = (x.single(), y.single());
    Ok(Some(Val::of_bool(match op {
        Binary::Add | Binary::Maximum | Binary::Or => e.or(a, b)?,
        Binary::Subtract | Binary::Xor => e.xor(a, b)?,
        Binary::Multiply | Binary::Minimum | Binary::And => e.and(a, b)?,
        Binary::Divide | Binary::Power => e.or(a, e.not(b)?)?,
        Binary::Remainder => e.and(a, e.not(b)?)?,
        Binary::Mulhi
        | Binary::ShiftLeft
        | Binary::ShiftRightArithmetic
        | Binary::ShiftRightLogical
        | Binary::Atan2 => return Ok(None),
    })))
}

/// `min(high, max(x, low))`.
pub(super) fn clamp<'ctx>(
    e: &Emit<'_, 'ctx>,
    low: &Val<'ctx>,
    x: &Val<'ctx>,
    high: &Val<'ctx>,
) -> Result<Val<'ctx>> {
    let signed = x.ty.is_signed_integer();
    let above = extreme(e, signed, true, x.single(), low.single())?;
    Ok(Val::one(x.ty, extreme(e, signed, false, above, high.single())?))
}

/// An integer of any type as one of another width, clamped to a range that fits that.
pub fn clamped_index<'ctx>(
    e: &Emit<'_, 'ctx>,
    x: &Val<'ctx>,
    to: Prim,
    low: i64,
    high: i64,
) -> Result<Value<'ctx>> {
    let signed = x.ty().is_signed_integer();
    let value = x.registers()[0];
    let prim = Prim::int(e.prim_of(value).bits().max(to.bits()));
    let mut value = e.resize(value, prim, signed)?;
    // Unsigned numbers beyond the signed range are above every bound.
    let (less, more) = match signed {
        true => (IntPredicate::SLT, IntPredicate::SGT),
        false => (IntPredicate::ULT, IntPredicate::UGT),
    };
    if signed || low > 0 {
        let low = e.int(prim, low.cast_unsigned());
        value = e.select(e.icmp(less, value, low)?, low, value)?;
    }
    let high = e.int(prim, high.cast_unsigned());
    value = e.select(e.icmp(more, value, high)?, high, value)?;
    e.resize(value, to, true)
}
