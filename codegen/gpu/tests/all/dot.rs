//! Contractions: all forms, element types and sizes around the borders of tiles.

use crate::support::{EXACT, Tolerance, check, check_on, check_with};
use hlo_gpu::arch::Arch;
use hlo_gpu::compile::{Options, Products};

/// A program of one `dot` of operands of these shapes, with these attributes.
fn dot(lhs: &str, rhs: &str, result: &str, attributes: &str) -> String {
    format!(
        "HloModule m\nENTRY e {{\n  x = {lhs} parameter(0)\n  y = {rhs} parameter(1)\n  ROOT d = {result} dot(x, y), {attributes}\n}}\n"
    )
}

/// Contracts the last dimension of the left operand with the first of the right one.
const PLAIN: &str = "lhs_contracting_dims={1}, rhs_contracting_dims={0}";

/// Sums of `k` products, of at most 4 each, in the 24 bits of `f32`; relative to the largest result.
fn single(k: u32) -> Tolerance {
    Tolerance(f64::from(k) * 2f64.powi(-22))
}

/// The same, rounded to 8 bits.
const HALF: Tolerance = Tolerance(0.008);

#[test]
fn any_dimensions_in_any_order() {
    let cases = [
        ("s32[5,7]", "s32[7,3]", "s32[5,3]", PLAIN),
        ("s32[7,5]", "s32[3,7]", "s32[5,3]", "lhs_contracting_dims={0}, rhs_contracting_dims={1}"),
        ("s32[7]", "s32[7]", "s32[]", "lhs_contracting_dims={0}, rhs_contracting_dims={0}"),
        ("s32[4,7]", "s32[7]", "s32[4]", PLAIN),
        ("s32[7]", "s32[7,4]", "s32[4]", "lhs_contracting_dims={0}, rhs_contracting_dims={0}"),
        (
            "s32[2,5,7]",
            "s32[2,7,3]",
            "s32[2,5,3]",
            "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}",
        ),
        (
            "s32[5,2,7,3]",
            "s32[7,4,3,2]",
            "s32[3,2,5,4]",
            "lhs_batch_dims={3,1}, rhs_batch_dims={2,3}, lhs_contracting_dims={2}, rhs_contracting_dims={0}",
        ),
        (
            "s32[3,4,5,6]",
            "s32[5,2,3,7]",
            "s32[4,6,2,7]",
            "lhs_contracting_dims={2,0}, rhs_contracting_dims={0,2}",
        ),
        ("s32[5]", "s32[3]", "s32[5,3]", "lhs_contracting_dims={}, rhs_contracting_dims={}"),
        ("s32[5,0]", "s32[0,3]", "s32[5,3]", PLAIN),
        ("s32[0,5]", "s32[5,3]", "s32[0,3]", PLAIN),
    ];
    for (lhs, rhs, result, attributes) in cases {
        check(&dot(lhs, rhs, result, attributes), EXACT);
    }
}

#[test]
fn every_element_type() {
    for ty in ["s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64", "pred", "s4", "u4", "s2"] {
        check(&dot(&format!("{ty}[6,9]"), &format!("{ty}[9,5]"), &format!("{ty}[6,5]"), PLAIN), EXACT);
    }
    let floats = [
        ("f32", 2e-6),
        ("f64", 1e-14),
        ("bf16", 0.008),
        ("f16", 0.001),
        ("c64", 2e-6),
        ("c128", 1e-14),
        ("f8e5m2", 0.0),
        ("f8e4m3fn", 0.0),
        ("f8e4m3b11fnuz", 0.0),
    ];
    for (ty, tolerance) in floats {
        let text = dot(&format!("{ty}[6,9]"), &format!("{ty}[9,5]"), &format!("{ty}[6,5]"), PLAIN);
        check(&text, Tolerance(tolerance));
    }
    let mixed = [
        ("bf16", "bf16", "f32", 1e-6),
        ("f8e4m3fn", "f8e5m2", "f32", 1e-6),
        ("s8", "s8", "s32", 0.0),
        ("u8", "s8", "s32", 0.0),
        ("f32", "bf16", "f32", 1e-6),
        ("f32", "f32", "bf16", 0.008),
        ("f32", "f32", "f64", 1e-6),
        ("f16", "f16", "s32", 0.0),
        ("s32", "s32", "s8", 0.0),
    ];
    for (lhs, rhs, result, tolerance) in mixed {
        let text = dot(&format!("{lhs}[6,9]"), &format!("{rhs}[9,5]"), &format!("{result}[6,5]"), PLAIN);
        check(&text, Tolerance(tolerance));
    }
}

