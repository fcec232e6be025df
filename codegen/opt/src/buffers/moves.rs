//! Parallel copies, sequentialized.

use std::hash::Hash;

use rustc_hash::FxHashMap;

use super::values::ValueId;

/// A class of values, or the temporary that breaks cycles.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Moved {
    Class(ValueId),
    /// The memory of a leaf of the result.
    Result(u32),
    Help,
}

/// A copy between locations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Move<P> {
    /// The source.
    pub from: P,
    /// The destination.
    pub to: P,
}

/// Sequentializes parallel copies with distinct destinations. A cycle is broken by copying one of its
/// locations to `help` first; cycles are done one after the other, so one temporary is enough.
pub fn in_order<P: Copy + Eq + Hash>(moves: &[Move<P>], help: P) -> Vec<Move<P>> {
    let mut out = Vec::with_capacity(moves.len());
    // By destination; and how many copies still read each location.
    let mut pending: FxHashMap<P, P> = FxHashMap::default();
    let mut readers: FxHashMap<P, u32> = FxHashMap::default();
    for m in moves.iter().filter(|m| m.from != m.to) {
        pending.insert(m.to, m.from);
        *readers.entry(m.from).or_default() += 1;
    }
    let targets: Vec<P> = moves.iter().filter(|m| m.from != m.to).map(|m| m.to).collect();
    let mut free: Vec<P> =
        targets.iter().rev().copied().filter(|t| readers.get(t).is_none_or(|&n| n == 0)).collect();
    let mut rest = targets.into_iter();
    loop {
        while let Some(to) = free.pop() {
            let Some(from) = pending.remove(&to) else { continue };
            out.push(Move { from, to });
            if let Some(n) = readers.get_mut(&from) {
                *n -= 1;
                if *n == 0 && pending.contains_key(&from) {
                    free.push(from);
                }
            }
        }
        // What is left are cycles: each location is read by one other.
        let Some(to) = rest.find(|t| pending.contains_key(t)) else { return out };
        out.push(Move { from: to, to: help });
        let mut reader = to;
        while let Some(&from) = pending.get(&reader)
            && from != to
        {
            reader = from;
        }
        pending.insert(reader, help);
        readers.insert(to, 0);
        free.push(to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(n: u32) -> Moved {
        Moved::Class(n)
    }

    /// Executes the sequence and compares with the parallel copy.
    fn check(pairs: &[(u32, u32)]) -> usize {
        let moves: Vec<Move<Moved>> =
            pairs.iter().map(|&(f, t)| Move { from: class(f), to: class(t) }).collect();
        let mut memory: FxHashMap<Moved, u32> = (0..10).map(|n| (class(n), n)).collect();
        let order = in_order(&moves, Moved::Help);
        for m in &order {
            memory.insert(m.to, memory[&m.from]);
        }
        for n in 0..10 {
            let expected = pairs.iter().find(|p| p.1 == n).map_or(n, |p| p.0);
            assert_eq!(memory[&class(n)], expected, "{pairs:?} as {order:?}");
        }
        order.len()
    }

    #[test]
    fn copies_at_once_are_made_one_after_the_other() {
        assert_eq!(check(&[]), 0);
        assert_eq!(check(&[(1, 1)]), 0);
        assert_eq!(check(&[(0, 1), (1, 2), (2, 3)]), 3);
        assert_eq!(check(&[(2, 3), (1, 2), (0, 1)]), 3);
        assert_eq!(check(&[(0, 1), (1, 0)]), 3);
        assert_eq!(check(&[(0, 1), (1, 2), (2, 0), (0, 5)]), 5, "a cycle that is read from outside");
        assert_eq!(check(&[(0, 1), (1, 0), (2, 3), (3, 4), (4, 2)]), 7, "one temporary for two cycles");
        assert_eq!(check(&[(0, 1), (0, 2), (0, 3)]), 3);
    }
}
