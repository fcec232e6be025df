//! The compilation cache: what was compiled once is not compiled again, in this process and, with a folder,
//! in others.
//!
//! **Invariants:** of requests for the same key that come at once one compiles and the others wait for it,
//! those of other processes with the same folder, too; a program that cannot be compiled is remembered as
//! well; what is in the cache never changes a result, only when compiling happens.

mod disk;
mod key;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hlo::Module;
use rustc_hash::FxHashMap;

use crate::backend::{Backend, Loaded};
use crate::error::{Code, Error};
use crate::options::CompileOptions;
use crate::trace::{SpanKind, Trace};

pub use disk::{DiskCache, DiskEntry, Verdict};
pub use key::Key;

/// When programs are compiled, and what happens to those that cannot be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CacheMode {
    /// Compiled when it is asked for; an unsupported program is an error.
    Strict,
    /// Interpreted at first, and compiled once it was executed this many times. A program that is not
    /// supported is interpreted for good, and so are programs of a name that keep changing
    /// ([`MEGAMORPHIC_COMPILATIONS`]).
    Lazy {
        /// Executions before it is compiled; 0: it is compiled at once, but interpreted if it is not
        /// supported.
        after: u64,
        /// Whether another thread compiles it, while executions go on being interpreted.
        background: bool,
    },
    /// Compiled each time, and not kept.
    Off,
}

/// Programs of a name that were compiled more often than this, with fewer than [`MEGAMORPHIC_EXECUTIONS`]
/// executions a compilation, are compiled no more in lazy mode: compiling costs more than it gains.
/// (TensorFlow's compilation cache has the same two numbers.)
pub const MEGAMORPHIC_COMPILATIONS: u64 = 10;

/// See [`MEGAMORPHIC_COMPILATIONS`].
pub const MEGAMORPHIC_EXECUTIONS: u64 = 50;

/// The most programs that are kept in memory.
const MAX_ENTRIES: usize = 4096;

/// What a cache did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CacheStatistics {
    /// Programs that were compiled.
    pub compilations: u64,
    /// Requests that found the program in memory, or waited for another that compiled it.
    pub memory_hits: u64,
    /// Requests that found it on disk.
    pub disk_hits: u64,
    /// Entries on disk that were damaged, foreign or outdated, and were dropped.
    pub disk_dropped: u64,
    /// Programs that were compiled and could not be written to the folder:
    /// [`Client::cache_error`](crate::Client::cache_error) has the last error.
    pub disk_failures: u64,
    /// Programs that could not be compiled.
    pub failures: u64,
    /// Programs that were evicted from memory.
    pub evictions: u64,
}

#[derive(Debug)]
enum State {
    Compiling,
    Done(Result<Arc<dyn Loaded>, Error>),
}

#[derive(Debug)]
struct Entry {
    state: Mutex<State>,
    done: Condvar,
    last_use: AtomicU64,
}

/// By name of the program: how it fares in lazy mode.
#[derive(Clone, Copy, Debug, Default)]
struct Popularity {
    compilations: u64,
    executions: u64,
    megamorphic: bool,
}

