//! What an execution hands to handlers, by type.

use std::ffi::c_void;
use std::sync::{Mutex, PoisonError};

use hlo_client::{Code, Error};

use crate::abi::Deleter;

#[derive(Debug)]
struct Entry {
    type_id: i64,
    data: *mut c_void,
    deleter: Option<Deleter>,
}

/// Pointers by the number of their type; freed with it. An execution is given it as
/// [`hlo_client::custom_call::UserData`].
#[derive(Debug, Default)]
pub struct UserData(Mutex<Vec<Entry>>);

// SAFETY: the pointers are handed to handlers, which the C API has on any thread; nothing here looks behind
// them.
unsafe impl Send for UserData {}
// SAFETY: as above.
unsafe impl Sync for UserData {}

impl UserData {
    /// Adds a pointer. `deleter` is called with it when this is dropped.
    ///
    /// # Errors
    /// There is one of this type.
    ///
    /// # Safety
    /// The pointer is valid for the handlers that ask for the type until it is freed, and `deleter` frees it.
    pub unsafe fn add(&self, type_id: i64, data: *mut c_void, deleter: Option<Deleter>) -> Result<(), Error> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.iter().any(|entry| entry.type_id == type_id) {
            let message = format!("the execution has user data of the type {type_id} already");
            return Err(Error::new(Code::FailedPrecondition, message));
        }
        all.push(Entry { type_id, data, deleter });
        Ok(())
    }

    /// The pointer of a type. The unknown type, 0, asks for the only one there is: other runtimes in the
    /// process have numbers of their own, which handlers of ours cannot know.
    pub fn get(&self, type_id: i64) -> Option<*mut c_void> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let ([only], 0) = (&all[..], type_id) {
            return Some(only.data);
        }
        all.iter().find(|entry| entry.type_id == type_id).map(|entry| entry.data)
    }
}

impl Drop for UserData {
    fn drop(&mut self) {
        for entry in self.0.get_mut().unwrap_or_else(PoisonError::into_inner) {
            if let Some(deleter) = entry.deleter {
                // SAFETY: by the promise of `add`; nobody refers to the data any more.
                unsafe { deleter(entry.data) };
            }
        }
    }
}
