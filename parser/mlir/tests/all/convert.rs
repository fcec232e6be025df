//! The HLO that StableHLO becomes.

use hlo::Span;
use hlo::print::{PrintOptions, print_module};
use hlo_mlir::bytecode;
use hlo_mlir::convert::{ConvertOptions, convert};

use crate::read;

/// The HLO text of the function of a text.
fn hlo_of(text: &str) -> String {
    let converted = convert(&read(text), &ConvertOptions::default());
    let module = match converted {
        Ok(converted) => converted.module,
        Err(found) => panic!("{}", hlo::diag::render_all(&found, "test.mlir", text, false)),
    };
    let found = hlo::verify::verify(&module);
    assert!(!found.has_errors(), "{}", hlo::diag::render_all(&found, "test.mlir", text, false));
    print_module(&module, &PrintOptions::source(&module))
}

/// What the conversion refuses a text for.
fn refused(text: &str) -> String {
    let found = convert(&read(text), &ConvertOptions::default()).expect_err("it is refused");
    let first = found.iter().next().expect("an error");
    format!("{} {}", first.code.as_str(), first.message)
}

#[test]
fn a_function_is_a_computation() {
    let text = "module @m {\n  func.func @main(%x: tensor<2xf32> loc(\"in\"), %y: tensor<2xf32>) -> (tensor<2xf32>, \
                tensor<2xf32>) {\n    %s = stablehlo.add %x, %y : tensor<2xf32> loc(\"jit(f)/add\"(\"f.py\":3:1))\n    \
                return %s, %x : tensor<2xf32>, tensor<2xf32>\n  }\n}\n";
    assert_eq!(
        hlo_of(text),
        "HloModule m\n\nENTRY %main (x: f32[2], y: f32[2]) -> (f32[2], f32[2]) {\n  %x = f32[2] parameter(0), \
         metadata={op_name=\"in\"}\n  %y = f32[2] parameter(1)\n  %s = f32[2] add(%x, %y), \
         metadata={op_name=\"jit(f)/add\" source_file=\"f.py\" source_line=3}\n  ROOT %tuple = (f32[2], f32[2]) tuple(%s, \
         %x)\n}\n\n"
    );
}

#[test]
fn what_regions_use_of_outside_becomes_operands() {
    let text = "func.func @main(%n: tensor<i32>, %step: tensor<i32>) -> tensor<i32> {\n  %zero = stablehlo.constant dense<0> : \
                tensor<i32>\n  %r = stablehlo.while(%i = %zero) : tensor<i32>\n  cond {\n    %c = stablehlo.compare LT, %i, \
                %n : (tensor<i32>, tensor<i32>) -> tensor<i1>\n    stablehlo.return %c : tensor<i1>\n  } do {\n    %one = \
                stablehlo.add %zero, %step : tensor<i32>\n    %j = stablehlo.add %i, %one : tensor<i32>\n    \
                stablehlo.return %j : tensor<i32>\n  }\n  return %r : tensor<i32>\n}\n";
    let hlo = hlo_of(text);
    assert!(hlo.contains("condition=%condition, body=%body"), "{hlo}");
    assert!(hlo.contains("(s32[], s32[], s32[])"), "the counter, the limit and the step: {hlo}");
}

#[test]
fn branches_take_what_they_use() {
    let text = "func.func @main(%p: tensor<i1>, %x: tensor<f32>, %y: tensor<f32>) -> tensor<f32> {\n  %r = \
                \"stablehlo.if\"(%p) ({\n    %s = stablehlo.add %x, %y : tensor<f32>\n    stablehlo.return %s : tensor<f32>\n  \
                }, {\n    stablehlo.return %y : tensor<f32>\n  }) : (tensor<i1>) -> tensor<f32>\n  return %r : \
                tensor<f32>\n}\n";
    let hlo = hlo_of(text);
    assert!(hlo.contains("conditional(%p, %tuple, %tuple)"), "{hlo}");
}

#[test]
fn deep_nesting_of_branches_needs_no_stack() {
    const DEPTH: usize = 3000;
    let mut text = String::from("func.func @main(%p: tensor<i1>, %x: tensor<f32>) -> tensor<f32> {\n");
    for i in 0..DEPTH {
        text.push_str(&format!("%r{i} = \"stablehlo.if\"(%p) ({{\n"));
    }
    text.push_str("stablehlo.return %x : tensor<f32>\n");
    for i in (0..DEPTH).rev() {
        text.push_str("}, {\nstablehlo.return %x : tensor<f32>\n}) : (tensor<i1>) -> tensor<f32>\n");
        text.push_str(&if i == 0 {
            "return %r0 : tensor<f32>\n}\n".to_owned()
        } else {
            format!("stablehlo.return %r{i} : tensor<f32>\n")
        });
    }
    let module = convert(&read(&text), &ConvertOptions::default()).expect("it converts").module;
    assert_eq!(module.computations().len(), 2 * DEPTH + 1);
}

