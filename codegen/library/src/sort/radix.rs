//! Stable radix sort of integers with a payload, digit by digit from the lowest.

use hlo_library_base::memory::Shared;
use hlo_library_base::pool::Pool;
use hlo_library_base::sizes;
use hlo_library_base::workspace::{with_counters, with_workspace};

/// What is sorted: a key and what goes with it.
pub(super) trait Item: Copy + Send + Sync {
    /// The key.
    fn key(self) -> u64;

    /// Sorts few of them, whose indices ascend.
    fn sort_few(items: &mut [Self]);
}

/// Sorts few of them, stably.
fn insert<T: Item>(items: &mut [T]) {
    for i in 1..items.len() {
        let item = items[i];
        let mut at = i;
        while at > 0 && item.key() < items[at - 1].key() {
            items[at] = items[at - 1];
            at -= 1;
        }
        items[at] = item;
    }
}

macro_rules! bare {
    ($($t:ty),*) => {$(
        impl Item for $t {
            #[inline(always)]
            fn key(self) -> u64 {
                u64::from(self)
            }

            fn sort_few(items: &mut [Self]) {
                items.sort_unstable();
            }
        }
    )*};
}
bare!(u8, u16, u32, u64);

/// A key of up to 32 bits above an index in a line.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Narrow(pub(super) u64);

impl Narrow {
    #[inline(always)]
    pub(super) fn new(key: u64, index: u32) -> Self {
        Narrow(key << 32 | u64::from(index))
    }
}

impl Item for Narrow {
    #[inline(always)]
    fn key(self) -> u64 {
        self.0 >> 32
    }

    fn sort_few(items: &mut [Self]) {
        items.sort_unstable();
    }
}

/// A key of up to 64 bits and an index in a line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wide {
    pub(super) key: u64,
    pub(super) index: u64,
}

impl Item for Wide {
    #[inline(always)]
    fn key(self) -> u64 {
        self.key
    }

    fn sort_few(items: &mut [Self]) {
        items.sort_unstable_by_key(|item| (item.key, item.index));
    }
}

/// Items from which on they are divided into pieces for several threads.
const PARALLEL_ITEMS: usize = 1 << 15;

/// [`PARALLEL_ITEMS`] of this process.
pub(super) fn parallel() -> usize {
    sizes::from(PARALLEL_ITEMS)
}

/// The maximum of pieces.
pub(super) const MAX_PIECES: usize = 16;

/// Items up to which a comparison sort is faster than digits, and an insertion sort faster still.
const MAX_COMPARED_ITEMS: usize = 512;
const MAX_INSERTED_ITEMS: usize = 24;

/// Bits of the digit by which many items are distributed, and of the digits of one distribution's part at
/// most.
const DIGIT_BITS: u32 = 11;

/// Bits of keys at most, in digits.
const MAX_DIGITS: usize = 64 / 8;

/// Counters of a part: one for each value of each digit.
pub(super) const COUNTERS: usize = MAX_DIGITS << DIGIT_BITS;

/// Divides `n` items into as many pieces as there are threads; results do not depend on it.
pub(super) fn each_piece(pool: &Pool, n: usize, work: &(dyn Fn(usize, std::ops::Range<usize>) + Sync)) {
    let pieces = pieces(pool, n);
    let each = |i: usize| work(i, n * i / pieces..n * (i + 1) / pieces);
    if pieces == 1 { each(0) } else { pool.run(pieces, &each) }
}

/// The number of those pieces.
pub(super) fn pieces(pool: &Pool, n: usize) -> usize {
    if n < parallel() { 1 } else { pool.threads().min(MAX_PIECES) }
}

/// Bytes of counters of a digit for all pieces, and of the beginnings of parts.
fn digit_counters(pool: &Pool, n: usize) -> usize {
    (((pieces(pool, n) + 1) << DIGIT_BITS) + 1) * size_of::<u32>()
}

/// What is sorted, and memory for it.
#[derive(Clone, Copy)]
pub(super) struct Items<T> {
    pub(super) data: Shared<T>,
    /// A second buffer of the same size.
    pub(super) spare: Shared<T>,
    /// [`COUNTERS`] of them; of no use for [`parallel`] items and more.
    pub(super) counts: Shared<u32>,
    pub(super) n: usize,
    /// Bits of the keys: the lowest ones.
    pub(super) bits: u32,
    /// The indices of the items ascend.
    pub(super) fresh: bool,
}

