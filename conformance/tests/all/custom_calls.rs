//! Custom calls on the command line: what nobody knows is refused before inputs are made, in the name of who
//! was asked, and goes on as a person says.

use std::fs;
use std::process::Command;

use libtest_mimic::Trial;

use crate::cli::{Dir, ends, err, hlo, out};
use crate::function;

/// Inputs of a gibibyte: making them takes seconds, and more memory than the run is given.
const LARGE: &str = "HloModule m\nENTRY e {\n  w = f32[16384,16384] parameter(0)\n  x = f32[4] parameter(1)\n  c = f32[4] custom-call(x), custom_call_target=\"NobodyKnowsThis\"\n  \
                     ROOT t = (f32[16384,16384], f32[4]) tuple(w, c)\n}\n";
const UNKNOWN: &str = "HloModule m\nENTRY e {\n  x = f32[2] constant({1, 2})\n  n = f32[2] negate(x)\n  c = f32[2] custom-call(x), custom_call_target=\"Mine\", \
                       control-predecessors={n}\n  ROOT s = f32[2] add(c, n), control-predecessors={c}\n}\n";
const SEVERAL: &str = "HloModule m\nENTRY e {\n  x = f32[2] constant({1, 2})\n  y = s32[] constant(7)\n  ROOT c = (f32[2], s32[]) custom-call(x, y), custom_call_target=\"Mine\"\n}\n";
const OTHER_SHAPE: &str = "HloModule m\nENTRY e {\n  x = f32[2] constant({1, 2})\n  ROOT c = f32[3] custom-call(x), custom_call_target=\"Mine\"\n}\n";

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        function("custom calls/refused before inputs are made", refused_early),
        function("custom calls/wrong forms are refused before inputs are made", wrong_forms),
        function("custom calls/the platform that was asked for is named", named),
        function("custom calls/as a person says", substituted),
        function("custom calls/what does not fit", misfits),
        function("custom calls/every command that compares", commands),
        function("custom calls/handlers of a library", loaded),
    ]
}

fn refused_early() {
    let dir = Dir::new();
    let large = dir.file("large.hlo", LARGE);
    // Inputs would not fit: a run that makes them first ends with 6.
    for platform in ["cpu", "cpu:O0", "interpreter", "passes:dce"] {
        let o = hlo(&["run", &large, "--platform", platform, "--memory-limit", "1MiB"]);
        ends(&o, 5);
        assert!(err(&o).contains("NobodyKnowsThis"), "{}", err(&o));
        assert!(err(&o).contains("--custom-call 'NobodyKnowsThis=identity'"), "{}", err(&o));
    }
}

/// Calls of known targets in forms that these do not have, and what is said of them. `w` is f32[16384,16384],
/// `x` f32[8,8], `n` s32[], `d` f64[8,8].
const WRONG_FORMS: &[(&str, &str, &str, &str, &str)] = &[
    ("TopK", "(f32[8,2], s32[8,2])", "x, x", "", "with other than one array"),
    ("TopK", "f32[8,2]", "x", "", "without a pair of results"),
    (
        "TopK",
        "(f32[8,2], s64[8,2])",
        "x",
        "",
        "whose value (f32[8,2], s32[8,2]) shall be (f32[8,2], s64[8,2])",
    ),
    ("TopK", "(f32[8,9], s32[8,9])", "x", "", "whose value (f32[8,8], s32[8,8]) shall be"),
    ("PadToStatic", "(f32[8,8], s32[])", "x", "", "whose value (f32[8,8], s32[], s32[]) shall be"),
    ("PadToStatic", "(f32[8,8], s32[], s32[])", "x, n", "", "with other than one array"),
    ("SliceToDynamic", "f32[<=8,8]", "x, n", "", "without a size for each dimension"),
    ("SliceToDynamic", "s32[<=8,8]", "x, n, n", "", "whose value f32[8,8] shall be s32[<=8,8]"),
    ("lapack_sgetrf_ffi", "(f32[8,8], s32[8], s32[])", "x, x", "", "with 2 operands instead of 1"),
    ("lapack_sgetrf_ffi", "(f32[8,8], s32[8], s32[])", "d", "", "with operand 0 of type f64"),
    (
        "lapack_sgetrf_ffi",
        "(f32[8,8], s32[7], s32[])",
        "x",
        "",
        "with results of shape (f32[8,8], s32[7], s32[])",
    ),
    ("lapack_spotrf_ffi", "(f32[8,8], s32[])", "x", "{uplo = 1 : ui8}", "with the setting `uplo = 1`"),
    ("lapack_dtrsm_ffi", "f64[8,8]", "d, d", "", "without the setting `trans_x`"),
    ("Sharding", "f32[8,9]", "x", "", "whose value f32[8,8] shall be f32[8,9]"),
    ("chlo.erf", "f32[8,9]", "x", "", "whose value f32[8,8] shall be f32[8,9]"),
    ("cu_lu_pivots_to_permutation", "s64[8]", "n", "", "of a scalar"),
    ("shape_assertion", "()", "x", "", "without a condition"),
];

