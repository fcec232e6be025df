//! The compiler for this machine's processor as a back end. Without the feature `llvm` it loads and runs what was compiled before.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;

use hlo::{ArrayLiteral, ArrayShape, Literal, Module};
use hlo_codegen::compilation::Compilation;
use hlo_codegen::isa;
use hlo_codegen::runtime::executable::{Argument as Lent, Executable, Finished, LoadOptions, RunOptions};
use hlo_codegen::runtime::pool::Pool;
use hlo_codegen::runtime::raw::buffer_of;
use hlo_codegen::sizes;
use hlo_interp::Devices;
use hlo_interp::cancel::Cancelled;
use hlo_interp::device::fleet::{Fleet, Member};
use smallvec::SmallVec;

use super::interpreter::stored;
#[cfg(feature = "llvm")]
use super::unknown_custom_call;
use super::{Argument, Array, Backend, Compiled, Loaded, Source};
use crate::artifact;
use crate::error::{Code, Error};
use crate::machine;
use crate::options::{CompileOptions, ExecuteOptions};

/// The processor that this runs on.
#[derive(Debug)]
pub struct Cpu {
    pool: Arc<Pool>,
}

/// All that programs compiled for a processor depend on beside themselves and their options: the compiler's build, the machine, and what this process was told to do without.
pub fn fingerprint() -> String {
    let limit = isa::limited().map_or("all", isa::Isa::name);
    let divisor = sizes::divided().unwrap_or(1);
    let (arch, features) = (std::env::consts::ARCH, machine::features().join(","));
    format!("{} on {arch}: {features}; up to {limit}; sizes by {divisor}", artifact::BUILD)
}

impl Cpu {
    /// With threads to compile and run on; 0: as many as there are cores.
    pub fn new(threads: usize) -> Self {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        Self { pool: Arc::new(Pool::new(if threads == 0 { cores } else { threads })) }
    }

    fn ready(&self, compilation: Compilation) -> Result<Arc<dyn Loaded>, Error> {
        let program = compilation
            .assemble(cfg!(debug_assertions), &mut |_, _| {})
            .map_err(|e| Error::new(Code::Internal, e.to_string()))?;
        self.load_program(program)
    }

    fn load_program(&self, program: hlo_codegen::program::Program) -> Result<Arc<dyn Loaded>, Error> {
        let pool = Arc::clone(&self.pool);
        let options = LoadOptions { pool, memory_bytes: u64::MAX, watched: false };
        let executable = Executable::load(program, &options)?;
        let shapes = executable.result_shapes().cloned().collect();
        Ok(Arc::new(Running { executable, shapes }))
    }
}

impl Backend for Cpu {
    fn platform(&self) -> &'static str {
        "cpu"
    }

    fn fingerprint(&self) -> String {
        fingerprint()
    }

    #[cfg(feature = "llvm")]
    fn compile(&self, module: &Arc<Module>, options: &CompileOptions) -> Result<Compiled, Error> {
        use hlo_codegen::cpu::{self, CompileError};
        let to = cpu::Options {
            opt_level: options.opt_level,
            threads: self.pool.threads(),
            fallback: options.fallback,
            cpu: options.cpu.clone(),
            features: options.features.clone(),
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
            let artifact = artifact::write(&emission.compilation, module, &to.cpu, &emission.target)?;
            let program = emission.assemble(to.verify, &mut ()).map_err(failed)?.program;
            Ok(Compiled { loaded: self.load_program(program)?, artifact: Some(artifact) })
        })
    }

    #[cfg(not(feature = "llvm"))]
    fn compile(&self, _module: &Arc<Module>, _options: &CompileOptions) -> Result<Compiled, Error> {
        Err(Error::new(Code::Unimplemented, "this build has no compiler: it runs what was compiled before"))
    }

    fn load(&self, bytes: &[u8]) -> Result<Arc<dyn Loaded>, Error> {
        guarded("loading", || self.ready(artifact::read(bytes)?))
    }
}

