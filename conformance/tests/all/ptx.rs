//! The compiler for GPUs, its PTX interpreted with all checks: recorded programs, and generated ones.

use std::process::Command;
use std::time::Duration;

use hlo_conformance::corpus::{CorpusOptions, Status, items, run_all};
use hlo_conformance::folder::find_cases;
use hlo_engines::engine::{Limits, RunOptions, by_name};
use hlo_triage::case::Form;
use libtest_mimic::Trial;

use crate::{crate_dir, failed};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::test("ptx/recorded programs", || recorded().map_err(failed)),
        Trial::test("ptx/generated programs", || generated().map_err(failed)),
    ]
}

/// Recorded programs give what was recorded, or are refused: calls of LAPACK alone are.
fn recorded() -> Result<(), String> {
    let folder = crate_dir().join("corpus/jax");
    let folders = find_cases(&[folder.to_string_lossy().into_owned()]).map_err(|f| f.message)?;
    let options = CorpusOptions {
        run: RunOptions { limits: Limits { fuel: None, memory_bytes: 2 << 30 }, ..RunOptions::default() },
        time_limit: Duration::from_secs(300),
        jobs: 2,
        ..CorpusOptions::new(by_name("ptx").map_err(|f| f.message)?)
    };
    let (mut passed, mut wrong) = (0, String::new());
    run_all(&items(&folders, Form::Module), &options, |report| {
        let is_refused = report.kind == "unsupported" && report.reason.contains("custom-call");
        match report.status {
            Status::Fail if !is_refused => {
                wrong.push_str(&format!("{}: {} {}\n", report.case, report.kind, report.reason));
            }
            Status::Fail => {}
            _ => passed += 1,
        }
    });
    if !wrong.is_empty() {
        return Err(wrong);
    }
    if passed < 100 { Err(format!("only {passed} programs ran")) } else { Ok(()) }
}

/// Nothing in generated programs is unexplained.
fn generated() -> Result<(), String> {
    let out = tempfile::tempdir().map_err(|e| e.to_string())?;
    let ran = Command::new(env!("CARGO_BIN_EXE_hlo"))
        .args(["fuzz", "--engines", "interpreter,ptx", "--size", "small", "--seed", "20", "--count", "120"])
        .args(["--max-undecided", "0.1%", "--out"])
        .arg(out.path())
        .output()
        .map_err(|e| e.to_string())?;
    if ran.status.success() {
        return Ok(());
    }
    Err(format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr)))
}
