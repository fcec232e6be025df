//! A plugin: a shared library with one symbol, which gives a table of functions.
//!
//! The table begins with its size, a list of extensions and the version of the API; functions follow in the
//! order of [`hlo_pjrt_abi::names::NAMES`]. A plugin of another version has a table that ends earlier or goes
//! on.

use std::ffi::c_void;
use std::fmt;
use std::ptr;
use std::sync::Arc;

pub(crate) use hlo_pjrt_abi::names::Function;
use hlo_pjrt_abi::names::NAMES;
use hlo_pjrt_abi::opaque::Event;
use hlo_pjrt_abi::structs::{
    PJRT_Api_Version, PJRT_Error_Destroy_Args, PJRT_Error_GetCode_Args, PJRT_Error_Message_Args,
    PJRT_Event_Await_Args, PJRT_Event_Destroy_Args, PJRT_Plugin_Initialize_Args, Struct,
};
use hlo_pjrt_abi::{Code, Failure};

/// What a table begins with.
#[repr(C)]
struct Header {
    struct_size: usize,
    extension_start: *mut c_void,
    version: PJRT_Api_Version,
}

/// A loaded plugin.
pub struct Plugin {
    path: String,
    table: *const Header,
    /// Of the API that it was built for: major and minor.
    version: (i32, i32),
}

// SAFETY: the table is never written, and the C API lets any thread call its functions.
unsafe impl Send for Plugin {}
// SAFETY: as above.
unsafe impl Sync for Plugin {}

impl fmt::Debug for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plugin").field("path", &self.path).field("version", &self.version).finish()
    }
}

/// A struct of the C API that is all zeros but for its size.
pub(crate) fn zeroed<S: Struct>() -> S {
    // SAFETY: `Struct`: all zeros are a value of it.
    let mut args: S = unsafe { std::mem::zeroed() };
    // SAFETY: `Struct`: it begins with its size.
    unsafe { (&raw mut args).cast::<usize>().write(size_of::<S>()) };
    args
}

impl Plugin {
    /// Loads a shared library, whose code runs by that, and initializes the plugin in it.
    ///
    /// # Errors
    /// [`Code::NotFound`]: the loader cannot load it, or it has no `GetPjrtApi`; [`Code::FailedPrecondition`]: its
    /// API is of another major version; what the plugin says when it is initialized.
    pub fn load(path: &str) -> Result<Arc<Self>, Failure> {
        // Without a slash the loader would look in its own folders.
        let file = if path.contains('/') { path.to_owned() } else { format!("./{path}") };
        let not_found = |e: libloading::Error| Failure::new(Code::NotFound, format!("{path}: {e}"));
        // SAFETY: what runs in the library is trusted by who names it, as a program is that one starts.
        let library = unsafe { libloading::Library::new(file) }.map_err(not_found)?;
        // Objects of the plugin, and threads that it has started, may run its code at any time.
        let library: &'static libloading::Library = Box::leak(Box::new(library));
        // SAFETY: the C API: the type of this symbol; its address may be null.
        let entry =
            unsafe { library.get::<Option<unsafe extern "C" fn() -> *const Header>>(b"GetPjrtApi\0") };
        let none = || Failure::new(Code::NotFound, format!("{path}: GetPjrtApi is at no address"));
        let entry = entry.map_err(not_found)?.ok_or_else(none)?;
        // SAFETY: the C API: it takes nothing, and what it gives is never freed.
        let table = unsafe { entry() };
        if table.is_null() {
            return Err(Failure::new(Code::FailedPrecondition, format!("{path}: GetPjrtApi gives no table")));
        }
        // SAFETY: the C API: a table begins with its size.
        let size = unsafe { (*table).struct_size };
        if size < size_of::<Header>() {
            return Err(Failure::new(
                Code::FailedPrecondition,
                format!("{path}: a table of {size} bytes has no version"),
            ));
        }
        // SAFETY: the table is large enough to have a version.
        let version = unsafe { ((*table).version.major_version, (*table).version.minor_version) };
        let ours = hlo_pjrt_abi::numbers::API_VERSION;
        if version.0 != ours.0 {
            let message = format!(
                "{path} is for version {}.{} of the PJRT C API; this program speaks {}.{}",
                version.0, version.1, ours.0, ours.1
            );
            return Err(Failure::new(Code::FailedPrecondition, message));
        }
        let plugin = Arc::new(Self { path: path.to_owned(), table, version });
        plugin.call("PJRT_Plugin_Initialize", &mut zeroed::<PJRT_Plugin_Initialize_Args>())?;
        Ok(plugin)
    }

