//! `reduce`: any number of operands, over any dimensions, by any computation.
//!
//! An addition of floats is a sum (`--accumulate`): with `exact`, the exact value of the initial value plus
//! all elements, rounded once. Everything else, and `--accumulate region`, is literal: `acc = f(acc,
//! element)` from the initial value on, over the reduced dimensions in row-major order of the operand's
//! logical indices, whatever its layout. Where the operation is associative and commutative to the bit
//! (integers, logic, minimum, maximum) order is not kept.

use hlo::literal::{Buffer, BufferOf};
use hlo::num_complex::Complex;
use hlo::{AttrKey, ElementType, Opcode, TypeClass, with_buffer};

use hlo_arithmetic::kernels::reduce::{self as kernel, Reduce};
use hlo_arithmetic::scalar::{self, Scalar};
use hlo_arithmetic::sum::{Rounded, Term};
use hlo_threads::parallel;

use super::combine::{Combine, With};
use super::common::{dims, list, others, region, results, with_float};
use super::elementwise::convert;
use super::strided::{SEQUENTIAL, pack, select, strides};
use super::{Args, Cx};
use crate::error::Result;
use crate::region::{LANES, Lanes, Region};
use crate::value::{Sizes, Tensor, Value};

/// `reduce(operands..., initial values...)`.
pub(super) fn reduce(cx: &Cx<'_>, args: Args) -> Result<Value> {
    let (operands, inits) = halves(args);
    let Some(first) = operands.first() else { return Err(cx.unsupported("without operands")) };
    let region = region(cx, AttrKey::ToApply)?;
    let reduced = list(cx, AttrKey::Dimensions);
    let sizes = first.sizes();
    let kept = select(&sizes, &others(sizes.len(), &[&reduced]));
    let (view, order) = arrange(&sizes, &reduced);
    let mut arranged = Vec::with_capacity(operands.len());
    for operand in operands {
        arranged.push(match &order {
            Some(order) => permuted(cx, &operand, order)?,
            None => operand,
        });
    }
    let arranged = typed(cx, &region, arranged, inits.len())?;
    let inits = typed(cx, &region, inits, 0)?;
    let buffers = if let ([x], [init], Some((op, _))) = (&arranged[..], &inits[..], region.as_binary()) {
        match combined(cx, op, view, x, init)? {
            Some(buffer) => {
                cx.applied(&region, x.len());
                vec![buffer]
            }
            None => applied(cx, &region, view, arranged, inits)?,
        }
    } else {
        applied(cx, &region, view, arranged, inits)?
    };
    let kept = dims(&kept);
    Ok(results(cx, buffers.into_iter().map(|b| Tensor::new(kept.clone(), b).into())))
}

/// Operands in two groups of as many.
pub(super) fn halves(args: Args) -> (Vec<Tensor>, Vec<Tensor>) {
    let half = args.len() / 2;
    let mut args = args.into_iter().map(Value::into_array);
    (args.by_ref().take(half).collect(), args.collect())
}

/// Extents of the operand with the reduced dimensions in the middle, or at the end; and the order of
/// dimensions that it must be brought into first, if it is not so already.
fn arrange(sizes: &[usize], reduced: &[usize]) -> (Reduce, Option<Sizes>) {
    let product = |dims: &[usize]| select(sizes, dims).iter().product();
    let mut reduced = Sizes::from_slice(reduced);
    reduced.sort_unstable();
    let kept = others(sizes.len(), &[&reduced]);
    // Dimensions of one element may stand anywhere.
    let long = |dims: &[usize]| dims.iter().copied().filter(|&d| sizes[d] != 1).collect::<Sizes>();
    let (long_reduced, long_kept) = (long(&reduced), long(&kept));
    let (first, last) = (long_reduced.first().copied(), long_reduced.last().copied());
    let Some((first, last)) = first.zip(last) else {
        return (Reduce { outer: product(&kept), reduced: 1, inner: 1 }, None);
    };
    if long_kept.iter().all(|&d| d < first || d > last) {
        let outer: Sizes = kept.iter().copied().filter(|&d| d < first).collect();
        let inner: Sizes = kept.iter().copied().filter(|&d| d > first).collect();
        return (Reduce { outer: product(&outer), reduced: product(&reduced), inner: product(&inner) }, None);
    }
    let view = Reduce { outer: product(&kept), reduced: product(&reduced), inner: 1 };
    (view, Some(kept.into_iter().chain(reduced).collect()))
}

fn permuted(cx: &Cx<'_>, x: &Tensor, order: &[usize]) -> Result<Tensor> {
    cx.session.check_memory(cx.instr, Some(x.bytes()))?;
    let sizes = x.sizes();
    let (new_sizes, new_steps) = (select(&sizes, order), select(&strides(&sizes), order));
    let buffer = with_buffer!(x.buffer(), v => BufferOf::wrap(pack(v, &new_sizes, &new_steps)));
    Ok(Tensor::new(dims(&new_sizes), buffer))
}

