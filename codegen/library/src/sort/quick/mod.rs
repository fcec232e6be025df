//! Vectorized quicksort of keys alone, on x86-64 with AVX-512: partitions by compressing lanes (`partition`),
//! and sorting networks for small parts (`network`).
//!
//! **Invariant:** never quadratic. Keys equal to the pivot are removed together, and a part at a depth of
//! more than `2 * log2(n) + 8` partitions is sorted by the standard library.

mod lanes;
mod network;
mod partition;
#[cfg(test)]
mod tests;

use std::marker::PhantomData;

use hlo_library_base::isa::Features;

use self::lanes::{Lanes, Lanes16, Lanes32, Lanes64};

/// Unsigned keys that are sorted so.
pub(super) trait Word: Copy + Ord + Default + Send + Sync {
    /// Vectors of them.
    #[expect(private_bounds, reason = "nobody else has a use for them")]
    type Lanes: Lanes<Key = Self>;

    /// The lowest bits.
    fn of(key: u64) -> Self;
}

macro_rules! words {
    ($($t:ty: $lanes:ty),*) => {$(
        impl Word for $t {
            type Lanes = $lanes;

            #[inline(always)]
            fn of(key: u64) -> Self {
                key as $t
            }
        }
    )*};
}
words!(u16: Lanes16, u32: Lanes32, u64: Lanes64);

/// Evidence that this machine has the instructions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quick<W>(PhantomData<W>);

/// Splitters of a samplesort, ascending: `[i]` is the smallest key of class `i + 1`. The last one is not
/// used.
#[derive(Clone, Copy, Debug)]
pub(super) struct Splitters<W, const CLASSES: usize>([W; CLASSES]);

impl<W: Word> Quick<W> {
    /// `None`: the machine does not have them, or is not to use them.
    pub(super) fn here() -> Option<Self> {
        Features::here().avx512.then_some(Quick(PhantomData))
    }

    /// Sorts keys.
    pub(super) fn sort(self, keys: &mut [W]) {
        // SAFETY: the machine has the instructions.
        unsafe { partition::sort::<W::Lanes>(keys, W::default()) }
    }

    /// Splitters that divide keys into classes of about as many each, by a sample of them.
    pub(super) fn split<const CLASSES: usize>(self, sample: &mut [W]) -> Splitters<W, CLASSES> {
        self.sort(sample);
        let key = |i| sample.get(sample.len() * (i + 1) / CLASSES).copied().unwrap_or_default();
        Splitters(std::array::from_fn(key))
    }

    /// Counts keys of each class.
    pub(super) fn count<const CLASSES: usize>(
        self,
        splitters: &Splitters<W, CLASSES>,
        keys: &[W],
        counts: &mut [usize; CLASSES],
    ) {
        // SAFETY: the machine has the instructions.
        unsafe { count::<W::Lanes, CLASSES>(&splitters.0, keys, counts) }
    }

    /// Moves keys to the next slots of their classes.
    ///
    /// # Safety
    /// Each class has as many slots as keys from its next one on, which are this call's alone.
    pub(super) unsafe fn distribute<const CLASSES: usize>(
        self,
        splitters: &Splitters<W, CLASSES>,
        keys: &[W],
        to: *mut W,
        next: &mut [usize; CLASSES],
    ) {
        // SAFETY: as the caller says, and the machine has the instructions.
        unsafe { distribute::<W::Lanes, CLASSES>(&splitters.0, keys, to, next) }
    }
}

/// Calls `each` with registers of keys, and with masks of the lanes that are keys.
///
/// # Safety
/// As [`Lanes`].
#[inline(always)]
unsafe fn registers<L: Lanes>(keys: &[L::Key], mut each: impl FnMut(L, u32)) {
    let chunks = keys.chunks_exact(L::LANES);
    let rest = chunks.remainder();
    for chunk in chunks {
        // SAFETY: a chunk fills a register.
        each(unsafe { L::load(chunk.as_ptr()) }, lanes::first(L::LANES));
    }
    if !rest.is_empty() {
        // SAFETY: the remainder has as many keys.
        each(unsafe { L::load_first(rest.as_ptr(), rest.len()) }, lanes::first(rest.len()));
    }
}

/// [`Quick::count`].
///
/// # Safety
/// As [`Lanes`].
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
unsafe fn count<L: Lanes, const CLASSES: usize>(
    splitters: &[L::Key; CLASSES],
    keys: &[L::Key],
    counts: &mut [usize; CLASSES],
) {
    let mut below = [0; CLASSES];
    // SAFETY: as the caller says.
    unsafe {
        let splitters = splitters.map(|key| L::splat(key));
        registers::<L>(keys, |register, all| {
            for (below, &splitter) in below.iter_mut().zip(&splitters[..CLASSES - 1]) {
                *below += (register.less(splitter) & all).count_ones() as usize;
            }
        });
    }
    below[CLASSES - 1] = keys.len();
    let mut last = 0;
    for (count, below) in counts.iter_mut().zip(below) {
        *count += below - last;
        last = below;
    }
}

/// [`Quick::distribute`].
///
/// # Safety
/// As [`Quick::distribute`] and [`Lanes`].
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
unsafe fn distribute<L: Lanes, const CLASSES: usize>(
    splitters: &[L::Key; CLASSES],
    keys: &[L::Key],
    to: *mut L::Key,
    next: &mut [usize; CLASSES],
) {
    let mut slots = *next;
    // SAFETY: as the caller says.
    unsafe {
        let splitters = splitters.map(|key| L::splat(key));
        registers::<L>(keys, |register, all| {
            let mut last = 0;
            for (class, slot) in slots.iter_mut().enumerate() {
                let below = if class + 1 < CLASSES { register.less(splitters[class]) & all } else { all };
                let these = below & !last;
                last = below;
                let count = these.count_ones() as usize;
                register.compress(these).store_first(to.add(*slot), count);
                *slot += count;
            }
        });
    }
    *next = slots;
}
