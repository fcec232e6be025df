//! The random numbers of attacks: splitmix64, so that seed and number determine an attack.

use hlo::elided::splitmix64;

/// A sequence of random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// The sequence of one attack.
    pub(crate) fn of(seed: u64, number: u64) -> Self {
        let mut random = Self(seed.wrapping_mul(0xd605_bbb5_8c8a_bbfd) ^ number);
        random.next();
        random
    }

    pub(crate) fn next(&mut self) -> u64 {
        let drawn = splitmix64(self.0);
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        drawn
    }

    /// A number below `n`, which is not 0.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    /// True once in `n` times.
    pub(crate) fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// The index of one of some things.
    pub(crate) fn index<T>(&mut self, of: &[T]) -> Option<usize> {
        (!of.is_empty()).then(|| self.below(of.len()))
    }
}
