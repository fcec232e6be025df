//! The steps of a plan, resolved as far as they do not depend on a run, and their execution.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hlo::{InstrId, Module};
use hlo_interp::observe::Call;
use hlo_library::LibraryCall;
use hlo_library_base::Call as Arguments;
use hlo_library_base::pool::Pool;
use hlo_library_base::portable::Function;
use hlo_library_base::sizes;
use hlo_opt::buffers::{Allocation, Slice};
use hlo_threads::cancel::{self, CancellationToken};
use rustc_hash::FxHashSet;

use super::super::object::Code;
use super::prepared::Packer;
use super::{Executable, Finished, RunError, RunOptions, StepInfo, Watch};
use crate::kernel::{Kernel, Phase, Progress};
use crate::plan::{Action, Executed, Plan, Rotation, Step};
use crate::program;
use crate::runtime::arena::Memory;
use crate::runtime::interpret;

/// Work of less than this runs on one thread: distributing it costs more than it gains.
const ALONE_NANOSECONDS: u64 = 10_000;

/// The target duration of a chunk, unless there would be too few or too many.
const CHUNK_NANOSECONDS: u64 = 20_000;

/// A single-kernel loop returns about this often.
const POLL_NANOSECONDS: u64 = 1_000_000;

/// The maximum number of chunks per thread.
pub const CHUNKS_PER_THREAD: u64 = 8;

/// The number of chunks of [`CHUNK_NANOSECONDS`] between two polls of a long launch: a millisecond.
const CHUNKS_PER_POLL: u64 = 50;

/// The maximum number of chunks that a launch is divided into for polling.
const MAX_POLLED_CHUNKS: u64 = 1 << 16;

/// The pointers of all steps in the table, by allocation: index in the table, and offset into the allocation.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) len: usize,
    pub(super) of: Vec<Vec<(u32, u64)>>,
}

/// A step, resolved.
#[derive(Debug)]
pub(super) struct Op {
    /// Its index in [`Executable::steps`].
    number: u32,
    action: Resolved,
    /// The instruction, if it may be watched.
    executes: Option<Box<Watched>>,
}

/// [`Executed`], resolved.
#[derive(Debug)]
struct Watched {
    instr: InstrId,
    calls: Vec<InstrId>,
    result: Option<Arrays>,
}

/// Consecutive pointers in the table.
#[derive(Debug)]
struct Arrays {
    /// The index of the first one.
    first: u32,
    bytes: Vec<usize>,
}

/// A launch, or part of one.
#[derive(Clone, Debug)]
struct Launch {
    function: Function,
    units: u64,
    grain: u64,
    /// The number of chunks that the work may be divided into: 1 if it is small.
    chunks: u64,
}

/// A resolved action. Numbers are indices into the table of pointers.
#[derive(Debug)]
enum Resolved {
    Kernel {
        phases: Box<[Launch]>,
        arguments: u32,
    },
    /// A kernel that iterates.
    Loop {
        function: Function,
        arguments: u32,
        /// Its scratch memory.
        progress: u32,
        /// The number of iterations that take about a millisecond.
        iterations: u64,
    },
    Library {
        op: Box<LibraryCall>,
        arguments: (u32, u32),
        scratch: Option<u32>,
        regions: Box<[Function]>,
        epilogue: Option<(Function, u32)>,
        /// Its number among what was packed when the program was loaded.
        prepared: Option<u32>,
    },
    Copy {
        from: u32,
        to: u32,
        bytes: u64,
    },
    While {
        rotations: Box<[ResolvedRotation]>,
    },
    Conditional {
        selector: u32,
        is_predicate: bool,
        branches: Vec<Vec<Op>>,
    },
    Interpret {
        op: Box<interpret::Interpreted>,
        arguments: u32,
    },
}

/// A [`Rotation`], resolved.
#[derive(Debug)]
struct ResolvedRotation {
    condition: Vec<Op>,
    predicate: u32,
    body: Vec<Op>,
    finish: Vec<Op>,
}

/// The functions of kernels.
#[derive(Clone, Copy)]
pub(super) struct Functions<'a> {
    /// Loaded object code.
    pub(super) code: &'a [Code],
    pub(super) program: &'a program::Code,
}

