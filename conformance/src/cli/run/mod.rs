//! `hlo run`: runs programs on an engine and prints or compares their results.

mod certified;
mod cost;
mod expected;
mod folder;
mod jobs;
mod object;
mod printed;

use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use hlo::diag::render_all;
use hlo::{ArrayLiteral, Diagnostic, Diagnostics, Module};
use hlo_interp::{Accumulate, Devices};

use super::dump::DumpOptions;
use super::judging::JudgingOptions;
use super::trust::TrustOption;
use super::ui::{Ui, closed};
use super::waiting::Waiting;
use super::warn;
use super::watch::{WatchOptions, Watched};
use super::{AccumulateOption, CustomCallOptions, LimitOptions, ReadOptions, RiskOptions, values};
use crate::dumps::Dumps;
use certified::Compared;
use expected::Expected;
use hlo_engines::engine::devices::{self, Chosen};
use hlo_engines::engine::support::{self, Ready};
use hlo_engines::engine::{
    self, ConstantArguments, Engine, Finished, FrozenEngine, Inputs, Limits, RunOptions,
};
use hlo_engines::engine::{array_name, named};
use hlo_engines::frontend::{
    JsonError, Program, Stage, instruction_count, json_diagnostics, load_for, signature,
};
use hlo_engines::inputs::{self, InputKind};
use hlo_engines::time_limit::within;
use hlo_system::exit::{Exit, Failure};
use hlo_system::guard::{at_own_risk, guarded};
use hlo_system::npz::{self, Npz};
use hlo_system::phase::{Phase, Phases};
use hlo_triage::artifact::Finding;
use hlo_triage::case::Form;
use hlo_triage::check::Verdict;
use hlo_triage::differential::differ_within;
use hlo_triage::differential::{Settings, Subject, reference_run};
use hlo_triage::feeds::Feeds;
use hlo_triage::judge::{Judge, Judged, NoVerdict, modes};
use hlo_triage::report;
use jobs::{Job, jobs};
use object::Object;

