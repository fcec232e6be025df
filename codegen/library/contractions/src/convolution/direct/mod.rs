//! Direct convolutions of `f32`, without im2col: register tiles read the input in place, or in a *slab*, a
//! copy of the rows that a task needs, with padding and contiguous channels.
//!
//! A tile of adjacent output positions ([`Forward`]) sums over the taps of the window: channels and taps
//! along a row of it are collapsed into one run. If there are few features, vectors are of output positions
//! ([`FewFeatures`]). For gradients of kernels, whose windows are large and whose results are small, a tile
//! of channels sums over positions ([`Gradient`]): a row of input and a row of the other operand after the
//! other.
//!
//! **Invariant:** tasks and the order of sums are fixed by the shape.

mod few_features;
mod forward;
mod gradient;
mod tile;

use hlo::ElementType;
use hlo_library_base::isa::Features;
use hlo_library_base::pool::Pool;
use hlo_library_base::transpose::{self, Terms};

use self::few_features::FewFeatures;
use self::forward::Forward;
use self::gradient::Gradient;
use self::tile::TileSize;
use super::read::reads;
use super::{Arrays, Axis, Lane, Outer, Types};

/// The approximate number of elements of a slab.
const SLAB_ELEMENTS: usize = 96 << 10;

/// The approximate number of tasks, if there is as much work.
const WANTED_TASKS: usize = 32;

/// How a product is computed without patches.
#[derive(Clone, Debug)]
pub(super) enum Direct {
    Forward(Box<Forward>),
    FewFeatures(Box<FewFeatures>),
    Gradient(Box<Gradient>),
}

impl Direct {
    /// If one of them fits.
    pub(super) fn new(lanes: &[Lane], outer: &Outer, types: Types) -> Option<Direct> {
        let gradient = Gradient::new(lanes, outer, types).map(|g| Direct::Gradient(Box::new(g)));
        let few = || FewFeatures::new(lanes, outer, types).map(|f| Direct::FewFeatures(Box::new(f)));
        let forward = || Forward::new(lanes, outer, types).map(|f| Direct::Forward(Box::new(f)));
        gradient.or_else(few).or_else(forward)
    }

    pub(super) fn scratch_bytes(&self) -> usize {
        match self {
            Direct::Forward(forward) => forward.scratch_bytes(),
            Direct::FewFeatures(few) => few.scratch_bytes(),
            Direct::Gradient(gradient) => gradient.scratch_bytes(),
        }
    }

    /// Bytes of a kernel that is packed ahead of runs; 0: nothing is gained.
    pub(super) fn ahead_bytes(&self) -> usize {
        match self {
            Direct::Forward(forward) => forward.scratch_bytes(),
            Direct::FewFeatures(_) | Direct::Gradient(_) => 0,
        }
    }

    /// Packs a kernel ahead of runs.
    ///
    /// # Safety
    /// It is there, and so is space for [`Direct::ahead_bytes`].
    pub(super) unsafe fn prepare(&self, rhs: *const u8, to: *mut f32, pool: &Pool) {
        match self {
            // SAFETY: the caller's.
            Direct::Forward(forward) => unsafe { forward.prepare(rhs, to, pool) },
            Direct::FewFeatures(_) | Direct::Gradient(_) => {}
        }
    }

    /// Whether finished rows are reported while others are computed.
    pub(super) fn reports(&self) -> bool {
        match self {
            Direct::Forward(forward) => forward.reports(),
            Direct::FewFeatures(_) => true,
            Direct::Gradient(_) => false,
        }
    }

    /// Computes it. `finished` gets where rows of features begin and how many, if [`Direct::reports`].
    ///
    /// # Safety
    /// The arrays are those of the convolution.
    pub(super) unsafe fn run(
        &self,
        arrays: Arrays,
        pool: &Pool,
        finished: Option<&(dyn Fn(isize, usize) + Sync)>,
    ) {
        // SAFETY: the caller's.
        unsafe {
            match self {
                Direct::Forward(forward) => forward.run(arrays, pool, finished),
                Direct::FewFeatures(few) => few.run(arrays, pool, finished),
                Direct::Gradient(gradient) => gradient.run(arrays, pool),
            }
        }
    }
}

/// What all kinds know.
#[derive(Clone, Debug)]
struct Common {
    /// Three spatial axes, the slowest first.
    lanes: [Lane; 3],
    outer: Outer,
    lhs: ElementType,
    rhs: ElementType,
    result_bytes: usize,
    size: TileSize,
}

