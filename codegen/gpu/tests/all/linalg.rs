//! Cholesky factorizations and triangular systems: types, sizes, all options.

use crate::support;
use crate::support::{Tolerance, check, check_on};
use hlo_gpu::arch::Arch;

/// For well-conditioned matrices of small order: some units in the last place of the largest element.
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

#[test]
fn calls_of_lapack() {
    for (ty, letter) in [("f32", "s"), ("f64", "d"), ("c64", "c"), ("c128", "z")] {
        for uplo in [76, 85] {
            let n = 9;
            let text = format!(
                "HloModule m\nENTRY e {{\n{}  ROOT r = ({ty}[2,{n},{n}], s32[2]) custom-call(a), custom_call_target=\"lapack_{letter}potrf_ffi\", backend_config=\"{{uplo = {uplo} : ui8}}\"\n}}\n",
                definite(ty, n)
            );
            check(&text, tolerance(ty));
            for (side, trans, diag) in [(76, 78, 78), (82, 84, 78), (76, 67, 78), (82, 78, 78)] {
                let text = format!(
                    "HloModule m\nENTRY e {{\n{}  y = {ty}[2,{n},{n}] parameter(1)\n  ROOT r = {ty}[2,{n},{n}] custom-call(a, y), custom_call_target=\"lapack_{letter}trsm_ffi\", backend_config=\"{{side = {side} : ui8, uplo = {uplo} : ui8, trans_x = {trans} : ui8, diag = {diag} : ui8}}\"\n}}\n",
                    definite(ty, n)
                );
                check(&text, tolerance(ty));
            }
        }
    }
    // Step 3 fails, the second matrix does not.
    let failing = "HloModule m\nENTRY e {\n  x = f32[2,3,3] constant({{{4,2,1},{2,5,3},{1,3,-1}},{{4,2,1},{2,5,3},{1,3,9}}})\n  z = f32[2,3,3] parameter(0)\n  n = f32[2,3,3] subtract(z, z)\n  a = f32[2,3,3] add(x, n)\n  ROOT r = (f32[2,3,3], s32[2]) custom-call(a), custom_call_target=\"lapack_spotrf_ffi\", backend_config=\"{uplo = 85 : ui8}\"\n}\n";
    let got = support::interpreted(
        &support::compiled(&support::parse(failing), Arch::Sm90),
        &support::arguments(&support::parse(failing), 1),
    );
    let hlo::Buffer::S32(info) = &*got[1].buffer else { panic!("{:?}", got[1]) };
    assert_eq!(info[..], [3, 0]);
    let hlo::Buffer::F32(factors) = &*got[0].buffer else { panic!("{:?}", got[0]) };
    assert_eq!(factors[..9], [2.0, 1.0, 0.5, 2.0, 2.0, 1.25, 1.0, 3.0, -1.0], "the last row stays");
}
