//! The blocked loops of a matrix product, over any [`Algebra`] and any way to read the operands.
//!
//! The result is divided into blocks of at most `ROWS` x `COLUMNS`; for each, blocks of `DEPTH` terms of both
//! operands are packed into panels (which convert the elements and collect the norms that error bounds need)
//! and multiplied tile by tile in registers. A block is computed by one thread from beginning to end.

use std::ops::Range;

use hlo_threads::cancel;
use hlo_threads::parallel;

use super::SEQUENTIAL;
use super::algebra::Algebra;

/// Rows of a block: with `DEPTH` and 8-byte words a packed operand is a quarter of a 1 MB second-level cache.
const ROWS: usize = 128;
/// Columns of a block.
const COLUMNS: usize = 512;
/// Rows that parallel tasks share instead of dividing.
const FEW_ROWS: usize = 32;
/// Words of a term packed at a time. Not a power of two: the panels that successive columns go to would begin
/// in the same cache set. Divisible by every [`Algebra::W`].
const DEPTH: usize = 252;

/// The left operand: `rows` of `k` terms each. The rows of all batches are numbered on.
pub(super) trait Lhs<T>: Sync {
    /// Whether some terms may be absent ([`Lhs::present`]).
    fn holes(&self) -> bool;

    /// Reads the terms from `k` on of a row; an absent term reads as zero.
    fn fill(&self, row: usize, k: usize, out: &mut [T]);

    /// Whether the term exists: an absent one contributes nothing, whatever the right operand holds.
    fn present(&self, row: usize, k: usize) -> bool;
}

/// The right operand: `k` rows of columns, in each batch.
pub(super) trait Rhs<T>: Sync {
    /// Reads the elements from `column` on of row `k`.
    fn fill(&self, batch: usize, k: usize, column: usize, out: &mut [T]);

    /// One element.
    fn get(&self, batch: usize, k: usize, column: usize) -> T;
}

/// Extents of a product: `batch` products of `m` x `k` by `k` x `n`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extents {
    pub(super) batch: usize,
    pub(super) m: usize,
    pub(super) k: usize,
    pub(super) n: usize,
}

/// Buffers of one thread.
struct Scratch<A: Algebra> {
    line: Vec<A::In>,
    a: Vec<A::Word>,
    b: Vec<A::Word>,
    tiles: Vec<A::Tile>,
    row_squares: Vec<f64>,
    column_squares: Vec<f64>,
}

impl<A: Algebra> Scratch<A> {
    fn new() -> Self {
        Scratch {
            line: Vec::new(),
            a: Vec::new(),
            b: Vec::new(),
            tiles: Vec::new(),
            row_squares: Vec::new(),
            column_squares: Vec::new(),
        }
    }
}

/// What becomes of a sum with its row and column: whether it is decided, and if so taken.
pub(super) type Emit<'a, S> = dyn FnMut(usize, usize, &S) -> bool + Send + 'a;

/// A part of the result that one task computes.
pub(super) struct Part<'a, S> {
    pub(super) rows: Range<usize>,
    columns: Range<usize>,
    pub(super) emit: Box<Emit<'a, S>>,
}

/// How sums become result elements.
pub(super) struct Output<R, P> {
    /// Rounds, if the sum is decided.
    pub(super) round: R,
    /// Stores into a row of the result, by column.
    pub(super) store: P,
    /// Elements of a row of the result.
    pub(super) stride: usize,
}

impl<R, P> Output<R, P> {
    /// Divides the result into parts of that many rows, each with all columns.
    pub(super) fn bands<'b, S, V, E: Send>(
        &'b self,
        out: &'b mut [E],
        rows: usize,
        columns: usize,
    ) -> Vec<Part<'b, S>>
    where
        R: Fn(&S) -> Option<V> + Sync,
        P: Fn(&mut [E], usize, V) + Sync,
    {
        let bands = out.chunks_mut(rows * self.stride).enumerate();
        bands
            .map(|(index, out)| {
                let first = index * rows;
                Part {
                    rows: first..first + out.len() / self.stride,
                    columns: 0..columns,
                    emit: Box::new(move |row: usize, column: usize, sum: &S| {
                        let Some(value) = (self.round)(sum) else { return false };
                        (self.store)(&mut out[(row - first) * self.stride..][..self.stride], column, value);
                        true
                    }),
                }
            })
            .collect()
    }
}

