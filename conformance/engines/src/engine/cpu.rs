//! The compiler for this machine as an engine.
//!
//! Each device is a thread that runs the same executable; what devices do together (collectives, feeds,
//! random states) is done by the interpreter's [`Fleet`], instruction by instruction.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use hlo::{Diagnostic, Literal, Module};
use hlo_client::{DiskCache, panic_message};
#[cfg(feature = "llvm")]
use hlo_client::{Key, artifact};
use hlo_codegen::CompileError;
#[cfg(feature = "llvm")]
use hlo_codegen::compilation::Assemble as _;
use hlo_codegen::compile::{self, Backend as _, DriverOptions, Stages};
#[cfg(feature = "llvm")]
use hlo_codegen::program::Program;
use hlo_codegen::runtime::executable::{
    Executable as Compiled, LoadOptions, RunError, RunOptions as CpuRun, Watch,
};
#[cfg(feature = "llvm")]
use hlo_cpu as cpu;
use hlo_interp::device::fleet::{Fleet, Member};
use hlo_interp::{Devices, Interpreter, Observer, Options};
use hlo_library_base::configuration::Configuration;
use hlo_library_base::pool::Pool;
use hlo_scalar::Scalar;
use hlo_system::memory_budget::{self, MemoryBudget};
use hlo_threads::cancel::Cancelled;

use super::programs;
use super::watched::{Keep, LoweredForm, Watchers};
use super::{
    Compilation, Engine, Executable, Finished, Form, Inputs, Outcome, RunOptions, not_observable, support,
};

/// How programs are compiled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CpuOptions {
    /// 0 to 3.
    pub opt_level: u8,
    /// Whether the interpreter executes what is not compiled.
    pub fallback: bool,
    /// Whether kernels are evaluated element by element ([`hlo_scalar`]) where they would be machine code.
    pub scalar: bool,
}

impl Default for CpuOptions {
    fn default() -> Self {
        Self { opt_level: 2, fallback: false, scalar: false }
    }
}

impl CpuOptions {
    /// Compiles a program and keeps what is lowered, or loads it from a cache, where that is not kept.
    fn compile(
        self,
        source: &Module,
        cache: Option<&DiskCache>,
        keep: &mut Keep,
    ) -> Result<compile::Compiled, CompileError> {
        #[cfg(feature = "llvm")]
        if let Some(cache) = cache.filter(|_| !self.scalar) {
            return compiled(source, &self.compiler(), cache);
        }
        #[cfg(not(feature = "llvm"))]
        let _ = cache;
        self.emission(source, keep)?.assemble(DriverOptions::default().verify, keep)
    }

    /// Compiles a program, up to the form that still has the module that was lowered.
    pub fn emission(
        self,
        module: &Module,
        stages: &mut dyn Stages,
    ) -> Result<compile::Emission, CompileError> {
        if self.scalar {
            let backend = Scalar { opt_level: self.opt_level };
            let configuration = machine().configuration;
            let options =
                DriverOptions { fallback: self.fallback, configuration, ..DriverOptions::default() };
            return compile::emission(module, &backend, options, &backend.pipeline(), stages);
        }
        #[cfg(feature = "llvm")]
        {
            let options = self.compiler();
            let backend = cpu::Llvm::new(&options)?;
            compile::emission(module, &backend, options.driver(), &backend.pipeline(), stages)
        }
        #[cfg(not(feature = "llvm"))]
        {
            Err(CompileError::Target("this program was built without the feature `llvm`".to_owned()))
        }
    }

    /// As options of the compiler.
    #[cfg(feature = "llvm")]
    pub fn compiler(self) -> cpu::Options {
        cpu::Options {
            opt_level: self.opt_level,
            fallback: self.fallback,
            threads: machine().threads,
            configuration: machine().configuration,
            ..cpu::Options::default()
        }
    }
}

/// What all engines of a process compile for and run on: one command, one machine.
#[derive(Debug)]
pub struct Machine {
    /// The number of threads of compilation; 0: as many as there are cores.
    pub threads: usize,
    /// Instruction sets, microarchitecture and sizes.
    pub configuration: Configuration,
    /// The threads that programs run on.
    pub pool: Arc<Pool>,
}

static MACHINE: OnceLock<Machine> = OnceLock::new();

impl Machine {
    fn new(threads: usize, configuration: Configuration) -> Self {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let pool = Arc::new(Pool::new(if threads == 0 { cores } else { threads }));
        Self { threads, configuration, pool }
    }
}

/// Sets what programs are compiled for and run on; `threads` 0: as many as there are cores. To be called
/// before anything is compiled: later calls change nothing.
pub fn configure(threads: usize, configuration: Configuration) {
    MACHINE.get_or_init(|| Machine::new(threads, configuration));
}

