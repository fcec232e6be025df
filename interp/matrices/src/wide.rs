//! Arithmetic wider than the element types, for what is many operations and one rounding: transforms,
//! factorizations, normalization. Elements of f32 and narrower are computed in `f64`, those of f64 in
//! double-double arithmetic.

use std::ops::{Add, Div, Mul, Neg, Sub};

use hlo_arithmetic::scalar::dd::{Dd, exponent_of, scale};
use hlo_arithmetic::scalar::{Float, Scalar};

/// A number of a field, in wide arithmetic. Infinities do not survive double-double arithmetic (they become
/// NaN): what has to tell them apart computes again with [`Field::Plain`].
pub trait Field:
    Copy
    + Default
    + PartialEq
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
    /// The same field over `f64`.
    type Plain: Field<Plain = Self::Plain>;
    /// Whether the field has an imaginary unit.
    const COMPLEX: bool;

    /// A real number as one of the field.
    fn from_real(x: Self::Real) -> Self;
    /// From parts; a real field drops the second.
    fn from_parts(re: Self::Real, im: Self::Real) -> Self;
    /// One rounding of each part.
    fn plain(self) -> Self::Plain;
    /// Exact.
    fn from_plain(x: Self::Plain) -> Self;
    /// The real part.
    fn real(self) -> Self::Real;
    /// The imaginary part.
    fn imag(self) -> Self::Real;
    /// The conjugate.
    fn conj(self) -> Self;
    /// Times a real number.
    fn scaled(self, x: Self::Real) -> Self;
    /// The square of the modulus.
    fn norm(self) -> Self::Real;

    /// The sum of the magnitudes of the parts.
    #[inline(always)]
    fn size(self) -> Self::Real {
        if Self::COMPLEX { abs(self.real()) + abs(self.imag()) } else { abs(self.real()) }
    }

    /// The modulus, computed without overflow or underflow of squares.
    fn modulus(self) -> Self::Real {
        if !Self::COMPLEX {
            return abs(self.real());
        }
        let largest = abs(self.real()).to_f64().max(abs(self.imag()).to_f64());
        if largest == 0.0 || !largest.is_finite() {
            return self.size();
        }
        let e = exponent_of(largest);
        let down = Self::from_parts(self.real().shifted(-e), self.imag().shifted(-e));
        down.norm().root().shifted(e)
    }

    /// `self - a b`, in f64 with one rounding; the same for `b a`.
    fn minus_product(self, a: Self, b: Self) -> Self;

    /// `self + a b`, in f64 with one rounding.
    #[inline(always)]
    fn plus_product(self, a: Self, b: Self) -> Self {
        self.minus_product(-a, b)
    }

    /// Subtracts from element i of sum j the products of elements i and j of the vectors, one after the
    /// other.
    fn subtract_products<const M: usize, const N: usize>(
        sums: &mut [[Self; M]; N],
        left: &[[Self; M]],
        right: &[[Self; N]],
    ) {
        let mut own = *sums;
        for (left, right) in left.iter().zip(right) {
            for (own, &factor) in own.iter_mut().zip(right) {
                for (x, &l) in own.iter_mut().zip(left) {
                    *x = x.minus_product(l, factor);
                }
            }
        }
        *sums = own;
    }

    /// 1.
    #[inline(always)]
    fn one() -> Self {
        Self::from_real(Self::Real::from_f64(1.0))
    }

    /// Whether it is 0.
    #[inline(always)]
    fn is_zero(self) -> bool {
        self == Self::default()
    }

    /// Whether both parts are finite.
    #[inline(always)]
    fn is_finite(self) -> bool {
        self.real().to_f64().is_finite() && self.imag().to_f64().is_finite()
    }
}

/// A real number in wide arithmetic.
pub trait Real: Field<Real = Self, Plain = f64> + PartialOrd {
    /// A bound of the relative error of an operation.
    const ULP: f64;
    /// Numbers of at least this magnitude have their full precision, and so have their reciprocals.
    const TINY: f64;
    /// Numbers whose exponents are within this of 0 have squares, and products of three, in range and of full
    /// precision.
    const SAFE: i32;

    /// Rounds.
    fn from_dd(x: Dd) -> Self;
    /// Exact.
    fn from_f64(x: f64) -> Self;
    /// One rounding.
    fn to_f64(self) -> f64;
    /// The square root; NaN of a negative number.
    fn root(self) -> Self;
    /// Times 2^e.
    fn shifted(self, e: i32) -> Self;

    /// With the sign of another number; the sign of 0 counts. Without a branch: signs in iterations are
    /// unpredictable.
    fn with_sign_of(self, other: Self) -> Self;
}

