//! Types in text.

use hlo::Span;
use hlo::diag::codes::mlir;

use super::cursor::{Parse, Parser};
use super::token::Tok;
use crate::ir::{Attribute, DYNAMIC, FloatType, QuantizedType, Signedness, Type, TypeId};

/// Bytes that a type takes.
const TYPE_BYTES: u64 = 96;

/// The widest integer type of MLIR.
const MAX_INTEGER_BITS: u32 = (1 << 24) - 1;

impl<'t> Parser<'t> {
    pub(super) fn intern(&mut self, ty: Type) -> Parse<TypeId> {
        self.take(TYPE_BYTES)?;
        Ok(self.m.ty(ty))
    }

    /// Whether a type begins here.
    pub(super) fn at_type(&self) -> bool {
        match self.tok {
            Tok::Bang | Tok::LParen => true,
            Tok::Word => {
                let word = self.token();
                integer_type(word).is_some()
                    || FloatType::from_text(word).is_some()
                    || matches!(word, "index" | "none" | "tensor" | "vector" | "memref" | "complex" | "tuple")
            }
            _ => false,
        }
    }

    /// A type.
    pub(super) fn ty(&mut self) -> Parse<TypeId> {
        self.nested(Self::type_here)
    }

    fn type_here(&mut self) -> Parse<TypeId> {
        match self.tok {
            Tok::LParen => self.function_type(),
            Tok::Bang => self.dialect_type(),
            Tok::Word => self.builtin_type(),
            _ => self.expected("a type"),
        }
    }

    /// `(a, b) -> c`, `(a) -> (b, c)`
    fn function_type(&mut self) -> Parse<TypeId> {
        let inputs = self.list(Tok::LParen, Tok::RParen, Self::ty)?;
        self.expect(Tok::Arrow)?;
        let results = self.result_types()?;
        self.intern(Type::Function { inputs: inputs.into(), results: results.into() })
    }

    /// `c` or `(b, c)`, what stands after an arrow.
    pub(super) fn result_types(&mut self) -> Parse<Vec<TypeId>> {
        if !self.is(Tok::LParen) {
            return Ok(vec![self.ty()?]);
        }
        let open = self.start;
        let types = self.list(Tok::LParen, Tok::RParen, Self::ty)?;
        if self.is(Tok::Arrow) {
            // A function type as the only result.
            self.jump(open);
            return Ok(vec![self.ty()?]);
        }
        Ok(types)
    }

    fn builtin_type(&mut self) -> Parse<TypeId> {
        let word = self.token();
        if let Some((width, sign)) = integer_type(word) {
            if width == 0 || width > MAX_INTEGER_BITS {
                return self.error(mlir::MLIR_BAD_TYPE, format!("`{word}` has a width that no integer has"));
            }
            self.advance();
            return self.intern(Type::Integer { width, sign });
        }
        if let Some(float) = FloatType::from_text(word) {
            self.advance();
            return self.intern(Type::Float(float));
        }
        match word {
            "index" => {
                self.advance();
                self.intern(Type::Index)
            }
            "none" => {
                self.advance();
                self.intern(Type::None)
            }
            "complex" => {
                self.advance();
                self.expect(Tok::Less)?;
                let part = self.ty()?;
                self.expect(Tok::Greater)?;
                self.intern(Type::Complex(part))
            }
            "tuple" => {
                self.advance();
                let parts = self.list(Tok::Less, Tok::Greater, Self::ty)?;
                self.intern(Type::Tuple(parts.into()))
            }
            "tensor" => {
                self.advance();
                self.tensor()
            }
            "vector" => {
                self.advance();
                self.vector()
            }
            "memref" => {
                let start = self.start;
                self.advance();
                if !self.is(Tok::Less) {
                    return self.expected("`<`");
                }
                self.raw_brackets()?;
                let text = self.since(start);
                self.intern(Type::Opaque(self.text[text.range()].into()))
            }
            _ => self.expected("a type"),
        }
    }

