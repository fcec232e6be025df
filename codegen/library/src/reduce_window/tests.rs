//! Windows against the interpreter.

use hlo::{ElementType, TypeClass};

use crate::testing::{Random, arguments, called, check, close, close_with, parse};

/// (operand, result, window) of many forms.
const WINDOWS: &[(&str, &str, &str)] = &[
    ("4,6", "4,6", "size=1x6 pad=0_0x5_0"),
    ("4,6", "4,6", "size=4x1 pad=0_3x0_0"),
    ("3,5,70", "3,5,70", "size=1x5x1 pad=0_0x4_0x0_0"),
    ("2,9,9,3", "2,4,5,3", "size=1x3x2x1 stride=1x2x2x1 pad=0_0x0_0x1_0x0_0"),
    ("2,3,9,11", "2,3,5,5", "size=1x1x3x3 stride=1x1x2x2 pad=0_0x0_0x1_1x0_0"),
    ("40", "35", "size=6"),
    ("6,40", "6,39", "size=1x10 pad=0_0x4_4"),
    ("2,6000", "2,5963", "size=1x64 pad=0_0x3_23"),
    ("3,900", "3,293", "size=1x37 stride=1x3 pad=0_0x30_-16"),
    ("40,5", "18,5", "size=9x1 stride=2x1 pad=3_0x0_0"),
    ("9,9", "5,5", "size=5x7 pad=0_0x1_1"),
    ("7", "11", "size=3 lhs_dilate=2"),
    ("9", "7", "size=2 rhs_dilate=2"),
    ("5,4", "1,7", "size=2x2 stride=3x1 pad=0_0x1_1 lhs_dilate=1x2 rhs_dilate=2x2"),
    ("6", "3", "size=4 stride=2 pad=-1_3"),
    ("8", "3", "size=8 stride=2 pad=7_-3"),
    ("3,4", "3,4", "size=1x1"),
    ("4,3", "0,3", "size=5x1"),
    ("3", "5", "size=1 pad=1_1"),
    ("5,6", "5,6", "size=5x6 pad=4_0x5_0"),
    ("70,14,14", "70,14,14", "size=1x3x3 pad=0_0x1_1x1_1"),
    ("70,14,14", "70,7,7", "size=1x3x3 stride=1x2x2 pad=0_0x0_1x0_1"),
    ("70,14,14", "70,12,12", "size=1x3x3"),
    ("70,15,15", "70,7,7", "size=1x3x3 stride=1x2x2"),
    ("3,4,7,3,8", "3,3,5,3,4", "size=1x2x3x1x3 stride=1x1x1x1x2 pad=0_0x0_0x0_0x0_0x0_1"),
    ("2,90,200", "2,88,196", "size=1x3x5"),
    ("2,90,200", "2,45,67", "size=1x3x4 stride=1x2x3 pad=0_0x1_0x2_1"),
    ("300,10", "300,10", "size=1x5 pad=0_0x2_2"),
    ("300,10", "300,12", "size=1x2 pad=0_0x3_0"),
    ("300,10", "300,4", "size=1x3 rhs_dilate=1x3"),
    ("300,12", "300,4", "size=1x2 stride=1x3 pad=0_0x-1_0"),
    ("9,6,5", "9,8,7", "size=1x3x3 pad=0_0x4_0x2_2"),
    ("500,3", "500,3", "size=3x1 pad=1_1x0_0"),
    ("3,60,8", "3,57,8", "size=1x5x1 pad=0_0x0_1x0_0"),
    ("2,9,30,5", "2,9,26,5", "size=1x3x3x1 pad=0_0x1_1x0_0x0_0 rhs_dilate=1x1x2x1"),
    ("40,7", "43,7", "size=2x1 pad=4_0x0_0"),
    ("1,0", "1,1", "size=2x1 pad=-1_2x0_1"),
];

/// The index in [`WINDOWS`] of the windows that all end with the last element: products of floats are folded
/// in another order there.
const SUFFIX: usize = 1;

