//! Scanning of the values inside tokens.

use std::borrow::Cow;

use hlo::diag::codes::parse as codes;
use hlo::diag::{Code, Diagnostic};
use hlo::{Diagnostics, Span};

use crate::token;

/// The result of decoding; the error is boxed because it is rare and large.
pub(crate) type Res<T> = Result<T, Box<Diagnostic>>;

/// An error of decoding.
pub(crate) fn error(
    code: Code,
    span: Span,
    message: impl Into<String>,
    label: impl Into<String>,
) -> Box<Diagnostic> {
    Box::new(Diagnostic::error(code, span, message).label(label))
}

/// A position in a piece of the source text. White space and comments before a token are skipped.
#[derive(Clone)]
pub(crate) struct Cursor<'a> {
    text: &'a str,
    bytes: &'a [u8],
    pos: usize,
    /// How many levels of nesting are still allowed.
    pub(crate) depth: usize,
    limit: usize,
    /// Where a literal gave one value for an array of several.
    pub(crate) implied_zeros: Option<Span>,
    /// How many elements such values may still stand for.
    pub(crate) implied_left: usize,
    /// How many bytes values may still take.
    pub(crate) memory_left: u64,
}

impl<'a> Cursor<'a> {
    /// Over `text[span]`; positions are offsets in `text`.
    pub(crate) fn new(text: &'a str, span: Span, depth: usize) -> Self {
        let range = span.range();
        Self {
            text: &text[..range.end],
            bytes: &text.as_bytes()[..range.end],
            pos: range.start,
            depth,
            limit: depth,
            implied_zeros: None,
            implied_left: crate::literal::MAX_IMPLIED,
            memory_left: u64::MAX,
        }
    }

    /// Counts a level of nesting; leave it by adding one to `depth`.
    pub(crate) fn enter(&mut self) -> Res<()> {
        if self.depth == 0 {
            let message = format!("nested more than {} levels deep", self.limit);
            return Err(error(codes::NESTING_TOO_DEEP, self.here(), message, "too deep"));
        }
        self.depth -= 1;
        Ok(())
    }

