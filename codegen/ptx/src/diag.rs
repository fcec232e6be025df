//! Diagnostics: what is wrong with a PTX text, and where.
//!
//! Invariant: a code means one kind of fault for good; [`CODES`] lists them all, each once.

use std::fmt;

/// A position in a text: byte offsets, `start <= end`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u32,
    /// Offset behind the last byte.
    pub end: u32,
}

/// The codes of diagnostics: what each one says in general.
pub const CODES: &[(&str, &str)] = &[
    ("X0001", "the text is not a sequence of PTX tokens"),
    ("X0002", "a statement or directive does not have the form that the grammar gives it"),
    ("X0003", "the text, its nesting or a number in it is beyond the limits of this implementation"),
    ("X0004", "the PTX ISA version of the text is not known"),
    ("X0005", "the target architecture of the text is not known"),
    ("X0101", "no such instruction"),
    ("X0102", "the instruction does not have such a modifier or type, or lacks one that it needs"),
    ("X0103", "an operand is not of the kind, number or type that the instruction needs"),
    ("X0104", "a name is not declared"),
    ("X0105", "a name is declared twice in one scope"),
    ("X0106", "a declaration is not legal"),
    ("X0107", "a call does not agree with the function that it calls"),
    ("X0108", "a part of the ISA that is parsed and that this implementation does not execute"),
];

/// A fault of a text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    /// One of [`CODES`].
    pub code: &'static str,
    /// What was found and what was expected.
    pub message: String,
    /// Where.
    pub span: Span,
    /// Line, counted from 1.
    pub line: u32,
    /// Column in characters, counted from 1.
    pub column: u32,
    /// The text of the line.
    pub source: String,
}

impl Diagnostic {
    /// A diagnostic at `span` of `text`.
    pub(crate) fn new(text: &str, span: Span, code: &'static str, message: impl Into<String>) -> Self {
        let start = floor_char_boundary(text, span.start as usize);
        let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
        let line = text[..line_start].bytes().filter(|&b| b == b'\n').count() as u32 + 1;
        let column = text[line_start..start].chars().count() as u32 + 1;
        let source: String = text[line_start..line_end].trim_end().chars().take(240).collect();
        Diagnostic { code, message: message.into(), span, line, column, source }
    }
}

fn floor_char_boundary(text: &str, mut at: usize) -> usize {
    at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// `error[X0101]: message`, then the line and a caret under the column.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "error[{}]: {}", self.code, self.message)?;
        let number = self.line.to_string();
        let pad = " ".repeat(number.len());
        writeln!(f, "{pad}--> line {}, column {}", self.line, self.column)?;
        writeln!(f, "{pad} |")?;
        writeln!(f, "{number} | {}", self.source.replace('\t', " "))?;
        write!(f, "{pad} | {}^", " ".repeat((self.column as usize - 1).min(240)))
    }
}

/// At most this many diagnostics are kept of one text: behind the first ones, most follow from earlier ones.
pub(crate) const MAX_DIAGNOSTICS: usize = 50;

/// Collects the diagnostics of one text.
pub(crate) struct Sink<'a> {
    pub(crate) text: &'a str,
    pub(crate) found: Vec<Diagnostic>,
}

impl<'a> Sink<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Sink { text, found: Vec::new() }
    }

    pub(crate) fn report(&mut self, span: Span, code: &'static str, message: impl Into<String>) {
        if self.found.len() < MAX_DIAGNOSTICS {
            self.found.push(Diagnostic::new(self.text, span, code, message));
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.found.len() >= MAX_DIAGNOSTICS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique() {
        let mut codes: Vec<&str> = CODES.iter().map(|c| c.0).collect();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), CODES.len());
    }

    #[test]
    fn position_counts_lines_and_characters() {
        let text = "ab\n\u{e9}cd\nef";
        let d = Diagnostic::new(text, Span { start: 5, end: 6 }, "X0001", "x");
        assert_eq!((d.line, d.column, d.source.as_str()), (2, 2, "\u{e9}cd"));
        assert_eq!(d.to_string(), "error[X0001]: x\n --> line 2, column 2\n  |\n2 | \u{e9}cd\n  |  ^");
    }
}
