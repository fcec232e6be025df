//! `hlo fuzz`: hunts for programs on which engines go wrong.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use clap::Args;
use hlo_interp::Accumulate;
use serde::Serialize;

use super::judging::JudgingOptions;
use super::ui::Ui;
use super::{AccumulateOption, CustomCallOptions, LimitOptions, values};
use crate::folder::{self, Files};
use crate::fuzz::progress::{self, Progress, Saved, State};
use crate::fuzz::{Event, Finding, Hunt, Program, Size, Source, Totals, WIDEST, acceptance, again, go_on};
use hlo_engines::engine::{self, Engine, Limits, RunOptions};
use hlo_engines::faults;
use hlo_engines::frontend;
use hlo_engines::inputs;
use hlo_system::exit::{Exit, Failure};
use hlo_system::files::describe;
use hlo_triage::artifact;
use hlo_triage::case;
use hlo_triage::differential::{Kind, Settings};
use hlo_triage::policy::{MostUndecided, Policy};
use hlo_triage::reduce::{self, Candidate, Differential, Trouble};
use hlo_triage::report;

/// Options of `hlo fuzz`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// The reference, and what is compared with it
    #[arg(long, value_name = "A,B", default_value = "interpreter,passes:default")]
    engines: String,
    /// Compare the interpreter with itself on what each pass makes of a program, and the default pipeline
    #[arg(long, conflicts_with = "engines")]
    every_pass: bool,
    /// Which sequence of programs
    #[arg(long, default_value_t = 0, value_name = "S")]
    seed: u64,
    /// How many programs, of all shards together
    #[arg(long, default_value_t = 10_000, value_name = "N")]
    count: u64,
    /// Of them those with number = I mod N
    #[arg(long, value_name = "I/N", value_parser = parse_shard)]
    shard: Option<(u64, u64)>,
    /// How large programs are
    #[arg(long, value_enum, default_value_t = Size::Mixed, value_name = "SIZE")]
    size: Size,
    /// Change real programs instead of making new ones: folders, or HLO files
    #[arg(long, value_name = "PATH")]
    mutate: Vec<String>,
    /// Run real programs as they are: folders, or HLO files
    #[arg(long, value_name = "PATH", conflicts_with = "mutate")]
    programs: Vec<String>,
    /// Only programs of one device
    #[arg(long)]
    one_device: bool,
    /// Stop after this many different findings
    #[arg(long, default_value_t = 20, value_name = "N")]
    max_findings: usize,
    /// Programs with undecided elements are findings too: kept, and told
    #[arg(long, hide_short_help = true)]
    keep_undecided: bool,
    /// Keep each finding, not only the first of its kind
    #[arg(long, hide_short_help = true)]
    keep_all: bool,
    /// Keep findings as they were found
    #[arg(long)]
    no_reduce: bool,
    /// Seconds for the reduction of a finding
    #[arg(long, default_value = "120", value_name = "S", value_parser = values::time)]
    reduce_time: Duration,
    /// Stop after this many seconds
    #[arg(long, value_name = "S", value_parser = values::time)]
    max_time: Option<Duration>,
    #[command(flatten)]
    judging: JudgingOptions,
    /// Seconds for a run of a program
    #[arg(long, default_value = "60", value_name = "S", value_parser = values::time)]
    timeout: Duration,
    /// How sums of floats round in the reference
    #[arg(long, value_enum, value_name = "MODE")]
    accumulate: Option<AccumulateOption>,
    /// Programs at once, at most 1,024; 0 is one for each processor
    #[arg(long, default_value_t = 0, value_name = "N", hide_default_value = true, value_parser = values::threads)]
    jobs: usize,
    /// Where findings and totals go
    #[arg(long, default_value = "fuzz-findings", value_name = "DIR")]
    out: PathBuf,
    /// Hunt, reduce and isolate seeded faults: those named, or all; --max-time and --reduce-time are for each
    #[arg(long, value_name = "NAME", num_args = 0.., value_delimiter = ',')]
    every_fault: Option<Vec<String>>,
    /// Print the seeded faults, engines `faulty:NAME`
    #[arg(long)]
    list_faults: bool,
    /// Add up the totals of shards: their folders
    #[arg(long, value_name = "DIR", num_args = 1..)]
    merge: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) limits: LimitOptions,
    #[command(flatten)]
    custom_calls: CustomCallOptions,
}

