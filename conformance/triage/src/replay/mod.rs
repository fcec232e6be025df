//! Replay in place: runs what an engine made of a program, and replaces the value of every instruction that
//! leads back to the program by the reference's.
//!
//! So every instruction works on the reference's operands, its bound starts afresh, and a difference is the
//! fault of the instruction that shows it. Executions are matched by device, instruction and the calls that
//! led there (instruction and iteration each).
//!
//! **Invariants:** what is injected is the reference's, so conditions, indices and trip counts are too: where
//! the engine's run still takes another way, that is a divergence of its own. Instructions that the engine's
//! form has lost (fused, simplified) count as part of the next one that it has: bounds are propagated from
//! what was injected. Nothing here is held beyond the memory limit: a program whose values are more runs
//! beside the engine in lockstep.
//!
//! Of a verdict alone ([`Looks::Results`]) what loops update in place ([`updates`]) is not compared: each
//! iteration would copy the whole array. The result of the loop is compared.
//!
//! The reference runs without bounds first; they are worked out only if bits differ. What differs is judged
//! by its operands where that is enough ([`Local`]); only for the rest the reference runs again, with bounds.

mod judge;
mod settled;
mod store;
mod updates;
mod watch;

use std::sync::{Arc, Mutex};

use hlo::diag::codes;
use hlo::{ArrayLiteral, Diagnostic, InstrId, Module, Name, Opcode, Span};
use rustc_hash::FxHashMap;

use crate::differential::{Settings, Subject};
use hlo_certify::bounds::{Local, Scope, certify};
use hlo_engines::engine::interpreter::interpret;
use hlo_engines::engine::{Allowances, Executable, Form, Outcome, not_observable};
use hlo_execution::verdict::{ArrayVerdict, Class, same_bits};
use judge::{Findings, Judge, without_bounds};
use settled::settled;
use store::{Frame, Store};
use watch::{Injector, Recorder, Seen};

/// One call on the way to an instruction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Call {
    /// The calling instruction.
    pub name: Name,
    /// Its opcode.
    pub opcode: Opcode,
    /// For a `while` the iteration, from 0.
    pub iteration: u64,
}

/// An execution of an instruction of the program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Location {
    /// The instruction.
    pub id: InstrId,
    /// Its opcode.
    pub opcode: Opcode,
    /// Its name.
    pub name: Name,
    /// The name of its computation.
    pub computation: Name,
    /// How often it ran before on its device.
    pub execution: u64,
    /// Number of the device.
    pub device: u32,
    /// The calls that led to it, outermost first.
    pub calls: Vec<Call>,
    /// The iteration of the innermost loop around it.
    pub iteration: Option<u64>,
}

impl Location {
    pub(crate) fn new(
        source: &Module,
        id: InstrId,
        device: u32,
        execution: u64,
        calls: &[(InstrId, u64)],
    ) -> Self {
        let instr = source.instr(id);
        let calls: Vec<Call> = calls
            .iter()
            .map(|&(caller, iteration)| {
                let caller = source.instr(caller);
                Call { name: caller.name.clone(), opcode: caller.opcode, iteration }
            })
            .collect();
        let iteration = calls.iter().rfind(|c| c.opcode == Opcode::While).map(|c| c.iteration);
        Self {
            id,
            opcode: instr.opcode,
            name: instr.name.clone(),
            computation: source.computation(instr.parent()).name.clone(),
            execution,
            device,
            calls,
            iteration,
        }
    }

    /// `body.add`, and `#N` after it if it is not the first execution.
    pub fn describe(&self) -> String {
        match self.execution {
            0 => format!("{}.{}", self.computation, self.name),
            n => format!("{}.{}#{n}", self.computation, self.name),
        }
    }

    /// `loop[2] / call`, empty in the entry computation.
    pub fn describe_calls(&self) -> String {
        let one = |c: &Call| match c.opcode {
            Opcode::While => format!("{}[{}]", c.name, c.iteration),
            _ => c.name.to_string(),
        };
        self.calls.iter().map(one).collect::<Vec<_>>().join(" / ")
    }
}

/// In what an execution diverges.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum How {
    /// Its value.
    Value,
    /// Its value has another shape at run time.
    Shape(String),
    /// What it passes to the computation that it calls.
    Operands,
    /// Which computations it calls, or how often.
    Calls,
    /// The program's result, although every instruction that was compared has its value: something between
    /// the last of them and the result.
    Result,
}

