//! Complex arithmetic: exactness of products, special values by C99 Annex G, branch cuts. Ordinary points are
//! in `scalar_elementary.rs`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use hlo_arithmetic::scalar::{ComplexNumber, Elementary, Number};
use num_complex::Complex;

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

fn c(re: f64, im: f64) -> Complex<f64> {
    Complex::new(re, im)
}

/// Equal with the signs of zeros; every NaN must be the canonical one.
fn same(got: Complex<f64>, expected: Complex<f64>, what: &str) {
    let bits = |x: f64| if x.is_nan() { 0x7ff8_0000_0000_0000 } else { x.to_bits() };
    for (got, expected) in [(got.re, expected.re), (got.im, expected.im)] {
        assert_eq!(got.to_bits(), bits(expected), "{what}: {got:?} instead of {expected:?}");
    }
}

#[test]
fn products_round_once() {
    // Both products of the real part round to 1; the exact difference is 2^-104.
    let (x, y) = (1.0 + f64::EPSILON, 1.0 - f64::EPSILON);
    same(c(x, 1.0).multiply(c(y, 1.0)), c(-f64::powi(2.0, -104), 2.0), "cancellation");
    // Intermediate overflow and underflow.
    same(c(1e200, 1e200).multiply(c(1e200, 1e200)), c(0.0, INF), "overflow of both products");
    same(c(1e-200, 1e-200).multiply(c(1e-200, 0.0)), c(0.0, 0.0), "underflow");
    same(c(f64::MAX, f64::MAX).multiply(c(1.5, 0.5)), c(f64::MAX, INF), "one overflows, the sum does not");
    let min = f64::from_bits(1);
    same(c(min, 0.0).multiply(c(0.75, 0.0)), c(min, 0.0), "a subnormal product rounds");
    // In c64 the exact sum decides, not its f64 value.
    let f = |re: f32, im: f32| Complex::new(re, im);
    let tiny = f32::from_bits(1);
    let got = f(1.0 + f32::EPSILON, tiny).multiply(f(1.0 + f32::EPSILON, -tiny));
    assert_eq!(got.re, 1.0 + 2.0 * f32::EPSILON);
    let third = f(1.0 + 3.0 * f32::EPSILON, 0.0).multiply(f(1.5, 0.0)).re;
    assert_eq!(third, (1.0 + 3.0 * f32::EPSILON) * 1.5);
}

#[test]
fn products_that_are_not_finite_take_the_plain_formula() {
    same(c(INF, 0.0).multiply(c(1.0, 0.0)), c(INF, NAN), "as XLA:CPU, not as Annex G");
    same(c(INF, 1.0).multiply(c(1.0, 1.0)), c(INF, INF), "no NaN arises");
    same(c(NAN, 0.0).multiply(c(1.0, 0.0)), c(NAN, NAN), "a NaN reaches both");
}

#[test]
fn quotients() {
    same(c(1e300, 1e300).divide(c(1e300, 1e300)), c(1.0, 0.0), "no overflow");
    same(c(1e-300, -1e-300).divide(c(1e-300, 1e-300)), c(0.0, -1.0), "no underflow");
    same(c(1.0, 2.0).divide(c(0.0, 0.0)), c(INF, INF), "pole");
    same(c(1.0, -2.0).divide(c(-0.0, 0.0)), c(-INF, INF), "the pole has the sign of the real part");
    same(c(0.0, 0.0).divide(c(0.0, 0.0)), c(NAN, NAN), "0/0");
    same(c(INF, 1.0).divide(c(2.0, 3.0)), c(INF, -INF), "infinite numerator");
    same(c(INF, NAN).divide(c(2.0, 0.0)), c(INF, NAN), "its NaN counts for 0");
    same(c(1.0, 2.0).divide(c(INF, -INF)), c(-0.0, 0.0), "infinite denominator");
    same(c(INF, 0.0).divide(c(INF, 0.0)), c(NAN, NAN), "both");
    same(c(NAN, 1.0).divide(c(1.0, 1.0)), c(NAN, NAN), "NaN");
    same(c(-0.0, -0.0).divide(c(1.0, 0.0)), c(-0.0, -0.0), "a real divisor divides the parts");
}

