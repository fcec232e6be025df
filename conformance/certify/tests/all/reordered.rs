//! What applied computations are recognized as, and what folds in any order may give.

use hlo::ArrayLiteral;
use hlo_certify::bounds::{self, Radii};
use hlo_execution::allowances::Allowances;
use hlo_recognize::region::Component;

use crate::common::{U, certified, one, parse_text};

/// What each component of the first computation of a module is.
pub(super) fn recognized(body: &str) -> String {
    let text = format!("HloModule m\n{body}\nENTRY e {{ ROOT x = f32[] parameter(0) }}");
    let (module, found) = parse_text(&text);
    let module = module.unwrap_or_else(|| panic!("{found:?}\n{text}"));
    let name = "r";
    let computation = *module
        .computations()
        .iter()
        .find(|&&c| &*module.computation(c).name == name)
        .expect("the region is named r");
    let Some(region) = bounds::recognized(&module, computation) else { return "nothing".into() };
    let each = region.components.iter().enumerate().map(|(i, component)| match *component {
        Component::Fold(by, node) if node == region.element(i) => by.name().to_owned(),
        Component::Fold(by, _) => format!("{by} of f"),
        Component::Choice(c) => {
            let table = &region.choices[c].table;
            if !table.selects {
                "free".to_owned()
            } else if table.any_order {
                "ordered".to_owned()
            } else {
                "chosen".to_owned()
            }
        }
        Component::Merge(merge) => merge.name().to_owned(),
        Component::Unrecognized => "?".to_owned(),
    });
    each.collect::<Vec<_>>().join(", ")
}

/// A computation on pairs of a value and an index, of these types.
fn pairs(value: &str, index: &str, lines: &str) -> String {
    format!(
        "r {{ av = {value}[] parameter(0)\n ai = {index}[] parameter(1)\n bv = {value}[] parameter(2)\n bi = {index}[] parameter(3)\n{lines} ROOT t = ({value}[], {index}[]) tuple(v, i) }}"
    )
}

/// A computation on two values of a type.
pub(super) fn values(ty: &str, lines: &str) -> String {
    format!("r {{ a = {ty}[] parameter(0)\n b = {ty}[] parameter(1)\n {lines} }}")
}

/// `argmax` as JAX writes it: NaNs first, then the least index of the greatest value.
const JAX: &str = " gt = pred[] compare(av, bv), direction=GT\n ne = pred[] compare(av, av), direction=NE\n c = pred[] or(gt, ne)\n eq = pred[] compare(av, bv), direction=EQ\n lt = pred[] compare(ai, bi), direction=LT\n el = pred[] and(eq, lt)\n ci = pred[] or(c, el)\n v = VALUE[] select(c, av, bv)\n i = INDEX[] select(ci, ai, bi)\n";

/// The number of the greater magnitude.
const LARGER: &str = "x = TYPE[] abs(a)\n y = TYPE[] abs(b)\n p = pred[] compare(x, y), direction=GE\n ROOT c = TYPE[] select(p, a, b)";

#[test]
fn a_choice_by_a_function_is_one_of_those_that_may_be_best() {
    let text = |ty: &str| {
        format!(
            "HloModule m\n{}\nENTRY e {{ x = {ty}[5] parameter(0)\n z = {ty}[] constant(0)\n ROOT m = {ty}[] reduce(x, z), dimensions={{0}}, to_apply=r }}",
            values(ty, &LARGER.replace("TYPE", ty))
        )
    };
    for ty in ["f32", "bf16", "f64"] {
        let hard = |x: [f32; 5]| free(&text(ty), &[&x])[0].1[0];
        // One is the only best; two of them are, with one sign and with both.
        assert_eq!(hard([1.0, -5.0, 4.0, 2.0, -3.0]), 0.0, "{ty}");
        assert_eq!(hard([5.0, 1.0, 5.0, 2.0, 4.0]), 0.0, "{ty}");
        assert!((10.0..10.0 + 1e-9).contains(&hard([5.0, 1.0, -5.0, 2.0, 4.0])), "{ty}");
        assert!(hard([5.0, f32::NAN, -5.0, 2.0, 4.0]) >= 10.0, "{ty}");
    }
    // An element that is off may be the best.
    let inexact = "HloModule m\n".to_owned()
        + &values("f32", &LARGER.replace("TYPE", "f32"))
        + "\nENTRY e { x = f32[3] parameter(0)\n y = f32[3] sine(x)\n z = f32[] constant(0)\n ROOT m = f32[] reduce(y, z), dimensions={0}, to_apply=r }";
    assert!(free(&inexact, &[&[1.0, -1.0, 0.5]])[0].1[0] >= 1.5);
    assert!(free(&inexact, &[&[1.0, -0.9, 0.5]])[0].1[0] < 1e-6);
}

