//! What an instruction says of values, without running: literals, arrays of one value.

use std::sync::Arc;

use crate::{
    AttrKey, Bits, ConstantValue, ElementType, InstrId, Instruction, Literal, Module, Opcode, with_buffer,
};

/// How many operands are followed.
const DEPTH: u32 = 8;

/// The literal of a constant whose text gave it. (The values of an elided one hang on its name, so nobody may
/// take them elsewhere.)
pub fn literal(module: &Module, id: InstrId) -> Option<&Arc<Literal>> {
    let instr = module.instr(id);
    match (instr.opcode, instr.attrs.constant_value()) {
        (Opcode::Constant, Some(ConstantValue::Given(literal))) => Some(literal),
        (_, _) => None,
    }
}

/// The bits of every element of an array that holds one value: a constant, or one that was broadcast or
/// reshaped. `None` for arrays without elements.
pub fn splat(module: &Module, id: InstrId) -> Option<(ElementType, u128)> {
    let mut id = id;
    for _ in 0..DEPTH {
        let instr = module.instr(id);
        if instr.shape.as_array().is_none_or(|a| a.checked_elements() == Some(0)) {
            return None;
        }
        match instr.opcode {
            Opcode::Broadcast | Opcode::Reshape => id = *instr.operands().first()?,
            Opcode::Constant => {
                let array = literal(module, id)?.as_array()?;
                let ty = array.buffer.element_type();
                let bits = with_buffer!(&*array.buffer, v => {
                    let first = v.first()?.bits();
                    v.iter().all(|x| x.bits() == first).then_some(first)?
                });
                return Some((ty, bits));
            }
            _ => return None,
        }
        // A change of type on the way is a conversion.
        if module.instr(id).shape.element_type() != instr.shape.element_type() {
            return None;
        }
    }
    None
}

/// The dimension that a concatenation is along, or the first of those that another instruction names.
pub fn dimension(instr: &Instruction) -> Option<usize> {
    usize::try_from(*instr.attrs.ints(AttrKey::Dimensions)?.first()?).ok()
}
