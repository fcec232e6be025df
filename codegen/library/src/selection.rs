//! The best few keys of a line, in order: a scan for keys that are better than the k-th best so far. Those are collected; when there are enough, all but the
//! best k are dropped, and the bar is raised. A handful is kept in order, and the bar raised by each.
//!
//! **Invariant:** of equal keys those of lower places are the better ones, so that what is selected does not depend on how a line is cut into pieces.

use std::ops::Range;

/// Keys that are compared with the bar together.
const BLOCK: usize = 128;

/// Keys among which one that is better is searched for one by one.
const STRIP: usize = 16;

/// Keys that are kept in order, at most.
const HANDFUL: usize = 16;

/// A key and its place, in the order of the results.
pub(super) trait Item: Copy + Ord {
    /// The key's integer.
    type Key: Copy + PartialOrd + Default;
    fn with(key: Self::Key, place: u32) -> Self;
    fn narrow(key: u64) -> Self::Key;
    fn key(self) -> Self::Key;
    fn place(self) -> u32;
}

/// Keys of up to 32 bits.
impl Item for u64 {
    type Key = u32;

    fn with(key: u32, place: u32) -> Self {
        u64::from(key) << 32 | u64::from(place)
    }

    #[inline(always)]
    fn narrow(key: u64) -> u32 {
        key as u32
    }

    fn key(self) -> u32 {
        (self >> 32) as u32
    }

    fn place(self) -> u32 {
        self as u32
    }
}

impl Item for (u64, u32) {
    type Key = u64;

    fn with(key: u64, place: u32) -> Self {
        (key, place)
    }

    #[inline(always)]
    fn narrow(key: u64) -> u64 {
        key
    }

    fn key(self) -> u64 {
        self.0
    }

    fn place(self) -> u32 {
        self.1
    }
}

/// Items that are collected at most where `k` of `len` are looked for.
pub(super) fn room(k: usize, len: usize) -> usize {
    k.saturating_mul(2).max(k.saturating_add(512)).min(len)
}

/// Puts the best `k` of the places of a range in front of `room`, which holds as many as [`room()`] says for the range or more, in any order; fewer if there
/// are fewer. Says how many there are. `keys` gives those of a range of places.
#[inline(always)]
pub(super) fn best<I: Item>(
    room: &mut [I],
    k: usize,
    range: Range<usize>,
    mut keys: impl FnMut(Range<usize>, &mut [I::Key]),
) -> usize {
    if k <= HANDFUL {
        return handful(room, k, range, keys);
    }
    let mut found = [I::Key::default(); BLOCK];
    let mut count = 0;
    let mut at = range.start;
    let end = range.start + range.len().min(room.len());
    while at < end {
        let n = BLOCK.min(end - at);
        keys(at..at + n, &mut found[..n]);
        for (i, &key) in found[..n].iter().enumerate() {
            room[count] = I::with(key, (at + i) as u32);
            count += 1;
        }
        at += n;
    }
    if count <= k {
        return count;
    }
    room[..count].select_nth_unstable(k - 1);
    let mut bar = room[k - 1].key();
    count = k;
    while at < range.end {
        let n = BLOCK.min(range.end - at);
        keys(at..at + n, &mut found[..n]);
        // What is left from an earlier block is not looked at.
        if n < BLOCK {
            found[n..].fill(bar);
        }
        if any_below(&found, bar) {
            for (strip, keys) in found.chunks_exact(STRIP).enumerate() {
                if !any_below(keys, bar) {
                    continue;
                }
                for (i, &key) in keys.iter().enumerate() {
                    if key < bar {
                        room[count] = I::with(key, (at + strip * STRIP + i) as u32);
                        count += 1;
                        if count == room.len() {
                            room.select_nth_unstable(k - 1);
                            count = k;
                            bar = room[k - 1].key();
                        }
                    }
                }
            }
        }
        at += n;
    }
    if k < count {
        room[..count].select_nth_unstable(k - 1);
    }
    k
}

/// As [`best`], of a handful; in order.
#[inline(always)]
fn handful<I: Item>(
    room: &mut [I],
    k: usize,
    range: Range<usize>,
    mut keys: impl FnMut(Range<usize>, &mut [I::Key]),
) -> usize {
    let mut found = [I::Key::default(); BLOCK];
    let mut count = 0;
    if k == 0 {
        return 0;
    }
    let mut at = range.start;
    while at < range.end {
        let n = BLOCK.min(range.end - at);
        keys(at..at + n, &mut found[..n]);
        for (strip, keys) in found[..n].chunks(STRIP).enumerate() {
            if count == k && !any_below(keys, room[k - 1].key()) {
                continue;
            }
            for (i, &key) in keys.iter().enumerate() {
                // The last of those that are kept is dropped, if it is not better.
                let mut place = if count < k {
                    count += 1;
                    count - 1
                } else if key < room[k - 1].key() {
                    k - 1
                } else {
                    continue;
                };
                while place > 0 && key < room[place - 1].key() {
                    room[place] = room[place - 1];
                    place -= 1;
                }
                room[place] = I::with(key, (at + strip * STRIP + i) as u32);
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
