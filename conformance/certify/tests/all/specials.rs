//! Infinities and NaNs that an order or a formula decides.

use hlo_execution::special::Special;
use hlo_execution::verdict::{Class, judge};

use std::sync::Arc;

use hlo::ArrayLiteral;
use hlo_certify::bounds::certify;
use hlo_execution::allowances::Allowances;
use hlo_execution::run::{Inputs, RunOptions};
use hlo_interp::Value;

use crate::common::{certified, one, parse_text};

fn specials(text: &str, inputs: &[&[f32]], allowances: Allowances) -> Vec<Special> {
    let all = certified(text, inputs, allowances);
    (0..all[0].0.buffer.len()).map(|i| all[0].1.specials.at(i)).collect()
}

fn summed(n: usize, ty: &str) -> String {
    format!(
        "HloModule m\nadd {{ a = {ty}[] parameter(0)\n b = {ty}[] parameter(1)\n ROOT c = {ty}[] add(a, b) }}\nENTRY e {{ x = {ty}[{n}] parameter(0)\n z = {ty}[] constant(0)\n ROOT s = {ty}[] reduce(x, z), dimensions={{0}}, to_apply=add }}"
    )
}

/// 3e38 + 3e38 is beyond f32 (3.4e38), and so is -3e38 - 3e38: what their sum is depends on which come first.
#[test]
fn a_sum_overflows_in_some_order_or_in_none() {
    let of = |x: &[f32]| specials(&summed(x.len(), "f32"), &[x], Allowances::STRICT)[0];
    assert_eq!(of(&[3e38, 3e38, -3e38]), Special::POSITIVE);
    assert_eq!(of(&[3e38, -3e38, -3e38]), Special::NEGATIVE);
    assert_eq!(of(&[3e38, 3e38, -3e38, -3e38]), Special::ANY);
    assert_eq!(of(&[3e38, -3e38, 1e38]), Special::POSITIVE);
    assert_eq!(of(&[3e38, -3e38, 1e37]), Special::NONE);
    // An infinite term meets the other infinity where the others overflow.
    assert_eq!(of(&[3e38, 3e38, f32::NEG_INFINITY]), Special::NEGATIVE.or(Special::NAN));
    assert_eq!(of(&[3e38, f32::NEG_INFINITY, 1.0]), Special::NONE);
    // Sums of f16 are in f32, where nothing overflows, unless the accumulator may be narrow.
    let half: &[f32] = &[6e4, 6e4, -6e4];
    let narrow = Allowances { narrow_accumulator: true, ..Allowances::STRICT };
    assert_eq!(specials(&summed(3, "f16"), &[half], Allowances::STRICT), [Special::NONE]);
    assert_eq!(specials(&summed(3, "f16"), &[half], narrow), [Special::POSITIVE]);
    let dot = "HloModule m\nENTRY e { x = f32[3] parameter(0)\n y = f32[3] parameter(1)\n ROOT z = f32[] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0} }";
    assert_eq!(
        specials(dot, &[&[3e38, -3e38, 3e38], &[1.0, 1.0, 1.0]], Allowances::STRICT),
        [Special::POSITIVE]
    );
    assert_eq!(specials(dot, &[&[3e30, -3e30, 3e30], &[1.0, 1.0, 1.0]], Allowances::STRICT), [Special::NONE]);
}

