//! What an engine may choose among few values: a number or the zero that it is flushed to, one order of rows or
//! another. What is none of them is wrong.

use hlo::small_float::F8E8M0FNU;
use hlo::{ArrayLiteral, Buffer, Dims};
use libtest_mimic::Trial;

use crate::function;
use crate::judging::{array, judged};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        function("judging/denormal numbers are flushed or not", denormal),
        function("judging/regions compare denormal numbers or zeros", regions),
        function("judging/rows that a comparator leaves open stand in any order", rows),
    ]
}

/// A program, its operand, and what results of it are called.
type Case<'a> = (String, f32, Vec<(f32, &'a str)>);

/// A function of a denormal number gives what it gives of the number, or of zero: near a pole too, and
/// nothing between.
fn denormal() {
    let program = |ty: &str, line: &str| {
        format!("HloModule m\nENTRY e {{\n  x = {ty}[1] parameter(0)\n  ROOT r = {ty}[1] {line}\n}}\n")
    };
    let single = |x: f32| array(Buffer::F32(vec![x]));
    // As of a constant base or exponent, in the type of the argument.
    let with = |ty: &str, constant: &str, line: &str| {
        let c = format!("  c = {ty}[1] constant({{{constant}}})\n  ROOT");
        program(ty, line).replace("  ROOT", &c)
    };
    let cases: [Case; 8] = [
        // 1e20; of 0 it is infinite.
        (
            with("f32", "-0.5", "power(x, c)"),
            1e-40,
            vec![
                (1.000_002_7e20, "ok"),
                (f32::INFINITY, "ok"),
                (3.777_893_2e22, "mismatch"),
                (f32::NAN, "mismatch"),
            ],
        ),
        (
            program("f32", "log(x)"),
            1e-40,
            vec![(-92.103_4, "ok"), (f32::NEG_INFINITY, "ok"), (-87.336_54, "mismatch")],
        ),
        (program("f32", "sqrt(x)"), 1e-40, vec![(9.999_973e-21, "ok"), (0.0, "ok"), (5e-21, "mismatch")]),
        (
            program("f32", "rsqrt(x)"),
            1e-40,
            vec![(1.000_002_7e20, "ok"), (f32::INFINITY, "ok"), (9.223_372e18, "mismatch")],
        ),
        (program("f32", "cbrt(x)"), 1e-39, vec![(1.000_000_1e-13, "ok"), (0.0, "ok"), (5e-14, "mismatch")]),
        // Of a denormal number the number, which may be flushed.
        (
            program("f32", "log-plus-one(x)"),
            1e-40,
            vec![(1e-40, "ok"), (0.0, "ok"), (1e-38, "mismatch"), (f32::NAN, "mismatch")],
        ),
        // Of either operand, or both: an angle between the ways is none of them.
        (
            with("f32", "2e-40", "atan2(x, c)"),
            1e-40,
            vec![
                (0.463_644_8, "ok"),
                (0.0, "ok"),
                (std::f32::consts::FRAC_PI_2, "ok"),
                (0.7, "mismatch"),
                (f32::NAN, "mismatch"),
            ],
        ),
        (
            with("f32", "3e-39", "divide(c, x)"),
            1e-39,
            vec![
                (3.0, "ok"),
                (0.0, "ok"),
                (f32::INFINITY, "ok"),
                (f32::NAN, "ok"),
                (1.5, "mismatch"),
                (f32::NEG_INFINITY, "mismatch"),
            ],
        ),
    ];
    for (text, x, results) in cases {
        let results = results.into_iter().map(|(r, verdict)| (vec![single(r)], verdict));
        judged(&text, single(x), results.collect());
    }
    let double = |x: f64| array(Buffer::F64(vec![x]));
    let results =
        [(-713.801_378_828_154_2, "ok"), (f64::NEG_INFINITY, "ok"), (-708.396_418_532_264_1, "mismatch")];
    let results = results.map(|(r, verdict)| (vec![double(r)], verdict));
    judged(&program("f64", "log(x)"), double(1e-310), results.to_vec());
}

