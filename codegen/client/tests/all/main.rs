//! Tests of clients, by subject.

mod artifact;
mod buffers;
mod cache;
mod common;
mod lazy;
mod memory;