    /// The bytes from here to the end.
    pub(crate) fn rest(&self) -> &'a [u8] {
        &self.bytes[self.pos..]
    }

    pub(crate) fn pos(&self) -> usize {
        self.pos
    }

    /// Moves forward by `n` bytes.
    pub(crate) fn bump(&mut self, n: usize) {
        self.pos += n;
    }

    /// Skips white space and comments.
    pub(crate) fn skip(&mut self) {
        if let Some(&b) = self.bytes.get(self.pos)
            && (b <= b' ' || b == b'/')
        {
            self.pos = token::skip_blank(self.bytes, self.pos);
        }
    }

    /// The next byte that is not blank; 0 at the end.
    pub(crate) fn peek(&mut self) -> u8 {
        self.skip();
        self.bytes.get(self.pos).copied().unwrap_or(0)
    }

    /// The byte right here; 0 at the end.
    pub(crate) fn peek_raw(&self) -> u8 {
        self.bytes.get(self.pos).copied().unwrap_or(0)
    }

    pub(crate) fn at_end(&mut self) -> bool {
        self.skip();
        self.pos == self.bytes.len()
    }

    /// Takes `b` if it is next.
    pub(crate) fn eat(&mut self, b: u8) -> bool {
        let found = self.peek() == b && self.pos < self.bytes.len();
        self.pos += usize::from(found);
        found
    }

    /// Takes `s` if it is next.
    pub(crate) fn eat_str(&mut self, s: &str) -> bool {
        self.skip();
        let found = self.rest().starts_with(s.as_bytes());
        if found {
            self.pos += s.len();
        }
        found
    }

    /// The span of what is next, for an error: a word, or one character.
    pub(crate) fn here(&mut self) -> Span {
        let before = self.pos;
        self.skip();
        if self.pos == self.bytes.len() {
            // The end: where something is missing, not after the blanks that follow.
            return Span::new(before, before);
        }
        let start = self.pos;
        let word = self.rest().iter().take_while(|&&b| token::is_name_byte(b)).count();
        let end =
            start + if word > 0 { word } else { self.text[start..].chars().next().map_or(0, char::len_utf8) };
        Span::new(start, end)
    }

    /// What is next, for a message.
    pub(crate) fn found(&mut self) -> String {
        let span = self.here();
        if span.start == span.end { "the end of the value".into() } else { quote(&self.text[span.range()]) }
    }

    pub(crate) fn span_from(&self, start: usize) -> Span {
        Span::new(start, self.pos)
    }

    /// An error at what is next: found something, expected `what`.
    pub(crate) fn unexpected(&mut self, code: Code, what: &str) -> Box<Diagnostic> {
        let found = self.found();
        error(code, self.here(), format!("expected {what}, found {found}"), format!("expected {what}"))
    }

    pub(crate) fn expect(&mut self, b: u8, code: Code) -> Res<()> {
        if self.eat(b) { Ok(()) } else { Err(self.unexpected(code, &format!("`{}`", char::from(b)))) }
    }

    /// Nothing may follow.
    pub(crate) fn finish(&mut self) -> Res<()> {
        if self.at_end() {
            return Ok(());
        }
        let found = self.found();
        let message = format!("{found} after the end of the value");
        Err(error(codes::TRAILING_TEXT, self.here(), message, "expected the end of the value"))
    }

    /// An integer.
    pub(crate) fn int(&mut self) -> Res<i64> {
        self.int_or(codes::BAD_INTEGER)
    }

    /// An integer; `code` is of the error if there is none.
    pub(crate) fn int_or(&mut self, code: Code) -> Res<i64> {
        self.skip();
        let start = self.pos;
        let negative = self.peek_raw() == b'-';
        let mut at = start + usize::from(negative);
        let digits = at;
        let mut value: i64 = 0;
        let mut overflow = false;
        while let Some(d) = self.bytes.get(at).map(|b| b.wrapping_sub(b'0')).filter(|&d| d < 10) {
            let d = i64::from(d);
            let next = value
                .checked_mul(10)
                .and_then(|v| if negative { v.checked_sub(d) } else { v.checked_add(d) });
            match next {
                Some(v) => value = v,
                None => overflow = true,
            }
            at += 1;
        }
        if at == digits {
            return Err(self.unexpected(code, "an integer"));
        }
        if overflow {
            let span = Span::new(start, at);
            let message = format!("{} does not fit 64 bits", quote(&self.text[start..at]));
            return Err(error(codes::INTEGER_OUT_OF_RANGE, span, message, "at most 9223372036854775807"));
        }
        self.pos = at;
        Ok(value)
    }

    /// `[A-Za-z_][A-Za-z0-9_.-]*`; empty if none is next.
    pub(crate) fn word(&mut self) -> &'a str {
        self.skip();
        let start = self.pos;
        if self.peek_raw().is_ascii_alphabetic() || self.peek_raw() == b'_' {
            while self.bytes.get(self.pos).is_some_and(|&b| token::is_name_byte(b)) {
                self.pos += 1;
            }
        }
        &self.text[start..self.pos]
    }

    /// A name with or without `%`.
    pub(crate) fn name(&mut self, code: Code, what: &str) -> Res<(&'a str, Span)> {
        self.skip();
        let start = self.pos;
        self.eat(b'%');
        let word = self.word();
        if word.is_empty() {
            self.pos = start;
            return Err(self.unexpected(code, what));
        }
        Ok((word, self.span_from(start)))
    }

    /// A `key=`.
    pub(crate) fn key(&mut self, code: Code) -> Res<(&'a str, Span)> {
        self.skip();
        let start = self.pos;
        let word = self.word();
        let span = self.span_from(start);
        if word.is_empty() || self.peek_raw() != b'=' {
            self.pos = start;
            return Err(self.unexpected(code, "`key=`"));
        }
        self.pos += 1;
        Ok((word, span))
    }

    /// A string in quotes, unescaped.
    pub(crate) fn string(&mut self, code: Code) -> Res<Cow<'a, str>> {
        self.skip();
        let start = self.pos;
        if !matches!(self.peek_raw(), b'"' | b'\'') {
            return Err(self.unexpected(code, "a string in quotes"));
        }
        let Some(end) = token::string_end(self.bytes, start) else {
            let span = Span::new(start, start + 1);
            return Err(error(codes::UNTERMINATED, span, "string without an end", "starts here"));
        };
        self.pos = end;
        unescape(self.text, start + 1, end - 1)
    }

    /// A number as text: integer, decimal, `inf`, `nan`.
    pub(crate) fn float(&mut self) -> Res<f64> {
        self.skip();
        let start = self.pos;
        while self
            .bytes
            .get(self.pos)
            .is_some_and(|&b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'+' | b'-'))
        {
            self.pos += 1;
        }
        let word = &self.text[start..self.pos];
        let body = word.strip_prefix('-').unwrap_or(word);
        let plain =
            body.starts_with(|c: char| c.is_ascii_digit() || c == '.') || matches!(body, "inf" | "nan");
        match word.parse::<f64>() {
            Ok(v) if plain => Ok(v),
            _ => {
                self.pos = start;
                Err(self.unexpected(codes::BAD_FLOAT, "a decimal number"))
            }
        }
    }

    /// `true` or `false`.
    pub(crate) fn bool(&mut self) -> Res<bool> {
        let start = self.pos;
        match self.word() {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => {
                self.pos = start;
                Err(self.unexpected(codes::BAD_BOOL, "`true` or `false`"))
            }
        }
    }

    /// `open`, elements separated by commas, `close`.
    pub(crate) fn list(
        &mut self,
        open: u8,
        close: u8,
        code: Code,
        mut element: impl FnMut(&mut Self) -> Res<()>,
    ) -> Res<()> {
        self.expect(open, code)?;
        if self.eat(close) {
            return Ok(());
        }
        loop {
            element(self)?;
            if self.eat(close) {
                return Ok(());
            }
            if !self.eat(b',') {
                return Err(self.unexpected(code, &format!("`,` or `{}`", char::from(close))));
            }
        }
    }

    /// `{1,2}` with brackets of any kind.
    pub(crate) fn ints<T: Default + Extend<i64>>(&mut self, open: u8, close: u8, code: Code) -> Res<T> {
        let mut ints = T::default();
        self.list(open, close, code, |c| {
            ints.extend([c.int_or(code)?]);
            Ok(())
        })?;
        Ok(ints)
    }

    /// The bracketed group that is next, verbatim; only braces and double quotes count if `dict`.
    pub(crate) fn group(&mut self, code: Code) -> Res<&'a str> {
        self.skip();
        let start = self.pos;
        let mut depth = 0usize;
        let mut at = start;
        while let Some(&b) = self.bytes.get(at) {
            match b {
                b'{' => depth += 1,
                b'}' => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        self.pos = at + 1;
                        return Ok(&self.text[start..=at]);
                    }
                }
                b'"' => match token::string_end(self.bytes, at) {
                    Some(end) => {
                        at = end;
                        continue;
                    }
                    None => break,
                },
                _ => {}
            }
            if depth == 0 {
                break;
            }
            at += 1;
        }
        Err(self.unexpected(code, "text in braces"))
    }

    /// The source text.
    pub(crate) fn text(&self) -> &'a str {
        self.text
    }
}

