//! An arena in which equal things have one index.

use std::hash::{BuildHasher as _, Hash};

use rustc_hash::FxBuildHasher;

#[derive(Clone, Debug)]
pub(super) struct Arena<T> {
    items: Vec<T>,
    depths: Vec<u32>,
    /// Open addressing: the hash above, an index plus one below; 0 is free. A power of two, three quarters
    /// full at most.
    slots: Vec<u64>,
    indexed: usize,
}

impl<T> Default for Arena<T> {
    fn default() -> Self {
        Self { items: Vec::new(), depths: Vec::new(), slots: Vec::new(), indexed: 0 }
    }
}

/// The upper half of a hash, whose upper bits say where to look first.
fn spread(hash: u64) -> u32 {
    (hash.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as u32
}

/// The home slot of a hash in a table of `slots` slots (open addressing).
fn home(hash: u32, slots: usize) -> usize {
    ((u64::from(hash) * slots as u64) >> 32) as usize
}

impl<T: Hash + Eq> Arena<T> {
    /// The index of an item, added if it is new.
    pub(super) fn intern(&mut self, item: T, depth: u32) -> usize {
        if 4 * (self.indexed + 1) > 3 * self.slots.len() {
            self.grow();
        }
        let hash = spread(FxBuildHasher.hash_one(&item));
        let mask = self.slots.len() - 1;
        let mut at = home(hash, self.slots.len());
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                break;
            }
            if (slot >> 32) as u32 == hash {
                let index = (slot as u32 - 1) as usize;
                if self.items[index] == item {
                    return index;
                }
            }
            at = (at + 1) & mask;
        }
        let index = self.items.len();
        // Indices fit: ids of what is here have 32 bits.
        self.slots[at] = u64::from(hash) << 32 | (index as u64 + 1);
        self.indexed += 1;
        self.items.push(item);
        self.depths.push(depth);
        index
    }

    /// Twice as many slots.
    fn grow(&mut self) {
        let count = (2 * self.slots.len()).max(16);
        let mut slots = vec![0u64; count];
        for &slot in self.slots.iter().filter(|&&slot| slot != 0) {
            let mut at = home((slot >> 32) as u32, count);
            while slots[at] != 0 {
                at = (at + 1) & (count - 1);
            }
            slots[at] = slot;
        }
        self.slots = slots;
    }

    /// Adds an item that is not looked for.
    pub(super) fn push(&mut self, item: T, depth: u32) -> usize {
        self.items.push(item);
        self.depths.push(depth);
        self.items.len() - 1
    }

    pub(super) fn get(&self, index: usize) -> &T {
        &self.items[index]
    }

    pub(super) fn depth(&self, index: usize) -> u32 {
        self.depths[index]
    }

    pub(super) fn len(&self) -> usize {
        self.items.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_items_have_one_index() {
        let mut arena = Arena::default();
        for round in 0..2 {
            for n in 0..10_000u64 {
                assert_eq!(arena.intern(n * 0x1_0000_0001, 1), n as usize, "round {round}");
            }
        }
        assert_eq!(arena.len(), 10_000);
        // What is only pushed is never found.
        assert_eq!((arena.push(3, 1), arena.intern(3, 1)), (10_000, 10_001));
    }

    /// Things of one hash are told apart by comparison.
    #[test]
    fn collisions() {
        #[derive(PartialEq, Eq)]
        struct Same(u32);
        impl Hash for Same {
            fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
                state.write_u8(0);
            }
        }
        let mut arena = Arena::default();
        for n in 0..100 {
            assert_eq!(arena.intern(Same(n), 1), n as usize);
        }
        assert_eq!(arena.intern(Same(57), 1), 57);
    }
}
