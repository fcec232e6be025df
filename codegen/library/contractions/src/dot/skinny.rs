//! Skinny GEMM: 2 to 16 vectors times a matrix whose terms are contiguous, such as the weights of a layer.
//!
//! The matrix is read once, a few rows at a time, which are multiplied with up to eight vectors: a term per
//! lane, block by block of terms, so that the L1 cache holds a block of the vectors and the sums. Lanes are
//! added up at the end of rows. The vectors are packed first. Integers of up to 16 bits are multiplied as
//! pairs of 16 bits, exactly.
//!
//! **Invariant:** the sum of a row and a vector does not depend on what is computed beside it.

use std::arch::x86_64::*;

use hlo::ElementType;
use hlo::half::{bf16, f16};
use hlo_library_base::isa::Features;
use hlo_library_base::memory::{Shared, prefetch};
use hlo_library_base::pool::Pool;
use hlo_library_base::sizes;

use super::gemv::{Arrays, Widen};
use super::operand::{Field, Operand};
use super::product::{Extents, Narrow};
use super::source::Source;
use super::step::{Avx2F32, Number, Step, WideF32};

/// The most vectors: with more, tiles fill registers with them.
const MAX_VECTORS: usize = 16;
/// The same where columns are contiguous, which tiles read in place, and of integers, of which tiles multiply
/// twice as many at once.
const MAX_VECTORS_BY_COLUMNS: usize = 8;
const MAX_INTEGER_VECTORS: usize = 8;
/// The fewest terms for which the horizontal sums, and the fewest rows for which packing the vectors, take
/// negligible time beside the products.
const MIN_TERMS: usize = 256;
const MIN_ROWS: usize = 32;
/// The most bytes of the packed vectors, which are read repeatedly from the second-level cache.
const MAX_PACKED_BYTES: usize = 512 << 10;
/// The elements of the matrix that a chunk reads, and the most rows.
const CHUNK_ELEMENTS: usize = 1 << 16;
const MAX_CHUNK_ROWS: usize = 96;
/// The rows of a block, which all groups of vectors read from the cache before the next block is loaded.
const BLOCK_ROWS: usize = 24;
/// The vectors of a group, which are multiplied at a time.
const GROUP_VECTORS: usize = 8;
/// The packed words of a block of terms: half of the first-level cache.
const BLOCK_WORDS: usize = 4096;

/// The stride of packed vectors of `terms` terms, in bytes: padded so that their blocks are spread evenly
/// over the sets of the first-level cache.
fn apart(terms: usize) -> usize {
    const PAGE_BYTES: usize = 4096;
    (terms * WORD_BYTES).next_multiple_of(PAGE_BYTES) + PAGE_BYTES / GROUP_VECTORS
}

/// The size of a packed word.
const WORD_BYTES: usize = 4;

/// Lanes of terms, and how they are multiplied.
///
/// # Safety
/// Functions are called where the instructions exist; pointers are valid for as many numbers as are read.
pub(super) trait Lanes: Copy {
    /// What vectors are packed as, and sums.
    type Word: Number;
    /// What of that is multiplied.
    type Term: Copy;
    /// Lanes of terms or of sums.
    type V: Copy;
    /// Terms of a register.
    const N: usize;
    /// Registers of the sum of a row and a vector: a term has the same lane whatever the width of registers.
    const PARTS: usize = 1;

    /// Converts packed words to terms in place.
    unsafe fn prepare(_packed: *mut Self::Word, _terms: usize) {}
    unsafe fn zero() -> Self::V;
    /// The first `n` terms; the others are zero.
    unsafe fn load(from: *const Self::Term, n: usize) -> Self::V;
    unsafe fn madd(a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// The sum of the lanes of all parts.
    unsafe fn total(parts: &[Self::V]) -> Self::Word;
}

/// Elements of a matrix as lanes of terms.
trait Element<L: Lanes>: Copy {
    /// The first `n`; the others are zero. `n` is [`Lanes::N`] in all but the last register.
    unsafe fn lanes(from: *const Self, n: usize) -> L::V;
}

/// `f32`.
#[derive(Clone, Copy)]
pub(super) struct Floats;

impl Lanes for Floats {
    type Word = f32;
    type Term = f32;
    type V = __m512;
    const N: usize = WideF32::N;

    #[inline(always)]
    unsafe fn zero() -> __m512 {
        // SAFETY: the caller's.
        unsafe { _mm512_setzero_ps() }
    }

