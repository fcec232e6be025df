//! Complex numbers: limits of real parts, choices by flushed comparisons, products that only scale.

use hlo::ArrayLiteral;
use hlo_execution::allowances::Allowances;
use hlo_execution::verdict::{Class, judge};

use crate::common::{certified, one};

const FLUSHED: Allowances = Allowances { flush_denormals: true, ..Allowances::STRICT };

/// The class of a complex result where an engine has `actual`.
fn class(text: &str, inputs: &[&[f32]], allowances: Allowances, actual: (f32, f32)) -> Class {
    let (expected, bounds) = certified(text, inputs, allowances).remove(0);
    let buffer = hlo::Buffer::C64(vec![hlo::num_complex::Complex::new(actual.0, actual.1)]);
    let actual = ArrayLiteral::new(expected.dims.clone(), buffer).unwrap();
    judge(&expected, &actual, &bounds, false).unwrap().class()
}

/// `f` of `a + bi`, where both parts are off by roundings: of `(exp(x) - 1, y)`.
fn of_inexact(f: &str) -> String {
    format!(
        "HloModule m\nENTRY e {{ x = f32[1] parameter(0)\n y = f32[1] parameter(1)\n re = f32[1] exponential-minus-one(x)\n z = c64[1] complex(re, y)\n ROOT r = c64[1] {f}(z) }}"
    )
}

#[test]
fn logarithms_at_their_pole_are_small_or_infinite() {
    // exp(-100) - 1 is -1, or the number next to it.
    let near: [&[f32]; 2] = [&[-100.0], &[0.0]];
    for allowances in [Allowances::STRICT, FLUSHED] {
        let of = |actual| class(&of_inexact("log-plus-one"), &near, allowances, actual);
        assert_eq!(of((f32::NEG_INFINITY, 0.0)), Class::Same);
        assert_eq!(of((-17.0, 0.0)), Class::Undecided);
        assert_eq!(of((0.0, 0.0)), Class::Wrong);
        // Of what is exact, infinite alone.
        let exact = "HloModule m\nENTRY e { x = f32[1] parameter(0)\n y = f32[1] parameter(1)\n z = c64[1] complex(x, y)\n ROOT r = c64[1] log-plus-one(z) }";
        assert_eq!(class(exact, &[&[-1.0], &[0.0]], allowances, (-17.0, 0.0)), Class::Wrong);
    }
    // Across the cut the imaginary part is open, and the real part is not.
    let across: [&[f32]; 2] = [&[-0.5], &[-0.0]];
    let of = |actual| class(&of_inexact("log"), &across, Allowances::STRICT, actual);
    let log = (1.0 - (-0.5f32).exp()).ln();
    assert_eq!(of((log, std::f32::consts::PI)), Class::Undecided);
    assert_eq!(of((log + 0.25, -std::f32::consts::PI)), Class::Wrong);
    assert_eq!(of((log - 0.25, -std::f32::consts::PI)), Class::Wrong);
}

/// The angle of what may be flushed is open, but it is an angle; at a pole it need not be.
#[test]
fn angles_of_denormal_numbers_are_angles() {
    let text = "HloModule m\nENTRY e { a = f32[1] parameter(0)\n b = f32[1] parameter(1)\n c = f32[1] parameter(2)\n d = f32[1] parameter(3)\n y = c64[1] complex(a, b)\n x = c64[1] complex(c, d)\n ROOT r = c64[1] atan2(y, x) }";
    let of = |y: (f32, f32), x: (f32, f32), actual| {
        class(text, &[&[y.0], &[y.1], &[x.0], &[x.1]], FLUSHED, actual)
    };
    let d = 1e-39;
    assert_eq!(of((d, 2.0 * d), (0.0, 0.0), (f32::NAN, f32::NAN)), Class::Wrong);
    assert_eq!(of((d, 2.0 * d), (0.0, 0.0), (4.0, 0.0)), Class::Wrong);
    assert_eq!(of((d, 2.0 * d), (0.0, 0.0), (0.5, 0.0)), Class::Undecided);
    assert_eq!(of((0.0, d), (d, 0.0), (4.0, 0.0)), Class::Undecided);
    // The square is no more than the least number, and away from what it is of.
    let square = "HloModule m\nENTRY e { a = f32[1] parameter(0)\n b = f32[1] parameter(1)\n y = c64[1] complex(a, b)\n x = c64[1] multiply(y, y)\n ROOT r = c64[1] atan2(y, x) }";
    let of_square = |y: (f32, f32), actual| class(square, &[&[y.0], &[y.1]], FLUSHED, actual);
    assert_eq!(of_square((d, 2.0 * d), (f32::NAN, f32::NAN)), Class::Wrong);
    assert_eq!(of_square((d, 2.0 * d), (0.5, 0.0)), Class::Undecided);
}

