//! Factors of matrices and solutions of triangular systems: how far roundings and what is off in their
//! operands move them.
//!
//! Three facts are put together. Any order of elimination or substitution gives the exact factors or solution
//! of operands that are off by `gamma(n) |L| |U|` element by element (Higham, Accuracy and Stability of
//! Numerical Algorithms, 2nd edition, theorems 8.5, 9.3 and 10.3). Factors of `L U + F` are `L (I + M)` and
//! `(I + N) U` where `(I + M)(I + N) = I + L^-1 F U^-1`, and elimination of `I - |G|` gives what bounds `|M|`
//! and `|N|` (Sun, Componentwise perturbation bounds for some matrix decompositions, BIT 32, 1992; so do the
//! Cholesky factors). Inverses of triangular matrices are bounded by what substitution says of its own error.
//!
//! Unlike the recurrences of the algorithms these do not grow exponentially with the order of a matrix that
//! is well conditioned.
//!
//! **Invariant:** all arithmetic on bounds adds, multiplies and divides numbers that are not negative, and
//! its own roundings are made up for by [`Magnitudes::settle`]. Reference results are within a unit of exact
//! ones.

use hlo::num_complex::Complex;

use crate::balls::Unit;
use crate::gamma;

type C = Complex<f64>;

/// What is left of 1 where it is divided by; with less, nothing is known.
const LEFT: f64 = 1.0 / 16.0;

/// A square matrix of numbers that are not negative, row by row.
#[derive(Clone, Debug)]
pub struct Magnitudes {
    n: usize,
    each: Vec<f64>,
}

impl Magnitudes {
    /// Of order `n`, of elements by row and column.
    pub fn of(n: usize, f: impl Fn(usize, usize) -> f64) -> Magnitudes {
        Magnitudes { n, each: (0..n * n).map(|at| f(at / n, at % n)).collect() }
    }

    /// An element.
    pub fn at(&self, i: usize, j: usize) -> f64 {
        self.each[i * self.n + j]
    }

    fn row(&self, i: usize) -> &[f64] {
        &self.each[i * self.n..][..self.n]
    }

    /// The transposed matrix.
    pub fn transposed(&self) -> Magnitudes {
        Magnitudes::of(self.n, |i, j| self.at(j, i))
    }

    /// At least the product.
    pub fn times(&self, other: &Magnitudes) -> Magnitudes {
        let mut each = vec![0.0; self.n * self.n];
        for (i, sums) in each.chunks_exact_mut(self.n.max(1)).enumerate() {
            for (k, &x) in self.row(i).iter().enumerate().filter(|(_, x)| **x != 0.0) {
                sums.iter_mut().zip(other.row(k)).for_each(|(sum, y)| *sum += x * y);
            }
        }
        Magnitudes { n: self.n, each }.settle()
    }

    /// Made up for roundings of sums of `n` products, and of divisions by what is left of 1 ([`LEFT`] at
    /// least).
    pub fn settle(mut self) -> Magnitudes {
        let more = 1.0 + (self.n as f64 + 8.0) * 4.0 / LEFT * f64::EPSILON;
        self.each.iter_mut().filter(|x| **x != 0.0).for_each(|x| *x = (*x * more).next_up());
        self
    }

    fn is_finite(&self) -> bool {
        self.each.iter().all(|x| x.is_finite())
    }
}

/// At least the modulus of each element of the inverse of a lower triangular matrix. `None` if it has none,
/// or none that is known.
pub fn inverse(n: usize, t: impl Fn(usize, usize) -> C) -> Option<Magnitudes> {
    let mut x = vec![C::ZERO; n * n];
    for i in 0..n {
        let (above, rest) = x.split_at_mut(i * n);
        let row = &mut rest[..n];
        for k in 0..i {
            let factor = t(i, k);
            if factor != C::ZERO {
                row.iter_mut().zip(&above[k * n..][..=k]).for_each(|(sum, x)| *sum -= factor * x);
            }
        }
        row[i] = C::ONE;
        let pivot = t(i, i);
        row[..=i].iter_mut().for_each(|x| *x /= pivot);
    }
    let x = Magnitudes::of(n, |i, j| x[i * n + j].norm());
    // Each column is exact for a matrix that is off by `q`; complex arithmetic rounds four times as much at
    // most.
    let own = gamma(4.0 * (n as f64 + 3.0), f64::EPSILON);
    let q = Magnitudes::of(n, |i, j| if j <= i { t(i, j).norm() * own } else { 0.0 }).times(&x);
    // Z (I - Q) = |X|
    let mut z = x;
    for row in z.each.chunks_exact_mut(n.max(1)) {
        for j in (0..n).rev() {
            let left = 1.0 - q.at(j, j);
            if left.is_nan() || left < LEFT {
                return None;
            }
            row[j] /= left;
            let z = row[j];
            if z != 0.0 {
                row[..j].iter_mut().zip(q.row(j)).for_each(|(sum, q)| *sum += z * q);
            }
        }
    }
    let z = z.settle();
    z.is_finite().then_some(z)
}

