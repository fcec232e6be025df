//! Compiles HLO for the machine it runs on.
//!
//! ```text
//! Module ──passes──> ──fusion──> ──schedule──> ──buffers──> plan + kernel requests ──cpu (LLVM)──> Program ──runtime──> results
//! ```
//!
//! Everything up to the plan is HLO, so the interpreter can execute what each step made, and passes, fusion and scheduling are checked
//! and bisected alike. **Invariant:** a [`program::Program`] is data (object code, launch plan, constants): it holds no pointer and no LLVM value,
//! and [`runtime`] alone executes it. Unsafe code is in [`runtime`] (memory, threads, calling kernels) and in the emission of address
//! arithmetic in `cpu/llvm`, nowhere else.

#![deny(unsafe_code)]

pub mod buffers;
pub mod compilation;
pub mod compile;
pub mod cost_model;
#[cfg(feature = "llvm")]
pub mod cpu;
mod error;
pub mod front;
pub mod fusion;
pub mod kernel;
mod lists;
pub mod passes;
pub mod plan;
pub mod program;
pub mod run_time_sizes;
pub mod runtime;
pub mod schedule;
pub mod tape;

pub use error::CompileError;
pub use hlo_library::{REFUSAL, Unsupported};
