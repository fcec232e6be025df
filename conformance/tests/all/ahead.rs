//! Programs that are compiled to files, run from them, and kept in a cache.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use libtest_mimic::Trial;

use crate::cli::{Dir, ends, err, hlo, json_lines, out};
use crate::function;

const PROGRAM: &str = "HloModule scaled
ENTRY e { x = f32[4] parameter(0)  c = f32[] constant(3)  b = f32[4] broadcast(c), dimensions={}
  y = f32[4] multiply(x, b)  n = s32[] constant(7)  ROOT t = (f32[4], s32[]) tuple(y, n) }";

pub(crate) fn trials() -> Vec<Trial> {
    if cfg!(not(feature = "llvm")) {
        return Vec::new();
    }
    vec![
        function("ahead/what is compiled runs as the program does", round_trip),
        function("ahead/bad files say what is wrong", bad_files),
        function("ahead/an object comes with header, module, metadata and snapshot", object),
        function("ahead/objects that cannot be leave nothing behind", no_object),
        function("ahead/a compiled program is complete or absent", output),
        function("ahead/a cache compiles once and is looked after", cache),
        function("ahead/a cache that is damaged costs nothing but time", damaged_cache),
        function("ahead/processes killed at any moment leave a cache that is right", killed),
        function("ahead/several processes share a cache", shared_cache),
        function("ahead/what the runtime did is said and written", observed),
    ]
}

fn at(d: &Dir, name: &str) -> String {
    d.path(name).to_str().unwrap().to_owned()
}

fn round_trip() {
    let d = Dir::new();
    let program = d.file("m.hlo", PROGRAM);
    let exe = at(&d, "m.hloexe");
    let compiled = hlo(&["compile", &program]);
    ends(&compiled, 0);
    assert!(out(&compiled).contains("m.hloexe: ") && out(&compiled).contains("code "), "{}", out(&compiled));
    let info = hlo(&["exec", &exe, "--info"]);
    ends(&info, 0);
    assert!(out(&info).starts_with("scaled: (f32[4]) -> (f32[4], s32[])\n"), "{}", out(&info));
    let (made, expected, results) = (at(&d, "in.npz"), at(&d, "expected.npz"), at(&d, "results.npz"));
    ends(&hlo(&["run", &program, "--save-inputs", &made, "--output", &expected, "-q"]), 0);
    ends(&hlo(&["exec", &exe, "--inputs", &made, "--output", &results]), 0);
    assert_eq!(fs::read(&expected).unwrap(), fs::read(&results).unwrap());
    let shown = hlo(&["exec", &exe]);
    ends(&shown, 0);
    assert!(
        out(&shown).contains("out0 = f32[4] [") && out(&shown).contains("out1 = s32[] 7"),
        "{}",
        out(&shown)
    );
    let json = hlo(&["exec", &exe, "--json"]);
    assert_eq!(json_lines(&json)[0]["results"][0]["shape"], "f32[4]");
}

