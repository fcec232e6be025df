//! Integer arithmetic.

use hlo::attrs::Direction;
use hlo::{InstrId, Opcode, TypeClass};

use super::edit::{Edit, other_sign};
use super::{Family, Row, row};

pub(super) const ROWS: &[Row] = &[
    row(
        "abs-of-least-saturates",
        Family::Elementwise,
        "`abs` of the least integer is the greatest, as if it were never negative.",
        "https://github.com/openxla/xla/pull/46628",
        &[Opcode::Abs],
        abs_of_least_saturates,
    ),
    row(
        "shift-amount-masked",
        Family::Elementwise,
        "Left and logical right shifts by the width or more use the low bits of the amount, as x86 does, instead of giving 0.",
        "https://github.com/jax-ml/jax/pull/33157",
        &[Opcode::ShiftLeft, Opcode::ShiftRightLogical],
        shift_amount_masked,
    ),
    row(
        "compare-unsigned-as-signed",
        Family::Elementwise,
        "Unsigned integers are compared as signed ones.",
        "https://github.com/llvm/llvm-project/issues/70470",
        &[Opcode::Compare],
        compare_unsigned_as_signed,
    ),
    row(
        "unsigned-division-as-signed",
        Family::Elementwise,
        "Unsigned division and remainder are done as signed.",
        "https://github.com/llvm/llvm-project/issues/89516",
        &[Opcode::Divide, Opcode::Remainder],
        unsigned_division_as_signed,
    ),
    row(
        "signed-division-by-shift",
        Family::Elementwise,
        "Signed division by a power of two is an arithmetic shift, which rounds down instead of towards zero.",
        "https://github.com/jax-ml/jax/issues/9604",
        &[Opcode::Divide],
        signed_division_by_shift,
    ),
    row(
        "remainder-takes-sign-of-divisor",
        Family::Elementwise,
        "The remainder of signed integers has the sign of the divisor instead of the dividend's.",
        "https://github.com/llvm/llvm-project/issues/121584",
        &[Opcode::Remainder],
        remainder_takes_sign_of_divisor,
    ),
];

fn abs_of_least_saturates(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Abs)?;
    let x = e.operand(0)?;
    let ty = e.integer(x).filter(|ty| ty.is_signed_integer())?;
    let least = -(1i128 << (ty.bits() - 1));
    let (low, high) = (e.int(x, least)?, e.int(x, -(least + 1))?);
    let p = e.compare(Direction::Eq, x, low)?;
    let (attrs, operands) = (e.attrs(), e.operands());
    let abs = e.again(&operands, attrs)?;
    e.select(p, high, abs)
}

fn shift_amount_masked(e: &mut Edit<'_>) -> Option<InstrId> {
    let opcode = e.one_of(&[Opcode::ShiftLeft, Opcode::ShiftRightLogical])?;
    let (x, amount) = e.pair()?;
    let ty = e.integer(x).filter(|ty| ty.bits() >= 8)?;
    let mask = e.int(x, i128::from(ty.bits() - 1))?;
    let amount = e.bin(Opcode::And, amount, mask)?;
    e.bin(opcode, x, amount)
}

fn compare_unsigned_as_signed(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Compare)?;
    let (a, b) = e.pair()?;
    let signed = other_sign(e.integer(a).filter(|ty| ty.is_unsigned_integer())?)?;
    let direction = *e.me().attrs.direction()?;
    (!matches!(direction, Direction::Eq | Direction::Ne)).then_some(())?;
    let (a, b) = (e.bitcast(a, signed)?, e.bitcast(b, signed)?);
    e.compare(direction, a, b)
}

fn unsigned_division_as_signed(e: &mut Edit<'_>) -> Option<InstrId> {
    let opcode = e.one_of(&[Opcode::Divide, Opcode::Remainder])?;
    let (a, b) = e.pair()?;
    let ty = e.integer(a).filter(|ty| ty.is_unsigned_integer())?;
    let signed = other_sign(ty)?;
    let (a, b) = (e.bitcast(a, signed)?, e.bitcast(b, signed)?);
    let quotient = e.bin(opcode, a, b)?;
    e.bitcast(quotient, ty)
}

fn signed_division_by_shift(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Divide)?;
    let (a, b) = e.pair()?;
    let ty = e.integer(a).filter(|ty| ty.is_signed_integer())?;
    let divisor = e.splat_value(b).filter(|d| d.is_power_of_two())?;
    let shift = divisor.trailing_zeros();
    (shift >= 1 && shift < ty.bits() - 1).then_some(())?;
    let amount = e.int(a, i128::from(shift))?;
    e.bin(Opcode::ShiftRightArithmetic, a, amount)
}

fn remainder_takes_sign_of_divisor(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Remainder)?;
    let (a, b) = e.pair()?;
    let ty = e.ty(a)?;
    match ty.class() {
        TypeClass::Signed => {}
        TypeClass::Pred | TypeClass::Unsigned | TypeClass::Float | TypeClass::Complex => return None,
    }
    let attrs = e.attrs();
    let rest = e.again(&[a, b], attrs)?;
    let zero = e.int(a, 0)?;
    let uneven = e.compare(Direction::Ne, rest, zero)?;
    let (rest_negative, b_negative) =
        (e.compare(Direction::Lt, rest, zero)?, e.compare(Direction::Lt, b, zero)?);
    let signs_differ = e.bin(Opcode::Xor, rest_negative, b_negative)?;
    let both = e.bin(Opcode::And, uneven, signs_differ)?;
    let moved = e.bin(Opcode::Add, rest, b)?;
    e.select(both, moved, rest)
}
