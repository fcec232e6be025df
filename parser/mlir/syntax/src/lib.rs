//! MLIR modules of StableHLO and its neighbours, as text or bytecode.
//!
//! Both forms are read into one tree ([`ir`]), which knows no dialect: operations with operands, results,
//! attributes and regions, over uniqued types and attributes. What dialects mean is not known here.
//!
//! **What holds for any input, however broken:** no panic; no stack that grows with the nesting of the input
//! (types and attributes deeper than [`ir::MAX_DEPTH`] are refused, operations may be nested as deep as they
//! like); memory linear in the input and within what the caller allows.

#![forbid(unsafe_code)]

pub mod bytecode;
pub mod encode;
pub mod ir;
pub mod print;
pub mod text;
