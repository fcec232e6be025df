//! Kernels against the interpreter.

use std::fmt::Write as _;

use crate::kernel_tests::{Close, check, check_with};

/// A module whose entry is a fusion of parameters of these shapes.
pub(crate) fn fused(kind: &str, parameters: &[&str], result: &str, body: &str, regions: &str) -> String {
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

/// Sides of selections that few elements take, all do, or none: on strips, rows, ends of rows, and next to
/// another side.
#[test]
fn sides_that_few_elements_need() {
    for (dims, wide) in [("[5000]", false), ("[3,1031]", false), ("[7,256]", false), ("[2048]", true)] {
        for ty in ["f32", "f64"] {
            for (limit, direction) in [("0.1", "LT"), ("-1e30", "LT"), ("2", "GE"), ("0", "NE")] {
                let s = format!("{ty}{dims}");
                let mut body = format!(
                    "  l = {ty}[] constant({limit})\n  lb = {s} broadcast(l), dimensions={{}}\n  w = {s} multiply(p0, p1)\n  \
                     c = pred{dims} compare(w, lb), direction={direction}\n  n0 = {s} negate(p0)\n"
                );
                for i in 0..30 {
                    let (by, next) = (if i % 3 == 0 { "w" } else { "p1" }, i + 1);
                    body += &format!("  m{i} = {s} multiply(n{i}, {by})\n  n{next} = {s} add(m{i}, p0)\n");
                    if !wide {
                        continue;
                    }
                    let from = if i == 0 { "p1".into() } else { format!("q{i}") };
                    body += &format!("  u{i} = {s} multiply({from}, p0)\n  q{next} = {s} add(u{i}, p1)\n");
                }
                let (yes, no) = if wide { ("n30", "q30") } else { ("w", "n30") };
                body += &format!(
                    "  d = {s} divide(w, p1)\n  x = {s} select(c, {yes}, {no})\n  y = {s} select(c, d, w)\n  \
                     z = {s} add(x, lb)\n  k = pred{dims} compare(z, y), direction=LT\n  \
                     ROOT r = ({s}, {s}, pred{dims}) tuple(z, y, k)"
                );
                check(&loop_of(&[&s, &s], &format!("({s}, {s}, pred{dims})"), &body));
            }
        }
    }
}

/// Divisions of what was small integers, by constants.
#[test]
fn quotients_by_constants() {
    for by in [
        "255",
        "3",
        "-3",
        "0.22",
        "127.5",
        "1e-3",
        "7",
        "-0.1",
        "4",
        "16777215",
        "1.99999988",
        "1.5",
        "641",
        "1e15",
    ] {
        for n in ["u16", "s16"] {
            let body = format!(
                "  i = {n}[65536] iota(), iota_dimension=0\n  x = f32[65536] convert(i)\n  c = f32[] constant({by})\n  \
                 b = f32[65536] broadcast(c), dimensions={{}}\n  q = f32[65536] divide(x, b)\n  h = f32[] constant(0.45)\n  \
                 hb = f32[65536] broadcast(h), dimensions={{}}\n  s = f32[65536] subtract(q, hb)\n  t = f32[65536] divide(s, b)\n  \
                 m = f32[65536] multiply(t, p0)\n  z = f32[] constant(-0)\n  zb = f32[65536] broadcast(z), dimensions={{}}\n  \
                 w = f32[65536] multiply(x, zb)\n  v = f32[65536] divide(w, b)\n  \
                 ROOT r = (f32[65536], f32[65536], f32[65536], f32[65536]) tuple(q, t, m, v)"
            );
            let result = "(f32[65536], f32[65536], f32[65536], f32[65536])";
            check(&loop_of(&["f32[65536]"], result, &body));
        }
        for n in ["u8", "s8", "pred"] {
            let body = format!(
                "  x = f32[999] convert(p0)\n  c = f32[] constant({by})\n  b = f32[999] broadcast(c), dimensions={{}}\n  ROOT q = f32[999] divide(x, b)"
            );
            check(&loop_of(&[&format!("{n}[999]")], "f32[999]", &body));
        }
        let body = format!(
            "  x = f32[4099] convert(p0)\n  c = f32[] constant({by})\n  b = f32[4099] broadcast(c), dimensions={{}}\n  ROOT q = f32[4099] divide(x, b)"
        );
        check(&loop_of(&["s32[4099]"], "f32[4099]", &body));
    }
}

/// Quotients of quotients: several rows of short dimensions in a register, which begins in the middle of a
/// matrix.
#[test]
fn matrices_that_are_longer_than_a_register() {
    for t in ["f64", "f32", "s8"] {
        for [rows, columns] in [[4, 4], [2, 8], [8, 2], [16, 4], [4, 32], [3, 4], [4, 6]] {
            let (from, to) = (format!("{t}[31,{columns},{rows}]"), format!("{t}[31,{rows},{columns}]"));
            let body = format!(
                "  x = {to} transpose(p0), dimensions={{0,2,1}}\n  y = {to} reverse(p1), dimensions={{1}}\n  \
                 s = {t}[30,{rows},{columns}] slice(y), slice={{[1:31], [0:{rows}], [0:{columns}]}}\n  \
                 u = {t}[30,{rows},{columns}] slice(x), slice={{[0:30], [0:{rows}], [0:{columns}]}}\n  \
                 ROOT r = {t}[30,{rows},{columns}] multiply(s, u)"
            );
            check(&loop_of(&[&from, &to], &format!("{t}[30,{rows},{columns}]"), &body));
        }
    }
}

/// Elements some of which are padding, near each other in arrays of about a register: at both ends, registers
/// would begin outside of them.
#[test]
fn padding_among_elements() {
    for t in ["f32", "s32", "u8", "bf16", "f64", "s64", "c64"] {
        let one = if t == "c64" { "(1, 0)" } else { "1" };
        for n in [3i64, 16, 17, 31, 32, 33, 70] {
            for (low, high, inside) in [(0, 0, 1), (1, 2, 1), (0, 1, 2), (-1, -1, 1), (3, 0, 3), (7, 9, 0)] {
                let size = n + (n - 1) * inside + low + high;
                let (from, to) = (format!("{t}[{n}]"), format!("{t}[{size}]"));
                let body = format!(
                    "  z = {t}[] constant({one})\n  a = {to} pad(p0, z), padding={low}_{high}_{inside}\n  \
                     b = {to} pad(p1, z), padding={high}_{low}_{inside}\n  ROOT r = {to} multiply(a, b)"
                );
                check(&loop_of(&[&from, &from], &to, &body));
                let (from, to) = (format!("{t}[5,{n}]"), format!("{t}[9,{size}]"));
                let body = format!(
                    "  z = {t}[] constant({one})\n  ROOT r = {to} pad(p0, z), padding=0_0_1x{low}_{high}_{inside}"
                );
                check(&loop_of(&[&from], &to, &body));
            }
        }
    }
}

/// Elements around a circle, several times: edges that are too narrow to be nests of their own stay together
/// where the middle is less work.
#[test]
fn rolls_of_rolls() {
    for (dims, rows) in [("500", ""), ("3,130", "[0:3], ")] {
        let n: usize = if rows.is_empty() { 500 } else { 130 };
        let of = |k: usize| format!("f32[{}{k}]", if rows.is_empty() { "" } else { "3," });
        let mut body =
            format!("  c = f32[] constant(0.25)\n  w = f32[{dims}] broadcast(c), dimensions={{}}\n");
        for (step, last) in [(0, "p0"), (1, "s0"), (2, "s1"), (3, "s2"), (4, "s3")] {
            let (by, at) = (step % 2 + 1, n - step % 2 - 1);
            let (edge, rest) = (of(by), of(at));
            let along = usize::from(!rows.is_empty());
            body += &format!(
                "  a{step} = {edge} slice({last}), slice={{{rows}[{at}:{n}]}}\n  b{step} = {rest} slice({last}), slice={{{rows}[0:{at}]}}\n  \
                 r{step} = f32[{dims}] concatenate(a{step}, b{step}), dimensions={{{along}}}\n  m{step} = f32[{dims}] multiply(r{step}, w)\n  \
                 {}s{step} = f32[{dims}] add({last}, m{step})\n",
                if step == 4 { "ROOT " } else { "" }
            );
        }
        let shape = format!("f32[{dims}]");
        check(&loop_of(&[&shape], &shape, &body));
    }
}

/// Sides of concatenations and edges of paddings are nests of their own.
#[test]
fn pieces_of_a_space() {
    let body = "  n = f32[40,70] negate(p0)\n  c = f32[100,70] concatenate(n, p1), dimensions={0}\n  \
                d = f32[100,70] multiply(c, p2)\n  k = s32[100,70] convert(c)\n  ROOT t = (f32[100,70], s32[100,70]) tuple(d, k)";
    let parameters = ["f32[40,70]", "f32[60,70]", "f32[100,70]"];
    check(&loop_of(&parameters, "(f32[100,70], s32[100,70])", body));
    let body = "  z = f32[] constant(2)\n  q = f32[9,200] pad(p0, z), padding=1_1x70_66\n  ROOT r = f32[9,200] add(q, p1)";
    check(&loop_of(&["f32[7,64]", "f32[9,200]"], "f32[9,200]", body));
    // Wide parts between narrow edges, of which only the largest piece is divided into them.
    let body = "  s = f32[3,40,80] slice(p0), slice={[0:3], [0:40], [0:160:2]}\n  t = f32[3,40,80] slice(p1), slice={[0:3], [0:40], [1:160:2]}\n  \
                c = f32[3,40,160] concatenate(s, t), dimensions={2}\n  z = f32[] constant(2)\n  ROOT r = f32[5,42,164] pad(c, z), padding=1_1x1_1x2_2";
    check(&loop_of(&["f32[3,40,160]", "f32[3,40,160]"], "f32[5,42,164]", body));
    // Edges that are narrow in the innermost dimension, one that cuts, and a stencil of more cuts than there
    // may be.
    let body = "  z = f32[] constant(2)\n  ROOT q = f32[9,70] pad(p0, z), padding=1_1x3_-3";
    check(&loop_of(&["f32[7,70]"], "f32[9,70]", body));
    let body = "  z = f32[] constant(0)\n  a = f32[20,70] pad(p0, z), padding=1_-1x0_0\n  b = f32[20,70] pad(p0, z), padding=-1_1x0_0\n  \
                c = f32[20,70] pad(p0, z), padding=4_-4x0_0\n  d = f32[20,70] pad(p0, z), padding=-3_3x0_0\n  \
                e = f32[20,70] add(a, b)\n  f = f32[20,70] add(c, d)\n  ROOT r = f32[20,70] subtract(e, f)";
    check(&loop_of(&["f32[20,70]"], "f32[20,70]", body));
    check(&loop_of(
        &["s32[1]", "s32[300]"],
        "s32[301]",
        "  ROOT r = s32[301] concatenate(p0, p1), dimensions={0}",
    ));
    check(&loop_of(
        &["s8[1,1]", "s8[1,1]"],
        "s8[2,1]",
        "  ROOT r = s8[2,1] concatenate(p0, p1), dimensions={0}",
    ));
    // The other side would be read out of bounds.
    let body = "  g = f32[5,64] gather(p0, p1), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,64}\n  \
                ROOT r = f32[12,64] concatenate(g, p0), dimensions={0}";
    check(&loop_of(&["f32[7,64]", "s32[5,1]"], "f32[12,64]", body));
}

/// A signal's frames: many parts, each of them large.
#[test]
fn many_parts() {
    let parts = (0..20).map(|i| {
        let from = 64 * i;
        format!("  s{i} = f32[2,1100] slice(p0), slice={{[0:2], [{from}:{}]}}\n  t{i} = f32[2,1,1100] reshape(s{i})\n", from + 1100)
    });
    let body: String = parts.collect();
    let all = (0..20).map(|i| format!("t{i}")).collect::<Vec<_>>().join(", ");
    let body = format!(
        "{body}  c = f32[2,20,1100] concatenate({all}), dimensions={{1}}\n  ROOT r = f32[2,20,1100] negate(c)"
    );
    check(&loop_of(&["f32[2,2400]"], "f32[2,20,1100]", &body));
}

/// Rows of two to four elements that are not one with the others: lanes hold columns.
#[test]
fn columns_of_short_rows() {
    for t in TYPES {
        for (n, parts) in [(2, "a, b"), (3, "a, b, a"), (4, "b, a, a, b")] {
            let body = format!(
                "  a = {t}[1003,1] reshape(p0)\n  b = {t}[1003,1] reshape(p1)\n  \
                 ROOT r = {t}[1003,{n}] concatenate({parts}), dimensions={{1}}"
            );
            let p = format!("{t}[1003]");
            check(&loop_of(&[&p, &p], &format!("{t}[1003,{n}]"), &body));
            let body = format!(
                "  a = {t}[5,70,{n}] transpose(p0), dimensions={{2,1,0}}\n  b = {t}[5,70,{n}] reverse(p1), dimensions={{2}}\n  \
                 c = pred[5,70,{n}] compare(a, b), direction=EQ\n  d = {t}[5,70,{n}] select(c, b, a)\n  \
                 ROOT r = ({t}[5,70,{n}], pred[5,70,{n}], {t}[5,70,{n}]) tuple(d, c, b)"
            );
            let result = format!("({t}[5,70,{n}], pred[5,70,{n}], {t}[5,70,{n}])");
            check(&loop_of(&[&format!("{t}[{n},70,5]"), &format!("{t}[5,70,{n}]")], &result, &body));
        }
    }
    // Few rows, as of transposed pairs.
    let body = "  a = f32[9,20,1] reshape(p0)\n  b = f32[9,20,1] negate(a)\n  ROOT r = f32[9,20,2] concatenate(b, a), dimensions={2}";
    check(&loop_of(&["f32[9,20]"], "f32[9,20,2]", body));
    // Rows that are two dimensions, assembled or not.
    let body = "  c = f32[50,1] abs(p0)\n  s = f32[50,1] floor(p0)\n  n = f32[50,1] negate(s)\n  \
                a = f32[50,2] concatenate(c, n), dimensions={1}\n  b = f32[50,2] concatenate(s, c), dimensions={1}\n  \
                d = f32[50,1,2] reshape(a)\n  e = f32[50,1,2] reshape(b)\n  ROOT r = f32[50,2,2] concatenate(d, e), dimensions={1}";
    check(&loop_of(&["f32[50,1]"], "f32[50,2,2]", body));
    let body = "  a = f32[3,20,3,3] transpose(p0), dimensions={0,3,2,1}\n  b = f32[3,20,2,3] slice(a), slice={[0:3], [0:20], [1:3], [0:3]}\n  \
                ROOT r = f32[3,20,3,3] concatenate(p1, b), dimensions={2}";
    check(&loop_of(&["f32[3,3,3,20]", "f32[3,20,1,3]"], "f32[3,20,3,3]", body));
    let body = "  a = s16[40,2] transpose(p0), dimensions={1,0}\n  b = s16[40,2,2] broadcast(a), dimensions={0,2}\n  \
                ROOT r = s16[40,2,2] add(b, p1)";
    check(&loop_of(&["s16[2,40]", "s16[40,2,2]"], "s16[40,2,2]", body));
    let body = "  a = s32[2200000,1] reshape(p0)\n  b = s32[2200000,1] negate(a)\n  ROOT r = s32[2200000,2] concatenate(a, b), dimensions={1}";
    check(&loop_of(&["s32[2200000]"], "s32[2200000,2]", body));
}

/// The last element alone in its vector, narrower than what it is computed from or in: LLVM makes eight-byte
/// accesses of masked ones of one lane.
#[test]
fn a_lone_last_element() {
    for (from, to) in
        [("f64", "f8e8m0fnu"), ("f8e4m3", "f64"), ("s64", "s8"), ("u16", "f64"), ("f32", "pred")]
    {
        let (a, b) = (format!("{from}[3,17]"), format!("{to}[3,17]"));
        check(&loop_of(&[&a], &b, &format!("  ROOT r = {b} convert(p0)")));
    }
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
            ("[9,200]", "[9,49]", "slice(p0), slice={[0:9], [2:197:4]}"),
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
        let body = format!(
            "  a = {t}[4,20] slice(p0), slice={{[0:4], [1:40:2]}}\n  b = {t}[4,20] slice(p0), slice={{[0:4], [0:40:2]}}\n  \
             ROOT r = {t}[4,40] concatenate(a, b), dimensions={{1}}"
        );
        check(&loop_of(&[&format!("{t}[4,40]")], &format!("{t}[4,40]"), &body));
        let body = format!("  ROOT r = {t}[4,50] concatenate(p0, p1, p0), dimensions={{1}}");
        check(&loop_of(&[&format!("{t}[4,16]"), &format!("{t}[4,18]")], &format!("{t}[4,50]"), &body));
        let body = format!("  ROOT r = {t}[9,18] concatenate(p0, p1), dimensions={{0}}");
        check(&loop_of(&[&format!("{t}[4,18]"), &format!("{t}[5,18]")], &format!("{t}[9,18]"), &body));
    }
}