#[test]
fn regions_are_recognized_by_what_they_compute() {
    let jax =
        |value: &str, index: &str| pairs(value, index, &JAX.replace("VALUE", value).replace("INDEX", index));
    // Client libraries of TensorFlow and PyTorch: the least index of those that tie by a minimum.
    let tied = |direction: &str| {
        pairs(
            "f32",
            "s32",
            &format!(
                " c = pred[] compare(av, bv), direction={direction}\n v = f32[] select(c, av, bv)\n j = s32[] select(c, ai, bi)\n eq = pred[] compare(av, bv), direction=EQ\n m = s32[] minimum(ai, bi)\n i = s32[] select(eq, m, j)\n"
            ),
        )
    };
    let untied = |direction: &str, operands: &str| {
        let (yes, no) = if operands == "av, bv" { ("a", "b") } else { ("b", "a") };
        pairs(
            "f32",
            "s32",
            &format!(
                " c = pred[] compare({operands}), direction={direction}\n v = f32[] select(c, {yes}v, {no}v)\n i = s32[] select(c, {yes}i, {no}i)\n"
            ),
        )
    };
    let table = [
        (values("f32", "ROOT c = f32[] add(b, a)"), "add"),
        (values("s32", "ROOT c = s32[] xor(a, b)"), "xor"),
        (values("f32", "ROOT c = f32[] maximum(a, b)"), "maximum"),
        (values("f32", "x = f32[] multiply(b, b)\n ROOT c = f32[] add(a, x)"), "add of f"),
        (values("f32", "x = f32[] abs(b)\n ROOT c = f32[] maximum(x, a)"), "maximum of f"),
        // Extremes written out: the zeros tie.
        (values("f32", "p = pred[] compare(a, b), direction=GT\n ROOT c = f32[] select(p, a, b)"), "chosen"),
        (values("f16", "p = pred[] compare(b, a), direction=LE\n ROOT c = f16[] select(p, b, a)"), "chosen"),
        (values("s32", "p = pred[] compare(a, b), direction=GE\n ROOT c = s32[] select(p, a, b)"), "ordered"),
        (values("u64", "p = pred[] compare(a, b), direction=LT\n ROOT c = u64[] select(p, b, a)"), "ordered"),
        (
            values("f32", "p = pred[] compare(a, b), direction=GT, type=TOTALORDER\n ROOT c = f32[] select(p, a, b)"),
            "ordered",
        ),
        // Overwriting, and not.
        (values("bf16", "ROOT c = bf16[] copy(b)"), "chosen"),
        (values("c64", "ROOT c = c64[] copy(b)"), "chosen"),
        ("r { a = f32[] parameter(0)\n b = s8[] parameter(1)\n c = f32[] parameter(2)\n d = s8[] parameter(3)\n ROOT t = (f32[], s8[]) tuple(c, d) }".into(), "chosen, chosen"),
        // Logic in numbers.
        (
            values("s32", "z = s32[] constant(0)\n p = pred[] compare(a, z), direction=NE\n q = pred[] compare(b, z), direction=NE\n o = pred[] or(p, q)\n ROOT c = s32[] convert(o)"),
            "free",
        ),
        (values("f32", "z = f32[] constant(0)\n m = f32[] maximum(a, b)\n ROOT c = f32[] maximum(m, z)"), "free"),
        (
            values("pred", "x = s32[] convert(a)\n y = s32[] convert(b)\n g = pred[] compare(x, y), direction=GT\n ROOT c = pred[] select(g, a, b)"),
            "ordered",
        ),
        // NaNs by a constant.
        (
            values("f32", "n = f32[] constant(nan)\n p = pred[] compare(a, a), direction=NE\n q = pred[] compare(b, b), direction=NE\n o = pred[] or(p, q)\n m = f32[] maximum(a, b)\n ROOT c = f32[] select(o, n, m)"),
            "ordered",
        ),
        // By way of a wider type.
        (
            values("bf16", "x = f32[] convert(a)\n y = f32[] convert(b)\n m = f32[] maximum(x, y)\n ROOT c = bf16[] convert(m)"),
            "ordered",
        ),
        (
            values("bf16", "x = f32[] convert(a)\n y = f32[] convert(b)\n m = f32[] add(x, y)\n ROOT c = bf16[] convert(m)"),
            "add of f",
        ),
        (
            values("f16", "x = f32[] convert(a)\n y = f32[] convert(b)\n z = f32[] multiply(y, y)\n m = f32[] add(z, x)\n ROOT c = f16[] convert(m)"),
            "add of f",
        ),
        (
            values("f32", "z = f32[] constant(0)\n o = f32[] constant(1)\n p = pred[] compare(a, z), direction=NE\n q = pred[] compare(b, z), direction=NE\n e = pred[] or(p, q)\n ROOT c = f32[] select(e, o, z)"),
            "free",
        ),
        // Selection with indices.
        (jax("f32", "s32"), "chosen, chosen"),
        (jax("bf16", "u32"), "chosen, chosen"),
        (jax("s32", "s64"), "ordered, ordered"),
        (tied("GE"), "chosen, chosen"),
        (tied("LE"), "chosen, chosen"),
        (untied("GT", "av, bv"), "chosen, chosen"),
        (untied("LE", "bv, av"), "chosen, chosen"),
        // By a function of each: magnitudes, remainders, the magnitude with an index, and of complex numbers.
        (values("f32", &LARGER.replace("TYPE", "f32")), "chosen"),
        (values("s32", &LARGER.replace("TYPE", "s32")), "chosen"),
        (
            values("s32", "n = s32[] constant(7)\n x = s32[] remainder(a, n)\n y = s32[] remainder(b, n)\n p = pred[] compare(x, y), direction=LT\n ROOT c = s32[] select(p, a, b)"),
            "chosen",
        ),
        (
            pairs(
                "f32",
                "s32",
                " x = f32[] abs(av)\n y = f32[] abs(bv)\n gt = pred[] compare(x, y), direction=GT\n eq = pred[] compare(x, y), direction=EQ\n lt = pred[] compare(ai, bi), direction=LT\n el = pred[] and(eq, lt)\n c = pred[] or(gt, el)\n v = f32[] select(c, av, bv)\n i = s32[] select(c, ai, bi)\n",
            ),
            "chosen, chosen",
        ),
        (
            values("c64", "x = f32[] abs(a)\n y = f32[] abs(b)\n p = pred[] compare(x, y), direction=GE\n ROOT c = c64[] select(p, a, b)"),
            "chosen",
        ),
        // Components of their own, of several kinds.
        (
            "r { a = f32[] parameter(0)\n b = f32[] parameter(1)\n c = f32[] parameter(2)\n d = f32[] parameter(3)\n s = f32[] add(a, c)\n dd = f32[] multiply(d, d)\n q = f32[] add(b, dd)\n ROOT t = (f32[], f32[]) tuple(s, q) }".into(),
            "add, add of f",
        ),
        (
            "r { a = f32[] parameter(0)\n v = f32[] parameter(1)\n i = s32[] parameter(2)\n c = f32[] parameter(3)\n w = f32[] parameter(4)\n j = s32[] parameter(5)\n p = f32[] multiply(a, c)\n g = pred[] compare(v, w), direction=GE\n x = f32[] select(g, v, w)\n y = s32[] select(g, i, j)\n ROOT t = (f32[], f32[], s32[]) tuple(p, x, y) }".into(),
            "multiply, chosen, chosen",
        ),
        // Called.
        (
            format!(
                "f {{ x = f32[] parameter(0)\n y = f32[] parameter(1)\n ROOT p = pred[] compare(x, y), direction=LT }}\n{}",
                values("f32", "p = pred[] call(a, b), to_apply=f\n ROOT c = f32[] select(p, a, b)")
            ),
            "chosen",
        ),
    ];
    for (body, expected) in table {
        assert_eq!(recognized(&body), expected, "{body}");
    }
}

