//! The driver: from a verified module to a program, whatever the back end.
//!
//! ```text
//! Module ──passes, fusion, schedule──> ──decide──> requests ──Backend::emit──> kernels + code ──buffers, plan──> Program
//! ```
//!
//! **Invariant:** the driver knows a back end only as a [`Backend`]; a back end turns a request into a kernel
//! with the contract of [`crate::kernel`], so buffers, plan and runtime are the same for all of them.

use std::fmt;
use std::time::{Duration, Instant};

use hlo::Module;
use hlo_library_base::configuration::Configuration;
use hlo_opt::buffers::Assigned;
use hlo_opt::passes::{Pass, Pipeline, Steps};
use hlo_threads::cancel;

use crate::CompileError;
use crate::compilation::Compilation;
use crate::front;
use crate::kernel::Kernel;
use crate::plan::lower::Lowered;
use crate::program::{Code, Program};

/// A back end: emits kernels.
pub trait Backend: fmt::Debug {
    /// The target that programs are compiled for, such as `znver4, avx512`.
    fn describe(&self) -> String;

    /// The pipeline of passes before lowering.
    fn pipeline(&self) -> Pipeline;

    /// Emits the kernels that `lowered` requests, in order, and their code. `fallback`: the interpreter
    /// executes what is not supported, whose kernels are `None`; otherwise that is an error.
    fn emit(
        &self,
        module: &Module,
        lowered: &Lowered,
        fallback: bool,
        stages: &mut dyn Stages,
    ) -> Result<Made, CompileError>;
}

/// The output of a back end.
#[derive(Debug, Default)]
pub struct Made {
    /// By request.
    pub kernels: Vec<Option<Kernel>>,
    /// Their code.
    pub code: Code,
}

/// The driver's options, whatever the back end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DriverOptions {
    /// Whether the interpreter executes what is not compiled.
    pub fallback: bool,
    /// Whether the module is verified after every pass, and buffers are checked.
    pub verify: bool,
    /// The configuration that is compiled for.
    pub configuration: Configuration,
}

impl Default for DriverOptions {
    fn default() -> Self {
        Self { fallback: false, verify: cfg!(debug_assertions), configuration: Configuration::default() }
    }
}

/// An observer of the compiler's intermediate forms. What it does not want is not made.
pub trait Stages: Steps {
    /// The module that is lowered: fused and scheduled.
    fn lowered(&mut self, module: &Module, decisions: &Lowered) {
        let _ = (module, decisions);
    }

    /// The compilation with its kernels.
    fn emitted(&mut self, compilation: &Compilation) {
        let _ = compilation;
    }

    /// The buffer assignment.
    fn assigned(&mut self, module: &Module, assigned: &Assigned) {
        let _ = (module, assigned);
    }

    /// Which of LLVM's texts are wanted: as emitted, optimized, assembled.
    fn wants_llvm(&self) -> [bool; 3] {
        [false; 3]
    }

    /// The text of compilation unit `unit`, for those that are wanted.
    fn llvm(&mut self, unit: usize, texts: [Option<String>; 3]) {
        let _ = (unit, texts);
    }
}

impl Stages for () {}

/// A compiled program, with timings.
#[derive(Debug)]
pub struct Compiled {
    /// The program.
    pub program: Program,
    /// Its target, such as `znver4, avx512`.
    pub target: String,
    /// The stages: name, start relative to the first, duration.
    pub times: Vec<(String, Duration, Duration)>,
}

/// A compilation that is emitted but not assembled.
#[derive(Debug)]
pub struct Emission {
    /// What can be stored, and assembled into a program later.
    pub compilation: Compilation,
    /// Its target, such as `znver4, avx512`.
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
pub fn compile(
    module: &Module,
    backend: &dyn Backend,
    options: DriverOptions,
) -> Result<Compiled, CompileError> {
    compile_watched(module, backend, options, &backend.pipeline(), &mut ())
}

/// The same with another pipeline and an observer of every stage. The passes must end with those of
/// [`hlo_opt::fusion`], for what is not in a fusion is refused.
pub fn compile_watched(
    module: &Module,
    backend: &dyn Backend,
    options: DriverOptions,
    pipeline: &Pipeline,
    stages: &mut dyn Stages,
) -> Result<Compiled, CompileError> {
    emission(module, backend, options, pipeline, stages)?.assemble(options.verify, stages)
}

/// Compiles a verified module, up to the form that can be stored.
pub fn emission(
    module: &Module,
    backend: &dyn Backend,
    options: DriverOptions,
    pipeline: &Pipeline,
    stages: &mut dyn Stages,
) -> Result<Emission, CompileError> {
    options.configuration.with(|| emission_configured(module, backend, options, pipeline, stages))
}

/// [`emission`] under the configuration of the options.
fn emission_configured(
    module: &Module,
    backend: &dyn Backend,
    options: DriverOptions,
    pipeline: &Pipeline,
    stages: &mut dyn Stages,
) -> Result<Emission, CompileError> {
    let mut clock = Clock::default();
    clock.lap("target");
    let mut forward = Forward(stages);
    let (module, run_time_sizes) =
        front::fused_and_scheduled(module, pipeline, options.verify, &mut forward, &mut |name| {
            clock.lap(name);
        })?;
    // From here on no instruction gets another user: a sort computes only what its users take.
    let compilation = Compilation::new(module, run_time_sizes, options.fallback)?;
    stages.lowered(compilation.module(), compilation.lowered());
    clock.lap("lowering");
    let Made { kernels, code } =
        backend.emit(compilation.module(), compilation.lowered(), options.fallback, stages)?;
    let compilation = compilation.with_kernels(kernels, code)?;
    stages.emitted(&compilation);
    clock.lap("emission");
    Ok(Emission { compilation, target: backend.describe(), clock })
}

#[derive(Debug, Default)]
struct Clock {
    start: Option<Instant>,
    last: Duration,
    laps: Vec<(String, Duration, Duration)>,
}

impl Clock {
    /// Ends a stage: everything since the previous call (or the first). Compilation ends here if it was
    /// cancelled.
    fn lap(&mut self, name: &str) {
        cancel::poll();
        let now = self.start.get_or_insert_with(Instant::now).elapsed();
        self.laps.push((name.to_owned(), self.last, now - self.last));
        self.last = now;
    }
}

/// Forwards the observations of passes.
struct Forward<'a>(&'a mut dyn Stages);

impl Steps for Forward<'_> {
    fn before(&mut self, step: usize, pass: &dyn Pass, module: &Module) {
        self.0.before(step, pass, module);
    }

    fn after(&mut self, step: usize, pass: &dyn Pass, module: &Module, applications: u64) {
        self.0.after(step, pass, module, applications);
    }
}
