//! The programs as people start them: exit codes, what goes where, bad files.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use libtest_mimic::Trial;
use tempfile::TempDir;

use crate::function;

const ADD: &str = "HloModule add\n\nENTRY e {\n  a = f32[2]{0} parameter(0)\n  b = f32[2]{0} parameter(1)\n  ROOT s = f32[2]{0} add(a, b)\n}\n";
const LOOP_THAT_COUNTS: &str = "HloModule counts

c {
  p = s64[] parameter(0)
  z = s64[] constant(-1)
  ROOT r = pred[] compare(p, z), direction=NE
}

b {
  p = s64[] parameter(0)
  o = s64[] constant(1)
  ROOT r = s64[] add(p, o)
}

ENTRY e {
  a = s64[] constant(0)
  ROOT w = s64[] while(a), condition=c, body=b
}
";

const LOOP: &str = "HloModule m\n\nc {\n  p = f32[] parameter(0)\n  ROOT t = pred[] constant(true)\n}\n\nb {\n  ROOT p = f32[] parameter(0)\n}\n\nENTRY e {\n  p = f32[] parameter(0)\n  ROOT w = f32[] while(p), condition=c, body=b\n}\n";

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        function("cli/help and usage", help_and_usage),
        function("cli/exit codes of bad programs", exit_codes),
        function("cli/verify goes on after a bad file", verify_goes_on),
        function("cli/verify json", verify_json),
        function("cli/print round trip", print_round_trip),
        function("cli/a closed pipe is quiet", closed_pipe),
        function("cli/run prints results", run_prints),
        function("cli/run reads and writes npz", run_npz),
        function("cli/run refuses npz that do not fit", run_bad_npz),
        function("cli/run stops at limits", run_limits),
        function("cli/a check without memory is no mismatch", check_without_memory),
        function("cli/what is open is no mismatch", run_undecided),
        function("cli/limits of the process", limits_of_the_process),
        function("cli/run json", run_json),
        function("cli/made inputs do not depend on threads", threads),
        function("cli/cases", cases),
        function("cli/explain", explain),
        function("cli/completions", completions),
        function("cli/no colour in a pipe", no_colour),
        function("cli/run_hlo_module", run_hlo_module),
    ]
}

pub(crate) struct Dir(TempDir);

