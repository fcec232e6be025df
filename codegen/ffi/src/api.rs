//! The table of functions that handlers are given.

use std::ffi::{CStr, c_void};
use std::mem::offset_of;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use hlo_client::Code;

use crate::abi::{
    Deleter, ExecutionContext, FIRST_MINOR_WITH_STAGES, REGISTER_SIZE_0_3, Stage, VERSION, XLA_FFI_Api,
    XLA_FFI_Api_Version, XLA_FFI_Attrs, XLA_FFI_ByteSpan, XLA_FFI_CustomOptions_Get_Args,
    XLA_FFI_DeviceMemory_Allocate_Args, XLA_FFI_DeviceMemory_Free_Args, XLA_FFI_DeviceOrdinal_Get_Args,
    XLA_FFI_Error_Create_Args, XLA_FFI_Error_Destroy_Args, XLA_FFI_Error_GetDetails_Args,
    XLA_FFI_Future_Create_Args, XLA_FFI_Future_SetAvailable_Args, XLA_FFI_Future_SetError_Args,
    XLA_FFI_Handler_Bundle, XLA_FFI_Handler_Register_Args, XLA_FFI_InvokeContext_FindExtension_Args,
    XLA_FFI_InvokeContext_Get_Args, XLA_FFI_RunId_Get_Args, XLA_FFI_State_Get_Args,
    XLA_FFI_State_Get_Args_0_2, XLA_FFI_State_Set_Args, XLA_FFI_State_Set_Args_0_1,
    XLA_FFI_State_Set_Args_0_2, XLA_FFI_Stream_Get_Args, XLA_FFI_ThreadPool_NumThreads_Args,
    XLA_FFI_ThreadPool_Schedule_Args, XLA_FFI_Type_Register_Args, XLA_FFI_TypeId, XLA_FFI_TypeInfo,
};
use crate::error::{self, Error, Result};
use crate::future::{self, Future};
use crate::library::{self, Registered};
use crate::{memory, pool, types};

/// The table, as `XLA_FFI_GetApi` gives it.
pub fn api() -> *const XLA_FFI_Api {
    &raw const API
}

/// The function that libraries which register their handlers by themselves ask for the table.
#[allow(non_snake_case, reason = "the name is the C API's")]
#[unsafe(no_mangle)]
pub extern "C" fn XLA_FFI_GetApi() -> *const XLA_FFI_Api {
    api()
}

static API: XLA_FFI_Api = XLA_FFI_Api {
    struct_size: size_of::<XLA_FFI_Api>(),
    extension_start: ptr::null_mut(),
    api_version: XLA_FFI_Api_Version {
        struct_size: size_of::<XLA_FFI_Api_Version>(),
        extension_start: ptr::null_mut(),
        major_version: VERSION.0,
        minor_version: VERSION.1,
    },
    internal_api: ptr::null(),
    XLA_FFI_Error_Create: error_create,
    XLA_FFI_Error_GetDetails: error_details,
    XLA_FFI_Error_Destroy: error_destroy,
    XLA_FFI_Handler_Register: handler_register,
    XLA_FFI_Stream_Get: stream_get,
    XLA_FFI_Type_Register: type_register,
    XLA_FFI_InvokeContext_Get: context_get,
    XLA_FFI_State_Set: state_set,
    XLA_FFI_State_Get: state_get,
    XLA_FFI_DeviceMemory_Allocate: memory_allocate,
    XLA_FFI_DeviceMemory_Free: memory_free,
    XLA_FFI_ThreadPool_Schedule: pool_schedule,
    XLA_FFI_ThreadPool_NumThreads: pool_threads,
    XLA_FFI_Future_Create: future_create,
    XLA_FFI_Future_SetAvailable: future_available,
    XLA_FFI_Future_SetError: future_error,
    XLA_FFI_RunId_Get: run_id,
    XLA_FFI_DeviceOrdinal_Get: device_ordinal,
    XLA_FFI_InvokeContext_FindExtension: find_extension,
    XLA_FFI_CustomOptions_Get: custom_options,
};

/// Runs a function of the API: a failure or a panic is an error that the caller destroys.
fn answer(run: impl FnOnce() -> Result<()>) -> *mut Error {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(())) => ptr::null_mut(),
        Ok(Err(error)) => error.give(),
        Err(_panic) => Error::new(Code::Internal, "a function of the API panicked").give(),
    }
}

