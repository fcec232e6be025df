//! Engines: whatever can give the results of a program.
//!
//! A run has one or more devices, and everything that belongs to one of them is a list with an entry for each, in the order
//! of their numbers: `replica * partitions + partition`.
//!
//! **Invariants:** an engine ends with results or with a named outcome, never with a guess; comparing, reporting and reducing
//! know only the traits.
//!
//! | engine ([`spec`]) | what it is |
//! |---|---|
//! | `interpreter` | the reference ([`interpreter`]) |
//! | `interpreter:VARIANT` | the interpreter as a correct compiler may differ from it: other orders of sums, contraction ([`passes`]) |
//! | `cpu`, `cpu:O0` to `cpu:O3` | the compiler for this machine ([`cpu`]); with `+fallback` the interpreter executes what is not compiled |
//! | `passes:P,Q` | the interpreter on what passes make of the program ([`passes`]) |
//! | `form:FILE` | the interpreter on another form of the program ([`form`]) |
//! | `faulty:NAME` | the interpreter on what a wrong pass makes of it ([`passes`]) |
//! | `recorded:FILE` | results that were recorded ([`recorded`]) |
//! | `pjrt:PLUGIN.so` | a PJRT plugin in this process ([`pjrt`]) |
//! | `xla-gpu:DIR`, `xla-gpu` | XLA's GPU compiler: its PTX, executed without a GPU ([`xla_gpu`]) |
//! | `exec:COMMAND`, `serve:COMMAND` | another program ([`external`]) |
//! | `child:ENGINE` | any of these in a process of its own ([`external`]) |

mod allowances;
#[cfg(feature = "llvm")]
pub mod cpu;
pub mod devices;
pub mod external;
pub mod form;
mod function_ulps;
mod functions;
pub mod gpu;
pub mod interpreter;
pub mod passes;
pub mod pjrt;
pub mod programs;
pub mod recorded;
pub mod spec;
pub(crate) mod support;
pub mod timed;
#[cfg(feature = "llvm")]
mod watched;
pub mod xla_gpu;

use std::sync::Arc;
use std::time::Duration;

use hlo::diag::codes;
use hlo::{ArrayLiteral, Diagnostic, Literal, Module, Span};
use hlo_interp::device::host::{Host, NoHost};
use hlo_interp::{Accumulate, Devices, ErrorKind, Observer, RunError};
use rustc_hash::FxHashSet;

use crate::exit::{Exit, Failure};
use crate::inputs::to_parameters;
use crate::room::{self, Room};

pub use allowances::Allowances;
pub use form::Form;
pub use functions::{Functions, Library};
pub use interpreter::InterpreterEngine;
#[cfg(feature = "llvm")]
pub use spec::cpu_options;
pub use spec::{PLATFORMS, allowances, by_name, names_of, with_fallback, with_timeout};

/// How far each device of a run may go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The most instructions that are executed; `None`: no limit.
    pub fuel: Option<u64>,
    /// The most bytes of values alive at once.
    pub memory_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { fuel: None, memory_bytes: 8 << 30 }
    }
}

/// How to run.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunOptions {
    /// How sums of floats round.
    pub accumulate: Accumulate,
    /// Limits.
    pub limits: Limits,
    /// Seed of `rng`.
    pub seed: u64,
    /// On how many devices.
    pub devices: Devices,
    /// Bytes of what is kept beside the run: results that its own are compared with, the program. They count against the limit.
    pub kept_bytes: u64,
}

impl RunOptions {
    /// The same beside so many bytes more.
    #[must_use]
    pub fn beside(self, bytes: u64) -> Self {
        Self { kept_bytes: self.kept_bytes.saturating_add(bytes), ..self }
    }

    /// What the limit leaves each device, beside what is kept.
    pub fn memory_left(&self) -> u64 {
        self.limits.memory_bytes.saturating_sub(self.kept_bytes / u64::from(self.devices.count().max(1)))
    }

    /// The memory for each device, which has already so many bytes that count.
    pub(crate) fn room(&self, held: u64) -> Room {
        let asked = Room { bytes: self.memory_left(), of: self.limit_of() };
        room::within(asked, held, self.devices.count())
    }

