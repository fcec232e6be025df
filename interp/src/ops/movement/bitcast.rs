//! `bitcast`: the same bytes in memory as another shape. The one operation that layouts have a say in.
//!
//! The elements are put in the order in which the operand's layout has them in memory, and taken from there as the result's
//! layout says. A tile pads the minor dimensions to its multiples and moves what is inside of it to the end
//! (`docs/tiled_layout.md` of openxla/xla); padding holds zeros.

use hlo::layout::TileDim;
use hlo::{Dims, Layout};

use super::{bits, dynamic, permuted};
use crate::error::Result;
use crate::ops::{Args, Cx};
use crate::value::{Sizes, Tensor, Value};

/// One step from logical dimensions to memory.
enum Step {
    /// Dimensions in another order.
    Permute(Sizes),
    /// The same elements in other dimensions.
    Reshape(Dims),
    /// Zeros added at the ends.
    Pad(Dims),
}

/// `bitcast`.
pub(crate) fn bitcast(cx: &Cx<'_>, args: Args) -> Result<Value> {
    let Value::Array(x) = crate::ops::control::first(args) else {
        return Err(cx.unsupported("of anything but an array"));
    };
    let (from, to) = (cx.operand_shape(0), cx.array_shape());
    if from.same_dims(to) && from.layout == to.layout {
        return Ok(x.into());
    }
    // Memory has room for the bounds.
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
    let room = bits.div_euclid(width) + i64::from(bits % width != 0);
    let length = memory.len() as i64;
    let memory = dynamic::resized(cx, &memory.reshaped(Dims::from_slice(&[length])), &[room])?;
    let elements = if wanted <= width { room * (width / wanted) } else { n };
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
    let mut steps = Vec::new();
    let mut shapes: Vec<Dims> = vec![dims.into()];
    let Some(layout) = layout else { return Ok((steps, shapes)) };
    if !layout.dim_levels.is_empty() || layout.physical_shape.is_some() {
        return Err(cx.unsupported("of a sparse layout"));
    }
    let order: Sizes = layout.minor_to_major.iter().rev().map(|&d| d as usize).collect();
    let mut now: Dims = order.iter().map(|&d| dims[d]).collect();
    let mut push = |step, dims: &Dims| {
        steps.push(step);
        shapes.push(dims.clone());
    };
    push(Step::Permute(order), &now);
    for tile in &layout.tiles {
        if now.len() < tile.len() {
            now.insert_from_slice(0, &vec![1; tile.len() - now.len()]);
            push(Step::Reshape(now.clone()), &now);
        }
        let first = now.len() - tile.len();
        let (mut merged, mut sizes): (Dims, Vec<i64>) = (now[..first].into(), Vec::new());
        let mut product = 1i64;
        for (&n, dim) in now[first..].iter().zip(tile) {
            product = product.checked_mul(n).ok_or_else(|| too_large(cx))?;
            if let TileDim::Size(size) = *dim {
                merged.push(product);
                sizes.push(size);
                product = 1;
            }
        }
        if sizes.iter().any(|&s| s < 1) || matches!(tile.last(), Some(TileDim::Combine)) {
            return Err(cx.unsupported("of such a tile"));
        }
        if merged != now {
            push(Step::Reshape(merged.clone()), &merged);
        }
        let mut padded = merged.clone();
        let (mut split, mut order): (Dims, Sizes) = (merged[..first].into(), (0..first).collect());
        for (d, &size) in sizes.iter().enumerate() {
            let n = merged[first + d];
            let tiles = n.div_euclid(size) + i64::from(n % size != 0);
            padded[first + d] = tiles.checked_mul(size).ok_or_else(|| too_large(cx))?;
            split.extend([tiles, size]);
        }
        order.extend((0..sizes.len()).map(|d| first + 2 * d));
        order.extend((0..sizes.len()).map(|d| first + 2 * d + 1));
        if padded != merged {
            push(Step::Pad(padded.clone()), &padded);
        }
        push(Step::Reshape(split.clone()), &split);
        now = order.iter().map(|&d| split[d]).collect();
        push(Step::Permute(order), &now);
    }
    Ok((steps, shapes))
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
