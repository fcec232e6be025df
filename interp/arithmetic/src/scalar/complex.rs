//! Complex arithmetic of c64 and c128.
//!
//! Invariants: `add`, `subtract` and, for finite operands, each part of `multiply` are the exact values
//! rounded once. `divide` is evaluated to a relative error below 2^-98 in each part and rounded, with
//! scaling, so that no intermediate result over- or underflows. Operands that are not finite follow C99 Annex
//! G in division, and the plain formula, as XLA:CPU, in multiplication. A real divisor divides each part,
//! correctly rounded.

use std::fmt::Debug;

use num_complex::Complex;

use super::{
    Elementary, Float, Number, Scalar, complex_math as wide,
    dd::{Dd, Wide, exponent_of, scale, two_product},
};

/// A complex element type.
pub trait ComplexNumber: Scalar + Number {
    /// The type of its parts.
    type Part: Float + Debug;

    /// From its parts.
    fn from_parts(real: Self::Part, imaginary: Self::Part) -> Self;
    /// The real part.
    fn real(self) -> Self::Part;
    /// The imaginary part.
    fn imag(self) -> Self::Part;

    /// The modulus, correctly rounded; infinite if either part is, even with a NaN.
    fn modulus(self) -> Self::Part {
        self.real().hypot(self.imag())
    }

    /// The one that comes later in lexicographic order of (real, imaginary), in which -0 equals +0; the first
    /// of equals. A NaN part on either side makes both parts of the result NaN.
    fn maximum(self, rhs: Self) -> Self {
        self.lexicographic(rhs, std::cmp::Ordering::Less)
    }

    /// The one that comes earlier; otherwise as [`ComplexNumber::maximum`].
    fn minimum(self, rhs: Self) -> Self {
        self.lexicographic(rhs, std::cmp::Ordering::Greater)
    }

    /// `minimum(high, maximum(self, low))`, in that order of equals: `high` if `low > high`.
    fn clamp_between(self, low: Self, high: Self) -> Self {
        self.maximum(low).minimum(high)
    }

    /// `rhs` if `self` compares to it as `second` says, else `self`.
    fn lexicographic(self, rhs: Self, second: std::cmp::Ordering) -> Self {
        let (a, b) = ((self.real(), self.imag()), (rhs.real(), rhs.imag()));
        if [a.0, a.1, b.0, b.1].iter().any(|x| x.is_nan()) {
            return Self::from_parts(Self::Part::NAN, Self::Part::NAN);
        }
        if a.partial_cmp(&b) == Some(second) { rhs } else { self }
    }
}

/// a*b + c*d for finite operands: the sum with `hi` correctly rounded, at a common scale.
#[inline]
pub(super) fn sum_of_products(a: f64, b: f64, c: f64, d: f64) -> Wide {
    let normal = |x: f64| if x == 0.0 { (x, 0) } else { (scale(x, -exponent_of(x)), exponent_of(x)) };
    let ((a, ea), (b, eb), (c, ec), (d, ed)) = (normal(a), normal(b), normal(c), normal(d));
    let ((h1, l1), (h2, l2)) = (two_product(a, b), two_product(c, d));
    match (h1 == 0.0, h2 == 0.0) {
        (true, true) => return Wide::from(h1 + h2), // with the sign that IEEE 754 gives
        (true, false) => return Wide { value: Dd::new(h2, l2), exponent: ec + ed },
        (false, true) => return Wide { value: Dd::new(h1, l1), exponent: ea + eb },
        (false, false) => {}
    }
    // Far below the last bit of the other only the sign of a product matters: keep it in range.
    const FAR: i32 = -300;
    let e = (ea + eb).max(ec + ed);
    let (down1, down2) = ((ea + eb - e).max(FAR), (ec + ed - e).max(FAR));
    let terms = [scale(h1, down1), scale(l1, down1), scale(h2, down2), scale(l2, down2)];
    Wide { value: Dd::sum(&terms), exponent: e }
}

/// The quotient; see the module's documentation.
pub(super) fn divide(a: Complex<f64>, b: Complex<f64>) -> [Wide; 2] {
    let finite = |z: Complex<f64>| z.re.is_finite() && z.im.is_finite();
    let infinite = |z: Complex<f64>| z.re.is_infinite() || z.im.is_infinite();
    let nan = [Wide::from(f64::NAN); 2];
    if b.re == 0.0 && b.im == 0.0 {
        let infinity = f64::INFINITY.copysign(b.re);
        return [Wide::from(infinity * a.re), Wide::from(infinity * a.im)];
    }
    if finite(a) && finite(b) {
        let square = sum_of_products(b.re, b.re, b.im, b.im);
        return [
            sum_of_products(a.re, b.re, a.im, b.im) / square,
            sum_of_products(a.im, b.re, -a.re, b.im) / square,
        ];
    }
    // C99 Annex G: 1 with the sign for an infinite part, 0 for any other.
    let boxed = |x: f64| if x.is_infinite() { 1f64.copysign(x) } else { 0f64.copysign(canonical_sign(x)) };
    if infinite(a) && finite(b) {
        let (re, im) = (boxed(a.re), boxed(a.im));
        return [
            Wide::from(f64::INFINITY * (re * b.re + im * b.im)),
            Wide::from(f64::INFINITY * (im * b.re - re * b.im)),
        ];
    }
    if finite(a) && infinite(b) {
        let (re, im) = (boxed(b.re), boxed(b.im));
        return [Wide::from(0.0 * (a.re * re + a.im * im)), Wide::from(0.0 * (a.im * re - a.re * im))];
    }
    nan
}

