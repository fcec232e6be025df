//! What merging two solved halves takes: the roots of a rational function, the vectors that belong to them,
//! and the product of those with the halves' own. Dividing tridiagonal matrices ([`super::divide`]) and
//! bidiagonal ones ([`super::divide_bidiagonal`]) do the same.
//!
//! **Invariant:** differences of poles and of poles and roots are never taken from rounded roots: a root is
//! known by its distance from the pole nearest to it, so that the vectors are orthogonal however close roots
//! are (Gu and Eisenstat).

use std::cell::Cell;

use super::Matrix;
use super::matrix::{hypotenuse, norm, total};
use super::product::{COLUMNS, Left};
use super::rotation::rotate;
use crate::wide::{Real, abs};

/// Which rows of a column are not 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rows {
    First,
    Both,
    Second,
}

/// The columns of both halves, by which of the rows before and after `split` are not 0.
#[derive(Debug)]
pub(crate) struct Columns<R> {
    split: usize,
    rows: Vec<Rows>,
    all: Matrix<R>,
}

impl<R: Real> Columns<R> {
    /// No columns yet, of at most `count`.
    pub(crate) fn new(height: usize, count: usize, split: usize) -> Self {
        Self { split, rows: Vec::with_capacity(count), all: Matrix::zeros(height, count) }
    }

    /// One more, of which `elements` are those of the rows named; fewer than these have 0 after them.
    pub(crate) fn push(&mut self, rows: Rows, elements: &[R]) {
        let at = if rows == Rows::Second { self.split } else { 0 };
        self.all.column_mut(self.rows.len())[at..at + elements.len()].copy_from_slice(elements);
        self.rows.push(rows);
    }

    /// Columns x, y = i, j become c x + s y, c y - s x; the first is then left out.
    pub(crate) fn rotate(&mut self, i: usize, j: usize, c: R, s: R) {
        let (a, b) = self.all.two_columns_mut(i.min(j), i.max(j));
        rotate(if i < j { (a, b) } else { (b, a) }, c, s);
        if self.rows[i] != self.rows[j] {
            self.rows[j] = Rows::Both;
        }
    }

    /// The columns `kept` times a matrix.
    pub(crate) fn times(&self, kept: &[usize], s: &Matrix<R>) -> Matrix<R> {
        let n = self.all.rows();
        let mut out = Matrix::zeros(n, s.columns());
        for (first, count, none) in [(0, self.split, Rows::Second), (self.split, n - self.split, Rows::First)]
        {
            let some: Vec<usize> = (0..kept.len()).filter(|&k| self.rows[kept[k]] != none).collect();
            // It subtracts.
            let left = Left::new(count, some.len(), |row, k, out| {
                let from = &self.all.column(kept[some[k]])[first + row..];
                out.iter_mut().zip(from).for_each(|(out, &x)| *out = -x);
            });
            let mut right = vec![[R::default(); COLUMNS]; some.len()];
            for (group, columns) in out.elements_mut().chunks_mut(COLUMNS * n).enumerate() {
                for (right, &k) in right.iter_mut().zip(&some) {
                    for (c, x) in right[..columns.len() / n].iter_mut().enumerate() {
                        *x = s[(k, group * COLUMNS + c)];
                    }
                }
                left.subtract(&right, columns, n, first);
            }
        }
        out
    }

    /// A matrix of as many columns as rows, or more, whose first columns are, in that `order`, those of
    /// `products` and then those `deflated`.
    pub(crate) fn ordered(&self, products: &Matrix<R>, deflated: &[usize], order: &[usize]) -> Matrix<R> {
        let mut out = Matrix::zeros(self.all.rows(), self.all.rows().max(order.len()));
        for (to, &from) in order.iter().enumerate() {
            let column = match from.checked_sub(products.columns()) {
                Some(i) => self.all.column(deflated[i]),
                None => products.column(from),
            };
            out.column_mut(to).copy_from_slice(column);
        }
        out
    }
}

/// Decisions about what is negligible up to a unit of rounding, for who has to know what a coarser one
/// would decide.
#[derive(Debug)]
pub(crate) struct Decisions {
    /// The unit.
    pub(crate) ulp: f64,
    /// The coarser one.
    pub(crate) coarse: Option<f64>,
    /// Whether signs up to that are not known.
    pub(crate) doubt: Cell<bool>,
}

impl Decisions {
    pub(crate) fn new(ulp: f64, coarse: Option<f64>) -> Self {
        Self { ulp, coarse, doubt: Cell::new(false) }
    }

