//! The parser's position in the text, its errors, and what every part of it needs.

use hlo::Span;
use hlo::diag::codes::{self, mlir};
use hlo::diag::{Code, Diagnostic};
use logos::Logos as _;
use rustc_hash::FxHashMap;

use super::scope::Scope;
use super::token::Tok;
use crate::ir::{AttrId, LocId, MAX_DEPTH, Module, NameId, OpId, TypeId, ValueId};

/// What a parse gives; an error ends it.
pub(super) type Parse<T> = Result<T, Box<Diagnostic>>;

/// What waits for a location that is defined further down.
#[derive(Clone, Copy)]
pub(super) enum Waiting {
    Op(OpId),
    Value(ValueId),
}

pub(super) struct Parser<'t> {
    pub(super) text: &'t str,
    /// The current token.
    pub(super) tok: Tok,
    pub(super) start: usize,
    pub(super) end: usize,
    /// The end of the token before.
    pub(super) before: usize,
    pub(super) m: Module,
    pub(super) attribute_aliases: FxHashMap<&'t str, AttrId>,
    pub(super) type_aliases: FxHashMap<&'t str, TypeId>,
    pub(super) waiting: Vec<(Waiting, &'t str, Span)>,
    pub(super) scope: Scope,
    pub(super) depth: u32,
    pub(super) memory_left: u64,
    pub(super) memory_bytes: u64,
}

impl<'t> Parser<'t> {
    /// A parser of `text[from..]`.
    pub(super) fn new(text: &'t str, from: usize, memory_bytes: u64) -> Self {
        let mut parser = Self {
            text,
            tok: Tok::End,
            start: from,
            end: from,
            before: from,
            m: Module::new(),
            attribute_aliases: FxHashMap::default(),
            type_aliases: FxHashMap::default(),
            waiting: Vec::new(),
            scope: Scope::default(),
            depth: 0,
            memory_left: memory_bytes,
            memory_bytes,
        };
        parser.jump(from);
        parser.before = from;
        parser
    }

    /// Goes on at an offset.
    pub(super) fn jump(&mut self, to: usize) {
        self.end = to;
        self.advance();
    }

    /// Goes on to the next token.
    pub(super) fn advance(&mut self) {
        self.before = self.end;
        let mut lexer = Tok::lexer(&self.text[self.end..]);
        let next = lexer.next();
        let span = lexer.span();
        self.start = self.end + span.start;
        self.end += span.end;
        self.tok = match next {
            None => {
                (self.start, self.end) = (self.text.len(), self.text.len());
                Tok::End
            }
            Some(Ok(tok)) => tok,
            Some(Err(())) => Tok::Bad,
        };
    }

