//! The converter's state, and what every family of operations needs: attributes, operands, instructions,
//! errors.

use hlo::attrs::{AttrKey, AttrValue, Attrs, Ints, Metadata};
use hlo::diag::codes;
use hlo::diag::{Code, Diagnostic, Diagnostics};
use hlo::elided::ElidedConstants;
use hlo::{
    ArrayLiteral, ComputationId, ConstantValue, InstrId, Literal, Name, NewInstruction, Opcode, Shape, Span,
};
use rustc_hash::FxHashMap;

use super::Check;
use crate::ir::{AttrId, Attribute, LocId, Location, Module, OpId, RegionId, Type, ValueId};

/// What a conversion gives; an error ends it.
pub(crate) type Convert<T> = Result<T, Box<Diagnostic>>;

pub(super) struct Converter<'m> {
    pub(super) m: &'m Module,
    pub(super) out: hlo::Module,
    /// Functions by name.
    pub(super) functions: FxHashMap<&'m str, OpId>,
    /// Computations of functions that are converted.
    pub(super) called: FxHashMap<OpId, ComputationId>,
    /// Computations of regions.
    pub(super) regions: FxHashMap<RegionId, ComputationId>,
    /// What regions of an operation use of outside, in the order of their operands.
    pub(super) captures: FxHashMap<OpId, Vec<ValueId>>,
    /// Constants by value, where a pass over the tree found them.
    pub(super) known: super::fold::Known,
    /// The body that is being converted.
    pub(super) body: Body,
    pub(super) checks: Vec<Check>,
    /// Operands of `sdy.sharding_group`, with the number of their group.
    pub(super) sharding_groups: Vec<(InstrId, i64)>,
    pub(super) warnings: Diagnostics,
    pub(super) elided: ElidedConstants,
    /// Whether checks become results.
    pub(super) checking: bool,
    /// Shapes of values whose types do not say them.
    pub(super) concrete: FxHashMap<ValueId, Shape>,
    /// Replicas and partitions that functions run on, where the module runs them itself.
    pub(super) grid: Option<(i64, i64)>,
    /// How many functions and regions are being converted inside of each other.
    pub(super) inside: u32,
    /// How many functions were converted for one call alone.
    pub(super) specialized: u32,
    /// Quantized operands of the current operation are the numbers that they stand for (or, with `storing`,
    /// stay what they are).
    pub(super) expressing: bool,
    /// Quantized types are their storage types.
    pub(super) storing: bool,
}

/// A computation that is being filled.
pub(super) struct Body {
    pub(super) computation: ComputationId,
    pub(super) values: FxHashMap<ValueId, InstrId>,
    /// The operation that is being converted: its instructions have its span and name.
    pub(super) op: Option<OpId>,
    /// The last token of infeeds that take the same one.
    pub(super) infeeds: FxHashMap<InstrId, InstrId>,
}

impl Body {
    pub(super) fn new(computation: ComputationId) -> Self {
        Self { computation, values: FxHashMap::default(), op: None, infeeds: FxHashMap::default() }
    }
}

impl<'m> Converter<'m> {
    // ---- errors

    pub(super) fn fail<T>(&self, code: Code, op: OpId, message: impl Into<String>) -> Convert<T> {
        let message = format!("{}: {}", self.m.op_name(op), message.into());
        let d = Diagnostic::error(code, self.m.op(op).span, message).note(format!("in {}", self.m.path(op)));
        Err(Box::new(d))
    }

    /// That an operation is not built as its kind is.
    pub(super) fn structure<T>(&self, op: OpId, message: &str) -> Convert<T> {
        self.fail(codes::STABLEHLO_STRUCTURE, op, message)
    }

    /// That a numbered constraint of the specification does not hold.
    pub(super) fn constraint<T>(&self, op: OpId, number: &str, message: impl Into<String>) -> Convert<T> {
        self.fail(codes::STABLEHLO_CONSTRAINT, op, format!("({number}) {}", message.into()))
    }

    /// That something has no HLO.
    pub(super) fn unsupported<T>(&self, op: OpId, message: impl Into<String>) -> Convert<T> {
        self.fail(codes::UNSUPPORTED_STABLEHLO, op, message)
    }

    // ---- attributes

