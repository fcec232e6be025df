//! Functions that generated code calls for numbers that are rare: those of `hlo_codegen::runtime::functions`,
//! by the same names, as symbols.

use hlo_arithmetic::scalar::{ComplexNumber, Elementary, Float, Number};
use num_complex::Complex;

macro_rules! real {
    ($ty:ty: $($name:ident $class:ident $method:ident;)*) => {$(
        #[doc = "Of one number."]
        #[cfg_attr(feature = "symbols", unsafe(no_mangle))]
        pub extern "C" fn $name(x: $ty) -> $ty {
            $class::$method(x)
        }
    )*};
}

macro_rules! real2 {
    ($ty:ty: $($name:ident $class:ident $method:ident;)*) => {$(
        #[doc = "Of two numbers."]
        #[cfg_attr(feature = "symbols", unsafe(no_mangle))]
        pub extern "C" fn $name(x: $ty, y: $ty) -> $ty {
            $class::$method(x, y)
        }
    )*};
}

macro_rules! complex {
    ($ty:ty: $($name:ident $class:ident $method:ident;)*) => {$(
        /// Of a complex number.
        ///
        /// # Safety
        /// There is space for two parts.
        #[cfg_attr(feature = "symbols", unsafe(no_mangle))]
        pub unsafe extern "C" fn $name(re: $ty, im: $ty, out: *mut Complex<$ty>) {
            let value = $class::$method(Complex::new(re, im));
            // SAFETY: by the caller's word; it is aligned to 64 bytes.
            unsafe { out.write(value) };
        }
    )*};
}

macro_rules! complex2 {
    ($ty:ty: $($name:ident $class:ident $method:ident;)*) => {$(
        /// Of two complex numbers.
        ///
        /// # Safety
        /// There is space for two parts.
        #[cfg_attr(feature = "symbols", unsafe(no_mangle))]
        pub unsafe extern "C" fn $name(a: $ty, b: $ty, c: $ty, d: $ty, out: *mut Complex<$ty>) {
            let value = $class::$method(Complex::new(a, b), Complex::new(c, d));
            // SAFETY: by the caller's word; it is aligned to 64 bytes.
            unsafe { out.write(value) };
        }
    )*};
}

macro_rules! modulus {
    ($($name:ident $ty:ty;)*) => {$(
        /// The magnitude of a complex number.
        #[cfg_attr(feature = "symbols", unsafe(no_mangle))]
        pub extern "C" fn $name(re: $ty, im: $ty) -> $ty {
            ComplexNumber::modulus(Complex::new(re, im))
        }
    )*};
}

