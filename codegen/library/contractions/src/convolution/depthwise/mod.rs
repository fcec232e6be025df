//! Convolutions of few channels a group: vectors of channels where those are contiguous ([`strips`]),
//! otherwise vectors of [`positions`]; and their [`gradient`]s.

mod element;
mod gradient;
mod positions;
mod strips;

use hlo::ElementType;
use hlo::half::{bf16, f16};
use smallvec::SmallVec;

use super::{Lane, Outer};
use element::Element;
pub(super) use gradient::Gradient;
#[cfg(target_arch = "x86_64")]
use hlo_library_base::isa::Features;
use hlo_library_base::pool::Pool;
#[cfg(target_arch = "x86_64")]
use hlo_library_base::workspace::with_workspace;
use positions::Plane;
use strips::Strip;

/// A convolution of floats of one type of few channels and features a group, whose channels are contiguous in
/// input, kernel and result, or else whose positions along the last axis are in the input and nearly so in
/// the result.
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
    slow: [Line; 2],
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

    /// The window positions that are there for an output position.
    fn present(&self, at: usize) -> std::ops::Range<usize> {
        let origin = at as isize * self.stride - self.padding;
        let (mut first, mut end) = ((-origin).max(0), (self.input - origin).max(0));
        // Mostly nothing is divided.
        if self.dilation != 1 {
            (first, end) =
                ((first + self.dilation - 1) / self.dilation, (end + self.dilation - 1) / self.dilation);
        }
        let end = (end as usize).min(self.kernel);
        (first as usize).min(end)..end
    }

    /// Where a window position is in the input.
    fn at(&self, placement: usize, w: usize) -> isize {
        placement as isize * self.stride - self.padding + w as isize * self.dilation
    }

    /// Where it is in the kernel.
    fn weight(&self, w: usize) -> isize {
        self.kernel_offset + w as isize * self.kernel_stride
    }
}

/// The last axis, and up to two before it; none has holes in the input.
fn lines(lanes: &[Lane]) -> Option<([Line; 2], Line)> {
    let one = Lane::one();
    let all = match lanes {
        [x] => [&one, &one, x],
        [y, x] => [&one, y, x],
        [z, y, x] => [z, y, x],
        _other => return None,
    };
    let [z, y, x] = all.map(Line::of);
    all.iter().all(|lane| lane.axis.input_dilation == 1).then_some(([z, y], x))
}

/// The largest stride of results that are written as vectors of positions.
const MAX_STORE_STRIDE: isize = 4;

