//! Single-kernel loops: a `while` whose iterations do so little that launching a kernel for them would take
//! longer is compiled as one function.

use hlo::attrs::AttrKey;
use hlo::{ComputationId, InstrId, Module, Opcode, Shape};

use super::kinds::{Role, role};
use super::maps::again;
use crate::cost_model::CostModel;

/// The maximum number of array elements that an iteration may compute.
const MAX_LOOP_ELEMENTS: i64 = CostModel::CPU.max_loop_elements;
/// Evaluated as expressions, an iteration may take at most this many times the arithmetic of its
/// instructions,
const MAX_RECOMPUTE_FACTOR: f64 = CostModel::CPU.max_loop_recompute_factor;
/// and this many simple vector operations more, which is less than kernels of their own would cost.
const SLACK_OPS: f64 = CostModel::CPU.loop_slack_ops;
/// The maximum number of instructions of body and condition.
const MAX_INSTRUCTIONS: usize = CostModel::CPU.max_loop_instructions;

/// The maximum length of a chain of slice updates of one array, for which only the windows count as computed.
const MAX_UPDATE_WINDOWS: usize = CostModel::CPU.max_update_windows;

/// Whether a `while` is compiled as one kernel (`hlo_codegen::kernel::Request::Loop`): its state is a tuple
/// of arrays, of which only small ones (or small windows of them) change, and everything that its
/// computations do can be an expression of elements. Its computations stay as they are, without fusions.
pub fn is_while_kernel(module: &Module, id: InstrId) -> bool {
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
    if elements > MAX_LOOP_ELEMENTS {
        return false;
    }
    let (all, once) = again(module, body);
    all <= once * MAX_RECOMPUTE_FACTOR + SLACK_OPS
}

/// The chain of `dynamic-update-slice`s, first one first, that computes a value from one that `is_base`
/// accepts; `None` if it is anything else.
pub fn update_slice_chain(
    module: &Module,
    at: InstrId,
    is_base: &dyn Fn(InstrId) -> bool,
) -> Option<Vec<InstrId>> {
    let (mut chain, mut at) = (Vec::new(), at);
    while !is_base(at) {
        let instr = module.instr(at);
        if instr.opcode != Opcode::DynamicUpdateSlice || chain.len() == MAX_UPDATE_WINDOWS {
            return None;
        }
        chain.push(at);
        at = instr.operands()[0];
    }
    chain.reverse();
    (!chain.is_empty()).then_some(chain)
}

/// The number of elements of leaf `i` of the state that an iteration computes, given its next value: all of
/// them, none if the leaf is invariant, or those of the updated windows if they are less than half.
fn computed(module: &Module, next: InstrId, i: usize) -> i64 {
    let elements = |id: InstrId| {
        module.instr(id).shape.as_array().and_then(|a| a.checked_elements()).unwrap_or(i64::MAX)
    };
    let all = elements(next);
    let (mut at, mut windows, mut replaced) = (next, 0, 0i64);
    while module.instr(at).opcode == Opcode::DynamicUpdateSlice && windows < MAX_UPDATE_WINDOWS {
        let operands = module.instr(at).operands();
        (at, windows, replaced) = (operands[0], windows + 1, replaced.saturating_add(elements(operands[1])));
    }
    let instr = module.instr(at);
    let kept = instr.opcode == Opcode::GetTupleElement
        && instr.attrs.int(AttrKey::Index) == Some(i as i64)
        && module.instr(instr.operands()[0]).opcode == Opcode::Parameter;
    if kept && replaced.saturating_mul(2) <= all { replaced } else { all }
}

/// Whether a computation only takes tuples apart, computes elements, and builds a tuple.
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
