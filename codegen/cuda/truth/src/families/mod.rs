//! The cases, one file a family.

pub mod atomic;
pub mod matrix;
pub mod memory;
pub mod single;
pub mod warp;

use crate::case::Case;

/// What cases are made for.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// Results of an instruction of one operand or more, at most: a multiple of 256.
    pub results: usize,
    /// Products of a shape of matrices.
    pub products: usize,
}

impl Scale {
    /// For a device: minutes of one core for the interpreter.
    pub const FULL: Scale = Scale { results: 1 << 16, products: 1536 };
    /// For tests.
    pub const SMALL: Scale = Scale { results: 512, products: 4 };
}

/// Every case.
#[must_use]
pub fn all(scale: Scale) -> Vec<Case> {
    let mut all = single::cases(scale);
    all.extend(matrix::cases(scale));
    all.extend(memory::cases(scale));
    all.extend(atomic::cases(scale));
    // Barriers come last: a kernel that waits forever leaves the device unusable for what is behind it.
    all.extend(warp::cases(scale));
    all
}