impl How {
    /// For people.
    pub fn describe(&self) -> String {
        match self {
            How::Value => "its value differs".into(),
            How::Shape(what) => what.clone(),
            How::Operands => "it passes other operands on".into(),
            How::Calls => {
                "it calls computations otherwise: another branch, or more or fewer iterations".into()
            }
            How::Result => "the program's result differs".into(),
        }
    }
}

/// An execution that diverges: undecided or wrong.
#[derive(Clone, Debug)]
pub struct Divergence {
    /// Which.
    pub location: Location,
    /// In what.
    pub how: How,
    /// Undecided or wrong.
    pub class: Class,
    /// For each array of the value that differs its number and its verdict.
    pub arrays: Vec<(usize, ArrayVerdict)>,
    /// Instructions of the program that the engine's form does not have, between this one and those that were
    /// injected.
    pub covers: Vec<InstrId>,
    /// How many instructions its device had executed.
    order: u64,
}

/// What was found about one instruction.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Stats {
    /// Executions that were compared.
    pub executions: u64,
    /// Of these, how many are explained by rounding.
    pub explained: u64,
    /// Undecided.
    pub undecided: u64,
    /// Wrong.
    pub wrong: u64,
    /// The largest distance in representable numbers; `None`: there is one without a number.
    pub worst_ulp: Option<u64>,
    /// The largest error as a multiple of its bound; 0 without errors, infinite where the bound is 0.
    pub worst_ratio: f64,
}

impl Stats {
    /// The maximum number of serious class of an execution.
    pub fn class(&self) -> Class {
        match self {
            Stats { wrong: 1.., .. } => Class::Wrong,
            Stats { undecided: 1.., .. } => Class::Undecided,
            Stats { explained: 1.., .. } => Class::Explained,
            Stats { .. } => Class::Same,
        }
    }
}

/// What a replay found.
#[derive(Clone, Debug, Default)]
pub struct Replay {
    /// Executions that were compared.
    pub compared: u64,
    /// Executions of the engine's form that lead back to no execution of the program.
    pub unmatched: u64,
    /// Executions that are explained by rounding, undecided, wrong.
    pub explained: u64,
    /// Executions with undecided elements.
    pub undecided: u64,
    /// Executions with wrong elements.
    pub wrong: u64,
    /// Executions that differ and were too many to judge.
    pub unjudged: u64,
    /// Undecided and wrong ones in order of execution, at most [`Replay::MAX_KEPT_DIVERGENCES`].
    pub divergences: Vec<Divergence>,
    /// By instruction of the program, those that were compared.
    pub stats: FxHashMap<InstrId, Stats>,
    /// Why the engine's run gave no results.
    pub ended: Option<Diagnostic>,
}

impl Replay {
    /// The maximum number of divergences that are kept.
    pub const MAX_KEPT_DIVERGENCES: usize = 1000;

    /// The first that is wrong, or else the first.
    pub fn first(&self) -> Option<&Divergence> {
        self.divergences.iter().find(|d| d.class == Class::Wrong).or(self.divergences.first())
    }

    /// The maximum number of serious class. A run that ended early leaves the rest undecided.
    pub fn class(&self) -> Class {
        if self.wrong > 0 {
            Class::Wrong
        } else if self.undecided > 0 || self.unjudged > 0 || self.ended.is_some() {
            Class::Undecided
        } else if self.explained > 0 {
            Class::Explained
        } else {
            Class::Same
        }
    }
}

/// Replays an executable of `subject`'s program. Errors: the executable executes no HLO, or how the
/// reference's run ended without results, or that its values are more than the memory limit allows.
pub fn replay(
    subject: &Subject<'_>,
    executable: &dyn Executable,
    allowances: Allowances,
    settings: &Settings,
) -> Result<Replay, Outcome> {
    let found = replay_as(subject, executable, allowances, settings, Looks::Everything, None)?;
    Ok(found.expect("a replay is refused only for other results than are expected"))
}

/// At what a replay looks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Looks {
    /// Every instruction.
    Everything,
    /// All but what loops update in place.
    Results,
}

