//! Windows along an axis whose elements are rows of neighbours: a vector of neighbours stays in registers
//! while all elements of its window are folded into it.

use hlo_library_base::memory::prefetch;

use super::fold::Function;

/// A line of windows along an axis.
#[derive(Clone, Copy)]
pub(crate) struct Line<'a> {
    /// The address of element 0 of the axis (perhaps in padding), for each position of the axes before it
    /// that exists.
    pub(super) rows: &'a [*const u8],
    /// The first element and the number of elements of each window.
    pub(super) spans: &'a [(usize, usize)],
    /// Distance of the elements of a window.
    pub(super) step: usize,
    /// Distance of elements of the axis, in neighbours.
    pub(super) pitch: usize,
    /// Neighbours.
    pub(super) width: usize,
    /// What results begin with, [`BLOCK_NEIGHBOURS`] times; null: with what is in memory.
    pub(super) first: *const u8,
    /// The results, and their distance in neighbours.
    pub(super) out: *mut u8,
    pub(super) out_pitch: usize,
    /// The prefetch distance in bytes, from the elements of a window; 0: nothing is prefetched.
    pub(super) ahead: usize,
}

/// Neighbours that are folded at a time: blocks of these sizes, the largest first, then single ones.
pub(super) const BLOCK_NEIGHBOURS: usize = 64;
const SMALL_BLOCK_NEIGHBOURS: usize = 16;
const MIN_BLOCK_NEIGHBOURS: usize = 4;

/// The prefetch distance in bytes: rows that are far apart are no stream that the hardware prefetcher
/// recognizes.
pub(super) const PREFETCH_BYTES: usize = 1 << 12;

impl Line<'_> {
    /// The initial values of the neighbours from `at` on of a result.
    #[inline(always)]
    unsafe fn start<T>(&self, to: *mut u8, at: usize) -> *const T {
        // A pattern has one or two elements; only single neighbours are at odd offsets.
        // SAFETY: the neighbours are there.
        unsafe {
            if self.first.is_null() { to.cast::<T>().add(at) } else { self.first.cast::<T>().add(at % 2) }
        }
    }

    /// Prefetches what later windows contain: at the prefetch distance, neighbours from `at` on of the
    /// elements of window `o` that the next one does not contain.
    #[inline(always)]
    fn ask_ahead<T>(&self, o: usize, at: usize, bytes: usize) {
        if self.ahead == 0 {
            return;
        }
        let (first, count) = self.spans[o];
        // Windows in padding have no first element; if the next one does not begin behind this one, it adds
        // nothing.
        let moved = self.spans.get(o + 1).map_or(0, |next| next.0.saturating_sub(first));
        let new = moved.div_ceil(self.step.max(1)).min(count);
        for &row in self.rows {
            for i in 0..new {
                let element = row.cast::<T>().wrapping_add((first + i * self.step) * self.pitch + at);
                for line in (0..bytes).step_by(64) {
                    prefetch(element.cast::<u8>().wrapping_add(self.ahead).wrapping_add(line));
                }
            }
        }
    }

    /// Calls `each` with every element of a window, at neighbour `at`.
    #[inline(always)]
    unsafe fn each<T>(&self, (first, count): (usize, usize), at: usize, mut each: impl FnMut(*const T)) {
        for &row in self.rows {
            let mut from = row.cast::<T>().wrapping_add(first * self.pitch + at);
            for _ in 0..count {
                each(from);
                from = from.wrapping_add(self.step * self.pitch);
            }
        }
    }
}

/// Folds `N` neighbours of a window.
///
/// # Safety
/// The neighbours are valid.
#[inline(always)]
unsafe fn block<T: Copy, F: Function<T>, const N: usize>(
    line: &Line<'_>,
    to: *mut u8,
    span: (usize, usize),
    at: usize,
) {
    // SAFETY: as the caller says; elements of a window are there.
    unsafe {
        let mut block = *line.start::<T>(to, at).cast::<[T; N]>();
        line.each::<T>(span, at, |from| {
            let source = &*from.cast::<[T; N]>();
            for i in 0..N {
                block[i] = F::of(block[i], source[i]);
            }
        });
        *to.cast::<T>().add(at).cast::<[T; N]>() = block;
    }
}

