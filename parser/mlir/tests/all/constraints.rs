//! Constraints of StableHLO's specification, each broken by a program.
//!
//! The files of `tests/constraints` hold programs between lines `// -----`; the first line of each, `//
//! expected: `, is the code and the message of what is found first. With HLO_BLESS=1 these lines are
//! rewritten (refused when CI is set).

use std::collections::BTreeSet;
use std::path::Path;

use hlo::Span;
use hlo_mlir::convert::{ConvertOptions, convert};
use hlo_mlir::text::{ReadOptions, parse_part};

const EXPECTED: &str = "// expected: ";

/// The code and the message of the first error.
fn found(source: &str) -> String {
    let read = parse_part(source, Span::new(0, source.len()), &ReadOptions::default());
    let found = match read.and_then(|module| convert(&module, &ConvertOptions::default())) {
        Ok(converted) => hlo::verify::verify(&converted.module),
        Err(found) => found,
    };
    found.iter().next().map(|d| format!("{} {}", d.code.as_str(), d.message)).unwrap_or_default()
}

#[test]
fn messages_say_the_constraint() {
    let bless = std::env::var_os("HLO_BLESS").is_some_and(|v| v == "1");
    assert!(!(bless && std::env::var_os("CI").is_some()), "HLO_BLESS is refused when CI is set");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/constraints");
    let (mut numbered, mut strays) = (BTreeSet::new(), Vec::new());
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let mut cases = Vec::new();
        for case in text.split("// -----\n").map(str::trim_start) {
            let (first, source) = case.split_once('\n').unwrap();
            assert!(first.starts_with(EXPECTED.trim_end()), "{first}");
            let message = found(source);
            // The name of an operation, and the number of one of its constraints or inputs.
            let number = message.strip_prefix("V0701 stablehlo.").and_then(|m| m.split_once(": ("));
            match number {
                Some((name, rest)) => {
                    numbered.insert(format!("{name} {}", rest.split(')').next().unwrap()));
                }
                None => strays.push(format!("{message}\n{source}")),
            }
            cases.push(format!("{EXPECTED}{message}\n{}\n", source.trim_end()));
        }
        let out = cases.join("\n// -----\n\n");
        if bless {
            std::fs::write(&path, &out).unwrap();
        }
        assert!(out == text || bless, "{} differs: HLO_BLESS=1 rewrites it\n{out}", path.display());
    }
    assert!(strays.is_empty(), "no constraints: {}", strays.join("\n"));
    // Another program that breaks the same constraint adds nothing; fewer constraints than these are a case
    // that was lost.
    assert!(numbered.len() >= 530, "{} constraints: {numbered:?}", numbered.len());
}
