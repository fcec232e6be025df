//! Text to messages.

use std::borrow::Cow;

use hlo::Span;
use hlo::diag::Diagnostic;
use hlo::diag::codes::{parse::*, proto::*};
use hlo::diag::suggest::did_you_mean;
use prost::encoding::{WireType, encode_varint};

use crate::message::{Message, Value};
use crate::path::Path;
use crate::schema::{Field, MessageType, Type};
use crate::wire::{Decoder, Res, make_record};

/// Parses a message of a kind. Spans are offsets in the text.
pub(crate) fn parse<'t>(
    text: &'t str,
    ty: &'static MessageType,
    nesting_limit: usize,
    decoder: &mut Decoder,
) -> Res<Message<'t>> {
    let mut parser = Parser { text, at: 0, nesting_limit, decoder };
    let mut message = Message::new(ty);
    parser.fields(&mut message, None, &Path::ROOT, 0)?;
    Ok(message)
}

struct Parser<'t, 'd> {
    text: &'t str,
    at: usize,
    nesting_limit: usize,
    decoder: &'d mut Decoder,
}

/// What stands as a value.
#[derive(Clone, Copy, Debug)]
enum Scalar<'t> {
    /// A number or word, with its sign.
    Word(&'t str),
    /// One or more strings in quotes.
    Quoted,
}

