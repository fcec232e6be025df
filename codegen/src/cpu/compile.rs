//! The driver: from a verified module to a program.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hlo::Module;
use hlo_interp::cancel;

use super::alike;
use super::llvm::{self, Level, Target, new_context};
use super::loops;
use super::unit::Unit;
use crate::CompileError;
use crate::buffers::Assigned;
use crate::compilation::Compilation;
use crate::front;
use crate::kernel::{Kernel, Request};
use crate::passes::{Pass, Pipeline, Steps};
use crate::plan::lower::Lowered;
use crate::program::Program;

/// How to compile.
#[derive(Clone, Debug)]
pub struct Options {
    /// How much to optimize, 0 to 3: which passes run ([`Pipeline::cpu`]) and what LLVM does ([`Level`]).
    pub opt_level: u8,
    /// Threads to compile on; 0: as many as there are cores.
    pub threads: usize,
    /// Whether the interpreter executes what is not compiled.
    pub fallback: bool,
    /// The processor ([`Target::new`]).
    pub cpu: String,
    /// Its features, as changes ([`Target::new`]).
    pub features: String,
    /// Whether the module is verified after every pass.
    pub verify: bool,
}

impl Default for Options {
    fn default() -> Self {
        let verify = cfg!(debug_assertions);
        let (cpu, features) = ("native".to_owned(), String::new());
        Self { opt_level: 2, threads: 0, fallback: false, cpu, features, verify }
    }
}

impl From<llvm::Error> for CompileError {
    fn from(error: llvm::Error) -> Self {
        match error {
            llvm::Error::Unsupported(unsupported) => CompileError::Unsupported(unsupported),
            llvm::Error::Target(message) => CompileError::Target(message),
            llvm::Error::Llvm(_) => CompileError::Defect(error.to_string()),
        }
    }
}

/// Somebody who looks at what the compiler makes on its way. What is not wanted is not made.
pub trait Stages: Steps {
    /// The module that is lowered: fused and scheduled.
    fn lowered(&mut self, module: &Module, decisions: &Lowered) {
        let _ = (module, decisions);
    }

    /// Where everything lies.
    fn assigned(&mut self, module: &Module, assigned: &Assigned) {
        let _ = (module, assigned);
    }

    /// Whether texts of LLVM's are wanted: as emitted, optimized, assembled.
    fn wants_llvm(&self) -> [bool; 3] {
        [false; 3]
    }

    /// Unit `unit` as text, for those that are wanted.
    fn llvm(&mut self, unit: usize, texts: [Option<String>; 3]) {
        let _ = (unit, texts);
    }
}

impl Stages for () {}

/// A program, and how it came to be.
#[derive(Debug)]
pub struct Compiled {
    /// The program.
    pub program: Program,
    /// What it is for, such as `znver4, avx512`.
    pub target: String,
    /// The stages: name, when it began after the first, how long it took.
    pub times: Vec<(String, Duration, Duration)>,
}

/// A compilation on its way to a program.
#[derive(Debug)]
pub struct Emission {
    /// What can be kept, and be made into a program again.
    pub compilation: Compilation,
    /// What it is for, such as `znver4, avx512`.
    pub target: String,
    clock: Clock,
}

impl Emission {
    /// The program. `verify`: its buffers are checked.
    pub fn assemble(self, verify: bool, stages: &mut dyn Stages) -> Result<Compiled, CompileError> {
        let Emission { compilation, target, mut clock } = self;
        let program = compilation.assemble(verify, &mut |module, assigned| {
            stages.assigned(module, assigned);
            clock.lap("buffers");
        })?;
        clock.lap("plan");
        Ok(Compiled { program, target, times: clock.laps })
    }
}

/// Compiles a verified module.
pub fn compile(module: &Module, options: &Options) -> Result<Compiled, CompileError> {
    compile_watched(module, options, &Pipeline::cpu(options.opt_level), &mut ())
}

/// Compiles a verified module as far as it can be kept.
pub fn emission(module: &Module, options: &Options) -> Result<Emission, CompileError> {
    emission_watched(module, options, &Pipeline::cpu(options.opt_level), &mut ())
}

