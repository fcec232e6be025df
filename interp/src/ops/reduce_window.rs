//! `reduce-window`: like `reduce` over the elements of each window of an operand.
//!
//! Elements of a window are taken row-major; positions in the padding or in the holes of a dilated operand
//! are skipped. An addition of floats is a sum (`--accumulate`), cumulative sums among them; everything else
//! is literal, or has no order to keep.

use hlo::literal::{Buffer, BufferOf};
use hlo::num_complex::Complex;
use hlo::{AttrKey, ElementType, Opcode, TypeClass, with_buffer};
use hlo_arithmetic::kernels::window::{self as kernel, WindowAxis};
use hlo_arithmetic::sum::{Rounded, Term};
use hlo_threads::parallel;

use super::combine::{Combine, With};
use super::common::{dims, region, results, with_float};
use super::elementwise::convert;
use super::reduce::{filled, halves, keep, restore, scalar, typed};
use super::strided::SEQUENTIAL;
use super::window::{self, Around};
use super::{Args, Cx};
use crate::error::Result;
use crate::region::{LANES, Region};
use crate::value::{Sizes, Tensor, Value};

/// `reduce-window(operands..., initial values...)`.
pub(super) fn reduce_window(cx: &Cx<'_>, args: Args) -> Result<Value> {
    let (operands, inits) = halves(args);
    let Some(first) = operands.first() else { return Err(cx.unsupported("without operands")) };
    let region = region(cx, AttrKey::ToApply)?;
    let axes = window::axes(cx, &first.sizes())?;
    let operands = typed(cx, &region, operands, inits.len())?;
    let inits = typed(cx, &region, inits, 0)?;
    let buffers = if let ([x], [init], Some((op, _))) = (&operands[..], &inits[..], region.as_binary()) {
        match combined(cx, op, &axes, x, init)? {
            Some(buffer) => {
                cx.applied(&region, if x.is_empty() { 0 } else { buffer.len() });
                vec![buffer]
            }
            None => applied(cx, &region, &axes, operands, inits)?,
        }
    } else {
        applied(cx, &region, &axes, operands, inits)?
    };
    let sizes = dims(&window::outputs(&axes));
    Ok(results(cx, buffers.into_iter().map(|b| Tensor::new(sizes.clone(), b).into())))
}

/// A reduction by one operation; `None` if the type has no such operation.
fn combined(
    cx: &Cx<'_>,
    op: Opcode,
    axes: &[WindowAxis],
    x: &Tensor,
    init: &Tensor,
) -> Result<Option<Buffer>> {
    let n = window::outputs(axes).iter().product();
    let ty = x.element_type();
    match (op, ty.class()) {
        (Opcode::Add, TypeClass::Float) => sum(cx, axes, x.clone(), scalar(init), ty, n).map(Some),
        (Opcode::Add, TypeClass::Complex) => {
            let init = scalar(init);
            let sum = if ty == ElementType::C64 {
                complex_sum::<f32>(cx, axes, x, init, n)?
            } else {
                complex_sum::<f64>(cx, axes, x, init, n)?
            };
            Ok(Some(sum))
        }
        (_, _) => with_buffer!(x.buffer(), v => folded(cx, op, axes, v, init)),
    }
}

fn sum(cx: &Cx<'_>, axes: &[WindowAxis], x: Tensor, init: f64, ty: ElementType, n: usize) -> Result<Buffer> {
    fn of<O: Rounded + BufferOf>(
        cx: &Cx<'_>,
        axes: &[WindowAxis],
        x: &Tensor,
        init: f64,
        n: usize,
    ) -> Result<Buffer> {
        let mut out = cx.overwritten::<O>(n)?;
        if x.element_type() == ElementType::F64 {
            kernel::real::<f64, O>(cx.accumulate(), axes, init, x.slice(), &mut out);
        } else {
            kernel::real::<f32, O>(cx.accumulate(), axes, init, x.slice(), &mut out);
        }
        Ok(O::wrap(out))
    }
    let x = if ty == ElementType::F64 { x } else { convert(cx, x, ElementType::F32)? };
    with_float!(ty, O => of::<O>(cx, axes, &x, init, n), unreachable!("invariant: {ty} is a float type"))
}

