//! The binary encoding, both ways.
//!
//! **Invariants:** reading takes no more memory than [`ReadOptions::memory_bytes`] and no more stack than its
//! nesting limit allows, whatever lengths the input claims: a length is believed only if that many bytes
//! follow. Writing is canonical: fields by number, numbers packed, then unknown fields as they were read; so
//! the same message always gives the same bytes, those that XLA's own library gives.

use std::borrow::Cow;
use std::io::{self, Write};

use hlo::diag::Diagnostic;
use hlo::diag::codes;
use hlo::diag::codes::parse::NESTING_TOO_DEEP;
use hlo::diag::codes::proto::*;
use hlo::{Diagnostics, Span};
use prost::encoding::{WireType, decode_varint, encode_varint, encoded_len_varint};

use crate::ReadOptions;
use crate::message::{Message, Value};
use crate::path::Path;
use crate::schema::{Field, MessageType, Type};

/// An error, in a box.
pub(crate) type Res<T> = Result<T, Box<Diagnostic>>;

/// An error without a span in a text.
pub(crate) fn error(code: codes::Code, message: impl Into<String>) -> Box<Diagnostic> {
    Box::new(Diagnostic::error(code, Span::NONE, message))
}

/// What reading takes, and what was met on the way.
#[derive(Debug)]
pub(crate) struct Decoder {
    nesting_limit: usize,
    memory_left: u64,
    /// What was taken for good.
    kept: u64,
    memory_bytes: u64,
    /// Computations and instructions are decoded on demand.
    lazy: bool,
    /// How many unknown fields there were, and where the first of them.
    unknown: usize,
    unknown_fields: Vec<String>,
}

/// The maximum number of unknown fields that are named.
const MAX_NAMED_FIELDS: usize = 3;

impl Decoder {
    pub(crate) fn new(options: &ReadOptions, lazy: bool) -> Self {
        Self {
            nesting_limit: options.nesting_limit,
            memory_left: options.memory_bytes,
            kept: 0,
            memory_bytes: options.memory_bytes,
            lazy,
            unknown: 0,
            unknown_fields: Vec::new(),
        }
    }

    /// Counts memory that is about to be allocated.
    pub(crate) fn take(&mut self, bytes: usize) -> Res<()> {
        match self.memory_left.checked_sub(bytes as u64) {
            Some(left) => {
                self.memory_left = left;
                Ok(())
            }
            None => {
                let message =
                    format!("reading the message takes more than the {} bytes allowed", self.memory_bytes);
                Err(error(codes::OUT_OF_MEMORY, message))
            }
        }
    }

    /// Counts memory that is kept beyond the next [`Decoder::restore`].
    pub(crate) fn take_for_good(&mut self, bytes: usize) -> Res<()> {
        self.take(bytes)?;
        self.kept += bytes as u64;
        Ok(())
    }

    /// What is left, to give back later what was counted for something that is no longer there.
    pub(crate) fn left(&self) -> u64 {
        self.memory_left + self.kept
    }

    /// See [`Decoder::left`].
    pub(crate) fn restore(&mut self, left: u64) {
        self.memory_left = left.saturating_sub(self.kept);
    }

    /// Notes a field that the tables do not have.
    pub(crate) fn note_unknown(&mut self, path: &Path<'_>, ty: &MessageType, number: u32) {
        self.unknown += 1;
        if self.unknown_fields.len() < MAX_NAMED_FIELDS {
            self.unknown_fields.push(format!("field {number} of {} ({path})", ty.name));
        }
    }

    /// Warns of unknown fields, if there were any.
    pub(crate) fn warn_of_unknown(&self, diagnostics: &mut Diagnostics) {
        if self.unknown > 0 {
            let more = if self.unknown > self.unknown_fields.len() { ", ..." } else { "" };
            let fields = self.unknown_fields.join(", ");
            let message = format!("{} fields are unknown here and left out: {fields}{more}", self.unknown);
            diagnostics.push(Diagnostic::warning(PROTO_NOT_IN_TEXT, Span::NONE, message));
        }
    }

