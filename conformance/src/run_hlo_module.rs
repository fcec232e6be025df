//! The program `run_hlo_module`, with XLA's flags and verdicts (`xla/tools/run_hlo_module_main.cc`).
//!
//! **Invariants:** a flag of XLA's is obeyed, refused as unsupported, or is an `--xla_*` option of XLA's
//! compilers, which is noted and changes nothing; none is silently dropped. Exit codes are those of `hlo`.

use std::ffi::OsString;

use hlo::diag::render_all;
use hlo::diag::suggest::did_you_mean;
use hlo::{ArrayLiteral, Diagnostics};
use hlo_interp::Devices;

use hlo_engines::engine::{self, Engine, Finished, Inputs, Limits, RunOptions, named};
use hlo_engines::frontend::{Program, load};
use hlo_engines::inputs::{self, Fill};
use hlo_library_base::configuration::Configuration;
use hlo_system::exit::{Exit, Failure};
use hlo_system::guard::{check_machine, guarded, on_own_stack};
use hlo_system::memory_budget;
use hlo_system::npz::Npz;
use hlo_triage::differential::{Settings, Subject};
use hlo_triage::isolate::{self, Status};
use hlo_triage::near::{ErrorSpec, near};
use hlo_triage::report;

use crate::cli::configure;
use crate::cli::dump;
use crate::cli::ui::{self, Ui};
use crate::cli::values;
use crate::dumps::Dumps;

const HELP: &str = "\
Runs HLO modules on a platform and compares the results with a reference platform.

Usage: run_hlo_module [FLAGS] --platform=NAME FILE...

  --platform=NAME               interpreter, or another engine (docs/harness.md)
  --reference_platform=NAME     default (the interpreter); \"\" runs without comparing
  --abs_error_bound=X           absolute error bound (0.001); an element is wrong if it exceeds both
  --rel_error_bound=X           relative error bound (0.001)
  --iterations=N                runs, each on new inputs (1)
  --print_literals              print inputs and results
  --input_literals_file=NPZ     inputs: arrays arg0, arg1, ...
  --output_literals_file=NPZ    results of the last run: arrays out0, out1, ...
  --random_init_input_literals  made inputs; --norandom_init_input_literals makes zeros (true)
  --use_large_float_range       floats over the whole range of exponents (false)
  --isolate_instructions        run every instruction alone, on the reference's operands (false)
  --different_random_seeds      another seed for rng in each iteration (false)
  --input_format=FORMAT         hlo, txt, pb or pbtxt; files are told by their content
  --run_test_hlo_passes, --run_reference_hlo_passes    the interpreter has no passes: both are noted

  --xla_dump_to=DIR             dumps, with XLA's file names; formats and filters as for hlo run (docs/harness.md)
  --xla_cpu_max_isa=ISA         the most that the platform cpu uses: AVX2, AVX512, AVX512_VNNI, AVX512_BF16

Flags are written --flag=value, --flag value, --flag or --noflag, with _ or -. Other options --xla_*
are noted and change nothing. Protobuf literals are unsupported.

