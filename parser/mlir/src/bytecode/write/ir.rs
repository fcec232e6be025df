//! Operations of the tree as those of a file.
//!
//! **No recursion:** a frame for each operation whose regions are being written. Values are numbered when their region begins.
//!
//! Operations of VHLO have operands of its types, others those of builtin types; between them stand conversions
//! (`builtin.unrealized_conversion_cast`). A value is written with VHLO's type; an operation of another dialect converts its
//! operands before it, and its results and the arguments of its regions after they are defined.

use hlo::Span;
use hlo::diag::{Diagnostic, Diagnostics};
use rustc_hash::FxHashMap;

use super::super::container::format;
use super::super::read::properties;
use super::super::section::Section;
use super::emit::Emitter;
use super::entries::{Dialect, Entries, Fallible, OTHER_DIALECTS, Refused, no_form, too_new};
use super::operations::{self, Given};
use crate::ir::{BlockId, LocId, Module, NameId, NamedAttribute, OpId, RegionId, TypeId, ValueId};

const CAST: &str = "builtin.unrealized_conversion_cast";

/// An operation whose regions are being written.
struct Frame {
    op: OpId,
    /// Whether its regions are a section of their own, with numbers of values that start anew.
    isolated: bool,
    /// The next region, block and operation.
    region: usize,
    block: usize,
    operation: usize,
    /// The first number of its regions' values, and the next one.
    base: u32,
    next: u32,
    /// Numbers that nested regions start from: after those of the region at hand.
    after: u32,
}

pub(super) struct IrWriter<'m> {
    m: &'m Module,
    pub(super) entries: Entries<'m>,
    numbers: Vec<u32>,
    /// What is written: of the outermost section, and of sections within.
    buffers: Vec<Emitter>,
    errors: Diagnostics,
    /// Whether operations of a name have operands of builtin types.
    foreign: FxHashMap<NameId, bool>,
}

/// An operation's name and attributes.
struct Head {
    name: u32,
    dictionary: Option<u32>,
    properties: Option<u32>,
    loc: u32,
}

impl<'m> IrWriter<'m> {
    pub(super) fn new(entries: Entries<'m>) -> Self {
        let m = entries.m;
        Self {
            m,
            entries,
            numbers: vec![u32::MAX; m.value_count()],
            buffers: vec![Emitter::default()],
            errors: Diagnostics::new(),
            foreign: FxHashMap::default(),
        }
    }

    /// The section of operations.
    pub(super) fn write(mut self, top: OpId) -> Result<(Entries<'m>, Vec<u8>), Diagnostics> {
        self.out().flagged(1, false);
        let mut frames = Vec::new();
        self.operation(&mut frames, top);
        while let Some(frame) = frames.last_mut() {
            let regions = &self.m.op(frame.op).regions;
            let Some(&region) = regions.get(frame.region) else {
                let (op, isolated) = (frame.op, frame.isolated);
                frames.pop();
                if isolated && self.entries.tables.format() >= format::REGION_SECTIONS {
                    self.close_section();
                }
                if self.is_foreign(op) {
                    self.cast_results(op);
                }
                continue;
            };
            let blocks = &self.m.region(region).blocks;
            match blocks.get(frame.block) {
                _ if frame.block == 0 && frame.operation == 0 && frame.after == u32::MAX => {
                    let mut at = frames.pop().expect("invariant: there is one");
                    self.region(&mut at, region);
                    frames.push(at);
                }
                None => {
                    frame.region += 1;
                    (frame.block, frame.operation, frame.after) = (0, 0, u32::MAX);
                }
                Some(&block) => match self.m.block(block).operations.get(frame.operation) {
                    Some(&op) => {
                        frame.operation += 1;
                        self.operation(&mut frames, op);
                    }
                    None => {
                        frame.block += 1;
                        frame.operation = 0;
                        if let Some(&next) = blocks.get(frame.block) {
                            let mut at = frames.pop().expect("invariant: there is one");
                            self.block(&mut at, next);
                            frames.push(at);
                        }
                    }
                },
            }
        }
        if self.errors.has_errors() {
            return Err(self.errors);
        }
        let ir = self.buffers.pop().map(|out| out.bytes).unwrap_or_default();
        Ok((self.entries, ir))
    }

