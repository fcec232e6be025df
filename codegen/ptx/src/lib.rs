//! PTX, the assembly language of NVIDIA GPUs: parser, verifier, printer, and an interpreter that checks what
//! it runs.
//!
//! It knows PTX alone: no HLO, no files, no GPU.
//!
//! ```text
//! text ──lex──> tokens ──parse──> syntax ──lower──> ir::Module ──Memory::load──> Loaded ──exec::launch──> Outcome
//!                                   │                (verified)                                        (or Failure)
//!                                 print
//! ```
//!
//! # Example
//!
//! ```
//! use hlo_ptx::{Launch, Memory, Options, launch};
//!
//! let text = r"
//! .version 8.0
//! .target sm_90
//! .address_size 64
//! .visible .entry twice(.param .u64 x) {
//!     .reg .b32 %r<4>;
//!     .reg .b64 %rd<4>;
//!     ld.param.u64 %rd1, [x];
//!     mov.u32 %r1, %tid.x;
//!     mul.wide.u32 %rd2, %r1, 4;
//!     add.s64 %rd3, %rd1, %rd2;
//!     ld.global.u32 %r2, [%rd3];
//!     add.u32 %r3, %r2, %r2;
//!     st.global.u32 [%rd3], %r3;
//!     ret;
//! }";
//! let module = hlo_ptx::lower::module(text).map_err(|d| d[0].to_string()).unwrap();
//! let mut memory = Memory::default();
//! let loaded = memory.load(module).unwrap();
//! let x = memory.upload("x", &[1, 0, 0, 0, 2, 0, 0, 0]).unwrap();
//!
//! let two_threads = Launch::new([1, 1, 1], [2, 1, 1], 0, &[x]);
//! let outcome = launch(&loaded, "twice", &two_threads, &mut memory, &Options::default()).unwrap();
//! assert!(outcome.reports.is_empty());
//! assert_eq!(memory.read(x, 8).unwrap(), [2, 0, 0, 0, 4, 0, 0, 0]);
//!
//! // A third thread is beyond the allocation: the kernel stops, and the report says where.
//! let wrong = Launch::new([1, 1, 1], [3, 1, 1], 0, &[x]);
//! let failure = launch(&loaded, "twice", &wrong, &mut memory, &Options::default()).unwrap_err();
//! assert_eq!((failure.stop.fault, failure.stop.line), (hlo_ptx::report::Fault::OutOfBounds, 12));
//! ```
#![forbid(unsafe_code)]

pub mod diag;
pub mod exec;
pub mod float;
pub mod ir;
pub mod lex;
pub mod lower;
pub mod memory;
pub mod mutate;
pub mod parse;
pub mod print;
mod race;
pub mod report;
pub mod spell;
pub mod syntax;
pub mod table;
pub mod types;

pub use exec::{Failure, Launch, Options, Outcome, launch};
pub use memory::{Loaded, Memory};
