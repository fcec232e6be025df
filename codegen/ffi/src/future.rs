//! `XLA_FFI_Future`: results that come after a handler has returned.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

use crate::error::{Error, Result};

/// `XLA_FFI_Future`, shared by who waits and who completes it.
#[derive(Debug, Default)]
pub struct Future {
    outcome: Mutex<Option<Result<()>>>,
    done: Condvar,
}

impl Future {
    /// For a handler: one reference is the handler's, who gives it up when it completes the future, and one
    /// that of who waits.
    pub(crate) fn give() -> *mut Future {
        let future = Arc::new(Self::default());
        let pointer = Arc::into_raw(Arc::clone(&future)).cast_mut();
        let _of_who_waits = Arc::into_raw(future);
        pointer
    }

    /// Completes it.
    ///
    /// # Safety
    /// [`Future::give`] gave it, and nobody has completed it.
    pub(crate) unsafe fn complete(future: *mut Future, outcome: Result<()>) {
        // SAFETY: as this function's: this is the reference of the handler.
        let future = unsafe { Arc::from_raw(future.cast_const()) };
        *future.outcome.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
        future.done.notify_all();
    }

    /// Waits until it is completed.
    ///
    /// # Safety
    /// [`Future::give`] gave it, and nobody has waited for it.
    pub(crate) unsafe fn wait(future: *mut Future) -> Result<()> {
        // SAFETY: as this function's: this is the reference of who waits.
        let future = unsafe { Arc::from_raw(future.cast_const()) };
        let mut outcome = future.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match outcome.take() {
                Some(outcome) => return outcome,
                None => outcome = future.done.wait(outcome).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

/// That nobody fulfils a null.
pub(crate) fn check(future: *mut Future) -> Result<()> {
    match future.is_null() {
        true => Err(Error::new(hlo_client::Code::InvalidArgument, "the future is null")),
        false => Ok(()),
    }
}
