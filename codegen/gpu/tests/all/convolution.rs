//! Convolutions: any attributes, layouts of dimensions, element types.

use crate::support::{EXACT, Tolerance, check, check_with};
use hlo_gpu::compile::{Options, Products};

/// A program of one `convolution` of operands of these shapes, with these attributes.
fn convolution(lhs: &str, rhs: &str, result: &str, attributes: &str) -> String {
    format!(
        "HloModule m\nENTRY e {{\n  x = {lhs} parameter(0)\n  y = {rhs} parameter(1)\n  ROOT c = {result} convolution(x, y), {attributes}\n}}\n"
    )
}

#[test]
fn any_attributes() {
    let cases = [
        (
            "s32[2,6,7,3]",
            "s32[3,3,3,4]",
            "s32[2,6,7,4]",
            "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f",
        ),
        (
            "s32[2,3,9,8]",
            "s32[4,3,3,2]",
            "s32[2,4,4,5]",
            "window={size=3x2 stride=2x2 pad=0_0x1_1}, dim_labels=bf01_oi01->bf01",
        ),
        (
            "s32[1,6,7,4]",
            "s32[3,2,2,6]",
            "s32[1,8,8,6]",
            "window={size=3x2 pad=2_2x1_1}, dim_labels=b01f_01io->b01f, feature_group_count=2",
        ),
        (
            "s32[4,6,7,3]",
            "s32[3,2,3,6]",
            "s32[2,4,6,6]",
            "window={size=3x2}, dim_labels=b01f_01io->b01f, batch_group_count=2",
        ),
        (
            "s32[1,5,3]",
            "s32[3,3,2]",
            "s32[1,11,2]",
            "window={size=3 pad=2_2 lhs_dilate=2}, dim_labels=b0f_0io->b0f",
        ),
        (
            "s32[1,9,3]",
            "s32[3,3,2]",
            "s32[1,5,2]",
            "window={size=3 rhs_dilate=2 rhs_reversal=1}, dim_labels=b0f_0io->b0f",
        ),
        ("s32[1,9,3]", "s32[3,3,2]", "s32[1,5,2]", "window={size=3 pad=-1_-1}, dim_labels=b0f_0io->b0f"),
        ("s32[3,4]", "s32[4,2]", "s32[3,2]", "dim_labels=bf_io->bf"),
        (
            "s32[3,4,5,2,2]",
            "s32[2,2,2,3,2]",
            "s32[2,2,3,5,3]",
            "window={size=2x2x2 pad=0_0x0_0x1_0}, dim_labels=012bf_012oi->b012f",
        ),
        ("s8[1,6,7,3]", "s8[3,3,3,4]", "s8[1,4,5,4]", "window={size=3x3}, dim_labels=b01f_01io->b01f"),
        ("u8[1,6,7,3]", "u8[3,3,3,4]", "u8[1,4,5,4]", "window={size=3x3}, dim_labels=b01f_01io->b01f"),
        ("s4[1,6,7,3]", "s4[3,3,3,4]", "s4[1,4,5,4]", "window={size=3x3}, dim_labels=b01f_01io->b01f"),
        ("s8[1,6,7,3]", "s8[3,3,3,4]", "s32[1,4,5,4]", "window={size=3x3}, dim_labels=b01f_01io->b01f"),
        ("pred[1,6,7,3]", "pred[2,2,3,4]", "pred[1,5,6,4]", "window={size=2x2}, dim_labels=b01f_01io->b01f"),
        ("s64[1,6,7,3]", "s64[2,2,3,4]", "s64[1,5,6,4]", "window={size=2x2}, dim_labels=b01f_01io->b01f"),
    ];
    for (lhs, rhs, result, attributes) in cases {
        check(&convolution(lhs, rhs, result, attributes), EXACT);
    }
}

/// A feature of a channel each, in windows that are written out and in a loop.
#[test]
fn depthwise() {
    for (window, result) in
        [("size=3x3 pad=1_1x1_1", "[2,6,9,8]"), ("size=3x3 pad=0_2x1_1 lhs_dilate=2x1", "[2,11,9,8]")]
    {
        let attributes = format!("window={{{window}}}, dim_labels=b01f_01io->b01f, feature_group_count=8");
        let of = |ty: &str| {
            convolution(
                &format!("{ty}[2,6,9,8]"),
                &format!("{ty}[3,3,1,8]"),
                &format!("{ty}{result}"),
                &attributes,
            )
        };
        check(&of("s32"), EXACT);
        // 9 products of at most 4 each.
        check(&of("f32"), Tolerance(4e-6));
    }
    check(
        &convolution(
            "s32[2,9,10,6]",
            "s32[7,6,1,12]",
            "s32[2,3,5,12]",
            "window={size=7x6}, dim_labels=b01f_01io->b01f, feature_group_count=6",
        ),
        EXACT,
    );
}

#[test]
fn floats_and_complex_numbers() {
    // 27 products of at most 4 each.
    for (ty, tolerance) in [("f32", 1e-5), ("f64", 1e-14), ("bf16", 0.008), ("f16", 0.001), ("c64", 1e-5)] {
        let text = convolution(
            &format!("{ty}[2,6,7,3]"),
            &format!("{ty}[3,3,3,4]"),
            &format!("{ty}[2,6,7,4]"),
            "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f",
        );
        check(&text, Tolerance(tolerance));
    }
}

/// What is outside of the input is absent: it is no zero that an infinity makes a NaN of.
#[test]
fn holes_are_absent() {
    check(
        "HloModule m\nENTRY e {\n  x = f32[1,5,2] parameter(0)\n  y = f32[3,2,2] constant({{{1,inf},{2,3}},{{-1,0.5},{2,1}},{{inf,1},{1,-inf}}})\n  ROOT c = f32[1,9,2] convolution(x, y), window={size=3 pad=3_3}, dim_labels=b0f_0io->b0f\n}\n",
        Tolerance(1e-6),
    );
}