    /// Decodes a message.
    pub(crate) fn decode<'a>(
        &mut self,
        ty: &'static MessageType,
        bytes: &'a [u8],
        path: &Path<'_>,
    ) -> Res<Message<'a>> {
        let mut message = Message::new(ty);
        self.merge(&mut message, bytes, path, 0)?;
        Ok(message)
    }

    /// Reads the fields in `bytes` into a message, as if they stood behind those that it has.
    fn merge<'a>(&mut self, m: &mut Message<'a>, bytes: &'a [u8], path: &Path<'_>, depth: usize) -> Res<()> {
        if depth > self.nesting_limit {
            let message = format!("{path}: nested deeper than {} levels", self.nesting_limit);
            return Err(error(NESTING_TOO_DEEP, message));
        }
        let mut input = Input { rest: bytes, size: bytes.len() };
        while !input.rest.is_empty() {
            let record = input.rest;
            let (number, wire) = input.key().map_err(|e| e.at(path))?;
            // A field of another wire type than its own is an unknown one, as in all libraries: its number
            // had another meaning in some version.
            let known = m.ty.field(number).filter(|f| f.accepts(wire));
            let Some(field) = known else {
                input.skip(number, wire, self.nesting_limit).map_err(|e| e.at(path))?;
                self.note_unknown(path, m.ty, number);
                self.take(size_of::<Cow<'_, [u8]>>())?;
                m.unknown.push(Cow::Borrowed(&record[..record.len() - input.rest.len()]));
                continue;
            };
            self.field(m, field, wire, &mut input, path, depth)?;
        }
        Ok(())
    }

    fn field<'a>(
        &mut self,
        m: &mut Message<'a>,
        field: &'static Field,
        wire: WireType,
        input: &mut Input<'a>,
        path: &Path<'_>,
        depth: usize,
    ) -> Res<()> {
        const ENTRY: usize = size_of::<(u32, Value<'_>)>();
        let number = field.number;
        let index = field.repeated.then(|| m.get(number).map_or(0, Value::count));
        let at = |e: WireError| e.at(&path.field(field.name, index));
        let expected = wire_type(&field.ty);
        if field.repeated && expected != WireType::LengthDelimited {
            let packed = if wire == WireType::LengthDelimited {
                let body = input.body().map_err(at)?;
                check_packed(&field.ty, body).map_err(at)?;
                body
            } else {
                let start = input.rest;
                input.number(wire).map_err(at)?;
                &start[..start.len() - input.rest.len()]
            };
            return match m.get_mut(number) {
                Some(Value::Packed(known)) => {
                    // What was borrowed from the input is copied.
                    let copied = if let Cow::Borrowed(known) = known { known.len() } else { 0 };
                    self.take(copied + packed.len())?;
                    known.to_mut().extend_from_slice(packed);
                    Ok(())
                }
                _ => {
                    self.take(ENTRY)?;
                    m.set(number, Value::Packed(Cow::Borrowed(packed)));
                    Ok(())
                }
            };
        }
        match &field.ty {
            Type::Bool
            | Type::Int32
            | Type::Int64
            | Type::Uint32
            | Type::Uint64
            | Type::Float
            | Type::Double
            | Type::Enum(_) => {
                let value = input.number(wire).map_err(at)?;
                self.take(ENTRY)?;
                m.set(number, Value::Number(narrowed(&field.ty, value)));
            }
            Type::String => {
                let body = input.body().map_err(at)?;
                let text = std::str::from_utf8(body).map_err(|e| at(WireError::NotText(e.valid_up_to())))?;
                self.take(ENTRY)?;
                match (m.get_mut(number), field.repeated) {
                    (Some(Value::Texts(list)), true) => list.push(Cow::Borrowed(text)),
                    (_, true) => m.set(number, Value::Texts(vec![Cow::Borrowed(text)])),
                    (_, false) => m.set(number, Value::Text(Cow::Borrowed(text))),
                }
            }
            Type::Bytes => {
                let body = input.body().map_err(at)?;
                self.take(ENTRY)?;
                match (m.get_mut(number), field.repeated) {
                    (Some(Value::BytesList(list)), true) => list.push(Cow::Borrowed(body)),
                    (_, true) => m.set(number, Value::BytesList(vec![Cow::Borrowed(body)])),
                    (_, false) => m.set(number, Value::Bytes(Cow::Borrowed(body))),
                }
            }
            Type::Message(ty) => {
                let body = input.body().map_err(at)?;
                let lazy = self.lazy && field.repeated && is_lazy(ty);
                self.take(ENTRY + if lazy { 0 } else { size_of::<Message<'_>>() })?;
                if lazy {
                    match m.get_mut(number) {
                        Some(Value::Encoded(list)) => list.push(body),
                        _ => m.set(number, Value::Encoded(vec![body])),
                    }
                } else if field.repeated {
                    let index = match m.get(number) {
                        Some(Value::Messages(list)) => list.len(),
                        _ => 0,
                    };
                    let mut inner = Message::new(ty);
                    self.merge(&mut inner, body, &path.field(field.name, Some(index)), depth + 1)?;
                    match m.get_mut(number) {
                        Some(Value::Messages(list)) => list.push(inner),
                        _ => m.set(number, Value::Messages(vec![inner])),
                    }
                } else {
                    self.merge(m.child(number, ty), body, &path.field(field.name, None), depth + 1)?;
                }
            }
        }
        Ok(())
    }
}

impl Field {
    /// Whether values of a wire type can stand in the field: repeated numbers may be packed or not.
    fn accepts(&self, wire: WireType) -> bool {
        wire == wire_type(&self.ty) || self.repeated && wire == WireType::LengthDelimited
    }
}

/// Whether these messages are many and large.
fn is_lazy(ty: &MessageType) -> bool {
    matches!(ty.name, "HloComputationProto" | "HloInstructionProto")
}

/// The wire type of single values.
fn wire_type(ty: &Type) -> WireType {
    match ty {
        Type::Bool | Type::Int32 | Type::Int64 | Type::Uint32 | Type::Uint64 | Type::Enum(_) => {
            WireType::Varint
        }
        Type::Float => WireType::ThirtyTwoBit,
        Type::Double => WireType::SixtyFourBit,
        Type::String | Type::Bytes | Type::Message(_) => WireType::LengthDelimited,
    }
}

/// What a number on the wire means in a field: longer ones are truncated, as the protocol says.
pub(crate) fn narrowed(ty: &Type, value: u64) -> u64 {
    match ty {
        Type::Bool => u64::from(value != 0),
        Type::Int32 | Type::Enum(_) => i64::from(value as i32) as u64,
        Type::Uint32 => u64::from(value as u32),
        Type::Int64
        | Type::Uint64
        | Type::Float
        | Type::Double
        | Type::String
        | Type::Bytes
        | Type::Message(_) => value,
    }
}

fn check_packed(ty: &Type, body: &[u8]) -> Result<(), WireError> {
    match wire_type(ty) {
        WireType::ThirtyTwoBit if !body.len().is_multiple_of(4) => Err(WireError::Packed(body.len(), 4)),
        WireType::SixtyFourBit if !body.len().is_multiple_of(8) => Err(WireError::Packed(body.len(), 8)),
        // Numbers are looked at when they are used; here only that the last one ends.
        WireType::Varint if body.last().is_some_and(|b| b & 0x80 != 0) => Err(WireError::Varint(0)),
        _ => Ok(()),
    }
}

/// What is wrong with bytes.
#[derive(Clone, Copy, Debug)]
enum WireError {
    /// Ends in a number, or has one of more than ten bytes; the remaining bytes of the message.
    Varint(usize),
    /// A key without a field number, or of a wire type that there is not.
    Key(u64),
    /// A length, and how many bytes follow.
    Length(u64, usize),
    /// Packed numbers of another length than several of that many bytes.
    Packed(usize, usize),
    NotText(usize),
    Group(u32),
    Nesting(usize),
}

impl WireError {
    fn at(self, path: &Path<'_>) -> Box<Diagnostic> {
        let what = match self {
            WireError::Varint(left) => {
                format!("a number does not end within ten bytes, {left} bytes before the end")
            }
            WireError::Key(key) => format!("key {key} has no field number, or no wire type"),
            WireError::Length(length, left) => format!("a length of {length} bytes, and {left} bytes follow"),
            WireError::Packed(length, size) => {
                format!("{length} bytes of packed numbers of {size} bytes each")
            }
            WireError::NotText(at) => format!("byte {at} of the string is not UTF-8"),
            WireError::Group(number) => format!("the group of unknown field {number} does not end"),
            WireError::Nesting(limit) => {
                return error(NESTING_TOO_DEEP, format!("{path}: groups nested deeper than {limit} levels"));
            }
        };
        error(PROTO_MALFORMED, format!("{path}: {what}"))
    }
}

/// The bytes of one message.
struct Input<'a> {
    rest: &'a [u8],
    size: usize,
}

impl<'a> Input<'a> {
    fn varint(&mut self) -> Result<u64, WireError> {
        debug_assert!(self.rest.len() <= self.size);
        let left = self.rest.len();
        decode_varint(&mut self.rest).map_err(|_| WireError::Varint(left))
    }

    fn key(&mut self) -> Result<(u32, WireType), WireError> {
        let key = self.varint()?;
        let number =
            u32::try_from(key >> 3).ok().filter(|&n| n > 0 && n < 1 << 29).ok_or(WireError::Key(key))?;
        let wire = WireType::try_from(key & 7).map_err(|_| WireError::Key(key))?;
        Ok((number, wire))
    }

    fn fixed(&mut self, n: usize) -> Result<u64, WireError> {
        let (head, rest) =
            self.rest.split_at_checked(n).ok_or(WireError::Length(n as u64, self.rest.len()))?;
        self.rest = rest;
        Ok(head.iter().rev().fold(0, |v, &b| v << 8 | u64::from(b)))
    }

    fn number(&mut self, wire: WireType) -> Result<u64, WireError> {
        match wire {
            WireType::ThirtyTwoBit => self.fixed(4),
            WireType::SixtyFourBit => self.fixed(8),
            _ => self.varint(),
        }
    }

    /// The body of a string, message or packed field.
    fn body(&mut self) -> Result<&'a [u8], WireError> {
        let length = self.varint()?;
        let left = self.rest.len();
        let n = usize::try_from(length).ok().filter(|&n| n <= left).ok_or(WireError::Length(length, left))?;
        let (body, rest) = self.rest.split_at(n);
        self.rest = rest;
        Ok(body)
    }

    /// Passes over a field of any kind.
    fn skip(&mut self, number: u32, wire: WireType, nesting_limit: usize) -> Result<(), WireError> {
        // Groups that are open, innermost last.
        let mut open: Vec<u32> = Vec::new();
        let (mut number, mut wire) = (number, wire);
        loop {
            match wire {
                WireType::Varint | WireType::ThirtyTwoBit | WireType::SixtyFourBit => {
                    self.number(wire)?;
                }
                WireType::LengthDelimited => {
                    self.body()?;
                }
                WireType::StartGroup => {
                    if open.len() >= nesting_limit {
                        return Err(WireError::Nesting(nesting_limit));
                    }
                    open.push(number);
                }
                WireType::EndGroup => {
                    if open.pop() != Some(number) {
                        return Err(WireError::Group(number));
                    }
                }
            }
            let Some(&innermost) = open.last() else { return Ok(()) };
            if self.rest.is_empty() {
                return Err(WireError::Group(innermost));
            }
            (number, wire) = self.key()?;
        }
    }
}

