//! Bounds of single operations and of what carries them, worked out by hand.

use std::sync::Arc;

use hlo::Module;
use hlo_certify::bounds::{At, Certified, Radii, Tree, Visitor, certify};
use hlo_execution::allowances::Allowances;
use hlo_execution::run::{Inputs, Limits, Outcome, RunOptions};
use hlo_interp::Value;

use crate::common::{U, certified, one, parse_text};
use crate::logits::some;

/// The run with bounds of a chain of elementwise functions on `n` elements, within a limit of memory.
fn chain(n: usize, memory_bytes: u64) -> Result<Certified, Outcome> {
    let text = format!(
        "HloModule m\nENTRY e {{ x = f32[{n}] parameter(0)\n y = f32[{n}] exponential(x)\n z = f32[{n}] tanh(y)\n ROOT r = f32[{n}] multiply(y, z) }}"
    );
    let (module, found) = parse_text(&text);
    let module = module.unwrap_or_else(|| panic!("{found:?}"));
    let x: Vec<f32> = (0..n).map(|i| (i % 97) as f32 / 64.0 - 0.5).collect();
    let x = Value::Array(hlo_interp::Tensor::from_vec([n as i64].as_slice(), x)).into_literal();
    let inputs = Inputs { arguments: vec![vec![x]], host: Arc::new(hlo_interp::device::host::NoHost) };
    let limits = Limits { fuel: None, memory_bytes };
    let options = RunOptions { limits, ..RunOptions::default() };
    certify(&module, inputs, &options, Allowances::STRICT, &mut ())
}

/// Elements of an array that is worked on in blocks have the bounds that they have in a small one.
#[test]
fn blocks_change_no_bound() {
    let of = |n: usize| chain(n, 1 << 30).unwrap().results.remove(0).remove(0).1;
    let (small, large) = (of(97), of((2 << 16) + 5));
    for i in 0..(2 << 16) + 5 {
        assert_eq!(
            (large.soft.at(i), large.hard.at(i)),
            (small.soft.at(i % 97), small.hard.at(i % 97)),
            "{i}"
        );
    }
}

/// Values of 4 bytes and radii of 8: of three arrays at once 36 bytes an element, and temporaries while a
/// rule works.
#[test]
fn bounds_count_against_the_limit() {
    const N: usize = 100_000;
    assert!(chain(N, 56 * N as u64).is_ok());
    for each in [12, 20, 30] {
        let ended = chain(N, each * N as u64).map(|_| ()).unwrap_err();
        assert!(ended.is_exhausted(), "{each}: {ended:?}");
        let diagnostic = ended.diagnostic().unwrap();
        assert!(diagnostic.message.contains("--memory-limit"), "{}", diagnostic.message);
    }
}

#[test]
fn exact_operations_have_no_radius() {
    let b = one(
        "HloModule m\nENTRY e { x = f32[3] parameter(0)\n y = f32[3] multiply(x, x)\n z = f32[3] add(y, x)\n ROOT r = f32[3] reverse(z), dimensions={0} }",
        &[&[1.1, -2.3, 1e30]],
    );
    assert!(b.is_exact());
}

/// Integers of 64 bits that f64 does not hold are off by what they are off by, however little that is.
#[test]
fn bits_of_what_is_off_are_off_wherever_they_go() {
    let text = "HloModule m\nENTRY e { x = f64[2] parameter(0)\n y = f64[] dot(x, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n n = s64[] bitcast-convert(y)\n ROOT r = s64[] OP }";
    for of in ["add(n, n)", "negate(n)", "maximum(n, n)", "subtract(n, n)", "clamp(n, n, n)"] {
        let b = one(&text.replace("OP", of), &[&[0.1, 0.3]]);
        assert!(b.hard.at(0) >= 1.0, "{of}: {}", b.hard.at(0));
    }
    // 1 or 2.
    let text = "HloModule m\nENTRY e { x = f32[] parameter(0)\n y = f32[] exponential(x)\n n = u64[] convert(y)\n ROOT r = u64[] not(n) }";
    let b = one(text, &[&[std::f32::consts::LN_2]]);
    assert!(b.hard.at(0) >= 1.0, "{}", b.hard.at(0));
}

#[test]
fn elementary_functions_have_ulps_that_arithmetic_carries() {
    // exp(0) = 1 within 2 ulp of 2^-23; times 3 that and a rounding.
    let b = one("HloModule m\nENTRY e { x = f32[] parameter(0)\n ROOT y = f32[] exponential(x) }", &[&[0.0]]);
    assert_eq!(b.soft, Radii::new(vec![(2.0 * U).next_up()]));
    assert_eq!(b.hard, b.soft);
    let b = one(
        "HloModule m\nENTRY e { x = f32[] parameter(0)\n c = f32[] constant(3)\n y = f32[] exponential(x)\n ROOT z = f32[] multiply(y, c) }",
        &[&[0.0]],
    );
    let r = b.soft.at(0);
    assert!((6.0 * U..=8.0 * U).contains(&r), "{r}");
}

#[test]
fn decisions_are_soft_zero_and_hard_what_they_make() {
    // 1 within 2 ulp: below 1 floor gives 0.
    let text = "HloModule m\nENTRY e { x = f32[2] parameter(0)\n y = f32[2] exponential(x)\n ROOT z = f32[2] floor(y) }";
    let b = one(text, &[&[0.0, 1.0]]);
    assert!(b.soft.is_zero());
    assert_eq!((b.hard.at(0).round(), b.hard.at(1)), (1.0, 0.0));
    let text = "HloModule m\nENTRY e { x = f32[2] parameter(0)\n one = f32[] constant(1)\n ones = f32[2] broadcast(one), dimensions={}\n y = f32[2] exponential(x)\n p = pred[2] compare(y, ones), direction=LT\n ROOT z = f32[2] select(p, x, ones) }";
    let b = one(text, &[&[0.0, 5.0]]);
    assert!(b.soft.is_zero());
    assert_eq!((b.hard.at(0).round(), b.hard.at(1)), (1.0, 0.0));
}

