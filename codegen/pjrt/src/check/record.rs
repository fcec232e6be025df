//! What is kept of checks: a line for each execution in a log, and a folder for each wrong one, which
//! `hlo run FOLDER` repeats.
//!
//! **Invariant:** a line is appended whole, whoever else appends; a folder is complete or absent.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use hlo::print::{PrintOptions, print_module};
use hlo_execution::run::named;
use hlo_execution::verdict::Tally;
use hlo_system::{drafts, npz};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::{Execution, Verdict};

/// A line of the log.
#[derive(Clone, Debug, Default)]
pub(super) struct Record {
    program: String,
    verdict: &'static str,
    tally: Tally,
    /// Why it was not judged.
    reason: Option<String>,
    pub(super) message: String,
    pub(super) blamed: Option<String>,
    pub(super) saved: Option<PathBuf>,
    seconds: f64,
}

impl Record {
    pub(super) fn of(program: &str, verdict: &Verdict) -> Self {
        Self { program: program.to_owned(), verdict: verdict.name(), tally: verdict.tally, ..Self::default() }
    }

    pub(super) fn not_judged(program: &str, reason: String) -> Self {
        Self { program: program.to_owned(), verdict: "not judged", reason: Some(reason), ..Self::default() }
    }

    pub(super) fn took(mut self, start: Instant) -> Self {
        self.seconds = start.elapsed().as_secs_f64();
        self
    }

    /// Adds it to a file. One that cannot be written to costs the line, not the execution.
    pub(super) fn append(&self, path: &Path, test: Option<String>) {
        let mut line = json!({
            "program": self.program,
            "verdict": self.verdict,
            "elements": self.tally,
            "seconds": self.seconds,
        });
        let optional = [
            ("reason", self.reason.clone()),
            ("message", Some(self.message.clone()).filter(|m| !m.is_empty())),
            ("blamed", self.blamed.clone()),
            ("saved", self.saved.as_ref().map(|p| p.display().to_string())),
            ("test", test),
        ];
        for (key, value) in optional {
            if let Some(value) = value {
                line[key] = value.into();
            }
        }
        let written = OpenOptions::new().create(true).append(true).open(path);
        let _ = written.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
    }
}

/// Saves an execution below a folder. Errors: why it cannot be written.
pub(super) fn save(
    parent: &Path,
    execution: &Execution<'_>,
    verdict: &Verdict,
    message: &str,
    opcode: Option<&str>,
) -> Result<PathBuf, String> {
    let said = |e: io::Error| e.to_string();
    let module = execution.source.module();
    let text = print_module(module, &PrintOptions::source(module));
    let mut hash = Sha256::new();
    hash.update(&text);
    for array in execution.arguments.iter().flatten() {
        hash.update(hlo_client::bytes_of(&array.buffer));
    }
    let digest: String = hash.finalize().iter().take(3).map(|byte| format!("{byte:02x}")).collect();
    let temporary = drafts::begin(parent, ".hlo-check-").map_err(said)?;
    let at = temporary.path();
    fs::write(at.join("module.hlo"), text).map_err(said)?;
    let arrays = [
        ("inputs.npz", named("arg", &execution.arguments)),
        ("expected.npz", named("out", &verdict.expected)),
        ("actual.npz", named("out", &execution.results)),
    ];
    for (name, arrays) in arrays {
        npz::write(&at.join(name), &arrays).map_err(|failure| failure.message)?;
    }
    let mut signature = json!({ "kind": "wrong", "engine": "cpu:fallback" });
    if let Some(opcode) = opcode {
        signature["opcode"] = opcode.into();
    }
    let finding = json!({
        "hlo_finding": 1,
        "reference": "interpreter",
        "signature": signature,
        "replicas": execution.devices.replicas(),
        "partitions": execution.devices.partitions(),
        "verdict": verdict.tally,
        "message": message,
        "origin": "an execution under JAX in check mode",
    });
    let finding = serde_json::to_string_pretty(&finding).map_err(|e| e.to_string())?;
    fs::write(at.join("finding.json"), format!("{finding}\n")).map_err(said)?;
    for n in 1..=9999_u32 {
        let suffix = if n == 1 { String::new() } else { format!("-{n}") };
        let folder = parent.join(format!("hlo-mismatch-{digest}{suffix}"));
        if folder.exists() {
            continue;
        }
        match fs::rename(at, &folder) {
            Ok(()) => {
                // What has been renamed is not there to be removed.
                let _ = temporary.keep();
                return Ok(fs::canonicalize(&folder).unwrap_or(folder));
            }
            // Somebody else was faster.
            Err(_) if folder.exists() => {}
            Err(e) => return Err(e.to_string()),
        }
    }
    Err(format!("{} has too many folders hlo-mismatch-{digest}-N", parent.display()))
}
