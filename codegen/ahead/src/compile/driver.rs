//! The driver of an object: its launch plan as code.
//!
//! ```text
//! i32 ENTRY_run(void *const *arguments, void *const *results, void *temporaries, const options *)
//! ```
//!
//! checks its pointers, then executes the steps of the plan in order. Before each call it fills an array of
//! argument pointers.
//!
//! **Invariants:** a step reads and writes the same slices as in [`hlo_codegen::runtime::executable`]. The
//! driver allocates no memory. It runs on the caller's thread; only chunks of kernels run on the thread pool.

use hlo::InstrId;
use inkwell::basic_block::BasicBlock;
use inkwell::values::FunctionValue;
use rustc_hash::FxHashMap;

use super::{ABI_VERSION, ALIGNMENT, Aliasing, Object, Options, Step};
use crate::calls::{MISALIGNED, MISSING};
use hlo_codegen::CompileError;
use hlo_codegen::kernel::{Kernel, Phase, Progress};
use hlo_codegen::plan::{Action, Plan, Rotation};
use hlo_codegen::program::Program;
use hlo_codegen::runtime::executable::{CHUNKS_PER_THREAD, chunks};
use hlo_codegen::runtime::raw::bytes_of;
use hlo_cpu::Unit;
use hlo_llvm::{Data, Emit, Error, IntPredicate, Prim, Result, Target, Value};
use hlo_opt::buffers::{Allocation, AllocationKind, Slice};

/// Offsets in the options of a run.
mod run_options {
    pub(super) const POOL: u64 = 8;
    pub(super) const COUNTERS: u64 = 16;
}

/// Offsets in a thread pool.
mod pool {
    pub(super) const THREADS: u64 = 0;
    pub(super) const RUN: u64 = 8;
    pub(super) const CONTEXT: u64 = 16;
}

/// Emits the driver, and fills in what it says of `object`: steps, library calls.
pub(super) fn emit<'ctx>(
    unit: &Unit<'_, 'ctx>,
    data: Data<'_, 'ctx>,
    program: Program,
    library_calls: &[InstrId],
    description: &[u8],
    options: &Options,
    object: &mut Object,
) -> std::result::Result<(), CompileError> {
    let mut constants = Vec::with_capacity(program.constants.len());
    for (n, literal) in program.constants.iter().enumerate() {
        let array = literal.as_array();
        let array = array.ok_or_else(|| CompileError::Defect("a constant that is no array".to_owned()))?;
        let bytes = bytes_of(&array.buffer);
        constants.push(data.bytes(&format!("{}.constant.{n}", options.entry), bytes, ALIGNMENT as u32));
    }
    let launch = launch(unit, data, &options.entry)?;
    let function = data.function(&format!("{}_run", options.entry), &[Prim::Ptr; 4], true, true);
    let (e, parameters) = Emit::body(data, unit.builder, unit.target, function);
    let [arguments, results, temporaries, run] = parameters[..] else {
        return Err(CompileError::Defect("an entry point has four parameters".to_owned()));
    };
    let sizes = RowSizes::of(&program.plan);
    let stack_row = |n: usize| -> Result<Value<'ctx>> { Ok(e.stack(Prim::Ptr, n.max(1) as u32)?.into()) };
    let mut driver = Driver {
        e,
        data,
        target: unit.target,
        kernels: &program.kernels,
        allocations: &program.buffers.allocations,
        bases: Vec::new(),
        row: stack_row(sizes.arguments)?,
        epilogue_row: stack_row(sizes.epilogue)?,
        region_row: stack_row(sizes.regions)?,
        launch,
        pool: data.null(),
        counters: None,
        library: None,
        numbers: library_calls.iter().zip(0..).map(|(&id, n)| (id, n)).collect(),
        object,
    };
    driver.open(arguments, results, temporaries, run, &constants, options)?;
    if !library_calls.is_empty() {
        driver.prepare(description, &options.entry)?;
    }
    driver.plan(&program.plan)?;
    driver.copy_results(results, &program.buffers.results)?;
    driver.give(e.i32(0))?;
    Ok(())
}

/// The most pointers that a call takes.
#[derive(Default)]
struct RowSizes {
    arguments: usize,
    epilogue: usize,
    regions: usize,
}

