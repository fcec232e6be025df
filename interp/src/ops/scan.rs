//! `scan`: steps along one dimension with carried values.
//!
//! Operands are the inputs and then the initial carries; the computation takes a slice of each input (without
//! the dimension) and the carries, and gives a slice of each output and the new carries. Results are the
//! outputs and then the last carries. Steps run from the first index up, or with `is_reverse` from the last
//! index down. A scan that is nothing but a running sum of floats is a sum (`--accumulate`): each output is
//! the exact sum so far, rounded once.

use hlo::literal::BufferOf;
use hlo::{AttrKey, ComputationId, ElementType, Opcode, TypeClass, with_buffer};
use hlo_arithmetic::kernels::window::{self as kernel, WindowAxis};
use hlo_arithmetic::sum::{Accumulate, Rounded};

use super::common::{dims, number, results, with_float};
use super::elementwise::convert;
use super::strided::{pack, strides};
use super::{Args, Cx};
use crate::error::Result;
use crate::value::{Sizes, Tensor, Value};

/// `scan(inputs..., carries...)`.
pub(super) fn scan(cx: &Cx<'_>, args: Args) -> Result<Value> {
    let carries = number(cx, AttrKey::NumCarries)?;
    let Some(&dimension) = cx.attrs().ints_or_empty(AttrKey::Dimensions).first() else {
        return Err(cx.unsupported("without dimensions"));
    };
    let dimension = usize::try_from(dimension).unwrap_or(usize::MAX);
    let Some(computation) = cx.attrs().computation(AttrKey::ToApply) else {
        return Err(cx.unsupported("without to_apply"));
    };
    let shapes = cx.module().program_shape(computation).map(|p| (p.parameters, p.result));
    let Some((parameters, result)) = shapes else { return Err(cx.unsupported("without a result")) };
    let of = |value: &Value| value.as_array().map(Tensor::element_type);
    let types = |shape: &hlo::Shape| shape.leaves().iter().map(|s| s.element_type()).collect::<Vec<_>>();
    // The verifier lets a carry come back in another float type.
    let given: Vec<_> = parameters.iter().rev().take(carries).map(hlo::Shape::element_type).collect();
    let carried = types(&result).into_iter().rev().take(carries);
    if !args.iter().zip(&parameters).all(|(a, p)| of(a) == p.element_type())
        || types(&result) != types(&cx.instr.shape)
        || !carried.eq(given)
    {
        return Err(cx.unsupported("with a computation of other types"));
    }
    let Some(inputs) = args.len().checked_sub(carries) else {
        return Err(cx.unsupported("with more carries than operands"));
    };
    let mut args = args.into_iter();
    let inputs: Vec<Tensor> = args.by_ref().take(inputs).map(Value::into_array).collect();
    let mut carried: Vec<Value> = args.collect();
    let Some(first) = inputs.first() else { return Err(cx.unsupported("without inputs")) };
    let sizes = first.sizes();
    let Some(&steps) = sizes.get(dimension) else {
        return Err(cx.unsupported("along a dimension that is not there"));
    };
    let reverse = cx.attrs().bool(AttrKey::IsReverse);

    if let ([x], [Value::Array(init)], Accumulate::Exact) = (&inputs[..], &carried[..], cx.accumulate())
        && is_running_sum(cx, computation)
        && x.element_type().class() == TypeClass::Float
        && x.element_type() == init.element_type()
    {
        cx.tell_applied(computation, x.len());
        return running_sum(cx, x, init, dimension, reverse);
    }

    let pieces = result.as_tuple().map_or(1, <[hlo::Shape]>::len);
    let Some(outputs) = pieces.checked_sub(carries) else {
        return Err(cx.unsupported("with more carries than results"));
    };
    let mut stacked: Vec<Vec<Tensor>> = vec![Vec::with_capacity(steps); outputs];
    for step in 0..steps {
        let index = if reverse { steps - 1 - step } else { step };
        let slices = inputs.iter().map(|x| slice(x, dimension, index).into());
        let args: Args = slices.chain(carried.drain(..)).collect();
        cx.spend(1)?;
        cx.tell_applied(computation, 1);
        let mut result = match cx.apply(computation, args)? {
            Value::Tuple(t) => t.iter().cloned().collect::<Vec<Value>>(),
            single @ (Value::Array(_) | Value::Token | Value::Pending(_)) => vec![single],
        };
        carried = result.split_off(outputs);
        for (stack, piece) in stacked.iter_mut().zip(result) {
            stack.push(piece.into_array());
        }
    }
    let shapes = cx.instr.shape.leaves();
    let mut all = Vec::with_capacity(pieces);
    for (stack, shape) in stacked.into_iter().zip(shapes) {
        all.push(joined(cx, stack, shape.expect_array(), dimension, steps, reverse)?.into());
    }
    all.extend(carried);
    Ok(results(cx, all))
}

