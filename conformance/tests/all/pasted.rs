//! Programs as people paste them, several in a file, those that do not verify, and codes by their numbers.

use std::fs;

use libtest_mimic::Trial;

use crate::cli::{Dir, ends, err, hlo, json_lines, out};
use crate::function;

const ADD: &str = "HloModule add\n\nENTRY e {\n  a = f32[2]{0} parameter(0)\n  b = f32[2]{0} parameter(1)\n  ROOT s = f32[2]{0} add(a, b)\n}\n";

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        function("pasted/a Markdown snippet runs", markdown),
        function("pasted/spans are those of what was pasted", spans),
        function("pasted/one of several modules", several),
        function("pasted/an unknown header field warns always", header_field),
        function("pasted/what does not verify runs at one's own risk", no_verify),
        function("pasted/codes by number", explain),
        function("pasted/bench says the file", bench_file),
        function("pasted/what was pasted is saved as a program", saved),
    ]
}

fn markdown() {
    let d = Dir::new();
    let text =
        format!("# It fails\n\nSee (on my machine):\n\n```hlo\n{ADD}```\n\nThanks!\n").replace("->", "-&gt;");
    let file = d.file("issue.md", text);
    for command in ["run", "verify", "print", "opt"] {
        let o = hlo(&[command, &file]);
        ends(&o, 0);
        assert!(
            err(&o).contains("P0012") && err(&o).contains("read as pasted text"),
            "{command}: {}",
            err(&o)
        );
    }
    let o = hlo(&["print", &file]);
    assert_eq!(out(&o), ADD);
    // What is HLO is not looked at.
    let o = hlo(&["verify", &d.file("plain.hlo", ADD)]);
    ends(&o, 0);
    assert_eq!(err(&o), "");
}

fn spans() {
    let d = Dir::new();
    let logged: String = ADD
        .replace("b = f32[2]{0}", "b = f32[3]{0}")
        .lines()
        .enumerate()
        .map(|(i, l)| format!("2024-01-01 12:00:0{i}.1: I xla/service/foo.cc:12] {l}\n"))
        .collect();
    let o = hlo(&["verify", "--json", &d.file("log.txt", &logged)]);
    ends(&o, 4);
    let error = &json_lines(&o)[0]["errors"][0];
    assert_eq!(error["line"].as_u64(), Some(6), "{error}");
    let prefix = "2024-01-01 12:00:05.1: I xla/service/foo.cc:12] ".len() as u64;
    assert!(error["column"].as_u64().is_some_and(|c| c > prefix), "{error}");
    let o = hlo(&["verify", &d.file("log.txt", logged)]);
    assert!(err(&o).contains("2024-01-01 12:00:05.1: I xla/service/foo.cc:12]   ROOT s"), "{}", err(&o));
}

fn several() {
    let d = Dir::new();
    let second = ADD.replace("HloModule add", "HloModule second").replace("add(a, b)", "subtract(a, b)");
    let file = d.file(
        "graphs.txt",
        format!("[Graph]\n## BEGIN_GRAPH\n{ADD}\n## END_GRAPH\n\n## BEGIN_GRAPH\n{second}"),
    );
    for command in ["run", "verify", "print"] {
        let o = hlo(&[command, &file]);
        ends(&o, 3);
        assert!(err(&o).contains("the text holds 2 modules"), "{}", err(&o));
        assert!(err(&o).contains("`--module N` or `--module NAME`"), "{}", err(&o));
        assert!(err(&o).contains("1 add, 2 second"), "{}", err(&o));
    }
    for pick in ["2", "second"] {
        let o = hlo(&["print", "--module", pick, &file]);
        ends(&o, 0);
        assert_eq!(out(&o), second);
        ends(&hlo(&["run", "--module", pick, &file]), 0);
        ends(&hlo(&["verify", "--module", pick, &file]), 0);
    }
    let o = hlo(&["run", "--module", "3", &file]);
    ends(&o, 2);
    assert!(err(&o).contains("there is no module 3"), "{}", err(&o));
}

