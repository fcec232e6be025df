//! Executables: programs ready to run, any number of times and several at once.
//!
//! Loading resolves what does not depend on a run: code, constants, steps. A run takes an *instance* (an
//! arena, a frame for small scratch memory, and a table with every pointer that a step needs, in which only
//! the pointers of parameters and results are replaced where they changed), so that launching a kernel is a
//! call through two loads.
//!
//! **Invariants:** the table has a pointer for each argument of each step, into an allocation that is at
//! least as long as the slice; an instance is used by one run at a time; memory that the caller lent is read
//! only.

mod prepared;
mod steps;

pub use steps::{CHUNKS_PER_THREAD, chunks};

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hlo::diag::codes;
use hlo::{ArrayShape, Diagnostic, InstrId, Literal, Module, Span};
use hlo_interp::device::fleet::{Fleet, Member};
use hlo_interp::observe::Call;
use hlo_interp::{Devices, Interpreter};
use hlo_library_base::configuration::Configuration;
use hlo_library_base::memory::array_bytes;
use hlo_library_base::pool::Pool;
use hlo_opt::buffers::{AllocationKind, Slice};
use smallvec::SmallVec;

use super::arena::{ALIGNMENT, Block, Memory, OutOfMemory, Store};
use super::constants::ConstantPool;
use super::object::{Code, externals};
use super::raw::bytes_of;
use crate::program::Program;
use crate::run_time_sizes::RunTimeSizes;
use prepared::Packer;
use steps::{Functions, Op, Table};

/// Options of loading.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// The thread pool that it runs on.
    pub pool: Arc<Pool>,
    /// The memory limit of a run in bytes, as the program counts them.
    pub memory_bytes: u64,
    /// Whether runs may have a [`Watch`].
    pub watched: bool,
    /// The configuration that library calls run under.
    pub configuration: Configuration,
    /// Where it looks for constants that another program has.
    pub constants: Arc<ConstantPool>,
}

impl LoadOptions {
    /// Without a memory limit, unwatched, under the default configuration, with constants of its own.
    pub fn new(pool: Arc<Pool>) -> Self {
        Self {
            pool,
            memory_bytes: u64::MAX,
            watched: false,
            configuration: Configuration::default(),
            constants: Arc::default(),
        }
    }
}

/// An observer that sees the results of each step that executes a whole instruction, and may replace them.
pub trait Watch: fmt::Debug + Sync {
    /// The instruction of the lowered module (reached through these calls) has computed these arrays: the
    /// leaves of its result. Errors: why the run ends.
    fn left(&self, instr: InstrId, calls: &[Call], results: &mut [&mut [u8]]) -> Result<(), RunError>;
}

/// Limits and instrumentation of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunOptions<'a> {
    /// The maximum number of steps (launches, calls, iterations); `None`: no limit.
    pub fuel: Option<u64>,
    /// When to end it; checked between steps of loops.
    pub deadline: Option<Instant>,
    /// Whether no duration is asked for: reading the clock twice is a good part of a small run.
    pub untimed: bool,
    /// Whether to time each step ([`Finished::times`]).
    pub profile: bool,
    /// The device, for a run on several or with a host: it executes instructions that communicate or draw
    /// random numbers. `None`: a single device without a host, of this run alone.
    pub member: Option<&'a Member<'a>>,
    /// The observer, for a program that was loaded as watchable.
    pub watch: Option<&'a dyn Watch>,
    /// The thread pool; `None`: that of the program.
    pub pool: Option<&'a Arc<Pool>>,
    /// Where memory of results, and of copies that become results, comes from; `None`: the program's store.
    pub store: Option<&'a Arc<Store>>,
}

/// The value of an array leaf of a parameter.
#[derive(Debug)]
pub enum Argument<'a> {
    /// Lent: read only.
    Borrowed(&'a [u8]),
    /// Donated: the program may write to it and return it as part of its result.
    Donated(Block),
}

/// An array leaf of a result.
#[derive(Debug)]
pub enum Leaf {
    /// In memory of its own.
    Own(Block),
    /// The same array as this earlier leaf.
    Same(u32),
}

/// Leaves of a result; a few need no allocation.
pub type Leaves = SmallVec<[Leaf; 4]>;

