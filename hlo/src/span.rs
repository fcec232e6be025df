//! Locations in the source text.

/// A half-open range of byte offsets in the text that a module was read from. Text is limited to 4 GiB.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// Of entities that no text stands behind (made by a builder or a pass).
    pub const NONE: Span = Span { start: u32::MAX, end: u32::MAX };

    /// The range `start..end`.
    pub fn new(start: usize, end: usize) -> Self {
        let clamp = |n: usize| u32::try_from(n).unwrap_or(u32::MAX - 1);
        Self { start: clamp(start), end: clamp(end) }
    }

    /// Whether this is [`Span::NONE`].
    pub fn is_none(self) -> bool {
        self == Self::NONE
    }

    /// The smallest span that covers both; a `NONE` side is ignored.
    pub fn to(self, other: Span) -> Span {
        if self.is_none() {
            return other;
        }
        if other.is_none() {
            return self;
        }
        Span { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// As a range for slicing the source.
    pub fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// Maps byte offsets to lines and columns. Building it reads the text once; a look-up is a binary search.
#[derive(Debug)]
pub struct LineIndex {
    /// Offset of the first byte of each line.
    starts: Vec<u32>,
}

impl LineIndex {
    /// Indexes `text`.
    pub fn new(text: &str) -> Self {
        let mut starts = vec![0];
        starts.extend(text.bytes().enumerate().filter(|&(_, b)| b == b'\n').map(|(i, _)| i as u32 + 1));
        Self { starts }
    }

    /// Offset of the first byte of a one-based line.
    pub fn line_start(&self, line: usize) -> usize {
        self.starts[line - 1] as usize
    }

    /// One-based line and column (in characters) of a byte offset of the `text` this was built from.
    pub fn line_column(&self, text: &str, offset: u32) -> (u32, u32) {
        let line = self.starts.partition_point(|&s| s <= offset).max(1) - 1;
        let start = self.starts[line] as usize;
        let end = (offset as usize).min(text.len()).max(start);
        let column = text.as_bytes()[start..end].iter().filter(|&&b| b & 0xC0 != 0x80).count();
        (line as u32 + 1, column as u32 + 1)
    }
}
