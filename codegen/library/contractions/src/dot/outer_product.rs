//! Outer products (K = 1): the result is written row by row, nothing is summed; with non-temporal stores if
//! it is larger than the caches.

use hlo_library_base::isa::Features;
use hlo_library_base::pool::Pool;
use hlo_library_base::sizes;
use hlo_library_base::workspace::with_workspace;

use super::product::Extents;
use super::source::{MAX_PANEL_WIDTH, Source};

/// Bytes of a result above which it is written with non-temporal stores. Smaller ones are not: stores that
/// bypass the third-level cache are slower than stores to it.
const NON_TEMPORAL_BYTES: usize = 64 << 20;
/// The approximate number of bytes of the result that a chunk writes.
const CHUNK_BYTES: usize = 512 << 10;
/// The most columns: their words are in the second-level cache.
const MAX_COLUMNS: usize = 1 << 16;
/// Words of the right operand that are there twice. No row is shorter.
const BEYOND: usize = 16;

/// A product of one term, of `f32` into `f32`. Only for calls whose epilogue does not want its rows while
/// they are in a cache.
#[derive(Clone, Copy, Debug)]
pub(super) struct OuterProduct(Extents);

impl OuterProduct {
    /// Of these extents, if it is worth it; the machine has vectors of whole cache lines.
    pub(super) fn new(extents: Extents) -> Option<OuterProduct> {
        let fits = extents.k == 1 && (64..=MAX_COLUMNS).contains(&extents.n) && Features::here().avx512;
        fits.then_some(OuterProduct(extents))
    }

    /// Computes a batch of products: `0 + x * y`, rounded once.
    ///
    /// # Safety
    /// The operands have the extents, and the result, row-major, has space for all products.
    pub(super) unsafe fn run(
        &self,
        left: &dyn Source<f32>,
        right: &dyn Source<f32>,
        to: *mut f32,
        pool: &Pool,
    ) {
        let Extents { batch, m, n, .. } = self.0;
        let streamed = batch.saturating_mul(m).saturating_mul(4 * n) > sizes::from(NON_TEMPORAL_BYTES);
        // SAFETY: the caller's.
        unsafe { write(self.0, left, right, to, pool, streamed) };
    }
}

/// Where the result begins.
struct To(*mut f32);

// SAFETY: chunks write disjoint rows.
unsafe impl Sync for To {}

impl To {
    fn get(&self) -> *mut f32 {
        self.0
    }
}

/// [`OuterProduct::run`], past the caches or not.
unsafe fn write(
    extents: Extents,
    left: &dyn Source<f32>,
    right: &dyn Source<f32>,
    to: *mut f32,
    pool: &Pool,
    streamed: bool,
) {
    let Extents { batch, m, n, .. } = extents;
    let each = (CHUNK_BYTES / (4 * n)).clamp(1, m.max(1));
    let parts = m.div_ceil(each);
    let to = To(to);
    pool.run(batch * parts, &|chunk| {
        let (batch, first) = (chunk / parts, chunk % parts * each);
        let rows = each.min(m - first);
        with_workspace(4 * (n + BEYOND + rows), |workspace| {
            // SAFETY: there is space for these words; the caller's.
            unsafe {
                let y = workspace.cast::<f32>();
                let x = y.add(n + BEYOND);
                pack(right, batch, 0, n, y);
                std::ptr::copy_nonoverlapping(y, y.add(n), BEYOND);
                pack(left, batch, first, rows, x);
                let to = to.get().add((batch * m + first) * n);
                if streamed {
                    lines::<true>(x, rows, y, n, to);
                } else {
                    lines::<false>(x, rows, y, n, to);
                }
            }
        });
    });
}

/// Words of rows of an operand that has one term.
unsafe fn pack(from: &dyn Source<f32>, batch: usize, first: usize, count: usize, to: *mut f32) {
    for i in (0..count).step_by(MAX_PANEL_WIDTH) {
        let width = MAX_PANEL_WIDTH.min(count - i);
        // SAFETY: the caller's.
        unsafe { from.pack(batch, first + i, width, 0, 1, to.add(i), width) };
    }
}