/// How far the elements of a lower Cholesky factor `l` may be off, row by row. `diagonal` are at least the
/// elements of the matrix there, `off(i, j)` is what those of its lower triangle are off by. `None`: nothing
/// is known.
pub fn cholesky(
    n: usize,
    l: impl Fn(usize, usize) -> C,
    diagonal: impl Fn(usize) -> f64,
    off: impl Fn(usize, usize) -> f64,
    unit: Unit,
) -> Option<Vec<f64>> {
    let z = inverse(n, &l)?;
    let backward = unit.backward(n);
    let roots: Vec<f64> = (0..n).map(|i| (diagonal(i) + off(i, i)).sqrt()).collect();
    let relative = backward / (1.0 - backward) + 4.0 * unit.relative;
    let f =
        Magnitudes::of(n, |i, j| relative * roots[i] * roots[j] + off(i.max(j), i.min(j)) + unit.small(n));
    if backward >= 0.5 || !f.is_finite() {
        return None;
    }
    let m = rooted(&z.times(&f).times(&z.transposed()))?;
    let sizes = Magnitudes::of(n, |i, j| if j <= i { l(i, j).norm() } else { 0.0 });
    Some(sizes.times(&m).each)
}

/// How far from `I` the lower Cholesky factor of `I + G` may be, whose elements of `G` have at most these
/// moduli.
pub fn rooted(g: &Magnitudes) -> Option<Magnitudes> {
    let n = g.n;
    let mut m = Magnitudes::of(n, |_, _| 0.0);
    for j in 0..n {
        let dot = |m: &Magnitudes, i: usize| -> f64 { (0..j).map(|k| m.at(i, k) * m.at(j, k)).sum() };
        let less = g.at(j, j) + dot(&m, j);
        if less.is_nan() || 1.0 - less < LEFT {
            return None;
        }
        let root = (1.0 - less).sqrt();
        m.each[j * n + j] = less / (1.0 + root);
        for i in j + 1..n {
            m.each[i * n + j] = (g.at(i, j) + dot(&m, i)) / root;
        }
    }
    Some(m.settle())
}

/// The factors of a matrix of `rows` by `columns` whose rows have been permuted into the order of the pivots.
#[derive(Debug)]
pub struct Factors<'a> {
    /// Rows of the matrix.
    pub rows: usize,
    /// Columns of the matrix.
    pub columns: usize,
    /// Both factors, row by row; the diagonal is that of the upper one, that of the lower one is 1.
    pub packed: &'a [C],
    /// What the elements of the matrix are off by.
    pub off: &'a [f64],
}

impl Factors<'_> {
    fn depth(&self) -> usize {
        self.rows.min(self.columns)
    }

    /// Of a square matrix of which this is a part; the rest is that of an identity.
    fn lower(&self, i: usize, j: usize) -> C {
        match i == j {
            true => C::ONE,
            false if j < i && i < self.rows && j < self.depth() => self.packed[i * self.columns + j],
            false => C::ZERO,
        }
    }

    fn upper(&self, i: usize, j: usize) -> C {
        match i < self.depth() {
            true if j >= i && j < self.columns => self.packed[i * self.columns + j],
            false if i == j => C::ONE,
            true | false => C::ZERO,
        }
    }

    /// How far the elements of the factors may be off, in the order of `packed`. `None`: nothing is known.
    pub fn radii(&self, unit: Unit) -> Option<Vec<f64>> {
        let n = self.rows.max(self.columns);
        let left = inverse(n, |i, j| self.lower(i, j))?;
        let right = inverse(n, |i, j| self.upper(j, i))?.transposed();
        let l = Magnitudes::of(n, |i, j| self.lower(i, j).norm());
        let u = Magnitudes::of(n, |i, j| self.upper(i, j).norm());
        let inside = |i: usize, j: usize| i < self.rows && j < self.columns;
        let reference = l.times(&u);
        // What the factors are off by if theirs was `assumed` where roundings are those of their products.
        let moved = |assumed: Option<&(Magnitudes, Magnitudes)>| {
            let product = match assumed {
                None => reference.clone(),
                Some((dl, du)) => plus(&l, dl).times(&plus(&u, du)),
            };
            let f = Magnitudes::of(n, |i, j| {
                if !inside(i, j) {
                    return 0.0;
                }
                let (rounded, off) = (product.at(i, j), self.off[i * self.columns + j]);
                let small = if rounded + off > 0.0 { unit.small(n) } else { 0.0 };
                unit.backward(self.depth()) * rounded + 4.0 * unit.relative * reference.at(i, j) + off + small
            });
            let (m, n) = eliminated(left.times(&f).times(&right))?;
            let both = (l.times(&m), n.times(&u));
            (both.0.is_finite() && both.1.is_finite()).then_some(both)
        };
        let first = moved(None)?;
        // Elements of factors depend on those before them alone, so that what an assumption leads back into
        // bounds them one after the other.
        let (dl, du) = [1.25, 2.0, 8.0].into_iter().find_map(|times| {
            let mut assumed = first.clone();
            assumed.0.each.iter_mut().chain(&mut assumed.1.each).for_each(|x| *x *= times);
            let then = moved(Some(&assumed))?;
            let within = |a: &Magnitudes, b: &Magnitudes| a.each.iter().zip(&b.each).all(|(a, b)| a <= b);
            (within(&then.0, &assumed.0) && within(&then.1, &assumed.1)).then_some(then)
        })?;
        let both = (0..self.rows * self.columns).map(|at| {
            let (i, j) = (at / self.columns, at % self.columns);
            if j < i { dl.at(i, j) } else { du.at(i, j) }
        });
        Some(both.collect())
    }

    /// Whether with these errors of the factors another pivot may be chosen than in the reference: the
    /// largest element that is left of each column, by the sum of the moduli of its parts (`izamax` of BLAS).
    pub fn may_pivot_elsewhere(&self, radii: &[f64]) -> bool {
        let size = |x: C| x.re.abs() + x.im.abs();
        (0..self.depth()).any(|j| {
            let at = j * self.columns + j;
            let (pivot, moved) = (self.packed[at], radii[at]);
            (j + 1..self.rows).any(|i| {
                let at = i * self.columns + j;
                let (factor, off) = (self.packed[at], radii[at]);
                let more = factor.norm() * moved + off * (pivot.norm() + moved);
                let nearest = size(pivot) - 2.0 * moved;
                size(factor * pivot) + 2.0 * more >= nearest * (1.0 - 16.0 * f64::EPSILON)
            })
        })
    }
}

