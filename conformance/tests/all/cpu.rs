//! The engine `cpu`: recorded cases, loops and branches, several devices, limits.

use std::time::Duration;

use hlo_conformance::corpus::{CorpusOptions, Status, items, run_all};
use hlo_conformance::folder::find_cases;
use hlo_engines::engine::{self, InterpreterEngine, Limits, RunOptions};
use hlo_engines::frontend::parse_text;
use hlo_generate::generate::inputs;
use hlo_triage::case::Form;
use hlo_triage::differential::{Difference, Kind, Settings, Subject, differ};
use libtest_mimic::Trial;

use crate::cli::{Dir, ends, hlo};
use crate::{crate_dir, failed, function};

pub(crate) fn trials() -> Vec<Trial> {
    if engine::by_name("cpu").is_err() {
        return Vec::new();
    }
    let mut trials = vec![
        function("cpu/control flow", control_flow),
        function("cpu/devices", devices),
        function("cpu/what is not compiled", fallback),
        function("cpu/limits", limits),
        function("cpu/memory is handed on", donation),
        function("cpu/arguments that are constants", constants),
    ];
    for level in ["O0", "O2"] {
        trials.push(Trial::test(format!("cpu/corpus {level}"), move || corpus(level).map_err(failed)));
    }
    if cfg!(target_arch = "x86_64") {
        for isa in ["AVX2", "AVX512"] {
            trials.push(Trial::test(format!("cpu/corpus {isa}"), move || {
                otherwise(&["--cpu-max-isa", isa], "large");
                Ok(())
            }));
        }
    }
    for divisor in ["64", "4096"] {
        trials.push(Trial::test(format!("cpu/corpus as if {divisor} times as large"), move || {
            let divided = ["--cpu-size-divisor", divisor];
            otherwise(&divided, "huge");
            let programs = crate_dir().join("large");
            for program in std::fs::read_dir(programs).map_err(|e| failed(e.to_string()))? {
                let program =
                    program.map_err(|e| failed(e.to_string()))?.path().to_string_lossy().into_owned();
                ends(&hlo(&[&["run", "--platform", "cpu", &program], &divided[..]].concat()), 0);
            }
            Ok(())
        }));
    }
    trials
}

/// The same of a compiler that goes other ways: for processors that have less than this one, or for arrays
/// that are larger. And generated programs of a size.
fn otherwise(flags: &[&str], size: &str) {
    let corpus = crate_dir().join("corpus").to_string_lossy().into_owned();
    let cases = hlo(&[&["test", &corpus, "--platform", "cpu"], flags].concat());
    ends(&cases, 0);
    let dir = Dir::new();
    let found = dir.path("found").to_string_lossy().into_owned();
    let programs = ["fuzz", "--engines", "interpreter,cpu", "--size", size, "--count", "20", "--out", &found];
    ends(&hlo(&[&programs[..], flags].concat()), 0);
}

/// No recorded case is wrong; what is not supported says so.
fn corpus(level: &str) -> Result<(), String> {
    let folder = crate_dir().join("corpus");
    let folders = find_cases(&[folder.to_string_lossy().into_owned()]).map_err(|f| f.message)?;
    let options = CorpusOptions {
        time_limit: Duration::from_secs(300),
        jobs: 2,
        ..CorpusOptions::new(engine::by_name(&format!("cpu:{level}")).map_err(|f| f.message)?)
    };
    let items = items(&folders, Form::Module);
    let (mut wrong, mut unsupported) = (String::new(), 0);
    run_all(&items, &options, |report| match (report.status, report.kind) {
        (Status::Fail, "unsupported") => unsupported += 1,
        (Status::Fail, kind) => wrong.push_str(&format!("{}: {kind} {}\n", report.case, report.reason)),
        _ => {}
    });
    if !wrong.is_empty() {
        return Err(wrong);
    }
    if unsupported * 8 > items.len() {
        return Err(format!("{unsupported} of {} cases are not supported", items.len()));
    }
    Ok(())
}

fn compare(engine: &str, text: &str, run: RunOptions) -> Difference {
    let (module, found) = parse_text(text);
    assert!(!found.has_errors(), "{found:?}");
    let module = module.unwrap();
    let devices = engine::devices::stated(&module, None, None).unwrap();
    let arrays: Vec<_> = (0..devices.count()).map(|d| inputs(&module, u64::from(d)).remove(0)).collect();
    let engine = engine::by_name(engine).unwrap();
    let settings = Settings { run: RunOptions { devices, ..run }, ..Settings::default() };
    differ(&InterpreterEngine, &*engine, &Subject::new(&module, &arrays), &settings)
}

