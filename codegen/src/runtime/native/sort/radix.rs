//! Stable sorting of integers with what they carry, digit by digit from the lowest.

use crate::runtime::native::memory::Shared;
use crate::runtime::pool::Pool;

/// What is sorted: a key and what goes with it.
pub(super) trait Item: Copy + Send + Sync {
    /// The key.
    fn key(self) -> u64;

    /// Sorts few of them, whose places ascend.
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
bare!(u16, u32, u64);

/// A key of up to 32 bits above a place in a line.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Narrow(pub(super) u64);

impl Narrow {
    #[inline(always)]
    pub(super) fn new(key: u64, place: u32) -> Self {
        Narrow(key << 32 | u64::from(place))
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

/// A key of up to 64 bits and a place in a line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wide {
    pub(super) key: u64,
    pub(super) place: u64,
}

impl Item for Wide {
    #[inline(always)]
    fn key(self) -> u64 {
        self.key
    }

    fn sort_few(items: &mut [Self]) {
        items.sort_unstable_by_key(|item| (item.key, item.place));
    }
}

/// Items from which the work is cut into pieces for several threads.
pub(super) const PARALLEL: usize = 1 << 16;

/// Pieces of a long line.
const PIECES: usize = 16;

/// Items up to which comparisons are quicker than digits, and insertion quicker still.
const FEW: usize = 512;
const VERY_FEW: usize = 24;

/// The number of pieces that `n` items are cut into.
pub(super) fn pieces(n: usize) -> usize {
    if n < PARALLEL { 1 } else { PIECES }
}

/// Piece `i` of `n` items.
pub(super) fn piece(n: usize, i: usize) -> std::ops::Range<usize> {
    let size = n.div_ceil(pieces(n));
    (i * size).min(n)..((i + 1) * size).min(n)
}

/// Calls `work` with each piece of `n` items.
pub(super) fn each_piece(pool: &Pool, n: usize, work: &(dyn Fn(usize, std::ops::Range<usize>) + Sync)) {
    if n < PARALLEL {
        work(0, 0..n);
    } else {
        pool.run(PIECES, &|i| work(i, piece(n, i)));
    }
}

/// Bits of a digit, for `n` items.
fn digit_bits(n: usize) -> u32 {
    if n < 1 << 14 { 8 } else { 11 }
}

/// Counters that [`sort`] needs for `n` items.
pub(super) fn counters(n: usize) -> usize {
    pieces(n) << digit_bits(n)
}

/// Sorts `n` items by the lowest `bits` bits of their keys (the others are 0), stably; where the result is: `data` or `spare`. `fresh`: their places ascend.
///
/// # Safety
/// `data` and `spare` are arrays of `n` items and `counts` of [`counters`], all of them this call's alone.
pub(super) unsafe fn sort<T: Item>(
    pool: &Pool,
    data: Shared<T>,
    spare: Shared<T>,
    counts: Shared<u32>,
    n: usize,
    bits: u32,
    fresh: bool,
) -> Shared<T> {
    if n <= VERY_FEW {
        // SAFETY: as the caller says.
        insert(unsafe { data.slice_mut(0, n) });
        return data;
    }
    if n <= FEW && fresh {
        // SAFETY: as the caller says.
        T::sort_few(unsafe { data.slice_mut(0, n) });
        return data;
    }
    let passes = bits.div_ceil(digit_bits(n)).max(1);
    let width = bits.div_ceil(passes);
    let (mut from, mut to) = (data, spare);
    let size = 1usize << width;
    for pass in 0..passes {
        let shift = pass * width;
        let digit = |item: T| (item.key() >> shift) as usize & (size - 1);
        each_piece(pool, n, &|i, range| {
            // SAFETY: a piece has counters of its own, and nobody writes items now.
            let (counts, items) =
                unsafe { (counts.slice_mut(i * size, size), from.slice(range.start, range.len())) };
            counts.fill(0);
            for &item in items {
                counts[digit(item)] += 1;
            }
        });
        // SAFETY: no piece is being worked on.
        let all = unsafe { counts.slice_mut(0, pieces(n) * size) };
        // All of one digit: nothing moves.
        if (0..size).any(|d| (0..pieces(n)).map(|i| all[i * size + d] as usize).sum::<usize>() == n) {
            continue;
        }
        let mut sum = 0;
        for d in 0..size {
            for i in 0..pieces(n) {
                sum += std::mem::replace(&mut all[i * size + d], sum);
            }
        }
        each_piece(pool, n, &|i, range| {
            // SAFETY: as above; the counters hand out each place of the target once.
            let (places, items) =
                unsafe { (counts.slice_mut(i * size, size), from.slice(range.start, range.len())) };
            for &item in items {
                let place = &mut places[digit(item)];
                // SAFETY: places are below n: they come from counting these very items.
                unsafe { *to.pointer().add(*place as usize) = item };
                *place += 1;
            }
        });
        std::mem::swap(&mut from, &mut to);
    }
    from
}
