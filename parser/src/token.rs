//! Text to tokens.
//!
//! The tokens are coarse: a whole shape, `name =`, `key=value` with its value's raw text, and `constant(...)`
//! with its literal's raw text are one token each. What stands inside is decoded during lowering, when the
//! opcode and the shape are known; so the grammar knows no opcode and no attribute, and a literal of a
//! gigabyte costs one token.
//!
//! **Invariants:** a token is a kind and a byte range, nothing is copied; the range starts and ends at
//! character boundaries; scanning is linear in the text and needs no stack however deep the nesting is; an
//! error is a [`Tok::Bad`] token (with a [`LexError`] at the same offset), never the end of the stream.

use hlo::{AttrKey, AttrKind, Span};
use logos::Logos;
use rustc_hash::FxHashMap;
use std::sync::LazyLock;

/// Kinds of tokens.
#[derive(Logos, Clone, Copy, PartialEq, Eq, Debug)]
#[logos(skip r"[ \t\r\n]+")]
#[logos(skip(r"//[^\r\n]*", allow_greedy = true))]
#[logos(skip r"/\*([^*]|\*+[^*/])*\*+/")]
pub(crate) enum Tok {
    /// `HloModule`
    #[token("HloModule")]
    Module,
    /// `ENTRY`
    #[token("ENTRY")]
    Entry,
    /// `FileNames` and all tables of source locations that follow it.
    #[regex("FileNames|FunctionNames|FileLocations|StackFrames")]
    Tables,
    /// `name =`, `ROOT %name =`. Nothing else contains an equals sign that is not part of a larger token, so
    /// this token begins an instruction, and errors are recovered from at it. A bare name needs a space
    /// before `=` (without one it is an attribute), as in XLA.
    #[regex(r"(ROOT[ \t\r\n]+)?%[A-Za-z_][A-Za-z0-9_.\-]*[ \t\r\n]*=")]
    #[regex(r"[A-Za-z_][A-Za-z0-9_.\-]*[ \t\r\n]+=")]
    #[regex(r"ROOT[ \t\r\n]+[A-Za-z_][A-Za-z0-9_.\-]*[ \t\r\n]*=", priority = 20)]
    Def,
    /// `%name`, `%tuple#1`
    #[regex(r"%[A-Za-z_][A-Za-z0-9_.\-]*(#[0-9]+)*")]
    Name,
    /// `name`
    #[regex(r"[A-Za-z_][A-Za-z0-9_.\-]*(#[0-9]+)*")]
    Ident,
    /// `name:` in a signature.
    #[regex(r"[A-Za-z_][A-Za-z0-9_.\-]*:")]
    Param,
    /// A shape of any kind, with its layout.
    #[regex(r"[A-Za-z][A-Za-z0-9_]*\[")]
    Shape,
    /// `key=value`; the comma before it belongs to it, but is not in its range.
    #[regex(r"[A-Za-z_][A-Za-z0-9_.\-]*=")]
    Attr,
    /// `key=` before a computation in braces.
    AttrNested,
    /// `key=` before a list with computations in braces.
    AttrList,
    /// `constant(...)`
    Constant,
    /// A number.
    #[regex(r"-?[0-9][A-Za-z0-9_.]*")]
    Number,
    /// A string where none can stand.
    #[regex(r#""([^"\\]|\\.)*""#)]
    Str,
    /// `(`
    #[token("(")]
    LParen,
    /// `)`
    #[token(")")]
    RParen,
    /// `{`
    #[token("{")]
    LBrace,
    /// `}`
    #[token("}")]
    RBrace,
    /// `,`
    #[token(",")]
    Comma,
    /// `->`
    #[token("->")]
    Arrow,
    /// Something else; a [`LexError`] says what.
    Bad,
}

/// What is wrong with a [`Tok::Bad`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LexErrorKind {
    /// A character that begins no token.
    Character,
    /// An opening bracket without its closing one before the end of the text or of the instruction; the span
    /// is that of the bracket.
    Unclosed,
    /// A closing bracket of another kind than the opening one.
    Mismatched {
        /// The opening one.
        open: Span,
    },
    /// A string or comment without an end.
    Unterminated,
    /// `key=value` that is not after a comma.
    NoComma,
}

/// An error of the lexer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LexError {
    /// Where the [`Tok::Bad`] starts.
    pub(crate) token: u32,
    /// The span to show.
    pub(crate) span: Span,
    /// What it is.
    pub(crate) kind: LexErrorKind,
}

