//! From a path to a verified program: read, parse, verify, each timed, with what each found.

use std::time::{Duration, Instant};

use hlo::diag::codes::{self, OUT_OF_MEMORY};
use hlo::diag::{Severity, render_all};
use hlo::{ConstantValue, Diagnostic, Diagnostics, LineIndex, Module};
use hlo_parser::{ParseOptions, Pick};
use serde::Serialize;

use crate::engine::distinct_bytes;
use crate::mlir;
use crate::protos::{self, Read, Recorded, with_spans};
use hlo_system::exit::{Exit, Failure};
use hlo_system::files::{Source, read_bytes, text_of};
use hlo_system::memory_budget;
use hlo_system::npz::Npz;

/// The stage that rejected a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// The file.
    Read,
    /// The text.
    Parse,
    /// The program.
    Verify,
    /// The run.
    Run,
}

/// A program that was rejected.
#[derive(Clone, Debug)]
pub struct Rejected {
    /// By which stage.
    pub stage: Stage,
    /// How a command ends that can do nothing else.
    pub exit: Exit,
    /// The file, as the person named it.
    pub file: String,
    /// The diagnostics, if there is a text to show them in.
    pub diagnostics: Diagnostics,
    /// The text; empty if there is none.
    pub text: String,
    /// The message where there are no diagnostics.
    pub message: String,
}

/// One error for machines.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct JsonError {
    /// `V0312`; empty for what has no code (a file that cannot be read).
    pub code: String,
    /// From 1; absent if the error has no span.
    pub line: Option<u32>,
    /// From 1, in characters.
    pub column: Option<u32>,
    /// One sentence.
    pub message: String,
}

impl Rejected {
    fn from_failure(stage: Stage, file: &str, failure: Failure) -> Self {
        Self {
            stage,
            exit: failure.exit,
            file: file.to_owned(),
            diagnostics: Diagnostics::new(),
            text: String::new(),
            message: failure.message,
        }
    }

    /// A file that cannot be read, or is no text.
    fn unread(file: &str, failure: Failure) -> Self {
        let stage = if failure.exit == Exit::Parse { Stage::Parse } else { Stage::Read };
        Self::from_failure(stage, file, failure)
    }

    /// Everything found, as people read it.
    pub fn render(&self, color: bool) -> String {
        if self.diagnostics.is_empty() {
            return format!("error: {}\n", self.message);
        }
        render_all(&self.diagnostics, &self.file, &self.text, color)
    }

    /// The same as a failure.
    pub fn failure(&self, color: bool) -> Failure {
        if self.diagnostics.is_empty() {
            return Failure::new(self.exit, &*self.message);
        }
        Failure::rendered(self.exit, self.render(color))
    }

    /// `2 errors`.
    pub fn summary(&self) -> String {
        match self.diagnostics.error_count() {
            0 => "cannot be read".to_owned(),
            1 => "1 error".to_owned(),
            n => format!("{n} errors"),
        }
    }

    /// The errors for machines.
    pub fn json_errors(&self) -> Vec<JsonError> {
        if self.diagnostics.is_empty() {
            return vec![JsonError {
                code: String::new(),
                line: None,
                column: None,
                message: self.message.clone(),
            }];
        }
        json_diagnostics(&self.diagnostics, &self.text)
    }

    /// The first error in one line, for tables.
    pub fn first_line(&self) -> String {
        match self.diagnostics.iter().find(|d| d.severity == Severity::Error) {
            Some(d) => {
                let position = LineIndex::new(&self.text).line_column(&self.text, d.span.start);
                format!("{} at {}:{}: {}", d.code.as_str(), position.0, position.1, d.message)
            }
            None => self.message.clone(),
        }
    }
}

