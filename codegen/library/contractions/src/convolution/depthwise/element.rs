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
