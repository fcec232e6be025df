//! `hlo report`: a folder with all that somebody else needs to see what was seen here.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use hlo::print::{PrintOptions, print_module};
use hlo::{ArrayLiteral, Module};
use serde::Serialize;

use super::judging::JudgingOptions;
use super::trust::TrustOption;
use super::ui::Ui;
use super::{LimitOptions, ReadOptions, values};
use crate::anonymize::{Anonymize, anonymize};
use crate::bundle::{Draft, ENVIRONMENT, Environment, PAGE, README, REDUCED, SNAPSHOT};
use crate::dumps::write_snapshot;
use hlo_engines::engine::spec::with_timeout;
use hlo_engines::engine::{self, Engine, Finished, Limits, Outcome, RunOptions};
use hlo_engines::frontend::{Program, Rejected, instruction_count, load_as, parse_text, signature};
use hlo_engines::inputs;
use hlo_system::exit::{Exit, Failure};
use hlo_system::files::{read_bytes, write_text};
use hlo_system::phase::Phases;
use hlo_triage::artifact::{self, Artifact, Finding, MODULE, write_files};
use hlo_triage::differential::{Difference, Settings, Subject, differ_from, reference_run};
use hlo_triage::isolate;
use hlo_triage::reduce::{self, Candidate, Differential, Trouble};
use hlo_triage::report;
use hlo_triage::report::html::Page;

/// Options of `hlo report`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// A program, or the folder of a finding or a case
    #[arg(value_name = "FILE")]
    file: String,
    /// The folder to write; an older report there is replaced
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// What may be wrong; a finding says it itself
    #[arg(long, value_name = "NAME")]
    platform: Option<String>,
    /// Inputs: arrays arg0, ...; made if not given
    #[arg(long, value_name = "NPZ")]
    inputs: Option<String>,
    /// Seed of made inputs and of rng
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Take names and metadata out; `constants`: the values of constants and given inputs too
    #[arg(long, value_enum, value_name = "WHAT", num_args = 0..=1, require_equals = true, default_missing_value = "names")]
    anonymize: Option<Anonymize>,
    /// The most time to make a failing program smaller; 0s leaves it as it is
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = values::time)]
    max_time: Duration,
    /// The most time of a run of another program
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = values::time)]
    timeout: Duration,
    #[command(flatten)]
    judging: JudgingOptions,
    #[command(flatten)]
    trust: TrustOption,
    #[command(flatten)]
    pub(super) limits: LimitOptions,
    #[command(flatten)]
    read: ReadOptions,
}

const EXAMPLES: &str = "\
Examples:
  hlo report module.hlo -o report               against the compiler for this machine
  hlo report hlo-mismatch-2f91c0 -o report      what was found, with its inputs and results
  hlo report module.hlo -o report --anonymize   without names and metadata

The folder is that of a finding: `hlo run report` runs it again, and XLA's run_hlo_module takes its module.hlo and snapshot.pb.
Ends with 0 when the folder is complete, whatever is in it.";

/// The subject of the report.
struct Task {
    module: Module,
    /// The program as text.
    text: String,
    inputs: Vec<Vec<ArrayLiteral>>,
    settings: Settings,
    reference: Arc<dyn Engine>,
    engine: Arc<dyn Engine>,
}

/// The summary of the report.
#[derive(Serialize)]
struct Object {
    file: String,
    ok: bool,
    output: String,
    verdict: String,
    files: Vec<String>,
}

