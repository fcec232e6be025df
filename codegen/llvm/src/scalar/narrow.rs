//! Floats narrower than `f32`: from patterns to the type they are computed in, and rounded back.
//!
//! All but `f8e8m0fnu` are computed in `f32`: a result that is correctly rounded there can be rounded again
//! without harm (24 >= 2p + 2 for p <= 11). The range of `bf16` is that of `f32`, where subnormal results of
//! sums are exact, and products and quotients of two 8-bit significands that are not half way between
//! subnormal `bf16` numbers are never within half a unit of `f32` of such a midpoint. `f8e8m0fnu`, whose
//! steps are no rounding to nearest and which has no smaller numbers, is computed in `f64`.
//!
//! **Invariant:** [`widen`] and [`round`] keep lanes where they are. [`computed`] may compute them in another
//! order, which is not observable.

use hlo::ElementType;
use hlo::small_float::{FloatFormat, Specials};

use super::value::{Computed, Val};
use crate::{Emit, FloatPredicate, IntPredicate, Prim, Result, Value};

/// The format of a float type narrower than `f32`.
pub(super) fn format_of(ty: ElementType) -> Option<FloatFormat> {
    ty.float_format().filter(|_| ty != ElementType::F32)
}

/// The float that a real float type is computed in.
pub(super) fn wide_prim(ty: ElementType) -> Prim {
    if matches!(ty, ElementType::F64 | ElementType::F8E8M0FNU) { Prim::F64 } else { Prim::F32 }
}

/// A real float by value, exactly, in the float that its type is computed in.
pub(super) fn widen<'ctx>(e: &Emit<'_, 'ctx>, x: &Val<'ctx>) -> Result<Value<'ctx>> {
    let bits = x.single();
    let Some(format) = format_of(x.ty) else { return Ok(bits) };
    if x.ty == ElementType::F16 {
        return e.fpext(e.bitcast(bits, Prim::F16)?, Prim::F32);
    }
    if x.ty == ElementType::BF16 && in_registers(e, bits) {
        // One instruction, which zeroes of halves of registers that come from a rounding join to one mask.
        let lanes = e.lanes_of(bits);
        let mask: Vec<u32> = (0..2 * lanes).map(|l| if l % 2 == 0 { lanes } else { l / 2 }).collect();
        return e.bitcast_to(e.shuffle(bits, e.int(Prim::I16, 0), &mask)?, e.ty(Prim::F32));
    }
    let raw = e.zext(bits, Prim::I32)?;
    if x.ty == ElementType::BF16 {
        return e.bitcast(e.shl(raw, e.i32(16))?, Prim::F32);
    }
    if format.specials == Specials::Scale {
        return widen_scale(e, raw);
    }
    let mantissa = format.mantissa_bits;
    let sign_bit = format.bits() - 1;
    let magnitude = e.and(raw, e.int(Prim::I32, u64::from(format.magnitude_mask())))?;
    let sign =
        e.shl(e.and(raw, e.int(Prim::I32, 1 << sign_bit))?, e.int(Prim::I32, u64::from(31 - sign_bit)))?;
    // The shifted fields have an exponent of another bias, which a factor corrects, of subnormals
    // too.
    let fields = e.shl(magnitude, e.int(Prim::I32, u64::from(23 - mantissa)))?;
    let scale = f32::from_bits(((127 + 127 - format.bias) as u32) << 23);
    let value = e.bitcast(e.fmul(e.bitcast(fields, Prim::F32)?, e.f32(scale))?, Prim::I32)?;
    let value = match format.specials {
        Specials::Ieee => {
            let special = e.or(fields, e.int(Prim::I32, 0x7f80_0000))?;
            let is_special =
                e.icmp(IntPredicate::UGT, magnitude, e.int(Prim::I32, u64::from(format.max_bits())))?;
            e.select(is_special, special, value)?
        }
        Specials::FiniteNan => {
            let is_nan =
                e.icmp(IntPredicate::EQ, magnitude, e.int(Prim::I32, u64::from(format.magnitude_mask())))?;
            e.select(is_nan, e.int(Prim::I32, 0x7fc0_0000), value)?
        }
        Specials::NanIsNegativeZero => {
            let is_nan = e.icmp(IntPredicate::EQ, raw, e.int(Prim::I32, u64::from(format.sign_mask())))?;
            e.select(is_nan, e.int(Prim::I32, 0x7fc0_0000), value)?
        }
        Specials::NumbersOnly | Specials::Scale => value,
    };
    e.bitcast(e.or(value, sign)?, Prim::F32)
}

