//! Operations in the forms of their own, as MLIR prints them. What does not fit its form is printed in the
//! generic one.

mod custom;

use std::fmt::Write as _;

use super::{Printer, Todo, elements, is_bare};
use crate::ir::{AttrId, Attribute, FloatType, Module, NamedAttribute, OpId, Type, TypeId, ValueId};
use crate::text::format::{self, Item, Types};
use crate::text::token::Tok;

/// What stands between the parts of a form.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Gap {
    Space,
    None,
}

impl Printer<'_> {
    /// Prints an operation by its form, with what follows its results; `false`, and nothing is printed, if it
    /// has none or does not fit it.
    pub(super) fn pretty(&mut self, op: OpId, depth: usize, stack: &mut Vec<Todo>) -> bool {
        let start = self.out.len();
        let m = self.m;
        let o = m.op(op);
        let left = stack.len();
        let done = o.successors.is_empty()
            && match m.op_name(op) {
                "builtin.module" => self.module(op, depth, stack),
                "func.func" => self.function(op, depth, stack),
                "stablehlo.constant" | "mhlo.constant" | "chlo.constant" | "arith.constant" => {
                    self.constant(op)
                }
                "stablehlo.while" | "mhlo.while" => self.while_loop(op, depth, stack),
                "stablehlo.reduce" | "mhlo.reduce" => self.reduce(op, depth, stack),
                "sdy.mesh" => self.mesh(op),
                "sdy.sharding_constraint" => self.sharding_constraint(op),
                "sdy.manual_computation" => self.manual_computation(op, depth, stack),
                name => match format::of(name) {
                    Some(items) if o.regions.is_empty() => self.form(op, name, items),
                    Some(_) | None => false,
                },
            };
        if !done {
            self.out.truncate(start);
            stack.truncate(left);
        }
        done
    }

    // ---- by the table

    fn form(&mut self, op: OpId, name: &str, items: &'static [Item]) -> bool {
        let inside_function = self.m.op(op).parent.is_some_and(|block| {
            let region = self.m.block(block).parent;
            self.m.op_name(self.m.region(region).parent) == "func.func"
        });
        let name = if inside_function { name.strip_prefix("func.").unwrap_or(name) } else { name };
        self.out.push_str(name);
        let mut used = Vec::new();
        consumed(items, &mut used);
        if !has_dictionary(items) && self.rest(op, &used).next().is_some() {
            return false;
        }
        let mut operands = self.m.op(op).operands.iter();
        let mut gap = Gap::Space;
        let done = self.items(op, items, &used, &mut operands, &mut gap);
        if !done || operands.next().is_some() {
            return false;
        }
        self.end(op)
    }

    /// The location and the end of the line.
    fn end(&mut self, op: OpId) -> bool {
        self.trailing_location(self.m.op(op).loc);
        self.out.push('\n');
        true
    }

    /// Attributes that no part of the form says, by name.
    fn rest<'a>(&'a self, op: OpId, used: &'a [&'static str]) -> impl Iterator<Item = &'a NamedAttribute> {
        let o = self.m.op(op);
        o.properties.iter().chain(&o.attributes).filter(|a| !used.contains(&self.m.text(a.name)))
    }

    fn items(
        &mut self,
        op: OpId,
        items: &'static [Item],
        used: &[&'static str],
        operands: &mut std::slice::Iter<'_, ValueId>,
        gap: &mut Gap,
    ) -> bool {
        items.iter().all(|item| self.item(op, item, used, operands, gap))
    }

    fn gap(&mut self, gap: &mut Gap) {
        if *gap == Gap::Space {
            self.out.push(' ');
        }
        *gap = Gap::Space;
    }

    fn list_of(&mut self, values: &[ValueId]) {
        for (n, &value) in values.iter().enumerate() {
            self.out.push_str(if n > 0 { ", " } else { "" });
            self.value(value);
        }
    }

    fn item(
        &mut self,
        op: OpId,
        item: &'static Item,
        used: &[&'static str],
        operands: &mut std::slice::Iter<'_, ValueId>,
        gap: &mut Gap,
    ) -> bool {
        let m = self.m;
        let attr = |name: &str| m.attr(op, name).map(|a| m.get_attribute(a));
        match *item {
            Item::Operand => {
                let Some(&value) = operands.next() else { return false };
                self.gap(gap);
                self.value(value);
            }
            Item::Operands => {
                let all: Vec<ValueId> = operands.copied().collect();
                if !all.is_empty() {
                    self.gap(gap);
                    self.list_of(&all);
                }
            }
            Item::OperandsCommas => {
                for &value in operands {
                    self.gap(gap);
                    self.value(value);
                    self.out.push(',');
                }
            }
            Item::P(tok) => return self.punctuation(tok, gap),
            Item::W(word) => {
                self.gap(gap);
                self.out.push_str(word);
            }
            Item::Int(name, bits) => match attr(name) {
                Some(&Attribute::Integer { value, ty }) if self.is_int(ty, bits) => {
                    self.gap(gap);
                    let _ = write!(self.out, "{value}");
                }
                _ => return false,
            },
            Item::Bool(name) => match attr(name) {
                Some(Attribute::Bool(b)) => {
                    self.gap(gap);
                    let _ = write!(self.out, "{b}");
                }
                _ => return false,
            },
            Item::F64(name) => match attr(name) {
                Some(&Attribute::Float { bits, ty })
                    if *m.get_type(ty) == Type::Float(FloatType::F64) && f64::from_bits(bits).is_finite() =>
                {
                    self.gap(gap);
                    elements::float_as_mlir(&mut self.out, FloatType::F64, bits);
                }
                _ => return false,
            },
            Item::Str(name) => match attr(name) {
                Some(Attribute::String { text, ty: None }) => {
                    self.gap(gap);
                    self.quoted(text);
                }
                _ => return false,
            },
            Item::Ints(name) => {
                let Some(list) = self.i64s(op, name) else { return false };
                self.gap(gap);
                self.bracketed(&list);
            }
            Item::Enum(name, of) => match attr(name) {
                Some(&Attribute::Enum { name, value }) if m.text(name) == of => {
                    self.gap(gap);
                    self.out.push_str(m.text(value));
                }
                _ => return false,
            },
            Item::Target(name) => match attr(name) {
                Some(Attribute::String { text, ty: None }) if !text.is_empty() => {
                    self.gap(gap);
                    self.at_name(text);
                    *gap = Gap::None;
                }
                _ => return false,
            },
            Item::Any(name) => {
                let Some(value) = m.attr(op, name) else { return false };
                self.gap(gap);
                self.attribute(value);
                if matches!(m.get_attribute(value), Attribute::Symbol { .. }) {
                    *gap = Gap::None;
                }
            }
            Item::Optional(inner) => {
                if !self.is_there(op, inner) {
                    return true;
                }
                return self.items(op, inner, used, operands, gap);
            }
            Item::SliceRanges => return self.slice_ranges(op, gap),
            Item::DotDimensions => return self.dot_dimensions(op, gap),
            Item::Precision => return self.precision(op),
            Item::PrecisionAlgorithm => return self.precision(op) && self.algorithm(op),
            Item::ConvolutionDimensions => return self.convolution_dimensions(op, gap),
            Item::Window => return self.window(op),
            Item::ExponentMantissa => match (attr("exponent_bits"), attr("mantissa_bits")) {
                (
                    Some(&Attribute::Integer { value: e, ty: te }),
                    Some(&Attribute::Integer { value: m, ty: tm }),
                ) if self.is_int(te, 32) && self.is_int(tm, 32) && e >= 0 && m >= 0 => {
                    self.gap(gap);
                    let _ = write!(self.out, "e{e}m{m}");
                }
                _ => return false,
            },
            Item::Dict => {
                let mut rest: Vec<NamedAttribute> = self.rest(op, used).copied().collect();
                if !rest.is_empty() {
                    rest.sort_by(|a, b| m.text(a.name).cmp(m.text(b.name)));
                    self.out.push(' ');
                    self.dictionary(&rest);
                    *gap = Gap::Space;
                }
            }
            Item::Types(types) => return self.form_types(op, types),
        }
        true
    }

    fn punctuation(&mut self, tok: Tok, gap: &mut Gap) -> bool {
        let (text, before, after) = match tok {
            Tok::Comma => (",", false, Gap::Space),
            Tok::LParen => ("(", false, Gap::None),
            Tok::RParen => (")", false, Gap::Space),
            Tok::LSquare => ("[", false, Gap::None),
            Tok::RSquare => ("]", false, Gap::Space),
            Tok::LBrace => ("{", true, Gap::None),
            Tok::RBrace => ("}", false, Gap::Space),
            Tok::Colon => (":", true, Gap::Space),
            Tok::Equal => ("=", true, Gap::Space),
            _ => return false,
        };
        if before && (*gap == Gap::Space || tok == Tok::Colon) {
            self.out.push(' ');
        }
        self.out.push_str(text);
        *gap = after;
        true
    }

    /// Whether an optional part is written.
    fn is_there(&self, op: OpId, items: &[Item]) -> bool {
        let mut names = Vec::new();
        consumed(items, &mut names);
        match names.first() {
            Some(name) => self.m.attr(op, name).is_some(),
            None => {
                let parentheses = matches!(items, [Item::P(Tok::LParen), ..]);
                self.m.op(op).operands.is_empty() == parentheses
            }
        }
    }

    // ---- attributes

    fn is_int(&self, ty: TypeId, bits: u32) -> bool {
        matches!(
            self.m.get_type(ty),
            Type::Integer { width, sign: crate::ir::Signedness::Signless } if *width == bits
        )
    }

    fn dense(m: &Module, attribute: AttrId, bits: u32) -> Option<&[u8]> {
        match m.get_attribute(attribute) {
            Attribute::DenseArray { element, data } => match m.get_type(*element) {
                Type::Integer { width, sign: crate::ir::Signedness::Signless } if *width == bits => {
                    Some(data)
                }
                _ => None,
            },
            _ => None,
        }
    }

    fn i64s(&self, op: OpId, name: &str) -> Option<Vec<i64>> {
        Self::i64s_of(self.m, self.m.attr(op, name)?)
    }

    fn i64s_of(m: &Module, attribute: AttrId) -> Option<Vec<i64>> {
        Some(
            Self::dense(m, attribute, 64)?
                .as_chunks::<8>()
                .0
                .iter()
                .map(|&b| i64::from_le_bytes(b))
                .collect(),
        )
    }

    fn bracketed(&mut self, list: &[i64]) {
        self.out.push('[');
        for (n, x) in list.iter().enumerate() {
            let _ = write!(self.out, "{}{x}", if n > 0 { ", " } else { "" });
        }
        self.out.push(']');
    }

    fn at_name(&mut self, text: &str) {
        self.out.push('@');
        if is_bare(text) {
            self.out.push_str(text);
        } else {
            self.quoted(text);
        }
    }

    fn slice_ranges(&mut self, op: OpId, gap: &mut Gap) -> bool {
        let lists = ["start_indices", "limit_indices", "strides"].map(|name| self.i64s(op, name));
        let [Some(start), Some(limit), Some(strides)] = lists else { return false };
        if start.len() != limit.len() || start.len() != strides.len() {
            return false;
        }
        self.gap(gap);
        self.out.push('[');
        for i in 0..start.len() {
            let _ = write!(self.out, "{}{}:{}", if i > 0 { ", " } else { "" }, start[i], limit[i]);
            if strides[i] != 1 {
                let _ = write!(self.out, ":{}", strides[i]);
            }
        }
        self.out.push(']');
        true
    }

    /// The parameters of a record, if it is the one of this name.
    fn record_of(&self, op: OpId, name: &str, record: &str) -> Option<&'_ [NamedAttribute]> {
        match self.m.get_attribute(self.m.attr(op, name)?) {
            Attribute::Dialect { name, parameters } if self.m.text(*name) == record => Some(parameters),
            _ => None,
        }
    }

    fn dot_dimensions(&mut self, op: OpId, gap: &mut Gap) -> bool {
        let m = self.m;
        let Some(parameters) = self.record_of(op, "dot_dimension_numbers", "stablehlo.dot") else {
            return false;
        };
        let part = |name: &str| match parameters.iter().find(|p| m.text(p.name) == name) {
            Some(p) => Self::i64s_of(m, p.value),
            None => Some(Vec::new()),
        };
        let lists = [
            "lhs_batching_dimensions",
            "rhs_batching_dimensions",
            "lhs_contracting_dimensions",
            "rhs_contracting_dimensions",
        ]
        .map(part);
        let [Some(lb), Some(rb), Some(lc), Some(rc)] = lists else { return false };
        self.gap(gap);
        if !lb.is_empty() || !rb.is_empty() {
            self.out.push_str("batching_dims = ");
            self.bracketed(&lb);
            self.out.push_str(" x ");
            self.bracketed(&rb);
            self.out.push_str(", ");
        }
        self.out.push_str("contracting_dims = ");
        self.bracketed(&lc);
        self.out.push_str(" x ");
        self.bracketed(&rc);
        true
    }

    fn precision(&mut self, op: OpId) -> bool {
        let m = self.m;
        let Some(config) = m.attr(op, "precision_config") else { return true };
        let Attribute::Array(parts) = m.get_attribute(config) else { return false };
        self.out.push_str(", precision = [");
        for (n, &part) in parts.iter().enumerate() {
            match m.get_attribute(part) {
                Attribute::Enum { name, value } if m.text(*name) == "stablehlo.precision" => {
                    let _ = write!(self.out, "{}{}", if n > 0 { ", " } else { "" }, m.text(*value));
                }
                _ => return false,
            }
        }
        self.out.push(']');
        true
    }

    fn algorithm(&mut self, op: OpId) -> bool {
        let m = self.m;
        let Some(algorithm) = m.attr(op, "algorithm") else { return true };
        match m.get_attribute(algorithm) {
            Attribute::Dialect { name, .. } if m.text(*name) == "stablehlo.dot_algorithm" => {}
            _ => return false,
        }
        self.out.push_str(", algorithm = ");
        let start = self.out.len();
        self.attribute(algorithm);
        // The name is understood.
        match self.out[start..].find('<') {
            Some(at) => self.out.replace_range(start..start + at, ""),
            None => return false,
        }
        true
    }

    /// `[b, 0, f]x[0, i, o]->[b, 0, f]`
    fn convolution_dimensions(&mut self, op: OpId, gap: &mut Gap) -> bool {
        let m = self.m;
        let Some(parameters) = self.record_of(op, "dimension_numbers", "stablehlo.conv") else {
            return false;
        };
        let value = |name: &str| parameters.iter().find(|p| m.text(p.name) == name).map(|p| p.value);
        let int = |name: &str| match value(name).map(|a| m.get_attribute(a)) {
            Some(Attribute::Integer { value, .. }) => usize::try_from(*value).ok(),
            _ => None,
        };
        let list = |name: &str| value(name).map_or(Some(Vec::new()), |a| Self::i64s_of(m, a));
        let mut sides = Vec::new();
        for (first, second, spatial, letters) in [
            ("input_batch_dimension", "input_feature_dimension", "input_spatial_dimensions", ["b", "f"]),
            (
                "kernel_input_feature_dimension",
                "kernel_output_feature_dimension",
                "kernel_spatial_dimensions",
                ["i", "o"],
            ),
            ("output_batch_dimension", "output_feature_dimension", "output_spatial_dimensions", ["b", "f"]),
        ] {
            let (Some(a), Some(b), Some(spatial)) = (int(first), int(second), list(spatial)) else {
                return false;
            };
            let mut side = vec![String::new(); spatial.len() + 2];
            let names = spatial.iter().enumerate().map(|(n, &d)| (usize::try_from(d).ok(), n.to_string()));
            let ends = [(Some(a), letters[0].to_owned()), (Some(b), letters[1].to_owned())];
            for (at, name) in names.chain(ends) {
                match at.and_then(|at| side.get_mut(at)) {
                    Some(slot) if slot.is_empty() => *slot = name,
                    _ => return false,
                }
            }
            sides.push(format!("[{}]", side.join(", ")));
        }
        self.gap(gap);
        let _ = write!(self.out, "{}x{}->{}", sides[0], sides[1], sides[2]);
        true
    }

    fn window(&mut self, op: OpId) -> bool {
        let m = self.m;
        let mut first = true;
        let mut comma = |p: &mut Self| {
            p.out.push_str(if first { "" } else { ", " });
            first = false;
        };
        for (key, name) in [
            ("stride", "window_strides"),
            ("pad", "padding"),
            ("lhs_dilate", "lhs_dilation"),
            ("rhs_dilate", "rhs_dilation"),
            ("reverse", "window_reversal"),
        ] {
            let Some(attribute) = m.attr(op, name) else { continue };
            comma(self);
            let _ = write!(self.out, "{key} = ");
            match key {
                "pad" => {
                    let two = match m.get_attribute(attribute) {
                        Attribute::Elements { ty, .. } => match m.get_type(*ty) {
                            Type::Tensor { dims, element, .. } => {
                                matches!(**dims, [_, 2]) && self.is_int(*element, 64)
                            }
                            _ => false,
                        },
                        _ => false,
                    };
                    let Some(pairs) = crate::ir::ints(m, attribute).filter(|_| two) else {
                        return false;
                    };
                    self.out.push('[');
                    for (n, pair) in pairs.chunks(2).enumerate() {
                        self.out.push_str(if n > 0 { ", " } else { "" });
                        self.bracketed(pair);
                    }
                    self.out.push(']');
                }
                "reverse" => {
                    let Some(flags) = Self::dense(m, attribute, 1) else { return false };
                    let words: Vec<&str> =
                        flags.iter().map(|&b| if b != 0 { "true" } else { "false" }).collect();
                    let _ = write!(self.out, "[{}]", words.join(", "));
                }
                _ => match Self::i64s_of(m, attribute) {
                    Some(list) => self.bracketed(&list),
                    None => return false,
                },
            }
        }
        true
    }

    // ---- types

    fn form_types(&mut self, op: OpId, types: Types) -> bool {
        let m = self.m;
        let o = m.op(op);
        let inputs: Vec<TypeId> = o.operands.iter().map(|&v| m.value_type(v)).collect();
        let results: Vec<TypeId> = o.results.iter().map(|&v| m.value_type(v)).collect();
        let one = match *results {
            [one] => Some(one),
            [..] => None,
        };
        let is_function = |t: TypeId| matches!(m.get_type(t), Type::Function { .. });
        self.out.push(' ');
        let short = match types {
            Types::Same => one.filter(|t| inputs.iter().all(|i| i == t) && !is_function(*t)),
            Types::Results => match one {
                Some(one) if inputs.is_empty() => Some(one),
                _ => return false,
            },
            Types::Complex => one.filter(|&t| inputs.iter().all(|&i| is_part_of(m, i, t))),
            Types::Tuple => one.filter(|&t| matches!(m.get_type(t), Type::Tuple(p) if **p == *inputs)),
            Types::Select => match (&inputs[..], one) {
                (&[predicate, a, b], Some(t)) if a == b && a == t && !is_function(predicate) => {
                    self.ty(predicate);
                    self.out.push_str(", ");
                    Some(t)
                }
                _ => None,
            },
            Types::Pairwise => {
                if inputs != results {
                    return false;
                }
                self.types(&inputs);
                return true;
            }
            Types::Operands => {
                self.types(&inputs);
                return results.is_empty();
            }
            Types::EachOperand => match inputs.split_first() {
                Some((&first, rest)) if results.is_empty() && rest.iter().all(|&t| t == first) => Some(first),
                _ => return false,
            },
            Types::Arrow => {
                if inputs.first().is_none_or(|&t| is_function(t)) {
                    return false;
                }
                self.types(&inputs);
                self.out.push_str(" -> ");
                self.results(&results);
                return true;
            }
            Types::OfValue => {
                self.out.pop();
                return match m.attr(op, "value").map(|a| m.get_attribute(a)) {
                    Some(Attribute::Elements { ty, .. } | Attribute::DenseResource { ty, .. }) => {
                        results.is_empty() && inputs.iter().all(|t| t == ty)
                    }
                    _ => false,
                };
            }
            Types::Function => None,
        };
        match short {
            Some(ty) => self.ty(ty),
            None => self.function_type(&inputs, &results),
        }
        true
    }

    fn function_type(&mut self, inputs: &[TypeId], results: &[TypeId]) {
        self.out.push('(');
        self.types(inputs);
        self.out.push_str(") -> ");
        self.results(results);
    }
}

