//! Liberties of compilers that one instruction takes: what they allow, and what they do not.

use hlo::ArrayLiteral;
use hlo_execution::allowances::Allowances;
use hlo_execution::format::power_of_two;
use hlo_execution::number;

use crate::common::certified;
use crate::logits::some;

fn with(name: &str) -> Allowances {
    Allowances::named(name).unwrap()
}

/// The hard radii of the first result.
fn hard(text: &str, inputs: &[&[f32]], allowances: Allowances) -> Vec<f64> {
    let all = certified(text, inputs, allowances);
    (0..all[0].0.buffer.len()).map(|i| all[0].1.hard.at(i)).collect()
}

/// XLA:CPU computes f8e8m0fnu in f32 with denormals flushed: 2^-127 is 0 there, of which the type has none,
/// so what is computed from it or becomes it may be NaN. Conversions, `abs` and `copy` keep it, and a
/// comparison sees 0 or 2^-127.
#[test]
fn the_least_scale_may_be_flushed_to_a_zero_that_its_type_lacks() {
    let two_to = |k: i32| power_of_two(k) as f32;
    let least = two_to(-127);
    let flush = with("flush-denormals");
    let of = |opcode: &str| {
        format!(
            "HloModule m\nENTRY e {{ x = f8e8m0fnu[3] parameter(0)\n ROOT y = f8e8m0fnu[3] {opcode}(x) }}"
        )
    };
    let x: &[f32] = &[least, 2.0 * least, 1.0];
    for opcode in ["sqrt", "rsqrt", "erf", "cbrt", "floor"] {
        let strict = hard(&of(opcode), &[x], Allowances::STRICT);
        assert!(strict.iter().all(|r| r.is_finite()), "{opcode} {strict:?}");
        let found = hard(&of(opcode), &[x], flush);
        assert!(found[0].is_infinite() && found[2].is_finite(), "{opcode} {found:?}");
    }
    for opcode in ["abs", "copy"] {
        assert_eq!(hard(&of(opcode), &[x], flush), [0.0; 3], "{opcode}");
    }
    for ty in ["f32", "f64", "bf16", "f16", "s32"] {
        let text =
            format!("HloModule m\nENTRY e {{ x = f8e8m0fnu[3] parameter(0)\n ROOT y = {ty}[3] convert(x) }}");
        let found = hard(&text, &[x], flush);
        assert!(found.iter().all(|&r| r < 1e-4), "{ty} {found:?}");
    }
    let of = |opcode: &str| {
        format!(
            "HloModule m\nENTRY e {{ x = f8e8m0fnu[3] parameter(0)\n y = f8e8m0fnu[3] parameter(1)\n ROOT z = f8e8m0fnu[3] {opcode}(x, y) }}"
        )
    };
    for opcode in ["add", "multiply", "divide", "maximum", "minimum", "remainder"] {
        let found = hard(&of(opcode), &[x, x], flush);
        assert!(found[0].is_infinite() && found[2] == 0.0, "{opcode} {found:?}");
    }
    // The result alone is too small: 2^-63 * 2^-64.
    let small: [&[f32]; 2] = [&[two_to(-63), 1.0, 1.0], &[two_to(-64), 1.0, 1.0]];
    assert!(hard(&of("multiply"), &small, flush)[0].is_infinite());
    assert_eq!(hard(&of("multiply"), &small, Allowances::STRICT), [0.0; 3]);
    let compares = |direction: &str| {
        format!(
            "HloModule m\nENTRY e {{ x = f8e8m0fnu[3] parameter(0)\n y = f8e8m0fnu[3] parameter(1)\n ROOT z = pred[3] compare(x, y), direction={direction} }}"
        )
    };
    // 0 or 2^-127 is below 2^-126 and 1 either way.
    assert_eq!(hard(&compares("LT"), &[x, &[2.0 * least, 1.0, 2.0]], flush), [0.0; 3]);
    for (text, terms) in [
        (
            "HloModule m\nadd { a = f8e8m0fnu[] parameter(0)\n b = f8e8m0fnu[] parameter(1)\n ROOT c = f8e8m0fnu[] add(a, b) }\nENTRY e { x = f8e8m0fnu[2] parameter(0)\n z = f8e8m0fnu[] parameter(1)\n ROOT s = f8e8m0fnu[] reduce(x, z), dimensions={0}, to_apply=add }",
            [&[least, least][..], &[least]],
        ),
        (
            "HloModule m\nENTRY e { x = f8e8m0fnu[2] parameter(0)\n y = f8e8m0fnu[2] parameter(1)\n ROOT z = f8e8m0fnu[] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0} }",
            [&[least, least], &[1.0, 1.0]],
        ),
    ] {
        assert!(hard(text, &terms, flush)[0].is_infinite(), "{text}");
        assert!(certified(text, &terms, flush)[0].1.hard.admits(0, f64::NAN), "{text}");
    }
}

/// A product of scales that may be 2^-127 on the way, or is in the end, is a NaN where that is flushed.
#[test]
fn products_of_scales_may_be_flushed_on_the_way() {
    let flush = with("flush-denormals");
    let two_to = |k: i32| power_of_two(k) as f32;
    let region = "fold { a = f8e8m0fnu[] parameter(0)\n b = f8e8m0fnu[] parameter(1)\n ROOT c = f8e8m0fnu[] multiply(b, a) }";
    let scatter = format!(
        "HloModule m\n{region}\nENTRY e {{ x = f8e8m0fnu[1] parameter(0)\n u = f8e8m0fnu[2] parameter(1)\n i = s32[2,1] constant({{{{0}}, {{0}}}})\n ROOT s = f8e8m0fnu[1] scatter(x, i, u), update_window_dims={{}}, inserted_window_dims={{0}}, scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=fold }}"
    );
    let reduce = format!(
        "HloModule m\n{region}\nENTRY e {{ z = f8e8m0fnu[1] parameter(0)\n x = f8e8m0fnu[2] parameter(1)\n i = f8e8m0fnu[] reshape(z)\n r = f8e8m0fnu[] reduce(x, i), dimensions={{0}}, to_apply=fold\n ROOT s = f8e8m0fnu[1] reshape(r) }}"
    );
    let windows = format!(
        "HloModule m\n{region}\nENTRY e {{ z = f8e8m0fnu[1] parameter(0)\n x = f8e8m0fnu[2] parameter(1)\n i = f8e8m0fnu[] reshape(z)\n ROOT r = f8e8m0fnu[1] reduce-window(x, i), window={{size=2}}, to_apply=fold }}"
    );
    for text in [&scatter, &reduce, &windows] {
        for reorder_regions in [false, true] {
            let flush = Allowances { reorder_regions, ..flush };
            let of = |x: f32, a: i32, b: i32| hard(text, &[&[x], &[two_to(a), two_to(b)]], flush)[0];
            // In the end; in an operand; in some order; nowhere.
            assert!(of(2.0, -64, -64).is_infinite(), "{text}");
            assert!(of(1.0, -127, 2).is_infinite(), "{text}");
            assert!(!reorder_regions || of(4.0, -64, -63).is_infinite(), "{text}");
            assert!(of(2.0, -60, -60).is_finite(), "{text}");
        }
        let strict = Allowances { reorder_regions: true, ..Allowances::STRICT };
        assert!(hard(text, &[&[2.0], &[two_to(-64), two_to(-63)]], strict)[0].is_finite(), "{text}");
    }
}

