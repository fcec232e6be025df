//! The role of each opcode in fusions, and which computations run instruction by instruction (rather than
//! being applied to elements).

use hlo::attrs::AttrKey;
use hlo::{ArrayShape, ComputationId, InstrId, Module, Opcode, Shape};
use rustc_hash::FxHashSet;

use crate::passes::facts::short_reduction_len;

/// How an instruction may take part in fusions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Each element of its result is an expression of elements of its operands: anywhere in a loop.
    Loop,
    /// Folds dimensions ([`super::folds`]): the root of a reduction, or inside a chain over rows.
    Reduce,
    /// Writes a window of its first operand: the root of a loop.
    Update,
    /// A scalar constant, which every fusion has a copy of.
    Scalar,
    /// Not fusible.
    Outside,
}

fn is_static_array(shape: &Shape) -> bool {
    shape.as_array().is_some_and(|a| !a.is_dynamic())
}

/// The role of an instruction, by its opcode and shapes.
pub fn role(module: &Module, id: InstrId) -> Role {
    let instr = module.instr(id);
    let arrays = instr.operands().iter().all(|&o| is_static_array(&module.instr(o).shape));
    if !arrays {
        return Role::Outside;
    }
    if !is_static_array(&instr.shape) {
        let all = instr.shape.as_tuple().is_some_and(|t| t.iter().all(is_static_array));
        let folds = instr.opcode == Opcode::Reduce && all && !applies_loops(module, id);
        return if folds { Role::Reduce } else { Role::Outside };
    }
    match instr.opcode {
        Opcode::Constant => {
            let given = crate::passes::facts::literal(module, id).is_some();
            if given && instr.shape.is_scalar() { Role::Scalar } else { Role::Outside }
        }
        Opcode::Reduce if crate::passes::facts::short_reduction_len(module, id).is_some() => Role::Loop,
        Opcode::ReduceWindow if crate::passes::facts::small_window_len(module, id).is_some() => Role::Loop,
        Opcode::Reduce if applies_loops(module, id) => Role::Outside,
        Opcode::Reduce => Role::Reduce,
        Opcode::DynamicUpdateSlice => Role::Update,
        Opcode::Concatenate if crate::passes::facts::is_concat_by_copy(module, id) => Role::Outside,
        Opcode::BitcastConvert
        | Opcode::Broadcast
        | Opcode::Concatenate
        | Opcode::Copy
        | Opcode::DynamicSlice
        | Opcode::Gather
        | Opcode::Iota
        | Opcode::Pad
        | Opcode::Reshape
        | Opcode::Reverse
        | Opcode::Slice
        | Opcode::Transpose => Role::Loop,
        Opcode::Map if is_expression(module, id) => Role::Loop,
        Opcode::Dot if crate::passes::facts::is_product(module, id) => Role::Loop,
        Opcode::Dot if super::small_k::is_fused_in_loops(module, id) => Role::Loop,
        Opcode::Dot if super::folds::space(module, id).is_some() => Role::Reduce,
        op if op.is_elementwise() => Role::Loop,
        _ => Role::Outside,
    }
}

/// Whether a computation that is applied to elements contains loops, branches (both diverge between elements,
/// so no kernel has them) or reductions that are not unrolled.
pub fn applies_loops(module: &Module, id: InstrId) -> bool {
    let mut pending = module.instr(id).attrs.called_computations();
    let mut seen: FxHashSet<ComputationId> = FxHashSet::default();
    while let Some(c) = pending.pop() {
        if !seen.insert(c) {
            continue;
        }
        for id in module.instructions(c) {
            let opcode = module.instr(id).opcode;
            let many = opcode == Opcode::Reduce && short_reduction_len(module, id).is_none();
            if many || matches!(opcode, Opcode::While | Opcode::Conditional) {
                return true;
            }
            pending.extend(module.instr(id).attrs.called_computations());
        }
    }
    false
}

/// Whether the computation of a map consists of scalar expressions, calls included.
fn is_expression(module: &Module, map: InstrId) -> bool {
    let mut pending: Vec<ComputationId> = module.instr(map).attrs.called_computations().to_vec();
    let mut seen: FxHashSet<ComputationId> = FxHashSet::default();
    while let Some(c) = pending.pop() {
        if !seen.insert(c) {
            continue;
        }
        for id in module.instructions(c) {
            let instr = module.instr(id);
            let fits = match instr.opcode {
                Opcode::Constant => crate::passes::facts::literal(module, id).is_some(),
                Opcode::Parameter | Opcode::Tuple | Opcode::GetTupleElement => true,
                Opcode::Call | Opcode::Map | Opcode::Fusion => {
                    pending.extend(instr.attrs.called_computations());
                    true
                }
                _ => role(module, id) == Role::Loop,
            };
            if !fits || !instr.control_predecessors.is_empty() {
                return false;
            }
        }
    }
    true
}

/// Whether the result is a view of the operand: the same bytes in row-major order.
pub fn is_view(module: &Module, id: InstrId) -> bool {
    let instr = module.instr(id);
    let ty = |id: InstrId| module.instr(id).shape.element_type();
    instr.opcode == Opcode::Reshape && instr.operands().first().is_some_and(|&o| ty(o) == ty(id))
}

/// The computations that run instruction by instruction: the entry, bodies and conditions of loops, branches,
/// callees; in program order. Not those that are applied to elements, those of fusions, and those of loops
/// compiled as one kernel.
pub fn programs(module: &Module) -> Vec<ComputationId> {
    let mut found: FxHashSet<ComputationId> = FxHashSet::default();
    let mut pending: Vec<ComputationId> = module.entry_or_none().into_iter().collect();
    while let Some(c) = pending.pop() {
        if !found.insert(c) {
            continue;
        }
        for id in module.instructions(c) {
            let instr = module.instr(id);
            if super::is_while_kernel(module, id) {
                continue;
            }
            if matches!(
                instr.opcode,
                Opcode::While | Opcode::Conditional | Opcode::Call | Opcode::AsyncStart | Opcode::AsyncUpdate
            ) {
                pending.extend(instr.attrs.called_computations());
            }
        }
    }
    // A computation that is also applied to elements is not taken.
    let applied: FxHashSet<ComputationId> = module
        .computations()
        .iter()
        .flat_map(|&c| module.instructions(c))
        .map(|id| module.instr(id))
        .filter(|instr| instr.attrs.get(AttrKey::ToApply).is_some() && instr.opcode != Opcode::Call)
        .flat_map(|instr| instr.attrs.called_computations())
        .collect();
    module.computations().iter().copied().filter(|c| found.contains(c) && !applied.contains(c)).collect()
}

/// The dimensions of an array.
pub fn dims(module: &Module, id: InstrId) -> &[i64] {
    module.instr(id).shape.as_array().map_or(&[], |a: &ArrayShape| &a.dims)
}