    fn out(&mut self) -> &mut Emitter {
        self.buffers.last_mut().expect("invariant: the outermost buffer is there to the end")
    }

    fn close_section(&mut self) {
        let inner = self.buffers.pop().unwrap_or_default();
        self.out().section(Section::Ir, &inner.bytes);
    }

    #[cold]
    fn refuse(&mut self, op: OpId, refused: Refused) {
        let span: Span = self.m.op(op).span;
        let path = self.m.path(op);
        self.errors.push(Diagnostic::error(refused.code, span, refused.message).note(format!("at {path}")));
    }

    /// Whether an operation has operands of builtin types.
    fn is_foreign(&mut self, op: OpId) -> bool {
        let m = self.m;
        *self.foreign.entry(m.op(op).name).or_insert_with(|| {
            operations::base_name(m.op_name(op)).is_none() && m.op_name(op) != "builtin.module"
        })
    }

    // ---- numbers

    /// Begins a region: its values are numbered, and how many blocks and values it has is written.
    fn region(&mut self, frame: &mut Frame, region: RegionId) {
        let blocks = &self.m.region(region).blocks;
        self.out().varint(blocks.len() as u64);
        frame.next = frame.base;
        if blocks.is_empty() {
            frame.after = frame.base;
            return;
        }
        let foreign_region = self.is_foreign(frame.op);
        let mut next = frame.base;
        for &block in blocks {
            let block = self.m.block(block);
            for &argument in &block.arguments {
                self.numbers[argument.index()] = next;
                next += 1;
            }
            if foreign_region {
                for &argument in &block.arguments {
                    self.numbers[argument.index()] = next;
                    next += 1;
                }
            }
            for &op in &block.operations {
                let this = self.m.op(op);
                let foreign = self.is_foreign(op);
                if foreign {
                    next += this.operands.len() as u32 + this.results.len() as u32;
                }
                for &result in &this.results {
                    self.numbers[result.index()] = next;
                    next += 1;
                }
            }
        }
        frame.after = next;
        let values = next - frame.base;
        self.out().varint(values.into());
        let first = blocks[0];
        self.block(frame, first);
    }

    fn block(&mut self, frame: &mut Frame, block: BlockId) {
        let m = self.m;
        let block = m.block(block);
        let foreign = self.is_foreign(frame.op);
        let mut operations = block.operations.len();
        for &op in &block.operations {
            if self.is_foreign(op) {
                operations += m.op(op).operands.len() + m.op(op).results.len();
            }
        }
        if foreign {
            operations += block.arguments.len();
        }
        self.out().flagged(operations as u64, !block.arguments.is_empty());
        if block.arguments.is_empty() {
            return;
        }
        let version = self.entries.tables.format();
        self.out().varint(block.arguments.len() as u64);
        let first = frame.next;
        let dialect = if foreign { Dialect::Builtin } else { Dialect::Vhlo };
        for &argument in &block.arguments {
            let value = m.value(argument);
            let ty = self.type_of(frame.op, dialect, value.ty);
            let loc = self.entries.location(value.loc);
            let known = value.loc != LocId::UNKNOWN;
            let out = self.out();
            match version {
                format::UNKNOWN_ARGUMENT_LOCATIONS.. => {
                    out.flagged(ty.into(), known);
                    if known {
                        out.varint(loc.into());
                    }
                }
                _ => {
                    out.varint(ty.into());
                    out.varint(loc.into());
                }
            }
            frame.next += 1;
        }
        if version >= format::USE_ORDERS {
            self.out().byte(0);
        }
        if foreign {
            for (at, &argument) in block.arguments.iter().enumerate() {
                let ty = m.value_type(argument);
                self.cast(frame.op, first + at as u32, Dialect::Vhlo, ty);
                frame.next += 1;
            }
        }
    }

