//! Diagnostics of broken programs, as people see them: every `filetests/verify/**/*.hlo` is parsed and verified, and the
//! rendered errors must be, byte for byte, the `.stderr` beside it.
//!
//! `HLO_BLESS=1` rewrites the golden files (read the diff before committing it); a CI run refuses to.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use hlo::diag::{self, Diagnostics};

/// All `.hlo` files below a folder, sorted.
fn programs(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("the folder is there") {
            let path = entry.expect("readable").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "hlo") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// What is wrong with a program: what parsing finds, or else what verification finds.
fn diagnose(text: &str) -> Diagnostics {
    let parsed = hlo_parser::parse_module(text, &hlo_parser::ParseOptions::default());
    match parsed.module {
        Some(module) => hlo::verify::verify(&module),
        None => parsed.diagnostics,
    }
}

#[test]
fn rendered_errors_are_those_beside_the_programs() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("filetests/verify");
    let bless = std::env::var_os("HLO_BLESS").is_some();
    assert!(!bless || std::env::var_os("CI").is_none(), "golden files are not rewritten where CI is set");
    let programs = programs(&root);
    assert!(programs.len() >= 100, "only {} programs found", programs.len());
    let mut wrong = String::new();
    for program in &programs {
        let name = program.strip_prefix(&root).expect("below the root").to_string_lossy().replace('\\', "/");
        let text = std::fs::read_to_string(program).expect("readable");
        let diagnostics = diagnose(&text);
        if !diagnostics.has_errors() {
            writeln!(wrong, "{name}: no error").expect("a string");
            continue;
        }
        let rendered = diag::render_all(&diagnostics, &name, &text, false);
        let golden = program.with_extension("stderr");
        if bless {
            std::fs::write(&golden, &rendered).expect("writable");
            continue;
        }
        let expected = std::fs::read_to_string(&golden).unwrap_or_default();
        if rendered != expected {
            writeln!(wrong, "{name}: expected\n{expected}\nfound\n{rendered}").expect("a string");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
