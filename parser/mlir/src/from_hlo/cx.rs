//! The state of the conversion, and what every family of instructions needs: leaves, attributes, operations,
//! errors.

use std::collections::BTreeSet;

use hlo::attrs::{AttrKey, AttrValue, FrontendAttributes};
use hlo::diag::codes;
use hlo::{ComputationId, Diagnostic, Diagnostics, InstrId, Instruction, Shape, Span};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::{Exported, MAX_OPERATIONS};
use crate::ir::{
    AttrId, Attribute, BlockId, LocId, Location, Module, NameId, NamedAttribute, NewOperation, OpId, Type,
    TypeId, ValueId,
};

/// What a conversion gives.
pub(super) type Export<T> = Result<T, Box<Diagnostic>>;

/// The leaves of a value.
pub(super) type Leaves = SmallVec<[ValueId; 1]>;

/// The maximum number of errors that are reported.
const MAX_ERRORS: usize = 100;

/// How a block hands on the root of its computation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ending {
    /// `stablehlo.return` of the leaves.
    Region,
    /// `func.return` of the leaves.
    Function,
    /// `func.return` of the elements of the root, which keep their tuple types.
    Interface,
}

/// A computation that is to be written into a block.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) computation: ComputationId,
    pub(super) block: BlockId,
    /// The leaves of each parameter.
    pub(super) parameters: Vec<Leaves>,
    pub(super) ending: Ending,
}

pub(super) struct Exporter<'h> {
    pub(super) hlo: &'h hlo::Module,
    pub(super) m: Module,
    /// The block of the module.
    pub(super) top: BlockId,
    /// Names of functions, by computation and whether tuples are kept.
    pub(super) functions: FxHashMap<(ComputationId, bool), NameId>,
    pub(super) function_names: rustc_hash::FxHashSet<String>,
    pub(super) work: Vec<Work>,
    /// The leaves of the instructions of the computation that is being written.
    pub(super) values: FxHashMap<InstrId, Leaves>,
    /// The block that is being filled.
    pub(super) block: BlockId,
    /// The instruction that is being converted.
    pub(super) current: InstrId,
    /// Its location.
    pub(super) loc: LocId,
    /// The last operation that was made for it.
    pub(super) last: Option<OpId>,
    pub(super) left_out: BTreeSet<&'static str>,
    errors: Diagnostics,
}

impl<'h> Exporter<'h> {
    pub(super) fn new(hlo: &'h hlo::Module) -> Self {
        let mut m = Module::new();
        let name = m.name("builtin.module");
        let module = m.add_operation(None, NewOperation::new(name, Span::NONE));
        m.set_top(module);
        let region = m.add_region(module);
        let top = m.add_block(region, Span::NONE);
        Self {
            hlo,
            m,
            top,
            functions: FxHashMap::default(),
            function_names: rustc_hash::FxHashSet::default(),
            work: Vec::new(),
            values: FxHashMap::default(),
            block: top,
            current: hlo.root(hlo.entry()),
            loc: LocId::UNKNOWN,
            last: None,
            left_out: BTreeSet::new(),
            errors: Diagnostics::new(),
        }
    }

    /// Instructions that are written out where computations are regions, copies included; of a computation,
    /// with those inside it.
    fn written_out(&self) -> u64 {
        use hlo::Opcode as O;
        // Functions are written once.
        let is_region = |opcode| !matches!(opcode, O::Call | O::Fusion | O::AsyncStart | O::CustomCall);
        let mut sizes: FxHashMap<ComputationId, u64> = FxHashMap::default();
        let mut total = 0u64;
        let mut stack: Vec<(ComputationId, bool)> =
            self.hlo.computations().iter().map(|&c| (c, false)).collect();
        while let Some((computation, ready)) = stack.pop() {
            if sizes.contains_key(&computation) {
                continue;
            }
            let regions = || {
                let instructions = self.hlo.instructions(computation).map(|id| self.hlo.instr(id));
                instructions.filter(|i| is_region(i.opcode)).flat_map(|i| i.attrs.called_computations())
            };
            if !ready {
                stack.push((computation, true));
                stack.extend(regions().filter(|c| !sizes.contains_key(c)).map(|c| (c, false)));
                continue;
            }
            let own = self.hlo.computation(computation).len() as u64;
            let size = regions().fold(own, |n, c| n.saturating_add(sizes.get(&c).copied().unwrap_or(0)));
            sizes.insert(computation, size);
            total = total.max(size);
        }
        total
    }

