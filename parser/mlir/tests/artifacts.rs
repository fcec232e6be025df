//! Artifacts that jaxlib made of programs of ours (`artifacts/make.py`): they are read as jaxlib reads them,
//! written again at every version that has what they have, and exports give their artifacts.

use std::path::PathBuf;

use hlo_mlir::bytecode::{self, Version, export};
use hlo_mlir::ir::Module;
use hlo_mlir::print::{PrintOptions, print};
use hlo_mlir::text::{ReadOptions, parse};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/artifacts")
}

fn file(name: &str) -> Vec<u8> {
    std::fs::read(folder().join(name)).expect("the file is in the tree")
}

/// Names and contents of all artifacts.
fn artifacts() -> Vec<(String, Vec<u8>)> {
    let mut names: Vec<String> = std::fs::read_dir(folder())
        .expect("the folder is in the tree")
        .map(|entry| entry.expect("the folder can be read").file_name().to_string_lossy().into_owned())
        .filter(|name| name.ends_with(".bc"))
        .collect();
    names.sort();
    assert!(names.len() > 8);
    names.into_iter().map(|name| (name.clone(), file(&name))).collect()
}

fn text(module: &Module) -> String {
    print(module, &PrintOptions::default())
}

/// The text of what jaxlib reads from an artifact.
fn expected(name: &str) -> String {
    let program = name.split('.').next().expect("names have parts");
    let source = String::from_utf8(file(&format!("{program}.mlir"))).expect("text");
    text(&parse(&source, &ReadOptions::default()).expect("jaxlib's text is read"))
}

#[test]
fn bytecode_and_text_give_one_tree() {
    for (name, bytes) in artifacts() {
        let module = bytecode::read(&bytes).unwrap_or_else(|errors| panic!("{name}: {errors:?}"));
        assert_eq!(text(&module), expected(&name), "{name}");
    }
}

/// Versions after which something changed, and the ends.
const VERSIONS: [&str; 16] = [
    "0.9.0", "0.10.0", "0.12.0", "0.14.0", "0.15.0", "0.20.0", "1.0.0", "1.3.0", "1.5.0", "1.6.0", "1.10.0",
    "1.11.0", "1.13.0", "1.17.0", "1.18.0", "1.20.0",
];

#[test]
fn what_is_written_is_read_alike() {
    for (name, bytes) in artifacts() {
        let module = bytecode::read(&bytes).expect("read by another test");
        let mut written = Vec::new();
        for version in VERSIONS {
            let version: Version = version.parse().expect("a version");
            match bytecode::write(&module, version) {
                Ok(again) => {
                    let header = bytecode::header(&again).expect("a header");
                    assert_eq!((header.version, header.format), (Some(version), version.format()));
                    let read = bytecode::read(&again)
                        .unwrap_or_else(|errors| panic!("{name} {version}: {errors:?}"));
                    assert_eq!(text(&read), text(&module), "{name} {version}");
                    assert_eq!(
                        bytecode::write(&read, version).expect("written once"),
                        again,
                        "{name} {version}"
                    );
                    written.push(version);
                }
                Err(errors) => {
                    for error in &errors {
                        assert_eq!(error.code.as_str(), "U0101", "{name} {version}: {error:?}");
                        assert!(error.message.contains("came with version"), "{}", error.message);
                    }
                }
            }
        }
        // From the versions' log: results of other types and records of newer operations.
        let first = match name.split('.').next().expect("names have parts") {
            "records" => "1.10.0",
            "sharded" => "1.11.0",
            _ => "0.9.0",
        };
        let expected: Vec<Version> = VERSIONS
            .iter()
            .map(|v| v.parse().expect("a version"))
            .filter(|v| *v >= first.parse().expect("a version"))
            .collect();
        assert_eq!(written, expected, "{name}");
    }
}

#[test]
fn what_a_version_lacks_is_refused_by_name() {
    let module = bytecode::read(&file("records.1.17.0.bc")).expect("read by another test");
    let errors = bytecode::write(&module, Version::new(1, 0, 0)).expect_err("the program is newer");
    let messages: Vec<&str> = errors.iter().map(|e| e.message.as_str()).collect();
    for part in [
        "result_accuracy of stablehlo.exponential came with version 1.9.0, and the target is 1.0.0",
        "algorithm of stablehlo.dot_general came with version 1.6.0, and the target is 1.0.0",
        "stablehlo.custom_call of the typed interface came with version 1.3.0, and the target is 1.0.0",
    ] {
        assert!(messages.contains(&part), "{part}: {messages:#?}");
    }
    let paths: Vec<&str> = errors.iter().flat_map(|e| &e.notes).map(String::as_str).collect();
    assert!(
        paths.iter().any(|path| path.contains("@main / stablehlo.exponential (operation 3)")),
        "{paths:#?}"
    );
    for version in ["0.8.0", "1.21.0"] {
        let errors = bytecode::write(&module, version.parse().expect("a version")).expect_err("out of range");
        let message = &errors.iter().next().expect("an error").message;
        assert_eq!(*message, format!("artifacts of versions 0.9.0 to 1.20.0 are written, not of {version}"));
    }
}

#[test]
fn exports_have_an_artifact_and_types() {
    let bytes = file("export.bin");
    assert!(export::is_export(&bytes) && !bytecode::is_bytecode(&bytes));
    let found = export::read(&bytes).expect("an export");
    let array = |shape: &[&str], element| export::Aval::Array {
        shape: shape.iter().map(|&s| s.to_owned()).collect(),
        element,
    };
    assert_eq!(found.name, "<lambda>");
    assert_eq!(found.platforms, ["cpu"]);
    assert_eq!(found.devices, 1);
    assert_eq!(found.calling_convention_version, 10);
    assert_eq!(found.inputs, [array(&["3", "4"], "f32"), array(&["4", "2"], "f32")]);
    assert_eq!(found.outputs, [array(&["3", "2"], "f32"), array(&[], "f32")]);
    assert_eq!(found.kept_inputs, [0, 1]);
    assert!(!found.has_vjp && !found.uses_global_constants);
    let module = bytecode::read(&bytes[found.artifact]).expect("an artifact");
    assert!(text(&module).contains("stablehlo.sine"));

    let bytes = file("export_polymorphic.bin");
    let found = export::read(&bytes).expect("an export");
    assert_eq!(found.inputs, [array(&["n", "4"], "i8")]);
    let module = bytecode::read(&bytes[found.artifact]).expect("an artifact");
    assert!(text(&module).contains("tensor<?x4xi8>"));
}
