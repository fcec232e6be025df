//! `sort`: any number of operands, along any dimension, by any comparator; exactly the permutation that
//! SEMANTICS.md defines.
//!
//! A comparator that orders by keys, one after the other, is recognized: keys become unsigned integers, which
//! are radix sorted together with indices in the line; a single operand that its keys determine is sorted
//! without indices (`bare`), by a vectorized quicksort where the machine has the instructions (`quick`).
//! Where NaNs do not compare and there is one, and for every other comparator, lines are merge sorted
//! literally.
//!
//! Where only the first or last few elements of a line by one key are read ([`wanted`]), these are selected,
//! and the others' memory is undefined.

mod bare;
mod counts;
mod keys;
mod line;
mod merge;
#[cfg(target_arch = "x86_64")]
mod quick;
#[cfg(not(target_arch = "x86_64"))]
#[path = "quick/unavailable.rs"]
mod quick;
mod radix;
#[cfg(test)]
mod tests;
mod wanted;

use hlo::{AttrKey, ComputationId, ElementType, InstrId, Module};
use hlo_library_base::memory::{Layout, Shared};
use hlo_library_base::workspace::with_workspace;
use hlo_library_base::{Call, Operation, Sent, Unsupported};

use self::counts::{Count, counts};
use self::line::Line;
use self::merge::{Column, Comparator, LANES};
use self::radix::{each_piece, parallel};
use self::wanted::Wanted;
use super::region::Scalars;
use super::selection;
use super::width::with_width;

pub(super) use self::counts::known;
pub(super) use self::keys::Key;
pub use self::keys::{FloatOrder, Part, SortKey};

/// Neighbouring lines whose elements are interleaved in memory and are handled together.
const GROUP_LINES: usize = 16;

/// Elements of short lines that a general comparator compares together.
const GROUP_ELEMENTS: usize = 1 << 12;

/// The maximum of tasks, if their scratch memory allows.
const TASKS: usize = 64;

/// Scratch memory above which there are fewer tasks.
const MAX_SCRATCH_BYTES: u64 = 1 << 28;

/// An operand and its result.
#[derive(Clone, Copy, Debug)]
struct Operand {
    /// Bytes of an element.
    bytes: usize,
    /// It counts along the sorted dimension.
    counts: bool,
}

/// The keys that a comparator of rows of these types orders by, the first one first; `None`: it is not known
/// to be such an order. With [`FloatOrder::Partial`] it is a strict weak order only of rows whose key is no
/// NaN.
pub fn sort_keys(module: &Module, comparator: ComputationId, types: &[ElementType]) -> Option<Vec<SortKey>> {
    let keys = Scalars::of(module, comparator).and_then(|s| keys::of_comparator(&s, types))?;
    Some(keys.iter().map(Key::described).collect())
}

/// Whether a comparator of rows of these types is a strict weak order whatever they hold: any stable sort
/// then gives the same rows.
pub fn is_order(module: &Module, comparator: ComputationId, types: &[ElementType]) -> bool {
    let keys = Scalars::of(module, comparator).and_then(|s| keys::of_comparator(&s, types));
    keys.is_some_and(|keys| {
        keys.iter().all(|k| k.orders_nans() || !types[k.operand].is_float() && !types[k.operand].is_complex())
    })
}

/// How lines are ordered.
#[derive(Clone, Debug)]
enum By {
    /// By keys, the first one first.
    Keys(Vec<Key>),
    /// By a kernel.
    Comparator {
        computation: ComputationId,
        /// For each operand, whether the parameters for the first and second row are used.
        used: Vec<[bool; 2]>,
    },
}

/// An array seen as lines along the sorted dimension.
#[derive(Clone, Copy, Debug)]
struct Lines {
    /// Elements of a line.
    len: usize,
    /// Distance of successive elements.
    stride: usize,
    /// The number of lines.
    count: usize,
}

impl Lines {
    /// The offset of a line.
    fn start(&self, line: usize) -> usize {
        line / self.stride * self.stride * self.len + line % self.stride
    }
}

/// The only key, if it determines the only operand's elements and whole contiguous lines are wanted: such
/// lines are sorted without indices.
fn alone<'a>(operands: &[Operand], lines: Lines, keys: &'a [Key], wanted: Wanted) -> Option<&'a Key> {
    match (operands, keys) {
        ([_], [key]) if lines.stride == 1 && wanted == Wanted::All => Some(key).filter(|k| k.is_decoded()),
        (_, _) => None,
    }
}

