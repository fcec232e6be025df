//! Instructions that apply a computation to elements.

use hlo::attrs::{AttrKey, AttrValue, Direction, Window, WindowDim};
use hlo::builder::ComputationBuilder;
use hlo::{ArrayShape, Attrs, ComputationId, ElementType, InstrId, Opcode, Shape};

use super::Generator;
use super::body::{Body, ints};
use super::movement::subset;

/// The combiner of a reducer.
const FOLDS: &[Opcode] =
    &[Opcode::Add, Opcode::Maximum, Opcode::Minimum, Opcode::Multiply, Opcode::And, Opcode::Or, Opcode::Xor];

impl Generator<'_> {
    /// A computation `(accumulators..., values...) -> accumulators` of scalars of these types.
    pub(super) fn reducer(&mut self, types: &[ElementType]) -> Option<ComputationId> {
        let shapes: Vec<Shape> = types.iter().chain(types).map(|&ty| Shape::scalar(ty)).collect();
        let body = Body::with_parameters(&mut self.module, "fold", &shapes);
        let parameters = body.values().to_vec();
        let n = types.len();
        let mut results = Vec::new();
        // An arg-max keeps a pair together; other folds take each by itself.
        let together = (n > 1 && self.choices.chance(100))
            .then(|| {
                let attrs = Attrs::new().with(AttrKey::Direction, AttrValue::Direction(Direction::Gt));
                self.add(&body, Opcode::Compare, &[parameters[0], parameters[n]], attrs)
            })
            .flatten();
        for i in 0..n {
            let pair = [parameters[i], parameters[n + i]];
            let result = match together {
                Some(p) => self.add(&body, Opcode::Select, &[p, pair[0], pair[1]], Attrs::new()),
                None => self.fold(&body, pair),
            };
            results.push(result.unwrap_or(pair[1]));
        }
        let root = match *results {
            [one] => one,
            _ => self.at(&body).tuple(&results).ok()?,
        };
        self.module.set_root(body.id, root);
        Some(body.id)
    }

    /// A fold of two scalars: mostly one opcode, sometimes something that is no known operation.
    pub(super) fn fold(&mut self, body: &Body, pair: [InstrId; 2]) -> Option<InstrId> {
        let swapped = if self.choices.chance(40) { [pair[1], pair[0]] } else { pair };
        let one = (0..6).find_map(|_| {
            let opcode = self.choices.pick(FOLDS);
            self.add(body, opcode, &swapped, Attrs::new())
        })?;
        if !self.choices.chance(16) {
            return Some(one);
        }
        let opcode = self.choices.pick(&[Opcode::Subtract, Opcode::Maximum, Opcode::Add]);
        self.add(body, opcode, &[one, pair[1]], Attrs::new()).or(Some(one))
    }

    /// Scalars to start a fold of these types with.
    pub(super) fn inits(&mut self, body: &mut Body, types: &[ElementType]) -> Vec<InstrId> {
        types
            .iter()
            .map(|&ty| {
                // Mostly no identity of the fold: it has to be counted once.
                if self.choices.chance(100) {
                    self.of_shape(body, &ArrayShape::new(ty, &[]))
                } else {
                    self.number(body, ty, 0)
                }
            })
            .collect()
    }

    /// A value and, sometimes, more of the same dimensions.
    fn several(
        &mut self,
        body: &mut Body,
        rank: usize,
        odds: u8,
    ) -> (ArrayShape, Vec<InstrId>, Vec<ElementType>) {
        let x = self.ranked(body, rank);
        let shape = self.array(x);
        let mut values = vec![x];
        while self.choices.chance(odds) && values.len() < 4 {
            let ty =
                self.choices.pick(&[ElementType::S32, shape.element_type, ElementType::F32, ElementType::U8]);
            values.push(self.of_shape(body, &shape.with_type(ty)));
        }
        let types = values.iter().map(|&v| self.array(v).element_type).collect();
        (shape, values, types)
    }
}

/// A value reduced over some of its dimensions.
pub(super) fn reduced(g: &mut Generator<'_>, body: &mut Body, x: InstrId) -> Option<InstrId> {
    let shape = g.array(x);
    let dims = subset(g, shape.rank());
    let types = [shape.element_type];
    let init = g.inits(body, &types)[0];
    let region = g.reducer(&types)?;
    g.at(body).reduce(x, init, &dims, region).ok()
}

