//! Convolutions of few channels a group: vectors of channels where those are neighbours, several positions at a time; otherwise vectors of positions.

use hlo::ElementType;
use hlo::half::{bf16, f16};
use smallvec::SmallVec;

use super::{Lane, Outer};
use crate::runtime::native::dot::tile::Features;
use crate::runtime::pool::Pool;

/// Elements of input and result, which are computed in `f32`.
trait Element: Copy {
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
        // SAFETY: so many are there.
        unsafe { std::arch::x86_64::_mm512_loadu_ps(lanes.as_ptr()) }
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

/// A convolution of floats of one type of few channels and features a group, whose channels, or else whose positions along the last axis, are neighbours in input and
/// result (channels in the kernel too).
#[derive(Clone, Debug)]
pub(super) struct Depthwise {
    ty: ElementType,
    batch: usize,
    batch_stride: isize,
    result_batch_stride: isize,
    groups: usize,
    /// Channels of a group: how many, and their strides in input and kernel.
    channels: usize,
    channel_stride: isize,
    kernel_channel_stride: isize,
    /// Features of a group: how many, and their strides in kernel and result.
    features: usize,
    kernel_feature_stride: isize,
    result_feature_stride: isize,
    /// Vectors are of positions.
    by_position: bool,
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

/// Elements of a vector.
const WIDTH: usize = 16;

/// The taps of a position that are there: offsets in the input and in the kernel.
type Taps = SmallVec<[(isize, isize); 64]>;

impl Depthwise {
    /// If it is one.
    pub(super) fn new(lanes: &[Lane], outer: &Outer, ty: ElementType) -> Option<Depthwise> {
        if !matches!(ty, ElementType::F32 | ElementType::BF16 | ElementType::F16) {
            return None;
        }
        let neighbours = [outer.channel_stride, outer.kernel_feature_stride, outer.result_feature_stride]
            .iter()
            .all(|&s| s == 1);
        let plain = lanes.iter().all(|lane| lane.axis.input_dilation == 1);
        let (fast, slow) = lanes.split_last()?;
        let (channels, features) = (outer.channels, outer.features);
        if channels == 0 || features == 0 || !plain {
            return None;
        }
        // A vector of features sees no more than a vector of channels.
        let grouped = WIDTH.is_multiple_of(features) && WIDTH / features * channels <= WIDTH;
        let by_feature = neighbours && outer.feature_groups > 1 && grouped;
        let along = fast.result_stride == 1 && fast.axis.input_stride == 1 && fast.axis.output > 1;
        let taps: usize = lanes.iter().map(|lane| lane.axis.kernel).product();
        // A table of taps is made for each line; a vector's offsets are of 32 bits.
        let by_position = along
            && channels <= 4
            && (features <= 4 || outer.feature_groups > 1)
            && fast.axis.output >= WIDTH / 2
            && taps <= 4 * fast.axis.output
            && fast.axis.stride < if ty == ElementType::F32 { 1 << 20 } else { 2 };
        let few = outer.feature_groups * features < WIDTH / 2;
        (by_feature || by_position).then(|| Depthwise {
            ty,
            batch: outer.batch,
            batch_stride: outer.batch_stride,
            result_batch_stride: outer.result_batch_stride,
            groups: outer.feature_groups,
            channels,
            channel_stride: outer.channel_stride,
            kernel_channel_stride: outer.kernel_channel_stride,
            features,
            kernel_feature_stride: outer.kernel_feature_stride,
            result_feature_stride: outer.result_feature_stride,
            by_position: by_position && (!by_feature || few),
            slow: slow.iter().map(Line::of).collect(),
            fast: Line::of(fast),
        })
    }

    /// Computes it; `rhs` is the kernel in `f32`.
    ///
    /// # Safety
    /// The arrays are those of the convolution.
    pub(super) unsafe fn run(&self, lhs: *const u8, rhs: *const f32, out: *mut u8, pool: &Pool) {
        // SAFETY: the caller's.
        unsafe {
            match self.ty {
                ElementType::BF16 => self.run_in::<bf16>(lhs.cast(), rhs, out.cast(), pool),
                ElementType::F16 => self.run_in::<f16>(lhs.cast(), rhs, out.cast(), pool),
                _f32 => self.run_in::<f32>(lhs.cast(), rhs, out.cast(), pool),
            }
        }
    }

