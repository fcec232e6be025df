//! PTX.
#![forbid(unsafe_code)]
pub mod diag;
pub mod lex;
pub mod parse;
pub mod print;
pub mod syntax;
