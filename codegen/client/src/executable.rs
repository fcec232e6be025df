//! Programs that a client has compiled.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Instant;

use hlo::{ArrayShape, Shape};
use hlo_codegen::runtime::executable::Leaf;
use hlo_interp::Devices;
use hlo_interp::custom_call::Registry;
use hlo_library_base::memory::array_bytes;
use smallvec::SmallVec;

use crate::artifact::Signature;
use crate::backend::{Argument, Arrays, Loaded, Source};
use crate::buffer::{Buffer, Data, Origin};
use crate::cache::{CacheMode, Key};
use crate::client::Client;
use crate::custom_call::WithCalls;
use crate::error::{Code, Error};
use crate::memory::Lease;
use crate::options::{CompileOptions, ExecuteOptions};
use crate::program::VerifiedModule;
use crate::trace::SpanKind;

/// A program that can be executed any number of times, by several threads at once. Clones are the same
/// program.
#[derive(Clone, Debug)]
pub struct Executable {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    client: Client,
    name: Arc<str>,
    parameters: Vec<Shape>,
    /// Array leaves of the parameters, and of which parameter each is.
    arguments: Vec<(ArrayShape, usize)>,
    result: Shape,
    /// Array leaves of the result.
    results: Vec<ArrayShape>,
    /// The same, to be shared by the buffers of results.
    shared_results: Vec<Arc<ArrayShape>>,
    runs: Runs,
}

#[derive(Debug)]
enum Runs {
    Loaded(Arc<dyn Loaded>),
    Lazy(Lazy),
}

/// What memory an execution takes, in bytes; of results with sizes known at run time their bounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MemoryAnalysis {
    /// Arguments.
    pub argument_bytes: u64,
    /// Results, those in memory of donated arguments included.
    pub result_bytes: u64,
    /// At most what is needed beside these: constants, intermediate values, copies of arguments.
    pub temporary_bytes: u64,
}

/// Interpreted until it was executed often enough.
#[derive(Debug)]
struct Lazy {
    program: VerifiedModule,
    options: CompileOptions,
    key: Key,
    after: u64,
    background: bool,
    interpreted: Arc<dyn Loaded>,
    executions: AtomicU64,
    /// Compiled; `None`: it is not, and will not be.
    compiled: OnceLock<Option<Arc<dyn Loaded>>>,
}

impl Executable {
    pub(crate) fn compile(
        client: &Client,
        program: &VerifiedModule,
        options: &CompileOptions,
    ) -> Result<Self, Error> {
        let program = client.prepared(program, options)?;
        let inner = &client.inner;
        let with_calls =
            |loaded| WithCalls::instantiate(loaded, &inner.custom_calls, Some((&inner.backend, options)));
        let runs = match options.mode {
            CacheMode::Off => {
                Runs::Loaded(with_calls(inner.backend.compile(program.module(), options, false)?.loaded)?)
            }
            CacheMode::Strict => {
                let key = client.key(&program, options);
                Runs::Loaded(with_calls(inner.cache.get(key, &*inner.backend, program.module(), options)?)?)
            }
            CacheMode::Lazy { after, background } => {
                let interpreted = crate::backend::Interpreter::loaded(&program);
                let interpreted = WithCalls::instantiate(interpreted, &inner.custom_calls, None)?;
                let lazy = Lazy {
                    key: client.key(&program, options),
                    program: program.clone(),
                    options: options.clone(),
                    after,
                    background,
                    interpreted,
                    executions: AtomicU64::new(0),
                    compiled: OnceLock::new(),
                };
                Runs::Lazy(lazy)
            }
        };
        Ok(Self::new(client, Signature::of(program.module()), runs))
    }

    pub(crate) fn of_loaded(
        client: &Client,
        signature: Signature,
        loaded: Arc<dyn Loaded>,
    ) -> Result<Self, Error> {
        let (inner, options) = (&client.inner, CompileOptions::default());
        let loaded = WithCalls::instantiate(loaded, &inner.custom_calls, Some((&inner.backend, &options)))?;
        Ok(Self::new(client, signature, Runs::Loaded(loaded)))
    }

    fn new(client: &Client, signature: Signature, runs: Runs) -> Self {
        let Signature { name, parameters, result } = signature;
        let leaves = |shape: &Shape| -> Vec<ArrayShape> {
            shape.leaves().into_iter().filter_map(Shape::as_array).cloned().collect()
        };
        let arguments =
            parameters.iter().enumerate().flat_map(|(n, p)| leaves(p).into_iter().map(move |leaf| (leaf, n)));
        let arguments = arguments.collect();
        let name = Arc::from(name.as_str());
        let results = leaves(&result);
        let shared_results = results.iter().cloned().map(Arc::new).collect();
        let client = client.clone();
        let inner = Inner { client, name, parameters, arguments, result, results, shared_results, runs };
        Self { inner: Arc::new(inner) }
    }

