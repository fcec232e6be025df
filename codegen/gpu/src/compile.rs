//! The driver: from a verified module to PTX and launches.

use std::sync::Arc;

use hlo::Module;
use hlo_codegen::CompileError;
use hlo_codegen::front;
use hlo_llvm::{Level, Target, new_context, workers};
use hlo_opt::cost_model::CostModel;
use hlo_opt::passes::{Pipeline, Steps};
use hlo_threads::cancel;
use rustc_hash::FxHashMap;

use crate::arch::Arch;
use crate::compilation::Compilation;
use crate::kernel::{Kernel, Stage};
use crate::kernels::{self, Unit};
use crate::lower::{Lowered, Lowering};

/// Options of the compiler.
#[derive(Clone, Debug)]
pub struct Options {
    /// The target.
    pub arch: Arch,
    /// The optimization level, 0 to 3: which passes run ([`pipeline`]) and what LLVM does.
    pub opt_level: u8,
    /// The number of compilation threads; 0: one per core.
    pub threads: usize,
    /// The strategy of contractions and convolutions.
    pub products: Products,
}

/// The strategy of contractions and convolutions: for tests, and for tuning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Products {
    /// Whether tensor cores multiply `bf16` and `f16` and sum in `f32`, which they truncate where other
    /// instructions round to nearest.
    pub tensor_cores: bool,
    /// Columns of a block's tile; none, or a number that no tile has: by a cost estimate.
    pub tile: Option<i64>,
    /// Split-K: parts of the terms, each for a block of its own, up to as many as there are tiles; none: by a
    /// cost estimate.
    pub split: Option<i64>,
}

impl Default for Products {
    fn default() -> Self {
        Self { tensor_cores: true, tile: None, split: None }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self { arch: Arch::default(), opt_level: 2, threads: 0, products: Products::default() }
    }
}

/// The cost model of GPUs: fusion's constants were measured on CPUs; where a device differs it says so here.
pub static COST: CostModel = CostModel::CPU;

/// Whether modules are verified after every pass.
const VERIFY: bool = cfg!(debug_assertions);

/// The pipeline of passes before lowering.
pub fn pipeline(opt_level: u8) -> Pipeline {
    Pipeline::gpu(opt_level).with_cost(&COST)
}

/// Compiles a verified module.
pub fn compile(module: &Module, options: &Options) -> Result<Compilation, CompileError> {
    compile_watched(module, options, &pipeline(options.opt_level), &mut ())
}

/// The same with another pipeline and an observer of every pass.
pub fn compile_watched(
    module: &Module,
    options: &Options,
    pipeline: &Pipeline,
    steps: &mut dyn Steps,
) -> Result<Compilation, CompileError> {
    let level = Level::ALL[usize::from(options.opt_level).min(Level::ALL.len() - 1)];
    let target = Target::nvptx(options.arch.name(), level)?;
    let (module, run_time_sizes) =
        front::fused_and_scheduled(module, pipeline, VERIFY, steps, &mut |_| cancel::poll())?;
    let lowered = Lowered::new(&module)?;
    let (kernels, ptx, symbols) = emit(&module, &lowered, &target, options)?;
    Ok(Compilation { arch: options.arch, module, kernels, ptx, symbols, run_time_sizes })
}

/// Kernels by [`Lowered::kernels`], PTX texts, and the text of each symbol.
type Made = (Vec<Kernel>, Vec<Arc<str>>, FxHashMap<String, usize>);

fn emit(
    module: &Module,
    lowered: &Lowered,
    target: &Target,
    options: &Options,
) -> Result<Made, CompileError> {
    let count = lowered.kernels.len();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = if options.threads == 0 { cores } else { options.threads.min(cores) };
    let units = threads.min(count);
    // Adjacent kernels are similar: each compilation unit takes some from all parts of the program.
    let of_unit = |unit: usize| (unit..count).step_by(units.max(1));
    let made = workers::run(units, &|unit| emit_unit(module, lowered, of_unit(unit), target, options));
    let mut kernels = vec![Kernel::default(); count];
    let mut texts = Vec::new();
    let mut symbols = FxHashMap::default();
    for unit in made {
        let (unit, text) = unit??;
        for (place, kernel) in unit {
            for stage in &kernel.stages {
                if let Stage::Launch(launch) = stage {
                    symbols.insert(launch.symbol.clone(), texts.len());
                }
            }
            kernels[place] = kernel;
        }
        texts.push(text);
    }
    Ok((kernels, texts, symbols))
}

/// Some of the kernels with their indices, and their PTX.
type Emitted = (Vec<(usize, Kernel)>, Arc<str>);

fn emit_unit(
    module: &Module,
    lowered: &Lowered,
    places: impl Iterator<Item = usize>,
    target: &Target,
    options: &Options,
) -> Result<Emitted, CompileError> {
    let context = new_context();
    let llvm = context.create_module(&module.name);
    target.prepare(&llvm)?;
    let builder = context.create_builder();
    let Options { arch, products, .. } = *options;
    let unit = Unit { context: &context, llvm: &llvm, builder: &builder, target, arch, products };
    let mut made = Vec::new();
    for place in places {
        cancel::poll();
        let id = lowered.kernels[place];
        let Some(&Lowering::Kernel(family)) = lowered.decisions.get(&id) else { continue };
        made.push((place, kernels::emit(&unit, module, id, family, &format!("k{place}"))?));
    }
    target.optimize(&llvm)?;
    cancel::poll();
    Ok((made, target.assembly(&llvm)?.into()))
}
