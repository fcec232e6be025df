//! Reading the primitives of bytecode: bytes, variable-width integers, sections, with the offset of whatever
//! is wrong.
//!
//! **Invariant:** nothing is allocated for a count that the remaining bytes cannot hold ([`Cursor::count`]).

use hlo::Span;
use hlo::diag::codes::bytecode as codes;
use hlo::diag::{Code, Diagnostic};

use super::section::Section;

/// A result, or the first thing that is wrong.
pub(super) type Fallible<T> = Result<T, Box<Diagnostic>>;

/// The byte that pads to an alignment.
const PADDING: u8 = 0xCB;

/// A position in a range of the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    file: &'a [u8],
    at: usize,
    end: usize,
    /// Where the section starts, so that errors can count from there.
    start: usize,
    section: Section,
}

/// A section as it was found.
#[derive(Clone, Copy, Debug)]
pub(super) struct SectionBytes<'a> {
    /// Its kind.
    pub(super) section: Section,
    /// Its bytes.
    pub(super) cursor: Cursor<'a>,
    /// Where its header starts.
    pub(super) header: usize,
}

impl<'a> Cursor<'a> {
    /// At the start of a file.
    pub(super) fn new(file: &'a [u8]) -> Self {
        Self { file, at: 0, end: file.len(), start: 0, section: Section::Header }
    }

    /// Over a range within this one's file, which the caller took from it.
    pub(super) fn over(self, start: usize, end: usize) -> Self {
        debug_assert!(start <= end && end <= self.file.len(), "invariant: ranges come from the file");
        Self { at: start, end, ..self }
    }

    /// The offset in the file.
    pub(super) fn offset(&self) -> usize {
        self.at
    }

    /// The offset of the end of the range.
    pub(super) fn end(&self) -> usize {
        self.end
    }

    /// Bytes that are left.
    pub(super) fn remaining(&self) -> usize {
        self.end - self.at
    }

    /// Whether nothing is left.
    pub(super) fn is_empty(&self) -> bool {
        self.at == self.end
    }

    /// From an offset up to here.
    pub(super) fn span_from(&self, start: usize) -> Span {
        Span::new(start, self.at)
    }

    /// An error at a range of the file.
    pub(super) fn error_at(&self, code: Code, span: Span, message: impl Into<String>) -> Box<Diagnostic> {
        let offset = (span.start as usize).saturating_sub(self.start);
        Box::new(Diagnostic::error(code, span, message).note(format!(
            "at byte {} of the file, byte {offset} of the {}",
            span.start,
            self.section.name()
        )))
    }

    /// An error at what was read since an offset.
    pub(super) fn error(&self, code: Code, start: usize, message: impl Into<String>) -> Box<Diagnostic> {
        self.error_at(code, Span::new(start, self.at.max(start + 1).min(self.file.len().max(start))), message)
    }

    #[cold]
    fn ends_early(&self, wanted: &str) -> Box<Diagnostic> {
        let message = format!("the {} ends where {wanted} should follow", self.section.name());
        self.error(codes::ENDS_EARLY, self.at, message)
    }

    /// One byte.
    #[inline]
    pub(super) fn byte(&mut self) -> Fallible<u8> {
        if self.at == self.end {
            return Err(self.ends_early("a byte"));
        }
        let byte = self.file[self.at];
        self.at += 1;
        Ok(byte)
    }

