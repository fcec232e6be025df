//! `sort`: any number of operands, along any dimension, by any comparator; exactly the permutation that SEMANTICS.md defines.
//!
//! A comparator that orders by keys, one after the other, is recognized: keys become unsigned integers, which are sorted by their digits together with
//! places in the line; a single operand whose keys say all about it is sorted without places. Where NaNs do not compare and there is one, and for every other
//! comparator, lines are merge sorted literally.
//!
//! Where nobody looks at more than the first or last few elements of a line by one key ([`wanted`]), these are selected, and the others' memory holds anything.

mod keys;
mod merge;
mod radix;
#[cfg(test)]
mod tests;
mod wanted;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use hlo::{AttrKey, ComputationId, ElementType, InstrId, Module, Opcode};

use self::merge::{Column, Comparator, LANES};
use self::radix::{Item, Items, Narrow, PARALLEL, Wide, each_piece};
use self::wanted::Wanted;
use super::dot::product::with_workspace;
use super::memory::{Layout, Shared, with_width};
use super::region::Scalars;
use super::selection;
use super::{Call, Operation, Sent};
use crate::Unsupported;

pub(super) use self::keys::{FloatOrder, Key};

/// Neighbouring lines whose elements are interleaved in memory and are handled together.
const NEIGHBOURS: usize = 16;

/// Elements of short lines that a general comparator sees together.
const TOGETHER: usize = 1 << 12;

/// Tasks that lines are cut into, if their scratch memory allows.
const TASKS: usize = 64;

/// Scratch memory above which there are fewer tasks.
const MUCH: u64 = 1 << 28;

/// An operand and its result.
#[derive(Clone, Copy, Debug)]
struct Operand {
    /// Bytes of an element.
    bytes: usize,
    /// It counts along the sorted dimension.
    counts: bool,
}

/// Whether a comparator of rows of these types is a strict weak order whatever they hold: any stable sort then gives the same rows.
pub(crate) fn is_order(module: &Module, comparator: ComputationId, types: &[ElementType]) -> bool {
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
    /// How many lines there are.
    count: usize,
}

impl Lines {
    /// Where a line begins.
    fn start(&self, line: usize) -> usize {
        line / self.stride * self.stride * self.len + line % self.stride
    }
}

/// The operation.
#[derive(Clone, Debug)]
pub(crate) struct Sort {
    operands: Vec<Operand>,
    lines: Lines,
    by: By,
    wanted: Wanted,
    /// Lines of a group: those that are handled together.
    group: usize,
    tasks: usize,
    scratch: Places,
    /// Scratch memory of a task.
    task_bytes: u64,
}