/// Errors of a list for machines.
pub fn json_diagnostics(diagnostics: &Diagnostics, text: &str) -> Vec<JsonError> {
    let lines = LineIndex::new(text);
    diagnostics
        .iter()
        .filter(|d| d.severity == Severity::Error)
        .map(|d| {
            let position = (!d.span.is_none()).then(|| lines.line_column(text, d.span.start));
            JsonError {
                code: d.code.as_str().to_owned(),
                line: position.map(|p| p.0),
                column: position.map(|p| p.1),
                message: d.message.clone(),
            }
        })
        .collect()
}

/// The times of the stages.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Times {
    /// Reading the file.
    pub read: Duration,
    /// Text to module.
    pub parse: Duration,
    /// Verifying.
    pub verify: Duration,
}

/// A program ready to run.
#[derive(Clone, Debug)]
pub struct Program {
    /// Its text.
    pub source: Source,
    /// The verified module.
    pub module: Module,
    /// Warnings of all stages.
    pub warnings: Diagnostics,
    /// What the verifier found in a program that is taken nevertheless ([`Reading::unverified`]).
    pub broken: Diagnostics,
    /// It is the module that was picked out of the text.
    pub picked: bool,
    /// It was given as StableHLO.
    pub is_stablehlo: bool,
    /// What the file, a snapshot, recorded of a run.
    pub recorded: Option<Recorded>,
    /// Times.
    pub times: Times,
}

impl Program {
    /// Bytes of its text and of the values of its constants, as far as they count against the limit of its
    /// runs.
    pub fn kept_bytes(&self) -> u64 {
        let module = &self.module;
        let instructions = module.computations().iter().flat_map(|&c| module.instructions(c));
        let constants = instructions.filter_map(|i| match module.instr(i).attrs.constant_value()? {
            ConstantValue::Given(literal) => Some(literal.arrays()),
            ConstantValue::Elided => None,
        });
        let constants = distinct_bytes(constants.flatten());
        (self.source.text.len() as u64)
            .saturating_add(constants)
            .saturating_sub(memory_budget::TEXT_OVERHEAD_BYTES)
    }

    /// The text, if it is that of the module and of nothing else: not of a program that was pasted with more
    /// around it, or one of several.
    pub fn own_text(&self) -> Option<&str> {
        if mlir::is_mlir(&self.source.text) {
            return None;
        }
        let pasted = self.warnings.iter().any(|d| d.code == codes::parse::PASTED_TEXT);
        (self.source.is_hlo && !pasted && !self.picked).then_some(&*self.source.text)
    }
}

/// Options of reading a file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Reading {
    /// Which of several modules in one text.
    pub pick: Option<Pick>,
    /// A program that breaks the verifier's rules is taken, and said to.
    pub unverified: bool,
}

/// Reads, parses and verifies.
pub fn load(path: &str) -> Result<Program, Box<Rejected>> {
    load_as(path, &Reading::default())
}

/// The same, in a requested form.
pub fn load_as(path: &str, reading: &Reading) -> Result<Program, Box<Rejected>> {
    let start = Instant::now();
    let file = read_bytes(path).map_err(|f| Box::new(Rejected::unread(path, f)))?;
    let read = start.elapsed();
    let mut program = load_bytes(file, reading)?;
    program.times.read = read;
    Ok(program)
}

/// The same for these inputs (a file of arrays `arg0`, `arg1`, ...): arguments whose types do not say their
/// sizes have those of the arrays, unless a choice of `reading` says them.
pub fn load_for(path: &str, reading: &Reading, inputs: Option<&str>) -> Result<Program, Box<Rejected>> {
    let rejected = match load_as(path, reading) {
        Err(rejected) if reading.pick.is_none() => rejected,
        other => return other,
    };
    if !rejected.diagnostics.iter().any(|d| d.code == codes::UNBOUNDED_SHAPE) {
        return Err(rejected);
    }
    let Some(mut npz) = inputs.and_then(|inputs| Npz::open(inputs, u64::MAX).ok()) else {
        return Err(rejected);
    };
    let names: Vec<String> = (0..).map(|i| format!("arg{i}")).take_while(|name| npz.contains(name)).collect();
    let shapes = names.iter().map(|name| Some(npz.shape(name).ok()?.to_string()));
    let Some(shapes) = shapes.collect::<Option<Vec<_>>>() else { return Err(rejected) };
    let pick = Some(Pick::Name(format!("main({})", shapes.join(", "))));
    load_as(path, &Reading { pick, ..reading.clone() })
}

