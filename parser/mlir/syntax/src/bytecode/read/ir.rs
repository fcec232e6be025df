//! The operations of a file, into the tree.
//!
//! **No recursion:** a frame for each operation whose regions are being read. **Bounded:** values and blocks
//! that a region announces are counted against the bytes of the section, whatever the nesting.
//!
//! Values have numbers: those of a region follow those of the regions around it, up to an operation that is
//! isolated, where they start anew. A value may be used before it is defined; such uses are filled in when
//! the region ends.

use hlo::Span;
use hlo::diag::Diagnostic;
use hlo::diag::codes::bytecode as codes;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::super::container::{Container, format};
use super::super::cursor::{Cursor, Fallible};
use super::super::section::Section;
use super::entries::{Entries, Slot};
use super::operations::{self, Kind, Known, Name, Names};
use crate::ir::{
    AttrId, Attribute, Attributes, BlockId, LocId, NameId, NamedAttribute, NewOperation, OpId, RegionId,
    ValueId,
};

/// What an operation has, as bits of its mask.
mod has {
    pub(super) const ATTRIBUTES: u8 = 1;
    pub(super) const RESULTS: u8 = 1 << 1;
    pub(super) const OPERANDS: u8 = 1 << 2;
    pub(super) const SUCCESSORS: u8 = 1 << 3;
    pub(super) const REGIONS: u8 = 1 << 4;
    pub(super) const USE_ORDERS: u8 = 1 << 5;
    pub(super) const PROPERTIES: u8 = 1 << 6;
}

/// An operation whose regions are being read.
struct Frame<'a> {
    op: OpId,
    /// Where reading stands: of an isolated operation in its section, else where the frame below left off.
    cursor: Cursor<'a>,
    in_section: bool,
    regions_left: u64,
    /// The blocks of the region at hand, which follow each other in the tree.
    first_block: Option<BlockId>,
    blocks: usize,
    block_at: usize,
    operations_left: u64,
    /// Where the values of the region start, and which is defined next.
    values_start: usize,
    next_value: usize,
    /// Where the numbers of values start: of the innermost isolated operation.
    scope_start: usize,
}

/// A use of a value that is defined later.
struct Pending {
    /// The index of the value among those that are alive.
    value: usize,
    op: OpId,
    operand: u32,
    span: Span,
}

pub(super) struct IrReader<'a, 'c> {
    container: &'c Container<'a>,
    pub(super) entries: Entries<'a, 'c>,
    names: Vec<Name>,
    known: Names,
    /// Live values, by their number.
    values: Vec<Option<ValueId>>,
    pending: Vec<Pending>,
    /// Blocks that were announced and not begun.
    blocks_ahead: usize,
    /// Attributes of operations of VHLO by their name and properties (or dictionary), which many share.
    converted: FxHashMap<(u32, u32), (Attributes, Attributes)>,
    inner_return: NameId,
}

impl<'a, 'c> IrReader<'a, 'c> {
    pub(super) fn new(container: &'c Container<'a>) -> Fallible<Self> {
        let mut entries = Entries::new(container);
        let names = operations::names(container, &mut entries.module)?;
        let known = Names {
            function_return: entries.module.name("func.return"),
            function: entries.module.name("func.func"),
        };
        let inner_return = entries.module.name("stablehlo.return");
        Ok(Self {
            container,
            entries,
            names,
            known,
            values: Vec::new(),
            pending: Vec::new(),
            blocks_ahead: 0,
            converted: FxHashMap::default(),
            inner_return,
        })
    }