/// The struct that a caller points at.
///
/// # Safety
/// It is null, or such a struct that nothing else accesses now; its size is one of its fields.
unsafe fn given<'a, A>(args: *mut A, least_bytes: usize) -> Result<&'a mut A> {
    if args.is_null() || !args.is_aligned() {
        return Err(Error::new(Code::InvalidArgument, "the arguments are null"));
    }
    // SAFETY: every struct of the API begins with its size.
    let size = unsafe { args.cast::<usize>().read() };
    if size < least_bytes {
        let message = format!("a struct of {size} bytes, which has at least {least_bytes}");
        return Err(Error::new(Code::InvalidArgument, message));
    }
    // SAFETY: as this function's.
    Ok(unsafe { &mut *args })
}

/// The bytes up to the end of a field.
macro_rules! up_to {
    ($ty:ty, $field:ident, $field_ty:ty) => {
        offset_of!($ty, $field) + size_of::<$field_ty>()
    };
}

/// The context that a caller means.
///
/// # Safety
/// It is null, or the one that the handler was called with.
unsafe fn context<'a>(ctx: *mut ExecutionContext) -> Result<&'a ExecutionContext> {
    let null = || Error::new(Code::InvalidArgument, "the execution context is null");
    // SAFETY: as this function's; the context outlives the call of the handler.
    unsafe { ctx.as_ref() }.ok_or_else(null)
}

/// # Safety
/// As [`context`].
unsafe fn type_id(id: *mut XLA_FFI_TypeId) -> Result<i64> {
    let null = || Error::new(Code::InvalidArgument, "the type is null");
    // SAFETY: as this function's.
    unsafe { id.as_ref() }.map(|id| id.type_id).ok_or_else(null)
}

/// Text that a caller points at.
///
/// # Safety
/// There are as many bytes.
unsafe fn text(span: XLA_FFI_ByteSpan, what: &str) -> Result<String> {
    let wrong = || Error::new(Code::InvalidArgument, format!("{what} is no text"));
    if span.len == 0 {
        return Ok(String::new());
    }
    if span.ptr.is_null() || isize::try_from(span.len).is_err() {
        return Err(wrong());
    }
    // SAFETY: as this function's.
    let bytes = unsafe { std::slice::from_raw_parts(span.ptr.cast::<u8>(), span.len) };
    String::from_utf8(bytes.to_vec()).map_err(|_| wrong())
}

unsafe extern "C" fn error_create(args: *mut XLA_FFI_Error_Create_Args) -> *mut Error {
    // SAFETY: the C API: the function's own struct.
    match unsafe { given(args, size_of::<XLA_FFI_Error_Create_Args>() - 4) } {
        Ok(args) => {
            let message = match args.message.is_null() {
                true => Vec::new(),
                // SAFETY: the C API: a message ends with a zero.
                false => unsafe { CStr::from_ptr(args.message) }.to_bytes().to_vec(),
            };
            Error::new(error::code_of(args.errc), message).give()
        }
        Err(error) => error.give(),
    }
}

unsafe extern "C" fn error_details(args: *mut XLA_FFI_Error_GetDetails_Args) {
    let least = up_to!(XLA_FFI_Error_GetDetails_Args, message, *const u8);
    // SAFETY: the C API: the function's own struct, which ends here in 0.3.
    if unsafe { given(args, least) }.is_err() {
        return;
    }
    // SAFETY: as above; fields are written one by one, as the caller may have no more than the first.
    unsafe {
        let error = (*args).error;
        if error.is_null() {
            return;
        }
        let (message, code) = Error::details(error);
        (*args).message = message;
        if (*args).struct_size >= up_to!(XLA_FFI_Error_GetDetails_Args, errc, i32) {
            (*args).errc = error::number_of(code);
        }
    }
}

unsafe extern "C" fn error_destroy(args: *mut XLA_FFI_Error_Destroy_Args) {
    // SAFETY: the C API: the function's own struct.
    if let Ok(args) = unsafe { given(args, size_of::<XLA_FFI_Error_Destroy_Args>()) } {
        // SAFETY: the C API: an error is destroyed once, by who was given it.
        drop(unsafe { Error::take(args.error) });
    }
}