modulus! { hlo_abs_c64 f32; hlo_abs_c128 f64; }
real! { f32:
    hlo_acos_f32 Elementary acos;
    hlo_acosh_f32 Elementary acosh;
    hlo_asin_f32 Elementary asin;
    hlo_asinh_f32 Elementary asinh;
    hlo_atanh_f32 Elementary atanh;
    hlo_cbrt_f32 Elementary cbrt;
    hlo_cosine_f32 Elementary cosine;
    hlo_cosh_f32 Elementary cosh;
    hlo_exponential_f32 Elementary exponential;
    hlo_exponential_minus_one_f32 Elementary exponential_minus_one;
    hlo_log_f32 Elementary log;
    hlo_log_plus_one_f32 Elementary log_plus_one;
    hlo_logistic_f32 Elementary logistic;
    hlo_rsqrt_f32 Elementary rsqrt;
    hlo_sine_f32 Elementary sine;
    hlo_sinh_f32 Elementary sinh;
    hlo_sqrt_f32 Elementary sqrt;
    hlo_tan_f32 Elementary tan;
    hlo_tanh_f32 Elementary tanh;
    hlo_erf_f32 Float erf;
}
real2! { f32:
    hlo_atan2_f32 Elementary atan2;
    hlo_power_f32 Number power;
}
real! { f64:
    hlo_acos_f64 Elementary acos;
    hlo_acosh_f64 Elementary acosh;
    hlo_asin_f64 Elementary asin;
    hlo_asinh_f64 Elementary asinh;
    hlo_atanh_f64 Elementary atanh;
    hlo_cbrt_f64 Elementary cbrt;
    hlo_cosine_f64 Elementary cosine;
    hlo_cosh_f64 Elementary cosh;
    hlo_exponential_f64 Elementary exponential;
    hlo_exponential_minus_one_f64 Elementary exponential_minus_one;
    hlo_log_f64 Elementary log;
    hlo_log_plus_one_f64 Elementary log_plus_one;
    hlo_logistic_f64 Elementary logistic;
    hlo_rsqrt_f64 Elementary rsqrt;
    hlo_sine_f64 Elementary sine;
    hlo_sinh_f64 Elementary sinh;
    hlo_sqrt_f64 Elementary sqrt;
    hlo_tan_f64 Elementary tan;
    hlo_tanh_f64 Elementary tanh;
    hlo_erf_f64 Float erf;
}
real2! { f64:
    hlo_atan2_f64 Elementary atan2;
    hlo_power_f64 Number power;
}
complex! { f32:
    hlo_acos_c64 Elementary acos;
    hlo_acosh_c64 Elementary acosh;
    hlo_asin_c64 Elementary asin;
    hlo_asinh_c64 Elementary asinh;
    hlo_atanh_c64 Elementary atanh;
    hlo_cbrt_c64 Elementary cbrt;
    hlo_cosine_c64 Elementary cosine;
    hlo_cosh_c64 Elementary cosh;
    hlo_exponential_c64 Elementary exponential;
    hlo_exponential_minus_one_c64 Elementary exponential_minus_one;
    hlo_log_c64 Elementary log;
    hlo_log_plus_one_c64 Elementary log_plus_one;
    hlo_logistic_c64 Elementary logistic;
    hlo_rsqrt_c64 Elementary rsqrt;
    hlo_sine_c64 Elementary sine;
    hlo_sinh_c64 Elementary sinh;
    hlo_sqrt_c64 Elementary sqrt;
    hlo_tan_c64 Elementary tan;
    hlo_tanh_c64 Elementary tanh;
    hlo_sign_c64 Number sign;
}
complex2! { f32:
    hlo_atan2_c64 Elementary atan2;
    hlo_power_c64 Number power;
    hlo_divide_c64 Number divide;
    hlo_multiply_c64 Number multiply;
}
complex! { f64:
    hlo_acos_c128 Elementary acos;
    hlo_acosh_c128 Elementary acosh;
    hlo_asin_c128 Elementary asin;
    hlo_asinh_c128 Elementary asinh;
    hlo_atanh_c128 Elementary atanh;
    hlo_cbrt_c128 Elementary cbrt;
    hlo_cosine_c128 Elementary cosine;
    hlo_cosh_c128 Elementary cosh;
    hlo_exponential_c128 Elementary exponential;
    hlo_exponential_minus_one_c128 Elementary exponential_minus_one;
    hlo_log_c128 Elementary log;
    hlo_log_plus_one_c128 Elementary log_plus_one;
    hlo_logistic_c128 Elementary logistic;
    hlo_rsqrt_c128 Elementary rsqrt;
    hlo_sine_c128 Elementary sine;
    hlo_sinh_c128 Elementary sinh;
    hlo_sqrt_c128 Elementary sqrt;
    hlo_tan_c128 Elementary tan;
    hlo_tanh_c128 Elementary tanh;
    hlo_sign_c128 Number sign;
}
complex2! { f64:
    hlo_atan2_c128 Elementary atan2;
    hlo_power_c128 Number power;
    hlo_divide_c128 Number divide;
    hlo_multiply_c128 Number multiply;
}

#[cfg(test)]
mod tests {
    /// Every function that generated code may call is a symbol here: the names are taken from this file and
    /// asked of the compiler's table, and the other way round.
    #[test]
    fn the_symbols_are_those_that_generated_code_calls() {
        let text = include_str!("functions.rs");
        let here = |name: &str| text.lines().any(|l| l.split([' ', ';']).any(|word| word == name));
        for opcode in hlo::Opcode::ALL {
            for ty in ["f32", "f64", "c64", "c128"] {
                let symbol = hlo_codegen::runtime::functions::symbol(*opcode, ty);
                let wanted = hlo_codegen::runtime::object::externals(&symbol).is_some();
                assert_eq!(wanted, here(&symbol), "{symbol}");
            }
        }
    }
}