/// The records at the start of a message: number, wire type and body, which is empty but of strings, bytes
/// and messages. Ends at what is no record; of one that is truncated, what is left.
pub(crate) fn records(bytes: &[u8]) -> impl Iterator<Item = (u32, WireType, &[u8])> {
    let mut input = Input { rest: bytes, size: bytes.len() };
    std::iter::from_fn(move || {
        let (number, wire) = input.key().ok()?;
        let body = match wire {
            WireType::LengthDelimited => {
                let length = input.varint().ok()?;
                let n = usize::try_from(length).unwrap_or(usize::MAX).min(input.rest.len());
                let (body, rest) = input.rest.split_at(n);
                input.rest = rest;
                body
            }
            WireType::Varint | WireType::ThirtyTwoBit | WireType::SixtyFourBit => {
                input.number(wire).ok()?;
                &[]
            }
            WireType::StartGroup | WireType::EndGroup => return None,
        };
        Some((number, wire, body))
    })
}

/// One record of an unknown field, taken apart: number, wire type, the number or the body.
pub(crate) fn parse_record(record: &[u8]) -> Option<(u32, WireType, u64, &[u8])> {
    let mut input = Input { rest: record, size: record.len() };
    let (number, wire) = input.key().ok()?;
    Some(match wire {
        WireType::LengthDelimited => (number, wire, 0, input.body().ok()?),
        WireType::StartGroup | WireType::EndGroup => (number, wire, 0, input.rest),
        _ => (number, wire, input.number(wire).ok()?, &[]),
    })
}