    /// What `run` finds up to a unit; and what it finds up to a coarser one, if it does and signs are in
    /// doubt without it.
    pub(crate) fn guided<T>(
        ulp: f64,
        coarse: Option<f64>,
        run: impl Fn(&Decisions) -> Result<T, usize>,
    ) -> Result<(T, Option<T>), usize> {
        let decisions = Self::new(ulp, coarse);
        let found = run(&decisions)?;
        let doubtful = coarse.filter(|_| decisions.doubt.get());
        Ok((found, doubtful.and_then(|coarse| run(&Self::new(coarse, None)).ok())))
    }

    /// Whether something is negligible, if what is known of units of rounding, by a function, holds of larger
    /// ones if it does of smaller ones. There is doubt if it is that up to the coarser one alone, or nearly.
    pub(crate) fn negligible(&self, up_to: impl Fn(f64) -> bool) -> bool {
        /// What rounding to the coarser unit has made of sizes is no more than that.
        const MARGIN: f64 = 4.0;
        let taken = up_to(self.ulp);
        if !taken && self.coarse.is_some_and(|coarse| up_to(MARGIN * coarse)) {
            self.doubt.set(true);
        }
        taken
    }

    /// Which columns of `s`, the vectors of the columns `kept`, point the other way if all is left out that
    /// is negligible up to the coarser unit. What is not left out then points the same way: it is a sum of
    /// columns times their z, which rotating columns leaves unchanged. `rotated` of the kept columns were
    /// rotated.
    pub(crate) fn opposite<R: Real>(
        &self,
        s: &Matrix<R>,
        kept: &[usize],
        LeftOut(vectors): &LeftOut<R>,
        rotated: usize,
    ) -> Vec<usize> {
        /// The smallest cosine of the angle between a vector and that which it stands for.
        const SAME: f64 = 0.9;
        let mut opposite = Vec::new();
        for vector in vectors {
            if vector.len() > MANY_COLUMNS {
                self.doubt.set(true);
                continue;
            }
            let mut along = vec![R::default(); s.columns()];
            let mut found = false;
            for &(column, factor) in vector {
                let Some(i) = kept.iter().position(|&k| k == column) else { continue };
                found = true;
                along.iter_mut().enumerate().for_each(|(j, x)| *x = x.plus_product(s[(i, j)], factor));
            }
            if !found {
                // Left out up to the finer unit, too.
                continue;
            }
            let most =
                (0..along.len()).fold(0, |most, j| if abs(along[j]) > abs(along[most]) { j } else { most });
            if rotated > 0 || abs(along[most]).to_f64() < SAME {
                self.doubt.set(true);
            } else if along[most] < R::default() {
                opposite.push(most);
            }
        }
        opposite
    }
}

/// The maximum number of columns that a vector is tracked through: vectors of more values that hardly differ
/// may have any direction.
const MANY_COLUMNS: usize = 16;

/// What is left out up to a coarser unit of rounding: of each vector the columns that it consists of, and how
/// much of each; of more than [`MANY_COLUMNS`] not all.
#[derive(Debug)]
pub(crate) struct LeftOut<R>(Vec<Vec<(usize, R)>>);

impl<R: Real> LeftOut<R> {
    /// Of `count` columns those that `deflated` returns, which is given the rotation of columns of
    /// [`Columns::rotate`].
    pub(crate) fn new(
        count: usize,
        deflated: impl FnOnce(&mut dyn FnMut(usize, usize, R, R)) -> Vec<usize>,
    ) -> Self {
        let mut columns: Vec<Vec<(usize, R)>> = (0..count).map(|j| vec![(j, R::one())]).collect();
        let which = deflated(&mut |i, j, c, s| {
            let sum = |x: R, y: R| {
                let of =
                    |column: &[(usize, R)], f: R| column.iter().map(|&(k, v)| (k, v * f)).collect::<Vec<_>>();
                let mut sum = [of(&columns[i], x), of(&columns[j], y)].concat();
                sum.truncate(MANY_COLUMNS + 1);
                sum
            };
            (columns[i], columns[j]) = (sum(c, s), sum(-s, c));
        });
        Self(which.into_iter().map(|j| std::mem::take(&mut columns[j])).collect())
    }
}

