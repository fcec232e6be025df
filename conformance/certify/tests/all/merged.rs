//! Folds by what merges partial results: whichever way it is written it is recognized, and in any order and
//! with any brackets what comes out in f32 is inside.

use hlo::ArrayLiteral;
use hlo_certify::bounds::Bounds;
use hlo_execution::allowances::Allowances;
use hlo_execution::number;

use crate::common::certified;
use crate::reordered::{recognized, values};

/// A computation on two tuples of values of these types.
fn tuples(types: &[&str], lines: &str, results: &str) -> String {
    let parameters: Vec<String> = (0..2 * types.len())
        .map(|p| {
            let (k, side) = (p % types.len(), if p < types.len() { 'a' } else { 'b' });
            format!(" {side}{k} = {}[] parameter({p})\n", types[k])
        })
        .collect();
    let types: Vec<String> = types.iter().map(|ty| format!("{ty}[]")).collect();
    format!("r {{ {}{lines} ROOT t = ({}) tuple({results}) }}", parameters.concat(), types.join(", "))
}

/// `max + log1p(exp(-|a - b|))`.
const BARE: &str = "d = f32[] subtract(a, b)\n e = f32[] abs(d)\n n = f32[] negate(e)\n x = f32[] exponential(n)\n l = f32[] log-plus-one(x)\n m = f32[] maximum(a, b)\n ROOT r = f32[] add(m, l)";

/// As PyTorch writes it (aten/src/ATen/native/cuda/LogcumsumexpKernel.cu).
const PYTORCH: &str = "s = f32[] minimum(a, b)\n m = f32[] maximum(a, b)\n n = pred[] compare(s, m), direction=NE\n f = pred[] is-finite(s)\n o = pred[] or(n, f)\n d = f32[] subtract(s, m)\n x = f32[] exponential(d)\n l = f32[] log-plus-one(x)\n w = f32[] add(l, m)\n ROOT r = f32[] select(o, w, a)";

/// By both exponentials.
const SHIFTED: &str = "m = f32[] maximum(a, b)\n d = f32[] subtract(a, m)\n f = f32[] subtract(b, m)\n x = f32[] exponential(d)\n y = f32[] exponential(f)\n s = f32[] add(x, y)\n l = f32[] log(s)\n ROOT r = f32[] add(l, m)";

/// As JAX writes it, which the library knows as a whole.
const JAX: &str = "d = f32[] subtract(a, b)\n u = pred[] compare(d, d), direction=NE\n p = f32[] add(a, b)\n e = f32[] abs(d)\n n = f32[] negate(e)\n x = f32[] exponential(n)\n l = f32[] log-plus-one(x)\n m = f32[] maximum(a, b)\n w = f32[] add(m, l)\n ROOT r = f32[] select(u, p, w)";

const HYPOTENUSE: &str =
    "x = f32[] multiply(a, a)\n y = f32[] multiply(b, b)\n s = f32[] add(x, y)\n ROOT r = f32[] sqrt(s)";

/// Online softmax.
const RESCALED: &str = " m = f32[] maximum(a0, b0)\n d = f32[] subtract(a0, m)\n e = f32[] subtract(b0, m)\n x = f32[] exponential(d)\n y = f32[] exponential(e)\n s = f32[] multiply(a1, x)\n u = f32[] multiply(b1, y)\n w = f32[] add(s, u)\n";

/// As PyTorch's Inductor merges moments (torch/_inductor/runtime/triton_helpers.py): mean, squares, count.
const INDUCTOR: &str = " d = f32[] subtract(b0, a0)\n n = f32[] add(a2, b2)\n z = f32[] constant(0)\n c = pred[] compare(n, z), direction=EQ\n q = f32[] divide(b2, n)\n o = f32[] select(c, z, q)\n x = f32[] multiply(d, o)\n m = f32[] add(a0, x)\n dd = f32[] multiply(d, d)\n da = f32[] multiply(dd, a2)\n do = f32[] multiply(da, o)\n s = f32[] add(a1, b1)\n w = f32[] add(s, do)\n";

