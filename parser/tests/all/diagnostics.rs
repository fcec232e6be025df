//! Exact texts of diagnostics.
//!
//! The files of `tests/diagnostics` hold cases: `==== name`, the source, `----`, what is rendered for it.
//! With HLO_BLESS=1 the last part is rewritten (refused when CI is set).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

struct Case {
    name: String,
    source: String,
    expected: String,
}

fn read(path: &Path) -> Vec<Case> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut cases: Vec<Case> = Vec::new();
    let mut expected = false;
    for line in text.split_inclusive('\n') {
        if let Some(name) = line.strip_prefix("==== ") {
            cases.push(Case { name: name.trim_end().into(), source: String::new(), expected: String::new() });
            expected = false;
        } else if line == "----\n" {
            expected = true;
        } else {
            let case = cases.last_mut().unwrap_or_else(|| panic!("{}: text before a case", path.display()));
            if expected { &mut case.expected } else { &mut case.source }.push_str(line);
        }
    }
    cases
}

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/diagnostics");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn rendered_text() {
    let bless = std::env::var_os("HLO_BLESS").is_some_and(|v| v == "1");
    assert!(!(bless && std::env::var_os("CI").is_some()), "HLO_BLESS is refused when CI is set");
    let mut wrong = Vec::new();
    let mut codes = BTreeSet::new();
    let mut count = 0;
    for path in files() {
        let mut out = String::new();
        for case in read(&path) {
            let parsed = hlo_parser::parse_module(&case.source, &hlo_parser::ParseOptions::default());
            let rendered = hlo::diag::render_all(&parsed.diagnostics, "case.hlo", &case.source, false);
            codes.extend(parsed.diagnostics.iter().map(|d| d.code.as_str()));
            count += 1;
            assert!(parsed.diagnostics.has_errors(), "{}: {}: no error", path.display(), case.name);
            assert!(
                parsed.module.is_none(),
                "{}: {}: a module in spite of errors",
                path.display(),
                case.name
            );
            if rendered != case.expected {
                let name = &case.name;
                wrong.push(format!(
                    "{}: {name}\n--- expected\n{}--- found\n{rendered}",
                    path.display(),
                    case.expected
                ));
            }
            out.push_str(&format!("==== {}\n{}----\n{rendered}", case.name, case.source));
        }
        if bless {
            std::fs::write(&path, out).unwrap();
        }
    }
    assert!(
        bless || wrong.is_empty(),
        "{} differ (HLO_BLESS=1 rewrites them)\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(count >= 110, "{count} cases");
    // Codes that no text of a test can have: it would be too large, or no text; and what is said of text that
    // was pasted, which is read (`pasted/`).
    let elsewhere = ["P0004", "P0011", "P0012", "P0013"];
    for code in hlo::diag::codes::all().map(|c| c.as_str()).filter(|c| c.starts_with('P') && *c < "P06") {
        assert!(codes.contains(code) || elsewhere.contains(&code), "no case has {code}");
    }
}
