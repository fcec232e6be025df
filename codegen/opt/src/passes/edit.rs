//! Rewriting one instruction (a peephole edit): what is built for it stands before it, and is rolled back if
//! the rewriting comes to nothing.
//!
//! **Invariants:** nothing that shape inference refuses is added; a rewriting that gives up leaves the module
//! as it was, but for names that were used up; what replaces an instruction has its layout where a user could
//! see that ([`Edit::may_stand_for`]).

use std::sync::Arc;

use hlo::attrs::{AttrKey, AttrValue, Attrs, Direction, PaddingDim, SliceDim};
use hlo::{
    ArrayLiteral, ArrayShape, BufferOf, ComputationId, ConstantValue, Dims, ElementType, InstrId,
    Instruction, Literal, Module, NewInstruction, Opcode, Shape, with_element_type,
};
use hlo_threads::cancel;
use rustc_hash::FxHashSet;

use super::effects::Effects;
use super::shardings;
use super::{Fuel, replace};

/// Builds instructions before another one, which they may replace.
#[derive(Debug)]
pub struct Edit<'m> {
    /// The module.
    pub module: &'m mut Module,
    survey: &'m Survey,
    at: InstrId,
    made: Vec<InstrId>,
    computations: Vec<ComputationId>,
}

/// A list of integers as an attribute.
pub fn ints(values: &[i64]) -> AttrValue {
    AttrValue::Ints(values.into())
}

/// The full range of a dimension.
pub fn whole(size: i64) -> SliceDim {
    SliceDim { start: 0, limit: size, stride: 1 }
}

impl<'m> Edit<'m> {
    /// An edit that builds before `at`.
    pub fn before(module: &'m mut Module, survey: &'m Survey, at: InstrId) -> Self {
        Self { module, survey, at, made: Vec::new(), computations: Vec::new() }
    }

    /// The instruction being rewritten.
    pub fn at(&self) -> &Instruction {
        self.module.instr(self.at)
    }

    /// Its id.
    pub fn id(&self) -> InstrId {
        self.at
    }