/// Options of `hlo run`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// Programs, folders of a case, or folders of programs; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
    /// What runs the program: `cpu`, but `interpreter` to watch, feed out or accumulate as asked
    #[arg(long, value_name = "NAME")]
    platform: Option<String>,
    /// The interpreter executes what the platform `cpu` does not compile
    #[arg(long, hide_short_help = true)]
    fallback: bool,
    /// What to compare with, or `none`; the interpreter, unless that is the platform
    #[arg(long, value_name = "NAME")]
    reference_platform: Option<String>,
    /// Replicas, if not as many as the module says
    #[arg(long, value_name = "N")]
    replicas: Option<u32>,
    /// Partitions, if not as many as the module says
    #[arg(long, value_name = "N")]
    partitions: Option<u32>,
    /// Inputs: arrays arg0, ... (dK.arg0 of device K); made if not given
    #[arg(long, value_name = "NPZ")]
    inputs: Option<String>,
    /// Arguments that the platform finds as constants of the program, such as weights, by parameter number:
    /// `0-147,150`, or `all-but=148,149`
    #[arg(long, value_name = "LIST", hide_short_help = true)]
    constant_args: Option<ConstantArguments>,
    /// Where to write the inputs, made or given: arrays arg0, arg1, ...
    #[arg(long, value_name = "NPZ", hide_short_help = true)]
    save_inputs: Option<String>,
    /// Where to write the results: arrays out0, ... (dK.out0)
    #[arg(long, value_name = "NPZ")]
    output: Option<String>,
    /// Results to compare with: arrays out0, out1, ...
    #[arg(long, value_name = "NPZ")]
    expected: Option<String>,
    /// What the program is fed: arrays in0, ... (docs/devices.md)
    #[arg(long, value_name = "NPZ", hide_short_help = true)]
    infeed: Option<String>,
    /// Where to write what it feeds out: arrays out0, ...
    #[arg(long, value_name = "NPZ", hide_short_help = true)]
    outfeed: Option<String>,
    /// Compare bit for bit instead of within a tolerance
    #[arg(long, conflicts_with_all = ["max_ulp", "abs_error_bound", "rel_error_bound"])]
    exact: bool,
    /// Compare floats within N representable numbers
    #[arg(long, value_name = "N", conflicts_with_all = ["abs_error_bound", "rel_error_bound"])]
    max_ulp: Option<u64>,
    /// An element is wrong if it exceeds this and the relative bound
    #[arg(long, value_name = "X", value_parser = values::bound)]
    abs_error_bound: Option<f64>,
    /// An element is wrong if it exceeds this and the absolute bound
    #[arg(long, value_name = "X", value_parser = values::bound)]
    rel_error_bound: Option<f64>,
    #[command(flatten)]
    judging: JudgingOptions,
    /// Where a folder that repeats a mismatch goes, or `none`
    #[arg(long, default_value = ".", value_name = "DIR", hide_short_help = true)]
    save_mismatch: String,
    /// How sums of floats round
    #[arg(long, value_enum, value_name = "MODE")]
    accumulate: Option<AccumulateOption>,
    /// Seed of made inputs and of rng
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    /// Kind of made inputs (docs/inputs.md)
    #[arg(
        long,
        value_enum,
        default_value_t,
        value_name = "KIND",
        hide_short_help = true,
        conflicts_with = "inputs"
    )]
    input_kind: InputKind,
    /// The most time to compile the program, to run it on each engine, and to judge results (of another
    /// program: 60s if not given)
    #[arg(long, value_name = "TIME", value_parser = values::time, hide_short_help = true)]
    timeout: Option<Duration>,
    #[command(flatten)]
    trust: TrustOption,
    /// Run that many times, on inputs of seed, seed + 1, ...
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), hide_short_help = true)]
    iterations: u64,
    /// Of a case's folder, the program to run
    #[arg(long, value_enum, default_value_t = Form::Module, value_name = "FORM", hide_short_help = true)]
    form: Form,
    #[command(flatten)]
    watch: WatchOptions,
    #[command(flatten)]
    limits: LimitOptions,
    #[command(flatten)]
    dump: DumpOptions,
    #[command(flatten)]
    read: ReadOptions,
    #[command(flatten)]
    risk: RiskOptions,
    #[command(flatten)]
    custom_calls: CustomCallOptions,
}

const EXAMPLES: &str = "\
Examples:
  hlo run module.hlo --seed 7 --output out.npz
  hlo run module.hlo --inputs in.npz --expected out.npz --max-ulp 3
  hlo run ../shared/corpus/jax/api__add__3b574ebf -v";

impl Options {
    /// The limit on memory.
    pub(super) fn memory_limit(&self) -> u64 {
        self.limits.memory_limit
    }

    /// The engine of this name, within the limit on time.
    fn engine(&self, name: &str) -> Result<Arc<dyn Engine>, Failure> {
        match self.timeout {
            Some(limit) => engine::with_timeout(name, limit),
            None => engine::by_name(name),
        }
    }

    /// The default engine: the interpreter if an option is given that compiled programs do not support.
    fn default_platform(&self) -> &'static str {
        let asks_interpreter =
            self.watch.any() || self.accumulate.is_some() || self.outfeed.is_some() || self.risk.at_risk();
        if cfg!(feature = "llvm") && !asks_interpreter { "cpu" } else { "interpreter" }
    }
}