/// How far a search for a closing bracket or quote may look once searches in vain have used up their budget.
const VAIN_WINDOW: usize = 256;

/// A spanned token as the parser wants it.
pub(crate) type Spanned = Result<(u32, Tok, u32), ()>;

/// The lexer.
pub(crate) struct Lexer<'s> {
    text: &'s str,
    inner: logos::Lexer<'s, Tok>,
    previous: Option<Tok>,
    brackets: Vec<(u8, u32)>,
    /// How many bytes searches for closing brackets and quotes may still look at in vain: a text full of
    /// unclosed brackets must not take quadratic time.
    vain: usize,
    /// What was wrong with each [`Tok::Bad`] so far, in order.
    pub(crate) errors: Vec<LexError>,
    /// Bytes that what was read so far takes at most, and how many it may take.
    pub(crate) taken: u64,
    memory_bytes: u64,
    /// Where it is more: nothing is read after that.
    pub(crate) exhausted: Option<Span>,
}

static COMPUTATION_KEYS: LazyLock<FxHashMap<&'static str, AttrKind>> = LazyLock::new(|| {
    let called = |k: &&AttrKey| matches!(k.kind(), AttrKind::Computation | AttrKind::Computations);
    AttrKey::ALL.iter().filter(called).map(|k| (k.text(), k.kind())).collect()
});

/// Whether the values of this key name computations.
pub(crate) fn calls(key: &str) -> bool {
    COMPUTATION_KEYS.contains_key(key)
}

impl<'s> Lexer<'s> {
    pub(crate) fn new(text: &'s str, memory_bytes: u64) -> Self {
        Self {
            text,
            inner: Tok::lexer(text),
            previous: None,
            brackets: Vec::new(),
            vain: text.len().saturating_mul(8),
            errors: Vec::new(),
            taken: 0,
            memory_bytes,
            exhausted: None,
        }
    }

    fn bad(&mut self, token: usize, span: Span, kind: LexErrorKind) -> Tok {
        self.errors.push(LexError { token: token as u32, span, kind });
        Tok::Bad
    }

