//! `hlo reduce` as people start it.

use std::fs;

use libtest_mimic::Trial;

use crate::cli::{Dir, hlo};
use crate::function;

const CHAIN: &str = "HloModule m
ENTRY e {
  p = f32[8,16] parameter(0)
  q = f32[8,16] parameter(1)
  n = f32[8,16] negate(p)
  m = f32[8,16] multiply(n, q)
  t = f32[16,8] transpose(m), dimensions={1,0}
  x = f32[16,8] exponential(t)
  ROOT o = (f32[16,8], f32[8,16]) tuple(x, m)
}
";

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        function("reduce/a failing command", command),
        function("reduce/two engines", engines),
        function("reduce/usage", usage),
    ]
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn command() {
    let dir = Dir::new();
    let program = dir.file("m.hlo", CHAIN);
    let fails =
        "grep -q 'transpose(' {module} && test -s {inputs} && echo assertion failed && exit 3; exit 0";
    let out = hlo(&["reduce", &program, "--command", fails, "--match", "assertion failed"]);
    let said = text(&out.stdout);
    assert_eq!(out.status.code(), Some(0), "{said}{}", text(&out.stderr));
    assert!(said.starts_with("signature: failing command, exit code 3, \"assertion failed\"\n   7 instructions, 1,024 elements\n"), "{said}");
    let reduced = "HloModule reduced\n\nENTRY main {\n  p0 = f32[] parameter(0)\n  ROOT transpose = f32[] transpose(p0), dimensions={}\n}\n";
    assert!(said.contains(reduced), "{said}");
    assert!(said.contains("\na fixpoint: no smaller program shows the same failure ("), "{said}");
    assert_eq!(fs::read_to_string(dir.path("m.hlo")).unwrap(), CHAIN, "the input is left alone");
    let saved = fs::read_to_string(dir.path("m.hlo.reduced/module.hlo")).unwrap();
    assert_eq!(saved.trim_end(), reduced.trim_end());
    // The result is a finding of its own: a folder that can be reduced again, to nothing smaller.
    let folder = dir.path("m.hlo.reduced");
    let again = hlo(&[
        "reduce",
        folder.to_str().unwrap(),
        "--command",
        fails,
        "--match",
        "assertion failed",
        "--json",
        "--out",
        dir.path("again").to_str().unwrap(),
    ]);
    let json: serde_json::Value = serde_json::from_str(text(&again.stdout).trim()).unwrap();
    assert_eq!((json["event"].as_str(), json["fixpoint"].as_bool()), (Some("result"), Some(true)));
    assert_eq!(json["program"].as_str().map(str::trim_end), Some(reduced.trim_end()));
    // A command that does not fail.
    let fine = hlo(&["reduce", &program, "--command", "true", "--out", dir.path("x").to_str().unwrap()]);
    assert_eq!(fine.status.code(), Some(1));
    assert!(text(&fine.stderr).contains("does not fail"), "{}", text(&fine.stderr));
    // A command that takes too long fails in its own way.
    let slow = hlo(&[
        "reduce",
        &program,
        "--command",
        "sleep 5 #",
        "--timeout",
        "50ms",
        "--max-candidates",
        "1",
        "--repeat",
        "1",
        "--out",
        dir.path("y").to_str().unwrap(),
    ]);
    assert!(text(&slow.stdout).starts_with("signature: timeout\n"), "{}", text(&slow.stdout));
}

fn engines() {
    let dir = Dir::new();
    let program = dir.file(
        "m.hlo",
        CHAIN.replace(
            "t = f32[16,8] transpose(m), dimensions={1,0}",
            "z = f32[] constant(1)\n  y = f32[16,8] pad(m, z), padding=8_0x-8_0\n  t = f32[16,8] copy(y)",
        ),
    );
    let out = hlo(&["reduce", &program, "--engines", "interpreter,faulty:pad-low-sign"]);
    let said = text(&out.stdout);
    let unknown = text(&out.stderr).contains("there is no fault");
    if unknown {
        panic!("the fault that this test takes is gone: {}", text(&out.stderr));
    }
    assert_eq!(out.status.code(), Some(0), "{said}{}", text(&out.stderr));
    assert!(said.contains("pad(") && said.contains("a fixpoint"), "{said}");
}

fn usage() {
    let dir = Dir::new();
    let program = dir.file("case/module.hlo", CHAIN);
    let folder = dir.path("case");
    let at = |args: &[&str]| {
        let out = hlo(&[&["reduce", folder.to_str().unwrap()], args].concat());
        (out.status.code(), text(&out.stderr))
    };
    let (code, said) = at(&["--command", "false", "--out", folder.to_str().unwrap()]);
    assert_eq!(code, Some(2));
    assert!(said.contains("is not overwritten"), "{said}");
    assert_eq!(fs::read_to_string(&program).unwrap(), CHAIN);
    let (code, said) = at(&["--engines", "interpreter"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("two are needed"), "{said}");
    assert_eq!(at(&[]).0, Some(2), "neither engines nor a command");
    assert_eq!(at(&["--command", "false", "--max-time", "2 weeks"]).0, Some(2));
    // Nothing is compared with what the reference cannot run.
    let unknown = dir.file(
        "unknown.hlo",
        "HloModule m\nENTRY e { x = f32[] parameter(0)\n ROOT c = f32[] custom-call(x), custom_call_target=\"Mine\" }\n",
    );
    let out = hlo(&["reduce", &unknown, "--engines", "interpreter,cpu"]);
    assert_eq!(out.status.code(), Some(5), "{}", text(&out.stderr));
    assert!(text(&out.stderr).contains("nothing to compare with"), "{}", text(&out.stderr));
    let recorded = format!("recorded:{}", dir.path("none.npz").display());
    assert_eq!(hlo(&["run", &program, "--platform", &recorded]).status.code(), Some(2));
}
