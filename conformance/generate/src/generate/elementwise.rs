//! Elementwise instructions.

use std::sync::LazyLock;

use hlo::attrs::{AttrKey, AttrValue, CompareType, Direction};
use hlo::opcode::Arity;
use hlo::{ArrayShape, Attrs, ElementType, InstrId, Opcode, Shape};

use super::Generator;
use super::body::{Body, ints};

/// The elementwise opcodes of that many operands that need no attributes.
fn plain(operands: usize) -> Vec<Opcode> {
    let simple = |op: &Opcode| {
        let needs_none = op.attrs().iter().all(|a| !a.required);
        op.flags().elementwise && op.arity() == Arity::Exactly(operands) && needs_none
    };
    let mut opcodes: Vec<Opcode> = Opcode::ALL.iter().copied().filter(simple).collect();
    opcodes.retain(|&op| op != Opcode::Convert && op != Opcode::StochasticConvert && op != Opcode::Complex);
    opcodes
}

static UNARY: LazyLock<Vec<Opcode>> = LazyLock::new(|| plain(1));
static BINARY: LazyLock<Vec<Opcode>> = LazyLock::new(|| plain(2));

pub(super) fn unary(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let x = g.any(body);
    (0..4).find_map(|_| {
        let opcode = g.opcode(&UNARY);
        g.plain(body, opcode, &[x])
    })
}

pub(super) fn binary(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let x = g.any(body);
    let shape = g.array(x);
    let y = g.of_shape(body, &shape);
    (0..4).find_map(|_| {
        let opcode = g.opcode(&BINARY);
        g.plain(body, opcode, &[x, y])
    })
}

/// A comparison of two values; complex numbers are equal or not.
fn compared(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let x = g.any(body);
    let shape = g.array(x);
    let y = g.of_shape(body, &shape);
    let directions =
        if shape.element_type.is_complex() { &[Direction::Eq, Direction::Ne][..] } else { Direction::ALL };
    let direction = g.choices.pick(directions);
    let mut attrs = Attrs::new().with(AttrKey::Direction, AttrValue::Direction(direction));
    if shape.element_type.is_float() && g.choices.chance(60) {
        attrs.set(AttrKey::CompareType, AttrValue::CompareType(CompareType::TotalOrder));
    }
    g.add(body, Opcode::Compare, &[x, y], attrs)
}

pub(super) fn compare(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    compared(g, body)
}

pub(super) fn select(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let p = if g.choices.chance(60) {
        let x = g.any(body);
        let dims = g.array(x).dims;
        g.of_shape(body, &ArrayShape::new(ElementType::Pred, &dims))
    } else {
        compared(g, body)?
    };
    let other = g.element_type();
    let chosen = ArrayShape::new(other, &g.array(p).dims);
    let (a, b) = (g.of_shape(body, &chosen), g.of_shape(body, &chosen));
    if g.choices.chance(24) {
        let one = g.of_shape(body, &ArrayShape::new(ElementType::Pred, &[]));
        return g.plain(body, Opcode::Select, &[one, a, b]);
    }
    g.plain(body, Opcode::Select, &[p, a, b])
}

pub(super) fn convert(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let x = g.any(body);
    let dims = g.array(x).dims;
    let ty = match g.want.and_then(|w| w.to) {
        Some(to) => to,
        None => g.freely(Generator::element_type),
    };
    g.add_shaped(body, Opcode::Convert, Shape::array(ty, &dims), &[x], Attrs::new())
}

