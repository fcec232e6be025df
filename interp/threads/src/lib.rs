//! How long work is done: divided among threads ([`parallel`]), and cancelled from outside ([`cancel`]).

#![forbid(unsafe_code)]

pub mod cancel;
pub mod parallel;
