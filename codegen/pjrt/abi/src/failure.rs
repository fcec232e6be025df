//! What calls end with: a code of the C API and a message.

use std::fmt;

use hlo::Diagnostics;
use hlo::diag::Severity;

/// What kind of failure it is: `PJRT_Error_Code`, whose names these are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
#[allow(missing_docs, reason = "the names are the C API's")]
pub enum Code {
    Cancelled = 1,
    Unknown = 2,
    InvalidArgument = 3,
    DeadlineExceeded = 4,
    NotFound = 5,
    AlreadyExists = 6,
    PermissionDenied = 7,
    ResourceExhausted = 8,
    FailedPrecondition = 9,
    Aborted = 10,
    OutOfRange = 11,
    Unimplemented = 12,
    Internal = 13,
    Unavailable = 14,
    DataLoss = 15,
    Unauthenticated = 16,
}

impl Code {
    const ALL: [Code; 16] = [
        Code::Cancelled,
        Code::Unknown,
        Code::InvalidArgument,
        Code::DeadlineExceeded,
        Code::NotFound,
        Code::AlreadyExists,
        Code::PermissionDenied,
        Code::ResourceExhausted,
        Code::FailedPrecondition,
        Code::Aborted,
        Code::OutOfRange,
        Code::Unimplemented,
        Code::Internal,
        Code::Unavailable,
        Code::DataLoss,
        Code::Unauthenticated,
    ];

    /// The code of a number; `None`: of 0, which is no failure. What is no code is `Unknown`.
    pub fn of_number(number: u32) -> Option<Self> {
        if number == 0 {
            return None;
        }
        Some(Self::ALL.into_iter().find(|&code| code as u32 == number).unwrap_or(Code::Unknown))
    }
}

/// Why a call fails.
#[derive(Clone, Debug)]
pub struct Failure {
    /// What kind of failure it is.
    pub code: Code,
    /// For people.
    pub message: String,
}

/// What calls return.
pub type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    /// With a code and a message.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// Of arguments that are wrong by themselves.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(Code::InvalidArgument, message)
    }

    /// Of what does not exist here.
    pub fn unimplemented(message: impl Into<String>) -> Self {
        Self::new(Code::Unimplemented, message)
    }

    /// Of a defect.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(Code::Internal, message)
    }

    /// Of a program that cannot be read or converted: every error with its code.
    pub fn of_diagnostics(what: &str, found: &Diagnostics) -> Self {
        const REPORTED: usize = 5;
        let mut code = Code::InvalidArgument;
        let mut message = what.to_owned();
        let errors = || found.iter().filter(|d| d.severity == Severity::Error);
        for (n, error) in errors().take(REPORTED).enumerate() {
            let id = error.code.as_str();
            // Codes of what is not supported begin with this letter.
            if n == 0 && id.starts_with('U') {
                code = Code::Unimplemented;
            }
            message += if n == 0 { ": " } else { "; " };
            message += &format!("[{id}] {}", error.message);
            for note in &error.notes {
                message += &format!(" ({note})");
            }
        }
        let more = errors().count().saturating_sub(REPORTED);
        if more > 0 {
            message += &format!("; and {more} more");
        }
        Self { code, message }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}