/// Resolves plans.
pub(super) struct Loader<'a> {
    kernels: &'a [Kernel],
    functions: Functions<'a>,
    allocations: &'a [Allocation],
    module: Option<&'a Module>,
    table: Table,
    steps: Vec<StepInfo>,
    /// Whether to keep which instructions steps execute.
    pub(super) watched: bool,
    /// What packs constant operands.
    pub(super) packer: Option<Packer<'a>>,
}

impl<'a> Loader<'a> {
    pub(super) fn new(
        functions: Functions<'a>,
        kernels: &'a [Kernel],
        allocations: &'a [Allocation],
        module: Option<&'a Module>,
    ) -> Self {
        let table = Table { len: 0, of: vec![Vec::new(); allocations.len()] };
        Self {
            kernels,
            functions,
            allocations,
            module,
            table,
            steps: Vec::new(),
            watched: false,
            packer: None,
        }
    }

    pub(super) fn finish(self) -> (Table, Vec<StepInfo>, Option<Packer<'a>>) {
        (self.table, self.steps, self.packer)
    }

    /// Checks that a slice is inside of its allocation.
    pub(super) fn check(&self, slice: Slice) -> Result<(), RunError> {
        let end = slice.offset.checked_add(slice.bytes);
        let fits =
            self.allocations.get(slice.allocation as usize).zip(end).is_some_and(|(a, end)| end <= a.bytes);
        if fits { Ok(()) } else { Err(RunError::Load(format!("{slice:?} is outside of its allocation"))) }
    }

    /// Enters a pointer in the table.
    fn pointer(&mut self, slice: Slice) -> Result<u32, RunError> {
        self.check(slice)?;
        let slot = u32::try_from(self.table.len).map_err(|_| RunError::Load("too many pointers".into()))?;
        self.table.of[slice.allocation as usize].push((slot, slice.offset));
        self.table.len += 1;
        Ok(slot)
    }

    /// Enters consecutive pointers.
    fn pointers(&mut self, slices: &[Slice]) -> Result<u32, RunError> {
        let first = u32::try_from(self.table.len).map_err(|_| RunError::Load("too many pointers".into()))?;
        for &slice in slices {
            self.pointer(slice)?;
        }
        Ok(first)
    }

