//! Packing by transposition in registers, 16 by 16 elements at a time (8 by 8 without AVX-512): of rows with
//! contiguous terms into columns, and back. Elements have 32 bits, or are converted to 32 bits.

#![allow(clippy::needless_range_loop, reason = "registers and rows go together")]

use std::arch::x86_64::*;

use hlo::ElementType;

use crate::isa::Features;

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
/// The machine has AVX2; the elements are there, and so is space for them.
#[inline]
pub unsafe fn pack(
    base: *const u8,
    rows: &[isize],
    unit: usize,
    length: usize,
    terms: Terms,
    out: *mut i32,
    width: usize,
) {
    // SAFETY: the caller's; the machine has the vectors.
    unsafe {
        if Features::here().avx512 {
            wide_pack(base, rows, unit, length, terms, out, width);
        } else {
            narrow::pack(base, rows, unit, length, terms, out, width);
        }
    }
}

/// As [`pack`].
///
/// # Safety
/// As there, and the machine has AVX-512.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq")]
unsafe fn wide_pack(
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
/// The machine has AVX2; the elements are there, and so is space for them. Nothing need be aligned.
#[inline]
pub unsafe fn columns(parts: &[*const u8], length: usize, out: *mut u8, pitch: usize) {
    // SAFETY: the caller's; the machine has the vectors.
    unsafe {
        if Features::here().avx512 {
            wide_columns(parts, length, out, pitch);
        } else {
            narrow::columns(parts, length, out, pitch);
        }
    }
}

/// As [`columns`].
///
/// # Safety
/// As there, and the machine has AVX-512.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq")]
unsafe fn wide_columns(parts: &[*const u8], length: usize, out: *mut u8, pitch: usize) {
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
/// As of [`wide_columns`].
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
/// As of [`wide_columns`].
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
/// As there, and the machine has AVX-512.
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

/// The same for AVX2, 8 by 8 elements at a time.
mod narrow {
    use std::arch::x86_64::*;

    use super::Terms;

    /// As [`super::pack`].
    ///
    /// # Safety
    /// As there.
    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    pub(super) unsafe fn pack(
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

    /// As [`super::columns`].
    ///
    /// # Safety
    /// As there.
    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    pub(super) unsafe fn columns(parts: &[*const u8], length: usize, out: *mut u8, pitch: usize) {
        // SAFETY: the caller's.
        unsafe { side_by_side::<4>(|i| parts[i], parts.len(), length, words(0), out, pitch) }
    }

    /// Loads words, and flips the bits that are set in `flip`.
    #[inline(always)]
    fn words(flip: u32) -> impl Fn(usize, *const u8) -> __m256i {
        // SAFETY: of all three, the caller's of `side_by_side`: as many elements are there.
        move |present, from| unsafe {
            let flip = _mm256_set1_epi32(flip as i32);
            let words = if present == 8 {
                _mm256_loadu_si256(from.cast())
            } else {
                let lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
                _mm256_maskload_epi32(
                    from.cast(),
                    _mm256_cmpgt_epi32(_mm256_set1_epi32(present as i32), lanes),
                )
            };
            _mm256_xor_si256(words, flip)
        }
    }

    /// Up to eight elements of 16 bits.
    #[inline(always)]
    unsafe fn halves(present: usize, from: *const u8) -> __m128i {
        // SAFETY: the caller's.
        unsafe {
            if present == 8 {
                return _mm_loadu_si128(from.cast());
            }
            let mut some = [0u16; 8];
            std::ptr::copy_nonoverlapping(from.cast(), some.as_mut_ptr(), present);
            _mm_loadu_si128(some.as_ptr().cast())
        }
    }

    /// Reads `bf16` as `f32`.
    #[inline(always)]
    fn of_bf16(present: usize, from: *const u8) -> __m256i {
        // SAFETY: as of `words`.
        unsafe { _mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(halves(present, from))) }
    }

    /// Reads `f16` as `f32`.
    #[inline(always)]
    fn of_f16(present: usize, from: *const u8) -> __m256i {
        // SAFETY: as of `words`.
        unsafe { _mm256_castps_si256(_mm256_cvtph_ps(halves(present, from))) }
    }

    /// As the function of that name for AVX-512; `read` is given how many elements are there.
    ///
    /// # Safety
    /// As of [`super::columns`].
    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    unsafe fn side_by_side<const BYTES: usize>(
        row: impl Fn(usize) -> *const u8,
        rows: usize,
        length: usize,
        read: impl Fn(usize, *const u8) -> __m256i,
        out: *mut u8,
        pitch: usize,
    ) {
        for first in (0..rows).step_by(8) {
            let count = (rows - first).min(8);
            for term in (0..length).step_by(8) {
                let terms = (length - term).min(8);
                let mut block = [_mm256_setzero_si256(); 8];
                // SAFETY: the caller's: no more rows, terms and lanes are touched than are there.
                unsafe {
                    for i in 0..count {
                        block[i] = read(terms, row(first + i).add(BYTES * term));
                    }
                    let to = out.add(term * pitch + size_of::<i32>() * first);
                    for (t, words) in transposed(block).into_iter().enumerate().take(terms) {
                        store(to.add(t * pitch).cast(), words, count);
                    }
                }
            }
        }
    }

    /// Writes the first `n` lanes: a masked store takes tens of cycles on AMD's processors.
    #[inline(always)]
    unsafe fn store(to: *mut i32, words: __m256i, n: usize) {
        // SAFETY: the caller's: there is space for them.
        unsafe {
            if n == 8 {
                return _mm256_storeu_si256(to.cast(), words);
            }
            let (mut some, mut at) = (_mm256_castsi256_si128(words), to);
            if n & 4 != 0 {
                _mm_storeu_si128(at.cast(), some);
                (some, at) = (_mm256_extracti128_si256::<1>(words), at.add(4));
            }
            if n & 2 != 0 {
                _mm_storel_epi64(at.cast(), some);
                (some, at) = (_mm_srli_si128::<8>(some), at.add(2));
            }
            if n & 1 != 0 {
                *at = _mm_cvtsi128_si32(some);
            }
        }
    }

    /// The 8 columns of 8 rows.
    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    fn transposed(r: [__m256i; 8]) -> [__m256i; 8] {
        // Element `4 l + j` of the rows from 4 i on, in lane l of vector j.
        let lanes = |i: usize| {
            let pairs =
                |i: usize| (_mm256_unpacklo_epi32(r[i], r[i + 1]), _mm256_unpackhi_epi32(r[i], r[i + 1]));
            let ((a, b), (c, d)) = (pairs(i), pairs(i + 2));
            [
                _mm256_unpacklo_epi64(a, c),
                _mm256_unpackhi_epi64(a, c),
                _mm256_unpacklo_epi64(b, d),
                _mm256_unpackhi_epi64(b, d),
            ]
        };
        let (low, high) = (lanes(0), lanes(4));
        let mut out = r;
        for j in 0..4 {
            out[j] = _mm256_permute2x128_si256::<0x20>(low[j], high[j]);
            out[4 + j] = _mm256_permute2x128_si256::<0x31>(low[j], high[j]);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::Terms;
    use crate::configuration::Configuration;
    use crate::isa::Isa;

    #[test]
    fn rows_become_columns() {
        for isa in [Isa::Avx2, Isa::Avx512] {
            Configuration::new(Some(isa), None, NonZeroU32::MIN).with(words_become_columns);
        }
    }

    fn words_become_columns() {
        let from: Vec<i32> = (0..2000).collect();
        for rows in [1_usize, 2, 3, 4, 5, 6, 7, 8, 13, 15, 16, 17, 33] {
            for length in [1, 3, 4, 8, 9, 15, 16, 20, 48, 55] {
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

    /// Halves that become words, by either vectors: what is beyond rows and terms is not touched.
    #[test]
    fn halves_become_columns() {
        let from: Vec<u16> = (0..900).map(|i| 0x3c00 + i).collect();
        for isa in [Isa::Avx2, Isa::Avx512] {
            for (rows, length) in [(1_usize, 1), (3, 9), (6, 16), (8, 8), (11, 23), (16, 40)] {
                for (terms, wide) in [
                    (Terms::Bf16, (|x| u32::from(x) << 16) as fn(u16) -> u32),
                    (Terms::F16, |x| hlo::half::f16::from_bits(x).to_f32().to_bits()),
                ] {
                    let offsets: Vec<isize> = (0..rows as isize).map(|i| i * 51).collect();
                    let mut out = vec![-1; rows * length + 8];
                    // SAFETY: both have space for all of it.
                    Configuration::new(Some(isa), None, NonZeroU32::MIN).with(|| unsafe {
                        super::pack(from.as_ptr().cast(), &offsets, 2, length, terms, out.as_mut_ptr(), rows);
                    });
                    for (at, &x) in out.iter().enumerate() {
                        let (term, row) = (at / rows, at % rows);
                        let wanted = (term < length).then(|| wide(from[row * 51 + term]) as i32);
                        assert_eq!(x, wanted.unwrap_or(-1), "{rows} {length} {terms:?}");
                    }
                }
            }
        }
    }
}