fn text(ty: ElementType, op: &str, (operand, result, window): (&str, &str, &str), init: &str) -> String {
    let ty = ty.name();
    let window = if window.is_empty() { String::new() } else { format!("window={{{window}}}, ") };
    format!(
        "HloModule m\nf {{\n  a = {ty}[] parameter(0)\n  b = {ty}[] parameter(1)\n  ROOT r = {ty}[] {op}(a, b)\n}}\nENTRY main {{\n  x = {ty}[{operand}] parameter(0)\n  i = {ty}[] {init}\n  ROOT w = {ty}[{result}] reduce-window(x, i), {window}to_apply=f\n}}\n"
    )
}

/// Arrays larger than the caches, whose elements are prefetched; the last windows contain padding alone.
#[test]
fn windows_from_memory() {
    for window in [
        ("300,112,64", "300,59,64", "size=1x2x1 stride=1x2x1 pad=0_0x0_7x0_0"),
        ("5,8,30,30,64", "5,4,15,19,64", "size=1x2x3x2x1 stride=1x2x2x2x1 pad=0_0x0_0x1_0x0_9x0_0"),
    ] {
        check(&text(ElementType::F32, "maximum", window, "parameter(1)"), 3, false, true, &[]);
        check(&text(ElementType::U32, "add", window, "parameter(1)"), 4, false, true, &[]);
    }
}

/// Growing windows of more elements than a register holds, from the beginning and from the end, with NaNs
/// somewhere and without.
#[test]
fn lines_of_registers() {
    let windows = [
        ("3,100", "3,100", "size=1x100 pad=0_0x99_0"),
        ("2,83", "2,83", "size=1x83 pad=0_0x0_82"),
        ("1000", "1000", "size=1000 pad=999_0"),
    ];
    for (seed, &ty) in (0..).zip(ElementType::ALL.iter().filter(|ty| ty.bits() >= 32 && !ty.is_complex())) {
        for window in windows {
            let ops: &[&str] = match ty.class() {
                TypeClass::Float => &["maximum", "minimum"],
                TypeClass::Pred | TypeClass::Complex | TypeClass::Signed | TypeClass::Unsigned => {
                    &["add", "multiply", "maximum", "minimum", "and", "xor", "or"]
                }
            };
            for op in ops {
                check(&text(ty, op, window, "parameter(1)"), seed, false, false, &[]);
                check(&text(ty, op, window, "parameter(1)"), seed, true, false, &[]);
            }
            if ty.is_float() {
                close(&text(ty, "add", window, "parameter(1)"), seed, 64.0);
            }
        }
    }
}

#[test]
fn exact_operations_of_any_type() {
    for (seed, &ty) in (0..).zip(ElementType::ALL) {
        let ops: &[&str] = match ty.class() {
            TypeClass::Float => &["maximum", "minimum", "multiply"],
            TypeClass::Complex => &[],
            TypeClass::Pred => &["and", "or", "xor", "add", "multiply", "maximum"],
            TypeClass::Signed | TypeClass::Unsigned => {
                &["add", "multiply", "maximum", "minimum", "and", "xor", "or"]
            }
        };
        for (i, &window) in WINDOWS.iter().enumerate() {
            if let Some(op) = ops.get(i % ops.len().max(1)).filter(|&&op| op != "multiply" || i != SUFFIX) {
                check(&text(ty, op, window, "parameter(1)"), seed, true, false, &[]);
            }
        }
    }
}

#[test]
fn operations_of_the_widest_use() {
    for (ty, op) in [
        (ElementType::F32, "maximum"),
        (ElementType::F32, "multiply"),
        (ElementType::S32, "add"),
        (ElementType::BF16, "multiply"),
    ] {
        for (i, &window) in WINDOWS.iter().enumerate() {
            if op != "multiply" || i != SUFFIX {
                check(&text(ty, op, window, "parameter(1)"), 9, true, false, &[]);
            }
        }
    }
}

/// Windows that all end with the last element are folded from there.
#[test]
fn products_up_to_the_end() {
    // Too few factors to leave the range on the way: where they do, the order decides between 0 and NaN.
    for ty in [ElementType::F32, ElementType::F64, ElementType::BF16, ElementType::C64] {
        let lines = ("3,20", "3,20", "size=1x20 pad=0_0x0_19");
        for window in [WINDOWS[SUFFIX], ("20", "20", "size=20 pad=0_19"), lines] {
            close(&text(ty, "multiply", window, "parameter(1)"), 5, 64.0);
        }
    }
    close(&text(ElementType::F16, "multiply", WINDOWS[SUFFIX], "constant(1)"), 5, 64.0);
    // Computed window by window, as many would take hours.
    let long = ("2000000", "2000000", "size=2000000 pad=0_1999999");
    let module = parse(&text(ElementType::F32, "multiply", long, "constant(1)"));
    let x = arguments(&module, &Random::new(1), false);
    assert_eq!(called(&module, &x, &[], 2).len(), 1);
}