    /// The client that it was compiled for.
    pub(crate) fn client(&self) -> &Client {
        &self.inner.client
    }

    /// The name of the program.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Shapes of its parameters.
    pub fn parameters(&self) -> &[Shape] {
        &self.inner.parameters
    }

    /// Shape of its result.
    pub fn result(&self) -> &Shape {
        &self.inner.result
    }

    /// Shapes of the arrays that it takes: the leaves of its parameters, in order.
    pub fn argument_shapes(&self) -> impl ExactSizeIterator<Item = &ArrayShape> {
        self.inner.arguments.iter().map(|(shape, _)| shape)
    }

    /// Shapes of the arrays that it gives: the leaves of its result, in order.
    pub fn result_shapes(&self) -> &[ArrayShape] {
        &self.inner.results
    }

    /// Bytes of memory that an execution needs beside its arguments, results included.
    pub fn run_bytes(&self) -> u64 {
        match &self.inner.runs {
            Runs::Loaded(loaded) => loaded.run_bytes(),
            Runs::Lazy(lazy) => {
                lazy.compiled.get().and_then(Option::as_ref).unwrap_or(&lazy.interpreted).run_bytes()
            }
        }
    }

    /// What memory an execution takes.
    pub fn memory_analysis(&self) -> MemoryAnalysis {
        let sum = |shapes: &mut dyn Iterator<Item = &ArrayShape>| {
            let bytes = shapes.map(|shape| array_bytes(shape).unwrap_or(u64::MAX));
            bytes.fold(0, u64::saturating_add)
        };
        let result_bytes = sum(&mut self.inner.results.iter());
        MemoryAnalysis {
            argument_bytes: sum(&mut self.argument_shapes()),
            result_bytes,
            temporary_bytes: self.run_bytes().saturating_sub(result_bytes),
        }
    }

    /// Whether it is compiled by now: of [`CacheMode::Lazy`] it may be interpreted still.
    pub fn is_compiled(&self) -> bool {
        match &self.inner.runs {
            Runs::Loaded(_) => true,
            Runs::Lazy(lazy) => lazy.compiled.get().is_some_and(Option::is_some),
        }
    }

    /// Executes it: arguments are the array leaves of the parameters in order, results those of the result
    /// (one of an array, as many as there are of a tuple).
    ///
    /// # Errors
    /// Arguments that do not fit, those of the executions that were to make them, and whatever ends this one.
    pub fn execute(&self, arguments: &[&Buffer]) -> Result<Vec<Buffer>, Error> {
        self.execute_with(arguments, &ExecuteOptions::default())
    }

    /// Executes it, with options.
    ///
    /// # Errors
    /// As [`Executable::execute`]; [`Code::DeadlineExceeded`], [`Code::Cancelled`].
    pub fn execute_with(
        &self,
        arguments: &[&Buffer],
        options: &ExecuteOptions,
    ) -> Result<Vec<Buffer>, Error> {
        let mut results = Vec::with_capacity(self.inner.results.len());
        self.execute_into(arguments, options, &mut results)?;
        Ok(results)
    }

