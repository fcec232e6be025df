//! Why a run did not end with a value.

use hlo::diag::{Code, Diagnostic, codes};
use hlo::{Instruction, Name, Span};

/// The kind of a failed run; commands take their exit code from it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ErrorKind {
    /// The interpreter cannot run this opcode, or not in this form (exit code 5).
    Unsupported,
    /// The program did what no program may do (exit code 6).
    Trap,
    /// The limit on executed instructions was reached (exit code 6).
    OutOfFuel,
    /// The limit on live bytes would have been passed (exit code 6).
    OutOfMemory,
    /// The caller's arguments do not fit the entry computation (exit code 2).
    Arguments,
}

/// A failed run: what happened, and at which instruction.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct RunError {
    /// What kind of failure.
    pub kind: ErrorKind,
    /// The code, with a page for `hlo explain`.
    pub code: Code,
    /// One sentence without a period.
    pub message: String,
    /// Name of the instruction; empty if no instruction is to blame.
    pub instruction: Name,
    /// Its place in the text.
    pub span: Span,
}

/// The result of anything that runs.
pub type Result<T, E = RunError> = std::result::Result<T, E>;

impl RunError {
    /// An error at an instruction.
    pub fn at(instr: &Instruction, kind: ErrorKind, code: Code, message: impl Into<String>) -> Self {
        Self { kind, code, message: message.into(), instruction: instr.name.clone(), span: instr.span }
    }

    /// An error that no instruction is to blame for.
    pub fn outside(kind: ErrorKind, code: Code, message: impl Into<String>) -> Self {
        Self { kind, code, message: message.into(), instruction: "".into(), span: Span::NONE }
    }

    /// The interpreter does not run this instruction; `why` names the form, without the opcode.
    pub fn unsupported(instr: &Instruction, why: &str) -> Self {
        let op = instr.opcode;
        let message = if why.is_empty() {
            format!("the interpreter does not support {op}")
        } else {
            format!("the interpreter does not support {op} {why}")
        };
        Self::at(instr, ErrorKind::Unsupported, codes::UNSUPPORTED_OPCODE, message)
    }

    /// As a diagnostic, to be shown with the program's text.
    pub fn to_diagnostic(&self) -> Diagnostic {
        let label = match self.kind {
            ErrorKind::Unsupported => "not supported",
            ErrorKind::Trap => "failed here",
            ErrorKind::OutOfFuel => "stopped here",
            ErrorKind::OutOfMemory => "would need the memory",
            ErrorKind::Arguments => "",
        };
        let message = if self.instruction.is_empty() {
            self.message.clone()
        } else {
            format!("{} (in %{})", self.message, self.instruction)
        };
        Diagnostic::error(self.code, self.span, message).label(label)
    }
}