/// Many short lines, contiguous.
#[test]
fn short_lines() {
    for (lines, n) in [(9_000, 2), (7, 3), (6_001, 4), (5_000, 8), (300, 31)] {
        let shape = format!("{lines},{n}");
        for window in [format!("size=1x{n} pad=0_0x{}_0", n - 1), format!("size=1x{n} pad=0_0x0_{}", n - 1)] {
            let window = (&shape[..], &shape[..], &window[..]);
            for (ty, op) in
                [(ElementType::S64, "add"), (ElementType::F16, "minimum"), (ElementType::U8, "multiply")]
            {
                check(&text(ty, op, window, "parameter(1)"), 7, true, false, &[]);
            }
            close(&text(ElementType::F32, "add", window, "parameter(1)"), 7, n as f64);
            close(&text(ElementType::C128, "add", window, "parameter(1)"), 7, n as f64);
        }
    }
}

/// Lines side by side, up and down, of which several tasks fold the long ones.
#[test]
fn short_rows() {
    for (n, width) in [(70_000, 2), (30_000, 3), (20_001, 5), (5_000, 16), (300, 4), (40, 7)] {
        let shape = format!("{n},{width}");
        for window in [format!("size={n}x1 pad={}_0x0_0", n - 1), format!("size={n}x1 pad=0_{}x0_0", n - 1)] {
            let window = (&shape[..], &shape[..], &window[..]);
            for ty in [ElementType::S32, ElementType::U8] {
                check(&text(ty, "add", window, "parameter(1)"), 6, true, false, &[]);
            }
            check(&text(ElementType::F32, "maximum", window, "parameter(1)"), 6, true, false, &[]);
            close(&text(ElementType::F64, "add", window, "parameter(1)"), 6, n as f64);
            close(&text(ElementType::C64, "add", window, "parameter(1)"), 6, n as f64);
        }
    }
}

#[test]
fn sums_of_floats() {
    for (seed, &ty) in (0..).zip(ElementType::ALL) {
        if matches!(ty.class(), TypeClass::Float | TypeClass::Complex) {
            for &window in WINDOWS {
                close(&text(ty, "add", window, "parameter(1)"), seed, 8.0);
            }
        }
    }
    close(
        &text(ElementType::F32, "add", ("3,1000", "3,1000", "size=1x1000 pad=0_0x999_0"), "constant(0)"),
        1,
        1e3,
    );
    close(
        &text(ElementType::F32, "add", ("70000", "70000", "size=70000 pad=69999_0"), "constant(1)"),
        2,
        7e4,
    );
    close(
        &text(ElementType::F32, "add", ("70000", "70000", "size=70000 pad=0_69999"), "constant(1)"),
        3,
        7e4,
    );
    check(
        &text(ElementType::S64, "add", ("70000", "70000", "size=70000 pad=69999_0"), "parameter(1)"),
        3,
        true,
        true,
        &[],
    );
    check(
        &text(ElementType::F32, "maximum", ("40000", "19999", "size=3 stride=2"), "parameter(1)"),
        3,
        true,
        false,
        &[],
    );
    // -0 is the sum of nothing but -0.
    close(
        &text(ElementType::F32, "add", ("2,20", "2,20", "size=1x20 pad=0_0x19_0"), "constant(-0)"),
        4,
        20.0,
    );
}

/// `(a0 + 2 b0, a1 - b1)` of (s32, f32).
unsafe extern "C" fn two(arguments: *const *mut u8, begin: u64, end: u64) {
    // SAFETY: four arrays of parameters and two of results.
    unsafe {
        let s32 = |k: usize| (*arguments.add(k)).cast::<i32>();
        let f32 = |k: usize| (*arguments.add(k)).cast::<f32>();
        for i in begin as usize..end as usize {
            *s32(4).add(i) = (*s32(0).add(i)).wrapping_add((*s32(2).add(i)).wrapping_mul(2));
            *f32(5).add(i) = *f32(1).add(i) - *f32(3).add(i);
        }
    }
}

