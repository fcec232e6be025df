//! `hlo viz`: a program as a picture: a page with a viewer, SVG, or the language of Graphviz.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use clap::{Args, ValueEnum};
use serde::Serialize;

use super::compiled::{self, Runs};
use super::ui::Ui;
use super::{LimitOptions, ReadOptions, RiskOptions};
use crate::viz::profile::{Profile, Recorder};
use crate::viz::{Picture, dot, page, svg};
use hlo::Module;
use hlo_codegen::runtime::executable::RunOptions as ProgramOptions;
use hlo_engines::engine::cpu::{CpuOptions, failed};
use hlo_engines::engine::{self, Engine, Inputs, InterpreterEngine, Limits, RunOptions, devices};
use hlo_engines::frontend::Program;
use hlo_engines::inputs;
use hlo_interp::Devices;
use hlo_system::exit::{Exit, Failure};
use hlo_system::files::write_text;
use hlo_system::guard::at_own_risk;
use hlo_triage::report;

/// Options of `hlo viz`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// The program, in any format; `-` is standard input
    #[arg(value_name = "FILE")]
    file: String,
    /// Where to write it; beside the program if not given, `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<String>,
    /// The format, if the name of the output does not say it
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<Format>,
    /// Run the program, and show the time of each instruction; in the interpreter memory over time, too
    #[arg(long)]
    profile: bool,
    /// Where it runs: `interpreter`, or `cpu` (`cpu:O3`, `cpu:scalar`), of which the picture is that of the
    /// compiled program
    #[arg(long, value_name = "ENGINE", default_value = "interpreter", requires = "profile")]
    platform: String,
    /// Inputs of that run: arrays arg0, ...; made if not given
    #[arg(long, value_name = "NPZ", requires = "profile")]
    inputs: Option<String>,
    /// Seed of made inputs and of rng
    #[arg(long, value_name = "N", default_value_t = 0, requires = "profile")]
    seed: u64,
    #[command(flatten)]
    pub(super) limits: LimitOptions,
    #[command(flatten)]
    read: ReadOptions,
    #[command(flatten)]
    risk: RiskOptions,
}

const EXAMPLES: &str = "\
Examples:
  hlo viz module.hlo                            writes module.html, for any browser
  hlo viz module.hlo --profile -o page.html     with the time of each instruction and memory over time
  hlo viz module.hlo --profile --platform cpu   the compiled program: fusions, and how long each step takes
  hlo viz module.hlo -o module.svg
  hlo viz module.hlo --format dot -o - | dot -Tpdf > module.pdf
  hlo opt module.hlo --stage hlo-optimized | hlo viz - -o optimized.html

In the page: drag and scroll; + or a double click unfolds fusions and calls; / searches names and opcodes.";

/// A form of a picture.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Format {
    /// A page with a viewer, for a browser
    Html,
    /// The language of Graphviz
    Dot,
    /// A drawing of all computations
    Svg,
}

impl Format {
    fn of_name(name: &str) -> Option<Format> {
        match Path::new(name).extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "html" | "htm" => Some(Format::Html),
            "dot" | "gv" => Some(Format::Dot),
            "svg" => Some(Format::Svg),
            _ => None,
        }
    }

    fn extension(self) -> &'static str {
        match self {
            Format::Html => "html",
            Format::Dot => "dot",
            Format::Svg => "svg",
        }
    }
}

#[derive(Serialize)]
struct Object<'a> {
    file: &'a str,
    ok: bool,
    format: Format,
    output: String,
    bytes: usize,
    instructions: usize,
    ms: f64,
}

pub(crate) fn run(options: &Options, ui: &Ui) -> Result<Exit, Failure> {
    let format = match (options.format, &options.output) {
        (Some(format), _) => format,
        (None, Some(name)) if name != "-" => Format::of_name(name).ok_or_else(|| {
            Failure::usage(format!("{name}: the name says no format; say html, dot or svg with --format"))
        })?,
        (None, _) => Format::Html,
    };
    let output = match &options.output {
        Some(name) if name == "-" => None,
        Some(name) => Some(PathBuf::from(name)),
        None if options.file == "-" => {
            return Err(Failure::usage("standard input has no name to write beside: say --output"));
        }
        None => Some(Path::new(&options.file).with_extension(format.extension())),
    };
    if output.as_deref().is_some_and(|o| o == Path::new(&options.file)) {
        return Err(Failure::usage(format!("{}: is the program itself: say --output", options.file)));
    }
    let program = super::load(&options.file, &options.read.at_risk(options.risk), ui)?;
    let broken = !program.broken.is_empty();
    let start = Instant::now();
    let draw = || drawn(&program, options, format);
    let (text, instructions) = if broken { at_own_risk("drawing the program", draw)? } else { draw()? };
    let ms = start.elapsed().as_secs_f64() * 1e3;
    match &output {
        Some(path) => write_text(path, &text)?,
        None => ui.raw(&text),
    }
    if let Some(path) = output {
        let (output, bytes) = (path.display().to_string(), text.len());
        if ui.json {
            ui.object(&Object { file: &options.file, ok: true, format, output, bytes, instructions, ms });
        } else {
            let (n, size) = (report::grouped(instructions as u64), report::bytes(bytes as u64));
            let time = report::time(start.elapsed());
            ui.detail(format!(
                "{output}: {n} instruction{}, {size}, {time}",
                if instructions == 1 { "" } else { "s" }
            ));
        }
    }
    Ok(if broken { Exit::Verify } else { Exit::Ok })
}

