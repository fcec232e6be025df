//! The best `k` keys of a line (partial sort): a scan for keys below a threshold, the k-th best so far. Those
//! are collected in a buffer; when it is full, all but the best k are dropped (quickselect), and the
//! threshold is lowered. For small `k` the buffer is kept sorted by insertion.
//!
//! **Invariant:** of equal keys those of lower indices are the better ones, so that the selection does not
//! depend on how a line is divided into pieces.

use std::ops::Range;

/// Keys that are compared with the threshold at a time.
const BLOCK_KEYS: usize = 128;

/// Keys of a part of a block that is searched one by one if some key in it is below the threshold.
const STRIP_KEYS: usize = 16;

/// The maximum of `k` for which the buffer is kept sorted.
const MAX_ORDERED_KEYS: usize = 16;

/// A key and its index; items are ordered as results are.
pub(super) trait Item: Copy + Ord {
    /// The key's integer.
    type Key: Copy + PartialOrd + Default;
    fn with(key: Self::Key, index: u32) -> Self;
    fn narrow(key: u64) -> Self::Key;
    fn key(self) -> Self::Key;
    fn index(self) -> u32;
}

/// Keys of up to 32 bits.
impl Item for u64 {
    type Key = u32;

    fn with(key: u32, index: u32) -> Self {
        u64::from(key) << 32 | u64::from(index)
    }

    #[inline(always)]
    fn narrow(key: u64) -> u32 {
        key as u32
    }

    fn key(self) -> u32 {
        (self >> 32) as u32
    }

    fn index(self) -> u32 {
        self as u32
    }
}

impl Item for (u64, u32) {
    type Key = u64;

    fn with(key: u64, index: u32) -> Self {
        (key, index)
    }

    #[inline(always)]
    fn narrow(key: u64) -> u64 {
        key
    }

    fn key(self) -> u64 {
        self.0
    }

    fn index(self) -> u32 {
        self.1
    }
}

/// The items that a buffer has to hold to select `k` of `len`.
pub(super) fn capacity(k: usize, len: usize) -> usize {
    k.saturating_mul(2).max(k.saturating_add(512)).min(len)
}

/// Writes the best `k` items of a range to the front of `items`, which has at least the [`capacity`] for the
/// range, in any order; fewer if there are fewer. Returns how many. `keys` reads the keys of a range of
/// indices.
#[inline(always)]
pub(super) fn best<I: Item>(
    items: &mut [I],
    k: usize,
    range: Range<usize>,
    mut keys: impl FnMut(Range<usize>, &mut [I::Key]),
) -> usize {
    if k <= MAX_ORDERED_KEYS {
        return handful(items, k, range, keys);
    }
    let mut found = [I::Key::default(); BLOCK_KEYS];
    let mut count = 0;
    let mut at = range.start;
    let end = range.start + range.len().min(items.len());
    while at < end {
        let n = BLOCK_KEYS.min(end - at);
        keys(at..at + n, &mut found[..n]);
        for (i, &key) in found[..n].iter().enumerate() {
            items[count] = I::with(key, (at + i) as u32);
            count += 1;
        }
        at += n;
    }
    if count <= k {
        return count;
    }
    items[..count].select_nth_unstable(k - 1);
    let mut bar = items[k - 1].key();
    count = k;
    while at < range.end {
        let n = BLOCK_KEYS.min(range.end - at);
        keys(at..at + n, &mut found[..n]);
        // What an earlier block left behind does not count.
        if n < BLOCK_KEYS {
            found[n..].fill(bar);
        }
        if any_below(&found, bar) {
            for (strip, keys) in found.chunks_exact(STRIP_KEYS).enumerate() {
                if !any_below(keys, bar) {
                    continue;
                }
                for (i, &key) in keys.iter().enumerate() {
                    if key < bar {
                        items[count] = I::with(key, (at + strip * STRIP_KEYS + i) as u32);
                        count += 1;
                        if count == items.len() {
                            items.select_nth_unstable(k - 1);
                            count = k;
                            bar = items[k - 1].key();
                        }
                    }
                }
            }
        }
        at += n;
    }
    if k < count {
        items[..count].select_nth_unstable(k - 1);
    }
    k
}

/// As [`best`], for small `k`; sorted.
#[inline(always)]
fn handful<I: Item>(
    items: &mut [I],
    k: usize,
    range: Range<usize>,
    mut keys: impl FnMut(Range<usize>, &mut [I::Key]),
) -> usize {
    let mut found = [I::Key::default(); BLOCK_KEYS];
    let mut count = 0;
    if k == 0 {
        return 0;
    }
    let mut at = range.start;
    while at < range.end {
        let n = BLOCK_KEYS.min(range.end - at);
        keys(at..at + n, &mut found[..n]);
        for (strip, keys) in found[..n].chunks(STRIP_KEYS).enumerate() {
            if count == k && !any_below(keys, items[k - 1].key()) {
                continue;
            }
            for (i, &key) in keys.iter().enumerate() {
                // The last item is dropped if it is not better.
                let mut index = if count < k {
                    count += 1;
                    count - 1
                } else if key < items[k - 1].key() {
                    k - 1
                } else {
                    continue;
                };
                while index > 0 && key < items[index - 1].key() {
                    items[index] = items[index - 1];
                    index -= 1;
                }
                items[index] = I::with(key, (at + strip * STRIP_KEYS + i) as u32);
            }
        }
        at += n;
    }
    count
}

#[inline(always)]
fn any_below<K: Copy + PartialOrd>(keys: &[K], bar: K) -> bool {
    keys.iter().fold(false, |any, &key| any | (key < bar))
}