/// What [`configure`] set, or all of this machine.
pub fn machine() -> &'static Machine {
    MACHINE.get_or_init(|| Machine::new(0, Configuration::default()))
}

/// The threads that programs run on.
pub fn pool() -> &'static Arc<Pool> {
    &machine().pool
}

/// Compiles programs and runs them.
#[derive(Debug)]
pub struct CpuEngine {
    name: String,
    options: CpuOptions,
}

impl CpuEngine {
    /// Under a name.
    pub fn new(name: String, options: CpuOptions) -> Self {
        Self { name, options }
    }
}

impl Engine for CpuEngine {
    fn name(&self) -> &str {
        &self.name
    }

    fn is_compiler(&self) -> bool {
        true
    }

    fn evaluated(&self) -> Option<Arc<dyn Engine>> {
        let options = CpuOptions { scalar: true, ..self.options };
        let name = format!("cpu:scalar+O{}", options.opt_level);
        (!self.options.scalar).then(|| Arc::new(CpuEngine::new(name, options)) as Arc<dyn Engine>)
    }

    fn supports(&self, module: &Module, _devices: Devices) -> Result<(), Diagnostic> {
        support::custom_calls(module, self.name())
    }

    fn compile<'m>(&'m self, module: &'m Module) -> Result<Box<dyn Executable + 'm>, Outcome> {
        Ok(Box::new(self.load(module, programs::cache())?))
    }
}

impl CpuEngine {
    /// Compiles and loads a program, or loads it from a cache: one from there is not watched, since what its
    /// steps execute is not kept.
    fn load<'m>(
        &'m self,
        source: &'m Module,
        cache: Option<&'static DiskCache>,
    ) -> Result<Loaded<'m>, Outcome> {
        let start = Instant::now();
        let mut kept = Keep::default();
        let compiled = catch_unwind(AssertUnwindSafe(|| self.options.compile(source, cache, &mut kept)));
        let compiled = compiled.map_err(|p| caught("the compiler", p))?.map_err(|e| failed(&e))?;
        let lowered = kept.0.map(|module| LoweredForm::new(module, &compiled.program));
        let program_module = compiled.program.module.clone();
        let kernels = compiled.program.kernels.len();
        // What a run may use is known when it runs.
        let watched = lowered.is_some();
        let options = LoadOptions {
            watched,
            configuration: machine().configuration,
            ..LoadOptions::new(Arc::clone(pool()))
        };
        let peak_bytes = compiled.program.buffers.peak_bytes;
        let executable = Compiled::load(compiled.program, &options).map_err(ended)?;
        let threads = executable.pool().threads();
        let compilation = Compilation {
            machine: format!("{}, {threads} thread{}", compiled.target, if threads == 1 { "" } else { "s" }),
            time: start.elapsed(),
            kernels: Some(kernels),
            temporary_bytes: Some(executable.temporary_bytes()),
            io_bytes: executable.io_bytes(),
        };
        let ran = AtomicBool::new(false);
        let (engine, module) = (self, program_module);
        Ok(Loaded { engine, source, lowered, executable, module, peak_bytes, compilation, ran })
    }
}

#[cfg(feature = "llvm")]
/// Takes a program from a cache, or compiles it into that.
fn compiled(
    source: &Module,
    options: &cpu::Options,
    cache: &DiskCache,
) -> Result<cpu::Compiled, CompileError> {
    let start = Instant::now();
    let asked = hlo_client::CompileOptions {
        opt_level: options.opt_level,
        fallback: options.fallback,
        cpu: options.cpu.clone(),
        features: options.features.clone(),
        ..hlo_client::CompileOptions::default()
    };
    let key = Key::new(source, &asked, &hlo_client::backend::fingerprint(options.configuration));
    if let Ok(Some((program, target))) = cache.load(key, |bytes| from_cache(bytes, options.verify)) {
        let times = vec![("cache".to_owned(), Duration::ZERO, start.elapsed())];
        return Ok(cpu::Compiled { program, target, times });
    }
    let emission = cpu::emission(source, options)?;
    if let Ok(bytes) = artifact::write(&emission.compilation, source, &options.cpu, &emission.target) {
        programs::keep(cache, key, &bytes);
    }
    emission.assemble(options.verify, &mut ())
}

/// The program that an artifact holds, and the processor that it is for. Errors: it cannot be used.
#[cfg(feature = "llvm")]
fn from_cache(bytes: &[u8], verify: bool) -> Result<(Program, String), hlo_client::Error> {
    let (info, compilation) = artifact::read(bytes)?;
    let program = compilation.assemble(verify, &mut |_, _| {});
    let program = program.map_err(|e| hlo_client::Error::new(hlo_client::Code::Internal, e.to_string()))?;
    Ok((program, info.target))
}

