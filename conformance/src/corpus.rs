//! Runs recorded cases and programs of folders in parallel, within limits, each to one [`CaseReport`].
//!
//! **Invariants:** a case that panics, hangs or needs too much is a failed case and stops no other; reports
//! come in the order of the cases, whatever the number of jobs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use hlo::diag::codes;
use hlo_engines::engine::{Engine, RunOptions, array_name};
use hlo_engines::frontend::{Program, instruction_count, load, opcodes};
use hlo_engines::inputs;
use hlo_system::custom_calls::{self, Substitution};
use hlo_system::exit::{Exit, Failure};
use hlo_system::guard::{STACK_BYTES, guarded};
use hlo_system::memory_budget;
use hlo_threads::cancel::CancellationToken;
use hlo_triage::case::{Case, Form};
use hlo_triage::check::Check;
use hlo_triage::differential::{Kind, Settings};
use hlo_triage::feeds::Feeds;
use hlo_triage::judge::{Judge, NoVerdict, modes};
use hlo_triage::policy::Policy;
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::folder::{Listed, run_program as run_program_of_folder};
use crate::mlir_tests::{self, TestFunction};

/// The outcome of a case.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Every result is right.
    Pass,
    /// Some result is wrong, or there is none.
    Fail,
    /// It was not run.
    Skip,
}

/// The result of one form of one case.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CaseReport {
    /// Path of the case's folder, or the name of a program.
    pub case: String,
    /// `module` or `optimized` of a case; `program` of what is no case.
    pub form: &'static str,
    /// Its outcome.
    pub status: Status,
    /// Why it did not pass; empty if it did.
    pub reason: String,
    /// `tolerance`, `unsupported`, `trap`, `parse`, `verify`, `timeout`, `error`; empty if it passed.
    pub kind: &'static str,
    /// Which way to accumulate sums agreed: `exact`, `region` or `mixed`; absent if the case did not pass.
    pub accumulate: Option<&'static str>,
    /// The largest distance in ulps of the element type; absent if it is infinite or nothing ran.
    pub max_ulp: Option<u64>,
    /// Every result has the recorded bits.
    pub bit_exact: bool,
    /// Elements on which nothing could be said.
    pub undecided: u64,
    /// What each engine and form came to that agrees, and what to know of it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// Instructions of the program.
    pub instructions: usize,
    /// Time for all of it.
    pub ms: f64,
    /// Opcodes in the program.
    pub opcodes: Vec<&'static str>,
}

/// Options of running cases.
#[derive(Clone)]
pub struct CorpusOptions {
    /// The engine.
    pub engine: Arc<dyn Engine>,
    /// Limits of each case, and the seed.
    pub run: RunOptions,
    /// The most time for one case.
    pub time_limit: Duration,
    /// Cases at once; 0 is as many as there are processors.
    pub jobs: usize,
    /// Options of judging.
    pub policy: Policy,
    /// The results of unknown custom calls.
    pub custom_calls: Vec<Substitution>,
}

impl CorpusOptions {
    /// With the limits of `hlo test`.
    pub fn new(engine: Arc<dyn Engine>) -> Self {
        Self {
            engine,
            run: RunOptions::default(),
            time_limit: Duration::from_secs(120),
            jobs: 0,
            policy: Policy::default(),
            custom_calls: Vec::new(),
        }
    }
}

/// An item: a form of a case, or a program of a folder.
#[derive(Clone, PartialEq, Debug)]
pub enum Work {
    /// A form of a case.
    Case(Item),
    /// A program.
    Program(Arc<Listed>),
    /// A function of StableHLO that checks itself.
    Test(Arc<TestFunction>),
}

impl From<Item> for Work {
    fn from(item: Item) -> Work {
        Work::Case(item)
    }
}

impl Work {
    /// The path of the case, or the name of the program.
    pub fn name(&self) -> String {
        match self {
            Work::Case(item) => item.folder.to_string_lossy().into_owned(),
            Work::Program(listed) => listed.name.clone(),
            Work::Test(test) => test.name(),
        }
    }

