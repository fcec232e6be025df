//! placeholder
#![forbid(unsafe_code)]

pub mod small_float;
pub mod small_int;
