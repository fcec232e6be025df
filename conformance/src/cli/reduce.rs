//! `hlo reduce`: the smallest program with the same failure.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use serde::Serialize;

use super::judging::JudgingOptions;
use super::trust::TrustOption;
use super::ui::Ui;
use super::{CustomCallOptions, ReadOptions, values};
use hlo_engines::engine::{self, Limits, RunOptions, spec};
use hlo_engines::inputs;
use hlo_engines::mlir::output::text_of_hlo;
use hlo_system::exit::{Exit, Failure};
use hlo_system::files::write_text;
use hlo_system::npz::Npz;
use hlo_triage::artifact;
use hlo_triage::case::Case;
use hlo_triage::differential::Settings;
use hlo_triage::reduce::{
    self, Candidate, Command, Differential, Match, NotReduced, Oracle, Report, Step, Trouble,
};
use hlo_triage::report::{grouped, parse_bytes};

/// Options of `hlo reduce`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// A program, or a folder of module.hlo and inputs.npz, as of a finding
    #[arg(value_name = "PROGRAM")]
    program: String,
    /// Reference and engine that disagree [default: those of a finding]
    #[arg(long, value_name = "A,B", conflicts_with = "command")]
    engines: Option<String>,
    /// A command that fails: {dir}, {module} and {inputs} stand for paths; without them it gets the folder
    #[arg(long, value_name = "COMMAND")]
    command: Option<String>,
    /// What the command's output must have, to be the same failure
    #[arg(long = "match", value_name = "TEXT", requires = "command")]
    matched: Option<String>,
    /// Inputs: arrays arg0, arg1, ...
    #[arg(long, value_name = "NPZ")]
    inputs: Option<PathBuf>,
    /// Seed of made inputs
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    /// Where the result goes, and what a later run goes on from [default: PROGRAM.reduced]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Candidates that are tried at once, at most 1,024; 0 is as many as there are processors
    #[arg(short, long, default_value_t = 0, value_name = "N", hide_default_value = true, value_parser = values::threads)]
    jobs: usize,
    /// Stop after this time, such as 90s or 5m
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    max_time: Option<Duration>,
    /// Stop after this many candidates
    #[arg(long, value_name = "N")]
    max_candidates: Option<u64>,
    /// How often the original is run, to see whether it always fails
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
    /// The most time for one run of a command or another program
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = values::time)]
    timeout: Duration,
    #[command(flatten)]
    judging: JudgingOptions,
    /// The most instructions that a run of the program executes
    #[arg(long, value_name = "N", default_value_t = 100_000_000)]
    fuel: u64,
    /// The most bytes of values, such as 8GiB
    #[arg(long, value_name = "BYTES", default_value = "8GiB", value_parser = parse_bytes)]
    pub(super) memory_limit: u64,
    #[command(flatten)]
    read: ReadOptions,
    #[command(flatten)]
    custom_calls: CustomCallOptions,
    #[command(flatten)]
    trust: TrustOption,
}

const EXAMPLES: &str = "\
Examples:
  hlo reduce bug.hlo --engines interpreter,passes:simplify
  hlo reduce mismatch/ --engines interpreter,exec:./mine
  hlo reduce hlo-mismatch-2f91c0                 the engines and inputs of the finding
  hlo reduce bug.hlo --command './compile {module}' --match 'assertion failed'

Ends with 0 if there is a result, 1 if the program does not fail. Run it again to go on where it was stopped.";