    /// Reads all operations. The outermost one is a module.
    pub(super) fn read(&mut self) -> Fallible<()> {
        let mut cursor = self.container.ir;
        let start = cursor.offset();
        let (operations, has_arguments) = cursor.flagged()?;
        if operations != 1 || has_arguments {
            let message = format!("one module is expected, not {operations} operations");
            return Err(cursor.error(codes::BAD_OPERATION, start, message));
        }
        let mut frames: Vec<Frame<'a>> = Vec::new();
        let (top, regions) = self.operation(&mut cursor, None, None)?;
        if self.entries.module.op_name(top) != "builtin.module" {
            let message =
                format!("the outermost operation is a module, not {}", self.entries.module.op_name(top));
            return Err(cursor.error_at(codes::BAD_OPERATION, self.entries.module.op(top).span, message));
        }
        self.entries.module.set_top(top);
        self.enter(&mut frames, &mut cursor, top, regions)?;
        while let Some(frame) = frames.last_mut() {
            if frame.operations_left > 0 {
                frame.operations_left -= 1;
                let block =
                    frame.first_block.map(|first| BlockId::from_index(first.index() + frame.block_at - 1));
                let mut at = frame.cursor;
                let (op, regions) = self.operation(&mut at, block, Some(frame))?;
                frame.cursor = at;
                if regions.count > 0 {
                    let mut at = frame.cursor;
                    self.enter(&mut frames, &mut at, op, regions)?;
                }
            } else if frame.block_at < frame.blocks {
                self.block(frame)?;
            } else if frame.regions_left > 0 {
                frame.regions_left -= 1;
                self.region(&mut frames)?;
            } else {
                self.leave(&mut frames, &mut cursor)?;
            }
        }
        cursor.finish(codes::BAD_OPERATION, "the module")
    }

    /// Begins the regions of an operation, at a cursor of the frame below (or of the section, if there is
    /// none).
    fn enter(
        &mut self,
        frames: &mut Vec<Frame<'a>>,
        at: &mut Cursor<'a>,
        op: OpId,
        regions: Regions,
    ) -> Fallible<()> {
        let in_section = regions.isolated && self.container.version >= format::REGION_SECTIONS;
        let mut inner = *at;
        if in_section && regions.count > 0 {
            inner = region_section(at)?;
            if let Some(below) = frames.last_mut() {
                below.cursor = *at;
            }
        }
        let scope_start = match frames.last() {
            Some(below) if !regions.isolated => below.scope_start,
            _ => self.values.len(),
        };
        frames.push(Frame {
            op,
            cursor: inner,
            in_section,
            regions_left: regions.count,
            first_block: None,
            blocks: 0,
            block_at: 0,
            operations_left: 0,
            values_start: self.values.len(),
            next_value: self.values.len(),
            scope_start,
        });
        Ok(())
    }

    /// Ends the regions of the innermost operation.
    fn leave(&mut self, frames: &mut Vec<Frame<'a>>, outer: &mut Cursor<'a>) -> Fallible<()> {
        let Some(mut frame) = frames.pop() else { return Ok(()) };
        self.end_region(&mut frame)?;
        if frame.in_section {
            return frame.cursor.finish(codes::BAD_OPERATION, "the regions of an operation");
        }
        match frames.last_mut() {
            Some(below) => below.cursor = frame.cursor,
            None => *outer = frame.cursor,
        }
        Ok(())
    }

    /// Drops the values of the region at hand, after filling in those that were used before.
    fn end_region(&mut self, frame: &mut Frame<'a>) -> Fallible<()> {
        let mut kept = 0;
        for at in 0..self.pending.len() {
            let Pending { value, op, operand, span } = self.pending[at];
            if value < frame.values_start {
                self.pending.swap(kept, at);
                kept += 1;
                continue;
            }
            match self.values[value] {
                Some(id) => self.entries.module.op_mut(op).operands[operand as usize] = id,
                None => {
                    let number = value - frame.scope_start;
                    let message = format!("value {number} is used, and nothing defines it");
                    return Err(self.container.ir.error_at(codes::UNDEFINED_VALUE, span, message));
                }
            }
        }
        self.pending.truncate(kept);
        self.values.truncate(frame.values_start);
        frame.next_value = frame.values_start;
        Ok(())
    }

