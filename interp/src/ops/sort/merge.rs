//! A merge sort by any comparator, over lanes: all merges of one size advance together, one comparison each,
//! so that the comparator is evaluated on many pairs at a time.

use hlo::with_buffer;
use hlo_threads::parallel;

use super::Lines;
use crate::error::Result;
use crate::ops::Cx;
use crate::region::{LANES, Region};
use crate::value::Tensor;

/// Elements that one task sorts, if a line is not longer.
const TASK: usize = 1 << 14;

/// For each line the indices of its elements in sorted order.
pub(super) fn sort(cx: &Cx<'_>, region: &Region, operands: &[Tensor], lines: Lines) -> Result<Vec<u32>> {
    let mut order: Vec<u32> = (0..lines.count).flat_map(|_| 0..lines.len as u32).collect();
    let lines_a_task = (TASK / lines.len).max(1);
    parallel::try_pieces(&mut order, lines_a_task * lines.len, 1, &|task, order| {
        Sorter { cx, region, operands, lines, first: task * lines_a_task }.sort(order)
    })?;
    Ok(order)
}

/// A merge under way. Positions are those in the order of all lines of the task.
struct Merge {
    left: usize,
    left_end: usize,
    right: usize,
    right_end: usize,
    out: usize,
}

struct Sorter<'a> {
    cx: &'a Cx<'a>,
    region: &'a Region,
    operands: &'a [Tensor],
    lines: Lines,
    /// The first line of the task.
    first: usize,
}

impl Sorter<'_> {
    fn sort(&self, order: &mut [u32]) -> Result<()> {
        let len = self.lines.len;
        let mut lanes = self.region.lanes(order.len());
        let mut sorted = order.to_vec();
        let mut width = 1;
        while width < len {
            let mut merges: Vec<Merge> = (0..order.len() / len)
                .flat_map(|line| (line * len..(line + 1) * len).step_by(2 * width).map(move |at| (line, at)))
                .map(|(line, at)| {
                    let end = (line + 1) * len;
                    let middle = (at + width).min(end);
                    Merge {
                        left: at,
                        left_end: middle,
                        right: middle,
                        right_end: (at + 2 * width).min(end),
                        out: at,
                    }
                })
                .collect();
            while !merges.is_empty() {
                // A merge with nothing more to compare takes what is left.
                merges.retain_mut(|m| {
                    if m.left < m.left_end && m.right < m.right_end {
                        return true;
                    }
                    let rest = if m.left < m.left_end { m.left..m.left_end } else { m.right..m.right_end };
                    sorted[m.out..m.out + rest.len()].copy_from_slice(&order[rest]);
                    false
                });
                for block in merges.chunks_mut(LANES) {
                    self.step(block, order, &mut sorted, &mut lanes)?;
                }
            }
            order.copy_from_slice(&sorted);
            width *= 2;
        }
        Ok(())
    }

    /// One comparison of each merge, and the move that follows.
    fn step(
        &self,
        merges: &mut [Merge],
        order: &[u32],
        sorted: &mut [u32],
        lanes: &mut crate::region::Lanes,
    ) -> Result<()> {
        let offset = |at: usize| {
            let line = self.first + at / self.lines.len;
            self.lines.start(line) + order[at] as usize * self.lines.stride
        };
        for (k, operand) in self.operands.iter().enumerate() {
            with_buffer!(operand.buffer(), x => {
                for (lane, m) in lanes.input(2 * k).iter_mut().zip(merges.iter()) {
                    *lane = x[offset(m.right)];
                }
                for (lane, m) in lanes.input(2 * k + 1).iter_mut().zip(merges.iter()) {
                    *lane = x[offset(m.left)];
                }
            });
        }
        self.region.eval(self.cx, lanes, merges.len())?;
        for (m, &right_first) in merges.iter_mut().zip(lanes.output::<bool>(0)) {
            let from = if right_first { &mut m.right } else { &mut m.left };
            sorted[m.out] = order[*from];
            *from += 1;
            m.out += 1;
        }
        Ok(())
    }
}
