//! One element, or one element per lane: every elementwise operation on every element type.
//!
//! What each computes is that of SEMANTICS.md: [`elementwise`] agrees with the interpreter to the bit where
//! the opcode table says so, and within the caps it states elsewhere. A value is a [`Val`]; its form in
//! registers and in memory is in [`value`]. No instruction here traps, and none depends on rounding modes or
//! other state; control flow is in rare cases (integer powers, remainders), so the builder's block may
//! change.

pub mod combine;
mod complex;
pub mod convert;
mod device;
mod extreme;
mod float;
mod functions;
mod int;
mod narrow;
#[cfg(test)]
mod tests;
pub mod value;

use hlo::elementwise::{Binary, Function, Kind, Unary, kind};
use hlo::{AttrKey, ElementType, Instruction, Opcode, TypeClass};
use hlo_library_base::Unsupported;

use crate::{Emit, Result};
pub use convert::{convert, joined, of_pattern, pattern};
pub use float::{extreme_key, of_extreme_key, order_key, quotient, select};
use functions::Digits;
pub use int::{clamped_index, compare as compare_integers};
use narrow::format_of;
pub use value::{Val, register, storage};

/// An elementwise instruction on elements of its operands, all on the lanes of `e`. Errors: an instruction
/// that is not elementwise, which includes a `bitcast-convert` between types of different widths.
pub fn elementwise<'ctx>(
    e: &Emit<'_, 'ctx>,
    instr: &Instruction,
    operands: &[Val<'ctx>],
) -> Result<Val<'ctx>> {
    let refuse = |reason: String| Unsupported { opcode: instr.opcode, span: instr.span, reason };
    let not = || Err(refuse("not elementwise".into()).into());
    let Some(ty) = instr.shape.element_type() else { return not() };
    let Some(&x) = operands.first() else { return Err(refuse("no operand".into()).into()) };
    if instr.opcode == Opcode::BitcastConvert {
        if x.ty.bits() != ty.bits() {
            return Err(refuse(format!("from {} to {ty} it is not elementwise", x.ty)).into());
        }
        return convert::bitcast_convert(e, x, ty);
    }
    let Some(kind) = kind(instr.opcode) else { return not() };
    let operand = |i: usize| {
        operands.get(i).copied().ok_or_else(|| refuse(format!("it has {} operands", operands.len())))
    };
    // Float types may be mixed: operands are converted to the type of the result.
    let coerced = |i: usize| convert(e, operand(i)?, ty);
    let result = match kind {
        Kind::Function(f) => function(e, f, &coerced(0)?)?,
        Kind::Unary(Unary::Abs) if x.ty.is_complex() => complex::unary(e, Unary::Abs, &x)?,
        Kind::Unary(op) => unary(e, op, &coerced(0)?)?,
        Kind::Binary(op) => binary(e, op, &coerced(0)?, &coerced(1)?)?,
        Kind::Real => Some(part(e, &x, false)),
        Kind::Imag => Some(part(e, &x, true)),
        Kind::IsFinite => match x.ty.class() {
            TypeClass::Float => Some(Val::of_bool(float::is_finite(e, &x)?)),
            TypeClass::Pred | TypeClass::Signed | TypeClass::Unsigned | TypeClass::Complex => None,
        },
        Kind::ReducePrecision => {
            let bits = |key| instr.attrs.int(key).and_then(|n| u32::try_from(n).ok());
            match (bits(AttrKey::ExponentBits), bits(AttrKey::MantissaBits)) {
                (Some(exponent), Some(mantissa)) if x.ty.is_float() => {
                    let reduced = float::reduce_precision(e, &x, exponent, mantissa)?;
                    Some(convert(e, reduced, ty)?)
                }
                (_, _) => None,
            }
        }
        Kind::Convert => Some(convert(e, x, ty)?),
        Kind::StochasticConvert => Some(float::stochastic_convert(e, &x, &operand(1)?, ty)?),
        Kind::Compare => compare(e, instr, x, operand(1)?)?,
        Kind::Complex => {
            let y = operand(1)?;
            // One mark of both parts.
            let alike = matches!(
                (x.computed, y.computed),
                (value::Computed::Everywhere, value::Computed::Everywhere)
            );
            let (x, y) = if alike { (x, y) } else { (x.settled(e)?, y.settled(e)?) };
            match (x.parts, y.parts) {
                (value::Parts::One(re), value::Parts::One(im)) if ty.is_complex() => {
                    Some(Val { computed: x.computed, ..Val::complex(ty, re, im) })
                }
                (_, _) => None,
            }
        }
        Kind::Clamp => clamp(e, &coerced(0)?, &coerced(1)?, &coerced(2)?)?,
        Kind::Select => Some(float::select(e, x.to_bool(), &coerced(1)?, &coerced(2)?)?),
    };
    let result = result.ok_or_else(|| refuse(format!("there is none of {}", x.ty)))?;
    // Parts and magnitudes of complex numbers come in the type of the parts.
    if result.ty != ty && result.ty.is_float() && ty.is_float() { convert(e, result, ty) } else { Ok(result) }
}