    /// The index of a type, 0 if it cannot be written, which is reported.
    fn type_of(&mut self, op: OpId, dialect: Dialect, ty: TypeId) -> u32 {
        match self.entries.ty(dialect, ty) {
            Ok(index) => index,
            Err(refused) => {
                self.refuse(op, refused);
                0
            }
        }
    }

    /// A conversion of a value to its type in the form of a dialect.
    fn cast(&mut self, op: OpId, value: u32, dialect: Dialect, ty: TypeId) {
        let ty = self.type_of(op, dialect, ty);
        let name = self.entries.tables.op_name(CAST);
        let loc = self.entries.location(self.m.op(op).loc);
        let out = self.out();
        out.varint(name.into());
        out.byte(0b110);
        out.varint(loc.into());
        out.varint(1);
        out.varint(ty.into());
        out.varint(1);
        out.varint(value.into());
    }

    /// Conversions of the results of an operation of another dialect, whose own numbers are before those of the converted ones.
    fn cast_results(&mut self, op: OpId) {
        let m = self.m;
        let results = &m.op(op).results;
        for &value in results {
            let own = self.numbers[value.index()] - results.len() as u32;
            self.cast(op, own, Dialect::Vhlo, m.value_type(value));
        }
    }

    // ---- operations

    fn operation(&mut self, frames: &mut Vec<Frame>, op: OpId) {
        let m = self.m;
        let this = m.op(op);
        let head = match self.head(op) {
            Ok(head) => head,
            Err(refused) => {
                self.refuse(op, refused);
                // What follows is written in vain, but all that cannot be is found.
                Head { name: 0, dictionary: None, properties: None, loc: 0 }
            }
        };
        let foreign = self.is_foreign(op);
        let number = |numbers: &[u32], value: ValueId| numbers[value.index()];
        let mut operands: Vec<u32> = this.operands.iter().map(|&v| number(&self.numbers, v)).collect();
        if foreign {
            for (operand, &value) in operands.iter_mut().zip(&this.operands) {
                self.cast(op, *operand, Dialect::Builtin, m.value_type(value));
                if let Some(frame) = frames.last_mut() {
                    *operand = frame.next;
                    frame.next += 1;
                }
            }
        }
        let dialect = if foreign { Dialect::Builtin } else { Dialect::Vhlo };
        let results: Vec<u32> =
            this.results.iter().map(|&v| self.type_of(op, dialect, m.value_type(v))).collect();
        let successors: Vec<u32> = this.successors.iter().map(|&b| self.block_number(op, b)).collect();
        let isolated = matches!(
            m.op_name(op),
            "builtin.module" | "func.func" | "sdy.manual_computation" | "sdy.named_computation"
        );
        let regions = this.regions.len();

        let mask = u8::from(head.dictionary.is_some())
            | u8::from(!results.is_empty()) << 1
            | u8::from(!operands.is_empty()) << 2
            | u8::from(!successors.is_empty()) << 3
            | u8::from(regions > 0) << 4
            | u8::from(head.properties.is_some()) << 6;
        let out = self.out();
        out.varint(head.name.into());
        out.byte(mask);
        out.varint(head.loc.into());
        head.dictionary.into_iter().chain(head.properties).for_each(|index| out.varint(index.into()));
        for list in [&results, &operands, &successors] {
            if !list.is_empty() {
                out.varint(list.len() as u64);
                list.iter().for_each(|&index| out.varint(index.into()));
            }
        }
        if regions > 0 {
            out.flagged(regions as u64, isolated);
        }
        if let Some(frame) = frames.last_mut() {
            frame.next += results.len() as u32 * if foreign { 2 } else { 1 };
        }
        if regions == 0 {
            if foreign {
                self.cast_results(op);
            }
            return;
        }
        if isolated && self.entries.tables.format() >= format::REGION_SECTIONS {
            self.buffers.push(Emitter::default());
        }
        let base = match frames.last() {
            Some(frame) if !isolated => frame.after,
            _ => 0,
        };
        frames.push(Frame {
            op,
            isolated,
            region: 0,
            block: 0,
            operation: 0,
            base,
            next: base,
            after: u32::MAX,
        });
    }

