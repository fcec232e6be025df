//! Gaussian elimination with partial pivoting: `getrf`.
//!
//! By blocks of columns, and these by halves: whatever the blocks, an element of U or L is what the
//! textbook's loops make of it, its products subtracted by ascending step.

use std::sync::{Mutex, PoisonError};

use hlo_threads::parallel;

use super::Matrix;
use super::product::{COLUMNS, Left, UnitLower, rows_into, rows_of};
use crate::wide::{Field, Real, abs};

/// P A = L U.
#[derive(Clone, Debug)]
pub struct Lu<F> {
    /// U and, below the diagonal, L without its diagonal of 1s.
    pub factors: Matrix<F>,
    /// The row that step k exchanged with row k.
    pub pivots: Vec<usize>,
    /// The first step whose pivot is exactly 0.
    pub singular: Option<usize>,
}

/// Elements of a matrix that blocks are no use to.
const SMALL: usize = 1 << 12;
/// Columns of a block.
const BLOCK: usize = 64;
/// Columns that are eliminated one by one.
const NARROW: usize = 8;
/// Columns of a task.
const TASK: usize = 8 * COLUMNS;

/// Factors the matrix that `a` makes. The pivot is the first of the largest elements by the sum of the
/// magnitudes of the parts; elements that differ by less than the rounding errors of the wide field count as
/// equal. If infinities come up, the matrix is made and factored again in `f64`, where they survive.
pub(crate) fn factor<F: Field>(a: impl Fn() -> Matrix<F>) -> Lu<F> {
    let lu = by_blocks(a());
    if lu.factors.is_finite() {
        return lu;
    }
    let mut factors = a().map(F::plain);
    let height = factors.rows();
    let mut steps = Steps::default();
    // A product with an element that is 0 is left out: with an infinity it would be NaN.
    steps.narrow(factors.elements_mut(), height, 0, true);
    Lu { factors: factors.map(F::from_plain), pivots: steps.pivots, singular: steps.singular }
}

fn by_blocks<F: Field>(mut a: Matrix<F>) -> Lu<F> {
    let (m, n) = (a.rows(), a.columns());
    let least = m.min(n);
    if m * n <= SMALL {
        let mut steps = Steps::default();
        steps.narrow(a.elements_mut(), m, 0, false);
        return Lu { factors: a, pivots: steps.pivots, singular: steps.singular };
    }
    let mut steps = Steps::default();
    steps.block(&mut a.elements_mut()[..least.min(BLOCK) * m], m, 0);
    for first in (0..least).step_by(BLOCK) {
        let width = (least - first).min(BLOCK);
        let (block, after) = a.elements_mut()[first * m..].split_at_mut(width * m);
        let eliminated = Eliminated::new(block, m, first, &steps.pivots[first..]);
        // The next block first, and its steps right then: they are done while others do these steps to what
        // is after it.
        let (end, next) = (first + width, (least - first - width).min(BLOCK));
        let (next, rest) = after.split_at_mut(next * m);
        let mut found = steps.clone();
        {
            let found = Mutex::new(&mut found);
            let parts = std::iter::once(next).chain(rest.chunks_mut(TASK * m));
            let parts: Vec<Mutex<&mut [F]>> = parts.map(Mutex::new).collect();
            parallel::tasks(parts.len(), &|i| {
                let mut columns = parts[i].lock().unwrap_or_else(PoisonError::into_inner);
                eliminated.apply(&mut columns);
                if i == 0 && !columns.is_empty() {
                    found.lock().unwrap_or_else(PoisonError::into_inner).block(&mut columns, m, end);
                }
            });
        }
        steps = found;
    }
    let pivots = &steps.pivots;
    parallel::pieces(a.elements_mut(), BLOCK * m, 1, &|i, block| {
        let after = ((i + 1) * BLOCK).min(pivots.len());
        exchange(block, m, after, &pivots[after..]);
    });
    Lu { factors: a, pivots: steps.pivots, singular: steps.singular }
}

/// Exchanges the rows of columns as steps from `first` on did.
fn exchange<F: Field>(columns: &mut [F], height: usize, first: usize, pivots: &[usize]) {
    for column in columns.chunks_exact_mut(height.max(1)) {
        for (k, &pivot) in pivots.iter().enumerate() {
            column.swap(first + k, pivot);
        }
    }
}

/// What the steps found.
#[derive(Clone, Default)]
struct Steps {
    pivots: Vec<usize>,
    singular: Option<usize>,
}

