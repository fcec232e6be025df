//! The elementary functions: of real types correctly rounded, of complex types see [`super::complex_math`].
//!
//! Invariant: for f32 and f64 each result is the value of the function rounded once, to nearest (CORE-MATH,
//! which proves it; `sqrt` by IEEE 754), with one exception: `logistic` is evaluated to a relative error
//! below 2^-95 and rounded, so it is correctly rounded unless the exact value is that close to the middle
//! between two numbers. Narrower types take the correctly rounded f64 value and round it again. That is wrong
//! only where the f64 value is a midpoint of the narrow type although the exact value is not; a test of every
//! operand shows that no unary function of f16, bf16 or a smaller type meets that. (The steps of `f8e8m0fnu`
//! are no rounding to nearest: for it the f64 value is part of the definition.)
//!
//! NaN results are canonical. Poles and zeros are those of IEEE 754 section 9.2: log(±0) = -inf, rsqrt(±0) =
//! ±inf, rsqrt(-1) = NaN, and so on.

use half::{bf16, f16};
use hlo::small_float::{
    F4E2M1FN, F6E2M3FN, F6E3M2FN, F8E3M4, F8E4M3, F8E4M3B11FNUZ, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ,
    F8E8M0FNU, Specials,
};

use super::{
    Float, Number, Scalar,
    dd::{Dd, Wide, power_of_two},
    dd_math,
    float::canonical,
};

/// Calls `$then!` with `$args` and the table of unary functions: method, function of f64, function of f32.
macro_rules! unary_functions {
    ($then:ident $($args:tt)*) => {
        $then! {
            [$($args)*]
            /// e^x.
            exponential = exp expf;
            /// e^x - 1, accurate near 0.
            exponential_minus_one = expm1 expm1f;
            /// Natural logarithm.
            log = log logf;
            /// ln(1 + x), accurate near 0.
            log_plus_one = log1p log1pf;
            /// Sine of an angle in radians.
            sine = sin sinf;
            /// Cosine of an angle in radians.
            cosine = cos cosf;
            /// Tangent of an angle in radians.
            tan = tan tanf;
            /// Hyperbolic tangent.
            tanh = tanh tanhf;
            /// Hyperbolic sine.
            sinh = sinh sinhf;
            /// Hyperbolic cosine.
            cosh = cosh coshf;
            /// Inverse sine.
            asin = asin asinf;
            /// Inverse cosine.
            acos = acos acosf;
            /// Inverse hyperbolic sine.
            asinh = asinh asinhf;
            /// Inverse hyperbolic cosine.
            acosh = acosh acoshf;
            /// Inverse hyperbolic tangent.
            atanh = atanh atanhf;
            /// Square root.
            sqrt = sqrt sqrtf;
            /// 1 / sqrt(x) with one rounding.
            rsqrt = rsqrt rsqrtf;
            /// Cube root; of a complex number the principal one.
            cbrt = cbrt cbrtf;
        }
    };
}

