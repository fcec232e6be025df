//! Reads operations by the table of pretty forms.

use hlo::Span;
use hlo::diag::codes::mlir;

use super::cursor::{Parse, Parser};
use super::format::{Item, Types, is_property};
use super::operation::{Operand, Results, Step};
use super::records::Part;
use super::token::Tok;
use crate::ir::{Attribute, FloatType, NamedAttribute, OpId, Type, TypeId};

/// What was read of an operation so far.
struct State {
    op: OpId,
    operands: Vec<Operand>,
    inputs: Option<Vec<TypeId>>,
    outputs: Vec<TypeId>,
    type_span: Span,
}

impl<'t> Parser<'t> {
    /// An operation by its form.
    pub(super) fn pretty(&mut self, op: OpId, items: &'static [Item], results: Results) -> Parse<Step> {
        let mut state =
            State { op, operands: Vec::new(), inputs: None, outputs: Vec::new(), type_span: self.span() };
        self.items(items, &mut state)?;
        let inputs = state.inputs.take().unwrap_or_default();
        self.resolve_all(op, &state.operands, &inputs, state.type_span)?;
        self.complete(op, results, state.outputs)
    }

    fn items(&mut self, items: &'static [Item], state: &mut State) -> Parse<()> {
        for item in items {
            self.item(item, state)?;
        }
        Ok(())
    }