fn header_field() {
    let d = Dir::new();
    let file = d.file("m.hlo", ADD.replace("HloModule add", "HloModule add, zzz_of_nobody={1}"));
    for command in ["run", "verify", "print", "opt"] {
        let o = hlo(&[command, &file]);
        ends(&o, 0);
        assert!(err(&o).contains("unknown field `zzz_of_nobody`"), "{command}: {}", err(&o));
    }
}

fn no_verify() {
    let d = Dir::new();
    // The layout of the entry is not that of the program, which hurts nobody.
    let harmless = ADD.replace(
        "HloModule add",
        "HloModule add, entry_computation_layout={(f32[2]{0}, f32[3]{0})->f32[2]{0}}",
    );
    let file = d.file("harmless.hlo", harmless);
    ends(&hlo(&["run", &file]), 4);
    let o = hlo(&["run", "--no-verify", &file]);
    ends(&o, 0);
    assert!(err(&o).contains("warning[V"), "{}", err(&o));
    ends(&hlo(&["opt", "--no-verify", &file]), 0);
    let o = hlo(&["run", "--no-verify", "--platform", "cpu", &file]);
    ends(&o, if cfg!(feature = "llvm") { 4 } else { 5 });
    // What cannot be run ends with a word, not with a bug of ours.
    for (from, to) in [
        ("b = f32[2]{0}", "b = f32[3]{0}"),
        ("s = f32[2]{0} add(a, b)", "s = s32[7]{0} dot(a, b)"),
        ("s = f32[2]{0} add(a, b)", "s = f32[2]{0} get-tuple-element(a), index=3"),
        ("s = f32[2]{0} add(a, b)", "s = f32[2]{0} transpose(a), dimensions={5}"),
        ("s = f32[2]{0} add(a, b)", "s = f32[2]{0} slice(a), slice={[7:9]}"),
    ] {
        let file = d.file("broken.hlo", ADD.replace(from, to));
        ends(&hlo(&["run", &file]), 4);
        let o = hlo(&["run", "--no-verify", "--fuel", "1000", &file]);
        let code = o.status.code().unwrap_or(-1);
        assert!([0, 1, 2, 4, 5, 6].contains(&code), "{to}: {code}: {}", err(&o));
    }
}

fn explain() {
    let o = hlo(&["explain", "312"]);
    ends(&o, 0);
    assert!(out(&o).starts_with("V0312: "), "{}", out(&o));
    let o = hlo(&["explain", "1"]);
    ends(&o, 2);
    assert!(err(&o).contains("P0001") && err(&o).contains("V0001"), "{}", err(&o));
    ends(&hlo(&["explain", "9999"]), 2);
}

fn bench_file() {
    let d = Dir::new();
    let file = d.file("m.hlo", ADD);
    let o = hlo(&["bench", "--json", "--min-time", "0.01", "--engine", "interpreter", &file]);
    ends(&o, 0);
    assert_eq!(json_lines(&o)[0]["file"].as_str(), Some(&*file));
}

fn saved() {
    let d = Dir::new();
    let sum = "HloModule sum\n\nadd {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] add(a, b)\n}\n\nENTRY e {\n  x = f32[2] parameter(0)\n  ROOT r = f32[2] all-reduce(x), replica_groups={{0,1},{2,3}}, to_apply=add\n}\n";
    let file = d.file("quoted.txt", sum.lines().map(|l| format!("> {l}\n")).collect::<String>());
    let into = d.path("found").to_string_lossy().into_owned();
    let fault = "faulty:all-reduce-groups-ignored";
    ends(&hlo(&["run", &file, "--platform", fault, "--save-mismatch", &into]), 1);
    let folder = fs::read_dir(&into).unwrap().next().unwrap().unwrap().path();
    let text = fs::read_to_string(folder.join("module.hlo")).unwrap();
    assert!(text.starts_with("HloModule sum"), "{text}");
    ends(&hlo(&["run", folder.to_str().unwrap()]), 1);
}
