//! Loops whose state is hard to assign buffers to: arrays updated in place, values that are exchanged, trip
//! counts that depend on data.

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

/// Values that are exchanged in each iteration.
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

/// Arrays of one shape but of wider and narrower types, computed from each other, of the counter, and of
/// splats.
pub(super) fn of_many_types(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    use ElementType::{BF16, F16, F32, S8, S16, S32, U8, U32};
    const TYPES: &[ElementType] = &[U8, S32, BF16, F32, S8, S16, F16, U32];
    const DIMS: &[&[i64]] = &[&[18], &[2, 9], &[64], &[70], &[33], &[3, 40], &[5]];
    let dims = g.choices.pick(DIMS);
    let scalar = ArrayShape::new(g.choices.pick(TYPES), &[]);
    let mut values = vec![g.of_shape(body, &scalar)];
    for _ in 0..2 + g.choices.below(2) {
        let ty = g.choices.pick(TYPES);
        values.push(g.of_shape(body, &ArrayShape::new(ty, dims)));
    }
    let kinds: Vec<usize> = values.iter().map(|_| g.choices.below(4)).collect();
    let count = g.count();
    g.counted(body, &values, count, |g, b, counter, parts| {
        let mut next = vec![parts[0]];
        for (k, &part) in parts.iter().enumerate().skip(1) {
            let ty = g.array(part).element_type;
            let number = g.at(b).convert(parts[0], ty).ok()?;
            let number = super::elementwise::broadcast_to(g, b, number, dims)?;
            next.push(match kinds[k] {
                0 => number,
                1 => {
                    let ramp = Shape::array(count.ty, dims);
                    let ramp = g.at(b).iota(ramp, dims.len() as i64 - 1).ok()?;
                    let counter = super::elementwise::broadcast_to(g, b, counter, dims)?;
                    let ramp = g.plain(b, Opcode::Add, &[ramp, counter])?;
                    let ramp = g.at(b).convert(ramp, ty).ok()?;
                    changed(g, b, ramp, number)
                }
                2 => changed(g, b, part, number),
                _ => {
                    let other = g.at(b).convert(parts[1 + k % (parts.len() - 1)], ty).ok()?;
                    changed(g, b, part, other)
                }
            });
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