    /// What [`RunOptions::memory_left`] is, for people.
    pub(crate) fn limit_of(&self) -> &'static str {
        if self.kept_bytes == 0 {
            "--memory-limit"
        } else {
            "what --memory-limit leaves beside the results that are compared"
        }
    }
}

/// What goes into a run.
#[derive(Clone, Debug)]
pub struct Inputs {
    /// For each device the values of the entry's parameters.
    pub arguments: Vec<Vec<Literal>>,
    /// What is at the other end of feeds and host transfers.
    pub host: Arc<dyn Host>,
}

impl Inputs {
    /// These arrays as the parameters on each device, without a host. Errors: [`Exit::Usage`] if there are too few arrays.
    pub fn new(module: &Module, arrays: &[Vec<ArrayLiteral>]) -> Result<Self, Failure> {
        let arguments = arrays.iter().map(|a| to_parameters(module, a.clone())).collect::<Result<_, _>>()?;
        Ok(Self { arguments, host: Arc::new(NoHost) })
    }

    /// Bytes of the arguments of each device.
    pub(crate) fn bytes(&self, devices: Devices) -> u64 {
        let arrays = self.arguments.iter().flatten().flat_map(Literal::arrays);
        distinct_bytes(arrays) / u64::from(devices.count().max(1))
    }

    /// The memory for each device of a run that takes these over.
    pub(crate) fn room(&self, options: &RunOptions) -> Room {
        options.room(self.bytes(options.devices))
    }
}

/// Bytes of arrays, what several share counted once.
pub(crate) fn distinct_bytes<'a>(arrays: impl IntoIterator<Item = &'a ArrayLiteral>) -> u64 {
    let mut seen = FxHashSet::default();
    let new = arrays.into_iter().filter(|a| seen.insert(Arc::as_ptr(&a.buffer)));
    new.map(|a| a.buffer.bytes()).sum()
}

/// Bytes of the results of some runs, but for those of `others`.
pub(crate) fn bytes_beside<const RUNS: usize>(
    results: [&Vec<Vec<ArrayLiteral>>; RUNS],
    others: &[Vec<ArrayLiteral>],
) -> u64 {
    let both = distinct_bytes(results.into_iter().flatten().chain(others).flatten());
    both - distinct_bytes(others.iter().flatten())
}

/// The name of an array of a device in files and reports: `out0`, or `d3.out0` where there are several devices.
pub fn array_name(devices: usize, device: usize, name: &str, i: usize) -> String {
    if devices == 1 { format!("{name}{i}") } else { format!("d{device}.{name}{i}") }
}

/// The arrays of all devices by name.
pub fn named<'a>(name: &str, arrays: &'a [Vec<ArrayLiteral>]) -> Vec<(String, &'a ArrayLiteral)> {
    let of = |(device, all): (usize, &'a Vec<ArrayLiteral>)| {
        let named = move |(i, a)| (array_name(arrays.len(), device, name, i), a);
        all.iter().enumerate().map(named).collect::<Vec<_>>()
    };
    arrays.iter().enumerate().flat_map(of).collect()
}

/// A finished run.
#[derive(Clone, Debug, Default)]
pub struct Finished {
    /// For each device the arrays of the result, tuples flattened, tokens left out: `out0, out1, ...`.
    pub results: Vec<Vec<ArrayLiteral>>,
    /// Instructions executed, on all devices.
    pub fuel: u64,
    /// The most bytes of values alive at once on a device.
    pub peak_bytes: u64,
    /// Time for the run alone.
    pub time: Duration,
    /// Of an engine that compiles.
    pub compiled: Option<Box<Compilation>>,
}

/// What a program was compiled to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Compilation {
    /// For what: a processor, such as `znver4, avx512`, and threads.
    pub machine: String,
    /// Time from the verified module to a program that is ready to run.
    pub time: Duration,
    /// Compiled kernels, if the engine says.
    pub kernels: Option<usize>,
    /// Bytes that a run needs besides arguments and results, if the engine says.
    pub temporary_bytes: Option<u64>,
    /// Bytes of arguments and results.
    pub io_bytes: u64,
}