    /// Facts about the module.
    pub fn survey(&self) -> &'m Survey {
        self.survey
    }

    /// Whether the instruction has a side effect ([`Effects::has`]).
    pub fn has_effect(&self) -> bool {
        self.survey.effects.has(self.module, self.at)
    }

    /// Any instruction.
    pub fn instr(&self, id: InstrId) -> &Instruction {
        self.module.instr(id)
    }

    /// The root of a computation.
    pub fn root(&self, computation: ComputationId) -> &Instruction {
        self.module.instr(self.module.root(computation))
    }

    /// The array shape of an instruction, if it is one without dynamic dimensions.
    pub fn array(&self, id: InstrId) -> Option<&ArrayShape> {
        self.module.instr(id).shape.as_array().filter(|a| !a.is_dynamic())
    }

    /// The operand in a slot.
    pub fn operand(&self, slot: usize) -> Option<InstrId> {
        self.at().operands().get(slot).copied()
    }

    /// The operands, if there are exactly `N`.
    pub fn operands<const N: usize>(&self) -> Option<[InstrId; N]> {
        self.at().operands().try_into().ok()
    }

    fn push(&mut self, opcode: Opcode, shape: Shape, operands: &[InstrId], attrs: Attrs) -> InstrId {
        let name = self.module.unique_name(opcode.name());
        let span = self.at().span;
        let new = NewInstruction { name, attrs, span, ..NewInstruction::new(opcode, shape, operands) };
        let id = self.module.insert_before(self.at, new);
        self.made.push(id);
        id
    }

    /// Inserts an instruction as given, unchecked.
    pub(super) fn insert(&mut self, new: NewInstruction) -> InstrId {
        let id = self.module.insert_before(self.at, new);
        self.made.push(id);
        id
    }

    /// Records a computation as made here.
    pub(super) fn made_computation(&mut self, computation: ComputationId) {
        self.computations.push(computation);
    }

    /// Adds an instruction with an inferred shape. `None`: it does not fit.
    pub fn add(&mut self, opcode: Opcode, operands: &[InstrId], attrs: Attrs) -> Option<InstrId> {
        let shapes: Vec<&Shape> = operands.iter().map(|&id| &self.module.instr(id).shape).collect();
        let shape = hlo::infer::infer(self.module, opcode, &shapes, &attrs).ok()?;
        Some(self.push(opcode, shape, operands, attrs))
    }

    /// Adds an instruction of a given shape. `None`: it does not fit.
    pub fn shaped(
        &mut self,
        opcode: Opcode,
        shape: Shape,
        operands: &[InstrId],
        attrs: Attrs,
    ) -> Option<InstrId> {
        let shapes: Vec<&Shape> = operands.iter().map(|&id| &self.module.instr(id).shape).collect();
        hlo::infer::check(self.module, opcode, &shapes, &attrs, &shape).ok()?;
        Some(self.push(opcode, shape, operands, attrs))
    }

    /// A copy of the rewritten instruction with other operands.
    pub fn again(&mut self, operands: &[InstrId]) -> Option<InstrId> {
        let (opcode, attrs, shape) = (self.at().opcode, self.at().attrs.clone(), self.at().shape.clone());
        self.shaped(opcode, shape, operands, attrs)
    }

    /// An operation on one operand.
    pub fn unary(&mut self, opcode: Opcode, x: InstrId) -> Option<InstrId> {
        self.add(opcode, &[x], Attrs::new())
    }

    /// An operation on two operands.
    pub fn binary(&mut self, opcode: Opcode, a: InstrId, b: InstrId) -> Option<InstrId> {
        self.add(opcode, &[a, b], Attrs::new())
    }

    /// `a direction b`
    pub fn compare(&mut self, direction: Direction, a: InstrId, b: InstrId) -> Option<InstrId> {
        let attrs = Attrs::new().with(AttrKey::Direction, AttrValue::Direction(direction));
        self.add(Opcode::Compare, &[a, b], attrs)
    }

    /// `a` where `p`, else `b`.
    pub fn select(&mut self, p: InstrId, a: InstrId, b: InstrId) -> Option<InstrId> {
        self.add(Opcode::Select, &[p, a, b], Attrs::new())
    }

    fn retyped(&self, x: InstrId, ty: ElementType) -> Option<Shape> {
        Some(Shape::Array(self.module.instr(x).shape.as_array()?.with_type(ty).without_layout()))
    }

    /// `x` converted to another element type; `x` itself if it has that.
    pub fn convert(&mut self, x: InstrId, ty: ElementType) -> Option<InstrId> {
        if self.instr(x).shape.element_type() == Some(ty) {
            return Some(x);
        }
        let shape = self.retyped(x, ty)?;
        self.shaped(Opcode::Convert, shape, &[x], Attrs::new())
    }

    /// A bitcast-convert to another element type of the same width.
    pub fn bits_as(&mut self, x: InstrId, ty: ElementType) -> Option<InstrId> {
        let shape = self.retyped(x, ty)?;
        self.shaped(Opcode::BitcastConvert, shape, &[x], Attrs::new())
    }

    /// A constant.
    pub fn constant(&mut self, literal: Literal) -> InstrId {
        let shape = literal.shape();
        let value = AttrValue::Literal(ConstantValue::Given(Arc::new(literal)));
        self.push(Opcode::Constant, shape, &[], Attrs::new().with(AttrKey::ConstantValue, value))
    }

    /// A scalar constant with these bits.
    pub fn scalar_bits(&mut self, ty: ElementType, bits: u128) -> InstrId {
        let buffer =
            with_element_type!(ty, T => <T as BufferOf>::wrap(vec![<T as hlo::Bits>::from_bits(bits)]));
        self.constant(Literal::Array(ArrayLiteral { dims: Dims::new(), buffer: buffer.into() }))
    }

    /// A scalar broadcast to the dimensions of `like`.
    pub fn fill(&mut self, scalar: InstrId, like: InstrId) -> Option<InstrId> {
        let dims = self.module.instr(like).shape.as_array()?.dims.clone();
        self.fill_dims(scalar, &dims)
    }

    /// A scalar broadcast to these dimensions.
    pub fn fill_dims(&mut self, scalar: InstrId, dims: &[i64]) -> Option<InstrId> {
        if dims.is_empty() {
            return Some(scalar);
        }
        self.broadcast(scalar, dims, &[])
    }

    /// A broadcast: dimension `i` of `x` becomes dimension `mapping[i]`.
    pub fn broadcast(&mut self, x: InstrId, dims: &[i64], mapping: &[i64]) -> Option<InstrId> {
        let shape = Shape::array(self.instr(x).shape.element_type()?, dims);
        self.shaped(Opcode::Broadcast, shape, &[x], Attrs::new().with(AttrKey::Dimensions, ints(mapping)))
    }

    /// `x * broadcast(one / c)` for `x / broadcast(c)`; `one` is a scalar of the type.
    pub fn times_reciprocal(&mut self, x: InstrId, divisor: InstrId, one: InstrId) -> Option<InstrId> {
        let of = self.instr(divisor);
        let few = *of.operands().first().filter(|_| of.opcode == Opcode::Broadcast)?;
        let mapping = of.attrs.ints_or_empty(AttrKey::Dimensions).to_vec();
        let dims = self.array(divisor)?.dims.clone();
        let ones = self.fill(one, few)?;
        let inverse = self.binary(Opcode::Divide, ones, few)?;
        let inverse = self.broadcast(inverse, &dims, &mapping)?;
        self.binary(Opcode::Multiply, x, inverse)
    }

    /// A reshape.
    pub fn reshape(&mut self, x: InstrId, dims: &[i64]) -> Option<InstrId> {
        let shape = Shape::array(self.instr(x).shape.element_type()?, dims);
        self.shaped(Opcode::Reshape, shape, &[x], Attrs::new())
    }

    /// A transpose: dimension `i` of the result is dimension `permutation[i]` of `x`.
    pub fn transpose(&mut self, x: InstrId, permutation: &[i64]) -> Option<InstrId> {
        self.add(Opcode::Transpose, &[x], Attrs::new().with(AttrKey::Dimensions, ints(permutation)))
    }

    /// Reverses dimensions; `x` itself if there are none.
    pub fn reverse(&mut self, x: InstrId, dims: &[i64]) -> Option<InstrId> {
        if dims.is_empty() {
            return Some(x);
        }
        self.add(Opcode::Reverse, &[x], Attrs::new().with(AttrKey::Dimensions, ints(dims)))
    }

    /// A strided slice.
    pub fn slice(&mut self, x: InstrId, slices: &[SliceDim]) -> Option<InstrId> {
        let attrs = Attrs::new().with(AttrKey::Slice, AttrValue::Slices(slices.into()));
        self.add(Opcode::Slice, &[x], attrs)
    }

    /// `start..limit` of one dimension.
    pub fn cut(&mut self, x: InstrId, dim: usize, start: i64, limit: i64) -> Option<InstrId> {
        let mut slices: Vec<SliceDim> = self.array(x)?.dims.iter().map(|&d| whole(d)).collect();
        *slices.get_mut(dim)? = SliceDim { start, limit, stride: 1 };
        self.slice(x, &slices)
    }

    /// Element `n` of one dimension, which is dropped: `kept` are the others.
    pub fn part(&mut self, x: InstrId, dim: usize, n: i64, kept: &[i64]) -> Option<InstrId> {
        let one = self.cut(x, dim, n, n + 1)?;
        self.reshape(one, kept)
    }

    /// Pads, or crops where padding is negative.
    pub fn pad(&mut self, x: InstrId, value: InstrId, padding: &[PaddingDim]) -> Option<InstrId> {
        let attrs = Attrs::new().with(AttrKey::Padding, AttrValue::Padding(padding.into()));
        self.add(Opcode::Pad, &[x, value], attrs)
    }

    /// A concatenation along a dimension.
    pub fn concatenate(&mut self, parts: &[InstrId], dim: i64) -> Option<InstrId> {
        self.add(Opcode::Concatenate, parts, Attrs::new().with(AttrKey::Dimensions, ints(&[dim])))
    }

    /// A tuple.
    pub fn tuple(&mut self, elements: &[InstrId]) -> Option<InstrId> {
        self.add(Opcode::Tuple, elements, Attrs::new())
    }

    /// An element of a tuple.
    pub fn get(&mut self, tuple: InstrId, index: i64) -> Option<InstrId> {
        self.add(Opcode::GetTupleElement, &[tuple], Attrs::new().with(AttrKey::Index, AttrValue::Int(index)))
    }

    /// A computation that applies a binary opcode to two scalars.
    pub fn region(&mut self, opcode: Opcode, ty: ElementType) -> Option<ComputationId> {
        let region = hlo::builder::scalar_region(self.module, opcode.name(), opcode, ty).ok()?;
        self.first(region);
        Some(region)
    }

    /// Puts a computation that is called from here at the beginning of the module, and records it as made
    /// here. It must not call others.
    pub fn first(&mut self, computation: ComputationId) {
        let mut order: Vec<ComputationId> = vec![computation];
        order.extend(self.module.computations().iter().copied().filter(|&c| c != computation));
        self.module.set_computation_order(order);
        self.computations.push(computation);
    }

    /// Puts a computation that is called from here before the calling computation, and records it as made
    /// here.
    pub fn before_caller(&mut self, computation: ComputationId) {
        let caller = self.at().parent();
        let mut order: Vec<ComputationId> =
            self.module.computations().iter().copied().filter(|&c| c != computation).collect();
        let position = order.iter().position(|&c| c == caller).unwrap_or(order.len());
        order.insert(position, computation);
        self.module.set_computation_order(order);
        self.computations.push(computation);
    }

    /// Rolls everything back.
    pub fn abandon(self) {
        for &id in self.made.iter().rev() {
            self.module.remove(id);
        }
        for &c in &self.computations {
            self.module.remove_computation(c);
        }
    }

    /// Whether `new` has the shape of the instruction, and its layout where a user could see that.
    pub fn may_stand_for(&self, new: InstrId) -> bool {
        let (old, new) = (self.at(), self.instr(new));
        if old.shape == new.shape {
            return true;
        }
        same_but_layout(&old.shape, &new.shape) && !layout_seen(self.module, self.at)
    }

    /// Replaces the instruction by `new`, and removes what becomes unused. False, and nothing happens, if it
    /// may not stand for it.
    pub fn finish(self, new: InstrId) -> bool {
        let Edit { module, survey, at, made, .. } = self;
        let operands: Vec<InstrId> = module.instr(at).operands().to_vec();
        let made_here = made.contains(&new);
        if made_here {
            // The same value: it may as well take the layout and the metadata of the other.
            let (shape, metadata) =
                (module.instr(at).shape.clone(), module.instr(at).attrs.get(AttrKey::Metadata).cloned());
            let instr = module.instr_mut(new);
            if same_but_layout(&shape, &instr.shape) {
                instr.shape = shape;
            }
            if let (None, Some(metadata)) = (instr.attrs.get(AttrKey::Metadata), metadata) {
                instr.attrs.set(AttrKey::Metadata, metadata);
            }
        }
        let own = (module.instr(new).name.clone(), module.instr(new).span);
        replace(module, at, new);
        if !made_here {
            // It existed before, under a name of its own.
            let instr = module.instr_mut(new);
            (instr.name, instr.span) = own;
        }
        for id in made.into_iter().rev().chain(operands) {
            sweep(module, id, survey);
        }
        true
    }
}

