//! Factorizations by what they must satisfy: residuals and orthogonality in units of rounding, on matrices
//! easy and hard, over every field; and operands that are not finite.

mod blocks;
pub(super) mod matrices;

use hlo_arithmetic::scalar::dd::Dd;

use super::eigen_symmetric::{self, Eigenvectors, tridiagonal};
use super::svd::{Driver, Vectors};
use super::{
    Matrix, Triangle, balance, cholesky, eigen_general, hessenberg, lu, qr, qr_pivoted, schur, svd,
    triangular, tridiagonal as system,
};
use crate::wide::{Complex, Field, Real};
use matrices::{
    distance, general, hermitian, minus, of, orthogonal, random, size, skew, square, times, with_eigenvalues,
};

/// What iterations that decide signs and order stop at: f32.
const COARSE: f64 = f32::EPSILON as f64;

/// Runs a generic check over every field.
macro_rules! over_all_fields {
    ($($name:ident => $check:ident;)*) => {$(
        #[test]
        fn $name() {
            $check::<f64>();
            $check::<Dd>();
            $check::<Complex<f64>>();
            $check::<Complex<Dd>>();
        }
    )*};
}

over_all_fields! {
    lu_is_exact_to_rounding => check_lu;
    qr_is_exact_to_rounding => check_qr;
    pivoted_qr_is_exact_to_rounding => check_pivoted_qr;
    cholesky_is_exact_to_rounding => check_cholesky;
    triangular_systems_are_solved_to_rounding => check_triangular;
    tridiagonal_systems_are_solved_to_rounding => check_tridiagonal_systems;
    tridiagonal_forms_are_similar => check_tridiagonal_form;
    hermitian_eigenvectors_are_exact_to_rounding => check_hermitian;
    singular_vectors_are_exact_to_rounding => check_svd;
    singular_vectors_by_dividing_are_exact_to_rounding => check_dividing;
    hessenberg_forms_are_similar => check_hessenberg;
    schur_forms_are_similar => check_schur;
    eigenvectors_are_exact_to_rounding => check_eigenvectors;
    what_is_not_finite_ends => check_not_finite;
}

/// The limit of an error, in units of rounding times the order.
fn limit<F: Field>(a: &Matrix<F>) -> f64 {
    40.0 * (a.rows().max(a.columns()) + 2) as f64
}

/// Matrices out of the range of a field are no test of it.
fn in_range<F: Field>(a: &Matrix<F>) -> bool {
    a.is_finite() && (size(a) == 0.0 || size(a) > 1e3 * F::Real::TINY)
}

fn upper<F: Field>(a: &Matrix<F>, rows: usize) -> Matrix<F> {
    Matrix::from_fn(rows, a.columns(), |i, j| if i <= j { a[(i, j)] } else { F::default() })
}

fn check_lu<F: Field>() {
    for (name, a) in general::<F>() {
        if !in_range(&a) {
            continue;
        }
        let (m, n) = (a.rows(), a.columns());
        let size = m.min(n);
        let lu = lu::factor(|| a.clone());
        let l = Matrix::from_fn(m, size, |i, j| match i.cmp(&j) {
            std::cmp::Ordering::Less => F::default(),
            std::cmp::Ordering::Equal => F::one(),
            std::cmp::Ordering::Greater => lu.factors[(i, j)],
        });
        let largest = l.elements().iter().fold(0.0, |x: f64, l| x.max(l.size().to_f64()));
        // The modulus is at most the square root of 2.
        assert!(largest <= 2.001, "{name}: {largest}");
        let mut permuted = a.clone();
        for (k, &p) in lu.pivots.iter().enumerate() {
            assert!(k <= p && p < m.max(1), "{name}");
            permuted.swap_rows(k, p, 0..n);
        }
        let product = times(&l, &upper(&lu.factors, size));
        assert!(
            distance(&product, &permuted, &a) < limit(&a),
            "{name}: {}",
            distance(&product, &permuted, &a)
        );
    }
    let singular = |a: Matrix<F>| lu::factor(|| a.clone()).singular;
    assert_eq!(singular(Matrix::zeros(2, 3)), Some(0));
    assert_eq!(singular(of(3, 3, |_, j| 1.0 + j as f64)), Some(1));
    assert_eq!(singular(Matrix::identity(3, 3)), None);
}

