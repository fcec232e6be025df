//! Arithmetic wider than the element types, for what is many operations and one rounding: transforms, factorizations,
//! normalization. Elements of f32 and narrower are computed in `f64`, those of f64 in double-double arithmetic.

use std::ops::{Add, Div, Mul, Neg, Sub};

use crate::scalar::dd::Dd;
use crate::scalar::{Float, Scalar};

/// A number of a field, in wide arithmetic.
pub(super) trait Field:
    Copy
    + Default
    + Send
    + Sync
    + std::fmt::Debug
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    /// Its real numbers.
    type Real: Real;

    /// A real number as one of the field.
    fn from_real(x: Self::Real) -> Self;
    /// The real part.
    fn real(self) -> Self::Real;
    /// The conjugate.
    fn conj(self) -> Self;
    /// Times a real number.
    fn scaled(self, x: Self::Real) -> Self;
    /// The square of the modulus.
    fn norm(self) -> Self::Real;
}

/// A real number in wide arithmetic.
pub(super) trait Real: Field<Real = Self> + PartialOrd {
    /// Rounds.
    fn from_dd(x: Dd) -> Self;
    /// Exact.
    fn from_f64(x: f64) -> Self;
    /// One rounding.
    fn to_f64(self) -> f64;
    /// The square root; NaN of a negative number.
    fn root(self) -> Self;
}

macro_rules! real_field {
    ($($t:ty),*) => {$(
        impl Field for $t {
            type Real = $t;

            #[inline(always)]
            fn from_real(x: Self) -> Self {
                x
            }

            #[inline(always)]
            fn real(self) -> Self {
                self
            }

            #[inline(always)]
            fn conj(self) -> Self {
                self
            }

            #[inline(always)]
            fn scaled(self, x: Self) -> Self {
                self * x
            }

            #[inline(always)]
            fn norm(self) -> Self {
                self * self
            }
        }
    )*};
}
real_field!(f64, Dd);

impl Real for f64 {
    fn from_dd(x: Dd) -> Self {
        x.hi
    }

    fn from_f64(x: f64) -> Self {
        x
    }

    fn to_f64(self) -> f64 {
        self
    }

    fn root(self) -> Self {
        self.sqrt()
    }
}

impl Real for Dd {
    fn from_dd(x: Dd) -> Self {
        x
    }

    fn from_f64(x: f64) -> Self {
        Dd::from(x)
    }

    fn to_f64(self) -> f64 {
        self.hi
    }

    fn root(self) -> Self {
        self.sqrt()
    }
}

impl PartialOrd for Dd {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        match self.hi.partial_cmp(&other.hi)? {
            std::cmp::Ordering::Equal => self.lo.partial_cmp(&other.lo),
            order @ (std::cmp::Ordering::Less | std::cmp::Ordering::Greater) => Some(order),
        }
    }
}

/// A complex number of wide parts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Complex<R> {
    pub(super) re: R,
    pub(super) im: R,
}

impl<R: Real> Complex<R> {
    /// Times -i.
    #[inline(always)]
    pub(super) fn turned(self) -> Self {
        Self { re: self.im, im: -self.re }
    }
}

impl<R: Real> Field for Complex<R> {
    type Real = R;

    #[inline(always)]
    fn from_real(re: R) -> Self {
        Self { re, im: R::default() }
    }

    #[inline(always)]
    fn real(self) -> R {
        self.re
    }

    #[inline(always)]
    fn conj(self) -> Self {
        Self { re: self.re, im: -self.im }
    }

    #[inline(always)]
    fn scaled(self, x: R) -> Self {
        Self { re: self.re * x, im: self.im * x }
    }

    #[inline(always)]
    fn norm(self) -> R {
        self.re * self.re + self.im * self.im
    }
}

impl<R: Real> Add for Complex<R> {
    type Output = Self;

    #[inline(always)]
    fn add(self, b: Self) -> Self {
        Self { re: self.re + b.re, im: self.im + b.im }
    }
}

impl<R: Real> Sub for Complex<R> {
    type Output = Self;

    #[inline(always)]
    fn sub(self, b: Self) -> Self {
        Self { re: self.re - b.re, im: self.im - b.im }
    }
}

impl<R: Real> Mul for Complex<R> {
    type Output = Self;

    #[inline(always)]
    fn mul(self, b: Self) -> Self {
        Self { re: self.re * b.re - self.im * b.im, im: self.re * b.im + self.im * b.re }
    }
}

impl<R: Real> Div for Complex<R> {
    type Output = Self;

    /// By Smith's method, which does not overflow where the quotient does not.
    fn div(self, b: Self) -> Self {
        if abs(b.re) >= abs(b.im) {
            let ratio = b.im / b.re;
            let bottom = b.re + b.im * ratio;
            Self { re: (self.re + self.im * ratio) / bottom, im: (self.im - self.re * ratio) / bottom }
        } else {
            let ratio = b.re / b.im;
            let bottom = b.re * ratio + b.im;
            Self { re: (self.re * ratio + self.im) / bottom, im: (self.im * ratio - self.re) / bottom }
        }
    }
}

impl<R: Real> Neg for Complex<R> {
    type Output = Self;

    #[inline(always)]
    fn neg(self) -> Self {
        Self { re: -self.re, im: -self.im }
    }
}

/// The magnitude of a real number.
#[inline(always)]
pub(super) fn abs<R: Real>(x: R) -> R {
    if x.to_f64().is_sign_negative() { -x } else { x }
}

/// An element type and the arithmetic that is wider.
pub(super) trait Widened: Scalar {
    /// That arithmetic.
    type Wide: Field;

    /// Exact.
    fn widen(self) -> Self::Wide;
    /// One rounding; NaN is canonical.
    fn narrow(x: Self::Wide) -> Self;
}

macro_rules! widened {
    ($($t:ty => $wide:ty),*) => {$(
        impl Widened for $t {
            type Wide = $wide;

            fn widen(self) -> $wide {
                <$wide as Real>::from_f64(Float::to_f64(self))
            }

            fn narrow(x: $wide) -> Self {
                <$t as Scalar>::from_f64(Real::to_f64(x))
            }
        }
    )*};
}
widened!(
    hlo::half::f16 => f64, hlo::half::bf16 => f64, f32 => f64, f64 => Dd,
    hlo::small_float::F8E5M2 => f64, hlo::small_float::F8E4M3 => f64, hlo::small_float::F8E4M3FN => f64,
    hlo::small_float::F8E4M3B11FNUZ => f64, hlo::small_float::F8E3M4 => f64, hlo::small_float::F8E5M2FNUZ => f64,
    hlo::small_float::F8E4M3FNUZ => f64, hlo::small_float::F8E8M0FNU => f64, hlo::small_float::F4E2M1FN => f64,
    hlo::small_float::F6E3M2FN => f64, hlo::small_float::F6E2M3FN => f64
);

macro_rules! widened_complex {
    ($($t:ty),*) => {$(
        impl Widened for hlo::num_complex::Complex<$t> {
            type Wide = Complex<<$t as Widened>::Wide>;

            fn widen(self) -> Self::Wide {
                Complex { re: self.re.widen(), im: self.im.widen() }
            }

            fn narrow(x: Self::Wide) -> Self {
                hlo::num_complex::Complex::new(<$t as Widened>::narrow(x.re), <$t as Widened>::narrow(x.im))
            }
        }
    )*};
}
widened_complex!(f32, f64);