    #[inline(always)]
    unsafe fn load(from: *const f32, n: usize) -> __m512 {
        // SAFETY: the caller's.
        unsafe { if n == Self::N { WideF32::load(from) } else { WideF32::load_part(from, n) } }
    }

    #[inline(always)]
    unsafe fn madd(a: __m512, b: __m512, c: __m512) -> __m512 {
        // SAFETY: the caller's.
        unsafe { WideF32::madd(a, b, c) }
    }

    #[inline(always)]
    unsafe fn total(parts: &[__m512]) -> f32 {
        // SAFETY: the caller's.
        unsafe { _mm512_reduce_add_ps(parts[0]) }
    }
}

/// `f32` in half as long registers.
#[derive(Clone, Copy)]
pub(super) struct HalfFloats;

impl Lanes for HalfFloats {
    type Word = f32;
    type Term = f32;
    type V = __m256;
    const N: usize = Avx2F32::N;
    const PARTS: usize = Floats::N / Avx2F32::N;

    #[inline(always)]
    unsafe fn zero() -> __m256 {
        // SAFETY: the caller's.
        unsafe { Avx2F32::zero() }
    }

    #[inline(always)]
    unsafe fn load(from: *const f32, n: usize) -> __m256 {
        // SAFETY: the caller's.
        unsafe { Avx2F32::load_part(from, n) }
    }

    #[inline(always)]
    unsafe fn madd(a: __m256, b: __m256, c: __m256) -> __m256 {
        // SAFETY: the caller's.
        unsafe { Avx2F32::madd(a, b, c) }
    }

    /// Halves are added, then halves of these, as [`Floats`] does.
    #[inline(always)]
    unsafe fn total(parts: &[__m256]) -> f32 {
        // SAFETY: the caller's.
        unsafe {
            let eight = _mm256_add_ps(parts[0], parts[1]);
            let four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps::<1>(eight));
            let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
        }
    }
}

impl<E: Widen<Avx2F32>> Element<HalfFloats> for E {
    #[inline(always)]
    unsafe fn lanes(from: *const E, n: usize) -> __m256 {
        // SAFETY: the caller's.
        unsafe { E::widen(from, n) }
    }
}

impl<E: Widen<WideF32>> Element<Floats> for E {
    #[inline(always)]
    unsafe fn lanes(from: *const E, n: usize) -> __m512 {
        // SAFETY: the caller's.
        unsafe { E::widen(from, n) }
    }
}

/// Pairs of 16-bit integers, into sums modulo 2^32.
#[derive(Clone, Copy)]
pub(super) struct Pairs;

impl Lanes for Pairs {
    type Word = i32;
    type Term = i16;
    type V = __m512i;
    const N: usize = 32;

    unsafe fn prepare(packed: *mut i32, terms: usize) {
        let narrow = packed.cast::<i16>();
        for i in 0..terms {
            // SAFETY: the caller's: the words are there, and a term is written only over words that were
            // read.
            unsafe { *narrow.add(i) = *packed.add(i) as i16 };
        }
    }

    #[inline(always)]
    unsafe fn zero() -> __m512i {
        // SAFETY: the caller's.
        unsafe { _mm512_setzero_si512() }
    }

    #[inline(always)]
    unsafe fn load(from: *const i16, n: usize) -> __m512i {
        // SAFETY: the caller's.
        unsafe { <i16 as Element<Pairs>>::lanes(from, n) }
    }

    #[inline(always)]
    unsafe fn madd(a: __m512i, b: __m512i, c: __m512i) -> __m512i {
        // SAFETY: the caller's.
        unsafe { _mm512_dpwssd_epi32(c, a, b) }
    }

    #[inline(always)]
    unsafe fn total(parts: &[__m512i]) -> i32 {
        // SAFETY: the caller's.
        unsafe { _mm512_reduce_add_epi32(parts[0]) }
    }
}

macro_rules! narrow {
    ($($ty:ty: |$p:ident, $m:ident| $all:expr, $some:expr;)*) => {$(
        impl Element<Pairs> for $ty {
            #[inline(always)]
            unsafe fn lanes($p: *const $ty, n: usize) -> __m512i {
                // SAFETY: the caller's: `n` elements are there; masked lanes are not touched.
                unsafe {
                    if n == Pairs::N {
                        $all
                    } else {
                        let $m = (1u32 << n) - 1;
                        $some
                    }
                }
            }
        }
    )*};
}

