//! StableHLO's golden artifacts, one a version: `HLO_STABLEHLO_DIR` is a folder with its
//! `stablehlo/tests/vhlo/*.mlir.bc`.

use std::path::PathBuf;

use hlo_mlir::bytecode::{self, Version};
use hlo_mlir::ir::Module;
use hlo_mlir::print::{PrintOptions, print};

/// The artifacts, with their names. None if they are not here.
fn artifacts() -> Vec<(String, Vec<u8>)> {
    let Some(folder) = std::env::var_os("HLO_STABLEHLO_DIR").map(PathBuf::from) else {
        skipped();
        return Vec::new();
    };
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .expect("the folder can be read")
        .map(|entry| entry.expect("the folder can be read").path())
        .filter(|path| path.to_string_lossy().ends_with(".mlir.bc"))
        .collect();
    files.sort();
    let name = |path: &PathBuf| path.file_name().expect("a file has a name").to_string_lossy().into_owned();
    files.iter().map(|path| (name(path), std::fs::read(path).expect("the file can be read"))).collect()
}

#[test]
fn every_version_is_read() {
    for (name, bytes) in artifacts() {
        let header = bytecode::header(&bytes).expect("a header");
        let result = bytecode::read(&bytes);
        if name.starts_with("invalid") {
            assert!(result.is_err(), "{name}");
            continue;
        }
        match result {
            Ok(module) => println!("{name}: {header:?}, {} operations", module.operation_count()),
            Err(errors) => panic!("{name}: {errors:?}"),
        }
    }
}

#[test]
fn every_version_round_trips() {
    for (name, bytes) in artifacts() {
        if name.starts_with("invalid") {
            continue;
        }
        let module = bytecode::read(&bytes).expect("read by another test");
        let text = |module: &Module| print(module, &PrintOptions::default());
        let own = bytecode::header(&bytes).expect("a header").version.expect("an artifact");
        for version in [own, Version::NEWEST] {
            let again =
                bytecode::write(&module, version).unwrap_or_else(|errors| panic!("{name}: {errors:?}"));
            let read = bytecode::read(&again).unwrap_or_else(|errors| panic!("{name}: {errors:?}"));
            assert_eq!(text(&read), text(&module), "{name} at {version}");
        }
    }
}

#[allow(clippy::print_stderr, reason = "a test that does not run says so")]
fn skipped() {
    eprintln!("skipped: HLO_STABLEHLO_DIR is not set");
}
