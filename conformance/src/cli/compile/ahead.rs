//! `hlo compile --out-object`: an object to link with, its header, its Rust module, its metadata.
//!
//! **Invariant:** everything is made before anything is written, and when a file cannot be written, those
//! that were made before it in the same call are taken away again.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use hlo_client::VerifiedModule;
use hlo_client::ahead::{self, Ahead, Aliasing, Array, Class, Config, Form, Source};
use hlo_proto::{Contents, WriteError};
use serde::Serialize;

use super::super::ui::Ui;
use super::Options;
use hlo_engines::engine::cpu::machine;
use hlo_engines::frontend::Program;
use hlo_engines::protos::{self, Format};
use hlo_system::exit::{Exit, Failure};
use hlo_system::files::{describe, read_beside, write_whole};
use hlo_triage::report;

/// Checks that are put into an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum Sanitizer {
    /// AddressSanitizer: link with `-fsanitize=address`.
    Address,
}

/// What an object is made of, and where it goes (docs/ahead-of-time.md).
#[derive(Args, Debug, Default)]
pub(super) struct AheadOptions {
    /// Write an object (ELF) to link with C, C++ and Rust programs, instead of a file for `hlo exec`
    #[arg(long, visible_alias = "out-function-object", value_name = "FILE", help_heading = "Objects")]
    pub(super) out_object: Option<PathBuf>,
    /// Write its header, for C and, with --cpp-class, C++
    #[arg(long, value_name = "FILE", help_heading = "Objects")]
    pub(super) out_header: Option<PathBuf>,
    /// Write its module for Rust
    #[arg(long, value_name = "FILE", help_heading = "Objects", hide_short_help = true)]
    pub(super) out_rust: Option<PathBuf>,
    /// Write an object with what is known of it (JSON), by the symbols ENTRY_metadata and ENTRY_metadata_size
    #[arg(long, value_name = "FILE", help_heading = "Objects", hide_short_help = true)]
    pub(super) out_metadata_object: Option<PathBuf>,
    /// Write the program as HloSnapshot
    #[arg(long, value_name = "FILE", help_heading = "Objects", hide_short_help = true)]
    pub(super) out_session_module: Option<PathBuf>,
    /// Names of arguments and results: tf2xla.Config as text, or TOML (by the name .toml)
    #[arg(long, value_name = "FILE", help_heading = "Objects")]
    pub(super) config: Option<PathBuf>,
    /// What the object's symbols begin with
    #[arg(long, value_name = "NAME", default_value = "entry", help_heading = "Objects")]
    pub(super) entry_point: String,
    /// The class of the header, with namespaces: `ns::Class`
    #[arg(long, value_name = "CLASS", help_heading = "Objects")]
    pub(super) cpp_class: Option<String>,
    /// What the object is for, such as `aarch64-linux-gnu`; this machine if not given
    #[arg(long, value_name = "TRIPLE", default_value = "", help_heading = "Objects", hide_short_help = true)]
    pub(super) target_triple: String,
    /// Count the cycles of each step
    #[arg(
        long,
        visible_alias = "gen-hlo-profile-printer-data",
        help_heading = "Objects",
        hide_short_help = true
    )]
    pub(super) profile: bool,
    /// Put debugging information into the object that points into the program's text
    #[arg(long, help_heading = "Objects", hide_short_help = true)]
    pub(super) debug_info: bool,
    /// Put debugging information into a file of its own (split DWARF), which debuggers find by its path
    #[arg(
        long,
        value_name = "FILE.dwo",
        requires = "out_object",
        help_heading = "Objects",
        hide_short_help = true
    )]
    pub(super) split_dwarf: Option<PathBuf>,
    /// Put checks into the object
    #[arg(long, value_name = "WHICH", value_enum, help_heading = "Objects", hide_short_help = true)]
    pub(super) sanitize: Option<Sanitizer>,
    /// tfcompile's: classes always have names by index
    #[arg(long, hide = true)]
    pub(super) gen_name_to_index: bool,
    /// tfcompile's: classes always have the program's shape
    #[arg(long, hide = true)]
    pub(super) gen_program_shape: bool,
}

#[derive(Serialize)]
struct ArrayObject<'a> {
    name: &'a str,
    element_type: &'a str,
    dims: &'a [i64],
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    argument: Option<u32>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    overwritten: bool,
}

#[derive(Serialize)]
struct Metadata<'a> {
    entry_point: &'a str,
    target: &'a str,
    triple: &'a str,
    program_shape: &'a str,
    pointer_bytes: u32,
    arguments: Vec<ArrayObject<'a>>,
    results: Vec<ArrayObject<'a>>,
    temporary_bytes: u64,
    constant_bytes: u64,
    steps: Vec<[&'a str; 2]>,
    library_calls: &'a [String],
    needs: &'a [String],
}

