//! Fourier transforms, factors of matrices, solutions of triangular systems, normalization: what is computed
//! in f32 in the usual ways is inside.

use hlo::ArrayLiteral;
use hlo_certify::bounds::Bounds;
use hlo_execution::allowances::Allowances;
use hlo_execution::number;

use crate::common::{certified, one};
use crate::logits::some;

/// The greatest error of some f32 numbers, and the greatest radius, both relative to the greatest radius
/// allowed by `limit`.
fn check(actual: &[f32], result: &(ArrayLiteral, Bounds), limit: f64) {
    let values = number::Numbers::of(&hlo_interp::Tensor::from_literal(result.0.clone())).re;
    assert_eq!(values.len(), actual.len());
    for (i, (&a, v)) in actual.iter().zip(values).enumerate() {
        let (off, r) = ((f64::from(a) - v).abs(), result.1.hard.at(i));
        assert!(off <= r, "element {i}: {a} and {v} are {off:e} apart, the radius is {r:e}");
        assert!(r <= limit, "element {i}: the radius is {r:e}");
    }
}

/// A factor by LAPACK is a factor, a solution a solution; of a matrix that is hardly positive nothing is
/// known.
#[test]
fn factors_and_solutions_by_lapack_have_bounds() {
    let potrf = |uplo: u8| {
        format!(
            "HloModule m\nENTRY e {{ a = f32[2,2] parameter(0)\n ROOT l = (f32[2,2], s32[]) custom-call(a), custom_call_target=\"lapack_spotrf_ffi\", \
             api_version=API_VERSION_TYPED_FFI, backend_config={{uplo = {uplo} : ui8}} }}"
        )
    };
    let all = certified(&potrf(b'L'), &[&[3.0, 7.0, 1.0, 2.0]], Allowances::STRICT);
    check(&[3f32.sqrt(), 7.0, 1.0 / 3f32.sqrt(), (2.0f32 - 1.0 / 3.0).sqrt()], &all[0], 1e-5);
    assert!(all[0].1.hard.at(1) == 0.0 && all[0].1.hard.at(0) > 0.0 && all[1].1.is_exact());
    let all = certified(&potrf(b'U'), &[&[3.0, 1.0, 7.0, 2.0]], Allowances::STRICT);
    check(&[3f32.sqrt(), 1.0 / 3f32.sqrt(), 7.0, (2.0f32 - 1.0 / 3.0).sqrt()], &all[0], 1e-5);
    for a in [[1.0, 0.0, 1.0, 1.0], [1.0, 0.0, 1.0, -2.0]] {
        let all = certified(&potrf(b'L'), &[&a], Allowances::STRICT);
        assert!(all.iter().all(|(_, b)| b.hard.at(0).is_infinite()), "{a:?}");
    }
    let trsm = "HloModule m\nENTRY e { a = f32[2,2] parameter(0)\n b = f32[1,2] parameter(1)\n ROOT x = f32[1,2] custom-call(a, b), \
                custom_call_target=\"lapack_strsm_ffi\", api_version=API_VERSION_TYPED_FFI, backend_config={diag = 78 : ui8, side = 82 : ui8, trans_x = 84 : ui8, uplo = 76 : ui8} }";
    // x l^T = b with l = (3, 0; 1, 7).
    let all = certified(trsm, &[&[3.0, 0.5, 1.0, 7.0], &[1.0, 2.0]], Allowances::STRICT);
    check(&[1.0 / 3.0, (2.0 - 1.0f32 / 3.0) / 7.0], &all[0], 1e-6);
}

