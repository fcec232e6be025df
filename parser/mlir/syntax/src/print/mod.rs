//! The tree as MLIR text: in the generic form, which every reader of MLIR understands, or in the forms that
//! operations have (`pretty`), as MLIR's own printer writes them.
//!
//! **Invariant:** the text reads back as the same module: operations, types, attributes, locations and
//! resources. Names of values are made anew. Nothing recurses on the nesting of regions.

mod attribute;
mod elements;
mod names;
mod pretty;

use std::fmt::Write as _;

use crate::ir::{
    Attribute, BlockId, FloatType, LocId, Location, Module, NamedAttribute, OpId, QuantizedType,
    ResourceData, Signedness, Type, TypeId, ValueId,
};

/// The maximum number of levels that lines are indented by.
const MAX_INDENTED: usize = 40;

/// Choices of the printer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PrintOptions {
    /// `loc(...)` after operations and arguments.
    pub locations: bool,
    /// Elements of more bytes than this are left out, for people: the text does not read back then.
    pub elide_above: Option<usize>,
    /// Operations are in the forms of their own, where they have one; else in the generic form.
    pub pretty: bool,
}

impl PrintOptions {
    /// As MLIR's own printer writes, with locations where operations have any.
    pub const PRETTY: Self = Self { locations: true, elide_above: None, pretty: true };
}

impl Default for PrintOptions {
    fn default() -> Self {
        Self { locations: true, elide_above: None, pretty: false }
    }
}

/// The text of a module.
pub fn print(m: &Module, options: &PrintOptions) -> String {
    let mut p = Printer {
        m,
        out: String::new(),
        options: *options,
        names: vec![u32::MAX; m.value_count()],
        next: 0,
        texts: if options.pretty { names::assign(m) } else { Vec::new() },
    };
    if let Some(top) = m.top() {
        p.tree(top);
    }
    p.resources();
    p.out
}

/// The text of a type.
pub fn type_text(m: &Module, ty: TypeId) -> String {
    let mut p = Printer::bare(m);
    p.ty(ty);
    p.out
}

/// The text of an attribute, shortened where it has many elements.
pub fn attribute_text(m: &Module, attribute: crate::ir::AttrId) -> String {
    let mut p = Printer::bare(m);
    p.options.elide_above = Some(256);
    p.attribute(attribute);
    p.out
}

pub(super) struct Printer<'m> {
    pub(super) m: &'m Module,
    pub(super) out: String,
    pub(super) options: PrintOptions,
    /// The number of each value, `u32::MAX` before it has one.
    names: Vec<u32>,
    next: u32,
    /// The name of each value, of the pretty form.
    texts: Vec<Box<str>>,
}

/// What is left to print, innermost last.
pub(super) enum Todo {
    /// The operation at an index of a block.
    Block(BlockId, usize, usize),
    /// Region `n` of an operation, and all after it.
    Regions(OpId, usize, usize),
    /// The blocks of a region from `n` on.
    Blocks(OpId, usize, usize, usize),
    /// The body of a loop, after its condition.
    Do(OpId, BlockId, usize),
    /// The end of an operation whose last region ends.
    End(OpId, usize),
}

impl<'m> Printer<'m> {
    fn bare(m: &'m Module) -> Self {
        Self {
            m,
            out: String::new(),
            options: PrintOptions { locations: false, elide_above: None, pretty: false },
            names: Vec::new(),
            next: 0,
            texts: Vec::new(),
        }
    }

    pub(super) fn indent(&mut self, depth: usize) {
        // The text is linear in the module, however deep that is.
        for _ in 0..depth.min(MAX_INDENTED) {
            self.out.push_str("  ");
        }
    }