    /// Begins a region of the innermost operation.
    fn region(&mut self, frames: &mut [Frame<'a>]) -> Fallible<()> {
        let (frame, below) = match frames {
            [below @ .., frame] => (frame, below),
            [] => return Ok(()),
        };
        self.end_region(frame)?;
        let region = self.entries.module.add_region(frame.op);
        // Some writers make a section of each region.
        if frame.in_section
            && frame.cursor.is_empty()
            && let Some(below) = below.last_mut()
        {
            frame.cursor = region_section(&mut below.cursor)?;
        }
        let start = frame.cursor.offset();
        let blocks = frame.cursor.list("blocks")?;
        frame.blocks = 0;
        frame.block_at = 0;
        frame.first_block = None;
        if blocks == 0 {
            return Ok(());
        }
        let values = frame.cursor.list("values")?;
        self.blocks_ahead += blocks;
        // Each block and each value takes a byte of the section.
        let remaining = self.container.ir.remaining();
        if self.blocks_ahead > remaining || self.values.len() + values > remaining {
            let message =
                format!("{blocks} blocks and {values} values cannot follow, with those around them");
            return Err(frame.cursor.error(codes::ENDS_EARLY, start, message));
        }
        self.values.resize(self.values.len() + values, None);
        frame.blocks = blocks;
        frame.first_block = Some(self.add_blocks(region, blocks, start));
        Ok(())
    }

    fn add_blocks(&mut self, region: RegionId, count: usize, at: usize) -> BlockId {
        let span = Span::new(at, at);
        let first = self.entries.module.add_block(region, span);
        for _ in 1..count {
            self.entries.module.add_block(region, span);
        }
        first
    }

    /// Begins the next block: how many operations it has, and its arguments.
    fn block(&mut self, frame: &mut Frame<'a>) -> Fallible<()> {
        let first = frame.first_block.expect("invariant: a region that has blocks has a first one");
        let block = BlockId::from_index(first.index() + frame.block_at);
        frame.block_at += 1;
        self.blocks_ahead -= 1;
        let start = frame.cursor.offset();
        let (operations, has_arguments) = frame.cursor.flagged()?;
        frame.cursor.count(operations, start, "operations")?;
        frame.operations_left = operations;
        // No operation of a portable artifact takes fewer bytes, so that this is never more than follows.
        const MIN_OPERATION_BYTES: usize = 6;
        let most = frame.cursor.remaining() / MIN_OPERATION_BYTES;
        let ahead = (operations as usize).min(most);
        if ahead > 1 {
            self.entries.module.reserve(block, ahead, ahead);
        }
        if has_arguments {
            self.arguments(frame, block)?;
        }
        self.entries.module.block_mut(block).span = frame.cursor.span_from(start);
        Ok(())
    }

    fn arguments(&mut self, frame: &mut Frame<'a>, block: BlockId) -> Fallible<()> {
        let version = self.container.version;
        let count = frame.cursor.list("arguments")?;
        let types = self.container.types.len();
        for _ in 0..count {
            let start = frame.cursor.offset();
            let (ty, has_location) = match version {
                format::UNKNOWN_ARGUMENT_LOCATIONS.. => frame.cursor.flagged_index(types, "type")?,
                _ => (frame.cursor.index(types, "type")?, true),
            };
            let ty = self.entries.resolve_type(ty)?;
            let loc = if has_location { self.location(&mut frame.cursor)? } else { LocId::UNKNOWN };
            let value = self.entries.module.add_argument(block, ty, loc, frame.cursor.span_from(start));
            self.define(frame, value, start)?;
        }
        if version >= format::USE_ORDERS && frame.cursor.byte()? != 0 {
            use_orders(&mut frame.cursor, count)?;
        }
        Ok(())
    }

    /// Assigns the next number of the region to a value.
    #[inline]
    fn define(&mut self, frame: &mut Frame<'a>, value: ValueId, start: usize) -> Fallible<()> {
        match self.values.get_mut(frame.next_value) {
            Some(slot) => {
                *slot = Some(value);
                frame.next_value += 1;
                Ok(())
            }
            None => {
                let message = "the region defines more values than it announces";
                Err(frame.cursor.error(codes::BAD_OPERATION, start, message))
            }
        }
    }

    fn location(&mut self, cursor: &mut Cursor<'a>) -> Fallible<LocId> {
        let start = cursor.offset();
        let index = cursor.index(self.container.attributes.len(), "attribute")?;
        match self.entries.resolve_location(index)? {
            Slot::Loc(loc) => Ok(loc),
            _ => Err(cursor.error(codes::BAD_OPERATION, start, format!("attribute {index} is no location"))),
        }
    }

    /// An operation without its regions, at the end of a block.
    fn operation(
        &mut self,
        cursor: &mut Cursor<'a>,
        block: Option<BlockId>,
        frame: Option<&mut Frame<'a>>,
    ) -> Fallible<(OpId, Regions)> {
        let start = cursor.offset();
        let name_at = cursor.index(self.names.len(), "name of an operation")?;
        let mask_at = cursor.offset();
        let mask = cursor.byte()?;
        if mask & 0x80 != 0 {
            let message = format!("the mask 0x{mask:02x} says that the operation has something unknown");
            return Err(cursor.error(codes::BAD_OPERATION, mask_at, message));
        }
        let loc = self.location(cursor)?;
        let mut new = NewOperation::new(self.names[name_at].id, Span::NONE);
        new.loc = loc;

        let mut dictionary = None;
        if mask & has::ATTRIBUTES != 0 {
            let at = cursor.offset();
            let index = cursor.index(self.container.attributes.len(), "attribute")?;
            dictionary = Some((index, at));
        }
        let mut properties = None;
        if mask & has::PROPERTIES != 0 {
            let at = cursor.offset();
            let index = cursor.index(self.container.properties.len(), "properties")?;
            properties = Some((index, at));
        }
        self.attributes(cursor, name_at, dictionary, properties, &mut new)?;

        if mask & has::RESULTS != 0 {
            for _ in 0..cursor.list("results")? {
                let ty = cursor.index(self.container.types.len(), "type")?;
                new.result_types.push(self.entries.resolve_type(ty)?);
            }
        }
        let mut later: SmallVec<[(u32, usize, Span); 2]> = SmallVec::new();
        if mask & has::OPERANDS != 0 {
            let scope = frame.as_ref().map_or(self.values.len(), |f| f.scope_start);
            for operand in 0..cursor.list("operands")? {
                let at = cursor.offset();
                let number = cursor.index(self.values.len() - scope, "value")?;
                let value = match self.values[scope + number] {
                    Some(value) => value,
                    None => {
                        later.push((operand as u32, scope + number, cursor.span_from(at)));
                        // Filled in when the region ends.
                        ValueId::from_index(0)
                    }
                };
                new.operands.push(value);
            }
        }
        if mask & has::SUCCESSORS != 0 {
            let blocks = frame.as_ref().map_or(0, |f| f.blocks);
            let mut successors = Vec::new();
            for _ in 0..cursor.list("successors")? {
                let index = cursor.index(blocks, "block")?;
                let first = frame.as_ref().and_then(|f| f.first_block);
                let first = first.expect("invariant: a region that has blocks has a first one");
                successors.push(BlockId::from_index(first.index() + index));
            }
            new.successors = successors.into();
        }
        if mask & has::USE_ORDERS != 0 {
            if self.container.version < format::USE_ORDERS || new.result_types.is_empty() {
                let message = "orders of uses are given, but the operation has no results, or the version no such orders";
                return Err(cursor.error(codes::BAD_OPERATION, mask_at, message));
            }
            use_orders(cursor, new.result_types.len())?;
        }
        let mut regions = Regions { count: 0, isolated: false };
        if mask & has::REGIONS != 0 {
            let at = cursor.offset();
            let (count, isolated) = cursor.flagged()?;
            cursor.count(count, at, "regions")?;
            regions = Regions { count, isolated };
        }
        new.span = cursor.span_from(start);

        let kind = &self.names[name_at].kind;
        if matches!(kind, Kind::Cast)
            && let ([value], [ty], []) = (&*new.operands, &*new.result_types, &*later)
            && self.entries.module.value_type(*value) == *ty
            && let Some(frame) = frame
        {
            // The types are one in the tree, and so are the values.
            let value = *value;
            self.define(frame, value, start)?;
            let op = frame.op;
            if regions.count > 0 {
                return Err(cursor.error(
                    codes::BAD_OPERATION,
                    start,
                    "a conversion of types has no regions",
                ));
            }
            return Ok((op, Regions { count: 0, isolated: false }));
        }
        if matches!(kind, Kind::Return) {
            let in_function =
                frame.as_ref().is_some_and(|f| self.entries.module.op(f.op).name == self.known.function);
            new.name = if in_function { self.known.function_return } else { self.inner_return };
        }
        let op = self.entries.module.add_operation(block, new);
        for (operand, value, span) in later {
            self.pending.push(Pending { value, op, operand, span });
        }
        if let Some(frame) = frame {
            let results = self.entries.module.op(op).results.len();
            for at in 0..results {
                let value = self.entries.module.op(op).results[at];
                self.define(frame, value, start)?;
            }
        }
        Ok((op, regions))
    }

    /// The attributes of an operation: inherent ones from its properties, in old files from its dictionary.
    fn attributes(
        &mut self,
        cursor: &Cursor<'a>,
        name_at: usize,
        dictionary: Option<(usize, usize)>,
        properties: Option<(usize, usize)>,
        new: &mut NewOperation,
    ) -> Fallible<()> {
        if dictionary.is_none() && properties.is_none() && !matches!(self.names[name_at].kind, Kind::Vhlo(_))
        {
            return Ok(());
        }
        let old = self.container.version < format::PROPERTIES;
        // What identifies the attributes, as far as they depend on one index.
        let key = match (dictionary, properties) {
            (Some((index, _)), None) if old => Some(index),
            (None, Some((index, _))) => Some(index),
            (None, None) => Some(usize::MAX),
            _ => None,
        };
        let key = key.map(|index| (name_at as u32, index as u32));
        if let Some(found) = key.and_then(|key| self.converted.get(&key)) {
            new.properties = found.0.clone();
            new.attributes = found.1.clone();
            return Ok(());
        }
        let discardable = match dictionary {
            Some((index, at)) => self.dictionary(cursor, index, at)?,
            None => Vec::new(),
        };
        let span = |at: usize| Span::new(at, at + 1);
        let at = properties.or(dictionary).map_or(cursor.offset(), |p| p.1);
        match (&self.names[name_at].kind, properties) {
            (Kind::Vhlo(_), _) => {
                let (values, rest) = match properties {
                    Some((index, _)) => (self.vhlo_properties(name_at, index)?, discardable),
                    None => self.vhlo_attributes(cursor, name_at, discardable, span(at))?,
                };
                let Kind::Vhlo(known) = &self.names[name_at].kind else {
                    unreachable!("invariant: matched above")
                };
                new.properties = convert(&mut self.entries, known, &values, cursor, span(at))?.into();
                new.attributes = rest.into();
            }
            (Kind::Properties(list), Some((index, _))) => {
                new.properties = self.listed_properties(list, index)?.into();
                new.attributes = discardable.into();
            }
            (Kind::Properties(list), None) => {
                // In old files all attributes are in one dictionary.
                let m = &self.entries.module;
                let (own, rest): (Vec<_>, Vec<_>) = discardable
                    .into_iter()
                    .partition(|a| list.iter().any(|(name, _)| *name == m.text(a.name)));
                (new.properties, new.attributes) = (own.into(), rest.into());
            }
            (Kind::Return | Kind::Cast, Some(_)) => {
                let message =
                    format!("{} has no properties", self.entries.module.text(self.names[name_at].id));
                return Err(cursor.error_at(codes::BAD_OPERATION, span(at), message));
            }
            (Kind::Other, Some((index, _))) if !self.names[name_at].registered => {
                new.properties = self.attribute_properties(index)?.into();
                new.attributes = discardable.into();
            }
            (Kind::Other, Some(_)) => {
                let name = self.entries.module.text(self.names[name_at].id);
                let message = format!("how the properties of {name} are written is not known");
                return Err(cursor.error_at(codes::UNKNOWN_DIALECT, span(at), message));
            }
            (Kind::Return | Kind::Cast | Kind::Other, None) => new.attributes = discardable.into(),
        }
        if let Some(key) = key {
            self.converted.insert(key, (new.properties.clone(), new.attributes.clone()));
        }
        Ok(())
    }

    fn dictionary(&mut self, cursor: &Cursor<'a>, index: usize, at: usize) -> Fallible<Vec<NamedAttribute>> {
        if let Slot::Attr(id) = self.entries.resolve_attribute(index)?
            && let Attribute::Dictionary(list) = self.entries.module.get_attribute(id)
        {
            return Ok(list.to_vec());
        }
        let message = format!("attribute {index} is no dictionary, as attributes of an operation are");
        Err(cursor.error_at(codes::BAD_OPERATION, Span::new(at, cursor.offset()), message))
    }

    /// A cursor over properties.
    fn properties(&self, index: usize) -> Cursor<'a> {
        let (start, end) = self.container.properties[index];
        let all = self.container.property_bytes.expect("invariant: properties are in a section");
        all.over(start as usize, end as usize)
    }

