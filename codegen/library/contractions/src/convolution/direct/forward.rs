//! Convolutions of small windows: a tile of adjacent output positions sums over the taps, of which those of a
//! row of the window are one run with their channels.

use smallvec::SmallVec;

use hlo::ElementType;
use hlo_library_base::memory::Shared;
use hlo_library_base::pool::Pool;
use hlo_library_base::transpose;
use hlo_library_base::tuning;
use hlo_library_base::workspace::with_workspace;

use super::super::{Arrays, Lane, Outer, Types};
use super::tile::{LINE_TERMS, MAX_COLUMNS, MAX_ROWS, Next, Segment, Tile, WIDTH};
use super::{Common, PanelLayout, SLAB_ELEMENTS, Sight, Task, WANTED_TASKS, extent, origin};

/// Rows of sums that are stored to the result together: several cache lines of adjacent positions.
const ROWS_PER_STORE: usize = 8 * MAX_ROWS;

/// Distance of terms of the kernel, in rows of a panel, up to which a panel is read where it is: farther ones
/// would share few sets of a cache.
const MAX_UNPACKED_TERM_DISTANCE: usize = 4;

/// Rows of features that a task packs.
const PACKED_ROWS_PER_TASK: usize = 128;

/// Multiply-adds of a register tile in the time in which an element is copied into a slab.
const MULTIPLY_ADDS_PER_COPY: usize = 18;

/// The smallest ratio of the time of a task's multiply-adds to that of copying its slab.
const MIN_TIME_PER_COPY_TIME: usize = 16;

/// The largest panel that the first-level cache holds beside the rows, in bytes.
const MAX_L1_PANEL_BYTES: usize = 16 << 10;

/// The prefetch distance of a panel that is read for the first time, in terms: the latency of memory, divided
/// by the time of a term.
const PREFETCH_DISTANCE_TERMS: usize = 64;

/// The same of a panel that is in the second-level cache.
const L1_PREFETCH_DISTANCE_TERMS: usize = 8;

/// A convolution whose window is small.
#[derive(Clone, Debug)]
pub(in crate::convolution) struct Forward {
    common: Common,
    /// Placements of a task along the two fastest axes.
    block: [usize; 2],
    /// Parts that the panels of features are divided into.
    parts: usize,
    in_place: bool,
    kernel: Panels,
}