#[test]
fn what_depends_on_the_order_otherwise_is_not_recognized() {
    let table = [
        (values("f32", "ROOT c = f32[] subtract(b, a)"), "?"),
        (values("f32", "ROOT c = f32[] divide(a, b)"), "?"),
        (values("f32", "x = f32[] multiply(a, a)\n ROOT c = f32[] add(x, b)"), "?"),
        (values("f32", "x = f32[] add(a, b)\n ROOT c = f32[] add(x, a)"), "?"),
        (values("f32", "x = f32[] maximum(a, b)\n ROOT c = f32[] negate(x)"), "?"),
        // A choice by what is no comparison with the other.
        (
            values(
                "f32",
                "x = f32[] sine(a)\n p = pred[] compare(x, b), direction=GT\n ROOT c = f32[] select(p, a, b)",
            ),
            "?",
        ),
        // By different functions of the two.
        (
            values(
                "f32",
                "x = f32[] abs(a)\n y = f32[] negate(b)\n p = pred[] compare(x, y), direction=GT\n ROOT c = f32[] select(p, a, b)",
            ),
            "?",
        ),
        // The greater magnitude, which is neither number.
        (
            values(
                "f32",
                "x = f32[] abs(a)\n y = f32[] abs(b)\n p = pred[] compare(x, y), direction=GT\n ROOT c = f32[] select(p, x, y)",
            ),
            "?",
        ),
        // The index of the other element than the value's.
        (
            pairs(
                "f32",
                "s32",
                " c = pred[] compare(av, bv), direction=GT\n v = f32[] select(c, av, bv)\n i = s32[] select(c, bi, ai)\n",
            ),
            "chosen, ?",
        ),
        // The value compared with an index.
        (
            pairs(
                "f32",
                "f32",
                " c = pred[] compare(av, bi), direction=GT\n v = f32[] select(c, av, bv)\n i = f32[] select(c, ai, bi)\n",
            ),
            "?, ?",
        ),
        // Counted while it chooses.
        (
            pairs(
                "f32",
                "s32",
                " c = pred[] compare(av, bv), direction=GT\n v = f32[] select(c, av, bv)\n o = s32[] constant(1)\n i = s32[] add(ai, o)\n",
            ),
            "chosen, add of f",
        ),
        // Neither, and not the same in any order.
        (
            values(
                "s32",
                "z = s32[] constant(0)\n p = pred[] compare(a, b), direction=GT\n ROOT c = s32[] select(p, z, b)",
            ),
            "?",
        ),
    ];
    for (body, expected) in table {
        assert_eq!(recognized(&body), expected, "{body}");
    }
}

/// How far results may be off where regions may be reordered: soft and hard radii of each array.
fn free(text: &str, inputs: &[&[f32]]) -> Vec<(Vec<f64>, Vec<f64>)> {
    let reordered = Allowances { reorder_regions: true, ..Allowances::STRICT };
    let all = |allowances| -> Vec<(Vec<f64>, Vec<f64>)> {
        let each = |radii: &Radii, n: usize| (0..n).map(|i| radii.at(i)).collect();
        let certified = certified(text, inputs, allowances);
        certified
            .iter()
            .map(|(v, b)| (each(&b.soft, v.buffer.len()), each(&b.hard, v.buffer.len())))
            .collect()
    };
    let found = all(reordered);
    for ((_, loose), (_, hard)) in all(Allowances::LOOSE).iter().zip(&found) {
        assert!(loose.iter().zip(hard).all(|(loose, hard)| loose >= hard), "{loose:?} {hard:?}");
    }
    found
}

/// A reduction of rows with their indices.
fn argmax(rows: usize, columns: usize, region: &str) -> String {
    format!(
        "HloModule am\n{region}\nENTRY e {{ x = f32[{rows},{columns}] parameter(0)\n i = s32[{rows},{columns}] iota(), iota_dimension=1\n m = f32[] constant(-inf)\n z = s32[] constant(0)\n ROOT q = (f32[{rows}], s32[{rows}]) reduce(x, i, m, z), dimensions={{1}}, to_apply=r }}"
    )
}

fn jax() -> String {
    pairs("f32", "s32", &JAX.replace("VALUE", "f32").replace("INDEX", "s32"))
}

fn untied() -> String {
    pairs(
        "f32",
        "s32",
        " c = pred[] compare(av, bv), direction=GT\n v = f32[] select(c, av, bv)\n i = s32[] select(c, ai, bi)\n",
    )
}

