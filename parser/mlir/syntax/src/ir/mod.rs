//! The tree of an MLIR module: operations, regions, blocks and values in arenas, types, attributes and
//! locations uniqued.
//!
//! **Invariants:**
//! - ids index the arenas of the [`Module`] that made them, and are never reused;
//! - an operation is in the list of its parent block, a block in that of its region, a region in that of its
//!   operation;
//! - types and attributes are uniqued: two ids are equal exactly if what they name is (but for
//!   [`Attribute::Elements`], whose data is shared and not compared). Their parts have smaller ids, so
//!   nothing is cyclic;
//! - every entity carries the [`Span`] of the input that it was read from: bytes of the text, or of the
//!   bytecode file.
//!
//! Nothing here recurses on the depth of operations. Types, attributes and locations know their depth
//! ([`Module::type_depth`] and the like); readers refuse more than [`MAX_DEPTH`], so that what walks them may
//! recurse.

mod attribute;
mod elements;
mod ids;
mod names;
mod operation;
mod types;
mod unique;

pub use attribute::{Attribute, Attributes, NamedAttribute, Resource, ResourceData};
pub use elements::{element_bytes, ints, storage_bits};
pub use ids::{AttrId, BlockId, LocId, NameId, OpId, RegionId, ResourceId, TypeId, ValueId};
pub use operation::{Block, NewOperation, Operation, Region, Value, ValueDef};
pub use types::{DYNAMIC, FloatType, Location, QuantizedType, Signedness, Type};

use std::sync::Arc;

pub use hlo::Span;
use rustc_hash::FxHashMap;

use names::Names;
use unique::Arena;

/// The deepest nesting of types, attributes and locations that readers let through.
pub const MAX_DEPTH: u32 = 256;

/// A module as it was read: its operations and all that they refer to.
#[derive(Clone, Debug)]
pub struct Module {
    names: Names,
    types: Arena<Type>,
    attributes: Arena<Attribute>,
    locations: Arena<Location>,
    resources: Vec<Resource>,
    resource_index: FxHashMap<(NameId, NameId), ResourceId>,
    operations: Vec<Operation>,
    regions: Vec<Region>,
    blocks: Vec<Block>,
    values: Vec<Value>,
    top: Option<OpId>,
}

impl Default for Module {
    fn default() -> Self {
        Self::new()
    }
}

impl Module {
    /// A tree of nothing.
    pub fn new() -> Self {
        let mut module = Self {
            names: Names::default(),
            types: Arena::default(),
            attributes: Arena::default(),
            locations: Arena::default(),
            resources: Vec::new(),
            resource_index: FxHashMap::default(),
            operations: Vec::new(),
            regions: Vec::new(),
            blocks: Vec::new(),
            values: Vec::new(),
            top: None,
        };
        // So that `LocId::UNKNOWN` names it.
        module.location(Location::Unknown);
        module
    }

    // ---- names, types, attributes, locations

    /// The id of a name.
    pub fn name(&mut self, text: &str) -> NameId {
        self.names.intern(text)
    }

    /// The id of a name that the module has already.
    pub fn find_name(&self, text: &str) -> Option<NameId> {
        self.names.find(text)
    }

    /// The text of a name.
    pub fn text(&self, name: NameId) -> &str {
        self.names.text(name)
    }

    /// The id of a type.
    pub fn ty(&mut self, ty: Type) -> TypeId {
        let depth = types::depth_of(&ty, self);
        TypeId::from_index(self.types.intern(ty, depth))
    }

    /// A type.
    pub fn get_type(&self, id: TypeId) -> &Type {
        self.types.get(id.index())
    }

    /// How deep a type is nested: 1 for `i32`.
    pub fn type_depth(&self, id: TypeId) -> u32 {
        self.types.depth(id.index())
    }

    /// The id of an attribute.
    pub fn attribute(&mut self, attribute: Attribute) -> AttrId {
        let depth = attribute::depth_of(&attribute, self);
        let index = match &attribute {
            // Comparing the data of large constants costs more than keeping one twice.
            Attribute::Elements { .. } => self.attributes.push(attribute, depth),
            _ => self.attributes.intern(attribute, depth),
        };
        AttrId::from_index(index)
    }

    /// An attribute.
    pub fn get_attribute(&self, id: AttrId) -> &Attribute {
        self.attributes.get(id.index())
    }

