//! GEMV: the matrix is read once, in storage order, by all threads.
//!
//! | terms of the matrix | how |
//! |---|---|
//! | contiguous | long rows are multiplied with the vector eight at a time: as many streams as memory can serve; rows are divided among chunks (terms, if there are few rows) |
//! | strided, rows are contiguous | eight terms at a time are added to lines of sums; terms are divided among chunks, whose lines are added up at the end |
//!
//! The vector becomes words of sums first; elements of the matrix are widened in registers. **Invariant:**
//! chunks depend on the shape alone, and their sums are added in order.

use hlo::ElementType;

use super::operand::{Field, Operand};
use super::product::{Extents, Narrow};
use super::source::Source;
use super::step::Number;
#[cfg(target_arch = "x86_64")]
use super::step::Step;
use super::steps::Steps;
use super::sums_are_elements;
#[cfg(target_arch = "x86_64")]
use hlo_library_base::isa::Features;
use hlo_library_base::pool::Pool;

/// Elements of the matrix that a chunk reads.
const CHUNK_ELEMENTS: usize = 1 << 16;
/// The most parts that terms are divided into.
const MAX_PARTS: usize = 16;
/// The fewest terms; with fewer, it is a product of another kind.
const MIN_TERMS: usize = 4;
/// The fewest elements of a matrix; smaller ones are products of another kind.
const MIN_ELEMENTS: usize = 1 << 8;
/// The columns of a block, whose sums are in the first-level cache.
const BLOCK_COLUMNS: usize = 2048;
/// Rows (or terms, if rows are contiguous) that are read at the same time.
const STREAMS: usize = 8;

/// What to do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gemv {
    batch: usize,
    /// Rows of the matrix: elements of the result.
    rows: usize,
    terms: usize,
    /// Distance of rows, or of terms if rows are contiguous.
    stride: usize,
    /// Whether terms are contiguous.
    by_rows: bool,
    /// Whether the matrix is the left operand.
    pub(super) matrix_left: bool,
    /// Whether the vector's elements are words of sums, one after the other.
    vector_in_place: bool,
    /// Whether the result's elements are sums.
    direct: bool,
    /// Parts of the terms.
    parts: usize,
    pub(super) field: Field,
    /// Size of an element of the matrix.
    bytes: usize,
    kernel: Kernel,
}

/// A part of a matrix, and where its sums go. Distances are in elements.
#[derive(Clone, Copy)]
struct Block {
    matrix: *const u8,
    stride: usize,
    vector: *const u8,
    terms: usize,
    rows: usize,
    sums: *mut u8,
}

/// Computes the sums of a block.
type Kernel = unsafe fn(&Block);

/// The arrays, for all threads.
#[derive(Clone, Copy)]
pub(super) struct Arrays<'a> {
    /// The first element of the first matrix.
    pub(super) matrix: *const u8,
    pub(super) matrix_batch: &'a Steps,
    /// The vector's element that the batch begins with.
    pub(super) vector: *const u8,
    pub(super) vector_batch: &'a Steps,
    pub(super) out: *mut u8,
    /// [`Gemv::scratch`] bytes.
    pub(super) scratch: *mut u8,
}

// SAFETY: threads write disjoint parts of the sums.
unsafe impl Sync for Arrays<'_> {}

impl<'a> Arrays<'a> {
    fn get(&self) -> Arrays<'a> {
        *self
    }
}

