//! The bug hunter: programs, one after the other, on a reference and on engines.
//!
//! **Invariants:** program `i` of a seed depends on the seed, `i` and the size alone, not on threads, shards, time or what was found before:
//! shards need no coordination, their statistics add up, and a finding is repeated by its number. Every program runs guarded: a
//! panic of an engine is a finding like any other, and so is a program that does not end.

pub mod acceptance;
mod clock;
mod finding;
mod source;
mod totals;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use crate::artifact::Signature;
use crate::differential::{Difference, Kind, Settings, Subject, differ_from, reference_run};
use crate::engine::{Engine, Outcome, devices};
use crate::guard::{guarded, spawn_deep};
use crate::isolate::blame;

use clock::{Clock, Step};

pub use finding::Finding;
pub use source::{Base, Program, Size, Source, WIDEST};
pub use totals::{EngineTotals, Totals};

/// What to hunt, and how far.
pub struct Hunt<'a> {
    /// What is right.
    pub reference: &'a dyn Engine,
    /// What is tried.
    pub engines: Vec<&'a dyn Engine>,
    /// Where programs come from.
    pub source: Source,
    /// How many programs, of all shards together.
    pub count: u64,
    /// This shard and how many there are: programs `i` with `i mod of = index`.
    pub shard: (u64, u64),
    /// Stop after so many findings.
    pub max_findings: usize,
    /// Stop after so long.
    pub max_time: Option<Duration>,
    /// How long a program on an engine may take that sets its runs no limit by itself.
    pub timeout: Duration,
    /// Threads.
    pub jobs: usize,
    /// How runs are compared.
    pub settings: Settings,
}

/// What is told while it goes on.
pub enum Event<'e> {
    /// So many programs are done, in all.
    Progress(u64),
    /// A failure with a signature that is new.
    Found(&'e Finding),
    /// A program that did not end in time on an engine of this process. Its thread is lost, and with it the end of the hunt: whoever is told this
    /// ends the process. The finding names the engine in a process of its own (`child:ENGINE`), which can be ended.
    Stuck(&'e Finding),
}

/// How often the clock is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// Hunts. `tell` is called from any thread, one call at a time. Returns what was counted.
pub fn hunt(hunt: &Hunt<'_>, tell: &(dyn Fn(Event<'_>) + Sync)) -> Totals {
    let start = Instant::now();
    let next = AtomicU64::new(0);
    let done = AtomicU64::new(0);
    let stop = AtomicBool::new(false);
    let (shard, shards) = hunt.shard;
    let mine = hunt.count / shards + u64::from(shard < hunt.count % shards);
    let known: Mutex<Vec<Signature>> = Mutex::new(Vec::new());
    let told: Mutex<()> = Mutex::new(());
    let jobs = hunt.jobs.max(1);
    let clock = Clock::new(jobs, hunt.timeout);
    let work = |worker: usize| {
        let mut totals = Totals::new(&hunt.engines);
        while !stop.load(Ordering::Relaxed) {
            let k = next.fetch_add(1, Ordering::Relaxed);
            if k >= mine || hunt.max_time.is_some_and(|limit| start.elapsed() >= limit) {
                break;
            }
            let number = k * shards + shard;
            for finding in one(hunt, number, &mut totals, &clock, worker) {
                let mut known = known.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                if known.contains(&finding.signature) || known.len() >= hunt.max_findings {
                    continue;
                }
                known.push(finding.signature.clone());
                if known.len() >= hunt.max_findings {
                    stop.store(true, Ordering::Relaxed);
                }
                drop(known);
                let _one = told.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                tell(Event::Found(&finding));
            }
            let n = done.fetch_add(1, Ordering::Relaxed) + 1;
            if n.is_multiple_of(64) {
                tell(Event::Progress(n));
            }
        }
        totals
    };
    let mut all = Totals::new(&hunt.engines);
    std::thread::scope(|scope| {
        let (over, going_on) = channel::<()>();
        let clock = &clock;
        // Without a thread for it nobody looks at the clock, which only matters where an engine hangs.
        let _ = std::thread::Builder::new().spawn_scoped(scope, move || watch(hunt, clock, &going_on, tell));
        let work = &work;
        let mut workers = Vec::new();
        for worker in 0..jobs {
            match spawn_deep(scope, Some("hlo"), move || work(worker)) {
                Ok(thread) => workers.push(thread),
                Err(work) if worker == 0 => {
                    all.add(&work());
                    break;
                }
                // Those that there are do the work of all.
                Err(_) => break,
            }
        }
        for worker in workers {
            all.add(&worker.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload)));
        }
        drop(over);
    });
    all.seconds = start.elapsed().as_secs_f64();
    all.findings = known.lock().map_or(0, |k| k.len() as u64);
    all
}