/// Where things are in the scratch memory of a task.
#[derive(Clone, Copy, Debug, Default)]
struct Places {
    /// The order of each line of a group: u32.
    order: u64,
    /// As much again.
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
            By::Keys(_) => NEIGHBOURS.min(lines.stride),
            By::Comparator { .. } => TOGETHER.checked_div(lines.len).unwrap_or(1).max(1),
        };
        debug_assert!(group > 0, "invariant: strides are not 0");
        let mut layout = Layout::default();
        let (len, all) = (lines.len as u64, (lines.len * group) as u64);
        let mut at = Places::default();
        match &by {
            // Sorted where the result is, whatever the elements.
            By::Keys(keys)
                if operands.len() == 1
                    && lines.stride == 1
                    && wanted == Wanted::All
                    && matches!(&keys[..], [key] if key.is_decoded() && !key.is_partial()) =>
            {
                if lines.len < PARALLEL {
                    at.items = [layout.add(len, operands[0].bytes as u64); 2];
                }
                at.counts = layout.add(radix::bare_counters(lines.len) as u64, 4);
            }
            By::Keys(keys) => {
                at.order = layout.add(all, 4);
                let bits: u32 = keys.iter().map(Key::bits).sum();
                let size = if bits <= 32 { 8 } else { 16 };
                if wanted == Wanted::All {
                    at.items = [layout.add(len, size), layout.add(len, size)];
                    let counters = radix::counters(lines.len).max(radix::bare_counters(lines.len));
                    at.counts = layout.add(counters as u64, 4);
                } else if lines.len < PARALLEL {
                    let room = selection::room(wanted.range(lines.len).len(), lines.len);
                    at.items = [layout.add(room as u64, size); 2];
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
        let mut tasks = if lines.len >= PARALLEL { 1 } else { groups.min(TASKS) };
        while tasks > 8 && layout.bytes().saturating_mul(tasks as u64) > MUCH {
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
        // SAFETY: the layout has these places.
        let place = |offset: u64| unsafe { scratch.add(offset as usize) };
        let order = Shared::<u32>::new(place(self.scratch.order));
        match &self.by {
            By::Keys(keys) => {
                for i in 0..count {
                    let line = Line { start: self.lines.start(first + i), stride, len };
                    // SAFETY: as the caller says.
                    unsafe {
                        let order = order.offset(i * len);
                        if stride == 1 && self.wanted == Wanted::All && self.bare(call, keys, scratch, line) {
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
                // SAFETY: the layout has these places, which nobody else uses.
                let (order, spare, arguments) = unsafe {
                    (
                        order.slice_mut(0, len * count),
                        Shared::<u32>::new(place(self.scratch.spare)).slice_mut(0, len * count),
                        Shared::<*mut u8>::pointers(place(self.scratch.arguments), 2 * columns.len() + 1),
                    )
                };
                for line in order.chunks_exact_mut(len) {
                    line.iter_mut().zip(0..).for_each(|(o, i)| *o = i);
                }
                let lines = self.lines;
                let element = |line: usize, place: u32| lines.start(first + line) + place as usize * stride;
                let Some(&kernel) = call.regions.first() else { return };
                let lanes = place(self.scratch.lanes);
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
    /// `order` has places of each line for all of its elements that are wanted.
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
                                let to_place = start + i * stride + column - line;
                                // SAFETY: orders hold places in lines, lines are within the arrays, and each element is written once.
                                unsafe {
                                    let place = *order.pointer().add(column * len + i) as usize;
                                    let from_place = start + place * stride + column - line;
                                    *to.pointer().add(to_place) =
                                        if operand.counts { <T as Count>::count(place) } else { *from.pointer().add(from_place) };
                                }
                            }
                        }
                    });
                }
            });
        }
    }

    /// Sorts a line of the only operand by its only key without places, if that says it all, in the memory of the result.
    ///
    /// # Safety
    /// As [`Sort::group`].
    unsafe fn bare(&self, call: &Call<'_>, keys: &[Key], scratch: *mut u8, line: Line) -> bool {
        let (&[_], [key]) = (&self.operands[..], keys) else { return false };
        if !key.is_decoded() {
            return false;
        }
        // SAFETY: as the caller says.
        unsafe {
            match key.bits() {
                8 => self.bare_of::<u8>(call, key, scratch, line),
                16 => self.bare_of::<u16>(call, key, scratch, line),
                32 => self.bare_of::<u32>(call, key, scratch, line),
                bits => {
                    debug_assert_eq!(bits, 64, "invariant: keys have 8 to 64 bits");
                    self.bare_of::<u64>(call, key, scratch, line)
                }
            }
        }
    }

    unsafe fn bare_of<W: Item + num_traits::PrimInt>(
        &self,
        call: &Call<'_>,
        key: &Key,
        scratch: *mut u8,
        line: Line,
    ) -> bool {
        // SAFETY: the layout has this place.
        let counts = Shared::new(unsafe { scratch.add(self.scratch.counts as usize) });
        let from = Shared::<u8>::new(call.arguments[0]);
        let (merged, nan, differ) = (AtomicBool::new(false), AtomicBool::new(false), Differ::default());
        let word = |key: u64| W::from(key).unwrap_or_else(W::zero);
        each_piece(call.pool, line.len, &|_, range| {
            let mut bits = (u64::MAX, 0);
            // SAFETY: the line is in the operand.
            let met = super::simd::vectorized(|| unsafe {
                key.load(
                    from.pointer(),
                    range,
                    |i| line.start + i,
                    |_, key| bits = (bits.0 & key, bits.1 | key),
                )
            });
            differ.note(bits);
            merged.fetch_or(met.merged, Ordering::Relaxed);
            nan.fetch_or(met.nan, Ordering::Relaxed);
        });
        if key.is_partial() && nan.into_inner() {
            return false;
        }
        // SAFETY: the line is in the result.
        let to = unsafe { Shared::<W>::new(call.arguments[1]).offset(line.start) };
        let loads = LineKeys { key, from, start: line.start };
        // SAFETY: the layout has this place.
        let spare = Shared::<W>::new(unsafe { scratch.add(self.scratch.items[0] as usize) });
        let items = Items { data: to, spare, counts, n: line.len, bits: key.bits(), fresh: true };
        let done = |range: std::ops::Range<usize>| {
            // SAFETY: nobody else uses this part of the result now.
            let part = unsafe { to.slice_mut(range.start, range.len()) };
            part.iter_mut().for_each(|x| *x = word(key.decode(x.key())));
        };
        // SAFETY: the line of the result has room for the keys, the layout for the counters.
        unsafe { radix::sort_bare(call.pool, items, differ.bits(), &loads, &done) };
        if merged.into_inner() {
            // SAFETY: no other task uses this line of the result.
            unsafe { self.unmerge::<W>(call, key, line, to.slice_mut(0, line.len)) };
        }
        true
    }

    /// Gives elements that are equal to others of other bits, and have become one of them, their bits again, in the order of the operand.
    ///
    /// # Safety
    /// The line is in the operand, whose elements are as large as `W`.
    unsafe fn unmerge<W: Item>(&self, call: &Call<'_>, key: &Key, line: Line, sorted: &mut [W]) {
        let from = Shared::<u8>::new(call.arguments[0]);
        let shared = key.shared_keys();
        let first = |shared: u64| {
            let (mut begin, mut end) = (0, sorted.len());
            while begin < end {
                let (middle, mut less) = (usize::midpoint(begin, end), false);
                let x = std::ptr::from_ref(&sorted[middle]).cast();
                // SAFETY: one element.
                unsafe { key.load(x, 0..1, |_| 0, |_, key| less = key < shared) };
                (begin, end) = if less { (middle + 1, end) } else { (begin, middle) };
            }
            begin
        };
        let mut next = shared.map(first);
        // SAFETY: as the caller says.
        let elements = unsafe { Shared::<W>::new(from.pointer()).slice(line.start, line.len) };
        let put = |i: usize, found: u64| {
            for (next, shared) in next.iter_mut().zip(shared) {
                if found == shared && *next < sorted.len() {
                    sorted[*next] = elements[i];
                    *next += 1;
                }
            }
        };
        // SAFETY: as the caller says.
        unsafe { key.load(from.pointer(), 0..line.len, |i| line.start + i, put) };
    }

    /// The order of a line by its keys.
    ///
    /// # Safety
    /// As [`Sort::group`]; `order` has room for the line.
    unsafe fn order(&self, call: &Call<'_>, keys: &[Key], scratch: *mut u8, line: Line, order: Shared<u32>) {
        let bits: u32 = keys.iter().map(Key::bits).sum();
        // SAFETY: as the caller says.
        let compared = unsafe {
            match (bits, keys, self.wanted) {
                (0..=32, [key], Wanted::First(_) | Wanted::Last(_)) => {
                    self.select::<u64>(call, key, scratch, line, order)
                }
                (_, [key], Wanted::First(_) | Wanted::Last(_)) => {
                    self.select::<(u64, u32)>(call, key, scratch, line, order)
                }
                (0..=32, ..) => self.order_of::<Narrow>(call, keys, scratch, line, order, true),
                (33..=64, ..) => self.order_of::<Wide>(call, keys, scratch, line, order, true),
                // The last key first: each later sorting keeps what the earlier ones left undecided.
                _ => keys.iter().rev().enumerate().all(|(i, key)| {
                    self.order_of::<Wide>(call, std::slice::from_ref(key), scratch, line, order, i == 0)
                }),
            }
        };
        if !compared {
            // SAFETY: as the caller says.
            unsafe { self.order_literally(call, keys, scratch, line, order) };
        }
    }

    /// Orders the places of a line by its only key as far as somebody looks at them; false if some element does not compare.
    ///
    /// # Safety
    /// As [`Sort::order`].
    unsafe fn select<T: selection::Item + Send>(
        &self,
        call: &Call<'_>,
        key: &Key,
        scratch: *mut u8,
        line: Line,
        order: Shared<u32>,
    ) -> bool {
        let (len, wanted) = (line.len, self.wanted.range(line.len));
        let k = wanted.len();
        // Of the last ones those come first that are sorted last: everything is the other way round.
        let last = matches!(self.wanted, Wanted::Last(_));
        let place = |i: usize| if last { len - 1 - i } else { i };
        let from = Shared::<u8>::new(call.arguments[key.operand]);
        let incomparable = AtomicBool::new(false);
        let scan = |room: &mut [T], range: std::ops::Range<usize>| {
            let mut nan = false;
            let count = selection::best(room, k, range, |range, keys| {
                let first = range.start;
                // SAFETY: the line is in the operand.
                let met = unsafe {
                    key.load(
                        from.pointer(),
                        range,
                        |i| line.element(place(i)),
                        |i, key| keys[i - first] = T::narrow(if last { !key } else { key }),
                    )
                };
                nan |= met.nan;
            });
            incomparable.fetch_or(nan && key.is_partial(), Ordering::Relaxed);
            count
        };
        let put = |best: &mut [T]| {
            best.sort_unstable();
            // SAFETY: there is room for the line.
            let order = unsafe { order.slice_mut(0, len) };
            best.iter()
                .enumerate()
                .for_each(|(i, item)| order[place(i)] = place(item.place() as usize) as u32);
        };
        if len < PARALLEL {
            // SAFETY: the layout has this place.
            let room = unsafe {
                Shared::<T>::new(scratch.add(self.scratch.items[0] as usize))
                    .slice_mut(0, selection::room(k, len))
            };
            super::simd::vectorized(|| scan(room, 0..len));
            put(&mut room[..k]);
        } else {
            let all = std::sync::Mutex::new(Vec::new());
            each_piece(call.pool, len, &|_, range| {
                let room = selection::room(k, range.len());
                with_workspace(room * size_of::<T>(), |workspace| {
                    // SAFETY: the workspace is as large.
                    let room = unsafe { Shared::<T>::new(workspace).slice_mut(0, room) };
                    let count = super::simd::vectorized(|| scan(room, range));
                    let mut all = all.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                    all.extend_from_slice(&room[..count]);
                });
            });
            let mut all = all.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
            if k < all.len() {
                all.select_nth_unstable(k - 1);
            }
            put(&mut all[..k]);
        }
        !incomparable.into_inner()
    }

    /// Orders the places of a line (all of them, or as `order` has them) by keys of together at most 64 bits; false if some element does not compare.
    ///
    /// # Safety
    /// As [`Sort::order`].
    unsafe fn order_of<T: Keyed>(
        &self,
        call: &Call<'_>,
        keys: &[Key],
        scratch: *mut u8,
        line: Line,
        order: Shared<u32>,
        fresh: bool,
    ) -> bool {
        let [data, spare] = self.scratch.items.map(|at| {
            // SAFETY: the layout has this place.
            Shared::<T>::new(unsafe { scratch.add(at as usize) })
        });
        // SAFETY: as above.
        let counts = Shared::new(unsafe { scratch.add(self.scratch.counts as usize) });
        let (incomparable, differ) = (AtomicBool::new(false), Differ::default());
        for (k, key) in keys.iter().enumerate() {
            let from = Shared::<u8>::new(call.arguments[key.operand]);
            let last = k + 1 == keys.len();
            each_piece(call.pool, line.len, &|_, range| {
                let mut bits = (u64::MAX, 0);
                // SAFETY: places are within the line and the line in the operand; pieces write different items.
                let met = unsafe {
                    if fresh && k == 0 {
                        let make = |i: usize, key: u64| {
                            bits = (bits.0 & key, bits.1 | key);
                            *data.pointer().add(i) = T::make(key, i as u32);
                        };
                        if line.stride == 1 {
                            key.load(from.pointer(), range, |i| line.start + i, make)
                        } else {
                            key.load(from.pointer(), range, |i| line.element(i), make)
                        }
                    } else if fresh {
                        let shift = key.bits();
                        let more = |i: usize, key: u64| {
                            let item = data.pointer().add(i);
                            let key = (*item).key() << shift | key;
                            bits = (bits.0 & key, bits.1 | key);
                            *item = T::make(key, i as u32);
                        };
                        key.load(from.pointer(), range, |i| line.element(i), more)
                    } else {
                        let place = |i: usize| *order.pointer().add(i);
                        let make = |i: usize, key: u64| {
                            bits = (bits.0 & key, bits.1 | key);
                            *data.pointer().add(i) = T::make(key, place(i));
                        };
                        key.load(from.pointer(), range, |i| line.element(place(i) as usize), make)
                    }
                };
                if last {
                    differ.note(bits);
                }
                incomparable.fetch_or(met.nan && key.is_partial(), Ordering::Relaxed);
            });
        }
        if incomparable.into_inner() {
            return false;
        }
        let bits = keys.iter().map(Key::bits).sum();
        let items = Items { data, spare, counts, n: line.len, bits, fresh };
        // SAFETY: the layout gives each array its size; parts write different places.
        unsafe {
            radix::sort(call.pool, items, differ.bits(), &|start, sorted: &[T]| {
                let order = order.slice_mut(start, sorted.len());
                order.iter_mut().zip(sorted).for_each(|(o, item)| *o = item.place());
            });
        }
        true
    }

    /// The order of a line in which some elements do not compare.
    ///
    /// # Safety
    /// As [`Sort::order`].
    unsafe fn order_literally(
        &self,
        call: &Call<'_>,
        keys: &[Key],
        scratch: *mut u8,
        line: Line,
        order: Shared<u32>,
    ) {
        let len = line.len;
        // SAFETY: the layout has room for these where a key is partial.
        let (order, spare, encoded) = unsafe {
            (
                order.slice_mut(0, len),
                Shared::<u32>::new(scratch.add(self.scratch.spare as usize)).slice_mut(0, len),
                Shared::<u64>::new(scratch.add(self.scratch.keys as usize)).slice_mut(0, len * keys.len()),
            )
        };
        for (key, encoded) in keys.iter().zip(encoded.chunks_exact_mut(len)) {
            // SAFETY: the line is in the operand.
            unsafe {
                key.load(call.arguments[key.operand], 0..len, |i| line.element(i), |i, key| encoded[i] = key)
            };
        }
        order.iter_mut().zip(0..).for_each(|(o, i)| *o = i);
        let encoded = &*encoded;
        merge::by(order, spare, |a, b| {
            for (k, key) in keys.iter().enumerate() {
                let (a, b) = (encoded[k * len + a as usize], encoded[k * len + b as usize]);
                if key.is_partial() && (a == key.incomparable() || b == key.incomparable()) {
                    return false;
                }
                if a != b {
                    return a < b;
                }
            }
            false
        });
    }
}

