//! Does an engine compute what the reference computes? Both run a program, and every element of the results
//! gets a verdict.
//!
//! **Invariants:** the same bits cost no more than two runs and a comparison; bounds are worked out only
//! where bits differ. What is undecided is never a pass: where an element is, or where bounds are so wide
//! that a fault could hide in them, an engine that executes HLO is replayed with the reference's values
//! injected at every instruction ([`crate::replay`]), so that bounds start afresh.
//!
//! Of large programs the replay comes first, with bounds of what differs alone; bounds over the whole program
//! are worked out only where it leaves something open.

use std::sync::Arc;
use std::time::Duration;

use hlo::diag::codes;
use hlo::{ArrayLiteral, AttrKey, Diagnostic, InstrId, Module, Opcode, Span};
use hlo_interp::device::host::{Host, NoHost};
use serde::{Deserialize, Serialize};

use crate::instruction_kind::InstructionKind;
use crate::others::Others;
use crate::pieces::{Pieces, judge_every_value, judge_pieces};
use crate::policy::Policy;
use crate::replay::{Looks, Replay, replay, replay_as};
use hlo_certify::bounds::{Bounds, Certified, certify_within};
use hlo_engines::engine::{
    Allowances, Engine, Executable, Finished, Inputs, Outcome, RunOptions, array_name, bytes_beside,
};
use hlo_engines::time_limit::{Unfinished, within};
use hlo_execution::verdict::{
    ArrayVerdict, Class, Judged, Other, Rows, Tally, by_rows, judge_among, same_bits,
};
use hlo_system::exit::Exit;
use hlo_system::phase::{Phase, Phases};
use hlo_system::quantity::grouped;

/// Elements whose bounds are worked out over the whole program before an engine that can be replayed is. A
/// replay looks at the bounds of what differs alone, and each starts afresh: of large programs it is the
/// smaller work and says more.
const FEW_ELEMENTS: u64 = 1 << 20;

/// The outcome of a comparison.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// All elements have the same bits, or both engines stopped.
    Same,
    /// Differences are explained by rounding.
    Explained,
    /// Some elements are undecided.
    Undecided,
    /// The engine does not support the program.
    Unsupported,
    /// Memory or threads did not suffice for the engine or for the check: nothing is said of the engine.
    Exhausted,
    /// The engine trapped where the reference did not.
    Trap,
    /// The engine took too long.
    Timeout,
    /// The engine crashed, or left no results of the right shapes.
    Crash,
    /// Some elements are wrong.
    Wrong,
    /// The reference has no results: there is nothing to compare with.
    NoReference,
}

impl From<Class> for Kind {
    fn from(class: Class) -> Kind {
        match class {
            Class::Same => Kind::Same,
            Class::Explained => Kind::Explained,
            Class::Undecided => Kind::Undecided,
            Class::Wrong => Kind::Wrong,
        }
    }
}

impl Kind {
    /// Whether this is a failure of the engine whatever the share of undecided elements.
    pub fn is_failure(self) -> bool {
        match self {
            Kind::Trap | Kind::Timeout | Kind::Crash | Kind::Wrong => true,
            Kind::Same
            | Kind::Explained
            | Kind::Undecided
            | Kind::Unsupported
            | Kind::Exhausted
            | Kind::NoReference => false,
        }
    }

    /// For people.
    pub fn describe(self) -> &'static str {
        match self {
            Kind::Same => "same bits",
            Kind::Explained => "explained by rounding",
            Kind::Undecided => "undecided",
            Kind::Unsupported => "unsupported",
            Kind::Exhausted => "out of memory",
            Kind::Trap => "trap",
            Kind::Timeout => "timeout",
            Kind::Crash => "crash",
            Kind::Wrong => "wrong result",
            Kind::NoReference => "no reference",
        }
    }
}

/// A program and what goes into it.
#[derive(Clone, Debug)]
pub struct Subject<'a> {
    /// A verified program.
    pub module: &'a Module,
    /// For each device the arrays of the entry's parameters.
    pub inputs: &'a [Vec<ArrayLiteral>],
    /// The host side of feeds: one for each run, because a run uses it up.
    pub host: Hosts,
    /// The phase of a comparison, for messages.
    pub phases: Arc<Phases>,
}

