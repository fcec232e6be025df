//! Shardings that determine a value.
//!
//! Most shardings are hints, which a rewriting may drop. Conversions between a global array and its shards
//! depend on one: `SPMDFullToShardShape` on that of its operand, `SPMDShardToFullShape` on its own, and
//! Shardy's conversions possibly on the attributes of the `call` between them.

use hlo::attrs::{AttrKey, AttrValue};
use hlo::shardy::MANUAL_AXES;
use hlo::{InstrId, Module, NewInstruction, Opcode};
use hlo_interp::custom_call::{Call, Direction};

/// The instructions that a conversion between a global array and its shards depends on: itself, and those
/// whose annotations it reads. None of them may be rewritten. Empty for any other instruction.
pub(super) fn read_by(module: &Module, id: InstrId) -> Vec<InstrId> {
    let instr = module.instr(id);
    let marks = |key: &str| instr.attrs.frontend_attributes().is_some_and(|a| a.get(key).is_some());
    if instr.opcode == Opcode::Call && marks(MANUAL_AXES) {
        return vec![id];
    }
    if instr.opcode != Opcode::CustomCall {
        return Vec::new();
    }
    match (Call { instruction: instr, module }).shards() {
        None => Vec::new(),
        Some(Ok((_, tilings))) if tilings.iter().all(Option::is_none) => Vec::new(),
        Some(Ok((Direction::ToWhole, _))) => vec![id],
        Some(Ok((Direction::ToShard, _)) | Err(_)) => {
            std::iter::once(id).chain(instr.operands().iter().copied()).collect()
        }
    }
}

/// Moves the shardings that conversions read onto `Sharding` calls of their own, so that only these calls
/// must stay.
pub fn annotate(module: &mut Module) {
    let all = module.computations().iter().flat_map(|&c| module.instructions(c));
    let changes: Vec<InstrId> = all.filter(|&id| module.instr(id).opcode == Opcode::CustomCall).collect();
    for id in changes {
        let read = read_by(module, id);
        for (slot, &operand) in read.iter().skip(1).enumerate() {
            let from = module.instr(operand);
            let Some(sharding) = from.attrs.get(AttrKey::Sharding).cloned() else { continue };
            if from.opcode == Opcode::CustomCall || from.opcode == Opcode::Parameter {
                continue;
            }
            let name = from.name.clone();
            let name = module.unique_name(&name);
            let new =
                NewInstruction::new(Opcode::CustomCall, module.instr(operand).shape.clone(), &[operand])
                    .attr(AttrKey::CustomCallTarget, AttrValue::Str("Sharding".into()))
                    .attr(AttrKey::Sharding, sharding)
                    .named(name);
            let annotation = module.insert_before(id, new);
            module.set_operand(id, slot, annotation);
        }
    }
}