#[test]
fn what_follows_is_in_the_same_kernel() {
    let program = check(
        "HloModule m\nENTRY e {\n  x = f32[20,30] parameter(0)\n  y = f32[30,24] parameter(1)\n  b = f32[24] parameter(2)\n  r = f32[20,24] parameter(3)\n  d = f32[20,24] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n  bb = f32[20,24] broadcast(b), dimensions={1}\n  s = f32[20,24] add(d, bb)\n  z = f32[] constant(0)\n  zz = f32[20,24] broadcast(z), dimensions={}\n  m = f32[20,24] maximum(s, zz)\n  ROOT t = f32[20,24] multiply(m, r)\n}\n",
        single(30),
    );
    assert_eq!(program.plan.launches(), 1);
    check(
        "HloModule m\nENTRY e {\n  x = bf16[2,20,30] parameter(0)\n  y = bf16[2,30,24] parameter(1)\n  d = bf16[2,20,24] dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}\n  c = f32[2,20,24] convert(d)\n  n = f32[2,20,24] negate(c)\n  ROOT t = (f32[2,20,24], f32[2,20,24]) tuple(c, n)\n}\n",
        HALF,
    );
}

/// Long code is in a loop over rows of a thread.
#[test]
fn long_code_follows() {
    for (ty, m, n) in [("f32", 33, 40), ("bf16", 40, 72), ("bf16", 24, 33)] {
        let text = format!(
            "HloModule m\nENTRY e {{\n  x = {ty}[{m},32] parameter(0)\n  y = {ty}[{n},32] parameter(1)\n  b = {ty}[{n}] parameter(2)\n  d = {ty}[{m},{n}] dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}\n  bb = {ty}[{m},{n}] broadcast(b), dimensions={{1}}\n  s = {ty}[{m},{n}] add(d, bb)\n  ROOT t = {ty}[{m},{n}] tanh(s)\n}}\n"
        );
        assert_eq!(check(&text, HALF).plan.launches(), 1);
    }
}

#[test]
fn older_architectures() {
    for arch in [Arch::Sm75, Arch::Sm80] {
        check_on(&dot("f32[33,40]", "f32[40,17]", "f32[33,17]", PLAIN), arch, single(40), 3);
        check_on(&dot("bf16[33,40]", "bf16[40,17]", "bf16[33,17]", PLAIN), arch, HALF, 3);
        check_on(&dot("s8[33,40]", "s8[40,17]", "s32[33,17]", PLAIN), arch, EXACT, 3);
    }
}

#[test]
fn groups_whose_sizes_are_data() {
    let program = |lhs: &str, rhs: &str, sizes: &str, result: &str, attributes: &str| {
        format!(
            "HloModule m\nENTRY e {{\n  x = {lhs} parameter(0)\n  y = {rhs} parameter(1)\n  c = {sizes} parameter(2)\n  ROOT d = {result} ragged-dot(x, y, c), {attributes}\n}}\n"
        )
    };
    for seed in 1..4 {
        check_on(
            &program(
                "s32[11,5]",
                "s32[3,5,2]",
                "s32[3]",
                "s32[11,2]",
                "lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}",
            ),
            Arch::Sm90,
            EXACT,
            seed,
        );
        check_on(
            &program(
                "s32[11,5]",
                "s32[11,2]",
                "s32[3]",
                "s32[3,5,2]",
                "lhs_contracting_dims={0}, rhs_contracting_dims={0}, lhs_ragged_dims={0}",
            ),
            Arch::Sm90,
            EXACT,
            seed,
        );
        check_on(
            &program(
                "s32[9,4,5]",
                "s32[9,5,2]",
                "s32[3]",
                "s32[9,4,2]",
                "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}, lhs_ragged_dims={0}",
            ),
            Arch::Sm90,
            EXACT,
            seed,
        );
    }
}

/// Of a type without zero they are the pattern of zeros, not what 0 is converted to.
#[test]
fn rows_of_no_group_are_zeros() {
    let free = "f8e8m0fnu[3,2] ragged-dot(x, y, c), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}";
    let batch = "f8e8m0fnu[3,2,2] ragged-dot(x, y, c), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}, lhs_ragged_dims={0}";
    for (lhs, rhs, root) in [("3,1", "2,1,2", free), ("3,2,1", "3,1,2", batch)] {
        let program = format!(
            "HloModule m\nENTRY e {{\n  x = f8e8m0fnu[{lhs}] parameter(0)\n  y = f8e8m0fnu[{rhs}] parameter(1)\n  c = s32[2] constant({{1, 1}})\n  ROOT d = {root}\n}}\n"
        );
        check_on(&program, Arch::Sm90, EXACT, 1);
    }
}

