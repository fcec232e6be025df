//! Products of what each iteration of a loop takes from an array with what is the same in every iteration, for many iterations at once: a step of a recurrent
//! network takes its input's product from there. Few results are computed before the loop, many for some iterations at a time: the loop becomes a loop
//! over blocks of iterations, whose body computes a block's products and then runs the iterations.
//!
//! The terms of each element are the same in the same order, and the index is clamped to as many places.
//!
//! **Invariant:** as many iterations are made as before, each of the same state. What is computed before the loop takes no more memory than [`WHOLE`], what blocks
//! give no more than [`LITTLE`] or a [`SHARE`]th of what the loop holds without it, and never more than [`BLOCK`].

use hlo::attrs::{AttrKey, AttrValue, Attrs, Direction};
use hlo::builder::ComputationBuilder;
use hlo::{ComputationId, ElementType, InstrId, Module, Opcode, Shape};

use super::PassCx;
use super::edit::{Edit, ints};
use super::facts::integer;
use super::loop_state::{Loop, each_loop};
use super::loops::{Counter, Next, element, is_invariant, parts, trip_count, wrapped};
use hlo_library::sizes;

/// The most bytes of all products together that are computed before a loop: more leave the cache before they are read.
const WHOLE: i64 = 1 << 20;
/// The most bytes of the products of a block.
const BLOCK: i64 = 1 << 18;
/// The bytes of the products of a block that nobody misses.
const LITTLE: i64 = 1 << 16;
/// What the loop holds without them, by what the products of a block may take where that is more.
const SHARE: i64 = 32;
/// A block of fewer iterations is not worth a loop of its own.
const FEWEST: i64 = 4;

pub(super) fn batch(module: &mut Module, cx: &mut PassCx<'_>) -> u64 {
    each_loop(module, |module, l| {
        let Some(iterations) = trip_count(module, l.id).and_then(|n| i64::try_from(n).ok()) else { return 0 };
        let dots = module.instructions(l.body).filter(|&id| module.instr(id).opcode == Opcode::Dot);
        let mut products: Vec<Product> =
            dots.filter_map(|dot| Product::of(module, l, dot, iterations)).collect();
        let total = |products: &[Product]| {
            products.iter().map(|p| p.bytes.saturating_mul(p.places)).fold(0, i64::saturating_add)
        };
        let blocks = (total(&products) > sizes::from(WHOLE))
            .then(|| Blocks::of(module, l, &products, iterations))
            .flatten();
        if blocks.is_none() {
            while total(&products) > sizes::from(WHOLE) {
                products.pop();
            }
        }
        products.retain(|_| cx.fuel.take());
        match blocks {
            Some(blocks) if !products.is_empty() => blocks.run(module, l, &products),
            Some(_) | None => products.iter().try_for_each(|p| p.whole(module, l)),
        }
        .expect("invariant: all shapes were looked at");
        products.len() as u64
    })
}

/// `dot(reshape(dynamic-slice(inputs, index, 0, ...)), weights)`.
struct Product {
    dot: InstrId,
    /// Elements of the loop's state.
    inputs: i64,
    weights: i64,
    /// Scalar in the body.
    index: InstrId,
    /// How many there are in `inputs`.
    places: i64,
    /// Of the result of an iteration.
    bytes: i64,
}

