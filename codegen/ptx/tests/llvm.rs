//! What LLVM 22 makes of one operation a kernel (`llc -mcpu=sm_90 -mattr=+ptx80`): every kernel verifies and
//! nothing of it is refused, and those of plain arithmetic compute what the host's arithmetic does.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use half::{bf16, f16};
use hlo_ptx::ir::Op;
use hlo_ptx::{Launch, Loaded, Memory, Options, launch, lower};

const TEXT: &str = include_str!("data/llvm.ptx");

fn load() -> (Memory, Loaded) {
    let mut memory = Memory::default();
    let module = lower::module(TEXT).unwrap_or_else(|d| panic!("{}", d[0]));
    let loaded = memory.load(module).unwrap();
    (memory, loaded)
}

#[test]
fn nothing_is_refused() {
    let (_, loaded) = load();
    assert!(loaded.module.kernels().count() > 300);
    for f in &loaded.module.functions {
        for i in &f.code {
            assert!(!matches!(&i.op, Op::Unsupported(_)), "{} line {}", f.name, i.line);
        }
    }
}

/// Runs a kernel on memory with the bytes; the bytes behind it.
fn run(memory: &mut Memory, loaded: &Loaded, kernel: &str, bytes: &[u8]) -> Vec<u8> {
    let p = memory.upload("p", bytes).unwrap();
    let o = launch(loaded, kernel, &Launch::new([1, 1, 1], [1, 1, 1], 0, &[p]), memory, &Options::default())
        .unwrap_or_else(|f| panic!("{kernel}: {f}"));
    assert!(o.reports.is_empty(), "{kernel}: {}", o.reports[0]);
    let out = memory.read(p, bytes.len() as u64).unwrap().to_vec();
    memory.free(p).unwrap();
    out
}

fn low(v: i128, bits: u32) -> u64 {
    (v as u128 & ((1 << bits) - 1)) as u64
}

fn integer(op: &str, bits: u32, a: u64, b: u64) -> Option<u64> {
    let s = |x: u64| (i128::from(x) << (128 - bits)) >> (128 - bits);
    let (x, y, u, v) = (s(a), s(b), i128::from(a), i128::from(b));
    Some(low(
        match op {
            "add" => x + y,
            "sub" => x - y,
            "mul" => x.wrapping_mul(y),
            // Not defined in LLVM: division by zero and overflow, shifts by the width and more.
            "sdiv" | "srem" if y == 0 || (y == -1 && x == -(1 << (bits - 1))) => return None,
            "udiv" | "urem" if v == 0 => return None,
            "shl" | "lshr" | "ashr" if v >= i128::from(bits) => return None,
            "sdiv" => x / y,
            "udiv" => u / v,
            "srem" => x % y,
            "urem" => u % v,
            "shl" => x << v,
            "lshr" => u >> v,
            "ashr" => x >> v,
            "and" => u & v,
            "or" => u | v,
            "xor" => u ^ v,
            "smax" => x.max(y),
            "smin" => x.min(y),
            "umax" => u.max(v),
            "umin" => u.min(v),
            _ => return None,
        },
        bits,
    ))
}

#[test]
fn integer_arithmetic() {
    let (mut memory, loaded) = load();
    let values = [
        0_u64,
        1,
        2,
        3,
        7,
        15,
        0x7F,
        0x80,
        0xFF,
        0x7FFF,
        0x8000,
        0xFFFF,
        0x7FFF_FFFF,
        0x8000_0000,
        0xFFFF_FFFF,
        0x1234_5678_9ABC_DEF0,
        i64::MAX as u64,
        i64::MIN as u64,
        u64::MAX,
    ];
    let mut checked = 0;
    let ops = [
        "add", "sub", "mul", "sdiv", "udiv", "srem", "urem", "shl", "lshr", "ashr", "and", "or", "xor",
        "smax", "smin", "umax", "umin",
    ];
    for op in ops {
        for bits in [8_u32, 16, 32, 64] {
            let n = bits as usize / 8;
            for a in values {
                for b in values {
                    let (a, b) = (low(i128::from(a), bits), low(i128::from(b), bits));
                    let Some(want) = integer(op, bits, a, b) else { continue };
                    let bytes = [&a.to_le_bytes()[..n], &b.to_le_bytes()[..n]].concat();
                    let out = run(&mut memory, &loaded, &format!("{op}_i{bits}"), &bytes);
                    assert_eq!(out[..n], want.to_le_bytes()[..n], "{op}_i{bits} {a:x} {b:x}");
                    checked += 1;
                }
            }
        }
    }
    assert!(checked > 10_000);
}

/// A value of a format as f64, exactly, and back with one rounding.
fn unpack(ty: &str, b: &[u8]) -> f64 {
    match ty {
        "half" => f16::from_le_bytes([b[0], b[1]]).to_f64(),
        "bfloat" => bf16::from_le_bytes([b[0], b[1]]).to_f64(),
        "float" => f64::from(f32::from_le_bytes(b[..4].try_into().unwrap())),
        _ => f64::from_le_bytes(b[..8].try_into().unwrap()),
    }
}

