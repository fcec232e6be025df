//! The state of a loop: initial values, and adding elements.
//!
//! **Invariant:** only loops are given whose state is never used as a whole and whose computations nothing
//! else calls, so that additional state changes no result.

use hlo::attrs::{AttrKey, AttrValue};
use hlo::{ComputationId, InstrId, Module, NewInstruction, Opcode, Shape};

use super::edit::Survey;
use super::loops::{Calls, at, parameter, parts};

/// A loop whose state may get more elements: a tuple that is only read element by element, and computations
/// that nothing else calls.
pub(super) struct Loop<'s> {
    /// Facts about the module.
    pub(super) survey: &'s Survey,
    pub(super) id: InstrId,
    pub(super) body: ComputationId,
    pub(super) in_condition: InstrId,
    pub(super) in_body: InstrId,
    pub(super) root: InstrId,
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

    /// The initial value of an element of the state.
    pub(super) fn first(&self, module: &mut Module, index: i64) -> Option<InstrId> {
        let init = *module.instr(self.id).operands().first()?;
        if let Some(value) = at(module, init, Some(index)) {
            return Some(value);
        }
        let shape = module.instr(init).shape.as_tuple()?.get(usize::try_from(index).ok()?)?.clone();
        Some(insert_element(module, self.id, init, shape, index))
    }

    /// Carries more values, loop invariant. Gives what they are in the body.
    pub(super) fn carry(&self, module: &mut Module, values: &[InstrId]) -> Option<Vec<InstrId>> {
        self.begin(module, values)?;
        let more: Vec<Shape> = values.iter().map(|&v| module.instr(v).shape.clone()).collect();
        self.extend(module, &more)
    }

    /// Appends initial values. The loop's computations must be extended as well.
    pub(super) fn begin(&self, module: &mut Module, values: &[InstrId]) -> Option<()> {
        let count = module.instr(self.id).shape.as_tuple()?.len();
        let mut elements = Vec::with_capacity(count + values.len());
        for i in 0..count {
            elements.push(self.first(module, i as i64)?);
        }
        elements.extend(values);
        let old = module.instr(self.id).shape.as_tuple()?.iter().cloned();
        let shape = Shape::tuple(old.chain(values.iter().map(|&v| module.instr(v).shape.clone())));
        let init = module.instr(self.id).operands()[0];
        let name = module.unique_name(Opcode::Tuple.name());
        let new = NewInstruction::new(Opcode::Tuple, shape.clone(), &elements);
        let span = module.instr(self.id).span;
        let state = module.insert_before(self.id, NewInstruction { name, span, ..new });
        module.set_operand(self.id, 0, state);
        super::edit::sweep(module, init, self.survey);
        let instr = module.instr_mut(self.id);
        instr.shape = shape;
        instr.attrs.remove(AttrKey::Origin);
        Some(())
    }

    /// Appends elements to the state of the loop's computations, which hand them on unchanged. Gives what
    /// they are in the body.
    pub(super) fn extend(&self, module: &mut Module, more: &[Shape]) -> Option<Vec<InstrId>> {
        let old = module.instr(self.in_body).shape.as_tuple()?.to_vec();
        let mut inside = Vec::with_capacity(more.len());
        for (i, shape) in more.iter().enumerate() {
            let name = module.unique_name(Opcode::GetTupleElement.name());
            let span = module.instr(self.id).span;
            let index = AttrValue::Int((old.len() + i) as i64);
            let new = NewInstruction::new(Opcode::GetTupleElement, shape.clone(), &[self.in_body]);
            let new = NewInstruction { name, span, ..new.attr(AttrKey::Index, index) };
            inside.push(module.insert_after(self.body, Some(self.in_body), new));
        }
        for &x in &inside {
            module.push_operand(self.root, x);
        }
        let shape = Shape::tuple(old.iter().chain(more).cloned());
        for i in [self.in_condition, self.in_body, self.root] {
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
pub(super) fn each_loop(module: &mut Module, mut change: impl FnMut(&mut Module, &Loop<'_>) -> u64) -> u64 {
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
