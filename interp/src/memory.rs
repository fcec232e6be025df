//! The account of live bytes, and the pool of storage for reuse.
//!
//! **Invariants:** memory for values is asked for before it is allocated ([`Meter::check`]), so that a
//! program that wants too much is refused and not killed. Live values are charged when the engine binds them
//! and credited when their storage is dropped, so shared storage counts once. Pooled storage never raises a
//! program's peak: it and what is live are at most what was live at once before.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hlo::literal::{Buffer, BufferOf};
use hlo::with_buffer;

use crate::attempt::attempt;

/// Bytes that an observer holds for as long as it wants. They count against the limit of the run that it
/// observes, as values do.
#[derive(Clone, Debug, Default)]
pub struct Beside(Arc<AtomicU64>);

impl Beside {
    /// The number of bytes.
    pub fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// So many more, until that is dropped.
    pub fn hold(&self, bytes: u64) -> Held {
        self.0.fetch_add(bytes, Ordering::Relaxed);
        Held { beside: self.clone(), bytes }
    }
}

/// Held bytes, see [`Beside::hold`].
#[derive(Debug)]
pub struct Held {
    beside: Beside,
    bytes: u64,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.beside.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Storage from this size on may be refused by the system with an error; smaller allocations abort the
/// process if they fail.
const LARGE: usize = 1 << 26;

/// `n` elements of zero; `None` if the system refuses them.
pub(crate) fn zeros<T: BufferOf>(n: usize) -> Option<Vec<T>> {
    if n.saturating_mul(size_of::<T>()) < LARGE {
        return Some(vec![T::default(); n]);
    }
    let mut storage = Vec::new();
    attempt(|| storage.try_reserve_exact(n)).ok()?;
    storage.resize(n, T::default());
    Some(storage)
}

/// Live bytes of one run, and their limit.
#[derive(Debug)]
pub(crate) struct Meter {
    live: AtomicU64,
    peak: AtomicU64,
    limit: u64,
    beside: Beside,
    pool: Arc<Pool>,
}

impl Meter {
    pub(crate) fn new(limit: u64, beside: &Beside, pool: &Arc<Pool>) -> Arc<Self> {
        let (live, peak) = (AtomicU64::new(0), AtomicU64::new(0));
        Arc::new(Self { live, peak, limit, beside: beside.clone(), pool: pool.clone() })
    }

    /// Whether `bytes` more fit.
    pub(crate) fn check(&self, bytes: u64) -> bool {
        let alive = self.live().saturating_add(self.beside());
        alive.checked_add(bytes).is_some_and(|total| total <= self.limit)
    }

    /// Bytes that count in addition to live ones.
    pub(crate) fn beside(&self) -> u64 {
        self.beside.bytes()
    }

    pub(crate) fn live(&self) -> u64 {
        self.live.load(Ordering::Relaxed)
    }

    pub(crate) fn peak(&self) -> u64 {
        self.peak.load(Ordering::Relaxed)
    }

    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    /// Pooled storage of `n` elements, with any contents, if there is some.
    pub(crate) fn reuse<T: BufferOf>(&self, n: usize) -> Option<Vec<T>> {
        self.pool.take(n)
    }
}

/// Bytes charged to a meter until dropped.
#[derive(Debug)]
pub(crate) struct Charge {
    meter: Arc<Meter>,
    bytes: u64,
}

impl Charge {
    pub(crate) fn new(meter: &Arc<Meter>, bytes: u64) -> Self {
        let live = meter.live.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if live > meter.peak() {
            meter.peak.fetch_max(live, Ordering::Relaxed);
        }
        meter.pool.evict(live);
        Self { meter: meter.clone(), bytes }
    }

    /// Ends the charge and pools its storage for other values.
    pub(crate) fn give_back(mut self, storage: Buffer) {
        let bytes = std::mem::take(&mut self.bytes);
        let live = self.meter.live.fetch_sub(bytes, Ordering::Relaxed) - bytes;
        self.meter.pool.give(storage, live);
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        if self.bytes != 0 {
            self.meter.live.fetch_sub(self.bytes, Ordering::Relaxed);
        }
    }
}

/// Smaller storage is not pooled: the system's allocator is fast for it.
const LEAST: u64 = 1 << 17;

/// Pooled storage: fresh pages cost the system more than most operations cost us.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    waiting: Mutex<Waiting>,
    /// Bytes of the waiting buffers: written under the lock, read without it where it only matters whether
    /// there are any.
    bytes: AtomicU64,
    /// The maximum number of bytes that were alive at once.
    most: AtomicU64,
}

