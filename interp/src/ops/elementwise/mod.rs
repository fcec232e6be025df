//! Elementwise operations.
//!
//! **Invariants:** element `i` of a result depends on element `i` of the operands alone (or on a scalar
//! operand of `clamp` and `select`); a result takes over the storage of an operand of its type that is not
//! shared; how work is partitioned among threads changes no bit.

mod convert;
pub(crate) mod lane;

use hlo::attrs::Direction;
use hlo::diag::codes;
use hlo::elementwise::{Binary, Kind, Unary};
use hlo::literal::BufferOf;
use hlo::{AttrKey, Dims, ElementType, with_element_type};

pub(crate) use convert::{carrier, convert, narrow_block, stochastic_by, widen_block};
use hlo_threads::parallel;
use lane::{Kernel1, Lane, Part};

use super::{Args, Cx};
use crate::error::Result;
use crate::value::{Tensor, Value};

/// Elements that a thread takes at a time.
pub(crate) const CHUNK: usize = 1 << 14;

/// Elements that are copied out of the way when a result overwrites an operand.
const BLOCK: usize = 512;

/// Runs an elementwise instruction.
pub(super) fn eval(cx: &Cx<'_>, kind: Kind, args: Args) -> Result<Value> {
    let mut args = args.into_iter().map(Value::into_array);
    let mut next = || args.next().expect("invariant: the verifier checked the number of operands");
    let a = next();
    Ok(Value::Array(match kind {
        Kind::Unary(Unary::Abs) if a.element_type().is_complex() => {
            with_element_type!(a.element_type(), T => part::<T>(cx, a, Part::Modulus))?
        }
        Kind::Unary(op) => {
            let a = coerce(cx, a)?;
            with_element_type!(a.element_type(), T => same::<T>(cx, a, T::unary(op)))?
        }
        Kind::Function(f) => {
            let a = coerce(cx, a)?;
            with_element_type!(a.element_type(), T => same::<T>(cx, a, T::function(f)))?
        }
        Kind::Binary(op) => {
            let (a, b) = (coerce(cx, a)?, coerce(cx, next())?);
            same_dims(cx, &a, &b)?;
            with_element_type!(a.element_type(), T => binary::<T>(cx, a, b, op))?
        }
        Kind::Real => with_element_type!(a.element_type(), T => part::<T>(cx, a, Part::Real))?,
        Kind::Imag => with_element_type!(a.element_type(), T => part::<T>(cx, a, Part::Imaginary))?,
        Kind::IsFinite => with_element_type!(a.element_type(), T => is_finite::<T>(cx, a))?,
        Kind::ReducePrecision => with_element_type!(a.element_type(), T => reduce_precision::<T>(cx, a))?,
        Kind::Convert => convert(cx, a, cx.array_shape().element_type)?,
        Kind::StochasticConvert => convert::stochastic(cx, a, next())?,
        Kind::Compare => {
            let b = next();
            let ty = a.element_type().holding(b.element_type());
            let (a, b) = (convert(cx, a, ty)?, convert(cx, b, ty)?);
            same_dims(cx, &a, &b)?;
            with_element_type!(ty, T => compare::<T>(cx, a, b))?
        }
        Kind::Complex => {
            let b = next();
            same_dims(cx, &a, &b)?;
            with_element_type!(cx.array_shape().element_type, T => complex::<T>(cx, a, b))?
        }
        Kind::Clamp => {
            let (low, x, high) = (coerce(cx, a)?, coerce(cx, next())?, coerce(cx, next())?);
            with_element_type!(x.element_type(), T => clamp::<T>(cx, low, x, high))?
        }
        Kind::Select => {
            let (on_true, on_false) = (coerce(cx, next())?, coerce(cx, next())?);
            same_dims(cx, &on_true, &on_false)?;
            with_element_type!(on_true.element_type(), T => select::<T>(cx, a, on_true, on_false))?
        }
    }))
}

/// An operand in the type of the result: the verifier lets float types be mixed.
fn coerce(cx: &Cx<'_>, x: Tensor) -> Result<Tensor> {
    convert(cx, x, cx.array_shape().element_type)
}

