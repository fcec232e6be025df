//! What emission needs of LLVM: a function being built, typed operations on lanes, targets, object code.
//!
//! [`Emit`] builds one function. Its operations work alike on scalars and on vectors of [`Emit::lanes`] lanes, so code that emits an element is
//! written once. **Invariants:** no operation here has fast-math flags, so LLVM neither contracts nor reassociates; modules are verified; what LLVM refuses is an [`Error`]. Values are not typed beyond what LLVM does: a wrong type is found by the verifier.
#![allow(
    unsafe_code,
    reason = "address arithmetic and LLVM's diagnostic handler: this module is the room for it"
)]

mod control;
mod data;
mod emit;
mod function;
mod gpu;
#[cfg(test)]
pub(crate) mod harness;
mod lines;
mod memory;
mod target;
#[cfg(test)]
mod tests;
pub mod workers;

use std::fmt;

use inkwell::builder::BuilderError;
use inkwell::support::LLVMString;
use inkwell::values::InstructionValueError;

pub use inkwell::{FloatPredicate, IntPredicate};

pub use data::Data;
pub use emit::{Emit, Prim, Value};
pub use function::new_context;
pub use gpu::{Atomic, Axis, Parameter, Scope, Shuffle, Space, Special};
pub use lines::Lines;
pub use memory::REGISTER;
pub use target::{Level, NVPTX_ARCHITECTURES, Target};

use crate::Unsupported;

/// What goes wrong in emission.
#[derive(Debug)]
pub enum Error {
    /// A case that is not supported.
    Unsupported(Box<Unsupported>),
    /// LLVM refused to build, verify, optimize or compile something: a defect of this compiler.
    Llvm(String),
    /// A target that does not exist, or cannot run here.
    Target(String),
}

/// Results of emission.
pub type Result<T> = std::result::Result<T, Error>;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Unsupported(unsupported) => f.write_str(&unsupported.diagnostic().message),
            Error::Llvm(message) => write!(f, "LLVM: {message}"),
            Error::Target(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for Error {}

impl From<Unsupported> for Error {
    fn from(unsupported: Unsupported) -> Self {
        Error::Unsupported(Box::new(unsupported))
    }
}

impl From<BuilderError> for Error {
    fn from(error: BuilderError) -> Self {
        Error::Llvm(error.to_string())
    }
}

impl From<InstructionValueError> for Error {
    fn from(error: InstructionValueError) -> Self {
        Error::Llvm(error.to_string())
    }
}

impl From<LLVMString> for Error {
    fn from(message: LLVMString) -> Self {
        Error::Llvm(message.to_string())
    }
}
