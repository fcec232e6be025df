//! The programs `hlo` and `run_hlo_module`: command line, corpora, filetests, hunts, folders, pages.
//!
//! **Invariant:** only the command line prints; results never depend on threads, time or the machine.

#![forbid(unsafe_code)]

pub mod anonymize;
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

/// Keeps freed memory for later allocations: glibc's allocator returns large blocks at once, so that fresh
/// pages would take up to half of the time of a decomposition or a large instruction. And counts what is
/// alive: where memory ends, the process ends with an exit code ([`hlo_system::memory_budget`]).
#[global_allocator]
static ALLOCATOR: hlo_codegen::runtime::heap::Heap = hlo_codegen::runtime::heap::Heap;
