//! Sources, tuples, and instructions that hand values on.

use hlo::attrs::sharding::{DeviceAssignment, Sharding, ShardingKind, TileSharding};
use hlo::attrs::{AttrKey, AttrValue, Domain};
use hlo::{Attrs, ElementType, InstrId, Opcode, Shape, TypeClass};

use super::Generator;
use super::body::Body;

pub(super) fn iota(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let rank = 1 + g.choices.below(3);
    let ty = g.element_type();
    (ty.class() != TypeClass::Pred).then_some(())?;
    let shape = Shape::array(ty, &g.dims(rank));
    let dimension = AttrValue::Int(g.choices.below(rank) as i64);
    g.add_shaped(body, Opcode::Iota, shape, &[], Attrs::new().with(AttrKey::IotaDimension, dimension))
}

pub(super) fn constant(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let shape = g.shape();
    Some(g.constant(body, &shape))
}

/// A new parameter, where there may be one.
pub(super) fn parameter(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let few = g.module.computation(body.id).parameters().len() < 12;
    (body.is_open() && few).then_some(())?;
    let shape = g.shape();
    let x = g.at(body).parameter("p", Shape::Array(shape));
    body.add(x);
    g.plain(body, Opcode::Copy, &[x])
}

/// A tuple of tuples, taken apart again.
pub(super) fn nested_tuple(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let (a, b, c) = (g.any(body), g.any(body), g.any(body));
    let inner = g.at(body).tuple(&[a, b]).ok()?;
    let outer = if g.choices.chance(80) { [inner, c] } else { [inner, inner] };
    let mut whole = g.at(body).tuple(&outer).ok()?;
    if g.choices.chance(80) {
        whole = g.plain(body, Opcode::OptBarrier, &[whole])?;
    }
    let first = g.element(body, whole, 0)?;
    let index = g.choices.int(0, 1);
    g.element(body, first, index)
}

pub(super) fn barrier(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let (values, _) = g.arguments(body);
    if let [only] = *values {
        return g.plain(body, Opcode::OptBarrier, &[only]);
    }
    let tuple = g.at(body).tuple(&values).ok()?;
    let id = g.plain(body, Opcode::OptBarrier, &[tuple])?;
    g.unpack(body, id)
}

pub(super) fn dependency(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let x = g.any(body);
    let mut token = g.plain(body, Opcode::AfterAll, &[])?;
    if g.choices.chance(60) {
        token = g.plain(body, Opcode::AfterAll, &[token])?;
    }
    g.plain(body, Opcode::AddDependency, &[x, token])
}

pub(super) fn copy_async(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let x = g.any(body);
    let shape = Shape::Array(g.array(x));
    let start = Shape::tuple([shape.clone(), shape, Shape::scalar(ElementType::U32)]);
    let id = g.add_shaped(body, Opcode::CopyStart, start, &[x], Attrs::new())?;
    g.plain(body, Opcode::CopyDone, &[id])
}

/// A computation that runs asynchronously, with steps in between.
pub(super) fn async_chain(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let (values, shapes) = g.arguments(body);
    let callee = g.nested("async", &shapes, None)?;
    let done = g.run_async(body, callee, &values)?;
    g.unpack(body, done)
}

impl Generator<'_> {
    /// Start, updates and done of a computation.
    pub(super) fn run_async(
        &mut self,
        body: &Body,
        callee: hlo::ComputationId,
        values: &[InstrId],
    ) -> Option<InstrId> {
        let shapes = values.iter().map(|&v| self.module.instr(v).shape.without_layout());
        let shapes = Shape::tuple(shapes.collect::<Vec<_>>());
        let result = self.module.instr(self.module.root(callee)).shape.without_layout();
        let start = Shape::tuple([shapes, result.clone()]);
        let attrs = Attrs::new().with(AttrKey::Calls, AttrValue::Computation(callee));
        let mut id = self.add_shaped(body, Opcode::AsyncStart, start.clone(), values, attrs)?;
        let update = matches!(self.want, Some(w) if w.opcode == Opcode::AsyncUpdate);
        let updates = if update { 1 } else { self.choices.below(3) };
        for _ in 0..updates {
            id = self.add_shaped(body, Opcode::AsyncUpdate, start.clone(), &[id], Attrs::new())?;
        }
        self.add_shaped(body, Opcode::AsyncDone, result, &[id], Attrs::new())
    }
}

pub(super) fn domain(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let x = g.any(body);
    let on = |device| {
        let devices = DeviceAssignment::Maximal(device);
        Sharding::Single(Box::new(ShardingKind::Tile(TileSharding { devices, ..TileSharding::default() })))
    };
    let domain = Domain { kind: "sharding".into(), entry: on(0), exit: on(1) };
    g.add(body, Opcode::Domain, &[x], Attrs::new().with(AttrKey::Domain, AttrValue::Domain(Box::new(domain))))
}
