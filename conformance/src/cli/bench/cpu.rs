//! Times of the compiler for this machine: compiling, running, steps.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hlo::{ArrayLiteral, Module};
use hlo_codegen::cpu;
use hlo_codegen::runtime::arena::Block;
use hlo_codegen::runtime::executable::{Argument, Executable, Finished, LoadOptions, RunOptions, StepInfo};
use hlo_codegen::runtime::limits::Limits;
use hlo_codegen::runtime::raw::{buffer_of, bytes_of};
use serde_json::json;

use super::{Options, Timed, median, repeat};
use crate::cli::ui::Ui;
use crate::engine::cpu::{CpuOptions, ended, failed, pool};
use crate::exit::Failure;
use crate::frontend::parse_text;
use crate::report;
use crate::resident::{Mark, processor_time};

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
    let load = LoadOptions { pool: Arc::clone(pool()), memory_bytes };
    let executable = Executable::load(program, &load).map_err(|e| ended(e).failure())?;
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
    ui: &Ui,
) -> Result<Timed, Failure> {
    if let Some(trivial) = parse_text(TRIVIAL).0 {
        compile(&trivial, how, u64::MAX)?;
    }
    let (compiling, ready) = median(3, || compile(module, how, options.limits.memory_limit));
    let Ready { executable, stages, peak_bytes: live_bytes } = ready?;

    let before = Mark::set();
    let mut inputs: Vec<Block> = Vec::with_capacity(arrays.len());
    for array in &arrays {
        let bytes = bytes_of(&array.buffer);
        let mut block = executable.store().take(bytes.len() as u64).map_err(|e| ended(e.into()).failure())?;
        block.bytes_mut().copy_from_slice(bytes);
        inputs.push(block);
    }
    drop(arrays);
    let limits = RunOptions { fuel: options.limits.fuel, ..RunOptions::default() };
    let mut arguments: Vec<Argument<'_>> = inputs.iter().map(|b| Argument::Borrowed(b.bytes())).collect();
    let mut once = |how: &RunOptions<'_>| {
        for (argument, block) in arguments.iter_mut().zip(&inputs) {
            *argument = Argument::Borrowed(block.bytes());
        }
        executable.run(&mut arguments, how)
    };
    let first = once(&limits).map_err(|e| ended(e).failure())?;
    let peak_bytes = before.and_then(Mark::growth);
    let results = executable.result_shapes().zip(&first.results).map(|(shape, block)| ArrayLiteral {
        dims: shape.dims.clone(),
        buffer: buffer_of(shape.element_type, block.bytes()),
    });
    let results: Vec<ArrayLiteral> = if options.output.is_some() { results.collect() } else { Vec::new() };
    drop(first);

    let processor = processor_time();
    let (run, runs) = repeat(options.min_time, || drop(once(&limits)));
    let processor = processor_time().zip(processor).map(|(after, before)| after.saturating_sub(before));

    if options.profile || options.trace.is_some() {
        let profiled = RunOptions { profile: true, ..limits };
        let runs: Result<Vec<Finished>, _> = (0..runs.clamp(3, 50)).map(|_| once(&profiled)).collect();
        let runs = runs.map_err(|e| ended(e).failure())?;
        if options.profile {
            let limits = Limits::measure(executable.pool()).map_err(|e| ended(e.into()).failure())?;
            ui.line(table(executable.steps(), &runs, &stages, limits));
        }
        if let Some(path) = &options.trace {
            let trace = trace(executable.steps(), runs.last(), &stages);
            let failed =
                |e| Failure::usage(format!("{path}: cannot be written: {}", crate::files::describe(&e)));
            std::fs::write(path, trace).map_err(failed)?;
        }
    }
    Ok(Timed {
        compile: compiling,
        run,
        runs,
        cpu_us: processor.map(|t| t.as_secs_f64() * 1e6 / runs.max(1) as f64),
        peak_bytes,
        live_bytes,
        results: vec![results],
    })
}

/// Time of each step, the longest first, with what the machine could do at most.
fn table(steps: &[StepInfo], runs: &[Finished], stages: &[Stage], limits: Limits) -> String {
    let mut text = String::new();
    let total: Duration = stages.iter().map(|s| s.2).sum();
    let _ = writeln!(text, "compilation {}", report::time(total));
    let mut by_time: Vec<&Stage> = stages.iter().filter(|s| s.2 * 100 > total).collect();
    by_time.sort_by_key(|s| std::cmp::Reverse(s.2));
    for (name, _, took) in by_time {
        let share = took.as_secs_f64() / total.as_secs_f64() * 100.0;
        let _ = writeln!(text, "  {:>9} {share:5.1}%  {name}", report::time(*took));
    }
    let (gb, gflop) = (limits.bytes_per_second / 1e9, limits.flops_per_second / 1e9);
    let _ = writeln!(text, "steps of a run; this machine: {gb:.1} GB/s, {gflop:.0} GFLOP/s");
    let median_of = |i: usize| {
        let mut times: Vec<(Duration, u64)> = runs.iter().map(|r| (r.times[i].1, r.times[i].0)).collect();
        times.sort_unstable();
        times[times.len() / 2]
    };
    // What a loop or branch holds is counted there.
    let mut rows: Vec<(Duration, u64, &StepInfo)> = steps
        .iter()
        .enumerate()
        .map(|(i, step)| (median_of(i).0, median_of(i).1, step))
        .filter(|(_, count, _)| *count > 0)
        .collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.0));
    let all: Duration =
        rows.iter().filter(|r| r.2.kind != "while" && r.2.kind != "conditional").map(|r| r.0).sum();
    let _ = writeln!(text, "       time  share   count      GB/s  GFLOP/s  limit  step");
    for (time, count, step) in rows.into_iter().take(40) {
        let seconds = time.as_secs_f64().max(1e-9);
        let rate = |n: u64| n as f64 * count as f64 / seconds / 1e9;
        let (bytes, flops) = (rate(step.bytes), rate(step.flops));
        let limit = (bytes / gb).max(flops / gflop) * 100.0;
        let share = seconds / all.as_secs_f64().max(1e-9) * 100.0;
        let _ = writeln!(
            text,
            "  {:>9} {share:5.1}% {count:7} {bytes:9.2} {flops:8.2} {limit:5.0}%  {} {}",
            report::time(time),
            step.kind,
            step.name
        );
    }
    text.truncate(text.trim_end().len());
    text
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
