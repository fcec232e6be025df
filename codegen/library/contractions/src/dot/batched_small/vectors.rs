//! Small matrices times vectors of few terms: one element after the other, the vector in registers.

use std::ops::Range;

use super::{BatchedSmall, Extents, Operands};
use crate::dot::step::Number;

/// # Safety
/// As [`BatchedSmall::products`]; there are at most [`super::MAX_REGISTER_TERMS`] terms, and one column.
#[target_feature(enable = "avx512f,fma")]
pub(super) unsafe fn vectors<W: Number>(
    small: &BatchedSmall,
    matrices: Range<usize>,
    operands: Operands<'_, W>,
    to: *mut W,
) {
    // SAFETY: the caller's.
    unsafe {
        match small.extents.k {
            1 => vectors_of::<W, 1>(small, matrices, operands, to),
            2 => vectors_of::<W, 2>(small, matrices, operands, to),
            3 => vectors_of::<W, 3>(small, matrices, operands, to),
            4 => vectors_of::<W, 4>(small, matrices, operands, to),
            5 => vectors_of::<W, 5>(small, matrices, operands, to),
            6 => vectors_of::<W, 6>(small, matrices, operands, to),
            7 => vectors_of::<W, 7>(small, matrices, operands, to),
            _ => vectors_of::<W, 8>(small, matrices, operands, to),
        }
    }
}

#[target_feature(enable = "avx512f,fma")]
#[inline]
unsafe fn vectors_of<W: Number, const K: usize>(
    small: &BatchedSmall,
    matrices: Range<usize>,
    operands: Operands<'_, W>,
    to: *mut W,
) {
    let Extents { m, .. } = small.extents;
    for (number, matrix) in matrices.enumerate() {
        let [a, b] = operands.of(matrix);
        // SAFETY: the caller's.
        let x: [W; K] = std::array::from_fn(|term| unsafe { *b.offset(term as isize * small.right[1]) });
        for row in 0..m {
            let a = a.wrapping_offset(row as isize * small.left[0]);
            let mut sum = W::default();
            for (term, &x) in x.iter().enumerate() {
                // SAFETY: the caller's.
                sum = sum.plus_product(unsafe { *a.offset(term as isize * small.left[1]) }, x);
            }
            // SAFETY: the caller's.
            unsafe { *to.add(number * m + row) = sum };
        }
    }
}