/// The only element of a tensor, in another type that holds it.
pub(super) fn scalar<T: Scalar>(x: &Tensor) -> T {
    with_buffer!(x.buffer(), v => scalar::convert(v[0]))
}

/// A reduction by one operation; `None` if the type has no such operation.
fn combined(cx: &Cx<'_>, op: Opcode, view: Reduce, x: &Tensor, init: &Tensor) -> Result<Option<Buffer>> {
    let n = view.outer * view.inner;
    let ty = x.element_type();
    match (op, ty.class()) {
        (Opcode::Add, TypeClass::Float) => sum(cx, view, x.clone(), scalar(init), ty, n).map(Some),
        (Opcode::Add, TypeClass::Complex) => {
            let init = scalar(init);
            let sum = if ty == ElementType::C64 {
                complex_sum::<f32>(cx, view, x, init, n)?
            } else {
                complex_sum::<f64>(cx, view, x, init, n)?
            };
            Ok(Some(sum))
        }
        (_, _) => with_buffer!(x.buffer(), v => {
            let out = filled_with(cx, v, init, n)?;
            Ok(fold(op, view, v, out))
        }),
    }
}

/// So many accumulators, of the type of the elements.
fn filled_with<T: Combine>(cx: &Cx<'_>, _elements: &[T], init: &Tensor, n: usize) -> Result<Vec<T>> {
    cx.reserve::<T>(n)?;
    Ok(vec![scalar::<T>(init); n])
}

/// A sum of floats.
pub(super) fn sum(
    cx: &Cx<'_>,
    view: Reduce,
    x: Tensor,
    init: f64,
    ty: ElementType,
    n: usize,
) -> Result<Buffer> {
    fn of<O: Rounded + BufferOf>(
        cx: &Cx<'_>,
        view: Reduce,
        x: &Tensor,
        init: f64,
        n: usize,
    ) -> Result<Buffer> {
        let mut out = cx.overwritten::<O>(n)?;
        if x.element_type() == ElementType::F64 {
            kernel::real::<f64, O>(cx.accumulate(), view, init, x.slice(), &mut out);
        } else {
            kernel::real::<f32, O>(cx.accumulate(), view, init, x.slice(), &mut out);
        }
        Ok(O::wrap(out))
    }
    let x = if ty == ElementType::F64 { x } else { convert(cx, x, ElementType::F32)? };
    with_float!(ty, O => of::<O>(cx, view, &x, init, n), unreachable!("invariant: {ty} is a float type"))
}

pub(super) fn complex_sum<T>(
    cx: &Cx<'_>,
    view: Reduce,
    x: &Tensor,
    init: Complex<f64>,
    n: usize,
) -> Result<Buffer>
where
    T: Term + Rounded,
    Complex<T>: BufferOf,
{
    let mut out = cx.overwritten::<Complex<T>>(n)?;
    kernel::complex::<T, T>(cx.accumulate(), view, init, x.slice(), &mut out);
    Ok(BufferOf::wrap(out))
}

/// A fold by one operation, on top of what `out` holds; `None` if the type has no such operation.
pub(super) fn fold<T: Combine>(op: Opcode, view: Reduce, x: &[T], mut out: Vec<T>) -> Option<Buffer> {
    struct Fold<'a, T> {
        view: Reduce,
        x: &'a [T],
        /// The identity of an operation whose order does not matter.
        identity: Option<T>,
        out: &'a mut [T],
    }
    impl<T: Combine> With<T> for Fold<'_, T> {
        type Output = ();

        fn with(self, f: impl Fn(T, T) -> T + Copy + Send + Sync) {
            let Reduce { reduced, inner, .. } = self.view;
            let plane = reduced * inner;
            if self.out.is_empty() || plane == 0 {
                return;
            }
            if let (Some(identity), Reduce { outer: 1, inner: 1, .. }) = (self.identity, self.view) {
                // One result of many elements.
                let part = |x: &[T]| wide_fold(x, identity, f);
                let parts: Vec<T> = parallel::collect(self.x.len().div_ceil(SEQUENTIAL), &|i| {
                    part(&self.x[i * SEQUENTIAL..self.x.len().min((i + 1) * SEQUENTIAL)])
                });
                self.out[0] = parts.into_iter().fold(self.out[0], f);
                return;
            }
            let each = |(x, out): (&[T], &mut [T])| {
                if let ([out], Some(identity)) = (&mut *out, self.identity) {
                    *out = f(*out, wide_fold(x, identity, f));
                } else if let [out] = out {
                    *out = x.iter().fold(*out, |acc, &x| f(acc, x));
                } else {
                    for row in x.chunks_exact(inner) {
                        out.iter_mut().zip(row).for_each(|(acc, &x)| *acc = f(*acc, x));
                    }
                }
            };
            if self.x.len() < SEQUENTIAL {
                self.x.chunks_exact(plane).zip(self.out.chunks_exact_mut(inner)).for_each(each);
            } else {
                let least = (SEQUENTIAL / plane).max(1);
                let x = self.x;
                parallel::pieces(self.out, inner, least, &|i, out| each((&x[i * plane..][..plane], out)));
            }
        }
    }
    let done = T::combine(op, Fold { view, x, identity: T::identity(op), out: &mut out });
    done.map(|()| T::wrap(out))
}

