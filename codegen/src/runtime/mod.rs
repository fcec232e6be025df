//! Runs compiled programs: memory, threads, object code, and operations that are compiled with this crate.
//!
//! **Invariant:** all unsafe code of executing programs is here; each block says what it rests on.
#![allow(
    unsafe_code,
    reason = "calls machine code and hands out raw memory: this module is the layer for it"
)]

pub mod arena;
pub mod constants;
pub mod executable;
pub mod functions;
pub mod heap;
mod interpret;
pub mod limits;
pub mod object;
pub mod raw;
