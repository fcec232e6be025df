//! Reductions: every combiner, sizes around those of warps and blocks, rows, columns and chunks, with
//! producers and epilogues.

use std::fmt::Write;

use crate::support;
use crate::support::faults::assert_barriers_matter;
use crate::support::{EXACT, Tolerance, check, check_on, check_with};
use hlo_gpu::arch::Arch;
use hlo_gpu::compile::Options;
use hlo_gpu::program::Program;

/// Arguments are multiples of 2^-10 of magnitude 2 at most: sums of 2^13 of them are exact in f32.
const EXACT_SUMS: i64 = 1 << 13;

/// A rounding of each of that many terms, of f32: of sums relative to the sum of magnitudes, which is no more
/// than `spread` times the largest result; of products relative to the product.
fn rounded(terms: i64, spread: f64) -> Tolerance {
    Tolerance(terms as f64 * f64::from(f32::EPSILON) * spread)
}

fn dims(of: &[i64]) -> String {
    of.iter().map(i64::to_string).collect::<Vec<_>>().join(",")
}

/// A binary operation as a computation.
fn region(name: &str, ty: &str, op: &str) -> String {
    format!(
        "{name} {{\n  a = {ty}[] parameter(0)\n  b = {ty}[] parameter(1)\n  ROOT r = {ty}[] {op}(a, b)\n}}\n"
    )
}

/// One reduction of a parameter.
fn reduction(ty: &str, of: &[i64], along: &[i64], op: &str, initial: &str) -> String {
    let kept: Vec<i64> = (0..of.len()).filter(|&d| !along.contains(&(d as i64))).map(|d| of[d]).collect();
    let mut text = format!("HloModule m\n{}", region("f", ty, op));
    let (of, kept, along) = (dims(of), dims(&kept), dims(along));
    writeln!(text, "ENTRY e {{\n  x = {ty}[{of}] parameter(0)\n  i = {ty}[] constant({initial})").unwrap();
    writeln!(text, "  ROOT r = {ty}[{kept}] reduce(x, i), dimensions={{{along}}}, to_apply=f\n}}").unwrap();
    text
}

/// Along which dimensions what is reduced.
const SHAPES: &[(&[i64], &[i64])] = &[
    (&[1], &[0]),
    (&[31], &[0]),
    (&[32], &[0]),
    (&[33], &[0]),
    (&[255], &[0]),
    (&[257], &[0]),
    (&[1023], &[0]),
    (&[4096], &[0]),
    (&[5, 31], &[1]),
    (&[7, 32], &[1]),
    (&[3, 33], &[1]),
    (&[2, 1024], &[1]),
    (&[2, 1025], &[1]),
    (&[300, 6], &[1]),
    (&[6, 300], &[0]),
    (&[31, 33], &[0]),
    (&[256, 128], &[0]),
    (&[257, 3], &[0]),
    (&[4, 9, 40], &[1]),
    (&[4, 9, 40], &[0, 2]),
    (&[4, 9, 40], &[0, 1]),
    (&[4, 9, 40], &[1, 2]),
    (&[4, 9, 40], &[0, 1, 2]),
    (&[3, 4, 5, 6, 2], &[1, 3]),
    (&[5, 0], &[1]),
    (&[0, 5], &[1]),
    (&[1, 64], &[0]),
];

#[test]
fn sums_of_every_shape() {
    for (of, along) in SHAPES {
        assert!(of.iter().product::<i64>() <= EXACT_SUMS * 4);
        check(&reduction("f32", of, along, "add", "1.5"), EXACT);
    }
}

#[test]
fn sums_of_every_shape_on_ampere() {
    for (of, along) in SHAPES {
        check_on(&reduction("bf16", of, along, "add", "-0"), Arch::Sm80, EXACT, 3);
    }
}

#[test]
fn every_combiner_and_type() {
    let shapes: &[(&[i64], &[i64])] = &[(&[3, 70], &[1]), (&[70, 3], &[0]), (&[9, 5, 4], &[0, 2])];
    let types: &[(&str, &[&str], &str)] = &[
        ("s32", &["add", "multiply", "maximum", "minimum", "and", "or", "xor"], "3"),
        ("u8", &["add", "multiply", "maximum", "minimum", "and", "or", "xor"], "3"),
        ("s4", &["add", "maximum", "minimum", "xor"], "-3"),
        ("u16", &["add", "minimum"], "9"),
        ("s64", &["add", "maximum", "minimum", "xor"], "-7"),
        ("pred", &["and", "or", "xor", "add", "multiply", "maximum"], "true"),
        ("f32", &["maximum", "minimum"], "0.5"),
        ("f64", &["add", "maximum", "minimum"], "0.25"),
        ("f16", &["add", "maximum", "minimum"], "0.5"),
        ("bf16", &["add", "maximum", "minimum"], "0.5"),
        ("f8e4m3fn", &["maximum", "minimum"], "0.5"),
        ("f8e5m2", &["maximum"], "0.5"),
    ];
    for (ty, ops, initial) in types {
        for op in *ops {
            for (of, along) in shapes {
                check(&reduction(ty, of, along, op, initial), EXACT);
            }
        }
    }
}

