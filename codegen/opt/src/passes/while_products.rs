//! Batching of products in loops: `dot(slice of iteration, invariant)` in every iteration becomes one product
//! for many iterations. A step of a recurrent network takes its input's product from there. Small results are
//! computed before the loop, large ones for blocks of iterations: the loop is strip-mined into a loop over
//! blocks, whose body computes a block's products and then runs the block's iterations.
//!
//! The terms of each element are the same in the same order, and the index is clamped to the same range.
//!
//! **Invariant:** the number of iterations is as before, each of the same state. What is computed before the
//! loop takes at most [`MAX_HOISTED_BYTES`]; a block's products take at most [`FREE_BLOCK_BYTES`] or a
//! [`LOOP_BYTES_PER_BLOCK_BYTE`]th of what the loop holds without them, and never more than
//! [`MAX_BLOCK_BYTES`].

use hlo::attrs::{AttrKey, AttrValue, Attrs, Direction};
use hlo::builder::ComputationBuilder;
use hlo::{ComputationId, ElementType, InstrId, Module, Opcode, Shape};
use hlo_library_base::sizes;

use super::PassCx;
use super::edit::{Edit, ints};
use super::facts::integer;
use super::loop_state::{Loop, each_loop};
use super::loops::{Counter, Next, element, is_invariant, parts, trip_count, wrapped};

/// The maximum size of all products that are computed before a loop, in bytes: more would leave the cache
/// before it is read.
const MAX_HOISTED_BYTES: i64 = 1 << 20;
/// The maximum size of the products of a block, in bytes.
const MAX_BLOCK_BYTES: i64 = 1 << 18;
/// The size of the products of a block that is always acceptable, in bytes.
const FREE_BLOCK_BYTES: i64 = 1 << 16;
/// Larger blocks may take one byte for this many bytes that the loop holds anyway.
const LOOP_BYTES_PER_BLOCK_BYTE: i64 = 32;
/// The minimum number of iterations of a block.
const MIN_BLOCK_ITERATIONS: i64 = 4;