/// Of numbers that have no fraction nothing is decided: e^21.3 is about 1.8e9, whole multiples of 128.
#[test]
fn whole_numbers_move_by_whole_steps() {
    let of = |function: &str| {
        format!(
            "HloModule m\nENTRY e {{ x = f32[2] parameter(0)\n y = f32[2] exponential(x)\n ROOT z = {function}(y) }}"
        )
    };
    let step = 128.0;
    for function in ["u32[2] convert", "s64[2] convert", "f32[2] floor", "f32[2] round-nearest-even"] {
        let b = one(&of(function), &[&[21.3, 1.0]]);
        assert!((2.0 * step..=4.0 * step).contains(&b.soft.at(0)), "{function}: {b:?}");
        assert_eq!(b.soft.at(1), 0.0, "{function}");
        assert!(b.hard.at(0) >= b.soft.at(0), "{function}: {b:?}");
    }
    assert!(one(&of("pred[2] convert"), &[&[21.3, 1.0]]).soft.is_zero());
    // 1 within 2 ulp hangs on rounding, whatever else is allowed.
    for allowances in [Allowances::STRICT, Allowances { flush_denormals: true, ..Allowances::STRICT }] {
        let b = certified(&of("s32[2] convert"), &[&[0.0, 1.0]], allowances).remove(0).1;
        assert_eq!((b.soft.at(0), b.hard.at(0)), (0.0, 1.0));
    }
}

#[test]
fn a_choice_between_a_number_and_a_nan_is_open() {
    let text = "HloModule m\nENTRY e { x = f32[2] parameter(0)\n nan = f32[] constant(nan)\n nans = f32[2] broadcast(nan), dimensions={}\n one = f32[] constant(1)\n ones = f32[2] broadcast(one), dimensions={}\n y = f32[2] exponential(x)\n p = pred[2] compare(y, ones), direction=GT\n ROOT z = f32[2] select(p, x, nans) }";
    let b = one(text, &[&[0.0, 5.0]]);
    assert!(b.soft.is_zero());
    assert_eq!((b.hard.at(0), b.hard.at(1)), (f64::INFINITY, 0.0));
}

#[test]
fn sums_are_bounded_by_their_magnitudes() {
    // 1000 terms of magnitude 1 that cancel: 1000 * 2^-24 * 1000 at most, about.
    let text = "HloModule m\nENTRY e { x = f32[1000] parameter(0)\n y = f32[1000] parameter(1)\n ROOT z = f32[] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0} }";
    let x: Vec<f32> = (0..1000).map(|i| if i % 2 == 0 { 1.0 } else { -1.0 }).collect();
    let b = one(text, &[&x, &[1.0; 1000]]);
    let r = b.soft.at(0);
    assert!((1000.0 * 1000.0 * U / 2.0..1.1 * 1000.0 * 1000.0 * U / 2.0).contains(&r), "{r}");
    // One product is rounded once.
    let text = "HloModule m\nENTRY e { x = f32[1] parameter(0)\n y = f32[1] parameter(1)\n ROOT z = f32[] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0} }";
    assert!(one(text, &[&[0.1], &[0.3]]).is_exact());
    // A sum that an f32 holds is rounded to bf16 once, whatever the order.
    let text = "HloModule m\nadd { a = bf16[] parameter(0)\n b = bf16[] parameter(1)\n ROOT c = bf16[] add(a, b) }\nENTRY e { x = bf16[64] parameter(0)\n z = bf16[] constant(0)\n ROOT s = bf16[] reduce(x, z), dimensions={0}, to_apply=add }";
    assert!(one(text, &[&[1.0; 64]]).is_exact());
    let narrow = Allowances { narrow_accumulator: true, ..Allowances::STRICT };
    let of = |text: &str, ty: &str, allowances| {
        let x: &[f32] = &[1.0; 64];
        certified(&text.replace("bf16", ty), &[x, x], allowances)[0].1.soft.at(0)
    };
    assert!(of(text, "bf16", narrow) >= 64.0 * 64.0 / 256.0);
    // Products are accumulated in what the type is normalized to, and in their own where that is granted.
    let product = "HloModule m\nENTRY e { x = bf16[64] parameter(0)\n y = bf16[64] parameter(1)\n ROOT z = bf16[] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0} }";
    let own = Allowances { narrow_products: true, ..narrow };
    let in_f16 = 64.0 * 64.0 / 2048.0;
    assert_eq!(of(product, "bf16", narrow), 0.0);
    assert!(of(product, "bf16", own) >= 64.0 * 64.0 / 256.0);
    assert!((in_f16..2.0 * in_f16).contains(&of(product, "f16", narrow)));
    assert!(of(product, "f8e5m2", own) > 64.0 && of(product, "f8e5m2", narrow) <= 8.0);
    assert!(of(product, "bf16", Allowances::LOOSE) <= 1.0);
}

#[test]
fn what_may_overflow_or_cross_a_pole_is_undecided() {
    let text = "HloModule m\nadd { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }\nENTRY e { x = f32[3] parameter(0)\n z = f32[] constant(0)\n ROOT s = f32[] reduce(x, z), dimensions={0}, to_apply=add }";
    let b = one(text, &[&[3e38, 3e38, -3e38]]);
    assert!(b.soft.at(0).is_finite() && b.hard.at(0).is_infinite());
    let text = "HloModule m\nENTRY e { x = f32[2] parameter(0)\n one = f32[] constant(1)\n ones = f32[2] broadcast(one), dimensions={}\n y = f32[2] exponential(x)\n d = f32[2] subtract(y, ones)\n ROOT q = f32[2] divide(ones, d) }";
    let b = one(text, &[&[0.0, 1.0]]);
    assert!(b.hard.at(0).is_infinite() && b.hard.at(1) < 1e-5);
    // Minus infinity before the infinity, or not: beside products that are too small for f64.
    let text = "HloModule m\nENTRY e { x = f64[2,4] constant({{-1.2e308, 0, -inf, 1.7976931348623157e308}, {0, 0, 0, 0}})\n y = f64[4] constant({8, 1e-160, -6e-6, 0})\n ROOT d = f64[2] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0} }";
    assert!(one(text, &[]).hard.at(0).is_infinite());
}

