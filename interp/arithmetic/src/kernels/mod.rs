//! Numeric kernels over slices. They know element arithmetic and index arithmetic, and nothing of the IR.
//!
//! | kernel | computes | exact and region | integers |
//! |---|---|---|---|
//! | [`gemm`] | batched matrix product of strided views | [`gemm::real`], [`gemm::complex`] | [`gemm::int`] wraps |
//! | [`conv`] | convolution over N-d windows | [`conv::real`], [`conv::complex`] | [`conv::int`] saturates |
//! | [`reduce`] | sums along an axis of an (outer, reduced, inner) view | [`reduce::real`], [`reduce::complex`] | |
//! | [`window`] | sums of N-d windows, cumulative sums among them | [`window::real`] | |
//!
//! Element types. Narrow floats come in decoded to `f32` (exact) and go out through [`Rounded`], which rounds
//! once into whatever type the caller has; `f64` results need `f64` operands to be quick (`f32` operands are
//! widened first). [`Accumulate::Exact`] gives the correctly rounded exact sum of the terms the caller
//! passes. [`Accumulate::Region`] takes the operands as they are, too: a caller that follows XLA in
//! converting the operands of a dot to the result type first does that before the call.
//!
//! Every kernel gives the same bits on every machine and with any number of threads: exact results because
//! there is only one, region results because each is computed by one thread in a fixed order. Small problems
//! do not touch the pool.
//!
//! A view or shape that does not fit its slices is a bug of the caller, and panics.
//!
//! [`Rounded`]: crate::sum::Rounded
//! [`Accumulate::Exact`]: crate::sum::Accumulate::Exact
//! [`Accumulate::Region`]: crate::sum::Accumulate::Region

use std::ops::{Add, Mul, Sub};

use num_traits::{WrappingAdd, WrappingMul};
use sealed::Exactly;

mod algebra;
pub mod conv;
mod engine;
pub mod gemm;
mod gemv;
pub mod reduce;
#[cfg(test)]
mod tests;
pub mod window;

/// Multiplications (or additions) below which a kernel stays on the calling thread.
const SEQUENTIAL: usize = 1 << 16;

/// A real type that products are made of: `f32` (and every narrower float, decoded) or `f64`.
pub trait Real: Exactly + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> {}

impl Real for f32 {}
impl Real for f64 {}

mod sealed {
    use super::algebra::{Algebra, ExactF32, ExactF64};
    use crate::sum::Term;
    use crate::sum::fast::Total;

    /// How exact sums of products of a type are computed.
    pub trait Exactly: Term {
        /// Exact in `f64` but for the additions.
        const NARROW: bool;
        type Exact: Algebra<In = Self, Sum = Total>;
    }

    impl Exactly for f32 {
        const NARROW: bool = true;
        type Exact = ExactF32;
    }

    impl Exactly for f64 {
        const NARROW: bool = false;
        type Exact = ExactF64;
    }
}

/// A two's complement integer type.
pub trait Integer: Copy + Default + Send + Sync + WrappingAdd + WrappingMul + 'static {
    /// 64 bits of the same signedness.
    type Wide: Integer;

    /// The value in 64 bits.
    fn wide(self) -> Self::Wide;

    /// The nearest value of the type.
    fn saturate(x: Self::Wide) -> Self;
}

macro_rules! integers {
    ($($t:ty => $wide:ty),*) => { $(
        impl Integer for $t {
            type Wide = $wide;

            #[inline(always)]
            fn wide(self) -> $wide {
                <$wide>::from(self)
            }

            #[inline(always)]
            fn saturate(x: $wide) -> $t {
                x.clamp(<$wide>::from(<$t>::MIN), <$wide>::from(<$t>::MAX)) as $t
            }
        }
    )* };
}
integers!(i8 => i64, i16 => i64, i32 => i64, i64 => i64, u8 => u64, u16 => u64, u32 => u64, u64 => u64);
