//! `rng-bit-generator` and `rng-get-and-update-state`.
//!
//! Bits and states are those that XLA's expansion gives on CPU and GPU (`rng_bit_generator_expander.cc`):
//! * `rng_three_fry`: state `[key, counter]`;
//! * `rng_philox`, and `rng_default`, which means it: state `[key, low, high]` with a counter of 128 bits, or
//!   `[key, low]`, where the counter is `(low = state[1], high = state[0])` and only its low half is given
//!   back.
//!
//! Elements narrower than 32 bits take the low bits of a word of their own. Signed and floating-point results
//! are the bits as they are.

use hlo::attrs::RngAlgorithm;
use hlo::literal::{Bits, Buffer, BufferOf};
use hlo::{AttrKey, ElementType, TypeClass, with_element_type};

use super::common::{arrays, dims};
use super::random::{Philox, ThreeFry};
use super::{Args, Cx};
use crate::error::Result;
use crate::value::{Sizes, Tensor, Value};

/// The state that `rng-get-and-update-state` begins with, as in XLA's CPU runtime.
pub(super) const FIRST_STATE: u128 = 0x701_2395;

/// `rng-bit-generator(state)`: (new state, bits), or in an older form the bits alone.
pub(super) fn rng_bit_generator(cx: &Cx<'_>, args: Args) -> Result<Value> {
    let [state] = arrays(args);
    let shape = cx.instr.shape.as_array().or_else(|| cx.instr.shape.as_tuple()?.get(1)?.as_array());
    let Some(shape) = shape else { return Err(cx.unsupported("without an array of bits")) };
    let ty = shape.element_type;
    match ty.class() {
        TypeClass::Signed | TypeClass::Unsigned | TypeClass::Float => {}
        TypeClass::Pred | TypeClass::Complex => return Err(cx.unsupported(&format!("of type {ty}"))),
    }
    if state.element_type() != ElementType::U64 {
        return Err(cx.unsupported(&format!("with a state of type {}", state.element_type())));
    }
    let sizes = crate::value::sizes(&shape.dims);
    let n: usize = sizes.iter().product();
    cx.session.check_memory(cx.instr, (n as u64).checked_mul(8 + ty.storage_bytes() as u64))?;
    let algorithm = cx.attrs().rng_algorithm().copied().unwrap_or(RngAlgorithm::Default);
    let (state, buffer) = match (algorithm, state.slice::<u64>()) {
        (RngAlgorithm::ThreeFry, &[key, counter]) => {
            let mut generator = ThreeFry { key, counter };
            let bits = threefry(&mut generator, ty, &sizes);
            (vec![key, generator.counter], bits)
        }
        (RngAlgorithm::Default | RngAlgorithm::Philox, &[key, low]) => {
            let mut generator = Philox { key, counter: u128::from(low) | u128::from(key) << 64 };
            let bits = philox(&mut generator, ty, n);
            (vec![key, generator.counter as u64], bits)
        }
        (RngAlgorithm::Default | RngAlgorithm::Philox, &[key, low, high]) => {
            let mut generator = Philox { key, counter: u128::from(low) | u128::from(high) << 64 };
            let bits = philox(&mut generator, ty, n);
            (vec![key, generator.counter as u64, (generator.counter >> 64) as u64], bits)
        }
        (algorithm, state) => {
            let why = format!("with algorithm={} and a state of {} elements", algorithm.text(), state.len());
            return Err(cx.unsupported(&why));
        }
    };
    let bits = Tensor::new(dims(&sizes), buffer);
    if cx.instr.shape.as_array().is_some() {
        return Ok(bits.into());
    }
    Ok(Value::tuple([Tensor::from_vec(dims(&[state.len()]), state).into(), bits.into()]))
}

/// Random bits of a type, by ThreeFry.
fn threefry(generator: &mut ThreeFry, ty: ElementType, sizes: &Sizes) -> Buffer {
    if ty.bits() == 64 {
        from_words(ty, generator.bits64(sizes.iter().product()))
    } else {
        from_words(ty, generator.bits32(sizes))
    }
}

/// Random bits of a type, by Philox.
pub(super) fn philox(generator: &mut Philox, ty: ElementType, n: usize) -> Buffer {
    if ty.bits() == 64 { from_words(ty, generator.bits64(n)) } else { from_words(ty, generator.bits32(n)) }
}

fn from_words<W: Copy + Into<u128>>(ty: ElementType, words: Vec<W>) -> Buffer {
    with_element_type!(ty, T => BufferOf::wrap(words.into_iter().map(|w| <T as Bits>::from_bits(w.into())).collect()))
}

/// `rng-get-and-update-state`: a counter of 128 bits, low half first, which each execution of this
/// instruction in a run (or copies of it) advances by `delta`.
pub(super) fn rng_get_and_update_state(cx: &Cx<'_>) -> Result<Value> {
    let delta = cx.attrs().int(AttrKey::Delta).ok_or_else(|| cx.unsupported("without delta"))?;
    let state = cx.session.random.next(cx, delta as i128 as u128);
    let (ty, sizes) = (cx.array_shape().element_type, list_of(cx));
    if ty != ElementType::U64 || sizes[..] != [2] {
        return Err(cx.unsupported(&format!("of shape {}", cx.array_shape())));
    }
    Ok(Tensor::from_vec(dims(&[2]), vec![state as u64, (state >> 64) as u64]).into())
}

fn list_of(cx: &Cx<'_>) -> Sizes {
    crate::value::sizes(&cx.array_shape().dims)
}
