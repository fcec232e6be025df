//! The wrapper of LLVM: functions under construction, typed operations on lanes, targets, object code.
//!
//! [`Emit`] builds one function. Its operations work in the same way on scalars and on vectors of
//! [`Emit::lanes`] lanes, so code that emits an element is written once. [`scalar`] has the elementwise
//! operations of HLO on such values, for every processor and for PTX.
//!
//! **Invariants:** no operation here has fast-math flags, so LLVM neither contracts nor reassociates; modules
//! are verified; what LLVM refuses is an [`Error`]. Values are not typed beyond what LLVM does: a wrong type
//! is found by the verifier.

#![deny(unsafe_code)]

mod control;
mod data;
mod emit;
#[allow(unsafe_code, reason = "the diagnostic handler of LLVM's contexts")]
mod function;
#[allow(unsafe_code, reason = "address arithmetic")]
mod gpu;
#[cfg(test)]
#[allow(unsafe_code, reason = "calls the kernels of tests")]
pub(crate) mod harness;
mod lines;
#[allow(unsafe_code, reason = "address arithmetic")]
mod memory;
pub mod scalar;
#[allow(unsafe_code, reason = "a function of LLVM's C++ interface")]
mod split_dwarf;
#[allow(unsafe_code, reason = "LLVM's command line")]
mod target;
#[cfg(test)]
mod tests;
#[allow(unsafe_code, reason = "LLVM's handler of fatal errors, and threads that outlive what they borrow")]
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

use hlo_codegen::{CompileError, Unsupported};

/// Errors of emission.
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

impl From<Error> for CompileError {
    fn from(error: Error) -> Self {
        match error {
            Error::Unsupported(unsupported) => CompileError::Unsupported(unsupported),
            Error::Target(message) => CompileError::Target(message),
            Error::Llvm(_) => CompileError::Defect(error.to_string()),
        }
    }
}

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