narrow! {
    i16: |p, m| _mm512_loadu_si512(p.cast()), _mm512_maskz_loadu_epi16(m, p);
    i8: |p, m| _mm512_cvtepi8_epi16(_mm256_loadu_si256(p.cast())), _mm512_cvtepi8_epi16(_mm256_maskz_loadu_epi8(m, p));
    u8: |p, m| _mm512_cvtepu8_epi16(_mm256_loadu_si256(p.cast())), _mm512_cvtepu8_epi16(_mm256_maskz_loadu_epi8(m, p.cast()));
}

/// What to do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Skinny {
    batch: usize,
    /// Rows of the matrix.
    rows: usize,
    vectors: usize,
    terms: usize,
    /// Distance of rows.
    stride: usize,
    /// Whether the matrix is the left operand.
    pub(super) matrix_left: bool,
    /// [`Field::F32`] or [`Field::I32`].
    pub(super) field: Field,
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
    vectors: *const u8,
    count: usize,
    terms: usize,
    sums: *mut u8,
    row_step: usize,
    vector_step: usize,
}

/// Computes the sums of a block.
type Kernel = unsafe fn(&Block);

impl Skinny {
    /// For these operands; `None` if other ways are better.
    pub(super) fn new(field: Field, extents: Extents, lhs: &Operand, rhs: &Operand) -> Option<Skinny> {
        if lhs.conversion.is_some() || rhs.conversion.is_some() {
            return None;
        }
        let Extents { batch, m, n, k: terms } = extents;
        let (matrix, x, matrix_left) = if n <= m { (lhs, rhs, true) } else { (rhs, lhs, false) };
        let (rows, vectors) = (m.max(n), m.min(n));
        let columns_are_contiguous = matrix_left && x.rows.single() == Some(1);
        let most = match field {
            Field::F32 if columns_are_contiguous => MAX_VECTORS_BY_COLUMNS,
            Field::F32 => MAX_VECTORS,
            Field::I32 => MAX_INTEGER_VECTORS,
            Field::F64 | Field::I64 | Field::C64 | Field::C128 => return None,
        };
        let (stride, 1) = (usize::try_from(matrix.rows.single()?).ok()?, matrix.terms.single()?) else {
            return None;
        };
        let near = vectors.saturating_mul(terms).saturating_mul(WORD_BYTES) <= MAX_PACKED_BYTES;
        if batch == 0 || !(2..=most).contains(&vectors) || terms < MIN_TERMS || rows < MIN_ROWS || !near {
            return None;
        }
        let (kernel, bytes) = (kernel(field, matrix.ty, x.ty)?, matrix.ty.storage_bytes());
        Some(Skinny { batch, rows, vectors, terms, stride, matrix_left, field, bytes, kernel })
    }

    /// Bytes of scratch memory: the vectors.
    pub(super) fn scratch(&self) -> usize {
        self.batch.saturating_mul(self.vectors).saturating_mul(apart(self.terms))
    }

