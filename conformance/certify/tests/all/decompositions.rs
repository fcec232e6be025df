//! Decompositions of matrices that are off by what an exponential in f32 may be off by: those of one that is
//! are inside.

use hlo::ArrayLiteral;
use hlo_certify::bounds::Bounds;
use hlo_execution::allowances::Allowances;
use hlo_execution::number;

use crate::common::certified;
use crate::logits::some;

/// A program that decomposes a matrix `c` of f64 (or its complex numbers), as `calls` say, made of arrays of
/// f32 that come `from` the parameters.
fn program(ty: &str, dims: &str, from: &str, calls: &str) -> String {
    let matrix = |name: &str| {
        format!("{name}e = f32[{dims}] {from}({name})\n {name}w = f64[{dims}] convert({name}e)\n ")
    };
    let both = if ty == "f64" {
        format!("{} c = f64[{dims}] add(aw, aw)\n ", matrix("a"))
    } else {
        format!("{} {} c = c128[{dims}] complex(aw, bw)\n ", matrix("a"), matrix("b"))
    };
    format!(
        "HloModule m\nENTRY e {{ a = f32[{dims}] parameter(0)\n b = f32[{dims}] parameter(1)\n {both}{calls} }}"
    )
}

fn parts(result: &(ArrayLiteral, Bounds)) -> Vec<(f64, f64)> {
    let numbers = number::Numbers::of(&hlo_interp::Tensor::from_literal(result.0.clone()));
    (0..numbers.len()).map(|i| numbers.at(i)).collect()
}

/// Results of what was decomposed instead are within soft radii, which are at most `limit` and not all more
/// than `loose` times what they had to be.
fn inside(
    name: &str,
    of: &[(ArrayLiteral, Bounds)],
    instead: &[(ArrayLiteral, Bounds)],
    limit: f64,
    loose: f64,
) {
    for (k, (of, instead)) in of.iter().zip(instead).enumerate() {
        let mut nearest = f64::INFINITY;
        for (i, (x, y)) in parts(of).into_iter().zip(parts(instead)).enumerate() {
            let (off, r) = ((x.0 - y.0).abs().max((x.1 - y.1).abs()), of.1.soft.at(i));
            assert!(off <= r, "{name}, {k} at {i}: {x:?} and {y:?} are {off:e} apart, the radius is {r:e}");
            assert!(r <= of.1.hard.at(i), "{name}, {k} at {i}");
            assert!(r <= limit, "{name}, {k} at {i}: the radius is {r:e}");
            if off > 0.0 {
                nearest = nearest.min(r / off);
            }
        }
        assert!(
            nearest < loose || nearest.is_infinite(),
            "{name}, {k}: all radii are {nearest} times too large"
        );
    }
}

fn check(ty: &str, (m, n): (usize, usize), seed: u64, name: &str, calls: &str, [limit, loose]: [f64; 2]) {
    let dims = format!("{m},{n}");
    let [a, b, by] = [seed, seed + 100, seed + 200].map(|seed| some(m * n, seed));
    let moved = |x: &[f32]| -> Vec<f32> {
        x.iter().zip(&by).map(|(x, by)| x.exp() * (1.0 + by * f32::EPSILON)).collect()
    };
    let of = certified(&program(ty, &dims, "exponential", calls), &[&a, &b], Allowances::STRICT);
    let instead =
        certified(&program(ty, &dims, "copy", calls), &[&moved(&a), &moved(&b)], Allowances::STRICT);
    inside(&format!("{name} of {ty}[{dims}], seed {seed}"), &of, &instead, limit, loose);
    // What is exact is off by what roundings in f64 make of it alone.
    let exact = certified(&program(ty, &dims, "copy", calls), &[&a, &b], Allowances::STRICT);
    for (k, (_, bounds)) in exact.iter().enumerate() {
        let of = |i: usize| bounds.soft.at(i);
        assert!((0..exact[k].0.buffer.len()).all(|i| of(i) < 1e-4 * limit), "{name}, {k}: {bounds:?}");
    }
}

const TYPES: [(&str, char); 2] = [("f64", 'd'), ("c128", 'z')];

#[test]
fn eigenvectors_move_by_the_distances_of_their_values() {
    for (ty, letter) in TYPES {
        let name = if ty == "f64" { "syevd" } else { "heevd" };
        for (seed, n) in [1, 2, 5, 9, 30].into_iter().cycle().take(10).enumerate() {
            for (mode, uplo) in [(86, 76), (86, 85), (78, 76)] {
                let call = format!(
                    "ROOT l = ({ty}[{n},{n}], f64[{n}], s32[]) custom-call(c), custom_call_target=\"lapack_{letter}{name}_ffi\", \
                     api_version=API_VERSION_TYPED_FFI, backend_config={{mode = {mode} : ui8, uplo = {uplo} : ui8}}"
                );
                check(ty, (n, n), seed as u64, name, &call, [0.1, 1e4]);
            }
        }
    }
}

