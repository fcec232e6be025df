//! Packing: items that are alive at the same time lie apart.

use super::live::Spans;

/// Everything lies at multiples of this.
pub(super) const ALIGNMENT: u64 = 64;

/// Bytes that are alive for some time.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) bytes: u64,
    pub(super) spans: Spans,
}

/// Where the items lie.
#[derive(Debug)]
pub(super) struct Packed {
    pub(super) offsets: Vec<u64>,
    /// How far they reach.
    pub(super) bytes: u64,
    /// The most bytes alive at once.
    pub(super) lower_bound: u64,
}

fn aligned(bytes: u64) -> u64 {
    bytes.next_multiple_of(ALIGNMENT)
}

/// The most bytes alive at once: no packing is smaller.
fn most_alive(items: &[Item]) -> u64 {
    let mut changes: Vec<(u32, bool, u64)> = Vec::with_capacity(2 * items.len());
    for item in items {
        for &(from, to) in &item.spans {
            // What ends at a tick is gone before what begins there.
            changes.push((from, true, aligned(item.bytes)));
            changes.push((to, false, aligned(item.bytes)));
        }
    }
    changes.sort_unstable_by_key(|c| (c.0, c.1));
    let (mut alive, mut most) = (0u64, 0u64);
    for (_, begins, bytes) in changes {
        alive = if begins { alive + bytes } else { alive - bytes };
        most = most.max(alive);
    }
    most
}

/// Largest first, each in the smallest gap that takes it.
pub(super) fn pack(items: &[Item]) -> Packed {
    let lower_bound = most_alive(items);
    let mut order: Vec<usize> = (0..items.len()).collect();
    let first = |i: usize| items[i].spans.first().map_or(0, |s| s.0);
    order.sort_by_key(|&i| (std::cmp::Reverse(items[i].bytes), first(i)));
    let mut offsets = vec![0; items.len()];
    let mut placed: Vec<usize> = Vec::new();
    let mut bytes = 0;
    for i in order {
        let mut near: Vec<(u64, u64)> = placed
            .iter()
            .filter(|&&p| meet(&items[p].spans, &items[i].spans))
            .map(|&p| (offsets[p], offsets[p] + aligned(items[p].bytes)))
            .collect();
        near.sort_unstable();
        offsets[i] = best_gap(&near, aligned(items[i].bytes));
        bytes = bytes.max(offsets[i] + aligned(items[i].bytes));
        placed.push(i);
    }
    Packed { offsets, bytes, lower_bound }
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
