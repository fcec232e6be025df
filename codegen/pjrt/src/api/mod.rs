//! The C API: its structs, its numbers, its table of functions.

pub mod extension;
pub mod layouts;
pub mod shardings;
pub mod table;

pub use hlo_pjrt_abi::{numbers, structs};