#[test]
fn products_of_floats_and_complex_numbers() {
    for (of, along) in [(&[3i64, 70][..], &[1i64][..]), (&[40, 33], &[0])] {
        check(&reduction("f32", of, along, "multiply", "1"), rounded(70, 1.0));
        check(&reduction("c64", of, along, "add", "(1, 2)"), rounded(70, 1.0));
        check(&reduction("c128", of, along, "add", "(1, 2)"), rounded(70, 1.0));
        check(&reduction("c64", of, along, "multiply", "(1, 0)"), rounded(4 * 70, 1.0));
    }
}

#[test]
fn what_may_not_be_reordered_keeps_its_order() {
    for (of, along) in
        [(&[3i64, 70][..], &[1i64][..]), (&[70, 3], &[0]), (&[9, 5, 4], &[0, 2]), (&[40], &[0])]
    {
        check(&reduction("s32", of, along, "subtract", "3"), EXACT);
        check(&reduction("f32", of, along, "subtract", "0.5"), EXACT);
    }
    // A computation of unknown algebra.
    check(
        "HloModule m\nf {\n  a = s32[] parameter(0)\n  b = s32[] parameter(1)\n  t = s32[] constant(3)\n  p = s32[] multiply(a, t)\n  ROOT r = s32[] add(p, b)\n}\nENTRY e {\n  x = s32[6,50] parameter(0)\n  i = s32[] constant(1)\n  ROOT r = s32[6] reduce(x, i), dimensions={1}, to_apply=f\n}\n",
        EXACT,
    );
}

/// JAX's argmax (`GT`) or argmin (`LT`) of f32.
fn extreme(ty: &str, direction: &str) -> String {
    let nan = if ty.starts_with('s') {
        "  first = pred[] compare(a, b), direction=DIR\n"
    } else {
        "  g = pred[] compare(a, b), direction=DIR\n  n = pred[] compare(a, a), direction=NE\n  first = pred[] or(g, n)\n"
    };
    let text = format!(
        "f {{\n  a = TY[] parameter(0)\n  i = s32[] parameter(1)\n  b = TY[] parameter(2)\n  j = s32[] parameter(3)\n{nan}  v = TY[] select(first, a, b)\n  q = pred[] compare(a, b), direction=EQ\n  l = pred[] compare(i, j), direction=LT\n  t = pred[] and(q, l)\n  k = pred[] or(first, t)\n  w = s32[] select(k, i, j)\n  ROOT r = (TY[], s32[]) tuple(v, w)\n}}\n"
    );
    text.replace("TY", ty).replace("DIR", direction)
}

#[test]
fn places_of_extremes() {
    for (ty, direction, initial) in
        [("f32", "GT", "-inf"), ("f32", "LT", "inf"), ("bf16", "GT", "-inf"), ("s32", "GT", "-100")]
    {
        for (of, along) in [([5i64, 300], 1), ([300, 5], 0), ([1, 9000], 1), ([33, 33], 0)] {
            let (whole, kept) = (dims(&of), of[1 - along]);
            for wanted in ["index", "both"] {
                let (root, shape) = match wanted {
                    "index" => (
                        format!("ROOT r = s32[{kept}] get-tuple-element(p), index=1"),
                        format!("p = ({ty}[{kept}], s32[{kept}])"),
                    ),
                    _ => (String::new(), format!("ROOT p = ({ty}[{kept}], s32[{kept}])")),
                };
                let text = format!(
                    "HloModule m\n{}ENTRY e {{\n  x = {ty}[{whole}] parameter(0)\n  n = s32[{whole}] iota(), iota_dimension={along}\n  i = {ty}[] constant({initial})\n  z = s32[] constant(0)\n  {shape} reduce(x, n, i, z), dimensions={{{along}}}, to_apply=f\n  {root}\n}}\n",
                    extreme(ty, direction)
                );
                check(&text, EXACT);
            }
        }
    }
}

/// Whether a kernel has two launches.
fn is_in_chunks(program: &Program) -> bool {
    program.ptx.iter().any(|p| p.contains("_chunks"))
}

#[test]
fn few_long_results_are_cut_into_chunks() {
    // Rows, columns, one value; chunks that are not all of one length.
    for (of, along) in [
        (&[65536i64][..], &[0i64][..]),
        (&[70001], &[0]),
        (&[2, 40000], &[1]),
        (&[20000, 5], &[0]),
        (&[4096, 128], &[0]),
        (&[3000, 36], &[0]),
    ] {
        let program = check(&reduction("s32", of, along, "add", "3"), EXACT);
        assert!(is_in_chunks(&program), "{of:?}");
        check(&reduction("f32", of, along, "maximum", "-inf"), EXACT);
    }
    // The sum of 2^16 numbers of magnitude 2, of which many cancel.
    check(&reduction("f32", &[65536], &[0], "add", "0"), rounded(65536, 1.0));
    check(&reduction("bf16", &[65536], &[0], "add", "0"), Tolerance(1.0 / 256.0));
}

