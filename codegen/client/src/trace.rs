//! What a client did and when: spans of compilations, loads from the cache, transfers and executions, as
//! Chrome's `about:tracing` and Perfetto read them.
//!
//! **Invariants:** an execution of a client without a [`Trace`] does not look at the clock; what is recorded
//! is bounded ([`MAX_SPANS`]), and what goes beyond is counted.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The most spans that a trace keeps.
pub const MAX_SPANS: usize = 1 << 20;

/// What was done in a span.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SpanKind {
    /// A program was looked up, and loaded or compiled if it had to be.
    Lookup,
    /// A program was compiled.
    Compile,
    /// A compiled program was read from the cache's folder and loaded.
    Load,
    /// A compiled program was written to the cache's folder.
    Store,
    /// An array was copied to the device.
    Transfer,
    /// A program was executed.
    Run,
}

impl SpanKind {
    /// How it is called in traces.
    pub fn name(self) -> &'static str {
        match self {
            SpanKind::Lookup => "lookup",
            SpanKind::Compile => "compile",
            SpanKind::Load => "load",
            SpanKind::Store => "store",
            SpanKind::Transfer => "transfer",
            SpanKind::Run => "run",
        }
    }
}

/// Something that took time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Span {
    /// What was done.
    pub kind: SpanKind,
    /// Of which program or array.
    pub name: Arc<str>,
    /// When it began, since the trace was made.
    pub begin: Duration,
    /// How long it took.
    pub took: Duration,
    /// By which thread; a number that this trace gave.
    pub thread: u64,
}

#[derive(Debug)]
struct Recorded {
    start: Instant,
    spans: Mutex<Vec<Span>>,
    lost: AtomicU64,
}

/// Records what clients do that were given it ([`ClientOptions::trace`](crate::ClientOptions::trace)). Clones
/// are the same record.
#[derive(Clone, Debug)]
pub struct Trace(Arc<Recorded>);

impl Default for Trace {
    fn default() -> Self {
        Self(Arc::new(Recorded { start: Instant::now(), spans: Mutex::default(), lost: AtomicU64::new(0) }))
    }
}

fn thread_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local!(static NUMBER: u64 = NEXT.fetch_add(1, Ordering::Relaxed));
    NUMBER.with(|number| *number)
}

impl Trace {
    /// Without any spans.
    pub fn new() -> Self {
        Self::default()
    }

    pub(crate) fn record(&self, kind: SpanKind, name: &Arc<str>, began: Instant) {
        let took = began.elapsed();
        let begin = began.saturating_duration_since(self.0.start);
        let span = Span { kind, name: Arc::clone(name), begin, took, thread: thread_number() };
        let mut spans = self.0.spans.lock().unwrap_or_else(PoisonError::into_inner);
        if spans.len() < MAX_SPANS {
            spans.push(span);
        } else {
            self.0.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// What was recorded, in the order in which it ended.
    pub fn spans(&self) -> Vec<Span> {
        self.0.spans.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many spans were too many.
    pub fn lost(&self) -> u64 {
        self.0.lost.load(Ordering::Relaxed)
    }

    /// As Chrome's trace format (JSON), times in microseconds.
    pub fn to_chrome(&self) -> String {
        let mut text = String::from("{\"traceEvents\":[");
        for (n, span) in self.spans().iter().enumerate() {
            if n > 0 {
                text.push(',');
            }
            text.push_str("{\"name\":");
            text.push_str(&serde_json::Value::from(&*span.name).to_string());
            let (begin, took) = (span.begin.as_nanos(), span.took.as_nanos());
            let (kind, thread) = (span.kind.name(), span.thread);
            let written = write!(
                text,
                ",\"cat\":\"{kind}\",\"ph\":\"X\",\"pid\":1,\"tid\":{thread},\"ts\":{}.{:03},\"dur\":{}.{:03}}}",
                begin / 1000,
                begin % 1000,
                took / 1000,
                took % 1000
            );
            written.expect("invariant: writing to a string does not fail");
        }
        text.push_str("],\"displayTimeUnit\":\"ns\"}");
        text
    }
}
