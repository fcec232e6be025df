//! Elements of input and result, and how vectors of them are read and written.

#[cfg(target_arch = "x86_64")]
use std::mem::MaybeUninit;

use hlo::half::{bf16, f16};

#[cfg(target_arch = "x86_64")]
use super::WIDTH;

/// Elements of input and result, which are computed in `f32`.
pub(super) trait Element: Copy {
    fn f32(self) -> f32;
    fn of(x: f32) -> Self;

    /// Elements as `f32`; masked lanes are 0 and not touched.
    #[cfg(target_arch = "x86_64")]
    unsafe fn load(mask: u16, from: *const Self) -> std::arch::x86_64::__m512;

    /// Rounds and writes the lanes of a mask.
    #[cfg(target_arch = "x86_64")]
    unsafe fn store(to: *mut Self, mask: u16, x: std::arch::x86_64::__m512);

    /// Eight elements as `f32`, by AVX2.
    #[cfg(target_arch = "x86_64")]
    unsafe fn load_eight(from: *const Self) -> std::arch::x86_64::__m256;

    /// Rounds and writes eight elements, by AVX2.
    #[cfg(target_arch = "x86_64")]
    unsafe fn store_eight(to: *mut Self, x: std::arch::x86_64::__m256);

    /// As [`Element::load_eight`]: lanes before `first` and from `end` on are 0, and not touched.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn load_some(from: *const Self, first: usize, end: usize) -> std::arch::x86_64::__m256 {
        let mut lanes = [Self::of(0.0); 8];
        // SAFETY: the caller's: the others are there.
        unsafe {
            for lane in first..end.min(8) {
                lanes[lane] = *from.wrapping_add(lane);
            }
            Self::load_eight(lanes.as_ptr())
        }
    }

    /// As [`Element::store_eight`], of the first `n`, that are so far apart.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn store_some(to: *mut Self, x: std::arch::x86_64::__m256, n: usize, stride: isize) {
        let mut lanes = [Self::of(0.0); 8];
        // SAFETY: the caller's: there is space for these.
        unsafe {
            Self::store_eight(lanes.as_mut_ptr(), x);
            for (lane, &x) in lanes.iter().enumerate().take(n) {
                *to.offset(lane as isize * stride) = x;
            }
        }
    }

    /// As [`Element::load`], of elements that are so far apart.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn apart(mask: u16, from: *const Self, stride: isize) -> std::arch::x86_64::__m512 {
        let mut lanes = [0f32; WIDTH];
        for (lane, x) in lanes.iter_mut().enumerate().filter(|(lane, _)| mask >> lane & 1 == 1) {
            // SAFETY: the caller's.
            *x = unsafe { *from.offset(lane as isize * stride) }.f32();
        }
        // SAFETY: as many are there.
        unsafe { std::arch::x86_64::_mm512_loadu_ps(lanes.as_ptr()) }
    }

    /// As [`Element::store`], of elements that are so far apart.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn store_apart(to: *mut Self, mask: u16, x: std::arch::x86_64::__m512, stride: isize) {
        let mut lanes = [const { MaybeUninit::<Self>::uninit() }; WIDTH];
        // SAFETY: lanes of the mask are written, and only those are read; the caller's of the rest.
        unsafe {
            Self::store(lanes.as_mut_ptr().cast(), mask, x);
            for (lane, x) in lanes.iter().enumerate().filter(|(lane, _)| mask >> lane & 1 == 1) {
                *to.offset(lane as isize * stride) = x.assume_init();
            }
        }
    }
}

impl Element for f32 {
    fn f32(self) -> f32 {
        self
    }

