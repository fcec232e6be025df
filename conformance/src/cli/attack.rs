//! `hlo attack` (hidden): the program attacked from outside.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde::Serialize;

use super::ui::Ui;
use crate::filetest::SEPARATOR;
use hlo_attack::Attack;
use hlo_system::exit::{Exit, Failure};
use hlo_system::process::this_program;

/// Options of `hlo attack`.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  hlo attack conformance/filetests conformance/corpus --max-time 300\n  hlo attack conformance/filetests --seed 7 --first 4091 --count 1     one attack again"
)]
pub(crate) struct Options {
    /// Programs to change: HLO files, or folders of them
    #[arg(required = true, value_name = "PATH")]
    sources: Vec<PathBuf>,
    /// Which sequence of attacks
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    /// The number of the first attack
    #[arg(long, value_name = "N", default_value_t = 0)]
    first: u64,
    /// How many attacks
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    count: u64,
    /// Stop after this many seconds
    #[arg(long, value_name = "S", default_value_t = 300)]
    max_time: u64,
    /// The most seconds that one command may take
    #[arg(long, value_name = "S", default_value_t = 30)]
    deadline: u64,
    /// Attacks at once
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=256))]
    jobs: u16,
    /// Where violations go
    #[arg(long, value_name = "DIR", default_value = "attack-findings")]
    out: PathBuf,
}

#[derive(Serialize)]
struct Object<'a> {
    signature: &'a str,
    times: u64,
    number: u64,
    folder: String,
}

pub(crate) fn run(options: &Options, ui: &Ui) -> Result<Exit, Failure> {
    let program = this_program().map_err(|e| Failure::internal(format!("this program is not found: {e}")))?;
    // A link to what runs would be another program in a child.
    let program = std::fs::canonicalize(&program).unwrap_or(program);
    let attack = Attack {
        program,
        sources: options.sources.clone(),
        separator: SEPARATOR,
        seed: options.seed,
        first: options.first,
        count: options.count,
        jobs: options.jobs.into(),
        max_time: Duration::from_secs(options.max_time),
        deadline: Duration::from_secs(options.deadline),
        out: options.out.clone(),
    };
    let report = hlo_attack::run(&attack, &|line| ui.note(line)).map_err(Failure::usage)?;
    for (signature, (violation, times)) in &report.violations {
        if ui.json {
            let folder = violation.folder.display().to_string();
            ui.object(&Object { signature, times: *times, number: violation.number, folder });
        } else {
            ui.line(format!("{times} x {signature}\n    {}", violation.folder.display()));
        }
    }
    if !ui.json {
        ui.line(format!(
            "{} attacks, {} programs verify, {} commands, {} kinds of violations",
            report.attacks,
            report.verified,
            report.commands,
            report.violations.len()
        ));
    }
    Ok(if report.violations.is_empty() { Exit::Ok } else { Exit::Differs })
}