/// Products of f64 that are infinite themselves; products that a ragged dot adds up.
#[test]
fn products_overflow_in_f64_and_in_groups() {
    let dot = |ty: &str| {
        format!(
            "HloModule m\nENTRY e {{ x = f32[4] parameter(0)\n y = f32[4] parameter(1)\n a = {ty}[4] convert(x)\n b = {ty}[4] convert(y)\n c = {ty}[4] multiply(a, a)\n d = {ty}[4] multiply(c, c)\n f = {ty}[4] multiply(d, d)\n ROOT z = {ty}[] dot(f, b), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}} }}"
        )
    };
    // The eighth power of 3e38 is 6.6e307.
    let large: &[f32] = &[3e38, 3e38, 3e38, 1.0];
    let of = |y: &[f32]| specials(&dot("f64"), &[large, y], Allowances::STRICT)[0];
    assert_eq!(of(&[3e38, -2e38, 1.0, 1.0]), Special::ANY);
    assert_eq!(of(&[1.0, -3e38, -1.0, 1.0]), Special::NEGATIVE);
    assert_eq!(of(&[2.0, -0.5, 1.0, 1.0]), Special::POSITIVE);
    assert_eq!(of(&[1.0, -1.0, 1.0, 1.0]), Special::NONE);
    // The positive terms overflow too, however much larger the negative ones are; an infinite factor is an
    // infinite term.
    assert_eq!(of(&[3.0, -3e38, 1.0, 1.0]), Special::ANY);
    assert_eq!(of(&[3.0, f32::NEG_INFINITY, 1.0, 1.0]), Special::NEGATIVE.or(Special::NAN));
    assert_eq!(of(&[1.0, f32::NEG_INFINITY, -1.0, 1.0]), Special::NONE);
    let ragged = "HloModule m\nENTRY e { x = f32[2,3] parameter(0)\n y = f32[1,3,1] parameter(1)\n g = s32[1] constant({1})\n ROOT z = f32[2,1] ragged-dot(x, y, g), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0} }";
    let (x, y): (&[f32], &[f32]) = (&[3e38, -3e38, 3e38, 3e38, 3e38, 3e38], &[1.0, 1.0, 1.0]);
    // The second row is in no group.
    assert_eq!(specials(ragged, &[x, y], Allowances::STRICT), [Special::POSITIVE, Special::NONE]);
}

/// The real part of each element is a sum of six products, of which some overflow together.
#[test]
fn parts_of_complex_sums_overflow_in_some_order_or_in_none() {
    let text = "HloModule m\nENTRY e { p = f32[3] parameter(0)\n q = f32[3] parameter(1)\n x = c64[3] complex(p, q)\n r = f32[3] parameter(2)\n y = c64[3] complex(r, q)\n ROOT z = c64[] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0} }";
    let (ones, zeros): (&[f32], &[f32]) = (&[1.0; 3], &[0.0; 3]);
    assert_eq!(specials(text, &[&[3e38, 3e38, -3e38], zeros, ones], Allowances::STRICT), [Special::ANY]);
    assert_eq!(specials(text, &[&[3e37, 3e37, -3e37], zeros, ones], Allowances::STRICT), [Special::NONE]);
}

/// An engine's infinity is explained, its other infinity and a number that is off are not.
#[test]
fn what_no_order_gives_is_not_explained() {
    let x: &[f32] = &[3e38, 3e38, -3e38];
    let all = certified(&summed(3, "f32"), &[x], Allowances::STRICT);
    let (reference, bounds) = &all[0];
    for (y, class) in [
        (f32::INFINITY, Class::Explained),
        (f32::NEG_INFINITY, Class::Undecided),
        (f32::NAN, Class::Undecided),
        (3e38, Class::Same),
    ] {
        let actual = ArrayLiteral { buffer: Arc::new(hlo::BufferOf::wrap(vec![y])), ..reference.clone() };
        let verdict = judge(reference, &actual, bounds, false).unwrap();
        assert_eq!(verdict.class(), class, "{y}");
    }
}

/// Functions of a sum that overflows in some order, and a choice of it or another, are those of an infinity.
#[test]
fn functions_of_what_may_be_infinite_may_be_so() {
    let of = |function: &str| {
        let text = summed(3, "f32").replace("ROOT s =", "s =");
        let text = format!(
            "{} o = f32[] constant(1)\n m = f32[] negate(s)\n p = pred[] compare(s, z), direction=LT\n t = pred[] compare(o, z), direction=GT\n ROOT r = f32[] {function} }}",
            text.trim_end_matches('}')
        );
        let special = |x: &[f32]| specials(&text, &[x], Allowances::STRICT)[0];
        // The sum is 3e38, or plus infinity; -3e38, or minus infinity.
        [special(&[3e38, 3e38, -3e38]), special(&[-3e38, -3e38, 3e38])]
    };
    let (plus, minus, nan) = (Special::POSITIVE, Special::NEGATIVE, Special::NAN);
    for (function, expected) in [
        ("abs(s)", [plus, plus]),
        ("negate(s)", [minus, plus]),
        ("floor(s)", [plus, minus]),
        ("sqrt(s)", [plus, nan]),
        ("log(s)", [plus, nan]),
        ("sine(s)", [nan, nan]),
        ("tanh(s)", [Special::NONE; 2]),
        ("divide(s, o)", [plus, minus]),
        ("divide(o, s)", [Special::NONE; 2]),
        ("maximum(s, o)", [plus, Special::NONE]),
        ("minimum(o, s)", [Special::NONE, minus]),
        ("select(p, m, s)", [plus, plus]),
        ("select(t, s, o)", [plus, minus]),
        ("select(t, o, s)", [Special::NONE; 2]),
    ] {
        let found = of(function);
        assert!(found[0].has(expected[0]) && found[1].has(expected[1]), "{function}: {found:?}");
        if expected == [Special::NONE; 2] {
            assert_eq!(found, expected, "{function}");
        }
    }
}

