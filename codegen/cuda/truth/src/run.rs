//! All cases on both targets, in parallel, within a time.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::case::Case;
use crate::families::single::header;
use crate::judge::{Verdict, compare};
use crate::target::{Module, Refusal, Target};

/// Options of runs.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The architecture that texts are for: 90.
    pub arch: u32,
    /// Threads; 0: as many as there are processors.
    pub threads: usize,
    /// No case begins after this time.
    pub time: Duration,
    /// Families that are run; empty: all.
    pub families: Vec<String>,
    /// Only instructions that contain this.
    pub filter: String,
}

impl Settings {
    /// Everything, for an architecture.
    #[must_use]
    pub fn new(arch: u32) -> Self {
        Settings { arch, threads: 0, time: Duration::MAX, families: Vec::new(), filter: String::new() }
    }
}

/// The outcome of a case.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// Results were compared.
    Compared(Verdict),
    /// The device refuses the instruction, which the interpreter's verifier takes.
    Refused(String),
    /// The interpreter does not execute it.
    NotExecuted(String),
    /// A side failed.
    Failed(String),
    /// There was no time for it.
    Skipped,
}

/// A case and how it ended.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    /// The family.
    pub family: &'static str,
    /// The instruction.
    pub instruction: String,
    /// Its outcome.
    pub end: End,
}

impl Row {
    /// Whether it shows that the interpreter is wrong, or could not show that it is not.
    #[must_use]
    pub fn is_wrong(&self) -> bool {
        match &self.end {
            End::Compared(v) => v.wrong > 0,
            End::Failed(_) => true,
            End::Refused(_) | End::NotExecuted(_) | End::Skipped => false,
        }
    }
}

/// What one family gave.
#[derive(Clone, PartialEq, Default, Debug, Serialize)]
pub struct Family {
    /// Its name.
    pub family: String,
    /// Instructions that were compared.
    pub instructions: u64,
    /// Of these, those with a wrong result.
    pub wrong_instructions: u64,
    /// Results that were compared.
    pub results: u64,
    /// Results with equal bits.
    pub equal: u64,
    /// Results that are not what they have to be.
    pub wrong: u64,
    /// Of these, NaN with other bits.
    pub nan_bits: u64,
    /// Approximations with other bits, within the stated error.
    pub within: u64,
    /// Instructions that the device refuses.
    pub refused: u64,
    /// Instructions that the interpreter does not execute.
    pub not_executed: u64,
    /// Cases that failed.
    pub failed: u64,
    /// Cases for which there was no time.
    pub skipped: u64,
}

/// All rows by family.
#[must_use]
pub fn summary(rows: &[Row]) -> Vec<Family> {
    let mut all: BTreeMap<&str, Family> = BTreeMap::new();
    for row in rows {
        let f = all.entry(row.family).or_default();
        f.family = row.family.to_owned();
        match &row.end {
            End::Compared(v) => {
                f.instructions += 1;
                f.wrong_instructions += u64::from(v.wrong > 0);
                f.results += v.results;
                f.equal += v.equal;
                f.wrong += v.wrong;
                f.nan_bits += v.nan_bits;
                f.within += v.within;
            }
            End::Refused(_) => f.refused += 1,
            End::NotExecuted(_) => f.not_executed += 1,
            End::Failed(_) => f.failed += 1,
            End::Skipped => f.skipped += 1,
        }
    }
    all.into_values().collect()
}

/// Kernels of a module: compiling one takes about as long as starting the compiler.
const KERNELS: usize = 24;

