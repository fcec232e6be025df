//! Dumps of a program's compilation, in files with XLA's names (`xla/service/dump.cc`), so that a folder of
//! ours reads like one of XLA's, and both are read by `hlo bisect --dumps`, `hlo run DIR` and XLA's tools.
//!
//! **Invariants:** each file is complete or absent; a dump never changes what is compiled, and what cannot be
//! dumped fails the command, after all others. Constants are written in full, so that dumps can be run again.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use hlo::diag::render_all;
use hlo::print::{PrintOptions, file_name, print_module};
use hlo::{ArrayLiteral, Literal, Module};
use hlo_opt::passes::dump_names::DumpNames;
use hlo_opt::passes::{Pass, Steps};
use hlo_proto::{Contents, WriteError};
use regex_lite::Regex;

use crate::viz::{Picture, dot, page};
use hlo_engines::engine::Inputs;
use hlo_engines::protos::{self, Format};
use hlo_system::exit::{Exit, Failure};
use hlo_system::files::{describe, write_text, write_whole};

/// XLA's limit on constants in its dumps, where large ones are not wanted.
const XLA_CONSTANT_ELEMENTS: usize = 10;

/// The kinds of dumps, and their folder.
#[derive(Clone, Debug, Default)]
pub struct Dumps {
    /// The folder, which is made if it is not there.
    pub folder: PathBuf,
    /// HLO text.
    pub text: bool,
    /// `HloProto`.
    pub proto: bool,
    /// The language of Graphviz.
    pub dot: bool,
    /// Pages.
    pub html: bool,
    /// Arguments and results of runs.
    pub snapshots: bool,
    /// Constants of more than 10 elements are left out of text, as XLA does.
    pub elide: bool,
    /// Only modules whose name this matches somewhere.
    pub modules: Option<Regex>,
    /// After passes whose name this matches somewhere too.
    pub passes: Option<Regex>,
}

/// The dumps of one module.
#[derive(Debug)]
pub struct ModuleDump<'a> {
    how: &'a Dumps,
    /// `module_0000.NAME`.
    stem: String,
    /// Of dumps after passes.
    names: DumpNames,
    /// The first thing that went wrong.
    failed: Option<Failure>,
}

impl Dumps {
    /// The dumps of a run's module; `None`: none are wanted. Errors: the folder cannot be made.
    pub fn of(&self, number: usize, module: &Module) -> Result<Option<ModuleDump<'_>>, Failure> {
        if self.modules.as_ref().is_some_and(|r| !r.is_match(&module.name)) {
            return Ok(None);
        }
        std::fs::create_dir_all(&self.folder)
            .map_err(|e| Failure::usage(format!("{}: {}", self.folder.display(), describe(&e))))?;
        let stem = format!("module_{number:04}.{}", file_name(&module.name));
        Ok(Some(ModuleDump { how: self, stem, names: DumpNames::default(), failed: None }))
    }
}

impl Dumps {
    fn wants_pass(&self, name: &str) -> bool {
        self.passes.as_ref().is_some_and(|r| r.is_match(name))
    }

    /// Dumps a program, and what the compiler makes of it if that is the platform of this name.
    pub fn program(&self, number: usize, module: &Module, platform: &str) -> Result<(), Failure> {
        let Some(mut dump) = self.of(number, module)? else { return Ok(()) };
        #[cfg(feature = "llvm")]
        if let Some(options) = hlo_engines::engine::spec::cpu_options(platform)?.filter(|o| !o.scalar) {
            return compile(dump, module, &options.compiler());
        }
        let _ = platform;
        dump.before(module);
        dump.finish()
    }

    /// Dumps arguments and results of a run, if snapshots are wanted.
    pub fn run(
        &self,
        (number, run): (usize, u64),
        module: &Module,
        arguments: &[Vec<ArrayLiteral>],
        results: &[Vec<ArrayLiteral>],
        platform: &str,
    ) -> Result<(), Failure> {
        let Some(mut dump) = self.of(number, module)? else { return Ok(()) };
        dump.snapshot(run, module, arguments, results, platform);
        dump.finish()
    }
}

