//! Typed ids.
//!
//! Entities of the IR refer to each other by small typed numbers and not by references: modules are cyclic
//! (users know operands, operands know users) and are edited in place by passes. An id stays valid, and names
//! the same entity, for as long as its [`Module`](crate::Module) lives and is not
//! [compacted](crate::Module::compact); removal leaves a tombstone.

use std::fmt;
use std::num::NonZeroU32;

macro_rules! define_id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(NonZeroU32);

        impl $name {
            /// The id of the entity at `index` of its arena. Panics past 2^32 - 2 entities, which no limit
            /// lets a module reach.
            pub fn from_index(index: usize) -> Self {
                let n = u32::try_from(index + 1).ok().and_then(NonZeroU32::new);
                Self(n.expect("invariant: module size limits keep ids within u32"))
            }

            /// The position in the arena.
            pub fn index(self) -> usize {
                self.0.get() as usize - 1
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.index())
            }
        }
    };
}

define_id!(
    /// An instruction of a module. Unique in the module, not only in its computation.
    InstrId,
    "%"
);
define_id!(
    /// A computation of a module.
    ComputationId,
    "@"
);
