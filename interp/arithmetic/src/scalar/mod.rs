//! Scalar arithmetic: what each operation does to one element, for every element type.
//!
//! Invariant: a result here is defined by mathematics and by the element type, never by the host. No function
//! of the platform's libm is called but those that IEEE 754 defines exactly (`fma`, `sqrt`, `fmod`, roundings
//! to integral). SEMANTICS.md states each operation; its tests are in these modules and in
//! `interp/arithmetic/tests/`.
//!
//! | trait | types | operations |
//! |---|---|---|
//! | [`Scalar`] | all 32 | [`convert()`], through a carrier |
//! | [`Number`] | all 32 | add, subtract, multiply, divide, negate, power, sign, remainder |
//! | [`Int`] | s1 to s64, u1 to u64 | bits, shifts, counts, high product, comparison, clamp |
//! | [`Float`] | f4 to f64 | roundings, maximum, minimum, comparison, clamp, erf, reduced precision |
//! | [`ComplexNumber`] | c64, c128 | parts, modulus |
//! | [`Elementary`] | f4 to f64, c64, c128 | exponential, logarithm, trigonometric and hyperbolic functions, roots |
//!
//! Methods are named after opcodes. Call them from code that is generic in the trait: on a concrete `f32` an
//! inherent method of the same name (`tan`, `tanh`, `floor`, ...) would win, and is the host's.
//!
//! NaN: arithmetic gives the canonical NaN (quiet, positive, no payload) of its type. `negate` and `abs` of a
//! real floating-point number are operations on the sign bit and keep the payload, as does conversion of a
//! type to itself.

mod complex;
mod complex_math;
mod constants;
pub mod convert;
pub mod dd;
mod dd_math;
mod float;
mod int;
mod math;
mod precision;
mod trig;

pub use complex::ComplexNumber;
pub use constants::TWO_OVER_PI;
pub use convert::{Carrier, Scalar, convert};
pub use float::{Float, canonical};
pub use int::Int;
pub use math::Elementary;
pub use precision::{reduce_precision, stochastic_convert};

/// Arithmetic that every class of element type has in some form.
///
/// On `pred` it is arithmetic on 0 and 1 with a result of "not zero", as XLA defines it: `add` is or,
/// `multiply` and.
pub trait Number: Scalar {
    /// Zero. In `f8e8m0fnu`, which has none, NaN.
    fn zero() -> Self;
    /// One. In `s1`, where 1 wraps, -1.
    fn one() -> Self;
    /// The sum: correctly rounded, or modulo 2^BITS.
    fn add(self, rhs: Self) -> Self;
    /// The difference: correctly rounded, or modulo 2^BITS.
    fn subtract(self, rhs: Self) -> Self;
    /// The product: correctly rounded (each part, of finite complex numbers), or modulo 2^BITS.
    fn multiply(self, rhs: Self) -> Self;
    /// The quotient: correctly rounded; of integers truncated, x/0 all ones, MIN/-1 = MIN.
    fn divide(self, rhs: Self) -> Self;
    /// The remainder of the truncated quotient, with the sign of the dividend; of integers x%0 = x. A complex
    /// number has none: NaN.
    fn remainder(self, rhs: Self) -> Self;
    /// The additive inverse: of integers modulo 2^BITS; of floats the sign bit flipped.
    fn negate(self) -> Self;
    /// The power. 1^y = x^0 = 1 whatever the other operand.
    fn power(self, exponent: Self) -> Self;
    /// -1, 0 or 1 with the sign of zero kept; of a complex number `z / |z|`, 0 for 0.
    fn sign(self) -> Self;
}

impl Number for bool {
    #[inline]
    fn zero() -> Self {
        false
    }

    #[inline]
    fn one() -> Self {
        true
    }

    #[inline]
    fn add(self, rhs: Self) -> Self {
        self | rhs
    }

    #[inline]
    fn subtract(self, rhs: Self) -> Self {
        self ^ rhs
    }

    #[inline]
    fn multiply(self, rhs: Self) -> Self {
        self & rhs
    }

    #[inline]
    fn divide(self, rhs: Self) -> Self {
        self | !rhs
    }

    #[inline]
    fn remainder(self, rhs: Self) -> Self {
        self & !rhs
    }

    #[inline]
    fn negate(self) -> Self {
        self
    }

    #[inline]
    fn power(self, exponent: Self) -> Self {
        self | !exponent
    }

    #[inline]
    fn sign(self) -> Self {
        self
    }
}