/// Multiplies. Row `r` of all batches' rows is `out[r * stride..][..stride]`.
///
/// How operands are read and what becomes of results is behind `dyn`s: they are called for runs of elements
/// and for results, not for multiplications, and one copy of the loops for each algebra is enough code.
pub(super) fn multiply<A: Algebra, V: Send, E: Send>(
    dims: Extents,
    lhs: &dyn Lhs<A::In>,
    rhs: &dyn Rhs<A::In>,
    out: &mut [E],
    output: &Output<impl Fn(&A::Sum) -> Option<V> + Sync, impl Fn(&mut [E], usize, V) + Sync>,
) {
    let rows = dims.batch * dims.m;
    if rows == 0 || dims.n == 0 || out.is_empty() {
        return;
    }
    let work = rows.saturating_mul(dims.n).saturating_mul(dims.k.max(1));
    let threads = rayon::current_num_threads();
    if work < SEQUENTIAL || threads == 1 {
        compute::<A>(dims, lhs, rhs, output.bands(out, rows, dims.n));
        return;
    }
    // A task takes a band of rows. It packs the right operand on its own, so bands keep whole matrices
    // together, and where there are few rows tasks share them and take a part of the columns.
    if rows <= FEW_ROWS && dims.n >= 4 * A::NR {
        let width = dims.n.div_ceil(4 * threads).next_multiple_of(A::NR).min(COLUMNS);
        let mut strips: Vec<Vec<(usize, usize, V)>> = Vec::new();
        strips.resize_with(dims.n.div_ceil(width), Vec::new);
        let parts = strips.iter_mut().enumerate().map(|(index, strip)| Part {
            rows: 0..rows,
            columns: index * width..dims.n.min((index + 1) * width),
            emit: Box::new(|row: usize, column: usize, sum: &A::Sum| {
                let value = (output.round)(sum);
                value.map(|value| strip.push((row, column, value))).is_some()
            }),
        });
        compute::<A>(dims, lhs, rhs, parts.collect());
        for (row, column, value) in strips.into_iter().flatten() {
            (output.store)(&mut out[row * output.stride..][..output.stride], column, value);
        }
        return;
    }
    let share = rows.div_ceil(4 * threads);
    let band =
        if dims.m <= ROWS { share.next_multiple_of(dims.m) } else { share.next_multiple_of(A::MR).min(ROWS) };
    compute::<A>(dims, lhs, rhs, output.bands(out, band, dims.n));
}

/// Computes all parts.
fn compute<A: Algebra>(
    dims: Extents,
    lhs: &dyn Lhs<A::In>,
    rhs: &dyn Rhs<A::In>,
    mut parts: Vec<Part<A::Sum>>,
) {
    let product = Product::<A> { dims, lhs, rhs, norms: A::NORMS || lhs.holes(), holes: lhs.holes() };
    parallel::pieces(&mut parts, 1, 1, &|_, parts| {
        let mut scratch = Scratch::new();
        for part in parts {
            product.block_by_block(&mut scratch, part.rows.clone(), part.columns.clone(), &mut *part.emit);
        }
    });
}

struct Product<'a, A: Algebra> {
    dims: Extents,
    lhs: &'a dyn Lhs<A::In>,
    rhs: &'a dyn Rhs<A::In>,
    /// Norms of rows and columns are needed.
    norms: bool,
    /// Terms of the left operand may be absent.
    holes: bool,
}

/// A block of the result: `m` rows from `row` on, all in `batch`, and `n` columns from `column` on.
#[derive(Clone, Copy)]
struct Block {
    batch: usize,
    row: usize,
    column: usize,
    m: usize,
    n: usize,
}