    fn tree(&mut self, top: OpId) {
        let mut stack = Vec::new();
        self.head(top, 0, &mut stack);
        while let Some(todo) = stack.pop() {
            match todo {
                Todo::Do(op, body, depth) => self.loop_body(op, body, depth, &mut stack),
                Todo::End(op, depth) => {
                    self.indent(depth);
                    self.out.push('}');
                    self.after_region(op);
                    self.trailing_location(self.m.op(op).loc);
                    self.out.push('\n');
                }
                Todo::Block(block, index, depth) => {
                    let Some(&op) = self.m.block(block).operations.get(index) else { continue };
                    stack.push(Todo::Block(block, index + 1, depth));
                    self.head(op, depth, &mut stack);
                }
                Todo::Regions(op, index, depth) => {
                    let count = self.m.op(op).regions.len();
                    if index > 0 {
                        self.indent(depth);
                        self.out.push('}');
                    }
                    if index == count {
                        self.out.push(')');
                        self.tail(op);
                        continue;
                    }
                    if index > 0 {
                        self.out.push_str(", ");
                    }
                    self.out.push_str("{\n");
                    stack.push(Todo::Regions(op, index + 1, depth));
                    stack.push(Todo::Blocks(op, index, 0, depth));
                }
                Todo::Blocks(op, region, index, depth) => {
                    let region_id = self.m.op(op).regions[region];
                    let Some(&block) = self.m.region(region_id).blocks.get(index) else { continue };
                    let b = self.m.block(block);
                    if index > 0 || !b.arguments.is_empty() {
                        self.indent(depth);
                        let _ = write!(self.out, "^bb{index}");
                        if !b.arguments.is_empty() {
                            self.out.push('(');
                            for (i, &argument) in b.arguments.iter().enumerate() {
                                self.out.push_str(if i > 0 { ", " } else { "" });
                                self.define(argument);
                                self.value(argument);
                                self.out.push_str(": ");
                                self.ty(self.m.value_type(argument));
                                self.trailing_location(self.m.value(argument).loc);
                            }
                            self.out.push(')');
                        }
                        self.out.push_str(":\n");
                    }
                    stack.push(Todo::Blocks(op, region, index + 1, depth));
                    stack.push(Todo::Block(block, 0, depth + 1));
                }
            }
        }
    }

    fn define(&mut self, value: ValueId) {
        self.names[value.index()] = self.next;
        self.next += 1;
    }

    /// An operation up to its regions, or all of it.
    fn head(&mut self, op: OpId, depth: usize, stack: &mut Vec<Todo>) {
        let o = self.m.op(op);
        self.indent(depth);
        if let [first, ..] = *o.results {
            // Results of one operation have numbers that follow each other, and one name.
            self.define(first);
            for (i, &result) in o.results.iter().enumerate() {
                self.names[result.index()] = self.names[first.index()];
                let _ = i;
            }
            self.name_of(first);
            if self.names_each(op) {
                for &result in &o.results[1..] {
                    self.out.push_str(", ");
                    self.name_of(result);
                }
            } else if o.results.len() > 1 {
                let _ = write!(self.out, ":{}", o.results.len());
            }
            self.out.push_str(" = ");
        }
        if self.options.pretty && self.pretty(op, depth, stack) {
            return;
        }
        let _ = write!(self.out, "\"{}\"(", self.m.text(o.name));
        for (i, &operand) in o.operands.iter().enumerate() {
            self.out.push_str(if i > 0 { ", " } else { "" });
            self.value(operand);
        }
        self.out.push(')');
        if !o.successors.is_empty() {
            self.out.push('[');
            for (i, &block) in o.successors.iter().enumerate() {
                let region = self.m.block(block).parent;
                let index = self.m.region(region).blocks.iter().position(|&b| b == block).unwrap_or(0);
                let _ = write!(self.out, "{}^bb{index}", if i > 0 { ", " } else { "" });
            }
            self.out.push(']');
        }
        if !o.properties.is_empty() {
            self.out.push_str(" <");
            self.dictionary(&o.properties);
            self.out.push('>');
        }
        if o.regions.is_empty() {
            self.tail(op);
        } else {
            self.out.push_str(" (");
            stack.push(Todo::Regions(op, 0, depth));
        }
    }

    /// Attributes, types and location of an operation.
    fn tail(&mut self, op: OpId) {
        let o = self.m.op(op);
        if !o.attributes.is_empty() {
            self.out.push(' ');
            self.dictionary(&o.attributes);
        }
        self.out.push_str(" : (");
        for (i, &operand) in o.operands.iter().enumerate() {
            self.out.push_str(if i > 0 { ", " } else { "" });
            self.ty(self.m.value_type(operand));
        }
        self.out.push_str(") -> ");
        let results: Vec<TypeId> = o.results.iter().map(|&r| self.m.value_type(r)).collect();
        self.results(&results);
        self.trailing_location(o.loc);
        self.out.push('\n');
    }

    pub(super) fn value(&mut self, value: ValueId) {
        use crate::ir::ValueDef;
        self.name_of(value);
        if let ValueDef::Result { op, index } = self.m.value(value).def
            && self.m.op(op).results.len() > 1
            && !self.names_each(op)
        {
            let _ = write!(self.out, "#{index}");
        }
    }

    /// Whether each result has a name of its own.
    fn names_each(&self, op: OpId) -> bool {
        let count = self.m.op(op).results.len();
        self.options.pretty && count > 1 && names::result_names(self.m.op_name(op)).len() == count
    }