    fn item(&mut self, item: &'static Item, state: &mut State) -> Parse<()> {
        match *item {
            Item::Operand => {
                let operand = self.operand()?;
                state.operands.push(operand);
            }
            Item::Operands => {
                let operands = self.operands()?;
                state.operands.extend(operands);
            }
            Item::OperandsCommas => {
                while self.is(Tok::Percent) {
                    let operand = self.operand()?;
                    state.operands.push(operand);
                    self.expect(Tok::Comma)?;
                }
            }
            Item::P(tok) => self.expect(tok)?,
            Item::W(word) => self.expect_word(word)?,
            Item::Int(name, width) => {
                let span = self.span();
                let value = self.integer()?;
                let suffix = self.text[self.end..].trim_start();
                let suffix_end = suffix.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(suffix.len());
                let typed =
                    self.is(Tok::Colon) && super::types::integer_type(&suffix[..suffix_end]).is_some();
                let ty = if typed {
                    self.advance();
                    self.ty()?
                } else {
                    self.int_type(width)
                };
                let Some(value) = crate::encode::wrapped(&self.m, ty, value) else {
                    return self.error_at(
                        mlir::MLIR_BAD_ATTRIBUTE,
                        span,
                        format!("{value} does not fit its type"),
                    );
                };
                let value = self.intern_attribute(Attribute::Integer { value, ty })?;
                self.set_property(state.op, name, value);
            }
            Item::Bool(name) => {
                let value = match self.token() {
                    "true" => true,
                    "false" => false,
                    _ => return self.expected("`true` or `false`"),
                };
                self.advance();
                let value = self.intern_attribute(Attribute::Bool(value))?;
                self.set_property(state.op, name, value);
            }
            Item::F64(name) => {
                let x = self.f64()?;
                let ty = self.intern(Type::Float(FloatType::F64))?;
                if self.is(Tok::Colon) && self.text[self.end..].trim_start().starts_with("f64") {
                    self.advance();
                    self.advance();
                }
                let value = self.intern_attribute(Attribute::Float { bits: x.to_bits(), ty })?;
                self.set_property(state.op, name, value);
            }
            Item::Str(name) => {
                let text = self.utf8()?;
                let value = self.intern_attribute(Attribute::String { text: text.into(), ty: None })?;
                self.set_property(state.op, name, value);
            }
            Item::Ints(name) => {
                let value = self.ints()?;
                self.set_property(state.op, name, value);
            }
            Item::Enum(name, of) => {
                let value = if self.is(Tok::Hash) {
                    self.attribute()?
                } else {
                    let word = self.word()?;
                    let value = self.enumerator(of, word);
                    self.intern_attribute(value)?
                };
                self.set_property(state.op, name, value);
            }
            Item::Target(name) => {
                let text = if self.is(Tok::At) {
                    let symbol = self.symbol()?;
                    self.m.text(symbol).to_owned()
                } else {
                    self.utf8()?
                };
                let value = self.intern_attribute(Attribute::String { text: text.into(), ty: None })?;
                self.set_property(state.op, name, value);
            }
            Item::Any(name) => {
                let value = self.attribute()?;
                self.set_property(state.op, name, value);
            }
            Item::Optional(inner) => {
                let there = match inner {
                    [Item::P(Tok::Comma), Item::W(word), ..] => {
                        self.is(Tok::Comma) && self.text[self.end..].trim_start().starts_with(word)
                    }
                    [Item::P(tok), ..] => self.is(*tok),
                    [..] => false,
                };
                if there {
                    self.items(inner, state)?;
                }
            }
            Item::SliceRanges => {
                let ranges = self.list(Tok::LSquare, Tok::RSquare, |p| {
                    let start = p.int64()?;
                    p.expect(Tok::Colon)?;
                    let limit = p.int64()?;
                    let stride = if p.eat(Tok::Colon) { p.int64()? } else { 1 };
                    Ok([start, limit, stride])
                })?;
                for (i, name) in ["start_indices", "limit_indices", "strides"].into_iter().enumerate() {
                    let list: Vec<i64> = ranges.iter().map(|r| r[i]).collect();
                    let value = self.ints_of(&list)?;
                    self.set_property(state.op, name, value);
                }
            }
            Item::DotDimensions => {
                let mut batching = (Vec::new(), Vec::new());
                if self.eat_word("batching_dims") {
                    self.expect(Tok::Equal)?;
                    batching = self.dimension_pair()?;
                    self.expect(Tok::Comma)?;
                }
                self.expect_word("contracting_dims")?;
                self.expect(Tok::Equal)?;
                let contracting = self.dimension_pair()?;
                let value = self.record_of(
                    "dot",
                    &[
                        ("lhs_batching_dimensions", Part::Ints(batching.0)),
                        ("rhs_batching_dimensions", Part::Ints(batching.1)),
                        ("lhs_contracting_dimensions", Part::Ints(contracting.0)),
                        ("rhs_contracting_dimensions", Part::Ints(contracting.1)),
                    ],
                )?;
                self.set_property(state.op, "dot_dimension_numbers", value);
            }
            Item::Precision | Item::PrecisionAlgorithm => {
                while self.eat(Tok::Comma) {
                    match self.word()? {
                        "precision" => {
                            self.expect(Tok::Equal)?;
                            let parts = self.list(Tok::LSquare, Tok::RSquare, |p| {
                                if p.is(Tok::Hash) {
                                    return p.attribute();
                                }
                                let word = p.word()?;
                                let value = p.enumerator("stablehlo.precision", word);
                                p.intern_attribute(value)
                            })?;
                            let value = self.intern_attribute(Attribute::Array(parts.into()))?;
                            self.set_property(state.op, "precision_config", value);
                        }
                        "algorithm" => {
                            self.expect(Tok::Equal)?;
                            let value = if self.is(Tok::Hash) {
                                self.attribute()?
                            } else {
                                self.record_body("stablehlo", "dot_algorithm")?
                            };
                            self.set_property(state.op, "algorithm", value);
                        }
                        _ => return self.expected("`precision` or `algorithm`"),
                    }
                }
            }
            Item::ConvolutionDimensions => {
                let value =
                    if self.is(Tok::Hash) { self.attribute()? } else { self.convolution_dimensions()? };
                self.set_property(state.op, "dimension_numbers", value);
            }
            Item::Window => self.window(state.op)?,
            Item::ExponentMantissa => {
                let word = self.word()?;
                let parts = word.strip_prefix('e').and_then(|w| w.split_once('m'));
                let parts = parts.and_then(|(e, m)| Some((e.parse().ok()?, m.parse().ok()?)));
                let Some((exponent, mantissa)) = parts else {
                    return self
                        .error(mlir::MLIR_BAD_ATTRIBUTE, format!("`{word}` is no format such as `e5m10`"));
                };
                for (name, n) in [("exponent_bits", exponent), ("mantissa_bits", mantissa)] {
                    let value = self.int_attribute(n, 32)?;
                    self.set_property(state.op, name, value);
                }
            }
            Item::Dict => {
                for a in self.optional_dictionary()? {
                    let property = is_property(self.m.op_name(state.op), self.m.text(a.name));
                    let op = self.m.op_mut(state.op);
                    if property { &mut op.properties } else { &mut op.attributes }.push(a);
                }
            }
            Item::Types(types) => self.types(types, state)?,
        }
        Ok(())
    }