fn wrong_forms() {
    let dir = Dir::new();
    for (target, result, operands, config, why) in WRONG_FORMS {
        let config = if config.is_empty() { String::new() } else { format!(", backend_config=\"{config}\"") };
        let text = format!(
            "HloModule m\nENTRY e {{\n  w = f32[16384,16384] parameter(0)\n  x = f32[8,8] parameter(1)\n  n = s32[] parameter(2)\n  d = f64[8,8] parameter(3)\n  \
             c = {result} custom-call({operands}), custom_call_target=\"{target}\"{config}\n  ROOT t = (f32[16384,16384], {result}) tuple(w, c)\n}}\n"
        );
        let path = dir.file("form.hlo", &text);
        for (platform, asked) in [("cpu", "platform cpu"), ("interpreter", "the interpreter")] {
            let o = hlo(&["run", &path, "--platform", platform, "--memory-limit", "1MiB"]);
            ends(&o, 5);
            let said = format!("{asked} does not support a custom call to \"{target}\" {why}");
            assert!(err(&o).contains(&said), "{target}: {}", err(&o));
        }
    }
}

fn named() {
    let dir = Dir::new();
    let unknown = dir.file("unknown.hlo", UNKNOWN);
    let o = hlo(&["run", &unknown, "--platform", "cpu"]);
    ends(&o, 5);
    assert!(err(&o).contains("platform cpu does not support a custom call to \"Mine\""), "{}", err(&o));
    let o = hlo(&["run", &unknown, "--platform", "interpreter"]);
    ends(&o, 5);
    assert!(err(&o).contains("the interpreter does not support a custom call to \"Mine\""), "{}", err(&o));
    // What compiling alone can tell is told before inputs are made, too.
    let buffer = "HloModule m\nENTRY e {\n  w = f32[16384,16384] parameter(0)\n  b = b(f32[16384,16384]) custom-call(w), custom_call_target=\"Pin\", \
                  output_to_operand_aliasing={{}: (0, {})}\n  ROOT u = f32[16384,16384] custom-call(b), custom_call_target=\"Unpin\", output_to_operand_aliasing={{}: (0, {})}\n}\n";
    let path = dir.file("buffer.hlo", buffer);
    let o = hlo(&["run", &path, "--platform", "cpu", "--memory-limit", "1MiB"]);
    ends(&o, 5);
    assert!(err(&o).contains("platform cpu does not support `custom-call`: a mutable buffer"), "{}", err(&o));
}

