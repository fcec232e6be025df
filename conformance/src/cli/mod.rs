//! The command line of `hlo`: one file a command, each with its `Options` and `run`.

mod attack;
mod bench;
mod bisect;
mod cache;
mod client_bench;
#[cfg(feature = "llvm")]
mod compile;
mod compiled;
mod completions;
mod convert;
mod coverage;
mod diff_trace;
pub(crate) mod dump;
mod exec;
mod exhaustive;
mod explain;
mod filetest;
mod fuzz;
mod isolate;
mod judging;
mod opt;
mod print;
mod prove;
mod ptx;
mod reduce;
mod report;
mod run;
mod serve;
#[cfg(feature = "llvm")]
mod stage;
mod test;
mod trust;
pub mod ui;
pub(crate) mod values;
mod verify;
mod viz;
mod waiting;
mod watch;

#[cfg(feature = "llvm")]
use std::num::NonZeroU32;

use clap::{Args, Parser, Subcommand};
use hlo::diag::render_all;
use hlo::{Diagnostics, Module};
use hlo_interp::Devices;
use hlo_library_base::configuration::Configuration;
#[cfg(feature = "llvm")]
use hlo_library_base::isa::Isa;
#[cfg(feature = "llvm")]
use hlo_library_base::tuning::Tuning;
use hlo_parser::Pick;

use hlo_engines::engine;
use hlo_engines::frontend::{self, Program, Reading};
use hlo_system::custom_calls::{self, Substitution};
use hlo_system::exit::{Exit, Failure};
use hlo_system::guard::{check_machine, guarded, on_own_stack, start_pool, useful};
use hlo_system::loaded::{self, Loading};
use hlo_system::memory_budget;
use hlo_triage::report::parse_bytes;
use ui::Ui;