/// Makes what is at the other end of feeds in a run.
#[derive(Clone)]
pub struct Hosts(Arc<dyn Fn() -> Arc<dyn Host> + Send + Sync>);

impl Hosts {
    /// What `make` makes.
    pub fn new(make: impl Fn() -> Arc<dyn Host> + Send + Sync + 'static) -> Self {
        Self(Arc::new(make))
    }

    /// For one run.
    pub fn host(&self) -> Arc<dyn Host> {
        (self.0)()
    }
}

impl Default for Hosts {
    /// Nobody.
    fn default() -> Self {
        Self::new(|| Arc::new(NoHost))
    }
}

impl std::fmt::Debug for Hosts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hosts")
    }
}

impl<'a> Subject<'a> {
    /// Without a host.
    pub fn new(module: &'a Module, inputs: &'a [Vec<ArrayLiteral>]) -> Self {
        Self { module, inputs, host: Hosts::default(), phases: Arc::default() }
    }

    /// The inputs of a run. Errors: the arrays do not fit the program.
    pub fn inputs(&self) -> Result<Inputs, Outcome> {
        let inputs = Inputs::new(self.module, self.inputs).map_err(Outcome::before)?;
        Ok(Inputs { host: self.host.host(), ..inputs })
    }
}

/// Options of a comparison.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Options of both runs.
    pub run: RunOptions,
    /// The engine's liberties, and how much may stay open.
    pub policy: Policy,
    /// Replay where the verdict over the whole program is open.
    pub replay: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { run: RunOptions::default(), policy: Policy::default(), replay: true }
    }
}

/// The result of the comparison.
#[derive(Clone, Debug)]
pub struct Difference {
    /// Its outcome.
    pub kind: Kind,
    /// For each result (`out0`, `d1.out0`) that differs in some bit its verdict.
    pub arrays: Vec<(String, ArrayVerdict)>,
    /// Counts over all results.
    pub tally: Tally,
    /// Why there are no results, of the reference or of the engine.
    pub failure: Option<Diagnostic>,
    /// What the replay found, if the engine was replayed: of the program, or of the HLO that a compiled
    /// program's steps execute.
    pub replay: Option<Box<Replay>>,
    /// The result for the pieces of the program, if the engine was judged on these.
    pub pieces: Option<Pieces>,
    /// The instruction that diverges first, if the engine was replayed or judged on pieces.
    pub blamed: Option<InstructionKind>,
    /// The liberties that the engine was granted.
    pub allowances: Allowances,
    /// The reference's results, if the engine's have other bits.
    pub reference: Option<Finished>,
    /// The engine's results.
    pub actual: Option<Finished>,
}

impl Difference {
    /// Without results to compare.
    pub fn ended(kind: Kind, failure: Option<Diagnostic>) -> Self {
        Self {
            kind,
            arrays: Vec::new(),
            tally: Tally::default(),
            failure,
            replay: None,
            pieces: None,
            blamed: None,
            allowances: Allowances::STRICT,
            reference: None,
            actual: None,
        }
    }

    /// Whether the engine was replayed.
    pub fn replayed(&self) -> bool {
        self.replay.is_some()
    }

    /// The exit code of a command that compares.
    pub fn exit(&self, policy: &Policy) -> Exit {
        match self.kind {
            Kind::Unsupported => Exit::Unsupported,
            Kind::Trap | Kind::Timeout | Kind::Exhausted => Exit::Trap,
            Kind::Crash => self.failure.as_ref().map_or(Exit::Differs, Exit::of_crash),
            Kind::Same | Kind::Explained | Kind::Undecided | Kind::Wrong | Kind::NoReference => {
                if self.passes(policy) { Exit::Ok } else { Exit::Differs }
            }
        }
    }