    fn kernel(&self, kernel: usize) -> Result<&'a Kernel, RunError> {
        self.kernels.get(kernel).ok_or_else(|| RunError::Load(format!("there is no kernel {kernel}")))
    }

    /// The function of a phase of a kernel.
    fn function(&self, kernel: usize, symbol: &str) -> Result<Function, RunError> {
        match self.functions.program {
            program::Code::Objects(_) => {
                // SAFETY: the symbols of kernels are those of their functions.
                let found = self.functions.code.iter().find_map(|code| unsafe { code.kernel(symbol) });
                let found = found.map(Function::Machine);
                found.ok_or_else(|| RunError::Load(format!("no object defines the kernel `{symbol}`")))
            }
            program::Code::Evaluated(all) => {
                let found = all.get(kernel).and_then(Option::as_ref).map(Arc::clone);
                let found = found.map(Function::Evaluated);
                found.ok_or_else(|| RunError::Load(format!("nothing evaluates the kernel `{symbol}`")))
            }
        }
    }

    /// Checks that slices are as long as the arguments of a function that is called with `units`.
    fn fits(function: &Function, units: u64, arguments: &[Slice]) -> Result<(), RunError> {
        let Function::Evaluated(evaluate) = function else { return Ok(()) };
        let bytes = evaluate.bytes(units);
        let fits = bytes.len() == arguments.len() && bytes.iter().zip(arguments).all(|(&b, s)| b <= s.bytes);
        if fits { Ok(()) } else { Err(RunError::Load("a kernel on other arrays than its own".to_owned())) }
    }

    /// The function of a kernel with one phase, as regions and epilogues have.
    fn only_function(&self, number: usize) -> Result<(Function, u64), RunError> {
        let kernel = self.kernel(number)?;
        match &kernel.phases[..] {
            [phase] => Ok((self.function(number, &phase.symbol)?, phase.units)),
            [] | [_, ..] => Err(RunError::Load(format!("the kernel `{}` has several phases", kernel.name))),
        }
    }

    pub(super) fn plan(&mut self, plan: Plan) -> Result<Vec<Op>, RunError> {
        plan.steps.into_iter().map(|step| self.step(step)).collect()
    }

    fn step(&mut self, step: Step) -> Result<Op, RunError> {
        let number = self.steps.len() as u32;
        let executes = step.executes.filter(|_| self.watched);
        let executes = executes.map(|executed| self.executed(&executed)).transpose()?;
        self.steps.push(StepInfo { name: step.name, ..StepInfo::default() });
        let (kind, bytes, flops, action) = match step.action {
            Action::Kernel { kernel: index, arguments } => {
                let kernel = self.kernel(index)?;
                let phases: Result<_, RunError> =
                    kernel.phases.iter().map(|p| self.launch(index, p, &arguments)).collect();
                self.steps[number as usize].strategy = kernel.strategy();
                let bytes = kernel.phases.iter().map(|p| p.bytes).sum();
                let flops = kernel.phases.iter().map(|p| p.flops).sum();
                let phases: Vec<Launch> = phases?;
                let only = (phases.len() == 1).then(|| phases[0].function.clone());
                let scratch = arguments.last().copied();
                let arguments = self.pointers(&arguments)?;
                let action = match (kernel.iterates, only, scratch) {
                    (false, ..) => Resolved::Kernel { phases: phases.into(), arguments },
                    (true, Some(function), Some(scratch))
                        if scratch.bytes >= size_of::<Progress>() as u64 =>
                    {
                        let progress = self.pointer(scratch)?;
                        let iterations = POLL_NANOSECONDS / estimate(bytes, flops).max(1);
                        Resolved::Loop { function, arguments, progress, iterations: iterations.max(1) }
                    }
                    (true, ..) => {
                        return Err(RunError::Load(format!("the loop `{}` is not one", kernel.name)));
                    }
                };
                ("kernel", bytes, flops, action)
            }
            Action::Library { op, arguments, scratch, regions, epilogue } => {
                let (bytes, flops) = op.cost();
                let epilogue_name = if epilogue.is_some() { ", epilogue kernel" } else { "" };
                self.steps[number as usize].strategy = format!("{}{epilogue_name}", op.strategy());
                let regions: Result<_, RunError> =
                    regions.iter().map(|&k| Ok(self.only_function(k)?.0)).collect();
                let epilogue = match epilogue {
                    Some((kernel, arguments)) => {
                        let (function, units) = self.only_function(kernel)?;
                        Self::fits(&function, units, &arguments)?;
                        Some((function, self.pointers(&arguments)?))
                    }
                    None => None,
                };
                let scratch = scratch.map(|s| self.pointer(s)).transpose()?;
                arguments.iter().try_for_each(|&slice| self.check(slice))?;
                let prepared = match &mut self.packer {
                    Some(packer) => packer.pack(&op, &arguments, self.allocations)?,
                    None => None,
                };
                if let (Some(packer), Some(packed)) = (&self.packer, prepared) {
                    self.steps[number as usize].packed = packer.bytes(packed);
                }
                let arguments = (self.pointers(&arguments)?, arguments.len() as u32);
                (
                    "library call",
                    bytes,
                    flops,
                    Resolved::Library { op, arguments, scratch, regions: regions?, epilogue, prepared },
                )
            }
            Action::Copy { from, to } => {
                if from.bytes != to.bytes {
                    return Err(RunError::Load("a copy between slices of different sizes".into()));
                }
                let (bytes, from, to) = (from.bytes, self.pointer(from)?, self.pointer(to)?);
                ("copy", 2 * bytes, 0, Resolved::Copy { from, to, bytes })
            }
            Action::While { rotations } => {
                // The rotations have the same steps, on other slices: a profile adds them up.
                let first = self.steps.len();
                let mut resolved = Vec::with_capacity(rotations.len());
                let mut finishes = Vec::with_capacity(rotations.len());
                for Rotation { condition, predicate, body, finish } in rotations {
                    self.steps.truncate(first);
                    let predicate = self.pointer(predicate)?;
                    let (condition, body) = (self.plan(condition)?, self.plan(body)?);
                    resolved.push(ResolvedRotation { condition, predicate, body, finish: Vec::new() });
                    finishes.push(finish);
                }
                for (rotation, finish) in resolved.iter_mut().zip(finishes) {
                    rotation.finish = self.plan(finish)?;
                }
                if resolved.is_empty() {
                    return Err(RunError::Load("a loop without a rotation".into()));
                }
                ("while", 0, 0, Resolved::While { rotations: resolved.into() })
            }
            Action::Conditional { selector, is_predicate, branches } => {
                if branches.is_empty() {
                    return Err(RunError::Load("a conditional without branches".into()));
                }
                let selector = self.pointer(selector)?;
                let branches: Result<Vec<_>, _> = branches.into_iter().map(|b| self.plan(b)).collect();
                ("conditional", 0, 0, Resolved::Conditional { selector, is_predicate, branches: branches? })
            }
            Action::Interpret { instr, arguments } => {
                let op =
                    self.module.ok_or("an instruction for the interpreter without its module".to_owned());
                let op = op.and_then(|m| interpret::Interpreted::new(m, instr, &arguments));
                let op = op.map_err(RunError::Load)?;
                let bytes = arguments.iter().map(|a| a.bytes).sum();
                (
                    "interpreter",
                    bytes,
                    0,
                    Resolved::Interpret { op: Box::new(op), arguments: self.pointers(&arguments)? },
                )
            }
        };
        let info = &mut self.steps[number as usize];
        (info.kind, info.bytes, info.flops) = (kind, bytes, flops);
        Ok(Op { number, action, executes })
    }

    fn executed(&mut self, executed: &Executed) -> Result<Box<Watched>, RunError> {
        let result = match executed.visible() {
            Some(slices) => {
                let bytes = slices.iter().map(|s| s.bytes as usize).collect();
                Some(Arrays { first: self.pointers(slices)?, bytes })
            }
            None => None,
        };
        Ok(Box::new(Watched { instr: executed.instr, calls: executed.calls.clone(), result }))
    }

    fn launch(&self, kernel: usize, phase: &Phase, arguments: &[Slice]) -> Result<Launch, RunError> {
        let function = self.function(kernel, &phase.symbol)?;
        Self::fits(&function, phase.units, arguments)?;
        Ok(Launch { function, units: phase.units, grain: phase.grain.max(1), chunks: chunks(phase) })
    }
}

