//! Products of a matrix and a few vectors: a few rows or columns on one side, on the other a matrix whose terms are neighbours, such as the weights of a layer.
//! The matrix is read once, some rows at a time: a few of these are multiplied with up to eight vectors, terms a lane each, a block of terms after the other,
//! of which the nearest cache holds the vectors' part and the sums; lanes are added up at the end of rows. The vectors are packed first.
//!
//! **Invariant:** each sum is that of one row and one vector, whatever else is computed beside it.

use std::arch::x86_64::{__m512, _mm512_reduce_add_ps, _mm512_setzero_ps};

use hlo::ElementType;
use hlo::half::{bf16, f16};

use super::operand::{Field, Operand};
use super::product::{Extents, Narrow};
use super::source::Source;
use super::step::{Step, WideF32};
use super::vector::{Arrays, Widen};
use crate::isa::Features;
use crate::runtime::native::memory::{Shared, prefetch};
use crate::runtime::pool::Pool;
use crate::sizes;

/// Vectors, at most: beyond, tiles have full registers of them.
const MOST: usize = 16;
/// The same where columns are neighbours, which tiles read as they lie.
const MOST_COLUMNS: usize = 8;
/// The fewest terms for which adding up lanes is nothing beside the products, and the fewest rows for which packing vectors is.
const LEAST_TERMS: usize = 256;
const LEAST_ROWS: usize = 32;
/// Bytes of the vectors, at most: they are read from the second-level cache again and again.
const NEAR: usize = 512 << 10;
/// Elements of a matrix that a chunk reads, and its rows.
const CHUNK: usize = 1 << 16;
const ROWS: usize = 96;
/// Rows that all groups of vectors go over before the next ones come from memory.
const TOGETHER: usize = 24;
/// Vectors that are multiplied at a time.
const GROUP: usize = 8;
/// Packed numbers of a block of terms: half of the nearest cache.
const BLOCK: usize = 4096;

/// Distance of packed vectors of so many terms: their blocks share the places of the nearest cache evenly.
fn apart(terms: usize) -> usize {
    const PAGE: usize = 4096 / size_of::<f32>();
    terms.next_multiple_of(PAGE) + PAGE / GROUP
}

/// What to do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Few {
    batch: usize,
    /// Rows of the matrix.
    rows: usize,
    vectors: usize,
    terms: usize,
    /// Distance of rows.
    stride: usize,
    /// Whether the matrix is the left operand.
    pub(super) matrix_left: bool,
    /// Size of an element of the matrix.
    bytes: usize,
    kernel: Kernel,
}

/// Some rows, and where their sums go: those of vectors so far apart. Distances are in elements.
#[derive(Clone, Copy)]
struct Block {
    matrix: *const u8,
    stride: usize,
    rows: usize,
    vectors: *const f32,
    count: usize,
    terms: usize,
    sums: *mut f32,
    row_step: usize,
    vector_step: usize,
}

/// Computes the sums of a block.
type Kernel = unsafe fn(&Block);

impl Few {
    /// For these operands; `None` if other ways are better.
    pub(super) fn new(field: Field, extents: Extents, lhs: &Operand, rhs: &Operand) -> Option<Few> {
        if field != Field::F32 || lhs.conversion.is_some() || rhs.conversion.is_some() {
            return None;
        }
        let Extents { batch, m, n, k: terms } = extents;
        let (matrix, x, matrix_left) = if n <= m { (lhs, rhs, true) } else { (rhs, lhs, false) };
        let (rows, vectors) = (m.max(n), m.min(n));
        let columns_are_neighbours = matrix_left && x.rows.single() == Some(1);
        let most = if columns_are_neighbours { MOST_COLUMNS } else { MOST };
        let (stride, 1) = (usize::try_from(matrix.rows.single()?).ok()?, matrix.terms.single()?) else {
            return None;
        };
        let near = vectors.saturating_mul(terms).saturating_mul(size_of::<f32>()) <= NEAR;
        if batch == 0 || !(2..=most).contains(&vectors) || terms < LEAST_TERMS || rows < LEAST_ROWS || !near {
            return None;
        }
        let (kernel, bytes) = (kernel(matrix.ty)?, matrix.ty.storage_bytes());
        Some(Few { batch, rows, vectors, terms, stride, matrix_left, bytes, kernel })
    }

