//! `hlo convert`: a program from one format to another.

use std::io::{self, Write};
use std::path::Path;

use clap::Args;
use hlo::diag::render_all;
use hlo::{Diagnostics, Literal, Module};
use hlo_mlir::bytecode::Version;
use hlo_proto::{Contents, WriteError};

use super::ui::Ui;
use super::{LimitOptions, ReadOptions, RiskOptions, load_read, warn};
use hlo_engines::engine::{Engine, Inputs, InterpreterEngine, Limits, RunOptions, devices};
use hlo_engines::frontend::Program;
use hlo_engines::inputs;
use hlo_engines::mlir::output::{self, Form};
use hlo_engines::protos::{self, Format};
use hlo_system::exit::{Exit, Failure};
use hlo_system::files::{read_bytes, write_whole};
use hlo_system::memory_budget;
use hlo_system::npz::Npz;

/// Options of `hlo convert`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// The program, in any format; `-` is standard input
    #[arg(value_name = "FILE")]
    file: String,
    /// Where to write it; `-` is standard output
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: String,
    /// The format, if the name of the output does not say it
    #[arg(long, value_enum, value_name = "FORMAT")]
    to: Option<Format>,
    /// Bytecode for readers of this version of StableHLO and newer ones, 0.9.0 to 1.20.0; the newest if not
    /// given
    #[arg(long, value_name = "X.Y.Z", value_parser = target_version)]
    target_version: Option<Version>,
    /// Arguments of a snapshot: arrays arg0, arg1, ... (dK.arg0 of partition K)
    #[arg(long, value_name = "NPZ")]
    inputs: Option<String>,
    /// Run the program on its arguments, and record the result in the snapshot
    #[arg(long)]
    with_result: bool,
    #[command(flatten)]
    pub(super) limits: LimitOptions,
    #[command(flatten)]
    read: ReadOptions,
    #[command(flatten)]
    risk: RiskOptions,
}

const EXAMPLES: &str = "\
Examples:
  hlo convert module.hlo -o module.pb
  hlo convert dump.hlo.pb -o dump.hlo
  hlo convert module.hlo --inputs in.npz --with-result -o run.snapshot.pb
  hlo convert run.snapshot.pb --to pbtxt | less
  hlo convert module.hlo -o module.mlir
  hlo convert module.mlir --target-version 1.13.0 -o module.mlirbc
  hlo convert exported.bin --to hlo

Formats by name: .hlo .txt text, .mlir StableHLO, .mlirbc .bc its bytecode, .pb .pbtxt HloModuleProto, .hlo.pb HloProto,
.snapshot.pb HloSnapshot, .unoptimized_snapshot.pb HloUnoptimizedSnapshot (docs/formats.md)";

/// Converts a program. Nothing is written unless all of it can be.
pub(crate) fn run(options: &Options, ui: &Ui) -> Result<Exit, Failure> {
    let format = match (options.to, Format::of_name(&options.output)) {
        (Some(format), _) | (None, Some(format)) => format,
        (None, None) if options.output == "-" => Format::Hlo,
        (None, None) => {
            let message = format!("{}: the name says no format; say one with --to", options.output);
            return Err(Failure::usage(message));
        }
    };
    let records = options.inputs.is_some() || options.with_result;
    if records && !format.is_snapshot() {
        return Err(Failure::usage(
            "--inputs and --with-result need a snapshot to record in (--to snapshot-pb)",
        ));
    }
    if options.target_version.is_some() && format != Format::Bytecode {
        return Err(Failure::usage("--target-version is for bytecode (--to bytecode)"));
    }
    // Standard input can be read once.
    let (name, bytes) = read_bytes(&options.file)?;
    let form = match format {
        Format::Stablehlo => Some(Form::Text),
        Format::Bytecode => Some(Form::Bytecode(options.target_version.unwrap_or(Version::NEWEST))),
        Format::Hlo
        | Format::Pb
        | Format::Pbtxt
        | Format::HloPb
        | Format::HloPbtxt
        | Format::SnapshotPb
        | Format::SnapshotPbtxt
        | Format::UnoptimizedSnapshotPb
        | Format::UnoptimizedSnapshotPbtxt => None,
    };
    if let Some(form) = form {
        return to_stablehlo(options, (name, bytes), form, ui);
    }
    if let (Some(from), Some(to), false) = (hlo_proto::sniff(&bytes), format.message(), records) {
        let read = protos::read_options(&bytes);
        let convert = |out: &mut dyn Write| hlo_proto::convert(&bytes, from, to, &read, out);
        let found = write(options, &name, ui, convert)?;
        warn(&name, "", [&found], ui);
        return Ok(Exit::Ok);
    }
    let program = load_read((name, bytes), &options.read.at_risk(options.risk), ui)?;
    let recorded = record(options, &program)?;
    let contents = Contents {
        module: &program.module,
        arguments: &recorded.arguments,
        result: recorded.result.as_ref(),
        platform: if options.with_result { "interpreter" } else { "" },
    };
    write(options, &program.source.text, ui, |out| protos::write(&contents, format, out))?;
    Ok(if program.broken.is_empty() { Exit::Ok } else { Exit::Verify })
}

fn target_version(text: &str) -> Result<Version, String> {
    let wrong = || "versions are three numbers, 0.9.0 to 1.20.0".to_owned();
    let version: Version = text.parse().map_err(|_| wrong())?;
    if (Version::OLDEST..=Version::NEWEST).contains(&version) { Ok(version) } else { Err(wrong()) }
}