    /// The text as far as a search that starts at `at` may look.
    fn ahead(&self, at: usize) -> &'s [u8] {
        let bytes = self.text.as_bytes();
        &bytes[..bytes.len().min(at.saturating_add(self.vain.max(VAIN_WINDOW)))]
    }

    /// The position after the string that starts at `at`.
    fn string(&mut self, at: usize) -> Result<usize, (usize, LexErrorKind)> {
        let ahead = self.ahead(at);
        string_end(ahead, at).ok_or_else(|| {
            self.vain = self.vain.saturating_sub(ahead.len() - at);
            (at, LexErrorKind::Unterminated)
        })
    }

    /// Moves the lexer to `end`, which is not before where it is.
    fn advance_to(&mut self, end: usize) {
        self.inner.bump(end - self.inner.span().end);
    }

    /// A parenthesis opens the shape of a tuple where a shape may stand, else a list of operands or
    /// parameters.
    fn shape_may_start(&self) -> bool {
        match self.previous {
            None | Some(Tok::Def | Tok::Arrow | Tok::Param | Tok::LParen | Tok::Comma) => true,
            Some(
                Tok::Module
                | Tok::Entry
                | Tok::Tables
                | Tok::Name
                | Tok::Ident
                | Tok::Shape
                | Tok::Attr
                | Tok::AttrNested
                | Tok::AttrList
                | Tok::Constant
                | Tok::Number
                | Tok::Str
                | Tok::RParen
                | Tok::LBrace
                | Tok::RBrace
                | Tok::Bad,
            ) => false,
        }
    }

    /// The token that logos found, completed where it is only the beginning of one of ours.
    fn complete(&mut self, tok: Tok, start: usize) -> (usize, Tok) {
        let bytes = self.text.as_bytes();
        let end = self.inner.span().end;
        match tok {
            Tok::Shape => match self.close(end - 1, Syntax::Full) {
                Ok(close) => {
                    self.advance_to(close);
                    (start, self.layout_after(start, close))
                }
                Err(e) => (start, self.unclosed(start, e)),
            },
            Tok::LParen if self.shape_may_start() => match self.close(start, Syntax::Full) {
                Ok(close) => {
                    self.advance_to(close);
                    (start, Tok::Shape)
                }
                Err(e) => (start, self.unclosed(start, e)),
            },
            Tok::Ident => {
                let word = &bytes[start..end];
                let next = skip_blank(bytes, end);
                if bytes.get(next) == Some(&b'[')
                    && self.shape_may_start()
                    && hlo::ElementType::from_name(&self.text[start..end]).is_some()
                {
                    // A shape with a blank in it.
                    self.advance_to(next + 1);
                    return self.complete(Tok::Shape, start);
                }
                let opens = bytes.get(next) == Some(&b'(');
                let here = self.shape_may_start() || self.previous == Some(Tok::Shape);
                if opens && here && word == b"constant" {
                    let ahead = self.ahead(next);
                    match close_literal(ahead, next) {
                        Ok(close) => {
                            self.advance_to(close);
                            (start, Tok::Constant)
                        }
                        Err(read) => {
                            self.vain = self.vain.saturating_sub(read);
                            (start, self.unclosed(start, (next, LexErrorKind::Unclosed)))
                        }
                    }
                } else if opens && word == b"b" && self.shape_may_start() {
                    match self.close(next, Syntax::Full) {
                        Ok(close) => {
                            self.advance_to(close);
                            (start, Tok::Shape)
                        }
                        Err(e) => (start, self.unclosed(start, e)),
                    }
                } else {
                    (start, Tok::Ident)
                }
            }
            Tok::Comma => {
                // A comma before `key=` is part of the attribute.
                let key = skip_blank(bytes, end);
                let mut at = key;
                while bytes.get(at).is_some_and(|&b| is_name_byte(b)) {
                    at += 1;
                }
                let first = bytes.get(key).copied().unwrap_or(0);
                if at > key && bytes.get(at) == Some(&b'=') && (first.is_ascii_alphabetic() || first == b'_')
                {
                    self.advance_to(at + 1);
                    (key, self.value(key, at + 1))
                } else {
                    (start, Tok::Comma)
                }
            }
            Tok::Attr => {
                let kind = LexErrorKind::NoComma;
                // The value is skipped too, so that one mistake is one error.
                let value = self.value(start, end);
                if value == Tok::Bad {
                    return (start, Tok::Bad);
                }
                (start, self.bad(start, Span::new(start, end), kind))
            }
            Tok::Tables => {
                let close = self.tables_end(start);
                self.advance_to(close);
                (start, Tok::Tables)
            }
            Tok::Module
            | Tok::Entry
            | Tok::Def
            | Tok::Name
            | Tok::Param
            | Tok::AttrNested
            | Tok::AttrList
            | Tok::Constant
            | Tok::Number
            | Tok::Str
            | Tok::LParen
            | Tok::RParen
            | Tok::LBrace
            | Tok::RBrace
            | Tok::Arrow
            | Tok::Bad => (start, tok),
        }
    }

    /// Takes the layout after an array shape along. A brace opens one only if an integer or a colon follows:
    /// otherwise it opens the body of a computation.
    fn layout_after(&mut self, start: usize, close: usize) -> Tok {
        let bytes = self.text.as_bytes();
        let brace = skip_blank(bytes, close);
        if bytes.get(brace) != Some(&b'{') {
            return Tok::Shape;
        }
        let inside = skip_blank(bytes, brace + 1);
        if !bytes.get(inside).is_some_and(|b| b.is_ascii_digit() || *b == b':') {
            return Tok::Shape;
        }
        match self.close(brace, Syntax::Full) {
            Ok(close) => {
                self.advance_to(close);
                Tok::Shape
            }
            Err(e) => self.unclosed(start, e),
        }
    }

    /// An error token up to the end of the line: what follows is probably sound.
    fn unclosed(&mut self, token: usize, (at, kind): (usize, LexErrorKind)) -> Tok {
        let end = self.inner.span().end;
        let rest = &self.text.as_bytes()[end..];
        let line = memchr::memchr(b'\n', rest).map_or(self.text.len(), |i| end + i);
        self.advance_to(line);
        self.bad(token, Span::new(at, at + 1), kind)
    }

    /// The raw value of the attribute whose key starts at `token` and whose value may start at `at`.
    fn value(&mut self, token: usize, at: usize) -> Tok {
        let bytes = self.text.as_bytes();
        let key = &self.text[token..at - 1];
        let first = skip_blank(bytes, at);
        if bytes.get(first) == Some(&b'{') {
            match COMPUTATION_KEYS.get(key) {
                Some(AttrKind::Computations) => {
                    // Names, or computations among them?
                    let mut at = skip_blank(bytes, first + 1);
                    while bytes.get(at).is_some_and(|&b| is_name_byte(b) || b == b'%' || b == b',') {
                        at = skip_blank(bytes, at + 1);
                    }
                    if bytes.get(at) == Some(&b'{') {
                        return Tok::AttrList;
                    }
                }
                Some(_) => return Tok::AttrNested,
                None => {}
            }
        }
        match self.value_end(key, at, first) {
            Ok(end) => {
                self.advance_to(end);
                Tok::Attr
            }
            Err(e) => self.unclosed(token, e),
        }
    }

    /// Where a value ends: a value is a run of words and bracketed groups without space between. Three keys
    /// have values with spaces in them, or none at all.
    fn value_end(&mut self, key: &str, at: usize, first: usize) -> Result<usize, (usize, LexErrorKind)> {
        let bytes = self.text.as_bytes();
        let syntax = match key {
            "backend_config" | "frontend_attributes" => Syntax::Dict,
            _ => Syntax::Full,
        };
        if key == "padding" && !bytes.get(first).is_some_and(|b| b.is_ascii_digit() || *b == b'-') {
            return Ok(at);
        }
        let mut end = self.run_end(first, syntax)?;
        if end == first {
            return Ok(at);
        }
        if key == "literal" {
            let next = skip_blank(bytes, end);
            if matches!(bytes.get(next), Some(b'{' | b'(')) {
                end = self.run_end(next, syntax)?;
                // The sizes of dynamic dimensions stand before the elements.
                let next = skip_blank(bytes, end);
                if bytes[end - 1] == b')' && bytes.get(next) == Some(&b'{') {
                    end = self.run_end(next, syntax)?;
                }
            } else {
                let number = bytes.get(next).is_some_and(|b| b.is_ascii_digit() || *b == b'-');
                let word =
                    ["true", "false", "nan", "inf"].iter().any(|w| bytes[next..].starts_with(w.as_bytes()));
                if number || word {
                    end = self.run_end(next, syntax)?;
                }
            }
        } else if key == "replica_groups" {
            // `mesh['a'=2], device_ids=(...) {'a'}` and `[2,4] <= [8]`
            loop {
                let next = skip_blank(bytes, end);
                let rest = &bytes[next..];
                let comma = rest.first() == Some(&b',')
                    && bytes[skip_blank(bytes, next + 1)..].starts_with(b"device_ids=");
                if comma {
                    end = self.run_end(skip_blank(bytes, next + 1), syntax)?;
                } else if bytes[first..].starts_with(b"m") && rest.first() == Some(&b'{')
                    || bytes[first..].starts_with(b"[")
                        && (rest.starts_with(b"<=") || rest.starts_with(b"[") || rest.starts_with(b"T("))
                {
                    end = self.run_end(next, syntax)?;
                } else {
                    break;
                }
            }
        }
        Ok(end)
    }

    /// The end of a run of words, strings and bracketed groups that starts at `at`.
    fn run_end(&mut self, at: usize, syntax: Syntax) -> Result<usize, (usize, LexErrorKind)> {
        let bytes = self.text.as_bytes();
        let mut at = at;
        while let Some(&b) = bytes.get(at) {
            match b {
                b'{' | b'(' | b'[' => at = self.close(at, syntax)?,
                b'"' | b'\'' => at = self.string(at)?,
                b',' | b'}' | b')' | b']' | b' ' | b'\t' | b'\r' | b'\n' => break,
                b'/' if matches!(bytes.get(at + 1), Some(b'/' | b'*')) => break,
                _ => at += 1,
            }
        }
        // Characters of several bytes are stepped over byte by byte; all that stop the run are ASCII.
        Ok(at)
    }

    /// The position after the bracket that closes the one at `open`.
    fn close(&mut self, open: usize, syntax: Syntax) -> Result<usize, (usize, LexErrorKind)> {
        let bytes = self.ahead(open);
        self.brackets.clear();
        let mut at = open;
        while let Some(&b) = bytes.get(at) {
            match CLASS[usize::from(b)] {
                Class::Plain => {}
                Class::Quote => {
                    // An apostrophe in a dictionary, or after a letter, is not a quote.
                    if b == b'"' || syntax == Syntax::Full && !bytes[at - 1].is_ascii_alphanumeric() {
                        at = self.string(at)?;
                        continue;
                    }
                }
                Class::Open => {
                    if b == b'{' || syntax == Syntax::Full {
                        self.brackets.push((b, at as u32));
                    }
                }
                Class::Close => {
                    if b == b'}' || syntax == Syntax::Full {
                        let Some((open_byte, open_at)) = self.brackets.pop() else {
                            self.vain = self.vain.saturating_sub(at - open);
                            return Err((open, LexErrorKind::Unclosed));
                        };
                        if matching(open_byte) != b {
                            self.vain = self.vain.saturating_sub(at - open);
                            let open = Span::new(open_at as usize, open_at as usize + 1);
                            return Err((at, LexErrorKind::Mismatched { open }));
                        }
                        if self.brackets.is_empty() {
                            return Ok(at + 1);
                        }
                    }
                }
                Class::Slash => {
                    if syntax == Syntax::Full && matches!(bytes.get(at + 1), Some(b'*' | b'/')) {
                        match comment_end(bytes, at) {
                            Some(end) => {
                                at = end;
                                continue;
                            }
                            None => {
                                self.vain = self.vain.saturating_sub(bytes.len() - open);
                                return Err((at, LexErrorKind::Unterminated));
                            }
                        }
                    }
                }
                Class::Newline => {
                    if instruction_starts(bytes, at + 1) {
                        break;
                    }
                }
            }
            at += 1;
        }
        self.vain = self.vain.saturating_sub(at - open);
        let innermost = self.brackets.last().map_or(open, |b| b.1 as usize);
        Err((innermost, LexErrorKind::Unclosed))
    }

    /// The end of the tables that start at `at`: rows are a number and then a string or a group.
    fn tables_end(&mut self, at: usize) -> usize {
        const WORDS: [&[u8]; 4] = [b"FileNames", b"FunctionNames", b"FileLocations", b"StackFrames"];
        let bytes = self.text.as_bytes();
        let mut end = at;
        loop {
            let next = skip_blank(bytes, end);
            let rest = &bytes[next..];
            if let Some(word) = WORDS.iter().find(|w| rest.starts_with(w)) {
                end = next + word.len();
            } else if rest.first().is_some_and(u8::is_ascii_digit) {
                end = next + rest.iter().take_while(|b| b.is_ascii_digit()).count();
                let value = skip_blank(bytes, end);
                // A broken row is kept up to the end of its line, to be reported.
                let line = || memchr::memchr(b'\n', &bytes[end..]).map_or(bytes.len(), |i| end + i);
                end = match bytes.get(value) {
                    Some(b'"' | b'\'') => self.string(value).unwrap_or_else(|_| line()),
                    Some(b'{') => self.close(value, Syntax::Full).unwrap_or_else(|_| line()),
                    _ => line(),
                };
            } else {
                return end;
            }
        }
    }
}