#[test]
fn operands_with_scales() {
    check(
        "HloModule m\nENTRY e {\n  x = f8e4m3fn[4,8] parameter(0)\n  y = f8e4m3fn[8,6] parameter(1)\n  a = f8e8m0fnu[4,2] parameter(2)\n  b = f8e8m0fnu[4,6] parameter(3)\n  ROOT d = f32[4,6] scaled-dot(x, y, a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n}\n",
        Tolerance(1e-6),
    );
    check(
        "HloModule m\nENTRY e {\n  x = bf16[4,8] parameter(0)\n  y = bf16[8,6] parameter(1)\n  a = bf16[2,8] parameter(2)\n  b = bf16[] parameter(3)\n  ROOT d = f32[4,6] scaled-dot(x, y, a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n}\n",
        Tolerance(1e-6),
    );
}

/// The tile of this many rows, and terms in that many parts.
fn tiled(tile: i64, split: i64) -> Options {
    let products = Products { tile: Some(tile), split: Some(split), ..Products::default() };
    Options { products, ..Options::default() }
}

const LAYOUTS: [(bool, bool); 4] = [(false, false), (false, true), (true, false), (true, true)];

/// A product of `m` rows, `k` terms and `n` columns, of operands that are transposed or not.
fn product(ty: &str, [m, k, n]: [i64; 3], (left, right): (bool, bool), result: &str) -> String {
    let (lhs, l) = if left { (format!("{ty}[{k},{m}]"), 0) } else { (format!("{ty}[{m},{k}]"), 1) };
    let (rhs, r) = if right { (format!("{ty}[{n},{k}]"), 1) } else { (format!("{ty}[{k},{n}]"), 0) };
    let attributes = format!("lhs_contracting_dims={{{l}}}, rhs_contracting_dims={{{r}}}");
    dot(&lhs, &rhs, &format!("{result}[{m},{n}]"), &attributes)
}

#[test]
fn borders_of_tiles() {
    for (tile, sizes) in [
        (128, [[128, 24, 128], [129, 17, 132], [127, 9, 65]].as_slice()),
        (64, &[[64, 32, 64], [65, 33, 68], [63, 7, 129]]),
        (32, &[[32, 32, 32], [33, 63, 36], [7, 129, 9], [1, 127, 64]]),
    ] {
        for &size in sizes {
            for layout in LAYOUTS {
                check_with(&product("s32", size, layout, "s32"), &tiled(tile, 1), EXACT, 5);
            }
            check_with(&product("f32", size, LAYOUTS[0], "f32"), &tiled(tile, 1), single(size[1] as u32), 5);
        }
    }
    for (ty, result, tolerance) in [
        ("f64", "f64", Tolerance(1e-13)),
        ("s64", "s64", EXACT),
        ("s8", "s32", EXACT),
        ("f16", "f32", single(40)),
        ("bf16", "bf16", HALF),
    ] {
        for layout in LAYOUTS {
            let options = Options {
                products: Products { tensor_cores: false, ..tiled(64, 1).products },
                ..tiled(64, 1)
            };
            check_with(&product(ty, [64, 40, 72], layout, result), &options, tolerance, 6);
            check_with(&product(ty, [66, 37, 63], layout, result), &options, tolerance, 6);
        }
    }
}

#[test]
fn terms_in_parts() {
    for (split, size) in [(2, [8, 4096, 8]), (64, [8, 4096, 8]), (4, [33, 300, 17]), (64, [9, 100, 12])] {
        let program = check_with(&product("s32", size, LAYOUTS[0], "s32"), &tiled(32, split), EXACT, 7);
        assert_eq!(program.plan.launches(), 2);
    }
    check_with(
        "HloModule m\nENTRY e {\n  x = f32[3,20,300] parameter(0)\n  y = f32[3,300,24] parameter(1)\n  b = f32[24] parameter(2)\n  d = f32[3,20,24] dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}\n  bb = f32[3,20,24] broadcast(b), dimensions={2}\n  ROOT s = f32[3,20,24] add(d, bb)\n}\n",
        &tiled(32, 4),
        single(300),
        8,
    );
}

#[test]
fn batches_and_dimensions_apart() {
    check_with(
        &dot(
            "s32[17,2,24,3]",
            "s32[24,20,3,2]",
            "s32[3,2,17,20]",
            "lhs_batch_dims={3,1}, rhs_batch_dims={2,3}, lhs_contracting_dims={2}, rhs_contracting_dims={0}",
        ),
        &tiled(32, 1),
        EXACT,
        9,
    );
    // Contracted dimensions that are not one in memory.
    check_with(
        &dot(
            "s32[6,20,8]",
            "s32[6,8,5,4]",
            "s32[20,5,4]",
            "lhs_contracting_dims={0,2}, rhs_contracting_dims={0,1}",
        ),
        &tiled(32, 1),
        EXACT,
        9,
    );
}