impl Product {
    /// Only where the loop makes about as many iterations as there are places.
    fn of(module: &Module, l: &Loop<'_>, dot: InstrId, iterations: i64) -> Option<Product> {
        let instr = module.instr(dot);
        let &[left, right] = instr.operands() else { return None };
        let leaf = |id: InstrId| {
            let index = element(module, l.in_body, id)??;
            is_invariant(module, l.body, index).then_some(index)
        };
        let weights = leaf(right)?;
        let reshape = module.instr(left);
        let slice = module.instr(*reshape.operands().first().filter(|_| reshape.opcode == Opcode::Reshape)?);
        let (&whole, indices) =
            slice.operands().split_first().filter(|_| slice.opcode == Opcode::DynamicSlice)?;
        let inputs = leaf(whole)?;
        let (from, taken) = (module.instr(whole).shape.as_array()?, reshape.shape.as_array()?);
        let (&places, rest) = from.dims.split_first()?;
        let index = *indices.first()?;
        let sizes = slice.attrs.ints(AttrKey::DynamicSliceSizes)?;
        let plain = [AttrKey::LhsBatchDims, AttrKey::RhsBatchDims]
            .iter()
            .all(|&key| instr.attrs.ints_or_empty(key).is_empty())
            && instr.attrs.get(AttrKey::SparsityConfig).is_none()
            && instr.attrs.get(AttrKey::Sharding).is_none()
            && !l.survey.pinned.contains(&dot);
        let bytes = Shape::Array(instr.shape.as_array()?.without_layout()).checked_bytes()?;
        let fits = sizes.first() == Some(&1)
            && sizes.get(1..) == Some(rest)
            && taken.dims[..] == *rest
            && taken.element_type == from.element_type
            && module.instr(index).shape.is_scalar()
            && iterations >= places - places / 4
            && places > 1;
        (plain && fits).then_some(Product { dot, inputs, weights, index, places, bytes })
    }

    /// The product of so many places at once: its shape and attributes.
    fn of_many(&self, module: &Module, count: i64) -> Option<(Shape, Attrs)> {
        let dot = module.instr(self.dot);
        let result = dot.shape.as_array()?;
        let mut attrs = dot.attrs.clone();
        let contracting: Vec<i64> =
            attrs.ints_or_empty(AttrKey::LhsContractingDims).iter().map(|d| d + 1).collect();
        attrs.set(AttrKey::LhsContractingDims, ints(&contracting));
        Some((Shape::array(result.element_type, &prefixed(count, &result.dims)), attrs))
    }

    /// The products of all places, before the loop.
    fn whole(&self, module: &mut Module, l: &Loop<'_>) -> Option<()> {
        let operands = [l.first(module, self.inputs)?, l.first(module, self.weights)?];
        let (shape, attrs) = self.of_many(module, self.places)?;
        let all = Edit::before(module, l.survey, l.id).shaped(Opcode::Dot, shape, &operands, attrs)?;
        let all = *l.carry(module, &[all])?.first()?;
        self.becomes_one_of(Edit::before(module, l.survey, self.dot), all, self.index)
    }

    /// In the body, one of many products takes the place of the product.
    fn becomes_one_of(&self, mut e: Edit<'_>, many: InstrId, index: InstrId) -> Option<()> {
        let dims = e.array(self.dot)?.dims.clone();
        let zero = e.scalar_bits(e.instr(index).shape.element_type()?, 0);
        let mut operands = vec![many, index];
        operands.resize(dims.len() + 2, zero);
        let attrs = Attrs::new().with(AttrKey::DynamicSliceSizes, ints(&prefixed(1, &dims)));
        let one = e.add(Opcode::DynamicSlice, &operands, attrs)?;
        let one = e.reshape(one, &dims)?;
        e.finish(one);
        Some(())
    }
}

fn prefixed(count: i64, dims: &[i64]) -> Vec<i64> {
    std::iter::once(count).chain(dims.iter().copied()).collect()
}

/// Turns in blocks of so many.
struct Blocks {
    iterations: i64,
    length: i64,
    /// The places of each product.
    places: Vec<Places>,
}

/// The place that a product takes in the first iteration; in each iteration after that, the next one.
struct Places {
    first: i64,
    down: bool,
}

impl Blocks {
    /// If the iterations can be divided, and every product takes one place after the other.
    fn of(module: &Module, l: &Loop<'_>, products: &[Product], iterations: i64) -> Option<Blocks> {
        let [condition, _] = parts(module, l.id)?;
        let only_asks = |id: InstrId| {
            module.instr(id).opcode == Opcode::Parameter || l.survey.effects.removable(module, id)
        };
        let counter = Counter::of(module, l.id).filter(|_| module.instructions(condition).all(only_asks))?;
        let bytes = products.iter().map(|p| p.bytes).fold(0, i64::saturating_add);
        let held = module.instr(l.id).shape.checked_bytes()?;
        let room = sizes::from(LITTLE).max(held / SHARE).min(sizes::from(BLOCK));
        let most = (room / bytes.max(1)).min(iterations / 2);
        let length = (FEWEST..=most).rev().find(|n| iterations % n == 0)?;
        let places = products.iter().map(|p| Places::of(module, l, p, &counter, iterations));
        Some(Blocks { iterations, length, places: places.collect::<Option<_>>()? })
    }

