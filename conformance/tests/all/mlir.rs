//! StableHLO on the command line: told by content, converted, run, tested.

use std::path::PathBuf;

use libtest_mimic::Trial;

use crate::cli::{Dir, ends, err, hlo, json_lines, out};
use crate::function;

const DOT: &str = "// A comment first.\nmodule @jit_f attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {\n  \
                   func.func public @main(%arg0: tensor<2x3xf32>, %arg1: tensor<3xf32>) -> tensor<2xf32> {\n    %0 = \
                   stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<3xf32>) -> \
                   tensor<2xf32>\n    return %0 : tensor<2xf32>\n  }\n}\n";

const CHECKS: &str = "func.func @right() {\n  %x = stablehlo.constant dense<[1, 2]> : tensor<2xi32>\n  %y = stablehlo.add %x, %x : \
                      tensor<2xi32>\n  check.expect_eq_const %y, dense<[2, 4]> : tensor<2xi32>\n  func.return\n}\n\n// \
                      -----\n\nfunc.func @wrong() {\n  %x = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>\n  \
                      check.expect_almost_eq_const %x, dense<[1.0, 2.5]> : tensor<2xf32>\n  func.return\n}\n\n// \
                      -----\n\nmodule {\n  func.func @f(%x: tensor<2xi32>) -> tensor<2xi32> {\n    %s = \
                      \"stablehlo.all_reduce\"(%x) ({\n    ^bb0(%a: tensor<i32>, %b: tensor<i32>):\n      %c = stablehlo.add \
                      %a, %b : tensor<i32>\n      stablehlo.return %c : tensor<i32>\n    }) {replica_groups = dense<[[0, 1]]> \
                      : tensor<1x2xi64>} : (tensor<2xi32>) -> tensor<2xi32>\n    return %s : tensor<2xi32>\n  }\n  func.func \
                      @main() {\n    %x = stablehlo.constant dense<[1, 2]> : tensor<2xi32>\n    %r:2 = \
                      \"interpreter.run_parallel\"(%x, %x) {programs = [[@f], [@f]]} : (tensor<2xi32>, tensor<2xi32>) -> \
                      (tensor<2xi32>, tensor<2xi32>)\n    check.expect_eq_const %r#1, dense<[2, 4]> : tensor<2xi32>\n    \
                      func.return\n  }\n}\n";

const UNKNOWN: &str = "func.func @main(%x: tensor<?x3xf32>) -> tensor<?xf32> {\n  %z = stablehlo.constant dense<0.0> : \
                       tensor<f32>\n  %r = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [1] : \
                       (tensor<?x3xf32>, tensor<f32>) -> tensor<?xf32>\n  return %r : tensor<?xf32>\n}\n";

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        function("mlir/every command takes it", commands),
        function("mlir/spans are those of the text", spans),
        function("mlir/exit codes", exit_codes),
        function("mlir/functions that check themselves are cases", checks),
        function("mlir/shapes of arguments", shapes),
        function("mlir/sums of quantized products", quantized),
        function("mlir/stablehlo's own tests", own_tests),
    ]
}

