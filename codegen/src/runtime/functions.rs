//! Run-time support functions that generated code calls, a lane at a time, where it has no code of its own:
//! the interpreter's.
//!
//! `hlo_OPCODE_TYPE`: for `f32` and `f64` from numbers to a number; for `c64` and `c128` from the parts of
//! the operands and the address of the result's two parts (`abs` returns a number). One name is LLVM's own.

use hlo::Opcode;
use hlo::num_complex::Complex;
use hlo_arithmetic::scalar::{ComplexNumber, Elementary, Float, Number, convert};

use super::object::External;

/// The symbol of a function of a type ("f32", "f64", "c64", "c128").
pub fn symbol(opcode: Opcode, ty: &str) -> String {
    format!("hlo_{}_{ty}", opcode.name().replace('-', "_"))
}

/// `f64` to `f16`, rounded once, LLVM's `__truncdfhf2`: called on processors without such an instruction, and
/// where LLVM sees that an `f32` in between changes nothing. An `f16` is returned in the low half of the
/// register of an `f32`.
extern "C" fn truncdfhf2(x: f64) -> f32 {
    f32::from_bits(u32::from(convert::<f64, hlo::half::f16>(x).to_bits()))
}

/// The function of this symbol.
pub(super) fn find(symbol: &str) -> Option<External> {
    if symbol == "__truncdfhf2" {
        return Some(External::new(truncdfhf2 as *const ()));
    }
    let (name, ty) = symbol.strip_prefix("hlo_")?.rsplit_once('_')?;
    match ty {
        "f32" => f32_function(name),
        "f64" => f64_function(name),
        "c64" => c64_function(name),
        "c128" => c128_function(name),
        _ => None,
    }
}

macro_rules! real {
    ($function:ident $ty:ty: unary { $($name:literal $class:ident $method:ident;)* } binary { $($name2:literal $class2:ident $method2:ident;)* }) => {
        fn $function(name: &str) -> Option<External> {
            Some(External::new(match name {
                $($name => {
                    extern "C" fn f(x: $ty) -> $ty {
                        $class::$method(x)
                    }
                    f as *const ()
                })*
                $($name2 => {
                    extern "C" fn f(x: $ty, y: $ty) -> $ty {
                        $class2::$method2(x, y)
                    }
                    f as *const ()
                })*
                _ => return None,
            }))
        }
    };
}

macro_rules! complex {
    ($function:ident $ty:ty: unary { $($name:literal $class:ident $method:ident;)* } binary { $($name2:literal $class2:ident $method2:ident;)* }) => {
        fn $function(name: &str) -> Option<External> {
            Some(External::new(match name {
                "abs" => {
                    extern "C" fn f(re: $ty, im: $ty) -> $ty {
                        ComplexNumber::modulus(Complex::new(re, im))
                    }
                    f as *const ()
                }
                $($name => {
                    unsafe extern "C" fn f(re: $ty, im: $ty, out: *mut Complex<$ty>) {
                        let value = $class::$method(Complex::new(re, im));
                        // SAFETY: generated code passes the address of memory of its own for two parts,
                        // aligned to 64 bytes.
                        unsafe { out.write(value) };
                    }
                    f as *const ()
                })*
                $($name2 => {
                    unsafe extern "C" fn f(a: $ty, b: $ty, c: $ty, d: $ty, out: *mut Complex<$ty>) {
                        let value = $class2::$method2(Complex::new(a, b), Complex::new(c, d));
                        // SAFETY: as above.
                        unsafe { out.write(value) };
                    }
                    f as *const ()
                })*
                _ => return None,
            }))
        }
    };
}

/// The functions of real and complex numbers, and `$more`.
macro_rules! elementary {
    ($kind:ident $function:ident $ty:ty; unary { $($more:tt)* } binary { $($more2:tt)* }) => {
        $kind! { $function $ty:
            unary {
                "acos" Elementary acos;
                "acosh" Elementary acosh;
                "asin" Elementary asin;
                "asinh" Elementary asinh;
                "atanh" Elementary atanh;
                "cbrt" Elementary cbrt;
                "cosine" Elementary cosine;
                "cosh" Elementary cosh;
                "exponential" Elementary exponential;
                "exponential_minus_one" Elementary exponential_minus_one;
                "log" Elementary log;
                "log_plus_one" Elementary log_plus_one;
                "logistic" Elementary logistic;
                "rsqrt" Elementary rsqrt;
                "sine" Elementary sine;
                "sinh" Elementary sinh;
                "sqrt" Elementary sqrt;
                "tan" Elementary tan;
                "tanh" Elementary tanh;
                $($more)*
            }
            binary {
                "atan2" Elementary atan2;
                "power" Number power;
                $($more2)*
            }
        }
    };
}

elementary! { real f32_function f32; unary { "erf" Float erf; } binary {} }
elementary! { real f64_function f64; unary { "erf" Float erf; } binary {} }
elementary! { complex c64_function f32; unary { "sign" Number sign; } binary { "divide" Number divide; "multiply" Number multiply; } }
elementary! { complex c128_function f64; unary { "sign" Number sign; } binary { "divide" Number divide; "multiply" Number multiply; } }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_are_found_by_opcode_and_type() {
        for (opcode, ty, there) in [
            (Opcode::ExponentialMinusOne, "f32", true),
            (Opcode::Erf, "f64", true),
            (Opcode::Erf, "c64", false),
            (Opcode::Divide, "c128", true),
            (Opcode::Add, "f32", false),
            (Opcode::Tanh, "f16", false),
        ] {
            assert_eq!(find(&symbol(opcode, ty)).is_some(), there, "{opcode} {ty}");
        }
        assert!(find("malloc").is_none());
        assert!(find("__truncdfhf2").is_some());
        let half = |x: f64| truncdfhf2(x).to_bits();
        assert_eq!(half(1.5), 0x3e00);
        assert_eq!(half(-0.0), 0x8000);
        // Between two numbers, above the middle by less than an f32 shows.
        assert_eq!(half(1.0 + 2f64.powi(-11) + 2f64.powi(-40)), 0x3c01);
    }
}
