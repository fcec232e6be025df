//! Small windows and short sums, unrolled into expressions, against the interpreter.

use crate::loops::tests::{fused, reduction, region};
use crate::kernel_tests::{Close, check_with};

/// Dimensions, the window, the dimensions of the result: windows that reach over the ends, with gaps, some of
/// which see nothing, of short rows and of long ones.
const WINDOWS: [(&str, &str, &str); 12] = [
    ("[9,5]", "size=3x1 stride=2x1", "[4,5]"),
    ("[40,112]", "size=1x3 stride=1x2 pad=0_0x1_1", "[40,56]"),
    ("[70,33,3]", "size=1x2x1 stride=1x2x1 pad=0_0x0_1x0_0", "[70,17,3]"),
    ("[300,5]", "size=1x4 stride=1x2", "[300,1]"),
    ("[301,3]", "size=3x1 stride=3x1 pad=1_1x0_0", "[101,3]"),
    ("[7,130]", "size=1x4 stride=1x2 rhs_dilate=1x3", "[7,61]"),
    ("[64]", "size=2 stride=3 pad=7_9", "[27]"),
    ("[100]", "size=3 stride=2 pad=-3_1", "[48]"),
    ("[2,14,14,3]", "size=1x3x3x1 stride=1x2x2x1 pad=0_0x0_1x1_1x0_0", "[2,7,7,3]"),
    ("[3,20,16]", "size=1x2x2 stride=1x2x2", "[3,10,8]"),
    ("[5,8,66]", "size=2x1x3 stride=3x1x2 pad=1_1x0_0x1_0", "[2,8,33]"),
    ("[6,40]", "size=9x1 stride=2x1 pad=4_4x0_0", "[3,40]"),
];

/// Of what is computed before, with something after.
fn windows(ty: &str, op: &str, (from, window, to): (&str, &str, &str)) -> String {
    let body = format!(
        "  m = {ty}{from} {op}(p0, p2)\n  w = {ty}{to} reduce-window(m, p1), window={{{window}}}, to_apply=f\n  \
         ROOT r = {ty}{to} {op}(w, w)"
    );
    let parameters = [format!("{ty}{from}"), format!("{ty}[]"), format!("{ty}{from}")];
    let parameters: Vec<&str> = parameters.iter().map(String::as_str).collect();
    fused("kLoop", &parameters, &format!("{ty}{to}"), &body, &region("f", ty, op))
}

#[test]
fn windows_that_are_exact() {
    for window in WINDOWS {
        for (ty, op) in [
            ("f32", "maximum"),
            ("f64", "multiply"),
            ("bf16", "minimum"),
            ("s8", "add"),
            ("u16", "maximum"),
            ("s4", "minimum"),
            ("pred", "or"),
            ("u64", "xor"),
            ("f8e5m2", "maximum"),
        ] {
            check_with(&windows(ty, op, window), 5, None, Close::Exact);
        }
    }
}

/// Rounded once.
#[test]
fn sums_of_few() {
    for (ty, bound) in [("f32", 1e-6), ("f64", 1e-14), ("bf16", 0.008), ("f16", 0.001)] {
        for window in WINDOWS {
            check_with(&windows(ty, "add", window), 6, Some(100), Close::Within(bound));
        }
        for (from, dims, to) in
            [("[77,2]", "1", "[77]"), ("[3,5,64]", "0", "[5,64]"), ("[9,2,31,2]", "1,3", "[9,31]")]
        {
            check_with(&reduction(ty, "add", from, dims, to), 7, Some(100), Close::Within(bound));
        }
    }
}
