//! Traces, statistics, values of single instructions, and timing, as people ask for them.

use std::fs;

use libtest_mimic::Trial;

use crate::cli::{Dir, ends, err, hlo, json_lines, out};
use crate::function;

/// `x = 5, i = 0; while i < 3 { x + x, i + 1 }`, and a sum that applies a computation to elements.
const LOOP: &str = "HloModule doubles

add {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT s = s32[] add(a, b)
}

condition {
  p = (s32[2], s32[]) parameter(0)
  i = s32[] get-tuple-element(p), index=1
  n = s32[] constant(3)
  ROOT t = pred[] compare(i, n), direction=LT
}

body {
  p = (s32[2], s32[]) parameter(0)
  x = s32[2] get-tuple-element(p), index=0
  i = s32[] get-tuple-element(p), index=1
  one = s32[] constant(1)
  twice = s32[2] add(x, x)
  next = s32[] add(i, one)
  ROOT r = (s32[2], s32[]) tuple(twice, next)
}

ENTRY main {
  x = s32[2] constant({5, -1})
  unused = s32[2] add(x, x)
  zero = s32[] constant(0)
  init = (s32[2], s32[]) tuple(x, zero)
  w = (s32[2], s32[]) while(init), condition=condition, body=body
  y = s32[2] get-tuple-element(w), index=0
  ROOT sum = s32[] reduce(y, zero), dimensions={0}, to_apply=add
}
";

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        function("watch/a trace has every value", trace),
        function("watch/traces of threads are the same", trace_threads),
        function("watch/diff-trace finds the first difference", diff),
        function("watch/diff-trace refuses what is no trace", diff_refuses),
        function("watch/stop-at", stop_at),
        function("watch/stats", stats),
        function("watch/bench", bench),
    ]
}

fn index(folder: &str) -> Vec<serde_json::Value> {
    let text = fs::read_to_string(format!("{folder}/index.jsonl")).unwrap();
    text.lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}

fn trace() {
    let d = Dir::new();
    let file = d.file("loop.hlo", LOOP);
    let folder = d.path("t").to_str().unwrap().to_owned();
    let o = hlo(&["run", &file, "--trace", &folder]);
    ends(&o, 0);
    // The result is still shown: 5 * 8 - 8.
    assert!(out(&o).ends_with("out0 = s32[]\n32\n"), "{}", out(&o));
    let lines = index(&folder);
    assert_eq!((lines[0]["hlo_trace"].as_u64(), lines[0]["module"].as_str()), (Some(1), Some("doubles")));
    let lines = &lines[1..];
    let of = |name: &str| lines.iter().filter(|l| l["name"] == name).collect::<Vec<_>>();
    let twice = of("twice");
    assert_eq!(twice.len(), 3);
    for (i, t) in twice.iter().enumerate() {
        assert_eq!((t["computation"].as_str(), t["opcode"].as_str()), (Some("body"), Some("add")));
        assert_eq!(t["execution"].as_u64(), Some(i as u64));
        assert_eq!(t["calls"], serde_json::json!([["w", i]]));
        let a = &t["arrays"][0];
        let least = -(2 << i);
        let greatest = 10 << i;
        assert_eq!(a["min"], least.to_string());
        assert_eq!(a["max"], greatest.to_string());
        assert_eq!(
            (a["type"].as_str(), &a["shape"], a["zeros"].as_u64()),
            (Some("s32"), &serde_json::json!([2]), Some(0))
        );
        assert_eq!(a["file"], format!("{}.s32.2", a["hash"].as_str().unwrap()));
    }
    assert_eq!(of("t").len(), 4, "the condition runs once more than the body");
    assert_eq!(of("w")[0]["arrays"].as_array().map(Vec::len), Some(2), "a tuple has its arrays");
    assert!(of("unused").is_empty(), "what nobody needs does not run");
    assert!(of("s").is_empty(), "computations applied to elements are not traced");
    assert_eq!(lines.last().unwrap()["name"], "sum");
    // Numpy's form: an archive of arrays, each once.
    let values = fs::read(format!("{folder}/values.npz")).unwrap();
    assert!(values.starts_with(b"PK"));
    // Summaries alone, into the same folder: nothing of the old trace stays.
    ends(&hlo(&["run", &file, "-q", "--trace", &folder, "--trace-values", "summary"]), 0);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
    assert!(
        index(&folder)[1..].iter().all(|l| l["arrays"]
            .as_array()
            .unwrap()
            .iter()
            .all(|a| a.get("file").is_none()))
    );
    // Only arrays of 4 bytes.
    ends(&hlo(&["run", &file, "-q", "--trace", &folder, "--trace-limit", "4"]), 0);
    let stored: Vec<bool> = index(&folder)[1..]
        .iter()
        .flat_map(|l| l["arrays"].as_array().unwrap().clone())
        .filter(|a| a.get("file").is_some())
        .map(|a| a["shape"] == serde_json::json!([]))
        .collect();
    assert!(!stored.is_empty() && stored.iter().all(|s| *s));
    // A folder of other things is not touched.
    let other = d.file("other/notes.txt", "mine");
    let o = hlo(&["run", &file, "--trace", d.path("other").to_str().unwrap()]);
    ends(&o, 2);
    assert!(err(&o).contains("is not a trace: it has notes.txt"), "{}", err(&o));
    assert_eq!(fs::read_to_string(other).unwrap(), "mine");
    ends(&hlo(&["run", &file, &file, "--trace", &folder]), 2);
    ends(&hlo(&["run", &file, "--trace-limit", "4"]), 2);
}

