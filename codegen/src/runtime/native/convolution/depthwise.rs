//! Convolutions of one channel a group, channels last: vectors of channels, several positions at a time.

use smallvec::SmallVec;

use super::{Lane, Outer};
use crate::runtime::native::dot::tile::Features;
use crate::runtime::pool::Pool;

/// A depthwise convolution of `f32` whose channels are neighbours in all three arrays.
#[derive(Clone, Debug)]
pub(super) struct Depthwise {
    batch: usize,
    batch_stride: isize,
    result_batch_stride: isize,
    channels: usize,
    /// All axes but the last.
    slow: SmallVec<[Line; 2]>,
    /// The last axis.
    fast: Line,
}

/// A spatial axis.
#[derive(Clone, Copy, Debug)]
struct Line {
    input: isize,
    input_stride: isize,
    kernel: usize,
    kernel_stride: isize,
    kernel_offset: isize,
    output: usize,
    stride: isize,
    padding: isize,
    dilation: isize,
    result_stride: isize,
}

impl Line {
    fn of(lane: &Lane) -> Line {
        Line {
            input: lane.axis.input as isize,
            input_stride: lane.axis.input_stride,
            kernel: lane.axis.kernel,
            kernel_stride: lane.kernel_stride,
            kernel_offset: lane.kernel_offset,
            output: lane.axis.output,
            stride: lane.axis.stride,
            padding: lane.axis.padding,
            dilation: lane.axis.kernel_dilation,
            result_stride: lane.result_stride,
        }
    }

    /// The window positions that are there for a placement.
    fn present(&self, at: usize) -> std::ops::Range<usize> {
        let origin = at as isize * self.stride - self.padding;
        let first =
            (-origin).max(0).div_euclid(self.dilation) + isize::from((-origin).max(0) % self.dilation != 0);
        let end = (self.input - origin + self.dilation - 1).max(0) / self.dilation;
        let end = (end as usize).min(self.kernel);
        (first as usize).min(end)..end
    }
}

/// The taps of a position that are there: offsets in the input and in the kernel.
type Taps = SmallVec<[(isize, isize); 64]>;

impl Depthwise {
    /// If it is one.
    pub(super) fn new(lanes: &[Lane], outer: &Outer) -> Option<Depthwise> {
        let neighbours = [outer.channel_stride, outer.kernel_feature_stride, outer.result_feature_stride]
            .iter()
            .all(|&s| s == 1);
        let plain = lanes.iter().all(|lane| lane.axis.input_dilation == 1);
        let (fast, slow) = lanes.split_last()?;
        (neighbours && plain).then(|| Depthwise {
            batch: outer.batch,
            batch_stride: outer.batch_stride,
            result_batch_stride: outer.result_batch_stride,
            channels: outer.feature_groups,
            slow: slow.iter().map(Line::of).collect(),
            fast: Line::of(fast),
        })
    }

    /// Computes it.
    ///
    /// # Safety
    /// The arrays are those of the convolution.
    pub(super) unsafe fn run(&self, lhs: *const f32, rhs: *const f32, out: *mut f32, pool: &Pool) {
        let lines: usize = self.slow.iter().map(|line| line.output).product::<usize>() * self.batch;
        let work = self.fast.output
            * self.fast.kernel
            * self.channels
            * self.slow.iter().map(|line| line.kernel).product::<usize>();
        let each = ((1 << 17) / work.max(1)).max(1);
        let arrays = Arrays { lhs, rhs, out };
        pool.run(lines.div_ceil(each), &|chunk| {
            for line in chunk * each..lines.min((chunk + 1) * each) {
                // SAFETY: the caller's; lines are disjoint parts of the result.
                unsafe { self.line(line, arrays.get()) };
            }
        });
    }