#[derive(Serialize)]
struct Said<'a> {
    file: &'a str,
    ok: bool,
    outputs: Vec<String>,
    #[serde(flatten)]
    metadata: Metadata<'a>,
}

impl AheadOptions {
    /// Whether an object is asked for.
    pub(super) fn wanted(&self) -> bool {
        let outputs = [&self.out_object, &self.out_header, &self.out_rust, &self.out_metadata_object];
        outputs.into_iter().chain([&self.out_session_module]).any(Option::is_some)
    }

    /// Options that say something of objects alone. Errors: there is none that asks for one.
    pub(super) fn unwanted(&self) -> Result<(), Failure> {
        let said = [
            ("--config", self.config.is_some()),
            ("--cpp-class", self.cpp_class.is_some()),
            ("--target-triple", !self.target_triple.is_empty()),
            ("--profile", self.profile),
            ("--debug-info", self.debug_info),
            ("--split-dwarf", self.split_dwarf.is_some()),
            ("--sanitize", self.sanitize.is_some()),
        ];
        match said.into_iter().find(|said| said.1) {
            Some((option, _)) => Err(Failure::usage(format!("{option} is for objects: say --out-object"))),
            None => Ok(()),
        }
    }
}

/// Compiles a program to an object, and writes what is asked for.
pub(super) fn run(options: &Options, file: &str, program: Program, ui: &Ui) -> Result<Exit, Failure> {
    let wants = &options.ahead;
    if options.fallback {
        return Err(Failure::usage("--fallback is the interpreter, which an object does not have"));
    }
    let class = wants.cpp_class.as_deref().map(Class::parse).transpose()?;
    let config = match &wants.config {
        Some(path) => config(path)?,
        None => Config::default(),
    };
    let split = wants.split_dwarf.as_deref().map(dwarf_name).transpose()?;
    let debug = match wants.debug_info || split.is_some() {
        true => Some(Source { file: file.to_owned(), text: debug_text(file, &program)?, split }),
        false => None,
    };
    let to = ahead::Options {
        entry: wants.entry_point.clone(),
        class,
        opt_level: options.opt_level,
        triple: wants.target_triple.clone(),
        cpu: options.target_cpu.clone().unwrap_or_default(),
        features: options.target_features.clone(),
        profile: wants.profile,
        sanitize: wants.sanitize == Some(Sanitizer::Address),
        debug,
    };
    let session = match wants.out_session_module {
        Some(_) => Some(session_module(&program)?),
        None => None,
    };
    let module = VerifiedModule::new(program.module)?;
    let made = machine()
        .configuration
        .with(|| ahead::compile(&module, &config, &to))
        .map_err(|error| of_config(wants.config.as_deref(), error))?;
    let json = serde_json::to_vec(&metadata(&made, &to.entry));
    let json = json.map_err(|e| Failure::internal(e.to_string()))?;
    let mut outputs: Vec<(&Path, Vec<u8>)> = Vec::new();
    let output = |path: &Option<PathBuf>, bytes: &dyn Fn() -> Result<Vec<u8>, Failure>| {
        path.is_some().then(bytes).transpose()
    };
    let object = output(&wants.out_object, &|| Ok(made.object.bytes.clone()))?;
    let dwarf = output(&wants.split_dwarf, &|| {
        made.object.dwarf.clone().ok_or_else(|| Failure::internal("the object has no DWARF file"))
    })?;
    let header = output(&wants.out_header, &|| Ok(made.header().into_bytes()))?;
    let rust = output(&wants.out_rust, &|| Ok(made.rust().into_bytes()))?;
    let data = output(&wants.out_metadata_object, &|| {
        let size = (json.len() as u64).to_le_bytes().to_vec();
        let name = |what: &str| format!("{}_{what}", to.entry);
        let symbols = [(name("metadata"), json.clone()), (name("metadata_size"), size)];
        Ok(ahead::data_object(&to, &symbols)?)
    })?;
    for (path, bytes) in [
        (&wants.out_object, object),
        (&wants.split_dwarf, dwarf),
        (&wants.out_header, header),
        (&wants.out_rust, rust),
        (&wants.out_metadata_object, data),
        (&wants.out_session_module, session),
    ] {
        if let (Some(path), Some(bytes)) = (path, bytes) {
            if outputs.iter().any(|other| other.0 == path) {
                return Err(Failure::usage(format!("{}: two outputs of one name", path.display())));
            }
            outputs.push((path, bytes));
        }
    }
    write_all(&outputs)?;
    if ui.json {
        let outputs = outputs.iter().map(|o| o.0.display().to_string()).collect();
        ui.object(&Said { file, ok: true, outputs, metadata: metadata(&made, &to.entry) });
        return Ok(Exit::Ok);
    }
    for (path, bytes) in &outputs {
        ui.line(format!("{}: {}", path.display(), report::bytes(bytes.len() as u64)));
    }
    let calls = made.object.library_calls.len();
    let library = if calls == 0 { String::new() } else { format!(", {calls} calls of the run-time library") };
    ui.line(format!(
        "{} for {}: constants {}, temporaries {}{library}",
        to.entry,
        made.object.target,
        report::bytes(made.object.constant_bytes),
        report::bytes(made.object.temporary_bytes),
    ));
    Ok(Exit::Ok)
}

