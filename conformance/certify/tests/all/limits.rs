//! Intervals that are not symmetric, and relations between arrays: both that they are found and that they are
//! not too narrow.

use hlo_execution::element::Number;
use hlo_execution::verdict::judge;

use hlo::ArrayLiteral;
use hlo_certify::bounds::Bounds;
use hlo_execution::allowances::Allowances;
use hlo_execution::number;

use crate::common::certified;
use crate::logits::{Form, inputs, logits};

/// 0, off by about 1.2e-7 times the factor, in each of three elements; then the lines of a program.
fn wide(factor: f32, lines: &str) -> String {
    format!(
        "HloModule m\nadd {{ a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }}
ENTRY e {{ x = f32[3] parameter(0)\n zero = f32[] constant(0)\n zeros = f32[3] broadcast(zero), dimensions={{}}\n one = f32[] constant(1)\n ones = f32[3] broadcast(one), dimensions={{}}
 f = f32[] constant({factor})\n factor = f32[3] broadcast(f), dimensions={{}}
 y = f32[3] logistic(zeros)\n z = f32[3] multiply(y, factor)\n u = f32[3] multiply(y, factor)\n d = f32[3] subtract(z, u)\n w = f32[3] add(d, x)\n{lines} }}"
    )
}

/// The hard radii of such a program's result; soft ones are no larger, and are finite where those are.
fn radii(factor: f32, lines: &str, allowances: Allowances) -> Vec<f64> {
    let (v, b) = certified(&wide(factor, lines), &[&[0.25, -2.0, 3.0]], allowances).remove(0);
    let each = (0..v.buffer.len()).map(|i| (b.soft.at(i), b.hard.at(i)));
    each.inspect(|(soft, hard)| assert!(soft <= hard, "{lines}: {soft} {hard}"))
        .map(|(_, hard)| hard)
        .collect()
}

#[test]
fn functions_stay_in_their_ranges() {
    // The operand is off by more than 30, and so is nothing here but what has no range.
    let within = |lines: &str, most: f64| {
        for allowances in [Allowances::STRICT, Allowances::LOOSE] {
            let found = radii(5e8, lines, allowances);
            assert!(found.iter().all(|&r| r > 0.0 && r <= most), "{lines}: {found:?}");
        }
    };
    let open = |lines: &str| {
        let found = radii(5e8, lines, Allowances::STRICT);
        assert!(found.iter().all(|r| r.is_infinite()), "{lines}: {found:?}");
    };
    assert!(radii(5e8, "ROOT r = f32[3] copy(w)", Allowances::STRICT).iter().all(|&r| r > 30.0 && r < 200.0));
    within("ROOT r = f32[3] logistic(w)", 1.0001);
    within("ROOT r = f32[3] tanh(w)", 2.0001);
    within("ROOT r = f32[3] cosine(w)", 2.0001);
    within("ROOT r = f32[3] clamp(zeros, w, ones)", 1.0001);
    open("ROOT r = f32[3] sqrt(w)");
    within("a = f32[3] abs(w)\n ROOT r = f32[3] sqrt(a)", 20.0);
    within("a = f32[3] maximum(w, zeros)\n ROOT r = f32[3] sqrt(a)", 20.0);
    // Squares are no less than 0, products of different values may be.
    within("a = f32[3] multiply(w, w)\n b = f32[3] add(a, ones)\n ROOT r = f32[3] rsqrt(b)", 1.0001);
    open(
        "v = f32[3] add(w, ones)\n a = f32[3] multiply(w, v)\n b = f32[3] add(a, ones)\n ROOT r = f32[3] rsqrt(b)",
    );
    within(
        "a = f32[3] multiply(w, w)\n s = f32[] reduce(a, zero), dimensions={0}, to_apply=add\n t = f32[] add(s, one)\n l = f32[] log(t)\n ROOT r = f32[3] broadcast(l), dimensions={}",
        15.0,
    );
    // A logistic written out, of exponentials that may overflow: 1 / (1 + infinity) is 0.
    within(
        "n = f32[3] negate(w)\n e = f32[3] exponential(n)\n a = f32[3] add(e, ones)\n ROOT r = f32[3] divide(ones, a)",
        1.0001,
    );
    // But infinity less infinity is no number.
    open(
        "e = f32[3] exponential(w)\n less = f32[3] subtract(e, ones)\n more = f32[3] add(e, ones)\n ROOT r = f32[3] divide(less, more)",
    );
    open("e = f32[3] exponential(w)\n ROOT r = f32[3] multiply(e, w)");
    // The logarithm of an exponential is off by as much as its operand, where neither overflows.
    let found = radii(1e8, "e = f32[3] exponential(w)\n ROOT r = f32[3] log(e)", Allowances::LOOSE);
    let of = radii(1e8, "ROOT r = f32[3] copy(w)", Allowances::LOOSE);
    assert!(found.iter().zip(of).all(|(&r, of)| r < 1.001 * of), "{found:?}");
}