/// The outcome of a run.
#[derive(Debug, Default)]
pub struct Finished {
    /// The array leaves of the result.
    pub results: Leaves,
    /// The number of executed steps.
    pub steps: u64,
    /// The duration, without copies of lent arguments. 0 if not asked for ([`RunOptions::untimed`]).
    pub time: Duration,
    /// For each step of [`Executable::steps`] the number of executions and the total duration; empty without
    /// a profile.
    pub times: Vec<(u64, Duration)>,
    /// Begin and end of executions of steps, of the first ones; empty without a profile.
    pub events: Vec<(u32, Instant, Duration)>,
}

impl Finished {
    /// The memory of a leaf.
    pub fn block(&self, leaf: usize) -> &Block {
        match &self.results[leaf] {
            Leaf::Own(block) => block,
            Leaf::Same(earlier) => self.block(*earlier as usize),
        }
    }
}

/// Why there is no result.
#[derive(Clone, Debug)]
pub enum RunError {
    /// The arguments do not match the program's parameters.
    Arguments(String),
    /// Out of memory, or over the memory limit.
    OutOfMemory(u64),
    /// Over the limit of steps.
    OutOfFuel(u64),
    /// Over the time limit.
    TimedOut,
    /// An error of the interpreter, of an instruction that it executed.
    Interpreter(Box<hlo_interp::RunError>),
    /// The program cannot be loaded: a defect of the compiler.
    Load(String),
}

impl RunError {
    /// The error as a diagnostic.
    pub fn diagnostic(&self) -> Diagnostic {
        let code = match self {
            RunError::Interpreter(e) => return e.to_diagnostic(),
            RunError::Arguments(_) => codes::WRONG_ARGUMENTS,
            RunError::OutOfMemory(_) => codes::OUT_OF_MEMORY,
            RunError::OutOfFuel(_) => codes::OUT_OF_FUEL,
            RunError::TimedOut => codes::ENGINE_TIMED_OUT,
            RunError::Load(_) => codes::COMPILER_DEFECT,
        };
        Diagnostic::error(code, Span::NONE, self.to_string())
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Arguments(message) | RunError::Load(message) => f.write_str(message),
            RunError::OutOfMemory(bytes) => OutOfMemory { bytes: *bytes }.fmt(f),
            RunError::OutOfFuel(fuel) => write!(f, "the program takes more than {fuel} steps"),
            RunError::TimedOut => f.write_str("the program takes longer than it may"),
            RunError::Interpreter(e) => e.to_diagnostic().message.fmt(f),
        }
    }
}

impl From<OutOfMemory> for RunError {
    fn from(error: OutOfMemory) -> Self {
        RunError::OutOfMemory(error.bytes)
    }
}

/// A step, for profiles.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct StepInfo {
    /// The instruction.
    pub name: String,
    /// The kind of action: "kernel", "library call", ...
    pub kind: &'static str,
    /// How it is computed (docs/compiler.md): "row fusion", "GEMV", ...; empty where there is one way.
    pub strategy: String,
    /// Bytes that one execution reads and writes.
    pub bytes: u64,
    /// Arithmetic operations of one execution.
    pub flops: u64,
    /// Bytes of its weights that were packed when the program was loaded.
    pub packed: u64,
}

/// A program ready to run.
#[derive(Debug)]
pub struct Executable {
    /// Keeps the functions that `ops` call alive.
    _code: Vec<Code>,
    /// Keeps constants alive, by their number.
    constants: Vec<Arc<Memory>>,
    /// Constant operands as library calls read them.
    prepared: Vec<Arc<Memory>>,
    /// Bytes of constants that nothing reads in their own form.
    given_back_bytes: u64,
    ops: Vec<Op>,
    steps: Vec<StepInfo>,
    table: Table,
    allocations: Vec<hlo_opt::buffers::Allocation>,
    parameters: Vec<Parameter>,
    results: Vec<ResultLeaf>,
    store: Arc<Store>,
    instances: Mutex<Vec<Instance>>,
    /// The module of the instructions for the interpreter.
    module: Option<Arc<Module>>,
    run_time_sizes: Option<RunTimeSizes>,
    pool: Arc<Pool>,
    configuration: Configuration,
}

#[derive(Debug)]
struct Parameter {
    bytes: u64,
    /// Its allocation, if any step or result reads it.
    allocation: Option<u32>,
    donated: bool,
}

#[derive(Debug)]
struct ResultLeaf {
    shape: ArrayShape,
    slice: Slice,
    source: Source,
}

