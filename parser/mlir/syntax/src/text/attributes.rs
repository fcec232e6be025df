//! Attributes in text.

use hlo::Span;
use hlo::diag::codes::mlir;

use super::cursor::{Parse, Parser, magnitude};
use super::token::Tok;
use crate::encode::Encoder;
use crate::ir::{AttrId, Attribute, NamedAttribute, Type, TypeId};

/// Bytes that an attribute takes in addition to its data.
const ATTRIBUTE_BYTES: u64 = 128;

impl<'t> Parser<'t> {
    pub(super) fn intern_attribute(&mut self, attribute: Attribute) -> Parse<AttrId> {
        self.take(ATTRIBUTE_BYTES)?;
        Ok(self.m.attribute(attribute))
    }

    /// An attribute.
    pub(super) fn attribute(&mut self) -> Parse<AttrId> {
        self.nested(Self::attribute_here)
    }

    fn attribute_here(&mut self) -> Parse<AttrId> {
        match self.tok {
            Tok::Int | Tok::Float | Tok::Minus => self.number(),
            Tok::Str => {
                let bytes = self.string()?;
                let ty = if self.eat(Tok::Colon) { Some(self.ty()?) } else { None };
                let attribute = match String::from_utf8(bytes) {
                    Ok(text) => Attribute::String { text: text.into(), ty },
                    Err(e) => Attribute::Bytes(e.into_bytes().into()),
                };
                self.intern_attribute(attribute)
            }
            Tok::LSquare => {
                let parts = self.list(Tok::LSquare, Tok::RSquare, Self::attribute)?;
                self.take(4 * parts.len() as u64)?;
                self.intern_attribute(Attribute::Array(parts.into()))
            }
            Tok::LBrace => {
                let parts = self.dictionary()?;
                let parts = self.sorted(parts);
                self.intern_attribute(Attribute::Dictionary(parts))
            }
            Tok::At => self.symbol_attribute(),
            Tok::Hash => self.hash_attribute(),
            Tok::Word => self.word_attribute(),
            Tok::LParen | Tok::Bang => {
                let ty = self.ty()?;
                self.intern_attribute(Attribute::Type(ty))
            }
            _ => self.expected("an attribute"),
        }
    }

    /// Names in the order of their texts, as the tree has dictionaries.
    fn sorted(&self, mut parts: Vec<NamedAttribute>) -> Box<[NamedAttribute]> {
        parts.sort_by(|a, b| self.m.text(a.name).cmp(self.m.text(b.name)));
        parts.into()
    }

    fn symbol_attribute(&mut self) -> Parse<AttrId> {
        let root = self.symbol()?;
        let mut nested = Vec::new();
        while self.eat(Tok::Colons) {
            nested.push(self.symbol()?);
        }
        self.intern_attribute(Attribute::Symbol { root, nested: nested.into() })
    }

    /// `1`, `-1 : i32`, `1.5 : f32`, `0x7FC00000 : f32`; without a type `i64` or `f64`.
    fn number(&mut self) -> Parse<AttrId> {
        let start = self.start;
        let negative = self.eat(Tok::Minus);
        let (is_float, text) = (self.is(Tok::Float), self.token());
        if !matches!(self.tok, Tok::Int | Tok::Float) {
            return self.expected("a number");
        }
        self.advance();
        let ty = if self.eat(Tok::Colon) {
            self.ty()?
        } else if is_float {
            self.intern(Type::Float(crate::ir::FloatType::F64))?
        } else {
            self.int_type(64)
        };
        let span = self.since(start);
        self.number_of(negative, text, ty, span)
    }

