//! What applied computations are recognized to compute.
//!
//! A fold may be taken in any order where one can say what its computation does, whichever way it is written.
//! A computation on scalars is one [`expression`]; what a [`region`] does with accumulators and elements is
//! shown of that, component by component.
//!
//! **Invariants:** what is not shown is not recognized. How far results may be off is not known here.

#![forbid(unsafe_code)]

pub mod expression;
pub mod keys;
pub mod merges;
pub mod rank;
pub mod region;
pub mod terms;
