//! `hlo serve`: runs programs by requests on standard input, as the engine `serve:` sends them, so that a
//! plugin that aborts ends this process and not the one that judges it.

use std::io::{self, BufRead, Read, Write};
use std::path::Path;

use clap::Args;
use hlo::diag::codes;
use hlo_interp::Devices;

use super::LimitOptions;
use super::ui::Ui;
use hlo_engines::engine::external::{Answer, Ask};
use hlo_engines::engine::{self, Engine, Inputs, Limits, Outcome, RunOptions, named};
use hlo_engines::frontend;
use hlo_engines::inputs;
use hlo_system::exit::{Exit, Failure};
use hlo_system::npz::{self, Npz};

/// The most bytes of a line that asks for a run.
const MAX_LINE_BYTES: u64 = 64 << 10;

/// Options of `hlo serve`.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  hlo fuzz --engines \"interpreter,serve:hlo serve pjrt:plugin.so\"\n\nA line of standard input asks for a run, {\"module\": PATH, \"inputs\": PATH, \"output\": PATH}; each is answered with a line: {\"ok\": true}, or {\"error\": \"why\", \"kind\": \"unsupported\"} (docs/harness.md)."
)]
pub(crate) struct Options {
    /// The engine that runs the programs
    #[arg(value_name = "ENGINE")]
    platform: String,
    /// Seed of rng
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    #[command(flatten)]
    pub(super) limits: LimitOptions,
}

pub(crate) fn run(options: &Options, _ui: &Ui) -> Result<Exit, Failure> {
    let engine = engine::by_name(&options.platform)?;
    let gone = |e: io::Error| Failure::new(Exit::Trap, format!("who asked is gone: {e}"));
    let mut lines = io::stdin().lock();
    loop {
        let mut line = Vec::new();
        // One byte more than a line may have tells a line that is too long.
        let read = lines.by_ref().take(MAX_LINE_BYTES + 1).read_until(b'\n', &mut line).map_err(gone)?;
        if read == 0 {
            return Ok(Exit::Ok);
        }
        if read as u64 > MAX_LINE_BYTES {
            return Err(Failure::usage(format!("a line of more than {MAX_LINE_BYTES} bytes")));
        }
        let answer = match serde_json::from_slice::<Ask>(&line) {
            Ok(ask) => match ran(&ask, &*engine, options) {
                Ok(()) => Answer::ok(),
                Err(failure) => Answer::failed(failure.exit, failure.message),
            },
            Err(e) => Answer::failed(Exit::Usage, format!("the line asks for no run: {e}")),
        };
        let answer = serde_json::to_string(&answer).map_err(|e| gone(e.into()))?;
        let mut out = io::stdout().lock();
        writeln!(out, "{answer}").and_then(|()| out.flush()).map_err(gone)?;
    }
}

/// Runs one program, and writes its results.
fn ran(ask: &Ask, engine: &dyn Engine, options: &Options) -> Result<(), Failure> {
    let program = frontend::load(&ask.module).map_err(|r| r.failure(false))?;
    let devices = Devices::new(ask.replicas, ask.partitions)
        .ok_or_else(|| Failure::usage("so many devices are not supported"))?;
    let limits = Limits { fuel: options.limits.fuel, memory_bytes: options.limits.memory_limit };
    let run = RunOptions { seed: options.seed, devices, limits, ..RunOptions::default() };
    let mut npz = Npz::open(&ask.inputs, limits.memory_bytes)?;
    let arrays = inputs::read(&program.module, &mut npz, devices)?;
    let inputs = Inputs::new(&program.module, &arrays)?;
    match engine.run(&program.module, inputs, &run) {
        Outcome::Finished(finished) => npz::write(Path::new(&ask.output), &named("out", &finished.results)),
        // What this machine lacks is no trap of the program.
        Outcome::Trap(d) if d.code == codes::ENVIRONMENT_FAILED => {
            Err(Failure::new(Exit::Internal, d.message))
        }
        other => Err(other.failure()),
    }
}