#[test]
fn sums_modulus_and_sign() {
    same(c(1.0, -0.0).add(c(2.0, -0.0)), c(3.0, -0.0), "add");
    same(c(INF, 1.0).subtract(c(INF, 1.0)), c(NAN, 0.0), "subtract");
    same(c(1.0, -0.0).negate(), c(-1.0, 0.0), "negate");
    assert_eq!(c(3.0, -4.0).modulus(), 5.0);
    assert_eq!(c(NAN, -INF).modulus(), INF);
    assert_eq!(Complex::new(3e38f32, 3e38).modulus(), INF as f32);
    assert_eq!(Complex::new(2e38f32, 2e38).modulus(), 2.828_427e38);
    same(c(3.0, -4.0).sign(), c(0.6, -0.8), "sign");
    same(c(-0.0, 0.0).sign(), c(0.0, 0.0), "sign of 0");
    same(c(INF, 1.0).sign(), c(NAN, 0.0), "sign of an infinity");
    same(c(1.0, 1.0).remainder(c(1.0, 0.0)), c(NAN, NAN), "no remainder");
}

type Unary = fn(Complex<f64>) -> Complex<f64>;
type RealUnary = fn(f64) -> f64;

/// C99 Annex G.6 (and for exponential-minus-one, log-plus-one, rsqrt, logistic what follows from it).
#[test]
fn special_values() {
    let pi = std::f64::consts::PI;
    let exp: Unary = Elementary::exponential;
    let expm1: Unary = Elementary::exponential_minus_one;
    let log: Unary = Elementary::log;
    let log1p: Unary = Elementary::log_plus_one;
    let (sin, cos): (Unary, Unary) = (Elementary::sine, Elementary::cosine);
    let (tan, tanh): (Unary, Unary) = (Elementary::tan, Elementary::tanh);
    let (sinh, cosh): (Unary, Unary) = (Elementary::sinh, Elementary::cosh);
    let (sqrt, rsqrt, cbrt): (Unary, Unary, Unary) = (Elementary::sqrt, Elementary::rsqrt, Elementary::cbrt);
    let (asin, acos): (Unary, Unary) = (Elementary::asin, Elementary::acos);
    let (asinh, acosh, atanh): (Unary, Unary, Unary) =
        (Elementary::asinh, Elementary::acosh, Elementary::atanh);
    let logistic: Unary = Elementary::logistic;
    let table: &[(&str, Unary, Complex<f64>, Complex<f64>)] = &[
        ("acosh, 2z overflows", acosh, c(f64::MAX, -3.625), c(710.475860073944, -2.0164731842721513e-308)),
        ("acosh, 2z overflows", acosh, c(-f64::MAX, 2.0), c(710.475860073944, pi)),
        ("acos, 2z overflows", acos, c(f64::MAX, 0.0), c(0.0, -710.475860073944)),
        ("asin, 2z overflows", asin, c(-f64::MAX, 0.0), c(-pi / 2.0, 710.475860073944)),
        ("asinh, 2z overflows", asinh, c(2.0, -f64::MAX), c(710.475860073944, -pi / 2.0)),
        ("exp", exp, c(0.0, -0.0), c(1.0, -0.0)),
        ("exp", exp, c(-0.0, 0.0), c(1.0, 0.0)),
        ("exp", exp, c(1.0, INF), c(NAN, NAN)),
        ("exp", exp, c(INF, 0.0), c(INF, 0.0)),
        ("exp", exp, c(-INF, 2.0), c(-0.0, 0.0)),
        ("exp", exp, c(INF, 2.0), c(-INF, INF)),
        ("exp", exp, c(-INF, INF), c(0.0, 0.0)),
        ("exp", exp, c(INF, INF), c(INF, NAN)),
        ("exp", exp, c(INF, NAN), c(INF, NAN)),
        ("exp", exp, c(NAN, 0.0), c(NAN, 0.0)),
        ("exp", exp, c(NAN, 1.0), c(NAN, NAN)),
        ("exp, beyond overflow of e^x", exp, c(710.0, pi / 2.0), c(1.3679272698459396e+292, INF)),
        ("expm1", expm1, c(0.0, -0.0), c(0.0, -0.0)),
        ("expm1", expm1, c(-0.0, 0.0), c(-0.0, 0.0)),
        ("expm1", expm1, c(-INF, 0.0), c(-1.0, 0.0)),
        ("expm1", expm1, c(INF, 0.0), c(INF, 0.0)),
        ("log", log, c(-0.0, 0.0), c(-INF, pi)),
        ("log", log, c(0.0, -0.0), c(-INF, -0.0)),
        ("log", log, c(-1.0, -0.0), c(0.0, -pi)),
        ("log", log, c(-1.0, 0.0), c(0.0, pi)),
        ("log", log, c(1.0, 0.0), c(0.0, 0.0)),
        ("log", log, c(-INF, 1.0), c(INF, pi)),
        ("log", log, c(INF, INF), c(INF, pi / 4.0)),
        ("log", log, c(NAN, INF), c(INF, NAN)),
        ("log", log, c(NAN, 1.0), c(NAN, NAN)),
        ("log1p", log1p, c(-1.0, 0.0), c(-INF, 0.0)),
        ("log1p", log1p, c(0.0, -0.0), c(0.0, -0.0)),
        ("log1p", log1p, c(INF, 1.0), c(INF, 0.0)),
        ("log1p, tiny", log1p, c(1e-320, 1e-320), c(1e-320, 1e-320)),
        ("sin", sin, c(0.0, -0.0), c(0.0, -0.0)),
        ("sin", sin, c(0.0, INF), c(0.0, INF)),
        ("sin", sin, c(INF, 1.0), c(NAN, NAN)),
        ("sin", sin, c(INF, 0.0), c(NAN, 0.0)),
        ("cos", cos, c(0.0, 0.0), c(1.0, -0.0)),
        ("cos", cos, c(0.0, INF), c(INF, -0.0)),
        ("sinh", sinh, c(INF, 0.0), c(INF, 0.0)),
        ("sinh", sinh, c(INF, 2.0), c(-INF, INF)),
        ("sinh", sinh, c(INF, INF), c(INF, NAN)),
        ("sinh", sinh, c(0.0, INF), c(0.0, NAN)),
        ("sinh", sinh, c(NAN, -0.0), c(NAN, -0.0)),
        ("cosh", cosh, c(-INF, 0.0), c(INF, -0.0)),
        ("cosh", cosh, c(INF, 2.0), c(-INF, INF)),
        ("cosh", cosh, c(NAN, 0.0), c(NAN, 0.0)),
        ("cosh", cosh, c(INF, NAN), c(INF, NAN)),
        ("tanh", tanh, c(INF, 1.0), c(1.0, 0.0)),
        ("tanh", tanh, c(-INF, 2.0), c(-1.0, -0.0)),
        ("tanh", tanh, c(INF, INF), c(1.0, 0.0)),
        ("tanh", tanh, c(1.0, INF), c(NAN, NAN)),
        ("tanh", tanh, c(NAN, 0.0), c(NAN, 0.0)),
        ("tanh", tanh, c(-0.0, 0.0), c(-0.0, 0.0)),
        ("tan", tan, c(1.0, INF), c(0.0, 1.0)),
        ("tan", tan, c(1.0, -800.0), c(0.0, -1.0)),
        ("tan", tan, c(0.0, 0.0), c(0.0, 0.0)),
        ("sqrt", sqrt, c(-0.0, -0.0), c(0.0, -0.0)),
        ("sqrt", sqrt, c(-4.0, 0.0), c(0.0, 2.0)),
        ("sqrt", sqrt, c(-4.0, -0.0), c(0.0, -2.0)),
        ("sqrt", sqrt, c(3.0, -4.0), c(2.0, -1.0)),
        ("sqrt", sqrt, c(NAN, -INF), c(INF, -INF)),
        ("sqrt", sqrt, c(-INF, 1.0), c(0.0, INF)),
        ("sqrt", sqrt, c(INF, -1.0), c(INF, -0.0)),
        ("sqrt", sqrt, c(-INF, NAN), c(NAN, INF)),
        ("sqrt, largest", sqrt, c(f64::MAX, 0.0), c(1.3407807929942596e154, 0.0)),
        ("rsqrt", rsqrt, c(0.0, 0.0), c(INF, NAN)),
        ("rsqrt", rsqrt, c(4.0, 0.0), c(0.5, -0.0)),
        ("rsqrt", rsqrt, c(-4.0, 0.0), c(0.0, -0.5)),
        ("rsqrt", rsqrt, c(INF, 1.0), c(0.0, -0.0)),
        ("cbrt", cbrt, c(-0.0, 0.0), c(-0.0, 0.0)),
        ("cbrt", cbrt, c(27.0, -0.0), c(3.0, -0.0)),
        ("cbrt", cbrt, c(-8.0, 0.0), c(1.0, 1.7320508075688772)),
        ("cbrt", cbrt, c(INF, NAN), c(NAN, NAN)),
        ("asin", asin, c(2.0, 0.0), c(pi / 2.0, 1.3169578969248168)),
        ("asin", asin, c(2.0, -0.0), c(pi / 2.0, -1.3169578969248168)),
        ("asin", asin, c(0.0, INF), c(0.0, INF)),
        ("acos", acos, c(0.0, 0.0), c(pi / 2.0, -0.0)),
        ("acos", acos, c(-2.0, 0.0), c(pi, -1.3169578969248168)),
        ("acos", acos, c(-INF, 1.0), c(pi, -INF)),
        ("acos", acos, c(INF, INF), c(pi / 4.0, -INF)),
        ("acos", acos, c(0.0, NAN), c(pi / 2.0, NAN)),
        ("asinh", asinh, c(INF, 1.0), c(INF, 0.0)),
        ("asinh", asinh, c(-0.0, 0.0), c(-0.0, 0.0)),
        ("asinh", asinh, c(0.0, 2.0), c(1.3169578969248168, pi / 2.0)),
        ("acosh", acosh, c(-INF, 1.0), c(INF, pi)),
        ("acosh", acosh, c(1.0, 0.0), c(0.0, 0.0)),
        ("acosh", acosh, c(-2.0, -0.0), c(1.3169578969248168, -pi)),
        ("atanh", atanh, c(1.0, 0.0), c(INF, 0.0)),
        ("atanh", atanh, c(INF, -1.0), c(0.0, -pi / 2.0)),
        ("atanh", atanh, c(2.0, -0.0), c(0.5493061443340549, -pi / 2.0)),
        ("atanh", atanh, c(0.0, NAN), c(0.0, NAN)),
        ("logistic", logistic, c(0.0, -0.0), c(0.5, -0.0)),
        ("logistic", logistic, c(INF, 1.0), c(1.0, 0.0)),
        ("logistic", logistic, c(-INF, 2.0), c(-0.0, 0.0)),
        ("logistic", logistic, c(NAN, 1.0), c(NAN, NAN)),
    ];
    for (name, function, z, expected) in table {
        same(function(*z), *expected, &format!("{name} {z:?}"));
    }
}