/// Real and imaginary parts are sums of their own.
fn complex_sum<T>(
    cx: &Cx<'_>,
    axes: &[WindowAxis],
    x: &Tensor,
    init: Complex<f64>,
    n: usize,
) -> Result<Buffer>
where
    T: Term + Rounded,
    Complex<T>: BufferOf,
{
    let x: &[Complex<T>] = x.slice();
    let mut out = cx.overwritten::<Complex<T>>(n)?;
    cx.reserve::<Complex<T>>(n.saturating_add(x.len()) / 2)?;
    let mut part = vec![T::default(); n];
    let re: Vec<T> = x.iter().map(|x| x.re).collect();
    kernel::real::<T, T>(cx.accumulate(), axes, init.re, &re, &mut part);
    out.iter_mut().zip(&part).for_each(|(out, &re)| out.re = re);
    let im: Vec<T> = x.iter().map(|x| x.im).collect();
    kernel::real::<T, T>(cx.accumulate(), axes, init.im, &im, &mut part);
    out.iter_mut().zip(&part).for_each(|(out, &im)| out.im = im);
    Ok(BufferOf::wrap(out))
}

/// A reduction by one operation that is not a sum of floats.
fn folded<T: Combine>(
    cx: &Cx<'_>,
    op: Opcode,
    axes: &[WindowAxis],
    x: &[T],
    init: &Tensor,
) -> Result<Option<Buffer>> {
    let n = window::outputs(axes).iter().product();
    cx.reserve::<T>(n)?;
    let out = vec![scalar::<T>(init); n];
    let fold = Fold { axes, x, identity: T::identity(op), out };
    Ok(T::combine(op, fold).map(T::wrap))
}

/// Elements of a window from which on overlapping windows share their work.
const LONG: usize = 32;

struct Fold<'a, T> {
    axes: &'a [WindowAxis],
    x: &'a [T],
    /// The identity of an operation whose order does not matter.
    identity: Option<T>,
    /// Initial values.
    out: Vec<T>,
}

impl<T: Combine> With<T> for Fold<'_, T> {
    type Output = Vec<T>;

    fn with(mut self, f: impl Fn(T, T) -> T + Copy + Send + Sync) -> Vec<T> {
        if self.out.is_empty() {
            return self.out;
        }
        let elements = self.axes.iter().fold(1usize, |n, axis| n.saturating_mul(axis.window));
        match (window::single(self.axes), self.identity) {
            (Some((axis, around)), _) if window::is_prefix(&self.axes[axis]) => {
                prefixes(&self.axes[axis], around, self.x, &mut self.out, f);
                self.out
            }
            (_, Some(identity)) if elements >= LONG => {
                // Axis by axis: the result of one axis is the operand of the next.
                let mut sizes: Sizes = self.axes.iter().map(|axis| axis.input).collect();
                let mut x = self.x.to_vec();
                for (i, axis) in self.axes.iter().enumerate() {
                    if *axis != WindowAxis::identity(axis.input) {
                        let around = Around {
                            outer: sizes[..i].iter().product(),
                            inner: sizes[i + 1..].iter().product(),
                        };
                        x = along(axis, around, &x, identity, f);
                    }
                    sizes[i] = axis.output;
                }
                self.out.iter_mut().zip(x).for_each(|(out, x)| *out = f(*out, x));
                self.out
            }
            (_, _) => {
                literally(self.axes, self.x, &mut self.out, f);
                self.out
            }
        }
    }
}

/// Windows that all begin at the first element: each goes on where the one before it ended.
fn prefixes<T: Combine>(
    axis: &WindowAxis,
    around: Around,
    x: &[T],
    out: &mut [T],
    f: impl Fn(T, T) -> T + Sync,
) {
    let Around { inner, .. } = around;
    let lines = |(outer, out): (usize, &mut [T])| {
        let x = &x[outer * axis.input * inner..][..axis.input * inner];
        let mut acc = out[..inner].to_vec();
        let mut taken = 0;
        for (o, out) in out.chunks_exact_mut(inner).enumerate() {
            for row in x[taken * inner..axis.range(o).end * inner].chunks_exact(inner) {
                acc.iter_mut().zip(row).for_each(|(acc, &x)| *acc = f(*acc, x));
            }
            taken = axis.range(o).end;
            out.copy_from_slice(&acc);
        }
    };
    let plane = axis.output * inner;
    parallel::pieces(out, plane, SEQUENTIAL / plane, &|i, out| lines((i, out)));
}

