//! `convert` and `stochastic-convert`.
//!
//! A conversion goes through blocks of the operand's carrier (`i64`, `u64`, `f64` or `Complex<f64>`, which
//! hold every value of the type exactly), so that 32 types need 32 kernels into a carrier and 4 x 32 out of
//! one, not 32 x 32. The pairs that programs convert most have a kernel of their own.

use std::any::Any;

use hlo::half::{bf16, f16};
use hlo::literal::{Bits, Buffer, BufferOf};
use hlo::num_complex::Complex;
use hlo::small_int::{S1, S2, S4, U4};
use hlo::{ElementType, with_buffer, with_element_type};
use hlo_arithmetic::scalar::{self, Int, Scalar};

use super::lane::Lane;
use super::{chunks_mut, same_dims};
use crate::error::Result;
use crate::ops::Cx;
use crate::value::Tensor;

/// Elements that are in a carrier at a time.
const BLOCK: usize = 512;

/// The tensor with elements of type `ty`; itself if it has that type.
pub(crate) fn convert(cx: &Cx<'_>, x: Tensor, ty: ElementType) -> Result<Tensor> {
    if x.element_type() == ty {
        return Ok(x);
    }
    with_element_type!(ty, T => convert_to::<T>(cx, &x))
}

fn convert_to<T: Lane>(cx: &Cx<'_>, x: &Tensor) -> Result<Tensor> {
    let mut out = cx.overwritten::<T>(x.len())?;
    if !direct(x.buffer(), T::TYPE, &mut out) {
        chunks_mut(&mut out, &|start, out| {
            let mut carrier = carrier(x.element_type(), BLOCK);
            for (i, out) in out.chunks_mut(BLOCK).enumerate() {
                widen_block(x.buffer(), start + i * BLOCK, out.len(), &mut carrier);
                narrow_block(&carrier, out);
            }
        });
    }
    Ok(Tensor::from_vec(x.dims(), out))
}

/// `n` zeros of the carrier of a type.
pub(crate) fn carrier(ty: ElementType, n: usize) -> Buffer {
    fn of<T: Lane>(n: usize) -> Buffer {
        Buffer::zeros(<T::Carrier as hlo::Element>::TYPE, n)
    }
    with_element_type!(ty, T => of::<T>(n))
}

/// Takes `n` elements from `start` on into a buffer of their carrier.
pub(crate) fn widen_block(x: &Buffer, start: usize, n: usize, carrier: &mut Buffer) {
    fn of<T: Lane>(x: &[T], carrier: &mut Buffer) {
        let carrier = <T::Carrier as BufferOf>::slice_mut(carrier).expect("invariant: made by `carrier`");
        for (c, x) in carrier.iter_mut().zip(x) {
            *c = x.carrier();
        }
    }
    with_buffer!(x, x => of(&x[start..start + n], carrier));
}

/// Takes as many elements as `out` has out of a buffer of a carrier.
pub(crate) fn narrow_block<T: Lane>(carrier: &Buffer, out: &mut [T]) {
    fn each<C: Copy, T>(carrier: &[C], out: &mut [T], f: impl Fn(C) -> T) {
        for (o, &c) in out.iter_mut().zip(carrier) {
            *o = f(c);
        }
    }
    if let Buffer::S64(c) = carrier {
        each(c, out, T::from_i64);
    } else if let Buffer::U64(c) = carrier {
        each(c, out, T::from_u64);
    } else if let Buffer::F64(c) = carrier {
        each(c, out, T::from_f64);
    } else if let Buffer::C128(c) = carrier {
        each(c, out, T::from_complex);
    }
}

