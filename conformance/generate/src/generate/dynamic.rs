//! Dimensions whose size the run says.
//!
//! Elements beyond the size of a dimension (padding) must never count: arrays with such dimensions are used,
//! padded to their bounds again, reduced or asked for their size, so that it would show.

use hlo::attrs::{AttrKey, AttrValue};
use hlo::{ArrayShape, Attrs, ElementType, InstrId, Opcode, Shape};

use super::Generator;
use super::body::{Body, built, ints};

pub(super) fn sizes(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    if g.either(Opcode::DynamicReshape, 50) {
        return dynamic_reshape(g, body);
    }
    let x = g.ranked(body, 1);
    let shape = g.array(x);
    let dimension = g.choices.below(shape.rank());
    let size = size(g, body, shape.dims[dimension]);
    let attrs = Attrs::new().with(AttrKey::Dimensions, ints(&[dimension as i64]));
    let mut dynamic = g.add(body, Opcode::SetDimensionSize, &[x, size], attrs.clone())?;
    if g.either(Opcode::GetDimensionSize, 60) {
        return g.add(body, Opcode::GetDimensionSize, &[dynamic], attrs);
    }
    if g.choices.chance(128) {
        let opcode = g.choices.pick(&[Opcode::Negate, Opcode::Copy, Opcode::Abs, Opcode::Not]);
        dynamic = g.plain(body, opcode, &[dynamic]).unwrap_or(dynamic);
    }
    if g.choices.chance(80) {
        let opcode = g.choices.pick(&[Opcode::Add, Opcode::Maximum, Opcode::Multiply]);
        dynamic = g.plain(body, opcode, &[dynamic, dynamic]).unwrap_or(dynamic);
    }
    used(g, body, dynamic, dimension as i64)
}

/// A size of a dimension: a constant, or computed from data and bounded.
fn size(g: &mut Generator<'_>, body: &mut Body, bound: i64) -> InstrId {
    let value = g.choices.int(0, bound);
    let size = g.number(body, ElementType::S32, value);
    if !g.choices.chance(60) {
        return size;
    }
    let data = g.of_shape(body, &ArrayShape::new(ElementType::S32, &[]));
    let zero = g.number(body, ElementType::S32, 0);
    let most = g.number(body, ElementType::S32, bound);
    g.plain(body, Opcode::Clamp, &[zero, data, most]).unwrap_or(size)
}

/// Something static computed from an array with a dynamic dimension.
fn used(g: &mut Generator<'_>, body: &mut Body, dynamic: InstrId, dimension: i64) -> Option<InstrId> {
    let shape = g.array(dynamic);
    let ty = shape.element_type;
    if g.choices.chance(128) {
        let add = hlo::builder::scalar_region(&mut g.module, "add", Opcode::Add, ty).ok()?;
        let zero = g.number(body, ty, 0);
        return built(g.at(body).reduce(dynamic, zero, &[dimension], add));
    }
    pad_to_static(g, body, dynamic)
}

/// The custom call that fills an array with zeros up to its bounds, and gives its sizes.
pub(super) fn pad_to_static(g: &mut Generator<'_>, body: &mut Body, dynamic: InstrId) -> Option<InstrId> {
    let shape = g.array(dynamic);
    let sizes = (0..shape.rank()).map(|_| Shape::scalar(ElementType::S32));
    let padded = Shape::array(shape.element_type, &shape.dims);
    let result = Shape::tuple(std::iter::once(padded).chain(sizes).collect::<Vec<_>>());
    let attrs = Attrs::new().with(AttrKey::CustomCallTarget, AttrValue::Str("PadToStatic".into()));
    let id = g.add_shaped(body, Opcode::CustomCall, result, &[dynamic], attrs)?;
    g.unpack(body, id)
}

/// An array reshaped to a bounded dynamic shape: its sizes are the bounds, or the first is smaller, as the
/// operand's is.
fn dynamic_reshape(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let x = g.ranked(body, 1);
    let shape = g.array(x);
    let dims = super::movement::refactored(g, &shape);
    let mut result = ArrayShape::new(shape.element_type, &dims);
    result.dynamic = (1 << dims.len()) - 1;
    let mut operands = vec![x];
    for &d in &dims {
        operands.push(g.number(body, ElementType::S32, d));
    }
    let id = g.add_shaped(body, Opcode::DynamicReshape, Shape::Array(result), &operands, Attrs::new())?;
    pad_to_static(g, body, id)
}
