//! Encodings of CHLO, the dialect of operations that are made of StableHLO's. Artifacts have it as it is,
//! without versions.

use super::Field::Enum;
use super::encodings;
use super::vhlo::{COMPARISON_DIRECTIONS, COMPARISON_TYPES};

encodings! {
    /// Attributes. There are no types.
    ATTRIBUTES:
    COMPARISON_DIRECTION 0 "comparison_direction" 0 9 [Enum(COMPARISON_DIRECTIONS)],
    COMPARISON_TYPE 1 "comparison_type" 0 9 [Enum(COMPARISON_TYPES)],
}