    /// How deep an attribute is nested.
    pub fn attribute_depth(&self, id: AttrId) -> u32 {
        self.attributes.depth(id.index())
    }

    /// The id of a location.
    pub fn location(&mut self, location: Location) -> LocId {
        let depth = types::location_depth(&location, self);
        LocId::from_index(self.locations.intern(location, depth))
    }

    /// A location.
    pub fn get_location(&self, id: LocId) -> &Location {
        self.locations.get(id.index())
    }

    /// How deep a location is nested.
    pub fn location_depth(&self, id: LocId) -> u32 {
        self.locations.depth(id.index())
    }

    /// Number of types; ids are below it.
    pub fn type_count(&self) -> usize {
        self.types.len()
    }

    /// Number of attributes; ids are below it.
    pub fn attribute_count(&self) -> usize {
        self.attributes.len()
    }

    /// Number of locations; ids are below it.
    pub fn location_count(&self) -> usize {
        self.locations.len()
    }

    // ---- resources

    /// The resource of a dialect with this key, added without data if there is none yet.
    pub fn resource(&mut self, dialect: NameId, key: NameId) -> ResourceId {
        if let Some(&id) = self.resource_index.get(&(dialect, key)) {
            return id;
        }
        let id = ResourceId::from_index(self.resources.len());
        self.resources.push(Resource { dialect, key, data: ResourceData::Missing });
        self.resource_index.insert((dialect, key), id);
        id
    }

    /// A resource.
    pub fn get_resource(&self, id: ResourceId) -> &Resource {
        &self.resources[id.index()]
    }

    /// Sets the data of a resource.
    pub fn set_resource(&mut self, id: ResourceId, data: ResourceData) {
        self.resources[id.index()].data = data;
    }

    /// All resources in the order of their first mention.
    pub fn resources(&self) -> &[Resource] {
        &self.resources
    }

    // ---- operations

    /// The outermost operation, `builtin.module`. `None` only while the module is being read.
    pub fn top(&self) -> Option<OpId> {
        self.top
    }

    /// Makes an operation the outermost one.
    pub fn set_top(&mut self, op: OpId) {
        self.top = Some(op);
    }

    /// Reserves memory for operations and values that are about to be added to a block, as far as memory
    /// allows: a hint.
    pub(crate) fn reserve(&mut self, block: BlockId, operations: usize, values: usize) {
        // What cannot be had now is asked for when it is needed.
        let _ = self.operations.try_reserve(operations);
        let _ = self.values.try_reserve(values);
        let _ = self.blocks[block.index()].operations.try_reserve(operations);
    }

    /// Adds an operation at the end of a block (or nowhere: the outermost one), and its results.
    #[inline]
    pub fn add_operation(&mut self, block: Option<BlockId>, new: NewOperation) -> OpId {
        let id = OpId::from_index(self.operations.len());
        let results = new
            .result_types
            .iter()
            .enumerate()
            .map(|(index, &ty)| {
                self.add_value(Value {
                    ty,
                    def: ValueDef::Result { op: id, index: index as u32 },
                    name: None,
                    loc: new.loc,
                    span: new.span,
                })
            })
            .collect();
        self.operations.push(Operation {
            name: new.name,
            operands: new.operands,
            results,
            properties: new.properties,
            attributes: new.attributes,
            successors: new.successors,
            regions: Default::default(),
            parent: block,
            loc: new.loc,
            span: new.span,
        });
        if let Some(block) = block {
            self.blocks[block.index()].operations.push(id);
        }
        id
    }

    /// Adds results to an operation after it was added; ids of results of one operation follow each other.
    /// The first.
    pub fn add_results(&mut self, op: OpId, types: &[TypeId]) -> ValueId {
        let (loc, span) = (self.op(op).loc, self.op(op).span);
        let first = ValueId::from_index(self.values.len());
        for &ty in types {
            let index = self.op(op).results.len() as u32;
            let value =
                self.add_value(Value { ty, def: ValueDef::Result { op, index }, name: None, loc, span });
            self.operations[op.index()].results.push(value);
        }
        first
    }

    /// Adds an empty region to an operation.
    pub fn add_region(&mut self, op: OpId) -> RegionId {
        let id = RegionId::from_index(self.regions.len());
        self.regions.push(Region { parent: op, blocks: Vec::new() });
        self.operations[op.index()].regions.push(id);
        id
    }

