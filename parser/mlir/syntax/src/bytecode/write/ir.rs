//! Operations of the tree as those of a file.
//!
//! **No recursion:** a frame for each operation whose regions are being written. Values are numbered when
//! their region begins.
//!
//! Operations of VHLO have operands of its types, others those of builtin types; between them stand
//! conversions (`builtin.unrealized_conversion_cast`). What an operation of another dialect defines is
//! converted after it, if VHLO's use it; its operands are converted before it, unless another such operation
//! defines them.

use hlo::Span;
use hlo::diag::codes::bytecode as codes;
use hlo::diag::{Diagnostic, Diagnostics};
use rustc_hash::FxHashMap;

use super::super::container::format;
use super::super::read::properties;
use super::super::section::Section;
use super::super::version::Version;
use super::emit::Emitter;
use super::entries::{Dialect, Entries, Fallible, OTHER_DIALECTS, Refused, no_form, too_new};
use super::operations::{self, Given};
use crate::ir::{BlockId, LocId, Module, NameId, NamedAttribute, OpId, RegionId, TypeId, ValueDef, ValueId};

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
    /// The isolated operation that values of its regions are in.
    scope: u32,
    /// Numbers that nested regions start from: after those of the region at hand.
    after: u32,
}

pub(super) struct IrWriter<'m> {
    m: &'m Module,
    pub(super) entries: Entries<'m>,
    /// The number of each value with the type that its definition gives it.
    numbers: Vec<u32>,
    /// The isolated operation that each value is in, by the order in which they are begun.
    scopes: Vec<u32>,
    scope_count: u32,
    /// The numbers of conversions to VHLO's types, of values that have one.
    converted: FxHashMap<ValueId, u32>,
    /// What is written: of the outermost section, and of sections within.
    buffers: Vec<Emitter>,
    errors: Diagnostics,
    /// Names of operations of VHLO without attributes, which need no more than their location.
    plain: FxHashMap<NameId, u32>,
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
            scopes: vec![0; m.value_count()],
            scope_count: 0,
            converted: FxHashMap::default(),
            buffers: vec![Emitter::default()],
            errors: Diagnostics::new(),
            plain: FxHashMap::default(),
            foreign: FxHashMap::default(),
        }
    }

    /// The section of operations.
    pub(super) fn write(mut self, top: OpId) -> Result<(Entries<'m>, Vec<u8>), Diagnostics> {
        self.note_conversions(top);
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
                self.convert(op, &self.m.op(op).results);
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

    /// Whether an operation of another dialect than VHLO defines a value.
    fn is_foreign_value(&mut self, value: ValueId) -> bool {
        let m = self.m;
        match m.value(value).def {
            ValueDef::Result { op, .. } => self.is_foreign(op),
            ValueDef::Argument { block, .. } => {
                let region = m.block(block).parent;
                self.is_foreign(m.region(region).parent)
            }
        }
    }

    /// Values that are defined with builtin types and used with VHLO's get a conversion; its number comes
    /// later.
    fn note_conversions(&mut self, top: OpId) {
        let m = self.m;
        let mut operations = vec![top];
        while let Some(op) = operations.pop() {
            let this = m.op(op);
            if !self.is_foreign(op) {
                for &value in &this.operands {
                    if self.is_foreign_value(value) {
                        self.converted.insert(value, u32::MAX);
                    }
                }
            }
            let blocks = this.regions.iter().flat_map(|&r| &m.region(r).blocks);
            operations.extend(blocks.flat_map(|&b| &m.block(b).operations));
        }
    }

    /// How many operands of an operation of another dialect are converted before it.
    fn operand_conversions(&mut self, op: OpId) -> u32 {
        let m = self.m;
        m.op(op).operands.iter().filter(|&&value| !self.is_foreign_value(value)).count() as u32
    }

    /// How many of these values are converted after they are defined.
    fn conversions(&self, values: &[ValueId]) -> u32 {
        values.iter().filter(|value| self.converted.contains_key(value)).count() as u32
    }

    // ---- numbers

    /// Assigns numbers to values that are defined together, and to their conversions after them.
    fn number(&mut self, next: &mut u32, scope: u32, values: &[ValueId]) {
        for &value in values {
            self.scopes[value.index()] = scope;
            self.numbers[value.index()] = *next;
            *next += 1;
        }
        for value in values {
            if let Some(number) = self.converted.get_mut(value) {
                *number = *next;
                *next += 1;
            }
        }
    }

    /// Begins a region: its values are numbered, and how many blocks and values it has is written.
    fn region(&mut self, frame: &mut Frame, region: RegionId) {
        let blocks = &self.m.region(region).blocks;
        self.out().varint(blocks.len() as u64);
        frame.next = frame.base;
        if blocks.is_empty() {
            frame.after = frame.base;
            return;
        }
        let m = self.m;
        let mut next = frame.base;
        for &block in blocks {
            let block = m.block(block);
            self.number(&mut next, frame.scope, &block.arguments);
            for &op in &block.operations {
                if self.is_foreign(op) {
                    next += self.operand_conversions(op);
                }
                self.number(&mut next, frame.scope, &m.op(op).results);
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
        let mut operations = block.operations.len() + self.conversions(&block.arguments) as usize;
        for &op in &block.operations {
            if self.is_foreign(op) {
                operations += (self.operand_conversions(op) + self.conversions(&m.op(op).results)) as usize;
            }
        }
        self.out().flagged(operations as u64, !block.arguments.is_empty());
        if block.arguments.is_empty() {
            return;
        }
        let version = self.entries.tables.format();
        self.out().varint(block.arguments.len() as u64);
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
        self.convert(frame.op, &block.arguments);
        frame.next += self.conversions(&block.arguments);
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

    /// Conversions of values that were just defined, where there are any.
    fn convert(&mut self, op: OpId, values: &[ValueId]) {
        for &value in values {
            if self.converted.contains_key(&value) {
                self.cast(op, self.numbers[value.index()], Dialect::Vhlo, self.m.value_type(value));
            }
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
        let mut operands: Vec<u32> = Vec::with_capacity(this.operands.len());
        let scope = frames.last().map(|frame| frame.scope);
        for &value in &this.operands {
            if self.numbers[value.index()] == u32::MAX || Some(self.scopes[value.index()]) != scope {
                let message =
                    "an operand is defined outside of the function or module that the operation is in"
                        .to_owned();
                self.refuse(op, Refused { code: codes::NO_PORTABLE_FORM, message });
            }
            let own = self.numbers[value.index()];
            operands.push(match foreign {
                true if !self.is_foreign_value(value) => {
                    self.cast(op, own, Dialect::Builtin, m.value_type(value));
                    let converted = frames.last().map_or(0, |frame| frame.next);
                    frames.last_mut().into_iter().for_each(|frame| frame.next += 1);
                    converted
                }
                true => own,
                false => self.converted.get(&value).copied().unwrap_or(own),
            });
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
            frame.next += results.len() as u32 + self.conversions(&this.results);
        }
        if regions == 0 {
            self.convert(op, &this.results);
            return;
        }
        if isolated && self.entries.tables.format() >= format::REGION_SECTIONS {
            self.buffers.push(Emitter::default());
        }
        let (base, scope) = match frames.last() {
            Some(frame) if !isolated => (frame.after, frame.scope),
            _ => {
                self.scope_count += 1;
                (0, self.scope_count)
            }
        };
        frames.push(Frame {
            op,
            isolated,
            region: 0,
            block: 0,
            operation: 0,
            base,
            next: base,
            scope,
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
        let this = m.op(op);
        let loc = self.entries.location(this.loc);
        let is_plain = this.properties.is_empty() && this.attributes.is_empty();
        if is_plain && let Some(&name) = self.plain.get(&this.name) {
            return Ok(Head { name, dictionary: None, properties: None, loc });
        }
        let name = m.op_name(op);
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
            return no_form(format!("{name} has no form in portable artifacts"));
        };
        // CHLO has no versions; readers that have this property came with 1.18.0.
        let listed = match listed {
            [("is_stable", true), old @ ..] if self.entries.target < Version::new(1, 18, 0) => old,
            listed => listed,
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
        let properties =
            (with_properties && !listed.is_empty()).then(|| self.entries.tables.properties(bytes.bytes));
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
}
