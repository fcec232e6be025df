//! `hlo isolate`: which instruction an engine computes wrongly.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use hlo::diag::suggest::did_you_mean;
use hlo::{ArrayLiteral, LineIndex, Module, Opcode};

use super::judging::JudgingOptions;
use super::trust::TrustOption;
use super::ui::Ui;
use super::waiting::Waiting;
use super::{AccumulateOption, CustomCallOptions, LimitOptions, ReadOptions, values};
use hlo_engines::engine::spec::{names_of, passes_of, stays_inside, with_timeout};
use hlo_engines::engine::{Engine, Limits, RunOptions};
use hlo_engines::frontend::{Program, instruction_count, signature};
use hlo_engines::inputs;
use hlo_execution::verdict::Class;
use hlo_system::exit::{Exit, Failure};
use hlo_system::files::write_text;
use hlo_system::npz::Npz;
use hlo_system::phase::{Phase, Phases};
use hlo_system::process::quoted_word;
use hlo_triage::artifact::{self, Finding};
use hlo_triage::differential::{Settings, Subject};
use hlo_triage::feeds::Feeds;
use hlo_triage::isolate::{self, Isolation, Row, Status};
use hlo_triage::policy::Policy;
use hlo_triage::replay::{Location, Replay};
use hlo_triage::report::html::Page;
use hlo_triage::report::{self, text};

/// Options of `hlo isolate`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// A program, or the folder of a finding or a case
    #[arg(value_name = "FILE")]
    file: String,
    /// What may be wrong; a finding says it itself
    #[arg(long, value_name = "NAME", conflicts_with = "engines")]
    platform: Option<String>,
    /// Several, each against the reference
    #[arg(long, value_name = "A,B")]
    engines: Option<String>,
    /// Inputs: arrays arg0, ...; made if not given
    #[arg(long, value_name = "NPZ")]
    inputs: Option<String>,
    /// Only instructions of this name; may be given again
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Only instructions of this opcode; may be given again
    #[arg(long, value_name = "OPCODE")]
    opcode: Vec<String>,
    /// So many executions of each instruction alone
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    max_executions: u64,
    /// Instructions that another program gets at once
    #[arg(long, value_name = "N", default_value_t = 32)]
    batch: usize,
    #[command(flatten)]
    judging: JudgingOptions,
    /// Seed of made inputs and of rng
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// How sums of floats round in the reference
    #[arg(long, value_enum, value_name = "MODE")]
    accumulate: Option<AccumulateOption>,
    /// Replicas, if not as many as the module says
    #[arg(long, value_name = "N")]
    replicas: Option<u32>,
    /// Partitions, if not as many as the module says
    #[arg(long, value_name = "N")]
    partitions: Option<u32>,
    /// What the program is fed: arrays in0, ... (docs/devices.md)
    #[arg(long, value_name = "NPZ")]
    infeed: Option<String>,
    /// The most seconds of a run of another program
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = values::time)]
    timeout: Duration,
    /// Write a page with the program's graph to this file
    #[arg(long, value_name = "FILE")]
    html: Option<String>,
    #[command(flatten)]
    trust: TrustOption,
    /// How many rows and divergences to show
    #[arg(long, value_name = "N", default_value_t = 40)]
    show: usize,
    #[command(flatten)]
    pub(super) limits: LimitOptions,
    #[command(flatten)]
    read: ReadOptions,
    #[command(flatten)]
    custom_calls: CustomCallOptions,
}

const EXAMPLES: &str = "\
Examples:
  hlo isolate m.hlo --platform faulty:pad-low-sign
  hlo isolate hlo-mismatch-2f91c0 --html page.html
  hlo isolate m.hlo --platform 'serve:python3 conformance/peers/xla_cpu.py' --opcode dot

Ends with 0 if nothing diverges, 1 if something does.";

/// The program to isolate, from a file or a folder.
struct Task {
    program: Program,
    inputs: Vec<Vec<ArrayLiteral>>,
    settings: Settings,
    engines: Vec<String>,
}

