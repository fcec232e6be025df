//! Transposes in tiles: sizes around tiles, types, permutations, elementwise work around them, edges, and
//! what is not tiled.

use crate::support::{EXACT, check, check_on};
use hlo_gpu::arch::Arch;
use hlo_gpu::program::Program;

fn transpose(ty: &str, from: &str, to: &str, permutation: &str) -> String {
    format!(
        "HloModule m\nENTRY e {{\n  x = {ty}[{from}] parameter(0)\n  ROOT t = {ty}[{to}] transpose(x), dimensions={{{permutation}}}\n}}\n"
    )
}

fn is_tiled(program: &Program) -> bool {
    program.ptx.iter().any(|p| p.contains("_tile0"))
}

#[test]
fn sizes() {
    for (a, b) in [(32, 32), (31, 33), (64, 96), (100, 9), (8, 200), (65, 64), (1023, 33)] {
        let text = transpose("f32", &format!("{a},{b}"), &format!("{b},{a}"), "1,0");
        assert!(is_tiled(&check(&text, EXACT)), "{text}");
    }
    for (a, b) in [(1, 100), (100, 1), (3, 700), (700, 7)] {
        check(&transpose("f32", &format!("{a},{b}"), &format!("{b},{a}"), "1,0"), EXACT);
    }
}

#[test]
fn types() {
    for ty in ["pred", "s8", "u4", "bf16", "f16", "s32", "f64", "c64", "c128", "f8e4m3fn"] {
        for n in [40, 128, 130] {
            let text = transpose(ty, &format!("{n},70"), &format!("70,{n}"), "1,0");
            assert!(is_tiled(&check_on(&text, Arch::Sm80, EXACT, 1)), "{text}");
        }
    }
}

#[test]
fn permutations() {
    for (from, to, permutation, tiled) in [
        ("3,40,50", "3,50,40", "0,2,1", true),
        ("3,40,50", "50,40,3", "2,1,0", false),
        ("40,3,50", "50,3,40", "2,1,0", true),
        ("2,9,10,33", "2,33,9,10", "0,3,1,2", true),
        ("2,33,9,10", "2,9,10,33", "0,2,3,1", true),
        ("20,30,40", "30,20,40", "1,0,2", false),
        ("4,8,4,8", "8,4,8,4", "1,0,3,2", false),
    ] {
        let text = transpose("f32", from, to, permutation);
        assert_eq!(is_tiled(&check(&text, EXACT)), tiled, "{text}");
    }
}

#[test]
fn fusions() {
    for text in [
        // Both ways, and results of several types.
        "x = f32[40,70] parameter(0)\n  y = f32[70,40] parameter(1)\n  t = f32[70,40] transpose(x), dimensions={1,0}\n  s = f32[70,40] add(t, y)\n  c = f64[70,40] convert(s)\n  ROOT r = (f32[70,40], f64[70,40]) tuple(s, c)",
        // Two that are read across, one of them twice.
        "x = f32[40,70] parameter(0)\n  y = bf16[40,70] parameter(1)\n  c = f32[40,70] convert(y)\n  a = f32[40,70] add(x, c)\n  m = f32[40,70] multiply(a, x)\n  ROOT t = f32[70,40] transpose(m), dimensions={1,0}",
        // Guards: padding, slices, reversal.
        "x = f32[40,70] parameter(0)\n  z = f32[] constant(3)\n  p = f32[45,75] pad(x, z), padding=2_3x4_1\n  t = f32[75,45] transpose(p), dimensions={1,0}\n  ROOT n = f32[75,45] negate(t)",
        "x = f32[40,70] parameter(0)\n  r = f32[40,70] reverse(x), dimensions={0}\n  s = f32[38,66] slice(r), slice={[1:39], [3:69]}\n  ROOT t = f32[66,38] transpose(s), dimensions={1,0}",
        // Dynamic slices of it.
        "x = f32[40,70] parameter(0)\n  i = s32[] parameter(1)\n  d = f32[33,34] dynamic-slice(x, i, i), dynamic_slice_sizes={33,34}\n  ROOT t = f32[34,33] transpose(d), dimensions={1,0}",
        // The same operand as it is and across.
        "x = f32[70,70] parameter(0)\n  t = f32[70,70] transpose(x), dimensions={1,0}\n  ROOT s = f32[70,70] subtract(x, t)",
        // Counting and broadcasts beside it.
        "x = s32[40,70] parameter(0)\n  t = s32[70,40] transpose(x), dimensions={1,0}\n  i = s32[70,40] iota(), iota_dimension=1\n  b = s32[40] parameter(1)\n  c = s32[70,40] broadcast(b), dimensions={1}\n  u = s32[70,40] add(t, i)\n  ROOT s = s32[70,40] add(u, c)",
        // A reshape of it.
        "x = f32[6,40,7] parameter(0)\n  t = f32[40,6,7] transpose(x), dimensions={1,0,2}\n  n = f32[40,6,7] negate(t)\n  ROOT r = f32[40,42] reshape(n)",
    ] {
        check(&format!("HloModule m\nENTRY e {{\n  {text}\n}}\n"), EXACT);
    }
}
