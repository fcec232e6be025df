//! What every variant keeps, on generated programs; and that sums of small integers, which no order can
//! round, stay what they are.

use hlo::elided::splitmix64;
use hlo::verify::verify;
use hlo_opt::passes::Fuel;

use super::*;
use crate::engine::{Engine, Inputs, InterpreterEngine, RunOptions, by_name as engine};
use crate::frontend::parse_text;
use crate::inputs::plan;

#[test]
fn names_are_engines_of_the_liberties_they_are_registered_with() {
    for v in all() {
        let engine = engine(&format!("interpreter:{}", v.pass.name())).unwrap();
        assert_eq!(engine.allowances(), v.allowances);
    }
    assert!(by_name("sideways").is_none());
}

/// Sums of all kinds.
const SUMS: &str = "HloModule sums
%add (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %s = f32[] add(%x, %y)
}
%add16 (x: bf16[], y: bf16[]) -> bf16[] {
  %x.1 = bf16[] parameter(0)
  %y.1 = bf16[] parameter(1)
  ROOT %s.1 = bf16[] add(%y.1, %x.1)
}
%addc (x: c64[], y: c64[]) -> c64[] {
  %x.2 = c64[] parameter(0)
  %y.2 = c64[] parameter(1)
  ROOT %s.2 = c64[] add(%x.2, %y.2)
}
%running (x: bf16[2], y: bf16[2]) -> (bf16[2], bf16[2]) {
  %x.3 = bf16[2] parameter(0)
  %y.3 = bf16[2] parameter(1)
  %s.3 = bf16[2] add(%x.3, %y.3)
  ROOT %t.3 = (bf16[2], bf16[2]) tuple(%s.3, %s.3)
}
ENTRY %main {
  %a = f32[3,7] parameter(0)
  %b = f32[7,4] parameter(1)
  %i = f32[2,9,5,3] parameter(2)
  %k = f32[3,2,3,4] parameter(3)
  %h = bf16[2,40] parameter(4)
  %zero = f32[] constant(0)
  %one = f32[] constant(1)
  %onehalf = bf16[] constant(1)
  %dot = f32[3,4] dot(%a, %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  %dot2 = bf16[3,4] dot(%a, %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  %dot3 = s32[3,4] dot(%a, %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  %conv = f32[2,4,7,4] convolution(%i, %k), window={size=3x2 stride=3x1 pad=2_3x1_2 rhs_dilate=2x1}, dim_labels=b01f_01io->b01f
  %conv2 = f32[2,8,9,4] convolution(%i, %k), window={size=3x2 stride=2x1 pad=1_0x1_0 lhs_dilate=2x2 rhs_reversal=1x0}, dim_labels=b01f_01io->b01f
  %k1 = f32[3,2,12] reshape(%k)
  %k2 = f32[3,2,6] slice(%k1), slice={[0:3],[0:2],[0:6]}
  %k3 = f32[3,2,1,6] reshape(%k2)
  %conv3 = f32[2,3,4,6] convolution(%i, %k3), window={size=3x2 stride=3x1 rhs_reversal=1x1}, dim_labels=b01f_01io->b01f, feature_group_count=3
  %row = f32[3] reduce(%a, %one), dimensions={1}, to_apply=%add
  %both = f32[] reduce(%a, %zero), dimensions={1,0}, to_apply=%add
  %rows16 = bf16[2] reduce(%h, %onehalf), dimensions={1}, to_apply=%add16
  %win = f32[2,4,3,3] reduce-window(%i, %one), window={size=1x3x2x1 stride=1x3x2x1 pad=0_0x2_3x1_1x0_0 rhs_dilate=1x2x1x1}, to_apply=%add
  %win2 = f32[2,8,8,3] reduce-window(%i, %one), window={size=1x3x2x1 stride=1x2x1x1 pad=0_0x1_0x0_0x0_0 lhs_dilate=1x2x2x1}, to_apply=%add
  %win3 = bf16[2,39] reduce-window(%h, %onehalf), window={size=1x3 pad=0_0x0_1}, to_apply=%add16
  %ht = bf16[40,2] transpose(%h), dimensions={1,0}
  %carry = bf16[2] broadcast(%onehalf), dimensions={}
  %scan = (bf16[40,2], bf16[2]) scan(%ht, %carry), dimensions={0}, num_carries=1, to_apply=%running
  %c = c64[3,7] complex(%a, %a)
  %czero = c64[] constant((1, 0))
  %crow = c64[3] reduce(%c, %czero), dimensions={1}, to_apply=%addc
  ROOT %all = (f32[3,4], bf16[3,4], s32[3,4], f32[2,4,7,4], f32[2,8,9,4], f32[2,3,4,6], f32[3], f32[], bf16[2], f32[2,4,3,3], f32[2,8,8,3], bf16[2,39], (bf16[40,2], bf16[2]), c64[3]) tuple(%dot, %dot2, %dot3, %conv, %conv2, %conv3, %row, %both, %rows16, %win, %win2, %win3, %scan, %crow)
}
";

#[test]
fn sums_of_small_integers_do_not_depend_on_their_order() {
    let (module, found) = parse_text(SUMS);
    let module = module.unwrap_or_else(|| panic!("{found:?}"));
    assert!(!verify(&module).has_errors(), "{:?}", verify(&module));
    let plan = plan(&module, None).unwrap();
    let arrays: Vec<_> = plan.leaves.iter().map(|l| integers(&l.shape)).collect();
    let inputs = || Inputs::new(&module, std::slice::from_ref(&arrays)).unwrap();
    let options = RunOptions::default();
    let right = InterpreterEngine.run(&module, inputs(), &options).into_results().unwrap().results;
    // Four sums are narrow, twelve are of floats; the products that give integers stay.
    for (name, times) in
        [("reversed", 16), ("blocked", 16), ("tree", 16), ("pairwise-f32-accumulate", 7), ("region", 1)]
    {
        let mut m = module.clone();
        let applied = by_name(name).unwrap().pass.run(&mut m, &mut Fuel::UNLIMITED.clone());
        assert_eq!(applied, times, "{name}");
        let outcome = engine(&format!("interpreter:{name}")).unwrap().run(&module, inputs(), &options);
        assert_eq!(outcome.into_results().unwrap().results, right, "{name}");
    }
}

/// Integers from -3 to 3.
fn integers(shape: &hlo::ArrayShape) -> hlo::ArrayLiteral {
    let n = shape.elements() as u64;
    let small = |i: u64| (splitmix64(i) % 7) as f32 - 3.0;
    let buffer = if shape.element_type == hlo::ElementType::BF16 {
        hlo::Buffer::BF16((0..n).map(|i| hlo::half::bf16::from_f32(small(i))).collect())
    } else {
        hlo::Buffer::F32((0..n).map(small).collect())
    };
    hlo::ArrayLiteral { dims: shape.dims.clone(), buffer: buffer.into() }
}

/// `module` on f32 inputs.
/// The results, all of f32, of a program of a parameter of one element for each input.
fn run(text: &str, engine_name: &str, inputs: &[f32]) -> Vec<f32> {
    let each: Vec<&[f32]> = inputs.chunks(1).collect();
    run_on(text, engine_name, &each)
}

/// The same of parameters of one dimension.
fn run_on(text: &str, engine_name: &str, inputs: &[&[f32]]) -> Vec<f32> {
    let (module, found) = parse_text(text);
    let module = module.unwrap_or_else(|| panic!("{found:?}"));
    let arrays = inputs
        .iter()
        .map(|x| hlo::ArrayLiteral {
            dims: [x.len() as i64].as_slice().into(),
            buffer: hlo::Buffer::F32(x.to_vec()).into(),
        })
        .collect();
    let inputs = Inputs::new(&module, &[arrays]).unwrap();
    let outcome = engine(engine_name).unwrap().run(&module, inputs, &RunOptions::default());
    let results = outcome.into_results().unwrap().results;
    results[0].iter().flat_map(|a| <f32 as hlo::BufferOf>::slice(&a.buffer).unwrap().to_vec()).collect()
}

#[test]
fn a_contracted_product_is_not_rounded() {
    let text = "HloModule m
ENTRY %main {
  %a = f32[1] parameter(0)
  %b = f32[1] parameter(1)
  %c = f32[1] parameter(2)
  %p = f32[1] multiply(%a, %b)
  %s = f32[1] add(%p, %c)
  %d = f32[1] subtract(%p, %c)
  %r = f32[1] subtract(%c, %p)
  %a64 = f64[1] convert(%a)
  %w = f64[1] multiply(%a64, %a64)
  %c64 = f64[1] convert(%c)
  %x = f64[1] subtract(%c64, %w)
  %x32 = f32[1] convert(%x)
  ROOT %t = (f32[1], f32[1], f32[1], f32[1]) tuple(%s, %d, %r, %x32)
}
";
    // (1 + 2^-12)^2 = 1 + 2^-11 + 2^-24, whose last term f32 cannot hold beside 1.
    let a = 1.0 + 2f32.powi(-12);
    let c = -(1.0 + 2f32.powi(-11));
    assert_eq!(run(text, "interpreter", &[a, a, c])[..2], [0.0, 2.0 + 2f32.powi(-10)]);
    let fused = run(text, "interpreter:fma", &[a, a, c]);
    assert_eq!(fused[0], 2f32.powi(-24));
    assert_eq!(fused[2], c - (1.0 + 2f32.powi(-11)));
}

#[test]
fn the_rest_of_a_product_of_doubles_is_added() {
    let text = "HloModule m
ENTRY %main {
  %a = f32[1] parameter(0)
  %b = f32[1] parameter(1)
  %a64 = f64[1] convert(%a)
  %b64 = f64[1] convert(%b)
  %x = f64[1] add(%a64, %b64)
  %square = f64[1] multiply(%x, %x)
  %two = f64[1] add(%b64, %b64)
  %one = f64[1] constant({1})
  %near = f64[1] add(%one, %two)
  %left = f64[1] subtract(%square, %near)
  %right = f64[1] subtract(%near, %square)
  %minus = f64[1] negate(%near)
  %sum = f64[1] add(%square, %minus)
  %sum2 = f64[1] add(%minus, %square)
  %l = f32[1] convert(%left)
  %r = f32[1] convert(%right)
  %s = f32[1] convert(%sum)
  %s2 = f32[1] convert(%sum2)
  ROOT %t = (f32[1], f32[1], f32[1], f32[1]) tuple(%l, %r, %s, %s2)
}
";
    // x = 1 + 2^-30, x^2 = 1 + 2^-29 + 2^-60.
    let inputs = [1.0, 2f32.powi(-30)];
    assert_eq!(run(text, "interpreter", &inputs), [0.0; 4]);
    let e = 2f32.powi(-60);
    assert_eq!(run(text, "interpreter:fma", &inputs), [e, -e, e, e]);
}

#[test]
fn denormals_become_zeros_of_their_sign_and_functions_move_by_one_unit() {
    let text = "HloModule m
ENTRY %main {
  %a = f32[1] parameter(0)
  %sum = f32[1] add(%a, %a)
  %copy = f32[1] copy(%a)
  %e = f32[1] exponential(%a)
  %x = f8e8m0fnu[1] constant({5.877472e-39})
  %w = f32[1] convert(%x)
  ROOT %t = (f32[1], f32[1], f32[1], f32[1]) tuple(%sum, %copy, %e, %w)
}
";
    let least = -f32::from_bits(3);
    let bits = |v: Vec<f32>| v.into_iter().map(f32::to_bits).collect::<Vec<_>>();
    assert_eq!(
        bits(run(text, "interpreter:flush", &[least])),
        [0x8000_0000, least.to_bits(), 0x3f80_0000, 0x0040_0000]
    );
    assert_eq!(run(text, "interpreter:ulp-up", &[0.0])[2].to_bits(), 0x3f80_0001);
    assert_eq!(run(text, "interpreter:ulp-down", &[0.0])[2].to_bits(), 0x3f7f_ffff);
    assert_eq!(run(text, "interpreter:ulp-up", &[f32::INFINITY])[2], f32::INFINITY);
    assert_eq!(run(text, "interpreter:ulp-up", &[-1000.0])[2], 0.0);
}

#[test]
fn a_chain_of_bf16_is_rounded_once() {
    let text = "HloModule m
ENTRY %main {
  %a = f32[1] parameter(0)
  %b = f32[1] parameter(1)
  %x = bf16[1] convert(%a)
  %y = bf16[1] convert(%b)
  %p = bf16[1] multiply(%x, %x)
  %s = bf16[1] subtract(%p, %y)
  ROOT %w = f32[1] convert(%s)
}
";
    // (1 + 2^-7)^2 - 1 = 2^-6 + 2^-14; bf16 rounds the square to 1 + 2^-6.
    let inputs = [1.0 + 2f32.powi(-7), 1.0];
    assert_eq!(run(text, "interpreter", &inputs), [2f32.powi(-6)]);
    assert_eq!(run(text, "interpreter:excess", &inputs), [2f32.powi(-6) + 2f32.powi(-14)]);
}

/// `acc * x + x` over windows and over two dimensions of `[[a, b], [c, d]]`: with the last dimension fastest
/// `a, b, c, d`, with the first `a, c, b, d`.
#[test]
fn folds_by_columns_take_the_first_dimension_fastest() {
    let parameters: String = (0..6).map(|i| format!("p{i} = f32[1] parameter({i})\n  ")).collect();
    let text = |operation: &str, result: &str| {
        format!(
            "HloModule m
fold {{
  acc = f32[] parameter(0)
  x = f32[] parameter(1)
  p = f32[] multiply(acc, x)
  ROOT s = f32[] add(p, x)
}}
ENTRY e {{
  {parameters}
  flat = f32[6] concatenate(p0, p1, p2, p3, p4, p5), dimensions={{0}}
  x = f32[2,3] reshape(flat)
  zero = f32[] constant(1)
  ROOT r = {result} {operation}, to_apply=fold
}}
"
        )
    };
    let fold = |order: &[f32]| order.iter().fold(1.0, |acc, x| acc * x + x);
    let inputs = [2.0, 3.0, 5.0, 7.0, 11.0, 13.0];
    let whole = text("reduce(x, zero), dimensions={0,1}", "f32[]");
    assert_eq!(run(&whole, "interpreter", &inputs), [fold(&inputs)]);
    let by_columns = "interpreter:regions-by-columns";
    assert_eq!(run(&whole, by_columns, &inputs), [fold(&[2.0, 7.0, 3.0, 11.0, 5.0, 13.0])]);
    let exchanged = inputs.iter().fold(1.0, |acc, x| x * acc + acc);
    assert_eq!(run(&whole, "interpreter:regions-swapped", &inputs), [exchanged]);
    let windows = text("reduce-window(x, zero), window={size=2x2}", "f32[1,2]");
    let expected = [fold(&[2.0, 7.0, 3.0, 11.0]), fold(&[3.0, 11.0, 5.0, 13.0])];
    assert_eq!(run(&windows, by_columns, &inputs), expected);
}

/// What is in the operand is a scatter's first parameter: only folds have their operands exchanged.
#[test]
fn what_is_scattered_comes_second() {
    let text = "HloModule m
region {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] subtract(a, b)
}
ENTRY e {
  x = f32[1] parameter(0)
  u = f32[1] parameter(1)
  i = s32[1,1] constant({{0}})
  ROOT r = f32[1] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=region
}
";
    assert_eq!(run(text, "interpreter:regions-swapped", &[5.0, 3.0]), [2.0]);
}

/// `acc + x * x` has its accumulator on one side: no compiler squares that.
#[test]
fn functions_of_elements_are_not_applied_to_what_is_accumulated() {
    let text = "HloModule m
region {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  q = f32[] multiply(b, b)
  ROOT s = f32[] add(a, q)
}
ENTRY e {
  x = f32[1] parameter(0)
  y = f32[1] parameter(1)
  i = f32[] constant(1)
  c = f32[2] concatenate(x, y), dimensions={0}
  ROOT r = f32[] reduce(c, i), dimensions={0}, to_apply=region
}
";
    assert_eq!(run(text, "interpreter:regions-swapped", &[2.0, 3.0]), [14.0]);
}

/// Tree reduction of more than 32 elements: windows of an unrecognized region each begin with the initial
/// value, those of a sum with 0, because a sum has its initial value once.
#[test]
fn long_folds_go_by_windows() {
    let text = |ty: &str, steps: &str| {
        format!(
            "HloModule m
fold {{
  acc = {ty}[] parameter(0)
  x = {ty}[] parameter(1)
  {steps}
}}
ENTRY e {{
  x = f32[70] parameter(0)
  y = {ty}[70] convert(x)
  one = {ty}[] constant(1)
  r = {ty}[] reduce(y, one), dimensions={{0}}, to_apply=fold
  ROOT z = f32[] convert(r)
}}
"
        )
    };
    let inputs: Vec<f32> = (0..70).map(|i| (i % 7) as f32 - 3.0).collect();
    // Three windows, with a position of padding on either side of 13.
    let (low, size) = (13, 32);
    let windows = [&inputs[..size - low], &inputs[size - low..2 * size - low], &inputs[2 * size - low..]];
    let fold = |first: f32, of: &[f32]| of.iter().fold(first, |acc, x| acc + x + x);
    let twice = text("f32", "y = f32[] add(acc, x)\n  ROOT z = f32[] add(y, x)");
    assert_eq!(run_on(&twice, "interpreter", &[&inputs]), [fold(1.0, &inputs)]);
    let of_each = windows.map(|w| fold(1.0, w));
    assert_eq!(run_on(&twice, "interpreter:regions-windows", &[&inputs]), [fold(1.0, &of_each)]);
    // Of four bits: steps of a half are lost from 8 on.
    let sum = text("f8e4m3fnuz", "ROOT y = f8e4m3fnuz[] add(acc, x)");
    let rounded = |x: f32| {
        let step = 2f32.powi(x.log2().floor() as i32 - 3);
        (x / step).round_ties_even() * step
    };
    let stepped = |first: f32, of: &[f32]| of.iter().fold(first, |acc, x| rounded(acc + x));
    let inputs = [0.5; 70];
    let windows = [&inputs[..19], &inputs[..32], &inputs[..19]];
    assert_eq!(run_on(&sum, "interpreter:region", &[&inputs]), [stepped(1.0, &inputs)]);
    let of_each = windows.map(|w| stepped(0.0, w));
    assert_eq!(run_on(&sum, "interpreter:region-windows", &[&inputs]), [stepped(1.0, &of_each)]);
    assert_ne!(stepped(1.0, &of_each), stepped(1.0, &inputs));
}

/// Sums over several dimensions, each step rounded: row by row, and column by column.
#[test]
fn narrow_sums_by_columns_take_the_first_dimension_fastest() {
    let text = "HloModule m
add {
  acc = f8e4m3fnuz[] parameter(0)
  x = f8e4m3fnuz[] parameter(1)
  ROOT y = f8e4m3fnuz[] add(acc, x)
}
ENTRY e {
  x = f32[4] parameter(0)
  n = f8e4m3fnuz[4] convert(x)
  m = f8e4m3fnuz[2,2] reshape(n)
  zero = f8e4m3fnuz[] constant(0)
  r = f8e4m3fnuz[] reduce(m, zero), dimensions={0,1}, to_apply=add
  ROOT z = f32[] convert(r)
}
";
    // 16 + 1 is 16.
    let inputs = [16.0, -16.0, 1.0, 1.0];
    assert_eq!(run_on(text, "interpreter:region", &[&inputs]), [2.0]);
    assert_eq!(run_on(text, "interpreter:region-by-columns", &[&inputs]), [1.0]);
}

/// The reciprocal of 41 is rounded, and 41 times it is less than 1.
#[test]
fn quotients_by_what_repeats_numbers_are_products_with_reciprocals() {
    let text = "HloModule m
ENTRY e {
  x = f32[2] parameter(0)
  c = f32[] constant(41)
  d = f32[2] broadcast(c), dimensions={}
  ROOT q = f32[2] divide(x, d)
}
";
    assert_eq!(run_on(text, "interpreter", &[&[41.0, 82.0]]), [1.0, 2.0]);
    let below = 41.0 * (1.0f32 / 41.0);
    assert!(below < 1.0);
    assert_eq!(run_on(text, "interpreter:reciprocals", &[&[41.0, 82.0]]), [below, 82.0 * (1.0f32 / 41.0)]);
}

/// `(1 + inf i) (1 + 0i)`: the definition has `1 - inf * 0`, scaling has 1. What is finite by the definition
/// stays, and so does what no factor scales.
#[test]
fn products_by_a_real_number_scale_part_by_part() {
    let text = "HloModule m
ENTRY e {
  a = f32[1] parameter(0)
  b = f32[1] parameter(1)
  c = f32[1] parameter(2)
  d = f32[1] parameter(3)
  x = c64[1] complex(a, b)
  y = c64[1] complex(c, d)
  z = c64[1] multiply(x, y)
  re = f32[1] real(z)
  im = f32[1] imag(z)
  ROOT r = f32[2] concatenate(re, im), dimensions={0}
}
";
    let of = |inputs: [f32; 4]| {
        let [defined, by_parts] =
            ["interpreter", "interpreter:products-by-parts"].map(|engine| run(text, engine, &inputs));
        (defined, by_parts)
    };
    let infinity = f32::INFINITY;
    let (defined, by_parts) = of([1.0, infinity, 1.0, 0.0]);
    assert!(defined[0].is_nan() && by_parts == [1.0, infinity]);
    let (_, by_parts) = of([2.0, 0.0, 3.0, infinity]);
    assert_eq!(by_parts, [6.0, infinity]);
    let (_, by_parts) = of([1.0, infinity, 0.0, 2.0]);
    assert_eq!(by_parts, [-infinity, 2.0]);
    let (defined, by_parts) = of([1.0, 2.0, 3.0, 4.0]);
    assert_eq!(by_parts, defined);
    let (_, by_parts) = of([1.0, infinity, 1.0, infinity]);
    assert!(by_parts[0] == -infinity && by_parts[1] == infinity);
    let (_, by_parts) = of([0.0, 0.0, infinity, 0.0]);
    assert!(by_parts[0].is_nan());
}

#[test]
fn sums_of_doubles_stay_in_doubles_whatever_their_operands_are() {
    // 2^24 + 1 is not representable in f32.
    let text = "HloModule m
    ENTRY e { a = f32[2] parameter(0)\n b = f32[2] parameter(1)\n h = f16[2] convert(b)
      d = f64[] dot(a, h), lhs_contracting_dims={0}, rhs_contracting_dims={0}
      i = f32[1,2,1] reshape(a)\n k = f16[2,1,1] reshape(h)
      c = f64[1,1,1] convolution(i, k), window={size=2}, dim_labels=b0f_0io->b0f
      whole = f64[] constant(16777216)\n rest = f64[] subtract(d, whole)\n of_dot = f32[] convert(rest)
      s = f64[] reshape(c)\n other = f64[] subtract(s, whole)\n of_convolution = f32[] convert(other)
      ROOT t = (f32[], f32[]) tuple(of_dot, of_convolution) }";
    for name in ["interpreter", "interpreter:region", "interpreter:reversed", "interpreter:tree"] {
        assert_eq!(run_on(text, name, &[&[16_777_216.0, 1.0], &[1.0, 1.0]]), [1.0, 1.0], "{name}");
    }
}

#[test]
fn what_belongs_to_no_group_has_the_bits_of_zero() {
    // One row belongs to a group, and one to none; the least scale is 2^-127.
    let text = "HloModule m
    ENTRY e { a = f32[2] parameter(0)\n b = f32[3] parameter(1)\n m = f32[2,1] reshape(a)\n k = f32[3,1,1] reshape(b)
      g = s32[3] constant({0, 1, 0})
      d = f8e8m0fnu[2,1] ragged-dot(m, k, g), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}
      f = f32[2,1] convert(d)\n ROOT t = (f32[2,1]) tuple(f) }";
    for name in ["interpreter", "interpreter:region", "interpreter:reversed"] {
        // 3 is no scale, 3 * 2.75 is rounded to one: 8.
        let found = run_on(text, name, &[&[3.0, 1.0], &[1.0, 2.75, 1.0]]);
        assert_eq!(found, [8.0, f32::from_bits(1 << 22)], "{name}");
    }
}

#[test]
fn computed_nans_are_negative_where_bits_are_looked_at() {
    let text = "HloModule m
ENTRY %main {
  %a = f32[2] parameter(0)
  %r = f32[2] sqrt(%a)
  %b = s32[2] bitcast-convert(%r)
  %f = f32[2] convert(%b)
  %given = s32[2] bitcast-convert(%a)
  %g = f32[2] convert(%given)
  ROOT %t = (f32[2], f32[2]) tuple(%f, %g)
}
";
    let bits = |of: &str| run_on(text, of, &[&[f32::NAN, -4.0]]);
    assert_eq!(bits("interpreter"), [2_143_289_344.0, 2_143_289_344.0, 2_143_289_344.0, -1_065_353_216.0]);
    assert_eq!(
        bits("interpreter:negative-nans"),
        [-4_194_304.0, -4_194_304.0, 2_143_289_344.0, -1_065_353_216.0]
    );
}