pub(super) fn reduce(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let (shape, mut operands, types) = g.several(body, 1, 50);
    let mut dims = subset(g, shape.rank());
    // Over nothing now and then: then the initial value still counts.
    if dims.is_empty() && !g.choices.chance(60) {
        dims.push(g.choices.below(shape.rank()) as i64);
    }
    operands.extend(g.inits(body, &types));
    let region = g.reducer(&types)?;
    let attrs = Attrs::new()
        .with(AttrKey::Dimensions, ints(&dims))
        .with(AttrKey::ToApply, AttrValue::Computation(region));
    let id = g.add(body, Opcode::Reduce, &operands, attrs)?;
    g.unpack(body, id)
}

/// A window over these dimensions.
fn window(g: &mut Generator<'_>, dims: &[i64], dilated: bool) -> Window {
    let dims = dims
        .iter()
        .map(|&d| {
            let mut w = WindowDim { size: g.choices.int(1, d.clamp(1, 4)), ..WindowDim::default() };
            if g.choices.chance(110) {
                w.stride = g.choices.int(1, 3);
                w.pad_low = g.choices.int(0, 2);
                w.pad_high = g.choices.int(0, 2);
            }
            if dilated && g.choices.chance(50) {
                w.base_dilation = g.choices.int(1, 3);
                w.window_dilation = g.choices.int(1, 3);
                w.pad_low -= g.choices.int(0, 2);
                w.pad_high -= g.choices.int(0, 2);
            }
            w
        })
        .collect();
    Window { dims }
}

/// A value reduced over windows.
pub(super) fn windowed(g: &mut Generator<'_>, body: &mut Body, x: InstrId) -> Option<InstrId> {
    let shape = g.array(x);
    let types = [shape.element_type];
    let window = window(g, &shape.dims, true);
    let init = g.inits(body, &types)[0];
    let attrs = Attrs::new()
        .with(AttrKey::Window, AttrValue::Window(Box::new(window)))
        .with(AttrKey::ToApply, AttrValue::Computation(g.reducer(&types)?));
    g.add(body, Opcode::ReduceWindow, &[x, init], attrs)
}

pub(super) fn reduce_window(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let (shape, mut operands, types) = g.several(body, 1, 40);
    let window = window(g, &shape.dims, true);
    operands.extend(g.inits(body, &types));
    let region = g.reducer(&types)?;
    let attrs = Attrs::new()
        .with(AttrKey::Window, AttrValue::Window(Box::new(window)))
        .with(AttrKey::ToApply, AttrValue::Computation(region));
    let id = g.add(body, Opcode::ReduceWindow, &operands, attrs)?;
    g.unpack(body, id)
}

pub(super) fn select_and_scatter(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let x = g.ranked(body, 1);
    let shape = g.array(x);
    let ty = shape.element_type;
    let window = window(g, &shape.dims, false);
    let source: Vec<i64> = shape
        .dims
        .iter()
        .zip(&window.dims)
        .map(|(&d, w)| (d + w.pad_low + w.pad_high - w.size) / w.stride + 1)
        .collect();
    if source.iter().any(|&d| d < 0) {
        return None;
    }
    let source = ArrayShape::new(ty, &source);
    g.fits(&Shape::Array(source.clone())).then_some(())?;
    let source = g.of_shape(body, &source);
    let directions: &[Direction] =
        if ty.is_complex() { &[Direction::Eq] } else { &[Direction::Ge, Direction::Gt, Direction::Le] };
    let direction = g.choices.pick(directions);
    let select = hlo::builder::comparator(&mut g.module, "pick", direction, &[ty]).ok()?;
    let scatter = g.reducer(&[ty])?;
    let init = g.inits(body, &[ty])[0];
    let attrs = Attrs::new()
        .with(AttrKey::Window, AttrValue::Window(Box::new(window)))
        .with(AttrKey::Select, AttrValue::Computation(select))
        .with(AttrKey::Scatter, AttrValue::Computation(scatter));
    g.add(body, Opcode::SelectAndScatter, &[x, source, init], attrs)
}

/// `(input slice, carry) -> (output slice, carry)` along one dimension.
pub(super) fn scan(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let x = g.ranked(body, 1);
    let shape = g.array(x);
    let dimension = g.choices.below(shape.rank());
    let mut slice = shape.clone();
    slice.dims.remove(dimension);
    let inner = Shape::Array(slice.clone());
    let step = Body::with_parameters(&mut g.module, "step", &[inner.clone(), inner]);
    let (value, carry) = (step.values()[0], step.values()[1]);
    let next = g.fold(&step, [carry, value])?;
    let out = if g.choices.chance(100) { g.fold(&step, [carry, value])? } else { next };
    let root = g.at(&step).tuple(&[out, next]).ok()?;
    g.module.set_root(step.id, root);
    let init = g.of_shape(body, &slice);
    let attrs = Attrs::new()
        .with(AttrKey::Dimensions, ints(&[dimension as i64]))
        .with(AttrKey::IsReverse, AttrValue::Bool(g.choices.chance(80)))
        .with(AttrKey::NumCarries, AttrValue::Int(1))
        .with(AttrKey::ToApply, AttrValue::Computation(step.id));
    let id = g.add(body, Opcode::Scan, &[x, init], attrs)?;
    g.unpack(body, id)
}

