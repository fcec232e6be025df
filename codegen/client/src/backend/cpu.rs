//! The CPU compiler as a back end. Without the feature `llvm` it compiles nothing, and loads and runs
//! artifacts.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;

use hlo::{Literal, Module};
use hlo_codegen::compilation::Assemble as _;
use hlo_codegen::runtime::constants::ConstantPool;
use hlo_codegen::runtime::executable::{Argument as Lent, Executable, Finished, LoadOptions, RunOptions};
use hlo_interp::Devices;
use hlo_interp::custom_call::Registry;
use hlo_interp::device::fleet::{Fleet, Member};
use hlo_library_base::configuration::Configuration;
use hlo_library_base::isa::Isa;
use hlo_library_base::pool::Pool;
use hlo_threads::cancel::Cancelled;
use smallvec::SmallVec;

use super::interpreter::stored;
#[cfg(feature = "llvm")]
use super::unknown_custom_call;
use super::{Argument, Array, Arrays, Backend, Compiled, Loaded, Source};
use crate::artifact::{self, Signature};
use crate::error::{Code, Error, panic_message};
use crate::machine;
use crate::options::{CompileOptions, ExecuteOptions, ThreadPool};

/// The processor that this runs on.
#[derive(Debug)]
pub struct Cpu {
    pool: Arc<Pool>,
    configuration: Configuration,
    constants: Arc<ConstantPool>,
}

/// What identifies the compiler and the machine in the keys of caches: the build, the processor's features,
/// and the configuration.
pub fn fingerprint(configuration: Configuration) -> String {
    let limit = configuration.max_isa().map_or("all", Isa::name);
    let (divisor, tuning) = (configuration.size_divisor(), configuration.tuning().name);
    let (arch, features) = (std::env::consts::ARCH, machine::features().join(","));
    format!("{} on {arch}: {features}; up to {limit}; for {tuning}; sizes by {divisor}", artifact::BUILD)
}

impl Cpu {
    /// With threads to compile and run on (0: as many as there are cores), under a configuration.
    pub fn new(threads: usize, configuration: Configuration) -> Self {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let threads = if threads == 0 { cores } else { threads };
        Self::on(&ThreadPool::new(threads), configuration)
    }

    /// The same on threads of somebody else's, or that several clients share.
    pub fn on(pool: &ThreadPool, configuration: Configuration) -> Self {
        Self { pool: Arc::clone(&pool.0), configuration, constants: Arc::default() }
    }

    fn load_program(&self, program: hlo_codegen::program::Program) -> Result<Arc<dyn Loaded>, Error> {
        let (configuration, constants) = (self.configuration, Arc::clone(&self.constants));
        let options = LoadOptions { configuration, constants, ..LoadOptions::new(Arc::clone(&self.pool)) };
        let executable = Executable::load(program, &options)?;
        Ok(Arc::new(Running { executable }))
    }
}

impl Backend for Cpu {
    fn platform(&self) -> &'static str {
        "cpu"
    }

    fn fingerprint(&self) -> String {
        fingerprint(self.configuration)
    }

    fn constant_bytes(&self) -> u64 {
        self.constants.bytes()
    }

    #[cfg(feature = "llvm")]
    fn compile(&self, module: &Arc<Module>, options: &CompileOptions, keep: bool) -> Result<Compiled, Error> {
        use hlo_cpu::{self as cpu, CompileError};
        let to = cpu::Options {
            opt_level: options.opt_level,
            threads: self.pool.threads(),
            fallback: options.fallback,
            cpu: options.cpu.clone(),
            features: options.features.clone(),
            configuration: self.configuration,
            ..cpu::Options::default()
        };
        let failed = |error: CompileError| {
            let code = match &error {
                CompileError::Unsupported(_) => Code::Unimplemented,
                CompileError::Target(_) => Code::InvalidArgument,
                CompileError::Defect(_) => Code::Internal,
            };
            Error::new(code, error.diagnostic().message)
        };
        if let Some((_, error)) = unknown_custom_call(module) {
            return Err(error.into());
        }
        guarded("the compiler", || {
            let emission = cpu::emission(module, &to).map_err(failed)?;
            let write = || artifact::write(&emission.compilation, module, &to.cpu, &emission.target);
            let artifact = keep.then(write).transpose()?;
            let program = emission.assemble(to.verify, &mut ()).map_err(failed)?.program;
            Ok(Compiled { loaded: self.load_program(program)?, artifact })
        })
    }

    #[cfg(not(feature = "llvm"))]
    fn compile(
        &self,
        _module: &Arc<Module>,
        _options: &CompileOptions,
        _keep: bool,
    ) -> Result<Compiled, Error> {
        Err(Error::new(Code::Unimplemented, "this build has no compiler: it runs what was compiled before"))
    }

    fn load(&self, bytes: &[u8]) -> Result<(Signature, Arc<dyn Loaded>), Error> {
        guarded("loading", || {
            let (info, compilation) = artifact::read(bytes)?;
            let program = compilation.assemble(cfg!(debug_assertions), &mut |_, _| {});
            let program = program.map_err(|e| Error::new(Code::Internal, e.to_string()))?;
            Ok((info.signature, self.load_program(program)?))
        })
    }
}