/// How a run ended.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// With results.
    Finished(Finished),
    /// The engine does not support the program.
    Unsupported(Diagnostic),
    /// The program trapped, or ran out of fuel or memory.
    Trap(Diagnostic),
    /// The inputs do not fit the program.
    WrongInputs(Diagnostic),
    /// The engine failed as it should never: it crashed, gave results of another shape, or broke the program.
    Crashed(Diagnostic),
    /// The engine took longer than it may.
    TimedOut(Diagnostic),
}

impl Outcome {
    /// Why there are no results; `None` if there are.
    pub fn diagnostic(&self) -> Option<&Diagnostic> {
        match self {
            Outcome::Finished(_) => None,
            Outcome::Unsupported(d)
            | Outcome::Trap(d)
            | Outcome::WrongInputs(d)
            | Outcome::Crashed(d)
            | Outcome::TimedOut(d) => Some(d),
        }
    }

    /// The engine failed as it should never.
    pub(crate) fn crashed(message: impl Into<String>) -> Outcome {
        Outcome::Crashed(Diagnostic::error(codes::ENGINE_FAILED, Span::NONE, message))
    }

    /// This project's compiler failed as it should never.
    pub(crate) fn defect(message: impl Into<String>) -> Outcome {
        Outcome::Crashed(Diagnostic::error(codes::COMPILER_DEFECT, Span::NONE, message))
    }

    /// The engine took longer than it may.
    pub(crate) fn timed_out(engine: &str, limit: Duration) -> Outcome {
        let message = format!("{engine} took longer than {} s", limit.as_secs_f64());
        Outcome::TimedOut(Diagnostic::error(codes::ENGINE_TIMED_OUT, Span::NONE, message))
    }

    /// There is not enough memory, or no thread.
    pub(crate) fn exhausted(message: impl Into<String>) -> Outcome {
        Outcome::Trap(Diagnostic::error(codes::OUT_OF_MEMORY, Span::NONE, message))
    }

    /// The environment lacks something: a folder for temporary files, space on a disk, a process.
    pub(crate) fn lacking(message: impl Into<String>) -> Outcome {
        Outcome::Trap(Diagnostic::error(codes::ENVIRONMENT_FAILED, Span::NONE, message))
    }

    /// What a failure before a run means.
    pub(crate) fn before(failure: Failure) -> Outcome {
        match failure.exit {
            Exit::Trap => Outcome::exhausted(failure.message),
            _ => Outcome::crashed(failure.message),
        }
    }

    /// Whether memory, threads or something else of the environment did not suffice, which says nothing of the engine.
    pub(crate) fn is_exhausted(&self) -> bool {
        matches!(self, Outcome::Trap(d) if [codes::OUT_OF_MEMORY, codes::ENVIRONMENT_FAILED].contains(&d.code))
    }

    /// What an error of the interpreter means.
    pub(crate) fn of_interpreter(error: &RunError) -> Outcome {
        let diagnostic = error.to_diagnostic();
        match error.kind {
            ErrorKind::Unsupported => Outcome::Unsupported(diagnostic),
            ErrorKind::Trap | ErrorKind::OutOfFuel | ErrorKind::OutOfMemory => Outcome::Trap(diagnostic),
            ErrorKind::Arguments => Outcome::WrongInputs(diagnostic),
        }
    }

    /// The results, or as a failure why there are none.
    pub(crate) fn finished(self) -> Result<Finished, Failure> {
        self.into_results().map_err(|(exit, diagnostic)| Failure::new(exit, diagnostic.message))
    }

    /// Why there are no results, as a failure: of an outcome that is not [`Outcome::Finished`].
    pub(crate) fn failure(self) -> Failure {
        self.finished().err().unwrap_or_else(|| Failure::internal("there are results where there are none"))
    }

