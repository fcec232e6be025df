//! Windows: every attribute and combiner, prefixes and suffixes, scans, selections.

use crate::support::faults::assert_barriers_matter;
use crate::support::{EXACT, Tolerance, check, check_on};
use hlo_gpu::arch::Arch;

fn region(ty: &str, op: &str) -> String {
    format!("f {{\n  a = {ty}[] parameter(0)\n  b = {ty}[] parameter(1)\n  ROOT r = {ty}[] {op}(a, b)\n}}\n")
}

/// Windows over one parameter.
fn windows(ty: &str, operand: &str, result: &str, window: &str, op: &str, initial: &str) -> String {
    format!(
        "HloModule m\n{}ENTRY e {{\n  x = {ty}[{operand}] parameter(0)\n  i = {ty}[] constant({initial})\n  ROOT r = {ty}[{result}] reduce-window(x, i), window={{{window}}}, to_apply=f\n}}\n",
        region(ty, op)
    )
}

/// Operand, result and window: strides, padding of both signs, dilation of operand and window.
const WINDOWS: &[(&str, &str, &str)] = &[
    ("40", "36", "size=5"),
    ("40", "40", "size=11 pad=5_5"),
    ("7,33", "3,8", "size=3x7 stride=2x4 pad=0_0x3_2"),
    ("7,33", "5,15", "size=3x20 stride=1x1 pad=0_0x-2_3"),
    ("9,10", "17,34", "size=11x2 stride=1x1 pad=5_5x8_8 lhs_dilate=2x2 rhs_dilate=1x1"),
    ("9,30", "9,16", "size=1x8 rhs_dilate=1x3 stride=1x1 pad=0_0x4_3"),
    ("4,5,6", "2,5,6", "size=2x13x1 stride=2x1x1 pad=0_0x6_6x0_0"),
    ("3", "13", "size=12 pad=10_11"),
];

#[test]
fn windows_of_every_attribute() {
    for (operand, result, window) in WINDOWS {
        for op in ["add", "maximum", "multiply"] {
            check(&windows("s32", operand, result, window, op, "2"), EXACT);
        }
        // Sums of multiples of 2^-10 are exact.
        for ty in ["f32", "bf16", "f64"] {
            check(&windows(ty, operand, result, window, "add", "0.5"), EXACT);
        }
        check(&windows("s32", operand, result, window, "subtract", "2"), EXACT);
        check(&windows("pred", operand, result, window, "or", "false"), EXACT);
        check_on(&windows("bf16", operand, result, window, "minimum", "inf"), Arch::Sm80, EXACT, 5);
    }
}

#[test]
fn windows_of_several_operands() {
    check(
        "HloModule m\nf {\n  a = f32[] parameter(0)\n  i = s32[] parameter(1)\n  b = f32[] parameter(2)\n  j = s32[] parameter(3)\n  g = pred[] compare(a, b), direction=GE\n  v = f32[] select(g, a, b)\n  w = s32[] select(g, i, j)\n  ROOT r = (f32[], s32[]) tuple(v, w)\n}\nENTRY e {\n  x = f32[6,40] parameter(0)\n  y = s32[6,40] parameter(1)\n  i = f32[] constant(-inf)\n  z = s32[] constant(-1)\n  ROOT r = (f32[6,12], s32[6,12]) reduce-window(x, y, i, z), window={size=1x12 stride=1x3 pad=0_0x3_2}, to_apply=f\n}\n",
        EXACT,
    );
}

/// A prefix (or suffix) reduction along the middle dimension.
fn cumulative(ty: &str, dims: [i64; 3], suffix: bool, op: &str, initial: &str) -> String {
    let [outer, n, inner] = dims;
    let shape = format!("{outer},{n},{inner}");
    let pad = if suffix { format!("0_{}", n - 1) } else { format!("{}_0", n - 1) };
    windows(ty, &shape, &shape, &format!("size=1x{n}x1 pad=0_0x{pad}x0_0"), op, initial)
}

/// Around the sizes of warps, tiles (of 256 threads, a few elements each) and chunks.
const LINES: &[[i64; 3]] = &[
    [1, 2, 1],
    [3, 31, 1],
    [1, 64, 1],
    [2, 65, 1],
    [1, 255, 2],
    [2, 256, 1],
    [1, 257, 1],
    [2, 1023, 1],
    [1, 1024, 3],
    [1, 1026, 1],
    [3, 4100, 1],
    [1, 20000, 1],
    [1, 16385, 1],
    [2, 9000, 2],
    [100, 40, 90],
];

#[test]
fn prefixes_and_suffixes() {
    for dims in LINES {
        for suffix in [false, true] {
            check(&cumulative("s32", *dims, suffix, "add", "3"), EXACT);
            check(&cumulative("f32", *dims, suffix, "maximum", "-inf"), EXACT);
        }
    }
}