#[test]
fn broadcasts_of_size_one_and_out_of_order() {
    let text = "func.func @main(%x: tensor<1x3xf32>) -> tensor<3x2xf32> {\n  %0 = stablehlo.broadcast_in_dim %x, dims = [1, \
                0] : (tensor<1x3xf32>) -> tensor<3x2xf32>\n  return %0 : tensor<3x2xf32>\n}\n";
    let hlo = hlo_of(text);
    assert!(hlo.contains("f32[3] reshape(%x)"), "{hlo}");
    assert!(hlo.contains("f32[3,2] broadcast("), "{hlo}");
}

#[test]
fn a_quantized_operand_that_is_used_twice_is_one_number() {
    let q = "!quant.uniform<i8:f32, 0.5:1>";
    let text = format!(
        "func.func @main(%x: tensor<2x{q}>) -> tensor<2x{q}> {{\n  %0 = stablehlo.multiply %x, %x : tensor<2x{q}>\n  return %0 : \
         tensor<2x{q}>\n}}\n"
    );
    let hlo = hlo_of(&text);
    assert!(hlo.contains("s8[2] parameter(0)"), "{hlo}");
    // (x - 1) * 0.5, once.
    assert_eq!(hlo.matches("s32[2] subtract(").count(), 1, "{hlo}");
    assert!(hlo.contains("round-nearest-even"), "{hlo}");
}

/// The HLO of one operation on an argument.
fn of_one(operand: &str, operation: &str, result: &str) -> String {
    hlo_of(&format!(
        "func.func @main(%x: {operand}) -> {result} {{\n  %r = {operation} : ({operands}) -> {result}\n  return %r : {result}\n}}\n",
        operands = vec![operand; operation.matches("%x").count()].join(", ")
    ))
}

#[test]
fn predicates_add_as_truth_values() {
    let pairs = [("add", "or"), ("maximum", "or"), ("multiply", "and"), ("minimum", "and")];
    for (name, opcode) in pairs {
        let hlo = of_one("tensor<2xi1>", &format!("\"stablehlo.{name}\"(%x, %x)"), "tensor<2xi1>");
        assert!(hlo.contains(&format!("pred[2] {opcode}(%x, %x)")), "{name}: {hlo}");
    }
}

#[test]
fn predicates_are_bits_in_stablehlo() {
    let hlo = of_one("tensor<8xi1>", "\"stablehlo.bitcast_convert\"(%x)", "tensor<ui8>");
    assert!(hlo.contains("u1[8] convert(%x)") && hlo.contains("u8[] bitcast-convert("), "{hlo}");
}

#[test]
fn a_complex_number_converts_to_its_real_part() {
    let hlo = of_one("tensor<2xcomplex<f32>>", "\"stablehlo.convert\"(%x)", "tensor<2xi32>");
    assert!(hlo.contains("f32[2] real(%x)") && hlo.contains("s32[2] convert("), "{hlo}");
}

#[test]
fn calls_and_composites() {
    let text = "module {\n  func.func @main(%x: tensor<f32>) -> tensor<f32> {\n    %0 = stablehlo.composite \"my.op\" %x \
                {composite_attributes = {n = 1 : i64}, decomposition = @f} : (tensor<f32>) -> tensor<f32>\n    %1 = func.call \
                @f(%0) : (tensor<f32>) -> tensor<f32>\n    return %1 : tensor<f32>\n  }\n  func.func private @f(%x: \
                tensor<f32>) -> tensor<f32> {\n    %0 = stablehlo.sine %x : tensor<f32>\n    return %0 : tensor<f32>\n  \
                }\n}\n";
    let hlo = hlo_of(text);
    assert!(hlo.contains("is_composite=true"), "{hlo}");
    assert!(hlo.contains("composite.name=\"my.op\""), "{hlo}");
    assert_eq!(hlo.matches("sine(").count(), 1, "one computation for both: {hlo}");
}

#[test]
fn dictionaries_of_jax_make_typed_calls() {
    let call = |attributes: &str| {
        let text = format!(
            "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {{\n  %y = stablehlo.custom_call @f(%x) {{{attributes}}} : \
             (tensor<2xf32>) -> tensor<2xf32>\n  return %y : tensor<2xf32>\n}}\n"
        );
        hlo_of(&text)
    };
    let typed = "api_version=API_VERSION_TYPED_FFI, backend_config={n = 3 : i64}";
    assert!(call("backend_config = \"\", mhlo.backend_config = {n = 3 : i64}").contains(typed));
    assert!(call("api_version = 4 : i32, backend_config = {n = 3 : i64}").contains(typed));
    assert!(!call("backend_config = \"{n = 3 : i64}\"").contains("api_version"));
}