impl RowSizes {
    fn of(plan: &Plan) -> Self {
        let mut sizes = Self::default();
        sizes.add(plan);
        sizes
    }

    fn add(&mut self, plan: &Plan) {
        for step in &plan.steps {
            match &step.action {
                Action::Kernel { arguments, .. } => self.arguments = self.arguments.max(arguments.len()),
                Action::Library { arguments, regions, epilogue, .. } => {
                    self.arguments = self.arguments.max(arguments.len());
                    self.regions = self.regions.max(regions.len());
                    self.epilogue = self.epilogue.max(epilogue.as_ref().map_or(0, |e| e.1.len()));
                }
                Action::While { rotations } => {
                    for Rotation { condition, body, finish, .. } in rotations {
                        [condition, body, finish].into_iter().for_each(|plan| self.add(plan));
                    }
                }
                Action::Conditional { branches, .. } => branches.iter().for_each(|plan| self.add(plan)),
                Action::Copy { .. } | Action::Interpret { .. } => {}
            }
        }
    }
}

struct Driver<'a, 'ctx> {
    e: Emit<'a, 'ctx>,
    data: Data<'a, 'ctx>,
    target: &'a Target,
    kernels: &'a [Kernel],
    allocations: &'a [Allocation],
    /// The address of each allocation.
    bases: Vec<Value<'ctx>>,
    /// Room for the pointers of a call, of its epilogue, and of the kernels that it calls.
    row: Value<'ctx>,
    epilogue_row: Value<'ctx>,
    region_row: Value<'ctx>,
    launch: FunctionValue<'ctx>,
    pool: Value<'ctx>,
    /// Where cycles are counted; `None`: nowhere.
    counters: Option<Value<'ctx>>,
    /// What the run-time library knows the program by.
    library: Option<Value<'ctx>>,
    /// The instructions that it executes, by number.
    numbers: FxHashMap<InstrId, u64>,
    object: &'a mut Object,
}