    unsafe fn run_in<E: Element>(&self, lhs: *const E, rhs: *const f32, out: *mut E, pool: &Pool) {
        let rows: usize = self.slow.iter().map(|line| line.output).product::<usize>() * self.batch;
        let (lines, per_line) = if self.by_position {
            (rows * self.groups * self.features, self.channels)
        } else {
            (rows, self.channels * self.groups * self.features)
        };
        let work = self.fast.output
            * self.fast.kernel
            * per_line
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
    unsafe fn line<E: Element>(&self, line: usize, (mut lhs, rhs, mut out): (*const E, *const f32, *mut E)) {
        let (mut rest, mut kernel) = (line, 0);
        if self.by_position {
            // The slow axes are the fastest.
            let rows: usize = self.slow.iter().map(|line| line.output).product();
            let (row, feature) = (line % rows, line / rows % (self.groups * self.features));
            rest = line / rows / (self.groups * self.features) * rows + row;
            let group = (feature / self.features) as isize;
            // SAFETY: the group and the feature are there.
            unsafe {
                lhs = lhs.offset(group * self.channels as isize * self.channel_stride);
                out = out.offset(feature as isize * self.result_feature_stride);
            }
            kernel = feature as isize * self.kernel_feature_stride;
        }
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
            if self.by_position {
                return self.along(lhs, rhs.offset(kernel), out, &slow);
            }
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
                    features: self.groups * self.features,
                    group: [self.channels, self.features],
                    kernel_channel_stride: self.kernel_channel_stride,
                };
                #[cfg(target_arch = "x86_64")]
                if Features::here().avx512 {
                    if self.channels * self.features == 1 {
                        strip.wide::<false>();
                    } else {
                        strip.wide::<true>();
                    }
                    at = end;
                    continue;
                }
                strip.plain();
                at = end;
            }
        }
    }

    /// One line of positions along the last axis, of one feature.
    unsafe fn along<E: Element>(&self, lhs: *const E, rhs: *const f32, out: *mut E, slow: &[(isize, isize)]) {
        let fast = &self.fast;
        let mut taps: SmallVec<[Tap; 64]> = SmallVec::new();
        for channel in 0..self.channels as isize {
            for &(input, kernel) in slow {
                for w in 0..fast.kernel as isize {
                    let kernel = kernel
                        + channel * self.kernel_channel_stride
                        + fast.kernel_offset
                        + w * fast.kernel_stride;
                    taps.push(Tap {
                        row: input + channel * self.channel_stride,
                        origin: w * fast.dilation - fast.padding,
                        // SAFETY: the tap is in the kernel.
                        weight: unsafe { *rhs.offset(kernel) },
                    });
                }
            }
        }
        // SAFETY: the caller's.
        unsafe {
            #[cfg(target_arch = "x86_64")]
            if Features::here().avx512 {
                return along_wide(lhs, out, fast, &taps);
            }
            for x in 0..fast.output as isize {
                let mut sum = 0f32;
                for tap in &taps {
                    let at = x * fast.stride + tap.origin;
                    if at >= 0 && at < fast.input {
                        sum = (*lhs.offset(tap.row + at)).f32().mul_add(tap.weight, sum);
                    }
                }
                *out.offset(x) = E::of(sum);
            }
        }
    }
}

/// A tap of a line of positions.
struct Tap {
    /// Where the line begins that it reads.
    row: isize,
    /// Which element of that it is for the first position.
    origin: isize,
    weight: f32,
}

/// Positions of a line, some vectors of them at a time.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq")]
unsafe fn along_wide<E: Element>(lhs: *const E, out: *mut E, line: &Line, taps: &[Tap]) {
    use std::arch::x86_64::*;
    /// Vectors at a time.
    const V: usize = 4;
    let span = (V * WIDTH) as isize;
    // Lanes `first..end`, as far as there are any.
    let lanes = |first: isize, end: isize| {
        let upto = |n: isize| (1u32 << n.clamp(0, WIDTH as isize)) - 1;
        (upto(end) & !upto(first)) as __mmask16
    };
    // SAFETY: the caller's; lanes that are not there are masked.
    unsafe {
        let mut x = 0;
        while x < line.output as isize {
            let mut sums = [_mm512_setzero_ps(); V];
            for tap in taps {
                let first = x * line.stride + tap.origin;
                let weight = _mm512_set1_ps(tap.weight);
                if line.stride == 1 && first >= 0 && first + span <= line.input {
                    let from = lhs.offset(tap.row + first);
                    for v in 0..V {
                        sums[v] = _mm512_fmadd_ps(E::load(u16::MAX, from.add(v * WIDTH)), weight, sums[v]);
                    }
                    continue;
                }
                for v in 0..V {
                    let first = first + (v * WIDTH) as isize * line.stride;
                    let begin = (line.stride - 1 - first).div_euclid(line.stride);
                    let there = lanes(begin, (line.input - first + line.stride - 1).div_euclid(line.stride));
                    let from = lhs.wrapping_offset(tap.row + first);
                    let values = if line.stride == 1 {
                        E::load(there, from)
                    } else {
                        E::apart(there, from, line.stride)
                    };
                    sums[v] = _mm512_fmadd_ps(values, weight, sums[v]);
                }
            }
            for v in 0..V {
                let at = x + (v * WIDTH) as isize;
                let there = lanes(0, line.output as isize - at);
                E::store(out.wrapping_offset(at), there, sums[v]);
            }
            x += span;
        }
    }
}

