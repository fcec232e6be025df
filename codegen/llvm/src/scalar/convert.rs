//! `convert` and `bitcast-convert` between all pairs of types.

use hlo::{ElementType, TypeClass};

use super::int::wrap;
use super::narrow::{format_of, round, round_f64, wide_prim, widen};
use super::value::{Computed, Val, register};
use crate::{Emit, Error, FloatPredicate, IntPredicate, Prim, Result, Value};

/// HLO's `convert`; a type converted to itself is the same value.
pub fn convert<'ctx>(e: &Emit<'_, 'ctx>, x: Val<'ctx>, to: ElementType) -> Result<Val<'ctx>> {
    if x.ty == to {
        return Ok(x);
    }
    if to.is_complex() {
        let part = to.real_part();
        return match x.ty.class() {
            TypeClass::Complex => {
                let (re, im) = x.pair();
                let from = x.ty.real_part();
                let re = convert(e, Val { computed: x.computed, ..Val::one(from, re) }, part)?;
                let im = convert(e, Val { computed: x.computed, ..Val::one(from, im) }, part)?;
                Ok(Val::complex(to, re.single(), im.single()))
            }
            TypeClass::Pred | TypeClass::Signed | TypeClass::Unsigned | TypeClass::Float => {
                let re = convert(e, x, part)?;
                let zero = e.float(register(part), 0.0);
                // Of a part of the same type too, which alone keeps payloads.
                Ok(Val::complex(to, re.single(), zero))
            }
        };
    }
    match x.ty.class() {
        TypeClass::Complex => {
            let re = Val { computed: Computed::Everywhere, ..Val::one(x.ty.real_part(), x.single()) };
            convert(e, re, to)
        }
        TypeClass::Pred | TypeClass::Signed | TypeClass::Unsigned => from_int(e, x, to),
        TypeClass::Float => from_float(e, x, to),
    }
}

fn not_zero<'ctx>(e: &Emit<'_, 'ctx>, x: Value<'ctx>) -> Result<Value<'ctx>> {
    e.fcmp(FloatPredicate::UNE, x, e.float(e.prim_of(x), 0.0))
}

fn from_int<'ctx>(e: &Emit<'_, 'ctx>, x: Val<'ctx>, to: ElementType) -> Result<Val<'ctx>> {
    let (bits, signed) = (x.single(), x.ty.is_signed_integer());
    let prim = register(x.ty);
    match to.class() {
        TypeClass::Pred => Ok(Val::of_bool(e.icmp(IntPredicate::NE, bits, e.int(prim, 0))?)),
        TypeClass::Signed | TypeClass::Unsigned => wrap(e, to, e.resize(bits, register(to), signed)?),
        TypeClass::Float => int_to_float(e, bits, signed, to),
        TypeClass::Complex => Err(Error::Llvm("complex numbers are made part by part".into())),
    }
}

/// Rounded once.
fn int_to_float<'ctx>(
    e: &Emit<'_, 'ctx>,
    x: Value<'ctx>,
    signed: bool,
    to: ElementType,
) -> Result<Val<'ctx>> {
    let float = |x, prim| if signed { e.sitofp(x, prim) } else { e.uitofp(x, prim) };
    let width = e.prim_of(x).bits();
    if matches!(to, ElementType::F32 | ElementType::F64) {
        return Ok(Val::one(to, float(x, register(to))?));
    }
    if width <= 16 && wide_prim(to) == Prim::F32 {
        let exact = float(x, Prim::F32)?;
        return round(e, to, exact);
    }
    if width <= 32 && wide_prim(to) == Prim::F32 {
        let exact = float(jammed(e, x, signed, f32::MANTISSA_DIGITS)?, Prim::F32)?;
        return round(e, to, exact);
    }
    let exact = if width <= 32 { x } else { jammed(e, x, signed, f64::MANTISSA_DIGITS)? };
    let exact = float(exact, Prim::F64)?;
    round_f64(e, to, exact)
}