const EXAMPLES: &str = "\
Examples:
  hlo fuzz --engines interpreter,passes:default --count 100000
  hlo fuzz --every-pass --max-time 60
  hlo fuzz --engines interpreter,faulty:pad-low-sign --max-findings 1
  hlo fuzz --shard 3/16 --out shard3; hlo fuzz --merge shard*
  hlo fuzz --mutate ../shared/corpus/jax --engines interpreter,child:passes:default";

/// `I/N`.
pub(super) fn parse_shard(text: &str) -> Result<(u64, u64), String> {
    let (i, n) = text.split_once('/').ok_or("a shard is I/N, such as 0/16")?;
    let number = |s: &str| s.parse::<u64>().map_err(|e| format!("`{s}`: {e}"));
    let (i, n) = (number(i)?, number(n)?);
    if i < n { Ok((i, n)) } else { Err(format!("shards are counted from 0: 0/{n} to {}/{n}", n.max(1) - 1)) }
}

pub(crate) fn run(options: &Options, ui: &Ui) -> Result<Exit, Failure> {
    if options.list_faults {
        list_faults(ui);
        return Ok(Exit::Ok);
    }
    if !options.merge.is_empty() {
        return merge(options, ui);
    }
    let timeout = options.timeout;
    let names = if options.every_pass { every_pass() } else { engine::names_of(&options.engines) };
    let engines: Vec<Arc<dyn Engine>> =
        names.iter().map(|e| engine::with_timeout(e, timeout)).collect::<Result<_, _>>()?;
    let Some((reference, tried)) = engines.split_first().filter(|(_, tried)| !tried.is_empty()) else {
        return Err(Failure::usage("--engines takes a reference and at least one engine to compare with it"));
    };
    let real = [&options.mutate[..], &options.programs[..]].concat();
    let source = Source {
        seed: options.seed,
        size: options.size,
        bases: Arc::new(bases(&real, options, ui)?),
        mutated: !options.mutate.is_empty(),
        devices: !options.one_device,
    };
    // Generated programs are small; one that is not must not take the machine with it.
    let memory_bytes = options.limits.memory_limit.min(1 << 30);
    let settings = Settings {
        run: RunOptions {
            accumulate: options.accumulate.map_or(Accumulate::Exact, Accumulate::from),
            limits: Limits { fuel: options.limits.fuel.or(Some(20_000_000)), memory_bytes },
            ..RunOptions::default()
        },
        policy: options.judging.policy(Some(&hunting()))?,
        ..Settings::default()
    };
    let jobs = match options.jobs {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        n => n,
    };
    if let Some(names) = &options.every_fault {
        return every_fault(options, names, source, settings, jobs, ui);
    }
    let count = match source.bases.len() as u64 {
        n @ 1.. if !source.mutated => n,
        _ => options.count,
    };
    let bar = ui.bar(count);
    let the_hunt = Hunt {
        reference: &**reference,
        engines: tried.iter().map(|e| &**e).collect(),
        source,
        count,
        shard: options.shard.unwrap_or((0, 1)),
        max_findings: options.max_findings,
        keep_undecided: options.keep_undecided,
        keep_all: options.keep_all,
        max_time: options.max_time,
        timeout,
        jobs,
        settings,
    };
    let out = &options.out;
    make_folder(out)?;
    let identity = identity(options, &names, &the_hunt);
    let state = State::read(out, &identity).unwrap_or_else(|| State { identity, ..State::default() });
    if state.progress.done() > 0 {
        let done = report::grouped(state.progress.done());
        ui.detail(format!("goes on behind {done} programs, {} found", state.findings.len()));
    }
    let known = state.findings.iter().map(|saved| saved.signature.clone()).collect();
    let progress = state.progress.clone();
    let log = Log { options, ui, reference, tried, jobs, hunt: &the_hunt, state: Mutex::default() };
    log.state.lock().unwrap_or_else(PoisonError::into_inner).0 = state;
    let hunted = go_on(&the_hunt, progress, known, &|event| match event {
        Event::Progress(n) => bar.set_position(n),
        Event::Checkpoint(progress) => log.write(progress),
        Event::Found(finding) => bar.suspend(|| {
            show(ui, finding);
            log.save(finding);
        }),
        Event::Stuck(finding, progress) => {
            bar.finish_and_clear();
            show(ui, finding);
            log.save(finding);
            log.write(progress);
            ui.warn(
                "this process cannot end what it runs: the hunt ends here; run it again to go on behind it",
            );
            let exit = log.finish().map_or_else(
                |failure| {
                    ui.warn(&failure.message);
                    failure.exit
                },
                |_| Exit::Differs,
            );
            std::process::exit(i32::from(exit.code()));
        }
    });
    bar.finish_and_clear();
    let totals = hunted.totals;
    let nothing = log.finish()?;
    write_totals(out, &totals)?;
    report(ui, &totals);
    if let Some(lack) = hunted.lack {
        let again = "the hunt ends here; run it again to go on";
        return Err(Failure::new(Exit::Trap, format!("{lack}\n{again}")));
    }
    // A hunt that is over begins anew.
    let _ = std::fs::remove_file(out.join(progress::FILE));
    let undecided = totals.engines.iter().any(|e| !settings.policy.max_undecided.allows(&e.elements));
    Ok(if nothing && totals.findings == 0 && !undecided { Exit::Ok } else { Exit::Differs })
}