#[test]
fn an_index_of_the_best_is_exact_unless_it_ties_without_a_rule() {
    let x: [f32; 12] = [1.0, 5.0, 2.0, 3.0, 7.0, 1.0, 2.0, 7.0, -1.0, -2.0, -3.0, -4.0];
    for text in [argmax(3, 4, &jax()), argmax(3, 4, &untied())] {
        let found = free(&text, &[&x]);
        assert_eq!(found[0], (vec![0.0; 3], vec![0.0; 3]), "{text}");
        assert_eq!(found[1].0, vec![0.0; 3]);
        // The 7 of the second row is at 0 and at 3.
        let ties = if text.contains("ne = ") { 0.0 } else { 3.0 };
        assert_eq!(found[1].1, vec![0.0, ties, 0.0], "{text}");
    }
    // A NaN comes first, wherever it is; where nothing says so, any may be last.
    let x = [1.0, f32::NAN, 2.0, 3.0];
    assert_eq!(free(&argmax(1, 4, &jax()), &[&x])[1].1, [0.0]);
    assert!(free(&argmax(1, 4, &untied()), &[&x])[1].1[0] >= 1.0);
}

#[test]
fn an_index_reaches_those_whose_values_are_within_the_bound_of_the_best() {
    // exp is within 2 units: 1 and its neighbour may be exchanged, what is far from them may not.
    let text = argmax(1, 4, &jax())
        .replace("i = s32[1,4]", "y = f32[1,4] exponential(x)\n i = s32[1,4]")
        .replace("reduce(x, ", "reduce(y, ");
    let found = free(&text, &[&[0.0, -3.0, f32::EPSILON, 0.5]]);
    assert_eq!((found[1].0[0], found[1].1[0]), (0.0, 0.0));
    let found = free(&text, &[&[0.0, -3.0, f32::EPSILON, -0.5]]);
    assert_eq!((found[1].0[0], found[1].1[0]), (0.0, 2.0));
    assert!(found[0].1[0] > 0.0 && found[0].1[0] < 1e-6);
}

#[test]
fn zeros_of_both_signs_tie_where_an_extreme_is_written_out() {
    let text = |region: String| {
        format!(
            "HloModule m\n{region}\nENTRY e {{ x = f32[2,2] parameter(0)\n m = f32[] constant(-inf)\n ROOT q = f32[2] reduce(x, m), dimensions={{1}}, to_apply=r }}"
        )
    };
    let chosen =
        text(values("f32", "p = pred[] compare(a, b), direction=GT\n ROOT c = f32[] select(p, a, b)"));
    let x = [0.0, -0.0, 0.0, 1.0];
    let hard = free(&chosen, &[&x])[0].1.clone();
    assert!(hard[0] > 0.0 && hard[0] < 1e-44 && hard[1] == 0.0, "{hard:?}");
    assert_eq!(free(&text(values("f32", "ROOT c = f32[] maximum(a, b)")), &[&x])[0].1, [0.0, 0.0]);
}

#[test]
fn components_of_a_reduction_have_bounds_of_their_own() {
    let region = "r { a = f32[] parameter(0)\n b = f32[] parameter(1)\n n = s32[] parameter(2)\n u = f32[] parameter(3)\n c = f32[] parameter(4)\n d = f32[] parameter(5)\n k = s32[] parameter(6)\n w = f32[] parameter(7)\n s = f32[] add(a, c)\n dd = f32[] multiply(d, d)\n q = f32[] add(b, dd)\n m = s32[] add(n, k)\n x = f32[] divide(u, w)\n ROOT t = (f32[], f32[], s32[], f32[]) tuple(s, q, m, x) }";
    let text = format!(
        "HloModule m\n{region}\nENTRY e {{ x = f32[100] parameter(0)\n i = s32[100] iota(), iota_dimension=0\n z = f32[] constant(0)\n y = s32[] constant(0)\n ROOT q = (f32[], f32[], s32[], f32[]) reduce(x, x, i, x, z, z, y, z), dimensions={{0}}, to_apply=r }}"
    );
    let x: Vec<f32> = (0..100).map(|i| 0.1 + i as f32 / 100.0).collect();
    let found = free(&text, &[&x]);
    // Sums of magnitudes of about 60 and 44, each of 101 terms.
    let hard: Vec<f64> = found.iter().map(|f| f.1[0]).collect();
    assert!((60.0 * 100.0 * U / 2.0..4.0 * 60.0 * 101.0 * U / 2.0).contains(&hard[0]), "{hard:?}");
    assert!((42.0 * 100.0 * U / 2.0..4.0 * 46.0 * 101.0 * U / 2.0).contains(&hard[1]), "{hard:?}");
    assert_eq!(hard[2..], [0.0, f64::INFINITY]);
}

#[test]
fn products_round_once_for_each_factor() {
    let text = "HloModule m\nr { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] multiply(a, b) }\nENTRY e { x = f32[8] parameter(0)\n o = f32[] constant(1)\n ROOT q = f32[] reduce(x, o), dimensions={0}, to_apply=r }";
    let hard = free(text, &[&[1.1; 8]])[0].1[0];
    let product = 1.1f64.powi(8);
    assert!((8.0 * product * U / 2.0..4.0 * 8.0 * product * U).contains(&hard), "{hard}");
}

