//! Pretty and generic forms are the same module.

use hlo_mlir::print::{PrintOptions, print};

use crate::{generic, read};

/// That two texts are one module, and that what is printed of it reads back.
#[track_caller]
fn same(pretty: &str, in_full: &str) {
    let (a, b) = (generic(&read(pretty)), generic(&read(in_full)));
    assert_eq!(a, b);
    assert_eq!(generic(&read(&a)), a, "what is printed reads back");
}

/// An operation on arguments, in both forms.
#[track_caller]
fn operation(arguments: &str, pretty: &str, in_full: &str) {
    let function = |body: &str| format!("func.func @f({arguments}) {{\n  {body}\n  return\n}}\n");
    same(&function(pretty), &function(in_full));
}

#[test]
fn elementwise() {
    let x = "%x: tensor<2xf32>, %y: tensor<2xf32>";
    operation(
        x,
        "%0 = stablehlo.abs %x : tensor<2xf32>",
        "%0 = \"stablehlo.abs\"(%x) : (tensor<2xf32>) -> tensor<2xf32>",
    );
    operation(
        x,
        "%0 = stablehlo.convert %x : (tensor<2xf32>) -> tensor<2xi32>",
        "%0 = \"stablehlo.convert\"(%x) : (tensor<2xf32>) -> tensor<2xi32>",
    );
    operation(
        x,
        "%0 = stablehlo.add %x, %y {a = 1 : i64} : tensor<2xf32>",
        "%0 = \"stablehlo.add\"(%x, %y) {a = 1 : i64} : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>",
    );
    operation(
        x,
        "%0 = stablehlo.compare LT, %x, %y, TOTALORDER : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>",
        "%0 = \"stablehlo.compare\"(%x, %y) <{comparison_direction = #stablehlo<comparison_direction LT>, \
         compare_type = #stablehlo<comparison_type TOTALORDER>}> : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>",
    );
    operation(
        x,
        "%0 = stablehlo.complex %x, %y : tensor<2xcomplex<f32>>",
        "%0 = \"stablehlo.complex\"(%x, %y) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xcomplex<f32>>",
    );
    operation(
        "%p: tensor<i1>, %x: tensor<2xf32>",
        "%0 = stablehlo.select %p, %x, %x : tensor<i1>, tensor<2xf32>",
        "%0 = \"stablehlo.select\"(%p, %x, %x) : (tensor<i1>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>",
    );
    operation(
        x,
        "%0 = stablehlo.reduce_precision %x, format = e5m10 : tensor<2xf32>",
        "%0 = \"stablehlo.reduce_precision\"(%x) <{exponent_bits = 5 : i32, mantissa_bits = 10 : i32}> : \
         (tensor<2xf32>) -> tensor<2xf32>",
    );
}

#[test]
fn movement() {
    let x = "%x: tensor<4x6xf32>, %z: tensor<f32>, %i: tensor<i32>";
    operation(
        x,
        "%0 = stablehlo.slice %x [1:3, 0:6:2] : (tensor<4x6xf32>) -> tensor<2x3xf32>",
        "%0 = \"stablehlo.slice\"(%x) <{start_indices = array<i64: 1, 0>, limit_indices = array<i64: 3, 6>, \
         strides = array<i64: 1, 2>}> : (tensor<4x6xf32>) -> tensor<2x3xf32>",
    );
    operation(
        x,
        "%0 = stablehlo.pad %x, %z, low = [0, -1], high = [1, 0], interior = [0, 2] : (tensor<4x6xf32>, tensor<f32>) -> \
         tensor<5x15xf32>",
        "%0 = \"stablehlo.pad\"(%x, %z) <{edge_padding_low = array<i64: 0, -1>, edge_padding_high = array<i64: 1, 0>, \
         interior_padding = array<i64: 0, 2>}> : (tensor<4x6xf32>, tensor<f32>) -> tensor<5x15xf32>",
    );
    operation(
        x,
        "%0 = stablehlo.concatenate %x, %x, dim = 1 : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x12xf32>",
        "%0 = \"stablehlo.concatenate\"(%x, %x) <{dimension = 1 : i64}> : (tensor<4x6xf32>, tensor<4x6xf32>) -> \
         tensor<4x12xf32>",
    );
    operation(
        x,
        "%0 = stablehlo.dynamic_slice %x, %i, %i, sizes = [2, 2] : (tensor<4x6xf32>, tensor<i32>, tensor<i32>) -> \
         tensor<2x2xf32>",
        "%0 = \"stablehlo.dynamic_slice\"(%x, %i, %i) <{slice_sizes = array<i64: 2, 2>}> : (tensor<4x6xf32>, \
         tensor<i32>, tensor<i32>) -> tensor<2x2xf32>",
    );
    operation(
        "",
        "%0 = stablehlo.iota dim = 0 : tensor<4xi32>",
        "%0 = \"stablehlo.iota\"() <{iota_dimension = 0 : i64}> : () -> tensor<4xi32>",
    );
}