    /// The loop becomes one over blocks, whose body runs a loop over the iterations of a block with what was the body.
    fn run(&self, module: &mut Module, l: &Loop<'_>, products: &[Product]) -> Option<()> {
        let old = module.instr(l.id).shape.as_tuple()?.to_vec();
        let [condition, _] = parts(module, l.id)?;
        let many = products.iter().map(|p| p.of_many(module, self.length)).collect::<Option<Vec<_>>>()?;
        let iteration = Shape::scalar(ElementType::S64);
        let more: Vec<Shape> =
            many.iter().map(|(shape, _)| shape.clone()).chain([iteration.clone()]).collect();
        self.of_iteration(module, l, products, &more)?;
        let of_turns = Shape::tuple(old.iter().chain(&more).cloned());
        let of_blocks = Shape::tuple(old.into_iter().chain([iteration]));
        let in_block = counts_to(module, condition, &of_turns, self.length)?;
        let goes_on = counts_to(module, condition, &of_blocks, self.iterations)?;
        let block = self.of_block(module, (in_block, l.body), of_blocks, products.iter().zip(many))?;
        let none = Edit::before(module, l.survey, l.id).scalar_bits(ElementType::S64, 0);
        l.begin(module, &[none])?;
        let attrs = &mut module.instr_mut(l.id).attrs;
        attrs.set(AttrKey::Condition, AttrValue::Computation(goes_on));
        attrs.set(AttrKey::Body, AttrValue::Computation(block));
        // What XLA says there of the number of iterations.
        attrs.remove(AttrKey::BackendConfig);
        module.remove_computation(condition);
        follow(module, l.body, &[in_block, goes_on, block]);
        Some(())
    }

    /// What was the body takes `more` beside what it had: the products of its block, of each of which it uses one, and its iteration in the block.
    fn of_iteration(
        &self,
        module: &mut Module,
        l: &Loop<'_>,
        products: &[Product],
        more: &[Shape],
    ) -> Option<()> {
        let inside = l.extend(module, more)?;
        let (&now, inside) = inside.split_last()?;
        for ((p, places), &many) in products.iter().zip(&self.places).zip(inside) {
            let mut e = Edit::before(module, l.survey, p.dot);
            let index = if places.down {
                let last = e.scalar_bits(ElementType::S64, u128::try_from(self.length - 1).ok()?);
                e.binary(Opcode::Subtract, last, now)?
            } else {
                now
            };
            p.becomes_one_of(e, many, index)?;
        }
        let mut e = Edit::before(module, l.survey, l.root);
        let one = e.scalar_bits(ElementType::S64, 1);
        let next = e.binary(Opcode::Add, now, one)?;
        let last = module.instr(l.root).operands().len() - 1;
        module.set_operand(l.root, last, next);
        Some(())
    }

    /// The body of the loop over blocks: of a state whose last element counts the iterations before, products, and the loop over iterations of which condition and body
    /// are given.
    fn of_block<'p>(
        &self,
        module: &mut Module,
        (condition, body): (ComputationId, ComputationId),
        state: Shape,
        products: impl Iterator<Item = (&'p Product, (Shape, Attrs))>,
    ) -> Option<ComputationId> {
        let count = state.as_tuple()?.len() as i64 - 1;
        let name = module.computation(body).name.to_string();
        let mut b = ComputationBuilder::new(module, &name);
        let state = b.parameter("state", state);
        let mut elements = (0..count).map(|i| b.get(state, i)).collect::<Result<Vec<_>, _>>().ok()?;
        let before = b.get(state, count).ok()?;
        let mut computed = Vec::with_capacity(self.places.len());
        for ((p, (shape, attrs)), places) in products.zip(&self.places) {
            let element = |i: i64| elements.get(usize::try_from(i).ok()?).copied();
            let operands =
                [places.block(&mut b, element(p.inputs)?, before, self.length)?, element(p.weights)?];
            computed.push(b.instr_with_shape(Opcode::Dot, shape, &operands, attrs).ok()?);
        }
        elements.extend(computed);
        elements.push(b.scalar(0i64));
        let init = b.tuple(&elements).ok()?;
        let iterations = b.while_loop(init, condition, body).ok()?;
        let mut next = (0..count).map(|i| b.get(iterations, i)).collect::<Result<Vec<_>, _>>().ok()?;
        let length = b.scalar(self.length);
        next.push(b.binary(Opcode::Add, before, length).ok()?);
        b.tuple(&next).ok()?;
        Some(b.finish())
    }
}

