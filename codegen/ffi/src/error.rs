//! `XLA_FFI_Error`: failures as handlers make and see them.
//!
//! A handler sees an error by functions of the table alone, unless it is linked with a runtime of its own, as
//! those of jaxlib are: these look into an error as into one of theirs. Where such handlers are called, the
//! other runtime makes all errors of the process ([`hlo_ffi_errors_of`]).

use std::ffi::{CStr, CString, c_char, c_int};
use std::mem::offset_of;
use std::ptr;
use std::sync::{Mutex, OnceLock, PoisonError};

use hlo_client::Code;
use rustc_hash::FxHashMap;

use crate::abi::{
    XLA_FFI_Api, XLA_FFI_Error_Create_Args, XLA_FFI_Error_Destroy_Args, XLA_FFI_Error_GetDetails_Args,
};

/// `XLA_FFI_Error`. Whoever is given one destroys it.
#[derive(Debug)]
pub struct Error {
    pub(crate) code: Code,
    pub(crate) message: CString,
}

/// A failure of a function of the API.
pub(crate) type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn new(code: Code, message: impl Into<Vec<u8>>) -> Self {
        let mut bytes: Vec<u8> = message.into();
        bytes.retain(|&b| b != 0);
        Self { code, message: CString::new(bytes).unwrap_or_default() }
    }

    /// As a handler gets it.
    pub(crate) fn give(self) -> *mut Error {
        match maker() {
            Some(maker) => maker.make(self),
            None => Box::into_raw(Box::new(self)),
        }
    }

    /// Takes an error that its owner gives away.
    ///
    /// # Safety
    /// It is null, or a live error of this process, which is neither taken nor destroyed.
    pub(crate) unsafe fn take(error: *mut Error) -> Option<Box<Error>> {
        if error.is_null() {
            return None;
        }
        match maker() {
            // SAFETY: as this function's; the other runtime made all errors.
            Some(maker) => Some(Box::new(unsafe { maker.take(error) })),
            // SAFETY: as this function's; `give` made it.
            None => Some(unsafe { Box::from_raw(error) }),
        }
    }

    /// The message of an error that somebody has, which is there as long as the error, and its code.
    ///
    /// # Safety
    /// It is a live error of this process, which is neither taken nor destroyed.
    pub(crate) unsafe fn details(error: *mut Error) -> (*const c_char, Code) {
        match maker() {
            // SAFETY: as this function's; the other runtime made all errors.
            Some(maker) => unsafe { maker.details(error) },
            // SAFETY: as this function's; `give` made it.
            None => unsafe { ((*error).message.as_ptr(), (*error).code) },
        }
    }

    pub(crate) fn text(&self) -> String {
        self.message.to_string_lossy().into_owned()
    }
}

/// The codes of XLA's FFI, which are those of Abseil.
const CODES: [(i32, Code); 11] = [
    (1, Code::Cancelled),
    (3, Code::InvalidArgument),
    (4, Code::DeadlineExceeded),
    (5, Code::NotFound),
    (8, Code::ResourceExhausted),
    (9, Code::FailedPrecondition),
    (10, Code::Aborted),
    (12, Code::Unimplemented),
    (13, Code::Internal),
    (14, Code::Unavailable),
    (15, Code::DataLoss),
];

/// A code by its number; what this project has no code for is the nearest that it has.
pub(crate) fn code_of(number: i32) -> Code {
    let found = CODES.iter().find(|(n, _)| *n == number).map(|&(_, code)| code);
    found.unwrap_or(match number {
        // Already exists; permission denied; out of range; unauthenticated.
        6 | 7 | 16 => Code::FailedPrecondition,
        11 => Code::InvalidArgument,
        // Unknown, and numbers that are no codes.
        _others => Code::Aborted,
    })
}

/// The number of a code.
pub(crate) fn number_of(code: Code) -> i32 {
    const UNKNOWN: i32 = 2;
    CODES.iter().find(|(_, c)| *c == code).map_or(UNKNOWN, |&(n, _)| n)
}

/// Another runtime of the process, which makes errors.
struct Maker {
    create: unsafe extern "C" fn(*mut XLA_FFI_Error_Create_Args) -> *mut Error,
    details: unsafe extern "C" fn(*mut XLA_FFI_Error_GetDetails_Args),
    destroy: unsafe extern "C" fn(*mut XLA_FFI_Error_Destroy_Args),
    /// Codes and messages of what it made, by address: before 0.5 it does not tell codes. What it destroys by
    /// itself stays here until it makes another one in the same memory.
    made: Mutex<FxHashMap<usize, (Code, CString)>>,
}

