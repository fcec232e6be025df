//! The order of one line by its keys: of the whole line, of the elements that are read, or, where some
//! element does not compare, by the comparator. Keys that determine their elements are sorted in `bare`.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use hlo_library_base::Call;
use hlo_library_base::memory::Shared;
use hlo_library_base::simd::vectorized;
use hlo_library_base::workspace::with_workspace;

use super::super::selection;
use super::keys::Key;
use super::radix::{self, Item, Items, Narrow, Wide, each_piece, parallel};
use super::wanted::Wanted;
use super::{Sort, merge};

impl Sort {
    /// The order of a line by its keys.
    ///
    /// # Safety
    /// As [`Sort::group`]; `order` has space for the line.
    pub(super) unsafe fn order(
        &self,
        call: &Call<'_>,
        keys: &[Key],
        scratch: *mut u8,
        line: Line,
        order: Shared<u32>,
    ) {
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

    /// Orders the indices of a line by its only key as far as they are read; false if some element does not
    /// compare.
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
        // For the last elements, the order and the indices are reversed.
        let last = matches!(self.wanted, Wanted::Last(_));
        let index = |i: usize| if last { len - 1 - i } else { i };
        let from = Shared::<u8>::new(call.arguments[key.operand]);
        let incomparable = AtomicBool::new(false);
        let scan = |items: &mut [T], range: std::ops::Range<usize>| {
            let mut nan = false;
            let count = selection::best(items, k, range, |range, keys| {
                let first = range.start;
                // SAFETY: the line is in the operand.
                let met = unsafe {
                    if line.stride == 1 && !last {
                        key.load_row(from.pointer(), line.start + first, keys, T::narrow)
                    } else {
                        key.load(
                            from.pointer(),
                            range,
                            |i| line.element(index(i)),
                            |i, key| keys[i - first] = T::narrow(if last { !key } else { key }),
                        )
                    }
                };
                nan |= met.nan;
            });
            incomparable.fetch_or(nan && key.is_partial(), Ordering::Relaxed);
            count
        };
        let put = |best: &mut [T]| {
            best.sort_unstable();
            // SAFETY: there is space for the line.
            let order = unsafe { order.slice_mut(0, len) };
            best.iter()
                .enumerate()
                .for_each(|(i, item)| order[index(i)] = index(item.index() as usize) as u32);
        };
        if len < parallel() {
            // SAFETY: the layout has this part.
            let items = unsafe {
                Shared::<T>::new(scratch.add(self.scratch.items[0] as usize))
                    .slice_mut(0, selection::capacity(k, len))
            };
            vectorized(|| scan(items, 0..len));
            put(&mut items[..k]);
        } else {
            let all = std::sync::Mutex::new(Vec::new());
            each_piece(call.pool, len, &|_, range| {
                let capacity = selection::capacity(k, range.len());
                with_workspace(capacity * size_of::<T>(), |workspace| {
                    // SAFETY: the workspace is as large.
                    let items = unsafe { Shared::<T>::new(workspace).slice_mut(0, capacity) };
                    let count = vectorized(|| scan(items, range));
                    let mut all = all.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                    all.extend_from_slice(&items[..count]);
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

    /// Orders the indices of a line (all of them, or as `order` has them) by keys of together at most 64
    /// bits; false if some element does not compare.
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
            // SAFETY: the layout has this part.
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
                // SAFETY: indices are within the line and the line in the operand; pieces write different
                // items.
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
                        let index = |i: usize| *order.pointer().add(i);
                        let make = |i: usize, key: u64| {
                            bits = (bits.0 & key, bits.1 | key);
                            *data.pointer().add(i) = T::make(key, index(i));
                        };
                        key.load(from.pointer(), range, |i| line.element(index(i) as usize), make)
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
        // SAFETY: the layout gives each array its size; parts write different indices.
        unsafe {
            radix::sort(call.pool, items, differ.bits(), &|start, sorted: &[T]| {
                let order = order.slice_mut(start, sorted.len());
                order.iter_mut().zip(sorted).for_each(|(o, item)| *o = item.index());
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
        // SAFETY: the layout has space for these where a key is partial.
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

/// The bits in which keys differ.
pub(super) struct Differ {
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
    pub(super) fn note(&self, (all, any): (u64, u64)) {
        self.all.fetch_and(all, Ordering::Relaxed);
        self.any.fetch_or(any, Ordering::Relaxed);
    }

    pub(super) fn bits(&self) -> u64 {
        self.all.load(Ordering::Relaxed) ^ self.any.load(Ordering::Relaxed)
    }
}

/// A line of an array.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    pub(super) start: usize,
    pub(super) stride: usize,
    pub(super) len: usize,
}

impl Line {
    #[inline(always)]
    fn element(&self, i: usize) -> usize {
        self.start + i * self.stride
    }
}

/// Items with indices.
trait Keyed: Item {
    fn make(key: u64, index: u32) -> Self;
    fn index(self) -> u32;
}

impl Keyed for Narrow {
    #[inline(always)]
    fn make(key: u64, index: u32) -> Self {
        Narrow::new(key, index)
    }

    #[inline(always)]
    fn index(self) -> u32 {
        self.0 as u32
    }
}

impl Keyed for Wide {
    #[inline(always)]
    fn make(key: u64, index: u32) -> Self {
        Wide { key, index: u64::from(index) }
    }

    #[inline(always)]
    fn index(self) -> u32 {
        self.index as u32
    }
}