    fn block_number(&self, op: OpId, block: BlockId) -> u32 {
        let region = self.m.op(op).parent.map(|b| self.m.block(b).parent);
        let blocks = region.map_or(&[][..], |r| &self.m.region(r).blocks);
        blocks.iter().position(|&b| b == block).unwrap_or(0) as u32
    }

    fn head(&mut self, op: OpId) -> Fallible<Head> {
        let m = self.m;
        let name = m.op_name(op);
        let loc = self.entries.location(m.op(op).loc);
        let mut given = Given::new(m, op);
        let with_properties = self.entries.tables.format() >= format::PROPERTIES;
        if let Some(base) = operations::base_name(name) {
            let operation = operations::revision(base, self.entries.target)?;
            let values = operations::attributes(&mut self.entries, &mut given, operation)?;
            let mut pairs = Vec::new();
            for NamedAttribute { name, value } in given.rest() {
                pairs.push((m.text(name), self.entries.attribute(Dialect::Vhlo, value)?));
            }
            let mut properties = None;
            if with_properties && !values.is_empty() {
                let mut bytes = Emitter::default();
                values.iter().for_each(|&v| bytes.varint(v.into()));
                properties = Some(self.entries.tables.properties(bytes.bytes));
            } else {
                pairs.extend(operation.attributes.iter().copied().zip(values));
            }
            let name =
                self.entries.tables.op_name(&format!("vhlo.{}_v{}", operation.name, operation.revision));
            let dictionary = (!pairs.is_empty()).then(|| self.entries.builtin_dictionary(&pairs));
            return Ok(Head { name, dictionary, properties, loc });
        }
        let Some(listed) = properties(name) else {
            return match name {
                "sdy.return" if self.entries.target >= OTHER_DIALECTS => self.plain_head(name, &given, loc),
                _ => no_form(format!("{name} has no form in portable artifacts")),
            };
        };
        if name != "builtin.module" && self.entries.target < OTHER_DIALECTS {
            return too_new(
                format!("{name}, an operation of another dialect,"),
                OTHER_DIALECTS,
                self.entries.target,
            );
        }
        let mut pairs = Vec::new();
        let mut bytes = Emitter::default();
        for &(key, optional) in listed {
            let value = match given.take(key) {
                Some(value) => Some(self.entries.attribute(Dialect::Builtin, value)?),
                None if optional => None,
                None => return no_form(format!("{name} lacks {key}")),
            };
            match optional {
                true => bytes.flagged(value.unwrap_or(0).into(), value.is_some()),
                false => bytes.varint(value.unwrap_or(0).into()),
            }
            pairs.extend(value.map(|value| (key, value)));
        }
        let properties = with_properties.then(|| self.entries.tables.properties(bytes.bytes));
        if with_properties {
            pairs.clear();
        }
        for NamedAttribute { name, value } in given.rest() {
            pairs.push((m.text(name), self.entries.attribute(Dialect::Builtin, value)?));
        }
        let name = self.entries.tables.op_name(name);
        let dictionary = (!pairs.is_empty()).then(|| self.entries.builtin_dictionary(&pairs));
        Ok(Head { name, dictionary, properties, loc })
    }

    /// An operation without properties.
    fn plain_head(&mut self, name: &str, given: &Given<'_>, loc: u32) -> Fallible<Head> {
        let mut pairs = Vec::new();
        for NamedAttribute { name, value } in given.rest() {
            pairs.push((self.m.text(name), self.entries.attribute(Dialect::Builtin, value)?));
        }
        let name = self.entries.tables.op_name(name);
        let dictionary = (!pairs.is_empty()).then(|| self.entries.builtin_dictionary(&pairs));
        Ok(Head { name, dictionary, properties: None, loc })
    }
}
