//! Sorts of keys alone: one operand, ordered by one key that determines the element. Keys are sorted as
//! integers in the memory of the result, by a vectorized quicksort on machines with AVX-512 (`quick`),
//! otherwise by a radix sort.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use hlo_library_base::Call;
use hlo_library_base::memory::Shared;
use hlo_library_base::pool::Pool;
use hlo_library_base::simd::vectorized;

use super::Sort;
use super::keys::{Key, Met};
use super::line::{Differ, Line};
use super::quick::{Quick, Word};
use super::radix::{self, Item, Items, MAX_PIECES, each_piece, pieces};

/// Keys that are encoded at a time.
const CHUNK_KEYS: usize = 1024;

/// Keys of a line in the sample that splitters are chosen from.
const SAMPLE_KEYS: usize = 512;

/// Whether this machine sorts lines of such keys by vectors.
pub(super) fn is_by_vectors(key: &Key) -> bool {
    key.bits() > 8 && vectors::<u32>().is_some()
}

#[cfg(test)]
thread_local! {
    /// Sorts of this thread do without vectors.
    pub(super) static BY_DIGITS: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// The sort by vectors, where the machine has the instructions.
fn vectors<W: Word>() -> Option<Quick<W>> {
    #[cfg(test)]
    if BY_DIGITS.get() {
        return None;
    }
    Quick::here()
}

impl Sort {
    /// Sorts a line of the only operand by its only key, without indices; false if some element does not
    /// compare.
    ///
    /// # Safety
    /// As [`Sort::group`]; keys determine elements.
    pub(super) unsafe fn bare(&self, call: &Call<'_>, key: &Key, scratch: *mut u8, line: Line) -> bool {
        // SAFETY: as the caller says.
        unsafe {
            match key.bits() {
                8 => self.by_digits::<u8>(call, key, scratch, line),
                16 => self.bare_of::<u16>(call, key, scratch, line),
                32 => self.bare_of::<u32>(call, key, scratch, line),
                bits => {
                    debug_assert_eq!(bits, 64, "invariant: keys have 8 to 64 bits");
                    self.bare_of::<u64>(call, key, scratch, line)
                }
            }
        }
    }

    /// [`Sort::bare`] of keys of more than a byte.
    ///
    /// # Safety
    /// As [`Sort::group`]; elements are as large as `W`.
    unsafe fn bare_of<W: Item + Word + num_traits::PrimInt>(
        &self,
        call: &Call<'_>,
        key: &Key,
        scratch: *mut u8,
        line: Line,
    ) -> bool {
        let Some(quick) = vectors::<W>() else {
            // SAFETY: as the caller says.
            return unsafe { self.by_digits::<W>(call, key, scratch, line) };
        };
        let from = Shared::<u8>::new(call.arguments[0]);
        // SAFETY: the line is in the result, and in the operand.
        unsafe {
            let to = Shared::<W>::new(call.arguments[1]).offset(line.start);
            let elements = Elements { from, start: line.start, n: line.len };
            // More classes take longer to distribute to, and serve more threads.
            let met = match pieces(call.pool, line.len) {
                1 => in_one(quick, key, elements, to),
                2 => by_classes::<W, 4>(quick, call.pool, key, elements, to),
                3..=4 => by_classes::<W, 8>(quick, call.pool, key, elements, to),
                _more => by_classes::<W, 16>(quick, call.pool, key, elements, to),
            };
            let Some(met) = met else { return false };
            if met.merged {
                self.unmerge::<W>(call, key, line, to.slice_mut(0, line.len));
            }
        }
        true
    }

    /// [`Sort::bare`] where there are no instructions for vectors of keys.
    ///
    /// # Safety
    /// As [`Sort::group`]; elements are as large as `W`.
    unsafe fn by_digits<W: Item + num_traits::PrimInt>(
        &self,
        call: &Call<'_>,
        key: &Key,
        scratch: *mut u8,
        line: Line,
    ) -> bool {
        // SAFETY: the layout has this part.
        let counts = Shared::new(unsafe { scratch.add(self.scratch.counts as usize) });
        let from = Shared::<u8>::new(call.arguments[0]);
        let (merged, nan, differ) = (AtomicBool::new(false), AtomicBool::new(false), Differ::default());
        each_piece(call.pool, line.len, &|_, range| {
            let mut bits = (u64::MAX, 0);
            // SAFETY: the line is in the operand.
            let met = vectorized(|| unsafe {
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
        // SAFETY: the layout has this part.
        let spare = Shared::<W>::new(unsafe { scratch.add(self.scratch.items[0] as usize) });
        let items = Items { data: to, spare, counts, n: line.len, bits: key.bits(), fresh: true };
        let done = |range: Range<usize>| {
            // SAFETY: nothing else accesses this part of the result now.
            unsafe { key.decode_row(to.offset(range.start).pointer().cast(), range.len()) };
        };
        // SAFETY: the line of the result has space for the keys, the layout for the counters.
        unsafe { radix::sort_bare(call.pool, items, differ.bits(), &loads, &done) };
        if merged.into_inner() {
            // SAFETY: no other task uses this line of the result.
            unsafe { self.unmerge::<W>(call, key, line, to.slice_mut(0, line.len)) };
        }
        true
    }

    /// Restores the bits of elements that share a key (-0 and +0, NaNs): as many as the operand has, in its
    /// order.
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
}

/// Contiguous elements.
#[derive(Clone, Copy)]
struct Elements {
    from: Shared<u8>,
    start: usize,
    n: usize,
}

impl Elements {
    /// Calls `sink` with the keys of a range, some at a time.
    ///
    /// # Safety
    /// The elements are in the key's operand.
    unsafe fn chunks<W: Word>(self, key: &Key, range: Range<usize>, mut sink: impl FnMut(&[W])) -> Met {
        let mut keys = [W::default(); CHUNK_KEYS];
        let mut all = Met::default();
        let mut at = range.start;
        while at < range.end {
            let keys = &mut keys[..CHUNK_KEYS.min(range.end - at)];
            // SAFETY: as the caller says.
            let met = unsafe { key.load_row(self.from.pointer(), self.start + at, keys, W::of) };
            all = Met { merged: all.merged | met.merged, nan: all.nan | met.nan };
            sink(keys);
            at += keys.len();
        }
        all
    }

    /// A stratified sample of the line's keys: one at a hashed index of each of [`SAMPLE_KEYS`] equal parts.
    ///
    /// # Safety
    /// As [`Elements::chunks`]; there are some.
    unsafe fn sample<W: Word>(self, key: &Key) -> [W; SAMPLE_KEYS] {
        let mut sample = [W::default(); SAMPLE_KEYS];
        let index = |i: usize| {
            let (begin, end) = (self.n * i / SAMPLE_KEYS, self.n * (i + 1) / SAMPLE_KEYS);
            let hash = (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
            self.start + begin + hash as usize % (end - begin).max(1)
        };
        // SAFETY: as the caller says; the indices are within the line.
        unsafe { key.load(self.from.pointer(), 0..SAMPLE_KEYS, index, |i, key| sample[i] = W::of(key)) };
        sample
    }
}

/// Sorts elements on one thread. `None`: there is a NaN that does not compare.
///
/// # Safety
/// As [`by_classes`].
unsafe fn in_one<W: Word>(quick: Quick<W>, key: &Key, elements: Elements, to: Shared<W>) -> Option<Met> {
    // SAFETY: as the caller says.
    unsafe {
        let keys = to.slice_mut(0, elements.n);
        let met = key.load_row(elements.from.pointer(), elements.start, keys, W::of);
        if key.is_partial() && met.nan {
            return None;
        }
        quick.sort(keys);
        key.decode_row(keys.as_mut_ptr().cast(), keys.len());
        Some(met)
    }
}

/// Samplesort of many elements: all threads distribute them to classes whose ranges of keys do not overlap,
/// then sort a class each. `None`: there is a NaN that does not compare.
///
/// # Safety
/// The elements are in the key's operand, and `to` has space for them, which is this call's alone.
unsafe fn by_classes<W: Word, const CLASSES: usize>(
    quick: Quick<W>,
    pool: &Pool,
    key: &Key,
    elements: Elements,
    to: Shared<W>,
) -> Option<Met> {
    let n = elements.n;
    // SAFETY: as the caller says.
    let mut sample = unsafe { elements.sample::<W>(key) };
    let splitters = quick.split::<CLASSES>(&mut sample);
    let (merged, nan) = (AtomicBool::new(false), AtomicBool::new(false));
    let mut slots = [[0; CLASSES]; MAX_PIECES];
    let shared = Shared::<[usize; CLASSES]>::new(slots.as_mut_ptr().cast());
    each_piece(pool, n, &|piece, range| {
        // SAFETY: there are at most [`MAX_PIECES`] pieces, each with counters of its own.
        let met = unsafe {
            let counts = &mut shared.slice_mut(piece, 1)[0];
            elements.chunks(key, range, |keys| quick.count(&splitters, keys, counts))
        };
        merged.fetch_or(met.merged, Ordering::Relaxed);
        nan.fetch_or(met.nan, Ordering::Relaxed);
    });
    let met = Met { merged: merged.into_inner(), nan: nan.into_inner() };
    if key.is_partial() && met.nan {
        return None;
    }
    // The offset of each class, and in it of the keys of each piece.
    let mut starts = [0; CLASSES];
    let mut sum = 0;
    for class in 0..CLASSES {
        starts[class] = sum;
        for slots in &mut slots[..pieces(pool, n)] {
            sum += std::mem::replace(&mut slots[class], sum);
        }
    }
    let shared = Shared::<[usize; CLASSES]>::new(slots.as_mut_ptr().cast());
    each_piece(pool, n, &|piece, range| {
        // SAFETY: as above; by the counts there are as many slots as keys, which are within the result.
        unsafe {
            let slots = &mut shared.slice_mut(piece, 1)[0];
            elements.chunks(key, range, |keys| quick.distribute(&splitters, keys, to.pointer(), slots));
        }
    });
    pool.run(CLASSES, &|class| {
        // SAFETY: classes do not overlap.
        unsafe {
            let end = starts.get(class + 1).map_or(n, |&next| next);
            let keys = to.slice_mut(starts[class], end - starts[class]);
            quick.sort(keys);
            key.decode_row(keys.as_mut_ptr().cast(), keys.len());
        }
    });
    Some(met)
}

/// The keys of a line without gaps.
struct LineKeys<'a> {
    key: &'a Key,
    from: Shared<u8>,
    start: usize,
}

impl<W: Item + num_traits::PrimInt> radix::Keys<W> for LineKeys<'_> {
    #[inline(always)]
    fn each(&self, range: Range<usize>, mut sink: impl FnMut(W)) {
        let sink = |_, key| sink(W::from(key).unwrap_or_else(W::zero));
        // SAFETY: as whoever constructed it says, the line is in the operand.
        unsafe { self.key.load(self.from.pointer(), range, |i| self.start + i, sink) };
    }
}