/// Every level gives the interpreter's bits.
fn same(text: &str) {
    for engine in ["cpu:O0", "cpu:O1", "cpu:O2", "cpu:O3", "cpu:O0+fallback"] {
        let found = compare(engine, text, RunOptions::default());
        assert_eq!(found.kind, Kind::Same, "{engine}: {:?}\n{text}", found.failure);
    }
}

/// State that is handed on, exchanged, read after the loop, of no elements; loops in loops; branches that
/// return what they were given.
fn control_flow() {
    same(
        "HloModule loops

condition {
  s = (s32[], f32[3], f32[3], f32[0,2]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(5)
  ROOT c = pred[] compare(i, n), direction=LT
}

inner_condition {
  s = (s32[], f32[3]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT c = pred[] compare(i, n), direction=LT
}

inner_body {
  s = (s32[], f32[3]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[3] get-tuple-element(s), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  y = f32[3] add(x, x)
  ROOT t = (s32[], f32[3]) tuple(j, y)
}

body {
  s = (s32[], f32[3], f32[3], f32[0,2]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  a = f32[3] get-tuple-element(s), index=1
  b = f32[3] get-tuple-element(s), index=2
  e = f32[0,2] get-tuple-element(s), index=3
  one = s32[] constant(1)
  j = s32[] add(i, one)
  zero = s32[] constant(0)
  start = (s32[], f32[3]) tuple(zero, a)
  inner = (s32[], f32[3]) while(start), condition=inner_condition, body=inner_body
  c = f32[3] get-tuple-element(inner), index=1
  ROOT t = (s32[], f32[3], f32[3], f32[0,2]) tuple(j, b, c, e)
}

ENTRY e {
  a = f32[3] parameter(0)
  b = f32[3] parameter(1)
  e = f32[0,2] parameter(2)
  zero = s32[] constant(0)
  s = (s32[], f32[3], f32[3], f32[0,2]) tuple(zero, a, b, e)
  w = (s32[], f32[3], f32[3], f32[0,2]) while(s), condition=condition, body=body
  c = f32[3] get-tuple-element(w), index=1
  sum = f32[3] add(c, a)
  ROOT r = ((s32[], f32[3], f32[3], f32[0,2]), f32[3], f32[3]) tuple(w, sum, a)
}
",
    );
    same(
        "HloModule branches

swap {
  p = (f32[2], f32[2]) parameter(0)
  a = f32[2] get-tuple-element(p), index=0
  b = f32[2] get-tuple-element(p), index=1
  ROOT t = (f32[2], f32[2]) tuple(b, a)
}

keep {
  ROOT p = (f32[2], f32[2]) parameter(0)
}

fixed {
  p = (f32[2], f32[2]) parameter(0)
  a = f32[2] get-tuple-element(p), index=0
  c = f32[2] constant({1, 2})
  n = f32[2] negate(a)
  ROOT t = (f32[2], f32[2]) tuple(c, n)
}

ENTRY e {
  a = f32[2] parameter(0)
  b = f32[2] parameter(1)
  k = s32[] parameter(2)
  q = pred[] parameter(3)
  p = (f32[2], f32[2]) tuple(a, b)
  x = (f32[2], f32[2]) conditional(k, p, p, p), branch_computations={swap, keep, fixed}
  y = (f32[2], f32[2]) conditional(q, x, p), true_computation=swap, false_computation=keep
  ROOT r = ((f32[2], f32[2]), (f32[2], f32[2]), f32[2]) tuple(x, y, a)
}
",
    );
}

/// What devices do together, inside of a loop too.
fn devices() {
    same(
        "HloModule collectives, replica_count=2, num_partitions=2

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}

condition {
  s = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT c = pred[] compare(i, n), direction=LT
}

body {
  s = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[4] get-tuple-element(s), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  moved = f32[4] collective-permute(x), source_target_pairs={{0,1},{1,0}}
  ROOT t = (s32[], f32[4]) tuple(j, moved)
}

ENTRY e {
  x = f32[4] parameter(0)
  zero = s32[] constant(0)
  s = (s32[], f32[4]) tuple(zero, x)
  w = (s32[], f32[4]) while(s), condition=condition, body=body
  y = f32[4] get-tuple-element(w), index=1
  all = f32[8] all-gather(y), replica_groups={}, dimensions={0}
  replica = u32[] replica-id()
  partition = u32[] partition-id()
  start = f32[4] all-reduce-start(x), replica_groups={{0},{1}}, to_apply=add
  done = f32[4] all-reduce-done(start)
  ROOT r = (f32[8], u32[], u32[], f32[4]) tuple(all, replica, partition, done)
}
",
    );
    let stuck = "HloModule stuck, replica_count=2

ENTRY e {
  x = f32[4] parameter(0)
  ROOT y = f32[4] collective-permute(x), source_target_pairs={{0,1},{1,0}}
}
";
    same(stuck);
}

/// Values without an end in time and sizes known only at run time are refused by name, with the interpreter's
/// help or not.
fn fallback() {
    let text = "HloModule dynamic

ENTRY e {
  x = f32[4] parameter(0)
  n = s32[] constant(2)
  d = f32[<=4] set-dimension-size(x, n), dimensions={0}
  ROOT s = s32[] get-dimension-size(d), dimensions={0}
}
";
    let found = compare("cpu", text, RunOptions::default());
    assert_eq!(found.kind, Kind::Same, "{:?}", found.failure);
    // What an update of that many elements replaces is known only at run time.
    let text = "HloModule dynamic

ENTRY e {
  x = f32[<=4] parameter(0)
  i = s32[] constant(0)
  ROOT s = f32[<=4] dynamic-update-slice(x, x, i)
}
";
    assert_eq!(compare("cpu", text, RunOptions::default()).kind, Kind::Unsupported);
}

/// Runs end where they may not go on.
fn limits() {
    let text = "HloModule long

condition {
  s = (s32[], f32[100000]) parameter(0)
  ROOT c = pred[] constant(true)
}

body {
  ROOT s = (s32[], f32[100000]) parameter(0)
}

ENTRY e {
  zero = s32[] constant(0)
  x = f32[100000] parameter(0)
  s = (s32[], f32[100000]) tuple(zero, x)
  ROOT w = (s32[], f32[100000]) while(s), condition=condition, body=body
}
";
    let (module, _) = parse_text(text);
    let module = module.unwrap();
    let arrays = inputs(&module, 0);
    let run = |limits: Limits| {
        let inputs = engine::Inputs::new(&module, &arrays).unwrap();
        let options = RunOptions { limits, ..RunOptions::default() };
        let outcome = engine::by_name("cpu:O0").unwrap().run(&module, inputs, &options);
        outcome.into_results().unwrap_err().1.code.as_str()
    };
    assert_eq!(run(Limits { fuel: Some(1000), ..Limits::default() }), "R0001");
    assert_eq!(run(Limits { fuel: Some(1000), memory_bytes: 1000 }), "R0002");
}

/// Parameters that the result may overwrite: the caller's arrays stay as they are.
fn donation() {
    same("HloModule donated, input_output_alias={ {0}: (0, {}, must-alias), {1}: (1, {}, may-alias) }, buffer_donor={ (2, {}) }

ENTRY e {
  a = f32[5] parameter(0)
  b = f32[5] parameter(1)
  c = f32[5] parameter(2)
  s = f32[5] add(a, b)
  d = f32[5] negate(c)
  m = f32[5] multiply(s, d)
  ROOT r = (f32[5], f32[5], f32[5]) tuple(m, a, s)
}
");
}

/// Weights that are constants of the program are packed when it is loaded; every result has the bits that it
/// has with arguments.
fn constants() {
    let text = "HloModule layers

ENTRY e {
  x = f32[2,9,9,8] parameter(0)
  kernel = f32[3,3,8,160] parameter(1)
  c = f32[2,9,9,160] convolution(x, kernel), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
  rows = f32[162,160] reshape(c)
  weights = f32[160,300] parameter(2)
  bias = f32[300] parameter(3)
  p = f32[162,300] dot(rows, weights), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  b = f32[162,300] broadcast(bias), dimensions={1}
  ROOT r = f32[162,300] add(p, b)
}
";
    let dir = Dir::new();
    let path = |name: &str| dir.path(name).to_string_lossy().into_owned();
    let file = dir.file("layers.hlo", text);
    ends(&hlo(&["run", &file, "--constant-args", "1-3", "--quiet"]), 0);
    for (list, output) in [("all-but=0,1,2,3", "arguments.npz"), ("1,2-3", "constants.npz")] {
        let output = path(output);
        let run = ["bench", &file, "--json", "--min-time", "0", "--constant-args", list, "--output", &output];
        let done = hlo(&run);
        ends(&done, 0);
        let said: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
        assert_eq!(said["packed_bytes"].as_u64() == Some(0), list.starts_with("all"), "{said}");
    }
    let read = |name: &str| std::fs::read(path(name)).unwrap();
    assert_eq!(read("arguments.npz"), read("constants.npz"));
    for command in ["run", "bench"] {
        ends(&hlo(&[command, &file, "--constant-args", "9"]), 2);
    }
}
