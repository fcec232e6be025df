//! Elementwise instructions.

use hlo::attrs::{AttrKey, AttrValue, CompareType, Direction};
use hlo::opcode::Arity;
use hlo::{ArrayShape, Attrs, ElementType, InstrId, Opcode, Shape};

use super::Generator;
use super::body::{Body, ints};

/// The elementwise opcodes of so many operands that need no attributes.
fn plain(operands: usize) -> Vec<Opcode> {
    Opcode::ALL
        .iter()
        .copied()
        .filter(|op| {
            op.flags().elementwise
                && op.arity() == Arity::Exactly(operands)
                && op.attrs().iter().all(|a| !a.required)
        })
        .filter(|&op| op != Opcode::Convert && op != Opcode::StochasticConvert)
        .collect()
}

pub(super) fn unary(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let x = g.any(body);
    let opcodes = plain(1);
    (0..6).find_map(|_| {
        let opcode = g.choices.pick(&opcodes);
        g.add(body, opcode, &[x], Attrs::new())
    })
}

pub(super) fn binary(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let x = g.any(body);
    let shape = g.array(x);
    let y = g.of_shape(body, &shape);
    let opcodes = plain(2);
    (0..6).find_map(|_| {
        let opcode = g.choices.pick(&opcodes);
        g.add(body, opcode, &[x, y], Attrs::new())
    })
}

pub(super) fn compare_and_select(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let x = g.any(body);
    let shape = g.array(x);
    let y = g.of_shape(body, &shape);
    let direction = g.choices.pick(Direction::ALL);
    let mut attrs = Attrs::new().with(AttrKey::Direction, AttrValue::Direction(direction));
    if shape.element_type.is_float() && g.choices.chance(60) {
        attrs.set(AttrKey::CompareType, AttrValue::CompareType(CompareType::TotalOrder));
    }
    let compared = g.add(body, Opcode::Compare, &[x, y], attrs)?;
    if g.choices.chance(80) {
        return Some(compared);
    }
    let other = g.element_type();
    let chosen = ArrayShape::new(other, &shape.dims);
    let (a, b) = (g.of_shape(body, &chosen), g.of_shape(body, &chosen));
    g.add(body, Opcode::Select, &[compared, a, b], Attrs::new())
}

pub(super) fn convert(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let x = g.any(body);
    let shape = g.array(x);
    let ty = g.element_type();
    if g.choices.chance(80) {
        return bitcast_convert(g, body, x, &shape, ty);
    }
    g.add_shaped(body, Opcode::Convert, Shape::array(ty, &shape.dims), &[x], Attrs::new())
}

fn bitcast_convert(
    g: &mut Generator<'_>,
    body: &Body,
    x: InstrId,
    shape: &ArrayShape,
    ty: ElementType,
) -> Option<InstrId> {
    let (from, to) = (i64::from(shape.element_type.bits()), i64::from(ty.bits()));
    let mut dims = shape.dims.to_vec();
    if from > to {
        dims.push(from / to);
    } else if from < to {
        (dims.pop()? * from == to).then_some(())?;
    }
    g.add_shaped(body, Opcode::BitcastConvert, Shape::array(ty, &dims), &[x], Attrs::new())
}

pub(super) fn other(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    match g.choices.below(5) {
        0 => {
            let x = g.value(body, |a| !a.element_type.is_complex());
            let shape = g.array(x);
            let bound = if g.choices.chance(128) { ArrayShape::new(shape.element_type, &[]) } else { shape };
            let (low, high) = (g.of_shape(body, &bound), g.of_shape(body, &bound));
            g.add(body, Opcode::Clamp, &[low, x, high], Attrs::new())
        }
        1 => {
            let x = g.value(body, |a| a.element_type.is_float());
            let attrs = Attrs::new()
                .with(AttrKey::ExponentBits, AttrValue::Int(g.choices.int(1, 11)))
                .with(AttrKey::MantissaBits, AttrValue::Int(g.choices.int(0, 23)));
            g.add(body, Opcode::ReducePrecision, &[x], attrs)
        }
        2 => {
            let x = g.value(body, |a| matches!(a.element_type, ElementType::F32 | ElementType::F64));
            let shape = g.array(x);
            let y = g.of_shape(body, &shape);
            g.add(body, Opcode::Complex, &[x, y], Attrs::new())
        }
        3 => {
            let x = g.value(body, |a| a.element_type.is_float());
            let shape = g.array(x);
            let random = match shape.element_type.bits() {
                8 => ElementType::U8,
                16 => ElementType::U16,
                32 => ElementType::U32,
                64 => ElementType::U64,
                _ => return None,
            };
            let bits = g.of_shape(body, &ArrayShape::new(random, &shape.dims));
            let to = g.choices.pick(&[ElementType::S8, ElementType::S32, ElementType::S16, ElementType::S64]);
            g.add_shaped(
                body,
                Opcode::StochasticConvert,
                Shape::array(to, &shape.dims),
                &[x, bits],
                Attrs::new(),
            )
        }
        _ => {
            // Narrow arithmetic: through a wider type and back, as quantized programs do.
            let x = g.value(body, |a| a.element_type.is_float() && a.element_type.bits() < 32);
            let shape = g.array(x);
            let wide = g.add_shaped(
                body,
                Opcode::Convert,
                Shape::array(ElementType::F32, &shape.dims),
                &[x],
                Attrs::new(),
            )?;
            let y = g.of_shape(body, &shape.with_type(ElementType::F32));
            let opcode = g.choices.pick(&[Opcode::Add, Opcode::Multiply, Opcode::Maximum, Opcode::Divide]);
            let z = g.add(body, opcode, &[wide, y], Attrs::new())?;
            g.add_shaped(
                body,
                Opcode::Convert,
                Shape::array(shape.element_type, &shape.dims),
                &[z],
                Attrs::new(),
            )
        }
    }
}

/// Broadcasts a value over leading dimensions, so that its own are the last.
pub(super) fn broadcast_to(g: &mut Generator<'_>, body: &Body, x: InstrId, dims: &[i64]) -> Option<InstrId> {
    let shape = g.array(x);
    let offset = dims.len().checked_sub(shape.rank())? as i64;
    let mapping: Vec<i64> = (0..shape.rank() as i64).map(|i| i + offset).collect();
    let attrs = Attrs::new().with(AttrKey::Dimensions, ints(&mapping));
    g.add_shaped(body, Opcode::Broadcast, Shape::array(shape.element_type, dims), &[x], attrs)
}