/// Writes StableHLO: the module that was given, if it is in MLIR, else what the program is converted to.
fn to_stablehlo(options: &Options, file: (String, Vec<u8>), form: Form, ui: &Ui) -> Result<Exit, Failure> {
    let reading = options.read.at_risk(options.risk);
    let (tree, text, exit) = match output::tree_of(&file.1, reading.pick.as_ref(), memory_budget::text_left())
    {
        Some(Ok(tree)) => (tree, String::new(), Exit::Ok),
        Some(Err((found, text))) => {
            let exit = hlo_engines::mlir::exit_of(&found).unwrap_or(Exit::Parse);
            let color = ui.color_errors && !ui.json;
            return Err(Failure::rendered(exit, render_all(&found, &file.0, &text, color)));
        }
        None => {
            let program = load_read(file, &reading, ui)?;
            let (tree, left_out) = match output::tree_of_hlo(&program.module) {
                Ok(made) => made,
                Err(found) => {
                    let color = ui.color_errors && !ui.json;
                    let text = render_all(&found, &options.file, &program.source.text, color);
                    return Err(Failure::rendered(Exit::Unsupported, text));
                }
            };
            // Not on standard output, where the program may go.
            if !left_out.is_empty() && !ui.quiet && !ui.json {
                let list = left_out.join(", ");
                ui.raw_error(&format!("note: StableHLO cannot say, and it changes no result: {list}\n"));
            }
            let exit = if program.broken.is_empty() { Exit::Ok } else { Exit::Verify };
            (tree, program.source.text, exit)
        }
    };
    write(options, &text, ui, |out| {
        let bytes = output::written(&tree, form)
            .map_err(|found| WriteError::Unsupported(output::without_spans(found)))?;
        Ok(out.write_all(&bytes)?)
    })?;
    Ok(exit)
}

/// The contents of a snapshot beside the program.
#[derive(Default)]
struct Record {
    arguments: Vec<Vec<Literal>>,
    result: Option<Literal>,
}

fn record(options: &Options, program: &Program) -> Result<Record, Failure> {
    let module = &program.module;
    let limit = options.limits.memory_limit;
    let devices = devices::choose(module, None, None)?.devices;
    let arrays = match &options.inputs {
        Some(path) => Some(inputs::read(module, &mut Npz::open(path, limit)?, devices)?),
        None => match &program.recorded {
            Some(recorded) => recorded.arguments_on(module, devices)?,
            None => None,
        },
    };
    let Some(arrays) = arrays.or_else(|| parameterless(module, devices.count())) else {
        if options.with_result {
            return Err(Failure::usage(
                "--with-result needs arguments: --inputs, or a snapshot that has them",
            ));
        }
        return Ok(Record::default());
    };
    let to_run = Inputs::new(module, &arrays)?;
    let arguments = to_run.arguments.clone();
    if !options.with_result {
        let result = program.recorded.as_ref().filter(|_| options.inputs.is_none());
        let result =
            result.and_then(|r| r.result.clone()).map(|arrays| of_shape(module, arrays)).transpose()?;
        return Ok(Record { arguments, result });
    }
    if devices.count() != 1 {
        return Err(Failure::new(
            Exit::Unsupported,
            "a snapshot has the result of one device, and the program runs on several",
        ));
    }
    let limits = Limits { fuel: options.limits.fuel, memory_bytes: limit };
    let run = RunOptions { limits, devices, kept_bytes: program.kept_bytes(), ..RunOptions::default() };
    if let Err(d) = InterpreterEngine.supports(module, devices) {
        return Err(Failure::new(Exit::Unsupported, d.message));
    }
    let finished = InterpreterEngine.run(module, to_run, &run).finished()?;
    let arrays = finished.results.into_iter().next().unwrap_or_default();
    Ok(Record { arguments, result: Some(of_shape(module, arrays)?) })
}

fn parameterless(module: &Module, devices: u32) -> Option<Vec<Vec<hlo::ArrayLiteral>>> {
    inputs::parameter_arrays(module).is_empty().then(|| vec![Vec::new(); devices as usize])
}

/// The arrays of a result as a value of its shape.
fn of_shape(module: &Module, arrays: Vec<hlo::ArrayLiteral>) -> Result<Literal, Failure> {
    let shape = &module.instr(module.root(module.entry())).shape;
    hlo_execution::run::build(shape, &mut arrays.into_iter())
}

/// Writes to the output, whole or not at all.
fn write<T>(
    options: &Options,
    text: &str,
    ui: &Ui,
    write: impl FnOnce(&mut dyn Write) -> Result<T, WriteError>,
) -> Result<T, Failure> {
    let rejected = |found: &Diagnostics, exit: Exit| {
        Failure::rendered(exit, render_all(found, &options.file, text, ui.color_errors && !ui.json))
    };
    let mut failure = None;
    let mut value = None;
    let fill = |out: &mut dyn Write| match write(out) {
        Ok(v) => {
            value = Some(v);
            Ok(())
        }
        Err(WriteError::Io(e)) => Err(e),
        Err(WriteError::Unsupported(found)) => {
            failure = Some(rejected(&found, Exit::Unsupported));
            Err(io::Error::other("not written"))
        }
        Err(WriteError::Unreadable(found)) => {
            failure = Some(rejected(&found, Exit::Parse));
            Err(io::Error::other("not written"))
        }
    };
    let written = if options.output == "-" {
        let mut whole = Vec::new();
        fill(&mut whole)
            .map_err(|e| Failure::usage(format!("cannot be written: {}", hlo_system::files::describe(&e))))
            .map(|()| ui.raw_bytes(&whole))
    } else {
        write_whole(Path::new(&options.output), |file| fill(file))
    };
    match (failure, written) {
        (Some(failure), _) => Err(failure),
        (None, Err(failure)) => Err(failure),
        (None, Ok(())) => value.ok_or_else(|| Failure::internal("a file was written by nobody")),
    }
}
