//! Errors: what calls end with, and what callers ask of them.

use std::ffi::{c_char, c_void};
use std::fmt;
use std::sync::Arc;

use hlo::Diagnostics;
use hlo::diag::Severity;

use crate::api::structs::{
    PJRT_Error_Destroy_Args, PJRT_Error_ForEachPayload_Args, PJRT_Error_GetCode_Args,
    PJRT_Error_Message_Args, PayloadVisitor,
};
use crate::handles::{self, Handle, object};

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

impl From<hlo_client::Error> for Failure {
    fn from(error: hlo_client::Error) -> Self {
        use hlo_client::Code as C;
        let code = match error.code() {
            C::InvalidArgument => Code::InvalidArgument,
            C::NotFound => Code::NotFound,
            C::Unimplemented => Code::Unimplemented,
            C::ResourceExhausted => Code::ResourceExhausted,
            C::FailedPrecondition => Code::FailedPrecondition,
            C::DeadlineExceeded => Code::DeadlineExceeded,
            C::Cancelled => Code::Cancelled,
            C::Aborted => Code::Aborted,
            C::DataLoss => Code::DataLoss,
            C::Unavailable => Code::Unavailable,
            C::Internal => Code::Internal,
            _ => Code::Unknown,
        };
        Self::new(code, error.to_string())
    }
}

/// `PJRT_Error`: a failure as callers hold it. Its first field is the C API's, whose functions work on errors of any plugin.
#[derive(Debug)]
#[repr(C)]
#[allow(dead_code, reason = "callers read the fields")]
pub struct Error {
    table: &'static ErrorTable,
    failure: Failure,
}

object!(Error, "error", is_read: true);

/// `PJRT_Error_FunctionTable`.
#[derive(Debug)]
#[repr(C)]
#[allow(dead_code, reason = "callers read the fields")]
pub struct ErrorTable {
    struct_size: usize,
    instance_size: usize,
    extension_start: Extensions,
    destroy: extern "C" fn(*mut Error),
    message: extern "C" fn(*mut Error, *mut *const c_char, *mut usize),
    get_code: extern "C" fn(*mut Error) -> u32,
    for_each_payload: extern "C" fn(*mut Error, Option<PayloadVisitor>, *mut c_void),
}

/// No extensions: always null.
#[derive(Debug)]
#[repr(transparent)]
pub struct Extensions(pub(crate) *mut c_void);

// SAFETY: it is null, and read only.
unsafe impl Sync for Extensions {}
// SAFETY: it is null, and read only.
unsafe impl Send for Extensions {}

static ERROR_TABLE: ErrorTable = ErrorTable {
    struct_size: size_of::<ErrorTable>(),
    instance_size: size_of::<Error>(),
    extension_start: Extensions(std::ptr::null_mut()),
    destroy: destroy_error,
    message: message_of_error,
    get_code: code_of_error,
    for_each_payload: payloads_of_error,
};

extern "C" fn destroy_error(error: *mut Error) {
    let _ = handles::destroy(error);
}

extern "C" fn message_of_error(error: *mut Error, message: *mut *const c_char, size: *mut usize) {
    let error = handles::get(error).ok();
    let text = error.as_ref().map_or("", |e| &e.failure.message);
    let _ = crate::border::write(message, &[text.as_ptr().cast()], "the message");
    let _ = crate::border::write(size, &[text.len()], "the size of the message");
}

extern "C" fn code_of_error(error: *mut Error) -> u32 {
    handles::get(error).map_or(0, |e| e.failure.code as u32)
}

extern "C" fn payloads_of_error(
    _error: *mut Error,
    _visitor: Option<PayloadVisitor>,
    _user_arg: *mut c_void,
) {
}

impl Error {
    /// A failure as a caller's, who destroys it.
    pub fn give(failure: Failure) -> *mut Error {
        Handle::new(Arc::new(Error { table: &ERROR_TABLE, failure })).pointer()
    }

    /// The same of an outcome: null if it is none.
    pub fn give_outcome(outcome: std::result::Result<(), Failure>) -> *mut Error {
        outcome.map_or_else(Error::give, |()| std::ptr::null_mut())
    }
}

pub(crate) fn destroy(args: &mut PJRT_Error_Destroy_Args) -> Result<()> {
    handles::destroy(args.error)
}

pub(crate) fn message(args: &mut PJRT_Error_Message_Args) -> Result<()> {
    let error = handles::get(args.error)?;
    args.message = error.failure.message.as_ptr().cast();
    args.message_size = error.failure.message.len();
    Ok(())
}

pub(crate) fn get_code(args: &mut PJRT_Error_GetCode_Args) -> Result<()> {
    args.code = handles::get(args.error)?.failure.code as u32;
    Ok(())
}

/// Errors have no payloads.
pub(crate) fn for_each_payload(args: &mut PJRT_Error_ForEachPayload_Args) -> Result<()> {
    handles::get(args.error).map(drop)
}