fn same_dims(cx: &Cx<'_>, a: &Tensor, b: &Tensor) -> Result<()> {
    if a.dims() == b.dims() {
        return Ok(());
    }
    let message =
        format!("operands of {} have run-time sizes {:?} and {:?}", cx.instr.opcode, a.dims(), b.dims());
    Err(cx.trap(codes::BAD_DYNAMIC_SIZE, message))
}

/// The error that a type has no such operation. The verifier accepts no such program.
fn no_such(cx: &Cx<'_>, ty: ElementType) -> crate::RunError {
    cx.unsupported(&format!("of {ty}"))
}

/// An operation whose result has the type of its operand.
fn same<T: Lane>(cx: &Cx<'_>, a: Tensor, kernel: Option<Kernel1<T>>) -> Result<Tensor> {
    let kernel = kernel.ok_or_else(|| no_such(cx, T::TYPE))?;
    if let (Kernel1::Wide(_), Some(table)) = (kernel, table(kernel, a.len())) {
        return map_same::<T>(cx, a, &move |a, out| {
            out.iter_mut().zip(a).for_each(|(o, a)| *o = table[a.bits() as usize]);
        });
    }
    map_same::<T>(cx, a, &move |a, out| kernel.run(a, out))
}

/// The results of a kernel for all patterns of a narrow type, if there are far more elements than patterns.
fn table<T: Lane>(kernel: Kernel1<T>, elements: usize) -> Option<Vec<T>> {
    let bits = T::TYPE.bits();
    if bits > 16 || elements >> bits < 4 {
        return None;
    }
    // Sub-byte types keep their patterns in a byte, zero above.
    let patterns: Vec<T> = (0..1u128 << bits).map(T::from_bits).collect();
    let mut table = vec![T::default(); patterns.len()];
    chunks_mut(&mut table, &|start, out| kernel.run(&patterns[start..start + out.len()], out));
    Some(table)
}

fn binary<T: Lane>(cx: &Cx<'_>, a: Tensor, b: Tensor, op: Binary) -> Result<Tensor> {
    let kernel = T::binary(op).ok_or_else(|| no_such(cx, T::TYPE))?;
    zip_same::<T>(cx, a, b, &move |a, b, out| kernel.run(a, b, out))
}

fn part<T: Lane>(cx: &Cx<'_>, a: Tensor, op: Part) -> Result<Tensor> {
    if op == Part::Real && !T::TYPE.is_complex() {
        return Ok(a);
    }
    let kernel = T::part(op).ok_or_else(|| no_such(cx, T::TYPE))?;
    map::<T, T::Part>(cx, &a, &kernel)
}

fn is_finite<T: Lane>(cx: &Cx<'_>, a: Tensor) -> Result<Tensor> {
    let kernel = T::is_finite().ok_or_else(|| no_such(cx, T::TYPE))?;
    map::<T, bool>(cx, &a, &kernel)
}

fn reduce_precision<T: Lane>(cx: &Cx<'_>, a: Tensor) -> Result<Tensor> {
    let kernel = T::reduce_precision().ok_or_else(|| no_such(cx, T::TYPE))?;
    let (exponent, mantissa) = precision(cx.attrs()).ok_or_else(|| cx.unsupported("of that many bits"))?;
    map_same::<T>(cx, a, &move |a, out| {
        out.iter_mut().zip(a).for_each(|(o, &a)| *o = kernel(a, exponent, mantissa));
    })
}

/// The bits of the canonical NaN of a type; `None` if its class has none.
pub(crate) fn canonical_nan(ty: ElementType) -> Option<u128> {
    use hlo::literal::Bits;
    fn of<T: Lane + Bits>() -> u128 {
        T::from_f64(f64::NAN).bits()
    }
    ty.is_float().then(|| with_element_type!(ty, T => of::<T>()))
}

/// The bits of a `reduce-precision`.
pub(crate) fn precision(attrs: &hlo::Attrs) -> Option<(u32, u32)> {
    let bits = |key| attrs.int(key).and_then(|n| u32::try_from(n).ok());
    Some((bits(AttrKey::ExponentBits)?, bits(AttrKey::MantissaBits)?))
}

/// Direction of a `compare`, and whether it is by the total order of floats.
pub(crate) fn comparison(attrs: &hlo::Attrs) -> Option<(Direction, bool)> {
    Some((*attrs.direction()?, attrs.is_total_order()))
}