/// Whether a type is that of the parts of a tensor of complex numbers.
fn is_part_of(m: &Module, part: TypeId, whole: TypeId) -> bool {
    match (m.get_type(part), m.get_type(whole)) {
        (
            Type::Tensor { dims: a, element: part, encoding: x },
            Type::Tensor { dims: b, element: whole, encoding: y },
        ) => a == b && x == y && matches!(m.get_type(*whole), Type::Complex(p) if p == part),
        _ => false,
    }
}

/// The attributes that a form says outside of its dictionary.
fn consumed(items: &[Item], names: &mut Vec<&'static str>) {
    for item in items {
        match *item {
            Item::Int(name, _)
            | Item::Bool(name)
            | Item::F64(name)
            | Item::Str(name)
            | Item::Ints(name)
            | Item::Enum(name, _)
            | Item::Target(name)
            | Item::Any(name) => names.push(name),
            Item::Optional(inner) => consumed(inner, names),
            Item::SliceRanges => names.extend(["start_indices", "limit_indices", "strides"]),
            Item::DotDimensions => names.push("dot_dimension_numbers"),
            Item::Precision => names.push("precision_config"),
            Item::PrecisionAlgorithm => names.extend(["precision_config", "algorithm"]),
            Item::ConvolutionDimensions => names.push("dimension_numbers"),
            Item::Window => {
                names.extend(["window_strides", "padding", "lhs_dilation", "rhs_dilation", "window_reversal"])
            }
            Item::ExponentMantissa => names.extend(["exponent_bits", "mantissa_bits"]),
            Item::Operand
            | Item::Operands
            | Item::OperandsCommas
            | Item::P(_)
            | Item::W(_)
            | Item::Dict
            | Item::Types(_) => {}
        }
    }
}

fn has_dictionary(items: &[Item]) -> bool {
    items.iter().any(|i| matches!(i, Item::Dict))
}