/// A hunt's policy: of many programs some elements depend on decisions that rounding makes.
fn hunting() -> Policy {
    Policy { max_undecided: MostUndecided::Share(MAX_UNDECIDED), ..Policy::default() }
}

/// The largest share of all elements of a hunt that may stay undecided.
const MAX_UNDECIDED: f64 = 1e-5;

/// The key of a hunt: another one begins anew in the same folder.
fn identity(options: &Options, names: &[String], hunt: &Hunt<'_>) -> String {
    let Options { seed, size, mutate, programs, one_device, no_reduce, keep_undecided, keep_all, .. } =
        options;
    let (shard, settings) = (hunt.shard, &hunt.settings);
    let bases = hunt.source.bases.len();
    format!(
        "{} {names:?} seed={seed} size={} shard={shard:?} {settings:?} {mutate:?} {programs:?} \
         bases={bases} one_device={one_device} no_reduce={no_reduce} keep_undecided={keep_undecided} keep_all={keep_all} timeout={:?}",
        env!("CARGO_PKG_VERSION"),
        size_name(*size),
        hunt.timeout,
    )
}

fn make_folder(folder: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(folder)
        .map_err(|e| Failure::usage(format!("{}: cannot be written: {}", folder.display(), describe(&e))))
}

/// The progress that a hunt writes.
struct Log<'a> {
    options: &'a Options,
    ui: &'a Ui,
    reference: &'a Arc<dyn Engine>,
    tried: &'a [Arc<dyn Engine>],
    jobs: usize,
    hunt: &'a Hunt<'a>,
    /// The state; the findings of this process; the first thing that could not be written.
    state: Mutex<(State, Vec<Finding>, Option<Failure>)>,
}

