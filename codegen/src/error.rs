//! Compilation errors.

use std::fmt;

use hlo::Diagnostic;

use crate::Unsupported;
use crate::compilation::AssembleError;

/// Why there is no program.
#[derive(Debug)]
pub enum CompileError {
    /// Something is not supported.
    Unsupported(Box<Unsupported>),
    /// A processor that does not exist, or cannot run here.
    Target(String),
    /// A defect of the compiler: what a pass left does not verify, or LLVM refuses what was emitted.
    Defect(String),
}

impl CompileError {
    /// The error as a diagnostic.
    pub fn diagnostic(&self) -> Diagnostic {
        use hlo::diag::codes;
        match self {
            CompileError::Unsupported(unsupported) => unsupported.diagnostic(),
            CompileError::Target(message) => {
                Diagnostic::error(codes::UNSUPPORTED_OPCODE, hlo::Span::NONE, message.clone())
            }
            CompileError::Defect(message) => {
                Diagnostic::error(codes::COMPILER_DEFECT, hlo::Span::NONE, message.clone())
            }
        }
    }
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.diagnostic().message.fmt(f)
    }
}

impl std::error::Error for CompileError {}

impl From<Unsupported> for CompileError {
    fn from(unsupported: Unsupported) -> Self {
        CompileError::Unsupported(Box::new(unsupported))
    }
}

impl From<AssembleError> for CompileError {
    fn from(error: AssembleError) -> Self {
        match error {
            AssembleError::Unsupported(unsupported) => CompileError::Unsupported(unsupported),
            AssembleError::Defect(message) => CompileError::Defect(message),
        }
    }
}