impl Gemv {
    /// For these operands; `None` if it is no product of a matrix and a vector, is small or is in another
    /// way.
    pub(super) fn new(
        field: Field,
        extents: Extents,
        lhs: &Operand,
        rhs: &Operand,
        result: ElementType,
    ) -> Option<Gemv> {
        if lhs.conversion.is_some() || rhs.conversion.is_some() {
            return None;
        }
        let (matrix, x, matrix_left) = match (extents.m, extents.n) {
            (_, 1) => (lhs, rhs, true),
            (1, _) => (rhs, lhs, false),
            (_, _) => return None,
        };
        let (batch, rows, terms) = (extents.batch, matrix.rows.size(), extents.k);
        let (row, term) = (matrix.rows.single()?, matrix.terms.single()?);
        let size = batch.saturating_mul(rows).saturating_mul(terms);
        if batch == 0 || size < MIN_ELEMENTS || terms < MIN_TERMS {
            return None;
        }
        let by_rows = term == 1 && (row > 0 || rows == 1);
        if !(by_rows || row == 1 && term > 0 && rows >= 16) {
            return None;
        }
        let kernel = kernel(field, matrix.ty, by_rows)?;
        let parts = if by_rows && (rows >= 32 || batch >= 16) {
            1
        } else {
            let parts = (rows.saturating_mul(terms) / CHUNK_ELEMENTS).min(terms / 32);
            parts.clamp(1, MAX_PARTS.div_ceil(batch))
        };
        let stride = if by_rows { row } else { term }.unsigned_abs();
        let word = field.word();
        let vector_in_place = x.ty == word && x.terms.single() == Some(1);
        let direct = parts == 1 && sums_are_elements(field, result);
        let bytes = matrix.ty.storage_bytes();
        Some(Gemv {
            batch,
            rows,
            terms,
            stride,
            by_rows,
            matrix_left,
            vector_in_place,
            direct,
            parts,
            field,
            bytes,
            kernel,
        })
    }

    /// Bytes of scratch memory.
    pub(super) fn scratch(&self) -> usize {
        self.vector_words().saturating_add(self.sums()).saturating_mul(self.field.word().storage_bytes())
    }

    /// Words of the vectors that are kept in scratch memory, rounded so that what follows is aligned.
    fn vector_words(&self) -> usize {
        if self.vector_in_place { 0 } else { self.batch.saturating_mul(self.terms).next_multiple_of(64) }
    }

    /// Sums that are kept there.
    fn sums(&self) -> usize {
        if self.direct { 0 } else { self.batch.saturating_mul(self.parts).saturating_mul(self.rows) }
    }

    /// Computes it. `S` is what [`Gemv::field`] sums; `vector` packs the vectors.
    ///
    /// # Safety
    /// The arrays are those of the product, the scratch memory has [`Gemv::scratch`] bytes.
    pub(super) unsafe fn run<S: Number>(
        &self,
        arrays: Arrays<'_>,
        vector: &dyn Source<S>,
        narrow: Option<Narrow<S>>,
        result_bytes: usize,
        pool: &Pool,
    ) {
        let (rows, terms, parts) = (self.rows, self.terms, self.parts);
        let packed = arrays.scratch.cast::<S>();
        let sums = if self.direct {
            arrays.out.cast::<S>()
        } else {
            arrays.scratch.cast::<S>().wrapping_add(self.vector_words())
        };
        if !self.vector_in_place {
            for batch in 0..self.batch {
                // SAFETY: the caller's: there is space for all vectors.
                unsafe { vector.pack(batch, 0, 1, 0, terms, packed.add(batch * terms), 1) };
            }
        }
        let sent = Arrays { out: sums.cast(), ..arrays };
        let each_terms = terms.div_ceil(parts);
        // Chunks of terms and of rows (in lines, if rows are contiguous).
        let each_rows = if self.by_rows {
            (CHUNK_ELEMENTS / each_terms).next_multiple_of(STREAMS).max(STREAMS)
        } else {
            BLOCK_COLUMNS
        };
        let row_chunks = rows.div_ceil(each_rows);
        pool.run(self.batch * parts * row_chunks, &|chunk| {
            let (batch, chunk) = (chunk / (parts * row_chunks), chunk % (parts * row_chunks));
            let (part, row) = (chunk / row_chunks, chunk % row_chunks * each_rows);
            let (first, end) = (part * each_terms, terms.min((part + 1) * each_terms));
            let count = each_rows.min(rows - row);
            let Arrays { matrix, matrix_batch, vector, vector_batch, out, scratch } = sent.get();
            // SAFETY: the caller's; each chunk has its own sums. A part may have no terms.
            unsafe {
                let sums = out.cast::<S>().add((batch * parts + part) * rows + row);
                if first >= end {
                    std::slice::from_raw_parts_mut(sums, count).fill(S::default());
                    return;
                }
                let (row, term) = if self.by_rows { (self.stride, 1) } else { (1, self.stride) };
                let at = matrix_batch.offset(batch)
                    + ((chunk % row_chunks * each_rows) * row + first * term) as isize;
                let vector = if self.vector_in_place {
                    vector.cast::<S>().offset(vector_batch.offset(batch))
                } else {
                    scratch.cast::<S>().add(batch * terms).cast_const()
                };
                (self.kernel)(&Block {
                    matrix: matrix.offset(at * self.bytes as isize),
                    stride: self.stride,
                    vector: vector.add(first).cast(),
                    terms: end - first,
                    rows: count,
                    sums: sums.cast(),
                });
            }
        });
        if self.direct {
            return;
        }
        // SAFETY: the parts are done.
        unsafe { add_up(sums, [self.batch, parts, rows], arrays.out, narrow, result_bytes, pool) };
    }
}

