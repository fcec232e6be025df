//! Flattening of the call graph: every computation that control flow calls gets one caller, so that its
//! values can have buffers of their own.
//!
//! A copy computes what the original does: names stay, so that elided constants keep their values, and so do
//! ordinals of random numbers, by which copies share a state. What exchanges values with hosts or other
//! devices is not copied: its channels are its own.

use hlo::{ComputationId, InstrId, Module, NewInstruction, Opcode};
use rustc_hash::{FxHashMap, FxHashSet};

use super::PassCx;
use super::calls::MAX_EXPANDED;
use super::edit::callees_first;
use super::effects::Effects;

/// The maximum size of the module with copies. Lowering has made several instructions of one, and what
/// [`super::check_size`] accepts must still fit.
const MAX_INSTRUCTIONS: u64 = 4 * MAX_EXPANDED;

/// Whether what an instruction calls runs as control flow.
fn calls_control(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::While | Opcode::Conditional | Opcode::Call)
}

pub(super) fn run(module: &mut Module, cx: &mut PassCx<'_>) -> u64 {
    let mut seen: FxHashSet<ComputationId> = FxHashSet::default();
    let mut pending = vec![module.entry()];
    let mut copies: Vec<ComputationId> = Vec::new();
    let effects = Effects::beyond_drawing();
    let mut size: usize = module.computations().iter().map(|&c| module.computation(c).len()).sum();
    let mut applied = 0;
    while let Some(c) = pending.pop() {
        for id in module.instructions(c).collect::<Vec<_>>() {
            if !calls_control(module.instr(id).opcode) {
                continue;
            }
            let called = module.instr(id).attrs.called_computations();
            if called.iter().collect::<FxHashSet<_>>().len() == called.len()
                && called.iter().all(|c| !seen.contains(c))
            {
                seen.extend(called.iter().copied());
                pending.extend(called);
                continue;
            }
            let more: usize = called.iter().map(|&c| module.computation(c).len()).sum();
            let whole = (size + more) as u64 <= MAX_INSTRUCTIONS && !effects.has(module, id);
            if !whole || !cx.fuel.take() {
                // Visited already; shared as it is.
                pending.extend(called.into_iter().filter(|&c| seen.insert(c)));
                continue;
            }
            applied += 1;
            let before = module.instruction_capacity();
            let mut attrs = module.instr(id).attrs.clone();
            attrs.map_computations(|c| {
                if seen.insert(c) {
                    pending.push(c);
                    return c;
                }
                let copy = copied(module, c, &mut copies);
                seen.insert(copy);
                pending.push(copy);
                copy
            });
            module.instr_mut(id).attrs = attrs;
            size += module.instruction_capacity() - before;
        }
    }
    if !copies.is_empty() {
        module.set_computation_order(callees_first(module));
    }
    applied
}

/// A copy of a computation, with fusions of its own.
fn copied(module: &mut Module, c: ComputationId, copies: &mut Vec<ComputationId>) -> ComputationId {
    let mut first = None;
    let mut pending = vec![(c, None)];
    while let Some((c, fusion)) = pending.pop() {
        let (name, span) = (module.computation(c).name.clone(), module.computation(c).span);
        let name = module.unique_computation_name(&name);
        let copy = module.add_computation(name, span);
        module.computation_mut(copy).execution_thread = module.computation(c).execution_thread.clone();
        copies.push(copy);
        match fusion {
            Some(fusion) => {
                let instr: &mut hlo::Instruction = module.instr_mut(fusion);
                instr.attrs.map_computations(|_| copy);
            }
            None => first = Some(copy),
        }
        let mut map: FxHashMap<InstrId, InstrId> = FxHashMap::default();
        for id in module.instructions(c).collect::<Vec<_>>() {
            let instr = module.instr(id);
            let new = NewInstruction {
                opcode: instr.opcode,
                shape: instr.shape.clone(),
                name: instr.name.clone(),
                operands: instr.operands().iter().map(|o| map[o]).collect(),
                attrs: instr.attrs.clone(),
                span: instr.span,
            };
            let before = instr.control_predecessors.iter().map(|p| map[p]).collect();
            let fused = (instr.opcode == Opcode::Fusion).then(|| instr.attrs.called_computations());
            let new = module.append(copy, new);
            module.instr_mut(new).control_predecessors = before;
            map.insert(id, new);
            if let Some([inner]) = fused.as_deref() {
                pending.push((*inner, Some(new)));
            }
        }
        module.set_root(copy, map[&module.root(c)]);
    }
    first.expect("invariant: the first computation that is copied is the one that was asked for")
}
