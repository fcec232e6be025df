//! What a loop computes anew in each turn although it is always the same: moved in front of the loop, or, if it is a constant, into its
//! computations; and short loops written out.
//!
//! Instructions that are moved out may run although the loop makes no turn. None of those that are moved traps, ends the program or
//! has an effect, and none runs a loop of its own, so this cannot be told from results. They are computed from the same values by the
//! same instructions, and data that goes through a loop unchanged keeps its bits.

use hlo::attrs::{AttrKey, AttrValue, Attrs};
use hlo::{ComputationId, ElementType, InstrId, Module, NewInstruction, Opcode, Shape};
use rustc_hash::{FxHashMap, FxHashSet};

use super::Fuel;
use super::calls::inline;
use super::edit::{Edit, Survey, each_outside_folds, ints, same_but_layout};
use super::effects::Effects;
use super::facts::{folds_much, literal};
use super::loops::{Calls, at, is_invariant, parameter, parts, trip_count};

/// A result that is larger than everything that it was made of is moved out of a loop only up to this size: it is held as long as the loop runs.
const SMALL_BYTES: i64 = 256 << 10;
/// Fewer elements than this are not worth an element of the state.
const FEW: i64 = 16;
/// The most turns of a loop that is written out, and the most instructions that come of it.
const MAX_TURNS: u64 = 32;
const MAX_UNROLLED: u64 = 256;
/// The instructions that a quotient of integers counts for.
const INTEGER_QUOTIENT: u64 = 8;

/// A loop whose state may get other elements: a tuple that is only looked at element by element, and computations that nothing else calls.
struct Loop<'s> {
    /// Of the module.
    survey: &'s Survey,
    id: InstrId,
    body: ComputationId,
    in_condition: InstrId,
    in_body: InstrId,
    root: InstrId,
}

impl<'s> Loop<'s> {
    fn of(module: &Module, id: InstrId, survey: &'s Survey, calls: &Calls) -> Option<Self> {
        let [condition, body] = parts(module, id)?;
        let (in_condition, in_body) = (parameter(module, condition)?, parameter(module, body)?);
        let root = module.root(body);
        let only_elements = |&id: &InstrId| {
            module.root(module.instr(id).parent()) != id
                && module.users(id).iter().all(|u| module.instr(u.user).opcode == Opcode::GetTupleElement)
        };
        let fixed =
            |i: InstrId| survey.pinned.contains(&i) || module.instr(i).attrs.get(AttrKey::Sharding).is_some();
        let holds = calls.own([condition, body])
            && module.instr(id).shape.as_tuple().is_some()
            && !fixed(id)
            && ![condition, body].into_iter().flat_map(|c| module.instructions(c)).any(fixed)
            && module.instr(root).opcode == Opcode::Tuple
            && module.users(root).is_empty()
            && [id, in_condition, in_body].iter().all(only_elements);
        holds.then_some(Loop { survey, id, body, in_condition, in_body, root })
    }

    /// What an element of the state is at first.
    fn first(&self, module: &mut Module, index: i64) -> Option<InstrId> {
        let init = *module.instr(self.id).operands().first()?;
        if let Some(value) = at(module, init, Some(index)) {
            return Some(value);
        }
        let shape = module.instr(init).shape.as_tuple()?.get(usize::try_from(index).ok()?)?.clone();
        Some(insert_element(module, self.id, init, shape, index))
    }

