//! The structs of XLA's FFI C API 0.5, under its own names.
//!
//! Versions differ at the ends of structs alone, but for the bundle of handlers, which is nested in another
//! struct and had no `record` until 0.3, and for states, which had no stage until 0.2 and in 0.1 a deleter of
//! their own. Each struct begins with its size in bytes, which says what the other side has; of states the
//! version that a handler was compiled for does. Sizes and offsets are compared with XLA's headers by a test,
//! where there are some.

#![allow(
    non_camel_case_types,
    non_snake_case,
    missing_docs,
    reason = "the names are those of the C API, whose documentation says what fields are"
)]

use std::ffi::{c_char, c_int, c_void};
use std::mem::offset_of;

pub use crate::context::ExecutionContext;
pub use crate::error::Error;
pub use crate::future::Future;

/// The version of these structs.
pub const VERSION: (c_int, c_int) = (0, 5);
/// The oldest minor version of handlers that are called.
pub const OLDEST_MINOR: c_int = 1;

/// The first minor version in which states are of a stage; before, all are of the first.
pub const FIRST_MINOR_WITH_STAGES: c_int = 3;

/// A handler.
pub type Handler = unsafe extern "C" fn(*mut XLA_FFI_CallFrame) -> *mut Error;
/// A task of a thread pool.
pub type Task = unsafe extern "C" fn(*mut c_void);
/// Frees a state.
pub type Deleter = unsafe extern "C" fn(*mut c_void);
/// A function of the API that may fail.
pub type Fallible<A> = unsafe extern "C" fn(*mut A) -> *mut Error;

/// `XLA_FFI_Extension_Metadata`.
pub const EXTENSION_METADATA: c_int = 1;
pub const ARG_BUFFER: c_int = 1;
pub const RET_BUFFER: c_int = 1;
pub const ATTR_ARRAY: c_int = 1;
pub const ATTR_DICTIONARY: c_int = 2;
pub const ATTR_SCALAR: c_int = 3;
pub const ATTR_STRING: c_int = 4;
/// `XLA_FFI_DataType_TOKEN`; other types are numbered as in XLA's `PrimitiveType`.
pub const TYPE_TOKEN: c_int = 17;

/// The stages of a handler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    Instantiate = 0,
    Prepare = 1,
    Initialize = 2,
    Execute = 3,
}

macro_rules! structs {
    ($all:ident: $($name:ident { $($field:ident: $ty:ty),* $(,)? })*) => {
        $(
            #[derive(Clone, Copy, Debug)]
            #[repr(C)]
            pub struct $name { $(pub $field: $ty),* }
        )*

        /// Every struct: its name, its size, its fields and their offsets.
        pub const $all: &[(&str, usize, &[(&str, usize)])] =
            &[$((stringify!($name), size_of::<$name>(), &[$((stringify!($field), offset_of!($name, $field))),*])),*];
    };
}