#[test]
fn powers() {
    let two = c(2.0, 0.0);
    same(c(-2.0, 0.0).power(two), c(4.0, 0.0), "an axis to an integer stays on an axis");
    same(c(0.0, 3.0).power(two), c(-9.0, 0.0), "imaginary axis");
    same(c(1.0, 1.0).power(two), c(0.0, 2.0), "diagonal");
    same(c(1.0, 2.0).power(two), c(-3.0, 4.0), "general");
    same(c(9.0, 0.0).power(c(0.5, 0.0)), c(3.0, 0.0), "real");
    same(c(NAN, INF).power(c(0.0, -0.0)), c(1.0, 0.0), "x^0");
    same(c(1.0, -0.0).power(c(NAN, INF)), c(1.0, 0.0), "1^x");
    same(c(0.0, 0.0).power(two), c(0.0, 0.0), "0^2");
    same(c(0.0, 0.0).power(c(-1.0, 0.0)), c(NAN, NAN), "a pole without direction");
    same(c(INF, 0.0).power(two), c(INF, 0.0), "infinity");
    same(c(INF, 0.0).power(c(-2.0, 0.0)), c(0.0, 0.0), "to a negative power");
    same(c(-INF, 0.0).power(two).power(c(0.0, 0.0)), c(1.0, 0.0), "through infinity");
    same(c(NAN, 1.0).power(two), c(NAN, NAN), "NaN");
    same(c(2.0, 0.0).power(c(1e300, 0.0)), c(INF, 0.0), "overflow");
}

