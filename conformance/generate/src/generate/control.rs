//! Instructions that run other computations.

use hlo::attrs::{AttrKey, AttrValue, Direction};
use hlo::{ArrayShape, Attrs, ComputationId, ElementType, InstrId, Opcode, Shape};

use super::Generator;
use super::body::Body;

impl Generator<'_> {
    /// A computation of these parameters that gives `result`, or what it likes. `None` if computations nest
    /// too deep.
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

/// A loop of a few iterations.
pub(super) fn while_loop(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let (values, shapes) = g.arguments(body);
    let count = g.count();
    // The body gets the values and the counter as a call would.
    let mut inner = shapes.clone();
    inner.insert(0, Shape::scalar(count.ty));
    let step = g.nested("step", &inner, Some(&Shape::tuple(shapes.iter().cloned())))?;
    g.counted(body, &values, count, |g, b, counter, parts| {
        let operands: Vec<InstrId> = std::iter::once(counter).chain(parts.iter().copied()).collect();
        let called = g.at(b).call(step, &operands).ok()?;
        (0..parts.len() as i64).map(|i| g.element(b, called, i)).collect()
    })
}

/// The induction variable of a loop.
#[derive(Clone, Copy, Debug)]
pub(super) struct Count {
    /// Type of the counter.
    pub(super) ty: ElementType,
    pub(super) start: i64,
    /// Added in each iteration.
    pub(super) step: i64,
    /// It goes on while the counter is so to the limit.
    pub(super) direction: Direction,
    pub(super) limit: Limit,
    /// Whether the counter is the last of the state; else the first.
    pub(super) last: bool,
}

/// The limit that a counter is compared with.
#[derive(Clone, Copy, Debug)]
pub(super) enum Limit {
    Constant(i64),
    /// A scalar of the counter's type, which is a part of the state.
    Data(InstrId),
}

/// What a loop does with its counter and values: the next values.
type Step<'s> = &'s dyn Fn(&mut Generator<'_>, &mut Body, InstrId, &[InstrId]) -> Option<Vec<InstrId>>;

impl Generator<'_> {
    /// A few iterations: mostly up by one, else in greater steps that may pass the limit, or down.
    pub(super) fn count(&mut self) -> Count {
        use ElementType::{S8, S32, S64, U8, U32};
        let trips = self.choices.pick(&[2, 1, 3, 4, 0, 5]);
        let ty = self.choices.pick(&[S32, S32, S32, U32, S64, S8, U8, S32]);
        let last = self.either(Opcode::While, 60);
        let up =
            Count { ty, start: 0, step: 1, direction: Direction::Lt, limit: Limit::Constant(trips), last };
        match self.choices.below(8) {
            0..4 => up,
            4 => {
                let step = self.choices.int(2, 3);
                let limit = (trips * step - self.choices.int(0, step - 1)).max(0);
                Count { step, limit: Limit::Constant(limit), ..up }
            }
            5 => Count { start: trips, step: -1, direction: Direction::Gt, limit: Limit::Constant(0), ..up },
            6 => Count { start: 3, direction: Direction::Le, limit: Limit::Constant(2 + trips), ..up },
            _ => Count { direction: Direction::Ne, ..up },
        }
    }

    /// A loop over some values with a counter before them or behind.
    pub(super) fn counted(
        &mut self,
        body: &mut Body,
        values: &[InstrId],
        count: Count,
        step: impl Fn(&mut Generator<'_>, &mut Body, InstrId, &[InstrId]) -> Option<Vec<InstrId>>,
    ) -> Option<InstrId> {
        let step: Step<'_> = &step;
        let mut carried = values.to_vec();
        if let Limit::Data(limit) = count.limit {
            carried.push(limit);
        }
        let first = self.number(body, count.ty, count.start);
        let n = carried.len() as i64;
        let at = if count.last { n } else { 0 };
        let element_index = |i: i64| if count.last { i } else { i + 1 };
        carried.insert(at as usize, first);
        let shapes: Vec<Shape> =
            carried.iter().map(|&v| self.module.instr(v).shape.without_layout()).collect();
        let state = Shape::tuple(shapes);

        let condition = Body::with_parameters(&mut self.module, "condition", std::slice::from_ref(&state));
        let whole = condition.values()[0];
        let counter = self.element(&condition, whole, at)?;
        let limit = match count.limit {
            Limit::Constant(limit) => self.number(&condition, count.ty, limit),
            Limit::Data(_) => self.element(&condition, whole, element_index(n - 1))?,
        };
        let attrs = Attrs::new().with(AttrKey::Direction, AttrValue::Direction(count.direction));
        self.add(&condition, Opcode::Compare, &[counter, limit], attrs)?;

        let mut iterate = Body::with_parameters(&mut self.module, "iterate", std::slice::from_ref(&state));
        let whole = iterate.values()[0];
        let counter = self.element(&iterate, whole, at)?;
        let parts: Vec<InstrId> =
            (0..n).map(|i| self.element(&iterate, whole, element_index(i))).collect::<Option<_>>()?;
        let mut next = self.freely(|g| step(g, &mut iterate, counter, &parts[..values.len()]))?;
        next.extend(&parts[values.len()..]);
        let by = self.number(&iterate, count.ty, count.step.abs());
        let opcode = if count.step < 0 { Opcode::Subtract } else { Opcode::Add };
        let moved = self.plain(&iterate, opcode, &[counter, by])?;
        next.insert(at as usize, moved);
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
