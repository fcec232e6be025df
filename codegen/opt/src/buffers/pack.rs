//! Packing: offsets for items so that those live at once do not overlap (dynamic storage allocation).
//!
//! Best fit: items are placed one after the other, each in the smallest gap between those that are already
//! placed and live with it. The result depends on the order, so a few orders are tried as long as none
//! reaches the lower bound. The work is bounded: when too many items are live at once, the remaining small
//! ones are packed by a sweep through time, above the others.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::ALIGNMENT;
use super::live::{Span, Spans};

/// The maximum number of overlaps between items that are looked at before the rest is swept.
const MAX_OVERLAPS: usize = 1 << 21;
/// More items are packed in one order only.
const MAX_TRIED: usize = 1 << 12;

/// An item: bytes that are live for some time.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) bytes: u64,
    pub(super) spans: Spans,
}

/// The offsets of the items.
#[derive(Debug)]
pub(super) struct Packed {
    pub(super) offsets: Vec<u64>,
    /// The total size.
    pub(super) bytes: u64,
}

fn aligned(bytes: u64) -> u64 {
    bytes.next_multiple_of(ALIGNMENT)
}

fn hull(item: &Item) -> Span {
    (item.spans.first().map_or(0, |s| s.0), item.spans.last().map_or(0, |s| s.1))
}

/// The largest total size of items live at once, each counted as `size_of` of its bytes: a lower bound of any
/// packing.
pub(super) fn most_alive<'a>(items: impl Iterator<Item = &'a Item>, size_of: impl Fn(u64) -> u64) -> u64 {
    let mut changes: Vec<(u32, bool, u64)> = Vec::new();
    for item in items {
        for &(from, to) in &item.spans {
            changes.push((from, true, size_of(item.bytes)));
            changes.push((to, false, size_of(item.bytes)));
        }
    }
    // What ends at a tick is gone before what begins there.
    changes.sort_unstable_by_key(|c| (c.0, c.1));
    let (mut alive, mut most) = (0u64, 0u64);
    for (_, begins, bytes) in changes {
        alive = if begins { alive + bytes } else { alive - bytes };
        most = most.max(alive);
    }
    most
}

/// The maximum number of items and of bins that are tried.
const MAX_BINNED: (usize, usize) = (1 << 11, 16);

/// Memory that exists anyway and is free part of the time: that of a result before it is computed, of a
/// donated parameter after its last read.
#[derive(Debug)]
pub(super) struct Bin {
    pub(super) bytes: u64,
    /// When its first item is live, which fills it.
    pub(super) spans: Spans,
}

/// Places items in bins where they fit, largest first. Returns for each the bin and the offset in it.
pub(super) fn into_bins(items: &[Item], bins: &[Bin]) -> Vec<Option<(usize, u64)>> {
    let mut found = vec![None; items.len()];
    let mut by_size: Vec<usize> = (0..bins.len()).collect();
    by_size.sort_by_key(|&b| (Reverse(bins[b].bytes), b));
    by_size.truncate(MAX_BINNED.1);
    // The smallest that fits is taken.
    by_size.reverse();
    let mut inside: Vec<Vec<(&Spans, u64, u64)>> =
        bins.iter().map(|b| vec![(&b.spans, 0, aligned(b.bytes))]).collect();
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by_key(|&i| (Reverse(items[i].bytes), hull(&items[i]).0));
    for i in order.into_iter().take(MAX_BINNED.0) {
        let item = &items[i];
        for &b in by_size.iter().filter(|&&b| bins[b].bytes >= item.bytes) {
            let alive = inside[b].iter().filter(|p| meet(p.0, &item.spans));
            let mut near: Vec<(u64, u64)> = alive.map(|p| (p.1, p.2)).collect();
            near.sort_unstable();
            let at = best_gap(&near, aligned(item.bytes));
            if at + item.bytes <= bins[b].bytes {
                inside[b].push((&item.spans, at, at + aligned(item.bytes)));
                found[i] = Some((b, at));
                break;
            }
        }
    }
    found
}

fn meet(a: &Spans, b: &Spans) -> bool {
    let (mut i, mut j) = (0, 0);
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        if x.0 < y.1 && y.0 < x.1 {
            return true;
        }
        if x.1 <= y.1 { i += 1 } else { j += 1 }
    }
    false
}

