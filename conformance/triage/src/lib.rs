//! Where results differ and why: comparison of engines, replay, isolation, bisection, reduction; and how much
//! is found (`mutants`).
//!
//! **Invariants:** one judge decides for all tools; what a tool blames, it has run alone.

#![forbid(unsafe_code)]

pub mod artifact;
pub mod bisect;
pub mod case;
pub mod check;
pub mod compare;
pub mod differential;
pub mod feeds;
pub mod instruction_kind;
pub mod isolate;
pub mod judge;
pub mod mutants;
pub mod near;
mod others;
pub mod pieces;
pub mod policy;
pub mod prove;
pub mod reduce;
pub mod replay;
pub mod report;
pub mod residual;
pub mod watch;
