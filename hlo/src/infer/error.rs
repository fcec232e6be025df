//! What inference says when it refuses.

use crate::diag::{Code, Diagnostic};
use crate::ids::InstrId;
use crate::module::Module;
use crate::span::Span;

/// Why an instruction has no shape, or not the one that it states. It knows operands by their position;
/// [`InferError::diagnostic`] maps positions to locations in the text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InferError {
    /// Which kind.
    pub code: Code,
    /// One sentence without a period, beginning with the opcode: what was found.
    pub message: String,
    /// A word at the instruction: what was expected.
    pub label: String,
    /// Words at operands, by operand number.
    pub operands: Vec<(usize, String)>,
    /// Lines below.
    pub notes: Vec<String>,
}

impl InferError {
    pub(super) fn new(code: Code, message: String) -> Self {
        Self { code, message, label: String::new(), operands: Vec::new(), notes: Vec::new() }
    }

    /// With a word at the instruction.
    #[must_use]
    pub(super) fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// With a word at an operand.
    #[must_use]
    pub(super) fn at(mut self, operand: usize, label: impl Into<String>) -> Self {
        self.operands.push((operand, label.into()));
        self
    }

    /// With a line below.
    #[must_use]
    pub(super) fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// As a diagnostic at `span`; labels of operands go to where those are defined.
    pub fn diagnostic(&self, module: &Module, operands: &[InstrId], span: Span) -> Diagnostic {
        let mut diagnostic =
            Diagnostic::error(self.code, span, self.message.as_str()).label(self.label.as_str());
        for (number, label) in &self.operands {
            if let Some(&operand) = operands.get(*number) {
                diagnostic = diagnostic.related(module.instr(operand).span, label.as_str());
            }
        }
        diagnostic.notes.extend(self.notes.iter().cloned());
        diagnostic
    }
}

impl std::fmt::Display for InferError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.code.as_str(), self.message)?;
        if !self.label.is_empty() {
            write!(f, " ({})", self.label)?;
        }
        Ok(())
    }
}

impl std::error::Error for InferError {}
