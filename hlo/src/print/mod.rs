//! HLO text from the IR.

pub mod shape;
