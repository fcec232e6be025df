//! Findings on disk: a folder that repeats what was found.
//!
//! `hlo-mismatch-HASH/` has `module.hlo`, `inputs.npz`, `expected.npz` (the reference's results),
//! `actual.npz` (the engine's, if it gave any), `finding.json` ([`Finding`]) and `command.txt` (what repeats
//! it). HASH is of the program, the inputs and the engine.
//!
//! **Invariants:** nothing is overwritten: a folder of the same content is left as it is, another gets a
//! number; a folder is written under a temporary name and renamed when it is complete, and what was left of
//! one that was not is removed by the next. Loading accepts recorded cases of the corpus as well.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use hlo::diag::codes;
use hlo::print::{PrintOptions, print_module};
use hlo::{ArrayLiteral, Module};
use hlo_interp::{Accumulate, Devices};
use serde::{Deserialize, Serialize};

use crate::case::Case;
use crate::differential::{Difference, Kind, Settings};
use crate::policy::Policy;
use hlo_engines::engine::recorded::read_results;
use hlo_engines::engine::spec::stays_inside;
use hlo_engines::engine::{self, Allowances, Limits, RunOptions, named};
use hlo_engines::frontend::{self, Program};
use hlo_engines::inputs;
use hlo_execution::verdict::Tally;
use hlo_system::drafts;
use hlo_system::exit::Failure;
use hlo_system::files::{describe, read_beside};
use hlo_system::npz::{self, Npz};
use hlo_system::process::quoted_word;

/// The version of `finding.json`.
pub const VERSION: u32 = 1;
/// The names of the files.
pub const FINDING: &str = "finding.json";
/// The program.
pub const MODULE: &str = "module.hlo";
/// The same program as StableHLO.
const STABLEHLO: &str = "module.mlir";
const INPUTS: &str = "inputs.npz";
const EXPECTED: &str = "expected.npz";
const ACTUAL: &str = "actual.npz";
const COMMAND: &str = "command.txt";

/// The signature of a failure: two failures with the same signature are one.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Signature {
    /// The outcome of the comparison.
    pub kind: Kind,
    /// The opcode to blame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opcode: Option<String>,
    /// The code of the diagnostic, if there were no results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The engine.
    pub engine: String,
}

impl std::fmt::Display for Signature {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.kind.describe())?;
        if let Some(opcode) = &self.opcode {
            write!(f, ", {opcode}")?;
        }
        if let Some(code) = &self.code {
            write!(f, " ({code})")?;
        }
        write!(f, ", {}", self.engine)
    }
}

/// What failures of one kind are told apart by: the code of the diagnostic, and for an engine's failure its
/// own last words, with `#` for numbers, which differ from program to program.
pub fn code_of(d: &hlo::Diagnostic) -> String {
    let code = d.code.as_str();
    if ![codes::ENGINE_FAILED, codes::COMPILER_DEFECT].contains(&d.code) {
        return code.to_owned();
    }
    let mut words = String::new();
    // Names of instructions differ from program to program too.
    let line = d.message.lines().next().unwrap_or_default();
    let line = line.split(['%', '"']).next().unwrap_or_default().trim_end();
    for c in line.chars().take(120) {
        match c {
            '0'..='9' if words.ends_with('#') => {}
            '0'..='9' => words.push('#'),
            other => words.push(other),
        }
    }
    format!("{code}: {words}")
}

/// The contents of `finding.json`: how to repeat the finding, and what was found.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Finding {
    /// [`VERSION`].
    pub hlo_finding: u32,
    /// The reference engine.
    pub reference: String,
    /// Its signature.
    pub signature: Signature,
    /// The policy it was judged by. `None` in files of older versions, which have only [`Finding::allow`] and
    /// [`Finding::nan_bits`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Policy>,
    /// Liberties that were granted besides those that the engine declares.
    #[serde(default)]
    pub allow: Allowances,
    /// Replicas.
    #[serde(default = "one")]
    pub replicas: u32,
    /// Partitions.
    #[serde(default = "one")]
    pub partitions: u32,
    /// Sums by the region rather than exact.
    #[serde(default)]
    pub accumulate_region: bool,
    /// Seed of `rng`.
    #[serde(default)]
    pub seed: u64,
    /// NaNs must have the same bits.
    #[serde(default)]
    pub nan_bits: bool,
    /// Counts over all elements.
    #[serde(default)]
    pub verdict: Tally,
    /// The messages about it.
    #[serde(default)]
    pub message: String,
    /// Further facts of its origin: the seed of the fuzzer, the case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
}

fn one() -> u32 {
    1
}

impl Finding {
    /// From a comparison of `engine` with `reference`.
    pub fn new(reference: &str, engine: &str, difference: &Difference, settings: &Settings) -> Self {
        let run = &settings.run;
        let code = difference.failure.as_ref().map(code_of);
        let opcode = difference.blamed.map(|kind| kind.opcode.name().to_owned());
        let message = difference.failure.as_ref().map_or_else(String::new, |d| d.message.clone());
        Self {
            hlo_finding: VERSION,
            reference: reference.to_owned(),
            signature: Signature { kind: difference.kind, opcode, code, engine: engine.to_owned() },
            policy: Some(settings.policy),
            allow: settings.policy.allow,
            replicas: run.devices.replicas(),
            partitions: run.devices.partitions(),
            accumulate_region: run.accumulate == Accumulate::Region,
            seed: run.seed,
            nan_bits: settings.policy.nan_bits,
            verdict: difference.tally,
            message,
            origin: None,
        }
    }

