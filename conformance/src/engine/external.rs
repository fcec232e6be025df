//! Other programs as engines: a command a run, a server for many runs, and this program itself as a child.
//!
//! **Invariant:** whatever the other program does (crash, hang, results of another shape), the run ends with an outcome that
//! says so, and nothing of it is left behind.
//!
//! A command is run by `sh -c` with `{module}`, `{inputs}` and `{output}` replaced by paths (docs/harness.md); one that names none
//! of them gets all three as arguments. It writes `out0, out1, ...` and ends with 0; with 5 if it does not support the program;
//! with 6 if the program trapped. A server reads a JSON object a line, `{"module": PATH, "inputs": PATH, "output": PATH,
//! "replicas": N, "partitions": N}`, and answers each with a line `{"ok": true}` or `{"error": "why", "kind": "unsupported"}` (or `"trap"`,
//! `"error"`).

use std::fmt::Debug;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hlo::diag::codes;
use hlo::{ArrayLiteral, Diagnostic, Module, Span};
use hlo_interp::{Devices, Observer};
use serde::Deserialize;

use super::recorded::read_results;
use super::{Allowances, Engine, Executable, Finished, Inputs, Outcome, RunOptions, named, not_observable};
use crate::npz::{self, Npz};
use crate::process;

/// How long a run may take if nobody says otherwise.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// How the other program is spoken to.
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
    module: PathBuf,
    inputs: PathBuf,
    output: PathBuf,
}

impl Executable for External<'_> {
    fn run(&self, inputs: Inputs, options: &RunOptions, observer: Option<Arc<dyn Observer>>) -> Outcome {
        if observer.is_some() {
            return not_observable(&self.engine.name);
        }
        let folder = match tempfile::Builder::new().prefix("hlo-run-").tempdir() {
            Ok(folder) => folder,
            Err(e) => return Outcome::crashed(format!("no folder for the run's files: {e}")),
        };
        let files = Files {
            module: folder.path().join("module.hlo"),
            inputs: folder.path().join("inputs.npz"),
            output: folder.path().join("output.npz"),
        };
        if let Err(outcome) = self.write(&files, inputs) {
            return outcome;
        }
        let start = Instant::now();
        let ended = match &self.engine.way {
            Way::Command(command) => self.command(shell(command, &files, options)),
            Way::Child(spec) => match std::env::current_exe() {
                Ok(program) => self.command(child(&program, spec, &files, options)),
                Err(e) => Err(Outcome::crashed(format!("this program does not find itself: {e}"))),
            },
            Way::Server(command, server) => {
                let mut server = server.lock().unwrap_or_else(PoisonError::into_inner);
                let ended = Server::ask(&mut server, command, &files, options, self.engine.timeout);
                if ended.is_err() && server.as_mut().is_some_and(Server::is_gone) {
                    *server = None;
                }
                ended
            }
        };
        if let Err(outcome) = ended {
            return outcome;
        }
        let results = Npz::open(&files.output.to_string_lossy(), options.limits.memory_bytes)
            .and_then(|mut npz| read_results(self.module, &mut npz, options.devices));
        match results {
            Ok(results) => {
                Outcome::Finished(Finished { results, time: start.elapsed(), ..Finished::default() })
            }
            Err(failure) => Outcome::crashed(format!(
                "the engine gave other results than the program has: {}",
                failure.message
            )),
        }
    }
}

impl External<'_> {
    fn write(&self, files: &Files, inputs: Inputs) -> Result<(), Outcome> {
        let broken = |what: &str| Outcome::crashed(format!("the run's {what} cannot be written"));
        std::fs::write(
            &files.module,
            hlo::print::print_module(self.module, &hlo::print::PrintOptions::source(self.module)),
        )
        .map_err(|_| broken("module"))?;
        let arrays: Vec<Vec<ArrayLiteral>> = inputs
            .arguments
            .into_iter()
            .map(|device| {
                let mut arrays = Vec::new();
                device.into_iter().for_each(|l| super::flatten(l, &mut arrays));
                arrays
            })
            .collect();
        npz::write(&files.inputs, &named("arg", &arrays)).map_err(|f| Outcome::crashed(f.message))
    }

    /// Runs a command to its end or the time limit.
    fn command(&self, mut command: Command) -> Result<(), Outcome> {
        let name = &self.engine.name;
        process::grouped(&mut command).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|e| {
            let message = format!("{name} cannot be started: {e}");
            match e.kind() {
                ErrorKind::WouldBlock | ErrorKind::OutOfMemory => Outcome::exhausted(message),
                _ => Outcome::crashed(message),
            }
        })?;
        let errors = child.stderr.take().map(|stderr| {
            // Read aside, so that neither a full pipe nor a grandchild that keeps it open can hold this up.
            let (send, receive) = channel();
            // Without a thread it is not read, and nothing is quoted of it.
            let _ = std::thread::Builder::new().spawn(move || {
                let mut text = Vec::new();
                let _ = stderr.take(1 << 20).read_to_end(&mut text);
                let _ = send.send(text);
            });
            receive
        });
        let Some(status) = process::wait(&mut child, self.engine.timeout) else {
            return Err(Outcome::timed_out(name, self.engine.timeout));
        };
        if status.success() {
            return Ok(());
        }
        let text = errors.and_then(|r| r.recv_timeout(Duration::from_secs(1)).ok()).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.trim().lines().collect();
        let text = lines[lines.len().saturating_sub(4)..].join("\n");
        let message = if text.is_empty() {
            format!("the engine ended with {status}")
        } else {
            format!("the engine ended with {status}: {text}")
        };
        Err(match status.code() {
            Some(5) => {
                Outcome::Unsupported(Diagnostic::error(codes::UNSUPPORTED_OPCODE, Span::NONE, message))
            }
            Some(6) => Outcome::Trap(Diagnostic::error(codes::ENGINE_FAILED, Span::NONE, message)),
            _ => Outcome::crashed(message),
        })
    }
}

