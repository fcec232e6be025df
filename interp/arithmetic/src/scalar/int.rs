//! Integer arithmetic of s1 to s64 and u1 to u64: two's complement modulo 2^BITS, with every edge defined.
//!
//! Each operation is written once, on the value extended to 64 bits, and wrapped to the type; a compiler
//! narrows it again to the native width.

use hlo::small_int::{S1, S2, S4, U1, U2, U4};

use super::{Number, Scalar};

/// An integer element type.
pub trait Int: Scalar + Ord {
    /// Width in bits.
    const BITS: u32;
    /// Whether values are two's complement.
    const SIGNED: bool;
    /// The smallest value.
    const MIN: Self;
    /// The largest value.
    const MAX: Self;

    /// The value extended to 64 bits by its sign or by zeros; of `u64` the same bits.
    fn extend(self) -> i64;

    /// The value with these low bits; those above the width are dropped.
    fn wrap(x: i64) -> Self;

    /// The bits, zero-extended.
    #[inline]
    fn bits(self) -> u64 {
        self.extend() as u64 & (u64::MAX >> (64 - Self::BITS))
    }

    /// The magnitude; `abs(MIN)` is MIN.
    #[inline]
    fn abs(self) -> Self {
        if Self::SIGNED { Self::wrap(self.extend().wrapping_abs()) } else { self }
    }

    /// The high half of the product of double width.
    #[inline]
    fn multiply_high(self, rhs: Self) -> Self {
        if Self::SIGNED {
            Self::wrap(((i128::from(self.extend()) * i128::from(rhs.extend())) >> Self::BITS) as i64)
        } else {
            Self::wrap(((u128::from(self.bits()) * u128::from(rhs.bits())) >> Self::BITS) as i64)
        }
    }

    /// Bitwise and.
    #[inline]
    fn and(self, rhs: Self) -> Self {
        Self::wrap(self.extend() & rhs.extend())
    }

    /// Bitwise or.
    #[inline]
    fn or(self, rhs: Self) -> Self {
        Self::wrap(self.extend() | rhs.extend())
    }

    /// Bitwise exclusive or.
    #[inline]
    fn xor(self, rhs: Self) -> Self {
        Self::wrap(self.extend() ^ rhs.extend())
    }

    /// Bitwise complement.
    #[inline]
    fn not(self) -> Self {
        Self::wrap(!self.extend())
    }

    /// Shift left; 0 if the amount is negative or at least the width.
    #[inline]
    fn shift_left(self, amount: Self) -> Self {
        match shift_amount(amount) {
            Some(amount) => Self::wrap(self.extend() << amount),
            None => Self::wrap(0),
        }
    }

    /// Shift right filling with zeros; 0 if the amount is negative or at least the width.
    #[inline]
    fn shift_right_logical(self, amount: Self) -> Self {
        match shift_amount(amount) {
            Some(amount) => Self::wrap((self.bits() >> amount) as i64),
            None => Self::wrap(0),
        }
    }

    /// Shift right filling with the top bit, of an unsigned type too; all top bits if the amount is negative
    /// or at least the width.
    #[inline]
    fn shift_right_arithmetic(self, amount: Self) -> Self {
        let unused = 64 - Self::BITS;
        let signed = (self.extend() << unused) >> unused;
        Self::wrap(signed >> shift_amount(amount).unwrap_or(63))
    }

    /// Zeros above the highest set bit, within the width.
    #[inline]
    fn count_leading_zeros(self) -> Self {
        Self::wrap(i64::from(self.bits().leading_zeros() - (64 - Self::BITS)))
    }

    /// Set bits, within the width.
    #[inline]
    fn popcnt(self) -> Self {
        Self::wrap(i64::from(self.bits().count_ones()))
    }

    /// The larger.
    #[inline]
    fn maximum(self, rhs: Self) -> Self {
        self.max(rhs)
    }

    /// The smaller.
    #[inline]
    fn minimum(self, rhs: Self) -> Self {
        self.min(rhs)
    }