#[test]
fn angles() {
    let zero = c(0.0, 0.0);
    same(c(1.0, 0.0).atan2(c(-1.0, -0.0)), c(2.356194490192345, 0.0), "of real operands the real function");
    same(c(-0.0, 0.0).atan2(c(-1.0, 0.0)), c(-std::f64::consts::PI, 0.0), "with its signs of zero");
    same(zero.atan2(zero), zero, "0, 0");
    same(c(0.0, 1.0).atan2(c(1.0, 0.0)), c(NAN, NAN), "a pole");
    same(c(INF, 1.0).atan2(c(1.0, 0.0)), c(NAN, NAN), "not finite");
}

/// Angles that are small beside 1, correctly rounded (from exact quotients of integers).
#[test]
fn small_angles() {
    for (y, x, angle) in [
        (c(1.0, 0.0), c(1.5286794e38, 8.860329e36), c(6.519691494460114e-39, -3.778857203113896e-40)),
        (
            c(9.313225746154785e-10, 0.0),
            c(1.0, 0.0009765625),
            c(9.313216864379058e-10, -9.094938344120174e-13),
        ),
        (c(3e-9, -7e-8), c(0.3, 0.7), c(-8.293103448275857e-8, -3.9827586206896305e-8)),
        (c(1e-200, 2e-200), c(3.0, -1.0), c(1e-201, 7e-201)),
        (c(1e-10, -1e-10), c(1e300, 1e299), c(8.910891089109e-311, -1.0891089108911e-310)),
        (c(2.5e-7, 1e-9), c(1.0, 100.0), c(3.4996500349965006e-11, -2.4996500349965e-9)),
        // Beyond the cut, however small the quotient: the other root.
        (c(0.4999, -1e4), c(4e-314, 1.7e308), c(std::f64::consts::PI - 5.88e-305, -2.94058823529412e-309)),
        // Too near to the cut for the series.
        (c(1e-9, 1e-9), c(1e-300, 1.0), c(1e-9, -1e-9)),
    ] {
        same(y.atan2(x), angle, &format!("{y} {x}"));
    }
}