/// A product alone, or an element with an initial value of 0: -0 where it is not added to 0. (Sums of several
/// terms are rounded, and zeros of either sign without the liberty.)
#[test]
fn a_sum_of_one_term_may_be_the_term() {
    let allowed = with("one-term-sums");
    let least = f64::from(f32::from_bits(1));
    let dot = "HloModule m\nENTRY e { x = f32[1] parameter(0)\n y = f32[1] parameter(1)\n ROOT z = f32[] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0} }";
    assert_eq!(hard(dot, &[&[-0.0], &[1.0]], allowed), [least]);
    assert_eq!(hard(dot, &[&[-0.0], &[1.0]], Allowances::STRICT), [0.0]);
    assert_eq!(hard(dot, &[&[-2.0], &[1.0]], allowed), [0.0]);
    let convolution = "HloModule m\nENTRY e { x = f32[1,2,1] parameter(0)\n y = f32[1,1,1] parameter(1)\n ROOT z = f32[1,2,1] convolution(x, y), window={size=1}, dim_labels=b0f_0io->b0f }";
    assert_eq!(hard(convolution, &[&[-0.0, 3.0], &[1.0]], allowed), [least, 0.0]);
    let reduce = "HloModule m\nadd { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }\nENTRY e { x = f32[1] parameter(0)\n z = f32[] constant(0)\n ROOT s = f32[] reduce(x, z), dimensions={0}, to_apply=add }";
    assert_eq!(hard(reduce, &[&[-0.0]], allowed), [least]);
    assert_eq!(hard(reduce, &[&[-0.0]], Allowances::STRICT), [0.0]);
    // A reference of -0 is the term already.
    let from = "HloModule m\nadd { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }\nENTRY e { x = f32[1] parameter(0)\n z = f32[] parameter(1)\n ROOT s = f32[] reduce(x, z), dimensions={0}, to_apply=add }";
    assert_eq!(hard(from, &[&[-0.0], &[-0.0]], allowed), [0.0]);
}

/// A division of many by a few numbers, or by constants.
fn by(divisor: &str) -> String {
    format!(
        "HloModule m\nENTRY e {{ x = f32[4] parameter(0)\n s = f32[] parameter(1)\n {divisor}\n ROOT q = f32[4] divide(x, c) }}"
    )
}

/// `x * (1 / c)` for divisors and numerators of all mantissas is at most 2 ulp from `x / c`: the number that
/// bounds take.
#[test]
fn a_product_with_the_reciprocal_is_within_its_bound() {
    let text = by("c = f32[4] broadcast(s), dimensions={}");
    let allowed = with("reciprocals");
    let (mut seed, mut apart) = (1u32, 0u32);
    let mut next = || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f32::from_bits(0x3f80_0000 | seed >> 9)
    };
    for _ in 0..200_000 {
        let (x, c) = (next(), next());
        apart = apart.max((x / c).to_bits().abs_diff((x * (1.0 / c)).to_bits()));
    }
    assert!((1..=2).contains(&apart), "{apart}");
    for _ in 0..200 {
        let (x, c) = ([next(), -next(), next() * 1e-20, next() * 1e20], next());
        let found = hard(&text, &[&x, &[c]], allowed);
        for (x, r) in x.iter().zip(found) {
            let (quotient, product) = (x / c, x * (1.0 / c));
            let ulp = f64::from(f32::from_bits(quotient.abs().to_bits() + 1) - quotient.abs());
            let off = f64::from((quotient - product).abs());
            assert!(off <= r && r <= 4.5 * ulp, "{x} / {c}: {off} {r} {ulp}");
        }
    }
}

/// Only of divisors that a compiler has fewer of, and not without the liberty.
#[test]
fn divisors_that_repeat_may_have_reciprocals() {
    let x: &[f32] = &[1.0, 2.0, 3.0, 5.0];
    let allowed = with("reciprocals");
    for (divisor, repeats) in [
        ("c = f32[4] broadcast(s), dimensions={}", true),
        ("c = f32[4] constant({3, 5, 7, 9})", true),
        ("b = f32[4] broadcast(s), dimensions={}\n c = f32[4] exponential(b)", true),
        ("b = f32[2,2] broadcast(s), dimensions={}\n c = f32[4] reshape(b)", true),
        (
            "o = f32[4] constant({1, 2, 3, 4})\n b = f32[4] broadcast(s), dimensions={}\n c = f32[4] add(b, o)",
            true,
        ),
        ("c = f32[4] negate(x)", false),
        ("b = f32[4] broadcast(s), dimensions={}\n c = f32[4] add(b, x)", false),
        ("c = f32[4] iota(), iota_dimension=0", false),
    ] {
        // Functions have no units here, so that what is off is the quotient.
        let table = |text: &str, allowances| hard(text, &[x, &[3.0]], allowances);
        let (found, strict) = (table(&by(divisor), allowed), table(&by(divisor), Allowances::STRICT));
        assert_eq!(found[3] > strict[3], repeats, "{divisor}: {found:?} {strict:?}");
    }
    // Handed to a computation, and in an applied one.
    let called = "HloModule m\nq { a = f32[4] parameter(0)\n b = f32[4] parameter(1)\n ROOT c = f32[4] divide(a, b) }\nENTRY e { x = f32[4] parameter(0)\n s = f32[] parameter(1)\n b = f32[4] broadcast(s), dimensions={}\n ROOT r = f32[4] call(x, b), to_apply=q }";
    assert!(hard(called, &[x, &[3.0]], allowed)[1] > 0.0);
    let applied = "HloModule m\nq { a = f32[] parameter(0)\n b = f32[] constant(3)\n ROOT c = f32[] divide(a, b) }\nENTRY e { x = f32[4] parameter(0)\n ROOT r = f32[4] map(x), dimensions={0}, to_apply=q }";
    assert!(hard(applied, &[x], allowed)[1] > 0.0);
    let entry = "HloModule m\nENTRY e { x = f32[4] parameter(0)\n c = f32[4] parameter(1)\n ROOT r = f32[4] divide(x, c) }";
    assert_eq!(hard(entry, &[x, &[3.0; 4]], allowed), [0.0; 4]);
}