#[test]
fn movement_and_choices_keep_limits() {
    let log = "ROOT r = f32[3] log(b)";
    let finite = |lines: &str| {
        let found = radii(1e8, &format!("{lines}\n{log}"), Allowances::LOOSE);
        found.iter().map(|r| r.is_finite()).collect::<Vec<_>>()
    };
    assert_eq!(finite("a = f32[3] exponential(w)\n b = f32[3] reverse(a), dimensions={0}"), [true; 3]);
    assert_eq!(
        finite(
            "a = f32[3] exponential(w)\n c = f32[2] slice(a), slice={[0:2]}\n b = f32[3] pad(c, one), padding=0_1"
        ),
        [true; 3]
    );
    assert_eq!(
        finite("a = f32[3] exponential(w)\n p = pred[3] constant({1, 0, 1})\n b = f32[3] select(p, a, w)"),
        [true, false, true]
    );
    // Whichever of them is chosen.
    let choice = "a = f32[3] exponential(w)\n p = pred[3] compare(w, zeros), direction=GT\n";
    assert_eq!(finite(&format!("{choice} b = f32[3] select(p, a, ones)")), [true; 3]);
    assert_eq!(finite(&format!("{choice} b = f32[3] select(p, a, zeros)")), [false; 3]);
    assert_eq!(finite(&format!("{choice} b = f32[3] select(p, a, w)")), [false; 3]);
}

/// The bounds of all results, and whether each element is decided.
fn bounds(text: &str, allowances: Allowances) -> Vec<(ArrayLiteral, Bounds)> {
    let [w, v, hot] = inputs(1);
    certified(text, &[&w, &v, &hot], allowances)
}

/// The first elements that are not decided.
fn open((v, b): &(ArrayLiteral, Bounds)) -> String {
    let each = (0..v.buffer.len()).filter(|&i| !b.soft.at(i).is_finite() || b.hard.at(i) != b.soft.at(i));
    each.take(4).map(|i| format!("{i}: {} {} ", b.soft.at(i), b.hard.at(i))).collect()
}

fn is_decided((v, b): &(ArrayLiteral, Bounds)) -> bool {
    (0..v.buffer.len()).all(|i| b.soft.at(i).is_finite() && b.hard.at(i) == b.soft.at(i))
}