structs! {
    ALL:
    XLA_FFI_ByteSpan { ptr: *const c_char, len: usize }
    XLA_FFI_Scalar { dtype: c_int, value: *mut c_void }
    XLA_FFI_Array { dtype: c_int, size: usize, data: *mut c_void }
    XLA_FFI_TypeId { type_id: i64 }
    XLA_FFI_TypeInfo { struct_size: usize, extension_start: *mut c_void, deleter: Option<Deleter> }
    XLA_FFI_InternalExtension { struct_size: usize, r#type: c_int, next: *mut XLA_FFI_InternalExtension }
    XLA_FFI_Api_Version { struct_size: usize, extension_start: *mut c_void, major_version: c_int, minor_version: c_int }
    XLA_FFI_Buffer { struct_size: usize, extension_start: *mut c_void, dtype: c_int, data: *mut c_void, rank: i64, dims: *mut i64 }
    XLA_FFI_Args { struct_size: usize, extension_start: *mut c_void, size: i64, types: *mut c_int, args: *mut *mut c_void }
    XLA_FFI_Rets { struct_size: usize, extension_start: *mut c_void, size: i64, types: *mut c_int, rets: *mut *mut c_void }
    XLA_FFI_Attrs { struct_size: usize, extension_start: *mut c_void, size: i64, types: *mut c_int, names: *mut *mut XLA_FFI_ByteSpan, attrs: *mut *mut c_void }
    XLA_FFI_CallFrame {
        struct_size: usize, extension_start: *mut c_void, api: *const XLA_FFI_Api, ctx: *mut ExecutionContext, stage: c_int, args: XLA_FFI_Args,
        rets: XLA_FFI_Rets, attrs: XLA_FFI_Attrs, future: *mut Future,
    }
    XLA_FFI_Handler_Bundle {
        instantiate: Option<Handler>, prepare: Option<Handler>, initialize: Option<Handler>, execute: Option<Handler>, record: Option<Handler>,
    }
    XLA_FFI_Handler_Register_Args {
        struct_size: usize, extension_start: *mut c_void, name: XLA_FFI_ByteSpan, platform: XLA_FFI_ByteSpan, bundle: XLA_FFI_Handler_Bundle, traits: u32,
    }
    XLA_FFI_Type_Register_Args { struct_size: usize, extension_start: *mut c_void, name: XLA_FFI_ByteSpan, type_id: *mut XLA_FFI_TypeId, type_info: *const XLA_FFI_TypeInfo }
    XLA_FFI_Error_Create_Args { struct_size: usize, extension_start: *mut c_void, message: *const c_char, errc: c_int }
    XLA_FFI_Error_GetDetails_Args { struct_size: usize, extension_start: *mut c_void, error: *mut Error, message: *const c_char, errc: c_int }
    XLA_FFI_Error_Destroy_Args { struct_size: usize, extension_start: *mut c_void, error: *mut Error }
    XLA_FFI_InvokeContext_Get_Args { struct_size: usize, extension_start: *mut c_void, ctx: *mut ExecutionContext, type_id: *mut XLA_FFI_TypeId, data: *mut c_void }
    XLA_FFI_InvokeContext_FindExtension_Args { struct_size: usize, extension_start: *mut c_void, ctx: *mut ExecutionContext, extension_type: i64, extension: *const c_void }
    XLA_FFI_CustomOptions_Get_Args { struct_size: usize, extension_start: *mut c_void, ctx: *mut ExecutionContext, attrs: *const XLA_FFI_Attrs }
    XLA_FFI_State_Set_Args { struct_size: usize, extension_start: *mut c_void, ctx: *mut ExecutionContext, stage: c_int, type_id: *mut XLA_FFI_TypeId, state: *mut c_void }
    XLA_FFI_State_Get_Args { struct_size: usize, extension_start: *mut c_void, ctx: *mut ExecutionContext, stage: c_int, type_id: *mut XLA_FFI_TypeId, state: *mut c_void }
    XLA_FFI_Stream_Get_Args { struct_size: usize, extension_start: *mut c_void, ctx: *mut ExecutionContext, stream: *mut c_void }
    XLA_FFI_DeviceMemory_Allocate_Args { struct_size: usize, extension_start: *mut c_void, ctx: *mut ExecutionContext, size: usize, alignment: usize, data: *mut c_void }
    XLA_FFI_DeviceMemory_Free_Args { struct_size: usize, extension_start: *mut c_void, ctx: *mut ExecutionContext, size: usize, data: *mut c_void }
    XLA_FFI_ThreadPool_Schedule_Args { struct_size: usize, extension_start: *mut c_void, ctx: *mut ExecutionContext, task: Option<Task>, data: *mut c_void }
    XLA_FFI_ThreadPool_NumThreads_Args { struct_size: usize, extension_start: *mut c_void, ctx: *mut ExecutionContext, num_threads: *mut i64 }
    XLA_FFI_RunId_Get_Args { struct_size: usize, extension_start: *mut c_void, ctx: *mut ExecutionContext, run_id: i64 }
    XLA_FFI_DeviceOrdinal_Get_Args { struct_size: usize, extension_start: *mut c_void, ctx: *mut ExecutionContext, device_ordinal: i32 }
    XLA_FFI_Future_Create_Args { struct_size: usize, extension_start: *mut c_void, future: *mut Future }
    XLA_FFI_Future_SetAvailable_Args { struct_size: usize, extension_start: *mut c_void, future: *mut Future }
    XLA_FFI_Future_SetError_Args { struct_size: usize, extension_start: *mut c_void, future: *mut Future, error: *mut Error }
    XLA_FFI_Metadata { struct_size: usize, api_version: XLA_FFI_Api_Version, traits: u32, state_type_id: XLA_FFI_TypeId }
    XLA_FFI_Metadata_Extension { extension_base: XLA_FFI_InternalExtension, metadata: *mut XLA_FFI_Metadata }
    XLA_FFI_Api {
        struct_size: usize,
        extension_start: *mut c_void,
        api_version: XLA_FFI_Api_Version,
        internal_api: *const c_void,
        XLA_FFI_Error_Create: unsafe extern "C" fn(*mut XLA_FFI_Error_Create_Args) -> *mut Error,
        XLA_FFI_Error_GetDetails: unsafe extern "C" fn(*mut XLA_FFI_Error_GetDetails_Args),
        XLA_FFI_Error_Destroy: unsafe extern "C" fn(*mut XLA_FFI_Error_Destroy_Args),
        XLA_FFI_Handler_Register: Fallible<XLA_FFI_Handler_Register_Args>,
        XLA_FFI_Stream_Get: Fallible<XLA_FFI_Stream_Get_Args>,
        XLA_FFI_Type_Register: Fallible<XLA_FFI_Type_Register_Args>,
        XLA_FFI_InvokeContext_Get: Fallible<XLA_FFI_InvokeContext_Get_Args>,
        XLA_FFI_State_Set: Fallible<XLA_FFI_State_Set_Args>,
        XLA_FFI_State_Get: Fallible<XLA_FFI_State_Get_Args>,
        XLA_FFI_DeviceMemory_Allocate: Fallible<XLA_FFI_DeviceMemory_Allocate_Args>,
        XLA_FFI_DeviceMemory_Free: Fallible<XLA_FFI_DeviceMemory_Free_Args>,
        XLA_FFI_ThreadPool_Schedule: Fallible<XLA_FFI_ThreadPool_Schedule_Args>,
        XLA_FFI_ThreadPool_NumThreads: Fallible<XLA_FFI_ThreadPool_NumThreads_Args>,
        XLA_FFI_Future_Create: Fallible<XLA_FFI_Future_Create_Args>,
        XLA_FFI_Future_SetAvailable: Fallible<XLA_FFI_Future_SetAvailable_Args>,
        XLA_FFI_Future_SetError: Fallible<XLA_FFI_Future_SetError_Args>,
        XLA_FFI_RunId_Get: Fallible<XLA_FFI_RunId_Get_Args>,
        XLA_FFI_DeviceOrdinal_Get: Fallible<XLA_FFI_DeviceOrdinal_Get_Args>,
        XLA_FFI_InvokeContext_FindExtension: Fallible<XLA_FFI_InvokeContext_FindExtension_Args>,
        XLA_FFI_CustomOptions_Get: Fallible<XLA_FFI_CustomOptions_Get_Args>,
    }
}

structs! {
    ALL_OLDER:
    XLA_FFI_State_Set_Args_0_1 { struct_size: usize, extension_start: *mut c_void, ctx: *mut ExecutionContext, type_id: *mut XLA_FFI_TypeId, state: *mut c_void, deleter: Option<Deleter> }
    XLA_FFI_State_Set_Args_0_2 { struct_size: usize, extension_start: *mut c_void, ctx: *mut ExecutionContext, type_id: *mut XLA_FFI_TypeId, state: *mut c_void }
    XLA_FFI_State_Get_Args_0_2 { struct_size: usize, extension_start: *mut c_void, ctx: *mut ExecutionContext, type_id: *mut XLA_FFI_TypeId, state: *mut c_void }
}

// SAFETY: pointers to functions, and to nothing else but null.
unsafe impl Sync for XLA_FFI_Api {}

/// What `struct_size` of a call frame is: the field after it has been there in all versions and is not
/// counted.
pub const CALL_FRAME_SIZE: usize = offset_of!(XLA_FFI_CallFrame, attrs) + size_of::<XLA_FFI_Attrs>();

/// `struct_size` of a registration in 0.3, whose bundle has no `record`.
pub const REGISTER_SIZE_0_3: usize = 84;
