//! Extensions of the API: lists of functions that a caller finds by their type, each pointing at the next
//! extension.

use std::ffi::c_void;

use crate::api::table::Function;

/// `PJRT_Extension_Base`, and after it the functions of an extension.
#[derive(Debug)]
#[repr(C)]
#[allow(dead_code, reason = "callers read the fields")]
pub struct Extension<const FUNCTIONS: usize> {
    struct_size: usize,
    r#type: u32,
    next: *mut c_void,
    functions: [Function; FUNCTIONS],
}

// SAFETY: nothing in it is ever written, nor is what its one pointer points at.
unsafe impl<const FUNCTIONS: usize> Sync for Extension<FUNCTIONS> {}

impl<const FUNCTIONS: usize> Extension<FUNCTIONS> {
    /// Of a `PJRT_Extension_Type`, before the next one, which may be null.
    pub const fn new(r#type: u32, next: *const c_void, functions: [Function; FUNCTIONS]) -> Self {
        Self { struct_size: size_of::<Self>(), r#type, next: next.cast_mut(), functions }
    }
}

/// The functions of an extension, each of which gets a struct of its own.
macro_rules! functions {
    ($($name:literal => $handler:path,)*) => {
        [$({
            unsafe extern "C" fn call(args: *mut ::std::ffi::c_void) -> *mut $crate::opaque::Error {
                // SAFETY: the C API: a function is given a struct of its own.
                unsafe { $crate::border::enter(args, $name, $handler) }
            }
            call as $crate::api::table::Function
        }),*]
    };
}
pub(crate) use functions;
