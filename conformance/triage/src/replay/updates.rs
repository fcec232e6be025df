//! What loops update in place: arrays of which every iteration writes a part, and that iterations hand on.
//!
//! Whoever keeps such an array makes the next iteration copy it, which of `n` iterations costs `n` arrays
//! where the program takes one.

use hlo::{ComputationId, InstrId, Module, Opcode};

use hlo_certify::bounds::only_passes_on;

/// The instructions of bodies of loops that give one of their operands with a part replaced, and do nothing
/// else: `dynamic-update-slice`, and fusions that move elements only and end in it.
pub(super) fn in_loops(module: &Module) -> Vec<InstrId> {
    let mut found = Vec::new();
    for &c in module.computations() {
        for id in module.instructions(c) {
            if let Some(body) = body(module, id) {
                found.extend(module.instructions(body).filter(|&id| updates(module, id)));
            }
        }
    }
    found
}

fn body(module: &Module, id: InstrId) -> Option<ComputationId> {
    let instr = module.instr(id);
    instr.attrs.computation(hlo::AttrKey::Body).filter(|_| instr.opcode == Opcode::While)
}

fn updates(module: &Module, id: InstrId) -> bool {
    let instr = module.instr(id);
    match instr.attrs.computation(hlo::AttrKey::Calls).filter(|_| instr.opcode == Opcode::Fusion) {
        None => instr.opcode == Opcode::DynamicUpdateSlice,
        Some(called) => {
            module.instr(module.root(called)).opcode == Opcode::DynamicUpdateSlice
                && only_passes_on(module, id)
        }
    }
}