/// The same of what was read of a file, with its name.
pub fn load_bytes(file: (String, Vec<u8>), reading: &Reading) -> Result<Program, Box<Rejected>> {
    let Read { mut source, mut module, diagnostics: mut warnings, mut times, recorded, tree } =
        parse_bytes(file, reading.pick.as_ref(), Duration::ZERO)?;
    let picked = reading.pick.is_some();
    let start = Instant::now();
    let mut found = hlo::verify::verify(&module);
    times.verify = start.elapsed();
    // Places are in the text of what was read from bytecode.
    if let Some(tree) = tree.as_ref().filter(|_| !found.is_empty()) {
        let text = mlir::text_of(tree);
        if let (Some(again), _) = mlir::parse(&text, None, u64::MAX) {
            (found, module) = (hlo::verify::verify(&again), again);
            (source.text, source.is_hlo) = (text, true);
        }
    }
    let is_stablehlo = tree.is_some() || mlir::is_mlir(&source.text);
    // What was read from a message has no text to show spans in; the printed text will do.
    if !source.is_hlo
        && !found.is_empty()
        && let Some((text, placed)) = with_spans(&module, &found)
    {
        (source.text, found) = (text, placed);
    }
    if found.has_errors() && reading.unverified {
        let mut broken = Diagnostics::new();
        for d in &found {
            broken.push(Diagnostic { severity: Severity::Warning, ..d.clone() });
        }
        return Ok(Program { source, module, warnings, broken, picked, recorded, times, is_stablehlo });
    }
    if found.has_errors() {
        return Err(Box::new(Rejected {
            stage: Stage::Verify,
            exit: Exit::Verify,
            file: source.name,
            diagnostics: found,
            text: source.text,
            message: String::new(),
        }));
    }
    warnings.append(found);
    Ok(Program {
        source,
        module,
        warnings,
        broken: Diagnostics::new(),
        picked,
        recorded,
        times,
        is_stablehlo,
    })
}

/// A text, its module, what the parser warned of, and the times so far.
pub type Parsed = (Source, Module, Diagnostics, Times);

/// Reads and parses, without verifying: a message, or text of one module, as people paste them, or the one of
/// several that is picked.
pub fn parse_file(path: &str, pick: Option<&Pick>) -> Result<Parsed, Box<Rejected>> {
    let start = Instant::now();
    let file = read_bytes(path).map_err(|f| Box::new(Rejected::unread(path, f)))?;
    let Read { source, module, diagnostics, times, .. } = parse_bytes(file, pick, start.elapsed())?;
    Ok((source, module, diagnostics, times))
}