/// The real function's value where a complex function extends it, which is correctly rounded: on the real
/// axis inside its domain. Not at 0, where complex functions have other signs or poles.
fn real_axis<T: Float>(z: Complex<T>, function: impl FnOnce(T) -> T) -> Option<T> {
    if z.im.to_f64() != 0.0 || z.re.to_f64() == 0.0 || !Float::is_finite(z.re) {
        return None;
    }
    let value = function(z.re);
    (!Float::is_nan(value)).then_some(value)
}

/// A NaN has no sign to pass on.
#[inline]
fn canonical_sign(x: f64) -> f64 {
    if x.is_nan() { 0.0 } else { x }
}

macro_rules! complex {
    ($($part:ident $round:ident;)*) => {$(
        impl ComplexNumber for Complex<$part> {
            type Part = $part;

            #[inline]
            fn from_parts(real: $part, imaginary: $part) -> Self {
                Self::new(real, imaginary)
            }

            #[inline]
            fn real(self) -> $part {
                self.re
            }

            #[inline]
            fn imag(self) -> $part {
                self.im
            }
        }

        impl Number for Complex<$part> {
            #[inline]
            fn zero() -> Self {
                Self::new(0.0, 0.0)
            }

            #[inline]
            fn one() -> Self {
                Self::new(1.0, 0.0)
            }

            #[inline]
            fn add(self, rhs: Self) -> Self {
                Self::new(Number::add(self.re, rhs.re), Number::add(self.im, rhs.im))
            }

            #[inline]
            fn subtract(self, rhs: Self) -> Self {
                Self::new(Number::subtract(self.re, rhs.re), Number::subtract(self.im, rhs.im))
            }

            #[inline]
            fn multiply(self, rhs: Self) -> Self {
                let (a, b) = (self.carrier(), rhs.carrier());
                if a.re.is_finite() && a.im.is_finite() && b.re.is_finite() && b.im.is_finite() {
                    let re = sum_of_products(a.re, b.re, -a.im, b.im);
                    let im = sum_of_products(a.re, b.im, a.im, b.re);
                    return Self::new(re.$round(), im.$round());
                }
                Self::new(
                    Number::subtract(self.re * rhs.re, self.im * rhs.im),
                    Number::add(self.re * rhs.im, self.im * rhs.re),
                )
            }

            fn divide(self, rhs: Self) -> Self {
                if rhs.im == 0.0 && rhs.re != 0.0 && rhs.re.is_finite() && self.re.is_finite() && self.im.is_finite() {
                    return Self::new(self.re / rhs.re, self.im / rhs.re);
                }
                let [re, im] = divide(self.carrier(), rhs.carrier());
                Self::new(re.$round(), im.$round())
            }

            /// HLO has none: NaN.
            fn remainder(self, _: Self) -> Self {
                Self::new(<$part as Float>::NAN, <$part as Float>::NAN)
            }

            #[inline]
            fn negate(self) -> Self {
                Self::new(-self.re, -self.im)
            }

            fn power(self, exponent: Self) -> Self {
                let [re, im] = wide::power(self.carrier(), exponent.carrier());
                let re = match real_axis(self, |base| Number::power(base, exponent.re)) {
                    Some(re) if self.re > 0.0 && exponent.im == 0.0 && exponent.re.is_finite() => re,
                    _ => re.$round(),
                };
                Self::new(re, im.$round())
            }

            /// `z / |z|`, each part of it within 2^-98 and rounded; 0 for 0; NaN instead of an infinite part.
            fn sign(self) -> Self {
                let [re, im] = wide::sign(self.carrier());
                Self::new(re.$round(), im.$round())
            }
        }

        complex!(@elementary $part $round
            exponential exponential_minus_one log log_plus_one sine cosine tan tanh sinh cosh asin acos asinh acosh
            atanh sqrt rsqrt logistic);
    )*};
    (@elementary $part:ident $round:ident $($function:ident)*) => {
        impl Elementary for Complex<$part> {
            $(
                fn $function(self) -> Self {
                    let [re, im] = wide::$function(self.carrier());
                    let re = match real_axis(self, <$part as Elementary>::$function) {
                        Some(re) => re,
                        None => re.$round(),
                    };
                    Self::new(re, im.$round())
                }
            )*

            fn cbrt(self) -> Self {
                let [re, im] = wide::cbrt(self.carrier());
                // Of a negative number the principal root is not the real one.
                let re = match real_axis(self, <$part as Elementary>::cbrt) {
                    Some(root) if self.re > 0.0 => root,
                    _ => re.$round(),
                };
                Self::new(re, im.$round())
            }

            fn atan2(self, x: Self) -> Self {
                let [re, im] = wide::atan2(self.carrier(), x.carrier());
                Self::new(re.$round(), im.$round())
            }
        }
    };
}

complex! {
    f32 to_f32;
    f64 to_f64;
}