#[test]
fn any_computation() {
    for &(operand, result, window) in WINDOWS {
        let window = if window.is_empty() { String::new() } else { format!("window={{{window}}}, ") };
        let text = format!(
            "HloModule m\nf {{\n  a = s32[] parameter(0)\n  b = f32[] parameter(1)\n  c = s32[] parameter(2)\n  d = f32[] parameter(3)\n  two = s32[] constant(2)\n  t = s32[] multiply(c, two)\n  r = s32[] add(a, t)\n  s = f32[] subtract(b, d)\n  ROOT o = (s32[], f32[]) tuple(r, s)\n}}\nENTRY main {{\n  x = s32[{operand}] parameter(0)\n  y = f32[{operand}] parameter(1)\n  i = s32[] parameter(2)\n  j = f32[] parameter(3)\n  ROOT w = (s32[{result}], f32[{result}]) reduce-window(x, y, i, j), {window}to_apply=f\n}}\n"
        );
        check(&text, 5, true, false, &[two]);
    }
}

/// `log(exp(a) + exp(b))` of f32.
unsafe extern "C" fn log_add_exp(arguments: *const *mut u8, begin: u64, end: u64) {
    // SAFETY: two arrays of parameters and one of results.
    unsafe {
        let column = |k: usize| (*arguments.add(k)).cast::<f32>();
        for i in begin as usize..end as usize {
            let (a, b) = (*column(0).add(i), *column(1).add(i));
            let d = a - b;
            let rest = (-d.abs()).exp().ln_1p();
            *column(2).add(i) = if d.is_nan() { a + b } else { a.max(b) + rest };
        }
    }
}

const LOG_ADD_EXP: &str = "HloModule m
f {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  d = f32[] subtract(a, b)
  ne = pred[] compare(d, d), direction=NE
  sum = f32[] add(a, b)
  max = f32[] maximum(a, b)
  abs = f32[] abs(d)
  neg = f32[] negate(abs)
  exp = f32[] exponential(neg)
  rest = f32[] log-plus-one(exp)
  regular = f32[] add(max, rest)
  ROOT r = f32[] select(ne, sum, regular)
}
";

/// Windows that share their log-sum-exp, few lines in chunks and many as they are.
#[test]
fn log_sum_exp_in_any_order() {
    let form = |dims: &str, window: &str| {
        format!(
            "{LOG_ADD_EXP}ENTRY main {{\n  x = f32[{dims}] parameter(0)\n  i = f32[] parameter(1)\n  ROOT w = f32[{dims}] reduce-window(x, i), window={{{window}}}, to_apply=f\n}}\n"
        )
    };
    for (dims, up, down) in [
        ("1", "size=1 pad=0_0", "size=2 pad=0_1"),
        ("33", "size=33 pad=32_0", "size=33 pad=0_32"),
        ("1500", "size=1500 pad=1499_0", "size=1500 pad=0_1499"),
        ("2,300,3", "size=1x300x1 pad=0_0x299_0x0_0", "size=1x300x1 pad=0_0x0_299x0_0"),
        ("4100,3", "size=1x3 pad=0_0x2_0", "size=1x3 pad=0_0x0_2"),
        ("2,3,4100", "size=1x3x1 pad=0_0x2_0x0_0", "size=1x3x1 pad=0_0x0_2x0_0"),
        ("0,40", "size=1x40 pad=0_0x39_0", "size=1x40 pad=0_0x0_39"),
        ("40,0", "size=40x1 pad=39_0x0_0", "size=40x1 pad=0_39x0_0"),
    ] {
        for (seed, window) in [(1, up), (2, down)] {
            close_with(&form(dims, window), seed, 256.0, &[log_add_exp]);
        }
    }
    // Computed window by window, as many would take hours.
    let module = parse(&form("2000000", "size=2000000 pad=0_1999999"));
    let x = arguments(&module, &Random::new(1), false);
    assert_eq!(called(&module, &x, &[log_add_exp], 2).len(), 1);
}