fn trace_threads() {
    let d = Dir::new();
    let file = d.file("m.hlo", "HloModule m\n\nENTRY e {\n  a = f32[200,200]{1,0} parameter(0)\n  d = f32[200,200]{1,0} dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n  e = f32[200,200]{1,0} exponential(a)\n  ROOT s = f32[200,200]{1,0} add(d, e)\n}\n");
    let indices: Vec<Vec<u8>> = ["1", "3"]
        .iter()
        .map(|n| {
            let folder = d.path(n).to_str().unwrap().to_owned();
            ends(&hlo(&["run", &file, "-q", "--threads", n, "--trace", &folder]), 0);
            fs::read(format!("{folder}/index.jsonl")).unwrap()
        })
        .collect();
    assert!(indices[0] == indices[1], "no times, no threads in a trace");
}

fn diff() {
    let d = Dir::new();
    let run = |name: &str, text: &str| {
        let file = d.file(&format!("{name}.hlo"), text);
        let folder = d.path(name).to_str().unwrap().to_owned();
        ends(&hlo(&["run", "-q", &file, "--trace", &folder]), 0);
        folder
    };
    let a = run("a", LOOP);
    let o = hlo(&["diff-trace", &a, &a]);
    ends(&o, 0);
    assert!(out(&o).ends_with("0 of 43 values differ\n"), "{}", out(&o));
    // One that goes wrong from the second iteration on.
    let wrong = LOOP.replace(
        "twice = s32[2] add(x, x)",
        "k = s32[2] constant({10, 10})\n  m = s32[2] minimum(x, k)\n  twice = s32[2] add(x, m)",
    );
    let b = run("b", &wrong);
    let o = hlo(&["diff-trace", &a, &b]);
    ends(&o, 1);
    let text = out(&o);
    assert!(text.contains("first difference: body.twice#2, add\n  in       w[2]\n"), "{text}");
    // 20 + 20 and 20 + 10.
    assert!(text.contains("[0]   40   30   (abs 1.00e1, 10 ulp)"), "{text}");
    assert!(text.contains("only in the second: 6, the first is body.k\n"), "{text}");
    let o = hlo(&["diff-trace", &a, &b, "--json"]);
    ends(&o, 1);
    let v = &json_lines(&o)[0];
    assert_eq!(
        (v["ok"].as_bool(), v["only_first"].as_u64(), v["only_second"].as_u64()),
        (Some(false), Some(0), Some(6))
    );
    let first = &v["differences"][0];
    assert_eq!(
        (first["name"].as_str(), first["execution"].as_u64(), first["wrong"].as_u64()),
        (Some("twice"), Some(2), Some(1))
    );
    // Floats within a distance are equal.
    let float = |x: &str| {
        format!(
            "HloModule f\n\nENTRY e {{\n  c = f32[1] constant({{{x}}})\n  ROOT n = f32[1] negate(c)\n}}\n"
        )
    };
    let (a, b) = (run("f", &float("1")), run("g", &float("1.0000001")));
    ends(&hlo(&["diff-trace", &a, &b]), 1);
    ends(&hlo(&["diff-trace", &a, &b, "--max-ulp", "1"]), 0);
    // NaNs are equal whatever their bits.
    let (a, b) = (run("h", &float("nan")), run("i", &float("-nan")));
    ends(&hlo(&["diff-trace", &a, &b]), 0);
}

