//! The compiler for the CPU: kernels through LLVM.

pub mod llvm;
pub mod loops;
pub mod scalar;
mod unit;

pub use unit::Unit;
