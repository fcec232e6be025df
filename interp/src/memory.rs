//! The account of live bytes.
//!
//! **Invariant:** memory for values is asked for before it is allocated ([`Meter::check`]), so that a program that wants
//! too much is refused and not killed. What is alive is charged when the engine binds a value and given back when the
//! storage is dropped, so shared storage counts once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Live bytes of one run, and their limit.
#[derive(Debug)]
pub(crate) struct Meter {
    live: AtomicU64,
    peak: AtomicU64,
    limit: u64,
}

impl Meter {
    pub(crate) fn new(limit: u64) -> Arc<Self> {
        Arc::new(Self { live: AtomicU64::new(0), peak: AtomicU64::new(0), limit })
    }

    /// Whether `bytes` more fit.
    pub(crate) fn check(&self, bytes: u64) -> bool {
        self.live.load(Ordering::Relaxed).checked_add(bytes).is_some_and(|total| total <= self.limit)
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
        meter.peak.fetch_max(live, Ordering::Relaxed);
        Self { meter: meter.clone(), bytes }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.meter.live.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
