//! The compiler for GPUs as an engine whose device is the interpreter of PTX: every access of every kernel is checked.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hlo::{Diagnostic, Literal, Module};
use hlo_client::panic_message;
use hlo_codegen::CompileError;
use hlo_gpu::arch::Arch;
use hlo_gpu::compile::{self, Options};
use hlo_gpu::interpreted::{Interpreted, Modules};
use hlo_gpu::program::Program;
use hlo_gpu::run::{self, Limits, RunError};
use hlo_interp::cancel::Cancelled;
use hlo_interp::{Devices, Observer};

use super::{
    Compilation, Engine, Executable, Finished, Inputs, Outcome, RunOptions, not_observable, support,
};
use crate::exit::Failure;

/// How programs are compiled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PtxOptions {
    /// What for.
    pub arch: Arch,
    /// 0 to 3.
    pub opt_level: u8,
}

impl PtxOptions {
    /// By what stands after `ptx:`: an architecture (`sm_80`), a level (`O0`), or both joined by `+`. Errors: wrong usage.
    pub fn parse(options: Option<&str>) -> Result<Self, Failure> {
        let mut parsed = Self { arch: Arch::default(), opt_level: 2 };
        for option in options.unwrap_or_default().split('+').filter(|o| !o.is_empty()) {
            match option {
                "O0" | "O1" | "O2" | "O3" => parsed.opt_level = option.as_bytes()[1] - b'0',
                arch => {
                    parsed.arch =
                        arch.parse().map_err(|e| Failure::usage(format!("{e}, and levels O0 to O3")))?
                }
            }
        }
        Ok(parsed)
    }
}

/// Compiles programs and interprets their PTX.
#[derive(Debug)]
pub struct PtxEngine {
    name: String,
    options: PtxOptions,
}

impl PtxEngine {
    /// Under a name.
    pub fn new(name: String, options: PtxOptions) -> Self {
        Self { name, options }
    }
}

impl Engine for PtxEngine {
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
        let options = Options { arch: self.options.arch, opt_level: self.options.opt_level, threads: 0 };
        let compiled = catch_unwind(AssertUnwindSafe(|| {
            compile::compile(module, &options).and_then(|c| c.assemble(cfg!(debug_assertions)))
        }));
        let program = compiled.map_err(|p| caught("the compiler", p))?.map_err(|e| failed(&e))?;
        let modules = Modules::new(&program).map_err(|e| ended(&e))?;
        let temporary = program.buffers.allocations.iter().filter(|a| {
            use hlo_codegen::buffers::AllocationKind;
            matches!(a.kind, AllocationKind::Arena | AllocationKind::Frame)
        });
        let compilation = Compilation {
            machine: format!("{} (interpreted PTX)", program.arch),
            time: start.elapsed(),
            kernels: Some(program.plan.launches()),
            temporary_bytes: Some(temporary.map(|a| a.bytes).sum()),
            io_bytes: 0,
        };
        Ok(Box::new(Loaded { name: &self.name, program, modules, compilation }))
    }
}

/// What a failed compilation means.
fn failed(error: &CompileError) -> Outcome {
    let mut diagnostic = error.diagnostic();
    if let Some(what) = diagnostic.message.strip_prefix(hlo_codegen::REFUSAL) {
        diagnostic.message = format!("{}{what}", hlo_gpu::REFUSAL);
    }
    match error {
        CompileError::Unsupported(_) | CompileError::Target(_) => Outcome::Unsupported(diagnostic),
        CompileError::Defect(_) => Outcome::Crashed(diagnostic),
    }
}

/// What a failed run means.
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

/// What a panic means, but for the one that cancels.
fn caught(what: &str, panic: Box<dyn std::any::Any + Send>) -> Outcome {
    let panic = Cancelled::rethrow(panic);
    Outcome::defect(format!("{what} panicked: {}", panic_message(&*panic).unwrap_or("no message")))
}

/// A compiled program.
struct Loaded<'e> {
    name: &'e str,
    program: Program,
    modules: Arc<Modules>,
    compilation: Compilation,
}

/// Instructions of threads for each unit of fuel: kernels execute many for one of HLO.
const THREAD_INSTRUCTIONS_PER_FUEL: u64 = 1 << 10;

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
        let start = Instant::now();
        let mut results = Vec::new();
        let mut instructions = 0;
        for arguments in &inputs.arguments {
            let arguments: Vec<&Literal> = arguments.iter().collect();
            let fuel = options.limits.fuel.unwrap_or(u64::MAX);
            let checks = hlo_ptx::Options {
                fuel: fuel.saturating_mul(THREAD_INSTRUCTIONS_PER_FUEL),
                ..hlo_ptx::Options::default()
            };
            let ran = catch_unwind(AssertUnwindSafe(|| {
                let modules = Arc::clone(&self.modules);
                let mut device = Interpreted::new(&self.program, modules, checks, options.memory_left());
                let results = run::execute(&self.program, &mut device, &arguments, Limits { steps: fuel });
                (results, device.statistics())
            }));
            let (ran, statistics) = match ran {
                Ok(ran) => ran,
                Err(panic) => return caught("the program", panic),
            };
            instructions += statistics.thread_instructions;
            match ran {
                Ok(arrays) => results.push(arrays),
                Err(error) => return ended(&error),
            }
        }
        Outcome::Finished(Finished {
            fuel: instructions,
            peak_bytes: self.program.buffers.peak_bytes,
            time: start.elapsed().max(Duration::from_nanos(1)),
            compiled: Some(Box::new(self.compilation.clone())),
            results,
        })
    }
}
