//! Packing by transposition in registers, 16 by 16 elements at a time: of rows with contiguous terms into
//! columns, and back. Elements have 32 bits, or are converted to 32 bits.

#![allow(clippy::needless_range_loop, reason = "registers and rows go together")]

use std::arch::x86_64::*;

use hlo::ElementType;

/// How terms of a row become words of 32 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Terms {
    /// They are such, but for bits that are changed.
    Words {
        /// Those.
        flip: u32,
    },
    /// `bf16` as `f32`.
    Bf16,
    /// `f16` as `f32`.
    F16,
}

impl Terms {
    /// Those of a type as `f32`, if it is one of these.
    pub fn of(ty: ElementType) -> Option<Terms> {
        match ty {
            ElementType::F32 => Some(Terms::Words { flip: 0 }),
            ElementType::BF16 => Some(Terms::Bf16),
            ElementType::F16 => Some(Terms::F16),
            _other => None,
        }
    }
}

/// Writes `length` terms of each row, which begin at the offsets `rows` (in units of that many bytes) from
/// `base`, as columns of `out`: term `t` of row `i` to `out[t * width + i]`.
///
/// # Safety
/// The machine has AVX-512; the elements are there, and so is space for them.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq")]
pub unsafe fn pack(
    base: *const u8,
    rows: &[isize],
    unit: usize,
    length: usize,
    terms: Terms,
    out: *mut i32,
    width: usize,
) {
    // SAFETY: the caller's.
    unsafe {
        let row = |i: usize| base.offset(rows[i] * unit as isize);
        let (rows, out, pitch) = (rows.len(), out.cast(), size_of::<i32>() * width);
        match terms {
            Terms::Words { flip } => side_by_side::<4>(row, rows, length, words(flip), out, pitch),
            Terms::Bf16 => side_by_side::<2>(row, rows, length, of_bf16, out, pitch),
            Terms::F16 => side_by_side::<2>(row, rows, length, of_f16, out, pitch),
        }
    }
}

/// Transposes: element `t < length` of part `i` goes to element `i` of row `t` of `out`, whose rows are
/// `pitch` bytes apart. Elements have 32 bits.
///
/// # Safety
/// The machine has AVX-512; the elements are there, and so is space for them. Nothing need be aligned.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq")]
pub unsafe fn columns(parts: &[*const u8], length: usize, out: *mut u8, pitch: usize) {
    // SAFETY: the caller's.
    unsafe { side_by_side::<4>(|i| parts[i], parts.len(), length, words(0), out, pitch) }
}

/// Reads words of which some bits are changed.
#[inline(always)]
fn words(flip: u32) -> impl Fn(__mmask16, *const u8) -> __m512i {
    // SAFETY: of both, the caller's of `side_by_side`: the machine has AVX-512, and what the mask says is
    // there.
    move |present, from| unsafe {
        let flip = _mm512_set1_epi32(flip as i32);
        _mm512_xor_si512(_mm512_maskz_loadu_epi32(present, from.cast()), flip)
    }
}

/// Reads `bf16` as `f32`.
#[inline(always)]
fn of_bf16(present: __mmask16, from: *const u8) -> __m512i {
    // SAFETY: as of `words`.
    unsafe {
        let bits = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(present, from.cast()));
        _mm512_slli_epi32::<16>(bits)
    }
}

/// Reads `f16` as `f32`.
#[inline(always)]
fn of_f16(present: __mmask16, from: *const u8) -> __m512i {
    // SAFETY: as of `words`.
    unsafe { _mm512_castps_si512(_mm512_cvtph_ps(_mm256_maskz_loadu_epi16(present, from.cast()))) }
}

/// The prefetch distance in blocks: 16 rows that are pages apart are more streams than hardware prefetchers
/// follow.
const PREFETCHED_BLOCKS: usize = 4;

/// Transposes rows, given by their addresses, in blocks of 16 by 16 elements of that many bytes to columns;
/// `read` makes words of elements that are there.
///
/// # Safety
/// As of [`columns`].
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq")]
unsafe fn side_by_side<const BYTES: usize>(
    row: impl Fn(usize) -> *const u8,
    rows: usize,
    length: usize,
    read: impl Fn(__mmask16, *const u8) -> __m512i,
    out: *mut u8,
    pitch: usize,
) {
    let word = size_of::<i32>();
    for first in (0..rows).step_by(16) {
        let count = (rows - first).min(16);
        let lanes = ((1u32 << count) - 1) as __mmask16;
        for term in (0..length).step_by(16) {
            let terms = (length - term).min(16);
            let present = ((1u32 << terms) - 1) as __mmask16;
            let mut block = [_mm512_setzero_si512(); 16];
            // SAFETY: the caller's: masked lanes are not touched.
            unsafe {
                for i in 0..count {
                    block[i] = read(present, row(first + i).add(BYTES * term));
                }
                if count == 16 {
                    // Behind the end of a row: of the row that is transposed 16 rows later.
                    let at = term + 16 * PREFETCHED_BLOCKS;
                    let later = 16 * row(1).addr().wrapping_sub(row(0).addr()) as isize;
                    let far = match at.checked_sub(length.next_multiple_of(16)) {
                        None => (BYTES * at) as isize,
                        Some(at) => later.wrapping_add((BYTES * at) as isize),
                    };
                    for i in 0..16 {
                        _mm_prefetch::<{ _MM_HINT_T0 }>(row(first + i).wrapping_offset(far).cast());
                    }
                }
                let to = out.add(term * pitch + word * first);
                if count <= 4 {
                    few(by_lanes([block[0], block[1], block[2], block[3]]), count, terms, to, pitch);
                    continue;
                }
                for (t, words) in transposed(block).into_iter().enumerate().take(terms) {
                    _mm512_mask_storeu_epi32(to.add(t * pitch).cast(), lanes, words);
                }
            }
        }
    }
}

