//! Attributes of dialects in text: `#alias`, `#stablehlo.gather<...>`, `#stablehlo<precision HIGHEST>`.

use hlo::diag::codes::mlir;

use super::cursor::{Parse, Parser};
use super::token::Tok;
use crate::ir::{AttrId, Attribute, FloatType, NamedAttribute, Type};

/// Dialects whose attributes are read part by part.
const STRUCTURED: [&str; 3] = ["stablehlo", "mhlo", "chlo"];

impl<'t> Parser<'t> {
    pub(super) fn hash_attribute(&mut self) -> Parse<AttrId> {
        let start = self.start;
        let name = &self.token()[1..];
        if let Some(&alias) = self.attribute_aliases.get(name) {
            self.advance();
            return Ok(alias);
        }
        let (dialect, mnemonic) = match name.split_once('.') {
            Some((dialect, mnemonic)) => (dialect, Some(mnemonic)),
            None => (name, None),
        };
        self.advance();
        let attached = self.is(Tok::Less) && self.start == self.before;
        if mnemonic.is_none() && !attached {
            let message = format!("no attribute alias `#{name}` is defined above");
            return self.error_at(mlir::MLIR_UNDEFINED_ALIAS, self.since(start), message);
        }
        if !STRUCTURED.contains(&dialect) {
            let body = if attached { self.raw_brackets()? } else { "" };
            let text = match mnemonic {
                Some(mnemonic) => format!("{dialect}.{mnemonic}{body}"),
                None => undotted(dialect, body),
            };
            return self.intern_attribute(Attribute::Opaque(text.into()));
        }
        match mnemonic {
            Some(mnemonic) => self.record(dialect, mnemonic),
            None => {
                self.expect(Tok::Less)?;
                let mnemonic = self.word()?;
                let attribute = self.record(dialect, mnemonic)?;
                self.expect(Tok::Greater)?;
                Ok(attribute)
            }
        }
    }

    /// What stands after the name of an attribute of StableHLO.
    fn record(&mut self, dialect: &str, mnemonic: &str) -> Parse<AttrId> {
        let name = self.m.name(&format!("{dialect}.{mnemonic}"));
        match mnemonic {
            "conv" => {
                self.expect(Tok::Less)?;
                let attribute = self.convolution_dimensions()?;
                self.expect(Tok::Greater)?;
                return Ok(attribute);
            }
            "bounds" => {
                let values = self.list(Tok::Less, Tok::Greater, |p| {
                    if p.eat(Tok::Question) { Ok(crate::ir::DYNAMIC) } else { p.int64() }
                })?;
                return self.bounds(&values);
            }
            "type_extensions" => {
                self.expect(Tok::Less)?;
                self.expect_word("bounds")?;
                self.expect(Tok::Equal)?;
                let values = self.list(Tok::LSquare, Tok::RSquare, |p| {
                    if p.eat(Tok::Question) { Ok(crate::ir::DYNAMIC) } else { p.int64() }
                })?;
                self.expect(Tok::Greater)?;
                return self.bounds(&values);
            }
            _ => {}
        }
        if self.is(Tok::Word) {
            let value = self.word()?;
            let value = self.m.name(value);
            return self.intern_attribute(Attribute::Enum { name, value });
        }
        if !self.is(Tok::Less) {
            return self.intern_attribute(Attribute::Dialect { name, parameters: [].into() });
        }
        self.advance();
        if self.is(Tok::Word) && self.text[self.end..].trim_start().starts_with('>') {
            // `#stablehlo.precision<HIGH>`
            let value = self.word()?;
            let value = self.m.name(value);
            self.expect(Tok::Greater)?;
            return self.intern_attribute(Attribute::Enum { name, value });
        }
        let mut parameters: Vec<NamedAttribute> = Vec::new();
        while !self.eat(Tok::Greater) {
            let span = self.span();
            let key = self.word()?;
            self.expect(Tok::Equal)?;
            let value = self.parameter(mnemonic)?;
            let name = self.m.name(key);
            if parameters.iter().any(|p| p.name == name) {
                return self.error_at(mlir::MLIR_BAD_ATTRIBUTE, span, format!("`{key}` is given twice"));
            }
            // As printed, so that equal attributes are equal.
            if !self.is_default(key, value) {
                parameters.push(NamedAttribute { name, value });
            }
            if !self.is(Tok::Greater) {
                self.expect(Tok::Comma)?;
            }
        }
        // Declared ones in the order of their declaration, whatever that of the text is.
        let order = declared(mnemonic);
        let position = |p: &NamedAttribute| {
            let text = self.m.text(p.name);
            order.iter().position(|&name| name == text).unwrap_or(order.len())
        };
        parameters.sort_by_key(position);
        self.intern_attribute(Attribute::Dialect { name, parameters: parameters.into() })
    }