/// Offsets for all items.
pub(super) fn pack(items: &[Item]) -> Packed {
    let lower_bound = most_alive(items.iter(), aligned);
    let mut best: Option<(u64, Vec<u64>)> = None;
    // Orders: largest first; largest size times lifetime first; as given.
    let orders: [fn(&Item) -> u64; 3] =
        [|i| i.bytes, |i| i.bytes.saturating_mul(u64::from(hull(i).1 - hull(i).0)), |_| 0];
    for key in orders {
        let mut order: Vec<usize> = (0..items.len()).collect();
        order.sort_by_key(|&i| (Reverse(key(&items[i])), hull(&items[i]).0));
        let (bytes, offsets) = in_order(items, &order);
        if best.as_ref().is_none_or(|b| bytes < b.0) {
            best = Some((bytes, offsets));
        }
        if bytes == lower_bound || items.len() > MAX_TRIED {
            break;
        }
    }
    let (bytes, offsets) = best.unwrap_or_default();
    Packed { offsets, bytes }
}

/// Places items in an order. Returns the total size and the offsets.
fn in_order(items: &[Item], order: &[usize]) -> (u64, Vec<u64>) {
    let mut offsets = vec![0; items.len()];
    let mut placed = Placed::new(items);
    let (mut bytes, mut overlaps) = (0, 0);
    let mut near: Vec<(u64, u64)> = Vec::new();
    for (done, &i) in order.iter().enumerate() {
        if overlaps > MAX_OVERLAPS {
            bytes = sweep(items, &order[done..], bytes, &mut offsets);
            break;
        }
        near.clear();
        placed.alive_with(i, |p| near.push((offsets[p], offsets[p] + aligned(items[p].bytes))));
        overlaps += near.len();
        near.sort_unstable();
        offsets[i] = best_gap(&near, aligned(items[i].bytes));
        bytes = bytes.max(offsets[i] + aligned(items[i].bytes));
        placed.insert(i);
    }
    (bytes, offsets)
}

/// The start of the smallest gap of at least `bytes` between sorted ranges, or after them.
fn best_gap(taken: &[(u64, u64)], bytes: u64) -> u64 {
    let mut best: Option<(u64, u64)> = None;
    let mut end = 0;
    for &(from, to) in taken {
        if from > end && from - end >= bytes && best.is_none_or(|b| from - end < b.0) {
            best = Some((from - end, end));
        }
        end = end.max(to);
    }
    best.map_or(end, |b| b.1)
}

/// The placed items, by when they are live: a segment tree over moments, where each item is in the few nodes
/// that make up its spans.
struct Placed<'a> {
    items: &'a [Item],
    /// All moments at which spans begin or end.
    moments: Vec<u32>,
    leaves: usize,
    /// The items of each node: `1` is the root, `2n` and `2n + 1` are the children of `n`.
    nodes: Vec<Vec<u32>>,
    /// The number of items in each node's subtree.
    below: Vec<u32>,
    /// For each item the last search that found it.
    found: Vec<u32>,
    search: u32,
}

impl<'a> Placed<'a> {
    fn new(items: &'a [Item]) -> Self {
        let mut moments: Vec<u32> =
            items.iter().flat_map(|i| i.spans.iter().flat_map(|s| [s.0, s.1])).collect();
        moments.sort_unstable();
        moments.dedup();
        let leaves = moments.len().max(1).next_power_of_two();
        let (nodes, below) = (vec![Vec::new(); 2 * leaves], vec![0; 2 * leaves]);
        Self { items, moments, leaves, nodes, below, found: vec![0; items.len()], search: 0 }
    }

    /// The leaves of a span.
    fn range(&self, span: Span) -> (usize, usize) {
        let at = |t: u32| self.moments.partition_point(|&m| m < t);
        (at(span.0), at(span.1))
    }

    fn insert(&mut self, item: usize) {
        for &span in &self.items[item].spans {
            let (mut a, mut b) = self.range(span);
            a += self.leaves;
            b += self.leaves;
            while a < b {
                if a & 1 == 1 {
                    self.add(a, item);
                    a += 1;
                }
                if b & 1 == 1 {
                    b -= 1;
                    self.add(b, item);
                }
                a /= 2;
                b /= 2;
            }
        }
    }

    fn add(&mut self, mut node: usize, item: usize) {
        self.nodes[node].push(item as u32);
        while node > 0 {
            self.below[node] += 1;
            node /= 2;
        }
    }