fn compare<T: Lane>(cx: &Cx<'_>, a: Tensor, b: Tensor) -> Result<Tensor> {
    let kernel = comparison(cx.attrs()).and_then(|(direction, total)| T::compare(direction, total));
    let kernel = kernel.ok_or_else(|| no_such(cx, T::TYPE))?;
    zip::<T, bool>(cx, &a, &b, &kernel)
}

fn complex<T: Lane>(cx: &Cx<'_>, re: Tensor, im: Tensor) -> Result<Tensor> {
    let kernel = T::from_parts().ok_or_else(|| no_such(cx, T::TYPE))?;
    zip::<T::Part, T>(cx, &re, &im, &kernel)
}

/// A column that a scalar operand fills: as long as the longest slice that a kernel is given.
fn splat<T: BufferOf>(x: &Tensor, n: usize) -> Vec<T> {
    vec![x.slice::<T>()[0]; n.min(2 * CHUNK)]
}

fn clamp<T: Lane>(cx: &Cx<'_>, low: Tensor, mut x: Tensor, high: Tensor) -> Result<Tensor> {
    let kernel = T::clamp().ok_or_else(|| no_such(cx, T::TYPE))?;
    let n = x.len();
    for bound in [&low, &high] {
        if bound.rank() != 0 {
            same_dims(cx, bound, &x)?;
        }
    }
    let column = |bound: &Tensor| if bound.rank() == 0 && n > 0 { splat(bound, n) } else { Vec::new() };
    let (low_column, high_column): (Vec<T>, Vec<T>) = (column(&low), column(&high));
    let bound = |bound, column| Bound { values: T::slice(Tensor::buffer(bound)).unwrap_or(&[]), column };
    let (low, high): (Bound<'_, T>, Bound<'_, T>) = (bound(&low, &low_column), bound(&high, &high_column));
    let dims = Dims::from_slice(x.dims());
    if let Some(buffer) = x.unique() {
        let out = typed_mut::<T>(buffer);
        chunks_mut(out, &|start, out| {
            in_blocks(out, |at, block, out| {
                kernel(low.at(start + at, out.len()), block, high.at(start + at, out.len()), out);
            });
        });
        return Ok(x);
    }
    let mut out = cx.overwritten::<T>(n)?;
    let x = x.slice::<T>();
    chunks_mut(&mut out, &|start, out| {
        let n = out.len();
        kernel(low.at(start, n), &x[start..start + n], high.at(start, n), out);
    });
    Ok(Tensor::from_vec(dims, out))
}

/// An operand that is an array, or a scalar spread over a column.
struct Bound<'a, T> {
    values: &'a [T],
    column: &'a [T],
}

impl<T> Bound<'_, T> {
    fn at(&self, start: usize, n: usize) -> &[T] {
        if self.column.is_empty() { &self.values[start..start + n] } else { &self.column[..n] }
    }
}

fn select<T: Lane>(cx: &Cx<'_>, pred: Tensor, mut on_true: Tensor, mut on_false: Tensor) -> Result<Tensor> {
    if pred.rank() == 0 {
        return Ok(if pred.slice::<bool>()[0] { on_true } else { on_false });
    }
    same_dims(cx, &pred, &on_true)?;
    let pred = pred.slice::<bool>();
    if let Some(buffer) = on_true.unique() {
        let other = on_false.slice::<T>();
        chunks_mut(typed_mut::<T>(buffer), &|start, out| {
            for ((o, &p), &f) in out.iter_mut().zip(&pred[start..]).zip(&other[start..]) {
                *o = if p { *o } else { f };
            }
        });
        return Ok(on_true);
    }
    if let Some(buffer) = on_false.unique() {
        let other = on_true.slice::<T>();
        chunks_mut(typed_mut::<T>(buffer), &|start, out| {
            for ((o, &p), &t) in out.iter_mut().zip(&pred[start..]).zip(&other[start..]) {
                *o = if p { t } else { *o };
            }
        });
        return Ok(on_false);
    }
    let mut out = cx.overwritten::<T>(pred.len())?;
    let (t, f) = (on_true.slice::<T>(), on_false.slice::<T>());
    chunks_mut(&mut out, &|start, out| select_kernel(&pred[start..], &t[start..], &f[start..], out));
    Ok(Tensor::from_vec(on_true.dims(), out))
}

