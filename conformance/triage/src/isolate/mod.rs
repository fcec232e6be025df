//! Which instruction is wrong: the replay in place, and every instruction alone.
//!
//! Alone means: a program of that instruction (with what it calls), with the reference's values of its
//! operands as parameters. An instruction that diverges alone is wrong by itself. One that diverges in place
//! only is wrong through what the engine makes of it together with others: fusion, a rewriting of several
//! instructions, reuse of a buffer.
//!
//! **Invariant:** everything is judged by the bounds of one instruction on exact operands, whatever came
//! before.

pub mod values;

use std::sync::Arc;

use hlo::diag::{Severity, codes};
use hlo::{ArrayLiteral, InstrId, Module, Name, Opcode};
use hlo_interp::{Devices, Value};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::differential::{self, Difference, Kind, Settings, Subject};
use crate::replay::{How, Location, Replay, replay};
use hlo_engines::engine::interpreter::interpret;
use hlo_engines::engine::{Engine, InterpreterEngine, Outcome, RunOptions};
use hlo_execution::verdict::Class;
use hlo_system::exit::Exit;
use values::{At, Keeper, Survey, arrays};

use hlo_engines::alone::{Alone, alone, why_not};

/// The evidence against an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Found {
    /// It diverges in place; alone it cannot be run.
    InPlace,
    /// It diverges alone.
    Alone,
    /// It diverges in place, and not alone.
    OnlyInPlace,
}

impl Found {
    /// For people.
    pub fn describe(self) -> &'static str {
        match self {
            Found::InPlace => "diverges in place (it cannot be run alone)",
            Found::Alone => "diverges alone too: the instruction itself is wrong",
            Found::OnlyInPlace => {
                "diverges in place only: what is made of it together with others (fusion, rewriting, aliasing, buffer reuse)"
            }
        }
    }
}

/// The blame: an instruction and the evidence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Blame {
    /// The execution that diverges first.
    pub location: Location,
    /// In what.
    pub how: How,
    /// The evidence.
    pub found: Found,
    /// Undecided or wrong.
    pub class: Class,
}

/// Whose fault the first wrong step of a compiled program is, by the same steps with their kernels evaluated
/// element by element ([`Engine::evaluated`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// Evaluated it is right.
    Emission,
    /// Evaluated it is wrong as well.
    Lowering,
}

impl Origin {
    /// Of the step that an engine gets wrong first, and what was found of the steps evaluated. `None`: these
    /// did not get there.
    fn of(wrong: &Location, evaluated: &Replay) -> Option<Origin> {
        let same = evaluated.divergences.iter().any(|d| d.location == *wrong);
        match (same, &evaluated.ended) {
            (true, _) => Some(Origin::Lowering),
            (false, None) => Some(Origin::Emission),
            (false, Some(_)) => None,
        }
    }

    /// For people.
    pub fn describe(self) -> &'static str {
        match self {
            Origin::Emission => {
                "evaluated element by element it is right: the code that its kernel became is wrong"
            }
            Origin::Lowering => {
                "evaluated element by element it is wrong too: what fusion and lowering made of it, or an operation of the runtime"
            }
        }
    }
}

/// Options of isolation.
#[derive(Clone, Debug)]
pub struct Options {
    /// Options of runs and comparisons.
    pub settings: Settings,
    /// The executions of each instruction that are run alone, beside the first that diverges in place.
    pub max_executions: u64,
    /// Only instructions of these names (of the instruction, or `computation.instruction`); all if there are
    /// none.
    pub only: Vec<String>,
    /// Only instructions of these opcodes; all if there are none.
    pub opcodes: Vec<Opcode>,
    /// The number of instructions that an engine that executes no HLO gets at once.
    pub batch: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            settings: Settings::default(),
            max_executions: 1,
            only: Vec::new(),
            opcodes: Vec::new(),
            batch: 32,
        }
    }
}

