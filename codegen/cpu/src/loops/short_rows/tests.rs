//! Short rows against the interpreter.

use crate::kernel_tests::{Close, check_with};
use crate::loops::tests::{extreme, fused, region};

/// Dimensions, and how many of them number rows: of fewer and more elements than are picked, of numbers of
/// rows that fill lanes and do not.
const SPACES: [(&str, usize); 9] = [
    ("[70,2]", 1),
    ("[64,5]", 1),
    ("[2,70,7]", 2),
    ("[130,8]", 1),
    ("[65,9]", 1),
    ("[99,15]", 1),
    ("[80,16]", 1),
    ("[3,67,20]", 2),
    ("[3,65,2,3]", 2),
];

/// Dimensions of rows, the numbers of these, and of those in a row.
pub(in crate::loops) fn parts(dims: &str, rows: usize) -> (String, String, String) {
    let all: Vec<&str> = dims.trim_matches(['[', ']']).split(',').collect();
    let list = |numbers: std::ops::Range<usize>| numbers.map(|d| d.to_string()).collect::<Vec<_>>().join(",");
    (format!("[{}]", all[..rows].join(",")), list(0..rows), list(rows..all.len()))
}

#[test]
fn chains_of_floats() {
    for (ty, close) in [("f32", 1e-4), ("f64", 1e-12), ("bf16", 2e-2), ("f16", 2e-3)] {
        let regions = region("s", ty, "add") + &region("m", ty, "maximum");
        for (dims, rows) in SPACES {
            let (kept, from, along) = parts(dims, rows);
            let body = format!(
                "  i = {ty}[] constant(-inf)\n  z = {ty}[] constant(0)\n  a = {ty}{kept} reduce(p0, i), dimensions={{{along}}}, to_apply=m\n  \
                 b = {ty}{dims} broadcast(a), dimensions={{{from}}}\n  c = {ty}{dims} subtract(p0, b)\n  e = {ty}{dims} exponential(c)\n  \
                 t = {ty}{kept} reduce(e, z), dimensions={{{along}}}, to_apply=s\n  u = {ty}{dims} broadcast(t), dimensions={{{from}}}\n  \
                 d = {ty}{dims} divide(e, u)\n  g = pred{dims} compare(p1, d), direction=GT\n  w = {ty}{kept} multiply(t, p2)\n  \
                 ROOT r = ({ty}{dims}, {ty}{kept}, pred{dims}, {ty}{kept}) tuple(d, w, g, a)"
            );
            let parameters = [format!("{ty}{dims}"), format!("{ty}{dims}"), format!("{ty}{kept}")];
            let parameters: Vec<&str> = parameters.iter().map(String::as_str).collect();
            let result = format!("({ty}{dims}, {ty}{kept}, pred{dims}, {ty}{kept})");
            let text = fused("kCustom", &parameters, &result, &body, &regions);
            check_with(&text, 1, Some(9), Close::Within(close));
        }
    }
}

/// Of integers, and in an order that is to be kept.
#[test]
fn chains_to_the_bit() {
    for (ty, op) in [
        ("s32", "maximum"),
        ("u8", "add"),
        ("s16", "minimum"),
        ("s64", "add"),
        ("pred", "or"),
        ("f32", "subtract"),
        ("bf16", "maximum"),
    ] {
        for (dims, rows) in SPACES {
            let (kept, from, along) = parts(dims, rows);
            let body = format!(
                "  a = {ty}{kept} reduce(p0, p1), dimensions={{{along}}}, to_apply=f\n  b = {ty}{dims} broadcast(a), dimensions={{{from}}}\n  \
                 c = pred{dims} compare(p0, b), direction=EQ\n  ROOT d = {ty}{dims} select(c, p2, b)"
            );
            let parameters = [format!("{ty}{dims}"), format!("{ty}[]"), format!("{ty}{dims}")];
            let parameters: Vec<&str> = parameters.iter().map(String::as_str).collect();
            let text = fused("kCustom", &parameters, &format!("{ty}{dims}"), &body, &region("f", ty, op));
            check_with(&text, 1, None, Close::Exact);
        }
    }
}

#[test]
fn indices_of_extremes() {
    for (direction, start) in [("GT", "-inf"), ("LT", "inf")] {
        for (dims, rows) in SPACES.into_iter().filter(|s| s.0.matches(',').count() == s.1) {
            let (kept, _, along) = parts(dims, rows);
            for (first, seed) in [("0", 0), ("-1", 1), ("0", 2), ("3", 3)] {
                let body = format!(
                    "  i = s32{dims} iota(), iota_dimension={along}\n  z = f32[] constant({start})\n  y = s32[] constant({first})\n  \
                     t = (f32{kept}, s32{kept}) reduce(p0, i, z, y), dimensions={{{along}}}, to_apply=f\n  \
                     ROOT r = s32{kept} get-tuple-element(t), index=1"
                );
                let result = format!("s32{kept}");
                let text = fused("kInput", &[&format!("f32{dims}")], &result, &body, &extreme(direction));
                check_with(&text, seed, None, Close::Exact);
                check_with(&text, seed, Some(3), Close::Exact);
            }
        }
    }
}

/// Results that are written past the caches.
#[test]
fn large_results() {
    for n in [5, 12] {
        let rows = (17 << 20) / 4 / n;
        let body = format!(
            "  a = s32[{rows}] reduce(p0, p1), dimensions={{1}}, to_apply=f\n  b = s32[{rows},{n}] broadcast(a), dimensions={{0}}\n  \
             ROOT d = s32[{rows},{n}] subtract(p0, b)"
        );
        let p = format!("s32[{rows},{n}]");
        let text = fused("kCustom", &[&p, "s32[]"], &p, &body, &region("f", "s32", "maximum"));
        check_with(&text, 1, None, Close::Exact);
    }
}