#[derive(Debug, Default)]
struct Waiting {
    /// Oldest first.
    buffers: Vec<Buffer>,
}

impl Pool {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn give(&self, storage: Buffer, live: u64) {
        let bytes = capacity(&storage);
        if bytes < LEAST {
            return;
        }
        let mut waiting = self.waiting();
        if live + self.bytes() + bytes <= self.most.load(Ordering::Relaxed) {
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
            waiting.buffers.push(storage);
        }
    }

    fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    fn take<T: BufferOf>(&self, n: usize) -> Option<Vec<T>> {
        if (n as u64).saturating_mul(size_of::<T>() as u64) < LEAST || self.bytes() == 0 {
            return None;
        }
        let mut waiting = self.waiting();
        // The most recent one is the likeliest to be in a cache.
        let fits = |b: &Buffer| b.element_type() == T::TYPE && (n..=n + n / 8).contains(&elements(b));
        let at = waiting.buffers.iter().rposition(fits)?;
        let storage = waiting.buffers.remove(at);
        self.bytes.fetch_sub(capacity(&storage), Ordering::Relaxed);
        drop(waiting);
        let mut storage = T::unwrap(storage)?;
        storage.resize(n, T::default());
        Some(storage)
    }

    /// Evicts the oldest buffers while the pool and `live` bytes together exceed the limit.
    fn evict(&self, live: u64) {
        let mut most = self.most.load(Ordering::Relaxed);
        if live > most {
            most = self.most.fetch_max(live, Ordering::Relaxed).max(live);
        }
        if self.bytes() + live <= most {
            return;
        }
        let mut waiting = self.waiting();
        while self.bytes() + live > most && !waiting.buffers.is_empty() {
            let oldest = waiting.buffers.remove(0);
            self.bytes.fetch_sub(capacity(&oldest), Ordering::Relaxed);
        }
    }
}

fn elements(storage: &Buffer) -> usize {
    with_buffer!(storage, v => v.capacity())
}

fn capacity(storage: &Buffer) -> u64 {
    elements(storage) as u64 * storage.element_type().storage_bytes() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer(n: usize) -> Buffer {
        Buffer::F32(vec![1.0; n])
    }

    #[test]
    fn what_is_held_beside_counts() {
        let beside = Beside::default();
        let meter = Meter::new(100, &beside, &Arc::default());
        let held = beside.hold(60);
        assert!(meter.check(40) && !meter.check(41));
        let _charge = Charge::new(&meter, 30);
        assert!(meter.check(10) && !meter.check(11));
        drop(held);
        assert!(meter.check(70) && !meter.check(71));
    }

    #[test]
    fn storage_that_the_system_refuses_is_no_abort() {
        assert!(zeros::<f64>(usize::MAX / 16).is_none());
        assert_eq!(zeros::<f32>(3), Some(vec![0.0; 3]));
    }

    #[test]
    fn storage_is_used_again_within_what_was_alive_before() {
        const N: usize = 1 << 16;
        const BYTES: u64 = 4 * N as u64;
        let pool = Arc::new(Pool::default());
        let meter = Meter::new(u64::MAX, &Beside::default(), &pool);
        let (first, second) = (Charge::new(&meter, BYTES), Charge::new(&meter, BYTES));
        first.give_back(buffer(N));
        assert_eq!((meter.live(), meter.peak()), (BYTES, 2 * BYTES));
        assert!(meter.reuse::<f64>(N).is_none(), "of another type");
        assert!(meter.reuse::<f32>(2 * N).is_none(), "too short");
        assert!(meter.reuse::<f32>(N / 2).is_none(), "much too long");
        assert_eq!(meter.reuse::<f32>(N - 1).map(|v| v.len()), Some(N - 1));
        assert!(meter.reuse::<f32>(N).is_none(), "it is in use");
        second.give_back(buffer(N));
        let charge = Charge::new(&meter, BYTES);
        // One that waits and one that is alive are two; another live one exceeds the limit.
        assert_eq!(pool.waiting().buffers.len(), 1);
        let another = Charge::new(&meter, BYTES);
        assert_eq!(pool.waiting().buffers.len(), 0);
        // Nor may more wait than were alive.
        charge.give_back(buffer(N));
        another.give_back(buffer(2 * N));
        assert_eq!(pool.waiting().buffers.len(), 1);
        Charge::new(&meter, 16).give_back(Buffer::F32(vec![0.0; 4]));
        assert_eq!(pool.waiting().buffers.len(), 1, "small storage does not wait");
    }
}
