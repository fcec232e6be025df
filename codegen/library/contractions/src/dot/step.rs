//! One step of a register tile: vectors of words multiplied into vectors of sums.
//!
//! A *word* is what one lane multiplies at a time: one element, or the 2 or 4 adjacent terms that an
//! instruction takes at once. Everything here is `inline(always)` and becomes vector code in the
//! `target_feature` functions of [`super::tile`]; the arithmetic of a step is the same on every machine that
//! has it.

use hlo::num_complex::Complex;

/// A vector instruction set's way to multiply and add.
///
/// # Safety
/// Functions are called where the instructions exist; pointers are valid for as many words or sums as are
/// read or written.
pub(crate) trait Step: Copy {
    /// What operands are packed as.
    type Word: Copy + Default;
    /// What is summed.
    type Sum: Copy + Default;
    /// A word of the left operand, in all lanes.
    type A: Copy;
    /// Words of the right operand.
    type B: Copy;
    /// Sums.
    type C: Copy;
    /// Lanes.
    const N: usize;
    /// Whether loading a part of a vector takes no longer than loading all of it.
    const MASKED: bool = false;
    /// Terms of an iteration of a tile's innermost loop.
    const UNROLLED: usize = 1;

    /// No terms yet.
    unsafe fn zero() -> Self::C;
    /// A sum in all lanes.
    unsafe fn all(sum: Self::Sum) -> Self::C;
    /// The first `n` sums, to go on from, so that more terms give the bits that all terms in one run would
    /// give. `None`: sums are made of several parts, and what was put together is added to.
    unsafe fn go_on(from: *const Self::Sum, n: usize) -> Option<Self::C>;
    /// A word in all lanes.
    unsafe fn splat(word: Self::Word) -> Self::A;
    /// `N` words.
    unsafe fn load(from: *const Self::Word) -> Self::B;
    /// The first `n` words; the other lanes are zero.
    unsafe fn load_part(from: *const Self::Word, n: usize) -> Self::B;
    /// `c + a * b`.
    unsafe fn madd(a: Self::A, b: Self::B, c: Self::C) -> Self::C;
    /// Writes, or adds to, the first `n` sums.
    unsafe fn store(c: Self::C, to: *mut Self::Sum, n: usize, accumulate: bool);
}

/// Numbers that are words and sums of them.
pub(super) trait Number: Copy + Default + Send + Sync + 'static {
    /// `self + other`.
    fn plus(self, other: Self) -> Self;
    /// `self + a * b`.
    fn plus_product(self, a: Self, b: Self) -> Self;
}

macro_rules! numbers {
    ($($t:ty: |$x:ident, $y:ident| $plus:expr, |$a:ident, $b:ident, $c:ident| $madd:expr;)*) => {$(
        impl Number for $t {
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                let ($x, $y) = (self, other);
                $plus
            }

            #[inline(always)]
            fn plus_product(self, $a: Self, $b: Self) -> Self {
                let $c = self;
                $madd
            }
        }
    )*};
}

numbers! {
    f32: |x, y| x + y, |a, b, c| a.mul_add(b, c);
    f64: |x, y| x + y, |a, b, c| a.mul_add(b, c);
    i32: |x, y| x.wrapping_add(y), |a, b, c| a.wrapping_mul(b).wrapping_add(c);
    i64: |x, y| x.wrapping_add(y), |a, b, c| a.wrapping_mul(b).wrapping_add(c);
    Complex<f32>: |x, y| x + y, |a, b, c| multiply_add(a, b, c);
    Complex<f64>: |x, y| x + y, |a, b, c| multiply_add(a, b, c);
}

