//! Whatever can give the results of a program, and what programs and inputs they are given.
//!
//! **Invariants:** an engine ends with results or with a named outcome, never with a guess; inputs depend on
//! seed, parameter and element alone.

#![forbid(unsafe_code)]

pub mod alone;
pub mod engine;
pub mod faults;
pub mod frontend;
pub mod inputs;
pub mod mlir;
pub mod protos;
pub mod time_limit;
pub mod variants;