Examples:
  run_hlo_module --platform=interpreter --reference_platform=\"\" --print_literals m.hlo
  run_hlo_module --platform=interpreter --iterations=5 dump/*.txt
";

/// All flags, and whether each is a switch.
const FLAGS: &[(&str, bool)] = &[
    ("platform", false),
    ("reference_platform", false),
    ("print_literals", true),
    ("output_literals_file", false),
    ("input_literals_file", false),
    ("run_test_hlo_passes", true),
    ("run_reference_hlo_passes", true),
    ("random_init_input_literals", true),
    ("use_large_float_range", true),
    ("abs_error_bound", false),
    ("rel_error_bound", false),
    ("input_format", false),
    ("iterations", false),
    ("isolate_instructions", true),
    ("different_random_seeds", true),
    ("debug_options_file", false),
    ("xla_cpu_max_isa", false),
    ("help", true),
    ("version", true),
];

/// The options.
#[derive(Clone, PartialEq, Debug)]
struct Flags {
    platform: String,
    reference_platform: String,
    print_literals: bool,
    output: String,
    input: String,
    random_inputs: bool,
    large_range: bool,
    bounds: ErrorSpec,
    input_format: String,
    iterations: u64,
    isolate: bool,
    different_seeds: bool,
    debug_options_file: String,
    max_isa: String,
    help: bool,
    version: bool,
    noted: Vec<String>,
    /// XLA's dump flags, as [`dump::of_flags`] takes them.
    dumps: Vec<String>,
    files: Vec<String>,
}

impl Default for Flags {
    fn default() -> Self {
        Self {
            platform: String::new(),
            reference_platform: "default".into(),
            print_literals: false,
            output: String::new(),
            input: String::new(),
            random_inputs: true,
            large_range: false,
            bounds: ErrorSpec::default(),
            input_format: String::new(),
            iterations: 1,
            isolate: false,
            different_seeds: false,
            debug_options_file: String::new(),
            max_isa: String::new(),
            help: false,
            version: false,
            noted: Vec::new(),
            dumps: Vec::new(),
            files: Vec::new(),
        }
    }
}

fn parse_flags(args: impl Iterator<Item = String>) -> Result<Flags, Failure> {
    let mut flags = Flags::default();
    let mut args = args.peekable();
    let mut only_files = false;
    while let Some(arg) = args.next() {
        let is_flag = !only_files && arg.len() > 1 && arg.starts_with('-');
        if !is_flag {
            flags.files.push(arg);
            continue;
        }
        if arg == "--" {
            only_files = true;
            continue;
        }
        let body = arg.trim_start_matches('-');
        let (name, mut value) = match body.split_once('=') {
            Some((n, v)) => (n.replace('-', "_"), Some(v.to_owned())),
            None => (body.replace('-', "_"), None),
        };
        let name = if name == "h" { "help".to_owned() } else { name };
        if let Some(is_switch) = dump::flag(&name) {
            if value.is_none() && !is_switch {
                value = args.next();
            }
            flags.dumps.push(format!("--{name}={}", value.as_deref().unwrap_or("true")));
            continue;
        }
        if (name.starts_with("xla_") && !FLAGS.iter().any(|(flag, _)| *flag == name))
            || name.starts_with("noxla_")
        {
            flags.noted.push(arg);
            continue;
        }
        let known = |n: &str| FLAGS.iter().find(|(f, _)| *f == n).copied();
        let mut switched_on = true;
        let (flag, is_switch) = match known(&name) {
            Some(f) => f,
            None => match name.strip_prefix("no").and_then(known) {
                Some((f, true)) if value.is_none() => {
                    switched_on = false;
                    (f, true)
                }
                _ => {
                    let hint = did_you_mean(&name, FLAGS.iter().map(|f| f.0))
                        .map(|f| format!("; did you mean --{f}?"))
                        .unwrap_or_default();
                    return Err(Failure::usage(format!("there is no flag --{name}{hint}")));
                }
            },
        };
        if is_switch {
            let on = match value.as_deref() {
                None => switched_on,
                Some("true" | "1" | "t" | "yes") => true,
                Some("false" | "0" | "f" | "no") => false,
                Some(v) => return Err(Failure::usage(format!("--{flag}: `{v}` is neither true nor false"))),
            };
            flags.switch(flag, on);
        } else {
            if value.is_none() {
                value = args.next();
            }
            let value = value.ok_or_else(|| Failure::usage(format!("--{flag} needs a value")))?;
            flags.set(flag, value)?;
        }
    }
    Ok(flags)
}

impl Flags {
    fn switch(&mut self, flag: &str, on: bool) {
        match flag {
            "print_literals" => self.print_literals = on,
            "random_init_input_literals" => self.random_inputs = on,
            "use_large_float_range" => self.large_range = on,
            "isolate_instructions" => self.isolate = on,
            "different_random_seeds" => self.different_seeds = on,
            "help" => self.help = on,
            "version" => self.version = on,
            // run_test_hlo_passes, run_reference_hlo_passes
            other => self.noted.push(format!("--{other}={on}")),
        }
    }

    fn set(&mut self, flag: &str, value: String) -> Result<(), Failure> {
        fn number<T: std::str::FromStr>(flag: &str, value: &str) -> Result<T, Failure> {
            value.parse().map_err(|_| Failure::usage(format!("--{flag}: `{value}` is not a number")))
        }
        let bound = |flag: &str, value: &str| {
            values::bound(value).map_err(|why| Failure::usage(format!("--{flag}: {why}")))
        };
        match flag {
            "platform" => self.platform = value,
            "reference_platform" => self.reference_platform = value,
            "output_literals_file" => self.output = value,
            "input_literals_file" => self.input = value,
            "abs_error_bound" => self.bounds.abs = bound(flag, &value)?,
            "rel_error_bound" => self.bounds.rel = bound(flag, &value)?,
            "input_format" => self.input_format = value,
            "iterations" => self.iterations = number(flag, &value)?,
            "debug_options_file" => self.debug_options_file = value,
            "xla_cpu_max_isa" => self.max_isa = value,
            other => return Err(Failure::internal(format!("no arm for --{other}"))),
        }
        Ok(())
    }

    /// Flags that are known and not supported yet.
    fn refuse_unsupported(&self) -> Result<(), Failure> {
        let unsupported = |what: String| Err(Failure::new(Exit::Unsupported, what));
        if self.isolate && !matches!(&*self.reference_platform, "default" | "interpreter") {
            return unsupported(
                "--isolate_instructions takes operands from the interpreter: no other reference".into(),
            );
        }
        if !self.debug_options_file.is_empty() {
            return unsupported("--debug_options_file: protobuf files are unsupported".into());
        }
        for (flag, path) in [("input_literals_file", &self.input), ("output_literals_file", &self.output)] {
            if !path.is_empty() && !path.ends_with(".npz") {
                return unsupported(format!("--{flag}: protobuf files are unsupported; give an .npz file"));
            }
        }
        if !matches!(&*self.input_format, "" | "hlo" | "txt" | "pb" | "pbtxt") {
            return unsupported(format!(
                "--input_format={} is unsupported; hlo, txt, pb and pbtxt are",
                self.input_format
            ));
        }
        for file in &self.files {
            let ending = file.rsplit('.').next().unwrap_or("");
            if self.input_format.is_empty() && matches!(ending, "mlir" | "stablehlo" | "riegeli") {
                return unsupported(format!(
                    "{file}: files of kind .{ending} are unsupported; give HLO text or protocol buffers"
                ));
            }
        }
        Ok(())
    }
}

/// Runs the program with the process's arguments. Returns the exit code.
pub fn main() -> u8 {
    if let Some(code) = hlo_system::process::supervised() {
        return code;
    }
    let ui = Ui::new(false, false, false);
    let command = || {
        check_machine()?;
        guarded("running the command", || {
            let text = |argument: OsString| {
                argument
                    .into_string()
                    .map_err(|bad| Failure::usage(format!("{}: arguments are UTF-8", bad.display())))
            };
            let arguments: Vec<String> = std::env::args_os().skip(1).map(text).collect::<Result<_, _>>()?;
            run(arguments.into_iter(), &ui)
        })
    };
    let whole = || {
        memory_budget::limit_process(Limits::default().memory_bytes, false);
        command()
    };
    let result = on_own_stack(whole).flatten();
    let exit = result.unwrap_or_else(|failure| {
        ui.failure(&failure);
        failure.exit
    });
    ui::finish(exit.code())
}

fn run(args: impl Iterator<Item = String>, ui: &Ui) -> Result<Exit, Failure> {
    let flags = parse_flags(args)?;
    if flags.help {
        ui.raw(HELP);
        return Ok(Exit::Ok);
    }
    if flags.version {
        ui.line(concat!("run_hlo_module ", env!("CARGO_PKG_VERSION")));
        return Ok(Exit::Ok);
    }
    if flags.files.is_empty() {
        return Err(Failure::usage("no file to run (--help shows the flags)"));
    }
    if flags.platform.is_empty() {
        return Err(Failure::usage("--platform is required, such as --platform=interpreter"));
    }
    flags.refuse_unsupported()?;
    #[cfg_attr(not(feature = "llvm"), expect(unused_mut, reason = "there is nothing to choose"))]
    let mut configuration = Configuration::default();
    #[cfg(feature = "llvm")]
    if !flags.max_isa.is_empty() {
        let isa = values::isa(&flags.max_isa).map_err(|why| {
            Failure::new(Exit::Unsupported, format!("--xla_cpu_max_isa={}: {why}", flags.max_isa))
        })?;
        configuration = Configuration::new(Some(isa), None, std::num::NonZeroU32::MIN);
    }
    configure(0, configuration)?;
    let dumps = if flags.dumps.iter().any(|f| f.starts_with("--xla_dump_to=")) {
        dump::of_flags(&flags.dumps)?
    } else {
        // XLA dumps to standard output then, where results are here.
        flags.dumps.iter().for_each(|note| ui.warn(format!("{note} changes nothing without --xla_dump_to")));
        None
    };
    for note in &flags.noted {
        ui.warn(format!("{note} changes nothing here"));
    }
    let platform = engine::by_name(&flags.platform)?;
    let reference = match flags.reference_platform.as_str() {
        "" => None,
        "default" => Some(engine::by_name("interpreter")?),
        name => Some(engine::by_name(name)?),
    };
    let mut exit = Exit::Ok;
    let (mut runs, mut failed) = (0u64, 0u64);
    for (number, file) in flags.files.iter().enumerate() {
        let result = guarded(&format!("running {file}"), || {
            let program = match load(file) {
                Ok(program) => program,
                Err(rejected) => {
                    ui.raw_error(&rejected.render(ui.color_errors));
                    return Ok((1, 1, rejected.exit));
                }
            };
            let dumps = dumps.as_ref().map(|d| (d, number));
            if let Some((dumps, number)) = dumps {
                dumps.program(number, &program.module, platform.name())?;
            }
            run_file(file, &program, &flags, (&*platform, reference.as_deref()), dumps, ui)
        });
        let (n, bad, e) = result.unwrap_or_else(|failure| {
            ui.failure(&failure);
            (1, 1, failure.exit)
        });
        runs += n;
        failed += bad;
        exit = exit.first_failure(e);
    }
    ui.line(format!("{failed}/{runs} runs failed."));
    Ok(exit)
}

/// Returns the number of runs, of failed ones, and the first failure.
fn run_file(
    file: &str,
    program: &Program,
    flags: &Flags,
    (platform, reference): (&dyn Engine, Option<&dyn Engine>),
    dumps: Option<(&Dumps, usize)>,
    ui: &Ui,
) -> Result<(u64, u64, Exit), Failure> {
    let mut exit = Exit::Ok;
    let mut failed = 0;
    for iteration in 0..flags.iterations {
        if flags.iterations > 1 {
            ui.line(format!("\n=== Iteration {iteration} of {file} ==="));
        } else {
            ui.line(format!("\n ** Running {file} **"));
        }
        let end = match reference {
            Some(_) if flags.isolate => run_isolated(program, file, flags, iteration, platform, ui)?,
            _ => run_once(program, file, flags, iteration, (platform, reference), dumps, ui)?,
        };
        failed += u64::from(end != Exit::Ok);
        exit = exit.first_failure(end);
    }
    Ok((flags.iterations, failed, exit))
}

fn make_inputs(
    program: &Program,
    file: &str,
    flags: &Flags,
    iteration: u64,
    limit: u64,
    devices: Devices,
) -> Result<Vec<Vec<ArrayLiteral>>, Failure> {
    let module = &program.module;
    if flags.input.is_empty()
        && let Some(recorded) = &program.recorded
        && let Some(arrays) = recorded.arguments_on(module, devices)?
    {
        return Ok(arrays);
    }
    if !flags.input.is_empty() {
        return inputs::read(module, &mut Npz::open(&flags.input, limit)?, devices);
    }
    let mut plan = inputs::plan(module, inputs::range_beside(file)?)?;
    for leaf in &mut plan.leaves {
        if !flags.random_inputs {
            leaf.fill = Fill::Int { low: 0, high: 0 };
        } else if flags.large_range && matches!(leaf.fill, Fill::Real { .. } | Fill::Cover(_)) {
            leaf.fill = Fill::LargeReal;
        }
    }
    inputs::generate(&plan, iteration, devices, limit)
}

fn run_once(
    program: &Program,
    file: &str,
    flags: &Flags,
    iteration: u64,
    (platform, reference): (&dyn Engine, Option<&dyn Engine>),
    dumps: Option<(&Dumps, usize)>,
    ui: &Ui,
) -> Result<Exit, Failure> {
    let module = &program.module;
    let limits = Limits::default();
    let devices = engine::devices::stated(module, None, None)?;
    for engine in [Some(platform), reference].into_iter().flatten() {
        if let Err(d) = engine.supports(module, devices) {
            ui.raw_error(&render_all(&Diagnostics::from(d), file, &program.source.text, ui.color_errors));
            return Ok(Exit::Unsupported);
        }
    }
    let arrays = make_inputs(program, file, flags, iteration, limits.memory_bytes, devices)?;
    if flags.print_literals {
        ui.line("\n** Inputs **");
        print_arrays(ui, "arg", &arrays);
    }
    // XLA's default seed for rng.
    let seed = if flags.different_seeds { iteration + 1 } else { 42 };
    let options = RunOptions { limits, seed, devices, ..RunOptions::default() };
    let run_on = |engine: &dyn Engine| -> Result<Result<Vec<Vec<ArrayLiteral>>, Exit>, Failure> {
        ui.line(format!("Running HLO module with platform {}...", engine.name()));
        let arguments = Inputs::new(module, &arrays)?;
        Ok(match engine.run(module, arguments, &options).into_results() {
            Ok(finished) => {
                ui.line(format!("... ran in {}.", report::time(finished.time)));
                if flags.print_literals {
                    ui.line(format!("\n** Result with platform {} **", engine.name()));
                    print_arrays(ui, "out", &finished.results);
                }
                Ok(finished.results)
            }
            Err((exit, d)) => {
                ui.raw_error(&render_all(&Diagnostics::from(d), file, &program.source.text, ui.color_errors));
                Err(exit)
            }
        })
    };
    let results = match run_on(platform)? {
        Ok(results) => results,
        Err(exit) => return Ok(exit),
    };
    if !flags.output.is_empty() {
        hlo_system::npz::write(std::path::Path::new(&flags.output), &named("out", &results))?;
    }
    if let Some((dumps, number)) = dumps {
        dumps.run((number, iteration), module, &arrays, &results, platform.name())?;
    }
    let Some(reference) = reference else {
        ui.line("Skipping reference platform");
        return Ok(Exit::Ok);
    };
    let expected = match run_on(reference)? {
        Ok(results) => results,
        Err(exit) => return Ok(exit),
    };
    let (expected, results) = (named("out", &expected), named("out", &results));
    let reports: Vec<String> = expected
        .iter()
        .zip(&results)
        .filter_map(|((name, e), (_, a))| near(name, e, a, flags.bounds))
        .collect();
    let (a, b) = (platform.name(), reference.name());
    if reports.is_empty() && expected.len() == results.len() {
        ui.line(format!("\n** Results on {a} and {b} are close enough. **"));
        return Ok(Exit::Ok);
    }
    ui.line(format!("\n** Results on {a} and {b} do not match. **"));
    reports.iter().for_each(|r| ui.raw(r));
    Ok(Exit::Differs)
}

/// Runs every instruction alone on the reference's operands. It is wrong if a result exceeds both bounds.
fn run_isolated(
    program: &Program,
    file: &str,
    flags: &Flags,
    iteration: u64,
    platform: &dyn Engine,
    ui: &Ui,
) -> Result<Exit, Failure> {
    let module = &program.module;
    let limits = Limits::default();
    let devices = engine::devices::stated(module, None, None)?;
    let arrays = make_inputs(program, file, flags, iteration, limits.memory_bytes, devices)?;
    let seed = if flags.different_seeds { iteration + 1 } else { 42 };
    let run = RunOptions { limits, seed, devices, ..RunOptions::default() };
    let settings = Settings { run, ..Settings::default() };
    let options = isolate::Options { settings, ..isolate::Options::default() };
    let subject = Subject::new(module, &arrays);
    let found = match isolate::isolate(&subject, platform, &options, &mut |_, _| {}) {
        Ok(found) => found,
        Err(outcome) => {
            let Err((exit, d)) = outcome.into_results() else {
                return Err(Failure::internal("a run with results counted as one without"));
            };
            ui.raw_error(&render_all(&Diagnostics::from(d), file, &program.source.text, ui.color_errors));
            return Ok(exit);
        }
    };
    let width = found.rows.iter().map(|r| r.computation.len() + r.name.len() + 1).max().unwrap_or(0);
    ui.line(format!("{:width$}  {:24}  status", "instruction", "opcode"));
    let mut mismatches = 0;
    for row in &found.rows {
        let status = match &row.alone {
            Status::Success(_) => "MATCHED".to_owned(),
            Status::Skipped(why) => format!("SKIPPED ({why})"),
            Status::Failure(d) => match (&d.reference, &d.actual) {
                (Some(e), Some(a)) if !far(e, a, flags.bounds) => "MATCHED".to_owned(),
                (Some(_), Some(_)) => {
                    mismatches += 1;
                    "MISMATCH".to_owned()
                }
                _ => {
                    mismatches += 1;
                    format!("ERROR ({})", d.kind.describe())
                }
            },
        };
        ui.line(format!(
            "{:width$}  {:24}  {status}",
            format!("{}.{}", row.computation, row.name),
            row.opcode.name()
        ));
    }
    ui.line(format!("{mismatches} of {} instructions do not match.", found.rows.len()));
    Ok(if mismatches == 0 { Exit::Ok } else { Exit::Differs })
}

/// Whether some result exceeds both bounds.
fn far(expected: &Finished, actual: &Finished, bounds: ErrorSpec) -> bool {
    let pairs = expected.results.iter().flatten().zip(actual.results.iter().flatten());
    pairs.into_iter().any(|(e, a)| near("", e, a, bounds).is_some())
}

fn print_arrays(ui: &Ui, stem: &str, arrays: &[Vec<ArrayLiteral>]) {
    for (name, a) in named(stem, arrays) {
        ui.line(format!("{name} = {} {}", a.shape(), report::array_text(a)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<Flags, Failure> {
        parse_flags(args.iter().map(|s| (*s).to_owned()))
    }

    #[test]
    fn flags_in_every_spelling() {
        let f = parse(&[
            "--platform=interpreter",
            "--reference_platform",
            "",
            "--iterations=3",
            "a.hlo",
            "--print-literals",
            "-norandom_init_input_literals",
            "--xla_dump_to=/tmp/x",
            "--xla_cpu_enable_fast_math=false",
            "b.hlo",
        ])
        .unwrap();
        assert_eq!((&*f.platform, &*f.reference_platform, f.iterations), ("interpreter", "", 3));
        assert!(f.print_literals && !f.random_inputs);
        assert_eq!(f.files, ["a.hlo", "b.hlo"]);
        assert_eq!(f.noted, ["--xla_cpu_enable_fast_math=false"]);
        assert_eq!(f.dumps, ["--xla_dump_to=/tmp/x"]);
        let f = parse(&["--abs_error_bound=1e-5", "--rel_error_bound", "0.25", "--print_literals=false"])
            .unwrap();
        assert_eq!((f.bounds, f.print_literals), (ErrorSpec { abs: 1e-5, rel: 0.25 }, false));
        assert_eq!(parse(&["--", "--platform"]).unwrap().files, ["--platform"]);
    }

    #[test]
    fn mistakes_are_wrong_usage() {
        let message = |args: &[&str]| {
            let f = parse(args).unwrap_err();
            assert_eq!(f.exit, Exit::Usage);
            f.message
        };
        assert_eq!(message(&["--platfrom=x"]), "there is no flag --platfrom; did you mean --platform?");
        assert_eq!(message(&["--iterations=many"]), "--iterations: `many` is not a number");
        assert_eq!(message(&["--iterations"]), "--iterations needs a value");
        assert_eq!(
            message(&["--print_literals=maybe"]),
            "--print_literals: `maybe` is neither true nor false"
        );
        assert_eq!(message(&["--noplatform"]), "there is no flag --noplatform; did you mean --platform?");
    }

    #[test]
    fn other_formats_are_unsupported() {
        for args in [
            &["--input_literals_file=x.pb"][..],
            &["--output_literals_file=x.txt"],
            &["--debug_options_file=d.txt"],
            &["--isolate_instructions", "--reference_platform="],
            &["--input_format=stablehlo"],
            &["m.riegeli"],
        ] {
            assert_eq!(
                parse(args).unwrap().refuse_unsupported().unwrap_err().exit,
                Exit::Unsupported,
                "{args:?}"
            );
        }
        for args in [&["--input_literals_file=x.npz", "m.hlo"][..], &["m.pb"], &["--input_format=pbtxt", "m"]]
        {
            assert!(parse(args).unwrap().refuse_unsupported().is_ok(), "{args:?}");
        }
    }
}