unsafe extern "C" fn handler_register(args: *mut XLA_FFI_Handler_Register_Args) -> *mut Error {
    answer(|| {
        // SAFETY: the C API: the function's own struct, in 0.3 with a shorter bundle.
        let args = unsafe { given(args, REGISTER_SIZE_0_3) }?;
        let mut bundle = args.bundle;
        if args.struct_size < size_of::<XLA_FFI_Handler_Register_Args>() - 4 {
            bundle = XLA_FFI_Handler_Bundle { record: None, ..bundle };
        }
        // SAFETY: the C API: both are text of the caller's.
        let (name, platform) =
            unsafe { (text(args.name, "the name")?, text(args.platform, "the platform")?) };
        if bundle.execute.is_none() {
            return Err(Error::new(Code::InvalidArgument, format!("{name} has no handler to execute")));
        }
        library::register(Registered { name, platform, bundle: bundle.into() });
        Ok(())
    })
}

unsafe extern "C" fn type_register(args: *mut XLA_FFI_Type_Register_Args) -> *mut Error {
    answer(|| {
        let least = up_to!(XLA_FFI_Type_Register_Args, type_id, *mut u8);
        // SAFETY: the C API: the function's own struct.
        let args = unsafe { given(args, least) }?;
        // SAFETY: the C API: text of the caller's.
        let name = unsafe { text(args.name, "the name of the type") }?;
        // SAFETY: the C API: where the number is and is to be.
        let Some(id) = (unsafe { args.type_id.as_mut() }) else {
            return Err(Error::new(Code::InvalidArgument, format!("the number of {name} is null")));
        };
        // SAFETY: the struct is there up to the field before it, which `given` has seen.
        let deleter = unsafe { deleter_of_type(&raw const *args) };
        id.type_id = types::add(&name, id.type_id, deleter)?;
        Ok(())
    })
}

/// What frees values of a type that is registered.
///
/// In 0.1 the struct has the size that later versions declare, and ends before `type_info`: what is there is
/// none of its then. So both are read by way of the kernel, which refuses addresses that are none, and what
/// the field points at is taken for a `XLA_FFI_TypeInfo` if it begins with the size of one.
///
/// # Safety
/// It is the struct of `XLA_FFI_Type_Register`, or that of 0.1.
unsafe fn deleter_of_type(args: *const XLA_FFI_Type_Register_Args) -> Option<Deleter> {
    // Without the kernel's word the caller is taken to be of a later version.
    // SAFETY: as this function's.
    let word = |address: usize| unsafe { memory::word(address) };
    let info = word(args.expose_provenance() + offset_of!(XLA_FFI_Type_Register_Args, type_info))?;
    if info == 0 || word(info)? != size_of::<XLA_FFI_TypeInfo>() {
        return None;
    }
    let deleter = word(info + offset_of!(XLA_FFI_TypeInfo, deleter))?;
    // SAFETY: a null pointer or a function's address, as `Option` of a function is.
    unsafe { std::mem::transmute::<usize, Option<Deleter>>(deleter) }
}

unsafe extern "C" fn stream_get(_args: *mut XLA_FFI_Stream_Get_Args) -> *mut Error {
    Error::new(
        Code::Unimplemented,
        "there is no stream, for handlers run on the host: XLA FFI GPU context is not available",
    )
    .give()
}

unsafe extern "C" fn context_get(args: *mut XLA_FFI_InvokeContext_Get_Args) -> *mut Error {
    answer(|| {
        // SAFETY: the C API: the function's own struct.
        let args = unsafe { given(args, size_of::<XLA_FFI_InvokeContext_Get_Args>()) }?;
        // SAFETY: the C API: the handler's context, and a type.
        args.data = unsafe { context(args.ctx)?.user_data(type_id(args.type_id)?) }?;
        Ok(())
    })
}

/// The context of a call about a state, whose structs begin alike in all versions.
///
/// # Safety
/// As [`given`] and [`context`].
unsafe fn context_of_state<'a>(args: *mut XLA_FFI_State_Get_Args_0_2) -> Result<&'a ExecutionContext> {
    // SAFETY: as this function's; no version's struct is shorter.
    unsafe { context(given(args, size_of::<XLA_FFI_State_Get_Args_0_2>())?.ctx) }
}

