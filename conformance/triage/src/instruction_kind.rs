//! Instructions by what they compute: the kinds by which failures are counted.

use hlo::{ElementType, InstrId, Module, Opcode};

/// An opcode on an element type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct InstructionKind {
    /// The opcode.
    pub opcode: Opcode,
    /// The element type of the result, if that is one array.
    pub ty: Option<ElementType>,
}

impl InstructionKind {
    /// That of an instruction.
    pub fn of(module: &Module, id: InstrId) -> InstructionKind {
        let instr = module.instr(id);
        InstructionKind { opcode: instr.opcode, ty: instr.shape.element_type() }
    }
}

impl std::fmt::Display for InstructionKind {
    /// Such as `divide f32`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.opcode.fmt(f)?;
        match self.ty {
            Some(ty) => write!(f, " {ty}"),
            None => Ok(()),
        }
    }
}
