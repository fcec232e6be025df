//! `hlo fuzz` and comparisons of `hlo run`, as people start them.

use std::fs;
use std::process::Command;

use libtest_mimic::Trial;
use serde_json::Value;

use crate::cli::{Dir, ends, hlo};
use crate::function;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        function("fuzz/a fault is found, reduced and saved, and the folder repeats it", a_fault),
        function("fuzz/shards add up", shards),
        function("fuzz/recorded cases split into shards", cases_split),
        function("fuzz/permitted variants are no false alarm", no_false_alarm),
        function("fuzz/faults are listed", faults_are_listed),
        function("fuzz/wrong usage", wrong_usage),
        function("fuzz/programs whose inputs do not fit", inputs_that_do_not_fit),
        function("fuzz/run compares with the reference", run_compares),
    ]
}

fn text(out: &std::process::Output) -> String {
    String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr)
}

/// Of a file it says so; among others it is left out.
fn inputs_that_do_not_fit() {
    let dir = Dir::new();
    let program = |n: &str| {
        format!("HloModule t\n\nENTRY e {{\n  p = f64[{n}] parameter(0)\n  ROOT r = f64[{n}] negate(p)\n}}\n")
    };
    std::fs::create_dir(dir.path("programs")).unwrap();
    let huge = dir.file("programs/huge.hlo", program("900719925474099"));
    dir.file("programs/small.hlo", program("4"));
    let (programs, found) = (dir.path("programs"), dir.path("found"));
    let hunt = |of: &str| {
        hlo(&["fuzz", "--mutate", of, "--count", "2", "--jobs", "1", "--out", found.to_str().unwrap()])
    };
    ends(&hunt(&huge), 6);
    ends(&hunt(programs.to_str().unwrap()), 0);
}

/// A fault that every hunt finds soon.
const FAULT: &str = "faulty:broadcast-strides-swapped";

fn a_fault() {
    let dir = Dir::new();
    let out = dir.path("found");
    let out = out.to_str().unwrap();
    let engines = format!("interpreter,{FAULT}");
    let found = hlo(&[
        "fuzz",
        "--engines",
        &engines,
        "--size",
        "small",
        "--max-findings",
        "1",
        "--out",
        out,
        "--json",
    ]);
    assert_eq!(found.status.code(), Some(1), "{}", text(&found));
    let lines = String::from_utf8(found.stdout).unwrap();
    let finding: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    assert_eq!(finding["signature"]["kind"], "wrong");
    let folder = finding["folder"].as_str().unwrap();
    let again = hlo(&["run", folder]);
    assert_eq!(again.status.code(), Some(1), "{}", text(&again));
    assert!(text(&again).contains("mismatch"), "{}", text(&again));
    let reduced = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).find(|p| p.is_dir()).unwrap();
    let again = hlo(&["run", reduced.to_str().unwrap(), "--json"]);
    assert_eq!(again.status.code(), Some(1), "{}", text(&again));
    let said: Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!(said["comparison"]["verdict"], "wrong result");
}