impl Log<'_> {
    /// Writes a finding as it is.
    fn save(&self, finding: &Finding) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (state, findings, failed) = &mut *state;
        let n = state.findings.len() + 1;
        let engine = self.engine(finding);
        let saved = engine.and_then(|engine| self.keeper(&engine).save(finding, n));
        match saved {
            Ok(folder) => {
                let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
                let (number, signature) = (finding.number, finding.signature.clone());
                state.findings.push(Saved { n, number, signature, folder: name, is_done: false });
                findings.push(finding.clone());
            }
            Err(failure) => *failed = failed.take().or(Some(failure)),
        }
    }

    /// Writes how far the hunt is.
    fn write(&self, progress: &Progress) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (state, _, failed) = &mut *state;
        // A finding that is not on disk is found again.
        if failed.is_some() {
            return;
        }
        state.progress = progress.clone();
        let out = &self.options.out;
        if let Err(failure) = write_totals(out, &progress.totals).and_then(|()| state.write(out)) {
            *failed = Some(failure);
        }
    }

    /// Reduces and reports findings. Returns whether there are none. Errors: something could not be written.
    fn finish(&self) -> Result<bool, Failure> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (state, findings, failed) = &mut *state;
        if let Some(failure) = failed.take() {
            return Err(failure);
        }
        for i in 0..state.findings.len() {
            let saved = state.findings[i].clone();
            if saved.is_done {
                continue;
            }
            let here = findings.iter().find(|f| f.signature == saved.signature).cloned();
            // What gets stuck in this process does so again.
            let ends = self.hunt.reference.name() == saved.signature.engine
                || self.hunt.engines.iter().any(|e| e.name() == saved.signature.engine);
            let again = || if ends { again(self.hunt, saved.number, &saved.signature) } else { None };
            match here.or_else(again) {
                Some(finding) => self.keeper(&self.engine(&finding)?).keep(&finding, &saved)?,
                None => self.ui.warn(format!("{}: the failure does not show again", saved.folder)),
            }
            state.findings[i].is_done = true;
            state.write(&self.options.out)?;
        }
        Ok(state.findings.is_empty())
    }

    /// The engine that a finding is about.
    fn engine(&self, finding: &Finding) -> Result<Arc<dyn Engine>, Failure> {
        let engine = self.tried.iter().find(|e| e.name() == finding.signature.engine);
        Ok(match engine {
            Some(engine) => engine.clone(),
            // One that got stuck here, in a process of its own. Reduction waits for each that gets stuck.
            None if finding.signature.kind == Kind::Timeout => {
                engine::with_timeout(&finding.signature.engine, self.options.timeout.min(STUCK_AFTER))?
            }
            None => self.reference.clone(),
        })
    }

    fn keeper<'k>(&'k self, engine: &'k Arc<dyn Engine>) -> Keeper<'k> {
        Keeper { options: self.options, ui: self.ui, reference: self.reference, engine, jobs: self.jobs }
    }
}

/// How long a program may take that once got stuck, when it is reduced.
const STUCK_AFTER: Duration = Duration::from_secs(5);

/// Says what was found.
fn show(ui: &Ui, finding: &Finding) {
    ui.detail(format!("program {}: {}", finding.number, finding.signature));
    if let Some(d) = &finding.difference.failure {
        ui.detail(format!("  {}", d.message));
    }
}

/// The interpreter, and each pass that keeps every bit.
fn every_pass() -> Vec<String> {
    let passes = hlo_opt::passes::DECLARED.iter().map(|p| p.name).chain(["default"]);
    std::iter::once("interpreter".to_owned()).chain(passes.map(|p| format!("passes:{p}"))).collect()
}

