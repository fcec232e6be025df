//! Whole files: a program, and what comes with it.

use std::io::{self, Write};

use hlo::diag::Diagnostic;
use hlo::diag::codes::{parse::*, proto::*};
use hlo::{Diagnostics, Literal, Module, Span};

use crate::message::{Message, Value};
use crate::node::Node;
use crate::path::Path;
use crate::schema::modules::{
    HLO, HLO_INPUTS, HLO_SNAPSHOT, HLO_UNOPTIMIZED_SNAPSHOT, hlo_inputs, hlo_proto, hlo_snapshot as snapshot,
    hlo_unoptimized_snapshot as unoptimized,
};
use crate::wire::{self, Decoder, Res, error};
use crate::{Encoding, Kind, ReadOptions, text};

/// What a file says.
#[derive(Clone, Debug)]
pub struct Document {
    /// The program.
    pub module: Module,
    /// Its arguments, one literal a parameter, for each partition; empty if the file has none.
    pub arguments: Vec<Vec<Literal>>,
    /// Its result on these, if the file has it.
    pub result: Option<Literal>,
    /// Where it was run.
    pub platform: Box<str>,
}

/// What a file was found to say.
#[derive(Clone, Debug)]
pub struct Found {
    /// The document, if there was no error.
    pub document: Option<Document>,
    /// Errors and warnings; spans are offsets in the text format, and [`Span::NONE`] of binary files.
    pub diagnostics: Diagnostics,
}

/// Reads a file of a kind.
pub fn read(bytes: &[u8], kind: Kind, encoding: Encoding, options: &ReadOptions) -> Found {
    let mut diagnostics = Diagnostics::new();
    let document = document(bytes, kind, encoding, options, &mut diagnostics);
    match document {
        Ok(document) => Found { document: Some(document), diagnostics },
        Err(error) => {
            diagnostics.push(*error);
            Found { document: None, diagnostics }
        }
    }
}

fn decoded<'a>(
    bytes: &'a [u8],
    kind: Kind,
    encoding: Encoding,
    options: &ReadOptions,
    decoder: &mut Decoder,
) -> Res<Message<'a>> {
    match encoding {
        Encoding::Binary => decoder.decode(kind.message_type(), bytes, &Path::ROOT),
        Encoding::Text => {
            let text = std::str::from_utf8(bytes)
                .map_err(|e| error(SOURCE_NOT_TEXT, format!("byte {} is not UTF-8 text", e.valid_up_to())))?;
            let text = text.strip_prefix('\u{feff}').unwrap_or(text);
            if u32::try_from(text.len()).is_err() {
                return Err(error(SOURCE_TOO_LARGE, format!("the text is {} bytes long", text.len())));
            }
            text::parse(text, kind.message_type(), options.nesting_limit, decoder)
        }
    }
}

fn document(
    bytes: &[u8],
    kind: Kind,
    encoding: Encoding,
    options: &ReadOptions,
    diagnostics: &mut Diagnostics,
) -> Res<Document> {
    let mut decoder = Decoder::new(options, true);
    let message = decoded(bytes, kind, encoding, options, &mut decoder)?;
    let root = Node::new(&message, &Path::ROOT);
    let mut document = match kind {
        Kind::Module => Document::of(crate::read::module(root, &mut decoder, diagnostics)?),
        Kind::Proto => Document::of(proto(root, &mut decoder, diagnostics)?),
        Kind::Snapshot => {
            let module = root.required(snapshot::HLO, |n| proto(n, &mut decoder, diagnostics))?;
            let arguments = literals(root, snapshot::ARGUMENTS)?;
            Document {
                module,
                arguments: if arguments.is_empty() { Vec::new() } else { vec![arguments] },
                result: root.child(snapshot::RESULT, crate::read::literal::literal).transpose()?.map(|l| l.1),
                platform: root.text(snapshot::EXECUTION_PLATFORM).into(),
            }
        }
        Kind::UnoptimizedSnapshot => {
            let module = root
                .required(unoptimized::HLO_MODULE, |n| crate::read::module(n, &mut decoder, diagnostics))?;
            let arguments = root.children(unoptimized::PARTITIONS, |n| {
                if n.has(hlo_inputs::ARGUMENTS_DESCRIPTORS) {
                    let message = "the arguments of this snapshot stand in another file, which is not read";
                    diagnostics.push(Diagnostic::warning(PROTO_NOT_IN_TEXT, Span::NONE, message));
                }
                literals(n, hlo_inputs::ARGUMENTS)
            })?;
            Document { arguments, ..Document::of(module) }
        }
    };
    document.arguments.retain(|a| !a.is_empty());
    decoder.warn_of_unknown(diagnostics);
    Ok(document)
}