/// Both ends of an interval overflow, to a NaN in a type without infinities, and what lies between them does
/// not.
#[test]
fn an_overflow_to_either_side_leaves_numbers() {
    let last = |ty: &str, initial: f32, function: &str| {
        format!(
            "HloModule m\nf {{ a = {ty}[] parameter(0)\n ROOT b = {ty}[] parameter(1) }}\nENTRY e {{ x = {ty}[3] parameter(0)\n z = {ty}[] constant({initial})\n w = {ty}[1] reduce-window(x, z), window={{size=3}}, to_apply=f\n c = {ty}[1] constant({{16}})\n ROOT y = {function} }}"
        )
    };
    let hard = |text: &str, x: &[f32]| certified(text, &[x], Allowances::LOOSE)[0].1.hard.at(0);
    for (ty, sinh, sixteenfold, far) in [
        ("f8e4m3b11fnuz", 5.0, 3.0, 12.0),
        ("f8e4m3fn", 8.0, 32.0, 128.0),
        ("f8e5m2fnuz", 14.0, 5120.0, 16384.0),
    ] {
        for (function, of) in [
            ("sinh(w)", sinh),
            ("multiply(w, c)", sixteenfold),
            ("multiply(c, w)", sixteenfold),
            ("divide(w, d)", sixteenfold),
        ] {
            let text = |initial: f32| {
                last(ty, initial, &format!("{ty}[1] {function}"))
                    .replace(" ROOT y", &format!(" d = {ty}[1] constant({{0.0625}})\n ROOT y"))
            };
            assert!(hard(&text(of), &[-of, of, of]).is_infinite(), "{ty} {function}");
            assert_eq!(hard(&text(far), &[1.25 * far, far, far]), 0.0, "{ty} {function}");
        }
    }
    // Beyond both ends of what is a power of two: below zero, and above the greatest.
    let text = last("f32", -1.0, "f8e8m0fnu[1] convert(w)");
    assert!(hard(&text, &[-3e38, 4.0, -1.0]).is_infinite());
    assert_eq!(hard(&text, &[-4.0, -2.0, -8.0]), 0.0);
    // sin(4) is negative, sin(2) is not.
    let text = last("f8e8m0fnu", 4.0, "f8e8m0fnu[1] sine(w)");
    assert!(hard(&text, &[2.0, 2.0, 4.0]).is_infinite());
    assert!(hard(&text, &[4.0, 4.0, 2.0]).is_infinite());
}

/// Both ends of an operand's interval are beyond the domain, and what lies between them is not.
#[test]
fn a_domain_between_both_ends_leaves_numbers() {
    for function in ["acos", "asin", "atanh"] {
        let text = format!(
            "HloModule m\nf {{ a = f32[] parameter(0)\n ROOT b = f32[] parameter(1) }}\nENTRY e {{ x = f32[3] parameter(0)\n z = f32[] constant(0)\n w = f32[1] reduce-window(x, z), window={{size=3}}, to_apply=f\n ROOT y = f32[1] {function}(w) }}"
        );
        let hard = |x: &[f32]| certified(&text, &[x], Allowances::LOOSE)[0].1.hard.at(0);
        assert!(hard(&[0.0, -2.0, 2.0]).is_infinite(), "{function}");
        assert!(hard(&[0.125, 0.25, 0.375]).is_finite(), "{function}");
    }
}

/// Counts of the bits of what may be any number are of that many bits, and no others; those of s2 wrap around.
#[test]
fn counts_of_bits_have_limits() {
    for (function, expected) in [("popcnt", [3.0, 8.0, 2.0]), ("count-leading-zeros", [3.0, 8.0, 3.0])] {
        for ((ty, value), expected) in [("s4", 1.0), ("u8", 255.0), ("s2", 0.0)].into_iter().zip(expected) {
            let text = format!(
                "HloModule m\nf {{ a = {ty}[] parameter(0)\n ROOT b = {ty}[] parameter(1) }}\nENTRY e {{ x = {ty}[3] parameter(0)\n z = {ty}[] constant(0)\n w = {ty}[1] reduce-window(x, z), window={{size=3}}, to_apply=f\n ROOT y = {ty}[1] {function}(w) }}"
            );
            let found = certified(&text, &[&[-1.0, 0.0, value]], Allowances::LOOSE);
            assert_eq!(found[0].1.hard.at(0), expected, "{function} of {ty}");
        }
    }
}

/// In a type without NaN a function is -0 beyond its domain: at one end of an interval, or at both, and not
/// between them.
#[test]
fn a_domain_has_no_nan_beyond_it_in_a_type_without() {
    let functions =
        [("acos", 0.5), ("acosh", 2.0), ("asin", 0.5), ("atanh", 0.5), ("log", 0.5), ("sqrt", 2.0)];
    for (function, inside) in functions.into_iter().chain([("log-plus-one", -0.5)]) {
        for ty in ["f4e2m1fn", "f6e2m3fn", "f6e3m2fn"] {
            let text = format!(
                "HloModule m\nf {{ a = {ty}[] parameter(0)\n ROOT b = {ty}[] parameter(1) }}\nENTRY e {{ x = {ty}[3] parameter(0)\n z = {ty}[] constant({inside})\n w = {ty}[1] reduce-window(x, z), window={{size=3}}, to_apply=f\n ROOT y = {ty}[1] {function}(w) }}"
            );
            let hard = |x: &[f32]| certified(&text, &[x], Allowances::LOOSE)[0].1.hard.at(0);
            let outside = if ["acos", "asin", "atanh"].contains(&function) { 2.0 } else { -2.0 };
            assert!(hard(&[inside, inside, outside]).is_infinite(), "{function} of {ty}");
            assert!(hard(&[inside, outside, inside]).is_infinite(), "{function} of {ty}");
            assert!(hard(&[inside, inside, inside]).is_finite(), "{function} of {ty}");
        }
    }
}

/// A zero that a flushed number becomes has the sign of whatever it was added to, and so has a zero times it.
#[test]
fn zeros_times_what_may_be_a_zero_have_either_sign() {
    // The least denormal number of f8e5m2 is one that counts as flushed.
    for (ty, tiny) in [("f32", -9.1835e-41), ("f8e5m2", -(2f32.powi(-16)))] {
        let text = format!(
            "HloModule m\nENTRY e {{ x = {ty}[] parameter(0)\n z = {ty}[] constant(0)\n a = {ty}[] add(x, z)\n m = {ty}[] constant(-1)\n b = {ty}[] multiply(a, m)\n ROOT y = {ty}[] multiply(b, z) }}"
        );
        let flush = Allowances { flush_denormals: true, ..Allowances::STRICT };
        let hard = |x: f32| certified(&text, &[&[x]], flush)[0].1.hard.at(0);
        assert!(hard(tiny) > 0.0 && hard(tiny) < 0.01, "{ty} {}", hard(tiny));
        assert_eq!(hard(-2.0), 0.0, "{ty}");
    }
}