#[test]
fn recursion_and_missing_functions_are_refused() {
    let call = |name: &str| {
        format!(
            "module {{\n  func.func @main(%x: tensor<f32>) -> tensor<f32> {{\n    %0 = func.call @{name}(%x) : (tensor<f32>) -> \
             tensor<f32>\n    return %0 : tensor<f32>\n  }}\n}}\n"
        )
    };
    assert!(refused(&call("main")).starts_with("V0703 func.call: @main is called in itself"));
    assert!(refused(&call("g")).starts_with("V0703 func.call: the module has no function @g"));
}

#[test]
fn constraints_have_the_numbers_of_the_specification() {
    let one = |arguments: &str, op: &str| {
        refused(&format!("func.func @main({arguments}) {{\n  {op}\n  return\n}}\n"))
    };
    assert_eq!(
        one("", "%0 = stablehlo.iota dim = 2 : tensor<2x3xi32>"),
        "V0701 stablehlo.iota: (C1) dimension 2 of a result of rank 2"
    );
    assert_eq!(
        one(
            "%x: tensor<2x3xf32>",
            "%0 = stablehlo.transpose %x, dims = [0, 0] : (tensor<2x3xf32>) -> tensor<2x2xf32>"
        ),
        "V0701 stablehlo.transpose: (C2) [0, 0] is no permutation of the dimensions"
    );
    assert_eq!(
        one("%x: tensor<4xf32>", "%0 = stablehlo.slice %x [0:5] : (tensor<4xf32>) -> tensor<5xf32>"),
        "V0701 stablehlo.slice: (C3) [0:5] of dimension 0 of size 4"
    );
    assert_eq!(
        one(
            "%a: tensor<2x3xf32>, %b: tensor<4x5xf32>",
            "%0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<4x5xf32>) -> \
             tensor<2x5xf32>"
        ),
        "V0701 stablehlo.dot_general: (C10) dimensions 1 and 0 have different sizes, 3 and 4"
    );
    assert_eq!(
        one("%x: tensor<?xf32>", "%0 = stablehlo.abs %x : tensor<?xf32>"),
        "U0004 func.func: dimension 0 of f32[?] has no size that is known"
    );
}

#[test]
fn shapes_follow_from_those_of_arguments() {
    let text = "module {\n  func.func @main(%x: tensor<?x3xf32>) -> tensor<?xf32> {\n    %n = stablehlo.get_dimension_size %x, dim = 0 : \
                (tensor<?x3xf32>) -> tensor<i32>\n    %y = func.call @f(%n, %x) : (tensor<i32>, tensor<?x3xf32>) -> \
                tensor<?xf32>\n    return %y : tensor<?xf32>\n  }\n  func.func private @f(%n: tensor<i32>, %x: \
                tensor<?x3xf32>) -> tensor<?xf32> {\n    %three = stablehlo.constant dense<3> : tensor<i32>\n    %p = \
                stablehlo.multiply %n, %three : tensor<i32>\n    %s = stablehlo.reshape %p : (tensor<i32>) -> \
                tensor<1xi32>\n    %y = stablehlo.dynamic_reshape %x, %s : (tensor<?x3xf32>, tensor<1xi32>) -> \
                tensor<?xf32>\n    %z = stablehlo.sine %y : tensor<?xf32>\n    return %z : tensor<?xf32>\n  }\n}\n";
    let dims = Some(vec![Some(vec![4, 3])]);
    let options = ConvertOptions { argument_dims: dims, ..ConvertOptions::default() };
    let module = convert(&read(text), &options).expect("it converts").module;
    assert!(!hlo::verify::verify(&module).has_errors());
    let printed = print_module(&module, &PrintOptions::source(&module));
    assert!(printed.contains("f32[12] reshape(%x"), "{printed}");
    assert!(refused(text).starts_with("U0004"));
}

