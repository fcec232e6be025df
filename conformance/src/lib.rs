//! The programs `hlo` and `run_hlo_module`: engines, inputs, comparison, the corpus runner, filetests and the command line.
//!
//! **Invariants:** only this crate reads files, prints, or looks at the environment; every way to end is an [`exit::Exit`];
//! results never depend on threads, time or the machine.

#![forbid(unsafe_code)]

pub mod allowances;
pub mod alone;
pub mod anonymize;
pub mod artifact;
pub mod attack;
pub mod bisect;
pub mod bundle;
pub mod case;
pub mod certify;
pub mod check;
pub mod cli;
pub mod compare;
pub mod corpus;
pub mod coverage;
pub mod custom_calls;
pub mod differential;
pub mod dumps;
pub mod element;
pub mod engine;
pub mod exact;
pub mod execution;
pub mod exhaustive;
pub mod exit;
pub mod faults;
pub mod feeds;
pub mod files;
pub mod filetest;
pub mod folder;
pub mod frontend;
mod function_ulps;
pub mod functions;
pub mod fuzz;
pub mod generate;
pub mod guard;
pub mod inputs;
pub mod isolate;
pub mod judge;
pub mod legal;
pub mod loaded;
pub mod mlir;
pub mod mlir_tests;
pub mod mutate;
pub mod near;
pub mod npz;
pub mod phase;
pub mod pieces;
pub mod policy;
pub mod process;
pub mod protos;
pub mod prove;
pub mod quantity;
pub mod reduce;
pub mod replay;
pub mod report;
pub mod resident;
pub mod residual;
pub mod room;
pub mod run_hlo_module;
pub mod scratch;
pub mod time_limit;
pub mod variants;
pub mod verdict;
pub mod viz;
pub mod watch;

/// Keeps freed memory for the next allocation for a while. glibc's hands large blocks back to the system at once, so that each run of a
/// decomposition, and each evaluation of a large instruction, would pay for fresh pages again: up to half of its time. And counts what is alive: where
/// memory ends, the process ends with an exit code ([`room`]).
#[global_allocator]
static ALLOCATOR: hlo_codegen::runtime::heap::Heap = hlo_codegen::runtime::heap::Heap;
