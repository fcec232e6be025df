//! The back end `cpu:scalar` against the interpreter: every kind of kernel that a plan has, with and without
//! LLVM in the build.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use hlo::{
    ArrayLiteral, ArrayShape, Bits, BufferOf, Element as _, ElementType, Literal, Module, with_buffer,
    with_element_type,
};
use hlo_arithmetic::scalar::Scalar as _;
use hlo_codegen::compile::{Compiled, DriverOptions, compile};
use hlo_codegen::program::Code;
use hlo_codegen::runtime::executable::{Executable, LoadOptions, RunOptions};
use hlo_interp::{Interpreter, Options, Value};
use hlo_library_base::pool::Pool;
use hlo_scalar::Scalar;

fn module(text: &str) -> Module {
    let parsed = hlo_parser::parse_module(text, &hlo_parser::ParseOptions::default());
    let module = parsed.module.unwrap_or_else(|| panic!("{:?}\n{text}", parsed.diagnostics));
    let diagnostics = hlo::verify::verify(&module);
    assert!(!diagnostics.has_errors(), "{diagnostics:?}\n{text}");
    module
}

/// Small multiples of a quarter (whole numbers in types of integers), whose sums and products are exact in
/// any order.
fn argument(shape: &ArrayShape, seed: i64) -> Literal {
    let n = shape.elements() as i64;
    let value = |i: i64| ((i * 37 + seed * 11) % 19 - 9) as f64;
    let buffer = with_element_type!(shape.element_type, T => {
        let scale = if T::TYPE.is_float() || T::TYPE.is_complex() { 0.25 } else { 1.0 };
        let wrap = |x: f64| if T::TYPE.is_integer() { T::from_i64(x as i64) } else { T::from_f64(x * scale) };
        T::wrap((0..n).map(|i| wrap(value(i))).collect())
    });
    Literal::Array(ArrayLiteral { dims: shape.dims.clone(), buffer: buffer.into() })
}

fn compiled(module: &Module, opt_level: u8) -> Compiled {
    let options = DriverOptions { fallback: false, verify: true, ..DriverOptions::default() };
    let compiled = compile(module, &Scalar { opt_level }, options);
    compiled.unwrap_or_else(|e| panic!("{e}"))
}

/// Runs a program at two levels, on two threads, and compares each element: all bits, or floats within a
/// relative error.
fn check_within(text: &str, error: f64) {
    let module = module(text);
    let program = module.program_shape(module.entry()).unwrap();
    let parameters = program.parameters.iter().flat_map(hlo::Shape::leaves);
    let arguments: Vec<Literal> =
        (0..).zip(parameters).map(|(i, shape)| argument(shape.as_array().unwrap(), i)).collect();
    let interpreter = Interpreter::new(&module, Options::default());
    let values = arguments.iter().cloned().map(Value::from_literal).collect();
    let expected = interpreter.run(values).unwrap().into_literal();
    for opt_level in [0, 2] {
        let made = compiled(&module, opt_level);
        assert!(matches!(made.program.code, Code::Evaluated(_)) || made.program.kernels.is_empty());
        let options = LoadOptions::new(Arc::new(Pool::new(2)));
        let executable = Executable::load(made.program, &options).unwrap();
        for _ in 0..2 {
            let (got, _) = executable.run_literals(&arguments, &RunOptions::default()).unwrap();
            let expected = expected.arrays();
            assert_eq!(got.len(), expected.len(), "{text}");
            for (got, expected) in got.iter().zip(expected) {
                assert_eq!(got.buffer.element_type(), expected.buffer.element_type());
                same(got, expected, error, text);
            }
        }
    }
}

