//! Typed ids of the tree.

use std::num::NonZeroU32;

macro_rules! define_id {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
            pub struct $name(NonZeroU32);

            impl $name {
                /// The id of the entity at `index` of its arena. Panics past 2^32 - 2 entities, which no
                /// input of at most 4 GiB makes.
                pub fn from_index(index: usize) -> Self {
                    let n = u32::try_from(index + 1).ok().and_then(NonZeroU32::new);
                    Self(n.expect("invariant: an input of 4 GiB has fewer entities"))
                }

                /// The index in the arena.
                pub fn index(self) -> usize {
                    self.0.get() as usize - 1
                }
            }
        )*
    };
}

define_id! {
    /// A name: of an operation, a dialect, an attribute, a symbol, a value.
    NameId,
    /// A type.
    TypeId,
    /// An attribute.
    AttrId,
    /// A location.
    LocId,
    /// An operation.
    OpId,
    /// A region.
    RegionId,
    /// A block.
    BlockId,
    /// A value: a result or a block argument.
    ValueId,
    /// A blob of the resource section.
    ResourceId,
}

impl LocId {
    /// `loc(unknown)`, the first location of every module.
    pub const UNKNOWN: LocId = LocId(NonZeroU32::MIN);
}
