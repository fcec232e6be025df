//! From HLO to programs that run fast: for now the passes from HLO to HLO.

#![forbid(unsafe_code)]

pub mod passes;
