//! Shared libraries with handlers.
//!
//! A handler is found by the symbol that somebody names, or registers itself while its library is loaded
//! (`XLA_FFI_REGISTER_HANDLER(XLA_FFI_GetApi(), ...)`), for which the program exports `XLA_FFI_GetApi`.
//! **Invariant:** a library that was loaded stays: handlers may be called at any time.

use std::sync::{Mutex, PoisonError};

use hlo_client::custom_call::CustomCalls;
use hlo_client::{Code, Error};
use libloading::os::unix::{Library as Loaded, RTLD_NOW};

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

/// What a failure of the loader is: names with a zero in them are none.
fn code(error: &libloading::Error) -> Code {
    match error {
        libloading::Error::CreateCString { .. } | libloading::Error::CreateCStringWithTrailing { .. } => {
            Code::InvalidArgument
        }
        _ => Code::NotFound,
    }
}

/// A shared library.
#[derive(Debug)]
pub struct Library {
    path: String,
    loaded: &'static Loaded,
    registered: Vec<Registered>,
}

impl Library {
    /// Loads a shared library. This executes its initializers, which have all rights of this process.
    ///
    /// # Errors
    /// [`Code::NotFound`]: what the loader says.
    pub fn load(path: &str) -> Result<Self, Error> {
        // Without a slash the loader would look in its own folders.
        let file = if path.contains('/') { path.to_owned() } else { format!("./{path}") };
        let _alone = LOADING.lock().unwrap_or_else(PoisonError::into_inner);
        let before = take_registered();
        // SAFETY: what runs in the library is trusted by who names it, as a program is that one starts.
        let loaded = unsafe { Loaded::open(Some(file), RTLD_NOW) };
        let registered = take_registered();
        before.into_iter().for_each(register);
        let failed = |e| Error::new(code(&e), format!("{path} cannot be loaded: {e}"));
        let loaded = Box::leak(Box::new(loaded.map_err(failed)?));
        Ok(Self { path: path.to_owned(), loaded, registered })
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
        // SAFETY: who names the symbol says that it is a handler; the address of a symbol may be null.
        let found = unsafe { self.loaded.get::<Option<Function>>(symbol.as_bytes()) };
        let missing = |code| Error::new(code, format!("{} has no symbol {symbol}", self.path));
        found.map_err(|e| missing(code(&e)))?.ok_or_else(|| missing(Code::NotFound))
    }

    /// Binds a target to a handler by its symbols: that which executes, or `STAGE:SYMBOL` for several,
    /// separated by `+`.
    ///
    /// # Errors
    /// [`Code::NotFound`]: there is no such symbol; [`Code::InvalidArgument`]: a stage that there is not; the
    /// target is bound.
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

    /// Binds the handlers that it has registered by itself, but those of other platforms. Returns their
    /// targets.
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
