//! The LLVM back end for CPUs: kernels as object code.

use std::sync::Arc;

use hlo::Module;
use hlo_codegen::CompileError;
use hlo_codegen::compilation::Compilation;
use hlo_codegen::compile::{self, Backend, Compiled, DriverOptions, Emission, Stages};
use hlo_codegen::kernel::{Kernel, Request};
use hlo_codegen::program::Code;
use hlo_codegen::run_time_sizes::RunTimeSizes;
use hlo_library_base::configuration::Configuration;
use hlo_llvm::{self as llvm, Level, Target, new_context};
use hlo_opt::passes::Pipeline;
use hlo_threads::cancel;

use super::dedup;
use super::loops;
use super::unit::Unit;

/// Options of the compiler.
#[derive(Clone, Debug)]
pub struct Options {
    /// The optimization level, 0 to 3: which passes run ([`Pipeline::cpu`]) and what LLVM does ([`Level`]).
    pub opt_level: u8,
    /// The number of compilation threads; 0: one per core.
    pub threads: usize,
    /// Whether the interpreter executes what is not compiled.
    pub fallback: bool,
    /// The processor ([`Target::new`]).
    pub cpu: String,
    /// Its features, as changes ([`Target::new`]).
    pub features: String,
    /// Whether the module is verified after every pass.
    pub verify: bool,
    /// The configuration that is compiled for: which of the processor's instruction sets, and tuned for which
    /// microarchitecture.
    pub configuration: Configuration,
}

impl Default for Options {
    fn default() -> Self {
        let verify = cfg!(debug_assertions);
        let (cpu, features) = ("native".to_owned(), String::new());
        let configuration = Configuration::default();
        Self { opt_level: 2, threads: 0, fallback: false, cpu, features, verify, configuration }
    }
}

/// The back end for this machine, through LLVM.
#[derive(Debug)]
pub struct Llvm {
    target: Target,
    opt_level: u8,
    threads: usize,
}

impl Llvm {
    /// With these options. Errors: there is no such processor.
    pub fn new(options: &Options) -> Result<Self, CompileError> {
        let (cpu, features, level) = (&options.cpu, &options.features, level(options.opt_level));
        let target = options.configuration.with(|| Target::new(cpu, features, level))?;
        Ok(Self { target, opt_level: options.opt_level, threads: options.threads })
    }
}

impl Options {
    /// The driver's options.
    pub fn driver(&self) -> DriverOptions {
        DriverOptions { fallback: self.fallback, verify: self.verify, configuration: self.configuration }
    }
}

impl Backend for Llvm {
    type Compilation = Compilation;

    fn describe(&self) -> String {
        self.target.describe()
    }

    fn pipeline(&self) -> Pipeline {
        Pipeline::cpu(self.opt_level)
    }

    fn lower(
        &self,
        module: Module,
        run_time_sizes: Option<RunTimeSizes>,
        fallback: bool,
    ) -> Result<Compilation, CompileError> {
        Ok(Compilation::new(module, run_time_sizes, fallback)?)
    }

    fn emit(&self, lowered: Compilation, stages: &mut dyn Stages) -> Result<Compilation, CompileError> {
        let (kernels, objects) = emit(&lowered, self, stages)?;
        Ok(lowered.with_kernels(kernels, Code::Objects(objects))?)
    }
}

/// Compiles a verified module.
pub fn compile(module: &Module, options: &Options) -> Result<Compiled, CompileError> {
    compile_watched(module, options, &Pipeline::cpu(options.opt_level), &mut ())
}

/// Compiles a verified module, up to the form that can be stored.
pub fn emission(module: &Module, options: &Options) -> Result<Emission, CompileError> {
    let pipeline = Pipeline::cpu(options.opt_level);
    compile::emission(module, &Llvm::new(options)?, options.driver(), &pipeline, &mut ())
}

/// The same with another pipeline and an observer of every stage. The passes must end with those of
/// [`hlo_opt::fusion`], for what is not in a fusion is refused.
pub fn compile_watched(
    module: &Module,
    options: &Options,
    pipeline: &Pipeline,
    stages: &mut dyn Stages,
) -> Result<Compiled, CompileError> {
    compile::compile_watched(module, &Llvm::new(options)?, options.driver(), pipeline, stages)
}

/// LLVM's level for a level of ours.
pub fn level(opt_level: u8) -> Level {
    Level::ALL[usize::from(opt_level).min(Level::ALL.len() - 1)]
}

