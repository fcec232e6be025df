//! The plan of a computation before it runs: the order of its instructions, the slots of their values, and
//! last uses.
//!
//! **Invariant:** a value is moved out of the environment at its last use, so an operation that finds its
//! operand's storage unshared may write its result there. Instructions that neither the root nor a side
//! effect needs are not in the plan.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};

use hlo::{AttrKey, ComputationId, ConstantValue, InstrId, Module, Opcode};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::value::Value;

/// One computation, ready to run.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) steps: Vec<Step>,
    /// For each parameter number the slot of its instruction; `None` if nothing needs it.
    pub(crate) parameters: Vec<Option<u32>>,
    pub(crate) slots: usize,
    pub(crate) root: u32,
}

/// One instruction.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) id: InstrId,
    pub(crate) slot: u32,
    pub(crate) operands: SmallVec<[Operand; 3]>,
    /// Nothing reads the result (a side effect is why the instruction runs).
    pub(crate) unused: bool,
    /// For `get-tuple-element`: the element may be moved out of the tuple, because every user of the tuple is
    /// a `get-tuple-element` and this is the last one of its index.
    pub(crate) take: Option<usize>,
    /// For `constant`, and for calls of what only gives constants: its value, made at the first use.
    pub(crate) constant: OnceLock<Value>,
    /// For `call` of a computation without parameters that has nothing but constants and tuples of them:
    /// that, and how many instructions it executes.
    pub(crate) gives: Option<(ComputationId, u64)>,
    /// Which of its operands must be complete, not only pending.
    pub(crate) looks: Looks,
    pub(crate) prepared: Prepared,
}

/// What an operation derives from its attributes and its operands' sizes, kept from its first run on.
#[derive(Default)]
pub(crate) struct Prepared(OnceLock<Arc<dyn Any + Send + Sync>>);

impl fmt::Debug for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Prepared").field(&self.0.get().is_some()).finish()
    }
}

impl Prepared {
    /// The plan that was kept, if it is of that type.
    pub(crate) fn get<P: Any>(&self) -> Option<&P> {
        self.0.get()?.downcast_ref()
    }

    /// Keeps this, unless something was kept before.
    pub(crate) fn keep<P: Any + Send + Sync>(&self, made: &Arc<P>) {
        self.0.get_or_init(|| Arc::clone(made) as Arc<dyn Any + Send + Sync>);
    }
}

/// The parts of its operands' values that an instruction reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Looks {
    /// Nothing, or nothing in the program is pending.
    Away,
    /// The outermost tuple, whose elements may be pending.
    Outside,
    /// Everything.
    Inside,
}

/// An operand of a step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operand {
    pub(crate) slot: u32,
    /// This is the last use of the value.
    pub(crate) last: bool,
}

impl Plan {
    pub(crate) fn new(module: &Module, computation: ComputationId, effects: &[bool], promises: bool) -> Plan {
        let order: Vec<InstrId> = module.instructions(computation).collect();
        let slot_of: FxHashMap<InstrId, u32> = order.iter().zip(0..).map(|(&id, slot)| (id, slot)).collect();
        let root = slot_of[&module.root(computation)];

        let mut live = vec![false; order.len()];
        live[root as usize] = true;
        for (slot, &id) in order.iter().enumerate().rev() {
            if !live[slot] && !has_effect(module, id, effects) {
                continue;
            }
            live[slot] = true;
            let instr = module.instr(id);
            for operand in instr.operands().iter().chain(&instr.control_predecessors) {
                live[slot_of[operand] as usize] = true;
            }
        }

        let mut parameters = vec![None; module.computation(computation).parameters().len()];
        let mut steps = Vec::with_capacity(order.len());
        for (slot, &id) in order.iter().enumerate().filter(|&(slot, _)| live[slot]) {
            let instr = module.instr(id);
            if instr.opcode == Opcode::Parameter {
                let number = instr.parameter_number().and_then(|n| usize::try_from(n).ok());
                let number = number.expect("invariant: the verifier checked the parameter's number");
                parameters[number] = Some(slot as u32);
                continue;
            }
            let operands =
                instr.operands().iter().map(|o| Operand { slot: slot_of[o], last: false }).collect();
            let (slot, constant, prepared) = (slot as u32, OnceLock::new(), Prepared::default());
            let looks = if promises { looks(module, id) } else { Looks::Away };
            let gives = given_by(module, id);
            steps.push(Step {
                id,
                slot,
                operands,
                unused: false,
                take: None,
                constant,
                gives,
                looks,
                prepared,
            });
        }
        mark_uses(module, &mut steps, order.len(), root);
        Plan { steps, parameters, slots: order.len(), root }
    }
}

/// What a call gives whose callee has nothing but given constants and tuples, and how many instructions that
/// executes: all but those that its root does not need.
fn given_by(module: &Module, id: InstrId) -> Option<(ComputationId, u64)> {
    let instr = module.instr(id);
    if instr.opcode != Opcode::Call || !instr.operands().is_empty() {
        return None;
    }
    let callee = instr.attrs.computation(AttrKey::ToApply)?;
    let mut executed: Vec<InstrId> = vec![module.root(callee)];
    let mut next = 0;
    while let Some(&id) = executed.get(next) {
        next += 1;
        let instr = module.instr(id);
        let given = matches!(instr.attrs.constant_value(), Some(ConstantValue::Given(_)));
        let plain = instr.opcode == Opcode::Constant && given || instr.opcode == Opcode::Tuple;
        if !plain || !instr.control_predecessors.is_empty() {
            return None;
        }
        for operand in instr.operands() {
            if !executed.contains(operand) {
                executed.push(*operand);
            }
        }
        if executed.len() > MAX_GIVEN {
            return None;
        }
    }
    // Another instruction in it may have an effect.
    let all = module.instructions(callee).count();
    (all == executed.len()).then_some((callee, all as u64))
}