    fn report(&self) -> CaseReport {
        match self {
            Work::Case(item) => CaseReport::of(self.name(), item.form()),
            Work::Program(_) | Work::Test(_) => CaseReport::of(self.name(), "program"),
        }
    }
}

/// One form of one case to run.
#[derive(Clone, PartialEq, Debug)]
pub struct Item {
    /// The case's folder.
    pub folder: PathBuf,
    /// `optimized.hlo` and not `module.hlo`.
    pub optimized: bool,
}

impl Item {
    /// `module` or `optimized`.
    pub fn form(&self) -> &'static str {
        if self.optimized { "optimized" } else { "module" }
    }
}

/// The forms to run of each case.
pub fn items(folders: &[PathBuf], form: Form) -> Vec<Item> {
    let item = |folder: &PathBuf, optimized| Item { folder: folder.clone(), optimized };
    folders
        .iter()
        .flat_map(|f| {
            let optimized = f.join("optimized.hlo").is_file();
            match form {
                Form::Module => vec![item(f, false)],
                Form::Optimized if optimized => vec![item(f, true)],
                Form::Optimized => vec![],
                Form::Both if optimized => vec![item(f, false), item(f, true)],
                Form::Both => vec![item(f, false)],
            }
        })
        .collect()
}

/// Runs all; `done` is called with each report in the order of `items`.
pub fn run_all<W: Clone + Into<Work>>(
    items: &[W],
    options: &CorpusOptions,
    mut done: impl FnMut(CaseReport),
) {
    let items: Vec<Work> = items.iter().cloned().map(Into::into).collect();
    let items = &items[..];
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = if options.jobs == 0 { processors } else { options.jobs }.clamp(1, items.len().max(1));
    memory_budget::set_concurrency(jobs);
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::channel::<(usize, CaseReport)>();
    let sender = Mutex::new(sender);
    std::thread::scope(|scope| {
        for job in 0..jobs {
            let started = std::thread::Builder::new().spawn_scoped(scope, || {
                let sender = match sender.lock() {
                    Ok(s) => s.clone(),
                    Err(_) => return,
                };
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(i) else { return };
                    if sender.send((i, run_limited(item, options))).is_err() {
                        return;
                    }
                }
            });
            // Those that there are do the work of all.
            if started.is_err() {
                if job == 0 {
                    items.iter().for_each(|item| done(run_limited(item, options)));
                    return;
                }
                break;
            }
        }
        // The workers' copies count; this one would keep the channel open.
        let mut waiting: FxHashMap<usize, CaseReport> = FxHashMap::default();
        let mut next_report = 0;
        while next_report < items.len() {
            let Ok((i, report)) = receiver.recv() else { break };
            waiting.insert(i, report);
            while let Some(report) = waiting.remove(&next_report) {
                done(report);
                next_report += 1;
            }
        }
    });
}

/// Runs one case on a thread of its own, which is cancelled and not waited for if the time is over.
fn run_limited(item: &Work, options: &CorpusOptions) -> CaseReport {
    let start = Instant::now();
    let (sender, receiver) = mpsc::channel();
    let (owned, own_options, token) = (item.clone(), options.clone(), CancellationToken::new());
    let own_token = token.clone();
    let spawned = std::thread::Builder::new().name("case".into()).stack_size(STACK_BYTES).spawn(move || {
        let what = format!("running {}", owned.name());
        let report = own_token.run(|| {
            guarded(&what, || {
                Ok(match &owned {
                    Work::Case(item) => run_case(item, &own_options),
                    Work::Program(listed) => run_program_of_folder(listed, &own_options),
                    Work::Test(test) => mlir_tests::run(test, &own_options),
                })
            })
        });
        let Ok(report) = report else { return };
        // Nobody listens any more if the time was over.
        let _ = sender.send(report.unwrap_or_else(|f| owned.report().failed("error", f.message)));
    });
    let mut report = match spawned {
        Err(e) => item.report().failed("error", format!("no thread: {e}")),
        Ok(_) => receiver.recv_timeout(options.time_limit).unwrap_or_else(|_| {
            token.cancel();
            let why = format!("not done after {} s", options.time_limit.as_secs_f64());
            item.report().failed("timeout", why)
        }),
    };
    report.ms = start.elapsed().as_secs_f64() * 1e3;
    report
}