fn plus(a: &Magnitudes, b: &Magnitudes) -> Magnitudes {
    Magnitudes { n: a.n, each: a.each.iter().zip(&b.each).map(|(a, b)| a + b).collect() }
}

/// `m`, strictly lower, and `n`, upper, with `(I - m)(I - n) = I - g`.
fn eliminated(mut g: Magnitudes) -> Option<(Magnitudes, Magnitudes)> {
    let n = g.n;
    for k in 0..n {
        let (above, below) = g.each.split_at_mut((k + 1) * n);
        let row = &above[k * n..];
        let left = 1.0 - row[k];
        if left.is_nan() || left < LEFT {
            return None;
        }
        for other in below.chunks_exact_mut(n) {
            other[k] /= left;
            let factor = other[k];
            if factor != 0.0 {
                other[k + 1..].iter_mut().zip(&row[k + 1..]).for_each(|(sum, x)| *sum += factor * x);
            }
        }
    }
    let g = g.settle();
    let part = |lower: bool| Magnitudes::of(n, |i, j| if (j < i) == lower { g.at(i, j) } else { 0.0 });
    Some((part(true), part(false)))
}

/// A lower triangular system: what its solutions are off by.
#[derive(Debug)]
pub struct Substitution {
    /// At least the inverse.
    inverse: Magnitudes,
    /// What the matrix is off by in effect: its own error, and the roundings of an engine and of the
    /// reference.
    effect: Magnitudes,
    /// At least the inverse times what the matrix is off by, the engine's roundings included.
    again: Magnitudes,
    small: f64,
}

impl Substitution {
    /// For a matrix with these errors of its elements. `None`: nothing is known.
    pub fn new(
        n: usize,
        t: impl Fn(usize, usize) -> C,
        off: impl Fn(usize, usize) -> f64,
        unit: Unit,
    ) -> Option<Substitution> {
        let inverse = inverse(n, &t)?;
        let backward = unit.backward(n);
        let moved = Magnitudes::of(n, |i, j| match j <= i {
            true => off(i, j) + backward * (t(i, j).norm() + off(i, j)),
            false => 0.0,
        })
        .settle();
        let effect = Magnitudes::of(n, |i, j| {
            moved.at(i, j) + if j <= i { 2.0 * unit.relative * t(i, j).norm() } else { 0.0 }
        });
        let again = inverse.times(&moved);
        let converges = (0..n).all(|i| again.at(i, i) <= 1.0 - LEFT) && again.is_finite();
        converges.then_some(Substitution { inverse, effect, again, small: unit.small(n) })
    }

    /// Of a solution of this magnitude, for a right side with the errors `off`.
    pub fn radii(&self, x: &[f64], off: &[f64]) -> Vec<f64> {
        let n = x.len();
        let rest: Vec<f64> = (0..n)
            .map(|i| {
                off[i] + self.small + self.effect.row(i)[..=i].iter().zip(x).map(|(e, x)| e * x).sum::<f64>()
            })
            .collect();
        let more = 1.0 + (n as f64 + 8.0) * 8.0 / LEFT * f64::EPSILON;
        let mut found: Vec<f64> = Vec::with_capacity(n);
        for i in 0..n {
            let direct: f64 = self.inverse.row(i)[..=i].iter().zip(&rest).map(|(z, r)| z * r).sum();
            let again: f64 = self.again.row(i)[..i].iter().zip(&found).map(|(k, d)| k * d).sum();
            found.push(((direct + again) / (1.0 - self.again.at(i, i)) * more).next_up());
        }
        found
    }
}
