//! Instructions that move data.

use hlo::attrs::{AttrKey, AttrValue, PaddingDim, SliceDim};
use hlo::{ArrayShape, Attrs, ElementType, InstrId, Opcode, Shape};

use smallvec::SmallVec;

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
    use Opcode::{Bitcast, Broadcast, Copy, Reshape, Reverse, Transpose};
    let x = g.any(body);
    let opcode =
        g.opcode(&[Broadcast, Broadcast, Transpose, Reshape, Reverse, Copy, Transpose, Reshape, Bitcast]);
    reshaped(g, body, x, opcode)
}

/// A way of moving elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Transpose,
    Reshape,
    Broadcast,
    Reverse,
    Slice,
    Pad,
    Concatenate,
    DynamicSlice,
    DynamicUpdateSlice,
}

/// A value moved about in some way.
pub(super) fn moved(g: &mut Generator<'_>, body: &mut Body, x: InstrId) -> Option<InstrId> {
    const KINDS: &[Kind] = &[
        Kind::Transpose,
        Kind::Reshape,
        Kind::Broadcast,
        Kind::Reverse,
        Kind::Slice,
        Kind::Pad,
        Kind::Concatenate,
        Kind::DynamicSlice,
        Kind::DynamicUpdateSlice,
        Kind::Transpose,
    ];
    let kind = g.choices.pick(KINDS);
    moved_by(g, body, x, kind)
}

/// A value moved about in this way.
pub(super) fn moved_by(g: &mut Generator<'_>, body: &mut Body, x: InstrId, kind: Kind) -> Option<InstrId> {
    match kind {
        Kind::Transpose => reshaped(g, body, x, Opcode::Transpose),
        Kind::Reshape => reshaped(g, body, x, Opcode::Reshape),
        Kind::Broadcast => reshaped(g, body, x, Opcode::Broadcast),
        Kind::Reverse => reshaped(g, body, x, Opcode::Reverse),
        Kind::Slice => sliced(g, body, x),
        Kind::Pad => padded(g, body, x),
        Kind::Concatenate => joined(g, body, x),
        Kind::DynamicSlice => read(g, body, x),
        Kind::DynamicUpdateSlice => written(g, body, x),
    }
}

fn reshaped(g: &mut Generator<'_>, body: &mut Body, x: InstrId, opcode: Opcode) -> Option<InstrId> {
    use Opcode::{Broadcast, Copy, Reverse, Transpose};
    let shape = g.array(x);
    if opcode == Broadcast {
        let mut dims = shape.dims.to_vec();
        if g.choices.chance(128) {
            // Between dimensions, too.
            let at = g.choices.below(shape.rank() + 1);
            dims.insert(at, g.size());
            let mapping: Vec<i64> = (0..dims.len() as i64).filter(|&d| d != at as i64).collect();
            let attrs = Attrs::new().with(AttrKey::Dimensions, ints(&mapping));
            return g.add_shaped(body, Broadcast, Shape::array(shape.element_type, &dims), &[x], attrs);
        }
        let mut whole: Vec<i64> = (0..g.choices.below(3)).map(|_| g.size()).collect();
        whole.append(&mut dims);
        broadcast_to(g, body, x, &whole)
    } else if opcode == Transpose {
        let attrs = Attrs::new().with(AttrKey::Dimensions, ints(&permutation(g, shape.rank())));
        g.add(body, Transpose, &[x], attrs)
    } else if opcode == Reverse {
        let attrs = Attrs::new().with(AttrKey::Dimensions, ints(&subset(g, shape.rank())));
        g.add(body, Reverse, &[x], attrs)
    } else if opcode == Copy {
        g.plain(body, Copy, &[x])
    } else {
        let dims = refactored(g, &shape);
        g.add_shaped(body, opcode, Shape::array(shape.element_type, &dims), &[x], Attrs::new())
    }
}

