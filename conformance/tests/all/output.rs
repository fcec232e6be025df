//! What commands write and where: full disks, devices and links, JSON for lists with bad programs; and what
//! numbers they refuse.

use std::process::{Command, Stdio};

use libtest_mimic::Trial;
use serde_json::Value;

use crate::cli::{Dir, ends, err, hlo, json_lines, out};
use crate::function;

const ADD: &str = "HloModule add\n\nENTRY e {\n  a = f32[2]{0} parameter(0)\n  b = f32[2]{0} parameter(1)\n  ROOT s = f32[2]{0} add(a, b)\n}\n";

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        #[cfg(target_os = "linux")]
        function("output/a full disk is an error", full_disk),
        #[cfg(unix)]
        function("output/pipes and links are written to", pipes_and_links),
        #[cfg(unix)]
        function("output/files in closed folders are written in place", closed_folders),
        function("output/absurd numbers are refused", absurd_numbers),
        function("output/errors are said once", errors_once),
        function("output/other formats are named", other_formats),
        function("output/stages as json", stages_json),
        #[cfg(feature = "llvm")]
        function("output/strategies are named", strategies),
        function("output/bench as json", bench_json),
    ]
}

#[cfg(target_os = "linux")]
fn full_disk() {
    let d = Dir::new();
    let file = d.file("add.hlo", ADD);
    let commands: &[&[&str]] = &[
        &["print", &file],
        &["print", &file, "--json"],
        &["opt", &file],
        &["run", &file, "--platform", "interpreter", "--json"],
        &["bench", &file, "--engine", "interpreter", "--min-time", "0"],
        &["verify", &file],
        &["explain", "--list"],
        &["completions", "bash"],
        &["--help"],
        &["--version"],
    ];
    for args in commands {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let o =
            Command::new(env!("CARGO_BIN_EXE_hlo")).args(*args).stdout(Stdio::from(full)).output().unwrap();
        ends(&o, 2);
        assert_eq!(
            err(&o),
            "error: standard output cannot be written: no space left on device\n",
            "{args:?}"
        );
    }
}

#[cfg(unix)]
fn pipes_and_links() {
    use std::os::unix::fs::{FileTypeExt, symlink};
    let d = Dir::new();
    let file = d.file("add.hlo", ADD);
    let (pipe, link, target) = (d.path("pipe"), d.path("link.npz"), d.path("target.npz"));
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    std::fs::write(&target, "old").unwrap();
    symlink("target.npz", &link).unwrap();
    let run = ["run", &*file, "--platform", "interpreter", "--output"];
    ends(&hlo(&[&run[..], &[link.to_str().unwrap()]].concat()), 0);
    assert!(link.is_symlink());
    let results = std::fs::read(&target).unwrap();
    assert!(results.starts_with(b"PK"), "an archive took the place of what was there");
    for save in ["--output", "--save-inputs"] {
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || std::fs::read(pipe).unwrap()
        });
        let run = ["run", &*file, "--platform", "interpreter", save, pipe.to_str().unwrap()];
        ends(&hlo(&run), 0);
        let read = reader.join().unwrap();
        assert!(if save == "--output" { read == results } else { read.starts_with(b"PK") }, "{save}");
        assert!(std::fs::metadata(&pipe).unwrap().file_type().is_fifo());
    }
}

#[cfg(unix)]
fn closed_folders() {
    use std::os::unix::fs::PermissionsExt;
    let d = Dir::new();
    let file = d.file("add.hlo", ADD);
    let old = d.file("closed/out.hlo", "old".repeat(1000));
    let folder = d.path("closed");
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o555)).unwrap();
    let o = hlo(&["opt", &file, "-o", &old]);
    // Whoever may do everything may make files there too.
    let closed = std::fs::write(folder.join("probe"), "").is_err();
    let new = hlo(&["opt", &file, "-o", folder.join("new.hlo").to_str().unwrap()]);
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).unwrap();
    ends(&o, 0);
    assert_eq!(std::fs::read_to_string(&old).unwrap(), ADD);
    if closed {
        ends(&new, 2);
        assert!(err(&new).contains("new.hlo: cannot be written: permission denied"), "{}", err(&new));
    }
}