pub(crate) fn run(options: &Options, ui: &Ui) -> Result<Exit, Failure> {
    let task = task(options, ui)?;
    let module = &task.program.module;
    let engines =
        task.engines.iter().map(|n| with_timeout(n, options.timeout)).collect::<Result<Vec<_>, _>>()?;
    let chosen = isolate::Options {
        settings: task.settings,
        max_executions: options.max_executions,
        only: options.only.clone(),
        opcodes: options.opcode.iter().map(|o| opcode(o)).collect::<Result<_, _>>()?,
        batch: options.batch,
    };
    for name in &options.only {
        known(module, name)?;
    }
    ui.detail(format!(
        "{}: {}, {} instructions, {}",
        options.file,
        module.name,
        report::grouped(instruction_count(module) as u64),
        signature(module)
    ));
    let feeds = Feeds { infeed: options.infeed.clone(), limit: options.limits.memory_limit };
    let mut exit = Exit::Ok;
    if options.html.is_some() && engines.len() > 1 {
        return Err(Failure::usage("--html takes one engine, so that no file overwrites another"));
    }
    for engine in &engines {
        engine
            .supports(module, task.settings.run.devices)
            .map_err(|d| Failure::new(Exit::Unsupported, format!("{}: {}", engine.name(), d.message)))?;
        let host = feeds.hosts(task.settings.run.devices)?;
        let phases: Arc<Phases> = Arc::default();
        let _waiting = Waiting::new(ui, &phases);
        let subject = Subject { host, phases, ..Subject::new(module, &task.inputs) };
        exit = exit.first_failure(isolate_on(&**engine, (&task.program, &subject), &chosen, options, ui)?);
    }
    Ok(exit)
}

