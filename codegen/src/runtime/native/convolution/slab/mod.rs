//! Convolutions in `f32` without patches: register tiles read the input where it is, or in a *slab*, the rows of it that a task needs with their padding and with
//! channels as neighbours.
//!
//! A tile of neighbouring placements ([`Forward`]) sums over the taps of the window: along a row of it, channels and taps are one run. If there are few
//! features, vectors are of placements ([`Few`]). For gradients of
//! kernels, whose windows are large and whose results are small, a tile of channels sums over positions ([`Gradient`]): a row of input and
//! a row of the other operand after the other.
//!
//! **Invariant:** tasks and the order of sums are fixed by the shape.

mod few;
mod gradient;

use smallvec::SmallVec;

use hlo::ElementType;

use self::few::Few;
use self::gradient::Gradient;
use super::read::reads;
use super::{Arrays, Axis, Lane, Outer, Types};
use crate::isa::Features;
use crate::runtime::native::dot::product::with_workspace;
use crate::runtime::native::dot::transpose;
use crate::runtime::pool::Pool;

/// Rows and columns of a register tile.
const ROWS: usize = 12;
const COLUMNS: usize = 32;

/// Rows of sums that are put into the result together: several lines of a cache of neighbouring placements.
const PUT: usize = 8 * ROWS;

/// Elements of a vector.
const WIDTH: usize = 16;

/// Elements of a slab, about.
const SLAB: usize = 96 << 10;

/// Distance of terms of the kernel up to which a panel is read where it is: farther ones would share few sets of a cache.
const NEAR_TERMS: isize = 128;

/// Tasks, about, if there is as much work.
const TASKS: usize = 32;

/// How a product is computed without patches.
#[derive(Clone, Debug)]
pub(super) enum Slab {
    Forward(Box<Forward>),
    Few(Box<Few>),
    Gradient(Box<Gradient>),
}

impl Slab {
    /// If one of them fits.
    pub(super) fn new(lanes: &[Lane], outer: &Outer, types: Types) -> Option<Slab> {
        let gradient = Gradient::new(lanes, outer, types).map(|g| Slab::Gradient(Box::new(g)));
        let few = || Few::new(lanes, outer, types).map(|f| Slab::Few(Box::new(f)));
        let forward = || Forward::new(lanes, outer, types).map(|f| Slab::Forward(Box::new(f)));
        gradient.or_else(few).or_else(forward)
    }

    pub(super) fn scratch_bytes(&self) -> usize {
        match self {
            Slab::Forward(forward) => forward.scratch_bytes(),
            Slab::Few(few) => few.scratch_bytes(),
            Slab::Gradient(gradient) => gradient.scratch_bytes(),
        }
    }

    /// Whether finished rows are reported while others are computed.
    pub(super) fn reports(&self) -> bool {
        match self {
            Slab::Forward(forward) => forward.reports(),
            Slab::Few(_) => true,
            Slab::Gradient(_) => false,
        }
    }

    /// Computes it. `finished` gets where rows of features begin and how many, if [`Slab::reports`].
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
                Slab::Forward(forward) => forward.run(arrays, pool, finished),
                Slab::Few(few) => few.run(arrays, pool, finished),
                Slab::Gradient(gradient) => gradient.run(arrays, pool),
            }
        }
    }
}

/// What both kinds know.
#[derive(Clone, Debug)]
struct Common {
    /// Three spatial axes, the slowest first.
    lanes: [Lane; 3],
    outer: Outer,
    lhs: ElementType,
    rhs: ElementType,
    result_bytes: usize,
}

impl Common {
    fn new(lanes: &[Lane], outer: &Outer, (lhs, rhs, result_bytes): Types) -> Option<Common> {
        let fits = (1..=3).contains(&lanes.len())
            && lanes.iter().all(|lane| lane.axis.input_dilation == 1 && lane.axis.output > 0)
            && outer.batch_groups == 1
            && outer.channels > 0
            && Features::here().avx512
            && reads(lhs).is_some()
            && reads(rhs).is_some();
        if !fits {
            return None;
        }
        let mut all = [Lane::one(); 3];
        all[3 - lanes.len()..].copy_from_slice(lanes);
        Some(Common { lanes: all, outer: *outer, lhs, rhs, result_bytes })
    }

