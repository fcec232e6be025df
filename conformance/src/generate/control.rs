//! Instructions that run other computations.

use hlo::attrs::{AttrKey, AttrValue, Direction};
use hlo::{ArrayShape, Attrs, ComputationId, ElementType, InstrId, Opcode, Shape};

use super::Generator;
use super::body::Body;

impl Generator<'_> {
    /// A computation of these parameters that gives `result`, or what it likes. `None` if computations nest too deep.
    pub(super) fn nested(
        &mut self,
        name: &str,
        parameters: &[Shape],
        result: Option<&Shape>,
    ) -> Option<ComputationId> {
        if self.nesting >= self.limits.nesting {
            return None;
        }
        self.nesting += 1;
        let before = self.want.take();
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
        self.want = before;
        Some(id)
    }

    /// The same, for a computation that devices may run in different numbers: none meet in it.
    pub(super) fn nested_apart(
        &mut self,
        name: &str,
        parameters: &[Shape],
        result: Option<&Shape>,
    ) -> Option<ComputationId> {
        let before = std::mem::replace(&mut self.uniform, false);
        let id = self.nested(name, parameters, result);
        self.uniform = before;
        id
    }

    /// One to three values and their shapes.
    pub(super) fn arguments(&mut self, body: &mut Body) -> (Vec<InstrId>, Vec<Shape>) {
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

/// A loop of a few iterations, counted by the first or last element of its state.
pub(super) fn while_loop(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let (values, shapes) = g.arguments(body);
    // The body gets the values and the counter as a call would.
    let mut inner = shapes.clone();
    inner.insert(0, Shape::scalar(ElementType::S32));
    let step = g.nested("step", &inner, Some(&Shape::tuple(shapes.iter().cloned())))?;
    let trips = g.choices.int(0, 4);
    let last = g.either(Opcode::While, 60);
    let iterate = |g: &mut Generator<'_>, b: &mut Body, counter: InstrId, parts: &[InstrId]| {
        let operands: Vec<InstrId> = std::iter::once(counter).chain(parts.iter().copied()).collect();
        let called = g.at(b).call(step, &operands).ok()?;
        (0..parts.len() as i64).map(|i| g.element(b, called, i)).collect()
    };
    g.counted(body, &values, Trips::Constant(trips), last, iterate)
}

/// How often a loop runs.
#[derive(Clone, Copy)]
pub(super) enum Trips {
    Constant(i64),
    /// As often as an s32 scalar says, which is a part of the state.
    Data(InstrId),
}

/// What a loop does with its counter and values: the next values.
type Step<'s> = &'s dyn Fn(&mut Generator<'_>, &mut Body, InstrId, &[InstrId]) -> Option<Vec<InstrId>>;

impl Generator<'_> {
    /// A loop over some values with a counter that goes up by one, before them or behind.
    pub(super) fn counted(
        &mut self,
        body: &mut Body,
        values: &[InstrId],
        trips: Trips,
        counter_last: bool,
        step: impl Fn(&mut Generator<'_>, &mut Body, InstrId, &[InstrId]) -> Option<Vec<InstrId>>,
    ) -> Option<InstrId> {
        let step: Step<'_> = &step;
        let mut carried = values.to_vec();
        if let Trips::Data(limit) = trips {
            carried.push(limit);
        }
        let zero = self.number(body, ElementType::S32, 0);
        let n = carried.len() as i64;
        let at = if counter_last { n } else { 0 };
        let place = |i: i64| if counter_last { i } else { i + 1 };
        carried.insert(at as usize, zero);
        let shapes: Vec<Shape> =
            carried.iter().map(|&v| self.module.instr(v).shape.without_layout()).collect();
        let state = Shape::tuple(shapes);

        let condition = Body::with_parameters(&mut self.module, "condition", std::slice::from_ref(&state));
        let whole = condition.values()[0];
        let count = self.element(&condition, whole, at)?;
        let limit = match trips {
            Trips::Constant(trips) => self.number(&condition, ElementType::S32, trips),
            Trips::Data(_) => self.element(&condition, whole, place(n - 1))?,
        };
        let attrs = Attrs::new().with(AttrKey::Direction, AttrValue::Direction(Direction::Lt));
        self.add(&condition, Opcode::Compare, &[count, limit], attrs)?;

        let mut iterate = Body::with_parameters(&mut self.module, "iterate", std::slice::from_ref(&state));
        let whole = iterate.values()[0];
        let counter = self.element(&iterate, whole, at)?;
        let parts: Vec<InstrId> =
            (0..n).map(|i| self.element(&iterate, whole, place(i))).collect::<Option<_>>()?;
        let mut next = self.freely(|g| step(g, &mut iterate, counter, &parts[..values.len()]))?;
        next.extend(&parts[values.len()..]);
        let one = self.number(&iterate, ElementType::S32, 1);
        let up = self.plain(&iterate, Opcode::Add, &[counter, one])?;
        next.insert(at as usize, up);
        let root = self.at(&iterate).tuple(&next).ok()?;
        self.module.set_root(iterate.id, root);
        self.prune(iterate.id);

        let init = self.at(body).tuple(&carried).ok()?;
        let id = self.at(body).while_loop(init, condition.id, iterate.id).ok()?;
        self.unpack(body, id)
    }
}

/// Branches that share their operands, as a tuple or as they are.
pub(super) fn conditional(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let (values, shapes) = g.arguments(body);
    let result = g.shape();
    let result = Shape::tuple([Shape::Array(result), shapes[0].clone()]);
    let by_index = g.choices.chance(110);
    let alone = g.choices.chance(80);
    let parameter = if alone { shapes[0].clone() } else { Shape::tuple(shapes.iter().cloned()) };
    let branches: Vec<ComputationId> = (0..if by_index { 3 } else { 2 })
        .map(|_| g.nested_apart("branch", std::slice::from_ref(&parameter), Some(&result)))
        .collect::<Option<_>>()?;
    let selector = if by_index { ElementType::S32 } else { ElementType::Pred };
    let selector = g.of_shape(body, &ArrayShape::new(selector, &[]));
    let argument = if alone { values[0] } else { g.at(body).tuple(&values).ok()? };
    let operands = vec![argument; branches.len()];
    let id = g.at(body).conditional(selector, &branches, &operands).ok()?;
    g.unpack(body, id)
}
