//! The elements of `dense<...>`.
//!
//! **Invariant:** elements go straight from the text into bytes, checked against the shape; nothing is made
//! for each element.

use std::sync::Arc;

use hlo::Span;
use hlo::diag::codes::mlir;

use super::cursor::{Parse, Parser, unescape};
use crate::encode::Encoder;
use crate::ir::{AttrId, Attribute, Type, TypeId, element_bytes};

impl Parser<'_> {
    /// The literal whose text is `body`, of a type.
    pub(super) fn elements(
        &mut self,
        body: std::ops::Range<usize>,
        ty: TypeId,
        type_span: Span,
    ) -> Parse<AttrId> {
        let (dims, element) = match self.m.get_type(ty) {
            Type::Tensor { dims, element, .. } | Type::Vector { dims, element, .. } => {
                (dims.to_vec(), *element)
            }
            _ => {
                return self.error_at(
                    mlir::MLIR_BAD_TYPE,
                    type_span,
                    "a literal of a type that is no tensor",
                );
            }
        };
        if dims.iter().any(|&d| d < 0) {
            return self.error_at(
                mlir::MLIR_BAD_TYPE,
                type_span,
                "a literal of a tensor whose size is not known",
            );
        }
        let Some(count) = dims.iter().try_fold(1usize, |n, &d| n.checked_mul(usize::try_from(d).ok()?))
        else {
            return self.error_at(
                mlir::MLIR_BAD_TYPE,
                type_span,
                "a literal of more elements than memory has",
            );
        };
        let element = match self.m.get_type(element) {
            // The storage values are given.
            Type::Quantized(q) => {
                let (width, signed) = (q.storage_bits, q.signed);
                let sign =
                    if signed { crate::ir::Signedness::Signless } else { crate::ir::Signedness::Unsigned };
                self.m.ty(Type::Integer { width, sign })
            }
            _ => element,
        };
        let text = self.text[body.clone()].trim();
        let offset = body.start + (self.text[body.clone()].len() - self.text[body].trim_start().len());
        let span = Span::new(offset, offset + text.len());
        let Some(mut encoder) = Encoder::new(&self.m, element) else {
            return self.strings(text, count, ty, span);
        };
        if let Some(quoted) = text.strip_prefix('"') {
            let hex = quoted.strip_suffix('"').and_then(|q| q.strip_prefix("0x"));
            let Some(hex) = hex else {
                return self.error_at(
                    mlir::MLIR_BAD_ELEMENTS,
                    span,
                    "neither elements nor bytes, `\"0x...\"`",
                );
            };
            self.take(hex.len() as u64 / 2 + 256)?;
            let Some(bytes) = decode_hex(hex) else {
                return self.error_at(
                    mlir::MLIR_BAD_ELEMENTS,
                    span,
                    "not an even number of hexadecimal digits",
                );
            };
            return match crate::encode::from_packed(&self.m, element, &bytes, count) {
                Some((data, splat)) => {
                    self.intern_attribute(Attribute::Elements { ty, splat, data: data.into() })
                }
                None => {
                    let message =
                        format!("{} bytes, which are not {count} elements of the type", bytes.len());
                    self.error_at(mlir::MLIR_BAD_ELEMENTS, span, message)
                }
            };
        }
        let width = element_bytes(&self.m, element).unwrap_or(1);
        let most = (text.len() / 2 + 1).min(count.max(1));
        self.take((most * width) as u64 + 256)?;
        let mut data = Vec::with_capacity(most * width);
        let mut scan = Scan { bytes: text.as_bytes(), at: 0, offset };
        scan.blank();
        if text.is_empty() {
            if count != 0 {
                return self.error_at(
                    mlir::MLIR_BAD_ELEMENTS,
                    span,
                    format!("no elements, where there are {count}"),
                );
            }
            return self.intern_attribute(Attribute::Elements { ty, splat: false, data: Arc::from([]) });
        }
        let result = scan.all(&dims, &mut encoder, &mut data);
        match result {
            Ok(splat) => {
                // A list of one element is a splat, too: equal attributes are equal.
                let splat = splat || count == 1;
                self.intern_attribute(Attribute::Elements { ty, splat, data: data.into() })
            }
            Err((at, why)) => {
                let span = Span::new(at, (at + 1).min(self.text.len()));
                self.error_at(mlir::MLIR_BAD_ELEMENTS, span, why)
            }
        }
    }

    /// Elements that are strings.
    fn strings(&mut self, text: &str, count: usize, ty: TypeId, span: Span) -> Parse<AttrId> {
        let mut texts: Vec<Box<str>> = Vec::new();
        let mut rest = text;
        while let Some(open) = rest.find('"') {
            let bytes = rest.as_bytes();
            let mut at = open + 1;
            while bytes.get(at).is_some_and(|&b| b != b'"') {
                at += if bytes[at] == b'\\' { 2 } else { 1 };
            }
            let one = rest.get(open + 1..at).and_then(unescape).and_then(|b| String::from_utf8(b).ok());
            match one {
                Some(one) => texts.push(one.into()),
                None => return self.error_at(mlir::MLIR_BAD_ELEMENTS, span, "not strings"),
            }
            rest = rest.get(at + 1..).unwrap_or("");
        }
        if texts.is_empty() || texts.len() != 1 && texts.len() != count {
            return self.error_at(
                mlir::MLIR_BAD_ELEMENTS,
                span,
                "elements that are neither numbers nor strings",
            );
        }
        self.take(text.len() as u64 + 64 * texts.len() as u64)?;
        self.intern_attribute(Attribute::Strings { ty, texts: texts.into() })
    }
}

