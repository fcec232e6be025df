//! `hlo test`: runs all recorded cases and programs below folders.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use rustc_hash::FxHashSet;
use serde::Serialize;

use super::fuzz::parse_shard;
use super::judging::JudgingOptions;
use super::ui::Ui;
use super::{CustomCallOptions, LimitOptions, values};
use crate::corpus::{
    CaseReport, CorpusOptions, ENVIRONMENT, ExpectedFailures, Status, Summary, Work, items, run_all,
    short_name,
};
use crate::folder::kind::Kind;
use crate::folder::{Folder, no_program, scan, summary};
use crate::mlir_tests::{TestFunction, tests_of};
use hlo_engines::engine::{self, Limits, RunOptions};
use hlo_system::exit::{Exit, Failure};
use hlo_system::files::describe;
use hlo_triage::case::Form;
use hlo_triage::report::grouped;

/// Options of `hlo test`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// Folders of cases (with a case.json), of programs, or of what a compiler dumped
    #[arg(required = true, value_name = "DIR")]
    folders: Vec<String>,
    /// What runs the programs
    #[arg(long, default_value = "interpreter", value_name = "NAME")]
    platform: String,
    /// The interpreter executes what the platform `cpu` does not compile
    #[arg(long)]
    fallback: bool,
    /// Which form of each program
    #[arg(long, value_enum, default_value_t = Form::Module, value_name = "FORM")]
    form: Form,
    /// Only cases whose path contains this
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    /// Only cases I, I + N, I + 2 N, ... in the order of their paths
    #[arg(long, value_name = "I/N", value_parser = parse_shard)]
    shard: Option<(u64, u64)>,
    /// Cases at once, at most 1,024; 0 is one for each processor
    #[arg(long, default_value_t = 0, value_name = "N", hide_default_value = true, value_parser = values::threads)]
    jobs: usize,
    /// Seconds for one case
    #[arg(long, default_value = "120", value_name = "S", value_parser = values::time)]
    time_limit: Duration,
    /// A list of cases known to fail: `form path  reason`
    #[arg(long, value_name = "FILE")]
    expected_failures: Option<String>,
    #[command(flatten)]
    judging: JudgingOptions,
    #[command(flatten)]
    pub(super) limits: LimitOptions,
    #[command(flatten)]
    custom_calls: CustomCallOptions,
}

const EXAMPLES: &str = "\
Examples:
  hlo test ../shared/corpus/jax --form both
  hlo test cases --filter dot_general --json

Functions of StableHLO that check themselves (check.expect_eq and the like) are cases, too.
A case is a folder with module.hlo, inputs.npz, expected.npz and case.json. Of what is no case, each program runs on
inputs.npz beside it or on made inputs, and must agree with the interpreter; of dumps, the forms of a module with each other.";

/// Failures shown in the table; the others are counted.
const MAX_SHOWN: usize = 200;