/// Limits of a real part do not become those of an imaginary one, nor of the negated.
#[test]
fn limits_are_of_real_parts() {
    let text = |last: &str| {
        format!(
            "HloModule m\nENTRY e {{ x = f32[1] parameter(0)\n y = f32[1] parameter(1)\n re = f32[1] exponential-minus-one(x)\n z = c64[1] complex(re, y)\n l = c64[1] log-plus-one(z)\n {last} }}"
        )
    };
    let near: [&[f32]; 2] = [&[-100.0], &[0.0]];
    let admits = |last: &str| {
        let bounds = one(&text(last), &near);
        [-50.0, 5.0, 50.0].map(|x| bounds.hard.admits(0, x))
    };
    assert_eq!(admits("ROOT r = f32[1] real(l)"), [true, false, false]);
    assert_eq!(admits("ROOT r = f32[1] imag(l)"), [true; 3]);
    assert_eq!(admits("ROOT r = c64[1] negate(l)"), [false, false, true]);
    assert_eq!(admits("n = c64[1] negate(l)\n ROOT r = f32[1] real(n)"), [false, false, true]);
    assert_eq!(admits("a = f32[1] real(l)\n ROOT r = c64[1] complex(a, y)"), [true, false, false]);
    assert_eq!(admits("a = f32[1] real(l)\n ROOT r = c64[1] complex(y, a)"), [true; 3]);
    assert_eq!(admits("a = f32[1] real(l)\n c = c64[1] complex(y, a)\n ROOT r = f32[1] imag(c)"), [true; 3]);
}

#[test]
fn a_flushed_comparison_of_complex_numbers_flushes_all_of_both() {
    let text = |opcode: &str| {
        format!(
            "HloModule m\nENTRY e {{ a = f32[1] parameter(0)\n b = f32[1] parameter(1)\n c = f32[1] parameter(2)\n d = f32[1] parameter(3)\n x = c64[1] complex(a, b)\n y = c64[1] complex(c, d)\n ROOT r = c64[1] {opcode}(x, y) }}"
        )
    };
    let least = |x: (f32, f32), y: (f32, f32), actual| {
        class(&text("minimum"), &[&[x.0], &[x.1], &[y.0], &[y.1]], FLUSHED, actual)
    };
    let d = 1e-39;
    // With denormal numbers as they are, and as zeros: the second.
    assert_eq!(least((0.0, 4.0), (-d, d), (0.0, 0.0)), Class::Explained);
    assert_eq!(least((0.0, 4.0), (-d, d), (0.0, 4.0)), Class::Wrong);
    // As they are the second, as zeros the first.
    assert_eq!(least((0.0, 4.0), (-d, 5.0), (0.0, 4.0)), Class::Undecided);
    assert_eq!(least((0.0, 4.0), (-d, 5.0), (0.0, 9.0)), Class::Wrong);
    let greatest = |actual| class(&text("maximum"), &[&[0.0], &[4.0], &[-d], &[d]], FLUSHED, actual);
    assert_eq!(greatest((-d, d)), Class::Wrong);
}

/// What is multiplied by a real or by an imaginary number has one rounding a part, in any formula: nothing
/// that depends on it is open.
#[test]
fn products_that_scale_are_exact() {
    let text = |last: &str| {
        format!(
            "HloModule m\nENTRY e {{ a = f32[1] parameter(0)\n b = f32[1] parameter(1)\n c = f32[1] parameter(2)\n d = f32[1] parameter(3)\n x = c64[1] complex(a, b)\n y = c64[1] complex(c, d)\n ROOT r = c64[1] {last} }}"
        )
    };
    let radius = |y: (f32, f32)| one(&text("multiply(x, y)"), &[&[0.3], &[0.7], &[y.0], &[y.1]]).hard.at(0);
    assert_eq!(radius((0.9, 0.0)), 0.0);
    assert_eq!(radius((0.0, 0.9)), 0.0);
    assert!(radius((0.9, 0.1)) > 0.0);
    // A zero beside a product has either sign.
    let zeros = one(&text("multiply(x, y)"), &[&[0.3], &[0.0], &[0.9], &[0.0]]);
    assert!(zeros.hard.at(0) > 0.0 && zeros.hard.at(0) < 1e-44);
}