    /// Calls `f` once with each item that is live at once with `item`.
    fn alive_with(&mut self, item: usize, mut f: impl FnMut(usize)) {
        self.search += 1;
        for &span in &self.items[item].spans {
            let (from, to) = self.range(span);
            let mut pending = vec![(1, 0, self.leaves)];
            while let Some((node, a, b)) = pending.pop() {
                if self.below[node] == 0 || b <= from || to <= a {
                    continue;
                }
                for &p in &self.nodes[node] {
                    if self.found[p as usize] != self.search {
                        self.found[p as usize] = self.search;
                        f(p as usize);
                    }
                }
                if b - a > 1 {
                    let middle = a.midpoint(b);
                    pending.push((2 * node, a, middle));
                    pending.push((2 * node + 1, middle, b));
                }
            }
        }
    }
}

/// Sweeps through time, giving each item the smallest gap that is free then, above `floor`. Returns the total
/// size.
fn sweep(items: &[Item], rest: &[usize], floor: u64, offsets: &mut [u64]) -> u64 {
    let mut changes: Vec<(u32, bool, usize)> = Vec::with_capacity(2 * rest.len());
    for &i in rest {
        let (from, to) = hull(&items[i]);
        changes.push((from, true, i));
        changes.push((to, false, i));
    }
    changes.sort_unstable();
    let mut end = floor;
    // Gaps by offset, and by size.
    let mut gaps: BTreeMap<u64, u64> = BTreeMap::new();
    let mut by_size: BTreeSet<(u64, u64)> = BTreeSet::new();
    for (_, begins, i) in changes {
        let bytes = aligned(items[i].bytes);
        if bytes == 0 {
            continue;
        }
        if begins {
            let Some(&(size, at)) = by_size.range((bytes, 0)..).next() else {
                offsets[i] = end;
                end += bytes;
                continue;
            };
            by_size.remove(&(size, at));
            gaps.remove(&at);
            offsets[i] = at;
            if size > bytes {
                gaps.insert(at + bytes, size - bytes);
                by_size.insert((size - bytes, at + bytes));
            }
            continue;
        }
        let (mut at, mut size) = (offsets[i], bytes);
        if let Some((&before, &s)) = gaps.range(..at).next_back()
            && before + s == at
        {
            gaps.remove(&before);
            by_size.remove(&(s, before));
            (at, size) = (before, size + s);
        }
        if let Some(s) = gaps.remove(&(at + size)) {
            by_size.remove(&(s, at + size));
            size += s;
        }
        gaps.insert(at, size);
        by_size.insert((size, at));
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;
    use hlo::elided::splitmix64;

    fn check(items: &[Item], offsets: &[u64], bytes: u64) {
        for (i, a) in items.iter().enumerate() {
            assert!(offsets[i].is_multiple_of(ALIGNMENT) && offsets[i] + a.bytes <= bytes);
            for (j, b) in items.iter().enumerate().take(i) {
                let together = a.spans.iter().any(|x| b.spans.iter().any(|y| x.0 < y.1 && y.0 < x.1));
                let apart = offsets[i] + a.bytes <= offsets[j] || offsets[j] + b.bytes <= offsets[i];
                assert!(!together || apart, "{a:?} at {} and {b:?} at {}", offsets[i], offsets[j]);
            }
        }
    }

    fn random(seed: u64, n: usize) -> Vec<Item> {
        let mut state = seed;
        let mut next = |n: u64| {
            state = splitmix64(state);
            state % n
        };
        let item = |_| {
            let bytes = 1 + next(2000);
            let mut spans = Spans::new();
            let mut at = next(100) as u32;
            for _ in 0..1 + next(3) {
                let to = at + 1 + next(12) as u32;
                spans.push((at, to));
                at = to + 1 + next(20) as u32;
            }
            Item { bytes, spans }
        };
        (0..n).map(item).collect()
    }

    #[test]
    fn what_is_alive_at_once_lies_apart() {
        let (mut packed, mut bound) = (0, 0);
        for seed in 0..60 {
            let items = random(seed, 1 + seed as usize);
            let p = pack(&items);
            check(&items, &p.offsets, p.bytes);
            let least = most_alive(items.iter(), aligned);
            assert!(p.bytes >= least);
            packed += p.bytes;
            bound += least;
            let mut offsets = vec![0; items.len()];
            let order: Vec<usize> = (0..items.len()).collect();
            let bytes = sweep(&items, &order, 0, &mut offsets);
            check(&items, &offsets, bytes);
        }
        assert!(packed * 100 < bound * 120, "{packed} bytes of {bound}");
    }

    #[test]
    fn no_items_take_no_bytes() {
        let p = pack(&[]);
        assert_eq!((p.bytes, most_alive([].iter(), aligned)), (0, 0));
    }
}