/// Whether two shapes are equal up to layouts.
pub fn same_but_layout(a: &Shape, b: &Shape) -> bool {
    match (a, b) {
        (Shape::Array(a), Shape::Array(b)) => a.same_dims(b) && a.dynamic == b.dynamic,
        (Shape::Tuple(a), Shape::Tuple(b)) => {
            a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| same_but_layout(a, b))
        }
        (Shape::Array(_) | Shape::Tuple(_) | Shape::Token | Shape::Opaque | Shape::Buffer(_), _) => a == b,
    }
}

/// Whether a value's layout is observable: by `bitcast`, by library calls, and in the entry's result.
pub fn layout_seen(module: &Module, id: InstrId) -> bool {
    let parent = module.instr(id).parent();
    module.root(parent) == id && module.entry() == parent
        || module.users(id).iter().any(|u| {
            matches!(
                module.instr(u.user).opcode,
                Opcode::Bitcast
                    | Opcode::CustomCall
                    | Opcode::Fusion
                    | Opcode::AsyncStart
                    | Opcode::AsyncUpdate
                    | Opcode::CopyStart
            )
        })
}

/// Facts that a sweep needs about a module before it changes anything, collected in one walk.
#[derive(Debug, Default)]
pub struct Survey {
    /// Pinned instructions, which must be neither moved nor replaced: those with control edges, and those
    /// whose sharding determines a value.
    pub pinned: FxHashSet<InstrId>,
    /// Computations that fold values (reducers, and what they call). Whether one is an addition decides how a
    /// sum is rounded, so a rewriting inside that changes no value of the computation may still change the
    /// bits of what applies it.
    pub folds: FxHashSet<ComputationId>,
    /// Side effects.
    pub effects: Effects,
    /// Whether a shape has dynamic dimensions: there a declared shape does not say what a value's dimensions
    /// are.
    pub run_time_sizes: bool,
}

