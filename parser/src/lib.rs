//! HLO text to IR.
//!
//! The text format is XLA's (`xla/hlo/parser` of openxla/xla): modules with or without a header, single
//! instructions, computations in attributes, instructions in operands, left-out shapes, asynchronous sugar,
//! dumps with their log prefixes. Texts that people paste, with more around a program than HLO, have a way of
//! their own (`pasted`). The stages are tokens (`token`, on logos), a flat syntax tree with spans
//! (`grammar.lalrpop`, `ast`), and lowering (`lower`), which resolves names and decodes shapes, attributes
//! and literals by the tables of the `hlo` crate.
//!
//! **What holds for any input, however broken:** no panic; no stack that grows with the nesting of the input
//! (deeper than [`ParseOptions::nesting_limit`] is refused); memory linear in the text, whatever shapes it
//! names, and within [`ParseOptions::memory_bytes`]. All errors are reported that do not follow from others:
//! an error in an instruction hides none in the next.

#![forbid(unsafe_code)]

mod ast;
mod attr;
mod budget;
mod cursor;
mod foreign;
mod literal;
mod log_prefix;
mod lower;
mod pasted;
mod shape;
mod standalone;
mod syntax_error;
mod token;

lalrpop_util::lalrpop_mod!(
    #[allow(warnings, clippy::all, clippy::pedantic, reason = "generated")]
    grammar
);

pub use log_prefix::strip_log_prefixes;
pub use pasted::{Pick, module_names, parse_pasted};
pub use standalone::*;

use hlo::diag::Diagnostic;
use hlo::diag::codes::parse as codes;
use hlo::{Diagnostics, Module, Span};

/// Limits of parsing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ParseOptions {
    /// How deep shapes and origins may be nested. (Computations in attributes and instructions in operands
    /// may be nested as deep as they like: the tree of the text is flat, and so is the module.)
    pub nesting_limit: usize,
    /// The maximum size of tree, module and values, in addition to the text, in bytes. What would take more
    /// is refused before it is allocated, with [`OUT_OF_MEMORY`](hlo::diag::codes::OUT_OF_MEMORY).
    pub memory_bytes: u64,
}

impl Default for ParseOptions {
    /// 500 levels: far more than real programs have, and safe for what walks shapes recursively.
    fn default() -> Self {
        Self { nesting_limit: 500, memory_bytes: u64::MAX }
    }
}

/// What a text was found to say.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// The module, if there was no error.
    pub module: Option<Module>,
    /// Errors and warnings in the order of the text.
    pub diagnostics: Diagnostics,
}

/// Parses the text of a module, of computations without a header, or of a single instruction. Spans of the
/// module and of the diagnostics are byte offsets in `text`.
pub fn parse_module(text: &str, options: &ParseOptions) -> Parsed {
    let mut diagnostics = Diagnostics::new();
    if u32::try_from(text.len()).is_err() {
        let message = format!("the text is {} bytes long", text.len());
        let d = Diagnostic::error(codes::SOURCE_TOO_LARGE, Span::new(0, 1), message).label("at most 4 GiB");
        return Parsed { module: None, diagnostics: d.into() };
    }
    let masked = log_prefix::mask_log_prefixes(text);
    let text = &*masked;
    let mut builder = ast::Builder::new(text);
    let mut lexer = token::Lexer::new(text, options.memory_bytes);
    let complete = match grammar::TextParser::new().parse(&mut builder, &mut lexer) {
        Ok(()) => true,
        Err(error) => {
            builder.error(error);
            false
        }
    };
    if let Some(at) = lexer.exhausted {
        let d = budget::exhausted(at, "the instructions up to here", lexer.taken, options.memory_bytes);
        return Parsed { module: None, diagnostics: d.into() };
    }
    let memory_left = options.memory_bytes.saturating_sub(lexer.taken);
    let lex_errors = lexer.errors;
    let (ast, errors) = builder.finish();
    let mut foreign = if errors.is_empty() { None } else { foreign::what(text) };
    for e in &errors {
        let d = syntax_error::diagnose(text, e, &lex_errors);
        diagnostics.push(foreign.take().into_iter().fold(d, Diagnostic::note));
    }
    let options = ParseOptions { memory_bytes: memory_left, ..*options };
    let module = lower::lower(text, &ast, &options, !complete, &mut diagnostics);
    diagnostics.sort();
    let module = module.filter(|_| !diagnostics.has_errors());
    Parsed { module, diagnostics }
}

/// What a text that is no HLO most likely is, in a sentence.
pub fn foreign_text(text: &str) -> Option<&'static str> {
    foreign::what(text)
}

/// The text in the bytes of a file, without a byte order mark; an error if they are not UTF-8.
pub fn decode(bytes: &[u8]) -> Result<&str, Box<Diagnostic>> {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    std::str::from_utf8(bytes).map_err(|e| {
        let message = format!("byte {} is not UTF-8 text", e.valid_up_to());
        let d = Diagnostic::error(codes::SOURCE_NOT_TEXT, Span::NONE, message);
        Box::new(if bytes.starts_with(b"\x1f\x8b") { d.note("the file is compressed by gzip") } else { d })
    })
}