    fn tensor(&mut self) -> Parse<TypeId> {
        if !self.is(Tok::Less) {
            return self.expected("`<`");
        }
        let inside = self.end;
        let star = self.text[inside..].trim_start();
        if star.starts_with('*') {
            self.advance();
            self.advance();
            // `x` and the element type are one word.
            let Some(after) = self.token().strip_prefix('x').filter(|_| self.is(Tok::Word)) else {
                return self.expected("`x` and an element type");
            };
            self.jump(self.end - after.len());
            let element = self.ty()?;
            self.expect(Tok::Greater)?;
            return self.intern(Type::UnrankedTensor(element));
        }
        let dims = self.dims(inside)?;
        let element = self.ty()?;
        let encoding = if self.eat(Tok::Comma) { Some(self.attribute()?) } else { None };
        self.expect(Tok::Greater)?;
        self.take(8 * dims.len() as u64)?;
        self.intern(Type::Tensor { dims: dims.into(), element, encoding })
    }

    /// `2x?x`, from an offset on; the current token is what follows.
    pub(super) fn dims(&mut self, from: usize) -> Parse<Vec<i64>> {
        let bytes = self.text.as_bytes();
        let blank = |mut at: usize| {
            while bytes.get(at).is_some_and(u8::is_ascii_whitespace) {
                at += 1;
            }
            at
        };
        let mut dims = Vec::new();
        let mut at = blank(from);
        loop {
            let mut end = at;
            if bytes.get(at) == Some(&b'?') {
                end += 1;
            } else {
                while bytes.get(end).is_some_and(u8::is_ascii_digit) {
                    end += 1;
                }
            }
            let x = blank(end);
            if end == at || bytes.get(x) != Some(&b'x') {
                break;
            }
            dims.push(match &self.text[at..end] {
                "?" => DYNAMIC,
                digits => match digits.parse() {
                    Ok(size) => size,
                    Err(_) => {
                        let span = Span::new(at, end);
                        return self.error_at(mlir::MLIR_BAD_TYPE, span, "a size that does not fit 64 bits");
                    }
                },
            });
            at = blank(x + 1);
        }
        self.jump(at);
        Ok(dims)
    }

    fn vector(&mut self) -> Parse<TypeId> {
        if !self.is(Tok::Less) {
            return self.expected("`<`");
        }
        // Scalable dimensions, in brackets, are no types of StableHLO.
        let dims = self.dims(self.end)?;
        let element = self.ty()?;
        self.expect(Tok::Greater)?;
        self.intern(Type::Vector { dims: dims.into(), scalable: [].into(), element })
    }

    /// `!alias`, `!dialect.name<...>`
    fn dialect_type(&mut self) -> Parse<TypeId> {
        let start = self.start;
        let name = &self.token()[1..];
        if let Some(&ty) = self.type_aliases.get(name) {
            self.advance();
            return Ok(ty);
        }
        if !name.contains('.') {
            // `!dialect<name ...>`
            self.advance();
            if !self.is(Tok::Less) {
                let message = format!("no type alias `!{name}` is defined above");
                return self.error_at(mlir::MLIR_UNDEFINED_ALIAS, self.since(start), message);
            }
            let body = self.raw_brackets()?;
            return self.intern(Type::Opaque(format!("{name}{body}").into()));
        }
        match name {
            "quant.uniform" => {
                self.advance();
                self.quantized()
            }
            "stablehlo.token" | "mhlo.token" => {
                let name = self.m.name(name);
                self.advance();
                self.intern(Type::Dialect { name, parameters: [].into() })
            }
            "stablehlo.future" | "mhlo.async_bundle" => {
                let name = self.m.name(name);
                self.advance();
                let parameters = self.list(Tok::Less, Tok::Greater, Self::ty)?;
                self.intern(Type::Dialect { name, parameters: parameters.into() })
            }
            _ => {
                let known = name.to_owned();
                self.advance();
                // A body follows directly.
                let body =
                    if self.is(Tok::Less) && self.start == self.before { self.raw_brackets()? } else { "" };
                self.intern(Type::Opaque(format!("{known}{body}").into()))
            }
        }
    }