#[test]
fn transposes_in_tiles() {
    for (from, to, op) in [
        ("[64,80]", "[80,64]", "{1,0}"),
        ("[130,67]", "[67,130]", "{1,0}"),
        ("[3,48,96]", "[3,96,48]", "{0,2,1}"),
        ("[48,3,96]", "[96,3,48]", "{2,1,0}"),
        ("[300,333]", "[333,300]", "{1,0}"),
        ("[530,272]", "[272,530]", "{1,0}"),
        ("[2,33,290]", "[2,290,33]", "{0,2,1}"),
        ("[43,258]", "[258,43]", "{1,0}"),
        ("[40,17,25]", "[25,17,40]", "{2,1,0}"),
        ("[70,9,5]", "[5,9,70]", "{2,1,0}"),
        ("[33,50,12]", "[12,50,33]", "{2,1,0}"),
        ("[2,40,6,7,3]", "[2,3,6,7,40]", "{0,4,2,3,1}"),
        ("[20,4,4,4,4]", "[4,4,4,4,20]", "{4,2,1,3,0}"),
    ] {
        for t in ["f32", "u8", "bf16", "f64", "pred"] {
            let body =
                format!("  a = {t}{to} transpose(p0), dimensions={op}\n  ROOT r = {t}{to} maximum(a, p1)");
            check(&loop_of(&[&format!("{t}{from}"), &format!("{t}{to}")], &format!("{t}{to}"), &body));
        }
    }
    // Short rows whose variables others see, too.
    for t in ["f32", "s8", "u16"] {
        let to = format!("{t}[6,2,11,50]");
        let body = format!(
            "  a = {t}[50,2,11,6] slice(p0), slice={{[3:53], [0:4:2], [0:11], [0:6]}}\n  b = {to} transpose(a), dimensions={{3,1,2,0}}\n  \
             c = {to} broadcast(p1), dimensions={{0}}\n  d = {to} iota(), iota_dimension=2\n  e = {to} multiply(b, c)\n  \
             f = {to} add(e, d)\n  ROOT r = {to} reverse(f), dimensions={{0}}"
        );
        check(&loop_of(&[&format!("{t}[60,4,11,6]"), &format!("{t}[6]")], &to, &body));
    }
    // Past the caches, squares stored from registers.
    for (t, n) in [("f32", 1456), ("s64", 1040)] {
        let (to, two) = (format!("{t}[{n},{n}]"), format!("({t}[{n},{n}], {t}[{n},{n}])"));
        let body = format!(
            "  a = {to} transpose(p0), dimensions={{1,0}}\n  b = {to} add(a, p1)\n  ROOT r = {two} tuple(a, b)"
        );
        check(&loop_of(&[&to, &to], &two, &body));
    }
    let body =
        "  a = f32[1040,3,1424] transpose(p0), dimensions={2,1,0}\n  ROOT r = f32[1040,3,1424] copy(a)";
    check(&loop_of(&["f32[1424,3,1040]"], "f32[1040,3,1424]", body));
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
    for (from, to) in [
        ("s64[]", "f32[2]"),
        ("f64[]", "f8e4m3fnuz[8]"),
        ("u16[]", "f4e2m1fn[4]"),
        ("s64[3]", "s32[3,2]"),
        ("f64[20]", "pred[20,8]"),
        ("c128[5]", "c64[5,2]"),
        ("c64[5,2]", "c128[5]"),
        ("f4e2m1fn[40,16]", "u64[40]"),
        ("pred[40,8]", "f64[40]"),
    ] {
        check(&loop_of(&[from], to, &format!("  ROOT r = {to} bitcast-convert(p0)")));
    }
    check(&loop_of(&["s4[33,4]"], "bf16[33]", "  ROOT r = bf16[33] bitcast-convert(p0)"));
}