#[test]
fn contractions() {
    let x = "%a: tensor<8x4x3xf32>, %b: tensor<8x3x5xf32>";
    operation(
        x,
        "%0 = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [HIGH, \
         DEFAULT] : (tensor<8x4x3xf32>, tensor<8x3x5xf32>) -> tensor<8x4x5xf32>",
        "%0 = \"stablehlo.dot_general\"(%a, %b) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], \
         rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>, \
         precision_config = [#stablehlo<precision HIGH>, #stablehlo<precision DEFAULT>]}> : (tensor<8x4x3xf32>, \
         tensor<8x3x5xf32>) -> tensor<8x4x5xf32>",
    );
    operation(
        "%a: tensor<1x8x3xf32>, %k: tensor<2x3x4xf32>",
        "%0 = stablehlo.convolution(%a, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [1], pad = \
         [[0, 1]], reverse = [false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : \
         (tensor<1x8x3xf32>, tensor<2x3x4xf32>) -> tensor<1x8x4xf32>",
        "%0 = \"stablehlo.convolution\"(%a, %k) <{dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, \
         window_strides = array<i64: 1>, padding = dense<[[0, 1]]> : tensor<1x2xi64>, window_reversal = array<i1: \
         false>, batch_group_count = 1 : i64, feature_group_count = 1 : i64}> : (tensor<1x8x3xf32>, tensor<2x3x4xf32>) \
         -> tensor<1x8x4xf32>",
    );
}

#[test]
fn regions() {
    operation(
        "%x: tensor<4xf32>, %z: tensor<f32>",
        "%0 = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) \
         -> tensor<f32>",
        "%0 = \"stablehlo.reduce\"(%x, %z) <{dimensions = array<i64: 0>}> ({\n  ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n    \
         %s = \"stablehlo.add\"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>\n    \"stablehlo.return\"(%s) : \
         (tensor<f32>) -> ()\n  }) : (tensor<4xf32>, tensor<f32>) -> tensor<f32>",
    );
    operation(
        "%n: tensor<i32>",
        "%0 = stablehlo.while(%i = %n) : tensor<i32>\n  cond {\n    %c = stablehlo.compare LT, %i, %i : (tensor<i32>, \
         tensor<i32>) -> tensor<i1>\n    stablehlo.return %c : tensor<i1>\n  } do {\n    stablehlo.return %i : \
         tensor<i32>\n  }",
        "%0 = \"stablehlo.while\"(%n) ({\n  ^bb0(%i: tensor<i32>):\n    %c = \"stablehlo.compare\"(%i, %i) \
         <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>\n    \
         \"stablehlo.return\"(%c) : (tensor<i1>) -> ()\n  }, {\n  ^bb0(%j: tensor<i32>):\n    \"stablehlo.return\"(%j) : \
         (tensor<i32>) -> ()\n  }) : (tensor<i32>) -> tensor<i32>",
    );
}

#[test]
fn functions_and_modules() {
    same(
        "module @m attributes {n = 2 : i32} {\n  func.func private @f(%x: tensor<f32> {a = \"b\"}) -> (tensor<f32> {c}) {\n    \
         return %x : tensor<f32>\n  }\n}\n",
        "\"builtin.module\"() <{sym_name = \"m\"}> ({\n  \"func.func\"() <{sym_visibility = \"private\", sym_name = \"f\", \
         function_type = (tensor<f32>) -> tensor<f32>, arg_attrs = [{a = \"b\"}], res_attrs = [{c}]}> ({\n  ^bb0(%x: \
         tensor<f32>):\n    \"func.return\"(%x) : (tensor<f32>) -> ()\n  }) : () -> ()\n}) {n = 2 : i32} : () -> ()\n",
    );
}

