//! Certified tolerance: how far a result may be from the reference, and the verdicts that follow.
//!
//! **Invariants:** a bound is never too narrow: what any compiler may do within the contracts is inside;
//! which engine gave a result is not known here, only the liberties ([`allowances`]) that it is granted.

#![forbid(unsafe_code)]

pub mod allowances;
pub mod bounds;
pub mod element;
pub mod execution;
mod function_ulps;
pub mod functions;
pub mod verdict;