/// A reciprocal that overflows makes infinities, one that is denormal has few bits or is flushed.
#[test]
fn reciprocals_at_the_ends_of_the_exponents_say_less() {
    let allowed = with("reciprocals");
    let text = by("c = f32[4] constant({1e-39, 2e38, 3e38, 0})");
    let x: &[f32] = &[1e-30, 1e30, 0.0, 1.0];
    let found = hard(&text, &[x, &[0.0]], allowed);
    assert!(found[0].is_infinite(), "{found:?}");
    // 1 / 2e38 is 5e-39, which is off by up to half of 2^-149: times 1e30.
    let product = 1e30f32 * (1.0 / 2e38f32);
    let off = f64::from((1e30f32 / 2e38f32 - product).abs());
    assert!(off <= found[1] && found[1] < 1e-14, "{off} {found:?}");
    // 0 is 0 by either way, and 1 / 0 infinite.
    assert_eq!(found[2..], [0.0, 0.0]);
    let flushed = Allowances { flush_denormals: true, ..allowed };
    let found = hard(&text, &[x, &[0.0]], flushed);
    assert!(found[1] >= f64::from(1e30f32 / 2e38f32), "{found:?}");
}

/// `x * w + (offset - mean * w)` in f16: the products overflow, the result does not.
#[test]
fn an_affine_batch_norm_may_overflow_on_the_way() {
    let text = "HloModule m\nENTRY e { x = f16[2,1] parameter(0)\n s = f16[1] parameter(1)\n o = f16[1] parameter(2)\n m = f16[1] parameter(3)\n v = f16[1] parameter(4)\n ROOT y = f16[2,1] batch-norm-inference(x, s, o, m, v), epsilon=0, feature_index=1 }";
    let far: [&[f32]; 5] = [&[4864.0, 4864.0], &[4864.0], &[4864.0], &[4864.0], &[4864.0]];
    let allowed = with("affine-batch-norm");
    assert!(hard(text, &far, allowed)[0].is_infinite());
    assert!(hard(text, &far, Allowances::STRICT)[0].is_finite());
    let near: [&[f32]; 5] = [&[1.0, 3.0], &[2.0], &[1.0], &[2.0], &[4.0]];
    let found = hard(text, &near, allowed);
    assert!(found.iter().all(|&r| r > 0.0 && r < 0.1), "{found:?}");
}

/// The mean is finite, the sum that it is made of is not: an engine that adds up in the type gives an
/// infinity.
#[test]
fn the_sum_of_a_mean_may_overflow() {
    let text = "HloModule m\nENTRY e { x = bf16[4,1] parameter(0)\n s = bf16[1] parameter(1)\n t = (bf16[4,1], bf16[1], bf16[1]) batch-norm-training(x, s, s), epsilon=0.001, feature_index=1\n ROOT m = bf16[1] get-tuple-element(t), index=1 }";
    assert!(hard(text, &[&[-1e38; 4], &[1.0]], Allowances::STRICT)[0].is_infinite());
    assert!(hard(text, &[&[-1e37; 4], &[1.0]], Allowances::STRICT)[0].is_finite());
}

/// A denormal mean, offset, scale and variance may all be flushed: the result is zero then, and normal
/// otherwise.
#[test]
fn operands_of_batch_norm_are_flushed() {
    let text = "HloModule m\nENTRY e { x = f32[1] parameter(0)\n p = f32[1] parameter(1)\n ROOT y = f32[1] batch-norm-inference(x, p, p, p, p), epsilon=0.001, feature_index=0 }";
    let soft = |allowances| certified(text, &[&[2.0], &[4e-39]], allowances)[0].1.soft.at(0);
    let flush = Allowances { flush_denormals: true, ..Allowances::STRICT };
    assert!(soft(flush) > 2.0 * 4e-39 / 0.001f64.sqrt() && soft(Allowances::STRICT) < 1e-40);
}

/// The gradient multiplies a distance from the mean by a sum of these, before or after division by the
/// variance.
#[test]
fn a_batch_norm_gradient_overflows_in_some_order() {
    let text = "HloModule m\nENTRY e { x = f32[1] parameter(0)\n p = f32[1] parameter(1)\n y = (f32[1], f32[1], f32[1]) batch-norm-grad(x, p, p, p, x), epsilon=0.001, feature_index=0\n ROOT d = f32[1] get-tuple-element(y), index=0 }";
    let radii = |p: f32| {
        let b = certified(text, &[&[1.0], &[p]], Allowances::STRICT).remove(0).1;
        (b.soft.at(0), b.hard.at(0))
    };
    let (soft, hard) = radii(4e25);
    assert!(soft.is_finite() && hard.is_infinite(), "{soft} {hard}");
    assert!(radii(4e15).1.is_finite());
}

/// With the mean and the offset far above the operand the small term is lost in the products, as in the
/// differences.
#[test]
fn an_affine_batch_norm_in_f32_is_inside() {
    let text = "HloModule m\nENTRY e { x = f32[8,2] parameter(0)\n s = f32[2] parameter(1)\n o = f32[2] parameter(2)\n m = f32[2] parameter(3)\n v = f32[2] parameter(4)\n ROOT y = f32[8,2] batch-norm-inference(x, s, o, m, v), epsilon=0.001, feature_index=1 }";
    for far in [1.0f32, 1e3, 1e6] {
        let (x, s, o, m) = (some(16, 1), some(2, 2), some(2, 3), some(2, 4));
        let (o, m): (Vec<f32>, Vec<f32>) =
            (o.iter().map(|o| o * far).collect(), m.iter().map(|m| m * far).collect());
        let v = [0.5f32, 2.0];
        let all = certified(text, &[&x, &s, &o, &m, &v], with("affine-batch-norm"));
        for (i, &x) in x.iter().enumerate() {
            let c = i % 2;
            let w = s[c] * (1.0 / (v[c] + 0.001).sqrt());
            let y = x * w + (o[c] - m[c] * w);
            let reference = number::Numbers::of(&hlo_interp::Tensor::from_literal(all[0].0.clone())).re[i];
            let off = (f64::from(y) - reference).abs();
            assert!(off <= all[0].1.soft.at(i), "{far} {i}: {off} {}", all[0].1.soft.at(i));
        }
    }
}