impl<'ctx> Driver<'_, 'ctx> {
    /// Checks pointers, and says where allocations begin.
    fn open(
        &mut self,
        arguments: Value<'ctx>,
        results: Value<'ctx>,
        temporaries: Value<'ctx>,
        run: Value<'ctx>,
        constants: &[Value<'ctx>],
        options: &Options,
    ) -> Result<()> {
        let e = self.e;
        let zero = e.i64(0);
        // The bits of all addresses, and whether any is none.
        let (mut bits, mut none) = (zero, e.int(Prim::I1, 0));
        let mut checked = |address: Value<'ctx>| -> Result<()> {
            let number = e.distance(address, self.data.null())?;
            none = e.or(none, e.icmp(IntPredicate::EQ, number, zero)?)?;
            bits = e.or(bits, number)?;
            Ok(())
        };
        let mut temporary = 0;
        for allocation in self.allocations {
            let base = match allocation.kind {
                AllocationKind::Parameter { leaf, .. } => {
                    let base = e.load(Prim::Ptr, e.address_at(arguments, 8 * u64::from(leaf))?, 8)?;
                    if allocation.bytes > 0 {
                        checked(base)?;
                    }
                    base
                }
                AllocationKind::Result { leaf } => {
                    let base = e.load(Prim::Ptr, e.address_at(results, 8 * u64::from(leaf))?, 8)?;
                    if allocation.bytes > 0 {
                        checked(base)?;
                    }
                    base
                }
                AllocationKind::Constant { index } => {
                    let constant = constants.get(index as usize).copied();
                    constant.ok_or_else(|| Error::Llvm("a constant that there is not".to_owned()))?
                }
                AllocationKind::Arena | AllocationKind::Frame => {
                    let base = e.address_at(temporaries, temporary)?;
                    temporary += allocation.bytes.next_multiple_of(ALIGNMENT);
                    base
                }
            };
            self.bases.push(base);
        }
        if temporary > 0 {
            checked(temporaries)?;
        }
        self.give_if(none, e.i32(MISSING))?;
        let low = e.and(bits, e.i64(ALIGNMENT.cast_signed() - 1))?;
        self.give_if(e.icmp(IntPredicate::NE, low, zero)?, e.i32(MISALIGNED))?;
        let null = self.data.null();
        let given = e.icmp(IntPredicate::NE, run, null)?;
        let field = |offset| -> Result<Value<'ctx>> {
            let there = || Ok(vec![e.load(Prim::Ptr, e.address_at(run, offset)?, 8)?]);
            Ok(e.if_else(given, there, || Ok(vec![null]))?[0])
        };
        self.pool = field(run_options::POOL)?;
        if options.profile {
            self.counters = Some(field(run_options::COUNTERS)?);
        }
        Ok(())
    }

    /// Ends the run with a status where an `i1` is set.
    fn give_if(&self, condition: Value<'ctx>, status: Value<'ctx>) -> Result<()> {
        let e = self.e;
        let (leave, go_on) = (e.block("leave"), e.block("on"));
        e.builder.build_conditional_branch(e.scalar_int(condition)?, leave, go_on)?;
        e.builder.position_at_end(leave);
        self.give(status)?;
        e.builder.position_at_end(go_on);
        Ok(())
    }

    fn give(&self, status: Value<'ctx>) -> Result<()> {
        self.e.builder.build_return(Some(&status))?;
        Ok(())
    }

    /// Ends the run with a status of the library, if it is not 0.
    fn give_failed(&self, status: Value<'ctx>) -> Result<()> {
        self.give_if(self.e.icmp(IntPredicate::NE, status, self.e.i32(0))?, status)
    }

    /// Has the library make its operations, once a process.
    fn prepare(&mut self, description: &[u8], entry: &str) -> Result<()> {
        let e = self.e;
        let text = self.data.bytes(&format!("{entry}.library"), description, 8);
        let fields = [
            self.data.number(ABI_VERSION),
            self.data.null(),
            text,
            self.data.number(description.len() as u64),
        ];
        let model = self.data.variable(&format!("{entry}.model"), &fields);
        self.give_failed(e.external("hlo_ahead_prepare", Prim::I32, &[model])?)?;
        self.library = Some(model);
        Ok(())
    }

    fn at(&self, slice: Slice) -> Result<Value<'ctx>> {
        let base = self.bases.get(slice.allocation as usize).copied();
        self.e.address_at(base.ok_or_else(|| Error::Llvm(format!("{slice:?} is nowhere")))?, slice.offset)
    }

    fn fill(&self, row: Value<'ctx>, slices: &[Slice]) -> Result<()> {
        for (n, &slice) in (0..).zip(slices) {
            self.e.store(self.at(slice)?, self.e.address_at(row, 8 * n)?, 8)?;
        }
        Ok(())
    }

    fn kernel(&self, kernel: usize) -> Result<&Kernel> {
        self.kernels.get(kernel).ok_or_else(|| Error::Llvm(format!("there is no kernel {kernel}")))
    }

    fn phase(&self, phase: &Phase) -> Result<FunctionValue<'ctx>> {
        let found = self.e.module.get_function(&phase.symbol);
        found.ok_or_else(|| Error::Llvm(format!("nothing defines the kernel `{}`", phase.symbol)))
    }

    /// The function of a kernel that has one phase, as regions and epilogues do.
    fn only_phase(&self, kernel: usize) -> Result<Value<'ctx>> {
        match &self.kernel(kernel)?.phases[..] {
            [phase] => Ok(self.e.function_address(self.phase(phase)?)),
            [] | [_, ..] => Err(Error::Llvm("an applied kernel of several phases".to_owned())),
        }
    }

    fn plan(&mut self, plan: &Plan) -> Result<()> {
        for step in &plan.steps {
            let number = self.object.steps.len() as u64;
            let kind = match &step.action {
                Action::Kernel { .. } => "kernel",
                Action::Library { .. } => "library",
                Action::Copy { .. } => "copy",
                Action::While { .. } => "while",
                Action::Conditional { .. } => "conditional",
                Action::Interpret { .. } => "interpreter",
            };
            self.object.steps.push(Step { name: step.name.clone(), kind });
            let start = self.cycles()?;
            let instr = step.executes.as_ref().map(|executed| executed.instr);
            self.action(&step.name, instr, &step.action)?;
            self.count(number, start)?;
        }
        Ok(())
    }

    /// The cycles of now, where they are counted.
    fn cycles(&self) -> Result<Option<Value<'ctx>>> {
        let name = if self.target.is_x86() { "llvm.readcyclecounter" } else { "llvm.readsteadycounter" };
        self.counters.map(|_| self.e.intrinsic(name, &[], &[])).transpose()
    }

    /// Adds to the cycles of a step those since `start`.
    fn count(&self, number: u64, start: Option<Value<'ctx>>) -> Result<()> {
        let (Some(counters), Some(start), Some(now)) = (self.counters, start, self.cycles()?) else {
            return Ok(());
        };
        let e = self.e;
        e.if_then(e.icmp(IntPredicate::NE, counters, self.data.null())?, || {
            let counter = e.address_at(counters, 8 * number)?;
            let sum = e.add(e.load(Prim::I64, counter, 8)?, e.sub(now, start)?)?;
            e.store(sum, counter, 8).map(|_| ())
        })
    }

    fn action(&mut self, name: &str, instr: Option<InstrId>, action: &Action) -> Result<()> {
        let e = self.e;
        match action {
            Action::Kernel { kernel, arguments } => self.launch(*kernel, arguments),
            Action::Library { arguments, scratch, regions, epilogue, .. } => {
                let number = instr.and_then(|id| self.numbers.get(&id)).copied();
                let number =
                    number.ok_or_else(|| Error::Llvm(format!("`{name}` is no call of the library")))?;
                let said = format!("{name} ({number})");
                if !self.object.library_calls.contains(&said) {
                    self.object.library_calls.push(said);
                }
                let model = self.library.ok_or_else(|| Error::Llvm("no model of the library".to_owned()))?;
                self.fill(self.row, arguments)?;
                for (n, &region) in (0..).zip(regions) {
                    e.store(self.only_phase(region)?, e.address_at(self.region_row, 8 * n)?, 8)?;
                }
                let null = self.data.null();
                let (function, row) = match epilogue {
                    Some((kernel, arguments)) => {
                        self.fill(self.epilogue_row, arguments)?;
                        (self.only_phase(*kernel)?, self.epilogue_row)
                    }
                    None => (null, null),
                };
                let scratch = scratch.map_or(Ok(null), |slice| self.at(slice))?;
                let count = |n: usize| self.data.number(n as u64);
                let given = [
                    model,
                    self.data.number(number),
                    self.row,
                    count(arguments.len()),
                    scratch,
                    self.region_row,
                    count(regions.len()),
                    function,
                    row,
                    self.pool,
                ];
                self.give_failed(e.external("hlo_ahead_call", Prim::I32, &given)?)
            }
            Action::Copy { from, to } => {
                e.copy_bytes(self.at(*to)?, self.at(*from)?, 1, self.data.number(to.bytes))
            }
            Action::While { rotations } => self.repeat(rotations),
            Action::Conditional { selector, is_predicate, branches } => {
                self.choose(*selector, *is_predicate, branches)
            }
            Action::Interpret { .. } => Err(Error::Llvm(format!("`{name}` is the interpreter's"))),
        }
    }

    fn launch(&self, kernel: usize, arguments: &[Slice]) -> Result<()> {
        let e = self.e;
        let kernel = self.kernel(kernel)?;
        self.fill(self.row, arguments)?;
        for phase in &kernel.phases {
            let function = self.phase(phase)?;
            let (zero, units) = (e.i64(0), self.data.number(phase.units));
            if kernel.iterates {
                let scratch = arguments.last().copied().unwrap_or_default();
                let progress = self.at(scratch)?;
                let last = e.i64(i64::MAX);
                e.do_while(&[zero], |begin| {
                    e.call(function, &[self.row, begin[0], last])?;
                    let field = |offset: usize| e.load(Prim::I64, e.address_at(progress, offset as u64)?, 8);
                    let goes_on = field(std::mem::offset_of!(Progress, goes_on))?;
                    let done = field(std::mem::offset_of!(Progress, iterations))?;
                    Ok((e.icmp(IntPredicate::NE, goes_on, zero)?, vec![done]))
                })?;
            } else if phase.units > 0 {
                match chunks(phase) {
                    1 => e.call(function, &[self.row, zero, units])?,
                    chunks => {
                        let grain = self.data.number(phase.grain.max(1));
                        let function = e.function_address(function);
                        let chunks = self.data.number(chunks);
                        e.call(self.launch, &[self.pool, function, self.row, units, grain, chunks])?
                    }
                };
            }
        }
        Ok(())
    }

    fn repeat(&mut self, rotations: &[Rotation]) -> Result<()> {
        let e = self.e;
        let exit = e.block("ended");
        let heads: Vec<BasicBlock<'ctx>> = rotations.iter().map(|_| e.block("rotation")).collect();
        let [first, ..] = heads[..] else { return Err(Error::Llvm("a loop without a rotation".to_owned())) };
        e.builder.build_unconditional_branch(first)?;
        for (n, rotation) in rotations.iter().enumerate() {
            e.builder.position_at_end(heads[n]);
            self.plan(&rotation.condition)?;
            let predicate = e.load(Prim::I8, self.at(rotation.predicate)?, 1)?;
            let more = e.icmp(IntPredicate::NE, predicate, e.int(Prim::I8, 0))?;
            let (body, finish) = (e.block("body"), e.block("finish"));
            e.builder.build_conditional_branch(e.scalar_int(more)?, body, finish)?;
            e.builder.position_at_end(body);
            self.plan(&rotation.body)?;
            e.builder.build_unconditional_branch(heads[(n + 1) % heads.len()])?;
            e.builder.position_at_end(finish);
            self.plan(&rotation.finish)?;
            e.builder.build_unconditional_branch(exit)?;
        }
        e.builder.position_at_end(exit);
        Ok(())
    }

    fn choose(&mut self, selector: Slice, is_predicate: bool, branches: &[Plan]) -> Result<()> {
        let e = self.e;
        let address = self.at(selector)?;
        let number = match is_predicate {
            // True is the first branch.
            true => {
                let set = e.icmp(IntPredicate::EQ, e.load(Prim::I8, address, 1)?, e.int(Prim::I8, 0))?;
                e.zext(set, Prim::I32)?
            }
            false => e.load(Prim::I32, address, 4)?,
        };
        let exit = e.block("chosen");
        let blocks: Vec<BasicBlock<'ctx>> = branches.iter().map(|_| e.block("branch")).collect();
        let Some((&last, others)) = blocks.split_last() else {
            return Err(Error::Llvm("a conditional without branches".to_owned()));
        };
        let mut cases = Vec::with_capacity(others.len());
        for (n, &block) in (0..).zip(others) {
            cases.push((e.scalar_int(e.i32(n))?, block));
        }
        e.builder.build_switch(e.scalar_int(number)?, last, &cases)?;
        for (block, branch) in blocks.into_iter().zip(branches) {
            e.builder.position_at_end(block);
            self.plan(branch)?;
            e.builder.build_unconditional_branch(exit)?;
        }
        e.builder.position_at_end(exit);
        Ok(())
    }

    /// Copies results that lie elsewhere to where they are wanted.
    fn copy_results(&mut self, results: Value<'ctx>, slices: &[Slice]) -> Result<()> {
        let e = self.e;
        for (leaf, &slice) in slices.iter().enumerate() {
            let own = AllocationKind::Result { leaf: leaf as u32 };
            let allocation = &self.allocations[slice.allocation as usize];
            let there = allocation.kind == own && slice.offset == 0;
            let aliasing = self.object.results.get(leaf).map(|result| result.aliasing);
            if there || aliasing != Some(Aliasing::Own) || slice.bytes == 0 {
                continue;
            }
            let to = e.load(Prim::Ptr, e.address_at(results, 8 * leaf as u64)?, 8)?;
            self.give_if(e.icmp(IntPredicate::EQ, to, self.data.null())?, e.i32(MISSING))?;
            e.copy_bytes(to, self.at(slice)?, 1, self.data.number(slice.bytes))?;
        }
        Ok(())
    }
}