#[test]
fn liberties_widen() {
    let text = "HloModule m\nENTRY e { x = f32[] parameter(0)\n y = f32[] multiply(x, x)\n ROOT z = f32[] subtract(y, x) }";
    let with = |allowances| certified(text, &[&[1.1]], allowances)[0].1.soft.at(0);
    assert_eq!(with(Allowances::STRICT), 0.0);
    let contraction = Allowances { contraction: true, ..Allowances::STRICT };
    assert!((U / 2.0..2.0 * U).contains(&with(contraction)));
    let text = "HloModule m\nENTRY e { x = f32[] parameter(0)\n ROOT y = f32[] add(x, x) }";
    let flush = Allowances { flush_denormals: true, ..Allowances::STRICT };
    assert!(certified(text, &[&[1e-40]], flush)[0].1.soft.at(0) > 1.99e-40);
    assert_eq!(certified(text, &[&[1.0]], flush)[0].1.soft.at(0), 0.0);
    let text = "HloModule m\nENTRY e { x = bf16[] parameter(0)\n ROOT y = bf16[] divide(x, x) }";
    let excess = Allowances { excess_precision: true, ..Allowances::STRICT };
    assert_eq!(certified(text, &[&[3.0]], excess)[0].1.soft.at(0), 2f64.powi(-8));
}

#[test]
fn loops_and_branches_carry_bounds() {
    let text = "HloModule m
cond { s = (s32[], f32[]) parameter(0)\n i = s32[] get-tuple-element(s), index=0\n n = s32[] constant(3)\n ROOT p = pred[] compare(i, n), direction=LT }
body { s = (s32[], f32[]) parameter(0)\n i = s32[] get-tuple-element(s), index=0\n one = s32[] constant(1)\n j = s32[] add(i, one)\n x = f32[] get-tuple-element(s), index=1\n y = f32[] exponential(x)\n ROOT t = (s32[], f32[]) tuple(j, y) }
ENTRY e { x = f32[] parameter(0)\n i = s32[] constant(0)\n t = (s32[], f32[]) tuple(i, x)\n ROOT w = (s32[], f32[]) while(t), condition=cond, body=body }";
    let all = certified(text, &[&[0.0]], Allowances::STRICT);
    assert!(all[0].1.is_exact());
    // exp(exp(exp(0))) = e^e: 2 ulp each, carried by derivatives e^e * e and e^e.
    let r = all[1].1.soft.at(0);
    let carried = 41.19 * 2.0 * U + 15.154 * 4.0 * U + 16.0 * U;
    assert!((0.8 * carried..1.5 * carried).contains(&r) && all[1].1.hard == all[1].1.soft, "{r} {carried}");
    // A condition on what may be 1 or less decides the rest.
    let text = "HloModule m
yes { x = f32[] parameter(0)\n ROOT y = f32[] negate(x) }
no { x = f32[] parameter(0)\n ROOT y = f32[] copy(x) }
ENTRY e { x = f32[] parameter(0)\n y = f32[] exponential(x)\n one = f32[] constant(1)\n p = pred[] compare(y, one), direction=LT\n ROOT c = f32[] conditional(p, x, x), true_computation=yes, false_computation=no }";
    let b = one(text, &[&[0.0]]);
    assert!(b.soft.is_zero() && b.hard.at(0).is_infinite());
    assert!(one(text, &[&[1.0]]).is_exact());
}

#[test]
fn a_visitor_sees_every_value_and_resets_bounds() {
    struct Reset(Vec<(String, u64, usize)>, String);
    let (module, _) = parse_text(
        "HloModule m\nf { x = f32[] parameter(0)\n ROOT y = f32[] exponential(x) }\nENTRY e { x = f32[] parameter(0)\n a = f32[] call(x), to_apply=f\n b = f32[] call(a), to_apply=f\n ROOT n = f32[] negate(b) }",
    );
    let module = module.unwrap();
    struct Named<'a>(&'a Module, Reset);
    impl Visitor for Named<'_> {
        fn value(&mut self, at: &At, value: &Value, bounds: &Tree) -> bool {
            assert_eq!(value.arrays().len(), bounds.arrays().len());
            let name = self.0.instr(at.instr).name.to_string();
            let reset = name == self.1.1;
            self.1.0.push((name, at.execution, at.calls.len()));
            reset
        }
    }
    let inputs = Inputs {
        arguments: vec![vec![hlo::Literal::scalar(0.5f32)]],
        host: Arc::new(hlo_interp::device::host::NoHost),
    };
    let run = |name: &str| {
        let mut visitor = Named(&module, Reset(Vec::new(), name.to_owned()));
        let options = RunOptions::default();
        let c = certify(&module, inputs.clone(), &options, Allowances::STRICT, &mut visitor).unwrap();
        (c.results[0][0].1.soft.at(0), visitor.1.0)
    };
    let (carried, seen) = run("");
    let names: Vec<(&str, u64, usize)> = seen.iter().map(|(n, e, d)| (&**n, *e, *d)).collect();
    assert_eq!(
        names,
        [
            ("x", 0, 0),
            ("x", 0, 1),
            ("y", 0, 1),
            ("a", 0, 0),
            ("x", 1, 1),
            ("y", 1, 1),
            ("b", 0, 0),
            ("n", 0, 0)
        ]
    );
    let (local, _) = run("a");
    assert!(local > 0.0 && local < carried);
    assert_eq!(run("n").0, 0.0);
}

/// `exp(x)`, which is within 2 ulp, through a program; the soft and hard radii relative to 2 ulp of 1.
fn through(body: &str, x: &[f32]) -> Vec<(Vec<f64>, Vec<f64>)> {
    let n = x.len();
    let text = format!(
        "HloModule m\nadd {{ a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }}\nlater {{ a = f32[] parameter(0)\n ROOT b = f32[] parameter(1) }}\nless {{ a = f32[] parameter(0)\n b = f32[] parameter(1)\n c = s32[] parameter(2)\n d = s32[] parameter(3)\n ROOT p = pred[] compare(a, b), direction=LT }}\nENTRY e {{ x = f32[{n}] parameter(0)\n y = f32[{n}] exponential(x)\n{body} }}"
    );
    let all = certified(&text, &[x], Allowances::STRICT);
    let each =
        |radii: &Radii, n: usize| (0..n).map(|i| (radii.at(i) / (2.0 * U) * 1e6).round() / 1e6).collect();
    all.iter().map(|(v, b)| (each(&b.soft, v.buffer.len()), each(&b.hard, v.buffer.len()))).collect()
}

