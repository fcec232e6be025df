//! Types of states and user data, by name and number, for the whole process.
//!
//! **Invariant:** a number is given once; numbers of this registry are far from those that other runtimes in
//! the process give.

use std::sync::{Mutex, PoisonError};

use hlo_client::Code;
use rustc_hash::FxHashMap;

use crate::abi::Deleter;
use crate::error::{Error, Result};

/// The first number that is given.
const FIRST_ID: i64 = 1 << 40;

#[derive(Default)]
struct Types {
    by_name: FxHashMap<String, i64>,
    deleters: FxHashMap<i64, Deleter>,
}

static TYPES: Mutex<Option<Types>> = Mutex::new(None);

fn with<R>(run: impl FnOnce(&mut Types) -> R) -> R {
    let mut types = TYPES.lock().unwrap_or_else(PoisonError::into_inner);
    run(types.get_or_insert_with(Types::default))
}

/// Registers a type; `id` 0 asks for a number. A name that is known has the number that it has.
///
/// # Errors
/// The name has another number, or the number another name.
pub fn register(
    name: &str,
    id: i64,
    deleter: Option<Deleter>,
) -> std::result::Result<i64, hlo_client::Error> {
    add(name, id, deleter).map_err(|error| hlo_client::Error::new(error.code, error.text()))
}

pub(crate) fn add(name: &str, id: i64, deleter: Option<Deleter>) -> Result<i64> {
    with(|types| {
        let known = types.by_name.get(name).copied();
        let id = match (known, id) {
            (Some(known), 0) => known,
            (Some(known), id) if known == id => known,
            (Some(known), id) => {
                let message = format!("the type {name} has the number {known}, not {id}");
                return Err(Error::new(Code::InvalidArgument, message));
            }
            (None, 0) => FIRST_ID + types.by_name.len() as i64,
            (None, id) if types.by_name.values().any(|&other| other == id) => {
                let message = format!("the number {id} is that of another type than {name}");
                return Err(Error::new(Code::InvalidArgument, message));
            }
            (None, id) => id,
        };
        types.by_name.insert(name.to_owned(), id);
        if let Some(deleter) = deleter {
            types.deleters.insert(id, deleter);
        }
        Ok(id)
    })
}

/// What frees values of a type.
pub(crate) fn deleter(id: i64) -> Option<Deleter> {
    with(|types| types.deleters.get(&id).copied())
}