fn check_qr<F: Field>() {
    for (name, a) in general::<F>() {
        if !in_range(&a) {
            continue;
        }
        let (m, n) = (a.rows(), a.columns());
        let size = m.min(n);
        let qr = qr::factor(a.clone());
        let reflectors = Matrix::from_fn(m, size, |i, j| qr.factors[(i, j)]);
        let q = qr::form(&reflectors, &qr.taus);
        let r = upper(&qr.factors, size);
        assert!(skew(&q) < limit(&a), "{name}: {}", skew(&q));
        let error = distance(&times(&q, &r), &a, &a);
        assert!(error < limit(&a), "{name}: {error}");
        // LAPACK: the diagonal of R is real.
        assert!((0..size).all(|i| r[(i, i)].imag().is_zero()), "{name}");
        // Q c and its kind, against Q itself.
        let mut whole = Matrix::identity(m, m);
        qr::multiply(&reflectors, &qr.taus, &mut whole, true, false);
        for (left, adjoint) in [(true, false), (true, true), (false, false), (false, true)] {
            let c = if left { random::<F>(m, 3, 1) } else { random(3, m, 2) };
            let q = if adjoint { whole.adjoint() } else { whole.clone() };
            let expected = if left { times(&q, &c) } else { times(&c, &q) };
            let mut product = c.clone();
            qr::multiply(&reflectors, &qr.taus, &mut product, left, adjoint);
            assert!(distance(&product, &expected, &c) < limit(&a), "{name}: {left} {adjoint}");
        }
    }
}

fn check_pivoted_qr<F: Field>() {
    for (name, a) in general::<F>() {
        if !in_range(&a) {
            continue;
        }
        let (m, n) = (a.rows(), a.columns());
        let size = m.min(n);
        for fixed in [usize::MAX, n.saturating_sub(1)] {
            let mut columns: Vec<i32> = (0..n).map(|j| i32::from(j == fixed)).collect();
            let qr = qr_pivoted::factor(a.clone(), &mut columns);
            let q = qr::form(&Matrix::from_fn(m, size, |i, j| qr.factors[(i, j)]), &qr.taus);
            let r = upper(&qr.factors, size);
            let permuted = Matrix::from_fn(m, n, |i, j| a[(i, columns[j] as usize - 1)]);
            assert!(skew(&q) < limit(&a), "{name}");
            assert!(distance(&times(&q, &r), &permuted, &a) < limit(&a), "{name}");
            let start = usize::from(fixed < n);
            if start == 1 {
                assert_eq!(columns[0], fixed as i32 + 1, "{name}");
            }
            // The diagonal does not grow.
            for i in start + 1..size {
                let (before, after) = (r[(i - 1, i - 1)].modulus().to_f64(), r[(i, i)].modulus().to_f64());
                assert!(after <= before * (1.0 + 1e3 * F::Real::ULP), "{name}: {before} {after}");
            }
        }
    }
}

fn check_cholesky<F: Field>() {
    let positive = |square: F::Real| square.to_f64() > 0.0;
    for (name, a) in general::<F>() {
        if a.rows() != a.columns() || !in_range(&a) || size(&a) > 1e10 || size(&a) < 1e-10 {
            continue;
        }
        let n = a.rows();
        let square = times(&a.adjoint(), &a);
        // The middle of the diagonal keeps it positive.
        let shift = F::Real::from_f64(size(&square) * 0.01);
        let a = Matrix::from_fn(n, n, |i, j| {
            if i == j { F::from_real(square[(i, i)].real() + shift) } else { square[(i, j)] }
        });
        for triangle in [Triangle::Lower, Triangle::Upper] {
            let mut factor = a.clone();
            assert_eq!(cholesky::factor(&mut factor, triangle, positive), Ok(()), "{name}");
            let u = upper(&if triangle == Triangle::Lower { factor.adjoint() } else { factor.clone() }, n);
            let error = distance(&times(&u.adjoint(), &u), &a, &a);
            assert!(error < limit(&a), "{name}: {error}");
            // The other triangle is as it was.
            let kept = |i: usize, j: usize| if triangle == Triangle::Lower { i < j } else { i > j };
            for (i, j) in (0..n).flat_map(|i| (0..n).map(move |j| (i, j))).filter(|&(i, j)| kept(i, j)) {
                assert_eq!(factor[(i, j)], a[(i, j)], "{name}");
            }
        }
    }
    // The first leading minor that is not positive.
    for (k, bad) in [(0, 0.0), (1, -1.0), (2, -0.5)] {
        let mut a = of::<F>(3, 3, |i, j| {
            if i != j {
                0.0
            } else if i == k {
                bad
            } else {
                4.0
            }
        });
        assert_eq!(cholesky::factor(&mut a, Triangle::Lower, positive), Err(k));
    }
}