    fn property(&mut self, cursor: &mut Cursor<'a>) -> Fallible<AttrId> {
        let index = cursor.index(self.container.attributes.len(), "attribute")?;
        self.entries.resolve_attribute(index)?;
        Ok(self.entries.attribute(index as u32))
    }

    fn vhlo_properties(&mut self, name_at: usize, index: usize) -> Fallible<Vec<AttrId>> {
        let Kind::Vhlo(known) = &self.names[name_at].kind else {
            unreachable!("invariant: asked of VHLO alone")
        };
        let count = known.rules.len();
        let mut cursor = self.properties(index);
        let values = (0..count).map(|_| self.property(&mut cursor)).collect::<Fallible<_>>()?;
        cursor.finish(codes::BAD_OPERATION, "the properties of an operation")?;
        Ok(values)
    }

    /// The attributes of an operation of VHLO from a dictionary of all.
    fn vhlo_attributes(
        &self,
        cursor: &Cursor<'a>,
        name_at: usize,
        mut all: Vec<NamedAttribute>,
        span: Span,
    ) -> Fallible<(Vec<AttrId>, Vec<NamedAttribute>)> {
        let Kind::Vhlo(known) = &self.names[name_at].kind else {
            unreachable!("invariant: asked of VHLO alone")
        };
        let m = &self.entries.module;
        let mut values = Vec::with_capacity(known.rules.len());
        for rule in &known.rules {
            match all.iter().position(|a| m.text(a.name) == rule.name) {
                Some(at) => values.push(all.remove(at).value),
                None => {
                    let op = known.operation;
                    let message = format!("vhlo.{}_v{} lacks {}", op.name, op.revision, rule.name);
                    return Err(cursor.error_at(codes::BAD_ATTRIBUTE, span, message));
                }
            }
        }
        Ok((values, all))
    }

