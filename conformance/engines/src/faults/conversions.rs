//! Conversions between element types.

use hlo::{ElementType, InstrId, Opcode};

use super::edit::{Edit, other_sign};
use super::{Family, Needs, Row, row};

pub(super) const ROWS: &[Row] = &[
    row(
        "convert-nan-to-least",
        Family::Elementwise,
        "NaN as a signed integer is the least one, which is what x86 gives, instead of 0.",
        "https://github.com/tensorflow/tensorflow/issues/117774",
        &[Opcode::Convert],
        convert_nan_to_least,
    ),
    row(
        "convert-wraps",
        Family::Elementwise,
        "A float beyond the range of a narrow integer type goes through a wider one and wraps instead of saturating.",
        "https://github.com/tensorflow/tensorflow/issues/115736",
        &[Opcode::Convert],
        convert_wraps,
    ),
    row(
        "four-bit-not-sign-extended",
        Family::Elementwise,
        "Signed integers of 4 bits and fewer are zero-extended when they are widened.",
        "https://github.com/jax-ml/jax/issues/17672",
        &[Opcode::Convert],
        four_bit_not_sign_extended,
    ),
    row(
        "predicate-sign-extended",
        Family::Elementwise,
        "`true` as an integer or a float is -1: the one bit is sign-extended.",
        "https://github.com/openxla/xla/issues/37159",
        &[Opcode::Convert],
        predicate_sign_extended,
    ),
    row(
        "bfloat16-truncated",
        Family::Elementwise,
        "`f32` to `bf16` drops the low half instead of rounding to nearest even.",
        "https://github.com/llvm/llvm-project/issues/65130",
        &[Opcode::Convert],
        bfloat16_truncated,
    ),
    row(
        "long-integer-through-float",
        Family::Elementwise,
        "32- and 64-bit integers are converted to each other's signedness or width through a float, which rounds and saturates.",
        "https://github.com/llvm/llvm-project/issues/55150",
        &[Opcode::Convert],
        long_integer_through_float,
    ),
    row(
        "bitcast-convert-high-part-first",
        Family::Layout,
        "A `bitcast-convert` between widths puts the high part first.",
        "https://github.com/tensorflow/tensorflow/pull/57067",
        &[Opcode::BitcastConvert],
        bitcast_convert_high_part_first,
    ),
    row(
        "convert-pair-dropped",
        Family::Elementwise,
        "A conversion to a narrower type and back is dropped: nothing is rounded, truncated or wrapped.",
        "https://github.com/openxla/xla/issues/41605",
        &[Opcode::Convert],
        convert_pair_dropped,
    )
    .needing(Needs::CHAIN),
];

fn convert_nan_to_least(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Convert)?;
    let x = e.operand(0)?;
    e.float(x)?;
    let ty = e.integer(e.at()).filter(|ty| ty.is_signed_integer())?;
    let nan = e.is_nan(x)?;
    let integer = e.convert(x, ty)?;
    let least = e.int(integer, -(1i128 << (ty.bits() - 1)))?;
    e.select(nan, least, integer)
}

fn convert_wraps(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Convert)?;
    let x = e.operand(0)?;
    e.float(x)?;
    let ty = e.integer(e.at()).filter(|ty| ty.bits() < 64)?;
    let wide = e.convert(x, if ty.bits() < 32 { ElementType::S32 } else { ElementType::S64 })?;
    e.convert(wide, ty)
}

fn four_bit_not_sign_extended(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Convert)?;
    let x = e.operand(0)?;
    let unsigned = other_sign(e.integer(x).filter(|ty| ty.is_signed_integer() && ty.bits() <= 4)?)?;
    let ty = e.ty(e.at())?;
    let x = e.bitcast(x, unsigned)?;
    e.convert(x, ty)
}

fn predicate_sign_extended(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Convert)?;
    let x = e.operand(0)?;
    e.ty(x).filter(|&ty| ty == ElementType::Pred)?;
    let ty = e.ty(e.at())?;
    let bit = e.convert(x, ElementType::S1)?;
    e.convert(bit, ty)
}

fn bfloat16_truncated(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Convert)?;
    let x = e.operand(0)?;
    (e.ty(x)? == ElementType::F32 && e.ty(e.at())? == ElementType::BF16).then_some(())?;
    let bits = e.bitcast(x, ElementType::U32)?;
    let amount = e.int(bits, 16)?;
    let high = e.bin(Opcode::ShiftRightLogical, bits, amount)?;
    let high = e.convert(high, ElementType::U16)?;
    let truncated = e.bitcast(high, ElementType::BF16)?;
    // NaNs stay NaNs, wherever their payload is.
    let nan = e.is_nan(x)?;
    let converted = e.convert(x, ElementType::BF16)?;
    e.select(nan, converted, truncated)
}

fn long_integer_through_float(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Convert)?;
    let x = e.operand(0)?;
    let (from, to) = (e.integer(x)?, e.integer(e.at())?);
    (from.bits() >= 32 && to.bits() >= 32 && from != to).then_some(())?;
    let float = e.convert(x, ElementType::F32)?;
    e.convert(float, to)
}

fn bitcast_convert_high_part_first(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::BitcastConvert)?;
    let x = e.operand(0)?;
    let (from, to) = (e.array(x)?, e.result()?);
    let last = from.rank().max(to.rank()) as i64 - 1;
    let attrs = e.attrs();
    if from.element_type.bits() > to.element_type.bits() {
        let parts = e.again(&[x], attrs)?;
        e.reverse(parts, &[last])
    } else if from.element_type.bits() < to.element_type.bits() {
        let parts = e.reverse(x, &[last])?;
        e.again(&[parts], attrs)
    } else {
        None
    }
}

fn convert_pair_dropped(e: &mut Edit<'_>) -> Option<InstrId> {
    e.is(Opcode::Convert)?;
    let middle = e.operand(0)?;
    let x = *e.operands_of(middle, Opcode::Convert)?.first()?;
    let (from, via, to) = (e.ty(x)?, e.ty(middle)?, e.ty(e.at())?);
    (from == to && via != to && via.bits() <= to.bits()).then_some(x)
}
