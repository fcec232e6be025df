//! Every program of the repository, and of the shared corpus where a checkout has it beside, as protocol buffers and back.

use std::fs;
use std::path::{Path, PathBuf};

use hlo::print::{PrintOptions, print_module};
use hlo::{Module, equal::modules_equal};
use hlo_parser::{ParseOptions, parse_module};
use hlo_proto::{Contents, Encoding, Kind, ReadOptions, WriteError, read, write};

/// Programs below a folder; none if there is no such folder.
fn programs(folder: &Path) -> Vec<PathBuf> {
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
    found
}

fn there_and_back(module: &Module, kind: Kind, encoding: Encoding) -> Result<Module, String> {
    let mut bytes = Vec::new();
    write(&Contents::of(module), kind, encoding, &mut bytes).map_err(|e| match e {
        WriteError::Unsupported(found) => format!("U {}", found.iter().next().map_or("", |d| &d.message)),
        other => format!("{other:?}"),
    })?;
    assert_eq!(hlo_proto::sniff(&bytes), Some((kind, encoding)));
    let found = read(&bytes, kind, encoding, &ReadOptions::default());
    let message = || found.diagnostics.iter().map(|d| d.message.clone()).collect::<Vec<_>>().join("; ");
    found.document.as_ref().map(|d| d.module.clone()).ok_or_else(message)
}

#[derive(Default, Debug)]
struct Count {
    programs: usize,
    same: usize,
    normal: usize,
    unsupported: usize,
}

/// What XLA prints of a module, with everything that it says.
fn normal(module: &Module) -> String {
    print_module(module, &PrintOptions::LONG)
}

fn check(folder: &Path) -> Count {
    let mut count = Count::default();
    let mut failures = Vec::new();
    for path in programs(folder) {
        let Ok(text) = fs::read_to_string(&path) else { continue };
        let Some(module) = parse_module(&text, &ParseOptions::default()).module else { continue };
        count.programs += 1;
        for (kind, encoding) in [(Kind::Module, Encoding::Binary), (Kind::Proto, Encoding::Text)] {
            let again = match there_and_back(&module, kind, encoding) {
                Ok(again) => again,
                Err(e) if e.starts_with("U ") => {
                    count.unsupported += usize::from(kind == Kind::Module);
                    if kind == Kind::Module {
                        println!("{}: {e}", path.display());
                    }
                    continue;
                }
                Err(e) => {
                    failures.push(format!("{}: {e}", path.display()));
                    continue;
                }
            };
            let equal = modules_equal(&module, &again);
            let same_text = print_module(&module, &PrintOptions::source(&module))
                == print_module(&again, &PrintOptions::source(&again));
            if normal(&module) != normal(&again) {
                failures.push(format!(
                    "{}: {:?} {}",
                    path.display(),
                    encoding,
                    equal.as_ref().err().map_or("?".into(), |d| d.to_string())
                ));
            } else if kind == Kind::Module {
                count.same += usize::from(same_text);
                count.normal += usize::from(!same_text);
                if !same_text && std::env::var_os("SHOW").is_some() {
                    println!("{}: {}", path.display(), equal.err().map_or("?".into(), |d| d.to_string()));
                }
            }
        }
    }
    println!("{}: {count:?}", folder.display());
    for f in failures.iter().take(60) {
        println!("FAIL {f}");
    }
    assert!(failures.is_empty(), "{} failures", failures.len());
    count
}

#[test]
fn repository() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance");
    for folder in ["filetests", "corpus", "crashers", "faults"] {
        check(&root.join(folder));
    }
}

#[test]
fn shared() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    if !folder.is_dir() {
        println!("skipped: there is no {}", folder.display());
        return;
    }
    check(&folder);
}