impl Common {
    fn new(lanes: &[Lane], outer: &Outer, (lhs, rhs, result_bytes): Types) -> Option<Common> {
        let fits = (1..=3).contains(&lanes.len())
            && lanes.iter().all(|lane| lane.axis.input_dilation == 1 && lane.axis.output > 0)
            && outer.batch_groups == 1
            && outer.channels > 0
            && Features::here().avx2
            && reads(lhs).is_some()
            && reads(rhs).is_some();
        if !fits {
            return None;
        }
        let mut all = [Lane::one(); 3];
        all[3 - lanes.len()..].copy_from_slice(lanes);
        let mut outer = *outer;
        collapse(&mut all, &mut outer);
        Some(Common { lanes: all, outer, lhs, rhs, result_bytes, size: TileSize::here() })
    }

    fn axes(&self) -> [Axis; 3] {
        self.lanes.map(|lane| lane.axis)
    }

    /// Positions of a window.
    fn taps(&self) -> usize {
        self.axes().iter().map(|axis| axis.kernel).product()
    }

    /// Elements of the slab of a block of output positions along the two fastest axes.
    fn slab(&self, [ys, xs]: [usize; 2]) -> usize {
        let [z, y, x] = self.axes();
        z.kernel * extent(ys, &y) * extent(xs, &x) * self.outer.channels
    }

    /// The number of blocks.
    fn blocks(&self, block: [usize; 2]) -> usize {
        let (outer, [z, y, x]) = (&self.outer, self.axes());
        outer.feature_groups
            * outer.batch
            * z.output
            * y.output.div_ceil(block[0])
            * x.output.div_ceil(block[1])
    }

    /// A block with fewer lines, if its slab is too large, or if there are too few tasks: each block is
    /// `parts` tasks.
    fn divided(&self, mut block: [usize; 2], parts: usize) -> [usize; 2] {
        while block[0] > 1
            && (self.slab(block) > SLAB_ELEMENTS || self.blocks(block) * parts < WANTED_TASKS && block[0] > 4)
        {
            block[0] = block[0].div_ceil(2);
        }
        block
    }

    /// The task of a block's number.
    fn task(&self, number: usize, block: [usize; 2], panels: std::ops::Range<usize>) -> Task {
        let [z, y, x] = self.axes();
        let (ys, xs) = (y.output.div_ceil(block[0]), x.output.div_ceil(block[1]));
        let (xb, rest) = (number % xs, number / xs);
        let (yb, rest) = (rest % ys, rest / ys);
        let (oz, rest) = (rest % z.output, rest / z.output);
        Task {
            group: rest / self.outer.batch,
            batch: rest % self.outer.batch,
            z: oz,
            y: yb * y.output / ys..(yb + 1) * y.output / ys,
            x: xb * x.output / xs..(xb + 1) * x.output / xs,
            panels,
        }
    }

    /// What a task sees of the input.
    fn sight(&self, task: &Task) -> Sight {
        let (outer, [z, y, x]) = (&self.outer, self.axes());
        Sight {
            first: [origin(&z, task.z), origin(&y, task.y.start), origin(&x, task.x.start)],
            height: extent(task.y.len(), &y),
            width: extent(task.x.len(), &x),
            input: task.batch as isize * outer.batch_stride
                + (task.group * outer.channels) as isize * outer.channel_stride,
        }
    }

    /// Where a row of the input begins that a tap of the slowest axis sees, if it is not padding.
    fn row(&self, sight: &Sight, z_tap: usize, at: isize) -> Option<isize> {
        let [z, y, _] = self.axes();
        let in_z = sight.first[0] + z_tap as isize * z.kernel_dilation;
        let there = (0..z.input as isize).contains(&in_z) && (0..y.input as isize).contains(&at);
        there.then(|| sight.input + in_z * z.input_stride + at * y.input_stride)
    }

    /// Calls `copy` with the number in the slab, and the beginning in the input, of each row that is not
    /// padding and that some window sees.
    fn each_row(&self, sight: &Sight, mut copy: impl FnMut(usize, isize)) {
        let [z, y, _] = self.axes();
        // Where the output positions begin.
        let placements = 0..sight.height as isize - (y.kernel as isize - 1) * y.kernel_dilation;
        for tap in 0..z.kernel {
            for h in 0..sight.height {
                // Rows between output positions, and between elements of windows, are seen by none.
                let seen = (0..y.kernel).any(|k| {
                    let placement = h as isize - k as isize * y.kernel_dilation;
                    placements.contains(&placement) && placement % y.stride == 0
                });
                if let (true, Some(at)) = (seen, self.row(sight, tap, sight.first[1] + h as isize)) {
                    copy(tap * sight.height + h, at);
                }
            }
        }
    }