/// `select` along slices.
pub(crate) fn select_kernel<T: Copy>(pred: &[bool], on_true: &[T], on_false: &[T], out: &mut [T]) {
    for (((o, &p), &t), &f) in out.iter_mut().zip(pred).zip(on_true).zip(on_false) {
        *o = if p { t } else { f };
    }
}

// ---- drivers

/// A kernel of one operand that may hold parameters.
type Dyn1<A, O> = dyn Fn(&[A], &mut [O]) + Sync;
/// A kernel of two operands.
type Dyn2<A, O> = dyn Fn(&[A], &[A], &mut [O]) + Sync;

fn typed_mut<T: BufferOf>(buffer: &mut hlo::Buffer) -> &mut Vec<T> {
    T::slice_mut(buffer).expect("invariant: the verifier checked the element type")
}

/// Calls `f` with each piece of a result and the number of its first element, on several threads if there is
/// enough. Never with an empty piece.
pub(crate) fn chunks_mut<O: Send>(out: &mut [O], f: &(dyn Fn(usize, &mut [O]) + Sync)) {
    if out.is_empty() {
        return;
    }
    if out.len() <= 2 * CHUNK {
        f(0, out);
    } else {
        parallel::pieces(out, CHUNK, 1, &|i, out| f(i * CHUNK, out));
    }
}

/// Calls `f` with pieces of a result that overwrites an operand: position, the operand's elements, the
/// result's.
fn in_blocks<T: Copy + Default>(out: &mut [T], mut f: impl FnMut(usize, &[T], &mut [T])) {
    let mut copy = [T::default(); BLOCK];
    for (i, out) in out.chunks_mut(BLOCK).enumerate() {
        let block = &mut copy[..out.len()];
        block.copy_from_slice(out);
        f(i * BLOCK, block, out);
    }
}

/// A result of another type than the operand.
fn map<A: BufferOf, O: BufferOf>(cx: &Cx<'_>, a: &Tensor, kernel: &Dyn1<A, O>) -> Result<Tensor> {
    let mut out = cx.overwritten::<O>(a.len())?;
    let values = a.slice::<A>();
    chunks_mut(&mut out, &|start, out| kernel(&values[start..start + out.len()], out));
    Ok(Tensor::from_vec(a.dims(), out))
}

/// A result of the operand's type.
fn map_same<T: BufferOf>(cx: &Cx<'_>, mut a: Tensor, kernel: &Dyn1<T, T>) -> Result<Tensor> {
    if let Some(buffer) = a.unique() {
        chunks_mut(typed_mut::<T>(buffer), &|_, out| in_blocks(out, |_, block, out| kernel(block, out)));
        return Ok(a);
    }
    map(cx, &a, kernel)
}

/// A result of another type than the operands.
fn zip<A: BufferOf, O: BufferOf>(cx: &Cx<'_>, a: &Tensor, b: &Tensor, kernel: &Dyn2<A, O>) -> Result<Tensor> {
    let mut out = cx.overwritten::<O>(a.len())?;
    let (x, y) = (a.slice::<A>(), b.slice::<A>());
    chunks_mut(&mut out, &|start, out| {
        let end = start + out.len();
        kernel(&x[start..end], &y[start..end], out);
    });
    Ok(Tensor::from_vec(a.dims(), out))
}

/// A result of the operands' type.
fn zip_same<T: BufferOf>(cx: &Cx<'_>, mut a: Tensor, mut b: Tensor, kernel: &Dyn2<T, T>) -> Result<Tensor> {
    if let Some(buffer) = a.unique() {
        let b = b.slice::<T>();
        chunks_mut(typed_mut::<T>(buffer), &|start, out| {
            in_blocks(out, |at, block, out| kernel(block, &b[start + at..start + at + out.len()], out));
        });
        return Ok(a);
    }
    if let Some(buffer) = b.unique() {
        let a = a.slice::<T>();
        chunks_mut(typed_mut::<T>(buffer), &|start, out| {
            in_blocks(out, |at, block, out| kernel(&a[start + at..start + at + out.len()], block, out));
        });
        return Ok(b);
    }
    zip(cx, &a, &b, kernel)
}
