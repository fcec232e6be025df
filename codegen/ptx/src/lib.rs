//! PTX.
#![forbid(unsafe_code)]
pub mod diag;
pub mod ir;
pub mod lex;
pub mod lower;
pub mod parse;
pub mod print;
pub mod syntax;
pub mod table;
pub mod types;