/// Of matrices that are not exact, too, and of some that are higher or wider than square.
#[test]
fn pivoted_factors_in_f32_are_inside() {
    let others = Allowances { decompositions: true, ..Allowances::STRICT };
    for (seed, (rows, columns)) in [(4, 4), (5, 3), (3, 5), (1, 1), (1, 4), (4, 1), (40, 40), (2, 2)]
        .into_iter()
        .cycle()
        .take(24)
        .enumerate()
    {
        let seed = seed as u64;
        let (a, by) = (some(rows * columns, seed), some(rows * columns, seed + 100));
        let text = |from: &str| {
            format!(
                "HloModule m\nENTRY e {{ a = f32[{rows},{columns}] parameter(0)\n b = f32[{rows},{columns}] parameter(1)\n c = f32[{rows},{columns}] {from}\n \
                 ROOT l = (f32[{rows},{columns}], s32[{depth}], s32[]) custom-call(c), custom_call_target=\"lapack_sgetrf_ffi\", api_version=API_VERSION_TYPED_FFI, \
                 backend_config={{}} }}",
                depth = rows.min(columns)
            )
        };
        // The exponential may be off by two units; the factors are those of one that is.
        for (from, matrix) in [
            ("copy(a)", a.clone()),
            ("exponential(a)", a.iter().zip(&by).map(|(a, b)| a.exp() * (1.0 + b * f32::EPSILON)).collect()),
        ] {
            let all = certified(&text(from), &[&a, &by], others);
            let hlo::Buffer::S32(pivots) = &*all[1].0.buffer else { panic!() };
            let mut m = matrix;
            for (k, &pivot) in pivots.iter().enumerate() {
                (0..columns).for_each(|j| m.swap(k * columns + j, (pivot as usize - 1) * columns + j));
                for i in k + 1..rows {
                    m[i * columns + k] /= m[k * columns + k];
                    for j in k + 1..columns {
                        m[i * columns + j] -= m[i * columns + k] * m[k * columns + j];
                    }
                }
            }
            let few = rows.min(columns) < 10;
            assert!(all[1].1.soft.is_zero() && all[2].1.soft.is_zero(), "seed {seed}: {from}");
            // Of many rows two may be as good as each other within their radii.
            if few || all[1].1.is_exact() {
                assert!(all[1].1.is_exact() && all[2].1.is_exact(), "seed {seed}: {from}");
                check(&m, &all[0], if few { 1e-3 } else { 0.5 });
            }
        }
    }
}

#[test]
fn decompositions_are_the_references_unless_others_are_allowed() {
    let text = |attributes: &str| {
        format!(
            "HloModule m\nENTRY e {{ a = f32[3,3] parameter(0)\n ROOT l = (f32[3,3], s32[3], s32[]) custom-call(a), custom_call_target=\"lapack_sgetrf_ffi\", \
             api_version=API_VERSION_TYPED_FFI, backend_config={{}}{attributes} }}"
        )
    };
    let a = some(9, 3);
    let exact = |text: &str, allowed| certified(text, &[&a], allowed).iter().all(|(_, b)| b.is_exact());
    assert!(exact(&text(""), Allowances::STRICT));
    assert!(!exact(&text(""), Allowances::LOOSE));
    assert!(!exact(&text(""), Allowances { decompositions: true, ..Allowances::STRICT }));
    assert!(!exact(&text(", frontend_attributes={decompositions=\"library\"}"), Allowances::STRICT));
    // The reference computes those of f64 in wider arithmetic than anybody has to.
    let wide = "HloModule m\nENTRY e { a = f32[3,3] parameter(0)\n w = f64[3,3] convert(a)\n ROOT l = (f64[3,3], s32[3], s32[]) custom-call(w), \
                custom_call_target=\"lapack_dgetrf_ffi\", api_version=API_VERSION_TYPED_FFI, backend_config={} }";
    let all = certified(wide, &[&a], Allowances::STRICT);
    let factors = &all[0].1;
    assert!((0..9).all(|i| factors.soft.at(i) > 0.0 && factors.hard.at(i) < 1e-10), "{factors:?}");
    assert!(all[1].1.is_exact() && all[2].1.is_exact());
}

/// Two rows that are as good as each other, the other of them by a hair.
#[test]
fn pivots_that_may_be_others_are_open() {
    let getrf = |from: &str| {
        format!(
            "HloModule m\nENTRY e {{ a = f32[2,2] parameter(0)\n c = f32[2,2] {from}\n ROOT l = (f32[2,2], s32[2], s32[]) custom-call(c), \
             custom_call_target=\"lapack_sgetrf_ffi\", api_version=API_VERSION_TYPED_FFI, backend_config={{}} }}"
        )
    };
    for a in [[1.0, 3.0, 1.0, 2.0], [1.0, 3.0, -0.999_999_94, 2.0]] {
        let all = certified(&getrf("tanh(a)"), &[&a], Allowances::STRICT);
        for (_, b) in &all {
            assert!(b.soft.at(0) < 1e-5 && b.hard.at(0).is_infinite(), "{a:?}");
        }
    }
    // A matrix without an inverse has no factors that anything is known of.
    let all = certified(&getrf("copy(a)"), &[&[1.0, 2.0, 2.0, 4.0]], Allowances::LOOSE);
    assert!(all[0].1.soft.at(3).is_infinite());
}