impl Places {
    /// If the product takes one place after the other, all of which there are and the index's type has.
    fn of(module: &Module, l: &Loop<'_>, p: &Product, counter: &Counter, iterations: i64) -> Option<Places> {
        let (slope, at_zero) = line(module, l, counter, p.index, MOST_STEPS)?;
        let Next::Step(step) = counter.next else { return None };
        let (first, step) = (slope * counter.first + at_zero, slope * step);
        let last = first + step * (i128::from(iterations) - 1);
        let ty = module.instr(p.index).shape.element_type()?;
        let is_there = |x: i128| (0..i128::from(p.places)).contains(&x) && wrapped(x, ty) == Some(x);
        let fits = step.abs() == 1 && is_there(first) && is_there(last);
        Some(Places { first: i64::try_from(first).ok().filter(|_| fits)?, down: step < 0 })
    }

    /// The places of the iterations after the first `before`.
    fn block(
        &self,
        b: &mut ComputationBuilder<'_>,
        inputs: InstrId,
        before: InstrId,
        length: i64,
    ) -> Option<InstrId> {
        let (first, opcode) =
            if self.down { (self.first - (length - 1), Opcode::Subtract) } else { (self.first, Opcode::Add) };
        let first = b.scalar(first);
        let lowest = b.binary(opcode, first, before).ok()?;
        let zero = b.scalar(0i64);
        let mut sizes = b.shape(inputs).as_array()?.dims.to_vec();
        let mut starts = vec![lowest];
        starts.resize(sizes.len(), zero);
        *sizes.first_mut()? = length;
        b.dynamic_slice(inputs, &starts, &sizes).ok()
    }
}

/// How many sums and differences an index may be made of.
const MOST_STEPS: usize = 8;

/// Slope and constant of an index that is a line over the counter, but for what wraps: as long as the line stays in the type, it is the index.
fn line(
    module: &Module,
    l: &Loop<'_>,
    counter: &Counter,
    index: InstrId,
    steps: usize,
) -> Option<(i128, i128)> {
    if element(module, l.in_body, index) == Some(counter.element) {
        return Some((1, 0));
    }
    if let Some(constant) = integer(module, index) {
        return Some((0, constant));
    }
    let instr = module.instr(index);
    let sign = match instr.opcode {
        Opcode::Add => 1,
        Opcode::Subtract => -1,
        _ => return None,
    };
    let &[a, b] = instr.operands() else { return None };
    let [a, b] = [a, b].map(|x| line(module, l, counter, x, steps.checked_sub(1)?));
    let ((slope_a, a), (slope_b, b)) = a.zip(b)?;
    Some((slope_a + sign * slope_b, a + sign * b))
}

/// The condition, named after another one, of a loop that goes on as long as the last element of its state is below a bound.
fn counts_to(module: &mut Module, like: ComputationId, state: &Shape, bound: i64) -> Option<ComputationId> {
    let last = state.as_tuple()?.len().checked_sub(1)? as i64;
    let name = module.computation(like).name.to_string();
    let mut b = ComputationBuilder::new(module, &name);
    let state = b.parameter("state", state.clone());
    let counter = b.get(state, last).ok()?;
    let bound = b.scalar(bound);
    b.compare(Direction::Lt, counter, bound).ok()?;
    Some(b.finish())
}

/// Puts computations behind another one that they may call: callees stand before callers.
fn follow(module: &mut Module, callee: ComputationId, callers: &[ComputationId]) {
    let others = module.computations().iter().copied().filter(|c| !callers.contains(c));
    let mut order: Vec<ComputationId> = others.collect();
    let place = order.iter().position(|&c| c == callee).map_or(order.len(), |at| at + 1);
    order.splice(place..place, callers.iter().copied());
    module.set_computation_order(order);
}
