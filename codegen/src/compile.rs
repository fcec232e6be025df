//! The driver: from a verified module to a program, whatever the back end.
//!
//! ```text
//! Module ──passes, fusion, schedule──> ──Backend::lower──> how each instruction is executed ──Backend::emit──> kernels + code ──buffers, plan──> program
//! ```
//!
//! **Invariant:** the driver knows a back end only as a [`Backend`], and its compilation only by
//! [`Assemble`]. Back ends for the host share [`Compilation`]: each emits a kernel with the contract of
//! [`crate::kernel`] for each request, so lowering, buffers, plan and runtime are the same for all of them. A
//! back end for another device has a compilation of its own.

use std::fmt;
use std::time::{Duration, Instant};

use hlo::Module;
use hlo_library_base::configuration::Configuration;
use hlo_opt::buffers::Assigned;
use hlo_opt::passes::{Pipeline, Steps};
use hlo_threads::cancel;

use crate::CompileError;
use crate::compilation::{Assemble, Compilation};
use crate::front;
use crate::program::Program;
use crate::run_time_sizes::RunTimeSizes;

/// A back end: what passes run, how instructions are executed, and kernels.
pub trait Backend: fmt::Debug {
    /// What a program is compiled to: [`Compilation`] if the runtime of this crate executes it.
    type Compilation: Assemble;

    /// The target that programs are compiled for, such as `znver4, avx512`.
    fn describe(&self) -> String;

    /// The pipeline of passes before lowering, with the target's costs.
    fn pipeline(&self) -> Pipeline;

    /// Decides how each instruction of a fused and scheduled module is executed: a compilation without
    /// kernels. `fallback`: the interpreter executes what is not supported, if the target has it; otherwise
    /// that is an error.
    fn lower(
        &self,
        module: Module,
        run_time_sizes: Option<RunTimeSizes>,
        fallback: bool,
    ) -> Result<Self::Compilation, CompileError>;

    /// Emits the kernels of what [`Backend::lower`] gave, and their code.
    fn emit(
        &self,
        lowered: Self::Compilation,
        stages: &mut dyn Stages<Self::Compilation>,
    ) -> Result<Self::Compilation, CompileError>;
}

/// The driver's options, whatever the back end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DriverOptions {
    /// Whether the interpreter executes what is not compiled, if the target has it.
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
pub trait Stages<C = Compilation>: Steps {
    /// The compilation without kernels: the fused and scheduled module, and how its instructions are
    /// executed.
    fn lowered(&mut self, compilation: &C) {
        let _ = compilation;
    }

    /// The compilation with its kernels.
    fn emitted(&mut self, compilation: &C) {
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

impl<C> Stages<C> for () {}

/// A compiled program, with timings.
#[derive(Debug)]
pub struct Compiled<P = Program> {
    /// The program.
    pub program: P,
    /// Its target, such as `znver4, avx512`.
    pub target: String,
    /// The stages: name, start relative to the first, duration.
    pub times: Vec<(String, Duration, Duration)>,
}

/// A compilation that is emitted but not assembled.
#[derive(Debug)]
pub struct Emission<C = Compilation> {
    /// What can be stored, and assembled into a program later.
    pub compilation: C,
    /// Its target, such as `znver4, avx512`.
    pub target: String,
    clock: Clock,
}

impl<C: Assemble> Emission<C> {
    /// The program. `verify`: its buffers are checked.
    pub fn assemble(
        self,
        verify: bool,
        stages: &mut dyn Stages<C>,
    ) -> Result<Compiled<C::Program>, CompileError> {
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
pub fn compile<C: Assemble>(
    module: &Module,
    backend: &dyn Backend<Compilation = C>,
    options: DriverOptions,
) -> Result<Compiled<C::Program>, CompileError> {
    compile_watched(module, backend, options, &backend.pipeline(), &mut ())
}

/// The same with another pipeline and an observer of every stage. The passes must end with those of
/// [`hlo_opt::fusion`], for what is not in a fusion is refused.
pub fn compile_watched<C: Assemble>(
    module: &Module,
    backend: &dyn Backend<Compilation = C>,
    options: DriverOptions,
    pipeline: &Pipeline,
    stages: &mut dyn Stages<C>,
) -> Result<Compiled<C::Program>, CompileError> {
    emission(module, backend, options, pipeline, stages)?.assemble(options.verify, stages)
}

/// Compiles a verified module, up to the form that can be stored.
pub fn emission<C: Assemble>(
    module: &Module,
    backend: &dyn Backend<Compilation = C>,
    options: DriverOptions,
    pipeline: &Pipeline,
    stages: &mut dyn Stages<C>,
) -> Result<Emission<C>, CompileError> {
    options.configuration.with(|| emission_configured(module, backend, options, pipeline, stages))
}

/// [`emission`] under the configuration of the options.
fn emission_configured<C: Assemble>(
    module: &Module,
    backend: &dyn Backend<Compilation = C>,
    options: DriverOptions,
    pipeline: &Pipeline,
    stages: &mut dyn Stages<C>,
) -> Result<Emission<C>, CompileError> {
    let mut clock = Clock::default();
    clock.lap("target");
    let steps: &mut dyn Steps = stages;
    let (module, run_time_sizes) =
        front::fused_and_scheduled(module, pipeline, options.verify, steps, &mut |name| {
            clock.lap(name);
        })?;
    // From here on no instruction gets another user: a sort computes only what its users take.
    let lowered = backend.lower(module, run_time_sizes, options.fallback)?;
    stages.lowered(&lowered);
    clock.lap("lowering");
    let compilation = backend.emit(lowered, stages)?;
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

#[cfg(test)]
mod tests;
