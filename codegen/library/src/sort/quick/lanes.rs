//! Keys in the lanes of a vector register, with AVX-512 (F, BW, CD, DQ, VL).

use std::arch::x86_64::*;

/// A vector of unsigned keys.
///
/// **Safety** of all methods: the machine has AVX-512 (F, BW, CD, DQ, VL), and the caller is compiled for it,
/// so that they are inlined.
pub(super) trait Lanes: Copy {
    /// A key.
    type Key: Copy + Ord;
    /// Keys of a vector: 8 or 16.
    const LANES: usize;
    /// The largest key.
    const MAX: Self::Key;

    /// The key after one that is not the largest.
    fn after(key: Self::Key) -> Self::Key;

    /// Keys from memory.
    ///
    /// # Safety
    /// There are [`Lanes::LANES`] of them.
    unsafe fn load(at: *const Self::Key) -> Self;

    /// The first `n` lanes from memory, at most all; the others are [`Lanes::MAX`].
    ///
    /// # Safety
    /// There are `n` of them.
    unsafe fn load_first(at: *const Self::Key, n: usize) -> Self;

    /// # Safety
    /// there is space for [`Lanes::LANES`] keys.
    unsafe fn store(self, at: *mut Self::Key);

    /// Stores the first `n` lanes, at most all.
    ///
    /// # Safety
    /// there is space for them.
    unsafe fn store_first(self, at: *mut Self::Key, n: usize);

    /// A key in all lanes.
    ///
    /// # Safety
    /// As the trait says.
    unsafe fn splat(key: Self::Key) -> Self;

    /// The key in lane 0.
    ///
    /// # Safety
    /// As the trait says.
    unsafe fn first(self) -> Self::Key;

    /// The smaller keys, lane by lane.
    ///
    /// # Safety
    /// As the trait says.
    unsafe fn min(self, other: Self) -> Self;

    /// The larger keys, lane by lane.
    ///
    /// # Safety
    /// As the trait says.
    unsafe fn max(self, other: Self) -> Self;

    /// `self`, but the larger ones of `a` and `b` in the lanes of a mask.
    ///
    /// # Safety
    /// As the trait says.
    unsafe fn max_where(self, mask: u32, a: Self, b: Self) -> Self;

    /// The lanes whose keys are less than those of `other`, as a mask.
    ///
    /// # Safety
    /// As the trait says.
    unsafe fn less(self, other: Self) -> u32;

    /// The lanes of a mask, compressed to the first lanes; the others are 0. In a register: the form of
    /// `vpcompress` that stores takes a hundred cycles or more on Zen 4.
    ///
    /// # Safety
    /// As the trait says.
    unsafe fn compress(self, mask: u32) -> Self;

    /// Lane `i` from lane `i ^ X`.
    ///
    /// # Safety
    /// As the trait says.
    unsafe fn swapped<const X: usize>(self) -> Self;

    /// Lanes in reverse.
    ///
    /// # Safety
    /// As the trait says.
    unsafe fn reversed(self) -> Self;
}

/// A mask of the first `n` lanes.
#[inline(always)]
pub(super) fn first(n: usize) -> u32 {
    debug_assert!(n < 32, "invariant: there are at most 16 lanes");
    (1 << n) - 1
}

macro_rules! lanes {
    ($name:ident: $key:ident in $lanes:literal, $vector:ident, $mask:ident, $load:ident, $store:ident, $load_first:ident, $store_first:ident, $splat:ident as $signed:ident,
     $min:ident, $max:ident, $max_where:ident, $less:ident, $reversed:literal,
     first = |$f:ident| $first:expr; compress = |$c:ident, $m:ident| $compress:expr; swapped = |$s:ident, $x:ident| $swapped:expr;) => {
        #[doc = concat!("Keys of type ", stringify!($key), ".")]
        #[derive(Clone, Copy)]
        pub(in super::super) struct $name($vector);

        impl Lanes for $name {
            type Key = $key;
            const LANES: usize = $lanes;
            const MAX: $key = $key::MAX;

            #[inline(always)]
            fn after(key: $key) -> $key {
                key + 1
            }

            #[inline(always)]
            unsafe fn load(at: *const $key) -> Self {
                // SAFETY: as the caller says.
                Self(unsafe { $load(at.cast()) })
            }

            #[inline(always)]
            unsafe fn load_first(at: *const $key, n: usize) -> Self {
                // SAFETY: as the caller says.
                Self(unsafe { $load_first(Self::splat($key::MAX).0, first(n) as $mask, at.cast()) })
            }

            #[inline(always)]
            unsafe fn store(self, at: *mut $key) {
                // SAFETY: as the caller says.
                unsafe { $store(at.cast(), self.0) }
            }

            #[inline(always)]
            unsafe fn store_first(self, at: *mut $key, n: usize) {
                // SAFETY: as the caller says.
                unsafe { $store_first(at.cast(), first(n) as $mask, self.0) }
            }

            #[inline(always)]
            unsafe fn splat(key: $key) -> Self {
                // SAFETY: as the caller says.
                Self(unsafe { $splat(key as $signed) })
            }

            #[inline(always)]
            unsafe fn first(self) -> $key {
                let $f = self.0;
                // SAFETY: as the caller says.
                unsafe { $first as $key }
            }

            #[inline(always)]
            unsafe fn min(self, other: Self) -> Self {
                // SAFETY: as the caller says.
                Self(unsafe { $min(self.0, other.0) })
            }

            #[inline(always)]
            unsafe fn max(self, other: Self) -> Self {
                // SAFETY: as the caller says.
                Self(unsafe { $max(self.0, other.0) })
            }

            #[inline(always)]
            unsafe fn max_where(self, mask: u32, a: Self, b: Self) -> Self {
                // SAFETY: as the caller says.
                Self(unsafe { $max_where(self.0, mask as $mask, a.0, b.0) })
            }

            #[inline(always)]
            unsafe fn less(self, other: Self) -> u32 {
                // SAFETY: as the caller says.
                u32::from(unsafe { $less(self.0, other.0) })
            }

            #[inline(always)]
            unsafe fn compress(self, mask: u32) -> Self {
                let ($c, $m) = (self.0, mask);
                // SAFETY: as the caller says.
                Self(unsafe { $compress })
            }

            #[inline(always)]
            unsafe fn swapped<const X: usize>(self) -> Self {
                let ($s, $x) = (self.0, X);
                // SAFETY: as the caller says.
                Self(unsafe { $swapped })
            }

            #[inline(always)]
            unsafe fn reversed(self) -> Self {
                // SAFETY: as the caller says.
                unsafe { self.swapped::<$reversed>() }
            }
        }
    };
}

