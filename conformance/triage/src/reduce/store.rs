//! The folder of a reduction: the best program so far and what was tried, so that a later run goes on from
//! there.
//!
//! `module.hlo` and `inputs.npz` are the program, `reduce.json` says what it is a reduction of, `tried.txt`
//! lists programs by fingerprint with the verdict (1: fails the same way). **Invariants:** the program is
//! written before `reduce.json` names it; a folder that does not fit the reduction is begun anew. A program
//! and its inputs are two files, and whoever is killed between them leaves those of two programs: until
//! `reduce.json` names the new one, both are in the folder `.next` as well.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use hlo_interp::Devices;
use serde::{Deserialize, Serialize};

use super::program::{fingerprint, text};
use super::{Candidate, Signature};
use hlo_engines::frontend::parse_text;
use hlo_engines::inputs;
use hlo_system::files::{describe, read_beside, write_text, write_whole};
use hlo_system::npz::{self, Npz};

/// The maximum number of bytes of an array that is read back.
const MAX_ARRAY_BYTES: u64 = 16 << 30;

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct State {
    original: String,
    signature: String,
    identity: String,
    best: String,
    tried: u64,
    fixpoint: bool,
}

/// An open folder.
#[derive(Debug)]
pub(crate) struct Store {
    folder: PathBuf,
    original: String,
    signature: String,
    identity: String,
    /// Verdicts that are not written yet.
    pending: String,
}

/// What an earlier run has left.
#[derive(Debug)]
pub(crate) struct Resumed {
    pub best: Candidate,
    pub tried: u64,
    pub known: Vec<(u128, bool)>,
}

impl Store {
    /// Opens or makes a folder. What is in it is gone on with if it is of the same program, failure and
    /// oracle.
    pub(crate) fn open(
        folder: &Path,
        original: &Candidate,
        signature: &Signature,
        identity: &str,
    ) -> Result<(Store, Option<Resumed>), String> {
        fs::create_dir_all(folder)
            .map_err(|e| format!("{}: cannot be made: {}", folder.display(), describe(&e)))?;
        let store = Store {
            folder: folder.to_owned(),
            original: format!("{:032x}", fingerprint(original)),
            signature: signature.to_string(),
            identity: identity.to_owned(),
            pending: String::new(),
        };
        let resumed = store.read();
        match &resumed {
            // The last line may have been truncated.
            Some(resumed) => {
                let lines =
                    resumed.known.iter().map(|&(hash, fails)| line_of(hash, fails)).collect::<String>();
                write_text(&store.path("tried.txt"), &lines).map_err(|e| e.message)?;
            }
            None => {
                // What another reduction left says nothing about this one.
                let _ = fs::remove_file(store.path("tried.txt"));
                let _ = fs::remove_dir_all(store.path(NEXT));
            }
        }
        Ok((store, resumed))
    }

    fn path(&self, file: &str) -> PathBuf {
        self.folder.join(file)
    }

    fn read(&self) -> Option<Resumed> {
        let state: State = serde_json::from_str(&read_beside(&self.path("reduce.json")).ok()?).ok()?;
        if (&state.original, &state.signature, &state.identity)
            != (&self.original, &self.signature, &self.identity)
        {
            return None;
        }
        let best = read_candidate(&self.folder)
            .filter(|best| format!("{:032x}", fingerprint(best)) == state.best)
            .or_else(|| read_candidate(&self.path(NEXT)))?;
        let tried = fs::read_to_string(self.path("tried.txt")).unwrap_or_default();
        Some(Resumed { best, tried: state.tried, known: tried.lines().filter_map(verdict).collect() })
    }

    /// Remembers a verdict.
    pub(crate) fn note(&mut self, fingerprint: u128, fails: bool) {
        self.pending.push_str(&line_of(fingerprint, fails));
    }

    /// Writes the best program. What cannot be written now may be at the end, where it is an error.
    pub(crate) fn save(&mut self, best: &Candidate, tried: u64) {
        let _ = self.write(best, tried, false);
    }

