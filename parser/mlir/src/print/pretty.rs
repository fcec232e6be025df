//! Operations in the forms of their own, as MLIR prints them. What does not fit its form is printed in the generic one.

use std::fmt::Write as _;

use super::names::is_while;
use super::{Printer, Todo, elements, is_bare};
use crate::ir::{AttrId, Attribute, FloatType, Module, NameId, NamedAttribute, OpId, Type, TypeId, ValueId};
use crate::text::format::{self, Item, Types};
use crate::text::token::Tok;

/// Operations of two scalars by which a reduction is written in short.
const SHORT_REDUCERS: [&str; 7] = ["add", "and", "maximum", "minimum", "multiply", "or", "xor"];

/// What stands between the parts of a form.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Gap {
    Space,
    None,
}

impl Printer<'_> {
    /// Prints an operation by its form, with what follows its results; `false`, and nothing is printed, if it has none or does not fit it.
    pub(super) fn pretty(&mut self, op: OpId, depth: usize, stack: &mut Vec<Todo>) -> bool {
        let start = self.out.len();
        let m = self.m;
        let o = m.op(op);
        let left = stack.len();
        let done = o.successors.is_empty()
            && match m.op_name(op) {
                "builtin.module" => self.module(op, depth, stack),
                "func.func" => self.function(op, depth, stack),
                "stablehlo.constant" | "mhlo.constant" | "arith.constant" => self.constant(op),
                "stablehlo.while" | "mhlo.while" => self.while_loop(op, depth, stack),
                "stablehlo.reduce" | "mhlo.reduce" => self.reduce(op, depth, stack),
                "sdy.mesh" => self.mesh(op),
                "sdy.sharding_constraint" => self.sharding_constraint(op),
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
        let mut operands = self.m.op(op).operands.to_vec().into_iter();
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
        operands: &mut std::vec::IntoIter<ValueId>,
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
        operands: &mut std::vec::IntoIter<ValueId>,
        gap: &mut Gap,
    ) -> bool {
        let m = self.m;
        let attr = |name: &str| m.attr(op, name).map(|a| m.get_attribute(a));
        match *item {
            Item::Operand => {
                let Some(value) = operands.next() else { return false };
                self.gap(gap);
                self.value(value);
            }
            Item::Operands => {
                let all: Vec<ValueId> = operands.collect();
                if !all.is_empty() {
                    self.gap(gap);
                    self.list_of(&all);
                }
            }
            Item::OperandsCommas => {
                for value in operands {
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
        if before && *gap == Gap::Space || before && tok == Tok::Colon {
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
                    let Some(pairs) = crate::convert::ints(m, attribute).filter(|_| two) else {
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

    // ---- those that no table says

    /// The text of an attribute that must be a string.
    fn text_of(&self, op: OpId, name: &str) -> Option<&str> {
        match self.m.get_attribute(self.m.attr(op, name)?) {
            Attribute::String { text, ty: None } => Some(text),
            _ => None,
        }
    }

    /// The properties and attributes but those of these names, together, by name.
    fn others(&self, op: OpId, but: &[&str]) -> Vec<NamedAttribute> {
        let o = self.m.op(op);
        let mut list: Vec<NamedAttribute> = o
            .properties
            .iter()
            .chain(&o.attributes)
            .filter(|a| !but.contains(&self.m.text(a.name)))
            .copied()
            .collect();
        list.sort_by(|a, b| self.m.text(a.name).cmp(self.m.text(b.name)));
        list
    }

    fn optional_dictionary(&mut self, before: &str, list: &[NamedAttribute]) {
        if !list.is_empty() {
            self.out.push_str(before);
            self.dictionary(list);
        }
    }

    /// The block of a region that has one.
    fn only_block(&self, op: OpId, region: usize) -> Option<crate::ir::BlockId> {
        match *self.m.region(*self.m.op(op).regions.get(region)?).blocks {
            [block] => Some(block),
            [..] => None,
        }
    }

    fn module(&mut self, op: OpId, depth: usize, stack: &mut Vec<Todo>) -> bool {
        let m = self.m;
        let o = m.op(op);
        let Some(block) = self.only_block(op, 0).filter(|_| o.regions.len() == 1) else { return false };
        if o.properties.iter().any(|p| m.text(p.name) != "sym_name") || !m.block(block).arguments.is_empty() {
            return false;
        }
        self.out.push_str("module");
        if let Some(name) = m.attr(op, "sym_name") {
            let Attribute::String { text, ty: None } = m.get_attribute(name) else { return false };
            if text.is_empty() {
                return false;
            }
            self.out.push(' ');
            self.at_name(text);
        }
        let others = self.others(op, &["sym_name"]);
        self.optional_dictionary(" attributes ", &others);
        self.out.push_str(" {\n");
        stack.push(Todo::End(op, depth));
        stack.push(Todo::Block(block, 0, depth + 1));
        true
    }

    fn function(&mut self, op: OpId, depth: usize, stack: &mut Vec<Todo>) -> bool {
        const OWN: [&str; 5] = ["sym_name", "function_type", "sym_visibility", "arg_attrs", "res_attrs"];
        let m = self.m;
        let o = m.op(op);
        if o.properties.iter().any(|p| !OWN.contains(&m.text(p.name))) || !o.operands.is_empty() {
            return false;
        }
        let (inputs, results) = match m.attr(op, "function_type").map(|a| m.get_attribute(a)) {
            Some(Attribute::Type(ty)) => match m.get_type(*ty) {
                Type::Function { inputs, results } => (&**inputs, &**results),
                _ => return false,
            },
            _ => return false,
        };
        let Some(name) = self.text_of(op, "sym_name") else { return false };
        let name = name.to_owned();
        self.out.push_str("func.func ");
        match (m.attr(op, "sym_visibility"), self.text_of(op, "sym_visibility")) {
            (None, _) => {}
            (Some(_), Some(word @ ("public" | "private" | "nested"))) => {
                let word = word.to_owned();
                let _ = write!(self.out, "{word} ");
            }
            (Some(_), _) => return false,
        }
        self.at_name(&name);
        let lists = |key: &str, count: usize| -> Option<Vec<&[NamedAttribute]>> {
            let Some(attribute) = m.attr(op, key) else { return Some(vec![&[]; count]) };
            let Attribute::Array(parts) = m.get_attribute(attribute) else { return None };
            let lists: Option<Vec<&[NamedAttribute]>> = parts
                .iter()
                .map(|&p| match m.get_attribute(p) {
                    Attribute::Dictionary(list) => Some(&**list),
                    _ => None,
                })
                .collect();
            lists.filter(|l| l.len() == count && l.iter().any(|d| !d.is_empty()))
        };
        let (Some(of_arguments), Some(of_results)) =
            (lists("arg_attrs", inputs.len()), lists("res_attrs", results.len()))
        else {
            return false;
        };
        let (block, arguments) = match (&o.regions[..], self.only_block(op, 0)) {
            ([_], Some(block)) => (Some(block), &m.block(block).arguments[..]),
            ([], _) => (None, &[][..]),
            ([region], None) if m.region(*region).blocks.is_empty() => (None, &[][..]),
            ([..], _) => return false,
        };
        if block.is_some()
            && (arguments.len() != inputs.len()
                || arguments.iter().zip(inputs).any(|(&a, &t)| m.value_type(a) != t))
        {
            return false;
        }
        self.out.push('(');
        for (n, &ty) in inputs.iter().enumerate() {
            self.out.push_str(if n > 0 { ", " } else { "" });
            if let Some(&argument) = arguments.get(n) {
                self.value(argument);
                self.out.push_str(": ");
            }
            self.ty(ty);
            self.optional_dictionary(" ", of_arguments[n]);
            if let Some(&argument) = arguments.get(n) {
                self.trailing_location(m.value(argument).loc);
            }
        }
        self.out.push(')');
        if !results.is_empty() {
            self.out.push_str(" -> ");
            let bare = results.len() == 1
                && of_results[0].is_empty()
                && !matches!(m.get_type(results[0]), Type::Function { .. });
            self.out.push_str(if bare { "" } else { "(" });
            for (n, &ty) in results.iter().enumerate() {
                self.out.push_str(if n > 0 { ", " } else { "" });
                self.ty(ty);
                self.optional_dictionary(" ", of_results[n]);
            }
            self.out.push_str(if bare { "" } else { ")" });
        }
        let others = self.others(op, &OWN);
        self.optional_dictionary(" attributes ", &others);
        match block {
            Some(block) => {
                self.out.push_str(" {\n");
                stack.push(Todo::End(op, depth));
                stack.push(Todo::Block(block, 0, depth + 1));
                true
            }
            // A declaration has its region, empty, only in the generic form.
            None => o.regions.is_empty() && self.end(op),
        }
    }

    fn constant(&mut self, op: OpId) -> bool {
        let m = self.m;
        let o = m.op(op);
        let (Some(value), &[result]) = (m.attr(op, "value"), &o.results[..]) else { return false };
        let ty = match m.get_attribute(value) {
            Attribute::Elements { ty, .. }
            | Attribute::DenseResource { ty, .. }
            | Attribute::Integer { ty, .. }
            | Attribute::Float { ty, .. } => *ty,
            _ => return false,
        };
        if !o.operands.is_empty() || !o.regions.is_empty() {
            return false;
        }
        self.out.push_str(m.op_name(op));
        let others = self.others(op, &["value"]);
        self.optional_dictionary(" ", &others);
        self.out.push(' ');
        self.attribute(value);
        let own = m.value_type(result);
        if own != ty {
            self.out.push_str(" : ");
            self.ty(own);
        }
        self.end(op)
    }

    fn while_loop(&mut self, op: OpId, depth: usize, stack: &mut Vec<Todo>) -> bool {
        let m = self.m;
        let o = m.op(op);
        let (Some(condition), Some(body)) = (self.only_block(op, 0), self.only_block(op, 1)) else {
            return false;
        };
        let types: Vec<TypeId> = o.operands.iter().map(|&v| m.value_type(v)).collect();
        let same = |values: &[ValueId]| {
            values.len() == types.len() && values.iter().zip(&types).all(|(&v, &t)| m.value_type(v) == t)
        };
        let (of_condition, of_body) = (&m.block(condition).arguments, &m.block(body).arguments);
        if o.regions.len() != 2 || !same(of_condition) || !same(of_body) || !same(&o.results) {
            return false;
        }
        // Both regions see the arguments by one name.
        for (&a, &b) in of_condition.iter().zip(of_body) {
            if m.value(a).loc != crate::ir::LocId::UNKNOWN && self.options.locations {
                return false;
            }
            self.name_as(b, a);
        }
        let _ = write!(self.out, "{}(", m.op_name(op));
        for (n, (&argument, &operand)) in of_condition.iter().zip(&o.operands).enumerate() {
            self.out.push_str(if n > 0 { ", " } else { "" });
            self.value(argument);
            self.out.push_str(" = ");
            self.value(operand);
        }
        self.out.push(')');
        if !types.is_empty() {
            self.out.push_str(" : ");
            self.types(&types);
        }
        let others = self.others(op, &[]);
        self.optional_dictionary(" attributes ", &others);
        self.out.push('\n');
        self.indent(depth);
        self.out.push_str("cond {\n");
        stack.push(Todo::Do(op, body, depth));
        stack.push(Todo::Block(condition, 0, depth + 1));
        true
    }

    fn reduce(&mut self, op: OpId, depth: usize, stack: &mut Vec<Todo>) -> bool {
        let m = self.m;
        let o = m.op(op);
        let Some(block) = self.only_block(op, 0).filter(|_| o.regions.len() == 1) else { return false };
        let Some(dimensions) = self.i64s(op, "dimensions") else { return false };
        let count = o.operands.len() / 2;
        let arguments = &m.block(block).arguments;
        if count == 0 || o.operands.len() != 2 * count || arguments.len() != 2 * count {
            return false;
        }
        let _ = write!(self.out, "{}(", m.op_name(op));
        for n in 0..count {
            self.out.push_str(if n > 0 { ", (" } else { "" });
            self.value(o.operands[n]);
            self.out.push_str(" init: ");
            self.value(o.operands[count + n]);
            self.out.push(')');
        }
        let short = if count == 1 { self.short_reducer(op, block) } else { None };
        if let Some(name) = short {
            let _ = write!(self.out, " applies {}", m.text(name));
        }
        self.out.push_str(" across dimensions = ");
        self.bracketed(&dimensions);
        let others = self.others(op, &["dimensions"]);
        self.optional_dictionary(" ", &others);
        self.out.push_str(" : ");
        let inputs: Vec<TypeId> = o.operands.iter().map(|&v| m.value_type(v)).collect();
        let results: Vec<TypeId> = o.results.iter().map(|&v| m.value_type(v)).collect();
        self.function_type(&inputs, &results);
        if short.is_some() {
            return self.end(op);
        }
        self.out.push('\n');
        self.indent(depth);
        self.out.push_str(" reducer");
        for n in 0..count {
            self.out.push('(');
            for (side, argument) in [arguments[n], arguments[count + n]].into_iter().enumerate() {
                self.out.push_str(if side > 0 { ", " } else { "" });
                self.value(argument);
                self.out.push_str(": ");
                self.ty(m.value_type(argument));
                self.trailing_location(m.value(argument).loc);
            }
            self.out.push_str(") ");
        }
        self.out.push_str(" {\n");
        stack.push(Todo::End(op, depth));
        stack.push(Todo::Block(block, 0, depth + 1));
        true
    }

    /// The operation that a region applies to its two scalars, if it does nothing else.
    fn short_reducer(&self, op: OpId, block: crate::ir::BlockId) -> Option<NameId> {
        let m = self.m;
        let b = m.block(block);
        let (&[x, y], &[applied, end]) = (&b.arguments[..], &b.operations[..]) else { return None };
        let (applied_op, end_op) = (m.op(applied), m.op(end));
        let (dialect, name) = m.op_name(applied).split_once('.')?;
        let own = m.op_name(op).split('.').next()?;
        let element = match m.get_type(m.value_type(m.op(op).operands[0])) {
            Type::Tensor { element, .. } => *element,
            _ => return None,
        };
        let scalar = |ty: TypeId| matches!(m.get_type(ty), Type::Tensor { dims, element: e, encoding: None } if dims.is_empty() && *e == element);
        let &[result] = &applied_op.results[..] else { return None };
        let plain = |o: &crate::ir::Operation| o.properties.is_empty() && o.attributes.is_empty();
        let unknown = crate::ir::LocId::UNKNOWN;
        let no_locations = !self.options.locations
            || [applied_op.loc, end_op.loc, m.value(x).loc, m.value(y).loc].iter().all(|&l| l == unknown);
        (dialect == own
            && SHORT_REDUCERS.contains(&name)
            && applied_op.operands[..] == [x, y]
            && end_op.operands[..] == [result]
            && m.op_name(end).strip_prefix(dialect) == Some(".return")
            && plain(applied_op)
            && plain(end_op)
            && no_locations
            && [x, y, result].iter().all(|&v| scalar(m.value_type(v))))
        .then_some(applied_op.name)
    }

    /// The text of an attribute of Shardy after its name.
    fn shardy(&self, op: OpId, key: &str, name: &str) -> Option<String> {
        match self.m.get_attribute(self.m.attr(op, key)?) {
            Attribute::Opaque(text) => {
                text.strip_prefix(name).filter(|t| t.starts_with('<')).map(str::to_owned)
            }
            _ => None,
        }
    }

    fn mesh(&mut self, op: OpId) -> bool {
        let (Some(name), Some(mesh)) = (self.text_of(op, "sym_name"), self.shardy(op, "mesh", "sdy.mesh"))
        else {
            return false;
        };
        let name = name.to_owned();
        self.out.push_str("sdy.mesh ");
        self.at_name(&name);
        let _ = write!(self.out, " = {mesh}");
        let others = self.others(op, &["sym_name", "mesh"]);
        self.optional_dictionary(" ", &others);
        self.m.op(op).results.is_empty() && self.end(op)
    }

    fn sharding_constraint(&mut self, op: OpId) -> bool {
        let o = self.m.op(op);
        let Some(sharding) = self.shardy(op, "sharding", "sdy.sharding") else { return false };
        let (&[x], &[result]) = (&o.operands[..], &o.results[..]) else { return false };
        if self.m.value_type(x) != self.m.value_type(result) {
            return false;
        }
        self.out.push_str("sdy.sharding_constraint ");
        self.value(x);
        let _ = write!(self.out, " {sharding}");
        let others = self.others(op, &["sharding"]);
        self.optional_dictionary(" ", &others);
        self.out.push_str(" : ");
        self.ty(self.m.value_type(x));
        self.end(op)
    }

    /// The middle of a loop.
    pub(super) fn loop_body(
        &mut self,
        op: OpId,
        body: crate::ir::BlockId,
        depth: usize,
        stack: &mut Vec<Todo>,
    ) {
        debug_assert!(is_while(self.m, op));
        self.indent(depth);
        self.out.push_str("} do {\n");
        stack.push(Todo::End(op, depth));
        stack.push(Todo::Block(body, 0, depth + 1));
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
