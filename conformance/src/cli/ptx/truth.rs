//! `hlo ptx truth`: compares the PTX interpreter with a CUDA device, by instructions and by XLA's kernels.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use clap::Args;
use hlo::ElementType;
use hlo_interp::Devices;
use hlo_ptx::types::Type;
use hlo_truth::families::{Scale, all};
use hlo_truth::judge::{Difference, Verdict, decode};
use hlo_truth::report::{Report, approximations, differences, table};
use hlo_truth::run::{End, Row, Settings, run as run_cases, summary};
use hlo_truth::target::{Argument, Cuda, Interpreter, Refusal, Target, Work};

use super::device;
use crate::cli::ui::Ui;
use hlo_engines::engine::xla_gpu::XlaGpuEngine;
use hlo_engines::engine::xla_gpu::mirror::{Mirror, Mirrored};
use hlo_engines::engine::{Engine, Inputs, Outcome, RunOptions};
use hlo_engines::inputs;
use hlo_system::exit::{Exit, Failure};
use hlo_system::files::write_text;

/// Options of `hlo ptx truth`.
#[derive(Args, Debug)]
pub(super) struct Options {
    /// A folder of programs that XLA:GPU dumped, a folder each: their kernels are compared, too
    #[arg(value_name = "DIR")]
    dumps: Option<PathBuf>,
    /// Where to write everything as JSON
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Only these families; xla is the kernels of DIR
    #[arg(long = "family", value_name = "NAME")]
    families: Vec<String>,
    /// Only instructions that contain this
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    only: String,
    /// Results of an instruction
    #[arg(long, value_name = "N", default_value_t = 1 << 16)]
    results: usize,
    /// Products of a shape of matrices
    #[arg(long, value_name = "N", default_value_t = 1536)]
    products: usize,
    /// Nothing begins after this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 150)]
    seconds: u64,
    /// Threads; 0 is all
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    jobs: usize,
    /// What is compared with the interpreter: cuda, cuda:1, or the interpreter itself, to try this command
    #[arg(long, value_name = "DEVICE", default_value = "cuda")]
    device: device::Choice,
    /// Seconds that a kernel may take
    #[arg(long, value_name = "SECONDS", default_value_t = 20, hide_short_help = true)]
    device_timeout: u64,
    /// The architecture of the texts, if the interpreter is the device: 90
    #[arg(long, value_name = "SM", default_value_t = 90, hide_short_help = true)]
    sm: u32,
}

pub(super) fn run(options: &Options, ui: &Ui) -> Result<Exit, Failure> {
    let start = Instant::now();
    let (target, arch, name): (Box<dyn Target + Send>, u32, String) = match options.device {
        device::Choice::Interpreter => {
            (Box::new(Interpreter), options.sm, "the interpreter itself".to_owned())
        }
        device::Choice::Cuda(ordinal) => {
            let device = device::open(ordinal, options.device_timeout)?;
            let info = device.info().clone();
            (Box::new(Cuda::new(device)), info.sm(), format!("{}, sm_{}", info.name, info.sm()))
        }
    };
    let target: Arc<dyn Target + Send> = Arc::from(target);
    let scale = Scale {
        results: options.results.next_multiple_of(256),
        products: options.products.next_multiple_of(4).max(4),
    };
    let time = Duration::from_secs(options.seconds);
    let settings = Settings {
        threads: options.jobs,
        time,
        families: options.families.clone(),
        filter: options.only.clone(),
        ..Settings::new(arch)
    };
    let is_wanted =
        |family: &str| options.families.is_empty() || options.families.iter().any(|f| f == family);
    let mut rows = Vec::new();
    if options.families.iter().any(|f| f != "xla") || options.families.is_empty() {
        rows = run_cases(&all(scale), &*target, &Interpreter, &settings);
    }
    if let Some(folder) = options.dumps.as_deref().filter(|_| is_wanted("xla")) {
        let left = time.saturating_sub(start.elapsed());
        rows.extend(dumps(folder, target, options.jobs, left, &options.only)?);
    }
    let seconds = start.elapsed().as_secs_f64();
    if rows.is_empty() {
        return Err(Failure::usage("nothing is compared: no such family or instruction"));
    }
    if let Some(path) = &options.report {
        let object = Report::new(&name, seconds, &rows);
        let text = serde_json::to_string_pretty(&object).map_err(|e| Failure::internal(e.to_string()))?;
        write_text(path, &text)?;
    }
    tell(&rows, &name, seconds, ui);
    Ok(if rows.iter().any(Row::is_wrong) { Exit::Differs } else { Exit::Ok })
}

fn tell(rows: &[Row], device: &str, seconds: f64, ui: &Ui) {
    if ui.json {
        summary(rows).iter().for_each(|f| ui.object(f));
        return;
    }
    ui.detail(format!("{device}, compared with the interpreter in {seconds:.1} s"));
    table(rows).iter().for_each(|line| ui.line(line));
    approximations(rows).iter().for_each(|line| ui.detail(line));
    differences(rows).iter().for_each(|line| ui.line(line));
}