fn absurd_numbers() {
    let d = Dir::new();
    let file = d.file("add.hlo", ADD);
    let refused: &[(&[&str], &str)] = &[
        (&["fuzz", "--jobs", "100000"], "at most 1,024"),
        (&["test", "x", "--jobs", "1025"], "at most 1,024"),
        (&["reduce", &file, "--jobs", "1025"], "at most 1,024"),
        (&["bench", &file, "--threads", "40000"], "at most 1,024"),
        (&["bench", &file, "--threads", "18446744073709551615"], "at most 1,024"),
        (&["bench", &file, "--min-time=inf"], "a week at most"),
        (&["bench", &file, "--min-time=1e300"], "a week at most"),
        (&["bench", &file, "--min-time=nan"], "is not a time"),
        (&["bench", &file, "--min-time=-1"], "is not a time"),
        (&["fuzz", "--timeout=nan"], "is not a time"),
        (&["test", "x", "--time-limit=18446744073709551615"], "a week at most"),
        (&["isolate", &file, "--timeout=-1"], "is not a time"),
        (&["run", &file, "--max-undecided=nan"], "is neither a count of elements"),
        (&["fuzz", "--max-undecided=-1"], "is neither a count of elements"),
        (&["run", &file, "--abs-error-bound=nan"], "is not a finite number from 0 up"),
        (&["run", &file, "--rel-error-bound=-1"], "is not a finite number from 0 up"),
    ];
    for (args, why) in refused {
        let o = hlo(args);
        ends(&o, 2);
        assert!(err(&o).contains(why) && err(&o).matches("error:").count() == 1, "{args:?}: {}", err(&o));
    }
}

fn errors_once() {
    let d = Dir::new();
    let missing = d.path("none.hlo").to_str().unwrap().to_owned();
    let broken = d.file("broken.hlo", "HloModule m\n\nENTRY e {\n  ROOT a = f32[2] parametr(0)\n}\n");
    let commands: &[&[&str]] = &[
        &["opt"],
        &["bench"],
        &["bisect", "--passes", "dce"],
        &["isolate", "--platform", "passes:dce"],
        &["reduce", "--engines", "interpreter,passes:dce"],
    ];
    for args in commands {
        let o = hlo(&[*args, &[&*missing]].concat());
        ends(&o, 2);
        let message = format!("{missing}: cannot be read: no such file or directory");
        assert_eq!(err(&o), format!("error: {message}\n"), "{args:?}");
        let o = hlo(&[*args, &[&*broken]].concat());
        ends(&o, 3);
        assert!(err(&o).starts_with("error[P0112]: unknown opcode"), "{args:?}: {}", err(&o));
    }
    let o = hlo(&["run", &d.file("add.hlo", ADD), "--platform", "serve:cat", "--save-mismatch", "none"]);
    ends(&o, 1);
    let said = "error[R0040]: serve:cat answered neither `ok` nor an `error`: {";
    assert!(err(&o).starts_with(said), "{}", err(&o));
}

fn other_formats() {
    let d = Dir::new();
    let o = hlo(&["verify", &d.file("marked.hlo", "\u{FEFF}?"), "--json"]);
    ends(&o, 3);
    let error = &json_lines(&o)[0]["errors"][0];
    assert_eq!((error["line"].as_u64(), error["column"].as_u64()), (Some(1), Some(1)), "{error}");
    let o = hlo(&["print", &d.file("marked.hlo", format!("\u{FEFF}{ADD}"))]);
    ends(&o, 0);
    assert_eq!(out(&o), ADD);
    // Operations without the function around them are no module.
    let mlir = d.file("m.mlir", "  %0 = stablehlo.add %a, %b : tensor<f32>\n");
    let o = hlo(&["verify", &mlir]);
    ends(&o, 3);
    assert!(err(&o).contains("= note: this looks like MLIR, such as StableHLO"), "{}", err(&o));
}

#[cfg_attr(not(feature = "llvm"), expect(unused_variables, reason = "stages are those of the compiler"))]
fn stages_json() {
    let d = Dir::new();
    let file = d.file("add.hlo", ADD);
    #[cfg(feature = "llvm")]
    for stage in ["hlo", "hlo-optimized", "lowering", "buffer-assignment", "llvm", "asm", "html"] {
        let plain = hlo(&["opt", &file, "--stage", stage]);
        ends(&plain, 0);
        let o = hlo(&["opt", &file, "--stage", stage, "--json"]);
        ends(&o, 0);
        let lines = json_lines(&o);
        assert_eq!(lines.len(), 1);
        let object = &lines[0];
        assert_eq!((&object["stage"], &object["ok"]), (&Value::from(stage), &Value::from(true)));
        assert_eq!(object["text"].as_str(), Some(&*out(&plain)), "{stage}");
    }
}

