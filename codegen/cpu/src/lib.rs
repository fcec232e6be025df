//! The compiler for the CPU: kernels of fused loops, through LLVM.
//!
//! [`Unit`] emits the kernels of requests into an LLVM module; [`loops`] decides how a fusion's expressions
//! become loops (strategy, vector width, order of dimensions); [`dedup`] finds structurally identical
//! requests, which share a kernel. **Invariant:** the bits that a kernel computes depend on the request
//! alone, never on the processor, the optimization level or how units are divided.

#![deny(unsafe_code)]

mod compile;
pub mod dedup;
#[cfg(test)]
#[allow(unsafe_code, reason = "calls kernels on memory between guard pages")]
mod kernel_tests;
pub mod loops;
mod unit;

pub use compile::{Llvm, Options, compile, compile_watched, emission, level};
pub use hlo_codegen::CompileError;
pub use hlo_codegen::compile::{Compiled, Emission, Stages};
pub use unit::Unit;
