//! Gradients of the kernels of depthwise convolutions: convolutions of groups of examples, whose windows are
//! large and whose results are small. A vector has the elements of several groups where these are contiguous;
//! elsewhere it has contiguous elements of the window, and its lanes are added at the end.

use hlo::ElementType;
use hlo::half::{bf16, f16};

use super::super::{Lane, Outer};
use super::element::Element;
use super::{Arrays, Line, WIDTH, lines};
#[cfg(target_arch = "x86_64")]
use hlo_library_base::isa::Features;
use hlo_library_base::pool::Pool;
#[cfg(target_arch = "x86_64")]
use hlo_library_base::workspace::with_workspace;

/// The most results along the last axis that are computed at once.
#[cfg(target_arch = "x86_64")]
const MAX_RESULTS: usize = 4;

/// The most examples, and the most features of a group.
const MAX_EXAMPLES_AND_FEATURES: usize = 4;

/// The smallest number of groups for which vectors of groups are profitable.
const MIN_GROUPS: usize = WIDTH / 2;

/// The smallest extent of a window's last axis for which vectors of its positions are profitable.
const MIN_WINDOW_POSITIONS: usize = WIDTH / 4;

/// The approximate number of terms of a chunk.
const CHUNK_TERMS: usize = 1 << 15;

/// A convolution of floats of one type with groups of few examples and features.
#[derive(Clone, Debug)]
pub(in crate::convolution) struct Gradient {
    ty: ElementType,
    /// Channels of the input, and their strides in input and kernel.
    channels: [isize; 3],
    groups: usize,
    /// Examples of a group: how many, and their strides in input and result.
    batch: usize,
    batch_stride: isize,
    result_batch_stride: isize,
    /// Features of a group: how many, and their strides in kernel and result.
    features: usize,
    kernel_feature_stride: isize,
    result_feature_stride: isize,
    /// Vectors are of groups.
    by_group: bool,
    slow: [Line; 2],
    fast: Line,
}

/// The operands and results of a group (or a vector of them) at a position along the slow axes.
struct Sums<'a, E> {
    of: &'a Gradient,
    lhs: *const E,
    rhs: *const E,
    out: *mut E,
    /// The position along the slow axes.
    at: [usize; 2],
}

impl Gradient {
    /// If it is one.
    pub(in crate::convolution) fn new(axes: &[Lane], outer: &Outer, ty: ElementType) -> Option<Gradient> {
        let float = matches!(ty, ElementType::F32 | ElementType::BF16 | ElementType::F16);
        let (slow, fast) = lines(axes)?;
        let few = outer.batch * outer.features;
        if !float
            || outer.feature_groups != 1
            || outer.channels == 0
            || !(1..=MAX_EXAMPLES_AND_FEATURES).contains(&few)
        {
            return None;
        }
        let by_group = few == 1
            && outer.batch_groups >= MIN_GROUPS
            && outer.batch_stride == 1
            && outer.kernel_feature_stride == 1;
        // A vector's offsets are of 32 bits.
        let near = fast.dilation < if ty == ElementType::F32 { 1 << 20 } else { 3 };
        let by_position =
            fast.kernel >= MIN_WINDOW_POSITIONS && fast.kernel_stride == 1 && fast.input_stride == 1 && near;
        (by_group || by_position).then_some(Gradient {
            ty,
            channels: [outer.channels as isize, outer.channel_stride, outer.kernel_channel_stride],
            groups: outer.batch_groups,
            batch: outer.batch,
            batch_stride: outer.batch_stride,
            result_batch_stride: outer.result_batch_stride,
            features: outer.features,
            kernel_feature_stride: outer.kernel_feature_stride,
            result_feature_stride: outer.result_feature_stride,
            by_group,
            slow,
            fast,
        })
    }

    /// Computes it.
    ///
    /// # Safety
    /// The arrays are those of the convolution.
    pub(in crate::convolution) unsafe fn run(
        &self,
        lhs: *const u8,
        rhs: *const u8,
        out: *mut u8,
        pool: &Pool,
    ) {
        // SAFETY: the caller's.
        unsafe {
            match self.ty {
                ElementType::BF16 => {
                    self.run_in::<bf16>(Arrays { lhs: lhs.cast(), rhs: rhs.cast(), out: out.cast() }, pool);
                }
                ElementType::F16 => {
                    self.run_in::<f16>(Arrays { lhs: lhs.cast(), rhs: rhs.cast(), out: out.cast() }, pool);
                }
                _f32 => {
                    self.run_in::<f32>(Arrays { lhs: lhs.cast(), rhs: rhs.cast(), out: out.cast() }, pool);
                }
            }
        }
    }

