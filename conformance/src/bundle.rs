//! A report of a program: a folder with all that it takes to rerun it, in these tools and in XLA's.
//!
//! The folder of a finding ([`hlo_triage::artifact`]), which `hlo run`, `isolate`, `bisect` and `reduce`
//! accept, with `snapshot.pb` (an `HloSnapshot` for XLA's `run_hlo_module`), `environment.json`,
//! `isolate.html` and `reduced/` where something fails, and `README.txt`.
//!
//! **Invariants:** the folder is complete or absent: it is written under a temporary name and renamed. One
//! that is there is replaced, at once, only if it is a report.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde::Serialize;

use hlo_system::drafts;
use hlo_system::exit::Failure;
use hlo_system::files::{describe, read_beside};

/// The marker of a report's folder, with its origin.
pub const ENVIRONMENT: &str = "environment.json";
/// The version of that file.
const VERSION: u32 = 1;
/// The folder of the reduced program.
pub const REDUCED: &str = "reduced";
/// The page of what `hlo isolate` finds.
pub const PAGE: &str = "isolate.html";
/// The program with arguments and the result.
pub const SNAPSHOT: &str = "snapshot.pb";
/// What temporary folders begin with; the number of the process that writes them follows.
const TEMPORARY: &str = ".hlo-report-";
/// The readme of the folder.
pub const README: &str = "README.txt";

/// The origin of a report.
#[derive(Serialize, Debug)]
pub struct Environment {
    hlo_report: u32,
    /// Versions of the parts.
    pub versions: BTreeMap<&'static str, String>,
    /// Instruction set and system.
    pub machine: BTreeMap<&'static str, String>,
    /// The parts that were removed from the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub anonymized: Option<&'static str>,
}

impl Environment {
    /// This one. `llvm`: the version that code is made with, if there is one.
    pub fn here(anonymized: Option<&'static str>) -> Self {
        let mut versions = BTreeMap::new();
        versions.insert("hlo", hlo_client::artifact::BUILD.to_owned());
        let mut machine = BTreeMap::new();
        machine.insert("architecture", std::env::consts::ARCH.to_owned());
        machine.insert("system", std::env::consts::OS.to_owned());
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        machine.insert("threads", cores.to_string());
        // Files of Linux: elsewhere these lines are missing.
        if let Ok(text) = fs::read_to_string("/proc/cpuinfo") {
            for (key, name) in [("model name", "processor"), ("flags", "features"), ("Features", "features")]
            {
                let line = text.lines().find(|l| l.split(':').next().is_some_and(|k| k.trim() == key));
                if let Some((_, value)) = line.and_then(|l| l.split_once(':')) {
                    machine.insert(name, value.trim().to_owned());
                }
            }
        }
        if let Ok(text) = fs::read_to_string("/proc/sys/kernel/osrelease") {
            machine.insert("kernel", text.trim().to_owned());
        }
        Self { hlo_report: VERSION, versions, machine, anonymized }
    }
}

/// Whether a folder is a report.
fn is_report(folder: &Path) -> bool {
    read_beside(&folder.join(ENVIRONMENT))
        .ok()
        .and_then(|text| serde_json::from_str::<serde_json::Value>(&text).ok())
        .is_some_and(|v| v.get("hlo_report").is_some())
}

/// A report that is being written.
#[derive(Debug)]
pub struct Draft {
    target: PathBuf,
    folder: tempfile::TempDir,
}

impl Draft {
    /// Begins one for `target`. Errors: something else is there, or nothing can be written beside it.
    pub fn at(target: &Path) -> Result<Self, Failure> {
        refuse_others(target)?;
        let parent = target.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let folder = drafts::begin(parent, TEMPORARY).map_err(|e| failed(parent, &e))?;
        Ok(Self { target: target.to_owned(), folder })
    }

    /// The folder to write files to.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Renames the folder to its final name, replacing an older report.
    pub fn complete(self) -> Result<(), Failure> {
        let Draft { target, folder } = self;
        if let Some(parent) = target.parent() {
            drafts::open_to_readers(folder.path(), parent);
        }
        refuse_others(&target)?;
        if target.exists() {
            // Both are exchanged atomically; the older one is removed with the temporary name.
            if renameat_with(CWD, folder.path(), CWD, &*target, RenameFlags::EXCHANGE).is_ok() {
                return Ok(());
            }
            // Some file systems cannot do that.
            fs::remove_dir_all(&target).map_err(|e| failed(&target, &e))?;
        }
        fs::rename(folder.path(), &target).map_err(|e| failed(&target, &e))?;
        // What has been renamed is not there to be removed.
        let _ = folder.keep();
        Ok(())
    }
}

fn refuse_others(target: &Path) -> Result<(), Failure> {
    if target.symlink_metadata().is_err() || target.is_dir() && is_report(target) {
        return Ok(());
    }
    let empty = fs::read_dir(target).is_ok_and(|mut entries| entries.next().is_none());
    if empty {
        return Ok(());
    }
    Err(Failure::usage(format!("{}: is there, and is not a report: it is not overwritten", target.display())))
}

fn failed(path: &Path, e: &io::Error) -> Failure {
    Failure::usage(format!("{}: cannot be written: {}", path.display(), describe(e)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_reports_are_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("deep").join("report");
        let make = |content: &str| {
            let draft = Draft::at(&target)?;
            fs::write(draft.path().join(README), content).unwrap();
            let json = serde_json::to_string(&Environment::here(None)).unwrap();
            fs::write(draft.path().join(ENVIRONMENT), json).unwrap();
            draft.complete()
        };
        make("one").unwrap();
        make("two").unwrap();
        assert_eq!(fs::read_to_string(target.join(README)).unwrap(), "two");
        assert_eq!(fs::read_dir(target.parent().unwrap()).unwrap().count(), 1, "nothing is left beside it");
        drop(Draft::at(&target).unwrap());
        assert_eq!(
            fs::read_to_string(target.join(README)).unwrap(),
            "two",
            "a draft that is given up is nothing"
        );
        fs::remove_file(target.join(ENVIRONMENT)).unwrap();
        assert!(make("three").unwrap_err().message.contains("is not a report"));
        assert_eq!(fs::read_to_string(target.join(README)).unwrap(), "two");
        let file = dir.path().join("file");
        fs::write(&file, "mine").unwrap();
        assert!(Draft::at(&file).is_err());
    }
}