/// A function of a program that is converted for arguments of these dimensions.
fn sized(arguments: &str, results: &str, body: &str, dims: &[&[i64]]) -> String {
    let text = format!(
        "module {{\n  func.func @main({arguments}) -> {results} {{\n{body}\n  }}\n  func.func private @add(%a: tensor<f32>, %b: \
         tensor<f32>) -> tensor<f32> {{\n    %s = stablehlo.add %a, %b : tensor<f32>\n    return %s : tensor<f32>\n  }}\n  func.func \
         private @more(%a: tensor<f32>, %b: tensor<f32>, %i: tensor<i32>, %j: tensor<i32>) -> tensor<i1> {{\n    %c = \
         stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>\n    return %c : tensor<i1>\n  }}\n}}\n"
    );
    let dims = Some(dims.iter().map(|d| Some(d.to_vec())).collect());
    let options = ConvertOptions { argument_dims: dims, ..ConvertOptions::default() };
    match convert(&read(&text), &options) {
        Ok(converted) => {
            assert!(!hlo::verify::verify(&converted.module).has_errors());
            print_module(&converted.module, &PrintOptions::source(&converted.module))
        }
        Err(diagnostics) => {
            let d = diagnostics.iter().next().expect("an error says what it is");
            format!("{} {}", d.code.as_str(), d.message)
        }
    }
}