impl CaseReport {
    /// Of what was not run yet.
    pub(crate) fn of(case: String, form: &'static str) -> Self {
        Self {
            case,
            form,
            status: Status::Skip,
            reason: String::new(),
            kind: "",
            accumulate: None,
            max_ulp: None,
            bit_exact: false,
            undecided: 0,
            note: String::new(),
            instructions: 0,
            ms: 0.0,
            opcodes: Vec::new(),
        }
    }

    /// The same, failed.
    pub(crate) fn failed(self, kind: &'static str, reason: String) -> Self {
        Self { status: Status::Fail, kind, reason, ..self }
    }

    /// The exit code of a command that ran nothing else.
    pub fn exit(&self) -> Exit {
        match (self.status, self.kind) {
            (Status::Pass | Status::Skip, _) => Exit::Ok,
            (Status::Fail, "case") => Exit::Usage,
            (Status::Fail, "parse") => Exit::Parse,
            (Status::Fail, "verify") => Exit::Verify,
            (Status::Fail, "unsupported") => Exit::Unsupported,
            (Status::Fail, "trap" | "timeout") => Exit::Trap,
            (Status::Fail, "error") => Exit::Internal,
            (Status::Fail, _) => Exit::Differs,
        }
    }
}

fn report(item: &Item, status: Status, kind: &'static str, reason: String) -> CaseReport {
    let of = CaseReport::of(item.folder.to_string_lossy().into_owned(), item.form());
    CaseReport { status, kind, reason, ..of }
}

fn failed(item: &Item, kind: &'static str, reason: String) -> CaseReport {
    report(item, Status::Fail, kind, reason)
}

/// The word of [`CaseReport::kind`] for what the environment lacked: nothing is known of the case.
pub const ENVIRONMENT: &str = "environment";

/// The word of [`CaseReport::kind`] for an exit code.
pub(crate) fn kind_of(exit: Exit) -> &'static str {
    match exit {
        Exit::Ok => "",
        Exit::Differs => "tolerance",
        Exit::Usage => "case",
        Exit::Parse => "parse",
        Exit::Verify => "verify",
        Exit::Unsupported => "unsupported",
        Exit::Trap => "trap",
        Exit::Internal => "error",
    }
}

fn run_case(item: &Item, options: &CorpusOptions) -> CaseReport {
    let fail = |f: Failure| failed(item, kind_of(f.exit), f.message);
    let case = match Case::open(&item.folder) {
        Ok(case) => case,
        Err(f) => return fail(f),
    };
    let Some(path) = case.program(item.optimized) else {
        return report(item, Status::Skip, "skip", format!("no {}.hlo", item.form()));
    };
    let mut program = match load(&path.to_string_lossy()) {
        Ok(p) => p,
        Err(r) => return failed(item, kind_of(r.exit), r.first_line()),
    };
    if let Err(f) =
        custom_calls::apply(&options.custom_calls, &mut program.module, options.run.limits.memory_bytes)
    {
        return fail(f);
    }
    let found = opcodes(&program.module);
    let result = match run_program(&case, item, &program, options) {
        Ok(r) => r,
        Err(f) => fail(f),
    };
    CaseReport { opcodes: found, instructions: instruction_count(&program.module), ..result }
}

