//! Computations that are applied to elements: as bytecode over blocks, and lane by lane.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use hlo::{Buffer, Module};
use hlo_interp::{Interpreter, Options, Tensor, Value};

/// Computations that bytecode can hold, of an `f32` and an `s32`.
const APPLIED: &[&str] = &[
    "ROOT r = f32[] add(p, c)",
    "m = f32[] maximum(p, c)\n x = f32[] exponential(m)\n ROOT r = f32[] divide(x, p)",
    "g = pred[] compare(p, c), direction=GE\n ROOT r = f32[] select(g, p, c)",
    "g = pred[] compare(p, c), direction=LT, type=TOTALORDER\n n = pred[] not(g)\n ROOT r = f32[] convert(n)",
    "b = bf16[] convert(p)\n d = bf16[] convert(c)\n s = bf16[] multiply(b, d)\n ROOT r = f32[] convert(s)",
    "l = f32[] constant(-2)\n ROOT r = f32[] clamp(l, p, c)",
    "f = pred[] is-finite(p)\n h = f16[] convert(p)\n w = f32[] convert(h)\n ROOT r = f32[] select(f, w, c)",
    "z = c64[] complex(p, c)\n e = c64[] multiply(z, z)\n a = f32[] abs(e)\n i = f32[] imag(e)\n ROOT r = f32[] subtract(a, i)",
    "u = u32[] bitcast-convert(p)\n k = u32[] constant(8)\n s = u32[] shift-right-logical(u, k)\n ROOT r = f32[] convert(s)",
    "ROOT r = f32[] reduce-precision(p), exponent_bits=5, mantissa_bits=10",
    "v = f8e4m3fn[] convert(p)\n y = f8e4m3fn[] tanh(v)\n t = (f8e4m3fn[], f32[]) tuple(y, c)\n o = f8e4m3fn[] get-tuple-element(t), index=0\n ROOT r = f32[] convert(o)",
    "ROOT r = f32[] call(c, p), to_apply=inner",
    "ROOT r = f32[] copy(p)",
    "ROOT r = f32[] constant(nan)",
    "s = s8[] convert(q)\n d = s8[] divide(s, s)\n w = s4[] convert(d)\n x = s4[] popcnt(w)\n ROOT r = f32[] convert(x)",
];

const N: usize = 3000;

fn run(text: &str) -> Vec<u32> {
    let parsed = hlo_parser::parse_module(text, &hlo_parser::ParseOptions::default());
    let module: Module = parsed.module.unwrap_or_else(|| panic!("{text}\n{:?}", parsed.diagnostics));
    let mut bits = 7u64;
    let mut draw = || {
        bits = hlo::elided::splitmix64(bits);
        bits >> 32
    };
    // Every kind of float, NaNs with payloads included; small and large integers.
    let floats: Vec<f32> = (0..N)
        .map(|i| if i % 3 == 0 { f32::from_bits(draw() as u32) } else { draw() as f32 / 1e9 - 2.0 })
        .collect();
    let integers: Vec<i32> =
        (0..N).map(|i| if i % 2 == 0 { draw() as i32 } else { draw() as i32 % 5 }).collect();
    let args = vec![
        Value::Array(Tensor::from_vec([N as i64].as_slice(), floats)),
        Value::Array(Tensor::from_vec([N as i64].as_slice(), integers)),
    ];
    let value = Interpreter::new(&module, Options::default()).run(args).unwrap();
    let Buffer::F32(result) = value.expect_array().buffer() else { panic!("{text}") };
    result.iter().map(|x| x.to_bits()).collect()
}

#[test]
fn blocks_are_lane_by_lane() {
    for body in APPLIED {
        let applied = format!(
            "inner {{ x = f32[] parameter(0)\n y = f32[] parameter(1)\n ROOT d = f32[] subtract(x, y) }}\n\
             f {{ p = f32[] parameter(0)\n q = s32[] parameter(1)\n c = f32[] convert(q)\n {body} }}\n"
        );
        let bytecode = format!(
            "HloModule t\n{applied}ENTRY e {{ a = f32[{N}] parameter(0)\n b = s32[{N}] parameter(1)\n\
             ROOT m = f32[{N}] map(a, b), dimensions={{0}}, to_apply=f }}\n"
        );
        // A conditional is nothing for bytecode.
        let lanes = format!(
            "HloModule t\n{applied}unpack {{ t = (f32[], s32[]) parameter(0)\n i = f32[] get-tuple-element(t), index=0\n\
             j = s32[] get-tuple-element(t), index=1\n ROOT k = f32[] call(i, j), to_apply=f }}\n\
             g {{ pp = f32[] parameter(0)\n qq = s32[] parameter(1)\n tt = (f32[], s32[]) tuple(pp, qq)\n\
             yes = pred[] constant(true)\n ROOT w = f32[] conditional(yes, tt, tt), true_computation=unpack, false_computation=unpack }}\n\
             ENTRY e {{ a = f32[{N}] parameter(0)\n b = s32[{N}] parameter(1)\n\
             ROOT m = f32[{N}] map(a, b), dimensions={{0}}, to_apply=g }}\n"
        );
        assert_eq!(run(&bytecode), run(&lanes), "{body}");
    }
}
