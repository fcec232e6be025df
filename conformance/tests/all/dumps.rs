//! XLA's dump flags: which files there are, and that they read back.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use libtest_mimic::Trial;

use crate::cli::{Dir, ends, err, hlo, out};
use crate::function;

const PROGRAM: &str = "HloModule jit_f
ENTRY e { x = s32[4] parameter(0)  z = s32[] constant(0)  b = s32[4] broadcast(z), dimensions={}
  a = s32[4] add(x, b)  ROOT y = s32[4] multiply(a, a) }";

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = vec![
        function("dumps/passes are dumped as XLA names them", passes),
        function("dumps/flags are checked", flags),
        function("dumps/run_hlo_module takes them in every spelling", run_hlo_module),
    ];
    if cfg!(feature = "llvm") {
        trials.push(function("dumps/a compilation is dumped as XLA names its files", compiled));
        trials.push(function("dumps/runs are dumped as snapshots that run again", snapshots));
    }
    trials
}

fn names(d: &Dir, folder: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(d.path(folder)).unwrap();
    entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect()
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|n| (*n).to_owned()).collect()
}

fn compiled() {
    let d = Dir::new();
    let (file, to) = (d.file("m.hlo", PROGRAM), d.path("dump"));
    let to_flag = format!("--xla_dump_to={}", to.display());
    let exe = d.path("m.hloexe");
    ends(&hlo(&["compile", &file, "-o", exe.to_str().unwrap(), &to_flag]), 0);
    let text = set(&[
        "module_0000.jit_f.before_optimizations.txt",
        "module_0000.jit_f.cpu_after_optimizations.txt",
        "module_0000.jit_f.cpu_after_optimizations-buffer-assignment.txt",
        "module_0000.jit_f.ir-no-opt.ll",
        "module_0000.jit_f.ir-with-opt.ll",
    ]);
    assert_eq!(names(&d, "dump"), text);
    let read = |name: &str| fs::read_to_string(to.join(name)).unwrap();
    assert!(read("module_0000.jit_f.before_optimizations.txt").starts_with("HloModule jit_f"));
    assert!(read("module_0000.jit_f.cpu_after_optimizations.txt").contains("fusion("));
    assert!(read("module_0000.jit_f.ir-no-opt.ll").contains("define "));
    for name in ["before_optimizations", "cpu_after_optimizations"] {
        ends(&hlo(&["verify", to.join(format!("module_0000.jit_f.{name}.txt")).to_str().unwrap()]), 0);
    }
    // What another compiler's dumps are read by reads ours.
    let bisected = hlo(&["bisect", "--dumps", to.to_str().unwrap()]);
    ends(&bisected, 0);
    // The other formats, and nothing in text when only they are asked for.
    fs::remove_dir_all(&to).unwrap();
    let flags = ["--xla_dump_hlo_as_proto", "--xla_dump_hlo_as_dot=true", "--xla_dump_hlo_as_html"];
    ends(&hlo(&[&["run", &file, &to_flag, "-q"], &flags[..]].concat()), 0);
    let mut others = BTreeSet::new();
    for stage in ["before_optimizations", "cpu_after_optimizations"] {
        for ending in ["hlo.pb", "dot", "html"] {
            others.insert(format!("module_0000.jit_f.{stage}.{ending}"));
        }
    }
    assert_eq!(names(&d, "dump"), others);
    for stage in ["before_optimizations", "cpu_after_optimizations"] {
        let pb = to.join(format!("module_0000.jit_f.{stage}.hlo.pb"));
        ends(&hlo(&["run", pb.to_str().unwrap(), "--platform", "interpreter", "-q"]), 0);
    }
}

