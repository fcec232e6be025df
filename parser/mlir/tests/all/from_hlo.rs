//! The StableHLO that HLO becomes.

use hlo::diag::codes;
use hlo_mlir::convert::{ConvertOptions, convert};
use hlo_mlir::from_hlo::{Exported, from_hlo};
use hlo_mlir::print::{PrintOptions, print};

use crate::read;

fn module(text: &str) -> hlo::Module {
    let parsed = hlo_parser::parse_module(text, &hlo_parser::ParseOptions::default());
    let found = parsed.diagnostics;
    let module =
        parsed.module.unwrap_or_else(|| panic!("{}", hlo::diag::render_all(&found, "t", text, false)));
    let found = hlo::verify::verify(&module);
    assert!(!found.has_errors(), "{}", hlo::diag::render_all(&found, "t", text, false));
    module
}

fn exported(text: &str) -> Exported {
    let module = module(text);
    from_hlo(&module).unwrap_or_else(|d| panic!("{}", hlo::diag::render_all(&d, "t", text, false)))
}

/// The StableHLO text, which must read back and become HLO that verifies.
fn stablehlo(text: &str) -> String {
    let text = print(&exported(text).module, &PrintOptions::PRETTY);
    let again = convert(&read(&text), &ConvertOptions::default());
    let again = again.unwrap_or_else(|d| panic!("{}", hlo::diag::render_all(&d, "t", &text, false))).module;
    let found = hlo::verify::verify(&again);
    assert!(!found.has_errors(), "{}", hlo::diag::render_all(&found, "t", &text, false));
    text
}

fn entry(body: &str) -> String {
    format!("HloModule m\n\nENTRY main {{\n{body}}}\n")
}

#[test]
fn loops_have_the_leaves_of_their_state() {
    let text = "HloModule m\n\nc {\n  s = (s32[], (f32[2], f32[2])) parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n  n = s32[] \
                constant(3)\n  ROOT r = pred[] compare(i, n), direction=LT\n}\n\nb {\n  s = (s32[], (f32[2], f32[2])) \
                parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n  k = s32[] constant(1)\n  j = s32[] add(i, k)\n  p = \
                (f32[2], f32[2]) get-tuple-element(s), index=1\n  x = f32[2] get-tuple-element(p), index=0\n  y = f32[2] \
                get-tuple-element(p), index=1\n  q = (f32[2], f32[2]) tuple(y, x)\n  ROOT t = (s32[], (f32[2], f32[2])) tuple(j, \
                q)\n}\n\nENTRY main {\n  a = f32[2] parameter(0)\n  z = s32[] constant(0)\n  q = (f32[2], f32[2]) tuple(a, a)\n  t = \
                (s32[], (f32[2], f32[2])) tuple(z, q)\n  w = (s32[], (f32[2], f32[2])) while(t), condition=c, body=b\n  p = (f32[2], \
                f32[2]) get-tuple-element(w), index=1\n  ROOT r = f32[2] get-tuple-element(p), index=1\n}\n";
    assert_eq!(
        stablehlo(text),
        "module @m {\n  func.func public @main(%arg0: tensor<2xf32>) -> tensor<2xf32> {\n    %c = stablehlo.constant dense<0> : \
         tensor<i32>\n    %0:3 = stablehlo.while(%iterArg = %c, %iterArg_0 = %arg0, %iterArg_1 = %arg0) : tensor<i32>, tensor<2xf32>, \
         tensor<2xf32>\n    cond {\n      %c_2 = stablehlo.constant dense<3> : tensor<i32>\n      %1 = stablehlo.compare LT, %iterArg, \
         %c_2, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>\n      stablehlo.return %1 : tensor<i1>\n    } do {\n      %c_2 = \
         stablehlo.constant dense<1> : tensor<i32>\n      %1 = stablehlo.add %iterArg, %c_2 : tensor<i32>\n      stablehlo.return %1, \
         %iterArg_1, %iterArg_0 : tensor<i32>, tensor<2xf32>, tensor<2xf32>\n    }\n    return %0#2 : tensor<2xf32>\n  }\n}\n"
    );
}

#[test]
fn tuples_of_the_interface_stay() {
    let text = entry(
        "  p = (f32[2], (s32[], f32[2])) parameter(0)\n  q = (s32[], f32[2]) get-tuple-element(p), index=1\n  x = f32[2] \
         get-tuple-element(p), index=0\n  ROOT r = (f32[2], (s32[], f32[2])) tuple(x, q)\n",
    );
    let text = stablehlo(&text);
    assert!(
        text.contains(
            "@main(%arg0: tuple<tensor<2xf32>, tuple<tensor<i32>, tensor<2xf32>>>) -> (tensor<2xf32>, tuple<"
        ),
        "{text}"
    );
    assert!(text.contains("stablehlo.tuple %"), "{text}");
    // Of one element too: it is another value than its element.
    let text = stablehlo(&entry("  x = f32[2] parameter(0)\n  ROOT r = (f32[2]) tuple(x)\n"));
    assert!(text.contains("-> tuple<tensor<2xf32>>"), "{text}");
}

