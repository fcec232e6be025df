//! The compiler for the CPU: kernels through LLVM.

pub mod alike;
mod compile;
pub mod llvm;
pub mod loops;
pub mod scalar;
mod unit;

pub use crate::CompileError;
pub use crate::compile::{Compiled, Emission, Stages};
pub use compile::{Llvm, Options, compile, compile_watched, emission, level};
pub use unit::Unit;