/// On the real axis each function is its real part's, where that is defined.
#[test]
fn real_axis() {
    let functions: &[(Unary, RealUnary)] = &[
        (Elementary::exponential, Elementary::exponential),
        (Elementary::exponential_minus_one, Elementary::exponential_minus_one),
        (Elementary::log, Elementary::log),
        (Elementary::log_plus_one, Elementary::log_plus_one),
        (Elementary::sine, Elementary::sine),
        (Elementary::cosine, Elementary::cosine),
        (Elementary::tan, Elementary::tan),
        (Elementary::tanh, Elementary::tanh),
        (Elementary::acosh, Elementary::acosh),
        (Elementary::asin, Elementary::asin),
        (Elementary::sqrt, Elementary::sqrt),
        (Elementary::rsqrt, Elementary::rsqrt),
        (Elementary::logistic, Elementary::logistic),
    ];
    for x in [
        f64::powi(2.0, -53),
        f64::MAX,
        1.0 - f64::EPSILON / 2.0,
        0.3,
        -0.4,
        1.0 + f64::EPSILON,
        12.0,
        -3.0,
        1e-310,
    ] {
        for (complex, real) in functions {
            let (got, expected) = (complex(c(x, 0.0)), real(x));
            assert!(
                expected.is_nan() || got.re.to_bits() == expected.to_bits(),
                "{x}: {got:?} and {expected:?}"
            );
        }
        assert_eq!(c(x.abs(), 0.0).power(c(0.3, 0.0)).re, Number::power(x.abs(), 0.3));
        assert_eq!(c(x.abs(), 0.0).cbrt().re, Elementary::cbrt(x.abs()));
    }
}

#[test]
fn maximum_and_minimum() {
    // Lexicographic, as StableHLO says; -0 and +0 tie and the imaginary parts decide.
    for (a, b, max, min) in [
        (c(1.5, 2.5), c(7.5, 1.5), c(7.5, 1.5), c(1.5, 2.5)),
        (c(1.5, 7.5), c(1.5, 2.5), c(1.5, 7.5), c(1.5, 2.5)),
        (c(0.0, 1.5), c(-0.0, 2.5), c(-0.0, 2.5), c(0.0, 1.5)),
        (c(-0.0, 1.0), c(0.0, 1.0), c(-0.0, 1.0), c(-0.0, 1.0)),
        (c(-INF, 3.0), c(INF, -3.0), c(INF, -3.0), c(-INF, 3.0)),
        (c(NAN, 3.0), c(1.0, 2.0), c(NAN, NAN), c(NAN, NAN)),
        (c(5.0, 3.0), c(1.0, NAN), c(NAN, NAN), c(NAN, NAN)),
    ] {
        same(ComplexNumber::maximum(a, b), max, "maximum");
        same(ComplexNumber::minimum(a, b), min, "minimum");
    }
}