/// The function that has the chunks of a kernel done, by the threads of a pool if there is one:
/// `launch(pool, function, row, units, grain, chunks)`.
fn launch<'ctx>(unit: &Unit<'_, 'ctx>, data: Data<'_, 'ctx>, entry: &str) -> Result<FunctionValue<'ctx>> {
    let chunk = chunk(unit, data, entry)?;
    let parameters = [Prim::Ptr, Prim::Ptr, Prim::Ptr, Prim::I64, Prim::I64, Prim::I64];
    let function = data.function(&format!("{entry}.launch"), &parameters, false, false);
    data.keep_apart(function);
    let (e, parameters) = Emit::body(data, unit.builder, unit.target, function);
    let [pool, kernel, row, units, grain, chunks] = parameters[..] else {
        return Err(Error::Llvm("a launch has six parameters".to_owned()));
    };
    let (pointer, number) = (Prim::Ptr.lane_type_in(data), Prim::I64.lane_type_in(data));
    let void = data.context.void_type();
    let of_kernel = void.fn_type(&[pointer, number, number], false);
    let none = e.icmp(IntPredicate::EQ, pool, data.null())?;
    let threads = e.if_else(
        none,
        || Ok(vec![e.i64(1)]),
        || Ok(vec![e.load(Prim::I64, e.address_at(pool, pool::THREADS)?, 8)?]),
    )?[0];
    let alone = e.icmp(IntPredicate::ULE, threads, e.i64(1))?;
    let call = |function: Value<'ctx>, ty, arguments: &[Value<'ctx>]| -> Result<()> {
        let arguments: Vec<_> = arguments.iter().map(|&a| a.into()).collect();
        e.builder.build_indirect_call(ty, e.pointer(function)?, &arguments, "")?;
        Ok(())
    };
    e.if_else(
        alone,
        || call(kernel, of_kernel, &[row, e.i64(0), units]).map(|()| Vec::new()),
        || {
            let least = |a, b| -> Result<Value<'ctx>> { e.select(e.icmp(IntPredicate::ULT, a, b)?, a, b) };
            let most = |a, b| -> Result<Value<'ctx>> { e.select(e.icmp(IntPredicate::UGT, a, b)?, a, b) };
            let grains = e.udiv(e.add(units, e.sub(grain, e.i64(1))?)?, grain)?;
            let limit = e.mul(threads, e.i64(CHUNKS_PER_THREAD.cast_signed()))?;
            let chunks = least(most(chunks, least(threads, grains)?)?, limit)?;
            let job: Value<'ctx> = e.stack(Prim::I64, 6)?.into();
            for (n, field) in (0..).zip([kernel, row, units, grain, grains, chunks]) {
                e.store(field, e.address_at(job, 8 * n)?, 8)?;
            }
            let run = e.load(Prim::Ptr, e.address_at(pool, pool::RUN)?, 8)?;
            let context = e.load(Prim::Ptr, e.address_at(pool, pool::CONTEXT)?, 8)?;
            let of_run = void.fn_type(&[pointer, number, pointer, pointer], false);
            call(run, of_run, &[context, chunks, e.function_address(chunk), job]).map(|()| Vec::new())
        },
    )?;
    e.return_void()?;
    Ok(function)
}

