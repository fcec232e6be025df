//! Which pairs of opcode and element type are legal HLO, which the verifier accepts, and which tests run.
//!
//! **Invariants:** what is legal is data (`coverage/legal.txt`), written from XLA's sources and the StableHLO
//! specification, never derived from the code that it is compared with. A pair counts as interpreted only if
//! a passing filetest executed such an instruction on an element and compared results with values of another
//! origin (`// origin:`). Recorded cases do not count: they compare whole programs, some to a tolerance.

mod executed;
mod probe;

pub use executed::Executed;
pub use hlo_generate::legal::{Key, Legal, key_of};
pub use probe::probe;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use hlo::Opcode;
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::filetest::run_file_watched;
use hlo_engines::frontend::parse_text;
use hlo_system::exit::Failure;
use hlo_system::files::read_source;
use hlo_system::guard::spawn_deep;

/// The coverage of all pairs.
#[derive(Debug)]
pub struct Coverage {
    /// The legal ones.
    pub legal: Legal,
    /// Those that the verifier accepts, legal or not.
    pub verified: FxHashSet<(Opcode, Key)>,
    /// Those that tests run, with the location of the first one.
    pub interpreted: FxHashMap<(Opcode, Key), String>,
    /// The tests that fail; their runs count for nothing.
    pub failed: Vec<String>,
}

impl Coverage {
    /// Runs the filetests of these files. Errors: a file that cannot be read.
    pub fn measure(files: &[PathBuf]) -> Result<Self, Failure> {
        let legal = Legal::table();
        let verified = Opcode::ALL
            .par_iter()
            .flat_map_iter(|&opcode| {
                let keys = legal.conceivable(opcode).into_iter();
                keys.filter(move |&key| accepted(opcode, key)).map(move |key| (opcode, key))
            })
            .collect();
        let mut coverage = Self { legal, verified, interpreted: FxHashMap::default(), failed: Vec::new() };
        for (file, ran) in files.iter().zip(run_all(files)) {
            let (found, failed) = ran?;
            for (pair, line) in found {
                coverage.interpreted.entry(pair).or_insert_with(|| format!("{}:{line}", file.display()));
            }
            coverage.failed.extend(failed);
        }
        Ok(coverage)
    }

    /// Whether a pair is verified and interpreted, or need not be.
    pub fn covers(&self, opcode: Opcode, key: Key) -> bool {
        let pair = (opcode, key);
        if self.legal.contains(opcode, key) {
            self.verified.contains(&pair) && self.interpreted.contains_key(&pair)
        } else {
            !self.verified.contains(&pair)
        }
    }

    /// The pairs that are not as they should be, in the order of the table of opcodes.
    pub fn holes(&self) -> Vec<(Opcode, Key)> {
        let pairs = |&opcode| self.legal.conceivable(opcode).into_iter().map(move |key| (opcode, key));
        let all = Opcode::ALL.iter().flat_map(pairs);
        all.filter(|&(opcode, key)| !self.covers(opcode, key)).collect()
    }
}

type Found = (FxHashMap<(Opcode, Key), usize>, Option<String>);

/// Runs all files, on threads that do not belong to the pool that runs wait for.
fn run_all(files: &[PathBuf]) -> Vec<Result<Found, Failure>> {
    let jobs = std::thread::available_parallelism().map_or(1, usize::from).clamp(1, files.len().max(1));
    let next = AtomicUsize::new(0);
    let work = || {
        let mine = std::iter::from_fn(|| {
            let i = next.fetch_add(1, Ordering::Relaxed);
            Some((i, run(files.get(i)?)))
        });
        mine.collect::<Vec<_>>()
    };
    let mut ran: Vec<_> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs).map_while(|_| spawn_deep(scope, Some("hlo"), &work).ok()).collect();
        // Where there are no threads for it this one does it all.
        let here = if workers.is_empty() { work() } else { Vec::new() };
        let there = workers.into_iter().map(|w| w.join().unwrap_or_else(|p| std::panic::resume_unwind(p)));
        here.into_iter().chain(there.flatten()).collect()
    });
    ran.sort_by_key(|(i, _)| *i);
    ran.into_iter().map(|(_, r)| r).collect()
}

/// The pairs that a file's tests run, with lines.
fn run(file: &Path) -> Result<Found, Failure> {
    let name = file.to_string_lossy();
    let source = read_source(&name)?;
    let mut found = FxHashMap::default();
    let outcome = run_file_watched(&name, &source.text, false, &mut |run| {
        for pair in run.executed {
            found.entry(pair).or_insert(run.line);
        }
    });
    Ok((found, outcome.err()))
}

/// Whether the verifier accepts the probe of a pair.
fn accepted(opcode: Opcode, key: Key) -> bool {
    let Some(text) = probe(opcode, key) else { return false };
    let (module, found) = parse_text(&text);
    !found.has_errors() && module.is_some_and(|m| !hlo::verify::verify(&m).has_errors())
}
