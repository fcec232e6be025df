//! How many wrong kernels are found, measured: changes that a seed draws, made one at a time in PTX that
//! XLA:GPU dumped, each judged as `hlo isolate` judges a dump (`hlo ptx mutants`).
//!
//! **Invariants:** a seed and a number say which change is made, whatever was found before; a change is
//! *found* only if what is said names the instruction whose kernel was changed, *without effect* only if
//! every launch leaves every byte as the unchanged kernel does.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use hlo::ArrayLiteral;
use hlo::elided::splitmix64;
use hlo_interp::Devices;
use hlo_ptx::mutate::{Kind, Mutation, mutations};
use serde::Serialize;

use hlo_engines::engine::xla_gpu::XlaGpuEngine;
use hlo_engines::engine::xla_gpu::mirror::{Mirror, Mirrored};
use hlo_engines::engine::{Engine, Limits, Outcome, RunOptions};
use hlo_engines::inputs;
use hlo_execution::verdict::Class;
use hlo_system::exit::{Exit, Failure};
use hlo_system::npz::Npz;

use crate::differential::{Settings, Subject};
use crate::replay::{Replay, replay};

/// Which changes, of what.
#[derive(Clone, Debug)]
pub struct Plan {
    /// A folder of dumps, a folder each.
    pub dumps: PathBuf,
    /// A folder of cases of the same names, whose `inputs.npz` the programs get.
    pub cases: Option<PathBuf>,
    /// Only programs whose names contain this.
    pub only: String,
    /// Which changes.
    pub seed: u64,
    /// The number that alter a result.
    pub count: usize,
}

/// Executed instructions of threads of a launch: a kernel that no longer ends because of its change is
/// stopped.
const MAX_THREAD_INSTRUCTIONS: u64 = 300_000_000;

/// The maximum bytes of the values of a program.
const MAX_VALUE_BYTES: u64 = 4 << 30;

/// The number of draws for each change that is wanted.
const DRAWS_PER_CHANGE: u64 = 200;

/// The outcome of a change.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Verdict {
    /// Reported, or a wrong result, of the instruction: what is said.
    Found(String),
    /// Wrong, and said of something else.
    Misnamed(String),
    /// The text is no longer PTX, or does not verify.
    Refused(String),
    /// Every byte that every kernel leaves is the same.
    WithoutEffect,
    /// Bytes differ, and rounding explains it, or might.
    Missed(String),
}

impl Verdict {
    const fn name(&self) -> &'static str {
        match self {
            Verdict::Found(_) => "found",
            Verdict::Misnamed(_) => "misnamed",
            Verdict::Refused(_) => "refused",
            Verdict::WithoutEffect => "without effect",
            Verdict::Missed(_) => "missed",
        }
    }

    fn said(&self) -> &str {
        match self {
            Verdict::Found(s) | Verdict::Misnamed(s) | Verdict::Refused(s) | Verdict::Missed(s) => s,
            Verdict::WithoutEffect => "",
        }
    }
}

/// A change and what became of it.
#[derive(Serialize)]
pub struct Line<'l> {
    /// The dump.
    pub program: &'l str,
    /// The PTX file.
    pub file: &'l str,
    /// The line, from 1.
    pub line: usize,
    /// The kind of change.
    pub kind: &'static str,
    /// The original text.
    pub from: &'l str,
    /// The new text.
    pub to: &'l str,
    /// The outcome.
    pub verdict: &'static str,
    /// The message.
    pub said: &'l str,
}

/// The end of a run.
#[derive(Serialize)]
pub struct Summary {
    /// The seed.
    pub seed: u64,
    /// By kind of change: found, and those that alter a result.
    pub kinds: BTreeMap<&'static str, (usize, usize)>,
    /// The number that were found.
    pub found: usize,
    /// The number that alter a result.
    pub effective: usize,
    /// The number that alter none.
    pub without_effect: usize,
    /// The number that do not verify.
    pub refused: usize,
}