impl Iterator for Lexer<'_> {
    type Item = Spanned;

    fn next(&mut self) -> Option<Spanned> {
        let found = self.inner.next()?;
        let range = self.inner.span();
        let (start, tok) = match found {
            Ok(tok) => self.complete(tok, range.start),
            Err(()) => {
                let b = self.text.as_bytes()[range.start];
                let comment = self.text[range.start..].starts_with("/*");
                if self.text[range.start..].starts_with("${")
                    && let Ok(end) = self.close(range.start + 1, Syntax::Dict)
                {
                    // A template: one mistake.
                    self.advance_to(end);
                }
                let kind = if b == b'"' || b == b'\'' || comment {
                    // Nothing after it can be trusted to be outside of it.
                    self.advance_to(self.text.len());
                    LexErrorKind::Unterminated
                } else {
                    LexErrorKind::Character
                };
                let width = self.text[range.start..].chars().next().map_or(1, char::len_utf8);
                (range.start, self.bad(range.start, Span::new(range.start, range.start + width), kind))
            }
        };
        self.previous = Some(tok);
        self.taken += crate::budget::of_token(tok, (self.inner.span().end - start) as u64);
        if self.taken > self.memory_bytes {
            self.exhausted = Some(Span::new(start, start + 1));
            self.advance_to(self.text.len());
            return None;
        }
        Some(Ok((start as u32, tok, self.inner.span().end as u32)))
    }
}

