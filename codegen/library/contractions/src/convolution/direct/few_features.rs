//! Convolutions of few features: vectors are of positions, which a slab has side by side, a line for each
//! channel of each row (and, where output positions are several positions apart, for each remainder of
//! these).

use hlo_library_base::pool::Pool;
use hlo_library_base::transpose::{self, Terms};
use hlo_library_base::workspace::with_workspace;
use smallvec::SmallVec;

use super::super::read::reads;
use super::super::{Arrays, Lane, Outer, Types};
use super::tile::{Next, Segment, Tile};
use super::{Common, PanelLayout, SLAB_ELEMENTS, Sight, origin};

/// The largest number of features.
const MAX_FEATURES: usize = 7;

/// The most positions of a register tile.
const MAX_TILE_POSITIONS: usize = 64;

/// Positions that are copied at a time.
const COPIED_POSITIONS: usize = 64;

/// A convolution of few features.
#[derive(Clone, Debug)]
pub(in crate::convolution) struct FewFeatures {
    common: Common,
    /// Placements of a task along the two fastest axes.
    block: [usize; 2],
}

impl FewFeatures {
    /// If it is one.
    pub(in crate::convolution) fn new(lanes: &[Lane], outer: &Outer, types: Types) -> Option<FewFeatures> {
        let common = Common::new(lanes, outer, types)?;
        let [z, y, x] = common.axes();
        let (taps, outputs) = (common.taps(), z.output * y.output * x.output);
        let fits = (1..=MAX_FEATURES).contains(&outer.features)
            && taps > 0
            && taps * outer.channels >= 8
            && x.output >= 8
            && taps <= 4 * outputs
            && x.stride <= 16
            && common.size.columns_of_few_rows(outer.features).is_some();
        if !fits {
            return None;
        }
        let mut block = [y.output, x.output];
        while block[1] > 2 * MAX_TILE_POSITIONS && common.slab([1, block[1]]) > SLAB_ELEMENTS {
            block[1] = block[1].div_ceil(2).next_multiple_of(MAX_TILE_POSITIONS);
        }
        if common.slab([1, block[1]]) > 4 * SLAB_ELEMENTS {
            return None;
        }
        let block = common.divided(block, 1);
        Some(FewFeatures { common, block })
    }

    /// Elements of the packed kernel of a group.
    fn packed(&self) -> usize {
        self.common.taps() * self.common.outer.channels * self.common.outer.features
    }

    pub(in crate::convolution) fn scratch_bytes(&self) -> usize {
        4 * self.common.outer.feature_groups * self.packed()
    }

    /// Computes it. `finished` gets where rows of features begin and how many.
    ///
    /// # Safety
    /// The arrays are those of the convolution.
    pub(in crate::convolution) unsafe fn run(
        &self,
        arrays: Arrays,
        pool: &Pool,
        finished: Option<&(dyn Fn(isize, usize) + Sync)>,
    ) {
        let outer = &self.common.outer;
        for group in 0..outer.feature_groups {
            // SAFETY: the caller's: the scratch memory has space for the kernels of all groups.
            unsafe {
                let to = arrays.scratch.cast::<f32>().add(group * self.packed());
                let rows = 0..self.common.taps() * outer.channels;
                let layout = PanelLayout { width: outer.features, distance: 0 };
                self.common.pack(arrays.rhs, group * outer.features, outer.features, rows, layout, to);
            }
        }
        pool.run(self.common.blocks(self.block), &|task| {
            let task = self.common.task(task, self.block, 0..1);
            // SAFETY: the caller's; tasks are disjoint parts of the result.
            unsafe { self.task(&task, arrays.get()) };
            if let Some(finished) = finished {
                self.common.report(&task, finished);
            }
        });
    }

    unsafe fn task(&self, task: &super::Task, arrays: Arrays) {
        let Common { lanes, outer, size, .. } = &self.common;
        let [z, y, x] = self.common.axes();
        let (channels, features, stride) = (outer.channels, outer.features, x.stride as usize);
        let sight = self.common.sight(task);
        let Sight { first: [_, first_y, first_x], height, width, .. } = sight;
        // Positions of a line; a line for each remainder of the stride, for each channel.
        let line = width.div_ceil(stride);
        let row = channels * stride * line;
        let slab = z.kernel * height * row;
        let most = size.columns_of_few_rows(features).unwrap_or(size.columns);
        with_workspace(4 * (slab + 2 * MAX_FEATURES * COPIED_POSITIONS), |workspace| {
            let sums = workspace.cast::<f32>();
            // SAFETY: the workspace has space for sums (twice) and the slab.
            let slab = unsafe { sums.add(2 * MAX_FEATURES * COPIED_POSITIONS) };
            self.common.each_row(&sight, |number, at| {
                // SAFETY: the row is in the input, its copy in the slab.
                unsafe { self.copy_row(arrays.lhs, at, first_x, width, slab.add(number * row)) };
            });
            // SAFETY: the kernel was packed.
            let packed = unsafe { arrays.scratch.cast::<f32>().add(task.group * self.packed()).cast_const() };
            let mut segments: SmallVec<[Segment; 32]> = SmallVec::new();
            for oy in task.y.clone() {
                segments.clear();
                for z_tap in 0..z.kernel {
                    for y_tap in 0..y.kernel {
                        let at = origin(&y, oy) + y_tap as isize * y.kernel_dilation;
                        if self.common.row(&sight, z_tap, at).is_none() {
                            continue;
                        }
                        let h = (at - first_y) as usize;
                        for x_tap in 0..x.kernel {
                            let position = x_tap * x.kernel_dilation as usize;
                            let tap = (z_tap * y.kernel + y_tap) * x.kernel + x_tap;
                            // SAFETY: taps are in the kernel and in the slab.
                            let (a, b) = unsafe {
                                let b = slab.add((z_tap * height + h) * row + position % stride * line);
                                (packed.add(tap * channels * features), b.add(position / stride))
                            };
                            segments.push(Segment { a, b: b.cast_const(), terms: channels });
                        }
                    }
                }
                for first in (0..task.x.len()).step_by(most) {
                    let columns = most.min(task.x.len() - first);
                    let to = self.common.offset(task, oy, first)
                        + (task.group * features) as isize * outer.result_feature_stride;
                    let direct = arrays.narrow.is_none() && lanes[2].result_stride == 1;
                    // SAFETY: the tile is in the result.
                    unsafe {
                        let tile = Tile {
                            size: *size,
                            segments: &segments,
                            at: [0, first as isize],
                            a_row: 1,
                            a_term: features as isize,
                            b_term: (stride * line) as isize,
                            c: if direct { arrays.out.cast::<f32>().offset(to) } else { sums },
                            c_row: if direct {
                                outer.result_feature_stride
                            } else {
                                COPIED_POSITIONS as isize
                            },
                            rows: features,
                            columns,
                            add: false,
                            ahead: 0,
                            next: Next::NONE,
                        };
                        tile.run();
                        if !direct {
                            self.put(sums, columns, to, arrays);
                        }
                    }
                }
            }
        });
    }