    /// `min(high, max(self, low))`: `high` if `low > high`.
    #[inline]
    fn clamp_between(self, low: Self, high: Self) -> Self {
        self.max(low).min(high)
    }
}

/// The amount of a shift, if it is within the width. A negative one is not.
#[inline]
fn shift_amount<T: Int>(amount: T) -> Option<u32> {
    let amount = amount.extend() as u64;
    (amount < u64::from(T::BITS)).then_some(amount as u32)
}

macro_rules! ints {
    ($($name:ty, $signed:literal, $extend:expr, $wrap:expr;)*) => {$(
        impl Int for $name {
            const BITS: u32 = <$name>::BITS;
            const SIGNED: bool = $signed;
            const MIN: Self = <$name>::MIN;
            const MAX: Self = <$name>::MAX;

            #[inline]
            fn extend(self) -> i64 {
                let extend: fn($name) -> i64 = $extend;
                extend(self)
            }

            #[inline]
            fn wrap(x: i64) -> Self {
                let wrap: fn(i64) -> $name = $wrap;
                wrap(x)
            }
        }

        impl Number for $name {
            #[inline]
            fn zero() -> Self {
                Self::wrap(0)
            }

            #[inline]
            fn one() -> Self {
                Self::wrap(1)
            }

            #[inline]
            fn add(self, rhs: Self) -> Self {
                Self::wrap(self.extend().wrapping_add(rhs.extend()))
            }

            #[inline]
            fn subtract(self, rhs: Self) -> Self {
                Self::wrap(self.extend().wrapping_sub(rhs.extend()))
            }

            #[inline]
            fn multiply(self, rhs: Self) -> Self {
                Self::wrap(self.extend().wrapping_mul(rhs.extend()))
            }

            #[inline]
            fn divide(self, rhs: Self) -> Self {
                let (lhs, rhs) = (self.extend(), rhs.extend());
                Self::wrap(if rhs == 0 {
                    -1
                } else if $signed {
                    lhs.wrapping_div(rhs)
                } else {
                    (lhs as u64 / rhs as u64) as i64
                })
            }

            #[inline]
            fn remainder(self, rhs: Self) -> Self {
                let (lhs, rhs) = (self.extend(), rhs.extend());
                Self::wrap(if rhs == 0 {
                    lhs
                } else if $signed {
                    lhs.wrapping_rem(rhs)
                } else {
                    (lhs as u64 % rhs as u64) as i64
                })
            }

            #[inline]
            fn negate(self) -> Self {
                Self::wrap(self.extend().wrapping_neg())
            }

            /// Modulo 2^BITS; of a negative exponent 1 if the base is 1, otherwise 0 (also for a base of -1).
            fn power(self, exponent: Self) -> Self {
                let (mut base, exponent) = (self.extend(), exponent.extend());
                if $signed && exponent < 0 {
                    return Self::wrap(i64::from(base == 1));
                }
                let (mut exponent, mut result) = (exponent as u64, 1i64);
                while exponent != 0 {
                    if exponent & 1 != 0 {
                        result = result.wrapping_mul(base);
                    }
                    base = base.wrapping_mul(base);
                    exponent >>= 1;
                }
                Self::wrap(result)
            }

            #[inline]
            fn sign(self) -> Self {
                Self::wrap(if $signed { self.extend().signum() } else { i64::from(self.extend() != 0) })
            }
        }
    )*};
}

ints! {
    i8, true, i64::from, |x| x as i8;
    i16, true, i64::from, |x| x as i16;
    i32, true, i64::from, |x| x as i32;
    i64, true, |x| x, |x| x;
    u8, false, i64::from, |x| x as u8;
    u16, false, i64::from, |x| x as u16;
    u32, false, i64::from, |x| x as u32;
    u64, false, |x| x as i64, |x| x as u64;
    S1, true, S1::to_i64, S1::from_i64;
    S2, true, S2::to_i64, S2::from_i64;
    S4, true, S4::to_i64, S4::from_i64;
    U1, false, U1::to_i64, U1::from_i64;
    U2, false, U2::to_i64, U2::from_i64;
    U4, false, U4::to_i64, U4::from_i64;
}
