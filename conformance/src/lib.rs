//! The programs `hlo` and `run_hlo_module`: the command line, and what only commands do: corpora, filetests, hunts, folders, pages.
//!
//! **Invariant:** only the command line prints; results never depend on threads, time or the machine.

#![forbid(unsafe_code)]

pub mod anonymize;
pub mod attack;
pub mod bundle;
pub mod cli;
pub mod corpus;
pub mod coverage;
pub mod dumps;
pub mod filetest;
pub mod folder;
pub mod fuzz;
pub mod mlir_tests;
pub mod run_hlo_module;
pub mod viz;

/// Keeps freed memory for the next allocation for a while. glibc's hands large blocks back to the system at once, so that each run of a
/// decomposition, and each evaluation of a large instruction, would pay for fresh pages again: up to half of its time. And counts what is alive: where
/// memory ends, the process ends with an exit code ([`hlo_system::memory_budget`]).
#[global_allocator]
static ALLOCATOR: hlo_codegen::runtime::heap::Heap = hlo_codegen::runtime::heap::Heap;