/// Makes the changes, and tells each with what became of it. Errors: a folder or a dump cannot be read.
pub fn measure(options: &Plan, tell: &mut dyn FnMut(&Line<'_>)) -> Result<Summary, Failure> {
    let mut folders: Vec<PathBuf> = std::fs::read_dir(&options.dumps)
        .map_err(|e| {
            let why = hlo_system::files::describe(&e);
            Failure::usage(format!("{}: cannot be read: {why}", options.dumps.display()))
        })?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.is_dir() && name_of(path).contains(&options.only))
        .collect();
    folders.sort();
    if folders.is_empty() {
        return Err(Failure::usage(format!("{}: no dump of a program", options.dumps.display())));
    }
    let mut summary = Summary {
        seed: options.seed,
        kinds: BTreeMap::new(),
        found: 0,
        effective: 0,
        without_effect: 0,
        refused: 0,
    };
    for draw in 0..DRAWS_PER_CHANGE.saturating_mul(options.count as u64) {
        if summary.effective >= options.count {
            break;
        }
        let mut random = splitmix64(options.seed.wrapping_mul(0x1_0000_0001).wrapping_add(draw));
        let folder = &folders[pick(&mut random, folders.len())];
        let engine = XlaGpuEngine::folder(&folder.to_string_lossy())?;
        // Each kind is as likely, however many instructions it has.
        let kind = Kind::ALL[pick(&mut random, Kind::ALL.len())];
        let Some((file, mutation)) = draw_of(&engine, kind, &mut random) else { continue };
        let Some(victim) = Victim::new(folder, engine, options.cases.as_deref())? else { continue };
        let verdict = victim.judge(&file, &mutation)?;
        let kind = kind.name();
        match verdict {
            Verdict::WithoutEffect => summary.without_effect += 1,
            Verdict::Refused(_) => summary.refused += 1,
            Verdict::Found(_) | Verdict::Misnamed(_) | Verdict::Missed(_) => {
                let count = summary.kinds.entry(kind).or_default();
                let is_found = usize::from(matches!(verdict, Verdict::Found(_)));
                count.0 += is_found;
                count.1 += 1;
                summary.found += is_found;
                summary.effective += 1;
            }
        }
        let program = name_of(folder);
        let (line, from, to) = (mutation.line, &*mutation.from, &*mutation.to);
        let (verdict, said) = (verdict.name(), verdict.said());
        let file = &*file;
        tell(&Line { program: &program, file, line, kind, from, to, verdict, said });
    }
    Ok(summary)
}

fn name_of(path: &Path) -> String {
    path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default()
}

/// A number below `n`, and the next state.
fn pick(random: &mut u64, n: usize) -> usize {
    *random = splitmix64(*random);
    (*random % n.max(1) as u64) as usize
}

/// One of the changes of a kind that the texts of a dump allow, with the text's file.
fn draw_of(engine: &XlaGpuEngine, kind: Kind, random: &mut u64) -> Option<(String, Mutation)> {
    let of_text = |(file, text): (&str, &str)| {
        let all = mutations(text).unwrap_or_default().into_iter().filter(|m| m.kind == kind);
        all.map(|m| (file.to_owned(), m)).collect::<Vec<_>>()
    };
    let mut all: Vec<(String, Mutation)> = engine.texts().flat_map(of_text).collect();
    let number = pick(random, all.len());
    (number < all.len()).then(|| all.swap_remove(number))
}

/// The results of launches, in their order.
#[derive(Default)]
struct Left(Mutex<Vec<u64>>);

impl Mirror for Left {
    fn launched(&self, launch: Mirrored<'_>) {
        let mut hasher = DefaultHasher::new();
        launch.after.hash(&mut hasher);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(hasher.finish());
    }
}

/// A program whose kernels are changed.
struct Victim {
    folder: String,
    inputs: Vec<Vec<ArrayLiteral>>,
    /// Names and texts of its PTX.
    texts: Vec<(String, String)>,
    /// The results of its launches as XLA compiled them.
    left: Vec<u64>,
}