    /// Packs `rows` of the kernel into panels. A row is a tap and a channel, tap-major; of each row
    /// `features` are packed, from `feature` on, and the last panel is padded with zeros. Contiguous features
    /// are read row by row, since memory is fastest sequentially.
    ///
    /// # Safety
    /// They are in the kernel, and there is space.
    unsafe fn pack(
        &self,
        rhs: *const u8,
        feature: usize,
        features: usize,
        rows: std::ops::Range<usize>,
        PanelLayout { width, distance }: PanelLayout,
        to: *mut f32,
    ) {
        let Common { lanes, outer, .. } = self;
        let Some(read) = reads(self.rhs) else { return };
        let first: isize = lanes.iter().map(|lane| lane.kernel_offset).sum::<isize>()
            + feature as isize * outer.kernel_feature_stride;
        let [_, y, x] = self.axes().map(|axis| axis.kernel);
        // Where the features of a row begin in the kernel.
        let row_start = |row: usize| {
            let (tap, channel) = (row / outer.channels, row % outer.channels);
            let taps = [tap / x / y, tap / x % y, tap % x];
            let of_taps = taps.iter().zip(lanes).map(|(&tap, lane)| tap as isize * lane.kernel_stride);
            first + of_taps.sum::<isize>() + channel as isize * outer.kernel_channel_stride
        };
        let pack = |row: usize, start: isize, panel: usize| {
            let from = panel * width;
            let columns = width.min(features - from);
            // SAFETY: the caller's.
            unsafe {
                let to = to.add(panel * distance + row * width);
                let at = start + from as isize * outer.kernel_feature_stride;
                read(rhs, at, outer.kernel_feature_stride, columns, to);
                std::slice::from_raw_parts_mut(to.add(columns), width - columns).fill(0.0);
            }
        };
        let panels = features.div_ceil(width);
        if outer.kernel_feature_stride == 1 {
            for row in rows {
                let start = row_start(row);
                (0..panels).for_each(|panel| pack(row, start, panel));
            }
        } else {
            // Adjacent channels share cache lines: those of one panel stay in the first-level cache.
            for panel in 0..panels {
                rows.clone().for_each(|row| pack(row, row_start(row), panel));
            }
        }
    }

    /// The offset in the result of the first feature of an output position: row `y`, and positions after the
    /// first of the task's.
    fn offset(&self, task: &Task, y: usize, x: usize) -> isize {
        let [z_lane, y_lane, x_lane] = &self.lanes;
        self.lanes.iter().map(|lane| lane.result_offset).sum::<isize>()
            + task.batch as isize * self.outer.result_batch_stride
            + task.z as isize * z_lane.result_stride
            + y as isize * y_lane.result_stride
            + (task.x.start + x) as isize * x_lane.result_stride
    }

    /// Says where the rows of features of a task begin, and how many there are.
    fn report(&self, task: &Task, finished: &(dyn Fn(isize, usize) + Sync)) {
        for y in task.y.clone() {
            // Adjacent output positions may be far apart in the result.
            if self.lanes[2].result_stride == self.outer.features as isize {
                finished(self.offset(task, y, 0), task.x.len());
            } else {
                (0..task.x.len()).for_each(|x| finished(self.offset(task, y, x), 1));
            }
        }
    }

    /// Copies a row of input with padding and contiguous channels (`count` of them, of stride `stride`):
    /// positions `first..first + width`.
    ///
    /// # Safety
    /// The row is in the input, and there is space for the copy.
    unsafe fn copy_row(
        &self,
        lhs: *const u8,
        row: isize,
        first: isize,
        width: usize,
        [count, stride]: [isize; 2],
        to: *mut f32,
    ) {
        let Some(read) = reads(self.lhs) else { return };
        let axis = &self.lanes[2].axis;
        let (n, channels) = (axis.input as isize, count as usize);
        let begin = (-first).clamp(0, width as isize) as usize;
        let end = (n - first).clamp(begin as isize, width as isize) as usize;
        // SAFETY: positions `begin..end` are in the input; the copy has space for all.
        unsafe {
            std::slice::from_raw_parts_mut(to, begin * channels).fill(0.0);
            std::slice::from_raw_parts_mut(to.add(end * channels), (width - end) * channels).fill(0.0);
            let at = |position: usize| row + (first + position as isize) * axis.input_stride;
            if (stride == 1 || count == 1) && axis.input_stride == count {
                read(lhs, at(begin), 1, (end - begin) * channels, to.add(begin * channels));
            } else if stride == 1 {
                for position in begin..end {
                    read(lhs, at(position), 1, channels, to.add(position * channels));
                }
            } else {
                if axis.input_stride == 1 {
                    return self.transpose_row(
                        lhs,
                        at(begin),
                        end - begin,
                        [count, stride],
                        to.add(begin * channels),
                    );
                }
                let mut some = [0f32; 64];
                for position in (begin..end).step_by(some.len()) {
                    let n = some.len().min(end - position);
                    for channel in 0..channels {
                        let at = at(position) + channel as isize * stride;
                        read(lhs, at, axis.input_stride, n, some.as_mut_ptr());
                        for (i, &x) in some[..n].iter().enumerate() {
                            *to.add((position + i) * channels + channel) = x;
                        }
                    }
                }
            }
        }
    }