/// (inf + 0i)(1 + 1i): by the textbook NaN in both parts, by annex G infinite. Of numbers nothing is
/// explained, and additions work part by part.
#[test]
fn complex_infinities_depend_on_the_formula() {
    let of = |opcode: &str| {
        format!(
            "HloModule m\nENTRY e {{ a = f32[2] parameter(0)\n b = f32[2] parameter(1)\n x = c64[2] complex(a, b)\n c = f32[2] parameter(2)\n y = c64[2] complex(c, c)\n ROOT z = c64[2] {opcode}(x, y) }}"
        )
    };
    let x: [&[f32]; 3] = [&[f32::INFINITY, 2.0], &[0.0, 3.0], &[1.0, 1.0]];
    for opcode in ["multiply", "divide"] {
        assert_eq!(specials(&of(opcode), &x, Allowances::STRICT), [Special::ANY, Special::NONE], "{opcode}");
    }
    assert_eq!(specials(&of("add"), &x, Allowances::STRICT), [Special::NONE; 2]);
}

/// An inverse transform adds first and divides by the number of points then: 3 * 1.5e38 is too large on the
/// way.
#[test]
fn an_inverse_transform_may_overflow_before_it_is_scaled() {
    let text = "HloModule m\nENTRY e { a = f32[3] parameter(0)\n b = f32[3] parameter(1)\n x = c64[3] complex(a, b)\n ROOT y = c64[3] fft(x), fft_type=IFFT, fft_length={3} }";
    let zeros: &[f32] = &[0.0; 3];
    assert_eq!(specials(text, &[&[1.5e38; 3], zeros], Allowances::STRICT), [Special::ANY; 3]);
    assert_eq!(specials(text, &[&[1.5e37; 3], zeros], Allowances::STRICT), [Special::NONE; 3]);
}

/// Magnitudes of f64 that add up to more than f64 holds have soft bounds all the same.
#[test]
fn transforms_near_the_greatest_number_have_soft_bounds() {
    let text = "HloModule m\nENTRY e { a = f32[2] parameter(0)\n c = f64[2] convert(a)\n s = f64[] constant(1e300)\n t = f64[2] broadcast(s), dimensions={}\n d = f64[2] multiply(c, t)\n z = f64[2] subtract(d, d)\n x = c128[2] complex(d, z)\n ROOT y = c128[2] fft(x), fft_type=FFT, fft_length={2} }";
    let bounds = one(text, &[&[1.2e8, -0.4e8]]);
    assert!((0..2).all(|i| bounds.soft.at(i) > 0.0 && bounds.soft.at(i) < 1e295), "{bounds:?}");
    assert!(bounds.hard.at(0).is_infinite());
}

/// What is scaled down to add it up is not lost below the least number: the bound is that of any rounding.
#[test]
fn transforms_near_the_least_normal_number_have_bounds_of_roundings() {
    let text = "HloModule m\nENTRY e { a = f32[3] parameter(0)\n c = f64[3] convert(a)\n s = f64[] constant(7.746817145778672e-304)\n t = f64[3] broadcast(s), dimensions={}\n x = f64[3] multiply(c, t)\n ROOT y = c128[2] fft(x), fft_type=RFFT, fft_length={3} }";
    let bounds = one(text, &[&[0.0, 1.0, 1.0]]);
    let ulp = f64::from_bits(1 << 15);
    assert!((0..2).all(|i| bounds.soft.at(i) > 16.0 * ulp && bounds.soft.at(i) < 256.0 * ulp), "{bounds:?}");
}