/// Turns a panic, which is a defect of ours, into an error.
fn guarded<T>(what: &str, run: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let panic = Cancelled::rethrow(panic);
        let message = panic.downcast_ref::<String>().map(String::as_str);
        let message = message.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        Err(Error::new(Code::Internal, format!("{what} panicked: {message}")))
    })
}

/// A program that was compiled.
#[derive(Debug)]
struct Running {
    executable: Executable,
    /// Shapes of the result's array leaves; with run-time sizes those of the program that makes padded ones.
    shapes: Vec<ArrayShape>,
}

impl Running {
    fn run_on(
        &self,
        arguments: &mut [Argument],
        options: &ExecuteOptions,
        member: Option<&Member<'_>>,
    ) -> Result<Vec<Array>, Error> {
        let run =
            RunOptions { fuel: options.fuel, deadline: options.deadline, member, ..RunOptions::default() };
        if self.executable.has_run_time_sizes() {
            let literals: Vec<Literal> = arguments.iter().map(literal).collect();
            let (arrays, _) = self.executable.run_literals(&literals, &run)?;
            return arrays.iter().map(|array| stored(array, self.executable.store())).collect();
        }
        let mut lent: SmallVec<[Lent<'_>; 8]> = SmallVec::new();
        for argument in arguments.iter_mut() {
            lent.push(match &mut argument.source {
                Source::Lent(data) => Lent::Borrowed(data.bytes()),
                given @ Source::Given(_) => {
                    let nothing =
                        Source::Lent(crate::buffer::Data::Host(Arc::new(hlo::Buffer::U8(Vec::new()))));
                    match std::mem::replace(given, nothing) {
                        Source::Given(block) => Lent::Donated(block),
                        Source::Lent(_) => Lent::Borrowed(&[]),
                    }
                }
            });
        }
        let Finished { results, .. } = self.executable.run(&mut lent, &run)?;
        let arrays = self.shapes.iter().zip(results);
        Ok(arrays.map(|(shape, block)| Array { shape: shape.clone(), block }).collect())
    }
}

fn literal(argument: &Argument) -> Literal {
    let buffer = buffer_of(argument.shape.element_type, argument.bytes());
    Literal::Array(ArrayLiteral { dims: argument.shape.dims.clone(), buffer: buffer.into() })
}

impl Loaded for Running {
    fn run_bytes(&self) -> u64 {
        self.executable.run_bytes()
    }

    fn reuses_arguments(&self) -> bool {
        self.executable.reuses_arguments()
    }

    fn run(&self, arguments: &mut [Argument], options: &ExecuteOptions) -> Result<Vec<Array>, Error> {
        let Some(module) = self.executable.interpreted_module() else {
            return self.run_on(arguments, options, None);
        };
        let seeded = hlo_interp::Options { seed: options.rng_seed, ..Default::default() };
        let interpreter = hlo_interp::Interpreter::new(module, seeded);
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
        arguments: Vec<Vec<Argument>>,
        devices: Devices,
        options: &ExecuteOptions,
    ) -> Result<Vec<Vec<Array>>, Error> {
        let Some(module) = self.executable.interpreted_module() else {
            // Devices that never meet run in turn: each uses all threads.
            return arguments.into_iter().map(|mut a| self.run_on(&mut a, options, None)).collect();
        };
        let seeded = hlo_interp::Options { seed: options.rng_seed, ..Default::default() };
        let interpreter = hlo_interp::Interpreter::new(module, seeded);
        let fleet = Fleet::new(devices);
        let one = |number: u32, mut arguments: Vec<Argument>| {
            let member = fleet.join(&interpreter, number);
            let results = self.run_on(&mut arguments, options, Some(&member));
            if results.is_ok() {
                member.finish();
            }
            results
        };
        let results = fleet.on_each(arguments, one, |e| Err(e.into()));
        match fleet.deadlock(module) {
            // Those that wait have failed as a consequence of one that failed by itself, or of all together.
            Some((waiting, error)) => {
                let own = (0..).zip(results).find(|(n, r)| r.is_err() && !waiting.contains(n));
                match own {
                    Some((_, Err(own))) => Err(own),
                    Some((_, Ok(_))) | None => Err(error.into()),
                }
            }
            None => results.into_iter().collect(),
        }
    }
}