/// Windows of 2 over what comes first by `select`: of a best one that nothing ties with every order selects
/// the same.
#[test]
fn a_window_without_a_single_best_one_is_open() {
    let text = |select: &str| {
        format!(
            "HloModule m\nsel {{ a = f32[] parameter(0)\n b = f32[] parameter(1)\n {select} }}\nadd {{ a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }}\nENTRY e {{ x = f32[6] parameter(0)\n s = f32[3] parameter(1)\n z = f32[] constant(0)\n ROOT w = f32[6] select-and-scatter(x, s, z), window={{size=2 stride=2}}, select=sel, scatter=add }}"
        )
    };
    let any = with("reorder-regions");
    let open = |select: &str, x: &[f32], allowances| -> Vec<bool> {
        hard(&text(select), &[x, &[1.0, 2.0, 3.0]], allowances).iter().map(|r| r.is_infinite()).collect()
    };
    let ge = "ROOT c = pred[] compare(a, b), direction=GE";
    assert_eq!(open(ge, &[1.0, 2.0, 5.0, 4.0, 3.0, 3.0], any), [false, false, false, false, true, true]);
    assert_eq!(open(ge, &[1.0, 2.0, 5.0, 4.0, 3.0, 3.0], Allowances::STRICT), [false; 6]);
    // No order: the first is kept, or replaced, whatever is in which position.
    let ne = "ROOT c = pred[] compare(a, b), direction=NE";
    assert_eq!(open(ne, &[1.0, 2.0, 5.0, 5.0, 3.0, 4.0], any), [true; 6]);
    assert_eq!(open("ROOT c = pred[] constant(true)", &[1.0, 2.0, 5.0, 5.0, 3.0, 4.0], any), [true; 6]);
    // By magnitude, as JAX differentiates norms: an order.
    let magnitude = "d = f32[] abs(a)\n e = f32[] abs(b)\n ROOT c = pred[] compare(d, e), direction=GE";
    assert_eq!(
        open(magnitude, &[1.0, -2.0, 5.0, 4.0, 3.0, -3.0], any),
        [false, false, false, false, true, true]
    );
    let b = &certified(&text(ge), &[&[3.0; 6], &[1.0, 2.0, 3.0]], any)[0].1;
    assert!(b.soft.is_zero(), "decided as the reference decides: {b:?}");
}

/// The root of 3.875 in f8e3m4 (4 bits behind the point): 1.96850..., below the middle 1.96875 of 1.9375 and
/// 2, which f16 rounds it to; the middle goes to the even one, 2.
#[test]
fn a_result_rounded_by_way_of_f16_is_inside() {
    let text = "HloModule m\nENTRY e { x = f8e3m4[2] parameter(0)\n ROOT y = f8e3m4[2] sqrt(x) }";
    let found = hard(text, &[&[3.875, 4.0]], with("excess-precision"));
    assert!((0.0625..=0.125).contains(&found[0]) && found[1] < 0.125, "{found:?}");
    assert_eq!(hard(text, &[&[3.875, 4.0]], Allowances::STRICT), [0.0; 2]);
    let text = "HloModule m\nENTRY e { x = f8e5m2[2] parameter(0)\n ROOT y = f8e5m2[2] sqrt(x) }";
    assert!(hard(text, &[&[3.5, 4.0]], with("excess-precision"))[1] <= 0.25);
    // 0 / 0 is a NaN in f16, and a zero of either sign in a type without NaN; 0 / 1 is 0.
    let text = "HloModule m\nENTRY e { x = f4e2m1fn[2] parameter(0)\n y = f4e2m1fn[2] parameter(1)\n ROOT q = f4e2m1fn[2] divide(x, y) }";
    let found = hard(text, &[&[0.0, 6.0], &[0.0, 1.0]], with("excess-precision"));
    assert!(found[0] > 0.0 && found[0] <= 0.75, "{found:?}");
}

/// `x / (b c)`, `x c / b`, `x rsqrt(b)` and `x exp(-b)` in f32 instead of quotients by quotients, roots and
/// exponentials.
#[test]
fn quotients_of_quotients_roots_and_exponentials_are_inside_regrouped() {
    let text = "HloModule m
ENTRY e { x = f32[64] parameter(0)
 b = f32[64] parameter(1)
 c = f32[64] parameter(2)
 q = f32[64] divide(x, b)
 o0 = f32[64] divide(q, c)
 t = f32[64] divide(b, c)
 o1 = f32[64] divide(x, t)
 s = f32[64] sqrt(b)
 o2 = f32[64] divide(x, s)
 e = f32[64] exponential(b)
 o3 = f32[64] divide(x, e)
 ROOT o = (f32[64], f32[64], f32[64], f32[64]) tuple(o0, o1, o2, o3) }";
    let positive = |seed| some(64, seed).iter().map(|x| x.abs() + 0.5).collect::<Vec<f32>>();
    let (x, b, c) = (some(64, 1), positive(2), positive(3));
    let all = certified(text, &[&x, &b, &c], with("reciprocals"));
    let strict = certified(text, &[&x, &b, &c], Allowances::STRICT);
    let mut differ = [false; 4];
    for i in 0..64 {
        let (x, b, c) = (x[i], b[i], c[i]);
        let ways = [x / (b * c), x * c / b, x * (1.0 / b.sqrt()), x * (-b).exp()];
        for (k, way) in ways.into_iter().enumerate() {
            let reference = number::Numbers::of(&hlo_interp::Tensor::from_literal(all[k].0.clone())).re[i];
            let off = (f64::from(way) - reference).abs();
            assert!(off <= all[k].1.soft.at(i), "{k} {i}: {off} {}", all[k].1.soft.at(i));
            assert!(all[k].1.hard.at(i) < 1e-5, "{k} {i}");
            differ[k] |= off > strict[k].1.hard.at(i);
        }
    }
    assert_eq!(differ[..3], [true; 3]);
    // exp(89) is infinite, exp(-89) is not 0.
    let text = "HloModule m\nENTRY e { x = f32[1] parameter(0)\n b = f32[1] parameter(1)\n e = f32[1] exponential(b)\n ROOT q = f32[1] divide(x, e) }";
    let functions =
        Allowances { functions: hlo_execution::functions::Functions::XLA_CPU, ..with("reciprocals") };
    assert!(
        certified(text, &[&[1e30], &[89.0]], functions)[0].1.soft.at(0) >= 1e30 * f64::from((-89f32).exp())
    );
}