#[test]
fn what_branches_is_emitted_where_it_may() {
    for ty in ["f32", "f64", "c64"] {
        let body = format!(
            "  s = {ty}[7] sine(p1)\n  m = {ty}[7] multiply(s, p1)\n  b = {ty}[7,33] broadcast(m), dimensions={{0}}\n  \
             c = {ty}[7,33] add(p0, b)\n  d = {ty}[7,33] cosine(c)\n  ROOT r = {ty}[7,33] subtract(d, b)"
        );
        let body = if ty == "c64" { body.replace("cosine", "sine") } else { body };
        let text = loop_of(&[&format!("{ty}[7,33]"), &format!("{ty}[7]")], &format!("{ty}[7,33]"), &body);
        check_with(&text, 1, Some(9), Close::Within(1e-5));
    }
}

#[test]
fn called_computations_and_constants() {
    let regions =
        "inner {\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  ROOT r = f32[] subtract(x, y)\n}\n";
    let body = "  c = f32[3] constant({1, 2, 3})\n  b = f32[9,3] broadcast(c), dimensions={1}\n  \
                ROOT m = f32[9,3] map(p0, b), dimensions={0,1}, to_apply=inner";
    check(&fused("kLoop", &["f32[9,3]"], "f32[9,3]", body, regions));
}

