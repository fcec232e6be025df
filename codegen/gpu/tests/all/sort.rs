//! Sorts and top-k: types, dimensions, comparators, lengths around what a block sorts.

use crate::support::{EXACT, check, check_on};
use hlo_gpu::arch::Arch;

/// A sort of `n` operands of a type and of that many positions; `less` is the comparator's root, of `a`, `b`
/// and what else it computes.
fn sort(ty: &str, dims: &str, dimension: i64, less: &str) -> String {
    format!(
        "HloModule m\nless {{\n  a = {ty}[] parameter(0)\n  b = {ty}[] parameter(1)\n  {less}\n}}\nENTRY e {{\n  x = {ty}[{dims}] parameter(0)\n  ROOT s = {ty}[{dims}] sort(x), dimensions={{{dimension}}}, to_apply=less\n}}\n"
    )
}

/// A sort of keys of few values with positions beside them.
fn pairs(ty: &str, dims: &str, dimension: i64, stable: bool) -> String {
    format!(
        "HloModule m\nless {{\n  a = {ty}[] parameter(0)\n  b = {ty}[] parameter(1)\n  i = s32[] parameter(2)\n  j = s32[] parameter(3)\n  ROOT l = pred[] compare(a, b), direction=GT\n}}\nENTRY e {{\n  x = {ty}[{dims}] parameter(0)\n  i = s32[{dims}] iota(), iota_dimension={dimension}\n  ROOT s = ({ty}[{dims}], s32[{dims}]) sort(x, i), dimensions={{{dimension}}}, is_stable={stable}, to_apply=less\n}}\n"
    )
}

const LESS: &str = "ROOT l = pred[] compare(a, b), direction=LT";

#[test]
fn lengths_around_blocks() {
    for len in [1, 2, 3, 31, 33, 1023, 1025, 2048, 2049, 3000, 4097, 5000] {
        check(&pairs("s32", &len.to_string(), 0, true), EXACT);
    }
    check(&sort("f32", "9000", 0, "ROOT l = pred[] compare(a, b), direction=LT, type=TOTALORDER"), EXACT);
}

#[test]
fn lines_by_digits() {
    // Around tiles of 2048, from 4096 elements a pass on.
    for len in [16383, 16384, 16385, 18431, 18433] {
        check(&pairs("s32", &len.to_string(), 0, true), EXACT);
    }
    let program = check(&pairs("s32", "2,16500", 1, true), EXACT);
    assert!(program.ptx.concat().contains("_distribute"), "not by digits");
    check(&pairs("f32", "16500,2", 0, true), EXACT);
    for ty in ["s8", "u8", "s16", "u16", "bf16", "f16", "f8e4m3fn", "f8e5m2fnuz", "f8e8m0fnu"] {
        for less in ["LT", "GT"] {
            let total = if ty.contains('f') { ", type=TOTALORDER" } else { "" };
            check(
                &sort(ty, "8200", 0, &format!("ROOT l = pred[] compare(a, b), direction={less}{total}")),
                EXACT,
            );
        }
    }
    for ty in ["s64", "u64", "f64"] {
        check(&sort(ty, "32800", 0, LESS), EXACT);
    }
    check_on(&sort("u32", "17000", 0, LESS), Arch::Sm75, EXACT, 2);
}

#[test]
fn floats_by_digits() {
    let total = "ROOT l = pred[] compare(a, b), direction=GT, type=TOTALORDER";
    // What JAX compares: NaNs are one and largest, and the zeros one.
    let merged = "n = f32[] constant(nan)\n  z = f32[] constant(0)\n  e0 = pred[] compare(a, z), direction=EQ\n  e1 = pred[] compare(b, z), direction=EQ\n  u0 = pred[] compare(a, a), direction=NE\n  u1 = pred[] compare(b, b), direction=NE\n  s0 = f32[] select(e0, z, a)\n  s1 = f32[] select(e1, z, b)\n  t0 = f32[] select(u0, n, s0)\n  t1 = f32[] select(u1, n, s1)\n  ROOT l = pred[] compare(t0, t1), direction=LT, type=TOTALORDER";
    for less in [total, merged, LESS] {
        check(&with_nans("f32", "16500", 0, less), EXACT);
    }
    // No NaN, and zeros of both signs, which are equal but for TOTALORDER.
    for less in [total, merged, LESS] {
        let text = with_nans("f32", "16500", 0, less)
            .replace("divide(w, w)", "negate(w)")
            .replace("constant(1)", "constant(-1)");
        check(&text, EXACT);
    }
}

#[test]
fn dimensions() {
    for (dims, dimension) in [
        ("7,33", 0),
        ("7,33", 1),
        ("3,40,5", 1),
        ("100,3", 1),
        ("2200,3", 0),
        ("3,2200", 1),
        ("0,4", 1),
        ("40,37", 0),
        ("2,9,50", 1),
    ] {
        check(&pairs("f32", dims, dimension, false), EXACT);
    }
}

#[test]
fn types() {
    for ty in ["pred", "s8", "u8", "s16", "u32", "s64", "u64", "bf16", "f16", "f64", "f8e4m3fn", "u4"] {
        check(&sort(ty, "3,70", 1, LESS), EXACT);
    }
    let parts = "r = f32[] real(a)\n  q = f32[] real(b)\n  ROOT l = pred[] compare(r, q), direction=LT";
    check(&sort("c64", "70", 0, parts), EXACT);
    check(&sort("c64", "2100", 0, parts), EXACT);
}

