//! `hlo ptx mutants`: how many wrong kernels judging finds.

use std::path::PathBuf;

use clap::Args;

use crate::cli::ui::Ui;
use hlo_system::exit::{Exit, Failure};
use hlo_triage::mutants::{Plan, measure};

/// Options of `hlo ptx mutants`.
#[derive(Args, Debug)]
pub(super) struct Options {
    /// A folder of programs that XLA:GPU dumped, a folder each
    #[arg(value_name = "DIR")]
    dumps: PathBuf,
    /// A folder of cases of the same names, whose inputs.npz the programs get; made inputs if there is none
    #[arg(long, value_name = "DIR")]
    cases: Option<PathBuf>,
    /// Which changes
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    /// How many changes that alter a result
    #[arg(long, value_name = "N", default_value_t = 100)]
    count: usize,
    /// Only programs whose names contain this
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    only: String,
    /// The share of these that must be found, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 95)]
    least: usize,
}

pub(super) fn run(options: &Options, ui: &Ui) -> Result<Exit, Failure> {
    let plan = Plan {
        dumps: options.dumps.clone(),
        cases: options.cases.clone(),
        only: options.only.clone(),
        seed: options.seed,
        count: options.count,
    };
    let summary = measure(&plan, &mut |l| {
        if ui.json {
            return ui.object(l);
        }
        ui.line(format!(
            "{}/{}:{}: {}: `{}` -> `{}`: {}",
            l.program, l.file, l.line, l.kind, l.from, l.to, l.verdict
        ));
        l.said.lines().take(2).for_each(|said| ui.detail(format!("  {said}")));
    })?;
    if ui.json {
        ui.object(&summary);
    } else {
        for (kind, (found, all)) in &summary.kinds {
            ui.line(format!("{kind}: {found} of {all} found"));
        }
        ui.line(format!(
            "{} of {} changes that alter a result are found and named; {} alter none, {} do not verify",
            summary.found, summary.effective, summary.without_effect, summary.refused
        ));
    }
    if summary.effective < options.count {
        return Err(Failure::usage("there are too few changes that alter a result"));
    }
    let is_enough = summary.found * 100 >= summary.effective * options.least;
    Ok(if is_enough { Exit::Ok } else { Exit::Differs })
}
