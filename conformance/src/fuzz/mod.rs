//! The bug hunter: programs, one after the other, on a reference and on engines.
//!
//! **Invariants:** program `i` of a seed depends on the seed, `i` and the size alone, not on threads, shards, time or what was found before:
//! shards need no coordination, their statistics add up, and a finding is repeated by its number. Every program runs guarded: a
//! panic of an engine is a finding like any other.

pub mod acceptance;
mod finding;
mod source;
mod totals;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::artifact::Signature;
use crate::differential::{Difference, Kind, Settings, Subject, differ_from, reference_run};
use crate::engine::{Engine, Outcome, devices};
use crate::guard::{guarded, on_deep_stack};
use crate::isolate::blame;

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
}

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
    let work = || {
        let mut totals = Totals::new(&hunt.engines);
        while !stop.load(Ordering::Relaxed) {
            let k = next.fetch_add(1, Ordering::Relaxed);
            if k >= mine || hunt.max_time.is_some_and(|limit| start.elapsed() >= limit) {
                break;
            }
            let number = k * shards + shard;
            for finding in one(hunt, number, &mut totals) {
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
        let workers: Vec<_> = (0..hunt.jobs.max(1)).map(|_| scope.spawn(|| on_deep_stack(work))).collect();
        for worker in workers {
            all.add(&worker.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload)));
        }
    });
    all.seconds = start.elapsed().as_secs_f64();
    all.findings = known.lock().map_or(0, |k| k.len() as u64);
    all
}

/// Runs program `number` everywhere. Returns the failures.
fn one(hunt: &Hunt<'_>, number: u64, totals: &mut Totals) -> Vec<Finding> {
    let Some(program) = hunt.source.program(number) else {
        totals.skipped += 1;
        return Vec::new();
    };
    totals.programs += 1;
    totals.coverage.add(&program.module);
    let mut settings = hunt.settings;
    match devices(&program.module, None, None) {
        Ok(devices) => settings.run.devices = devices,
        Err(_) => {
            totals.skipped += 1;
            return Vec::new();
        }
    }
    let subject = Subject { module: &program.module, inputs: &program.inputs, host: program.host.clone() };
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
    for (engine, counted) in hunt.engines.iter().zip(&mut totals.engines) {
        let difference = guarded(&format!("running {}", engine.name()), || {
            Ok(differ_from(&expected, *engine, &subject, &settings))
        });
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
