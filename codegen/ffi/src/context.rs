//! `XLA_FFI_ExecutionContext`: what a handler asks the runtime for while it runs.

use std::alloc::Layout;
use std::ffi::{c_int, c_void};
use std::sync::{Mutex, PoisonError};

use hlo_client::Code;
use hlo_client::custom_call::Context;
use rustc_hash::FxHashMap;

use crate::abi::{Deleter, Stage};
use crate::error::{Error, Result};
use crate::types;
use crate::user_data::UserData;

/// States that a handler has set, by stage; freed with it.
#[derive(Debug, Default)]
pub(crate) struct States(Mutex<Vec<State>>);

#[derive(Debug)]
struct State {
    stage: i32,
    type_id: i64,
    state: *mut c_void,
    /// What frees it, of a handler of 0.1; of later ones that is known of the type.
    deleter: Option<Deleter>,
}

// SAFETY: the C API: handlers are called, and states freed, on any thread; nothing here looks behind the
// pointers.
unsafe impl Send for States {}
// SAFETY: as above.
unsafe impl Sync for States {}

impl States {
    fn set(&self, stage: i32, type_id: i64, state: *mut c_void, deleter: Option<Deleter>) -> Result<()> {
        let mut states = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if states.iter().any(|s| s.stage == stage) {
            let message = format!("the state of stage {stage} is set already");
            return Err(Error::new(Code::FailedPrecondition, message));
        }
        states.push(State { stage, type_id, state, deleter });
        Ok(())
    }

    fn get(&self, stage: i32, type_id: i64) -> Result<Option<*mut c_void>> {
        let states = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match states.iter().find(|s| s.stage == stage) {
            Some(found) if found.type_id == type_id => Ok(Some(found.state)),
            Some(found) => {
                let message =
                    format!("the state of stage {stage} is of the type {}, not {type_id}", found.type_id);
                Err(Error::new(Code::InvalidArgument, message))
            }
            None => Ok(None),
        }
    }
}

impl Drop for States {
    fn drop(&mut self) {
        for state in self.0.get_mut().unwrap_or_else(PoisonError::into_inner) {
            if let Some(deleter) = state.deleter.or_else(|| types::deleter(state.type_id)) {
                // SAFETY: the deleter came with the state, or was registered for the state's type; `&mut self` shows
                // that no other reference to the state is left.
                unsafe { deleter(state.state) };
            }
        }
    }
}

/// `XLA_FFI_ExecutionContext`, or `XLA_FFI_InvokeContext`: it lives as long as a call of a handler, and the
/// future that the call leaves.
#[derive(Debug)]
pub struct ExecutionContext {
    /// Absent while a handler is instantiated: there is no execution then.
    context: Option<*const Context<'static>>,
    instance: *const States,
    execution: Option<*const States>,
    memory: Mutex<FxHashMap<usize, Layout>>,
    /// The minor version that the handler was compiled for.
    minor: c_int,
}

impl ExecutionContext {
    /// For one call of a handler of a minor version.
    pub(crate) fn new(
        context: Option<&Context<'_>>,
        instance: &States,
        execution: Option<&States>,
        minor: c_int,
    ) -> Self {
        Self {
            minor,
            context: context.map(|context| std::ptr::from_ref(context).cast()),
            instance,
            execution: execution.map(std::ptr::from_ref),
            memory: Mutex::default(),
        }
    }

    fn context(&self) -> Result<&Context<'_>> {
        let absent =
            || Error::new(Code::FailedPrecondition, "there is no execution while a handler is instantiated");
        // SAFETY: `new` was given a reference that outlives the call of the handler, and so this.
        self.context.map(|context| unsafe { &*context }).ok_or_else(absent)
    }

    /// States of the executable for the first stage, of the execution for others.
    fn states(&self, stage: i32) -> Result<&States> {
        let states = match stage == Stage::Instantiate as i32 {
            true => Some(self.instance),
            false => self.execution,
        };
        let absent = || Error::new(Code::FailedPrecondition, format!("there is no state of stage {stage}"));
        // SAFETY: as in `context`.
        states.map(|states| unsafe { &*states }).ok_or_else(absent)
    }

    pub(crate) fn minor(&self) -> c_int {
        self.minor
    }

    pub(crate) fn set_state(
        &self,
        stage: i32,
        type_id: i64,
        state: *mut c_void,
        deleter: Option<Deleter>,
    ) -> Result<()> {
        self.states(stage)?.set(stage, type_id, state, deleter)
    }

    pub(crate) fn state(&self, stage: i32, type_id: i64) -> Result<*mut c_void> {
        let absent = || Error::new(Code::NotFound, format!("the state of stage {stage} is not set"));
        self.states(stage)?.get(stage, type_id)?.ok_or_else(absent)
    }

    pub(crate) fn user_data(&self, type_id: i64) -> Result<*mut c_void> {
        let data =
            self.context()?.user_data().and_then(|data| data.get::<UserData>()).and_then(|d| d.get(type_id));
        let absent =
            || Error::new(Code::NotFound, format!("the execution has no user data of the type {type_id}"));
        data.ok_or_else(absent)
    }

    pub(crate) fn run_id(&self) -> Result<i64> {
        Ok(self.context()?.run_id().cast_signed())
    }

    pub(crate) fn device(&self) -> Result<i32> {
        Ok(self.context()?.device().cast_signed())
    }

    pub(crate) fn allocate(&self, size: usize, alignment: usize) -> Result<*mut c_void> {
        self.context()?;
        let refused =
            |why: &str| Error::new(Code::ResourceExhausted, format!("{size} bytes of memory: {why}"));
        let alignment = alignment.max(64);
        let layout =
            Layout::from_size_align(size.max(1), alignment).map_err(|_| refused("no such alignment"))?;
        // SAFETY: the layout is not of size 0.
        let memory = unsafe { std::alloc::alloc(layout) };
        if memory.is_null() {
            return Err(refused("there is none"));
        }
        self.memory.lock().unwrap_or_else(PoisonError::into_inner).insert(memory.addr(), layout);
        // Its address is remembered, to be freed by it.
        memory.expose_provenance();
        Ok(memory.cast())
    }

    pub(crate) fn free(&self, memory: *mut c_void) -> Result<()> {
        let layout = self.memory.lock().unwrap_or_else(PoisonError::into_inner).remove(&memory.addr());
        let unknown =
            || Error::new(Code::InvalidArgument, "memory that was not allocated by this call is freed");
        let layout = layout.ok_or_else(unknown)?;
        // SAFETY: `allocate` gave it with this layout, and it was not freed since.
        unsafe { std::alloc::dealloc(memory.cast(), layout) };
        Ok(())
    }
}

/// What a handler has not freed.
impl Drop for ExecutionContext {
    fn drop(&mut self) {
        for (&address, &layout) in self.memory.get_mut().unwrap_or_else(PoisonError::into_inner).iter() {
            // SAFETY: as in `free`.
            unsafe { std::alloc::dealloc(std::ptr::with_exposed_provenance_mut(address), layout) };
        }
    }
}
