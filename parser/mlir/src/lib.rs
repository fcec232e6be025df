//! MLIR modules of StableHLO and its neighbours, as text or bytecode, and their conversion to HLO and back.
//!
//! The forms, and the tree that both are read into, are a crate of their own, whose modules are here, too
//! ([`ir`], [`text`], [`mod@print`], [`bytecode`], [`encode`]). What dialects mean is in the conversion.
//!
//! **What holds for any input, however broken:** no panic; no stack that grows with the nesting of the input;
//! memory linear in the input and within what the caller allows.

#![forbid(unsafe_code)]

pub mod check;
pub mod convert;
pub mod from_hlo;

pub use hlo_mlir_syntax::{bytecode, encode, ir, print, text};
