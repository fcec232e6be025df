//! Exact texts of diagnostics.
//!
//! The files of `tests/diagnostics` hold cases: `==== name`, the source, `----`, what is rendered for it.
//! With HLO_BLESS=1 the last part is rewritten (refused when CI is set).

use std::collections::BTreeSet;
use std::path::Path;

use hlo::Span;
use hlo_mlir::convert::{ConvertOptions, convert};
use hlo_mlir::text::{ReadOptions, parse_part};

fn found(source: &str) -> hlo::Diagnostics {
    let read = parse_part(source, Span::new(0, source.len()), &ReadOptions::default());
    match read.and_then(|module| convert(&module, &ConvertOptions::default())) {
        Ok(_) => hlo::Diagnostics::new(),
        Err(found) => found,
    }
}

#[test]
fn rendered_text() {
    let bless = std::env::var_os("HLO_BLESS").is_some_and(|v| v == "1");
    assert!(!(bless && std::env::var_os("CI").is_some()), "HLO_BLESS is refused when CI is set");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/diagnostics/text.txt");
    let text = std::fs::read_to_string(&path).unwrap();
    let mut codes = BTreeSet::new();
    let mut out = String::new();
    for case in text.split("==== ").filter(|c| !c.is_empty()) {
        let (name, rest) = case.split_once('\n').unwrap();
        let (source, _) = rest.split_once("----\n").unwrap();
        let found = found(source);
        assert!(found.has_errors(), "{name}: no error");
        codes.extend(found.iter().map(|d| d.code.as_str()));
        let rendered = hlo::diag::render_all(&found, "case.mlir", source, false);
        out.push_str(&format!("==== {name}\n{source}----\n{rendered}"));
    }
    if bless {
        std::fs::write(&path, &out).unwrap();
    }
    assert!(out == text || bless, "{}\ndiffers: HLO_BLESS=1 rewrites it\n{out}", path.display());
    let all = hlo::diag::codes::all().map(|c| c.as_str()).filter(|c| c.starts_with("P06"));
    let missing: Vec<&str> = all.filter(|c| !codes.contains(c)).collect();
    assert!(missing.is_empty(), "codes without a case: {missing:?}");
}
