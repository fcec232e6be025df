//! Reduction to bidiagonal form: `gebrd`.
//!
//! What the two reflectors of a step do to the rest of the matrix is subtracted when the next step reads it:
//! a step goes over the matrix once to subtract and to multiply by the left reflector, and once more to
//! multiply by the right one.
//!
//! **Invariant:** the rest is divided into parts by its size alone, so that no number of threads changes a
//! bit.

use hlo_threads::cancel;

use super::Matrix;
use super::householder::{multiply, reflector};
use super::matrix::{add_multiple, dot, total};
use super::{each_part, parts};
use crate::wide::Field;

/// Columns that are taken together.
const COLUMNS: usize = 2;
/// Columns that are multiplied by the right reflector together.
const FOUR: usize = 4;
/// Sums of a product with the left reflector.
const LANES: usize = 8;

/// A = Q B P^H with as many rows as columns, or more; B real, with a diagonal and what is above it.
pub(super) struct Bidiagonal<F: Field> {
    pub(super) diagonal: Vec<F::Real>,
    pub(super) off_diagonal: Vec<F::Real>,
    /// Tails and factors tau of the reflectors whose product is Q.
    left: Vec<(Vec<F>, F)>,
    /// The same of P; these begin one element later.
    right: Vec<(Vec<F>, F)>,
}

/// v w^T + z u^H, still to be subtracted from the rows and columns of the rest.
struct Pending<F> {
    v: Vec<F>,
    w: Vec<F>,
    z: Vec<F>,
    /// Conjugated.
    u: Vec<F>,
}

/// Some columns of the rest, and what products with it they give.
struct Part<'a, F> {
    /// Their first one, of those of the rest.
    first: usize,
    columns: &'a mut [F],
    /// For each column, that of the left reflector.
    w: Vec<F>,
    /// For each row, their part of that of the right one.
    z: Vec<F>,
}

impl<F: Field> Bidiagonal<F> {
    pub(super) fn new(mut a: Matrix<F>) -> Self {
        let (m, n) = (a.rows(), a.columns());
        let mut out = Self {
            diagonal: Vec::with_capacity(n),
            off_diagonal: Vec::new(),
            left: Vec::with_capacity(n),
            right: Vec::new(),
        };
        let mut pending: Option<Pending<F>> = None;
        for k in 0..n {
            cancel::poll();
            let (own, rest) = a.elements_mut()[k * m..].split_at_mut(m);
            let own = &mut own[k..];
            if let Some(Pending { v, w, z, u }) = &pending {
                add_multiple(own, v, -w[0]);
                add_multiple(own, z, -u[0]);
            }
            let tau = reflector(own);
            out.diagonal.push(own[0].real());
            out.left.push((own[1..].to_vec(), tau));
            if k + 1 == n {
                break;
            }
            own[0] = F::one();
            let mut parts = cut(rest, m, m - k);
            each_part::<F, _>(&mut parts, &|part| part.update(own, k, m, pending.as_ref(), tau.conj()));
            let (mut w, mut row) = (Vec::with_capacity(n - k - 1), Vec::with_capacity(n - k - 1));
            for Part { columns, w: own, .. } in &parts {
                w.extend_from_slice(own);
                row.extend(columns.chunks_exact(m).zip(own).map(|(column, &w)| (column[k] - w).conj()));
            }
            let right = reflector(&mut row);
            out.off_diagonal.push(row[0].real());
            let tail = row.split_off(1);
            let u: Vec<F> = std::iter::once(F::one()).chain(tail.iter().copied()).collect();
            let z = if right.is_zero() {
                vec![F::default(); m - k - 1]
            } else {
                each_part::<F, _>(&mut parts, &|part| part.multiply(&u, k + 1, m));
                let mut parts = parts.into_iter().map(|part| part.z);
                let mut z = parts.next().unwrap_or_default();
                parts.for_each(|more| z.iter_mut().zip(more).for_each(|(z, more)| *z = *z + more));
                let along = w.iter().zip(&u).fold(F::default(), |sum, (&w, &u)| sum.plus_product(w, u));
                add_multiple(&mut z, &own[1..], -along);
                z.iter_mut().for_each(|z| *z = *z * right);
                z
            };
            let u = u.into_iter().map(F::conj).collect();
            pending = Some(Pending { v: own[1..].to_vec(), w, z, u });
            out.right.push((tail, right));
        }
        out
    }

    /// Q z.
    pub(super) fn left(&self, z: Matrix<F>) -> Matrix<F> {
        product(&self.left, 0, z)
    }

    /// P z.
    pub(super) fn right(&self, z: Matrix<F>) -> Matrix<F> {
        product(&self.right, 1, z)
    }
}

/// Divides columns of `height` rows, of which `rows` are used, into parts for tasks.
fn cut<F: Field>(columns: &mut [F], height: usize, rows: usize) -> Vec<Part<'_, F>> {
    let count = columns.len() / height.max(1);
    let size = count.div_ceil(parts(rows * count)).next_multiple_of(FOUR);
    let part = |(i, columns)| Part {
        first: i * size,
        columns,
        w: Vec::with_capacity(size.min(count)),
        z: Vec::new(),
    };
    columns.chunks_mut(size * height).enumerate().map(part).collect()
}

