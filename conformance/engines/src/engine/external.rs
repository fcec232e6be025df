//! Other programs as engines: a command a run, a server for many runs, and this program itself as a child.
//!
//! **Invariants:** whatever the other program does (crash, hang, endless output, results of another shape or
//! that are no file), the run ends within the time limit with an outcome that says so, and nothing of it is
//! left behind ([`hlo_system::process`], [`hlo_system::scratch`]). What this machine lacks (a folder for
//! temporary files, space on the disk, processes) is told apart: it is no failure of the engine.
//!
//! A command is run by `sh -c` with `{module}`, `{inputs}` and `{output}` replaced by paths
//! (docs/harness.md); one that names none of them gets all three as arguments. It writes `out0, out1, ...`
//! and ends with 0; with 5 if it does not support the program; with 6 if the program trapped. A server
//! ([`Answer`]) is asked `{"module": PATH, "inputs": PATH, "output": PATH, "replicas": N, "partitions": N}`.

use std::fmt::Debug;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hlo::diag::codes;
use hlo::{ArrayLiteral, Diagnostic, Module, Span};
use hlo_interp::{Devices, Observer};
use hlo_system::exit::Exit;
use hlo_system::files::describe;
use hlo_system::npz::{self, Npz};
use hlo_system::process::{self, Launch, Process, Tail};
use hlo_system::scratch::{self, Scratch};
use serde::{Deserialize, Serialize};

use super::recorded::read_results;
pub use super::server::{Answer, answered};
use super::server::{Server, said};
use super::{Allowances, Engine, Executable, Finished, Inputs, Outcome, RunOptions, named, not_observable};

/// The default time limit of a run.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// The protocol of the other program.
#[derive(Debug)]
enum Way {
    /// A command a run.
    Command(String),
    /// A process that serves run after run, started when it is wanted.
    Server(String, Mutex<Option<Server>>),
    /// This program with this engine.
    Child(String),
}

/// Another program.
#[derive(Debug)]
pub struct ExternalEngine {
    name: String,
    way: Way,
    allowances: Allowances,
    timeout: Duration,
}

impl ExternalEngine {
    /// A command a run.
    pub fn command(command: &str, timeout: Duration) -> Self {
        let way = Way::Command(command.to_owned());
        Self { name: format!("exec:{command}"), way, allowances: Allowances::LOOSE, timeout }
    }

    /// A server.
    pub fn server(command: &str, timeout: Duration) -> Self {
        let way = Way::Server(command.to_owned(), Mutex::new(None));
        Self { name: format!("serve:{command}"), way, allowances: Allowances::LOOSE, timeout }
    }

    /// This program with the engine `spec`, whose liberties are known.
    pub fn child(spec: &str, allowances: Allowances, timeout: Duration) -> Self {
        Self { name: format!("child:{spec}"), way: Way::Child(spec.to_owned()), allowances, timeout }
    }
}

impl Engine for ExternalEngine {
    fn name(&self) -> &str {
        &self.name
    }

    fn allowances(&self) -> Allowances {
        self.allowances
    }

    fn supports(&self, _module: &Module, _devices: Devices) -> Result<(), Diagnostic> {
        Ok(())
    }

    fn ends_by_itself(&self) -> bool {
        true
    }

    fn compile<'m>(&'m self, module: &'m Module) -> Result<Box<dyn Executable + 'm>, Outcome> {
        Ok(Box::new(External { engine: self, module }))
    }
}

struct External<'m> {
    engine: &'m ExternalEngine,
    module: &'m Module,
}

/// The files of a run.
struct Files {
    folder: Scratch,
    module: PathBuf,
    inputs: PathBuf,
    output: PathBuf,
}

impl Files {
    fn new() -> Result<Self, Outcome> {
        let folder = Scratch::new().map_err(|e| {
            let parent = scratch::parent();
            lacks(&format!("no folder for the run's files in {} (TMPDIR)", parent.display()), &e)
        })?;
        let path = |name| folder.path().join(name);
        let (module, inputs, output) = (path("module.hlo"), path("inputs.npz"), path("output.npz"));
        Ok(Self { folder, module, inputs, output })
    }
}

/// That this machine lacks something, which says nothing of the engine.
fn lacks(what: &str, e: &io::Error) -> Outcome {
    Outcome::lacking(format!("{what}: {}", describe(e)))
}