    /// `%name`
    fn name_of(&mut self, value: ValueId) {
        self.out.push('%');
        match self.texts.get(value.index()) {
            Some(text) => self.out.push_str(text),
            None => {
                let _ = write!(self.out, "{}", self.names[value.index()]);
            }
        }
    }

    /// Sets the name of a value to that of another.
    pub(super) fn name_as(&mut self, value: ValueId, other: ValueId) {
        self.texts[value.index()] = self.texts[other.index()].clone();
    }

    /// `t`, `(t, t)`, `()`; a function type as the only result in parentheses.
    pub(super) fn results(&mut self, types: &[TypeId]) {
        match *types {
            [one] if !matches!(self.m.get_type(one), Type::Function { .. }) => self.ty(one),
            _ => {
                self.out.push('(');
                self.types(types);
                self.out.push(')');
            }
        }
    }

    pub(super) fn types(&mut self, types: &[TypeId]) {
        for (i, &ty) in types.iter().enumerate() {
            self.out.push_str(if i > 0 { ", " } else { "" });
            self.ty(ty);
        }
    }

    pub(super) fn ty(&mut self, ty: TypeId) {
        match self.m.get_type(ty) {
            Type::None => self.out.push_str("none"),
            Type::Index => self.out.push_str("index"),
            Type::Integer { width, sign } => {
                let sign = match sign {
                    Signedness::Signless => "i",
                    Signedness::Signed => "si",
                    Signedness::Unsigned => "ui",
                };
                let _ = write!(self.out, "{sign}{width}");
            }
            Type::Float(f) => self.out.push_str(FloatType::text(*f)),
            Type::Complex(part) => {
                self.out.push_str("complex<");
                self.ty(*part);
                self.out.push('>');
            }
            Type::Vector { dims, element, .. } => {
                self.out.push_str("vector<");
                self.dims(dims);
                self.ty(*element);
                self.out.push('>');
            }
            Type::Tensor { dims, element, encoding } => {
                self.out.push_str("tensor<");
                self.dims(dims);
                self.ty(*element);
                if let Some(encoding) = encoding {
                    self.out.push_str(", ");
                    self.attribute(*encoding);
                }
                self.out.push('>');
            }
            Type::UnrankedTensor(element) => {
                self.out.push_str("tensor<*x");
                self.ty(*element);
                self.out.push('>');
            }
            Type::Tuple(parts) => {
                self.out.push_str("tuple<");
                self.types(parts);
                self.out.push('>');
            }
            Type::Function { inputs, results } => {
                self.out.push('(');
                self.types(inputs);
                self.out.push_str(") -> ");
                self.results(results);
            }
            Type::Dialect { name, parameters } => {
                let _ = write!(self.out, "!{}", self.m.text(*name));
                if !parameters.is_empty() {
                    self.out.push('<');
                    self.types(parameters);
                    self.out.push('>');
                }
            }
            Type::Quantized(q) => self.quantized(q),
            Type::Opaque(text) => {
                if !text.starts_with("memref<") {
                    self.out.push('!');
                }
                self.out.push_str(text);
            }
        }
    }

    pub(super) fn dims(&mut self, dims: &[i64]) {
        for &d in dims {
            if d == crate::ir::DYNAMIC {
                self.out.push_str("?x");
            } else {
                let _ = write!(self.out, "{d}x");
            }
        }
    }

    fn quantized(&mut self, q: &QuantizedType) {
        let _ = write!(self.out, "!quant.uniform<{}{}", if q.signed { "i" } else { "u" }, q.storage_bits);
        let whole = 1i64 << q.storage_bits;
        let full = if q.signed { (-whole / 2, whole / 2 - 1) } else { (0, whole - 1) };
        if (q.storage_min, q.storage_max) != full {
            let _ = write!(self.out, "<{}:{}>", q.storage_min, q.storage_max);
        }
        self.out.push(':');
        self.ty(q.expressed);
        match *q.axes {
            [] => {}
            [(axis, 0)] => {
                let _ = write!(self.out, ":{axis}");
            }
            _ => {
                self.out.push_str(":{");
                for (i, (axis, block)) in q.axes.iter().enumerate() {
                    let _ = write!(self.out, "{}{axis}:{block}", if i > 0 { ", " } else { "" });
                }
                self.out.push('}');
            }
        }
        self.out.push_str(", ");
        let braces = !q.axes.is_empty();
        self.out.push_str(if braces { "{" } else { "" });
        for (i, (&scale, &zero)) in q.scales.iter().zip(&q.zero_points).enumerate() {
            self.out.push_str(if i > 0 { ", " } else { "" });
            elements::decimal(&mut self.out, f64::from_bits(scale));
            if zero != 0 {
                let _ = write!(self.out, ":{zero}");
            }
        }
        self.out.push_str(if braces { "}>" } else { ">" });
    }

