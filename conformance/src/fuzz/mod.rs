//! The bug hunter: programs, one after the other, on a reference and on engines.
//!
//! **Invariants:** program `i` of a seed depends on the seed, `i` and the size alone: shards need no
//! coordination, their statistics add up, and a finding is repeated by its number. Every program runs
//! guarded: a panic of an engine is a finding, and so is a program that does not end.

pub mod acceptance;
mod cause;
#[cfg(test)]
mod cause_tests;
mod clock;
mod finding;
mod kinds;
pub mod progress;
mod source;
mod totals;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use hlo::Diagnostic;
use hlo::diag::codes;

use hlo_engines::engine::{Engine, Outcome, devices};
use hlo_system::guard::{guarded, spawn_deep};
use hlo_system::memory_budget;
use hlo_triage::artifact::Signature;
use hlo_triage::differential::differ_within;
use hlo_triage::differential::{Difference, Kind, Settings, Subject, reference_run};
use hlo_triage::instruction_kind::InstructionKind;
use hlo_triage::isolate::blame;

use clock::{Clock, Step};

pub use finding::Finding;
pub use kinds::Tallied;
pub use progress::Progress;
pub use source::{Base, Program, Size, Source, WIDEST};
pub use totals::{EngineTotals, Totals};

/// Options of a hunt.
pub struct Hunt<'a> {
    /// The reference.
    pub reference: &'a dyn Engine,
    /// The engines.
    pub engines: Vec<&'a dyn Engine>,
    /// The source of programs.
    pub source: Source,
    /// The number of programs, of all shards together.
    pub count: u64,
    /// This shard and how many there are: programs `i` with `i mod of = index`.
    pub shard: (u64, u64),
    /// The maximum of findings.
    pub max_findings: usize,
    /// Whether programs with undecided elements are findings, and not only counted.
    pub keep_undecided: bool,
    /// Whether each finding counts, and not only the first of a signature.
    pub keep_all: bool,
    /// Stop after so long.
    pub max_time: Option<Duration>,
    /// How long a program on an engine may take that sets its runs no limit by itself.
    pub timeout: Duration,
    /// Threads.
    pub jobs: usize,
    /// Options of comparisons.
    pub settings: Settings,
}

/// The events of a hunt.
pub enum Event<'e> {
    /// So many programs are done, in all.
    Progress(u64),
    /// Time to write down how far it is: told every second, and after each finding.
    Checkpoint(&'e Progress),
    /// A failure with a signature that is new.
    Found(&'e Finding),
    /// A program that did not end in time on an engine of this process. Its thread is lost: the receiver ends
    /// the process. The finding names the engine in a process of its own (`child:ENGINE`), which can be
    /// ended.
    Stuck(&'e Finding, &'e Progress),
}

/// The interval at which the clock is read.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// The interval at which a hunt writes its progress.
const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(1);

/// The result of a hunt.
#[derive(Clone, Debug)]
pub struct Hunted {
    /// The totals.
    pub totals: Totals,
    /// The resource that the environment lacked, so that it ended early.
    pub lack: Option<String>,
}

/// The state that workers share.
struct Shared<'a> {
    hunt: &'a Hunt<'a>,
    tell: &'a (dyn Fn(Event<'_>) + Sync),
    start: Instant,
    /// Of earlier processes of the same hunt.
    seconds_before: f64,
    next: AtomicU64,
    stop: AtomicBool,
    clock: Clock,
    known: Mutex<Vec<Signature>>,
    /// With the time of the last checkpoint.
    progress: Mutex<(Progress, Instant)>,
    lack: Mutex<Option<String>>,
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Hunts. `tell` is called from any thread, one call at a time.
pub fn hunt(hunt: &Hunt<'_>, tell: &(dyn Fn(Event<'_>) + Sync)) -> Totals {
    go_on(hunt, Progress::default(), Vec::new(), tell).totals
}

