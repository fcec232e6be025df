//! Diagnostics as text for people.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use super::{Diagnostic, Diagnostics, Severity};
use crate::span::{LineIndex, Span};

/// The maximum number of diagnostics that [`render_all`] writes out.
pub const MAX_RENDERED: usize = 50;

/// Longest piece of a source line that is shown; the rest of a longer one (a constant of a megabyte) is
/// elided around the span of interest.
const MAX_LINE: usize = 400;

/// Renders one diagnostic against the text that it was found in. `color` adds ANSI escapes.
pub fn render(diagnostic: &Diagnostic, file: &str, source: &str, lines: &LineIndex, color: bool) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let title = level.primary_title(diagnostic.message.as_str()).id(diagnostic.code.as_str());
    let mut group = Group::with_title(title);
    let mut annotations: Vec<(Span, &str, AnnotationKind)> =
        vec![(diagnostic.span, &diagnostic.label, AnnotationKind::Primary)];
    annotations.extend(diagnostic.related.iter().map(|(s, l)| (*s, l.as_str(), AnnotationKind::Context)));
    annotations.retain(|p| !p.0.is_none() && p.0.end as usize <= source.len());
    // One snippet with the lines that matter, each truncated to a bearable length; annotate-snippets folds
    // what lies between.
    let (text, first_line, mapped) = excerpt(source, lines, &annotations);
    if !mapped.is_empty() {
        let mut snippet = Snippet::source(text).path(file).line_start(first_line).fold(true);
        for (range, label, kind) in mapped {
            let annotation = kind.span(range);
            snippet = snippet.annotation(if label.is_empty() { annotation } else { annotation.label(label) });
        }
        group = group.element(snippet);
    }
    for note in &diagnostic.notes {
        group = group.element(Level::NOTE.message(note.as_str()));
    }
    let renderer = if color { Renderer::styled() } else { Renderer::plain() };
    let mut out = renderer.term_width(160).render(&[group]);
    out.push('\n');
    out
}

/// The text from the first to the last line of interest with long lines truncated, its first line's number,
/// and the spans in it.
#[allow(clippy::type_complexity, reason = "a private helper with one caller")]
fn excerpt<'a>(
    source: &str,
    lines: &LineIndex,
    annotations: &[(Span, &'a str, AnnotationKind)],
) -> (String, usize, Vec<(std::ops::Range<usize>, &'a str, AnnotationKind)>) {
    let line_of = |offset: u32| lines.line_column(source, offset).0 as usize;
    let Some(first) = annotations.iter().map(|p| line_of(p.0.start)).min() else {
        return (String::new(), 1, Vec::new());
    };
    let mut wanted: Vec<(usize, Vec<usize>)> = Vec::new();
    for (i, annotation) in annotations.iter().enumerate() {
        let line = line_of(annotation.0.start);
        match wanted.iter_mut().find(|w| w.0 == line) {
            Some(w) => w.1.push(i),
            None => wanted.push((line, vec![i])),
        }
    }
    wanted.sort();
    let mut text = String::new();
    let mut mapped: Vec<Option<(std::ops::Range<usize>, &str, AnnotationKind)>> =
        vec![None; annotations.len()];
    let mut line = first;
    for (number, on_line) in wanted {
        // Far apart, lines between are folded away whatever they hold; a few are shown.
        while line < number {
            if number - line <= 2 {
                let between =
                    source[lines.line_start(line)..].split('\n').next().unwrap_or("").trim_end_matches('\r');
                let mut end = between.len().min(MAX_LINE);
                while !between.is_char_boundary(end) {
                    end -= 1;
                }
                text.push_str(&between[..end]);
            }
            text.push('\n');
            line += 1;
        }
        let start = lines.line_start(number);
        let whole = source[start..].split('\n').next().unwrap_or("").trim_end_matches('\r');
        let low = on_line.iter().map(|&i| annotations[i].0.start as usize - start).min().unwrap_or(0);
        let mut from = if whole.len() <= MAX_LINE { 0 } else { low.saturating_sub(MAX_LINE / 4) };
        while !whole.is_char_boundary(from.min(whole.len())) {
            from -= 1;
        }
        let mut to = (from + MAX_LINE).min(whole.len());
        while !whole.is_char_boundary(to) {
            to -= 1;
        }
        let base = text.len();
        let prefix = if from > 0 { "..." } else { "" };
        text.push_str(prefix);
        text.push_str(&whole[from.min(to)..to]);
        if to < whole.len() {
            text.push_str("...");
        }
        let limit = text.len();
        for i in on_line {
            let (span, label, kind) = &annotations[i];
            let at = |offset: u32| {
                (base + prefix.len() + (offset as usize - start).saturating_sub(from)).min(limit)
            };
            let begin = at(span.start);
            let end = at(span.end.max(span.start)).max(begin);
            mapped[i] = Some((begin..end, label, *kind));
        }
        text.push('\n');
        line += 1;
    }
    (text, first, mapped.into_iter().flatten().collect())
}

/// Renders a list, the first [`MAX_RENDERED`] of it, each followed by an empty line.
pub fn render_all(diagnostics: &Diagnostics, file: &str, source: &str, color: bool) -> String {
    let lines = LineIndex::new(source);
    let mut out = String::new();
    for d in diagnostics.iter().take(MAX_RENDERED) {
        out.push_str(&render(d, file, source, &lines, color));
        out.push('\n');
    }
    let hidden = diagnostics.iter().len().saturating_sub(MAX_RENDERED) + diagnostics.dropped();
    if hidden > 0 {
        out.push_str(&format!("... and {hidden} more\n"));
    }
    out
}
