//! GEMV for AVX2: floats.

use std::arch::x86_64::*;

use hlo::ElementType;
use hlo::half::{bf16, f16};
use num_traits::One;

use super::{Block, Field, Kernel, Number, Widen, all_lines, total};
use crate::dot::step::{Avx2F32, Avx2F64, Step};

/// Rows that are multiplied at a time, and vectors of independent sums of each: what 16 registers hold.
const ROWS: usize = 2;
const VECTORS: usize = 4;
/// The most lanes of a vector.
const MAX_LANES: usize = 8;

/// Elements that become words one by one, too.
trait Element<S: Step>: Widen<S> {
    fn word(self) -> S::Word;
}

macro_rules! widen {
    ($($from:ty => $step:ty, |$p:ident| $all:expr, |$x:ident| $one:expr;)*) => {$(
        impl Element<$step> for $from {
            #[inline(always)]
            fn word(self) -> <$step as Step>::Word {
                let $x = self;
                $one
            }
        }

        impl Widen<$step> for $from {
            #[inline(always)]
            unsafe fn widen($p: *const $from, n: usize) -> <$step as Step>::B {
                // SAFETY: the caller's: `n` elements are there, and of what is not a zero is read.
                unsafe {
                    if n == <$step as Step>::N {
                        return $all;
                    }
                    let mut some = [<$from>::default(); <$step as Step>::N];
                    std::ptr::copy_nonoverlapping($p, some.as_mut_ptr(), n);
                    let $p = some.as_ptr();
                    $all
                }
            }
        }
    )*};
}

widen! {
    f32 => Avx2F32, |p| _mm256_loadu_ps(p), |x| x;
    bf16 => Avx2F32, |p| _mm256_castsi256_ps(_mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(_mm_loadu_si128(p.cast())))), |x| x.to_f32();
    f16 => Avx2F32, |p| _mm256_cvtph_ps(_mm_loadu_si128(p.cast())), |x| x.to_f32();
    f64 => Avx2F64, |p| _mm256_loadu_pd(p), |x| x;
}

/// `R` rows whose terms are contiguous: sums in the lanes of [`VECTORS`] vectors, which are added up as a
/// tree; then the terms of the last, shorter vectors, one after the other.
#[inline(always)]
unsafe fn rows<S, V, E, const R: usize>(block: &Block, row: usize)
where
    S: Step<A = V, B = V, C = V, Word = <S as Step>::Sum, Sum: Number + One>,
    V: Copy,
    E: Element<S>,
{
    // SAFETY: the caller's: the rows are there.
    unsafe {
        let Block { matrix, stride, vector, terms, sums, .. } = *block;
        let from = matrix.cast::<E>().add(row * stride);
        let x = vector.cast::<S::Word>();
        let mut all = [[S::zero(); VECTORS]; R];
        let each = VECTORS * S::N;
        let whole = terms / each * each;
        for term in (0..whole).step_by(each) {
            for v in 0..VECTORS {
                let word = S::load(x.add(term + v * S::N));
                for r in 0..R {
                    let a = E::widen(from.add(r * stride + term + v * S::N), S::N);
                    all[r][v] = S::madd(a, word, all[r][v]);
                }
            }
        }
        let one = S::splat(<S::Word>::one());
        let mut totals = [<S::Sum>::default(); R];
        for r in 0..R {
            let [a, b, c, d] = all[r];
            // Multiplied by one, what is added is rounded once: a sum.
            let sum = S::madd(one, S::madd(one, a, c), S::madd(one, b, d));
            let mut lanes = [<S::Sum>::default(); MAX_LANES];
            S::store(sum, lanes.as_mut_ptr(), S::N, false);
            totals[r] = total(lanes);
        }
        for term in whole..terms {
            for r in 0..R {
                let a = (*from.add(r * stride + term)).word();
                totals[r] = totals[r].plus_product(a, *x.add(term));
            }
        }
        for r in 0..R {
            *sums.cast::<S::Sum>().add(row + r) = totals[r];
        }
    }
}

#[inline(always)]
unsafe fn all_rows<S, V, E>(block: &Block)
where
    S: Step<A = V, B = V, C = V, Word = <S as Step>::Sum, Sum: Number + One>,
    V: Copy,
    E: Element<S>,
{
    let mut row = 0;
    // SAFETY: the caller's.
    unsafe {
        while row + ROWS <= block.rows {
            rows::<S, V, E, ROWS>(block, row);
            row += ROWS;
        }
        while row < block.rows {
            rows::<S, V, E, 1>(block, row);
            row += 1;
        }
    }
}

kernels! {
    "avx2,fma,f16c";
    F32, F32: f32_of_f32 Avx2F32, __m256, f32;
    F32, BF16: f32_of_bf16 Avx2F32, __m256, bf16;
    F32, F16: f32_of_f16 Avx2F32, __m256, f16;
    F64, F64: f64_of_f64 Avx2F64, __m256d, f64;
}