fn commands() {
    let d = Dir::new();
    let file = d.file("program.txt", DOT);
    ends(&hlo(&["verify", &file]), 0);
    ends(&hlo(&["run", &file]), 0);
    let o = hlo(&["print", &file]);
    ends(&o, 0);
    assert!(out(&o).contains(
        "ROOT %dot = f32[2] dot(%arg0, %arg1), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    ));
    ends(&hlo(&["print", "--check-roundtrip", &file]), 0);
    ends(&hlo(&["opt", &file]), 0);
    // The HLO is the same program.
    let again = d.file("again.hlo", out(&o));
    let (a, b) = (hlo(&["run", "--json", &file]), hlo(&["run", "--json", &again]));
    let results = |o| json_lines(o)[0]["results"].clone();
    assert_eq!(results(&a), results(&b));
}

fn spans() {
    let d = Dir::new();
    let text = DOT.replace("contracting_dims = [1] x [0]", "contracting_dims = [2] x [0]");
    let o = hlo(&["verify", "--json", &d.file("a.mlir", text)]);
    ends(&o, 4);
    let error = &json_lines(&o)[0]["errors"][0];
    assert_eq!((error["code"].as_str(), error["line"].as_u64()), (Some("V0701"), Some(4)), "{error}");
    let o = hlo(&["run", &d.file("b.mlir", DOT.replace("%arg0, %arg1, contr", "%arg0, %other, contr"))]);
    ends(&o, 3);
    assert!(err(&o).contains("`%other` is not defined above"), "{}", err(&o));
}

fn exit_codes() {
    let d = Dir::new();
    let file = |name: &str, text: &str| d.file(name, text);
    ends(&hlo(&["verify", &file("a.mlir", "module {\n")]), 3);
    ends(&hlo(&["verify", &file("b.mlir", "module {\n}\n")]), 4);
    let other = DOT.replace(
        "stablehlo.dot_general %arg0",
        "\"other.op\"() : () -> ()\n    %0 = stablehlo.dot_general %arg0",
    );
    ends(&hlo(&["verify", &file("c.mlir", &other.replacen("%0 = \"other", "\"other", 1))]), 5);
    ends(&hlo(&["run", &file("d.mlir", CHECKS)]), 3);
    ends(&hlo(&["print", &file("d.mlir", CHECKS), "--module", "4"]), 2);
    ends(&hlo(&["print", &file("d.mlir", CHECKS), "--module", "right"]), 0);
}

fn checks() {
    let d = Dir::new();
    d.file("tests/a.mlir", CHECKS);
    let o = hlo(&["test", "--json", d.path("tests").to_str().unwrap()]);
    ends(&o, 1);
    let found: Vec<(String, String)> = json_lines(&o)
        .iter()
        .filter_map(|l| {
            Some((l["case"].as_str()?.rsplit('/').next()?.to_owned(), l["status"].as_str()?.to_owned()))
        })
        .collect();
    let expected = [("a.mlir@right", "pass"), ("a.mlir@wrong", "fail"), ("a.mlir@main", "pass")];
    assert_eq!(found, expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
    assert!(out(&o).contains("element [1] is 2.0, not 2.5 (tolerance 0.0001)"), "{}", out(&o));
}

fn shapes() {
    let d = Dir::new();
    let file = d.file("unknown.mlir", UNKNOWN);
    let o = hlo(&["print", &file]);
    ends(&o, 5);
    assert!(err(&o).contains("U0004"), "{}", err(&o));
    let o = hlo(&["print", &file, "--module", "main(f32[5,3])"]);
    ends(&o, 0);
    assert!(out(&o).contains("f32[5] reduce("), "{}", out(&o));
    ends(&hlo(&["print", &file, "--module", "main(f32[5,4])"]), 4);
    // Inputs say them, too.
    let saved = |name: &str| {
        let path = d.path(name).to_str().unwrap().to_owned();
        ends(&hlo(&["run", &file, "--module", "main(f32[7,3])", "--save-inputs", &path]), 0);
        path
    };
    let o = hlo(&["run", &file, "--inputs", &saved("in.npz")]);
    ends(&o, 0);
    assert!(out(&o).contains("f32[7,3] -> f32[7]"), "{}", out(&o));
    let four = UNKNOWN.replace("x3xf32", "x4xf32");
    ends(&hlo(&["run", &d.file("four.mlir", four), "--inputs", d.path("in.npz").to_str().unwrap()]), 4);
    ends(&hlo(&["run", &file]), 5);
}

/// Expected values are by hand.
fn quantized() {
    let d = Dir::new();
    d.file("tests/quantized.mlir", include_str!("quantized.mlir"));
    let o = hlo(&["test", "--json", d.path("tests").to_str().unwrap()]);
    ends(&o, 0);
    let passed = json_lines(&o).iter().filter(|l| l["status"] == "pass").count();
    assert_eq!(passed, include_str!("quantized.mlir").matches("func.func @").count(), "{}", out(&o));
}

/// Those that a checkout has beside it, or that `HLO_STABLEHLO` names.
fn own_tests() {
    let shared = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/stablehlo");
    let folder = std::env::var_os("HLO_STABLEHLO").map_or(shared, PathBuf::from);
    if !folder.join("testdata").is_dir() {
        eprintln!("skipped: no StableHLO beside this checkout (HLO_STABLEHLO names its folder)");
        return;
    }
    for (below, most_failed) in [("tests/interpret", 10), ("testdata/quantized", 0)] {
        let o = hlo(&["test", folder.join(below).to_str().unwrap()]);
        let text = out(&o);
        let last = text.lines().last().unwrap_or_default();
        let number = |word: &str| -> usize {
            let before = last.split(&format!(" {word}")).next().unwrap_or_default();
            before.rsplit(' ').next().unwrap_or_default().parse().unwrap_or(usize::MAX)
        };
        assert!(number("failed") <= most_failed && number("passed") > 100, "{below}: {last}");
    }
}
