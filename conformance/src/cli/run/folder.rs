//! `hlo run DIR` of a folder that is no case: every program below it, a line each.

use std::sync::Arc;

use serde::Serialize;

use super::Options;
use crate::cli::test::{list_others, one_line};
use crate::cli::ui::{Ui, closed};
use crate::corpus::{CaseReport, CorpusOptions, Status, Work, items, run_all};
use crate::folder::{Folder, no_program, scan};
use hlo_engines::engine::{self, Limits, RunOptions};
use hlo_system::exit::{Exit, Failure};
use hlo_triage::case::Form;

/// One program, for machines.
#[derive(Serialize)]
struct Object<'a> {
    file: &'a str,
    ok: bool,
    exit: u8,
    #[serde(flatten)]
    report: &'a CaseReport,
}

/// Runs all programs of a folder.
pub(super) fn run(root: &str, options: &Options, ui: &Ui) -> Result<Exit, Failure> {
    for (flag, given) in [
        ("--inputs", options.inputs.is_some()),
        ("--output", options.output.is_some()),
        ("--xla_dump_to", options.dump.dumps().is_some()),
        ("--save-inputs", options.save_inputs.is_some()),
        ("--expected", options.expected.is_some()),
        ("--infeed", options.infeed.is_some()),
        ("--outfeed", options.outfeed.is_some()),
        ("--module", options.read.reading().pick.is_some()),
        ("--no-verify", options.risk.at_risk()),
        ("--replicas", options.replicas.is_some()),
        ("--partitions", options.partitions.is_some()),
    ] {
        if given {
            return Err(Failure::usage(format!(
                "{flag} takes one program, and {root} is a folder of several"
            )));
        }
    }
    if let Some(flag) = options.watch.one_program() {
        return Err(Failure::usage(format!("{flag} takes one program, and {root} is a folder of several")));
    }
    if options.reference_platform.as_ref().is_some_and(|name| name != "interpreter") {
        let why = "the programs of a folder are compared with the interpreter";
        return Err(Failure::usage(format!("--reference-platform: {why}")));
    }
    let roots = [root.to_owned()];
    let Folder { cases, programs, others } = scan(&roots)?;
    if cases.is_empty() && programs.is_empty() {
        return Err(no_program(&roots, &others));
    }
    let default = if cfg!(feature = "llvm") { "cpu" } else { "interpreter" };
    let platform = options.platform.as_deref().unwrap_or(default);
    let platform = if options.fallback { engine::with_fallback(platform) } else { platform.to_owned() };
    let limits = Limits { fuel: options.limits.fuel, memory_bytes: options.limits.memory_limit };
    let plain = CorpusOptions::new(engine::by_name(&platform)?);
    let corpus = CorpusOptions {
        time_limit: options.timeout.unwrap_or(plain.time_limit),
        run: RunOptions { limits, seed: options.seed, ..RunOptions::default() },
        policy: options.judging.policy(None)?,
        ..plain
    };
    let form = if options.form == Form::Module { Form::Both } else { options.form };
    let work: Vec<Work> = (items(&cases, form).into_iter().map(Work::Case))
        .chain(programs.into_iter().map(|p| Work::Program(Arc::new(p))))
        .collect();
    let mut exit = Exit::Ok;
    let bar = ui.bar(work.len() as u64);
    let mut failed = 0;
    run_all(&work, &corpus, |report| {
        if closed() {
            return;
        }
        exit = exit.first_failure(report.exit());
        failed += usize::from(report.status == Status::Fail);
        bar.suspend(|| {
            if ui.json {
                let (ok, exit) = (report.status != Status::Fail, report.exit().code());
                ui.object(&Object { file: &report.case, ok, exit, report: &report });
            } else if report.status == Status::Fail || !ui.quiet {
                ui.line(one_line(ui, &report));
            }
        });
        bar.inc(1);
    });
    bar.finish_and_clear();
    list_others(ui, &others);
    if !ui.json {
        let n = work.len();
        let end = format!("{n} program{}, {failed} failed", if n == 1 { "" } else { "s" });
        ui.line(if failed == 0 { ui.good(&end) } else { ui.bad(&end) });
    }
    Ok(exit)
}