/// In backquotes, shortened if long.
pub(crate) fn quote(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("`{}...`", &text[..end]),
        None => format!("`{text}`"),
    }
}

/// A shape for a message, shortened if long.
pub(crate) fn show(shape: &hlo::Shape) -> String {
    let text = shape.to_string();
    match text.char_indices().nth(80) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

/// Undoes the escapes of C in `text[start..end]`.
fn unescape(text: &str, start: usize, end: usize) -> Res<Cow<'_, str>> {
    let raw = &text[start..end];
    if memchr::memchr(b'\\', raw.as_bytes()).is_none() {
        return Ok(Cow::Borrowed(raw));
    }
    let bytes = raw.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut i = 0;
    let digits = |from: usize, most: usize, radix: u32| {
        let n = bytes[from..].iter().take(most).take_while(|&&b| char::from(b).is_digit(radix)).count();
        (u32::from_str_radix(&raw[from..from + n], radix).ok(), from + n)
    };
    while i < bytes.len() {
        if bytes[i] != b'\\' {
            out.push(bytes[i]);
            i += 1;
            continue;
        }
        let (value, next) = match bytes.get(i + 1) {
            Some(b'n') => (Some(u32::from(b'\n')), i + 2),
            Some(b'r') => (Some(u32::from(b'\r')), i + 2),
            Some(b't') => (Some(u32::from(b'\t')), i + 2),
            Some(b'a') => (Some(7), i + 2),
            Some(b'b') => (Some(8), i + 2),
            Some(b'f') => (Some(12), i + 2),
            Some(b'v') => (Some(11), i + 2),
            Some(&b @ (b'?' | b'\'' | b'"' | b'\\')) => (Some(u32::from(b)), i + 2),
            Some(b'0'..=b'7') => digits(i + 1, 3, 8),
            Some(b'x' | b'X') => digits(i + 2, 2, 16),
            Some(&b @ (b'u' | b'U')) => {
                let (value, next) = digits(i + 2, if b == b'u' { 4 } else { 8 }, 16);
                if let Some(c) = value.and_then(char::from_u32) {
                    let mut buffer = [0; 4];
                    out.extend_from_slice(c.encode_utf8(&mut buffer).as_bytes());
                    i = next;
                    continue;
                }
                (None, next)
            }
            _ => (None, i + 1),
        };
        let Some(byte) = value.and_then(|v| u8::try_from(v).ok()) else {
            let span = Span::new(start + i, (start + next).min(end).max(start + i + 1));
            return Err(error(codes::BAD_ESCAPE, span, "unknown escape in a string", "no escape of C"));
        };
        out.push(byte);
        i = next;
    }
    // Octal escapes stand for bytes; together they should be UTF-8, and otherwise nothing better can be kept
    // in text.
    Ok(Cow::Owned(match String::from_utf8(out) {
        Ok(s) => s,
        Err(e) => String::from_utf8_lossy(e.as_bytes()).into_owned(),
    }))
}

/// Takes the value or records the error.
pub(crate) fn keep<T>(result: Res<T>, diagnostics: &mut Diagnostics) -> Option<T> {
    match result {
        Ok(v) => Some(v),
        Err(d) => {
            diagnostics.push(*d);
            None
        }
    }
}