/// Sorts items by their keys, stably. `done` gets parts of the result: where each begins, and its items.
/// `differ` are the bits in which keys differ, or more.
///
/// # Safety
/// The arrays are as large as [`Items`] says, and this call's alone.
pub(super) unsafe fn sort<T: Item>(
    pool: &Pool,
    items: Items<T>,
    differ: u64,
    done: &(dyn Fn(usize, &[T]) + Sync),
) {
    let used = 64 - differ.leading_zeros();
    if items.n < parallel() || used == 0 {
        // SAFETY: as the caller says.
        return unsafe { part(Items { bits: used, ..items }, 0, done) };
    }
    with_counters(digit_counters(pool, items.n), |counters| {
        // SAFETY: the caller's; there is space for these counters.
        unsafe { sort_many(pool, Items { counts: Shared::new(counters), ..items }, used, done) }
    });
}

/// [`sort`] of many items by their lowest `used` bits, with counters for all pieces and the beginnings of
/// parts.
///
/// # Safety
/// As [`sort`].
unsafe fn sort_many<T: Item>(pool: &Pool, items: Items<T>, used: u32, done: &(dyn Fn(usize, &[T]) + Sync)) {
    let Items { data, spare, counts, n, .. } = items;
    // First by the highest digit, all threads together; then each part by itself, in a core's own cache.
    let width = DIGIT_BITS.min(used);
    let (shift, size) = (used - width, 1usize << width);
    let digit = |item: T| (item.key() >> shift) as usize & (size - 1);
    each_piece(pool, n, &|i, range| {
        // SAFETY: a piece has counters of its own, digits are below `size`, and nothing writes items now.
        unsafe {
            let (counts, items) =
                (counts.slice_mut(i << DIGIT_BITS, size), data.slice(range.start, range.len()));
            counts.fill(0);
            for &item in items {
                *counts.get_unchecked_mut(digit(item)) += 1;
            }
        }
    });
    // SAFETY: no piece is being worked on.
    let starts = unsafe { begin(counts, pieces(pool, n), size) };
    each_piece(pool, n, &|i, range| {
        // SAFETY: as above; each slot of the target is handed out once by the counters, all below `n`.
        unsafe {
            let (slots, items) =
                (counts.slice_mut(i << DIGIT_BITS, size), data.slice(range.start, range.len()));
            for &item in items {
                let slot = slots.get_unchecked_mut(digit(item));
                *spare.pointer().add(*slot as usize) = item;
                *slot += 1;
            }
        }
    });
    each_part(pool, n, starts, &|start, end| {
        with_workspace(COUNTERS * size_of::<u32>(), |counts| {
            // SAFETY: parts do not overlap, and the workspace has space for the counters.
            unsafe {
                let (data, spare) = (spare.offset(start), data.offset(start));
                let (counts, n) = (Shared::new(counts), end - start);
                part(Items { data, spare, counts, n, bits: shift, fresh: items.fresh }, start, done);
            }
        });
    });
}

/// Turns counts into offsets (exclusive prefix sum): the first slot of the items of each digit of each piece.
/// Returns the beginning of the items of each digit, and the end of the last ones.
///
/// # Safety
/// There are as many counters as [`digit_counters`] says, which are the caller's alone.
unsafe fn begin<'a>(counts: Shared<u32>, pieces: usize, size: usize) -> &'a [u32] {
    // SAFETY: the caller's.
    let (all, starts) = unsafe {
        (counts.slice_mut(0, pieces << DIGIT_BITS), counts.slice_mut(pieces << DIGIT_BITS, size + 1))
    };
    let mut sum = 0;
    for d in 0..size {
        starts[d] = sum;
        for i in 0..pieces {
            sum += std::mem::replace(&mut all[(i << DIGIT_BITS) + d], sum);
        }
    }
    starts[size] = sum;
    starts
}