/// Complex numbers are ordered by their real parts and then by their imaginary ones: the least is the same in
/// any order, unless zeros of both signs are among them. A NaN is passed on in any order, though perhaps
/// another one.
#[test]
fn an_extreme_of_complex_numbers_is_the_same_in_any_order() {
    let text = "HloModule m\nleast { a = c64[] parameter(0)\n b = c64[] parameter(1)\n ROOT c = c64[] minimum(a, b) }\nENTRY e { p = f32[3] parameter(0)\n q = f32[3] parameter(1)\n i = f32[] parameter(2)\n x = c64[3] complex(p, q)\n z = c64[] complex(i, i)\n ROOT r = c64[] reduce(x, z), dimensions={0}, to_apply=least }";
    let any = with("reorder-regions");
    assert_eq!(hard(text, &[&[1.0, 1.0, 2.0], &[3.0, 2.0, 1.0], &[9.0]], any), [0.0]);
    // Either zero, with what stands beside it.
    let about =
        |bounds: Vec<f64>, least: f64| assert!(bounds[0] >= least && bounds[0] < 1.01 * least, "{bounds:?}");
    about(hard(text, &[&[1.0, 0.0, -0.0], &[3.0, 2.0, 1.0], &[9.0]], any), 1.0);
    assert_eq!(hard(text, &[&[1.0, 2.0, 3.0], &[0.0, 2.0, 1.0], &[9.0]], any), [0.0]);
    about(hard(text, &[&[1.0, 1.0, 3.0], &[0.0, -0.0, 1.0], &[9.0]], any), f64::from(f32::from_bits(1)));
    let all = certified(text, &[&[1.0, f32::NAN, 2.0], &[3.0, 2.0, 1.0], &[9.0]], any);
    let class = |re: f32, im: f32| {
        let buffer = hlo::Buffer::C64(vec![hlo::num_complex::Complex::new(re, im)]);
        let actual = ArrayLiteral::new(all[0].0.dims.clone(), buffer).unwrap();
        hlo_execution::verdict::judge(&all[0].0, &actual, &all[0].1, false).unwrap().class()
    };
    assert_eq!(class(1.0, f32::NAN), hlo_execution::verdict::Class::Explained);
    assert_eq!(class(1.0, 3.0), hlo_execution::verdict::Class::Wrong);
}

/// Real parts that are flushed are equal, and what stands beside them is another; those that are not decide.
#[test]
fn an_extreme_of_complex_numbers_is_beside_any_flushed_number() {
    let text = "HloModule m\nleast { a = c64[] parameter(0)\n b = c64[] parameter(1)\n ROOT c = c64[] minimum(a, b) }\nENTRY e { p = f32[3] parameter(0)\n q = f32[3] parameter(1)\n i = f32[] parameter(2)\n x = c64[3] complex(p, q)\n z = c64[] complex(i, i)\n ROOT r = c64[] reduce(x, z), dimensions={0}, to_apply=least }";
    let flush = with("flush-denormals");
    for liberties in [flush, flush.or(with("reorder-regions"))] {
        let found = |re: [f32; 3], im: [f32; 3]| hard(text, &[&re, &im, &[9.0]], liberties)[0];
        assert_eq!(found([1.0, -2.0, -2.0], [3.0, 2.0, 8.0]), 0.0);
        let beside = found([1e-40, -1e-40, 5.0], [3.0, 8.0, 1e30]);
        assert!((5.0..5.01).contains(&beside), "{liberties:?} {beside}");
        let denormal = found([-2.0, -2.0, 5.0], [1e-39, 1e-40, -7.0]);
        assert!((0.9e-39..1e-38).contains(&denormal), "{liberties:?} {denormal}");
    }
}

/// A NaN that another formula does not give may be lost to a number.
#[test]
fn an_extreme_of_complex_numbers_beside_an_open_nan_is_open() {
    let text = "HloModule m\nmost { a = c64[] parameter(0)\n b = c64[] parameter(1)\n ROOT c = c64[] maximum(a, b) }\nENTRY e { p = f32[1] parameter(0)\n f = c64[1] fft(p), fft_type=RFFT, fft_length={1}\n o = c64[] constant((0, 0))\n ROOT r = c64[] reduce(f, o), dimensions={0}, to_apply=most }";
    assert_eq!(hard(text, &[&[f32::INFINITY]], with("decompositions")), [f64::INFINITY]);
}

/// Whether the other part is flushed or not, and even if the other operand is open.
#[test]
fn an_extreme_of_complex_numbers_beside_a_certain_nan_is_certain() {
    for extreme in [
        "maximum(z, z)",
        "minimum(z, o)",
        "maximum(o, z)",
        "minimum(z, f)",
        "clamp(z, o, o)",
        "clamp(o, o, z)",
    ] {
        let text = format!(
            "HloModule m\nENTRY e {{ p = f32[2] parameter(0)\n x = f32[1] slice(p), slice={{[0:1]}}\n y = f32[1] slice(p), slice={{[1:2]}}\n z = c64[1] complex(x, y)\n f = c64[1] fft(y), fft_type=RFFT, fft_length={{1}}\n o = c64[1] constant({{(1, 2)}})\n ROOT r = c64[1] {extreme} }}"
        );
        let allowances = Allowances { decompositions: true, ..with("flush-denormals") };
        assert_eq!(hard(&text, &[&[-1e-44, f32::NAN]], allowances), [0.0], "{extreme}");
        assert_eq!(hard(&text, &[&[f32::NAN, 1e-44]], allowances), [0.0], "{extreme}");
    }
}