fn diff_refuses() {
    let d = Dir::new();
    let folder = |name: &str, text: &str| {
        d.file(&format!("{name}/index.jsonl"), text);
        d.path(name).to_str().unwrap().to_owned()
    };
    let head = "{\"hlo_trace\":1,\"module\":\"m\"}\n";
    let good = folder("good", head);
    for (name, text, message) in [
        ("empty", String::new(), "is empty"),
        ("text", "hello\n".to_owned(), "line 1: not a record of a trace"),
        ("newer", head.replace('1', "2"), "is of version 2; this program reads 1"),
        ("record", format!("{head}{{}}\n"), "line 2: not a record of a trace: missing field `name`"),
    ] {
        let o = hlo(&["diff-trace", &good, &folder(name, &text)]);
        ends(&o, 2);
        assert!(err(&o).contains(message), "{}", err(&o));
    }
    let o = hlo(&["diff-trace", &good, d.path("none").to_str().unwrap()]);
    ends(&o, 2);
    assert!(err(&o).contains("none/index.jsonl: cannot be read: no such file"), "{}", err(&o));
    // An index that names arrays which are not there.
    let record = |hash: &str| {
        format!(
            "{{\"name\":\"a\",\"computation\":\"e\",\"opcode\":\"add\",\"execution\":0,\"device\":[0,0],\"arrays\":[{{\"type\":\"f32\",\"shape\":[1],\"nan\":0,\"inf\":0,\"zeros\":0,\"hash\":\"{hash}\",\"file\":\"x\"}}]}}\n"
        )
    };
    let (a, b) =
        (folder("a", &format!("{head}{}", record("1"))), folder("b", &format!("{head}{}", record("2"))));
    let o = hlo(&["diff-trace", &a, &b]);
    ends(&o, 2);
    assert!(err(&o).contains("values.npz: cannot be read"), "{}", err(&o));
}

fn stop_at() {
    let d = Dir::new();
    let file = d.file("loop.hlo", LOOP);
    let stop = |at: &str| hlo(&["run", &file, "--stop-at", at]);
    for (at, value, where_) in [
        ("twice", "[10, -2]", "body.twice, execution 0"),
        ("twice#2", "[40, -8]", "body.twice, execution 2"),
        ("main.x", "[5, -1]", "main.x, execution 0"),
        ("%t#3", "false", "condition.t, execution 3"),
    ] {
        let o = stop(at);
        ends(&o, 0);
        assert!(out(&o).ends_with(&format!("\n{value}\n")), "{at}: {}", out(&o));
        assert!(out(&o).contains(&format!("  stopped  at {where_}: ")), "{at}: {}", out(&o));
    }
    // Tuples are flattened, and written where results are.
    let result = d.path("out.npz").to_str().unwrap().to_owned();
    let o = hlo(&["run", &file, "--json", "--stop-at", "body.r#1", "--output", &result]);
    ends(&o, 0);
    let v = &json_lines(&o)[0];
    assert_eq!(v["results"][0]["value"], "[20, -4]");
    assert_eq!(v["results"][1]["value"], "2");
    assert_eq!(v["stopped_at"], "body.r, execution 1");
    assert!(fs::metadata(result).is_ok());
    for (at, message) in [
        ("twize", "there is no instruction `twize`; did you mean `twice`?"),
        ("i", "several computations have an instruction `i`: say `condition.i`, `body.i`"),
        ("twice#3", "`body.twice` is executed 3 times: there is no #3 (they count from 0)"),
        ("unused", "`main.unused` is not executed: nothing needs its value"),
        ("s", "or its computation is applied to elements"),
        ("twice#x", "after # comes the number of an execution"),
    ] {
        let o = stop(at);
        ends(&o, 2);
        assert!(err(&o).contains(message), "{at}: {}", err(&o));
    }
}

