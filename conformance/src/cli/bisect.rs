//! `hlo bisect`: which pass breaks a program.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use hlo::ArrayLiteral;
use serde::Serialize;

use super::judging::JudgingOptions;
use super::ui::Ui;
use super::waiting::Waiting;
use super::{AccumulateOption, CustomCallOptions, LimitOptions, ReadOptions, values};
use hlo_engines::engine::{self, Limits, RunOptions, spec};
use hlo_engines::inputs;
use hlo_engines::inputs::InputKind;
use hlo_engines::time_limit::command_within;
use hlo_engines::variants;
use hlo_system::exit::{Exit, Failure};
use hlo_system::npz::Npz;
use hlo_system::phase::{Phase, Phases};
use hlo_triage::artifact;
use hlo_triage::bisect::{dumps, passes};
use hlo_triage::differential::{Settings, Subject};

/// Options of `hlo bisect`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// The program, or the folder of a finding; `-` is standard input
    #[arg(value_name = "MODULE", required_unless_present = "dumps", conflicts_with = "dumps")]
    module: Option<String>,
    /// Passes in order: names as of `hlo opt --list-passes`, `default`, `cpu:O0` to `cpu:O3`, `faulty:NAME`,
    /// `variant:NAME`; NAME=N applies it N times at most [default: those of the engine of a finding, else
    /// `default`]
    #[arg(long, value_name = "P,Q")]
    passes: Option<String>,
    /// The engine whose passes they are, if not those of --passes
    #[arg(long, value_name = "NAME", conflicts_with_all = ["passes", "dumps"])]
    platform: Option<String>,
    /// A folder of XLA's dumps pass by pass (--xla_dump_hlo_pass_re=.*)
    #[arg(long, value_name = "DIR")]
    dumps: Option<String>,
    /// Of several modules in the folder, the one of this number
    #[arg(long, value_name = "N", requires = "dumps")]
    number: Option<u64>,
    /// An .npz file with arrays arg0, arg1, ...; made if not given (or taken from inputs.npz beside dumps)
    #[arg(long, value_name = "FILE")]
    inputs: Option<String>,
    /// Seed of made inputs and of rng
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    #[command(flatten)]
    judging: JudgingOptions,
    /// Kind of made inputs (docs/inputs.md) [default: gentle, then large, special and extreme while they show
    /// nothing]
    #[arg(long, value_enum, value_name = "KIND", conflicts_with = "inputs")]
    input_kind: Option<InputKind>,
    /// How sums of floats round
    #[arg(long, value_enum, value_name = "MODE")]
    accumulate: Option<AccumulateOption>,
    /// The most changed instructions that are shown of each form
    #[arg(long, default_value_t = 20, value_name = "N")]
    lines: usize,
    /// The most time for all of it
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    timeout: Option<Duration>,
    #[command(flatten)]
    pub(super) limits: LimitOptions,
    #[command(flatten)]
    read: ReadOptions,
    #[command(flatten)]
    custom_calls: CustomCallOptions,
}

/// Executed instructions of a program on extreme inputs, if no limit is given.
const EXTREME_FUEL: u64 = 20_000_000;

const EXAMPLES: &str = "\
Examples:
  hlo bisect module.hlo                         the default pipeline
  hlo bisect module.hlo --passes cse,faulty:pad-low-sign,dce --inputs in.npz
  hlo bisect hlo-mismatch-2f91c0                the passes of the engine that differed, on the inputs of the finding
  hlo bisect --dumps xla_dump                   the pass of XLA that changed what the program computes
  hlo bisect --dumps xla_dump --input-kind large    the same on floats up to the greatest number";

pub(crate) fn run(options: &Options, ui: &Ui) -> Result<Exit, Failure> {
    let limits = Limits { fuel: options.limits.fuel, memory_bytes: options.limits.memory_limit };
    let run = RunOptions {
        accumulate: options.accumulate.map(Into::into).unwrap_or_default(),
        limits,
        seed: options.seed.unwrap_or_default(),
        ..RunOptions::default()
    };
    let phases: Arc<Phases> = Arc::default();
    let _waiting = Waiting::new(ui, &phases);
    let bisect = || match (&options.dumps, &options.module) {
        (Some(folder), _) => of_dumps(options, folder, &run, ui),
        (None, Some(module)) => of_passes(options, module, &run, ui),
        (None, None) => Err(Failure::usage("a module, or --dumps DIR")),
    };
    command_within(options.timeout, "bisecting", || phases.during(Phase::Passes, bisect))
}

