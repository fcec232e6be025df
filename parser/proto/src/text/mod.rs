//! The text format of protocol buffers, both ways.
//!
//! Floats are written with as many digits as they need to come back. **What it cannot say:** the payload of a
//! NaN in fields of floats; literals of 16 bits and less, which are bytes, keep theirs. Unknown fields are
//! written by number, as other libraries do, and read back so.

mod read;
mod write;

pub(crate) use read::parse;
pub(crate) use write::print;