/// By a denormal number that is flushed.
#[test]
fn quotients_by_what_is_flushed_are_infinite() {
    let text = "HloModule m\nENTRY e { x = f32[4] parameter(0)\n y = f32[4] parameter(1)\n ROOT z = f32[4] divide(x, y) }";
    let inputs: [&[f32]; 2] = [&[1e-10, -1e-10, 0.0, 1e-10], &[1e-40, 1e-40, 1e-40, 1.0]];
    let flush = Allowances { flush_denormals: true, ..Allowances::STRICT };
    assert_eq!(
        specials(text, &inputs, flush),
        [Special::POSITIVE, Special::NEGATIVE, Special::NAN, Special::NONE]
    );
    assert_eq!(specials(text, &inputs, Allowances::STRICT), [Special::NONE; 4]);
    let of = |opcode: &str| {
        format!("HloModule m\nENTRY e {{ x = f32[3] parameter(0)\n ROOT z = f32[3] {opcode}(x) }}")
    };
    let x: [&[f32]; 1] = [&[1e-40, -1e-40, 1.0]];
    // Of the negative number itself it is NaN.
    let log = [Special::NEGATIVE, Special::NEGATIVE.or(Special::NAN), Special::NONE];
    assert_eq!(specials(&of("log"), &x, flush), log);
    assert_eq!(specials(&of("rsqrt"), &x, flush)[0], Special::POSITIVE);
}

/// Moved along.
#[test]
fn specials_move_with_their_elements() {
    let sum = |rest: &str| {
        format!(
            "HloModule m\nadd {{ a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }}\nENTRY e {{ x = f32[2,3] parameter(0)\n z = f32[] constant(0)\n s = f32[2] reduce(x, z), dimensions={{1}}, to_apply=add\n {rest} }}"
        )
    };
    let x: &[f32] = &[3e38, 3e38, -3e38, 1.0, 2.0, 3.0];
    let of = |rest: &str| specials(&sum(rest), &[x], Allowances::STRICT);
    assert_eq!(of("ROOT r = f32[2] reverse(s), dimensions={0}"), [Special::NONE, Special::POSITIVE]);
    assert_eq!(of("ROOT r = f32[2] negate(s)"), [Special::NEGATIVE, Special::NONE]);
    // Of several operands, and by indices.
    for moved in [
        "c = f32[2] constant({1, 2})\n ROOT r = f32[4] concatenate(c, s), dimensions={0}",
        "ROOT r = f32[4] pad(s, z), padding=2_0",
        "i = s32[4,1] constant({{1}, {1}, {0}, {1}})\n ROOT r = f32[4] gather(s, i), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}",
        "o = s32[] constant(2)\n c = f32[4] constant({1, 2, 3, 4})\n ROOT r = f32[4] dynamic-update-slice(c, s, o)",
    ] {
        assert_eq!(of(moved), [Special::NONE, Special::NONE, Special::POSITIVE, Special::NONE], "{moved}");
    }
}

/// What a computation makes of its parameters, the map that applies it does.
#[test]
fn maps_have_the_specials_of_what_they_apply() {
    let text = "HloModule m\nf { a = f32[] parameter(0)\n ROOT d = f32[] divide(a, a) }\nENTRY e { x = f32[2] parameter(0)\n ROOT m = f32[2] map(x), dimensions={0}, to_apply=f }";
    let flush = Allowances { flush_denormals: true, ..Allowances::STRICT };
    let found = specials(text, &[&[1e-40, 1.0]], flush);
    assert!(found[0].has(Special::NAN) && found[1] == Special::NONE, "{found:?}");
}

/// Epsilon is less than half the least number of the type, so that with a variance of 0 an engine which
/// computes in it divides by 0.
#[test]
fn normalizations_divide_by_what_is_zero_in_their_type() {
    let of = |ty: &str, epsilon: &str| {
        let text = format!(
            "HloModule m\nENTRY e {{ x = {ty}[1,2] parameter(0)\n s = {ty}[2] parameter(1)\n v = {ty}[2] parameter(2)\n ROOT g = ({ty}[1,2], {ty}[2], {ty}[2]) batch-norm-grad(x, s, s, v, x), epsilon={epsilon}, feature_index=1 }}"
        );
        let all = certified(&text, &[&[1.0, 2.0], &[1.0, 1.0], &[0.0, 1.0]], Allowances::STRICT);
        let specials = |k: usize| [0, 1].map(|i| all[k].1.specials.at(i));
        [specials(0), specials(1), specials(2)]
    };
    let (any, none) = (Special::ANY, Special::NONE);
    let found = of("f8e3m4", "0.001");
    assert_eq!((found[0][0], found[1][0], found[2]), (any, any, [none; 2]));
    assert_eq!(found[0][1], none);
    // This one is a number of the type.
    assert_eq!(of("f32", "0.001")[0], [none; 2]);
}