/// A part of a sum is the sum of that part, whatever the other part of a term is.
#[test]
fn parts_of_sums_beside_nans_have_magnitudes() {
    let text = "HloModule m\nadd { a = c64[] parameter(0)\n b = c64[] parameter(1)\n ROOT s = c64[] add(a, b) }\nENTRY e { x = f32[3] parameter(0)\n y = f32[3] parameter(1)\n z = c64[3] complex(x, y)\n zero = c64[] constant((0, 0))\n s = c64[] reduce(z, zero), dimensions={0}, to_apply=add\n ROOT r = c64[1] reshape(s) }";
    let large = 16_777_216.0;
    // The exact imaginary part is 1; step by step it is 0, where one term is not a number.
    for other in [f32::NAN, f32::INFINITY] {
        let inputs: [&[f32]; 2] = [&[other, 0.0, other], &[large, 1.0, -large]];
        assert_eq!(class(text, &inputs, Allowances::STRICT, (other, 0.0)), Class::Explained, "{other}");
    }
}

/// `x^2 + y^2` of imaginary numbers is on the cut of its root, and the sign of a zero says on which side.
#[test]
fn an_angle_hangs_on_the_side_of_the_root_that_it_has() {
    let text = "HloModule m\nENTRY e { a = f32[1] parameter(0)\n b = f32[1] parameter(1)\n c = f32[1] parameter(2)\n z = f32[1] parameter(3)\n y = c64[1] complex(a, b)\n d = c64[1] complex(c, z)\n x = c64[1] divide(y, d)\n ROOT r = c64[1] atan2(y, x) }";
    let bounds = |b: f32, c: f32| one(text, &[&[-0.0], &[b], &[c], &[0.0]]);
    assert!(bounds(0.25, 1.0).hard.at(0) >= 3.2);
    let text = text.replace("complex(a, b)", "complex(b, a)");
    assert!(one(&text, &[&[-0.0], &[0.25], &[3.0], &[0.0]]).hard.at(0) < 1e-5);
}

/// A conversion to a real number takes the real part alone: an imaginary part that may be flushed is nothing
/// to it, and what saturates stays in range.
#[test]
fn a_conversion_to_a_real_number_takes_the_real_part() {
    for (ty, expected) in [("f6e3m2fn", 0.0), ("f32", 0.0), ("f16", 0.0)] {
        let text = format!(
            "HloModule m\nENTRY e {{ a = f32[2] parameter(0)\n b = f32[2] parameter(1)\n x = c64[2] complex(a, b)\n ROOT y = {ty}[2] convert(x) }}"
        );
        let flushing = Allowances { flush_denormals: true, ..Allowances::STRICT };
        let found = certified(&text, &[&[-3e38, 1.5], &[-1e-45, 1e-45]], flushing);
        assert_eq!([0, 1].map(|i| found[0].1.hard.at(i)), [expected; 2], "{ty}");
    }
}

/// Powers to large exponents: the exponent times the logarithm is off relative to its size, so that the power
/// is off by more ulps the larger that is.
#[test]
fn powers_are_off_by_what_their_exponent_is_off() {
    let text = "HloModule m\nENTRY e { a = f32[1] parameter(0)\n b = f32[1] parameter(1)\n x = c64[1] complex(a, b)\n ROOT y = c64[1] power(x, x) }";
    let of = |x: (f32, f32), actual| class(text, &[&[x.0], &[x.1]], Allowances::STRICT, actual);
    // The exact power is (-638381.06, -135838.48); the first is that of logarithm, product and exponential in
    // f32.
    assert_ne!(of((8.25, 8.75), (-638_381.75, -135_836.56)), Class::Wrong);
    assert_eq!(of((8.25, 8.75), (-638_390.0, -135_838.48)), Class::Wrong);
    // (0.5, 0.25)^(0.5, 0.25) is (0.66336, 0.05748), of a small exponent.
    assert_eq!(of((0.5, 0.25), (0.663_46, 0.057_48)), Class::Wrong);
}