    unsafe fn run_in<E: Element>(&self, arrays: Arrays<E, E>, pool: &Pool) {
        let [z, y] = &self.slow;
        let units = match self.by_group {
            true => self.groups.div_ceil(WIDTH),
            false => self.groups * self.batch * self.features,
        };
        let window = z.kernel * y.kernel * self.fast.kernel * self.channels[0] as usize;
        let (tasks, each) =
            (units * z.output * y.output, (CHUNK_TERMS / (window * self.fast.output).max(1)).max(1));
        pool.run(tasks.div_ceil(each), &|chunk| {
            for task in chunk * each..tasks.min((chunk + 1) * each) {
                let (oy, rest) = (task % y.output, task / y.output);
                let (oz, unit) = (rest % z.output, rest / z.output);
                // SAFETY: the caller's; tasks are disjoint parts of the result.
                unsafe { self.task(unit, [oz, oy], arrays.get()) };
            }
        });
    }

    unsafe fn task<E: Element>(&self, unit: usize, at: [usize; 2], arrays: Arrays<E, E>) {
        // The first example and feature of the whole operands.
        let (example, feature) = match self.by_group {
            true => (unit * WIDTH, unit * WIDTH),
            false => {
                let (feature, rest) = (unit % self.features, unit / self.features);
                (rest, rest / self.batch * self.features + feature)
            }
        };
        let [z, y] = &self.slow;
        let to = (example % self.batch) as isize * self.result_batch_stride
            + feature as isize * self.result_feature_stride
            + at[0] as isize * z.result_stride
            + at[1] as isize * y.result_stride;
        // SAFETY: the caller's.
        unsafe {
            let sums = Sums {
                of: self,
                lhs: arrays.lhs.offset(example as isize * self.batch_stride),
                rhs: arrays
                    .rhs
                    .offset(feature as isize * self.kernel_feature_stride + self.fast.kernel_offset),
                out: arrays.out.offset(to),
                at,
            };
            let groups = if self.by_group { (self.groups - example).min(WIDTH) } else { 1 };
            #[cfg(target_arch = "x86_64")]
            if Features::here().avx512 {
                return sums.wide(groups);
            }
            sums.plain(groups);
        }
    }
}

