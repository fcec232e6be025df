//! Products of a matrix and a vector, of `f32`: the matrix is read once, in the order in which it lies in memory, by all threads.
//!
//! | terms of the matrix | how |
//! |---|---|
//! | neighbours | each row is multiplied with the vector; rows are divided among chunks (terms, if there are few rows) |
//! | rows are neighbours | eight terms at a time are added to lines of sums; terms are divided among chunks, whose lines are added up at the end |
//!
//! **Invariant:** chunks depend on the shape alone, and their sums are added in order.

use super::tile::prefetch;
use crate::runtime::pool::Pool;

/// Elements of a matrix that a chunk reads.
const CHUNK: usize = 1 << 16;
/// The most parts that terms are cut into.
const PARTS: usize = 64;
/// Columns whose sums are in the first-level cache.
const LINE: usize = 2048;
/// Elements that are asked for ahead of time.
const AHEAD: usize = 512;
/// Sums of one row: independent lanes.
const LANES: usize = 32;

/// What to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Vector {
    /// Rows of the matrix: elements of the result.
    rows: usize,
    terms: usize,
    /// Distance of rows, or of terms if rows are neighbours.
    stride: usize,
    /// Whether terms are neighbours.
    by_rows: bool,
    /// Whether the matrix is the left operand.
    pub(super) matrix_left: bool,
    /// Parts of the terms.
    parts: usize,
}

/// The arrays, for all threads.
#[derive(Clone, Copy)]
struct Arrays {
    matrix: *const f32,
    vector: *const f32,
    sums: *mut f32,
}

// SAFETY: threads write disjoint parts of the sums.
unsafe impl Sync for Arrays {}

impl Arrays {
    fn get(&self) -> (*const f32, *const f32, *mut f32) {
        (self.matrix, self.vector, self.sums)
    }
}

impl Vector {
    /// For a matrix of these extents and strides; `None` if it is small or lies in another way.
    pub(super) fn new(
        rows: usize,
        terms: usize,
        row: isize,
        term: isize,
        matrix_left: bool,
    ) -> Option<Vector> {
        if rows.saturating_mul(terms) < 1 << 13 || terms < 32 {
            return None;
        }
        let by_rows = term == 1 && (row > 0 || rows == 1);
        if !(by_rows || row == 1 && term > 0 && rows >= 32) {
            return None;
        }
        let parts =
            if by_rows && rows >= 32 { 1 } else { (rows * terms / CHUNK).min(terms / 32).clamp(1, PARTS) };
        let stride = if by_rows { row } else { term }.unsigned_abs();
        Some(Vector { rows, terms, stride, by_rows, matrix_left, parts })
    }

    /// Bytes of scratch memory.
    pub(super) fn scratch(&self) -> usize {
        if self.parts == 1 { 0 } else { self.parts * self.rows * size_of::<f32>() }
    }

    /// Computes it.
    ///
    /// # Safety
    /// The arrays are those of the product; the scratch memory has [`Vector::scratch`] bytes.
    pub(super) unsafe fn run(
        &self,
        matrix: *const f32,
        vector: *const f32,
        out: *mut f32,
        scratch: *mut u8,
        pool: &Pool,
    ) {
        let sums = if self.parts == 1 { out } else { scratch.cast() };
        let arrays = Arrays { matrix, vector, sums };
        let (rows, terms, parts) = (self.rows, self.terms, self.parts);
        let each_terms = terms.div_ceil(parts);
        // Chunks of terms and of rows (in lines, if rows are neighbours).
        let each_rows = if self.by_rows { (CHUNK / each_terms).next_multiple_of(4).max(4) } else { LINE };
        let row_chunks = rows.div_ceil(each_rows);
        pool.run(parts * row_chunks, &|chunk| {
            let (part, row) = (chunk / row_chunks, chunk % row_chunks * each_rows);
            let (first, end) = (part * each_terms, terms.min((part + 1) * each_terms));
            let count = each_rows.min(rows - row);
            let (matrix, vector, sums) = arrays.get();
            // SAFETY: the caller's; each chunk has its own sums. A part may have no terms.
            unsafe {
                let sums = sums.add(part * rows + row);
                if first >= end {
                    sums.write_bytes(0, count);
                } else if self.by_rows {
                    let from = matrix.add(row * self.stride + first);
                    self.rows(from, vector.add(first), end - first, count, sums);
                } else {
                    self.lines(
                        matrix.add(first * self.stride + row),
                        vector.add(first),
                        end - first,
                        count,
                        sums,
                    );
                }
            }
        });
        if parts > 1 {
            let out = Arrays { sums: out, ..arrays };
            pool.run(rows.div_ceil(LINE), &|chunk| {
                let (_, _, sums) = arrays.get();
                let (_, _, out) = out.get();
                for row in chunk * LINE..rows.min((chunk + 1) * LINE) {
                    // SAFETY: the parts are done; rows are disjoint.
                    unsafe { *out.add(row) = (0..parts).map(|part| *sums.add(part * rows + row)).sum() };
                }
            });
        }
    }

    /// Rows whose terms are neighbours.
    unsafe fn rows(&self, matrix: *const f32, vector: *const f32, terms: usize, rows: usize, sums: *mut f32) {
        // SAFETY: the caller's.
        unsafe {
            let x = std::slice::from_raw_parts(vector, terms);
            for row in 0..rows {
                *sums.add(row) = product(std::slice::from_raw_parts(matrix.add(row * self.stride), terms), x);
            }
        }
    }

    /// Terms whose rows are neighbours.
    unsafe fn lines(
        &self,
        matrix: *const f32,
        vector: *const f32,
        terms: usize,
        columns: usize,
        sums: *mut f32,
    ) {
        const TERMS: usize = 8;
        // SAFETY: the caller's.
        unsafe {
            let sums = std::slice::from_raw_parts_mut(sums, columns);
            sums.fill(0.0);
            let line = |term: usize| std::slice::from_raw_parts(matrix.add(term * self.stride), columns);
            let mut term = 0;
            while term + TERMS <= terms {
                let x: [f32; TERMS] = std::array::from_fn(|t| *vector.add(term + t));
                let lines: [&[f32]; TERMS] = std::array::from_fn(|t| line(term + t));
                for i in 0..columns {
                    let mut sum = sums[i];
                    for t in 0..TERMS {
                        sum = x[t].mul_add(*lines[t].get_unchecked(i), sum);
                    }
                    sums[i] = sum;
                }
                term += TERMS;
            }
            while term < terms {
                let x = *vector.add(term);
                for (sum, &y) in sums.iter_mut().zip(line(term)) {
                    *sum = x.mul_add(y, *sum);
                }
                term += 1;
            }
        }
    }
}

/// A row times a vector.
#[inline(always)]
fn product(row: &[f32], x: &[f32]) -> f32 {
    let mut sums = [0f32; LANES];
    let ((rows, row_rest), (blocks, rest)) = (row.as_chunks::<LANES>(), x.as_chunks::<LANES>());
    for (a, b) in rows.iter().zip(blocks) {
        // Beyond what the processor fetches by itself, which ends with the page.
        for line in 0..LANES / 16 {
            prefetch(a.as_ptr().wrapping_add(AHEAD + 16 * line).cast());
        }
        for l in 0..LANES {
            sums[l] = a[l].mul_add(b[l], sums[l]);
        }
    }
    let mut half = LANES / 2;
    while half > 0 {
        for l in 0..half {
            sums[l] += sums[l + half];
        }
        half /= 2;
    }
    row_rest.iter().zip(rest).fold(sums[0], |sum, (&a, &b)| a.mul_add(b, sum))
}