    fn listed_properties(&mut self, list: &[(&str, bool)], index: usize) -> Fallible<Vec<NamedAttribute>> {
        let mut cursor = self.properties(index);
        let mut out = Vec::with_capacity(list.len());
        // Dialects without versions: what writers did not have once is missing.
        let mut rest = cursor;
        let mut written = 0;
        while !rest.is_empty() {
            rest.varint()?;
            written += 1;
        }
        let mut missing = list.len().saturating_sub(written);
        for &(name, optional) in list {
            if optional && missing > 0 {
                missing -= 1;
                continue;
            }
            let value = match optional {
                false => self.property(&mut cursor)?,
                true => {
                    let start = cursor.offset();
                    let (index, there) = cursor.flagged()?;
                    if !there {
                        continue;
                    }
                    let index =
                        cursor.check_index(index, self.container.attributes.len(), start, "attribute")?;
                    self.entries.resolve_attribute(index)?;
                    self.entries.attribute(index as u32)
                }
            };
            out.push(NamedAttribute { name: self.entries.module.name(name), value });
        }
        cursor.finish(codes::BAD_OPERATION, "the properties of an operation")?;
        Ok(out)
    }

    /// Properties of an operation that the writer did not know: a dictionary.
    fn attribute_properties(&mut self, index: usize) -> Fallible<Vec<NamedAttribute>> {
        let mut cursor = self.properties(index);
        let start = cursor.offset();
        let value = self.property(&mut cursor)?;
        cursor.finish(codes::BAD_OPERATION, "the properties of an operation")?;
        match self.entries.module.get_attribute(value) {
            Attribute::Dictionary(list) => Ok(list.to_vec()),
            _ => Err(cursor.error(codes::BAD_OPERATION, start, "the properties are no dictionary")),
        }
    }
}

