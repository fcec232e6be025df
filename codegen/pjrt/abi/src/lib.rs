//! The C API of PJRT, as both sides of it need it: a plugin (`hlo-pjrt`) and a caller of plugins
//! (`hlo-pjrt-host`).
//!
//! | module | holds |
//! |---|---|
//! | [`structs`], [`numbers`], [`names`] | structs, enumerations, the functions of the table |
//! | [`opaque`] | objects that callers know by their pointers |
//! | [`Failure`] | errors: a code and a message |
//! | [`options`], [`program`], [`wire`] | messages of compile options and programs, and their wire format |
//!
//! **Invariant:** layouts are those of the C header (`../tests/layout.txt`). Nothing here executes anything.

#![deny(unsafe_op_in_unsafe_fn)]

mod failure;
pub mod names;
pub mod numbers;
pub mod opaque;
pub mod options;
pub mod program;
pub mod structs;
pub mod wire;

pub use failure::{Code, Failure, Result};