    fn axes(&self) -> [Axis; 3] {
        self.lanes.map(|lane| lane.axis)
    }

    /// Positions of a window.
    fn taps(&self) -> usize {
        self.axes().iter().map(|axis| axis.kernel).product()
    }

    /// Elements of the slab of a block: so many placements along the two fastest axes.
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

    /// A block of fewer lines, if its slab is too large or there are too few of them.
    fn divided(&self, mut block: [usize; 2]) -> [usize; 2] {
        while block[0] > 1 && (self.slab(block) > SLAB || self.blocks(block) < TASKS && block[0] > 4) {
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

    /// Calls `copy` with the number in the slab, and the beginning in the input, of each row that is not padding and that some window sees.
    fn each_row(&self, sight: &Sight, mut copy: impl FnMut(usize, isize)) {
        let [z, y, _] = self.axes();
        // Where the placements begin.
        let placements = 0..sight.height as isize - (y.kernel as isize - 1) * y.kernel_dilation;
        for tap in 0..z.kernel {
            for h in 0..sight.height {
                // Rows between placements, and between elements of windows, are seen by none.
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

    /// Packs features of the kernel from one on: taps, then channels, then features, of which there are zeros up to `width`.
    ///
    /// # Safety
    /// They are in the kernel, and there is room.
    unsafe fn pack(&self, rhs: *const u8, feature: usize, columns: usize, width: usize, mut to: *mut f32) {
        let Common { lanes, outer, .. } = self;
        let Some(read) = reads(self.rhs) else { return };
        let at: isize = lanes.iter().map(|lane| lane.kernel_offset).sum::<isize>()
            + feature as isize * outer.kernel_feature_stride;
        for z in 0..lanes[0].axis.kernel as isize {
            for y in 0..lanes[1].axis.kernel as isize {
                for x in 0..lanes[2].axis.kernel as isize {
                    let at = at
                        + z * lanes[0].kernel_stride
                        + y * lanes[1].kernel_stride
                        + x * lanes[2].kernel_stride;
                    for channel in 0..outer.channels as isize {
                        let at = at + channel * outer.kernel_channel_stride;
                        // SAFETY: the caller's.
                        unsafe {
                            read(rhs, at, outer.kernel_feature_stride, columns, to);
                            std::slice::from_raw_parts_mut(to.add(columns), width - columns).fill(0.0);
                            to = to.add(width);
                        }
                    }
                }
            }
        }
    }

    /// Where the first feature of a placement is in the result: row `y`, and so many after the first of the task's.
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
            // Neighbouring placements may be far apart in the result.
            if self.lanes[2].result_stride == self.outer.features as isize {
                finished(self.offset(task, y, 0), task.x.len());
            } else {
                (0..task.x.len()).for_each(|x| finished(self.offset(task, y, x), 1));
            }
        }
    }

    /// Copies a row of input with padding and channels (`count` of them, `stride` apart) as neighbours: positions `first..first + width`.
    ///
    /// # Safety
    /// The row is in the input, and there is room for the copy.
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
        // SAFETY: positions `begin..end` are in the input; the copy has room for all.
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
                    return self.turn_row(
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

    /// Copies positions that are neighbours in the input, and channels so far apart, with channels as neighbours.
    ///
    /// # Safety
    /// They are in the input, there is room for the copy, and the machine has AVX-512.
    unsafe fn turn_row(
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
        let Some(read) = reads(self.lhs) else { return };
        let channels = channels as usize;
        let mut wide = [0f32; CHANNELS * POSITIONS];
        for position in (0..n).step_by(POSITIONS) {
            let n = POSITIONS.min(n - position);
            for channel in (0..channels).step_by(CHANNELS) {
                let mut rows = [0isize; CHANNELS];
                let count = CHANNELS.min(channels - channel);
                let place = |c: usize| at + (channel + c) as isize * stride + position as isize;
                // SAFETY: the caller's.
                unsafe {
                    let base = if self.lhs == ElementType::F32 {
                        rows[..count].iter_mut().enumerate().for_each(|(c, row)| *row = place(c));
                        lhs
                    } else {
                        for (c, row) in rows[..count].iter_mut().enumerate() {
                            *row = (c * POSITIONS) as isize;
                            read(lhs, place(c), 1, n, wide.as_mut_ptr().add(c * POSITIONS));
                        }
                        wide.as_ptr().cast()
                    };
                    let to = to.add(position * channels + channel).cast();
                    transpose::pack(base, &rows[..count], 4, n, 0, to, channels);
                }
            }
        }
    }
}

/// Positions that `n` placements reach over.
fn extent(n: usize, axis: &Axis) -> usize {
    (n - 1) * axis.stride as usize + (axis.kernel - 1) * axis.kernel_dilation as usize + 1
}

/// The first position that a placement sees.
fn origin(axis: &Axis, placement: usize) -> isize {
    placement as isize * axis.stride - axis.padding
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

/// Terms that are one after the other in both operands.
#[derive(Clone, Copy)]
struct Segment {
    a: *const f32,
    b: *const f32,
    terms: usize,
}

/// A register tile: rows by columns, summed over segments.
#[derive(Clone, Copy)]
struct Tile<'a> {
    segments: &'a [Segment],
    /// What is added to where segments are, in `a` and in `b`.
    at: [isize; 2],
    /// Distances of rows and terms in `a`, of terms in `b`.
    a_row: isize,
    a_term: isize,
    b_term: isize,
    c: *mut f32,
    c_row: isize,
    /// Rows and columns: at most [`ROWS`] and [`COLUMNS`]; twice as many columns of few neighbouring rows.
    rows: usize,
    columns: usize,
    /// Whether to add to what is there.
    add: bool,
}

#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq")]
unsafe fn tile<const R: usize, const V: usize, const NEIGHBOURS: bool>(t: &Tile<'_>) {
    use std::arch::x86_64::*;
    let last = (1u32 << (t.columns - (V - 1) * WIDTH)) - 1;
    let mask = |v: usize| if v + 1 == V { last as __mmask16 } else { __mmask16::MAX };
    // SAFETY: the caller says that rows, columns and segments are there; columns beyond are masked.
    unsafe {
        let mut sums = [[_mm512_setzero_ps(); V]; R];
        for segment in t.segments {
            let (mut a, mut b) = (segment.a.offset(t.at[0]), segment.b.offset(t.at[1]));
            for _ in 0..segment.terms {
                let mut words = [_mm512_maskz_loadu_ps(mask(V - 1), b.add((V - 1) * WIDTH)); V];
                for v in 0..V - 1 {
                    words[v] = _mm512_loadu_ps(b.add(v * WIDTH));
                }
                for r in 0..R {
                    let x = if NEIGHBOURS { *a.add(r) } else { *a.offset(r as isize * t.a_row) };
                    for v in 0..V {
                        sums[r][v] = _mm512_fmadd_ps(_mm512_set1_ps(x), words[v], sums[r][v]);
                    }
                }
                a = a.offset(t.a_term);
                b = b.offset(t.b_term);
            }
        }
        for r in 0..R {
            for v in 0..V {
                let c = t.c.offset(r as isize * t.c_row).add(v * WIDTH);
                let sum = if t.add {
                    _mm512_add_ps(sums[r][v], _mm512_maskz_loadu_ps(mask(v), c))
                } else {
                    sums[r][v]
                };
                _mm512_mask_storeu_ps(c, mask(v), sum);
            }
        }
    }
}

impl Tile<'_> {
    /// # Safety
    /// What it points to is there.
    unsafe fn run(&self) {
        macro_rules! wide {
            ($($rows:literal),*) => {
                match (self.rows, self.columns.div_ceil(WIDTH)) {
                    // SAFETY: the caller's; there are such kinds only where the machine has the vectors.
                    $(($rows, 3) => return unsafe { tile::<$rows, 3, true>(self) },
                    // SAFETY: as above.
                    ($rows, 4) => return unsafe { tile::<$rows, 4, true>(self) },)*
                    (_, columns) => debug_assert!(columns <= 2, "invariant: tiles of many rows have 32 columns"),
                }
            };
        }
        wide!(1, 2, 3, 4);
        macro_rules! rows {
            ($($rows:literal),*) => {
                match (self.rows, self.columns > WIDTH, self.a_row == 1) {
                    // SAFETY: the caller's; there are such kinds only where the machine has the vectors.
                    $(($rows, false, false) => unsafe { tile::<$rows, 1, false>(self) },
                    // SAFETY: as above.
                    ($rows, false, true) => unsafe { tile::<$rows, 1, true>(self) },
                    // SAFETY: as above.
                    ($rows, true, false) => unsafe { tile::<$rows, 2, false>(self) },
                    // SAFETY: as above.
                    ($rows, true, true) => unsafe { tile::<$rows, 2, true>(self) },)*
                    (rows, _, _) => debug_assert_eq!(rows, 0, "invariant: tiles have at most 12 rows"),
                }
            };
        }
        rows!(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12);
    }
}

/// Cuts `n` rows into tiles that are about equal.
fn tiles(n: usize) -> impl Iterator<Item = (usize, usize)> {
    let count = n.div_ceil(ROWS);
    (0..count).map(move |i| (n * i / count, n * (i + 1) / count - n * i / count))
}

/// A convolution whose window is small.
#[derive(Clone, Debug)]
pub(super) struct Forward {
    common: Common,
    /// Placements of a task along the two fastest axes.
    block: [usize; 2],
    /// Parts that the panels of features are cut into.
    parts: usize,
    in_place: bool,
    kernel: Panels,
}

/// Panels of a kernel: up to [`COLUMNS`] neighbouring features of all taps and channels, packed or where they are in the operand.
#[derive(Clone, Copy, Debug)]
struct Panels {
    packed: bool,
    /// Distances of taps along the three axes.
    taps: [isize; 3],
    /// Distances of channels, of panels and of groups.
    channel: isize,
    panel: isize,
    group: isize,
}

impl Panels {
    fn new(common: &Common) -> Panels {
        let Common { lanes, outer, rhs, .. } = common;
        let channels = outer.channels as isize;
        let x = &lanes[2];
        let in_place = *rhs == ElementType::F32
            && outer.kernel_feature_stride == 1
            && (1..=NEAR_TERMS).contains(&outer.kernel_channel_stride)
            && (x.axis.kernel == 1 || x.kernel_stride == channels * outer.kernel_channel_stride);
        if in_place {
            return Panels {
                packed: false,
                taps: lanes.map(|lane| lane.kernel_stride),
                channel: outer.kernel_channel_stride,
                panel: COLUMNS as isize,
                group: outer.features as isize,
            };
        }
        let tap = channels * COLUMNS as isize;
        let row = tap * x.axis.kernel as isize;
        let plane = row * lanes[1].axis.kernel as isize;
        let panel = plane * lanes[0].axis.kernel as isize;
        let group = panel * outer.features.div_ceil(COLUMNS) as isize;
        Panels { packed: true, taps: [plane, row, tap], channel: COLUMNS as isize, panel, group }
    }

    /// Where a panel begins.
    fn at(&self, group: usize, panel: usize) -> isize {
        group as isize * self.group + panel as isize * self.panel
    }
}

impl Forward {
    /// If it is one.
    pub(super) fn new(lanes: &[Lane], outer: &Outer, types: Types) -> Option<Forward> {
        let common = Common::new(lanes, outer, types)?;
        let [z, y, x] = common.axes();
        let (taps, outputs) = (common.taps(), z.output * y.output * x.output);
        if outer.features < 8 || taps == 0 || taps * outer.channels < 8 || x.output < 4 || taps > 4 * outputs
        {
            return None;
        }
        let in_place = types.0 == ElementType::F32 && outer.channel_stride == 1 && !x.has_holes();
        let mut block = [y.output, x.output];
        while block[1] > 4 * ROWS && common.slab([1, block[1]]) > SLAB {
            block[1] = block[1].div_ceil(2).next_multiple_of(ROWS);
        }
        if common.slab([1, block[1]]) > 4 * SLAB && !in_place {
            return None;
        }
        let mut block = common.divided(block);
        // Parts of lines, where what windows of neighbouring ones share is little.
        while block[0] == 1
            && common.blocks(block) < TASKS
            && block[1] > 8 * ROWS
            && block[1] > 8 * extent(1, &x)
        {
            block[1] = block[1].div_ceil(2).next_multiple_of(ROWS);
        }
        let parts = (TASKS / 2).div_ceil(common.blocks(block)).min(outer.features.div_ceil(COLUMNS));
        let kernel = Panels::new(&common);
        Some(Forward { common, block, parts, in_place, kernel })
    }

    /// Whether finished rows are reported as soon as they are.
    pub(super) fn reports(&self) -> bool {
        self.parts == 1
    }

    pub(super) fn scratch_bytes(&self) -> usize {
        if self.kernel.packed { 4 * self.common.outer.feature_groups * self.kernel.group as usize } else { 0 }
    }

    /// Computes it. `finished` gets where rows of features begin and how many.
    ///
    /// # Safety
    /// The arrays are those of the convolution.
    pub(super) unsafe fn run(
        &self,
        arrays: Arrays,
        pool: &Pool,
        finished: Option<&(dyn Fn(isize, usize) + Sync)>,
    ) {
        let (outer, panels) = (&self.common.outer, self.common.outer.features.div_ceil(COLUMNS));
        if self.kernel.packed {
            pool.run(outer.feature_groups * panels, &|n| {
                // SAFETY: the caller's; panels are disjoint.
                unsafe { self.pack(n / panels, n % panels, arrays.get()) }
            });
        }
        let whole = finished.filter(|_| self.parts == 1);
        pool.run(self.common.blocks(self.block) * self.parts, &|task| {
            let part = task % self.parts;
            let panels = part * panels / self.parts..(part + 1) * panels / self.parts;
            let task = self.common.task(task / self.parts, self.block, panels);
            // SAFETY: the caller's; tasks are disjoint parts of the result.
            unsafe { self.task(&task, arrays.get(), whole) };
        });
    }

    /// Packs a panel of the kernel: taps, then channels, then features.
    unsafe fn pack(&self, group: usize, panel: usize, arrays: Arrays) {
        let features = self.common.outer.features;
        let first = panel * COLUMNS;
        let columns = COLUMNS.min(features - first);
        // SAFETY: the caller's: the scratch memory has room for all panels, the elements are in the kernel.
        unsafe {
            let to = arrays.scratch.cast::<f32>().offset(self.kernel.at(group, panel));
            self.common.pack(arrays.rhs, group * features + first, columns, COLUMNS, to);
        }
    }

    /// Where the first tap of the first panel is.
    fn kernel_base(&self, arrays: Arrays) -> *const f32 {
        if self.kernel.packed {
            return arrays.scratch.cast();
        }
        let offset = self.common.lanes.iter().map(|lane| lane.kernel_offset).sum();
        arrays.rhs.cast::<f32>().wrapping_offset(offset)
    }

    unsafe fn task(&self, task: &Task, arrays: Arrays, finished: Option<&(dyn Fn(isize, usize) + Sync)>) {
        let Common { lanes, outer, .. } = &self.common;
        let [z, y, x] = self.common.axes();
        let channels = outer.channels;
        let sight = self.common.sight(task);
        let Sight { first: [_, first_y, first_x], height, width, .. } = sight;
        let row = width * channels;
        let slab = if self.in_place { 0 } else { z.kernel * height * row };
        with_workspace(4 * (slab + 2 * PUT * COLUMNS), |workspace| {
            let sums = workspace.cast::<f32>();
            // SAFETY: the workspace has room for the slab after the sums of some tiles, twice.
            let slab = unsafe { sums.add(2 * PUT * COLUMNS) };
            if !self.in_place {
                let channels = [channels as isize, outer.channel_stride];
                self.common.each_row(&sight, |number, at| {
                    // SAFETY: the row is in the input, its copy in the slab.
                    unsafe {
                        let to = slab.add(number * row);
                        self.common.copy_row(arrays.lhs, at, first_x, width, channels, to);
                    }
                });
            }
            // Distance of positions along a row.
            let step = if self.in_place { x.input_stride } else { channels as isize };
            let run =
                if x.kernel_dilation * step == channels as isize || x.kernel == 1 { x.kernel } else { 1 };
            // Rows of sums that are put into the result together, if they are not summed there.
            let direct = arrays.narrow.is_none() && outer.result_feature_stride == 1;
            let together = match direct {
                true => task.x.len(),
                false => task.x.len().div_ceil(task.x.len().div_ceil(PUT)).next_multiple_of(WIDTH),
            };
            let mut segments: SmallVec<[Segment; 32]> = SmallVec::new();
            for panel in task.panels.clone() {
                let at = self.kernel.at(task.group, panel);
                // SAFETY: the panel was packed, or is in the operand.
                let kernel = unsafe { self.kernel_base(arrays).offset(at) };
                let columns = COLUMNS.min(outer.features - panel * COLUMNS);
                for oy in task.y.clone() {
                    segments.clear();
                    for z_tap in 0..z.kernel {
                        for y_tap in 0..y.kernel {
                            let at = origin(&y, oy) + y_tap as isize * y.kernel_dilation;
                            let Some(from) = self.common.row(&sight, z_tap, at) else { continue };
                            for x_tap in (0..x.kernel).step_by(run) {
                                let offset = x_tap as isize * x.kernel_dilation * step;
                                let taps = self.kernel.taps;
                                let tap = z_tap as isize * taps[0]
                                    + y_tap as isize * taps[1]
                                    + x_tap as isize * taps[2];
                                // SAFETY: taps are in the slab, or in the input if that is read where it is.
                                let (a, b) = unsafe {
                                    let a = if self.in_place {
                                        arrays.lhs.cast::<f32>().offset(from + first_x * step)
                                    } else {
                                        let h = (at - first_y) as usize;
                                        slab.add((z_tap * height + h) * row).cast_const()
                                    };
                                    (a.offset(offset), kernel.offset(tap))
                                };
                                segments.push(Segment { a, b, terms: run * channels });
                            }
                        }
                    }
                    for begin in (0..task.x.len()).step_by(together) {
                        let count = together.min(task.x.len() - begin);
                        let to = self.common.offset(task, oy, begin)
                            + (task.group * outer.features + panel * COLUMNS) as isize
                                * outer.result_feature_stride;
                        // SAFETY: the tiles are in the result, and their sums in the workspace.
                        unsafe {
                            let (c, c_row) = match direct {
                                true => (arrays.out.cast::<f32>().offset(to), lanes[2].result_stride),
                                false => (sums, COLUMNS as isize),
                            };
                            for (first, rows) in tiles(count) {
                                let tile = Tile {
                                    segments: &segments,
                                    at: [(begin + first) as isize * x.stride * step, 0],
                                    a_row: x.stride * step,
                                    a_term: 1,
                                    b_term: self.kernel.channel,
                                    c: c.offset(first as isize * c_row),
                                    c_row,
                                    rows,
                                    columns,
                                    add: false,
                                };
                                tile.run();
                            }
                            if !direct {
                                self.put(sums, count, columns, to, arrays);
                            }
                        }
                    }
                }
            }
        });
        if let Some(finished) = finished {
            self.common.report(task, finished);
        }
    }

    /// Puts the sums of at most [`PUT`] rows into the result, along whichever of its sides is the nearer one.
    ///
    /// # Safety
    /// They are in the result; after the sums is room for as many.
    unsafe fn put(&self, sums: *mut f32, rows: usize, columns: usize, to: isize, arrays: Arrays) {
        let bytes = self.common.result_bytes as isize;
        let (row, column) = (self.common.lanes[2].result_stride, self.common.outer.result_feature_stride);
        // SAFETY: the caller's.
        unsafe {
            let place =
                |r: usize, c: usize| arrays.out.offset((to + r as isize * row + c as isize * column) * bytes);
            let turn = |to: *mut u8, pitch: usize| {
                let parts: [*const u8; PUT] =
                    std::array::from_fn(|r| sums.wrapping_add(r * COLUMNS).cast_const().cast());
                transpose::columns(&parts[..rows], columns, to, pitch);
            };
            let Some(narrow) = arrays.narrow else {
                if row == 1 {
                    return turn(place(0, 0), (4 * column) as usize);
                }
                for c in 0..columns {
                    for r in 0..rows {
                        *place(r, c).cast::<f32>() = *sums.add(r * COLUMNS + c);
                    }
                }
                return;
            };
            if column == 1 {
                for r in 0..rows {
                    narrow(sums.add(r * COLUMNS), columns, place(r, 0), 1);
                }
                return;
            }
            let turned = sums.add(PUT * COLUMNS);
            turn(turned.cast(), 4 * PUT);
            for c in 0..columns {
                let turned = turned.add(c * PUT);
                narrow(turned, rows, place(0, c), row);
            }
        }
    }
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
