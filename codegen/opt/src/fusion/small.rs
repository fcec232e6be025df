//! Loops that are one function: so little happens in an iteration that launching a kernel for it would take longer.

use hlo::attrs::AttrKey;
use hlo::{ComputationId, InstrId, Module, Opcode, Shape};

use super::kinds::{Role, role};
use super::maps::again;
use crate::cost_model::CostModel;

/// The most elements of arrays that an iteration may compute.
const MAX_ELEMENTS: i64 = CostModel::CPU.max_loop_elements;
/// As an expression an iteration may take so many times the arithmetic of its instructions.
const MOST_AGAIN: f64 = CostModel::CPU.max_loop_again_factor;
/// And so many simple vector operations more, which are less than what kernels of their own cost.
const LITTLE: f64 = CostModel::CPU.little_ops;
/// The most instructions of body and condition.
const MAX_INSTRUCTIONS: usize = CostModel::CPU.max_loop_instructions;

/// The most windows of an array that are replaced one after the other, for them to be all of it that is computed.
const MOST_WINDOWS: usize = CostModel::CPU.max_windows;

/// Whether a `while` is to be compiled as a whole (`hlo_codegen::kernel::Request::Loop`): its state is a tuple of arrays, of which only small ones (or small
/// windows of them) change, and all that its computations do can be an expression of elements. They stay as they are, without fusions.
pub fn small_loop(module: &Module, id: InstrId) -> bool {
    let instr = module.instr(id);
    let of = |key| instr.attrs.computation(key);
    let (Opcode::While, Some(condition), Some(body), Shape::Tuple(state)) =
        (instr.opcode, of(AttrKey::Condition), of(AttrKey::Body), &instr.shape)
    else {
        return false;
    };
    if !state.iter().all(|s| s.as_array().is_some_and(|a| !a.is_dynamic())) {
        return false;
    }
    if module.computation(condition).len() + module.computation(body).len() > MAX_INSTRUCTIONS
        || !is_expression(module, condition)
        || !is_expression(module, body)
    {
        return false;
    }
    let root = module.instr(module.root(body));
    if root.opcode != Opcode::Tuple {
        return false;
    }
    let mut elements = 0i64;
    for (i, &next) in root.operands().iter().enumerate() {
        elements = elements.saturating_add(computed(module, next, i));
    }
    if elements > MAX_ELEMENTS {
        return false;
    }
    let (all, once) = again(module, body);
    all <= once * MOST_AGAIN + LITTLE
}

/// The chain of `dynamic-update-slice`s, first one first, that makes a value of what `is_base` says; `None`: it is something else.
pub fn window_updates(
    module: &Module,
    at: InstrId,
    is_base: &dyn Fn(InstrId) -> bool,
) -> Option<Vec<InstrId>> {
    let (mut chain, mut at) = (Vec::new(), at);
    while !is_base(at) {
        let instr = module.instr(at);
        if instr.opcode != Opcode::DynamicUpdateSlice || chain.len() == MOST_WINDOWS {
            return None;
        }
        chain.push(at);
        at = instr.operands()[0];
    }
    chain.reverse();
    (!chain.is_empty()).then_some(chain)
}

/// Elements of leaf `i` of the state that an iteration computes, of which `next` is what it becomes: all, none if it stays, or those of windows that are less than
/// half of it.
fn computed(module: &Module, next: InstrId, i: usize) -> i64 {
    let elements = |id: InstrId| {
        module.instr(id).shape.as_array().and_then(|a| a.checked_elements()).unwrap_or(i64::MAX)
    };
    let all = elements(next);
    let (mut at, mut windows, mut replaced) = (next, 0, 0i64);
    while module.instr(at).opcode == Opcode::DynamicUpdateSlice && windows < MOST_WINDOWS {
        let operands = module.instr(at).operands();
        (at, windows, replaced) = (operands[0], windows + 1, replaced.saturating_add(elements(operands[1])));
    }
    let instr = module.instr(at);
    let kept = instr.opcode == Opcode::GetTupleElement
        && instr.attrs.int(AttrKey::Index) == Some(i as i64)
        && module.instr(instr.operands()[0]).opcode == Opcode::Parameter;
    if kept && replaced.saturating_mul(2) <= all { replaced } else { all }
}

/// Whether a computation takes tuples apart, computes elements, and puts a tuple together.
fn is_expression(module: &Module, c: ComputationId) -> bool {
    let root = module.root(c);
    module.instructions(c).all(|id| {
        let instr = module.instr(id);
        instr.control_predecessors.is_empty()
            && match instr.opcode {
                Opcode::Parameter => true,
                Opcode::GetTupleElement => {
                    module.instr(instr.operands()[0]).opcode == Opcode::Parameter
                        && instr.shape.as_array().is_some()
                }
                Opcode::Tuple => id == root,
                Opcode::Constant => {
                    crate::passes::facts::literal(module, id).is_some() && instr.shape.as_array().is_some()
                }
                _ => matches!(role(module, id), Role::Loop | Role::Update),
            }
    })
}