fn run_program(
    case: &Case,
    item: &Item,
    program: &Program,
    options: &CorpusOptions,
) -> Result<CaseReport, Failure> {
    let module = &program.module;
    let limit = options.run.limits.memory_bytes;
    let devices = case.devices()?;
    let expected = case.expected(limit, devices)?;
    let inputs = inputs::read(module, &mut case.inputs(limit)?, devices)?;
    if let Err(d) = options.engine.supports(module, devices) {
        return Ok(failed(item, kind_of(Exit::Unsupported), d.message));
    }
    let checks: Vec<Check> = case.info.results.iter().map(|r| r.check.clone()).collect();
    let run = RunOptions { devices, ..options.run }.beside(program.kept_bytes());
    let judge = Judge {
        engine: &*options.engine,
        module,
        inputs: &inputs,
        feeds: &Feeds::default(),
        expected: &expected,
        checks: &checks,
        options: run,
        modes: modes(module),
        nan_bits: options.policy.nan_bits,
    };
    let judged = match judge.run() {
        Ok(judged) => judged,
        Err(NoVerdict::Failure(f)) => return Err(f),
        Err(NoVerdict::Run(exit, d)) => {
            let lines = hlo::LineIndex::new(&program.source.text);
            let position = if d.span.is_none() {
                String::new()
            } else {
                format!(" (line {})", lines.line_column(&program.source.text, d.span.start).0)
            };
            let kind = if d.code == codes::ENVIRONMENT_FAILED { ENVIRONMENT } else { kind_of(exit) };
            return Ok(failed(item, kind, format!("{}{position}", d.message)));
        }
    };
    let mut wrong: Vec<String> = judged
        .verdicts
        .iter()
        .enumerate()
        .filter(|(_, v)| !v.pass)
        .map(|(i, v)| {
            let (device, i) = (i / checks.len(), i % checks.len());
            format!("{}: {}", array_name(expected.len(), device, "out", i), v.reason)
        })
        .collect();
    let settings = Settings { run, policy: options.policy, ..Settings::default() };
    // What cannot be decided so, the record decides.
    if let Some(found) = judge.held_to_reference(&settings) {
        if found.passes(&settings.policy) {
            wrong.clear();
        } else if found.kind != Kind::Undecided {
            let array = found.arrays.iter().find(|(_, v)| !v.worst.is_empty());
            let worst = array
                .and_then(|(name, v)| v.worst.first().map(|w| hlo_triage::report::text::element(name, w)));
            let failure = found.failure.as_ref().map(|d| d.message.clone());
            let why = worst.or(failure).unwrap_or_default();
            wrong = vec![format!("against the interpreter: {}: {why}", found.kind.describe())];
        }
    }
    let pass = wrong.is_empty();
    let (status, kind) = if pass { (Status::Pass, "") } else { (Status::Fail, "tolerance") };
    Ok(CaseReport {
        accumulate: pass.then(|| judged.mode_name()),
        max_ulp: judged.max_ulp(),
        bit_exact: judged.bit_exact(),
        ..report(item, status, kind, wrong.join("; "))
    })
}

/// Cases that are known to fail: `form path  reason`, a line each; `#` begins a comment.
#[derive(Clone, Debug, Default)]
pub struct ExpectedFailures {
    /// (form, last parts of the path) to reason.
    entries: BTreeMap<(String, String), String>,
}

impl ExpectedFailures {
    /// Reads a list. Errors: a line that is not of the form, or has no reason, or is there twice.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        let mut entries = BTreeMap::new();
        for (n, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let bad = |what: &str| Failure::usage(format!("expected failures, line {}: {what}", n + 1));
            let mut parts = line.splitn(3, char::is_whitespace);
            let (Some(form @ ("module" | "optimized")), Some(path)) = (parts.next(), parts.next()) else {
                return Err(bad("expected `module PATH  REASON` or `optimized PATH  REASON`"));
            };
            let reason = parts.next().unwrap_or("").trim();
            if reason.is_empty() {
                return Err(bad("a reason is missing"));
            }
            if entries.insert((form.to_owned(), path.to_owned()), reason.to_owned()).is_some() {
                return Err(bad("the case stands there twice"));
            }
        }
        Ok(Self { entries })
    }

    /// Why this form of a case is expected to fail. Paths in the list are suffixes of the case's path.
    pub fn reason(&self, case: &str, form: &str) -> Option<&str> {
        let parts: Vec<&str> = case.trim_end_matches('/').split('/').collect();
        (1..=parts.len().min(3)).find_map(|n| {
            let tail = parts[parts.len() - n..].join("/");
            self.entries.get(&(form.to_owned(), tail)).map(String::as_str)
        })
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Makes an expected failure a skip with its reason, and a pass that is listed as a failure a failure.
    pub fn apply(&self, mut report: CaseReport) -> CaseReport {
        let Some(reason) = self.reason(&report.case, report.form) else { return report };
        match report.status {
            Status::Fail => {
                report.status = Status::Skip;
                report.kind = "expected";
                report.reason = format!("expected failure: {reason}");
            }
            Status::Pass => {
                report.status = Status::Fail;
                report.kind = "listed";
                report.reason = format!("passes, but is listed as a failure: {reason}");
            }
            Status::Skip => {}
        }
        report
    }
}