/// By Chan, Golub and LeVeque: count, mean, squares, with whole numbers as counts.
const CHAN: &str = " n = s32[] add(a0, b0)\n fa = f32[] convert(a0)\n fb = f32[] convert(b0)\n fn = f32[] convert(n)\n d = f32[] subtract(b1, a1)\n x = f32[] multiply(fa, a1)\n y = f32[] multiply(fb, b1)\n v = f32[] add(x, y)\n m = f32[] divide(v, fn)\n ab = f32[] multiply(fa, fb)\n k = f32[] divide(ab, fn)\n dk = f32[] multiply(d, k)\n dd = f32[] multiply(d, dk)\n s = f32[] add(a2, b2)\n w = f32[] add(dd, s)\n";

fn inductor() -> String {
    tuples(&["f32", "f32", "f32"], INDUCTOR, "m, w, n")
}

fn chan() -> String {
    tuples(&["s32", "f32", "f32"], CHAN, "n, m, w")
}

#[test]
fn what_merges_partial_results_is_recognized_as_it_is_written() {
    let clamp = "s = s32[] add(b, a)\n l = s32[] constant(-128)\n h = s32[] constant(127)\n";
    let table = [
        (values("f32", BARE), "log-add-exp"),
        (values("f32", PYTORCH), "log-add-exp"),
        (values("f32", SHIFTED), "log-add-exp"),
        (values("f32", JAX), "log-add-exp"),
        (values("f32", HYPOTENUSE), "hypotenuse"),
        (tuples(&["f32", "f32"], RESCALED, "m, w"), "maximum, rescaled"),
        (inductor(), "mean, squares, add"),
        (chan(), "add, mean, squares"),
        (values("s32", &format!("{clamp} ROOT r = s32[] clamp(l, s, h)")), "saturated"),
        (
            values("s32", &format!("{clamp} m = s32[] minimum(s, h)\n ROOT r = s32[] maximum(l, m)")),
            "saturated",
        ),
        (values("f32", "ROOT c = f32[] subtract(a, b)"), "difference"),
        (values("s32", "ROOT c = s32[] subtract(a, b)"), "difference"),
        // Nearly the same.
        (values("f32", &BARE.replace("maximum", "minimum")), "?"),
        (values("f32", &BARE.replace("negate", "abs")), "?"),
        (values("f32", &PYTORCH.replace("or(n, f)", "and(n, f)")), "?"),
        (values("f32", &SHIFTED.replace("subtract(b, m)", "subtract(m, b)")), "?"),
        (values("f32", &HYPOTENUSE.replace("multiply(b, b)", "multiply(b, a)")), "?"),
        (
            tuples(&["f32", "f32"], &RESCALED.replace("subtract(b0, m)", "subtract(b0, a0)"), "m, w"),
            "maximum, ?",
        ),
        (tuples(&["f32", "f32"], &RESCALED.replace("maximum", "minimum"), "m, w"), "minimum, ?"),
        (
            tuples(&["f32", "f32", "f32"], &INDUCTOR.replace("divide(b2, n)", "divide(a2, n)"), "m, w, n"),
            "?, ?, add",
        ),
        (
            tuples(
                &["f32", "f32", "f32"],
                &INDUCTOR.replace("multiply(dd, a2)", "multiply(dd, b2)"),
                "m, w, n",
            ),
            "mean, ?, add",
        ),
        (
            tuples(&["s32", "f32", "f32"], &CHAN.replace("multiply(fb, b1)", "multiply(fb, a1)"), "n, m, w"),
            "add, ?, ?",
        ),
        (values("s32", &format!("{clamp} m = s32[] minimum(s, a)\n ROOT r = s32[] maximum(l, m)")), "?"),
    ];
    for (body, expected) in table {
        assert_eq!(recognized(&body), expected, "{body}");
    }
}