/// An operation of two operands of one type, as the computations of reductions apply it; `None` if there is
/// no such.
pub fn binary<'ctx>(
    e: &Emit<'_, 'ctx>,
    op: Binary,
    x: &Val<'ctx>,
    y: &Val<'ctx>,
) -> Result<Option<Val<'ctx>>> {
    match x.ty.class() {
        TypeClass::Pred => int::pred_binary(e, op, x, y),
        TypeClass::Signed | TypeClass::Unsigned => int::binary(e, op, x, y),
        TypeClass::Float => float::binary(e, op, x, y),
        TypeClass::Complex => complex::binary(e, op, x, y),
    }
}

/// `sum + x * y` as contractions sum: fused, of complex numbers part by part. Without a sum it begins with
/// +0. `None` for predicates.
pub fn multiply_add<'ctx>(
    e: &Emit<'_, 'ctx>,
    sum: Option<&Val<'ctx>>,
    x: &Val<'ctx>,
    y: &Val<'ctx>,
) -> Result<Option<Val<'ctx>>> {
    match x.ty.class() {
        TypeClass::Float => float::multiply_add(e, sum, x, y).map(Some),
        TypeClass::Complex => complex::multiply_add(e, sum, x, y).map(Some),
        TypeClass::Pred | TypeClass::Signed | TypeClass::Unsigned => {
            let product = binary(e, Binary::Multiply, x, y)?;
            match (sum, &product) {
                (Some(sum), Some(product)) => binary(e, Binary::Add, sum, product),
                (_, _) => Ok(product),
            }
        }
    }
}

fn unary<'ctx>(e: &Emit<'_, 'ctx>, op: Unary, x: &Val<'ctx>) -> Result<Option<Val<'ctx>>> {
    match x.ty.class() {
        TypeClass::Pred => int::pred_unary(e, op, x),
        TypeClass::Signed | TypeClass::Unsigned => int::unary(e, op, x),
        TypeClass::Float => float::unary(e, op, x),
        TypeClass::Complex => complex::unary(e, op, x),
    }
}

fn function<'ctx>(e: &Emit<'_, 'ctx>, f: Function, x: &Val<'ctx>) -> Result<Option<Val<'ctx>>> {
    match x.ty.class() {
        TypeClass::Pred | TypeClass::Signed | TypeClass::Unsigned => Ok(None),
        TypeClass::Float => {
            // What they give of a NaN is the NaN itself, or one that arithmetic made.
            let digits = if x.ty == ElementType::BF16 { Digits::Bf16 } else { Digits::All };
            narrow::computed(e, [x], narrow::Rounding::Arithmetic, |[x]| functions::unary(e, f, x, digits))
                .map(Some)
        }
        TypeClass::Complex => complex::function(e, f, x),
    }
}

/// `real` or `imag`: of real numbers themselves and zero.
fn part<'ctx>(e: &Emit<'_, 'ctx>, x: &Val<'ctx>, imaginary: bool) -> Val<'ctx> {
    let part = x.ty.real_part();
    if x.ty.is_complex() {
        let (re, im) = x.pair();
        return Val { computed: x.computed, ..Val::one(part, if imaginary { im } else { re }) };
    }
    if !imaginary {
        return *x;
    }
    // The type without zero has NaN instead.
    let zero = format_of(part).filter(|f| !f.has_zero()).map_or(0, |f| u128::from(f.converted_nan_bits()));
    Val::of_bits(e, part, zero)
}

fn compare<'ctx>(
    e: &Emit<'_, 'ctx>,
    instr: &Instruction,
    x: Val<'ctx>,
    y: Val<'ctx>,
) -> Result<Option<Val<'ctx>>> {
    let Some(&direction) = instr.attrs.direction() else { return Ok(None) };
    let total = instr.attrs.is_total_order();
    let ty = x.ty.holding(y.ty);
    let (x, y) = (convert(e, x, ty)?, convert(e, y, ty)?);
    let bit = match ty.class() {
        TypeClass::Pred | TypeClass::Unsigned => int::compare(e, direction, false, x.single(), y.single())?,
        TypeClass::Signed => int::compare(e, direction, true, x.single(), y.single())?,
        TypeClass::Float => float::compare(e, direction, total, &x, &y)?,
        TypeClass::Complex => return Ok(complex::compare(e, direction, &x, &y)?.map(Val::of_bool)),
    };
    Ok(Some(Val::of_bool(bit)))
}

fn clamp<'ctx>(
    e: &Emit<'_, 'ctx>,
    low: &Val<'ctx>,
    x: &Val<'ctx>,
    high: &Val<'ctx>,
) -> Result<Option<Val<'ctx>>> {
    Ok(Some(match x.ty.class() {
        TypeClass::Pred => {
            let above = e.or(x.single(), low.single())?;
            Val::of_bool(e.and(above, high.single())?)
        }
        TypeClass::Signed | TypeClass::Unsigned => int::clamp(e, low, x, high)?,
        TypeClass::Float => float::clamp(e, low, x, high)?,
        TypeClass::Complex => complex::clamp(e, low, x, high)?,
    }))
}

/// Whether [`elementwise`] emits an instruction of this opcode from operands and to results of these types.
pub fn is_elementwise(opcode: Opcode, operand: ElementType, result: ElementType) -> bool {
    kind(opcode).is_some() || opcode == Opcode::BitcastConvert && operand.bits() == result.bits()
}
