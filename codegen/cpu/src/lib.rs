//! The compiler for the CPU: kernels of fused loops, through LLVM.
//!
//! [`Unit`] makes the kernels of some requests in one LLVM module; [`loops`] says how a fusion's expressions become loops (which strategy, how wide,
//! in what order of dimensions); [`dedup`] finds requests that one kernel serves. **Invariant:** which bits a kernel computes depends on the request alone,
//! never on the processor, the level of optimization or how units are divided.

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