/// What a failed compilation means.
pub fn failed(error: &CompileError) -> Outcome {
    match error {
        CompileError::Unsupported(_) | CompileError::Target(_) => Outcome::Unsupported(error.diagnostic()),
        CompileError::Defect(_) => Outcome::Crashed(error.diagnostic()),
    }
}

/// What a failed run means.
pub fn ended(error: RunError) -> Outcome {
    let diagnostic = error.diagnostic();
    match error {
        RunError::Arguments(_) => Outcome::WrongInputs(diagnostic),
        RunError::OutOfMemory(_) | RunError::OutOfFuel(_) => Outcome::Trap(diagnostic),
        RunError::TimedOut => Outcome::TimedOut(diagnostic),
        RunError::Load(_) => Outcome::Crashed(diagnostic),
        RunError::Interpreter(e) => Outcome::of_interpreter(&e),
    }
}

/// What a panic means, but for the one that cancels.
fn caught(what: &str, panic: Box<dyn std::any::Any + Send>) -> Outcome {
    panicked(what, &*Cancelled::rethrow(panic))
}

fn panicked(what: &str, panic: &(dyn std::any::Any + Send)) -> Outcome {
    Outcome::defect(format!("{what} panicked: {}", panic_message(panic).unwrap_or("no message")))
}

/// A compiled program.
struct Loaded<'e> {
    engine: &'e CpuEngine,
    source: &'e Module,
    /// What its steps execute, if that was kept.
    lowered: Option<LoweredForm>,
    executable: Compiled,
    /// Where instructions for the interpreter are.
    module: Option<Arc<Module>>,
    peak_bytes: u64,
    compilation: Compilation,
    /// A run has ended with results.
    ran: AtomicBool,
}

/// What one device leaves.
struct Ran {
    results: Vec<hlo::ArrayLiteral>,
    steps: u64,
    time: Duration,
}

impl Loaded<'_> {
    /// Whether there is the memory for a run on such arguments. A run keeps what it took for the next one.
    fn fits(&self, inputs: &Inputs, options: &RunOptions) -> Result<(), Outcome> {
        let refuse = |wanted: u64, budget: MemoryBudget| {
            let limit = budget.describe();
            Err(Outcome::exhausted(format!("the program wants {wanted} bytes; the limit is {limit}")))
        };
        // Arguments come in arrays of their own, and results go out so.
        let own = self.executable.run_bytes();
        let wanted = self.peak_bytes.max(own.saturating_add(inputs.bytes(options.devices)));
        let limit = MemoryBudget { bytes: options.memory_left(), of: options.limit_of() };
        if wanted > limit.bytes {
            return refuse(wanted, limit);
        }
        if self.ran.load(Ordering::Relaxed) {
            return Ok(());
        }
        let shares = if self.module.is_some() { options.devices.count() } else { 1 };
        let budget = memory_budget::available(shares);
        if own > budget.bytes {
            return refuse(own, budget);
        }
        Ok(())
    }

    fn run_one(
        &self,
        arguments: &[Literal],
        options: &RunOptions,
        member: Option<&Member<'_>>,
        watch: Option<&dyn Watch>,
    ) -> Result<Ran, Outcome> {
        let run = CpuRun { fuel: options.limits.fuel, member, watch, ..CpuRun::default() };
        let ran = catch_unwind(AssertUnwindSafe(|| self.executable.run_literals(arguments, &run)));
        let (results, finished) = ran.map_err(|p| caught("the program", p))?.map_err(ended)?;
        Ok(Ran { results, steps: finished.steps, time: finished.time })
    }

    /// On several devices, or with a host.
    fn run_fleet(
        &self,
        module: &Module,
        inputs: Inputs,
        options: &RunOptions,
        watchers: &Watchers<'_>,
    ) -> Result<Vec<Ran>, Outcome> {
        let budget = inputs.memory_budget(options);
        let interpreter = Interpreter::new(
            module,
            Options {
                accumulate: options.accumulate,
                memory_limit_bytes: budget.bytes,
                memory_limit_of: budget.of,
                seed: options.seed,
                host: inputs.host,
                custom_calls: hlo_system::loaded::registry(),
                ..Options::default()
            },
        );
        let fleet = Fleet::new(options.devices);
        let one = |number: u32, arguments: Vec<Literal>| {
            let member = fleet.join(&interpreter, number);
            let watcher = watchers.of(number);
            let watch = watcher.as_ref().map(|w| w as &dyn Watch);
            let result = self.run_one(&arguments, options, Some(&member), watch);
            if result.is_ok() {
                member.finish();
            }
            result
        };
        let results = fleet.on_each(inputs.arguments, one, |e| Err(Outcome::of_interpreter(&e)));
        fleet.outcome(module, results, |error| Outcome::Trap(error.to_diagnostic()))
    }
}