#[test]
fn elements() {
    let constant =
        |value: &str| format!("func.func @f() {{\n  %0 = stablehlo.constant {value}\n  return\n}}\n");
    for (a, b) in [
        ("dense<[1.0, 2.5]> : tensor<2xf32>", "dense<\"0x0000803F00002040\"> : tensor<2xf32>"),
        ("dense<0x7FC00000> : tensor<f32>", "dense<\"0x0000C07F\"> : tensor<f32>"),
        ("dense<-1> : tensor<3xi8>", "dense<255> : tensor<3xi8>"),
        ("dense<[[1, -2], [3, 4]]> : tensor<2x2xi16>", "dense<\"0x0100FEFF03000400\"> : tensor<2x2xi16>"),
        ("dense<(1.0, -2.0)> : tensor<complex<f32>>", "dense<\"0x0000803F000000C0\"> : tensor<complex<f32>>"),
        ("dense<[true, false, true]> : tensor<3xi1>", "dense<\"0x05\"> : tensor<3xi1>"),
        ("dense<1.5> : tensor<f8E4M3FN>", "dense<0x3C> : tensor<f8E4M3FN>"),
        ("dense<[-8, 7]> : tensor<2xi4>", "dense<\"0xF807\"> : tensor<2xi4>"),
    ] {
        same(&constant(a), &constant(b));
    }
}

#[test]
fn aliases_locations_and_resources() {
    let text = "#at = loc(\"name\")\n!t = tensor<2xf32>\nmodule {\n  func.func @f(%x: !t loc(#later)) -> !t {\n    %0 = \
                stablehlo.constant dense_resource<blob> : !t loc(#later)\n    %1 = stablehlo.add %x, %0 : !t \
                loc(callsite(\"f\"(\"a.py\":1:2) at #at))\n    return %1 : !t loc(fused<\"m\">[#at, unknown])\n  } \
                loc(#at)\n} loc(unknown)\n#later = loc(\"b.py\":3:4 to 5:6)\n{-#\n  dialect_resources: {\n    builtin: {\n      blob: \
                \"0x040000000000803F00000040\"\n    }\n  },\n  external_resources: {\n    other: { x: true }\n  }\n#-}\n";
    let printed = generic(&read(text));
    assert_eq!(generic(&read(&printed)), printed);
    for part in [
        "\"b.py\":3:4 to 5:6",
        "callsite(\"f\"(\"a.py\":1:2) at \"name\")",
        "fused<\"m\">[\"name\", unknown]",
    ] {
        assert!(printed.contains(part), "{part} in {printed}");
    }
    assert!(printed.contains("blob: \"0x040000000000803F00000040\""), "{printed}");
}

#[test]
fn types_of_every_kind() {
    for ty in [
        "tensor<?x4xf32, #stablehlo.bounds<8, ?>>",
        "tensor<*xf64>",
        "tuple<tensor<i1>, tuple<>>",
        "!stablehlo.token",
        "!stablehlo.future<tensor<2xi32>, tensor<f16>>",
        "tensor<2x!quant.uniform<u8<0:15>:f32:0, {0.5:2, 0.25}>>",
        "tensor<4x!quant.uniform<i8:f32:{0:2}, {0.5, 0.25:-1}>>",
        "vector<4xf32>",
        "memref<2xf32>",
        "!other.kind<\"x\", 3>",
        "none",
        "tensor<0xui64>",
    ] {
        let text = format!("\"a.b\"() {{t = {ty}}} : () -> ()\n");
        let printed = generic(&read(&text));
        assert_eq!(generic(&read(&printed)), printed, "{ty}");
    }
}