/// The keys of a line without gaps.
struct LineKeys<'a> {
    key: &'a Key,
    from: Shared<u8>,
    start: usize,
}

impl<W: Item + num_traits::PrimInt> radix::Keys<W> for LineKeys<'_> {
    #[inline(always)]
    fn each(&self, range: std::ops::Range<usize>, mut sink: impl FnMut(W)) {
        let sink = |_, key| sink(W::from(key).unwrap_or_else(W::zero));
        // SAFETY: who made this says that the line is in the operand.
        unsafe { self.key.load(self.from.pointer(), range, |i| self.start + i, sink) };
    }
}

/// The bits in which keys differ.
struct Differ {
    all: AtomicU64,
    any: AtomicU64,
}

impl Default for Differ {
    fn default() -> Self {
        Self { all: AtomicU64::new(u64::MAX), any: AtomicU64::new(0) }
    }
}

impl Differ {
    /// Notes the bits that some keys all have, and those that any has.
    fn note(&self, (all, any): (u64, u64)) {
        self.all.fetch_and(all, Ordering::Relaxed);
        self.any.fetch_or(any, Ordering::Relaxed);
    }

    fn bits(&self) -> u64 {
        self.all.load(Ordering::Relaxed) ^ self.any.load(Ordering::Relaxed)
    }
}