/// The real programs: those of cases, and files.
fn bases(paths: &[String], options: &Options, ui: &Ui) -> Result<Vec<crate::fuzz::Base>, Failure> {
    let (limit, seed) = (options.limits.memory_limit, options.seed);
    let mut bases = Vec::new();
    let file = |path: String, mut program: frontend::Program| -> Result<crate::fuzz::Base, Failure> {
        options.custom_calls.rewrite(&mut program, limit)?;
        // Mutants keep the header, not what names the devices.
        if let Ok(chosen) = engine::devices::choose(&program.module, None, None) {
            engine::devices::record(&mut program.module, chosen.devices);
        }
        // Inputs are made in memory, for all devices at once.
        let module = &program.module;
        let devices = (module.replica_count() * module.num_partitions()).unsigned_abs();
        let devices = u32::try_from(devices).unwrap_or(u32::MAX);
        if let Err(budget) = inputs::fit(&inputs::parameter_arrays(module), devices, limit) {
            let limit = budget.describe();
            let message = format!("{path}: the inputs alone need more memory than the limit of {limit}");
            return Err(Failure::new(Exit::Trap, message));
        }
        let inputs = hlo_generate::generate::inputs(&program.module, seed);
        let frontend::Program { module, is_stablehlo, .. } = program;
        Ok(crate::fuzz::Base { name: path, module, inputs, is_stablehlo })
    };
    for path in paths {
        let at = Path::new(path);
        if at.is_file() {
            bases.push(file(path.clone(), frontend::load(path).map_err(|r| r.failure(false))?)?);
            continue;
        }
        let Files { cases, programs, .. } = folder::files(std::slice::from_ref(path))?;
        for path in programs {
            let path = path.to_string_lossy().into_owned();
            match frontend::load(&path) {
                Ok(program) => match file(path, program) {
                    Ok(base) => bases.push(base),
                    Err(failure) if failure.exit == Exit::Trap => {
                        ui.warn(format!("left out: {}", failure.message));
                    }
                    Err(failure) => return Err(failure),
                },
                Err(rejected) => ui.warn(format!("{path} is left out: {}", rejected.failure(false).message)),
            }
        }
        for folder in cases {
            let case = case::Case::open(&folder)?;
            let Some(file) = case.program(false) else { continue };
            // A base that does not load is none; the corpus runner tells about it.
            let Ok(mut program) = frontend::load(&file.to_string_lossy()) else { continue };
            options.custom_calls.rewrite(&mut program, limit)?;
            let Ok(inputs) = case
                .inputs(limit)
                .and_then(|mut npz| inputs::read(&program.module, &mut npz, case.devices()?))
            else {
                continue;
            };
            let name = folder.to_string_lossy().into_owned();
            let frontend::Program { module, is_stablehlo, .. } = program;
            bases.push(crate::fuzz::Base { name, module, inputs, is_stablehlo });
        }
    }
    if !paths.is_empty() && bases.is_empty() {
        return Err(Failure::usage(format!("no program in {}", paths.join(", "))));
    }
    Ok(bases)
}

#[derive(Serialize)]
struct FindingObject<'a> {
    finding: usize,
    program: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<&'a str>,
    seed: u64,
    signature: &'a artifact::Signature,
    folder: String,
    instructions: usize,
    reduced: Option<usize>,
}

/// The treatment of findings.
struct Keeper<'a> {
    options: &'a Options,
    ui: &'a Ui,
    reference: &'a Arc<dyn Engine>,
    engine: &'a Arc<dyn Engine>,
    jobs: usize,
}

impl Keeper<'_> {
    /// Writes a finding as it is. Returns its folder.
    fn save(&self, finding: &Finding, n: usize) -> Result<PathBuf, Failure> {
        let Options { seed, size, out, .. } = self.options;
        let origin =
            format!("hlo fuzz --seed {seed} --size {}, program {}", size_name(*size), finding.number);
        finding.save(out, &format!("{n:03}"), &**self.reference, origin)
    }

    /// Reduces a finding if that is wanted, and tells of it.
    fn keep(&self, finding: &Finding, saved: &Saved) -> Result<(), Failure> {
        let (seed, n) = (&self.options.seed, saved.n);
        let folder = self.options.out.join(&saved.folder);
        let instructions = frontend::instruction_count(&finding.program.module);
        // The reference against itself: a crash of ours, with nothing to compare a smaller program with.
        let reducible = !self.options.no_reduce && self.engine.name() != self.reference.name();
        let reduced = if reducible { self.reduce(finding, &folder)? } else { None };
        let object = FindingObject {
            finding: n,
            program: finding.number,
            from: finding.program.from.as_deref(),
            seed: *seed,
            signature: &finding.signature,
            folder: folder.display().to_string(),
            instructions,
            reduced,
        };
        if self.ui.json {
            self.ui.object(&object);
            return Ok(());
        }
        let size = match reduced {
            Some(m) => format!("reduced from {instructions} to {m} instructions"),
            None => format!("{instructions} instructions"),
        };
        let signature = self.ui.bad(&finding.signature.to_string());
        self.ui.line(format!("finding {n}: {signature}; {size} -> {}", folder.display()));
        Ok(())
    }

    /// Writes the smallest program with the same failure below the finding. Returns its instructions.
    fn reduce(&self, finding: &Finding, folder: &Path) -> Result<Option<usize>, Failure> {
        let (reference, engine) = (self.reference.clone(), self.engine.clone());
        let time = Some(self.options.timeout);
        let oracle =
            Differential { reference, engine, settings: finding.settings, time, trouble: Trouble::default() };
        let options = reduce::Options {
            jobs: self.jobs,
            max_time: Some(self.options.reduce_time),
            ..reduce::Options::default()
        };
        let program = &finding.program;
        let original = Candidate { module: program.module.clone(), inputs: program.inputs.clone() };
        let report = match reduce::reduce(&original, &oracle, &options, &mut |_, _| {}) {
            Ok(report) => report,
            Err(why) => {
                self.ui.warn(format!("{}: not reduced: {why}", folder.display()));
                return Ok(None);
            }
        };
        let instructions = frontend::instruction_count(&report.best.module);
        let smaller = Program { module: report.best.module, inputs: report.best.inputs, ..program.clone() };
        let origin = format!("{}, reduced", folder.display());
        finding.with_program(smaller, &**self.reference, &**self.engine).save(
            folder,
            "reduced",
            &**self.reference,
            origin,
        )?;
        Ok(Some(instructions))
    }
}