impl Executable for External<'_> {
    fn run(&self, inputs: Inputs, options: &RunOptions, observer: Option<Arc<dyn Observer>>) -> Outcome {
        if observer.is_some() {
            return not_observable(&self.engine.name);
        }
        match self.results(inputs, options) {
            Ok(finished) => Outcome::Finished(finished),
            Err(outcome) => outcome,
        }
    }
}

impl External<'_> {
    fn results(&self, inputs: Inputs, options: &RunOptions) -> Result<Finished, Outcome> {
        let files = Files::new()?;
        self.write(&files, inputs)?;
        let start = Instant::now();
        match &self.engine.way {
            Way::Command(command) => self.command(shell(command, &files, options), &files)?,
            Way::Child(spec) => self.command(child(spec, &files, options), &files)?,
            Way::Server(command, server) => {
                let mut server = server.lock().unwrap_or_else(PoisonError::into_inner);
                ask(&mut server, command, &files, options, self.engine.timeout)
                    .map_err(|outcome| self.to_blame(outcome, &files))?;
            }
        }
        let time = start.elapsed();
        let results = Npz::open(&files.output, options.limits.memory_bytes)
            .and_then(|mut npz| read_results(self.module, &mut npz, options.devices));
        match results {
            Ok(results) => Ok(Finished { results, time, ..Finished::default() }),
            Err(failure) if failure.exit == Exit::Trap => Err(Outcome::exhausted(failure.message)),
            Err(failure) => {
                let what = "the engine gave other results than the program has";
                // The same failure has the same words, wherever its files were.
                let why = failure.message.replace(&*files.output.to_string_lossy(), "{output}");
                Err(self.to_blame(Outcome::crashed(format!("{what}: {why}")), &files))
            }
        }
    }

    fn write(&self, files: &Files, inputs: Inputs) -> Result<(), Outcome> {
        let text = hlo::print::print_module(self.module, &hlo::print::PrintOptions::source(self.module));
        std::fs::write(&files.module, text).map_err(|e| lacks("the run's module cannot be written", &e))?;
        let arrays: Vec<Vec<ArrayLiteral>> = inputs
            .arguments
            .into_iter()
            .map(|device| {
                let mut arrays = Vec::new();
                device.into_iter().for_each(|l| super::flatten(l, &mut arrays));
                arrays
            })
            .collect();
        npz::write(&files.inputs, &named("arg", &arrays)).map_err(|f| Outcome::lacking(f.message))
    }

    /// What a failed run means: nothing for the engine, if the disk is full on which it had to write its
    /// results.
    fn to_blame(&self, outcome: Outcome, files: &Files) -> Outcome {
        match (&outcome, files.folder.check()) {
            (Outcome::Crashed(_), Err(e)) => lacks("the run's results cannot be written", &e),
            _ => outcome,
        }
    }

    /// Runs a command to its end or the time limit.
    fn command(&self, launch: io::Result<Launch>, files: &Files) -> Result<(), Outcome> {
        let name = &self.engine.name;
        let start = || -> io::Result<(Process, Option<Tail>)> {
            let mut launch = launch?;
            launch.command().stderr(Stdio::piped());
            let mut process = launch.start()?;
            let errors = process.stderr().map(|from| Tail::last(from, MAX_STDERR_BYTES)).transpose()?;
            Ok((process, errors))
        };
        let cannot = |e: &io::Error| lacks(&format!("{name} cannot be started"), e);
        let (mut process, errors) = start().map_err(|e| cannot(&e))?;
        let Some(status) = process.wait(self.engine.timeout).map_err(|e| cannot(&e))? else {
            return Err(Outcome::timed_out(name, self.engine.timeout));
        };
        if status.success() {
            return Ok(());
        }
        let text = errors.map(Tail::last_lines).unwrap_or_default();
        let message = if text.is_empty() {
            format!("the engine ended with {status}")
        } else {
            format!("the engine ended with {status}: {text}")
        };
        let is_ours = matches!(self.engine.way, Way::Child(_));
        Err(match status.code() {
            Some(5) => {
                Outcome::Unsupported(Diagnostic::error(codes::UNSUPPORTED_OPCODE, Span::NONE, message))
            }
            // Its arguments are right, so that it could not read or write its files; and it says itself what
            // it lacks.
            Some(2) if is_ours => Outcome::lacking(message),
            Some(6) if is_ours && says(&text, codes::ENVIRONMENT_FAILED) => Outcome::lacking(message),
            Some(6) if is_ours && says(&text, codes::OUT_OF_MEMORY) => Outcome::exhausted(message),
            Some(6) => Outcome::Trap(Diagnostic::error(codes::ENGINE_FAILED, Span::NONE, message)),
            _ => self.to_blame(Outcome::crashed(message), files),
        })
    }
}

