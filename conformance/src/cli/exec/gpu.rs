//! Programs for GPUs: on a device, or in the interpreter of PTX.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hlo::{ArrayLiteral, ArrayShape, Literal};
use hlo_client::gpu_artifact;
use hlo_codegen::compilation::Assemble as _;
use hlo_gpu::interpreted::{Interpreted, Modules};
use hlo_gpu::program::Program;
use hlo_gpu::run::{self, Limits, RunError};
use serde::Serialize;

use super::{Options, arguments, leaves, results_of};
use crate::cli::ui::Ui;
use hlo_engines::engine::gpu::{GpuOptions, failure, run_failure};
use hlo_system::exit::{Exit, Failure};
use hlo_triage::report;

#[derive(Serialize)]
struct InfoObject<'a> {
    name: &'a str,
    build: &'a str,
    target: &'a str,
    parameters: Vec<String>,
    result: String,
    launches: usize,
    code_bytes: u64,
    constant_bytes: u64,
}

#[cfg(feature = "cuda")]
#[derive(Serialize)]
struct TimesObject<'a> {
    name: &'a str,
    device: &'a str,
    iterations: usize,
    launches: usize,
    /// Of single runs, by events of the device.
    median_us: f64,
    least_us: f64,
    /// A run among many that are launched one after the other.
    steady_us: f64,
}

pub(super) fn run(options: &Options, ui: &Ui, bytes: &[u8]) -> Result<Exit, Failure> {
    let named = |e: Failure| Failure::new(e.exit, format!("{}: {}", options.file.display(), e.message));
    let (info, compilation) = gpu_artifact::read(bytes).map_err(|e| named(e.into()))?;
    let program = compilation.assemble(cfg!(debug_assertions), &mut |_, _| {});
    let program = program.map_err(|e| named(failure(&e.into())))?;
    if options.info {
        say(&info, &program, ui);
        return Ok(Exit::Ok);
    }
    let shapes: Vec<ArrayShape> = info.signature.parameters.iter().flat_map(leaves).collect();
    let arguments: Vec<Literal> = arguments(options, &shapes)?.into_iter().map(Literal::Array).collect();
    let arguments: Vec<&Literal> = arguments.iter().collect();
    let limits = Limits { steps: options.limits.fuel.unwrap_or(u64::MAX) };
    let name = info.signature.name.clone();
    let refused = |e: RunError| named(run_failure(&e));
    match options
        .platform
        .split_once(':')
        .map_or((&*options.platform, None), |(kind, rest)| (kind, Some(rest)))
    {
        ("ptx", None) => {
            let modules = Modules::new(&program).map_err(refused)?;
            let checks = hlo_ptx::Options::default();
            let start = Instant::now();
            let mut device = Interpreted::new(&program, modules, checks, options.limits.memory_limit);
            let arrays = run::execute(&program, &mut device, &arguments, limits).map_err(refused)?;
            results_of(options, ui, &name, &arrays, start.elapsed())
        }
        ("cuda", rest) => {
            let ordinal = GpuOptions::parse(rest)?.ordinal;
            let (arrays, time) =
                on_device(options, ui, Arc::new(program), &arguments, limits, ordinal).map_err(refused)?;
            results_of(options, ui, &name, &arrays, time)
        }
        _ => Err(Failure::usage(format!(
            "a program for GPUs runs on `cuda` or `ptx`, not on `{}`",
            options.platform
        ))),
    }
}

#[cfg(feature = "cuda")]
fn on_device(
    options: &Options,
    ui: &Ui,
    program: Arc<Program>,
    arguments: &[&Literal],
    limits: Limits,
    ordinal: usize,
) -> Result<(Vec<ArrayLiteral>, Duration), RunError> {
    use hlo_gpu::cuda::Gpu;
    /// The longest that the device may take.
    const TIMEOUT: Duration = Duration::from_secs(120);
    /// About how long runs are launched back to back.
    const STEADY_US: f64 = 100_000.0;
    let gpu = Gpu::open(ordinal, TIMEOUT)?;
    let mut loaded = gpu.load(Arc::clone(&program), options.cuda_graphs)?;
    let start = Instant::now();
    let arrays = run::execute(&program, &mut loaded, arguments, limits)?;
    let time = start.elapsed();
    if options.iterations > 0 {
        let mut times = Vec::new();
        // What was launched once is a graph from the second run on: two runs do not count.
        for iteration in 0..options.iterations + 2 {
            let begin = loaded.record()?;
            run::run(&program, &mut loaded, limits)?;
            let end = loaded.record()?;
            loaded.synchronize()?;
            if iteration >= 2 {
                times.push(f64::from(end.milliseconds_since(&begin)?) * 1e3);
            }
        }
        times.sort_unstable_by(f64::total_cmp);
        let begin = loaded.record()?;
        let many = ((STEADY_US / times[times.len() / 2].max(1.0)) as u32).clamp(3, 2000);
        for _ in 0..many {
            run::run(&program, &mut loaded, limits)?;
        }
        let end = loaded.record()?;
        loaded.synchronize()?;
        let steady_us = f64::from(end.milliseconds_since(&begin)?) * 1e3 / f64::from(many);
        let (device, _) = gpu.describe();
        let (median_us, least_us) = (times[times.len() / 2], times[0]);
        let launches = program.plan.launches();
        if ui.json {
            let iterations = times.len();
            ui.object(&TimesObject {
                name: &program.name,
                device: &device,
                iterations,
                launches,
                median_us,
                least_us,
                steady_us,
            });
        } else {
            ui.line(format!(
                "{}: {steady_us:.1} us a run on {device}, {median_us:.1} alone (median of {}, least {least_us:.1}; {launches} kernels)",
                program.name,
                times.len(),
            ));
        }
    }
    Ok((arrays, time))
}

#[cfg(not(feature = "cuda"))]
fn on_device(
    _: &Options,
    _: &Ui,
    _: Arc<Program>,
    _: &[&Literal],
    _: Limits,
    _: usize,
) -> Result<(Vec<ArrayLiteral>, Duration), RunError> {
    Err(RunError::Unsupported("this program was built without CUDA".into()))
}

fn say(info: &gpu_artifact::GpuArtifactInfo, program: &Program, ui: &Ui) {
    let parameters: Vec<String> = info.signature.parameters.iter().map(ToString::to_string).collect();
    let result = info.signature.result.to_string();
    let launches = program.plan.launches();
    if ui.json {
        ui.object(&InfoObject {
            name: &info.signature.name,
            build: &info.build,
            target: info.arch.name(),
            parameters,
            result,
            launches,
            code_bytes: info.code_bytes,
            constant_bytes: info.constant_bytes,
        });
        return;
    }
    ui.line(format!("{}: ({}) -> {result}", info.signature.name, parameters.join(", ")));
    ui.line(format!("  compiled by {} for {}", info.build, info.arch));
    let (code, constants) = (report::bytes(info.code_bytes), report::bytes(info.constant_bytes));
    ui.line(format!("  {launches} launches of kernels, code {code}, constants {constants}"));
}