/// A computation of two scalars.
pub(crate) fn region(name: &str, ty: &str, op: &str) -> String {
    format!(
        "{name} {{\n  x = {ty}[] parameter(0)\n  y = {ty}[] parameter(1)\n  ROOT r = {ty}[] {op}(x, y)\n}}\n\n"
    )
}

/// A reduction of one operand.
pub(crate) fn reduction(ty: &str, op: &str, from: &str, dims: &str, to: &str) -> String {
    let body = format!("  ROOT r = {ty}{to} reduce(p0, p1), dimensions={{{dims}}}, to_apply=f");
    let parameters = [format!("{ty}{from}"), format!("{ty}[]")];
    let parameters: Vec<&str> = parameters.iter().map(String::as_str).collect();
    fused("kInput", &parameters, &format!("{ty}{to}"), &body, &region("f", ty, op))
}

const SHAPES: [(&str, &str, &str); 13] = [
    ("[7,17]", "1", "[7]"),
    ("[7,17]", "0", "[17]"),
    ("[7,17]", "0,1", "[]"),
    ("[5,64]", "1", "[5]"),
    ("[40,64]", "0", "[64]"),
    ("[3,5,33]", "1", "[3,33]"),
    ("[3,5,33]", "0,2", "[5]"),
    ("[3,5,33]", "2", "[3,5]"),
    ("[33]", "0", "[]"),
    ("[9,1]", "1", "[9]"),
    ("[0,4]", "0", "[4]"),
    ("[3,1000]", "1", "[3]"),
    ("[2,3000]", "0", "[3000]"),
];

#[test]
pub(crate) fn reductions_that_are_exact() {
    for (from, dims, to) in SHAPES {
        for (ty, op) in
            [("f32", "maximum"), ("s32", "add"), ("pred", "or"), ("s8", "multiply"), ("f64", "multiply")]
        {
            check(&reduction(ty, op, from, dims, to));
        }
    }
    for (ty, op) in
        [("bf16", "minimum"), ("u64", "xor"), ("pred", "add"), ("f32", "subtract"), ("c64", "maximum")]
    {
        for (from, dims, to) in &SHAPES[..4] {
            check(&reduction(ty, op, from, dims, to));
        }
    }
}

#[test]
fn sums() {
    for (from, dims, to) in SHAPES {
        for (ty, bound) in [("f32", 1e-5), ("f64", 1e-13), ("bf16", 0.01), ("c64", 1e-5), ("f16", 0.002)] {
            check_with(&reduction(ty, "add", from, dims, to), 3, Some(100), Close::Within(bound));
        }
    }
}

#[test]
fn large_reductions_are_cut() {
    for (from, dims, to) in [
        ("[300000]", "0", "[]"),
        ("[1000,300]", "0,1", "[]"),
        ("[5000,70]", "0", "[70]"),
        ("[2,100000]", "1", "[2]"),
        ("[700,3,170]", "0,2", "[3]"),
        ("[2,700,3,170]", "1", "[2,3,170]"),
        ("[2,3,700,170]", "1,2", "[2,170]"),
    ] {
        check(&reduction("s32", "add", from, dims, to));
        check(&reduction("f32", "maximum", from, dims, to));
        check_with(&reduction("f32", "add", from, dims, to), 3, Some(100), Close::Within(1e-4));
    }
}

