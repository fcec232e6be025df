//! `hlo serve`: runs programs for whoever asks on standard input, as the engine `serve:` does. A plugin that aborts takes this process with it, and not the one that
//! judges it.

use std::io::{self, BufRead, Read, Write};
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use hlo::diag::codes;
use hlo_interp::Devices;
use serde::Deserialize;
use serde_json::json;

use super::LimitOptions;
use super::ui::Ui;
use crate::engine::{self, Engine, Inputs, Outcome, RunOptions, named};
use crate::exit::{Exit, Failure};
use crate::npz::{self, Npz};
use crate::{frontend, inputs};

/// The most bytes of a line that asks for a run.
const MOST_LINE_BYTES: u64 = 64 << 10;

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

/// What a line asks for.
#[derive(Deserialize)]
struct Asked {
    module: String,
    inputs: PathBuf,
    output: PathBuf,
    #[serde(default = "one")]
    replicas: i64,
    #[serde(default = "one")]
    partitions: i64,
}

fn one() -> i64 {
    1
}

pub(crate) fn run(options: &Options, _ui: &Ui) -> Result<Exit, Failure> {
    let engine = engine::by_name(&options.platform)?;
    let gone = |e: io::Error| Failure::new(Exit::Trap, format!("who asked is gone: {e}"));
    let mut lines = io::stdin().lock();
    loop {
        let mut line = Vec::new();
        // One byte more than a line may have tells a line that is too long.
        let read = lines.by_ref().take(MOST_LINE_BYTES + 1).read_until(b'\n', &mut line).map_err(gone)?;
        if read == 0 {
            return Ok(Exit::Ok);
        }
        if read as u64 > MOST_LINE_BYTES {
            return Err(Failure::usage(format!("a line of more than {MOST_LINE_BYTES} bytes")));
        }
        let answer = match serde_json::from_slice::<Asked>(&line) {
            Ok(asked) => match answered(&asked, &engine, options) {
                Ok(()) => json!({"ok": true}),
                Err((kind, error)) => json!({"error": error, "kind": kind}),
            },
            Err(e) => json!({"error": format!("the line asks for no run: {e}"), "kind": "error"}),
        };
        let mut out = io::stdout().lock();
        writeln!(out, "{answer}").and_then(|()| out.flush()).map_err(gone)?;
    }
}

/// Runs one program. Errors: the kind of the failure as servers name it, and why.
fn answered(
    asked: &Asked,
    engine: &Arc<dyn Engine>,
    options: &Options,
) -> Result<(), (&'static str, String)> {
    let failed = |f: Failure| (kind(f.exit), f.message);
    let program = frontend::load(&asked.module).map_err(|r| failed(r.failure(false)))?;
    let devices = Devices::new(asked.replicas, asked.partitions)
        .ok_or_else(|| ("error", "so many devices are not supported".to_owned()))?;
    let run = RunOptions {
        seed: options.seed,
        devices,
        limits: engine::Limits { fuel: options.limits.fuel, memory_bytes: options.limits.memory_limit },
        ..RunOptions::default()
    };
    let mut npz = Npz::open(&asked.inputs, options.limits.memory_limit).map_err(failed)?;
    let arrays = inputs::read(&program.module, &mut npz, devices).map_err(failed)?;
    let inputs = Inputs::new(&program.module, &arrays).map_err(failed)?;
    let outcome = engine.run(&program.module, inputs, &run);
    match outcome {
        Outcome::Finished(finished) => {
            npz::write(&asked.output, &named("out", &finished.results)).map_err(failed)
        }
        other => {
            let lacks = matches!(&other, Outcome::Trap(d) if d.code == codes::ENVIRONMENT_FAILED);
            let failure = other.failure();
            Err((if lacks { "error" } else { kind(failure.exit) }, failure.message))
        }
    }
}

/// What servers call a failure of this exit code.
fn kind(exit: Exit) -> &'static str {
    match exit {
        Exit::Unsupported => "unsupported",
        Exit::Trap => "trap",
        Exit::Ok | Exit::Differs | Exit::Usage | Exit::Parse | Exit::Verify | Exit::Internal => "error",
    }
}
