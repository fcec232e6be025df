//! Encodings of StableHLO itself. Artifacts have VHLO's instead, except in operations of other dialects:
//! tokens that a computation of Shardy's takes and gives.

use super::encodings;

encodings! {
    /// Types.
    TYPES:
    TOKEN 0 "token" 0 9 [],
}
