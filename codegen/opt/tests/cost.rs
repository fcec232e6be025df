//! What the default pipeline costs on large programs: near-linear, whatever their form. `cargo test --release
//! -p hlo-opt --test cost -- --nocapture` prints times by pass.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test fails by panicking, and its times are for people"
)]

use std::fmt::Write;
use std::time::{Duration, Instant};

use hlo::Module;
use hlo_opt::passes::{Fuel, Pass, Pipeline, Steps};
use rustc_hash::FxHashMap;

#[derive(Default)]
struct Times {
    since: Option<Instant>,
    of: FxHashMap<String, (Duration, u64)>,
}

impl Steps for Times {
    fn before(&mut self, _: usize, _: &dyn Pass, _: &Module) {
        self.since = Some(Instant::now());
    }

    fn after(&mut self, _: usize, pass: &dyn Pass, _: &Module, applications: u64) {
        let entry = self.of.entry(pass.name().to_owned()).or_default();
        entry.0 += self.since.map(|s| s.elapsed()).unwrap_or_default();
        entry.1 += applications;
    }
}

fn cost(name: &str, text: &str) -> Duration {
    let module = hlo_parser::parse_module(text, &hlo_parser::ParseOptions::default()).module.unwrap();
    let mut best = Duration::MAX;
    let mut times = Times::default();
    for _ in 0..3 {
        let mut form = module.clone();
        let mut watch = Times::default();
        let start = Instant::now();
        Pipeline::standard().run_watched(&mut form, &mut Fuel::UNLIMITED.clone(), &mut watch).unwrap();
        if start.elapsed() < best {
            (best, times) = (start.elapsed(), watch);
        }
    }
    let mut rows: Vec<_> = times.of.into_iter().collect();
    rows.sort_by_key(|(_, (t, _))| std::cmp::Reverse(*t));
    eprintln!("{name}: {best:?}");
    for (pass, (time, applications)) in rows.iter().take(8) {
        eprintln!("  {pass:34} {time:>12?} {applications:8}");
    }
    best
}

fn chain(n: usize) -> String {
    let mut text =
        String::from("HloModule m\nENTRY main {\n  x0 = f32[8] parameter(0)\n  y = f32[8] parameter(1)\n");
    let ops = ["add", "multiply", "maximum", "subtract"];
    for i in 1..n {
        writeln!(text, "  x{i} = f32[8] {}(x{}, y)", ops[i % 4], i - 1).unwrap();
    }
    writeln!(text, "  ROOT r = f32[8] negate(x{})\n}}", n - 1).unwrap();
    text
}

fn wide(n: usize) -> String {
    let shape = format!("({})", vec!["f32[4]"; n].join(", "));
    let mut text = format!("HloModule m\nENTRY main {{\n  p = {shape} parameter(0)\n");
    for i in 0..n {
        writeln!(text, "  g{i} = f32[4] get-tuple-element(p), index={i}\n  h{i} = f32[4] negate(g{i})")
            .unwrap();
    }
    let names: Vec<String> = (0..n).map(|i| format!("h{i}")).collect();
    writeln!(text, "  ROOT t = {shape} tuple({})\n}}", names.join(", ")).unwrap();
    text
}

/// Calls of computations that call others, one computation each.
fn calls(n: usize) -> String {
    let mut text =
        String::from("HloModule m\nf0 {\n  p = f32[8] parameter(0)\n  ROOT r = f32[8] sine(p)\n}\n");
    for i in 1..n {
        writeln!(text, "f{i} {{\n  p = f32[8] parameter(0)\n  q = f32[8] negate(p)\n  ROOT r = f32[8] call(q), to_apply=f{}\n}}", i / 2).unwrap();
    }
    text.push_str("ENTRY main {\n  x0 = f32[8] parameter(0)\n");
    for i in 1..n {
        writeln!(text, "  x{i} = f32[8] call(x{}), to_apply=f{i}", i - 1).unwrap();
    }
    writeln!(text, "  ROOT r = f32[8] negate(x{})\n}}", n - 1).unwrap();
    text
}

/// Each computation calls the one before.
fn nested(n: usize) -> String {
    let mut text =
        String::from("HloModule m\nf0 {\n  p = f32[8] parameter(0)\n  ROOT r = f32[8] sine(p)\n}\n");
    for i in 1..n {
        writeln!(text, "f{i} {{\n  p = f32[8] parameter(0)\n  q = f32[8] call(p), to_apply=f{}\n  ROOT r = f32[8] negate(q)\n}}", i - 1).unwrap();
    }
    writeln!(
        text,
        "ENTRY main {{\n  x = f32[8] parameter(0)\n  ROOT r = f32[8] call(x), to_apply=f{}\n}}",
        n - 1
    )
    .unwrap();
    text
}

#[test]
fn large_programs_cost_about_as_much_more_as_they_are_larger() {
    let chain = ("chain", chain as fn(usize) -> String);
    for (name, make) in [chain, ("wide tuple", wide), ("calls", calls), ("nested calls", nested)] {
        let (small, large) = (cost(name, &make(1000)), cost(name, &make(8000)));
        // Eight times the size: quadratic would be 64.
        assert!(large < small * 32 + Duration::from_millis(50), "{name}: {small:?} and {large:?}");
    }
}

#[test]
#[ignore = "a measurement"]
fn cost_of_large_programs() {
    cost("chain of 100,000", &chain(100_000));
    cost("tuple of 20,000", &wide(20_000));
    cost("10,000 calls", &calls(10_000));
    cost("calls nested 10,000 deep", &nested(10_000));
    let bench = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/bench");
    let Ok(folder) = std::fs::read_dir(bench) else { return };
    for path in folder.flatten().map(|e| e.path()).filter(|p| p.extension().is_some_and(|e| e == "hlo")) {
        cost(&path.file_stem().unwrap().to_string_lossy(), &std::fs::read_to_string(&path).unwrap());
    }
}