/// Pieces of the outermost dimension have all results each.
#[test]
fn large_reductions_by_slabs() {
    for (from, dims, to) in [
        ("[130,33,520]", "0,2", "[33]"),
        ("[65,5,7,9,1024]", "0,2,4", "[5,9]"),
        ("[70,260,130]", "0,2", "[260]"),
    ] {
        check(&reduction("s32", "add", from, dims, to));
        check_with(&reduction("f32", "maximum", from, dims, to), 2, None, Close::Exact);
        check_with(&reduction("f32", "add", from, dims, to), 3, Some(100), Close::Within(1e-4));
        check_with(&reduction("c64", "add", from, dims, to), 3, Some(100), Close::Within(1e-4));
    }
}

/// Products and the like of rows, of which several are taken at once, are those of the order of the elements.
#[test]
fn literal_reductions_of_many_rows() {
    for (from, dims, to) in [
        ("[40,64]", "1", "[40]"),
        ("[33,100]", "1", "[33]"),
        ("[3,17,50]", "2", "[3,17]"),
        ("[20,3,18]", "1,2", "[20]"),
        ("[2,4,17,40]", "1,3", "[2,17]"),
        ("[16,16]", "1", "[16]"),
    ] {
        for (ty, op) in [
            ("f32", "multiply"),
            ("f64", "multiply"),
            ("bf16", "multiply"),
            ("f16", "subtract"),
            ("s8", "subtract"),
            ("c64", "maximum"),
            ("s64", "subtract"),
        ] {
            check(&reduction(ty, op, from, dims, to));
        }
    }
    let regions = region("f", "f32", "multiply") + &region("g", "f32", "add") + &region("h", "pred", "or");
    let body = "  o = f32[] constant(1)\n  z = f32[] constant(0)\n  n = f32[37,50] negate(p0)\n  m = f32[37,50] add(n, p1)\n  \
                r = f32[37] reduce(m, o), dimensions={1}, to_apply=f\n  s = f32[37] reduce(p1, z), dimensions={1}, to_apply=g\n  \
                k = pred[37,50] compare(p0, p1), direction=LT\n  b = pred[] constant(false)\n  h = pred[37] reduce(k, b), dimensions={1}, to_apply=h\n  \
                t = f32[37] abs(r)\n  ROOT u = (f32[37], f32[37], pred[37]) tuple(t, s, h)";
    let parameters = ["f32[37,50]", "f32[37,50]"];
    let text = fused("kInput", &parameters, "(f32[37], f32[37], pred[37])", body, &regions);
    check_with(&text, 5, None, Close::Within(1e-4));
}

#[test]
pub(crate) fn fused_reductions() {
    let body = "  m = f32[50,33] multiply(p0, p1)\n  a = f32[50,33] add(m, p0)\n  z = f32[] constant(0)\n  \
                r = f32[50] reduce(a, z), dimensions={1}, to_apply=f\n  ROOT n = f32[50] negate(r)";
    let text = fused("kInput", &["f32[50,33]", "f32[50,33]"], "f32[50]", body, &region("f", "f32", "add"));
    check_with(&text, 1, Some(9), Close::Within(1e-4));
    let body = "  z = f32[] constant(0)\n  t = f32[33,50] transpose(p0), dimensions={1,0}\n  e = f32[33,50] negate(t)\n  \
                q = f32[33] reduce(t, z), dimensions={1}, to_apply=f\n  r = f32[33] reduce(e, z), dimensions={1}, to_apply=g\n  \
                d = f32[33] subtract(q, r)\n  ROOT n = (f32[33], f32[33], f32[3,11]) tuple(q, r, s)";
    let body = body.replace("  ROOT", "  s = f32[3,11] reshape(d)\n  ROOT");
    let regions = region("f", "f32", "add") + &region("g", "f32", "maximum");
    let text = fused("kInput", &["f32[50,33]"], "(f32[33], f32[33], f32[3,11])", &body, &regions);
    check_with(&text, 1, Some(9), Close::Within(1e-4));
}

#[test]
pub(crate) fn reductions_in_any_fusion() {
    let regions = region("f", "f32", "add") + &region("g", "f32", "maximum");
    let body = "  z = f32[] constant(0)\n  r = f32[50] reduce(p0, z), dimensions={1}, to_apply=f\n  \
                b = f32[3,50] broadcast(r), dimensions={1}\n  m = f32[3] reduce(b, z), dimensions={1}, to_apply=g\n  \
                c = f32[3,50] broadcast(m), dimensions={0}\n  ROOT n = f32[3,50] subtract(b, c)";
    check_with(
        &fused("kInput", &["f32[50,33]"], "f32[3,50]", body, &regions),
        1,
        Some(9),
        Close::Within(1e-4),
    );
    let body = "  z = f32[] constant(0)\n  r = f32[] reduce(p0, z), dimensions={0,1}, to_apply=g\n  \
                b = f32[7] broadcast(r), dimensions={}\n  ROOT n = f32[7] add(b, p1)";
    check_with(
        &fused("kInput", &["f32[700,330]", "f32[7]"], "f32[7]", body, &regions),
        1,
        Some(9),
        Close::Exact,
    );
}

/// JAX's computation of argmax (GT) and argmin (LT).
pub(super) fn extreme(direction: &str) -> String {
    format!(
        "f {{\n  a = f32[] parameter(0)\n  i = s32[] parameter(1)\n  b = f32[] parameter(2)\n  j = s32[] parameter(3)\n  \
         g = pred[] compare(a, b), direction={direction}\n  n = pred[] compare(a, a), direction=NE\n  o = pred[] or(g, n)\n  \
         v = f32[] select(o, a, b)\n  e = pred[] compare(a, b), direction=EQ\n  l = pred[] compare(i, j), direction=LT\n  \
         t = pred[] and(e, l)\n  u = pred[] or(o, t)\n  w = s32[] select(u, i, j)\n  ROOT r = (f32[], s32[]) tuple(v, w)\n}}\n\n"
    )
}

