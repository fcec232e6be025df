//! Handlers of custom calls in shared libraries (`--load`), for all engines of the process.
//!
//! **Invariant:** a library is loaded because the command line names it, never because a file does.

use std::str::FromStr;
use std::sync::{LazyLock, Mutex, PoisonError};

use hlo::Module;
use hlo_client::custom_call::{CustomCalls, OnDemand};
use hlo_ffi::Library;
use hlo_interp::custom_call::Registry;

use crate::exit::{Exit, Failure};

/// `LIBRARY.so` or `LIBRARY.so:TARGET=SYMBOL,TARGET=SYMBOL`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Loading {
    path: String,
    /// Targets and symbols; none: those that the library registers by itself.
    handlers: Vec<(String, String)>,
}

impl FromStr for Loading {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = "expected LIBRARY.so or LIBRARY.so:TARGET=SYMBOL,...";
        let (path, list) = match text.find(".so:") {
            Some(at) => (&text[..at + 3], &text[at + 4..]),
            None => (text, ""),
        };
        let handler = |entry: &str| {
            let (target, symbol) = entry.split_once('=').unwrap_or((entry, entry));
            match target.is_empty() || symbol.is_empty() {
                true => Err(form.to_owned()),
                false => Ok((target.to_owned(), symbol.to_owned())),
            }
        };
        let entries = list.split(',').filter(|_| !list.is_empty());
        let handlers = entries.map(handler).collect::<Result<_, _>>()?;
        if path.is_empty() {
            return Err(form.to_owned());
        }
        Ok(Self { path: path.to_owned(), handlers })
    }
}

struct Loaded {
    custom_calls: CustomCalls,
    on_demand: OnDemand,
    done: Mutex<Vec<Loading>>,
}

static LOADED: LazyLock<Loaded> = LazyLock::new(|| {
    let custom_calls = CustomCalls::new();
    Loaded { on_demand: OnDemand::new(custom_calls.clone()), custom_calls, done: Mutex::default() }
});

/// Loads libraries, each once.
///
/// Errors: [`Exit::Usage`] for one that cannot be loaded, has no such symbol or no handlers, or whose target
/// is bound.
pub fn load(libraries: &[Loading]) -> Result<(), Failure> {
    let mut done = LOADED.done.lock().unwrap_or_else(PoisonError::into_inner);
    for loading in libraries {
        if done.contains(loading) {
            continue;
        }
        let failed =
            |error: hlo_client::Error| Failure::new(Exit::Usage, format!("--load {}: {error}", loading.path));
        let library = Library::load(&loading.path).map_err(failed)?;
        let registered = library.bind_registered(&LOADED.custom_calls).map_err(failed)?;
        if registered.is_empty() && loading.handlers.is_empty() {
            let message = format!(
                "--load {0}: it registers no handlers for the host by itself; {0}:TARGET=SYMBOL names one",
                loading.path
            );
            return Err(Failure::new(Exit::Usage, message));
        }
        for (target, symbol) in &loading.handlers {
            library.bind(target, symbol, &LOADED.custom_calls).map_err(failed)?;
        }
        done.push(loading.clone());
    }
    Ok(())
}

/// Marks the calls that libraries implement, so that no engine takes them for something else.
pub fn mark(module: &mut Module) {
    LOADED.custom_calls.mark(module);
}

/// The handlers for clients.
pub fn custom_calls() -> CustomCalls {
    LOADED.custom_calls.clone()
}

/// The handlers for runs of the interpreter.
pub fn registry() -> Registry {
    LOADED.on_demand.registry()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_named_with_their_symbols() {
        let loading: Loading = "a/b.so:x=y,f=instantiate:i+e,z".parse().unwrap();
        assert_eq!(loading.path, "a/b.so");
        let handlers: Vec<(&str, &str)> =
            loading.handlers.iter().map(|(t, s)| (t.as_str(), s.as_str())).collect();
        assert_eq!(handlers, [("x", "y"), ("f", "instantiate:i+e"), ("z", "z")]);
        assert!("a.so".parse::<Loading>().unwrap().handlers.is_empty());
        for wrong in ["", "a.so:=b", "a.so:x=", "a.so:,"] {
            wrong.parse::<Loading>().unwrap_err();
        }
    }
}