#[test]
fn what_follows_is_in_the_same_kernel() {
    let program = check(
        "HloModule m\nENTRY e {\n  x = f32[2,6,7,3] parameter(0)\n  y = f32[3,3,3,4] parameter(1)\n  b = f32[4] parameter(2)\n  c = f32[2,6,7,4] convolution(x, y), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f\n  bb = f32[2,6,7,4] broadcast(b), dimensions={3}\n  s = f32[2,6,7,4] add(c, bb)\n  ROOT t = f32[2,6,7,4] tanh(s)\n}\n",
        Tolerance(1e-5),
    );
    assert_eq!(program.plan.launches(), 1);
}

/// As products of patches: in tiles of every size, in parts, on tensor cores, with features last or not,
/// groups, reversal, dilation.
#[test]
fn products_of_patches() {
    let cases = [
        (
            "[2,9,10,8]",
            "[3,3,8,16]",
            "[2,9,10,16]",
            "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f",
        ),
        (
            "[2,9,10,6]",
            "[3,3,6,10]",
            "[2,4,5,10]",
            "window={size=3x3 stride=2x2 pad=0_0x1_1}, dim_labels=b01f_01io->b01f",
        ),
        (
            "[2,6,9,10]",
            "[10,6,3,3]",
            "[2,10,9,10]",
            "window={size=3x3 pad=1_1x1_1}, dim_labels=bf01_oi01->bf01",
        ),
        (
            "[2,9,10,16]",
            "[3,3,8,16]",
            "[2,7,8,16]",
            "window={size=3x3}, dim_labels=b01f_01io->b01f, feature_group_count=2",
        ),
        (
            "[4,9,10,8]",
            "[3,3,8,16]",
            "[2,7,8,16]",
            "window={size=3x3}, dim_labels=b01f_01io->b01f, batch_group_count=2",
        ),
        (
            "[2,9,10,8]",
            "[3,3,8,16]",
            "[2,9,10,16]",
            "window={size=3x3 pad=2_2x1_1 rhs_dilate=2x1 rhs_reversal=1x1}, dim_labels=b01f_01io->b01f",
        ),
        ("[2,9,10,8]", "[1,1,8,16]", "[2,9,10,16]", "window={size=1x1}, dim_labels=b01f_01io->b01f"),
        ("[3,40,8]", "[5,8,16]", "[3,40,16]", "window={size=5 pad=2_2}, dim_labels=b0f_0io->b0f"),
        // Gradients of a strided convolution, by the input and by the kernel.
        (
            "[2,5,6,8]",
            "[3,3,8,16]",
            "[2,9,11,16]",
            "window={size=3x3 pad=1_1x1_1 lhs_dilate=2x2}, dim_labels=b01f_01io->b01f",
        ),
        ("[4,9,10,8]", "[4,7,8,16]", "[3,3,8,16]", "window={size=7x8}, dim_labels=f01b_i01o->01bf"),
    ];
    let options = |tile, split| Options {
        products: Products { tile: Some(tile), split: Some(split), ..Products::default() },
        ..Options::default()
    };
    for (i, (lhs, rhs, result, attributes)) in cases.into_iter().enumerate() {
        let of = |ty: &str, out: &str| {
            convolution(&format!("{ty}{lhs}"), &format!("{ty}{rhs}"), &format!("{out}{result}"), attributes)
        };
        check_with(&of("s32", "s32"), &options(32, 1), EXACT, 2);
        // At most 72 products of at most 4 each.
        check_with(&of("f32", "f32"), &options([32, 64, 128][i % 3], 1), Tolerance(2e-5), 3);
        check_with(&of("f32", "f32"), &options(32, 3), Tolerance(2e-5), 4);
        check_with(&of("bf16", "f32"), &options([64, 128][i % 2], 1), Tolerance(4e-5), 5);
        check_with(&of("f16", "f16"), &options(64, 2), Tolerance(0.001), 6);
    }
}

/// Bytes whose sums fit 32 bits are not saturated, and tensor cores multiply them.
#[test]
fn bytes() {
    let text = convolution(
        "s8[2,9,10,16]",
        "s8[24,3,3,16]",
        "s32[2,9,10,24]",
        "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_o01i->b01f",
    );
    let program = check(&text, EXACT);
    assert!(program.ptx.join("").contains("mma.sync.aligned.m16n8k32"));
}

#[test]
fn holes_in_patches_are_absent() {
    for ty in ["f32", "bf16"] {
        // Infinities where the window is outside of the input at the border.
        let text = format!(
            "HloModule m\nENTRY e {{\n  x = {ty}[2,16,8] parameter(0)\n  y = {ty}[3,8,8] parameter(1)\n  i = s32[3,8,8] iota(), iota_dimension=0\n  z = s32[] constant(0)\n  zz = s32[3,8,8] broadcast(z), dimensions={{}}\n  p = pred[3,8,8] compare(i, zz), direction=EQ\n  inf = {ty}[] constant(inf)\n  ii = {ty}[3,8,8] broadcast(inf), dimensions={{}}\n  k = {ty}[3,8,8] select(p, ii, y)\n  ROOT c = {ty}[2,16,8] convolution(x, k), window={{size=3 pad=1_1}}, dim_labels=b0f_0io->b0f\n}}\n"
        );
        for split in [1, 2] {
            let products = Products { split: Some(split), ..Products::default() };
            check_with(&text, &Options { products, ..Options::default() }, Tolerance(0.008), 1);
        }
    }
}
