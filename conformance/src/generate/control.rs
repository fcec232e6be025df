//! Instructions that run other computations.

use hlo::attrs::{AttrKey, AttrValue, Direction, FusionKind};
use hlo::{ArrayShape, Attrs, ComputationId, ElementType, InstrId, Opcode, Shape};

use super::Generator;
use super::body::Body;

impl Generator<'_> {
    /// A computation of these parameters that gives `result`, or what it likes. `None` if computations nest too deep.
    fn nested(&mut self, name: &str, parameters: &[Shape], result: Option<&Shape>) -> Option<ComputationId> {
        if self.nesting >= self.limits.nesting {
            return None;
        }
        self.nesting += 1;
        let mut body = Body::with_parameters(&mut self.module, name, parameters);
        for p in body.values().to_vec() {
            if self.module.instr(p).shape.as_tuple().is_some()
                && let Some(last) = self.unpack(&mut body, p)
            {
                body.add(last);
            }
        }
        let steps = 1 + self.choices.below(5);
        self.grow(&mut body, steps);
        let id = match result {
            Some(shape) => self.finish_with(body, shape),
            None => self.finish(body),
        };
        self.nesting -= 1;
        Some(id)
    }

    /// One to three values and their shapes.
    fn arguments(&mut self, body: &mut Body) -> (Vec<InstrId>, Vec<Shape>) {
        let n = 1 + self.choices.below(3);
        let values: Vec<InstrId> = (0..n).map(|_| self.any(body)).collect();
        let shapes = values.iter().map(|&v| Shape::Array(self.array(v))).collect();
        (values, shapes)
    }
}

pub(super) fn call(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let (values, shapes) = g.arguments(body);
    let callee = g.nested("callee", &shapes, None)?;
    let id = g.at(body).call(callee, &values).ok()?;
    g.unpack(body, id)
}

pub(super) fn fusion(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let (values, shapes) = g.arguments(body);
    let callee = g.nested("fused", &shapes, None)?;
    let attrs = Attrs::new()
        .with(AttrKey::FusionKind, AttrValue::FusionKind(FusionKind::Loop))
        .with(AttrKey::Calls, AttrValue::Computation(callee));
    let id = g.add(body, Opcode::Fusion, &values, attrs.clone()).or_else(|| {
        let shape = g.module.instr(g.module.root(callee)).shape.clone();
        g.add_shaped(body, Opcode::Fusion, shape, &values, attrs)
    })?;
    g.unpack(body, id)
}

/// A loop of a few iterations, counted by the first element of its state.
pub(super) fn while_loop(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let (values, shapes) = g.arguments(body);
    let counter = Shape::scalar(ElementType::S32);
    let state = Shape::tuple(std::iter::once(counter.clone()).chain(shapes.iter().cloned()));

    let condition = Body::with_parameters(&mut g.module, "condition", std::slice::from_ref(&state));
    let count = g.element(&condition, condition.values()[0], 0)?;
    let trips = g.choices.int(0, 4);
    let limit = g.number(&condition, ElementType::S32, trips);
    let attrs = Attrs::new().with(AttrKey::Direction, AttrValue::Direction(Direction::Lt));
    g.add(&condition, Opcode::Compare, &[count, limit], attrs)?;

    // The body gets the values and the counter as a call would, and adds one to the counter itself.
    let mut inner = shapes.clone();
    inner.insert(0, counter);
    let step = g.nested("step", &inner, Some(&Shape::tuple(shapes.iter().cloned())))?;
    let iterate = Body::with_parameters(&mut g.module, "iterate", std::slice::from_ref(&state));
    let whole = iterate.values()[0];
    let mut parts = Vec::new();
    for i in 0..=shapes.len() as i64 {
        parts.push(g.element(&iterate, whole, i)?);
    }
    let called = g.at(&iterate).call(step, &parts).ok()?;
    let one = g.number(&iterate, ElementType::S32, 1);
    let mut next = vec![g.add(&iterate, Opcode::Add, &[parts[0], one], Attrs::new())?];
    for i in 0..shapes.len() as i64 {
        next.push(g.element(&iterate, called, i)?);
    }
    g.at(&iterate).tuple(&next).ok()?;

    let zero = g.number(body, ElementType::S32, 0);
    let first: Vec<InstrId> = std::iter::once(zero).chain(values).collect();
    let init = g.at(body).tuple(&first).ok()?;
    let id = g.at(body).while_loop(init, condition.id, iterate.id).ok()?;
    g.unpack(body, id)
}

pub(super) fn conditional(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let (values, shapes) = g.arguments(body);
    let result = g.shape();
    let result = Shape::tuple([Shape::Array(result), shapes[0].clone()]);
    let by_index = g.choices.chance(110);
    let branches: Vec<ComputationId> = (0..if by_index { 3 } else { 2 })
        .map(|_| g.nested("branch", &[Shape::tuple(shapes.iter().cloned())], Some(&result)))
        .collect::<Option<_>>()?;
    let selector = if by_index { ElementType::S32 } else { ElementType::Pred };
    let selector = g.of_shape(body, &ArrayShape::new(selector, &[]));
    let argument = g.at(body).tuple(&values).ok()?;
    let operands = vec![argument; branches.len()];
    let id = g.at(body).conditional(selector, &branches, &operands).ok()?;
    g.unpack(body, id)
}

pub(super) fn pass_through(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let (values, _) = g.arguments(body);
    match g.choices.below(4) {
        0 => {
            let tuple = g.at(body).tuple(&values).ok()?;
            let id = g.add(body, Opcode::OptBarrier, &[tuple], Attrs::new())?;
            g.unpack(body, id)
        }
        1 => {
            let token = g.add(body, Opcode::AfterAll, &[], Attrs::new())?;
            g.add(body, Opcode::AddDependency, &[values[0], token], Attrs::new())
        }
        2 => {
            let shape = Shape::Array(g.array(values[0]));
            let context = Shape::scalar(ElementType::U32);
            let start = Shape::tuple([shape.clone(), shape, context]);
            let id = g.add_shaped(body, Opcode::CopyStart, start, &values[..1], Attrs::new())?;
            g.add(body, Opcode::CopyDone, &[id], Attrs::new())
        }
        _ => {
            let shapes: Vec<Shape> = values.iter().map(|&v| Shape::Array(g.array(v))).collect();
            let callee = g.nested("async", &shapes, None)?;
            let result = g.module.instr(g.module.root(callee)).shape.clone();
            let start = Shape::tuple([Shape::tuple(shapes), result.clone()]);
            let attrs = Attrs::new().with(AttrKey::Calls, AttrValue::Computation(callee));
            let id = g.add_shaped(body, Opcode::AsyncStart, start, &values, attrs.clone())?;
            let done = g.add_shaped(body, Opcode::AsyncDone, result, &[id], attrs)?;
            g.unpack(body, done)
        }
    }
}