/// Runs cases on a device and in the interpreter.
pub fn run(cases: &[Case], device: &dyn Target, interpreter: &dyn Target, settings: &Settings) -> Vec<Row> {
    let start = Instant::now();
    let wanted = |c: &&Case| {
        (settings.families.is_empty() || settings.families.iter().any(|f| f == c.family))
            && c.instruction.contains(&settings.filter)
    };
    let chosen: Vec<&Case> = cases.iter().filter(wanted).collect();
    let chunks: Vec<Vec<&Case>> = chosen.chunks(KERNELS).map(<[&Case]>::to_vec).collect();
    let next = AtomicUsize::new(0);
    let rows: Mutex<Vec<(usize, Row)>> = Mutex::new(Vec::new());
    let threads = match settings.threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        n => n,
    };
    std::thread::scope(|scope| {
        for _ in 0..threads.min(chunks.len()) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(chunk) = chunks.get(at) else { return };
                    let done: Vec<Row> = if start.elapsed() > settings.time {
                        chunk.iter().map(|c| row(c, End::Skipped)).collect()
                    } else {
                        module(chunk, device, interpreter, settings, start)
                    };
                    let mut all = rows.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                    all.extend(done.into_iter().map(|r| (at, r)));
                }
            });
        }
    });
    let mut rows = rows.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    rows.sort_by_key(|r| r.0);
    rows.into_iter().map(|r| r.1).collect()
}

fn row(case: &Case, end: End) -> Row {
    Row { family: case.family, instruction: case.instruction.clone(), end }
}

/// The cases of a chunk as one module, without those that the device refuses.
fn module(
    chunk: &[&Case],
    device: &dyn Target,
    interpreter: &dyn Target,
    settings: &Settings,
    start: Instant,
) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut left: Vec<&Case> = chunk.to_vec();
    let loaded = loop {
        let mut text = header(settings.arch);
        let mut ends = Vec::new();
        for (i, case) in left.iter().enumerate() {
            text += &case.text(&format!("k{i}"));
            ends.push(text.lines().count() as u32);
        }
        match device.load(&text) {
            Ok(module) => break Some(module),
            Err(Refusal::Text(message, lines)) => {
                let of = |line: &u32| ends.iter().position(|end| line <= end);
                let mut refused: Vec<usize> = lines.iter().filter_map(of).collect();
                refused.sort_unstable();
                refused.dedup();
                if refused.is_empty() {
                    if left.len() == 1 {
                        rows.push(row(left[0], End::Refused(message)));
                        break None;
                    }
                    // The message names no line: one by one.
                    for case in left {
                        rows.extend(module(&[case], device, interpreter, settings, start));
                    }
                    return rows;
                }
                for &i in refused.iter().rev() {
                    let case = left.remove(i);
                    // What the verifier refuses, too, is no instruction of this architecture.
                    let text = header(settings.arch) + &case.text("k");
                    if !matches!(interpreter.load(&text), Err(Refusal::Text(..))) {
                        rows.push(row(case, End::Refused(message.clone())));
                    }
                }
                if left.is_empty() {
                    break None;
                }
            }
            Err(other) => {
                rows.extend(left.iter().map(|c| row(c, End::Failed(format!("device: {other}")))));
                return rows;
            }
        }
    };
    let Some(loaded) = loaded else { return rows };
    for (i, case) in left.iter().enumerate() {
        let end = if start.elapsed() > settings.time {
            End::Skipped
        } else {
            one(case, &format!("k{i}"), loaded.as_ref(), interpreter, settings)
        };
        rows.push(row(case, end));
    }
    rows
}

fn one(case: &Case, name: &str, device: &dyn Module, interpreter: &dyn Target, settings: &Settings) -> End {
    let arrays = (case.fill)();
    let expected = interpreter
        .load(&(header(settings.arch) + &case.text(name)))
        .and_then(|m| m.run(&case.work(name, &arrays)));
    let expected = match expected {
        Ok(expected) => expected,
        Err(Refusal::Text(message, _) | Refusal::Unsupported(message)) => return End::NotExecuted(message),
        Err(other) => return End::Failed(format!("interpreter: {other}")),
    };
    match device.run(&case.work(name, &arrays)) {
        Ok(got) => End::Compared(compare(case, &arrays, &got, &expected)),
        Err(other) => End::Failed(format!("device: {other}")),
    }
}