fn same(got: &ArrayLiteral, expected: &ArrayLiteral, error: f64, text: &str) {
    with_buffer!(&*got.buffer, got => {
        fn of<T: BufferOf>(_: &[T], x: &ArrayLiteral) -> Vec<T> {
            T::slice(&x.buffer).unwrap().to_vec()
        }
        for (i, (a, b)) in got.iter().zip(of(got, expected)).enumerate() {
            let number = |x| hlo_arithmetic::scalar::convert::<_, f64>(x);
            let near = || (number(*a) - number(b)).abs() <= error * number(b).abs();
            assert!(a.bits() == b.bits() || error > 0.0 && near(), "element {i}: {a:?}, not {b:?}\n{text}");
        }
    });
}

fn check(text: &str) {
    check_within(text, 0.0);
}

/// A module whose entry has this body, which uses parameters p0, p1, ...
fn entry(regions: &str, parameters: &[&str], body: &str) -> String {
    let mut text = format!("HloModule m\n\n{regions}\nENTRY main {{\n");
    for (i, p) in parameters.iter().enumerate() {
        text += &format!("  p{i} = {p} parameter({i})\n");
    }
    text + body + "\n}\n"
}

const REGIONS: &str = "\
add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] add(a, b) }
addb { a = bf16[] parameter(0)\n b = bf16[] parameter(1)\n ROOT r = bf16[] add(a, b) }
addi { a = s32[] parameter(0)\n b = s32[] parameter(1)\n ROOT r = s32[] add(a, b) }
max { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] maximum(a, b) }
mul { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] multiply(a, b) }
last { a = f32[] parameter(0)\n b = f32[] parameter(1)\n s = f32[] subtract(b, a)\n ROOT r = f32[] abs(s) }
ge { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = pred[] compare(a, b), direction=GE }
";

#[test]
fn elements_of_all_types() {
    for ty in ["pred", "s4", "u8", "s32", "u64", "bf16", "f16", "f8e4m3fn", "f32", "f64", "c64"] {
        let s = format!("{ty}[7,70]");
        let body = format!(
            "  m = {s} multiply(p0, p1)\n  a = {s} add(m, p0)\n  ROOT t = {ty}[70,7] transpose(a), dimensions={{1,0}}"
        );
        check(&entry("", &[&s, &s], &body));
    }
    let s = "f32[300]";
    let body = format!(
        "  e = {s} exponential(p0)\n  t = {s} tanh(e)\n  z = f32[] constant(0)\n  zb = {s} broadcast(z), dimensions={{}}\n  \
         c = pred[300] compare(p0, zb), direction=LT\n  ROOT r = {s} select(c, t, e)"
    );
    check(&entry("", &[s], &body));
}

#[test]
fn elements_from_elsewhere() {
    let body = "  z = f32[] constant(3)\n  w = f32[9,10] pad(p0, z), padding=1_2_0x-1_0_1\n  s = f32[4,5] slice(w), slice={[1:9:2], [0:10:2]}\n  \
         r = f32[4,5] reverse(s), dimensions={1}\n  i = f32[4,5] iota(), iota_dimension=1\n  c = f32[8,5] concatenate(r, i), dimensions={0}\n  \
         ROOT n = f32[8,5] negate(c)";
    check(&entry("", &["f32[6,6]"], body));
    let body = "  g = f32[5,1,3] gather(p0, p1), offset_dims={1,2}, collapsed_slice_dims={}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,3}\n  \
         ROOT n = f32[5,1,3] negate(g)";
    check(&entry("", &["f32[9,3]", "s32[5,1]"], body));
    let body = "  d = f32[2,3] dynamic-slice(p0, p1, p2), dynamic_slice_sizes={2,3}\n  n = f32[2,3] negate(d)\n  \
         ROOT u = f32[8,3] dynamic-update-slice(p0, n, p2, p1)";
    check(&entry("", &["f32[8,3]", "u64[]", "u64[]"], body));
    let body = "  h = s16[6,2] bitcast-convert(p0)\n  n = s16[6,2] not(h)\n  w = f32[6] bitcast-convert(n)\n  ROOT r = (f32[6], s16[6,2]) tuple(w, n)";
    check(&entry("", &["f32[6]"], body));
}

