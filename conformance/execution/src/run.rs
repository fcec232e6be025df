//! What an execution is: options, inputs, results, and how it ended.
//!
//! A run has one or more devices, and everything that belongs to one of them is a list with an entry for
//! each, in the order of their numbers: `replica * partitions + partition`.
//!
//! **Invariant:** whoever runs programs and whoever judges runs know only these types of each other.

use std::sync::Arc;
use std::time::Duration;

use hlo::diag::codes;
use hlo::{ArrayLiteral, Diagnostic, Literal, Module, Shape, Span};
use hlo_interp::device::host::{Host, NoHost};
use hlo_interp::{Accumulate, Devices, ErrorKind, RunError};
use rustc_hash::FxHashSet;

use hlo_system::exit::{Exit, Failure};
use hlo_system::memory_budget::{self, MemoryBudget};

/// The limits of each device of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The maximum number of instructions that are executed; `None`: no limit.
    pub fuel: Option<u64>,
    /// The maximum number of bytes of values alive at once.
    pub memory_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { fuel: None, memory_bytes: 8 << 30 }
    }
}

/// Options of a run.
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
    /// Bytes of what is kept beside the run: results that its own are compared with, the program. They count
    /// against the limit.
    pub kept_bytes: u64,
}

impl RunOptions {
    /// The same beside `bytes` more bytes.
    #[must_use]
    pub fn beside(self, bytes: u64) -> Self {
        Self { kept_bytes: self.kept_bytes.saturating_add(bytes), ..self }
    }

    /// The bytes that the limit leaves each device, beside what is kept.
    pub fn memory_left(&self) -> u64 {
        self.limits.memory_bytes.saturating_sub(self.kept_bytes / u64::from(self.devices.count().max(1)))
    }

    /// The memory for each device, of whose budget `held` bytes are used already.
    pub fn memory_budget(&self, held: u64) -> MemoryBudget {
        let asked = MemoryBudget { bytes: self.memory_left(), of: self.limit_of() };
        memory_budget::within(asked, held, self.devices.count())
    }

    /// What [`RunOptions::memory_left`] is, for people.
    pub fn limit_of(&self) -> &'static str {
        if self.kept_bytes == 0 {
            "--memory-limit"
        } else {
            "what --memory-limit leaves beside the results that are compared"
        }
    }
}

/// The inputs of a run.
#[derive(Clone, Debug)]
pub struct Inputs {
    /// For each device the values of the entry's parameters.
    pub arguments: Vec<Vec<Literal>>,
    /// The host side of feeds and transfers.
    pub host: Arc<dyn Host>,
}

impl Inputs {
    /// These arrays as the parameters on each device, without a host. Errors: [`Exit::Usage`] if there are
    /// too few arrays.
    pub fn new(module: &Module, arrays: &[Vec<ArrayLiteral>]) -> Result<Self, Failure> {
        let arguments = arrays.iter().map(|a| to_parameters(module, a.clone())).collect::<Result<_, _>>()?;
        Ok(Self { arguments, host: Arc::new(NoHost) })
    }

    /// Bytes of the arguments of each device.
    pub fn bytes(&self, devices: Devices) -> u64 {
        let arrays = self.arguments.iter().flatten().flat_map(Literal::arrays);
        distinct_bytes(arrays) / u64::from(devices.count().max(1))
    }

    /// The memory for each device of a run that takes these over.
    pub fn memory_budget(&self, options: &RunOptions) -> MemoryBudget {
        options.memory_budget(self.bytes(options.devices))
    }
}

/// Bytes of arrays, what several share counted once.
pub fn distinct_bytes<'a>(arrays: impl IntoIterator<Item = &'a ArrayLiteral>) -> u64 {
    let mut seen = FxHashSet::default();
    let new = arrays.into_iter().filter(|a| seen.insert(Arc::as_ptr(&a.buffer)));
    new.map(|a| a.buffer.bytes()).sum()
}

/// Bytes of the results of some runs, but for those of `others`.
pub fn bytes_beside<const RUNS: usize>(
    results: [&Vec<Vec<ArrayLiteral>>; RUNS],
    others: &[Vec<ArrayLiteral>],
) -> u64 {
    let both = distinct_bytes(results.into_iter().flatten().chain(others).flatten());
    both - distinct_bytes(others.iter().flatten())
}

/// The name of an array of a device in files and reports: `out0`, or `d3.out0` where there are several
/// devices.
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
    /// The maximum number of bytes of values alive at once on a device.
    pub peak_bytes: u64,
    /// Time for the run alone.
    pub time: Duration,
    /// Of an engine that compiles.
    pub compiled: Option<Box<Compilation>>,
}