/// Windows along one axis, from the identity, by an operation without order.
fn along<T: Combine>(
    axis: &WindowAxis,
    around: Around,
    x: &[T],
    identity: T,
    f: impl Fn(T, T) -> T + Copy + Sync,
) -> Vec<T> {
    let Around { outer, inner } = around;
    let mut out = vec![identity; outer * axis.output * inner];
    let plane = axis.output * inner;
    if plane == 0 {
        return out;
    }
    let share = axis.base_dilation == 1 && axis.window_dilation == 1 && axis.window > 4;
    let lines = |(outer, out): (usize, &mut [T])| {
        let x = &x[outer * axis.input * inner..][..axis.input * inner];
        if !share {
            for (o, out) in out.chunks_exact_mut(inner).enumerate() {
                for p in axis.present(o) {
                    out.iter_mut().zip(&x[p * inner..]).for_each(|(acc, &x)| *acc = f(*acc, x));
                }
            }
            return;
        }
        // Blocks as long as the window: a window is the end of one block and the beginning of the next (van
        // Herk).
        let (n, block) = (axis.input, axis.window);
        let mut ends = x.to_vec();
        let mut starts = x.to_vec();
        for i in (0..n.saturating_sub(1)).rev().filter(|i| (i + 1) % block != 0) {
            for j in 0..inner {
                ends[i * inner + j] = f(ends[i * inner + j], ends[(i + 1) * inner + j]);
            }
        }
        for i in (1..n).filter(|i| i % block != 0) {
            for j in 0..inner {
                starts[i * inner + j] = f(starts[(i - 1) * inner + j], starts[i * inner + j]);
            }
        }
        for (o, out) in out.chunks_exact_mut(inner).enumerate() {
            let range = axis.range(o);
            if range.is_empty() {
                continue;
            }
            let (first, last) = (range.start, range.end - 1);
            for (j, out) in out.iter_mut().enumerate() {
                let (end, start) = (ends[first * inner + j], starts[last * inner + j]);
                *out = match (first / block == last / block, first % block == 0) {
                    (false, _) => f(end, start),
                    // Within one block a window is its beginning, or it is cut off by the end of the operand.
                    (true, true) => f(identity, start),
                    (true, false) => f(identity, end),
                };
            }
        }
    };
    parallel::pieces(&mut out, plane, SEQUENTIAL / plane, &|i, out| lines((i, out)));
    out
}

/// Window by window, element by element.
fn literally<T: Combine>(axes: &[WindowAxis], x: &[T], out: &mut [T], f: impl Fn(T, T) -> T + Sync) {
    // Trailing axes without windows go together.
    let busy = axes.iter().rposition(|axis| *axis != WindowAxis::identity(axis.input)).map_or(0, |i| i + 1);
    let inner: usize = axes[busy..].iter().map(|axis| axis.input).product();
    let axes = &axes[..busy];
    let each = |(index, out): (usize, &mut [T])| {
        let at = window::coordinates(axes, index);
        if let [acc] = out {
            window::visit(axes, &at, 0, &mut |i| *acc = f(*acc, x[i]));
        } else {
            window::visit(axes, &at, 0, &mut |i| {
                out.iter_mut().zip(&x[i * inner..]).for_each(|(acc, &x)| *acc = f(*acc, x));
            });
        }
    };
    let least = (SEQUENTIAL / 8 / inner).max(1);
    parallel::pieces(out, inner, least, &|i, out| each((i, out)));
}

/// A reduction by any computation: a lane for each result.
fn applied(
    cx: &Cx<'_>,
    region: &Region,
    axes: &[WindowAxis],
    operands: Vec<Tensor>,
    inits: Vec<Tensor>,
) -> Result<Vec<Buffer>> {
    let n: usize = window::outputs(axes).iter().product();
    let count = operands.len();
    let mut out = Vec::with_capacity(count);
    for init in &inits {
        out.push(with_buffer!(init.buffer(), v => filled(cx, v[0], n)?));
    }
    let run = Run { cx, region, axes, operands: &operands };
    match window::single(axes) {
        Some((axis, around)) if window::is_prefix(&axes[axis]) => {
            run.prefixes(&axes[axis], around, &inits, &mut out)?
        }
        Some(_) | None => run.windows(&mut out)?,
    }
    Ok(out)
}