pub(crate) fn run(options: &Options, ui: &Ui) -> Result<Exit, Failure> {
    let draft = Draft::at(&options.output)?;
    let folder = Path::new(&options.file);
    let is_folder = options.file != "-" && folder.is_dir();
    let loaded = if is_folder { Some(artifact::load(folder, options.limits.memory_limit)?) } else { None };
    let mut notes = Vec::new();
    let verdict = match loaded {
        Some(loaded) => {
            let (recorded, finding) = (loaded.inputs, loaded.finding);
            let task = task(options, loaded.program, (recorded, finding), Some(loaded.devices), ui)?;
            reported(&task, options, draft.path(), &mut notes, ui)?
        }
        None => match load_as(&options.file, &options.read.reading()) {
            Ok(program) => {
                let task = task(options, program, (None, None), None, ui)?;
                reported(&task, options, draft.path(), &mut notes, ui)?
            }
            Err(rejected) => refused(options, &rejected, draft.path())?,
        },
    };
    let anonymized = options.anonymize.map(|what| match what {
        Anonymize::Names => "names and metadata",
        Anonymize::Constants => "names, metadata, values of constants and inputs",
    });
    let environment = Environment::here(anonymized);
    let json = serde_json::to_string_pretty(&environment)
        .map_err(|e| Failure::internal(format!("an environment cannot be written as JSON: {e}")))?;
    write_text(&draft.path().join(ENVIRONMENT), &format!("{json}\n"))?;
    write_text(&draft.path().join(README), &readme(options, &verdict, &notes, &environment, draft.path()))?;
    let mut files: Vec<String> = fs::read_dir(draft.path())
        .into_iter()
        .flatten()
        .flatten()
        .map(|e| e.file_name().to_string_lossy().into_owned())
        .collect();
    files.sort();
    draft.complete()?;
    let output = options.output.display().to_string();
    if ui.json {
        ui.object(&Object { file: options.file.clone(), ok: true, output, verdict, files });
    } else {
        ui.detail(format!("  verdict  {verdict}"));
        notes.iter().for_each(|n| ui.detail(format!("  note     {n}")));
        ui.line(format!("{output}: {}", files.join(" ")));
    }
    Ok(Exit::Ok)
}

/// The report of a program that is not taken: its text and why.
fn refused(options: &Options, rejected: &Rejected, at: &Path) -> Result<String, Failure> {
    if rejected.exit == Exit::Usage {
        return Err(rejected.failure(false));
    }
    if options.anonymize.is_some() {
        let why = "a program that is not understood cannot be anonymized";
        return Err(Failure::new(rejected.exit, format!("{}: {why}\n{}", options.file, rejected.summary())));
    }
    // Standard input was read already.
    let bytes =
        if options.file == "-" { rejected.text.clone().into_bytes() } else { read_bytes(&options.file)?.1 };
    let path = at.join(MODULE);
    hlo_system::files::write_whole(&path, |file| std::io::Write::write_all(file, &bytes))?;
    write_text(&at.join("error.txt"), &rejected.render(false))?;
    Ok(format!("not taken: {}", rejected.summary()))
}

fn task(
    options: &Options,
    program: Program,
    (recorded, finding): (Option<Vec<Vec<ArrayLiteral>>>, Option<Finding>),
    devices: Option<hlo_interp::Devices>,
    ui: &Ui,
) -> Result<Task, Failure> {
    let memory_bytes = options.limits.memory_limit;
    let limits = Limits { fuel: options.limits.fuel, memory_bytes };
    let devices = match devices {
        Some(devices) => devices,
        None => super::devices(ui, &program.module, None, None)?,
    };
    let mut settings = match &finding {
        Some(f) => f.settings(limits)?,
        None => Settings { run: RunOptions { limits, ..RunOptions::default() }, ..Settings::default() },
    };
    settings.run.devices = devices;
    settings.run.seed = options.seed.unwrap_or(settings.run.seed);
    settings.policy = options.judging.policy(finding.as_ref().map(Finding::policy).as_ref())?;
    let made = options.anonymize == Some(Anonymize::Constants);
    let inputs = match (recorded, made) {
        (Some(recorded), false) if options.inputs.is_none() => recorded,
        (_, true) => {
            let plan = inputs::plan(&program.module, None)?;
            inputs::generate(&plan, settings.run.seed, devices, memory_bytes)?
        }
        (_, false) => {
            let given = options.inputs.as_deref();
            inputs::of_program(&program, given, settings.run.seed, devices, memory_bytes)?
        }
    };
    let given = program.own_text().map(str::to_owned);
    let mut module = program.module;
    // What names the devices may go on the way.
    engine::devices::record(&mut module, devices);
    let text = match (options.anonymize, given) {
        (None, Some(text)) => text,
        (None, None) => print_module(&module, &PrintOptions::source(&module)),
        (Some(what), _) => {
            anonymize(&mut module, what);
            let text = print_module(&module, &PrintOptions::source(&module));
            let (again, found) = parse_text(&text);
            let found = again.as_ref().map_or(found, hlo::verify::verify);
            module = again.filter(|_| !found.has_errors()).ok_or_else(|| {
                let why = found.iter().next().map(|d| d.message.clone()).unwrap_or_default();
                Failure::internal(format!("an anonymized program does not read back: {why}"))
            })?;
            text
        }
    };
    let (platform, reference) = match (&options.platform, &finding) {
        (Some(name), _) => {
            (name.clone(), finding.as_ref().map_or("interpreter", |f| &f.reference).to_owned())
        }
        (None, Some(f)) => (f.signature.engine.clone(), f.reference.clone()),
        (None, None) => {
            let own = if cfg!(feature = "llvm") { "cpu" } else { "interpreter" };
            (own.to_owned(), "interpreter".to_owned())
        }
    };
    if let Some(f) = &finding {
        let said = if options.platform.is_none() { vec![&*f.signature.engine] } else { Vec::new() };
        let said: Vec<&str> = said.into_iter().chain([&*f.reference]).collect();
        options.trust.confirm(Path::new(&options.file), &said, ui)?;
    }
    let (reference, engine) =
        (with_timeout(&reference, options.timeout)?, with_timeout(&platform, options.timeout)?);
    ui.detail(format!(
        "{}: {}, {} instructions, {}",
        options.file,
        module.name,
        report::grouped(instruction_count(&module) as u64),
        signature(&module)
    ));
    Ok(Task { module, text, inputs, settings, reference, engine })
}

