//! Gradients of kernels: convolutions whose windows are large and whose results are small. A tile of channels
//! sums over positions, a row of input and a row of the other operand after the other.

use hlo_library_base::pool::Pool;
use hlo_library_base::workspace::with_workspace;
use smallvec::SmallVec;

use super::super::read::{Read, reads};
use super::super::{Arrays, Axis, Lane, Outer, Types};
use super::tile::{Next, Segment, Tile, WIDTH};
use super::{Common, SLAB_ELEMENTS, extent};

/// The approximate number of elements of all sums together.
const SUMS_ELEMENTS: usize = 512 << 10;

/// The most parts of the terms.
const MAX_PARTS: usize = 8;

/// A convolution whose window is large and whose result is small: the gradient of a kernel. What are examples
/// in a convolution are channels of that one's input, what are channels are its examples.
#[derive(Clone, Debug)]
pub(in crate::convolution) struct Gradient {
    common: Common,
    /// Rows of the window that are done together.
    rows: usize,
    /// Parts of the terms, which have sums of their own, and of the features.
    parts: [usize; 2],
}

impl Gradient {
    /// If it is one.
    pub(in crate::convolution) fn new(lanes: &[Lane], outer: &Outer, types: Types) -> Option<Gradient> {
        let common = Common::new(lanes, outer, types)?;
        let [z, y, x] = common.axes();
        let (taps, outputs) = (z.kernel * y.kernel * x.kernel, z.output * y.output * x.output);
        // Channels of adjacent results are the rows of a tile. Windows that are far apart see few of the same
        // elements.
        let rows = if x.stride == 1 { x.output * outer.batch } else { outer.batch };
        let apart = z.stride.max(y.stride).max(x.stride) > 1 && taps < 4 * outputs;
        if outer.feature_groups != 1
            || rows < 2
            || apart
            || x.kernel < 4
            || taps <= outputs
            || outer.result_feature_stride == 0
        {
            return None;
        }
        let width = Self::width(&x);
        let slab = |rows: usize| {
            ((y.output - 1) * y.stride as usize + rows) * width * outer.batch
                + rows * x.kernel * outer.features
        };
        let mut rows = y.kernel.min(8);
        while rows > 1 && slab(rows) > 2 * SLAB_ELEMENTS {
            rows = rows.div_ceil(2);
        }
        if slab(rows) > 8 * SLAB_ELEMENTS {
            return None;
        }
        let sums = outputs * outer.batch * outer.features.next_multiple_of(WIDTH);
        let units = outer.channels * z.kernel * y.kernel.div_ceil(rows);
        let parts = (SUMS_ELEMENTS / sums.max(1)).clamp(1, MAX_PARTS).min(units);
        let of_features = MAX_PARTS.div_ceil(parts).min(outer.features.div_ceil(common.size.columns));
        Some(Gradient { common, rows, parts: [parts, of_features] })
    }

    /// Positions along a row that windows see.
    fn width(x: &Axis) -> usize {
        extent(x.output, x)
    }

    /// Elements of the sums of a part.
    fn sums(&self) -> usize {
        let outputs: usize = self.common.lanes.iter().map(|lane| lane.axis.output).product();
        outputs * self.common.outer.batch * self.row()
    }

    /// Elements of a row of sums.
    fn row(&self) -> usize {
        self.common.outer.features.next_multiple_of(WIDTH)
    }

    pub(in crate::convolution) fn scratch_bytes(&self) -> usize {
        4 * self.parts[0] * self.sums()
    }

