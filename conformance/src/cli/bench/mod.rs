//! `hlo bench`: how long programs take to be read, prepared and run, and how much memory their runs take.

#[cfg(feature = "llvm")]
mod cpu;
mod profile;

use std::path::Path;
use std::time::{Duration, Instant};

use clap::Args;
use hlo::{ArrayLiteral, Module};
use hlo_interp::{Accumulate, Devices, Interpreter, Options as RunOptions, Value};
use serde::Serialize;

use super::ui::{Ui, closed};
use super::{AccumulateOption, CustomCallOptions, LimitOptions, ReadOptions, values};
use hlo_engines::engine::{self, flatten, named};
use hlo_engines::engine::{ConstantArguments, Inputs, Outcome};
use hlo_engines::frontend::{JsonError, Program, Rejected, load_as, parse_pasted};
use hlo_engines::inputs;
use hlo_engines::time_limit::command_within;
use hlo_system::exit::{Exit, Failure};
use hlo_system::guard::guarded;
use hlo_system::memory_budget::{self, MemoryBudget};
use hlo_system::npz::{self, Npz};
use hlo_system::resident::{Mark, processor_time};
use hlo_triage::report;
use profile::Profile;

/// Options of `hlo bench`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// Programs
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
    /// What runs the programs
    #[arg(long, alias = "platform", default_value = DEFAULT_ENGINE, value_name = "NAME")]
    engine: String,
    /// Print the time of each step of a run, beside what the machine can do at most
    #[arg(long)]
    profile: bool,
    /// Write stages of compilation and steps of a run as a Chrome trace
    #[arg(long, value_name = "FILE")]
    trace: Option<String>,
    /// Inputs: arrays arg0, arg1, ...; made if not given
    #[arg(long, value_name = "NPZ")]
    inputs: Option<String>,
    /// Arguments that are constants of the program, such as weights, by parameter number: `0-147,150`, or
    /// `all-but=148,149`
    #[arg(long, value_name = "LIST")]
    constant_args: Option<ConstantArguments>,
    /// Where to write the results: arrays out0, out1, ...
    #[arg(long, value_name = "NPZ")]
    output: Option<String>,
    /// Repeat runs for at least this many seconds
    #[arg(long, default_value = "0.5", value_name = "S", value_parser = values::time)]
    min_time: Duration,
    /// The most time for all that is done with a program
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    timeout: Option<Duration>,
    /// Seed of made inputs and of rng
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    /// How sums of floats round
    #[arg(long, value_enum, default_value_t = AccumulateOption::Exact, value_name = "MODE")]
    accumulate: AccumulateOption,
    #[command(flatten)]
    pub(super) limits: LimitOptions,
    #[command(flatten)]
    read: ReadOptions,
    #[command(flatten)]
    custom_calls: CustomCallOptions,
}

const DEFAULT_ENGINE: &str = if cfg!(feature = "llvm") { "cpu" } else { "interpreter" };