/// Panels of a kernel: the columns of a tile, adjacent features of all taps and channels, packed or where they are
/// in the operand.
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
        let Common { lanes, outer, rhs, size, .. } = common;
        let columns = size.columns;
        let channels = outer.channels as isize;
        let x = &lanes[2];
        let in_place = *rhs == ElementType::F32
            && outer.kernel_feature_stride == 1
            && (1..=(MAX_UNPACKED_TERM_DISTANCE * columns) as isize).contains(&outer.kernel_channel_stride)
            && (x.axis.kernel == 1 || x.kernel_stride == channels * outer.kernel_channel_stride);
        if in_place {
            return Panels {
                packed: false,
                taps: lanes.map(|lane| lane.kernel_stride),
                channel: outer.kernel_channel_stride,
                panel: columns as isize,
                group: outer.features as isize,
            };
        }
        let tap = channels * columns as isize;
        let row = tap * x.axis.kernel as isize;
        let plane = row * lanes[1].axis.kernel as isize;
        let panel = plane * lanes[0].axis.kernel as isize;
        let group = panel * outer.features.div_ceil(columns) as isize;
        Panels { packed: true, taps: [plane, row, tap], channel: columns as isize, panel, group }
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
        let size = common.size;
        let (taps, outputs) = (common.taps(), z.output * y.output * x.output);
        if outer.features < 8 || taps == 0 || taps * outer.channels < 8 || x.output < 4 || taps > 4 * outputs
        {
            return None;
        }
        let in_place = types.0 == ElementType::F32 && outer.channel_stride == 1 && !x.has_holes();
        if in_place && taps == 1 && outputs == x.output {
            return Some(Forward::pointwise(common));
        }
        let mut block = [y.output, x.output];
        while block[1] > 4 * size.rows && common.slab([1, block[1]]) > SLAB_ELEMENTS {
            block[1] = block[1].div_ceil(2).next_multiple_of(size.rows);
        }
        if common.slab([1, block[1]]) > 4 * SLAB_ELEMENTS && !in_place {
            return None;
        }
        let panels = outer.features.div_ceil(size.columns);
        // Each block reads the whole kernel. One that is larger than the input is divided into panels first,
        // so that there are fewer blocks.
        let kernel_is_larger = taps * outer.channels * outer.features > common.slab(block);
        let mut block = common.divided(block, if kernel_is_larger { 2 * panels } else { 1 });
        // Parts of lines, where windows of adjacent ones share few elements.
        while block[0] == 1
            && common.blocks(block) < WANTED_TASKS
            && block[1] > 8 * size.rows
            && block[1] > 8 * extent(1, &x)
        {
            block[1] = block[1].div_ceil(2).next_multiple_of(size.rows);
        }
        let mut parts = (WANTED_TASKS / 2).div_ceil(common.blocks(block)).min(panels);
        if !in_place {
            // Each part copies the slab, so it has enough panels to make up for that.
            let multiply_adds_of_panel = block[0] * block[1] * taps * outer.channels * size.columns;
            let copy = common.slab(block) * MULTIPLY_ADDS_PER_COPY;
            let least_panels = (MIN_TIME_PER_COPY_TIME * copy).div_ceil(multiply_adds_of_panel);
            parts = parts.min(panels.div_ceil(least_panels));
        }
        let kernel = Panels::new(&common);
        Some(Forward { common, block, parts, in_place, kernel })
    }

    /// A pointwise convolution whose positions are one axis: a product of matrices. Rows that a block reads and
    /// writes are in the second-level cache while it goes through the panels. A kernel that stays there, too, is
    /// read for shorter blocks, whose results are lines of memory that are written one after the other.
    fn pointwise(common: Common) -> Forward {
        let outer = &common.outer;
        let panels = outer.features.div_ceil(common.size.columns);
        let near = tuning::here().near;
        let kernel_bytes = 4 * outer.channels * outer.features;
        let bytes = if kernel_bytes <= near / 4 { near / 8 } else { near };
        let rows = common.size.rows;
        let positions = common.lanes[2].axis.output;
        let mut block = (bytes / (4 * (outer.channels + outer.features))).max(4 * rows).min(positions);
        while block > 8 * rows && common.blocks([1, block]) * panels.min(4) < WANTED_TASKS {
            block = block.div_ceil(2).next_multiple_of(rows);
        }
        let parts = (WANTED_TASKS / 2).div_ceil(common.blocks([1, block])).min(panels);
        let kernel = Panels::new(&common);
        Forward { common, block: [1, block], parts, in_place: true, kernel }
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
        let panels = self.common.outer.features.div_ceil(self.common.size.columns);
        if self.kernel.packed && arrays.ahead.is_null() {
            // SAFETY: the caller's: the scratch memory has space for all panels.
            unsafe { self.prepare(arrays.rhs, arrays.scratch.cast(), pool) };
        }
        let whole = finished.filter(|_| self.parts == 1);
        let blocks = self.common.blocks(self.block);
        pool.run(blocks * self.parts, &|task| {
            // Tasks of the same panels follow each other.
            let part = task / blocks;
            let panels = part * panels / self.parts..(part + 1) * panels / self.parts;
            let task = self.common.task(task % blocks, self.block, panels);
            // SAFETY: the caller's; tasks are disjoint parts of the result.
            unsafe { self.task(&task, arrays.get(), whole) };
        });
    }

    /// Packs the kernel into panels: taps, then channels, then features.
    ///
    /// # Safety
    /// It is there, and so is space for [`Forward::scratch_bytes`].
    pub(super) unsafe fn prepare(&self, rhs: *const u8, to: *mut f32, pool: &Pool) {
        let outer = &self.common.outer;
        let rows = self.common.taps() * outer.channels;
        let parts = rows.div_ceil(PACKED_ROWS_PER_TASK);
        let (rhs, to) = (Shared::<u8>::new(rhs.cast_mut()), Shared::<f32>::new(to.cast()));
        pool.run(outer.feature_groups * parts, &|n| {
            let (group, part) = (n / parts, n % parts);
            let rows = part * PACKED_ROWS_PER_TASK..rows.min((part + 1) * PACKED_ROWS_PER_TASK);
            // SAFETY: the caller's; rows are disjoint.
            unsafe {
                let to = to.offset(self.kernel.at(group, 0) as usize).pointer();
                let feature = group * outer.features;
                let layout =
                    PanelLayout { width: self.common.size.columns, distance: self.kernel.panel as usize };
                self.common.pack(rhs.pointer().cast_const(), feature, outer.features, rows, layout, to);
            }
        });
    }

    /// Where the first tap of the first panel is.
    fn kernel_base(&self, arrays: Arrays) -> *const f32 {
        if self.kernel.packed {
            return if arrays.ahead.is_null() { arrays.scratch.cast() } else { arrays.ahead };
        }
        let offset = self.common.lanes.iter().map(|lane| lane.kernel_offset).sum();
        arrays.rhs.cast::<f32>().wrapping_offset(offset)
    }

    unsafe fn task(&self, task: &Task, arrays: Arrays, finished: Option<&(dyn Fn(isize, usize) + Sync)>) {
        let Common { lanes, outer, size, .. } = &self.common;
        let [z, y, x] = self.common.axes();
        let channels = outer.channels;
        let sight = self.common.sight(task);
        let Sight { first: [_, first_y, first_x], height, width, .. } = sight;
        let row = width * channels;
        let slab = if self.in_place { 0 } else { z.kernel * height * row };
        with_workspace(4 * (slab + 2 * ROWS_PER_STORE * MAX_COLUMNS), |workspace| {
            let sums = workspace.cast::<f32>();
            // SAFETY: the workspace has space for the slab after the sums of some tiles, twice.
            let slab = unsafe { sums.add(2 * ROWS_PER_STORE * MAX_COLUMNS) };
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
            // Distances of positions along a row, and of rows.
            let [step, line] = if self.in_place {
                [x, y].map(|axis| axis.input_stride)
            } else {
                [channels, row].map(|n| n as isize)
            };
            let run =
                if x.kernel_dilation * step == channels as isize || x.kernel == 1 { x.kernel } else { 1 };
            // Rows of sums that are put into the result together, if they are not summed there.
            let direct = arrays.narrow.is_none() && outer.result_feature_stride == 1;
            let together = match direct {
                true => task.x.len(),
                false => task.x.len().div_ceil(task.x.len().div_ceil(ROWS_PER_STORE)).next_multiple_of(WIDTH),
            };
            let mut segments: SmallVec<[Segment; 32]> = SmallVec::new();
            let panel_bytes = 4 * self.common.taps() * channels * size.columns;
            let [far, near] = if panel_bytes > MAX_L1_PANEL_BYTES {
                [PREFETCH_DISTANCE_TERMS, L1_PREFETCH_DISTANCE_TERMS]
            } else {
                [0; 2]
            }
            .map(|terms| terms * self.kernel.channel as usize);
            // Whether the next panel is fetched into the second-level cache while one is multiplied.
            let lines_of_term = size.columns / WIDTH;
            let fetches = self.kernel.packed && far > 0 && panel_bytes <= tuning::here().near;
            let tiles = task.y.len() * size.tiles(task.x.len()).count();
            let panel_lines = if fetches { (lines_of_term * LINE_TERMS).div_ceil(tiles) } else { 0 };
            for panel in task.panels.clone() {
                let at = self.kernel.at(task.group, panel);
                // SAFETY: the panel was packed, or is in the operand.
                let kernel = unsafe { self.kernel_base(arrays).offset(at) };
                let columns = size.columns.min(outer.features - panel * size.columns);
                // After the last panel comes the first one, of the next task.
                let after = if panel + 1 < task.panels.end { panel + 1 } else { task.panels.start };
                let mut next_panel =
                    self.kernel_base(arrays).wrapping_offset(self.kernel.at(task.group, after));
                let mut ahead = if fetches && panel > task.panels.start { near } else { far };
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
                    let chunks: usize = segments.iter().map(|s| s.terms.div_ceil(LINE_TERMS)).sum();
                    for begin in (0..task.x.len()).step_by(together) {
                        let count = together.min(task.x.len() - begin);
                        let to = self.common.offset(task, oy, begin)
                            + (task.group * outer.features + panel * size.columns) as isize
                                * outer.result_feature_stride;
                        // SAFETY: the tiles are in the result, and their sums in the workspace.
                        unsafe {
                            let (c, c_row) = match direct {
                                true => (arrays.out.cast::<f32>().offset(to), lanes[2].result_stride),
                                false => (sums, MAX_COLUMNS as isize),
                            };
                            for (first, rows) in size.tiles(count) {
                                // The first panel meets the rows for the first time. Of larger windows most has
                                // been read for the rows before.
                                let next_rows = if self.common.taps() > 1 || panel > task.panels.start {
                                    0
                                } else if begin + first + rows < task.x.len() {
                                    rows as isize * x.stride * step
                                } else if oy + 1 < task.y.end {
                                    y.stride * line - (begin + first) as isize * x.stride * step
                                } else {
                                    0
                                };
                                let next = Next { rows: next_rows, panel: next_panel, panel_lines };
                                next_panel = next_panel.wrapping_add(chunks * panel_lines * WIDTH);
                                let tile = Tile {
                                    size: *size,
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
                                    ahead,
                                    next,
                                };
                                tile.run();
                                ahead = near;
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

    /// Puts the sums of at most [`ROWS_PER_STORE`] rows into the result, along whichever of its sides is the
    /// nearer one.
    ///
    /// # Safety
    /// They are in the result; after the sums is space for as many.
    unsafe fn put(&self, sums: *mut f32, rows: usize, columns: usize, to: isize, arrays: Arrays) {
        let bytes = self.common.result_bytes as isize;
        let (row, column) = (self.common.lanes[2].result_stride, self.common.outer.result_feature_stride);
        // SAFETY: the caller's.
        unsafe {
            let address =
                |r: usize, c: usize| arrays.out.offset((to + r as isize * row + c as isize * column) * bytes);
            let transpose = |to: *mut u8, pitch: usize| {
                let parts: [*const u8; ROWS_PER_STORE] =
                    std::array::from_fn(|r| sums.wrapping_add(r * MAX_COLUMNS).cast_const().cast());
                transpose::columns(&parts[..rows], columns, to, pitch);
            };
            let Some(narrow) = arrays.narrow else {
                if row == 1 {
                    return transpose(address(0, 0), (4 * column) as usize);
                }
                for c in 0..columns {
                    for r in 0..rows {
                        *address(r, c).cast::<f32>() = *sums.add(r * MAX_COLUMNS + c);
                    }
                }
                return;
            };
            if column == 1 {
                for r in 0..rows {
                    narrow(sums.add(r * MAX_COLUMNS), columns, address(r, 0), 1);
                }
                return;
            }
            let transposed = sums.add(ROWS_PER_STORE * MAX_COLUMNS);
            transpose(transposed.cast(), 4 * ROWS_PER_STORE);
            for c in 0..columns {
                let transposed = transposed.add(c * ROWS_PER_STORE);
                narrow(transposed, rows, address(0, c), row);
            }
        }
    }
}
