//! Arithmetic: what one element computes, sums of many, contractions over slices.
//!
//! It knows element types and nothing else of the IR. **Invariant:** results depend on their operands alone,
//! not on the machine or the number of threads; SEMANTICS.md says to the bit what they are.
//!
//! | part | holds |
//! |---|---|
//! | [`scalar`] | every operation on one element, for every element type |
//! | [`sum`] | exact sums |
//! | [`kernels`] | products of matrices, convolutions, reductions and windows over slices |
//! | [`baseline`] | the instruction set that the C parts need |

#![forbid(unsafe_code)]

pub mod baseline;
pub mod kernels;
pub mod scalar;
pub mod sum;
