//! Products of matrices, subtracted from a matrix: where factorizations by blocks spend their time.
//!
//! **Invariant:** each element becomes `c - a0 b0 - a1 b1 - ...` by ascending index, each step one
//! [`Field::minus_product`], as if the loops were the textbook's: how the matrices are divided into tiles,
//! columns into groups and groups into tasks changes no bit.

use crate::wide::Field;

/// Rows of a tile.
pub(crate) const ROWS: usize = 12;
/// Columns of a tile.
pub(crate) const COLUMNS: usize = 4;
/// Unknowns that a triangular system is solved for at a time.
const UNKNOWNS: usize = 8;

/// A left factor, its rows partitioned into tiles: for each tile all its columns, one after the other.
#[derive(Debug)]
pub(crate) struct Left<F> {
    rows: usize,
    depth: usize,
    tiles: Vec<[F; ROWS]>,
}

impl<F: Field> Left<F> {
    /// From a function of row and column, called with the first row of a tile, a column, and where its
    /// elements go: at most [`ROWS`].
    pub(crate) fn new(rows: usize, depth: usize, fill: impl Fn(usize, usize, &mut [F])) -> Self {
        let mut tiles = vec![[F::default(); ROWS]; rows.div_ceil(ROWS) * depth];
        for (tile, columns) in tiles.chunks_exact_mut(depth.max(1)).enumerate() {
            let first = tile * ROWS;
            let count = (rows - first).min(ROWS);
            for (k, column) in columns.iter_mut().enumerate() {
                fill(first, k, &mut column[..count]);
            }
        }
        Self { rows, depth, tiles }
    }

    /// Conjugated, from its rows: as many elements each as there are columns.
    pub(crate) fn of_columns<'a>(rows: usize, depth: usize, row: impl Fn(usize) -> &'a [F]) -> Self
    where
        F: 'a,
    {
        let mut tiles = vec![[F::default(); ROWS]; rows.div_ceil(ROWS) * depth];
        for (tile, columns) in tiles.chunks_exact_mut(depth.max(1)).enumerate() {
            let first = tile * ROWS;
            for r in 0..(rows - first).min(ROWS) {
                for (column, x) in columns.iter_mut().zip(row(first + r)) {
                    column[r] = x.conj();
                }
            }
        }
        Self { rows, depth, tiles }
    }

    /// Subtracts the product with `right` from rows `first..` of up to [`COLUMNS`] columns of `height` rows.
    /// `right` has the elements of one row contiguous.
    pub(crate) fn subtract(&self, right: &[[F; COLUMNS]], columns: &mut [F], height: usize, first: usize) {
        debug_assert_eq!(right.len(), self.depth);
        if self.depth == 0 || height == 0 {
            return;
        }
        for (tile, left) in self.tiles.chunks_exact(self.depth).enumerate() {
            let row = first + tile * ROWS;
            let count = (first + self.rows - row).min(ROWS);
            let mut sums = [[F::default(); ROWS]; COLUMNS];
            for (sums, column) in sums.iter_mut().zip(columns.chunks_exact(height)) {
                match column[row..].first_chunk::<ROWS>() {
                    Some(x) if count == ROWS => *sums = *x,
                    _ => sums[..count].copy_from_slice(&column[row..row + count]),
                }
            }
            F::subtract_products(&mut sums, left, right);
            for (sums, column) in sums.iter().zip(columns.chunks_exact_mut(height)) {
                match column[row..].first_chunk_mut::<ROWS>() {
                    Some(x) if count == ROWS => *x = *sums,
                    _ => column[row..row + count].copy_from_slice(&sums[..count]),
                }
            }
        }
    }
}

/// Rows `first..first + depth` of up to [`COLUMNS`] columns of `height` rows, as a right factor.
pub(crate) fn rows_of<F: Field>(columns: &[F], height: usize, first: usize, out: &mut [[F; COLUMNS]]) {
    for (c, column) in columns.chunks_exact(height.max(1)).enumerate() {
        for (out, &x) in out.iter_mut().zip(&column[first..]) {
            out[c] = x;
        }
    }
}

/// The reverse of [`rows_of`].
pub(crate) fn rows_into<F: Field>(rows: &[[F; COLUMNS]], columns: &mut [F], height: usize, first: usize) {
    for (c, column) in columns.chunks_exact_mut(height.max(1)).enumerate() {
        for (row, x) in rows.iter().zip(&mut column[first..]) {
            *x = row[c];
        }
    }
}

/// A lower triangular matrix with a diagonal of 1s, its rows partitioned into tiles.
#[derive(Debug)]
pub(crate) struct UnitLower<F> {
    order: usize,
    /// For each tile of [`UNKNOWNS`] rows the columns up to its end.
    tiles: Vec<[F; UNKNOWNS]>,
}

impl<F: Field> UnitLower<F> {
    /// From a function of row and column.
    pub(crate) fn new(order: usize, element: impl Fn(usize, usize) -> F) -> Self {
        let mut tiles = Vec::new();
        for first in (0..order).step_by(UNKNOWNS) {
            for k in 0..(first + UNKNOWNS).min(order) {
                tiles.push(std::array::from_fn(|r| {
                    let row = first + r;
                    if row < order && k < row { element(row, k) } else { F::default() }
                }));
            }
        }
        Self { order, tiles }
    }

    /// Solves for up to [`COLUMNS`] right-hand sides, by substitution; rows are contiguous.
    pub(crate) fn solve(&self, x: &mut [[F; COLUMNS]]) {
        let mut tiles = &self.tiles[..];
        for first in (0..self.order).step_by(UNKNOWNS) {
            let count = (self.order - first).min(UNKNOWNS);
            let (left, rest) = tiles.split_at(first + count);
            tiles = rest;
            let (solved, here) = x.split_at_mut(first);
            let mut sums = [[F::default(); COLUMNS]; UNKNOWNS];
            sums[..count].copy_from_slice(&here[..count]);
            F::subtract_products(&mut sums, solved, &left[..first]);
            for k in 0..count {
                let (done, open) = sums.split_at_mut(k + 1);
                for (r, open) in open[..count - k - 1].iter_mut().enumerate() {
                    let factor = left[first + k][k + 1 + r];
                    for (x, &known) in open.iter_mut().zip(&done[k]) {
                        *x = x.minus_product(known, factor);
                    }
                }
            }
            here[..count].copy_from_slice(&sums[..count]);
        }
    }
}