    /// Carries more values, unchanged. Gives what they are in the body.
    fn carry(&self, module: &mut Module, values: &[InstrId]) -> Option<Vec<InstrId>> {
        let old = module.instr(self.id).shape.as_tuple()?.to_vec();
        let mut elements = Vec::with_capacity(old.len() + values.len());
        for i in 0..old.len() {
            elements.push(self.first(module, i as i64)?);
        }
        elements.extend(values);
        let shapes: Vec<Shape> =
            old.iter().cloned().chain(values.iter().map(|&v| module.instr(v).shape.clone())).collect();
        let shape = Shape::tuple(shapes);
        let init = module.instr(self.id).operands()[0];
        let name = module.unique_name(Opcode::Tuple.name());
        let new = NewInstruction::new(Opcode::Tuple, shape.clone(), &elements);
        let span = module.instr(self.id).span;
        let state = module.insert_before(self.id, NewInstruction { name, span, ..new });
        module.set_operand(self.id, 0, state);
        super::edit::sweep(module, init, self.survey);
        let mut inside = Vec::with_capacity(values.len());
        for (i, &value) in values.iter().enumerate() {
            let (shape, span) = (module.instr(value).shape.clone(), module.instr(value).span);
            let name = module.unique_name(Opcode::GetTupleElement.name());
            let index = AttrValue::Int((old.len() + i) as i64);
            let new = NewInstruction::new(Opcode::GetTupleElement, shape, &[self.in_body]);
            let new = NewInstruction { name, span, ..new.attr(AttrKey::Index, index) };
            inside.push(module.insert_after(self.body, Some(self.in_body), new));
        }
        for &x in &inside {
            module.push_operand(self.root, x);
        }
        for i in [self.id, self.in_condition, self.in_body, self.root] {
            let instr = module.instr_mut(i);
            instr.shape = shape.clone();
            instr.attrs.remove(AttrKey::Origin);
        }
        for i in [self.in_condition, self.in_body] {
            let c = module.instr(i).parent();
            module.computation_mut(c).declared = None;
        }
        Some(inside)
    }
}

fn insert_element(module: &mut Module, before: InstrId, of: InstrId, shape: Shape, index: i64) -> InstrId {
    let name = module.unique_name(Opcode::GetTupleElement.name());
    let span = module.instr(before).span;
    let new = NewInstruction::new(Opcode::GetTupleElement, shape, &[of]);
    module.insert_before(
        before,
        NewInstruction { name, span, ..new.attr(AttrKey::Index, AttrValue::Int(index)) },
    )
}

/// Every loop, inner ones first, outside of computations that fold.
fn each_loop(module: &mut Module, mut change: impl FnMut(&mut Module, &Loop<'_>) -> u64) -> u64 {
    let survey = Survey::of(module);
    if survey.run_time_sizes {
        return 0;
    }
    let computations = module.computations().iter().filter(|c| !survey.folds.contains(c));
    let all = computations.flat_map(|&c| module.instructions(c));
    let loops: Vec<InstrId> = all.filter(|&id| module.instr(id).opcode == Opcode::While).collect();
    if loops.is_empty() {
        return 0;
    }
    let calls = Calls::of(module);
    let mut applied = 0;
    for id in loops {
        if let Some(l) = (!module.is_removed(id)).then(|| Loop::of(module, id, &survey, &calls)).flatten() {
            applied += change(module, &l);
        }
    }
    applied
}

pub(super) fn hoist(module: &mut Module, fuel: &mut Fuel) -> u64 {
    each_loop(module, |module, l| hoist_from(module, l, fuel).unwrap_or(0))
}

/// What costs about as much to read as to compute, or nothing at all: moved only as a part of something else.
fn is_cheap(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::Constant
            | Opcode::Iota
            | Opcode::Broadcast
            | Opcode::Reshape
            | Opcode::Bitcast
            | Opcode::Slice
            | Opcode::Transpose
            | Opcode::Reverse
            | Opcode::Copy
            | Opcode::GetTupleElement
            | Opcode::Tuple
    )
}

/// Whether an instruction calls LAPACK: its routines give results for whatever matrices.
fn is_decomposition(module: &Module, id: InstrId) -> bool {
    let instr = module.instr(id);
    instr.opcode == Opcode::CustomCall
        && instr
            .attrs
            .str(AttrKey::CustomCallTarget)
            .is_some_and(|target| crate::lapack::routine(target).is_some())
}

/// Whether it is one of the results of such a call.
fn of_decomposition(module: &Module, id: InstrId) -> bool {
    let instr = module.instr(id);
    instr.opcode == Opcode::GetTupleElement
        && instr.shape.as_array().is_some()
        && is_decomposition(module, instr.operands()[0])
}