/// Instructions up to which a callee is looked through.
const MAX_GIVEN: usize = 64;

/// Finds last uses, unused results and elements that may be moved out of their tuples, from the end
/// backwards.
fn mark_uses(module: &Module, steps: &mut [Step], slots: usize, root: u32) {
    let mut used = vec![false; slots];
    used[root as usize] = true;
    // Slots that something other than a get-tuple-element reads as a whole.
    let mut whole = vec![false; slots];
    whole[root as usize] = true;
    let mut taken: FxHashMap<(u32, usize), ()> = FxHashMap::default();
    for step in steps.iter() {
        if module.instr(step.id).opcode != Opcode::GetTupleElement {
            step.operands.iter().for_each(|o| whole[o.slot as usize] = true);
        }
    }
    for step in steps.iter_mut().rev() {
        step.unused = !used[step.slot as usize];
        // Of an operand that occurs twice, the later slot is the last use.
        for operand in step.operands.iter_mut().rev() {
            operand.last = !std::mem::replace(&mut used[operand.slot as usize], true);
        }
        let instr = module.instr(step.id);
        if instr.opcode == Opcode::GetTupleElement {
            let tuple = step.operands[0].slot;
            let index = instr.attrs.int(hlo::AttrKey::Index).and_then(|i| usize::try_from(i).ok());
            step.take = index.filter(|&i| !whole[tuple as usize] && taken.insert((tuple, i), ()).is_none());
        }
    }
}

/// Whether a program may have pending values: an operation that another one waits for.
pub(crate) fn promises(module: &Module) -> bool {
    let mut instructions = module.computations().iter().flat_map(|&c| module.instructions(c));
    instructions.any(|id| {
        matches!(
            module.instr(id).opcode,
            Opcode::AllGatherStart
                | Opcode::AllReduceStart
                | Opcode::AsyncStart
                | Opcode::CollectivePermuteStart
                | Opcode::Recv
                | Opcode::Send
        )
    })
}

/// Whether devices may exchange values in a program: by collectives, transfers, or in what a custom call
/// stands for.
pub(crate) fn exchanges(module: &Module) -> bool {
    let mut instructions = module.computations().iter().flat_map(|&c| module.instructions(c));
    instructions.any(|id| {
        let opcode = module.instr(id).opcode;
        opcode.flags().collective || opcode.flags().side_effect || opcode == Opcode::CustomCall
    }) || promises(module)
}

/// What an instruction reads. What passes values on, and what waits by itself, reads nothing.
fn looks(module: &Module, id: InstrId) -> Looks {
    let instr = module.instr(id);
    let same_type = |o: &InstrId| module.instr(*o).shape.element_type() == instr.shape.element_type();
    if matches!(
        instr.opcode,
        Opcode::AddDependency
            | Opcode::AfterAll
            | Opcode::AllReduceDone
            | Opcode::AsyncStart
            | Opcode::Call
            | Opcode::Conditional
            | Opcode::Domain
            | Opcode::Fusion
            | Opcode::OptBarrier
            | Opcode::Tuple
            | Opcode::While
    ) || instr.opcode == Opcode::Copy && instr.operands().iter().all(same_type)
    {
        return Looks::Away;
    }
    if matches!(
        instr.opcode,
        Opcode::AllGatherDone
            | Opcode::AsyncDone
            | Opcode::AsyncUpdate
            | Opcode::CollectivePermuteDone
            | Opcode::GetTupleElement
            | Opcode::RecvDone
            | Opcode::SendDone
    ) {
        return Looks::Outside;
    }
    Looks::Inside
}

/// For each computation (by index) whether running it may have a side effect.
pub(crate) fn side_effects(module: &Module) -> Vec<bool> {
    let mut effects = vec![false; module.computation_capacity()];
    // Callees mostly come first in the text; until nothing changes, for those that do not.
    loop {
        let mut changed = false;
        for &c in module.computations() {
            if !effects[c.index()] && module.instructions(c).any(|id| has_effect(module, id, &effects)) {
                effects[c.index()] = true;
                changed = true;
            }
        }
        if !changed {
            return effects;
        }
    }
}

fn has_effect(module: &Module, id: InstrId, effects: &[bool]) -> bool {
    let instr = module.instr(id);
    let flags = instr.opcode.flags();
    flags.collective
        || flags.side_effect && !is_pure_form(module, id)
        || instr.attrs.called_computations().iter().any(|c| effects[c.index()])
}

/// Whether an instruction of an opcode with side effects has no observable one.
fn is_pure_form(module: &Module, id: InstrId) -> bool {
    let instr = module.instr(id);
    matches!(
        instr.opcode,
        Opcode::AsyncStart | Opcode::AsyncUpdate | Opcode::AsyncDone | Opcode::CopyStart | Opcode::CopyDone
    ) || instr.opcode == Opcode::CustomCall && !instr.attrs.bool(hlo::AttrKey::CustomCallHasSideEffect)
}