/// Calls `part` for the items of each digit that has some, by their beginning and end: in groups of about as
/// many items each, more groups than threads.
fn each_part(pool: &Pool, n: usize, starts: &[u32], part: &(dyn Fn(usize, usize) + Sync)) {
    let size = starts.len() - 1;
    let group = |t: usize| {
        let first = |t: usize| starts.partition_point(|&s| (s as usize) < n * t / MAX_PIECES).min(size);
        for d in first(t)..if t + 1 == MAX_PIECES { size } else { first(t + 1) } {
            let (start, end) = (starts[d] as usize, starts[d + 1] as usize);
            if start < end {
                part(start, end);
            }
        }
    };
    if pieces(pool, n) == 1 { (0..MAX_PIECES).for_each(group) } else { pool.run(MAX_PIECES, &group) }
}

/// Sorts items on one thread.
///
/// # Safety
/// As [`sort`]; there are [`COUNTERS`].
unsafe fn part<T: Item>(items: Items<T>, start: usize, done: &(dyn Fn(usize, &[T]) + Sync)) {
    let Items { data, spare, counts, n, bits, fresh } = items;
    // SAFETY: the arrays are this call's alone; digits are below the number of their values; slots come from
    // counting the items.
    unsafe {
        let all = data.slice_mut(0, n);
        if bits == 0 {
            return done(start, all);
        }
        if n <= MAX_INSERTED_ITEMS {
            insert(all);
            return done(start, all);
        }
        if n <= MAX_COMPARED_ITEMS && fresh {
            T::sort_few(all);
            return done(start, all);
        }
        let passes = bits.div_ceil(if n < 1 << 13 { 8 } else { DIGIT_BITS }) as usize;
        let width = bits.div_ceil(passes as u32);
        let size = 1usize << width;
        let digit = |item: T, pass: usize| (item.key() >> (pass as u32 * width)) as usize & (size - 1);
        let counts = counts.slice_mut(0, passes * size);
        counts.fill(0);
        for &item in &*all {
            for pass in 0..passes {
                *counts.get_unchecked_mut(pass * size + digit(item, pass)) += 1;
            }
        }
        let (mut from, mut to) = (data, spare);
        for (pass, slots) in counts.chunks_exact_mut(size).enumerate() {
            // All of one digit: nothing moves.
            if slots[digit(all[0], pass)] as usize == n {
                continue;
            }
            let mut sum = 0;
            for slot in slots.iter_mut() {
                sum += std::mem::replace(slot, sum);
            }
            for &item in from.slice(0, n) {
                let slot = slots.get_unchecked_mut(digit(item, pass));
                *to.pointer().add(*slot as usize) = item;
                *slot += 1;
            }
            std::mem::swap(&mut from, &mut to);
        }
        done(start, from.slice(0, n));
    }
}

/// The maximum of keys of a part that is sorted with a second buffer of the same size.
const MAX_SPARE_KEYS: usize = 1 << 16;

/// Where keys come from.
pub(super) trait Keys<W>: Sync {
    /// Calls `sink` with each key of a range.
    fn each(&self, range: std::ops::Range<usize>, sink: impl FnMut(W));
}

/// Sorts keys without payload in the memory of the result (`items.data`). `spare` is used for fewer than
/// [`parallel`] keys. `done` is called for parts of the result that are sorted.
///
/// # Safety
/// As [`sort`].
pub(super) unsafe fn sort_bare<W: Item>(
    pool: &Pool,
    items: Items<W>,
    differ: u64,
    keys: &impl Keys<W>,
    done: &(dyn Fn(std::ops::Range<usize>) + Sync),
) {
    let Items { data: result, n, .. } = items;
    let used = 64 - differ.leading_zeros();
    if n < parallel() || used == 0 {
        let mut at = 0;
        // SAFETY: there is space for the keys.
        keys.each(0..n, |key| unsafe {
            *result.pointer().add(at) = key;
            at += 1;
        });
        if used > 0 {
            // SAFETY: as the caller says.
            unsafe { part(Items { bits: used, ..items }, 0, &|_, sorted| back(result, sorted)) };
        }
        return done(0..n);
    }
    with_counters(digit_counters(pool, n), |counters| {
        // SAFETY: the caller's; there is space for these counters.
        unsafe { sort_bare_many(pool, Items { counts: Shared::new(counters), ..items }, used, keys, done) }
    });
}