/// A reference compiler for HLO, the intermediate representation of XLA.
#[derive(Parser, Debug)]
#[command(name = "hlo", version, about, max_term_width = 110, after_help = EXAMPLES, propagate_version = false)]
pub struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  hlo run module.hlo                            run it on made inputs and print the results
  hlo run module.hlo --inputs in.npz --expected out.npz
  hlo verify dump/*.txt                         a line for each file, errors with their place

Exit codes: 0 fine, 1 results differ or a case failed, 2 wrong usage, 3 cannot be parsed,
4 does not verify, 5 unsupported, 6 trapped or out of fuel or memory, 70 a bug of this program";

#[derive(Args, Debug)]
struct Global {
    /// Only errors and verdicts
    #[arg(short, long, global = true)]
    quiet: bool,
    /// More detail: times of each stage
    #[arg(short, long, global = true, conflicts_with = "quiet")]
    verbose: bool,
    /// One JSON object a line instead of text
    #[arg(long, global = true)]
    json: bool,
    /// Threads of one program's run, at most 1,024; 0 is all
    #[arg(long, global = true, default_value_t = 0, value_name = "N", hide_default_value = true, value_parser = values::threads)]
    threads: usize,
    /// The most of x86-64's instruction sets that compiled programs use: AVX2, AVX512, AVX512_VNNI,
    /// AVX512_BF16
    #[cfg(feature = "llvm")]
    #[arg(long, global = true, value_name = "ISA", value_parser = values::isa, hide_short_help = true)]
    cpu_max_isa: Option<Isa>,
    /// The microarchitecture that library calls are tuned for, if not this machine's (docs/compiler.md)
    #[cfg(feature = "llvm")]
    #[arg(long, global = true, value_name = "NAME", value_parser = values::tuning, hide_short_help = true)]
    cpu_tuning: Option<Tuning>,
    /// Keep compiled programs in a folder, and take them from there
    #[arg(long, global = true, value_name = "DIR", hide_short_help = true)]
    cache: Option<std::path::PathBuf>,
    /// Compile and run as if arrays were N times as large where that decides how, so that small programs go
    /// the ways of large ones
    #[cfg(feature = "llvm")]
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), hide_short_help = true)]
    cpu_size_divisor: Option<u32>,
}

impl Global {
    /// What programs are compiled for and run on.
    fn configuration(&self) -> Configuration {
        #[cfg(feature = "llvm")]
        {
            let divisor = self.cpu_size_divisor.and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MIN);
            Configuration::new(self.cpu_max_isa, self.cpu_tuning, divisor)
        }
        #[cfg(not(feature = "llvm"))]
        Configuration::default()
    }
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Run programs and print or compare their results
    Run(Box<run::Options>),
    /// Check programs, a line for each
    Verify(verify::Options),
    /// Print programs in one of XLA's styles
    Print(print::Options),
    /// Convert programs between text, XLA's protocol buffers and StableHLO
    Convert(convert::Options),
    /// Draw a program: a page for a browser, SVG, dot
    Viz(viz::Options),
    /// Run all recorded cases below folders
    Test(test::Options),
    /// Run passes on a program and print what they make of it
    Opt(opt::Options),
    /// Which pass breaks a program, or which of a compiler's dumps
    Bisect(Box<bisect::Options>),
    /// Time programs: reading, preparing, running; memory of runs
    Bench(bench::Options),
    /// Compile a program to a file that `hlo exec` runs
    #[cfg(feature = "llvm")]
    Compile(Box<compile::Options>),
    /// Run what `hlo compile` made
    Exec(exec::Options),
    /// Run programs for whoever asks on standard input, as the engine `serve:` does
    #[command(hide = true)]
    Serve(serve::Options),
    /// Look after a folder of compiled programs
    Cache(cache::Options),
    /// What it costs to call the runtime: executions, chains, the cache; beside PJRT plugins
    ClientBench(client_bench::Options),
    /// Where two traces of `run --trace` first differ
    DiffTrace(diff_trace::Options),
    /// Which instruction an engine computes wrongly
    Isolate(Box<isolate::Options>),
    /// Run test programs whose comments say what must come of them
    Filetest(filetest::Options),
    /// Hunt for programs on which engines go wrong
    Fuzz(Box<fuzz::Options>),
    /// The smallest program with the same failure
    Reduce(Box<reduce::Options>),
    /// Collect all that a bug report needs in a folder
    Report(Box<report::Options>),
    /// Check elementwise functions against arbitrary precision
    Exhaustive(exhaustive::Options),
    /// Prove that recorded values which differ are the ones in error
    Prove(prove::Options),
    /// Run a PTX kernel with all checks, without a GPU; check and print PTX
    Ptx(ptx::Options),
    /// Which opcodes filetests run on which element types
    Coverage(coverage::Options),
    /// What an error code means
    Explain(explain::Options),
    /// Completions for a shell
    Completions(completions::Options),
    /// Attack this program: mutants of programs, hostile files, peers, signals and limits, against its
    /// commands
    #[command(hide = true)]
    Attack(attack::Options),
}

impl Command {
    /// The limit on memory of each program that it runs.
    fn memory_limit(&self) -> u64 {
        match self {
            Command::Run(o) => o.memory_limit(),
            Command::Test(o) => o.limits.memory_limit,
            Command::Convert(o) => o.limits.memory_limit,
            Command::Viz(o) => o.limits.memory_limit,
            Command::Report(o) => o.limits.memory_limit,
            Command::Bisect(o) => o.limits.memory_limit,
            Command::Bench(o) => o.limits.memory_limit,
            Command::DiffTrace(o) => o.memory_limit,
            Command::Isolate(o) => o.limits.memory_limit,
            Command::Fuzz(o) => o.limits.memory_limit,
            Command::Reduce(o) => o.memory_limit,
            Command::Prove(o) => o.limits.memory_limit,
            Command::Ptx(o) => o.memory_limit(),
            #[cfg(feature = "llvm")]
            Command::Compile(o) => o.limits.memory_limit,
            Command::Exec(o) => o.limits.memory_limit,
            Command::Serve(o) => o.limits.memory_limit,
            Command::Verify(o) => o.memory.bytes(),
            Command::Print(o) => o.memory.bytes(),
            Command::Opt(o) => o.memory.bytes(),
            // The others read no programs, or set the limits of what they run themselves.
            Command::Filetest(_)
            | Command::Exhaustive(_)
            | Command::Coverage(_)
            | Command::Explain(_)
            | Command::Completions(_)
            | Command::Cache(_)
            | Command::ClientBench(_)
            | Command::Attack(_) => u64::MAX,
        }
    }
}

/// Limits that several commands take.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct LimitOptions {
    /// Stop after this many executed instructions
    #[arg(long, value_name = "N")]
    fuel: Option<u64>,
    /// The most bytes of values, such as 8GiB
    #[arg(long, value_name = "BYTES", default_value = "8GiB", value_parser = parse_bytes)]
    memory_limit: u64,
}

/// The limit of commands that read programs and run none.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct MemoryOptions {
    /// The most bytes that a program takes when it is read, such as 8GiB; else what the machine has
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, hide_short_help = true)]
    memory_limit: Option<u64>,
}

impl MemoryOptions {
    fn bytes(self) -> u64 {
        self.memory_limit.unwrap_or(u64::MAX)
    }
}

/// How commands read the programs that they are given.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ReadOptions {
    /// Of a file of several modules, the one of this number (from 1) or name
    #[arg(long = "module", id = "picked", value_name = "N|NAME", hide_short_help = true)]
    pick: Option<Pick>,
}

/// `--no-verify`.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct RiskOptions {
    /// Take a program that does not verify, at one's own risk: it is not compiled, and exit code 4 says that
    /// it stopped for what is wrong with it
    #[arg(long = "no-verify", id = "unverified", hide_short_help = true)]
    unverified: bool,
}

impl RiskOptions {
    pub(crate) fn at_risk(self) -> bool {
        self.unverified
    }
}

impl ReadOptions {
    pub(crate) fn at_risk(&self, risk: RiskOptions) -> Reading {
        Reading { unverified: risk.unverified, ..self.reading() }
    }

    pub(crate) fn reading(&self) -> Reading {
        Reading { pick: self.pick.clone(), unverified: false }
    }
}

/// What custom calls give that nobody here knows.
#[derive(Args, Clone, Debug)]
pub(crate) struct CustomCallOptions {
    /// What calls of a custom_call_target give: NAME=identity, NAME=zeros, NAME=FILE.npz (out0, out1, ...);
    /// may be given again
    #[arg(long, value_name = "NAME=WHAT", hide_short_help = true)]
    custom_call: Vec<Substitution>,
    /// A shared library with handlers of custom calls (XLA's FFI), which runs as this program does:
    /// LIBRARY.so, or LIBRARY.so:TARGET=SYMBOL,...; may be given again
    #[arg(long, value_name = "LIBRARY", hide_short_help = true)]
    load: Vec<Loading>,
}

impl CustomCallOptions {
    /// Whether nothing was said.
    fn is_empty(&self) -> bool {
        self.custom_call.is_empty() && self.load.is_empty()
    }

    /// Loads the libraries.
    fn load(&self) -> Result<(), Failure> {
        loaded::load(&self.load)
    }

    /// Rewrites a program accordingly, and warns of targets that it does not call.
    fn apply(&self, program: &mut Program, memory_limit: u64, ui: &Ui) -> Result<(), Failure> {
        let called = custom_calls::targets(&program.module);
        for s in self.custom_call.iter().filter(|s| !called.contains(&*s.target)) {
            let called: Vec<&str> = called.iter().map(|target| &**target).collect();
            let instead = match &called[..] {
                [] => "it has no custom call".to_owned(),
                all => format!("it calls {}", all.join(", ")),
            };
            ui.warn(format!(
                "--custom-call {}: {} calls no such target; {instead}",
                s.target, program.source.name
            ));
        }
        self.rewrite(program, memory_limit)
    }

    /// The same without a word.
    fn rewrite(&self, program: &mut Program, memory_limit: u64) -> Result<(), Failure> {
        self.load()?;
        let twice = self
            .custom_call
            .iter()
            .enumerate()
            .find(|(i, s)| self.custom_call[..*i].iter().any(|earlier| earlier.target == s.target));
        if let Some((_, s)) = twice {
            return Err(Failure::usage(format!("--custom-call {}=... is given twice", s.target)));
        }
        custom_calls::apply(&self.custom_call, &mut program.module, memory_limit)
    }
}

/// `--accumulate`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(crate) enum AccumulateOption {
    /// The exact sum, rounded once
    Exact,
    /// Term by term in the stated order, rounding at each step
    Region,
}

impl From<AccumulateOption> for hlo_interp::Accumulate {
    fn from(a: AccumulateOption) -> Self {
        match a {
            AccumulateOption::Exact => Self::Exact,
            AccumulateOption::Region => Self::Region,
        }
    }
}

/// Runs the program `hlo` with the process's arguments. Returns the exit code.
pub fn main() -> u8 {
    if let Some(code) = hlo_system::process::supervised() {
        return code;
    }
    // The stack of this thread is as small as `ulimit -s` says.
    let code = on_own_stack(parsed).unwrap_or_else(|failure| {
        Ui::new(false, false, false).failure(&failure);
        failure.exit.code()
    });
    ui::finish(code)
}

fn parsed() -> u8 {
    match Cli::try_parse() {
        Ok(cli) => run_cli(&cli).code(),
        Err(e) => {
            // Help and version are no errors, and go to standard output.
            if e.use_stderr() {
                ui::usage(&e);
            } else {
                ui::written(e.print());
            }
            u8::try_from(e.exit_code()).unwrap_or(2)
        }
    }
}

fn run_cli(cli: &Cli) -> Exit {
    let ui = Ui::new(cli.global.quiet, cli.global.verbose, cli.global.json);
    memory_budget::limit_process(cli.command.memory_limit(), ui.json);
    let result = configure(cli.global.threads, cli.global.configuration()).and_then(|()| {
        if let Some(folder) = &cli.global.cache {
            engine::programs::set_cache(folder)?;
        }
        command_of(cli, &ui)
    });
    if let Some(error) = engine::programs::cache_error() {
        ui.warn(format!("a compiled program could not be kept: {error}"));
    }
    match result {
        Ok(exit) => exit,
        Err(failure) => {
            report_failure(&ui, &failure);
            failure.exit
        }
    }
}

fn command_of(cli: &Cli, ui: &Ui) -> Result<Exit, Failure> {
    check_machine()?;
    guarded("running the command", || match &cli.command {
        Command::Run(o) => run::run(o, ui),
        Command::Verify(o) => verify::run(o, ui),
        Command::Print(o) => print::run(o, ui),
        Command::Convert(o) => convert::run(o, ui),
        Command::Viz(o) => viz::run(o, ui),
        Command::Test(o) => test::run(o, ui),
        Command::Opt(o) => opt::run(o, ui),
        Command::Bisect(o) => bisect::run(o, ui),
        Command::Bench(o) => bench::run(o, ui),
        Command::DiffTrace(o) => diff_trace::run(o, ui),
        Command::Isolate(o) => isolate::run(o, ui),
        Command::Filetest(o) => filetest::run(o, ui),
        Command::Fuzz(o) => fuzz::run(o, ui),
        Command::Reduce(o) => reduce::run(o, ui),
        Command::Report(o) => report::run(o, ui),
        Command::Exhaustive(o) => exhaustive::run(o, ui),
        Command::Prove(o) => prove::run(o, ui),
        Command::Ptx(o) => ptx::run(o, ui),
        Command::Coverage(o) => coverage::run(o, ui),
        Command::Explain(o) => explain::run(o, ui),
        Command::Completions(o) => completions::run(o, ui),
        Command::Attack(o) => attack::run(o, ui),
        #[cfg(feature = "llvm")]
        Command::Compile(o) => compile::run(o, ui),
        Command::Exec(o) => exec::run(o, ui),
        Command::Serve(o) => serve::run(o, ui),
        Command::Cache(o) => cache::run(o, ui),
        Command::ClientBench(o) => client_bench::run(o, ui),
    })
}

/// Sets up the threads that one program's run is spread over, and what programs are compiled for. Later calls
/// change nothing. Errors: [`Exit::Trap`] if there are no threads.
pub fn configure(threads: usize, configuration: Configuration) -> Result<(), Failure> {
    let threads = useful(threads);
    hlo_engines::engine::cpu::configure(threads, configuration);
    start_pool(threads)
}

/// Prints a failure: JSON on standard output where that was asked for, text on standard error.
pub(crate) fn report_failure(ui: &Ui, failure: &Failure) {
    if ui.json {
        #[derive(serde::Serialize)]
        struct Object<'a> {
            ok: bool,
            exit: u8,
            message: &'a str,
        }
        ui.object(&Object { ok: false, exit: failure.exit.code(), message: failure.message.trim_end() });
    }
    ui.failure(failure);
}

/// Reads, parses and verifies a program. Errors: why it is rejected, rendered for standard error.
pub(crate) fn load(path: &str, reading: &Reading, ui: &Ui) -> Result<Program, Failure> {
    let program =
        frontend::load_as(path, reading).map_err(|rejected| rejected.failure(ui.color_errors && !ui.json))?;
    warn(path, &program.source.text, [&program.warnings, &program.broken], ui);
    Ok(program)
}

/// The same of what was read of a file already, with its name.
pub(crate) fn load_read(file: (String, Vec<u8>), reading: &Reading, ui: &Ui) -> Result<Program, Failure> {
    let program = frontend::load_bytes(file, reading)
        .map_err(|rejected| rejected.failure(ui.color_errors && !ui.json))?;
    warn(&program.source.name, &program.source.text, [&program.warnings, &program.broken], ui);
    Ok(program)
}

/// Says on standard error what stages warned of.
pub(crate) fn warn<'a>(file: &str, text: &str, warnings: impl IntoIterator<Item = &'a Diagnostics>, ui: &Ui) {
    if ui.json || ui.quiet {
        return;
    }
    for found in warnings.into_iter().filter(|found| !found.is_empty()) {
        ui.raw_error(&render_all(found, file, text, ui.color_errors));
    }
}

/// The devices that a program runs on, and says what was inferred. Errors: wrong usage, if the program names
/// devices that these are not.
pub(crate) fn devices(
    ui: &Ui,
    module: &Module,
    replicas: Option<u32>,
    partitions: Option<u32>,
) -> Result<Devices, Failure> {
    let chosen = engine::devices::choose(module, replicas, partitions)?;
    if let Some(devices) = chosen.describe() {
        ui.detail(format!("  devices  {devices}"));
    }
    Ok(chosen.devices)
}

/// The definition of the command line, for tests and completions.
pub fn command() -> clap::Command {
    <Cli as clap::CommandFactory>::command()
}

#[cfg(test)]
mod tests {
    #[test]
    fn verify_cli() {
        super::command().debug_assert();
    }

    #[test]
    fn help_fits_a_screen() {
        let mut command = super::command();
        assert!(command.render_help().to_string().lines().count() <= 48);
        for sub in command.get_subcommands_mut().filter(|s| s.get_name() != "help") {
            let help = sub.render_help().to_string();
            assert!(help.lines().count() <= 48, "{}:\n{help}", sub.get_name());
            assert!(help.contains("Examples:"), "{} has no examples", sub.get_name());
        }
    }
}
