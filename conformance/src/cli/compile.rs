//! `hlo compile`: compiles a program to a file that `hlo exec` runs on a like machine, without LLVM.

#[cfg(feature = "llvm")]
mod ahead;

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use hlo_client::{Client, ClientOptions, CompileOptions, VerifiedModule, artifact, gpu_artifact};
use hlo_gpu::arch::Arch;
use serde::Serialize;

use super::dump::DumpOptions;
use super::ui::Ui;
use super::{LimitOptions, ReadOptions};
use crate::dumps;
use crate::folder;
use hlo_engines::engine;
use hlo_engines::frontend::load_as;
use hlo_system::exit::{Exit, Failure};
use hlo_system::files::write_whole;
use hlo_system::loaded::{self, Loading};
use hlo_triage::report;

const NATIVE: &str = "native";

/// Options of `hlo compile`.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  hlo compile module.hlo                        writes module.hloexe\n  hlo compile module.hlo --target-cpu x86-64-v3 -o module.hloexe\n  hlo exec module.hloexe --inputs in.npz\n  hlo compile module.hlo --target sm_90         for a GPU, which need not be there\n  hlo compile module.hlo --config names.toml --entry-point model --cpp-class ns::Model --out-object model.o --out-header model.h"
)]
pub(crate) struct Options {
    /// The program; `-` is standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<String>,
    /// Compile the programs of whole folders into the folder that `--cache` names, for `--platform cuda` on
    /// another machine
    #[arg(long, requires = "target", conflicts_with = "output")]
    into_cache: bool,
    /// Where the compiled program goes; beside the program if not given
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// How much to optimize
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(0..=3))]
    opt_level: u8,
    /// The processor: `native`, or on x86-64 `x86-64-v3`, `x86-64-v4`. Of objects the one of the fewest
    /// features unless said otherwise; of other programs `native`
    #[arg(long, value_name = "CPU")]
    target_cpu: Option<String>,
    /// A GPU instead of the processor: `sm_75`, `sm_80`, `sm_90`, `sm_100`, `sm_120`
    #[arg(long, value_name = "ARCH", conflicts_with_all = ["target_features", "fallback"])]
    target: Option<Arch>,
    /// Features of the processor, added and removed: `+avx512f,-avx512bf16`
    #[arg(long, value_name = "LIST", default_value = "", allow_hyphen_values = true)]
    target_features: String,
    /// A shared library with handlers of custom calls (XLA's FFI), which runs as this program does:
    /// LIBRARY.so, or LIBRARY.so:TARGET=SYMBOL,...; `hlo exec` needs it again; may be given again
    #[arg(long, value_name = "LIBRARY", conflicts_with = "target")]
    load: Vec<Loading>,
    /// The interpreter executes what is not compiled
    #[arg(long)]
    fallback: bool,
    #[command(flatten)]
    pub(super) limits: LimitOptions,
    #[cfg(feature = "llvm")]
    #[command(flatten)]
    ahead: ahead::AheadOptions,
    #[command(flatten)]
    dump: DumpOptions,
    #[command(flatten)]
    read: ReadOptions,
}

#[derive(Serialize)]
struct Object<'a> {
    file: &'a str,
    ok: bool,
    output: String,
    bytes: usize,
    code_bytes: u64,
    constant_bytes: u64,
    target: &'a str,
}

