//! Elementary functions against values computed with mpmath by `data/make_scalar_tables.py`: every operand of
//! the narrow types (as hashes of all results), points of f32, f64, c64 and c128. All results are compared
//! bit for bit.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use half::{bf16, f16};
use hlo::small_float::*;
use hlo_arithmetic::scalar::{ComplexNumber, Elementary, Float};
use num_complex::Complex;

const POINTS: &str = include_str!("data/elementary_points.txt");
const HASHES: &str = include_str!("data/elementary_hashes.txt");

fn unary<T: Elementary>(function: &str) -> Option<fn(T) -> T> {
    Some(match function {
        "exponential" => T::exponential,
        "exponential_minus_one" => T::exponential_minus_one,
        "log" => T::log,
        "log_plus_one" => T::log_plus_one,
        "sine" => T::sine,
        "cosine" => T::cosine,
        "tan" => T::tan,
        "tanh" => T::tanh,
        "sinh" => T::sinh,
        "cosh" => T::cosh,
        "asin" => T::asin,
        "acos" => T::acos,
        "asinh" => T::asinh,
        "acosh" => T::acosh,
        "atanh" => T::atanh,
        "sqrt" => T::sqrt,
        "rsqrt" => T::rsqrt,
        "cbrt" => T::cbrt,
        "logistic" => T::logistic,
        "sign" => T::sign,
        _ => return None,
    })
}

fn binary<T: Elementary>(function: &str) -> Option<fn(T, T) -> T> {
    Some(match function {
        "atan2" => T::atan2,
        "power" => T::power,
        "remainder" => T::remainder,
        "multiply" => T::multiply,
        "divide" => T::divide,
        _ => return None,
    })
}

fn real_unary<T: Elementary + Float>(function: &str) -> Option<fn(T) -> T> {
    if function == "erf" { Some(T::erf) } else { unary(function) }
}

fn real_binary<T: Elementary + Float>(function: &str) -> Option<fn(T, T) -> T> {
    if function == "hypot" { Some(T::hypot) } else { binary(function) }
}

fn parse<T: Float>(word: &str) -> T {
    match word {
        "nan" => T::NAN,
        bits => T::from_raw(u64::from_str_radix(bits, 16).expect("hexadecimal")),
    }
}

fn check_real_point<T: Elementary + Float>(line: &str, function: &str, words: &[&str]) {
    let values: Vec<T> = words.iter().map(|word| parse(word)).collect();
    let (got, expected) = match values[..] {
        [x, y] => (real_unary(function).expect("a unary function")(x), y),
        [a, b, y] => (real_binary(function).expect("a binary function")(a, b), y),
        _ => panic!("malformed: {line}"),
    };
    assert_eq!(got.to_raw(), expected.to_raw(), "{line}: {got:?} instead of {expected:?}");
}

fn check_complex_point<T>(line: &str, function: &str, words: &[&str], wrong: &mut Vec<String>)
where
    T: ComplexNumber + Elementary,
{
    let parts: Vec<T::Part> = words.iter().map(|word| parse(word)).collect();
    let z = |i: usize| T::from_parts(parts[2 * i], parts[2 * i + 1]);
    let got = match parts.len() {
        4 => unary(function).expect("a unary function")(z(0)),
        6 => binary(function).expect("a binary function")(z(0), z(1)),
        _ => panic!("malformed: {line}"),
    };
    let expected = z(parts.len() / 2 - 1);
    for (got, expected) in [(got.real(), expected.real()), (got.imag(), expected.imag())] {
        // mpmath has no signed zeros.
        let both_zero = got.to_f64() == 0.0 && expected.to_f64() == 0.0;
        if got.to_raw() != expected.to_raw() && !both_zero {
            wrong.push(format!("{line}: {got:?} instead of {expected:?}"));
        }
    }
}

#[test]
fn points() {
    let (mut count, mut wrong) = (0, Vec::new());
    for line in POINTS.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [function, ty, ref rest @ ..] = words[..] else { panic!("malformed: {line}") };
        match ty {
            "f32" => check_real_point::<f32>(line, function, rest),
            "f64" => check_real_point::<f64>(line, function, rest),
            "c64" => check_complex_point::<Complex<f32>>(line, function, rest, &mut wrong),
            "c128" => check_complex_point::<Complex<f64>>(line, function, rest, &mut wrong),
            _ => panic!("malformed: {line}"),
        }
        count += 1;
    }
    assert!(count > 6000, "the table is whole");
    assert!(wrong.is_empty(), "parts of complex results:\n{}", wrong.join("\n"));
}

fn hash<T: Elementary + Float>(function: fn(T) -> T) -> u64 {
    let mut state = 0xcbf2_9ce4_8422_2325u64;
    for bits in 0..1u64 << T::BITS {
        let result = function(T::from_raw(bits)).to_raw();
        for byte in &result.to_le_bytes()[..T::BITS.div_ceil(8) as usize] {
            state = (state ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
    state
}

#[test]
fn every_operand_of_narrow_types() {
    let mut count = 0;
    for line in HASHES.lines() {
        let [function, ty, expected] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("malformed: {line}")
        };
        macro_rules! dispatch {
            ($($name:literal $type:ident)*) => {
                match ty {
                    $($name => hash::<$type>(real_unary(function).expect("a unary function")),)*
                    _ => panic!("malformed: {line}"),
                }
            };
        }
        let got = dispatch! {
            "f16" f16 "bf16" bf16 "f8e5m2" F8E5M2 "f8e4m3" F8E4M3 "f8e4m3fn" F8E4M3FN "f8e4m3b11fnuz" F8E4M3B11FNUZ
            "f8e3m4" F8E3M4 "f8e5m2fnuz" F8E5M2FNUZ "f8e4m3fnuz" F8E4M3FNUZ "f8e8m0fnu" F8E8M0FNU "f4e2m1fn" F4E2M1FN
            "f6e3m2fn" F6E3M2FN "f6e2m3fn" F6E2M3FN
        };
        assert_eq!(format!("{got:016x}"), expected, "{line}");
        count += 1;
    }
    assert_eq!(count, 13 * 20);
}
