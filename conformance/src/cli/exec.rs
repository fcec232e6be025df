//! `hlo exec`: runs what `hlo compile` made. It needs no LLVM.

mod gpu;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use hlo::{ArrayLiteral, ArrayShape, Shape};
use hlo_client::trace::Trace;
use hlo_client::{Buffer, Client, ClientOptions, ExecuteOptions, artifact, gpu_artifact};
use hlo_interp::Devices;
use serde::Serialize;

use super::LimitOptions;
use super::ui::Ui;
use hlo_engines::engine::array_name;
use hlo_engines::engine::cpu::machine;
use hlo_engines::inputs;
use hlo_system::exit::{Exit, Failure};
use hlo_system::files::{describe, open_regular, write_text};
use hlo_system::loaded::{self, Loading};
use hlo_system::npz::{self, Npz};
use hlo_triage::report;

/// Options of `hlo exec`.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  hlo compile module.hlo && hlo exec module.hloexe --inputs in.npz --output out.npz\n  hlo compile module.hlo --target sm_90 && hlo exec module.hloexe --iterations 20   on a GPU\n  hlo exec module.hloexe --platform ptx         in the interpreter of PTX\n\nA compiled program is machine code: run only what you trust as you trust a program."
)]
pub(crate) struct Options {
    /// The compiled program
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Inputs: arrays arg0, ...; made if not given
    #[arg(long, value_name = "NPZ")]
    inputs: Option<String>,
    /// Where to write the results: arrays out0, ...
    #[arg(long, value_name = "NPZ")]
    output: Option<PathBuf>,
    /// Seed of made inputs and of rng
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    /// Where a program for GPUs runs: `cuda`, `cuda:N` or `ptx`
    #[arg(long, value_name = "PLATFORM", default_value = "cuda")]
    platform: String,
    /// Run a program for GPUs that many times more, and say what a run takes on the device
    #[arg(long, value_name = "N", default_value_t = 0)]
    iterations: u32,
    /// Whether launches on a GPU that follow each other become CUDA graphs: `off` or `explicit`
    #[cfg(feature = "cuda")]
    #[arg(long, value_name = "HOW", default_value = "explicit")]
    cuda_graphs: hlo_gpu::cuda::Graphs,
    /// A shared library with handlers of custom calls (XLA's FFI), which runs as this program does:
    /// LIBRARY.so, or LIBRARY.so:TARGET=SYMBOL,...; may be given again
    #[arg(long, value_name = "LIBRARY")]
    load: Vec<Loading>,
    /// Say at the end what the runtime did and holds
    #[arg(long)]
    metrics: bool,
    /// Where to write when what was loaded, copied and run, in Chrome's trace format
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Say what the file holds, and run nothing
    #[arg(long)]
    info: bool,
    #[command(flatten)]
    pub(super) limits: LimitOptions,
}

#[derive(Serialize)]
struct InfoObject<'a> {
    name: &'a str,
    build: &'a str,
    target: &'a str,
    needs: &'a [String],
    parameters: Vec<String>,
    result: String,
    code_bytes: u64,
    constant_bytes: u64,
}

#[derive(Serialize)]
struct Object {
    file: String,
    ok: bool,
    run_us: u128,
    results: Vec<ResultObject>,
}

#[derive(Serialize)]
struct ResultObject {
    name: String,
    shape: String,
}

fn leaves(shape: &Shape) -> impl Iterator<Item = ArrayShape> {
    shape.leaves().into_iter().filter_map(Shape::as_array).cloned()
}

