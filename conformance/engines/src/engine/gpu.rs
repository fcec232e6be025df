//! The compiler for GPUs as an engine, on either of two devices: the interpreter of PTX, which checks every
//! access of every kernel (`ptx`), or a GPU (`cuda`).
//!
//! Compiling requires LLVM; a build without it runs what the cache of compiled programs holds, so that
//! programs are compiled on one machine and run with `--platform cuda` on another.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
#[cfg(feature = "cuda")]
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use hlo::{ArrayLiteral, Diagnostic, Literal, Module};
use hlo_client::{CompileOptions, Key, gpu_artifact, panic_message};
use hlo_codegen::CompileError;
use hlo_codegen::compilation::Assemble as _;
use hlo_gpu::arch::Arch;
use hlo_gpu::interpreted::{Interpreted, Modules};
use hlo_gpu::program::Program;
use hlo_gpu::run::{self, Limits, RunError};
use hlo_interp::{Devices, Observer};
use hlo_opt::buffers::AllocationKind;
use hlo_system::exit::{Exit, Failure};
use hlo_threads::cancel::Cancelled;

use super::programs;
use super::{
    Compilation, Engine, Executable, Finished, Inputs, Outcome, RunOptions, not_observable, support,
};

/// Options of compilation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GpuOptions {
    /// The target architecture; `None`: the device's.
    pub arch: Option<Arch>,
    /// 0 to 3.
    pub opt_level: u8,
    /// The number of the device.
    pub ordinal: usize,
}

impl GpuOptions {
    /// By what stands after the colon: an architecture (`sm_80`), a level (`O0`), the number of a device,
    /// joined by `+`. Errors: wrong usage.
    pub fn parse(options: Option<&str>) -> Result<Self, Failure> {
        let mut parsed = Self { arch: None, opt_level: 2, ordinal: 0 };
        for option in options.unwrap_or_default().split('+').filter(|o| !o.is_empty()) {
            match option {
                "O0" | "O1" | "O2" | "O3" => parsed.opt_level = option.as_bytes()[1] - b'0',
                _ if let Ok(ordinal) = option.parse() => parsed.ordinal = ordinal,
                arch => {
                    let arch = arch.parse();
                    parsed.arch =
                        Some(arch.map_err(|e| Failure::usage(format!("{e}, and levels O0 to O3")))?);
                }
            }
        }
        Ok(parsed)
    }
}

/// Compiles a program, or loads it from the cache of compiled programs.
pub fn compiled(
    module: &Module,
    arch: Arch,
    opt_level: u8,
) -> Result<hlo_gpu::compilation::Compilation, CompileError> {
    let asked = CompileOptions { opt_level, ..CompileOptions::default() };
    let key = Key::new(module, &asked, &format!("{arch} {}", hlo_client::artifact::BUILD));
    let cache = programs::cache();
    if let Some(cache) = cache
        && let Ok(Some((_, compilation))) = cache.load(key, gpu_artifact::read)
    {
        return Ok(compilation);
    }
    let compilation = compile(module, arch, opt_level)?;
    if let Some(cache) = cache
        && let Ok(bytes) = gpu_artifact::write(&compilation, module)
    {
        programs::keep(cache, key, &bytes);
    }
    Ok(compilation)
}

#[cfg(feature = "llvm")]
fn compile(
    module: &Module,
    arch: Arch,
    opt_level: u8,
) -> Result<hlo_gpu::compilation::Compilation, CompileError> {
    use hlo_gpu::compile::{Options, emission};
    let configuration = super::cpu::machine().configuration;
    Ok(emission(module, &Options { arch, opt_level, configuration, ..Options::default() })?.compilation)
}

#[cfg(not(feature = "llvm"))]
fn compile(_: &Module, arch: Arch, _: u8) -> Result<hlo_gpu::compilation::Compilation, CompileError> {
    let message = format!(
        "this program was built without LLVM, and the folder of compiled programs (--cache) does not hold this one for {arch}"
    );
    Err(CompileError::Target(message))
}

/// The device that programs run on.
enum Device {
    /// In the interpreter of PTX.
    Interpreted,
    /// On a GPU.
    #[cfg(feature = "cuda")]
    Cuda(hlo_gpu::cuda::Gpu),
}

/// Compiles programs for a GPU and runs them.
pub struct GpuEngine {
    name: String,
    options: GpuOptions,
    arch: Arch,
    device: Device,
}

/// The longest that a run on a device may take.
#[cfg(feature = "cuda")]
const DEVICE_TIMEOUT: Duration = Duration::from_secs(60);