/// Writes columns of at most four rows, as [`by_lanes`] gives them.
///
/// # Safety
/// As of [`columns`].
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq")]
unsafe fn few(block: [__m512i; 4], count: usize, terms: usize, to: *mut u8, pitch: usize) {
    // SAFETY: the caller's: masked lanes are not touched; four vectors are sixteen of four elements.
    unsafe {
        if count == 4 && pitch == 16 {
            for (i, words) in lanes_transposed(block).into_iter().enumerate() {
                let present = (u64::MAX >> (64 - 4 * terms) >> (16 * i)) as __mmask16;
                _mm512_mask_storeu_epi32(to.add(64 * i).cast(), present, words);
            }
            return;
        }
        let lanes = ((1u32 << count) - 1) as __mmask8;
        let block: [[__m128i; 4]; 4] = std::mem::transmute(block);
        for t in 0..terms {
            _mm_mask_storeu_epi32(to.add(t * pitch).cast(), lanes, block[t % 4][t / 4]);
        }
    }
}

/// The inverse of [`columns`], for at most 16 parts: element `i` of row `t < length` goes to element `t` of
/// part `i`.
///
/// # Safety
/// As there.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq")]
pub unsafe fn apart(from: *const u8, pitch: usize, length: usize, parts: &[*mut u8]) {
    let lanes = ((1u32 << parts.len()) - 1) as __mmask16;
    for first in (0..length).step_by(16) {
        let count = (length - first).min(16);
        let present = ((1u32 << count) - 1) as __mmask16;
        let mut block = [_mm512_setzero_si512(); 16];
        // SAFETY: the caller's: masked lanes are not touched.
        unsafe {
            for (t, words) in block[..count].iter_mut().enumerate() {
                *words = _mm512_maskz_loadu_epi32(lanes, from.add((first + t) * pitch).cast());
            }
            for (&words, &part) in transposed(block).iter().zip(parts) {
                _mm512_mask_storeu_epi32(part.add(4 * first).cast(), present, words);
            }
        }
    }
}

/// Columns `4 l + j` of 4 rows, in lane `l` of vector `j`.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq")]
fn by_lanes(r: [__m512i; 4]) -> [__m512i; 4] {
    let pairs = |i: usize| [_mm512_unpacklo_epi32(r[i], r[i + 1]), _mm512_unpackhi_epi32(r[i], r[i + 1])];
    let ([a, b], [c, d]) = (pairs(0), pairs(2));
    [
        _mm512_unpacklo_epi64(a, c),
        _mm512_unpackhi_epi64(a, c),
        _mm512_unpacklo_epi64(b, d),
        _mm512_unpackhi_epi64(b, d),
    ]
}

/// Lane `j` of vector `l`: lane `l` of vector `j`.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq")]
fn lanes_transposed(b: [__m512i; 4]) -> [__m512i; 4] {
    let low = |i: usize| _mm512_shuffle_i32x4::<0b01_00_01_00>(b[i], b[i + 1]);
    let high = |i: usize| _mm512_shuffle_i32x4::<0b11_10_11_10>(b[i], b[i + 1]);
    let even = |x, y| _mm512_shuffle_i32x4::<0b10_00_10_00>(x, y);
    let odd = |x, y| _mm512_shuffle_i32x4::<0b11_01_11_01>(x, y);
    [even(low(0), low(2)), odd(low(0), low(2)), even(high(0), high(2)), odd(high(0), high(2))]
}

/// The 16 columns of 16 rows.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq")]
fn transposed(r: [__m512i; 16]) -> [__m512i; 16] {
    // Vector j of the four rows from 4 i on holds in its lane l elements 4 l + j: exchange lanes among the
    // four i.
    let rows = |i: usize| by_lanes([r[i], r[i + 1], r[i + 2], r[i + 3]]);
    let all = [rows(0), rows(4), rows(8), rows(12)];
    let mut out = r;
    for j in 0..4 {
        let lanes = lanes_transposed([all[0][j], all[1][j], all[2][j], all[3][j]]);
        for l in 0..4 {
            out[4 * l + j] = lanes[l];
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::Terms;
    use crate::isa::Features;

    #[test]
    fn rows_become_columns() {
        if !Features::here().avx512 {
            return;
        }
        let from: Vec<i32> = (0..2000).collect();
        for rows in [1_usize, 2, 3, 4, 5, 15, 16, 17, 33] {
            for length in [1, 3, 4, 15, 16, 20, 48, 55] {
                for width in [rows, rows + 1, rows.next_multiple_of(16)] {
                    let offsets: Vec<isize> = (0..rows as isize).map(|i| i * 57 + i % 3).collect();
                    let mut out = vec![-1; width * length + 1];
                    // SAFETY: the machine has the vectors; both have space for all of it.
                    unsafe {
                        let (from, out) = (from.as_ptr().cast(), out.as_mut_ptr());
                        super::pack(from, &offsets, 4, length, Terms::Words { flip: 1 }, out, width);
                    };
                    for (at, &x) in out.iter().enumerate() {
                        let (term, row) = (at / width, at % width);
                        let wanted = offsets.get(row).filter(|_| term < length);
                        assert_eq!(
                            x,
                            wanted.map_or(-1, |o| (*o as i32 + term as i32) ^ 1),
                            "{rows} {length} {width}"
                        );
                    }
                }
            }
        }
    }
}
