//! `hlo ptx`: PTX without HLO: run a kernel checked or on a device, compare both, check and print files.

mod device;
mod mutants;
#[cfg(feature = "cuda")]
mod truth;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use hlo::{ArrayLiteral, ArrayShape, Buffer};
use hlo_codegen::runtime::raw::{buffer_of, bytes_of};
use hlo_ptx::report::{Cause, Report};
use hlo_ptx::{Launch, Memory};
use serde::Serialize;

use super::LimitOptions;
use super::ui::Ui;
use hlo_engines::engine::xla_gpu::ptx_module;
use hlo_system::exit::{Exit, Failure};
use hlo_system::files::read_source;
use hlo_system::npz::{self, Npz};
use hlo_triage::report;

/// Options of `hlo ptx`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    #[command(subcommand)]
    what: What,
}

const EXAMPLES: &str = "\
Examples:
  hlo ptx check *.ptx
  hlo ptx print kernel.ptx
  hlo ptx run kernel.ptx --kernel add --grid 8 --block 128 --args in.npz:x in.npz:y empty:f32[1024] u32=1024 --output out.npz
  hlo ptx run kernel.ptx --grid 8 --block 128 --args zeros:f32[1024] --device cuda
  hlo ptx compare kernel.ptx --grid 8 --block 128 --args zeros:f32[1024]
  hlo ptx devices
  hlo ptx mutants shared/corpus/gpu/jax --cases shared/corpus/jax --seed 1 --count 100
  hlo ptx truth shared/corpus/gpu/jax --report truth.json

Exit codes of `run`: 0 nothing to report; 1 races, reads of what nobody wrote and the like; 6 the kernel was stopped
(an access out of bounds, threads that wait forever, out of fuel); 2 the launch does not fit the kernel; 5 an instruction
that is not executed here, or no CUDA device. What is checked: docs/ptx.md; devices: docs/cuda.md";

#[derive(Subcommand, Debug)]
enum What {
    /// Run a kernel, and report what it does wrong
    #[command(after_help = EXAMPLES)]
    Run(Box<Run>),
    /// Run a kernel in the interpreter and on a CUDA device, and compare every byte of the arrays
    #[command(after_help = EXAMPLES)]
    Compare(Box<Run>),
    /// List the CUDA devices
    #[command(after_help = EXAMPLES)]
    Devices,
    /// Compare the interpreter with a CUDA device: every instruction, matrices, warps, atomics, XLA's kernels
    #[cfg(feature = "cuda")]
    #[command(after_help = EXAMPLES)]
    Truth(truth::Options),
    /// Change kernels that XLA:GPU dumped one instruction at a time, and count the changes that judging finds
    #[command(after_help = EXAMPLES)]
    Mutants(mutants::Options),
    /// Parse and verify files, a line for each
    #[command(after_help = EXAMPLES)]
    Check {
        /// The files
        #[arg(value_name = "FILE", required = true)]
        files: Vec<String>,
    },
    /// Print a file as it was understood
    #[command(after_help = EXAMPLES)]
    Print {
        /// The file; `-` is standard input
        #[arg(value_name = "FILE")]
        file: String,
    },
}

#[derive(Args, Debug)]
struct Run {
    /// The file; `-` is standard input
    #[arg(value_name = "FILE")]
    file: String,
    /// The kernel; it may be left out where there is one
    #[arg(long, value_name = "NAME")]
    kernel: Option<String>,
    /// Blocks of the grid
    #[arg(long, value_name = "X,Y,Z", default_value = "1", value_parser = three)]
    grid: [u32; 3],
    /// Threads of a block
    #[arg(long, value_name = "X,Y,Z", default_value = "1", value_parser = three)]
    block: [u32; 3],
    /// Bytes of dynamic shared memory
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    shared: u64,
    /// Arguments in order: numbers, arrays of files, arrays of zeros or of nothing.
    #[arg(help = "Arguments in order: numbers (u32=5, f32=1.5), arrays (FILE.npz:NAME), zeros:f32[8,4], empty:f32[8] (of which nothing is written)", long, value_name = "ARG", num_args = 0.., allow_hyphen_values = false)]
    args: Vec<Argument>,
    /// Where to write the arrays after the run: arg0, arg2, ... by their positions among the arguments
    #[arg(long, value_name = "NPZ")]
    output: Option<PathBuf>,
    /// Check bounds and alignment alone
    #[arg(long)]
    fast: bool,
    /// What runs the kernel: interpreter, cuda, cuda:1
    #[arg(long, value_name = "DEVICE", default_value = "interpreter")]
    device: device::Choice,
    /// Seconds that a CUDA device may take
    #[arg(long, value_name = "SECONDS", default_value_t = 60, hide_short_help = true)]
    device_timeout: u64,
    #[command(flatten)]
    limits: LimitOptions,
}

