//! Compiles HLO for NVIDIA GPUs.
//!
//! ```text
//! Module ──passes, fusion, schedule (hlo-codegen)──> kernels per instruction ──LLVM NVPTX──> PTX ┐
//!                                                        └──buffers──> launch plan ──────────────┴─> Program ──run──> results
//! ```
//!
//! [`compile`] is the back end that [`hlo_codegen::compile`] drives. [`lower`] says how each instruction is
//! executed, [`kernels`] emits it, one file per family, [`plan`] writes the launches, [`run`] executes a
//! program on a [`run::Device`]: the interpreter of PTX ([`interpreted`]), which checks every access, or a
//! GPU.
//!
//! **Invariants:** a [`program::Program`] is data: PTX text, launches, constants. Plan and buffers are
//! derived from the module and the kernels without LLVM. Results are deterministic: no atomics on floats,
//! reductions combine in an order that shapes alone decide.
#![forbid(unsafe_code)]

pub mod arch;
#[cfg(feature = "llvm")]
mod code;
pub mod compilation;
#[cfg(feature = "llvm")]
pub mod compile;
#[cfg(feature = "cuda")]
pub mod cuda;
pub mod interpreted;
pub mod kernel;
#[cfg(feature = "llvm")]
pub mod kernels;
pub mod lower;
mod one_device;
pub mod plan;
pub mod program;
pub mod run;
#[cfg(feature = "llvm")]
mod subject;

/// The prefix of every refusal of this compiler.
pub const REFUSAL: &str = "the compiler for GPUs does not support ";