    /// Whether the text of the attribute leaves a parameter out.
    fn is_default(&self, key: &str, value: AttrId) -> bool {
        match self.m.get_attribute(value) {
            Attribute::DenseArray { data, .. } => {
                data.is_empty() && key != "output_tuple_indices" && key != "operand_tuple_indices"
            }
            Attribute::Integer { value: 0, .. } => key == "index_vector_dim",
            _ => false,
        }
    }

    /// The value of a parameter.
    fn parameter(&mut self, record: &str) -> Parse<AttrId> {
        match self.tok {
            Tok::LSquare => {
                let next = self.text[self.end..].trim_start().bytes().next().unwrap_or(b' ');
                if matches!(next, b'0'..=b'9' | b'-' | b'?' | b']') && record != "replica_group_mesh_axes" {
                    self.ints()
                } else {
                    self.attribute()
                }
            }
            Tok::Int | Tok::Minus | Tok::Float if record == "result_accuracy" => {
                let float = self.text[self.start..].trim_start_matches('-').split([',', '>']).next();
                if float.is_some_and(|t| t.contains(['.', 'e'])) {
                    let x = self.f64()?;
                    let ty = self.intern(Type::Float(FloatType::F64))?;
                    return self.intern_attribute(Attribute::Float { bits: x.to_bits(), ty });
                }
                let n = self.int64()?;
                self.int_attribute(n, 64)
            }
            Tok::Int | Tok::Minus => {
                let n = self.int64()?;
                self.int_attribute(n, 64)
            }
            Tok::LParen => {
                // `(pre_size) size` of a sub-axis.
                self.advance();
                let pre = self.int64()?;
                self.expect(Tok::RParen)?;
                let size = self.int64()?;
                self.ints_of(&[pre, size])
            }
            _ => self.attribute(),
        }
    }

    fn bounds(&mut self, values: &[i64]) -> Parse<AttrId> {
        let value = self.ints_of(values)?;
        let (name, key) = (self.m.name("stablehlo.bounds"), self.m.name("bounds"));
        let parameters = [NamedAttribute { name: key, value }].into();
        self.intern_attribute(Attribute::Dialect { name, parameters })
    }

    /// A record of StableHLO from its parameters; lists that are empty are left out.
    pub(super) fn record_of(&mut self, record: &str, parts: &[(&str, Part)]) -> Parse<AttrId> {
        let mut parameters = Vec::new();
        for (key, part) in parts {
            let value = match part {
                Part::Int(n) => self.int_attribute(*n, 64)?,
                Part::Ints(n) => self.ints_of(n)?,
            };
            if !self.is_default(key, value) {
                parameters.push(NamedAttribute { name: self.m.name(key), value });
            }
        }
        let name = self.m.name(&format!("stablehlo.{record}"));
        self.intern_attribute(Attribute::Dialect { name, parameters: parameters.into() })
    }

    /// `[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]`
    pub(super) fn convolution_dimensions(&mut self) -> Parse<AttrId> {
        if self.is(Tok::Word) {
            return self.raw_convolution_dimensions();
        }
        let (ib, if_, is) = self.convolution_side('b', 'f')?;
        self.cross()?;
        let (ki, ko, ks) = self.convolution_side('i', 'o')?;
        self.expect(Tok::Arrow)?;
        let (ob, of, os) = self.convolution_side('b', 'f')?;
        self.record_of(
            "conv",
            &[
                ("input_batch_dimension", Part::Int(ib)),
                ("input_feature_dimension", Part::Int(if_)),
                ("input_spatial_dimensions", Part::Ints(is)),
                ("kernel_input_feature_dimension", Part::Int(ki)),
                ("kernel_output_feature_dimension", Part::Int(ko)),
                ("kernel_spatial_dimensions", Part::Ints(ks)),
                ("output_batch_dimension", Part::Int(ob)),
                ("output_feature_dimension", Part::Int(of)),
                ("output_spatial_dimensions", Part::Ints(os)),
            ],
        )
    }

