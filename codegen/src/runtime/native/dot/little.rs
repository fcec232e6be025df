//! Batches of products of little matrices: each is computed by one thread from where its operands lie; nothing is packed.
//!
//! | operands | how |
//! |---|---|
//! | columns of the right one are neighbours | rows of the result are vectors of columns, a few rows at a time |
//! | terms are neighbours in both | sixteen elements of the result at a time: vectors of terms are summed, then turned over and added |
//!
//! **Invariant:** how an element is summed depends on the shape alone.

use hlo::ElementType;

use super::operand::{Field, Operand};
use super::product::Extents;
use super::tile::Features;

/// Multiplications of a matrix, at most: larger ones are worth packing.
const LARGEST: usize = 1 << 15;
/// Elements of a result, at most, that are sums over vectors of terms.
const ELEMENTS: usize = 64;
/// Columns, at most, where these are neighbours.
const COLUMNS: usize = 64;
/// Matrices, at least.
const MATRICES: usize = 8;
/// Multiplications of a chunk.
const CHUNK: usize = 1 << 16;

/// How operands lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    Columns,
    Terms,
}

/// What to do. Distances are in elements.
#[derive(Clone, Copy, Debug)]
pub(super) struct Little {
    extents: Extents,
    form: Form,
    /// Of rows and terms of the left operand.
    left: [isize; 2],
    /// Of columns and terms of the right one.
    right: [isize; 2],
}

impl Little {
    /// For these operands; `None` if they are large, few, no `f32` or lie in another way.
    pub(super) fn new(
        field: Field,
        extents: Extents,
        lhs: &Operand,
        rhs: &Operand,
        result: ElementType,
    ) -> Option<Little> {
        let Extents { batch, m, n, k } = extents;
        let f32s = [lhs.ty, rhs.ty, result].iter().all(|&ty| ty == ElementType::F32);
        let work = m.saturating_mul(n).saturating_mul(k);
        if field != Field::F32 || !f32s || !(1..=LARGEST).contains(&work) || batch < MATRICES {
            return None;
        }
        if lhs.conversion.is_some() || rhs.conversion.is_some() || !Features::here().avx512 {
            return None;
        }
        let left = [lhs.rows.single()?, lhs.terms.single()?];
        let right = [rhs.rows.single()?, rhs.terms.single()?];
        let form = if (right[0] == 1 || n == 1) && n <= COLUMNS {
            Form::Columns
        } else if (left[1] == 1 && right[1] == 1 || k == 1) && m * n <= ELEMENTS {
            Form::Terms
        } else {
            return None;
        };
        Some(Little { extents, form, left, right })
    }

    /// Matrices of a chunk.
    pub(super) fn chunk(&self) -> usize {
        let Extents { batch, m, n, k } = self.extents;
        (CHUNK / (m * n * k)).clamp(1, batch)
    }

    /// Computes the products of these matrices, whose first elements `operands` gives.
    ///
    /// # Safety
    /// They are there, and `to`, the place of the first one's result, has room for all results one after the other.
    pub(super) unsafe fn run(
        &self,
        matrices: std::ops::Range<usize>,
        operands: &dyn Fn(usize) -> [*const f32; 2],
        to: *mut f32,
    ) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the caller's; the machine has AVX-512, or this would not have been made.
        unsafe {
            match self.form {
                Form::Columns => wide::columns(self, matrices, operands, to),
                Form::Terms => wide::terms(self, matrices, operands, to),
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = (matrices, operands, to, self.form, self.left, self.right);
    }
}

#[cfg(target_arch = "x86_64")]
mod wide {
    use std::arch::x86_64::*;
    use std::ops::Range;

    use super::{Extents, Little};

    /// The first `n` lanes of a vector, all if there are more.
    fn first(n: usize) -> __mmask16 {
        ((1u32 << n.min(16)) - 1) as __mmask16
    }

    /// # Safety
    /// As [`Little::run`].
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn columns(
        little: &Little,
        matrices: Range<usize>,
        operands: &dyn Fn(usize) -> [*const f32; 2],
        to: *mut f32,
    ) {
        let Extents { m, n, .. } = little.extents;
        let start = matrices.start;
        for matrix in matrices {
            let [a, b] = operands(matrix);
            let mut row = 0;
            while row < m {
                let rows = (m - row).min(4);
                let a = a.wrapping_offset(row as isize * little.left[0]);
                // SAFETY: the caller's: the rows are there.
                unsafe {
                    let to = to.add(((matrix - start) * m + row) * n);
                    macro_rules! tile {
                        ($($vectors:literal),*) => {
                            match (n.div_ceil(16), rows) {
                                $(
                                    ($vectors, 4) => tile::<4, $vectors>(little, a, b, to),
                                    ($vectors, 3) => tile::<3, $vectors>(little, a, b, to),
                                    ($vectors, 2) => tile::<2, $vectors>(little, a, b, to),
                                    ($vectors, _) => tile::<1, $vectors>(little, a, b, to),
                                )*
                                (_, _) => {}
                            }
                        };
                    }
                    tile!(1, 2, 3, 4);
                }
                row += rows;
            }
        }
    }