pub(crate) fn run(options: &Options, ui: &Ui) -> Result<Exit, Failure> {
    for (name, given) in [("--output", &options.output), ("--save-inputs", &options.save_inputs)] {
        if options.files.len() > 1 && given.is_some() {
            let why = "takes one program, so that no file overwrites another";
            return Err(Failure::usage(format!("{name} {why}")));
        }
    }
    if let (Some(flag), true) = (options.watch.one_program(), options.files.len() > 1) {
        return Err(Failure::usage(format!("{flag} takes one program")));
    }
    let mut exit = Exit::Ok;
    let dumps = options.dump.dumps();
    let number = Cell::new(0);
    for file in &options.files {
        let result = guarded(&format!("running {file}"), || {
            if jobs::is_folder_of_programs(file) {
                return folder::run(file, options, ui);
            }
            let jobs = jobs(file, options)?;
            let mut exit = Exit::Ok;
            for job in &jobs {
                let recorded = job.finding.as_ref();
                if let Some(f) = recorded {
                    let said = [
                        (options.platform.is_none(), &f.signature.engine),
                        (options.reference_platform.is_none(), &f.reference),
                    ];
                    let said: Vec<&str> =
                        said.iter().filter(|(said, _)| *said).map(|(_, n)| n.as_str()).collect();
                    options.trust.confirm(Path::new(file), &said, ui)?;
                }
                let platform = (options.platform.clone())
                    .or_else(|| recorded.map(|f| f.signature.engine.clone()))
                    .unwrap_or_else(|| options.default_platform().into());
                let reference = (options.reference_platform.clone())
                    .or_else(|| recorded.map(|f| f.reference.clone()))
                    .unwrap_or_else(|| if platform == "interpreter" { "none" } else { "interpreter" }.into());
                let platform = if options.fallback { engine::with_fallback(&platform) } else { platform };
                let platform = options.engine(&platform)?;
                let platform: Arc<dyn Engine> = match &options.constant_args {
                    Some(constant) => Arc::new(FrozenEngine::new(platform, constant.clone())),
                    None => platform,
                };
                let reference = match reference.as_str() {
                    "none" | "" => None,
                    name => Some(options.engine(name)?),
                };
                let (platform, reference) = (&*platform, reference.as_deref());
                let phases: Arc<Phases> = Arc::default();
                let _waiting = Waiting::new(ui, &phases);
                let dumps = dumps.as_ref().map(|d| (d, number.replace(number.get() + 1)));
                let runner = Runner { options, ui, platform, reference, job, phases, dumps };
                exit = exit.first_failure(runner.run()?);
            }
            Ok(exit)
        });
        exit = exit.first_failure(match result {
            Ok(e) => e,
            Err(failure) => {
                report_failure(ui, file, &failure);
                failure.exit
            }
        });
        if closed() {
            break;
        }
    }
    Ok(exit)
}

fn report_failure(ui: &Ui, file: &str, failure: &Failure) {
    if ui.json {
        let stage = if failure.exit == Exit::Usage { Stage::Read } else { Stage::Run };
        let errors = vec![JsonError {
            code: String::new(),
            line: None,
            column: None,
            message: failure.message.clone(),
        }];
        ui.object(&Object { errors, ..Object::new(file, stage, failure.exit) });
    } else {
        ui.failure(failure);
    }
}

struct Runner<'a> {
    options: &'a Options,
    ui: &'a Ui,
    platform: &'a dyn Engine,
    reference: Option<&'a dyn Engine>,
    job: &'a Job,
    phases: Arc<Phases>,
    /// Dumps that are wanted, and the number of the program among them.
    dumps: Option<(&'a Dumps, usize)>,
}

/// One run and what was found.
struct Ran {
    seed: u64,
    inputs_time: Duration,
    finished: Finished,
    /// One for each result, and how sums were accumulated; absent if nothing was compared.
    verdicts: Option<(Vec<Verdict>, &'static str)>,
    expected: Option<Expected>,
    /// How the compiler's results compare with the reference's, which are what is recorded.
    held: Option<String>,
    watched: Watched,
}

/// The treatment of what is not compiled.
const OTHER_PLATFORM: &str = "`--platform interpreter` runs it as it is; `--fallback` compiles the rest";

/// Elements of all results that are printed beside a comparison.
const FEW_ELEMENTS: usize = 10_000;

impl Runner<'_> {
    fn run(&self) -> Result<Exit, Failure> {
        let file = &self.job.program;
        let read = self.options.read.at_risk(self.options.risk);
        let inputs = self.job.inputs.as_deref();
        let mut program = match self.phases.during(Phase::Read, || load_for(file, &read, inputs)) {
            Ok(program) => program,
            Err(rejected) => {
                if self.ui.json {
                    let errors = rejected.json_errors();
                    self.ui.object(&Object { errors, ..Object::new(file, rejected.stage, rejected.exit) });
                } else {
                    self.ui.raw_error(&rejected.render(self.ui.color_errors));
                    self.ui.line(format!("{file}: {}", self.ui.bad(&rejected.summary())));
                }
                return Ok(rejected.exit);
            }
        };
        warn(file, &program.source.text, [&program.warnings, &program.broken], self.ui);
        self.options.custom_calls.apply(&mut program, self.options.limits.memory_limit, self.ui)?;
        if program.broken.is_empty() {
            return self.run_loaded(&program);
        }
        if self.platform.is_compiler() {
            let why = "a program that does not verify is not compiled: `--platform interpreter` runs it";
            return Err(Failure::new(Exit::Verify, why));
        }
        at_own_risk(&format!("running {file}"), || self.run_loaded(&program))
    }