/// Real numbers without vector instructions of their own: arrays that the compiler may vectorize.
macro_rules! portable {
    ($($name:ident $t:ty, $n:literal;)*) => {$(
        #[derive(Clone, Copy)]
        pub(super) struct $name;

        impl Step for $name {
            type Word = $t;
            type Sum = $t;
            type A = $t;
            type B = [$t; $n];
            type C = [$t; $n];
            const N: usize = $n;

            #[inline(always)]
            unsafe fn zero() -> Self::C {
                [<$t>::default(); $n]
            }

            #[inline(always)]
            unsafe fn all(sum: $t) -> Self::C {
                [sum; $n]
            }

            #[inline(always)]
            unsafe fn go_on(from: *const $t, n: usize) -> Option<Self::C> {
                // SAFETY: the caller's: `n` sums are there.
                Some(unsafe { Self::load_part(from, n) })
            }

            #[inline(always)]
            unsafe fn splat(word: $t) -> $t {
                word
            }

            #[inline(always)]
            unsafe fn load(from: *const $t) -> Self::B {
                // SAFETY: the caller's: `N` words are there.
                unsafe { from.cast::<[$t; $n]>().read_unaligned() }
            }

            #[inline(always)]
            unsafe fn load_part(from: *const $t, n: usize) -> Self::B {
                // Most tiles are whole: element by element a load would take longer than all that follows it.
                if n >= $n {
                    // SAFETY: the caller's: `n` words are there.
                    return unsafe { Self::load(from) };
                }
                let mut all = [<$t>::default(); $n];
                for i in 0..n {
                    // SAFETY: the caller's: `n` words are there.
                    all[i] = unsafe { *from.add(i) };
                }
                all
            }

            #[inline(always)]
            unsafe fn madd(a: $t, b: Self::B, mut c: Self::C) -> Self::C {
                for i in 0..$n {
                    c[i] = c[i].plus_product(a, b[i]);
                }
                c
            }

            #[inline(always)]
            unsafe fn store(c: Self::C, to: *mut $t, n: usize, accumulate: bool) {
                if n >= $n && !accumulate {
                    // SAFETY: the caller's: `n` sums are there.
                    return unsafe { to.cast::<[$t; $n]>().write_unaligned(c) };
                }
                for i in 0..n {
                    // SAFETY: the caller's: `n` sums are there.
                    unsafe {
                        *to.add(i) = if accumulate { (*to.add(i)).plus(c[i]) } else { c[i] };
                    }
                }
            }
        }
    )*};
}

portable! {
    PlainF32 f32, 8;
    PlainF64 f64, 4;
    PlainI32 i32, 8;
    PlainI64 i64, 4;
    PlainC64 Complex<f32>, 4;
    PlainC128 Complex<f64>, 2;
}