    /// The verdict in a word or a sentence: `ok`, `mismatch`, or how much is undecided.
    pub fn verdict(&self, policy: &Policy) -> String {
        match self.kind {
            Kind::Undecided => {
                let n = self.tally.undecided;
                let elements = if n == 1 { "element differs and is" } else { "elements differ and are" };
                let most = policy.max_undecided;
                format!(
                    "undecided: {} {elements} not decided ({most} allowed by --max-undecided)",
                    grouped(n)
                )
            }
            Kind::Same | Kind::Explained => "ok".to_owned(),
            Kind::Wrong => "mismatch".to_owned(),
            Kind::Unsupported
            | Kind::Exhausted
            | Kind::Trap
            | Kind::Timeout
            | Kind::Crash
            | Kind::NoReference => self.kind.describe().to_owned(),
        }
    }

    /// Makes undecided elements explained.
    fn explain_undecided(&mut self) {
        self.kind = Kind::Explained;
        self.tally.explained += self.tally.undecided;
        self.tally.undecided = 0;
    }

    /// Whether the engine passes: no failure, supported, and no more undecided elements than the policy
    /// allows.
    pub fn passes(&self, policy: &Policy) -> bool {
        match self.kind {
            Kind::Same | Kind::Explained => true,
            Kind::Undecided => policy.max_undecided.allows(&self.tally),
            Kind::Unsupported
            | Kind::Exhausted
            | Kind::Trap
            | Kind::Timeout
            | Kind::Crash
            | Kind::Wrong
            | Kind::NoReference => false,
        }
    }
}

/// The results of the reference, or why there are none.
pub fn reference_run(reference: &dyn Engine, subject: &Subject<'_>, settings: &Settings) -> Outcome {
    let run = || match subject.inputs() {
        Ok(inputs) => reference.run(subject.module, inputs, &settings.run),
        Err(outcome) => outcome,
    };
    subject.phases.during(Phase::Reference, run)
}

/// Runs both engines on a program and compares.
pub fn differ(
    reference: &dyn Engine,
    engine: &dyn Engine,
    subject: &Subject<'_>,
    settings: &Settings,
) -> Difference {
    let expected = reference_run(reference, subject, settings);
    differ_from(&expected, engine, subject, settings)
}

/// Compares an engine with what the reference gave.
pub fn differ_from(
    expected: &Outcome,
    engine: &dyn Engine,
    subject: &Subject<'_>,
    settings: &Settings,
) -> Difference {
    let Outcome::Finished(_) = expected else {
        return Difference::ended(Kind::NoReference, expected.diagnostic().cloned());
    };
    match subject.phases.during(Phase::Compile, || engine.compile(subject.module)) {
        Ok(executable) => differ_compiled(expected, engine, &*executable, subject, settings),
        Err(outcome) => failed(outcome),
    }
}

/// The same of a program that was compiled.
pub fn differ_compiled(
    expected: &Outcome,
    engine: &dyn Engine,
    executable: &dyn Executable,
    subject: &Subject<'_>,
    settings: &Settings,
) -> Difference {
    let Outcome::Finished(expected) = expected else {
        return Difference::ended(Kind::NoReference, expected.diagnostic().cloned());
    };
    let kept = settings.run.beside(bytes_beside([&expected.results], subject.inputs));
    let run = || match subject.inputs() {
        Ok(inputs) => executable.run(inputs, &kept, None),
        Err(outcome) => outcome,
    };
    let outcome = subject.phases.during(Phase::Run, run);
    let actual = match outcome {
        Outcome::Finished(f) => f,
        other => return failed(other),
    };
    compare(expected, actual, engine, executable, subject, settings)
}

/// The outcome of an engine without results.
pub fn failed(outcome: Outcome) -> Difference {
    let exhausted = outcome.is_exhausted();
    match outcome {
        Outcome::Finished(_) => Difference::ended(Kind::Same, None),
        Outcome::Unsupported(d) => Difference::ended(Kind::Unsupported, Some(d)),
        Outcome::Trap(d) if exhausted => Difference::ended(Kind::Exhausted, Some(d)),
        Outcome::Trap(d) => Difference::ended(Kind::Trap, Some(d)),
        Outcome::WrongInputs(d) | Outcome::Crashed(d) => Difference::ended(Kind::Crash, Some(d)),
        Outcome::TimedOut(d) => Difference::ended(Kind::Timeout, Some(d)),
    }
}