impl Loaded<'_> {
    /// Runs it, and shows an observer what its steps leave.
    fn observed(&self, inputs: Inputs, options: &RunOptions, observer: Option<Arc<dyn Observer>>) -> Outcome {
        let watchers = match (&observer, &self.lowered) {
            (None, _) => Watchers { watched: None, devices: options.devices },
            (Some(observer), Some(lowered)) => {
                Watchers { watched: Some((&**observer, &lowered.module)), devices: options.devices }
            }
            (Some(_), None) => return not_observable(&self.engine.name),
        };
        if let Err(outcome) = self.fits(&inputs, options) {
            return outcome;
        }
        if inputs.arguments.len() != options.devices.count() as usize {
            let (given, devices) = (inputs.arguments.len(), options.devices.count());
            return ended(RunError::Arguments(format!(
                "arguments for {devices} devices were given to {given}"
            )));
        }
        let ran: Result<Vec<Ran>, Outcome> = match &self.module {
            Some(module) => self.run_fleet(module, inputs, options, &watchers),
            // Devices that never meet do so in turn.
            None => {
                let one = |(arguments, number): (&Vec<Literal>, u32)| {
                    let watcher = watchers.of(number);
                    let watch = watcher.as_ref().map(|w| w as &dyn Watch);
                    self.run_one(arguments, options, None, watch)
                };
                inputs.arguments.iter().zip(0..).map(one).collect()
            }
        };
        match ran {
            Ok(ran) => {
                self.ran.store(true, Ordering::Relaxed);
                Outcome::Finished(Finished {
                    fuel: ran.iter().map(|r| r.steps).sum(),
                    peak_bytes: self.peak_bytes,
                    time: match &self.module {
                        Some(_) => ran.iter().map(|r| r.time).max().unwrap_or_default(),
                        None => ran.iter().map(|r| r.time).sum(),
                    },
                    compiled: Some(Box::new(self.compilation.clone())),
                    results: ran.into_iter().map(|r| r.results).collect(),
                })
            }
            Err(outcome) => outcome,
        }
    }
}

impl Executable for Loaded<'_> {
    fn run(&self, inputs: Inputs, options: &RunOptions, observer: Option<Arc<dyn Observer>>) -> Outcome {
        if observer.is_some() {
            return not_observable(&self.engine.name);
        }
        self.observed(inputs, options, None)
    }

    fn strategy(&self, step: &str) -> Option<String> {
        let info = self.executable.steps().iter().find(|info| info.name == step)?;
        Some(match &info.strategy[..] {
            "" => info.kind.to_owned(),
            strategy => format!("{}: {strategy}", info.kind),
        })
    }

    fn watched(&self) -> Option<Box<dyn Executable + '_>> {
        let watched = match &self.lowered {
            Some(_) => Watching::Own(self),
            None => Watching::Made(Box::new(self.engine.load(self.source, None).ok()?)),
        };
        let whole = watched.loaded().lowered.as_ref().is_some_and(|l| l.whole);
        whole.then(|| Box::new(watched) as Box<dyn Executable + '_>)
    }

    fn can_be_observed(&self) -> bool {
        true
    }
}

/// A program whose form is what its steps execute.
enum Watching<'l, 'e> {
    /// The one that runs unwatched too.
    Own(&'l Loaded<'e>),
    /// Compiled once more.
    Made(Box<Loaded<'e>>),
}

impl<'e> Watching<'_, 'e> {
    fn loaded(&self) -> &Loaded<'e> {
        match self {
            Watching::Own(loaded) => loaded,
            Watching::Made(loaded) => loaded,
        }
    }
}

impl Executable for Watching<'_, '_> {
    fn run(&self, inputs: Inputs, options: &RunOptions, observer: Option<Arc<dyn Observer>>) -> Outcome {
        self.loaded().observed(inputs, options, observer)
    }

    fn form(&self) -> Option<Form<'_>> {
        self.loaded().lowered.as_ref().map(|l| Form::seen_at(&l.module, &l.seen))
    }
}

#[cfg(test)]
mod tests {
    use hlo_system::exit::Exit;

    use super::*;

    /// Neither the program nor its results are at fault.
    #[test]
    fn defects_of_the_compiler_are_bugs_of_ours() {
        let refused = failed(&CompileError::Defect("LLVM: type mismatch".to_owned()));
        let unloadable = ended(RunError::Load("no object defines the kernel `k`".to_owned()));
        for outcome in [refused, unloadable, panicked("the compiler", &"index out of bounds")] {
            let (exit, diagnostic) = outcome.into_results().expect_err("a crash");
            assert_eq!(exit, Exit::Internal, "{diagnostic:?}");
        }
        let unsupported = failed(&CompileError::Target("no such processor".to_owned()));
        assert_eq!(unsupported.into_results().expect_err("unsupported").0, Exit::Unsupported);
        assert_eq!(Outcome::crashed("signal 11").into_results().expect_err("a crash").0, Exit::Differs);
    }
}