    pub(super) fn trailing_location(&mut self, loc: LocId) {
        if self.options.locations && loc != LocId::UNKNOWN {
            self.out.push_str(" loc(");
            self.location(loc);
            self.out.push(')');
        }
    }

    pub(super) fn location(&mut self, loc: LocId) {
        match self.m.get_location(loc) {
            Location::Unknown => self.out.push_str("unknown"),
            Location::File { file, start, end } => {
                self.quoted(self.m.text(*file));
                let _ = write!(self.out, ":{}:{}", start.0, start.1);
                if let Some((line, column)) = end {
                    let _ = write!(self.out, " to {line}:{column}");
                }
            }
            Location::Name { name, child } => {
                self.quoted(self.m.text(*name));
                if *child != LocId::UNKNOWN {
                    self.out.push('(');
                    self.location(*child);
                    self.out.push(')');
                }
            }
            Location::CallSite { callee, caller } => {
                self.out.push_str("callsite(");
                self.location(*callee);
                self.out.push_str(" at ");
                self.location(*caller);
                self.out.push(')');
            }
            Location::Fused { metadata, locations } => {
                self.out.push_str("fused");
                if let Some(metadata) = metadata {
                    self.out.push('<');
                    self.attribute(*metadata);
                    self.out.push('>');
                }
                self.out.push('[');
                for (i, &l) in locations.iter().enumerate() {
                    self.out.push_str(if i > 0 { ", " } else { "" });
                    self.location(l);
                }
                self.out.push(']');
            }
        }
    }

    /// A string with its quotes and escapes.
    pub(super) fn quoted(&mut self, text: &str) {
        self.quoted_bytes(text.as_bytes());
    }

    pub(super) fn quoted_bytes(&mut self, bytes: &[u8]) {
        self.out.push('"');
        for &b in bytes {
            match b {
                b'\\' => self.out.push_str("\\\\"),
                b'"' => self.out.push_str("\\22"),
                b' '..=b'~' => self.out.push(b as char),
                _ => {
                    let _ = write!(self.out, "\\{b:02X}");
                }
            }
        }
        self.out.push('"');
    }

    /// `{name = value, ...}`
    pub(super) fn dictionary(&mut self, list: &[NamedAttribute]) {
        self.out.push('{');
        for (i, a) in list.iter().enumerate() {
            self.out.push_str(if i > 0 { ", " } else { "" });
            let name = self.m.text(a.name);
            if is_bare(name) {
                self.out.push_str(name);
            } else {
                self.quoted(name);
            }
            if !matches!(self.m.get_attribute(a.value), Attribute::Unit) {
                self.out.push_str(" = ");
                self.attribute(a.value);
            }
        }
        self.out.push('}');
    }

    fn resources(&mut self) {
        let given = |d: &ResourceData| !matches!(d, ResourceData::Missing);
        let mut dialects: Vec<_> =
            self.m.resources().iter().filter(|r| given(&r.data)).map(|r| r.dialect).collect();
        dialects.sort();
        dialects.dedup();
        if dialects.is_empty() {
            return;
        }
        self.out.push_str("\n{-#\n  dialect_resources: {\n");
        for (i, dialect) in dialects.iter().enumerate() {
            let _ = writeln!(self.out, "{}    {}: {{", if i > 0 { ",\n" } else { "" }, self.m.text(*dialect));
            let mut first = true;
            for r in self.m.resources().iter().filter(|r| r.dialect == *dialect && given(&r.data)) {
                if !first {
                    self.out.push_str(",\n");
                }
                first = false;
                self.out.push_str("      ");
                let key = self.m.text(r.key);
                if is_bare(key) {
                    self.out.push_str(key);
                } else {
                    self.quoted(key);
                }
                self.out.push_str(": ");
                match &r.data {
                    ResourceData::Missing => {}
                    ResourceData::Bool(b) => {
                        let _ = write!(self.out, "{b}");
                    }
                    ResourceData::Text(text) => self.quoted(text),
                    ResourceData::Blob { alignment, data } => {
                        self.out.push_str("\"0x");
                        elements::hex(&mut self.out, &alignment.to_le_bytes());
                        elements::hex(&mut self.out, data);
                        self.out.push('"');
                    }
                }
            }
            self.out.push_str("\n    }");
        }
        self.out.push_str("\n  }\n#-}\n");
    }
}

/// Whether a name needs no quotes.
pub(super) fn is_bare(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$' | b'.'))
}