/// `x (b c)` instead of `(x b) c`, and the same with quotients, where `b` and `c` are constants.
#[test]
fn constant_factors_may_be_gathered() {
    let text = "HloModule m
ENTRY e { x = f32[64] parameter(0)
 d = f32[] constant(3.1)
 b = f32[64] broadcast(d), dimensions={}
 f = f32[] constant(7.7)
 c = f32[64] broadcast(f), dimensions={}
 p = f32[64] multiply(x, b)
 o0 = f32[64] multiply(p, c)
 q = f32[64] divide(x, b)
 o1 = f32[64] multiply(c, q)
 o2 = f32[64] divide(p, c)
 o3 = f32[64] multiply(p, x)
 ROOT o = (f32[64], f32[64], f32[64], f32[64]) tuple(o0, o1, o2, o3) }";
    let x = some(64, 1);
    let all = certified(text, &[&x], with("reciprocals"));
    let (b, c) = (3.1f32, 7.7f32);
    for (i, &x) in x.iter().enumerate() {
        for (k, way) in [x * (b * c), x * (c / b), x * (b / c)].into_iter().enumerate() {
            let reference = number::Numbers::of(&hlo_interp::Tensor::from_literal(all[k].0.clone())).re[i];
            let off = (f64::from(way) - reference).abs();
            assert!(off <= all[k].1.soft.at(i), "{k} {i}: {off} {}", all[k].1.soft.at(i));
        }
    }
    // Not by what is no constant.
    assert!(all[3].1.is_exact());
}

/// Operands that lose the low 13 bits of their significands, as the tensor cores of GPUs take them; few terms
/// and many, where bounds are found in other ways.
#[test]
fn products_of_tf32_are_inside_unless_more_precision_is_asked_for() {
    let text = |n: usize, precision: &str| {
        format!(
            "HloModule m\nENTRY e {{ x = f32[{n},{n}] parameter(0)\n y = f32[{n},{n}] parameter(1)\n ROOT z = f32[{n},{n}] dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}{precision} }}"
        )
    };
    let cut = |x: f32| f64::from(f32::from_bits(x.to_bits() & !0x1fff));
    for n in [3, 32] {
        let (x, y) = (some(n * n, 1), some(n * n, 2));
        let allowed = certified(&text(n, ""), &[&x, &y], with("tf32"));
        let strict = certified(&text(n, ""), &[&x, &y], Allowances::STRICT);
        let reference = number::Numbers::of(&hlo_interp::Tensor::from_literal(allowed[0].0.clone())).re;
        let mut beyond = 0;
        for (i, &reference) in reference.iter().enumerate() {
            let sum: f64 = (0..n).map(|k| cut(x[i / n * n + k]) * cut(y[k * n + i % n])).sum();
            let off = (f64::from(sum as f32) - reference).abs();
            assert!(off <= allowed[0].1.soft.at(i), "{n} {i}: {off} {}", allowed[0].1.soft.at(i));
            beyond += usize::from(off > strict[0].1.hard.at(i));
        }
        assert!(beyond > n, "{n}: {beyond}");
        let precise = hard(&text(n, ", operand_precision={highest,highest}"), &[&x, &y], with("tf32"));
        let strict: Vec<f64> = (0..n * n).map(|i| strict[0].1.hard.at(i)).collect();
        assert_eq!(precise, strict, "{n}");
    }
}

/// A comparison that flushes treats zeros and denormal numbers as equal, and what is selected keeps its bits:
/// any of them. What is none of them is not selected.
#[test]
fn what_a_flushed_comparison_selects_is_any_of_what_it_takes_for_zero() {
    let flush = with("flush-denormals");
    let d = 1e-40;
    let of = |opcode: &str| {
        format!(
            "HloModule m\nENTRY e {{ x = f32[4] parameter(0)\n y = f32[4] parameter(1)\n ROOT z = f32[4] {opcode}(x, y) }}"
        )
    };
    let inputs: [&[f32]; 2] = [&[0.0, 3.0 * d, 1.0, 0.0], &[d, d, d, 0.0]];
    let near = |found: f64, asked: f64| (found / asked - 1.0).abs() < 1e-3;
    for opcode in ["minimum", "maximum"] {
        assert_eq!(hard(&of(opcode), &inputs, Allowances::STRICT), [0.0; 4], "{opcode}");
        let found = hard(&of(opcode), &inputs, flush);
        assert!(near(found[0], d.into()), "{opcode} {found:?}");
        // Zero, the other one, or itself.
        let farthest = if opcode == "minimum" { 2.0 * d } else { 3.0 * d };
        assert!(near(found[1], farthest.into()), "{opcode} {found:?}");
        let alone = if opcode == "minimum" { near(found[2], d.into()) } else { found[2] == 0.0 };
        assert!(alone, "{opcode} {found:?}");
        assert_eq!(found[3], 0.0, "{opcode} {found:?}");
    }
    let clamp = "HloModule m\nENTRY e { a = f32[4] parameter(0)\n x = f32[4] parameter(1)\n b = f32[4] parameter(2)\n ROOT z = f32[4] clamp(a, x, b) }";
    let found = hard(clamp, &[&[0.0, -1.0, 0.0, 0.5], &[-d, 2.0, -1.0, d], &[1.0, d, d, 1.0]], flush);
    assert!(near(found[0], d.into()) && near(found[1], d.into()) && near(found[2], d.into()), "{found:?}");
    assert_eq!(found[3], 0.0, "{found:?}");

    let fold = |rest: &str| {
        format!(
            "HloModule m\nleast {{ a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT m = f32[] minimum(a, b) }}\nENTRY e {{ x = f32[2,3] parameter(0)\n init = f32[] constant(inf)\n ROOT r = {rest} }}"
        )
    };
    let x: [&[f32]; 1] = [&[0.0, d, 1.0, d, 1.0, 2.0]];
    let reduce = fold("f32[2] reduce(x, init), dimensions={1}, to_apply=least");
    assert_eq!(hard(&reduce, &x, Allowances::STRICT), [0.0; 2]);
    let found = hard(&reduce, &x, flush);
    assert!(near(found[0], d.into()) && near(found[1], d.into()), "{found:?}");
    let windows = fold("f32[2,2] reduce-window(x, init), window={size=1x2}, to_apply=least");
    let found = hard(&windows, &x, flush);
    assert!(near(found[0], d.into()) && near(found[1], d.into()) && near(found[2], d.into()), "{found:?}");
    assert_eq!(found[3], 0.0, "{found:?}");
}

