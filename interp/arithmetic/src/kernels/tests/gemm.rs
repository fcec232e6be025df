use hlo::half::bf16;
use num_complex::Complex;
use proptest::prelude::*;

use super::{Random, bits32, bits64, on_any_threads};
use crate::kernels::gemm::{self, Gemm, View};
use crate::sum::reference::{canonical, canonical_f32, round_sum, sum_f32, sum_f64};
use crate::sum::tests::{hard_f32, hard_f64};
use crate::sum::{Accumulate, Long, Rounded};

/// The terms of `out[b][i][j]` of row-major operands.
fn terms<T: Copy>(dims: Gemm, lhs: &[T], rhs: &[T], at: usize) -> Vec<(T, T)> {
    let Gemm { m, k, n, .. } = dims;
    let (b, i, j) = (at / (m * n), at / n % m, at % n);
    (0..k).map(|p| (lhs[(b * m + i) * k + p], rhs[(b * k + p) * n + j])).collect()
}

fn wide(terms: Vec<(f32, f32)>) -> Vec<(f64, f64)> {
    terms.into_iter().map(|(a, b)| (f64::from(a), f64::from(b))).collect()
}

fn dims() -> impl Strategy<Value = Gemm> {
    (1usize..3, 0usize..7, 0usize..9, 0usize..7).prop_map(|(batch, m, k, n)| Gemm { batch, m, k, n })
}

fn operands<T: Clone + std::fmt::Debug>(
    element: impl Strategy<Value = T> + Clone,
) -> impl Strategy<Value = (Gemm, Vec<T>, Vec<T>)> {
    dims().prop_flat_map(move |d| {
        let lhs = prop::collection::vec(element.clone(), d.batch * d.m * d.k);
        let rhs = prop::collection::vec(element.clone(), d.batch * d.k * d.n);
        (Just(d), lhs, rhs)
    })
}

fn views<'a, T: Copy>(d: Gemm, lhs: &'a [T], rhs: &'a [T]) -> (View<'a, T>, View<'a, T>) {
    (View::row_major(lhs, d.m, d.k), View::row_major(rhs, d.k, d.n))
}

fn real<T: crate::kernels::Real, O: Rounded>(mode: Accumulate, d: Gemm, lhs: &[T], rhs: &[T]) -> Vec<O> {
    let mut out = vec![O::default(); d.batch * d.m * d.n];
    let (l, r) = views(d, lhs, rhs);
    gemm::real(mode, d, l, r, &mut out);
    out
}

/// Mostly hard numbers, now and then a special one.
fn special_f32() -> impl Strategy<Value = f32> + Clone {
    prop_oneof![
        12 => hard_f32().boxed(),
        1 => prop::sample::select(vec![f32::INFINITY, f32::NEG_INFINITY, f32::NAN]).boxed()
    ]
    .boxed()
}