    /// The text of the current token.
    pub(super) fn token(&self) -> &'t str {
        &self.text[self.start..self.end]
    }

    pub(super) fn span(&self) -> Span {
        Span::new(self.start, self.end)
    }

    /// From an offset to the end of the token before.
    pub(super) fn since(&self, start: usize) -> Span {
        Span::new(start, self.before.max(start))
    }

    // ---- errors

    pub(super) fn error_at<T>(&self, code: Code, span: Span, message: impl Into<String>) -> Parse<T> {
        Err(Box::new(Diagnostic::error(code, span, message)))
    }

    pub(super) fn error<T>(&self, code: Code, message: impl Into<String>) -> Parse<T> {
        self.error_at(code, self.span(), message)
    }

    /// That something else was expected here.
    pub(super) fn expected<T>(&self, what: &str) -> Parse<T> {
        let found = match self.tok {
            Tok::End => "the end of the text".to_owned(),
            Tok::Bad if self.token().starts_with('"') => {
                return self.error(codes::parse::UNTERMINATED, "a string without an end");
            }
            _ => format!("`{}`", shortened(self.token())),
        };
        let message = format!("unexpected {found}");
        Err(Box::new(
            Diagnostic::error(mlir::MLIR_SYNTAX, self.span(), message).label(format!("expected {what}")),
        ))
    }

    /// Counts bytes that the module is about to take.
    pub(super) fn take(&mut self, bytes: u64) -> Parse<()> {
        match self.memory_left.checked_sub(bytes) {
            Some(left) => {
                self.memory_left = left;
                Ok(())
            }
            None => {
                let (taken, limit) = (self.memory_bytes - self.memory_left + bytes, self.memory_bytes);
                let message = format!(
                    "the program up to here takes {taken} bytes, and {limit} are left for reading the text"
                );
                self.error(codes::OUT_OF_MEMORY, message)
            }
        }
    }

    /// Runs `f` one level deeper in types, attributes and locations.
    pub(super) fn nested<T>(&mut self, f: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        if self.depth >= MAX_DEPTH {
            let message = format!("types and attributes are nested more than {MAX_DEPTH} levels deep");
            return self.error(codes::parse::NESTING_TOO_DEEP, message);
        }
        self.depth += 1;
        let result = f(self);
        self.depth -= 1;
        result
    }

    // ---- tokens

    pub(super) fn is(&self, tok: Tok) -> bool {
        self.tok == tok
    }

    pub(super) fn is_word(&self, word: &str) -> bool {
        self.tok == Tok::Word && self.token() == word
    }

    /// Goes past a token if it is there.
    pub(super) fn eat(&mut self, tok: Tok) -> bool {
        let there = self.tok == tok;
        if there {
            self.advance();
        }
        there
    }

    pub(super) fn eat_word(&mut self, word: &str) -> bool {
        let there = self.is_word(word);
        if there {
            self.advance();
        }
        there
    }

    pub(super) fn expect(&mut self, tok: Tok) -> Parse<()> {
        if self.eat(tok) { Ok(()) } else { self.expected(tok.describe()) }
    }

    pub(super) fn expect_word(&mut self, word: &str) -> Parse<()> {
        if self.eat_word(word) { Ok(()) } else { self.expected(&format!("`{word}`")) }
    }

    /// Any word.
    pub(super) fn word(&mut self) -> Parse<&'t str> {
        if self.tok != Tok::Word {
            return self.expected("a word");
        }
        let word = self.token();
        self.advance();
        Ok(word)
    }

    /// `(a, b, ...)` with any brackets; `f` reads one.
    pub(super) fn list<T>(
        &mut self,
        open: Tok,
        close: Tok,
        mut f: impl FnMut(&mut Self) -> Parse<T>,
    ) -> Parse<Vec<T>> {
        self.expect(open)?;
        let mut items = Vec::new();
        if self.eat(close) {
            return Ok(items);
        }
        loop {
            items.push(f(self)?);
            if self.eat(close) {
                return Ok(items);
            }
            if !self.eat(Tok::Comma) {
                return self.expected(&format!("`,` or {}", close.describe()));
            }
        }
    }

    /// An integer with its sign.
    pub(super) fn integer(&mut self) -> Parse<i128> {
        let start = self.start;
        let negative = self.eat(Tok::Minus);
        if self.tok != Tok::Int {
            return self.expected("an integer");
        }
        let Some(value) = magnitude(self.token()) else {
            return self.error(mlir::MLIR_BAD_ATTRIBUTE, "an integer of more than 127 bits");
        };
        self.advance();
        let _ = start;
        Ok(if negative { -value } else { value })
    }

    /// An integer that fits 64 bits.
    pub(super) fn int64(&mut self) -> Parse<i64> {
        let start = self.start;
        let value = self.integer()?;
        match i64::try_from(value) {
            Ok(value) => Ok(value),
            Err(_) => self.error_at(
                mlir::MLIR_BAD_ATTRIBUTE,
                self.since(start),
                format!("{value} does not fit 64 bits"),
            ),
        }
    }

    /// A string, unescaped.
    pub(super) fn string(&mut self) -> Parse<Vec<u8>> {
        if self.tok != Tok::Str {
            return self.expected("a string");
        }
        let token = self.token();
        let Some(text) = unescape(&token[1..token.len() - 1]) else {
            return self.error(codes::parse::BAD_ESCAPE, "an escape that MLIR does not know");
        };
        self.take(text.len() as u64 + 64)?;
        self.advance();
        Ok(text)
    }

    /// A string that is UTF-8.
    pub(super) fn utf8(&mut self) -> Parse<String> {
        let span = self.span();
        let bytes = self.string()?;
        match String::from_utf8(bytes) {
            Ok(text) => Ok(text),
            Err(_) => self.error_at(mlir::MLIR_BAD_ATTRIBUTE, span, "a name that is not UTF-8"),
        }
    }

    /// `@name`, `@"name"`
    pub(super) fn symbol(&mut self) -> Parse<NameId> {
        if self.tok != Tok::At {
            return self.expected("a symbol, `@name`");
        }
        let token = &self.token()[1..];
        let name = match token.strip_prefix('"') {
            None => self.m.name(token),
            Some(quoted) => {
                let text = unescape(&quoted[..quoted.len() - 1]).and_then(|b| String::from_utf8(b).ok());
                match text {
                    Some(text) => self.m.name(&text),
                    None => return self.error(codes::parse::BAD_ESCAPE, "an escape that MLIR does not know"),
                }
            }
        };
        self.advance();
        Ok(name)
    }

    /// The offset after the bracket that closes the one at `open`, with strings and all kinds of brackets
    /// inside.
    pub(super) fn balanced(&self, open: usize) -> Parse<usize> {
        let bytes = self.text.as_bytes();
        let mut stack: Vec<u8> = Vec::new();
        let mut at = open;
        while let Some(&b) = bytes.get(at) {
            match b {
                b'"' => {
                    at += 1;
                    while let Some(found) = memchr::memchr2(b'"', b'\\', &bytes[at..]) {
                        at += found;
                        if bytes[at] == b'"' {
                            break;
                        }
                        at = (at + 2).min(bytes.len());
                    }
                    if at >= bytes.len() {
                        break;
                    }
                }
                b'(' => stack.push(b')'),
                b'[' => stack.push(b']'),
                b'{' => stack.push(b'}'),
                b'<' => stack.push(b'>'),
                b'-' if bytes.get(at + 1) == Some(&b'>') => at += 1,
                b')' | b']' | b'}' | b'>' => match stack.pop() {
                    Some(expected) if expected == b => {}
                    _ => {
                        return self.error_at(
                            codes::parse::MISMATCHED_BRACKET,
                            Span::new(at, at + 1),
                            "a closing bracket of another kind",
                        );
                    }
                },
                _ => {}
            }
            at += 1;
            if stack.is_empty() {
                return Ok(at);
            }
        }
        self.error_at(
            codes::parse::UNCLOSED_BRACKET,
            Span::new(open, open + 1),
            "a bracket without its closing one",
        )
    }

    /// Goes past the brackets that open at the current token, and gives the text with them.
    pub(super) fn raw_brackets(&mut self) -> Parse<&'t str> {
        let start = self.start;
        let end = self.balanced(start)?;
        self.take((end - start) as u64)?;
        self.jump(end);
        self.before = end;
        Ok(&self.text[start..end])
    }

    pub(super) fn unknown_location(&self) -> LocId {
        LocId::UNKNOWN
    }
}

/// A number without sign, decimal or hexadecimal.
pub(super) fn magnitude(text: &str) -> Option<i128> {
    match text.strip_prefix("0x") {
        Some(hex) => i128::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

/// The start of a text, for messages.
pub(super) fn shortened(text: &str) -> String {
    const MAX_CHARS: usize = 40;
    match text.char_indices().nth(MAX_CHARS) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.to_owned(),
    }
}

/// The bytes that an escaped text stands for: `\n`, `\t`, `\\`, `\"` and two hexadecimal digits.
pub(super) fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(b) = bytes.next() {
        if b != b'\\' {
            out.push(b);
            continue;
        }
        out.push(match bytes.next()? {
            b'n' => b'\n',
            b't' => b'\t',
            c @ (b'\\' | b'"') => c,
            high => {
                let digit = |c: u8| (c as char).to_digit(16);
                (digit(high)? * 16 + digit(bytes.next()?)?) as u8
            }
        });
    }
    Some(out)
}
