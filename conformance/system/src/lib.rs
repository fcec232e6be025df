//! What touches the operating system: exit codes, limits of memory and time, files, arrays in files, other
//! programs.
//!
//! **Invariants:** files, the environment, other programs and limits of the system are touched here and in
//! the command line only; every way to end is an [`exit::Exit`]; a file that is written is complete or
//! absent.

#![forbid(unsafe_code)]

pub mod custom_calls;
pub mod drafts;
pub mod exit;
pub mod files;
pub mod guard;
pub mod loaded;
pub mod memory_budget;
pub mod npz;
pub mod phase;
pub mod process;
pub mod quantity;
pub mod resident;
pub mod scratch;
