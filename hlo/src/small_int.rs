//! The integer types narrower than a byte, as newtypes over a byte.
//!
//! Invariant: the byte holds the value itself, sign- or zero-extended, so comparison, hashing and widening
//! are those of the byte. Constructors wrap modulo 2^BITS.

use std::fmt;

macro_rules! small_ints {
    ($($(#[$doc:meta])* $name:ident($text:literal): $bits:literal, $storage:ty;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        pub struct $name($storage);

        impl $name {
            /// Width in bits.
            pub const BITS: u32 = $bits;
            /// The type's name in HLO text.
            pub const NAME: &'static str = $text;
            /// The smallest value.
            pub const MIN: Self = Self(<$storage>::MIN >> (8 - $bits));
            /// The largest value.
            pub const MAX: Self = Self(<$storage>::MAX >> (8 - $bits));

            /// `x` modulo 2^BITS.
            #[inline]
            pub const fn from_i64(x: i64) -> Self {
                Self::from_bits(x as u8)
            }

            /// `x` modulo 2^BITS.
            #[inline]
            pub const fn from_u64(x: u64) -> Self {
                Self::from_bits(x as u8)
            }

            /// The value whose pattern is in the low bits; the others are dropped.
            #[inline]
            pub const fn from_bits(bits: u8) -> Self {
                // Left, then right in the storage type: the right shift extends the sign exactly if there is
                // one.
                Self((bits << (8 - $bits)) as $storage >> (8 - $bits))
            }

            /// The pattern in the low bits, the others zero.
            #[inline]
            pub const fn to_bits(self) -> u8 {
                self.0 as u8 & (0xff >> (8 - $bits))
            }

            /// The value in its storage type.
            #[inline]
            pub const fn get(self) -> $storage {
                self.0
            }

            /// The value, widened.
            #[inline]
            pub const fn to_i64(self) -> i64 {
                self.0 as i64
            }

            /// The value as an unsigned integer, sign-extended first where there is a sign.
            #[inline]
            pub const fn to_u64(self) -> u64 {
                self.0 as u64
            }
        }

        impl From<$name> for $storage {
            fn from(x: $name) -> $storage {
                x.0
            }
        }

        impl From<$name> for i64 {
            fn from(x: $name) -> i64 {
                x.to_i64()
            }
        }

        impl TryFrom<i64> for $name {
            type Error = OutOfRange;

            /// Fails where [`Self::from_i64`] would wrap.
            fn try_from(x: i64) -> Result<Self, OutOfRange> {
                let wrapped = Self::from_i64(x);
                if wrapped.to_i64() == x { Ok(wrapped) } else { Err(OutOfRange { name: Self::NAME }) }
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}_{}", self.0, Self::NAME)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }
    )*};
}

/// A value that a small integer type cannot hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("value is out of range for {name}")]
pub struct OutOfRange {
    name: &'static str,
}

small_ints! {
    /// One bit, two's complement: -1 and 0.
    S1("s1"): 1, i8;
    /// Two bits, two's complement: -2 to 1.
    S2("s2"): 2, i8;
    /// Four bits, two's complement: -8 to 7.
    S4("s4"): 4, i8;
    /// One bit: 0 and 1.
    U1("u1"): 1, u8;
    /// Two bits: 0 to 3.
    U2("u2"): 2, u8;
    /// Four bits: 0 to 15.
    U4("u4"): 4, u8;
}

#[cfg(test)]
mod tests {
    use super::*;

    macro_rules! wraps {
        ($name:ident, $low:literal, $high:literal) => {
            assert_eq!(($name::MIN.to_i64(), $name::MAX.to_i64()), ($low, $high));
            let modulus = 1 << $name::BITS;
            for x in -300i64..300 {
                let expected = (x - $low).rem_euclid(modulus) + $low;
                assert_eq!($name::from_i64(x).to_i64(), expected);
                assert_eq!($name::from_u64(x as u64).to_i64(), expected);
                assert_eq!($name::from_i64(x).to_bits() as i64, x.rem_euclid(modulus));
                assert_eq!($name::from_bits($name::from_i64(x).to_bits()).to_i64(), expected);
                assert_eq!($name::try_from(x).is_ok(), ($low..=$high).contains(&x));
            }
            assert!($name::MIN < $name::MAX);
        };
    }

    #[test]
    fn construction_wraps() {
        wraps!(S1, -1, 0);
        wraps!(S2, -2, 1);
        wraps!(S4, -8, 7);
        wraps!(U1, 0, 1);
        wraps!(U2, 0, 3);
        wraps!(U4, 0, 15);
    }

    #[test]
    fn unsigned_view_extends_the_sign() {
        assert_eq!(S4::from_i64(-3).to_u64(), u64::MAX - 2);
        assert_eq!(U4::from_i64(-3).to_u64(), 13);
    }
}