    /// A number of a type.
    pub(super) fn number_of(&mut self, negative: bool, text: &str, ty: TypeId, span: Span) -> Parse<AttrId> {
        let attribute = match *self.m.get_type(ty) {
            Type::Float(float) => {
                let bits = match text.strip_prefix("0x") {
                    Some(hex) => u64::from_str_radix(hex, 16).ok(),
                    None => text
                        .parse()
                        .ok()
                        .and_then(|x: f64| crate::encode::float_bits(float, if negative { -x } else { x })),
                };
                match bits {
                    Some(bits) => Attribute::Float { bits, ty },
                    None => {
                        return self.error_at(
                            mlir::MLIR_BAD_ATTRIBUTE,
                            span,
                            "a number that its type does not have",
                        );
                    }
                }
            }
            Type::Integer { .. } | Type::Index => {
                let Some(value) = magnitude(text) else {
                    return self.error_at(
                        mlir::MLIR_BAD_ATTRIBUTE,
                        span,
                        "not an integer that fits 127 bits",
                    );
                };
                let value = if negative { -value } else { value };
                if matches!(self.m.get_type(ty), Type::Integer { width: 1, .. }) {
                    Attribute::Bool(value != 0)
                } else {
                    match crate::encode::wrapped(&self.m, ty, value) {
                        Some(value) => Attribute::Integer { value, ty },
                        None => {
                            let message = format!("{value} does not fit its type");
                            return self.error_at(mlir::MLIR_BAD_ATTRIBUTE, span, message);
                        }
                    }
                }
            }
            _ => {
                return self.error_at(
                    mlir::MLIR_BAD_ATTRIBUTE,
                    span,
                    "a number of a type that is none of numbers",
                );
            }
        };
        self.intern_attribute(attribute)
    }

    /// `{name = value, name, "name" = value}`
    pub(super) fn dictionary(&mut self) -> Parse<Vec<NamedAttribute>> {
        let parts = self.list(Tok::LBrace, Tok::RBrace, |p| {
            let span = p.span();
            let name = match p.tok {
                Tok::Str => p.utf8()?,
                Tok::Word => p.word()?.to_owned(),
                // A keyword that looks like something else, `2d`.
                _ => return p.expected("the name of an attribute"),
            };
            let value = if p.eat(Tok::Equal) { p.attribute()? } else { p.intern_attribute(Attribute::Unit)? };
            let name = p.m.name(&name);
            Ok((NamedAttribute { name, value }, span))
        })?;
        let mut seen = rustc_hash::FxHashMap::default();
        for (part, span) in &parts {
            if let Some(first) = seen.insert(part.name, *span) {
                let name = self.m.text(part.name).to_owned();
                let d = hlo::Diagnostic::error(
                    mlir::MLIR_BAD_ATTRIBUTE,
                    *span,
                    format!("`{name}` is given twice"),
                )
                .related(first, "first here");
                return Err(Box::new(d));
            }
        }
        Ok(parts.into_iter().map(|p| p.0).collect())
    }

    /// `{...}` if it is there.
    pub(super) fn optional_dictionary(&mut self) -> Parse<Vec<NamedAttribute>> {
        if self.is(Tok::LBrace) { self.dictionary() } else { Ok(Vec::new()) }
    }

    fn word_attribute(&mut self) -> Parse<AttrId> {
        match self.token() {
            "true" | "false" => {
                let value = self.token() == "true";
                self.advance();
                self.intern_attribute(Attribute::Bool(value))
            }
            "unit" => {
                self.advance();
                self.intern_attribute(Attribute::Unit)
            }
            "dense" => self.dense(),
            "array" => self.dense_array(),
            "dense_resource" => {
                self.advance();
                self.expect(Tok::Less)?;
                let key = match self.tok {
                    Tok::Str => self.utf8()?,
                    _ => self.word()?.to_owned(),
                };
                self.expect(Tok::Greater)?;
                self.expect(Tok::Colon)?;
                let ty = self.ty()?;
                let (builtin, key) = (self.m.name("builtin"), self.m.name(&key));
                let resource = self.m.resource(builtin, key);
                self.intern_attribute(Attribute::DenseResource { ty, resource })
            }
            "sparse" => {
                let start = self.start;
                self.advance();
                if !self.is(Tok::Less) {
                    return self.expected("`<`");
                }
                self.raw_brackets()?;
                self.expect(Tok::Colon)?;
                self.ty()?;
                let text = self.text[self.since(start).range()].into();
                self.intern_attribute(Attribute::Opaque(text))
            }
            "loc" => {
                self.advance();
                self.expect(Tok::LParen)?;
                let loc = self.location_here()?;
                self.expect(Tok::RParen)?;
                self.intern_attribute(Attribute::Location(loc))
            }
            "affine_map" | "affine_set" | "opaque" | "strided" | "distinct" => {
                let start = self.start;
                self.advance();
                while self.is(Tok::LSquare) || self.is(Tok::Less) {
                    self.raw_brackets()?;
                }
                let text = self.text[self.since(start).range()].into();
                self.intern_attribute(Attribute::Opaque(text))
            }
            _ if self.at_type() => {
                let ty = self.ty()?;
                self.intern_attribute(Attribute::Type(ty))
            }
            _ => self.expected("an attribute"),
        }
    }