/// A NaN, or an infinity and a zero, make NaN in every order; an infinity stays one unless a partial product
/// of other factors may underflow.
#[test]
fn infinities_and_nans_absorb_the_other_factors() {
    let text = "HloModule m\nr { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] multiply(a, b) }\nENTRY e { x = f32[3] parameter(0)\n y = f32[] parameter(1)\n ROOT q = f32[] reduce(x, y), dimensions={0}, to_apply=r }";
    const INF: f32 = f32::INFINITY;
    let reordered = Allowances { reorder_regions: true, ..Allowances::STRICT };
    let hard = |x: [f32; 3], init: f32, flush_denormals: bool| {
        let allowances = Allowances { flush_denormals, ..reordered };
        certified(text, &[&x, &[init]], allowances)[0].1.hard.at(0)
    };
    for (x, init) in [
        ([f32::NAN, 1.0, 2.0], 1.0),
        ([INF, -1.0, 2.0], 1.0),
        ([3.0, 1e30, 1e-30], INF),
        ([INF, 0.0, 1e-30], 1e-30),
        ([1e-30, INF, 1e-30], f32::NAN),
        ([INF, -INF, 1e-7], 1.0),
    ] {
        assert_eq!([false, true].map(|flush| hard(x, init, flush)), [0.0; 2], "{x:?} {init}");
    }
    // 1e-60 is a zero, and so is a denormal number that is flushed.
    assert_eq!(hard([INF, 1e-30, 1e-30], 1.0, false), f64::INFINITY);
    assert_eq!(hard([INF, 1e-40, 1.0], 1.0, true), f64::INFINITY);
}

/// Where products saturate none is infinite or NaN, and one with a zero among its factors is 0 in every
/// order.
#[test]
fn a_zero_absorbs_factors_that_saturate() {
    let text = "HloModule m\nr { a = f4e2m1fn[] parameter(0)\n b = f4e2m1fn[] parameter(1)\n ROOT c = f4e2m1fn[] multiply(a, b) }\nENTRY e { x = f4e2m1fn[3] parameter(0)\n y = f4e2m1fn[] parameter(1)\n ROOT q = f4e2m1fn[] reduce(x, y), dimensions={0}, to_apply=r }";
    let hard = |x: [f32; 3], init: f32| free(text, &[&x, &[init]])[0].1[0];
    assert_eq!(hard([6.0, 6.0, 6.0], 0.0), 0.0);
    assert_eq!(hard([6.0, 0.0, 6.0], 1.0), 0.0);
    assert_eq!(hard([6.0, 6.0, 0.5], 1.0), f64::INFINITY);
}

#[test]
fn updates_that_all_go_elsewhere_have_no_order() {
    // Two operands that are overwritten together, as JAX writes it.
    let text = |indices: &str, attrs: &str| {
        format!(
            "HloModule m\nr {{ a = f32[] parameter(0)\n b = f32[] parameter(1)\n c = f32[] parameter(2)\n d = f32[] parameter(3)\n ROOT t = (f32[], f32[]) tuple(c, d) }}\nENTRY e {{ z = f32[] constant(0)\n o = f32[3] broadcast(z), dimensions={{}}\n i = s32[2,1] constant({indices})\n x = f32[2] parameter(0)\n y = f32[2] parameter(1)\n ROOT s = (f32[3], f32[3]) scatter(o, o, i, x, y), update_window_dims={{}}, inserted_window_dims={{0}}, scatter_dims_to_operand_dims={{0}}, index_vector_dim=1{attrs}, to_apply=r }}"
        )
    };
    let (x, y) = ([1.0, 4.0], [2.0, 3.0]);
    for attrs in ["", ", unique_indices=true"] {
        let found = free(&text("{{0}, {1}}", attrs), &[&x, &y]);
        assert!(found.iter().all(|(soft, hard)| soft == &[0.0; 3] && hard == &[0.0; 3]), "{found:?}");
    }
    // One of both where they meet; none where an update does not fit.
    let found = free(&text("{{1}, {1}}", ""), &[&x, &y]);
    let near = |r: f64, d: f64| (d..=d.next_up()).contains(&r);
    for (of, d) in [(0, 3.0), (1, 1.0)] {
        let hard = &found[of].1;
        assert!(hard[0] == 0.0 && near(hard[1], d) && hard[2] == 0.0, "{hard:?}");
    }
    let found = free(&text("{{1}, {7}}", ""), &[&x, &y]);
    assert!(found.iter().all(|(_, hard)| hard == &[0.0; 3]), "{found:?}");
    // Whatever the region is: each is applied once.
    let subtract = "HloModule m\nr { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] subtract(a, b) }\nENTRY e { z = f32[3] parameter(0)\n i = s32[2,1] constant({{2}, {INDEX}})\n x = f32[2] parameter(1)\n ROOT s = f32[3] scatter(z, i, x), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=r }";
    assert_eq!(free(&subtract.replace("INDEX", "0"), &[&[1.0; 3], &x])[0].1, [0.0; 3]);
    // Where two meet the order may matter; what none or one goes to has none.
    let divide = subtract.replace("subtract", "divide");
    assert_eq!(free(&divide.replace("INDEX", "2"), &[&[1.0; 3], &x])[0].1, [0.0, 0.0, f64::INFINITY]);
    let exchanged = text("{{0}, {1}}", "").replace("tuple(c, d)", "tuple(d, c)");
    let found = free(&exchanged, &[&x, &y]);
    assert!(found.iter().all(|(soft, hard)| soft == &[0.0; 3] && hard == &[0.0; 3]), "{found:?}");
}

/// `any` and `all` in numbers, as PyTorch/XLA writes them: of exact numbers there is one result, and no other
/// zero.
#[test]
fn logic_in_numbers_is_exact() {
    for (of, init) in [("or", 0), ("and", 1)] {
        for ty in ["f32", "bf16", "s32"] {
            let text = format!(
                "HloModule m\nr {{ a = {ty}[] parameter(0)\n b = {ty}[] parameter(1)\n z = {ty}[] constant(0)\n o = {ty}[] constant(1)\n p = pred[] compare(a, z), direction=NE\n q = pred[] compare(b, z), direction=NE\n e = pred[] {of}(p, q)\n ROOT c = {ty}[] select(e, o, z) }}\nENTRY e {{ x = {ty}[2,3] parameter(0)\n i = {ty}[] constant({init})\n ROOT q = {ty}[2] reduce(x, i), dimensions={{1}}, to_apply=r }}"
            );
            let found = certified(&text, &[&[0.0, 3.0, -1.0, 0.0, 0.0, -0.0]], Allowances::LOOSE);
            assert!(found[0].1.is_exact(), "{of} {ty}");
        }
    }
}