/// Runs the program and writes what came of it. Returns the verdict.
fn reported(
    task: &Task,
    options: &Options,
    at: &Path,
    notes: &mut Vec<String>,
    ui: &Ui,
) -> Result<String, Failure> {
    let subject = Subject { phases: Arc::<Phases>::default(), ..Subject::new(&task.module, &task.inputs) };
    let expected = reference_run(&*task.reference, &subject, &task.settings);
    let difference = differ_from(&expected, &*task.engine, &subject, &task.settings);
    let finished = if let Outcome::Finished(f) = &expected { Some(f) } else { None };
    let finding = written(task, &task.module, &task.text, &task.inputs, finished, &difference, at)?;
    if let Some(finished) = finished {
        let path = at.join(SNAPSHOT);
        let name = task.reference.name();
        if let Err(failure) = write_snapshot(&path, &task.module, &task.inputs, &finished.results, name) {
            notes.push(format!("no {SNAPSHOT}: {}", first_line(&failure)));
        }
    }
    if difference.kind.is_failure() {
        isolated(task, options, &subject, at, notes)?;
        if !options.max_time.is_zero() {
            reduced(task, options, at, notes, ui)?;
        }
    }
    let engines = format!("{} against {}", task.engine.name(), task.reference.name());
    Ok(match &difference.failure {
        Some(d) => format!("{}, {engines}: {}", finding.signature, d.message),
        None => format!("{}, {engines}", finding.signature),
    })
}

fn first_line(failure: &Failure) -> String {
    failure.message.lines().next().unwrap_or_default().to_owned()
}

/// Writes the files of a finding.
fn written(
    task: &Task,
    module: &Module,
    text: &str,
    inputs: &[Vec<ArrayLiteral>],
    expected: Option<&Finished>,
    difference: &Difference,
    at: &Path,
) -> Result<Finding, Failure> {
    let finding = Finding::new(task.reference.name(), task.engine.name(), difference, &task.settings);
    let artifact = Artifact {
        module,
        text: Some(text),
        inputs,
        expected: expected.map(|f| &f.results[..]),
        actual: difference.actual.as_ref().map(|f| &f.results[..]),
        finding: &finding,
        stablehlo: None,
    };
    write_files(at, text, &artifact)?;
    Ok(finding)
}

/// The page of the instruction to blame.
fn isolated(
    task: &Task,
    options: &Options,
    subject: &Subject<'_>,
    at: &Path,
    notes: &mut Vec<String>,
) -> Result<(), Failure> {
    let chosen = isolate::Options { settings: task.settings, ..isolate::Options::default() };
    match isolate::isolate(subject, &*task.engine, &chosen, &mut |_, _| {}) {
        Ok(found) => {
            let next = [format!(
                "hlo isolate {}",
                hlo_system::process::quoted_word(&options.output.to_string_lossy())
            )];
            let file = if options.anonymize.is_some() { MODULE } else { &options.file };
            let page = Page { file, module: &task.module, found: &found, next: &next }.write();
            write_text(&at.join(PAGE), &page)
        }
        Err(outcome) => {
            notes.push(format!("no {PAGE}: {}", first_line(&outcome.failure())));
            Ok(())
        }
    }
}

