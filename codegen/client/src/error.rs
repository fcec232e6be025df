//! The one error of this crate: a code to decide by, a message to read, and what caused it.

use std::any::Any;
use std::sync::Arc;

use hlo::Diagnostics;
use hlo_codegen::runtime::executable::RunError;

/// What kind of failure it is: the codes of PJRT and of gRPC, whose names these are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Code {
    /// Arguments, shapes, options or a program that are wrong by themselves.
    InvalidArgument,
    /// A handle, key, function or file that does not exist.
    NotFound,
    /// What is asked for is not implemented.
    Unimplemented,
    /// Not enough memory or fuel.
    ResourceExhausted,
    /// Something is not in the state that the call needs, such as a buffer that was donated.
    FailedPrecondition,
    /// The deadline passed.
    DeadlineExceeded,
    /// Somebody cancelled it.
    Cancelled,
    /// The program ran into a trap.
    Aborted,
    /// A file whose contents are not what they should be.
    DataLoss,
    /// The file system refuses.
    Unavailable,
    /// A defect of this library.
    Internal,
}

/// Why there is no result.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    code: Code,
    message: String,
    #[source]
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
    diagnostics: Option<Arc<Diagnostics>>,
}

impl Error {
    /// With a code and a message.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), source: None, diagnostics: None }
    }

    /// With what caused it.
    #[must_use]
    pub fn caused_by(mut self, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    /// Of a program that does not parse or verify: the message is the first error's.
    pub(crate) fn of_diagnostics(what: &str, diagnostics: Diagnostics) -> Self {
        let errors = diagnostics.error_count();
        let first = diagnostics.iter().find(|d| d.severity == hlo::diag::Severity::Error);
        let message = match first {
            Some(first) if errors > 1 => {
                format!("{what}: {} (and {} more errors)", first.message, errors - 1)
            }
            Some(first) => format!("{what}: {}", first.message),
            None => what.to_owned(),
        };
        Self { diagnostics: Some(Arc::new(diagnostics)), ..Self::new(Code::InvalidArgument, message) }
    }

    /// What kind of failure it is.
    pub fn code(&self) -> Code {
        self.code
    }

    /// Whether an error of this type caused it.
    pub fn is_caused_by<E: std::error::Error + 'static>(&self) -> bool {
        self.source.as_ref().is_some_and(|source| source.is::<E>())
    }

    /// Every error of a program's text or structure, with locations; `None` for other failures.
    pub fn diagnostics(&self) -> Option<&Diagnostics> {
        self.diagnostics.as_deref()
    }
}

impl From<RunError> for Error {
    fn from(error: RunError) -> Self {
        let code = match &error {
            RunError::Arguments(_) => Code::InvalidArgument,
            RunError::OutOfMemory(_) | RunError::OutOfFuel(_) => Code::ResourceExhausted,
            RunError::TimedOut => Code::DeadlineExceeded,
            RunError::Interpreter(e) => return (**e).clone().into(),
            RunError::Load(_) => Code::Internal,
        };
        Self::new(code, error.to_string())
    }
}

impl From<hlo_interp::RunError> for Error {
    fn from(error: hlo_interp::RunError) -> Self {
        use hlo_interp::ErrorKind;
        let code = match error.kind {
            ErrorKind::Unsupported => Code::Unimplemented,
            ErrorKind::Trap => Code::Aborted,
            ErrorKind::OutOfFuel | ErrorKind::OutOfMemory => Code::ResourceExhausted,
            ErrorKind::Arguments => Code::InvalidArgument,
        };
        Self::new(code, error.to_diagnostic().message)
    }
}

impl From<hlo_codegen::runtime::arena::OutOfMemory> for Error {
    fn from(error: hlo_codegen::runtime::arena::OutOfMemory) -> Self {
        Self::new(Code::ResourceExhausted, error.to_string())
    }
}

/// The message of a panic, if it has one.
pub fn panic_message(panic: &(dyn Any + Send)) -> Option<&str> {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
}
