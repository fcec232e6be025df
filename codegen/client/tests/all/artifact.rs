//! Programs that are compiled, kept as bytes, and loaded again.

use hlo_client::artifact::{MAGIC, info, is_artifact};
use hlo_client::exports::Library;
use hlo_client::{Client, ClientOptions, Code, CompileOptions, ExecuteOptions};

use crate::common::{Counting, adds, arguments, arrays, cpu, programs};

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

#[test]
fn what_was_compiled_is_kept_without_compiling_again() {
    let text = "HloModule m\nENTRY e { x = f32[4] parameter(0) ROOT y = f32[4] multiply(x, x) }";
    for (keep_artifacts, compilations) in [(true, 1), (false, 2)] {
        let backend = Counting::new(1);
        let options = ClientOptions { keep_artifacts, ..ClientOptions::default() };
        let client = Client::with_backend(backend.clone(), options).unwrap();
        let program = client.parse(text).unwrap();
        client.compile(&program, &CompileOptions::default()).unwrap();
        let artifact = client.compile_artifact(&program, &CompileOptions::default()).unwrap();
        assert_eq!(backend.compilations(), compilations);
        assert_eq!(client.load(&artifact).unwrap().result_shapes().len(), 1);
    }
}

/// An artifact with a checksum that fits what is in it now.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    use sha2::{Digest, Sha256};
    const PREFIX: usize = 48;
    if bytes.len() >= PREFIX {
        let hash = Sha256::digest(&bytes[PREFIX..]);
        bytes[16..PREFIX].copy_from_slice(&hash);
    }
    bytes
}

/// One of the ways in which bytes go wrong, by a number.
fn mutated(bytes: &[u8], random: &mut u64) -> Vec<u8> {
    let mut next = |bound: usize| {
        *random = hlo::elided::splitmix64(*random);
        (*random >> 33) as usize % bound.max(1)
    };
    let mut bytes = bytes.to_vec();
    // Most of what a reader looks at is at the beginning.
    let reach = if next(4) == 0 { bytes.len() } else { bytes.len().min(4096) };
    for _ in 0..=next(3) {
        let at = next(reach.min(bytes.len()));
        match next(6) {
            0 => bytes[at] ^= 1 << next(8),
            1 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][next(5)],
            2 => bytes.truncate(at.max(1)),
            3 => drop(bytes.remove(at)),
            4 => bytes.insert(at, next(256) as u8),
            _ => {
                let (from, length) = (next(bytes.len()), next(64));
                let piece: Vec<u8> = bytes[from..].iter().copied().take(length).collect();
                bytes.splice(at..at, piece);
            }
        }
    }
    bytes
}

/// Two thousand ways of going wrong: nothing that differs is taken for what it was, and whatever has a
/// checksum that fits is read or refused without a panic. (Nothing of the latter is run: an artifact is
/// code.)
#[test]
fn two_thousand_mutations_are_refused_or_read_without_a_panic() {
    let client = cpu();
    let program = client.parse(&adds(100, 3)).unwrap();
    let whole = client.compile_artifact(&program, &CompileOptions::default()).unwrap();
    assert_eq!(sealed(whole.clone()), whole);
    let (mut random, mut read) = (7, 0);
    for n in 0..1000 {
        let changed = mutated(&whole, &mut random);
        if changed == whole {
            continue;
        }
        let error = info(&changed).err().or_else(|| client.load(&changed).err());
        let code = error.unwrap_or_else(|| panic!("mutation {n} was accepted")).code();
        assert!(matches!(code, Code::DataLoss | Code::FailedPrecondition), "mutation {n}: {code:?}");
        match client.load(&sealed(changed)) {
            Ok(_) => read += 1,
            Err(error) => assert!(!error.to_string().contains("panicked"), "mutation {n}: {error}"),
        }
    }
    assert!(read < 900, "{read} of 1000 were read");
}

/// The same of a library, whose directory says which bytes are whose.
#[test]
fn mutations_of_a_library_are_refused_or_read_without_a_panic() {
    let client = cpu();
    let rows = (0..32).map(|n| n.to_string()).collect::<Vec<_>>().join(", ");
    let program = |opcode: &str| {
        let text = format!(
            "HloModule m\nENTRY e {{ x = f32[32] parameter(0)  c = f32[32] constant({{{rows}}})  ROOT r = f32[32] {opcode}(x, c) }}"
        );
        client.parse(&text).unwrap()
    };
    let (sum, product) = (program("add"), program("multiply"));
    let functions = [("sum", &sum), ("product", &product)];
    let whole = Library::artifact(&client, &functions, &CompileOptions::default()).unwrap();
    let (mut random, mut read) = (11, 0);
    for n in 0..500 {
        let changed = mutated(&whole, &mut random);
        if changed == whole {
            continue;
        }
        let code = Library::load(&client, &changed).unwrap_err().code();
        assert!(matches!(code, Code::DataLoss | Code::FailedPrecondition), "mutation {n}: {code:?}");
        match Library::load(&client, &sealed(changed)) {
            Ok(_) => read += 1,
            Err(error) => assert!(!error.to_string().contains("panicked"), "mutation {n}: {error}"),
        }
    }
    assert!(read < 100, "{read} of 500 were read");
}