/// Repeats launches on a target.
struct Repeat {
    target: Arc<dyn Target + Send>,
    program: String,
    rows: Mutex<Vec<Row>>,
}

impl Mirror for Repeat {
    fn launched(&self, launch: Mirrored<'_>) {
        let end = self.repeat(&launch);
        let instruction = format!("{} {} {}", self.program, launch.file, launch.kernel);
        let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        rows.push(Row { family: "xla", instruction, end });
    }
}

/// The type of PTX that holds an element.
fn type_of(element: ElementType) -> Type {
    match element {
        ElementType::F16 => Type::F16,
        ElementType::BF16 => Type::Bf16,
        ElementType::F32 | ElementType::C64 => Type::F32,
        ElementType::F64 | ElementType::C128 => Type::F64,
        other => match other.storage_bytes() {
            1 => Type::B8,
            2 => Type::B16,
            4 => Type::B32,
            _ => Type::B64,
        },
    }
}

impl Repeat {
    fn repeat(&self, launch: &Mirrored<'_>) -> End {
        let work = Work {
            kernel: launch.kernel.to_owned(),
            grid: launch.grid,
            block: launch.block,
            shared_bytes: u32::try_from(launch.shared_bytes).unwrap_or(u32::MAX),
            variables: launch.variables.clone(),
            memory: launch.before.clone(),
            arguments: launch.arguments.iter().map(|&(m, offset)| Argument::Address(m, offset)).collect(),
        };
        let got = match self.target.load(launch.ptx).and_then(|m| m.run(&work)) {
            Ok(got) => got,
            Err(Refusal::Text(message, _) | Refusal::Unsupported(message)) => return End::Refused(message),
            Err(other) => return End::Failed(format!("device: {other}")),
        };
        // Kernels with approximate instructions may differ where rounding amplifies such a difference.
        let is_approximate = launch.ptx.contains(".approx") || launch.ptx.contains("div.full");
        let mut v = Verdict::default();
        for (number, (&(memory, offset), &(element, bytes))) in
            launch.arguments.iter().zip(&launch.elements).enumerate()
        {
            let ty = type_of(element);
            let (width, at) = ((ty.bits() / 8) as usize, offset as usize);
            let part = |all: &[Vec<u8>]| all[memory].get(at..at + bytes).unwrap_or(&[]).to_vec();
            let (device, interpreter) = (part(&got), part(&launch.after));
            let before = &launch.before[memory][at.min(launch.before[memory].len())..];
            for i in 0..bytes / width.max(1) {
                let of = |b: &[u8]| hlo_truth::case::element(b, width, i);
                let (d, x) = (of(&device), of(&interpreter));
                if x == of(before) && d == x {
                    // Most likely an operand.
                    continue;
                }
                v.results += 1;
                if d == x {
                    v.equal += 1;
                    continue;
                }
                let (a, b) = (decode(ty, d), decode(ty, x));
                let is_float = matches!(ty, Type::F16 | Type::Bf16 | Type::F32 | Type::F64);
                let note = if is_float {
                    format!("{a:e} and {b:e}, relative {:e}", (a - b).abs() / b.abs().max(f64::MIN_POSITIVE))
                } else {
                    String::new()
                };
                if is_float && a.is_nan() && b.is_nan() {
                    v.nan_bits += 1;
                }
                if is_approximate && is_float && !a.is_nan() && !b.is_nan() {
                    v.within += 1;
                    let relative = (a - b).abs() / b.abs().max(f64::MIN_POSITIVE);
                    if v.largest_unstated_ulp.is_none_or(|l| relative > l) {
                        v.largest_unstated_ulp = Some(relative);
                        v.largest_at = format!("arg{number}[{i}]: {note}");
                    }
                    continue;
                }
                v.wrong += 1;
                if v.first.len() < 4 {
                    v.first.push(Difference {
                        element: format!("arg{number}[{i}] of `{}`", launch.instruction),
                        operands: Vec::new(),
                        device: format!("{d:#x}"),
                        interpreter: format!("{x:#x}"),
                        note,
                    });
                }
            }
        }
        End::Compared(v)
    }
}