    /// So many bytes.
    #[inline]
    pub(super) fn bytes(&mut self, length: u64) -> Fallible<&'a [u8]> {
        if length > self.remaining() as u64 {
            return Err(self.ends_early(&format!("{length} bytes ({} are left)", self.remaining())));
        }
        let bytes = &self.file[self.at..self.at + length as usize];
        self.at += length as usize;
        Ok(bytes)
    }

    /// A variable-width integer: the trailing zeros of the first byte count the bytes that follow.
    #[inline]
    pub(super) fn varint(&mut self) -> Fallible<u64> {
        if self.at == self.end {
            return Err(self.ends_early("an integer"));
        }
        let first = self.file[self.at];
        if first & 1 == 1 {
            self.at += 1;
            return Ok(u64::from(first >> 1));
        }
        self.long_varint(first)
    }

    fn long_varint(&mut self, first: u8) -> Fallible<u64> {
        let more = first.trailing_zeros() as usize;
        if more >= self.remaining() {
            return Err(self.ends_early(&format!("an integer of {} bytes", more + 1)));
        }
        let mut word = [0u8; 8];
        if first == 0 {
            word.copy_from_slice(&self.file[self.at + 1..self.at + 9]);
            self.at += 9;
            return Ok(u64::from_le_bytes(word));
        }
        word[..=more].copy_from_slice(&self.file[self.at..=self.at + more]);
        self.at += more + 1;
        Ok(u64::from_le_bytes(word) >> (more + 1))
    }

    /// A signed integer in zigzag form.
    #[inline]
    pub(super) fn signed(&mut self) -> Fallible<i64> {
        let n = self.varint()?;
        Ok((n >> 1) as i64 ^ -((n & 1) as i64))
    }

    /// An integer and the flag in its lowest bit.
    #[inline]
    pub(super) fn flagged(&mut self) -> Fallible<(u64, bool)> {
        let n = self.varint()?;
        Ok((n >> 1, n & 1 == 1))
    }

    /// Checks that `count` things of at least one byte each can follow.
    #[inline]
    pub(super) fn count(&self, count: u64, start: usize, what: &str) -> Fallible<usize> {
        if count > self.remaining() as u64 {
            let message = format!("{count} {what} cannot follow, only {} bytes do", self.remaining());
            return Err(self.error(codes::ENDS_EARLY, start, message));
        }
        Ok(count as usize)
    }

    /// The length of a list whose elements take at least one byte each.
    #[inline]
    pub(super) fn list(&mut self, what: &str) -> Fallible<usize> {
        let start = self.at;
        let count = self.varint()?;
        self.count(count, start, what)
    }

    /// An index below `limit`.
    #[inline]
    pub(super) fn index(&mut self, limit: usize, what: &str) -> Fallible<usize> {
        let start = self.at;
        let index = self.varint()?;
        self.check_index(index, limit, start, what)
    }

    /// An index below `limit`, and the flag in its lowest bit.
    #[inline]
    pub(super) fn flagged_index(&mut self, limit: usize, what: &str) -> Fallible<(usize, bool)> {
        let start = self.at;
        let (index, flag) = self.flagged()?;
        Ok((self.check_index(index, limit, start, what)?, flag))
    }

    /// `index`, which was read at `start`, if it is below `limit`.
    #[inline]
    pub(super) fn check_index(&self, index: u64, limit: usize, start: usize, what: &str) -> Fallible<usize> {
        if index < limit as u64 { Ok(index as usize) } else { Err(self.bad_index(index, limit, start, what)) }
    }

    #[cold]
    fn bad_index(&self, index: u64, limit: usize, start: usize, what: &str) -> Box<Diagnostic> {
        let message = match limit {
            0 => format!("{what} {index} is named, but there is none"),
            _ => format!("{what} {index} is named, but the last one is {}", limit - 1),
        };
        self.error(codes::INDEX_OUT_OF_RANGE, start, message)
    }

    /// Text up to a zero byte, which is not part of it.
    pub(super) fn until_zero(&mut self, what: &str) -> Fallible<&'a [u8]> {
        let rest = &self.file[self.at..self.end];
        let Some(length) = memchr::memchr(0, rest) else {
            return Err(self.ends_early(&format!("the zero byte after {what}")));
        };
        self.at += length + 1;
        Ok(&rest[..length])
    }

    /// Skips padding up to a multiple of `alignment`, counted from the start of the file.
    pub(super) fn align(&mut self, alignment: u64, start: usize) -> Fallible<()> {
        if !alignment.is_power_of_two() || alignment > 1 << 31 {
            let message = format!("the alignment {alignment} is not a power of two of at most 2^31");
            return Err(self.error(codes::BAD_SECTION, start, message));
        }
        while !(self.at as u64).is_multiple_of(alignment) {
            let at = self.at;
            let byte = self.byte()?;
            if byte != PADDING {
                let message = format!("padding is 0x{PADDING:02x}, but this byte is 0x{byte:02x}");
                return Err(self.error(codes::BAD_SECTION, at, message));
            }
        }
        Ok(())
    }

    /// A section with its header.
    pub(super) fn section(&mut self) -> Fallible<SectionBytes<'a>> {
        let header = self.at;
        let first = self.byte()?;
        let length = self.varint()?;
        let Some(section) = Section::from_id(first & 0x7F) else {
            let message =
                format!("sections have ids up to {}, this one has {}", Section::LAST_ID, first & 0x7F);
            return Err(self.error(codes::BAD_SECTION, header, message));
        };
        if first & 0x80 != 0 {
            let start = self.at;
            let alignment = self.varint()?;
            self.align(alignment, start)?;
        }
        if length > self.remaining() as u64 {
            let message =
                format!("the {} has {length} bytes, but only {} follow", section.name(), self.remaining());
            return Err(self.error(codes::ENDS_EARLY, header, message));
        }
        let start = self.at;
        self.at += length as usize;
        let cursor = Self { file: self.file, at: start, end: self.at, start, section };
        Ok(SectionBytes { section, cursor, header })
    }

    /// That nothing is left.
    pub(super) fn finish(&self, code: Code, what: &str) -> Fallible<()> {
        if self.is_empty() {
            return Ok(());
        }
        let message = format!("{} bytes are left after {what}", self.remaining());
        Err(self.error_at(code, Span::new(self.at, self.end), message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_of_every_width() {
        // By hand from the format's description: the value above the marker bits, little-endian.
        let cases: [(&[u8], u64); 7] = [
            (&[0x01], 0),
            (&[0xFF], 127),
            (&[0x02, 0x02], 128),
            (&[0x04, 0x00, 0x02], 1 << 14),
            (&[0x80, 1, 0, 0, 0, 0, 0, 0], 1),
            (&[0x00, 1, 0, 0, 0, 0, 0, 0, 0x80], 1 | 1 << 63),
            (&[0x00, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF], u64::MAX),
        ];
        for (bytes, value) in cases {
            let mut c = Cursor::new(bytes);
            assert_eq!(c.varint().expect("complete"), value, "{bytes:?}");
            assert!(c.is_empty());
            for cut in 0..bytes.len() {
                let error = Cursor::new(&bytes[..cut]).varint().expect_err("cut");
                assert_eq!(error.code, codes::ENDS_EARLY);
            }
        }
    }

    #[test]
    fn signed_integers_are_in_zigzag_form() {
        for (byte, value) in [(0x01, 0), (0x03, -1), (0x05, 1), (0x07, -2)] {
            assert_eq!(Cursor::new(&[byte]).signed().expect("complete"), value);
        }
        let least = [0x00, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF];
        assert_eq!(Cursor::new(&least).signed().expect("complete"), i64::MIN);
    }

    #[test]
    fn counts_are_checked_against_what_is_left() {
        let mut c = Cursor::new(&[0xFF, 1, 1]);
        let error = c.list("attributes").expect_err("127 do not fit");
        assert_eq!(error.message, "127 attributes cannot follow, only 2 bytes do");
        assert_eq!((error.span.start, error.span.end), (0, 1));
    }
}
