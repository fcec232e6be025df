//! Scatters: every attribute, combiners with and without an order, numbers of updates around what is walked
//! and sorted.

use crate::support::{EXACT, check, check_on};
use hlo_gpu::arch::Arch;

/// A scatter of rows or elements: operand, indices and updates of these dimensions, attributes, and the
/// combiner's root.
fn scatter(ty: &str, [operand, indices, updates]: [&str; 3], attrs: &str, f: &str) -> String {
    format!(
        "HloModule m\nf {{\n  a = {ty}[] parameter(0)\n  b = {ty}[] parameter(1)\n  ROOT r = {ty}[] {f}\n}}\nENTRY e {{\n  x = {ty}[{operand}] parameter(0)\n  i = s32[{indices}] parameter(1)\n  u = {ty}[{updates}] parameter(2)\n  ROOT s = {ty}[{operand}] scatter(x, i, u), {attrs}, to_apply=f\n}}\n"
    )
}

const ELEMENTS: &str =
    "update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1";
const ROWS: &str =
    "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1";

#[test]
fn elements() {
    for n in [1, 2, 31, 64, 65, 1023, 3000] {
        let (indices, updates) = (format!("{n},1"), n.to_string());
        for f in ["add(a, b)", "subtract(b, a)", "maximum(a, b)"] {
            check(&scatter("f32", ["9", &indices, &updates], ELEMENTS, f), EXACT);
        }
        check(&scatter("s32", ["9", &indices, &updates], ELEMENTS, "add(a, b)"), EXACT);
    }
}

#[test]
fn updates_by_digits() {
    // Indices are from -8 to 8: some outside of either end.
    for (operand, n) in [("7", 8192), ("8", 8193), ("300", 10_241)] {
        let (indices, updates) = (format!("{n},1"), n.to_string());
        let program =
            check(&scatter("f32", [operand, &indices, &updates], ELEMENTS, "subtract(b, a)"), EXACT);
        assert!(program.ptx.concat().contains("_distribute"), "not by digits");
    }
    check(&scatter("f32", ["70000,2", "12300,1", "12300,2"], ROWS, "add(a, b)"), EXACT);
}

#[test]
fn combiners_of_integers() {
    for ty in ["s32", "u32", "s64", "u64", "s8", "u16", "pred"] {
        for f in [
            "maximum(a, b)",
            "minimum(a, b)",
            "and(a, b)",
            "or(b, a)",
            "xor(a, b)",
            "add(a, b)",
            "copy(b)",
            "copy(a)",
        ] {
            if ty == "pred" && f == "add(a, b)" {
                continue;
            }
            check(&scatter(ty, ["7", "70,1", "70"], ELEMENTS, f), EXACT);
        }
    }
}

#[test]
fn types() {
    for ty in ["bf16", "f16", "f64", "c64", "c128", "f8e5m2"] {
        check(&scatter(ty, ["7", "70,1", "70"], ELEMENTS, "add(a, b)"), EXACT);
        // Products of complex numbers are exact to no bit.
        let f = if ty.starts_with('c') { "add(b, a)" } else { "multiply(a, b)" };
        check(&scatter(ty, ["7,3", "20,1", "20,3"], ROWS, f), EXACT);
    }
}

#[test]
fn rows() {
    for n in [1, 20, 70, 2100] {
        let (indices, updates) = (format!("{n},1"), format!("{n},5"));
        check(&scatter("f32", ["11,5", &indices, &updates], ROWS, "add(a, b)"), EXACT);
        check_on(&scatter("f32", ["11,5", &indices, &updates], ROWS, "copy(b)"), Arch::Sm80, EXACT, 2);
    }
    let first = "update_window_dims={0}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1";
    check(&scatter("f32", ["11,5", "80,1", "5,80"], first, "add(a, b)"), EXACT);
}

#[test]
fn windows_that_overlap() {
    let attrs = "update_window_dims={1,2}, inserted_window_dims={}, scatter_dims_to_operand_dims={1,0}, index_vector_dim=1";
    for n in [1, 3, 90] {
        let (indices, updates) = (format!("{n},2"), format!("{n},2,3"));
        check(&scatter("f32", ["9,10", &indices, &updates], attrs, "add(a, b)"), EXACT);
    }
    let vector_first = "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0,1}, index_vector_dim=0";
    check(&scatter("f32", ["9,10", "2,80", "80,4"], vector_first, "subtract(b, a)"), EXACT);
}

#[test]
fn batching_dimensions() {
    let attrs = "update_window_dims={}, inserted_window_dims={1}, scatter_dims_to_operand_dims={1}, input_batching_dims={0}, scatter_indices_batching_dims={0}, index_vector_dim=2";
    for n in [3, 50] {
        let (indices, updates) = (format!("4,{n},1"), format!("4,{n}"));
        check(&scatter("f32", ["4,6", &indices, &updates], attrs, "add(a, b)"), EXACT);
    }
}

#[test]
fn no_updates_and_unique_ones() {
    check(&scatter("f32", ["9", "0,1", "0"], ELEMENTS, "add(a, b)"), EXACT);
    check(&scatter("f32", ["0", "5,1", "5"], ELEMENTS, "add(a, b)"), EXACT);
    let text = "HloModule m\nf {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT r = f32[] add(a, b)\n}\nENTRY e {\n  x = f32[500] parameter(0)\n  n = s32[400,1] iota(), iota_dimension=0\n  i = s32[400,1] negate(n)\n  c = s32[] constant(498)\n  d = s32[400,1] broadcast(c), dimensions={}\n  j = s32[400,1] add(i, d)\n  u = f32[400] parameter(1)\n  ROOT s = f32[500] scatter(x, j, u), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, unique_indices=true, to_apply=f\n}\n";
    check(text, EXACT);
}

#[test]
fn several_operands_and_fused_ones() {
    let text = |n: i64| {
        format!(
            "HloModule m\nf {{\n  a = f32[] parameter(0)\n  b = s32[] parameter(1)\n  c = f32[] parameter(2)\n  d = s32[] parameter(3)\n  s = f32[] add(a, c)\n  t = s32[] subtract(d, b)\n  ROOT r = (f32[], s32[]) tuple(s, t)\n}}\nENTRY e {{\n  x = f32[9] parameter(0)\n  y = s32[9] parameter(1)\n  i = s32[{n},1] parameter(2)\n  u = f32[{n}] parameter(3)\n  v = s32[{n}] parameter(4)\n  ROOT s = (f32[9], s32[9]) scatter(x, y, i, u, v), update_window_dims={{}}, inserted_window_dims={{0}}, scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=f\n}}\n"
        )
    };
    check(&text(20), EXACT);
    check(&text(200), EXACT);
    let fused = "HloModule m\nf {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT r = f32[] add(a, b)\n}\nENTRY e {\n  z = f32[] constant(0)\n  x = f32[9] broadcast(z), dimensions={}\n  i = s32[100,1] parameter(0)\n  u = f32[100] parameter(1)\n  v = f32[100] multiply(u, u)\n  ROOT s = f32[9] scatter(x, i, v), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=f\n}\n";
    check(fused, EXACT);
}