/// Settled by who asks for it first: the first error, or [`hlo_ffi_errors_of`].
static MAKER: OnceLock<Option<Maker>> = OnceLock::new();

fn maker() -> Option<&'static Maker> {
    MAKER.get_or_init(|| None).as_ref()
}

/// Has another runtime create all errors of this process. Handlers that are linked with that runtime access
/// the fields of an error as those of its own struct. `api`: the runtime's table of functions. Returns 1 if
/// the runtime creates errors from now on, or already did; 0 if `api` is null or too short, if an error
/// exists already, or if another runtime was given before.
///
/// # Safety
/// `api` is null or such a table, of version 0.3 or later, that lasts as long as the process.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hlo_ffi_errors_of(api: *const XLA_FFI_Api) -> c_int {
    const LEAST_BYTES: usize = offset_of!(XLA_FFI_Api, XLA_FFI_Handler_Register);
    // SAFETY: as this function's; a table begins with its size.
    if api.is_null() || !api.is_aligned() || unsafe { api.cast::<usize>().read() } < LEAST_BYTES {
        return 0;
    }
    // SAFETY: as this function's; the table has these fields, and what comes after is not read.
    let (create, details, destroy) = unsafe {
        ((*api).XLA_FFI_Error_Create, (*api).XLA_FFI_Error_GetDetails, (*api).XLA_FFI_Error_Destroy)
    };
    let settled = MAKER.get_or_init(|| Some(Maker { create, details, destroy, made: Mutex::default() }));
    c_int::from(settled.as_ref().is_some_and(|maker| ptr::fn_addr_eq(maker.create, create)))
}

impl Maker {
    fn make(&self, error: Error) -> *mut Error {
        let mut args = XLA_FFI_Error_Create_Args {
            struct_size: offset_of!(XLA_FFI_Error_Create_Args, errc) + size_of::<c_int>(),
            extension_start: ptr::null_mut(),
            message: error.message.as_ptr(),
            errc: number_of(error.code),
        };
        // SAFETY: the C API: the function's own struct; it copies the message.
        let made = unsafe { (self.create)(&raw mut args) };
        let mut all = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(made.addr(), (error.code, error.message));
        made
    }

    /// # Safety
    /// It is a live error that the other runtime made.
    unsafe fn details(&self, error: *mut Error) -> (*const c_char, Code) {
        const UNSAID: c_int = -1;
        let mut args = XLA_FFI_Error_GetDetails_Args {
            struct_size: offset_of!(XLA_FFI_Error_GetDetails_Args, errc) + size_of::<c_int>(),
            extension_start: ptr::null_mut(),
            error,
            message: ptr::null(),
            errc: UNSAID,
        };
        // SAFETY: the C API: the function's own struct; versions without the last field do not write it.
        unsafe { (self.details)(&raw mut args) };
        let message = if args.message.is_null() { c"".as_ptr() } else { args.message };
        if args.errc != UNSAID {
            return (message, code_of(args.errc));
        }
        let all = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the C API: a message ends with a zero, and is there as long as its error.
        let text = unsafe { CStr::from_ptr(message) };
        let known = all.get(&error.addr()).filter(|(_, said)| said.as_c_str() == text);
        (message, known.map_or(Code::Internal, |(code, _)| *code))
    }

    /// # Safety
    /// As [`Maker::details`].
    unsafe fn take(&self, error: *mut Error) -> Error {
        // SAFETY: as this function's.
        let (message, code) = unsafe { self.details(error) };
        // SAFETY: the C API: a message ends with a zero, and is there as long as its error.
        let message = unsafe { CStr::from_ptr(message) }.to_owned();
        self.made.lock().unwrap_or_else(PoisonError::into_inner).remove(&error.addr());
        let mut args = XLA_FFI_Error_Destroy_Args {
            struct_size: size_of::<XLA_FFI_Error_Destroy_Args>(),
            extension_start: ptr::null_mut(),
            error,
        };
        // SAFETY: the C API: the function's own struct, and an error that is destroyed once.
        unsafe { (self.destroy)(&raw mut args) };
        Error { code, message }
    }
}