    /// Copies a row whose positions are contiguous and whose channels are strided, transposed: with
    /// contiguous channels.
    ///
    /// # Safety
    /// They are in the input, and there is space for the copy.
    unsafe fn transpose_row(
        &self,
        lhs: *const u8,
        at: isize,
        n: usize,
        [channels, stride]: [isize; 2],
        to: *mut f32,
    ) {
        /// Channels and positions at a time.
        const CHANNELS: usize = 16;
        const POSITIONS: usize = 64;
        let Some(terms) = Terms::of(self.lhs) else { return };
        let (bytes, channels) = (self.lhs.storage_bytes(), channels as usize);
        for position in (0..n).step_by(POSITIONS) {
            let n = POSITIONS.min(n - position);
            for channel in (0..channels).step_by(CHANNELS) {
                let mut rows = [0isize; CHANNELS];
                let count = CHANNELS.min(channels - channel);
                let offset = |c: usize| at + (channel + c) as isize * stride + position as isize;
                rows[..count].iter_mut().enumerate().for_each(|(c, row)| *row = offset(c));
                // SAFETY: the caller's.
                unsafe {
                    let to = to.add(position * channels + channel).cast();
                    transpose::pack(lhs, &rows[..count], bytes, n, terms, to, channels);
                }
            }
        }
    }
}

/// Collapses the spatial dimensions of a pointwise convolution (windows of one element, neither strided nor
/// padded) if positions are contiguous in input and result, and the batch dimension if examples are too.
fn collapse(lanes: &mut [Lane; 3], outer: &mut Outer) {
    let whole =
        |axis: &Axis| axis.kernel == 1 && axis.stride == 1 && axis.padding == 0 && axis.input == axis.output;
    if !lanes.iter().all(|lane| whole(&lane.axis)) {
        return;
    }
    let [z, y, mut x] = *lanes;
    let follows = |x: &Lane, input_stride: isize, result_stride: isize| {
        let n = x.axis.input as isize;
        input_stride == n * x.axis.input_stride && result_stride == n * x.result_stride
    };
    for slower in [y, z] {
        if slower.axis.input > 1 && !follows(&x, slower.axis.input_stride, slower.result_stride) {
            return;
        }
        let n = x.axis.input * slower.axis.input;
        (x.axis.input, x.axis.output) = (n, n);
    }
    if outer.batch > 1 && follows(&x, outer.batch_stride, outer.result_batch_stride) {
        let n = x.axis.input * outer.batch;
        (x.axis.input, x.axis.output, outer.batch) = (n, n, 1);
    }
    x.result_offset += y.result_offset + z.result_offset;
    x.kernel_offset += y.kernel_offset + z.kernel_offset;
    *lanes = [Lane::one(), Lane::one(), x];
}

/// Positions that `n` output positions reach over.
fn extent(n: usize, axis: &Axis) -> usize {
    (n - 1) * axis.stride as usize + (axis.kernel - 1) * axis.kernel_dilation as usize + 1
}

/// The first position that an output position sees.
fn origin(axis: &Axis, placement: usize) -> isize {
    placement as isize * axis.stride - axis.padding
}

/// The layout of panels of a packed kernel, in elements.
#[derive(Clone, Copy)]
struct PanelLayout {
    /// Features of a row of a panel.
    width: usize,
    /// From the start of a panel to that of the next.
    distance: usize,
}

/// What a task sees of the input.
struct Sight {
    /// The first position along each axis.
    first: [isize; 3],
    /// Positions along the two fastest axes.
    height: usize,
    width: usize,
    /// Where the channels of its group and example begin.
    input: isize,
}

/// What a task computes.
struct Task {
    group: usize,
    batch: usize,
    z: usize,
    y: std::ops::Range<usize>,
    x: std::ops::Range<usize>,
    panels: std::ops::Range<usize>,
}