    /// The file that it was loaded from.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The version of the C API that it was built for: major and minor.
    pub fn version(&self) -> (i32, i32) {
        self.version
    }

    pub(crate) fn function(&self, name: &str) -> Result<Function, Failure> {
        let index = NAMES.iter().position(|n| *n == name);
        let index = index.expect("invariant: the names are those of the table");
        let offset = size_of::<Header>() + index * size_of::<usize>();
        let missing = || Failure::new(Code::Unimplemented, format!("{} has no {name}", self.path));
        // SAFETY: the table begins with its size, and a slot within that is a function or null.
        let function = unsafe {
            if offset + size_of::<usize>() > (*self.table).struct_size {
                return Err(missing());
            }
            self.table.cast::<u8>().add(offset).cast::<Option<Function>>().read()
        };
        function.ok_or_else(missing)
    }

    /// Calls a function with its arguments.
    ///
    /// # Errors
    /// The plugin has no such function, or what it says of the failure.
    pub(crate) fn call<S: Struct>(&self, name: &str, args: &mut S) -> Result<(), Failure> {
        debug_assert_eq!(S::NAME.strip_suffix("_Args"), Some(name));
        let function = self.function(name)?;
        // SAFETY: the C API: a function is given its struct, which knows its size. Pointers in it are live:
        // whoever fills them in says why.
        let error = unsafe { function(ptr::from_mut(args).cast()) };
        if error.is_null() { Ok(()) } else { Err(self.taken(name, error)) }
    }

    /// What an error says, which is destroyed.
    pub(crate) fn taken(&self, name: &str, error: *mut hlo_pjrt_abi::opaque::Error) -> Failure {
        let mut message = zeroed::<PJRT_Error_Message_Args>();
        message.error = error;
        let mut code = zeroed::<PJRT_Error_GetCode_Args>();
        code.error = error;
        let mut text = String::new();
        // These two return nothing in the C API: what is in the register of a result is no error.
        if let Ok(function) = self.function("PJRT_Error_Message") {
            // SAFETY: the C API; the error is alive, and its text lives as long as it does.
            unsafe {
                function((&raw mut message).cast());
                text =
                    String::from_utf8_lossy(bytes(message.message.cast(), message.message_size)).into_owned();
            }
        }
        let known = self.function("PJRT_Error_GetCode").is_ok_and(|function| {
            // SAFETY: as above.
            unsafe { function((&raw mut code).cast()).is_null() }
        });
        let code = if known { Code::of_number(code.code) } else { None };
        if let Ok(function) = self.function("PJRT_Error_Destroy") {
            let mut args = zeroed::<PJRT_Error_Destroy_Args>();
            args.error = error;
            // SAFETY: the C API; nothing uses the error any more.
            unsafe { function((&raw mut args).cast()) };
        }
        Failure::new(code.unwrap_or(Code::Unknown), format!("{name}: {text}"))
    }

    /// Waits for an event, which is destroyed.
    ///
    /// # Errors
    /// What went wrong before it.
    pub(crate) fn wait(&self, event: *mut Event) -> Result<(), Failure> {
        if event.is_null() {
            return Ok(());
        }
        let mut args = zeroed::<PJRT_Event_Await_Args>();
        args.event = event;
        let ended = self.call("PJRT_Event_Await", &mut args);
        let mut args = zeroed::<PJRT_Event_Destroy_Args>();
        args.event = event;
        self.call("PJRT_Event_Destroy", &mut args)?;
        ended
    }
}

/// Bytes of a plugin's.
///
/// # Safety
/// Null, or as many bytes that live as long as the result is used.
pub(crate) unsafe fn bytes<'a>(start: *const u8, len: usize) -> &'a [u8] {
    if start.is_null() || len == 0 {
        return &[];
    }
    // SAFETY: as many bytes, says the caller.
    unsafe { std::slice::from_raw_parts(start, len) }
}