/// Whether an instruction of a loop may run before it.
fn may_move(module: &Module, effects: &Effects, id: InstrId) -> bool {
    let instr = module.instr(id);
    let stays = matches!(
        instr.opcode,
        Opcode::Parameter
            | Opcode::While
            | Opcode::Call
            | Opcode::Conditional
            | Opcode::Fusion
            | Opcode::AsyncStart
            | Opcode::AsyncUpdate
            | Opcode::AsyncDone
            | Opcode::OptBarrier
    ) || instr.opcode == Opcode::CustomCall && !is_decomposition(module, id);
    // What a computation that is applied to elements calls could be a loop.
    let plain = |c: ComputationId| {
        module.instructions(c).all(|i| module.instr(i).attrs.called_computations().is_empty())
    };
    !stays
        && instr.control_predecessors.is_empty()
        && !super::facts::is_elided(module, id)
        && effects.removable(module, id)
        && instr.shape.leaves().iter().all(|s| s.as_array().is_some())
        && instr.attrs.called_computations().into_iter().all(plain)
}

fn hoist_from(module: &mut Module, l: &Loop<'_>, fuel: &mut Fuel) -> Option<u64> {
    // What is the same in every turn.
    let mut same: FxHashSet<InstrId> = FxHashSet::default();
    let mut leaves: FxHashMap<InstrId, i64> = FxHashMap::default();
    let all: Vec<InstrId> = module.instructions(l.body).collect();
    for &id in &all {
        let instr = module.instr(id);
        if instr.operands() == [l.in_body] {
            let index = instr.attrs.int(AttrKey::Index)?;
            if is_invariant(module, l.body, index) {
                same.insert(id);
                leaves.insert(id, index);
            }
            continue;
        }
        if instr.operands().iter().all(|o| same.contains(o))
            && (!instr.operands().is_empty() || is_cheap(instr.opcode))
            && may_move(module, &l.survey.effects, id)
        {
            same.insert(id);
        }
    }
    // What of that is used by what is not, perhaps through something cheap that stays.
    let mut inside: FxHashSet<InstrId> = FxHashSet::default();
    let mut roots: Vec<InstrId> = Vec::new();
    for &id in all.iter().rev().filter(|id| same.contains(id)) {
        let needed = module.users(id).iter().any(|u| !same.contains(&u.user) || inside.contains(&u.user));
        if !needed || leaves.contains_key(&id) {
            continue;
        }
        let made = of_decomposition(module, id);
        if !made && (is_cheap(module.instr(id).opcode) || !is_worth_it(module, id)) {
            inside.insert(id);
        } else {
            roots.push(id);
        }
    }
    roots.reverse();
    roots.retain(|_| fuel.take());
    if roots.is_empty() {
        return None;
    }
    // The same instructions before the loop.
    let mut needed: FxHashSet<InstrId> = roots.iter().copied().collect();
    for &id in all.iter().rev() {
        if needed.contains(&id) && !leaves.contains_key(&id) {
            needed.extend(module.instr(id).operands().iter().copied());
        }
    }
    let mut map: FxHashMap<InstrId, InstrId> = FxHashMap::default();
    for &id in all.iter().filter(|id| needed.contains(id)) {
        let outside = match leaves.get(&id) {
            Some(&index) => {
                l.first(module, index).expect("invariant: the state is a tuple with this element")
            }
            None => {
                let name = module.unique_name(&module.instr(id).name.clone());
                let instr = module.instr(id);
                let new = NewInstruction {
                    opcode: instr.opcode,
                    shape: instr.shape.clone(),
                    name,
                    operands: instr.operands().iter().map(|o| map[o]).collect(),
                    attrs: instr.attrs.clone(),
                    span: instr.span,
                };
                module.insert_before(l.id, new)
            }
        };
        map.insert(id, outside);
    }
    let values: Vec<InstrId> = roots.iter().map(|r| map[r]).collect();
    let inside = l.carry(module, &values).expect("invariant: the state is a tuple");
    for (&old, &new) in roots.iter().zip(&inside) {
        module.replace_all_uses(old, new);
    }
    for &old in roots.iter().rev() {
        super::edit::sweep(module, old, l.survey);
    }
    Some(roots.len() as u64)
}

/// Whether an element of the state costs less than computing it in each turn.
fn is_worth_it(module: &Module, id: InstrId) -> bool {
    let instr = module.instr(id);
    let Some(array) = instr.shape.as_array() else { return false };
    let bytes = |s: &Shape| s.checked_bytes().unwrap_or(i64::MAX);
    let operands =
        instr.operands().iter().map(|&o| bytes(&module.instr(o).shape)).fold(0, i64::saturating_add);
    let few = instr.opcode.is_elementwise() && array.checked_elements().is_none_or(|n| n < FEW);
    !few && bytes(&instr.shape) <= operands.max(SMALL_BYTES)
}