/// Vectors of products of rows shorter than one that take no longer than planning a product does.
const MAX_UNPLANNED_VECTORS: usize = 128;

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
        let contiguous = [outer.channel_stride, outer.kernel_feature_stride, outer.result_feature_stride]
            .iter()
            .all(|&s| s == 1);
        let (slow, fast) = lines(lanes)?;
        let (channels, features, groups) = (outer.channels, outer.features, outer.feature_groups);
        if channels == 0 || features == 0 {
            return None;
        }
        // A vector of features sees no more than a vector of channels.
        let grouped = WIDTH.is_multiple_of(features) && WIDTH / features * channels <= WIDTH;
        let by_feature = contiguous && groups > 1 && grouped;
        // A strided store, as of a phase of the convolution of a dilated input.
        let along =
            (1..=MAX_STORE_STRIDE).contains(&fast.result_stride) && fast.input_stride == 1 && fast.output > 1;
        let taps: usize = lanes.iter().map(|lane| lane.axis.kernel).product();
        // Otherwise it is a product, of few rows or columns; patches of it are not much more than it has to
        // read.
        let alone = groups > 1 && features <= 4;
        let long = (groups > 1 || features <= 4) && fast.output >= WIDTH / 2 && taps <= 4 * fast.output;
        // Planning a product this small takes longer than computing it.
        let rows = slow.iter().map(|line| line.output).product::<usize>() * outer.batch * groups * features;
        let small = rows.saturating_mul(channels * taps) <= MAX_UNPLANNED_VECTORS;
        // A vector's offsets are of 32 bits; those of halves are far from free.
        let near = fast.stride < if ty == ElementType::F32 { 1 << 20 } else { 3 };
        let by_position = along && channels <= 4 && (alone || long || small) && near;
        let narrow = groups * features < WIDTH / 2;
        (by_feature || by_position).then_some(Depthwise {
            ty,
            batch: outer.batch,
            batch_stride: outer.batch_stride,
            result_batch_stride: outer.result_batch_stride,
            groups,
            channels,
            channel_stride: outer.channel_stride,
            kernel_channel_stride: outer.kernel_channel_stride,
            features,
            kernel_feature_stride: outer.kernel_feature_stride,
            result_feature_stride: outer.result_feature_stride,
            by_position: by_position && (!by_feature || narrow),
            slow,
            fast,
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
        let [z, y] = &self.slow;
        let rows = z.output * y.output;
        let (lines, per_line) = if self.by_position {
            (rows * self.batch * self.groups * self.features, self.channels)
        } else {
            (rows * self.batch, self.channels * self.groups * self.features)
        };
        let work = self.fast.output * self.fast.kernel * per_line * z.kernel * y.kernel;
        let each = ((1 << 17) / work.max(1)).max(1);
        let arrays = Arrays { lhs, rhs, out };
        pool.run(lines.div_ceil(each), &|chunk| {
            let (mut line, end) = (chunk * each, lines.min((chunk + 1) * each));
            while line < end {
                let row = line % rows;
                let next = if self.by_position { end.min(line - row + rows) } else { line + 1 };
                // SAFETY: the caller's; lines are disjoint parts of the result.
                unsafe {
                    if self.by_position {
                        self.plane(line / rows, row..row + (next - line), arrays.get());
                    } else {
                        self.line(line / rows, [row / y.output, row % y.output], arrays.get());
                    }
                }
                line = next;
            }
        });
    }

    /// Rows of one feature of an example, which has this number among all.
    unsafe fn plane<E: Element>(
        &self,
        plane: usize,
        rows: std::ops::Range<usize>,
        Arrays { lhs, rhs, out }: Arrays<E, f32>,
    ) {
        let features = self.groups * self.features;
        let (example, feature) = ((plane / features) as isize, plane % features);
        let group = (feature / self.features * self.channels) as isize;
        let feature = feature as isize;
        // SAFETY: the caller's.
        unsafe {
            let plane = Plane {
                lhs: lhs.offset(example * self.batch_stride + group * self.channel_stride),
                channels: [self.channels as isize, self.channel_stride, self.kernel_channel_stride],
                rhs: rhs.offset(feature * self.kernel_feature_stride),
                out: out.offset(example * self.result_batch_stride + feature * self.result_feature_stride),
                slow: &self.slow,
                fast: &self.fast,
            };
            #[cfg(target_arch = "x86_64")]
            if Features::here().avx512 {
                with_workspace(positions::workspace(&self.fast), |masks| plane.rows_wide(rows, masks.cast()));
                return;
            } else if Features::here().avx2 {
                plane.rows_narrow(rows);
                return;
            }
            plane.rows_plain(rows);
        }
    }

    /// One line of positions along the last axis, of all features.
    unsafe fn line<E: Element>(
        &self,
        example: usize,
        at: [usize; 2],
        Arrays { lhs, rhs, out }: Arrays<E, f32>,
    ) {
        let ([z, y], fast) = (&self.slow, &self.fast);
        let mut slow: Taps = SmallVec::new();
        for wz in z.present(at[0]) {
            for wy in y.present(at[1]) {
                let from = z.at(at[0], wz) * z.input_stride + y.at(at[1], wy) * y.input_stride;
                slow.push((from, z.weight(wz) + y.weight(wy)));
            }
        }
        let to = example as isize * self.result_batch_stride
            + at[0] as isize * z.result_stride
            + at[1] as isize * y.result_stride;
        // SAFETY: the caller's: only taps that are there are read.
        unsafe {
            let (lhs, out) = (lhs.offset(example as isize * self.batch_stride), out.offset(to));
            let mut at = 0;
            while at < fast.output {
                let present = fast.present(at);
                // Positions with the same taps are done together.
                let mut end = at + 1;
                while end < fast.output && fast.present(end) == present {
                    end += 1;
                }
                let taps: Taps = slow
                    .iter()
                    .flat_map(|&(i, k)| {
                        let tap = move |w| (i + fast.at(at, w) * fast.input_stride, k + fast.weight(w));
                        present.clone().map(tap)
                    })
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
                at = end;
                #[cfg(target_arch = "x86_64")]
                if Features::here().avx512 {
                    if self.channels * self.features == 1 {
                        strip.wide::<false>();
                    } else {
                        strip.wide::<true>();
                    }
                    continue;
                }
                #[cfg(target_arch = "x86_64")]
                if self.features <= strips::NARROW_WIDTH && Features::here().avx2 {
                    if self.channels * self.features == 1 {
                        strip.narrow::<false>();
                    } else {
                        strip.narrow::<true>();
                    }
                    continue;
                }
                strip.plain();
            }
        }
    }
}

/// The arrays, for all threads.
#[derive(Clone, Copy)]
struct Arrays<E, W> {
    lhs: *const E,
    rhs: *const W,
    out: *mut E,
}

// SAFETY: threads write disjoint parts of the result.
unsafe impl<E, W> Sync for Arrays<E, W> {}

impl<E: Copy, W: Copy> Arrays<E, W> {
    /// As a whole: so that closures capture what may be sent.
    fn get(&self) -> Self {
        *self
    }
}