    /// The results, or why there are none and the exit code that this means.
    #[expect(clippy::result_large_err, reason = "made once a run, and taken apart at once")]
    pub fn into_results(self) -> Result<Finished, (Exit, Diagnostic)> {
        match self {
            Outcome::Finished(f) => Ok(f),
            Outcome::Unsupported(d) => Err((Exit::Unsupported, d)),
            Outcome::Trap(d) => Err((Exit::Trap, d)),
            Outcome::WrongInputs(d) => Err((Exit::Usage, d)),
            Outcome::Crashed(d) => Err((Exit::of_crash(&d), d)),
            Outcome::TimedOut(d) => Err((Exit::Trap, d)),
        }
    }
}

/// Something that runs programs.
pub trait Engine: Send + Sync {
    /// The name that `--platform` and `--engines` take.
    fn name(&self) -> &str;

    /// What its results may differ by from those of the reference, besides what strict numerics grant all.
    fn allowances(&self) -> Allowances {
        Allowances::STRICT
    }

    /// Whether it runs this program on so many devices, as far as that is known before running. Errors: a diagnostic that
    /// names the opcode.
    fn supports(&self, module: &Module, devices: Devices) -> Result<(), Diagnostic>;

    /// Whether it has an answer to one program only, whatever it is given: results or a form that was recorded.
    fn knows_one_program(&self) -> bool {
        false
    }

    /// Whether it is this project's compiler, whose results are held to those of the reference wherever they are judged.
    fn is_compiler(&self) -> bool {
        false
    }

    /// Whether its runs end within a time that it sets them, whatever they do.
    fn ends_by_itself(&self) -> bool {
        false
    }

    /// Makes a verified program ready to run any number of times. Errors: an outcome without results.
    fn compile<'m>(&'m self, module: &'m Module) -> Result<Box<dyn Executable + 'm>, Outcome>;

    /// Compiles and runs a verified program.
    fn run(&self, module: &Module, inputs: Inputs, options: &RunOptions) -> Outcome {
        self.run_watched(module, inputs, options, None)
    }

    /// The same, telling an observer of every instruction, which it may end. An engine that cannot says [`Outcome::Unsupported`].
    fn run_watched(
        &self,
        module: &Module,
        inputs: Inputs,
        options: &RunOptions,
        observer: Option<Arc<dyn Observer>>,
    ) -> Outcome {
        match self.compile(module) {
            Ok(executable) => executable.run(inputs, options, observer),
            Err(outcome) => outcome,
        }
    }
}

/// A program that an engine made ready.
pub trait Executable: Send + Sync {
    /// Runs it. With an observer: [`Outcome::Unsupported`] if there is no [`Executable::form`].
    fn run(&self, inputs: Inputs, options: &RunOptions, observer: Option<Arc<dyn Observer>>) -> Outcome;

    /// The HLO that is executed instruction by instruction, if it is HLO; an observer sees that, and what it injects is used.
    fn form(&self) -> Option<Form<'_>> {
        None
    }

    /// The same program made once more so that an observer sees what its steps leave: its [`Executable::form`] is what they execute, made of the program
    /// by rewritings that keep every bit. `None`: that cannot be, or the program can be observed as it is.
    fn watched(&self) -> Option<Box<dyn Executable + '_>> {
        None
    }

    /// Whether it may have a form, now or watched: what costs nothing to ask.
    fn can_be_observed(&self) -> bool {
        self.form().is_some()
    }
}

/// That an engine cannot be observed.
pub(crate) fn not_observable(engine: &str) -> Outcome {
    let d = Diagnostic::error(
        codes::UNSUPPORTED_OPCODE,
        Span::NONE,
        format!("the engine `{engine}` does not execute HLO that can be watched"),
    );
    Outcome::Unsupported(d)
}

/// Moves the arrays out of a literal, tuples flattened in order, tokens dropped.
pub fn flatten(literal: Literal, out: &mut Vec<ArrayLiteral>) {
    match literal {
        Literal::Array(a) => out.push(a),
        Literal::Tuple(t) => t.into_iter().for_each(|l| flatten(l, out)),
        Literal::Token => {}
    }
}