    fn run_loaded(&self, program: &Program) -> Result<Exit, Failure> {
        let file = &self.job.program;
        let module = &program.module;
        if let Some(constant) = &self.options.constant_args {
            constant.check(module)?;
        }
        let n = instruction_count(module);
        self.ui.detail(format!(
            "{file}: {}, {} instruction{}, {}",
            module.name,
            report::grouped(n as u64),
            if n == 1 { "" } else { "s" },
            signature(module)
        ));
        if self.ui.verbose {
            let t = &program.times;
            let mb = program.source.text.len() as f64 / 1e6;
            self.ui.detail(format!(
                "  read     {} ({mb:.2} MB)\n  parse    {}\n  verify   {}",
                report::time(t.read),
                report::time(t.parse),
                report::time(t.verify)
            ));
        }
        let chosen = self.devices(module)?;
        if let Some(devices) = chosen.describe() {
            self.ui.detail(format!("  devices  {devices}"));
        }
        let devices = chosen.devices;
        for engine in [Some(self.platform), self.reference].into_iter().flatten() {
            if let Err(d) = engine.supports(module, devices) {
                return Ok(self.no_results(program, Exit::Unsupported, d));
            }
        }
        self.dump(module)?;
        cost::estimate(module, &self.phases, self.ui);
        // Inputs may take much longer to make than a program to compile.
        let compile = || Ready::new(self.platform, module);
        let ready = self.platform.is_compiler().then(|| self.phases.during(Phase::Compile, compile));
        if let Some(d) = ready.as_ref().and_then(Ready::refusal) {
            return Ok(self.no_results(program, Exit::Unsupported, self.refusal(d.clone())));
        }
        if let Some(d) = ready.as_ref().and_then(Ready::timed_out) {
            return Ok(self.no_results(program, Exit::Trap, d.clone()));
        }
        let platform = ready.as_ref().map_or(self.platform, |r| r as &dyn Engine);
        let runner = Runner { platform, phases: self.phases.clone(), ..*self };
        let mut exit = Exit::Ok;
        for iteration in 0..self.options.iterations {
            exit = exit.first_failure(runner.iterate(program, iteration, &chosen)?);
            if exit != Exit::Ok || closed() {
                break;
            }
        }
        Ok(exit)
    }

    /// Dumps the program, and what the compiler makes of it if that is the platform.
    fn dump(&self, module: &Module) -> Result<(), Failure> {
        self.dumps.map_or(Ok(()), |(dumps, number)| dumps.program(number, module, self.platform.name()))
    }

    /// Dumps the arguments and results of a run, if snapshots are wanted.
    fn dump_run(
        &self,
        module: &Module,
        seed: u64,
        arguments: &[Vec<ArrayLiteral>],
        results: &[Vec<ArrayLiteral>],
    ) -> Result<(), Failure> {
        let Some((dumps, number)) = self.dumps else { return Ok(()) };
        let run = seed.wrapping_sub(self.options.seed);
        dumps.run((number, run), module, arguments, results, self.platform.name())
    }