    /// `[0] x [1]`
    fn dimension_pair(&mut self) -> Parse<(Vec<i64>, Vec<i64>)> {
        let left = self.list(Tok::LSquare, Tok::RSquare, Self::int64)?;
        self.cross()?;
        Ok((left, self.list(Tok::LSquare, Tok::RSquare, Self::int64)?))
    }

    /// `stride = [1, 1], pad = [[0, 0], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false,
    /// false]`
    fn window(&mut self, op: OpId) -> Parse<()> {
        while self.is(Tok::Word) {
            let key = self.word()?;
            self.expect(Tok::Equal)?;
            let (name, value) = match key {
                "stride" => ("window_strides", self.ints()?),
                "lhs_dilate" => ("lhs_dilation", self.ints()?),
                "rhs_dilate" => ("rhs_dilation", self.ints()?),
                "reverse" => {
                    let flags = self.list(Tok::LSquare, Tok::RSquare, |p| match p.tok {
                        Tok::Word => Ok(u8::from(p.word()? == "true")),
                        _ => Ok(u8::from(p.int64()? != 0)),
                    })?;
                    let element = self.int_type(1);
                    let data = flags.into();
                    ("window_reversal", self.intern_attribute(Attribute::DenseArray { element, data })?)
                }
                "pad" => {
                    let pairs = self.list(Tok::LSquare, Tok::RSquare, |p| {
                        let span = p.span();
                        let pair = p.list(Tok::LSquare, Tok::RSquare, Self::int64)?;
                        match *pair {
                            [low, high] => Ok([low, high]),
                            [..] => {
                                p.error_at(mlir::MLIR_BAD_ATTRIBUTE, span, "padding is a pair, `[low, high]`")
                            }
                        }
                    })?;
                    ("padding", self.pairs(&pairs)?)
                }
                _ => return self.error(mlir::MLIR_BAD_ATTRIBUTE, format!("`{key}` is no part of a window")),
            };
            self.set_property(op, name, value);
            if !self.eat(Tok::Comma) {
                break;
            }
        }
        Ok(())
    }

    /// `dense<...> : tensor<nx2xi64>`
    fn pairs(&mut self, pairs: &[[i64; 2]]) -> Parse<crate::ir::AttrId> {
        self.take(16 * pairs.len() as u64)?;
        let element = self.int_type(64);
        let dims = [pairs.len() as i64, 2].into();
        let ty = self.m.ty(Type::Tensor { dims, element, encoding: None });
        let splat = pairs.iter().flatten().all(|&n| n == pairs[0][0]) && !pairs.is_empty();
        let values: Vec<i64> =
            pairs.iter().flatten().copied().take(if splat { 1 } else { usize::MAX }).collect();
        let data: Vec<u8> = values.iter().flat_map(|n| n.to_le_bytes()).collect();
        self.intern_attribute(Attribute::Elements { ty, splat, data: data.into() })
    }

