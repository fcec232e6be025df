//! Fusions of rows: softmax, normalizations, what is made of several reductions, in place and not; short,
//! long and odd rows.

use crate::support::faults::assert_barriers_matter;
use crate::support::{EXACT, Tolerance, check, check_on};
use hlo_gpu::arch::Arch;

const ADD: &str =
    "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT r = f32[] add(a, b)\n}\n";
const MAX: &str =
    "max {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT r = f32[] maximum(a, b)\n}\n";

/// Rows around the sizes of warps, blocks, what stays in registers and what does not.
const ROWS: &[(i64, i64)] = &[
    (8, 2),
    (9, 31),
    (8, 32),
    (11, 33),
    (64, 64),
    (33, 100),
    (8, 255),
    (9, 256),
    (8, 1023),
    (9, 1024),
    (8, 1025),
    (3, 4096),
    (2, 5000),
    (2, 20000),
    (1, 30001),
];

/// A rounding for each term of the sum, of results that are 2^-4 of the largest on the way at least, and
/// some for what is elementwise.
fn rounded(terms: i64) -> Tolerance {
    Tolerance((terms as f64 + 32.0) * f64::from(f32::EPSILON) * 16.0)
}

fn softmax(rows: i64, n: i64) -> String {
    let shape = format!("f32[{rows},{n}]");
    format!(
        "HloModule m\n{ADD}{MAX}ENTRY e {{\n  x = {shape} parameter(0)\n  low = f32[] constant(-inf)\n  z = f32[] constant(0)\n  m = f32[{rows}] reduce(x, low), dimensions={{1}}, to_apply=max\n  mb = {shape} broadcast(m), dimensions={{0}}\n  d = {shape} subtract(x, mb)\n  p = {shape} exponential(d)\n  s = f32[{rows}] reduce(p, z), dimensions={{1}}, to_apply=add\n  sb = {shape} broadcast(s), dimensions={{0}}\n  ROOT r = {shape} divide(p, sb)\n}}\n"
    )
}

#[test]
fn softmax_is_one_kernel() {
    for &(rows, n) in ROWS {
        let program = check(&softmax(rows, n), rounded(n));
        if rows >= 8 && n > 2 {
            assert_eq!(program.plan.launches(), 1, "{rows} rows of {n}");
        }
        check_on(&softmax(rows, n), Arch::Sm80, rounded(n), 7);
    }
}

#[test]
fn softmax_in_place() {
    // The operand is a transposed parameter at its last use: the result may share its memory.
    for &(rows, n) in ROWS {
        let shape = format!("f32[{rows},{n}]");
        let text = softmax(rows, n).replace(
            &format!("  x = {shape} parameter(0)\n"),
            &format!("  y = f32[{n},{rows}] parameter(0)\n  x = {shape} transpose(y), dimensions={{1,0}}\n"),
        );
        check(&text, rounded(n));
    }
}

#[test]
fn without_a_barrier_rows_race() {
    assert_barriers_matter(&softmax(8, 1024));
}

#[test]
fn layer_norm() {
    for &(rows, n) in ROWS {
        let shape = format!("f32[{rows},{n}]");
        let text = format!(
            "HloModule m\n{ADD}ENTRY e {{\n  x = {shape} parameter(0)\n  g = f32[{n}] parameter(1)\n  b = f32[{n}] parameter(2)\n  z = f32[] constant(0)\n  c = f32[] constant({n})\n  cb = f32[{rows}] broadcast(c), dimensions={{}}\n  s = f32[{rows}] reduce(x, z), dimensions={{1}}, to_apply=add\n  m = f32[{rows}] divide(s, cb)\n  mb = {shape} broadcast(m), dimensions={{0}}\n  d = {shape} subtract(x, mb)\n  q = {shape} multiply(d, d)\n  t = f32[{rows}] reduce(q, z), dimensions={{1}}, to_apply=add\n  v = f32[{rows}] divide(t, cb)\n  e1 = f32[] constant(0.001)\n  eb = f32[{rows}] broadcast(e1), dimensions={{}}\n  w = f32[{rows}] add(v, eb)\n  i = f32[{rows}] rsqrt(w)\n  ib = {shape} broadcast(i), dimensions={{0}}\n  h = {shape} multiply(d, ib)\n  gb = {shape} broadcast(g), dimensions={{1}}\n  bb = {shape} broadcast(b), dimensions={{1}}\n  k = {shape} multiply(h, gb)\n  o = {shape} add(k, bb)\n  ROOT r = ({shape}, f32[{rows}], f32[{rows}]) tuple(o, m, i)\n}}\n"
        );
        check(&text, rounded(n));
    }
}