#[test]
fn calls_that_say_sizes_by_operands() {
    let windows = "    %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x4xf32>) -> tensor<i32>
    %n1 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
    %one = stablehlo.constant dense<1> : tensor<1xi32>
    %ones = stablehlo.constant dense<1> : tensor<2xi32>
    %window = stablehlo.concatenate %n1, %one, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %minus = stablehlo.constant dense<-1> : tensor<1xi32>
    %low = stablehlo.add %n1, %minus : tensor<1xi32>
    %none = stablehlo.constant dense<0> : tensor<1xi32>
    %pair = stablehlo.concatenate %low, %none, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %first = stablehlo.reshape %pair : (tensor<2xi32>) -> tensor<1x2xi32>
    %second = stablehlo.constant dense<0> : tensor<1x2xi32>
    %padding = stablehlo.concatenate %first, %second, dim = 0 : (tensor<1x2xi32>, tensor<1x2xi32>) -> tensor<2x2xi32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %y = stablehlo.custom_call @stablehlo.dynamic_reduce_window(%x, %zero, %window, %ones, %ones, %ones, %padding) \
                   {called_computations = [@add]} : (tensor<?x4xf32>, tensor<f32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>, \
                   tensor<2xi32>, tensor<2x2xi32>) -> tensor<?x4xf32>
    return %y : tensor<?x4xf32>";
    let hlo = sized("%x: tensor<?x4xf32>", "tensor<?x4xf32>", windows, &[&[3, 4]]);
    assert!(
        hlo.contains("f32[3,4] reduce-window(") && hlo.contains("window={size=3x1 pad=2_0x0_0}"),
        "{hlo}"
    );

    let bits = "    %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
    %n1 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
    %four = stablehlo.constant dense<4> : tensor<1xi32>
    %shape = stablehlo.concatenate %n1, %four, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %r:2 = stablehlo.custom_call @stablehlo.dynamic_rng_bit_generator(%key, %shape) {rng_algorithm = \
                #stablehlo<rng_algorithm THREE_FRY>} : (tensor<2xui64>, tensor<2xi32>) -> (tensor<2xui64>, tensor<?x4xui32>)
    return %r#1 : tensor<?x4xui32>";
    let arguments = "%key: tensor<2xui64>, %x: tensor<?xf32>";
    let hlo = sized(arguments, "tensor<?x4xui32>", bits, &[&[2], &[5]]);
    assert!(
        hlo.contains("(u64[2], u32[5,4]) rng-bit-generator(%key), algorithm=rng_three_fry")
            || hlo.contains("(u64[2], u32[5,4]) rng-bit-generator(key), algorithm=rng_three_fry"),
        "{hlo}"
    );
    let wrong = bits.replace("tensor<?x4xui32>", "tensor<?x3xui32>");
    let refused = sized(arguments, "tensor<?x3xui32>", &wrong, &[&[2], &[5]]);
    assert_eq!(refused, "V0701 stablehlo.custom_call: operand 1 says [5, 4], the type of the result [?, 3]");

    let first = "    %n = stablehlo.get_dimension_size %x, dim = 1 : (tensor<4x?xf32>) -> tensor<i32>
    %minus = stablehlo.constant dense<-1> : tensor<i32>
    %k = stablehlo.add %n, %minus : tensor<i32>
    %r:2 = stablehlo.custom_call @stablehlo.dynamic_top_k(%x, %k) : (tensor<4x?xf32>, tensor<i32>) -> (tensor<4x?xf32>, \
                 tensor<4x?xi32>)
    return %r#1 : tensor<4x?xi32>";
    let hlo = sized("%x: tensor<4x?xf32>", "tensor<4x?xi32>", first, &[&[4, 6]]);
    assert!(hlo.contains("(f32[4,5], s32[4,5]) topk(") && hlo.contains("k=5"), "{hlo}");

    let approximate = "    %i = stablehlo.iota dim = 0 : tensor<6xi32>
    %low = stablehlo.constant dense<0.0> : tensor<f32>
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %n = stablehlo.get_dimension_size %y, dim = 0 : (tensor<?xf32>) -> tensor<i32>
    %n1 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
    %r:2 = stablehlo.custom_call @stablehlo.dynamic_approx_top_k(%x, %i, %low, %zero, %n, %n1, %n1) {called_computations = \
                       [@more], indices_of_shape_operands = dense<[5, 6]> : tensor<2xi64>, mhlo.backend_config = {reduction_dim = 0 : \
                       i64}} : (tensor<6xf32>, tensor<6xi32>, tensor<f32>, tensor<i32>, tensor<i32>, tensor<1xi32>, tensor<1xi32>) -> \
                       (tensor<?xf32>, tensor<?xi32>)
    return %r#1 : tensor<?xi32>";
    let arguments = "%x: tensor<6xf32>, %y: tensor<?xf32>";
    let hlo = sized(arguments, "tensor<?xi32>", approximate, &[&[6], &[2]]);
    assert!(hlo.contains("sort(") && hlo.contains("s32[2] slice("), "{hlo}");
}

#[test]
fn shapes_of_the_results_of_a_call_are_operands() {
    let body = "    %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
    %n1 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
    %y = stablehlo.custom_call @f(%x, %n1) {indices_of_shape_operands = dense<INDEX> : tensor<1xi64>} : (tensor<?xf32>, \
                tensor<1xi32>) -> tensor<?xf32>
    return %y : tensor<?xf32>";
    let of = |index| sized("%x: tensor<?xf32>", "tensor<?xf32>", &body.replace("INDEX", index), &[&[7]]);
    let hlo = of("1");
    assert!(hlo.contains("f32[7] custom-call(%x)") || hlo.contains("f32[7] custom-call(x)"), "{hlo}");
    assert!(of("0").contains("not its last 1 operands"), "{}", of("0"));
}

#[test]
fn shardy_travels_as_text() {
    let text = "module attributes {mhlo.num_partitions = 2 : i32} {\n  sdy.mesh @mesh = <[\"x\"=2]>\n  func.func @main(%x: \
                tensor<4xf32>) -> tensor<4xf32> {\n    %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{\"x\"}]>] \
                out_shardings=[<@mesh, [{\"x\"}]>] manual_axes={\"x\"} (%y: tensor<2xf32>) {\n      %z = stablehlo.sine %y \
                : tensor<2xf32>\n      sdy.return %z : tensor<2xf32>\n    } : (tensor<4xf32>) -> tensor<4xf32>\n    return %0 \
                : tensor<4xf32>\n  }\n}\n";
    let hlo = hlo_of(text);
    for part in [
        "xla.sdy.GlobalToLocalShape",
        "xla.sdy.LocalToGlobalShape",
        "xla.sdy.meshes={mesh = #sdy.mesh<[\"x\"=2]>}",
    ] {
        assert!(hlo.contains(part), "{part}: {hlo}");
    }
}

/// A sum over the devices of groups, with meshes.
fn sum_along(meshes: &str, groups: &str) -> String {
    format!(
        "module attributes {{mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32}} {{\n  {meshes}\n  func.func \
         @main(%x: tensor<4xf32>) -> tensor<4xf32> {{\n    %y = \"stablehlo.all_reduce\"(%x) <{{channel_handle = \
         #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = #stablehlo.replica_group_mesh_axes<{groups}>, \
         use_global_device_ids}}> ({{\n    ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n      %s = stablehlo.add %a, %b : \
         tensor<f32>\n      stablehlo.return %s : tensor<f32>\n    }}) : (tensor<4xf32>) -> tensor<4xf32>\n    return %y : \
         tensor<4xf32>\n  }}\n}}\n"
    )
}

#[test]
fn groups_lie_along_axes_of_a_mesh() {
    let axis = |name: &str| format!("#stablehlo.axis_ref<name = \"{name}\">");
    let (a, b) = (axis("a"), axis("b"));
    let half = "#stablehlo.axis_ref<name = \"b\", sub_axis_info = (1)2>";
    let shardy = "sdy.mesh @m = <[\"a\"=2, \"b\"=4]> {stablehlo.mesh = {axes = [{name = \"a\", size = 2 : i64}, \
                  {name = \"b\", size = 4 : i64}]}}";
    let ordered = "sdy.mesh @m = <[\"a\"=2, \"b\"=4], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>";
    let inline = "#stablehlo.mesh<axes = [#stablehlo.mesh_axis<name = \"a\", size = 2>, #stablehlo.mesh_axis<name = \
                  \"b\", size = 4>]>";
    for (meshes, mesh, axes, groups) in [
        (shardy, "@m", format!("[{b}]"), "mesh['a'=2,'b'=4] {'b'}"),
        (shardy, "@m", format!("[{b}, {a}]"), "mesh['a'=2,'b'=4] {'b','a'}"),
        (shardy, "@m", format!("[{half}]"), "mesh['a'=2,'b'=4] {'b':(1)2}"),
        (ordered, "@m", format!("[{a}]"), "mesh['a'=2,'b'=4], device_ids=(7,6,5,4,3,2,1,0) {'a'}"),
        ("", inline, format!("[{a}]"), "mesh['a'=2,'b'=4] {'a'}"),
    ] {
        let text = sum_along(meshes, &format!("mesh = {mesh}, axes = {axes}"));
        let expected = format!("replica_groups={groups}, use_global_device_ids=true");
        let hlo = hlo_of(&text);
        assert!(hlo.contains(&expected), "{groups}: {hlo}");
        let bytes = bytecode::write(&read(&text), bytecode::Version::NEWEST).expect("it is written");
        let again = convert(&bytecode::read(&bytes).expect("it is read"), &ConvertOptions::default());
        let again = again.expect("it is converted").module;
        assert!(print_module(&again, &PrintOptions::source(&again)).contains(&expected), "{groups}");
    }
    for (meshes, rest) in
        [("", format!("mesh = @m, axes = [{a}]")), (shardy, format!("mesh = @m, axes = [{}]", axis("c")))]
    {
        let found = refused(&sum_along(meshes, &rest));
        assert!(found.starts_with("U0003"), "{found}");
    }
    // What the specification says of groups holds for those of a mesh.
    let small = "sdy.mesh @m = <[\"a\"=2]>";
    let found = refused(&sum_along(small, &format!("mesh = @m, axes = [{a}]")));
    assert!(found.starts_with("V0701") && found.contains("(C2)"), "{found}");
}

#[test]
fn groups_of_shardings_change_no_value() {
    let text = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n  \"sdy.sharding_group\"(%x) <{group_id = 0 : i64}> : \
                (tensor<4xf32>) -> ()\n  %y = stablehlo.sine %x : tensor<4xf32>\n  return %y : tensor<4xf32>\n}\n";
    let hlo = hlo_of(text);
    assert!(hlo.contains("f32[4] sine(%x)") && !hlo.contains("custom-call"), "{hlo}");
    let converted = convert(&read(text), &ConvertOptions::default()).expect("it is converted");
    let [(id, group)] = converted.sharding_groups[..] else { panic!("{:?}", converted.sharding_groups) };
    assert_eq!((converted.module.instr(id).opcode, group), (hlo::Opcode::Parameter, 0));
}

#[test]
fn addresses_are_digits() {
    let text = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n  %y = stablehlo.custom_call @InspectSharding(%x) \
                {backend_config = \"`\\FC\\00\", has_side_effect = true} : (tensor<4xf32>) -> tensor<4xf32>\n  return %x : \
                tensor<4xf32>\n}\n";
    assert!(hlo_of(text).contains("backend_config=\"60fc00\""), "{}", hlo_of(text));
}

#[test]
fn layouts_of_arguments_and_results_are_kept() {
    let text = "func.func @main(%x: tensor<4xf32> {mhlo.layout_mode = \"{0}\"}, %y: tensor<4xf32>) -> (tensor<4xf32> \
                {mhlo.layout_mode = \"auto\", mhlo.memory_kind = \"pinned_host\"}) {\n  %z = stablehlo.add %x, %y : tensor<4xf32>\n  return %z : tensor<4xf32>\n}\n";
    let converted = convert(&read(text), &ConvertOptions::default()).expect("it is converted");
    assert_eq!(converted.argument_layouts, [Some("{0}".into()), None]);
    assert_eq!(converted.result_layouts, [Some("auto".into())]);
    assert_eq!(converted.argument_memories, [None, None]);
    assert_eq!(converted.result_memories, [Some("pinned_host".into())]);
}

#[test]
fn unreduced_values_are_sums() {
    let text = "module attributes {mhlo.num_partitions = 4 : i32} {\n  sdy.mesh @mesh = <[\"x\"=2, \"y\"=2]>\n  func.func @main(%x: \
                tensor<4xf32>, %t: !stablehlo.token) -> (tensor<4xf32>, !stablehlo.token) {\n    %0:2 = sdy.manual_computation(%x, %t) \
                in_shardings=[<@mesh, [{\"x\"}], unreduced={\"y\"}>, <@mesh, []>] out_shardings=[<@mesh, [{\"x\"}], \
                unreduced={\"y\"}>, <@mesh, []>] manual_axes={\"x\", \"y\"} (%y: tensor<2xf32>, %u: !stablehlo.token) {\n      %z = \
                stablehlo.sine %y : tensor<2xf32>\n      sdy.return %z, %u : tensor<2xf32>, !stablehlo.token\n    } : (tensor<4xf32>, \
                !stablehlo.token) -> (tensor<4xf32>, !stablehlo.token)\n    return %0#0, %0#1 : tensor<4xf32>, \
                !stablehlo.token\n  }\n}\n";
    let hlo = hlo_of(text);
    // Among the devices with one coordinate along x the first has the array, and on the way out they add up;
    // tokens are neither cut nor joined.
    for part in [
        "pred[4] constant({1, 0, 1, 0})",
        "frontend_attributes={hlo.unreduced_part=\"[[0, 1], [2, 3]]\"}",
        "replica_groups={{0,1},{2,3}}, use_global_device_ids=true",
        "f32[2] custom-call(%x), custom_call_target=\"xla.sdy.GlobalToLocalShape\"",
        "xla.sdy.in_shardings=\"#sdy.sharding_per_value<[<@mesh, [{\\\"x\\\"}]>]>\"",
    ] {
        assert!(hlo.contains(part), "{part}: {hlo}");
    }
}

#[test]
fn unreduced_values_may_be_the_greatest() {
    let text = "module attributes {mhlo.num_partitions = 2 : i32} {\n  sdy.mesh @mesh = <[\"x\"=2]>\n  func.func @main(%x: \
                tensor<4xf32>) -> tensor<4xf32> {\n    %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{}], \
                unreduced=max{\"x\"}>] out_shardings=[<@mesh, [{}], unreduced=min{\"x\"}>] manual_axes={\"x\"} (%y: \
                tensor<4xf32>) {\n      %z = stablehlo.sine %y : tensor<4xf32>\n      sdy.return %z : tensor<4xf32>\n    } : \
                (tensor<4xf32>) -> tensor<4xf32>\n    return %0 : tensor<4xf32>\n  }\n}\n";
    let hlo = hlo_of(text);
    // All devices have the largest, which is the largest of what they have.
    assert!(hlo.contains("f32[] minimum(") && !hlo.contains("select"), "{hlo}");
    let part = hlo.lines().find(|line| line.contains("hlo.unreduced_part=\"[[0, 1]]\""));
    assert!(part.is_some_and(|line| line.contains("copy(")), "{hlo}");
}

#[test]
fn locations_are_those_of_the_text() {
    let text = "func.func @main(%x: tensor<4xf32>) {\n  %0 = stablehlo.slice %x [0:5] : (tensor<4xf32>) -> tensor<5xf32>\n  \
                return\n}\n";
    let found = convert(&read(text), &ConvertOptions::default()).expect_err("it is refused");
    let span: Span = found.iter().next().expect("an error").span;
    assert_eq!(&text[span.range()], "stablehlo.slice %x [0:5] : (tensor<4xf32>) -> tensor<5xf32>");
}

#[test]
fn infeeds_of_one_token_are_in_the_order_of_the_program() {
    let text = "func.func @main(%t: !stablehlo.token) -> (tensor<2xf32>, tensor<2xf32>) {\n  %a:2 = \"stablehlo.infeed\"(%t) : \
                (!stablehlo.token) -> (tensor<2xf32>, !stablehlo.token)\n  %b:2 = \"stablehlo.infeed\"(%t) : \
                (!stablehlo.token) -> (tensor<2xf32>, !stablehlo.token)\n  return %a#0, %b#0 : tensor<2xf32>, \
                tensor<2xf32>\n}\n";
    let hlo = hlo_of(text);
    let of = |line: &str| line.split_once("infeed(%").map(|(_, rest)| rest.trim_end_matches(')').to_owned());
    let tokens: Vec<String> = hlo.lines().filter_map(of).collect();
    assert_eq!(tokens.len(), 2, "{hlo}");
    assert_ne!(tokens[0], tokens[1], "the second waits for the first: {hlo}");
    assert!(hlo.contains(&format!("%{} = token[] get-tuple-element", tokens[1])), "{hlo}");
}

/// In groups of replicas with all partitions StableHLO counts the replicas of one partition first.
#[test]
fn groups_of_a_grid_are_listed_by_devices() {
    let text = "func.func @f(%x: tensor<2xi64>) -> tensor<8xi64> {\n  %r = \"stablehlo.all_gather\"(%x) <{all_gather_dim = 0 : \
                i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1]]> \
                : tensor<1x2xi64>}> : (tensor<2xi64>) -> tensor<8xi64>\n  return %r : tensor<8xi64>\n}\nfunc.func \
                @main() {\n  %c = stablehlo.constant dense<0> : tensor<2xi64>\n  %r:4 = \
                \"interpreter.run_parallel\"(%c, %c, %c, %c) {programs = [[@f, @f], [@f, @f]]} : (tensor<2xi64>, \
                tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> (tensor<8xi64>, tensor<8xi64>, tensor<8xi64>, \
                tensor<8xi64>)\n  return\n}\n";
    let hlo = hlo_of(text);
    assert!(hlo.contains("replica_groups={{0,2,1,3}}"), "{hlo}");
    assert!(hlo.contains("use_global_device_ids=true"), "{hlo}");
}

#[test]
fn asynchronous_operations_are_done_at_once() {
    let text = "func.func @main(%x: tensor<4xf32>) -> tensor<2xf32> {\n  %f = \"stablehlo.async_start\"(%x) ({\n  ^bb0(%y: \
                tensor<4xf32>):\n    %s = stablehlo.slice %y [0:2] : (tensor<4xf32>) -> tensor<2xf32>\n    \
                stablehlo.return %s : tensor<2xf32>\n  }) : (tensor<4xf32>) -> !stablehlo.future<tensor<2xf32>>\n  %r = \
                \"stablehlo.async_done\"(%f) : (!stablehlo.future<tensor<2xf32>>) -> tensor<2xf32>\n  return %r : \
                tensor<2xf32>\n}\n";
    let hlo = hlo_of(text);
    assert!(hlo.contains("ROOT %f = f32[2] call(%x), to_apply=%async_start_region"), "{hlo}");
}

#[test]
fn values_that_the_text_leaves_out_are_made_up() {
    let text = "func.func @main() -> (tensor<4xf32>, tensor<2xi8>) {\n  %w = stablehlo.constant dense_resource<__elided__> : \
                tensor<4xf32>\n  %k = \"stablehlo.constant\"() <{value = dense_resource<k> : tensor<2xi8>}> : () -> \
                tensor<2xi8>\n  return %w, %k : tensor<4xf32>, tensor<2xi8>\n}\n";
    let hlo = hlo_of(text);
    assert!(
        hlo.contains("%w = f32[4] constant({...})") && hlo.contains("%k = s8[2] constant({...})"),
        "{hlo}"
    );
    let warnings = convert(&read(text), &ConvertOptions::default()).expect("it converts").warnings;
    let found: Vec<_> = warnings.iter().map(|d| (d.code.as_str(), &text[d.span.range()])).collect();
    assert_eq!(found[0], ("P0508", "stablehlo.constant dense_resource<__elided__> : tensor<4xf32>"));
    assert_eq!(found.len(), 2);
}

#[test]
fn approximate_top_k_is_exact() {
    let text = "module {\n  func.func @less(%a: tensor<f32>, %b: tensor<f32>, %i: tensor<i32>, %j: tensor<i32>) -> tensor<i1> \
                {\n    %0 = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>\n    stablehlo.return %0 : \
                tensor<i1>\n  }\n  func.func public @main(%x: tensor<3x4xf32>) -> (tensor<3x2xf32>, tensor<3x2xi32>) {\n    \
                %i = stablehlo.iota dim = 1 : tensor<3x4xi32>\n    %c = stablehlo.constant dense<-1> : tensor<i32>\n    %z = \
                stablehlo.constant dense<0x7F800000> : tensor<f32>\n    %r:2 = stablehlo.custom_call @ApproxTopK(%x, %i, %z, \
                %c) {called_computations = [@less], mhlo.backend_config = {aggregate_to_topk = true, is_fallback = true, \
                recall_target = 0.95 : f32, reduction_dim = 1 : i64, reduction_input_size_override = -1 : i64, top_k = 2 : \
                i64}} : (tensor<3x4xf32>, tensor<3x4xi32>, tensor<f32>, tensor<i32>) -> (tensor<3x2xf32>, \
                tensor<3x2xi32>)\n    return %r#0, %r#1 : tensor<3x2xf32>, tensor<3x2xi32>\n  }\n}\n";
    let hlo = hlo_of(text);
    assert!(hlo.contains("sort(%x, %i), dimensions={1}, is_stable=true, to_apply=%less"), "{hlo}");
    assert_eq!(hlo.matches("slice={[0:3], [0:2]}").count(), 2, "{hlo}");
    let other = text.replace("top_k = 2", "top_k = 3");
    assert!(refused(&other).starts_with("U0003"), "{}", refused(&other));
}
