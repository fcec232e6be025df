//! Programs in XLA's protocol buffers, beside those in text: reading them, what a snapshot recorded, and
//! which format a file's name stands for.
//!
//! **Invariant:** what a file holds is told by its content, never by its name; names say only what is to be
//! written.

use std::io::Write;
use std::time::{Duration, Instant};

use hlo::diag::codes::OUT_OF_MEMORY;
use hlo::print::{PrintOptions, print_module};
use hlo::{ArrayLiteral, Diagnostics, Literal, Module};
use hlo_interp::Devices;
use hlo_proto::{Contents, Document, Encoding, Found, Kind, ReadOptions, WriteError};

use crate::frontend::{Rejected, Stage, Times, parse_text};
use crate::inputs::parameter_arrays;
use hlo_system::exit::{Exit, Failure};
use hlo_system::files::Source;
use hlo_system::memory_budget;

/// A run that a snapshot recorded.
#[derive(Clone, PartialEq, Debug)]
pub struct Recorded {
    /// For each partition the arguments, tuples flattened; empty if there are none.
    pub arguments: Vec<Vec<ArrayLiteral>>,
    /// The result, tuples flattened.
    pub result: Option<Vec<ArrayLiteral>>,
}

/// The contents of a file.
pub struct Read {
    /// The file.
    pub source: Source,
    /// The program.
    pub module: Module,
    /// The diagnostics, all of them warnings.
    pub diagnostics: Diagnostics,
    /// The times of the stages.
    pub times: Times,
    /// The run that a snapshot recorded.
    pub recorded: Option<Recorded>,
    /// The module that it was converted from, if that was read from bytecode: its text is printed where spans
    /// are needed.
    pub tree: Option<hlo_mlir::ir::Module>,
}

/// Options of reading messages.
pub fn read_options(bytes: &[u8]) -> ReadOptions {
    let memory_bytes = memory_budget::text_left().saturating_sub(bytes.len() as u64);
    ReadOptions { memory_bytes, ..ReadOptions::default() }
}

/// Reads a message of this kind.
pub fn read(
    name: String,
    bytes: Vec<u8>,
    (kind, encoding): (Kind, Encoding),
    read: Duration,
) -> Result<Read, Box<Rejected>> {
    let start = Instant::now();
    let Found { document, diagnostics } = hlo_proto::read(&bytes, kind, encoding, &read_options(&bytes));
    let parse = start.elapsed();
    // Places are in the text format.
    let text = match encoding {
        Encoding::Text => String::from_utf8(bytes).unwrap_or_default(),
        Encoding::Binary => String::new(),
    };
    let Some(document) = document else {
        let exit = if diagnostics.iter().any(|d| d.code == OUT_OF_MEMORY) { Exit::Trap } else { Exit::Parse };
        return Err(Box::new(Rejected {
            stage: Stage::Parse,
            exit,
            file: name,
            diagnostics,
            text,
            message: String::new(),
        }));
    };
    let times = Times { read, parse, verify: Duration::ZERO };
    let Document { module, arguments, result, platform: _ } = document;
    let flat =
        |literals: Vec<Literal>| literals.iter().flat_map(Literal::arrays).cloned().collect::<Vec<_>>();
    let result = result.map(|r| flat(vec![r]));
    let recorded = (!arguments.is_empty() || result.is_some())
        .then(|| Recorded { arguments: arguments.into_iter().map(flat).collect(), result });
    Ok(Read {
        source: Source { name, text, is_hlo: false },
        module,
        diagnostics,
        times,
        recorded,
        tree: None,
    })
}

