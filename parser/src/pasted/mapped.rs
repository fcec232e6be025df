//! A text made out of another one by leaving out and replacing pieces, and where each of its bytes came from.

use std::ops::Range;

use hlo::Span;

/// Bytes that came from consecutive bytes of the original.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Run {
    /// Offset of the first byte here.
    here: u32,
    /// Offset of that byte in the original.
    original: u32,
}

/// A text with the offsets of its bytes in the original. A run ends where the next one begins.
#[derive(Clone, Debug)]
pub(super) struct Mapped {
    pub(super) text: String,
    runs: Vec<Run>,
}

impl Mapped {
    /// The original itself.
    pub(super) fn same(text: &str) -> Self {
        Self { text: text.to_owned(), runs: vec![Run { here: 0, original: 0 }] }
    }

    /// Where the byte at this offset came from.
    fn original(&self, here: usize) -> usize {
        let here = here as u32;
        let after = self.runs.partition_point(|run| run.here <= here);
        match after.checked_sub(1).map(|i| self.runs[i]) {
            Some(run) => (run.original + (here - run.here)) as usize,
            None => 0,
        }
    }

    /// A span of this text as a span of the original, whole characters of it.
    pub(super) fn span(&self, span: Span, original: &str) -> Span {
        if span.is_none() {
            return span;
        }
        let (mut start, mut end) = (self.original(span.start as usize), original.len());
        if (span.end as usize) <= self.text.len() {
            end = if span.end > span.start { self.original(span.end as usize - 1) + 1 } else { start };
        }
        start = start.min(original.len());
        end = end.clamp(start, original.len());
        while !original.is_char_boundary(start) {
            start -= 1;
        }
        while !original.is_char_boundary(end) {
            end += 1;
        }
        Span::new(start, end)
    }
}

/// Makes a text out of a mapped one, from its beginning to its end.
pub(super) struct Rewriter<'a> {
    from: &'a Mapped,
    made: Mapped,
    /// As far as the text is kept, replaced or left out.
    done: usize,
}

impl<'a> Rewriter<'a> {
    pub(super) fn new(from: &'a Mapped) -> Self {
        Self { from, made: Mapped { text: String::new(), runs: Vec::new() }, done: 0 }
    }

    fn run(&mut self, original: usize) {
        let run = Run { here: self.made.text.len() as u32, original: original as u32 };
        match self.made.runs.last() {
            Some(last) if last.here == run.here => {
                self.made.runs.pop();
            }
            Some(last) if last.original.checked_sub(last.here) == run.original.checked_sub(run.here) => {
                return;
            }
            _ => {}
        }
        self.made.runs.push(run);
    }

    /// Keeps what comes before `at`.
    pub(super) fn keep_to(&mut self, at: usize) {
        if at <= self.done {
            return;
        }
        let Range { start, end } = self.done..at;
        self.run(self.from.original(start));
        let first = self.from.runs.partition_point(|run| run.here as usize <= start);
        let base = self.made.text.len();
        for run in self.from.runs[first..].iter().take_while(|run| (run.here as usize) < end) {
            self.made
                .runs
                .push(Run { here: (base + run.here as usize - start) as u32, original: run.original });
        }
        self.made.text.push_str(&self.from.text[start..end]);
        self.done = end;
    }

    /// Leaves out what comes before `at`.
    pub(super) fn skip_to(&mut self, at: usize) {
        self.done = self.done.max(at);
    }

    /// Replaces a range by a text; what comes before is kept.
    pub(super) fn replace(&mut self, range: Range<usize>, with: &str) {
        self.keep_to(range.start);
        if !with.is_empty() {
            self.run(self.from.original(range.start));
            self.made.text.push_str(with);
        }
        self.done = self.done.max(range.end);
    }

    /// Keeps the rest.
    pub(super) fn finish(mut self) -> Mapped {
        self.keep_to(self.from.text.len());
        self.made
    }

    /// Leaves out the rest.
    pub(super) fn end(self) -> Mapped {
        self.made
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_know_where_they_came_from() {
        let original = "aa&lt;bb\u{201c}cc\u{201d}dd";
        let first = Mapped::same(original);
        let mut rewriter = Rewriter::new(&first);
        rewriter.replace(2..6, "<");
        let second = rewriter.finish();
        assert_eq!(second.text, "aa<bb\u{201c}cc\u{201d}dd");
        let mut rewriter = Rewriter::new(&second);
        rewriter.skip_to(1);
        rewriter.replace(5..8, "\"");
        rewriter.replace(10..13, "\"");
        let third = rewriter.finish();
        assert_eq!(third.text, "a<bb\"cc\"dd");
        let back = |start: usize, end: usize| &original[third.span(Span::new(start, end), original).range()];
        assert_eq!(back(0, 1), "a");
        assert_eq!(back(2, 4), "bb");
        assert_eq!(back(4, 8), "\u{201c}cc\u{201d}");
        assert_eq!(back(8, 10), "dd");
        assert_eq!(back(1, 1), "");
    }
}