#[test]
fn bitcasts_follow_layouts() {
    let text = stablehlo(&entry("  x = f32[2,3]{0,1} parameter(0)\n  ROOT r = f32[6]{0} bitcast(x)\n"));
    assert!(
        text.contains("stablehlo.transpose %arg0, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>"),
        "{text}"
    );
    assert!(text.contains("stablehlo.reshape %0 : (tensor<3x2xf32>) -> tensor<6xf32>"), "{text}");
}

#[test]
fn predicates_are_bytes_in_hlo() {
    let text = stablehlo(&entry("  x = pred[4] parameter(0)\n  ROOT r = s8[4] bitcast-convert(x)\n"));
    assert!(text.contains("stablehlo.convert %arg0 : (tensor<4xi1>) -> tensor<4xui8>"), "{text}");
    assert!(text.contains("stablehlo.bitcast_convert %0 : (tensor<4xui8>) -> tensor<4xi8>"), "{text}");
}

#[test]
fn the_least_of_each_row_stay_the_least() {
    let text =
        entry("  x = f32[2,8] parameter(0)\n  ROOT r = (f32[2,3], s32[2,3]) topk(x), k=3, largest=false\n");
    let text = stablehlo(&text);
    assert!(text.contains("stablehlo.custom_call @mhlo.topk(%arg0)"), "{text}");
    let again = convert(&read(&text), &ConvertOptions::default()).unwrap().module;
    let root = again.instr(again.root(again.entry()));
    let topk = again.instr(again.instr(root.operands()[0]).operands()[0]);
    assert_eq!(topk.attrs.int(hlo::AttrKey::K), Some(3));
    assert!(!topk.attrs.bool_or(hlo::AttrKey::Largest, true));
}

#[test]
fn what_is_started_is_done() {
    let text = entry(
        "  x = f32[2] parameter(0)\n  s = (f32[2], f32[2], u32[]) copy-start(x)\n  ROOT d = f32[2] copy-done(s)\n",
    );
    let exported = exported(&text);
    let text = print(&exported.module, &PrintOptions::PRETTY);
    assert!(text.contains("return %arg0 : tensor<2xf32>"), "{text}");
}

#[test]
fn bounded_dimensions_are_an_encoding() {
    let text = entry(
        "  x = f32[4] parameter(0)\n  n = s32[] parameter(1)\n  s = f32[<=4] set-dimension-size(x, n), dimensions={0}\n  ROOT r = \
         f32[<=4] negate(s)\n",
    );
    let text = stablehlo(&text);
    assert!(text.contains("tensor<?xf32, #stablehlo.bounds<4>>"), "{text}");
}

/// The sizes that a bounded result has are those that the operand says, whether they are constants or not: a
/// plain reshape would take them from its operand.
#[test]
fn bounded_results_have_the_sizes_that_are_said() {
    let text = entry(
        "  x = f32[0,3] parameter(0)\n  n = s32[] parameter(1)\n  one = s32[] constant(1)\n  none = s32[] constant(0)\n  a = f32[<=1,<=0] \
         dynamic-reshape(x, one, none)\n  b = f32[<=1,<=0] dynamic-reshape(x, n, none)\n  ROOT r = (f32[<=1,<=0], f32[<=1,<=0]) tuple(a, b)\n",
    );
    let text = stablehlo(&text);
    let again = convert(&read(&text), &ConvertOptions::default()).expect("it converts").module;
    let entry = again.entry();
    let reshapes: Vec<usize> = again
        .instructions(entry)
        .map(|id| again.instr(id))
        .filter(|i| i.opcode == hlo::Opcode::DynamicReshape)
        .map(|i| i.operands().len())
        .collect();
    assert_eq!(reshapes, [3, 3], "{text}");
}

