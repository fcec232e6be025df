//! `rng`: random numbers of a distribution.
//!
//! The numbers are a function of the seed of the run, the instruction's ordinal ([`hlo::rng_ordinal`]), the
//! device, and how often the instruction ran before, by the scheme of XLA's expansion for CPU and GPU
//! (`rng_expander.cc`): Philox with key `seed ^ (ordinal * 0x9E3779B97F4A7C15 >> 32) ^ replica ^ (partition
//! << 32)` and a counter that begins at 0x7012395 and advances by the number of 32-bit words in the result.
//! Each operation below is rounded in the element type; f16, bf16 and narrower floats are computed in f32 and
//! rounded once at the end.
//!
//! * uniform floats: `u * (high - low) + low`, `u` the top 23 (f64: 52) of an element's bits as a fraction;
//! * uniform integers: `low + bits mod (high - low)`, wrapping, in 64 bits or in 32 and truncated; of an
//!   empty range `low + bits`; for `pred` the upper bound is inclusive;
//! * normal: pairs by Box and Muller from `u1 = max(u, 1e-7)` and the next `u`: `sin(2 pi u) sqrt(-2 log u1)`
//!   and the cosine; the pairs are along the first even dimension, or else the largest.

use std::sync::{Mutex, OnceLock};

use hlo::attrs::RngDistribution;
use hlo::literal::{Bits, Buffer, BufferOf};
use hlo::{AttrKey, ElementType, Opcode, TypeClass, with_element_type};
use hlo_arithmetic::scalar::{Elementary, Float, Number, Scalar, convert};
use hlo_threads::parallel;
use rustc_hash::FxHashMap;

use super::common::{arrays, dims};
use super::random::{Philox, pairs};
use super::rng_bit_generator::FIRST_STATE;
use super::{Args, Cx};
use crate::error::Result;
use crate::value::{Tensor, Value};

/// The random states of a run: for each opcode and ordinal that has one, where it stands. Copies of an
/// instruction have the same.
#[derive(Debug, Default)]
pub(crate) struct States(OnceLock<Box<Mutex<Positions>>>);

/// By opcode and ordinal.
type Positions = FxHashMap<(Opcode, i64), u128>;

impl States {
    /// The state of an instruction, which then advances.
    pub(super) fn next(&self, cx: &Cx<'_>, delta: u128) -> u128 {
        let states = self.0.get_or_init(Box::default);
        let mut states = states.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let state = states.entry((cx.instr.opcode, ordinal(cx))).or_insert(FIRST_STATE);
        let now = *state;
        *state = now.wrapping_add(delta);
        now
    }
}

/// Which of its opcode in the module an instruction is.
fn ordinal(cx: &Cx<'_>) -> i64 {
    cx.attrs().int(AttrKey::RngOrdinal).unwrap_or(0)
}

