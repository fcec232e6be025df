//! Quicksort: keys less than a pivot are moved before the others, a register at a time, until few are left.

use std::mem::MaybeUninit;

use hlo_library_base::sizes;

use super::lanes::Lanes;
use super::network::{ROWS, few, sort_rows};

/// Registers that are loaded together.
const UNROLLED_REGISTERS: usize = 4;

/// Registers that [`in_place`] loads together: more than [`UNROLLED_REGISTERS`], so that an end is chosen
/// less often. Keys that come from memory are loaded by [`UNROLLED_REGISTERS`] registers, which was faster.
const BLOCK_REGISTERS: usize = 8;

/// The maximum of bytes of keys that are in a cache.
const NEAR_BYTES: usize = 8 << 20;

/// The maximum of bytes of keys that are partitioned through a buffer, which then stays in the first-level
/// cache.
const BUFFER_BYTES: usize = 1 << 14;

/// The buffer of [`through`], with a register behind it.
#[repr(align(64))]
struct Buffer(#[expect(dead_code, reason = "memory")] [u8; BUFFER_BYTES + 64]);

/// Keys from which on pivots are medians of [`ROWS`] registers of keys.
const MEDIAN_KEYS: usize = 2048;

#[cfg(test)]
thread_local! {
    /// Keys that this thread has compared with pivots.
    pub(super) static COMPARED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Sorts keys.
///
/// # Safety
/// As [`Lanes`].
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
pub(super) unsafe fn sort<L: Lanes>(keys: &mut [L::Key], least: L::Key) {
    let mut buffer = MaybeUninit::<Buffer>::uninit();
    let [capacity, near] = [BUFFER_BYTES, NEAR_BYTES].map(|bytes| sizes::from(bytes / size_of::<L::Key>()));
    let quicksort = Partitions::<L> { buffer: buffer.as_mut_ptr().cast(), capacity, near };
    // Halving takes the logarithm of the number; twice as many partitions in a row are bad luck or an attack.
    let partitions = 2 * (keys.len() | 1).ilog2() + 8;
    // SAFETY: as the caller says; the keys are borrowed.
    unsafe { quicksort.sort(keys.as_mut_ptr(), keys.len(), least, partitions) }
}

/// The indices at which registers of keys are read for a pivot.
#[inline(always)]
pub(super) fn sampled<L: Lanes>(n: usize) -> impl Iterator<Item = usize> {
    let registers = if n < MEDIAN_KEYS { 3 } else { ROWS };
    (0..registers).map(move |i| (n - L::LANES) * i / (registers - 1))
}

/// A key near the median, one of more than [`ROWS`] registers of them.
///
/// # Safety
/// As [`Lanes`]; there are `n` keys.
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
pub(super) unsafe fn pivot<L: Lanes>(keys: *const L::Key, n: usize) -> L::Key {
    // SAFETY: as the caller says.
    unsafe {
        let mut rows = [L::splat(L::MAX); ROWS];
        for (row, at) in rows.iter_mut().zip(sampled::<L>(n)) {
            *row = L::load(keys.add(at));
        }
        if n >= MEDIAN_KEYS {
            sort_rows(&mut rows);
            return rows[ROWS / 2].first();
        }
        // Medians of three, of those, and once more.
        let median = |a: L, b: L, c: L| a.min(b).max(a.max(b).min(c));
        let keys = median(rows[0], rows[1], rows[2]);
        let keys = median(keys, keys.swapped::<1>(), keys.reversed());
        let keys = if L::LANES == 16 {
            median(keys, keys.swapped::<4>(), keys.swapped::<8>())
        } else {
            median(keys, keys.swapped::<2>(), keys.swapped::<4>())
        };
        keys.first()
    }
}

/// Partitions, and memory for them.
#[derive(Clone, Copy)]
pub(super) struct Partitions<L: Lanes> {
    /// A buffer of `capacity` keys, and a register behind them.
    buffer: *mut L::Key,
    /// The maximum of keys that are partitioned through the buffer.
    capacity: usize,
    /// The maximum of keys that are in a cache.
    near: usize,
}

impl<L: Lanes> Partitions<L> {
    #[cfg(test)]
    pub(super) fn with(buffer: *mut L::Key, capacity: usize, near: usize) -> Self {
        Self { buffer, capacity, near }
    }

    /// Sorts keys, none of which is less than `least`, with at most `partitions` nested partitions.
    ///
    /// # Safety
    /// As [`Lanes`]; the keys are this call's alone, and all bits are keys.
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
    unsafe fn sort(self, mut keys: *mut L::Key, mut n: usize, mut least: L::Key, mut partitions: u32) {
        // SAFETY: as the caller says; what `less` gives is within the keys.
        unsafe {
            while n > ROWS * L::LANES {
                if partitions == 0 {
                    return std::slice::from_raw_parts_mut(keys, n).sort_unstable();
                }
                partitions -= 1;
                let pivot = pivot::<L>(keys, n);
                // Nothing is less than the smallest key: all that are equal to it are taken off, and are
                // sorted.
                let equal = pivot == least;
                if equal && pivot == L::MAX {
                    return;
                }
                let bound = if equal { L::after(pivot) } else { pivot };
                let before = self.less(keys, n, bound);
                if !equal {
                    self.sort(keys, before, least, partitions);
                }
                (keys, n, least) = (keys.add(before), n - before, bound);
            }
            few::<L>(keys, n);
        }
    }

    /// Moves keys that are less than a bound before the others. Returns how many.
    ///
    /// # Safety
    /// As [`Partitions::sort`]; there are at least `2 * BLOCK_REGISTERS` registers of keys.
    #[inline(always)]
    pub(super) unsafe fn less(self, keys: *mut L::Key, n: usize, bound: L::Key) -> usize {
        #[cfg(test)]
        COMPARED.set(COMPARED.get() + n);
        // SAFETY: as the caller says.
        unsafe {
            if n <= self.capacity {
                through::<L>(keys, n, bound, self.buffer)
            } else if n <= self.near {
                in_place::<L, BLOCK_REGISTERS>(keys, n, bound)
            } else {
                in_place::<L, UNROLLED_REGISTERS>(keys, n, bound)
            }
        }
    }
}

/// [`Partitions::less`] of a few thousand keys: those that are not less go through the buffer.
///
/// # Safety
/// As [`Partitions::less`]; `buffer` has space for the keys and a register.
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
unsafe fn through<L: Lanes>(keys: *mut L::Key, n: usize, bound: L::Key, buffer: *mut L::Key) -> usize {
    let (mut before, mut others, mut at) = (0, 0, 0);
    // SAFETY: as the caller says; `before` is never beyond what was loaded.
    unsafe {
        let bounds = L::splat(bound);
        let mut put = |register: L| {
            let less = register.less(bounds);
            register.compress(less).store(keys.add(before));
            register.compress(!less).store(buffer.add(others));
            let count = less.count_ones() as usize;
            before += count;
            others += L::LANES - count;
        };
        while at + UNROLLED_REGISTERS * L::LANES <= n {
            let mut registers = [bounds; UNROLLED_REGISTERS];
            for (i, register) in registers.iter_mut().enumerate() {
                *register = L::load(keys.add(at + i * L::LANES));
            }
            registers.into_iter().for_each(&mut put);
            at += UNROLLED_REGISTERS * L::LANES;
        }
        while at + L::LANES <= n {
            put(L::load(keys.add(at)));
            at += L::LANES;
        }
        if at < n {
            let register = L::load_first(keys.add(at), n - at);
            let all = super::lanes::first(n - at);
            let less = register.less(bounds) & all;
            let count = less.count_ones() as usize;
            register.compress(less).store_first(keys.add(before), count);
            register.compress(!less & all).store(buffer.add(others));
            before += count;
            others += n - at - count;
        }
        let back = keys.add(before);
        let mut at = 0;
        while at + L::LANES <= others {
            L::load(buffer.add(at)).store(back.add(at));
            at += L::LANES;
        }
        L::load(buffer.add(at)).store_first(back.add(at), others - at);
    }
    before
}

/// [`Partitions::less`] in place: a block from each end is held, so that there is space at both, and the next
/// block is read from the end with less capacity (Bramas, A novel hybrid quicksort algorithm vectorized using
/// AVX-512 on Intel Skylake, 2017).
///
/// # Safety
/// As [`Partitions::less`].
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
unsafe fn in_place<L: Lanes, const REGISTERS: usize>(keys: *mut L::Key, n: usize, bound: L::Key) -> usize {
    let block = REGISTERS * L::LANES;
    debug_assert!(n >= 2 * block, "invariant: there are blocks for both ends");
    // Less than a block, so that blocks remain, and a block from each end.
    let rest = n % block;
    let mut held = MaybeUninit::<[L::Key; 3 * BLOCK_REGISTERS * 16]>::uninit();
    let held = held.as_mut_ptr().cast::<L::Key>();
    let count = rest + 2 * block;
    // What is not read yet, and what is not written yet.
    let (mut read, mut read_end) = (rest + block, n - block);
    let (mut write, mut write_end) = (0, n);
    // SAFETY: as the caller says. `held` has space for less than three blocks, and has as many keys as fit
    // between what is read and what is written. Two blocks are free before each read: the end with less of it
    // gets a block more by the read, and the other one has at least half of both, a block, so that no store
    // reaches an unread key.
    unsafe {
        keys.copy_to_nonoverlapping(held, rest + block);
        keys.add(n - block).copy_to_nonoverlapping(held.add(rest + block), block);
        let bounds = L::splat(bound);
        while read < read_end {
            let first = read - write <= write_end - read_end;
            let at = if first { read } else { read_end - block };
            (read, read_end) = if first { (read + block, read_end) } else { (read, read_end - block) };
            let mut registers = [bounds; REGISTERS];
            for (i, register) in registers.iter_mut().enumerate() {
                *register = L::load(keys.add(at + i * L::LANES));
            }
            for register in registers {
                let less = register.less(bounds);
                let count = less.count_ones() as usize;
                register.compress(less).store(keys.add(write));
                // The lanes of those that are not less are the last ones, in reverse.
                register.compress(!less).reversed().store(keys.add(write_end - L::LANES));
                write += count;
                write_end = write_end + count - L::LANES;
            }
        }
        for at in (0..count).step_by(L::LANES) {
            let lanes = L::LANES.min(count - at);
            let (register, all) = (L::load_first(held.add(at), lanes), super::lanes::first(lanes));
            let less = register.less(bounds) & all;
            let count = less.count_ones() as usize;
            register.compress(less).store_first(keys.add(write), count);
            write += count;
            write_end -= lanes - count;
            register.compress(!less & all).store_first(keys.add(write_end), lanes - count);
        }
    }
    write
}
