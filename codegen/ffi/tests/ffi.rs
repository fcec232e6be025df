//! Handlers in shared libraries, compiled here: by `cc` from plain C, and by `g++` against the headers of
//! every jaxlib that is found (`HLO_FFI_INCLUDE`, a list of folders separated by `:`, or the one that
//! `python3` imports). Where there is no compiler or no jaxlib, a test says that it skips.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says what it skips"
)]

use std::path::{Path, PathBuf};
use std::process::Command;

use hlo::{ArrayLiteral, Buffer};
use hlo_client::custom_call::CustomCalls;
use hlo_client::{Client, ClientOptions, Code, CompileOptions, Error, ExecuteOptions};
use hlo_ffi::{Library, abi};

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

/// Folders with XLA's headers.
fn includes() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = match std::env::var("HLO_FFI_INCLUDE") {
        Ok(list) => list.split(':').map(PathBuf::from).collect(),
        Err(_) => {
            let script =
                "import os, jaxlib; print(os.path.join(os.path.dirname(jaxlib.__file__), 'include'))";
            let output = Command::new("python3").args(["-c", script]).output();
            let output = output.ok().filter(|output| output.status.success());
            let path =
                |output: std::process::Output| String::from_utf8_lossy(&output.stdout).trim().to_owned();
            output.map(path).map(PathBuf::from).into_iter().collect()
        }
    };
    found.retain(|folder| folder.join("xla/ffi/api/c_api.h").exists());
    if found.is_empty() {
        eprintln!("skipped: no jaxlib with XLA's headers (HLO_FFI_INCLUDE names its folder `include`)");
    }
    found
}

/// Compiles a file, if there is a compiler.
fn compile(compiler: &str, file: &str, to: &Path, more: &[&str]) -> bool {
    let mut command = Command::new(compiler);
    command.args(["-O1", "-w", "-o"]).arg(to).args(more).arg(tests().join(file));
    match command.status() {
        Ok(status) => {
            assert!(status.success(), "{compiler} {file}");
            true
        }
        Err(_) => {
            eprintln!("skipped: there is no {compiler}");
            false
        }
    }
}

fn library(folder: &Path, compiler: &str, file: &str, include: Option<&Path>) -> Option<Library> {
    let to = folder.join("handlers.so");
    let include = include.map(|folder| format!("-I{}", folder.display()));
    let mut flags = vec!["-shared", "-fPIC"];
    if compiler == "g++" {
        flags.push("-std=c++17");
    }
    flags.extend(include.as_deref());
    compile(compiler, file, &to, &flags).then(|| Library::load(to.to_str().unwrap()).unwrap())
}

/// Runs a program on clients of the interpreter and of the compiler, which have to agree to the bit.
fn run(custom_calls: &CustomCalls, text: &str, arguments: &[ArrayLiteral]) -> Result<Vec<Buffer>, Error> {
    let mut all: Vec<Result<Vec<Buffer>, Error>> = Vec::new();
    let options =
        || ClientOptions { custom_calls: custom_calls.clone(), threads: 2, ..ClientOptions::default() };
    let mut clients = vec![Client::interpreter(options()).unwrap()];
    let cpu = Client::cpu(options()).unwrap();
    // A build without LLVM compiles nothing.
    let anything = cpu.parse("HloModule m\n ENTRY e { ROOT r = f32[] constant(1) }").unwrap();
    if cpu.compile(&anything, &CompileOptions::default()).is_ok() {
        clients.push(cpu);
    }
    for client in clients {
        let run = || {
            let executable = client.compile(&client.parse(text)?, &CompileOptions::default())?;
            let buffers = arguments.iter().map(|a| client.buffer(a)).collect::<Result<Vec<_>, _>>()?;
            let buffers: Vec<&hlo_client::Buffer> = buffers.iter().collect();
            let results = executable
                .execute_with(&buffers, &ExecuteOptions { run_id: 7, ..ExecuteOptions::default() })?;
            results.iter().map(|r| Ok((*r.to_literal()?.buffer).clone())).collect()
        };
        all.push(run());
    }
    if let [one, two] = &all[..] {
        match (one, two) {
            (Ok(one), Ok(two)) => assert_eq!(one, two),
            (Err(one), Err(two)) => assert_eq!((one.code(), one.to_string()), (two.code(), two.to_string())),
            (one, two) => panic!("{one:?}\n{two:?}"),
        }
    }
    all.remove(0)
}