/// The storage of a leaf of the result at the end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Source {
    /// Memory of its own.
    Own,
    /// The whole of a donated argument that no other leaf takes.
    Argument(u32),
    /// Must be copied.
    Copied,
    /// The same as an earlier leaf.
    Leaf(u32),
}

/// An instance: what a run needs for itself.
#[derive(Debug)]
struct Instance {
    /// The address of each allocation.
    bases: Vec<*mut u8>,
    /// Every pointer of every step.
    pointers: Vec<*mut u8>,
    /// The arena and the frame.
    _own: Vec<Memory>,
    /// By leaf of the parameters: a copy of a lent argument that could not be used as it is.
    copies: Vec<Option<Block>>,
}

// SAFETY: the pointers are to memory that the instance or its executable owns, or that is set anew for each
// run.
unsafe impl Send for Instance {}

impl Executable {
    /// Loads a program. Errors: object code that cannot be loaded, too little memory.
    pub fn load(program: Program, options: &LoadOptions) -> Result<Self, RunError> {
        options.configuration.with(|| Self::load_configured(program, options))
    }

    /// [`Executable::load`] under the configuration of the options: constant operands are packed as library
    /// calls will read them.
    fn load_configured(program: Program, options: &LoadOptions) -> Result<Self, RunError> {
        let failed = |message: String| RunError::Load(message);
        if program.buffers.peak_bytes > options.memory_bytes {
            return Err(RunError::OutOfMemory(program.buffers.peak_bytes));
        }
        let code: Result<Vec<Code>, _> =
            program.code.objects().iter().map(|o| Code::load(o, &externals)).collect();
        let code = code.map_err(|e| failed(e.to_string()))?;
        let mut constants = Vec::with_capacity(program.constants.len());
        for literal in &program.constants {
            let array = literal.as_array().ok_or_else(|| failed("a constant that is no array".into()))?;
            constants.push(options.constants.copy(bytes_of(&array.buffer))?);
        }
        let allocations = program.buffers.allocations.clone();
        let mut parameters: Vec<Parameter> = Vec::new();
        for shape in program.parameter_leaves() {
            let bytes = array_bytes(shape).ok_or(RunError::OutOfMemory(u64::MAX))?;
            parameters.push(Parameter { bytes, allocation: None, donated: false });
        }
        for (i, allocation) in allocations.iter().enumerate() {
            let fits = match allocation.kind {
                AllocationKind::Parameter { leaf, donated } => match parameters.get_mut(leaf as usize) {
                    Some(p) => {
                        let first = p.allocation.replace(i as u32).is_none();
                        p.donated = donated;
                        first && allocation.bytes <= p.bytes
                    }
                    None => false,
                },
                AllocationKind::Constant { index } => {
                    constants.get(index as usize).is_some_and(|c| allocation.bytes <= c.len() as u64)
                }
                AllocationKind::Result { leaf } => (leaf as usize) < program.buffers.results.len(),
                AllocationKind::Arena | AllocationKind::Frame => true,
            };
            if !fits {
                return Err(failed(format!("allocation {i} is not what it says")));
            }
        }
        let mut results = Vec::new();
        let mut taken = rustc_hash::FxHashSet::default();
        let mut leaves = rustc_hash::FxHashMap::default();
        let shapes = program.result_leaves();
        if shapes.len() != program.buffers.results.len() {
            return Err(failed("the result has another number of leaves than its buffers".into()));
        }
        for (leaf, (shape, &slice)) in (0..).zip(shapes.into_iter().zip(&program.buffers.results)) {
            let allocation = allocations.get(slice.allocation as usize);
            let allocation = allocation.ok_or_else(|| failed("a result without an allocation".into()))?;
            let whole = slice.offset == 0 && slice.bytes == allocation.bytes;
            let first: u32 = *leaves.entry((slice.allocation, slice.offset, slice.bytes)).or_insert(leaf);
            let source = match allocation.kind {
                _ if first != leaf => Source::Leaf(first),
                AllocationKind::Result { .. } if whole && taken.insert(slice.allocation) => Source::Own,
                AllocationKind::Parameter { leaf, donated: true }
                    if whole
                        && parameters[leaf as usize].bytes == slice.bytes
                        && taken.insert(slice.allocation) =>
                {
                    Source::Argument(leaf)
                }
                AllocationKind::Result { .. }
                | AllocationKind::Parameter { .. }
                | AllocationKind::Constant { .. }
                | AllocationKind::Arena
                | AllocationKind::Frame => Source::Copied,
            };
            results.push(ResultLeaf { shape: shape.clone(), slice, source });
        }
        for (i, allocation) in allocations.iter().enumerate() {
            let is_result = matches!(allocation.kind, AllocationKind::Result { .. });
            if is_result && !taken.contains(&(i as u32)) {
                return Err(failed(format!("no result lies in allocation {i}, which is for one")));
            }
        }
        let found = Functions { code: &code, program: &program.code };
        let mut loader = steps::Loader::new(found, &program.kernels, &allocations, program.module.as_deref());
        loader.watched = options.watched;
        let left = options.memory_bytes - program.buffers.peak_bytes;
        loader.packer = Some(Packer::new(&constants, Arc::clone(&options.pool), left, allocations.len()));
        let ops = loader.plan(program.plan)?;
        for result in &results {
            loader.check(result.slice)?;
        }
        let (table, steps, packer) = loader.finish();
        let finished = packer.map(|packer| packer.finish(&table, &results, &allocations));
        let (prepared, unread) = finished.unwrap_or_default();
        let mut given_back_bytes = 0;
        for index in unread {
            given_back_bytes += constants[index as usize].len() as u64;
            constants[index as usize] = Arc::new(Memory::new(0)?);
        }
        let prepared = prepared.into_iter().map(|memory| options.constants.share(memory)).collect();
        Ok(Self {
            _code: code,
            constants,
            prepared,
            given_back_bytes,
            ops,
            steps,
            table,
            allocations,
            parameters,
            results,
            store: Arc::default(),
            instances: Mutex::default(),
            module: program.module,
            run_time_sizes: program.run_time_sizes,
            pool: Arc::clone(&options.pool),
            configuration: options.configuration,
        })
    }

