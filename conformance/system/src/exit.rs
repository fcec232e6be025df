//! Exit codes, and the error that carries one.
//!
//! **Invariant:** every way a command can end maps to exactly one [`Exit`]; scripts rely on the numbers.

use std::fmt;

use hlo::Diagnostic;
use hlo::diag::codes;

/// The exit code of a command.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Exit {
    /// Fine.
    Ok = 0,
    /// Results differ, too much is undecided, or a case failed.
    Differs = 1,
    /// Wrong usage: flags, paths, inputs that do not fit the program, what cannot be read or written.
    Usage = 2,
    /// The program cannot be parsed.
    Parse = 3,
    /// The program does not verify.
    Verify = 4,
    /// The engine does not support the program.
    Unsupported = 5,
    /// The program trapped, ran out of fuel or memory.
    Trap = 6,
    /// A bug of ours.
    Internal = 70,
}

impl Exit {
    /// The number that the process ends with.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// What it means that an engine crashed: an engine that is examined has failed like one that is wrong,
    /// our own compiler is a bug of ours.
    pub fn of_crash(said: &Diagnostic) -> Exit {
        if said.code == codes::COMPILER_DEFECT { Exit::Internal } else { Exit::Differs }
    }

    /// The more serious of two ends, when a command handled several files: the first failure wins.
    #[must_use]
    pub fn first_failure(self, next: Exit) -> Exit {
        if self == Exit::Ok { next } else { self }
    }
}

/// A failure with its exit code and one clear message.
#[derive(Clone, Debug, thiserror::Error)]
pub struct Failure {
    /// The exit code.
    pub exit: Exit,
    /// The message; may have several lines.
    pub message: String,
    /// Whether the message is rendered diagnostics, which say themselves that they are errors and where.
    pub rendered: bool,
}

impl Failure {
    /// A failure.
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), rendered: false }
    }

    /// A failure whose message is rendered diagnostics.
    pub fn rendered(exit: Exit, message: impl Into<String>) -> Self {
        Self { rendered: true, ..Self::new(exit, message) }
    }

    /// Wrong usage.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// A bug of ours.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(Exit::Internal, message)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<hlo_client::Error> for Failure {
    fn from(error: hlo_client::Error) -> Self {
        use hlo_client::Code;
        let exit = match error.code() {
            Code::Unimplemented => Exit::Unsupported,
            Code::ResourceExhausted | Code::Aborted | Code::DeadlineExceeded | Code::Cancelled => Exit::Trap,
            Code::Internal => Exit::Internal,
            // What is left is said by files, flags and arguments.
            _usage => Exit::Usage,
        };
        Failure::new(exit, error.to_string())
    }
}