impl Survey {
    /// Of a module as it is now.
    pub fn of(module: &Module) -> Survey {
        let mut survey = Survey::default();
        let mut pending: Vec<ComputationId> = Vec::new();
        for id in module.computations().iter().flat_map(|&c| module.instructions(c)) {
            let instr = module.instr(id);
            if !instr.control_predecessors.is_empty() {
                survey.pinned.insert(id);
                survey.pinned.extend(instr.control_predecessors.iter().copied());
            }
            survey.pinned.extend(shardings::read_by(module, id));
            survey.run_time_sizes |=
                match &instr.shape {
                    Shape::Array(a) => a.is_dynamic(),
                    Shape::Tuple(_) => {
                        let mut dynamic = false;
                        instr.shape.for_each_leaf(&mut |s| {
                            dynamic |= s.as_array().is_some_and(ArrayShape::is_dynamic)
                        });
                        dynamic
                    }
                    Shape::Token | Shape::Opaque | Shape::Buffer(_) => false,
                } || matches!(instr.opcode, Opcode::SetDimensionSize | Opcode::DynamicReshape);
            if matches!(
                instr.opcode,
                Opcode::Reduce
                    | Opcode::ReduceWindow
                    | Opcode::Scan
                    | Opcode::AllReduce
                    | Opcode::AllReduceStart
                    | Opcode::ReduceScatter
                    | Opcode::CollectiveReduce
            ) {
                pending.extend(instr.attrs.called_computations());
            }
        }
        while let Some(c) = pending.pop() {
            if survey.folds.insert(c) {
                let called =
                    module.instructions(c).flat_map(|id| module.instr(id).attrs.called_computations());
                pending.extend(called);
            }
        }
        survey
    }
}

