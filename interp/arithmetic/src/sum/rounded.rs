//! Types that a sum is rounded into.

use super::Long;

/// A real floating-point type that an exact sum is rounded into, to nearest, ties to even, exactly once.
///
/// A narrow type (at most 51 significant bits) implements the three conversions and keeps the provided
/// methods. `from_f64` must be one correct rounding of any `f64`, subnormal results, overflow and infinities
/// included, and give the canonical quiet NaN for every NaN.
pub trait Rounded: Copy + Default + Send + Sync + 'static {
    /// The type needs the full precision of `f64`: plain `f64` accumulation cannot decide a rounding into it.
    const WIDE: bool = false;

    /// One rounding to nearest, ties to even; canonical NaN.
    fn from_f64(x: f64) -> Self;

    /// The value, exactly.
    fn to_f64(self) -> f64;

    /// Whether both are the same bits (so -0 is not +0).
    fn same(self, other: Self) -> bool;

    /// The exact sum, rounded once.
    fn from_long(sum: &Long) -> Self {
        Self::from_f64(sum.to_odd_f64())
    }

    /// The rounding of every real number from `h + low` to `h + high`, if it is the same for all; `h`, `low`
    /// and `high` are finite, and `low <= high`.
    #[inline]
    fn enclosed(h: f64, low: f64, high: f64) -> Option<Self> {
        // The sums round by less than one unit in the last place, which the outward steps make good.
        let (low, high) = (outward(h, low, f64::next_down), outward(h, high, f64::next_up));
        agreed(low, high)
    }
}

/// The rounding of every real number from `low` to `high`, if it is the same for all.
///
/// Rounding is monotone where it gives numbers. In a type without infinities overflow is NaN on both sides of
/// zero (and in `f8e8m0fnu` so are zero and negative numbers), with numbers between: ends that are both NaN
/// decide only on one side.
#[inline]
pub(super) fn agreed<O: Rounded>(low: f64, high: f64) -> Option<O> {
    let value = O::from_f64(low);
    let one_side = || low > 0.0 || high < 0.0;
    // In this order every branch goes one way nearly always, whatever the signs.
    (value.same(O::from_f64(high)) && (!value.to_f64().is_nan() || one_side())).then_some(value)
}

/// `h + x`, moved outward by `step` unless it is exact.
#[inline]
fn outward(h: f64, x: f64, step: fn(f64) -> f64) -> f64 {
    let (sum, error) = super::fast::two_sum(h, x);
    if error == 0.0 { sum } else { step(sum) }
}

impl Rounded for f32 {
    #[inline]
    fn from_f64(x: f64) -> Self {
        crate::scalar::canonical(x as f32) // not a comparison of floats, which LLVM may fold away
    }

    #[inline]
    fn to_f64(self) -> f64 {
        f64::from(self)
    }

    #[inline]
    fn same(self, other: Self) -> bool {
        self.to_bits() == other.to_bits()
    }
}

impl Rounded for f64 {
    const WIDE: bool = true;

    #[inline]
    fn from_f64(x: f64) -> Self {
        crate::scalar::canonical(x)
    }

    #[inline]
    fn to_f64(self) -> f64 {
        self
    }

    #[inline]
    fn same(self, other: Self) -> bool {
        self.to_bits() == other.to_bits()
    }

    fn from_long(sum: &Long) -> Self {
        sum.to_f64()
    }

    #[inline]
    fn enclosed(h: f64, low: f64, high: f64) -> Option<Self> {
        // IEEE addition is the rounding in question, and monotone.
        let value = h + low;
        (value.is_finite() && value.same(h + high)).then_some(value)
    }
}

/// `x` as an `f32` rounded to odd (see [`Long::to_odd_f64`]): one rounding of it to nearest, into any type of
/// at most 22 bits, is one rounding of `x`. `half`'s own conversions from `f64` drop the low 32 bits first
/// and are not.
#[inline]
fn to_odd_f32(x: f64) -> f32 {
    let nearest = x as f32;
    if f64::from(nearest) == x {
        return nearest;
    }
    let bits = nearest.to_bits();
    let toward_zero = if f64::from(nearest).abs() > x.abs() { bits - 1 } else { bits };
    f32::from_bits(toward_zero | 1)
}

macro_rules! halves {
    ($($t:ty),*) => { $(
        impl Rounded for $t {
            #[inline]
            fn from_f64(x: f64) -> Self {
                if x.is_nan() { <$t>::NAN } else { <$t>::from_f32(to_odd_f32(x)) }
            }

            #[inline]
            fn to_f64(self) -> f64 {
                <$t>::to_f64(self)
            }

            #[inline]
            fn same(self, other: Self) -> bool {
                self.to_bits() == other.to_bits()
            }
        }
    )* };
}
halves!(hlo::half::f16, hlo::half::bf16);

macro_rules! small {
    ($($t:ident),*) => { $(
        impl Rounded for hlo::small_float::$t {
            #[inline]
            fn from_f64(x: f64) -> Self {
                Self::from_f64(x)
            }

            #[inline]
            fn to_f64(self) -> f64 {
                self.to_f64()
            }

            #[inline]
            fn same(self, other: Self) -> bool {
                self.to_bits() == other.to_bits()
            }
        }
    )* };
}
small!(
    F8E5M2,
    F8E4M3,
    F8E4M3FN,
    F8E4M3B11FNUZ,
    F8E3M4,
    F8E5M2FNUZ,
    F8E4M3FNUZ,
    F8E8M0FNU,
    F4E2M1FN,
    F6E3M2FN,
    F6E2M3FN
);