fn check_triangular<F: Field>() {
    for (m, n) in [(1, 1), (5, 3), (3, 5), (8, 8), (0, 2), (2, 0)] {
        for bits in 0..32u32 {
            let bit = |i: u32| bits >> i & 1 == 1;
            let system = triangular::System {
                left: bit(0),
                triangle: if bit(1) { Triangle::Lower } else { Triangle::Upper },
                unit: bit(2),
                transposed: bit(3),
                conjugated: bit(4),
            };
            let order = if system.left { m } else { n };
            let noise = random::<F>(order, order, u64::from(bits));
            // Off the diagonal small, so that the system is well conditioned.
            let a = Matrix::from_fn(order, order, |i, j| {
                if i == j {
                    noise[(i, i)] + F::one() + F::one()
                } else {
                    noise[(i, j)].scaled(F::Real::from_f64(0.2))
                }
            });
            let there = |i: usize, j: usize| if bit(1) { i >= j } else { i <= j };
            let mut op = Matrix::from_fn(order, order, |i, j| match (i == j, there(i, j)) {
                (true, _) if system.unit => F::one(),
                (_, true) => a[(i, j)],
                (_, false) => F::default(),
            });
            if system.transposed {
                op = Matrix::from_fn(order, order, |i, j| op[(j, i)]);
            }
            if system.conjugated {
                op = op.map(F::conj);
            }
            let b = random::<F>(m, n, 77);
            let mut x = b.clone();
            triangular::solve(&a, &mut x, system);
            let product = if system.left { times(&op, &x) } else { times(&x, &op) };
            assert!(
                distance(&product, &b, &b) < limit(&a),
                "{m} {n} {system:?}: {}",
                distance(&product, &b, &b)
            );
        }
    }
    // Infinities survive in every arithmetic.
    let system = triangular::System {
        left: true,
        triangle: Triangle::Lower,
        unit: false,
        transposed: false,
        conjugated: false,
    };
    let mut x = of::<F>(1, 3, |_, j| [2.0, -3.0, 0.0][j]);
    triangular::solve(&Matrix::zeros(1, 1), &mut x, system);
    if !F::COMPLEX {
        let x: Vec<f64> = x.elements().iter().map(|x| x.real().to_f64()).collect();
        assert_eq!(x[..2], [f64::INFINITY, f64::NEG_INFINITY]);
        assert!(x[2].is_nan());
    }
}

fn check_tridiagonal_systems<F: Field>() {
    for n in [0, 1, 2, 3, 10] {
        // The last of these has zeros on its diagonal, so that rows must be exchanged.
        for (seed, weight) in [(1, 1.0), (2, 0.1), (3, 0.0)] {
            let part = |k: u64, n: usize| random::<F>(n, 1, 10 * seed + k).elements().to_vec();
            let diagonal: Vec<F> =
                part(0, n).into_iter().map(|x| x.scaled(F::Real::from_f64(weight))).collect();
            let (lower, above) = (part(1, n.saturating_sub(1)), part(2, n.saturating_sub(1)));
            let b = random::<F>(n, 2, 5);
            let whole = Matrix::from_fn(n, n, |i, j| match (i == j, i == j + 1, i + 1 == j) {
                (true, ..) => diagonal[i],
                (_, true, _) => lower[j],
                (.., true) => above[i],
                _ => F::default(),
            });
            let mut solved = system::System { lower, diagonal, upper: above, b: b.clone() };
            let perturbed = solved.clone().solve_perturbed(F::Real::ULP, F::Real::TINY);
            let done = solved.solve();
            // A tridiagonal matrix of odd order with zeros on its diagonal is singular.
            if weight == 0.0 && n % 2 == 1 {
                assert!(done.is_err() || n > 1, "{n}");
                assert!(perturbed.is_finite(), "{n}");
                continue;
            }
            assert_eq!(done, Ok(()), "{n} {seed}");
            for x in [&solved.b, &perturbed] {
                let scale = times(&whole, x);
                let scale =
                    if size(x) * size(&whole) > size(&scale) { size(x) * size(&whole) } else { size(&scale) };
                let error = size(&minus(&times(&whole, x), &b)) / F::Real::ULP;
                assert!(error <= limit(&b) * scale.max(1e-300), "{n} {seed}: {error}");
            }
        }
    }
}

