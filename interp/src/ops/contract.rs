//! Sums of products of two operands, for all element types: what `dot` and `convolution` share.
//!
//! With `--accumulate exact`, floats of the operands are taken as they are, and each result is the exact sum
//! of exact products rounded once into the result type. With `--accumulate region`, both operands are first
//! converted to the result type, as XLA's evaluator does, and the sum is accumulated in f32 (f64 for results
//! of f64), rounded to the result type at the end. Integers are converted to the result type in both modes
//! and wrap (or saturate, as the job says); `pred` is an or of ands.

use hlo::literal::{Buffer, BufferOf};
use hlo::num_complex::Complex;
use hlo::{ElementType, TypeClass};
use hlo_arithmetic::kernels::{Integer, Real};
use hlo_arithmetic::sum::{Accumulate, Rounded};

use super::Cx;
use super::common::with_float;
use super::elementwise::convert;
use crate::error::Result;
use crate::value::Tensor;

/// A kernel, ready but for its operands.
pub(super) trait Job {
    /// Whether integers saturate to the result type; they wrap otherwise.
    const SATURATES: bool;

    /// Sums of products of real numbers.
    fn real<T: Real, O: Rounded>(&self, mode: Accumulate, lhs: &[T], rhs: &[T], out: &mut [O]);

    /// Sums of products of complex numbers.
    fn complex<T: Real, O: Rounded>(
        &self,
        mode: Accumulate,
        lhs: &[Complex<T>],
        rhs: &[Complex<T>],
        out: &mut [Complex<O>],
    );

    /// Sums of products of integers.
    fn int<T: Integer>(&self, lhs: &[T], rhs: &[T], out: &mut [T]);
}

/// The type in which an instruction's sums are given: its result's, but `f32` where operands of floats give
/// integers (XLA's `ConvolutionTypeCanonicalizer`); the result is converted.
pub(super) fn sum_type(cx: &Cx<'_>) -> ElementType {
    let ty = cx.array_shape().element_type;
    let floats = (0..2).all(|n| cx.operand_shape(n).element_type.is_float());
    if floats && ty.is_integer() { ElementType::F32 } else { ty }
}

/// Runs a job on dense operands. The result has `n` elements of type `ty`.
pub(super) fn run(
    cx: &Cx<'_>,
    job: &impl Job,
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
            let counts = int::<u32>(cx, job, &ones(lhs)?, &ones(rhs)?, n)?;
            Ok(convert(cx, vector(counts), ElementType::Pred)?.into_buffer())
        }
        TypeClass::Signed | TypeClass::Unsigned => {
            let wide = whole_bytes(ty);
            let operand = |x| convert(cx, convert(cx, x, ty)?, wide);
            let out = ints(cx, job, &operand(lhs)?, &operand(rhs)?, n)?;
            if wide == ty {
                return Ok(out);
            }
            let out = if saturates(job) { clamped(out, ty) } else { out };
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
            floats(cx, job, &lhs, &rhs, n, ty)
        }
        TypeClass::Complex => {
            let (lhs, rhs) = (convert(cx, lhs, ty)?, convert(cx, rhs, ty)?);
            let narrow = ty.bits() == 64;
            if narrow {
                complex::<f32>(cx, job, &lhs, &rhs, n)
            } else {
                complex::<f64>(cx, job, &lhs, &rhs, n)
            }
        }
    }
}

fn saturates<J: Job>(_job: &J) -> bool {
    J::SATURATES
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

fn int<T: Integer + BufferOf>(
    cx: &Cx<'_>,
    job: &impl Job,
    lhs: &Tensor,
    rhs: &Tensor,
    n: usize,
) -> Result<Buffer> {
    let mut out = cx.overwritten::<T>(n)?;
    job.int(lhs.slice::<T>(), rhs.slice(), &mut out);
    Ok(T::wrap(out))
}

fn ints(cx: &Cx<'_>, job: &impl Job, lhs: &Tensor, rhs: &Tensor, n: usize) -> Result<Buffer> {
    match lhs.element_type() {
        ElementType::S8 => int::<i8>(cx, job, lhs, rhs, n),
        ElementType::S16 => int::<i16>(cx, job, lhs, rhs, n),
        ElementType::S32 => int::<i32>(cx, job, lhs, rhs, n),
        ElementType::S64 => int::<i64>(cx, job, lhs, rhs, n),
        ElementType::U8 => int::<u8>(cx, job, lhs, rhs, n),
        ElementType::U16 => int::<u16>(cx, job, lhs, rhs, n),
        ElementType::U32 => int::<u32>(cx, job, lhs, rhs, n),
        ElementType::U64 => int::<u64>(cx, job, lhs, rhs, n),
        ty => unreachable!("invariant: {ty} is not an integer type of whole bytes"),
    }
}

fn complex<T>(cx: &Cx<'_>, job: &impl Job, lhs: &Tensor, rhs: &Tensor, n: usize) -> Result<Buffer>
where
    T: Real + Rounded,
    Complex<T>: BufferOf,
{
    let mut out = cx.overwritten::<Complex<T>>(n)?;
    job.complex::<T, T>(cx.accumulate(), lhs.slice(), rhs.slice(), &mut out);
    Ok(BufferOf::wrap(out))
}

/// Operands are both f32 or both f64.
fn floats(
    cx: &Cx<'_>,
    job: &impl Job,
    lhs: &Tensor,
    rhs: &Tensor,
    n: usize,
    ty: ElementType,
) -> Result<Buffer> {
    fn of<O: Rounded + BufferOf>(
        cx: &Cx<'_>,
        job: &impl Job,
        lhs: &Tensor,
        rhs: &Tensor,
        n: usize,
    ) -> Result<Buffer> {
        let mut out = cx.overwritten::<O>(n)?;
        if lhs.element_type() == ElementType::F64 {
            job.real::<f64, O>(cx.accumulate(), lhs.slice(), rhs.slice(), &mut out);
        } else {
            job.real::<f32, O>(cx.accumulate(), lhs.slice(), rhs.slice(), &mut out);
        }
        Ok(O::wrap(out))
    }
    with_float!(ty, O => of::<O>(cx, job, lhs, rhs, n), unreachable!("invariant: {ty} is a float type"))
}