/// `f8e8m0fnu` in `f64`: the exponent with another bias, 255 a NaN.
fn widen_scale<'ctx>(e: &Emit<'_, 'ctx>, raw: Value<'ctx>) -> Result<Value<'ctx>> {
    let wide = e.zext(raw, Prim::I64)?;
    let field = e.shl(e.add(wide, e.i64(1023 - 127))?, e.i64(52))?;
    let is_nan = e.icmp(IntPredicate::EQ, wide, e.i64(255))?;
    e.bitcast(e.select(is_nan, e.i64(0x7ff8_0000_0000_0000), field)?, Prim::F64)
}

/// How a number becomes one of a narrower type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Rounding {
    /// It may be any.
    Any,
    /// It is made of numbers that [`widen`] gave. A NaN of those is the processor's or one of theirs, whose
    /// lower half is zeros: as a `bf16` it stays a NaN whatever is added there, and is made canonical where
    /// that is observed.
    Arithmetic,
    /// It is one of the type already, or one of the NaNs that [`widen`] gave.
    Exact,
}

/// Which number is in which lane of the float that `bf16` is computed in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Order {
    /// The same as of the patterns.
    Same,
    /// The lower halves of all words of patterns, then the upper ones: a shift and a mask instead of what
    /// goes across a register.
    Halves,
}

/// An operation on real floats of one type, computed in the float that the type is computed in and rounded
/// once. There lanes may be permuted: no lane may depend on its position or on
/// others.
pub(super) fn computed<'ctx, const N: usize>(
    e: &Emit<'_, 'ctx>,
    operands: [&Val<'ctx>; N],
    rounding: Rounding,
    f: impl FnOnce([Value<'ctx>; N]) -> Result<Value<'ctx>>,
) -> Result<Val<'ctx>> {
    let ty = operands[0].ty;
    let by_halves = |x: &&Val<'ctx>| ty == ElementType::BF16 && fills_registers(e, x.single());
    let order = if operands.iter().all(by_halves) { Order::Halves } else { Order::Same };
    let mut all = operands.map(Val::single);
    for (wide, x) in all.iter_mut().zip(operands) {
        *wide = if order == Order::Halves { halves(e, x)? } else { widen(e, x)? };
    }
    rounded(e, ty, f(all)?, rounding, order)
}

/// A value of the type that `ty` is computed in, rounded to `ty`.
pub(super) fn round<'ctx>(e: &Emit<'_, 'ctx>, ty: ElementType, x: Value<'ctx>) -> Result<Val<'ctx>> {
    rounded(e, ty, x, Rounding::Any, Order::Same)
}