/// Hunts every fault, and prints a line for each and a summary.
fn every_fault(
    options: &Options,
    names: &[String],
    source: Source,
    settings: Settings,
    jobs: usize,
    ui: &Ui,
) -> Result<Exit, Failure> {
    let faults = acceptance::chosen(names)?;
    let effort = acceptance::Effort {
        source,
        count: options.count,
        hunt_time: options.max_time.unwrap_or(Duration::from_secs(600)),
        reduce_time: options.reduce_time,
        jobs,
        settings,
    };
    let width = faults.iter().map(|f| f.pass().name().len()).max().unwrap_or(0).max(5);
    ui.detail(format!("{:width$}  programs     hunt  instructions      reduce  isolated", "fault"));
    let bar = ui.bar(faults.len() as u64);
    let mut failed = 0;
    for fault in &faults {
        let report = acceptance::accept(fault, &effort)?;
        bar.inc(1);
        failed += usize::from(!report.failures.is_empty());
        bar.suspend(|| {
            if ui.json {
                ui.object(&report);
                return;
            }
            let verdict =
                if report.failures.is_empty() { ui.good("ok") } else { ui.bad(&report.failures.join("; ")) };
            ui.line(format!(
                "{:width$}  {:8} {:7.1}s  {:5} -> {:3}  {:9.1}s  {:20}  {verdict}",
                report.fault,
                report.programs,
                report.hunt_seconds,
                report.instructions,
                report.reduced_instructions,
                report.reduce_seconds,
                report.isolated.unwrap_or("-"),
            ));
            if !report.failures.is_empty() && ui.verbose {
                ui.line(&report.text);
            }
        });
    }
    bar.finish_and_clear();
    if !ui.json {
        ui.line(format!(
            "{} faults, {} as they should be, {failed} not",
            faults.len(),
            faults.len() - failed
        ));
    }
    Ok(if failed == 0 { Exit::Ok } else { Exit::Differs })
}

fn size_name(size: Size) -> String {
    clap::ValueEnum::to_possible_value(&size).map_or_else(String::new, |v| v.get_name().to_owned())
}

fn write_totals(folder: &Path, totals: &Totals) -> Result<(), Failure> {
    let fail = |e: &std::io::Error| {
        Failure::usage(format!("{}: cannot be written: {}", folder.display(), describe(e)))
    };
    std::fs::create_dir_all(folder).map_err(|e| fail(&e))?;
    hlo_system::files::write_whole(&folder.join("totals.json"), |file| {
        serde_json::to_writer_pretty(file, totals).map_err(std::io::Error::from)
    })
}