/// Programs of one instruction and the strategy that does it on every machine.
#[cfg(feature = "llvm")]
const STRATEGIES: &[(&str, &str)] = &[
    (
        "  p = f32[300,7000] parameter(0)\n  q = f32[7000] parameter(1)\n  ROOT r = f32[300] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "library call: GEMV",
    ),
    (
        "  p = f32[300,300] parameter(0)\n  ROOT r = f32[300,300] dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "library call: packed GEMM",
    ),
    (
        "  p = c64[2,12,12,5] parameter(0)\n  q = c64[3,3,5,5] parameter(1)\n  ROOT r = c64[2,10,10,5] convolution(p, q), window={size=3x3}, dim_labels=b01f_01io->b01f",
        "library call: implicit GEMM",
    ),
    (
        "  p = f32[500,1000] parameter(0)\n  z = f32[] constant(0)\n  ROOT r = f32[500] reduce(p, z), dimensions={1}, to_apply=add",
        "kernel: row reduction",
    ),
    (
        "  p = f32[12,4000] parameter(0)\n  z = f32[] constant(0)\n  ROOT r = f32[4000] reduce(p, z), dimensions={0}, to_apply=add",
        "kernel: column reduction",
    ),
    (
        "  p = f32[400,500] parameter(0)\n  ROOT r = f32[500,400] transpose(p), dimensions={1,0}",
        "kernel: tiled transpose",
    ),
    ("  p = f32[4000] parameter(0)\n  ROOT r = f32[4000] sine(p)", "kernel: vectorized loop nest"),
    (
        "  p = f32[4000,2] parameter(0)\n  ROOT r = f32[4000,2] sort(p), dimensions={0}, to_apply=less",
        "library call: radix sort",
    ),
    (
        "  p = c64[64,64] parameter(0)\n  ROOT r = c64[64,64] fft(p), fft_type=FFT, fft_length={64}",
        "library call: mixed-radix FFT",
    ),
];

/// A stage, a profile and the documentation name strategies in the same words.
#[cfg(feature = "llvm")]
fn strategies() {
    let d = Dir::new();
    let documented =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/compiler.md")).unwrap();
    for strategy in hlo_codegen::kernel::Strategy::ALL {
        let name = strategy.name();
        assert!(name == "element by element" || documented.contains(name), "{name}");
    }
    for (instructions, expected) in STRATEGIES {
        let text = format!(
            "HloModule m\n\nadd {{\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  ROOT s = f32[] add(x, y)\n}}\n\nless {{\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  ROOT c = pred[] compare(x, y), direction=LT\n}}\n\nENTRY e {{\n{instructions}\n}}\n"
        );
        let file = d.file("m.hlo", &text);
        let o = hlo(&["opt", &file, "--stage", "lowering"]);
        ends(&o, 0);
        assert!(out(&o).lines().any(|l| l.ends_with(expected)), "{expected}:\n{}", out(&o));
        let strategy = expected.split(": ").nth(1).unwrap();
        assert!(documented.contains(strategy), "{strategy}");
        let o = hlo(&["bench", &file, "--json", "--profile", "--min-time", "0"]);
        ends(&o, 0);
        let lines = json_lines(&o);
        let steps = lines[0]["profile"]["steps"].as_array().unwrap();
        assert!(steps.iter().any(|s| s["strategy"] == strategy), "{expected}: {steps:?}");
    }
}

fn bench_json() {
    let d = Dir::new();
    let (file, broken) = (d.file("add.hlo", ADD), d.file("broken.hlo", "HloModule m {"));
    let missing = d.path("none.hlo").to_str().unwrap().to_owned();
    let o = hlo(&["bench", "--json", &missing, &file, &broken, "--min-time", "0"]);
    ends(&o, 2);
    let lines = json_lines(&o);
    assert_eq!(lines.len(), 3, "a line for each program");
    for (line, file, exit) in [(&lines[0], &missing, 2), (&lines[2], &broken, 3)] {
        assert_eq!((&line["module"], &line["ok"]), (&Value::from(&**file), &Value::from(false)));
        assert_eq!(line["exit"], exit);
        assert!(!line["errors"][0]["message"].as_str().unwrap().is_empty());
    }
    assert!(
        lines[1]["run_us"].is_number() && lines[1].get("ok").is_none() && lines[1].get("profile").is_none()
    );
    #[cfg(feature = "llvm")]
    {
        let o = hlo(&["bench", &file, "--json", "--profile", "--min-time", "0"]);
        ends(&o, 0);
        let lines = json_lines(&o);
        assert_eq!(lines.len(), 1);
        let profile = &lines[0]["profile"];
        assert!(profile["gb_per_s"].as_f64().is_some_and(|x| x > 0.0), "{profile}");
        assert!(profile["compile"].as_array().unwrap().iter().any(|s| s["name"] == "emission"), "{profile}");
        let step = &profile["steps"][0];
        assert!(step["us"].is_number() && step["count"] == 1 && step["kind"].is_string(), "{profile}");
        let o = hlo(&["bench", &file, "--profile", "--min-time", "0"]);
        ends(&o, 0);
        assert!(out(&o).starts_with("compilation ") && out(&o).contains("\nsteps of a run; this machine: "));
    }
}