/// An argument as it is given.
#[derive(Clone, PartialEq, Debug)]
enum Argument {
    /// A number as its bytes.
    Number(Vec<u8>),
    /// An array of a file.
    Array(String, String),
    /// Zeros of a shape.
    Zeros(ArrayShape),
    /// An array of which nothing is written.
    Empty(ArrayShape),
}

impl std::str::FromStr for Argument {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "`{text}` is no argument; those are u32=5, f32=1.5, FILE.npz:NAME, zeros:f32[8,4], empty:f32[8]"
            )
        };
        let shape = |text: &str| {
            let shape = hlo_parser::parse_shape(text).map_err(|d| format!("`{text}`: {}", d.message))?;
            match shape.as_array() {
                Some(array) if !array.is_dynamic() && array.checked_elements().is_some() => Ok(array.clone()),
                Some(_) | None => Err(format!("`{text}` is no array of a known size")),
            }
        };
        if let Some(rest) = text.strip_prefix("zeros:") {
            return shape(rest).map(Argument::Zeros);
        }
        if let Some(rest) = text.strip_prefix("empty:") {
            return shape(rest).map(Argument::Empty);
        }
        if let Some((file, name)) = text.rsplit_once(':') {
            return Ok(Argument::Array(file.to_owned(), name.to_owned()));
        }
        let (ty, value) = text.split_once('=').ok_or_else(wrong)?;
        number(ty, value).map(Argument::Number).ok_or_else(wrong)
    }
}

/// The bytes of a number of a type of PTX.
fn number(ty: &str, s: &str) -> Option<Vec<u8>> {
    Some(match ty {
        "u8" => s.parse::<u8>().ok()?.to_le_bytes().to_vec(),
        "s8" => s.parse::<i8>().ok()?.to_le_bytes().to_vec(),
        "u16" => s.parse::<u16>().ok()?.to_le_bytes().to_vec(),
        "s16" => s.parse::<i16>().ok()?.to_le_bytes().to_vec(),
        "u32" => s.parse::<u32>().ok()?.to_le_bytes().to_vec(),
        "s32" => s.parse::<i32>().ok()?.to_le_bytes().to_vec(),
        "u64" => s.parse::<u64>().ok()?.to_le_bytes().to_vec(),
        "s64" => s.parse::<i64>().ok()?.to_le_bytes().to_vec(),
        "f32" => s.parse::<f32>().ok()?.to_le_bytes().to_vec(),
        "f64" => s.parse::<f64>().ok()?.to_le_bytes().to_vec(),
        "f16" => half::f16::from_f64(s.parse().ok()?).to_le_bytes().to_vec(),
        "bf16" => half::bf16::from_f64(s.parse().ok()?).to_le_bytes().to_vec(),
        _other => return None,
    })
}

/// `8`, `8,4` or `8,4,2`.
fn three(text: &str) -> Result<[u32; 3], String> {
    let wrong = || format!("`{text}` is not one to three sizes, such as 8 or 8,4,1");
    let sizes: Vec<u32> =
        text.split(',').map(|n| n.trim().parse()).collect::<Result<_, _>>().map_err(|_| wrong())?;
    let at = |i: usize| sizes.get(i).copied().unwrap_or(1);
    if sizes.len() > 3 { Err(wrong()) } else { Ok([at(0), at(1), at(2)]) }
}

impl Options {
    pub(super) fn memory_limit(&self) -> u64 {
        match &self.what {
            What::Run(run) | What::Compare(run) => run.limits.memory_limit,
            #[cfg(feature = "cuda")]
            What::Truth(_) => u64::MAX,
            What::Devices | What::Mutants(_) | What::Check { .. } | What::Print { .. } => u64::MAX,
        }
    }
}