#[test]
fn singular_vectors_move_by_the_distances_of_their_values() {
    for (ty, letter) in TYPES {
        for (seed, (m, n)) in [(1, 1), (4, 4), (7, 3), (3, 7), (30, 28), (12, 30)].into_iter().enumerate() {
            let least = m.min(n);
            for mode in [83, 78] {
                // Without vectors a square u says that both are all.
                let rows = if mode == 78 && m < n { n } else { least };
                let call = format!(
                    "ROOT l = ({ty}[{m},{n}], f64[{least}], {ty}[{m},{least}], {ty}[{rows},{n}], s32[]) custom-call(c), \
                     custom_call_target=\"lapack_{letter}gesdd_ffi\", api_version=API_VERSION_TYPED_FFI, backend_config={{mode = {mode} : ui8}}"
                );
                check(ty, (m, n), seed as u64, "gesdd", &call, [0.1, 1e4]);
            }
        }
    }
}

/// R, the reflectors, and Q from them and times something.
#[test]
fn factors_and_reflectors_move_by_the_inverse() {
    for (ty, letter) in TYPES {
        let or = if ty == "f64" { "or" } else { "un" };
        for (seed, (m, n)) in
            [(1, 1), (2, 2), (4, 4), (7, 3), (3, 7), (20, 20), (40, 12), (5, 1)].into_iter().enumerate()
        {
            let (least, ffi) = (m.min(n), "api_version=API_VERSION_TYPED_FFI");
            let calls = format!(
                "l = ({ty}[{m},{n}], {ty}[{least}]) custom-call(c), custom_call_target=\"lapack_{letter}geqrf_ffi\", {ffi}, backend_config={{}}\n \
                 f = {ty}[{m},{n}] get-tuple-element(l), index=0\n t = {ty}[{least}] get-tuple-element(l), index=1\n \
                 s = {ty}[{m},{least}] slice(f), slice={{[0:{m}], [0:{least}]}}\n \
                 q = {ty}[{m},{least}] custom-call(s, t), custom_call_target=\"lapack_{letter}{or}gqr_ffi\", {ffi}, backend_config={{}}\n \
                 p = {ty}[{m},{n}] custom-call(f, t, c), custom_call_target=\"lapack_{letter}{or}mqr_ffi\", {ffi}, \
                 backend_config={{left = true, transpose = true}}\n \
                 ROOT r = ({ty}[{m},{n}], {ty}[{least}], {ty}[{m},{least}], {ty}[{m},{n}]) tuple(f, t, q, p)"
            );
            check(ty, (m, n), seed as u64, "geqrf", &calls, [1.0, 1e6]);
        }
    }
}

/// Where values are as near to one another as roundings reach, or a column is that of another, nothing is
/// known.
#[test]
fn what_is_not_determined_is_open() {
    let eigen = "HloModule m\nENTRY e { a = f32[2,2] parameter(0)\n w = f64[2,2] convert(a)\n ROOT l = (f64[2,2], f64[2], s32[]) custom-call(w), \
                 custom_call_target=\"lapack_dsyevd_ffi\", api_version=API_VERSION_TYPED_FFI, backend_config={mode = 86 : ui8, uplo = 76 : ui8} }";
    let bounds = certified(eigen, &[&[1.0, 0.0, 0.0, 1.0]], Allowances::STRICT);
    assert!(bounds[0].1.soft.at(0).is_infinite() && bounds[1].1.hard.at(0) < 1e-10);
    let factors = "HloModule m\nENTRY e { a = f32[2,2] parameter(0)\n w = f64[2,2] convert(a)\n ROOT l = (f64[2,2], f64[2]) custom-call(w), \
                   custom_call_target=\"lapack_dgeqrf_ffi\", api_version=API_VERSION_TYPED_FFI, backend_config={} }";
    let bounds = certified(factors, &[&[1.0, 1.0, 2.0, 2.0]], Allowances::STRICT);
    assert!(bounds[0].1.soft.at(3).is_infinite());
    // The first element of the first column could have either sign, for all that is known: R may be its
    // negative.
    let near = "HloModule m\nENTRY e { a = f32[2,2] parameter(0)\n b = f32[2,2] sine(a)\n w = f64[2,2] convert(b)\n ROOT l = (f64[2,2], f64[2]) custom-call(w), \
                custom_call_target=\"lapack_dgeqrf_ffi\", api_version=API_VERSION_TYPED_FFI, backend_config={} }";
    let bounds = certified(near, &[&[0.0, 1.0, 1.0, 0.5]], Allowances::STRICT);
    assert!(bounds[0].1.soft.at(0) < 1e-5 && bounds[0].1.hard.at(1).is_infinite(), "{bounds:?}");
}

/// Three bits of a significand: rounding may make the last pivot negative, and then there are no factors.
/// Where there are, the first column is a root and quotients.
#[test]
fn columns_before_a_doubtful_pivot_have_soft_bounds() {
    let text = "HloModule m\nENTRY e { x = f8e5m2[3,3] parameter(0)\n ROOT y = f8e5m2[3,3] cholesky(x), lower=true }";
    let x: &[f32] = &[2.5, 0.11, 0.88, 0.11, 4.0, -0.62, 0.88, -0.62, 3.5];
    let found = &certified(text, &[x], Allowances::STRICT)[0].1;
    for first in [0, 3, 6] {
        assert!(found.soft.at(first).is_finite(), "{first}: {found:?}");
        assert!(found.hard.at(first).is_infinite(), "{first}: {found:?}");
    }
    assert!(found.soft.at(8).is_infinite(), "{found:?}");
}