/// What brackets and quotes mean inside a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Syntax {
    /// HLO: three kinds of brackets, two of quotes, comments.
    Full,
    /// JSON or something like it: braces and double quotes.
    Dict,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Plain,
    Quote,
    Open,
    Close,
    Slash,
    Newline,
}

const CLASS: [Class; 256] = {
    let mut class = [Class::Plain; 256];
    class[b'"' as usize] = Class::Quote;
    class[b'\'' as usize] = Class::Quote;
    class[b'{' as usize] = Class::Open;
    class[b'(' as usize] = Class::Open;
    class[b'[' as usize] = Class::Open;
    class[b'}' as usize] = Class::Close;
    class[b')' as usize] = Class::Close;
    class[b']' as usize] = Class::Close;
    class[b'/' as usize] = Class::Slash;
    class[b'\n' as usize] = Class::Newline;
    class
};

fn matching(open: u8) -> u8 {
    match open {
        b'{' => b'}',
        b'(' => b')',
        _ => b']',
    }
}

/// Bytes of names after the first.
pub(crate) fn is_name_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-')
}

/// The end of the comment that starts at `at`, if one does.
fn comment_end(bytes: &[u8], at: usize) -> Option<usize> {
    match bytes.get(at + 1)? {
        b'*' => memchr::memmem::find(&bytes[at + 2..], b"*/").map(|i| at + 2 + i + 2),
        b'/' => Some(memchr::memchr2(b'\n', b'\r', &bytes[at..]).map_or(bytes.len(), |i| at + i)),
        _ => None,
    }
}