pub(crate) fn run(options: &Options, ui: &Ui) -> Result<Exit, Failure> {
    let (original, is_stablehlo) = read(options, ui)?;
    let out = options.out.clone().unwrap_or_else(|| default_out(&options.program));
    for (written, read) in
        [("module.hlo", program_file(&options.program)), ("inputs.npz", inputs_file(options))]
    {
        if read.is_some_and(|read| same_file(&out.join(written), &read)) {
            return Err(Failure::usage(format!(
                "--out {}: {written} there is read, and is not overwritten",
                out.display()
            )));
        }
    }
    let (oracle, identity, differential) = oracle(options, ui)?;
    let jobs = if options.jobs == 0 {
        std::thread::available_parallelism().map_or(1, usize::from)
    } else {
        options.jobs
    };
    let settings = reduce::Options {
        jobs,
        max_time: options.max_time,
        max_candidates: options.max_candidates,
        repeat: options.repeat,
        fuel: options.fuel,
        store: Some(out.clone()),
        identity,
    };
    let mut begun = false;
    let mut progress = |signature: &reduce::Signature, step: &Step| {
        if !begun {
            begin(ui, &signature.to_string(), &original);
            begun = true;
        }
        ui.detail(format!("   -> {:>4}  {:<44} {}", grouped(step.instructions), step.what, clock(step.time)));
        if ui.json {
            ui.object(&StepObject {
                event: "step",
                what: step.what,
                instructions: step.instructions,
                elements: step.elements,
                seconds: step.time.as_secs_f64(),
            });
        }
    };
    let report = match reduce::reduce(&original, &*oracle, &settings, &mut progress) {
        Ok(report) => report,
        Err(NotReduced::NoFailure) => {
            // Where the reference has no results, nothing was compared.
            if let Some(Err((exit, why))) = differential.map(|d| d.reference_results(&original)) {
                let message = format!("{}: {}", options.program, why.message);
                return Err(Failure::new(exit, format!("{message}: there is nothing to compare with")));
            }
            return Err(Failure::new(
                Exit::Differs,
                format!("{}: {}", options.program, NotReduced::NoFailure),
            ));
        }
        Err(e @ NotReduced::Invalid) => {
            return Err(Failure::new(Exit::Verify, format!("{}: {e}", options.program)));
        }
        Err(e @ NotReduced::Environment(_)) => return Err(Failure::new(Exit::Trap, e.to_string())),
        Err(e @ NotReduced::Store(_)) => return Err(Failure::usage(e.to_string())),
    };
    if !begun {
        begin(ui, &report.signature.to_string(), &original);
    }
    // What was given as StableHLO is given back as such.
    let mut stablehlo = None;
    if is_stablehlo {
        match text_of_hlo(&report.best.module) {
            Ok(text) => {
                write_text(&out.join("module.mlir"), &text)?;
                stablehlo = Some(text);
            }
            Err(why) => ui.detail(format!("the smallest program has no StableHLO: {why}")),
        }
    }
    end(ui, &report, &out, stablehlo);
    Ok(Exit::Ok)
}

/// The file of a program; `None` for standard input.
fn program_file(program: &str) -> Option<PathBuf> {
    let path = Path::new(program);
    (program != "-").then(|| if path.is_dir() { path.join("module.hlo") } else { path.to_owned() })
}

/// The file of the inputs: what is given, or what is in the program's folder.
fn inputs_file(options: &Options) -> Option<PathBuf> {
    let folder = Path::new(&options.program);
    let beside = || Some(folder.join("inputs.npz")).filter(|p| folder.is_dir() && p.is_file());
    options.inputs.clone().or_else(beside)
}

/// The program and its inputs, and whether it was given as StableHLO.
fn read(options: &Options, ui: &Ui) -> Result<(Candidate, bool), Failure> {
    let program =
        program_file(&options.program).map_or_else(|| "-".to_owned(), |p| p.to_string_lossy().into_owned());
    let mut loaded = super::load(&program, &options.read.reading(), ui)?;
    options.custom_calls.apply(&mut loaded, options.memory_limit, ui)?;
    let is_stablehlo = loaded.is_stablehlo;
    let mut module = loaded.module;
    let (replicas, partitions) = recorded_devices(&options.program)?;
    let devices = super::devices(ui, &module, replicas, partitions)?;
    // What names the devices may go on the way.
    engine::devices::record(&mut module, devices);
    let inputs = match inputs_file(options) {
        Some(path) => inputs::read(&module, &mut Npz::open(&path, options.memory_limit)?, devices)?,
        None => {
            let plan = inputs::plan(&module, inputs::range_beside(&program)?)?;
            inputs::generate(&plan, options.seed, devices, options.memory_limit)?
        }
    };
    Ok((Candidate { module, inputs }, is_stablehlo))
}

/// The devices that a finding or a case was run on.
fn recorded_devices(program: &str) -> Result<(Option<u32>, Option<u32>), Failure> {
    let folder = Path::new(program);
    if program == "-" || !folder.is_dir() {
        return Ok((None, None));
    }
    if let Some(finding) = artifact::finding(folder)? {
        return Ok((Some(finding.replicas), Some(finding.partitions)));
    }
    if Case::is_at(folder) {
        let info = Case::open(folder)?.info;
        return Ok((Some(info.replicas), Some(info.partitions)));
    }
    Ok((None, None))
}

fn default_out(program: &str) -> PathBuf {
    let name = if program == "-" { "stdin" } else { program.trim_end_matches('/') };
    PathBuf::from(format!("{name}.reduced"))
}

fn same_file(a: &Path, b: &Path) -> bool {
    a.canonicalize().is_ok_and(|a| b.canonicalize().is_ok_and(|b| a == b))
}

/// What is asked of candidates, the words that tell it from others, and the engines if it compares two.
type Asked = (Box<dyn Oracle>, String, Option<Differential>);

