//! An arena in which equal things have one index.

use std::hash::{BuildHasher as _, Hash};

use rustc_hash::{FxBuildHasher, FxHashMap};
use smallvec::SmallVec;

#[derive(Clone, Debug)]
pub(super) struct Arena<T> {
    items: Vec<T>,
    depths: Vec<u32>,
    /// Indices by hash; different things of one hash are told apart by comparison.
    index: FxHashMap<u64, SmallVec<[u32; 1]>>,
}

impl<T> Default for Arena<T> {
    fn default() -> Self {
        Self { items: Vec::new(), depths: Vec::new(), index: FxHashMap::default() }
    }
}

impl<T: Hash + Eq> Arena<T> {
    /// The index of an item, added if it is new.
    pub(super) fn intern(&mut self, item: T, depth: u32) -> usize {
        let hash = FxBuildHasher.hash_one(&item);
        let same_hash = self.index.entry(hash).or_default();
        if let Some(&found) = same_hash.iter().find(|&&i| self.items[i as usize] == item) {
            return found as usize;
        }
        let index = self.items.len();
        same_hash.push(index as u32);
        self.items.push(item);
        self.depths.push(depth);
        index
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