/// A sum of narrow numbers that is computed in a wider type and rounded at each step: within a rounding a term.
#[test]
fn sums_by_way_of_a_wider_type_are_bounded() {
    let x: Vec<f32> = (0..20).map(|i| (i as f32 - 5.0) / 8.0).collect();
    for step in ["y", "s"] {
        let text = format!(
            "HloModule m\nr {{ a = bf16[] parameter(0)\n b = bf16[] parameter(1)\n x = f32[] convert(a)\n y = f32[] convert(b)\n s = f32[] multiply(y, y)\n m = f32[] add(x, {step})\n ROOT c = bf16[] convert(m) }}\nENTRY e {{ x = bf16[20] parameter(0)\n z = bf16[] constant(0)\n ROOT q = bf16[] reduce(x, z), dimensions={{0}}, to_apply=r }}"
        );
        let (_, hard) = &free(&text, &[&x])[0];
        let magnitude: f32 = x.iter().map(|x| if step == "y" { x.abs() } else { x * x }).sum();
        let most = f64::from(magnitude) * 44.0 / 256.0;
        assert!(hard[0] > 0.0 && hard[0] < most, "{hard:?} {most}");
    }
}

/// Denormal numbers are equal to a comparison that flushes them, which selects any of them.
#[test]
fn a_flushed_comparison_written_out_selects_any_denormal_number() {
    let text = "HloModule m\nr { a = f32[] parameter(0)\n b = f32[] parameter(1)\n p = pred[] compare(a, b), direction=GE\n ROOT c = f32[] select(p, a, b) }\nENTRY e { x = f32[2,3] parameter(0)\n z = f32[] constant(-inf)\n ROOT q = f32[2] reduce(x, z), dimensions={1}, to_apply=r }";
    let certified = certified(text, &[&[-1e-45, -9e-39, -1.0, 2.0, 1e-40, -1e-40]], Allowances::LOOSE);
    let (expected, bounds) = &certified[0];
    let judged = |v: [f32; 2]| {
        let actual = ArrayLiteral { dims: expected.dims.clone(), buffer: hlo::Buffer::F32(v.into()).into() };
        let tally = hlo_execution::verdict::judge(expected, &actual, bounds, false).unwrap().tally;
        (tally.wrong, tally.undecided)
    };
    assert_eq!(judged([-9e-39, 2.0]), (0, 0));
    assert_eq!(judged([-1.0, 2.0]), (1, 0));
    assert_eq!(judged([-1e-45, 1e-40]), (1, 0));
}

/// What is chosen is one of the elements, and nothing in between.
#[test]
fn nothing_is_chosen_between_elements() {
    let text = "HloModule m\nr { a = f32[] parameter(0)\n b = s32[] parameter(1)\n c = f32[] parameter(2)\n d = s32[] parameter(3)\n ROOT t = (f32[], s32[]) tuple(c, d) }\nENTRY e { z = f32[2] parameter(0)\n y = s32[2] iota(), iota_dimension=0\n i = s32[4,1] constant({{0}, {0}, {1}, {0}})\n x = f32[4] parameter(1)\n u = s32[4] constant({10, 20, 30, 40})\n s = (f32[2], s32[2]) scatter(z, y, i, x, u), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=r\n v = f32[2] get-tuple-element(s), index=0\n w = s32[2] get-tuple-element(s), index=1\n ROOT q = (f32[2], s32[2]) tuple(v, w) }";
    let certified = certified(text, &[&[100.0, 200.0], &[1.0, 2.0, 3.0, 5.0]], Allowances::LOOSE);
    let judged = |array: usize, buffer: hlo::Buffer| {
        let (expected, bounds) = &certified[array];
        let actual = ArrayLiteral { dims: expected.dims.clone(), buffer: buffer.into() };
        let tally = hlo_execution::verdict::judge(expected, &actual, bounds, false).unwrap().tally;
        (tally.wrong, tally.undecided)
    };
    for (v, wrong) in [(1.0, 0), (2.0, 0), (5.0, 0), (3.0, 1), (1.5, 1), (100.0, 1)] {
        let undecided = u64::from(wrong == 0 && v != 5.0);
        assert_eq!(judged(0, hlo::Buffer::F32(vec![v, 3.0])), (wrong, undecided), "{v}");
    }
    for (v, wrong) in [(10, 0), (20, 0), (40, 0), (30, 1), (15, 1), (0, 1)] {
        let undecided = u64::from(wrong == 0 && v != 40);
        assert_eq!(judged(1, hlo::Buffer::S32(vec![v, 30])), (wrong, undecided), "{v}");
    }
    // The only update, and not what was there before.
    assert_eq!(judged(0, hlo::Buffer::F32(vec![5.0, 200.0])), (1, 0));
}

/// Where elements are made narrower, what is folded before others is narrower or not.
#[test]
fn what_is_converted_to_less_depends_on_the_order() {
    let text = "HloModule m\nr { a = f64[] parameter(0)\n b = f64[] parameter(1)\n x = f8e4m3fn[] convert(b)\n ROOT c = f64[] minimum(x, a) }\nENTRY e { x = f64[4] parameter(0)\n z = f64[] constant(0)\n ROOT q = f64[] reduce(x, z), dimensions={0}, to_apply=r }";
    assert_eq!(free(text, &[&[-1.1, 2.0, -0.3, 0.0]])[0].1, [f64::INFINITY]);
}