/// A cache of compiled programs.
#[derive(Debug)]
pub(crate) struct Cache {
    entries: Mutex<FxHashMap<Key, Arc<Entry>>>,
    popularity: Mutex<FxHashMap<Arc<str>, Popularity>>,
    disk: Option<DiskCache>,
    /// Artifacts of the entries, if they are kept.
    artifacts: Option<Mutex<FxHashMap<Key, Arc<[u8]>>>>,
    clock: AtomicU64,
    compilations: AtomicU64,
    memory_hits: AtomicU64,
    disk_hits: AtomicU64,
    disk_dropped: AtomicU64,
    disk_failures: AtomicU64,
    /// Why the last program that could not be written was not.
    disk_error: Mutex<Option<Error>>,
    failures: AtomicU64,
    evictions: AtomicU64,
    compile_ns: AtomicU64,
    load_ns: AtomicU64,
    trace: Option<Trace>,
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl Cache {
    /// `keep_artifacts`: so that a program that was compiled can be had as bytes.
    pub(crate) fn new(disk: Option<DiskCache>, keep_artifacts: bool, trace: Option<Trace>) -> Self {
        Self {
            entries: Mutex::default(),
            popularity: Mutex::default(),
            disk,
            artifacts: keep_artifacts.then(Mutex::default),
            clock: AtomicU64::new(0),
            compilations: AtomicU64::new(0),
            memory_hits: AtomicU64::new(0),
            disk_hits: AtomicU64::new(0),
            disk_dropped: AtomicU64::new(0),
            disk_failures: AtomicU64::new(0),
            disk_error: Mutex::default(),
            failures: AtomicU64::new(0),
            evictions: AtomicU64::new(0),
            compile_ns: AtomicU64::new(0),
            load_ns: AtomicU64::new(0),
            trace,
        }
    }

    /// How long compiling and loading took, all together.
    pub(crate) fn times(&self) -> (Duration, Duration) {
        let of = |counter: &AtomicU64| Duration::from_nanos(counter.load(Ordering::Relaxed));
        (of(&self.compile_ns), of(&self.load_ns))
    }

    /// Does something that is recorded, and whose time counts.
    fn timed<R>(
        &self,
        kind: SpanKind,
        name: &Arc<str>,
        sum: Option<&AtomicU64>,
        run: impl FnOnce() -> R,
    ) -> R {
        let start = Instant::now();
        let result = run();
        if let Some(sum) = sum {
            sum.fetch_add(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
        }
        if let Some(trace) = &self.trace {
            trace.record(kind, name, start);
        }
        result
    }

    pub(crate) fn disk_error(&self) -> Option<Error> {
        self.disk_error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn statistics(&self) -> CacheStatistics {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        CacheStatistics {
            compilations: of(&self.compilations),
            memory_hits: of(&self.memory_hits),
            disk_hits: of(&self.disk_hits),
            disk_dropped: of(&self.disk_dropped),
            disk_failures: of(&self.disk_failures),
            failures: of(&self.failures),
            evictions: of(&self.evictions),
        }
    }

    /// The program of a key, compiled unless it is there.
    pub(crate) fn get(
        &self,
        key: Key,
        backend: &dyn Backend,
        module: &Arc<Module>,
        options: &CompileOptions,
    ) -> Result<Arc<dyn Loaded>, Error> {
        let name: Arc<str> = module.name.to_string().into();
        self.timed(SpanKind::Lookup, &name, None, || self.get_or_obtain(key, backend, module, options, &name))
    }

    fn get_or_obtain(
        &self,
        key: Key,
        backend: &dyn Backend,
        module: &Arc<Module>,
        options: &CompileOptions,
        name: &Arc<str>,
    ) -> Result<Arc<dyn Loaded>, Error> {
        let (entry, is_new) = self.entry(key);
        entry.last_use.store(self.clock.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        if is_new {
            // Whoever waits is woken however this ends.
            let settle = Settle { cache: self, key, entry: &entry };
            let outcome = self.obtain(key, backend, module, options, name);
            settle.with(outcome.clone());
            return outcome;
        }
        let mut state = entry.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match &*state {
                State::Done(outcome) => {
                    count(&self.memory_hits);
                    return outcome.clone();
                }
                State::Compiling => {
                    state = entry.done.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    /// The entry of a key; whether it was made just now, so that the caller has to settle it.
    fn entry(&self, key: Key) -> (Arc<Entry>, bool) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = entries.get(&key) {
            return (Arc::clone(entry), false);
        }
        if entries.len() >= MAX_ENTRIES {
            let is_done = |e: &Entry| e.state.try_lock().is_ok_and(|s| matches!(*s, State::Done(_)));
            let settled = entries.iter().filter(|(_, e)| is_done(e));
            let coldest = settled.min_by_key(|(_, e)| e.last_use.load(Ordering::Relaxed)).map(|(k, _)| *k);
            if let Some(coldest) = coldest {
                entries.remove(&coldest);
                self.drop_artifact(&coldest);
                count(&self.evictions);
            }
        }
        let state = Mutex::new(State::Compiling);
        let entry = Arc::new(Entry { state, done: Condvar::new(), last_use: AtomicU64::new(0) });
        entries.insert(key, Arc::clone(&entry));
        (entry, true)
    }

    fn obtain(
        &self,
        key: Key,
        backend: &dyn Backend,
        module: &Arc<Module>,
        options: &CompileOptions,
        name: &Arc<str>,
    ) -> Result<Arc<dyn Loaded>, Error> {
        let load = |disk: &DiskCache| {
            let load = || disk.load(key, |bytes| backend.load(bytes));
            self.timed(SpanKind::Load, name, Some(&self.load_ns), load)
        };
        let mut lock = None;
        if let Some(disk) = &self.disk {
            // What is not there may be there when another process has let go of the lock.
            for is_locked in [false, true] {
                if is_locked {
                    lock = disk.lock(key);
                }
                match load(disk) {
                    Ok(Some((_, loaded))) => {
                        count(&self.disk_hits);
                        return Ok(loaded);
                    }
                    Ok(None) => {}
                    Err(_dropped) => count(&self.disk_dropped),
                }
            }
        }
        count(&self.compilations);
        let keep = self.disk.is_some() || self.artifacts.is_some();
        let compile = || backend.compile(module, options, keep);
        let compiled = self.timed(SpanKind::Compile, name, Some(&self.compile_ns), compile);
        let compiled = compiled.inspect_err(|_| count(&self.failures))?;
        if let (Some(disk), Some(artifact)) = (&self.disk, &compiled.artifact) {
            // A folder that cannot be written to costs time, not results.
            if let Err(error) = self.timed(SpanKind::Store, name, None, || disk.put(key, artifact)) {
                count(&self.disk_failures);
                *self.disk_error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            }
        }
        if let (Some(kept), Some(artifact)) = (&self.artifacts, compiled.artifact) {
            kept.lock().unwrap_or_else(PoisonError::into_inner).insert(key, artifact.into());
        }
        drop(lock);
        Ok(compiled.loaded)
    }

    /// The artifact of a program that this process has compiled and keeps.
    pub(crate) fn artifact(&self, key: &Key) -> Option<Arc<[u8]>> {
        self.artifacts.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    fn drop_artifact(&self, key: &Key) {
        if let Some(kept) = &self.artifacts {
            kept.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
        }
    }

    /// Whether a program of this name is worth compiling in lazy mode.
    pub(crate) fn is_worth_compiling(&self, name: &Arc<str>) -> bool {
        let mut all = self.popularity.lock().unwrap_or_else(PoisonError::into_inner);
        let of = all.entry(Arc::clone(name)).or_default();
        if of.compilations > MEGAMORPHIC_COMPILATIONS
            && of.executions < MEGAMORPHIC_EXECUTIONS.saturating_mul(of.compilations)
        {
            of.megamorphic = true;
        }
        if !of.megamorphic {
            of.compilations += 1;
        }
        !of.megamorphic
    }

    /// A program of this name was executed in lazy mode.
    pub(crate) fn executed(&self, name: &Arc<str>) {
        let mut all = self.popularity.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(Arc::clone(name)).or_default().executions += 1;
    }
}

/// Settles an entry, also when the thread that compiles panics.
struct Settle<'a> {
    cache: &'a Cache,
    key: Key,
    entry: &'a Entry,
}

impl Settle<'_> {
    fn with(self, outcome: Result<Arc<dyn Loaded>, Error>) {
        // Exhaustion and the like pass: the next request tries again.
        let lasts = match &outcome {
            Ok(_) => true,
            Err(error) => matches!(error.code(), Code::Unimplemented | Code::InvalidArgument),
        };
        self.settle(outcome, lasts);
        std::mem::forget(self);
    }

    fn settle(&self, outcome: Result<Arc<dyn Loaded>, Error>, lasts: bool) {
        if !lasts {
            self.cache.entries.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.key);
        }
        *self.entry.state.lock().unwrap_or_else(PoisonError::into_inner) = State::Done(outcome);
        self.entry.done.notify_all();
    }
}

impl Drop for Settle<'_> {
    fn drop(&mut self) {
        self.settle(Err(Error::new(Code::Internal, "the compiler panicked")), false);
    }
}