impl<A: Algebra> Product<'_, A> {
    /// Computes a part of the result.
    fn block_by_block(
        &self,
        scratch: &mut Scratch<A>,
        rows: Range<usize>,
        columns: Range<usize>,
        emit: &mut Emit<A::Sum>,
    ) {
        for column in columns.clone().step_by(COLUMNS) {
            let n = COLUMNS.min(columns.end - column);
            let mut row = rows.start;
            while row < rows.end {
                let batch = row / self.dims.m;
                let m = ROWS.min(rows.end - row).min((batch + 1) * self.dims.m - row);
                self.block(scratch, Block { batch, row, column, m, n }, emit);
                row += m;
            }
        }
    }

    fn block(&self, scratch: &mut Scratch<A>, block: Block, emit: &mut Emit<A::Sum>) {
        let (tile_rows, tile_columns) = (block.m.div_ceil(A::MR), block.n.div_ceil(A::NR));
        scratch.tiles.clear();
        scratch.tiles.resize(tile_rows * tile_columns, A::zero());
        scratch.row_squares.clear();
        scratch.row_squares.resize(block.m, 0.0);
        scratch.column_squares.clear();
        scratch.column_squares.resize(block.n, 0.0);
        for k in (0..self.dims.k).step_by(DEPTH / A::W) {
            cancel::poll();
            let depth = (DEPTH / A::W).min(self.dims.k - k);
            self.pack_lhs(scratch, block, k, depth);
            self.pack_rhs(scratch, block, k, depth);
            let (a_panel, b_panel) = (depth * A::MR * A::W, depth * A::NR * A::W);
            for (j, b) in scratch.b.chunks_exact(b_panel).enumerate() {
                for (i, a) in scratch.a.chunks_exact(a_panel).enumerate() {
                    A::step(a, b, &mut scratch.tiles[j * tile_rows + i]);
                }
            }
        }
        let mut grid = Grid::default();
        for j in 0..block.n {
            for i in 0..block.m {
                let tile = &scratch.tiles[j / A::NR * tile_rows + i / A::MR];
                let at = (i % A::MR, j % A::NR);
                let squares = (scratch.row_squares[i], scratch.column_squares[j]);
                let (row, column) = (block.row + i, block.column + j);
                // A hole went in as a zero, which only a number can be multiplied with and leave no trace.
                let whole = !self.holes || squares.1.is_finite();
                let decided = whole
                    && (emit(row, column, &A::sum(tile, at.0, at.1, self.dims.k, squares))
                        || A::sum_on_grid(tile, at, self.quantum(&mut grid, block, i, j), squares)
                            .is_some_and(|sum| emit(row, column, &sum)))
                    || {
                        let terms = self.terms(block, i, j);
                        A::closely(&terms).is_some_and(|sum| emit(row, column, &sum))
                            || emit(row, column, &A::slowly(terms.into_iter()))
                    };
                debug_assert!(decided, "the terms themselves decide");
            }
        }
    }

    /// Packs `depth` terms from `k` on of the block's rows into panels of `MR` rows.
    fn pack_lhs(&self, scratch: &mut Scratch<A>, block: Block, k: usize, depth: usize) {
        let panel = depth * A::MR * A::W;
        scratch.a.clear();
        scratch.a.resize(block.m.div_ceil(A::MR) * panel, A::Word::default());
        scratch.line.resize(depth.max(COLUMNS), A::In::default());
        let line = &mut scratch.line[..depth];
        for i in 0..block.m {
            self.lhs.fill(block.row + i, k, line);
            let panel = &mut scratch.a[i / A::MR * panel..][..panel];
            A::pack_row(line, i % A::MR, panel);
            if self.norms {
                scratch.row_squares[i] += sum_of_squares::<A>(line);
            }
        }
    }

    /// Packs `depth` terms from `k` on of the block's columns into panels of `NR` columns.
    fn pack_rhs(&self, scratch: &mut Scratch<A>, block: Block, k: usize, depth: usize) {
        let width = A::NR * A::W;
        let panel = depth * width;
        scratch.b.clear();
        scratch.b.resize(block.n.div_ceil(A::NR) * panel, A::Word::default());
        scratch.line.resize(depth.max(COLUMNS), A::In::default());
        let line = &mut scratch.line[..block.n];
        for term in 0..depth {
            self.rhs.fill(block.batch, k + term, block.column, line);
            A::pack_columns(line, &mut scratch.b[term * width..], panel);
            if self.norms {
                for (square, &x) in scratch.column_squares.iter_mut().zip(line.iter()) {
                    *square += A::square(x);
                }
            }
        }
    }

    /// The grid (last bit) of the products of a row and a column, computed once for each row and column.
    fn quantum(&self, grid: &mut Grid, block: Block, i: usize, j: usize) -> Option<i32> {
        if grid.rows.is_empty() {
            grid.rows.resize(block.m, None);
            grid.columns.resize(block.n, None);
        }
        let k = self.dims.k;
        let row = *grid.rows[i].get_or_insert_with(|| {
            let mut line = vec![A::In::default(); k];
            self.lhs.fill(block.row + i, 0, &mut line);
            line.into_iter().filter_map(A::lowest_bit).min()
        });
        let column = *grid.columns[j].get_or_insert_with(|| {
            (0..k).filter_map(|k| A::lowest_bit(self.rhs.get(block.batch, k, block.column + j))).min()
        });
        Some(row? + column?)
    }

    /// The terms of one sum.
    #[cold]
    fn terms(&self, block: Block, i: usize, j: usize) -> Vec<(A::In, A::In)> {
        let (row, column) = (block.row + i, block.column + j);
        let mut line = vec![A::In::default(); self.dims.k];
        self.lhs.fill(row, 0, &mut line);
        let line = line.into_iter().enumerate().filter(|&(k, _)| !self.holes || self.lhs.present(row, k));
        line.map(|(k, a)| (a, self.rhs.get(block.batch, k, column))).collect()
    }
}

/// Rounded, in any order: only bounds are made of it.
fn sum_of_squares<A: Algebra>(line: &[A::In]) -> f64 {
    const LANES: usize = 16;
    let (chunks, rest) = line.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for chunk in chunks {
        for lane in 0..LANES {
            sums[lane] += A::square(chunk[lane]);
        }
    }
    sums.iter().sum::<f64>() + rest.iter().map(|&x| A::square(x)).sum::<f64>()
}

/// Lowest bits of a block's rows and columns, as far as they were asked for.
#[derive(Default)]
struct Grid {
    rows: Vec<Option<Option<i32>>>,
    columns: Vec<Option<Option<i32>>>,
}