/// The arrays, for all threads.
#[derive(Clone, Copy)]
struct Arrays<E> {
    lhs: *const E,
    rhs: *const f32,
    out: *mut E,
}

// SAFETY: threads write disjoint parts of the result.
unsafe impl<E> Sync for Arrays<E> {}

impl<E: Copy> Arrays<E> {
    fn get(&self) -> (*const E, *const f32, *mut E) {
        (self.lhs, self.rhs, self.out)
    }
}

/// Positions along the last axis that have the same taps.
struct Strip<'a, E> {
    lhs: *const E,
    rhs: *const f32,
    out: *mut E,
    taps: &'a [(isize, isize)],
    count: usize,
    step: isize,
    result_step: isize,
    /// Features of all groups.
    features: usize,
    /// Channels and features of a group.
    group: [usize; 2],
    kernel_channel_stride: isize,
}

impl<E: Element> Strip<'_, E> {
    unsafe fn plain(&self) {
        let [channels, features] = self.group;
        for position in 0..self.count as isize {
            for feature in 0..self.features {
                let mut sum = 0f32;
                // SAFETY: the caller's.
                unsafe {
                    for &(input, kernel) in self.taps {
                        for channel in 0..channels {
                            let from = self.lhs.offset(input + position * self.step);
                            let x = *from.add(feature / features * channels + channel);
                            let kernel = kernel + channel as isize * self.kernel_channel_stride;
                            sum = x.f32().mul_add(*self.rhs.offset(kernel).add(feature), sum);
                        }
                    }
                    *self.out.offset(position * self.result_step).add(feature) = E::of(sum);
                }
            }
        }
    }

    /// `GROUPED`: a group has several channels or features.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq")]
    unsafe fn wide<const GROUPED: bool>(&self) {
        use std::arch::x86_64::*;
        /// Positions at a time.
        const P: usize = 8;
        let [channels, features] = if GROUPED { self.group } else { [1, 1] };
        // Which channel of those that a vector of features sees each feature's first one is.
        let places: [i32; WIDTH] = std::array::from_fn(|lane| (lane / features * channels) as i32);
        for feature in (0..self.features).step_by(WIDTH) {
            let n = (self.features - feature).min(WIDTH);
            let mask = ((1u32 << n) - 1) as __mmask16;
            let seen = ((1u32 << (n / features * channels)) - 1) as __mmask16;
            // SAFETY: the caller's; masked lanes are not touched.
            unsafe {
                let places = _mm512_loadu_epi32(places.as_ptr());
                let (lhs, rhs) = (self.lhs.add(feature / features * channels), self.rhs.add(feature));
                let out = self.out.add(feature);
                let mut position = 0;
                while position + P <= self.count {
                    let mut sums = [_mm512_setzero_ps(); P];
                    for &(input, kernel) in self.taps {
                        let from = lhs.offset(input + position as isize * self.step);
                        for channel in 0..channels {
                            let kernel = kernel + channel as isize * self.kernel_channel_stride;
                            let w = _mm512_maskz_loadu_ps(mask, rhs.offset(kernel));
                            let places = _mm512_add_epi32(places, _mm512_set1_epi32(channel as i32));
                            for p in 0..P {
                                let mut x = E::load(seen, from.offset(p as isize * self.step));
                                if GROUPED {
                                    x = _mm512_permutexvar_ps(places, x);
                                }
                                sums[p] = _mm512_fmadd_ps(x, w, sums[p]);
                            }
                        }
                    }
                    for p in 0..P {
                        let to = out.offset((position + p) as isize * self.result_step);
                        E::store(to, mask, sums[p]);
                    }
                    position += P;
                }
                for position in position as isize..self.count as isize {
                    let mut sum = _mm512_setzero_ps();
                    for &(input, kernel) in self.taps {
                        for channel in 0..channels {
                            let kernel = kernel + channel as isize * self.kernel_channel_stride;
                            let w = _mm512_maskz_loadu_ps(mask, rhs.offset(kernel));
                            let places = _mm512_add_epi32(places, _mm512_set1_epi32(channel as i32));
                            let mut x = E::load(seen, lhs.offset(input + position * self.step));
                            if GROUPED {
                                x = _mm512_permutexvar_ps(places, x);
                            }
                            sum = _mm512_fmadd_ps(x, w, sum);
                        }
                    }
                    E::store(out.offset(position * self.result_step), mask, sum);
                }
            }
        }
    }
}