/// Takes the columns in an `order` of ascending values apart: those that z touches, and those that it does
/// not or that are `negligible`. Of two whose values hardly differ, `rotate` makes one that z does not touch,
/// by a rotation of (c, s), where it says so.
pub(crate) fn deflate<R: Real>(
    order: &[usize],
    z: &mut [R],
    negligible: impl Fn(R) -> bool,
    mut rotate: impl FnMut(usize, usize, R, R) -> bool,
) -> (Vec<usize>, Vec<usize>) {
    let (mut kept, mut deflated) = (Vec::new(), Vec::new());
    let mut last: Option<usize> = None;
    for &j in order {
        if negligible(z[j]) {
            deflated.push(j);
            continue;
        }
        if let Some(i) = last {
            let length = hypotenuse(z[j], z[i]);
            if rotate(i, j, z[j] / length, -(z[i] / length)) {
                (z[i], z[j]) = (R::default(), length);
                deflated.push(i);
            } else {
                kept.push(i);
            }
        }
        last = Some(j);
    }
    kept.extend(last);
    (kept, deflated)
}

/// The indices of values in ascending order (stable).
pub(crate) fn ascending<R: Real>(values: &[R]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].partial_cmp(&values[b]).unwrap_or(std::cmp::Ordering::Equal));
    order
}

/// The largest magnitude.
pub(crate) fn largest<'a, R: Real + 'a>(x: impl IntoIterator<Item = &'a R>) -> R {
    x.into_iter().fold(R::default(), |most, &x| if abs(x) > most { abs(x) } else { most })
}

/// A vector of length 1.
pub(crate) fn normalize<R: Real>(column: &mut [R]) {
    let length = norm(column);
    column.iter_mut().for_each(|x| *x = *x / length);
}

/// What the values are whose rank-one change is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Poles {
    /// Eigenvalues.
    Values,
    /// Singular values: the poles are their squares.
    Squares,
}

/// The diagonal matrix of poles of `d`, which ascends, and rho z z^T, rho being positive: 1 / rho + sum z^2 /
/// (pole - x) has its eigenvalues as roots.
#[derive(Debug)]
pub(crate) struct Roots<R> {
    pub(crate) d: Vec<R>,
    pub(crate) z: Vec<R>,
    pub(crate) rho: R,
    pub(crate) poles: Poles,
    pub(crate) ulp: f64,
}

/// Sums of a part of the function, and of its derivative.
const SUMS: usize = 8;

impl<R: Real> Roots<R> {
    /// Pole i minus pole j.
    fn apart(&self, i: usize, j: usize) -> R {
        let (a, b) = (self.d[i], self.d[j]);
        match self.poles {
            Poles::Values => a - b,
            Poles::Squares => (a - b) * (a + b),
        }
    }

    /// The new values, and eigenvectors as columns of any length.
    pub(crate) fn solve(&self) -> (Vec<R>, Matrix<R>) {
        let k = self.d.len();
        let mut values = Vec::with_capacity(k);
        // Column j: d - x of root j.
        let mut s = Matrix::zeros(k, k);
        if k == 1 {
            s[(0, 0)] = R::one();
            return (vec![self.value(0, self.rho * self.z[0] * self.z[0])], s);
        }
        for j in 0..k {
            values.push(self.root(j, s.column_mut(j)));
        }
        // The z that has exactly these roots.
        let mut squares: Vec<R> = (0..k).map(|i| s[(i, i)]).collect();
        for j in 0..k {
            let column = s.column(j);
            let (before, after) = squares.split_at_mut(j);
            let part = |squares: &mut [R], first: usize| {
                for (i, (x, &delta)) in (first..).zip(squares.iter_mut().zip(&column[first..])) {
                    *x = *x * (delta / self.apart(i, j));
                }
            };
            part(before, 0);
            part(&mut after[1..], j + 1);
        }
        let z: Vec<R> = squares.iter().zip(&self.z).map(|(&x, &z)| abs(x).root().with_sign_of(z)).collect();
        for j in 0..k {
            let column = s.column_mut(j);
            column.iter_mut().zip(&z).for_each(|(x, &z)| *x = z / *x);
        }
        (values, s)
    }

    /// The value whose pole is `x` more than that of value `j`.
    fn value(&self, j: usize, x: R) -> R {
        let d = self.d[j];
        match self.poles {
            Poles::Values => d + x,
            Poles::Squares if d.is_zero() => x.root(),
            Poles::Squares => d + x / (d + (d * d + x).root()),
        }
    }