    fn of(x: f32) -> f32 {
        x
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn load_eight(from: *const f32) -> std::arch::x86_64::__m256 {
        // SAFETY: the caller's.
        unsafe { std::arch::x86_64::_mm256_loadu_ps(from) }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn store_eight(to: *mut f32, x: std::arch::x86_64::__m256) {
        // SAFETY: the caller's.
        unsafe { std::arch::x86_64::_mm256_storeu_ps(to, x) };
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn load_some(from: *const f32, first: usize, end: usize) -> std::arch::x86_64::__m256 {
        use std::arch::x86_64::*;
        // SAFETY: the caller's; masked lanes are not touched.
        unsafe {
            let lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
            let before = _mm256_cmpgt_epi32(_mm256_set1_epi32(first as i32), lanes);
            let upto = _mm256_cmpgt_epi32(_mm256_set1_epi32(end as i32), lanes);
            _mm256_maskload_ps(from, _mm256_andnot_si256(before, upto))
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn load(mask: u16, from: *const f32) -> std::arch::x86_64::__m512 {
        // SAFETY: the caller's.
        unsafe { std::arch::x86_64::_mm512_maskz_loadu_ps(mask, from) }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn store(to: *mut f32, mask: u16, x: std::arch::x86_64::__m512) {
        // SAFETY: the caller's.
        unsafe { std::arch::x86_64::_mm512_mask_storeu_ps(to, mask, x) };
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn apart(mask: u16, from: *const f32, stride: isize) -> std::arch::x86_64::__m512 {
        use std::arch::x86_64::*;
        // SAFETY: the caller's.
        unsafe {
            let lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
            let steps = _mm512_mullo_epi32(lanes, _mm512_set1_epi32(stride as i32));
            _mm512_mask_i32gather_ps::<4>(_mm512_setzero_ps(), mask, steps, from)
        }
    }
}

impl Element for bf16 {
    fn f32(self) -> f32 {
        self.to_f32()
    }

    fn of(x: f32) -> bf16 {
        bf16::from_f32(x)
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn load_eight(from: *const bf16) -> std::arch::x86_64::__m256 {
        use std::arch::x86_64::*;
        // SAFETY: the caller's.
        unsafe {
            let words = _mm256_cvtepu16_epi32(_mm_loadu_si128(from.cast()));
            _mm256_castsi256_ps(_mm256_slli_epi32::<16>(words))
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn store_eight(to: *mut bf16, x: std::arch::x86_64::__m256) {
        use std::arch::x86_64::*;
        // SAFETY: the caller's.
        unsafe {
            let bits = _mm256_castps_si256(x);
            let high = _mm256_srli_epi32::<16>(bits);
            let odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
            let up = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
            let rounded = _mm256_srli_epi32::<16>(_mm256_add_epi32(bits, up));
            let nan = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
            let is_nan = _mm256_castps_si256(_mm256_cmp_ps::<_CMP_UNORD_Q>(x, x));
            let words = _mm256_blendv_epi8(rounded, nan, is_nan);
            let low = _mm256_castsi256_si128(words);
            _mm_storeu_si128(to.cast(), _mm_packus_epi32(low, _mm256_extracti128_si256::<1>(words)));
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn load(mask: u16, from: *const bf16) -> std::arch::x86_64::__m512 {
        use std::arch::x86_64::*;
        // SAFETY: the caller's.
        unsafe {
            let words = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, from.cast()));
            _mm512_castsi512_ps(_mm512_slli_epi32::<16>(words))
        }
    }

    /// By integer arithmetic: subnormals are kept.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn store(to: *mut bf16, mask: u16, x: std::arch::x86_64::__m512) {
        use std::arch::x86_64::*;
        // SAFETY: the caller's.
        unsafe {
            let bits = _mm512_castps_si512(x);
            let high = _mm512_srli_epi32::<16>(bits);
            let odd = _mm512_and_si512(high, _mm512_set1_epi32(1));
            let up = _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff));
            let rounded = _mm512_srli_epi32::<16>(_mm512_add_epi32(bits, up));
            let nan = _mm512_or_si512(high, _mm512_set1_epi32(0x40));
            let rounded = _mm512_mask_blend_epi32(_mm512_cmp_ps_mask::<_CMP_UNORD_Q>(x, x), rounded, nan);
            _mm256_mask_storeu_epi16(to.cast(), mask, _mm512_cvtepi32_epi16(rounded));
        }
    }
}

impl Element for f16 {
    fn f32(self) -> f32 {
        self.to_f32()
    }

    fn of(x: f32) -> f16 {
        f16::from_f32(x)
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn load_eight(from: *const f16) -> std::arch::x86_64::__m256 {
        use std::arch::x86_64::*;
        // SAFETY: the caller's.
        unsafe { _mm256_cvtph_ps(_mm_loadu_si128(from.cast())) }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn store_eight(to: *mut f16, x: std::arch::x86_64::__m256) {
        use std::arch::x86_64::*;
        // SAFETY: the caller's.
        unsafe { _mm_storeu_si128(to.cast(), _mm256_cvtps_ph::<{ _MM_FROUND_TO_NEAREST_INT }>(x)) };
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn load(mask: u16, from: *const f16) -> std::arch::x86_64::__m512 {
        use std::arch::x86_64::*;
        // SAFETY: the caller's.
        unsafe { _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask, from.cast())) }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn store(to: *mut f16, mask: u16, x: std::arch::x86_64::__m512) {
        use std::arch::x86_64::*;
        // SAFETY: the caller's.
        unsafe {
            _mm256_mask_storeu_epi16(to.cast(), mask, _mm512_cvtps_ph::<{ _MM_FROUND_TO_NEAREST_INT }>(x))
        };
    }
}