/// Numbers without an order, the same for a seed.
struct Scattered(u64);

impl Scattered {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn float(&mut self) -> f32 {
        (self.next() as f32 / (1u64 << 31) as f32) * 2.0 - 1.0
    }
}

/// Merges terms in some order with some brackets.
fn merged<T: Copy>(mut terms: Vec<T>, merge: &dyn Fn(T, T) -> T, random: &mut Scattered) -> T {
    while terms.len() > 1 {
        let a = terms.swap_remove(random.next() as usize % terms.len());
        let b = terms.swap_remove(random.next() as usize % terms.len());
        terms.push(merge(a, b));
    }
    terms[0]
}

/// Bounds and values of a fold of arrays of f32, converted, under the liberty of any order.
fn fold(region: &str, types: &[&str], initial: &[&str], inputs: &[&[f32]]) -> Vec<(ArrayLiteral, Bounds)> {
    let n = inputs[0].len();
    let parameters: Vec<String> =
        types.iter().enumerate().map(|(k, ty)| format!(" x{k} = {ty}[{n}] parameter({k})\n")).collect();
    let constants: Vec<String> = types
        .iter()
        .zip(initial)
        .enumerate()
        .map(|(k, (ty, x))| format!(" i{k} = {ty}[] constant({x})\n"))
        .collect();
    let names = |c: char| (0..types.len()).map(|k| format!("{c}{k}")).collect::<Vec<_>>().join(", ");
    let result = match types {
        [ty] => format!("{ty}[]"),
        _ => format!("({})", types.iter().map(|ty| format!("{ty}[]")).collect::<Vec<_>>().join(", ")),
    };
    let text = format!(
        "HloModule m\n{region}\nENTRY e {{ {}{} ROOT q = {result} reduce({}, {}), dimensions={{0}}, to_apply=r }}",
        parameters.concat(),
        constants.concat(),
        names('x'),
        names('i'),
    );
    certified(&text, inputs, Allowances { reorder_regions: true, ..Allowances::STRICT })
}

/// A result is within both bounds, and these are no wider than `limit` of it.
fn inside(result: &(ArrayLiteral, Bounds), actual: f32, limit: f64) {
    let reference = number::Numbers::of(&hlo_interp::Tensor::from_literal(result.0.clone())).re[0];
    let (soft, hard) = (result.1.soft.at(0), result.1.hard.at(0));
    let off = (f64::from(actual) - reference).abs();
    assert!(off <= soft && off <= hard, "{actual} is {off:e} from {reference}: {soft:e} {hard:e}");
    assert!(hard <= limit * reference.abs(), "{reference}: {hard:e}");
}

fn log_add_exp(a: f32, b: f32) -> f32 {
    a.max(b) + (-(a - b).abs()).exp().ln_1p()
}

#[test]
fn logarithms_of_sums_of_exponentials_in_any_order_are_inside() {
    let mut random = Scattered(1);
    for form in [BARE, PYTORCH, SHIFTED] {
        for n in [2, 7, 100] {
            let x: Vec<f32> = (0..n).map(|_| 8.0 * random.float()).collect();
            let found = fold(&values("f32", form), &["f32"], &["-inf"], &[&x]);
            for _ in 0..20 {
                let terms = x.iter().copied().chain([f32::NEG_INFINITY]).collect();
                inside(&found[0], merged(terms, &log_add_exp, &mut random), 1e-4);
            }
        }
    }
    // Two that are minus infinity are a NaN without a guard, in some order.
    let x = [1.0, f32::NEG_INFINITY, 2.0];
    assert!(fold(&values("f32", BARE), &["f32"], &["-inf"], &[&x])[0].1.hard.at(0).is_infinite());
    inside(&fold(&values("f32", PYTORCH), &["f32"], &["-inf"], &[&x])[0], log_add_exp(1.0, 2.0), 1e-5);
    let x = [1.0, f32::INFINITY, 2.0];
    assert!(fold(&values("f32", PYTORCH), &["f32"], &["-inf"], &[&x])[0].1.hard.is_zero());
}