pub(super) fn batch(module: &mut Module, cx: &mut PassCx<'_>) -> u64 {
    each_loop(module, |module, l| {
        let Some(iterations) = trip_count(module, l.id).and_then(|n| i64::try_from(n).ok()) else { return 0 };
        let dots = module.instructions(l.body).filter(|&id| module.instr(id).opcode == Opcode::Dot);
        let mut products: Vec<Product> =
            dots.filter_map(|dot| Product::of(module, l, dot, iterations)).collect();
        let total = |products: &[Product]| {
            products.iter().map(|p| p.bytes.saturating_mul(p.slices)).fold(0, i64::saturating_add)
        };
        let blocks = (total(&products) > sizes::from(MAX_HOISTED_BYTES))
            .then(|| Blocks::of(module, l, &products, iterations))
            .flatten();
        if blocks.is_none() {
            while total(&products) > sizes::from(MAX_HOISTED_BYTES) {
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
    /// A scalar in the body.
    index: InstrId,
    /// The number of slices of `inputs`.
    slices: i64,
    /// The size of the result of an iteration.
    bytes: i64,
}

impl Product {
    /// Only if the trip count is close to the number of slices.
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
        let (&slices, rest) = from.dims.split_first()?;
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
            && iterations >= slices - slices / 4
            && slices > 1;
        (plain && fits).then_some(Product { dot, inputs, weights, index, slices, bytes })
    }

    /// The product of that many slices at once: its shape and attributes.
    fn of_many(&self, module: &Module, count: i64) -> Option<(Shape, Attrs)> {
        let dot = module.instr(self.dot);
        let result = dot.shape.as_array()?;
        let mut attrs = dot.attrs.clone();
        let contracting: Vec<i64> =
            attrs.ints_or_empty(AttrKey::LhsContractingDims).iter().map(|d| d + 1).collect();
        attrs.set(AttrKey::LhsContractingDims, ints(&contracting));
        Some((Shape::array(result.element_type, &prefixed(count, &result.dims)), attrs))
    }

    /// The products of all slices, before the loop.
    fn whole(&self, module: &mut Module, l: &Loop<'_>) -> Option<()> {
        let operands = [l.first(module, self.inputs)?, l.first(module, self.weights)?];
        let (shape, attrs) = self.of_many(module, self.slices)?;
        let all = Edit::before(module, l.survey, l.id).shaped(Opcode::Dot, shape, &operands, attrs)?;
        let all = *l.carry(module, &[all])?.first()?;
        self.use_slice_of(Edit::before(module, l.survey, self.dot), all, self.index)
    }

    /// In the body, a slice of the batched product replaces the product.
    fn use_slice_of(&self, mut e: Edit<'_>, many: InstrId, index: InstrId) -> Option<()> {
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

/// Blocks of iterations (strip-mining).
struct Blocks {
    iterations: i64,
    length: i64,
    /// The slices that each product takes.
    slices: Vec<Slices>,
}

/// The slice that a product takes in the first iteration; each following iteration takes the next one.
struct Slices {
    first: i64,
    down: bool,
}

impl Blocks {
    /// If the iterations can be divided into blocks, and every product takes consecutive slices.
    fn of(module: &Module, l: &Loop<'_>, products: &[Product], iterations: i64) -> Option<Blocks> {
        let [condition, _] = parts(module, l.id)?;
        let only_asks = |id: InstrId| {
            module.instr(id).opcode == Opcode::Parameter || l.survey.effects.removable(module, id)
        };
        let counter = Counter::of(module, l.id).filter(|_| module.instructions(condition).all(only_asks))?;
        let bytes = products.iter().map(|p| p.bytes).fold(0, i64::saturating_add);
        let held = module.instr(l.id).shape.checked_bytes()?;
        let budget = sizes::from(FREE_BLOCK_BYTES)
            .max(held / LOOP_BYTES_PER_BLOCK_BYTE)
            .min(sizes::from(MAX_BLOCK_BYTES));
        let most = (budget / bytes.max(1)).min(iterations / 2);
        let length = (MIN_BLOCK_ITERATIONS..=most).rev().find(|n| iterations % n == 0)?;
        let slices = products.iter().map(|p| Slices::of(module, l, p, &counter, iterations));
        Some(Blocks { iterations, length, slices: slices.collect::<Option<_>>()? })
    }

    /// Strip-mines the loop: makes it one over blocks, whose body runs the iterations of a block in an inner
    /// loop with the former body.
    fn run(&self, module: &mut Module, l: &Loop<'_>, products: &[Product]) -> Option<()> {
        let old = module.instr(l.id).shape.as_tuple()?.to_vec();
        let [condition, _] = parts(module, l.id)?;
        let many = products.iter().map(|p| p.of_many(module, self.length)).collect::<Option<Vec<_>>>()?;
        let iteration = Shape::scalar(ElementType::S64);
        let more: Vec<Shape> =
            many.iter().map(|(shape, _)| shape.clone()).chain([iteration.clone()]).collect();
        self.of_iteration(module, l, products, &more)?;
        let of_iterations = Shape::tuple(old.iter().chain(&more).cloned());
        let of_blocks = Shape::tuple(old.into_iter().chain([iteration]));
        let in_block = counts_to(module, condition, &of_iterations, self.length)?;
        let goes_on = counts_to(module, condition, &of_blocks, self.iterations)?;
        let block = self.of_block(module, (in_block, l.body), of_blocks, products.iter().zip(many))?;
        let none = Edit::before(module, l.survey, l.id).scalar_bits(ElementType::S64, 0);
        l.begin(module, &[none])?;
        let attrs = &mut module.instr_mut(l.id).attrs;
        attrs.set(AttrKey::Condition, AttrValue::Computation(goes_on));
        attrs.set(AttrKey::Body, AttrValue::Computation(block));
        // XLA's annotation of the trip count.
        attrs.remove(AttrKey::BackendConfig);
        module.remove_computation(condition);
        follow(module, l.body, &[in_block, goes_on, block]);
        Some(())
    }

    /// The former body, extended by `more`: the products of its block, of which each iteration uses one, and
    /// its iteration in the block.
    fn of_iteration(
        &self,
        module: &mut Module,
        l: &Loop<'_>,
        products: &[Product],
        more: &[Shape],
    ) -> Option<()> {
        let inside = l.extend(module, more)?;
        let (&now, inside) = inside.split_last()?;
        for ((p, slices), &many) in products.iter().zip(&self.slices).zip(inside) {
            let mut e = Edit::before(module, l.survey, p.dot);
            let index = if slices.down {
                let last = e.scalar_bits(ElementType::S64, u128::try_from(self.length - 1).ok()?);
                e.binary(Opcode::Subtract, last, now)?
            } else {
                now
            };
            p.use_slice_of(e, many, index)?;
        }
        let mut e = Edit::before(module, l.survey, l.root);
        let one = e.scalar_bits(ElementType::S64, 1);
        let next = e.binary(Opcode::Add, now, one)?;
        let last = module.instr(l.root).operands().len() - 1;
        module.set_operand(l.root, last, next);
        Some(())
    }

    /// The body of the loop over blocks. Its state ends with the number of iterations done and the products;
    /// the inner loop has the given condition and body.
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
        let mut computed = Vec::with_capacity(self.slices.len());
        for ((p, (shape, attrs)), slices) in products.zip(&self.slices) {
            let element = |i: i64| elements.get(usize::try_from(i).ok()?).copied();
            let operands =
                [slices.block(&mut b, element(p.inputs)?, before, self.length)?, element(p.weights)?];
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

impl Slices {
    /// If the product takes consecutive slices, all within bounds and within the index's type.
    fn of(module: &Module, l: &Loop<'_>, p: &Product, counter: &Counter, iterations: i64) -> Option<Slices> {
        let (slope, at_zero) = affine_index(module, l, counter, p.index, MAX_INDEX_TERMS)?;
        let Next::Step(step) = counter.next else { return None };
        let (first, step) = (slope * counter.first + at_zero, slope * step);
        let last = first + step * (i128::from(iterations) - 1);
        let ty = module.instr(p.index).shape.element_type()?;
        let is_there = |x: i128| (0..i128::from(p.slices)).contains(&x) && wrapped(x, ty) == Some(x);
        let fits = step.abs() == 1 && is_there(first) && is_there(last);
        Some(Slices { first: i64::try_from(first).ok().filter(|_| fits)?, down: step < 0 })
    }

    /// The slices of the iterations after the first `before`.
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

/// The maximum number of additions and subtractions that an index may consist of.
const MAX_INDEX_TERMS: usize = 8;

/// Slope and offset of an index that is affine in the counter, but for wrapping: as long as it stays in the
/// type's range.
fn affine_index(
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
    let [a, b] = [a, b].map(|x| affine_index(module, l, counter, x, steps.checked_sub(1)?));
    let ((slope_a, a), (slope_b, b)) = a.zip(b)?;
    Some((slope_a + sign * slope_b, a + sign * b))
}

/// The condition of a loop that runs while the last element of its state is below a bound, named after
/// another one.
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

/// Moves computations after another one that they may call: callees stand before callers.
fn follow(module: &mut Module, callee: ComputationId, callers: &[ComputationId]) {
    let others = module.computations().iter().copied().filter(|c| !callers.contains(c));
    let mut order: Vec<ComputationId> = others.collect();
    let position = order.iter().position(|&c| c == callee).map_or(order.len(), |at| at + 1);
    order.splice(position..position, callers.iter().copied());
    module.set_computation_order(order);
}