/// What is numbered may be left unrounded too: by XLA:GPU a `convert` of an `iota` is one of f32's.
#[test]
fn numbers_may_be_left_unrounded() {
    let text = "HloModule m\nENTRY e { x = f32[] parameter(0)\n i = f8e8m0fnu[2,6] iota(), iota_dimension=1\n ROOT y = bf16[2,6] convert(i) }";
    let excess = Allowances { excess_precision: true, ..Allowances::STRICT };
    let all = certified(text, &[&[0.0]], excess);
    let (values, bounds) = &all[0];
    // 3 is 4 there, and 5 too; 0 is NaN.
    for (i, off) in [(1, 0.0), (2, 0.0), (3, 1.0), (5, 1.0), (7, 0.0), (9, 1.0)] {
        let radius = bounds.soft.at(i);
        assert!((off..5.0).contains(&radius), "{i}: {radius} of {values:?}");
    }
    assert!(bounds.hard.at(0).is_infinite() && bounds.hard.at(6).is_infinite());
    assert!(certified(text, &[&[0.0]], Allowances::STRICT)[0].1.is_exact());
}

/// Types of a byte and less are computed in f16 at least, where most of their denormal numbers are normal.
#[test]
fn denormals_of_small_types_are_flushed_where_those_of_f16_are() {
    let hard = |ty: &str, x: f32| {
        let text =
            format!("HloModule m\nENTRY e {{ x = {ty}[1] parameter(0)\n ROOT y = {ty}[1] add(x, x) }}");
        certified(&text, &[&[x]], with("flush-denormals"))[0].1.hard.at(0)
    };
    for (ty, x) in [("f4e2m1fn", 0.5), ("f6e3m2fn", 0.0625), ("f8e3m4", 0.015625), ("f8e4m3", 0.001953125)] {
        assert_eq!(hard(ty, x), 0.0, "{ty}");
    }
    let exponent = |n: i32| power_of_two(n) as f32;
    for (ty, x) in [("f8e5m2", exponent(-15)), ("f8e5m2fnuz", exponent(-16)), ("f16", exponent(-20))] {
        assert!(hard(ty, x) >= f64::from(x), "{ty}");
    }
    assert_eq!(hard("f8e5m2", exponent(-14)), 0.0);
}

/// Step by step in the type the number of elements of a feature is one of its numbers, or is not: 32 is beyond
/// f8e4m3b11fnuz. In a gradient it multiplies before it divides.
#[test]
fn steps_of_batch_norm_have_the_count_in_their_type() {
    let steps = Allowances { narrow_accumulator: true, ..with("affine-batch-norm") };
    let text = "HloModule m\nENTRY e { x = f8e4m3b11fnuz[32,1] parameter(0)\n s = f8e4m3b11fnuz[1] parameter(1)\n ROOT t = (f8e4m3b11fnuz[32,1], f8e4m3b11fnuz[1], f8e4m3b11fnuz[1]) batch-norm-training(x, s, s), epsilon=0.5, feature_index=1 }";
    let x = [0.0; 32];
    for array in 0..3 {
        let of = |allowances| certified(text, &[&x, &[1.0]], allowances)[array].1.hard.at(0);
        assert!(of(steps).is_infinite() && of(Allowances::STRICT).is_finite(), "{array}");
    }
    // 16 elements of 8192 are 131072.
    let text = "HloModule m\nENTRY e { x = f16[16,1] parameter(0)\n p = f16[1] parameter(1)\n d = f16[16,1] parameter(2)\n y = (f16[16,1], f16[1], f16[1]) batch-norm-grad(x, p, p, p, d), epsilon=0.5, feature_index=1\n ROOT r = f16[16,1] get-tuple-element(y), index=0 }";
    let gradient = |size: f32, allowances| {
        let d: Vec<f32> = (0..16).map(|i| if i % 2 == 0 { size } else { -size }).collect();
        certified(text, &[&[1.0; 16], &[1.0], &d], allowances)[0].1.hard.at(0)
    };
    assert!(gradient(8192.0, steps).is_infinite());
    assert!(gradient(256.0, steps).is_finite());
}

/// A system whose solution is small, and whose matrix is not when it is scaled to a unit diagonal.
#[test]
fn a_solver_by_the_inverse_may_overflow_on_the_way() {
    let text = "HloModule m\nENTRY e { a = f32[2,2] parameter(0)\n b = f32[2,1] parameter(1)\n ROOT x = f32[2,1] triangular-solve(a, b), left_side=true, lower=true, transpose_a=NO_TRANSPOSE }";
    let allowed = with("decompositions");
    let far = [1e30, 0.0, 1e-10, 1e-20];
    assert!(hard(text, &[&far, &[1.0, 0.0]], Allowances::STRICT).iter().all(|r| r.is_finite()));
    let far = [1e-20, 0.0, 1e25, 1.0];
    assert!(hard(text, &[&far, &[0.0, 1.0]], Allowances::STRICT)[1].is_finite());
    assert!(hard(text, &[&far, &[0.0, 1.0]], allowed)[1].is_infinite());
    let near = [2.0, 0.0, 0.5, 4.0];
    let found = hard(text, &[&near, &[1.0, 3.0]], allowed);
    assert!(found.iter().all(|&r| r > 0.0 && r < 1e-5), "{found:?}");
    // A type without zero has no such inverse: what comes before the NaN is what it is.
    let text = text.replace("f32", "f8e8m0fnu");
    assert!(hard(&text, &[&[2.0, 1.0, f32::NAN, 4.0], &[2.0, 2.0]], allowed)[0].is_finite());
}

/// A variance of 0 is a NaN in a type without zero, as is what may be one before it is rounded.
#[test]
fn what_may_be_zero_is_a_nan_in_a_type_without_it() {
    let text = "HloModule m\nENTRY e { x = f8e8m0fnu[2,1] parameter(0)\n s = f8e8m0fnu[1] parameter(1)\n t = (f8e8m0fnu[2,1], f8e8m0fnu[1], f8e8m0fnu[1]) batch-norm-training(x, s, s), epsilon=0.001, feature_index=1\n ROOT v = f8e8m0fnu[1] get-tuple-element(t), index=2 }";
    assert!(hard(text, &[&[9.403_955e-38, 1.175_494_4e-38], &[1.0]], Allowances::STRICT)[0].is_infinite());
}

