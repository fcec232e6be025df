//! Dumps of the programs that are compiled, where XLA's options ask for them (`XLA_FLAGS=--xla_dump_to=DIR`,
//! `compiler_options` of `jax.jit`): files of XLA's names and formats, as `hlo compile --xla_dump_to` writes
//! them.
//!
//! **Invariants:** a file is complete or absent; a dump changes nothing of what is compiled; a dump that
//! cannot be written is a line of the log, and its program is compiled all the same.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use hlo::Module;
use hlo::print::{PrintOptions, file_name, print_module};
use regex_lite::Regex;

use crate::error::{Failure, Result};
use crate::log;
use crate::options::DumpOptions;

/// Programs that were dumped by this process.
static NUMBER: AtomicU32 = AtomicU32::new(0);

/// The dumps of a program.
#[derive(Debug)]
pub(crate) struct Dump {
    folder: PathBuf,
    /// `module_0000.NAME`.
    stem: String,
    text: bool,
    proto: bool,
    #[cfg_attr(not(feature = "llvm"), expect(dead_code, reason = "only a compiler has passes"))]
    passes: Option<Regex>,
}

/// A regular expression; an empty one asks for nothing.
fn expression(text: &str, option: &str) -> Result<Option<Regex>> {
    if text.is_empty() {
        return Ok(None);
    }
    let broken = |error| Failure::invalid(format!("the option {option}, {text}: {error}"));
    Regex::new(text).map(Some).map_err(broken)
}

impl Dump {
    /// The dumps of a program, if it is to be dumped.
    ///
    /// # Errors
    /// An expression among the options is none.
    pub(crate) fn of(options: &DumpOptions, module: &Module) -> Result<Option<Self>> {
        let modules = expression(&options.modules, "xla_dump_hlo_module_re")?;
        let passes = expression(&options.passes, "xla_dump_hlo_pass_re")?;
        if options.to.is_empty() || modules.is_some_and(|r| !r.is_match(&module.name)) {
            return Ok(None);
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Ok(Some(Self {
            folder: PathBuf::from(&options.to),
            stem: format!("module_{number:04}.{}", file_name(&module.name)),
            text: options.text || !options.proto,
            proto: options.proto,
            passes,
        }))
    }

    /// Dumps the program as it is given, and as the compiler makes it. `loaded`: it was compiled before, and
    /// what was given is not known.
    pub(crate) fn write(self, module: &Module, is_interpreted: bool, loaded: bool) {
        if !loaded {
            self.module("before_optimizations", module);
        }
        if !is_interpreted {
            self.compiled(module);
        }
    }

    /// Compiles the program once more, watched.
    #[cfg(feature = "llvm")]
    fn compiled(&self, module: &Module) {
        use hlo_opt::passes::Pipeline;
        use hlo_opt::passes::dump_names::DumpNames;
        let asked = crate::executable::engine_options();
        let options = hlo_cpu::Options {
            opt_level: asked.opt_level,
            fallback: asked.fallback,
            ..hlo_cpu::Options::default()
        };
        let pipeline = Pipeline::cpu(options.opt_level);
        let names = DumpNames::new(pipeline.passes().map(|pass| pass.name().to_owned()));
        let mut stages = Stages { names, dump: self };
        // That it does not compile is said by who compiles it to be run; what was reached is dumped.
        let _ = hlo_cpu::compile_watched(module, &options, &pipeline, &mut stages);
    }

    #[cfg(not(feature = "llvm"))]
    fn compiled(&self, _module: &Module) {}

    #[cfg(feature = "llvm")]
    fn wants_pass(&self, name: &str) -> bool {
        self.passes.as_ref().is_some_and(|r| r.is_match(name))
    }

    fn module(&self, stage: &str, module: &Module) {
        if self.text {
            let text = print_module(module, &PrintOptions::LONG);
            self.file(&format!("{stage}.txt"), text.as_bytes());
        }
        if self.proto {
            match hlo_pjrt_abi::program::write_as(module, hlo_proto::Kind::Proto) {
                Ok(message) => self.file(&format!("{stage}.hlo.pb"), &message),
                Err(error) => log::line(&format!("{}.{stage}: {}", self.stem, error.message)),
            }
        }
    }

    fn file(&self, name: &str, bytes: &[u8]) {
        let path = self.folder.join(format!("{}.{name}", self.stem));
        if let Err(error) = whole(&self.folder, &path, bytes) {
            log::line(&format!("{}: {error}", path.display()));
        }
    }
}

/// Writes a file, whole or not at all.
fn whole(folder: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let mut draft = path.as_os_str().to_owned();
    draft.push(format!(".{}.tmp", std::process::id()));
    fs::write(&draft, bytes)?;
    fs::rename(&draft, path)
}

/// Watches a compilation.
#[cfg(feature = "llvm")]
struct Stages<'a> {
    dump: &'a Dump,
    names: hlo_opt::passes::dump_names::DumpNames,
}

#[cfg(feature = "llvm")]
impl hlo_opt::passes::Steps for Stages<'_> {
    fn before(&mut self, step: usize, pass: &dyn hlo_opt::passes::Pass, module: &Module) {
        if let Some(name) = self.names.before(step, pass, |pass| self.dump.wants_pass(pass)) {
            self.dump.module(&name, &module.compact());
        }
    }

    fn after(&mut self, step: usize, pass: &dyn hlo_opt::passes::Pass, module: &Module, applications: u64) {
        if let Some(name) = self.names.after(step, pass, applications, |pass| self.dump.wants_pass(pass)) {
            self.dump.module(&name, &module.compact());
        }
    }
}

#[cfg(feature = "llvm")]
impl hlo_cpu::Stages for Stages<'_> {
    fn lowered(&mut self, compilation: &hlo_codegen::compilation::Compilation) {
        self.dump.module("cpu_after_optimizations", &compilation.module().compact());
    }
}