/// A record of an unknown field.
pub(crate) fn make_record(number: u32, wire: WireType, value: u64, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(body.len() + 16);
    encode_varint(u64::from(number) << 3 | wire as u64, &mut out);
    match wire {
        WireType::ThirtyTwoBit => out.extend_from_slice(&(value as u32).to_le_bytes()),
        WireType::SixtyFourBit => out.extend_from_slice(&value.to_le_bytes()),
        WireType::LengthDelimited => {
            encode_varint(body.len() as u64, &mut out);
            out.extend_from_slice(body);
        }
        _ => encode_varint(value, &mut out),
    }
    out
}

// ---- writing

/// Writes a message.
///
/// # Errors
/// Those of the writer.
pub(crate) fn encode(message: &Message<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut sizes = Vec::new();
    measure(message, &mut sizes);
    let mut encoder = Encoder { sizes: sizes.into_iter(), buffer: Vec::with_capacity(BUFFER_BYTES), out };
    encoder.sizes.next();
    encoder.message(message)?;
    encoder.out.write_all(&encoder.buffer)
}

/// Small fields are gathered; larger ones are written straight from where they are.
const BUFFER_BYTES: usize = 1 << 16;

/// The sizes of a message and of those in it, in the order in which they are written.
fn measure(m: &Message<'_>, sizes: &mut Vec<usize>) -> usize {
    let index = sizes.len();
    sizes.push(0);
    let mut size = 0;
    for (number, value) in m.fields() {
        let key = encoded_len_varint(u64::from(*number) << 3);
        let delimited = |n: usize| key + encoded_len_varint(n as u64) + n;
        size += match value {
            Value::Number(v) => key + number_size(m.ty, *number, *v),
            Value::Packed(b) | Value::Bytes(b) => delimited(b.len()),
            Value::Text(t) => delimited(t.len()),
            Value::Texts(list) => list.iter().map(|t| delimited(t.len())).sum(),
            Value::BytesList(list) => list.iter().map(|b| delimited(b.len())).sum(),
            Value::Encoded(list) => list.iter().map(|b| delimited(b.len())).sum(),
            Value::Message(inner) => delimited(measure(inner, sizes)),
            Value::Messages(list) => list.iter().map(|inner| delimited(measure(inner, sizes))).sum(),
        };
    }
    size += m.unknown.iter().map(|u| u.len()).sum::<usize>();
    sizes[index] = size;
    size
}