    /// How it was judged.
    pub fn policy(&self) -> Policy {
        let older = || Policy { allow: self.allow, nan_bits: self.nan_bits, ..Policy::default() };
        self.policy.unwrap_or_else(older)
    }

    /// The options that name engines which a finding may not start by itself.
    pub fn named(&self) -> String {
        let engines = [("--reference-platform", &self.reference), ("--platform", &self.signature.engine)];
        let named = engines.iter().filter(|(_, name)| !stays_inside(name));
        named.map(|(option, name)| format!(" {option} {}", quoted_word(name))).collect()
    }

    /// How to run it again. Errors: no such devices.
    pub fn settings(&self, limits: Limits) -> Result<Settings, Failure> {
        let devices = Devices::new(self.replicas.into(), self.partitions.into()).ok_or_else(|| {
            let (r, p) = (self.replicas, self.partitions);
            Failure::usage(format!("{FINDING}: there are no runs of {r} replicas of {p} partitions"))
        })?;
        let accumulate = if self.accumulate_region { Accumulate::Region } else { Accumulate::Exact };
        let run = RunOptions { accumulate, limits, seed: self.seed, devices, kept_bytes: 0 };
        Ok(Settings { run, policy: self.policy(), ..Settings::default() })
    }
}

/// The contents of a folder.
#[derive(Clone, Copy, Debug)]
pub struct Artifact<'a> {
    /// The program.
    pub module: &'a Module,
    /// Its text, if it was read from one.
    pub text: Option<&'a str>,
    /// For each device the arrays of the parameters.
    pub inputs: &'a [Vec<ArrayLiteral>],
    /// The reference's results.
    pub expected: Option<&'a [Vec<ArrayLiteral>]>,
    /// The engine's results.
    pub actual: Option<&'a [Vec<ArrayLiteral>]>,
    /// What was found.
    pub finding: &'a Finding,
    /// The program as StableHLO, to be written beside: for those who gave it so.
    pub stablehlo: Option<&'a str>,
}

/// Writes a folder `STEM-HASH` below `parent`, which is made if it is not there, and returns its path.
/// Errors: wrong usage, if it cannot be written.
pub fn save(parent: &Path, stem: &str, artifact: &Artifact<'_>) -> Result<PathBuf, Failure> {
    let fail = |path: &Path, e: &io::Error| {
        Failure::usage(format!("{}: cannot be written: {}", path.display(), describe(e)))
    };
    let text = match artifact.text {
        Some(text) => text.to_owned(),
        None => print_module(artifact.module, &PrintOptions::source(artifact.module)),
    };
    let temporary = drafts::begin(parent, TEMPORARY).map_err(|e| fail(parent, &e))?;
    let at = temporary.path();
    let hash = hash(&text, artifact);
    write_files(at, &text, artifact)?;
    // Names do not change when a folder of the same content is there already.
    for n in 1..=9999u32 {
        let name = if n == 1 { format!("{stem}-{hash}") } else { format!("{stem}-{hash}-{n}") };
        let folder = parent.join(&name);
        let command = at.join(COMMAND);
        fs::write(&command, format!("hlo run {}{}\n", quoted_word(&name), artifact.finding.named()))
            .map_err(|e| fail(&command, &e))?;
        if folder.exists() {
            if same_content(&folder, at) {
                return Ok(folder);
            }
            continue;
        }
        match fs::rename(at, &folder) {
            Ok(()) => {
                // What has been renamed is not there to be removed.
                let _ = temporary.keep();
                drafts::open_to_readers(&folder, parent);
                return Ok(folder);
            }
            // Somebody else was faster.
            Err(_) if folder.exists() => {}
            Err(e) => return Err(fail(&folder, &e)),
        }
    }
    Err(Failure::usage(format!("{}: has too many folders {stem}-{hash}-N", parent.display())))
}

/// Writes the files of a finding, with the program as `text`, to a folder that nobody looks at yet. Errors:
/// wrong usage, if they cannot be written.
pub fn write_files(folder: &Path, text: &str, artifact: &Artifact<'_>) -> Result<(), Failure> {
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text)
            .map_err(|e| Failure::usage(format!("{}: cannot be written: {}", path.display(), describe(&e))))
    };
    write(MODULE, text)?;
    if let Some(text) = artifact.stablehlo {
        write(STABLEHLO, text)?;
    }
    npz::write(&folder.join(INPUTS), &named("arg", artifact.inputs))?;
    for (name, arrays) in [(EXPECTED, artifact.expected), (ACTUAL, artifact.actual)] {
        if let Some(arrays) = arrays {
            npz::write(&folder.join(name), &named("out", arrays))?;
        }
    }
    let json = serde_json::to_string_pretty(artifact.finding)
        .map_err(|e| Failure::internal(format!("a finding cannot be written as JSON: {e}")))?;
    write(FINDING, &format!("{json}\n"))
}