/// The operation.
#[derive(Clone, Debug)]
pub struct Sort {
    operands: Vec<Operand>,
    lines: Lines,
    by: By,
    wanted: Wanted,
    /// Lines of a group: those that are handled together.
    group: usize,
    tasks: usize,
    scratch: ScratchLayout,
    /// Scratch memory of a task.
    task_bytes: u64,
}

/// Offsets in the scratch memory of a task.
#[derive(Clone, Copy, Debug, Default)]
struct ScratchLayout {
    /// The order of each line of a group: u32.
    order: u64,
    /// A second buffer of the same size.
    spare: u64,
    /// Items, twice.
    items: [u64; 2],
    counts: u64,
    /// Keys that do not all compare, u64, one array after the other.
    keys: u64,
    /// Lanes of a comparator, and pointers to them.
    lanes: u64,
    arguments: u64,
}

impl Sort {
    /// For a `sort` instruction.
    pub(super) fn of(module: &Module, id: InstrId) -> Result<Sort, Unsupported> {
        let unsupported = |why: &str| Unsupported::new(module, id, why);
        let instr = module.instr(id);
        let shapes: Option<Vec<_>> =
            instr.operands().iter().map(|&o| module.instr(o).shape.as_array()).collect();
        let shapes = shapes.ok_or_else(|| unsupported("of something that is no array"))?;
        let first = *shapes.first().ok_or_else(|| unsupported("without operands"))?;
        if shapes.iter().any(|s| s.dims != first.dims) || first.is_dynamic() {
            return Err(unsupported("of arrays of several or dynamic sizes"));
        }
        let dimension = instr.attrs.ints_or_empty(AttrKey::Dimensions).first().copied().unwrap_or(0);
        let dimension = usize::try_from(dimension).unwrap_or(usize::MAX);
        let size = |d: &i64| usize::try_from(*d).unwrap_or(0);
        let len = first.dims.get(dimension).map_or(1, size);
        let stride = first.dims.iter().skip(dimension.saturating_add(1)).map(size).product::<usize>().max(1);
        let lines = Lines { len, stride, count: first.elements().checked_div(len).unwrap_or(0) };
        if u32::try_from(len).is_err() {
            return Err(unsupported("of lines of 2^32 elements or more"));
        }
        let computation =
            instr.attrs.computation(AttrKey::ToApply).ok_or_else(|| unsupported("without a comparator"))?;
        let types: Vec<ElementType> = shapes.iter().map(|s| s.element_type).collect();
        let keys = Scalars::of(module, computation).and_then(|s| keys::of_comparator(&s, &types));
        let by = match keys {
            Some(keys) => By::Keys(keys),
            None => {
                let parameters = module.computation(computation).parameters();
                let used = |i: usize| {
                    parameters
                        .get(i)
                        .copied()
                        .flatten()
                        .is_some_and(|p| !module.users(p).is_empty() || module.root(computation) == p)
                };
                By::Comparator {
                    computation,
                    used: (0..types.len()).map(|k| [used(2 * k), used(2 * k + 1)]).collect(),
                }
            }
        };
        let operand = |(&o, ty): (&InstrId, &ElementType)| Operand {
            bytes: ty.storage_bytes(),
            counts: counts(module, o, dimension),
        };
        let operands = instr.operands().iter().zip(&types).map(operand).collect();
        let wanted = match &by {
            By::Keys(keys) if keys.len() == 1 => Wanted::of(module, id, dimension, len),
            By::Keys(_) | By::Comparator { .. } => Wanted::All,
        };
        Ok(Sort::new(operands, lines, by, wanted))
    }

