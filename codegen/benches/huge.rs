//! How long huge programs take, stage by stage, at a size and at half of it: a stage whose time doubles is linear.
//!
//! `cargo bench -p hlo-codegen --bench huge [-- PROGRAM]`

#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs, reason = "a benchmark")]

use std::fmt::Write;
use std::time::Instant;

use hlo_codegen::buffers::{Questions, assign};
use hlo_codegen::passes::{Fuel, Pass, Pipeline, Steps, by_name};
use hlo_parser::{ParseOptions, parse_module};

/// A chain of elementwise instructions, a third of them with an operand of long ago.
fn chain(n: usize) -> String {
    let mut text = String::from("HloModule chain\n\nENTRY main {\n  v0 = f32[64] parameter(0)\n");
    for i in 1..=n {
        let root = if i == n { "ROOT " } else { "" };
        let far = if i % 3 == 0 { i / 2 } else { i - 1 };
        let opcode = ["add", "multiply", "subtract"][i % 3];
        writeln!(text, "  {root}v{i} = f32[64] {opcode}(v{}, v{far})", i - 1).unwrap();
    }
    text + "}\n"
}

/// A chain in which no instruction may write over its operand.
fn reversals(n: usize) -> String {
    let mut text = String::from("HloModule reversals\n\nENTRY main {\n  v0 = f32[64,2] parameter(0)\n");
    for i in 1..=n {
        let root = if i == n { "ROOT " } else { "" };
        let dim = i % 2;
        writeln!(text, "  {root}v{i} = f32[64,2] reverse(v{}), dimensions={{{dim}}}", i - 1).unwrap();
    }
    text + "}\n"
}

/// A tuple of n results.
fn tuple(n: usize) -> String {
    let mut text = String::from("HloModule tuple\n\nENTRY main {\n");
    for i in 0..n {
        writeln!(text, "  p{i} = f32[8] parameter({i})\n  v{i} = f32[8] sine(p{i})").unwrap();
    }
    list(&mut text, n, "ROOT t", "v");
    text + "}\n"
}

fn list(text: &mut String, n: usize, name: &str, operand: &str) {
    let shapes = vec!["f32[8]"; n].join(", ");
    let operands: Vec<String> = (0..n).map(|i| format!("{operand}{i}")).collect();
    writeln!(text, "  {name} = ({shapes}) tuple({})", operands.join(", ")).unwrap();
}

/// A loop over n arrays, each of which it changes, and all alive at once in between.
fn state(n: usize) -> String {
    let shapes = vec!["f32[8]"; n].join(", ");
    let mut text = format!(
        "HloModule state\n\ncond {{\n  s = ({shapes}) parameter(0)\n  x = f32[8] get-tuple-element(s), index=0\n  \
         o = f32[1] slice(x), slice={{[0:1]}}\n  r = f32[] reshape(o)\n  z = f32[] constant(0)\n  \
         ROOT lt = pred[] compare(r, z), direction=LT\n}}\n\nbody {{\n  s = ({shapes}) parameter(0)\n"
    );
    for i in 0..n {
        writeln!(text, "  g{i} = f32[8] get-tuple-element(s), index={i}").unwrap();
    }
    for i in 0..n {
        writeln!(text, "  v{i} = f32[8] reverse(g{i}), dimensions={{0}}").unwrap();
    }
    list(&mut text, n, "ROOT t", "v");
    text += "}\n\nENTRY main {\n";
    for i in 0..n {
        writeln!(text, "  p{i} = f32[8] parameter({i})").unwrap();
    }
    list(&mut text, n, "t", "p");
    writeln!(text, "  ROOT w = ({shapes}) while(t), condition=cond, body=body\n}}").unwrap();
    text
}

/// Milliseconds of each stage.
#[derive(Default)]
struct Stages(Vec<(String, f64)>);

impl Stages {
    fn time<T>(&mut self, name: &str, f: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let value = f();
        self.add(name, start.elapsed().as_secs_f64() * 1e3);
        value
    }

    fn add(&mut self, name: &str, ms: f64) {
        match self.0.iter_mut().find(|s| s.0 == name) {
            Some(s) => s.1 += ms,
            None => self.0.push((name.to_owned(), ms)),
        }
    }
}

struct Times<'a> {
    stages: &'a mut Stages,
    since: Instant,
}

impl Steps for Times<'_> {
    fn before(&mut self, _: usize, _: &dyn Pass, _: &hlo::Module) {
        self.since = Instant::now();
    }

    fn after(&mut self, _: usize, pass: &dyn Pass, _: &hlo::Module, _: u64) {
        self.stages.add(pass.name(), self.since.elapsed().as_secs_f64() * 1e3);
    }
}

fn run(text: &str) -> Stages {
    let mut s = Stages::default();
    let mut module = s.time("parse", || parse_module(text, &ParseOptions::default()).module.unwrap());
    assert!(!s.time("verify", || hlo::verify::verify(&module)).has_errors());
    let original = module.clone();
    let mut fuel = Fuel::UNLIMITED;
    let mut times = Times { stages: &mut s, since: Instant::now() };
    Pipeline::standard().run_watched(&mut module, &mut fuel, &mut times).unwrap();
    // Buffers of the program as it is: the passes leave little of some.
    let mut module = original;
    let pipeline = ["flatten-call-graph", "schedule"]
        .into_iter()
        .fold(Pipeline::new(), |p, name| p.then(by_name(name).unwrap(), None));
    pipeline.run_watched(&mut module, &mut fuel, &mut times).unwrap();
    let questions = Questions { scratch: &|_| 0, whole: &|_| false };
    let assigned = s.time("buffers", || assign(&module, &questions).unwrap());
    let a = &assigned.assignment;
    println!("  peak {} bytes, lower bound {}", a.peak_bytes, a.lower_bound_bytes);
    s
}

/// Name, the text of so many instructions, how many.
type Kind = (&'static str, fn(usize) -> String, usize);

fn main() {
    let wanted = std::env::args().skip(1).find(|a| !a.starts_with('-'));
    let programs: [Kind; 4] = [
        ("chain", chain, 100_000),
        ("reversals", reversals, 100_000),
        ("tuple", tuple, 20_000),
        ("state", state, 20_000),
    ];
    for (name, make, n) in programs {
        if wanted.as_deref().is_some_and(|w| w != name) {
            continue;
        }
        println!("{name}, {n}:");
        let (half, whole) = (run(&make(n / 2)), run(&make(n)));
        for ((stage, a), (_, b)) in half.0.iter().zip(&whole.0) {
            println!("  {stage:28} {b:9.1} ms  {:5.2} times", b / a);
        }
        println!("  {:28} {:9.1} ms", "all", whole.0.iter().map(|s| s.1).sum::<f64>());
    }
}