/// Adds up sums of parts of the terms, in order, into elements of the result: sums of `batch` products, of
/// each `parts` times `rows`.
///
/// # Safety
/// So many sums and elements are there, and nothing else accesses them.
pub(super) unsafe fn add_up<S: Number>(
    sums: *mut S,
    [batch, parts, rows]: [usize; 3],
    out: *mut u8,
    narrow: Option<Narrow<S>>,
    result_bytes: usize,
    pool: &Pool,
) {
    let sent = Sums { sums, out };
    let lines = rows.div_ceil(BLOCK_COLUMNS);
    pool.run(batch * lines, &|chunk| {
        let (batch, line) = (chunk / lines, chunk % lines);
        let Sums { sums, out } = sent.get();
        let (first, end) = (line * BLOCK_COLUMNS, rows.min((line + 1) * BLOCK_COLUMNS));
        // SAFETY: the caller's; rows are disjoint, and the first part's sums take the others'.
        unsafe {
            let sums = sums.add(batch * parts * rows);
            for part in 1..parts {
                for row in first..end {
                    *sums.add(row) = (*sums.add(row)).plus(*sums.add(part * rows + row));
                }
            }
            let to = out.add((batch * rows + first) * result_bytes);
            match narrow {
                Some(narrow) => narrow(sums.add(first), end - first, to, 1),
                None => std::ptr::copy_nonoverlapping(sums.add(first), to.cast(), end - first),
            }
        }
    });
}

/// Where sums of parts are, and the result, for all threads.
#[derive(Clone, Copy)]
struct Sums<S> {
    sums: *mut S,
    out: *mut u8,
}

// SAFETY: threads use disjoint rows.
unsafe impl<S> Sync for Sums<S> {}

impl<S: Copy> Sums<S> {
    fn get(&self) -> Sums<S> {
        *self
    }
}

/// The kernel for a matrix of these elements.
fn kernel(field: Field, ty: ElementType, by_rows: bool) -> Option<Kernel> {
    #[cfg(target_arch = "x86_64")]
    {
        let here = Features::here();
        if here.avx512 {
            return wide::kernel(field, ty, by_rows);
        } else if here.avx2 {
            return narrow::kernel(field, ty, by_rows);
        }
    }
    match (field, ty) {
        (Field::F32, ElementType::F32) => Some(if by_rows { plain_rows } else { plain_lines }),
        (_, _) => None,
    }
}

/// Rows whose terms are contiguous.
unsafe fn plain_rows(block: &Block) {
    let Block { matrix, stride, vector, terms, rows, sums } = *block;
    let (matrix, sums) = (matrix.cast::<f32>(), sums.cast::<f32>());
    // SAFETY: the caller's.
    unsafe {
        let x = std::slice::from_raw_parts(vector.cast::<f32>(), terms);
        for row in 0..rows {
            *sums.add(row) = product(std::slice::from_raw_parts(matrix.add(row * stride), terms), x);
        }
    }
}