fn same(n: &[f64]) -> (Vec<f64>, Vec<f64>) {
    (n.to_vec(), n.to_vec())
}

#[test]
fn movement_takes_radii_along() {
    // exp(0) = 1 and exp(1) = 2.7..., whose ulps are 2^-23 and 2^-22.
    let x = &[0.0, 1.0];
    assert_eq!(through("ROOT r = f32[2] reverse(y), dimensions={0}", x), [same(&[2.0, 1.0])]);
    let pad = "z = f32[] constant(0)\n ROOT r = f32[5] pad(y, z), padding=1_1_1";
    assert_eq!(through(pad, x), [same(&[0.0, 1.0, 0.0, 2.0, 0.0])]);
    let update = "one = s32[] constant(1)\n u = f32[1] slice(y), slice={[1:2]}\n ROOT r = f32[2] dynamic-update-slice(x, u, one)";
    assert_eq!(through(update, x), [same(&[0.0, 2.0])]);
    let gather = "i = s32[3] constant({1, 0, 1})\n ROOT r = f32[3] gather(y, i), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}";
    assert_eq!(through(gather, x), [same(&[2.0, 1.0, 2.0])]);
    let scatter = "i = s32[1] constant({1})\n u = f32[1] slice(y), slice={[0:1]}\n ROOT r = f32[2] scatter(y, i, u), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=later";
    assert_eq!(through(scatter, x), [same(&[1.0, 1.0])]);
    // An index that hangs on rounding: all may be another.
    let index = "c = s32[2] convert(y)\n d = s32[1] slice(c), slice={[0:1]}\n e = s32[] reshape(d)\n ROOT r = f32[1] dynamic-slice(x, e), dynamic_slice_sizes={1}";
    assert_eq!(through(index, x), [(vec![0.0], vec![f64::INFINITY])]);
    // The bits of a number are those of its neighbours, two ulps away: below 1 ulps are half as large.
    let patterns = |n: f64| n / (2.0 * U);
    assert_eq!(through("ROOT r = u32[2] bitcast-convert(y)", x)[0].1, [patterns(4.0), patterns(2.0)]);
}

#[test]
fn a_sum_of_two_rounds_what_it_is_of() {
    // exp(0) = 1 within its ulps, of which 2^20 + 1 has none; but it may round to a neighbour.
    let text = "HloModule m\nplus { a = f64[] parameter(0)\n b = f64[] parameter(1)\n ROOT r = f64[] add(a, b) }\nENTRY e { x = f64[2] parameter(0)\n u = f64[1] parameter(1)\n y = f64[2] exponential(x)\n i = s32[1] constant({0})\n ROOT r = f64[2] scatter(y, i, u), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=plus }";
    let b = one(text, &[&[0.0, 0.0], &[1_048_576.0]]);
    assert_eq!(b.hard, b.soft);
    assert_eq!(b.soft.at(0), (-32.0f64).exp2().next_up());
    // What no update goes to is what it was.
    assert!((f64::EPSILON..=4.0 * f64::EPSILON).contains(&b.soft.at(1)), "{}", b.soft.at(1));
}

#[test]
fn sorted_elements_are_decided_where_their_keys_are_apart() {
    let body = "i = s32[4] iota(), iota_dimension=0\n ROOT r = (f32[4], s32[4]) sort(y, i), dimensions={0}, to_apply=less";
    // 0 and 1e-7: exp of both is within 2 ulp of the other.
    let all = through(body, &[1.0, 0.0, 1e-7, -1.0]);
    assert_eq!(all[0].0, [0.25, 1.0, 1.0, 2.0]);
    assert_eq!(all[1], (vec![0.0; 4], vec![0.0, f64::INFINITY, f64::INFINITY, 0.0]));
    assert!(all[0].1[1] >= 1.0 && all[0].1[1] < 3.0 && all[0].1[3] == 2.0);
    let all = through("ROOT r = (f32[2], s32[2]) topk(y), k=2, largest=true", &[1.0, 0.0, 1e-7, -1.0]);
    assert_eq!(all[1], (vec![0.0; 2], vec![0.0, f64::INFINITY]));
}

#[test]
fn applied_computations_are_followed() {
    let text = "HloModule m
f { a = f32[] parameter(0)\n b = f32[] exponential(a)\n ROOT c = f32[] multiply(b, b) }
latest { a = f32[] parameter(0)\n i = s32[] parameter(1)\n b = f32[] parameter(2)\n j = s32[] parameter(3)\n p = pred[] compare(a, b), direction=GT\n c = f32[] select(p, a, b)\n k = s32[] select(p, i, j)\n ROOT t = (f32[], s32[]) tuple(c, k) }
ENTRY e { x = f32[3] parameter(0)\n y = f32[3] map(x), dimensions={0}, to_apply=f\n i = s32[3] iota(), iota_dimension=0\n low = f32[] constant(-1)\n zero = s32[] constant(0)\n ROOT r = (f32[], s32[]) reduce(y, i, low, zero), dimensions={0}, to_apply=latest }";
    let all = certified(text, &[&[0.0, 2.0, 1.0]], Allowances::STRICT);
    let r = all[0].1.soft.at(0);
    // exp(2)^2 = 54.6, within 2 ulp of 2^-21 each.
    assert!(
        (7.389 * 8.0 * U * 2.0..7.389 * 8.0 * U * 3.0 + 64.0 * U).contains(&r)
            && all[0].1.hard == all[0].1.soft,
        "{r}"
    );
    assert!(all[1].1.is_exact());
    let all = certified(text, &[&[0.0, 1.0, 1.0]], Allowances::STRICT);
    assert!(all[1].1.soft.is_zero() && all[1].1.hard.at(0) >= 1.0);
}