    /// Bytes of scratch memory: the vectors.
    pub(super) fn scratch(&self) -> usize {
        [self.vectors, apart(self.terms), size_of::<f32>()]
            .into_iter()
            .fold(self.batch, usize::saturating_mul)
    }

    /// Computes it; `vectors` packs the vectors.
    ///
    /// # Safety
    /// The arrays are those of the product, the scratch memory has [`Few::scratch`] bytes.
    pub(super) unsafe fn run(
        &self,
        arrays: Arrays<'_>,
        vectors: &dyn Source<f32>,
        narrow: Option<Narrow<f32>>,
        result_bytes: usize,
        pool: &Pool,
    ) {
        let Few { batch, rows, vectors: count, terms, stride, .. } = *self;
        let packed = Shared::<f32>::new(arrays.scratch);
        pool.run(batch * count, &|i| {
            // SAFETY: the caller's: there is room for all vectors, each of which is packed once.
            unsafe {
                vectors.pack(
                    i / count,
                    i % count,
                    1,
                    0,
                    terms,
                    packed.offset(i * apart(terms)).pointer().cast(),
                    1,
                )
            };
        });
        let each = (sizes::from(CHUNK) / terms).next_multiple_of(TOGETHER).clamp(TOGETHER, ROWS);
        let chunks = rows.div_ceil(each);
        let (matrix, out) = (Shared::<u8>::new(arrays.matrix.cast_mut()), Shared::<u8>::new(arrays.out));
        pool.run(batch * chunks, &|chunk| {
            let (batch, first) = (chunk / chunks, chunk % chunks * each);
            let rows = each.min(rows - first);
            let mut sums = [0f32; ROWS * MOST];
            // Sums of a row of the result are neighbours.
            let (row_step, vector_step) = if self.matrix_left { (count, 1) } else { (1, rows) };
            // SAFETY: the caller's; chunks have different elements of the result.
            unsafe {
                let at = arrays.matrix_batch.offset(batch) + (first * stride) as isize;
                (self.kernel)(&Block {
                    matrix: matrix.pointer().offset(at * self.bytes as isize),
                    stride,
                    rows,
                    vectors: packed.offset(batch * count * apart(terms)).pointer().cast(),
                    count,
                    terms,
                    sums: sums.as_mut_ptr(),
                    row_step,
                    vector_step,
                });
                let all = self.rows * count * batch;
                let put = |from: usize, n: usize, at: usize| {
                    let (from, to) =
                        (sums.as_ptr().add(from), out.offset((all + at) * result_bytes).pointer());
                    match narrow {
                        Some(narrow) => narrow(from, n, to, 1),
                        None => std::ptr::copy_nonoverlapping(from, to.cast(), n),
                    }
                };
                if self.matrix_left {
                    put(0, rows * count, first * count);
                } else {
                    (0..count).for_each(|v| put(v * rows, rows, v * self.rows + first));
                }
            }
        });
    }
}

/// Sums of some rows and a group of vectors, lanes apart.
type Lanes = [[__m512; GROUP]; TOGETHER];

/// A block of terms of some rows.
#[derive(Clone, Copy)]
struct Terms {
    /// The first row; sums are those of rows from there on.
    rows: usize,
    /// The first of a group of vectors.
    vector: usize,
    first: usize,
    end: usize,
}

