//! Programs that are compiled, kept as bytes, and loaded again.

use hlo_client::artifact::{MAGIC, info, is_artifact};
use hlo_client::{Code, CompileOptions, ExecuteOptions};

use crate::common::{adds, arguments, arrays, cpu, programs};

/// Steps that a program of the corpora may take.
const FUEL: u64 = 100_000;

#[test]
fn what_was_kept_computes_the_same() {
    let client = cpu();
    let (mut compared, mut loaded_alike) = (0, 0);
    let folders = ["../../conformance/filetests", "../../conformance/corpus"];
    for (path, program) in folders.into_iter().flat_map(programs) {
        let options = CompileOptions { fallback: true, ..CompileOptions::default() };
        let Ok(executable) = client.compile(&program, &options) else { continue };
        let artifact = client.compile_artifact(&program, &options).unwrap_or_else(|e| panic!("{path}: {e}"));
        let loaded = client.load(&artifact).unwrap_or_else(|e| panic!("{path}: {e}"));
        loaded_alike += 1;
        let arguments = arguments(&client, &executable);
        let arguments: Vec<_> = arguments.iter().collect();
        let run = ExecuteOptions { fuel: Some(FUEL), ..ExecuteOptions::default() };
        match (executable.execute_with(&arguments, &run), loaded.execute_with(&arguments, &run)) {
            (Ok(a), Ok(b)) => {
                assert!(
                    arrays(&a).iter().zip(&arrays(&b)).all(|(a, b)| same_bits(a, b)),
                    "{path}: the loaded program computes something else"
                );
                compared += 1;
            }
            (Err(a), Err(b)) => assert_eq!(a.code(), b.code(), "{path}: {a} and {b}"),
            (a, b) => panic!("{path}: {a:?} and {b:?}"),
        }
    }
    assert!(loaded_alike > 150 && compared > 150, "{loaded_alike} were loaded, {compared} compared");
}

fn same_bits(a: &hlo::ArrayLiteral, b: &hlo::ArrayLiteral) -> bool {
    use hlo_codegen::runtime::raw::bytes_of;
    a.dims == b.dims && bytes_of(&a.buffer) == bytes_of(&b.buffer)
}

#[test]
fn artifacts_are_the_same_bytes_each_time() {
    let client = cpu();
    let program = client.parse(&adds(1000, 3)).unwrap();
    let make = || client.compile_artifact(&program, &CompileOptions::default()).unwrap();
    let first = make();
    assert!(is_artifact(&first) && first.starts_with(&MAGIC));
    assert_eq!(first, make());
    let info = info(&first).unwrap();
    assert!(info.code_bytes > 0 && info.build.starts_with("hlo "), "{info:?}");
}

#[test]
fn damage_is_found() {
    let client = cpu();
    let program = client.parse(&adds(8, 3)).unwrap();
    let whole = client.compile_artifact(&program, &CompileOptions::default()).unwrap();
    for length in 0..whole.len() {
        let error = client.load(&whole[..length]).unwrap_err();
        assert_eq!(error.code(), Code::DataLoss, "cut to {length}: {error}");
    }
    for at in 0..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 1 << (at % 8);
        let error = client.load(&changed).unwrap_err();
        assert!(
            matches!(error.code(), Code::DataLoss | Code::FailedPrecondition),
            "changed at {at}: {error}"
        );
    }
    client.load(&whole).unwrap();
}

#[test]
fn other_processors_are_refused_by_name() {
    let client = cpu();
    let program = client.parse(&adds(8, 3)).unwrap();
    let options = CompileOptions { cpu: "z80".into(), ..CompileOptions::default() };
    let error = client.compile(&program, &options).unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
    assert!(error.to_string().contains("z80"), "{error}");
}
