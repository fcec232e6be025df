//! Small matrices of `f32` without contiguous columns: sums over vectors of terms, or over matrices side by
//! side.

use std::arch::x86_64::*;
use std::ops::Range;

use super::{BatchedSmall, Extents, MAX_FLAT_TERMS, Operands};

/// The first `n` lanes of a vector, all if there are more.
fn first(n: usize) -> __mmask16 {
    ((1u32 << n.min(16)) - 1) as __mmask16
}

/// # Safety
/// As [`BatchedSmall::products`].
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn terms(
    small: &BatchedSmall,
    matrices: Range<usize>,
    operands: Operands<'_, f32>,
    to: *mut f32,
) {
    let Extents { m, n, k, .. } = small.extents;
    let all = m * n;
    let mut begin = 0;
    while begin < all {
        let count = (all - begin).min(16);
        // Beyond the last element the last one again.
        let mut rows = [[0isize; 2]; 16];
        for (i, [a, b]) in rows.iter_mut().enumerate() {
            let element = begin + i.min(count - 1);
            (*a, *b) = ((element / n) as isize * small.left[0], (element % n) as isize * small.right[0]);
        }
        let start = matrices.start;
        for matrix in matrices.clone() {
            let [a, b] = operands.of(matrix);
            let starts = rows.map(|[row, column]| [a.wrapping_offset(row), b.wrapping_offset(column)]);
            let to = to.wrapping_add((matrix - start) * all + begin);
            // SAFETY: the caller's.
            unsafe { _mm512_mask_storeu_ps(to, first(count), sixteen(&starts, k)) };
        }
        begin += count;
    }
}

/// Sixteen elements of as many matrices as it takes.
///
/// # Safety
/// As [`BatchedSmall::products`].
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn flat_terms(
    small: &BatchedSmall,
    matrices: Range<usize>,
    operands: Operands<'_, f32>,
    to: *mut f32,
) {
    let Extents { m, n, k, .. } = small.extents;
    let all = matrices.len() * m * n;
    let (mut matrix, mut row, mut column) = (matrices.start, 0, 0);
    let mut at = [std::ptr::null(); 2];
    let mut starts = [at; 16];
    let mut done = 0;
    while done < all {
        let count = (all - done).min(16);
        // Beyond the last element the last one again.
        for start in &mut starts[..count] {
            if row == 0 && column == 0 {
                at = operands.of(matrix);
            }
            *start = [
                at[0].wrapping_offset(row as isize * small.left[0]),
                at[1].wrapping_offset(column as isize * small.right[0]),
            ];
            column += 1;
            if column == n {
                (row, column) = (row + 1, 0);
            }
            if row == m {
                (matrix, row) = (matrix + 1, 0);
            }
        }
        let last = starts[count - 1];
        starts[count..].fill(last);
        // SAFETY: the caller's.
        unsafe { _mm512_mask_storeu_ps(to.add(done), first(count), sixteen(&starts, k)) };
        done += count;
    }
}

/// An element of each of sixteen matrices.
#[derive(Clone, Copy)]
struct Lanes {
    step: isize,
    /// Offsets in elements from the first matrix.
    offsets: __m512i,
}

impl Lanes {
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn new(step: isize) -> Self {
        let number = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        Self { step, offsets: _mm512_mullo_epi32(number, _mm512_set1_epi32(step as i32)) }
    }

    /// # Safety
    /// Elements of the lanes that `some` names are there, at least one.
    #[target_feature(enable = "avx512f")]
    #[inline]
    unsafe fn load(self, some: __mmask16, first: *const f32) -> __m512 {
        // SAFETY: the caller's; what is masked is not touched.
        unsafe {
            match self.step {
                0 => _mm512_set1_ps(*first),
                1 => _mm512_maskz_loadu_ps(some, first),
                _ => _mm512_mask_i32gather_ps::<4>(_mm512_setzero_ps(), some, self.offsets, first),
            }
        }
    }
}

