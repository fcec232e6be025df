//! Clients: a back end, its memory, its caches.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Instant;

use hlo::{ArrayLiteral, ArrayShape, ElementType};
use hlo_codegen::runtime::raw::{buffer_of, bytes_of};
use hlo_library_base::memory::array_bytes;

use crate::backend::{Backend, Cpu, Interpreter};
use crate::buffer::{Buffer, Foreign};
use crate::cache::{Cache, CacheStatistics, DiskCache, Key};
use crate::custom_call::CustomCalls;
use crate::error::{Code, Error};
use crate::executable::Executable;
use crate::memory::{DeviceMemory, MemoryStatistics};
use crate::metrics::Counters;
use crate::options::{ClientOptions, CompileOptions};
use crate::program::VerifiedModule;
use crate::trace::{SpanKind, Trace};

/// Compiles programs and runs them on the devices of one back end. Clones are the same client; buffers and
/// executables keep it alive.
#[derive(Clone, Debug)]
pub struct Client {
    pub(crate) inner: Arc<Inner>,
}

type Job = Box<dyn FnOnce() + Send>;

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) backend: Arc<dyn Backend>,
    /// What the back end says of itself, asked once.
    fingerprint: String,
    pub(crate) memory: Arc<DeviceMemory>,
    pub(crate) cache: Cache,
    pub(crate) custom_calls: CustomCalls,
    pub(crate) counters: Counters,
    pub(crate) trace: Option<Trace>,
    /// Asynchronous executions, done in order by one thread: what an execution waits for was enqueued before
    /// it.
    queue: OnceLock<Mutex<Sender<Job>>>,
}

impl Client {
    /// A client of the compiler for this machine's processor.
    ///
    /// # Errors
    /// The folder of the cache cannot be used.
    pub fn cpu(options: ClientOptions) -> Result<Self, Error> {
        let backend = match &options.thread_pool {
            Some(pool) => Cpu::on(pool, options.configuration),
            None => Cpu::new(options.threads, options.configuration),
        };
        Self::with_backend(Arc::new(backend), options)
    }

    /// A client of the reference interpreter.
    ///
    /// # Errors
    /// As [`Client::cpu`].
    pub fn interpreter(options: ClientOptions) -> Result<Self, Error> {
        Self::with_backend(Arc::new(Interpreter), options)
    }

    /// A client of a platform by its name: `cpu` or `interpreter`.
    ///
    /// # Errors
    /// [`Code::NotFound`]: there is none of this name; as [`Client::cpu`].
    pub fn for_platform(name: &str, options: ClientOptions) -> Result<Self, Error> {
        match name {
            "cpu" => Self::cpu(options),
            "interpreter" => Self::interpreter(options),
            other => Err(Error::new(Code::NotFound, format!("there is no platform {other}"))),
        }
    }

    /// A client of any back end.
    ///
    /// # Errors
    /// As [`Client::cpu`].
    pub fn with_backend(backend: Arc<dyn Backend>, options: ClientOptions) -> Result<Self, Error> {
        let disk = options.cache_directory.as_deref();
        let disk = disk.map(|folder| DiskCache::open(folder, options.cache_limit_bytes)).transpose()?;
        let fingerprint = backend.fingerprint();
        let memory =
            DeviceMemory::new(options.memory_budget_bytes, !options.never_evict, options.track_owners);
        let inner = Inner {
            backend,
            fingerprint,
            memory,
            cache: Cache::new(disk, options.keep_artifacts, options.trace.clone()),
            custom_calls: options.custom_calls,
            counters: Counters::default(),
            trace: options.trace,
            queue: OnceLock::new(),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The platform, such as `cpu`.
    pub fn platform(&self) -> &'static str {
        self.inner.backend.platform()
    }

    /// Parses and verifies the text of a program.
    ///
    /// # Errors
    /// [`Code::InvalidArgument`], with every error and its location ([`Error::diagnostics`]).
    pub fn parse(&self, text: &str) -> Result<VerifiedModule, Error> {
        VerifiedModule::parse(text)
    }

    /// Compiles a program, or finds it in a cache.
    ///
    /// # Errors
    /// [`Code::Unimplemented`]: something is not supported ([`CompileOptions::fallback`] has the interpreter
    /// execute it, [`CacheMode::Lazy`](crate::CacheMode::Lazy) the whole program).
    pub fn compile(&self, program: &VerifiedModule, options: &CompileOptions) -> Result<Executable, Error> {
        Executable::compile(self, program, options)
    }

    /// Loads a program that [`Client::compile_artifact`] made.
    ///
    /// # Errors
    /// It is damaged ([`Code::DataLoss`]), or made by another build or for another machine
    /// ([`Code::FailedPrecondition`]). The artifact is machine code and runs with all rights of this
    /// process: load trusted ones only.
    pub fn load(&self, artifact: &[u8]) -> Result<Executable, Error> {
        let start = Instant::now();
        let (signature, loaded) = self.inner.backend.load(artifact)?;
        if let Some(trace) = &self.inner.trace {
            trace.record(SpanKind::Load, &signature.name.as_str().into(), start);
        }
        Executable::of_loaded(self, signature, loaded)
    }

    /// Compiles a program to bytes that can be kept; what [`ClientOptions::keep_artifacts`] kept is not
    /// compiled again.
    ///
    /// # Errors
    /// As [`Client::compile`]; the back end has nothing to keep ([`Code::Unimplemented`]).
    pub fn compile_artifact(
        &self,
        program: &VerifiedModule,
        options: &CompileOptions,
    ) -> Result<Vec<u8>, Error> {
        let program = self.prepared(program, options)?;
        if let Some(kept) = self.inner.cache.artifact(&self.key(&program, options)) {
            return Ok(kept.to_vec());
        }
        let compiled = self.inner.backend.compile(program.module(), options, true)?;
        compiled
            .artifact
            .ok_or_else(|| Error::new(Code::Unimplemented, format!("{} has no artifacts", self.platform())))
    }

    /// The custom calls that programs of this client may have.
    pub fn custom_calls(&self) -> &CustomCalls {
        &self.inner.custom_calls
    }

    /// A program as back ends compile it: with its constant arguments, and its custom calls marked as the
    /// client's.
    pub(crate) fn prepared(
        &self,
        program: &VerifiedModule,
        options: &CompileOptions,
    ) -> Result<VerifiedModule, Error> {
        let program = program.with_constants(&options.constant_arguments)?;
        Ok(program.with_custom_calls(&self.inner.custom_calls))
    }

    /// What a program is found by in the caches.
    pub fn key(&self, program: &VerifiedModule, options: &CompileOptions) -> Key {
        Key::new(program.module(), options, &self.inner.fingerprint)
    }

    /// Copies an array to the device.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn buffer(&self, array: &ArrayLiteral) -> Result<Buffer, Error> {
        self.copied(array.shape(), bytes_of(&array.buffer))
    }