/// The kernels of every program below a folder.
fn dumps(
    folder: &Path,
    target: Arc<dyn Target + Send>,
    jobs: usize,
    time: Duration,
    only: &str,
) -> Result<Vec<Row>, Failure> {
    let start = Instant::now();
    let cannot = |e: std::io::Error| {
        Failure::usage(format!("{}: cannot be read: {}", folder.display(), hlo_system::files::describe(&e)))
    };
    let mut programs: Vec<PathBuf> = std::fs::read_dir(folder)
        .map_err(cannot)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.is_dir() && path.to_string_lossy().contains(only))
        .collect();
    programs.sort();
    let next = AtomicUsize::new(0);
    let rows: Mutex<Vec<Row>> = Mutex::new(Vec::new());
    let jobs = match jobs {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        n => n,
    };
    std::thread::scope(|scope| {
        for _ in 0..jobs.min(programs.len()) {
            let worker = || {
                while let Some(path) = programs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let done = if start.elapsed() > time {
                        vec![whole(path, End::Skipped)]
                    } else {
                        one(path, target.clone())
                    };
                    rows.lock().unwrap_or_else(PoisonError::into_inner).extend(done);
                }
            };
            // Programs nest deeper than threads' usual stacks hold.
            let spawned = std::thread::Builder::new().stack_size(64 << 20).spawn_scoped(scope, worker);
            if let Err(e) = spawned {
                let mut rows = rows.lock().unwrap_or_else(PoisonError::into_inner);
                rows.push(whole(folder, End::Failed(format!("no thread: {e}"))));
            }
        }
    });
    let mut rows = rows.into_inner().unwrap_or_else(PoisonError::into_inner);
    rows.sort_by(|a, b| a.instruction.cmp(&b.instruction));
    Ok(rows)
}

fn name_of(path: &Path) -> String {
    path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default()
}

fn whole(path: &Path, end: End) -> Row {
    Row { family: "xla", instruction: name_of(path), end }
}

/// The kernels of a program, on inputs made for it.
fn one(path: &Path, target: Arc<dyn Target + Send>) -> Vec<Row> {
    let repeat = Arc::new(Repeat { target, program: name_of(path), rows: Mutex::default() });
    let end = run_program(path, repeat.clone());
    let mut rows = std::mem::take(&mut *repeat.rows.lock().unwrap_or_else(PoisonError::into_inner));
    if let Some(end) = end {
        rows.push(whole(path, end));
    }
    rows
}

/// Runs a program with a mirror. `None`: it ended.
fn run_program(path: &Path, mirror: Arc<dyn Mirror>) -> Option<End> {
    let failed = |f: Failure| match f.exit {
        Exit::Unsupported => End::NotExecuted(f.message),
        _other => End::Failed(f.message),
    };
    let engine = match XlaGpuEngine::folder(&path.to_string_lossy()) {
        Ok(engine) => engine.mirrored(mirror),
        Err(f) => return Some(failed(f)),
    };
    let module = engine.optimized();
    let arrays =
        inputs::plan(module, None).and_then(|plan| inputs::generate(&plan, 1, Devices::ONE, 1 << 33));
    let made = arrays.and_then(|arrays| Inputs::new(module, &arrays));
    let made = match made {
        Ok(made) => made,
        Err(f) => return Some(failed(f)),
    };
    let executable = match engine.compile(module) {
        Ok(executable) => executable,
        Err(outcome) => return Some(ended(&outcome)),
    };
    match executable.run(made, &RunOptions::default(), None) {
        Outcome::Finished(_) => None,
        outcome => Some(ended(&outcome)),
    }
}

fn ended(outcome: &Outcome) -> End {
    let said = outcome.diagnostic().map(|d| d.message.clone()).unwrap_or_default();
    match outcome {
        Outcome::Unsupported(_) => End::NotExecuted(said),
        _other => End::Failed(format!("interpreter: {said}")),
    }
}

#[cfg(test)]
#[allow(clippy::print_stderr, reason = "says what it skips")]
mod tests {
    use super::*;
    use hlo_truth::target::Module;

    /// The interpreter, which flips a bit of the first byte that a kernel changes.
    struct Faulty;

    struct Flipping<'f>(Box<dyn Module + 'f>);

    impl Target for Faulty {
        fn load(&self, ptx: &str) -> Result<Box<dyn Module + '_>, Refusal> {
            Ok(Box::new(Flipping(Interpreter.load(ptx)?)))
        }
    }

    impl Module for Flipping<'_> {
        fn run(&self, work: &Work) -> Result<Vec<Vec<u8>>, Refusal> {
            let mut all = self.0.run(work)?;
            for (after, before) in all.iter_mut().zip(&work.memory) {
                if let Some(at) = (0..before.len()).find(|&i| before[i] != after[i]) {
                    after[at] ^= 0x40;
                    break;
                }
            }
            Ok(all)
        }
    }

    #[test]
    fn a_device_that_computes_another_byte_is_caught_on_xla_s_kernels() {
        let dumps_folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/corpus/gpu/jax");
        if !dumps_folder.is_dir() {
            eprintln!("NOTE: ../shared/corpus/gpu is not beside this checkout: SKIPPED");
            return;
        }
        let run = |target: Arc<dyn Target + Send>| {
            dumps(&dumps_folder, target, 2, Duration::from_secs(100), "dtypes__add").unwrap()
        };
        let rows = run(Arc::new(Interpreter));
        assert!(rows.len() > 3 && !rows.iter().any(Row::is_wrong), "{rows:?}");
        let compared = |r: &Row| matches!(&r.end, End::Compared(v) if v.results > 0);
        assert!(rows.iter().all(compared), "{rows:?}");
        assert!(
            run(Arc::new(Faulty))
                .iter()
                .all(|r| matches!(&r.end, End::Compared(v) if v.wrong + v.within > 0))
        );
    }
}
