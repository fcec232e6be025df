//! The back end for GPUs, through LLVM: kernels as PTX.

use std::sync::Arc;

use hlo::Module;
use hlo_codegen::CompileError;
use hlo_codegen::compile::{self, Backend, DriverOptions, Stages};
use hlo_codegen::run_time_sizes::RunTimeSizes;
use hlo_library_base::configuration::Configuration;
use hlo_llvm::{Level, Target, new_context, workers};
use hlo_opt::cost_model::CostModel;
use hlo_opt::passes::Pipeline;
use hlo_threads::cancel;
use rustc_hash::FxHashMap;

use crate::arch::Arch;
use crate::compilation::Compilation;
use crate::kernel::{Kernel, Stage};
use crate::kernels::{self, Unit};
use crate::lower::Lowering;

/// Options of the compiler.
#[derive(Clone, Debug)]
pub struct Options {
    /// The target.
    pub arch: Arch,
    /// The optimization level, 0 to 3: which passes run ([`Pipeline::gpu`]) and what LLVM does ([`Level`]).
    pub opt_level: u8,
    /// The number of compilation threads; 0: one per core.
    pub threads: usize,
    /// The strategy of contractions and convolutions.
    pub products: Products,
    /// Whether the module is verified after every pass.
    pub verify: bool,
    /// The configuration that is compiled for: of a processor, of which passes take the sizes.
    pub configuration: Configuration,
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
        Self {
            arch: Arch::default(),
            opt_level: 2,
            threads: 0,
            products: Products::default(),
            verify: cfg!(debug_assertions),
            configuration: Configuration::default(),
        }
    }
}

impl Options {
    /// The driver's options.
    pub fn driver(&self) -> DriverOptions {
        DriverOptions { fallback: false, verify: self.verify, configuration: self.configuration }
    }
}

/// The cost model of GPUs: fusion's constants were measured on CPUs; where a device differs it says so here.
pub static COST: CostModel = CostModel::CPU;

/// The back end for GPUs, through LLVM.
#[derive(Debug)]
pub struct Nvptx {
    target: Target,
    options: Options,
}

impl Nvptx {
    /// With these options.
    pub fn new(options: &Options) -> Result<Self, CompileError> {
        let level = Level::ALL[usize::from(options.opt_level).min(Level::ALL.len() - 1)];
        Ok(Self { target: Target::nvptx(options.arch.name(), level)?, options: options.clone() })
    }
}

impl Backend for Nvptx {
    type Compilation = Compilation;

    fn describe(&self) -> String {
        self.options.arch.to_string()
    }

    fn pipeline(&self) -> Pipeline {
        Pipeline::gpu(self.options.opt_level).with_cost(&COST)
    }

    /// There is no interpreter to fall back to: what is not supported is an error.
    fn lower(
        &self,
        module: Module,
        run_time_sizes: Option<RunTimeSizes>,
        _fallback: bool,
    ) -> Result<Compilation, CompileError> {
        Ok(Compilation::new(self.options.arch, module, run_time_sizes)?)
    }

    fn emit(
        &self,
        lowered: Compilation,
        stages: &mut dyn Stages<Compilation>,
    ) -> Result<Compilation, CompileError> {
        let (kernels, ptx, symbols) = emit(&lowered, self, stages)?;
        Ok(lowered.with_kernels(kernels, ptx, symbols))
    }
}

/// A compilation of this back end that is emitted but not assembled.
pub type Emission = compile::Emission<Compilation>;

/// Compiles a verified module, up to the form that can be stored.
pub fn emission(module: &Module, options: &Options) -> Result<Emission, CompileError> {
    let backend = Nvptx::new(options)?;
    compile::emission(module, &backend, options.driver(), &backend.pipeline(), &mut ())
}

/// Kernels by [`crate::lower::Lowered::kernels`], PTX texts, and the text of each symbol.
type Made = (Vec<Kernel>, Vec<Arc<str>>, FxHashMap<String, usize>);

fn emit(
    lowered: &Compilation,
    backend: &Nvptx,
    stages: &mut dyn Stages<Compilation>,
) -> Result<Made, CompileError> {
    let count = lowered.lowered().kernels.len();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = if backend.options.threads == 0 { cores } else { backend.options.threads.min(cores) };
    let units = threads.min(count);
    // Adjacent kernels are similar: each compilation unit takes some from all parts of the program.
    let of_unit = |unit: usize| (unit..count).step_by(units.max(1));
    let wants = stages.wants_llvm();
    let made = workers::run(units, &|unit| emit_unit(lowered, of_unit(unit), backend, wants));
    let mut kernels = vec![Kernel::default(); count];
    let mut texts = Vec::new();
    let mut symbols = FxHashMap::default();
    for (number, unit) in made.into_iter().enumerate() {
        let Emitted { kernels: unit, ptx, llvm } = unit??;
        for (place, kernel) in unit {
            for stage in &kernel.stages {
                if let Stage::Launch(launch) = stage {
                    symbols.insert(launch.symbol.clone(), texts.len());
                }
            }
            kernels[place] = kernel;
        }
        texts.push(ptx);
        stages.llvm(number, llvm);
    }
    Ok((kernels, texts, symbols))
}

/// The code of a compilation unit.
struct Emitted {
    /// Kernels with their indices.
    kernels: Vec<(usize, Kernel)>,
    ptx: Arc<str>,
    /// LLVM's texts, those that are wanted.
    llvm: [Option<String>; 3],
}

fn emit_unit(
    lowered: &Compilation,
    places: impl Iterator<Item = usize>,
    backend: &Nvptx,
    wants: [bool; 3],
) -> Result<Emitted, CompileError> {
    let (module, lowered) = (lowered.module(), lowered.lowered());
    let Nvptx { target, options } = backend;
    let context = new_context();
    let llvm = context.create_module(&module.name);
    target.prepare(&llvm)?;
    let builder = context.create_builder();
    let Options { arch, products, .. } = *options;
    let unit = Unit { context: &context, llvm: &llvm, builder: &builder, target, arch, products };
    let mut kernels = Vec::new();
    for place in places {
        cancel::poll();
        let id = lowered.kernels[place];
        let Some(&Lowering::Kernel(family)) = lowered.decisions.get(&id) else { continue };
        kernels.push((place, kernels::emit(&unit, module, id, family, &format!("k{place}"))?));
    }
    let text = || llvm.print_to_string().to_string();
    let emitted = wants[0].then(text);
    target.optimize(&llvm)?;
    cancel::poll();
    let optimized = wants[1].then(text);
    let ptx: Arc<str> = target.assembly(&llvm)?.into();
    let assembly = wants[2].then(|| ptx.to_string());
    Ok(Emitted { kernels, ptx, llvm: [emitted, optimized, assembly] })
}