#[test]
fn header_shardings_and_calls() {
    let text = "HloModule m, input_output_alias={ {}: (0, {}, may-alias) }, buffer_donor={ (1, {}) }, num_partitions=2\n\nf {\n  x = f32[4] \
                parameter(0)\n  ROOT s = f32[4] sine(x)\n}\n\nENTRY main {\n  a = f32[4] parameter(0), \
                sharding={devices=[2]0,1}\n  b = f32[4] parameter(1)\n  c = f32[4] call(a), to_apply=f, \
                frontend_attributes={k=\"v\"}\n  ROOT r = f32[4] add(c, b), sharding={replicated}, metadata={op_type=\"add\" \
                op_name=\"jit(f)/add\" source_file=\"f.py\" source_line=3}\n}\n";
    let text = stablehlo(text);
    for part in [
        "module @m attributes {mhlo.num_partitions = 2 : i32}",
        "%arg0: tensor<4xf32> {mhlo.sharding = \"{devices=[2]0,1}\", tf.aliasing_output = 0 : i32}",
        "%arg1: tensor<4xf32> {jax.buffer_donor = true}",
        "%0 = call @f(%arg0) {mhlo.frontend_attributes = {k = \"v\"}} : (tensor<4xf32>) -> tensor<4xf32>",
        "stablehlo.add %0, %arg1 {mhlo.sharding = \"{replicated}\"} : tensor<4xf32> loc(\"add:\"(\"jit(f)/add\"(\"f.py\":3:0)))",
        "func.func private @f(",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn what_changes_nothing_is_left_out() {
    let exported = exported(&entry(
        "  x = f32[2] parameter(0)\n  a = f32[2] sine(x), backend_config=\"c\"\n  ROOT b = f32[2] cosine(x), control-predecessors={a}\n",
    ));
    let left_out: Vec<&str> = exported.left_out.into_iter().collect();
    assert_eq!(left_out, ["backend_config", "control-predecessors"]);
}

#[test]
fn what_has_none_is_refused_by_name() {
    let text = entry(
        "  x = f32[4] parameter(0)\n  b = u32[4] parameter(1)\n  one = s8[4] stochastic-convert(x, b)\n  n = u1[4] parameter(2)\n  two = u64[2] \
         rng-get-and-update-state(), delta=1\n  ROOT r = (s8[4], u64[2], u1[4]) tuple(one, two, n)\n",
    );
    let module = module(&text);
    let found = from_hlo(&module).expect_err("it is refused");
    assert!(found.iter().all(|d| d.code == codes::UNSUPPORTED_IN_STABLEHLO));
    let messages: Vec<&str> = found.iter().map(|d| &*d.message).collect();
    assert!(messages.iter().any(|m| m.contains("elements of type u1")), "{messages:?}");
    let text = text.replace("n = u1[4]", "n = u2[4]").replace("u1[4]", "u2[4]");
    let found = from_hlo(&self::module(&text)).expect_err("it is refused");
    let messages: Vec<&str> = found.iter().map(|d| &*d.message).collect();
    assert!(messages[0].starts_with("%one = stochastic-convert: "), "{messages:?}");
    assert!(messages[1].starts_with("%two = rng-get-and-update-state: "), "{messages:?}");
    assert!(!found.iter().next().unwrap().span.is_none());
}

#[test]
fn deep_nesting_needs_no_stack() {
    const DEPTH: usize = 3000;
    let mut text =
        String::from("HloModule m\n\nf0 {\n  x = f32[] parameter(0)\n  ROOT r = f32[] negate(x)\n}\n");
    for n in 1..DEPTH {
        text.push_str(&format!(
            "\nf{n} {{\n  x = f32[] parameter(0)\n  p = pred[] constant(true)\n  ROOT r = f32[] conditional(p, x, x), true_computation=f{m}, \
             false_computation=f0\n}}\n",
            m = n - 1
        ));
    }
    text.push_str(&format!(
        "\nENTRY main {{\n  x = f32[] parameter(0)\n  p = pred[] constant(true)\n  ROOT r = f32[] conditional(p, x, x), true_computation=f{m}, \
         false_computation=f0\n}}\n",
        m = DEPTH - 1
    ));
    let module = exported(&text).module;
    let printed = print(&module, &PrintOptions::PRETTY);
    assert_eq!(printed.matches("stablehlo.if").count(), DEPTH);
}

#[test]
fn what_doubles_with_each_call_is_refused() {
    let mut text =
        String::from("HloModule m\n\nf0 {\n  x = f32[] parameter(0)\n  ROOT r = f32[] negate(x)\n}\n");
    for n in 1..40 {
        text.push_str(&format!(
            "\nf{n} {{\n  x = f32[] parameter(0)\n  p = pred[] constant(true)\n  ROOT r = f32[] conditional(p, x, x), true_computation=f{m}, \
             false_computation=f{m}\n}}\n",
            m = n - 1
        ));
    }
    text.push_str(
        "\nENTRY main {\n  x = f32[] parameter(0)\n  p = pred[] constant(true)\n  ROOT r = f32[] conditional(p, x, x), true_computation=f39, \
         false_computation=f39\n}\n",
    );
    let found = from_hlo(&module(&text)).expect_err("it is refused");
    assert!(found.iter().next().unwrap().message.contains("at most"), "{found:?}");
}
