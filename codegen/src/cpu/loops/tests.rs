//! Kernels against the interpreter.

use std::fmt::Write as _;

use crate::runtime::kernel_tests::{Close, check, check_with};

/// A module whose entry is a fusion of parameters of these shapes.
pub(super) fn fused(kind: &str, parameters: &[&str], result: &str, body: &str, regions: &str) -> String {
    let mut text = format!("HloModule m\n\n{regions}\nfused {{\n");
    for (i, p) in parameters.iter().enumerate() {
        writeln!(text, "  p{i} = {p} parameter({i})").unwrap();
    }
    text.push_str(body);
    text.push_str("\n}\n\nENTRY main {\n");
    let mut names = Vec::new();
    for (i, p) in parameters.iter().enumerate() {
        writeln!(text, "  a{i} = {p} parameter({i})").unwrap();
        names.push(format!("a{i}"));
    }
    writeln!(text, "  ROOT f = {result} fusion({}), kind={kind}, calls=fused\n}}", names.join(", ")).unwrap();
    text
}

fn loop_of(parameters: &[&str], result: &str, body: &str) -> String {
    fused("kLoop", parameters, result, body, "")
}

const TYPES: [&str; 8] = ["pred", "s8", "s4", "bf16", "f32", "f64", "c64", "c128"];

#[test]
fn elementwise_of_all_sizes() {
    for n in [1, 3, 15, 17, 64, 1000, 10007] {
        let s = format!("f32[{n}]");
        check(&loop_of(&[&s, &s], &s, &format!("  m = {s} multiply(p0, p1)\n  ROOT r = {s} add(m, p0)")));
    }
    check(&loop_of(&["f32[]", "f32[]"], "f32[]", "  ROOT r = f32[] add(p0, p1)"));
    check(&loop_of(&["f32[0,3]"], "f32[0,3]", "  ROOT r = f32[0,3] negate(p0)"));
    let body = "  b = f32[70,5] broadcast(p1), dimensions={1}\n  c = f32[] constant(3)\n  d = f32[70,5] broadcast(c), dimensions={}\n  \
                e = f32[70,5] add(p0, b)\n  ROOT r = f32[70,5] multiply(e, d)";
    check(&loop_of(&["f32[70,5]", "f32[5]"], "f32[70,5]", body));
    let body = "  n = f32[9,33] negate(p0)\n  c = s32[9,33] convert(p0)\n  ROOT t = (f32[9,33], s32[9,33]) tuple(n, c)";
    check(&loop_of(&["f32[9,33]"], "(f32[9,33], s32[9,33])", body));
}

#[test]
fn movement_of_all_types() {
    for t in TYPES {
        for (from, to, op) in [
            ("[7,17]", "[17,7]", "transpose(p0), dimensions={1,0}"),
            ("[3,5,20]", "[20,3,5]", "transpose(p0), dimensions={2,0,1}"),
            ("[40,40]", "[40,40]", "transpose(p0), dimensions={1,0}"),
            ("[6,35]", "[10,21]", "reshape(p0)"),
            ("[33]", "[2,33,17]", "broadcast(p0), dimensions={1}"),
            ("[2,33]", "[2,17,33]", "broadcast(p0), dimensions={0,2}"),
            ("[9,100]", "[4,33]", "slice(p0), slice={[1:9:2], [1:100:3]}"),
            ("[9,100]", "[9,49]", "slice(p0), slice={[0:9], [1:99:2]}"),
            ("[9,100]", "[9,100]", "reverse(p0), dimensions={0,1}"),
            ("[9,31]", "[9,31]", "reverse(p0), dimensions={1}"),
            ("[9,31]", "[9,31]", "reverse(p0), dimensions={0}"),
        ] {
            check(&loop_of(
                &[&format!("{t}{from}")],
                &format!("{t}{to}"),
                &format!("  ROOT r = {t}{to} {op}"),
            ));
        }
        for (from, to, padding) in [
            ("[5,30]", "[8,37]", "1_2x3_4"),
            ("[5,30]", "[13,62]", "-1_5_1x2_1_1"),
            ("[4,30]", "[4,20]", "0_0x-5_-5"),
        ] {
            let body = format!("  ROOT r = {t}{to} pad(p0, p1), padding={padding}");
            check(&loop_of(&[&format!("{t}{from}"), &format!("{t}[]")], &format!("{t}{to}"), &body));
        }
        let body = format!("  ROOT r = {t}[4,50] concatenate(p0, p1, p0), dimensions={{1}}");
        check(&loop_of(&[&format!("{t}[4,16]"), &format!("{t}[4,18]")], &format!("{t}[4,50]"), &body));
        let body = format!("  ROOT r = {t}[9,18] concatenate(p0, p1), dimensions={{0}}");
        check(&loop_of(&[&format!("{t}[4,18]"), &format!("{t}[5,18]")], &format!("{t}[9,18]"), &body));
    }
}