impl Dir {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

pub(crate) fn hlo(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_hlo")).args(args).output().unwrap()
}

fn code(o: &Output) -> i32 {
    o.status.code().unwrap_or(-1)
}

pub(crate) fn out(o: &Output) -> String {
    String::from_utf8_lossy(&o.stdout).into_owned()
}

pub(crate) fn err(o: &Output) -> String {
    String::from_utf8_lossy(&o.stderr).into_owned()
}

#[track_caller]
pub(crate) fn ends(o: &Output, expected: i32) {
    assert_eq!(code(o), expected, "stdout:\n{}\nstderr:\n{}", out(o), err(o));
}

fn help_and_usage() {
    ends(&hlo(&["--help"]), 0);
    ends(&hlo(&["--version"]), 0);
    ends(&hlo(&[]), 2);
    let o = hlo(&["verfiy", "x"]);
    ends(&o, 2);
    assert!(err(&o).contains("verify"), "a guess is offered: {}", err(&o));
    ends(&hlo(&["run"]), 2);
    let o = hlo(&["run", "x.hlo", "--platform", "interpreterr"]);
    ends(&o, 2);
    assert!(err(&o).contains("did you mean `interpreter`?"), "{}", err(&o));
    let o = hlo(&["run", "x.hlo", "--platform", "tpu"]);
    ends(&o, 5);
    assert!(err(&o).contains("platform `tpu` is not built into this program"), "{}", err(&o));
}

fn exit_codes() {
    let d = Dir::new();
    let missing = d.path("none.hlo").to_str().unwrap().to_owned();
    let broken = d.file(
        "broken.hlo",
        "HloModule m\n\nENTRY e {\n  a = f32[2] parameter(0)\n  ROOT s = f32[2] add(a, %b)\n}\n",
    );
    let wrong = d.file("wrong.hlo", ADD.replace("b = f32[2]{0}", "b = f32[3]{0}"));
    let binary = d.file("binary.hlo", [b'H', b'l', 0xff, 0xfe]);
    let empty = d.file("empty.hlo", "");
    for command in ["run", "verify", "print"] {
        let o = hlo(&[command, &missing]);
        ends(&o, 2);
        assert!(err(&o).contains("cannot be read: no such file or directory"), "{}", err(&o));
        for file in [&broken, &binary, &empty] {
            ends(&hlo(&[command, file]), 3);
        }
    }
    ends(&hlo(&["print", d.0.path().to_str().unwrap()]), 2);
    let o = hlo(&["verify", &binary]);
    assert!(err(&o).contains("byte 0xff at offset 2 is not UTF-8"), "{}", err(&o));
    for command in ["run", "verify"] {
        let o = hlo(&[command, &wrong]);
        ends(&o, 4);
        assert!(err(&o).contains("wrong.hlo:6:"), "the place is shown: {}", err(&o));
    }
    ends(&hlo(&["print", &wrong]), 0);
    // Of several failures the first decides.
    ends(&hlo(&["verify", &wrong, &broken]), 4);
    ends(&hlo(&["verify", &broken, &wrong]), 3);
}

fn verify_goes_on() {
    let d = Dir::new();
    let (good, bad) = (d.file("good.hlo", ADD), d.file("bad.hlo", "HloModule"));
    let o = hlo(&["verify", &good, &bad, &good]);
    ends(&o, 3);
    let text = out(&o);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert_eq!(lines[0], format!("{good}: ok, 3 instructions"));
    assert!(lines[1].starts_with(&format!("{bad}: ")), "{lines:?}");
}

pub(crate) fn json_lines(o: &Output) -> Vec<serde_json::Value> {
    out(o).lines().map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{e}: {l}"))).collect()
}

fn verify_json() {
    let d = Dir::new();
    let good = d.file("good.hlo", ADD);
    let wrong = d.file("wrong.hlo", ADD.replace("b = f32[2]{0}", "b = f32[3]{0}"));
    let missing = d.path("none.hlo").to_str().unwrap().to_owned();
    let o = hlo(&["verify", "--json", &good, &wrong, &missing]);
    ends(&o, 4);
    let v = json_lines(&o);
    assert_eq!((v[0]["ok"].as_bool(), v[0]["errors"].as_array().map(Vec::len)), (Some(true), Some(0)));
    assert_eq!((v[1]["ok"].as_bool(), v[1]["stage"].as_str()), (Some(false), Some("verify")));
    let e = &v[1]["errors"][0];
    assert!(e["code"].as_str().is_some_and(|c| c.starts_with('V')), "{e}");
    assert_eq!(e["line"].as_u64(), Some(6), "{e}");
    assert!(e["column"].as_u64().is_some() && !e["message"].as_str().unwrap().is_empty(), "{e}");
    assert_eq!((v[2]["stage"].as_str(), v[2]["file"].as_str()), (Some("read"), Some(&*missing)));
}

fn print_round_trip() {
    let d = Dir::new();
    let file = d.file("a.hlo", ADD);
    let o = hlo(&["print", &file]);
    ends(&o, 0);
    assert_eq!(out(&o), ADD);
    let o = hlo(&["print", "--check-roundtrip", &file]);
    ends(&o, 0);
    assert_eq!(out(&o), format!("{file}: same\n"));
    let odd = d.file("odd.hlo", ADD.replace("add(a, b)", "add(a,   b)"));
    let o = hlo(&["print", "--check-roundtrip", "--json", &odd, &file]);
    ends(&o, 1);
    let v = json_lines(&o);
    assert_eq!((v[0]["bytes_equal"].as_bool(), v[0]["module_equal"].as_bool()), (Some(false), Some(true)));
    assert_eq!(v[0]["difference"]["line"].as_u64(), Some(6));
    assert_eq!(v[1]["ok"].as_bool(), Some(true));
    for style in ["source", "default", "short", "canonical"] {
        ends(&hlo(&["print", "--style", style, &file]), 0);
    }
    // From standard input, and back into the program.
    let mut child = Command::new(env!("CARGO_BIN_EXE_hlo"))
        .args(["print", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(ADD.as_bytes()).unwrap();
    assert_eq!(out(&child.wait_with_output().unwrap()), ADD);
}

fn closed_pipe() {
    let d = Dir::new();
    let many: String = (0..20_000).map(|i| format!("  a{i} = f32[] constant({i})\n")).collect();
    let file =
        d.file("big.hlo", format!("HloModule m\n\nENTRY e {{\n{many}  ROOT r = f32[] negate(a7)\n}}\n"));
    for args in [&["print", &file][..], &["verify", &file, &file]] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_hlo"))
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let o = child.wait_with_output().unwrap();
        ends(&o, 0);
        assert_eq!(err(&o), "");
    }
}

fn run_prints() {
    let d = Dir::new();
    let file = d.file("c.hlo", "HloModule c\n\nENTRY e {\n  a = f32[3]{0} constant({1, -0, nan})\n  b = s32[] constant(7)\n  ROOT t = (f32[3]{0}, s32[]) tuple(a, b)\n}\n");
    let o = hlo(&["run", &file]);
    ends(&o, 0);
    let values = "out0 = f32[3]\n[1, -0, nan]\nout1 = s32[]\n7\n";
    assert!(out(&o).ends_with(&format!("{values}ok\n")), "{}", out(&o));
    assert!(out(&o).contains("c.hlo: c, 3 instructions"), "{}", out(&o));
    for part in ["  compile  cpu (", "  check    against interpreter (", " 4 elements", "wrong 0"] {
        assert!(out(&o).contains(part), "{part}: {}", out(&o));
    }
    // A record, an eye on every instruction, a mode of the reference: the interpreter alone.
    for alone in [&["--accumulate", "region"][..], &["--platform", "interpreter"], &["--stats"]] {
        let o = hlo(&[&["run", &*file][..], alone].concat());
        ends(&o, 0);
        assert!(out(&o).contains("  run      interpreter, ") && !out(&o).contains("check"), "{}", out(&o));
    }
    let o = hlo(&["run", "-v", &file]);
    assert!(out(&o).contains("\n  parse    ") && out(&o).contains("\n  verify   "), "{}", out(&o));
    let o = hlo(&["run", "-q", &file]);
    ends(&o, 0);
    assert_eq!(out(&o), "ok\n");
    // What is not compiled says so, and what to do.
    let sizes = d.file("sizes.hlo", "HloModule s\n\nENTRY e {\n  a = s32[<=6] parameter(0)\n  i = s32[] constant(0)\n  ROOT r = s32[<=6] dynamic-update-slice(a, a, i)\n}\n");
    let o = hlo(&["run", &sizes]);
    ends(&o, 5);
    assert!(err(&o).contains("`--platform interpreter` runs it"), "{}", err(&o));
    ends(&hlo(&["run", &sizes, "--platform", "interpreter"]), 0);
}

/// A chain that amplifies the rounding of a sine, and signs that depend on it.
fn run_undecided() {
    let d = Dir::new();
    // A chain that amplifies rounding, fused into one kernel: nothing in between is there to be judged.
    let step = |i: usize| format!("  m{i} = f32[64] multiply(y{i}, ks)\n  y{} = f32[64] sine(m{i})\n", i + 1);
    let steps: String = (0..20).map(step).collect();
    let text = format!(
        "HloModule m\n\nENTRY e {{\n  y0 = f32[64] parameter(0)\n  k = f32[] constant(50)\n  ks = f32[64] broadcast(k), dimensions={{}}\n{steps}  z = f32[] constant(0)\n  zs = f32[64] broadcast(z), dimensions={{}}\n  ROOT r = pred[64] compare(m19, zs), direction=LT\n}}\n"
    );
    let o = hlo(&["run", &d.file("amplifies.hlo", &text), "--save-mismatch", "none", "-q"]);
    ends(&o, 1);
    let last = out(&o).lines().last().unwrap_or_default().to_owned();
    assert!(
        last.starts_with("undecided: ") && last.ends_with("(0 allowed by --max-undecided)"),
        "{}",
        out(&o)
    );
}

fn run_npz() {
    let d = Dir::new();
    let file = d.file("add.hlo", ADD);
    let result = d.path("out.npz").to_str().unwrap().to_owned();
    ends(&hlo(&["run", &file, "--output", &result]), 0);
    let left: Vec<_> = fs::read_dir(d.0.path()).unwrap().flatten().map(|e| e.file_name()).collect();
    assert_eq!(left.len(), 2, "nothing but the program and the result: {left:?}");
    let o = hlo(&["run", &file, "--expected", &result, "--exact"]);
    ends(&o, 0);
    assert!(out(&o).ends_with("ok\n"), "{}", out(&o));
    // The inputs that were made give the same results when they are given.
    let inputs = d.path("in.npz").to_str().unwrap().to_owned();
    ends(&hlo(&["run", &file, "--save-inputs", &inputs]), 0);
    ends(&hlo(&["run", &file, "--seed", "1", "--inputs", &inputs, "--expected", &result, "--exact"]), 0);
    ends(&hlo(&["run", &file, &file, "--save-inputs", &inputs]), 2);
    // Other inputs give other results.
    let o = hlo(&["run", &file, "--expected", &result, "--seed", "1"]);
    ends(&o, 1);
    assert!(out(&o).contains("out0[0]   expected ") && out(&o).ends_with("mismatch\n"), "{}", out(&o));
    let o = hlo(&["run", &file, "--output", "/nowhere/at/all.npz"]);
    ends(&o, 2);
    ends(&hlo(&["run", &file, &file, "--output", &result]), 2);
}

fn run_bad_npz() {
    let d = Dir::new();
    let file = d.file("add.hlo", ADD);
    let scalar = d.file("scalar.hlo", "HloModule s\n\nENTRY e {\n  ROOT a = f32[] parameter(0)\n}\n");
    let ints = d.file("ints.hlo", ADD.replace("f32", "s32"));
    let result = d.path("s.npz").to_str().unwrap().to_owned();
    ends(&hlo(&["run", &file, "--output", &result]), 0);
    let not_zip = d.file("x.npz", "not a zip");
    let missing = d.path("none.npz").to_str().unwrap().to_owned();
    // The results have an array out0 and no arg0.
    for (inputs, message) in [
        (&not_zip, "not an .npz file"),
        (&missing, "cannot be read: no such file or directory"),
        (&result, "no array arg0 (it has out0)"),
    ] {
        let o = hlo(&["run", &file, "--inputs", inputs]);
        ends(&o, 2);
        assert!(err(&o).contains(message), "{}", err(&o));
        assert_eq!(err(&o).lines().count(), 1, "one clear error: {}", err(&o));
    }
    for (program, message) in [(&scalar, "has dimensions [2]"), (&ints, "has type <f4")] {
        let o = hlo(&["run", program, "--expected", &result]);
        ends(&o, 2);
        assert!(err(&o).contains(message), "{}", err(&o));
    }
}

fn run_limits() {
    let d = Dir::new();
    let endless = d.file("loop.hlo", LOOP);
    let o = hlo(&["run", &endless, "--fuel", "10000"]);
    ends(&o, 6);
    assert!(err(&o).contains("R0007") && err(&o).contains("loop.hlo:"), "{}", err(&o));
    // One whose end cannot be foreseen runs out of fuel.
    let counts = LOOP_THAT_COUNTS;
    let o = hlo(&["run", &d.file("counts.hlo", counts), "--fuel", "10000"]);
    ends(&o, 6);
    assert!(err(&o).contains("R0001") && err(&o).contains("counts.hlo:"), "{}", err(&o));
    let large = d.file("large.hlo", "HloModule l\n\nENTRY e {\n  c = f32[] constant(1)\n  ROOT b = f32[1048576,1024]{1,0} broadcast(c), dimensions={}\n}\n");
    let o = hlo(&["run", &large, "--memory-limit", "1GiB"]);
    ends(&o, 6);
    assert!(err(&o).contains("R0002"), "{}", err(&o));
    let inputs =
        d.file("inputs.hlo", "HloModule l\n\nENTRY e {\n  ROOT b = f32[1048576,1024]{1,0} parameter(0)\n}\n");
    ends(&hlo(&["run", &inputs, "--memory-limit", "1GiB"]), 6);
    ends(&hlo(&["run", &inputs, "--memory-limit", "much"]), 2);
}

/// The program fits, the bounds that its results are judged by do not.
fn check_without_memory() {
    let d = Dir::new();
    let n = 100_000;
    let text = format!(
        "HloModule c\n\nENTRY e {{\n  x = f32[{n}]{{0}} parameter(0)\n  y = f32[{n}]{{0}} exponential(x)\n  z = f32[{n}]{{0}} tanh(y)\n  ROOT r = f32[{n}]{{0}} multiply(y, z)\n}}\n"
    );
    let chain = d.file("chain.hlo", text);
    let saved = d.path("saved");
    let save = ["--save-mismatch", saved.to_str().unwrap()];
    let run = |limit: &str| hlo(&[&["run", &chain, "-q", "--memory-limit", limit], &save[..]].concat());
    if cfg!(feature = "llvm") {
        let o = run("1800KiB");
        ends(&o, 6);
        let text = err(&o);
        assert!(
            text.contains("R0002") && text.contains("bounds") && text.contains("--memory-limit"),
            "{text}"
        );
        assert!(!saved.exists());
    }
    ends(&run("8MiB"), 0);
}

/// Whoever asks for more than the process may have is told so, whatever `--memory-limit` says.
fn limits_of_the_process() {
    if !cfg!(target_os = "linux") {
        return;
    }
    let d = Dir::new();
    let large =
        d.file("large.hlo", "HloModule l\n\nENTRY e {\n  c = f32[] constant(1)\n  ROOT b = f32[1000000000]{0} broadcast(c), dimensions={}\n}\n");
    let inputs = d.file("inputs.hlo", "HloModule l\n\nENTRY e {\n  p = f32[1000000000]{0} parameter(0)\n  ROOT r = f32[1000000000]{0} negate(p)\n}\n");
    let small = d.file("add.hlo", ADD);
    let within = |kib: u32, args: &str| {
        let command = format!("ulimit -v {kib}; exec {} {args}", env!("CARGO_BIN_EXE_hlo"));
        Command::new("sh").args(["-c", &command]).current_dir(d.path("")).output().unwrap()
    };
    for args in [
        format!("run {large} --memory-limit 64GiB"),
        format!("bench {inputs}"),
        format!("run {inputs} --json"),
    ] {
        let o = within(3_000_000, &args);
        ends(&o, 6);
        let said = format!("{}{}", String::from_utf8_lossy(&o.stdout), err(&o));
        assert!(said.contains("`ulimit -v`") || said.contains("no memory"), "{args}: {said}");
    }
    // Stacks are smaller where the address space is limited, and results the same.
    ends(&within(2_500_000, &format!("run {small} -q")), 0);
    let left: Vec<_> = fs::read_dir(d.path("")).unwrap().map(|f| f.unwrap().file_name()).collect();
    assert_eq!(left.len(), 3, "{left:?}");
}

fn run_json() {
    let d = Dir::new();
    let file = d.file("add.hlo", ADD);
    let o = hlo(&["run", "--json", &file, "--iterations", "2"]);
    ends(&o, 0);
    let v = json_lines(&o);
    assert_eq!(v.len(), 2);
    assert_eq!(
        (v[0]["ok"].as_bool(), v[0]["seed"].as_u64(), v[1]["seed"].as_u64()),
        (Some(true), Some(0), Some(1))
    );
    assert_eq!(
        (v[0]["results"][0]["type"].as_str(), v[0]["results"][0]["shape"][0].as_i64()),
        (Some("f32"), Some(2))
    );
    assert_ne!(v[0]["results"][0]["value"], v[1]["results"][0]["value"]);
    let o = hlo(&["run", "--json", &d.file("bad.hlo", "HloModule")]);
    ends(&o, 3);
    assert_eq!(json_lines(&o)[0]["stage"].as_str(), Some("parse"));
}

fn threads() {
    let d = Dir::new();
    let file = d.file("sum.hlo", "HloModule s\n\nENTRY e {\n  a = f32[300,300]{1,0} parameter(0)\n  b = f32[300,300]{1,0} parameter(1)\n  d = f32[300,300]{1,0} dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n  ROOT t = f32[300,300]{1,0} tanh(d)\n}\n");
    let bytes: Vec<Vec<u8>> = ["1", "2", "8"]
        .iter()
        .map(|n| {
            let path = d.path(&format!("{n}.npz"));
            ends(&hlo(&["run", &file, "--threads", n, "--output", path.to_str().unwrap()]), 0);
            fs::read(path).unwrap()
        })
        .collect();
    assert!(bytes[0] == bytes[1] && bytes[1] == bytes[2], "the same bits with any number of threads");
}

/// Writes a case of the addition whose record is what the program gives, or is off.
fn case(d: &Dir, name: &str, right: bool) {
    let file = d.file(
        &format!("cases/{name}/module.hlo"),
        ADD.replace("  b = f32[2]{0} parameter(1)\n", "").replace("add(a, b)", "add(a, a)"),
    );
    let double = d.file("double.hlo", fs::read_to_string(&file).unwrap());
    let identity = d.file("identity.hlo", "HloModule i\n\nENTRY e {\n  ROOT a = f32[2]{0} parameter(0)\n}\n");
    let folder = Path::new(&file).parent().unwrap().to_owned();
    let expected = folder.join("expected.npz");
    let record = if right { &double } else { &identity };
    ends(&hlo(&["run", record, "--output", expected.to_str().unwrap()]), 0);
    // The identity's result, renamed, is the input: `out0.npy` and `arg0.npy` are equally long.
    let inputs = folder.join("inputs.npz");
    ends(&hlo(&["run", &identity, "--output", inputs.to_str().unwrap()]), 0);
    let bytes = fs::read(&inputs).unwrap();
    let renamed: Vec<u8> = replace(&bytes, b"out0.npy", b"arg0.npy");
    fs::write(&inputs, renamed).unwrap();
    fs::write(
        folder.join("case.json"),
        r#"{"name": "x", "params": [{"type": "f32", "shape": [2]}], "results": [{"type": "f32", "shape": [2], "check": {"kind": "ulp", "max_ulp": 1}}]}"#,
    )
    .unwrap();
}

fn replace(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut result = bytes.to_vec();
    for i in 0..bytes.len() - from.len() {
        if bytes[i..].starts_with(from) {
            result[i..i + from.len()].copy_from_slice(to);
        }
    }
    result
}

fn cases() {
    let d = Dir::new();
    case(&d, "right", true);
    case(&d, "wrong", false);
    let root = d.path("cases").to_str().unwrap().to_owned();
    let o = hlo(&["test", &root]);
    ends(&o, 1);
    assert!(out(&o).ends_with("1 passed, 1 failed, 0 skipped\n"), "{}", out(&o));
    assert!(out(&o).contains("wrong") && out(&o).contains("tolerance"), "{}", out(&o));
    assert!(out(&o).contains("pass rate by opcode: 50.00% in the mean over 2 opcodes"), "{}", out(&o));
    let o = hlo(&["test", &root, "--filter", "right", "--json"]);
    ends(&o, 0);
    let v = json_lines(&o);
    assert_eq!(v.len(), 1);
    assert_eq!(
        (v[0]["status"].as_str(), v[0]["bit_exact"].as_bool(), v[0]["max_ulp"].as_u64()),
        (Some("pass"), Some(true), Some(0))
    );
    assert_eq!((v[0]["accumulate"].as_str(), v[0]["undecided"].as_u64()), (Some("exact"), Some(0)));
    assert_eq!(v[0]["opcodes"], serde_json::json!(["add", "parameter"]));
    assert!(v[0]["ms"].as_f64().is_some_and(|t| t > 0.0));
    // A case's folder runs by itself.
    ends(&hlo(&["run", &format!("{root}/right")]), 0);
    ends(&hlo(&["run", &format!("{root}/wrong")]), 1);
    // Known failures.
    let list = d.file("list.txt", "module cases/wrong  recorded wrongly\n");
    let o = hlo(&["test", &root, "--expected-failures", &list]);
    ends(&o, 0);
    assert!(out(&o).ends_with("1 passed, 0 failed, 1 skipped\n"), "{}", out(&o));
    ends(&hlo(&["test", &root, "--filter", "no such case"]), 2);
    ends(&hlo(&["test", d.path("none").to_str().unwrap()]), 2);
    // A damaged case is a failed case, and the others go on.
    d.file("cases/right/expected.npz", "rubbish");
    let o = hlo(&["test", &root]);
    ends(&o, 1);
    assert!(out(&o).ends_with("0 passed, 2 failed, 0 skipped\n"), "{}", out(&o));
}

fn explain() {
    let o = hlo(&["explain", "R0001"]);
    ends(&o, 0);
    assert!(out(&o).starts_with("R0001: out of fuel\n"), "{}", out(&o));
    let o = hlo(&["explain", "R001"]);
    ends(&o, 2);
    assert!(err(&o).contains("did you mean R00"), "{}", err(&o));
    assert!(out(&hlo(&["explain", "--list"])).lines().count() > 10);
}

fn completions() {
    for shell in ["bash", "zsh", "fish"] {
        let o = hlo(&["completions", shell]);
        ends(&o, 0);
        assert!(out(&o).contains("verify"), "{shell}");
    }
}

fn no_colour() {
    let d = Dir::new();
    let wrong = d.file("wrong.hlo", ADD.replace("b = f32[2]{0}", "b = f32[3]{0}"));
    let o = hlo(&["verify", &wrong]);
    assert!(!out(&o).contains('\x1b') && !err(&o).contains('\x1b'), "{}{}", out(&o), err(&o));
}

fn run_hlo_module() {
    let tool =
        |args: &[&str]| Command::new(env!("CARGO_BIN_EXE_run_hlo_module")).args(args).output().unwrap();
    let d = Dir::new();
    let file = d.file("add.hlo", ADD);
    let o = tool(&["--platform=interpreter", &file]);
    ends(&o, 0);
    assert!(
        out(&o)
            .ends_with("** Results on interpreter and interpreter are close enough. **\n0/1 runs failed.\n"),
        "{}",
        out(&o)
    );
    let o = tool(&[
        "--platform",
        "interpreter",
        "--reference_platform=",
        "--print_literals",
        "--iterations=2",
        &file,
    ]);
    ends(&o, 0);
    assert!(
        out(&o).contains("** Inputs **\narg0 = f32[2] [") && out(&o).ends_with("0/2 runs failed.\n"),
        "{}",
        out(&o)
    );
    ends(&tool(&[&file]), 2);
    ends(&tool(&["--platform=interpreter", "--input_literals_file=x.pb", &file]), 5);
    ends(&tool(&["--platform=interpreter", &d.file("bad.hlo", "HloModule")]), 3);
    ends(&tool(&["--help"]), 0);
    if cfg!(target_arch = "x86_64") {
        ends(&tool(&["--platform=cpu", "--xla_cpu_max_isa=avx2", &file]), 0);
        let o = tool(&["--platform=cpu", "--xla_cpu_max_isa=SSE4_2", &file]);
        ends(&o, 5);
        assert!(err(&o).contains("there is AVX2, AVX512"), "{}", err(&o));
    }
}