fn number_wire(ty: &MessageType, number: u32) -> WireType {
    ty.field(number).map_or(WireType::Varint, |f| wire_type(&f.ty))
}

fn number_size(ty: &MessageType, number: u32, value: u64) -> usize {
    match number_wire(ty, number) {
        WireType::ThirtyTwoBit => 4,
        WireType::SixtyFourBit => 8,
        _ => encoded_len_varint(value),
    }
}

struct Encoder<'w> {
    sizes: std::vec::IntoIter<usize>,
    buffer: Vec<u8>,
    out: &'w mut dyn Write,
}

impl Encoder<'_> {
    fn message(&mut self, m: &Message<'_>) -> io::Result<()> {
        for (number, value) in m.fields() {
            let number = *number;
            match value {
                Value::Number(v) => {
                    let wire = number_wire(m.ty, number);
                    self.key(number, wire);
                    match wire {
                        WireType::ThirtyTwoBit => self.buffer.extend_from_slice(&(*v as u32).to_le_bytes()),
                        WireType::SixtyFourBit => self.buffer.extend_from_slice(&v.to_le_bytes()),
                        _ => encode_varint(*v, &mut self.buffer),
                    }
                }
                Value::Packed(b) | Value::Bytes(b) => self.delimited(number, b)?,
                Value::Text(t) => self.delimited(number, t.as_bytes())?,
                Value::Texts(list) => list.iter().try_for_each(|t| self.delimited(number, t.as_bytes()))?,
                Value::BytesList(list) => list.iter().try_for_each(|b| self.delimited(number, b))?,
                Value::Encoded(list) => list.iter().try_for_each(|b| self.delimited(number, b))?,
                Value::Message(inner) => self.inner(number, inner)?,
                Value::Messages(list) => list.iter().try_for_each(|inner| self.inner(number, inner))?,
            }
        }
        m.unknown.iter().try_for_each(|u| self.raw(u))
    }

    fn inner(&mut self, number: u32, m: &Message<'_>) -> io::Result<()> {
        let size = self.sizes.next().expect("invariant: as many sizes as messages, in the same order");
        self.key(number, WireType::LengthDelimited);
        encode_varint(size as u64, &mut self.buffer);
        self.message(m)
    }

    fn key(&mut self, number: u32, wire: WireType) {
        encode_varint(u64::from(number) << 3 | wire as u64, &mut self.buffer);
    }

    fn delimited(&mut self, number: u32, body: &[u8]) -> io::Result<()> {
        self.key(number, WireType::LengthDelimited);
        encode_varint(body.len() as u64, &mut self.buffer);
        self.raw(body)
    }

    fn raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.buffer.len() + bytes.len() > BUFFER_BYTES {
            self.out.write_all(&self.buffer)?;
            self.buffer.clear();
            if bytes.len() > BUFFER_BYTES {
                return self.out.write_all(bytes);
            }
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }
}