fn f32s(dims: &[i64], values: &[f32]) -> ArrayLiteral {
    ArrayLiteral::new(dims.into(), Buffer::F32(values.to_vec())).unwrap()
}

const FFI: &str = "api_version=API_VERSION_TYPED_FFI";

#[test]
fn structs_lie_as_in_xlas_headers() {
    let folder = tempfile::tempdir().unwrap();
    for include in includes() {
        let program = folder.path().join("probe");
        if !compile("g++", "probe.cc", &program, &[&format!("-I{}", include.display())]) {
            return;
        }
        let output = Command::new(&program).output().unwrap();
        let ours = |name: &str| {
            let found = abi::ALL.iter().chain(abi::ALL_OLDER).find(|s| s.0 == name);
            found.unwrap_or_else(|| panic!("{name} is missing"))
        };
        let mut checked = 0;
        let mut minor = 0;
        for line in String::from_utf8(output.stdout).unwrap().lines() {
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["version", "0", n] => minor = n.parse().unwrap(),
                ["size", name, size] => assert_eq!(ours(name).1.to_string(), size, "{name} of 0.{minor}"),
                ["at", name, field, offset] => {
                    let at = ours(name).2.iter().find(|(f, _)| f.trim_start_matches("r#") == field);
                    let at = at.unwrap_or_else(|| panic!("{name}.{field} of 0.{minor}"));
                    assert_eq!(at.1.to_string(), offset, "{name}.{field} of 0.{minor}");
                }
                ["declared", "XLA_FFI_CallFrame", size] => assert_eq!(abi::CALL_FRAME_SIZE.to_string(), size),
                ["declared", "XLA_FFI_Handler_Register_Args", size] => {
                    let expected =
                        if minor < 4 { abi::REGISTER_SIZE_0_3 } else { abi::REGISTER_SIZE_0_3 + 8 };
                    assert_eq!(expected.to_string(), size);
                }
                _ => panic!("{line}"),
            }
            checked += 1;
        }
        assert!((abi::OLDEST_MINOR..=abi::VERSION.1).contains(&minor), "0.{minor}");
        assert!(checked > 100, "{checked}");
        eprintln!("{checked} facts of 0.{minor}");
    }
}