/// Sums on tensor cores are truncated, of each 16 terms: twice the bound of rounded ones.
fn truncated(k: u32) -> Tolerance {
    Tolerance(2.0 * single(k).0)
}

#[test]
fn tensor_cores() {
    for arch in [Arch::Sm80, Arch::Sm90] {
        for (tile, sizes) in [
            (256, [[128, 64, 256], [136, 72, 264]].as_slice()),
            (128, &[[128, 128, 128], [72, 40, 136], [200, 24, 24]]),
            (64, &[[64, 64, 64], [8, 200, 72]]),
        ] {
            for &size in sizes {
                for (i, layout) in LAYOUTS.into_iter().enumerate() {
                    let options = Options { arch, ..tiled(tile, 1) };
                    let ty = if i % 2 == 0 { "bf16" } else { "f16" };
                    let text = product(ty, size, layout, "f32");
                    let program = check_with(&text, &options, truncated(size[1] as u32), 10);
                    let ptx = program.ptx.join("\n");
                    for (part, is_wanted) in [("mma.sync", true), ("cp.async", true), (".local", false)] {
                        assert_eq!(
                            ptx.contains(part),
                            is_wanted,
                            "{part} {tile} {arch}
{text}
{ptx}"
                        );
                    }
                }
            }
        }
    }
    // What is gathered: sizes of which a chunk is no part.
    for (tile, size) in [(64, [40, 70, 33]), (128, [130, 67, 132]), (64, [66, 129, 36])] {
        for layout in LAYOUTS {
            let program =
                check_with(&product("bf16", size, layout, "f32"), &tiled(tile, 1), truncated(130), 14);
            assert!(program.ptx.join("").contains("mma.sync"));
        }
    }
    // Bytes, with signs or not.
    for (lhs, rhs, result) in
        [("s8", "s8", "s32"), ("u8", "s8", "s32"), ("s8", "u8", "s32"), ("u8", "u8", "u8")]
    {
        let attributes = "lhs_contracting_dims={1}, rhs_contracting_dims={1}";
        let text = dot(
            &format!("{lhs}[40,144]"),
            &format!("{rhs}[33,144]"),
            &format!("{result}[40,33]"),
            attributes,
        );
        for options in [tiled(64, 1), tiled(128, 2)] {
            let program = check_with(&text, &options, EXACT, 13);
            assert!(program.ptx.join("").contains("mma.sync.aligned.m16n8k32"), "{text}");
        }
    }
    for split in [2, 5] {
        let text = product("bf16", [40, 328, 24], LAYOUTS[1], "bf16");
        assert_eq!(check_with(&text, &tiled(64, split), HALF, 11).plan.launches(), 2);
    }
    // Odd columns, batches.
    check_with(&product("f16", [24, 64, 33], LAYOUTS[1], "f16"), &tiled(64, 1), Tolerance(0.001), 12);
    check_with(
        &dot(
            "bf16[3,40,64]",
            "bf16[3,64,48]",
            "f32[3,40,48]",
            "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}",
        ),
        &tiled(64, 1),
        truncated(64),
        12,
    );
}

/// Products with few vectors: matrices of either layout, on either side, rows that fill no block, terms in
/// parts.
#[test]
fn matrices_and_few_vectors() {
    for (size, launches) in [
        ([64, 512, 1], 1),
        ([33, 300, 1], 1),
        ([1, 300, 70], 1),
        ([4, 64, 200], 1),
        ([200, 68, 8], 1),
        ([40, 24, 3], 1),
        ([1, 8192, 32], 2),
    ] {
        for layout in LAYOUTS {
            let program = check(&product("s32", size, layout, "s32"), EXACT);
            assert!(program.plan.launches() <= launches, "{size:?} {layout:?}");
            check(&product("f32", size, layout, "f32"), single(size[1] as u32));
            check(&product("bf16", size, layout, "bf16"), HALF);
        }
    }
    check(
        &dot("f32[65536]", "f32[65536]", "f32[]", "lhs_contracting_dims={0}, rhs_contracting_dims={0}"),
        single(1024),
    );
    check(
        &dot(
            "s8[3,2048]",
            "s8[3,40,2048]",
            "s32[3,40]",
            "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={1}, rhs_contracting_dims={2}",
        ),
        EXACT,
    );
}
