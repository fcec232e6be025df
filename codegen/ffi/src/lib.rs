//! XLA's C FFI from the side of the runtime: handlers that were compiled against XLA's headers are custom
//! calls of `hlo-client`. How it is used: docs/custom-calls.md.
//!
//! | module | holds |
//! |---|---|
//! | [`abi`] | the structs of `xla/ffi/api/c_api.h`, versions 0.1 to 0.5 |
//! | `api` | the table of functions that handlers are given |
//! | `error`, `future`, `types`, `pool` | failures, results that come later, types of states, threads for tasks |
//! | `guard` | calls that end in an error where a C++ exception leaves them |
//! | `context`, `attributes`, `frame` | what a handler is called with |
//! | [`handler`] | handlers as [`hlo_client::custom_call::Handler`]s: stages, states, versions |
//! | `memory` | memory of others that may not be there |
//! | `untyped` | the conventions from before: `void target(void* out, const void** in)` and those with a status |
//! | [`library`] | shared libraries, and what they register by themselves |
//! | [`user_data`] | what an execution hands to handlers by type |
//!
//! **Invariants:** unsafe code is at the border to C alone, and each block says which promise of the C API it
//! rests on: a handler reads and writes what its call frame points at and nothing else, and no more than its
//! shapes say. Whatever a handler reports, and whatever of a handler C can notice (its version, its numbers
//! of operands and results), is an error with a code and a message.

#![deny(unsafe_op_in_unsafe_fn)]

pub mod abi;
mod api;
mod attributes;
mod context;
mod error;
mod frame;
mod future;
mod guard;
pub mod handler;
pub mod library;
mod memory;
mod pool;
mod types;
mod untyped;
pub mod user_data;

pub use api::{XLA_FFI_GetApi, api};
pub use error::hlo_ffi_errors_of;
pub use handler::{Bundle, ForeignHandler};
pub use library::{Library, Registered, take_registered};
pub use types::register as register_type;
pub use user_data::UserData;