impl GpuEngine {
    /// Under a name, interpreting.
    pub fn interpreted(name: String, options: GpuOptions) -> Self {
        let arch = options.arch.unwrap_or_default();
        Self { name, options, arch, device: Device::Interpreted }
    }

    /// Under a name, on a GPU. Errors: there is none, or no driver ([`Exit::Unsupported`]).
    #[cfg(feature = "cuda")]
    pub fn cuda(name: String, options: GpuOptions) -> Result<Self, Failure> {
        let gpu = hlo_gpu::cuda::Gpu::open(options.ordinal, DEVICE_TIMEOUT)
            .map_err(|e| Failure::new(Exit::Unsupported, e.to_string()))?;
        let (model, sm) = gpu.describe();
        let fits = |a: &&Arch| a.capability().0 * 10 + a.capability().1 <= sm;
        let arch = options.arch.or(Arch::ALL.iter().rev().find(fits).copied());
        let arch = arch.ok_or_else(|| {
            Failure::new(
                Exit::Unsupported,
                format!("{model} is sm_{sm}: this compiler is for sm_75 and later"),
            )
        })?;
        Ok(Self { name, options, arch, device: Device::Cuda(gpu) })
    }

    /// There is no runtime of CUDA in this build.
    #[cfg(not(feature = "cuda"))]
    pub fn cuda(name: String, _: GpuOptions) -> Result<Self, Failure> {
        Err(Failure::new(
            Exit::Unsupported,
            format!("platform `{name}`: this program was built without CUDA"),
        ))
    }
}

impl Engine for GpuEngine {
    fn name(&self) -> &str {
        &self.name
    }

    fn is_compiler(&self) -> bool {
        true
    }

    fn supports(&self, module: &Module, _devices: Devices) -> Result<(), Diagnostic> {
        support::custom_calls(module, self.name())
    }

    fn compile<'m>(&'m self, module: &'m Module) -> Result<Box<dyn Executable + 'm>, Outcome> {
        let start = Instant::now();
        let compiled = catch_unwind(AssertUnwindSafe(|| {
            let compilation = compiled(module, self.arch, self.options.opt_level)?;
            Ok(compilation.assemble(cfg!(debug_assertions), &mut |_, _| {})?)
        }));
        let program =
            compiled.map_err(|p| caught("the compiler", p))?.map_err(|e: CompileError| failed(&e))?;
        let program = Arc::new(program);
        let is_temporary = |kind| matches!(kind, AllocationKind::Arena | AllocationKind::Frame);
        let temporary = program.buffers.allocations.iter().filter(|a| is_temporary(a.kind));
        let temporary_bytes = temporary.map(|a| a.bytes).sum();
        let (machine, ready) = match &self.device {
            Device::Interpreted => {
                let modules = Modules::new(&program).map_err(|e| ended(&e))?;
                (format!("{} (interpreted PTX)", program.arch), Ready::Interpreted(modules))
            }
            #[cfg(feature = "cuda")]
            Device::Cuda(gpu) => {
                let loaded = gpu.load(Arc::clone(&program), hlo_gpu::cuda::Graphs::default());
                let loaded = Box::new(loaded.map_err(|e| ended(&e))?);
                (format!("{} ({})", gpu.describe().0, program.arch), Ready::Cuda(Mutex::new(loaded)))
            }
        };
        let compilation = Compilation {
            machine,
            time: start.elapsed(),
            kernels: Some(program.plan.launches()),
            temporary_bytes: Some(temporary_bytes),
            io_bytes: 0,
        };
        Ok(Box::new(Loaded { name: &self.name, program, ready, compilation }))
    }
}

/// A failed compilation as an error for people.
pub fn diagnostic(error: &CompileError) -> Diagnostic {
    let mut diagnostic = error.diagnostic();
    if let Some(what) = diagnostic.message.strip_prefix(hlo_codegen::REFUSAL) {
        diagnostic.message = format!("{}{what}", hlo_gpu::REFUSAL);
    }
    diagnostic
}

/// A failed compilation as the end of a command.
pub fn failure(error: &CompileError) -> Failure {
    let exit = match error {
        CompileError::Unsupported(_) | CompileError::Target(_) => Exit::Unsupported,
        CompileError::Defect(_) => Exit::Internal,
    };
    Failure::new(exit, diagnostic(error).message)
}

/// A run that left no result as the end of a command.
pub fn run_failure(error: &RunError) -> Failure {
    let exit = match error {
        RunError::Arguments(_) => Exit::Usage,
        RunError::Unsupported(_) => Exit::Unsupported,
        RunError::OutOfMemory(_) | RunError::OutOfFuel(_) | RunError::TimedOut(_) | RunError::Sizes(_) => {
            Exit::Trap
        }
        RunError::Kernel(_) => Exit::Internal,
    };
    Failure::new(exit, error.to_string())
}