    /// Computes it; `L` is how [`Skinny::field`] is multiplied, `vectors` packs the vectors.
    ///
    /// # Safety
    /// The arrays are those of the product, the scratch memory has [`Skinny::scratch`] bytes.
    pub(super) unsafe fn run<L: Lanes>(
        &self,
        arrays: Arrays<'_>,
        vectors: &dyn Source<L::Word>,
        narrow: Option<Narrow<L::Word>>,
        result_bytes: usize,
        pool: &Pool,
    ) {
        let Skinny { batch, rows, vectors: count, terms, stride, .. } = *self;
        let packed = Shared::<u8>::new(arrays.scratch);
        pool.run(batch * count, &|i| {
            // SAFETY: the caller's: there is space for all vectors, each of which is packed once.
            unsafe {
                let to = packed.offset(i * apart(terms)).pointer().cast::<L::Word>();
                vectors.pack(i / count, i % count, 1, 0, terms, to, 1);
                L::prepare(to, terms);
            }
        });
        let each = (sizes::from(CHUNK_ELEMENTS) / terms)
            .next_multiple_of(BLOCK_ROWS)
            .clamp(BLOCK_ROWS, MAX_CHUNK_ROWS);
        let chunks = rows.div_ceil(each);
        let (matrix, out) = (Shared::<u8>::new(arrays.matrix.cast_mut()), Shared::<u8>::new(arrays.out));
        pool.run(batch * chunks, &|chunk| {
            let (batch, first) = (chunk / chunks, chunk % chunks * each);
            let rows = each.min(rows - first);
            let mut sums = [L::Word::default(); MAX_CHUNK_ROWS * MAX_VECTORS];
            // Sums of a row of the result are contiguous.
            let (row_step, vector_step) = if self.matrix_left { (count, 1) } else { (1, rows) };
            // SAFETY: the caller's; chunks have different elements of the result.
            unsafe {
                let at = arrays.matrix_batch.offset(batch) + (first * stride) as isize;
                (self.kernel)(&Block {
                    matrix: matrix.pointer().offset(at * self.bytes as isize),
                    stride,
                    rows,
                    vectors: packed.offset(batch * count * apart(terms)).pointer(),
                    count,
                    terms,
                    sums: sums.as_mut_ptr().cast(),
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

/// Sums of some rows and a group of vectors, lanes apart, in `P` registers each.
type Sums<V, const P: usize> = [[[V; P]; GROUP_VECTORS]; BLOCK_ROWS];

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

/// Adds a block of terms of `R` rows from the one of number `row` on to the sums of `V` vectors, and asks for
/// what is at `next` and in as many rows.
#[inline(always)]
unsafe fn tile<L: Lanes, E: Element<L>, const R: usize, const V: usize, const P: usize>(
    block: &Block,
    t: Terms,
    row: usize,
    sums: &mut Sums<L::V, P>,
    next: *const E,
) {
    // SAFETY: the caller's: these rows and vectors are there.
    unsafe {
        let stride = block.stride;
        let from = block.matrix.cast::<E>().add((t.rows + row) * stride);
        let x = block.vectors.add(t.vector * apart(block.terms));
        let mut all = [[[L::zero(); P]; V]; R];
        // One by one: what is copied as a slice stays in memory.
        for r in 0..R {
            for v in 0..V {
                for p in 0..P {
                    all[r][v][p] = sums[row + r][v][p];
                }
            }
        }
        let mut term = t.first;
        while term + P * L::N <= t.end {
            for r in 0..R {
                prefetch(next.wrapping_add(r * stride + term - t.first).cast());
            }
            for p in 0..P {
                let mut a = [L::zero(); R];
                for r in 0..R {
                    a[r] = E::lanes(from.add(r * stride + term), L::N);
                }
                for v in 0..V {
                    let b = L::load(x.add(v * apart(block.terms)).cast::<L::Term>().add(term), L::N);
                    for r in 0..R {
                        all[r][v][p] = L::madd(a[r], b, all[r][v][p]);
                    }
                }
                term += L::N;
            }
        }
        for r in 0..R {
            for v in 0..V {
                for p in 0..P {
                    sums[row + r][v][p] = all[r][v][p];
                }
            }
        }
        // The last terms, of sums in memory: a loop over parts of registers would put all sums there.
        let mut part = 0;
        while term < t.end {
            let n = L::N.min(t.end - term);
            for r in 0..R {
                let a = E::lanes(from.add(r * stride + term), n);
                for v in 0..V {
                    let b = L::load(x.add(v * apart(block.terms)).cast::<L::Term>().add(term), n);
                    let sum = &mut sums[row + r][v][part];
                    *sum = L::madd(a, b, *sum);
                }
            }
            term += n;
            part += 1;
        }
    }
}

/// The sums of some rows and `V` vectors, `R` rows at a time.
#[inline(always)]
unsafe fn rows<L: Lanes, E: Element<L>, const R: usize, const V: usize, const P: usize>(
    block: &Block,
    rows: usize,
    vector: usize,
) {
    const { assert!(P == L::PARTS, "invariant: a sum has as many registers") };
    // SAFETY: the caller's.
    unsafe {
        let count = BLOCK_ROWS.min(block.rows - rows);
        let mut sums: Sums<L::V, P> = [[[L::zero(); P]; GROUP_VECTORS]; BLOCK_ROWS];
        let at = |row: usize, term: usize| {
            block.matrix.cast::<E>().wrapping_add((rows + row) * block.stride + term)
        };
        let each = (BLOCK_WORDS / V).next_multiple_of(P * L::N);
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
                tile::<L, E, R, V, P>(block, t, row, &mut sums, next);
                row = after;
            }
            while row < count {
                tile::<L, E, 1, V, P>(block, t, row, &mut sums, at(row + 1, first));
                row += 1;
            }
        }
        for (row, all) in sums[..count].iter().enumerate() {
            for v in 0..V {
                let parts = &all[v];
                let at = (rows + row) * block.row_step + (vector + v) * block.vector_step;
                *block.sums.cast::<L::Word>().add(at) = L::total(parts);
            }
        }
    }
}

/// Partitions `count` vectors into groups of at most `most`, whose sizes differ by at most one: the first vector
/// of each, and how many.
fn groups(count: usize, most: usize) -> impl Iterator<Item = (usize, usize)> {
    let groups = count.div_ceil(most);
    (0..groups).map(move |group| {
        let (vector, end) = (count * group / groups, count * (group + 1) / groups);
        (vector, end - vector)
    })
}

/// All rows and vectors: as many rows at a time as there are registers for.
#[inline(always)]
unsafe fn all<L: Lanes, E: Element<L>>(block: &Block) {
    for first in (0..block.rows).step_by(BLOCK_ROWS) {
        for (vector, count) in groups(block.count, GROUP_VECTORS) {
            // SAFETY: the caller's.
            unsafe {
                match count {
                    1 => rows::<L, E, 8, 1, 1>(block, first, vector),
                    2 => rows::<L, E, 8, 2, 1>(block, first, vector),
                    3 => rows::<L, E, 8, 3, 1>(block, first, vector),
                    4 => rows::<L, E, 6, 4, 1>(block, first, vector),
                    5 => rows::<L, E, 4, 5, 1>(block, first, vector),
                    6 => rows::<L, E, 4, 6, 1>(block, first, vector),
                    7 => rows::<L, E, 3, 7, 1>(block, first, vector),
                    _eight => rows::<L, E, 3, 8, 1>(block, first, vector),
                }
            }
        }
    }
}

/// The vectors of a group that 16 registers multiply with two rows: twelve sums of lanes, and what is added.
const HALF_GROUP_VECTORS: usize = 3;

/// As [`all`], of sums of two registers, where there are 16.
#[inline(always)]
unsafe fn all_in_halves<E: Element<HalfFloats>>(block: &Block) {
    for first in (0..block.rows).step_by(BLOCK_ROWS) {
        for (vector, count) in groups(block.count, HALF_GROUP_VECTORS) {
            // SAFETY: the caller's.
            unsafe {
                match count {
                    1 => rows::<HalfFloats, E, 4, 1, 2>(block, first, vector),
                    2 => rows::<HalfFloats, E, 3, 2, 2>(block, first, vector),
                    _three => rows::<HalfFloats, E, 2, 3, 2>(block, first, vector),
                }
            }
        }
    }
}

macro_rules! kernels {
    ($features:literal, $kernel:ident: $($ty:ident: $name:ident $all:expr;)*) => {
        $(#[target_feature(enable = $features)]
        unsafe fn $name(block: &Block) {
            // SAFETY: the caller's.
            unsafe { $all(block) }
        })*

        fn $kernel(ty: ElementType) -> Option<Kernel> {
            $(if ty == ElementType::$ty {
                return Some($name);
            })*
            None
        }
    };
}

kernels! {
    "avx512f,avx512vl,avx512bw,avx512dq", kernel_of_floats:
    F32: of_f32 all::<Floats, f32>;
    BF16: of_bf16 all::<Floats, bf16>;
    F16: of_f16 all::<Floats, f16>;
}

kernels! {
    "avx2,fma,f16c", kernel_of_half_floats:
    F32: of_f32_in_halves all_in_halves::<f32>;
    BF16: of_bf16_in_halves all_in_halves::<bf16>;
    F16: of_f16_in_halves all_in_halves::<f16>;
}

kernels! {
    "avx512f,avx512vl,avx512bw,avx512dq,avx512vnni", kernel_of_integers:
    S8: of_s8 all::<Pairs, i8>;
    U8: of_u8 all::<Pairs, u8>;
    S16: of_s16 all::<Pairs, i16>;
}

/// The kernel for a matrix of these elements and vectors of those.
fn kernel(field: Field, matrix: ElementType, vectors: ElementType) -> Option<Kernel> {
    let here = Features::here();
    match field {
        Field::F32 if here.avx512 => kernel_of_floats(matrix),
        Field::F32 if here.avx2 => kernel_of_half_floats(matrix),
        Field::I32 if here.vnni => kernel_of_integers(vectors).and(kernel_of_integers(matrix)),
        Field::F32 | Field::I32 | Field::F64 | Field::I64 | Field::C64 | Field::C128 => None,
    }
}