fn drawn(program: &Program, options: &Options, format: Format) -> Result<(String, usize), Failure> {
    let compiled;
    let (module, profile) =
        match options.profile.then(|| engine::cpu_options(&options.platform)).transpose()? {
            None => (&program.module, None),
            Some(Some(how)) => {
                compiled = profile_compiled(program, how, options)?;
                (&compiled.0, Some(compiled.1.clone()))
            }
            Some(None) if options.platform == "interpreter" => {
                (&program.module, Some(profile(program, options)?))
            }
            Some(None) => {
                let message = format!(
                    "`{}` has no profile of instructions: `interpreter` and `cpu` do",
                    options.platform
                );
                return Err(Failure::usage(message));
            }
        };
    let name = Path::new(&program.source.name).file_name().and_then(|n| n.to_str());
    let picture = Picture::new(name.unwrap_or(&program.source.name), module, profile);
    let text = match format {
        Format::Html => page::write(&picture),
        Format::Dot => dot::write(&picture),
        Format::Svg => svg::write(&picture),
    };
    Ok((text, picture.instruction_count()))
}

/// The one device that a program runs on.
fn one_device(module: &Module) -> Result<Devices, Failure> {
    let devices = devices::choose(module, None, None)?.devices;
    match devices.count() {
        1 => Ok(devices),
        _ => {
            Err(Failure::new(Exit::Unsupported, "--profile watches one device; this program runs on several"))
        }
    }
}

/// The number of runs of a compiled program.
const PROFILED_RUNS: usize = 5;

/// Compiles the program, and takes the times of its steps: what was compiled, and these.
fn profile_compiled(
    program: &Program,
    how: CpuOptions,
    options: &Options,
) -> Result<(Module, Profile), Failure> {
    let devices = one_device(&program.module)?;
    let (given, memory_bytes) = (options.inputs.as_deref(), options.limits.memory_limit);
    let arrays = inputs::of_program(program, given, options.seed, devices, memory_bytes)?;
    let emission = how.emission(&program.module, &mut ()).map_err(|error| failed(&error).failure())?;
    let module = emission.compilation.module().clone();
    let compiled = emission.assemble(false, &mut ()).map_err(|error| failed(&error).failure())?;
    let executable = compiled::load(compiled.program, memory_bytes)?;
    let runs = Runs::new(&executable, arrays.first().map_or(&[], |a| &a[..]))?;
    let how = ProgramOptions { fuel: options.limits.fuel, ..ProgramOptions::default() };
    // The first one finds nothing in caches.
    let finished = runs.profiled(1 + PROFILED_RUNS, &how)?;
    let profile = Profile::of_steps(&module, executable.steps(), &compiled::medians(&finished[1..]));
    Ok((module, profile))
}

/// Runs the program and takes its times.
fn profile(program: &Program, options: &Options) -> Result<Profile, Failure> {
    let module = &program.module;
    let devices = one_device(module)?;
    if let Err(d) = InterpreterEngine.supports(module, devices) {
        return Err(Failure::new(Exit::Unsupported, d.message));
    }
    let memory_bytes = options.limits.memory_limit;
    let given = options.inputs.as_deref();
    let arrays = inputs::of_program(program, given, options.seed, devices, memory_bytes)?;
    let limits = Limits { fuel: options.limits.fuel, memory_bytes };
    let run = RunOptions {
        limits,
        devices,
        seed: options.seed,
        kept_bytes: program.kept_bytes(),
        ..RunOptions::default()
    };
    let recorder = Arc::new(Recorder::default());
    let inputs = Inputs::new(module, &arrays)?;
    InterpreterEngine.run_watched(module, inputs, &run, Some(recorder.clone())).finished()?;
    let recorder = Arc::into_inner(recorder)
        .ok_or_else(|| Failure::internal("the engine still watches a run that has ended"))?;
    Ok(recorder.profile())
}
