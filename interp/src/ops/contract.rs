//! Sums of products of two operands, for all element types: what `dot` and `convolution` share.
//!
//! With `--accumulate exact`, floats of the operands are taken as they are, and each result is the exact sum
//! of exact products rounded once into the result type. With `--accumulate region`, both operands are first
//! converted to the result type, as XLA's evaluator does, and the sum is accumulated in f32 (f64 for results
//! of f64), rounded to the result type at the end. Integers are converted to the result type in both modes
//! and wrap (or saturate, as the job says); `pred` is an or of ands.

use hlo::literal::{Buffer, BufferOf};
use hlo::{ElementType, TypeClass, with_element_type};
use hlo_arithmetic::sum::Accumulate;
use hlo_products::Contraction;

use super::Cx;
use super::elementwise::convert;
use crate::error::Result;
use crate::value::Tensor;

/// The type in which an instruction's sums are given: its result's, but `f32` where operands of floats give
/// integers (XLA's `ConvolutionTypeCanonicalizer`); the result is converted.
pub(super) fn sum_type(cx: &Cx<'_>) -> ElementType {
    let ty = cx.array_shape().element_type;
    let floats = (0..2).all(|n| cx.operand_shape(n).element_type.is_float());
    if floats && ty.is_integer() { ElementType::F32 } else { ty }
}

/// Computes a contraction of dense operands. The result has `n` elements of type `ty`.
pub(super) fn run(
    cx: &Cx<'_>,
    contraction: &Contraction<'_>,
    lhs: Tensor,
    rhs: Tensor,
    n: usize,
    ty: ElementType,
) -> Result<Buffer> {
    let mode = cx.accumulate();
    match ty.class() {
        TypeClass::Pred => {
            // A count of pairs that are both true; fewer than 2^32 by the limits on memory.
            let ones = |x| convert(cx, convert(cx, x, ElementType::Pred)?, ElementType::U32);
            let counts = sums(cx, contraction, &ones(lhs)?, &ones(rhs)?, n, ElementType::U32)?;
            Ok(convert(cx, vector(counts), ElementType::Pred)?.into_buffer())
        }
        TypeClass::Signed | TypeClass::Unsigned => {
            let wide = whole_bytes(ty);
            let operand = |x| convert(cx, convert(cx, x, ty)?, wide);
            let out = sums(cx, contraction, &operand(lhs)?, &operand(rhs)?, n, wide)?;
            if wide == ty {
                return Ok(out);
            }
            let out = if contraction.saturates() { clamped(out, ty) } else { out };
            Ok(convert(cx, vector(out), ty)?.into_buffer())
        }
        TypeClass::Float => {
            let operand = |x: Tensor| match (mode, x.element_type().class()) {
                (Accumulate::Exact, TypeClass::Float) => Ok(x),
                (Accumulate::Exact | Accumulate::Region, _) => convert(cx, x, ty),
            };
            let (lhs, rhs) = (operand(lhs)?, operand(rhs)?);
            let wide = [ty, lhs.element_type(), rhs.element_type()].contains(&ElementType::F64);
            let carrier = if wide { ElementType::F64 } else { ElementType::F32 };
            let (lhs, rhs) = (convert(cx, lhs, carrier)?, convert(cx, rhs, carrier)?);
            sums(cx, contraction, &lhs, &rhs, n, ty)
        }
        TypeClass::Complex => {
            let (lhs, rhs) = (convert(cx, lhs, ty)?, convert(cx, rhs, ty)?);
            sums(cx, contraction, &lhs, &rhs, n, ty)
        }
    }
}

fn vector(buffer: Buffer) -> Tensor {
    let n = buffer.len() as i64;
    Tensor::new([n].as_slice(), buffer)
}

/// The integer type of whole bytes that a type is computed in.
fn whole_bytes(ty: ElementType) -> ElementType {
    match (ty.is_sub_byte(), ty.is_signed_integer()) {
        (false, _) => ty,
        (true, true) => ElementType::S8,
        (true, false) => ElementType::U8,
    }
}

/// Integers of a byte brought into the range of a narrower type.
fn clamped(mut x: Buffer, ty: ElementType) -> Buffer {
    let bits = ty.bits();
    if let Buffer::S8(x) = &mut x {
        let (low, high) = (-(1i8 << (bits - 1)), ((1i16 << (bits - 1)) - 1) as i8);
        x.iter_mut().for_each(|x| *x = (*x).clamp(low, high));
    } else if let Buffer::U8(x) = &mut x {
        let high = (1u8 << bits) - 1;
        x.iter_mut().for_each(|x| *x = (*x).min(high));
    }
    x
}

/// The sums of a contraction, of operands that are of a type that it takes.
fn sums(
    cx: &Cx<'_>,
    contraction: &Contraction<'_>,
    lhs: &Tensor,
    rhs: &Tensor,
    n: usize,
    ty: ElementType,
) -> Result<Buffer> {
    let mut out = with_element_type!(ty, T => T::wrap(cx.overwritten::<T>(n)?));
    contraction.run(cx.accumulate(), lhs.buffer(), rhs.buffer(), &mut out);
    Ok(out)
}
