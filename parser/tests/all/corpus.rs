//! Real programs must parse.

use std::path::{Path, PathBuf};

/// The .hlo files below `folder`.
pub(crate) fn hlo_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "hlo") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

/// Where the corpus is, beside the repository, if it is there.
pub(crate) fn corpus() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/corpus");
    folder.is_dir().then_some(folder)
}

#[test]
#[allow(clippy::print_stderr, reason = "a skipped test says so")]
fn every_file_of_the_corpus_parses() {
    let Some(folder) = corpus() else {
        eprintln!("skipped: there is no ../shared/corpus");
        return;
    };
    let files = hlo_files(&folder);
    assert!(files.len() > 100, "only {} files", files.len());
    let mut wrong = String::new();
    for path in files {
        let text = std::fs::read_to_string(&path).unwrap();
        let parsed = hlo_parser::parse_module(&text, &hlo_parser::ParseOptions::default());
        if parsed.module.is_none() {
            let file = path.display().to_string();
            wrong.push_str(&hlo::diag::render_all(&parsed.diagnostics, &file, &text, false));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
