//! Operations, regions, blocks and values.

use smallvec::SmallVec;

use super::attribute::Attributes;
use super::ids::{BlockId, LocId, NameId, OpId, RegionId, TypeId, ValueId};
use hlo::Span;

/// An operation.
#[derive(Clone, Debug)]
pub struct Operation {
    /// With the dialect, `stablehlo.add`.
    pub name: NameId,
    /// Operands.
    pub operands: SmallVec<[ValueId; 2]>,
    /// Results.
    pub results: SmallVec<[ValueId; 1]>,
    /// Inherent attributes, `<{...}>`, as far as the input tells them from others.
    pub properties: Attributes,
    /// Other attributes, `{...}`; of older texts all.
    pub attributes: Attributes,
    /// Successors of a terminator.
    pub successors: Box<[BlockId]>,
    /// Regions.
    pub regions: SmallVec<[RegionId; 1]>,
    /// The block that it is in; `None` of the outermost one.
    pub parent: Option<BlockId>,
    /// Where the source program has it.
    pub loc: LocId,
    /// Where the input has it.
    pub span: Span,
}

/// An operation as a reader describes it; regions are added afterwards.
#[derive(Clone, Debug)]
pub struct NewOperation {
    /// With the dialect.
    pub name: NameId,
    /// Operands.
    pub operands: SmallVec<[ValueId; 2]>,
    /// Types of the results.
    pub result_types: SmallVec<[TypeId; 1]>,
    /// Inherent attributes.
    pub properties: Attributes,
    /// Other attributes.
    pub attributes: Attributes,
    /// Successors.
    pub successors: Box<[BlockId]>,
    /// Where the source program has it.
    pub loc: LocId,
    /// Where the input has it.
    pub span: Span,
}

impl NewOperation {
    /// An operation of nothing.
    pub fn new(name: NameId, span: Span) -> Self {
        Self {
            name,
            operands: SmallVec::new(),
            result_types: SmallVec::new(),
            properties: Attributes::default(),
            attributes: Attributes::default(),
            successors: Box::default(),
            loc: LocId::UNKNOWN,
            span,
        }
    }
}

/// A region: blocks of an operation.
#[derive(Clone, Debug)]
pub struct Region {
    /// Whose.
    pub parent: OpId,
    /// The blocks, the entry first.
    pub blocks: Vec<BlockId>,
}

/// A block: arguments and operations.
#[derive(Clone, Debug)]
pub struct Block {
    /// In which region.
    pub parent: RegionId,
    /// Arguments.
    pub arguments: Vec<ValueId>,
    /// Operations in order.
    pub operations: Vec<OpId>,
    /// `^label`, without the `^`.
    pub label: Option<NameId>,
    /// Where the input has it.
    pub span: Span,
}

/// A value.
#[derive(Clone, Debug)]
pub struct Value {
    /// Its type.
    pub ty: TypeId,
    /// What defines it.
    pub def: ValueDef,
    /// `%name`, without the `%`; of results of several the name of all.
    pub name: Option<NameId>,
    /// Where the source program has it.
    pub loc: LocId,
    /// Where the input has it.
    pub span: Span,
}

/// What defines a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ValueDef {
    /// A result of an operation.
    Result {
        /// Of which.
        op: OpId,
        /// Which result.
        index: u32,
    },
    /// An argument of a block.
    Argument {
        /// Of which.
        block: BlockId,
        /// Which argument.
        index: u32,
    },
}