    /// Its steps, those of loops and branches included, in the order of [`Finished::times`].
    pub fn steps(&self) -> &[StepInfo] {
        &self.steps
    }

    /// The total size of its arguments and results.
    pub fn io_bytes(&self) -> u64 {
        let given = self.parameters.iter().map(|p| p.bytes);
        given.chain(self.results.iter().map(|r| r.slice.bytes)).sum()
    }

    /// The memory that a run needs in addition to those.
    pub fn temporary_bytes(&self) -> u64 {
        let arenas = self.allocations.iter().filter(|a| a.kind == AllocationKind::Arena);
        arenas.map(|a| a.bytes).sum()
    }

    /// Bytes of weights that were packed when it was loaded.
    pub fn packed_bytes(&self) -> u64 {
        self.prepared.iter().map(|p| p.len() as u64).sum()
    }

    /// Bytes of constants that were given back because only what was packed of them is read.
    pub fn given_back_bytes(&self) -> u64 {
        self.given_back_bytes
    }

    /// An upper bound of the memory that [`Executable::run_literals`] needs in addition to the arguments:
    /// constants as they are and packed, the arena, copies of arguments, and the results twice, in buffers of
    /// the run and as literals.
    pub fn run_bytes(&self) -> u64 {
        let constants = self.constants.iter().map(|c| c.len() as u64).sum::<u64>() + self.packed_bytes();
        let of = |kind: fn(&AllocationKind) -> bool| {
            self.allocations.iter().filter(move |a| kind(&a.kind)).map(|a| a.bytes).sum::<u64>()
        };
        let own = of(|kind| matches!(kind, AllocationKind::Arena | AllocationKind::Frame));
        let copies = self.parameters.iter().filter(|p| p.donated).map(|p| p.bytes).sum();
        let padded =
            if self.run_time_sizes.is_some() { self.parameters.iter().map(|p| p.bytes).sum() } else { 0 };
        let results = self.results.iter().filter(|r| !matches!(r.source, Source::Leaf(_)));
        // For a donated argument that becomes a result, only the literal is new.
        let results = results.map(|r| match r.source {
            Source::Argument(_) => r.slice.bytes,
            Source::Own | Source::Copied | Source::Leaf(_) => r.slice.bytes.saturating_mul(2),
        });
        [constants, own, copies, padded].into_iter().chain(results).fold(0, u64::saturating_add)
    }

    /// The array leaves of the result.
    pub fn result_shapes(&self) -> impl ExactSizeIterator<Item = &ArrayShape> {
        self.results.iter().map(|r| &r.shape)
    }