impl Steps {
    /// Eliminates in columns of `height` rows, the first on the diagonal at `first`.
    fn block<F: Field>(&mut self, columns: &mut [F], height: usize, first: usize) {
        let width = columns.len() / height;
        if width <= NARROW {
            return self.narrow(columns, height, first, false);
        }
        let half = (width / 2).next_multiple_of(NARROW);
        let (left, right) = columns.split_at_mut(half * height);
        self.block(left, height, first);
        Eliminated::new(left, height, first, &self.pivots[first..]).apply(right);
        self.block(right, height, first + half);
        exchange(left, height, first + half, &self.pivots[first + half..]);
    }

    fn narrow<F: Field>(&mut self, columns: &mut [F], height: usize, first: usize, leave_zeros: bool) {
        let width = columns.len().checked_div(height).unwrap_or(0);
        for step in 0..width.min(height - first) {
            let k = first + step;
            let pivot = k + first_of_largest_by(&columns[step * height..][k..height], F::size);
            self.pivots.push(pivot);
            for column in columns.chunks_exact_mut(height) {
                column.swap(k, pivot);
            }
            let (before, after) = columns.split_at_mut((step + 1) * height);
            let eliminated = &mut before[step * height..];
            let top = eliminated[k];
            let below = &mut eliminated[k + 1..];
            if top.is_zero() {
                self.singular = self.singular.or(Some(k));
            } else {
                for x in &mut *below {
                    *x = *x / top;
                }
            }
            for column in after.chunks_exact_mut(height) {
                let factor = column[k];
                if leave_zeros && factor.is_zero() {
                    continue;
                }
                for (&l, x) in below.iter().zip(&mut column[k + 1..]) {
                    *x = x.minus_product(l, factor);
                }
            }
        }
    }
}

/// Columns in which elimination is done, as what it is to other columns.
struct Eliminated<'a, F> {
    height: usize,
    first: usize,
    pivots: &'a [usize],
    triangle: UnitLower<F>,
    below: Left<F>,
}

impl<'a, F: Field> Eliminated<'a, F> {
    fn new(columns: &[F], height: usize, first: usize, pivots: &'a [usize]) -> Self {
        let width = columns.len() / height;
        let end = first + width;
        let column = |k: usize| &columns[k * height..][..height];
        Self {
            height,
            first,
            pivots,
            triangle: UnitLower::new(width, |i, k| column(k)[first + i]),
            below: Left::new(height - end, width, |row, k, out| {
                out.copy_from_slice(&column(k)[end + row..][..out.len()]);
            }),
        }
    }

    /// Does the steps to other columns.
    fn apply(&self, columns: &mut [F]) {
        let (height, first, width) = (self.height, self.first, self.pivots.len());
        let mut rows = vec![[F::default(); COLUMNS]; width];
        for group in columns.chunks_mut(COLUMNS * height) {
            exchange(group, height, first, self.pivots);
            rows_of(group, height, first, &mut rows);
            self.triangle.solve(&mut rows);
            rows_into(&rows, group, height, first);
            self.below.subtract(&rows, group, height, first + width);
        }
    }
}

/// Where the first of the largest numbers is, up to rounding; a NaN counts as large only at index 0. 0 of an
/// empty list.
pub(crate) fn first_of_largest<R: Real>(sizes: &[R]) -> usize {
    first_of_largest_by(sizes, |x| x)
}

fn first_of_largest_by<F: Field>(x: &[F], size: impl Fn(F) -> F::Real) -> usize {
    const LANES: usize = 8;
    let Some(&first) = x.first() else { return 0 };
    let first = size(first);
    let mut lanes = [first; LANES];
    let (chunks, rest) = x.as_chunks::<LANES>();
    for chunk in chunks {
        for (lane, &x) in lanes.iter_mut().zip(chunk) {
            let size = size(x);
            *lane = if size > *lane { size } else { *lane };
        }
    }
    let sizes = lanes.into_iter().chain(rest.iter().map(|&x| size(x)));
    let largest = sizes.fold(first, |largest, x| if x > largest { x } else { largest });
    let slack = abs(largest) * F::Real::from_f64(F::Real::ULP * NEAR);
    let least = largest - slack;
    x.iter().position(|&x| size(x) >= least).unwrap_or(0)
}

/// How many units of rounding of the wide field are no difference.
const NEAR: f64 = 4096.0;