/// Pinned instructions ([`Survey::pinned`]).
pub fn pinned(module: &Module) -> FxHashSet<InstrId> {
    Survey::of(module).pinned
}

/// Whether a shape of the module has dynamic dimensions ([`Survey::run_time_sizes`]).
pub fn has_run_time_sizes(module: &Module) -> bool {
    Survey::of(module).run_time_sizes
}

/// Computations that fold values ([`Survey::folds`]).
pub fn folds(module: &Module) -> FxHashSet<ComputationId> {
    Survey::of(module).folds
}

/// Removes an instruction without users, and then its operands that become unused.
pub fn sweep(module: &mut Module, id: InstrId, survey: &Survey) -> usize {
    let mut pending = vec![id];
    let mut removed = 0;
    while let Some(id) = pending.pop() {
        if module.is_removed(id)
            || !module.users(id).is_empty()
            || module.root(module.instr(id).parent()) == id
            || survey.pinned.contains(&id)
            || !survey.effects.removable(module, id)
        {
            continue;
        }
        pending.extend(module.instr(id).operands());
        module.remove(id);
        removed += 1;
    }
    removed
}

/// The maximum depth of rewritings of what rewritings added: enough for chains, and an end to what goes back
/// and forth.
const MAX_REWRITE_DEPTH: usize = 64;