/// The same, if the reference gives the results that are `expected` of it, to the bit; `None` if it does not.
pub(crate) fn replay_as(
    subject: &Subject<'_>,
    executable: &dyn Executable,
    allowances: Allowances,
    settings: &Settings,
    looks: Looks,
    expected: Option<&[Vec<ArrayLiteral>]>,
) -> Result<Option<Replay>, Outcome> {
    let Some(form) = executable.form() else { return Err(not_observable("")) };
    let replayer = Replayer::new(subject, executable, form, allowances, settings, looks);
    let run = match replayer.run(false)? {
        Some(run) => run,
        None => replayer.run(true)?.ok_or_else(|| {
            let limit = crate::report::bytes(replayer.limit());
            let message = format!(
                "the reference's values that wait for the engine's are more than {limit}, a quarter of the memory limit: \
                 raise --memory-limit, or replay a smaller program"
            );
            Outcome::Trap(Diagnostic::error(codes::OUT_OF_MEMORY, Span::NONE, message))
        })?,
    };
    if expected.is_some_and(|e| !same_results(e, &run.expected, settings.policy.nan_bits)) {
        return Ok(None);
    }
    replayer.judge(run).map(Some)
}

struct Replayer<'a> {
    subject: &'a Subject<'a>,
    executable: &'a dyn Executable,
    allowances: Allowances,
    settings: &'a Settings,
    /// By instruction of the form, that of the source.
    origins: Vec<Option<InstrId>>,
    /// By instruction of the source, whether the form has it and it is looked at.
    wanted: Arc<[bool]>,
}

/// Both runs.
struct Ran {
    expected: Vec<Vec<ArrayLiteral>>,
    actual: Result<Vec<Vec<ArrayLiteral>>, Diagnostic>,
    seen: Seen,
    /// Runs of computations in the reference.
    frames: Vec<Frame>,
}

impl<'a> Replayer<'a> {
    fn new(
        subject: &'a Subject<'a>,
        executable: &'a dyn Executable,
        form: Form<'a>,
        allowances: Allowances,
        settings: &'a Settings,
        looks: Looks,
    ) -> Self {
        let source = subject.module;
        let origins = form.origins(source);
        let mut wanted = vec![false; source.instruction_capacity()];
        origins.iter().flatten().for_each(|id| wanted[id.index()] = true);
        if looks == Looks::Results {
            updates::in_loops(source).iter().for_each(|id| wanted[id.index()] = false);
        }
        Self { subject, executable, allowances, settings, origins, wanted: wanted.into() }
    }