#[test]
fn roots_of_sums_of_squares_in_any_order_are_inside() {
    let mut random = Scattered(2);
    for (n, scale, limit) in [(2, 1.0f32, 1e-6), (7, 1e15, 1e-5), (100, 1e-3, 1e-4), (5, 1e-20, 1.0)] {
        let x: Vec<f32> = (0..n).map(|_| scale * random.float()).collect();
        let found = fold(&values("f32", HYPOTENUSE), &["f32"], &["0"], &[&x]);
        for _ in 0..20 {
            let terms = x.iter().copied().chain([0.0]).collect();
            let actual = merged(terms, &|a: f32, b: f32| (a * a + b * b).sqrt(), &mut random);
            inside(&found[0], actual, if limit < 1.0 { limit } else { f64::INFINITY });
        }
    }
    let hard = |x: &[f32]| fold(&values("f32", HYPOTENUSE), &["f32"], &["0"], &[x])[0].1.hard.at(0);
    // The squares overflow in every order, or perhaps.
    assert_eq!(hard(&[3e19, 1.0]), 0.0);
    assert!(hard(&[1.844_674_4e19, 1.0]).is_infinite());
}

#[test]
fn rescaled_sums_in_any_order_are_inside() {
    let mut random = Scattered(3);
    let region = tuples(&["f32", "f32"], RESCALED, "m, w");
    for (n, scale) in [(2, 1.0f32), (9, 5.0), (100, 3.0), (40, 60.0)] {
        let m: Vec<f32> = (0..n).map(|_| scale * random.float()).collect();
        let s: Vec<f32> = (0..n).map(|_| random.float().abs() + 0.1).collect();
        let found = fold(&region, &["f32", "f32"], &["-inf", "0"], &[&m, &s]);
        assert!(found[0].1.is_exact());
        for _ in 0..20 {
            let terms = m.iter().copied().zip(s.iter().copied()).chain([(f32::NEG_INFINITY, 0.0)]).collect();
            let merge = |(m1, s1): (f32, f32), (m2, s2): (f32, f32)| {
                let m = m1.max(m2);
                (m, s1 * (m1 - m).exp() + s2 * (m2 - m).exp())
            };
            inside(&found[1], merged(terms, &merge, &mut random).1, 1e-3);
        }
    }
    // Two maxima that are minus infinity have no difference.
    let found = fold(&region, &["f32", "f32"], &["-inf", "0"], &[&[1.0, f32::NEG_INFINITY], &[1.0, 1.0]]);
    assert!(found[1].1.hard.at(0).is_infinite());
}

/// Mean, sum of squares and count.
type Moments = (f32, f32, f32);

