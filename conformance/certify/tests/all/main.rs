//! Certified bounds, by subject: worked out by hand, and held against each other.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod basics;
mod common;
mod complex;
mod decompositions;
mod flushed;
mod liberties;
mod limits;
mod linear;
mod local;
mod logits;
mod merged;
mod nans;
mod permuted;
mod reordered;
mod scans;
mod specials;
