//! The front door: compile HLO programs and run them.
//!
//! ```
//! use hlo::ArrayLiteral;
//! use hlo_client::{Client, ClientOptions, CompileOptions};
//!
//! # fn main() -> Result<(), hlo_client::Error> {
//! let client = Client::interpreter(ClientOptions::default())?; // or Client::cpu
//! let program = client.parse(
//!     "HloModule add_one
//!      ENTRY main { x = f32[3] parameter(0)
//!        one = f32[] constant(1)  ones = f32[3] broadcast(one), dimensions={}
//!        ROOT sum = f32[3] add(x, ones) }",
//! )?;
//! let executable = client.compile(&program, &CompileOptions::default())?;
//! let x = hlo::Buffer::F32(vec![1.0, 2.0, 3.0]);
//! let x = client.buffer(&ArrayLiteral::new([3].as_slice().into(), x).unwrap())?;
//! let results = executable.execute(&[&x])?;
//! assert_eq!(*results[0].to_literal()?.buffer, hlo::Buffer::F32(vec![2.0, 3.0, 4.0]));
//! # Ok(())
//! # }
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`backend`] | the seam: what a platform has to implement; the processor and the interpreter |
//! | `ahead` | objects to link with, their headers and modules |
//! | [`artifact`] | compiled programs as bytes |
//! | `client`, `executable`, `buffer` | what users hold: a back end with its caches, a compiled program, an array on a device |
//! | `pooled` | the objects of executions: reference counts whose memory is reused |
//! | `memory` | a device's budget, eviction, who holds what |
//! | `cache` | programs compiled once: in memory, on disk, lazily |
//! | [`variables`] | arrays with a name, read and updated by programs |
//! | [`closures`] | compiling and running as two steps |
//! | [`handles`], [`chain`] | arrays and programs by number; plans of several programs run in one call |
//! | [`custom_call`] | functions of yours that programs call by name |
//! | [`trace`], `metrics` | what a client did and when; numbers about it |
//! | `cost` | operations and bytes of a program |
//! | [`exports`] | several functions in one artifact |
//! | `program` | modules that verify, parameters made constant |
//! | `warm_up` | the code generator made ready in the background |
//!
//! **Invariant:** nothing here but `cost` knows what an opcode computes, and nothing but `cache/disk.rs`
//! touches files.

#![forbid(unsafe_code)]

#[cfg(feature = "llvm")]
pub mod ahead;
pub mod artifact;
pub mod backend;
mod buffer;
mod cache;
pub mod chain;
mod client;
pub mod closures;
mod container;
mod cost;
pub mod custom_call;
mod error;
mod executable;
pub mod exports;
pub mod gpu_artifact;
pub mod handles;
mod machine;
mod memory;
mod metrics;
mod options;
mod pooled;
mod program;
pub mod trace;
pub mod variables;
mod warm_up;

pub use buffer::{Buffer, Foreign, Hold};
pub use cache::{
    CacheMode, CacheStatistics, DiskCache, DiskEntry, Key, MEGAMORPHIC_COMPILATIONS, MEGAMORPHIC_EXECUTIONS,
    Verdict,
};
pub use client::Client;
pub use cost::Cost;
pub use error::{Code, Error, panic_message};
pub use executable::{Executable, MemoryAnalysis};
pub use hlo_codegen::runtime::arena::Allocator;
pub use hlo_codegen::runtime::raw::{buffer_of, bytes_of};
pub use hlo_library_base::configuration::Configuration;
pub use hlo_library_base::isa::Isa;
pub use hlo_library_base::pool::Lent as LentThreads;
pub use hlo_library_base::tuning;
pub use memory::MemoryStatistics;
pub use metrics::Metrics;
pub use options::{
    Cancellation, ClientOptions, CompileOptions, DeviceAllocator, Elapsed, ExecuteOptions, ThreadPool,
};
pub use program::VerifiedModule;

/// The examples of docs/client.md, which are tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/client.md")]
pub struct ClientDocs;