fn rounded<'ctx>(
    e: &Emit<'_, 'ctx>,
    ty: ElementType,
    x: Value<'ctx>,
    rounding: Rounding,
    order: Order,
) -> Result<Val<'ctx>> {
    let Some(format) = format_of(ty) else { return Ok(Val::arithmetic(ty, x)) };
    if ty == ElementType::F16 {
        return Ok(Val::arithmetic(ty, e.bitcast(e.fptrunc(x, Prim::F16)?, Prim::I16)?));
    }
    if ty == ElementType::BF16 && e.gpu {
        // The NaN of a GPU is 0x7fffffff: only a conversion keeps it one.
        let pattern = match rounding {
            Rounding::Any | Rounding::Arithmetic => e.to_bf16(x)?,
            Rounding::Exact => upper_half(e, e.bitcast(x, Prim::I32)?)?,
        };
        return Ok(Val { computed: Computed::Everywhere, ..Val::one(ty, pattern) });
    }
    if ty == ElementType::BF16 {
        let (bits, computed) = match rounding {
            Rounding::Any => {
                let is_nan = e.fcmp(FloatPredicate::UNO, x, x)?;
                (e.select(is_nan, e.i32(0x7fc0_0000), rounded_bf16(e, x)?)?, Computed::Nowhere)
            }
            Rounding::Arithmetic => (rounded_bf16(e, x)?, Computed::Everywhere),
            Rounding::Exact => (e.bitcast(x, Prim::I32)?, Computed::Everywhere),
        };
        let upper = if order == Order::Halves { of_halves(e, bits)? } else { upper_half(e, bits)? };
        return Ok(Val { computed, ..Val::one(ty, upper) });
    }
    let bits = if format.specials == Specials::Scale { round_scale(e, x)? } else { encode(e, format, x)? };
    Ok(Val::arithmetic(ty, e.trunc(bits, Prim::I8)?))
}

/// Whether patterns of 16 bits fill registers, so that the numbers that they are computed in fill twice as
/// many.
fn fills_registers<'ctx>(e: &Emit<'_, 'ctx>, x: Value<'ctx>) -> bool {
    e.x86 && e.lanes_of(x).is_multiple_of(if e.avx512 { 32 } else { 16 })
}

/// [`widen`] in the order of [`Order::Halves`].
fn halves<'ctx>(e: &Emit<'_, 'ctx>, x: &Val<'ctx>) -> Result<Value<'ctx>> {
    let patterns = x.single();
    let lanes = e.lanes_of(patterns);
    if e.is_constant(patterns) {
        // Which stays one: not so what is cast to vectors of fewer lanes.
        let wide = widen(e, x)?;
        return e.shuffle(wide, wide, &(0..lanes).map(|l| 2 * l % lanes + 2 * l / lanes).collect::<Vec<_>>());
    }
    let words = e.with_lanes(lanes / 2);
    let pairs = e.bitcast_to(patterns, words.ty(Prim::I32))?;
    let lower = words.shl(pairs, words.i32(16))?;
    let upper = words.and(pairs, words.int(Prim::I32, 0xffff_0000))?;
    e.bitcast(e.shuffle(lower, upper, &(0..lanes).collect::<Vec<_>>())?, Prim::F32)
}

/// The upper halves of words in the order of [`Order::Halves`].
fn of_halves<'ctx>(e: &Emit<'_, 'ctx>, bits: Value<'ctx>) -> Result<Value<'ctx>> {
    let lanes = e.lanes_of(bits);
    let words = e.with_lanes(lanes / 2);
    let part = |from: u32| e.shuffle(bits, bits, &(from..from + lanes / 2).collect::<Vec<_>>());
    let lower = words.lshr(part(0)?, words.i32(16))?;
    let upper = words.and(part(lanes / 2)?, words.int(Prim::I32, 0xffff_0000))?;
    e.bitcast_to(words.or(lower, upper)?, e.ty(Prim::I16))
}

/// Whether `bf16` numbers are halves of registers that one instruction moves as it likes.
fn in_registers<'ctx>(e: &Emit<'_, 'ctx>, x: Value<'ctx>) -> bool {
    e.avx512 && e.lanes_of(x) >= 8
}