#[test]
fn cumulative_sums_of_floats() {
    for dims in LINES {
        let n = dims[1];
        // Multiples of 2^-10 of magnitude 2 at most: sums of 2^13 are exact; beyond, a rounding for each.
        let tolerance = if n <= 8192 { EXACT } else { Tolerance(n as f64 * f64::from(f32::EPSILON)) };
        check(&cumulative("f32", *dims, false, "add", "0"), tolerance);
        check_on(&cumulative("f64", *dims, true, "add", "1"), Arch::Sm80, EXACT, 2);
    }
    for dims in [[3, 70, 1], [2, 2048, 1]] {
        check(&cumulative("bf16", dims, false, "add", "0"), EXACT);
        check(&cumulative("c64", dims, false, "add", "(0, 0)"), Tolerance(2048.0 * f64::from(f32::EPSILON)));
        check(&cumulative("f16", dims, true, "minimum", "1"), EXACT);
        check(&cumulative("pred", dims, false, "and", "true"), EXACT);
        check(&cumulative("s8", dims, false, "xor", "5"), EXACT);
        check(&cumulative("u16", dims, false, "multiply", "1"), EXACT);
    }
}

#[test]
fn prefixes_in_order() {
    for dims in [[3, 70, 2], [1, 300, 1]] {
        // May not be regrouped.
        check(&cumulative("f32", dims, false, "multiply", "1"), EXACT);
        check(&cumulative("s32", dims, false, "subtract", "1"), EXACT);
        check(&cumulative("s32", dims, true, "subtract", "1"), EXACT);
    }
}

#[test]
fn scans() {
    for reverse in ["false", "true"] {
        check(
            &format!(
                "HloModule m\nf {{\n  a = s32[4] parameter(0)\n  c = s32[4] parameter(1)\n  t = s32[] constant(3)\n  b = s32[4] broadcast(t), dimensions={{}}\n  m = s32[4] multiply(c, b)\n  s = s32[4] add(m, a)\n  n = s32[4] negate(s)\n  ROOT r = (s32[4], s32[4]) tuple(n, s)\n}}\nENTRY e {{\n  x = s32[4,50] parameter(0)\n  i = s32[4] parameter(1)\n  ROOT r = (s32[4,50], s32[4]) scan(x, i), dimensions={{1}}, to_apply=f, num_carries=1, is_reverse={reverse}\n}}\n"
            ),
            EXACT,
        );
    }
}

#[test]
fn running_operations() {
    // Along a line by threads, by blocks, and by chunks of it.
    for (shape, slice, d) in [("4,50", "4", 1), ("50,4", "4", 0), ("3,5000", "3", 1), ("20000", "", 0)] {
        for reverse in ["false", "true"] {
            // Multiples of 2^-10 of magnitude 2 are summed exactly, and rounded once, up to 2^13 of them;
            // then s32 alone.
            let types: &[&str] = if shape == "20000" { &["s32"] } else { &["f32", "bf16", "s32"] };
            for ty in types {
                check(
                    &format!(
                        "HloModule m\nf {{\n  a = {ty}[{slice}] parameter(0)\n  c = {ty}[{slice}] parameter(1)\n  s = {ty}[{slice}] add(a, c)\n  ROOT r = ({ty}[{slice}], {ty}[{slice}]) tuple(s, s)\n}}\nENTRY e {{\n  x = {ty}[{shape}] parameter(0)\n  i = {ty}[{slice}] parameter(1)\n  ROOT r = ({ty}[{shape}], {ty}[{slice}]) scan(x, i), dimensions={{{d}}}, to_apply=f, num_carries=1, is_reverse={reverse}\n}}\n"
                    ),
                    EXACT,
                );
            }
        }
    }
}

#[test]
fn without_a_barrier_prefixes_race() {
    assert_barriers_matter(&cumulative("f32", [1, 4096, 1], false, "add", "0"));
}

#[test]
fn selections() {
    for (op, ty) in [("GE", "f32"), ("GE", "s32"), ("LT", "f64"), ("GE", "bf16")] {
        for (operand, source, window) in [
            ("4,12", "2,4", "size=2x3 stride=2x3"),
            ("9,33", "4,8", "size=3x7 stride=2x4 pad=0_0x1_1"),
            ("20", "20", "size=5 pad=2_2"),
            ("7", "3", "size=9 stride=2 pad=3_3"),
            ("3", "2", "size=2 stride=5 pad=3_1"),
        ] {
            let text = format!(
                "HloModule m\ns {{\n  a = {ty}[] parameter(0)\n  b = {ty}[] parameter(1)\n  ROOT r = pred[] compare(a, b), direction={op}\n}}\n{}ENTRY e {{\n  x = {ty}[{operand}] parameter(0)\n  y = {ty}[{source}] parameter(1)\n  i = {ty}[] constant(1)\n  ROOT r = {ty}[{operand}] select-and-scatter(x, y, i), window={{{window}}}, select=s, scatter=f\n}}\n",
                region(ty, "add")
            );
            check(&text, EXACT);
        }
    }
}
