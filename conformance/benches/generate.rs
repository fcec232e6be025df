//! Time for a generated program: to make it with its inputs, to verify it, to run it. Figures that were
//! measured stand in `docs/benchmarks.md`.
//!
//! `cargo bench -p hlo-conformance --bench generate`

#![allow(missing_docs, reason = "criterion's macro makes a function without documentation")]
#![allow(clippy::unwrap_used, reason = "a bench fails by panicking")]

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use hlo_engines::engine::{self, Engine, Inputs, InterpreterEngine, RunOptions};
use hlo_generate::generate::{self, Case, Limits};

/// Programs of consecutive seeds, so that a figure is the mean of many.
const PROGRAMS: u64 = 1000;

fn run(case: &Case) -> engine::Outcome {
    let devices = engine::devices::stated(&case.module, None, None).unwrap();
    let inputs = Inputs::new(&case.module, &case.inputs).unwrap();
    InterpreterEngine.run(&case.module, inputs, &RunOptions { devices, ..RunOptions::default() })
}

fn generated(c: &mut Criterion) {
    for (name, limits) in [("small", Limits::small()), ("ordinary", Limits::default())] {
        let mut group = c.benchmark_group(format!("generated_{name}"));
        group.sample_size(10).throughput(Throughput::Elements(PROGRAMS));
        let seeds = 0..PROGRAMS;
        group.bench_function("make", |b| {
            b.iter(|| seeds.clone().for_each(|s| drop(black_box(generate::case(s, limits)))));
        });
        let cases: Vec<Case> = seeds.clone().map(|s| generate::case(s, limits)).collect();
        group.bench_function("verify", |b| {
            b.iter(|| cases.iter().for_each(|case| drop(black_box(hlo::verify::verify(&case.module)))));
        });
        group.bench_function("run", |b| {
            b.iter(|| cases.iter().for_each(|case| drop(black_box(run(case)))));
        });
        group.finish();
    }
}

criterion_group!(benches, generated);
criterion_main!(benches);