/// [`sort_bare`] of many keys by their lowest `used` bits, with counters of a digit for all pieces and the
/// beginnings of parts.
///
/// # Safety
/// As [`sort`].
unsafe fn sort_bare_many<W: Item>(
    pool: &Pool,
    items: Items<W>,
    used: u32,
    keys: &impl Keys<W>,
    done: &(dyn Fn(std::ops::Range<usize>) + Sync),
) {
    let Items { data: result, counts, n, .. } = items;
    let width = DIGIT_BITS.min(used);
    let (shift, size) = (used - width, 1usize << width);
    let digit = |key: W| (key.key() >> shift) as usize & (size - 1);
    each_piece(pool, n, &|i, range| {
        // SAFETY: a piece has counters of its own, digits are below `size`.
        let counts = unsafe { counts.slice_mut(i << DIGIT_BITS, size) };
        counts.fill(0);
        keys.each(range, |key| counts[digit(key)] += 1);
    });
    // SAFETY: no piece is being worked on.
    let starts = unsafe { begin(counts, pieces(pool, n), size) };
    each_piece(pool, n, &|i, range| {
        // SAFETY: as above; each slot of the result is handed out once by the counters, all below `n`.
        unsafe {
            let slots = counts.slice_mut(i << DIGIT_BITS, size);
            keys.each(range, |key| {
                let slot = &mut slots[digit(key)];
                *result.pointer().add(*slot as usize) = key;
                *slot += 1;
            });
        }
    });
    each_part(pool, n, starts, &|start, end| {
        // SAFETY: parts do not overlap.
        unsafe { bare_part(result.offset(start), end - start, shift) };
        done(start..end);
    });
}

/// Copies sorted keys back from the spare memory, if they are there.
unsafe fn back<W: Item>(data: Shared<W>, sorted: &[W]) {
    if sorted.as_ptr() != data.pointer().cast_const() {
        // SAFETY: the caller says that there is space, which does not overlap the spare memory.
        unsafe { data.pointer().copy_from_nonoverlapping(sorted.as_ptr(), sorted.len()) };
    }
}

/// Sorts keys on one thread by their lowest bits, in place.
///
/// # Safety
/// They are this call's alone.
unsafe fn bare_part<W: Item>(data: Shared<W>, n: usize, bits: u32) {
    // SAFETY: the caller's.
    let keys = unsafe { data.slice_mut(0, n) };
    if n <= MAX_COMPARED_ITEMS || bits == 0 {
        if bits > 0 {
            W::sort_few(keys);
        }
        return;
    }
    if n <= sizes::from(MAX_SPARE_KEYS) {
        let key_bytes = (n * size_of::<W>()).next_multiple_of(64);
        with_workspace(key_bytes + COUNTERS * size_of::<u32>(), |workspace| {
            // SAFETY: the workspace has space for the keys and the counters.
            unsafe {
                let (spare, counts) = (Shared::<W>::new(workspace), Shared::new(workspace.add(key_bytes)));
                let items = Items { data, spare, counts, n, bits, fresh: true };
                part(items, 0, &|_, sorted| back(data, sorted));
            }
        });
        return;
    }
    // Many keys are partitioned into 256 parts in place (American flag sort): each key moves to the part of
    // its digit.
    const SIZE: usize = 256;
    let shift = bits.saturating_sub(8);
    let digit = |key: W| (key.key() >> shift) as usize & (SIZE - 1);
    let mut ends = [0usize; SIZE];
    for &key in &*keys {
        ends[digit(key)] += 1;
    }
    let mut next = [0usize; SIZE];
    let mut sum = 0;
    for d in 0..SIZE {
        next[d] = sum;
        sum += ends[d];
        ends[d] = sum;
    }
    for d in 0..SIZE {
        while next[d] < ends[d] {
            let mut key = keys[next[d]];
            let mut to = digit(key);
            while to != d {
                key = std::mem::replace(&mut keys[next[to]], key);
                next[to] += 1;
                to = digit(key);
            }
            keys[next[d]] = key;
            next[d] += 1;
        }
    }
    let mut start = 0;
    for end in ends {
        // SAFETY: parts of what is the caller's.
        unsafe { bare_part(data.offset(start), end - start, shift) };
        start = end;
    }
}
