//! Diagnostics: what is wrong with a program, and where.
//!
//! Every diagnostic has a stable [`Code`] with a page (`hlo explain CODE`), a message that says what was
//! found and what was expected, and spans; each of its texts has at most [`MAX_TEXT_BYTES`]. A stage reports
//! all it finds into a [`Diagnostics`]; it does not stop at the first. Codes: `P` parsing (exit code 3), `V`
//! verification (4), `U` unsupported (5), `R` running (6).

mod abridged;
pub mod codes;
mod render;
pub mod suggest;

pub use abridged::MAX_TEXT_BYTES;
pub use codes::Code;
pub use render::{MAX_RENDERED, render, render_all};

use crate::span::Span;
use abridged::abridged;

/// How bad it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Severity {
    /// The program is wrong or cannot be handled.
    Error,
    /// Worth knowing.
    Warning,
}

/// One finding.
#[derive(Clone, Debug)]
pub struct Diagnostic {
    /// Which kind.
    pub code: Code,
    /// How bad.
    pub severity: Severity,
    /// One sentence without a period: what was found.
    pub message: String,
    /// Where; [`Span::NONE`] if the program has no text.
    pub span: Span,
    /// A word at the caret: what was expected, or inferred.
    pub label: String,
    /// Other spans, with a label each.
    pub related: Vec<(Span, String)>,
    /// Lines below.
    pub notes: Vec<String>,
}

impl Diagnostic {
    /// An error.
    pub fn error(code: Code, span: Span, message: impl Into<String>) -> Self {
        Self {
            code,
            severity: Severity::Error,
            message: abridged(message.into()),
            span,
            label: String::new(),
            related: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// A warning.
    pub fn warning(code: Code, span: Span, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, span, message) }
    }

    /// With a word at the caret.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = abridged(label.into());
        self
    }

    /// With another span.
    #[must_use]
    pub fn related(mut self, span: Span, label: impl Into<String>) -> Self {
        self.related.push((span, abridged(label.into())));
        self
    }

    /// With a line below.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(abridged(note.into()));
        self
    }
}

/// What a stage found. Bounded: past [`Diagnostics::LIMIT`] further ones are only counted.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
    errors: usize,
    dropped: usize,
}

impl Diagnostics {
    /// The most that are kept.
    pub const LIMIT: usize = 1000;

    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        if diagnostic.severity == Severity::Error {
            self.errors += 1;
        }
        if self.list.len() < Self::LIMIT {
            self.list.push(diagnostic);
        } else {
            self.dropped += 1;
        }
    }

    /// Adds all of another list.
    pub fn append(&mut self, other: Diagnostics) {
        self.dropped += other.dropped;
        self.errors += other.errors - other.list.iter().filter(|d| d.severity == Severity::Error).count();
        other.list.into_iter().for_each(|d| self.push(d));
    }

    /// Whether any is an error.
    pub fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// Number of errors, those not kept included.
    pub fn error_count(&self) -> usize {
        self.errors
    }

    /// Number of findings that were not kept.
    pub fn dropped(&self) -> usize {
        self.dropped
    }

    /// Those kept, in the order found.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.list.iter()
    }

    /// The same, to change what they say and where.
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, Diagnostic> {
        self.list.iter_mut()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Sorts by span, errors of one span in the order found.
    pub fn sort(&mut self) {
        self.list.sort_by_key(|d| d.span.start);
    }
}

impl<'a> IntoIterator for &'a Diagnostics {
    type Item = &'a Diagnostic;
    type IntoIter = std::slice::Iter<'a, Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl From<Diagnostic> for Diagnostics {
    fn from(d: Diagnostic) -> Self {
        let mut all = Self::new();
        all.push(d);
        all
    }
}