/// The same with other passes, telling of every stage. The passes have to end with [`crate::fusion`]'s, for what is not in a fusion is refused.
pub fn compile_watched(
    module: &Module,
    options: &Options,
    pipeline: &Pipeline,
    stages: &mut dyn Stages,
) -> Result<Compiled, CompileError> {
    emission_watched(module, options, pipeline, stages)?.assemble(options.verify, stages)
}

fn emission_watched(
    module: &Module,
    options: &Options,
    pipeline: &Pipeline,
    stages: &mut dyn Stages,
) -> Result<Emission, CompileError> {
    let mut clock = Clock::default();
    let target = Target::new(&options.cpu, &options.features, level(options.opt_level))?;
    clock.lap("target");
    let mut forward = Forward(stages);
    let (module, run_time_sizes) =
        front::fused_and_scheduled(module, pipeline, &mut forward, &mut |name| clock.lap(name))?;
    // From here on no instruction gets another reader: a sort computes only what its readers take.
    let compilation = Compilation::new(module, run_time_sizes, options.fallback)?;
    stages.lowered(compilation.module(), compilation.lowered());
    clock.lap("lowering");
    let (kernels, objects) = emit(compilation.module(), compilation.lowered(), &target, options, stages)?;
    let compilation = compilation.with_kernels(kernels, objects)?;
    clock.lap("llvm");
    Ok(Emission { compilation, target: target.describe(), clock })
}

/// What LLVM does at a level of ours.
pub fn level(opt_level: u8) -> Level {
    Level::ALL[usize::from(opt_level).min(Level::ALL.len() - 1)]
}

#[derive(Debug, Default)]
struct Clock {
    start: Option<Instant>,
    last: Duration,
    laps: Vec<(String, Duration, Duration)>,
}

impl Clock {
    /// What was done since the last call (or the first) is this stage. Compilation ends here if it was cancelled.
    fn lap(&mut self, name: &str) {
        cancel::poll();
        let now = self.start.get_or_insert_with(Instant::now).elapsed();
        self.laps.push((name.to_owned(), self.last, now - self.last));
        self.last = now;
    }
}

/// Passes on what passes tell.
struct Forward<'a>(&'a mut dyn Stages);

impl Steps for Forward<'_> {
    fn before(&mut self, step: usize, pass: &dyn Pass, module: &Module) {
        self.0.before(step, pass, module);
    }

    fn after(&mut self, step: usize, pass: &dyn Pass, module: &Module, applications: u64) {
        self.0.after(step, pass, module, applications);
    }
}

/// What a unit came to.
struct Emitted {
    /// Kernels and the places of their requests; without those that are not supported, if the interpreter is there for them.
    kernels: Vec<(usize, Kernel)>,
    object: Option<Vec<u8>>,
    texts: [Option<String>; 3],
}

/// Kernels by request, and object code.
type Made = (Vec<Option<Kernel>>, Vec<Arc<[u8]>>);

