//! The target-independent half of compilation: HLO in, HLO out, and the expression IR that emission reads.
//!
//! ```text
//! Module ──passes──> ──fusion──> ──schedule──> ──buffers──> which bytes each array has
//!                        └──expr──> the expressions of each fusion, which every back end lowers
//! ```
//!
//! What a target prefers is a [`cost_model::CostModel`], which a pass asks through its context.
//! **Invariants:** what each pass leaves verifies and computes the same bits, so that the interpreter can
//! execute, check and bisect it; nothing here knows a back end, executes a program, or is unsafe.

#![forbid(unsafe_code)]

pub mod buffers;
pub mod cost_model;
mod csr;
pub mod expr;
pub mod fusion;
pub mod passes;
pub mod schedule;