fn special_f64() -> impl Strategy<Value = f64> + Clone {
    prop_oneof![
        12 => hard_f64().boxed(),
        1 => prop::sample::select(vec![f64::INFINITY, f64::NEG_INFINITY, f64::NAN]).boxed()
    ]
    .boxed()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn exact_f32((d, lhs, rhs) in operands(special_f32())) {
        for (at, x) in real::<f32, f32>(Accumulate::Exact, d, &lhs, &rhs).into_iter().enumerate() {
            let expected = sum_f32(&wide(terms(d, &lhs, &rhs, at)));
            prop_assert_eq!(x.to_bits(), canonical_f32(expected), "{:?} at {}", d, at);
        }
        for (at, x) in real::<f32, bf16>(Accumulate::Exact, d, &lhs, &rhs).into_iter().enumerate() {
            let terms = wide(terms(d, &lhs, &rhs, at));
            let expected = round_sum(&terms, 8, -133, 3.3895313892515355e38).unwrap_or(0.0);
            prop_assert_eq!(canonical(x.to_f64()), canonical(expected), "{:?} at {}", d, at);
        }
        for (at, x) in real::<f32, f64>(Accumulate::Exact, d, &lhs, &rhs).into_iter().enumerate() {
            let expected = sum_f64(&wide(terms(d, &lhs, &rhs, at)));
            prop_assert_eq!(x.to_bits(), canonical(expected), "{:?} at {}", d, at);
        }
    }

    #[test]
    fn exact_f64((d, lhs, rhs) in operands(special_f64())) {
        for (at, x) in real::<f64, f64>(Accumulate::Exact, d, &lhs, &rhs).into_iter().enumerate() {
            let expected = sum_f64(&terms(d, &lhs, &rhs, at));
            prop_assert_eq!(x.to_bits(), canonical(expected), "{:?} at {}", d, at);
        }
        for (at, x) in real::<f64, f32>(Accumulate::Exact, d, &lhs, &rhs).into_iter().enumerate() {
            let expected = sum_f32(&terms(d, &lhs, &rhs, at));
            prop_assert_eq!(x.to_bits(), canonical_f32(expected), "{:?} at {}", d, at);
        }
    }

    /// Vectors on either side, matrices contiguous along either dimension, of a few terms and of many.
    #[test]
    fn exact_vectors(
        (k, other, batch) in (0usize..50, 1usize..6, 1usize..3),
        left in any::<bool>(),
        transposed in any::<bool>(),
        values in prop::collection::vec(special_f32(), 700),
    ) {
        let d = if left { Gemm { batch, m: 1, k, n: other } } else { Gemm { batch, m: other, k, n: 1 } };
        let (lhs, rhs) = values.split_at(batch * d.m * k);
        let rhs = &rhs[..batch * k * d.n];
        let (mut l, mut r) = views(d, lhs, rhs);
        if transposed && left {
            r = View { row: 1, column: k, ..r };
        } else if transposed {
            l = View { row: 1, column: d.m, ..l };
        }
        let mut out = vec![0f32; batch * other];
        gemm::real(Accumulate::Exact, d, l, r, &mut out);
        for (at, x) in out.into_iter().enumerate() {
            let (b, o) = (at / other, at % other);
            let (i, j) = if left { (0, o) } else { (o, 0) };
            let terms = (0..k).map(|p| (l.data[l.at(b, i, p)], r.data[r.at(b, p, j)])).collect();
            prop_assert_eq!(x.to_bits(), canonical_f32(sum_f32(&wide(terms))), "{:?} at {}", d, at);
        }
    }

    /// Small integers: every sum is exact in the fast path, ties and zeros abound.
    #[test]
    fn exact_on_a_grid((d, lhs, rhs) in operands((-20i32..20).prop_map(|x| f64::from(x) * 0.25))) {
        let (l, r): (Vec<f32>, Vec<f32>) =
            (lhs.iter().map(|&x| x as f32).collect(), rhs.iter().map(|&x| x as f32).collect());
        let narrow = real::<f32, bf16>(Accumulate::Exact, d, &l, &r);
        let wide = real::<f64, f64>(Accumulate::Exact, d, &lhs, &rhs);
        for (at, (x, y)) in narrow.into_iter().zip(wide).enumerate() {
            let terms = terms(d, &lhs, &rhs, at);
            let expected = round_sum(&terms, 8, -133, 3.3895313892515355e38).unwrap_or(0.0);
            prop_assert_eq!(f64::from(x).to_bits(), expected.to_bits());
            prop_assert_eq!(y.to_bits(), sum_f64(&terms).to_bits());
        }
    }

    #[test]
    fn exact_complex((d, lhs, rhs) in operands((special_f32(), special_f32()).prop_map(|(re, im)| Complex { re, im }))) {
        let mut out = vec![Complex::<f32>::default(); d.batch * d.m * d.n];
        let (l, r) = views(d, &lhs, &rhs);
        gemm::complex(Accumulate::Exact, d, l, r, &mut out);
        for (at, x) in out.into_iter().enumerate() {
            let terms = terms(d, &lhs, &rhs, at);
            let re = terms.iter().flat_map(|(a, b)| [(a.re, b.re), (a.im, -b.im)]).collect();
            let im = terms.iter().flat_map(|(a, b)| [(a.re, b.im), (a.im, b.re)]).collect();
            prop_assert_eq!(x.re.to_bits(), canonical_f32(sum_f32(&wide(re))));
            prop_assert_eq!(x.im.to_bits(), canonical_f32(sum_f32(&wide(im))));
        }
    }

    #[test]
    fn region_is_literal((d, lhs, rhs) in operands(special_f32())) {
        let fold = |at| terms(d, &lhs, &rhs, at).into_iter().fold(0.0f32, |acc, (a, b)| acc + a * b);
        for (at, x) in real::<f32, f32>(Accumulate::Region, d, &lhs, &rhs).into_iter().enumerate() {
            prop_assert_eq!(x.to_bits(), canonical_f32(fold(at)));
        }
        for (at, x) in real::<f32, bf16>(Accumulate::Region, d, &lhs, &rhs).into_iter().enumerate() {
            prop_assert_eq!(canonical(x.to_f64()), canonical(bf16::from_f32(fold(at)).to_f64()));
        }
    }

    #[test]
    fn integers_wrap((d, lhs, rhs) in operands(any::<i32>())) {
        let mut out = vec![0i32; d.batch * d.m * d.n];
        let (l, r) = views(d, &lhs, &rhs);
        gemm::int(d, l, r, &mut out);
        for (at, x) in out.into_iter().enumerate() {
            let expected = terms(d, &lhs, &rhs, at)
                .into_iter()
                .fold(0i64, |acc, (a, b)| acc.wrapping_add(i64::from(a).wrapping_mul(i64::from(b))));
            prop_assert_eq!(x, expected as i32);
        }
    }
}

