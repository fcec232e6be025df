//! `bitcast`: the same bytes in memory as another shape. The one operation that layouts have a say in.
//!
//! The elements are put in the order in which the operand's layout has them in memory ([`memory_order`]), and
//! taken from there as the result's layout says; padding holds zeros.

use hlo::memory_order::{self, NoOrder, Step};
use hlo::{Dims, Layout};

use super::{bits, dynamic, permuted};
use crate::error::Result;
use crate::ops::{Args, Cx};
use crate::value::{Sizes, Tensor, Value};

/// `bitcast`.
pub(crate) fn bitcast(cx: &Cx<'_>, args: Args) -> Result<Value> {
    let Value::Array(x) = crate::ops::control::first(args) else {
        return Err(cx.unsupported("of anything but an array"));
    };
    let (from, to) = (cx.operand_shape(0), cx.array_shape());
    if from.same_dims(to) && from.layout == to.layout {
        return Ok(x.into());
    }
    // Memory is as large as the bounds.
    let sizes = if to.is_dynamic() || *x.dims() != *from.dims { Some(run_time_sizes(cx, &x)?) } else { None };
    let x = dynamic::resized(cx, &x, &from.dims)?;
    let (source, _) = steps(cx, from.layout.as_deref(), &from.dims)?;
    let (target, shapes) = steps(cx, to.layout.as_deref(), &to.dims)?;
    let memory = source.iter().try_fold(x, |x, step| apply(cx, x, step))?;
    // Where tiles pad, the two need not take the same number of bytes.
    let physical: Dims = shapes.last().cloned().unwrap_or_else(|| to.dims.clone());
    let n: i64 = physical.iter().try_fold(1i64, |n, &d| n.checked_mul(d)).ok_or_else(|| too_large(cx))?;
    let (width, wanted) = (i64::from(memory.element_type().bits()), i64::from(to.element_type.bits()));
    let bits = n.checked_mul(wanted).ok_or_else(|| too_large(cx))?;
    let padded = bits.div_euclid(width) + i64::from(bits % width != 0);
    let length = memory.len() as i64;
    let memory = dynamic::resized(cx, &memory.reshaped(Dims::from_slice(&[length])), &[padded])?;
    let elements = if wanted <= width { padded * (width / wanted) } else { n };
    let memory = bits::reinterpreted(cx, memory, to.element_type, Dims::from_slice(&[elements]))?;
    let mut taken = dynamic::resized(cx, &memory, &[n])?.reshaped(physical);
    for (step, before) in target.iter().zip(&shapes).rev() {
        taken = undo(cx, taken, step, before)?;
    }
    match sizes {
        None => Ok(taken.into()),
        Some(sizes) => dynamic::resized(cx, &taken, &sizes).map(Value::from),
    }
}

/// Those of the result, where memory order says nothing else than that of a reshape.
fn run_time_sizes(cx: &Cx<'_>, x: &Tensor) -> Result<Dims> {
    let (from, to) = (cx.operand_shape(0), cx.array_shape());
    if from.same_dims(to) {
        return Ok(x.dims().into());
    }
    let plain = |shape: &hlo::ArrayShape| {
        shape.layout.as_ref().is_none_or(|l| l.is_row_major() && l.tiles.is_empty())
    };
    if plain(from) && plain(to) && from.element_type == to.element_type {
        return dynamic::reshaped_dims(cx, x);
    }
    Err(cx.unsupported(&format!("from run-time sizes {:?} to {to}", x.dims())))
}

fn too_large(cx: &Cx<'_>) -> crate::RunError {
    cx.unsupported("of a size beyond 2^63")
}

/// The steps to memory of an array with these dimensions, and its dimensions before each step and after all.
fn steps(cx: &Cx<'_>, layout: Option<&Layout>, dims: &[i64]) -> Result<(Vec<Step>, Vec<Dims>)> {
    memory_order::steps(layout, dims).map_err(|e| match e {
        NoOrder::Sparse => cx.unsupported("of a sparse layout"),
        NoOrder::Tile => cx.unsupported("of such a tile"),
        NoOrder::TooLarge => too_large(cx),
    })
}

fn apply(cx: &Cx<'_>, x: Tensor, step: &Step) -> Result<Tensor> {
    match step {
        Step::Permute(order) => permuted(cx, x, order),
        Step::Reshape(dims) => Ok(x.reshaped(dims.clone())),
        Step::Pad(dims) => dynamic::resized(cx, &x, dims),
    }
}

fn undo(cx: &Cx<'_>, x: Tensor, step: &Step, before: &Dims) -> Result<Tensor> {
    match step {
        Step::Permute(order) => {
            let mut inverse = Sizes::from_elem(0, order.len());
            order.iter().enumerate().for_each(|(i, &d)| inverse[d] = i);
            permuted(cx, x, &inverse)
        }
        Step::Reshape(_) => Ok(x.reshaped(before.clone())),
        Step::Pad(_) => dynamic::resized(cx, &x, before),
    }
}