/// The distance from the mean overflows, and is multiplied by a gradient of 0.
#[test]
fn an_infinite_distance_times_zero_is_a_nan() {
    let text = "HloModule m\nENTRY e { x = f32[1] parameter(0)\n p = f32[1] parameter(1)\n d = f32[1] parameter(2)\n y = (f32[1], f32[1], f32[1]) batch-norm-grad(x, p, p, p, d), epsilon=0.001, feature_index=0\n ROOT s = f32[1] get-tuple-element(y), index=1 }";
    assert!(hard(text, &[&[-3e38], &[3e38], &[0.0]], Allowances::STRICT)[0].is_infinite());
    assert!(hard(text, &[&[-1e38], &[1e38], &[0.0]], Allowances::STRICT)[0].is_finite());
}

/// What is selected by comparisons that may fall otherwise is open, and no other window.
#[test]
fn windows_of_what_is_off_are_open_where_a_comparison_is() {
    let text = "HloModule m\nge { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = pred[] compare(a, b), direction=GE }\nadd { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }\nENTRY e { x = f32[6] parameter(0)\n y = f32[6] tanh(x)\n s = f32[3] parameter(1)\n z = f32[] constant(0)\n ROOT w = f32[6] select-and-scatter(y, s, z), window={size=2 stride=2}, select=ge, scatter=add }";
    let x: &[f32] = &[0.5, 0.1, 0.25, 0.250_000_03, -1.0, 2.0];
    for reorder_regions in [false, true] {
        let allowed = Allowances { reorder_regions, ..Allowances::STRICT };
        let found = hard(text, &[x, &[1.0, 2.0, 3.0]], allowed);
        assert_eq!(
            found.iter().map(|r| r.is_infinite()).collect::<Vec<_>>(),
            [false, false, true, true, false, false]
        );
    }
}

/// `x + (b + c)` beside `(x + b) + c`, with differences and in several types: within the bound, hard and soft.
#[test]
fn constant_terms_may_be_gathered() {
    let allowed = with("reciprocals");
    for ((b, c), (inner, outer)) in
        [(1.1f32, 1.3f32), (1e6, -1e6), (0.1, 3e-8), (-7.7, 1e5)].into_iter().flat_map(|constants| {
            [("add", "add"), ("subtract", "add"), ("add", "subtract")].map(|of| (constants, of))
        })
    {
        let text = format!(
            "HloModule m\nENTRY e {{ x = f32[512] parameter(0)\n b = f32[] constant({b:e})\n bs = f32[512] broadcast(b), dimensions={{}}\n y = f32[512] {inner}(x, bs)\n c = f32[] constant({c:e})\n cs = f32[512] broadcast(c), dimensions={{}}\n ROOT s = f32[512] {outer}(y, cs) }}"
        );
        let x: Vec<f32> = (0..512).map(|i| (i as f32 - 256.0) * 0.037 * 1.5f32.powi(i % 40 - 20)).collect();
        let (reference, bounds) = certified(&text, &[&x], allowed).remove(0);
        let reference = <f32 as hlo::BufferOf>::slice(&reference.buffer).unwrap();
        let sign = |of: &str| if of == "add" { 1.0f32 } else { -1.0 };
        let constant = sign(inner) * b + sign(outer) * c;
        for (i, &x) in x.iter().enumerate() {
            let apart = (f64::from(x + constant) - f64::from(reference[i])).abs();
            assert!(apart <= bounds.soft.at(i), "{text}: {x}: {apart} of {}", bounds.soft.at(i));
            assert!(bounds.hard.at(i) < 1e-6 * f64::from(x.abs() + b.abs() + c.abs()));
        }
        assert!(certified(&text, &[&x[..]], Allowances::STRICT)[0].1.is_exact());
    }
    // Where the inner sum overflows, that with the constants' sum does not.
    let text = "HloModule m\nENTRY e { x = f32[2] parameter(0)\n b = f32[2] constant({3e38, 3})\n y = f32[2] add(x, b)\n c = f32[2] constant({-3e38, -3})\n ROOT s = f32[2] add(y, c) }";
    assert_eq!(hard(text, &[&[1e38, 1.0]], allowed)[0], f64::INFINITY);
    // What no constant is added to is exact.
    let text = "HloModule m\nENTRY e { x = f32[2] parameter(0)\n y = f32[2] parameter(1)\n b = f32[2] constant({1, 2})\n s = f32[2] add(x, b)\n ROOT t = f32[2] add(s, y) }";
    assert_eq!(hard(text, &[&[1.1, 2.3], &[0.7, 1.9]], allowed), [0.0, 0.0]);
}

/// `0.5 * log(x)` and `x` beside the logarithm of a root and its square: within the bound, hard and soft.
#[test]
fn a_root_that_is_undone_may_not_have_been_rounded() {
    let allowed = with("reciprocals");
    type Function = fn(f64) -> f64;
    let all: [(&str, Function); 2] = [("log(y)", |x| 0.5 * x.ln()), ("multiply(y, y)", |x| x)];
    for (undone, function) in all {
        let text = format!(
            "HloModule m\nENTRY e {{ x = f32[600] parameter(0)\n y = f32[600] sqrt(x)\n ROOT z = f32[600] {undone} }}"
        );
        // Next to 1, where the logarithm is small, and far from it; zero is a root without an error.
        let x: Vec<f32> = (0..600)
            .map(|i| match i {
                0 => 0.0,
                1..300 => 1.0 + (i as f32 - 150.0) * 7e-4,
                _ => 1.7f32.powi(i / 4 - 110),
            })
            .collect();
        let (reference, bounds) = certified(&text, &[&x], allowed).remove(0);
        let reference = <f32 as hlo::BufferOf>::slice(&reference.buffer).unwrap();
        for (i, &x) in x.iter().enumerate().skip(1) {
            let apart = (f64::from(function(f64::from(x)) as f32) - f64::from(reference[i])).abs();
            assert!(apart <= bounds.soft.at(i), "{undone} {x}: {apart} of {}", bounds.soft.at(i));
            assert!(bounds.hard.at(i) <= 5e-7 * f64::from(reference[i]).abs().max(1.0), "{undone} {x}");
        }
        let strict = &certified(&text, &[&x[..]], Allowances::STRICT)[0].1;
        assert_eq!((bounds.hard.at(0), undone == "log(y)"), (strict.hard.at(0), !strict.is_exact()));
    }
}