fn filled<F: Field>(a: &Matrix<F>, triangle: Triangle) -> Matrix<F> {
    // What the other triangle holds must not matter.
    Matrix::from_fn(a.rows(), a.rows(), |i, j| {
        let there = if triangle == Triangle::Lower { i >= j } else { i <= j };
        if there { a[(i, j)] } else { F::from_real(F::Real::from_f64(777.0)) }
    })
}

fn check_tridiagonal_form<F: Field>() {
    for (name, a) in hermitian::<F>() {
        if !in_range(&a) || size(&a) > 1e100 || (size(&a) < 1e-100 && size(&a) > 0.0) {
            continue;
        }
        let n = a.rows();
        for triangle in [Triangle::Lower, Triangle::Upper] {
            let form = tridiagonal(filled(&a, triangle), triangle);
            let q = form.multiply(Matrix::identity(n, n));
            assert!(skew(&q) < limit(&a), "{name}");
            let t = Matrix::from_fn(n, n, |i, j| {
                F::from_real(match i.abs_diff(j) {
                    0 => form.diagonal[i],
                    1 => form.off_diagonal[i.min(j)],
                    _ => F::Real::default(),
                })
            });
            let error = distance(&times(&times(&q, &t), &q.adjoint()), &a, &a);
            assert!(error < limit(&a), "{name} {triangle:?}: {error}");
        }
    }
}

fn check_hermitian<F: Field>() {
    for (name, a) in hermitian::<F>() {
        if !in_range(&a) {
            continue;
        }
        let n = a.rows();
        for triangle in [Triangle::Lower, Triangle::Upper] {
            let eigen =
                eigen_symmetric::eigen(filled(&a, triangle), triangle, Eigenvectors::All, COARSE).unwrap();
            let v = eigen.vectors.unwrap();
            assert!(skew(&v) < limit(&a), "{name}: {}", skew(&v));
            assert!(eigen.values.windows(2).all(|w| w[0] <= w[1]), "{name}");
            let scaled = Matrix::from_fn(n, n, |i, j| v[(i, j)].scaled(eigen.values[j]));
            let error = distance(&times(&a, &v), &scaled, &a);
            assert!(error < limit(&a), "{name}: {error}");
            let alone =
                eigen_symmetric::eigen(filled(&a, triangle), triangle, Eigenvectors::No, COARSE).unwrap();
            let unread =
                eigen_symmetric::eigen(filled(&a, triangle), triangle, Eigenvectors::Unread, COARSE).unwrap();
            assert_eq!(unread.values, eigen.values, "{name}");
            // Beyond some order they are found another way.
            for (&x, &y) in alone.values.iter().zip(&eigen.values) {
                let error = (x - y).to_f64().abs();
                assert!(error <= limit(&a) * F::Real::ULP * size(&a), "{name}: {error}");
            }
        }
    }
}

fn check_svd<F: Field>() {
    for (name, a) in general::<F>() {
        if !in_range(&a) {
            continue;
        }
        for driver in [Driver::DivideAndConquer, Driver::Iteration] {
            for vectors in [Vectors::Thin, Vectors::Full] {
                let svd = decomposed(name, &a, vectors, driver);
                let alone = svd::svd(a.clone(), Vectors::None, driver, COARSE).unwrap();
                // By another iteration.
                let scale = svd.values.first().map_or(0.0, |s| s.to_f64()) * F::Real::ULP;
                for (x, y) in alone.values.iter().zip(&svd.values) {
                    assert!((*x - *y).to_f64().abs() <= limit(&a) * scale, "{name}: {x:?} {y:?}");
                }
            }
        }
    }
}