/// An integer as one that a float of that many digits has, and that rounds to every type of fewer than half
/// of them as the integer does: where it is of more digits, those that are too many are gathered in the one
/// above them, which is below every such rounding.
fn jammed<'ctx>(e: &Emit<'_, 'ctx>, x: Value<'ctx>, signed: bool, digits: u32) -> Result<Value<'ctx>> {
    let prim = e.prim_of(x);
    let many = prim.bits() - digits;
    let of = |n: u64| e.int(prim, n);
    let low = (1u64 << many) - 1;
    let high = u64::MAX >> (u64::BITS - prim.bits()) & !low;
    let sticky = e.icmp(IntPredicate::NE, e.and(x, of(low))?, of(0))?;
    let jammed = e.or(e.and(x, of(high))?, e.shl(e.zext(sticky, prim)?, of(u64::from(many)))?)?;
    // |x| < 2^digits, or x < 2^digits.
    let top = if signed { e.ashr(x, of(digits.into()))? } else { e.lshr(x, of(digits.into()))? };
    let one = of(signed.into());
    let fits = e.icmp(IntPredicate::ULE, e.add(top, one)?, one)?;
    e.select(fits, x, jammed)
}

fn from_float<'ctx>(e: &Emit<'_, 'ctx>, x: Val<'ctx>, to: ElementType) -> Result<Val<'ctx>> {
    let wide = widen(e, &x)?;
    let is_f64 = e.prim_of(wide) == Prim::F64;
    match to.class() {
        TypeClass::Pred => Ok(Val::of_bool(not_zero(e, wide)?)),
        TypeClass::Signed | TypeClass::Unsigned => saturate(e, wide, to),
        TypeClass::Float if wide_prim(to) == Prim::F64 => {
            let wide = if is_f64 { wide } else { e.fpext(wide, Prim::F64)? };
            round(e, to, wide)
        }
        TypeClass::Float if is_f64 => round_f64(e, to, wide),
        TypeClass::Float => round(e, to, wide),
        TypeClass::Complex => Err(Error::Llvm("complex numbers are made part by part".into())),
    }
}

/// Truncated; out of range the end of the range, NaN 0.
fn saturate<'ctx>(e: &Emit<'_, 'ctx>, x: Value<'ctx>, to: ElementType) -> Result<Val<'ctx>> {
    let (prim, bits, signed) = (register(to), to.bits(), to.is_signed_integer());
    let from = e.prim_of(x);
    if bits > 16 && e.lanes_of(x) == 1 {
        // Of lanes LLVM makes one conversion after the other.
        let name = if signed { "llvm.fptosi.sat" } else { "llvm.fptoui.sat" };
        return Ok(Val::one(to, e.intrinsic(name, &[e.ty(prim), x.get_type()], &[x])?));
    }
    let truncated = |x| {
        if bits <= 16 {
            // Inside 32 bits nothing saturates.
            return e.trunc(e.fptosi(x, Prim::I32)?, prim);
        }
        if signed { e.fptosi(x, prim) } else { e.fptoui(x, prim) }
    };
    let size = if signed { bits - 1 } else { bits };
    let low = e.float(from, if signed { -f64::from(size).exp2() } else { 0.0 });
    let above = f64::from(size).exp2();
    let precision = if from == Prim::F64 { f64::MANTISSA_DIGITS } else { f32::MANTISSA_DIGITS };
    if size <= precision {
        // The greatest integer is a number of the float type.
        let high = e.float(from, above - 1.0);
        let x = if signed {
            let x = e.select(e.fcmp(FloatPredicate::ORD, x, x)?, x, e.float(from, 0.0))?;
            e.select(e.fcmp(FloatPredicate::OGT, low, x)?, low, x)?
        } else {
            // The low end is what a NaN becomes: one maximum.
            e.select(e.fcmp(FloatPredicate::OGT, x, low)?, x, low)?
        };
        let x = e.select(e.fcmp(FloatPredicate::OLT, high, x)?, high, x)?;
        return Ok(Val::one(to, truncated(x)?));
    }
    let below = e.float(from, above * (1.0 - (-f64::from(precision)).exp2()));
    let inside = e.select(e.fcmp(FloatPredicate::OGT, x, low)?, x, low)?;
    let inside = e.select(e.fcmp(FloatPredicate::OLT, inside, below)?, inside, below)?;
    let beyond = e.fcmp(FloatPredicate::OGE, x, e.float(from, above))?;
    let result = e.select(beyond, e.int(prim, u64::MAX >> (64 - size)), truncated(inside)?)?;
    if !signed {
        return Ok(Val::one(to, result));
    }
    let unordered = e.fcmp(FloatPredicate::UNO, x, x)?;
    Ok(Val::one(to, e.select(unordered, e.int(prim, 0), result)?))
}