const EXAMPLES: &str = "\
Examples:
  hlo bench module.hlo
  hlo bench module.hlo --profile
  hlo bench ../shared/bench/*.hlo --json --min-time 2
  hlo bench model.hlo --inputs model.npz --constant-args all-but=148

Times are medians: parse of 5, compile of 3, run over the minimum time and 3 runs at least. Inputs are in place and results
complete; starting the process is not counted. `peak_bytes` is what the process grew by, with the inputs; `live_bytes`
what the arrays of the program took at most. Both are of one run before those that are timed.";

#[derive(Serialize)]
struct Object<'a> {
    file: &'a str,
    /// The same: what `file` was called.
    module: &'a str,
    engine: &'a str,
    parse_ms: f64,
    verify_ms: f64,
    compile_ms: f64,
    run_us: f64,
    /// Processor time of a run, all threads together; the mean.
    cpu_us: Option<f64>,
    runs: usize,
    peak_bytes: Option<u64>,
    live_bytes: u64,
    /// Weights that were packed when the program was loaded.
    packed_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<Profile>,
}

/// A program that could not be timed.
#[derive(Serialize)]
struct Failed<'a> {
    file: &'a str,
    module: &'a str,
    engine: &'a str,
    ok: bool,
    exit: u8,
    errors: Vec<JsonError>,
}

pub(crate) fn run(options: &Options, ui: &Ui) -> Result<Exit, Failure> {
    let engine = engine::by_name(&options.engine)?;
    if options.files.len() > 1 && (options.inputs.is_some() || options.output.is_some()) {
        return Err(Failure::usage("--inputs and --output take one program"));
    }
    let mut exit = Exit::Ok;
    for file in &options.files {
        let result = guarded(&format!("timing {file}"), || {
            let mut program = match load_as(file, &options.read.reading()) {
                Ok(program) => program,
                Err(rejected) => return Ok(reject(file, engine.name(), &rejected, ui)),
            };
            options.custom_calls.apply(&mut program, options.limits.memory_limit, ui)?;
            let what = format!("timing {}", engine.name());
            let found =
                command_within(options.timeout, &what, || bench(file, &program, engine.name(), options))?;
            if ui.json {
                ui.object(&found);
            } else {
                print(&found, ui);
            }
            Ok(Exit::Ok)
        });
        exit = exit.first_failure(result.unwrap_or_else(|failure| fail(file, engine.name(), failure, ui)));
        if closed() {
            break;
        }
    }
    Ok(exit)
}

/// Reports a program that is none.
fn reject(file: &str, engine: &str, rejected: &Rejected, ui: &Ui) -> Exit {
    if ui.json {
        print_failed(file, engine, rejected.exit, rejected.json_errors(), ui);
    }
    ui.failure(&rejected.failure(ui.color_errors));
    rejected.exit
}

/// Reports a program that could not be timed.
fn fail(file: &str, engine: &str, failure: Failure, ui: &Ui) -> Exit {
    if ui.json {
        let message = failure.message.clone();
        let error = JsonError { code: String::new(), line: None, column: None, message };
        print_failed(file, engine, failure.exit, vec![error], ui);
    }
    let message = format!("{file}: {}", failure.message);
    ui.failure(&Failure { message, ..failure });
    failure.exit
}

fn print_failed(module: &str, engine: &str, exit: Exit, errors: Vec<JsonError>, ui: &Ui) {
    ui.object(&Failed { file: module, module, engine, ok: false, exit: exit.code(), errors });
}

fn print(found: &Object<'_>, ui: &Ui) {
    if let Some(profile) = &found.profile {
        ui.line(profile.text());
    }
    let time = |us: f64| report::time(Duration::from_secs_f64(us / 1e6));
    let packed = match found.packed_bytes {
        0 => String::new(),
        bytes => format!(", packed weights {}", report::bytes(bytes)),
    };
    let peak = found.peak_bytes.map_or_else(String::new, |b| format!("peak {}, ", report::bytes(b)));
    ui.line(format!(
        "{:32}  parse {:>9}   compile {:>9}   run {:>9} ({} runs)   {peak}live arrays {}{packed}",
        Path::new(found.module).file_stem().unwrap_or_default().to_string_lossy(),
        time(found.parse_ms * 1e3),
        time(found.compile_ms * 1e3),
        time(found.run_us),
        found.runs,
        report::bytes(found.live_bytes),
    ));
}

/// Times of a program.
struct Timed {
    compile: Duration,
    run: Duration,
    runs: usize,
    cpu_us: Option<f64>,
    peak_bytes: Option<u64>,
    live_bytes: u64,
    packed_bytes: u64,
    /// By device; empty if nobody asked for them.
    results: Vec<Vec<ArrayLiteral>>,
    /// The profile, if that was asked for.
    profile: Option<Profile>,
}

fn bench<'a>(
    file: &'a str,
    program: &Program,
    engine: &'a str,
    options: &Options,
) -> Result<Object<'a>, Failure> {
    let reading = options.read.reading();
    let pick = reading.pick.as_ref();
    let parse = if program.source.is_hlo {
        median(5, || parse_pasted(&program.source.text, pick)).0
    } else {
        program.times.parse
    };
    let module = &program.module;
    let devices = engine::devices::choose(module, None, None)?.devices;
    if options.files.len() > 1 && options.trace.is_some() {
        return Err(Failure::usage("--trace takes one program"));
    }
    let mut arrays = arrays(module, file, options, devices)?;
    let frozen;
    let module = match &options.constant_args {
        Some(_) if devices.count() > 1 => {
            return Err(Failure::usage("--constant-args takes a program of one device"));
        }
        Some(constant) => {
            let arguments = hlo_execution::run::to_parameters(module, arrays.pop().unwrap_or_default())?;
            let left;
            (frozen, left) = constant.freeze(module, arguments)?;
            arrays.push(left.iter().flat_map(hlo::Literal::arrays).cloned().collect());
            &frozen
        }
        None => module,
    };
    let timed = time(module, engine, options, devices, arrays)?;
    if let Some(path) = &options.output {
        npz::write(Path::new(path), &named("out", &timed.results))?;
    }
    Ok(Object {
        file,
        module: file,
        engine,
        parse_ms: parse.as_secs_f64() * 1e3,
        verify_ms: program.times.verify.as_secs_f64() * 1e3,
        compile_ms: timed.compile.as_secs_f64() * 1e3,
        run_us: timed.run.as_secs_f64() * 1e6,
        cpu_us: timed.cpu_us,
        runs: timed.runs,
        peak_bytes: timed.peak_bytes,
        live_bytes: timed.live_bytes,
        packed_bytes: timed.packed_bytes,
        profile: timed.profile,
    })
}

fn time(
    module: &Module,
    engine: &str,
    options: &Options,
    devices: Devices,
    arrays: Vec<Vec<ArrayLiteral>>,
) -> Result<Timed, Failure> {
    #[cfg(feature = "llvm")]
    if let (Some(how), 1) = (engine::cpu_options(engine)?.filter(|o| !o.scalar), devices.count()) {
        return cpu::time(module, how, options, arrays.into_iter().next().unwrap_or_default());
    }
    if options.profile || options.trace.is_some() {
        return Err(Failure::usage(format!("the engine `{engine}` has no profile of this program")));
    }
    if engine == "interpreter" {
        return time_interpreter(module, options, devices, arrays);
    }
    time_engine(module, engine, options, devices, &arrays)
}

/// An engine of any kind: its own word on how long a run took.
fn time_engine(
    module: &Module,
    engine: &str,
    options: &Options,
    devices: Devices,
    arrays: &[Vec<ArrayLiteral>],
) -> Result<Timed, Failure> {
    let engine = engine::by_name(engine)?;
    engine.supports(module, devices).map_err(|d| Failure::new(Exit::Unsupported, d.message))?;
    let (compile, executable) = median(3, || engine.compile(module));
    let executable = match executable {
        Ok(executable) => executable,
        Err(outcome) => return Err(outcome.failure()),
    };
    let inputs = Inputs::new(module, arrays)?;
    let run = engine::RunOptions {
        accumulate: Accumulate::from(options.accumulate),
        limits: engine::Limits { fuel: options.limits.fuel, memory_bytes: options.limits.memory_limit },
        seed: options.seed,
        devices,
        kept_bytes: 0,
    };
    let first = executable.run(inputs.clone(), &run, None).finished()?;
    let mut times = Vec::new();
    let start = Instant::now();
    while times.len() < 3 || start.elapsed() < options.min_time {
        times.push(executable.run(inputs.clone(), &run, None).finished()?.time);
    }
    times.sort_unstable();
    Ok(Timed {
        compile,
        run: times[times.len() / 2],
        runs: times.len(),
        cpu_us: None,
        peak_bytes: None,
        live_bytes: first.peak_bytes,
        packed_bytes: 0,
        results: first.results,
        profile: None,
    })
}

fn time_interpreter(
    module: &Module,
    options: &Options,
    devices: Devices,
    arrays: Vec<Vec<ArrayLiteral>>,
) -> Result<Timed, Failure> {
    let budget = memory_budget::within(MemoryBudget::asked(options.limits.memory_limit), 0, devices.count());
    let how = || RunOptions {
        accumulate: Accumulate::from(options.accumulate),
        fuel: options.limits.fuel,
        memory_limit_bytes: budget.bytes,
        memory_limit_of: budget.of,
        seed: options.seed,
        custom_calls: hlo_system::loaded::registry(),
        ..RunOptions::default()
    };
    let (compile, interpreter) = median(3, || Interpreter::new(module, how()));

    let input_bytes: u64 = arrays.iter().flatten().map(bytes).sum();
    let mut arguments: Vec<Vec<Value>> = Vec::new();
    for arrays in arrays {
        arguments.push(
            hlo_execution::run::to_parameters(module, arrays)?.into_iter().map(Value::from_literal).collect(),
        );
    }
    let once = || interpreter.run_devices(devices, arguments.clone());
    let before = Mark::set();
    let ended = once().map_err(|e| Outcome::of_interpreter(&e).failure())?;
    let peak_bytes = before.and_then(Mark::growth).map(|grown| grown + input_bytes);

    let processor = processor_time();
    let (run, runs) = repeat(options.min_time, || drop(once()));
    let processor = processor_time().zip(processor).map(|(after, before)| after.saturating_sub(before));
    // The caller holds the arguments, so the run is not charged for them.
    let live_bytes = ended.iter().map(|(_, stats)| stats.peak_bytes).sum::<u64>() + input_bytes;
    let mut results = vec![Vec::new(); ended.len()];
    for ((value, _), results) in ended.into_iter().zip(&mut results) {
        flatten(value.into_literal(), results);
    }
    Ok(Timed {
        compile,
        run,
        runs,
        cpu_us: processor.map(|t| t.as_secs_f64() * 1e6 / runs.max(1) as f64),
        peak_bytes,
        live_bytes,
        packed_bytes: 0,
        results,
        profile: None,
    })
}

/// The median time of calls for at least so long, and three at least; and how many these were.
fn repeat(min_time: Duration, mut f: impl FnMut()) -> (Duration, usize) {
    let mut times = Vec::new();
    let start = Instant::now();
    while times.len() < 3 || start.elapsed() < min_time {
        let start = Instant::now();
        f();
        times.push(start.elapsed());
    }
    times.sort_unstable();
    (times[times.len() / 2], times.len())
}

fn arrays(
    module: &Module,
    file: &str,
    options: &Options,
    devices: Devices,
) -> Result<Vec<Vec<ArrayLiteral>>, Failure> {
    let limit = options.limits.memory_limit;
    match &options.inputs {
        Some(path) => inputs::read(module, &mut Npz::open(path, limit)?, devices),
        None => {
            let plan = inputs::plan(module, inputs::range_beside(file)?)?;
            inputs::generate(&plan, options.seed, devices, limit)
        }
    }
}

fn bytes(array: &ArrayLiteral) -> u64 {
    array.buffer.len() as u64 * array.buffer.element_type().storage_bytes() as u64
}

/// The median time of `n` calls, and the last result.
fn median<T>(n: usize, mut f: impl FnMut() -> T) -> (Duration, T) {
    let mut times = Vec::with_capacity(n);
    loop {
        let start = Instant::now();
        let result = f();
        times.push(start.elapsed());
        if times.len() >= n {
            times.sort_unstable();
            return (times[times.len() / 2], result);
        }
    }
}
