//! Why a run did not end with a value.

use hlo::diag::{Code, Diagnostic, codes};
use hlo::{Instruction, Name, Span};

use crate::device::Devices;

/// The prefix of every refusal of the interpreter, so that callers on behalf of something else can name that.
pub const REFUSAL: &str = "the interpreter does not support ";

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
    /// The kind of failure.
    pub kind: ErrorKind,
    /// The code, with a page for `hlo explain`.
    pub code: Code,
    /// One sentence without a period.
    pub message: String,
    /// Name of the instruction; empty if no instruction is to blame.
    pub instruction: Name,
    /// Its span in the text.
    pub span: Span,
    /// Details of runs on several devices.
    pub among: Option<Box<Among>>,
}

/// A failure among several devices.
#[derive(Clone, Debug)]
pub struct Among {
    /// The device that failed.
    pub device: u32,
    /// Related spans, with a sentence for each.
    pub related: Vec<(Span, String)>,
}

/// The result of anything that runs.
pub type Result<T, E = RunError> = std::result::Result<T, E>;

impl RunError {
    /// An error at an instruction.
    pub fn at(instr: &Instruction, kind: ErrorKind, code: Code, message: impl Into<String>) -> Self {
        Self { instruction: instr.name.clone(), span: instr.span, ..Self::outside(kind, code, message) }
    }

    /// An error that no instruction is to blame for.
    pub fn outside(kind: ErrorKind, code: Code, message: impl Into<String>) -> Self {
        Self { kind, code, message: message.into(), instruction: "".into(), span: Span::NONE, among: None }
    }

    /// The same on a device of a run.
    #[must_use]
    pub(crate) fn on(self, devices: Devices, device: u32) -> Self {
        if devices.count() == 1 {
            return self;
        }
        Self { among: Some(Box::new(Among { device, related: Vec::new() })), ..self }
    }

    /// The interpreter does not run this instruction; `why` names the form, without the opcode.
    pub fn unsupported(instr: &Instruction, why: &str) -> Self {
        let op = instr.opcode;
        let message = if why.is_empty() { format!("{REFUSAL}{op}") } else { format!("{REFUSAL}{op} {why}") };
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
        let device = self.among.as_ref().map(|a| format!("device {}: ", a.device)).unwrap_or_default();
        let message = if self.instruction.is_empty() {
            format!("{device}{}", self.message)
        } else {
            format!("{device}{} (in %{})", self.message, self.instruction)
        };
        let mut diagnostic = Diagnostic::error(self.code, self.span, message).label(label);
        for (span, text) in self.among.iter().flat_map(|a| &a.related) {
            diagnostic = if span.is_none() {
                diagnostic.note(text.clone())
            } else {
                diagnostic.related(*span, text.clone())
            };
        }
        diagnostic
    }
}