    pub(super) fn attr(&self, op: OpId, name: &str) -> Option<&'m Attribute> {
        self.m.attr(op, name).map(|a| self.m.get_attribute(a))
    }

    /// Integers of `array<...>` or of elements.
    pub(super) fn ints_of(&self, attribute: AttrId) -> Option<Vec<i64>> {
        crate::ir::ints(self.m, attribute)
    }

    /// A list of integers that may be absent.
    pub(super) fn ints_or(
        &self,
        op: OpId,
        name: &str,
        default: impl FnOnce() -> Vec<i64>,
    ) -> Convert<Vec<i64>> {
        match self.m.attr(op, name) {
            None => Ok(default()),
            Some(a) => match self.ints_of(a) {
                Some(list) => Ok(list),
                None => self.structure(op, &format!("`{name}` is no list of integers")),
            },
        }
    }

    pub(super) fn ints(&self, op: OpId, name: &str) -> Convert<Vec<i64>> {
        match self.m.attr(op, name).and_then(|a| self.ints_of(a)) {
            Some(list) => Ok(list),
            None => self.structure(op, &format!("`{name}`, a list of integers, is missing")),
        }
    }

    pub(super) fn int_or(&self, op: OpId, name: &str, default: i64) -> Convert<i64> {
        match self.attr(op, name) {
            None => Ok(default),
            Some(Attribute::Integer { value, .. }) => match i64::try_from(*value) {
                Ok(n) => Ok(n),
                Err(_) => self.structure(op, &format!("`{name}` does not fit 64 bits")),
            },
            Some(Attribute::Bool(b)) => Ok(i64::from(*b)),
            Some(_) => self.structure(op, &format!("`{name}` is no integer")),
        }
    }

    pub(super) fn int(&self, op: OpId, name: &str) -> Convert<i64> {
        if self.m.attr(op, name).is_none() {
            return self.structure(op, &format!("`{name}`, an integer, is missing"));
        }
        self.int_or(op, name, 0)
    }

    pub(super) fn bool_or(&self, op: OpId, name: &str, default: bool) -> Convert<bool> {
        match self.attr(op, name) {
            None => Ok(default),
            Some(Attribute::Bool(b)) => Ok(*b),
            Some(Attribute::Unit) => Ok(true),
            Some(_) => self.structure(op, &format!("`{name}` is neither true nor false")),
        }
    }

    pub(super) fn float(&self, op: OpId, name: &str) -> Option<f64> {
        match self.attr(op, name)? {
            Attribute::Float { bits, ty } => match self.m.get_type(*ty) {
                Type::Float(f) => crate::encode::float_value(*f, *bits),
                _ => None,
            },
            _ => None,
        }
    }

    pub(super) fn string(&self, op: OpId, name: &str) -> Option<&'m str> {
        match self.attr(op, name)? {
            Attribute::String { text, .. } => Some(text),
            _ => None,
        }
    }

    /// The word of an enumeration.
    pub(super) fn word(&self, op: OpId, name: &str) -> Option<&'m str> {
        self.attr(op, name).and_then(|a| self.enum_word(a))
    }

    pub(super) fn enum_word(&self, attribute: &'m Attribute) -> Option<&'m str> {
        match attribute {
            Attribute::Enum { value, .. } => Some(self.m.text(*value)),
            Attribute::String { text, .. } => Some(text),
            _ => None,
        }
    }

    /// A parameter of a record.
    pub(super) fn part(&self, op: OpId, record: &str, name: &str) -> Option<AttrId> {
        match self.attr(op, record)? {
            Attribute::Dialect { parameters, .. } => {
                parameters.iter().find(|p| self.m.text(p.name) == name).map(|p| p.value)
            }
            _ => None,
        }
    }

    pub(super) fn part_ints(&self, op: OpId, record: &str, name: &str) -> Vec<i64> {
        self.part(op, record, name).and_then(|a| self.ints_of(a)).unwrap_or_default()
    }

    pub(super) fn part_int(&self, op: OpId, record: &str, name: &str) -> i64 {
        match self.part(op, record, name).map(|a| self.m.get_attribute(a)) {
            Some(Attribute::Integer { value, .. }) => i64::try_from(*value).unwrap_or(0),
            _ => 0,
        }
    }

    /// A symbol, `@name`.
    pub(super) fn symbol(&self, op: OpId, name: &str) -> Option<&'m str> {
        match self.attr(op, name)? {
            Attribute::Symbol { root, .. } => Some(self.m.text(*root)),
            Attribute::String { text, .. } => Some(text),
            _ => None,
        }
    }

    // ---- operands

    /// The operands as values of the tree.
    pub(super) fn operand_values(&self, op: OpId) -> &'m [ValueId] {
        &self.m.op(op).operands
    }

    /// The instruction of a value.
    pub(super) fn value(&mut self, value: ValueId, op: OpId) -> Convert<InstrId> {
        if let Some(&id) = self.body.values.get(&value) {
            return Ok(id);
        }
        // A constant of outside is made again inside.
        if let crate::ir::ValueDef::Result { op: outside, .. } = self.m.value(value).def
            && super::regions::is_constant(self.m, outside)
        {
            let saved = self.body.op;
            self.body.op = Some(outside);
            self.constant(outside)?;
            self.body.op = saved;
            if let Some(&id) = self.body.values.get(&value) {
                return Ok(id);
            }
        }
        self.unsupported(op, "uses a value of outside of its region, which HLO computations cannot")
    }

    pub(super) fn operands(&mut self, op: OpId) -> Convert<Vec<InstrId>> {
        let values = self.operand_values(op);
        values.iter().map(|&v| self.value(v, op)).collect()
    }

    /// Exactly `N` operands.
    pub(super) fn exactly<const N: usize>(&mut self, op: OpId) -> Convert<[InstrId; N]> {
        let operands = self.operands(op)?;
        match <[InstrId; N]>::try_from(operands) {
            Ok(operands) => Ok(operands),
            Err(operands) => self.structure(op, &format!("has {} operands, not {N}", operands.len())),
        }
    }

    /// Records the instruction of a result.
    pub(super) fn bind(&mut self, op: OpId, index: usize, instr: InstrId) {
        let result = self.m.op(op).results[index];
        self.define(result, instr);
    }

    /// Records the instruction of a value, and remembers its shape if its type does not say it.
    pub(super) fn define(&mut self, value: ValueId, instr: InstrId) {
        self.body.values.insert(value, instr);
        if super::shapes::is_unbounded(self.m, self.m.value_type(value)) {
            let shape = self.out.instr(instr).shape.clone();
            self.concrete.insert(value, shape);
        }
    }

    /// The only result.
    pub(super) fn bind_one(&mut self, op: OpId, instr: InstrId) -> Convert<()> {
        match *self.m.op(op).results {
            [result] => {
                self.define(result, instr);
                Ok(())
            }
            _ => self.structure(op, "has not one result"),
        }
    }

    /// The first `count` results: of one the value itself, of others the elements of a tuple.
    pub(super) fn bind_first(&mut self, op: OpId, value: InstrId, count: usize) {
        if count == 1 {
            return self.bind(op, 0, value);
        }
        self.bind_elements(op, value, count);
    }

    fn bind_elements(&mut self, op: OpId, tuple: InstrId, count: usize) {
        for i in 0..count {
            let part = self.get(tuple, i);
            self.bind(op, i, part);
        }
    }

    /// Results that are the elements of a tuple.
    pub(super) fn bind_tuple(&mut self, op: OpId, tuple: InstrId) -> Convert<()> {
        let parts = match &self.out.instr(tuple).shape {
            Shape::Tuple(parts) => parts.to_vec(),
            Shape::Array(_) | Shape::Token | Shape::Opaque | Shape::Buffer(_) => {
                return self.bind_one(op, tuple);
            }
        };
        if parts.len() != self.m.op(op).results.len() {
            return self.structure(op, &format!("has not {} results", parts.len()));
        }
        self.bind_elements(op, tuple, parts.len());
        Ok(())
    }

    // ---- instructions

    /// Any instruction. Sizes that its shape does not know follow from the operands, if anything says them.
    pub(super) fn emit(
        &mut self,
        opcode: Opcode,
        shape: Shape,
        operands: &[InstrId],
        mut attrs: Attrs,
    ) -> InstrId {
        let shape = if super::shapes::unbounded_dimension(&shape).is_some() {
            self.inferred(opcode, shape, operands, &attrs)
        } else {
            shape
        };
        let mut span = Span::NONE;
        let mut base = opcode.name().to_owned();
        if let Some(op) = self.body.op {
            let o = self.m.op(op);
            span = o.span;
            if attrs.get(AttrKey::Metadata).is_none()
                && let Some(metadata) = metadata(self.m, o.loc)
            {
                attrs.set(AttrKey::Metadata, AttrValue::Metadata(Box::new(metadata)));
            }
            // What only takes values apart or together has no name in the program.
            if let [result, ..] = *o.results
                && !matches!(opcode, Opcode::Tuple | Opcode::GetTupleElement)
                && let Some(name) = self.m.value(result).name
                && let Some(clean) = instruction_name(self.m.text(name))
            {
                base = clean;
            }
        }
        let name: Name = self.out.unique_name(&base);
        let new = NewInstruction { name, attrs, span, ..NewInstruction::new(opcode, shape, operands) };
        self.out.append(self.body.computation, new)
    }

    /// The shape of an instruction by those of its operands; the declared one where these do not say it.
    fn inferred(&self, opcode: Opcode, declared: Shape, operands: &[InstrId], attrs: &Attrs) -> Shape {
        let shapes: Vec<&Shape> = operands.iter().map(|&id| &self.out.instr(id).shape).collect();
        // Of those whose result has an element type that only it says, the dimensions are an operand's.
        let like = match opcode {
            Opcode::Convert | Opcode::ReducePrecision | Opcode::Copy => shapes.first(),
            _ => None,
        };
        let found = match like {
            Some(shape) => (*shape).clone(),
            None => match hlo::infer::infer(&self.out, opcode, &shapes, attrs) {
                Ok(shape) => shape,
                Err(_) => return declared,
            },
        };
        match (found, declared) {
            (Shape::Array(found), Shape::Array(declared)) if found.dims.len() == declared.dims.len() => {
                Shape::Array(found.with_type(declared.element_type).without_layout())
            }
            (found, _) => found,
        }
    }

    /// Without attributes.
    pub(super) fn plain(&mut self, opcode: Opcode, shape: Shape, operands: &[InstrId]) -> InstrId {
        self.emit(opcode, shape, operands, Attrs::new())
    }

    /// An element of a tuple.
    pub(super) fn get(&mut self, tuple: InstrId, index: usize) -> InstrId {
        let shape = match &self.out.instr(tuple).shape {
            Shape::Tuple(parts) => parts.get(index).cloned().unwrap_or(Shape::Token),
            other @ (Shape::Array(_) | Shape::Token | Shape::Opaque | Shape::Buffer(_)) => other.clone(),
        };
        let attrs = Attrs::new().with(AttrKey::Index, AttrValue::Int(index as i64));
        self.emit(Opcode::GetTupleElement, shape, &[tuple], attrs)
    }

    /// A tuple.
    pub(super) fn tuple(&mut self, parts: &[InstrId]) -> InstrId {
        let shape = Shape::tuple(parts.iter().map(|&p| self.out.instr(p).shape.clone()));
        self.plain(Opcode::Tuple, shape, parts)
    }

    /// One value, or a tuple of several (or none).
    pub(super) fn packed(&mut self, parts: &[InstrId]) -> InstrId {
        match *parts {
            [one] => one,
            _ => self.tuple(parts),
        }
    }

    /// A constant.
    pub(super) fn literal(&mut self, literal: ArrayLiteral) -> InstrId {
        let shape = Shape::Array(literal.shape());
        let value = ConstantValue::Given(std::sync::Arc::new(Literal::Array(literal)));
        let attrs = Attrs::new().with(AttrKey::ConstantValue, AttrValue::Literal(value));
        self.emit(Opcode::Constant, shape, &[], attrs)
    }

    /// The shape of an instruction.
    pub(super) fn shape_of(&self, id: InstrId) -> Shape {
        self.out.instr(id).shape.clone()
    }

    /// The dimensions of an array; of what is none, none.
    pub(super) fn dims_of(&self, id: InstrId) -> Vec<i64> {
        self.out.instr(id).shape.as_array().map_or_else(Vec::new, |a| a.dims.to_vec())
    }

    /// The element type of an array.
    pub(super) fn type_of(&self, id: InstrId) -> hlo::ElementType {
        self.out.instr(id).shape.as_array().map_or(hlo::ElementType::Pred, |a| a.element_type)
    }
}

