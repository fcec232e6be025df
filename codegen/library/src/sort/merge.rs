//! Merge sort by any comparator: runs of 1, 2, 4, ... elements from the left, and the right run's head goes
//! first exactly if the comparator says that it comes before the left one's. That defines the result even
//! where a comparator is no order.

use hlo_library_base::memory::Shared;
use hlo_library_base::portable::Function;

use crate::width::with_width;

/// Sorts indices by a comparator on indices. `spare` is as long.
pub(super) fn by(indices: &mut [u32], spare: &mut [u32], less: impl Fn(u32, u32) -> bool) {
    let n = indices.len();
    let mut width = 1;
    while width < n {
        for start in (0..n).step_by(2 * width) {
            let (middle, end) = ((start + width).min(n), (start + 2 * width).min(n));
            let (mut left, mut right, mut out) = (start, middle, start);
            while left < middle && right < end {
                let right_first = less(indices[right], indices[left]);
                let from = if right_first { &mut right } else { &mut left };
                spare[out] = indices[*from];
                *from += 1;
                out += 1;
            }
            let rest = if left < middle { left..middle } else { right..end };
            spare[out..end].copy_from_slice(&indices[rest]);
        }
        indices.copy_from_slice(spare);
        width *= 2;
    }
}

/// Comparisons that are made at a time.
pub(super) const LANES: usize = 256;

/// A merge under way. Positions are those in the indices of all lines.
#[derive(Clone, Copy, Default)]
struct Merge {
    left: usize,
    left_end: usize,
    right: usize,
    right_end: usize,
    out: usize,
}

/// An operand of which the comparator looks at an element.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    /// The array.
    pub(super) array: Shared<u8>,
    /// Bytes of an element.
    pub(super) bytes: usize,
    /// Whether the comparator uses its parameter for the first and for the second row.
    pub(super) used: [bool; 2],
}

/// A comparator as a kernel.
pub(super) struct Comparator<'a> {
    /// The kernel: a predicate from two elements of each column.
    pub(super) kernel: &'a Function,
    /// The operands.
    pub(super) columns: &'a [Column],
    /// Memory for arguments: for each column two pointers, then one.
    pub(super) arguments: &'a mut [*mut u8],
    /// Memory for the lanes of each argument, 16 bytes a lane and argument.
    pub(super) lanes: *mut u8,
}

impl Comparator<'_> {
    /// Sorts the indices of several lines of `len` elements, one after the other; `element` returns the
    /// offset of an element in the arrays, from the number of the line and the index in it.
    ///
    /// # Safety
    /// The kernel's arguments are the columns and a byte of result; `element` returns offsets in the columns'
    /// arrays; the lanes are of the size said.
    pub(super) unsafe fn sort(
        &mut self,
        indices: &mut [u32],
        spare: &mut [u32],
        len: usize,
        element: &dyn Fn(usize, u32) -> usize,
    ) {
        for (i, argument) in self.arguments.iter_mut().enumerate() {
            // SAFETY: the lanes are as many as the arguments.
            *argument = unsafe { self.lanes.add(i * LANES * 16) };
        }
        let lines = indices.len() / len.max(1);
        let mut width = 1;
        while width < len {
            let merges_a_line = len.div_ceil(2 * width);
            let merge = |number: usize| {
                let (start, end) = (number / merges_a_line * len, (number / merges_a_line + 1) * len);
                let left = start + number % merges_a_line * 2 * width;
                let middle = (left + width).min(end);
                Merge {
                    left,
                    left_end: middle,
                    right: middle,
                    right_end: (left + 2 * width).min(end),
                    out: left,
                }
            };
            let (mut next, mut active) = (0, 0);
            let mut under_way = [Merge::default(); LANES];
            loop {
                // Merges with nothing more to compare copy the remainder, and others take their lanes.
                let mut kept = 0;
                for i in 0..active {
                    let m = under_way[i];
                    if m.left < m.left_end && m.right < m.right_end {
                        under_way[kept] = m;
                        kept += 1;
                    } else {
                        let rest =
                            if m.left < m.left_end { m.left..m.left_end } else { m.right..m.right_end };
                        spare[m.out..m.out + rest.len()].copy_from_slice(&indices[rest]);
                    }
                }
                active = kept;
                while active < LANES && next < lines * merges_a_line {
                    under_way[active] = merge(next);
                    next += 1;
                    let m = under_way[active];
                    if m.right < m.right_end {
                        active += 1;
                    } else {
                        spare[m.left..m.left_end].copy_from_slice(&indices[m.left..m.left_end]);
                    }
                }
                if active == 0 {
                    break;
                }
                // SAFETY: as the caller says.
                unsafe { self.step(&mut under_way[..active], indices, spare, len, element) };
            }
            indices.copy_from_slice(spare);
            width *= 2;
        }
    }

    /// One comparison of each merge, and the move that follows.
    ///
    /// # Safety
    /// As [`Comparator::sort`].
    unsafe fn step(
        &mut self,
        merges: &mut [Merge],
        indices: &[u32],
        spare: &mut [u32],
        len: usize,
        element: &dyn Fn(usize, u32) -> usize,
    ) {
        let mut at = [[0usize; LANES]; 2];
        for (lane, m) in merges.iter().enumerate() {
            at[0][lane] = element(m.right / len, indices[m.right]);
            at[1][lane] = element(m.left / len, indices[m.left]);
        }
        for (k, column) in self.columns.iter().enumerate() {
            for (row, at) in at.iter().enumerate() {
                if !column.used[row] {
                    continue;
                }
                with_width!(column.bytes, T => {
                    let lanes = self.arguments[2 * k + row].cast::<T>();
                    let array = column.array.pointer().cast::<T>();
                    for (lane, &at) in at[..merges.len()].iter().enumerate() {
                        // SAFETY: a lane has 16 bytes, and the index is in the array.
                        unsafe { *lanes.add(lane) = *array.add(at) };
                    }
                });
            }
        }
        // SAFETY: the kernel's arguments are these, of at least `merges.len()` elements each.
        unsafe { self.kernel.call(self.arguments.as_ptr(), 0, merges.len() as u64) };
        let said = self.arguments[2 * self.columns.len()];
        for (lane, m) in merges.iter_mut().enumerate() {
            // SAFETY: the kernel wrote a byte a lane.
            let right_first = unsafe { *said.add(lane) } != 0;
            let from = if right_first { &mut m.right } else { &mut m.left };
            spare[m.out] = indices[*from];
            *from += 1;
            m.out += 1;
        }
    }
}