    /// Some rows by all columns.
    #[target_feature(enable = "avx512f")]
    #[inline]
    unsafe fn tile<const ROWS: usize, const VECTORS: usize>(
        little: &Little,
        a: *const f32,
        b: *const f32,
        to: *mut f32,
    ) {
        let Extents { n, k, .. } = little.extents;
        let mask = |v: usize| first(n - 16 * v);
        let mut sums = [[_mm512_setzero_ps(); VECTORS]; ROWS];
        for term in 0..k as isize {
            let (a, b) =
                (a.wrapping_offset(term * little.left[1]), b.wrapping_offset(term * little.right[1]));
            // SAFETY: the caller's; what is masked is not touched.
            unsafe {
                let mut line = [_mm512_setzero_ps(); VECTORS];
                for (v, line) in line.iter_mut().enumerate() {
                    *line = _mm512_maskz_loadu_ps(mask(v), b.add(16 * v));
                }
                for (row, sums) in sums.iter_mut().enumerate() {
                    let x = _mm512_set1_ps(*a.offset(row as isize * little.left[0]));
                    for (sum, &line) in sums.iter_mut().zip(&line) {
                        *sum = _mm512_fmadd_ps(x, line, *sum);
                    }
                }
            }
        }
        for (row, sums) in sums.iter().enumerate() {
            for (v, &sum) in sums.iter().enumerate() {
                // SAFETY: as above.
                unsafe { _mm512_mask_storeu_ps(to.add(row * n + 16 * v), mask(v), sum) };
            }
        }
    }

    /// # Safety
    /// As [`Little::run`].
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn terms(
        little: &Little,
        matrices: Range<usize>,
        operands: &dyn Fn(usize) -> [*const f32; 2],
        to: *mut f32,
    ) {
        let Extents { m, n, k, .. } = little.extents;
        let all = m * n;
        let mut begin = 0;
        while begin < all {
            let count = (all - begin).min(16);
            // Beyond the last element the last one again.
            let mut rows = [[0isize; 2]; 16];
            for (i, [a, b]) in rows.iter_mut().enumerate() {
                let element = begin + i.min(count - 1);
                (*a, *b) =
                    ((element / n) as isize * little.left[0], (element % n) as isize * little.right[0]);
            }
            let start = matrices.start;
            for matrix in matrices.clone() {
                let [a, b] = operands(matrix);
                let mut sums = [_mm512_setzero_ps(); 16];
                let mut term = 0;
                while term < k {
                    let mask = first(k - term);
                    for (sum, [row, column]) in sums.iter_mut().zip(&rows) {
                        // SAFETY: the caller's; what is masked is not touched.
                        unsafe {
                            let x = _mm512_maskz_loadu_ps(mask, a.offset(*row).add(term));
                            let y = _mm512_maskz_loadu_ps(mask, b.offset(*column).add(term));
                            *sum = _mm512_fmadd_ps(x, y, *sum);
                        }
                    }
                    term += 16;
                }
                let to = to.wrapping_add((matrix - start) * all + begin);
                // SAFETY: as above.
                unsafe { _mm512_mask_storeu_ps(to, first(count), added(sums)) };
            }
            begin += count;
        }
    }

    /// The sum of the lanes of each vector.
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn added(x: [__m512; 16]) -> __m512 {
        let zero = _mm512_setzero_ps();
        let (mut pairs, mut fours, mut eights) = ([zero; 8], [zero; 4], [zero; 2]);
        for (i, pair) in pairs.iter_mut().enumerate() {
            let (a, b) = (x[2 * i], x[2 * i + 1]);
            *pair = _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
        }
        for (i, four) in fours.iter_mut().enumerate() {
            let (a, b) = (_mm512_castps_pd(pairs[2 * i]), _mm512_castps_pd(pairs[2 * i + 1]));
            let (low, high) = (_mm512_unpacklo_pd(a, b), _mm512_unpackhi_pd(a, b));
            *four = _mm512_add_ps(_mm512_castpd_ps(low), _mm512_castpd_ps(high));
        }
        for (i, eight) in eights.iter_mut().enumerate() {
            let (a, b) = (fours[2 * i], fours[2 * i + 1]);
            *eight = _mm512_add_ps(_mm512_shuffle_f32x4::<0x44>(a, b), _mm512_shuffle_f32x4::<0xee>(a, b));
        }
        let [a, b] = eights;
        _mm512_add_ps(_mm512_shuffle_f32x4::<0x88>(a, b), _mm512_shuffle_f32x4::<0xdd>(a, b))
    }
}