/// Updates that are taken away are added with the other sign, in any order.
#[test]
fn what_a_scatter_subtracts_is_a_sum() {
    let text = |ty: &str| {
        format!(
            "HloModule m\nr {{ a = {ty}[] parameter(0)\n b = {ty}[] parameter(1)\n ROOT c = {ty}[] subtract(a, b) }}\nENTRY e {{ z = {ty}[3] parameter(0)\n i = s32[3,1] constant({{{{2}}, {{1}}, {{2}}}})\n x = {ty}[3] parameter(1)\n ROOT s = {ty}[3] scatter(z, i, x), update_window_dims={{}}, inserted_window_dims={{0}}, scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=r }}"
        )
    };
    let hard = &free(&text("f32"), &[&[1.0, 2.0, 3.0], &[0.3, 0.7, 1.1]])[0].1;
    assert!(hard[..2] == [0.0; 2] && hard[2] > 0.0 && hard[2] < 1e-5, "{hard:?}");
}

/// A norm: the greatest magnitude, where the initial value is none that would become another one.
#[test]
fn the_greatest_magnitude_has_no_order() {
    let text = |init: &str| {
        format!(
            "HloModule m\nr {{ a = f32[] parameter(0)\n b = f32[] parameter(1)\n x = f32[] abs(a)\n y = f32[] abs(b)\n ROOT c = f32[] maximum(x, y) }}\nENTRY e {{ x = f32[4] parameter(0)\n z = f32[] constant({init})\n ROOT q = f32[] reduce(x, z), dimensions={{0}}, to_apply=r }}"
        )
    };
    let x: &[f32] = &[1.0, -4.0, 3.0, 2.0];
    assert_eq!(free(&text("0"), &[x])[0].1, [0.0]);
    assert_eq!(free(&text("-inf"), &[x])[0].1, [f64::INFINITY]);
}

/// What gives one of its operands' numbers rounds nothing, however often it is applied.
#[test]
fn what_selects_has_no_excess_precision() {
    let allowed = Allowances { excess_precision: true, ..Allowances::STRICT };
    let exact =
        |text: &str, inputs: &[&[f32]]| certified(text, inputs, allowed).iter().all(|(_, b)| b.is_exact());
    let x: Vec<f32> = (0..60).map(|i| (i * 37 % 64) as f32 / 8.0 - 4.0).collect();
    let pair = "HloModule m\nr { a = bf16[] parameter(0)\n b = bf16[] parameter(1)\n c = bf16[] parameter(2)\n d = bf16[] parameter(3)\n l = bf16[] minimum(a, c)\n h = bf16[] maximum(b, d)\n ROOT t = (bf16[], bf16[]) tuple(l, h) }\nENTRY e { x = bf16[3,20] parameter(0)\n i = bf16[] constant(inf)\n j = bf16[] constant(-inf)\n ROOT q = (bf16[3], bf16[3]) reduce(x, x, i, j), dimensions={1}, to_apply=r }";
    assert!(exact(pair, &[&x]));
    let chain = "HloModule m\nENTRY e { x = f16[60] parameter(0)\n a = f16[60] abs(x)\n n = f16[60] negate(a)\n m = f16[60] maximum(x, n)\n ROOT c = f16[60] clamp(n, m, a) }";
    assert!(exact(chain, &[&x]));
    assert!(!exact(&chain.replace("maximum", "multiply"), &[&x]));
}

#[test]
fn what_is_not_recognized_has_no_bound_in_any_type() {
    for ty in ["f32", "s32", "u8"] {
        let text = format!(
            "HloModule m\nr {{ a = {ty}[] parameter(0)\n b = {ty}[] parameter(1)\n ROOT c = {ty}[] divide(a, b) }}\nENTRY e {{ x = {ty}[4] parameter(0)\n z = {ty}[] constant(0)\n ROOT q = {ty}[] reduce(x, z), dimensions={{0}}, to_apply=r }}"
        );
        assert_eq!(free(&text, &[&[1.0, 2.0, 3.0, 4.0]])[0].1, [f64::INFINITY]);
        assert!(one(&text, &[&[1.0, 2.0, 3.0, 4.0]]).is_exact());
        for by in ["add", "multiply", "and", "or", "xor"] {
            if ty != "f32" {
                assert_eq!(free(&text.replace("divide", by), &[&[1.0, 2.0, 3.0, 4.0]])[0].1, [0.0]);
            }
        }
    }
}

#[test]
fn of_one_element_the_computation_is_applied_either_way_around() {
    let text = |ty: &str, x: &str, of: &str| {
        format!(
            "HloModule m\nr {{ a = {ty}[] parameter(0)\n b = {ty}[] parameter(1)\n ROOT c = {ty}[] subtract(a, b) }}\nENTRY e {{ x = {ty}[{x}] parameter(0)\n z = {ty}[] constant(5)\n ROOT q = {ty}[2] {of}, to_apply=r }}"
        )
    };
    for ty in ["f32", "s32", "f64", "s8"] {
        let x = [3.0, 5.0];
        for (sizes, of) in [
            ("2", "reduce(x, z), dimensions={}"),
            ("2,1", "reduce(x, z), dimensions={1}"),
            ("2", "reduce-window(x, z), window={size=1}"),
        ] {
            let hard = &free(&text(ty, sizes, of), &[&x])[0].1;
            // 5 - 3 or 3 - 5; the elements themselves are neither.
            assert!((4.0..4.1).contains(&hard[0]) && hard[1] <= 1e-30, "{ty} {of}: {hard:?}");
        }
    }
    // 2^60 + 2 or 2^60 - 2, which are the same number in f64.
    let coarse = "HloModule m\nr { a = s64[] parameter(0)\n b = s64[] parameter(1)\n c = s64[] subtract(a, b)\n d = s64[] constant(1152921504606846976)\n ROOT e = s64[] add(d, c) }\nENTRY e { x = s64[1] parameter(0)\n z = s64[] constant(5)\n ROOT q = s64[] reduce(x, z), dimensions={0}, to_apply=r }";
    let hard = &free(coarse, &[&[3.0]])[0].1;
    assert!((4.0..5.0).contains(&hard[0]), "{hard:?}");
    let two = text("f32", "2,2", "reduce(x, z), dimensions={1}");
    assert_eq!(free(&two, &[&[1.0, 2.0, 3.0, 4.0]])[0].1, [f64::INFINITY; 2]);
}

