//! Recorded cases: the sample in this repository, and the whole corpus where it is beside the checkout.

use std::path::{Path, PathBuf};
use std::time::Duration;

use hlo_conformance::corpus::{CorpusOptions, ExpectedFailures, Status, Summary, items, run_all};
use hlo_conformance::folder::find_cases;
use hlo_engines::engine::{Limits, RunOptions, by_name};
use hlo_engines::frontend::{load, parse_file, parse_text};
use hlo_triage::case::{Case, Form};
use hlo_triage::prove::prove;
use libtest_mimic::Trial;

use crate::{crate_dir, failed, files_below};

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    trials.push(Trial::test("corpus/differences are proved", || {
        proved(&crate_dir().join("corpus")).map_err(failed)
    }));
    let mut run = |name: String, folder: PathBuf, form: Form, engine: &'static str| {
        trials.push(Trial::test(name, move || run_corpus(&folder, form, engine).map_err(failed)));
    };
    for form in [Form::Module, Form::Optimized] {
        run(format!("corpus/{form:?}"), crate_dir().join("corpus"), form, "interpreter");
    }
    // Whether there is LLVM in this build or not.
    run("corpus/cpu:scalar".to_owned(), crate_dir().join("corpus"), Form::Module, "cpu:scalar");
    let shared = crate_dir().join("../../shared/corpus");
    if !shared.is_dir() {
        eprintln!("NOTE: ../shared/corpus is not beside this checkout: its cases are SKIPPED");
        return trials;
    }
    for name in ["jax", "stablehlo", "linalg"] {
        for form in [Form::Module, Form::Optimized] {
            if name != "stablehlo" || form == Form::Module {
                run(format!("shared/{name}/{form:?}"), shared.join(name), form, "interpreter");
            }
        }
    }
    for name in ["jax", "stablehlo"] {
        let folder = shared.join(name);
        trials.push(Trial::test(format!("shared/{name}/differences are proved"), move || {
            proved(&folder).map_err(failed)
        }));
    }
    let texts = |folder: &Path| {
        let mut files = files_below(folder, "hlo");
        files.extend(files_below(folder, "txt"));
        files
    };
    for name in ["jax", "stablehlo", "linalg", "multi", "xla", "passdumps"] {
        let files = texts(&shared.join(name));
        trials.push(Trial::test(format!("shared/{name}/verifies"), move || verifies(&files).map_err(failed)));
        let files = texts(&shared.join(name));
        trials.push(Trial::test(format!("shared/{name}/prints back"), move || {
            round_trips(&files).map_err(failed)
        }));
    }
    trials
}

fn expected_failures() -> Result<ExpectedFailures, String> {
    let path = crate_dir().join("expected_failures.txt");
    let text = std::fs::read_to_string(&path).map_err(|e| e.to_string())?;
    ExpectedFailures::parse(&text).map_err(|f| f.message)
}

/// Of every elementwise program whose recorded results differ from ours in any bit, each rounding of our run
/// is right.
fn proved(folder: &Path) -> Result<(), String> {
    let folders = find_cases(&[folder.to_string_lossy().into_owned()]).map_err(|f| f.message)?;
    let mut open = String::new();
    let mut ran = false;
    let items = items(&folders, Form::Both);
    assert!(!items.is_empty(), "no cases in {}", folder.display());
    for item in items {
        let proof =
            Case::open(&item.folder).and_then(|case| prove(&case, item.optimized, &RunOptions::default()));
        ran |= proof.is_ok();
        match proof {
            Ok(Some(proof)) if !proof.holds() => {
                open.push_str(&format!(
                    "{}: {:?} {:?}\n",
                    item.folder.display(),
                    proof.wrong,
                    proof.unproved
                ));
            }
            // Cases that do not run are another test's matter.
            Ok(_) | Err(_) => {}
        }
    }
    assert!(ran, "no case of {} runs", folder.display());
    if open.is_empty() { Ok(()) } else { Err(open) }
}

fn run_corpus(folder: &Path, form: Form, engine: &str) -> Result<(), String> {
    let expected = expected_failures()?;
    let folders = find_cases(&[folder.to_string_lossy().into_owned()]).map_err(|f| f.message)?;
    let options = CorpusOptions {
        run: RunOptions { limits: Limits { fuel: None, memory_bytes: 2 << 30 }, ..RunOptions::default() },
        time_limit: Duration::from_secs(300),
        jobs: 2,
        ..CorpusOptions::new(by_name(engine).map_err(|f| f.message)?)
    };
    let items = items(&folders, form);
    assert!(!items.is_empty(), "no cases in {}", folder.display());
    let mut summary = Summary::default();
    let mut failures = String::new();
    run_all(&items, &options, |report| {
        let report = expected.apply(report);
        if report.status == Status::Fail {
            failures
                .push_str(&format!("{} ({}): {} {}\n", report.case, report.form, report.kind, report.reason));
        }
        summary.add(&report);
    });
    if summary.failed == 0 {
        Ok(())
    } else {
        Err(format!(
            "{failures}{} passed, {} failed, {} skipped",
            summary.passed, summary.failed, summary.skipped
        ))
    }
}

fn verifies(files: &[PathBuf]) -> Result<(), String> {
    assert!(!files.is_empty(), "no files to verify");
    let rejected: Vec<String> = files
        .iter()
        .filter_map(|f| {
            load(&f.to_string_lossy()).err().map(|r| format!("{}: {}", f.display(), r.first_line()))
        })
        .collect();
    if rejected.is_empty() { Ok(()) } else { Err(rejected.join("\n")) }
}

/// Every text prints and reads back to an equal module; texts that XLA printed come back byte for byte, but
/// for one in a hundred.
fn round_trips(files: &[PathBuf]) -> Result<(), String> {
    assert!(!files.is_empty(), "no files to print");
    let (mut other_module, mut other_bytes) = (Vec::new(), Vec::new());
    for file in files {
        let Ok((source, module, ..)) = parse_file(&file.to_string_lossy(), None) else { continue };
        let printed = hlo::print::print_module(&module, &hlo::print::PrintOptions::source(&module));
        if printed == source.text {
            continue;
        }
        other_bytes.push(file.display().to_string());
        if parse_text(&printed).0.is_none_or(|again| hlo::equal::modules_equal(&module, &again).is_err()) {
            other_module.push(file.display().to_string());
        }
    }
    if !other_module.is_empty() {
        return Err(format!("print to other modules:\n{}", other_module.join("\n")));
    }
    let dumps = files.iter().any(|f| f.to_string_lossy().contains("/jax/"));
    if dumps && other_bytes.len() * 100 > files.len() {
        return Err(format!(
            "{} of {} print otherwise:\n{}",
            other_bytes.len(),
            files.len(),
            other_bytes.join("\n")
        ));
    }
    Ok(())
}