#[test]
fn transforms_by_the_definition_in_f32_are_inside() {
    let n = 24;
    let text = format!(
        "HloModule m\nENTRY e {{ x = f32[{n}] parameter(0)\n y = f32[{n}] parameter(1)\n z = c64[{n}] complex(x, y)\n f = c64[{n}] fft(z), fft_type=FFT, fft_length={{{n}}}\n ROOT r = f32[{n}] real(f) }}"
    );
    for seed in 0..20 {
        let (x, y) = (some(n, seed), some(n, seed + 100));
        let re = |k: usize| -> f32 {
            let term = |j: usize| {
                let angle = -2.0 * std::f64::consts::PI * (j * k % n) as f64 / n as f64;
                x[j] * angle.cos() as f32 - y[j] * angle.sin() as f32
            };
            (0..n).map(term).sum()
        };
        let actual: Vec<f32> = (0..n).map(re).collect();
        check(&actual, &certified(&text, &[&x, &y], Allowances::STRICT)[0], 1e-3);
    }
}

#[test]
fn a_transform_of_zeros_has_zeros_of_any_sign() {
    let text = |n: usize, kept: usize| {
        format!(
            "HloModule m\nENTRY e {{ x = f32[{n}] parameter(0)\n f = c64[{kept}] fft(x), fft_type=RFFT, fft_length={{{n}}}\n ROOT r = f32[{kept}] real(f) }}"
        )
    };
    let several = &certified(&text(3, 2), &[&[-0.0; 3]], Allowances::STRICT)[0];
    for actual in [[0.0f32, 0.0], [-0.0, 0.0], [-0.0, -0.0]] {
        check(&actual, several, 1e-3);
    }
    // One point is itself.
    assert!(certified(&text(1, 1), &[&[-0.0]], Allowances::STRICT)[0].1.hard.is_zero());
}

#[test]
fn factors_and_solutions_in_f32_are_inside() {
    for (n, seed) in (0..20).map(|seed| (6, seed)).chain([(60, 20)]) {
        let limit = if n == 6 { 1e-3 } else { 1e-2 };
        // A product with its transpose, and a diagonal.
        let m = some(n * n, seed);
        let a: Vec<f32> = (0..n * n)
            .map(|at| {
                let (i, j) = (at / n, at % n);
                let dot: f32 = (0..n).map(|k| m[i * n + k] * m[j * n + k]).sum();
                dot + if i == j { 1.0 } else { 0.0 }
            })
            .collect();
        let mut l = vec![0f32; n * n];
        for j in 0..n {
            let dot = |l: &[f32], i: usize| (0..j).map(|k| l[i * n + k] * l[j * n + k]).sum::<f32>();
            l[j * n + j] = (a[j * n + j] - dot(&l, j)).sqrt();
            for i in j + 1..n {
                l[i * n + j] = (a[i * n + j] - dot(&l, i)) / l[j * n + j];
            }
        }
        let text = format!(
            "HloModule m\nENTRY e {{ a = f32[{n},{n}] parameter(0)\n ROOT l = f32[{n},{n}] cholesky(a), lower=true }}"
        );
        check(&l, &certified(&text, &[&a], Allowances::STRICT)[0], limit);
        // It is computed in the operand's type, whatever that of the result.
        let wide = text.replace("ROOT l = f32", "ROOT l = f64");
        check(&l, &certified(&wide, &[&a], Allowances::STRICT)[0], limit);
        let b = some(n * 2, seed + 50);
        let mut x = b.clone();
        for c in 0..2 {
            for i in 0..n {
                let dot: f32 = (0..i).map(|k| l[i * n + k] * x[k * 2 + c]).sum();
                x[i * 2 + c] = (b[i * 2 + c] - dot) / l[i * n + i];
            }
        }
        let solve = |side: &str, dims: &str| {
            format!(
                "HloModule m\nENTRY e {{ l = f32[{n},{n}] parameter(0)\n b = f32[{dims}] parameter(1)\n ROOT x = f32[{dims}] triangular-solve(l, b), {side}, lower=true, transpose_a={} }}",
                if side == "left_side=true" { "NO_TRANSPOSE" } else { "TRANSPOSE" }
            )
        };
        check(
            &x,
            &certified(&solve("left_side=true", &format!("{n},2")), &[&l, &b], Allowances::STRICT)[0],
            limit,
        );
        // X L^T = B^T has the transposed solution.
        let transposed = |v: &[f32]| -> Vec<f32> { (0..2 * n).map(|at| v[at % n * 2 + at / n]).collect() };
        let (xt, bt) = (transposed(&x), transposed(&b));
        check(
            &xt,
            &certified(&solve("left_side=false", &format!("2,{n}")), &[&l, &bt], Allowances::STRICT)[0],
            limit,
        );
    }
}

