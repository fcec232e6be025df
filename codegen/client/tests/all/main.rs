//! Tests of clients, by subject.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[cfg(feature = "llvm")]
mod ahead;
#[cfg(feature = "llvm")]
mod ahead_linking;
mod artifact;
mod buffers;
mod cache;
mod checklist;
mod common;
mod configurations;
mod custom_calls;
mod exports;
mod handles;
mod lazy;
mod memory;
mod variables;