impl<F: Field> Part<'_, F> {
    /// Subtracts what is pending from the rows from `row` on, and multiplies them by the adjoint of `v`, and
    /// by `factor`.
    fn update(&mut self, v: &[F], row: usize, height: usize, pending: Option<&Pending<F>>, factor: F) {
        let Part { first, columns, w, .. } = self;
        w.clear();
        // Of the columns there are now, the first one has become the reflector's own.
        let at = |j: usize| *first + j + 1;
        let mut groups = columns.chunks_exact_mut(COLUMNS * height);
        let mut j = 0;
        for group in &mut groups {
            let (one, two) = group.split_at_mut(height);
            let products = match pending {
                None => [dot(v, &one[row..]), dot(v, &two[row..])],
                Some(p) => {
                    let factors = [j, j + 1].map(|j| (p.w[at(j)], p.u[at(j)]));
                    subtract([&mut one[row..], &mut two[row..]], (&p.v, &p.z), factors, v)
                }
            };
            w.extend(products);
            j += COLUMNS;
        }
        for column in groups.into_remainder().chunks_exact_mut(height) {
            let column = &mut column[row..];
            if let Some(p) = pending {
                add_multiple(column, &p.v, -p.w[at(j)]);
                add_multiple(column, &p.z, -p.u[at(j)]);
            }
            w.push(dot(v, column));
            j += 1;
        }
        w.iter_mut().for_each(|w| *w = if factor.is_zero() { F::default() } else { *w * factor });
    }

    /// Multiplies the rows from `row` on by their elements of `u`.
    fn multiply(&mut self, u: &[F], row: usize, height: usize) {
        let u = &u[self.first..][..self.columns.len() / height];
        let mut z = vec![F::default(); height - row];
        let groups = self.columns.chunks_exact(FOUR * height);
        let rest = groups.remainder().chunks_exact(height);
        let (fours, more) = u.as_chunks::<FOUR>();
        for (group, u) in groups.zip(fours) {
            let parts: [&[F]; FOUR] =
                std::array::from_fn(|c| &group[c * height + row..(c + 1) * height][..z.len()]);
            for (i, z) in z.iter_mut().enumerate() {
                let mut own = *z;
                for (part, &u) in parts.iter().zip(u) {
                    own = own.plus_product(part[i], u);
                }
                *z = own;
            }
        }
        for (column, &u) in rest.zip(more) {
            add_multiple(&mut z, &column[row..], u);
        }
        self.z = z;
    }
}

/// Subtracts v w and z u from two columns, for their factors w and u, and gives the inner products of `new`
/// with what is left: [`LANES`] sums, then their sum by halves.
#[inline(always)]
fn subtract<F: Field>(
    [one, two]: [&mut [F]; COLUMNS],
    (v, z): (&[F], &[F]),
    factors: [(F, F); COLUMNS],
    new: &[F],
) -> [F; COLUMNS] {
    let n = one.len();
    let (two, v, z, new) = (&mut two[..n], &v[..n], &z[..n], &new[..n]);
    let mut sums = [[F::default(); LANES]; COLUMNS];
    let [(w0, u0), (w1, u1)] = factors;
    let (ones, one_rest) = one.as_chunks_mut::<LANES>();
    let (twos, two_rest) = two.as_chunks_mut::<LANES>();
    let ((vs, v_rest), (zs, z_rest)) = (v.as_chunks::<LANES>(), z.as_chunks::<LANES>());
    let (news, new_rest) = new.as_chunks::<LANES>();
    for ((((one, two), v), z), new) in ones.iter_mut().zip(twos).zip(vs).zip(zs).zip(news) {
        let (mut x, mut y) = (*one, *two);
        for l in 0..LANES {
            x[l] = x[l].minus_product(v[l], w0).minus_product(z[l], u0);
            y[l] = y[l].minus_product(v[l], w1).minus_product(z[l], u1);
            sums[0][l] = sums[0][l].plus_product(new[l].conj(), x[l]);
            sums[1][l] = sums[1][l].plus_product(new[l].conj(), y[l]);
        }
        (*one, *two) = (x, y);
    }
    let rest = one_rest.iter_mut().zip(two_rest).zip(v_rest).zip(z_rest).zip(new_rest);
    for (l, ((((one, two), &v), &z), new)) in rest.enumerate() {
        *one = one.minus_product(v, w0).minus_product(z, u0);
        *two = two.minus_product(v, w1).minus_product(z, u1);
        sums[0][l] = sums[0][l].plus_product(new.conj(), *one);
        sums[1][l] = sums[1][l].plus_product(new.conj(), *two);
    }
    sums.map(total)
}

/// The product of reflectors, the first of which begins in that row, and a matrix.
fn product<F: Field>(reflectors: &[(Vec<F>, F)], row: usize, mut z: Matrix<F>) -> Matrix<F> {
    let taus: Vec<F> = reflectors.iter().map(|r| r.1).collect();
    multiply(row, &taus, |k| &reflectors[k].0, &mut z);
    z
}
