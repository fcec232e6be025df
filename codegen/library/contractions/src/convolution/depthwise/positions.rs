//! Vectors of positions: contiguous along the last axis, of one feature.

use super::Line;
use super::element::Element;
#[cfg(target_arch = "x86_64")]
use super::{WIDTH, strips::NARROW_WIDTH};

/// Vectors of a line for which the lanes that are there are found at once.
#[cfg(target_arch = "x86_64")]
const SECTION_VECTORS: usize = 16;

/// Bytes of workspace that [`Plane::rows_wide`] wants.
#[cfg(target_arch = "x86_64")]
pub(super) fn workspace(fast: &Line) -> usize {
    4 * fast.kernel * SECTION_VECTORS
}

/// The positions of one feature of an example.
pub(super) struct Plane<'a, E> {
    /// The first channel of the group; channels, and their strides in input and kernel.
    pub(super) lhs: *const E,
    pub(super) channels: [isize; 3],
    pub(super) rhs: *const f32,
    pub(super) out: *mut E,
    /// All axes but the last.
    pub(super) slow: &'a [Line; 2],
    /// The last axis.
    pub(super) fast: &'a Line,
}

impl<E: Element> Plane<'_, E> {
    /// Computes some rows: positions along the slow axes.
    ///
    /// # Safety
    /// The arrays are those of the convolution; the machine has AVX-512, and `masks` is as large as
    /// [`workspace`] says.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq")]
    pub(super) unsafe fn rows_wide(&self, rows: std::ops::Range<usize>, masks: *mut u32) {
        // SAFETY: the caller's.
        unsafe {
            match self.fast.stride {
                1 => self.sections::<1>(rows, masks),
                2 => self.sections::<2>(rows, masks),
                _more => self.sections::<0>(rows, masks),
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq")]
    unsafe fn sections<const STEP: usize>(&self, rows: std::ops::Range<usize>, masks: *mut u32) {
        let fast = self.fast;
        for section in (0..fast.output.div_ceil(WIDTH)).step_by(SECTION_VECTORS) {
            let vectors = (fast.output.div_ceil(WIDTH) - section).min(SECTION_VECTORS);
            // SAFETY: the workspace has space for the vectors of a section; the caller's of the rest.
            unsafe {
                for w in 0..fast.kernel {
                    for v in 0..vectors {
                        let x = ((section + v) * WIDTH) as isize;
                        let first = x * fast.stride + w as isize * fast.dilation - fast.padding;
                        *masks.add(w * vectors + v) = lanes_of::<STEP>(first, fast.input, fast.stride);
                    }
                }
                for row in rows.clone() {
                    let mut v = 0;
                    while v < vectors {
                        let block = Block { section, vectors, v, masks };
                        v += match vectors - v {
                            1 => self.block::<1, STEP>(row, block),
                            2 | 3 => self.block::<2, STEP>(row, block),
                            _more => self.block::<4, STEP>(row, block),
                        };
                    }
                }
            }
        }
    }

    /// Some vectors of a row; how many.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq")]
    unsafe fn block<const V: usize, const STEP: usize>(&self, row: usize, block: Block) -> usize {
        use std::arch::x86_64::*;
        let ([z, y], fast) = (self.slow, self.fast);
        let (oz, oy) = (row / y.output, row % y.output);
        let (zs, ys) = (z.present(oz), y.present(oy));
        let x = ((block.section + block.v) * WIDTH) as isize;
        let mut sums = [_mm512_setzero_ps(); V];
        let [channels, channel_stride, kernel_channel_stride] = self.channels;
        // SAFETY: the caller's: rows that are not there are not looked at, and lanes that are not are masked.
        unsafe {
            for channel in 0..channels {
                let lhs = self.lhs.offset(channel * channel_stride);
                let rhs = self.rhs.offset(channel * kernel_channel_stride + fast.kernel_offset);
                for wz in zs.clone() {
                    for wy in ys.clone() {
                        let line = lhs.offset(z.at(oz, wz) * z.input_stride + y.at(oy, wy) * y.input_stride);
                        let line = line.wrapping_offset(x * fast.stride - fast.padding);
                        let weights = rhs.offset(z.weight(wz) + y.weight(wy));
                        for w in 0..fast.kernel {
                            let weight = _mm512_set1_ps(*weights.offset(w as isize * fast.kernel_stride));
                            let from = line.wrapping_offset(w as isize * fast.dilation);
                            let masks = block.masks.add(w * block.vectors + block.v);
                            for v in 0..V {
                                let from = from.wrapping_offset((v * WIDTH) as isize * fast.stride);
                                let values = load::<E, STEP>(*masks.add(v), from, fast.stride);
                                sums[v] = _mm512_fmadd_ps(values, weight, sums[v]);
                            }
                        }
                    }
                }
            }
            let out = self.out.offset(oz as isize * z.result_stride + oy as isize * y.result_stride);
            for v in 0..V {
                let at = x + (v * WIDTH) as isize;
                let mask = lanes(0, fast.output as isize - at) as u16;
                let to = out.wrapping_offset(at * fast.result_stride);
                if fast.result_stride == 1 {
                    E::store(to, mask, sums[v]);
                } else {
                    E::store_apart(to, mask, sums[v], fast.result_stride);
                }
            }
        }
        V
    }

    /// As [`Self::rows_wide`], by AVX2.
    ///
    /// # Safety
    /// The arrays are those of the convolution.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma,f16c")]
    pub(super) unsafe fn rows_narrow(&self, rows: std::ops::Range<usize>) {
        // SAFETY: the caller's.
        unsafe {
            match self.fast.stride {
                1 => self.narrow_rows::<1>(rows),
                2 => self.narrow_rows::<2>(rows),
                _more => self.rows_plain(rows),
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn narrow_rows<const STEP: usize>(&self, rows: std::ops::Range<usize>) {
        let vectors = self.fast.output.div_ceil(NARROW_WIDTH);
        for row in rows {
            let mut v = 0;
            while v < vectors {
                // SAFETY: the caller's.
                v += unsafe {
                    match vectors - v {
                        1 => self.narrow_block::<1, STEP>(row, v),
                        2 | 3 => self.narrow_block::<2, STEP>(row, v),
                        _more => self.narrow_block::<4, STEP>(row, v),
                    }
                };
            }
        }
    }

    /// Some vectors of a row, from the one of this number on; how many.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn narrow_block<const V: usize, const STEP: usize>(&self, row: usize, v: usize) -> usize {
        use std::arch::x86_64::*;
        let ([z, y], fast) = (self.slow, self.fast);
        let (oz, oy) = (row / y.output, row % y.output);
        let (zs, ys) = (z.present(oz), y.present(oy));
        let x = (v * NARROW_WIDTH) as isize;
        let [channels, channel_stride, kernel_channel_stride] = self.channels;
        // SAFETY: the caller's: rows that are not there are not looked at, nor are elements beside a line.
        unsafe {
            let mut sums = [_mm256_setzero_ps(); V];
            for channel in 0..channels {
                let lhs = self.lhs.offset(channel * channel_stride);
                let rhs = self.rhs.offset(channel * kernel_channel_stride + fast.kernel_offset);
                for wz in zs.clone() {
                    for wy in ys.clone() {
                        let line = lhs.offset(z.at(oz, wz) * z.input_stride + y.at(oy, wy) * y.input_stride);
                        let weights = rhs.offset(z.weight(wz) + y.weight(wy));
                        for w in 0..fast.kernel {
                            let weight = _mm256_set1_ps(*weights.offset(w as isize * fast.kernel_stride));
                            let first = x * STEP as isize + w as isize * fast.dilation - fast.padding;
                            for v in 0..V {
                                let first = first + (v * NARROW_WIDTH * STEP) as isize;
                                let values = load_eight::<E, STEP>(line, first, fast.input);
                                sums[v] = _mm256_fmadd_ps(values, weight, sums[v]);
                            }
                        }
                    }
                }
            }
            let out = self.out.offset(oz as isize * z.result_stride + oy as isize * y.result_stride);
            for v in 0..V {
                let at = x as usize + v * NARROW_WIDTH;
                let n = fast.output.saturating_sub(at);
                let to = out.wrapping_offset(at as isize * fast.result_stride);
                if fast.result_stride == 1 && n >= NARROW_WIDTH {
                    E::store_eight(to, sums[v]);
                } else {
                    E::store_some(to, sums[v], n, fast.result_stride);
                }
            }
        }
        V
    }

    /// As [`Self::rows_wide`], for machines without such vectors.
    ///
    /// # Safety
    /// The arrays are those of the convolution.
    pub(super) unsafe fn rows_plain(&self, rows: std::ops::Range<usize>) {
        let ([z, y], fast) = (self.slow, self.fast);
        let [channels, channel_stride, kernel_channel_stride] = self.channels;
        for row in rows {
            let (oz, oy) = (row / y.output, row % y.output);
            for ox in 0..fast.output {
                let mut sum = 0f32;
                // SAFETY: the caller's: only what is there is looked at.
                unsafe {
                    for channel in 0..channels {
                        for wz in z.present(oz) {
                            for wy in y.present(oy) {
                                for w in fast.present(ox) {
                                    let from = channel * channel_stride
                                        + z.at(oz, wz) * z.input_stride
                                        + y.at(oy, wy) * y.input_stride
                                        + fast.at(ox, w);
                                    let weight = channel * kernel_channel_stride
                                        + z.weight(wz)
                                        + y.weight(wy)
                                        + fast.weight(w);
                                    let x = (*self.lhs.offset(from)).f32();
                                    sum = x.mul_add(*self.rhs.offset(weight), sum);
                                }
                            }
                        }
                    }
                    let to = oz as isize * z.result_stride
                        + oy as isize * y.result_stride
                        + ox as isize * fast.result_stride;
                    *self.out.offset(to) = E::of(sum);
                }
            }
        }
    }
}

/// Some vectors of a section.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
struct Block {
    /// The first vector of the section, how many it has, and the first of those that are meant.
    section: usize,
    vectors: usize,
    v: usize,
    /// Lanes that are there, for each position in the window and each vector.
    masks: *const u32,
}

/// Lanes `first..end`, as far as there are any.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn lanes(first: isize, end: isize) -> u32 {
    let upto = |n: isize| (1u32 << n.clamp(0, WIDTH as isize)) - 1;
    upto(end) & !upto(first)
}

/// What [`load`] is to read of elements `step` apart, from the element `first` of a line of that many on.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn lanes_of<const STEP: usize>(first: isize, elements: isize, step: isize) -> u32 {
    let until = |end: isize| (end - first + step - 1).div_euclid(step);
    spread::<STEP>(lanes(until(0), until(elements)))
}

/// A mask of lanes as [`load`] wants it: of elements two apart, every second bit.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn spread<const STEP: usize>(mask: u32) -> u32 {
    if STEP != 2 {
        return mask;
    }
    let apart = |mask: u32, by: u32, kept: u32| (mask | mask << by) & kept;
    apart(apart(apart(apart(mask, 8, 0xff_00ff), 4, 0xf0f_0f0f), 2, 0x3333_3333), 1, 0x5555_5555)
}

/// A vector of elements that are `step` apart, which `STEP` says if it is 1 or 2; what the mask does not say
/// is 0 and not touched.
///
/// # Safety
/// The others are there; the machine has AVX-512.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) unsafe fn load<E: Element, const STEP: usize>(
    mask: u32,
    from: *const E,
    step: isize,
) -> std::arch::x86_64::__m512 {
    use std::arch::x86_64::*;
    // SAFETY: the caller's.
    unsafe {
        match STEP {
            1 => E::load(mask as u16, from),
            2 => {
                let even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
                let low = E::load(mask as u16, from);
                let high = E::load((mask >> 16) as u16, from.wrapping_add(WIDTH));
                _mm512_permutex2var_ps(low, even, high)
            }
            _more => E::apart(mask as u16, from, step),
        }
    }
}