/// # Safety
/// As [`BatchedSmall::products`].
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn lanes(
    small: &BatchedSmall,
    matrices: Range<usize>,
    operands: Operands<'_, f32>,
    to: *mut f32,
) {
    let Extents { m, n, k, .. } = small.extents;
    let steps = operands.steps.expect("invariant: this form is of single steps");
    let [left, right] = [Lanes::new(steps[0]), Lanes::new(steps[1])];
    let results = Lanes::new((m * n) as isize);
    let mut row = [_mm512_setzero_ps(); MAX_FLAT_TERMS];
    for matrix in matrices.clone().step_by(16) {
        let some = first(matrices.end - matrix);
        let [a, b] = operands.of(matrix);
        let to = to.wrapping_add((matrix - matrices.start) * m * n);
        for i in 0..m {
            let a = a.wrapping_offset(i as isize * small.left[0]);
            for (term, x) in (0..).zip(&mut row[..k]) {
                // SAFETY: the caller's: the row is there in each of these matrices.
                *x = unsafe { left.load(some, a.wrapping_offset(term * small.left[1])) };
            }
            for j in 0..n {
                let b = b.wrapping_offset(j as isize * small.right[0]);
                let mut sum = _mm512_setzero_ps();
                for (term, &x) in (0..).zip(&row[..k]) {
                    // SAFETY: the caller's: the column is there in each of these matrices.
                    let y = unsafe { right.load(some, b.wrapping_offset(term * small.right[1])) };
                    sum = _mm512_fmadd_ps(x, y, sum);
                }
                let to = to.wrapping_add(i * n + j);
                // SAFETY: the caller's: there is space for the results of these matrices.
                unsafe { _mm512_mask_i32scatter_ps::<4>(to, some, results.offsets, sum) };
            }
        }
    }
}

/// # Safety
/// As [`BatchedSmall::products`].
#[target_feature(enable = "avx512f,fma")]
pub(super) unsafe fn listed(
    [rows, left, columns, right]: &[Vec<isize>; 4],
    matrices: Range<usize>,
    operands: Operands<'_, f32>,
    mut to: *mut f32,
) {
    for matrix in matrices {
        let [a, b] = operands.of(matrix);
        for &row in rows {
            for &column in columns {
                let (a, b) = (a.wrapping_offset(row), b.wrapping_offset(column));
                // Four sums, which do not wait for one another.
                let mut sums = [0.0f32; 4];
                for (left, right) in left.chunks(4).zip(right.chunks(4)) {
                    for ((sum, &x), &y) in sums.iter_mut().zip(left).zip(right) {
                        // SAFETY: the caller's.
                        *sum = unsafe { *a.offset(x) }.mul_add(unsafe { *b.offset(y) }, *sum);
                    }
                }
                // SAFETY: the caller's: there is space for the results of all of these matrices.
                unsafe {
                    *to = (sums[0] + sums[1]) + (sums[2] + sums[3]);
                    to = to.add(1);
                }
            }
        }
    }
}

/// Sixteen sums of `k` products each, of contiguous terms from these addresses on.
///
/// # Safety
/// The terms are there.
#[target_feature(enable = "avx512f")]
#[inline]
unsafe fn sixteen(starts: &[[*const f32; 2]; 16], k: usize) -> __m512 {
    let mut sums = [_mm512_setzero_ps(); 16];
    let mut term = 0;
    while term < k {
        let mask = first(k - term);
        for (sum, [a, b]) in sums.iter_mut().zip(starts) {
            // SAFETY: the caller's; what is masked is not touched.
            unsafe {
                let x = _mm512_maskz_loadu_ps(mask, a.add(term));
                let y = _mm512_maskz_loadu_ps(mask, b.add(term));
                *sum = _mm512_fmadd_ps(x, y, *sum);
            }
        }
        term += 16;
    }
    added(sums)
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