impl<E: Element> Sums<'_, E> {
    /// Calls `f` with the lines of both operands for each channel and each position of the window along the
    /// slow axes that is inside of the input.
    #[inline(always)]
    unsafe fn lines(&self, mut f: impl FnMut(*const E, *const E)) {
        let ([z, y], [oz, oy]) = (&self.of.slow, self.at);
        let [channels, channel_stride, kernel_channel_stride] = self.of.channels;
        for channel in 0..channels {
            for wz in z.present(oz) {
                for wy in y.present(oy) {
                    let lhs = channel * channel_stride
                        + z.at(oz, wz) * z.input_stride
                        + y.at(oy, wy) * y.input_stride;
                    let rhs = channel * kernel_channel_stride + z.weight(wz) + y.weight(wy);
                    // SAFETY: the caller's: these lines are there.
                    unsafe { f(self.lhs.offset(lhs), self.rhs.offset(rhs)) };
                }
            }
        }
    }

    unsafe fn plain(&self, groups: usize) {
        let fast = &self.of.fast;
        for group in 0..groups as isize {
            for ox in 0..fast.output {
                let mut sum = 0f32;
                // SAFETY: the caller's: only what is there is looked at.
                unsafe {
                    self.lines(|lhs, rhs| {
                        for w in fast.present(ox) {
                            let x =
                                lhs.offset(group * self.of.batch_stride + fast.at(ox, w) * fast.input_stride);
                            let other = rhs.offset(
                                group * self.of.kernel_feature_stride + w as isize * fast.kernel_stride,
                            );
                            sum = (*x).f32().mul_add((*other).f32(), sum);
                        }
                    });
                    *self.to(group, ox) = E::of(sum);
                }
            }
        }
    }

    /// Where the result of a group is.
    unsafe fn to(&self, group: isize, ox: usize) -> *mut E {
        let to = group * self.of.result_feature_stride + ox as isize * self.of.fast.result_stride;
        // SAFETY: the caller's.
        unsafe { self.out.offset(to) }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq")]
    unsafe fn wide(&self, groups: usize) {
        let fast = &self.of.fast;
        let mut ox = 0;
        while ox < fast.output {
            // SAFETY: the caller's.
            ox += unsafe {
                match (fast.output - ox).min(MAX_RESULTS) {
                    1 => self.some::<1>(ox, groups),
                    2 => self.some::<2>(ox, groups),
                    3 => self.some::<3>(ox, groups),
                    _more => self.some::<MAX_RESULTS>(ox, groups),
                }
            };
        }
    }

    /// Some results along the last axis; how many.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq")]
    unsafe fn some<const K: usize>(&self, ox: usize, groups: usize) -> usize {
        let fast = &self.of.fast;
        // SAFETY: the caller's.
        unsafe {
            if self.of.by_group {
                self.by_group::<K>(ox, groups);
                return K;
            }
            let vectors = fast.kernel.div_ceil(WIDTH);
            with_workspace(4 * K * vectors, |masks| {
                let masks = masks.cast::<u32>();
                match fast.dilation {
                    1 => self.by_position::<K, 1>(ox, masks),
                    2 => self.by_position::<K, 2>(ox, masks),
                    _more => self.by_position::<K, 0>(ox, masks),
                }
            });
        }
        K
    }

    /// Vectors of groups.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq")]
    unsafe fn by_group<const K: usize>(&self, ox: usize, groups: usize) {
        use std::arch::x86_64::*;
        let fast = &self.of.fast;
        let mask = super::positions::lanes(0, groups as isize) as u16;
        let present: [_; K] = std::array::from_fn(|k| fast.present(ox + k));
        let all = present.iter().fold(0..fast.kernel, |all, p| all.start.max(p.start)..all.end.min(p.end));
        let any = present.iter().fold(fast.kernel..0, |any, p| any.start.min(p.start)..any.end.max(p.end));
        let mut sums = [_mm512_setzero_ps(); K];
        // SAFETY: the caller's: only positions inside of the input are read.
        unsafe {
            self.lines(|lhs, rhs| {
                for w in any.clone() {
                    let other = E::load(mask, rhs.offset(w as isize * fast.kernel_stride));
                    let inside = all.contains(&w);
                    for k in 0..K {
                        if inside || present[k].contains(&w) {
                            let x = E::load(mask, lhs.offset(fast.at(ox + k, w) * fast.input_stride));
                            sums[k] = _mm512_fmadd_ps(x, other, sums[k]);
                        }
                    }
                }
            });
            for k in 0..K {
                if self.of.result_feature_stride == 1 {
                    E::store(self.to(0, ox + k), mask, sums[k]);
                    continue;
                }
                let mut lanes = [0f32; WIDTH];
                _mm512_storeu_ps(lanes.as_mut_ptr(), sums[k]);
                for (group, &sum) in lanes[..groups].iter().enumerate() {
                    *self.to(group as isize, ox + k) = E::of(sum);
                }
            }
        }
    }

    /// Vectors of positions along the last axis of the window.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq")]
    unsafe fn by_position<const K: usize, const STEP: usize>(&self, ox: usize, masks: *mut u32) {
        use super::positions::{lanes, lanes_of, load, spread};
        use std::arch::x86_64::*;
        let fast = &self.of.fast;
        let vectors = fast.kernel.div_ceil(WIDTH);
        let mut sums = [_mm512_setzero_ps(); K];
        // SAFETY: the workspace has space for the masks; positions outside of the input are masked, in both
        // operands.
        unsafe {
            let own = |v: usize| lanes(0, (fast.kernel - v * WIDTH) as isize);
            let first = |k: usize, v: usize| fast.at(ox + k, v * WIDTH);
            for v in 0..vectors {
                for k in 0..K {
                    let there = lanes_of::<STEP>(first(k, v), fast.input, fast.dilation);
                    *masks.add(v * K + k) = there & spread::<STEP>(own(v));
                }
            }
            self.lines(|lhs, rhs| {
                for v in 0..vectors {
                    let other = E::load(own(v) as u16, rhs.add(v * WIDTH));
                    for k in 0..K {
                        let from = lhs.wrapping_offset(first(k, v));
                        let x = load::<E, STEP>(*masks.add(v * K + k), from, fast.dilation);
                        sums[k] = _mm512_fmadd_ps(x, other, sums[k]);
                    }
                }
            });
            for k in 0..K {
                *self.to(0, ox + k) = E::of(_mm512_reduce_add_ps(sums[k]));
            }
        }
    }
}