/// The name of an object's DWARF file: an absolute path, whatever folder the compiler ran in.
fn dwarf_name(path: &Path) -> Result<String, Failure> {
    let name = path.display();
    let absolute =
        std::path::absolute(path).map_err(|e| Failure::usage(format!("{name}: {}", describe(&e))))?;
    match absolute.to_str() {
        Some(text) => Ok(text.to_owned()),
        None => Err(Failure::usage(format!("--split-dwarf: {name}: objects have names in UTF-8"))),
    }
}

/// The text that spans refer to: only that of a file of HLO text and nothing else.
fn debug_text(file: &str, program: &Program) -> Result<String, Failure> {
    match program.own_text() {
        Some(text) if file != "-" => Ok(text.to_owned()),
        Some(_) | None => Err(Failure::usage(format!("--debug-info: {file} is no file of HLO text"))),
    }
}

fn config(path: &Path) -> Result<Config, Failure> {
    let name = path.display();
    let text =
        read_beside(path).map_err(|e| Failure::usage(format!("{name}: cannot be read: {}", describe(&e))))?;
    let form = if path.extension().is_some_and(|e| e == "toml") { Form::Toml } else { Form::Pbtxt };
    Config::parse(&text, form).map_err(|e| Failure::usage(format!("{name}: {e}")))
}

/// An error, with the name of the configuration if it is about that.
fn of_config(path: Option<&Path>, error: hlo_client::Error) -> Failure {
    match path.filter(|_| error.is_caused_by::<ahead::ConfigError>()) {
        Some(path) => Failure::usage(format!("{}: {error}", path.display())),
        None => error.into(),
    }
}

/// The program as `HloSnapshot`.
fn session_module(program: &Program) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let contents = Contents::of(&program.module);
    match protos::write(&contents, Format::SnapshotPb, &mut bytes) {
        Ok(()) => Ok(bytes),
        Err(WriteError::Unsupported(found) | WriteError::Unreadable(found)) => {
            let first = found.iter().next().map(|d| d.message.clone()).unwrap_or_default();
            Err(Failure::new(Exit::Unsupported, format!("--out-session-module: {first}")))
        }
        Err(WriteError::Io(e)) => Err(Failure::internal(e.to_string())),
    }
}

fn metadata<'a>(made: &'a Ahead, entry: &'a str) -> Metadata<'a> {
    let array = |array: &'a Array| ArrayObject {
        name: &array.name,
        element_type: array.element_type.name(),
        dims: &array.dims,
        bytes: array.bytes,
        argument: match array.aliasing {
            Aliasing::Argument(n) => Some(n),
            Aliasing::Own | Aliasing::Read | Aliasing::Overwritten => None,
        },
        overwritten: array.aliasing == Aliasing::Overwritten,
    };
    let object = &made.object;
    Metadata {
        entry_point: entry,
        target: &object.target,
        triple: &object.triple,
        program_shape: &made.signature,
        pointer_bytes: 8,
        arguments: object.arguments.iter().map(array).collect(),
        results: object.results.iter().map(array).collect(),
        temporary_bytes: object.temporary_bytes,
        constant_bytes: object.constant_bytes,
        steps: object.steps.iter().map(|step| [&*step.name, step.kind]).collect(),
        library_calls: &object.library_calls,
        needs: &object.needs,
    }
}

/// Writes files: all, or none that was not there before.
fn write_all(outputs: &[(&Path, Vec<u8>)]) -> Result<(), Failure> {
    let mut new: Vec<&Path> = Vec::new();
    for (path, bytes) in outputs {
        let there = path.exists();
        if let Err(failure) = write_whole(path, |file| file.write_all(bytes)) {
            for path in new {
                // That it is gone already is as well.
                let _ = fs::remove_file(path);
            }
            return Err(failure);
        }
        if !there {
            new.push(path);
        }
    }
    Ok(())
}