/// Products of what each turn takes from an array with what is the same in every turn, for all of it at once before the loop: a step of a recurrent
/// network takes its input's product from there. The terms of each element are the same in the same order, and the index is clamped to as many
/// places. Only where the loop is known to make about as many turns as there are places.
pub(super) fn batch(module: &mut Module, fuel: &mut Fuel) -> u64 {
    each_loop(module, |module, l| {
        let Some(turns) = trip_count(module, l.id) else { return 0 };
        let all: Vec<InstrId> = module.instructions(l.body).collect();
        let mut applied = 0;
        for id in all {
            if module.instr(id).opcode == Opcode::Dot
                && let Some(product) = Product::of(module, l, id, turns)
                && fuel.take()
            {
                product.batched(module, l).expect("invariant: its shapes were looked at");
                applied += 1;
            }
        }
        applied
    })
}

/// The most bytes of all products together.
const MAX_BATCHED: i64 = 64 << 20;

/// `dot(reshape(dynamic-slice(inputs, index, 0, ...)), weights)`.
struct Product {
    dot: InstrId,
    /// Elements of the loop's state.
    inputs: i64,
    weights: i64,
    /// Scalar in the body.
    index: InstrId,
    places: i64,
}

impl Product {
    fn of(module: &Module, l: &Loop<'_>, dot: InstrId, turns: u64) -> Option<Product> {
        let instr = module.instr(dot);
        let &[left, right] = instr.operands() else { return None };
        let leaf = |id: InstrId| {
            let index = (module.instr(id).operands() == [l.in_body])
                .then(|| module.instr(id).attrs.int(AttrKey::Index))
                .flatten()?;
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
            && instr.operands().len() == 2
            && instr.attrs.get(AttrKey::SparsityConfig).is_none()
            && instr.attrs.get(AttrKey::Sharding).is_none()
            && !l.survey.pinned.contains(&dot);
        let result = instr.shape.as_array()?;
        let bytes = Shape::Array(result.without_layout()).checked_bytes()?.checked_mul(places)?;
        let fits = sizes.first() == Some(&1)
            && sizes.get(1..) == Some(rest)
            && taken.dims[..] == *rest
            && taken.element_type == from.element_type
            && module.instr(index).shape.is_scalar()
            && i64::try_from(turns).is_ok_and(|n| n >= places - places / 4)
            && places > 1
            && bytes <= MAX_BATCHED;
        (plain && fits).then_some(Product { dot, inputs, weights, index, places })
    }

    fn batched(&self, module: &mut Module, l: &Loop<'_>) -> Option<()> {
        let (inputs, weights) = (l.first(module, self.inputs)?, l.first(module, self.weights)?);
        let result = module.instr(self.dot).shape.as_array()?.without_layout();
        let mut attrs = module.instr(self.dot).attrs.clone();
        let contracting =
            attrs.ints_or_empty(AttrKey::LhsContractingDims).iter().map(|d| d + 1).collect::<Vec<_>>();
        attrs.set(AttrKey::LhsContractingDims, ints(&contracting));
        let dims: Vec<i64> = std::iter::once(self.places).chain(result.dims.iter().copied()).collect();
        let mut outside = Edit::before(module, l.survey, l.id);
        let shape = Shape::array(result.element_type, &dims);
        let all = outside.shaped(Opcode::Dot, shape, &[inputs, weights], attrs)?;
        let all = *l.carry(module, &[all])?.first()?;
        let ty = module.instr(self.index).shape.element_type()?;
        let mut inside = Edit::before(module, l.survey, self.dot);
        let zero = inside.scalar_bits(ty, 0);
        let mut operands = vec![all, self.index];
        operands.resize(dims.len() + 1, zero);
        let mut sizes = dims;
        *sizes.first_mut()? = 1;
        let attrs = Attrs::new().with(AttrKey::DynamicSliceSizes, ints(&sizes));
        let one = inside.add(Opcode::DynamicSlice, &operands, attrs)?;
        let one = inside.reshape(one, &result.dims)?;
        inside.finish(one);
        Some(())
    }
}

pub(super) fn sink(module: &mut Module, fuel: &mut Fuel) -> u64 {
    each_loop(module, |module, l| sink_into(module, l, fuel))
}

/// Constants, and what repeats or counts from one, in the place of elements of the state that are always that.
fn sink_into(module: &mut Module, l: &Loop<'_>, fuel: &mut Fuel) -> u64 {
    let mut applied = 0;
    for state in [l.in_condition, l.in_body] {
        for u in module.users(state).to_vec() {
            let element = u.user;
            let Some(index) = module.instr(element).attrs.int(AttrKey::Index) else { continue };
            let root = |u: &hlo::Use| u.user == l.root && i64::from(u.operand) == index;
            if !is_invariant(module, l.body, index) || module.users(element).iter().all(root) {
                continue;
            }
            let Some(init) = module.instr(l.id).operands().first().copied() else { continue };
            let Some(value) = at(module, init, Some(index)) else { continue };
            let is_root = module.root(module.instr(element).parent()) == element;
            let fits = same_but_layout(&module.instr(element).shape, &module.instr(value).shape);
            if is_root || !fits || !is_constant(module, value) || !fuel.take() {
                continue;
            }
            let new = copy_constant(module, value, element);
            for u in module.users(element).to_vec() {
                if !root(&u) || state != l.in_body {
                    module.set_operand(u.user, u.operand as usize, new);
                }
            }
            super::edit::sweep(module, element, l.survey);
            applied += 1;
        }
    }
    applied
}

/// A constant of the text, or one scalar repeated, or numbers in order.
fn is_constant(module: &Module, id: InstrId) -> bool {
    let instr = module.instr(id);
    match instr.opcode {
        Opcode::Constant => literal(module, id).is_some(),
        Opcode::Iota => true,
        Opcode::Broadcast => instr.operands().iter().all(|&o| literal(module, o).is_some()),
        _ => false,
    }
}

/// The same before an instruction of another computation.
fn copy_constant(module: &mut Module, id: InstrId, before: InstrId) -> InstrId {
    let operands: Vec<InstrId> =
        module.instr(id).operands().to_vec().into_iter().map(|o| copy_constant(module, o, before)).collect();
    let name = module.unique_name(&module.instr(id).name.clone());
    let instr = module.instr(id);
    let new = NewInstruction {
        opcode: instr.opcode,
        shape: instr.shape.clone(),
        name,
        operands: operands.into(),
        attrs: instr.attrs.clone(),
        span: instr.span,
    };
    module.insert_before(before, new)
}

/// Loops of a few turns, each written out. The counter becomes a constant in each.
pub(super) fn unroll(module: &mut Module, fuel: &mut Fuel) -> u64 {
    each_outside_folds(module, fuel, written_out)
}

fn written_out(e: &mut Edit<'_>) -> Option<InstrId> {
    if e.at().opcode != Opcode::While {
        return None;
    }
    let [_, body] = parts(e.module, e.id())?;
    let turns = trip_count(e.module, e.id()).filter(|n| (2..=MAX_TURNS).contains(n))?;
    let costs = |i: InstrId| {
        let instr = e.instr(i);
        match instr.opcode {
            Opcode::Parameter => 0,
            opcode if is_cheap(opcode) => 0,
            // Which no vectors have: long code, several times over.
            Opcode::Divide | Opcode::Remainder
                if instr.shape.element_type().is_some_and(ElementType::is_integer) =>
            {
                INTEGER_QUOTIENT
            }
            _ => 1,
        }
    };
    let size: u64 = e.module.instructions(body).map(costs).sum();
    let calls = |i: InstrId| {
        let instr = e.instr(i);
        matches!(instr.opcode, Opcode::While | Opcode::Call | Opcode::Conditional | Opcode::CustomCall)
    };
    if size.saturating_mul(turns) > MAX_UNROLLED
        || e.has_effect()
        || e.module.instructions(body).any(|i| calls(i) || folds_much(e.module, i))
    {
        return None;
    }
    let mut state = e.operand(0)?;
    for _ in 0..turns {
        state = inline(e, body, &[state])?;
    }
    Some(state)
}