/// How a program was compiled.
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
    pub fn crashed(message: impl Into<String>) -> Outcome {
        Outcome::Crashed(Diagnostic::error(codes::ENGINE_FAILED, Span::NONE, message))
    }

    /// This project's compiler failed as it should never.
    pub fn defect(message: impl Into<String>) -> Outcome {
        Outcome::Crashed(Diagnostic::error(codes::COMPILER_DEFECT, Span::NONE, message))
    }

    /// The engine took longer than it may.
    pub fn timed_out(engine: &str, limit: Duration) -> Outcome {
        let message = format!("{engine} took longer than {} s", limit.as_secs_f64());
        Outcome::TimedOut(Diagnostic::error(codes::ENGINE_TIMED_OUT, Span::NONE, message))
    }

    /// There is not enough memory, or no thread.
    pub fn exhausted(message: impl Into<String>) -> Outcome {
        Outcome::Trap(Diagnostic::error(codes::OUT_OF_MEMORY, Span::NONE, message))
    }

    /// The environment lacks something: a folder for temporary files, space on a disk, a process.
    pub fn lacking(message: impl Into<String>) -> Outcome {
        Outcome::Trap(Diagnostic::error(codes::ENVIRONMENT_FAILED, Span::NONE, message))
    }

    /// The outcome of a failure before a run.
    pub fn before(failure: Failure) -> Outcome {
        match failure.exit {
            Exit::Trap => Outcome::exhausted(failure.message),
            _ => Outcome::crashed(failure.message),
        }
    }

    /// Whether memory, threads or something else of the environment did not suffice, which says nothing of
    /// the engine.
    pub fn is_exhausted(&self) -> bool {
        matches!(self, Outcome::Trap(d) if [codes::OUT_OF_MEMORY, codes::ENVIRONMENT_FAILED].contains(&d.code))
    }

    /// The outcome of an error of the interpreter.
    pub fn of_interpreter(error: &RunError) -> Outcome {
        let diagnostic = error.to_diagnostic();
        match error.kind {
            ErrorKind::Unsupported => Outcome::Unsupported(diagnostic),
            ErrorKind::Trap | ErrorKind::OutOfFuel | ErrorKind::OutOfMemory => Outcome::Trap(diagnostic),
            ErrorKind::Arguments => Outcome::WrongInputs(diagnostic),
        }
    }

    /// The results, or as a failure why there are none.
    pub fn finished(self) -> Result<Finished, Failure> {
        self.into_results().map_err(|(exit, diagnostic)| Failure::new(exit, diagnostic.message))
    }

    /// Why there are no results, as a failure: of an outcome that is not [`Outcome::Finished`].
    pub fn failure(self) -> Failure {
        self.finished().err().unwrap_or_else(|| Failure::internal("there are results where there are none"))
    }

    /// The results, or why there are none and the exit code that this means.
    pub fn into_results(self) -> Result<Finished, (Exit, Diagnostic)> {
        match self {
            Outcome::Finished(f) => Ok(f),
            Outcome::Unsupported(d) => Err((Exit::Unsupported, d)),
            // Most often it is their number that is another than the program was written for.
            Outcome::Trap(d) if d.code == codes::PARTICIPANTS => Err((
                Exit::Trap,
                d.note("`--replicas N` and `--partitions N` say how many devices there are"),
            )),
            Outcome::Trap(d) => Err((Exit::Trap, d)),
            Outcome::WrongInputs(d) => Err((Exit::Usage, d)),
            Outcome::Crashed(d) => Err((Exit::of_crash(&d), d)),
            Outcome::TimedOut(d) => Err((Exit::Trap, d)),
        }
    }
}

/// The shapes of the entry's parameters.
pub fn parameter_shapes(module: &Module) -> Vec<Shape> {
    let entry = module.computation(module.entry());
    entry.parameters().iter().flatten().map(|&p| module.instr(p).shape.clone()).collect()
}

/// Builds the values of the entry's parameters from their arrays. Errors: [`Exit::Usage`] if there are too
/// few.
pub fn to_parameters(module: &Module, arrays: Vec<ArrayLiteral>) -> Result<Vec<Literal>, Failure> {
    let mut arrays = arrays.into_iter();
    parameter_shapes(module).iter().map(|s| build(s, &mut arrays)).collect()
}

/// The value of a shape from its arrays, tuples flattened in order. Errors: [`Exit::Usage`] if there are too
/// few.
pub fn build(shape: &Shape, arrays: &mut impl Iterator<Item = ArrayLiteral>) -> Result<Literal, Failure> {
    match shape {
        Shape::Array(_) => arrays
            .next()
            .map(Literal::Array)
            .ok_or_else(|| Failure::usage("there are fewer input arrays than parameters")),
        Shape::Tuple(t) => Ok(Literal::Tuple(t.iter().map(|s| build(s, arrays)).collect::<Result<_, _>>()?)),
        Shape::Token => Ok(Literal::Token),
        Shape::Buffer(inner) => build(inner, arrays),
        Shape::Opaque => Err(Failure::new(Exit::Unsupported, "a parameter is opaque: it has no values")),
    }
}

/// Moves the arrays out of a literal, tuples flattened in order, tokens dropped.
pub fn flatten(literal: Literal, out: &mut Vec<ArrayLiteral>) {
    match literal {
        Literal::Array(a) => out.push(a),
        Literal::Tuple(t) => t.into_iter().for_each(|l| flatten(l, out)),
        Literal::Token => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn participants_that_do_not_fit_name_the_options() {
        let trap = |code| Outcome::Trap(Diagnostic::error(code, Span::NONE, "why")).into_results();
        let notes = |code| trap(code).err().map(|(_, d)| d.notes);
        assert!(notes(codes::PARTICIPANTS).is_some_and(|all| all[0].contains("--partitions N")));
        assert!(notes(codes::ENGINE_FAILED).is_some_and(|all| all.is_empty()));
    }
}