#[derive(Serialize)]
struct FileObject<'a> {
    file: &'a str,
    ok: bool,
    kernels: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Serialize)]
struct RunObject<'a> {
    file: &'a str,
    kernel: &'a str,
    ok: bool,
    instructions: u64,
    seconds: f64,
    reports: Vec<ReportObject>,
    stopped: Option<ReportObject>,
}

#[derive(Serialize)]
struct ReportObject {
    fault: String,
    line: u32,
    message: String,
    text: String,
}

impl ReportObject {
    fn of(report: &Report) -> Self {
        let fault = format!("{:?}", report.fault);
        Self { fault, line: report.line, message: report.message.clone(), text: report.to_string() }
    }
}

pub(crate) fn run(options: &Options, ui: &Ui) -> Result<Exit, Failure> {
    match &options.what {
        What::Run(run) => match run.device {
            device::Choice::Interpreter => launch(run, ui),
            device::Choice::Cuda(ordinal) => device::launch(run, ordinal, ui),
        },
        What::Compare(run) => device::compare(run, ui),
        What::Devices => device::list(ui),
        What::Mutants(options) => mutants::run(options, ui),
        #[cfg(feature = "cuda")]
        What::Truth(options) => truth::run(options, ui),
        What::Check { files } => Ok(check(files, ui)),
        What::Print { file } => print(file, ui),
    }
}

fn check(files: &[String], ui: &Ui) -> Exit {
    let mut exit = Exit::Ok;
    for file in files {
        let read = read_source(file).and_then(|source| ptx_module(file, &source.text));
        match read {
            Ok(module) => {
                let kernels: Vec<String> = module.kernels().map(str::to_owned).collect();
                let instructions: usize = module.functions.iter().map(|f| f.code.len()).sum();
                if ui.json {
                    ui.object(&FileObject { file, ok: true, kernels, error: None });
                } else {
                    let kernels =
                        if kernels.is_empty() { "no kernel".to_owned() } else { kernels.join(", ") };
                    ui.line(format!("{file}: ok: {instructions} instructions, {kernels}"));
                }
            }
            Err(failure) => {
                exit = exit.first_failure(failure.exit);
                if ui.json {
                    ui.object(&FileObject {
                        file,
                        ok: false,
                        kernels: Vec::new(),
                        error: Some(failure.message),
                    });
                } else {
                    ui.failure(&failure);
                }
            }
        }
    }
    exit
}

fn print(file: &str, ui: &Ui) -> Result<Exit, Failure> {
    let source = read_source(file)?;
    match hlo_ptx::parse::parse(&source.text) {
        Ok(tree) => {
            ui.raw(&hlo_ptx::print::print(&tree));
            Ok(Exit::Ok)
        }
        Err(all) => {
            let all: Vec<String> = all.iter().map(ToString::to_string).collect();
            Err(Failure::new(Exit::Parse, format!("{file}: {}", all.join("\n"))))
        }
    }
}

/// An argument that is read: a number, or an array with its contents, of which nothing may be written.
enum Ready {
    Number(Vec<u8>),
    Array { name: String, shape: ArrayShape, bytes: u64, data: Option<Vec<u8>> },
}

/// Reads the arguments.
fn ready(run: &Run) -> Result<Vec<Ready>, Failure> {
    let mut all = Vec::new();
    for (i, argument) in run.args.iter().enumerate() {
        let (shape, data) = match argument {
            Argument::Number(bytes) => {
                all.push(Ready::Number(bytes.clone()));
                continue;
            }
            Argument::Array(file, name) => {
                let mut npz = Npz::open(file, run.limits.memory_limit)?;
                let shape = npz.shape(name)?;
                let array = npz.array(name, &shape)?;
                (shape, Some(bytes_of(&array.buffer).to_vec()))
            }
            Argument::Zeros(shape) => (shape.clone(), Some(vec![0; bytes_in(shape, run)?])),
            Argument::Empty(shape) => (shape.clone(), None),
        };
        let bytes = bytes_in(&shape, run)? as u64;
        all.push(Ready::Array { name: format!("arg{i}"), shape, bytes, data });
    }
    Ok(all)
}

