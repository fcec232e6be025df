//! The compiler for the CPU: kernels through LLVM.

mod alike;
mod compile;
pub mod llvm;
pub mod loops;
pub mod scalar;
mod unit;

pub use compile::{CompileError, Compiled, Options, Stages, compile, compile_watched};
pub use unit::Unit;