/// The first position at or after `at` that is neither white space nor in a comment.
pub(crate) fn skip_blank(bytes: &[u8], mut at: usize) -> usize {
    while let Some(&b) = bytes.get(at) {
        match b {
            b' ' | b'\t' | b'\r' | b'\n' => at += 1,
            b'/' => match comment_end(bytes, at) {
                Some(end) => at = end,
                None => break,
            },
            _ => break,
        }
    }
    at
}

/// The position after the string whose opening quote is at `at`.
pub(crate) fn string_end(bytes: &[u8], at: usize) -> Option<usize> {
    let quote = bytes[at];
    let mut from = at + 1;
    loop {
        let i = from + memchr::memchr2(quote, b'\\', bytes.get(from..)?)?;
        if bytes[i] == quote {
            return Some(i + 1);
        }
        from = i + 2;
    }
}

/// The position after the parenthesis that closes the one at `open`, before which stands a literal. An equals
/// sign outside of a comment is in no literal: the parenthesis is missing. Error: it is; how many bytes were
/// read.
fn close_literal(bytes: &[u8], open: usize) -> Result<usize, usize> {
    let mut depth = 0usize;
    for i in memchr::memchr3_iter(b'(', b')', b'=', &bytes[open..]) {
        match bytes[open + i] {
            b'(' => depth += 1,
            b')' => {
                depth -= 1;
                if depth == 0 {
                    return Ok(open + i + 1);
                }
            }
            _ => {
                let window = &bytes[(open + i).saturating_sub(64).max(open)..open + i];
                let comment = memchr::memmem::rfind(window, b"/*");
                let closed = memchr::memmem::rfind(window, b"*/");
                if comment.is_none() || closed > comment {
                    return Err(i + 1);
                }
            }
        }
    }
    Err(bytes.len() - open)
}

/// Whether an instruction starts at `at`: `name = type[` or `name = (`. Used to see that a bracket before it
/// was never closed; values of several lines (JSON, MLIR attributes) have no such lines.
fn instruction_starts(bytes: &[u8], at: usize) -> bool {
    let blank = |mut at: usize| {
        while matches!(bytes.get(at), Some(b' ' | b'\t')) {
            at += 1;
        }
        at
    };
    let mut at = blank(at);
    if bytes[at..].starts_with(b"ROOT ") {
        at = blank(at + 5);
    }
    if bytes.get(at) == Some(&b'%') {
        at += 1;
    }
    let name = at;
    while bytes.get(at).is_some_and(|&b| is_name_byte(b)) {
        at += 1;
    }
    if at == name {
        return false;
    }
    at = blank(at);
    if bytes.get(at) != Some(&b'=') {
        return false;
    }
    at = blank(at + 1);
    if bytes.get(at) == Some(&b'(') {
        return true;
    }
    let word = at;
    while bytes.get(at).is_some_and(u8::is_ascii_alphanumeric) {
        at += 1;
    }
    bytes.get(at) == Some(&b'[')
        && std::str::from_utf8(&bytes[word..at])
            .is_ok_and(|w| hlo::ElementType::from_name(w).is_some() || w == "token")
}