/// Bits of another type; a dimension comes or goes where widths differ.
pub(super) fn bitcast_convert(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let to = match g.want.and_then(|w| w.to) {
        Some(to) => to,
        None => g.freely(Generator::element_type),
    };
    let wanted = g.want.and_then(|w| w.ty);
    let wide = i64::from(to.bits());
    let x = g.value(body, |a| {
        let from = i64::from(a.element_type.bits());
        from >= wide || a.dims.last().is_some_and(|&d| d * from == wide)
    });
    let mut shape = g.array(x);
    let mut x = x;
    let from = i64::from(shape.element_type.bits());
    if wanted.is_some() && from < wide && shape.dims.last().is_none_or(|&d| d * from != wide) {
        // The value at hand does not do: another one.
        shape = ArrayShape::new(shape.element_type, &[3, wide / from]);
        x = g.of_shape(body, &shape);
    }
    let mut dims = shape.dims.to_vec();
    if from > wide {
        dims.push(from / wide);
    } else if from < wide {
        (dims.pop()? * from == wide).then_some(())?;
    }
    g.add_shaped(body, Opcode::BitcastConvert, Shape::array(to, &dims), &[x], Attrs::new())
}

pub(super) fn clamp(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let x = g.any(body);
    let shape = g.array(x);
    let bound = if g.choices.chance(128) { ArrayShape::new(shape.element_type, &[]) } else { shape };
    let (low, high) = (g.of_shape(body, &bound), g.of_shape(body, &bound));
    g.plain(body, Opcode::Clamp, &[low, x, high])
}

pub(super) fn reduce_precision(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let x = g.value(body, |a| a.element_type.is_float());
    let attrs = Attrs::new()
        .with(AttrKey::ExponentBits, AttrValue::Int(g.choices.int(1, 11)))
        .with(AttrKey::MantissaBits, AttrValue::Int(g.choices.int(0, 23)));
    g.add(body, Opcode::ReducePrecision, &[x], attrs)
}

pub(super) fn complex(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let x = g.value(body, |a| matches!(a.element_type, ElementType::F32 | ElementType::F64));
    let shape = g.array(x);
    let y = g.of_shape(body, &shape);
    g.plain(body, Opcode::Complex, &[x, y])
}

pub(super) fn stochastic_convert(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let x = g.value(body, |a| a.element_type.is_float());
    let shape = g.array(x);
    let random = ElementType::from_name(&format!("u{}", shape.element_type.bits()))?;
    let bits = g.of_shape(body, &ArrayShape::new(random, &shape.dims));
    let to = g.choices.pick(&[ElementType::S8, ElementType::S32, ElementType::S16, ElementType::S64]);
    let shape = Shape::array(to, &shape.dims);
    g.add_shaped(body, Opcode::StochasticConvert, shape, &[x, bits], Attrs::new())
}

/// Narrow arithmetic: through a wider type and back, as quantized programs do.
pub(super) fn through_wider(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let x = g.value(body, |a| a.element_type.is_float() && a.element_type.bits() < 32);
    let shape = g.array(x);
    let wide = g.at(body).convert(x, ElementType::F32).ok()?;
    let y = g.of_shape(body, &shape.with_type(ElementType::F32));
    let opcode = g.choices.pick(&[Opcode::Add, Opcode::Multiply, Opcode::Maximum, Opcode::Divide]);
    let z = g.plain(body, opcode, &[wide, y])?;
    g.at(body).convert(z, shape.element_type).ok()
}

/// Broadcasts a value over leading dimensions, so that its own are the last.
pub(super) fn broadcast_to(g: &mut Generator<'_>, body: &Body, x: InstrId, dims: &[i64]) -> Option<InstrId> {
    let shape = g.array(x);
    let offset = dims.len().checked_sub(shape.rank())? as i64;
    let mapping: Vec<i64> = (0..shape.rank() as i64).map(|i| i + offset).collect();
    let attrs = Attrs::new().with(AttrKey::Dimensions, ints(&mapping));
    g.add_shaped(body, Opcode::Broadcast, Shape::array(shape.element_type, dims), &[x], attrs)
}

/// A splat of these dimensions.
pub(super) fn filled(
    g: &mut Generator<'_>,
    body: &Body,
    ty: ElementType,
    value: i64,
    dims: &[i64],
) -> Option<InstrId> {
    let number = g.number(body, ty, value);
    if dims.is_empty() { Some(number) } else { broadcast_to(g, body, number, dims) }
}