fn isolate_on(
    engine: &dyn Engine,
    (program, subject): (&Program, &Subject<'_>),
    chosen: &isolate::Options,
    options: &Options,
    ui: &Ui,
) -> Result<Exit, Failure> {
    let bar = ui.bar(0);
    let mut progress = |done: usize, total: usize| {
        bar.set_length(total as u64);
        bar.set_position(done as u64);
    };
    let isolated = || isolate::isolate(subject, engine, chosen, &mut progress);
    let found = subject.phases.during(Phase::Alone, isolated);
    bar.finish_and_clear();
    let found = match found.map_err(hlo_engines::engine::Outcome::into_results) {
        Ok(found) => found,
        Err(Err((exit, d))) => {
            return Err(Failure::new(exit, format!("the reference has no results: {}", d.message)));
        }
        Err(Ok(_)) => return Err(Failure::internal("a run with results counted as one without")),
    };
    if let Some(lack) = found.lack() {
        return Err(Failure::new(Exit::Trap, format!("{}: {lack}", engine.name())));
    }
    let next = next_commands(&found, options);
    if let Some(path) = &options.html {
        let page = Page { file: &options.file, module: subject.module, found: &found, next: &next }.write();
        write_text(Path::new(path), &page)?;
        ui.detail(format!("  written  {path}"));
    }
    if ui.json {
        let file = (&*options.file, subject.module);
        ui.object(&report::json::isolation(file, &found, options.show, next));
    } else {
        print(ui, program, &found, &chosen.settings.policy, options, &next);
    }
    Ok(found.exit)
}

fn task(options: &Options, ui: &Ui) -> Result<Task, Failure> {
    let limit = options.limits.memory_limit;
    let path = Path::new(&options.file);
    let (mut program, recorded, finding, devices) = if options.file != "-" && path.is_dir() {
        let loaded = artifact::load(path, limit)?;
        (loaded.program, loaded.inputs, loaded.finding, Some(loaded.devices))
    } else {
        let program = super::load(&options.file, &options.read.reading(), ui)?;
        (program, None, None, None)
    };
    options.custom_calls.apply(&mut program, limit, ui)?;
    let replicas = options.replicas.or(devices.map(|d| d.replicas()));
    let partitions = options.partitions.or(devices.map(|d| d.partitions()));
    let devices = super::devices(ui, &program.module, replicas, partitions)?;
    let limits = Limits { fuel: options.limits.fuel, memory_bytes: limit };
    let mut settings = match &finding {
        Some(f) => f.settings(limits)?,
        None => Settings { run: RunOptions { limits, ..RunOptions::default() }, ..Settings::default() },
    };
    settings.run.devices = devices;
    settings.run.seed = options.seed.unwrap_or(settings.run.seed);
    settings.run.accumulate = options.accumulate.map_or(settings.run.accumulate, Into::into);
    settings.policy = options.judging.policy(finding.as_ref().map(Finding::policy).as_ref())?;
    let inputs = match (&options.inputs, recorded) {
        (Some(npz), _) => inputs::read(&program.module, &mut Npz::open(npz, limit)?, devices)?,
        (None, Some(recorded)) => recorded,
        (None, None) => {
            let range = inputs::range_beside(&options.file)?;
            let plan = inputs::plan(&program.module, range)?;
            inputs::generate(&plan, settings.run.seed, devices, limit)?
        }
    };
    let engines = engines(options, finding.as_ref(), ui)?;
    Ok(Task { program, inputs, settings, engines })
}

/// The engines to look at: the reference agrees with itself, so it is left out beside others.
fn engines(options: &Options, finding: Option<&Finding>, ui: &Ui) -> Result<Vec<String>, Failure> {
    let mut engines = match (&options.platform, &options.engines, finding) {
        (Some(name), _, _) => vec![name.clone()],
        (None, Some(list), _) => names_of(list),
        (None, None, Some(f)) => {
            options.trust.confirm(Path::new(&options.file), &[&f.signature.engine], ui)?;
            vec![f.signature.engine.clone()]
        }
        (None, None, None) => Vec::new(),
    };
    if engines.len() > 1 {
        engines.retain(|e| e != "interpreter");
    }
    if engines.is_empty() {
        return Err(Failure::usage("which engine? say --platform NAME, or name the folder of a finding"));
    }
    Ok(engines)
}

fn opcode(name: &str) -> Result<Opcode, Failure> {
    Opcode::from_name(name).ok_or_else(|| {
        let hint = did_you_mean(name, Opcode::ALL.iter().map(|o| o.name()));
        let hint = hint.map(|h| format!("; did you mean `{h}`?")).unwrap_or_default();
        Failure::usage(format!("there is no opcode `{name}`{hint}"))
    })
}

/// Refuses a name that no instruction has.
fn known(module: &Module, name: &str) -> Result<(), Failure> {
    let bare = name.strip_prefix('%').unwrap_or(name);
    let all = || module.computations().iter().flat_map(|&c| module.instructions(c).map(move |id| (c, id)));
    let full = |(c, id)| hlo_triage::watch::stop::full_name(module, c, id);
    if all().any(|(c, id)| *module.instr(id).name == *bare || full((c, id)) == bare) {
        return Ok(());
    }
    let names: Vec<String> = all().flat_map(|at| [module.instr(at.1).name.to_string(), full(at)]).collect();
    let hint = did_you_mean(bare, names.iter().map(String::as_str));
    let hint = hint.map(|h| format!("; did you mean `{h}`?")).unwrap_or_default();
    Err(Failure::usage(format!("there is no instruction `{bare}`{hint}")))
}

/// The suggested next commands.
fn next_commands(found: &Isolation, options: &Options) -> Vec<String> {
    if !found.diverges() {
        return Vec::new();
    }
    let folder = Path::new(&options.file).is_dir();
    let file = quoted_word(&options.file);
    // A folder says it itself, but what it says starts no program.
    let said = folder && stays_inside(&found.engine);
    let platform = if said { String::new() } else { format!(" --platform {}", quoted_word(&found.engine)) };
    let mut next = Vec::new();
    if passes_of(&found.engine).is_ok() {
        next.push(format!("hlo bisect {file}{platform}"));
    }
    let engines = format!("interpreter,{}", found.engine);
    let engines = if said { String::new() } else { format!(" --engines {}", quoted_word(&engines)) };
    next.push(format!("hlo reduce {file}{engines}"));
    if let (Some(blame), false) = (&found.blame, folder) {
        let name = blame.location.describe();
        next.push(format!("hlo run {file} --stop-at {}", quoted_word(&name)));
    }
    next
}

/// What a replay found, of an engine's HLO or of the steps of a compiled program.
fn replayed(ui: &Ui, module: &Module, name: &str, (engine, what): (&str, &str), r: &Replay, show: usize) {
    ui.detail(format!(
        "  {name:8} {engine}: {} {what} compared with the interpreter's, {} wrong, {} undecided, {} explained",
        report::grouped(r.compared),
        report::grouped(r.wrong),
        report::grouped(r.undecided),
        report::grouped(r.explained)
    ));
    if r.unjudged > 0 {
        let n = report::grouped(r.unjudged);
        ui.line(format!("           {n} executions differ and were too many to judge (--memory-limit)"));
    }
    if let Some(d) = &r.ended {
        ui.line(format!("           it ended without results: {}", d.message));
    }
    let first = r.first();
    for d in r.divergences.iter().take(show) {
        if Some(d.location.clone()) != first.map(|f| f.location.clone()) {
            continue;
        }
        let lost: Vec<String> = d.covers.iter().map(|&id| module.instr(id).name.to_string()).collect();
        let (heading, lines) = text::divergence(d, &lost);
        ui.line(format!("  first    {}", ui.bad(&heading)));
        lines.iter().for_each(|l| ui.line(format!("           {l}")));
    }
    let others = r.divergences.iter().filter(|d| Some(&d.location) != first.map(|f| &f.location));
    for d in others.take(show.min(8)) {
        let (heading, _) = text::divergence(d, &[]);
        ui.detail(format!("  then     {heading}: {}", text::class(d.class)));
    }
}

/// The result, most important first: the verdict, the blame, then the evidence.
fn print(ui: &Ui, program: &Program, found: &Isolation, policy: &Policy, options: &Options, next: &[String]) {
    let module = &program.module;
    let failure = found.whole.failure.as_ref().map(|f| format!(": {}", f.message)).unwrap_or_default();
    let whole = format!("{}{failure}", found.whole.verdict(policy));
    ui.line(format!("  whole    {}", if found.diverges() { ui.bad(&whole) } else { ui.good(&whole) }));
    match &found.blame {
        Some(b) if !found.diverges() => ui.line(format!(
            "  hidden   {}; the program's results are within their bounds all the same",
            text::blame(b)
        )),
        Some(b) => ui.line(format!("  blame    {}", ui.bad(&text::blame(b)))),
        None if found.diverges() && found.replay.is_err() => ui.line(
            "  blame    no instruction alone: what the engine makes of several together, or one that was not run alone",
        ),
        None => {}
    }
    if let Some((line, text)) = found.blame.as_ref().and_then(|b| operation(program, &b.location)) {
        ui.line(format!("  source   line {line}: {text}"));
    }
    match (&found.replay, &found.steps) {
        (Ok(r), _) => replayed(ui, module, "replay", (&found.engine, "executions"), r, options.show),
        (Err(_), Some(r)) => {
            replayed(ui, module, "steps", (&found.engine, "executions of its steps"), r, options.show);
            if let Some(strategy) = &found.strategy {
                ui.line(format!("  computed {strategy}"));
            }
            if let Some(origin) = found.origin {
                ui.line(format!("  origin   {}", origin.describe()));
            }
        }
        (Err(why), None) => ui.detail(format!("  replay   none: {why}")),
    }
    if found.replay.is_err() {
        for (name, verdict) in &found.whole.arrays {
            text::array(name, verdict, 4).iter().for_each(|l| ui.line(format!("           {l}")));
        }
    }
    table(ui, &found.rows, options.show);
    for (i, command) in next.iter().enumerate() {
        ui.detail(format!("  {:8} {command}", if i == 0 { "next" } else { "" }));
    }
    let verdict = format!("{}: {}", found.engine, text::totals(found));
    ui.line(if found.diverges() { ui.bad(&verdict) } else { ui.good(&verdict) });
}

/// The StableHLO operation of an instruction: its line, from 1, and the first line of its text.
fn operation<'p>(program: &'p Program, location: &Location) -> Option<(u32, &'p str)> {
    let (module, text) = (&program.module, &program.source.text);
    let mut all = module.computations().iter().flat_map(|&c| module.instructions(c));
    let span =
        module.instr(all.find(|&id| id == location.id && module.instr(id).name == location.name)?).span;
    if !program.is_stablehlo || span.is_none() {
        return None;
    }
    let from = usize::try_from(span.start).ok()?;
    let begin = text.get(..from)?.rfind('\n').map_or(0, |at| at + 1);
    let line = text.get(begin..)?.lines().next()?.trim();
    Some((LineIndex::new(text).line_column(text, span.start).0, line))
}