/// The stage of states of versions before [`FIRST_MINOR_WITH_STAGES`].
const INSTANTIATE: i32 = Stage::Instantiate as i32;

unsafe extern "C" fn state_set(args: *mut XLA_FFI_State_Set_Args) -> *mut Error {
    answer(|| {
        // SAFETY: the C API: the function's own struct, of the version that the handler was compiled for.
        let context = unsafe { context_of_state(args.cast()) }?;
        // SAFETY: the C API: the struct as above, and a type.
        unsafe {
            match context.minor() {
                1 => {
                    let args = given(args.cast(), size_of::<XLA_FFI_State_Set_Args_0_1>())?;
                    let XLA_FFI_State_Set_Args_0_1 { type_id: of, state, deleter, .. } = *args;
                    context.set_state(INSTANTIATE, type_id(of)?, state, deleter)
                }
                2 => {
                    let args = given(args.cast(), size_of::<XLA_FFI_State_Set_Args_0_2>())?;
                    let XLA_FFI_State_Set_Args_0_2 { type_id: of, state, .. } = *args;
                    context.set_state(INSTANTIATE, type_id(of)?, state, None)
                }
                _later => {
                    let args = given(args, size_of::<XLA_FFI_State_Set_Args>())?;
                    context.set_state(args.stage, type_id(args.type_id)?, args.state, None)
                }
            }
        }
    })
}

unsafe extern "C" fn state_get(args: *mut XLA_FFI_State_Get_Args) -> *mut Error {
    answer(|| {
        // SAFETY: the C API: the function's own struct, of the version that the handler was compiled for.
        let context = unsafe { context_of_state(args.cast()) }?;
        // SAFETY: the C API: the struct as above, and a type.
        unsafe {
            if context.minor() < FIRST_MINOR_WITH_STAGES {
                let args: &mut XLA_FFI_State_Get_Args_0_2 =
                    given(args.cast(), size_of::<XLA_FFI_State_Get_Args_0_2>())?;
                args.state = context.state(INSTANTIATE, type_id(args.type_id)?)?;
            } else {
                let args = given(args, size_of::<XLA_FFI_State_Get_Args>())?;
                args.state = context.state(args.stage, type_id(args.type_id)?)?;
            }
        }
        Ok(())
    })
}

unsafe extern "C" fn memory_allocate(args: *mut XLA_FFI_DeviceMemory_Allocate_Args) -> *mut Error {
    answer(|| {
        // SAFETY: the C API: the function's own struct.
        let args = unsafe { given(args, size_of::<XLA_FFI_DeviceMemory_Allocate_Args>()) }?;
        // SAFETY: the C API: the handler's context.
        args.data = unsafe { context(args.ctx) }?.allocate(args.size, args.alignment)?;
        Ok(())
    })
}

unsafe extern "C" fn memory_free(args: *mut XLA_FFI_DeviceMemory_Free_Args) -> *mut Error {
    answer(|| {
        // SAFETY: the C API: the function's own struct.
        let args = unsafe { given(args, size_of::<XLA_FFI_DeviceMemory_Free_Args>()) }?;
        // SAFETY: the C API: the handler's context.
        unsafe { context(args.ctx) }?.free(args.data)
    })
}

unsafe extern "C" fn pool_schedule(args: *mut XLA_FFI_ThreadPool_Schedule_Args) -> *mut Error {
    answer(|| {
        // SAFETY: the C API: the function's own struct.
        let args = unsafe { given(args, size_of::<XLA_FFI_ThreadPool_Schedule_Args>()) }?;
        let task = args.task.ok_or_else(|| Error::new(Code::InvalidArgument, "the task is null"))?;
        match pool::schedule(task, args.data) {
            true => Ok(()),
            false => Err(Error::new(Code::ResourceExhausted, "there are no threads for tasks")),
        }
    })
}

unsafe extern "C" fn pool_threads(args: *mut XLA_FFI_ThreadPool_NumThreads_Args) -> *mut Error {
    answer(|| {
        // SAFETY: the C API: the function's own struct.
        let args = unsafe { given(args, size_of::<XLA_FFI_ThreadPool_NumThreads_Args>()) }?;
        // SAFETY: the C API: where the number is to be.
        match unsafe { args.num_threads.as_mut() } {
            Some(threads) => *threads = pool::threads() as i64,
            None => return Err(Error::new(Code::InvalidArgument, "the number of threads is null")),
        }
        Ok(())
    })
}