/// Computes all windows of a line.
///
/// # Safety
/// Elements of windows are there; results are not aliased.
#[inline(always)]
pub(super) unsafe fn windows<T: Copy, F: Function<T>>(line: &Line<'_>) {
    // SAFETY: as the caller says.
    unsafe {
        for (o, &span) in line.spans.iter().enumerate() {
            let to = line.out.cast::<T>().add(o * line.out_pitch).cast::<u8>();
            let mut at = 0;
            macro_rules! blocks {
                ($n:expr) => {
                    while line.width - at >= $n {
                        line.ask_ahead::<T>(o, at, $n * size_of::<T>());
                        block::<T, F, { $n }>(line, to, span, at);
                        at += $n;
                    }
                };
            }
            blocks!(BLOCK_NEIGHBOURS);
            blocks!(SMALL_BLOCK_NEIGHBOURS);
            blocks!(MIN_BLOCK_NEIGHBOURS);
            blocks!(1);
        }
    }
}

/// Maxima (or minima) of f32: `vrange` on numbers, and masks of the NaNs.
///
/// # Safety
/// As [`windows`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq")]
pub(super) unsafe fn extremes<const LARGEST: bool>(line: &Line<'_>) {
    // SAFETY: as the caller says.
    unsafe {
        for (o, &span) in line.spans.iter().enumerate() {
            let to = line.out.cast::<f32>().add(o * line.out_pitch);
            let mut at = 0;
            macro_rules! blocks {
                ($vectors:literal) => {
                    while at + 16 * ($vectors - 1) < line.width {
                        let last = (line.width - at).min(16 * $vectors) - 16 * ($vectors - 1);
                        line.ask_ahead::<f32>(o, at, 64 * $vectors);
                        extreme_block::<LARGEST, $vectors>(line, to, span, at, ((1u32 << last) - 1) as u16);
                        at += 16 * $vectors;
                    }
                };
            }
            blocks!(4);
            blocks!(1);
        }
    }
}

/// `VECTORS` vectors of neighbours; of the last one those in a mask.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq")]
unsafe fn extreme_block<const LARGEST: bool, const VECTORS: usize>(
    line: &Line<'_>,
    to: *mut f32,
    span: (usize, usize),
    at: usize,
    last: u16,
) {
    use super::fold::{RANGE_MAXIMUM, RANGE_MINIMUM};
    use std::arch::x86_64::{
        _CMP_UNORD_Q, _mm512_cmp_ps_mask, _mm512_mask_blend_ps, _mm512_mask_storeu_ps, _mm512_maskz_loadu_ps,
        _mm512_range_ps, _mm512_set1_ps,
    };
    let nan = _mm512_set1_ps(f32::NAN);
    let mask = |k: usize| if k + 1 == VECTORS { last } else { u16::MAX };
    let (mut best, mut nans) = ([nan; VECTORS], [0u16; VECTORS]);
    // SAFETY: the caller's; lanes beyond the neighbours are masked.
    unsafe {
        let start = line.start::<f32>(to.cast(), at);
        for k in 0..VECTORS {
            best[k] = _mm512_maskz_loadu_ps(mask(k), start.add(16 * k));
            nans[k] = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(best[k], best[k]);
        }
        for &row in line.rows {
            let mut from = row.cast::<f32>().wrapping_add(span.0 * line.pitch + at);
            for _ in 0..span.1 {
                for k in 0..VECTORS {
                    let x = _mm512_maskz_loadu_ps(mask(k), from.add(16 * k));
                    nans[k] |= _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(x, x);
                    best[k] = if LARGEST {
                        _mm512_range_ps::<RANGE_MAXIMUM>(best[k], x)
                    } else {
                        _mm512_range_ps::<RANGE_MINIMUM>(best[k], x)
                    };
                }
                from = from.wrapping_add(line.step * line.pitch);
            }
        }
        for k in 0..VECTORS {
            let best = _mm512_mask_blend_ps(nans[k], best[k], nan);
            _mm512_mask_storeu_ps(to.add(at + 16 * k), mask(k), best);
        }
    }
}
