//! `hlo opt`: runs passes on a program and prints what they make of it.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use hlo::Module;
use hlo::print::{PrintOptions, print_module};
use hlo_opt::passes::{self, Fuel, Pass, Pipeline, Steps};
use serde::Serialize;

use super::dump::DumpOptions;
use super::ui::Ui;
use super::{MemoryOptions, ReadOptions, RiskOptions};
#[cfg(feature = "llvm")]
use crate::dumps;
use crate::dumps::ModuleDump;
#[cfg(feature = "llvm")]
use hlo_engines::engine::cpu::{CpuOptions, machine};
use hlo_engines::engine::spec;
use hlo_engines::variants;
use hlo_system::exit::{Exit, Failure};
use hlo_system::files::{describe, write_text};
use hlo_system::guard::at_own_risk;
use hlo_triage::report;

/// Options of `hlo opt`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// The program; `-` is standard input
    #[arg(value_name = "MODULE", required_unless_present = "list_passes")]
    module: Option<String>,
    /// Passes in order; `default` is the default pipeline; NAME=N applies one N times at most
    #[arg(long, value_name = "P,Q", default_value = "default")]
    passes: String,
    /// At most N applications of each pass of this name
    #[arg(long, value_name = "NAME=N", value_delimiter = ',')]
    passes_fuel: Vec<String>,
    /// Passes that change bits, after the others: see --list-passes
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    fast_math: Vec<String>,
    /// At most N applications of all passes together
    #[arg(long, value_name = "N")]
    fuel_passes: Option<u64>,
    /// Print the names of passes and what they do
    #[arg(long)]
    list_passes: bool,
    /// Write the program before, after each pass that changed it, and after all, named as XLA names its dumps
    #[arg(long, value_name = "DIR")]
    dump_to: Option<PathBuf>,
    /// Verify after each pass, not only at the end
    #[arg(long)]
    verify_each: bool,
    /// What the compiler for the CPU makes on its way, in the place of what the passes make
    #[cfg(feature = "llvm")]
    #[arg(long, value_enum, value_name = "STAGE", conflicts_with_all = ["passes", "passes_fuel", "fast_math", "fuel_passes", "dump_to", "verify_each"])]
    stage: Option<super::stage::Stage>,
    /// How much the compiler optimizes, 0 to 3
    #[cfg(feature = "llvm")]
    #[arg(short = 'O', long, value_name = "N", default_value_t = 2, requires = "stage",
        value_parser = clap::value_parser!(u8).range(0..=3))]
    opt_level: u8,
    /// Write the program to a file; standard output then says what was done
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    dump: DumpOptions,
    #[command(flatten)]
    pub(super) memory: MemoryOptions,
    #[command(flatten)]
    read: ReadOptions,
    #[command(flatten)]
    risk: RiskOptions,
}

const EXAMPLES: &str = "\
Examples:
  hlo opt module.hlo                            what the default pipeline makes of it
  hlo opt module.hlo --passes call-inliner,dce -o small.hlo
  hlo opt module.hlo --passes-fuel cse=3 --dump-to dumps --verify-each
  hlo opt module.hlo --stage buffer-assignment  where every value lies and when it is alive
  hlo opt module.hlo --stage asm -O3            the machine code of its kernels
  hlo opt --list-passes";

#[derive(Serialize)]
struct Row {
    pass: String,
    applications: u64,
    seconds: f64,
}

/// Takes times and writes dumps.
struct Watcher<'a> {
    since: Instant,
    rows: Vec<Row>,
    names: Vec<String>,
    dumps: Option<(&'a Path, String)>,
    written: u64,
    /// Dumps with XLA's flags.
    dump: Option<ModuleDump<'a>>,
    failed: Option<Failure>,
}

impl Watcher<'_> {
    fn write(&mut self, file: &str, module: &Module) {
        let Some((folder, name)) = &self.dumps else { return };
        let path = folder.join(format!("module_0000.{name}.{file}.txt"));
        let text = print_module(module, &PrintOptions::source(module));
        if let Err(failure) = write_text(&path, &text) {
            self.failed.get_or_insert(failure);
        }
    }
}

