//! The buffer that everything is printed into.
//!
//! Printing a module is appending short pieces, millions of them, so the buffer is a byte vector with
//! `#[inline]` appends of whole strings and of ASCII, and `fmt` is kept out. Invariant: the bytes are UTF-8,
//! because only whole `str`s and ASCII bytes go in; so is every prefix that ends at a [`Text::checkpoint`].

use std::fmt;

/// How much is collected before a sink gets it.
const CHUNK: usize = 1 << 16;

/// Text being written, perhaps on its way to a sink.
pub(crate) struct Text<'s> {
    bytes: Vec<u8>,
    sink: Option<&'s mut dyn fmt::Write>,
    result: fmt::Result,
    flushed: usize,
}

impl<'s> Text<'s> {
    /// Text that stays in memory.
    pub(crate) fn new() -> Self {
        Self { bytes: Vec::new(), sink: None, result: Ok(()), flushed: 0 }
    }

    /// Text that goes to `sink` in pieces of about 64 KiB.
    pub(crate) fn to_sink(sink: &'s mut dyn fmt::Write) -> Self {
        Self { bytes: Vec::with_capacity(2 * CHUNK), sink: Some(sink), result: Ok(()), flushed: 0 }
    }

    /// Reserves `n` more bytes, where nothing is flushed away.
    pub(crate) fn reserve(&mut self, n: usize) {
        if self.sink.is_none() {
            self.bytes.reserve(n);
        }
    }

    /// Bytes written so far, flushed ones included.
    pub(crate) fn len(&self) -> usize {
        self.flushed + self.bytes.len()
    }

    /// What was written.
    pub(crate) fn into_string(self) -> String {
        String::from_utf8(self.bytes).expect("invariant: only whole strings and ASCII are appended")
    }

    /// Hands everything over to the sink.
    pub(crate) fn finish(mut self) -> fmt::Result {
        self.flush();
        self.result
    }

    /// A point at which the text so far may go to the sink: between two characters, called often enough to
    /// bound the buffer.
    #[inline]
    pub(crate) fn checkpoint(&mut self) {
        if self.bytes.len() >= CHUNK && self.sink.is_some() {
            self.flush();
        }
    }

    fn flush(&mut self) {
        if let Some(sink) = &mut self.sink {
            let text =
                str::from_utf8(&self.bytes).expect("invariant: only whole strings and ASCII are appended");
            if self.result.is_ok() {
                self.result = sink.write_str(text);
            }
            self.flushed += self.bytes.len();
            self.bytes.clear();
        }
    }

    /// Appends a string.
    #[inline]
    pub(crate) fn str(&mut self, s: &str) {
        self.bytes.extend_from_slice(s.as_bytes());
    }

    /// Appends an ASCII character.
    #[inline]
    pub(crate) fn byte(&mut self, b: u8) {
        debug_assert!(b.is_ascii());
        self.bytes.push(b);
    }

    /// Appends ASCII characters.
    #[inline]
    pub(crate) fn ascii(&mut self, s: &[u8]) {
        debug_assert!(s.is_ascii());
        self.bytes.extend_from_slice(s);
    }

    /// Appends `true` or `false`.
    pub(crate) fn bool(&mut self, b: bool) {
        self.str(if b { "true" } else { "false" });
    }

    /// Appends an integer.
    #[inline]
    pub(crate) fn int(&mut self, n: i64) {
        if n < 0 {
            self.byte(b'-');
        }
        self.uint(n.unsigned_abs());
    }

    /// Appends an integer.
    #[inline]
    pub(crate) fn uint(&mut self, n: u64) {
        if n < 10 {
            self.bytes.push(b'0' + n as u8);
            return;
        }
        let mut digits = [0u8; 20];
        let first = write_digits(&mut digits, n);
        self.bytes.extend_from_slice(&digits[first..]);
    }

    /// Appends integers, separated by commas.
    pub(crate) fn ints(&mut self, ints: &[i64]) {
        self.join(ints, ",", |text, &n| text.int(n));
    }

    /// Appends integers in braces, separated by commas.
    pub(crate) fn braced_ints(&mut self, ints: &[i64]) {
        self.byte(b'{');
        self.ints(ints);
        self.byte(b'}');
    }

    /// Appends items with a separator between them.
    #[inline]
    pub(crate) fn join<T>(&mut self, items: &[T], separator: &str, mut each: impl FnMut(&mut Self, &T)) {
        let mut items = items.iter();
        if let Some(first) = items.next() {
            each(self, first);
        }
        for item in items {
            self.str(separator);
            each(self, item);
        }
    }