/// Turns a panic, which is a defect of ours, into an error.
fn guarded<T>(what: &str, run: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let panic = Cancelled::rethrow(panic);
        let message = panic_message(&*panic).unwrap_or("no message");
        Err(Error::new(Code::Internal, format!("{what} panicked: {message}")))
    })
}

/// A program that was compiled.
#[derive(Debug)]
struct Running {
    executable: Executable,
}

impl Running {
    fn run_on(
        &self,
        arguments: &mut [Argument<'_>],
        options: &ExecuteOptions,
        member: Option<&Member<'_>>,
    ) -> Result<Arrays, Error> {
        let run = RunOptions {
            fuel: options.fuel,
            deadline: options.deadline,
            member,
            untimed: true,
            pool: options.thread_pool.as_ref().map(|pool| &pool.0),
            store: options.allocator.as_ref().map(|allocator| &allocator.0),
            ..RunOptions::default()
        };
        if self.executable.has_run_time_sizes() {
            let literals: Vec<Literal> =
                arguments.iter().map(|argument| Literal::Array(argument.to_literal())).collect();
            let (arrays, _) = self.executable.run_literals(&literals, &run)?;
            let store = options.allocator.as_ref().map_or(self.executable.store(), |allocator| &allocator.0);
            return arrays.iter().map(|array| stored(array, store)).collect();
        }
        let mut lent: SmallVec<[Lent<'_>; 8]> = SmallVec::new();
        for argument in arguments.iter_mut() {
            if let Source::Given(_) = argument.source
                && let Source::Given(block) = std::mem::replace(&mut argument.source, Source::Taken)
            {
                lent.push(Lent::Donated(block));
            } else {
                lent.push(Lent::Borrowed(argument.bytes()));
            }
        }
        let Finished { results, .. } = self.executable.run(&mut lent, &run)?;
        Ok(results.into_iter().map(|leaf| Array { shape: None, leaf }).collect())
    }
}

/// An interpreter of what a compiled program leaves to it.
fn interpreter<'m>(
    module: &'m Module,
    options: &ExecuteOptions,
    calls: &Registry,
) -> hlo_interp::Interpreter<'m> {
    let custom_calls = calls.clone();
    let seeded = hlo_interp::Options { seed: options.rng_seed, custom_calls, ..Default::default() };
    hlo_interp::Interpreter::new(module, seeded)
}

impl Loaded for Running {
    fn run_bytes(&self) -> u64 {
        self.executable.run_bytes()
    }

    fn reuses_arguments(&self) -> bool {
        self.executable.reuses_arguments()
    }

    fn interpreted(&self) -> Option<&Module> {
        self.executable.interpreted_module().map(|module| &**module)
    }

    fn run(
        &self,
        arguments: &mut [Argument<'_>],
        options: &ExecuteOptions,
        calls: &Registry,
    ) -> Result<Arrays, Error> {
        let Some(module) = self.executable.interpreted_module() else {
            return self.run_on(arguments, options, None);
        };
        let interpreter = interpreter(module, options, calls);
        let fleet = Fleet::new(Devices::ONE);
        let member = fleet.join(&interpreter, 0);
        let results = self.run_on(arguments, options, Some(&member));
        if results.is_ok() {
            member.finish();
        }
        results
    }

    fn run_devices(
        &self,
        arguments: Vec<Vec<Argument<'_>>>,
        devices: Devices,
        options: &ExecuteOptions,
        calls: &Registry,
    ) -> Result<Vec<Arrays>, Error> {
        let Some(module) = self.executable.interpreted_module() else {
            // Devices that exchange nothing run one after the other, each on all threads.
            return arguments.into_iter().map(|mut a| self.run_on(&mut a, options, None)).collect();
        };
        let interpreter = interpreter(module, options, calls);
        let fleet = Fleet::new(devices);
        let one = |number: u32, mut arguments: Vec<Argument<'_>>| {
            let member = fleet.join(&interpreter, number);
            let results = self.run_on(&mut arguments, options, Some(&member));
            if results.is_ok() {
                member.finish();
            }
            results
        };
        let results = fleet.on_each(arguments, one, |e| Err(e.into()));
        fleet.outcome(module, results, Error::from)
    }
}