/// An array behind a run.
struct Left {
    name: String,
    shape: ArrayShape,
    bytes: Vec<u8>,
    /// Bytes that nobody wrote, as far as is known.
    unwritten: u64,
}

/// The outcome of a run in the interpreter.
struct Interpreted {
    kernel: String,
    reports: Vec<Report>,
    stopped: Option<Report>,
    instructions: u64,
    /// The time of the launch.
    seconds: f64,
    exit: Exit,
    arrays: Vec<Left>,
}

/// Runs the kernel in the interpreter. Errors: what stops it before it begins.
fn interpret(run: &Run) -> Result<Interpreted, Failure> {
    let source = read_source(&run.file)?;
    let module = ptx_module(&run.file, &source.text)?;
    let kernel = kernel_of(run, &module)?;
    let mut memory = Memory::with_limit(run.limits.memory_limit);
    let out_of_memory =
        |e: hlo_ptx::memory::MemoryError| Failure::new(Exit::Trap, format!("{}: {e}", run.file));
    let loaded = memory.load(module).map_err(out_of_memory)?;
    let (mut arguments, mut arrays) = (Vec::new(), Vec::new());
    for argument in ready(run)? {
        match argument {
            Ready::Number(bytes) => arguments.push(bytes),
            Ready::Array { name, shape, bytes, data } => {
                let address = memory.allocate(&name, bytes).map_err(out_of_memory)?;
                if let Some(data) = data {
                    memory.write(address, &data).map_err(out_of_memory)?;
                }
                arguments.push(address.to_le_bytes().to_vec());
                arrays.push((name, shape, address, bytes));
            }
        }
    }
    let call = Launch { grid: run.grid, block: run.block, shared_bytes: run.shared, arguments };
    let base = if run.fast { hlo_ptx::Options::fast() } else { hlo_ptx::Options::default() };
    let options = hlo_ptx::Options {
        fuel: run.limits.fuel.unwrap_or(base.fuel),
        memory_limit: run.limits.memory_limit.min(base.memory_limit),
        ..base
    };
    let start = std::time::Instant::now();
    let (reports, stopped, instructions) =
        match hlo_ptx::launch(&loaded, &kernel, &call, &mut memory, &options) {
            Ok(outcome) => (outcome.reports, None, outcome.thread_instructions),
            Err(failure) => (failure.reports, Some(*failure.stop), 0),
        };
    let seconds = start.elapsed().as_secs_f64();
    let exit = exit_of(&reports, stopped.as_ref());
    if exit == Exit::Usage
        && let Some(stopped) = &stopped
    {
        return Err(Failure::usage(format!("{}: {}", run.file, stopped.message)));
    }
    let mut results = Vec::new();
    for (name, shape, address, length) in arrays {
        let bytes = memory.read(address, length).map_err(|e| Failure::internal(e.to_string()))?.to_vec();
        let written = memory.written(address, length).map_err(|e| Failure::internal(e.to_string()))?;
        results.push(Left { name, shape, bytes, unwritten: length - written });
    }
    Ok(Interpreted { kernel, reports, stopped, instructions, seconds, exit, arrays: results })
}

/// Says what the checker found.
fn say(run: &Run, done: &Interpreted, ui: &Ui) {
    if ui.json {
        ui.object(&RunObject {
            file: &run.file,
            kernel: &done.kernel,
            ok: done.exit == Exit::Ok,
            instructions: done.instructions,
            seconds: done.seconds,
            reports: done.reports.iter().map(ReportObject::of).collect(),
            stopped: done.stopped.as_ref().map(ReportObject::of),
        });
    } else {
        ui.detail(format!(
            "{}: kernel {}, {} instructions of threads in {:.3} s, {:.2e} a second",
            run.file,
            done.kernel,
            done.instructions,
            done.seconds,
            done.instructions as f64 / done.seconds.max(1e-9)
        ));
        done.reports.iter().chain(&done.stopped).for_each(|r| ui.line(r.to_string()));
    }
}

fn launch(run: &Run, ui: &Ui) -> Result<Exit, Failure> {
    let done = interpret(run)?;
    say(run, &done, ui);
    if done.stopped.is_none() {
        give(run, &done.arrays, ui)?;
    }
    Ok(done.exit)
}