impl Recorded {
    /// The arguments of each device. Errors: they do not fit the program or the devices.
    pub fn arguments_on(
        &self,
        module: &Module,
        devices: Devices,
    ) -> Result<Option<Vec<Vec<ArrayLiteral>>>, Failure> {
        let shapes = parameter_arrays(module);
        if self.arguments.is_empty() && !shapes.is_empty() {
            return Ok(None);
        }
        for given in &self.arguments {
            let fit =
                given.len() == shapes.len() && given.iter().zip(&shapes).all(|(a, s)| a.shape().same_dims(s));
            if !fit {
                let shown: Vec<String> = given.iter().map(|a| a.shape().to_string()).collect();
                let wanted: Vec<String> = shapes.iter().map(|s| s.without_layout().to_string()).collect();
                let message = format!(
                    "the snapshot's arguments ({}) do not fit the program's parameters ({})",
                    shown.join(", "),
                    wanted.join(", ")
                );
                return Err(Failure::usage(message));
            }
        }
        let count = devices.count() as usize;
        match &self.arguments[..] {
            [] => Ok(Some(vec![Vec::new(); count])),
            [one] => Ok(Some(vec![one.clone(); count])),
            each if each.len() == count => Ok(Some(each.to_vec())),
            each => {
                let message =
                    format!("the snapshot has arguments for {} devices, and the run {count}", each.len());
                Err(Failure::usage(message))
            }
        }
    }

    /// The result on one device, if it was recorded.
    pub fn result_on(&self, devices: Devices) -> Option<Vec<Vec<ArrayLiteral>>> {
        let result = self.result.as_ref().filter(|_| devices.count() == 1)?;
        Some(vec![result.clone()])
    }
}

/// The same findings with spans of the program's text, where the program was read from a message, which has
/// none. `None` if the text does not lead to the same findings.
pub(crate) fn with_spans(module: &Module, found: &Diagnostics) -> Option<(String, Diagnostics)> {
    /// Longer constants are left out: no finding is in them.
    const MAX_ELEMENTS: usize = 1000;
    let text = print_module(module, &PrintOptions::source(module).eliding(MAX_ELEMENTS));
    let again = hlo::verify::verify(&parse_text(&text).0?);
    // Findings without spans are in another order.
    let codes = |d: &Diagnostics| {
        let mut codes: Vec<&str> = d.iter().map(|d| d.code.as_str()).collect();
        codes.sort_unstable();
        codes
    };
    (codes(found) == codes(&again)).then_some((text, again))
}

/// A format in which a program can be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Format {
    /// HLO text
    Hlo,
    /// StableHLO as MLIR text
    Stablehlo,
    /// StableHLO as MLIR bytecode, a portable artifact
    Bytecode,
    /// HloModuleProto, binary
    Pb,
    /// HloModuleProto in the text format of protocol buffers
    Pbtxt,
    /// HloProto, binary
    HloPb,
    /// HloProto in text
    HloPbtxt,
    /// HloSnapshot, binary
    SnapshotPb,
    /// HloSnapshot in text
    SnapshotPbtxt,
    /// HloUnoptimizedSnapshot, binary
    UnoptimizedSnapshotPb,
    /// HloUnoptimizedSnapshot in text
    UnoptimizedSnapshotPbtxt,
}

impl Format {
    /// The format that a file's name stands for, by its last suffixes.
    pub fn of_name(path: &str) -> Option<Format> {
        let name = path.rsplit('/').next()?.to_ascii_lowercase();
        let (stem, text) = match name.rsplit_once('.')? {
            (stem, "hlo" | "txt") if !stem.ends_with(".pb") => {
                let _ = stem;
                return Some(Format::Hlo);
            }
            (_, "mlir") => return Some(Format::Stablehlo),
            (_, "mlirbc" | "bc") => return Some(Format::Bytecode),
            (stem, "txt" | "pbtxt" | "textproto" | "prototxt") => (stem.trim_end_matches(".pb"), true),
            (stem, "pb" | "binpb") => (stem, false),
            _ => return None,
        };
        let last = stem.rsplit('.').next().unwrap_or(stem);
        let kind = if last.ends_with("unoptimized_snapshot") {
            Kind::UnoptimizedSnapshot
        } else if last.ends_with("snapshot") {
            Kind::Snapshot
        } else if last == "hlo" && stem.contains('.') {
            Kind::Proto
        } else {
            Kind::Module
        };
        let encoding = if text { Encoding::Text } else { Encoding::Binary };
        Some(Format::of_message(kind, encoding))
    }