    /// Appends items separated by `, `, with `/*index=N*/` before every fifth, as XLA does in long lists.
    #[inline]
    pub(crate) fn indexed_list<T>(&mut self, items: &[T], mut each: impl FnMut(&mut Self, &T)) {
        for (i, item) in items.iter().enumerate() {
            if i > 0 {
                self.str(", ");
                if i % 5 == 0 {
                    self.str("/*index=");
                    self.uint(i as u64);
                    self.str("*/");
                }
            }
            each(self, item);
        }
    }

    /// Appends a string in double quotes, escaped as C strings are (XLA: `absl::CEscape`: octal for what is
    /// not printable ASCII).
    pub(crate) fn quoted(&mut self, s: &str) {
        self.byte(b'"');
        let bytes = s.as_bytes();
        let mut plain = 0;
        for (i, &b) in bytes.iter().enumerate() {
            let escaped: &[u8] = match b {
                b'\n' => b"\\n",
                b'\r' => b"\\r",
                b'\t' => b"\\t",
                b'"' => b"\\\"",
                b'\'' => b"\\'",
                b'\\' => b"\\\\",
                b' '..=b'~' => continue,
                _ => &[b'\\', b'0' + (b >> 6), b'0' + (b >> 3 & 7), b'0' + (b & 7)],
            };
            // Everything from `plain` up to here is printable ASCII.
            self.ascii(&bytes[plain..i]);
            self.ascii(escaped);
            plain = i + 1;
        }
        self.ascii(&bytes[plain..]);
        self.byte(b'"');
    }
}

/// Pairs of digits, so that two are written at a time.
const PAIRS: [u8; 200] = {
    let mut pairs = [0; 200];
    let mut i = 0;
    while i < 100 {
        pairs[2 * i] = b'0' + (i / 10) as u8;
        pairs[2 * i + 1] = b'0' + (i % 10) as u8;
        i += 1;
    }
    pairs
};

/// Writes the decimal digits of `n` at the end of `digits` and returns where they begin.
pub(crate) fn write_digits(digits: &mut [u8; 20], mut n: u64) -> usize {
    let mut at = digits.len();
    while n >= 100 {
        let pair = 2 * (n % 100) as usize;
        n /= 100;
        at -= 2;
        digits[at..at + 2].copy_from_slice(&PAIRS[pair..pair + 2]);
    }
    if n >= 10 {
        let pair = 2 * n as usize;
        at -= 2;
        digits[at..at + 2].copy_from_slice(&PAIRS[pair..pair + 2]);
    } else {
        at -= 1;
        digits[at] = b'0' + n as u8;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(f: impl FnOnce(&mut Text<'_>)) -> String {
        let mut text = Text::new();
        f(&mut text);
        text.into_string()
    }

    #[test]
    fn integers() {
        for n in [0, 1, 9, 10, 99, 100, 101, 12_345, -1, -10, -987_654, i64::MAX, i64::MIN] {
            assert_eq!(made(|t| t.int(n)), n.to_string());
        }
        assert_eq!(made(|t| t.uint(u64::MAX)), u64::MAX.to_string());
    }

    #[test]
    fn escapes() {
        // absl::CEscape: three octal digits for bytes that are not printable ASCII.
        assert_eq!(made(|t| t.quoted("a\"b'c\\d\n\t\r")), r#""a\"b\'c\\d\n\t\r""#);
        assert_eq!(made(|t| t.quoted("é\u{1}\u{7f}")), r#""\303\251\001\177""#);
        assert_eq!(made(|t| t.quoted("")), r#""""#);
    }

    #[test]
    fn long_lists_are_numbered() {
        let items: Vec<i64> = (0..11).collect();
        assert_eq!(
            made(|t| t.indexed_list(&items, |t, &i| t.int(i))),
            "0, 1, 2, 3, 4, /*index=5*/5, 6, 7, 8, 9, /*index=10*/10"
        );
    }

    #[test]
    fn a_sink_gets_everything_once() {
        let mut sink = String::new();
        let mut text = Text::to_sink(&mut sink);
        let mut expected = String::new();
        for i in 0..40_000 {
            text.str("é");
            text.int(i);
            text.checkpoint();
            expected += &format!("é{i}");
        }
        assert_eq!(text.len(), expected.len());
        text.finish().unwrap();
        assert_eq!(sink, expected);
    }
}
