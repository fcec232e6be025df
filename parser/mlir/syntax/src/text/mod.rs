//! MLIR text to the tree.
//!
//! A hand-written parser over [`token`]s, because how an operation is written is up to the operation:
//! [`mod@format`] is the table of StableHLO's pretty forms, `custom` those that no table says, `operation`
//! the generic form, which every operation has. An error ends a module's text; modules separated by `//
//! -----` are read each on its own.

mod attributes;
mod cursor;
mod custom;
pub(crate) mod format;
mod literal;
mod location;
mod metadata;
mod operation;
mod pretty;
mod records;
mod scope;
pub(crate) mod token;
mod types;

use hlo::diag::codes;
use hlo::{Diagnostic, Diagnostics, Span};

use crate::ir::{AttrId, Module, TypeId};

/// Limits of reading.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadOptions {
    /// The maximum size of the tree, in addition to the input, in bytes.
    pub memory_bytes: u64,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self { memory_bytes: u64::MAX }
    }
}

/// The line between modules of one text.
const SEPARATOR: &str = "// -----";

/// The parts of a text between lines `// -----`, as byte ranges, without those that hold nothing but
/// comments.
pub fn split(text: &str) -> Vec<Span> {
    let mut parts = Vec::new();
    let mut start = 0;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if line.trim_end().starts_with(SEPARATOR) && line.trim_end().bytes().skip(3).all(|b| b == b'-') {
            parts.push(Span::new(start, at));
            start = at + line.len();
        }
        at += line.len();
    }
    parts.push(Span::new(start, text.len()));
    let says_something = |span: &Span| {
        text[span.range()].lines().any(|l| !l.trim().is_empty() && !l.trim_start().starts_with("//"))
    };
    parts.retain(says_something);
    parts
}

/// Reads a type into a module that is read otherwise: bytecode has what it has no encoding for as text.
pub(crate) fn parse_type(m: &mut Module, text: &str) -> Result<TypeId, Box<Diagnostic>> {
    parse_into(m, text, cursor::Parser::ty)
}

/// The same of an attribute.
pub fn parse_attribute(m: &mut Module, text: &str) -> Result<AttrId, Box<Diagnostic>> {
    parse_into(m, text, cursor::Parser::attribute)
}

fn parse_into<'t, T>(
    m: &mut Module,
    text: &'t str,
    parse: impl FnOnce(&mut cursor::Parser<'t>) -> Result<T, Box<Diagnostic>>,
) -> Result<T, Box<Diagnostic>> {
    let mut parser = cursor::Parser::new(text, 0, ReadOptions::default().memory_bytes);
    parser.m = std::mem::take(m);
    let result = parse(&mut parser).and_then(|found| match parser.tok {
        token::Tok::End => Ok(found),
        _ => parser.expected("the end"),
    });
    *m = parser.m;
    result
}

/// Reads one module. Spans are byte offsets in `text`.
pub fn parse(text: &str, options: &ReadOptions) -> Result<Module, Diagnostics> {
    parse_part(text, Span::new(0, text.len()), options)
}

/// Reads the module in a part of a text. Spans are byte offsets in the whole of it.
pub fn parse_part(text: &str, part: Span, options: &ReadOptions) -> Result<Module, Diagnostics> {
    if u32::try_from(text.len()).is_err() {
        let message = format!("the text is {} bytes long", text.len());
        let d = Diagnostic::error(codes::parse::SOURCE_TOO_LARGE, Span::new(0, 1), message)
            .label("at most 4 GiB");
        return Err(d.into());
    }
    let mut parser =
        cursor::Parser::new(&text[..part.end as usize], part.start as usize, options.memory_bytes);
    match parser.whole() {
        Ok(top) => {
            let mut module = parser.m;
            module.set_top(top);
            Ok(module)
        }
        Err(error) => Err((*error).into()),
    }
}

/// Whether a text looks like MLIR: what the first line that is no comment begins with.
pub fn looks_like_mlir(text: &str) -> bool {
    let line = text.lines().map(str::trim_start).find(|l| !l.is_empty() && !l.starts_with("//"));
    let Some(line) = line else { return false };
    let word_end =
        line.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '.')).unwrap_or(line.len());
    let (word, rest) = line.split_at(word_end);
    match word {
        "module" => {
            let rest = rest.trim_start();
            rest.is_empty() || rest.starts_with(['@', '{']) || rest.starts_with("attributes")
        }
        "func.func" | "builtin.module" | "sdy.mesh" => true,
        "" => {
            line.starts_with("\"builtin.module\"")
                || (line.starts_with('#') || line.starts_with('!'))
                    && line.split_once('=').is_some_and(|(name, _)| {
                        name.trim().len() > 1
                            && name.trim()[1..].bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
                    })
        }
        _ => false,
    }
}