    /// `array<i64: 1, 2>`
    fn dense_array(&mut self) -> Parse<AttrId> {
        self.advance();
        self.expect(Tok::Less)?;
        let element = self.ty()?;
        let mut values = Vec::new();
        let mut encoder = match Encoder::new(&self.m, element) {
            Some(encoder) => encoder,
            None => return self.error(mlir::MLIR_BAD_TYPE, "an array of something that is no number"),
        };
        if self.eat(Tok::Colon) {
            loop {
                let start = self.start;
                let negative = self.eat(Tok::Minus);
                let text = self.token();
                if !matches!(self.tok, Tok::Int | Tok::Float | Tok::Word) {
                    return self.expected("an element");
                }
                self.advance();
                if let Err(why) = encoder.push(&mut values, negative, text) {
                    return self.error_at(mlir::MLIR_BAD_ELEMENTS, self.since(start), why);
                }
                if !self.eat(Tok::Comma) {
                    break;
                }
            }
        }
        self.expect(Tok::Greater)?;
        self.take(values.len() as u64)?;
        self.intern_attribute(Attribute::DenseArray { element, data: values.into() })
    }

    /// `dense<...> : type`
    fn dense(&mut self) -> Parse<AttrId> {
        self.advance();
        if !self.is(Tok::Less) {
            return self.expected("`<`");
        }
        let open = self.start;
        let close = self.end_of_elements(open)?;
        let body = open + 1..close - 1;
        self.jump(close);
        self.expect(Tok::Colon)?;
        let type_span = self.span();
        let ty = self.ty()?;
        self.elements(body, ty, type_span)
    }

    /// The offset after the `>` that ends a literal of elements, which has no other in it but in strings.
    fn end_of_elements(&self, open: usize) -> Parse<usize> {
        let bytes = self.text.as_bytes();
        let mut at = open + 1;
        while let Some(found) = memchr::memchr3(b'>', b'"', b'\n', &bytes[at..]) {
            at += found + 1;
            match bytes[at - 1] {
                b'>' => return Ok(at),
                b'"' => loop {
                    match memchr::memchr2(b'"', b'\\', &bytes[at..]) {
                        None => {
                            return self
                                .error(hlo::diag::codes::parse::UNTERMINATED, "a string without an end");
                        }
                        Some(found) => {
                            at += found;
                            if bytes[at] == b'"' {
                                at += 1;
                                break;
                            }
                            at = (at + 2).min(bytes.len());
                        }
                    }
                },
                _ => {}
            }
        }
        let span = Span::new(open, open + 1);
        self.error_at(hlo::diag::codes::parse::UNCLOSED_BRACKET, span, "a literal without an end")
    }

    /// A list of integers, `[1, 2]`, as `array<i64>`.
    pub(super) fn ints(&mut self) -> Parse<AttrId> {
        if self.is_word("array") {
            return self.attribute();
        }
        let values = self.list(Tok::LSquare, Tok::RSquare, |p| {
            if p.eat(Tok::Question) { Ok(crate::ir::DYNAMIC) } else { p.int64() }
        })?;
        self.ints_of(&values)
    }

    /// `array<i64: ...>`
    pub(super) fn ints_of(&mut self, values: &[i64]) -> Parse<AttrId> {
        self.take(8 * values.len() as u64)?;
        let element = self.int_type(64);
        let data = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        self.intern_attribute(Attribute::DenseArray { element, data })
    }

    /// An `i64`.
    pub(super) fn int_attribute(&mut self, value: i64, width: u32) -> Parse<AttrId> {
        let ty = self.int_type(width);
        self.intern_attribute(Attribute::Integer { value: value.into(), ty })
    }
}