fn stats() {
    let d = Dir::new();
    let file = d.file("loop.hlo", LOOP);
    let o = hlo(&["run", &file, "--stats", "--json"]);
    ends(&o, 0);
    let stats = &json_lines(&o)[0]["stats"];
    let row = |opcode: &str| {
        let rows = stats["opcodes"].as_array().unwrap();
        rows.iter().find(|r| r["opcode"] == opcode).unwrap_or_else(|| panic!("{opcode} in {stats}")).clone()
    };
    // Three times two elements and one; operands and result are read and written.
    let add = row("add");
    assert_eq!(
        (add["count"].as_u64(), add["elements"].as_u64(), add["bytes"].as_u64()),
        (Some(6), Some(9), Some(3 * 24 + 3 * 12))
    );
    assert_eq!(row("while")["count"].as_u64(), Some(1));
    assert_eq!(row("compare")["count"].as_u64(), Some(4));
    let shares: f64 = stats["opcodes"].as_array().unwrap().iter().map(|r| r["share"].as_f64().unwrap()).sum();
    assert!((shares - 1.0).abs() < 1e-9, "{shares}");
    assert!(stats["live_bytes"].as_u64().is_some_and(|b| b >= 8), "{stats}");
    let o = hlo(&["run", &file, "--stats"]);
    ends(&o, 0);
    assert!(out(&o).contains("  stats    opcode "), "{}", out(&o));
    assert!(out(&o).contains("  memory   arrays "), "{}", out(&o));
    // 16 MiB in, negated in place once: the arrays at most are the caller's and the result.
    let big = d.file("big.hlo", "HloModule b\n\nENTRY e {\n  a = f32[4194304]{0} parameter(0)\n  n = f32[4194304]{0} negate(a)\n  ROOT m = f32[4194304]{0} abs(n)\n}\n");
    let o = hlo(&["run", &big, "--stats", "--json", "-q"]);
    ends(&o, 0);
    let stats = &json_lines(&o)[0]["stats"];
    assert!(stats["live_bytes"].as_u64().is_some_and(|b| b <= 2 << 24), "{stats}");
    ends(&hlo(&["run", &big, "--stats", "--expected", "x.npz"]), 2);
}

fn bench() {
    let d = Dir::new();
    let file = d.file("loop.hlo", LOOP);
    let (result, again) = (d.path("o.npz"), d.path("p.npz"));
    let o = hlo(&[
        "bench",
        &file,
        "--engine",
        "interpreter",
        "--json",
        "--min-time",
        "0",
        "--output",
        result.to_str().unwrap(),
    ]);
    ends(&o, 0);
    let v = &json_lines(&o)[0];
    for figure in ["parse_ms", "compile_ms", "run_us"] {
        assert!(v[figure].as_f64().is_some_and(|x| x > 0.0), "{figure}: {v}");
    }
    assert_eq!((v["engine"].as_str(), v["runs"].as_u64()), (Some("interpreter"), Some(3)));
    ends(&hlo(&["run", &file, "-q", "--output", again.to_str().unwrap()]), 0);
    assert!(fs::read(result).unwrap() == fs::read(again).unwrap());
    let o = hlo(&["bench", &file, "--min-time", "0"]);
    ends(&o, 0);
    assert!(out(&o).starts_with("loop ") && out(&o).contains("(3 runs)"), "{}", out(&o));
    let bad = d.file("bad.hlo", "HloModule");
    ends(&hlo(&["bench", &bad, &file, "--min-time", "0"]), 3);
    ends(&hlo(&["bench", &file, &file, "--output", "x.npz"]), 2);
    ends(&hlo(&["bench", &file, "--engine", "interpretter"]), 2);
}