/// A decomposition that is one.
fn decomposed<F: Field>(name: &str, a: &Matrix<F>, vectors: Vectors, driver: Driver) -> svd::Svd<F> {
    let (m, n) = (a.rows(), a.columns());
    let svd = svd::svd(a.clone(), vectors, driver, COARSE).unwrap();
    let (u, v) = svd.vectors.as_ref().unwrap();
    let full = vectors == Vectors::Full;
    assert_eq!((u.rows(), u.columns()), (m, if full { m } else { m.min(n) }), "{name}");
    assert_eq!((v.rows(), v.columns()), (n, if full { n } else { m.min(n) }), "{name}");
    assert!(skew(u) < limit(a) && skew(v) < limit(a), "{name}: {} {}", skew(u), skew(v));
    assert!(svd.values.windows(2).all(|w| w[0] >= w[1]), "{name}");
    assert!(svd.values.iter().all(|s| s.to_f64() >= 0.0), "{name}");
    let us = Matrix::from_fn(m, m.min(n), |i, j| u[(i, j)].scaled(svd.values[j]));
    let thin = Matrix::from_fn(n, m.min(n), |i, j| v[(i, j)]);
    let error = distance(&times(&us, &thin.adjoint()), a, a);
    assert!(error < limit(a), "{name} {driver:?} {vectors:?}: {error}");
    svd
}

/// Beyond what the iteration alone is used for: values that are equal, 0, of all sizes, and matrices that
/// fall apart.
fn check_dividing<F: Field>() {
    let last_apart =
        |i: usize, j: usize| if i == j { 1.0 + (i % 3) as f64 } else { f64::from(j == i + 1 && j < 30) };
    let cases: Vec<(&str, Matrix<F>)> = vec![
        ("square", random(53, 53, 5)),
        ("tall", random(40, 26, 6)),
        ("wide", random(26, 40, 7)),
        ("a little tall", random(36, 31, 8)),
        ("a little wide", random(31, 36, 9)),
        ("orthogonal", orthogonal(40, 3)),
        ("zero", of(30, 30, |_, _| 0.0)),
        ("one", of(33, 33, |_, _| 1.0)),
        ("rank 2", of(60, 60, |i, j| ((i + 2 * j) as f64) - 50.0)),
        ("identity", of(27, 27, |i, j| f64::from(i == j))),
        ("equal pairs", of(54, 54, |i, j| if i == j { (i / 2) as f64 } else { 0.0 })),
        (
            "falls apart",
            of(64, 64, |i, j| if i / 29 == j / 29 { ((i * 7 + j * 3) % 11) as f64 } else { 0.0 }),
        ),
        ("last apart", of(31, 31, last_apart)),
        ("Hilbert", of(40, 40, |i, j| 1.0 / (i + j + 1) as f64)),
        ("graded", of(32, 32, |i, j| 10f64.powi(-(i.max(j) as i32)))),
        ("bidiagonal", of(80, 80, |i, j| f64::from(i == j) + f64::from(j == i + 1))),
    ];
    for (name, a) in &cases {
        for vectors in [Vectors::Thin, Vectors::Full] {
            let svd = decomposed(name, a, vectors, Driver::DivideAndConquer);
            let iterated = decomposed(name, a, vectors, Driver::Iteration);
            let scale = iterated.values[0].to_f64().max(f64::MIN_POSITIVE);
            for (x, y) in svd.values.iter().zip(&iterated.values) {
                assert!((*x - *y).to_f64().abs() <= limit(a) * scale, "{name}: {x:?} {y:?}");
            }
        }
    }
}

fn check_hessenberg<F: Field>() {
    for (name, a) in square::<F>() {
        if !in_range(&a) || size(&a) > 1e100 || (size(&a) < 1e-100 && size(&a) > 0.0) {
            continue;
        }
        let n = a.rows();
        let form = hessenberg::reduce(a.clone(), 0..n);
        assert_eq!(form.taus.len(), n.saturating_sub(1));
        let (q, h) = (form.vectors(), form.matrix());
        assert!(skew(&q) < limit(&a), "{name}");
        let error = distance(&times(&times(&q, &h), &q.adjoint()), &a, &a);
        assert!(error < limit(&a), "{name}: {error}");
    }
}

