//! Oracles: how a candidate fails.

mod command;
mod differential;

pub use command::{Command, Match};
pub use differential::Differential;