fn observed() {
    let d = Dir::new();
    let (program, exe, trace) = (d.file("m.hlo", PROGRAM), at(&d, "m.hloexe"), at(&d, "trace.json"));
    ends(&hlo(&["compile", &program]), 0);
    let ran = hlo(&["exec", &exe, "--metrics", "--trace", &trace]);
    ends(&ran, 0);
    assert!(out(&ran).contains("\"executions\":1,"), "{}", out(&ran));
    let trace: serde_json::Value = serde_json::from_str(&fs::read_to_string(&trace).unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let kinds: Vec<&str> = events.iter().filter_map(|event| event["cat"].as_str()).collect();
    assert_eq!(kinds, ["load", "transfer", "run"]);
    let bench = hlo(&["client-bench", "--executions", "5", "--steps", "7", "--rounds", "2", "--json"]);
    ends(&bench, 0);
    let lines = json_lines(&bench);
    assert_eq!(lines.len(), 5);
    assert!(lines.iter().all(|line| line["runtime"] == "hlo" && line["best_ns"].as_f64() > Some(0.0)));
    ends(&hlo(&["client-bench", "--plugin", &program]), 2);
}

fn bad_files() {
    let d = Dir::new();
    let program = d.file("m.hlo", PROGRAM);
    let exe = at(&d, "m.hloexe");
    ends(&hlo(&["compile", &program, "-o", &exe]), 0);
    let whole = fs::read(&exe).unwrap();
    let cut = at(&d, "cut.hloexe");
    fs::write(&cut, &whole[..whole.len() - 1]).unwrap();
    for (file, says) in
        [(cut.as_str(), "its checksum does not fit"), (program.as_str(), "this is no compiled program")]
    {
        let ran = hlo(&["exec", file]);
        ends(&ran, 2);
        assert!(err(&ran).contains(file) && err(&ran).contains(says), "{}", err(&ran));
    }
    let missing = hlo(&["exec", &at(&d, "none.hloexe")]);
    ends(&missing, 2);
    let npz = at(&d, "in.npz");
    ends(
        &hlo(&[
            "run",
            &d.file("other.hlo", "ENTRY e { ROOT x = f32[5] parameter(0) }"),
            "--save-inputs",
            &npz,
            "-q",
        ]),
        0,
    );
    let ran = hlo(&["exec", &exe, "--inputs", &npz]);
    ends(&ran, 2);
    assert!(err(&ran).contains("arg0"), "{}", err(&ran));
    let ran = hlo(&["compile", &program, "--target-cpu", "z80"]);
    ends(&ran, 2);
    assert!(err(&ran).contains("unknown processor \"z80\""), "{}", err(&ran));
    ends(&hlo(&["compile", &d.file("bad.hlo", "ENTRY e { ROOT x = f32[5] add(a, b) }")]), 3);
    ends(&hlo(&["exec", &exe, "--memory-limit", "16"]), 6);
}

fn output() {
    let d = Dir::new();
    let program = d.file("m.hlo", PROGRAM);
    let ran = hlo(&["compile", &program, "-o", &at(&d, "no/such/folder/m.hloexe")]);
    ends(&ran, 2);
    assert!(err(&ran).contains("cannot be written"), "{}", err(&ran));
}

fn cache() {
    let d = Dir::new();
    let (program, folder) = (d.file("m.hlo", PROGRAM), at(&d, "cache"));
    let other = d.file("n.hlo", PROGRAM.replace("constant(3)", "constant(5)"));
    for _ in 0..2 {
        for file in [&program, &other] {
            ends(&hlo(&["run", file, "--cache", &folder]), 0);
        }
        let listed = hlo(&["cache", "ls", &folder, "--json"]);
        ends(&listed, 0);
        assert_eq!(json_lines(&listed).len(), 2);
    }
    let verified = hlo(&["cache", "verify", &folder]);
    ends(&verified, 0);
    assert!(
        out(&verified).contains("ok scaled") && out(&verified).contains("2 programs, 0 not to be used"),
        "{}",
        out(&verified)
    );
    let removed = hlo(&["cache", "gc", &folder, "--limit", "0"]);
    ends(&removed, 0);
    assert!(out(&removed).contains("removed 2 programs"), "{}", out(&removed));
    ends(&hlo(&["cache", "ls", &at(&d, "none")]), 2);
    ends(&hlo(&["run", &program, "--cache", &program]), 2);
}

fn damaged_cache() {
    let d = Dir::new();
    let (program, folder) = (d.file("m.hlo", PROGRAM), at(&d, "cache"));
    let run = || {
        let ran = hlo(&["run", &program, "--cache", &folder]);
        ends(&ran, 0);
        out(&ran)
    };
    run();
    let entry = fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
    let whole = fs::read(&entry).unwrap();
    for bad in [&whole[..40], b"", &[0; 4096]] {
        fs::write(&entry, bad).unwrap();
        ends(&hlo(&["cache", "verify", &folder]), 1);
        run();
        assert_eq!(fs::read(&entry).unwrap(), whole);
    }
}

/// How many processes are killed.
const KILLED: u64 = 30;

fn killed() {
    let d = Dir::new();
    let folder = at(&d, "cache");
    for n in 0..KILLED {
        let text = PROGRAM.replace("constant(3)", &format!("constant({n})"));
        let program = d.file(&format!("m{n}.hlo"), text);
        let mut child = Command::new(env!("CARGO_BIN_EXE_hlo"))
            .args(["run", &program, "--cache", &folder])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // At moments all over the way of such a run.
        std::thread::sleep(Duration::from_millis(n * 37 % 150));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    if fs::metadata(&folder).is_ok() {
        ends(&hlo(&["cache", "verify", &folder]), 0);
    }
    for n in [0, KILLED / 2, KILLED - 1] {
        ends(&hlo(&["run", &at(&d, &format!("m{n}.hlo")), "--cache", &folder]), 0);
    }
    ends(&hlo(&["cache", "verify", &folder]), 0);
}

fn shared_cache() {
    let d = Dir::new();
    let folder = at(&d, "cache");
    let programs: Vec<String> = (0..8)
        .map(|n| d.file(&format!("m{n}.hlo"), PROGRAM.replace("constant(3)", &format!("constant({n})"))))
        .collect();
    let start = || {
        Command::new(env!("CARGO_BIN_EXE_hlo"))
            .arg("run")
            .args(&programs)
            .args(["--cache", &folder])
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    };
    let processes = [start(), start(), start()];
    for mut process in processes {
        assert_eq!(process.wait().unwrap().code(), Some(0));
    }
    let listed = hlo(&["cache", "verify", &folder, "--json"]);
    ends(&listed, 0);
    assert_eq!(json_lines(&listed).len(), programs.len());
}

const NAMES: &str = "[[feed]]\nid.node_name = \"x\"\nname = \"input\"\nshape = [4]\ntype = \"f32\"\n\n[[fetch]]\nid = { node_name = \"y\" }\nname = \"scaled\"\n";

/// Compiles to an object with everything beside it, and gives the files.
fn object_in(d: &Dir, program: &str) -> Vec<Vec<u8>> {
    let names = d.file("names.toml", NAMES);
    let files = ["m.o", "m.h", "m.rs", "meta.o", "session.pb"].map(|name| at(d, name));
    let compiled = hlo(&[
        "compile",
        program,
        "--config",
        &names,
        "--entry-point",
        "scaled",
        "--cpp-class",
        "ns::Scaled",
        "--out-object",
        &files[0],
        "--out-header",
        &files[1],
        "--out-rust",
        &files[2],
        "--out-metadata-object",
        &files[3],
        "--out-session-module",
        &files[4],
        "--gen-name-to-index",
        "--gen-program-shape",
        "--json",
    ]);
    ends(&compiled, 0);
    let said = &json_lines(&compiled)[0];
    assert_eq!(
        (&said["entry_point"], &said["program_shape"]),
        (&"scaled".into(), &"(f32[4]) -> (f32[4], s32[])".into())
    );
    assert_eq!(
        (&said["arguments"][0]["name"], &said["results"][0]["name"]),
        (&"input".into(), &"scaled".into())
    );
    files.iter().map(|file| fs::read(file).unwrap()).collect()
}

fn object() {
    let (d, e) = (Dir::new(), Dir::new());
    let files = object_in(&d, &d.file("m.hlo", PROGRAM));
    // The folder is in none of them.
    assert!(files == object_in(&e, &e.file("m.hlo", PROGRAM)), "two compilations differ");
    let text = |n: usize| String::from_utf8(files[n].clone()).unwrap();
    assert!(text(1).contains("class Scaled final") && text(1).contains("arg_input_data()"), "{}", text(1));
    assert!(text(2).contains("pub fn result_scaled(&self) -> &[f32]"), "{}", text(2));
    let metadata = files[3].windows(16).any(|w| w == b"\"pointer_bytes\":");
    assert!(metadata && files[3].len() < 4096, "{} bytes", files[3].len());
    let verified = hlo(&["verify", &at(&d, "session.pb")]);
    ends(&verified, 0);
    // Without names: by the program's own, and `entry`.
    let plain = at(&d, "plain.h");
    ends(&hlo(&["compile", &at(&d, "m.hlo"), "--out-header", &plain]), 0);
    let header = fs::read_to_string(&plain).unwrap();
    assert!(header.contains("int32_t entry_run(") && !header.contains("class "), "{header}");
}

fn no_object() {
    let d = Dir::new();
    let program = d.file("m.hlo", PROGRAM);
    let rng = d.file(
        "rng.hlo",
        "HloModule m\nENTRY e { a = f32[] constant(0)  b = f32[] constant(1)  ROOT r = f32[4] rng(a, b), distribution=rng_uniform }",
    );
    let wrong = d.file("wrong.pbtxt", "fetch { id { node_name: \"z\" } }");
    let fake = d.file("fake.pbtxt", "conversion_options { custom_fake_quant_op_calls: true }");
    let (o, h) = (at(&d, "m.o"), at(&d, "m.h"));
    for (words, exit, says) in [
        (
            vec![&*program, "--config", &*wrong],
            2,
            "wrong.pbtxt: fetch[0].id.node_name (line 1): the program has no result `z`",
        ),
        (
            vec![&*program, "--config", &*fake],
            2,
            "fake.pbtxt: conversion_options.custom_fake_quant_op_calls (line 1)",
        ),
        (vec![&*program, "--config", "none.toml"], 2, "none.toml: cannot be read"),
        (vec![&*program, "--target-triple", "riscv64-linux-gnu"], 2, "objects are made for x86_64, aarch64"),
        (vec![&*program, "--target-cpu", "i386"], 2, "unknown processor"),
        (vec![&*program, "--cpp-class", "a b"], 2, "no name of a class"),
        (vec![&*program, "--entry-point", "1st"], 2, "no entry point"),
        (vec![&*program, "--fallback"], 2, "--fallback is the interpreter"),
        (vec![&*program, "-o", "x"], 2, "not --output"),
        (vec![&*program, "--out-rust", &*h], 2, "two outputs of one name"),
        (vec![&*program, "--out-session-module", "none/s.pb"], 2, "none/s.pb: cannot be written"),
        (vec![&*program, "--sanitize", "memory"], 2, "invalid value"),
        (vec![&*program, "--no-such-flag"], 2, "Usage:"),
        (vec![&*rng], 5, "`rng`: the interpreter executes it"),
    ] {
        let words = [&["compile"], &words[..], &["--out-object", &o, "--out-header", &h]].concat();
        let ran = hlo(&words);
        ends(&ran, exit);
        assert!(err(&ran).contains(says), "{words:?}: {}", err(&ran));
        assert!(!d.path("m.o").exists() && !d.path("m.h").exists(), "{words:?} left files");
    }
    for option in [["--config", "x"], ["--cpp-class", "x"], ["--target-triple", "x"]] {
        let ran = hlo(&["compile", &program, option[0], option[1]]);
        ends(&ran, 2);
        assert!(err(&ran).contains("is for objects: say --out-object"), "{}", err(&ran));
    }
}