/// The number of chunks that the work of a phase may be divided into: 1 if it is small.
pub fn chunks(phase: &Phase) -> u64 {
    let nanoseconds = estimate(phase.bytes, phase.flops);
    let most = phase.units.div_ceil(phase.grain.max(1).max(phase.run)).max(1);
    let chunks = if nanoseconds < sizes::from(ALONE_NANOSECONDS) {
        1
    } else {
        (nanoseconds / sizes::from(CHUNK_NANOSECONDS)).clamp(2, most.max(2))
    };
    chunks.min(most)
}

/// The estimated duration on one thread: 20 bytes or 8 operations per nanosecond, whichever takes longer.
fn estimate(bytes: u64, flops: u64) -> u64 {
    (bytes / 20).max(flops / 8)
}

/// A run of an executable.
pub(super) struct Run<'a> {
    pool: &'a Arc<Pool>,
    prepared: &'a [Arc<Memory>],
    pointers: *mut *mut u8,
    fuel: u64,
    options: RunOptions<'a>,
    /// The limits of the run.
    cancel: Option<CancellationToken>,
    /// Instructions whose results are pending: the interpreter keeps them.
    kept: FxHashSet<InstrId>,
    steps: u64,
    /// Iterations of all loops.
    iterations: u64,
    times: Vec<(u64, Duration)>,
    events: Vec<(u32, Instant, Duration)>,
    /// The calls, loops and branches around the current steps; known only with an observer.
    calls: Vec<Call>,
}

/// The maximum number of single executions that a profile keeps.
const MAX_EVENTS: usize = 100_000;