/// Goes on with a hunt that was ended, from what was written down of its progress and of what it had found.
pub fn go_on(
    hunt: &Hunt<'_>,
    progress: Progress,
    known: Vec<Signature>,
    tell: &(dyn Fn(Event<'_>) + Sync),
) -> Hunted {
    let start = Instant::now();
    let jobs = hunt.jobs.max(1);
    let told: Mutex<()> = Mutex::new(());
    let tell_one = |event: Event<'_>| {
        let _one = locked(&told);
        tell(event);
    };
    let mut progress = progress;
    if progress.totals.engines.is_empty() {
        progress.totals = Totals::new(&hunt.engines);
    }
    let shared = Shared {
        hunt,
        tell: &tell_one,
        start,
        seconds_before: progress.totals.seconds,
        next: AtomicU64::new(progress.below),
        stop: AtomicBool::new(known.len() >= hunt.max_findings),
        clock: Clock::new(jobs, patience(hunt)),
        known: Mutex::new(known),
        progress: Mutex::new((progress, start)),
        lack: Mutex::new(None),
    };
    memory_budget::set_concurrency(jobs);
    std::thread::scope(|scope| {
        let (over, going_on) = channel::<()>();
        let shared = &shared;
        // Without a thread for it nobody looks at the clock, which only matters where an engine hangs.
        let _ = std::thread::Builder::new().spawn_scoped(scope, move || watch(shared, &going_on));
        let mut workers = Vec::new();
        for worker in 0..jobs {
            match spawn_deep(scope, Some("hlo"), move || work(shared, worker)) {
                Ok(thread) => workers.push(thread),
                Err(work) if worker == 0 => {
                    work();
                    break;
                }
                // Those that there are do the work of all.
                Err(_) => break,
            }
        }
        for worker in workers {
            worker.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload));
        }
        drop(over);
    });
    let totals = shared.now(&mut locked(&shared.progress).0).totals.clone();
    Hunted { totals, lack: locked(&shared.lack).take() }
}

impl Shared<'_> {
    /// The progress with the time and the number of findings.
    fn now<'p>(&self, progress: &'p mut Progress) -> &'p Progress {
        progress.totals.seconds = self.seconds_before + self.start.elapsed().as_secs_f64();
        progress.totals.findings = locked(&self.known).len() as u64;
        progress
    }
}

/// Runs programs until there are no more.
fn work(shared: &Shared<'_>, worker: usize) {
    let hunt = shared.hunt;
    let (shard, shards) = hunt.shard;
    let mine = hunt.count / shards + u64::from(shard < hunt.count % shards);
    while !shared.stop.load(Ordering::Relaxed) {
        let k = shared.next.fetch_add(1, Ordering::Relaxed);
        if k >= mine || hunt.max_time.is_some_and(|limit| shared.start.elapsed() >= limit) {
            break;
        }
        if locked(&shared.progress).0.has(k) {
            continue;
        }
        let number = k * shards + shard;
        let mut counted = Totals::new(&hunt.engines);
        let findings = match one(hunt, number, &mut counted, &shared.clock, worker) {
            Ok(findings) => findings,
            Err(lack) => {
                shared.stop.store(true, Ordering::Relaxed);
                locked(&shared.lack).get_or_insert(lack);
                break;
            }
        };
        let mut found = false;
        for finding in findings {
            let mut known = locked(&shared.known);
            // What is undecided says little of its kind: each such program is one of its own.
            let one_of_many = hunt.keep_all || finding.signature.kind == Kind::Undecided;
            let again = !one_of_many && known.contains(&finding.signature);
            if again || known.len() >= hunt.max_findings {
                continue;
            }
            known.push(finding.signature.clone());
            if known.len() >= hunt.max_findings {
                shared.stop.store(true, Ordering::Relaxed);
            }
            drop(known);
            (shared.tell)(Event::Found(&finding));
            found = true;
        }
        // Counted when what was found is on disk.
        let mut progress = locked(&shared.progress);
        let (progress, written) = &mut *progress;
        progress.add(k, &counted);
        if progress.done().is_multiple_of(64) {
            (shared.tell)(Event::Progress(progress.done()));
        }
        if found || written.elapsed() >= CHECKPOINT_INTERVAL {
            *written = Instant::now();
            (shared.tell)(Event::Checkpoint(shared.now(progress)));
        }
    }
}

/// The finding of this signature in a program, once more.
pub fn again(hunt: &Hunt<'_>, number: u64, signature: &Signature) -> Option<Finding> {
    let clock = Clock::new(1, patience(hunt));
    let findings = one(hunt, number, &mut Totals::new(&hunt.engines), &clock, 0).ok()?;
    findings.into_iter().find(|finding| finding.signature == *signature)
}

/// When a step is given up that should have ended: long after the limits of running and judging.
fn patience(hunt: &Hunt<'_>) -> Duration {
    hunt.timeout.saturating_mul(3)
}