pub(super) fn sort(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let (shape, operands, types) = g.several(body, 1, 110);
    let dimension = g.choices.below(shape.rank()) as i64;
    let direction = g.choices.pick(&[Direction::Lt, Direction::Gt]);
    let total = !g.choices.chance(30);
    let comparator = comparator(g, direction, &types, total)?;
    // Ties between equal keys are in the order of nothing but a stable sort; of one operand in total order
    // they are not observable.
    let seen = operands.len() > 1 || !total || types[0].is_complex();
    let stable = seen || g.choices.chance(128);
    let id = g.at(body).sort(&operands, dimension, comparator, stable).ok()?;
    g.unpack(body, id)
}

pub(super) fn comparator(
    g: &mut Generator<'_>,
    direction: Direction,
    types: &[ElementType],
    total: bool,
) -> Option<ComputationId> {
    let mut b = ComputationBuilder::new(&mut g.module, "order");
    let pairs = types.iter().flat_map(|&ty| [("a", ty), ("b", ty)]);
    let parameters: Vec<InstrId> = pairs.map(|(name, ty)| b.parameter(name, Shape::scalar(ty))).collect();
    let mut keys = [parameters[0], parameters[1]];
    if types[0].is_complex() {
        for key in &mut keys {
            *key = b.unary(Opcode::Real, *key).ok()?;
        }
    }
    let mut attrs = Attrs::new().with(AttrKey::Direction, AttrValue::Direction(direction));
    if total && (types[0].is_float() || types[0].is_complex()) {
        attrs.set(AttrKey::CompareType, AttrValue::CompareType(hlo::attrs::CompareType::TotalOrder));
    }
    b.instr(Opcode::Compare, &keys, attrs).ok()?;
    Some(b.finish())
}

pub(super) fn topk(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let x = g.value(body, |a| a.rank() >= 1 && !a.element_type.is_complex());
    let last = *g.array(x).dims.last()?;
    let attrs = Attrs::new()
        .with(AttrKey::K, AttrValue::Int(g.choices.int(0, last)))
        .with(AttrKey::Largest, AttrValue::Bool(!g.choices.chance(100)));
    let id = g.add(body, Opcode::Topk, &[x], attrs)?;
    g.unpack(body, id)
}

pub(super) fn map(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let (mut shape, mut operands, mut types) = g.several(body, 0, 128);
    let alike = g.choices.chance(100);
    if alike {
        operands.truncate(1);
        operands.push(g.of_shape(body, &shape));
        shape = g.array(operands[0]);
        types = vec![shape.element_type; 2];
    }
    let parameters: Vec<Shape> = types.iter().map(|&ty| Shape::scalar(ty)).collect();
    let mut applied = Body::with_parameters(&mut g.module, "apply", &parameters);
    if let (true, &[a, b]) = (alike, applied.values()) {
        // Which is which matters.
        let opcode = g.choices.pick(&[Opcode::Subtract, Opcode::Divide, Opcode::Power]);
        if let Some(id) = g.plain(&applied, opcode, &[a, b]) {
            applied.add(id);
        }
    }
    let steps = 1 + g.choices.below(4);
    for _ in 0..steps {
        let family = g.choices.pick(&[
            super::elementwise::unary as super::Family,
            super::elementwise::binary,
            super::elementwise::compare,
            super::elementwise::select,
            super::elementwise::convert,
        ]);
        if let Some(id) = g.freely(|g| family(g, &mut applied))
            && g.module.instr(id).shape.is_scalar()
        {
            applied.add(id);
        }
    }
    let root = *applied.values().last()?;
    g.module.set_root(applied.id, root);
    let all: Vec<i64> = (0..shape.rank() as i64).collect();
    let attrs = Attrs::new()
        .with(AttrKey::Dimensions, ints(&all))
        .with(AttrKey::ToApply, AttrValue::Computation(applied.id));
    g.add(body, Opcode::Map, &operands, attrs)
}