#[test]
fn extremes_and_their_indices() {
    for (direction, start) in [("GT", "-inf"), ("LT", "inf")] {
        for (dims, kept, d) in
            [("[9,100]", "[9]", 1), ("[40,50]", "[50]", 0), ("[100000]", "[]", 0), ("[3,7]", "[3]", 1)]
        {
            let body = format!(
                "  i = s32{dims} iota(), iota_dimension={d}\n  z = f32[] constant({start})\n  y = s32[] constant(0)\n  \
                 ROOT r = (f32{kept}, s32{kept}) reduce(p0, i, z, y), dimensions={{{d}}}, to_apply=f"
            );
            for seed in 0..4 {
                let result = format!("(f32{kept}, s32{kept})");
                let text = fused("kInput", &[&format!("f32{dims}")], &result, &body, &extreme(direction));
                check_with(&text, seed, None, Close::Exact);
            }
        }
    }
}

#[test]
fn rows() {
    let regions = region("s", "f32", "add") + &region("m", "f32", "maximum");
    for (dims, rows, along, n) in [
        ("[5,64]", "[5]", "1", 1),
        ("[7,33]", "[7]", "1", 1),
        ("[2,3,1000]", "[2,3]", "2", 2),
        ("[3,4,5]", "[3]", "1,2", 1),
        ("[4,1]", "[4]", "1", 1),
        // So large that the next row is asked for.
        ("[600,450]", "[600]", "1", 1),
    ] {
        let kept = if n == 2 { "0,1" } else { "0" };
        let body = format!(
            "  i = f32[] constant(-inf)\n  z = f32[] constant(0)\n  a = f32{rows} reduce(p0, i), dimensions={{{along}}}, to_apply=m\n  \
             b = f32{dims} broadcast(a), dimensions={{{kept}}}\n  c = f32{dims} subtract(p0, b)\n  e = f32{dims} exponential(c)\n  \
             t = f32{rows} reduce(e, z), dimensions={{{along}}}, to_apply=s\n  u = f32{dims} broadcast(t), dimensions={{{kept}}}\n  \
             d = f32{dims} divide(e, u)\n  ROOT r = (f32{dims}, f32{rows}) tuple(d, t)"
        );
        let text =
            fused("kCustom", &[&format!("f32{dims}")], &format!("(f32{dims}, f32{rows})"), &body, &regions);
        check_with(&text, 1, Some(9), Close::Within(1e-4));
    }
    let body = "  z = f32[] constant(0)\n  n = f32[] constant(33)\n  s1 = f32[7] reduce(p0, z), dimensions={1}, to_apply=s\n  \
                nb = f32[7] broadcast(n), dimensions={}\n  mean = f32[7] divide(s1, nb)\n  mb = f32[7,33] broadcast(mean), dimensions={0}\n  \
                c = f32[7,33] subtract(p0, mb)\n  q = f32[7,33] multiply(c, c)\n  s2 = f32[7] reduce(q, z), dimensions={1}, to_apply=s\n  \
                v = f32[7] divide(s2, nb)\n  one = f32[] constant(1)\n  ob = f32[7] broadcast(one), dimensions={}\n  w = f32[7] add(v, ob)\n  \
                h = f32[7] rsqrt(w)\n  hb = f32[7,33] broadcast(h), dimensions={0}\n  y = f32[7,33] multiply(c, hb)\n  \
                g = f32[7,33] broadcast(p1), dimensions={1}\n  ROOT r = f32[7,33] multiply(y, g)";
    let text = fused("kCustom", &["f32[7,33]", "f32[33]"], "f32[7,33]", body, &regions);
    check_with(&text, 1, Some(9), Close::Within(1e-4));
}

/// Results that the last sweep stores, since it computes them; and ones that depend on what it folds, or are
/// beside a result of rows that reads an element again.
#[test]
fn rows_stored_while_they_are_folded() {
    let regions = region("s", "f32", "add") + &region("m", "f32", "maximum");
    for (n, length) in [(5, 64), (7, 33), (3, 1000), (90, 450)] {
        let (all, row) = (format!("f32[{n},{length}]"), format!("f32[{n}]"));
        let sums = format!("  o = {all} broadcast(h), dimensions={{0}}\n  d = {all} add(p, o)\n");
        let again = format!(
            "  k = f32[{n},1] slice(p0), slice={{[0:{n}], [0:1]}}\n  l = {row} reshape(k)\n  w = {row} add(h, l)\n"
        );
        for (more, stored, single, at_once) in [
            ("", "p", "h", true),
            ("", "c", "h", true),
            (&*sums, "d", "h", false),
            (&*again, "p", "w", false),
        ] {
            let body = format!(
                "  i = f32[] constant(-inf)\n  z = f32[] constant(0)\n  a = {row} reduce(p0, i), dimensions={{1}}, to_apply=m\n  \
                 b = {all} broadcast(a), dimensions={{0}}\n  c = {all} subtract(p0, b)\n  e = {all} exponential(c)\n  \
                 t = {row} reduce(e, z), dimensions={{1}}, to_apply=s\n  u = {all} broadcast(t), dimensions={{0}}\n  \
                 p = {all} divide(e, u)\n  q = {all} multiply(p, c)\n  h = {row} reduce(q, z), dimensions={{1}}, to_apply=s\n\
                 {more}  ROOT r = ({all}, {row}) tuple({stored}, {single})"
            );
            let text = fused("kCustom", &[&all], &format!("({all}, {row})"), &body, &regions);
            let module = crate::kernel_tests::parse(&text);
            let fusion = module.root(module.entry());
            let (_, chain) = crate::loops::rows::fusion(&module, fusion).expect("invariant: rows");
            assert_eq!(chain.map(|c| c.stores_in_last()), Some(at_once), "{text}");
            check_with(&text, 1, Some(9), Close::Within(1e-4));
        }
    }
}