    /// Computes it.
    ///
    /// # Safety
    /// The arrays are those of the convolution.
    pub(in crate::convolution) unsafe fn run(&self, arrays: Arrays, pool: &Pool) {
        let [parts, of_features] = self.parts;
        let panels = self.common.outer.features.div_ceil(self.common.size.columns);
        pool.run(parts * of_features, &|task| {
            let (part, panel) = (task / of_features, task % of_features);
            let panels = panel * panels / of_features..(panel + 1) * panels / of_features;
            // SAFETY: the caller's; tasks have sums of their own.
            unsafe { self.part(part, panels, arrays.get()) };
        });
        let Common { lanes, outer, result_bytes, .. } = &self.common;
        let [z, y, x] = lanes.map(|lane| lane.axis.output);
        let all = z * y * x * outer.batch;
        let each = all.div_ceil(64).max(16);
        pool.run(all.div_ceil(each), &|chunk| {
            let arrays = arrays.get();
            let mut line: SmallVec<[f32; 1024]> = SmallVec::new();
            for row in chunk * each..all.min((chunk + 1) * each) {
                let (c, rest) = (row % outer.batch, row / outer.batch);
                let (ox, rest) = (rest % x, rest / x);
                let (oy, oz) = (rest % y, rest / y);
                let to = lanes.iter().map(|lane| lane.result_offset).sum::<isize>()
                    + c as isize * outer.result_batch_stride
                    + oz as isize * lanes[0].result_stride
                    + oy as isize * lanes[1].result_stride
                    + ox as isize * lanes[2].result_stride;
                // SAFETY: all sums are there; rows are disjoint parts of the result.
                unsafe {
                    let sums = arrays.scratch.cast::<f32>().add(row * self.row());
                    line.clear();
                    line.extend_from_slice(std::slice::from_raw_parts(sums, outer.features));
                    for part in 1..parts {
                        let more = std::slice::from_raw_parts(sums.add(part * self.sums()), outer.features);
                        line.iter_mut().zip(more).for_each(|(sum, x)| *sum += x);
                    }
                    let step = outer.result_feature_stride;
                    let to = arrays.out.offset(to * *result_bytes as isize);
                    match arrays.narrow {
                        Some(narrow) => narrow(line.as_ptr(), line.len(), to, step),
                        None => {
                            for (f, &sum) in line.iter().enumerate() {
                                *to.cast::<f32>().offset(f as isize * step) = sum;
                            }
                        }
                    }
                }
            }
        });
    }