/// `rng(a, b)`: uniform in [a, b), or normal of mean a and standard deviation b.
pub(super) fn rng(cx: &Cx<'_>, args: Args) -> Result<Value> {
    let [a, b] = arrays(args);
    let shape = cx.array_shape();
    let sizes = crate::value::sizes(&shape.dims);
    let n: usize = sizes.iter().product();
    let ty = shape.element_type;
    cx.session.check_memory(cx.instr, (n as u64).checked_mul(16 + ty.storage_bytes() as u64))?;

    let words = n as u64 * u64::from(ty.bits().div_ceil(32));
    let counter = cx.session.random.next(cx, u128::from(words));
    let (device, seed) = (cx.session.device, cx.options().seed);
    let ordinal = (ordinal(cx) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    let key = seed ^ ordinal ^ u64::from(device.replica) ^ u64::from(device.partition) << 32;
    let philox = Philox { key, counter };

    let distribution = cx.attrs().distribution().copied();
    let buffer = match (distribution, ty.class()) {
        (Some(RngDistribution::Uniform), TypeClass::Float) if ty == ElementType::F64 => {
            BufferOf::wrap(uniform64(philox, n, scalar(&a), scalar(&b)))
        }
        (Some(RngDistribution::Normal), TypeClass::Float) if ty == ElementType::F64 => {
            BufferOf::wrap(normal(&sizes, scalar(&a), scalar(&b), |n| uniform64(philox, n, 0.0, 1.0)))
        }
        (Some(RngDistribution::Uniform), TypeClass::Float) => {
            narrowed(ty, uniform32(philox, n, scalar(&a), scalar(&b)))
        }
        (Some(RngDistribution::Normal), TypeClass::Float) => {
            narrowed(ty, normal(&sizes, scalar(&a), scalar(&b), |n| uniform32(philox, n, 0.0, 1.0)))
        }
        (Some(RngDistribution::Uniform), TypeClass::Signed | TypeClass::Unsigned | TypeClass::Pred) => {
            uniform_integers(ty, philox, n, bound(&a), bound(&b))
        }
        (Some(RngDistribution::Normal), _)
        | (Some(RngDistribution::Uniform), TypeClass::Complex)
        | (None, _) => {
            return Err(cx.unsupported(&format!("of type {ty} in this distribution")));
        }
    };
    Ok(Tensor::new(dims(&sizes), buffer).into())
}

/// The only element of a float tensor, in a type that holds it.
fn scalar<F: Scalar>(x: &Tensor) -> F {
    hlo::with_buffer!(x.buffer(), v => convert(v[0]))
}

/// The f32 values rounded into a float type.
fn narrowed(ty: ElementType, x: Vec<f32>) -> Buffer {
    with_element_type!(ty, T => BufferOf::wrap(x.into_iter().map(convert::<f32, T>).collect()))
}

fn shifted<F: Number>(u: F, low: F, high: F) -> F {
    u.multiply(high.subtract(low)).add(low)
}

fn uniform32(mut philox: Philox, n: usize, low: f32, high: f32) -> Vec<f32> {
    let unit = |bits: u32| (bits >> 9) as f32 * f32::EPSILON;
    philox.bits32(n).into_iter().map(|bits| shifted(unit(bits), low, high)).collect()
}

fn uniform64(mut philox: Philox, n: usize, low: f64, high: f64) -> Vec<f64> {
    let unit = |bits: u64| (bits >> 12) as f64 * f64::EPSILON;
    philox.bits64(n).into_iter().map(|bits| shifted(unit(bits), low, high)).collect()
}

/// Normal numbers of this mean and deviation from uniform ones, of which `uniform` makes as many as it is
/// asked for.
fn normal<F: Elementary + Float>(
    sizes: &[usize],
    mean: F,
    deviation: F,
    uniform: impl Fn(usize) -> Vec<F>,
) -> Vec<F> {
    let layout = pairs(sizes);
    let u = uniform(layout.outer * layout.pairs * 2 * layout.inner);
    let (least, minus_two) = (F::from_f64(f64::from(1.0e-7f32)), F::from_f64(-2.0));
    let tau = F::from_f64(std::f64::consts::TAU);
    let mut out = vec![F::default(); layout.outer * layout.extent * layout.inner];
    if layout.inner != 0 && layout.extent != 0 {
        parallel::pieces(&mut out, layout.inner, 1, &|row, out| {
            let (outer, position) = (row / layout.extent, row % layout.extent);
            let first = (outer * layout.pairs + position / 2) * 2 * layout.inner;
            for (i, out) in out.iter_mut().enumerate() {
                let u1 = Float::maximum(u[first + i], least);
                let angle = tau.multiply(u[first + layout.inner + i]);
                let radius = minus_two.multiply(u1.log()).sqrt();
                let part = if position % 2 == 0 { angle.sine() } else { angle.cosine() };
                *out = mean.add(deviation.multiply(part.multiply(radius)));
            }
        });
    }
    out
}

/// The bits of the only element of an integer tensor, extended to 64 by its sign or by zeros.
fn bound(x: &Tensor) -> u64 {
    let ty = x.element_type();
    let bits = hlo::with_buffer!(x.buffer(), v => v[0].bits()) as u64;
    let unused = 64 - ty.bits().min(64);
    if ty.is_signed_integer() { ((bits << unused) as i64 >> unused) as u64 } else { bits }
}

fn uniform_integers(ty: ElementType, mut philox: Philox, n: usize, low: u64, high: u64) -> Buffer {
    let inclusive = u64::from(ty == ElementType::Pred);
    let range = high.wrapping_sub(low).wrapping_add(inclusive);
    if ty.bits() == 64 {
        let offset = |bits: u64| low.wrapping_add(bits.checked_rem(range).unwrap_or(bits));
        let words = philox.bits64(n).into_iter().map(offset);
        return with_element_type!(ty, T => BufferOf::wrap(words.map(|w| <T as Bits>::from_bits(u128::from(w))).collect()));
    }
    let (low, range) = (low as u32, range as u32);
    let offset = |bits: u32| low.wrapping_add(bits.checked_rem(range).unwrap_or(bits));
    let words = philox.bits32(n).into_iter().map(offset);
    with_element_type!(ty, T => BufferOf::wrap(words.map(|w| <T as Bits>::from_bits(u128::from(w))).collect()))
}
