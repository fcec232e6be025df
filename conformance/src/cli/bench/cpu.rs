//! Times of the compiler for this machine: compiling, running, steps.

use std::path::Path;
use std::time::{Duration, Instant};

use hlo::{ArrayLiteral, Module};
use hlo_codegen::runtime::executable::{Executable, Finished, RunOptions, StepInfo};
use hlo_codegen::runtime::limits::Limits;
use hlo_codegen::runtime::raw::buffer_of;
use hlo_cpu as cpu;
use hlo_engines::engine::cpu::{CpuOptions, ended, failed};
use hlo_engines::frontend::parse_text;
use hlo_library_base::tuning;
use hlo_system::exit::Failure;
use hlo_system::files::write_text;
use hlo_system::resident::{Mark, processor_time};
use serde_json::json;

use super::profile::{self, Profile};
use super::{Options, Timed, median, repeat};
use crate::cli::compiled::{self, Runs};

/// Compiled before anything is timed, so that what a process needs once is there.
const TRIVIAL: &str = "HloModule trivial

ENTRY e {
  p = f32[8]{0} parameter(0)
  ROOT r = f32[8]{0} add(p, p)
}
";

/// A stage of compilation: name, when it began after the first, how long it took.
type Stage = (String, Duration, Duration);

struct Ready {
    executable: Executable,
    stages: Vec<Stage>,
    peak_bytes: u64,
}

fn compile(module: &Module, options: CpuOptions, memory_bytes: u64) -> Result<Ready, Failure> {
    let compiled = cpu::compile(module, &options.compiler());
    let compiled = compiled.map_err(|error| failed(&error).failure())?;
    let (program, mut stages) = (compiled.program, compiled.times);
    let peak_bytes = program.buffers.peak_bytes;
    let start = Instant::now();
    let executable = compiled::load(program, memory_bytes)?;
    let begun = stages.last().map_or(Duration::ZERO, |(_, begun, took)| *begun + *took);
    stages.push(("load".to_owned(), begun, start.elapsed()));
    Ok(Ready { executable, stages, peak_bytes })
}

/// Times a program on one device, on these arrays.
pub(super) fn time(
    module: &Module,
    how: CpuOptions,
    options: &Options,
    arrays: Vec<ArrayLiteral>,
) -> Result<Timed, Failure> {
    if let Some(trivial) = parse_text(TRIVIAL).0 {
        compile(&trivial, how, u64::MAX)?;
    }
    let (compiling, ready) = median(3, || compile(module, how, options.limits.memory_limit));
    let Ready { executable, stages, peak_bytes: live_bytes } = ready?;

    let before = Mark::set();
    let prepared = Runs::new(&executable, &arrays)?;
    drop(arrays);
    let limits = RunOptions { fuel: options.limits.fuel, ..RunOptions::default() };
    let once = |how: &RunOptions<'_>| prepared.once(how);
    let first = once(&limits).map_err(|e| ended(e).failure())?;
    let peak_bytes = before.and_then(Mark::growth);
    let results = executable.result_shapes().enumerate().map(|(leaf, shape)| ArrayLiteral {
        dims: shape.dims.clone(),
        buffer: buffer_of(shape.element_type, first.block(leaf).bytes()).into(),
    });
    let results: Vec<ArrayLiteral> = if options.output.is_some() { results.collect() } else { Vec::new() };
    drop(first);

    let processor = processor_time();
    let (run, runs) = repeat(options.min_time, || drop(once(&limits)));
    let processor = processor_time().zip(processor).map(|(after, before)| after.saturating_sub(before));

    let mut where_time_goes = None;
    if options.profile || options.trace.is_some() {
        let runs = prepared.profiled(runs.clamp(3, 50), &limits)?;
        if options.profile {
            let limits = Limits::measure(executable.pool()).map_err(|e| ended(e.into()).failure())?;
            where_time_goes = Some(profile(executable.steps(), &runs, &stages, limits));
        }
        if let Some(path) = &options.trace {
            write_text(Path::new(path), &trace(executable.steps(), runs.last(), &stages))?;
        }
    }
    Ok(Timed {
        compile: compiling,
        run,
        runs,
        cpu_us: processor.map(|t| t.as_secs_f64() * 1e6 / runs.max(1) as f64),
        peak_bytes,
        live_bytes: live_bytes + executable.packed_bytes() - executable.given_back_bytes(),
        packed_bytes: executable.packed_bytes(),
        results: vec![results],
        profile: where_time_goes,
    })
}

/// Times of stages and steps, the longest first.
fn profile(steps: &[StepInfo], runs: &[Finished], stages: &[Stage], limits: Limits) -> Profile {
    let us = |t: Duration| t.as_secs_f64() * 1e6;
    let mut compile: Vec<profile::Stage> =
        stages.iter().map(|(name, _, took)| profile::Stage { name: name.clone(), us: us(*took) }).collect();
    compile.sort_by(|a, b| b.us.total_cmp(&a.us));
    let step = |(step, (time, count)): (&StepInfo, (Duration, u64))| {
        let rate = |n: u64| n as f64 * count as f64 / time.as_secs_f64().max(1e-9) / 1e9;
        profile::Step {
            name: step.name.clone(),
            kind: step.kind,
            strategy: step.strategy.clone(),
            us: us(time),
            count,
            gb_per_s: rate(step.bytes),
            gflop_per_s: rate(step.flops),
            packed_bytes: step.packed,
        }
    };
    let mut steps: Vec<profile::Step> =
        steps.iter().zip(compiled::medians(runs)).map(step).filter(|step| step.count > 0).collect();
    steps.sort_by(|a, b| b.us.total_cmp(&a.us));
    let (gb_per_s, gflop_per_s) = (limits.bytes_per_second / 1e9, limits.flops_per_second / 1e9);
    Profile { gb_per_s, gflop_per_s, tuned_for: tuning::here().name, compile, steps }
}

/// The stages of compilation and the steps of a run, as Chrome's `about:tracing` and Perfetto read them.
fn trace(steps: &[StepInfo], run: Option<&Finished>, stages: &[Stage]) -> String {
    let event = |name: &str, kind: &str, thread: u32, begin: Duration, took: Duration| {
        json!({
            "name": name, "cat": kind, "ph": "X", "pid": 1, "tid": thread,
            "ts": begin.as_secs_f64() * 1e6, "dur": took.as_secs_f64() * 1e6,
        })
    };
    let mut events: Vec<_> =
        stages.iter().map(|(name, begin, took)| event(name, "compile", 1, *begin, *took)).collect();
    let end = stages.last().map_or(Duration::ZERO, |(_, begin, took)| *begin + *took);
    let executed = run.map_or(&[][..], |r| &r.events);
    let first = executed.iter().map(|e| e.1).min();
    for (number, begin, took) in executed {
        let step = &steps[*number as usize];
        let begin = end + begin.duration_since(first.unwrap_or(*begin));
        events.push(event(&step.name, step.kind, 2, begin, *took));
    }
    json!({ "traceEvents": events, "displayTimeUnit": "ns" }).to_string()
}