macro_rules! declare {
    ([] $($(#[$doc:meta])* $method:ident = $f64:ident $f32:ident;)*) => {
        /// Functions that real and complex floating-point types have, named as opcodes.
        pub trait Elementary: Number {
            $($(#[$doc])* fn $method(self) -> Self;)*

            /// 1 / (1 + e^-x).
            fn logistic(self) -> Self;

            /// The angle of the point (x, y), for `self` = y.
            fn atan2(self, x: Self) -> Self;
        }
    };
}

unary_functions!(declare);

/// One implementation per type: through its own functions (`own`), or through those of f64 and one more
/// rounding.
macro_rules! implement {
    ([own f64 $logistic:ident $atan2:ident] $($(#[$doc:meta])* $method:ident = $f64:ident $f32:ident;)*) => {
        implement!(@own f64 $logistic $atan2 $($method $f64)*);
    };
    ([own f32 $logistic:ident $atan2:ident] $($(#[$doc:meta])* $method:ident = $f64:ident $f32:ident;)*) => {
        implement!(@own f32 $logistic $atan2 $($method $f32)*);
    };
    (@own $name:ident $logistic:ident $atan2:ident $($method:ident $function:ident)*) => {
        impl Elementary for $name {
            $(
                #[inline]
                fn $method(self) -> Self {
                    canonical(functions::$function(self))
                }
            )*

            fn logistic(self) -> Self {
                $logistic(self)
            }

            #[inline]
            fn atan2(self, x: Self) -> Self {
                canonical(core_math::$atan2(self, x))
            }
        }
    };
    ([narrow $name:ident] $($(#[$doc:meta])* $method:ident = $f64:ident $f32:ident;)*) => {
        impl Elementary for $name {
            $(
                #[inline]
                fn $method(self) -> Self {
                    <Self as Scalar>::from_f64(functions::$f64(self.carrier()))
                }
            )*

            fn logistic(self) -> Self {
                logistic_narrow(self)
            }

            #[inline]
            fn atan2(self, x: Self) -> Self {
                <Self as Scalar>::from_f64(core_math::atan2(self.carrier(), x.carrier()))
            }
        }
    };
}

unary_functions!(implement own f64 logistic_f64 atan2);
unary_functions!(implement own f32 logistic_narrow atan2f);
unary_functions!(implement narrow f16);
unary_functions!(implement narrow bf16);
unary_functions!(implement narrow F8E5M2);
unary_functions!(implement narrow F8E4M3);
unary_functions!(implement narrow F8E4M3FN);
unary_functions!(implement narrow F8E4M3B11FNUZ);
unary_functions!(implement narrow F8E3M4);
unary_functions!(implement narrow F8E5M2FNUZ);
unary_functions!(implement narrow F8E4M3FNUZ);
unary_functions!(implement narrow F8E8M0FNU);
unary_functions!(implement narrow F4E2M1FN);
unary_functions!(implement narrow F6E3M2FN);
unary_functions!(implement narrow F6E2M3FN);

/// CORE-MATH, and the hardware's square root, which IEEE 754 defines.
mod functions {
    pub(super) use core_math::{
        acos, acosf, acosh, acoshf, asin, asinf, asinh, asinhf, atanh, atanhf, cbrt, cbrtf, cos, cosf, cosh,
        coshf, exp, expf, expm1, expm1f, log, log1p, log1pf, logf, rsqrt, rsqrtf, sin, sinf, sinh, sinhf,
        tan, tanf, tanh, tanhf,
    };

    #[inline]
    pub(super) fn sqrt(x: f64) -> f64 {
        x.sqrt()
    }

    #[inline]
    pub(super) fn sqrtf(x: f32) -> f32 {
        x.sqrt()
    }
}

/// x^y of f64, correctly rounded.
#[inline]
pub(super) fn power(x: f64, y: f64) -> f64 {
    Number::power(x, y)
}

/// Evaluated in f64, and in double-double where the error of that does not leave the rounding certain.
fn logistic_narrow<T: Float>(x: T) -> T {
    let wide = x.to_f64();
    if T::SPECIALS == Specials::Scale {
        return T::from_f64(logistic_f64(wide));
    }
    // exp, the sum and the quotient err by half an ulp each, and the error of exp counts at most once: 2^-51.
    let approximate = 1.0 / (1.0 + core_math::exp(-wide));
    let margin = approximate * power_of_two(-50);
    let (low, high) = (T::from_f64(approximate - margin), T::from_f64(approximate + margin));
    if low.to_raw() == high.to_raw() { low } else { T::from_f64(logistic_wide(wide).to_odd_f64()) }
}

fn logistic_f64(x: f64) -> f64 {
    logistic_wide(x).to_f64()
}

/// With a relative error below 2^-95.
fn logistic_wide(x: f64) -> Wide {
    if x.is_nan() {
        return Wide::from(x);
    }
    if x > 80.0 {
        // 1 - e^-x, where e^-x is beyond 2^-106: anything between the last number and 1 rounds alike.
        return Wide::from(Dd::new(1.0, -power_of_two(-110)));
    }
    let exp = dd_math::exp(Dd::from(x.clamp(-2000.0, 80.0)));
    if x < -80.0 {
        return exp; // e^x (1 - e^x + ...)
    }
    let exp = exp.to_dd();
    if x >= 0.0 {
        // Divide by the larger term.
        Wide::from(Dd::ONE / (Dd::ONE + Dd::ONE / exp))
    } else {
        Wide::from(exp / (Dd::ONE + exp))
    }
}
