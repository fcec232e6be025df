//! The search: moves propose edits, the oracle decides.
//!
//! A move's edits are tried together, then in halves, and so on down to single ones (ddmin), or only one by
//! one. Candidates are tried side by side, but in the order of their list: the first that fails the same way
//! is kept, what comes after it is tried again on what is left. Verdicts are remembered by fingerprint.

use std::cell::OnceCell;
use std::time::{Duration, Instant};

use hlo::verify::verify;
use hlo_system::guard::{guarded, useful};
use hlo_system::memory_budget;
use hlo_threads::cancel;
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::moves::{Edit, How, MOVES, Move};
use super::program::{Tidy, fingerprint, finished};
use super::record::{self, Recorded};
use super::store::Store;
use super::{Candidate, Metric, NotReduced, Options, Oracle, Signature};

/// One move that made the program smaller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// Instructions after it.
    pub instructions: u64,
    /// Elements after it.
    pub elements: u64,
    /// What was done.
    pub what: &'static str,
    /// Time since the beginning.
    pub time: Duration,
}

/// What came of a reduction.
#[derive(Debug)]
pub struct Report {
    /// The failure.
    pub signature: Signature,
    /// The smallest program that was found.
    pub best: Candidate,
    /// Its size.
    pub metric: Metric,
    /// The size of the original.
    pub original: Metric,
    /// What made it smaller.
    pub steps: Vec<Step>,
    /// Candidates that the oracle was asked about.
    pub tried: u64,
    /// Whether no move applies any more.
    pub fixpoint: bool,
    /// Where the original fails only sometimes: how often, of how many times.
    pub flaky: Option<(u32, u32)>,
    /// Candidates that failed once and not again.
    pub unsteady: u64,
    /// Time for all of it.
    pub time: Duration,
}

/// Whether a candidate may be asked about: it verifies, and no asynchronous start is without its end, which
/// XLA's verifier does not let pass (`xla/service/hlo_verifier.cc`) and which would hide the failing
/// instruction in what is started.
fn is_valid(module: &hlo::Module) -> bool {
    let ends = |id: hlo::InstrId| {
        let users = module.users(id);
        let is_end = |o: hlo::Opcode| matches!(o, hlo::Opcode::AsyncDone | hlo::Opcode::AsyncUpdate);
        users.len() == 1 && is_end(module.instr(users[0].user).opcode)
    };
    let mut all = module.computations().iter().flat_map(|&c| module.instructions(c));
    let orphan = all.any(|id| {
        let opcode = module.instr(id).opcode;
        matches!(opcode, hlo::Opcode::AsyncStart | hlo::Opcode::AsyncUpdate) && !ends(id)
    });
    !orphan && !verify(module).has_errors()
}

/// What moves see.
pub(crate) struct Context<'a> {
    /// The program: ids are in the order of the text, nothing is dead.
    pub program: &'a Candidate,
    fuel: u64,
    recorded: OnceCell<Recorded>,
}

impl<'a> Context<'a> {
    /// `fuel` is how many instructions a run may execute.
    pub(crate) fn new(program: &'a Candidate, fuel: u64) -> Self {
        Context { program, fuel, recorded: OnceCell::new() }
    }

    /// The values of a run of the reference.
    pub(crate) fn recorded(&self) -> &Recorded {
        self.recorded.get_or_init(|| {
            guarded("recording values", || Ok(Recorded::of(self.program, self.fuel))).unwrap_or_default()
        })
    }
}

/// What is known of a program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    fails: bool,
    /// Whether it is in the count of candidates tried; one that was tried speculatively is not, so that the
    /// count does not depend on threads.
    counted: bool,
}

/// How trying a candidate went.
enum Tried {
    /// No edit applied, or the result is not smaller.
    Pointless,
    /// It does not verify.
    Invalid,
    /// The oracle's verdict, known or new.
    Verdict { fingerprint: u128, fails: bool, raw: Box<Candidate>, done: Box<Candidate>, metric: Metric },
}

