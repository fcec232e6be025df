//! Values of buffer type: mutable memory, passed on from writer to writer.

use super::Verifier;
use crate::attrs::AttrKey;
use crate::diag::codes;
use crate::ids::InstrId;
use crate::module::Instruction;
use crate::opcode::Opcode;
use crate::shape::Shape;

fn has_buffer(shape: &Shape) -> bool {
    shape.leaves().iter().any(|s| matches!(s, Shape::Buffer(_)))
}

pub(super) fn check(v: &mut Verifier<'_>) {
    let module = v.module;
    v.for_each(|v, id, instr| {
        let operands = instr.operands().iter().any(|&o| has_buffer(&module.instr(o).shape));
        let result = has_buffer(&instr.shape);
        if !operands && !result {
            return;
        }
        match instr.opcode {
            Opcode::CustomCall => custom_call(v, id, instr),
            Opcode::Parameter if instr.parent() == module.entry() => {
                v.error(id, codes::BUFFER, "a parameter of the entry computation cannot be a buffer");
            }
            Opcode::Parameter | Opcode::While => writers(v, id, instr),
            Opcode::DynamicUpdateSlice => {
                let first = instr.operands().first().is_some_and(|&o| has_buffer(&module.instr(o).shape));
                let others = instr.operands().iter().skip(1).any(|&o| has_buffer(&module.instr(o).shape));
                if !first || others || !result {
                    v.error(
                        id,
                        codes::BUFFER,
                        "only its first operand and its result may be buffers, and both must",
                    );
                } else {
                    writers(v, id, instr);
                }
            }
            Opcode::Tuple
            | Opcode::GetTupleElement
            | Opcode::AsyncStart
            | Opcode::AsyncUpdate
            | Opcode::AsyncDone
            | Opcode::Call => {}
            _ => v.error(id, codes::BUFFER, "buffers may not be used here"),
        }
    });
}

fn custom_call(v: &mut Verifier<'_>, id: InstrId, instr: &Instruction) {
    let module = v.module;
    let aliases = instr.attrs.operand_aliasing().unwrap_or(&[]);
    let operand = instr.operands().first().map(|&o| &module.instr(o).shape);
    let one = instr.operands().len() == 1;
    let inner = |s: &Shape| if let Shape::Buffer(inner) = s { Some(Shape::clone(inner)) } else { None };
    match instr.attrs.str(AttrKey::CustomCallTarget).unwrap_or("") {
        "Pin" => {
            let fits = one && operand.is_some_and(|o| inner(&instr.shape).is_some_and(|b| b.compatible(o)));
            if !fits || aliases.len() != 1 {
                v.error(
                    id,
                    codes::BUFFER,
                    "Pin takes one array and gives a buffer of its shape that aliases it",
                );
            }
        }
        "CreateBuffer" => {
            if !instr.operands().is_empty() || inner(&instr.shape).is_none() {
                v.error(id, codes::BUFFER, "CreateBuffer takes nothing and gives a buffer");
            }
        }
        "Unpin" => {
            let fits = one && operand.and_then(inner).is_some_and(|b| b.compatible(&instr.shape));
            if !fits || aliases.len() != 1 {
                v.error(
                    id,
                    codes::BUFFER,
                    "Unpin takes one buffer and gives an array of its shape that aliases it",
                );
            }
            return;
        }
        _ => {
            for (n, &o) in instr.operands().iter().enumerate() {
                if !matches!(module.instr(o).shape, Shape::Buffer(_)) {
                    continue;
                }
                let times = aliases.iter().filter(|a| a.operand == n as i64).count();
                if times != 1 {
                    let message =
                        format!("operand {n} is a buffer that {times} results alias; it must be one");
                    v.error(id, codes::BUFFER, message);
                }
            }
            if matches!(instr.shape, Shape::Buffer(_)) && aliases.len() != 1 {
                v.error(id, codes::BUFFER, "the result is a buffer and must alias one operand");
            }
        }
    }
    writers(v, id, instr);
}

/// At most one user may write to, or unpin, a buffer.
fn writers(v: &mut Verifier<'_>, id: InstrId, instr: &Instruction) {
    if !matches!(instr.shape, Shape::Buffer(_)) {
        return;
    }
    let module = v.module;
    let writes = |u: &crate::Use| {
        matches!(
            module.instr(u.user).opcode,
            Opcode::CustomCall
                | Opcode::DynamicUpdateSlice
                | Opcode::While
                | Opcode::AsyncStart
                | Opcode::Call
        )
    };
    let n = module.users(id).iter().filter(|u| writes(u)).count();
    if n > 1 {
        v.error(id, codes::BUFFER, format!("{n} instructions write to this buffer; only one may"));
    }
}
