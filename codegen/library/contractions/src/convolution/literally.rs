//! Kernels that hold an infinity or NaN where some term is absent: whether one does, and the sums of the
//! terms that are there.

use std::sync::atomic::{AtomicBool, Ordering};

use hlo::{ElementType, TypeClass};
use hlo_library_base::Call;
use hlo_library_base::memory::Shared;
use hlo_library_base::pool::Pool;
use hlo_library_base::workspace::with_workspace;

use super::super::dot::convert;
use super::super::dot::product::Target;
use super::super::dot::source::Source;
use super::super::dot::tile::{Arithmetic, Tile};
use super::{Convolution, Part};

impl Convolution {
    /// Whether all elements of the kernel are finite.
    pub(super) unsafe fn kernel_is_finite(
        &self,
        rhs: *const u8,
        finite: unsafe fn(*const u8, usize) -> bool,
        pool: &Pool,
    ) -> bool {
        /// Elements of a chunk.
        const CHUNK: usize = 1 << 16;
        let ty = self.rhs.packed_type();
        if ty == self.field.word() {
            let (all, n, rhs) = (AtomicBool::new(true), self.rhs.elements, Shared::<u8>::new(rhs.cast_mut()));
            pool.run(n.div_ceil(CHUNK), &|chunk| {
                let first = chunk * CHUNK;
                // SAFETY: the caller's, of a part.
                let part =
                    unsafe { finite(rhs.offset(first * ty.storage_bytes()).pointer(), CHUNK.min(n - first)) };
                if !part {
                    all.store(false, Ordering::Relaxed);
                }
            });
            return all.into_inner();
        }
        // Exponents of all ones.
        let exponents = match ty {
            ElementType::BF16 => 0x7f80,
            ElementType::F16 => 0x7c00,
            _other => 0,
        };
        if exponents != 0 {
            // SAFETY: the caller's.
            let x = unsafe { std::slice::from_raw_parts(rhs.cast::<u16>(), self.rhs.elements) };
            let finite = |x: &[u16]| x.iter().fold(true, |finite, x| finite & (x & exponents != exponents));
            return x.chunks(1024).all(finite);
        }
        // A narrower float: not worth a loop of its own unless its bits can say infinity or NaN.
        match ty.class() {
            TypeClass::Float => {
                let bytes = ty.storage_bytes();
                // SAFETY: the caller's.
                (0..self.rhs.elements).all(|i| unsafe { convert::is_finite(ty, rhs.add(i * bytes)) })
            }
            TypeClass::Pred | TypeClass::Signed | TypeClass::Unsigned | TypeClass::Complex => true,
        }
    }

    /// A product for kernels with infinities or NaN: each sum by itself, of the terms that are there.
    pub(super) unsafe fn literally<A: Arithmetic>(
        &self,
        part: &Part,
        patches: &dyn Source<A::Word>,
        kernel: &dyn Source<A::Word>,
        target: &Target<'_, A::Sum>,
        call: Call<'_>,
    ) {
        let (k, channels) = (part.terms, part.patches.channels.max(1));
        let target = *target;
        call.pool.run(part.result[0].size() * part.positions, &|row| {
            let (batch, position) = (row / part.positions, row % part.positions);
            let bytes = (k * size_of::<A::Word>()).next_multiple_of(64);
            with_workspace(2 * bytes + 64, |workspace| {
                let patch = workspace.cast::<A::Word>();
                // SAFETY: the workspace has space for two lines of words; the caller's of the rest.
                unsafe {
                    let line = workspace.add(bytes).cast::<A::Word>();
                    patches.pack(batch, position, 1, 0, k, patch, 1);
                    for feature in 0..part.features {
                        kernel.pack(batch, feature, 1, 0, k, line, 1);
                        for tap in (0..k / channels).filter(|&tap| !part.patches.present(position, tap)) {
                            for channel in 0..channels {
                                *line.add(tap * channels + channel) = A::Word::default();
                            }
                        }
                        let mut sum = A::Sum::default();
                        (A::tiles().run)(&Tile {
                            a: patch,
                            a_row: 1,
                            a_term: 1,
                            b: line,
                            b_term: 1,
                            terms: k,
                            rows: 1,
                            columns: 1,
                            c: &mut sum,
                            c_row: 1,
                            accumulate: false,
                            start: std::ptr::null(),
                            far: false,
                            along: false,
                            copy: std::ptr::null_mut(),
                            next: std::ptr::null(),
                            next_step: 0,
                        });
                        let (row, column) =
                            if self.patches_left { (position, feature) } else { (feature, position) };
                        target.put(batch, row, column, &sum);
                    }
                }
            });
        });
    }
}

/// Whether `n` floats are finite.
pub(super) unsafe fn finite_f32(x: *const u8, n: usize) -> bool {
    // SAFETY: the caller's.
    let x = unsafe { std::slice::from_raw_parts(x.cast::<f32>(), n) };
    x.chunks(1024).all(|x| x.iter().fold(true, |finite, x| finite & x.is_finite()))
}

/// Whether `n` floats are finite.
pub(super) unsafe fn finite_f64(x: *const u8, n: usize) -> bool {
    // SAFETY: the caller's.
    let x = unsafe { std::slice::from_raw_parts(x.cast::<f64>(), n) };
    x.chunks(1024).all(|x| x.iter().fold(true, |finite, x| finite & x.is_finite()))
}