impl Steps for Watcher<'_> {
    fn before(&mut self, step: usize, pass: &dyn Pass, module: &Module) {
        if let Some(dump) = &mut self.dump {
            Steps::before(dump, step, pass, module);
        }
        self.since = Instant::now();
    }

    fn after(&mut self, step: usize, pass: &dyn Pass, module: &Module, applications: u64) {
        let seconds = self.since.elapsed().as_secs_f64();
        self.rows.push(Row { pass: pass.name().to_owned(), applications, seconds });
        if let Some(dump) = &mut self.dump {
            Steps::after(dump, step, pass, module, applications);
        }
        if applications > 0 {
            let next = self.names.get(step + 1).map_or("pipeline-end", String::as_str);
            let file =
                format!("{:04}.passes.after_{}.before_{}", self.written, clean(pass.name()), clean(next));
            self.written += 1;
            self.write(&file, &module.compact());
        }
    }
}

/// As XLA does it: what could trouble a file system is an underscore.
fn clean(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || "-._".contains(c) { c } else { '_' }).collect()
}

pub(crate) fn run(options: &Options, ui: &Ui) -> Result<Exit, Failure> {
    if options.list_passes {
        list(ui);
        return Ok(Exit::Ok);
    }
    let Some(path) = &options.module else { return Err(Failure::usage("a module, or --list-passes")) };
    let mut pipeline = spec::pipeline(&options.passes)?;
    if !options.fast_math.is_empty() {
        pipeline = pipeline.with_fast_math(options.fast_math.iter().map(String::as_str)).map_err(|name| {
            let known: Vec<String> = passes::FAST_MATH.iter().map(|p| p.name.to_owned()).collect();
            spec::unknown("pass of --fast-math", name, &known)
        })?;
    }
    for limit in &options.passes_fuel {
        let parsed = limit.split_once('=').and_then(|(name, n)| Some((name, n.parse().ok()?)));
        let (name, n) = parsed.ok_or_else(|| Failure::usage(format!("`{limit}`: it is NAME=N")))?;
        if !pipeline.limit(name, n) {
            return Err(Failure::usage(format!("no pass `{name}` is to run")));
        }
    }
    if options.verify_each {
        pipeline = pipeline.verified();
    }
    let program = super::load(path, &options.read.at_risk(options.risk), ui)?;
    let broken = !program.broken.is_empty();
    #[cfg(feature = "llvm")]
    if let Some(stage) = options.stage {
        if broken {
            return Err(Failure::new(Exit::Verify, "a program that does not verify is not compiled"));
        }
        let compiler = CpuOptions { opt_level: options.opt_level, ..CpuOptions::default() }.compiler();
        if let Some(dumps) = options.dump.dumps()
            && let Some(dump) = dumps.of(0, &program.module)?
        {
            dumps::compile(dump, &program.module, &compiler)?;
        }
        let text = super::stage::text(&program.module, stage, &compiler)?;
        return print_stage(path, stage, &text, options.output.as_deref(), ui);
    }
    let (module, rows) = if broken {
        at_own_risk("running passes", || optimized(options, program.module, &pipeline))?
    } else {
        optimized(options, program.module, &pipeline)?
    };
    let found = hlo::verify::verify(&module);
    if found.has_errors() && !broken {
        let why = found.iter().next().map(|d| d.message.clone()).unwrap_or_default();
        return Err(Failure::internal(format!("what the passes made does not verify: {why}")));
    }
    let text = print_module(&module, &PrintOptions::source(&module));
    if let Some(file) = &options.output {
        write_text(file, &text)?;
    }
    if ui.json {
        #[derive(Serialize)]
        struct Object<'a> {
            file: &'a str,
            ok: bool,
            passes: Vec<Row>,
            #[serde(skip_serializing_if = "Option::is_none")]
            text: Option<&'a str>,
        }
        let text = options.output.is_none().then_some(&*text);
        ui.object(&Object { file: path, ok: true, passes: rows, text });
    } else if options.output.is_none() {
        ui.raw(&text);
    } else {
        for row in rows.iter().filter(|r| r.applications > 0 || ui.verbose) {
            let time = report::time(Duration::from_secs_f64(row.seconds));
            ui.detail(format!("  {:28} {:8} applications  {time:>10}", row.pass, row.applications));
        }
        let total: u64 = rows.iter().map(|r| r.applications).sum();
        ui.line(format!("{path}: {total} applications of {} passes", rows.len()));
    }
    Ok(Exit::Ok)
}

