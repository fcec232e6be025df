//! Options of clients, compilations and executions.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hlo::ArrayLiteral;
use hlo_codegen::runtime::arena::{Allocator, Store};
use hlo_library_base::configuration::Configuration;
use hlo_library_base::pool::{Lent, Pool};
use hlo_threads::cancel::{CancellationToken, Cancelled};

use crate::cache::CacheMode;
use crate::custom_call::{CustomCalls, UserData};
use crate::exports::Library;
use crate::trace::Trace;

/// How a client is made.
#[derive(Clone, Debug, Default)]
pub struct ClientOptions {
    /// Threads that programs are compiled and run on; 0: as many as there are cores.
    pub threads: usize,
    /// Threads that programs are run on instead.
    pub thread_pool: Option<ThreadPool>,
    /// The most bytes of buffers and of running programs at once; `None`: no limit.
    pub memory_budget_bytes: Option<u64>,
    /// Without eviction: a request that exceeds the budget fails at once, where buffers without users would
    /// be moved to the host otherwise.
    pub never_evict: bool,
    /// A folder where compiled programs are kept between processes; `None`: they are not.
    pub cache_directory: Option<PathBuf>,
    /// The most bytes of that folder, beyond which what was not used for longest goes; `None`: 1 GiB.
    pub cache_limit_bytes: Option<u64>,
    /// Whether programs that are compiled are kept as bytes, too, so that [`crate::Client::compile_artifact`]
    /// has nothing to compile.
    pub keep_artifacts: bool,
    /// Custom calls that programs may have; several clients may share a registry.
    pub custom_calls: CustomCalls,
    /// Records what the client does and when; `None`: nothing is recorded.
    pub trace: Option<Trace>,
    /// Whether [`Metrics::owners`](crate::Metrics::owners) is known without a memory budget; each buffer is
    /// entered in a list then.
    pub track_owners: bool,
    /// Which instruction sets programs use, and which microarchitecture they are tuned for (`cpu`): this
    /// machine's, or as if it had less. It changes no bit of results.
    pub configuration: Configuration,
}

/// How a program is compiled.
#[derive(Clone, PartialEq, Debug)]
pub struct CompileOptions {
    /// 0 to 3.
    pub opt_level: u8,
    /// Whether the interpreter executes instructions that the compiler does not support.
    pub fallback: bool,
    /// When programs are compiled, and what happens to those that cannot be.
    pub mode: CacheMode,
    /// Arguments with the same value in every execution, by parameter number: they are folded into the
    /// program, and leave the argument list.
    pub constant_arguments: Vec<(usize, ArrayLiteral)>,
    /// The processor to compile for: "native", or on x86-64 "x86-64-v3" or "x86-64-v4".
    pub cpu: String,
    /// Features added and removed, as LLVM writes them.
    pub features: String,
}

impl Default for CompileOptions {
    fn default() -> Self {
        Self {
            opt_level: 2,
            fallback: false,
            mode: CacheMode::Strict,
            constant_arguments: Vec::new(),
            cpu: "native".to_owned(),
            features: String::new(),
        }
    }
}

/// Cancels executions: shared by who runs and who cancels.
#[derive(Clone, Debug, Default)]
pub struct Cancellation(CancellationToken);

impl Cancellation {
    /// Not cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Executions that were given this end, within an instruction too; those that come do not even begin.
    pub fn cancel(&self) {
        self.0.cancel();
    }

    /// Whether it was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Does work that ends when it is cancelled. Errors: it was.
    pub(crate) fn run<R>(&self, work: impl FnOnce() -> R) -> Result<R, Cancelled> {
        self.0.run(work)
    }
}

/// How a program is executed.
#[derive(Clone, Debug, Default)]
pub struct ExecuteOptions {
    /// Arguments that the caller gives away, by position: the program may reuse their memory for its results,
    /// and every reference to them finds them deleted. An argument that the program updates in place and that
    /// is not given away is copied first.
    pub donate: Vec<usize>,
    /// The most steps (launches, calls, iterations); `None`: no limit.
    pub fuel: Option<u64>,
    /// When to give up.
    pub deadline: Option<Instant>,
    /// Seed of `rng` and of `rng-get-and-update-state`.
    pub rng_seed: u64,
    /// Identifies the execution in errors and traces.
    pub run_id: u64,
    /// Ends the execution from elsewhere.
    pub cancellation: Option<Cancellation>,
    /// What custom calls find in their context.
    pub user_data: Option<UserData>,
    /// The threads that the execution is divided between; `None`: those of the client.
    pub thread_pool: Option<ThreadPool>,
    /// Where the memory of its results comes from; `None`: a store of the program's, which keeps memory for
    /// the next execution.
    pub allocator: Option<DeviceAllocator>,
    /// The library whose functions custom calls may call; [`Library::execute`] sets it.
    pub library: Option<Library>,
    /// Where it is put how long the execution took; `None`: nobody looks at the clock.
    pub elapsed: Option<Elapsed>,
}

/// How long the last execution took that was given this. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Elapsed(Arc<AtomicU64>);

impl Elapsed {
    /// Of no execution yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// From the check of its arguments to its results; 0 before the first has ended.
    pub fn get(&self) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::Relaxed))
    }

    pub(crate) fn set(&self, time: Duration) {
        self.0.store(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}

/// Threads that executions are divided between. Results have the same bits on any number of them.
#[derive(Clone, Debug)]
pub struct ThreadPool(pub(crate) Arc<Pool>);

impl ThreadPool {
    /// Threads of its own, the one that executes included; at least one.
    pub fn new(threads: usize) -> Self {
        Self(Arc::new(Pool::new(threads.max(1))))
    }

    /// Threads of somebody else's.
    pub fn lent(threads: Box<dyn Lent>) -> Self {
        Self(Arc::new(Pool::of(threads)))
    }

    /// How many there are.
    pub fn threads(&self) -> usize {
        self.0.threads()
    }
}

/// Memory of results that comes from somebody else's allocator, which sees each array come and go.
#[derive(Clone, Debug)]
pub struct DeviceAllocator(pub(crate) Arc<Store>);

impl DeviceAllocator {
    /// Of an allocator.
    pub fn new(allocator: Arc<dyn Allocator>) -> Self {
        Self(Arc::new(Store::of(allocator)))
    }
}
