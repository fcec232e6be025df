//! Compilation ahead of time: a program as an object, with a header for C and C++ and a module for Rust
//! (docs/ahead-of-time.md).
//!
//! [`config`] is what a person says of names, [`names`] what that means in a program, [`header`] and [`rust`]
//! the texts. **Invariants:** all of it is made before anybody writes a file, and the bytes of all depend on
//! program, configuration and options alone; the operations that the run-time library makes of an object are
//! those that the compiler put into it.

pub mod config;
pub mod header;
pub mod names;
pub mod rust;

use hlo::{InstrId, Module};
use hlo_ahead::compile;
use hlo_codegen::CompileError;

pub use config::{Config, ConfigError, Form};
pub use hlo_ahead::compile::{Aliasing, Array, Object, Source};
pub use names::Names;

use crate::error::{Code, Error};
use crate::program::VerifiedModule;

/// A class of C++, with its namespaces.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Class {
    /// The namespaces, outermost first.
    pub namespaces: Vec<String>,
    /// Its own name.
    pub name: String,
}

impl Class {
    /// Of `ns::Class`.
    ///
    /// # Errors
    /// It is no such name.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let parts: Vec<&str> = text.strip_prefix("::").unwrap_or(text).split("::").collect();
        let Some((name, namespaces)) =
            parts.split_last().filter(|_| parts.iter().all(|p| names::is_identifier(p)))
        else {
            let message = format!("\"{text}\" is no name of a class: namespace::Class");
            return Err(Error::new(Code::InvalidArgument, message));
        };
        Ok(Self {
            namespaces: namespaces.iter().map(ToString::to_string).collect(),
            name: (*name).to_owned(),
        })
    }
}

/// How to compile.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// What symbols begin with.
    pub entry: String,
    /// The class of the header, if it is to have one.
    pub class: Option<Class>,
    /// 0 to 3.
    pub opt_level: u8,
    /// The triple; empty: this machine's.
    pub triple: String,
    /// The processor; empty: the one of the least features.
    pub cpu: String,
    /// Its features, added and taken away.
    pub features: String,
    /// Whether cycles are counted.
    pub profile: bool,
    /// Whether accesses are checked by AddressSanitizer.
    pub sanitize: bool,
    /// The text that debugging information points into.
    pub debug: Option<Source>,
}

/// What was compiled.
#[derive(Clone, Debug)]
pub struct Ahead {
    /// The object, and its tables.
    pub object: Object,
    /// The names of its arguments and results.
    pub names: Names,
    /// The program's parameters and result, as text.
    pub signature: String,
    options: Options,
}

impl Ahead {
    /// The header for C and C++.
    pub fn header(&self) -> String {
        let Options { entry, class, .. } = &self.options;
        header::header(entry, &self.object, &self.names, class.as_ref(), &self.signature)
    }

    /// The module for Rust.
    pub fn rust(&self) -> String {
        let Options { entry, class, .. } = &self.options;
        rust::module(entry, &self.object, &self.names, class.as_ref(), &self.signature)
    }
}

/// An object of data alone, for the same target: symbols and their bytes.
///
/// # Errors
/// Targets that are not known.
pub fn data_object(options: &Options, symbols: &[(String, Vec<u8>)]) -> Result<Vec<u8>, Error> {
    let to = target(options, &Names::default());
    compile::data_object(&to, symbols).map_err(failed)
}

fn target(options: &Options, names: &Names) -> compile::Options {
    let shown = |leaves: &[names::Leaf]| leaves.iter().map(|leaf| leaf.shown().to_owned()).collect();
    compile::Options {
        entry: options.entry.clone(),
        arguments: shown(&names.arguments),
        results: shown(&names.results),
        opt_level: options.opt_level,
        triple: options.triple.clone(),
        cpu: options.cpu.clone(),
        features: options.features.clone(),
        profile: options.profile,
        sanitize: options.sanitize,
        debug: options.debug.clone(),
    }
}

fn failed(error: CompileError) -> Error {
    let code = match &error {
        CompileError::Unsupported(_) => Code::Unimplemented,
        CompileError::Target(_) => Code::InvalidArgument,
        CompileError::Defect(_) => Code::Internal,
    };
    Error::new(code, error.diagnostic().message)
}

/// Compiles a program.
///
/// # Errors
/// [`Code::InvalidArgument`] of a name that is none, a target that is not known and a configuration that
/// contradicts the program (its [`ConfigError`] is the source); [`Code::Unimplemented`] of what is not
/// supported, by name.
pub fn compile(program: &VerifiedModule, config: &Config, options: &Options) -> Result<Ahead, Error> {
    if !names::is_identifier(&options.entry) {
        let message = format!("\"{}\" is no entry point: an identifier of C", options.entry);
        return Err(Error::new(Code::InvalidArgument, message));
    }
    let module = program.module();
    let names = Names::of(module, config)
        .map_err(|e| Error::new(Code::InvalidArgument, e.to_string()).caused_by(e))?;
    let object = compile::object(module, &target(options, &names), &described).map_err(failed)?;
    let shape = module.program_shape(module.entry());
    let shape = shape.ok_or_else(|| Error::new(Code::Internal, "a program without a result"))?;
    let parameters: Vec<String> = shape.parameters.iter().map(|s| s.without_layout().to_string()).collect();
    let signature = format!("({}) -> {}", parameters.join(", "), shape.result.without_layout());
    Ok(Ahead { object, names, signature, options: options.clone() })
}

/// The description of operations, of which the library makes the same ones again.
fn described(module: &Module, operations: &[InstrId]) -> Result<Vec<u8>, CompileError> {
    let text = hlo_ahead::description::of(module, operations);
    let defect = |why: String| CompileError::Defect(format!("what the run-time library is told: {why}"));
    let again = hlo_ahead::description::operations(&text).map_err(defect)?;
    for (&id, again) in operations.iter().zip(&again) {
        let name = &module.instr(id).name;
        let Some(first) = hlo_ahead::description::operation(module, id) else {
            return Err(defect(format!("`{name}` is no operation of the library")));
        };
        let facts = |op: &hlo_library::LibraryCall| (op.scratch_bytes(), op.cost(), op.is_whole());
        let again = &again.call;
        if facts(&first) != facts(again) || format!("{first:?}") != format!("{again:?}") {
            return Err(defect(format!("`{name}` is not made of it as it was")));
        }
    }
    Ok(text.into_bytes())
}