#[test]
fn counting_of_all_types() {
    for t in ["s8", "u32", "f32", "f64", "bf16", "c64", "s64"] {
        for d in 0..2 {
            check(&loop_of(
                &[],
                &format!("{t}[40,19]"),
                &format!("  ROOT r = {t}[40,19] iota(), iota_dimension={d}"),
            ));
        }
    }
}

#[test]
fn computed_indices() {
    for t in TYPES {
        let p = format!("{t}[10,40]");
        let body = format!("  ROOT r = {t}[3,33] dynamic-slice(p0, p1, p2), dynamic_slice_sizes={{3,33}}");
        for i in ["s32", "u8", "s64", "u64"] {
            for seed in 0..3 {
                let i = format!("{i}[]");
                check_with(
                    &loop_of(&[&p, &i, &i], &format!("{t}[3,33]"), &body),
                    seed,
                    Some(9),
                    Close::Exact,
                );
            }
        }
        let body = format!("  ROOT r = {t}[10,40] dynamic-update-slice(p0, p1, p2, p3)");
        for seed in 0..3 {
            let text = loop_of(&[&p, &format!("{t}[3,33]"), "s32[]", "s32[]"], &p, &body);
            check_with(&text, seed, Some(9), Close::Exact);
        }
        let body = format!(
            "  ROOT r = {t}[20,40] gather(p0, p1), offset_dims={{1}}, collapsed_slice_dims={{0}}, start_index_map={{0}}, \
             index_vector_dim=1, slice_sizes={{1,40}}"
        );
        check_with(&loop_of(&[&p, "s32[20,1]"], &format!("{t}[20,40]"), &body), 1, Some(10), Close::Exact);
        let body = format!(
            "  ROOT r = {t}[21] gather(p0, p1), offset_dims={{}}, collapsed_slice_dims={{0,1}}, start_index_map={{1,0}}, \
             index_vector_dim=1, slice_sizes={{1,1}}"
        );
        check_with(&loop_of(&[&p, "s64[21,2]"], &format!("{t}[21]"), &body), 1, Some(20), Close::Exact);
        let body = format!(
            "  ROOT r = {t}[10,5,3] gather(p0, p1), offset_dims={{2}}, collapsed_slice_dims={{}}, start_index_map={{1}}, \
             operand_batching_dims={{0}}, start_indices_batching_dims={{0}}, index_vector_dim=2, slice_sizes={{1,3}}"
        );
        check_with(&loop_of(&[&p, "u8[10,5,1]"], &format!("{t}[10,5,3]"), &body), 1, Some(40), Close::Exact);
    }
}

#[test]
fn bits() {
    check(&loop_of(
        &["f32[33]"],
        "s32[33]",
        "  a = f32[33] add(p0, p0)\n  ROOT r = s32[33] bitcast-convert(a)",
    ));
    check(&loop_of(&["f32[33]"], "u8[33,4]", "  ROOT r = u8[33,4] bitcast-convert(p0)"));
    check(&loop_of(&["u8[33,4]"], "f32[33]", "  ROOT r = f32[33] bitcast-convert(p0)"));
    check(&loop_of(&["u8[33]"], "s4[33,2]", "  ROOT r = s4[33,2] bitcast-convert(p0)"));
    check(&loop_of(&["s4[33,4]"], "bf16[33]", "  ROOT r = bf16[33] bitcast-convert(p0)"));
}

#[test]
fn called_computations_and_constants() {
    let regions =
        "inner {\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  ROOT r = f32[] subtract(x, y)\n}\n";
    let body = "  c = f32[3] constant({1, 2, 3})\n  b = f32[9,3] broadcast(c), dimensions={1}\n  \
                ROOT m = f32[9,3] map(p0, b), dimensions={0,1}, to_apply=inner";
    check(&fused("kLoop", &["f32[9,3]"], "f32[9,3]", body, regions));
}