/// A list of integers.
pub(super) fn list(values: &[i64]) -> AttrValue {
    AttrValue::Ints(Ints::from_slice(values))
}

/// A name that HLO text can have, unless it is a number.
fn instruction_name(name: &str) -> Option<String> {
    let first = name.bytes().next()?;
    if !(first.is_ascii_alphabetic() || first == b'_') {
        return None;
    }
    let clean = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-') { c } else { '_' };
    Some(name.chars().map(clean).collect())
}

/// What a location says of the user's program.
pub(super) fn metadata(m: &Module, loc: LocId) -> Option<Metadata> {
    let mut metadata = Metadata::default();
    let mut at = loc;
    loop {
        match m.get_location(at) {
            Location::Unknown => break,
            Location::File { file, start, end } => {
                let file = m.text(*file);
                if file != "-" && !file.is_empty() {
                    metadata.source_file = Some(file.into());
                    metadata.source_line = Some(i64::from(start.0));
                    if let Some((line, column)) = end {
                        metadata.source_end_line = Some(i64::from(*line));
                        metadata.source_column = Some(i64::from(start.1));
                        metadata.source_end_column = Some(i64::from(*column));
                    }
                }
                break;
            }
            Location::Name { name, child } => {
                let name = m.text(*name);
                match name.strip_suffix(':') {
                    Some(kind) => metadata.op_type = Some(kind.into()),
                    None if metadata.op_name.is_none() => metadata.op_name = Some(name.into()),
                    None => {}
                }
                at = *child;
            }
            Location::CallSite { callee, .. } => at = *callee,
            Location::Fused { locations, .. } => match **locations {
                [first, ..] => at = first,
                [] => break,
            },
        }
    }
    (metadata != Metadata::default()).then_some(metadata)
}