/// What temporary folders begin with; the number of the process that writes them follows.
const TEMPORARY: &str = ".hlo-finding-";

/// The first six digits of a hash of what makes a finding.
fn hash(text: &str, artifact: &Artifact<'_>) -> String {
    use std::hash::Hasher as _;
    let mut hasher = rustc_hash::FxHasher::default();
    hasher.write(text.as_bytes());
    hasher.write(artifact.finding.signature.engine.as_bytes());
    for array in artifact.inputs.iter().flatten() {
        hasher.write(crate::watch::summary::Summary::of(&array.buffer).hash.as_bytes());
    }
    // The high bits of this hash are the good ones.
    let digits = format!("{:016x}", hasher.finish().wrapping_mul(0x9e37_79b9_7f4a_7c15));
    digits[..6].to_owned()
}

fn same_content(a: &Path, b: &Path) -> bool {
    [MODULE, STABLEHLO, INPUTS, EXPECTED, ACTUAL, FINDING].iter().all(|name| {
        let read = |folder: &Path| fs::read(folder.join(name)).ok();
        read(a) == read(b)
    })
}

/// A folder that was read.
#[derive(Debug)]
pub struct Loaded {
    /// The folder.
    pub folder: PathBuf,
    /// The program.
    pub program: Program,
    /// On how many devices it runs.
    pub devices: Devices,
    /// For each device the arrays of the parameters, if there are some.
    pub inputs: Option<Vec<Vec<ArrayLiteral>>>,
    /// Recorded results of the reference.
    pub expected: Option<Vec<Vec<ArrayLiteral>>>,
    /// Recorded results of the engine.
    pub actual: Option<Vec<Vec<ArrayLiteral>>>,
    /// What was found; recorded cases have none.
    pub finding: Option<Finding>,
}

/// Whether a folder is one that [`save`] wrote.
pub fn is_at(folder: &Path) -> bool {
    folder.join(FINDING).is_file() && folder.join(MODULE).is_file()
}

/// What a folder's `finding.json` says; `None` if it has none. Errors: it makes no sense, or is of another
/// version.
pub fn finding(folder: &Path) -> Result<Option<Finding>, Failure> {
    let path = folder.join(FINDING);
    if path.is_file() {
        let text = read_beside(&path)
            .map_err(|e| Failure::usage(format!("{}: cannot be read: {}", path.display(), describe(&e))))?;
        let finding: Finding =
            serde_json::from_str(&text).map_err(|e| Failure::usage(format!("{}: {e}", path.display())))?;
        if finding.hlo_finding != VERSION {
            let (path, version) = (path.display(), finding.hlo_finding);
            return Err(Failure::usage(format!(
                "{path}: is of version {version}; this program reads {VERSION}"
            )));
        }
        Ok(Some(finding))
    } else {
        Ok(None)
    }
}

/// Reads a folder of a finding or a case: `module.hlo`, and what else is there. No array is larger than
/// `limit` bytes. Errors: what is missing or does not fit; a program that is rejected, rendered.
pub fn load(folder: &Path, limit: u64) -> Result<Loaded, Failure> {
    let program = folder.join(MODULE);
    if !program.is_file() {
        return Err(Failure::usage(format!("{}: is a folder without {MODULE}", folder.display())));
    }
    let program = frontend::load(&program.to_string_lossy()).map_err(|r| r.failure(false))?;
    let finding = finding(folder)?;
    let devices = match &finding {
        Some(f) => engine::devices::stated(&program.module, Some(f.replicas), Some(f.partitions))?,
        None if Case::is_at(folder) => Case::open(folder)?.devices()?,
        None => engine::devices::choose(&program.module, None, None)?.devices,
    };
    let module = &program.module;
    let open = |name: &str| {
        let path = folder.join(name);
        path.is_file().then(|| Npz::open(&path, limit)).transpose()
    };
    let inputs = open(INPUTS)?.map(|mut npz| inputs::read(module, &mut npz, devices)).transpose()?;
    let results = |name: &str| open(name)?.map(|mut npz| read_results(module, &mut npz, devices)).transpose();
    let (expected, actual) = (results(EXPECTED)?, results(ACTUAL)?);
    Ok(Loaded { folder: folder.to_owned(), devices, inputs, expected, actual, finding, program })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_ended_processes_left_is_removed() {
        let parent = tempfile::tempdir().unwrap();
        // No process has so great a number.
        let names = [format!("{TEMPORARY}4294967295-a"), format!("{TEMPORARY}{}-b", std::process::id())];
        let [left, own] = names.map(|name| parent.path().join(name));
        let other = parent.path().join(".hlo-finding-x");
        for folder in [&left, &own, &other] {
            fs::create_dir(folder).unwrap();
            fs::write(folder.join(MODULE), "").unwrap();
        }
        drafts::remove_left_over(parent.path(), TEMPORARY);
        assert!(own.exists() && other.exists());
        assert_eq!(left.exists(), !Path::new("/proc/self").exists());
    }
}