/// Both products overflow, and which of infinity and NaN is in which part of them depends on the formula: so
/// of what they give.
#[test]
fn products_of_complex_infinities_depend_on_the_formula_too() {
    let text = "HloModule m\nENTRY e { x = c64[2] parameter(0)\n y = c64[2] parameter(1)\n p = c64[2] multiply(x, y)\n q = c64[2] multiply(x, y)\n ROOT z = c64[2] multiply(p, q) }";
    let complex = |values: [(f32, f32); 2]| {
        let values = values.map(|(re, im)| hlo::num_complex::Complex::new(re, im)).to_vec();
        Value::Array(hlo_interp::Tensor::from_vec([2i64].as_slice(), values)).into_literal()
    };
    let module = parse_text(text).0.unwrap();
    let large = || complex([(3e38, 2e38), (1.0, 2.0)]);
    let inputs =
        Inputs { arguments: vec![vec![large(), large()]], host: Arc::new(hlo_interp::device::host::NoHost) };
    let all = certify(&module, inputs, &RunOptions::default(), Allowances::STRICT, &mut ()).unwrap();
    let bounds = &all.results[0][0].1;
    assert_eq!([0, 1].map(|i| bounds.specials.at(i)), [Special::ANY, Special::NONE]);
}

/// What a sum may be in some order goes through sums, signs, products and conversions, and becomes what these
/// make of it.
#[test]
fn specials_go_through_arithmetic() {
    let behind = |last: &str| {
        let text = format!(
            "HloModule m\nadd {{ a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }}\nENTRY e {{ x = f32[3] parameter(0)\n o = f32[] parameter(1)\n z = f32[] constant(0)\n s = f32[] reduce(x, z), dimensions={{0}}, to_apply=add\n ROOT r = {last} }}"
        );
        specials(&text, &[&[3e38, 3e38, -3e38], &[2.0]], Allowances::STRICT)[0]
    };
    assert_eq!(behind("f32[] add(s, o)"), Special::POSITIVE);
    assert_eq!(behind("f32[] subtract(o, s)"), Special::NEGATIVE);
    assert_eq!(behind("f32[] negate(s)"), Special::NEGATIVE);
    assert_eq!(behind("f32[] multiply(s, o)"), Special::POSITIVE);
    assert_eq!(behind("bf16[] convert(s)"), Special::POSITIVE);
    assert!(behind("f32[] subtract(s, s)").has(Special::NAN));
    // Of a type without infinities nothing is said, and an exponential makes numbers of infinities.
    assert_eq!(behind("f8e4m3fn[] convert(s)"), Special::NONE);
    assert_eq!(behind("f32[] logistic(s)"), Special::NONE);
}

/// A modulus is not negative, whatever the parts are; which of the others it is depends on the formula.
#[test]
fn a_modulus_of_what_may_be_infinite_is_open() {
    let text = "HloModule m\nENTRY e { p = f32[3] parameter(0)\n q = f32[3] parameter(1)\n x = c64[3] complex(p, q)\n r = f32[3] parameter(2)\n y = c64[3] complex(r, q)\n z = c64[] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n ROOT w = f32[] abs(z) }";
    let (ones, zeros): (&[f32], &[f32]) = (&[1.0; 3], &[0.0; 3]);
    assert_eq!(specials(text, &[&[3e38, 3e38, -3e38], zeros, ones], Allowances::STRICT), [Special::NONE]);
}

/// What a quotient of flushed numbers may be, its copies may be, in types with and without infinities.
#[test]
fn copies_may_be_what_their_operand_may_be() {
    for (ty, tiny) in [("f32", 1e-41), ("f16", 1e-7), ("f8e5m2fnuz", 1.6e-5)] {
        for copy in ["copy(y)", "bitcast-convert(y)", "reshape(y)"] {
            let text = format!(
                "HloModule m\nENTRY e {{ x = {ty}[2] parameter(0)\n y = {ty}[2] divide(x, x)\n ROOT z = {ty}[2] {copy} }}"
            );
            let allowances = Allowances { flush_denormals: true, ..Allowances::STRICT };
            let found = specials(&text, &[&[tiny, 2.0]], allowances);
            assert!(found[0].has(Special::NAN) && found[1] == Special::NONE, "{ty} {copy}: {found:?}");
        }
    }
}