/// A line of an array.
#[derive(Clone, Copy, Debug)]
struct Line {
    start: usize,
    stride: usize,
    len: usize,
}

impl Line {
    #[inline(always)]
    fn element(&self, i: usize) -> usize {
        self.start + i * self.stride
    }
}

/// Items with places.
trait Keyed: Item {
    fn make(key: u64, place: u32) -> Self;
    fn place(self) -> u32;
}

impl Keyed for Narrow {
    #[inline(always)]
    fn make(key: u64, place: u32) -> Self {
        Narrow::new(key, place)
    }

    #[inline(always)]
    fn place(self) -> u32 {
        self.0 as u32
    }
}

impl Keyed for Wide {
    #[inline(always)]
    fn make(key: u64, place: u32) -> Self {
        Wide { key, place: u64::from(place) }
    }

    #[inline(always)]
    fn place(self) -> u32 {
        self.place as u32
    }
}

/// What an operand that counts holds at a place.
trait Count: Copy {
    fn count(place: usize) -> Self;
}

macro_rules! counts {
    ($($t:ty => |$i:ident| $value:expr;)*) => {
        $(impl Count for $t {
            #[inline(always)]
            fn count($i: usize) -> Self {
                $value
            }
        })*
    };
}
counts! {
    u8 => |i| i as u8;
    u16 => |i| i as u16;
    u32 => |i| i as u32;
    u64 => |i| i as u64;
    [u64; 2] => |i| [i as u64, 0];
}

