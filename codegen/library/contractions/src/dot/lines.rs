//! Packing of rows that are contiguous: the lines of one term, or of the few terms of a word, become a line
//! of a panel.

use std::arch::x86_64::*;

use hlo_library_base::isa::Features;

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

impl Lines {
    /// Whether vectors of this machine pack them.
    pub(super) fn are_packed_here(self) -> bool {
        let here = Features::here();
        here.avx512 || here.avx2 && matches!(self, Lines::Same(_) | Lines::Bf16 | Lines::F16)
    }
}

/// Packs `terms` lines of `count` elements, `step` bytes apart, as lines of `width` words; what is beyond
/// `count` or `terms` is zero.
///
/// # Safety
/// [`Lines::are_packed_here`]; the elements are there, and so is space for all words.
pub(super) unsafe fn pack(
    lines: Lines,
    from: *const u8,
    step: isize,
    terms: usize,
    count: usize,
    out: *mut u8,
    width: usize,
) {
    // SAFETY: the caller's; the machine has the vectors.
    unsafe {
        if Features::here().avx512 {
            wide_pack(lines, from, step, terms, count, out, width);
        } else {
            narrow_pack(lines, from, step, terms, count, out, width);
        }
    }
}

/// As [`pack`].
///
/// # Safety
/// As there, and the machine has AVX-512.
#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq")]
unsafe fn wide_pack(
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

/// As [`pack`], for AVX2.
///
/// # Safety
/// As there.
#[target_feature(enable = "avx2,f16c")]
unsafe fn narrow_pack(
    lines: Lines,
    from: *const u8,
    step: isize,
    terms: usize,
    count: usize,
    out: *mut u8,
    width: usize,
) {
    let out = out.cast();
    // SAFETY: the caller's; each reads as many elements as it writes words.
    unsafe {
        match lines {
            Lines::Same(n) => {
                let eight = |from: *const u8| _mm256_loadu_si256(from.cast());
                let one = |from: *const u8| from.cast::<i32>().read_unaligned();
                each_narrow::<4>(from, step, terms, n * count, out, n * width, eight, one);
            }
            Lines::Bf16 => {
                let eight = |from: *const u8| {
                    _mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(_mm_loadu_si128(from.cast())))
                };
                let one = |from: *const u8| (u32::from(from.cast::<u16>().read_unaligned()) << 16) as i32;
                each_narrow::<2>(from, step, terms, count, out, width, eight, one);
            }
            Lines::F16 => {
                let eight =
                    |from: *const u8| _mm256_castps_si256(_mm256_cvtph_ps(_mm_loadu_si128(from.cast())));
                let one = |from: *const u8| {
                    let half = _mm_cvtsi32_si128(i32::from(from.cast::<u16>().read_unaligned()));
                    _mm_cvtsi128_si32(_mm_castps_si128(_mm_cvtph_ps(half)))
                };
                each_narrow::<2>(from, step, terms, count, out, width, eight, one);
            }
            Lines::Pairs | Lines::Bytes(_) | Lines::PairsOfI8 | Lines::PairsOfU8 => {
                unreachable!("invariant: words of several terms are those of instructions of AVX-512")
            }
        }
    }
}

/// Packs lines of elements of `BYTES` bytes: `eight` converts eight adjacent ones to words, `one` converts one.
#[inline(always)]
unsafe fn each_narrow<const BYTES: usize>(
    from: *const u8,
    step: isize,
    terms: usize,
    count: usize,
    out: *mut i32,
    width: usize,
    eight: impl Fn(*const u8) -> __m256i,
    one: impl Fn(*const u8) -> i32,
) {
    // Lines without gaps are one.
    let (terms, count, width) = if count == width && step == (BYTES * count) as isize {
        (1, terms * count, terms * count)
    } else {
        (terms, count, width)
    };
    // SAFETY: the caller's; a prefetch never faults.
    unsafe {
        for term in 0..terms {
            let (line, to) = (from.offset(term as isize * step), out.add(term * width));
            let mut i = 0;
            while i + 8 <= count {
                if (BYTES * i).is_multiple_of(64) {
                    // Of the lines that are packed after these: into the second-level cache, since in the first
                    // one lines whole pages apart take the place of those that are read before.
                    let next = line.wrapping_offset(2 * LINES as isize * step).wrapping_add(BYTES * i);
                    _mm_prefetch::<{ _MM_HINT_T1 }>(next.cast());
                }
                _mm256_storeu_si256(to.add(i).cast(), eight(line.add(BYTES * i)));
                i += 8;
            }
            if BYTES == 4 && i + 4 <= count {
                _mm_storeu_si128(to.add(i).cast(), _mm_loadu_si128(line.add(BYTES * i).cast()));
                i += 4;
            }
            while i < count {
                *to.add(i) = one(line.add(BYTES * i));
                i += 1;
            }
            while i < width {
                *to.add(i) = 0;
                i += 1;
            }
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