fn of_passes(options: &Options, path: &str, run: &RunOptions, ui: &Ui) -> Result<Exit, Failure> {
    let limit = run.limits.memory_bytes;
    let (mut program, recorded, finding, devices) = if path != "-" && Path::new(path).is_dir() {
        let loaded = artifact::load(Path::new(path), limit)?;
        (loaded.program, loaded.inputs, loaded.finding, loaded.devices)
    } else {
        let program = super::load(path, &options.read.reading(), ui)?;
        let devices = super::devices(ui, &program.module, None, None)?;
        (program, None, None, devices)
    };
    options.custom_calls.apply(&mut program, limit, ui)?;
    let module = &program.module;
    let mut run = RunOptions { devices, ..*run };
    if let Some(finding) = &finding {
        let found = finding.settings(run.limits)?.run;
        run.seed = options.seed.unwrap_or(found.seed);
        run.accumulate = options.accumulate.map_or(found.accumulate, Into::into);
    }
    let engine = options.platform.as_deref().or(finding.as_ref().map(|f| &*f.signature.engine));
    let list = match (&options.passes, engine) {
        (Some(list), _) => list.clone(),
        (None, Some(engine)) => spec::passes_of(engine)?,
        (None, None) => "default".to_owned(),
    };
    let pipeline = spec::pipeline(&list)?;
    let variants: Vec<_> = pipeline.passes().filter_map(|p| variants::by_name(p.name())).collect();
    let allowances = variants.iter().fold(engine::Allowances::STRICT, |a, v| a.or(v.allowances));
    let policy = options.judging.policy(finding.as_ref().map(artifact::Finding::policy).as_ref())?;
    let made = |kind: InputKind| {
        let plan = inputs::plan(module, inputs::range_beside(path)?)?.of_kind(kind);
        inputs::generate(&plan, run.seed, devices, limit)
    };
    let ask = |arrays: &[Vec<ArrayLiteral>], run: RunOptions| {
        passes::run(&passes::Question {
            subject: Subject::new(module, arrays),
            pipeline: &pipeline,
            settings: Settings { run, policy, ..Settings::default() },
            allowances,
            accumulate: variants.iter().find_map(|v| v.accumulate),
        })
    };
    let (arrays, mut kind) = match (&options.inputs, recorded, options.input_kind) {
        (Some(file), _, _) => (inputs::read(module, &mut Npz::open(file, limit)?, devices)?, None),
        (None, Some(recorded), None) => (recorded, None),
        (None, _, kind) => (made(kind.unwrap_or_default())?, Some(kind.unwrap_or_default())),
    };
    let mut report = ask(&arrays, run)?;
    if kind.is_some() && options.input_kind.is_none() {
        // A loop counts no further on extreme inputs.
        let fuel = Some(run.limits.fuel.unwrap_or(EXTREME_FUEL));
        let run = RunOptions { limits: Limits { fuel, ..run.limits }, ..run };
        for extreme in InputKind::AFTER_GENTLE {
            if report.found.is_some() {
                break;
            }
            match ask(&made(extreme)?, run) {
                Ok(found) if found.found.is_some() => (report, kind) = (found, Some(extreme)),
                Ok(_) => {}
                Err(failure) => ui.detail(format!("  note: {extreme} inputs: {}", failure.message)),
            }
        }
    }
    let exit = if report.found.is_some() { Exit::Differs } else { Exit::Ok };
    if ui.json {
        #[derive(Serialize)]
        struct Object<'a> {
            file: &'a str,
            ok: bool,
            #[serde(skip_serializing_if = "Option::is_none")]
            input_kind: Option<InputKind>,
            #[serde(flatten)]
            report: &'a passes::Report,
        }
        ui.object(&Object { file: path, ok: exit == Exit::Ok, input_kind: kind, report: &report });
        return Ok(exit);
    }
    for (i, step) in report.steps.iter().enumerate().filter(|(_, s)| s.applications > 0 || !s.fine) {
        let verdict = if step.fine { ui.good("same") } else { ui.bad("fails") };
        let times = match (step.applications, step.fine) {
            (0, false) => "crashed".to_owned(),
            (1, _) => "applied once".to_owned(),
            (n, _) => format!("applied {n} times"),
        };
        ui.detail(format!("  {i:3}  {:28} {times:20} {verdict}", step.pass));
    }
    match &report.found {
        None => {
            let n = report.steps.len();
            ui.line(format!(
                "{path}: {} ({n} passes)",
                ui.good("every pass keeps what the program computes")
            ));
        }
        Some(found) => {
            ui.line(format!(
                "{path}: {}: pass {} `{}`, application {} of {}",
                ui.bad(found.bad.what),
                found.step,
                found.pass,
                found.application,
                found.applications
            ));
            found.bad.how.iter().for_each(|l| ui.line(format!("  {l}")));
            if let Some(kind) = kind {
                ui.line(format!("  on inputs made, seed {}, {kind}", run.seed));
            }
            shown(&found.changes.lines(options.lines), ui);
        }
    }
    Ok(exit)
}

fn shown(lines: &[String], ui: &Ui) {
    for line in lines {
        let painted = if line.starts_with('-') { ui.bad(line) } else { ui.good(line) };
        ui.line(format!("  {painted}"));
    }
}

