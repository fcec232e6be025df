//! Numbers about a client, all in one call.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::cache::CacheStatistics;
use crate::client::Client;
use crate::memory::MemoryStatistics;

/// What a client did and holds.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Metrics {
    /// The caches.
    pub cache: CacheStatistics,
    /// How long compiling took, all programs together.
    pub compile_time: Duration,
    /// How long loading from the cache's folder took.
    pub load_time: Duration,
    /// Executions that ended well.
    pub executions: u64,
    /// Executions that ended with an error.
    pub failed_executions: u64,
    /// The device's memory.
    pub memory: MemoryStatistics,
    /// Constants of 4 KiB and more of loaded programs in bytes, those that several programs share once.
    pub constant_bytes: u64,
    /// Who holds how many bytes of it, the largest first. Known of clients that have a memory budget or
    /// [`ClientOptions::track_owners`](crate::ClientOptions::track_owners), else empty.
    pub owners: Vec<(String, u64)>,
}

/// What is counted as it happens.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) executions: AtomicU64,
    pub(crate) failed_executions: AtomicU64,
}

impl Client {
    /// Numbers about this client.
    pub fn metrics(&self) -> Metrics {
        let inner = &*self.inner;
        let (compile_time, load_time) = inner.cache.times();
        Metrics {
            cache: inner.cache.statistics(),
            compile_time,
            load_time,
            executions: inner.counters.executions.load(Ordering::Relaxed),
            failed_executions: inner.counters.failed_executions.load(Ordering::Relaxed),
            memory: inner.memory.statistics(),
            constant_bytes: inner.backend.constant_bytes(),
            owners: inner.memory.owners(),
        }
    }
}

impl Metrics {
    /// As a JSON object; times in seconds.
    pub fn to_json(&self) -> String {
        let (cache, memory) = (&self.cache, &self.memory);
        let numbers = [
            ("compilations", cache.compilations),
            ("memory_hits", cache.memory_hits),
            ("disk_hits", cache.disk_hits),
            ("disk_dropped", cache.disk_dropped),
            ("disk_failures", cache.disk_failures),
            ("failures", cache.failures),
            ("evictions", cache.evictions),
            ("executions", self.executions),
            ("failed_executions", self.failed_executions),
            ("held_bytes", memory.held_bytes),
            ("peak_bytes", memory.peak_bytes),
            ("evicted_bytes", memory.evicted_bytes),
            ("constant_bytes", self.constant_bytes),
        ];
        let mut text = String::from("{");
        let valid = "invariant: writing to a string does not fail";
        for (name, number) in numbers {
            write!(text, "\"{name}\":{number},").expect(valid);
        }
        if let Some(budget) = memory.budget_bytes {
            write!(text, "\"budget_bytes\":{budget},").expect(valid);
        }
        let (compile, load) = (self.compile_time.as_secs_f64(), self.load_time.as_secs_f64());
        write!(text, "\"compile_s\":{compile:.6},\"load_s\":{load:.6},\"owners\":[").expect(valid);
        for (n, (owner, bytes)) in self.owners.iter().enumerate() {
            text.push_str(if n > 0 { ",{\"owner\":" } else { "{\"owner\":" });
            text.push_str(&serde_json::Value::from(&**owner).to_string());
            write!(text, ",\"bytes\":{bytes}}}").expect(valid);
        }
        text.push_str("]}");
        text
    }
}