impl Victim {
    /// `None`: the program is not right as it is.
    fn new(folder: &Path, engine: XlaGpuEngine, cases: Option<&Path>) -> Result<Option<Victim>, Failure> {
        let case = cases.map(|c| c.join(name_of(folder)).join("inputs.npz")).filter(|c| c.is_file());
        let folder = folder.to_string_lossy().into_owned();
        let module = engine.optimized();
        let inputs = match case {
            Some(case) => {
                let parameters =
                    module.program_shape(module.entry()).map(|s| s.parameters).unwrap_or_default();
                let leaves = parameters.iter().flat_map(|s| s.leaves());
                let shapes: Vec<_> = leaves.filter_map(|s| s.as_array().cloned()).collect();
                let mut npz = Npz::open(&case, MAX_VALUE_BYTES)?;
                vec![npz.arrays(shapes.iter().enumerate().map(|(i, s)| (format!("arg{i}"), s)))?]
            }
            None => inputs::generate(&inputs::plan(module, None)?, 0, Devices::ONE, MAX_VALUE_BYTES)?,
        };
        let texts: Vec<_> = engine.texts().map(|(f, t)| (f.to_owned(), t.to_owned())).collect();
        let mut victim = Victim { folder, inputs, texts, left: Vec::new() };
        let (found, left) = victim.replay(engine)?;
        let is_right = found.is_ok_and(|f| matches!(f.class(), Class::Same | Class::Explained));
        victim.left = left;
        Ok(is_right.then_some(victim))
    }

    /// Replays a dump on the reference's operands: what was found or how the reference ended, and what
    /// launches left.
    fn replay(&self, engine: XlaGpuEngine) -> Result<(Result<Replay, Outcome>, Vec<u64>), Failure> {
        let left = Arc::new(Left::default());
        let engine = engine.mirrored(left.clone());
        let limits = Limits { fuel: Some(MAX_THREAD_INSTRUCTIONS), ..Limits::default() };
        let settings =
            Settings { run: RunOptions { limits, ..RunOptions::default() }, ..Settings::default() };
        let module = engine.optimized();
        let found = match engine.compile(module) {
            Ok(executable) => {
                let allowances = settings.policy.allowances(&engine);
                replay(&Subject::new(module, &self.inputs), &*executable, allowances, &settings)
            }
            Err(outcome) => Err(outcome),
        };
        let left = std::mem::take(&mut *left.0.lock().unwrap_or_else(PoisonError::into_inner));
        Ok((found, left))
    }

    fn judge(&self, file: &str, mutation: &Mutation) -> Result<Verdict, Failure> {
        let Some((_, text)) = self.texts.iter().find(|(f, _)| f == file) else {
            return Err(Failure::internal(format!("{file} is no text of {}", self.folder)));
        };
        let engine = match XlaGpuEngine::changed(&self.folder, file, &mutation.apply(text)) {
            Ok(engine) => engine,
            Err(f) if matches!(f.exit, Exit::Parse | Exit::Verify) => return Ok(Verdict::Refused(f.message)),
            Err(f) => return Err(f),
        };
        // The kernels of the changed text, and the instructions that launch them.
        let names = engine.launchers(file);
        let (found, left) = self.replay(engine)?;
        let found = match found {
            Ok(found) => found,
            Err(outcome) => {
                let said = outcome.diagnostic().map(|d| d.message.clone()).unwrap_or_default();
                return Ok(Verdict::Missed(said));
            }
        };
        let named = |said: String, is_named: bool| {
            if is_named { Verdict::Found(said) } else { Verdict::Misnamed(said) }
        };
        if let Some(ended) = &found.ended {
            let is_named = names.iter().any(|n| ended.message.contains(&format!("`{n}`")));
            return Ok(named(ended.message.clone(), is_named));
        }
        match found.class() {
            Class::Wrong => {
                let Some(first) = found.first() else { return Ok(Verdict::Misnamed(String::new())) };
                let location = first.location.describe();
                let is_named = names.iter().any(|n| *n == *first.location.name);
                Ok(named(format!("wrong result of {location}"), is_named))
            }
            Class::Same | Class::Explained | Class::Undecided if left == self.left => {
                Ok(Verdict::WithoutEffect)
            }
            Class::Undecided => Ok(Verdict::Missed("undecided".to_owned())),
            Class::Explained | Class::Same => Ok(Verdict::Missed("within what rounding explains".to_owned())),
        }
    }
}
