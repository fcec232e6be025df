//! The caller's side with this project's own plugin, which is loaded as any other.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use hlo::{ArrayLiteral, Buffer};
use hlo_pjrt_host::{Client, Code, Plugin};

/// Where cargo puts the plugin, on which this crate's tests depend.
fn file() -> String {
    let beside = std::env::current_exe().unwrap();
    beside.with_file_name("libhlo_pjrt_plugin.so").to_str().unwrap().to_owned()
}

fn client() -> Arc<Client> {
    Client::new(Plugin::load(&file()).unwrap()).unwrap()
}

fn module(text: &str) -> hlo::Module {
    let parsed = hlo_parser::parse_module(text, &hlo_parser::ParseOptions::default());
    parsed.module.unwrap_or_else(|| panic!("{:?}", parsed.diagnostics))
}

fn array(dims: &[i64], buffer: Buffer) -> ArrayLiteral {
    ArrayLiteral { dims: dims.into(), buffer: buffer.into() }
}

#[test]
fn programs_compile_and_run() {
    let client = client();
    assert_eq!(client.platform().name, "cpu");
    let program = module(
        "HloModule m\nENTRY e { x = f32[2,3] parameter(0)\n p = pred[2] parameter(1)\n t = f32[3,2] transpose(x), dimensions={1,0}\n n = s4[3,2] convert(t)\n ROOT r = (f32[3,2], s4[3,2], pred[2]) tuple(t, n, p) }",
    );
    let executable = client.compile_hlo(&program, false).unwrap();
    let x = array(&[2, 3], Buffer::F32(vec![1.0, 2.0, 3.0, -4.0, 5.0, 6.0]));
    let p = array(&[2], Buffer::Pred(vec![true, false]));
    // Twice: no argument is given away.
    for _ in 0..2 {
        let results = executable.execute(&[&x, &p]).unwrap();
        assert_eq!(*results[0].buffer, Buffer::F32(vec![1.0, -4.0, 2.0, 5.0, 3.0, 6.0]));
        assert_eq!(results[0].dims[..], [3, 2]);
        let narrow: Vec<i8> = match &*results[1].buffer {
            Buffer::S4(v) => v.iter().map(|x| x.get()).collect(),
            other => panic!("{other:?}"),
        };
        assert_eq!(narrow, [1, -4, 2, 5, 3, 6]);
        assert_eq!(*results[2].buffer, Buffer::Pred(vec![true, false]));
    }
}

#[test]
fn a_tuple_of_arguments_is_one_parameter() {
    let program = module(
        "HloModule m\nENTRY e { t = (s32[2], s32[2]) parameter(0)\n a = s32[2] get-tuple-element(t), index=0\n b = s32[2] get-tuple-element(t), index=1\n ROOT r = s32[2] subtract(a, b) }",
    );
    let [a, b] = [vec![5, 7], vec![1, 9]].map(|v| array(&[2], Buffer::S32(v)));
    match client().compile_hlo(&program, true) {
        Ok(executable) => {
            let results = executable.execute(&[&a, &b]).unwrap();
            assert_eq!(*results[0].buffer, Buffer::S32(vec![4, -2]));
        }
        // A plugin may say that it does not.
        Err(error) => assert_eq!(error.code, Code::Unimplemented, "{error}"),
    }
}

#[test]
fn failures_are_errors() {
    let code = |path: &str| Plugin::load(path).unwrap_err().code;
    assert_eq!(code("/nonexistent/plugin.so"), Code::NotFound);
    let none = Plugin::load("libm.so.6").unwrap_err();
    assert_eq!(none.code, Code::NotFound, "{none}");
    let client = client();
    let error = client.compile("abacus", b"", false).unwrap_err();
    assert_eq!(error.code, Code::Unimplemented);
    assert!(
        error.message.starts_with("PJRT_Client_Compile: ") && error.message.contains("abacus"),
        "{error}"
    );
    let error = client.compile("hlo", b"\xff\xff", false).unwrap_err();
    assert_eq!(error.code, Code::InvalidArgument, "{error}");
    let program = module("HloModule m\nENTRY e { x = f32[2] parameter(0)\n ROOT r = f32[2] negate(x) }");
    let executable = client.compile_hlo(&program, false).unwrap();
    assert_eq!(executable.execute(&[]).unwrap_err().code, Code::InvalidArgument);
    let other = array(&[3], Buffer::F32(vec![0.0; 3]));
    assert_eq!(executable.execute(&[&other]).unwrap_err().code, Code::InvalidArgument);
}

/// Set for a process that ends so long after its client is there.
const EXIT_AFTER_MS: &str = "HLO_TEST_EXIT_AFTER_MS";

/// What it exits with.
const STATUS: i32 = 7;

/// Not a test but the process of the next one.
#[test]
fn exits_with_a_client() {
    let Ok(after) = std::env::var(EXIT_AFTER_MS) else { return };
    let _client = client();
    std::thread::sleep(std::time::Duration::from_millis(after.parse().unwrap()));
    std::process::exit(STATUS);
}

/// A client has the code generator made ready in the background: `exit` must leave LLVM's objects to it.
#[test]
fn the_process_may_end_while_the_library_compiles() {
    for after in (0..32).chain(0..32) {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "exits_with_a_client"]).env(EXIT_AFTER_MS, after.to_string());
        let output = child.output().unwrap();
        assert_eq!(output.status.code(), Some(STATUS), "after {after} ms: {output:?}");
    }
}
