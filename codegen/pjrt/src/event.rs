//! Events: what has happened, or will.
//!
//! **Invariant:** an event becomes ready once; every callback is called once, by the thread that made it
//! ready, or at once if it was ready before.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::api::structs::{
    OnReady, PJRT_Event_Await_Args, PJRT_Event_Create_Args, PJRT_Event_Destroy_Args, PJRT_Event_Error_Args,
    PJRT_Event_IsReady_Args, PJRT_Event_OnReady_Args, PJRT_Event_Set_Args,
};
use crate::border;
use crate::error::{Code, Error, Failure, Result};
use crate::handles::{self, object};

/// `PJRT_Event`.
#[derive(Debug)]
pub struct Event {
    state: Mutex<State>,
    changed: Condvar,
}

object!(Event, "event");

#[derive(Debug)]
enum State {
    Pending(Vec<Callback>),
    Ready(Result<()>),
}

/// A callback that waits for the event.
#[derive(Debug)]
struct Callback {
    function: OnReady,
    user_arg: *mut c_void,
}

// SAFETY: the pointer is the caller's, and handed back to it; the C API has callbacks called by any thread.
unsafe impl Send for Callback {}

impl Callback {
    fn call(&self, outcome: Result<()>) {
        let error = Error::give_outcome(outcome);
        // SAFETY: the C API: it takes an error, which it destroys, and what was given with it.
        unsafe { (self.function)(error, self.user_arg) };
    }
}

impl Event {
    fn with_state(state: State) -> Arc<Self> {
        Arc::new(Self { state: Mutex::new(state), changed: Condvar::new() })
    }

    /// Of what has happened.
    pub fn ready(outcome: Result<()>) -> Arc<Self> {
        Self::with_state(State::Ready(outcome))
    }

    /// Of what is to happen.
    pub fn pending() -> Arc<Self> {
        Self::with_state(State::Pending(Vec::new()))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says that it has happened. Whether it had not before.
    pub fn set(&self, outcome: &Result<()>) -> bool {
        let mut state = self.state();
        match std::mem::replace(&mut *state, State::Ready(outcome.clone())) {
            State::Pending(callbacks) => {
                drop(state);
                self.changed.notify_all();
                for callback in callbacks {
                    // What is called is foreign, and this may be in a destructor.
                    let _ = catch_unwind(AssertUnwindSafe(|| callback.call(outcome.clone())));
                }
                true
            }
            before @ State::Ready(_) => {
                *state = before;
                false
            }
        }
    }
}

pub(crate) fn destroy(args: &mut PJRT_Event_Destroy_Args) -> Result<()> {
    handles::destroy(args.event)
}

pub(crate) fn is_ready(args: &mut PJRT_Event_IsReady_Args) -> Result<()> {
    let event = handles::get(args.event)?;
    args.is_ready = u8::from(matches!(*event.state(), State::Ready(_)));
    Ok(())
}

pub(crate) fn error(args: &mut PJRT_Event_Error_Args) -> Result<()> {
    let event = handles::get(args.event)?;
    match &*event.state() {
        State::Ready(outcome) => outcome.clone(),
        State::Pending(_) => Err(Failure::new(Code::FailedPrecondition, "the event is not ready")),
    }
}

pub(crate) fn wait(args: &mut PJRT_Event_Await_Args) -> Result<()> {
    let event = handles::get(args.event)?;
    let mut state = event.state();
    loop {
        match &*state {
            State::Ready(outcome) => return outcome.clone(),
            State::Pending(_) => {
                state = event.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
}

pub(crate) fn on_ready(args: &mut PJRT_Event_OnReady_Args) -> Result<()> {
    let event = handles::get(args.event)?;
    let function = args.callback.ok_or_else(|| Failure::invalid("the callback is null"))?;
    let callback = Callback { function, user_arg: args.user_arg };
    let mut state = event.state();
    match &mut *state {
        State::Pending(callbacks) => callbacks.push(callback),
        State::Ready(outcome) => {
            let outcome = outcome.clone();
            drop(state);
            callback.call(outcome);
        }
    }
    Ok(())
}

pub(crate) fn create(args: &mut PJRT_Event_Create_Args) -> Result<()> {
    args.event = handles::give(Event::pending());
    Ok(())
}

pub(crate) fn set(args: &mut PJRT_Event_Set_Args) -> Result<()> {
    let event = handles::get(args.event)?;
    let outcome = match Code::of_number(args.error_code) {
        None => Ok(()),
        Some(code) => Err(Failure::new(
            code,
            border::text(args.error_message, args.error_message_size, "the message of the error")?,
        )),
    };
    if event.set(&outcome) {
        return Ok(());
    }
    Err(Failure::new(Code::FailedPrecondition, "the event was ready before"))
}
