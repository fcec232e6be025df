//! Oracles: how a candidate fails.

mod command;

pub use command::{Command, Match};