unsafe extern "C" fn future_create(args: *mut XLA_FFI_Future_Create_Args) -> *mut Error {
    answer(|| {
        // Its declared size is that without the result.
        // SAFETY: the C API: the function's own struct.
        let args = unsafe { given(args, offset_of!(XLA_FFI_Future_Create_Args, future)) }?;
        args.future = Future::give();
        Ok(())
    })
}

unsafe extern "C" fn future_available(args: *mut XLA_FFI_Future_SetAvailable_Args) -> *mut Error {
    answer(|| {
        // SAFETY: the C API: the function's own struct.
        let args = unsafe { given(args, size_of::<XLA_FFI_Future_SetAvailable_Args>()) }?;
        future::check(args.future)?;
        // SAFETY: the C API: a future is completed once.
        unsafe { Future::complete(args.future, Ok(())) };
        Ok(())
    })
}

unsafe extern "C" fn future_error(args: *mut XLA_FFI_Future_SetError_Args) -> *mut Error {
    answer(|| {
        // SAFETY: the C API: the function's own struct.
        let args = unsafe { given(args, size_of::<XLA_FFI_Future_SetError_Args>()) }?;
        future::check(args.future)?;
        // SAFETY: the C API: the error is given away.
        let error = unsafe { Error::take(args.error) };
        let error = error.map_or_else(|| Error::new(Code::Internal, "an error that is null"), |error| *error);
        // SAFETY: the C API: a future is completed once.
        unsafe { Future::complete(args.future, Err(error)) };
        Ok(())
    })
}

unsafe extern "C" fn run_id(args: *mut XLA_FFI_RunId_Get_Args) -> *mut Error {
    answer(|| {
        // SAFETY: the C API: the function's own struct. (Headers of 0.3 say the size of another struct, which
        // is larger.)
        let args = unsafe { given(args, size_of::<XLA_FFI_RunId_Get_Args>()) }?;
        // SAFETY: the C API: the handler's context.
        args.run_id = unsafe { context(args.ctx) }?.run_id()?;
        Ok(())
    })
}

unsafe extern "C" fn device_ordinal(args: *mut XLA_FFI_DeviceOrdinal_Get_Args) -> *mut Error {
    answer(|| {
        // SAFETY: the C API: the function's own struct.
        let args = unsafe { given(args, up_to!(XLA_FFI_DeviceOrdinal_Get_Args, device_ordinal, i32)) }?;
        // SAFETY: the C API: the handler's context.
        args.device_ordinal = unsafe { context(args.ctx) }?.device()?;
        Ok(())
    })
}

unsafe extern "C" fn find_extension(args: *mut XLA_FFI_InvokeContext_FindExtension_Args) -> *mut Error {
    answer(|| {
        // SAFETY: the C API: the function's own struct.
        let args = unsafe { given(args, size_of::<XLA_FFI_InvokeContext_FindExtension_Args>()) }?;
        args.extension = ptr::null::<c_void>();
        let message = format!("there is no extension {}", args.extension_type);
        Err(Error::new(Code::NotFound, message))
    })
}

/// A dictionary without entries.
struct NoOptions(XLA_FFI_Attrs);

// SAFETY: its pointers are null.
unsafe impl Sync for NoOptions {}

static NO_OPTIONS: NoOptions = NoOptions(XLA_FFI_Attrs {
    struct_size: size_of::<XLA_FFI_Attrs>(),
    extension_start: ptr::null_mut(),
    size: 0,
    types: ptr::null_mut(),
    names: ptr::null_mut(),
    attrs: ptr::null_mut(),
});

unsafe extern "C" fn custom_options(args: *mut XLA_FFI_CustomOptions_Get_Args) -> *mut Error {
    answer(|| {
        // SAFETY: the C API: the function's own struct.
        let args = unsafe { given(args, size_of::<XLA_FFI_CustomOptions_Get_Args>()) }?;
        args.attrs = &raw const NO_OPTIONS.0;
        Ok(())
    })
}