fn shell(command: &str, files: &Files, options: &RunOptions) -> Command {
    let places: [(&str, &Path); 3] =
        [("{module}", &files.module), ("{inputs}", &files.inputs), ("{output}", &files.output)];
    let text = process::filled(command, &places, "{module} {inputs} {output}");
    let mut command = Command::new("sh");
    command.arg("-c").arg(text);
    command.env("HLO_REPLICAS", options.devices.replicas().to_string());
    command.env("HLO_PARTITIONS", options.devices.partitions().to_string());
    command
}

fn child(program: &Path, spec: &str, files: &Files, options: &RunOptions) -> Command {
    let mut command = Command::new(program);
    command.arg("run").arg(&files.module).args(["--platform", spec, "--quiet"]);
    // Comparing is the parent's business.
    command.args(["--reference-platform", "none"]);
    command.arg("--inputs").arg(&files.inputs).arg("--output").arg(&files.output);
    command.args(["--replicas", &options.devices.replicas().to_string()]);
    command.args(["--partitions", &options.devices.partitions().to_string()]);
    command.args(["--seed", &options.seed.to_string()]);
    command.args(["--memory-limit", &options.limits.memory_bytes.to_string()]);
    #[cfg(feature = "llvm")]
    if let Some(isa) = hlo_codegen::isa::limited() {
        command.args(["--cpu-max-isa", isa.name()]);
    }
    #[cfg(feature = "llvm")]
    if let Some(divisor) = hlo_codegen::sizes::divided() {
        command.args(["--cpu-size-divisor", &divisor.to_string()]);
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
    command
}

/// A process that serves runs.
#[derive(Debug)]
struct Server {
    process: Child,
    answers: Receiver<String>,
}

/// A line of a server.
#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    ok: bool,
    #[serde(default)]
    error: String,
    #[serde(default)]
    kind: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Server {
    fn start(command: &str) -> std::io::Result<Server> {
        let mut process = Command::new("sh")
            .args(["-c", &format!("exec {command}")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let (send, answers) = channel();
        if let Some(stdout) = process.stdout.take() {
            std::thread::Builder::new().spawn(move || {
                for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                    // Whatever the program prints besides answers is not for us.
                    if line.starts_with('{') && send.send(line).is_err() {
                        break;
                    }
                }
            })?;
        }
        Ok(Server { process, answers })
    }

    fn is_gone(&mut self) -> bool {
        !matches!(self.process.try_wait(), Ok(None))
    }

    fn ask(
        server: &mut Option<Server>,
        command: &str,
        files: &Files,
        options: &RunOptions,
        timeout: Duration,
    ) -> Result<(), Outcome> {
        if server.as_mut().is_some_and(Server::is_gone) {
            *server = None;
        }
        let this = match server {
            Some(running) => running,
            None => {
                let started = Server::start(command);
                server.insert(
                    started
                        .map_err(|e| Outcome::crashed(format!("serve:{command} cannot be started: {e}")))?,
                )
            }
        };
        let line = serde_json::json!({
            "module": files.module, "inputs": files.inputs, "output": files.output,
            "replicas": options.devices.replicas(), "partitions": options.devices.partitions(),
        });
        let sent = this
            .process
            .stdin
            .as_mut()
            .is_some_and(|stdin| writeln!(stdin, "{line}").and_then(|()| stdin.flush()).is_ok());
        let answer =
            if sent { this.answers.recv_timeout(timeout) } else { Err(RecvTimeoutError::Disconnected) };
        let name = format!("serve:{command}");
        match answer {
            Ok(line) => match serde_json::from_str::<Answer>(&line) {
                Ok(Answer { ok: true, .. }) => Ok(()),
                Ok(Answer { error, .. }) if error.is_empty() => {
                    let line: String = line.chars().take(120).collect();
                    Err(Outcome::crashed(format!("{name} answered neither `ok` nor an `error`: {line}")))
                }
                Ok(Answer { error, kind, .. }) => Err(match &*kind {
                    "unsupported" => {
                        Outcome::Unsupported(Diagnostic::error(codes::UNSUPPORTED_OPCODE, Span::NONE, error))
                    }
                    "trap" => Outcome::Trap(Diagnostic::error(codes::ENGINE_FAILED, Span::NONE, error)),
                    _ => Outcome::crashed(error),
                }),
                Err(e) => Err(Outcome::crashed(format!("{name} answered what is no answer: {e}"))),
            },
            Err(RecvTimeoutError::Timeout) => {
                *server = None;
                Err(Outcome::timed_out(&name, timeout))
            }
            Err(RecvTimeoutError::Disconnected) => {
                let status = this.process.wait().map_or_else(|e| e.to_string(), |s| s.to_string());
                *server = None;
                Err(Outcome::crashed(format!("the engine ended with {status}")))
            }
        }
    }
}