/// Each lane takes its own branch, and ends its own loop.
#[test]
fn branches_and_loops_of_applied_computations_are_followed() {
    // The selector is exact: lanes have 2 ulp of 2^-24 and 2^-23 by exp and tanh; those of 0 and infinity
    // give what is exact.
    let text = "HloModule m
yes { t = (f32[], s32[]) parameter(0)\n x = f32[] get-tuple-element(t), index=0\n y = f32[] exponential(x)\n i = s32[] get-tuple-element(t), index=1\n ROOT r = (f32[], s32[]) tuple(y, i) }
no { x = f32[] parameter(0)\n y = f32[] negate(x)\n i = s32[] constant(7)\n ROOT r = (f32[], s32[]) tuple(y, i) }
f { x = f32[] parameter(0)\n z = f32[] constant(0)\n p = pred[] compare(x, z), direction=GE\n i = s32[] constant(3)\n t = (f32[], s32[]) tuple(x, i)\n c = (f32[], s32[]) conditional(p, t, x), true_computation=yes, false_computation=no\n y = f32[] get-tuple-element(c), index=0\n j = s32[] get-tuple-element(c), index=1\n k = f32[] convert(j)\n ROOT m = f32[] multiply(y, k) }
ENTRY e { x = f32[3] parameter(0)\n ROOT y = f32[3] map(x), dimensions={0}, to_apply=f }";
    let b = one(text, &[&[0.0, -1.0, 1.0]]);
    assert!((6.0 * U..9.0 * U).contains(&b.soft.at(0)) && b.soft == b.hard, "{b:?}");
    assert_eq!(b.soft.at(1), 0.0);
    // An index that may be another: the branches of both, and no third. One out of range selects the last
    // branch.
    let text = "HloModule m
a { x = f32[] parameter(0)\n ROOT r = f32[] constant(10) }
b { x = f32[] parameter(0)\n ROOT r = f32[] constant(20) }
c { x = f32[] parameter(0)\n ROOT r = f32[] constant(40) }
f { s = f32[] parameter(0)\n x = f32[] parameter(1)\n y = f32[] exponential(x)\n i = s32[] convert(y)\n c = f32[] conditional(i, x, x, x), branch_computations={a, b, c}\n ROOT m = f32[] maximum(s, c) }
ENTRY e { x = f32[3,1] parameter(0)\n z = f32[] constant(0)\n ROOT y = f32[3] reduce(x, z), dimensions={1}, to_apply=f }";
    let b = one(text, &[&[0.0, 0.5, 5.0]]);
    assert!(b.soft.is_zero());
    assert!((10.0..=60.0).contains(&b.hard.at(0)) && [1, 2].iter().all(|&i| b.hard.at(i) == 0.0), "{b:?}");
    // Loops of as many iterations as the lane says; if the trip count depends on a rounding, nothing is
    // certain.
    let text = "HloModule m
cond { t = (f32[], f32[]) parameter(0)\n i = f32[] get-tuple-element(t), index=0\n z = f32[] constant(1)\n ROOT p = pred[] compare(i, z), direction=GE }
body { t = (f32[], f32[]) parameter(0)\n i = f32[] get-tuple-element(t), index=0\n one = f32[] constant(1)\n j = f32[] subtract(i, one)\n x = f32[] get-tuple-element(t), index=1\n y = f32[] exponential(x)\n ROOT r = (f32[], f32[]) tuple(j, y) }
f { n = f32[] parameter(0)\n z = f32[] constant(0)\n t = (f32[], f32[]) tuple(n, z)\n w = (f32[], f32[]) while(t), condition=cond, body=body\n ROOT r = f32[] get-tuple-element(w), index=1 }
ENTRY e { x = f32[3] parameter(0)\n y = f32[3] FUNCTION\n ROOT r = f32[3] map(y), dimensions={0}, to_apply=f }";
    let b = one(&text.replace("FUNCTION", "copy(x)"), &[&[0.0, 1.0, 2.0]]);
    // exp(0) = 1 within 2 ulp, and e of that.
    assert!(b.soft == b.hard && b.soft.at(0) == 0.0, "{b:?}");
    assert!(b.soft.at(1) == (2.0 * U).next_up() && (9.0 * U..14.0 * U).contains(&b.soft.at(2)), "{b:?}");
    let b = one(&text.replace("FUNCTION", "exponential(x)"), &[&[0.0, 0.5, -0.5]]);
    assert_eq!([0, 1, 2].map(|i| b.hard.at(i).is_infinite()), [true, false, false]);
    assert!((0..3).all(|i| b.soft.at(i) < 1e-6), "{b:?}");
    // Numbers that are drawn are others in each run.
    let text = "HloModule m
f { x = f32[] parameter(0)\n z = f32[] constant(0)\n r = f32[] rng(z, x), distribution=rng_uniform\n s = f32[1] reshape(r)\n ROOT t = f32[] reshape(s) }
ENTRY e { x = f32[2] parameter(0)\n ROOT y = f32[2] map(x), dimensions={0}, to_apply=f }";
    assert_eq!(one(text, &[&[1.0, 2.0]]).soft, Radii::Unknown);
}

#[test]
fn complex_arithmetic_is_bounded_by_the_modulus() {
    let text = "HloModule m\nENTRY e { x = f32[] parameter(0)\n y = f32[] parameter(1)\n z = c64[] complex(x, y)\n ROOT r = c64[] multiply(z, z) }";
    // (1 + 1e-3 i)^2: the imaginary part may be off by 4 ulp of 1, too.
    let b = one(text, &[&[1.0], &[1e-3]]);
    assert!((4.0 * U..5.0 * U).contains(&b.soft.at(0)));
    let text = "HloModule m\nENTRY e { x = f32[] parameter(0)\n y = f32[] parameter(1)\n z = c64[] complex(x, y)\n r = c64[] add(z, z)\n ROOT i = f32[] imag(r) }";
    assert!(one(text, &[&[1.0], &[0.1]]).is_exact());
    // The real part of the second element is 0 but for rounding, and what is below that is a NaN.
    let text = "HloModule m\nENTRY e { x = f32[3] parameter(0)\n y = f32[3] parameter(1)\n z = c64[3] complex(x, y)\n f = c64[3] fft(z), fft_type=FFT, fft_length={3}\n ROOT r = f8e8m0fnu[3] convert(f) }";
    let b = one(text, &[&[65.0, 65.0, 65.0], &[0.0, 65.0, 65.0]]);
    assert!(b.hard.at(0).is_finite() && b.hard.at(1).is_infinite(), "{b:?}");
}