    fn new(operands: Vec<Operand>, lines: Lines, by: By, wanted: Wanted) -> Sort {
        let group = match &by {
            By::Keys(_) if lines.stride == 1 => 1,
            By::Keys(_) => GROUP_LINES.min(lines.stride),
            By::Comparator { .. } => GROUP_ELEMENTS.checked_div(lines.len).unwrap_or(1).max(1),
        };
        debug_assert!(group > 0, "invariant: strides are not 0");
        let mut layout = Layout::default();
        let (len, all) = (lines.len as u64, (lines.len * group) as u64);
        let mut at = ScratchLayout::default();
        match &by {
            // Sorted where the result is, whatever the elements.
            By::Keys(keys) if alone(&operands, lines, keys, wanted).is_some_and(|key| !key.is_partial()) => {
                if lines.len < parallel() {
                    at.items = [layout.add(len, operands[0].bytes as u64); 2];
                    at.counts = layout.add(radix::COUNTERS as u64, 4);
                }
            }
            By::Keys(keys) => {
                at.order = layout.add(all, 4);
                let bits: u32 = keys.iter().map(Key::bits).sum();
                let size = if bits <= 32 { 8 } else { 16 };
                if wanted == Wanted::All {
                    at.items = [layout.add(len, size), layout.add(len, size)];
                    if lines.len < parallel() {
                        at.counts = layout.add(radix::COUNTERS as u64, 4);
                    }
                } else if lines.len < parallel() {
                    let capacity = selection::capacity(wanted.range(lines.len).len(), lines.len);
                    at.items = [layout.add(capacity as u64, size); 2];
                }
                if keys.iter().any(Key::is_partial) {
                    at.spare = layout.add(len, 4);
                    at.keys = layout.add(len, 8 * keys.len() as u64);
                }
            }
            By::Comparator { used, .. } => {
                at.order = layout.add(all, 4);
                at.spare = layout.add(all, 4);
                let arguments = 2 * used.len() as u64 + 1;
                at.lanes = layout.add(arguments, 16 * LANES as u64);
                at.arguments = layout.add(arguments, 8);
            }
        }
        let groups = lines.count.div_ceil(group);
        let mut tasks = if lines.len >= parallel() { 1 } else { groups.min(TASKS) };
        while tasks > 8 && layout.bytes().saturating_mul(tasks as u64) > MAX_SCRATCH_BYTES {
            tasks /= 2;
        }
        Sort {
            operands,
            lines,
            by,
            wanted,
            group,
            tasks: tasks.max(1),
            scratch: at,
            task_bytes: layout.bytes(),
        }
    }

    /// Sorts the lines `first..first + count`, which are neighbours.
    ///
    /// # Safety
    /// As [`Operation::run`]; the scratch memory is this call's alone.
    unsafe fn group(&self, call: &Call<'_>, scratch: *mut u8, first: usize, count: usize) {
        let Lines { len, stride, .. } = self.lines;
        // SAFETY: the layout has these parts.
        let memory_at = |offset: u64| unsafe { scratch.add(offset as usize) };
        let order = Shared::<u32>::new(memory_at(self.scratch.order));
        match &self.by {
            By::Keys(keys) => {
                for i in 0..count {
                    let line = Line { start: self.lines.start(first + i), stride, len };
                    // SAFETY: as the caller says.
                    unsafe {
                        let order = order.offset(i * len);
                        let alone = alone(&self.operands, self.lines, keys, self.wanted);
                        if alone.is_some_and(|key| self.bare(call, key, scratch, line)) {
                            return;
                        }
                        self.order(call, keys, scratch, line, order);
                    }
                }
            }
            By::Comparator { used, .. } => {
                let columns: smallvec::SmallVec<[Column; 4]> = self
                    .operands
                    .iter()
                    .zip(used)
                    .enumerate()
                    .map(|(k, (o, &used))| Column {
                        array: Shared::new(call.arguments[k]),
                        bytes: o.bytes,
                        used,
                    })
                    .collect();
                // SAFETY: the layout has these parts, which nothing else accesses.
                let (order, spare, arguments) = unsafe {
                    (
                        order.slice_mut(0, len * count),
                        Shared::<u32>::new(memory_at(self.scratch.spare)).slice_mut(0, len * count),
                        Shared::<*mut u8>::pointers(memory_at(self.scratch.arguments), 2 * columns.len() + 1),
                    )
                };
                for line in order.chunks_exact_mut(len) {
                    line.iter_mut().zip(0..).for_each(|(o, i)| *o = i);
                }
                let lines = self.lines;
                let element = |line: usize, index: u32| lines.start(first + line) + index as usize * stride;
                let Some(kernel) = call.regions.first() else { return };
                let lanes = memory_at(self.scratch.lanes);
                let mut comparator = Comparator { kernel, columns: &columns, arguments, lanes };
                // SAFETY: the kernel was compiled for the comparator, elements are within the lines.
                unsafe { comparator.sort(order, spare, len, &element) };
            }
        }
        // SAFETY: the order was computed above.
        unsafe { self.permute(call, order, first, count) };
    }