impl<'a> Run<'a> {
    pub(super) fn new(executable: &'a Executable, options: &RunOptions<'a>, pointers: *mut *mut u8) -> Self {
        let times =
            if options.profile { vec![(0, Duration::ZERO); executable.steps.len()] } else { Vec::new() };
        let fuel = options.fuel.unwrap_or(u64::MAX);
        Self {
            pool: options.pool.unwrap_or(&executable.pool),
            prepared: &executable.prepared,
            pointers,
            fuel,
            options: *options,
            cancel: cancel::current(),
            kept: FxHashSet::default(),
            steps: 0,
            iterations: 0,
            times,
            events: Vec::new(),
            calls: Vec::new(),
        }
    }

    pub(super) fn finish(self) -> Finished {
        Finished { steps: self.steps, times: self.times, events: self.events, ..Finished::default() }
    }

    /// The pointer at an index of the table.
    ///
    /// # Safety
    /// The index was given out by the loader of this executable.
    unsafe fn pointer(&self, slot: u32) -> *mut u8 {
        // SAFETY: by the caller's word it is inside the table.
        unsafe { *self.pointers.add(slot as usize) }
    }

    /// Runs steps in order.
    ///
    /// # Safety
    /// The table of pointers is that of the executable whose steps these are, and all of its
    /// allocations are there.
    pub(super) unsafe fn plan(&mut self, ops: &[Op]) -> Result<(), RunError> {
        for op in ops {
            if self.steps == self.fuel {
                return Err(RunError::OutOfFuel(self.fuel));
            }
            cancel::poll_token(self.cancel.as_ref());
            self.steps += 1;
            if self.times.is_empty() {
                // SAFETY: by the caller's word.
                unsafe { self.step(op) }?;
                if let (Some(watch), Some(watched)) = (self.options.watch, &op.executes) {
                    // SAFETY: by the caller's word.
                    unsafe { self.show(watch, watched) }?;
                }
                continue;
            }
            let start = Instant::now();
            // SAFETY: by the caller's word.
            unsafe { self.step(op) }?;
            let took = start.elapsed();
            let (count, time) = &mut self.times[op.number as usize];
            (*count, *time) = (*count + 1, *time + took);
            if self.events.len() < MAX_EVENTS {
                self.events.push((op.number, start, took));
            }
        }
        Ok(())
    }

    /// Shows what a step has left to who watches.
    ///
    /// # Safety
    /// As for [`Run::plan`].
    unsafe fn show(&mut self, watch: &dyn Watch, watched: &Watched) -> Result<(), RunError> {
        let Some(result) = &watched.result else { return Ok(()) };
        let around = self.calls.len();
        self.calls.extend(watched.calls.iter().map(|&caller| Call { caller, iteration: 0 }));
        let arrays = result.bytes.iter().zip(result.first..);
        // SAFETY: slices of that many bytes, which do not overlap, and nothing runs that reads or writes
        // them.
        let arrays =
            arrays.map(|(&bytes, slot)| unsafe { std::slice::from_raw_parts_mut(self.pointer(slot), bytes) });
        let mut arrays: Vec<&mut [u8]> = arrays.collect();
        let shown = watch.left(watched.instr, &self.calls, &mut arrays);
        self.calls.truncate(around);
        shown
    }

    /// Runs steps that an instruction calls.
    ///
    /// # Safety
    /// As for [`Run::plan`].
    unsafe fn called(&mut self, caller: &Op, iteration: u64, ops: &[Op]) -> Result<(), RunError> {
        let Some(watched) = caller.executes.as_ref().filter(|_| self.options.watch.is_some()) else {
            // SAFETY: by the caller's word.
            return unsafe { self.plan(ops) };
        };
        let around = self.calls.len();
        self.calls.extend(watched.calls.iter().map(|&caller| Call { caller, iteration: 0 }));
        self.calls.push(Call { caller: watched.instr, iteration });
        // SAFETY: by the caller's word.
        let ran = unsafe { self.plan(ops) };
        self.calls.truncate(around);
        ran
    }

