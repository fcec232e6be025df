//! Generated and mutated programs.
//!
//! **Invariants:** programs are functions of the bytes that they are made of; each verifies, whatever the
//! bytes.

#![forbid(unsafe_code)]

pub mod generate;
pub mod legal;
pub mod mutate;