#[test]
fn reductions() {
    for (dims, result, along) in [
        ("[40,50]", "[40]", "1"),
        ("[40,50]", "[50]", "0"),
        ("[40,50]", "[]", "0,1"),
        ("[3,700]", "[3]", "1"),
    ] {
        for (region, ty, start) in [
            ("add", "f32", "0.5"),
            ("max", "f32", "-inf"),
            ("last", "f32", "1"),
            ("addb", "bf16", "0"),
            ("addi", "s32", "7"),
        ] {
            let body = format!(
                "  z = {ty}[] constant({start})\n  n = {ty}{dims} negate(p0)\n  \
                 ROOT r = {ty}{result} reduce(n, z), dimensions={{{along}}}, to_apply={region}"
            );
            // Sums of bf16 are exact here in f32, rounded once.
            check(&entry(REGIONS, &[&format!("{ty}{dims}")], &body));
        }
    }
    // The order of factors is the program's.
    let body = "  o = f32[] constant(1)\n  ROOT r = f32[4] reduce(p0, o), dimensions={1}, to_apply=mul";
    check(&entry(REGIONS, &["f32[4,33]"], body));
    let argmax = "am { a = f32[] parameter(0)\n i = s32[] parameter(1)\n b = f32[] parameter(2)\n j = s32[] parameter(3)\n \
         g = pred[] compare(a, b), direction=GT\n n = pred[] compare(a, a), direction=NE\n o = pred[] or(g, n)\n e = pred[] compare(a, b), direction=EQ\n \
         l = pred[] compare(i, j), direction=LT\n t = pred[] and(e, l)\n f = pred[] or(o, t)\n v = f32[] select(o, a, b)\n k = s32[] select(f, i, j)\n \
         ROOT r = (f32[], s32[]) tuple(v, k) }";
    let body = "  m = f32[] constant(-inf)\n  z = s32[] constant(0)\n  i = s32[6,40] iota(), iota_dimension=1\n  \
         r = (f32[6], s32[6]) reduce(p0, i, m, z), dimensions={1}, to_apply=am\n  ROOT k = s32[6] get-tuple-element(r), index=1";
    check(&entry(argmax, &["f32[6,40]"], body));
}

#[test]
fn rows_and_products() {
    let body = "  m = f32[] constant(-inf)\n  z = f32[] constant(0)\n  x = f32[30] reduce(p0, m), dimensions={1}, to_apply=max\n  \
         xb = f32[30,64] broadcast(x), dimensions={0}\n  d = f32[30,64] subtract(p0, xb)\n  e = f32[30,64] exponential(d)\n  \
         s = f32[30] reduce(e, z), dimensions={1}, to_apply=add\n  sb = f32[30,64] broadcast(s), dimensions={0}\n  ROOT r = f32[30,64] divide(e, sb)";
    check_within(&entry(REGIONS, &["f32[30,64]"], body), 1e-5);
    let body = "  d = f32[24,40] dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n  b = f32[24,40] broadcast(p2), dimensions={1}\n  \
         a = f32[24,40] add(d, b)\n  z = f32[] constant(0)\n  zb = f32[24,40] broadcast(z), dimensions={}\n  ROOT r = f32[24,40] maximum(a, zb)";
    check(&entry(REGIONS, &["f32[24,33]", "f32[33,40]", "f32[40]"], body));
    // Sums of weighted elements are reductions.
    let body = "  ROOT d = f32[16,64] dot(p0, p1), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}";
    check(&entry(REGIONS, &["f32[16,64,100]", "f32[16,100]"], body));
    // Few terms are an expression.
    let body = "  d = f32[100,3] dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n  ROOT n = f32[100,3] negate(d)";
    check(&entry(REGIONS, &["f32[100,3]", "f32[3,3]"], body));
}

