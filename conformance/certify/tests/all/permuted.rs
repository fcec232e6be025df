//! Sorts whose comparator leaves an order open, functions of denormal numbers, folds of one element: what an
//! engine's results are worth.

use hlo::ArrayLiteral;
use hlo_execution::allowances::Allowances;
use hlo_execution::number;
use hlo_execution::verdict::{Class, Judged, Tally, by_rows, judge, judge_among};
use hlo_interp::Value;

use crate::common::certified;

fn array(dims: &[i64], ty: hlo::ElementType, x: &[f64]) -> ArrayLiteral {
    match Value::Array(number::tensor(ty, dims, x)).into_literal() {
        hlo::Literal::Array(a) => a,
        other => panic!("{other:?}"),
    }
}

/// Results of an engine with all liberties, as its elements in the types of the reference's results, tallied.
fn tally(text: &str, inputs: &[&[f32]], results: &[&[f64]]) -> Tally {
    let found = certified(text, inputs, Allowances::LOOSE);
    let actual = found.iter().zip(results).map(|((e, _), x)| array(&e.dims, e.buffer.element_type(), x));
    let actual: Vec<ArrayLiteral> = actual.collect();
    let all = found.iter().zip(&actual).map(|((e, bounds), a)| -> Judged<'_> { (e, a, bounds) });
    let rows = by_rows(&all.collect::<Vec<_>>(), false);
    let mut tally = Tally::default();
    for (((e, bounds), a), rows) in found.iter().zip(&actual).zip(&rows) {
        tally.add(&judge_among(e, a, bounds, &[], rows, false).unwrap().tally);
    }
    tally
}

fn counts(t: Tally) -> [u64; 4] {
    [t.same, t.explained, t.undecided, t.wrong]
}

const NAN: f64 = f64::NAN;

/// Keys and the indices that go along, sorted.
fn sorted(ty: &str, stable: bool, compare: &str, behind: &str) -> String {
    format!(
        "HloModule m\nf {{ a = {ty}[] parameter(0)\n b = {ty}[] parameter(1)\n c = s32[] parameter(2)\n d = s32[] parameter(3)\n ROOT m = pred[] compare(a, b), {compare} }}\nENTRY e {{ x = {ty}[2,4] parameter(0)\n i = s32[2,4] iota(), iota_dimension=1\n s = ({ty}[2,4], s32[2,4]) sort(x, i), dimensions={{1}}, is_stable={stable}, to_apply=f\n k = {ty}[2,4] get-tuple-element(s), index=0\n v = s32[2,4] get-tuple-element(s), index=1\n {behind} }}"
    )
}

/// Rows of a line with a NaN stand in any order, in every type that has one; the other line has an order, and
/// has it.
#[test]
fn rows_beside_a_nan_stand_in_any_order() {
    let x: &[f32] = &[3.0, f32::NAN, 2.0, 1.0, 4.0, 3.0, 2.0, 1.0];
    let tail = |keys: [f64; 4], indices: [f64; 4]| {
        ([&keys[..], &[1.0, 2.0, 3.0, 4.0]].concat(), [&indices[..], &[3.0, 2.0, 1.0, 0.0]].concat())
    };
    let root = "ROOT t = (TY[2,4], s32[2,4]) tuple(k, v)";
    for ty in ["f64", "f32", "f16", "bf16", "f8e5m2", "f8e4m3fn"] {
        let text = sorted(ty, true, "direction=LT", &root.replace("TY", ty));
        let of = |keys: [f64; 4], indices: [f64; 4]| {
            let (k, i) = tail(keys, indices);
            counts(tally(&text, &[x], &[&k, &i]))
        };
        for (keys, indices) in [
            ([1.0, 2.0, 3.0, NAN], [3.0, 2.0, 0.0, 1.0]),
            ([NAN, 1.0, 2.0, 3.0], [1.0, 3.0, 2.0, 0.0]),
            ([3.0, NAN, 1.0, 2.0], [0.0, 1.0, 3.0, 2.0]),
        ] {
            let found = of(keys, indices);
            assert!(found[0] >= 8 && found[2..] == [0, 0], "{ty} {keys:?} {found:?}");
        }
        // Indices of other keys, a row twice, and a key that no operand has.
        for (keys, indices) in [
            ([1.0, 2.0, 3.0, NAN], [2.0, 3.0, 0.0, 1.0]),
            ([1.0, 2.0, 2.0, NAN], [3.0, 2.0, 2.0, 1.0]),
            ([1.0, 2.0, 3.5, NAN], [3.0, 2.0, 0.0, 1.0]),
        ] {
            let found = of(keys, indices);
            assert!(found[3] > 0 && found[1..3] == [0, 0], "{ty} {keys:?} {found:?}");
        }
        // The line that has an order.
        let swapped: &[f64] = &[1.0, 2.0, 3.0, NAN, 2.0, 1.0, 3.0, 4.0];
        assert!(tally(&text, &[x], &[swapped, &tail([1.0; 4], [3.0, 2.0, 0.0, 1.0]).1]).wrong > 0);
    }
    // An order by bits ranks NaNs.
    let text = sorted("f32", true, "direction=LT, type=TOTALORDER", &root.replace("TY", "f32"));
    let (k, i) = tail([NAN, 1.0, 2.0, 3.0], [1.0, 3.0, 2.0, 0.0]);
    assert!(tally(&text, &[x], &[&k, &i]).wrong > 0);
}

/// Equal keys stand as they stood, in a stable sort; in others in any order.
#[test]
fn equal_keys_of_a_sort_that_is_not_stable_stand_in_any_order() {
    let x: &[f32] = &[2.0, 3.0, 2.0, 1.0, 4.0, 3.0, 2.0, 1.0];
    let keys: &[f64] = &[1.0, 2.0, 2.0, 3.0, 1.0, 2.0, 3.0, 4.0];
    let indices = |first: [f64; 4]| [&first[..], &[3.0, 2.0, 1.0, 0.0]].concat();
    for (stable, expected) in [(true, [14, 0, 0, 2]), (false, [14, 2, 0, 0])] {
        let text = sorted("f32", stable, "direction=LT", "ROOT t = (f32[2,4], s32[2,4]) tuple(k, v)");
        let found = |first| counts(tally(&text, &[x], &[keys, &indices(first)]));
        assert_eq!(found([3.0, 0.0, 2.0, 1.0]), [16, 0, 0, 0]);
        assert_eq!(found([3.0, 2.0, 0.0, 1.0]), expected);
        assert_eq!(found([0.0, 3.0, 2.0, 1.0])[3], 2);
    }
}

/// Equal keys have the same bits, whichever stands first, and so has what is made of them; zeros of both
/// signs have not.
#[test]
fn equal_keys_of_the_same_bits_are_known() {
    let line = "ROOT t = (f32[2,4], s32[2,4]) tuple(h, v)\n h = f32[2,4] sign(k)";
    let (root, sign) = line.split_once('\n').unwrap();
    let text = sorted("f32", false, "direction=LT", &format!("{}\n {root}", sign.trim()));
    let hard = |x: &[f32]| {
        let all = certified(&text, &[x], Allowances { reorder_regions: true, ..Allowances::STRICT });
        all.iter().map(|(_, bounds)| bounds.hard.clone()).collect::<Vec<_>>()
    };
    let found = hard(&[2.0, 3.0, 2.0, 1.0, 4.0, 3.0, 2.0, 1.0]);
    assert!(found[0].is_zero() && found[1].at(1).is_infinite() && found[1].at(3) == 0.0);
    let found = hard(&[2.0, 0.0, -0.0, 1.0, 4.0, 3.0, 2.0, 1.0]);
    assert!(found[0].at(0).is_infinite() && found[0].at(1).is_infinite() && found[0].at(2) == 0.0);
}

/// Rows that were moved are the same ones; of a part of them nothing is said, nor to an engine that may not
/// reorder.
#[test]
fn rows_are_followed_where_they_are_moved() {
    let x: &[f32] = &[3.0, f32::NAN, 2.0, 1.0, 4.0, 3.0, 2.0, 1.0];
    let moved = "r = s32[2,4] reverse(v), dimensions={1}\n m = s32[8] reshape(r)\n ROOT t = (f32[2,4], s32[8]) tuple(k, m)";
    let text = sorted("f32", true, "direction=LT", moved);
    let keys: &[f64] = &[NAN, 1.0, 2.0, 3.0, 1.0, 2.0, 3.0, 4.0];
    let found = |indices: [f64; 4]| {
        let indices = [&indices[..], &[0.0, 1.0, 2.0, 3.0]].concat();
        tally(&text, &[x], &[keys, &indices])
    };
    assert_eq!(counts(found([0.0, 2.0, 3.0, 1.0]))[2..], [0, 0]);
    assert!(found([0.0, 3.0, 2.0, 1.0]).wrong > 0);
    let part = "p = f32[2,2] slice(k), slice={[0:2], [0:2]}\n ROOT c = f32[2,2] copy(p)";
    let text = sorted("f32", true, "direction=LT", part);
    let found = tally(&text, &[x], &[&[NAN, 1.0, 1.0, 2.0]]);
    assert!(found.undecided > 0 && found.wrong == 0, "{found:?}");
    let strict = certified(
        &sorted("f32", true, "direction=LT", "ROOT c = f32[2,4] copy(k)"),
        &[x],
        Allowances::STRICT,
    );
    assert!(strict[0].1.is_exact() && strict[0].1.open_rows.at(0).is_none());
}

/// What an element is worth that an engine with all liberties gives for a function of one element.
fn class(ty: &str, line: &str, x: f32, actual: f64) -> Class {
    let text = format!("HloModule m\nENTRY e {{ x = {ty}[1] parameter(0)\n ROOT r = {ty}[1] {line} }}");
    let found = certified(&text, &[&[x]], Allowances::LOOSE);
    let (expected, bounds) = &found[0];
    let actual = array(&expected.dims, expected.buffer.element_type(), &[actual]);
    judge(expected, &actual, bounds, false).unwrap().class()
}

/// A function with a pole or a steep rise at zero gives what it gives of the number, or of zero.
#[test]
fn functions_of_denormal_numbers_are_those_of_the_number_or_of_zero() {
    let right = |class: Class| matches!(class, Class::Same | Class::Explained);
    for (ty, tiny) in [("f32", f64::from(1e-40f32)), ("bf16", hlo::half::bf16::from_f64(1e-40).to_f64())] {
        for (line, near, between) in [
            ("log(x)", tiny.ln(), -87.336_544_75),
            ("rsqrt(x)", tiny.powf(-0.5), 9.223_372_036_854_775e18),
            ("sqrt(x)", tiny.sqrt(), 5e-21),
            ("cbrt(x)", tiny.cbrt(), 2e-14),
            ("power(x, x)", 1.0, 1.5),
            ("log-plus-one(x)", tiny, 1e-38),
        ] {
            assert!(right(class(ty, line, 1e-40, near)), "{ty} {line}");
            assert_eq!(class(ty, line, 1e-40, between), Class::Wrong, "{ty} {line}");
        }
        let of_zero = [
            ("log(x)", f64::NEG_INFINITY),
            ("rsqrt(x)", f64::INFINITY),
            ("sqrt(x)", 0.0),
            ("log-plus-one(x)", 0.0),
        ];
        for (line, of_zero) in of_zero {
            assert!(right(class(ty, line, 1e-40, of_zero)), "{ty} {line}");
        }
        // A pole on the other side is none of it.
        assert_eq!(class(ty, "rsqrt(x)", 1e-40, f64::NEG_INFINITY), Class::Wrong);
        assert_eq!(class(ty, "log(x)", 1e-40, f64::NAN), Class::Wrong);
    }
}

/// What an initial value absorbs is there again without it, and so is what an operand may be for the same reason.
#[test]
fn a_fold_of_one_element_may_be_the_element() {
    let fold = |by: &str, first: &str, second: &str| {
        format!(
            "HloModule m\nf {{ a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] {by}(a, b) }}\nENTRY e {{ x = f32[2] parameter(0)\n i = f32[] constant({first})\n j = f32[] constant({second})\n y = f32[2] reduce(x, i), dimensions={{}}, to_apply=f\n ROOT r = f32[2] reduce(y, j), dimensions={{}}, to_apply=f }}"
        )
    };
    let found = |text: &str, x: [f64; 2]| counts(tally(text, &[&[3.0, 4.0]], &[&x]));
    let absorbed = fold("multiply", "0", "0");
    assert_eq!(found(&absorbed, [0.0, 4.0]), [1, 0, 1, 0]);
    assert_eq!(found(&absorbed, [0.0, 5.0]), [1, 0, 0, 1]);
    assert_eq!(found(&fold("add", "nan", "0"), [3.0, NAN])[2..], [1, 0]);
    // Zeros of other signs.
    let strict = Allowances { initial_values: true, ..Allowances::STRICT };
    let least = f64::from(f32::from_bits(1));
    let bounds = &certified(&fold("add", "0", "0"), &[&[-0.0, 1.0]], strict)[0].1;
    assert!(bounds.hard.at(0) >= least && bounds.hard.at(1) == 0.0);
}

/// Keys that a comparison takes for zeros may have each other's ranks, and are what they are.
#[test]
fn denormal_keys_are_equal_to_a_comparison_that_flushes() {
    let text = "HloModule m\nl { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = pred[] compare(a, b), direction=GT }\nENTRY e { x = f32[4] parameter(0)\n ROOT s = f32[4] sort(x), dimensions={0}, to_apply=l }";
    let found = |x: [f64; 4]| counts(tally(text, &[&[3e-39, 1e-38, 5e-39, 2.0]], &[&x]));
    assert_eq!(found([2.0, 1e-38, 5e-39, 3e-39])[2..], [0, 0]);
    assert_eq!(found([2.0, 3e-39, 1e-38, 5e-39])[3], 0);
    assert_eq!(found([2.0, 3e-39, 1e-38, 1.0])[3], 1);
}

/// A sum of the initial value and one element is that, whatever is known of sums of more.
#[test]
fn a_sum_of_one_element_is_that_sum() {
    let text = "HloModule m\nf { a = f8e8m0fnu[] parameter(0)\n b = f8e8m0fnu[] parameter(1)\n ROOT m = f8e8m0fnu[] add(a, b) }\nENTRY e { x = f8e8m0fnu[2,1] parameter(0)\n i = f8e8m0fnu[] constant(8)\n ROOT r = f8e8m0fnu[2] reduce(x, i), dimensions={1}, to_apply=f }";
    let found = |x: [f64; 2]| counts(tally(text, &[&[0.5, 32.0]], &[&x]));
    assert_eq!(found([8.0, 32.0])[2..], [0, 0]);
    // The element alone hangs on whether the initial value enters.
    assert_eq!(found([0.5, 4.0])[2..], [1, 1]);
}
