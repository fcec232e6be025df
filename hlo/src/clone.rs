//! Copies of modules.

use rustc_hash::FxHashMap;

use crate::attrs::Attrs;
use crate::ids::{ComputationId, InstrId};
use crate::module::{Module, NewInstruction};

/// A copy with fresh ids in the order of the text and without tombstones. Everything that the text can say is
/// kept.
pub(crate) fn clone_module(source: &Module) -> Module {
    let mut module = Module::new(&source.name);
    module.header = source.header.clone();
    module.stack_tables = source.stack_tables.clone();
    module.text_style = source.text_style;

    let mut computations: FxHashMap<ComputationId, ComputationId> = FxHashMap::default();
    for &old in source.computations() {
        let c = source.computation(old);
        let new = module.add_computation(c.name.clone(), c.span);
        let copy = module.computation_mut(new);
        copy.execution_thread.clone_from(&c.execution_thread);
        copy.declared.clone_from(&c.declared);
        computations.insert(old, new);
    }
    let mut instructions: FxHashMap<InstrId, InstrId> = FxHashMap::default();
    for &old in source.computations() {
        for id in source.instructions(old) {
            let i = source.instr(id);
            let mut attrs: Attrs = i.attrs.clone();
            attrs.map_computations(|c| computations[&c]);
            let new = NewInstruction {
                opcode: i.opcode,
                shape: i.shape.clone(),
                name: i.name.clone(),
                operands: smallvec::SmallVec::new(),
                attrs,
                span: i.span,
            };
            instructions.insert(id, module.append(computations[&old], new));
        }
    }
    for &old in source.computations() {
        for id in source.instructions(old) {
            let i = source.instr(id);
            let operands: Vec<InstrId> = i.operands().iter().map(|o| instructions[o]).collect();
            module.set_operands(instructions[&id], &operands);
            module.instr_mut(instructions[&id]).control_predecessors =
                i.control_predecessors.iter().map(|o| instructions[o]).collect();
        }
        if let Some(root) = source.computation(old).root() {
            module.set_root(computations[&old], instructions[&root]);
        }
    }
    if let Some(entry) = source.entry_or_none() {
        module.set_entry(computations[&entry]);
    }
    module
}