/// One slice, without the dimension.
fn slice(x: &Tensor, dimension: usize, index: usize) -> Tensor {
    let sizes = x.sizes();
    let steps = strides(&sizes);
    let (mut kept, mut kept_steps): (Sizes, Sizes) = (sizes.clone(), steps.clone());
    kept.remove(dimension);
    kept_steps.remove(dimension);
    let from = index * steps[dimension];
    with_buffer!(x.buffer(), v => Tensor::from_vec(dims(&kept), pack(v.get(from..).unwrap_or(&[]), &kept, &kept_steps)))
}

/// Slices put together along the dimension; they are in the order of the steps.
fn joined(
    cx: &Cx<'_>,
    mut slices: Vec<Tensor>,
    shape: &hlo::ArrayShape,
    dimension: usize,
    steps: usize,
    reverse: bool,
) -> Result<Tensor> {
    if reverse {
        slices.reverse();
    }
    let mut sizes: Sizes = match slices.first() {
        Some(slice) => slice.sizes(),
        None => {
            let mut sizes = crate::value::sizes(&shape.dims);
            sizes.remove(dimension);
            sizes
        }
    };
    let inner: usize = sizes[dimension..].iter().product();
    let outer: usize = sizes[..dimension].iter().product();
    sizes.insert(dimension, steps);
    fn of<T: BufferOf>(cx: &Cx<'_>, slices: &[Tensor], outer: usize, inner: usize) -> Result<hlo::Buffer> {
        let mut out = cx.vec::<T>(slices.len() * outer * inner)?;
        if inner != 0 {
            for (i, out) in out.chunks_exact_mut(inner).enumerate() {
                let (o, step) = (i / slices.len(), i % slices.len());
                out.copy_from_slice(&slices[step].slice::<T>()[o * inner..(o + 1) * inner]);
            }
        }
        Ok(T::wrap(out))
    }
    let buffer = hlo::with_element_type!(shape.element_type, T => of::<T>(cx, &slices, outer, inner)?);
    Ok(Tensor::new(dims(&sizes), buffer))
}

/// Whether the computation is `s = x + carry; (s, s)`.
fn is_running_sum(cx: &Cx<'_>, computation: ComputationId) -> bool {
    let module = cx.module();
    let root = module.instr(module.root(computation));
    let (Opcode::Tuple, &[a, b]) = (root.opcode, root.operands()) else { return false };
    let sum = module.instr(a);
    let is_parameter = |&id: &hlo::InstrId| module.instr(id).opcode == Opcode::Parameter;
    a == b
        && sum.opcode == Opcode::Add
        && sum.operands().iter().all(is_parameter)
        && sum.operands()[0] != sum.operands()[1]
}

fn running_sum(cx: &Cx<'_>, x: &Tensor, init: &Tensor, dimension: usize, reverse: bool) -> Result<Value> {
    fn of<O: Rounded + BufferOf>(cx: &Cx<'_>, axes: &[WindowAxis], x: &[Tensor]) -> Result<hlo::Buffer> {
        let mut out = cx.vec::<O>(axes.iter().map(|axis| axis.output).product())?;
        // -0 leaves every sum as it is.
        match &x[0] {
            x if x.element_type() == ElementType::F64 => {
                kernel::real::<f64, O>(Accumulate::Exact, axes, -0.0, x.slice(), &mut out);
            }
            x => kernel::real::<f32, O>(Accumulate::Exact, axes, -0.0, x.slice(), &mut out),
        }
        Ok(O::wrap(out))
    }
    let ty = x.element_type();
    let mut sizes = x.sizes();
    let steps = sizes[dimension];
    // The carry as one more step before the first.
    let slices = (0..steps).map(|i| slice(x, dimension, i));
    let carry = std::iter::once(init.clone());
    let slices: Vec<Tensor> =
        if reverse { slices.chain(carry).collect() } else { carry.chain(slices).collect() };
    let shape = x.shape();
    let whole = joined(cx, slices, &shape, dimension, steps + 1, false)?;
    let carrier = if ty == ElementType::F64 { ElementType::F64 } else { ElementType::F32 };
    let whole = convert(cx, whole, carrier)?;
    sizes[dimension] += 1;
    let axes: Vec<WindowAxis> = sizes
        .iter()
        .enumerate()
        .map(
            |(d, &n)| {
                if d == dimension { WindowAxis::cumulative(n, reverse) } else { WindowAxis::identity(n) }
            },
        )
        .collect();
    let sums =
        with_float!(ty, O => of::<O>(cx, &axes, &[whole])?, unreachable!("invariant: {ty} is a float type"));
    let sums = Tensor::new(dims(&sizes), sums);
    let last = if reverse { 0 } else { steps };
    let outputs = (0..steps).map(|i| slice(&sums, dimension, if reverse { i } else { i + 1 })).collect();
    let stacked = joined(cx, outputs, &shape, dimension, steps, false)?;
    Ok(results(cx, vec![stacked.into(), slice(&sums, dimension, last).into()]))
}
