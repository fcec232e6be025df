//! Elementary functions in arbitrary precision, and those of engines checked against them ([`exhaustive`]).
//!
//! The arithmetic is dashu-float's, which shares no code with the interpreter's (CORE-MATH, and double-double
//! arithmetic of our own). **Invariant:** a [`Real`] is the mathematical result: its digits are truncated,
//! and whether that lost anything is known, so rounding it into any element type is one rounding and no
//! guess.

#![forbid(unsafe_code)]

pub mod complex;
pub mod exhaustive;
mod functions;

use dashu_float::round::mode::{HalfEven, Zero};
use dashu_float::{FBig, FpResult};
use dashu_int::UBig;
use dashu_int::ops::BitTest;
use hlo::ElementType;

use hlo_execution::element::Number;

pub use functions::{Functions, binary_opcodes, unary_opcodes};

/// A number of arbitrary precision, truncated where it does not fit.
pub(crate) type Big = FBig<Zero, 2>;

/// A real result, or an infinity or NaN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Real {
    /// No number.
    Nan,
    /// An infinity that is exact, as of `log(0)`.
    Infinite {
        /// Its sign.
        negative: bool,
    },
    /// Zero.
    Zero {
        /// Its sign.
        negative: bool,
    },
    /// Finite, and beyond every element type.
    Huge {
        /// Its sign.
        negative: bool,
    },
    /// Not zero, and below a quarter of the smallest number of every element type.
    Tiny {
        /// Its sign.
        negative: bool,
    },
    /// `significand * 2^exponent`, plus less than one unit of the significand if it is not exact.
    Number {
        /// Its sign.
        negative: bool,
        /// Not 0.
        significand: UBig,
        /// Of the last bit of the significand.
        exponent: i64,
        /// Whether the magnitude is larger than this, by less than one unit of the last bit.
        inexact: bool,
    },
}

impl Real {
    /// Of a float: itself.
    pub fn of(x: f64) -> Real {
        if x.is_nan() {
            return Real::Nan;
        }
        if x.is_infinite() {
            return Real::Infinite { negative: x < 0.0 };
        }
        match Big::try_from(x) {
            Ok(big) if x != 0.0 => Real::from_big(&big, false),
            _ => Real::Zero { negative: x.is_sign_negative() },
        }
    }

    /// Of a number that is not zero.
    fn from_big(big: &Big, inexact: bool) -> Real {
        let (significand, exponent) = big.repr().clone().into_parts();
        let (sign, significand) = significand.into_parts();
        Real::Number {
            negative: sign == dashu_base::Sign::Negative,
            significand,
            exponent: exponent as i64,
            inexact,
        }
    }

    /// Of what an operation gave; `zero_negative` is the sign of a zero.
    fn from_result(result: FpResult<Big>, zero_negative: bool) -> Real {
        match result {
            Ok(rounded) => {
                let inexact = matches!(rounded, dashu_base::Approximation::Inexact(..));
                let value = rounded.value();
                if value.repr().is_infinite() {
                    return Real::Infinite { negative: value.sign() == dashu_base::Sign::Negative };
                }
                if value.repr().significand().is_zero() {
                    return Real::Zero { negative: zero_negative };
                }
                Real::from_big(&value, inexact)
            }
            Err(dashu_float::FpError::Overflow(sign)) => {
                Real::Huge { negative: sign == dashu_base::Sign::Negative }
            }
            Err(dashu_float::FpError::Underflow(sign)) => {
                Real::Tiny { negative: sign == dashu_base::Sign::Negative }
            }
            Err(_) => Real::Nan,
        }
    }

    /// Of a value that is known up to a relative error below `2^-(precision - 16)`. Taken to be exact if it
    /// is that close to a number of few digits: no value of the functions here comes so close to one without
    /// being it.
    fn from_approximation(value: &Big, precision: usize) -> Real {
        if value.repr().significand().is_zero() {
            return Real::Zero { negative: false };
        }
        // Rounded to nearest before the last digits, so that the error cannot cross a short number.
        let rounded = value.clone().with_rounding::<HalfEven>().with_precision(precision - 24).value();
        let (significand, exponent) = rounded.into_repr().into_parts();
        let (sign, magnitude) = significand.into_parts();
        let short = magnitude.bit_len() - magnitude.trailing_zeros().unwrap_or(0) <= 120;
        Real::Number {
            negative: sign == dashu_base::Sign::Negative,
            significand: magnitude,
            exponent: exponent as i64,
            inexact: !short,
        }
    }

    /// The nearest `f64`, ties to even.
    pub fn to_f64(&self) -> f64 {
        self.round(|odd, rest_above_half, rest_is_half| rest_above_half || rest_is_half && odd)
    }

    /// The `f64` next to it whose last bit is 1, or itself if it is one: rounding that into a narrower type
    /// is rounding the number itself.
    pub fn to_odd(&self) -> f64 {
        self.round(|_, _, _| false)
    }

