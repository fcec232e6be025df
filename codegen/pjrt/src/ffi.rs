//! The FFI extension: handlers of XLA's FFI, types, and what executions hand to handlers.
//!
//! Handlers are registered for the process, before there is a client or after. A client uses them for calls
//! that nothing built in implements, or before what is built in (`HLO_CUSTOM_CALLS=registered`).
//!
//! **Invariant:** a target is registered once; the same functions again change nothing.

use std::ffi::{c_char, c_void};
use std::mem::transmute;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use hlo_client::custom_call::CustomCalls;
use hlo_ffi::{Bundle, ForeignHandler, Registered};
use rustc_hash::FxHashMap;

use crate::api::structs::{PJRT_FFI_Type_Register_Args, PJRT_FFI_UserData_Add_Args};
use crate::border;
use crate::error::{Code, Failure, Result, of_client};
use crate::handles;

/// `PJRT_FFI_Register_Handler_Args`, the one struct without a list of extensions.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[allow(non_camel_case_types, missing_docs, reason = "the names are the C API's")]
pub struct PJRT_FFI_Register_Handler_Args {
    pub struct_size: usize,
    pub target_name: *const c_char,
    pub target_name_size: usize,
    pub handler: *mut c_void,
    pub platform_name: *const c_char,
    pub platform_name_size: usize,
    pub traits: u32,
}

/// `PJRT_FFI_Type_Info`: of which states need no more than the first.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[allow(missing_docs, reason = "the names are the C API's")]
pub struct TypeInfo {
    pub deleter: Option<hlo_ffi::abi::Deleter>,
    pub serialize: *const c_void,
    pub deserialize: *const c_void,
}

/// Handlers of the process.
#[derive(Debug, Default)]
struct Handlers {
    /// What registers a target: addresses of its functions.
    known: Mutex<FxHashMap<String, [usize; 4]>>,
    /// After what is built in.
    after: CustomCalls,
    /// Before it.
    before: CustomCalls,
}

static HANDLERS: LazyLock<Handlers> = LazyLock::new(Handlers::default);

/// The handlers that a client uses.
pub fn custom_calls(before_built_in: bool) -> CustomCalls {
    if before_built_in { HANDLERS.before.clone() } else { HANDLERS.after.clone() }
}

fn register(name: &str, bundle: Bundle) -> Result<()> {
    let address = |f: Option<hlo_ffi::abi::Handler>| f.map_or(0, |f| (f as *const ()).addr());
    let functions = [bundle.instantiate, bundle.prepare, bundle.initialize, bundle.execute].map(address);
    let mut known = HANDLERS.known.lock().unwrap_or_else(PoisonError::into_inner);
    match known.get(name) {
        Some(before) if *before == functions => return Ok(()),
        Some(_) => {
            let message = format!("the target {name:?} is registered with another handler");
            return Err(Failure::new(Code::AlreadyExists, message));
        }
        None => {}
    }
    // SAFETY: the C API: what is registered is a handler.
    let handler = Arc::new(unsafe { ForeignHandler::typed(bundle) });
    HANDLERS.after.bind_fallback(name, handler.clone()).map_err(of_client)?;
    HANDLERS.before.bind_handler(name, handler).map_err(of_client)?;
    known.insert(name.to_owned(), functions);
    Ok(())
}

/// Takes over what was registered by `XLA_FFI_Handler_Register` since: handlers of several stages, and
/// libraries that register theirs by themselves.
///
/// # Errors
/// A target is registered with another handler.
pub fn take_over() -> Result<()> {
    for handler in hlo_ffi::take_registered().into_iter().filter(Registered::is_for_host) {
        register(&handler.name, handler.bundle)?;
    }
    Ok(())
}

pub(crate) fn type_register(args: &mut PJRT_FFI_Type_Register_Args) -> Result<()> {
    let name = border::text(args.type_name, args.type_name_size, "the name of the type")?;
    let info = args.type_info.cast::<TypeInfo>();
    let deleter = match info.is_null() {
        true => None,
        // SAFETY: the C API: what is not null is such a struct.
        false => unsafe { info.read_unaligned() }.deleter,
    };
    args.type_id = hlo_ffi::register_type(&name, args.type_id, deleter).map_err(of_client)?;
    Ok(())
}

pub(crate) fn user_data_add(args: &mut PJRT_FFI_UserData_Add_Args) -> Result<()> {
    let context = handles::get(args.context)?;
    // Older callers say how to free it; later ones keep it until the context is destroyed.
    // SAFETY: the C API: the data is valid until the context is destroyed, and the deleter is called then.
    unsafe { context.user_data.add(args.type_id, args.data, args.deleter) }.map_err(of_client)?;
    Ok(())
}

/// Registers a handler: its struct is read by hand, because it begins otherwise than the others.
pub(crate) fn register_handler(args: *const PJRT_FFI_Register_Handler_Args) -> Result<()> {
    if args.is_null() {
        return Err(Failure::invalid("PJRT_FFI_Register_Handler_Args is null"));
    }
    // Callers before traits had no more than this.
    const MIN_BYTES: usize = 6 * size_of::<usize>();
    // SAFETY: the C API: the struct begins with its size.
    let size = unsafe { args.cast::<usize>().read_unaligned() };
    if size < MIN_BYTES {
        return Err(Failure::invalid(format!(
            "PJRT_FFI_Register_Handler_Args says that it has {size} bytes"
        )));
    }
    // SAFETY: the C API: it has these fields, whose bytes are counted above; the last is not read.
    let (name, platform, handler) = unsafe {
        let name = border::text((*args).target_name, (*args).target_name_size, "the target")?;
        let platform = border::text((*args).platform_name, (*args).platform_name_size, "the platform")?;
        (name, platform, (*args).handler)
    };
    if handler.is_null() {
        return Err(Failure::invalid(format!("the handler of {name:?} is null")));
    }
    // SAFETY: the C API: the pointer is a handler's; a function pointer that is not null.
    let execute = unsafe { transmute::<*mut c_void, hlo_ffi::abi::Handler>(handler) };
    let bundle = Bundle { execute: Some(execute), ..Bundle::default() };
    if !(Registered { name: name.clone(), platform: platform.clone(), bundle }).is_for_host() {
        let message = format!("{name:?} is a handler for {platform}, which this plugin does not run");
        return Err(Failure::unimplemented(message));
    }
    register(&name, bundle)
}