    /// A refusal of the platform, with what to do about it where nobody asked for that platform.
    fn refusal(&self, diagnostic: Diagnostic) -> Diagnostic {
        let diagnostic = support::named(self.platform.name(), diagnostic);
        if self.options.platform.is_some() || self.options.reference_platform.is_some() {
            return diagnostic;
        }
        diagnostic.note(OTHER_PLATFORM)
    }

    fn no_results(&self, program: &Program, exit: Exit, diagnostic: Diagnostic) -> Exit {
        let file = &self.job.program;
        let text = &program.source.text;
        let diagnostics = Diagnostics::from(diagnostic);
        if self.ui.json {
            let errors = json_diagnostics(&diagnostics, text);
            self.ui.object(&Object {
                errors,
                platform: self.platform.name(),
                ..Object::new(file, Stage::Run, exit)
            });
        } else {
            self.ui.raw_error(&render_all(&diagnostics, file, text, self.ui.color_errors));
            let what = match exit {
                Exit::Unsupported => "unsupported",
                Exit::Trap => "stopped",
                Exit::Ok | Exit::Differs | Exit::Usage | Exit::Parse | Exit::Verify | Exit::Internal => {
                    "failed"
                }
            };
            self.ui.line(format!("{file}: {}", self.ui.bad(what)));
        }
        exit
    }

    /// The setting of the options, else of the case, else of the module.
    fn devices(&self, module: &Module) -> Result<Chosen, Failure> {
        let case = self.job.case.as_ref().map(|c| &c.info);
        let replicas = self.options.replicas.or(case.map(|c| c.replicas));
        devices::choose(module, replicas, self.options.partitions.or(case.map(|c| c.partitions)))
    }

    fn make_inputs(
        &self,
        program: &Program,
        seed: u64,
        devices: Devices,
    ) -> Result<Vec<Vec<ArrayLiteral>>, Failure> {
        let limit = self.options.limits.memory_limit;
        let module = &program.module;
        if let Some(path) = &self.job.inputs {
            let arrays = inputs::read(module, &mut Npz::open(path, limit)?, devices)?;
            self.ui.detail(format!("  inputs   {path}"));
            return Ok(arrays);
        }
        if let Some(recorded) = &program.recorded
            && let Some(arrays) = recorded.arguments_on(module, devices)?
        {
            self.ui.detail("  inputs   those of the snapshot");
            return Ok(arrays);
        }
        let range = inputs::range_beside(&self.job.program)?;
        let kind = self.options.input_kind;
        let plan = inputs::plan(module, range)?.of_kind(kind);
        if !plan.leaves.is_empty() {
            self.ui.detail(format!("  inputs   made, seed {seed} ({})", inputs::describe(&plan)));
        }
        inputs::generate(&plan, seed, devices, limit)
    }