/// Operands whose elements are known from where they are and never moved: each may lie where its result does.
pub(super) fn known(module: &Module, id: InstrId) -> impl Iterator<Item = usize> {
    let instr = module.instr(id);
    let dimension = instr.attrs.ints_or_empty(AttrKey::Dimensions).first().map(|&d| usize::try_from(d));
    // A single operand is sorted in the memory of the result.
    let several = instr.operands().len() > 1;
    let known = move |o: InstrId| several && matches!(dimension, Some(Ok(d)) if counts(module, o, d));
    instr.operands().iter().enumerate().filter(move |&(_, &o)| known(o)).map(|(k, _)| k)
}

/// Whether an operand counts along the sorted dimension.
fn counts(module: &Module, id: InstrId, dimension: usize) -> bool {
    let ty = module.instr(id).shape.as_array().map(|s| s.element_type);
    matches!(ty, Some(ElementType::S32 | ElementType::U32 | ElementType::S64 | ElementType::U64))
        && counts_along(module, id, dimension, 8)
}

/// Whether an array counts 0, 1, ... along a dimension and is the same along all others.
fn counts_along(module: &Module, id: InstrId, dimension: usize, depth: usize) -> bool {
    let instr = module.instr(id);
    let operand = |dimension: usize| {
        depth > 0 && instr.operands().first().is_some_and(|&o| counts_along(module, o, dimension, depth - 1))
    };
    // Not a dispatch: other operations are not recognized.
    match instr.opcode {
        Opcode::Iota => {
            instr.attrs.int(AttrKey::IotaDimension).and_then(|d| usize::try_from(d).ok()) == Some(dimension)
        }
        Opcode::Broadcast => {
            let dims = instr.attrs.ints_or_empty(AttrKey::Dimensions);
            dims.iter().position(|&d| usize::try_from(d) == Ok(dimension)).is_some_and(operand)
        }
        Opcode::Copy => operand(dimension),
        Opcode::Fusion => instr
            .attrs
            .computation(AttrKey::Calls)
            .is_some_and(|c| depth > 0 && counts_along(module, module.root(c), dimension, depth - 1)),
        _unknown => false,
    }
}

impl Operation for Sort {
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
                // SAFETY: operand and result are arrays of so many bytes, perhaps one.
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