/// Adds a block of terms of `R` rows from the one of number `row` on to the sums of `V` vectors, and asks for what is at `next` and in as many rows.
#[inline(always)]
unsafe fn tile<E: Widen<WideF32>, const R: usize, const V: usize>(
    block: &Block,
    t: Terms,
    row: usize,
    sums: &mut Lanes,
    next: *const E,
) {
    // SAFETY: the caller's: so many rows and vectors are there.
    unsafe {
        let stride = block.stride;
        let from = block.matrix.cast::<E>().add((t.rows + row) * stride);
        let x = block.vectors.add(t.vector * apart(block.terms));
        let mut all = [[_mm512_setzero_ps(); V]; R];
        for r in 0..R {
            all[r].copy_from_slice(&sums[row + r][..V]);
        }
        let mut term = t.first;
        while term < t.end {
            let n = WideF32::N.min(t.end - term);
            let mut a = [_mm512_setzero_ps(); R];
            for r in 0..R {
                prefetch(next.wrapping_add(r * stride + term - t.first).cast());
                let from = from.add(r * stride + term);
                a[r] = E::widen(from, n);
            }
            for v in 0..V {
                let at = x.add(v * apart(block.terms) + term);
                let b = if n == WideF32::N { WideF32::load(at) } else { WideF32::load_part(at, n) };
                for r in 0..R {
                    all[r][v] = WideF32::madd(a[r], b, all[r][v]);
                }
            }
            term += n;
        }
        for r in 0..R {
            sums[row + r][..V].copy_from_slice(&all[r]);
        }
    }
}

/// The sums of some rows and `V` vectors, `R` rows at a time.
#[inline(always)]
unsafe fn rows<E: Widen<WideF32>, const R: usize, const V: usize>(block: &Block, rows: usize, vector: usize) {
    // SAFETY: the caller's.
    unsafe {
        let count = TOGETHER.min(block.rows - rows);
        let mut sums: Lanes = [[_mm512_setzero_ps(); GROUP]; TOGETHER];
        let at = |row: usize, term: usize| {
            block.matrix.cast::<E>().wrapping_add((rows + row) * block.stride + term)
        };
        let each = (BLOCK / V).next_multiple_of(WideF32::N);
        for first in (0..block.terms).step_by(each) {
            let end = block.terms.min(first + each);
            let t = Terms { rows, vector, first, end };
            let mut row = 0;
            while row + R <= count {
                let after = row + R;
                let next = if after + R <= count {
                    at(after, first)
                } else if end < block.terms {
                    at(0, end)
                } else {
                    at(after, 0)
                };
                tile::<E, R, V>(block, t, row, &mut sums, next);
                row = after;
            }
            while row < count {
                tile::<E, 1, V>(block, t, row, &mut sums, at(row + 1, first));
                row += 1;
            }
        }
        for (row, all) in sums[..count].iter().enumerate() {
            for (v, &lanes) in all[..V].iter().enumerate() {
                let at = (rows + row) * block.row_step + (vector + v) * block.vector_step;
                *block.sums.add(at) = _mm512_reduce_add_ps(lanes);
            }
        }
    }
}

/// All rows and vectors: groups of about the same size, and as many rows at a time as there are registers for.
#[inline(always)]
unsafe fn all<E: Widen<WideF32>>(block: &Block) {
    let groups = block.count.div_ceil(GROUP);
    for first in (0..block.rows).step_by(TOGETHER) {
        for group in 0..groups {
            let (vector, end) = (block.count * group / groups, block.count * (group + 1) / groups);
            // SAFETY: the caller's.
            unsafe {
                match end - vector {
                    1 => rows::<E, 8, 1>(block, first, vector),
                    2 => rows::<E, 8, 2>(block, first, vector),
                    3 => rows::<E, 8, 3>(block, first, vector),
                    4 => rows::<E, 6, 4>(block, first, vector),
                    5 => rows::<E, 4, 5>(block, first, vector),
                    6 => rows::<E, 4, 6>(block, first, vector),
                    7 => rows::<E, 3, 7>(block, first, vector),
                    _eight => rows::<E, 3, 8>(block, first, vector),
                }
            }
        }
    }
}

macro_rules! kernels {
    ($($ty:ident: $name:ident $e:ty;)*) => {
        $(#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq")]
        unsafe fn $name(block: &Block) {
            // SAFETY: the caller's.
            unsafe { all::<$e>(block) }
        })*

        /// The kernel for a matrix of these elements.
        fn kernel(ty: ElementType) -> Option<Kernel> {
            if !Features::here().avx512 {
                return None;
            }
            $(if ty == ElementType::$ty {
                return Some($name);
            })*
            None
        }
    };
}

kernels! {
    F32: of_f32 f32;
    BF16: of_bf16 bf16;
    F16: of_f16 f16;
}
