//! Time to interpret the programs of `../shared/bench`, and a 128x128x128 product. Exact sums, generated
//! inputs; making the inputs is not timed. Figures that were measured stand in `docs/benchmarks.md`.
//!
//! `cargo bench -p hlo-conformance --bench interpreter [-- NAME]`

#![allow(missing_docs, reason = "criterion's macro makes a function without documentation")]
#![allow(clippy::unwrap_used, reason = "a bench fails by panicking")]
#![allow(clippy::print_stderr, reason = "says what it skips")]

use std::path::{Path, PathBuf};
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use hlo_engines::engine::{Engine, Inputs, InterpreterEngine, Outcome, RunOptions};
use hlo_engines::frontend;
use hlo_engines::inputs;
use hlo_interp::Devices;

const DOT: &str = "HloModule dot\n\nENTRY e {\n  a = f32[128,128]{1,0} parameter(0)\n  b = f32[128,128]{1,0} parameter(1)\n  \
                   ROOT d = f32[128,128]{1,0} dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n}\n";

fn bench_program(c: &mut Criterion, name: &str, module: &hlo::Module, range: Option<(i64, i64)>) {
    let plan = inputs::plan(module, range).unwrap();
    let arrays = inputs::generate(&plan, 0, Devices::ONE, 8 << 30).unwrap();
    let arguments = Inputs::new(module, &arrays).unwrap();
    let mut group = c.benchmark_group("interpret");
    group.sample_size(10).warm_up_time(Duration::from_millis(200)).measurement_time(Duration::from_secs(2));
    group.bench_with_input(BenchmarkId::from_parameter(name), &arguments, |b, arguments| {
        b.iter_batched(
            || arguments.clone(),
            |arguments| match InterpreterEngine.run(module, arguments, &RunOptions::default()) {
                Outcome::Finished(f) => f.results,
                other => panic!("{name}: {other:?}"),
            },
            criterion::BatchSize::PerIteration,
        );
    });
    group.finish();
}

fn programs(c: &mut Criterion) {
    let (dot, _) = frontend::parse_text(DOT);
    bench_program(c, "dot_128", &dot.unwrap(), None);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/bench");
    let Ok(entries) = std::fs::read_dir(&folder) else {
        eprintln!("skipped: there is no {}", folder.display());
        return;
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
    paths.retain(|p| p.extension().is_some_and(|e| e == "hlo"));
    paths.sort();
    for path in paths {
        let text = path.display().to_string();
        let program = frontend::load(&text).unwrap();
        let range = inputs::range_beside(&text).unwrap();
        let name = path.file_stem().unwrap().to_string_lossy();
        bench_program(c, &name, &program.module, range);
    }
}

criterion_group!(benches, programs);
criterion_main!(benches);
