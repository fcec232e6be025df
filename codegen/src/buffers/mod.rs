//! Buffer assignment: where every value of a program lies.
//!
//! A value of tuple shape is its *leaves*: its arrays in depth-first order; tuples themselves are never in memory. **Invariants:** two values that
//! are alive at once share no byte, unless one is the other (aliases: tuples and their elements, loop state, a result that an instruction writes in the
//! place of an operand that dies there); what the caller did not donate is never written.

/// A part of an allocation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Slice {
    /// Which: a place in [`Assignment::allocations`].
    pub allocation: u32,
    /// First byte; a multiple of 64.
    pub offset: u64,
    /// Number of bytes.
    pub bytes: u64,
}

/// Where an allocation comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AllocationKind {
    /// The caller's argument: leaf `leaf` of all parameters' leaves in order. Written only if `donated`.
    Parameter {
        /// Which leaf.
        leaf: u32,
        /// Whether the program may overwrite it.
        donated: bool,
    },
    /// Read-only: `constants[index]` of the program.
    Constant {
        /// Which.
        index: u32,
    },
    /// Memory for leaf `leaf` of the result.
    Result {
        /// Which leaf.
        leaf: u32,
    },
    /// The arena: all temporaries.
    Arena,
}

/// A piece of memory that the runtime provides.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Allocation {
    /// Where it comes from.
    pub kind: AllocationKind,
    /// Its size in bytes.
    pub bytes: u64,
}

/// The buffers of a program.
#[derive(Clone, Debug, Default)]
pub struct Assignment {
    /// All allocations.
    pub allocations: Vec<Allocation>,
    /// For each leaf of the entry's result the slice that holds it at the end: of a result allocation, or of a parameter or constant that is returned
    /// as it is (which the runtime copies out, or hands back if donated).
    pub results: Vec<Slice>,
    /// The most bytes alive at once: parameters, results, constants and arena.
    pub peak_bytes: u64,
    /// No schedule of these instructions in this order can do with less.
    pub lower_bound_bytes: u64,
}