#[test]
fn handlers_that_were_written_for_xla_run() {
    for include in includes() {
        let folder = tempfile::tempdir().unwrap();
        let Some(library) = library(folder.path(), "g++", "handlers.cc", Some(&include)) else { return };
        let calls = CustomCalls::new();
        for name in ["attributes", "reverse", "columns", "in_place", "context", "later"] {
            library.bind(name, name, &calls).unwrap();
        }
        library.bind("counts_alive", "counts_alive", &calls).unwrap();
        for name in ["original", "original_tuple", "with_status", "unified"] {
            library.bind(name, name, &calls).unwrap();
        }
        // Of those that register themselves, the one for another platform is left alone.
        assert_eq!(library.bind_registered(&calls).unwrap(), ["test.count"]);
        let count = "instantiate:count_instantiate+execute:count_execute";
        library.bind("count", count, &calls).unwrap();

        let attributes = |text: &str| {
            format!(
                "HloModule m\n ENTRY e {{ x = f32[2,2] parameter(0)\n ROOT y = f32[2,2] custom-call(x), custom_call_target=\"attributes\", {FFI}, \
                 backend_config={{axes = array<i64: 3, 4>, flip = true, nested = {{offset = 10 : i32}}, scale = 2.0 : f32, text = \"{text}\"}} }}"
            )
        };
        let x = f32s(&[2, 2], &[1.0, 2.0, 3.0, 4.0]);
        let right = attributes(r#"hello \"you\""#);
        assert_eq!(
            run(&calls, &right, std::slice::from_ref(&x)).unwrap(),
            [Buffer::F32(vec![-19.0, -21.0, -23.0, -25.0])]
        );
        let error = run(&calls, &attributes("other"), std::slice::from_ref(&x)).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
        assert!(error.to_string().contains("the text is another one"), "{error}");
        let fewer = right.replace("flip = true, ", "");
        let error = run(&calls, &fewer, std::slice::from_ref(&x)).unwrap_err();
        assert!(error.to_string().contains("Wrong number of attributes"), "{error}");

        let reverse = format!(
            "HloModule m\n ENTRY e {{ x = f32[2] parameter(0)\n t = token[] after-all()\n n = s32[3] parameter(1)\n \
             ROOT y = (s32[3], (token[], f32[2])) custom-call(x, t, n), custom_call_target=\"reverse\", {FFI} }}"
        );
        let n = ArrayLiteral::new([3].as_slice().into(), Buffer::S32(vec![7, 8, 9])).unwrap();
        let given = [f32s(&[2], &[1.5, 2.5]), n];
        let expected = [Buffer::S32(vec![7, 8, 9]), Buffer::F32(vec![1.5, 2.5])];
        assert_eq!(run(&calls, &reverse, &given).unwrap(), expected);
        let error = run(&calls, &reverse.replace("(x, t, n)", "(x, n)"), &given).unwrap_err();
        assert!(error.to_string().contains("not as many results as operands"), "{error}");

        let columns = format!(
            "HloModule m\n ENTRY e {{ x = f64[2,3] parameter(0)\n y = f64[2,3] add(x, x)\n ROOT s = f64[3]{{0}} custom-call(y), custom_call_target=\"columns\", \
             operand_layout_constraints={{f64[2,3]{{0,1}}}}, {FFI} }}"
        );
        let x =
            ArrayLiteral::new([2, 3].as_slice().into(), Buffer::F64(vec![1.0, 2.0, 3.0, 10.0, 20.0, 30.0]));
        assert_eq!(run(&calls, &columns, &[x.unwrap()]).unwrap(), [Buffer::F64(vec![22.0, 44.0, 66.0])]);
        let wrong = columns.replace("f64", "f32");
        let error = run(&calls, &wrong, &[f32s(&[2, 3], &[0.0; 6])]).unwrap_err();
        assert!(error.to_string().contains("columns"), "{error}");

        let in_place = format!(
            "HloModule m\n ENTRY e {{ x = f32[2] parameter(0)\n c = f32[2] custom-call(x), custom_call_target=\"in_place\", output_to_operand_aliasing={{{{}}: (0, {{}})}}, {FFI}\n \
             ROOT s = f32[2] add(c, x) }}"
        );
        assert_eq!(
            run(&calls, &in_place, &[f32s(&[2], &[1.0, 2.0])]).unwrap(),
            [Buffer::F32(vec![3.0, 4.0])]
        );

        let context = format!(
            "HloModule m\n ENTRY e {{ ROOT n = s64[] custom-call(), custom_call_target=\"context\", {FFI} }}"
        );
        assert_eq!(run(&calls, &context, &[]).unwrap(), [Buffer::S64(vec![7000])]);

        let later = |fails: bool| {
            format!(
                "HloModule m\n ENTRY e {{ x = f32[] parameter(0)\n ROOT y = f32[] custom-call(x), custom_call_target=\"later\", {FFI}, backend_config={{fails = {fails}}} }}"
            )
        };
        assert_eq!(run(&calls, &later(false), &[f32s(&[], &[4.0])]).unwrap(), [Buffer::F32(vec![5.0])]);
        let error = run(&calls, &later(true), &[f32s(&[], &[4.0])]).unwrap_err();
        assert_eq!(error.code(), Code::DataLoss, "{error}");

        state(&calls);
        untyped(&calls);
    }
}

/// Each call has a state of its own, which goes with the executable.
fn state(calls: &CustomCalls) {
    for target in ["count", "test.count"] {
        let text = format!(
            "HloModule m\n ENTRY e {{ a = s32[] custom-call(), custom_call_target=\"{target}\", custom_call_has_side_effect=true, {FFI}, backend_config={{from = 5 : i32}}\n \
             b = s32[] custom-call(), custom_call_target=\"{target}\", custom_call_has_side_effect=true, {FFI}, backend_config={{from = 50 : i32}}\n ROOT r = (s32[], s32[]) tuple(a, b) }}"
        );
        assert_eq!(run(calls, &text, &[]).unwrap(), [Buffer::S32(vec![5]), Buffer::S32(vec![50])]);
        let options = ClientOptions { custom_calls: calls.clone(), ..ClientOptions::default() };
        let client = Client::interpreter(options).unwrap();
        let executable = client.compile(&client.parse(&text).unwrap(), &CompileOptions::default()).unwrap();
        for n in 0..3 {
            let results = executable.execute(&[]).unwrap();
            assert_eq!(*results[1].to_literal().unwrap().buffer, Buffer::S32(vec![50 + n]));
        }
        if target == "test.count" {
            let error =
                run(calls, &text.replace(FFI, "api_version=API_VERSION_STATUS_RETURNING"), &[]).unwrap_err();
            assert!(error.to_string().contains("it needs API_VERSION_TYPED_FFI"), "{error}");
        }
        let error = run(calls, &text.replace("= 50", "= -1"), &[]).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
        assert!(error.to_string().contains("it counts from 0 at least"), "{error}");
        // Each state was freed with its executable, once.
        drop(executable);
        let alive = format!(
            "HloModule m\n ENTRY e {{ ROOT n = s32[] custom-call(), custom_call_target=\"counts_alive\", custom_call_has_side_effect=true, {FFI} }}"
        );
        assert_eq!(run(calls, &alive, &[]).unwrap(), [Buffer::S32(vec![0])]);
    }
}

fn untyped(calls: &CustomCalls) {
    let call = |target: &str, of: &str, result: &str, more: &str| {
        format!(
            "HloModule m\n ENTRY e {{ {of} ROOT r = {result} custom-call(x, y), custom_call_target=\"{target}\"{more} }}"
        )
    };
    let two = "x = f32[2] parameter(0)\n y = f32[2] parameter(1)\n";
    let given = [f32s(&[2], &[1.0, 2.0]), f32s(&[2], &[10.0, 20.0])];
    assert_eq!(
        run(calls, &call("original", two, "f32[2]", ""), &given).unwrap(),
        [Buffer::F32(vec![11.0, 22.0])]
    );
    let one = "x = f32[] parameter(0)\n y = f32[] parameter(1)\n";
    let given = [f32s(&[], &[3.0]), f32s(&[], &[0.0])];
    let results = run(calls, &call("original_tuple", one, "(f32[], f32[])", ""), &given).unwrap();
    assert_eq!(results, [Buffer::F32(vec![3.0]), Buffer::F32(vec![-3.0])]);
    let status = call("with_status", one, "f32[]", ", api_version=API_VERSION_STATUS_RETURNING");
    assert_eq!(run(calls, &status, &given).unwrap(), [Buffer::F32(vec![3.0])]);
    let error = run(calls, &status, &[f32s(&[], &[-3.0]), f32s(&[], &[0.0])]).unwrap_err();
    assert_eq!(error.code(), Code::Aborted);
    assert!(error.to_string().contains("it is negative"), "{error}");
    let unified = call(
        "unified",
        one,
        "s32[]",
        ", api_version=API_VERSION_STATUS_RETURNING_UNIFIED, backend_config=\"Abc\"",
    );
    assert_eq!(run(calls, &unified, &given).unwrap(), [Buffer::S32(vec![3 + 65])]);
}

#[test]
fn handlers_need_no_headers() {
    let folder = tempfile::tempdir().unwrap();
    let Some(library) = library(folder.path(), "cc", "plain.c", None) else { return };
    let calls = CustomCalls::new();
    for name in ["plain_bytes", "plain_double", "plain_failing", "plain_too_new", "plain_too_old"] {
        library.bind(name, name, &calls).unwrap();
    }
    let call = |target: &str, result: &str| {
        format!(
            "HloModule m\n ENTRY e {{ x = f32[3] parameter(0)\n ROOT y = {result} custom-call(x), custom_call_target=\"{target}\", {FFI} }}"
        )
    };
    let x = [f32s(&[3], &[1.0, -2.0, 4.0])];
    assert_eq!(
        run(&calls, &call("plain_double", "f32[3]"), &x).unwrap(),
        [Buffer::F32(vec![2.0, -4.0, 8.0])]
    );
    // Elements below 8 bits are packed, from the lowest bits on.
    let bytes = |from: &str, to: &str, x: Buffer| {
        let dims = [i64::try_from(x.len()).unwrap()];
        let text = format!(
            "HloModule m\n ENTRY e {{ x = {from} parameter(0)\n ROOT y = {to} custom-call(x), custom_call_target=\"plain_bytes\", {FFI} }}"
        );
        run(&calls, &text, &[ArrayLiteral::new(dims.as_slice().into(), x).unwrap()]).unwrap()
    };
    let s4s = |values: [i8; 5]| Buffer::S4(values.map(|x| hlo::small_int::S4::from_i64(x.into())).to_vec());
    assert_eq!(bytes("s4[5]", "u8[3]", s4s([1, 2, -1, 0, 5])), [Buffer::U8(vec![0x21, 0x0f, 5])]);
    assert_eq!(bytes("u8[3]", "s4[5]", Buffer::U8(vec![0x21, 0xcf, 5])), [s4s([1, 2, -1, -4, 5])]);
    for (target, result, code, says) in [
        ("plain_double", "(f32[3], f32[3])", Code::InvalidArgument, "one operand and one result"),
        ("plain_failing", "f32[3]", Code::ResourceExhausted, "there is nothing left"),
        ("plain_too_new", "f32[3]", Code::Unimplemented, "compiled for version 0.99"),
        ("plain_too_old", "f32[3]", Code::Unimplemented, "compiled for version 0.0"),
        ("plain_double", "s1[3]", Code::Unimplemented, "an array of s1"),
    ] {
        let error = run(&calls, &call(target, result), &x).unwrap_err();
        assert_eq!(error.code(), code, "{error}");
        assert!(error.to_string().contains(says) && error.to_string().contains(target), "{error}");
    }
    let missing = library.bind("other", "no_such_symbol", &calls).unwrap_err();
    assert_eq!(missing.code(), Code::NotFound);
    assert!(missing.to_string().contains("no_such_symbol"), "{missing}");
    assert_eq!(
        library.bind("other", "finally:plain_double", &calls).unwrap_err().code(),
        Code::InvalidArgument
    );
    assert_eq!(
        library.bind("plain_double", "plain_double", &calls).unwrap_err().code(),
        Code::FailedPrecondition
    );
}

/// An exception that leaves a handler ends the execution with an error; what lay in its frames is destroyed.
#[test]
fn exceptions_are_errors() {
    if !cfg!(all(target_arch = "x86_64", target_os = "linux")) {
        eprintln!("skipped: exceptions are caught on x86-64 alone");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let Some(library) = library(folder.path(), "g++", "throws.cc", None) else { return };
    let calls = CustomCalls::new();
    for name in ["throws_standard", "throws_number", "throws_untyped"] {
        library.bind(name, name, &calls).unwrap();
    }
    let x = [f32s(&[3], &[1.0, -2.0, 4.0])];
    // Again and again: nothing is left behind.
    for _ in 0..3 {
        for (target, version, says) in [
            ("throws_standard", FFI, "threw a C++ exception: out_of_range: row 7 of 5"),
            ("throws_number", FFI, "threw a C++ exception: i"),
            (
                "throws_untyped",
                "api_version=API_VERSION_ORIGINAL",
                "threw a C++ exception: runtime_error: no room",
            ),
        ] {
            let text = format!(
                "HloModule m\n ENTRY e {{ x = f32[3] parameter(0)\n ROOT y = f32[3] custom-call(x), custom_call_target=\"{target}\", {version} }}"
            );
            let error = run(&calls, &text, &x).unwrap_err();
            assert_eq!(error.code(), Code::Internal, "{error}");
            assert!(error.to_string().contains(says) && error.to_string().contains(target), "{error}");
        }
    }
}

#[test]
fn what_is_no_library_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    for (name, contents) in [("missing.so", None), ("text.so", Some("this is no library"))] {
        let path = folder.path().join(name);
        if let Some(contents) = contents {
            std::fs::write(&path, contents).unwrap();
        }
        let error = Library::load(path.to_str().unwrap()).unwrap_err();
        assert_eq!(error.code(), Code::NotFound);
        assert!(error.to_string().contains(name), "{error}");
    }
    assert_eq!(Library::load("a\0b").unwrap_err().code(), Code::InvalidArgument);
}
