//! `bitcast-convert`, and blocks of elements as bits.

use std::any::Any;

use hlo::half::{bf16, f16};
use hlo::literal::{Bits, Buffer, BufferOf};
use hlo::{Dims, ElementType, with_buffer, with_element_type};
use hlo_threads::parallel;

use super::first;
use crate::error::Result;
use crate::ops::elementwise::{CHUNK, chunks_mut};
use crate::ops::{Args, Cx};
use crate::value::{Tensor, Value};

/// Elements whose bits are spread out at a time, about.
const BLOCK: usize = 512;

/// `bitcast-convert`. A wider element becomes a row of narrower ones in a new last dimension, its low bits
/// first; a row of narrower elements, the last dimension, becomes a wider one.
pub(crate) fn bitcast_convert(cx: &Cx<'_>, args: Args) -> Result<Value> {
    let x = first(args);
    let to = cx.array_shape().element_type;
    let (from_bits, to_bits) = (x.element_type().bits(), to.bits());
    let mut dims: Dims = x.dims().into();
    if from_bits > to_bits {
        dims.push(i64::from(from_bits / to_bits));
    } else if from_bits < to_bits {
        dims.pop();
    }
    Ok(reinterpreted(cx, x, to, dims)?.into())
}

/// The same bits, in row-major order, as elements of another type.
pub(super) fn reinterpreted(cx: &Cx<'_>, x: Tensor, to: ElementType, dims: Dims) -> Result<Tensor> {
    if x.element_type() == to {
        return Ok(x.reshaped(dims));
    }
    with_element_type!(to, T => of::<T>(cx, &x, &dims))
}

fn of<T: BufferOf + Bits>(cx: &Cx<'_>, x: &Tensor, dims: &[i64]) -> Result<Tensor> {
    let (from, to) = (x.element_type().bits() as usize, T::TYPE.bits() as usize);
    let n = crate::value::elements(dims);
    if from.max(to) % from.min(to) != 0 || x.len() * from != n * to {
        return Err(cx.unsupported(&format!("from {} to {} of {dims:?}", x.shape(), T::TYPE)));
    }
    let mut out = cx.overwritten::<T>(n)?;
    if direct(x.buffer(), T::TYPE, &mut out) {
        return Ok(Tensor::from_vec(dims, out));
    }
    let (narrower, wider) = (from.div_ceil(to), to.div_ceil(from));
    // Pieces and blocks begin with whole operand elements, of which six-bit ones have ratios that are no
    // powers of two.
    let (chunk, block) = (CHUNK / narrower * narrower, BLOCK / narrower * narrower);
    parallel::pieces(&mut out, chunk, 1, &|piece, out| {
        let mut words = vec![0u128; block / narrower * wider];
        for (i, out) in out.chunks_mut(block).enumerate() {
            let first = (piece * chunk + i * block) / narrower * wider;
            let words = &mut words[..out.len().div_ceil(narrower) * wider];
            load(x.buffer(), first, words);
            if wider > 1 {
                for (o, row) in out.iter_mut().zip(words.chunks(wider)) {
                    let bits = row.iter().rev().fold(0, |bits, &word| bits << from | word);
                    *o = T::from_bits(bits);
                }
            } else {
                for (row, &word) in out.chunks_mut(narrower).zip(words.iter()) {
                    for (k, o) in row.iter_mut().enumerate() {
                        let mask = u128::MAX >> (128 - to);
                        *o = T::from_bits(word >> (k * to) & mask);
                    }
                }
            }
        }
    });
    Ok(Tensor::from_vec(dims, out))
}

fn load(x: &Buffer, start: usize, words: &mut [u128]) {
    with_buffer!(x, x => words.iter_mut().zip(&x[start..]).for_each(|(w, &x)| *w = Bits::bits(x)));
}

/// Reinterprets by a loop of the pair of types, if there is one.
fn direct(x: &Buffer, to: ElementType, out: &mut dyn Any) -> bool {
    macro_rules! pairs {
        ($($A:ident $a:ty => $B:ident $b:ty: |$x:ident| $e:expr;)*) => {
            match (x.element_type(), to) {
                $((ElementType::$A, ElementType::$B) => pair::<$a, $b>(x, out, |$x| $e),)*
                (_, _) => false,
            }
        };
    }
    pairs! {
        F32 f32 => U32 u32: |x| x.to_bits();
        F32 f32 => S32 i32: |x| x.to_bits().cast_signed();
        U32 u32 => F32 f32: |x| f32::from_bits(x);
        S32 i32 => F32 f32: |x| f32::from_bits(x.cast_unsigned());
        U32 u32 => S32 i32: |x| x.cast_signed();
        S32 i32 => U32 u32: |x| x.cast_unsigned();
        F64 f64 => U64 u64: |x| x.to_bits();
        F64 f64 => S64 i64: |x| x.to_bits().cast_signed();
        U64 u64 => F64 f64: |x| f64::from_bits(x);
        S64 i64 => F64 f64: |x| f64::from_bits(x.cast_unsigned());
        BF16 bf16 => U16 u16: |x| x.to_bits();
        U16 u16 => BF16 bf16: |x| bf16::from_bits(x);
        F16 f16 => U16 u16: |x| x.to_bits();
        U16 u16 => F16 f16: |x| f16::from_bits(x);
    }
}

/// Reinterprets `A` as `B`. `out` is a vector of `B`, as the caller's match knows.
fn pair<A: BufferOf, B: BufferOf>(x: &Buffer, out: &mut dyn Any, f: fn(A) -> B) -> bool {
    let (Some(x), Some(out)) = (A::slice(x), out.downcast_mut::<Vec<B>>()) else {
        return false;
    };
    chunks_mut(out, &|start, out| out.iter_mut().zip(&x[start..]).for_each(|(o, &x)| *o = f(x)));
    true
}

/// Takes the first `n` elements of a column as those of another type of the same width.
pub(crate) fn reinterpret_block(x: &Buffer, n: usize, out: &mut Buffer) {
    let mut words = [0u128; BLOCK];
    for start in (0..n).step_by(BLOCK) {
        let end = n.min(start + BLOCK);
        load(x, start, &mut words[..end - start]);
        with_buffer!(out, out => out[start..end].iter_mut().zip(&words).for_each(|(o, &w)| *o = Bits::from_bits(w)));
    }
}
