//! Instructions that move data.

use hlo::attrs::{AttrKey, AttrValue, PaddingDim, SliceDim};
use hlo::{ArrayShape, Attrs, ElementType, InstrId, Opcode, Shape};

use super::Generator;
use super::body::{Body, built, ints};
use super::elementwise::broadcast_to;

/// A permutation of `0..n`.
pub(super) fn permutation(g: &mut Generator<'_>, n: usize) -> Vec<i64> {
    let mut rest: Vec<i64> = (0..n as i64).collect();
    // The first choice is the last dimension, so that the simplest permutation is a reversal and no identity.
    (0..n).map(|_| rest.remove(rest.len() - 1 - g.choices.below(rest.len()))).collect()
}

/// Some of `0..n`, ascending.
pub(super) fn subset(g: &mut Generator<'_>, n: usize) -> Vec<i64> {
    (0..n as i64).filter(|_| g.choices.chance(110)).collect()
}

pub(super) fn reshape_like(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let x = g.any(body);
    let shape = g.array(x);
    match g.choices.below(6) {
        0 => {
            let mut dims: Vec<i64> = (0..g.choices.below(3)).map(|_| g.size()).collect();
            dims.extend(&shape.dims);
            broadcast_to(g, body, x, &dims)
        }
        1 => {
            // Between dimensions, too.
            let at = g.choices.below(shape.rank() + 1);
            let mut dims = shape.dims.to_vec();
            dims.insert(at, g.size());
            let mapping: Vec<i64> = (0..dims.len() as i64).filter(|&d| d != at as i64).collect();
            let attrs = Attrs::new().with(AttrKey::Dimensions, ints(&mapping));
            g.add_shaped(body, Opcode::Broadcast, Shape::array(shape.element_type, &dims), &[x], attrs)
        }
        2 => {
            let attrs = Attrs::new().with(AttrKey::Dimensions, ints(&permutation(g, shape.rank())));
            g.add(body, Opcode::Transpose, &[x], attrs)
        }
        3 => {
            let dims = refactored(g, &shape);
            let opcode = if g.choices.chance(40) { Opcode::Bitcast } else { Opcode::Reshape };
            g.add_shaped(body, opcode, Shape::array(shape.element_type, &dims), &[x], Attrs::new())
        }
        4 => {
            let attrs = Attrs::new().with(AttrKey::Dimensions, ints(&subset(g, shape.rank())));
            g.add(body, Opcode::Reverse, &[x], attrs)
        }
        _ => g.add(body, Opcode::Copy, &[x], Attrs::new()),
    }
}

/// Dimensions with the same number of elements: factors move between them.
fn refactored(g: &mut Generator<'_>, shape: &ArrayShape) -> Vec<i64> {
    let mut left = shape.elements() as i64;
    let mut dims = Vec::new();
    while left > 1 && dims.len() < 4 {
        let divisors: Vec<i64> = (1..=left).rev().filter(|d| left % d == 0).collect();
        let d = g.choices.pick(&divisors);
        dims.push(d);
        left /= d;
    }
    dims.push(left);
    if g.choices.chance(60) {
        dims.insert(0, 1);
    }
    dims
}

pub(super) fn cut(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let x = g.ranked(body, 1);
    let shape = g.array(x);
    let slices: Vec<SliceDim> = shape
        .dims
        .iter()
        .map(|&d| {
            let start = g.choices.int(0, d);
            SliceDim { start, limit: g.choices.int(start, d), stride: g.choices.int(1, 3) }
        })
        .collect();
    // Mostly not empty.
    if slices.iter().any(|s| s.start == s.limit) && !g.choices.chance(30) {
        let dims: Vec<SliceDim> =
            shape.dims.iter().map(|&d| SliceDim { start: d.min(1), limit: d, stride: 1 }).collect();
        return built(g.at(body).slice(x, &dims));
    }
    built(g.at(body).slice(x, &slices))
}

pub(super) fn join(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let x = g.ranked(body, 1);
    let shape = g.array(x);
    if g.choices.chance(128) {
        let dimension = g.choices.below(shape.rank());
        let mut parts = vec![x];
        for _ in 0..1 + g.choices.below(3) {
            let mut other = shape.clone();
            other.dims[dimension] = g.choices.int(0, 5);
            parts.push(g.of_shape(body, &other));
        }
        let turn = g.choices.below(parts.len());
        parts.rotate_left(turn);
        let attrs = Attrs::new().with(AttrKey::Dimensions, ints(&[dimension as i64]));
        return g.add(body, Opcode::Concatenate, &parts, attrs);
    }
    let padding: Vec<PaddingDim> = shape
        .dims
        .iter()
        .map(|_| PaddingDim {
            low: g.choices.int(-2, 3),
            high: g.choices.int(-2, 3),
            interior: g.choices.int(0, 2),
        })
        .collect();
    let value = g.of_shape(body, &ArrayShape::new(shape.element_type, &[]));
    g.add(
        body,
        Opcode::Pad,
        &[x, value],
        Attrs::new().with(AttrKey::Padding, AttrValue::Padding(padding.into())),
    )
}

/// Scalars of an integer type, some of them out of range.
fn starts(g: &mut Generator<'_>, body: &mut Body, n: usize) -> Vec<InstrId> {
    let ty = g.choices.pick(&[
        ElementType::S32,
        ElementType::S64,
        ElementType::U32,
        ElementType::S8,
        ElementType::U8,
    ]);
    (0..n)
        .map(|_| {
            if g.choices.chance(60) {
                return g.of_shape(body, &ArrayShape::new(ty, &[]));
            }
            let low = if ty.is_signed_integer() { -2 } else { 0 };
            let value = g.choices.int(low, 6);
            g.number(body, ty, value)
        })
        .collect()
}

pub(super) fn dynamic(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    if g.choices.chance(30) {
        return dynamic_size(g, body);
    }
    let x = g.any(body);
    let shape = g.array(x);
    let sizes: Vec<i64> = shape.dims.iter().map(|&d| g.choices.int(d.min(1), d)).collect();
    let starts = starts(g, body, sizes.len());
    if g.choices.chance(128) {
        return built(g.at(body).dynamic_slice(x, &starts, &sizes));
    }
    let update = g.of_shape(body, &ArrayShape::new(shape.element_type, &sizes));
    built(g.at(body).dynamic_update_slice(x, update, &starts))
}

/// A dimension made dynamic, used, reduced away (what lies behind its size must not count) or asked for its size.
fn dynamic_size(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let x = g.value(body, |a| a.rank() >= 1 && a.element_type.is_integer());
    let shape = g.array(x);
    let dimension = g.choices.below(shape.rank());
    let value = g.choices.int(0, shape.dims[dimension]);
    let size = g.number(body, ElementType::S32, value);
    let attrs = Attrs::new().with(AttrKey::Dimensions, ints(&[dimension as i64]));
    let dynamic = g.add(body, Opcode::SetDimensionSize, &[x, size], attrs.clone())?;
    if g.choices.chance(128)
        && let Some(negated) = g.add(body, Opcode::Negate, &[dynamic], Attrs::new())
    {
        let ty = shape.element_type;
        let zero = g.number(body, ty, 0);
        let add = hlo::builder::scalar_region(&mut g.module, "add", Opcode::Add, ty).ok()?;
        return built(g.at(body).reduce(negated, zero, &[dimension as i64], add));
    }
    g.add(body, Opcode::GetDimensionSize, &[dynamic], attrs)
}
