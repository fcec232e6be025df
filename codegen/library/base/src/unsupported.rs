//! What a compiler refuses.

use hlo::diag::codes;
use hlo::{Diagnostic, InstrId, Module, Opcode, Span};

/// How every refusal begins, so that who asked on behalf of a platform can name that.
pub const REFUSAL: &str = "the compiler for the CPU does not support ";

/// That an instruction cannot be compiled, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unsupported {
    /// Its operation.
    pub opcode: Opcode,
    /// Its location in the text.
    pub span: Span,
    /// What it is that is not supported: "sort by a comparator with side effects".
    pub reason: String,
}

impl Unsupported {
    /// For this instruction.
    pub fn new(module: &Module, id: InstrId, reason: impl Into<String>) -> Self {
        let instr = module.instr(id);
        Self { opcode: instr.opcode, span: instr.span, reason: reason.into() }
    }

    /// As an error for people.
    pub fn diagnostic(&self) -> Diagnostic {
        let message = format!("{REFUSAL}`{}`: {}", self.opcode.name(), self.reason);
        Diagnostic::error(codes::UNSUPPORTED_OPCODE, self.span, message)
    }
}
