//! Tests of clients, by subject.

mod artifact;
mod buffers;
mod cache;
mod common;
mod exports;
mod handles;
mod lazy;
mod memory;
mod variables;
