//! Packing of rows that are contiguous: the lines of one term, or of the few terms of a word, become a line
//! of a panel.

use std::arch::x86_64::*;

use super::product::LINES;

/// How elements become words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lines {
    /// So many times 32 bits, as they are.
    Same(usize),
    /// `bf16` as `f32`.
    Bf16,
    /// `f16` as `f32`.
    F16,
    /// Pairs of 16 bits.
    Pairs,
    /// Four bytes, their bits changed by this.
    Bytes(u32),
    /// Pairs of signed bytes as 16-bit integers.
    PairsOfI8,
    /// Pairs of unsigned bytes as 16-bit integers.
    PairsOfU8,
}

/// Packs `terms` lines of `count` elements, `step` bytes apart, as lines of `width` words; what is beyond
/// `count` or `terms` is zero.
///
/// # Safety
/// The machine has AVX-512; the elements are there, and so is space for all words.
#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq")]
pub(super) unsafe fn pack(
    lines: Lines,
    from: *const u8,
    step: isize,
    terms: usize,
    count: usize,
    out: *mut u8,
    width: usize,
) {
    let out = out.cast();
    // SAFETY: the caller's.
    unsafe {
        match lines {
            Lines::Same(n) => each::<Same>(from, step, terms, n * count, out, n * width),
            Lines::Bf16 => each::<OfBf16>(from, step, terms, count, out, width),
            Lines::F16 => each::<OfF16>(from, step, terms, count, out, width),
            Lines::Pairs => each::<Pairs>(from, step, terms, count, out, width),
            Lines::Bytes(0) => each::<FourBytes<0>>(from, step, terms, count, out, width),
            Lines::Bytes(_) => each::<FourBytes<0x8080_8080>>(from, step, terms, count, out, width),
            Lines::PairsOfI8 => each::<PairsOfI8>(from, step, terms, count, out, width),
            Lines::PairsOfU8 => each::<PairsOfU8>(from, step, terms, count, out, width),
        }
    }
}

/// A way to make words. Functions are inlined where AVX-512 is.
trait Words {
    /// Lines of a word.
    const GROUP: usize;
    /// Bytes of an element.
    const BYTES: usize;

    /// 16 words: of each line, `step` bytes apart, the elements of the mask; of lines from `present` on,
    /// nothing.
    unsafe fn words(line: *const u8, step: isize, mask: __mmask16, present: usize) -> __m512i;
}

/// The first `n` lanes.
#[inline(always)]
fn mask(n: usize) -> __mmask16 {
    ((1u32 << n.min(16)) - 1) as __mmask16
}

#[inline(always)]
unsafe fn each<K: Words>(
    from: *const u8,
    step: isize,
    terms: usize,
    count: usize,
    out: *mut i32,
    width: usize,
) {
    // SAFETY: the caller's; what is masked is not touched.
    unsafe {
        let whole = terms / K::GROUP;
        let start = |word: usize| from.offset((word * K::GROUP) as isize * step);
        let plain = if count == width { width / 16 * 16 } else { 0 };
        for word in 0..whole {
            let (line, to) = (start(word), out.add(word * width));
            let mut first = 0;
            while first < plain {
                let words = K::words(line.add(first * K::BYTES), step, 0xffff, K::GROUP);
                for g in 0..K::GROUP {
                    // Of the words that are packed after these.
                    let next = line.wrapping_offset((LINES * K::GROUP + g) as isize * step);
                    _mm_prefetch::<{ _MM_HINT_T0 }>(next.wrapping_add(first * K::BYTES).cast());
                }
                _mm512_storeu_si512(to.add(first).cast(), words);
                first += 16;
            }
            while first < width {
                let there = mask(count.saturating_sub(first));
                let words = K::words(line.wrapping_add(first * K::BYTES), step, there, K::GROUP);
                _mm512_mask_storeu_epi32(to.add(first), mask(width - first), words);
                first += 16;
            }
        }
        if whole * K::GROUP < terms {
            let (line, to) = (start(whole), out.add(whole * width));
            for first in (0..width).step_by(16) {
                let there = mask(count.saturating_sub(first));
                let line = line.wrapping_add(first * K::BYTES);
                let words = K::words(line, step, there, terms - whole * K::GROUP);
                _mm512_mask_storeu_epi32(to.add(first), mask(width - first), words);
            }
        }
    }
}

/// Four bytes to a word.
struct FourBytes<const FLIP: u32>;

impl<const FLIP: u32> Words for FourBytes<FLIP> {
    const GROUP: usize = 4;
    const BYTES: usize = 1;

    #[inline(always)]
    unsafe fn words(line: *const u8, step: isize, mask: __mmask16, present: usize) -> __m512i {
        // SAFETY: the caller's: the elements of the mask are there.
        unsafe {
            let mut all = _mm512_set1_epi32(FLIP as i32);
            for i in 0..4 {
                let mask = if i < present { mask } else { 0 };
                let from = line.wrapping_offset(i as isize * step);
                let bytes = _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(mask, from.cast()));
                all = _mm512_xor_si512(all, _mm512_sll_epi32(bytes, _mm_cvtsi32_si128(8 * i as i32)));
            }
            all
        }
    }
}

macro_rules! words {
    ($($name:ident: $group:literal, $bytes:literal, |$line:ident, $mask:ident| $one:expr, |$x:ident, $y:ident| $two:expr;)*) => {$(
        struct $name;

        impl Words for $name {
            const GROUP: usize = $group;
            const BYTES: usize = $bytes;

            #[inline(always)]
            unsafe fn words($line: *const u8, step: isize, $mask: __mmask16, present: usize) -> __m512i {
                // SAFETY: the caller's: the elements of the mask are there.
                unsafe {
                    let $x = $one;
                    if $group == 1 {
                        return $x;
                    }
                    let ($line, $mask) = ($line.wrapping_offset(step), if present < 2 { 0 } else { $mask });
                    let $y = $one;
                    $two
                }
            }
        }
    )*};
}

words! {
    Same: 1, 4, |p, m| _mm512_maskz_loadu_epi32(m, p.cast()), |x, _y| x;
    OfBf16: 1, 2, |p, m| _mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(m, p.cast()))), |x, _y| x;
    OfF16: 1, 2, |p, m| _mm512_castps_si512(_mm512_cvtph_ps(_mm256_maskz_loadu_epi16(m, p.cast()))), |x, _y| x;
    Pairs: 2, 2, |p, m| _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(m, p.cast())),
        |x, y| _mm512_or_si512(x, _mm512_slli_epi32::<16>(y));
    PairsOfI8: 2, 1, |p, m| _mm512_cvtepi8_epi32(_mm_maskz_loadu_epi8(m, p.cast())),
        |x, y| _mm512_mask_blend_epi16(0xaaaa_aaaa, x, _mm512_slli_epi32::<16>(y));
    PairsOfU8: 2, 1, |p, m| _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(m, p.cast())),
        |x, y| _mm512_or_si512(x, _mm512_slli_epi32::<16>(y));
}