    fn iterate(&self, program: &Program, iteration: u64, chosen: &Chosen) -> Result<Exit, Failure> {
        let module = &program.module;
        let seed = self.options.seed.wrapping_add(iteration);
        let devices = chosen.devices;
        let before = self.phases.spent(Phase::Inputs);
        let arguments = self.phases.during(Phase::Inputs, || self.make_inputs(program, seed, devices))?;
        let inputs_time = self.phases.spent(Phase::Inputs) - before;
        if let Some(path) = &self.options.save_inputs {
            npz::write(Path::new(path), &named("arg", &arguments))?;
        }
        let feeds = Feeds { infeed: self.options.infeed.clone(), limit: self.options.limits.memory_limit };
        let limits =
            Limits { fuel: self.options.limits.fuel, memory_bytes: self.options.limits.memory_limit };
        let given = self.options.accumulate.map(Accumulate::from);
        let run = RunOptions {
            accumulate: given.unwrap_or_default(),
            limits,
            seed,
            devices,
            kept_bytes: program.kept_bytes(),
        };
        if let Some(reference) = self.reference
            && self.job.expected.is_none()
            && self.recorded_result(program, devices).is_none()
            && !self.tolerance_given()
            && !self.options.watch.any()
        {
            return self.compare(program, reference, &arguments, &feeds, &run, inputs_time);
        }
        let expected = if self.options.watch.any() {
            None
        } else {
            match self.expected(program, &arguments, &feeds, &run)? {
                Ok(expected) => expected,
                Err((exit, d)) => return Ok(self.no_results(program, exit, d)),
            }
        };
        let mut watched = Watched::default();
        let mut held = None;
        let (finished, verdicts) = match &expected {
            None => {
                let host = feeds.host(devices)?;
                let inputs = Inputs { host: host.clone(), ..Inputs::new(module, &arguments)? };
                let outcome = if self.options.watch.any() {
                    let watch = || self.options.watch.run(self.platform, module, inputs, &run);
                    let (outcome, seen) = self.phases.during(Phase::Run, watch)?;
                    watched = seen;
                    outcome
                } else {
                    self.phases.during(Phase::Run, || self.platform.run(module, inputs, &run))
                };
                // What a program said before it failed may say why.
                self.write_outfeed(&host.taken())?;
                match outcome.into_results() {
                    Ok(f) => (f, None),
                    Err((exit, d)) => return Ok(self.no_results(program, exit, d)),
                }
            }
            Some(e) => {
                let one;
                let tried = match given {
                    Some(mode) => {
                        one = [mode];
                        &one[..]
                    }
                    None => modes(module),
                };
                let judge = Judge {
                    engine: self.platform,
                    module,
                    inputs: &arguments,
                    feeds: &feeds,
                    expected: &e.arrays,
                    checks: &e.checks,
                    options: run,
                    modes: tried,
                    nan_bits: self.options.judging.nan_bits,
                };
                match self.phases.during(Phase::Run, || judge.run()) {
                    Ok(mut judged) => {
                        held = self.hold_to_reference(&judge, &mut judged)?;
                        let mode = judged.mode_name();
                        let Judged { finished, verdicts, fed_out, .. } = judged;
                        self.write_outfeed(&fed_out)?;
                        (finished, Some((verdicts, mode)))
                    }
                    Err(NoVerdict::Run(Exit::Unsupported, d)) if self.options.platform.is_none() => {
                        return Ok(self.no_results(program, Exit::Unsupported, d.note(OTHER_PLATFORM)));
                    }
                    Err(NoVerdict::Run(exit, d)) => return Ok(self.no_results(program, exit, *d)),
                    Err(NoVerdict::Failure(f)) => return Err(f),
                }
            }
        };
        let ran = Ran { seed, inputs_time, finished, verdicts, expected, held, watched };
        if let Some(path) = &self.options.output {
            npz::write(Path::new(path), &named("out", &ran.finished.results))?;
        }
        self.dump_run(module, seed, &arguments, &ran.finished.results)?;
        let pass = ran.verdicts.as_ref().is_none_or(|(v, _)| v.iter().all(|v| v.pass));
        let exit = if pass { Exit::Ok } else { Exit::Differs };
        if self.ui.json {
            self.json_result(program, &ran, exit, None);
        } else {
            self.text_result(&ran, pass);
        }
        Ok(exit)
    }

    /// Where the reference reproduces recorded results, a compiler is judged by it. Returns the end.
    fn hold_to_reference(&self, judge: &Judge<'_>, judged: &mut Judged) -> Result<Option<String>, Failure> {
        // Who names a tolerance wants that one.
        if self.tolerance_given() {
            return Ok(None);
        }
        let policy = self.options.judging.policy(None)?;
        let settings = Settings { run: judge.options, policy, ..Settings::default() };
        let hold = || judge.held_to_reference(&settings);
        // What is recorded decides where this takes too long.
        let found =
            self.options.timeout.map_or_else(|| Ok(hold()), |limit| within(limit.saturating_mul(2), hold));
        let Ok(Some(found)) = found else { return Ok(None) };
        let passes = found.passes(&policy);
        if !passes && !found.kind.is_failure() {
            return Ok(None);
        }
        for (i, verdict) in judged.verdicts.iter_mut().enumerate() {
            let name =
                array_name(judge.expected.len(), i / judge.checks.len(), "out", i % judge.checks.len());
            verdict.pass = passes || !found.arrays.iter().any(|(array, _)| *array == name);
        }
        Ok(Some(format!("the interpreter gives what is recorded; against it: {}", found.kind.describe())))
    }