/// One result that is altered is wrong, another order is not.
#[test]
fn an_altered_index_is_wrong_and_another_order_is_not() {
    let x: Vec<f32> = (0..400).map(|i| (i * 7919 % 1009) as f32 / 64.0 - 5.0).collect();
    let text = argmax(50, 8, &jax());
    let certified = certified(&text, &[&x], Allowances::LOOSE);
    let judged = |array: usize, actual: &ArrayLiteral| {
        let (expected, bounds) = &certified[array];
        hlo_execution::verdict::judge(expected, actual, bounds, false).unwrap().tally
    };
    let (indices, _) = &certified[1];
    let hlo::Buffer::S32(v) = &*indices.buffer else { panic!("indices are s32") };
    for at in [0, 17, 49] {
        let mut v = v.clone();
        v[at] = (v[at] + 1) % 8;
        let altered = ArrayLiteral { dims: indices.dims.clone(), buffer: hlo::Buffer::S32(v).into() };
        assert_eq!(judged(1, &altered).wrong, 1);
    }
    // From the last column to the first.
    let reversed: Vec<f32> = x.chunks(8).flat_map(|row| row.iter().rev().copied()).collect();
    let backwards = text
        .replace("iota_dimension=1\n", "iota_dimension=1\n j = s32[50,8] reverse(i), dimensions={1}\n")
        .replace("reduce(x, i,", "reduce(x, j,");
    let other = self::certified(&backwards, &[&reversed], Allowances::LOOSE);
    for (array, (actual, _)) in other.iter().enumerate() {
        let tally = judged(array, actual);
        assert_eq!((tally.wrong, tally.undecided), (0, 0));
    }
}

/// Of a fold that is not recognized a NaN is all that there can be where its computation hands on every NaN,
/// and nothing is known where it may lose one.
#[test]
fn nans_that_no_order_loses_are_known() {
    let text = |ty: &str, step: &str| {
        format!(
            "HloModule m\nf {{ a = {ty}[] parameter(0)\n b = {ty}[] parameter(1)\n {step} }}\nENTRY e {{ x = {ty}[2,3] parameter(0)\n i = {ty}[] constant({one})\n ROOT r = {ty}[2] reduce(x, i), dimensions={{1}}, to_apply=f }}",
            one = if ty.starts_with('c') { "(1, 0)" } else { "1" }
        )
    };
    let x = [1.0, f32::NAN, 2.0, 1.0, 2.0, 3.0];
    let hard = |ty: &str, step: &str| free(&text(ty, step), &[&x])[0].1.clone();
    for ty in ["f32", "c64"] {
        let keeps = format!("c = {ty}[] multiply(b, a)\n ROOT d = {ty}[] subtract(c, b)");
        assert_eq!(hard(ty, &keeps), [0.0, f64::INFINITY], "{ty}");
        let of_one = format!("c = {ty}[] multiply(b, b)\n ROOT d = {ty}[] subtract(c, b)");
        assert_eq!(hard(ty, &of_one), [f64::INFINITY; 2], "{ty}");
    }
    let loses =
        "c = pred[] compare(a, b), direction=GT\n d = f32[] subtract(a, b)\n ROOT e = f32[] select(c, d, b)";
    assert!(hard("f32", loses)[0].is_infinite());
}

/// Of one element the computation has two results, by which of its parameters the initial value is, and
/// nothing between them.
#[test]
fn a_fold_of_one_element_is_one_of_two_values() {
    use hlo_execution::verdict::{Class, judge};
    let text = "HloModule m\nf { a = f32[] parameter(0)\n b = f32[] parameter(1)\n c = f32[] multiply(a, b)\n ROOT d = f32[] subtract(c, b) }\nENTRY e { x = f32[1] parameter(0)\n i = f32[] constant(3)\n ROOT r = f32[1] reduce(x, i), dimensions={}, to_apply=f }";
    let reordered = Allowances { reorder_regions: true, ..Allowances::STRICT };
    let (expected, bounds) = certified(text, &[&[7.0]], reordered).remove(0);
    let class = |actual: f32| {
        let actual = ArrayLiteral::new(expected.dims.clone(), hlo::Buffer::F32(vec![actual])).unwrap();
        judge(&expected, &actual, &bounds, false).unwrap().class()
    };
    assert_eq!(class(14.0), Class::Same);
    assert!(class(18.0) < Class::Wrong);
    for other in [7.0, 15.0, f32::NAN, f32::INFINITY] {
        assert_eq!(class(other), Class::Wrong, "{other}");
    } // The initial value is NaN, which this minimum hands on, and it is there.
    let least = "HloModule m\nf { v = f32[] parameter(0)\n w = f32[] parameter(1)\n c = pred[] compare(v, w), direction=LT\n n = pred[] compare(v, v), direction=NE\n o = pred[] or(c, n)\n ROOT s = f32[] select(o, v, w) }\nENTRY e { x = f32[1] parameter(0)\n i = f32[] constant(nan)\n ROOT r = f32[1] reduce(x, i), dimensions={}, to_apply=f }";
    let (expected, bounds) = certified(least, &[&[7.0]], reordered).remove(0);
    let actual = ArrayLiteral::new(expected.dims.clone(), hlo::Buffer::F32(vec![7.0])).unwrap();
    assert_eq!(judge(&expected, &actual, &bounds, false).unwrap().class(), Class::Wrong);
}