impl Document {
    /// A program alone.
    fn of(module: Module) -> Self {
        Self { module, arguments: Vec::new(), result: None, platform: "".into() }
    }
}

fn proto(n: Node<'_>, decoder: &mut Decoder, diagnostics: &mut Diagnostics) -> Res<Module> {
    if n.has(hlo_proto::BUFFER_ASSIGNMENT) {
        let message = "the assignment of buffers is not part of a module, and left out";
        diagnostics.push(Diagnostic::warning(PROTO_NOT_IN_TEXT, Span::NONE, message));
    }
    n.required(hlo_proto::HLO_MODULE, |n| crate::read::module(n, decoder, diagnostics))
}

fn literals(n: Node<'_>, number: u32) -> Res<Vec<Literal>> {
    n.children(number, |n| Ok(crate::read::literal::literal(n)?.1))
}

/// What is to be written.
#[derive(Clone, Copy, Debug)]
pub struct Contents<'m> {
    /// The program.
    pub module: &'m Module,
    /// Arguments of a snapshot, for each partition.
    pub arguments: &'m [Vec<Literal>],
    /// The result of a snapshot.
    pub result: Option<&'m Literal>,
    /// The platform of a snapshot.
    pub platform: &'m str,
}

impl<'m> Contents<'m> {
    /// A program alone.
    pub fn of(module: &'m Module) -> Self {
        Self { module, arguments: &[], result: None, platform: "" }
    }
}

/// Why nothing, or not all, was written.
#[derive(Debug)]
pub enum WriteError {
    /// There are no fields for what the program says; nothing was written.
    Unsupported(Diagnostics),
    /// The input cannot be read; nothing was written.
    Unreadable(Diagnostics),
    /// The writer failed.
    Io(io::Error),
}

impl From<io::Error> for WriteError {
    fn from(e: io::Error) -> Self {
        WriteError::Io(e)
    }
}

/// Writes a program as a message of a kind.
///
/// # Errors
/// [`WriteError`]; of what the program says and no field can hold, before the first byte is written.
pub fn write(
    contents: &Contents<'_>,
    kind: Kind,
    encoding: Encoding,
    out: &mut dyn Write,
) -> Result<(), WriteError> {
    let module = crate::write::module(contents.module).map_err(WriteError::Unsupported)?;
    let literal = |l| crate::write::literal::plain(l);
    let message = match kind {
        Kind::Module => module,
        Kind::Proto => in_proto(module),
        Kind::Snapshot => {
            let mut m = Message::new(&HLO_SNAPSHOT);
            m.message(snapshot::HLO, in_proto(module));
            m.messages(
                snapshot::ARGUMENTS,
                contents.arguments.iter().take(1).flatten().map(literal).collect(),
            );
            if let Some(result) = contents.result {
                m.message(snapshot::RESULT, literal(result));
            }
            m.text(snapshot::EXECUTION_PLATFORM, contents.platform);
            m
        }
        Kind::UnoptimizedSnapshot => {
            let mut m = Message::new(&HLO_UNOPTIMIZED_SNAPSHOT);
            m.message(unoptimized::HLO_MODULE, module);
            let partitions = contents.arguments.iter().map(|arguments| {
                let mut m = Message::new(&HLO_INPUTS);
                m.messages(hlo_inputs::ARGUMENTS, arguments.iter().map(literal).collect());
                m
            });
            m.messages(unoptimized::PARTITIONS, partitions.collect());
            m
        }
    };
    encode(&message, encoding, out)?;
    Ok(())
}

