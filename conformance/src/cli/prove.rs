//! `hlo prove`: shows that recorded values which differ from ours are the ones in error.

use clap::Args;
use rayon::prelude::*;
use serde::Serialize;

use super::LimitOptions;
use super::ui::Ui;
use crate::corpus::{items, short_name};
use crate::folder;
use hlo_engines::engine::{Limits, RunOptions};
use hlo_system::exit::{Exit, Failure};
use hlo_system::guard::guarded;
use hlo_triage::case::{Case, Form};
use hlo_triage::prove::{Proof, prove};

/// Options of `hlo prove`.
#[derive(Args, Debug)]
#[command(after_help = "\
Of each case whose program is elementwise and whose recorded results differ in any bit from ours, every rounding of our run
is evaluated in arbitrary precision. Other programs are left out.

Examples:
  hlo prove ../shared/corpus/jax
  hlo prove conformance/corpus --form both --json")]
pub(crate) struct Options {
    /// Folders: every folder below with a case.json is a case
    #[arg(required = true, value_name = "DIR")]
    folders: Vec<String>,
    /// Which form of each program
    #[arg(long, value_enum, default_value_t = Form::Module, value_name = "FORM")]
    form: Form,
    #[command(flatten)]
    pub(super) limits: LimitOptions,
}

#[derive(Serialize)]
struct Object {
    case: String,
    form: &'static str,
    differing: u64,
    worst_ulp: u64,
    proved: u64,
    holds: bool,
    wrong: Vec<String>,
    unproved: Vec<String>,
}

pub(crate) fn run(options: &Options, ui: &Ui) -> Result<Exit, Failure> {
    let folders = folder::find_cases(&options.folders)?;
    let items = items(&folders, options.form);
    let limits = Limits { fuel: options.limits.fuel, memory_bytes: options.limits.memory_limit };
    let run_options = RunOptions { limits, ..RunOptions::default() };
    let bar = ui.bar(items.len() as u64);
    let found: Vec<_> = items
        .par_iter()
        .map(|item| {
            let name = item.folder.to_string_lossy().into_owned();
            let proof = guarded(&format!("proving {name}"), || {
                prove(&Case::open(&item.folder)?, item.optimized, &run_options)
            });
            bar.inc(1);
            (name, item.form(), proof)
        })
        .collect();
    bar.finish_and_clear();
    let (mut differ, mut proved, mut failed, mut roundings) = (0u64, 0u64, 0u64, 0u64);
    for (name, form, proof) in found {
        match proof {
            // `hlo test` tells of cases that do not run.
            Err(_) => failed += 1,
            Ok(None) => {}
            Ok(Some(proof)) => {
                differ += 1;
                proved += u64::from(proof.holds());
                roundings += proof.proved;
                show(ui, &name, form, proof);
            }
        }
    }
    if !ui.json {
        ui.line(format!(
            "{differ} elementwise programs differ from recorded values; {proved} proved right by {roundings} roundings in \
             arbitrary precision, {failed} cases do not run"
        ));
    }
    Ok(if differ == proved { Exit::Ok } else { Exit::Differs })
}

fn show(ui: &Ui, name: &str, form: &'static str, proof: Proof) {
    if ui.json {
        ui.object(&Object {
            case: name.to_owned(),
            form,
            differing: proof.differing,
            worst_ulp: proof.worst_ulp,
            proved: proof.proved,
            holds: proof.holds(),
            wrong: proof.wrong,
            unproved: proof.unproved,
        });
        return;
    }
    let verdict = match (proof.wrong.is_empty(), proof.unproved.is_empty()) {
        (true, true) => ui.good("proved"),
        (true, false) => ui.bad("open"),
        (false, _) => ui.bad("WRONG"),
    };
    let ulp =
        if proof.worst_ulp == u64::MAX { "a NaN".to_owned() } else { format!("{} ulp", proof.worst_ulp) };
    let (short, n) = (short_name(name), proof.differing);
    ui.detail(format!(
        "{verdict} {short} ({form}): {n} elements, up to {ulp}; {} roundings right",
        proof.proved
    ));
    for line in proof.wrong.iter().chain(&proof.unproved).take(5) {
        ui.line(format!("  {line}"));
    }
}