/// Terms whose rows are contiguous.
unsafe fn plain_lines(block: &Block) {
    let Block { matrix, stride, vector, terms, rows, sums } = *block;
    let (matrix, vector) = (matrix.cast::<f32>(), vector.cast::<f32>());
    // SAFETY: the caller's.
    unsafe {
        let sums = std::slice::from_raw_parts_mut(sums.cast::<f32>(), rows);
        sums.fill(0.0);
        let line = |term: usize| std::slice::from_raw_parts(matrix.add(term * stride), rows);
        let mut term = 0;
        while term + STREAMS <= terms {
            let x: [f32; STREAMS] = std::array::from_fn(|t| *vector.add(term + t));
            let lines: [&[f32]; STREAMS] = std::array::from_fn(|t| line(term + t));
            for i in 0..rows {
                let mut sum = sums[i];
                for t in 0..STREAMS {
                    sum = x[t].mul_add(*lines[t].get_unchecked(i), sum);
                }
                sums[i] = sum;
            }
            term += STREAMS;
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

/// A row times a vector.
#[inline(always)]
fn product(row: &[f32], x: &[f32]) -> f32 {
    /// Independent sums.
    const LANES: usize = 32;
    let mut sums = [0f32; LANES];
    let ((rows, row_rest), (blocks, rest)) = (row.as_chunks::<LANES>(), x.as_chunks::<LANES>());
    for (a, b) in rows.iter().zip(blocks) {
        for l in 0..LANES {
            sums[l] = a[l].mul_add(b[l], sums[l]);
        }
    }
    row_rest.iter().zip(rest).fold(total(sums), |sum, (&a, &b)| a.mul_add(b, sum))
}

/// The sum of all lanes, as a tree.
#[inline(always)]
fn total<S: Number, const N: usize>(mut sums: [S; N]) -> S {
    let mut half = N / 2;
    while half > 0 {
        for l in 0..half {
            sums[l] = sums[l].plus(sums[l + half]);
        }
        half /= 2;
    }
    sums[0]
}

/// `T` terms whose rows are contiguous.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn lines<S, V, E, const T: usize>(block: &Block, term: usize)
where
    S: Step<A = V, B = V, C = V, Word = <S as Step>::Sum, Sum: Number>,
    V: Copy,
    E: Widen<S>,
{
    // SAFETY: the caller's: the terms are there.
    unsafe {
        let Block { matrix, stride, vector, rows, sums, .. } = *block;
        let x: [V; T] = std::array::from_fn(|t| S::splat(*vector.cast::<S::Word>().add(term + t)));
        let from = matrix.cast::<E>().add(term * stride);
        let sums = sums.cast::<S::Sum>();
        let mut row = 0;
        while row < rows {
            let n = S::N.min(rows - row);
            let at = sums.add(row);
            let mut sum = if n == S::N { S::load(at) } else { S::load_part(at, n) };
            for t in 0..T {
                sum = S::madd(x[t], E::widen(from.add(t * stride + row), n), sum);
            }
            S::store(sum, at, n, false);
            row += n;
        }
    }
}

/// All terms.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn all_lines<S, V, E>(block: &Block)
where
    S: Step<A = V, B = V, C = V, Word = <S as Step>::Sum, Sum: Number>,
    V: Copy,
    E: Widen<S>,
{
    // SAFETY: the caller's.
    unsafe {
        std::slice::from_raw_parts_mut(block.sums.cast::<S::Sum>(), block.rows).fill(<S::Sum>::default());
        let mut term = 0;
        while term + STREAMS <= block.terms {
            lines::<S, V, E, STREAMS>(block, term);
            term += STREAMS;
        }
        while term < block.terms {
            lines::<S, V, E, 1>(block, term);
            term += 1;
        }
    }
}

/// The kernels for machines with these features, of matrices whose rows, and whose lines are contiguous.
#[cfg(target_arch = "x86_64")]
macro_rules! kernels {
    ($features:literal; $($field:ident, $ty:ident: $name:ident $step:ty, $v:ty, $e:ty;)*) => {
        $(mod $name {
            use super::*;

            #[target_feature(enable = $features)]
            pub(super) unsafe fn rows(block: &Block) {
                // SAFETY: the caller's.
                unsafe { all_rows::<$step, $v, $e>(block) }
            }

            #[target_feature(enable = $features)]
            pub(super) unsafe fn lines(block: &Block) {
                // SAFETY: the caller's.
                unsafe { all_lines::<$step, $v, $e>(block) }
            }
        })*

        /// The kernel for a matrix of these elements.
        pub(super) fn kernel(field: Field, ty: ElementType, by_rows: bool) -> Option<Kernel> {
            $(if field == Field::$field && ty == ElementType::$ty {
                return Some(if by_rows { $name::rows } else { $name::lines });
            })*
            None
        }
    };
}

#[cfg(target_arch = "x86_64")]
mod narrow;

#[cfg(target_arch = "x86_64")]
pub(super) use wide::Widen;

#[cfg(target_arch = "x86_64")]
mod wide {
    use hlo::ElementType;
    use hlo::half::{bf16, f16};
    use hlo_library_base::sizes;
    use std::arch::x86_64::*;

    use super::{Block, Field, Kernel, Number, STREAMS, all_lines};
    use crate::dot::step::{Step, WideF32, WideF64, WideI32, WideI64};

    /// Vectors of sums of a row by itself.
    const WIDE: usize = 8;
    /// Bytes of a matrix that is in the second-level cache when it is multiplied again.
    const NEAR: usize = 1 << 19;

    /// Elements as vectors of sums.
    pub(in super::super) trait Widen<S: Step>: Copy {
        /// The first `n` elements; the other lanes are zero. `n` is [`Step::N`] in all but the last vector.
        unsafe fn widen(from: *const Self, n: usize) -> S::B;
    }

    macro_rules! widen {
        ($($from:ty => $step:ty, |$p:ident, $m:ident| $all:expr, $some:expr;)*) => {$(
            impl Widen<$step> for $from {
                #[inline(always)]
                unsafe fn widen($p: *const $from, n: usize) -> <$step as Step>::B {
                    // SAFETY: the caller's: `n` elements are there; masked lanes are not touched.
                    unsafe {
                        if n == <$step as Step>::N {
                            $all
                        } else {
                            let $m = (1 << n) - 1;
                            $some
                        }
                    }
                }
            }
        )*};
    }

    widen! {
        f32 => WideF32, |p, m| _mm512_loadu_ps(p), _mm512_maskz_loadu_ps(m, p);
        bf16 => WideF32, |p, m| wide_bf16(_mm256_loadu_si256(p.cast())), wide_bf16(_mm256_maskz_loadu_epi16(m, p.cast()));
        f16 => WideF32, |p, m| _mm512_cvtph_ps(_mm256_loadu_si256(p.cast())), _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(m, p.cast()));
        f64 => WideF64, |p, m| _mm512_loadu_pd(p), _mm512_maskz_loadu_pd(m, p);
        i32 => WideI32, |p, m| _mm512_loadu_epi32(p), _mm512_maskz_loadu_epi32(m, p);
        i16 => WideI32, |p, m| _mm512_cvtepi16_epi32(_mm256_loadu_si256(p.cast())), _mm512_cvtepi16_epi32(_mm256_maskz_loadu_epi16(m, p));
        i8 => WideI32, |p, m| _mm512_cvtepi8_epi32(_mm_loadu_si128(p.cast())), _mm512_cvtepi8_epi32(_mm_maskz_loadu_epi8(m, p));
        u8 => WideI32, |p, m| _mm512_cvtepu8_epi32(_mm_loadu_si128(p.cast())), _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(m, p.cast()));
        i64 => WideI64, |p, m| _mm512_loadu_epi64(p), _mm512_maskz_loadu_epi64(m, p);
    }

    #[inline(always)]
    unsafe fn wide_bf16(x: __m256i) -> __m512 {
        // SAFETY: the caller's: the instructions exist.
        unsafe { _mm512_castsi512_ps(_mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(x))) }
    }

    /// How lanes of sums are added up.
    trait Total: Step {
        unsafe fn plus(a: Self::C, b: Self::C) -> Self::C;

        /// The sums of the lanes of each vector, as a tree of shuffles and additions, for all vectors at
        /// once.
        unsafe fn totals(vectors: [Self::C; STREAMS], to: *mut Self::Sum);
    }

    /// Halves of vectors side by side, then quarters: two vectors of four quarters each, whose lanes `$rest`
    /// adds up. All as bits of f64.
    macro_rules! total {
        ($step:ty, $add:ident, $into:path, $back:path, $rest:ident) => {
            impl Total for $step {
                #[inline(always)]
                unsafe fn plus(a: Self::C, b: Self::C) -> Self::C {
                    // SAFETY: the caller's: the instructions exist.
                    unsafe { $add(a, b) }
                }

                #[inline(always)]
                unsafe fn totals(x: [Self::C; STREAMS], to: *mut Self::Sum) {
                    // SAFETY: the caller's: the instructions exist, and there is space for as many sums as
                    // vectors.
                    unsafe {
                        let add = |low: __m512d, high: __m512d| $back($add($into(low), $into(high)));
                        let halves = |a, b| {
                            let (a, b) = ($back(a), $back(b));
                            add(_mm512_shuffle_f64x2::<0x44>(a, b), _mm512_shuffle_f64x2::<0xee>(a, b))
                        };
                        let quarters = |a, b| {
                            add(_mm512_shuffle_f64x2::<0x88>(a, b), _mm512_shuffle_f64x2::<0xdd>(a, b))
                        };
                        let [a, b, c, d, e, f, g, h] = x;
                        let low = quarters(halves(a, b), halves(c, d));
                        let high = quarters(halves(e, f), halves(g, h));
                        $rest(low, high, add, to.cast());
                    }
                }
            }
        };
    }

    #[inline(always)]
    unsafe fn of_64(low: __m512d, high: __m512d, add: impl Fn(__m512d, __m512d) -> __m512d, to: *mut f64) {
        // SAFETY: the caller's.
        unsafe {
            let sums = add(_mm512_unpacklo_pd(low, high), _mm512_unpackhi_pd(low, high));
            let order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
            _mm512_storeu_pd(to, _mm512_permutexvar_pd(order, sums));
        }
    }

    /// The same down to eighths and sixteenths.
    #[inline(always)]
    unsafe fn of_32(low: __m512d, high: __m512d, add: impl Fn(__m512d, __m512d) -> __m512d, to: *mut f32) {
        // SAFETY: the caller's.
        unsafe {
            let pairs = add(_mm512_unpacklo_pd(low, high), _mm512_unpackhi_pd(low, high));
            let swapped = _mm512_permute_ps::<0b1011_0001>(_mm512_castpd_ps(pairs));
            let sums = _mm512_castpd_ps(add(pairs, _mm512_castps_pd(swapped)));
            let order = _mm512_setr_epi32(0, 4, 8, 12, 2, 6, 10, 14, 0, 0, 0, 0, 0, 0, 0, 0);
            _mm256_storeu_ps(to, _mm512_castps512_ps256(_mm512_permutexvar_ps(order, sums)));
        }
    }

    total!(WideF32, _mm512_add_ps, _mm512_castpd_ps, _mm512_castps_pd, of_32);
    total!(WideI32, _mm512_add_epi32, _mm512_castpd_si512, _mm512_castsi512_pd, of_32);
    total!(WideF64, _mm512_add_pd, std::convert::identity, std::convert::identity, of_64);
    total!(WideI64, _mm512_add_epi64, _mm512_castpd_si512, _mm512_castsi512_pd, of_64);

    /// `R` rows whose terms are contiguous, by `U` vectors at a time.
    #[inline(always)]
    unsafe fn rows<S, V, E, const R: usize, const U: usize>(block: &Block, row: usize)
    where
        S: Step<A = V, B = V, C = V, Word = <S as Step>::Sum, Sum: Number> + Total,
        V: Copy,
        E: Widen<S>,
    {
        // SAFETY: the caller's: the rows are there.
        unsafe {
            let Block { matrix, stride, vector, terms, sums, .. } = *block;
            let from = matrix.cast::<E>().add(row * stride);
            let x = vector.cast::<S::Word>();
            let mut all = [[S::zero(); U]; R];
            let mut term = 0;
            while term + U * S::N <= terms {
                let words: [V; U] = std::array::from_fn(|u| S::load(x.add(term + u * S::N)));
                for r in 0..R {
                    for u in 0..U {
                        let a = E::widen(from.add(r * stride + term + u * S::N), S::N);
                        all[r][u] = S::madd(a, words[u], all[r][u]);
                    }
                }
                term += U * S::N;
            }
            while term < terms {
                let n = S::N.min(terms - term);
                let word = S::load_part(x.add(term), n);
                for r in 0..R {
                    all[r][0] = S::madd(E::widen(from.add(r * stride + term), n), word, all[r][0]);
                }
                term += n;
            }
            let mut vectors = [S::zero(); STREAMS];
            for r in 0..R {
                vectors[r] = all[r].into_iter().reduce(|a, b| S::plus(a, b)).unwrap_or_else(|| S::zero());
            }
            let mut totals = [<S::Sum>::default(); STREAMS];
            S::totals(vectors, totals.as_mut_ptr());
            let sums = sums.cast::<S::Sum>().add(row);
            for r in 0..R {
                *sums.add(r) = totals[r];
            }
        }
    }

    #[inline(always)]
    unsafe fn all_rows<S, V, E>(block: &Block)
    where
        S: Step<A = V, B = V, C = V, Word = <S as Step>::Sum, Sum: Number> + Total,
        V: Copy,
        E: Widen<S>,
    {
        let mut row = 0;
        if block.terms < WIDE * S::N {
            // No sums side by side in a row: several rows are. The sums are those of rows one by one.
            // SAFETY: the caller's.
            unsafe {
                while row + STREAMS <= block.rows {
                    rows::<S, V, E, STREAMS, 1>(block, row);
                    row += STREAMS;
                }
                while row < block.rows {
                    rows::<S, V, E, 1, 1>(block, row);
                    row += 1;
                }
            }
            return;
        }
        // Rows that are shorter than a page are one stream, which the processor follows from one to the next;
        // near the processor they are better multiplied side by side.
        let bytes = block.terms * size_of::<E>();
        let follows = bytes < 4096 && block.rows * block.stride * size_of::<E>() > sizes::from(NEAR);
        let streams = if follows { 0 } else { block.rows / STREAMS };
        // SAFETY: the caller's.
        unsafe {
            while row < streams * STREAMS {
                rows::<S, V, E, STREAMS, 2>(block, row);
                row += STREAMS;
            }
            while row < block.rows {
                rows::<S, V, E, 1, WIDE>(block, row);
                row += 1;
            }
        }
    }

    kernels! {
        "avx512f,avx512vl,avx512bw,avx512dq";
        F32, F32: f32_of_f32 WideF32, __m512, f32;
        F32, BF16: f32_of_bf16 WideF32, __m512, bf16;
        F32, F16: f32_of_f16 WideF32, __m512, f16;
        F64, F64: f64_of_f64 WideF64, __m512d, f64;
        I32, S32: i32_of_s32 WideI32, __m512i, i32;
        I32, U32: i32_of_u32 WideI32, __m512i, i32;
        I32, S16: i32_of_s16 WideI32, __m512i, i16;
        I32, S8: i32_of_s8 WideI32, __m512i, i8;
        I32, U8: i32_of_u8 WideI32, __m512i, u8;
        I64, S64: i64_of_s64 WideI64, __m512i, i64;
        I64, U64: i64_of_u64 WideI64, __m512i, i64;
    }
}