fn shards() {
    let dir = Dir::new();
    let totals = |name: &str, more: &[&str]| -> Value {
        let out = dir.path(name);
        let mut args = vec![
            "fuzz",
            "--engines",
            "interpreter,interpreter:tree",
            "--size",
            "small",
            "--count",
            "60",
            "--jobs",
            "1",
        ];
        args.extend(["--out", out.to_str().unwrap()]);
        args.extend(more);
        let run = hlo(&args);
        assert_eq!(run.status.code(), Some(0), "{}", text(&run));
        serde_json::from_str(&fs::read_to_string(out.join("totals.json")).unwrap()).unwrap()
    };
    let whole = totals("whole", &[]);
    // As an array job runs them: processes side by side that know nothing of each other.
    let processes: Vec<_> = (0..3)
        .map(|i| {
            let (shard, out) = (format!("{i}/3"), dir.path(&format!("shard{i}")));
            Command::new(env!("CARGO_BIN_EXE_hlo"))
                .args([
                    "fuzz",
                    "--engines",
                    "interpreter,interpreter:tree",
                    "--size",
                    "small",
                    "--count",
                    "60",
                    "-q",
                ])
                .args(["--shard", &shard, "--jobs", "1", "--out"])
                .arg(out)
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    for mut p in processes {
        assert!(p.wait().unwrap().success());
    }
    let folders: Vec<String> =
        (0..3).map(|i| dir.path(&format!("shard{i}")).to_str().unwrap().to_owned()).collect();
    let mut args = vec!["fuzz", "--json", "--merge"];
    args.extend(folders.iter().map(String::as_str));
    let merged = hlo(&args);
    assert_eq!(merged.status.code(), Some(0), "{}", text(&merged));
    let merged: Value = serde_json::from_slice(&merged.stdout).unwrap();
    for field in ["programs", "skipped", "fuel", "engines", "coverage"] {
        assert_eq!(merged[field], whole[field], "{field}");
    }
    assert_eq!(merged["programs"], 60);
}

fn cases_split() {
    let corpus = crate::crate_dir().join("corpus");
    let lines = |more: &[&str]| -> Vec<String> {
        let mut args = vec!["test", corpus.to_str().unwrap(), "--filter", "api__", "--json", "-q"];
        args.extend(more);
        let run = hlo(&args);
        assert_eq!(run.status.code(), Some(0), "{}", text(&run));
        let case = |line: &str| {
            let said: Value = serde_json::from_str(line).unwrap();
            // Files that are no programs are told of as well.
            said["case"].as_str().unwrap_or(line).to_owned()
        };
        String::from_utf8(run.stdout).unwrap().lines().map(case).collect()
    };
    let mut whole = lines(&[]);
    let mut parts = [lines(&["--shard", "0/2"]), lines(&["--shard", "1/2"])].concat();
    assert!(whole.len() > 4, "{}", whole.len());
    whole.sort();
    parts.sort();
    assert_eq!(whole, parts);
}

fn no_false_alarm() {
    let dir = Dir::new();
    let out = dir.path("out");
    let engines = "interpreter,interpreter:reversed,interpreter:blocked,interpreter:tree,interpreter:fma,interpreter:region";
    let run = hlo(&[
        "fuzz",
        "--engines",
        engines,
        "--size",
        "small",
        "--count",
        "200",
        "--out",
        out.to_str().unwrap(),
    ]);
    assert_eq!(run.status.code(), Some(0), "{}", text(&run));
}

fn faults_are_listed() {
    let list = hlo(&["fuzz", "--list-faults"]);
    let list = text(&list);
    assert!(list.lines().count() >= 60, "{list}");
    assert!(list.contains(FAULT), "{list}");
}

fn wrong_usage() {
    let fails = |args: &[&str], says: &str| {
        let mut all = vec!["fuzz"];
        all.extend(args);
        let run = hlo(&all);
        assert_eq!(run.status.code(), Some(2), "{}", text(&run));
        assert!(text(&run).contains(says), "{}", text(&run));
    };
    fails(&["--engines", "interpreter"], "at least one engine");
    fails(&["--engines", "interpreter,interpretter"], "did you mean `interpreter`?");
    fails(&["--shard", "3/3"], "0/3 to 2/3");
    fails(&["--allow", "contractions"], "did you mean `contraction`?");
    fails(&["--merge", "nowhere"], "nowhere");
}

fn run_compares() {
    let dir = Dir::new();
    let file = dir.file(
        "m.hlo",
        "HloModule m\n\nENTRY e {\n  a = f32[2,3]{1,0} parameter(0)\n  ROOT r = f32[2,2,3]{2,1,0} broadcast(a), dimensions={1,2}\n}\n",
    );
    let same = hlo(&["run", &file, "--platform", "passes:default"]);
    assert_eq!(same.status.code(), Some(0), "{}", text(&same));
    assert!(text(&same).contains("same bits 100.0%"), "{}", text(&same));
    let saved = dir.path("saved");
    let wrong = hlo(&["run", &file, "--platform", FAULT, "--save-mismatch", saved.to_str().unwrap()]);
    assert_eq!(wrong.status.code(), Some(1), "{}", text(&wrong));
    assert!(text(&wrong).contains("hlo isolate") && text(&wrong).contains("mismatch"), "{}", text(&wrong));
    assert_eq!(fs::read_dir(&saved).unwrap().count(), 1);
    // In a process of its own its results are as wrong, and no crash.
    let child = format!("child:{FAULT}");
    let wrong = hlo(&["run", &file, "--platform", &child, "--save-mismatch", "none"]);
    assert_eq!(wrong.status.code(), Some(1), "{}", text(&wrong));
    assert!(text(&wrong).contains("WRONG") && !text(&wrong).contains("R0040"), "{}", text(&wrong));
    let none = hlo(&["run", &file, "--platform", FAULT, "--save-mismatch", "none", "-q"]);
    assert_eq!(none.status.code(), Some(1));
}