impl<'t> Parser<'t, '_> {
    fn peek(&self) -> u8 {
        self.text.as_bytes().get(self.at).copied().unwrap_or(0)
    }

    fn skip(&mut self) {
        loop {
            match self.peek() {
                b' ' | b'\t' | b'\r' | b'\n' | 0x0b | 0x0c => self.at += 1,
                b'#' => {
                    let rest = &self.text.as_bytes()[self.at..];
                    self.at += memchr::memchr(b'\n', rest).unwrap_or(rest.len());
                }
                _ => return,
            }
        }
    }

    fn eat(&mut self, byte: u8) -> bool {
        self.skip();
        let found = self.peek() == byte && self.at < self.text.len();
        self.at += usize::from(found);
        found
    }

    fn error(&self, start: usize, message: impl Into<String>) -> Box<Diagnostic> {
        let mut end = self.at.max(start + 1).min(self.text.len());
        while !self.text.is_char_boundary(end) {
            end += 1;
        }
        Box::new(Diagnostic::error(PROTO_TEXT_MALFORMED, Span::new(start.min(end), end), message))
    }

    /// An error at what stands here.
    fn unexpected(&mut self, wanted: &str) -> Box<Diagnostic> {
        self.skip();
        let found = self.text[self.at..]
            .chars()
            .next()
            .map_or("the end of the text".to_owned(), |c| format!("{c:?}"));
        let message = format!("{found} where {wanted} belongs");
        Box::new(self.error(self.at, message).label(format!("expected {wanted}")))
    }

    fn word(&mut self) -> &'t str {
        self.skip();
        let start = self.at;
        let part = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'+' | b'-');
        while self.at < self.text.len() && part(self.peek()) {
            // A sign only stands at the start or in an exponent.
            let sign = matches!(self.peek(), b'+' | b'-');
            if sign && self.at > start && !matches!(self.text.as_bytes()[self.at - 1], b'e' | b'E') {
                break;
            }
            self.at += 1;
        }
        &self.text[start..self.at]
    }

    /// Fields up to the end of the text, or to a closing bracket.
    fn fields(&mut self, m: &mut Message<'t>, end: Option<u8>, path: &Path<'_>, depth: usize) -> Res<()> {
        if depth > self.nesting_limit {
            let message = format!("{path}: nested deeper than {} levels", self.nesting_limit);
            return Err(Box::new(Diagnostic { code: NESTING_TOO_DEEP, ..*self.error(self.at, message) }));
        }
        loop {
            self.skip();
            if self.at == self.text.len() {
                return match end {
                    None => Ok(()),
                    Some(_) => Err(self.unexpected("a field or the end of the message")),
                };
            }
            if end == Some(self.peek()) {
                self.at += 1;
                return Ok(());
            }
            self.field(m, path, depth)?;
            if !self.eat(b';') {
                self.eat(b',');
            }
        }
    }

    fn field(&mut self, m: &mut Message<'t>, path: &Path<'_>, depth: usize) -> Res<()> {
        let start = self.at;
        if self.peek() == b'[' {
            return Err(self.unexpected("a field (extensions are not supported)"));
        }
        let name = self.word();
        if name.is_empty() {
            return Err(self.unexpected("a field"));
        }
        if name.bytes().all(|b| b.is_ascii_digit()) {
            return self.unknown(m, name, start, path);
        }
        let Some(field) = m.ty.field_named(name) else {
            let near = did_you_mean(name, m.ty.fields.iter().map(|f| f.name));
            let error = *self.error(start, format!("{} has no field {name:?}", m.ty.name));
            return Err(Box::new(match near {
                Some(near) => error.label(format!("did you mean {near}?")),
                None => error,
            }));
        };
        let colon = self.eat(b':');
        self.skip();
        if field.repeated && self.peek() == b'[' {
            self.at += 1;
            if self.eat(b']') {
                return Ok(());
            }
            loop {
                self.value(m, field, path, depth)?;
                if self.eat(b']') {
                    return Ok(());
                }
                if !self.eat(b',') {
                    return Err(self.unexpected("',' or ']'"));
                }
            }
        }
        if !colon && !matches!(field.ty, Type::Message(_)) {
            return Err(self.unexpected("':'"));
        }
        self.value(m, field, path, depth)
    }

    fn value(
        &mut self,
        m: &mut Message<'t>,
        field: &'static Field,
        path: &Path<'_>,
        depth: usize,
    ) -> Res<()> {
        let entry = size_of::<(u32, Value<'_>)>();
        match &field.ty {
            Type::Message(ty) => {
                let end = if self.eat(b'{') {
                    b'}'
                } else if self.eat(b'<') {
                    b'>'
                } else {
                    return Err(self.unexpected("'{'"));
                };
                self.decoder.take(entry + size_of::<Message<'_>>())?;
                if !field.repeated {
                    let inner = m.child(field.number, ty);
                    return self.fields(inner, Some(end), &path.field(field.name, None), depth + 1);
                }
                let index = match m.get(field.number) {
                    Some(Value::Messages(list)) => list.len(),
                    _ => 0,
                };
                let mut inner = Message::new(ty);
                self.fields(&mut inner, Some(end), &path.field(field.name, Some(index)), depth + 1)?;
                match m.get_mut(field.number) {
                    Some(Value::Messages(list)) => list.push(inner),
                    _ => m.set(field.number, Value::Messages(vec![inner])),
                }
            }
            Type::String => {
                let start = self.at;
                let bytes = self.quoted()?;
                self.decoder.take(entry + bytes.len())?;
                let text: Cow<'t, str> = match bytes {
                    Cow::Borrowed(b) => Cow::Borrowed(
                        std::str::from_utf8(b).map_err(|_| self.error(start, "the string is not UTF-8"))?,
                    ),
                    Cow::Owned(b) => Cow::Owned(
                        String::from_utf8(b).map_err(|_| self.error(start, "the string is not UTF-8"))?,
                    ),
                };
                match (m.get_mut(field.number), field.repeated) {
                    (Some(Value::Texts(list)), true) => list.push(text),
                    (_, true) => m.set(field.number, Value::Texts(vec![text])),
                    (_, false) => m.set(field.number, Value::Text(text)),
                }
            }
            Type::Bytes => {
                let bytes = self.quoted()?;
                self.decoder.take(entry + bytes.len())?;
                match (m.get_mut(field.number), field.repeated) {
                    (Some(Value::BytesList(list)), true) => list.push(bytes),
                    (_, true) => m.set(field.number, Value::BytesList(vec![bytes])),
                    (_, false) => m.set(field.number, Value::Bytes(bytes)),
                }
            }
            Type::Bool
            | Type::Int32
            | Type::Int64
            | Type::Uint32
            | Type::Uint64
            | Type::Float
            | Type::Double
            | Type::Enum(_) => {
                let number = self.number(field)?;
                if !field.repeated {
                    self.decoder.take(entry)?;
                    m.set(field.number, Value::Number(number));
                    return Ok(());
                }
                self.decoder.take(10)?;
                if m.get(field.number).is_none() {
                    self.decoder.take(entry)?;
                    m.set(field.number, Value::Packed(Cow::Owned(Vec::new())));
                }
                let Some(Value::Packed(packed)) = m.get_mut(field.number) else {
                    unreachable!("invariant: repeated numbers are packed")
                };
                let packed = packed.to_mut();
                match field.ty {
                    Type::Float => packed.extend_from_slice(&(number as u32).to_le_bytes()),
                    Type::Double => packed.extend_from_slice(&number.to_le_bytes()),
                    _ => encode_varint(number, packed),
                }
            }
        }
        Ok(())
    }

    fn number(&mut self, field: &Field) -> Res<u64> {
        self.skip();
        let start = self.at;
        // A blank may stand behind a sign.
        let negative = self.peek() == b'-';
        self.at += usize::from(negative);
        let word = self.word();
        if word.is_empty() {
            return Err(self.unexpected("a value"));
        }
        let wrong = |parser: &Self, what: &str| {
            parser.error(start, format!("{}: {:?} is not {what}", field.name, &parser.text[start..parser.at]))
        };
        let integer = |low: i128, high: i128| {
            let magnitude = integer(word).filter(|_| !word.starts_with(['+', '-']));
            let value = magnitude.map(|v| if negative { -v } else { v });
            value.filter(|v| (low..=high).contains(v)).map(|v| v as u64)
        };
        match &field.ty {
            Type::Bool => match (negative, word) {
                (false, "true" | "True" | "t" | "1") => Ok(1),
                (false, "false" | "False" | "f" | "0") => Ok(0),
                _ => Err(wrong(self, "true or false")),
            },
            Type::Int32 => {
                integer(i32::MIN.into(), i32::MAX.into()).ok_or_else(|| wrong(self, "a 32-bit integer"))
            }
            Type::Int64 => {
                integer(i64::MIN.into(), i64::MAX.into()).ok_or_else(|| wrong(self, "a 64-bit integer"))
            }
            Type::Uint32 => {
                integer(0, u32::MAX.into()).ok_or_else(|| wrong(self, "an unsigned 32-bit integer"))
            }
            Type::Uint64 => {
                integer(0, u64::MAX.into()).ok_or_else(|| wrong(self, "an unsigned 64-bit integer"))
            }
            Type::Enum(e) => match e.number(word).filter(|_| !negative) {
                Some(v) => Ok(i64::from(v) as u64),
                None => integer(i32::MIN.into(), i32::MAX.into()).ok_or_else(|| {
                    let error = *wrong(self, "one of its enumerators");
                    match did_you_mean(word, e.values.iter().map(|v| v.0)) {
                        Some(near) => Box::new(error.label(format!("did you mean {near}?"))),
                        None => Box::new(error),
                    }
                }),
            },
            Type::Float => match float::<f32>(word, f32::NAN, f32::INFINITY) {
                Some(v) => Ok(u64::from((if negative { -v } else { v }).to_bits())),
                None => Err(wrong(self, "a number")),
            },
            Type::Double => match float::<f64>(word, f64::NAN, f64::INFINITY) {
                Some(v) => Ok((if negative { -v } else { v }).to_bits()),
                None => Err(wrong(self, "a number")),
            },
            Type::String | Type::Bytes | Type::Message(_) => Err(wrong(self, "a value of this field")),
        }
    }

    /// A field by its number: how its value is written tells its wire type.
    fn unknown(&mut self, m: &mut Message<'t>, name: &str, start: usize, path: &Path<'_>) -> Res<()> {
        let number = name.parse::<u32>().ok().filter(|&n| n > 0 && n < 1 << 29);
        let Some(number) = number else {
            return Err(self.error(start, format!("{name} is no number of a field")));
        };
        if !self.eat(b':') {
            return Err(self.unexpected("':' (messages of unknown fields are written as strings)"));
        }
        self.skip();
        let scalar =
            if matches!(self.peek(), b'"' | b'\'') { Scalar::Quoted } else { Scalar::Word(self.word()) };
        let record = match scalar {
            Scalar::Quoted => make_record(number, WireType::LengthDelimited, 0, &self.quoted()?),
            Scalar::Word(word) => {
                let wire = match word.len() {
                    10 if word.starts_with("0x") => WireType::ThirtyTwoBit,
                    18 if word.starts_with("0x") => WireType::SixtyFourBit,
                    _ => WireType::Varint,
                };
                let value = integer(word).and_then(|v| u64::try_from(v).ok());
                let value = value.ok_or_else(|| {
                    self.error(start, format!("{word:?} is not the value of an unknown field"))
                })?;
                make_record(number, wire, value, &[])
            }
        };
        self.decoder.note_unknown(path, m.ty, number);
        self.decoder.take(record.len() + size_of::<Cow<'_, [u8]>>())?;
        m.unknown.push(Cow::Owned(record));
        Ok(())
    }

    /// Strings in quotes, one or more, put together.
    fn quoted(&mut self) -> Res<Cow<'t, [u8]>> {
        self.skip();
        let mut out: Option<Cow<'t, [u8]>> = None;
        while matches!(self.peek(), b'"' | b'\'') {
            let piece = self.one_quoted()?;
            out = Some(match out {
                None => piece,
                Some(first) => {
                    let mut all = first.into_owned();
                    all.extend_from_slice(&piece);
                    Cow::Owned(all)
                }
            });
            self.skip();
        }
        out.ok_or_else(|| self.unexpected("a string"))
    }

    fn one_quoted(&mut self) -> Res<Cow<'t, [u8]>> {
        let bytes = self.text.as_bytes();
        let open = self.at;
        let quote = bytes[open];
        self.at += 1;
        let start = self.at;
        let Some(end) = memchr::memchr2(quote, b'\\', &bytes[start..]) else {
            return Err(self.error(open, "the string does not end"));
        };
        if bytes[start + end] == quote {
            self.at = start + end + 1;
            return Ok(Cow::Borrowed(&bytes[start..start + end]));
        }
        let mut out = Vec::new();
        loop {
            let Some(n) = memchr::memchr2(quote, b'\\', &bytes[self.at..]) else {
                return Err(self.error(open, "the string does not end"));
            };
            out.extend_from_slice(&bytes[self.at..self.at + n]);
            self.at += n + 1;
            if bytes[self.at - 1] == quote {
                return Ok(Cow::Owned(out));
            }
            self.escape(&mut out)?;
        }
    }

    /// What stands behind a backslash.
    fn escape(&mut self, out: &mut Vec<u8>) -> Res<()> {
        let start = self.at - 1;
        let bytes = self.text.as_bytes();
        let digits = |from: usize, most: usize, radix: u32| {
            bytes[from..].iter().take(most).take_while(|&&b| char::from(b).is_digit(radix)).count()
        };
        let code = bytes.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        let plain = match code {
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'a' => 7,
            b'b' => 8,
            b'f' => 12,
            b'v' => 11,
            b'?' | b'\'' | b'"' | b'\\' => code,
            b'0'..=b'7' => {
                let n = digits(self.at - 1, 3, 8);
                let value =
                    u32::from_str_radix(&self.text[self.at - 1..self.at - 1 + n], 8).unwrap_or(u32::MAX);
                self.at += n - 1;
                u8::try_from(value).map_err(|_| self.error(start, "an octal escape above 377"))?
            }
            b'x' | b'X' if digits(self.at, 2, 16) > 0 => {
                let n = digits(self.at, 2, 16);
                let value = u8::from_str_radix(&self.text[self.at..self.at + n], 16);
                self.at += n;
                value.map_err(|_| self.error(start, "an unknown escape"))?
            }
            b'u' | b'U' => {
                let n = if code == b'u' { 4 } else { 8 };
                let found = digits(self.at, n, 16);
                let value = if found == n {
                    u32::from_str_radix(&self.text[self.at..self.at + n], 16).ok()
                } else {
                    None
                };
                self.at += found;
                let Some(c) = value.and_then(char::from_u32) else {
                    return Err(self.error(start, "an escape of no character"));
                };
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                return Ok(());
            }
            _ => {
                self.at = self.at.min(self.text.len());
                return Err(self.error(start, "an unknown escape"));
            }
        };
        out.push(plain);
        Ok(())
    }
}

/// The magnitude of an integer: decimal, hexadecimal or octal.
fn integer(word: &str) -> Option<i128> {
    let (digits, radix) = match word.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&word[2..], 16),
        [b'0', _, ..] => (&word[1..], 8),
        _ => (word, 10),
    };
    if digits.starts_with(['+', '-']) {
        return None;
    }
    u64::from_str_radix(digits, radix).ok().map(i128::from)
}

/// A float, perhaps with `f` behind it; words for what has no digits.
fn float<F: std::str::FromStr>(word: &str, nan: F, infinity: F) -> Option<F> {
    let lower = word.to_ascii_lowercase();
    match &*lower {
        "nan" => return Some(nan),
        "inf" | "infinity" => return Some(infinity),
        _ => {}
    }
    if !lower.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    lower.strip_suffix('f').unwrap_or(&lower).parse().ok()
}