#[test]
fn moments_in_any_order_are_inside() {
    let mut random = Scattered(4);
    let inductor_merge = |(m1, s1, n1): Moments, (m2, s2, n2): Moments| -> Moments {
        let (d, n) = (m2 - m1, n1 + n2);
        let w = if n == 0.0 { 0.0 } else { n2 / n };
        (m1 + d * w, s1 + s2 + d * d * n1 * w, n)
    };
    let chan_merge = |(m1, s1, n1): Moments, (m2, s2, n2): Moments| -> Moments {
        let (d, n) = (m2 - m1, n1 + n2);
        ((n1 * m1 + n2 * m2) / n, d * (d * (n1 * n2 / n)) + (s1 + s2), n)
    };
    for (n, offset) in [(2, 0.0f32), (8, 3.0), (100, 10.0), (30, 1000.0)] {
        let m: Vec<f32> = (0..n).map(|_| offset + random.float()).collect();
        let (zeros, ones) = (vec![0.0; n], vec![1.0; n]);
        let by_inductor = fold(
            &inductor(),
            &["f32"; 3],
            &["0", "0", "0"],
            &[m.as_slice(), zeros.as_slice(), ones.as_slice()],
        );
        let by_chan = fold(
            &chan(),
            &["s32", "f32", "f32"],
            &["0", "0", "0"],
            &[ones.as_slice(), m.as_slice(), zeros.as_slice()],
        );
        assert!(by_inductor[2].1.hard.at(0) <= 1e-3 * n as f64 && by_chan[0].1.is_exact());
        let limit = if offset < 1.0 { 1e-4 } else { 0.05 };
        for _ in 0..20 {
            let terms = || m.iter().map(|&m| (m, 0.0, 1.0)).chain([(0.0, 0.0, 0.0)]).collect();
            let (mean, squares, _) = merged(terms(), &inductor_merge, &mut random);
            inside(&by_inductor[0], mean, if offset == 0.0 { 1.0 } else { 1e-4 });
            inside(&by_inductor[1], squares, if offset > 100.0 { 10.0 } else { limit });
            let (mean, squares, _) = merged(terms(), &chan_merge, &mut random);
            inside(&by_chan[1], mean, if offset == 0.0 { 1.0 } else { 1e-4 });
            inside(&by_chan[2], squares, if offset > 100.0 { 10.0 } else { limit });
        }
    }
    // Two parts that count nothing have no mean; counts that are not whole are not followed.
    for n in [[0.0, 1.0, 1.0], [0.5, 1.0, 1.0]] {
        let found = fold(&inductor(), &["f32"; 3], &["0", "0", "0"], &[&[1.0, 2.0, 3.0], &[0.0; 3], &n]);
        assert!(found[0].1.hard.at(0).is_infinite() && found[1].1.hard.at(0).is_infinite());
    }
}

#[test]
fn saturated_sums_without_terms_of_both_signs_have_no_order() {
    let region = values(
        "s32",
        "s = s32[] add(b, a)\n l = s32[] constant(-128)\n h = s32[] constant(127)\n ROOT r = s32[] clamp(l, s, h)",
    );
    let of = |x: &[f32]| fold(&region, &["s32"], &["0"], &[x]).remove(0).1;
    assert!(of(&[100.0, 100.0, 7.0]).is_exact() && of(&[-100.0, -100.0]).is_exact());
    assert!(of(&[100.0, -100.0, 27.0]).is_exact());
    // 100 and 100 are 127, less 100 are 27; or 100.
    let open = of(&[100.0, 100.0, -100.0]);
    assert!(open.soft.is_zero() && open.hard.at(0) >= 73.0 && open.hard.at(0) <= 228.0);
    assert!(open.hard.admits(0, 127.0) && open.hard.admits(0, -100.0) && !open.hard.admits(0, -110.0));
    // Sums that wrap.
    assert!(of(&[2e9, 2e9]).hard.at(0).is_infinite());
}

/// The accumulator on the left: the initial value less all elements, in any order of these.
#[test]
fn differences_have_a_sum_and_any_signs() {
    let region = values("f32", "ROOT c = f32[] subtract(a, b)");
    let found = |initial: &str, x: &[f32]| fold(&region, &["f32"], &[initial], &[x]).remove(0).1;
    let x = [0.1, 0.7, 1e-3, 5.0];
    let bounds = found("0", &x);
    assert!(bounds.soft.at(0) > 0.0 && bounds.soft.at(0) < 1e-5);
    assert!(bounds.hard.at(0) > 11.0 && bounds.hard.at(0) < 12.0);
    let bounds = found("2", &x);
    assert!(bounds.soft.at(0) < 1e-5 && bounds.hard.at(0).is_infinite());
    let region = values("s32", "ROOT c = s32[] subtract(a, b)");
    let bounds = fold(&region, &["s32"], &["3"], &[&[1.0, 2.0]]).remove(0).1;
    assert!(bounds.soft.is_zero() && bounds.hard.at(0).is_infinite());
}