/// How many regions follow an operation.
#[derive(Clone, Copy, Debug)]
struct Regions {
    count: u64,
    isolated: bool,
}

fn region_section<'a>(cursor: &mut Cursor<'a>) -> Fallible<Cursor<'a>> {
    let found = cursor.section()?;
    if found.section != Section::Ir {
        let message = format!("the regions of an operation should follow, not a {}", found.section.name());
        return Err(cursor.error(codes::BAD_SECTION, found.header, message));
    }
    Ok(found.cursor)
}

/// Past the orders of uses, which the tree does not have.
fn use_orders(cursor: &mut Cursor<'_>, values: usize) -> Fallible<()> {
    let listed = match values {
        0 | 1 => 1,
        _ => cursor.list("orders of uses")?,
    };
    for _ in 0..listed {
        if values > 1 {
            cursor.index(values, "value")?;
        }
        let start = cursor.offset();
        let (count, _) = cursor.flagged()?;
        for _ in 0..cursor.count(count, start, "places in an order of uses")? {
            cursor.varint()?;
        }
    }
    Ok(())
}

fn convert(
    entries: &mut Entries<'_, '_>,
    known: &Known,
    values: &[AttrId],
    cursor: &Cursor<'_>,
    span: Span,
) -> Result<Vec<NamedAttribute>, Box<Diagnostic>> {
    operations::converted(entries, known, values)
        .map_err(|wrong| cursor.error_at(wrong.code(), span, wrong.message(known.operation)))
}