pub(crate) fn run(options: &Options, ui: &Ui) -> Result<Exit, Failure> {
    let platform = &options.platform;
    let engine = if options.fallback { engine::with_fallback(platform) } else { platform.clone() };
    let engine = engine::by_name(&engine)?;
    let expected = match &options.expected_failures {
        None => ExpectedFailures::default(),
        Some(path) => {
            let text = std::fs::read_to_string(path)
                .map_err(|e| Failure::usage(format!("{path}: cannot be read: {}", describe(&e))))?;
            ExpectedFailures::parse(&text).map_err(|f| Failure::usage(format!("{path}: {f}")))?
        }
    };
    let Folder { cases, mut programs, others } = scan(&options.folders)?;
    let mut items: Vec<Work> = items(&cases, options.form).into_iter().map(Work::Case).collect();
    // A file of functions that check themselves is these functions.
    let mut tests = Vec::new();
    let mut seen = FxHashSet::default();
    programs.retain(|listed| {
        let path = &listed.program.path;
        let found = if seen.insert(path.clone()) { tests_of(path) } else { Vec::new() };
        let is_test = !found.is_empty() || tests.iter().any(|t: &TestFunction| t.path == *path);
        tests.extend(found);
        !is_test
    });
    items.extend(programs.into_iter().map(|p| Work::Program(Arc::new(p))));
    items.extend(tests.into_iter().map(|t| Work::Test(Arc::new(t))));
    if items.is_empty() {
        return Err(no_program(&options.folders, &others));
    }
    if let Some(filter) = &options.filter {
        items.retain(|item| item.name().contains(filter.as_str()));
    }
    if let Some((shard, shards)) = options.shard {
        let mut i = 0..;
        items.retain(|_| i.next().is_some_and(|i: u64| i % shards == shard));
    }
    if items.is_empty() && options.shard.is_none() {
        let folders = options.folders.join(", ");
        return Err(Failure::usage(format!("no program that the filter lets through in {folders}")));
    }
    options.custom_calls.load()?;
    let corpus = CorpusOptions {
        run: RunOptions {
            limits: Limits { fuel: options.limits.fuel, memory_bytes: options.limits.memory_limit },
            ..RunOptions::default()
        },
        time_limit: options.time_limit,
        jobs: options.jobs,
        policy: options.judging.policy(None)?,
        custom_calls: options.custom_calls.custom_call.clone(),
        ..CorpusOptions::new(engine)
    };
    let bar = ui.bar(items.len() as u64);
    let mut counts = Summary::default();
    let mut failures: Vec<CaseReport> = Vec::new();
    run_all(&items, &corpus, |report| {
        let report = expected.apply(report);
        counts.add(&report);
        bar.inc(1);
        bar.set_message(format!("{} failed   {:.40}", counts.failed, short_name(&report.case)));
        if ui.json {
            bar.suspend(|| ui.object(&report));
        }
        if report.status == Status::Fail {
            failures.push(report);
        }
    });
    bar.finish_and_clear();
    if !ui.json {
        print_failures(ui, &failures);
        print_opcodes(ui, &counts);
    }
    // Shards share the files that are no programs: the first one tells of them.
    if options.shard.is_none_or(|(shard, _)| shard == 0) {
        list_others(ui, &others);
    }
    print_end(ui, &counts);
    // What was not run is no failure of the engine; some cases are not judged then, whatever the others.
    let lacks = failures.iter().any(|f| f.kind == ENVIRONMENT);
    Ok(match counts.failed {
        0 => Exit::Ok,
        _ if lacks => Exit::Trap,
        _ => Exit::Differs,
    })
}

/// A program in a line: its name, how large it is, how it ended.
pub(crate) fn one_line(ui: &Ui, report: &CaseReport) -> String {
    let n = report.instructions;
    let size = match n {
        0 => String::new(),
        1 => "1 instruction, ".to_owned(),
        n => format!("{} instructions, ", grouped(n as u64)),
    };
    let form = if report.form == "optimized" { " (optimized)" } else { "" };
    let first = |text: &str| text.lines().next().unwrap_or_default().to_owned();
    let (verdict, why) = match report.status {
        Status::Pass => (ui.good("ok"), report.note.clone()),
        Status::Skip => ("skipped".to_owned(), first(&report.reason)),
        Status::Fail => (ui.bad(failure(report.kind)), first(&report.reason)),
    };
    let why = if why.is_empty() { why } else { format!("   {why}") };
    format!("{}{form}: {size}{verdict}{why}", report.case)
}