    /// The sums of a part of the terms, of some panels of features.
    unsafe fn part(&self, part: usize, panels: std::ops::Range<usize>, arrays: Arrays) {
        let Common { lanes, outer, rhs, size, .. } = &self.common;
        let Some(read) = reads(*rhs) else { return };
        let [z, y, x] = lanes.map(|lane| lane.axis);
        let blocks = y.kernel.div_ceil(self.rows);
        let units = outer.channels * z.kernel * blocks;
        let channels = outer.batch;
        let (width, row) = (Self::width(&x), self.row());
        let height = (y.output - 1) * y.stride as usize + (self.rows - 1) * y.kernel_dilation as usize + 1;
        let (from, end) = (panels.start * size.columns, (panels.end * size.columns).min(outer.features));
        let features = end - from;
        let slab = height * width * channels;
        // SAFETY: the caller's.
        let sums = unsafe { arrays.scratch.cast::<f32>().add(part * self.sums()) };
        with_workspace(4 * (slab + self.rows * x.kernel * features), |workspace| {
            let slab_at = workspace.cast::<f32>();
            // SAFETY: the workspace has space for both.
            let others = unsafe { slab_at.add(slab) };
            let mut segments: SmallVec<[Segment; 16]> = SmallVec::new();
            for oz in 0..z.output {
                let mut first = true;
                for unit in units * part / self.parts[0]..units * (part + 1) / self.parts[0] {
                    let (block, rest) = (unit % blocks, unit / blocks);
                    let (kz, channel) = (rest % z.kernel, (rest / z.kernel) as isize);
                    let kys = block * y.kernel / blocks..(block + 1) * y.kernel / blocks;
                    let iz = oz as isize * z.stride - z.padding + kz as isize * z.kernel_dilation;
                    let there = (0..z.input as isize).contains(&iz);
                    let first_y = kys.start as isize * y.kernel_dilation - y.padding;
                    // SAFETY: rows that are read are there, and fit into the workspace.
                    unsafe {
                        for h in 0..height as isize {
                            let iy = first_y + h;
                            if there && (0..y.input as isize).contains(&iy) {
                                let at = channel * outer.channel_stride
                                    + iz * z.input_stride
                                    + iy * y.input_stride;
                                let to = slab_at.add(h as usize * width * channels);
                                let channels = [channels as isize, outer.batch_stride];
                                self.common.copy_row(arrays.lhs, at, -x.padding, width, channels, to);
                            }
                        }
                        for (i, ky) in kys.clone().enumerate() {
                            let at = lanes.iter().map(|lane| lane.kernel_offset).sum::<isize>()
                                + channel * outer.kernel_channel_stride
                                + kz as isize * lanes[0].kernel_stride
                                + ky as isize * lanes[1].kernel_stride
                                + from as isize * outer.kernel_feature_stride;
                            self.copy_other(
                                read,
                                arrays.rhs,
                                at,
                                features,
                                others.add(i * x.kernel * features),
                            );
                        }
                    }
                    for oy in 0..y.output {
                        segments.clear();
                        for (i, ky) in kys.clone().enumerate() {
                            let h = oy as isize * y.stride + (ky - kys.start) as isize * y.kernel_dilation;
                            if !there || !(0..y.input as isize).contains(&(first_y + h)) {
                                continue;
                            }
                            // SAFETY: the rows are in the workspace.
                            let (a, b) = unsafe {
                                (
                                    slab_at.add(h as usize * width * channels).cast_const(),
                                    others.add(i * x.kernel * features).cast_const(),
                                )
                            };
                            segments.push(Segment { a, b, terms: x.kernel });
                        }
                        // Channels of adjacent results are contiguous.
                        let (lines, together) = if x.stride == 1 { (1, x.output) } else { (x.output, 1) };
                        for line in 0..lines {
                            for (tile_row, rows) in size.tiles(together * channels) {
                                for column in (0..features).step_by(size.columns) {
                                    let result =
                                        ((oz * y.output + oy) * x.output + line) * channels + tile_row;
                                    let tile = Tile {
                                        size: *size,
                                        segments: &segments,
                                        at: [
                                            line as isize * x.stride * channels as isize + tile_row as isize,
                                            column as isize,
                                        ],
                                        a_row: 1,
                                        a_term: x.kernel_dilation * channels as isize,
                                        b_term: features as isize,
                                        // SAFETY: the offset is inside of the sums.
                                        c: unsafe { sums.add(result * row + from + column) },
                                        c_row: row as isize,
                                        rows,
                                        columns: size.columns.min(features - column),
                                        add: !first,
                                        ahead: 0,
                                        next: Next::NONE,
                                    };
                                    // SAFETY: rows and columns are in the workspace and in the sums.
                                    unsafe { tile.run() };
                                }
                            }
                        }
                    }
                    first = false;
                }
            }
        });
    }

    /// Copies a row of the other operand with contiguous features.
    ///
    /// # Safety
    /// The row is there, and so is space for the copy.
    unsafe fn copy_other(&self, read: Read, rhs: *const u8, at: isize, features: usize, to: *mut f32) {
        let (lane, outer) = (&self.common.lanes[2], &self.common.outer);
        // SAFETY: the caller's.
        unsafe {
            if outer.kernel_feature_stride == 1 {
                for kx in 0..lane.axis.kernel {
                    let at = at + kx as isize * lane.kernel_stride;
                    read(rhs, at, 1, features, to.add(kx * features));
                }
                return;
            }
            let mut some = [0f32; 64];
            for kx in (0..lane.axis.kernel).step_by(some.len()) {
                let n = some.len().min(lane.axis.kernel - kx);
                for f in 0..features {
                    let at = at + kx as isize * lane.kernel_stride + f as isize * outer.kernel_feature_stride;
                    read(rhs, at, lane.kernel_stride, n, some.as_mut_ptr());
                    for (i, &value) in some[..n].iter().enumerate() {
                        *to.add((kx + i) * features + f) = value;
                    }
                }
            }
        }
    }
}