    /// Adds an empty block to a region.
    pub fn add_block(&mut self, region: RegionId, span: Span) -> BlockId {
        let id = BlockId::from_index(self.blocks.len());
        self.blocks.push(Block {
            parent: region,
            arguments: Vec::new(),
            operations: Vec::new(),
            label: None,
            span,
        });
        self.regions[region.index()].blocks.push(id);
        id
    }

    /// Adds an argument to a block.
    pub fn add_argument(&mut self, block: BlockId, ty: TypeId, loc: LocId, span: Span) -> ValueId {
        let index = self.blocks[block.index()].arguments.len() as u32;
        let value = Value { ty, def: ValueDef::Argument { block, index }, name: None, loc, span };
        let id = self.add_value(value);
        self.blocks[block.index()].arguments.push(id);
        id
    }

    fn add_value(&mut self, value: Value) -> ValueId {
        let id = ValueId::from_index(self.values.len());
        self.values.push(value);
        id
    }

    /// An operation.
    pub fn op(&self, id: OpId) -> &Operation {
        &self.operations[id.index()]
    }

    /// An operation, to change its operands, attributes or location.
    pub fn op_mut(&mut self, id: OpId) -> &mut Operation {
        &mut self.operations[id.index()]
    }

    /// A region.
    pub fn region(&self, id: RegionId) -> &Region {
        &self.regions[id.index()]
    }

    /// A block.
    pub fn block(&self, id: BlockId) -> &Block {
        &self.blocks[id.index()]
    }

    /// A block, to change its label.
    pub fn block_mut(&mut self, id: BlockId) -> &mut Block {
        &mut self.blocks[id.index()]
    }

    /// A value.
    pub fn value(&self, id: ValueId) -> &Value {
        &self.values[id.index()]
    }

    /// A value, to change its name, type or location.
    pub fn value_mut(&mut self, id: ValueId) -> &mut Value {
        &mut self.values[id.index()]
    }

    /// Number of operations; ids are below it.
    pub fn operation_count(&self) -> usize {
        self.operations.len()
    }

    /// Number of values; ids are below it.
    pub fn value_count(&self) -> usize {
        self.values.len()
    }

    /// The type of a value.
    pub fn value_type(&self, id: ValueId) -> TypeId {
        self.value(id).ty
    }

    /// The name of an operation, `stablehlo.add`.
    pub fn op_name(&self, id: OpId) -> &str {
        self.text(self.op(id).name)
    }

    /// The attribute of this name of an operation, inherent or discardable.
    pub fn attr(&self, op: OpId, name: &str) -> Option<AttrId> {
        let name = self.find_name(name)?;
        let op = self.op(op);
        op.properties.iter().chain(&op.attributes).find(|a| a.name == name).map(|a| a.value)
    }

    /// The operations of the body of the module (or of any operation with one region of one block), in order.
    pub fn body(&self, op: OpId) -> &[OpId] {
        match *self.op(op).regions {
            [region, ..] => match *self.region(region).blocks {
                [block, ..] => &self.block(block).operations,
                [] => &[],
            },
            [] => &[],
        }
    }

    /// Where an operation stands, for people: `@main / stablehlo.while / region 1 / stablehlo.add (operation
    /// 3)`.
    pub fn path(&self, op: OpId) -> String {
        let mut parts = Vec::new();
        let mut at = Some(op);
        while let Some(id) = at {
            let this = self.op(id);
            let symbol = self.attr(id, "sym_name").and_then(|a| match self.get_attribute(a) {
                Attribute::String { text, .. } => Some(format!("@{text}")),
                _ => None,
            });
            let block = this.parent;
            let mut part = symbol.unwrap_or_else(|| self.op_name(id).to_owned());
            if let Some(block) = block {
                if id == op {
                    let n = self.block(block).operations.iter().position(|&o| o == id);
                    part.push_str(&n.map_or(String::new(), |n| format!(" (operation {n})")));
                }
                let region = self.block(block).parent;
                let owner = self.region(region).parent;
                parts.push(part);
                let regions = &self.op(owner).regions;
                if regions.len() > 1 {
                    let n = regions.iter().position(|&r| r == region).unwrap_or(0);
                    parts.push(format!("region {n}"));
                }
                at = Some(owner);
            } else {
                if id == op {
                    parts.push(part);
                }
                at = None;
            }
        }
        parts.reverse();
        parts.join(" / ")
    }

    /// Shares text that was read as a name.
    pub fn shared_text(&self, name: NameId) -> Arc<str> {
        self.names.shared(name)
    }
}