/// Counts of a run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Summary {
    /// Passed.
    pub passed: usize,
    /// Failed.
    pub failed: usize,
    /// Not run.
    pub skipped: usize,
    /// With the recorded bits.
    pub bit_exact: usize,
    /// Failures by kind.
    pub kinds: BTreeMap<&'static str, usize>,
    /// Passed and all by opcode.
    opcodes: BTreeMap<&'static str, (usize, usize)>,
}

impl Summary {
    /// Counts a report.
    pub fn add(&mut self, report: &CaseReport) {
        match report.status {
            Status::Pass => self.passed += 1,
            Status::Fail => {
                self.failed += 1;
                *self.kinds.entry(report.kind).or_default() += 1;
            }
            Status::Skip => {
                self.skipped += 1;
                return;
            }
        }
        self.bit_exact += usize::from(report.bit_exact);
        for &op in &report.opcodes {
            let entry = self.opcodes.entry(op).or_default();
            entry.0 += usize::from(report.status == Status::Pass);
            entry.1 += 1;
        }
    }

    /// (opcode, passed, of all), the lowest rate first, then by name.
    pub fn by_opcode(&self) -> Vec<(&'static str, usize, usize)> {
        let mut all: Vec<_> = self.opcodes.iter().map(|(&op, &(pass, n))| (op, pass, n)).collect();
        all.sort_by(|a, b| (a.1 * b.2).cmp(&(b.1 * a.2)).then(a.0.cmp(b.0)));
        all
    }

    /// The mean over opcodes of their pass rates.
    pub fn mean_rate(&self) -> f64 {
        let rates: Vec<f64> = self.opcodes.values().map(|&(pass, n)| pass as f64 / n as f64).collect();
        if rates.is_empty() { 1.0 } else { rates.iter().sum::<f64>() / rates.len() as f64 }
    }
}

/// The last part of a case's path, for tables.
pub fn short_name(case: &str) -> &str {
    Path::new(case).file_name().and_then(|n| n.to_str()).unwrap_or(case)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(status: Status, opcodes: &[&'static str]) -> CaseReport {
        let item = Item { folder: "x/jax/one".into(), optimized: false };
        CaseReport { opcodes: opcodes.to_vec(), ..report(&item, status, "tolerance", "why".into()) }
    }

    #[test]
    fn rates_by_opcode_are_lowest_first() {
        let mut s = Summary::default();
        s.add(&sample(Status::Pass, &["add", "dot"]));
        s.add(&sample(Status::Fail, &["dot", "sine"]));
        s.add(&sample(Status::Skip, &["rng"]));
        assert_eq!((s.passed, s.failed, s.skipped), (1, 1, 1));
        assert_eq!(s.by_opcode(), [("sine", 0, 1), ("dot", 1, 2), ("add", 1, 1)]);
        assert!((s.mean_rate() - 0.5).abs() < 1e-12);
    }

    #[test]
    fn expected_failures_turn_around() {
        let list =
            ExpectedFailures::parse("# c\n\nmodule jax/one  XLA flushes denormals\noptimized two  why\n")
                .unwrap();
        assert_eq!(list.len(), 2);
        let fail = list.apply(sample(Status::Fail, &[]));
        assert_eq!((fail.status, &*fail.reason), (Status::Skip, "expected failure: XLA flushes denormals"));
        let pass = list.apply(sample(Status::Pass, &[]));
        assert_eq!((pass.status, pass.kind), (Status::Fail, "listed"));
        assert_eq!(list.reason("/a/b/two", "optimized"), Some("why"));
        assert_eq!(list.reason("/a/b/two", "module"), None);
        for bad in ["jax/one why", "module jax/one", "module a b\nmodule a c"] {
            assert!(ExpectedFailures::parse(bad).is_err(), "{bad}");
        }
    }
}