    /// One line of positions along the last axis.
    unsafe fn line(&self, line: usize, (mut lhs, rhs, mut out): (*const f32, *const f32, *mut f32)) {
        let mut rest = line;
        // Taps of the slow axes that are there.
        let mut slow: Taps = SmallVec::from_slice(&[(0, 0)]);
        let mut places: SmallVec<[(usize, Line); 2]> = SmallVec::new();
        for axis in self.slow.iter().rev() {
            places.push((rest % axis.output, *axis));
            rest /= axis.output;
        }
        // SAFETY: the caller's: only taps that are there are read.
        unsafe {
            lhs = lhs.offset(rest as isize * self.batch_stride);
            out = out.offset(rest as isize * self.result_batch_stride);
            for &(at, axis) in places.iter().rev() {
                out = out.offset(at as isize * axis.result_stride);
                let origin = at as isize * axis.stride - axis.padding;
                let taps = axis.present(at).map(|w| {
                    let w = w as isize;
                    (
                        (origin + w * axis.dilation) * axis.input_stride,
                        axis.kernel_offset + w * axis.kernel_stride,
                    )
                });
                let taps: Taps = taps.collect();
                slow = slow
                    .iter()
                    .flat_map(|&(i, k)| taps.iter().map(move |&(i2, k2)| (i + i2, k + k2)))
                    .collect();
            }
            let fast = &self.fast;
            let mut at = 0;
            while at < fast.output {
                let present = fast.present(at);
                // Positions with the same taps are done together.
                let mut end = at + 1;
                while end < fast.output && fast.present(end) == present {
                    end += 1;
                }
                let origin = at as isize * fast.stride - fast.padding;
                let fast_taps = present.map(|w| {
                    let w = w as isize;
                    (
                        (origin + w * fast.dilation) * fast.input_stride,
                        fast.kernel_offset + w * fast.kernel_stride,
                    )
                });
                let fast_taps: Taps = fast_taps.collect();
                let taps: Taps = slow
                    .iter()
                    .flat_map(|&(i, k)| fast_taps.iter().map(move |&(i2, k2)| (i + i2, k + k2)))
                    .collect();
                let strip = Strip {
                    lhs,
                    rhs,
                    out: out.offset(at as isize * fast.result_stride),
                    taps: &taps,
                    count: end - at,
                    step: fast.stride * fast.input_stride,
                    result_step: fast.result_stride,
                    channels: self.channels,
                };
                #[cfg(target_arch = "x86_64")]
                if Features::here().avx512 {
                    strip.wide();
                    at = end;
                    continue;
                }
                strip.plain();
                at = end;
            }
        }
    }
}

/// The arrays, for all threads.
#[derive(Clone, Copy)]
struct Arrays {
    lhs: *const f32,
    rhs: *const f32,
    out: *mut f32,
}

// SAFETY: threads write disjoint parts of the result.
unsafe impl Sync for Arrays {}

impl Arrays {
    fn get(&self) -> (*const f32, *const f32, *mut f32) {
        (self.lhs, self.rhs, self.out)
    }
}

/// Positions along the last axis that have the same taps.
struct Strip<'a> {
    lhs: *const f32,
    rhs: *const f32,
    out: *mut f32,
    taps: &'a [(isize, isize)],
    count: usize,
    step: isize,
    result_step: isize,
    channels: usize,
}

impl Strip<'_> {
    unsafe fn plain(&self) {
        for position in 0..self.count as isize {
            for channel in 0..self.channels {
                let mut sum = 0f32;
                // SAFETY: the caller's.
                unsafe {
                    for &(input, kernel) in self.taps {
                        let x = *self.lhs.offset(input + position * self.step).add(channel);
                        sum = x.mul_add(*self.rhs.offset(kernel).add(channel), sum);
                    }
                    *self.out.offset(position * self.result_step).add(channel) = sum;
                }
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq")]
    unsafe fn wide(&self) {
        use std::arch::x86_64::*;
        /// Positions at a time.
        const P: usize = 8;
        for channel in (0..self.channels).step_by(16) {
            let n = (self.channels - channel).min(16);
            let mask = ((1u32 << n) - 1) as __mmask16;
            // SAFETY: the caller's; masked lanes are not touched.
            unsafe {
                let (lhs, rhs, out) = (self.lhs.add(channel), self.rhs.add(channel), self.out.add(channel));
                let mut position = 0;
                while position + P <= self.count {
                    let mut sums = [_mm512_setzero_ps(); P];
                    for &(input, kernel) in self.taps {
                        let w = _mm512_maskz_loadu_ps(mask, rhs.offset(kernel));
                        let from = lhs.offset(input + position as isize * self.step);
                        for p in 0..P {
                            let x = _mm512_maskz_loadu_ps(mask, from.offset(p as isize * self.step));
                            sums[p] = _mm512_fmadd_ps(x, w, sums[p]);
                        }
                    }
                    for p in 0..P {
                        let to = out.offset((position + p) as isize * self.result_step);
                        _mm512_mask_storeu_ps(to, mask, sums[p]);
                    }
                    position += P;
                }
                for position in position as isize..self.count as isize {
                    let mut sum = _mm512_setzero_ps();
                    for &(input, kernel) in self.taps {
                        let w = _mm512_maskz_loadu_ps(mask, rhs.offset(kernel));
                        let x = _mm512_maskz_loadu_ps(mask, lhs.offset(input + position * self.step));
                        sum = _mm512_fmadd_ps(x, w, sum);
                    }
                    _mm512_mask_storeu_ps(out.offset(position * self.result_step), mask, sum);
                }
            }
        }
    }
}