    pub(super) fn run(mut self) -> Result<Exported, Diagnostics> {
        let size = self.written_out();
        if size > MAX_OPERATIONS as u64 {
            let message = format!(
                "with a copy of each computation that is applied in its place the program has {size} instructions; at most \
                 {MAX_OPERATIONS}"
            );
            return Err(Diagnostic::error(codes::UNSUPPORTED_IN_STABLEHLO, Span::NONE, message).into());
        }
        if let Err(d) = self.program() {
            self.errors.push(*d);
        }
        while let Some(work) = self.work.pop() {
            if self.errors.error_count() >= MAX_ERRORS {
                break;
            }
            if let Err(d) = self.computation(work) {
                self.errors.push(*d);
                break;
            }
        }
        if self.errors.has_errors() {
            return Err(self.errors);
        }
        Ok(Exported { module: self.m, left_out: self.left_out })
    }

    /// Writes a computation into its block.
    fn computation(&mut self, work: Work) -> Export<()> {
        self.values.clear();
        self.block = work.block;
        let mut parameters = work.parameters.into_iter();
        for (number, id) in self.hlo.computation(work.computation).parameters().iter().enumerate() {
            let leaves = parameters.next().unwrap_or_default();
            match id {
                Some(id) => {
                    self.values.insert(*id, leaves);
                }
                None => return self.refuse(&format!("has no parameter {number}")),
            }
        }
        for id in self.hlo.instructions(work.computation) {
            if self.values.contains_key(&id) {
                continue;
            }
            self.current = id;
            self.last = None;
            self.loc = self.location(self.hlo.instr(id));
            match self.instruction(self.hlo.instr(id)) {
                Ok(leaves) => {
                    self.annotate();
                    self.values.insert(id, leaves);
                }
                // The other instructions are converted, to find what else there is.
                Err(d) => {
                    let again = self.errors.iter().any(|e| e.span == d.span && e.message == d.message);
                    if !again {
                        self.errors.push(*d);
                    }
                    let leaves = self.placeholder()?;
                    self.values.insert(id, leaves);
                }
            }
            if self.m.operation_count() > MAX_OPERATIONS {
                return self.refuse(&format!("is in a program of more than {MAX_OPERATIONS} operations"));
            }
        }
        self.loc = LocId::UNKNOWN;
        let root = self.hlo.root(work.computation);
        self.current = root;
        let results = match work.ending {
            Ending::Region | Ending::Function => self.values[&root].clone(),
            Ending::Interface => self.results(root)?,
        };
        let name = if work.ending == Ending::Region { "stablehlo.return" } else { "func.return" };
        self.op(name, &results, &[], &[])?;
        Ok(())
    }

    /// Values that replace an instruction that has no StableHLO.
    fn placeholder(&mut self) -> Export<Leaves> {
        let shapes: Vec<Shape> = self.hlo.instr(self.current).shape.leaves().into_iter().cloned().collect();
        let mut types = Vec::new();
        for shape in &shapes {
            types.push(self.ty(shape).or_else(|_| self.ty(&Shape::Token))?);
        }
        let op = self.op("hlo.placeholder", &[], &types, &[])?;
        Ok(self.results_of(op))
    }

    // ---- errors

    /// That the current instruction has no StableHLO.
    pub(super) fn refuse<T>(&self, why: &str) -> Export<T> {
        let i = self.hlo.instr(self.current);
        let message = format!("%{} = {}: {why}", i.name, i.opcode.name());
        Err(Box::new(Diagnostic::error(codes::UNSUPPORTED_IN_STABLEHLO, i.span, message)))
    }