/// Visits every instruction once, in program order, without those that rewritings add, and replaces it by
/// what `rewrite` builds, while `fuel` lasts. `rewrite` gives `None` where it does not apply. Instructions
/// with control edges stay. Returns the number of replacements. A module with run-time sizes is left alone.
pub fn each(
    module: &mut Module,
    fuel: &mut Fuel,
    rewrite: impl FnMut(&mut Edit<'_>) -> Option<InstrId>,
) -> u64 {
    let survey = Survey { folds: FxHashSet::default(), ..Survey::of(module) };
    sweep_over(module, fuel, &survey, 0, rewrite)
}

/// [`each`] outside of computations that fold values, visiting next what a rewriting added (its users come
/// later anyway, so one sweep settles whatever only reads operands).
pub fn each_outside_folds(
    module: &mut Module,
    fuel: &mut Fuel,
    rewrite: impl FnMut(&mut Edit<'_>) -> Option<InstrId>,
) -> u64 {
    let survey = Survey::of(module);
    sweep_over(module, fuel, &survey, MAX_REWRITE_DEPTH, rewrite)
}

fn sweep_over(
    module: &mut Module,
    fuel: &mut Fuel,
    survey: &Survey,
    follow: usize,
    mut rewrite: impl FnMut(&mut Edit<'_>) -> Option<InstrId>,
) -> u64 {
    if survey.run_time_sizes {
        return 0;
    }
    let computations = module.computations().iter().filter(|c| !survey.folds.contains(c));
    let all: Vec<InstrId> = computations.flat_map(|&c| module.instructions(c)).collect();
    let mut applied = 0;
    for id in all {
        applied += settle(module, fuel, survey, (id, follow), &mut rewrite);
    }
    applied
}

/// Upper bound of rewritings of instructions that rewriting one instruction added: a pair of rewritings that
/// undo one another would otherwise not terminate. No program needs as many.
const MAX_FOLLOWED: usize = 1 << 18;

/// [`each_outside_folds`] from callers to callees, visiting everything that a rewriting added, and no
/// computation that nothing calls any more. The rewriting must terminate by itself.
pub fn each_from_callers(
    module: &mut Module,
    fuel: &mut Fuel,
    mut rewrite: impl FnMut(&mut Edit<'_>) -> Option<InstrId>,
) -> u64 {
    let survey = Survey::of(module);
    if survey.run_time_sizes {
        return 0;
    }
    let mut reached: FxHashSet<ComputationId> = [module.entry()].into_iter().collect();
    let mut applied = 0;
    for c in callees_first(module).into_iter().rev().filter(|c| !survey.folds.contains(c)) {
        if !reached.contains(&c) {
            continue;
        }
        for id in module.instructions(c).collect::<Vec<_>>() {
            applied += settle(module, fuel, &survey, (id, MAX_FOLLOWED), &mut rewrite);
        }
        let called = module.instructions(c).flat_map(|id| module.instr(id).attrs.called_computations());
        reached.extend(called);
    }
    applied
}

/// All computations, callees before callers, otherwise in the module's order.
pub fn callees_first(module: &Module) -> Vec<ComputationId> {
    let old = module.computations();
    let mut done: FxHashSet<ComputationId> = FxHashSet::default();
    let mut order = Vec::with_capacity(old.len());
    for &c in old {
        let mut pending = vec![(c, false)];
        while let Some((c, left)) = pending.pop() {
            if left {
                order.push(c);
            } else if done.insert(c) {
                pending.push((c, true));
                let called: Vec<ComputationId> = module
                    .instructions(c)
                    .flat_map(|id| module.instr(id).attrs.called_computations())
                    .filter(|c| !done.contains(c))
                    .collect();
                pending.extend(called.into_iter().rev().map(|c| (c, false)));
            }
        }
    }
    order
}

/// Rewrites an instruction, then what that added, up to a depth.
fn settle(
    module: &mut Module,
    fuel: &mut Fuel,
    survey: &Survey,
    (id, mut follow): (InstrId, usize),
    rewrite: &mut impl FnMut(&mut Edit<'_>) -> Option<InstrId>,
) -> u64 {
    let (mut applied, mut next) = (0, vec![id]);
    while let Some(id) = next.pop() {
        cancel::poll();
        if fuel.is_empty() {
            return applied;
        }
        if module.is_removed(id) || survey.pinned.contains(&id) {
            continue;
        }
        let mut edit = Edit::before(module, survey, id);
        match rewrite(&mut edit) {
            Some(new) if edit.may_take_over(new) && fuel.take() => {
                if follow > 0 {
                    follow -= 1;
                    next.extend(edit.made.iter().rev());
                }
                edit.finish(new);
                applied += 1;
            }
            Some(_) | None => edit.abandon(),
        }
    }
    applied
}

impl Edit<'_> {
    fn may_take_over(&self, new: InstrId) -> bool {
        // What was made here takes the layout, whatever it is.
        if self.made.contains(&new) {
            same_but_layout(&self.at().shape, &self.instr(new).shape)
        } else {
            self.may_stand_for(new)
        }
    }
}