#[test]
fn what_applies_computations() {
    let attrs = "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1";
    // An element is updated several times, in order; updates outside are left out.
    for region in ["last", "mul", "add"] {
        let body = format!(
            "  n = f32[12,4] negate(p2)\n  ROOT s = f32[8,4] scatter(p0, p1, n), {attrs}, to_apply={region}"
        );
        check(&entry(REGIONS, &["f32[8,4]", "s32[12,1]", "f32[12,4]"], &body));
    }
    let comparator = "by { a = f32[] parameter(0)\n b = f32[] parameter(1)\n c = s32[] parameter(2)\n d = s32[] parameter(3)\n x = f32[] multiply(a, a)\n \
         y = f32[] multiply(b, b)\n ROOT r = pred[] compare(x, y), direction=LT }";
    let body = "  ROOT s = (f32[5,60], s32[5,60]) sort(p0, p1), dimensions={1}, is_stable=true, to_apply=by";
    check(&entry(comparator, &["f32[5,60]", "s32[5,60]"], body));
    let body = "  z = f32[] constant(0)\n  ROOT s = f32[20] select-and-scatter(p0, p1, z), window={size=3 stride=2 pad=1_0}, select=ge, scatter=last";
    check(&entry(REGIONS, &["f32[20]", "f32[10]"], body));
    let body = "  o = f32[] constant(1)\n  ROOT w = f32[31,6] reduce-window(p0, o), window={size=10x5}, to_apply=last";
    check(&entry(REGIONS, &["f32[40,10]"], body));
}

#[test]
fn loops_that_are_one_kernel() {
    let text = "HloModule m
body { s = (s32[], f32[4], f32[9,4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0\n  x = f32[4] get-tuple-element(s), index=1\n  all = f32[9,4] get-tuple-element(s), index=2
  one = s32[] constant(1)\n  zero = s32[] constant(0)\n  next = s32[] add(i, one)\n  n = f32[4] negate(x)\n  y = f32[4] add(n, x)
  row = f32[1,4] reshape(n)\n  kept = f32[9,4] dynamic-update-slice(all, row, i, zero)
  half = f32[] constant(0.5)\n  h = f32[4] broadcast(half), dimensions={}\n  z = f32[4] multiply(x, h)\n  w = f32[4] add(y, z)
  ROOT t = (s32[], f32[4], f32[9,4]) tuple(next, w, kept) }
cond { s = (s32[], f32[4], f32[9,4]) parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n  n = s32[] constant(9)
  ROOT l = pred[] compare(i, n), direction=LT }
ENTRY main { x = f32[4] parameter(0)\n  all = f32[9,4] parameter(1)\n  start = s32[] parameter(2)
  t = (s32[], f32[4], f32[9,4]) tuple(start, x, all)
  ROOT w = (s32[], f32[4], f32[9,4]) while(t), condition=cond, body=body }";
    check(text);
    let module = module(text);
    let made = compiled(&module, 2);
    assert!(made.program.kernels.iter().any(|k| k.iterates), "a loop in one kernel");
    // It comes back when it has used its fuel.
    let options = LoadOptions::new(Arc::new(Pool::new(1)));
    let executable = Executable::load(made.program, &options).unwrap();
    let of = |ty, dims: &[i64]| argument(&ArrayShape::new(ty, dims), 0);
    let start =
        Literal::Array(ArrayLiteral { dims: [].as_slice().into(), buffer: i32::wrap(vec![-100]).into() });
    let arguments = [of(ElementType::F32, &[4]), of(ElementType::F32, &[9, 4]), start];
    let limited = RunOptions { fuel: Some(20), ..RunOptions::default() };
    assert!(executable.run_literals(&arguments, &limited).is_err());
    assert!(executable.run_literals(&arguments, &RunOptions::default()).is_ok());
}

#[test]
fn what_has_no_elements() {
    check(&entry(REGIONS, &["f32[0,3]"], "  ROOT n = f32[0,3] negate(p0)"));
    let body = "  z = f32[] constant(2)\n  ROOT r = f32[3] reduce(p0, z), dimensions={0}, to_apply=add";
    check(&entry(REGIONS, &["f32[0,3]"], body));
}