pub(crate) fn run(options: &Options, ui: &Ui) -> Result<Exit, Failure> {
    let bytes = read(&options.file)?;
    let named = |e: hlo_client::Error| {
        let failure = Failure::from(e);
        Failure::new(failure.exit, format!("{}: {}", options.file.display(), failure.message))
    };
    if gpu_artifact::is_artifact(&bytes) {
        return gpu::run(options, ui, &bytes);
    }
    if options.info {
        say(&artifact::info(&bytes).map_err(named)?, ui);
        return Ok(Exit::Ok);
    }
    loaded::load(&options.load)?;
    let client = Client::cpu(ClientOptions {
        memory_budget_bytes: Some(options.limits.memory_limit),
        never_evict: true,
        custom_calls: loaded::custom_calls(),
        trace: options.trace.as_ref().map(|_| Trace::new()),
        configuration: machine().configuration,
        ..ClientOptions::default()
    })?;
    let executable = client.load(&bytes).map_err(named)?;
    drop(bytes);
    let shapes: Vec<ArrayShape> = executable.parameters().iter().flat_map(leaves).collect();
    let arrays = arguments(options, &shapes)?;
    let buffers: Vec<Buffer> = arrays.iter().map(|a| client.buffer(a)).collect::<Result<_, _>>()?;
    drop(arrays);
    let arguments: Vec<&Buffer> = buffers.iter().collect();
    let run =
        ExecuteOptions { fuel: options.limits.fuel, rng_seed: options.seed, ..ExecuteOptions::default() };
    let start = Instant::now();
    let results = executable.execute_with(&arguments, &run)?;
    let time = start.elapsed();
    let arrays: Vec<ArrayLiteral> = results.iter().map(Buffer::to_literal).collect::<Result<_, _>>()?;
    let metrics = client.metrics();
    if let (Some(path), Some(trace)) = (&options.trace, client.trace()) {
        write_text(path, &trace.to_chrome())?;
    }
    let exit = results_of(options, ui, executable.name(), &arrays, time)?;
    if options.metrics {
        ui.line(metrics.to_json());
    }
    Ok(exit)
}

/// Writes and prints the results of a run.
fn results_of(
    options: &Options,
    ui: &Ui,
    name: &str,
    arrays: &[ArrayLiteral],
    time: Duration,
) -> Result<Exit, Failure> {
    if let Some(path) = &options.output {
        let named: Vec<(String, &ArrayLiteral)> =
            arrays.iter().enumerate().map(|(i, a)| (array_name(1, 0, "out", i), a)).collect();
        npz::write(path, &named)?;
    }
    let shape = |a: &ArrayLiteral| a.shape().to_string();
    if ui.json {
        let results = arrays.iter().enumerate();
        let results =
            results.map(|(i, a)| ResultObject { name: array_name(1, 0, "out", i), shape: shape(a) });
        ui.object(&Object {
            file: options.file.display().to_string(),
            ok: true,
            run_us: time.as_micros(),
            results: results.collect(),
        });
        return Ok(Exit::Ok);
    }
    ui.detail(format!("  run      {} in {}", name, report::time(time)));
    if options.output.is_none() || ui.verbose {
        for (i, array) in arrays.iter().enumerate() {
            let name = array_name(1, 0, "out", i);
            ui.line(format!("{name} = {} {}", shape(array), report::array_text(array)));
        }
    }
    Ok(Exit::Ok)
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    use std::io::Read;
    let mut bytes = Vec::new();
    let read = open_regular(path).and_then(|mut file| file.read_to_end(&mut bytes));
    read.map_err(|e| Failure::usage(format!("{}: cannot be read: {}", path.display(), describe(&e))))?;
    Ok(bytes)
}

fn arguments(options: &Options, shapes: &[ArrayShape]) -> Result<Vec<ArrayLiteral>, Failure> {
    let Some(path) = &options.inputs else {
        let plan = inputs::plan_of_shapes(shapes);
        let made = inputs::generate(&plan, options.seed, Devices::ONE, options.limits.memory_limit)?;
        return Ok(made.into_iter().flatten().collect());
    };
    let mut npz = Npz::open(path, options.limits.memory_limit)?;
    let name = |i: usize| array_name(1, 0, "arg", i);
    npz.has_only(|found| (0..shapes.len()).any(|i| found == name(i)), "the program takes")?;
    npz.arrays(shapes.iter().enumerate().map(|(i, shape)| (name(i), shape)))
}

fn say(info: &artifact::ArtifactInfo, ui: &Ui) {
    let parameters: Vec<String> = info.signature.parameters.iter().map(ToString::to_string).collect();
    let result = info.signature.result.to_string();
    if ui.json {
        ui.object(&InfoObject {
            name: &info.signature.name,
            build: &info.build,
            target: &info.target,
            needs: &info.needs,
            parameters,
            result,
            code_bytes: info.code_bytes,
            constant_bytes: info.constant_bytes,
        });
        return;
    }
    ui.line(format!("{}: ({}) -> {result}", info.signature.name, parameters.join(", ")));
    ui.line(format!("  compiled by {} for {}", info.build, info.target));
    ui.line(format!(
        "  needs {}",
        if info.needs.is_empty() { "nothing".into() } else { info.needs.join(" ") }
    ));
    let (code, constants) = (report::bytes(info.code_bytes), report::bytes(info.constant_bytes));
    ui.line(format!("  code {code}, constants {constants}"));
}