/// Converts by a kernel of the pair of types, if there is one. `out` is a vector of `to`.
fn direct(x: &Buffer, to: ElementType, out: &mut dyn Any) -> bool {
    macro_rules! pairs {
        ($($from:ident $A:ty => $($to:ident $B:ty),*;)*) => {
            match (x.element_type(), to) {
                $($((ElementType::$from, ElementType::$to) => pair::<$A, $B>(x, out),)*)*
                (_, _) => false,
            }
        };
    }
    pairs! {
        F32 f32 => F64 f64, F16 f16, BF16 bf16, S32 i32, Pred bool, S8 i8, U8 u8, S64 i64, C64 Complex<f32>;
        F64 f64 => F32 f32, S32 i32, S64 i64, BF16 bf16, F16 f16;
        F16 f16 => F32 f32, F64 f64, BF16 bf16;
        BF16 bf16 => F32 f32, F64 f64, F16 f16;
        Pred bool => F32 f32, S32 i32, BF16 bf16, F64 f64, U32 u32, S8 i8, U8 u8, S64 i64;
        S32 i32 => F32 f32, F64 f64, S64 i64, U32 u32, Pred bool, BF16 bf16, S8 i8, U8 u8;
        U32 u32 => F32 f32, F64 f64, S32 i32, U64 u64, S64 i64, Pred bool;
        S64 i64 => F32 f32, F64 f64, S32 i32, U64 u64;
        U64 u64 => U32 u32, S64 i64, F64 f64;
        S8 i8 => F32 f32, S32 i32, BF16 bf16;
        U8 u8 => F32 f32, S32 i32, BF16 bf16;
    }
}

/// A conversion from `A` to `B`. `out` is a vector of `B`, as the caller's match knows.
fn pair<A: BufferOf + Scalar, B: BufferOf + Scalar>(x: &Buffer, out: &mut dyn Any) -> bool {
    let (Some(x), Some(out)) = (A::slice(x), out.downcast_mut::<Vec<B>>()) else {
        return false;
    };
    chunks_mut(out, &|start, out| {
        for (o, &x) in out.iter_mut().zip(&x[start..]) {
            *o = scalar::convert::<A, B>(x);
        }
    });
    true
}

/// `stochastic-convert`: the random operand has as many bits as the float.
pub(super) fn stochastic(cx: &Cx<'_>, x: Tensor, random: Tensor) -> Result<Tensor> {
    same_dims(cx, &x, &random)?;
    let x = convert(cx, x, ElementType::F64)?;
    let to = cx.array_shape().element_type;
    macro_rules! results {
        ($($ty:ident $R:ty),*) => {
            $(if to == ElementType::$ty {
                return stochastic_to::<$R>(cx, &x, &random);
            })*
        };
    }
    results!(S1 S1, S2 S2, S4 S4, S8 i8, S16 i16, S32 i32, S64 i64);
    Err(cx.unsupported(&format!("to {to}")))
}

/// A stochastic conversion of one element by that many random bits. `None`: there is none.
pub(crate) fn stochastic_by<R: Int>(random_bits: u32) -> Option<fn(f64, u64) -> R> {
    Some(match random_bits {
        4 => |x, r| scalar::stochastic_convert::<f64, U4, R>(x, U4::from_i64(r as i64)),
        8 => |x, r| scalar::stochastic_convert::<f64, u8, R>(x, r as u8),
        16 => |x, r| scalar::stochastic_convert::<f64, u16, R>(x, r as u16),
        32 => |x, r| scalar::stochastic_convert::<f64, u32, R>(x, r as u32),
        64 => scalar::stochastic_convert::<f64, u64, R>,
        _ => return None,
    })
}

fn stochastic_to<R: BufferOf + Int>(cx: &Cx<'_>, x: &Tensor, random: &Tensor) -> Result<Tensor> {
    let bits = random.element_type().bits();
    let one = stochastic_by::<R>(bits).ok_or_else(|| cx.unsupported(&format!("with {bits} random bits")))?;
    let mut out = cx.overwritten::<R>(x.len())?;
    let values = x.slice::<f64>();
    with_buffer!(random.buffer(), random => chunks_mut(&mut out, &|start, out| {
        for ((o, &x), r) in out.iter_mut().zip(&values[start..]).zip(&random[start..]) {
            *o = one(x, Bits::bits(*r) as u64);
        }
    }));
    Ok(Tensor::from_vec(x.dims(), out))
}