    /// # Safety
    /// As for [`Run::plan`].
    unsafe fn step(&mut self, op: &Op) -> Result<(), RunError> {
        match &op.action {
            Resolved::Kernel { phases, arguments } => {
                // SAFETY: the loader put the kernel's arguments there, one after the other.
                let arguments = unsafe { self.pointers.add(*arguments as usize) }.cast_const();
                for phase in phases {
                    // SAFETY: as above.
                    unsafe { self.launch(phase, arguments) };
                }
            }
            Resolved::Loop { function, arguments, progress, iterations } => {
                // SAFETY: the loader put the kernel's arguments there, one after the other, the scratch
                // memory at the end.
                unsafe { self.iterate(function, *arguments, *progress, *iterations) }?;
            }
            Resolved::Library { op, arguments: (first, count), scratch, regions, epilogue, prepared } => {
                let pool = self.pool;
                // SAFETY: the loader put the arguments there, one after the other.
                let arguments = unsafe {
                    std::slice::from_raw_parts(
                        self.pointers.add(*first as usize).cast_const(),
                        *count as usize,
                    )
                };
                let scratch = match scratch {
                    // SAFETY: the loader gave out the slot.
                    Some(slot) => unsafe { self.pointer(*slot) },
                    None => std::ptr::null_mut(),
                };
                let rows;
                let epilogue: Option<&(dyn Fn(u64, u64) + Sync)> = match epilogue {
                    Some((function, slot)) => {
                        // SAFETY: the loader put the kernel's arguments there.
                        let arguments = Shared(unsafe { self.pointers.add(*slot as usize) }.cast_const());
                        rows = move |begin, end| {
                            // SAFETY: rows that are finished, each once: units of the kernel.
                            unsafe { function.call(arguments.get(), begin, end) }
                        };
                        Some(&rows)
                    }
                    None => None,
                };
                let packed = prepared.map(|number| self.prepared[number as usize].start().cast_const());
                let prepared = packed.unwrap_or(std::ptr::null());
                // SAFETY: the arguments are those of the instruction that it was made of; buffer assignment
                // keeps its results apart.
                unsafe { op.run(Arguments { arguments, scratch, regions, epilogue, prepared, pool }) };
            }
            Resolved::Copy { from, to, bytes } => {
                // SAFETY: slices of this length, which do not overlap.
                unsafe { copy(self.pool, self.pointer(*from), self.pointer(*to), *bytes as usize) };
            }
            Resolved::While { rotations } => {
                for (rotation, iteration) in rotations.iter().cycle().zip(0..) {
                    let ResolvedRotation { condition, predicate, body, finish } = rotation;
                    self.interrupt()?;
                    // SAFETY: by the caller's word.
                    unsafe { self.called(op, iteration, condition) }?;
                    // SAFETY: a byte that the condition wrote.
                    if unsafe { *self.pointer(*predicate) } == 0 {
                        // SAFETY: by the caller's word.
                        unsafe { self.plan(finish) }?;
                        break;
                    }
                    // SAFETY: by the caller's word.
                    unsafe { self.called(op, iteration, body) }?;
                    // A loop without steps ends, too.
                    self.steps += 1;
                }
            }
            Resolved::Conditional { selector, is_predicate, branches } => {
                // SAFETY: a byte, or four that are aligned, that were written before.
                let selector = unsafe { self.pointer(*selector) };
                let last = branches.len() - 1;
                let branch = match is_predicate {
                    // SAFETY: as above.
                    true => usize::from(unsafe { *selector } == 0),
                    // SAFETY: as above.
                    false => usize::try_from(unsafe { *selector.cast::<i32>() }).unwrap_or(last),
                };
                // SAFETY: by the caller's word.
                unsafe { self.called(op, 0, &branches[branch.min(last)]) }?;
            }
            Resolved::Interpret { op, arguments } => {
                let member = self.options.member.expect("invariant: who has such steps runs with a member");
                let threads: Arc<dyn hlo_threads::parallel::Threads> = Arc::<Pool>::clone(self.pool);
                let kept = &mut self.kept;
                // SAFETY: the loader put as many pointers there as it has arguments.
                hlo_threads::parallel::with_threads(threads, || unsafe {
                    op.run(member, kept, self.pointers.add(*arguments as usize).cast_const())
                })?;
            }
        }
        Ok(())
    }