    /// Sums of z^2 / delta and z^2 / delta^2 over some terms.
    fn sums(z: &[R], delta: &[R]) -> (R, R) {
        let mut lanes = [[R::default(); SUMS]; 2];
        let mut add = |z: &[R], delta: &[R]| {
            let [value, slope] = &mut lanes;
            for (((value, slope), &z), &delta) in value.iter_mut().zip(slope).zip(z).zip(delta) {
                let t = z / delta;
                *value = value.plus_product(z, t);
                *slope = slope.plus_product(t, t);
            }
        };
        let ((zs, z_rest), (deltas, rest)) = (z.as_chunks::<SUMS>(), delta.as_chunks::<SUMS>());
        zs.iter().zip(deltas).for_each(|(z, delta)| add(z, delta));
        add(z_rest, rest);
        (total(lanes[0]), total(lanes[1]))
    }

    /// The value of root j, and all poles minus the root.
    fn root(&self, j: usize, delta: &mut [R]) -> R {
        let z = &self.z[..];
        let (k, zero, two) = (z.len(), R::default(), R::from_f64(2.0));
        let four = two * two;
        let inverse = R::one() / self.rho;
        let last = j + 1 == k;
        // The two poles around the root, or before it.
        let (low, high) = if last { (j - 1, j) } else { (j, j + 1) };
        let gap = self.apart(high, low);
        let reach = if last {
            let sum = z.iter().fold(zero, |sum, &z| sum + z * z);
            self.rho * (sum + sum * R::from_f64(16.0 * R::ULP))
        } else {
            gap
        };
        // In the middle of where the root can be.
        let middle = reach / two;
        let from = if last { high } else { low };
        let fill = |delta: &mut [R], origin: usize, x: R| {
            delta.iter_mut().enumerate().for_each(|(i, delta)| *delta = self.apart(i, origin) - x);
        };
        fill(delta, from, middle);
        let (before, after) =
            (Self::sums(&z[..low], &delta[..low]).0, Self::sums(&z[high + 1..], &delta[high + 1..]).0);
        let c = inverse + before + after;
        let (zl, zh) = (z[low] * z[low], z[high] * z[high]);
        let there = c + zl / delta[low] + zh / delta[high];
        // From the pole that the root is nearer to: x, and what it is between.
        let (origin, mut x, mut least, mut most);
        let root_of = |x: R| if x > zero { x.root() } else { zero };
        if last {
            origin = high;
            let (a, b) = (zl + zh - c * gap, zh * gap);
            let root = root_of(a * a + four * b * c);
            let guess = if a < zero { (two * b) / (root - a) } else { (a + root) / (two * c) };
            (least, most) = if there > zero { (zero, middle) } else { (middle, reach) };
            x = guess;
        } else if there > zero {
            origin = low;
            let (a, b) = (c * gap + zl + zh, zl * gap);
            let root = root_of(a * a - four * b * c);
            x = if a > zero { (two * b) / (a + root) } else { (a - root) / (two * c) };
            (least, most) = (zero, middle);
        } else {
            origin = high;
            let (a, b) = (c * gap - zl - zh, zh * gap);
            let root = root_of(a * a + four * b * c);
            x = if a < zero { (two * b) / (a - root) } else { -((a + root) / (two * c)) };
            (least, most) = (-middle, zero);
        }
        let inside = |x: R, least: R, most: R| x > least && x < most;
        if !inside(x, least, most) {
            x = (least + most) / two;
        }
        let epsilon = R::from_f64(self.ulp / 2.0);
        for _ in 0..MOST {
            fill(delta, origin, x);
            let ((psi, dpsi), (phi, dphi)) =
                (Self::sums(&z[..high], &delta[..high]), Self::sums(&z[high..], &delta[high..]));
            let f = inverse + psi + phi;
            let slope = dpsi + dphi;
            let size = inverse + abs(psi) + abs(phi);
            if abs(f) <= epsilon * (R::from_f64(8.0) * size + abs(x) * slope) {
                break;
            }
            if f < zero {
                least = x
            } else {
                most = x
            }
            let (dl, dh) = (delta[low], delta[high]);
            let c = f - dl * dpsi - dh * dphi;
            let a = (dl + dh) * f - dl * dh * slope;
            let b = dl * dh * f;
            let root = root_of(a * a - four * b * c);
            let mut step = if last == (a < zero) {
                (two * b) / if last { a - root } else { a + root }
            } else if c.is_zero() {
                zero
            } else {
                (if last { a + root } else { a - root }) / (two * c)
            };
            // Always towards the root, never beyond what is known.
            let towards = f * step < zero;
            if !towards {
                step = -(f / slope);
            }
            let mut next = x + step;
            if !inside(next, least, most) {
                next = (least + most) / two;
            }
            if next == x || !inside(next, least, most) {
                break;
            }
            x = next;
        }
        self.value(origin, x)
    }
}

/// The maximum number of steps towards a root; halving alone would take fewer.
const MOST: usize = 200;