struct Search<'a> {
    oracle: &'a dyn Oracle,
    options: &'a Options,
    target: Signature,
    /// How often a candidate is asked until it counts as not failing.
    tries: u32,
    tidy: Tidy,
    /// How many instructions a run for values may execute: enough for the original, and no endless loop.
    fuel: u64,
    best: Candidate,
    metric: Metric,
    known: FxHashMap<u128, Known>,
    tried: u64,
    unsteady: u64,
    start: Instant,
    store: Option<Store>,
    pool: rayon::ThreadPool,
}

/// Reduces a program. `progress` hears of each step.
///
/// Errors: the program does not verify, or does not fail.
pub fn reduce(
    original: &Candidate,
    oracle: &dyn Oracle,
    options: &Options,
    progress: &mut dyn FnMut(&Signature, &Step),
) -> Result<Report, NotReduced> {
    let start = Instant::now();
    if verify(&original.module).has_errors() {
        return Err(NotReduced::Invalid);
    }
    let asked = options.repeat.max(1);
    let mut found: Vec<Signature> = (0..asked).filter_map(|_| check(oracle, original, u64::MAX)).collect();
    if let Some(trouble) = oracle.trouble() {
        return Err(NotReduced::Environment(trouble));
    }
    let Some(target) = found.first().cloned() else { return Err(NotReduced::NoFailure) };
    found.retain(|s| *s == target);
    let failed = found.len() as u32;
    let flaky = (failed < asked).then_some((failed, asked));
    // Asked so often, one that fails as rarely as the original is missed once in ten times or less.
    let tries = if flaky.is_some() { 3 * asked.div_ceil(failed) } else { 1 };
    let jobs = useful(options.jobs).max(1);
    memory_budget::set_concurrency(jobs);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs).stack_size(64 << 20).build();
    let pool = pool.map_err(|e| NotReduced::Store(format!("no threads: {e}")))?;
    let mut search = Search {
        oracle,
        options,
        target,
        tries,
        tidy: Tidy::Nothing,
        fuel: enough_fuel(original, options.fuel),
        best: original.clone(),
        metric: Metric::of(original),
        known: FxHashMap::default(),
        tried: 0,
        unsteady: 0,
        start,
        store: None,
        pool,
    };
    let original_metric = search.metric;
    if let Some(folder) = &options.store {
        let (store, resumed) =
            Store::open(folder, original, &search.target, &options.identity).map_err(NotReduced::Store)?;
        if let Some(resumed) = resumed {
            search.tried = resumed.tried;
            search.known =
                resumed.known.into_iter().map(|(f, fails)| (f, Known { fails, counted: true })).collect();
            search.best = resumed.best;
            search.metric = Metric::of(&search.best);
        }
        search.store = Some(store);
    }
    let mut steps = Vec::new();
    let fixpoint = search.rounds(&mut |s: &Search<'_>, what| {
        let step = Step {
            instructions: s.metric.instructions,
            elements: s.metric.elements,
            what,
            time: start.elapsed(),
        };
        progress(&s.target, &step);
        steps.push(step);
    });
    if let Some(trouble) = oracle.trouble() {
        // As much as can be written; the next run goes on from there.
        search.save();
        return Err(NotReduced::Environment(trouble));
    }
    if let Some(store) = &mut search.store {
        store.finish(&search.best, search.tried, fixpoint).map_err(NotReduced::Store)?;
    }
    Ok(Report {
        signature: search.target,
        best: search.best,
        metric: search.metric,
        original: original_metric,
        steps,
        tried: search.tried,
        fixpoint,
        flaky,
        unsteady: search.unsteady,
        time: start.elapsed(),
    })
}

/// The fuel that programs get which should need no more than the original, whose run may take `most`.
fn enough_fuel(original: &Candidate, most: u64) -> u64 {
    let fuel = guarded("running the original", || Ok(record::fuel(original, most))).ok().flatten();
    fuel.map_or(20_000, |fuel| fuel.saturating_mul(4).saturating_add(10_000))
}