#[test]
fn what_the_maximum_was_taken_from_is_decided() {
    let all = [
        ("f32", vec![1e3, 4e5, 1e8]),
        ("f64", vec![1e3, 4e5, 1e8]),
        ("bf16", vec![1e2, 1e3]),
        ("f16", vec![1e2, 1e3]),
    ];
    for (ty, scales) in all {
        for scale in scales {
            for form in [Form::Plain, Form::Jax, Form::Transposed] {
                for allowances in [Allowances::STRICT, Allowances::LOOSE] {
                    let all = bounds(&logits(ty, scale, form), allowances);
                    for (k, found) in all.iter().enumerate() {
                        assert!(
                            is_decided(found),
                            "{ty} {scale} {form:?} {allowances:?}: result {k}: {}",
                            open(found)
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn probabilities_are_no_more_than_1() {
    // e and both forms of p are between 0 and 1, t between 1 and 10, with some units.
    let all = bounds(&logits("f32", 4e5, Form::Jax), Allowances::STRICT);
    for (k, low, high) in [(0, 0.0, 1.0), (1, 1.0, 10.0), (2, 0.0, 1.0), (3, 0.0, 1.0)] {
        let (v, b) = &all[k];
        let v = number::Numbers::of(&hlo_interp::Tensor::from_literal(v.clone()));
        let mut wide = 0;
        for (i, &x) in v.re.iter().enumerate() {
            let r = b.hard.at(i);
            assert!(r <= (high - x).max(x - low) + 1e-4, "{k}: {x} {r}");
            wide += usize::from(r > 0.5 * (high - low));
        }
        assert!(wide > 0 || k == 1, "{k}: the operands decide everything");
    }
}

#[test]
fn other_arrays_and_groups_have_no_relation() {
    let plain = logits("f32", 1e8, Form::Plain);
    let decided = |from: &str, to: &str, k: usize| {
        let text = plain.replace(from, to);
        assert!(text != plain);
        is_decided(&bounds(&text, Allowances::STRICT)[k])
    };
    assert!(is_decided(&bounds(&plain, Allowances::STRICT)[1]));
    // The maximum of something that is as large, of other rows, of another array; a minimum; one that starts
    // too high.
    assert!(!decided(
        "s = f32[8,10] subtract(x, mb)",
        "x2 = f32[8,10] multiply(cb, d)\n s = f32[8,10] subtract(x2, mb)",
        1
    ));
    // Rows that are all the same: the maximum of another one is the same number.
    let [w, v, hot] = inputs(1);
    let same =
        |text: &str| is_decided(&certified(text, &[&w[..16].repeat(8), &v, &hot], Allowances::STRICT)[1]);
    let other = plain.replace(
        "mb = f32[8,10] broadcast(m), dimensions={0}",
        "mr = f32[8] reverse(m), dimensions={0}\n mb = f32[8,10] broadcast(mr), dimensions={0}",
    );
    assert!(other != plain && same(&plain) && !same(&other));
    let minimum = plain.replace("constant(-inf)", "constant(inf)").replace("maximum(a, b)", "minimum(a, b)");
    assert!(minimum != plain && !is_decided(&bounds(&minimum, Allowances::STRICT)[1]));
    assert!(!decided("low = f32[] constant(-inf)", "low = f32[] constant(1e7)", 2));
    // Part of a group has no peak.
    let part = "t = f32[8] reduce(e, zero), dimensions={1}";
    assert!(!decided(
        part,
        "ep = f32[8,9] slice(e), slice={[0:8], [0:9]}\n t = f32[8] reduce(ep, zero), dimensions={1}",
        2
    ));
}

/// What is wrong is seen although its operands are open.
#[test]
fn what_is_beyond_a_limit_is_wrong() {
    let all = bounds(&logits("f32", 4e5, Form::Plain), Allowances::LOOSE);
    // Instead of the ones, which are the largest of their rows.
    let wrong = |k: usize, with: f32| {
        let (v, b) = &all[k];
        let hlo::Buffer::F32(x) = &*v.buffer else { panic!("not f32") };
        let changed = x.iter().map(|&x| if x == 1.0 { with } else { x }).collect();
        let changed = ArrayLiteral { dims: v.dims.clone(), buffer: hlo::Buffer::F32(changed).into() };
        judge(v, &changed, b, false).unwrap().tally.wrong
    };
    assert_eq!([0, 2, 3].map(|k| wrong(k, 0.9)), [0; 3]);
    assert_eq!([0, 2, 3].map(|k| wrong(k, 3.0)), [8; 3]);
    assert_eq!([0.5, 0.98, 1.5].map(|x| wrong(1, x)), [8, 0, 8]);
}

/// What is negative and too small for the type is -0, and +0 where a denormal counts as 0: limits that leave
/// only zeros leave both.
#[test]
fn zeros_within_limits_have_either_sign() {
    let text = "HloModule m\nENTRY e { x = f32[1] parameter(0)\n y = f32[1] parameter(1)\n s = f32[1] add(x, y)\n b = bf16[1] convert(s)\n ROOT r = f64[1] convert(b) }";
    let flush = Allowances { flush_denormals: true, ..Allowances::STRICT };
    for (x, y) in [(-1e-45, 0.0), (-3e-45, 1e-45), (1e-45, -3e-45)] {
        for allowances in [flush, Allowances::LOOSE] {
            let (v, b) = certified(text, &[&[x], &[y]], allowances).remove(0);
            assert_eq!(*v.buffer, hlo::Buffer::F64(vec![-0.0]));
            assert!(b.hard.at(0) > 0.0 && b.soft.at(0) > 0.0, "{x} {y}: {b:?}");
        }
    }
    // And the inverse of the root of a zero is infinite, with its sign.
    let found = radii(
        5e8,
        "a = f32[3] multiply(w, w)\n r = f32[3] rsqrt(a)\n ROOT t = f32[3] tanh(r)",
        Allowances::LOOSE,
    );
    assert!(found.iter().all(|r| r.is_infinite()), "{found:?}");
}

/// An element that rounds to infinity or the greatest number is nearly that large even if it is not rounded.
#[test]
fn what_is_too_large_stays_large() {
    // An array of the same type.
    fn of<T: hlo::BufferOf + Number>(_: &[T], x: Vec<f64>) -> hlo::Buffer {
        T::wrap(x.into_iter().map(|x| T::from_parts(x, 0.0)).collect())
    }
    let convert = |to: &str| {
        format!("HloModule m\nENTRY e {{ x = f32[4] parameter(0)\n ROOT y = {to}[4] convert(x) }}")
    };
    let classes = |text: &str, x: &[f32], with: f32| -> [u64; 2] {
        let (v, b) = certified(text, &[x], Allowances::LOOSE).remove(0);
        let signs = x.iter().map(|x| f64::from(with.copysign(*x)));
        let buffer = hlo::with_buffer!(&*v.buffer, v => of(v, signs.collect()));
        let changed = ArrayLiteral { dims: v.dims.clone(), buffer: buffer.into() };
        let tally = judge(&v, &changed, &b, false).unwrap().tally;
        [tally.wrong, tally.undecided]
    };
    // 65,520 is a tie between the greatest number of f16 and what would be the next one, 65,519 is below it.
    let x = [1e10, -1e10, 65520.0, 65519.0];
    assert_eq!(classes(&convert("f16"), &x, 0.0), [4, 0]);
    assert_eq!(classes(&convert("f16"), &x, 6e4), [4, 0]);
    assert_eq!(classes(&convert("f16"), &x, 65504.0), [0, 3]);
    assert_eq!(classes(&convert("f16"), &x, f32::INFINITY), [0, 1]);
    assert_eq!(classes(&convert("bf16"), &[3.4e38, -3.4e38, f32::MAX, f32::MIN], 1.0), [4, 0]);
    assert_eq!(classes(&convert("f6e2m3fn"), &[1e10, -1e10, 7.5, 8.0], 6.0), [4, 0]);
    // 7.5, the greatest number, is not rounded.
    assert_eq!(classes(&convert("f6e2m3fn"), &[1e10, -1e10, 7.5, 8.0], 7.0), [1, 3]);
    // A product that contraction may leave unrounded.
    let product = "HloModule m\nENTRY e { x = f32[4] parameter(0)\n y = f32[4] multiply(x, x)\n ROOT z = f32[4] add(y, x) }";
    let x = [1e20, 1e30, 2e19, 3e38];
    assert_eq!(classes(product, &x, 0.0), [4, 0]);
    // Twice the greatest number is infinite, rounded or not.
    assert_eq!(classes(product, &x, f32::MAX), [1, 3]);
}

/// Of 768 terms in bf16 gamma is 19: that a sum of magnitudes is no less than the largest of them is what is
/// left, in any order.
#[test]
fn sums_of_one_sign_in_narrow_types_have_that_sign() {
    let narrow = Allowances { narrow_accumulator: true, reorder_regions: true, ..Allowances::STRICT };
    for (sign, opcode) in [(1.0, "abs(x)"), (-1.0, "negate(m)")] {
        let text = format!(
            "HloModule m\nadd {{ a = bf16[] parameter(0)\n b = bf16[] parameter(1)\n ROOT c = bf16[] add(a, b) }}\nENTRY e {{ x = bf16[768] parameter(0)\n m = bf16[768] abs(x)\n y = bf16[768] {opcode}\n z = bf16[] constant(0)\n ROOT s = bf16[] reduce(y, z), dimensions={{0}}, to_apply=add }}"
        );
        let x: Vec<f32> = (0..768).map(|i| if i == 5 { 3.0 } else { 0.5 - (i % 2) as f32 }).collect();
        let bounds = &certified(&text, &[&x], narrow)[0].1;
        let admits = |v: f64| bounds.hard.admits(0, sign * v);
        // One after the other it is 128 in the end, where half a unit is lost.
        assert!(admits(390.0) && admits(128.0) && admits(3.0), "{bounds:?}");
        assert!(!admits(-390.0) && !admits(0.0) && !admits(2.0), "{bounds:?}");
    }
}

/// The logarithm of what may be zero is explained down to that of the least number, not to the least number.
#[test]
fn functions_beside_a_pole_are_explained_to_the_nearest_number() {
    for (function, largest) in [("log", 104.0), ("log-plus-one", 89.0)] {
        // The product is off by 2^-24 of 1e12, the difference by more than 1, so that of both may be 0 or 1.
        let text = format!(
            "HloModule m\nENTRY e {{ x = f32[1] parameter(0)\n c = f32[1] constant({{1e12}})\n d = f32[1] multiply(x, c)\n s = f32[1] subtract(d, d)\n l = f32[1] logistic(s)\n ROOT r = f32[1] {function}(l) }}"
        );
        let contraction = Allowances { contraction: true, ..Allowances::STRICT };
        let bounds = &certified(&text, &[&[0.7]], contraction)[0].1;
        assert!(bounds.soft.at(0) <= largest, "{function}: {bounds:?}");
    }
}

/// A copy of a tuple is as each part of it.
#[test]
fn copies_of_tuples_have_the_bounds_of_their_parts() {
    let text = "HloModule m\nENTRY e { x = f32[2] parameter(0)\n y = f32[2] exponential(x)\n t = (f32[2], f32[2]) tuple(x, y)\n ROOT c = (f32[2], f32[2]) copy(t) }";
    let all = certified(text, &[&[1.0, 2.0]], Allowances::LOOSE);
    assert!(all[0].1.is_exact());
    assert!(all[1].1.hard.at(0) > 0.0 && all[1].1.hard.at(0) < 1e-5, "{:?}", all[1].1);
}