    /// `<i8:f32, 0.1:2>`, `<u8<0:255>:f32:1, {0.1:2, 0.2}>`, `<i8:f32:{0:1, 1:2}, {{0.1, 0.2}}>`
    fn quantized(&mut self) -> Parse<TypeId> {
        self.expect(Tok::Less)?;
        let (signed, storage_bits) = match self.token() {
            t if self.is(Tok::Word) && (t.starts_with('u') || integer_type(t).is_some()) => {
                let signed = !t.starts_with('u');
                let digits = t.trim_start_matches(['u', 'i', 's']);
                match digits.parse() {
                    Ok(bits @ 1..=32) => (signed, bits),
                    _ => return self.error(mlir::MLIR_BAD_TYPE, "a storage type of more than 32 bits"),
                }
            }
            _ => return self.expected("a storage type, `i8` or `u8`"),
        };
        self.advance();
        let whole = 1i64 << storage_bits;
        let (mut storage_min, mut storage_max) =
            if signed { (-whole / 2, whole / 2 - 1) } else { (0, whole - 1) };
        if self.eat(Tok::Less) {
            storage_min = self.int64()?;
            self.expect(Tok::Colon)?;
            storage_max = self.int64()?;
            self.expect(Tok::Greater)?;
        }
        self.expect(Tok::Colon)?;
        let expressed = self.ty()?;
        let mut axes: Vec<(i32, i64)> = Vec::new();
        let mut per_axis = false;
        if self.eat(Tok::Colon) {
            if self.is(Tok::LBrace) {
                axes = self.list(Tok::LBrace, Tok::RBrace, |p| {
                    let axis = p.int64()?;
                    p.expect(Tok::Colon)?;
                    Ok((axis as i32, p.int64()?))
                })?;
            } else {
                per_axis = true;
                axes.push((self.int64()? as i32, 0));
            }
        }
        let _ = per_axis;
        self.expect(Tok::Comma)?;
        let mut scales = Vec::new();
        let mut zero_points = Vec::new();
        let mut open = 0;
        // Slices are listed in row-major order; braces only group them.
        loop {
            while self.eat(Tok::LBrace) {
                open += 1;
            }
            scales.push(self.f64()?.to_bits());
            zero_points.push(if self.eat(Tok::Colon) { self.int64()? } else { 0 });
            while open > 0 && self.eat(Tok::RBrace) {
                open -= 1;
            }
            if !self.eat(Tok::Comma) {
                break;
            }
        }
        if open > 0 {
            return self.expected("`}`");
        }
        self.expect(Tok::Greater)?;
        self.intern(Type::Quantized(Box::new(QuantizedType {
            signed,
            storage_bits,
            storage_min,
            storage_max,
            expressed,
            axes: axes.into(),
            scales: scales.into(),
            zero_points: zero_points.into(),
        })))
    }

    /// A number as `f64`.
    pub(super) fn f64(&mut self) -> Parse<f64> {
        let negative = self.eat(Tok::Minus);
        if !matches!(self.tok, Tok::Int | Tok::Float) {
            return self.expected("a number");
        }
        let text = self.token();
        let value = match text.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).ok().map(f64::from_bits),
            None => text.parse().ok(),
        };
        let Some(value) = value else { return self.expected("a number") };
        self.advance();
        Ok(if negative { -value } else { value })
    }

    /// Parts of a function type.
    pub(super) fn function_parts(&self, ty: TypeId) -> Option<(Vec<TypeId>, Vec<TypeId>)> {
        match self.m.get_type(ty) {
            Type::Function { inputs, results } => Some((inputs.to_vec(), results.to_vec())),
            _ => None,
        }
    }

    /// The type of integers of that many bits.
    pub(super) fn int_type(&mut self, width: u32) -> TypeId {
        self.m.ty(Type::Integer { width, sign: Signedness::Signless })
    }

    /// An attribute of the enumeration type.
    pub(super) fn enumerator(&mut self, name: &str, value: &str) -> Attribute {
        Attribute::Enum { name: self.m.name(name), value: self.m.name(value) }
    }
}

/// `i32`, `si8`, `ui4`
pub(super) fn integer_type(word: &str) -> Option<(u32, Signedness)> {
    let (sign, digits) = if let Some(d) = word.strip_prefix("si") {
        (Signedness::Signed, d)
    } else if let Some(d) = word.strip_prefix("ui") {
        (Signedness::Unsigned, d)
    } else {
        (Signedness::Signless, word.strip_prefix('i')?)
    };
    let all_digits = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    Some((digits.parse().ok().filter(|_| all_digits)?, sign))
}