#[test]
fn rows_of_narrow_floats() {
    for &(rows, n) in ROWS {
        let shape = format!("{rows},{n}");
        // Exact in f32 (multiples of 2^-10): rounded to bf16 where the reference does.
        let text = format!(
            "HloModule m\n{ADD}ENTRY e {{\n  y = bf16[{shape}] parameter(0)\n  x = f32[{shape}] convert(y)\n  z = f32[] constant(0)\n  s = f32[{rows}] reduce(x, z), dimensions={{1}}, to_apply=add\n  sb = f32[{shape}] broadcast(s), dimensions={{0}}\n  d = f32[{shape}] subtract(x, sb)\n  ROOT r = bf16[{shape}] convert(d)\n}}\n"
        );
        check(&text, if n <= 8192 { EXACT } else { Tolerance(1.0 / 128.0) });
    }
}

#[test]
fn rows_that_are_reduced_in_order() {
    for (rows, n) in [(8, 40), (40, 33)] {
        let shape = format!("s32[{rows},{n}]");
        check(
            &format!(
                "HloModule m\nf {{\n  a = s32[] parameter(0)\n  b = s32[] parameter(1)\n  t = s32[] constant(3)\n  p = s32[] multiply(a, t)\n  ROOT r = s32[] add(p, b)\n}}\nENTRY e {{\n  x = {shape} parameter(0)\n  i = s32[] constant(1)\n  s = s32[{rows}] reduce(x, i), dimensions={{1}}, to_apply=f\n  sb = {shape} broadcast(s), dimensions={{0}}\n  ROOT r = {shape} subtract(x, sb)\n}}\n"
            ),
            EXACT,
        );
    }
}

#[test]
fn rows_of_several_dimensions_and_sweeps() {
    // Two reductions of a sweep, then one of what they give, over two dimensions.
    for (rows, a, b) in [("4,3", 8, 12), ("9,1", 5, 7), ("8,2", 33, 32)] {
        let shape = format!("s32[{rows},{a},{b}]");
        check(
            &format!(
                "HloModule m\nmax {{\n  a = s32[] parameter(0)\n  b = s32[] parameter(1)\n  ROOT r = s32[] maximum(a, b)\n}}\nadd {{\n  a = s32[] parameter(0)\n  b = s32[] parameter(1)\n  ROOT r = s32[] add(a, b)\n}}\nENTRY e {{\n  x = {shape} parameter(0)\n  y = {shape} parameter(1)\n  z = s32[] constant(-9)\n  s = s32[{rows}] reduce(x, z), dimensions={{2,3}}, to_apply=add\n  m = s32[{rows}] reduce(y, z), dimensions={{2,3}}, to_apply=max\n  p = s32[{rows}] multiply(s, m)\n  pb = {shape} broadcast(p), dimensions={{0,1}}\n  d = {shape} subtract(x, pb)\n  e2 = {shape} multiply(d, y)\n  t = s32[{rows}] reduce(e2, z), dimensions={{2,3}}, to_apply=add\n  tb = {shape} broadcast(t), dimensions={{0,1}}\n  o = {shape} add(e2, tb)\n  ROOT r = ({shape}, s32[{rows}], {shape}) tuple(o, p, d)\n}}\n"
            ),
            EXACT,
        );
    }
}

#[test]
fn wide_accesses_and_no_local_memory() {
    let program = check(&softmax(64, 4096), rounded(4096));
    let text = program.ptx.join("\n");
    assert_eq!(program.plan.launches(), 1);
    assert!(text.contains("ld.global.v4") && text.contains("st.global.v4"), "{text}");
    assert!(!text.contains(".local"), "{text}");
}
