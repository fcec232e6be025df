//! Plane (Givens) rotations of columns: rotations are batched, and applied to a few rows at a time, which
//! stay in registers and the nearest cache.
//!
//! **Invariant:** to each row the rotations are applied one by one, in the order in which they came: neither
//! how many are gathered nor the threads change a bit.

use hlo_threads::parallel;

use super::Matrix;
use crate::wide::Real;

/// Rows that are rotated at a time.
const ROWS: usize = 16;
/// Rotations that are gathered.
const MANY: usize = 1 << 12;

/// A matrix, by groups of rows: in each, one column after another.
#[derive(Clone, Debug)]
pub(crate) struct Rotations<R> {
    rows: usize,
    columns: usize,
    elements: Vec<[R; ROWS]>,
    /// What is gathered: (c, s), sweep after sweep.
    rotations: Vec<(R, R)>,
    sweeps: Vec<Sweep>,
}

/// Rotations of columns `first` and the one after it, then of the next pair up or down, and so on.
#[derive(Clone, Debug)]
struct Sweep {
    first: usize,
    up: bool,
    count: usize,
}

impl<R: Real> Rotations<R> {
    /// The first rows of the matrix with 1 on the diagonal.
    pub(crate) fn identity(rows: usize, columns: usize) -> Self {
        let mut elements = vec![[R::default(); ROWS]; rows.div_ceil(ROWS) * columns];
        for i in 0..rows.min(columns) {
            elements[i / ROWS * columns + i][i % ROWS] = R::one();
        }
        Self { rows, columns, elements, rotations: Vec::new(), sweeps: Vec::new() }
    }

    /// Columns x, y = j, j + 1 become c x + s y, c y - s x.
    #[inline]
    pub(crate) fn rotate(&mut self, j: usize, c: R, s: R) {
        if self.rows == 0 {
            return;
        }
        if let Some(Sweep { first, up, count }) = self.sweeps.last_mut() {
            let goes_up = j == *first + *count;
            if (*count == 1 || *up == goes_up) && (goes_up || j + *count == *first) {
                (*up, *count) = (goes_up, *count + 1);
                self.rotations.push((c, s));
                return;
            }
        }
        self.begin(j, c, s);
    }

    /// A rotation that does not go on where the one before it was.
    #[cold]
    fn begin(&mut self, j: usize, c: R, s: R) {
        if self.rotations.len() >= MANY {
            self.apply();
        }
        self.sweeps.push(Sweep { first: j, up: true, count: 1 });
        self.rotations.push((c, s));
    }

    fn apply(&mut self) {
        let Self { columns, elements, rotations, sweeps, .. } = self;
        if sweeps.is_empty() {
            return;
        }
        parallel::pieces(elements, *columns, 1, &|_, columns| {
            let mut rest = &rotations[..];
            for sweep in &*sweeps {
                let (rotations, others) = rest.split_at(sweep.count);
                sweep.apply(rotations, columns);
                rest = others;
            }
        });
        sweeps.clear();
        rotations.clear();
    }

    /// Changes the sign of a column.
    pub(crate) fn negate(&mut self, j: usize) {
        self.apply();
        for group in self.elements.chunks_exact_mut(self.columns) {
            group[j] = group[j].map(|x| -x);
        }
    }

    /// Exchanges two columns.
    pub(crate) fn swap(&mut self, i: usize, j: usize) {
        if i == j {
            return;
        }
        self.apply();
        for group in self.elements.chunks_exact_mut(self.columns) {
            group.swap(i, j);
        }
    }

    /// The matrix.
    pub(crate) fn finish(mut self) -> Matrix<R> {
        self.apply();
        let mut out = Matrix::zeros(self.rows, self.columns);
        for j in 0..self.columns {
            let groups = self.elements.chunks_exact(self.columns);
            for (rows, group) in out.column_mut(j).chunks_mut(ROWS).zip(groups) {
                rows.copy_from_slice(&group[j][..rows.len()]);
            }
        }
        out
    }
}

impl Sweep {
    fn apply<R: Real>(&self, rotations: &[(R, R)], columns: &mut [[R; ROWS]]) {
        let &Self { first, up, .. } = self;
        let rotated = |x: R, y: R, c: R, s: R| ((x * c).plus_product(y, s), (y * c).minus_product(x, s));
        if up {
            let mut x = columns[first];
            let (current, next) = (first..first + rotations.len(), first + 1..=first + rotations.len());
            for ((i, j), &(c, s)) in current.zip(next).zip(rotations) {
                let y = columns[j];
                let mut done = [R::default(); ROWS];
                for r in 0..ROWS {
                    (done[r], x[r]) = rotated(x[r], y[r], c, s);
                }
                columns[i] = done;
            }
            columns[first + rotations.len()] = x;
        } else {
            let mut y = columns[first + 1];
            for (step, &(c, s)) in rotations.iter().enumerate() {
                let x = columns[first - step];
                let mut done = [R::default(); ROWS];
                for r in 0..ROWS {
                    (y[r], done[r]) = rotated(x[r], y[r], c, s);
                }
                columns[first - step + 1] = done;
            }
            columns[first + 1 - rotations.len()] = y;
        }
    }
}