    /// The module of its instructions for the interpreter, if there are any: runs on several devices need a
    /// [`Member`] of an interpreter of it.
    pub fn interpreted_module(&self) -> Option<&Arc<Module>> {
        self.module.as_ref()
    }

    /// Whether sizes of arguments or results are known at run time only: [`Executable::run_literals`] handles
    /// that.
    pub fn has_run_time_sizes(&self) -> bool {
        self.run_time_sizes.is_some()
    }

    /// Whether it may write its results over donated arguments.
    pub fn reuses_arguments(&self) -> bool {
        self.parameters.iter().any(|p| p.donated)
    }

    /// The pool that memory for arguments is best taken from.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// The thread pool.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Runs it on the values of the array leaves of the parameters; donated ones are taken out of
    /// `arguments`.
    pub fn run(
        &self,
        arguments: &mut [Argument<'_>],
        options: &RunOptions<'_>,
    ) -> Result<Finished, RunError> {
        if arguments.len() != self.parameters.len() {
            let (want, got) = (self.parameters.len(), arguments.len());
            return Err(RunError::Arguments(format!("the program takes {want} arrays, not {got}")));
        }
        let mut instance = match self.instances.lock().unwrap_or_else(PoisonError::into_inner).pop() {
            Some(instance) => instance,
            None => self.instance()?,
        };
        let finished = self.configuration.with(|| self.run_on(&mut instance, arguments, options));
        let mut instances = self.instances.lock().unwrap_or_else(PoisonError::into_inner);
        instances.push(instance);
        finished
    }

    fn run_on(
        &self,
        instance: &mut Instance,
        arguments: &mut [Argument<'_>],
        options: &RunOptions<'_>,
    ) -> Result<Finished, RunError> {
        let store = options.store.unwrap_or(&self.store);
        for (i, (parameter, argument)) in self.parameters.iter().zip(arguments.iter_mut()).enumerate() {
            let length = match argument {
                Argument::Borrowed(bytes) => bytes.len(),
                Argument::Donated(block) => block.len(),
            };
            if length as u64 != parameter.bytes {
                let message = format!("array {i} has {length} bytes, not {}", parameter.bytes);
                return Err(RunError::Arguments(message));
            }
            let Some(allocation) = parameter.allocation else { continue };
            let base = match argument {
                Argument::Donated(block) => block.start(),
                Argument::Borrowed(bytes) if parameter.donated => {
                    let mut block = store.take(parameter.bytes)?;
                    block.bytes_mut().copy_from_slice(bytes);
                    let base = block.start();
                    *argument = Argument::Donated(block);
                    base
                }
                Argument::Borrowed(bytes) if (bytes.as_ptr() as usize).is_multiple_of(ALIGNMENT) => {
                    bytes.as_ptr().cast_mut()
                }
                Argument::Borrowed(bytes) => {
                    let copy = &mut instance.copies[i];
                    let block = match copy {
                        Some(block) => block,
                        None => copy.insert(self.store.take(parameter.bytes)?),
                    };
                    block.bytes_mut().copy_from_slice(bytes);
                    block.start()
                }
            };
            instance.set(&self.table, allocation, base);
        }
        let mut own = SmallVec::<[Option<Block>; 4]>::new();
        for result in &self.results {
            own.push(match result.source {
                Source::Own => {
                    let block = store.take(result.slice.bytes)?;
                    instance.set(&self.table, result.slice.allocation, block.start());
                    Some(block)
                }
                Source::Argument(_) | Source::Copied | Source::Leaf(_) => None,
            });
        }
        let pointers = instance.pointers.as_mut_ptr();
        // SAFETY: every allocation has its memory: the arena and constants since the instance was made,
        // parameters and results by now.
        let run = |options: &RunOptions<'_>| unsafe {
            let mut run = steps::Run::new(self, options, pointers);
            run.plan(&self.ops).map(|()| run.finish())
        };
        let start = (!options.untimed).then(Instant::now);
        let mut finished = match (&self.module, options.member) {
            (Some(module), None) => {
                let interpreter = Interpreter::new(module, hlo_interp::Options::default());
                let fleet = Fleet::new(Devices::ONE);
                let member = fleet.join(&interpreter, 0);
                run(&RunOptions { member: Some(&member), ..*options })?
            }
            (Some(_), Some(_)) | (None, _) => run(options)?,
        };
        finished.time = start.map(|start| start.elapsed()).unwrap_or_default();
        // Copies first: what hands out memory comes last.
        for (result, own) in self.results.iter().zip(&mut own) {
            if result.source == Source::Copied {
                let mut block = store.take(result.slice.bytes)?;
                let (offset, length) = (result.slice.offset as usize, result.slice.bytes as usize);
                let base = instance.bases[result.slice.allocation as usize];
                // SAFETY: the slice was checked to be inside of its allocation, whose memory nobody writes
                // now; the block is new.
                let bytes = unsafe { std::slice::from_raw_parts(base.wrapping_add(offset), length) };
                block.bytes_mut().copy_from_slice(bytes);
                *own = Some(block);
            }
        }
        for (result, own) in self.results.iter().zip(own) {
            let block = match result.source {
                Source::Leaf(leaf) => {
                    finished.results.push(Leaf::Same(leaf));
                    continue;
                }
                Source::Argument(leaf) => {
                    match std::mem::replace(&mut arguments[leaf as usize], Argument::Borrowed(&[])) {
                        Argument::Donated(block) => Some(block),
                        Argument::Borrowed(_) => None,
                    }
                }
                Source::Own | Source::Copied => own,
            };
            finished.results.push(Leaf::Own(block.expect("invariant: every leaf has its memory by now")));
        }
        Ok(finished)
    }

    fn instance(&self) -> Result<Instance, RunError> {
        let nowhere = std::ptr::null_mut();
        let mut instance = Instance {
            bases: vec![nowhere; self.allocations.len()],
            pointers: vec![nowhere; self.table.len],
            _own: Vec::new(),
            copies: self.parameters.iter().map(|_| None).collect(),
        };
        for (i, allocation) in self.allocations.iter().enumerate() {
            match allocation.kind {
                AllocationKind::Arena | AllocationKind::Frame => {
                    let memory = Memory::new(allocation.bytes)?;
                    instance.set(&self.table, i as u32, memory.start());
                    instance._own.push(memory);
                }
                AllocationKind::Constant { index } => {
                    instance.set(&self.table, i as u32, self.constants[index as usize].start());
                }
                AllocationKind::Parameter { .. } | AllocationKind::Result { .. } => {}
            }
        }
        Ok(instance)
    }

    /// Runs it on literals: the entry's parameters in order. The result's arrays come as a flat list.
    pub fn run_literals(
        &self,
        arguments: &[Literal],
        options: &RunOptions<'_>,
    ) -> Result<(Vec<hlo::ArrayLiteral>, Finished), RunError> {
        let arrays = || arguments.iter().flat_map(Literal::arrays);
        let padded = self.run_time_sizes.as_ref().map(|sizes| sizes.pad(arrays()));
        let padded = padded.transpose().map_err(RunError::Arguments)?;
        fn lent(array: &hlo::ArrayLiteral) -> Argument<'_> {
            Argument::Borrowed(bytes_of(&array.buffer))
        }
        let mut given: Vec<Argument<'_>> = match &padded {
            Some(padded) => padded.iter().map(lent).collect(),
            None => arrays().map(lent).collect(),
        };
        let finished = self.run(&mut given, options)?;
        let mut results: Vec<hlo::ArrayLiteral> = Vec::with_capacity(self.results.len());
        for (n, leaf) in self.results.iter().enumerate() {
            let ty = leaf.shape.element_type;
            let earlier = match leaf.source {
                Source::Leaf(first) => Some(&results[first as usize].buffer),
                Source::Own | Source::Argument(_) | Source::Copied => None,
            };
            let buffer = match earlier.filter(|b| b.element_type() == ty) {
                Some(same) => Arc::clone(same),
                None => super::raw::buffer_of(ty, finished.block(n).bytes()).into(),
            };
            results.push(hlo::ArrayLiteral { dims: leaf.shape.dims.clone(), buffer });
        }
        let results = match &self.run_time_sizes {
            Some(sizes) => sizes.cut(results).map_err(|e| RunError::Interpreter(Box::new(e)))?,
            None => results,
        };
        Ok((results, finished))
    }
}

impl Instance {
    /// Sets the address of an allocation: in every pointer into it.
    fn set(&mut self, table: &Table, allocation: u32, base: *mut u8) {
        let known = &mut self.bases[allocation as usize];
        if *known == base {
            return;
        }
        *known = base;
        for &(slot, offset) in &table.of[allocation as usize] {
            self.pointers[slot as usize] = base.wrapping_add(offset as usize);
        }
    }
}

#[cfg(test)]
mod tests;