/// The result of an instruction alone.
#[derive(Clone, Debug)]
pub enum Status {
    /// It computes what the reference computes, or what rounding explains.
    Success(Class),
    /// It does not: undecided, wrong, or no results.
    Failure(Box<Difference>),
    /// It was not run.
    Skipped(String),
}

impl Status {
    fn of(difference: Difference) -> Status {
        match difference.kind {
            Kind::Same => Status::Success(Class::Same),
            Kind::Explained => Status::Success(Class::Explained),
            Kind::Unsupported => {
                let why = difference.failure.map(|d| d.message.clone()).unwrap_or_default();
                Status::Skipped(format!("unsupported: {why}"))
            }
            Kind::Exhausted => {
                let what = if lacks(&difference) { LACK } else { "out of memory" };
                let why = difference.failure.map(|d| d.message.clone()).unwrap_or_default();
                Status::Skipped(format!("{what}: {why}"))
            }
            Kind::NoReference => {
                let why = difference.failure.map(|d| d.message.clone()).unwrap_or_default();
                Status::Skipped(format!("the reference has no result: {why}"))
            }
            Kind::Undecided | Kind::Trap | Kind::Timeout | Kind::Crash | Kind::Wrong => {
                Status::Failure(Box::new(difference))
            }
        }
    }

    /// `SUCCESS`, `FAILURE` or `SKIPPED`.
    pub fn name(&self) -> &'static str {
        match self {
            Status::Success(_) => "SUCCESS",
            Status::Failure(_) => "FAILURE",
            Status::Skipped(_) => "SKIPPED",
        }
    }
}

/// One instruction.
#[derive(Clone, Debug)]
pub struct Row {
    /// The instruction.
    pub id: InstrId,
    /// Its opcode.
    pub opcode: Opcode,
    /// Its name.
    pub name: Name,
    /// The name of its computation.
    pub computation: Name,
    /// The number of its executions, on the device where that is most.
    pub executions: u64,
    /// The result alone: of the first failure, else of the first execution.
    pub alone: Status,
    /// Which execution that was, and on which device.
    pub execution: u64,
    /// The device.
    pub device: u32,
    /// The calls that led to its first execution: callers and iterations.
    pub calls: Vec<(InstrId, u64)>,
    /// The result of the replay; `None` if it was not compared there.
    pub in_place: Option<Class>,
}

/// The result of isolation with one engine.
#[derive(Clone, Debug)]
pub struct Isolation {
    /// The engine.
    pub engine: String,
    /// The replay, or why there is none.
    pub replay: Result<Replay, String>,
    /// The verdict over the whole program: that of every other tool.
    pub whole: Box<Difference>,
    /// The exit code of a command with that verdict.
    pub exit: Exit,
    /// The replay of a compiled program's steps: what it names is of the HLO that these execute.
    pub steps: Option<Box<Replay>>,
    /// The origin of the first wrong step, if that could be determined.
    pub origin: Option<Origin>,
    /// The strategy of the first wrong step ([`hlo_engines::engine::Executable::strategy`]).
    pub strategy: Option<String>,
    /// Instructions in the order of their first execution.
    pub rows: Vec<Row>,
    /// The first to blame.
    pub blame: Option<Blame>,
}

/// The prefix of the reason, where the environment lacked something.
const LACK: &str = "not run";

fn lacks(difference: &Difference) -> bool {
    difference.failure.as_ref().is_some_and(|d| d.code == codes::ENVIRONMENT_FAILED)
}

impl Isolation {
    /// The resource that the environment lacked, so that something could not be run.
    pub fn lack(&self) -> Option<String> {
        let whole = self.whole.failure.as_ref().filter(|_| lacks(&self.whole));
        let row = |r: &Row| match &r.alone {
            Status::Skipped(why) => why.strip_prefix(LACK)?.strip_prefix(": ").map(str::to_owned),
            Status::Success(_) | Status::Failure(_) => None,
        };
        whole.map(|d| d.message.clone()).or_else(|| self.rows.iter().find_map(row))
    }