/// Log-sum-exp in any order: steps, and the result itself. Narrow floats are followed literally.
#[test]
fn log_sum_exp_is_bounded_in_any_order() {
    let form = |ty: &str, n: usize, x: &str| {
        format!(
            "HloModule m
f {{ a = {ty}[] parameter(0)\n b = {ty}[] parameter(1)\n d = {ty}[] subtract(a, b)\n ne = pred[] compare(d, d), direction=NE
 sum = {ty}[] add(a, b)\n max = {ty}[] maximum(a, b)\n abs = {ty}[] abs(d)\n neg = {ty}[] negate(abs)\n exp = {ty}[] exponential(neg)
 rest = {ty}[] log-plus-one(exp)\n regular = {ty}[] add(max, rest)\n ROOT r = {ty}[] select(ne, sum, regular) }}
ENTRY e {{ x = f32[{n}] parameter(0)\n y = {ty}[{n}] {x}(x)\n i = {ty}[] constant(-inf)
 ROOT w = {ty}[{n}] reduce-window(y, i), window={{size={n} pad=0_{pad}}}, to_apply=f }}",
            pad = n - 1
        )
    };
    let x: Vec<f32> = (0..2000).map(|i| (i % 7) as f32).collect();
    let b = one(&form("f32", 2000, "copy"), &[&x]);
    // 2000 elements come to about 12.5; a step is off by half a unit of that and a few.
    let r = b.soft.at(0);
    assert!((2000.0 * 12.0 * U..2000.0 * 32.0 * U).contains(&r) && b.hard == b.soft, "{r}");
    // From the initial value alone there is one step.
    assert!(b.soft.at(1999) < 16.0 * U * 5.0, "{}", b.soft.at(1999));
    // What is off moves the result by no more.
    let moved = one(&form("f32", 2000, "exponential"), &[&x[..7].repeat(286)[..2000]]).soft.at(0);
    assert!(moved > 2.0 * 256.0 * U && moved < 2000.0 * 1000.0 * U, "{moved}");
    // Infinities and NaNs have no order.
    let b = one(&form("f32", 3, "copy"), &[&[f32::INFINITY, f32::NAN, f32::NEG_INFINITY]]);
    assert!(b.is_exact(), "{b:?}");
    // Narrow floats are folded in order, and their functions are exact.
    let b = one(&form("bf16", 3, "convert"), &[&[1.0, 2.0, 3.0]]);
    assert!(b.is_exact(), "{b:?}");
}

/// Complex products are rounded each, however they are folded; real ones of exact factors are exact where
/// each step is.
#[test]
fn products_of_many_are_rounded_at_each_step() {
    let scatter = |ty: &str| {
        format!(
            "HloModule m
mul {{ a = {ty}[] parameter(0)\n b = {ty}[] parameter(1)\n ROOT c = {ty}[] multiply(a, b) }}
ENTRY e {{ x = f32[3] parameter(0)\n y = f32[4] parameter(1)\n i = s32[4,1] constant({{ {{0}}, {{1}}, {{1}}, {{7}} }})
 p = {ty}[3] convert(x)\n q = {ty}[4] convert(y)
 ROOT s = {ty}[3] scatter(p, i, q), update_window_dims={{}}, inserted_window_dims={{0}}, scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=mul }}"
        )
    };
    let inputs: [&[f32]; 2] = [&[1.0, 1.5, 3.0], &[2.0, 0.5, 3.0, 5.0]];
    let b = one(&scatter("c64"), &inputs);
    // 2 and 2.25, each step within 5 units of 2^-22; the last is no product.
    assert!((2.0 * 5.0 * U..64.0 * U).contains(&b.soft.at(0)), "{}", b.soft.at(0));
    assert!((4.0 * 5.0 * U..128.0 * U).contains(&b.soft.at(1)), "{}", b.soft.at(1));
    assert!(b.soft.at(2) == 0.0 && b.hard == b.soft);
    assert!(one(&scatter("f32"), &inputs).is_exact());
    // Factors that are off: e^0 within 2 units each, of which there are three.
    let text = "HloModule m
mul { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] multiply(a, b) }
ENTRY e { x = f32[1] parameter(0)\n y = f32[3] parameter(1)\n z = f32[3] exponential(y)\n i = s32[3,1] constant({ {0}, {0}, {0} })
 ROOT s = f32[1] scatter(x, i, z), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=mul }";
    let r = one(text, &[&[3.0], &[0.0, 0.0, 0.0]]).soft.at(0);
    assert!((18.0 * U..32.0 * U).contains(&r), "{r}");
    // Windows that overlap may share their factors in another order.
    let text = "HloModule m
mul { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] multiply(a, b) }
ENTRY e { x = f32[3] parameter(0)\n i = f32[] constant(1)\n ROOT w = f32[3] reduce-window(x, i), window={size=3 pad=0_2}, to_apply=mul }";
    let b = one(text, &[&[2.0, 3.0, 5.0]]);
    assert!((30.0 * U..30.0 * 16.0 * U).contains(&b.soft.at(0)) && b.hard == b.soft, "{b:?}");
    // What may be too large on the way is open.
    let b = one(&scatter("c64"), &[&[1.0, 1e-30, 3.0], &[2.0, 1e38, 10.0, 5.0]]);
    assert!(b.soft.at(1).is_finite() && b.hard.at(1) == f64::INFINITY && b.hard.at(0).is_finite());
    // More steps than are followed.
    let text = "HloModule m
mul { a = c64[] parameter(0)\n b = c64[] parameter(1)\n ROOT c = c64[] multiply(a, b) }
ENTRY e { x = f32[] parameter(0)\n b = f32[1000] broadcast(x), dimensions={}\n z = c64[1000] complex(b, b)\n i = c64[] constant((1, 0))\n ROOT r = c64[] reduce(z, i), dimensions={0}, to_apply=mul }";
    let r = one(text, &[&[0.5f32.sqrt()]]).soft.at(0);
    assert!((1e3 * U..2e4 * U).contains(&r), "{r}");
}

#[test]
fn open_numbers_have_no_bounds() {
    let text = "HloModule m\nENTRY e { a = f32[] constant(0)\n b = f32[] constant(1)\n ROOT r = f32[4] rng(a, b), distribution=rng_uniform }";
    assert_eq!(one(text, &[]).soft, Radii::unknown(4));
    let text = "HloModule m\nENTRY e { x = f32[2,2] parameter(0)\n ROOT r = (f32[2,2], s32[2], s32[]) custom-call(x), custom_call_target=\"lapack_sgetrf_ffi\", operand_layout_constraints={f32[2,2]{0,1}} }";
    let (module, _) = parse_text(text);
    assert!(module.is_some());
    let text = "HloModule m\nENTRY e { x = f32[2] parameter(0)\n y = f32[2] exponential(x)\n ROOT r = f32[2] custom-call(y), custom_call_target=\"Sharding\" }";
    assert!((2.0 * U..2.1 * U).contains(&one(text, &[&[0.0, 0.0]]).soft.at(0)));
    let text = "HloModule m\nENTRY e { x = f32[2] parameter(0)\n ROOT r = f32[2] custom-call(x), custom_call_target=\"chlo.erf\" }";
    let r = one(text, &[&[0.5, 1.0]]);
    assert!(r.soft.at(0) > 0.0 && r.hard.at(1) < 1e-6);
}