struct Run<'a> {
    cx: &'a Cx<'a>,
    region: &'a Region,
    axes: &'a [WindowAxis],
    operands: &'a [Tensor],
}

impl Run<'_> {
    /// Windows that all begin at the first element.
    fn prefixes(
        &self,
        axis: &WindowAxis,
        around: Around,
        inits: &[Tensor],
        out: &mut [Buffer],
    ) -> Result<()> {
        let Around { outer, inner } = around;
        let lines: Vec<usize> = (0..outer * inner).collect();
        let mut lanes = self.region.lanes(lines.len());
        for lines in lines.chunks(LANES) {
            let offset = |line: usize, n: usize, i: usize| (line / inner * n + i) * inner + line % inner;
            let begun =
                |init: &Tensor| with_buffer!(init.buffer(), v => BufferOf::wrap(vec![v[0]; lines.len()]));
            let mut accumulators: Vec<Buffer> = inits.iter().map(begun).collect();
            let mut taken = 0;
            for o in 0..axis.output {
                for i in taken..axis.range(o).end {
                    restore(&accumulators, &mut lanes, lines.len());
                    for (k, operand) in self.operands.iter().enumerate() {
                        with_buffer!(operand.buffer(), x => {
                            for (lane, &line) in lanes.input(self.operands.len() + k).iter_mut().zip(lines) {
                                *lane = x[offset(line, axis.input, i)];
                            }
                        });
                    }
                    self.region.eval(self.cx, &mut lanes, lines.len())?;
                    keep(&lanes, &mut accumulators, lines.len());
                }
                taken = axis.range(o).end;
                for (out, acc) in out.iter_mut().zip(&accumulators) {
                    with_buffer!(out, out => put(out, acc, lines.iter().map(|&line| offset(line, axis.output, o))));
                }
            }
        }
        Ok(())
    }

    /// Any windows; `out` holds initial values, and accumulators in between.
    fn windows(&self, out: &mut [Buffer]) -> Result<()> {
        let n = out.first().map_or(0, Buffer::len);
        let mut lanes = self.region.lanes(n);
        let (mut to, mut from) = (Vec::with_capacity(n.min(LANES)), Vec::with_capacity(n.min(LANES)));
        for first in (0..n).step_by(LANES) {
            let block: Vec<Sizes> =
                (first..n.min(first + LANES)).map(|o| window::coordinates(self.axes, o)).collect();
            for position in window::positions(self.axes) {
                to.clear();
                from.clear();
                for (o, at) in (first..).zip(&block) {
                    if let Some(i) = window::locate(self.axes, at, &position) {
                        to.push(o);
                        from.push(i);
                    }
                }
                for (k, (out, operand)) in out.iter().zip(self.operands).enumerate() {
                    with_buffer!(out, out => take(out, &to, lanes.input(k)));
                    with_buffer!(operand.buffer(), x => take(x, &from, lanes.input(self.operands.len() + k)));
                }
                // A window of the padding alone has many positions and no elements.
                self.cx.spend(1)?;
                self.region.eval(self.cx, &mut lanes, to.len())?;
                for (k, out) in out.iter_mut().enumerate() {
                    with_buffer!(out, out => put(out, lanes.output_buffer(k), to.iter().copied()));
                }
            }
        }
        Ok(())
    }
}

fn take<T: Copy>(x: &[T], offsets: &[usize], lanes: &mut [T]) {
    lanes.iter_mut().zip(offsets).for_each(|(lane, &at)| *lane = x[at]);
}

fn put<T: BufferOf>(out: &mut [T], lanes: &Buffer, offsets: impl Iterator<Item = usize>) {
    let lanes = T::slice(lanes).expect("invariant: the verifier checked the types of the region");
    lanes.iter().zip(offsets).for_each(|(&lane, at)| out[at] = lane);
}