fn pack(ty: &str, v: f64) -> Vec<u8> {
    match ty {
        "half" => f16::from_f64(v).to_le_bytes().to_vec(),
        "bfloat" => bf16::from_f64(v).to_le_bytes().to_vec(),
        "float" => (v as f32).to_le_bytes().to_vec(),
        _ => v.to_le_bytes().to_vec(),
    }
}

#[test]
fn floating_point_arithmetic() {
    let (mut memory, loaded) = load();
    let values = [
        0.0,
        -0.0,
        1.0,
        -1.5,
        0.1,
        3.75,
        2.5,
        -2.5,
        1e-3,
        100.25,
        -7.0,
        65504.0,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        6e-8,
        1.0009765625,
    ];
    let mut checked = 0;
    for (ty, size) in [("half", 2), ("bfloat", 2), ("float", 4), ("double", 8)] {
        for a in values {
            for b in values {
                let (x, y) = (pack(ty, a), pack(ty, b));
                // What the format holds; the operations of f64 on these are exact, or are rounded once again
                // without harm: f64 has more than twice the digits (f32: 53 >= 2 * 24 + 2).
                let (u, v) = (unpack(ty, &x), unpack(ty, &y));
                let max = |u: f64, v: f64| {
                    if u == v {
                        if u.is_sign_positive() { u } else { v }
                    } else if u > v {
                        u
                    } else {
                        v
                    }
                };
                let nan = u.is_nan() || v.is_nan();
                let fused = u.mul_add(u, u);
                let cases = [
                    ("fadd", u + v),
                    ("fsub", u - v),
                    ("fmul", u * v),
                    ("fdiv", u / v),
                    ("sqrt", u.sqrt()),
                    ("fabs", u.abs()),
                    ("floor", u.floor()),
                    ("ceil", u.ceil()),
                    ("trunc", u.trunc()),
                    ("rint", u.round_ties_even()),
                    ("copysign", u.copysign(v)),
                    ("maximum", if nan { f64::NAN } else { max(u, v) }),
                    ("minimum", if nan { f64::NAN } else { -max(-u, -v) }),
                    ("fma", if ty == "double" || fused == u * u + u { fused } else { continue }),
                    ("cmp_oeq", if u == v { u } else { v }),
                    ("cmp_olt", if u < v { u } else { v }),
                    ("cmp_ugt", if nan || u > v { u } else { v }),
                    ("cmp_uno", if nan { u } else { v }),
                    ("cmp_une", if u != v { u } else { v }),
                ];
                for (op, want) in cases {
                    let out =
                        run(&mut memory, &loaded, &format!("{op}_{ty}"), &[x.clone(), y.clone()].concat());
                    let got = &out[..size];
                    let fine = got == pack(ty, want) || (want.is_nan() && unpack(ty, got).is_nan());
                    assert!(fine, "{op}_{ty} {u:e} {v:e}: {:e}, expected {want:e}", unpack(ty, got));
                    checked += 1;
                }
            }
        }
    }
    assert!(checked > 15_000);
}

#[test]
fn conversions() {
    let (mut memory, loaded) = load();
    for (ty, size) in [("half", 2), ("bfloat", 2), ("float", 4), ("double", 8)] {
        for v in [
            0_i64,
            1,
            -1,
            5,
            100,
            -100,
            127,
            255,
            30000,
            -32768,
            65535,
            123_456_789,
            -987_654_321_012,
            i64::MAX,
            i64::MIN,
            16_777_217,
        ] {
            for bits in [8_u32, 16, 32, 64] {
                let n = bits as usize / 8;
                let bytes = [&v.to_le_bytes()[..n], &[0; 8]].concat();
                let signed = (i128::from(v) << (128 - bits)) >> (128 - bits);
                let unsigned = i128::from(low(i128::from(v), bits));
                for (op, x) in [("sitofp", signed), ("uitofp", unsigned)] {
                    let out = run(&mut memory, &loaded, &format!("{op}_{ty}_i{bits}"), &bytes);
                    // Rounded once: i128 to f32 and f64 as Rust casts; narrower ones through exact f64 where
                    // it is.
                    let want = match ty {
                        "float" => (x as f32).to_le_bytes().to_vec(),
                        "double" => (x as f64).to_le_bytes().to_vec(),
                        _ if (x as f64) as i128 == x => pack(ty, x as f64),
                        _ => continue,
                    };
                    assert_eq!(out[..size], want, "{op}_{ty}_i{bits} {x}");
                }
            }
        }
        for v in [0.0, 0.5, -0.5, 1.5, 2.999, -3.7, 100.0, 120.7] {
            let bytes = [pack(ty, v), vec![0; 8]].concat();
            let x = unpack(ty, &bytes);
            for bits in [8_u32, 16, 32, 64] {
                let n = bits as usize / 8;
                let out = run(&mut memory, &loaded, &format!("fptosi_{ty}_i{bits}"), &bytes);
                assert_eq!(out[..n], (x as i64).to_le_bytes()[..n], "fptosi_{ty}_i{bits} {x}");
            }
        }
    }
}
