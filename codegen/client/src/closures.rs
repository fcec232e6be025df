//! Compiling and running as two steps (TensorFlow's `_XlaCompile` and `_XlaRun`): the first gives a key, or
//! says that a fallback is to be called; the second takes the key and runs.
//!
//! **Invariants:** a key is given out once and taken once, and names what the first step saw: the program,
//! and the variables' values that it was compiled for; closures that are never run go with their store, or
//! earlier ([`ClosureStore::discard`]).

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use rustc_hash::FxHashMap;

use crate::buffer::Buffer;
use crate::client::Client;
use crate::error::{Code, Error};
use crate::executable::Executable;
use crate::options::{CompileOptions, ExecuteOptions};
use crate::program::VerifiedModule;
use crate::variables::{Bound, Variable};

/// Names a closure: given out once, taken once.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ClosureKey {
    store: u64,
    number: u64,
}

/// What the first step gives.
#[derive(Clone, Debug)]
pub enum CompileStep {
    /// The program is compiled: run it by its key.
    Compiled(ClosureKey),
    /// It is not; whoever asked calls the fallback. Why not.
    Fallback(Error),
}

#[derive(Debug)]
struct Closure {
    bound: Bound,
    /// What the variables were when it was compiled.
    snapshot: Vec<(Variable, Buffer)>,
}

/// Closures that were compiled and not run yet. One serves the compiling and the running side.
#[derive(Debug)]
pub struct ClosureStore {
    number: u64,
    next: AtomicU64,
    closures: Mutex<FxHashMap<u64, Closure>>,
}

static STORES: AtomicU64 = AtomicU64::new(1);

impl Default for ClosureStore {
    fn default() -> Self {
        Self {
            number: STORES.fetch_add(1, Ordering::Relaxed),
            next: AtomicU64::new(1),
            closures: Mutex::default(),
        }
    }
}

/// What the first step is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Demand {
    /// Every error surfaces.
    MustCompile,
    /// A program that is not supported falls back, now and whenever it is asked for again; other errors
    /// surface.
    MayFallBack,
    /// It is not compiled: too early, or never worth it.
    Defer,
}

impl ClosureStore {
    /// Without any.
    pub fn new() -> Self {
        Self::default()
    }

    /// Compiles a program (`bind` says which of its parameters are variables) and keeps it, with the
    /// variables' values of this moment, under a new key; every call makes one, also if the program was in a
    /// cache.
    ///
    /// # Errors
    /// Of [`Demand::MustCompile`] all; else those that are no want of support.
    pub fn compile(
        &self,
        client: &Client,
        program: &VerifiedModule,
        options: &CompileOptions,
        demand: Demand,
        bind: impl FnOnce(&Executable) -> Result<Bound, Error>,
    ) -> Result<CompileStep, Error> {
        if demand == Demand::Defer {
            let message = format!("{} is not compiled yet", program.module().name);
            return Ok(CompileStep::Fallback(Error::new(Code::Unimplemented, message)));
        }
        // That a program cannot be compiled, the client's cache remembers.
        let executable = match client.compile(program, options) {
            Ok(executable) => executable,
            Err(error) if demand == Demand::MayFallBack && error.code() == Code::Unimplemented => {
                return Ok(CompileStep::Fallback(error));
            }
            Err(error) => return Err(error),
        };
        let bound = bind(&executable)?;
        let snapshot = bound.snapshot();
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut closures = self.closures.lock().unwrap_or_else(PoisonError::into_inner);
        closures.insert(number, Closure { bound, snapshot });
        Ok(CompileStep::Compiled(ClosureKey { store: self.number, number }))
    }

    /// Takes a closure and runs it on the variables' values that it was compiled for; then gives the
    /// variables their updates.
    ///
    /// # Errors
    /// [`Code::NotFound`]: the key is another store's, or was taken before; whatever ends the execution.
    pub fn run(
        &self,
        key: ClosureKey,
        arguments: &[&Buffer],
        options: &ExecuteOptions,
    ) -> Result<Vec<Buffer>, Error> {
        let Closure { bound, snapshot } = self.take(key)?;
        let values: Vec<Buffer> = snapshot.into_iter().map(|(_, value)| value).collect();
        let results = bound.execute_on(&values, arguments, options)?;
        Ok(bound.update(results))
    }

    /// Compiles a program strictly and runs it at once (TensorFlow's `XlaLaunch`), on the variables' values
    /// of before it was compiled.
    ///
    /// # Errors
    /// As [`ClosureStore::compile`] and [`ClosureStore::run`]; of a program that is not supported it also
    /// says what would execute it.
    pub fn launch(
        &self,
        client: &Client,
        program: &VerifiedModule,
        options: &CompileOptions,
        bind: impl FnOnce(&Executable) -> Result<Bound, Error>,
        arguments: &[&Buffer],
        execution: &ExecuteOptions,
    ) -> Result<Vec<Buffer>, Error> {
        let step = self.compile(client, program, options, Demand::MustCompile, bind).map_err(|error| {
            if error.code() != Code::Unimplemented {
                return error;
            }
            let instead = "(CompileOptions::fallback has the interpreter execute what is not compiled)";
            Error::new(Code::Unimplemented, format!("{error} {instead}")).caused_by(error)
        })?;
        match step {
            CompileStep::Compiled(key) => self.run(key, arguments, execution),
            CompileStep::Fallback(error) => Err(error),
        }
    }

    fn take(&self, key: ClosureKey) -> Result<Closure, Error> {
        if key.store != self.number {
            let message = format!("key {} is of another store", key.number);
            return Err(Error::new(Code::NotFound, message));
        }
        let mut closures = self.closures.lock().unwrap_or_else(PoisonError::into_inner);
        closures.remove(&key.number).ok_or_else(|| {
            let spent = key.number < self.next.load(Ordering::Relaxed);
            let what = if spent { "was run or discarded before" } else { "was never given out" };
            Error::new(Code::NotFound, format!("key {} {what}", key.number))
        })
    }

    /// Forgets a closure that will not be run.
    ///
    /// # Errors
    /// As [`ClosureStore::run`]'s of keys.
    pub fn discard(&self, key: ClosureKey) -> Result<(), Error> {
        self.take(key).map(drop)
    }

    /// How many closures wait to be run.
    pub fn len(&self) -> usize {
        self.closures.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