fn compare(
    expected: &Finished,
    actual: Finished,
    engine: &dyn Engine,
    executable: &dyn Executable,
    subject: &Subject<'_>,
    settings: &Settings,
) -> Difference {
    let mut difference = Difference::ended(Kind::Same, None);
    let count = expected.results.len();
    let fits = actual.results.len() == count
        && expected.results.iter().zip(&actual.results).all(|(e, a)| e.len() == a.len());
    if !fits {
        return failed(Outcome::crashed(format!("{} gave another number of results", engine.name())));
    }
    let mut differing = Vec::new();
    for (device, (e, a)) in expected.results.iter().zip(&actual.results).enumerate() {
        for (i, (e, a)) in e.iter().zip(a).enumerate() {
            if same_bits(e, a, settings.policy.nan_bits) {
                difference.tally.same += e.buffer.len() as u64;
            } else {
                differing.push((device, i));
            }
        }
    }
    if differing.is_empty() {
        difference.actual = Some(actual);
        return difference;
    }
    let run = settings.run.beside(bytes_beside([&expected.results, &actual.results], subject.inputs));
    let settings = &Settings { run, ..*settings };
    let allowances = settings.policy.allowances(engine);
    difference.allowances = allowances;
    // The reference ran already: if it cannot be run again with bounds, nothing is known.
    let bounds = |most_elements| {
        let bound = |inputs| {
            certify_within(subject.module, inputs, &settings.run, allowances, &mut (), most_elements)
        };
        subject.phases.during(Phase::Bounds, || subject.inputs().and_then(bound))
    };
    let few = if settings.replay && executable.can_be_observed() { FEW_ELEMENTS } else { u64::MAX };
    let mut certified = bounds(few);
    let replays = || replay_of(expected, executable, allowances, subject, settings);
    // What a replay found, once there was one.
    let mut tried = None;
    if let Ok(None) = certified {
        let found = subject.phases.during(Phase::Replay, replays);
        if found.as_ref().is_none_or(|(found, _)| found.class() > Class::Explained) {
            certified = bounds(u64::MAX);
        }
        tried = Some(found);
    }
    // Without bounds for want of memory nothing is known of the engine, and nothing may be said of it.
    if let Err(outcome) = certified.as_ref()
        && outcome.is_exhausted()
    {
        return failed(outcome.clone());
    }
    // What sorts leave open is seen in all results of a device together.
    let rows: Vec<Vec<Rows>> = match &certified {
        Ok(Some(certified)) => {
            let devices = certified.results.iter().zip(&expected.results).zip(&actual.results);
            let of = |((bounds, e), a): ((&Vec<(ArrayLiteral, Bounds)>, _), _)| {
                let (e, a): (&Vec<ArrayLiteral>, &Vec<ArrayLiteral>) = (e, a);
                let all = e.iter().zip(a).zip(bounds).map(|((e, a), (_, b))| -> Judged<'_> { (e, a, b) });
                by_rows(&all.collect::<Vec<_>>(), settings.policy.nan_bits)
            };
            devices.map(of).collect()
        }
        Ok(None) | Err(_) => Vec::new(),
    };
    let unmoved = Rows::default();
    let judged = |others: &[Certified]| {
        let verdict = |&(device, i): &(usize, usize)| {
            let (e, a) = (&expected.results[device][i], &actual.results[device][i]);
            let name = array_name(count, device, "out", i);
            let unknown;
            let bounds = match &certified {
                Ok(Some(certified)) => &certified.results[device][i].1,
                Ok(None) | Err(_) => {
                    unknown = Bounds::unknown(e.buffer.len());
                    &unknown
                }
            };
            let of = |other: &Certified| other.results.get(device).and_then(|of| of.get(i).cloned());
            let others: Vec<(ArrayLiteral, Bounds)> = others.iter().filter_map(of).collect();
            let others: Vec<Other<'_>> =
                others.iter().map(|(expected, allowed)| Other { expected, allowed }).collect();
            let rows = rows.get(device).and_then(|rows| rows.get(i)).unwrap_or(&unmoved);
            let verdict = judge_among(e, a, bounds, &others, rows, settings.policy.nan_bits);
            verdict.map_err(|why| format!("{name} of {}: {why}", engine.name())).map(|v| (name, v))
        };
        differing.iter().map(verdict).collect::<Result<Vec<_>, String>>()
    };
    let open =
        |verdicts: &[(String, ArrayVerdict)]| verdicts.iter().any(|(_, v)| v.class() > Class::Explained);
    let mut verdicts = judged(&[]);
    // What an engine that can be replayed leaves open is decided by that.
    let alone = !(settings.replay && executable.can_be_observed());
    if alone && matches!(certified, Ok(Some(_))) {
        let mut others = Others::new(subject, settings, allowances);
        let mut runs = Vec::new();
        while verdicts.as_ref().is_ok_and(|v| open(v))
            && let Some(other) = subject.phases.during(Phase::Bounds, || others.next())
        {
            runs.push(other);
            verdicts = judged(&runs);
        }
    }
    match verdicts {
        Ok(verdicts) => {
            verdicts.iter().for_each(|(_, v)| difference.tally.add(&v.tally));
            difference.arrays.extend(verdicts);
        }
        Err(why) => return failed(Outcome::crashed(why)),
    }
    let class = difference.arrays.iter().map(|(_, v)| v.class()).max().unwrap_or(Class::Same);
    difference.kind = class.into();
    difference.actual = Some(actual);
    difference.reference = Some(expected.clone());
    let says_little = class >= Class::Undecided || difference.arrays.iter().any(|(_, v)| v.weak);
    if settings.replay && says_little {
        let phases = subject.phases.clone();
        phases.during(Phase::Replay, || {
            replayed(&mut difference, tried.unwrap_or_else(replays));
            if !difference.replayed() && !engine.knows_one_program() {
                if !difference.kind.is_failure() {
                    in_pieces(&mut difference, engine, allowances, subject, settings);
                }
                value_by_value(&mut difference, engine, subject, settings);
            }
        });
    }
    difference
}

/// Replays an executable, of HLO or step by step ([`steps`]); and what diverges first. `None`:
/// that cannot be, or decides nothing (values beyond the memory limit).
fn replay_of(
    expected: &Finished,
    executable: &dyn Executable,
    allowances: Allowances,
    subject: &Subject<'_>,
    settings: &Settings,
) -> Option<(Replay, Option<InstructionKind>)> {
    if executable.form().is_some() {
        let found = replay(subject, executable, allowances, settings).ok()?;
        let blamed = found.first().map(|d| InstructionKind::of(subject.module, d.location.id));
        return Some((found, blamed));
    }
    steps(expected, executable, allowances, subject, settings)
}

/// Replays the HLO that the steps of a compiled program execute, if the interpreter gives the reference's
/// results for that to the bit. What the replay names is of that HLO.
pub fn steps(
    expected: &Finished,
    executable: &dyn Executable,
    allowances: Allowances,
    subject: &Subject<'_>,
    settings: &Settings,
) -> Option<(Replay, Option<InstructionKind>)> {
    let watched = executable.watched()?;
    let steps = Subject { module: watched.form()?.module, ..subject.clone() };
    let replay = |looks| {
        replay_as(&steps, &*watched, allowances, settings, looks, Some(&expected.results)).ok().flatten()
    };
    let mut found = replay(Looks::Results)?;
    if found.class() > Class::Explained {
        found = replay(Looks::Everything)?;
    }
    let blamed = found.first().map(|d| computed(steps.module, d.location.id));
    // No step has a part of the work of another.
    found.divergences.iter_mut().for_each(|d| d.covers.clear());
    Some((found, blamed))
}

/// What an instruction computes: a fusion what its root does.
fn computed(module: &Module, id: InstrId) -> InstructionKind {
    let instr = module.instr(id);
    match instr.attrs.computation(AttrKey::Calls).filter(|_| instr.opcode == Opcode::Fusion) {
        None => InstructionKind::of(module, id),
        Some(called) => {
            let root = module.root(called);
            let first = module.instr(root).operands().first().copied();
            let several = module.instr(root).opcode == Opcode::Tuple;
            InstructionKind::of(module, first.filter(|_| several).unwrap_or(root))
        }
    }
}

/// Decides by replay what the bounds over the whole program left open, and finds who is to blame.
fn replayed(difference: &mut Difference, found: Option<(Replay, Option<InstructionKind>)>) {
    let Some((found, blamed)) = found else { return };
    difference.blamed = blamed;
    let class = found.class();
    difference.replay = Some(Box::new(found));
    match class {
        Class::Wrong => difference.kind = Kind::Wrong,
        Class::Undecided => {}
        // Every instruction, replayed on the reference's operands, is within its bound: what the whole
        // program leaves open is the rounding of one instruction that others amplify.
        Class::Same | Class::Explained if difference.kind == Kind::Undecided => {
            difference.explain_undecided();
        }
        Class::Same | Class::Explained => {}
    }
}

/// Decides on pieces of the program what the bounds over all of it left open.
fn in_pieces(
    difference: &mut Difference,
    engine: &dyn Engine,
    allowances: Allowances,
    subject: &Subject<'_>,
    settings: &Settings,
) {
    let Some(expected) = &difference.reference else { return };
    let Some(pieces) = judge_pieces(expected, engine, allowances, subject, settings) else { return };
    match pieces.difference.kind {
        Kind::Wrong => {
            difference.kind = Kind::Wrong;
            difference.blamed = pieces.blamed;
        }
        Kind::Same | Kind::Explained => difference.explain_undecided(),
        // What the whole program explains stays explained.
        Kind::Undecided if difference.kind != Kind::Undecided => {}
        Kind::Undecided
        | Kind::Unsupported
        | Kind::Exhausted
        | Kind::Trap
        | Kind::Timeout
        | Kind::Crash
        | Kind::NoReference => difference.blamed = pieces.blamed,
    }
    difference.pieces = Some(pieces);
}

/// The number of a result, by the name that it has in [`Difference::arrays`].
pub fn result_number(name: &str) -> Option<usize> {
    name.rsplit("out").next()?.parse().ok()
}

/// Decides result by result what is still open: the engine is given the program cut at every value. A result
/// that comes from a wrong value is wrong, one that comes from explained ones alone is explained.
fn value_by_value(
    difference: &mut Difference,
    engine: &dyn Engine,
    subject: &Subject<'_>,
    settings: &Settings,
) {
    if difference.tally.undecided == 0 {
        return;
    }
    let Some(expected) = &difference.reference else { return };
    let Some(classes) = judge_every_value(expected, engine, subject, settings) else { return };
    for (name, verdict) in &mut difference.arrays {
        let class = result_number(name).and_then(|n| classes.get(n).copied()).unwrap_or(Class::Undecided);
        let undecided = verdict.tally.undecided;
        if undecided == 0 || class == Class::Undecided {
            continue;
        }
        let wrong = class == Class::Wrong;
        verdict.settle(wrong);
        difference.tally.undecided -= undecided;
        if wrong {
            difference.tally.wrong += undecided;
            difference.kind = Kind::Wrong;
        } else {
            difference.tally.explained += undecided;
        }
    }
    if difference.kind == Kind::Undecided && difference.tally.undecided == 0 {
        difference.kind = Kind::Explained;
    }
}

/// Compares an engine with what the reference gave; `limit` is for the engine, and once more for judging it.
/// Where judging takes longer, nothing is said of the engine ([`Kind::Exhausted`]).
pub fn differ_within(
    limit: Option<Duration>,
    expected: &Outcome,
    engine: &dyn Engine,
    subject: &Subject<'_>,
    settings: &Settings,
) -> Difference {
    let differ = || differ_from(expected, engine, subject, settings);
    let Some(limit) = limit else { return differ() };
    within(limit.saturating_mul(2), differ).unwrap_or_else(|unfinished| {
        let diagnostic = match unfinished {
            Unfinished::TimedOut(_) => {
                let message = format!("judging {} took longer than {} s", engine.name(), limit.as_secs_f64());
                Some(Diagnostic::error(codes::JUDGING_TIMED_OUT, Span::NONE, message))
            }
            Unfinished::NoThread => unfinished.outcome(engine.name()).diagnostic().cloned(),
        };
        Difference::ended(Kind::Exhausted, diagnostic)
    })
}
