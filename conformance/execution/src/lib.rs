//! What is known of an execution: options, inputs, results, the liberties of who ran it, and verdicts over
//! its elements.
//!
//! **Invariants:** engines and judges of their results share these types alone. How bounds are found is not
//! known here, only what they allow an element ([`verdict::Allowed`]).

#![forbid(unsafe_code)]

pub mod allowances;
pub mod element;
pub mod format;
mod function_ulps;
pub mod functions;
pub mod number;
pub mod run;
pub mod special;
pub mod verdict;