#[test]
fn producers_and_epilogues() {
    for (of, along) in [([40i64, 70], 1), ([70, 40], 0), ([3, 5000], 1)] {
        let (whole, kept, row) = (dims(&of), of[1 - along], 1 - along);
        let terms = of[along];
        // Variance and mean of one pass, with what follows.
        let text = format!(
            "HloModule m\n{}ENTRY e {{\n  x = f32[{whole}] parameter(0)\n  y = f32[{whole}] parameter(1)\n  w = f32[{kept}] parameter(2)\n  b = f32[{whole}] broadcast(w), dimensions={{{row}}}\n  d = f32[{whole}] subtract(x, b)\n  s = f32[{whole}] multiply(d, y)\n  q = f32[{whole}] multiply(d, d)\n  z = f32[] constant(0)\n  r1 = f32[{kept}] reduce(s, z), dimensions={{{along}}}, to_apply=f\n  r2 = f32[{kept}] reduce(q, z), dimensions={{{along}}}, to_apply=f\n  e1 = f32[{kept}] sqrt(r2)\n  e2 = f32[{kept}] multiply(r1, w)\n  ROOT t = (f32[{kept}], f32[{kept}]) tuple(e1, e2)\n}}\n",
            region("f", "f32", "add")
        );
        // Terms of magnitude 16 at most and results of about their root.
        check(&text, rounded(terms, (terms as f64).sqrt() * 16.0));
    }
    // A transposed operand, a reversed one, a pad.
    check(
        &format!(
            "HloModule m\n{}ENTRY e {{\n  x = s32[33,40] parameter(0)\n  t = s32[40,33] transpose(x), dimensions={{1,0}}\n  v = s32[40,33] reverse(t), dimensions={{1}}\n  z = s32[] constant(0)\n  p = s32[42,36] pad(v, z), padding=1_1x0_3\n  n = s32[42,36] negate(p)\n  ROOT r = s32[42] reduce(n, z), dimensions={{1}}, to_apply=f\n}}\n",
            region("f", "s32", "maximum")
        ),
        EXACT,
    );
}

#[test]
fn reductions_of_different_spaces_and_of_one_another() {
    check(
        &format!(
            "HloModule m\n{}ENTRY e {{\n  x = s32[12,40] parameter(0)\n  z = s32[] constant(0)\n  n = s32[12,40] negate(x)\n  a = s32[12] reduce(n, z), dimensions={{1}}, to_apply=f\n  b = s32[40] reduce(n, z), dimensions={{0}}, to_apply=f\n  c = s32[] reduce(a, z), dimensions={{0}}, to_apply=f\n  ROOT t = (s32[12], s32[40], s32[]) tuple(a, b, c)\n}}\n",
            region("f", "s32", "add")
        ),
        EXACT,
    );
}

#[test]
fn contractions_that_are_reductions() {
    // Of batches without free dimensions; the sum of products of magnitude 4.
    let attrs =
        "lhs_contracting_dims={0,1}, lhs_batch_dims={2}, rhs_contracting_dims={0,1}, rhs_batch_dims={2}";
    check(
        &format!(
            "HloModule m\nENTRY e {{\n  x = f32[6,20,48] parameter(0)\n  y = f32[6,20,48] parameter(1)\n  d = f32[48] dot(x, y), {attrs}\n  ROOT s = f32[48] negate(d)\n}}\n"
        ),
        rounded(120, 30.0),
    );
    check(
        "HloModule m\nENTRY e {\n  x = s32[900] parameter(0)\n  y = s32[900] parameter(1)\n  ROOT d = s32[] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n}\n",
        EXACT,
    );
}

#[test]
fn wide_loads_and_no_local_memory() {
    for (of, along) in [(&[64i64, 4096][..], &[1i64][..]), (&[4096, 512], &[0]), (&[1 << 17], &[0])] {
        let program = check(&reduction("f32", of, along, "maximum", "-inf"), EXACT);
        let text = program.ptx.join("\n");
        assert!(text.contains("ld.global.v4") && !text.contains(".local"), "{of:?}\n{text}");
    }
}

#[test]
fn without_a_barrier_reductions_race() {
    for (of, along) in [(&[3i64, 1024][..], &[1i64][..]), (&[1024, 40], &[0])] {
        assert_barriers_matter(&reduction("f32", of, along, "add", "0"));
    }
}

#[test]
fn without_optimization() {
    for (of, along) in [(&[7i64, 33][..], &[1i64][..]), (&[33, 7], &[0]), (&[70001], &[0])] {
        let options = Options { opt_level: 0, ..Options::default() };
        check_with(&reduction("s32", of, along, "add", "3"), &options, EXACT, 1);
    }
}

#[test]
fn more_elements_than_32_bits_count() {
    for (of, along) in [
        (&[5_000_000_000i64][..], &[0i64][..]),
        (&[3, 3_000_000_000], &[1]),
        (&[3_000_000_000, 3], &[1]),
        (&[3, 3_000_000_000], &[0]),
    ] {
        let module = support::parse(&reduction("s8", of, along, "add", "3"));
        let program = support::compiled(&module, Arch::Sm90);
        hlo_gpu::interpreted::Modules::new(&program).unwrap();
    }
}