    /// `raw input_batch_dimension = 0, ...`
    fn raw_convolution_dimensions(&mut self) -> Parse<AttrId> {
        self.expect_word("raw")?;
        let mut parts = Vec::new();
        while self.is(Tok::Word) {
            let key = self.word()?;
            self.expect(Tok::Equal)?;
            let part = if self.is(Tok::LSquare) {
                Part::Ints(self.list(Tok::LSquare, Tok::RSquare, Self::int64)?)
            } else {
                Part::Int(self.int64()?)
            };
            parts.push((key, part));
            if !self.eat(Tok::Comma) {
                break;
            }
        }
        self.record_of("conv", &parts)
    }

    /// Past an `x` between two lists, which may be glued to what follows.
    pub(super) fn cross(&mut self) -> Parse<()> {
        if !self.is(Tok::Word) || !self.token().starts_with('x') {
            return self.expected("`x`");
        }
        self.jump(self.start + 1);
        Ok(())
    }

    /// One bracket: positions of the two named dimensions and of the spatial ones in their order.
    fn convolution_side(&mut self, first: char, second: char) -> Parse<(i64, i64, Vec<i64>)> {
        let start = self.start;
        let names = self.list(Tok::LSquare, Tok::RSquare, |p| {
            if p.eat(Tok::Question) {
                return Ok(None);
            }
            match p.tok {
                Tok::Int => Ok(Some((' ', p.int64()?))),
                Tok::Word => Ok(p.word()?.chars().next().map(|c| (c, -1))),
                _ => p.expected("a dimension"),
            }
        })?;
        let mut at = (None, None);
        let spatial_count = names.iter().flatten().filter(|n| n.0 == ' ').count();
        let mut spatial = vec![None; spatial_count];
        let mut wrong = false;
        for (position, name) in names.iter().enumerate() {
            let position = Some(position as i64);
            match name {
                Some((' ', n)) => match usize::try_from(*n).ok().and_then(|n| spatial.get_mut(n)) {
                    Some(slot @ None) => *slot = position,
                    _ => wrong = true,
                },
                Some((c, _)) if *c == first && at.0.is_none() => at.0 = position,
                Some((c, _)) if *c == second && at.1.is_none() => at.1 = position,
                Some(_) => wrong = true,
                None => {}
            }
        }
        let spatial: Option<Vec<i64>> = spatial.into_iter().collect();
        match (at, spatial, wrong) {
            ((Some(a), Some(b)), Some(spatial), false) => Ok((a, b, spatial)),
            _ => {
                let message = format!("dimensions are `{first}`, `{second}` and numbers from 0, each once");
                self.error_at(mlir::MLIR_BAD_ATTRIBUTE, self.since(start), message)
            }
        }
    }
}

/// The parameters of a record, as its declaration orders them.
fn declared(record: &str) -> &'static [&'static str] {
    match record {
        "dot" => &[
            "lhs_batching_dimensions",
            "rhs_batching_dimensions",
            "lhs_contracting_dimensions",
            "rhs_contracting_dimensions",
        ],
        "dot_algorithm" => &[
            "lhs_precision_type",
            "rhs_precision_type",
            "accumulation_type",
            "lhs_component_count",
            "rhs_component_count",
            "num_primitive_operations",
            "allow_imprecise_accumulation",
        ],
        "gather" => &[
            "offset_dims",
            "collapsed_slice_dims",
            "operand_batching_dims",
            "start_indices_batching_dims",
            "start_index_map",
            "index_vector_dim",
        ],
        "scatter" => &[
            "update_window_dims",
            "inserted_window_dims",
            "input_batching_dims",
            "scatter_indices_batching_dims",
            "scatter_dims_to_operand_dims",
            "index_vector_dim",
        ],
        "channel_handle" => &["handle", "type"],
        "output_operand_alias" => &["output_tuple_indices", "operand_index", "operand_tuple_indices"],
        _ => &[],
    }
}

/// A parameter of a record.
#[derive(Clone, Debug)]
pub(super) enum Part {
    Int(i64),
    Ints(Vec<i64>),
}

/// `#dialect<name ...>` as `dialect.name<...>`, so that both forms are one attribute, where the body is in
/// brackets itself.
fn undotted(dialect: &str, body: &str) -> String {
    let inside = body[1..body.len() - 1].trim();
    let end = inside.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(inside.len());
    let (name, rest) = inside.split_at(end);
    if rest.starts_with('<') && rest.ends_with('>') && !name.is_empty() {
        format!("{dialect}.{name}{rest}")
    } else {
        format!("{dialect}{body}")
    }
}