#[test]
fn scatters() {
    let overwrite = "f {\n  x = f32[] parameter(0)\n  ROOT y = f32[] parameter(1)\n}\n\n".to_owned();
    let add = region("f", "f32", "add");
    for regions in [&overwrite, &add] {
        let body = "  ROOT r = f32[10,16] scatter(p0, p1, p2), update_window_dims={1}, inserted_window_dims={0}, \
                    scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=f";
        for seed in 0..3 {
            let text =
                fused("kInput", &["f32[10,16]", "s32[40,1]", "f32[40,16]"], "f32[10,16]", body, regions);
            check_with(&text, seed, Some(10), Close::Exact);
        }
        let body = "  ROOT r = f32[10,37] scatter(p0, p1, p2), update_window_dims={0,1}, inserted_window_dims={}, \
                    scatter_dims_to_operand_dims={0,1}, index_vector_dim=0, to_apply=f";
        for seed in 0..5 {
            let text = fused("kInput", &["f32[10,37]", "s64[2]", "f32[5,33]"], "f32[10,37]", body, regions);
            check_with(&text, seed, Some(5), Close::Exact);
        }
        let body = "  ROOT r = f32[99] scatter(p0, p1, p2), update_window_dims={}, inserted_window_dims={0}, \
                    scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=f";
        let text = fused("kInput", &["f32[99]", "u32[50,1]", "f32[50]"], "f32[99]", body, regions);
        check_with(&text, 1, Some(99), Close::Exact);
        let body = "  ROOT r = f32[4,7,5] scatter(p0, p1, p2), update_window_dims={2}, inserted_window_dims={1}, \
                    scatter_dims_to_operand_dims={1}, input_batching_dims={0}, scatter_indices_batching_dims={1}, \
                    index_vector_dim=2, to_apply=f";
        let text = fused("kInput", &["f32[4,7,5]", "s32[3,4,1]", "f32[3,4,5]"], "f32[4,7,5]", body, regions);
        check_with(&text, 1, Some(7), Close::Exact);
    }
}

#[test]
fn scatters_into_copies() {
    let add = region("f", "f32", "add");
    let body = "  n = f32[10,16] negate(p0)\n  ROOT r = f32[10,16] scatter(n, p1, p2), update_window_dims={1}, inserted_window_dims={0}, \
                scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=f";
    let text = fused("kInput", &["f32[10,16]", "s32[40,1]", "f32[40,16]"], "f32[10,16]", body, &add);
    check_with(&text, 1, Some(10), Close::Exact);
    let body = "  ROOT r = f32[10,16] scatter(p0, p1, p0), update_window_dims={1}, inserted_window_dims={0}, \
                scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=f";
    let text = fused("kInput", &["f32[10,16]", "s32[10,1]"], "f32[10,16]", body, &add);
    check_with(&text, 1, Some(10), Close::Exact);
    let two = "f {\n  a = f32[] parameter(0)\n  b = s32[] parameter(1)\n  x = f32[] parameter(2)\n  y = s32[] parameter(3)\n  \
               s = f32[] subtract(a, x)\n  t = s32[] add(b, y)\n  ROOT r = (f32[], s32[]) tuple(s, t)\n}\n\n";
    let body = "  ROOT r = (f32[30], s32[30]) scatter(p0, p1, p2, p3, p4), update_window_dims={}, inserted_window_dims={0}, \
                scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=f";
    let parameters = ["f32[30]", "s32[30]", "s32[50,1]", "f32[50]", "s32[50]"];
    let text = fused("kInput", &parameters, "(f32[30], s32[30])", body, two);
    check_with(&text, 1, Some(30), Close::Exact);
}

#[test]
fn loops_in_one_function() {
    let text = "HloModule m\n\nc {\n  s = (s32[], s32[], s32[]) parameter(0)\n  n = s32[] get-tuple-element(s), index=0\n  \
                one = s32[] constant(1)\n  ROOT r = pred[] compare(n, one), direction=GT\n}\n\n\
                b {\n  s = (s32[], s32[], s32[]) parameter(0)\n  n = s32[] get-tuple-element(s), index=0\n  \
                k = s32[] get-tuple-element(s), index=1\n  z = s32[] get-tuple-element(s), index=2\n  two = s32[] constant(2)\n  \
                one = s32[] constant(1)\n  h = s32[] divide(n, two)\n  d = s32[] add(k, one)\n  x = s32[] xor(z, h)\n  \
                ROOT r = (s32[], s32[], s32[]) tuple(h, d, x)\n}\n\n\
                ENTRY e {\n  p = (s32[], s32[], s32[]) parameter(0)\n  ROOT w = (s32[], s32[], s32[]) while(p), condition=c, body=b\n}\n";
    for seed in 0..4 {
        check_with(text, seed, None, Close::Exact);
        check_with(text, seed, Some(9), Close::Exact);
    }
    let state = "(u8[], f32[20], f32[256,20], f32[20])";
    let text = format!(
        "HloModule m\n\nc {{\n  s = {state} parameter(0)\n  n = u8[] get-tuple-element(s), index=0\n  \
         one = u8[] constant(1)\n  ROOT r = pred[] compare(n, one), direction=GT\n}}\n\n\
         b {{\n  s = {state} parameter(0)\n  n = u8[] get-tuple-element(s), index=0\n  \
         h = f32[20] get-tuple-element(s), index=1\n  y = f32[256,20] get-tuple-element(s), index=2\n  x = f32[20] get-tuple-element(s), index=3\n  \
         one = u8[] constant(1)\n  z = u8[] constant(0)\n  m = u8[] subtract(n, one)\n  v = f32[20] reverse(h), dimensions={{0}}\n  \
         a = f32[20] maximum(v, x)\n  q = f32[20] negate(a)\n  u = f32[1,20] reshape(q)\n  \
         d = f32[256,20] dynamic-update-slice(y, u, n, z)\n  ROOT r = {state} tuple(m, q, d, x)\n}}\n\n\
         ENTRY e {{\n  p = {state} parameter(0)\n  ROOT w = {state} while(p), condition=c, body=b\n}}\n"
    );
    for seed in 0..4 {
        check_with(&text, seed, None, Close::Exact);
    }
}