/// The code of a compilation unit.
struct Emitted {
    /// Kernels and the indices of their requests; without the unsupported ones, if the interpreter is the
    /// fallback for them.
    kernels: Vec<(usize, Kernel)>,
    object: Option<Vec<u8>>,
    texts: [Option<String>; 3],
}

/// Kernels by request, and object code.
type Made = (Vec<Option<Kernel>>, Vec<Arc<[u8]>>);

/// Makes all kernels, in the order of the requests, and all object code. Identical requests are compiled
/// once. With the interpreter as fallback, unsupported kernels are `None`.
fn emit(lowered: &Compilation, backend: &Llvm, stages: &mut dyn Stages) -> Result<Made, CompileError> {
    let (module, requests, target) = (lowered.module(), lowered.requests(), &backend.target);
    let fallback = lowered.falls_back();
    if requests.is_empty() {
        return Ok(Made::default());
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = if backend.threads == 0 { cores } else { backend.threads.min(cores) };
    let firsts = dedup::first_identical(module, requests);
    let distinct: Vec<usize> = firsts.iter().enumerate().filter(|(i, f)| i == *f).map(|(i, _)| i).collect();
    let units = split(module, requests, &distinct, threads);
    let wants = stages.wants_llvm();
    let emitted = llvm::workers::run(units.len(), &|unit| {
        emit_unit(module, requests, &units[unit], target, wants, fallback)
    });
    let mut kernels: Vec<Option<Kernel>> = requests.iter().map(|_| None).collect();
    let mut objects = Vec::new();
    for (number, unit) in emitted.into_iter().enumerate() {
        let unit = match unit {
            Ok(unit) => unit?,
            // LLVM gave up: a lower level may succeed.
            Err(error) if target.level() > Level::O0 => {
                let target = target.at(Level::O0);
                let again = |_| emit_unit(module, requests, &units[number], &target, wants, fallback);
                let again = llvm::workers::run(1, &again).pop();
                again.ok_or(error)???
            }
            Err(error) => return Err(error.into()),
        };
        for (index, kernel) in unit.kernels {
            kernels[index] = Some(kernel);
        }
        objects.extend(unit.object.map(Arc::from));
        stages.llvm(number, unit.texts);
    }
    for (index, &first) in firsts.iter().enumerate().filter(|(index, first)| index != *first) {
        let name = module.instr(loops::subject(module, requests[index])).name.to_string();
        kernels[index] = kernels[first].clone().map(|kernel| Kernel { name, ..kernel });
    }
    Ok((kernels, objects))
}

/// The approximate maximum number of instructions of a compilation unit: LLVM's memory for one is many times
/// its text, and is freed after it.
const MAX_UNIT_INSTRUCTIONS: usize = 10_000;

/// Splits some of the requests into compilation units: at least one per thread, of about equal numbers of
/// instructions.
fn split(module: &Module, requests: &[Request], some: &[usize], threads: usize) -> Vec<Vec<usize>> {
    let mut by_weight: Vec<(usize, usize)> = some.iter().map(|&i| (weight(module, requests[i]), i)).collect();
    by_weight.sort_by_key(|&(weight, i)| (std::cmp::Reverse(weight), i));
    let total: usize = by_weight.iter().map(|&(weight, _)| weight).sum();
    let count = (total / MAX_UNIT_INSTRUCTIONS).max(threads).min(some.len());
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

/// An estimate of the compile time of a request.
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
    indices: &[usize],
    target: &Target,
    wants: [bool; 3],
    fallback: bool,
) -> Result<Emitted, CompileError> {
    let context = new_context();
    let llvm = context.create_module(&module.name);
    target.prepare(&llvm)?;
    let builder = context.create_builder();
    let unit = Unit { context: &context, module: &llvm, builder: &builder, target, lines: None };
    let mut kernels = Vec::with_capacity(indices.len());
    for &index in indices {
        cancel::poll();
        match unit.emit(module, requests[index], &format!("k{index}")) {
            Ok(kernel) => kernels.push((index, kernel)),
            Err(llvm::Error::Unsupported(_)) if fallback => {}
            Err(error) => return Err(error.into()),
        }
    }
    if kernels.len() < indices.len() {
        // An unsupported request may have left half of a function: once more without it.
        let indices: Vec<usize> = kernels.iter().map(|k| k.0).collect();
        if indices.is_empty() {
            return Ok(Emitted { kernels, object: None, texts: [None, None, None] });
        }
        return emit_unit(module, requests, &indices, target, wants, false);
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