fn check_schur<F: schur::Triangularize>() {
    for (name, a) in square::<F>() {
        if !in_range(&a) {
            continue;
        }
        let n = a.rows();
        let schur = schur::schur(a.clone(), COARSE).unwrap();
        assert!(skew(&schur.z) < limit(&a), "{name}: {}", skew(&schur.z));
        let error = distance(&times(&times(&schur.z, &schur.t), &schur.z.adjoint()), &a, &a);
        assert!(error < limit(&a), "{name}: {error}");
        let mut pairs = 0;
        for j in 0..n {
            for i in j + 1..n {
                if schur.t[(i, j)].is_zero() {
                    continue;
                }
                // A block in standard form.
                assert!(!F::COMPLEX && i == j + 1, "{name}: {i} {j}");
                assert_eq!(schur.t[(i, i)], schur.t[(j, j)], "{name}");
                let product =
                    schur.t[(i, j)].real().to_f64().signum() * schur.t[(j, i)].real().to_f64().signum();
                assert_eq!(product, -1.0, "{name}");
                assert!(schur.values[j].im > F::Real::default(), "{name}");
                assert_eq!(schur.values[i], schur.values[j].conj(), "{name}");
                pairs += 1;
            }
        }
        let complex = schur.values.iter().filter(|w| !w.im.is_zero()).count();
        assert!(F::COMPLEX || complex == 2 * pairs, "{name}");
    }
}

fn check_eigenvectors<F: eigen_general::Vectors>() {
    for (name, a) in square::<F>() {
        if !in_range(&a) {
            continue;
        }
        let n = a.rows();
        let eigen = eigen_general::eigen(a.clone(), true, true, COARSE).unwrap();
        let alone = eigen_general::eigen(a.clone(), false, false, COARSE).unwrap();
        assert_eq!(alone.values, eigen.values, "{name}");
        let whole = a.map(|x| Complex::from_parts(x.real(), x.imag()));
        for (vectors, right) in [(eigen.right.unwrap(), true), (eigen.left.unwrap(), false)] {
            let product = if right { times(&whole, &vectors) } else { times(&whole.adjoint(), &vectors) };
            for (j, &w) in eigen.values.iter().enumerate() {
                let column = vectors.column(j);
                let length = super::matrix::norm(column).to_f64();
                assert!((length - 1.0).abs() < 100.0 * F::Real::ULP, "{name}: {length}");
                let w = if right { w } else { w.conj() };
                let error: f64 =
                    (0..n).map(|i| (product[(i, j)] - w * column[i]).modulus().to_f64()).fold(0.0, f64::max);
                // Scaling may trade accuracy of the large for that of the small.
                let scale = if name == "unbalanced" { 1e8 } else { 1.0 };
                assert!(error <= limit(&a) * scale * size(&a) * F::Real::ULP, "{name} {right} {j}: {error}");
                // The largest element is real.
                let top = column.iter().map(|x| x.norm().to_f64()).fold(0.0, f64::max);
                let real = |x: &Complex<F::Real>| x.im.is_zero() && x.norm().to_f64() >= 0.99 * top;
                assert!(column.iter().any(real), "{name}: {column:?}");
            }
        }
    }
}

fn check_not_finite<F: eigen_general::Vectors>() {
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        for n in [1, 2, 5] {
            for at in [0, n * n - 1, n * n / 2] {
                let mut a = random::<F>(n, n, 3);
                a.elements_mut()[at] = F::from_real(F::Real::from_f64(bad));
                lu::factor(|| a.clone());
                qr::factor(a.clone());
                qr_pivoted::factor(a.clone(), &mut vec![0; n]);
                hessenberg::reduce(a.clone(), 0..n);
                tridiagonal(a.clone(), Triangle::Lower);
                let _ = cholesky::factor(&mut a.clone(), Triangle::Upper, |x| x.to_f64() > 0.0);
                assert!(svd::svd(a.clone(), Vectors::Thin, Driver::Iteration, COARSE).is_err());
                assert!(schur::schur(a.clone(), COARSE).is_err());
                assert!(eigen_general::eigen(a.clone(), true, true, COARSE).is_err());
                let hermitian = eigen_symmetric::eigen(a.clone(), Triangle::Lower, Eigenvectors::All, COARSE);
                assert!(hermitian.is_err() || at % n < at / n, "{bad} {n} {at}");
                let part = |k: usize| a.column(k % n)[..n - 1].to_vec();
                let broken = system::System {
                    lower: part(0),
                    diagonal: a.column(0).to_vec(),
                    upper: part(1),
                    b: a.clone(),
                };
                broken.clone().solve_perturbed(F::Real::ULP, F::Real::TINY);
                let _ = broken.clone().solve();
                balance::balance(&mut a.clone(), true);
            }
        }
    }
}