/// Bytes of an array. Errors: more than the limit.
fn bytes_in(shape: &ArrayShape, run: &Run) -> Result<usize, Failure> {
    let width = shape.element_type.storage_bytes() as u64;
    let bytes =
        shape.checked_elements().and_then(|n| u64::try_from(n).ok()).and_then(|n| n.checked_mul(width));
    match bytes.filter(|&b| b <= run.limits.memory_limit).and_then(|b| usize::try_from(b).ok()) {
        Some(bytes) => Ok(bytes),
        None => Err(Failure::new(Exit::Trap, format!("{shape} is larger than the memory limit"))),
    }
}

fn kernel_of(run: &Run, module: &hlo_ptx::ir::Module) -> Result<String, Failure> {
    let all: Vec<&str> = module.kernels().collect();
    match (&run.kernel, &all[..]) {
        (Some(name), _) if module.kernel(name).is_some() => Ok(name.clone()),
        (None, [one]) => Ok((*one).to_owned()),
        (Some(name), _) => {
            Err(Failure::usage(format!("{}: no kernel `{name}`; it has {}", run.file, listed(&all))))
        }
        (None, _) => {
            Err(Failure::usage(format!("{}: name one with --kernel: it has {}", run.file, listed(&all))))
        }
    }
}

fn listed(all: &[&str]) -> String {
    if all.is_empty() { "none".to_owned() } else { all.join(", ") }
}

fn exit_of(reports: &[Report], stopped: Option<&Report>) -> Exit {
    match stopped.map(|s| s.fault.cause()) {
        Some(Cause::Unsupported) => Exit::Unsupported,
        Some(Cause::Launch) => Exit::Usage,
        Some(Cause::Kernel | Cause::Fuel) => Exit::Trap,
        None if reports.is_empty() => Exit::Ok,
        None => Exit::Differs,
    }
}

/// Writes the arrays, or prints them.
fn give(run: &Run, arrays: &[Left], ui: &Ui) -> Result<(), Failure> {
    let mut all = Vec::new();
    for a in arrays {
        if a.unwritten > 0 && !ui.json {
            ui.note(format!("{}: nothing wrote {} of its {} bytes", a.name, a.unwritten, a.bytes.len()));
        }
        let buffer: Buffer = buffer_of(a.shape.element_type, &a.bytes);
        let array = ArrayLiteral::new(a.shape.dims.clone(), buffer);
        all.push((a.name.clone(), array.ok_or_else(|| Failure::internal("an array of another size"))?));
    }
    match &run.output {
        Some(path) => {
            let named: Vec<(String, &ArrayLiteral)> = all.iter().map(|(n, a)| (n.clone(), a)).collect();
            npz::write(path, &named)
        }
        None if ui.json => Ok(()),
        None => {
            for (name, array) in &all {
                ui.line(format!("{name} = {} {}", array.shape(), report::array_text(array)));
            }
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hlo::ElementType;

    #[test]
    fn arguments_are_read() {
        assert_eq!("u32=5".parse(), Ok(Argument::Number(vec![5, 0, 0, 0])));
        assert_eq!("s64=-1".parse(), Ok(Argument::Number(vec![255; 8])));
        assert_eq!("bf16=1.5".parse(), Ok(Argument::Number(vec![0xc0, 0x3f])));
        assert_eq!("a/b.npz:x".parse(), Ok(Argument::Array("a/b.npz".to_owned(), "x".to_owned())));
        let shape = ArrayShape::new(ElementType::F32, &[8, 4]);
        assert_eq!("zeros:f32[8,4]".parse(), Ok(Argument::Zeros(shape.clone())));
        assert_eq!("empty:f32[8,4]".parse(), Ok(Argument::Empty(shape)));
        for text in ["5", "u32=x", "u3=5", "zeros:f32", "zeros:(f32[2])", "empty:f32[<=8]", "zeros:"] {
            assert!(text.parse::<Argument>().is_err(), "{text}");
        }
        assert_eq!(three("8,4"), Ok([8, 4, 1]));
        assert!(three("8,4,2,1").is_err() && three("").is_err() && three("-1").is_err());
    }
}