#[test]
fn factors_in_types_of_few_bits_have_bounds() {
    let text =
        "HloModule m\nENTRY e { a = TYPE[3,3] parameter(0)\n ROOT l = TYPE[3,3] cholesky(a), lower=true }";
    let a = [4.0, -0.5, 0.25, -0.5, 4.0, 0.0, 0.25, 0.0, 3.0];
    for ty in ["f8e4m3fn", "f8e4m3", "f8e4m3b11fnuz", "bf16"] {
        let hard = one(&text.replace("TYPE", ty), &[&a]).hard;
        let most = (0..9).map(|i| hard.at(i)).fold(0.0, f64::max);
        // At least a unit of the largest element, and less than it.
        assert!((0.015..2.0).contains(&most), "{ty}: {most}");
    }
}

#[test]
fn batch_normalization_by_either_formula_in_f32_is_inside() {
    let (n, f) = (16, 3);
    let text = format!(
        "HloModule m\nENTRY e {{ x = f32[{n},{f}] parameter(0)\n s = f32[{f}] parameter(1)\n o = f32[{f}] parameter(2)\n ROOT b = (f32[{n},{f}], f32[{f}], f32[{f}]) batch-norm-training(x, s, o), epsilon=0.001, feature_index=1 }}"
    );
    for seed in 0..20 {
        let (x, s, o) = (some(n * f, seed), some(f, seed + 1), some(f, seed + 2));
        let all = certified(&text, &[&x, &s, &o], Allowances::STRICT);
        for two_passes in [false, true] {
            let column = |c: usize| (0..n).map(move |i| i * f + c);
            let mean: Vec<f32> = (0..f).map(|c| column(c).map(|i| x[i]).sum::<f32>() / n as f32).collect();
            let variance: Vec<f32> = (0..f)
                .map(|c| {
                    if two_passes {
                        column(c).map(|i| (x[i] - mean[c]) * (x[i] - mean[c])).sum::<f32>() / n as f32
                    } else {
                        column(c).map(|i| x[i] * x[i]).sum::<f32>() / n as f32 - mean[c] * mean[c]
                    }
                })
                .collect();
            let y: Vec<f32> = (0..n * f)
                .map(|i| (x[i] - mean[i % f]) / (variance[i % f] + 0.001).sqrt() * s[i % f] + o[i % f])
                .collect();
            check(&y, &all[0], 1e-3);
            check(&mean, &all[1], 1e-4);
            check(&variance, &all[2], 1e-4);
        }
        let text = format!(
            "HloModule m\nENTRY e {{ x = f32[{n},{f}] parameter(0)\n s = f32[{f}] parameter(1)\n o = f32[{f}] parameter(2)\n m = f32[{f}] parameter(3)\n v = f32[{f}] parameter(4)\n ROOT b = f32[{n},{f}] batch-norm-inference(x, s, o, m, v), epsilon=0.001, feature_index=1 }}"
        );
        let (m, v) =
            (some(f, seed + 3), some(f, seed + 4).iter().map(|v| v.abs() + 0.1).collect::<Vec<f32>>());
        let y: Vec<f32> =
            (0..n * f).map(|i| (x[i] - m[i % f]) / (v[i % f] + 0.001).sqrt() * s[i % f] + o[i % f]).collect();
        check(&y, &certified(&text, &[&x, &s, &o, &m, &v], Allowances::STRICT)[0], 1e-4);
        let text = format!(
            "HloModule m\nENTRY e {{ x = f32[{n},{f}] parameter(0)\n s = f32[{f}] parameter(1)\n m = f32[{f}] parameter(2)\n v = f32[{f}] parameter(3)\n d = f32[{n},{f}] parameter(4)\n ROOT b = (f32[{n},{f}], f32[{f}], f32[{f}]) batch-norm-grad(x, s, m, v, d), epsilon=0.001, feature_index=1 }}"
        );
        let d = some(n * f, seed + 5);
        let all = certified(&text, &[&x, &s, &m, &v, &d], Allowances::STRICT);
        let g: Vec<f32> = v.iter().map(|v| 1.0 / (v + 0.001).sqrt()).collect();
        let column = |c: usize| (0..n).map(move |i| i * f + c);
        let sum: Vec<f32> = (0..f).map(|c| column(c).map(|i| d[i]).sum()).collect();
        let product: Vec<f32> = (0..f).map(|c| column(c).map(|i| d[i] * (x[i] - m[c])).sum()).collect();
        let dx: Vec<f32> = (0..n * f)
            .map(|i| {
                let c = i % f;
                s[c] * g[c] * (d[i] - sum[c] / n as f32 - (x[i] - m[c]) * g[c] * g[c] * product[c] / n as f32)
            })
            .collect();
        check(&dx, &all[0], 1e-2);
        check(&(0..f).map(|c| product[c] * g[c]).collect::<Vec<f32>>(), &all[1], 1e-2);
        check(&sum, &all[2], 1e-2);
    }
}
