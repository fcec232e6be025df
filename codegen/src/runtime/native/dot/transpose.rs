//! Packing of rows whose terms are neighbours, and of columns that are to be such: blocks of 16 by 16 elements of 32 bits, transposed in registers.

use std::arch::x86_64::*;

/// Writes `length` terms of 32 bits of each row, which begin at the offsets `rows` (in units of so many bytes) from `base`, their bits changed by `flip`, as columns of `out`: term `t` of row `i` to `out[t * width + i]`.
///
/// # Safety
/// The machine has AVX-512; the elements are there, and so is room for them.
#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq")]
pub(in crate::runtime::native) unsafe fn pack(
    base: *const u8,
    rows: &[isize],
    unit: usize,
    length: usize,
    flip: u32,
    out: *mut i32,
    width: usize,
) {
    // SAFETY: the caller's.
    unsafe {
        let row = |i: usize| base.offset(rows[i] * unit as isize);
        side_by_side(row, rows.len(), length, flip, out.cast(), size_of::<i32>() * width);
    }
}

/// Writes `length` elements of 32 bits of each part as columns that are neighbours: element `t` of part `i` to `out`, so many bytes for each `t` further on,
/// and `i` elements from there.
///
/// # Safety
/// The machine has AVX-512; the elements are there, and so is room for them. Nothing need be aligned.
#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq")]
pub(in crate::runtime::native) unsafe fn columns(
    parts: &[*const u8],
    length: usize,
    out: *mut u8,
    pitch: usize,
) {
    // SAFETY: the caller's.
    unsafe { side_by_side(|i| parts[i], parts.len(), length, 0, out, pitch) }
}

/// Of so many rows, given by where they begin, blocks of 16 by 16 elements at a time to columns, bits changed by `flip`.
///
/// # Safety
/// As of [`columns`].
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq")]
unsafe fn side_by_side(
    row: impl Fn(usize) -> *const u8,
    rows: usize,
    length: usize,
    flip: u32,
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
                    let words = _mm512_maskz_loadu_epi32(present, row(first + i).add(word * term).cast());
                    block[i] = _mm512_xor_si512(words, _mm512_set1_epi32(flip as i32));
                }
                let block = transposed(block);
                for t in 0..terms {
                    let to = out.add((term + t) * pitch + word * first);
                    _mm512_mask_storeu_epi32(to.cast(), lanes, block[t]);
                }
            }
        }
    }
}

/// The reverse of [`columns`]: writes `length` elements of 32 bits of each of at most 16 neighbouring columns, so many bytes from row to row, to its part.
///
/// # Safety
/// As there.
#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq")]
pub(in crate::runtime::native) unsafe fn apart(
    from: *const u8,
    pitch: usize,
    length: usize,
    parts: &[*mut u8],
) {
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

/// The 16 columns of 16 rows.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq")]
fn transposed(r: [__m512i; 16]) -> [__m512i; 16] {
    let mut a = r;
    // Pairs of elements, then of pairs: 4 x 4 blocks in each 128-bit lane.
    for i in 0..8 {
        a[2 * i] = _mm512_unpacklo_epi32(r[2 * i], r[2 * i + 1]);
        a[2 * i + 1] = _mm512_unpackhi_epi32(r[2 * i], r[2 * i + 1]);
    }
    let mut b = a;
    for i in 0..4 {
        b[4 * i] = _mm512_unpacklo_epi64(a[4 * i], a[4 * i + 2]);
        b[4 * i + 1] = _mm512_unpackhi_epi64(a[4 * i], a[4 * i + 2]);
        b[4 * i + 2] = _mm512_unpacklo_epi64(a[4 * i + 1], a[4 * i + 3]);
        b[4 * i + 3] = _mm512_unpackhi_epi64(a[4 * i + 1], a[4 * i + 3]);
    }
    // b[4 i + j] holds in its lane l the elements 4 l + j of rows 4 i to 4 i + 3: exchange lanes among the four i.
    let mut out = b;
    for j in 0..4 {
        let low = _mm512_shuffle_i32x4::<0b01_00_01_00>(b[j], b[4 + j]);
        let high = _mm512_shuffle_i32x4::<0b11_10_11_10>(b[j], b[4 + j]);
        let low2 = _mm512_shuffle_i32x4::<0b01_00_01_00>(b[8 + j], b[12 + j]);
        let high2 = _mm512_shuffle_i32x4::<0b11_10_11_10>(b[8 + j], b[12 + j]);
        out[j] = _mm512_shuffle_i32x4::<0b10_00_10_00>(low, low2);
        out[4 + j] = _mm512_shuffle_i32x4::<0b11_01_11_01>(low, low2);
        out[8 + j] = _mm512_shuffle_i32x4::<0b10_00_10_00>(high, high2);
        out[12 + j] = _mm512_shuffle_i32x4::<0b11_01_11_01>(high, high2);
    }
    out
}
