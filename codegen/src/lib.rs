//! The driver of compilation, whatever the back end, and the runtime of what was compiled.
//!
//! ```text
//! Module ──front (hlo-opt)──> fused, scheduled ──plan: requests──> Backend::emit ──> kernels + code ──buffers, plan──> Program ──runtime──> results
//! ```
//!
//! Back ends are crates: `hlo-cpu` (LLVM), `hlo-scalar` (no LLVM), `hlo-gpu`, whose lowering, plan and
//! runtime are its own.
//! **Invariant:** a [`program::Program`] is data (object code, launch plan, constants): it holds no pointer
//! and no LLVM value, and [`runtime`] alone executes it. Unsafe code is in [`runtime`] (memory, threads,
//! calling kernels), nowhere else.

#![deny(unsafe_code)]

pub mod compilation;
pub mod compile;
mod error;
pub mod front;
pub mod kernel;
pub mod plan;
pub mod program;
pub mod run_time_sizes;
pub mod runtime;

pub use error::CompileError;
pub use hlo_library_base::{REFUSAL, Unsupported};