#[test]
fn region_complex_rounds_each_operation() {
    let lhs = [Complex::new(1.0f32, 3.0), Complex::new(1e-8, 1.0)];
    let rhs = [Complex::new(1.0f32 + f32::EPSILON, 0.1), Complex::new(2.0, 0.7)];
    let mut out = [Complex::<f32>::default()];
    let d = Gemm { batch: 1, m: 1, k: 2, n: 1 };
    gemm::complex(Accumulate::Region, d, View::row_major(&lhs, 1, 2), View::row_major(&rhs, 2, 1), &mut out);
    let mut acc = Complex::new(0.0f32, 0.0);
    for (a, b) in lhs.iter().zip(&rhs) {
        acc.re += a.re * b.re - a.im * b.im;
        acc.im += a.re * b.im + a.im * b.re;
    }
    assert_eq!(out[0], acc);
}

#[test]
fn transposed_and_broadcast_views() {
    // lhs is stored 2x3 transposed; rhs is one row repeated for each k and batch.
    let lhs = [1.0f32, 4.0, 2.0, 5.0, 3.0, 6.0];
    let rhs = [1.0f32, 10.0];
    let d = Gemm { batch: 2, m: 2, k: 3, n: 2 };
    let mut out = [0.0f32; 8];
    let l = View { batch: 0, ..View::column_major(&lhs, 2, 3) };
    let r = View { data: &rhs, batch: 0, row: 0, column: 1 };
    gemm::real(Accumulate::Exact, d, l, r, &mut out);
    assert_eq!(out, [6.0, 60.0, 15.0, 150.0, 6.0, 60.0, 15.0, 150.0]);
}

/// Blocks of every kind (several along rows, columns and terms), on any number of threads.
#[test]
fn large_products_do_not_depend_on_threads() {
    let mut random = Random(1);
    for d in [
        Gemm { batch: 1, m: 150, k: 300, n: 140 },
        Gemm { batch: 3, m: 30, k: 40, n: 50 },
        Gemm { batch: 1, m: 1, k: 700, n: 300 },
        Gemm { batch: 1, m: 300, k: 700, n: 1 },
        Gemm { batch: 1, m: 3, k: 260, n: 600 },
    ] {
        let (lhs, rhs) = (random.units_f32(d.batch * d.m * d.k), random.units_f32(d.batch * d.k * d.n));
        let exact = on_any_threads(|| bits32(&real::<f32, f32>(Accumulate::Exact, d, &lhs, &rhs)));
        let region = on_any_threads(|| bits32(&real::<f32, f32>(Accumulate::Region, d, &lhs, &rhs)));
        for at in 0..exact.len() {
            let terms = terms(d, &lhs, &rhs, at);
            let acc = terms.iter().fold(0.0f32, |acc, (a, b)| acc + a * b);
            assert_eq!(f32::from_bits(region[at]), acc);
            let mut long = Long::new();
            terms.iter().for_each(|&(a, b)| long.add_product(f64::from(a), f64::from(b)));
            assert_eq!(exact[at], long.to_f32().to_bits(), "{d:?} at {at}");
        }
        let (lhs, rhs) = (random.units(d.batch * d.m * d.k), random.units(d.batch * d.k * d.n));
        let exact = on_any_threads(|| bits64(&real::<f64, f64>(Accumulate::Exact, d, &lhs, &rhs)));
        for (at, &x) in exact.iter().enumerate() {
            let mut long = Long::new();
            terms(d, &lhs, &rhs, at).iter().for_each(|&(a, b)| long.add_product(a, b));
            assert_eq!(x, long.to_f64().to_bits(), "{d:?} at {at}");
        }
    }
}

/// Rows that cancel to nothing but the last bits, which the fast path cannot decide.
#[test]
fn cancelling_rows() {
    let mut random = Random(2);
    let d = Gemm { batch: 1, m: 9, k: 200, n: 5 };
    let mut lhs = random.units(d.m * d.k);
    let mut rhs = random.units(d.k * d.n);
    for i in 0..d.m {
        for p in 0..d.k / 2 {
            lhs[i * d.k + d.k - 1 - p] = -lhs[i * d.k + p];
        }
    }
    for p in 0..d.k / 2 {
        for j in 0..d.n {
            rhs[(d.k - 1 - p) * d.n + j] = rhs[p * d.n + j];
        }
    }
    lhs[3 * d.k] += 2f64.powi(-50);
    for (at, x) in real::<f64, f64>(Accumulate::Exact, d, &lhs, &rhs).into_iter().enumerate() {
        assert_eq!(x.to_bits(), sum_f64(&terms(d, &lhs, &rhs, at)).to_bits());
    }
    let (lhs, rhs): (Vec<f32>, Vec<f32>) =
        (lhs.iter().map(|&x| x as f32).collect(), rhs.iter().map(|&x| x as f32).collect());
    for (at, x) in real::<f32, f32>(Accumulate::Exact, d, &lhs, &rhs).into_iter().enumerate() {
        assert_eq!(x.to_bits(), sum_f32(&wide(terms(d, &lhs, &rhs, at))).to_bits());
    }
}