    /// The program's results fail, by the verdict of every other tool.
    pub fn diverges(&self) -> bool {
        self.exit != Exit::Ok
    }

    /// Some instruction is beyond its own bound although the program's results do not show it.
    pub fn is_hidden(&self) -> bool {
        let failed = |r: &Row| matches!(r.alone, Status::Failure(_));
        !self.diverges() && (self.blame.is_some() || self.rows.iter().any(failed))
    }
}

/// Isolates a program on an engine. `progress` is notified of each instruction that was run alone, and of how
/// many there are. Errors: how the reference's run ended without results.
pub fn isolate(
    subject: &Subject<'_>,
    engine: &dyn Engine,
    options: &Options,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Isolation, Outcome> {
    let module = subject.module;
    let settings = &options.settings;
    let devices = settings.run.devices;
    let survey = Arc::new(Survey::new(devices));
    let expected = interpret(module, subject.inputs()?, &settings.run, Some(survey.clone()));
    if !matches!(expected, Outcome::Finished(_)) {
        return Err(expected);
    }
    let whole = differential::differ_from(&expected, engine, subject, settings);
    let (replayed, has_form) = replay_of(subject, engine, settings, whole.replay.as_deref());
    let divergent = replayed.as_ref().ok().map(first_divergent).unwrap_or_default();

    let mut rows = Vec::new();
    let mut jobs = Vec::new();
    for values::Runs { id, executions, calls } in survey.take() {
        let instr = module.instr(id);
        let computation = module.computation(instr.parent()).name.clone();
        let in_place = replayed.as_ref().ok().and_then(|r| r.stats.get(&id)).map(|s| s.class());
        let chosen = options.chooses(instr.opcode, &computation, &instr.name);
        let why = if chosen { why_not(module, id) } else { Some("not chosen") };
        if why.is_none() {
            let mut which: Vec<u64> = (0..executions.min(options.max_executions)).collect();
            which.extend(divergent.get(&id).filter(|&&e| e < executions && e >= options.max_executions));
            jobs.extend(which.into_iter().map(|execution| Job { row: rows.len(), id, execution }));
        }
        rows.push(Row {
            id,
            opcode: instr.opcode,
            name: instr.name.clone(),
            computation,
            executions,
            alone: Status::Skipped(why.unwrap_or("not run").to_owned()),
            execution: 0,
            device: 0,
            calls,
            in_place,
        });
    }
    if engine.knows_one_program() {
        let why = "the engine knows one program only";
        rows.iter_mut().for_each(|r| r.alone = Status::Skipped(why.to_owned()));
        jobs.clear();
    }
    // External engines take long to start, and are given several instructions at once.
    let batch = if has_form { 1 } else { options.batch.max(1) };
    let (total, mut done) = (jobs.len(), 0);
    let runner = Runner { subject, engine, settings };
    let mut tried: FxHashSet<usize> = FxHashSet::default();
    for chunk in runner.chunks(&jobs) {
        let values = runner.values(chunk)?;
        for several in chunk.chunks(batch) {
            for (job, (device, status)) in several.iter().zip(runner.run(several, &values)) {
                let row = &mut rows[job.row];
                let failed = matches!(row.alone, Status::Failure(_));
                if tried.insert(job.row) || !failed && matches!(status, Status::Failure(_)) {
                    (row.alone, row.execution, row.device) = (status, job.execution, device);
                }
            }
            done += several.len();
            progress(done, total);
        }
    }
    let blame = blame_of(module, replayed.as_ref().ok(), &rows);
    let exit = whole.exit(&settings.policy);
    let steps = match (&replayed, &whole.replay) {
        (Ok(_), _) => None,
        (Err(_), Some(found)) => Some(found.clone()),
        (Err(_), None) => steps_of(&expected, subject, engine, settings).map(Box::new),
    };
    let whole = Box::new(whole);
    let wrong = steps.as_ref().and_then(|r| r.first()).filter(|d| d.class == Class::Wrong);
    let origin = wrong.zip(engine.evaluated()).and_then(|(wrong, evaluated)| {
        let found = steps_of(&expected, subject, &*evaluated, settings)?;
        Origin::of(&wrong.location, &found)
    });
    let strategy = wrong.and_then(|wrong| engine.compile(module).ok()?.strategy(&wrong.location.name));
    let engine = engine.name().to_owned();
    Ok(Isolation { engine, replay: replayed, whole, exit, steps, origin, strategy, rows, blame })
}

/// The replay of a compiled program step by step; `None` of an engine that cannot be watched.
fn steps_of(
    expected: &Outcome,
    subject: &Subject<'_>,
    engine: &dyn Engine,
    settings: &Settings,
) -> Option<Replay> {
    let Outcome::Finished(expected) = expected else { return None };
    let executable = engine.compile(subject.module).ok()?;
    let allowances = settings.policy.allowances(engine);
    differential::steps(expected, &*executable, allowances, subject, settings).map(|(found, _)| found)
}

/// The replay of an engine, unless the comparison of the whole program has one already, and whether it
/// executes HLO at all.
fn replay_of(
    subject: &Subject<'_>,
    engine: &dyn Engine,
    settings: &Settings,
    already: Option<&Replay>,
) -> (Result<Replay, String>, bool) {
    let message = |outcome: Outcome| match outcome.into_results() {
        Ok(_) => String::new(),
        Err((_, d)) => d.message.clone(),
    };
    let executable = match engine.compile(subject.module) {
        Ok(executable) => executable,
        Err(outcome) => return (Err(message(outcome)), false),
    };
    if executable.form().is_none() {
        let why = format!("{} does not say what it executes: there is nothing to replay", engine.name());
        return (Err(why), false);
    }
    if let Some(found) = already {
        return (Ok(found.clone()), true);
    }
    let replayed = replay(subject, &*executable, settings.policy.allowances(engine), settings);
    (replayed.map_err(message), true)
}

/// By instruction the first execution that diverges in place.
fn first_divergent(replay: &Replay) -> FxHashMap<InstrId, u64> {
    let mut first = FxHashMap::default();
    for d in &replay.divergences {
        first.entry(d.location.id).or_insert(d.location.execution);
    }
    first
}

/// The blame, given both parts.
fn blame_of(module: &Module, replay: Option<&Replay>, rows: &[Row]) -> Option<Blame> {
    if let Some(d) = replay.and_then(Replay::first) {
        let found = match rows.iter().find(|r| r.id == d.location.id).map(|r| &r.alone) {
            Some(Status::Failure(_)) => Found::Alone,
            Some(Status::Success(_)) => Found::OnlyInPlace,
            Some(Status::Skipped(_)) | None => Found::InPlace,
        };
        return Some(Blame { location: d.location.clone(), how: d.how.clone(), found, class: d.class });
    }
    let failed = |r: &&Row| matches!(&r.alone, Status::Failure(d) if d.kind != Kind::Undecided);
    let row =
        rows.iter().find(failed).or_else(|| rows.iter().find(|r| matches!(r.alone, Status::Failure(_))))?;
    let class = match &row.alone {
        Status::Failure(d) if d.kind == Kind::Undecided => Class::Undecided,
        Status::Failure(_) | Status::Success(_) | Status::Skipped(_) => Class::Wrong,
    };
    let calls = if row.execution == 0 { &row.calls[..] } else { &[] };
    let location = Location::new(module, row.id, row.device, row.execution, calls);
    Some(Blame { location, how: How::Value, found: Found::Alone, class })
}

/// Who is to blame for what an engine makes of a program: the first execution that diverges. An engine that
/// executes HLO is replayed, and the instruction that diverges is run alone; of another every instruction is
/// run alone. `None`: nothing diverges, or there is no run.
pub fn blame(subject: &Subject<'_>, engine: &dyn Engine, settings: &Settings) -> Option<Blame> {
    let (replayed, has_form) = replay_of(subject, engine, settings, None);
    if !has_form {
        let options = Options { settings: *settings, ..Options::default() };
        return isolate(subject, engine, &options, &mut |_, _| {}).ok()?.blame;
    }
    let replayed = replayed.ok()?;
    let d = replayed.first()?;
    let by_value = match d.how {
        How::Value | How::Shape(_) => true,
        How::Operands | How::Calls | How::Result => false,
    };
    let runnable = by_value && !engine.knows_one_program();
    let found = if runnable && why_not(subject.module, d.location.id).is_none() {
        let runner = Runner { subject, engine, settings };
        let jobs = [Job { row: 0, id: d.location.id, execution: d.location.execution }];
        let values = runner.values(&jobs).ok()?;
        match runner.run(&jobs, &values).pop() {
            Some((_, Status::Failure(_))) => Found::Alone,
            Some((_, Status::Success(_))) => Found::OnlyInPlace,
            Some((_, Status::Skipped(_))) | None => Found::InPlace,
        }
    } else {
        Found::InPlace
    };
    Some(Blame { location: d.location.clone(), how: d.how.clone(), found, class: d.class })
}

impl Options {
    fn chooses(&self, opcode: Opcode, computation: &str, name: &str) -> bool {
        let by_name = |n: &String| {
            let n = n.strip_prefix('%').unwrap_or(n);
            *name == *n || n.strip_prefix(computation).and_then(|n| n.strip_prefix('.')) == Some(name)
        };
        (self.opcodes.is_empty() || self.opcodes.contains(&opcode))
            && (self.only.is_empty() || self.only.iter().any(by_name))
    }
}

/// An execution to run alone.
#[derive(Clone, Copy, Debug)]
struct Job {
    row: usize,
    id: InstrId,
    execution: u64,
}

struct Runner<'a> {
    subject: &'a Subject<'a>,
    engine: &'a dyn Engine,
    settings: &'a Settings,
}