/// Eigenvalues and singular values that are known.
#[test]
fn known_values() {
    let close = |x: f64, y: f64| assert!((x - y).abs() <= 1e-14 * y.abs().max(1.0), "{x} {y}");
    // Wilkinson's matrix of order 21 has pairs that agree to 14 digits; its largest two: LAPACK working
    // notes.
    let wilkinson = hermitian::<Dd>().into_iter().find(|(name, _)| *name == "Wilkinson").unwrap().1;
    let values = eigen_symmetric::eigen(wilkinson, Triangle::Lower, Eigenvectors::No, COARSE).unwrap().values;
    close(values[20].to_f64(), 10.746_194_182_903_393);
    close(values[19].to_f64(), 10.746_194_182_903_322);
    // The determinant of the Hilbert matrix of order 5 is 1/266716800000.
    let hilbert = of::<Dd>(5, 5, |i, j| 1.0 / (i + j + 1) as f64);
    let singular = svd::svd(hilbert, Vectors::None, Driver::Iteration, COARSE).unwrap().values;
    let product = singular.iter().fold(1.0, |x, s| x * s.to_f64());
    assert!((product * 266_716_800_000.0 - 1.0).abs() < 1e-9);
    // Roots of unity.
    let cyclic = of::<Dd>(4, 4, |i, j| f64::from((i + 1) % 4 == j));
    let mut values: Vec<(f64, f64)> = schur::schur(cyclic, COARSE)
        .unwrap()
        .values
        .iter()
        .map(|w| (w.re.to_f64().round(), w.im.to_f64().round()))
        .collect();
    values.sort_by(|a, b| a.partial_cmp(b).unwrap());
    assert_eq!(values, [(-1.0, 0.0), (0.0, -1.0), (0.0, 1.0), (1.0, 0.0)]);
}

/// Eigenvalues of a matrix made from them, to the last bit of f64: double-double arithmetic has digits enough
/// for the condition.
#[test]
fn wide_results_are_wide() {
    let expected = [-2.5, 1e-9, 0.25, 1.0, 1.0, 3.75];
    let a = with_eigenvalues::<Dd>(&expected, 9);
    let eigen = eigen_symmetric::eigen(a, Triangle::Lower, Eigenvectors::No, COARSE).unwrap();
    for (value, expected) in eigen.values.iter().zip(expected) {
        assert!((*value - Dd::from(expected)).to_f64().abs() < 1e-28, "{value:?} {expected}");
    }
    let q = orthogonal::<Dd>(6, 3);
    let singular = svd::svd(q, Vectors::None, Driver::DivideAndConquer, COARSE).unwrap().values;
    assert!(singular.iter().all(|s| (*s - Dd::ONE).to_f64().abs() < 1e-29));
}

/// However coarse the iteration is that gives signs and order, values and residuals are as exact.
#[test]
fn coarse_iterations_decide_signs_and_order_only() {
    let a = random::<f64>(12, 12, 21);
    let fine = svd::svd(a.clone(), Vectors::Thin, Driver::Iteration, f64::EPSILON).unwrap();
    for coarse in [1e-3, COARSE, 1e-14] {
        let svd = svd::svd(a.clone(), Vectors::Thin, Driver::Iteration, coarse).unwrap();
        assert_eq!(svd.values, fine.values);
        let schur = schur::schur(a.clone(), coarse).unwrap();
        assert!(distance(&times(&times(&schur.z, &schur.t), &schur.z.adjoint()), &a, &a) < limit(&a));
    }
    // The order is that in which LAPACK finds these eigenvalues, which is not that of their sizes.
    let shuffled = of::<f64>(4, 4, |i, j| {
        if i > j {
            0.0
        } else {
            [[3.0, 1.0, 2.0, 1.0], [0.0, -1.0, 1.0, 4.0], [0.0, 0.0, 7.0, 1.0], [0.0, 0.0, 0.0, 2.0]][i][j]
        }
    });
    let values: Vec<f64> = schur::schur(shuffled, COARSE).unwrap().values.iter().map(|w| w.re).collect();
    assert_eq!(values, [3.0, -1.0, 7.0, 2.0]);
}

