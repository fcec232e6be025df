//! Which custom calls a program needs.

use hlo::{ComputationId, InstrId, Module, Opcode};
use hlo_interp::custom_call::Call;
use rustc_hash::FxHashSet;

/// The first custom call that a run comes to and that the interpreter, which executes them for compiled
/// programs too, does not know, or not of these operands, and why. Branches of conditionals are left out: a
/// run may take another one.
pub fn unknown_custom_call(module: &Module) -> Option<(InstrId, hlo_interp::RunError)> {
    let entry = module.entry_or_none()?;
    let mut seen: FxHashSet<ComputationId> = [entry].into_iter().collect();
    let mut pending = vec![entry];
    while let Some(c) = pending.pop() {
        for id in module.instructions(c) {
            let instr = module.instr(id);
            if instr.opcode == Opcode::CustomCall
                && let Err(error) = (Call { instruction: instr, module }).check()
            {
                return Some((id, error));
            }
            if instr.opcode != Opcode::Conditional && instr.opcode != Opcode::CustomCall {
                let called = instr.attrs.called_computations().into_iter();
                pending.extend(called.filter(|&c| seen.insert(c)));
            }
        }
    }
    None
}