/// The outcome of a failed compilation.
fn failed(error: &CompileError) -> Outcome {
    let diagnostic = diagnostic(error);
    match error {
        CompileError::Unsupported(_) | CompileError::Target(_) => Outcome::Unsupported(diagnostic),
        CompileError::Defect(_) => Outcome::Crashed(diagnostic),
    }
}

/// The outcome of a failed run.
pub(super) fn ended(error: &RunError) -> Outcome {
    let diagnostic = error.diagnostic();
    match error {
        RunError::Arguments(_) => Outcome::WrongInputs(diagnostic),
        RunError::OutOfMemory(_) | RunError::OutOfFuel(_) | RunError::Sizes(_) => Outcome::Trap(diagnostic),
        RunError::TimedOut(_) => Outcome::TimedOut(diagnostic),
        RunError::Kernel(_) => Outcome::Crashed(diagnostic),
        RunError::Unsupported(_) => Outcome::Unsupported(diagnostic),
    }
}

/// The outcome of a panic, but for the one that cancels.
fn caught(what: &str, panic: Box<dyn std::any::Any + Send>) -> Outcome {
    let panic = Cancelled::rethrow(panic);
    Outcome::defect(format!("{what} panicked: {}", panic_message(&*panic).unwrap_or("no message")))
}

/// A program on its device.
enum Ready {
    Interpreted(Arc<Modules>),
    #[cfg(feature = "cuda")]
    Cuda(Mutex<Box<hlo_gpu::cuda::Loaded>>),
}

/// A compiled program.
struct Loaded<'e> {
    name: &'e str,
    program: Arc<Program>,
    ready: Ready,
    compilation: Compilation,
}

/// Instructions of threads for each unit of fuel: kernels execute many for one of HLO.
const THREAD_INSTRUCTIONS_PER_FUEL: u64 = 1 << 10;

/// The results of a run on one device.
struct Ran {
    results: Vec<ArrayLiteral>,
    fuel: u64,
    time: Duration,
}

impl Loaded<'_> {
    fn run_one(&self, arguments: &[&Literal], options: &RunOptions) -> Result<Ran, RunError> {
        let steps = options.limits.fuel.unwrap_or(u64::MAX);
        let limits = Limits { steps };
        let start = Instant::now();
        match &self.ready {
            Ready::Interpreted(modules) => {
                let checks = hlo_ptx::Options {
                    fuel: steps.saturating_mul(THREAD_INSTRUCTIONS_PER_FUEL),
                    ..hlo_ptx::Options::default()
                };
                let mut device =
                    Interpreted::new(&self.program, Arc::clone(modules), checks, options.memory_left());
                let results = run::execute(&self.program, &mut device, arguments, limits)?;
                let fuel = device.statistics().thread_instructions;
                Ok(Ran { results, fuel, time: start.elapsed() })
            }
            #[cfg(feature = "cuda")]
            Ready::Cuda(loaded) => {
                let mut loaded = loaded.lock().unwrap_or_else(PoisonError::into_inner);
                let results = run::execute(&self.program, &mut **loaded, arguments, limits)?;
                Ok(Ran { results, fuel: 0, time: start.elapsed() })
            }
        }
    }
}

impl Executable for Loaded<'_> {
    fn run(&self, inputs: Inputs, options: &RunOptions, observer: Option<Arc<dyn Observer>>) -> Outcome {
        if observer.is_some() {
            return not_observable(self.name);
        }
        if inputs.arguments.len() != options.devices.count() as usize {
            let (given, devices) = (inputs.arguments.len(), options.devices.count());
            return ended(&RunError::Arguments(format!(
                "arguments for {devices} devices were given to {given}"
            )));
        }
        let mut finished = Finished {
            fuel: 0,
            peak_bytes: self.program.buffers.peak_bytes,
            time: Duration::ZERO,
            compiled: Some(Box::new(self.compilation.clone())),
            results: Vec::new(),
        };
        // Devices never meet: one after the other.
        for arguments in &inputs.arguments {
            let arguments: Vec<&Literal> = arguments.iter().collect();
            match catch_unwind(AssertUnwindSafe(|| self.run_one(&arguments, options))) {
                Err(panic) => return caught("the program", panic),
                Ok(Err(error)) => return ended(&error),
                Ok(Ok(ran)) => {
                    finished.fuel += ran.fuel;
                    finished.time += ran.time;
                    finished.results.push(ran.results);
                }
            }
        }
        Outcome::Finished(finished)
    }
}
