//! What XLA keeps of a `sdy.manual_computation` when a module leaves MLIR: a call between changes of its
//! operands and results (`xla/service/spmd/shardy/sdy_round_trip/shard_map_export.cc`).

use hlo::attrs::NamedSharding;
use hlo::shardy::{self, MANUAL_AXES, MESHES};
use hlo::{AttrKey, Instruction, Module, Opcode};

/// The shardings of some values, and the axes in which their shapes are those of shards.
pub(crate) type OfValues = (Vec<NamedSharding>, Vec<Box<str>>);

/// The shardings that an attribute of a call says, one for each value, and the axes that are manual. The
/// attributes stand on the call itself, or, in older dumps, on the `call` of the computation that it is for.
/// `Ok(None)`: neither has them.
pub(crate) fn shardings(
    module: &Module,
    instr: &Instruction,
    key: &str,
    body: Option<&Instruction>,
) -> Result<Option<OfValues>, String> {
    let with = |i: &&Instruction| i.attrs.frontend_attributes().is_some_and(|a| a.get(key).is_some());
    let Some(from) = [Some(instr), body].into_iter().flatten().find(with) else { return Ok(None) };
    let attributes = from.attrs.frontend_attributes().ok_or("has no frontend attributes")?;
    let text = attributes.get(key).unwrap_or_default();
    let meshes = shardy::meshes_text(module);
    let malformed = |what: &str, text: &str| format!("has a {what} that cannot be read: {text}");
    let meshes = shardy::meshes(meshes).ok_or_else(|| malformed(MESHES, meshes))?;
    let shardings = shardy::per_value(text, &meshes).ok_or_else(|| malformed(key, text))?;
    let manual = attributes.get(MANUAL_AXES).unwrap_or_default();
    let manual = shardy::manual_axes(manual).ok_or_else(|| malformed(MANUAL_AXES, manual))?;
    Ok(Some((shardings, manual)))
}

/// The `call` that takes what an instruction gives, through elements of tuples.
pub(crate) fn taker<'m>(module: &'m Module, instr: &'m Instruction) -> Option<&'m Instruction> {
    let id = module.instructions(instr.parent()).find(|&id| std::ptr::eq(module.instr(id), instr))?;
    let mut pending = vec![id];
    while let Some(id) = pending.pop() {
        for user in module.users(id) {
            let instr = module.instr(user.user);
            if instr.opcode == Opcode::Call {
                return Some(instr);
            }
            if instr.opcode == Opcode::GetTupleElement {
                pending.push(user.user);
            }
        }
    }
    None
}

/// The `call` that gives what an instruction takes, through elements of tuples.
pub(crate) fn giver<'m>(module: &'m Module, instr: &Instruction) -> Option<&'m Instruction> {
    instr.operands().iter().find_map(|&operand| {
        let mut instr = module.instr(operand);
        while let (Opcode::GetTupleElement, [tuple]) = (instr.opcode, instr.operands()) {
            instr = module.instr(*tuple);
        }
        (instr.opcode == Opcode::Call && instr.attrs.get(AttrKey::ToApply).is_some()).then_some(instr)
    })
}