impl<'a> ModuleDump<'a> {
    /// Passes of these names are to run.
    #[must_use]
    pub fn of_passes(mut self, names: impl IntoIterator<Item = String>) -> ModuleDump<'a> {
        self.names = DumpNames::new(names);
        self
    }

    /// The program as it was given.
    pub fn before(&mut self, module: &Module) {
        self.module("before_optimizations", module);
    }

    /// The program as the compiler for the CPU lowers it.
    pub fn after(&mut self, module: &Module) {
        self.module("cpu_after_optimizations", module);
    }

    /// A text of the compiler's, by what stands between the module's name and the end of the file's.
    pub fn note(&mut self, name: &str, text: &str) {
        let path = self.path(name);
        self.tried(write_text(&path, text));
    }

    /// Arguments and results of a run, of one device.
    pub fn snapshot(
        &mut self,
        run: u64,
        module: &Module,
        arguments: &[Vec<ArrayLiteral>],
        results: &[Vec<ArrayLiteral>],
        platform: &str,
    ) {
        if self.how.snapshots {
            let path = self.path(&format!("snapshot.{run}.pb"));
            self.tried(write_snapshot(&path, module, arguments, results, platform));
        }
    }

    /// The program as passes alone left it.
    pub fn optimized(&mut self, module: &Module) {
        self.module("after_optimizations", module);
    }

    /// The first thing that went wrong, if anything did.
    pub fn finish(self) -> Result<(), Failure> {
        self.failed.map_or(Ok(()), Err)
    }

    /// Whether LLVM's code is wanted: where text is.
    pub fn wants_text(&self) -> bool {
        self.how.text
    }

    fn path(&self, name: &str) -> PathBuf {
        self.how.folder.join(format!("{}.{name}", self.stem))
    }

    fn tried(&mut self, written: Result<(), Failure>) {
        if let Err(failure) = written {
            self.failed.get_or_insert(failure);
        }
    }

    fn module(&mut self, name: &str, module: &Module) {
        let how = self.how;
        if how.text {
            let options = if how.elide {
                PrintOptions::LONG.eliding(XLA_CONSTANT_ELEMENTS)
            } else {
                PrintOptions::LONG
            };
            self.note(&format!("{name}.txt"), &print_module(module, &options));
        }
        if how.proto {
            let path = self.path(&format!("{name}.hlo.pb"));
            let contents = Contents { module, arguments: &[], result: None, platform: "" };
            self.tried(write_message(&path, &contents, Format::HloPb));
        }
        if how.dot || how.html {
            let picture = Picture::new(name, module, None);
            if how.dot {
                self.note(&format!("{name}.dot"), &dot::write(&picture));
            }
            if how.html {
                self.note(&format!("{name}.html"), &page::write(&picture));
            }
        }
    }
}

impl Steps for ModuleDump<'_> {
    fn before(&mut self, step: usize, pass: &dyn Pass, module: &Module) {
        let how = self.how;
        if let Some(name) = self.names.before(step, pass, |pass| how.wants_pass(pass)) {
            self.module(&name, &module.compact());
        }
    }

    fn after(&mut self, step: usize, pass: &dyn Pass, module: &Module, applications: u64) {
        let how = self.how;
        if let Some(name) = self.names.after(step, pass, applications, |pass| how.wants_pass(pass)) {
            self.module(&name, &module.compact());
        }
    }
}

#[cfg(feature = "llvm")]
impl hlo_cpu::Stages for ModuleDump<'_> {
    fn lowered(&mut self, compilation: &hlo_codegen::compilation::Compilation) {
        ModuleDump::after(self, &compilation.module().compact());
    }

    fn assigned(&mut self, module: &Module, assigned: &hlo_opt::buffers::Assigned) {
        if self.wants_text() {
            let text = hlo_opt::buffers::report(module, assigned);
            self.note("cpu_after_optimizations-buffer-assignment.txt", &text);
        }
    }

    fn wants_llvm(&self) -> [bool; 3] {
        [self.wants_text(), self.wants_text(), false]
    }

    fn llvm(&mut self, unit: usize, texts: [Option<String>; 3]) {
        // Code is compiled in units side by side; XLA's single file is the first.
        let part = if unit == 0 { String::new() } else { format!(".{unit}") };
        for (name, text) in ["ir-no-opt", "ir-with-opt"].iter().zip(texts) {
            if let Some(text) = text {
                self.note(&format!("{name}{part}.ll"), &text);
            }
        }
    }
}

/// Compiles a verified module for its dumps alone. If that fails, what was reached is dumped.
#[cfg(feature = "llvm")]
pub fn compile(dump: ModuleDump<'_>, module: &Module, options: &hlo_cpu::Options) -> Result<(), Failure> {
    use hlo_opt::passes::Pipeline;
    let pipeline = Pipeline::cpu(options.opt_level);
    let mut dump = dump.of_passes(pipeline.passes().map(|p| p.name().to_owned()).collect::<Vec<_>>());
    dump.before(module);
    let _ = hlo_cpu::compile_watched(module, options, &pipeline, &mut dump);
    dump.finish()
}

/// Writes arguments and results of a run on one device as a snapshot.
pub fn write_snapshot(
    path: &Path,
    module: &Module,
    arguments: &[Vec<ArrayLiteral>],
    results: &[Vec<ArrayLiteral>],
    platform: &str,
) -> Result<(), Failure> {
    let [results] = results else {
        let why = "a snapshot has the result of one device, and the program ran on several";
        return Err(Failure::new(Exit::Unsupported, format!("{}: {why}", path.display())));
    };
    let arguments = Inputs::new(module, arguments)?.arguments;
    let shape = &module.instr(module.root(module.entry())).shape;
    let result: Literal = hlo_execution::run::build(shape, &mut results.iter().cloned())?;
    let contents = Contents { module, arguments: &arguments, result: Some(&result), platform };
    write_message(path, &contents, Format::SnapshotPb)
}

/// Writes a message to a file, whole or not at all.
pub fn write_message(path: &Path, contents: &Contents<'_>, format: Format) -> Result<(), Failure> {
    let mut refused = None;
    let written = write_whole(path, |file| match protos::write(contents, format, file) {
        Ok(()) => file.flush(),
        Err(WriteError::Io(e)) => Err(e),
        Err(WriteError::Unsupported(found) | WriteError::Unreadable(found)) => {
            refused = Some(found);
            Err(io::Error::other("not written"))
        }
    });
    match refused {
        Some(found) => {
            let text = render_all(&found, &path.display().to_string(), "", false);
            Err(Failure::rendered(Exit::Unsupported, text))
        }
        None => written,
    }
}