/// A kind of failure in words.
fn failure(kind: &'static str) -> &'static str {
    match kind {
        "tolerance" => "differs",
        "case" => "cannot be run",
        "parse" => "cannot be parsed",
        "verify" => "does not verify",
        "trap" => "stopped",
        "error" => "internal error",
        other => other,
    }
}

/// Says which files are no programs: a line, or each of them in detail.
pub(crate) fn list_others(ui: &Ui, others: &[(PathBuf, Kind)]) {
    if ui.json {
        #[derive(Serialize)]
        struct Object<'a> {
            file: &'a str,
            program: bool,
            read: bool,
            what: &'static str,
        }
        for (path, kind) in others {
            let read = !matches!(kind, Kind::Unread(_) | Kind::Unknown);
            ui.object(&Object { file: &path.to_string_lossy(), program: false, read, what: kind.describe() });
        }
        return;
    }
    let lines = summary(others);
    if !lines.is_empty() {
        let n = others.iter().filter(|(_, kind)| *kind != Kind::Arrays).count();
        let files = if n == 1 { "file is no program".to_owned() } else { "files are no programs".to_owned() };
        ui.detail(format!("{} {files}: {}", grouped(n as u64), lines.join(", ")));
    }
    if ui.verbose {
        others
            .iter()
            .for_each(|(path, kind)| ui.detail(format!("  {}: {}", path.display(), kind.describe())));
    }
}

fn print_failures(ui: &Ui, failures: &[CaseReport]) {
    if failures.is_empty() {
        return;
    }
    let width = failures.iter().map(|f| short_name(&f.case).len()).max().unwrap_or(0).clamp(4, 60);
    ui.line(format!("  {:width$}  {:9}  {:11}  why", "case", "form", "status"));
    for f in failures.iter().take(MAX_SHOWN) {
        let reason: String = f.reason.lines().next().unwrap_or("").chars().take(160).collect();
        ui.line(format!("  {:width$}  {:9}  {:11}  {reason}", short_name(&f.case), f.form, f.kind));
    }
    if failures.len() > MAX_SHOWN {
        ui.line(format!("  ... and {} more", failures.len() - MAX_SHOWN));
    }
}

fn print_opcodes(ui: &Ui, summary: &Summary) {
    let rates = summary.by_opcode();
    let incomplete: Vec<_> = rates.iter().filter(|r| r.1 < r.2).collect();
    ui.detail(format!(
        "pass rate by opcode: {:.2}% in the mean over {} opcodes{}",
        summary.mean_rate() * 100.0,
        rates.len(),
        if incomplete.is_empty() { "" } else { "; lowest first:" }
    ));
    let shown = if ui.verbose { incomplete.len() } else { 20 };
    for (op, pass, n) in incomplete.iter().take(shown) {
        ui.detail(format!("  {:>6.1}%  {pass:>4} of {n:<4}  {op}", *pass as f64 * 100.0 / *n as f64));
    }
    if incomplete.len() > shown {
        ui.detail(format!("  ... and {} more below 100%", incomplete.len() - shown));
    }
}

/// The last line. With `--json` it goes to standard error, so that standard output has only cases.
fn print_end(ui: &Ui, summary: &Summary) {
    let end = format!("{} passed, {} failed, {} skipped", summary.passed, summary.failed, summary.skipped);
    if ui.json {
        if !ui.quiet {
            ui.raw_error(&format!("mean pass rate over opcodes {:.2}%\n", summary.mean_rate() * 100.0));
            for (op, pass, n) in summary.by_opcode().iter().filter(|r| r.1 < r.2) {
                ui.raw_error(&format!(
                    "  {:>6.1}%  {pass:>4} of {n:<4}  {op}\n",
                    *pass as f64 * 100.0 / *n as f64
                ));
            }
        }
        ui.raw_error(&format!("{end}\n"));
        return;
    }
    if summary.failed > 0 {
        let kinds: Vec<String> = summary.kinds.iter().map(|(k, n)| format!("{n} {k}")).collect();
        ui.detail(format!("failed: {}", kinds.join(", ")));
    }
    ui.detail(format!("{} of {} with the recorded bits", summary.bit_exact, summary.passed + summary.failed));
    ui.line(end);
}
