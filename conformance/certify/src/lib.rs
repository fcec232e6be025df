//! Certified bounds: how far the results of an execution may be from the reference's.
//!
//! **Invariants:** a bound is never too narrow: what any compiler may do within the contracts is inside;
//! which engine gave a result is not known here, only the liberties ([`hlo_execution::allowances`]) that it
//! is granted.

#![forbid(unsafe_code)]

pub mod bounds;