    /// Runs a loop that is one kernel.
    ///
    /// # Safety
    /// Those are indices of its arguments, in order, and of its scratch memory.
    unsafe fn iterate(
        &mut self,
        function: &Function,
        arguments: u32,
        progress: u32,
        iterations: u64,
    ) -> Result<(), RunError> {
        let limited = self.options.deadline.is_some() || self.options.fuel.is_some() || self.cancel.is_some();
        let (mut begin, before) = (0, self.steps);
        loop {
            let left = self.fuel.saturating_sub(self.steps).min(i64::MAX.cast_unsigned() - begin);
            let count = if limited { iterations.min(left) } else { left };
            if count == 0 {
                return Err(RunError::OutOfFuel(self.fuel));
            }
            // SAFETY: iterations from where the call before ended, on the kernel's arguments.
            let done = unsafe {
                function.call(self.pointers.add(arguments as usize).cast_const(), begin, begin + count);
                self.pointer(progress).cast::<Progress>().read()
            };
            self.steps = before.saturating_add(done.iterations);
            if done.goes_on == 0 {
                return Ok(());
            }
            begin = done.iterations;
            cancel::poll_token(self.cancel.as_ref());
            if self.options.deadline.is_some_and(|deadline| Instant::now() > deadline) {
                return Err(RunError::TimedOut);
            }
        }
    }

    /// The error if the run has to end.
    fn interrupt(&mut self) -> Result<(), RunError> {
        if self.steps >= self.fuel {
            return Err(RunError::OutOfFuel(self.fuel));
        }
        cancel::poll_token(self.cancel.as_ref());
        // Reading the clock costs as much as a small step.
        self.iterations = self.iterations.wrapping_add(1);
        if self.iterations.is_multiple_of(16)
            && let Some(deadline) = self.options.deadline
            && Instant::now() > deadline
        {
            return Err(RunError::TimedOut);
        }
        Ok(())
    }

    /// # Safety
    /// `arguments` are those of the kernel.
    unsafe fn launch(&self, launch: &Launch, arguments: *const *mut u8) {
        let &Launch { ref function, units, grain, chunks } = launch;
        let threads = self.pool.threads() as u64;
        if units == 0 {
            return;
        }
        if chunks == 1 || threads == 1 && self.cancel.is_none() {
            // SAFETY: all units of the kernel, on its arguments.
            unsafe { function.call(arguments, 0, units) };
            return;
        }
        let grains = units.div_ceil(grain);
        let chunks = chunks.max(threads.min(grains)).min(threads.saturating_mul(CHUNKS_PER_THREAD));
        // With a deadline, long work is divided more finely and polled between chunks.
        let polled = if self.cancel.is_some() { launch.chunks / CHUNKS_PER_POLL } else { 0 };
        let chunks = chunks.max(polled.min(MAX_POLLED_CHUNKS));
        let arguments = Shared(arguments);
        self.pool.run(chunks as usize, &|chunk| {
            let at = |i: u64| (u128::from(grains) * u128::from(i) / u128::from(chunks)) as u64 * grain;
            let (begin, end) = (at(chunk as u64), at(chunk as u64 + 1).min(units));
            if begin < end {
                // SAFETY: ranges that begin at multiples of the grain and together are all units; they may
                // run at once.
                unsafe { function.call(arguments.get(), begin, end) };
            }
        });
    }
}

/// A pointer that threads share.
#[derive(Clone, Copy)]
struct Shared<T>(*const T);

// SAFETY: only its value is shared; who follows it says why that is right.
unsafe impl<T> Sync for Shared<T> {}
// SAFETY: as above.
unsafe impl<T> Send for Shared<T> {}

impl<T> Shared<T> {
    fn get(self) -> *const T {
        self.0
    }
}

/// Copies bytes, on all threads if they are many.
///
/// # Safety
/// Both are valid for that many bytes, which do not overlap.
unsafe fn copy(pool: &Pool, from: *const u8, to: *mut u8, bytes: usize) {
    const CHUNK: usize = 1 << 18;
    if bytes <= CHUNK || pool.threads() == 1 {
        // SAFETY: by the caller's word.
        unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) };
        return;
    }
    let (from, to) = (Shared(from), Shared(to.cast_const()));
    pool.run(bytes.div_ceil(CHUNK), &|chunk| {
        let begin = chunk * CHUNK;
        let length = CHUNK.min(bytes - begin);
        // SAFETY: chunks of the ranges of the caller, each its own.
        unsafe {
            std::ptr::copy_nonoverlapping(from.get().add(begin), to.get().cast_mut().add(begin), length)
        };
    });
}