    /// Moves the elements of lines into their order.
    ///
    /// # Safety
    /// `order` has indices of each line for all of its elements that are wanted.
    unsafe fn permute(&self, call: &Call<'_>, order: Shared<u32>, first: usize, count: usize) {
        let Lines { len, stride, .. } = self.lines;
        let n = self.operands.len();
        for (k, operand) in self.operands.iter().enumerate() {
            with_width!(operand.bytes, T => {
                let (from, to) = (Shared::<T>::new(call.arguments[k]), Shared::<T>::new(call.arguments[n + k]));
                let interleaved = stride > 1 && self.lines.start(first + count - 1) == self.lines.start(first) + count - 1;
                let lines = if interleaved { 1 } else { count };
                for line in 0..lines {
                    let start = self.lines.start(first + line);
                    let wanted = self.wanted.range(len);
                    each_piece(call.pool, wanted.len(), &|_, range| {
                        for i in range.start + wanted.start..range.end + wanted.start {
                            let columns = if interleaved { 0..count } else { line..line + 1 };
                            for column in columns {
                                let to_offset = start + i * stride + column - line;
                                // SAFETY: orders hold indices in lines, lines are within the arrays, and each
                                // element is written once.
                                unsafe {
                                    let index = *order.pointer().add(column * len + i) as usize;
                                    let from_offset = start + index * stride + column - line;
                                    *to.pointer().add(to_offset) =
                                        if operand.counts { <T as Count>::count(index) } else { *from.pointer().add(from_offset) };
                                }
                            }
                        }
                    });
                }
            });
        }
    }
}

impl Operation for Sort {
    fn strategy(&self) -> &'static str {
        match (&self.by, self.wanted) {
            (By::Keys(keys), Wanted::All)
                if alone(&self.operands, self.lines, keys, self.wanted).is_some_and(bare::is_by_vectors) =>
            {
                "vectorized quicksort"
            }
            (By::Keys(_), Wanted::All) => "radix sort",
            (By::Keys(_), Wanted::First(_) | Wanted::Last(_)) => "selection by keys",
            (By::Comparator { .. }, Wanted::All | Wanted::First(_) | Wanted::Last(_)) => {
                "merge sort by the comparator's kernel"
            }
        }
    }

    fn is_whole(&self) -> bool {
        self.wanted == Wanted::All
    }

    fn scratch_bytes(&self) -> u64 {
        // Several tasks have the workspaces of their threads.
        if self.lines.len < 2 || self.tasks > 1 { 0 } else { self.task_bytes }
    }

    fn regions(&self) -> Vec<ComputationId> {
        match &self.by {
            By::Keys(_) => Vec::new(),
            By::Comparator { computation, .. } => vec![*computation],
        }
    }

    fn cost(&self) -> (u64, u64) {
        let n = (self.lines.len * self.lines.count) as u64;
        let bytes: usize = self.operands.iter().map(|o| 2 * o.bytes).sum();
        (n * bytes as u64, n * u64::from(self.lines.len.max(2).ilog2()))
    }

    unsafe fn run(&self, call: Call<'_>) {
        let (lines, n) = (self.lines, self.operands.len());
        if lines.len < 2 {
            for (k, operand) in self.operands.iter().enumerate() {
                let bytes = operand.bytes * lines.len * lines.count;
                // SAFETY: operand and result are arrays of the same size, perhaps the same array.
                unsafe { std::ptr::copy(call.arguments[k], call.arguments[n + k], bytes) };
            }
            return;
        }
        // Groups do not cross from one outer index to the next.
        let inner = if self.group == 1 || matches!(self.by, By::Comparator { .. }) {
            lines.count
        } else {
            lines.stride
        };
        let groups_inner = inner.div_ceil(self.group);
        let groups = groups_inner * (lines.count / inner.max(1));
        let (scratch, pool) = (Shared::<u8>::new(call.scratch), call.pool);
        let call = Sent(call);
        let task = |task: usize, scratch: *mut u8| {
            for group in groups * task / self.tasks..groups * (task + 1) / self.tasks {
                let at = group % groups_inner * self.group;
                let first = group / groups_inner * inner + at;
                // SAFETY: as the caller says; tasks sort different lines.
                unsafe { self.group(call.get(), scratch, first, self.group.min(inner - at)) };
            }
        };
        if self.tasks == 1 {
            task(0, scratch.pointer());
        } else {
            pool.run(self.tasks, &|n| {
                with_workspace(self.task_bytes as usize, |workspace| task(n, workspace));
            });
        }
    }
}
