//! Every PTX text of the corpus parses, verifies and prints back the same tokens.
#![allow(clippy::print_stderr, reason = "a test says that it skips, and what it counted")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};

fn corpus() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus/gpu");
    root.is_dir().then_some(root)
}

fn ptx_files() -> Vec<PathBuf> {
    let Some(root) = corpus() else {
        eprintln!("skipped: no ../shared/corpus/gpu");
        return Vec::new();
    };
    let mut files = Vec::new();
    for group in ["jax", "bench"] {
        for case in std::fs::read_dir(root.join(group)).unwrap() {
            for file in std::fs::read_dir(case.unwrap().path()).unwrap() {
                let file = file.unwrap().path();
                if file.extension().is_some_and(|e| e == "ptx") {
                    files.push(file);
                }
            }
        }
    }
    files.sort();
    assert!(files.len() >= 602, "{} files", files.len());
    files
}

fn tokens(text: &str) -> Vec<&str> {
    hlo_ptx::lex::tokens(text).unwrap().iter().map(|t| t.text(text)).collect()
}

#[test]
fn all_print_back_equal() {
    for file in ptx_files() {
        let text = std::fs::read_to_string(&file).unwrap();
        let tree = hlo_ptx::parse::parse(&text).unwrap_or_else(|d| panic!("{}: {}", file.display(), d[0]));
        let printed = hlo_ptx::print::print(&tree);
        assert_eq!(tokens(&text), tokens(&printed), "{}", file.display());
        let again = hlo_ptx::parse::parse(&printed).unwrap();
        assert_eq!(hlo_ptx::print::print(&again), printed, "{}", file.display());
    }
}

#[test]
fn all_verify() {
    let mut unsupported = std::collections::BTreeMap::new();
    for file in ptx_files() {
        let text = std::fs::read_to_string(&file).unwrap();
        let module = hlo_ptx::lower::module(&text).unwrap_or_else(|d| panic!("{}: {}", file.display(), d[0]));
        for f in &module.functions {
            for i in &f.code {
                if let hlo_ptx::ir::Op::Unsupported(what) = &i.op {
                    *unsupported.entry(what.clone()).or_insert(0) += 1;
                }
            }
        }
    }
    assert!(unsupported.is_empty(), "{unsupported:?}");
}