/// A fold whose order does not matter, in eight parts that a processor works on at a time.
fn wide_fold<T: Copy>(x: &[T], identity: T, f: impl Fn(T, T) -> T) -> T {
    let (blocks, rest) = x.as_chunks::<8>();
    let mut parts = [identity; 8];
    for block in blocks {
        parts.iter_mut().zip(block).for_each(|(acc, &x)| *acc = f(*acc, x));
    }
    parts.iter().chain(rest).fold(identity, |acc, &x| f(acc, x))
}

/// A reduction by any computation: a lane for each result, in step.
fn applied(
    cx: &Cx<'_>,
    region: &Region,
    view: Reduce,
    operands: Vec<Tensor>,
    inits: Vec<Tensor>,
) -> Result<Vec<Buffer>> {
    let n = view.outer * view.inner;
    let count = operands.len();
    let mut out = Vec::with_capacity(count);
    for init in &inits {
        out.push(with_buffer!(init.buffer(), v => filled(cx, v[0], n)?));
    }
    if view.reduced == 0 || n == 0 {
        return Ok(out);
    }
    // As many lanes as leave work for every thread.
    let block = n.div_ceil(2 * rayon::current_num_threads()).clamp(16, LANES);
    let done = parallel::collect(n.div_ceil(block), &|i| {
        let first = i * block;
        Block { cx, region, view, operands: &operands, inits: &inits }.run(first, block.min(n - first))
    });
    for (i, results) in done.into_iter().enumerate() {
        for (out, part) in out.iter_mut().zip(results?) {
            with_buffer!(out, o => write_part(o, i * block, &part));
        }
    }
    Ok(out)
}

/// Operands in the types of the region's parameters from `first` on.
pub(super) fn typed(cx: &Cx<'_>, region: &Region, x: Vec<Tensor>, first: usize) -> Result<Vec<Tensor>> {
    x.into_iter().zip(&region.parameters()[first..]).map(|(x, &ty)| convert(cx, x, ty)).collect()
}

pub(super) fn filled<T: BufferOf>(cx: &Cx<'_>, x: T, n: usize) -> Result<Buffer> {
    cx.reserve::<T>(n)?;
    Ok(T::wrap(vec![x; n]))
}

fn write_part<T: BufferOf>(out: &mut [T], first: usize, part: &Buffer) {
    let part = T::slice(part).expect("invariant: a part has the type of the whole");
    out[first..first + part.len()].copy_from_slice(part);
}

/// Copies the first `n` lanes of outputs into the buffers that hold accumulators.
pub(super) fn keep(lanes: &Lanes, accumulators: &mut [Buffer], n: usize) {
    for (i, acc) in accumulators.iter_mut().enumerate() {
        with_buffer!(acc, acc => acc[..n].copy_from_slice(&lanes.output(i)[..n]));
    }
}

/// Copies accumulators into the first inputs.
pub(super) fn restore(accumulators: &[Buffer], lanes: &mut Lanes, n: usize) {
    for (i, acc) in accumulators.iter().enumerate() {
        with_buffer!(acc, acc => lanes.input(i)[..n].copy_from_slice(&acc[..n]));
    }
}

/// Some results of a reduction.
struct Block<'a> {
    cx: &'a Cx<'a>,
    region: &'a Region,
    view: Reduce,
    operands: &'a [Tensor],
    inits: &'a [Tensor],
}

impl Block<'_> {
    fn run(&self, first: usize, n: usize) -> Result<Vec<Buffer>> {
        let Reduce { reduced, inner, .. } = self.view;
        let mut lanes = self.region.lanes(n);
        let mut accumulators: Vec<Buffer> = self
            .inits
            .iter()
            .map(|init| with_buffer!(init.buffer(), v => BufferOf::wrap(vec![v[0]; n])))
            .collect();
        // The offset of each lane's elements.
        let bases: Vec<usize> = (first..first + n).map(|o| o / inner * reduced * inner + o % inner).collect();
        for r in 0..reduced {
            restore(&accumulators, &mut lanes, n);
            for (i, operand) in self.operands.iter().enumerate() {
                with_buffer!(operand.buffer(), x => {
                    for (lane, &base) in lanes.input(self.operands.len() + i).iter_mut().zip(&bases) {
                        *lane = x[base + r * inner];
                    }
                });
            }
            self.region.eval(self.cx, &mut lanes, n)?;
            keep(&lanes, &mut accumulators, n);
        }
        Ok(accumulators)
    }
}