/// The pattern of an `f32` with the upper half rounded to `bf16`, of what is no NaN.
fn rounded_bf16<'ctx>(e: &Emit<'_, 'ctx>, x: Value<'ctx>) -> Result<Value<'ctx>> {
    let bits = e.bitcast(x, Prim::I32)?;
    if e.vnni && in_registers(e, x) {
        // Three instructions: both summands are words of what `vpdpwssd` multiplies by one.
        let summands = e.or(e.and(bits, e.i32(0x1_0000))?, e.i32(0x7fff))?;
        return with_words(e, bits, summands);
    }
    let below = e.add(bits, e.i32(0x7fff))?;
    if in_registers(e, x) {
        // Masked: processors have few shift units for such registers.
        let odd = e.icmp(IntPredicate::NE, e.and(bits, e.i32(0x1_0000))?, e.i32(0))?;
        return e.select(odd, e.add(bits, e.i32(0x8000))?, below);
    }
    e.add(below, e.and(e.lshr(bits, e.i32(16))?, e.i32(1))?)
}

/// Each `i32` plus both signed words of another, by `vpdpwssd` of 32 or 64 bytes. For AVX-512 VNNI.
fn with_words<'ctx>(e: &Emit<'_, 'ctx>, x: Value<'ctx>, words: Value<'ctx>) -> Result<Value<'ctx>> {
    let lanes = e.lanes_of(x);
    if lanes > 16 {
        let half = lanes / 2;
        let part = |x, from: u32| e.shuffle(x, x, &(from..from + half).collect::<Vec<_>>());
        let low = with_words(e, part(x, 0)?, part(words, 0)?)?;
        let high = with_words(e, part(x, half)?, part(words, half)?)?;
        return e.shuffle(low, high, &(0..lanes).collect::<Vec<_>>());
    }
    let name = if lanes == 16 { "llvm.x86.avx512.vpdpwssd.512" } else { "llvm.x86.avx512.vpdpwssd.256" };
    let words = e.bitcast_to(words, e.vector_type(Prim::I16, 2 * lanes).into())?;
    let ones = e.with_lanes(2 * lanes).int(Prim::I16, 1);
    e.intrinsic(name, &[], &[x, words, ones])
}

fn upper_half<'ctx>(e: &Emit<'_, 'ctx>, bits: Value<'ctx>) -> Result<Value<'ctx>> {
    if !in_registers(e, bits) {
        return e.trunc(e.lshr(bits, e.i32(16))?, Prim::I16);
    }
    let lanes = e.lanes_of(bits);
    let halves = e.bitcast_to(bits, e.vector_type(Prim::I16, 2 * lanes).into())?;
    e.shuffle(halves, halves, &(0..lanes).map(|l| 2 * l + 1).collect::<Vec<_>>())
}

/// An `f32` rounded to a format of at most 8 bits, its pattern in an `i32`.
fn encode<'ctx>(e: &Emit<'_, 'ctx>, format: FloatFormat, x: Value<'ctx>) -> Result<Value<'ctx>> {
    let int = |n: u32| e.int(Prim::I32, u64::from(n));
    let field = |exponent: i32| ((exponent + 127) as u32) << 23;
    let bits = e.bitcast(x, Prim::I32)?;
    let absolute = e.and(bits, int(0x7fff_ffff))?;
    let dropped = 23 - format.mantissa_bits;
    // Subnormal: the addition rounds at the last bit that the format has.
    let unit = field(1 - format.bias + dropped as i32);
    let sum = e.fadd(e.bitcast(absolute, Prim::F32)?, e.f32(f32::from_bits(unit)))?;
    let small = e.sub(e.bitcast(sum, Prim::I32)?, int(unit))?;
    // A carry out of the fraction moves into the exponent field.
    let odd = e.and(e.lshr(absolute, int(dropped))?, int(1))?;
    let rounded = e.lshr(e.add(e.add(absolute, int((1 << (dropped - 1)) - 1))?, odd)?, int(dropped))?;
    let large = e.sub(rounded, int(((127 - format.bias) as u32) << format.mantissa_bits))?;
    let is_small = e.icmp(IntPredicate::ULT, absolute, int(field(1 - format.bias)))?;
    let magnitude = e.select(is_small, small, large)?;
    // Infinities are beyond every number, as is what overflows.
    let too_large = e.icmp(IntPredicate::UGT, magnitude, int(format.max_bits()))?;
    let sign_bit = format.bits() - 1;
    let sign = e.and(e.lshr(bits, int(31 - sign_bit))?, int(1 << sign_bit))?;
    let signed = |magnitude| e.or(magnitude, sign);
    let nan = int(format.converted_nan_bits());
    let result = match format.specials {
        Specials::Ieee => signed(e.select(too_large, int(format.max_bits() + 1), magnitude)?)?,
        Specials::NumbersOnly => signed(e.select(too_large, int(format.max_bits()), magnitude)?)?,
        Specials::FiniteNan => e.select(too_large, nan, signed(magnitude)?)?,
        Specials::NanIsNegativeZero | Specials::Scale => {
            let zero = e.icmp(IntPredicate::EQ, magnitude, int(0))?;
            e.select(too_large, nan, e.select(zero, int(0), signed(magnitude)?)?)?
        }
    };
    let is_nan = e.icmp(IntPredicate::UGT, absolute, int(0x7f80_0000))?;
    e.select(is_nan, nan, result)
}