pub(crate) fn run(options: &Options, ui: &Ui) -> Result<Exit, Failure> {
    if options.into_cache {
        return into_cache(options, ui);
    }
    let [file] = &options.files[..] else {
        return Err(Failure::usage("one program is compiled to a file: several go --into-cache"));
    };
    #[cfg(feature = "llvm")]
    if options.ahead.wanted() {
        if options.output.is_some() || options.target.is_some() {
            return Err(Failure::usage(
                "--out-object and the like say where an object goes: not --output or --target",
            ));
        }
        let program =
            load_as(file, &options.read.reading()).map_err(|rejected| rejected.failure(ui.color))?;
        return ahead::run(options, file, program, ui);
    }
    #[cfg(feature = "llvm")]
    options.ahead.unwanted()?;
    let output = match &options.output {
        Some(output) => output.clone(),
        None if file == "-" => {
            return Err(Failure::usage("standard input has no name to write beside: say --output"));
        }
        None => Path::new(file).with_extension("hloexe"),
    };
    let program = load_as(file, &options.read.reading()).map_err(|rejected| rejected.failure(ui.color))?;
    if let Some(arch) = options.target {
        let compiled = engine::gpu::compiled(&program.module, arch, options.opt_level);
        let compiled = compiled.map_err(|e| engine::gpu::failure(&e))?;
        let bytes = gpu_artifact::write(&compiled, &program.module)?;
        let info = gpu_artifact::info(&bytes)?;
        let code = (info.code_bytes, info.constant_bytes);
        return write(options, ui, &output, &bytes, code, info.arch.name());
    }
    if let Some(dumps) = options.dump.dumps()
        && let Some(dump) = dumps.of(0, &program.module)?
    {
        let to = hlo_cpu::Options {
            opt_level: options.opt_level,
            fallback: options.fallback,
            cpu: options.target_cpu.clone().unwrap_or_else(|| NATIVE.to_owned()),
            features: options.target_features.clone(),
            configuration: engine::cpu::machine().configuration,
            ..hlo_cpu::Options::default()
        };
        dumps::compile(dump, &program.module, &to)?;
    }
    loaded::load(&options.load)?;
    let client = Client::cpu(ClientOptions {
        custom_calls: loaded::custom_calls(),
        configuration: engine::cpu::machine().configuration,
        ..ClientOptions::default()
    })?;
    let to = CompileOptions {
        opt_level: options.opt_level,
        fallback: options.fallback,
        cpu: options.target_cpu.clone().unwrap_or_else(|| NATIVE.to_owned()),
        features: options.target_features.clone(),
        ..CompileOptions::default()
    };
    let bytes = client.compile_artifact(&VerifiedModule::new(program.module)?, &to)?;
    let info = artifact::info(&bytes)?;
    write(options, ui, &output, &bytes, (info.code_bytes, info.constant_bytes), &info.target)
}

/// Compiles the programs at and below folders into the cache.
fn into_cache(options: &Options, ui: &Ui) -> Result<Exit, Failure> {
    let Some(arch) = options.target else { return Err(Failure::usage("--into-cache needs --target")) };
    if engine::programs::cache().is_none() {
        return Err(Failure::usage("--into-cache needs a folder: --cache DIR"));
    }
    let folder::Files { cases, programs, .. } = folder::files(&options.files)?;
    let of_case = |case: PathBuf| folder::Listed::of_case(&case).map(|listed| listed.program.path);
    let paths: Vec<PathBuf> = cases.into_iter().filter_map(of_case).chain(programs).collect();
    let mut refused = 0;
    for path in &paths {
        let name = path.display().to_string();
        // What is no program is none on the other machine either.
        let Ok(program) = load_as(&name, &options.read.reading()) else { continue };
        if let Err(error) = engine::gpu::compiled(&program.module, arch, options.opt_level) {
            refused += 1;
            ui.line(format!("{name}: {}", engine::gpu::diagnostic(&error).message));
        }
    }
    ui.line(format!("{} of {} programs compiled for {arch}", paths.len() - refused, paths.len()));
    Ok(Exit::Ok)
}

/// Writes a compiled program, of that many bytes of code and of constants, and says so.
fn write(
    options: &Options,
    ui: &Ui,
    output: &Path,
    bytes: &[u8],
    (code_bytes, constant_bytes): (u64, u64),
    target: &str,
) -> Result<Exit, Failure> {
    write_whole(output, |file| file.write_all(bytes))?;
    if ui.json {
        ui.object(&Object {
            file: &options.files[0],
            ok: true,
            output: output.display().to_string(),
            bytes: bytes.len(),
            code_bytes,
            constant_bytes,
            target,
        });
    } else {
        ui.line(format!(
            "{}: {} for {target} (code {}, constants {})",
            output.display(),
            report::bytes(bytes.len() as u64),
            report::bytes(code_bytes),
            report::bytes(constant_bytes),
        ));
    }
    Ok(Exit::Ok)
}