/// Large enough to take time if an iteration did not converge as it should.
#[test]
fn order_200() {
    let a = random::<f64>(200, 200, 1);
    let svd = svd::svd(a.clone(), Vectors::Thin, Driver::DivideAndConquer, COARSE).unwrap();
    let (u, v) = svd.vectors.unwrap();
    let us = Matrix::from_fn(200, 200, |i, j| u[(i, j)].scaled(svd.values[j]));
    assert!(distance(&times(&us, &v.adjoint()), &a, &a) < limit(&a));
    let schur = schur::schur(a.clone(), COARSE).unwrap();
    let back = times(&times(&schur.z, &schur.t), &schur.z.adjoint());
    assert!(distance(&back, &a, &a) < limit(&a));
    let hermitian = Matrix::from_fn(200, 200, |i, j| a[(i.max(j), i.min(j))]);
    let eigen =
        eigen_symmetric::eigen(hermitian.clone(), Triangle::Lower, Eigenvectors::All, COARSE).unwrap();
    let v = eigen.vectors.unwrap();
    let scaled = Matrix::from_fn(200, 200, |i, j| v[(i, j)].scaled(eigen.values[j]));
    assert!(distance(&times(&hermitian, &v), &scaled, &hermitian) < limit(&a));
}

/// Two diagonals, named: matrices whose parts are far from one another, hardly joined, or alike.
fn diagonals(n: usize, seed: u64) -> Vec<(&'static str, Vec<f64>, Vec<f64>)> {
    let mut numbers = matrices::Numbers(seed);
    let mut some = |f: &dyn Fn(f64) -> f64| -> Vec<f64> { (0..n).map(|_| f(numbers.next())).collect() };
    let ones = vec![1.0; n];
    vec![
        ("random", some(&|x| x), some(&|x| x)),
        ("hardly joined", some(&|x| x), some(&|x| 10f64.powf(-6.0 + 6.0 * x))),
        (
            "of all sizes",
            some(&|x| x.signum() * 10f64.powf(-4.0 + 4.0 * x)),
            some(&|x| 10f64.powf(-5.0 + 5.0 * x)),
        ),
        ("second differences", vec![2.0; n], vec![-1.0; n]),
        ("Wilkinson's", (0..n).map(|i| (i as f64 - (n - 1) as f64 / 2.0).abs()).collect(), ones.clone()),
        ("alike", ones, some(&|x| 1e-3 * x)),
        ("with zeros", some(&|x| if x > 0.5 { 0.0 } else { x }), some(&|x| if x > 0.7 { 0.0 } else { x })),
    ]
}

/// What says where vectors point up to a coarser unit of rounding is right where it is clear.
#[test]
fn signs_by_dividing_are_those_up_to_the_coarser_unit() {
    use super::{divide, divide_bidiagonal};
    let along =
        |x: &Matrix<f64>, y: &Matrix<f64>, j: usize| super::matrix::agreement(x.column(j), y.column(j));
    // Up to somewhat less and more everything falls alike, or nobody can tell.
    let units = [COARSE, 0.5 * COARSE, 2.0 * COARSE];
    let mut told = 0;
    for n in [26, 40, 64, 130] {
        for (name, d, e) in diagonals(n, n as u64) {
            let e = &e[1..];
            let mut check = |what: &str, x: &Matrix<f64>, guides: [&Matrix<f64>; 3]| {
                for j in 0..n {
                    if guides.iter().all(|guide| along(guides[0], guide, j) > 0.9) {
                        let along = along(x, guides[0], j);
                        assert!(along > -0.9, "{name} of {n}: {what} {j}: {along}");
                        told += usize::from(along > 0.9);
                    }
                }
            };
            let of = divide::eigen(&d, e, f64::EPSILON, Some(COARSE)).unwrap();
            let guides = units.map(|unit| divide::eigen(&d, e, unit, None).unwrap());
            check("eigenvector", &of.1, guides.each_ref().map(|guide| &guide.1));
            for lower in [false, true] {
                let singular = |ulp, coarse| divide_bidiagonal::singular(&d, e, lower, ulp, coarse).unwrap();
                let of = singular(f64::EPSILON, Some(COARSE));
                // The vectors of values that are negligible have nothing to do with each other.
                if of.values[n - 1] > 1e-3 * of.values[0] {
                    let guides = units.map(|unit| singular(unit, None));
                    check("left", &of.u, guides.each_ref().map(|guide| &guide.u));
                    check("right", &of.v, guides.each_ref().map(|guide| &guide.v));
                }
            }
        }
    }
    assert!(told > 2000, "{told}");
}