macro_rules! real_field {
    ($($t:ty, |$x:ident, $a:ident, $b:ident| $minus_product:expr);*) => {$(
        impl Field for $t {
            type Real = $t;
            type Plain = f64;
            const COMPLEX: bool = false;

            #[inline(always)]
            fn from_parts(re: Self, _: Self) -> Self {
                re
            }

            #[inline(always)]
            fn plain(self) -> f64 {
                Real::to_f64(self)
            }

            #[inline(always)]
            fn from_plain(x: f64) -> Self {
                <$t as Real>::from_f64(x)
            }

            #[inline(always)]
            fn imag(self) -> Self {
                <$t>::default()
            }

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

            #[inline(always)]
            fn minus_product(self, $a: Self, $b: Self) -> Self {
                let $x = self;
                $minus_product
            }
        }
    )*};
}
real_field!(f64, |x, a, b| (-a).mul_add(b, x); Dd, |x, a, b| x - a * b);

impl Real for f64 {
    const ULP: f64 = f64::EPSILON;
    const TINY: f64 = f64::MIN_POSITIVE;
    const SAFE: i32 = 300;

    #[inline]
    fn from_dd(x: Dd) -> Self {
        x.hi
    }

    #[inline]
    fn from_f64(x: f64) -> Self {
        x
    }

    #[inline]
    fn to_f64(self) -> f64 {
        self
    }

    #[inline]
    fn root(self) -> Self {
        self.sqrt()
    }

    #[inline]
    fn shifted(self, e: i32) -> Self {
        scale(self, e)
    }

    #[inline(always)]
    fn with_sign_of(self, other: Self) -> Self {
        self.copysign(other)
    }
}

impl Real for Dd {
    const ULP: f64 = 1.0 / (1u128 << 102) as f64;
    const TINY: f64 = f64::from_bits((1023 - 900) << 52);
    const SAFE: i32 = 300;

    #[inline]
    fn from_dd(x: Dd) -> Self {
        x
    }

    #[inline]
    fn from_f64(x: f64) -> Self {
        Dd::from(x)
    }

    #[inline]
    fn to_f64(self) -> f64 {
        self.hi
    }

    #[inline]
    fn root(self) -> Self {
        self.sqrt()
    }

    #[inline]
    fn shifted(self, e: i32) -> Self {
        Dd::new(scale(self.hi, e), scale(self.lo, e))
    }

    #[inline(always)]
    fn with_sign_of(self, other: Self) -> Self {
        let flip = (self.hi.to_bits() ^ other.hi.to_bits()) & (1 << 63);
        let flipped = |x: f64| f64::from_bits(x.to_bits() ^ flip);
        Dd { hi: flipped(self.hi), lo: flipped(self.lo) }
    }
}

/// A complex number of wide parts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Complex<R> {
    /// The real part.
    pub re: R,
    /// The imaginary part.
    pub im: R,
}

impl<R: Real> Complex<R> {
    /// Times -i.
    #[inline(always)]
    pub fn times_minus_i(self) -> Self {
        Self { re: self.im, im: -self.re }
    }
}

impl<R: Real> Field for Complex<R> {
    type Real = R;
    type Plain = Complex<f64>;
    const COMPLEX: bool = true;

    #[inline(always)]
    fn from_parts(re: R, im: R) -> Self {
        Self { re, im }
    }

    #[inline(always)]
    fn plain(self) -> Complex<f64> {
        Complex { re: self.re.to_f64(), im: self.im.to_f64() }
    }

    #[inline(always)]
    fn from_plain(x: Complex<f64>) -> Self {
        Self { re: R::from_f64(x.re), im: R::from_f64(x.im) }
    }

    #[inline(always)]
    fn imag(self) -> R {
        self.im
    }

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

    #[inline(always)]
    fn minus_product(self, a: Self, b: Self) -> Self {
        Self {
            re: self.re.minus_product(a.re, b.re).minus_product(-a.im, b.im),
            im: self.im - (a.re * b.im + a.im * b.re),
        }
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
    #[inline]
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
pub fn abs<R: Real>(x: R) -> R {
    x.with_sign_of(R::one())
}

/// The greater of two real numbers; the first if they are none.
#[inline(always)]
pub fn larger<R: Real>(a: R, b: R) -> R {
    if b > a { b } else { a }
}

/// The smaller one.
#[inline(always)]
pub fn smaller<R: Real>(a: R, b: R) -> R {
    if b < a { b } else { a }
}

/// An element type and the arithmetic that is wider.
pub trait Widened: Scalar {
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

            #[inline]
            fn widen(self) -> $wide {
                <$wide as Real>::from_f64(Float::to_f64(self))
            }

            #[inline]
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

            #[inline]
            fn widen(self) -> Self::Wide {
                Complex { re: self.re.widen(), im: self.im.widen() }
            }

            #[inline]
            fn narrow(x: Self::Wide) -> Self {
                hlo::num_complex::Complex::new(<$t as Widened>::narrow(x.re), <$t as Widened>::narrow(x.im))
            }
        }
    )*};
}
widened_complex!(f32, f64);