/// The smallest program with the same failure, as a finding of its own.
fn reduced(
    task: &Task,
    options: &Options,
    at: &Path,
    notes: &mut Vec<String>,
    ui: &Ui,
) -> Result<(), Failure> {
    let oracle = Differential {
        reference: task.reference.clone(),
        engine: task.engine.clone(),
        settings: task.settings,
        time: Some(options.timeout),
        trouble: Trouble::default(),
    };
    let settings = reduce::Options { max_time: Some(options.max_time), ..reduce::Options::default() };
    let original = Candidate { module: task.module.clone(), inputs: task.inputs.clone() };
    ui.detail("  reduce   looking for a smaller program with the same failure");
    let found = match reduce::reduce(&original, &oracle, &settings, &mut |_, _| {}) {
        Ok(found) => found,
        Err(e) => {
            notes.push(format!("no {REDUCED}/: {e}"));
            return Ok(());
        }
    };
    let folder = at.join(REDUCED);
    fs::create_dir_all(&folder)
        .map_err(|e| Failure::usage(format!("{}: {}", folder.display(), hlo_system::files::describe(&e))))?;
    let Candidate { module, inputs } = &found.best;
    let subject = Subject::new(module, inputs);
    let expected = reference_run(&*task.reference, &subject, &task.settings);
    let difference = differ_from(&expected, &*task.engine, &subject, &task.settings);
    let finished = if let Outcome::Finished(f) = &expected { Some(f) } else { None };
    written(task, module, &reduce::text(module), inputs, finished, &difference, &folder)?;
    if !found.fixpoint {
        notes.push(format!("{REDUCED}/ may be reducible further: `hlo reduce` goes on"));
    }
    Ok(())
}

fn readme(
    options: &Options,
    verdict: &str,
    notes: &[String],
    environment: &Environment,
    at: &Path,
) -> String {
    let mut out = String::new();
    let has = |name: &str| at.join(name).exists();
    let _ = writeln!(out, "A report by `hlo report`.\n\nVerdict: {verdict}");
    for note in notes {
        let _ = writeln!(out, "Note: {note}");
    }
    for (key, value) in environment.versions.iter().chain(&environment.machine) {
        if *key != "features" {
            let _ = writeln!(out, "{key}: {value}");
        }
    }
    if let Some(what) = environment.anonymized {
        let _ = writeln!(out, "taken out: {what}");
    }
    let _ = writeln!(out, "\nFiles");
    for (name, what) in [
        (MODULE, "the program, as HLO text"),
        ("error.txt", "why it is not taken"),
        ("inputs.npz", "its inputs: arg0, arg1, ..."),
        ("expected.npz", "the reference's results: out0, out1, ..."),
        ("actual.npz", "the other engine's results"),
        (SNAPSHOT, "program, inputs and the reference's result as an HloSnapshot"),
        ("finding.json", "how it was run and judged"),
        (ENVIRONMENT, "versions and machine"),
        (PAGE, "which instruction is to blame, for a browser"),
        (REDUCED, "the smallest program that fails alike, as a folder of the same kind"),
    ] {
        if has(name) {
            let _ = writeln!(out, "  {name:18} {what}");
        }
    }
    let output = options.output.file_name().map_or_else(|| ".".into(), |n| n.to_string_lossy().into_owned());
    let output = hlo_system::process::quoted_word(&output);
    let _ = writeln!(out, "\nAgain");
    if has("finding.json") {
        let _ = writeln!(out, "  hlo run {output}");
        let _ = writeln!(
            out,
            "  run_hlo_module --platform=CPU --reference_platform=Interpreter --input_format=hlo {output}/{MODULE}"
        );
    } else {
        let _ = writeln!(out, "  hlo verify {output}/{MODULE}");
    }
    if has(SNAPSHOT) {
        let _ = writeln!(
            out,
            "  run_hlo_module --platform=CPU --reference_platform=Interpreter --input_format=pb {output}/{SNAPSHOT}"
        );
    }
    out
}