/// HLO's `bitcast-convert` between types of one width. Errors: types of different widths, which are no
/// elementwise operation.
pub(super) fn bitcast_convert<'ctx>(e: &Emit<'_, 'ctx>, x: Val<'ctx>, to: ElementType) -> Result<Val<'ctx>> {
    if x.ty == to {
        return Ok(x);
    }
    if x.ty.bits() != to.bits() {
        return Err(Error::Llvm(format!("bitcast-convert of {} to {to} is not elementwise", x.ty)));
    }
    of_pattern(e, to, pattern(e, x)?)
}

/// The bits of elements, zero-extended to the integer that holds them; 128 for `c128`.
pub fn pattern<'ctx>(e: &Emit<'_, 'ctx>, x: Val<'ctx>) -> Result<Value<'ctx>> {
    let x = x.settled(e)?;
    match x.ty.class() {
        TypeClass::Pred => e.zext(x.single(), Prim::I8),
        TypeClass::Signed if x.ty.is_sub_byte() => e.and(x.single(), e.int(Prim::I8, (1 << x.ty.bits()) - 1)),
        TypeClass::Signed | TypeClass::Unsigned => Ok(x.single()),
        TypeClass::Float if format_of(x.ty).is_some() => Ok(x.single()),
        TypeClass::Float => e.bitcast(x.single(), Prim::int(x.ty.bits())),
        TypeClass::Complex => {
            let (re, im) = x.pair();
            let half = x.ty.bits() / 2;
            joined(e, e.bitcast(re, Prim::int(half))?, e.bitcast(im, Prim::int(half))?)
        }
    }
}

/// Integers of twice the width, of lower and upper halves.
pub fn joined<'ctx>(e: &Emit<'_, 'ctx>, low: Value<'ctx>, high: Value<'ctx>) -> Result<Value<'ctx>> {
    let half = e.prim_of(low).bits();
    let whole = Prim::int(2 * half);
    if e.lanes == 1 {
        let high = e.shl(e.zext(high, whole)?, e.int(whole, u64::from(half)))?;
        return e.or(e.zext(low, whole)?, high);
    }
    // Interleaves the lanes of both, which is what LLVM makes of the above where it can: for some gathered
    // operands it selects no instruction.
    let w = e.lanes;
    let mask: Vec<u32> = (0..2 * w).map(|l| l / 2 + (l % 2) * w).collect();
    e.bitcast_to(e.shuffle(low, high, &mask)?, e.ty(whole))
}

/// The elements with these bits: what [`pattern`] gives.
pub fn of_pattern<'ctx>(e: &Emit<'_, 'ctx>, ty: ElementType, bits: Value<'ctx>) -> Result<Val<'ctx>> {
    match ty.class() {
        TypeClass::Pred => Ok(Val::of_bool(e.trunc(bits, Prim::I1)?)),
        TypeClass::Signed | TypeClass::Unsigned => wrap(e, ty, bits),
        TypeClass::Float if format_of(ty).is_some() => Ok(Val::one(ty, bits)),
        TypeClass::Float => Ok(Val::one(ty, e.bitcast(bits, register(ty))?)),
        TypeClass::Complex => {
            let half = ty.bits() / 2;
            let (part, whole) = (Prim::int(half), Prim::int(ty.bits()));
            let high = e.lshr(bits, e.int(whole, u64::from(half)))?;
            let re = e.bitcast(e.trunc(bits, part)?, register(ty))?;
            let im = e.bitcast(e.trunc(high, part)?, register(ty))?;
            Ok(Val { computed: Computed::Nowhere, ..Val::complex(ty, re, im) })
        }
    }
}