    /// What decides about executions by themselves.
    fn local(&self) -> Option<Local<'a>> {
        let nan_bits = self.settings.policy.nan_bits;
        Local::new(self.subject.module, &self.settings.run, self.allowances, nan_bits)
    }

    /// Bytes of the reference's values that are held, and of the engine's.
    fn limit(&self) -> u64 {
        self.settings.run.limits.memory_bytes / 4
    }

    /// Runs the reference, and the engine with its values. `None`: they are too many.
    fn run(&self, lockstep: bool) -> Result<Option<Ran>, Outcome> {
        let (module, options) = (self.subject.module, &self.settings.run);
        let store = Arc::new(Store::new(self.limit(), lockstep));
        let (store, devices) = (&store, options.devices);
        // Side by side the values that wait are few: their operands would keep all others.
        let keeps = !lockstep && self.local().is_some();
        let entered = keeps.then(|| (0..devices.count()).map(|_| Mutex::default()).collect());
        let recorder = Recorder { store: store.clone(), wanted: self.wanted.clone(), devices, entered };
        let (before, after) = (self.subject.inputs()?, self.subject.inputs()?);
        let reference = move || {
            let outcome = interpret(module, before, options, Some(Arc::new(recorder)));
            store.finish();
            outcome
        };
        let mut parents = vec![module.entry(); module.instruction_capacity()];
        for &c in module.computations() {
            module.instructions(c).for_each(|id| parents[id.index()] = c);
        }
        let injector = Arc::new(Injector {
            store: store.clone(),
            origins: self.origins.clone(),
            wanted: self.wanted.clone(),
            parents,
            devices,
            nan_bits: self.settings.policy.nan_bits,
            limit: self.limit(),
            seen: Mutex::default(),
        });
        let engine = || {
            let outcome = self.executable.run(after, options, Some(injector.clone()));
            store.abandon();
            outcome
        };
        let (expected, actual) = if lockstep {
            std::thread::scope(|scope| match hlo_system::guard::spawn_deep(scope, Some("hlo"), reference) {
                Ok(thread) => {
                    let actual = engine();
                    let expected = thread.join().unwrap_or_else(|p| std::panic::resume_unwind(p));
                    (expected, actual)
                }
                Err(_) => {
                    let outcome = || Outcome::exhausted("no thread for the reference beside the engine");
                    (outcome(), outcome())
                }
            })
        } else {
            let expected = reference();
            if store.overflown() {
                return Ok(None);
            }
            (expected, engine())
        };
        if store.overflown() {
            return Ok(None);
        }
        let expected = match expected {
            Outcome::Finished(f) => f.results,
            other => return Err(other),
        };
        let actual = actual.into_results().map(|f| f.results).map_err(|(_, d)| d);
        let frames = store.frames();
        let seen = std::mem::take(&mut *injector.lock());
        Ok(Some(Ran { expected, actual, seen, frames }))
    }

    /// The verdicts of both runs.
    fn judge(&self, ran: Ran) -> Result<Replay, Outcome> {
        let Ran { expected, actual, mut seen, frames } = ran;
        let source = self.subject.module;
        let mut replay = Replay {
            compared: seen.executions.values().sum(),
            unmatched: seen.unmatched,
            unjudged: seen.dropped,
            ..Replay::default()
        };
        let stats = seen
            .executions
            .iter()
            .map(|(&id, &executions)| (id, Stats { executions, worst_ulp: Some(0), ..Stats::default() }));
        replay.stats = stats.collect();
        let mut findings = Findings { replay, source, wanted: &self.wanted };
        let nan_bits = self.settings.policy.nan_bits;
        let mut differing = std::mem::take(&mut seen.differing);
        let mut injected = vec![false; source.instruction_capacity()];
        seen.executions.keys().for_each(|id| injected[id.index()] = true);
        if let Some(mut local) = self.local().filter(|_| !differing.is_empty()) {
            let settled = settled(source, &injected);
            // What its operands decide needs no run with bounds, if these are the reference's.
            differing.retain(|key, differs| {
                let known = source.instr(key.id).operands().iter().all(|o| settled[o.index()]);
                !(known && findings.decided(&mut local, *key, differs, nan_bits))
            });
        }
        let same_results = actual.as_ref().is_ok_and(|a| same_results(&expected, a, nan_bits));
        let mut certified = None;
        if !differing.is_empty() || !same_results {
            let run = &self.settings.run;
            let devices = run.devices;
            let mut differ = vec![false; source.instruction_capacity()];
            differing.keys().for_each(|key| differ[key.id.index()] = true);
            let scope =
                Scope::new(source, differ, injected.clone(), !same_results, &self.allowances).map(Arc::new);
            let mut judge = Judge { findings: &mut findings, differing, injected, scope, devices, nan_bits };
            certified = match certify(source, self.subject.inputs()?, run, self.allowances, &mut judge) {
                Ok(bounds) => Some(bounds),
                Err(outcome) if outcome.is_exhausted() => return Err(outcome),
                // Where there are no bounds everything that differs is undecided.
                Err(_) => None,
            };
            for (key, differs) in std::mem::take(&mut judge.differing) {
                without_bounds(&mut findings, key, &differs, nan_bits);
            }
        }
        findings.calls(&seen, &frames, actual.is_err());
        match actual {
            Err(d) => findings.replay.ended = Some(d),
            Ok(actual) => findings.results(&expected, &actual, certified.as_ref(), nan_bits),
        }
        findings.cut();
        Ok(findings.replay)
    }
}

fn same_results(expected: &[Vec<ArrayLiteral>], actual: &[Vec<ArrayLiteral>], nan_bits: bool) -> bool {
    let same = |(e, a): (&Vec<ArrayLiteral>, &Vec<ArrayLiteral>)| {
        e.len() == a.len() && e.iter().zip(a).all(|(e, a)| same_bits(e, a, nan_bits))
    };
    expected.len() == actual.len() && expected.iter().zip(actual).all(same)
}
