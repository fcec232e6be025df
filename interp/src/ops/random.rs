//! Streams of random bits: ThreeFry-2x32 and Philox-4x32 (Salmon, Moraes, Dror, Shaw: "Parallel random
//! numbers: as easy as 1, 2, 3", SC 2011), laid over arrays as XLA does (`xla/hlo/builder/lib/prng.cc`).
//!
//! Every bit is a function of key, counter and position, so all loops run in parallel without changing a
//! result.

use hlo_threads::parallel;

/// Blocks that one task generates.
const CHUNK: usize = 1 << 13;

/// Twenty rounds of ThreeFry-2x32.
pub(super) fn threefry2x32(key: [u32; 2], counter: [u32; 2]) -> [u32; 2] {
    const ROTATIONS: [[u32; 4]; 2] = [[13, 15, 26, 6], [17, 29, 16, 24]];
    let schedule = [key[0], key[1], 0x1BD1_1BDA ^ key[0] ^ key[1]];
    let mut x = [counter[0].wrapping_add(schedule[0]), counter[1].wrapping_add(schedule[1])];
    for group in 0..5 {
        for rotation in ROTATIONS[group % 2] {
            x[0] = x[0].wrapping_add(x[1]);
            x[1] = x[1].rotate_left(rotation) ^ x[0];
        }
        x[0] = x[0].wrapping_add(schedule[(group + 1) % 3]);
        x[1] = x[1].wrapping_add(schedule[(group + 2) % 3]).wrapping_add(group as u32 + 1);
    }
    x
}

/// Ten rounds of Philox-4x32.
pub(super) fn philox4x32(mut key: [u32; 2], mut x: [u32; 4]) -> [u32; 4] {
    for _ in 0..10 {
        let product0 = u64::from(x[0]) * 0xD251_1F53;
        let product1 = u64::from(x[2]) * 0xCD9E_8D57;
        x = [
            (product1 >> 32) as u32 ^ x[1] ^ key[0],
            product1 as u32,
            (product0 >> 32) as u32 ^ x[3] ^ key[1],
            product0 as u32,
        ];
        key = [key[0].wrapping_add(0x9E37_79B9), key[1].wrapping_add(0xBB67_AE85)];
    }
    x
}

fn halves(x: u64) -> [u32; 2] {
    [x as u32, (x >> 32) as u32]
}

fn whole(x: [u32; 2]) -> u64 {
    u64::from(x[0]) | u64::from(x[1]) << 32
}

/// A ThreeFry generator: `state = [key, counter]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ThreeFry {
    pub(super) key: u64,
    pub(super) counter: u64,
}

impl ThreeFry {
    fn block(&self, i: u64) -> [u32; 2] {
        threefry2x32(halves(self.key), halves(self.counter.wrapping_add(i)))
    }

    /// 64 bits an element: one block each.
    pub(super) fn bits64(&mut self, n: usize) -> Vec<u64> {
        let out = generate(n, 1, |i, out: &mut [u64]| out[0] = whole(self.block(i as u64)));
        self.counter = self.counter.wrapping_add(n as u64);
        out
    }

    /// 32 bits an element. The first even dimension (or else the largest, rounded up) is divided into pairs;
    /// the two words of a block go to the two elements of a pair.
    pub(super) fn bits32(&mut self, dims: &[usize]) -> Vec<u32> {
        let Pairs { outer, extent, pairs, inner } = pairs(dims);
        let mut out = vec![0u32; outer * extent * inner];
        // A row is one index of the split dimension; rows 2p and 2p + 1 share the blocks of pair p.
        if inner != 0 && extent != 0 {
            parallel::pieces(&mut out, inner, CHUNK.div_ceil(inner), &|row, out| {
                let (outer, position) = (row / extent, row % extent);
                let first = (outer * pairs + position / 2) * inner;
                for (i, out) in out.iter_mut().enumerate() {
                    *out = self.block((first + i) as u64)[position % 2];
                }
            });
        }
        self.counter = self.counter.wrapping_add((outer * pairs * inner) as u64);
        out
    }
}

/// An array split into pairs of elements along one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pairs {
    /// Product of the dimensions before.
    pub(super) outer: usize,
    /// The dimension; the last pair of an odd one has one element.
    pub(super) extent: usize,
    /// Half of it, rounded up.
    pub(super) pairs: usize,
    /// Product of the dimensions after.
    pub(super) inner: usize,
}

/// Pairs along the first even dimension, or else the first of the largest; a scalar is one of extent 1.
pub(super) fn pairs(dims: &[usize]) -> Pairs {
    let largest = || dims.iter().position(|d| Some(d) == dims.iter().max());
    let Some(split) = dims.iter().position(|d| d % 2 == 0).or_else(largest) else {
        return Pairs { outer: 1, extent: 1, pairs: 1, inner: 1 };
    };
    let product = |dims: &[usize]| dims.iter().product();
    Pairs {
        outer: product(&dims[..split]),
        extent: dims[split],
        pairs: dims[split].div_ceil(2),
        inner: product(&dims[split + 1..]),
    }
}

/// A Philox generator: a key and a counter of 128 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Philox {
    pub(super) key: u64,
    pub(super) counter: u128,
}

impl Philox {
    pub(super) fn block(&self, i: u64) -> [u32; 4] {
        let c = self.counter.wrapping_add(u128::from(i));
        philox4x32(halves(self.key), [c as u32, (c >> 32) as u32, (c >> 64) as u32, (c >> 96) as u32])
    }

    /// 32 bits per element: the words of the blocks in order.
    pub(super) fn bits32(&mut self, n: usize) -> Vec<u32> {
        let out = generate(n, 4, |i, out: &mut [u32]| {
            let words = self.block(i as u64);
            out.copy_from_slice(&words[..out.len()]);
        });
        self.advance(n.div_ceil(4));
        out
    }

    /// 64 bits an element: two words each, the lower first.
    pub(super) fn bits64(&mut self, n: usize) -> Vec<u64> {
        let out = generate(n, 2, |i, out: &mut [u64]| {
            let w = self.block(i as u64);
            let words = [whole([w[0], w[1]]), whole([w[2], w[3]])];
            out.copy_from_slice(&words[..out.len()]);
        });
        self.advance(n.div_ceil(2));
        out
    }

    fn advance(&mut self, blocks: usize) {
        self.counter = self.counter.wrapping_add(blocks as u128);
    }
}

/// `n` elements, `each` of which fills `width` (the last perhaps fewer) for block number `i`.
fn generate<T: Copy + Default + Send + Sync>(
    n: usize,
    width: usize,
    each: impl Fn(usize, &mut [T]) + Sync,
) -> Vec<T> {
    let mut out = vec![T::default(); n];
    parallel::pieces(&mut out, width, CHUNK, &each);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The known-answer vectors of the Random123 library (`kat_vectors`).
    #[test]
    fn known_answers() {
        assert_eq!(threefry2x32([0, 0], [0, 0]), [0x6b20_0159, 0x99ba_4efe]);
        assert_eq!(threefry2x32([u32::MAX; 2], [u32::MAX; 2]), [0x1cb9_96fc, 0xbb00_2be7]);
        assert_eq!(
            threefry2x32([0x1319_8a2e, 0x0370_7344], [0x243f_6a88, 0x85a3_08d3]),
            [0xc492_3a9c, 0x483d_f7a0]
        );
        assert_eq!(philox4x32([0, 0], [0; 4]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(
            philox4x32([u32::MAX; 2], [u32::MAX; 4]),
            [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]
        );
        assert_eq!(
            philox4x32([0xa409_3822, 0x299f_31d0], [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344]),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
    }
}
