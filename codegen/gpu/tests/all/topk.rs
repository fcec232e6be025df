//! Top-k: types, both directions, lengths and numbers around what a block sorts, the custom call.

use crate::support::{EXACT, check, check_on};
use hlo_gpu::arch::Arch;

fn topk(ty: &str, rows: &str, len: i64, k: i64, largest: bool) -> String {
    format!(
        "HloModule m\nENTRY e {{\n  x = {ty}[{rows}{len}] parameter(0)\n  ROOT t = ({ty}[{rows}{k}], s32[{rows}{k}]) topk(x), k={k}, largest={largest}\n}}\n"
    )
}

#[test]
fn lengths() {
    for (rows, len, k) in [
        ("", 1, 1),
        ("", 33, 5),
        ("3,", 40, 40),
        ("2,3,", 31, 2),
        ("", 2048, 7),
        ("", 2049, 1),
        ("2,", 5000, 3),
        ("", 3000, 2500),
        ("", 9000, 900),
        ("2,", 2500, 100),
        ("3,", 1500, 16),
        ("0,", 5, 2),
    ] {
        check(&topk("s32", rows, len, k, true), EXACT);
        check_on(&topk("f32", rows, len, k, false), Arch::Sm80, EXACT, 2);
    }
}

#[test]
fn types() {
    for ty in [
        "pred",
        "s8",
        "u8",
        "s16",
        "u32",
        "s64",
        "u64",
        "bf16",
        "f16",
        "f64",
        "f8e4m3fn",
        "f8e5m2fnuz",
        "f8e8m0fnu",
        "s4",
    ] {
        for largest in [true, false] {
            check(&topk(ty, "2,", 70, 9, largest), EXACT);
        }
    }
}

#[test]
fn custom_calls() {
    for (comparator, called) in [
        ("", ""),
        (
            "c {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT l = pred[] compare(a, b), direction=GT, type=TOTALORDER\n}\n",
            ", called_computations={c}",
        ),
        (
            "c {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  i = s32[] parameter(2)\n  j = s32[] parameter(3)\n  ROOT l = pred[] compare(a, b), direction=LT\n}\n",
            ", called_computations={c}",
        ),
    ] {
        check(
            &format!(
                "HloModule m\n{comparator}ENTRY e {{\n  x = f32[3,200] parameter(0)\n  ROOT t = (f32[3,6], s32[3,6]) custom-call(x), custom_call_target=\"TopK\"{called}\n}}\n"
            ),
            EXACT,
        );
    }
}
