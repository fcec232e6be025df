//! MLIR modules of StableHLO and its neighbours, as text or bytecode, and their conversion to HLO and back.
//!
//! Both forms are read into one tree ([`ir`]), which knows no dialect: operations with operands, results,
//! attributes and regions, over uniqued types and attributes. What dialects mean is in the conversion.
//!
//! **What holds for any input, however broken:** no panic; no stack that grows with the nesting of the input
//! (types and attributes deeper than [`ir::MAX_DEPTH`] are refused, operations may be nested as deep as they
//! like); memory linear in the input and within what the caller allows.

#![forbid(unsafe_code)]

pub mod bytecode;
pub mod check;
pub mod convert;
pub mod encode;
pub mod from_hlo;
pub mod ir;
pub mod print;
pub mod text;