    /// That an attribute has no StableHLO.
    pub(super) fn refuse_attribute(&self, i: &Instruction, keys: &[AttrKey]) -> Export<()> {
        match keys.iter().find(|&&k| i.attrs.get(k).is_some()) {
            Some(key) => self.refuse(&format!("StableHLO has no `{}`", key.text())),
            None => Ok(()),
        }
    }

    // ---- operands

    /// The leaves of an instruction.
    pub(super) fn leaves(&self, id: InstrId) -> Leaves {
        self.values[&id].clone()
    }

    /// The leaves of all operands.
    pub(super) fn operands(&self, i: &Instruction) -> Leaves {
        i.operands().iter().flat_map(|o| self.values[o].iter().copied()).collect()
    }

    /// The only leaf of an operand.
    pub(super) fn operand(&self, i: &Instruction, index: usize) -> Export<ValueId> {
        match i.operands().get(index).map(|o| &self.values[o][..]) {
            Some(&[one]) => Ok(one),
            Some(_) => self.refuse("has an operand that is a tuple"),
            None => self.refuse("has too few operands"),
        }
    }

    /// The shape of an operand.
    pub(super) fn operand_shape(&self, i: &Instruction, index: usize) -> &'h Shape {
        &self.hlo.instr(i.operands()[index]).shape
    }

    /// The dimensions of an operand; of what is no array, none.
    pub(super) fn operand_dims(&self, i: &Instruction, index: usize) -> &'h [i64] {
        self.operand_shape(i, index).as_array().map_or(&[], |a| &a.dims[..])
    }

    // ---- operations

    /// Adds an operation with the location of the current instruction; its properties are sorted by name.
    pub(super) fn op(
        &mut self,
        name: &str,
        operands: &[ValueId],
        results: &[TypeId],
        properties: &[(&str, AttrId)],
    ) -> Export<OpId> {
        let name = self.m.name(name);
        let mut new = NewOperation::new(name, Span::NONE);
        new.operands.extend_from_slice(operands);
        new.result_types.extend_from_slice(results);
        let mut sorted = properties.to_vec();
        sorted.sort_by_key(|p| p.0);
        let properties: Vec<NamedAttribute> =
            sorted.iter().map(|p| NamedAttribute { name: self.m.name(p.0), value: p.1 }).collect();
        new.properties = properties.into();
        new.loc = self.loc;
        let op = self.m.add_operation(Some(self.block), new);
        self.last = Some(op);
        Ok(op)
    }

    /// The results of an operation.
    pub(super) fn results_of(&self, op: OpId) -> Leaves {
        self.m.op(op).results.clone()
    }

    /// An operation of one result.
    pub(super) fn one(
        &mut self,
        name: &str,
        operands: &[ValueId],
        result: TypeId,
        properties: &[(&str, AttrId)],
    ) -> Export<ValueId> {
        let op = self.op(name, operands, &[result], properties)?;
        Ok(self.m.op(op).results[0])
    }

    /// An operation whose results are the leaves of the current instruction.
    pub(super) fn whole(
        &mut self,
        name: &str,
        operands: &[ValueId],
        properties: &[(&str, AttrId)],
    ) -> Export<Leaves> {
        let op = self.whole_op(name, operands, properties)?;
        Ok(self.results_of(op))
    }

    /// The same, as the operation.
    pub(super) fn whole_op(
        &mut self,
        name: &str,
        operands: &[ValueId],
        properties: &[(&str, AttrId)],
    ) -> Export<OpId> {
        let types = self.leaf_types(&self.hlo.instr(self.current).shape)?;
        self.op(name, operands, &types, properties)
    }

    /// A region of an operation that is a computation applied to arguments: its parameters are the arguments
    /// of the block.
    pub(super) fn region(&mut self, op: OpId, computation: ComputationId) -> Export<()> {
        let region = self.m.add_region(op);
        let block = self.m.add_block(region, Span::NONE);
        let mut parameters = Vec::new();
        let shapes = self.hlo.program_shape(computation).map(|p| p.parameters).unwrap_or_default();
        for shape in &shapes {
            let mut leaves = Leaves::new();
            for ty in self.leaf_types(shape)? {
                leaves.push(self.m.add_argument(block, ty, LocId::UNKNOWN, Span::NONE));
            }
            parameters.push(leaves);
        }
        self.work.push(Work { computation, block, parameters, ending: Ending::Region });
        Ok(())
    }

    /// The computation that an attribute names.
    pub(super) fn called(&self, i: &Instruction, key: AttrKey) -> Export<ComputationId> {
        match i.attrs.computation(key) {
            Some(computation) => Ok(computation),
            None => self.refuse(&format!("has no `{}`", key.text())),
        }
    }

    // ---- attributes

    /// `array<i64: ...>`
    pub(super) fn ints(&mut self, values: &[i64]) -> AttrId {
        let element = self.int_type(64);
        let data = values.iter().flat_map(|n| n.to_le_bytes()).collect();
        self.m.attribute(Attribute::DenseArray { element, data })
    }

    /// `array<i1: ...>`
    pub(super) fn bools(&mut self, values: &[bool]) -> AttrId {
        let element = self.int_type(1);
        let data = values.iter().map(|&b| u8::from(b)).collect();
        self.m.attribute(Attribute::DenseArray { element, data })
    }

    /// `n : i64`
    pub(super) fn int(&mut self, n: i64) -> AttrId {
        self.int_of(n, 64)
    }

    pub(super) fn int_of(&mut self, n: i64, width: u32) -> AttrId {
        let ty = self.int_type(width);
        self.m.attribute(Attribute::Integer { value: n.into(), ty })
    }

    pub(super) fn bool(&mut self, b: bool) -> AttrId {
        self.m.attribute(Attribute::Bool(b))
    }

    pub(super) fn unit(&mut self) -> AttrId {
        self.m.attribute(Attribute::Unit)
    }

    pub(super) fn string(&mut self, text: &str) -> AttrId {
        self.m.attribute(Attribute::String { text: text.into(), ty: None })
    }

    pub(super) fn symbol(&mut self, name: NameId) -> AttrId {
        self.m.attribute(Attribute::Symbol { root: name, nested: [].into() })
    }

    pub(super) fn array(&mut self, parts: Vec<AttrId>) -> AttrId {
        self.m.attribute(Attribute::Array(parts.into()))
    }

    /// A value of an enumeration of StableHLO.
    pub(super) fn word(&mut self, of: &str, value: &str) -> AttrId {
        let (name, value) = (self.m.name(&format!("stablehlo.{of}")), self.m.name(value));
        self.m.attribute(Attribute::Enum { name, value })
    }

    /// A record of StableHLO; lists that are empty are left out, as its text leaves them out.
    pub(super) fn record(&mut self, of: &str, parts: &[(&str, Part<'_>)]) -> AttrId {
        let mut parameters = Vec::new();
        for (key, part) in parts {
            let value = match *part {
                Part::Ints([]) => continue,
                Part::AllInts(list) | Part::Ints(list) => self.ints(list),
                Part::Int(n) => self.int(n),
                Part::Attribute(a) => a,
            };
            parameters.push(NamedAttribute { name: self.m.name(key), value });
        }
        let name = self.m.name(&format!("stablehlo.{of}"));
        self.m.attribute(Attribute::Dialect { name, parameters: parameters.into() })
    }

    /// A tensor of rank 2 of `i64`, `dense<[[...], ...]>`.
    pub(super) fn rows(&mut self, rows: &[Vec<i64>], columns: usize) -> AttrId {
        let element = self.int_type(64);
        let dims = [rows.len() as i64, columns as i64].into();
        let ty = self.m.ty(Type::Tensor { dims, element, encoding: None });
        let values: Vec<i64> = rows.iter().flatten().copied().collect();
        let splat = values.first().is_some_and(|first| values.iter().all(|n| n == first));
        let kept = if splat { &values[..1] } else { &values };
        let data: Vec<u8> = kept.iter().flat_map(|n| n.to_le_bytes()).collect();
        self.m.attribute(Attribute::Elements { ty, splat, data: data.into() })
    }

    /// Adds a discardable attribute.
    pub(super) fn discardable(&mut self, op: OpId, name: &str, value: AttrId) {
        let name = self.m.name(name);
        let list = &mut self.m.op_mut(op).attributes;
        list.push(NamedAttribute { name, value });
        let mut sorted = std::mem::take(list);
        sorted.to_mut().sort_by(|a, b| self.m.text(a.name).cmp(self.m.text(b.name)));
        self.m.op_mut(op).attributes = sorted;
    }

    /// Frontend attributes as a dictionary.
    pub(super) fn frontend(&mut self, attributes: &FrontendAttributes) -> AttrId {
        let mut list: Vec<NamedAttribute> = Vec::new();
        for (key, _) in &attributes.entries {
            let value = self.string(attributes.get(key).unwrap_or_default());
            let name = self.m.name(key);
            if list.iter().all(|a| a.name != name) {
                list.push(NamedAttribute { name, value });
            }
        }
        list.sort_by(|a, b| self.m.text(a.name).cmp(self.m.text(b.name)));
        self.m.attribute(Attribute::Dictionary(list.into()))
    }

    /// Shardings and frontend attributes of the current instruction, given to the operation that it became;
    /// what else is left out is noted.
    fn annotate(&mut self) {
        use hlo::Opcode as O;
        let i = self.hlo.instr(self.current);
        if !i.control_predecessors.is_empty() {
            self.left_out.insert("control-predecessors");
        }
        // Attributes of functions and of custom calls are stored elsewhere.
        let carried = !matches!(i.opcode, O::Parameter | O::Tuple | O::GetTupleElement | O::Send | O::Recv);
        for (key, value) in i.attrs.iter() {
            match value {
                AttrValue::Sharding(sharding) if key == AttrKey::Sharding => match self.last {
                    Some(op) if carried => {
                        let text = hlo::print::print_sharding(sharding);
                        let value = self.string(&text);
                        self.discardable(op, "mhlo.sharding", value);
                    }
                    // Those of the elements are those of the results.
                    _ if self.current == self.hlo.root(self.hlo.entry()) => {}
                    _ => {
                        self.left_out.insert("shardings of instructions that are no operations");
                    }
                },
                AttrValue::FrontendAttributes(f) => match self.last {
                    Some(op) if carried && !i.attrs.bool(AttrKey::IsComposite) => {
                        let value = self.frontend(f);
                        self.discardable(op, "mhlo.frontend_attributes", value);
                    }
                    _ => {}
                },
                AttrValue::BackendConfig(_) if i.opcode != O::CustomCall => {
                    self.left_out.insert("backend_config");
                }
                AttrValue::OriginalValue(_) => {
                    self.left_out.insert("origin");
                }
                AttrValue::Statistics(_) => {
                    self.left_out.insert("statistics");
                }
                _ => {}
            }
        }
    }

    // ---- locations

    /// Where the user's program has an instruction.
    pub(super) fn location(&mut self, i: &Instruction) -> LocId {
        let Some(metadata) = i.attrs.metadata() else { return LocId::UNKNOWN };
        let number = |n: Option<i64>| n.and_then(|n| u32::try_from(n).ok()).unwrap_or(0);
        let mut loc = LocId::UNKNOWN;
        if let Some(file) = &metadata.source_file {
            let file = self.m.name(file);
            let start = (number(metadata.source_line), number(metadata.source_column));
            let end = metadata
                .source_end_line
                .map(|_| (number(metadata.source_end_line), number(metadata.source_end_column)));
            loc = self.m.location(Location::File { file, start, end });
        }
        if let Some(name) = &metadata.op_name {
            let name = self.m.name(name);
            loc = self.m.location(Location::Name { name, child: loc });
        }
        if let Some(kind) = &metadata.op_type {
            let name = self.m.name(&format!("{kind}:"));
            loc = self.m.location(Location::Name { name, child: loc });
        }
        loc
    }
}

/// A number of one dimension of a window.
pub(super) type PartOfWindow = fn(&hlo::attrs::WindowDim) -> i64;

/// A parameter of a record.
#[derive(Clone, Copy, Debug)]
pub(super) enum Part<'a> {
    /// Left out if it is empty.
    Ints(&'a [i64]),
    /// Never left out.
    AllInts(&'a [i64]),
    Int(i64),
    Attribute(AttrId),
}