/// Looks at the clock until the hunt is over.
fn watch(hunt: &Hunt<'_>, clock: &Clock, going_on: &Receiver<()>, tell: &(dyn Fn(Event<'_>) + Sync)) {
    while going_on.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
        let Some(Step { number, engine }) = clock.overdue() else { continue };
        // Programs are made from their numbers: this one was there before.
        let Some(program) = hunt.source.program(number) else { continue };
        let settings = settings_for(hunt, &program).unwrap_or(hunt.settings);
        let name = format!("child:{}", hunt.engines[engine].name());
        let outcome = Outcome::timed_out(&name, hunt.timeout);
        let difference = Difference::ended(Kind::Timeout, outcome.diagnostic().cloned());
        let finding = Finding::new(number, &program, (hunt.reference.name(), &name), difference, &settings);
        tell(Event::Stuck(&finding));
    }
}

/// How a program runs; `None` if it asks for what no run has.
fn settings_for(hunt: &Hunt<'_>, program: &Program) -> Option<Settings> {
    let mut settings = hunt.settings;
    settings.run.devices = devices::stated(&program.module, None, None).ok()?;
    Some(settings)
}

/// Runs program `number` everywhere. Returns the failures.
fn one(hunt: &Hunt<'_>, number: u64, totals: &mut Totals, clock: &Clock, worker: usize) -> Vec<Finding> {
    let Some(program) = hunt.source.program(number) else {
        totals.skipped += 1;
        return Vec::new();
    };
    totals.programs += 1;
    totals.coverage.add(&program.module);
    let Some(settings) = settings_for(hunt, &program) else {
        totals.skipped += 1;
        return Vec::new();
    };
    let subject = Subject { host: program.host.clone(), ..Subject::new(&program.module, &program.inputs) };
    let expected =
        guarded("running the reference", || Ok(reference_run(hunt.reference, &subject, &settings)));
    let expected = expected.unwrap_or_else(|f| Outcome::crashed(f.message));
    match &expected {
        Outcome::Finished(f) => totals.fuel += f.fuel,
        Outcome::Crashed(_) => {
            // What the verifier accepts never panics: the reference itself failed.
            let difference = Difference::ended(Kind::Crash, expected.diagnostic().cloned());
            totals.reference_failed += 1;
            return vec![Finding::new(
                number,
                &program,
                (hunt.reference.name(), hunt.reference.name()),
                difference,
                &settings,
            )];
        }
        Outcome::Unsupported(_) | Outcome::Trap(_) | Outcome::WrongInputs(_) | Outcome::TimedOut(_) => {
            totals.reference_failed += 1;
            return Vec::new();
        }
    }
    let mut findings = Vec::new();
    for (i, (engine, counted)) in hunt.engines.iter().zip(&mut totals.engines).enumerate() {
        let run = || {
            guarded(&format!("running {}", engine.name()), || {
                Ok(differ_from(&expected, *engine, &subject, &settings))
            })
        };
        let difference = match engine.ends_by_itself() {
            true => run(),
            false => clock.take(worker, Step { number, engine: i }, run),
        };
        let difference = difference.unwrap_or_else(|f| {
            Difference::ended(Kind::Crash, Outcome::crashed(f.message).diagnostic().cloned())
        });
        counted.count(&difference);
        if difference.kind.is_failure() {
            let mut difference = difference;
            if difference.kind == Kind::Wrong && difference.blamed.is_none() {
                // An engine that cannot be replayed: every instruction alone.
                let blamed = guarded("isolating", || Ok(blame(&subject, *engine, &settings)));
                difference.blamed = blamed.ok().flatten().map(|b| b.place.opcode);
            }
            findings.push(Finding::new(
                number,
                &program,
                (hunt.reference.name(), engine.name()),
                difference,
                &settings,
            ));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use hlo::{Diagnostic, Module};
    use hlo_interp::{Devices, Observer};
    use std::sync::Arc;

    use super::*;
    use crate::engine::{Executable, Inputs, InterpreterEngine, RunOptions};

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
            max_time: None,
            timeout: Duration::from_millis(200),
            jobs: 1,
            settings: Settings::default(),
        };
        let told = Mutex::new(Vec::new());
        let totals = hunt(&hunted, &|event| match event {
            Event::Progress(_) => {}
            Event::Found(f) => told.lock().unwrap().push((f.signature.kind, f.signature.engine.clone())),
            Event::Stuck(f) => {
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
}