/// What a file says, be it text or protocol buffers; `read` is how long it took to read it.
fn parse_bytes(
    (name, bytes): (String, Vec<u8>),
    pick: Option<&Pick>,
    read: Duration,
) -> Result<Read, Box<Rejected>> {
    if let Some(form) = hlo_proto::sniff(&bytes) {
        if pick.is_some() {
            let failure = Failure::usage(format!(
                "{name}: --module picks one of several in a text, and this is no text"
            ));
            return Err(Box::new(Rejected::unread(&name, failure)));
        }
        return protos::read(name, bytes, form, read);
    }
    let bytes = match mlir::tree_of_bytecode(&bytes) {
        None => bytes,
        Some(Ok(tree)) => {
            let start = Instant::now();
            match (pick, mlir::program_of(&tree)) {
                (None, Ok(module)) => {
                    let times = Times { read, parse: start.elapsed(), verify: Duration::ZERO };
                    let source = Source { name, text: String::new(), is_hlo: false };
                    let diagnostics = Diagnostics::new();
                    return Ok(Read { source, module, diagnostics, times, recorded: None, tree: Some(tree) });
                }
                // What is found, and what is picked, is in the text.
                (Some(_), _) | (None, Err(_)) => mlir::text_of(&tree).into_bytes(),
            }
        }
        Some(Err(diagnostics)) => {
            return Err(Box::new(Rejected {
                stage: Stage::Parse,
                exit: mlir::exit_of(&diagnostics).unwrap_or(Exit::Parse),
                file: name,
                diagnostics,
                text: String::new(),
                message: String::new(),
            }));
        }
    };
    let source = text_of(name.clone(), bytes).map_err(|f| Box::new(Rejected::unread(&name, f)))?;
    let start = Instant::now();
    let (module, diagnostics) = parse_pasted(&source.text, pick);
    let parse = start.elapsed();
    match module {
        Some(module) if !diagnostics.has_errors() => {
            let times = Times { read, parse, verify: Duration::ZERO };
            Ok(Read { source, module, diagnostics, times, recorded: None, tree: None })
        }
        _ => Err(Box::new(Rejected {
            stage: Stage::Parse,
            // What was picked is not there.
            exit: match pick {
                _ if diagnostics.iter().any(|d| d.code == OUT_OF_MEMORY) => Exit::Trap,
                // StableHLO without HLO.
                _ if mlir::exit_of(&diagnostics).is_some() => {
                    mlir::exit_of(&diagnostics).unwrap_or(Exit::Parse)
                }
                Some(_) if diagnostics.iter().any(|d| d.code == codes::parse::SEVERAL_MODULES) => Exit::Usage,
                Some(_) | None => Exit::Parse,
            },
            file: source.name,
            diagnostics,
            text: source.text,
            message: "the text has no program".into(),
        })),
    }
}

/// Parses a text of one module as people paste it, or the one of several that is picked; MLIR is converted to
/// HLO.
pub fn parse_pasted(text: &str, pick: Option<&Pick>) -> (Option<Module>, Diagnostics) {
    let memory_bytes = memory_budget::text_left().saturating_sub(text.len() as u64);
    if mlir::is_mlir(text) {
        return mlir::parse(text, pick, memory_bytes);
    }
    let options = ParseOptions { memory_bytes, ..ParseOptions::default() };
    let parsed = hlo_parser::parse_pasted(text, &options, pick);
    (parsed.module, parsed.diagnostics)
}

/// Parses a text that is HLO and nothing else.
pub fn parse_text(text: &str) -> (Option<Module>, Diagnostics) {
    let parsed = hlo_parser::parse_module(text, &ParseOptions::default());
    (parsed.module, parsed.diagnostics)
}

/// The number of instructions of all computations.
pub fn instruction_count(module: &Module) -> usize {
    module.computations().iter().map(|&c| module.computation(c).len()).sum()
}

/// `f32[4096,4096] -> f32[4096,4096]`, shortened.
pub fn signature(module: &Module) -> String {
    let Some(shape) = module.program_shape(module.entry()) else { return String::new() };
    let mut parts: Vec<String> =
        shape.parameters.iter().take(4).map(|p| shorten(&p.without_layout().to_string())).collect();
    if shape.parameters.len() > 4 {
        parts.push(format!("and {} more", shape.parameters.len() - 4));
    }
    let result = shorten(&shape.result.without_layout().to_string());
    if parts.is_empty() { result } else { format!("{} -> {result}", parts.join(", ")) }
}

fn shorten(text: &str) -> String {
    const MAX_CHARACTERS: usize = 72;
    match text.char_indices().nth(MAX_CHARACTERS) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.to_owned(),
    }
}

/// The names of the opcodes in a module, sorted, each once.
pub fn opcodes(module: &Module) -> Vec<&'static str> {
    let mut names: Vec<&'static str> = module
        .computations()
        .iter()
        .flat_map(|&c| module.instructions(c))
        .map(|i| module.instr(i).opcode.name())
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}