/// Asks the oracle; a panic is no failure of the program's.
fn check(oracle: &dyn Oracle, candidate: &Candidate, fuel: u64) -> Option<Signature> {
    guarded("checking a candidate", || Ok(oracle.check_within(candidate, fuel))).ok().flatten()
}

/// Hears of a search and of the name of a move that made the program smaller.
type Progress<'p> = dyn FnMut(&Search<'_>, &'static str) + 'p;

impl Search<'_> {
    /// Runs moves until none applies, or time is up. Returns whether none applies.
    fn rounds(&mut self, progress: &mut Progress<'_>) -> bool {
        loop {
            let before = self.metric;
            self.tidy_up();
            if self.metric != before {
                progress(self, "unused code dropped");
            }
            for m in MOVES {
                let before = self.metric;
                self.run(m);
                if self.metric != before {
                    progress(self, m.done);
                }
                if self.is_over() {
                    return false;
                }
            }
            if self.metric == before {
                return true;
            }
        }
    }

    /// Finds how much tidying the failure stands.
    fn tidy_up(&mut self) {
        for tidy in Tidy::ALL {
            if tidy <= self.tidy && self.tidy != Tidy::Nothing {
                return;
            }
            let done = finished(&self.best, tidy);
            let same = fingerprint(&done) == fingerprint(&self.best)
                && super::text(&done.module) == super::text(&self.best.module);
            if same || is_valid(&done.module) && self.fails_again(&done) {
                self.tidy = tidy;
                if !same {
                    self.metric = Metric::of(&done);
                    self.best = done;
                    self.save();
                }
                return;
            }
        }
    }

    fn run(&mut self, m: &Move) {
        loop {
            let best = self.best.clone();
            let context = Context::new(&best, self.fuel);
            let edits = (m.plan)(&context);
            let changed = match m.how {
                How::Together => self.together(&edits),
                How::Singly => self.sweep(&edits, 1),
                How::First => self.first(&edits),
                How::Bisect => self.bisect(&edits),
            };
            if !changed || !m.again || self.is_over() {
                return;
            }
        }
    }

    /// All edits at once, then halves of them, and so on.
    fn together(&mut self, edits: &[Edit]) -> bool {
        self.sweep(edits, edits.len().max(1))
    }

    /// Edits from the one that takes away most to the one that takes away least: keeps the first that works,
    /// if those behind it work too.
    fn bisect(&mut self, edits: &[Edit]) -> bool {
        let base = self.best.clone();
        let (mut low, mut high) = (0, edits.len());
        let mut changed = false;
        while low < high && !self.is_over() {
            // As many at once whatever the number of threads: the result must not depend on that.
            let step = (high - low).div_ceil(4);
            let points: Vec<usize> =
                (1..4).map(|n| low + n * step - 1).chain([high - 1]).filter(|&p| p < high).collect();
            let sets: Vec<Vec<&Edit>> = points.iter().map(|&p| vec![&edits[p]]).collect();
            match self.attempt(&base, &sets) {
                Some((n, _)) => {
                    changed = true;
                    high = points[n];
                    low = if n == 0 { low } else { points[n - 1] + 1 };
                }
                None => break,
            }
        }
        changed
    }

    /// Keeps the first edit that works.
    fn first(&mut self, edits: &[Edit]) -> bool {
        let base = self.best.clone();
        let mut at = 0;
        while at < edits.len() && !self.is_over() {
            let sets: Vec<Vec<&Edit>> = edits[at..].iter().take(self.batch()).map(|e| vec![e]).collect();
            if self.attempt(&base, &sets).is_some() {
                return true;
            }
            at += sets.len();
        }
        false
    }

    fn sweep(&mut self, edits: &[Edit], size: usize) -> bool {
        let mut raw = self.best.clone();
        let mut left: Vec<usize> = (0..edits.len()).collect();
        let mut size = size;
        let mut changed = false;
        while !left.is_empty() {
            let mut at = 0;
            while at < left.len() && !self.is_over() {
                let sets: Vec<Vec<&Edit>> = left[at..]
                    .chunks(size)
                    .take(self.batch())
                    .map(|chunk| chunk.iter().map(|&e| &edits[e]).collect())
                    .collect();
                match self.attempt(&raw, &sets) {
                    Some((n, next)) => {
                        raw = next;
                        at += n * size;
                        let end = (at + size).min(left.len());
                        left.drain(at..end);
                        changed = true;
                    }
                    None => at += sets.len() * size,
                }
            }
            if size == 1 || self.is_over() {
                break;
            }
            size = size.min(left.len()).div_ceil(2).max(1);
        }
        changed
    }

    /// Tries each set of edits on `raw`. Returns the number of the first set that works and the program
    /// before tidying; that is the best now.
    fn attempt(&mut self, raw: &Candidate, sets: &[Vec<&Edit>]) -> Option<(usize, Candidate)> {
        let this = &*self;
        let tried: Vec<Tried> = if sets.len() == 1 {
            vec![this.pool.install(|| this.try_one(raw, &sets[0]))]
        } else {
            this.pool.install(|| {
                let token = cancel::current();
                // A worker that waits for its own program may take up another one meanwhile.
                let one = |edits: &Vec<&Edit>| cancel::with(token.clone(), || this.try_one(raw, edits));
                sets.par_iter().map(one).collect()
            })
        };
        if self.oracle.trouble().is_some() {
            // Which of them were asked about before is not known.
            return None;
        }
        let mut kept = None;
        for (n, tried) in tried.into_iter().enumerate() {
            let Tried::Verdict { fingerprint, fails, raw, done, metric } = tried else { continue };
            let known = self.known.entry(fingerprint).or_insert(Known { fails, counted: false });
            if kept.is_some() {
                continue;
            }
            if !known.counted {
                known.counted = true;
                self.tried += 1;
                if let Some(store) = &mut self.store {
                    store.note(fingerprint, fails);
                }
            }
            if !known.fails {
                continue;
            }
            if self.fails_again(&done) {
                (self.best, self.metric) = (*done, metric);
                self.save();
                kept = Some((n, *raw));
            } else {
                self.unsteady += 1;
                self.known.insert(fingerprint, Known { fails: false, counted: true });
            }
        }
        kept
    }

    /// Tries one set of edits.
    fn try_one(&self, raw: &Candidate, edits: &[&Edit]) -> Tried {
        let edited = guarded("editing a program", || {
            let mut raw = raw.clone();
            let mut applied = false;
            for edit in edits {
                applied |= edit(&mut raw);
            }
            Ok(applied.then_some(raw))
        });
        let Ok(Some(raw)) = edited else { return Tried::Pointless };
        let Ok(done) = guarded("tidying a program", || Ok(finished(&raw, self.tidy))) else {
            return Tried::Invalid;
        };
        let metric = Metric::of(&done);
        if metric >= self.metric {
            return Tried::Pointless;
        }
        if !is_valid(&done.module) {
            return Tried::Invalid;
        }
        let fingerprint = fingerprint(&done);
        let fails = match self.known.get(&fingerprint) {
            Some(known) => known.fails,
            None => self.fails(&done),
        };
        Tried::Verdict { fingerprint, fails, raw: Box::new(raw), done: Box::new(done), metric }
    }

    /// Whether a program fails in the same way.
    fn fails(&self, candidate: &Candidate) -> bool {
        (0..self.tries).any(|_| check(self.oracle, candidate, self.fuel).as_ref() == Some(&self.target))
    }

    /// The same for one that is about to be kept.
    fn fails_again(&self, candidate: &Candidate) -> bool {
        self.fails(candidate)
    }

    fn batch(&self) -> usize {
        self.options.jobs.max(1)
    }

    fn is_over(&self) -> bool {
        self.oracle.trouble().is_some()
            || self.options.max_time.is_some_and(|t| self.start.elapsed() >= t)
            || self.options.max_candidates.is_some_and(|n| self.tried >= n)
    }

    fn save(&mut self) {
        if let Some(store) = &mut self.store {
            store.save(&self.best, self.tried);
        }
    }
}