/// An `f64` in the steps of `f8e8m0fnu`, in an `i32`.
fn round_scale<'ctx>(e: &Emit<'_, 'ctx>, x: Value<'ctx>) -> Result<Value<'ctx>> {
    let bits = e.bitcast(x, Prim::I64)?;
    let exponent = e.sub(e.lshr(bits, e.i64(52))?, e.i64(1023 - 127))?;
    let fraction = e.and(bits, e.i64((1 << 52) - 1))?;
    let (lowest, below) =
        (e.icmp(IntPredicate::EQ, exponent, e.i64(0))?, e.icmp(IntPredicate::SLT, exponent, e.i64(0))?);
    let least = e.select(lowest, e.i64(1), e.i64(1 << 51))?;
    let up = e.zext(e.icmp(IntPredicate::UGE, fraction, least)?, Prim::I64)?;
    let rounded = e.select(below, e.i64(0), e.add(exponent, up)?)?;
    // Not positive, or NaN: the pattern is 0 or at least that of infinity.
    let positive = e.icmp(IntPredicate::ULT, e.sub(bits, e.i64(1))?, e.i64(0x7ff0_0000_0000_0000))?;
    let too_large = e.icmp(IntPredicate::SGT, rounded, e.i64(254))?;
    let bits = e.select(too_large, e.i64(255), rounded)?;
    e.trunc(e.select(positive, bits, e.i64(255))?, Prim::I32)
}

/// An `f64` as an `f32` that rounds to every narrower format as the `f64` does: truncated, with the last bit
/// set where that was inexact ("rounded to odd").
pub(super) fn odd_f32<'ctx>(e: &Emit<'_, 'ctx>, x: Value<'ctx>) -> Result<Value<'ctx>> {
    let near = e.fptrunc(x, Prim::F32)?;
    let back = e.fpext(near, Prim::F64)?;
    let inexact = e.fcmp(FloatPredicate::ONE, back, x)?;
    let (a, b) = (
        e.intrinsic("llvm.fabs", &[x.get_type()], &[back])?,
        e.intrinsic("llvm.fabs", &[x.get_type()], &[x])?,
    );
    let beyond = e.fcmp(FloatPredicate::OGT, a, b)?;
    let bits = e.bitcast(near, Prim::I32)?;
    let truncated = e.sub(bits, e.zext(beyond, Prim::I32)?)?;
    e.bitcast(e.or(truncated, e.zext(inexact, Prim::I32)?)?, Prim::F32)
}

/// An `f64` rounded once to a float type.
pub(super) fn round_f64<'ctx>(e: &Emit<'_, 'ctx>, ty: ElementType, x: Value<'ctx>) -> Result<Val<'ctx>> {
    if wide_prim(ty) == Prim::F64 {
        round(e, ty, x)
    } else if ty == ElementType::F32 {
        Ok(Val::arithmetic(ty, e.fptrunc(x, Prim::F32)?))
    } else {
        let odd = odd_f32(e, x)?;
        round(e, ty, odd)
    }
}