fn substituted() {
    let dir = Dir::new();
    let (unknown, several) = (dir.file("unknown.hlo", UNKNOWN), dir.file("several.hlo", SEVERAL));
    for platform in ["cpu", "interpreter"] {
        let values = |file: &str, what: &str| {
            let o = hlo(&[
                "run",
                file,
                "--platform",
                platform,
                "--reference-platform",
                "none",
                "--custom-call",
                what,
            ]);
            ends(&o, 0);
            out(&o)
        };
        assert!(values(&unknown, "Mine=identity").contains("0, 0"), "{}", values(&unknown, "Mine=identity"));
        assert!(values(&unknown, "Mine=zeros").contains("-1, -2"));
        let both = values(&several, "Mine=identity");
        assert!(both.contains("[1, 2]") && both.contains("s32[]\n7"), "{both}");
        let zeros = values(&several, "Mine=zeros");
        assert!(zeros.contains("[0, 0]") && zeros.contains("s32[]\n0"), "{zeros}");
    }
    // Recorded: the results of another program.
    let record = dir.file(
        "record.hlo",
        "HloModule m\nENTRY e {\n  a = f32[2] constant({10, 20})\n  b = s32[] constant(-3)\n  ROOT t = (f32[2], s32[]) tuple(a, b)\n}\n",
    );
    let npz = dir.path("record.npz");
    let npz = npz.to_str().unwrap();
    ends(&hlo(&["run", &record, "--platform", "interpreter", "--output", npz]), 0);
    for platform in ["cpu", "interpreter"] {
        let given = format!("Mine={npz}");
        // Both engines that are compared see the same program.
        let o = hlo(&["run", &several, "--platform", platform, "--custom-call", &given, "-v"]);
        ends(&o, 0);
        assert!(out(&o).contains("10, 20") && out(&o).contains("-3"), "{}", out(&o));
        let o = hlo(&[
            "run",
            &unknown,
            "--platform",
            platform,
            "--reference-platform",
            "none",
            "--custom-call",
            &given,
        ]);
        ends(&o, 0);
        assert!(out(&o).contains("9, 18"), "{}", out(&o));
    }
}

fn misfits() {
    let dir = Dir::new();
    let (unknown, other) = (dir.file("unknown.hlo", UNKNOWN), dir.file("other.hlo", OTHER_SHAPE));
    let o = hlo(&["run", &other, "--custom-call", "Mine=identity"]);
    ends(&o, 2);
    assert!(err(&o).contains("needs operands and results of the same shapes"), "{}", err(&o));
    for wrong in ["Mine", "Mine=", "=zeros", "Mine=something", "Mine=lib"] {
        let o = hlo(&["run", &unknown, "--custom-call", wrong]);
        ends(&o, 2);
        assert!(err(&o).contains("NAME=identity"), "{}", err(&o));
    }
    let missing = dir.path("missing.npz");
    let o = hlo(&["run", &unknown, "--custom-call", &format!("Mine={}", missing.display())]);
    ends(&o, 2);
    let o = hlo(&["run", &unknown, "--custom-call", "Mine=zeros", "--custom-call", "Mine=identity"]);
    ends(&o, 2);
    assert!(err(&o).contains("is given twice"), "{}", err(&o));
    // Another target: the call is refused as before, and the name is said to be none.
    let o = hlo(&["run", &unknown, "--custom-call", "Other=zeros"]);
    ends(&o, 5);
    assert!(err(&o).contains("warning: --custom-call Other: "), "{}", err(&o));
    assert!(err(&o).contains("calls no such target; it calls Mine"), "{}", err(&o));
    assert!(!err(&hlo(&["run", &unknown, "--custom-call", "Mine=zeros"])).contains("warning"));
}

