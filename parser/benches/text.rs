//! Parsing and printing in MB/s, on the large modules of `../shared/corpus/xla` and on large constants, and
//! beside them XLA's own parser and printer on the same files in the same run.
//!
//! XLA runs in a Python with jaxlib, named by `HLO_PEER_PYTHON`; without it, only our figures are there.
//! After criterion's report a table gives medians of both; docs/benchmarks.md keeps one such table.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    missing_docs,
    reason = "a benchmark"
)]

use std::fmt::Write;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput};
use hlo::Module;
use hlo::print::{PrintOptions, print_module, write_module};
use hlo_parser::{ParseOptions, parse_module};

/// Modules from this size on are measured.
const LARGE: usize = 100_000;

struct Input {
    name: String,
    path: PathBuf,
    text: String,
}

/// The large modules, largest first, and one that is mostly constants.
fn inputs(scratch: &Path) -> Vec<Input> {
    let mut inputs = Vec::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/corpus/xla");
    match std::fs::read_dir(&folder) {
        Err(_) => eprintln!("SKIPPED: there is no ../shared/corpus/xla beside the project"),
        Ok(entries) => {
            for path in entries.map(|e| e.unwrap().path()) {
                let text = std::fs::read_to_string(&path).unwrap();
                if text.len() >= LARGE {
                    let stem = path.file_stem().unwrap().to_str().unwrap();
                    let name = stem.rsplit("__").next().unwrap().to_owned();
                    inputs.push(Input { name, path, text });
                }
            }
        }
    }
    inputs.sort_by_key(|i| std::cmp::Reverse(i.text.len()));
    for (name, ty) in [("constant_f32_250k", "f32"), ("constant_s32_250k", "s32")] {
        let text = constant(ty, 250_000);
        let path = scratch.join(format!("{name}.hlo"));
        std::fs::write(&path, &text).unwrap();
        inputs.push(Input { name: name.to_owned(), path, text });
    }
    inputs
}

/// A module with one constant of `n` numbers, none like the others.
fn constant(ty: &str, n: u64) -> String {
    let mut text = format!(
        "HloModule constants\n\nENTRY %main () -> {ty}[{n}] {{\n  ROOT %c = {ty}[{n}]{{0}} constant({{"
    );
    for i in 0..n {
        let r = hlo::elided::splitmix64(i);
        let separator = if i > 0 { ", " } else { "" };
        if ty == "f32" {
            write!(text, "{separator}{}", (r >> 40) as f32 / 1e6 - 8.0).unwrap();
        } else {
            write!(text, "{separator}{}", (r >> 44) as i64 - 500_000).unwrap();
        }
    }
    text + "})\n}\n\n"
}

fn parse(text: &str) -> Module {
    parse_module(text, &ParseOptions::default()).module.unwrap()
}

/// What a command that prints to a file needs: no copy of the text.
struct Discard;

impl Write for Discard {
    fn write_str(&mut self, s: &str) -> std::fmt::Result {
        black_box(s);
        Ok(())
    }
}

fn median(mut run: impl FnMut(), limit: Duration) -> f64 {
    let mut times = Vec::new();
    let end = Instant::now() + limit;
    while times.len() < 5 || Instant::now() < end {
        let start = Instant::now();
        run();
        times.push(start.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// XLA's median seconds for parsing and printing a file, and the bytes it prints.
fn xla(python: &str, path: &Path, seconds: f64) -> Result<(f64, f64, f64), String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../conformance/benches/xla_text.py");
    let output = Command::new(python).arg(script).arg(seconds.to_string()).arg(path).output();
    let output = output.map_err(|e| e.to_string())?;
    let line = String::from_utf8_lossy(&output.stdout).into_owned();
    let number = |key: &str| -> Option<f64> {
        let rest = line.split_once(&format!("\"{key}\": "))?.1;
        rest[..rest.find([',', '}'])?].parse().ok()
    };
    match (number("parse_s"), number("print_s"), number("printed_bytes")) {
        (Some(parse), Some(print), Some(bytes)) => Ok((parse, print, bytes)),
        _ => Err(if line.is_empty() { String::from_utf8_lossy(&output.stderr).into_owned() } else { line }),
    }
}

/// Both parsers alternately, file by file, so that a busy machine is as unfair to one as to the other.
fn table(inputs: &[Input]) {
    let python = std::env::var("HLO_PEER_PYTHON").ok();
    let limit = Duration::from_millis(500);
    println!("\nMB/s, medians: ours and XLA's (parse of the file; print with all constants)");
    println!("| module | MB | parse | XLA | print | streamed | XLA |");
    println!("|---|---|---|---|---|---|---|");
    for input in inputs {
        let module = parse(&input.text);
        let options = PrintOptions::source(&module);
        let size = input.text.len() as f64;
        let printed = print_module(&module, &options).len() as f64;
        let rate = |bytes: f64, seconds: f64| format!("{:.0}", bytes / seconds / 1e6);
        let parsing = rate(size, median(|| drop(black_box(parse(&input.text))), limit));
        let printing = rate(printed, median(|| drop(black_box(print_module(&module, &options))), limit));
        let streaming = median(|| write_module(&module, &options, &mut Discard).unwrap(), limit);
        let peer = python.as_deref().map(|p| xla(p, &input.path, limit.as_secs_f64()));
        let (peer_parse, peer_print) = match peer {
            None => ("-".to_owned(), "-".to_owned()),
            Some(Err(why)) => (format!("failed: {}", why.lines().last().unwrap_or("")), "-".to_owned()),
            Some(Ok((parse, print, bytes))) => (rate(size, parse), rate(bytes, print)),
        };
        let streaming = rate(printed, streaming);
        println!(
            "| {} | {:.2} | {parsing} | {peer_parse} | {printing} | {streaming} | {peer_print} |",
            input.name,
            size / 1e6
        );
    }
    if python.is_none() {
        println!("XLA was not run: HLO_PEER_PYTHON names no Python with jaxlib.");
    }
}

fn main() {
    let scratch = std::env::temp_dir().join(format!("hlo-text-bench-{}", std::process::id()));
    std::fs::create_dir_all(&scratch).unwrap();
    let inputs = inputs(&scratch);
    let mut criterion = Criterion::default().sample_size(20).configure_from_args();
    for (what, group) in [("parse", 0), ("print", 1)] {
        let mut group_of = criterion.benchmark_group(what);
        for input in &inputs {
            group_of.throughput(Throughput::Bytes(input.text.len() as u64));
            if group == 0 {
                group_of.bench_function(&input.name, |b| b.iter(|| parse(&input.text)));
            } else {
                let module = parse(&input.text);
                let options = PrintOptions::source(&module);
                group_of.bench_function(&input.name, |b| b.iter(|| print_module(&module, &options)));
            }
        }
        group_of.finish();
    }
    criterion.final_summary();
    // `cargo test` runs a benchmark once to see that it works; the table is for `cargo bench`.
    if std::env::args().any(|a| a == "--bench") {
        table(&inputs);
    }
    std::fs::remove_dir_all(&scratch).unwrap();
}
