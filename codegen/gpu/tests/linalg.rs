//! Cholesky factorizations and triangular systems: types, sizes, all options.
#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

mod support;

use hlo_gpu::arch::Arch;
use support::{Tolerance, check, check_on};

/// For well-conditioned matrices of small order: some units in the last place of the greatest element.
fn tolerance(ty: &str) -> Tolerance {
    Tolerance(if ty == "f32" || ty == "c64" { 2e-5 } else { 1e-13 })
}

/// A diagonally dominant matrix made of `x` and its adjoint, so that it is positive definite.
fn definite(ty: &str, n: i64) -> String {
    let (conjugate, real) = match ty {
        "c64" => (
            "  re = f32[2,N,N] real(t)\n  im = f32[2,N,N] imag(t)\n  ng = f32[2,N,N] negate(im)\n  h = c64[2,N,N] complex(re, ng)\n",
            true,
        ),
        "c128" => (
            "  re = f64[2,N,N] real(t)\n  im = f64[2,N,N] imag(t)\n  ng = f64[2,N,N] negate(im)\n  h = c128[2,N,N] complex(re, ng)\n",
            true,
        ),
        _ => ("  h = T[2,N,N] copy(t)\n", false),
    };
    let _ = real;
    let text = format!(
        "  x = T[2,N,N] parameter(0)\n  t = T[2,N,N] transpose(x), dimensions={{0,2,1}}\n{conjugate}  s = T[2,N,N] add(x, h)\n  i = s32[N,N] iota(), iota_dimension=0\n  j = s32[N,N] iota(), iota_dimension=1\n  d = pred[N,N] compare(i, j), direction=EQ\n  c = T[N,N] convert(d)\n  k = T[] constant({})\n  kb = T[N,N] broadcast(k), dimensions={{}}\n  kd = T[N,N] multiply(c, kb)\n  kk = T[2,N,N] broadcast(kd), dimensions={{1,2}}\n  a = T[2,N,N] add(s, kk)\n",
        if ty.starts_with('c') { format!("({},0)", 6 * n) } else { (6 * n).to_string() }
    );
    text.replace('T', ty).replace('N', &n.to_string())
}

#[test]
fn factorizations() {
    for ty in ["f32", "f64", "c64", "c128"] {
        for n in [1, 2, 5, 17, 33] {
            for lower in [true, false] {
                let text = format!(
                    "HloModule m\nENTRY e {{\n{}  ROOT r = {ty}[2,{n},{n}] cholesky(a), lower={lower}\n}}\n",
                    definite(ty, n)
                );
                check_on(&text, if lower { Arch::Sm90 } else { Arch::Sm80 }, tolerance(ty), 1);
            }
        }
    }
}

#[test]
fn failures_are_nan() {
    for ty in ["f32", "c64"] {
        let text = format!(
            "HloModule m\nENTRY e {{\n  x = {ty}[3,3] parameter(0)\n  n = {ty}[3,3] negate(x)\n  y = {ty}[2,3,3] broadcast(n), dimensions={{1,2}}\n  z = {ty}[3,3] multiply(x, x)\n  ROOT r = {ty}[2,3,3] cholesky(y), lower=true\n}}\n"
        );
        check(&text, tolerance(ty));
    }
}

#[test]
fn systems() {
    for ty in ["f32", "f64", "c64", "c128"] {
        for (n, others) in [(1, 3), (5, 9), (33, 2)] {
            for option in 0..8 {
                let (left, lower, unit) = (option & 1 == 0, option & 2 == 0, option & 4 == 0);
                for transpose in ["NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"] {
                    if n == 33 && (transpose == "TRANSPOSE" || ty == "c64" || ty == "f64") {
                        continue;
                    }
                    // Of a unit triangle the other elements have to be small: solutions grow.
                    let scale = if unit { "b" } else { "a" };
                    let b = if left { format!("{n},{others}") } else { format!("{others},{n}") };
                    let d = definite(ty, n);
                    let inverse = if ty.starts_with('c') { "(0.001,0)" } else { "0.001" };
                    let text = format!(
                        "HloModule m\nENTRY e {{\n{d}  small = {ty}[] constant({inverse})\n  sb = {ty}[2,{n},{n}] broadcast(small), dimensions={{}}\n  b = {ty}[2,{n},{n}] multiply(x, sb)\n  y = {ty}[2,{b}] parameter(1)\n  ROOT r = {ty}[2,{b}] triangular-solve({scale}, y), left_side={left}, lower={lower}, unit_diagonal={unit}, transpose_a={transpose}\n}}\n"
                    );
                    check(&text, tolerance(ty));
                }
            }
        }
    }
}