/// One chunk of a job that [`launch`] made: `chunk(job, number)`.
fn chunk<'ctx>(unit: &Unit<'_, 'ctx>, data: Data<'_, 'ctx>, entry: &str) -> Result<FunctionValue<'ctx>> {
    let function = data.function(&format!("{entry}.chunk"), &[Prim::Ptr, Prim::I64], false, false);
    data.keep_apart(function);
    let (e, parameters) = Emit::body(data, unit.builder, unit.target, function);
    let [job, number] = parameters[..] else {
        return Err(Error::Llvm("a chunk has two parameters".to_owned()));
    };
    let field = |prim, n: u64| e.load(prim, e.address_at(job, 8 * n)?, 8);
    let (kernel, row) = (field(Prim::Ptr, 0)?, field(Prim::Ptr, 1)?);
    let (units, grain) = (field(Prim::I64, 2)?, field(Prim::I64, 3)?);
    let (grains, chunks) = (field(Prim::I64, 4)?, field(Prim::I64, 5)?);
    let at = |n| -> Result<Value<'ctx>> { e.mul(e.udiv(e.mul(grains, n)?, chunks)?, grain) };
    let begin = at(number)?;
    let end = at(e.add(number, e.i64(1))?)?;
    let end = e.select(e.icmp(IntPredicate::ULT, end, units)?, end, units)?;
    e.if_then(e.icmp(IntPredicate::ULT, begin, end)?, || {
        let (pointer, number) = (Prim::Ptr.lane_type_in(data), Prim::I64.lane_type_in(data));
        let ty = data.context.void_type().fn_type(&[pointer, number, number], false);
        e.builder.build_indirect_call(ty, e.pointer(kernel)?, &[row.into(), begin.into(), end.into()], "")?;
        Ok(())
    })?;
    e.return_void()?;
    Ok(function)
}