    /// Copies a row of input with padding, with contiguous positions.
    unsafe fn copy_row(&self, lhs: *const u8, row: isize, first: isize, width: usize, to: *mut f32) {
        let Common { lanes, outer, lhs: ty, .. } = &self.common;
        let (Some(read), Some(terms)) = (reads(*ty), Terms::of(*ty)) else { return };
        let (axis, channels) = (&lanes[2].axis, outer.channels);
        let (stride, n) = (axis.stride, axis.input as isize);
        let line = width.div_ceil(stride as usize);
        for remainder in 0..(stride as usize).min(width) {
            let first = first + remainder as isize;
            let count = (width - remainder).div_ceil(stride as usize);
            let upto = |position: isize| (position - first + stride - 1).div_euclid(stride).max(0) as usize;
            let begin = upto(0).min(count);
            let end = upto(n).clamp(begin, count);
            let at = |i: usize| row + (first + i as isize * stride) * axis.input_stride;
            // SAFETY: positions `begin..end` are in the input; the copy has space for all.
            unsafe {
                let of_channel = |channel: usize| to.add((channel * stride as usize + remainder) * line);
                for channel in 0..channels {
                    let to = of_channel(channel);
                    std::slice::from_raw_parts_mut(to, begin).fill(0.0);
                    std::slice::from_raw_parts_mut(to.add(end), count - end).fill(0.0);
                }
                if outer.channel_stride != 1 || channels == 1 {
                    for channel in 0..channels {
                        let at = at(begin) + channel as isize * outer.channel_stride;
                        let step = stride * axis.input_stride;
                        read(lhs, at, step, end - begin, of_channel(channel).add(begin));
                    }
                    continue;
                }
                for i in (begin..end).step_by(COPIED_POSITIONS) {
                    let n = COPIED_POSITIONS.min(end - i);
                    let mut rows = [0isize; COPIED_POSITIONS];
                    rows[..n].iter_mut().enumerate().for_each(|(k, row)| *row = at(i + k));
                    let out = of_channel(0).add(i).cast::<i32>();
                    let pitch = stride as usize * line;
                    transpose::pack(lhs, &rows[..n], ty.storage_bytes(), channels, terms, out, pitch);
                }
            }
        }
    }

    /// Puts the sums of a tile into the result.
    ///
    /// # Safety
    /// They are in the result; after the sums is space for as many.
    unsafe fn put(&self, sums: *mut f32, columns: usize, to: isize, arrays: Arrays) {
        let (features, bytes) = (self.common.outer.features, self.common.result_bytes as isize);
        let (position, feature) =
            (self.common.lanes[2].result_stride, self.common.outer.result_feature_stride);
        // SAFETY: the caller's.
        unsafe {
            let address = |c: usize, f: usize| {
                arrays.out.offset((to + c as isize * position + f as isize * feature) * bytes)
            };
            let Some(narrow) = arrays.narrow else {
                for c in 0..columns {
                    for f in 0..features {
                        *address(c, f).cast::<f32>() = *sums.add(f * COPIED_POSITIONS + c);
                    }
                }
                return;
            };
            if feature != 1 {
                for f in 0..features {
                    narrow(sums.add(f * COPIED_POSITIONS), columns, address(0, f), position);
                }
                return;
            }
            let transposed = sums.add(MAX_FEATURES * COPIED_POSITIONS);
            for c in 0..columns {
                for f in 0..features {
                    *transposed.add(c * features + f) = *sums.add(f * COPIED_POSITIONS + c);
                }
            }
            if position == features as isize {
                narrow(transposed, columns * features, address(0, 0), 1);
            } else {
                (0..columns).for_each(|c| narrow(transposed.add(c * features), features, address(c, 0), 1));
            }
        }
    }
}