/// Rows that failed, then the others, in execution order; of too many, the latter are left out first.
fn table(ui: &Ui, rows: &[Row], show: usize) {
    let bad = |r: &&Row| {
        matches!(r.alone, Status::Failure(_)) || matches!(r.in_place, Some(Class::Wrong | Class::Undecided))
    };
    let run = |r: &&Row| !matches!(r.alone, Status::Skipped(_));
    let shown: Vec<&Row> = if rows.len() <= show {
        rows.iter().collect()
    } else if rows.iter().filter(run).count() <= show {
        rows.iter().filter(|r| run(r) || bad(r)).collect()
    } else {
        rows.iter().filter(bad).take(show).collect()
    };
    let (failed, others): (Vec<&Row>, Vec<&Row>) = shown.into_iter().partition(bad);
    let shown = [failed, others].concat();
    let name = |r: &Row| format!("{}.{}", r.computation, r.name);
    let width = shown.iter().map(|r| name(r).chars().count()).max().unwrap_or(0).max("instruction".len());
    let head = format!(
        "  {:width$}  {:20}  {:>8}  {:8}  {:10}  ",
        "instruction", "opcode", "runs", "alone", "in place"
    );
    ui.detail(head.trim_end());
    for r in &shown {
        let in_place = r.in_place.map_or("", text::class);
        let line = format!(
            "  {:width$}  {:20}  {:>8}  {:8}  {in_place:10}  {}",
            name(r),
            r.opcode.name(),
            report::count(r.executions),
            r.alone.name(),
            text::reason(r)
        );
        let line = line.trim_end();
        ui.detail(if bad(r) { ui.bad(line) } else { line.to_owned() });
    }
    if shown.len() < rows.len() {
        ui.detail(format!(
            "  ... and {} more without a failure (--show N)",
            report::grouped((rows.len() - shown.len()) as u64)
        ));
    }
}