fn of_dumps(options: &Options, folder: &str, run: &RunOptions, ui: &Ui) -> Result<Exit, Failure> {
    let mut all = dumps::series(Path::new(folder))?;
    if let Some(number) = options.number {
        all.retain(|s| s.number == number);
        if all.is_empty() {
            return Err(Failure::usage(format!("{folder} holds no dumps of module {number}")));
        }
    }
    let beside = Path::new(folder).join("inputs.npz");
    let file = match (&options.inputs, options.input_kind) {
        (Some(file), _) => Some(file.clone()),
        (None, Some(_)) => None,
        (None, None) => (all.len() == 1 && beside.is_file()).then(|| beside.to_string_lossy().into_owned()),
    };
    let kind = match options.inputs {
        // Inputs that were given are all that is asked about.
        Some(_) => Some(InputKind::Gentle),
        None => options.input_kind,
    };
    let source = dumps::Source { file: file.as_deref(), seed: options.seed.unwrap_or_default(), kind };
    let mut exit = Exit::Ok;
    for series in &all {
        let report = match dumps::run(series, &source, run) {
            Ok(report) => report,
            Err(failure) => {
                super::report_failure(ui, &failure);
                exit = exit.first_failure(failure.exit);
                continue;
            }
        };
        if report.found.is_some() || report.drift.is_some() {
            exit = exit.first_failure(Exit::Differs);
        }
        if ui.json {
            ui.object(&report);
        } else {
            tell(options, &report, ui);
        }
    }
    Ok(exit)
}

fn tell(options: &Options, report: &dumps::Report, ui: &Ui) {
    ui.detail(format!("module {} {}, inputs {}", report.number, report.name, report.inputs));
    report.notes.iter().for_each(|n| ui.detail(format!("  note: {n}")));
    if !report.missing.is_empty() {
        let missing: Vec<String> = report.missing.iter().map(|c| format!("{c:04}")).collect();
        ui.detail(format!("  note: no file of number {}", missing.join(", ")));
    }
    for step in &report.steps {
        let verdict = match &step.status {
            dumps::Status::First => "first".to_owned(),
            dumps::Status::Same if ui.verbose => ui.good("same"),
            dumps::Status::Same => continue,
            dumps::Status::Rounding { share } => {
                format!("differs from the first by rounding (at most {:.1}% of the tolerance)", share * 100.0)
            }
            dumps::Status::Changed { .. } => ui.bad("changed"),
            dumps::Status::Skipped { why } => format!("skipped: {why}"),
        };
        ui.detail(format!("  {:64} {verdict}", step.label));
    }
    let head = format!("module {} {}", report.number, report.name);
    match (&report.found, &report.drift) {
        (None, None) => {
            let n = report.compared();
            let skipped = report.steps.len() - n;
            let rest = if skipped == 0 { String::new() } else { format!(", {skipped} skipped") };
            ui.line(format!("{head}: {} ({n} forms{rest})", ui.good("no pass changes what it computes")));
            report.also.iter().for_each(|inputs| ui.detail(format!("  nor on inputs {inputs}")));
        }
        (None, Some(drift)) => {
            ui.line(format!(
                "{head}: {}: each form computes what the one before does but for rounding, the last not what the first does: {drift}",
                ui.bad("changed little by little")
            ));
            ui.line(format!("  on inputs {}", report.inputs));
        }
        (Some(found), _) => {
            let pass = match &found.pass {
                Some(pass) => format!("by {pass}"),
                None => format!("between `{}` and `{}`", found.before.label, found.step.label),
            };
            ui.line(format!("{head}: {} {pass}", ui.bad("changed")));
            ui.line(format!("  before: {}", found.before.file));
            ui.line(format!("  after:  {}", found.step.file));
            if !found.gap.is_empty() {
                ui.line(format!("  forms between them that could not be compared: {}", found.gap.join(", ")));
            }
            found.results.iter().for_each(|r| ui.line(format!("  {r}")));
            ui.line(format!("  on inputs {}", report.inputs));
            report
                .also
                .iter()
                .for_each(|inputs| ui.detail(format!("  nothing was found on inputs {inputs}")));
            if let Some(value) = &found.value {
                ui.line(format!("  first value that differs: {}", value.how));
                shown(&[format!("- {}", value.before), format!("+ {}", value.after)], ui);
                let changes = value.changes.lines(options.lines);
                if changes.len() > 2 || value.before == value.after && !changes.is_empty() {
                    ui.line("  computed out of values that agree by:");
                    shown(&changes, ui);
                }
            }
            if found.value.is_none() || ui.verbose {
                ui.line("  instructions that changed:");
                shown(&found.changes.lines(options.lines), ui);
            } else {
                let n = found.changes.removed.len() + found.changes.added.len();
                ui.detail(format!("  instructions that changed in all: {n} (--verbose shows them)"));
            }
            if let Some(label) = &found.undone {
                ui.line(format!("  `{label}` computes what the first form does again"));
            }
        }
    }
}