    /// Rounds to f64: `up(last bit is odd, rest is more than half, rest is half)` decides. Where it never
    /// says yes, the last bit is set instead if anything is truncated.
    fn round(&self, up: impl Fn(bool, bool, bool) -> bool) -> f64 {
        let to_odd = !up(true, true, false);
        let sign = |negative: bool, x: f64| if negative { -x } else { x };
        let (negative, significand, exponent, inexact) = match self {
            Real::Nan => return f64::NAN,
            Real::Infinite { negative } => return sign(*negative, f64::INFINITY),
            Real::Zero { negative } => return sign(*negative, 0.0),
            Real::Huge { negative } => {
                return sign(*negative, if to_odd { f64::MAX } else { f64::INFINITY });
            }
            Real::Tiny { negative } => return sign(*negative, if to_odd { f64::from_bits(1) } else { 0.0 }),
            Real::Number { negative, significand, exponent, inexact } => {
                (*negative, significand, *exponent, *inexact)
            }
        };
        let bits = significand.bit_len() as i64;
        // The exponent of the last bit that is kept: 53 bits, or down to the smallest denormal.
        let last = (bits + exponent - 53).max(-1074);
        let cut = last - exponent;
        let (kept, above_half, half, any) = if cut <= 0 {
            (significand << (-cut) as usize, false, false, inexact)
        } else {
            let cut = cut as usize;
            let kept = significand >> cut;
            let first = significand.bit(cut - 1);
            let below = significand.trailing_zeros().is_some_and(|z| z < cut - 1) || inexact;
            (kept, first && below, first && !below, first || below)
        };
        let mut kept = u64::try_from(kept).unwrap_or(u64::MAX);
        if to_odd {
            kept |= u64::from(any);
        } else if up(kept & 1 == 1, above_half, half) {
            kept += 1;
        }
        if kept == 0 {
            return sign(negative, 0.0);
        }
        let top = i64::from(64 - kept.leading_zeros()) + last;
        if top > 1024 {
            return sign(negative, if to_odd { f64::MAX } else { f64::INFINITY });
        }
        // At most 2^53 times a power of two that brings it into range: exact, in two steps for the denormals.
        let magnitude = kept as f64;
        let scaled = if last < -1000 {
            magnitude * 2f64.powi((last + 600) as i32) * 2f64.powi(-600)
        } else {
            magnitude * 2f64.powi(last as i32)
        };
        sign(negative, scaled)
    }

    /// The bits of the element of this type that is the result. `f8e8m0fnu`, whose steps are no rounding to
    /// nearest, gets the nearest f64 converted, which is its definition.
    pub fn bits(&self, ty: ElementType) -> u128 {
        fn narrow<T: Number>(x: f64) -> u128 {
            T::from_f64(x).bits()
        }
        match ty {
            ElementType::F64 => u128::from(self.to_f64().to_bits()),
            ElementType::F8E8M0FNU => narrow::<hlo::small_float::F8E8M0FNU>(self.to_f64()),
            // An exact infinity is not "too large", but every type treats it so.
            _ => hlo::with_element_type!(ty, T => narrow::<T>(self.to_odd())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_themselves_and_halves_round_to_even() {
        for x in [1.0, -0.1, 1e308, 5e-324, 3.7e-310, 2f64.powi(-1022), f64::MAX, 0.0, -0.0, f64::INFINITY] {
            assert_eq!(Real::of(x).to_f64().to_bits(), x.to_bits());
            assert_eq!(Real::of(x).to_odd().to_bits(), x.to_bits());
        }
        let number = |significand: u128, exponent, inexact| Real::Number {
            negative: false,
            significand: UBig::from(significand),
            exponent,
            inexact,
        };
        // 2^53 + 1 is half way.
        assert_eq!(number((1 << 53) + 1, 0, false).to_f64(), 2f64.powi(53));
        assert_eq!(number((1 << 53) + 1, 0, true).to_f64(), 2f64.powi(53) + 2.0);
        assert_eq!(number((1 << 53) + 3, 0, false).to_f64(), 2f64.powi(53) + 4.0);
        // Below the smallest denormal, and half of it.
        assert_eq!(number(1, -1075, false).to_f64(), 0.0);
        assert_eq!(number(1, -1075, true).to_f64(), 5e-324);
        assert_eq!(number(1, -1076, true).to_odd(), 5e-324);
        // The largest number and half a unit more.
        assert_eq!(number((1 << 54) - 1, 970, false).to_f64(), f64::INFINITY);
        assert_eq!(number((1 << 54) - 2, 970, true).to_f64(), f64::MAX);
        // One rounding into f32, where two would go wrong: 1 + 2^-24 + 2^-60.
        let x = number((1 << 60) + (1 << 36) + 1, -60, false);
        assert_eq!(x.bits(ElementType::F32), u128::from(f32::to_bits(1.0 + f32::EPSILON)));
        assert_eq!(x.to_f64() as f32, 1.0);
    }
}