/// Writes rows of products, `STREAMED` ones past the caches but for what other chunks have a part of. After
/// `y` is its beginning again, so that a cache line of two rows is written as one.
#[target_feature(enable = "avx512f")]
unsafe fn lines<const STREAMED: bool>(x: *const f32, rows: usize, y: *const f32, n: usize, to: *mut f32) {
    use std::arch::x86_64::*;
    let zero = _mm512_setzero_ps();
    let first = |count: usize| ((1u32 << count) - 1) as __mmask16;
    let store = |to: *mut f32, all: __m512| {
        // SAFETY: as below.
        unsafe { if STREAMED { _mm512_stream_ps(to, all) } else { _mm512_store_ps(to, all) } }
    };
    // SAFETY: the caller's; what is masked is not touched, and only the lines of whole vectors are written
    // whole.
    unsafe {
        let some = |row: usize, column: usize, count: usize| {
            let y = _mm512_maskz_loadu_ps(first(count), y.add(column));
            let all = _mm512_fmadd_ps(_mm512_set1_ps(*x.add(row)), y, zero);
            _mm512_mask_storeu_ps(to.add(row * n + column), first(count), all);
        };
        let mut column = to.align_offset(64).min(n);
        some(0, 0, column);
        for row in 0..rows {
            let (this, to) = (_mm512_set1_ps(*x.add(row)), to.add(row * n));
            while column + 16 <= n {
                let y = _mm512_loadu_ps(y.add(column));
                store(to.add(column), _mm512_fmadd_ps(this, y, zero));
                column += 16;
            }
            let rest = n - column;
            column = 0;
            if rest > 0 && row + 1 == rows {
                some(row, n - rest, rest);
            } else if rest > 0 {
                let next = _mm512_set1_ps(*x.add(row + 1));
                let x = _mm512_mask_blend_ps(first(rest), next, this);
                let y = _mm512_loadu_ps(y.add(n - rest));
                store(to.add(n - rest), _mm512_fmadd_ps(x, y, zero));
                column = 16 - rest;
            }
        }
        // Others read the result after this thread says that it is done.
        if STREAMED {
            _mm_sfence();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dot::source::Strided;
    use crate::dot::steps::Steps;

    /// All offsets of rows in cache lines, zeros and infinities, and results that begin anywhere.
    #[test]
    fn products_of_one_term() {
        if !Features::here().avx512 {
            return;
        }
        let values = [0.0, -0.0, 1.5, -2.25, f32::INFINITY, f32::NAN, 1e-30, -1e-30, 3e38];
        for (batch, m, n) in [(1, 7, 16), (2, 5, 67), (3, 33, 130), (1, 300, 1000)] {
            let list = |size: usize, salt: usize| -> Vec<f32> {
                (0..size).map(|i| values[(i * 7 + i / 5 + salt) % values.len()]).collect()
            };
            let (a, b) = (list(batch * m, 1), list(batch * n, 4));
            let steps = |size: usize, step: usize| Steps::new([(size, step as isize)]);
            let (batches, ones) = ([steps(batch, m), steps(batch, n)], steps(1, 1));
            let rows = [steps(m, 1), steps(n, 1)];
            let source = |from: &Vec<f32>, i: usize| Strided {
                base: from.as_ptr(),
                batch: &batches[i],
                rows: &rows[i],
                terms: &ones,
            };
            for (offset, streamed) in [(0, true), (3, false), (5, true)] {
                let mut out = vec![7.0_f32; offset + batch * m * n + 1];
                let extents = Extents { batch, m, n, k: 1 };
                // SAFETY: the arrays have these sizes.
                unsafe {
                    let to = out.as_mut_ptr().add(offset);
                    write(extents, &source(&a, 0), &source(&b, 1), to, &Pool::new(2), streamed);
                }
                for (i, &got) in out[offset..][..batch * m * n].iter().enumerate() {
                    let (row, column) = (i / n, i / (m * n) * n + i % n);
                    let expected = a[row].mul_add(b[column], 0.0);
                    let same = got.to_bits() == expected.to_bits() || got.is_nan() && expected.is_nan();
                    assert!(same, "{row} {column}: {got} {expected}");
                }
                assert_eq!(out[offset + batch * m * n], 7.0);
            }
        }
    }
}
