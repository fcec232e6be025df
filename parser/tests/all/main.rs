//! The parser's tests, as one program.

#![allow(clippy::unwrap_used, reason = "a test that fails panics")]

mod attributes;
mod corpus;
mod diagnostics;
mod forms;
mod literals;
mod robustness;

use hlo::Module;

/// Parses a text that must be right.
#[track_caller]
fn parse(text: &str) -> Module {
    let parsed = hlo_parser::parse_module(text, &hlo_parser::ParseOptions::default());
    match parsed.module {
        Some(module) => module,
        None => panic!("{}", hlo::diag::render_all(&parsed.diagnostics, "test", text, false)),
    }
}

/// The codes of what is wrong with a text.
fn codes(text: &str) -> Vec<&'static str> {
    let parsed = hlo_parser::parse_module(text, &hlo_parser::ParseOptions::default());
    parsed.diagnostics.iter().map(|d| d.code.as_str()).collect()
}