/// `c + a * b`, each part two products added to it.
#[inline(always)]
fn multiply_add<T>(a: Complex<T>, b: Complex<T>, c: Complex<T>) -> Complex<T>
where
    T: Copy + std::ops::Neg<Output = T> + num_traits::MulAdd<Output = T>,
{
    Complex {
        re: (-a.im).mul_add(b.im, a.re.mul_add(b.re, c.re)),
        im: a.im.mul_add(b.re, a.re.mul_add(b.im, c.im)),
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) use x86::*;

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Step;
    use hlo::num_complex::Complex;
    use std::arch::x86_64::*;

    /// Steps of AVX2. Whole vectors are loaded and stored as such: AMD's processors take tens of cycles for a
    /// masked store, and a mask takes one of sixteen registers.
    macro_rules! avx2 {
        ($($(#[$doc:meta])* $name:ident $t:ty, $n:literal, $vector:ty, mask |$m:ident| $mask:expr, zero $zero:ident, splat $splat:ident,
            load $load:ident, part $part:ident, madd $fma:ident, add $add:ident, store $store:ident, some $some:ident;)*) => {$(
            $(#[$doc])*
            #[derive(Clone, Copy)]
            pub(in crate) struct $name;

            impl Step for $name {
                type Word = $t;
                type Sum = $t;
                type A = $vector;
                type B = $vector;
                type C = $vector;
                const N: usize = $n;
                const UNROLLED: usize = 4;

                #[inline(always)]
                unsafe fn zero() -> $vector {
                    // SAFETY: the caller's: the instructions exist.
                    unsafe { $zero() }
                }

                #[inline(always)]
                unsafe fn all(sum: $t) -> $vector {
                    // SAFETY: the caller's: the instructions exist.
                    unsafe { $splat(sum) }
                }

                #[inline(always)]
                unsafe fn go_on(from: *const $t, n: usize) -> Option<$vector> {
                    // SAFETY: the caller's: `n` sums are there.
                    Some(unsafe { Self::load_part(from, n) })
                }

                #[inline(always)]
                unsafe fn splat(word: $t) -> $vector {
                    // SAFETY: the caller's: the instructions exist.
                    unsafe { $splat(word) }
                }

                #[inline(always)]
                unsafe fn load(from: *const $t) -> $vector {
                    // SAFETY: the caller's: `N` words are there.
                    unsafe { $load(from) }
                }

                #[inline(always)]
                unsafe fn load_part(from: *const $t, n: usize) -> $vector {
                    // SAFETY: the caller's: `n` words are there; masked lanes are not touched.
                    unsafe {
                        if n >= $n {
                            return $load(from);
                        }
                        let $m = n;
                        $part(from, $mask)
                    }
                }

                #[inline(always)]
                unsafe fn madd(a: $vector, b: $vector, c: $vector) -> $vector {
                    // SAFETY: the caller's: the instructions exist.
                    unsafe { $fma(a, b, c) }
                }

                #[inline(always)]
                unsafe fn store(c: $vector, to: *mut $t, n: usize, accumulate: bool) {
                    // SAFETY: the caller's: `n` sums are there; masked lanes are not touched.
                    unsafe {
                        let c = if accumulate { $add(Self::load_part(to, n), c) } else { c };
                        if n >= $n {
                            return $store(to, c);
                        }
                        let $m = n;
                        $some(to, $mask, c);
                    }
                }
            }
        )*};
    }

    avx2! {
        /// `f32`.
        Avx2F32 f32, 8, __m256, mask |n| _mm256_cmpgt_epi32(_mm256_set1_epi32(n as i32), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)),
            zero _mm256_setzero_ps, splat _mm256_set1_ps, load _mm256_loadu_ps, part _mm256_maskload_ps,
            madd _mm256_fmadd_ps, add _mm256_add_ps, store _mm256_storeu_ps, some _mm256_maskstore_ps;
        /// `f64`.
        Avx2F64 f64, 4, __m256d, mask |n| _mm256_cmpgt_epi64(_mm256_set1_epi64x(n as i64), _mm256_setr_epi64x(0, 1, 2, 3)),
            zero _mm256_setzero_pd, splat _mm256_set1_pd, load _mm256_loadu_pd, part _mm256_maskload_pd,
            madd _mm256_fmadd_pd, add _mm256_add_pd, store _mm256_storeu_pd, some _mm256_maskstore_pd;
    }

    /// The first `n` lanes of 16.
    #[inline(always)]
    fn mask16(n: usize) -> __mmask16 {
        ((1u32 << n) - 1) as __mmask16
    }

    /// The first `n` lanes of 8.
    #[inline(always)]
    fn mask8(n: usize) -> __mmask8 {
        ((1u32 << n) - 1) as __mmask8
    }

    /// Steps whose lanes are masked by instructions: AVX-512.
    macro_rules! masked {
        ($($(#[$doc:meta])* $name:ident $word:ty => $sum:ty, $n:literal, $mask:ident, $vector:ty, $out:ty,
            zero $zero:ident, splat $splat:expr, load $load:ident $as:ty, part $part:ident,
            madd |$a:ident, $b:ident, $c:ident| $madd:expr, loadc $loadc:ident, add $add:ident, store $store:ident $outas:ty;)*) => {$(
            $(#[$doc])*
            #[derive(Clone, Copy)]
            pub(in crate) struct $name;

            impl Step for $name {
                type Word = $word;
                type Sum = $sum;
                type A = $vector;
                type B = $vector;
                type C = $out;
                const N: usize = $n;
                const MASKED: bool = true;

                #[inline(always)]
                unsafe fn zero() -> $out {
                    // SAFETY: the caller's: the instructions exist.
                    unsafe { $zero() }
                }

                #[inline(always)]
                unsafe fn all(sum: $sum) -> $out {
                    // SAFETY: as many are there.
                    unsafe { $loadc($mask($n), [sum; $n].as_ptr().cast::<$outas>()) }
                }

                #[inline(always)]
                unsafe fn go_on(from: *const $sum, n: usize) -> Option<$out> {
                    // SAFETY: the caller's: `n` sums are there; masked lanes are not touched.
                    Some(unsafe { $loadc($mask(n), from.cast::<$outas>()) })
                }

                #[inline(always)]
                unsafe fn splat(word: $word) -> $vector {
                    // SAFETY: the caller's: the instructions exist.
                    unsafe { $splat(word as _) }
                }

                #[inline(always)]
                unsafe fn load(from: *const $word) -> $vector {
                    // SAFETY: the caller's: `N` words are there.
                    unsafe { $load(from.cast::<$as>()) }
                }

                #[inline(always)]
                unsafe fn load_part(from: *const $word, n: usize) -> $vector {
                    // SAFETY: the caller's: `n` words are there; masked lanes are not touched.
                    unsafe { $part($mask(n), from.cast::<$as>()) }
                }

                #[inline(always)]
                unsafe fn madd($a: $vector, $b: $vector, $c: $out) -> $out {
                    // SAFETY: the caller's: the instructions exist.
                    unsafe { $madd }
                }

                #[inline(always)]
                unsafe fn store(c: $out, to: *mut $sum, n: usize, accumulate: bool) {
                    // SAFETY: the caller's: `n` sums are there; masked lanes are not touched.
                    unsafe {
                        let m = $mask(n);
                        let c = if accumulate { $add($loadc(m, to.cast::<$outas>()), c) } else { c };
                        $store(to.cast::<$outas>(), m, c);
                    }
                }
            }
        )*};
    }

    masked! {
        /// `f32`.
        WideF32 f32 => f32, 16, mask16, __m512, __m512, zero _mm512_setzero_ps, splat _mm512_set1_ps,
            load _mm512_loadu_ps f32, part _mm512_maskz_loadu_ps, madd |a, b, c| _mm512_fmadd_ps(a, b, c),
            loadc _mm512_maskz_loadu_ps, add _mm512_add_ps, store _mm512_mask_storeu_ps f32;
        /// `f64`.
        WideF64 f64 => f64, 8, mask8, __m512d, __m512d, zero _mm512_setzero_pd, splat _mm512_set1_pd,
            load _mm512_loadu_pd f64, part _mm512_maskz_loadu_pd, madd |a, b, c| _mm512_fmadd_pd(a, b, c),
            loadc _mm512_maskz_loadu_pd, add _mm512_add_pd, store _mm512_mask_storeu_pd f64;
        /// Integers modulo 2^32.
        WideI32 i32 => i32, 16, mask16, __m512i, __m512i, zero _mm512_setzero_si512, splat _mm512_set1_epi32,
            load _mm512_loadu_epi32 i32, part _mm512_maskz_loadu_epi32,
            madd |a, b, c| _mm512_add_epi32(_mm512_mullo_epi32(a, b), c),
            loadc _mm512_maskz_loadu_epi32, add _mm512_add_epi32, store _mm512_mask_storeu_epi32 i32;
        /// Integers modulo 2^64.
        WideI64 i64 => i64, 8, mask8, __m512i, __m512i, zero _mm512_setzero_si512, splat _mm512_set1_epi64,
            load _mm512_loadu_epi64 i64, part _mm512_maskz_loadu_epi64,
            madd |a, b, c| _mm512_add_epi64(_mm512_mullo_epi64(a, b), c),
            loadc _mm512_maskz_loadu_epi64, add _mm512_add_epi64, store _mm512_mask_storeu_epi64 i64;
        /// Pairs of `bf16`, the first in the low bits, into `f32`. Flushes what is subnormal.
        PairBf16 u32 => f32, 16, mask16, __m512i, __m512, zero _mm512_setzero_ps, splat _mm512_set1_epi32,
            load _mm512_loadu_epi32 i32, part _mm512_maskz_loadu_epi32,
            madd |a, b, c| _mm512_dpbf16_ps(c, std::mem::transmute::<__m512i, __m512bh>(a), std::mem::transmute::<__m512i, __m512bh>(b)),
            loadc _mm512_maskz_loadu_ps, add _mm512_add_ps, store _mm512_mask_storeu_ps f32;
        /// Four unsigned bytes by four signed ones, modulo 2^32.
        BytesUS u32 => i32, 16, mask16, __m512i, __m512i, zero _mm512_setzero_si512, splat _mm512_set1_epi32,
            load _mm512_loadu_epi32 i32, part _mm512_maskz_loadu_epi32, madd |a, b, c| _mm512_dpbusd_epi32(c, a, b),
            loadc _mm512_maskz_loadu_epi32, add _mm512_add_epi32, store _mm512_mask_storeu_epi32 i32;
        /// Four signed bytes by four unsigned ones, modulo 2^32.
        BytesSU u32 => i32, 16, mask16, __m512i, __m512i, zero _mm512_setzero_si512, splat _mm512_set1_epi32,
            load _mm512_loadu_epi32 i32, part _mm512_maskz_loadu_epi32, madd |a, b, c| _mm512_dpbusd_epi32(c, b, a),
            loadc _mm512_maskz_loadu_epi32, add _mm512_add_epi32, store _mm512_mask_storeu_epi32 i32;
        /// Pairs of 16-bit integers, modulo 2^32.
        PairI16 u32 => i32, 16, mask16, __m512i, __m512i, zero _mm512_setzero_si512, splat _mm512_set1_epi32,
            load _mm512_loadu_epi32 i32, part _mm512_maskz_loadu_epi32, madd |a, b, c| _mm512_dpwssd_epi32(c, a, b),
            loadc _mm512_maskz_loadu_epi32, add _mm512_add_epi32, store _mm512_mask_storeu_epi32 i32;
    }

    /// Complex numbers as they are in memory: the real and the imaginary part of the left operand multiply
    /// whole vectors of the right one, and only the finished sums are put together. `$swap` exchanges the
    /// parts of each number.
    macro_rules! complex {
        ($($(#[$doc:meta])* $name:ident $t:ty, $n:literal, $mask:ident, $vector:ty, $zero:ident, $splat:ident, $load:ident, $part:ident, $fma:ident,
            $swap:expr, |$x:ident, $y:ident| $addsub:expr, $add:ident, $store:ident;)*) => {$(
            $(#[$doc])*
            #[derive(Clone, Copy)]
            pub(in crate) struct $name;

            impl Step for $name {
                type Word = Complex<$t>;
                type Sum = Complex<$t>;
                type A = [$vector; 2];
                type B = $vector;
                type C = [$vector; 2];
                const N: usize = $n;
                const MASKED: bool = true;

                #[inline(always)]
                unsafe fn zero() -> Self::C {
                    // SAFETY: the caller's: the instructions exist.
                    unsafe { [$zero(); 2] }
                }

                #[inline(always)]
                unsafe fn all(sum: Complex<$t>) -> Self::C {
                    // SAFETY: as many are there.
                    unsafe { [$load([sum; $n].as_ptr().cast::<$t>()), $zero()] }
                }

                #[inline(always)]
                unsafe fn go_on(_: *const Complex<$t>, _: usize) -> Option<Self::C> {
                    None
                }

                #[inline(always)]
                unsafe fn splat(word: Complex<$t>) -> Self::A {
                    // SAFETY: the caller's: the instructions exist.
                    unsafe { [$splat(word.re), $splat(word.im)] }
                }

                #[inline(always)]
                unsafe fn load(from: *const Complex<$t>) -> $vector {
                    // SAFETY: the caller's: `N` words are there.
                    unsafe { $load(from.cast::<$t>()) }
                }

                #[inline(always)]
                unsafe fn load_part(from: *const Complex<$t>, n: usize) -> $vector {
                    // SAFETY: the caller's: `n` words are there; masked lanes are not touched.
                    unsafe { $part($mask(2 * n), from.cast::<$t>()) }
                }

                #[inline(always)]
                unsafe fn madd(a: Self::A, b: $vector, c: Self::C) -> Self::C {
                    // SAFETY: the caller's: the instructions exist.
                    unsafe { [$fma(a[0], b, c[0]), $fma(a[1], b, c[1])] }
                }

                #[inline(always)]
                unsafe fn store(c: Self::C, to: *mut Complex<$t>, n: usize, accumulate: bool) {
                    // SAFETY: the caller's: `n` sums are there; masked lanes are not touched.
                    unsafe {
                        let m = $mask(2 * n);
                        let to = to.cast::<$t>();
                        let ($x, $y) = (c[0], $swap(c[1]));
                        let sum = $addsub;
                        $store(to, m, if accumulate { $add($part(m, to), sum) } else { sum });
                    }
                }
            }
        )*};
    }

    #[inline(always)]
    unsafe fn swap_ps(x: __m512) -> __m512 {
        // SAFETY: the caller's: the instructions exist.
        unsafe { _mm512_permute_ps::<0b1011_0001>(x) }
    }

    #[inline(always)]
    unsafe fn swap_pd(x: __m512d) -> __m512d {
        // SAFETY: the caller's: the instructions exist.
        unsafe { _mm512_permute_pd::<0b0101_0101>(x) }
    }

    complex! {
        /// `c64`.
        WideC64 f32, 8, mask16, __m512, _mm512_setzero_ps, _mm512_set1_ps, _mm512_loadu_ps, _mm512_maskz_loadu_ps, _mm512_fmadd_ps,
            swap_ps, |x, y| _mm512_fmaddsub_ps(x, _mm512_set1_ps(1.0), y), _mm512_add_ps, _mm512_mask_storeu_ps;
        /// `c128`.
        WideC128 f64, 4, mask8, __m512d, _mm512_setzero_pd, _mm512_set1_pd, _mm512_loadu_pd, _mm512_maskz_loadu_pd, _mm512_fmadd_pd,
            swap_pd, |x, y| _mm512_fmaddsub_pd(x, _mm512_set1_pd(1.0), y), _mm512_add_pd, _mm512_mask_storeu_pd;
    }
}
