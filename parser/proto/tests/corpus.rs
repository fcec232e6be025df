//! Every program of the repository, and of the shared corpus where a checkout has it beside, as protocol
//! buffers and back.

#![allow(clippy::print_stdout, reason = "says how many programs there were, and what it skips")]

use std::fs;
use std::path::{Path, PathBuf};

use hlo::Module;
use hlo::print::{PrintOptions, print_module};
use hlo_parser::{ParseOptions, parse_module};
use hlo_proto::{Contents, Encoding, Kind, ReadOptions, WriteError, read, sniff, write};

/// Programs below a folder; none if there is no such folder.
fn programs(folder: &Path) -> Vec<(PathBuf, Module)> {
    let mut found = Vec::new();
    let mut pending = vec![folder.to_owned()];
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|e| e == "hlo" || e == "txt") {
                found.push(path);
            }
        }
    }
    found.sort();
    let parsed = found.into_iter().filter_map(|path| {
        let text = fs::read_to_string(&path).ok()?;
        Some((path, parse_module(&text, &ParseOptions::default()).module?))
    });
    parsed.collect()
}

/// The module after being written and read; `None` if there is no field for something.
fn there_and_back(module: &Module, kind: Kind, encoding: Encoding) -> Result<Option<Module>, String> {
    let mut bytes = Vec::new();
    match write(&Contents::of(module), kind, encoding, &mut bytes) {
        Err(WriteError::Unsupported(_)) => return Ok(None),
        written => written.map_err(|e| format!("{e:?}"))?,
    }
    if sniff(&bytes) != Some((kind, encoding)) {
        return Err(format!("taken for {:?}", sniff(&bytes)));
    }
    let found = read(&bytes, kind, encoding, &ReadOptions::default());
    let document = found.document.ok_or_else(|| format!("not read: {:?}", found.diagnostics))?;
    Ok(Some(document.module))
}

/// How programs came back.
#[derive(Default, PartialEq, Eq, Debug)]
struct Count {
    programs: usize,
    /// Printed in the style of the text they were read from, they are the same to the byte.
    same: usize,
    /// Their text spells out defaults, or leaves out those that XLA writes: printed as XLA does they are the
    /// same.
    normal: usize,
    unsupported: usize,
}

fn check(folder: &Path) -> Count {
    let mut count = Count::default();
    let mut failures = Vec::new();
    for (path, module) in programs(folder) {
        count.programs += 1;
        // Text takes longer, and goes the same way between messages and modules.
        let text = count.programs % 7 == 0;
        let forms = [
            (Kind::Module, Encoding::Binary),
            (Kind::Proto, Encoding::Text),
            (Kind::Snapshot, Encoding::Binary),
        ];
        for (kind, encoding) in forms.into_iter().take(if text { 3 } else { 1 }) {
            let again = match there_and_back(&module, kind, encoding) {
                Ok(Some(again)) => again,
                Ok(None) => {
                    count.unsupported += usize::from(kind == Kind::Module);
                    continue;
                }
                Err(e) => {
                    failures.push(format!("{}: {e}", path.display()));
                    continue;
                }
            };
            let source = |m: &Module| print_module(m, &PrintOptions::source(m));
            let normal = |m: &Module| print_module(m, &PrintOptions::LONG);
            if source(&module) == source(&again) {
                count.same += usize::from(kind == Kind::Module);
            } else if normal(&module) == normal(&again) {
                count.normal += usize::from(kind == Kind::Module);
            } else {
                let difference = hlo::equal::modules_equal(&module, &again);
                failures.push(format!("{}: {encoding:?}: {difference:?}", path.display()));
            }
        }
    }
    println!("{}: {count:?}", folder.display());
    assert!(failures.is_empty(), "{} programs change:\n{}", failures.len(), failures.join("\n"));
    count
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn recorded_programs_come_back_to_the_byte() {
    let Count { programs, same, .. } = check(&root().join("conformance/corpus"));
    assert!(programs > 600);
    assert_eq!(same, programs);
}

#[test]
fn tests_come_back() {
    for folder in ["filetests", "crashers", "faults"] {
        let Count { programs, same, normal, unsupported } = check(&root().join("conformance").join(folder));
        assert_eq!(same + normal + unsupported, programs);
        // Few are in the way of that: a table that lost a field would show here.
        assert!(programs > 0 && unsupported <= 1 && normal * 40 <= programs, "{folder}");
    }
}

#[test]
fn the_shared_corpus_comes_back() {
    let folder = root().join("../shared/corpus");
    if !folder.is_dir() {
        println!("skipped: there is no {}", folder.display());
        return;
    }
    let Count { programs, unsupported, normal, .. } = check(&folder);
    assert!(programs > 3000 && unsupported <= 2 && normal <= 2);
}