lanes! {
    Lanes64: u64 in 8, __m512i, u8, _mm512_loadu_si512, _mm512_storeu_si512, _mm512_mask_loadu_epi64, _mm512_mask_storeu_epi64, _mm512_set1_epi64 as i64,
    _mm512_min_epu64, _mm512_max_epu64, _mm512_mask_max_epu64, _mm512_cmplt_epu64_mask, 7,
    first = |v| _mm_cvtsi128_si64(_mm512_castsi512_si128(v));
    compress = |v, mask| _mm512_maskz_compress_epi64(mask as u8, v);
    swapped = |v, x| match x {
        1 => _mm512_shuffle_epi32::<0x4e>(v),
        2 => _mm512_permutex_epi64::<0x4e>(v),
        3 => _mm512_permutex_epi64::<0x1b>(v),
        4 => _mm512_shuffle_i64x2::<0x4e>(v, v),
        x => _mm512_permutexvar_epi64(
            _mm512_xor_si512(_mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7), _mm512_set1_epi64(x as i64)),
            v,
        ),
    };
}

lanes! {
    Lanes32: u32 in 16, __m512i, u16, _mm512_loadu_si512, _mm512_storeu_si512, _mm512_mask_loadu_epi32, _mm512_mask_storeu_epi32, _mm512_set1_epi32 as i32,
    _mm512_min_epu32, _mm512_max_epu32, _mm512_mask_max_epu32, _mm512_cmplt_epu32_mask, 15,
    first = |v| _mm512_cvtsi512_si32(v);
    compress = |v, mask| _mm512_maskz_compress_epi32(mask as u16, v);
    swapped = |v, x| match x {
        1 => _mm512_shuffle_epi32::<0xb1>(v),
        2 => _mm512_shuffle_epi32::<0x4e>(v),
        3 => _mm512_shuffle_epi32::<0x1b>(v),
        4 => _mm512_shuffle_i32x4::<0xb1>(v, v),
        8 => _mm512_shuffle_i32x4::<0x4e>(v, v),
        x => _mm512_permutexvar_epi32(
            _mm512_xor_si512(
                _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                _mm512_set1_epi32(x as i32),
            ),
            v,
        ),
    };
}

// Half a register, compressed as 32-bit lanes: `vpcompressw` needs AVX512_VBMI2, which not all of these
// machines have.
lanes! {
    Lanes16: u16 in 16, __m256i, u16, _mm256_loadu_si256, _mm256_storeu_si256, _mm256_mask_loadu_epi16, _mm256_mask_storeu_epi16, _mm256_set1_epi16 as i16,
    _mm256_min_epu16, _mm256_max_epu16, _mm256_mask_max_epu16, _mm256_cmplt_epu16_mask, 15,
    first = |v| _mm256_extract_epi16::<0>(v);
    compress = |v, mask| _mm512_cvtepi32_epi16(_mm512_maskz_compress_epi32(mask as u16, _mm512_cvtepu16_epi32(v)));
    swapped = |v, x| match x {
        1 => _mm256_rol_epi32::<16>(v),
        2 => _mm256_shuffle_epi32::<0xb1>(v),
        4 => _mm256_shuffle_epi32::<0x4e>(v),
        8 => _mm256_permute4x64_epi64::<0x4e>(v),
        x => _mm256_permutexvar_epi16(
            _mm256_xor_si256(
                _mm256_setr_epi16(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                _mm256_set1_epi16(x as i16),
            ),
            v,
        ),
    };
}