    /// Runs the platform and the reference, and judges every element by the certified tolerance.
    fn compare(
        &self,
        program: &Program,
        reference: &dyn Engine,
        arguments: &[Vec<ArrayLiteral>],
        feeds: &Feeds,
        run: &RunOptions,
        inputs_time: Duration,
    ) -> Result<Exit, Failure> {
        let module = &program.module;
        let host = feeds.hosts(run.devices)?;
        let recorded = self.job.finding.as_ref();
        let policy = self.options.judging.policy(recorded.map(Finding::policy).as_ref())?;
        let settings = Settings { run: *run, policy, replay: true };
        let subject = Subject { module, inputs: arguments, host, phases: self.phases.clone() };
        let expected = reference_run(reference, &subject, &settings);
        let difference = differ_within(self.options.timeout, &expected, self.platform, &subject, &settings);
        let expected = match expected.into_results() {
            Ok(expected) => expected,
            Err((exit, d)) => return Ok(self.no_results(program, exit, d)),
        };
        let compared = Compared {
            module,
            text: self.options.custom_calls.is_empty().then(|| program.own_text()).flatten(),
            inputs: arguments,
            reference: reference.name(),
            engine: self.platform.name(),
            settings: &settings,
            expected: &expected.results,
            difference: &difference,
            phases: &self.phases,
        };
        let exit = compared.exit();
        let differs = difference.kind.is_failure() || exit == Exit::Differs;
        let saved = if differs && self.options.save_mismatch != "none" && recorded.is_none() {
            Some(compared.save(Path::new(&self.options.save_mismatch))?)
        } else {
            None
        };
        let object = compared.object(saved.as_deref());
        let asked = self.options.platform.is_some() || self.options.reference_platform.is_some();
        let Some(finished) = &difference.actual else {
            if let Some(folder) = saved.as_ref().filter(|_| !self.ui.json) {
                certified::next(self.ui, folder, &compared.finding());
            }
            return match difference.failure {
                Some(d) if exit == Exit::Unsupported => Ok(self.no_results(program, exit, self.refusal(d))),
                Some(d) => Ok(self.no_results(program, exit, d)),
                None => Err(Failure::internal("a comparison ended without results and without a reason")),
            };
        };
        if let Some(path) = &self.options.output {
            npz::write(Path::new(path), &named("out", &finished.results))?;
        }
        self.dump_run(module, run.seed, arguments, &finished.results)?;
        let ran = Ran {
            seed: run.seed,
            inputs_time,
            finished: finished.clone(),
            verdicts: None,
            expected: None,
            held: None,
            watched: Watched::default(),
        };
        if self.ui.json {
            self.json_result(program, &ran, exit, Some(object));
            return Ok(exit);
        }
        self.text_run(&ran);
        compared.print(self.ui);
        // Nobody asked for the comparison: what was asked for is the values, if they can be looked at.
        let few =
            ran.finished.results.iter().flatten().map(|a| a.buffer.len()).sum::<usize>() <= FEW_ELEMENTS;
        if self.ui.verbose || !self.ui.quiet && !asked && recorded.is_none() && few {
            self.text_values(&ran);
        }
        if let Some(folder) = &saved {
            certified::next(self.ui, folder, &compared.finding());
        }
        self.ui.line(compared.last_line(self.ui));
        Ok(exit)
    }

    fn write_outfeed(&self, arrays: &[(String, ArrayLiteral)]) -> Result<(), Failure> {
        let Some(path) = &self.options.outfeed else { return Ok(()) };
        let arrays: Vec<_> = arrays.iter().map(|(name, a)| (name.clone(), a)).collect();
        npz::write(Path::new(path), &arrays)
    }
}