/// Computations that are applied to elements compare denormal numbers or zeros, and choose numbers that are not
/// flushed. A fold of scales is by way of f32, in which 2^-127 may be flushed.
fn regions() {
    let singles = |x: [f32; 2]| vec![array(Buffer::F32(x.to_vec()))];
    let map = "HloModule m
f { a = f32[] parameter(0) b = f32[] parameter(1) p = pred[] compare(b, a), direction=LE t = f32[] constant(0.5) e = f32[] constant(8) ROOT r = f32[] select(p, t, e) }
ENTRY e {
  x = f32[2] parameter(0)
  y = f32[2] reverse(x), dimensions={0}
  ROOT m = f32[2] map(x, y), dimensions={0}, to_apply=f
}
";
    let results =
        [([8.0, 0.5], "ok"), ([0.5, 0.5], "ok"), ([4.0, 0.5], "mismatch"), ([9.0, 0.5], "mismatch")];
    let results = results.map(|(r, verdict)| (singles(r), verdict));
    judged(map, array(Buffer::F32(vec![1e-40, 2e-40])), results.to_vec());
    let best = "HloModule m
f {
  a = f32[] parameter(0)
  i = f32[] parameter(1)
  b = f32[] parameter(2)
  j = f32[] parameter(3)
  p = pred[] compare(a, b), direction=GE
  s = f32[] select(p, a, b)
  t = f32[] select(p, i, j)
  ROOT r = (f32[], f32[]) tuple(s, t)
}
ENTRY e {
  x = f32[2] parameter(0)
  y = f32[2] reverse(x), dimensions={0}
  k = f32[] constant(-1)
  m = (f32[], f32[]) reduce(x, y, k, k), dimensions={0}, to_apply=f
  ROOT g = f32[] get-tuple-element(m), index=1
}
";
    let results = [(1e-40, "ok"), (2e-40, "ok"), (1.0, "mismatch")];
    let results = results
        .map(|(r, verdict)| (vec![ArrayLiteral::new(Dims::new(), Buffer::F32(vec![r])).unwrap()], verdict));
    judged(best, array(Buffer::F32(vec![1e-40, 2e-40])), results.to_vec());
    let scale = "HloModule m
f { a = f8e8m0fnu[] parameter(0) b = f8e8m0fnu[] parameter(1) ROOT r = f8e8m0fnu[] maximum(a, b) }
ENTRY e {
  x = f8e8m0fnu[1] parameter(0)
  ROOT r = f8e8m0fnu[1] reduce-scatter(x), replica_groups={{0}}, dimensions={0}, to_apply=f
}
";
    let scales = |bits: u8| array(Buffer::F8E8M0FNU(vec![F8E8M0FNU::from_bits(bits)]));
    let results = [(0, "ok"), (0xff, "ok")].map(|(r, verdict)| (vec![scales(r)], verdict));
    judged(scale, scales(0), results.to_vec());
}

/// A comparator that is no order of what is sorted, or leaves ties in a sort that is not stable: rows stand
/// in any order, and no row is lost, made or torn.
fn rows() {
    let program = |stable: bool, behind: &str| {
        format!(
            "HloModule m
f {{ a = f32[] parameter(0) b = f32[] parameter(1) c = s32[] parameter(2) d = s32[] parameter(3) ROOT m = pred[] compare(a, b), direction=LT }}
ENTRY e {{
  x = f32[4] parameter(0)
  i = s32[4] iota(), iota_dimension=0
  s = (f32[4], s32[4]) sort(x, i), dimensions={{0}}, is_stable={stable}, to_apply=f
  k = f32[4] get-tuple-element(s), index=0
  v = s32[4] get-tuple-element(s), index=1
  {behind}
}}
"
        )
    };
    let plain = "ROOT t = (f32[4], s32[4]) tuple(k, v)";
    let singles = |x: [f32; 4]| array(Buffer::F32(x.to_vec()));
    let both = |x: [f32; 4], i: [i32; 4]| vec![singles(x), array(Buffer::S32(i.to_vec()))];
    let nan = f32::NAN;
    let beside_nan = vec![
        (both([1.0, 2.0, 3.0, nan], [3, 2, 0, 1]), "ok"),
        (both([nan, 1.0, 2.0, 3.0], [1, 3, 2, 0]), "ok"),
        // Another index beside a key, a key twice, and an index twice.
        (both([1.0, 2.0, 3.0, nan], [2, 3, 0, 1]), "mismatch"),
        (both([1.0, 2.0, 2.0, nan], [3, 2, 0, 1]), "mismatch"),
        (both([1.0, 2.0, 3.0, nan], [3, 2, 2, 1]), "mismatch"),
    ];
    for stable in [true, false] {
        judged(&program(stable, plain), singles([3.0, nan, 2.0, 1.0]), beside_nan.clone());
    }
    let tied = |stable: bool| {
        vec![
            (both([1.0, 2.0, 2.0, 3.0], [3, 0, 2, 1]), "ok"),
            (both([1.0, 2.0, 2.0, 3.0], [3, 2, 0, 1]), if stable { "mismatch" } else { "ok" }),
            (both([1.0, 2.0, 2.0, 3.0], [1, 2, 0, 3]), "mismatch"),
            (both([2.0, 1.0, 2.0, 3.0], [0, 3, 2, 1]), "mismatch"),
        ]
    };
    for stable in [true, false] {
        judged(&program(stable, plain), singles([2.0, 3.0, 2.0, 1.0]), tied(stable));
    }
    // Moved, they are the same rows; of a part of them nothing is said.
    let moved = "r = s32[4] reverse(v), dimensions={0}\n  m = s32[2,2] reshape(r)\n  ROOT t = (f32[4], s32[2,2]) tuple(k, m)";
    let square = |i: [i32; 4]| ArrayLiteral::new(Dims::from_slice(&[2, 2]), Buffer::S32(i.to_vec())).unwrap();
    let results = vec![
        (vec![singles([nan, 1.0, 2.0, 3.0]), square([0, 2, 3, 1])], "ok"),
        (vec![singles([nan, 1.0, 2.0, 3.0]), square([0, 3, 2, 1])], "mismatch"),
    ];
    judged(&program(true, moved), singles([3.0, nan, 2.0, 1.0]), results);
}
