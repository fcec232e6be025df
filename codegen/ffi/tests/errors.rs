//! Handlers that are linked with another runtime of the process look into errors as into its own.
//!
//! One test: who makes errors is settled once in a process.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::ffi::{CStr, CString, c_int};
use std::mem::offset_of;
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicIsize, Ordering};

use hlo_client::custom_call::CustomCalls;
use hlo_client::{Client, ClientOptions, Code, CompileOptions, ExecuteOptions};
use hlo_ffi::abi::{
    Error, XLA_FFI_Api, XLA_FFI_CallFrame, XLA_FFI_Error_Create_Args, XLA_FFI_Error_Destroy_Args,
    XLA_FFI_Error_GetDetails_Args, XLA_FFI_Metadata_Extension, XLA_FFI_Stream_Get_Args,
};
use hlo_ffi::{Bundle, ForeignHandler, api, hlo_ffi_errors_of};

/// An error as the other runtime has it.
struct Theirs {
    message: CString,
    code: c_int,
}

static ALIVE: AtomicIsize = AtomicIsize::new(0);
static SEEN: Mutex<Vec<String>> = Mutex::new(Vec::new());

unsafe extern "C" fn create(args: *mut XLA_FFI_Error_Create_Args) -> *mut Error {
    ALIVE.fetch_add(1, Ordering::SeqCst);
    // SAFETY: the table's user gives the function's struct.
    let (message, code) = unsafe { (CStr::from_ptr((*args).message).to_owned(), (*args).errc) };
    Box::into_raw(Box::new(Theirs { message, code })).cast()
}

/// As in 0.3: the code is not told.
unsafe extern "C" fn details(args: *mut XLA_FFI_Error_GetDetails_Args) {
    // SAFETY: as in `create`; the error is one that it made.
    unsafe { (*args).message = (*(*args).error.cast::<Theirs>()).message.as_ptr() };
}

unsafe extern "C" fn destroy(args: *mut XLA_FFI_Error_Destroy_Args) {
    // SAFETY: as in `details`.
    drop(unsafe { taken((*args).error) });
}

/// # Safety
/// It is a live error that `create` made.
unsafe fn taken(error: *mut Error) -> Theirs {
    ALIVE.fetch_sub(1, Ordering::SeqCst);
    // SAFETY: as this function's.
    *unsafe { Box::from_raw(error.cast::<Theirs>()) }
}

/// Asks for the stream, and takes the error apart by itself, or returns it.
unsafe fn asks(frame: *mut XLA_FFI_CallFrame, looks: bool) -> *mut Error {
    // SAFETY: the C API: the frame of a call, or of one that asks for the version.
    unsafe {
        if !(*frame).extension_start.is_null() {
            let version =
                &mut (*(*(*frame).extension_start.cast::<XLA_FFI_Metadata_Extension>()).metadata).api_version;
            (version.major_version, version.minor_version) = (0, 3);
            return ptr::null_mut();
        }
        let mut args = XLA_FFI_Stream_Get_Args {
            struct_size: size_of::<XLA_FFI_Stream_Get_Args>(),
            extension_start: ptr::null_mut(),
            ctx: (*frame).ctx,
            stream: ptr::null_mut(),
        };
        let error = ((*(*frame).api).XLA_FFI_Stream_Get)(&raw mut args);
        if !looks {
            return error;
        }
        let Theirs { message, code } = taken(error);
        SEEN.lock().unwrap().push(format!("{code}: {}", message.to_str().unwrap()));
    }
    ptr::null_mut()
}

unsafe extern "C" fn looks(frame: *mut XLA_FFI_CallFrame) -> *mut Error {
    // SAFETY: as this function's.
    unsafe { asks(frame, true) }
}

unsafe extern "C" fn returns(frame: *mut XLA_FFI_CallFrame) -> *mut Error {
    // SAFETY: as this function's.
    unsafe { asks(frame, false) }
}

#[test]
fn errors_are_the_other_runtimes() {
    // SAFETY: the functions of this file, in a copy of a table.
    let other = Box::leak(Box::new(unsafe { *api() }));
    other.XLA_FFI_Error_Create = create;
    other.XLA_FFI_Error_GetDetails = details;
    other.XLA_FFI_Error_Destroy = destroy;
    let mut short = *other;
    short.struct_size = offset_of!(XLA_FFI_Api, XLA_FFI_Error_Destroy);
    // SAFETY: null, and tables.
    unsafe {
        assert_eq!(hlo_ffi_errors_of(ptr::null()), 0);
        assert_eq!(hlo_ffi_errors_of(&raw const short), 0);
        assert_eq!(hlo_ffi_errors_of(other), 1);
        assert_eq!(hlo_ffi_errors_of(other), 1);
        assert_eq!(hlo_ffi_errors_of(api()), 0);
    }
    let custom_calls = CustomCalls::default();
    for (name, function) in [("looks", looks as hlo_ffi::abi::Handler), ("returns", returns)] {
        // SAFETY: a handler of this file.
        let handler =
            unsafe { ForeignHandler::typed(Bundle { execute: Some(function), ..Bundle::default() }) };
        custom_calls.bind_handler(name, std::sync::Arc::new(handler)).unwrap();
    }
    let client = Client::interpreter(ClientOptions { custom_calls, ..ClientOptions::default() }).unwrap();
    let run = |target: &str| {
        let text = format!(
            "HloModule m\n ENTRY e {{ ROOT r = f32[] custom-call(), custom_call_target=\"{target}\", api_version=API_VERSION_TYPED_FFI }}"
        );
        let executable = client.compile(&client.parse(&text).unwrap(), &CompileOptions::default()).unwrap();
        executable.execute_with(&[], &ExecuteOptions::default()).map(|_| ())
    };
    run("looks").unwrap();
    let seen = SEEN.lock().unwrap().concat();
    assert!(seen.starts_with("12: ") && seen.contains("XLA FFI GPU context is not available"), "{seen}");
    // What such a handler returns has its code, which the other runtime does not tell.
    let error = run("returns").unwrap_err();
    assert_eq!(error.code(), Code::Unimplemented);
    assert!(error.to_string().contains("XLA FFI GPU context is not available"), "{error}");
    // Whoever asks the table is told the same, and may destroy it.
    // SAFETY: the C API: the functions' own structs.
    unsafe {
        let mut args = XLA_FFI_Error_Create_Args {
            struct_size: size_of::<XLA_FFI_Error_Create_Args>(),
            extension_start: ptr::null_mut(),
            message: c"late".as_ptr(),
            errc: 4,
        };
        let error = ((*api()).XLA_FFI_Error_Create)(&raw mut args);
        let mut told = XLA_FFI_Error_GetDetails_Args {
            struct_size: size_of::<XLA_FFI_Error_GetDetails_Args>(),
            extension_start: ptr::null_mut(),
            error,
            message: ptr::null(),
            errc: 0,
        };
        ((*api()).XLA_FFI_Error_GetDetails)(&raw mut told);
        assert_eq!((CStr::from_ptr(told.message), told.errc), (c"late", 4));
        let mut gone = XLA_FFI_Error_Destroy_Args {
            struct_size: size_of::<XLA_FFI_Error_Destroy_Args>(),
            extension_start: ptr::null_mut(),
            error,
        };
        ((*api()).XLA_FFI_Error_Destroy)(&raw mut gone);
    }
    assert_eq!(ALIVE.load(Ordering::SeqCst), 0);
}