/// Looks at the clock until the hunt is over.
fn watch(shared: &Shared<'_>, going_on: &Receiver<()>) {
    let hunt = shared.hunt;
    while going_on.recv_timeout(POLL_INTERVAL) == Err(RecvTimeoutError::Timeout) {
        let Some(Step { number, engine }) = shared.clock.overdue() else { continue };
        // Programs are made from their numbers: this one was there before.
        let Some(program) = hunt.source.program(number) else { continue };
        let settings = settings_for(hunt, &program).unwrap_or(hunt.settings);
        let name = format!("child:{}", hunt.engines[engine].name());
        let outcome = Outcome::timed_out(&name, hunt.timeout);
        let difference = Difference::ended(Kind::Timeout, outcome.diagnostic().cloned());
        let finding = Finding::new(number, &program, (hunt.reference.name(), &name), difference, &settings);
        // A hunt that goes on does so behind it.
        let mut progress = locked(&shared.progress).0.clone();
        progress.add((number - hunt.shard.0) / hunt.shard.1, &Totals { programs: 1, ..Totals::default() });
        (shared.tell)(Event::Stuck(&finding, shared.now(&mut progress)));
    }
}

/// Options of a program's run; `None` if no run has what it needs.
fn settings_for(hunt: &Hunt<'_>, program: &Program) -> Option<Settings> {
    let mut settings = hunt.settings;
    settings.run.devices = devices::stated(&program.module, None, None).ok()?;
    Some(settings)
}