    /// Executes it and appends the results, in order, to a collection. Nothing is allocated for up to 8
    /// arguments and 4 results, if the collection has the capacity and this thread has run the program once
    /// or twice and dropped the results.
    ///
    /// # Errors
    /// As [`Executable::execute_with`]; then nothing was given.
    pub fn execute_into(
        &self,
        arguments: &[&Buffer],
        options: &ExecuteOptions,
        results: &mut impl Extend<Buffer>,
    ) -> Result<(), Error> {
        let counters = &self.inner.client.inner.counters;
        let outcome = self.observed(options, || {
            check_options(options)?;
            let loaded = self.loaded();
            let mut given: SmallVec<[Argument<'_>; 8]> = SmallVec::new();
            let lease = self.prepare(&**loaded, arguments, options, &mut given)?;
            let arrays = cancellable(options, || loaded.run(&mut given, options, &Registry::default()))?;
            Ok((arrays, lease))
        });
        match outcome {
            Ok((arrays, lease)) => {
                counters.executions.fetch_add(1, Ordering::Relaxed);
                results.extend(self.results(arrays, lease));
                Ok(())
            }
            Err(error) => {
                counters.failed_executions.fetch_add(1, Ordering::Relaxed);
                Err(error)
            }
        }
    }

    /// Does something of which the caller or the client wants to know how long it takes.
    fn observed<R>(
        &self,
        options: &ExecuteOptions,
        run: impl FnOnce() -> Result<R, Error>,
    ) -> Result<R, Error> {
        let inner = &*self.inner;
        let trace = &inner.client.inner.trace;
        if trace.is_none() && options.elapsed.is_none() {
            return run();
        }
        let start = Instant::now();
        let result = run();
        if let Some(elapsed) = &options.elapsed {
            elapsed.set(start.elapsed());
        }
        if let Some(trace) = trace {
            trace.record(SpanKind::Run, &inner.name, start);
        }
        result
    }

    /// The results of a run, which hold their bytes of its lease.
    fn results(&self, arrays: Arrays, mut lease: Lease) -> impl Iterator<Item = Buffer> {
        let inner = &*self.inner;
        let memory = &inner.client.inner.memory;
        let any_shared = arrays.iter().any(|array| matches!(array.leaf, Leaf::Same(_)));
        let mut earlier: SmallVec<[Data; 4]> = SmallVec::new();
        arrays.into_iter().enumerate().map(move |(leaf, array)| {
            let data = match array.leaf {
                Leaf::Own(block) => {
                    let own = lease.split(block.len() as u64);
                    Data::new(block, own)
                }
                Leaf::Same(first) => earlier[first as usize].clone(),
            };
            if any_shared {
                earlier.push(data.clone());
            }
            let shape = match array.shape {
                Some(shape) => Arc::new(*shape),
                None => Arc::clone(&inner.shared_results[leaf]),
            };
            Buffer::ready(shape, self.origin(leaf), memory, data)
        })
    }

    fn origin(&self, leaf: usize) -> Origin {
        Origin::Result { program: Arc::clone(&self.inner.name), leaf }
    }

    /// Begins an execution, and returns at once: the results are there when [`Buffer::wait`] returns, and
    /// have the error that ends the execution otherwise. So have results of executions that they are
    /// arguments of.
    ///
    /// # Errors
    /// Another number of arguments.
    pub fn execute_async(
        &self,
        arguments: &[Buffer],
        options: &ExecuteOptions,
    ) -> Result<Vec<Buffer>, Error> {
        self.check_count(arguments.len())?;
        let inner = &*self.inner;
        let memory = &inner.client.inner.memory;
        let pending = |(leaf, shape): (usize, &Arc<ArrayShape>)| {
            Buffer::pending(Arc::clone(shape), self.origin(leaf), memory)
        };
        let results: Vec<Buffer> = inner.shared_results.iter().enumerate().map(pending).collect();
        let (this, arguments, options) = (self.clone(), arguments.to_vec(), options.clone());
        let settled = Settling(results.clone());
        let job = move || {
            let arguments: Vec<&Buffer> = arguments.iter().collect();
            match this.execute_with(&arguments, &options) {
                Ok(made) => {
                    for (pending, made) in settled.0.iter().zip(made) {
                        pending.settle(made.data());
                    }
                }
                Err(error) => settled.0.iter().for_each(|pending| pending.settle(Err(error.clone()))),
            }
        };
        inner.client.enqueue(Box::new(job))?;
        Ok(results)
    }

    /// Executes it on several devices at once, replicas times partitions: arguments and results by device.
    ///
    /// # Errors
    /// As [`Executable::execute_with`].
    pub fn execute_on_devices(
        &self,
        arguments: &[Vec<&Buffer>],
        devices: Devices,
        options: &ExecuteOptions,
    ) -> Result<Vec<Vec<Buffer>>, Error> {
        check_options(options)?;
        if arguments.len() != devices.count() as usize {
            let message =
                format!("arguments for {} devices were given to {}", arguments.len(), devices.count());
            return Err(Error::new(Code::InvalidArgument, message));
        }
        let loaded = self.loaded();
        let mut leases = Vec::with_capacity(arguments.len());
        let mut given = Vec::with_capacity(arguments.len());
        for arguments in arguments {
            let mut of_device = SmallVec::new();
            leases.push(self.prepare(&**loaded, arguments, options, &mut of_device)?);
            given.push(of_device.into_vec());
        }
        let run =
            || cancellable(options, || loaded.run_devices(given, devices, options, &Registry::default()));
        let results = self.observed(options, run)?;
        self.inner.client.inner.counters.executions.fetch_add(1, Ordering::Relaxed);
        Ok(results
            .into_iter()
            .zip(leases)
            .map(|(arrays, lease)| self.results(arrays, lease).collect())
            .collect())
    }

    fn check_count(&self, given: usize) -> Result<(), Error> {
        let takes = self.inner.arguments.len();
        if given == takes {
            return Ok(());
        }
        let message = format!("{} takes {takes} arrays, not {given}", self.inner.name);
        Err(Error::new(Code::InvalidArgument, message))
    }

    /// Checks arguments, takes what is donated, and the memory that the run needs.
    fn prepare<'a>(
        &self,
        loaded: &dyn Loaded,
        arguments: &[&'a Buffer],
        options: &ExecuteOptions,
        given: &mut SmallVec<[Argument<'a>; 8]>,
    ) -> Result<Lease, Error> {
        let inner = &*self.inner;
        self.check_count(arguments.len())?;
        for (n, (&buffer, (shape, parameter))) in arguments.iter().zip(&inner.arguments).enumerate() {
            let data = buffer.data()?;
            if !fits(buffer.shape(), shape) {
                let of = match &inner.parameters[*parameter] {
                    Shape::Array(_) => String::new(),
                    whole => format!(" (a leaf of parameter {parameter}, {whole})"),
                };
                let message =
                    format!("argument {n} of {} is {}, not {shape}{of}", inner.name, buffer.shape());
                return Err(Error::new(Code::InvalidArgument, message));
            }
            given.push(Argument { shape: buffer.shape(), source: Source::Lent(data) });
        }
        let lease = inner.client.inner.memory.take(loaded.run_bytes())?;
        for &n in &options.donate {
            let (Some(&buffer), Some(argument)) = (arguments.get(n), given.get_mut(n)) else {
                let message = format!("there is no argument {n} to donate: there are {}", arguments.len());
                return Err(Error::new(Code::InvalidArgument, message));
            };
            // Nobody but this execution refers to it any more.
            let taken = buffer.take("donated")?;
            argument.source = Source::Taken;
            // Memory that something else refers to, such as a part of it, is lent.
            argument.source = match loaded.reuses_arguments() {
                true => taken.into_block().map_or_else(Source::Lent, Source::Given),
                false => Source::Lent(taken),
            };
        }
        Ok(lease)
    }

    /// What runs it now.
    fn loaded(&self) -> &Arc<dyn Loaded> {
        let lazy = match &self.inner.runs {
            Runs::Loaded(loaded) => return loaded,
            Runs::Lazy(lazy) => lazy,
        };
        let cache = &self.inner.client.inner.cache;
        cache.executed(&self.inner.name);
        if let Some(compiled) = lazy.compiled.get() {
            return compiled.as_ref().unwrap_or(&lazy.interpreted);
        }
        let before = lazy.executions.fetch_add(1, Ordering::Relaxed);
        // Of those that come at once only one compiles.
        if before == lazy.after {
            if !cache.is_worth_compiling(&self.inner.name) {
                let _ = lazy.compiled.set(None);
            } else if lazy.background {
                let this = self.clone();
                let compile = move || this.compile_now();
                // Without the thread it goes on being interpreted.
                let _ = thread::Builder::new().name("hlo-compile".into()).spawn(compile);
            } else {
                self.compile_now();
            }
        }
        lazy.compiled.get().and_then(Option::as_ref).unwrap_or(&lazy.interpreted)
    }

    fn compile_now(&self) {
        if let Runs::Lazy(lazy) = &self.inner.runs {
            let client = &self.inner.client.inner;
            let module = lazy.program.module();
            let compiled = client.cache.get(lazy.key, &*client.backend, module, &lazy.options);
            let compiled = compiled.and_then(|loaded| {
                let by = Some((&client.backend, &lazy.options));
                WithCalls::instantiate(loaded, &client.custom_calls, by)
            });
            let _ = lazy.compiled.set(compiled.ok());
        }
    }
}

/// Pending results, which fail when the job is dropped before it ran.
struct Settling(Vec<Buffer>);

impl Drop for Settling {
    fn drop(&mut self) {
        for pending in &self.0 {
            pending.settle(Err(Error::new(Code::Internal, "the execution ended before it began")));
        }
    }
}

fn cancelled(options: &ExecuteOptions) -> Error {
    Error::new(Code::Cancelled, format!("run {} was cancelled", options.run_id))
}

/// Runs something that may be cancelled from elsewhere, if the options say how.
fn cancellable<R>(options: &ExecuteOptions, run: impl FnOnce() -> Result<R, Error>) -> Result<R, Error> {
    match &options.cancellation {
        None => run(),
        Some(cancellation) => cancellation.run(run).unwrap_or_else(|_| Err(cancelled(options))),
    }
}

fn check_options(options: &ExecuteOptions) -> Result<(), Error> {
    if options.cancellation.as_ref().is_some_and(crate::Cancellation::is_cancelled) {
        return Err(cancelled(options));
    }
    if options.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
        let message = format!("run {} began after its deadline", options.run_id);
        return Err(Error::new(Code::DeadlineExceeded, message));
    }
    Ok(())
}

/// Whether an array of a shape is an argument for a parameter: dynamic dimensions may be smaller than their
/// bounds.
pub(crate) fn fits(given: &ArrayShape, wanted: &ArrayShape) -> bool {
    given.element_type == wanted.element_type
        && given.dims.len() == wanted.dims.len()
        && (0..wanted.rank()).all(|d| match wanted.is_dynamic_dim(d) {
            true => given.dims[d] <= wanted.dims[d],
            false => given.dims[d] == wanted.dims[d],
        })
}