/// Two hexadecimal digits a byte.
pub(super) fn decode_hex(hex: &str) -> Option<Vec<u8>> {
    let digit = |b: u8| match b {
        b'0'..=b'9' => Some(b - b'0'),
        b'a'..=b'f' => Some(b - b'a' + 10),
        b'A'..=b'F' => Some(b - b'A' + 10),
        _ => None,
    };
    let pairs = hex.as_bytes().chunks_exact(2);
    if !pairs.remainder().is_empty() {
        return None;
    }
    let mut bytes = Vec::with_capacity(hex.len() / 2);
    for pair in pairs {
        bytes.push(digit(pair[0])? << 4 | digit(pair[1])?);
    }
    Some(bytes)
}

/// A scan of nested lists of numbers.
struct Scan<'t> {
    bytes: &'t [u8],
    at: usize,
    /// Of the first byte in the text.
    offset: usize,
}

type Scanned<T> = Result<T, (usize, String)>;

impl Scan<'_> {
    fn blank(&mut self) {
        while let Some(&b) = self.bytes.get(self.at) {
            if b.is_ascii_whitespace() {
                self.at += 1;
            } else if self.bytes[self.at..].starts_with(b"//") {
                let rest = &self.bytes[self.at..];
                self.at += memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            } else {
                break;
            }
        }
    }

    fn eat(&mut self, b: u8) -> bool {
        let there = self.bytes.get(self.at) == Some(&b);
        if there {
            self.at += 1;
            self.blank();
        }
        there
    }

    fn wrong<T>(&self, why: impl Into<String>) -> Scanned<T> {
        Err((self.offset + self.at, why.into()))
    }

    /// Everything; whether it is one element for all.
    fn all(&mut self, dims: &[i64], encoder: &mut Encoder, data: &mut Vec<u8>) -> Scanned<bool> {
        if self.bytes.first() != Some(&b'[') {
            self.element(encoder, data)?;
            return match self.at == self.bytes.len() {
                true => Ok(true),
                false => self.wrong("something after the element"),
            };
        }
        // How many are done in each open list.
        let mut done: Vec<i64> = Vec::new();
        loop {
            if self.eat(b'[') {
                if done.len() == dims.len() {
                    return self.wrong(format!("lists nested deeper than the rank, {}", dims.len()));
                }
                done.push(0);
                if self.bytes.get(self.at) != Some(&b']') {
                    continue;
                }
            } else if done.len() == dims.len() {
                self.element(encoder, data)?;
                if let Some(n) = done.last_mut() {
                    *n += 1;
                }
            } else {
                return self.wrong(format!("lists nested less deep than the rank, {}", dims.len()));
            }
            // What was complete may complete lists around it.
            loop {
                if self.eat(b',') {
                    break;
                }
                if !self.eat(b']') {
                    return self.wrong("neither `,` nor `]`");
                }
                let n = done.pop().unwrap_or(0);
                let want = dims[done.len()];
                if n != want {
                    return self
                        .wrong(format!("a list of {n} where dimension {} has size {want}", done.len()));
                }
                match done.last_mut() {
                    Some(outer) => *outer += 1,
                    None => {
                        return match self.at == self.bytes.len() {
                            true => Ok(false),
                            false => self.wrong("something after the list"),
                        };
                    }
                }
            }
        }
    }

    fn element(&mut self, encoder: &mut Encoder, data: &mut Vec<u8>) -> Scanned<()> {
        if encoder.is_complex() {
            if !self.eat(b'(') {
                return self.wrong("a complex number is written `(real, imaginary)`");
            }
            self.number(encoder, data)?;
            if !self.eat(b',') {
                return self.wrong("a complex number has two parts");
            }
            self.number(encoder, data)?;
            if !self.eat(b')') {
                return self.wrong("a complex number ends with `)`");
            }
            return Ok(());
        }
        self.number(encoder, data)
    }

    fn number(&mut self, encoder: &mut Encoder, data: &mut Vec<u8>) -> Scanned<()> {
        let negative = self.eat(b'-');
        let start = self.at;
        while let Some(&b) = self.bytes.get(self.at) {
            let sign = (b == b'+' || b == b'-') && matches!(self.bytes[self.at.max(1) - 1], b'e' | b'E');
            if b.is_ascii_alphanumeric() || b == b'.' || sign {
                self.at += 1;
            } else {
                break;
            }
        }
        let text = std::str::from_utf8(&self.bytes[start..self.at]).unwrap_or("");
        if text.is_empty() {
            return self.wrong("an element is missing");
        }
        if let Err(why) = encoder.push(data, negative, text) {
            self.at = start;
            return self.wrong(why);
        }
        self.blank();
        Ok(())
    }
}