    /// Writes everything.
    pub(crate) fn finish(&mut self, best: &Candidate, tried: u64, fixpoint: bool) -> Result<(), String> {
        self.write(best, tried, fixpoint)
    }

    fn write(&mut self, best: &Candidate, tried: u64, fixpoint: bool) -> Result<(), String> {
        let next = self.path(NEXT);
        let cannot = |e: &std::io::Error| format!("{}: cannot be written: {}", next.display(), describe(e));
        // What is left of one is older than the program.
        let _ = fs::remove_dir_all(&next);
        let part =
            tempfile::Builder::new().prefix(".next-").tempdir_in(&self.folder).map_err(|e| cannot(&e))?;
        write_candidate(part.path(), best)?;
        fs::rename(part.path(), &next).map_err(|e| cannot(&e))?;
        // What has been renamed is not there to be removed.
        let _ = part.keep();
        write_candidate(&self.folder, best)?;
        let path = self.path("tried.txt");
        let appended = fs::OpenOptions::new().create(true).append(true).open(&path);
        let appended = appended.and_then(|mut f| f.write_all(self.pending.as_bytes()));
        appended.map_err(|e| format!("{}: cannot be written: {}", path.display(), describe(&e)))?;
        self.pending.clear();
        let state = State {
            original: self.original.clone(),
            signature: self.signature.clone(),
            identity: self.identity.clone(),
            best: format!("{:032x}", fingerprint(best)),
            tried,
            fixpoint,
        };
        let json = serde_json::to_string_pretty(&state).map_err(|e| e.to_string())?;
        write_text(&self.path("reduce.json"), &json).map_err(|e| e.message)?;
        fs::remove_dir_all(&next).map_err(|e| cannot(&e))
    }
}

/// The folder of a program that is about to be the best.
const NEXT: &str = ".next";

/// The line of a verdict.
fn line_of(fingerprint: u128, fails: bool) -> String {
    format!("{fingerprint:032x} {}\n", u8::from(fails))
}

/// What a line says; `None` if it was truncated.
fn verdict(line: &str) -> Option<(u128, bool)> {
    let (hash, verdict) = line.split_once(' ')?;
    let fails = match verdict {
        "0" => false,
        "1" => true,
        _ => return None,
    };
    let hash = Some(hash).filter(|hash| hash.len() == 32)?;
    Some((u128::from_str_radix(hash, 16).ok()?, fails))
}

/// Reads `module.hlo` and `inputs.npz`, if they are a program that verifies and its inputs.
fn read_candidate(folder: &Path) -> Option<Candidate> {
    let (module, found) = parse_text(&read_beside(&folder.join("module.hlo")).ok()?);
    let module = module.filter(|_| !found.has_errors())?;
    if hlo::verify::verify(&module).has_errors() {
        return None;
    }
    let devices = Devices::new(module.replica_count(), module.num_partitions())?;
    let mut npz = Npz::open(folder.join("inputs.npz"), MAX_ARRAY_BYTES).ok()?;
    let inputs = inputs::read(&module, &mut npz, devices).ok()?;
    Some(Candidate { module, inputs })
}

/// Writes `module.hlo` and `inputs.npz`.
pub(crate) fn write_candidate(folder: &Path, candidate: &Candidate) -> Result<(), String> {
    let text = text(&candidate.module);
    write_whole(&folder.join("module.hlo"), |f| f.write_all(text.as_bytes())).map_err(|e| e.message)?;
    let arrays = hlo_engines::engine::named("arg", &candidate.inputs);
    npz::write(&folder.join("inputs.npz"), &arrays).map_err(|e| e.message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_lines_say_nothing() {
        let whole = line_of(0x12, true);
        assert_eq!(verdict(whole.trim_end()), Some((0x12, true)));
        for cut in ["", "12", &whole[..20], &whole[..32], &whole[..33], &format!("{} 1", &whole[..31])] {
            assert_eq!(verdict(cut), None, "{cut}");
        }
    }
}