    fn types(&mut self, types: Types, state: &mut State) -> Parse<()> {
        let start = self.start;
        let count = state.operands.len();
        match types {
            Types::Same => {
                let ty = self.ty()?;
                match self.function_parts(ty) {
                    Some(parts) => (state.inputs, state.outputs) = (Some(parts.0), parts.1),
                    None => (state.inputs, state.outputs) = (Some(vec![ty; count]), vec![ty]),
                }
            }
            Types::Function => {
                let ty = self.ty()?;
                match self.function_parts(ty) {
                    Some(parts) => (state.inputs, state.outputs) = (Some(parts.0), parts.1),
                    None => {
                        let span = self.since(start);
                        return self.error_at(
                            mlir::MLIR_BAD_TYPE,
                            span,
                            "not a function type, `(operands) -> results`",
                        );
                    }
                }
            }
            Types::Results => {
                state.outputs = vec![self.ty()?];
                state.inputs = Some(Vec::new());
            }
            Types::Complex => {
                let ty = self.ty()?;
                match self.function_parts(ty) {
                    Some(parts) => (state.inputs, state.outputs) = (Some(parts.0), parts.1),
                    None => {
                        let part = self.part_type(ty, start)?;
                        (state.inputs, state.outputs) = (Some(vec![part; count]), vec![ty]);
                    }
                }
            }
            Types::Tuple => {
                let ty = self.ty()?;
                match self.m.get_type(ty).clone() {
                    Type::Function { inputs, results } => {
                        (state.inputs, state.outputs) = (Some(inputs.into()), results.into());
                    }
                    Type::Tuple(parts) => (state.inputs, state.outputs) = (Some(parts.into()), vec![ty]),
                    _ => {
                        return self.error_at(mlir::MLIR_BAD_TYPE, self.since(start), "not a tuple");
                    }
                }
            }
            Types::Select => {
                let first = self.ty()?;
                match self.function_parts(first) {
                    Some(parts) => (state.inputs, state.outputs) = (Some(parts.0), parts.1),
                    None => {
                        self.expect(Tok::Comma)?;
                        let second = self.ty()?;
                        (state.inputs, state.outputs) = (Some(vec![first, second, second]), vec![second]);
                    }
                }
            }
            Types::Pairwise => {
                let list = self.type_list()?;
                state.outputs.clone_from(&list);
                state.inputs = Some(list);
            }
            Types::Operands => state.inputs = Some(self.type_list()?),
            Types::EachOperand => state.inputs = Some(vec![self.ty()?; count]),
            Types::Arrow => {
                let first = self.ty()?;
                if let Some(parts) = self.function_parts(first) {
                    (state.inputs, state.outputs) = (Some(parts.0), parts.1);
                } else {
                    let mut inputs = vec![first];
                    while self.eat(Tok::Comma) {
                        inputs.push(self.ty()?);
                    }
                    self.expect(Tok::Arrow)?;
                    state.outputs = self.result_types()?;
                    state.inputs = Some(inputs);
                }
            }
            Types::OfValue => {
                let value = self.m.attr(state.op, "value").map(|a| self.m.get_attribute(a).clone());
                state.inputs = match value {
                    Some(Attribute::Elements { ty, .. } | Attribute::DenseResource { ty, .. }) => {
                        Some(vec![ty; count])
                    }
                    _ => return self.expected("elements, `dense<...> : type`"),
                };
            }
        }
        state.type_span = self.since(start);
        Ok(())
    }

    pub(super) fn type_list(&mut self) -> Parse<Vec<TypeId>> {
        let mut types = vec![self.ty()?];
        while self.eat(Tok::Comma) {
            types.push(self.ty()?);
        }
        Ok(types)
    }

    /// The tensor of real or imaginary parts.
    fn part_type(&mut self, ty: TypeId, start: usize) -> Parse<TypeId> {
        let part = match self.m.get_type(ty) {
            Type::Tensor { dims, element, encoding } => match self.m.get_type(*element) {
                Type::Complex(part) => {
                    Some(Type::Tensor { dims: dims.clone(), element: *part, encoding: *encoding })
                }
                _ => None,
            },
            _ => None,
        };
        match part {
            Some(part) => self.intern(part),
            None => self.error_at(mlir::MLIR_BAD_TYPE, self.since(start), "not a tensor of complex numbers"),
        }
    }

    /// `<key = value, ...>` of a record whose name is understood.
    fn record_body(&mut self, dialect: &str, mnemonic: &str) -> Parse<crate::ir::AttrId> {
        self.expect(Tok::Less)?;
        let mut parameters = Vec::new();
        while !self.eat(Tok::Greater) {
            let key = self.word()?;
            self.expect(Tok::Equal)?;
            let value = self.attribute()?;
            parameters.push(NamedAttribute { name: self.m.name(key), value });
            if !self.is(Tok::Greater) {
                self.expect(Tok::Comma)?;
            }
        }
        let name = self.m.name(&format!("{dialect}.{mnemonic}"));
        self.intern_attribute(Attribute::Dialect { name, parameters: parameters.into() })
    }
}