/// The maximum number of bytes of standard error that are kept.
const MAX_STDERR_BYTES: usize = 64 << 10;

/// Whether this program's errors have a code.
fn says(errors: &str, code: codes::Code) -> bool {
    errors.contains(&format!("error[{}]", code.as_str()))
}

fn shell(command: &str, files: &Files, options: &RunOptions) -> io::Result<Launch> {
    let substitutions: [(&str, &Path); 3] =
        [("{module}", &files.module), ("{inputs}", &files.inputs), ("{output}", &files.output)];
    let text = process::filled(command, &substitutions, "{module} {inputs} {output}");
    let mut launch = Launch::shell(text, false, Some(files.folder.root().path()))?;
    let devices = options.devices;
    launch.command().env("HLO_REPLICAS", devices.replicas().to_string());
    launch.command().env("HLO_PARTITIONS", devices.partitions().to_string());
    Ok(launch)
}

fn child(spec: &str, files: &Files, options: &RunOptions) -> io::Result<Launch> {
    let mut launch = Launch::new(process::this_program()?, false, Some(files.folder.root().path()))?;
    let command = launch.command();
    command.arg("run").arg(&files.module).args(["--platform", spec, "--quiet"]);
    // Comparing is the parent's business.
    command.args(["--reference-platform", "none"]);
    command.arg("--inputs").arg(&files.inputs).arg("--output").arg(&files.output);
    command.args(["--replicas", &options.devices.replicas().to_string()]);
    command.args(["--partitions", &options.devices.partitions().to_string()]);
    command.args(["--seed", &options.seed.to_string()]);
    command.args(["--memory-limit", &options.limits.memory_bytes.to_string()]);
    #[cfg(feature = "llvm")]
    let configuration = super::cpu::machine().configuration;
    #[cfg(feature = "llvm")]
    if let Some(isa) = configuration.max_isa() {
        command.args(["--cpu-max-isa", isa.name()]);
    }
    #[cfg(feature = "llvm")]
    command.args(["--cpu-tuning", configuration.tuning().name]);
    #[cfg(feature = "llvm")]
    if configuration.size_divisor().get() > 1 {
        command.args(["--cpu-size-divisor", &configuration.size_divisor().to_string()]);
    }
    if let Some(fuel) = options.limits.fuel {
        command.args(["--fuel", &fuel.to_string()]);
    }
    command.args([
        "--accumulate",
        match options.accumulate {
            hlo_interp::Accumulate::Exact => "exact",
            hlo_interp::Accumulate::Region => "region",
        },
    ]);
    Ok(launch)
}

/// The line that asks a server for a run.
#[derive(Serialize, Deserialize)]
pub struct Ask {
    /// The file of the program.
    pub module: String,
    /// The `.npz` file of its inputs.
    pub inputs: String,
    /// The path of the `.npz` file of its results.
    pub output: String,
    /// Replicas of the run.
    #[serde(default = "one")]
    pub replicas: i64,
    /// Partitions of the run.
    #[serde(default = "one")]
    pub partitions: i64,
}

fn one() -> i64 {
    1
}

/// Sends one run's line and waits for the answer.
fn ask(
    server: &mut Option<Server>,
    command: &str,
    files: &Files,
    options: &RunOptions,
    timeout: Duration,
) -> Result<(), Outcome> {
    let name = format!("serve:{command}");
    let [module, inputs, output] = [&files.module, &files.inputs, &files.output].map(|path| said(path));
    let (module, inputs, output) = (module?, inputs?, output?);
    let (replicas, partitions) = (options.devices.replicas().into(), options.devices.partitions().into());
    let root = files.folder.root();
    let launch = || Launch::shell(format!("exec {command}"), true, Some(root.path()));
    Server::ask(server, &name, launch, root, &Ask { module, inputs, output, replicas, partitions }, timeout)
}
