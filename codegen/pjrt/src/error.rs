//! Errors: what calls end with, and what callers ask of them.

use std::ffi::{c_char, c_void};
use std::sync::Arc;

use crate::api::structs::{
    PJRT_Error_Destroy_Args, PJRT_Error_ForEachPayload_Args, PJRT_Error_GetCode_Args,
    PJRT_Error_Message_Args, PayloadVisitor,
};
use crate::handles::{self, object};
use crate::opaque;

pub use hlo_pjrt_abi::{Code, Failure, Result};

/// A failure of the client as the C API's.
pub fn of_client(error: hlo_client::Error) -> Failure {
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
    Failure::new(code, error.to_string())
}

/// `PJRT_Error`: a failure as callers hold it. Its first field is the C API's, whose functions work on errors
/// of any plugin.
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
    destroy: extern "C" fn(*mut opaque::Error),
    message: extern "C" fn(*mut opaque::Error, *mut *const c_char, *mut usize),
    get_code: extern "C" fn(*mut opaque::Error) -> u32,
    for_each_payload: extern "C" fn(*mut opaque::Error, Option<PayloadVisitor>, *mut c_void),
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

extern "C" fn destroy_error(error: *mut opaque::Error) {
    let _ = handles::destroy(error);
}

extern "C" fn message_of_error(error: *mut opaque::Error, message: *mut *const c_char, size: *mut usize) {
    let error = handles::get(error).ok();
    let text = error.as_ref().map_or("", |e| &e.failure.message);
    let _ = crate::border::write(message, &[text.as_ptr().cast()], "the message");
    let _ = crate::border::write(size, &[text.len()], "the size of the message");
}

extern "C" fn code_of_error(error: *mut opaque::Error) -> u32 {
    handles::get(error).map_or(0, |e| e.failure.code as u32)
}

extern "C" fn payloads_of_error(
    _error: *mut opaque::Error,
    _visitor: Option<PayloadVisitor>,
    _user_arg: *mut c_void,
) {
}

impl Error {
    /// A failure as a caller's, who destroys it.
    pub fn give(failure: Failure) -> *mut opaque::Error {
        handles::give(Arc::new(Error { table: &ERROR_TABLE, failure }))
    }

    /// The same of an outcome: null if it is none.
    pub fn give_outcome(outcome: std::result::Result<(), Failure>) -> *mut opaque::Error {
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
