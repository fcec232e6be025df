//! Messages as text.

use std::fmt::Write as _;
use std::io::{self, Write};

use prost::encoding::{WireType, decode_varint};

use crate::message::{Message, Value};
use crate::schema::{Field, Type};
use crate::wire::{narrowed, parse_record};

/// Writes a message, two blanks a level.
///
/// # Errors
/// Those of the writer.
pub(crate) fn print(message: &Message<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut printer = Printer { buffer: String::new(), out, level: 0 };
    printer.message(message)?;
    printer.out.write_all(printer.buffer.as_bytes())
}

/// Text is handed on in pieces of about this size.
const PIECE_BYTES: usize = 1 << 16;

struct Printer<'w> {
    buffer: String,
    out: &'w mut dyn Write,
    level: usize,
}

impl Printer<'_> {
    fn message(&mut self, m: &Message<'_>) -> io::Result<()> {
        for (number, value) in m.fields() {
            let Some(field) = m.ty.field(*number) else { continue };
            match value {
                Value::Number(v) => self.number(field, *v)?,
                Value::Packed(bytes) => self.packed(field, bytes)?,
                Value::Text(t) => self.quoted(field.name, t.as_bytes())?,
                Value::Texts(list) => list.iter().try_for_each(|t| self.quoted(field.name, t.as_bytes()))?,
                Value::Bytes(b) => self.quoted(field.name, b)?,
                Value::BytesList(list) => list.iter().try_for_each(|b| self.quoted(field.name, b))?,
                Value::Message(inner) => self.inner(field.name, inner)?,
                Value::Messages(list) => list.iter().try_for_each(|inner| self.inner(field.name, inner))?,
                Value::Encoded(_) => unreachable!("invariant: what is printed is decoded"),
            }
        }
        m.unknown.iter().try_for_each(|record| self.unknown(record))
    }

    fn indent(&mut self) {
        self.buffer.extend(std::iter::repeat_n("  ", self.level));
    }

    fn end_line(&mut self) -> io::Result<()> {
        self.buffer.push('\n');
        if self.buffer.len() > PIECE_BYTES {
            self.out.write_all(self.buffer.as_bytes())?;
            self.buffer.clear();
        }
        Ok(())
    }

    fn inner(&mut self, name: &str, m: &Message<'_>) -> io::Result<()> {
        self.indent();
        self.buffer.push_str(name);
        self.buffer.push_str(" {");
        self.end_line()?;
        self.level += 1;
        self.message(m)?;
        self.level -= 1;
        self.indent();
        self.buffer.push('}');
        self.end_line()
    }

    fn number(&mut self, field: &Field, v: u64) -> io::Result<()> {
        self.indent();
        self.buffer.push_str(field.name);
        self.buffer.push_str(": ");
        let out = &mut self.buffer;
        let written = match &field.ty {
            Type::Bool => write!(out, "{}", v != 0),
            Type::Uint32 | Type::Uint64 => write!(out, "{v}"),
            Type::Float => write_float(out, f32::from_bits(v as u32)),
            Type::Double => write_double(out, f64::from_bits(v)),
            Type::Enum(e) => match e.name_of(v as i64) {
                Some(name) => out.write_str(name),
                None => write!(out, "{}", v as i64),
            },
            Type::Int32 | Type::Int64 | Type::String | Type::Bytes | Type::Message(_) => {
                write!(out, "{}", v as i64)
            }
        };
        written.expect("invariant: writing to a string does not fail");
        self.end_line()
    }

    fn packed(&mut self, field: &Field, bytes: &[u8]) -> io::Result<()> {
        match &field.ty {
            Type::Float => bytes
                .as_chunks::<4>()
                .0
                .iter()
                .try_for_each(|c| self.number(field, u32::from_le_bytes(*c).into())),
            Type::Double => {
                bytes.as_chunks::<8>().0.iter().try_for_each(|c| self.number(field, u64::from_le_bytes(*c)))
            }
            ty => {
                let mut rest = bytes;
                while !rest.is_empty() {
                    let Ok(v) = decode_varint(&mut rest) else {
                        return Err(io::Error::other(format!(
                            "{}: a number does not end within ten bytes",
                            field.name
                        )));
                    };
                    self.number(field, narrowed(ty, v))?;
                }
                Ok(())
            }
        }
    }

    fn quoted(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.indent();
        self.buffer.push_str(name);
        self.buffer.push_str(": ");
        write_quoted(&mut self.buffer, bytes);
        self.end_line()
    }

    fn unknown(&mut self, record: &[u8]) -> io::Result<()> {
        let Some((number, wire, value, body)) = parse_record(record) else { return Ok(()) };
        self.indent();
        let out = &mut self.buffer;
        let written = match wire {
            WireType::Varint => write!(out, "{number}: {value}"),
            WireType::ThirtyTwoBit => write!(out, "{number}: 0x{value:08x}"),
            WireType::SixtyFourBit => write!(out, "{number}: 0x{value:016x}"),
            WireType::LengthDelimited => {
                let name = write!(out, "{number}: ");
                write_quoted(out, body);
                name
            }
            // Groups have no form that would read back as such; nothing of XLA has had any.
            WireType::StartGroup | WireType::EndGroup => {
                return Err(io::Error::other(format!(
                    "unknown field {number} is a group, which text cannot say"
                )));
            }
        };
        written.expect("invariant: writing to a string does not fail");
        self.end_line()
    }
}

/// With escapes for everything that is not printable ASCII.
fn write_quoted(out: &mut String, bytes: &[u8]) {
    out.push('"');
    for &b in bytes {
        match b {
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            b'"' | b'\'' | b'\\' => {
                out.push('\\');
                out.push(char::from(b));
            }
            b' '..=b'~' => out.push(char::from(b)),
            _ => {
                out.push('\\');
                for shift in [6, 3, 0] {
                    out.push(char::from(b'0' + (b >> shift & 7)));
                }
            }
        }
    }
    out.push('"');
}

fn write_float(out: &mut String, v: f32) -> std::fmt::Result {
    match v {
        _ if v.is_nan() => out.write_str(if v.is_sign_negative() { "-nan" } else { "nan" }),
        _ if v.is_infinite() => out.write_str(if v < 0.0 { "-inf" } else { "inf" }),
        // As Rust prints them they come back.
        _ if v == 0.0 || (1e-5..1e16).contains(&v.abs()) => write!(out, "{v}"),
        _ => write!(out, "{v:e}"),
    }
}

fn write_double(out: &mut String, v: f64) -> std::fmt::Result {
    match v {
        _ if v.is_nan() => out.write_str(if v.is_sign_negative() { "-nan" } else { "nan" }),
        _ if v.is_infinite() => out.write_str(if v < 0.0 { "-inf" } else { "inf" }),
        _ if v == 0.0 || (1e-5..1e16).contains(&v.abs()) => write!(out, "{v}"),
        _ => write!(out, "{v:e}"),
    }
}
