//! Rows together against the interpreter.

use crate::kernel_tests::{Close, check_with};
use crate::loops::tests::{fused, region};
use crate::loops::{rows, short_rows};

/// Dimensions, and how many of them number rows: blocks of 16, 8 and 4 rows, and last blocks that are not
/// full.
const SPACES: [(&str, usize); 5] =
    [("[530,40]", 1), ("[2,515,33]", 2), ("[517,3,24]", 1), ("[260,300]", 1), ("[131,601]", 1)];

/// What the short rows' tests take dimensions apart into, and elements of a row.
fn parts(dims: &str, rows: usize) -> (String, String, String, usize) {
    let (kept, from, along) = short_rows::tests::parts(dims, rows);
    let sizes = dims.trim_matches(['[', ']']).split(',').skip(rows);
    (kept, from, along, sizes.map(|d| d.parse().unwrap_or(0)).product::<usize>())
}

/// The text of a fusion, which is of rows together.
fn together(parameters: &[String], result: &str, body: &str, regions: &str) -> String {
    let parameters: Vec<&str> = parameters.iter().map(String::as_str).collect();
    let text = fused("kCustom", &parameters, result, body, regions);
    let module = crate::kernel_tests::parse(&text);
    let fusion = module.root(module.entry());
    let (_, chain) = rows::fusion(&module, fusion).expect("invariant: rows");
    assert!(chain.is_some_and(|c| c.is_blocked()), "{text}");
    text
}

/// What is computed of a row's sums alone, some of it with an element of the row's own; what is kept of
/// elements; a predicate of rows.
#[test]
fn normalizations() {
    for (ty, close) in [("f32", 1e-4), ("f64", 1e-12), ("bf16", 3e-2), ("f16", 4e-3)] {
        for (dims, rows) in SPACES {
            let (kept, from, along, n) = parts(dims, rows);
            let body = format!(
                "  z = {ty}[] constant(0)\n  n = {ty}[] constant({n})\n  l = {ty}{kept} broadcast(n), dimensions={{}}\n  \
                 s = {ty}{kept} reduce(p0, z), dimensions={{{along}}}, to_apply=s\n  m = {ty}{kept} divide(s, l)\n  \
                 b = {ty}{dims} broadcast(m), dimensions={{{from}}}\n  c = {ty}{dims} subtract(p0, b)\n  e = {ty}{dims} exponential(c)\n  \
                 t = {ty}{kept} reduce(e, z), dimensions={{{along}}}, to_apply=s\n  q = {ty}{kept} divide(t, l)\n  k = {ty}{kept} rsqrt(q)\n  \
                 w = {ty}{kept} multiply(k, p1)\n  x = {ty}{dims} broadcast(w), dimensions={{{from}}}\n  d = {ty}{dims} multiply(e, x)\n  \
                 g = pred{kept} compare(m, k), direction=GT\n  ROOT r = ({ty}{dims}, {ty}{kept}, pred{kept}, {ty}{kept}) tuple(d, k, g, w)"
            );
            let parameters = [format!("{ty}{dims}"), format!("{ty}{kept}")];
            let result = format!("({ty}{dims}, {ty}{kept}, pred{kept}, {ty}{kept})");
            let text = together(&parameters, &result, &body, &region("s", ty, "add"));
            check_with(&text, 1, Some(9), Close::Within(close));
        }
    }
}

#[test]
fn to_the_bit() {
    for (ty, op) in
        [("s32", "maximum"), ("u8", "add"), ("s64", "add"), ("bf16", "minimum"), ("f16", "maximum")]
    {
        // Blocks of narrow elements are of more rows.
        for (dims, rows) in SPACES.into_iter().take(3) {
            let (kept, from, along, _) = parts(dims, rows);
            let body = format!(
                "  a = {ty}{kept} reduce(p0, p1), dimensions={{{along}}}, to_apply=f\n  h = {ty}{kept} add(a, a)\n  \
                 b = {ty}{dims} broadcast(h), dimensions={{{from}}}\n  o = {ty}{dims} broadcast(a), dimensions={{{from}}}\n  \
                 c = pred{dims} compare(p0, o), direction=EQ\n  ROOT d = {ty}{dims} select(c, p2, b)"
            );
            let parameters = [format!("{ty}{dims}"), format!("{ty}[]"), format!("{ty}{dims}")];
            let text = together(&parameters, &format!("{ty}{dims}"), &body, &region("f", ty, op));
            check_with(&text, 1, None, Close::Exact);
        }
    }
}