/// Dimensions with the same number of elements: factors move between them.
pub(super) fn refactored(g: &mut Generator<'_>, shape: &ArrayShape) -> Vec<i64> {
    let mut left = shape.elements() as i64;
    let mut dims = Vec::new();
    while left > 1 && dims.len() < 4 {
        // The whole first, then pairs of factors.
        let small = (1..=left.isqrt()).filter(|d| left % d == 0);
        let divisors: SmallVec<[i64; 16]> = small.flat_map(|d| [left / d, d]).collect();
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
    sliced(g, body, x)
}

fn sliced(g: &mut Generator<'_>, body: &mut Body, x: InstrId) -> Option<InstrId> {
    let shape = g.array(x);
    let slices: Vec<SliceDim> = shape
        .dims
        .iter()
        .map(|&d| {
            let start = g.choices.int(0, d);
            SliceDim { start, limit: g.choices.int(start, d), stride: g.choices.pick(&[1, 1, 2, 3]) }
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

pub(super) fn concatenate(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let x = g.ranked(body, 1);
    joined(g, body, x)
}

fn joined(g: &mut Generator<'_>, body: &mut Body, x: InstrId) -> Option<InstrId> {
    let shape = g.array(x);
    (shape.rank() > 0).then_some(())?;
    let dimension = g.choices.below(shape.rank());
    let mut parts = vec![x];
    for _ in 0..1 + g.choices.below(3) {
        let mut other = shape.clone();
        if !g.choices.chance(60) {
            other.dims[dimension] = g.choices.int(0, 5);
        }
        parts.push(g.of_shape(body, &other));
    }
    let rotation = g.choices.below(parts.len());
    parts.rotate_left(rotation);
    let attrs = Attrs::new().with(AttrKey::Dimensions, ints(&[dimension as i64]));
    g.add(body, Opcode::Concatenate, &parts, attrs)
}

/// The padding of each dimension: negative numbers slice.
pub(super) fn padding(g: &mut Generator<'_>, rank: usize) -> Vec<PaddingDim> {
    (0..rank)
        .map(|_| PaddingDim {
            low: g.choices.pick(&[0, 1, -1, 2, 3, -2]),
            high: g.choices.pick(&[0, 1, -1, 2, 3, -2]),
            interior: g.choices.pick(&[0, 0, 1, 2]),
        })
        .collect()
}

pub(super) fn pad(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let x = g.any(body);
    padded(g, body, x)
}

fn padded(g: &mut Generator<'_>, body: &mut Body, x: InstrId) -> Option<InstrId> {
    let shape = g.array(x);
    let padding = padding(g, shape.rank());
    let value = g.of_shape(body, &ArrayShape::new(shape.element_type, &[]));
    let attrs = Attrs::new().with(AttrKey::Padding, AttrValue::Padding(padding.into()));
    g.add(body, Opcode::Pad, &[x, value], attrs)
}

/// Scalars of an integer type, some of them out of range.
pub(super) fn starts(g: &mut Generator<'_>, body: &mut Body, n: usize) -> Vec<InstrId> {
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
            // Mostly within, some before and some far behind: as an s8, 200 is negative.
            let value = g.choices.pick(&[0, 1, 2, 3, 0, 1, 2, 4, 5, -1, -2, 6, 9, 33, 100, 200]);
            g.number(body, ty, value)
        })
        .collect()
}

/// Sizes and start indices of a slice, sizes of at least one where there are elements.
fn sizes_and_starts(g: &mut Generator<'_>, body: &mut Body, shape: &ArrayShape) -> (Vec<i64>, Vec<InstrId>) {
    let sizes: Vec<i64> = shape.dims.iter().map(|&d| g.choices.int(d.min(1), d)).collect();
    let starts = g.freely(|g| starts(g, body, sizes.len()));
    (sizes, starts)
}

pub(super) fn dynamic_slice(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let x = g.any(body);
    read(g, body, x)
}

fn read(g: &mut Generator<'_>, body: &mut Body, x: InstrId) -> Option<InstrId> {
    let shape = g.array(x);
    let (sizes, starts) = sizes_and_starts(g, body, &shape);
    built(g.at(body).dynamic_slice(x, &starts, &sizes))
}

pub(super) fn dynamic_update_slice(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let x = g.any(body);
    written(g, body, x)
}

fn written(g: &mut Generator<'_>, body: &mut Body, x: InstrId) -> Option<InstrId> {
    let shape = g.array(x);
    let (sizes, starts) = sizes_and_starts(g, body, &shape);
    let update = g.of_shape(body, &ArrayShape::new(shape.element_type, &sizes));
    built(g.at(body).dynamic_update_slice(x, update, &starts))
}
