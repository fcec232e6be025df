//! Engines: whatever can give the results of a program.
//!
//! A run has one or more devices, and everything that belongs to one of them is a list with an entry for each, in the order
//! of their numbers: `replica * partitions + partition`.
//!
//! **Invariants:** an engine ends with results or with a named outcome, never with a guess; comparing, reporting and reducing
//! know only the trait.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hlo::diag::Diagnostic;
use hlo::{ArrayLiteral, Literal, Module};
use hlo_interp::device::MAX_DEVICES;
use hlo_interp::device::host::{Host, NoHost};
use hlo_interp::{Accumulate, Devices, ErrorKind, Interpreter, Observer, Options, Value};

use crate::exit::{Exit, Failure};
use crate::inputs::to_parameters;

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
}

/// The number of devices that a module asks for, unless something else is given. Errors: [`Exit::Usage`] if these are none or
/// too many.
pub fn devices(module: &Module, replicas: Option<u32>, partitions: Option<u32>) -> Result<Devices, Failure> {
    let replicas = replicas.map_or(module.replica_count(), i64::from);
    let partitions = partitions.map_or(module.num_partitions(), i64::from);
    Devices::new(replicas, partitions).ok_or_else(|| {
        Failure::usage(format!(
            "{replicas} replicas of {partitions} partitions: a run has 1 to {MAX_DEVICES} devices"
        ))
    })
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
#[derive(Clone, Debug)]
pub struct Finished {
    /// For each device the arrays of the result, tuples flattened, tokens left out: `out0, out1, ...`.
    pub results: Vec<Vec<ArrayLiteral>>,
    /// Instructions executed, on all devices.
    pub fuel: u64,
    /// The most bytes of values alive at once on a device.
    pub peak_bytes: u64,
    /// Time for the run alone.
    pub time: Duration,
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
}

impl Outcome {
    /// The results, or why there are none and the exit code that this means.
    #[expect(clippy::result_large_err, reason = "made once a run, and taken apart at once")]
    pub fn into_results(self) -> Result<Finished, (Exit, Diagnostic)> {
        match self {
            Outcome::Finished(f) => Ok(f),
            Outcome::Unsupported(d) => Err((Exit::Unsupported, d)),
            Outcome::Trap(d) => Err((Exit::Trap, d)),
            Outcome::WrongInputs(d) => Err((Exit::Usage, d)),
        }
    }
}

/// Something that runs programs.
pub trait Engine: Sync {
    /// The name that `--platform` takes.
    fn name(&self) -> &str;

    /// Whether it runs this program on so many devices, as far as that is known before running. Errors: a diagnostic that
    /// names the opcode.
    fn supports(&self, module: &Module, devices: Devices) -> Result<(), Diagnostic>;

    /// Runs a verified program.
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
    ) -> Outcome;
}

/// The reference interpreter.
#[derive(Clone, Copy, Debug, Default)]
pub struct InterpreterEngine;

impl Engine for InterpreterEngine {
    fn name(&self) -> &str {
        "interpreter"
    }

    fn supports(&self, _module: &Module, _devices: Devices) -> Result<(), Diagnostic> {
        Ok(())
    }

    fn run_watched(
        &self,
        module: &Module,
        inputs: Inputs,
        options: &RunOptions,
        observer: Option<Arc<dyn Observer>>,
    ) -> Outcome {
        let interpreter = Interpreter::new(
            module,
            Options {
                accumulate: options.accumulate,
                fuel: options.limits.fuel,
                memory_limit_bytes: options.limits.memory_bytes,
                seed: options.seed,
                observer,
                host: inputs.host,
                ..Options::default()
            },
        );
        let arguments = inputs.arguments.into_iter();
        let arguments = arguments.map(|a| a.into_iter().map(Value::from_literal).collect()).collect();
        let start = Instant::now();
        match interpreter.run_devices(options.devices, arguments) {
            Ok(devices) => {
                let time = start.elapsed();
                let fuel = devices.iter().map(|(_, stats)| stats.fuel).sum();
                let peak_bytes = devices.iter().map(|(_, stats)| stats.peak_bytes).max().unwrap_or(0);
                let results = devices.into_iter().map(|(value, _)| {
                    let mut results = Vec::new();
                    flatten(value.into_literal(), &mut results);
                    results
                });
                Outcome::Finished(Finished { results: results.collect(), fuel, peak_bytes, time })
            }
            Err(e) => {
                let diagnostic = e.to_diagnostic();
                match e.kind {
                    ErrorKind::Unsupported => Outcome::Unsupported(diagnostic),
                    ErrorKind::Trap | ErrorKind::OutOfFuel | ErrorKind::OutOfMemory => {
                        Outcome::Trap(diagnostic)
                    }
                    ErrorKind::Arguments => Outcome::WrongInputs(diagnostic),
                }
            }
        }
    }
}

/// The exit code that a failed run means.
pub fn exit_of(kind: ErrorKind) -> Exit {
    match kind {
        ErrorKind::Unsupported => Exit::Unsupported,
        ErrorKind::Trap | ErrorKind::OutOfFuel | ErrorKind::OutOfMemory => Exit::Trap,
        ErrorKind::Arguments => Exit::Usage,
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

/// The engines there are, by the names that `--platform` takes.
pub const PLATFORMS: &[&str] = &["interpreter"];

/// Names of platforms that people know from XLA and that are not built into this program.
const KNOWN_ELSEWHERE: &[&str] = &["cpu", "gpu", "cuda", "rocm", "tpu", "host", "ptx"];

/// The engine of this name. Errors: wrong usage with "did you mean", or unsupported for a platform that is known but not there.
pub fn by_name(name: &str) -> Result<&'static dyn Engine, Failure> {
    let lower = name.to_ascii_lowercase();
    if lower == "interpreter" {
        return Ok(&InterpreterEngine);
    }
    let base = lower.split(':').next().unwrap_or("");
    if KNOWN_ELSEWHERE.contains(&base) {
        return Err(Failure::new(
            Exit::Unsupported,
            format!("platform `{name}` is not built into this program; it has: {}", PLATFORMS.join(", ")),
        ));
    }
    let hint =
        match hlo::diag::suggest::did_you_mean(&lower, PLATFORMS.iter().chain(KNOWN_ELSEWHERE).copied()) {
            Some(s) => format!("; did you mean `{s}`?"),
            None => format!("; there is: {}", PLATFORMS.join(", ")),
        };
    Err(Failure::usage(format!("there is no platform `{name}`{hint}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn platforms_are_found_refused_or_guessed() {
        assert_eq!(by_name("Interpreter").map(|e| e.name().to_owned()).unwrap(), "interpreter");
        let failure = |name: &str| by_name(name).map(|_| ()).unwrap_err();
        assert_eq!(failure("cpu:O3").exit, Exit::Unsupported);
        assert_eq!(
            failure("cpu").message,
            "platform `cpu` is not built into this program; it has: interpreter"
        );
        let f = failure("interpretter");
        assert_eq!(
            (f.exit, &*f.message),
            (Exit::Usage, "there is no platform `interpretter`; did you mean `interpreter`?")
        );
        assert_eq!(failure("abacus").message, "there is no platform `abacus`; there is: interpreter");
    }
}
