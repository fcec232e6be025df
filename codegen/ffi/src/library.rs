//! Shared libraries with handlers.
//!
//! A handler is found by the symbol that somebody names, or registers itself while its library is loaded (`XLA_FFI_REGISTER_HANDLER(XLA_FFI_GetApi(), ...)`), for which the program exports `XLA_FFI_GetApi`.
//! **Invariant:** a library that was loaded stays: handlers may be called at any time.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

use hlo_client::custom_call::CustomCalls;
use hlo_client::{Code, Error};

use crate::abi::Handler as Function;
use crate::handler::{Bundle, ForeignHandler};

/// A handler that has registered itself.
#[derive(Clone, Debug)]
pub struct Registered {
    /// The target.
    pub name: String,
    /// The platform that it says it is for.
    pub platform: String,
    /// Its functions.
    pub bundle: Bundle,
}

impl Registered {
    /// Whether it runs on the host.
    pub fn is_for_host(&self) -> bool {
        self.platform.eq_ignore_ascii_case("host") || self.platform.eq_ignore_ascii_case("cpu")
    }
}

static REGISTERED: Mutex<Vec<Registered>> = Mutex::new(Vec::new());

pub(crate) fn register(handler: Registered) {
    REGISTERED.lock().unwrap_or_else(PoisonError::into_inner).push(handler);
}

/// The handlers that have registered themselves since this was called last.
pub fn take_registered() -> Vec<Registered> {
    std::mem::take(&mut *REGISTERED.lock().unwrap_or_else(PoisonError::into_inner))
}

/// One library is loaded at a time, so that it is known what it registers.
static LOADING: Mutex<()> = Mutex::new(());

const RTLD_NOW: c_int = 2;

unsafe extern "C" {
    fn dlopen(file: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, symbol: *const c_char) -> *mut c_void;
    fn dlerror() -> *mut c_char;
}

/// What the loader says of its last failure.
fn loader_message() -> String {
    // SAFETY: gives null or text of the loader's own, which it keeps until its next failure in this thread.
    let text = unsafe { dlerror() };
    match text.is_null() {
        true => "the loader does not say why".to_owned(),
        // SAFETY: as above.
        false => unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned(),
    }
}

fn c_text(text: &str, what: &str) -> Result<CString, Error> {
    CString::new(text)
        .map_err(|_| Error::new(Code::InvalidArgument, format!("{what} {text:?} has a zero in it")))
}

/// A shared library.
#[derive(Debug)]
pub struct Library {
    path: String,
    handle: NonNull<c_void>,
    registered: Vec<Registered>,
}

// SAFETY: handles of the loader are used by any thread.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

impl Library {
    /// Loads a library, whose code runs by that: whoever made it can do whatever this process can.
    ///
    /// # Errors
    /// [`Code::NotFound`]: what the loader says.
    pub fn load(path: &str) -> Result<Self, Error> {
        // Without a slash the loader would look in its own folders.
        let file =
            c_text(&if path.contains('/') { path.to_owned() } else { format!("./{path}") }, "the path")?;
        let _alone = LOADING.lock().unwrap_or_else(PoisonError::into_inner);
        let before = take_registered();
        // SAFETY: the path ends with a zero. What runs in the library is trusted by who names it, as a program is that one starts.
        let handle = unsafe { dlopen(file.as_ptr(), RTLD_NOW) };
        let registered = take_registered();
        before.into_iter().for_each(register);
        let failed = || Error::new(Code::NotFound, format!("{path} cannot be loaded: {}", loader_message()));
        let handle = NonNull::new(handle).ok_or_else(failed)?;
        Ok(Self { path: path.to_owned(), handle, registered })
    }

    /// The handlers that it has registered by itself.
    pub fn registered(&self) -> &[Registered] {
        &self.registered
    }

    /// The function of a symbol.
    ///
    /// # Errors
    /// [`Code::NotFound`].
    fn function(&self, symbol: &str) -> Result<Function, Error> {
        let name = c_text(symbol, "the symbol")?;
        // SAFETY: the library stays loaded; the name ends with a zero.
        let found = unsafe { dlsym(self.handle.as_ptr(), name.as_ptr()) };
        let missing = || Error::new(Code::NotFound, format!("{} has no symbol {symbol}", self.path));
        let found = NonNull::new(found).ok_or_else(missing)?;
        // SAFETY: who names the symbol says that it is a handler.
        Ok(unsafe { std::mem::transmute::<*mut c_void, Function>(found.as_ptr()) })
    }

    /// Binds a target to a handler by its symbols: that which executes, or `STAGE:SYMBOL` for several, separated by `+`.
    ///
    /// # Errors
    /// [`Code::NotFound`]: there is no such symbol; [`Code::InvalidArgument`]: a stage that there is not; the target is bound.
    pub fn bind(&self, target: &str, symbols: &str, custom_calls: &CustomCalls) -> Result<(), Error> {
        let mut bundle = Bundle::default();
        for part in symbols.split('+') {
            let (stage, symbol) = part.split_once(':').unwrap_or(("execute", part));
            let function = Some(self.function(symbol)?);
            match stage {
                "instantiate" => bundle.instantiate = function,
                "prepare" => bundle.prepare = function,
                "initialize" => bundle.initialize = function,
                "execute" => bundle.execute = function,
                other => {
                    let message = format!(
                        "{other} is no stage: there are instantiate, prepare, initialize and execute"
                    );
                    return Err(Error::new(Code::InvalidArgument, message));
                }
            }
        }
        // SAFETY: who loaded the library and names its symbols says that they are handlers.
        custom_calls.bind_handler(target, std::sync::Arc::new(unsafe { ForeignHandler::new(bundle) }))
    }

    /// Binds the handlers that it has registered by itself, but those of other platforms. Returns their targets.
    ///
    /// # Errors
    /// A target is bound.
    pub fn bind_registered(&self, custom_calls: &CustomCalls) -> Result<Vec<String>, Error> {
        let mut targets = Vec::new();
        for handler in self.registered.iter().filter(|handler| handler.is_for_host()) {
            // SAFETY: the library says that they are handlers.
            let foreign = unsafe { ForeignHandler::typed(handler.bundle) };
            custom_calls.bind_handler(&handler.name, std::sync::Arc::new(foreign))?;
            targets.push(handler.name.clone());
        }
        Ok(targets)
    }
}