/// As JAX writes it, with the locations of arguments where it puts them.
#[test]
fn manual_computations() {
    let text = "#loc1 = loc(\"shard_map\")\nmodule {\n  sdy.mesh @mesh = <[\"x\"=2]>\n  func.func @main(%arg0: \
                tensor<4x2xf32> loc(\"a\"), %arg1: tensor<2xf32> loc(\"b\")) -> (tensor<4x2xf32>, tensor<f32>) {\n    %0:2 = \
                sdy.manual_computation(%arg0, %arg1) in_shardings=[<@mesh, [{\"x\"}, {}]>, <@mesh, [{?}]>] \
                out_shardings=[<@mesh, [{\"x\"}, {}]>, <@mesh, []>] manual_axes={\"x\"} (%arg2: tensor<2x2xf32> \
                loc(\"shard_map:\"(#loc1)), %arg3: tensor<2xf32> loc(#loc2)) {\n      %1 = stablehlo.slice %arg3 [0:1] : \
                (tensor<2xf32>) -> tensor<1xf32>\n      %2 = stablehlo.reshape %1 : (tensor<1xf32>) -> tensor<f32>\n      \
                sdy.return %arg2, %2 : tensor<2x2xf32>, tensor<f32>\n    } {jax.kept = true} : (tensor<4x2xf32>, \
                tensor<2xf32>) -> (tensor<4x2xf32>, tensor<f32>) loc(#loc2)\n    %3 = sdy.manual_computation() \
                in_shardings=[] out_shardings=[<@mesh, []>] manual_axes={} () {\n      %c = stablehlo.constant dense<1> : \
                tensor<i32>\n      sdy.return %c : tensor<i32>\n    } : () -> tensor<i32>\n    return %0#0, %0#1 : \
                tensor<4x2xf32>, tensor<f32>\n  }\n}\n#loc2 = loc(\"f.py\":3:4)\n";
    let module = read(text);
    let pretty = print(&module, &PrintOptions::PRETTY);
    for part in [
        "%0:2 = sdy.manual_computation(%arg0, %arg1) in_shardings=[<@mesh, [{\"x\"}, {}]>, <@mesh, [{?}]>] \
         out_shardings=[<@mesh, [{\"x\"}, {}]>, <@mesh, []>] manual_axes={\"x\"} (%arg2: tensor<2x2xf32> \
         loc(\"shard_map:\"(\"shard_map\")), %arg3: tensor<2xf32> loc(\"f.py\":3:4)) {\n",
        "    } {jax.kept = true} : (tensor<4x2xf32>, tensor<2xf32>) -> (tensor<4x2xf32>, tensor<f32>) loc(\"f.py\":3:4)\n",
        "sdy.manual_computation() in_shardings=[] out_shardings=[<@mesh, []>] manual_axes={} () {\n",
        "    } : () -> tensor<i32>\n",
    ] {
        assert!(pretty.contains(part), "{part}\n{pretty}");
    }
    let located = |text: &str| print(&read(text), &PrintOptions::default());
    assert_eq!(located(&pretty), located(text), "what is printed reads back");
}

/// The forms that CHLO's own printer writes.
#[test]
fn broadcasts_of_chlo() {
    let x = "%x: tensor<4xf32>, %y: tensor<2x4xf32>, %p: tensor<i1>";
    for (pretty, in_full) in [
        (
            "%0 = chlo.broadcast_add %x, %y {broadcast_dimensions = array<i64: 1>} : (tensor<4xf32>, tensor<2x4xf32>) -> \
             tensor<2x4xf32>",
            "%0 = \"chlo.broadcast_add\"(%x, %y) <{broadcast_dimensions = array<i64: 1>}> : (tensor<4xf32>, \
             tensor<2x4xf32>) -> tensor<2x4xf32>",
        ),
        (
            "%0 = chlo.broadcast_compare %x, %y {compare_type = #chlo<comparison_type FLOAT>, comparison_direction = \
             #chlo<comparison_direction LT>} : (tensor<4xf32>, tensor<2x4xf32>) -> tensor<2x4xi1>",
            "%0 = \"chlo.broadcast_compare\"(%x, %y) <{compare_type = #chlo<comparison_type FLOAT>, comparison_direction = \
             #chlo<comparison_direction LT>}> : (tensor<4xf32>, tensor<2x4xf32>) -> tensor<2x4xi1>",
        ),
        (
            "%0 = chlo.broadcast_select %p, %x, %x : (tensor<i1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>",
            "%0 = \"chlo.broadcast_select\"(%p, %x, %x) : (tensor<i1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>",
        ),
        (
            "%0 = chlo.constant dense<1.000000e+00> : tensor<4xf32>",
            "%0 = \"chlo.constant\"() <{value = dense<1.000000e+00> : tensor<4xf32>}> : () -> tensor<4xf32>",
        ),
    ] {
        operation(x, pretty, in_full);
        let text = format!("func.func @f({x}) {{\n  {in_full}\n  return\n}}\n");
        let printed = print(&read(&text), &PrintOptions::PRETTY);
        let named = pretty.replace("%x", "%arg0").replace("%y", "%arg1").replace("%p", "%arg2");
        let line = printed.lines().nth(2).unwrap_or_default();
        let body = |line: &str| line.split_once(" = ").map(|(_, body)| body.to_owned());
        assert_eq!(body(line), body(&named), "{printed}");
    }
}