/// Windows that are read by others, by one another and by where others begin: all of it from before.
#[test]
fn loops_that_move_windows() {
    let state = "(u8[], f32[64], f32[40,8], s32[64])";
    let text = format!(
        "HloModule m\n\nc {{\n  s = {state} parameter(0)\n  n = u8[] get-tuple-element(s), index=0\n  \
         one = u8[] constant(1)\n  ROOT r = pred[] compare(n, one), direction=GT\n}}\n\n\
         b {{\n  s = {state} parameter(0)\n  n = u8[] get-tuple-element(s), index=0\n  \
         a = f32[64] get-tuple-element(s), index=1\n  y = f32[40,8] get-tuple-element(s), index=2\n  p = s32[64] get-tuple-element(s), index=3\n  \
         one = u8[] constant(1)\n  m = u8[] subtract(n, one)\n  z = s32[] constant(0)\n  i = s32[] convert(n)\n  \
         j1 = s32[1] dynamic-slice(p, i), dynamic_slice_sizes={{1}}\n  j = s32[] reshape(j1)\n  \
         x = f32[1] dynamic-slice(a, i), dynamic_slice_sizes={{1}}\n  v = f32[1] dynamic-slice(a, j), dynamic_slice_sizes={{1}}\n  \
         a1 = f32[64] dynamic-update-slice(a, v, i)\n  a2 = f32[64] dynamic-update-slice(a1, x, j)\n  \
         w = f32[3,8] dynamic-slice(y, j, z), dynamic_slice_sizes={{3,8}}\n  y1 = f32[40,8] dynamic-update-slice(y, w, i, z)\n  \
         q = f32[2,5] dynamic-slice(y1, i, j), dynamic_slice_sizes={{2,5}}\n  k = s32[] add(i, j)\n  \
         y2 = f32[40,8] dynamic-update-slice(y1, q, k, j)\n  \
         h = s32[1] dynamic-slice(p, k), dynamic_slice_sizes={{1}}\n  h1 = s32[] reshape(h)\n  g = s32[] add(h1, i)\n  g1 = s32[1] reshape(g)\n  \
         p1 = s32[64] dynamic-update-slice(p, g1, j)\n  ROOT r = {state} tuple(m, a2, y2, p1)\n}}\n\n\
         ENTRY e {{\n  s = {state} parameter(0)\n  ROOT w = {state} while(s), condition=c, body=b\n}}\n"
    );
    for seed in 0..6 {
        check_with(&text, seed, None, Close::Exact);
    }
}

/// Times of kernels on one thread: `cargo test --release -p hlo-codegen --lib loops::tests::speed --
/// --ignored --nocapture`.
#[test]
#[ignore = "measures"]
fn speed() {
    use crate::kernel_tests::measure;
    let regions = region("s", "f32", "add") + &region("m", "f32", "maximum");
    let m = "f32[4096,4096]";
    measure("add", &loop_of(&[m, m], m, &format!("  ROOT r = {m} add(p0, p1)")));
    measure("small add", &loop_of(&["f32[1024]"], "f32[1024]", "  ROOT r = f32[1024] add(p0, p0)"));
    let body = format!(
        "  t = {m} transpose(p0), dimensions={{1,0}}\n  c = f32[] constant(1)\n  b = {m} broadcast(c), dimensions={{}}\n  \
         ROOT r = {m} add(t, b)"
    );
    measure("transpose", &loop_of(&[m], m, &body));
    measure("tanh", &loop_of(&[m], m, &format!("  ROOT r = {m} tanh(p0)")));
    let body = "  a = f32[2048,1024] slice(p0), slice={[0:2048], [0:2048:2]}\n  b = f32[2048,1024] slice(p1), slice={[0:2048], [1:2048:2]}\n  \
                c = f32[2048,2048] concatenate(a, b), dimensions={1}\n  z = f32[] constant(0)\n  \
                ROOT r = f32[2050,2052] pad(c, z), padding=1_1x2_2";
    measure("concat", &loop_of(&["f32[2048,2048]", "f32[2048,2048]"], "f32[2050,2052]", body));
    let body = "  ROOT r = f32[1048576,64] gather(p0, p1), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, \
                index_vector_dim=1, slice_sizes={1,64}";
    measure("gather", &loop_of(&["f32[100000,64]", "s32[1048576,1]"], "f32[1048576,64]", body));
    let body = "  ROOT r = f32[100000,16] scatter(p0, p1, p2), update_window_dims={1}, inserted_window_dims={0}, \
                scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=s";
    let parameters = ["f32[100000,16]", "s32[262144,1]", "f32[262144,16]"];
    measure("scatter", &fused("kInput", &parameters, "f32[100000,16]", body, &regions));
    let body = "  z = f32[] constant(0)\n  ROOT r = f32[4096] reduce(p0, z), dimensions={0}, to_apply=s";
    measure("columns", &fused("kInput", &["f32[8192,4096]"], "f32[4096]", body, &regions));
    let body = "  z = f32[] constant(0)\n  ROOT r = f32[8192] reduce(p0, z), dimensions={1}, to_apply=s";
    measure("rows", &fused("kInput", &["f32[8192,4096]"], "f32[8192]", body, &regions));
    let body = format!(
        "  m = {m} multiply(p1, p2)\n  a = {m} add(p0, m)\n  z = f32[] constant(0)\n  ROOT r = f32[] reduce(a, z), dimensions={{0,1}}, to_apply=s"
    );
    measure("sum of fma", &fused("kInput", &[m, m, m], "f32[]", &body, &regions));
    let body = "  i = s32[4096,4096] iota(), iota_dimension=1\n  z = f32[] constant(-inf)\n  y = s32[] constant(0)\n  \
                q = (f32[4096], s32[4096]) reduce(p0, i, z, y), dimensions={1}, to_apply=f\n  \
                ROOT r = s32[4096] get-tuple-element(q), index=1";
    measure("argmax", &fused("kInput", &[m], "s32[4096]", body, &extreme("GT")));
    let body = format!(
        "  i = f32[] constant(-inf)\n  z = f32[] constant(0)\n  a = f32[4096] reduce(p0, i), dimensions={{1}}, to_apply=m\n  \
         b = {m} broadcast(a), dimensions={{0}}\n  c = {m} subtract(p0, b)\n  e = {m} exponential(c)\n  \
         t = f32[4096] reduce(e, z), dimensions={{1}}, to_apply=s\n  u = {m} broadcast(t), dimensions={{0}}\n  ROOT d = {m} divide(e, u)"
    );
    measure("softmax", &fused("kCustom", &[m], m, &body, &regions));
    let text = "HloModule m\n\nc {\n  s = (s32[], s32[]) parameter(0)\n  n = s32[] get-tuple-element(s), index=0\n  \
                one = s32[] constant(1000000)\n  ROOT r = pred[] compare(n, one), direction=LT\n}\n\n\
                b {\n  s = (s32[], s32[]) parameter(0)\n  n = s32[] get-tuple-element(s), index=0\n  k = s32[] get-tuple-element(s), index=1\n  \
                one = s32[] constant(1)\n  d = s32[] add(n, one)\n  two = s32[] constant(2)\n  q = s32[] divide(k, two)\n  x = s32[] xor(q, n)\n  \
                ROOT r = (s32[], s32[]) tuple(d, x)\n}\n\n\
                ENTRY e {\n  p = (s32[], s32[]) parameter(0)\n  ROOT w = (s32[], s32[]) while(p), condition=c, body=b\n}\n";
    measure("while", text);
}