#[test]
fn several_keys() {
    let text = |n: i64| {
        format!(
            "HloModule m\nless {{\n  a = s32[] parameter(0)\n  b = s32[] parameter(1)\n  c = f32[] parameter(2)\n  d = f32[] parameter(3)\n  l = pred[] compare(a, b), direction=LT\n  e = pred[] compare(a, b), direction=EQ\n  m = pred[] compare(c, d), direction=GT\n  n = pred[] and(e, m)\n  ROOT r = pred[] or(l, n)\n}}\nENTRY e {{\n  x = s32[{n}] parameter(0)\n  y = f32[{n}] parameter(1)\n  ROOT s = (s32[{n}], f32[{n}]) sort(x, y), dimensions={{0}}, to_apply=less\n}}\n"
        )
    };
    check(&text(500), EXACT);
    check_on(&text(4500), Arch::Sm80, EXACT, 3);
}

/// Positions sorted by a column that they index: NaNs, infinities, zeros of both signs and numbers, in some
/// order.
fn with_nans(ty: &str, dims: &str, dimension: i64, less: &str) -> String {
    format!(
        "HloModule m\nless {{\n  a = {ty}[] parameter(0)\n  b = {ty}[] parameter(1)\n  i = s32[] parameter(2)\n  j = s32[] parameter(3)\n  {less}\n}}\nENTRY e {{\n  n = {ty}[{dims}] parameter(0)\n  z = {ty}[{dims}] parameter(1)\n  r = {ty}[{dims}] parameter(2)\n  one = {ty}[] constant(1)\n  ones = {ty}[{dims}] broadcast(one), dimensions={{}}\n  big = pred[{dims}] compare(r, ones), direction=GT\n  w = {ty}[{dims}] subtract(z, z)\n  nan = {ty}[{dims}] divide(w, w)\n  x = {ty}[{dims}] select(big, nan, n)\n  i = s32[{dims}] iota(), iota_dimension={dimension}\n  ROOT s = ({ty}[{dims}], s32[{dims}]) sort(x, i), dimensions={{{dimension}}}, to_apply=less\n}}\n"
    )
}

#[test]
fn comparators_that_are_no_order() {
    for less in ["direction=NE", "direction=GE", "direction=LE"] {
        for n in [1, 2, 3, 64, 500, 5000] {
            check(&sort("s32", &n.to_string(), 0, &format!("ROOT l = pred[] compare(a, b), {less}")), EXACT);
        }
        check(&sort("f32", "5,9,3", 1, &format!("ROOT l = pred[] compare(a, b), {less}")), EXACT);
    }
    check(&sort("u8", "3,70", 1, "ROOT l = pred[] constant(true)"), EXACT);
}

#[test]
fn nans_that_do_not_compare() {
    for less in ["ROOT l = pred[] compare(a, b), direction=LT", "ROOT l = pred[] compare(b, a), direction=LT"]
    {
        for (dims, dimension) in
            [("3", 0), ("40", 0), ("9,5", 1), ("9,5", 0), ("4097", 0), ("2,5000", 1), ("3,8200,2", 1)]
        {
            check(&with_nans("f32", dims, dimension, less), EXACT);
        }
    }
    for ty in ["f16", "bf16", "f64", "f8e5m2"] {
        check(&with_nans(ty, "300", 0, LESS), EXACT);
    }
    // Some lines without a NaN: one of 17 numbers is above 1.9.
    let few = with_nans("f32", "40,12", 1, LESS).replace("constant(1)", "constant(1.9)");
    check(&few, EXACT);
}

#[test]
fn operands_that_results_replace() {
    let text = with_nans("f32", "6,50", 1, LESS).replace(
        "x = f32[6,50] select(big, nan, n)",
        "y = f32[6,50] select(big, nan, n)\n  x = f32[6,50] add(y, y)",
    );
    check(&text, EXACT);
}

#[test]
fn many_columns() {
    // As many compared columns as leave shared memory for few elements.
    let (n, columns) = (700, 24);
    let list = |f: &dyn Fn(usize) -> String| (0..columns).map(f).collect::<Vec<_>>().join(", ");
    let parameters: String = (0..2 * columns).map(|k| format!("  p{k} = f64[] parameter({k})\n")).collect();
    let sums = |first: usize| -> String {
        (1..columns)
            .map(|k| {
                let before = if k == 1 { format!("p{first}") } else { format!("s{first}_{}", k - 1) };
                format!("  s{first}_{k} = f64[] add({before}, p{})\n", 2 * k + first)
            })
            .collect()
    };
    let shapes = list(&|_| format!("f64[{n}]"));
    let operands: String = (0..columns).map(|k| format!("  x{k} = f64[{n}] parameter({k})\n")).collect();
    let text = format!(
        "HloModule m\nless {{\n{parameters}{}{}  ROOT l = pred[] compare(s0_{}, s1_{}), direction=LT\n}}\nENTRY e {{\n{operands}  ROOT s = ({shapes}) sort({}), dimensions={{0}}, to_apply=less\n}}\n",
        sums(0),
        sums(1),
        columns - 1,
        columns - 1,
        list(&|k| format!("x{k}")),
    );
    check(&text, EXACT);
}