    /// The format of a message.
    pub fn of_message(kind: Kind, encoding: Encoding) -> Format {
        match (kind, encoding) {
            (Kind::Module, Encoding::Binary) => Format::Pb,
            (Kind::Module, Encoding::Text) => Format::Pbtxt,
            (Kind::Proto, Encoding::Binary) => Format::HloPb,
            (Kind::Proto, Encoding::Text) => Format::HloPbtxt,
            (Kind::Snapshot, Encoding::Binary) => Format::SnapshotPb,
            (Kind::Snapshot, Encoding::Text) => Format::SnapshotPbtxt,
            (Kind::UnoptimizedSnapshot, Encoding::Binary) => Format::UnoptimizedSnapshotPb,
            (Kind::UnoptimizedSnapshot, Encoding::Text) => Format::UnoptimizedSnapshotPbtxt,
        }
    }

    /// The message that it is; `None` for HLO text and MLIR.
    pub fn message(self) -> Option<(Kind, Encoding)> {
        match self {
            Format::Hlo | Format::Stablehlo | Format::Bytecode => None,
            Format::Pb => Some((Kind::Module, Encoding::Binary)),
            Format::Pbtxt => Some((Kind::Module, Encoding::Text)),
            Format::HloPb => Some((Kind::Proto, Encoding::Binary)),
            Format::HloPbtxt => Some((Kind::Proto, Encoding::Text)),
            Format::SnapshotPb => Some((Kind::Snapshot, Encoding::Binary)),
            Format::SnapshotPbtxt => Some((Kind::Snapshot, Encoding::Text)),
            Format::UnoptimizedSnapshotPb => Some((Kind::UnoptimizedSnapshot, Encoding::Binary)),
            Format::UnoptimizedSnapshotPbtxt => Some((Kind::UnoptimizedSnapshot, Encoding::Text)),
        }
    }

    /// Whether it is StableHLO.
    pub fn is_mlir(self) -> bool {
        matches!(self, Format::Stablehlo | Format::Bytecode)
    }

    /// Whether it has space for arguments and results.
    pub fn is_snapshot(self) -> bool {
        matches!(self.message(), Some((Kind::Snapshot | Kind::UnoptimizedSnapshot, _)))
    }
}

/// Writes a program as text or message; text is as XLA prints it, or as it was read. StableHLO is written by
/// [`output`](crate::mlir::output).
///
/// # Errors
/// What `hlo_proto::write` cannot say, or the writer's.
pub fn write(contents: &Contents<'_>, format: Format, out: &mut dyn Write) -> Result<(), WriteError> {
    match format.message() {
        Some((kind, encoding)) => hlo_proto::write(contents, kind, encoding, out),
        None => {
            let module = contents.module;
            Ok(out.write_all(print_module(module, &PrintOptions::source(module)).as_bytes())?)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_for_formats() {
        for (name, format) in [
            ("a.hlo", Some(Format::Hlo)),
            ("dump/module_0000.jit_f.before_optimizations.txt", Some(Format::Hlo)),
            ("a.pb", Some(Format::Pb)),
            ("hlo.pb", Some(Format::Pb)),
            ("a.pbtxt", Some(Format::Pbtxt)),
            ("a.pb.txt", Some(Format::Pbtxt)),
            ("module_0001.f.hlo.pb", Some(Format::HloPb)),
            ("a.hlo.pbtxt", Some(Format::HloPbtxt)),
            ("a.snapshot.pb", Some(Format::SnapshotPb)),
            ("a.hlo_snapshot.pb", Some(Format::SnapshotPb)),
            ("a.snapshot.pbtxt", Some(Format::SnapshotPbtxt)),
            ("m.hlo_unoptimized_snapshot.pb", Some(Format::UnoptimizedSnapshotPb)),
            ("m.hlo_unoptimized_snapshot.pb.txt", Some(Format::UnoptimizedSnapshotPbtxt)),
            ("a", None),
            ("a.mlir", Some(Format::Stablehlo)),
            ("module.mlir.bc", Some(Format::Bytecode)),
            ("a.mlirbc", Some(Format::Bytecode)),
        ] {
            assert_eq!(Format::of_name(name), format, "{name}");
            if let Some((kind, encoding)) = format.and_then(Format::message) {
                assert_eq!(Some(Format::of_message(kind, encoding)), format);
            }
        }
    }
}
