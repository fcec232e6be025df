//! Orders beyond a block: blocks, tiles and threads leave the results what plain loops make of them.

use std::sync::Arc;

use hlo_arithmetic::scalar::dd::Dd;
use hlo_threads::parallel::{Threads, with_threads};

use super::super::eigen_symmetric::Eigenvectors;
use super::super::rotations::Rotations;
use super::super::{Matrix, Triangle, eigen_symmetric, lu, qr, svd};
use super::matrices::{distance, minus, random, size, skew, times};
use super::{COARSE, limit, upper};
use crate::wide::{Complex, Field, Real};

/// Three threads, started for each job.
struct Three;

impl Threads for Three {
    fn count(&self) -> usize {
        3
    }

    fn run(&self, n: usize, f: &(dyn Fn(usize) + Sync)) {
        std::thread::scope(|scope| {
            for first in 0..3 {
                scope.spawn(move || (first..n).step_by(3).for_each(f));
            }
        });
    }
}

/// The results with one thread and with more.
fn on_threads<R>(f: impl Fn() -> R) -> [R; 2] {
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let alone = one.in_place_scope(|_| f());
    [alone, with_threads(Arc::new(Three), f)]
}

/// Elimination as textbooks have it, step by step over the whole matrix.
fn textbook<F: Field>(mut a: Matrix<F>) -> (Matrix<F>, Vec<usize>) {
    let (m, n) = (a.rows(), a.columns());
    let mut pivots = Vec::new();
    for k in 0..m.min(n) {
        let sizes: Vec<F::Real> = (k..m).map(|i| a[(i, k)].size()).collect();
        let pivot = k + lu::first_of_largest(&sizes);
        pivots.push(pivot);
        a.swap_rows(k, pivot, 0..n);
        for i in k + 1..m {
            a[(i, k)] = a[(i, k)] / a[(k, k)];
            for j in k + 1..n {
                a[(i, j)] = a[(i, j)].minus_product(a[(i, k)], a[(k, j)]);
            }
        }
    }
    (a, pivots)
}

fn check_elimination<F: Field>() {
    for (m, n) in [(150, 130), (70, 171), (64, 64), (129, 65)] {
        let a = random::<F>(m, n, 5);
        let (factors, pivots) = textbook(a.clone());
        for lu in on_threads(|| lu::factor(|| a.clone())) {
            assert!(lu.factors == factors, "{m} by {n}");
            assert_eq!((&lu.pivots, lu.singular), (&pivots, None));
        }
    }
}

#[test]
fn elimination_by_blocks_is_the_textbooks() {
    check_elimination::<f64>();
    check_elimination::<Dd>();
    check_elimination::<Complex<f64>>();
}

fn check_reflectors<F: Field>() {
    for (m, n) in [(100, 90), (77, 120), (36, 36), (73, 37)] {
        let a = random::<F>(m, n, 6);
        let size = m.min(n);
        let [qr, again] = on_threads(|| qr::factor(a.clone()));
        assert!(qr.factors == again.factors && qr.taus == again.taus);
        let reflectors = Matrix::from_fn(m, size, |i, j| qr.factors[(i, j)]);
        let [q, again] = on_threads(|| qr::form(&reflectors, &qr.taus));
        assert!(q == again);
        assert!(skew(&q) < limit(&a), "{m} by {n}: {}", skew(&q));
        let r = upper(&qr.factors, size);
        assert!(distance(&times(&q, &r), &a, &a) < limit(&a), "{m} by {n}");
        // Q^H Q c = c, from either side.
        for left in [true, false] {
            let c = if left { random::<F>(m, 7, 7) } else { random(7, m, 8) };
            let mut product = c.clone();
            qr::multiply(&reflectors, &qr.taus, &mut product, left, false);
            assert!(distance(&product, &c, &c) > 1e3);
            qr::multiply(&reflectors, &qr.taus, &mut product, left, true);
            assert!(distance(&product, &c, &c) < limit(&a), "{m} by {n}");
        }
    }
}

#[test]
fn reflectors_by_blocks_are_exact_to_rounding() {
    check_reflectors::<f64>();
    check_reflectors::<Dd>();
    check_reflectors::<Complex<f64>>();
}

/// Random rotations in runs up and down, and jumps between them.
#[test]
fn gathered_rotations_are_applied_in_order() {
    let (rows, columns) = (37, 20);
    let mut plain = Matrix::<f64>::identity(rows, columns);
    let mut rotations = Rotations::<f64>::identity(rows, columns);
    let mut state = 1u64;
    let mut next = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as usize % below
    };
    for _ in 0..2000 {
        let (mut j, length, up) = (next(columns - 1), next(8), next(2) == 0);
        for _ in 0..=length {
            let (s, c) = (next(1000) as f64).sin_cos();
            rotations.rotate(j, c, s);
            let (x, y) = plain.two_columns_mut(j, j + 1);
            for (x, y) in x.iter_mut().zip(y) {
                (*x, *y) = ((*x * c).plus_product(*y, s), (*y * c).minus_product(*x, s));
            }
            match (up, j) {
                (true, _) if j + 2 < columns => j += 1,
                (false, 1..) => j -= 1,
                _ => break,
            }
        }
    }
    rotations.negate(3);
    rotations.swap(3, 11);
    plain.column_mut(3).iter_mut().for_each(|x| *x = -*x);
    plain.swap_columns(3, 11);
    let out = rotations.finish();
    assert!(size(&minus(&out, &plain)) == 0.0);
}

#[test]
fn decompositions_are_the_same_on_all_threads() {
    let a = random::<f64>(90, 70, 9);
    let [one, three] = on_threads(|| {
        svd::svd(a.clone(), svd::Vectors::Thin, svd::Driver::DivideAndConquer, COARSE).unwrap()
    });
    assert!(one.values == three.values && one.vectors == three.vectors);
    let s = Matrix::from_fn(70, 70, |i, j| a[(i, j)] + a[(j, i)]);
    for triangle in [Triangle::Lower, Triangle::Upper] {
        let [one, three] =
            on_threads(|| eigen_symmetric::eigen(s.clone(), triangle, Eigenvectors::All, COARSE).unwrap());
        assert!(one.values == three.values && one.vectors == three.vectors);
        let v = one.vectors.unwrap();
        let scaled = Matrix::from_fn(70, 70, |i, j| v[(i, j)].scaled(f64::from_f64(one.values[j])));
        assert!(skew(&v) < limit(&s));
        assert!(distance(&times(&s, &v), &scaled, &s) < limit(&s));
    }
}