fn in_proto(module: Message<'_>) -> Message<'_> {
    let mut m = Message::new(&HLO);
    m.message(hlo_proto::HLO_MODULE, module);
    m
}

fn encode(message: &Message<'_>, encoding: Encoding, out: &mut dyn Write) -> io::Result<()> {
    match encoding {
        Encoding::Binary => wire::encode(message, out),
        Encoding::Text => text::print(message, out),
    }
}

/// Writes the message of a file in another form, with every field that it has. From a kind to another what
/// that has no field for is left out, and said.
///
/// # Errors
/// [`WriteError`]; if the input cannot be read, before the first byte is written.
pub fn convert(
    bytes: &[u8],
    from: (Kind, Encoding),
    to: (Kind, Encoding),
    options: &ReadOptions,
    out: &mut dyn Write,
) -> Result<Diagnostics, WriteError> {
    let mut decoder = Decoder::new(options, false);
    let message = decoded(bytes, from.0, from.1, options, &mut decoder)
        .map_err(|e| WriteError::Unreadable((*e).into()))?;
    let mut diagnostics = Diagnostics::new();
    let message = if from.0 == to.0 {
        message
    } else {
        rewrapped(message, from.0, to.0, &mut diagnostics).map_err(|e| WriteError::Unreadable((*e).into()))?
    };
    encode(&message, to.1, out)?;
    Ok(diagnostics)
}

/// The message of another kind with the same module, and the same arguments where both have such.
fn rewrapped<'a>(
    message: Message<'a>,
    from: Kind,
    to: Kind,
    diagnostics: &mut Diagnostics,
) -> Res<Message<'a>> {
    let mut outer = message;
    let mut arguments = Vec::new();
    let mut left_out = Vec::new();
    let module = match from {
        Kind::Module => outer,
        Kind::Proto => inner(&mut outer, hlo_proto::HLO_MODULE, &mut left_out)?,
        Kind::Snapshot => {
            if let Some(Value::Messages(list)) = outer.remove(snapshot::ARGUMENTS) {
                arguments = list;
            }
            let mut proto = inner(&mut outer, snapshot::HLO, &mut left_out)?;
            if to == Kind::Proto {
                say(&left_out, diagnostics);
                return Ok(proto);
            }
            inner(&mut proto, hlo_proto::HLO_MODULE, &mut left_out)?
        }
        Kind::UnoptimizedSnapshot => {
            let mut partitions = match outer.remove(unoptimized::PARTITIONS) {
                Some(Value::Messages(list)) => list.into_iter(),
                _ => Vec::new().into_iter(),
            };
            if let Some(Value::Messages(list)) =
                partitions.next().and_then(|mut p| p.remove(hlo_inputs::ARGUMENTS))
            {
                arguments = list;
            }
            if partitions.next().is_some() {
                left_out.push("the arguments of partitions but the first");
            }
            inner(&mut outer, unoptimized::HLO_MODULE, &mut left_out)?
        }
    };
    let result = match to {
        Kind::Module => module,
        Kind::Proto => in_proto(module),
        Kind::Snapshot => {
            let mut m = Message::new(&HLO_SNAPSHOT);
            m.message(snapshot::HLO, in_proto(module));
            m.messages(snapshot::ARGUMENTS, std::mem::take(&mut arguments));
            m
        }
        Kind::UnoptimizedSnapshot => {
            let mut m = Message::new(&HLO_UNOPTIMIZED_SNAPSHOT);
            m.message(unoptimized::HLO_MODULE, module);
            if !arguments.is_empty() {
                let mut inputs = Message::new(&HLO_INPUTS);
                inputs.messages(hlo_inputs::ARGUMENTS, std::mem::take(&mut arguments));
                m.messages(unoptimized::PARTITIONS, vec![inputs]);
            }
            m
        }
    };
    if !arguments.is_empty() {
        left_out.push("the arguments");
    }
    say(&left_out, diagnostics);
    Ok(result)
}

fn say(left_out: &[&'static str], diagnostics: &mut Diagnostics) {
    if !left_out.is_empty() {
        let message = format!(
            "left out, because the other kind of message has no field for it: {}",
            left_out.join(", ")
        );
        diagnostics.push(Diagnostic::warning(PROTO_NOT_IN_TEXT, Span::NONE, message));
    }
}

/// The message of a field, out of the one around it; what else that has is left out.
fn inner<'a>(outer: &mut Message<'a>, number: u32, left_out: &mut Vec<&'static str>) -> Res<Message<'a>> {
    let found = outer.remove(number);
    let names = outer.fields().iter().filter_map(|(number, _)| outer.ty.field(*number)).map(|f| f.name);
    left_out.extend(names);
    if !outer.unknown.is_empty() {
        left_out.push("unknown fields");
    }
    match found {
        Some(Value::Message(m)) => Ok(*m),
        _ => Err(Node::new(&Message::new(outer.ty), &Path::ROOT).missing(number)),
    }
}