/// Makes all kernels: in the order of the requests, and the object code of all. What several ask for is made once. Where the interpreter is there for what is not supported, such kernels are
/// `None`.
fn emit(
    module: &Module,
    lowered: &Lowered,
    target: &Target,
    options: &Options,
    stages: &mut dyn Stages,
) -> Result<Made, CompileError> {
    let requests = &lowered.requests;
    if requests.is_empty() {
        return Ok((Vec::new(), Vec::new()));
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = if options.threads == 0 { cores } else { options.threads.min(cores) };
    let firsts = alike::firsts(module, requests);
    let distinct: Vec<usize> = firsts.iter().enumerate().filter(|(i, f)| i == *f).map(|(i, _)| i).collect();
    let units = split(module, requests, &distinct, threads);
    let wants = stages.wants_llvm();
    let emitted = llvm::workers::run(units.len(), &|unit| {
        emit_unit(module, requests, &units[unit], target, wants, options.fallback)
    });
    let mut kernels: Vec<Option<Kernel>> = requests.iter().map(|_| None).collect();
    let mut objects = Vec::new();
    for (number, unit) in emitted.into_iter().enumerate() {
        let unit = match unit {
            Ok(unit) => unit?,
            // LLVM gave up: it may find its way where it looks less far.
            Err(error) if target.level() > Level::O0 => {
                let target = target.at(Level::O0);
                let again = |_| emit_unit(module, requests, &units[number], &target, wants, options.fallback);
                let again = llvm::workers::run(1, &again).pop();
                again.ok_or(error)???
            }
            Err(error) => return Err(error.into()),
        };
        for (place, kernel) in unit.kernels {
            kernels[place] = Some(kernel);
        }
        objects.extend(unit.object.map(Arc::from));
        stages.llvm(number, unit.texts);
    }
    for (place, &first) in firsts.iter().enumerate().filter(|(place, first)| place != *first) {
        let name = module.instr(loops::subject(module, requests[place])).name.to_string();
        kernels[place] = kernels[first].clone().map(|kernel| Kernel { name, ..kernel });
    }
    Ok((kernels, objects))
}

/// About the most instructions of a unit: what LLVM holds of one is many times its text, and is given back after it.
const MAX_UNIT: usize = 10_000;

/// Some of the requests by unit: at least one for each thread, of about the same number of instructions.
fn split(module: &Module, requests: &[Request], some: &[usize], threads: usize) -> Vec<Vec<usize>> {
    let mut by_weight: Vec<(usize, usize)> = some.iter().map(|&i| (weight(module, requests[i]), i)).collect();
    by_weight.sort_by_key(|&(weight, i)| (std::cmp::Reverse(weight), i));
    let total: usize = by_weight.iter().map(|&(weight, _)| weight).sum();
    let count = (total / MAX_UNIT).max(threads).min(some.len());
    let mut units: Vec<(usize, Vec<usize>)> = vec![(0, Vec::new()); count];
    for (weight, i) in by_weight {
        let least = units.iter_mut().min_by_key(|(sum, _)| *sum).expect("invariant: there is a unit");
        least.0 += weight;
        least.1.push(i);
    }
    units
        .into_iter()
        .map(|(_, mut unit)| {
            unit.sort_unstable();
            unit
        })
        .collect()
}

/// About how much there is to compile.
fn weight(module: &Module, request: Request) -> usize {
    let computation = match request {
        Request::Fusion(id) | Request::Epilogue { fusion: id, .. } => {
            module.instr(id).attrs.computation(hlo::AttrKey::Calls)
        }
        Request::Loop(id) => module.instr(id).attrs.computation(hlo::AttrKey::Body),
        Request::Map(computation) => Some(computation),
    };
    4 + computation.map_or(0, |c| module.computation(c).len())
}

fn emit_unit(
    module: &Module,
    requests: &[Request],
    places: &[usize],
    target: &Target,
    wants: [bool; 3],
    fallback: bool,
) -> Result<Emitted, CompileError> {
    let context = new_context();
    let llvm = context.create_module(&module.name);
    target.prepare(&llvm)?;
    let builder = context.create_builder();
    let unit = Unit { context: &context, module: &llvm, builder: &builder, target, lines: None };
    let mut kernels = Vec::with_capacity(places.len());
    for &place in places {
        cancel::poll();
        match unit.emit(module, requests[place], &format!("k{place}")) {
            Ok(kernel) => kernels.push((place, kernel)),
            Err(llvm::Error::Unsupported(_)) if fallback => {}
            Err(error) => return Err(error.into()),
        }
    }
    if kernels.len() < places.len() {
        // What is not supported may have left half of a function: once more without it.
        let places: Vec<usize> = kernels.iter().map(|k| k.0).collect();
        if places.is_empty() {
            return Ok(Emitted { kernels, object: None, texts: [None, None, None] });
        }
        return emit_unit(module, requests, &places, target, wants, false);
    }
    let text = || llvm.print_to_string().to_string();
    let emitted = wants[0].then(text);
    cancel::poll();
    target.optimize(&llvm)?;
    cancel::poll();
    let optimized = wants[1].then(text);
    let assembly = if wants[2] { Some(target.assembly(&llvm)?) } else { None };
    let object = Some(target.object(&llvm)?);
    Ok(Emitted { kernels, object, texts: [emitted, optimized, assembly] })
}