fn passes() {
    let d = Dir::new();
    let (file, to) = (d.file("m.hlo", PROGRAM), d.path("dump"));
    let to_flag = format!("--xla_dump_to={}", to.display());
    ends(
        &hlo(&[
            "opt",
            &file,
            &to_flag,
            "--xla_dump_hlo_pass_re=.*",
            "--passes",
            "algebraic-simplifier,dce",
            "-o",
            d.path("o.hlo").to_str().unwrap(),
        ]),
        0,
    );
    let first = names(&d, "dump");
    assert!(first.contains("module_0000.jit_f.before_optimizations.txt"), "{first:?}");
    assert!(first.contains("module_0000.jit_f.after_optimizations.txt"));
    let passes: Vec<&String> = first.iter().filter(|n| n.contains(".passes.after_")).collect();
    assert_eq!(
        passes[0],
        "module_0000.jit_f.0000.passes.after_pipeline-start.before_algebraic-simplifier.txt"
    );
    assert!(passes.len() > 1 && passes[1].starts_with("module_0000.jit_f.0001.passes.after_"), "{passes:?}");
    // The passes removed the addition of zero.
    let made = fs::read_to_string(d.path("o.hlo")).unwrap();
    assert!(!made.contains("add("), "{made}");
    ends(&hlo(&["bisect", "--dumps", to.to_str().unwrap()]), 0);
    fs::remove_dir_all(&to).unwrap();
    ends(
        &hlo(&[
            "opt",
            &file,
            &to_flag,
            "--xla_dump_hlo_pass_re=^dce$",
            "--passes",
            "algebraic-simplifier,dce",
            "-q",
        ]),
        0,
    );
    assert!(
        names(&d, "dump").iter().all(|n| !n.contains("after_algebraic") && !n.contains("pipeline-start"))
    );
    fs::remove_dir_all(&to).unwrap();
    ends(&hlo(&["opt", &file, &to_flag, "--xla_dump_hlo_module_re=other", "-q"]), 0);
    assert!(!to.exists(), "no module of that name");
}

fn snapshots() {
    let d = Dir::new();
    let (file, to) = (d.file("m.hlo", PROGRAM), d.path("dump"));
    let to_flag = format!("--xla_dump_to={}", to.display());
    ends(&hlo(&["run", &file, &to_flag, "--xla_dump_hlo_snapshots", "--iterations", "2", "-q"]), 0);
    assert_eq!(
        names(&d, "dump"),
        set(&["module_0000.jit_f.snapshot.0.pb", "module_0000.jit_f.snapshot.1.pb"])
    );
    // A snapshot brings inputs and result: it runs again, and is what it says.
    let second = to.join("module_0000.jit_f.snapshot.1.pb");
    let again = hlo(&["run", second.to_str().unwrap(), "--exact"]);
    ends(&again, 0);
    assert!(out(&again).contains("those of the snapshot"), "{}", out(&again));
}

fn flags() {
    let d = Dir::new();
    let file = d.file("m.hlo", PROGRAM);
    let lonely = hlo(&["opt", &file, "--xla_dump_hlo_as_dot"]);
    ends(&lonely, 2);
    assert!(err(&lonely).contains("--xla_dump_to"), "{}", err(&lonely));
    let to_flag = format!("--xla_dump_to={}", d.path("dump").display());
    ends(&hlo(&["opt", &file, &to_flag, "--xla_dump_hlo_pass_re=("]), 2);
    // A file is in the way of the folder.
    let blocked = format!("--xla_dump_to={file}");
    ends(&hlo(&["opt", &file, &blocked]), 2);
    assert_eq!(fs::read_to_string(&file).unwrap(), PROGRAM);
}

fn run_hlo_module() {
    let d = Dir::new();
    let (file, to) = (d.file("m.hlo", PROGRAM), d.path("dump"));
    let run = |flags: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_run_hlo_module"))
            .args(["--platform=interpreter", "--reference_platform="])
            .args(flags)
            .arg(&file)
            .output()
            .unwrap()
    };
    let flags =
        ["--xla-dump-to", to.to_str().unwrap(), "--xla_dump_hlo_as_text", "--xla_dump_hlo_snapshots=true"];
    ends(&run(&flags), 0);
    let expected = ["module_0000.jit_f.before_optimizations.txt", "module_0000.jit_f.snapshot.0.pb"];
    assert_eq!(names(&d, "dump"), set(&expected));
    // Without a folder there is nothing to dump to.
    let lonely = run(&["--xla_dump_hlo_as_text"]);
    ends(&lonely, 0);
    assert!(err(&lonely).contains("changes nothing without --xla_dump_to"), "{}", err(&lonely));
    ends(&run(&["--xla_dump_to=x", "--xla_dump_hlo_pass_re=("]), 2);
}
