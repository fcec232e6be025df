//! What a plugin says of a failure.

use std::fmt;

pub use hlo_pjrt::error::Code;

/// Why a call failed.
#[derive(Clone, Debug)]
pub struct Error {
    /// What kind of failure it is; of what is wrong on this side (a library that does not load, a table that is too short) [`Code::NotFound`] or
    /// [`Code::FailedPrecondition`].
    pub code: Code,
    /// For people: the function and the plugin's message.
    pub message: String,
}

impl Error {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