/// Prints what the compiler made, or writes it to a file.
#[cfg(feature = "llvm")]
fn print_stage(
    path: &str,
    stage: super::stage::Stage,
    text: &str,
    output: Option<&Path>,
    ui: &Ui,
) -> Result<Exit, Failure> {
    #[derive(Serialize)]
    struct Object<'a> {
        file: &'a str,
        ok: bool,
        stage: super::stage::Stage,
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<&'a str>,
    }
    if let Some(file) = output {
        write_text(file, text)?;
    }
    let text = output.is_none().then_some(text);
    if ui.json {
        ui.object(&Object { file: path, ok: true, stage, text });
    } else {
        ui.raw(text.unwrap_or_default());
    }
    Ok(Exit::Ok)
}

/// Runs the passes. Errors: what one made does not verify, a dump cannot be written.
fn optimized(
    options: &Options,
    mut module: Module,
    pipeline: &Pipeline,
) -> Result<(Module, Vec<Row>), Failure> {
    let mut dumps = None;
    if let Some(folder) = &options.dump_to {
        std::fs::create_dir_all(folder)
            .map_err(|e| Failure::usage(format!("{}: {}", folder.display(), describe(&e))))?;
        dumps = Some((&**folder, clean(&module.name)));
    }
    let names: Vec<String> = pipeline.passes().map(|p| p.name().to_owned()).collect();
    let wanted = options.dump.dumps();
    let dump = wanted.as_ref().map(|d| d.of(0, &module)).transpose()?.flatten();
    let mut watcher = Watcher {
        since: Instant::now(),
        rows: Vec::new(),
        dump: dump.map(|d| d.of_passes(names.iter().cloned())),
        names,
        dumps,
        written: 0,
        failed: None,
    };
    watcher.write("before_optimizations", &module);
    if let Some(dump) = &mut watcher.dump {
        dump.before(&module);
    }
    let mut fuel = options.fuel_passes.map_or(Fuel::UNLIMITED, Fuel::new);
    let configuration = machine().configuration;
    let ran = configuration.with(|| pipeline.run_watched(&mut module, &mut fuel, &mut watcher));
    ran.map_err(|broken| {
        let why = broken.diagnostics.into_iter().next().map(|d| d.message.clone()).unwrap_or_default();
        Failure::internal(format!("what pass {} `{}` made does not verify: {why}", broken.step, broken.pass))
    })?;
    let module = module.compact();
    watcher.write("after_optimizations", &module);
    if let Some(mut dump) = watcher.dump.take() {
        dump.optimized(&module);
        dump.finish()?;
    }
    match watcher.failed {
        Some(failure) => Err(failure),
        None => Ok((module, watcher.rows)),
    }
}

fn list(ui: &Ui) {
    #[derive(Serialize)]
    struct Object<'a> {
        pass: &'a str,
        doc: &'a str,
        default: bool,
        fast_math: bool,
    }
    let bits = passes::DECLARED.iter().map(|p| (p, false));
    for (pass, fast_math) in bits.chain(passes::FAST_MATH.iter().map(|p| (p, true))) {
        let default = passes::DEFAULT.contains(&pass.name);
        if ui.json {
            ui.object(&Object { pass: pass.name, doc: pass.doc, default, fast_math });
        } else {
            let note = match (fast_math, default) {
                (true, _) => " (--fast-math: changes bits)",
                (false, true) => "",
                (false, false) => " (not in default)",
            };
            ui.line(format!("{:34} {}{note}", pass.name, pass.doc));
        }
    }
    for variant in variants::all() {
        let (name, doc) = (format!("variant:{}", variant.pass.name()), variant.pass.doc().to_owned());
        if ui.json {
            ui.object(&Object { pass: &name, doc: &doc, default: false, fast_math: false });
        } else {
            ui.line(format!("{name:34} {doc}"));
        }
    }
}