    fn copied(&self, shape: ArrayShape, bytes: &[u8]) -> Result<Buffer, Error> {
        let Some(trace) = &self.inner.trace else { return Buffer::copied(shape, bytes, &self.inner.memory) };
        let (start, name) = (Instant::now(), format!("{shape} to the device"));
        let copied = Buffer::copied(shape, bytes, &self.inner.memory);
        trace.record(SpanKind::Transfer, &name.into(), start);
        copied
    }

    /// Copies bytes (dense, row-major, sub-byte types a byte each) to the device. What no element of the type
    /// can be becomes one: a `pred` that is neither 0 nor 1 is 1, high bits of narrow integers follow from
    /// the low ones.
    ///
    /// # Errors
    /// They are not as many as the shape has; there is no memory for them.
    pub fn buffer_from_bytes(&self, shape: ArrayShape, bytes: &[u8]) -> Result<Buffer, Error> {
        let ty = shape.element_type;
        let any_bytes_are_elements = ty.bits() as usize == ty.storage_bytes() * 8 && ty != ElementType::Pred;
        if any_bytes_are_elements || array_bytes(&shape) != Some(bytes.len() as u64) {
            return self.copied(shape, bytes);
        }
        self.copied(shape, bytes_of(&buffer_of(ty, bytes)))
    }

    /// An array in foreign memory, which the buffer keeps alive and drops with its last use. Memory that is
    /// not aligned to 64 bytes is copied at each execution.
    ///
    /// # Errors
    /// It has not as many bytes as the shape.
    pub fn lend(&self, shape: ArrayShape, bytes: Arc<dyn Foreign>) -> Result<Buffer, Error> {
        Buffer::foreign(shape, &self.inner.memory, bytes)
    }

    /// An array that there will never be: who asks for it, or for what depends on it, gets the error.
    pub fn failed(&self, shape: ArrayShape, error: Error) -> Buffer {
        Buffer::failed(shape, &self.inner.memory, error)
    }

    /// An array that is to be overwritten ([`Buffer::overwrite`]); zeros until then.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn uninitialized(&self, shape: ArrayShape) -> Result<Buffer, Error> {
        Buffer::zeros(shape, &self.inner.memory)
    }

    /// Shares an array with the device, without a copy if its address is a multiple of 64 bytes.
    pub fn share(&self, array: &ArrayLiteral) -> Buffer {
        Buffer::lent(array, &self.inner.memory)
    }

    /// The record that [`ClientOptions::trace`] gave it.
    pub fn trace(&self) -> Option<&Trace> {
        self.inner.trace.as_ref()
    }

    /// What the device holds.
    pub fn memory_statistics(&self) -> MemoryStatistics {
        self.inner.memory.statistics()
    }

    /// Why the last program that could not be written to the cache's folder was not: a full disk, a folder
    /// that is gone. Such a program runs, and is compiled again in another process.
    pub fn cache_error(&self) -> Option<Error> {
        self.inner.cache.disk_error()
    }

    /// What the caches did.
    pub fn cache_statistics(&self) -> CacheStatistics {
        self.inner.cache.statistics()
    }

    /// Runs a job after those that came before it, on another thread.
    pub(crate) fn enqueue(&self, job: Job) -> Result<(), Error> {
        let start = || {
            let (sender, receiver) = channel::<Job>();
            let run = move || receiver.into_iter().for_each(|job| job());
            // Without the thread the receiver is gone, and sending says so.
            let _ = thread::Builder::new().name("hlo-client".into()).spawn(run);
            Mutex::new(sender)
        };
        let queue = self.inner.queue.get_or_init(start).lock().unwrap_or_else(PoisonError::into_inner);
        queue
            .send(job)
            .map_err(|_| Error::new(Code::ResourceExhausted, "the queue's thread cannot be started"))
    }
}