impl Runner<'_> {
    /// Jobs in groups whose operands fit into memory together: the reference runs once for each.
    fn chunks<'j>(&self, jobs: &'j [Job]) -> Vec<&'j [Job]> {
        let module = self.subject.module;
        let devices = u64::from(self.settings.run.devices.count());
        let limit = self.settings.run.limits.memory_bytes / 4;
        let cost = |job: &Job| {
            let operands = module.instr(job.id).operands().iter();
            let bytes = operands.map(|&o| module.instr(o).shape.checked_bytes().unwrap_or(i64::MAX));
            bytes.fold(0u64, |n, b| n.saturating_add(b.unsigned_abs().saturating_mul(devices)))
        };
        let (mut chunks, mut begin, mut bytes) = (Vec::new(), 0, 0u64);
        for (i, job) in jobs.iter().enumerate() {
            let more = cost(job);
            if i > begin && bytes.saturating_add(more) > limit {
                chunks.push(&jobs[begin..i]);
                (begin, bytes) = (i, 0);
            }
            bytes = bytes.saturating_add(more);
        }
        if begin < jobs.len() {
            chunks.push(&jobs[begin..]);
        }
        chunks
    }

    /// The reference's values of the operands. Errors: how its run ended without results.
    fn values(&self, jobs: &[Job]) -> Result<FxHashMap<At, Value>, Outcome> {
        let module = self.subject.module;
        let operands = |j: &Job| {
            let execution = j.execution;
            module.instr(j.id).operands().iter().map(move |&o| (o, execution))
        };
        let keeper =
            Arc::new(Keeper::new(jobs.iter().flat_map(operands).collect(), self.settings.run.devices));
        match interpret(module, self.subject.inputs()?, &self.settings.run, Some(keeper.clone())) {
            Outcome::Finished(_) => Ok(keeper.take()),
            other => Err(other),
        }
    }

    /// Runs instructions alone, all in one program while that works. For each the device that it ran on and
    /// what came of it.
    fn run(&self, jobs: &[Job], values: &FxHashMap<At, Value>) -> Vec<(u32, Status)> {
        if let [job] = jobs {
            return vec![self.run_one(*job, values)];
        }
        // Operands of different executions of one instruction cannot be parameters of one program.
        let same = jobs.windows(2).all(|w| w[0].execution == w[1].execution);
        let collective = |j: &Job| self.subject.module.instr(j.id).opcode.flags().collective;
        if same && self.settings.run.devices.count() == 1 && !jobs.iter().any(collective) {
            let ids: Vec<InstrId> = jobs.iter().map(|j| j.id).collect();
            let made = alone(self.subject.module, &ids);
            if let Some(inputs) = inputs_of(&made, 0, jobs[0].execution, values) {
                let ran = self.differ(&made.module, &[inputs], self.settings.run);
                if let Ok(difference) = ran
                    && matches!(difference.kind, Kind::Same | Kind::Explained)
                {
                    return jobs.iter().map(|_| (0, Status::of(difference.clone()))).collect();
                }
            }
        }
        let (left, right) = jobs.split_at(jobs.len() / 2);
        let mut all = self.run(left, values);
        all.extend(self.run(right, values));
        all
    }

    fn run_one(&self, job: Job, values: &FxHashMap<At, Value>) -> (u32, Status) {
        let made = alone(self.subject.module, &[job.id]);
        let devices = self.settings.run.devices;
        let by_device: Vec<Option<Vec<ArrayLiteral>>> =
            (0..devices.count()).map(|d| inputs_of(&made, d, job.execution, values)).collect();
        if let Some(all) = by_device.iter().cloned().collect::<Option<Vec<_>>>() {
            return match self.differ(&made.module, &all, self.settings.run) {
                Ok(difference) => {
                    let device = difference.arrays.first().map_or(0, |(name, _)| device_of(name));
                    (device, Status::of(difference))
                }
                Err(why) => (0, Status::Skipped(why)),
            };
        }
        // Devices go different ways: one that runs the instruction does so for all, if it needs no other.
        let opcode = self.subject.module.instr(job.id).opcode;
        let alone_too =
            !opcode.flags().collective && !matches!(opcode, Opcode::ReplicaId | Opcode::PartitionId);
        let some = (0..).zip(by_device).find_map(|(d, inputs)| Some((d, inputs?)));
        match some.filter(|_| alone_too) {
            Some((device, inputs)) => {
                let mut made = made.module;
                (made.header.replica_count, made.header.num_partitions) = (None, None);
                let run = RunOptions { devices: Devices::ONE, ..self.settings.run };
                (device, self.differ(&made, &[inputs], run).map_or_else(Status::Skipped, Status::of))
            }
            None => (0, Status::Skipped("not all devices run it".into())),
        }
    }

    /// Errors: why the program is none.
    fn differ(
        &self,
        module: &Module,
        inputs: &[Vec<ArrayLiteral>],
        run: RunOptions,
    ) -> Result<Difference, String> {
        let diagnostics = hlo::verify::verify(module);
        if let Some(d) = diagnostics.iter().find(|d| d.severity == Severity::Error) {
            return Err(format!("alone it does not verify: {}", d.message));
        }
        let subject = Subject::new(module, inputs);
        let settings = Settings { run, replay: false, ..*self.settings };
        Ok(differential::differ(&InterpreterEngine, self.engine, &subject, &settings))
    }
}

/// The inputs of a program on a device; `None` if the device has no such execution.
fn inputs_of(
    made: &Alone,
    device: u32,
    execution: u64,
    values: &FxHashMap<At, Value>,
) -> Option<Vec<ArrayLiteral>> {
    let of = |&o: &InstrId| values.get(&(device, o, execution)).map(arrays);
    Some(made.parameters.iter().map(of).collect::<Option<Vec<_>>>()?.into_iter().flatten().collect())
}

/// The device that an array's name says (`d3.out0`).
fn device_of(name: &str) -> u32 {
    let number = name.strip_prefix('d').and_then(|n| n.split_once('.')).and_then(|(n, _)| n.parse().ok());
    number.unwrap_or(0)
}