fn commands() {
    let dir = Dir::new();
    let unknown = dir.file("unknown.hlo", UNKNOWN);
    let given = ["--custom-call", "Mine=zeros"];
    ends(&hlo(&[&["isolate", &unknown, "--platform", "passes:default"][..], &given].concat()), 0);
    ends(&hlo(&[&["bisect", &unknown][..], &given].concat()), 0);
    ends(&hlo(&[&["bench", &unknown, "--engine", "interpreter", "--min-time", "0"][..], &given].concat()), 0);
    let findings = dir.path("findings");
    let fuzz = ["fuzz", "--programs", &unknown, "--count", "2", "--out", findings.to_str().unwrap()];
    ends(&hlo(&[&fuzz[..], &given].concat()), 0);
    // What is reduced is the program without the call.
    let (reduced, command) = (dir.path("r"), "if grep -q custom-call {module}; then exit 0; else exit 1; fi");
    let reduce =
        ["reduce", &unknown, "--command", command, "--repeat", "1", "--out", reduced.to_str().unwrap()];
    ends(&hlo(&reduce), 1);
    ends(&hlo(&[&reduce[..], &given].concat()), 0);
    assert!(!fs::read_to_string(reduced.join("module.hlo")).unwrap().contains("custom-call"));
}

/// Handlers in C, compiled here; skipped where there is no compiler.
fn loaded() {
    let dir = Dir::new();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../codegen/ffi/tests/plain.c");
    let library = dir.path("plain.so");
    let compiled =
        Command::new("cc").args(["-shared", "-fPIC", "-w", "-o"]).arg(&library).arg(source).status();
    if compiled.is_err() {
        eprintln!("skipped: there is no cc");
        return;
    }
    assert!(compiled.is_ok_and(|status| status.success()));
    let library = library.display().to_string();
    let call = |target: &str| {
        let text = format!(
            "HloModule m\nENTRY e {{\n  x = f32[3] parameter(0)\n  y = f32[3] multiply(x, x)\n  c = f32[3] custom-call(y), custom_call_target=\"{target}\", \
             api_version=API_VERSION_TYPED_FFI\n  ROOT s = f32[3] add(c, x)\n}}\n"
        );
        dir.file(&format!("{target}.hlo"), &text)
    };
    let program = call("twice");
    // As others do, and without them.
    let named = format!("{library}:twice=plain_double");
    let o = hlo(&["run", &program, "--load", &named]);
    ends(&o, 0);
    for command in ["bench", "isolate"] {
        for platform in ["cpu", "interpreter"] {
            ends(&hlo(&[command, &program, "--platform", platform, "--load", &named]), 0);
        }
    }
    for platform in ["cpu", "interpreter"] {
        let constant = fs::read_to_string(&program).unwrap().replace("parameter(0)", "constant({1, 2, 3})");
        let constant = dir.file("constant.hlo", &constant);
        let o = hlo(&[
            "run",
            &constant,
            "--platform",
            platform,
            "--reference-platform",
            "none",
            "--load",
            &named,
        ]);
        ends(&o, 0);
        assert!(out(&o).contains("3, 10, 21"), "{}", out(&o));
        let o = hlo(&[
            "run",
            &call("fails"),
            "--platform",
            platform,
            "--load",
            &format!("{library}:fails=plain_failing"),
        ]);
        ends(&o, 6);
        assert!(err(&o).contains("there is nothing left"), "{}", err(&o));
        let o = hlo(&[
            "run",
            &call("old"),
            "--platform",
            platform,
            "--load",
            &format!("{library}:old=plain_too_old"),
        ]);
        ends(&o, 5);
        assert!(err(&o).contains("version 0.0"), "{}", err(&o));
    }
    // Not named, not there, no library, nothing in it.
    ends(&hlo(&["run", &program]), 5);
    for (wrong, says) in [
        (format!("{library}:twice=nowhere"), "no symbol nowhere"),
        (library.clone(), "registers no handlers"),
        (dir.path("missing.so").display().to_string(), "cannot be loaded"),
        (program.clone(), "cannot be loaded"),
    ] {
        let o = hlo(&["run", &program, "--load", &wrong]);
        ends(&o, 2);
        assert!(err(&o).contains(says), "{}", err(&o));
    }
}