/// Runs program `number` everywhere. Returns the failures. Errors: what the environment lacks.
fn one(
    hunt: &Hunt<'_>,
    number: u64,
    totals: &mut Totals,
    clock: &Clock,
    worker: usize,
) -> Result<Vec<Finding>, String> {
    let lack = |failure: Option<&Diagnostic>| match failure {
        Some(d) if d.code == codes::ENVIRONMENT_FAILED => Err(d.message.clone()),
        Some(_) | None => Ok(()),
    };
    let Some(program) = hunt.source.program(number) else {
        totals.skipped += 1;
        return Ok(Vec::new());
    };
    totals.programs += 1;
    totals.coverage.add(&program.module);
    let Some(settings) = settings_for(hunt, &program) else {
        totals.skipped += 1;
        return Ok(Vec::new());
    };
    let subject = Subject { host: program.host.clone(), ..Subject::new(&program.module, &program.inputs) };
    let expected =
        guarded("running the reference", || Ok(reference_run(hunt.reference, &subject, &settings)));
    let expected = expected.unwrap_or_else(|f| Outcome::crashed(f.message));
    lack(expected.diagnostic())?;
    match &expected {
        Outcome::Finished(f) => totals.fuel += f.fuel,
        Outcome::Crashed(_) => {
            // What the verifier accepts never panics: the reference itself failed.
            let difference = Difference::ended(Kind::Crash, expected.diagnostic().cloned());
            totals.reference_failed += 1;
            return Ok(vec![Finding::new(
                number,
                &program,
                (hunt.reference.name(), hunt.reference.name()),
                difference,
                &settings,
            )]);
        }
        Outcome::Unsupported(_) | Outcome::Trap(_) | Outcome::WrongInputs(_) | Outcome::TimedOut(_) => {
            totals.reference_failed += 1;
            return Ok(Vec::new());
        }
    }
    let mut findings = Vec::new();
    for (i, (engine, counted)) in hunt.engines.iter().zip(&mut totals.engines).enumerate() {
        let run = || {
            guarded(&format!("running {}", engine.name()), || {
                Ok(differ_within(Some(hunt.timeout), &expected, *engine, &subject, &settings))
            })
        };
        let difference = match engine.ends_by_itself() {
            true => run(),
            false => clock.take(worker, Step { number, engine: i }, run),
        };
        let mut difference = difference.unwrap_or_else(|f| {
            Difference::ended(Kind::Crash, Outcome::crashed(f.message).diagnostic().cloned())
        });
        lack(difference.failure.as_ref())?;
        counted.count(&difference);
        let undecided =
            guarded("looking for causes", || Ok(kinds::undecided(number, &difference, &subject, &settings)));
        if difference.kind == Kind::Wrong && difference.blamed.is_none() {
            // An engine that cannot be replayed: every instruction alone.
            let blamed = guarded("isolating", || Ok(blame(&subject, *engine, &settings)));
            difference.blamed =
                blamed.ok().flatten().map(|b| InstructionKind::of(subject.module, b.location.id));
        }
        counted.count_kinds(&undecided.unwrap_or_default(), &kinds::wrong(number, &difference));
        if difference.kind.is_failure() || hunt.keep_undecided && difference.kind == Kind::Undecided {
            findings.push(Finding::new(
                number,
                &program,
                (hunt.reference.name(), engine.name()),
                difference,
                &settings,
            ));
        }
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use hlo::Module;
    use hlo_interp::{Devices, Observer};
    use std::sync::Arc;

    use super::*;
    use hlo_engines::engine::{Executable, Inputs, InterpreterEngine, RunOptions};

    /// Runs nothing before it is allowed to go on.
    struct Waits(Mutex<Option<Receiver<()>>>);

    impl Engine for Waits {
        fn name(&self) -> &'static str {
            "waits"
        }

        fn supports(&self, _: &Module, _: Devices) -> Result<(), Diagnostic> {
            Ok(())
        }

        fn compile<'m>(&'m self, _: &'m Module) -> Result<Box<dyn Executable + 'm>, Outcome> {
            Ok(Box::new(Waiting(self)))
        }
    }

    struct Waiting<'e>(&'e Waits);

    impl Executable for Waiting<'_> {
        fn run(&self, _: Inputs, _: &RunOptions, _: Option<Arc<dyn Observer>>) -> Outcome {
            if let Some(going_on) = self.0.0.lock().unwrap().take() {
                let _ = going_on.recv();
            }
            Outcome::crashed("it was let go")
        }
    }

    #[test]
    fn what_does_not_end_is_told_once_with_its_program() {
        let (let_go, waits) = channel();
        let engine = Waits(Mutex::new(Some(waits)));
        let source =
            Source { seed: 3, size: Size::Small, bases: Arc::default(), mutated: false, devices: false };
        let hunted = Hunt {
            reference: &InterpreterEngine,
            engines: vec![&engine],
            source: source.clone(),
            count: 20,
            shard: (0, 1),
            max_findings: 9,
            keep_undecided: false,
            keep_all: false,
            max_time: None,
            timeout: Duration::from_millis(200),
            jobs: 1,
            settings: Settings::default(),
        };
        let told = Mutex::new(Vec::new());
        let totals = hunt(&hunted, &|event| match event {
            Event::Progress(_) | Event::Checkpoint(_) => {}
            Event::Found(f) => told.lock().unwrap().push((f.signature.kind, f.signature.engine.clone())),
            Event::Stuck(f, _) => {
                let program = source.program(f.number).unwrap();
                let print = |m: &Module| hlo::print::print_module(m, &hlo::print::PrintOptions::source(m));
                assert_eq!(print(&f.program.module), print(&program.module));
                told.lock().unwrap().push((f.signature.kind, f.signature.engine.clone()));
                let_go.send(()).unwrap();
            }
        });
        let told = told.into_inner().unwrap();
        assert_eq!(told, [(Kind::Timeout, "child:waits".to_owned()), (Kind::Crash, "waits".to_owned())]);
        assert!(totals.programs > 1);
    }

    /// The floor of 1 less a unit is 0: without a replay that is undecided.
    #[test]
    fn undecided_programs_are_kept_where_that_is_asked_for() {
        let text = "HloModule m\nENTRY e { x = f32[2] constant({0, 1})\n y = f32[2] exponential(x)\n ROOT f = f32[2] floor(y) }";
        let module = hlo_engines::frontend::parse_text(text).0.unwrap();
        let engine = hlo_engines::engine::by_name("interpreter:ulp-down").unwrap();
        let hunt_for = |keep_undecided: bool| {
            let base = |name: &str| Base {
                name: name.to_owned(),
                module: module.clone(),
                inputs: vec![Vec::new()],
                is_stablehlo: false,
            };
            let bases = Arc::new(vec![base("m"), base("n")]);
            let source = Source { seed: 3, size: Size::Small, bases, mutated: false, devices: false };
            let hunted = Hunt {
                reference: &InterpreterEngine,
                engines: vec![&*engine],
                source,
                count: 2,
                shard: (0, 1),
                max_findings: 9,
                keep_undecided,
                keep_all: false,
                max_time: None,
                timeout: Duration::from_secs(60),
                jobs: 1,
                settings: Settings { replay: false, ..Settings::default() },
            };
            let found = Mutex::new(Vec::new());
            let totals = hunt(&hunted, &|event| {
                if let Event::Found(finding) = event {
                    found.lock().unwrap().push(finding.signature.kind);
                }
            });
            (totals.engines[0].undecided, found.into_inner().unwrap())
        };
        // Of one signature, and each is kept.
        assert_eq!(hunt_for(true), (2, vec![Kind::Undecided; 2]));
        assert_eq!(hunt_for(false), (2, Vec::new()));
    }
}
