//! Loops whose state is hard to keep apart: arrays updated in place, values that swap places, iterations that data count.

use hlo::attrs::Direction;
use hlo::{ArrayShape, ElementType, InstrId, Opcode, Shape};

use super::Generator;
use super::body::Body;
use super::control::{Count, Limit};

/// Elementwise steps within a loop, without regard to what else there is.
fn changed(g: &mut Generator<'_>, body: &Body, x: InstrId, y: InstrId) -> InstrId {
    const OPCODES: &[Opcode] =
        &[Opcode::Add, Opcode::Maximum, Opcode::Subtract, Opcode::Multiply, Opcode::Xor, Opcode::Minimum];
    let opcode = g.choices.pick(OPCODES);
    g.plain(body, opcode, &[x, y]).unwrap_or(x)
}

/// Rows of an array, or of itself, are written one after the other into an array that the loop carries.
pub(super) fn in_place(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let x = g.value(body, |a| a.rank() >= 1 && a.dims[0] >= 1);
    let shape = g.array(x);
    let rows = *shape.dims.first().filter(|&&d| d >= 1)?;
    let buffer = g.of_shape(body, &shape);
    let mut count = g.count();
    if let Limit::Constant(trips) = &mut count.limit
        && count.start == 0
    {
        *trips = rows.min(*trips);
    }
    let (from_itself, neighbour) = (g.choices.chance(100), g.choices.chance(100));
    let mut sizes: Vec<i64> = shape.dims.to_vec();
    sizes[0] = 1;
    g.counted(body, &[x, buffer], count, |g, b, counter, parts| {
        let zero = g.number(b, count.ty, 0);
        let mut at = vec![counter];
        at.resize(sizes.len(), zero);
        let source = if from_itself { parts[1] } else { parts[0] };
        let read = if neighbour {
            // The row before, which the last iteration wrote.
            let one = g.number(b, count.ty, 1);
            let mut before = at.clone();
            before[0] = g.plain(b, Opcode::Subtract, &[counter, one])?;
            before
        } else {
            at.clone()
        };
        let row = g.at(b).dynamic_slice(source, &read, &sizes).ok()?;
        let other = g.at(b).dynamic_slice(parts[0], &at, &sizes).ok()?;
        let row = changed(g, b, row, other);
        let written = g.at(b).dynamic_update_slice(parts[1], row, &at).ok()?;
        Some(vec![parts[0], written])
    })
}

/// Values that change places in each iteration.
pub(super) fn swapping(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let x = g.any(body);
    let shape = g.array(x);
    let mut values = vec![x];
    for _ in 0..1 + g.choices.below(2) {
        values.push(g.of_shape(body, &shape));
    }
    let count = g.count();
    let mixed = g.choices.chance(128);
    g.counted(body, &values, count, |g, b, _, parts| {
        let mut next = parts.to_vec();
        next.rotate_left(1);
        if mixed {
            next[0] = changed(g, b, parts[0], parts[1]);
        }
        Some(next)
    })
}

/// As many iterations as data says.
pub(super) fn counted_by_data(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let x = g.any(body);
    let limit = g.of_shape(body, &ArrayShape::new(ElementType::S32, &[]));
    let (low, high) = (g.number(body, ElementType::S32, 0), g.number(body, ElementType::S32, 5));
    let limit = g.plain(body, Opcode::Clamp, &[low, limit, high])?;
    let shape = Shape::Array(g.array(x).without_layout());
    let step = g.nested_apart("step", std::slice::from_ref(&shape), Some(&shape));
    let count = Count {
        ty: ElementType::S32,
        start: 0,
        step: 1,
        direction: Direction::Lt,
        limit: Limit::Data(limit),
        last: false,
    };
    g.counted(body, &[x], count, |g, b, counter, parts| match step {
        Some(step) => Some(vec![g.at(b).call(step, parts).ok()?]),
        None => {
            let array = g.array(parts[0]);
            let n = g.at(b).convert(counter, array.element_type).ok()?;
            let n = super::elementwise::broadcast_to(g, b, n, &array.dims)?;
            Some(vec![changed(g, b, parts[0], n)])
        }
    })
}