/// Eight elements of a line, `STEP` (1 or 2) apart, from the one of this number on; those that are not among
/// the line's `elements` are 0, and not touched.
///
/// # Safety
/// The others are there.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn load_eight<E: Element, const STEP: usize>(
    line: *const E,
    first: isize,
    elements: isize,
) -> std::arch::x86_64::__m256 {
    use std::arch::x86_64::*;
    let width = NARROW_WIDTH as isize;
    let from = line.wrapping_offset(first);
    // SAFETY: the caller's.
    unsafe {
        let some = |from: *const E, first: isize| {
            if first >= 0 && first + width <= elements {
                E::load_eight(from)
            } else {
                let end = (elements - first).clamp(0, width);
                E::load_some(from, (-first).clamp(0, end) as usize, end as usize)
            }
        };
        let low = some(from, first);
        if STEP == 1 {
            return low;
        }
        let high = some(from.wrapping_add(NARROW_WIDTH), first + width);
        // Elements 0, 2, 8, 10 and 4, 6, 12, 14.
        let even = _mm256_castps_pd(_mm256_shuffle_ps::<0b10_00_10_00>(low, high));
        _mm256_castpd_ps(_mm256_permute4x64_pd::<0b11_01_10_00>(even))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of a reversed window, whose first position is the last one of the kernel; also with the widest
    /// vectors that the machine has.
    #[test]
    fn reversed_windows() {
        let (input, kernel) = ([1.0f32, 2.0, 4.0, 8.0, 16.0], [1.0f32, 10.0, 100.0]);
        let one = Line {
            input: 1,
            input_stride: 0,
            kernel: 1,
            kernel_stride: 0,
            kernel_offset: 0,
            output: 1,
            stride: 1,
            padding: 0,
            dilation: 1,
            result_stride: 0,
        };
        let fast = Line {
            input: 5,
            input_stride: 1,
            kernel: 3,
            kernel_stride: -1,
            kernel_offset: 2,
            output: 5,
            padding: 1,
            result_stride: 1,
            ..one
        };
        let slow = [one; 2];
        let plane = |out: &mut [f32; 5]| Plane {
            lhs: input.as_ptr(),
            channels: [1, 0, 0],
            rhs: kernel.as_ptr(),
            out: out.as_mut_ptr(),
            slow: &slow,
            fast: &fast,
        };
        let expected = [12.0, 124.0, 248.0, 496.0, 960.0];
        let mut out = [0f32; 5];
        // SAFETY: the arrays have these sizes.
        unsafe { plane(&mut out).rows_plain(0..1) };
        assert_eq!(out, expected);
        #[cfg(target_arch = "x86_64")]
        if hlo_library_base::isa::Features::here().avx2 {
            let mut out = [0f32; 5];
            // SAFETY: as above.
            unsafe { plane(&mut out).rows_narrow(0..1) };
            assert_eq!(out, expected);
        }
        #[cfg(target_arch = "x86_64")]
        if hlo_library_base::isa::Features::here().avx512 {
            let mut out = [0f32; 5];
            let mut masks = vec![0u32; workspace(&fast) / 4];
            // SAFETY: as above, and the machine has such vectors.
            unsafe { plane(&mut out).rows_wide(0..1, masks.as_mut_ptr()) };
            assert_eq!(out, expected);
        }
    }
}