#[test]
fn bits_of_floats_are_off_by_the_floats_between() {
    let text = "HloModule m\nENTRY e { x = f32[3] parameter(0)\n y = f32[3] exponential(x)\n z = f32[3] constant({0, 0, 1})\n d = f32[3] subtract(y, z)\n ROOT b = s32[3] bitcast-convert(d) }";
    let hard = one(text, &[&[0.5, 3.0, 1e-9]]).hard;
    assert!(
        (1.0..9.0).contains(&hard.at(0)) && (1.0..9.0).contains(&hard.at(1)),
        "{}, {}",
        hard.at(0),
        hard.at(1)
    );
    // It may be a number of either sign.
    assert!(hard.at(2).is_infinite());
}

#[test]
fn what_is_beyond_a_bound_is_outside() {
    let text = "HloModule m\nadd { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }\nENTRY e { x = f32[100] parameter(0)\n z = f32[] constant(0)\n ROOT s = f32[] reduce(x, z), dimensions={0}, to_apply=add }";
    let x = some(100, 9);
    let sum: f64 = x.iter().map(|&x| f64::from(x)).sum();
    let size: f64 = x.iter().map(|&x| f64::from(x.abs())).sum();
    let r = one(text, &[&x]).hard.at(0);
    // An element left out is seen; the sum from the other end is not.
    let backwards: f32 = x.iter().rev().sum();
    assert!((f64::from(backwards) - sum).abs() <= r);
    let smallest = x.iter().map(|x| x.abs()).fold(1.0, f32::min);
    assert!(f64::from(smallest) > r && r < 101.0 * U * size, "{smallest} {r}");
}

#[test]
fn liberties_reach_what_they_change() {
    let all = |allowances: Allowances| {
        move |text: &str, inputs: &[&[f32]]| certified(text, inputs, allowances)[0].1.hard.at(0)
    };
    let contraction = all(Allowances { contraction: true, ..Allowances::STRICT });
    // An unrounded product has not overflowed, nor been saturated at the greatest number.
    let text = "HloModule m\nENTRY e { x = f32[] parameter(0)\n y = f32[] parameter(1)\n z = f32[] multiply(x, x)\n ROOT w = f32[] subtract(y, z) }";
    assert_eq!(contraction(text, &[&[2.6e32], &[f32::INFINITY]]), f64::INFINITY);
    let text = "HloModule m\nENTRY e { x = f6e2m3fn[] parameter(0)\n z = f6e2m3fn[] multiply(x, x)\n ROOT w = f6e2m3fn[] subtract(z, x) }";
    assert_eq!(contraction(text, &[&[7.0]]), f64::INFINITY);
    // The unrounded product is between two numbers of f64.
    let text = "HloModule m\nENTRY e { x = f64[] parameter(0)\n z = f64[] multiply(x, x)\n ROOT w = f64[] subtract(x, z) }";
    assert!(contraction(text, &[&[1.364_340_9]]) >= f64::EPSILON / 2.0);
    let flush = all(Allowances { flush_denormals: true, ..Allowances::STRICT });
    let text = "HloModule m\nany { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = pred[] convert(a) }\nleast { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] minimum(a, b) }\nENTRY e { x = f32[1] parameter(0)\n s = f32[1] parameter(1)\n i = f32[] parameter(2)\n ROOT w = f32[1] select-and-scatter(x, s, i), window={size=1}, select=any, scatter=least }";
    assert!(flush(text, &[&[0.0], &[1e-40], &[1e-40]]) >= 1e-40);
}

#[test]
fn sums_are_recognized_as_the_reference_does() {
    let text = "HloModule m\ncopied { a = f32[] parameter(0)\n ROOT b = f32[] copy(a) }\nadd { a = f32[] parameter(0)\n b = f32[] parameter(1)\n c = f32[] call(b), to_apply=copied\n ROOT d = f32[] add(a, c) }\nENTRY e { x = f32[9] parameter(0)\n z = f32[] constant(0)\n ROOT s = f32[] reduce(x, z), dimensions={0}, to_apply=add }";
    assert!(one(text, &[&some(9, 1)]).soft.at(0) > 0.0);
}

#[test]
fn products_that_underflow_are_zeros_of_either_sign() {
    let text = "HloModule m\nENTRY e { x = f32[1] parameter(0)\n y = f32[1] parameter(1)\n ROOT z = f32[] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0} }";
    assert_eq!(one(text, &[&[-1e-30], &[1e-30]]).soft.at(0), f64::from(f32::from_bits(1)));
    assert!(one(text, &[&[-0.0], &[1.0]]).is_exact());
}

/// What selects sees its operands as they are, not the numbers that bounds are counted by: here the imaginary
/// part decides.
#[test]
fn what_is_scattered_goes_where_elements_are_selected() {
    for fold in ["add", "multiply"] {
        let text = format!(
            "HloModule m\nany {{ a = c64[] parameter(0)\n b = c64[] parameter(1)\n d = f32[] imag(b)\n ROOT c = pred[] convert(d) }}
fold {{ a = c64[] parameter(0)\n b = c64[] parameter(1)\n ROOT c = c64[] {fold}(a, b) }}
ENTRY e {{ x = f32[2] parameter(0)\n y = f32[2] parameter(1)\n p = f32[2] parameter(2)\n q = f32[] parameter(3)
 z = c64[2] complex(x, y)\n s = c64[2] complex(p, p)\n i = c64[] complex(q, q)
 ROOT w = c64[2] select-and-scatter(z, s, i), window={{size=2 pad=1_0}}, select=any, scatter=fold }}"
        );
        let b = one(&text, &[&[0.0, 0.0], &[0.0, 1.0], &[0.3, 0.4], &[0.7]]);
        assert!(b.soft.at(0) > 0.0 && b.soft.at(1) == 0.0 && b.hard == b.soft, "{fold}: {b:?}");
    }
}
