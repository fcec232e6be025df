//! The C API: its structs, its numbers, its table of functions.

pub mod extension;
pub mod layouts;
pub mod numbers;
pub mod shardings;
pub mod structs;
pub mod table;