fn merge(options: &Options, ui: &Ui) -> Result<Exit, Failure> {
    let mut all = Totals::default();
    for folder in &options.merge {
        let path = if folder.is_dir() { folder.join("totals.json") } else { folder.clone() };
        let text = std::fs::read_to_string(&path)
            .map_err(|e| Failure::usage(format!("{}: cannot be read: {}", path.display(), describe(&e))))?;
        let totals: Totals = serde_json::from_str(&text)
            .map_err(|e| Failure::usage(format!("{}: no totals of a hunt: {e}", path.display())))?;
        all.add(&totals);
    }
    report(ui, &all);
    let most = options.judging.policy(Some(&hunting()))?.max_undecided;
    let undecided = all.engines.iter().any(|e| !most.allows(&e.elements));
    Ok(if all.findings == 0 && !undecided { Exit::Ok } else { Exit::Differs })
}

fn report(ui: &Ui, totals: &Totals) {
    if ui.json {
        ui.object(totals);
        return;
    }
    let rate = totals.programs as f64 / totals.seconds.max(1e-9);
    let (reached, all) = totals.coverage.reached(WIDEST);
    ui.line(format!(
        "{} programs, {:.0}/s   {reached} of {all} pairs of opcode and element type ({:.1}%)   {} finding{}",
        report::grouped(totals.programs),
        rate,
        reached as f64 / all.max(1) as f64 * 100.0,
        totals.findings,
        if totals.findings == 1 { "" } else { "s" },
    ));
    if totals.reference_failed > 0 {
        ui.line(format!("  {} programs stopped in the reference", report::grouped(totals.reference_failed)));
    }
    for e in &totals.engines {
        let n = e.elements.total().max(1) as f64;
        ui.line(format!(
            "  {}: programs with the same bits {}, explained {}, undecided {}, wrong {}, failed {}, unsupported {}, replayed {}",
            e.engine, e.same, e.explained, e.undecided, e.wrong, e.failed, e.unsupported, e.replayed
        ));
        ui.line(format!(
            "    elements {}: same bits {:.3}%   explained by rounding {:.3}%   undecided {:.4}%   wrong {}",
            report::grouped(e.elements.total()),
            e.elements.same as f64 / n * 100.0,
            e.elements.explained as f64 / n * 100.0,
            e.elements.undecided as f64 / n * 100.0,
            report::grouped(e.elements.wrong),
        ));
        for (what, kinds) in [("wrong at", &e.wrong_kinds), ("undecided by", &e.undecided_kinds)] {
            let mut kinds: Vec<_> = kinds.iter().collect();
            kinds.sort_by_key(|(_, of)| std::cmp::Reverse((of.programs, of.elements)));
            for (kind, of) in kinds.into_iter().take(MAX_KINDS) {
                let (elements, programs) = (report::grouped(of.elements), report::grouped(of.programs));
                let s = if of.programs == 1 { "" } else { "s" };
                ui.line(format!(
                    "    {what} {kind}: {elements} elements of {programs} program{s}, such as {}",
                    of.first
                ));
            }
        }
        let mut reasons: Vec<_> = e.reasons.iter().collect();
        reasons.sort_by_key(|(_, n)| std::cmp::Reverse(**n));
        for (why, n) in reasons.into_iter().take(MAX_REASONS) {
            ui.line(format!("    unsupported in {}: {why}", report::grouped(*n)));
        }
    }
}

/// How many kinds of wrong programs, and of undecided elements, are shown of an engine. `--json` and
/// `totals.json` have all.
const MAX_KINDS: usize = 8;
/// Reasons of refusals that are shown of an engine; `--json` has all.
const MAX_REASONS: usize = 12;

fn list_faults(ui: &Ui) {
    #[derive(Serialize)]
    struct Object<'a> {
        name: &'a str,
        doc: &'a str,
        source: &'a str,
    }
    let all = faults::all();
    let width = all.iter().map(|f| f.pass().name().len()).max().unwrap_or(0);
    for fault in &all {
        let (name, doc, source) = (fault.pass().name(), fault.pass().doc(), fault.source);
        if ui.json {
            ui.object(&Object { name, doc, source });
        } else {
            ui.line(format!("faulty:{name:width$}  {doc}  [{source}]"));
        }
    }
}