fn oracle(options: &Options, ui: &Ui) -> Result<Asked, Failure> {
    if let Some(command) = &options.command {
        let output = options.matched.clone().map_or(Match::Any, Match::Text);
        let identity = format!("command {command} {output:?}");
        return Ok((
            Box::new(Command {
                command: command.clone(),
                output,
                timeout: options.timeout,
                trouble: Trouble::default(),
            }),
            identity,
            None,
        ));
    }
    let folder = Path::new(&options.program);
    let finding = if options.program != "-" && folder.is_dir() { artifact::finding(folder)? } else { None };
    let (reference, engine) = match (&options.engines, &finding) {
        (Some(engines), _) => {
            let two = engines.split_once(',').ok_or_else(|| {
                let example = "two are needed, such as interpreter,exec:COMMAND";
                Failure::usage(format!("--engines {engines}: {example}"))
            })?;
            (two.0.to_owned(), two.1.to_owned())
        }
        (None, Some(f)) => {
            options.trust.confirm(folder, &[&f.reference, &f.signature.engine], ui)?;
            (f.reference.clone(), f.signature.engine.clone())
        }
        (None, None) => {
            return Err(Failure::usage(
                "which engines disagree? say --engines A,B or --command, or name the folder of a finding",
            ));
        }
    };
    let limits = Limits { fuel: Some(options.fuel), memory_bytes: options.memory_limit };
    let mut settings = match &finding {
        Some(f) => f.settings(limits)?,
        None => Settings { run: RunOptions { limits, ..RunOptions::default() }, ..Settings::default() },
    };
    settings.policy = options.judging.policy(finding.as_ref().map(artifact::Finding::policy).as_ref())?;
    let differential = Differential {
        reference: spec::with_timeout(&reference, options.timeout)?,
        engine: spec::with_timeout(&engine, options.timeout)?,
        settings,
        time: Some(options.timeout),
        trouble: Trouble::default(),
    };
    let policy = serde_json::to_string(&settings.policy).unwrap_or_default();
    let identity = format!("engines {reference},{engine} {policy}");
    Ok((Box::new(differential.clone()), identity, Some(differential)))
}

fn begin(ui: &Ui, signature: &str, original: &Candidate) {
    let metric = reduce::Metric::of(original);
    ui.detail(format!("signature: {signature}"));
    ui.detail(format!(
        "   {} instructions, {} elements",
        grouped(metric.instructions),
        grouped(metric.elements)
    ));
}

#[derive(Serialize)]
struct StepObject {
    event: &'static str,
    what: &'static str,
    instructions: u64,
    elements: u64,
    seconds: f64,
}

#[derive(Serialize)]
struct ResultObject<'a> {
    event: &'static str,
    ok: bool,
    signature: String,
    original_instructions: u64,
    original_elements: u64,
    instructions: u64,
    elements: u64,
    tried: u64,
    fixpoint: bool,
    flaky: Option<[u32; 2]>,
    unsteady: u64,
    seconds: f64,
    out: String,
    program: &'a str,
}

fn end(ui: &Ui, report: &Report, out: &Path, stablehlo: Option<String>) {
    let text = stablehlo.unwrap_or_else(|| reduce::text(&report.best.module));
    if ui.json {
        ui.object(&ResultObject {
            event: "result",
            ok: true,
            signature: report.signature.to_string(),
            original_instructions: report.original.instructions,
            original_elements: report.original.elements,
            instructions: report.metric.instructions,
            elements: report.metric.elements,
            tried: report.tried,
            fixpoint: report.fixpoint,
            flaky: report.flaky.map(|(k, n)| [k, n]),
            unsteady: report.unsteady,
            seconds: report.time.as_secs_f64(),
            out: out.display().to_string(),
            program: &text,
        });
        return;
    }
    ui.line(text.trim_end());
    if let Some((k, n)) = report.flaky {
        ui.line(format!("flaky: {k} of {n}"));
    }
    if report.unsteady > 0 {
        ui.line(format!("flaky: {} candidates failed once and not again", grouped(report.unsteady)));
    }
    let tried = format!("{} candidates tried, {}", grouped(report.tried), clock(report.time));
    ui.line(if report.fixpoint {
        format!("a fixpoint: no smaller program shows the same failure ({tried})")
    } else {
        format!("stopped before a fixpoint: run it again to go on ({tried})")
    });
    ui.detail(format!("saved in {}", out.display()));
}

/// `0:07`, `12:00`.
fn clock(t: Duration) -> String {
    let s = t.as_secs();
    format!("{}:{:02}", s / 60, s % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown() {
        assert_eq!(clock(Duration::from_secs(67)), "1:07");
    }
}
