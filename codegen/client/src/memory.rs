//! Memory of a device: a budget, what is held of it, and eviction of what was not used for long.
//!
//! Model: XRT's allocation manager. When a request does not fit, buffers without users are evicted to host
//! memory, the least recently used first. A request that does not fit after that fails, and reports the
//! owners. **Invariant:** the bytes of all leases never exceed the budget.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use hlo_codegen::runtime::arena::Store;
use rustc_hash::FxHashMap;

use crate::buffer::Shared;
use crate::error::{Code, Error};
use crate::pooled::{Pooled, Slot};

/// How many holders a report of exhaustion names.
const REPORTED_HOLDERS: usize = 5;

/// Buffers below this are not in reports of a device that evicts nothing.
const MIN_REPORTED_BYTES: u64 = 64 << 10;

/// The bytes of a device.
#[derive(Debug)]
pub(crate) struct DeviceMemory {
    /// `u64::MAX`: no limit.
    budget_bytes: u64,
    evicts: bool,
    /// Whether buffers are known without a limit, too.
    tracks: bool,
    held_bytes: AtomicU64,
    peak_bytes: AtomicU64,
    evicted_bytes: AtomicU64,
    clock: AtomicU64,
    /// The buffers that live, for eviction and reports; kept only under a limit, or if somebody wants to
    /// know.
    buffers: Mutex<Vec<Weak<Slot<Shared>>>>,
    store: Arc<Store>,
}

/// What a device holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MemoryStatistics {
    /// Bytes of buffers and of running programs now.
    pub held_bytes: u64,
    /// The most at any time.
    pub peak_bytes: u64,
    /// The budget, if there is one.
    pub budget_bytes: Option<u64>,
    /// Bytes evicted to host memory since the client was made.
    pub evicted_bytes: u64,
}

/// Bytes that are held until it is dropped.
pub(crate) struct Lease {
    bytes: u64,
    memory: Arc<DeviceMemory>,
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lease({} bytes)", self.bytes)
    }
}

impl Lease {
    /// Some of its bytes as a lease of their own: as many as there are, at most these.
    pub(crate) fn split(&mut self, bytes: u64) -> Lease {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        Lease { bytes, memory: Arc::clone(&self.memory) }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.memory.held_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl DeviceMemory {
    pub(crate) fn new(budget_bytes: Option<u64>, evicts: bool, tracks: bool) -> Arc<Self> {
        Arc::new(Self {
            budget_bytes: budget_bytes.unwrap_or(u64::MAX),
            evicts,
            tracks,
            held_bytes: AtomicU64::new(0),
            peak_bytes: AtomicU64::new(0),
            evicted_bytes: AtomicU64::new(0),
            clock: AtomicU64::new(0),
            buffers: Mutex::default(),
            store: Arc::default(),
        })
    }

    pub(crate) fn store(&self) -> &Arc<Store> {
        &self.store
    }

    pub(crate) fn is_limited(&self) -> bool {
        self.budget_bytes != u64::MAX
    }

    pub(crate) fn statistics(&self) -> MemoryStatistics {
        MemoryStatistics {
            held_bytes: self.held_bytes.load(Ordering::Relaxed),
            peak_bytes: self.peak_bytes.load(Ordering::Relaxed),
            budget_bytes: self.is_limited().then_some(self.budget_bytes),
            evicted_bytes: self.evicted_bytes.load(Ordering::Relaxed),
        }
    }

    /// The time of a use, in uses.
    pub(crate) fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed)
    }

    /// Makes a buffer known, so that it can be evicted. Where nothing is evicted, small ones stay unknown:
    /// what is known is not pooled.
    pub(crate) fn register(&self, buffer: &Pooled<Shared>) {
        let matters = self.evicts || buffer.bytes() >= MIN_REPORTED_BYTES;
        if self.tracks || self.is_limited() && matters {
            let mut buffers = self.buffers.lock().unwrap_or_else(PoisonError::into_inner);
            if buffers.len() == buffers.capacity() {
                buffers.retain(|b| b.strong_count() > 0);
            }
            buffers.push(buffer.downgrade());
        }
    }

    /// Takes bytes of the budget if they are there.
    fn try_take(self: &Arc<Self>, bytes: u64) -> Option<Lease> {
        let fits = |held: u64| held.checked_add(bytes).filter(|&sum| sum <= self.budget_bytes);
        let before = self.held_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).ok()?;
        self.peak_bytes.fetch_max(before + bytes, Ordering::Relaxed);
        Some(Lease { bytes, memory: Arc::clone(self) })
    }

    /// Takes bytes of the budget. Errors: they are not there, even without what can be evicted.
    pub(crate) fn take(self: &Arc<Self>, bytes: u64) -> Result<Lease, Error> {
        if let Some(lease) = self.try_take(bytes) {
            return Ok(lease);
        }
        if self.evicts && bytes <= self.budget_bytes {
            for shared in self.coldest_first() {
                if let Some(freed) = shared.get().evict() {
                    self.evicted_bytes.fetch_add(freed, Ordering::Relaxed);
                    if let Some(lease) = self.try_take(bytes) {
                        return Ok(lease);
                    }
                }
            }
        }
        Err(Error::new(Code::ResourceExhausted, self.report(bytes)))
    }

    /// Evicts what nobody uses, and gives back what is kept for what comes. Bytes that were freed.
    pub(crate) fn compact(&self) -> u64 {
        let evicted: u64 = self.coldest_first().iter().filter_map(|shared| shared.get().evict()).sum();
        self.evicted_bytes.fetch_add(evicted, Ordering::Relaxed);
        // What was evicted went back to the store first.
        self.store.trim().max(evicted)
    }

    fn coldest_first(&self) -> Vec<Arc<Slot<Shared>>> {
        let mut alive: Vec<Arc<Slot<Shared>>> = {
            let buffers = self.buffers.lock().unwrap_or_else(PoisonError::into_inner);
            buffers.iter().filter_map(Weak::upgrade).collect()
        };
        alive.sort_by_key(|shared| shared.get().last_use());
        alive
    }

    fn holders(&self) -> Vec<(u64, String)> {
        let mut holders: Vec<(u64, String)> =
            self.coldest_first().iter().filter_map(|shared| shared.get().holds()).collect();
        holders.sort_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
        holders
    }

    /// Who holds how many bytes, the largest first; those that are alike together.
    pub(crate) fn owners(&self) -> Vec<(String, u64)> {
        let mut owners: FxHashMap<String, u64> = FxHashMap::default();
        for (bytes, owner) in self.holders() {
            *owners.entry(owner).or_default() += bytes;
        }
        let mut owners: Vec<(String, u64)> = owners.into_iter().collect();
        owners.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        owners
    }

    /// Why there is no memory, and who holds it.
    fn report(&self, bytes: u64) -> String {
        let held = self.held_bytes.load(Ordering::Relaxed);
        let mut message =
            format!("{bytes} bytes do not fit: {held} of the budget of {} bytes are held", self.budget_bytes);
        let holders = self.holders();
        let more = holders.len().saturating_sub(REPORTED_HOLDERS);
        for (n, (bytes, what)) in holders.iter().take(REPORTED_HOLDERS).enumerate() {
            message += if n == 0 { ", by " } else { ", " };
            message += &format!("{what} ({bytes} bytes)");
        }
        if more > 0 {
            message += &format!(" and {more} more");
        }
        message
    }
}
