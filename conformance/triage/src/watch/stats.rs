//! Where a run spends its time and memory: counts, elements, bytes and time of each opcode.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use hlo::Opcode;
use hlo_interp::observe::{Flow, Observer, Site};
use hlo_interp::{Device, Value};
use rustc_hash::FxHashMap;
use serde::Serialize;

/// Counts and times, of all devices together.
#[derive(Debug, Default)]
pub struct Stats {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Of each device the instructions that are running, outermost first.
    running: FxHashMap<Device, Vec<Running>>,
    opcodes: FxHashMap<Opcode, Row>,
    peak: Option<Peak>,
}

#[derive(Debug)]
struct Running {
    since: Instant,
    /// Time of what it called.
    inner: Duration,
    /// Bytes of its operands.
    read: u64,
}

/// Of one opcode.
#[derive(Clone, Copy, Debug, Default)]
pub struct Row {
    /// Executions.
    pub count: u64,
    /// Elements of the results.
    pub elements: u64,
    /// Bytes of operands and results.
    pub bytes: u64,
    /// Time without that of called instructions.
    pub time: Duration,
}

/// When most bytes of arrays were alive.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Peak {
    /// How many.
    pub bytes: u64,
    /// After which instruction, `computation.name`.
    pub after: String,
}

/// What was found.
#[derive(Clone, Debug)]
pub struct Found {
    /// By opcode, most time first.
    pub rows: Vec<(Opcode, Row)>,
    /// The time of all.
    pub time: Duration,
    /// Of one device.
    pub peak: Option<Peak>,
}

impl Stats {
    /// Everything so far.
    pub fn found(&self) -> Found {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut rows: Vec<(Opcode, Row)> = state.opcodes.iter().map(|(&o, &r)| (o, r)).collect();
        rows.sort_by_key(|(opcode, row)| (std::cmp::Reverse(row.time), opcode.name()));
        let time = rows.iter().map(|(_, r)| r.time).sum();
        Found { rows, time, peak: state.peak.clone() }
    }
}

impl Observer for Stats {
    fn only_looks_on(&self) -> bool {
        true
    }

    fn enter(&self, site: &Site<'_>, operands: &[Value]) {
        let read = operands.iter().map(|v| size(v).1).sum();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let running = state.running.entry(site.device).or_default();
        running.push(Running { since: Instant::now(), inner: Duration::ZERO, read });
    }

    fn leave(&self, site: &Site<'_>, result: &Value) -> Flow {
        let now = Instant::now();
        let (elements, written) = size(result);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let State { running, opcodes, peak } = &mut *state;
        let instr = site.instr();
        let row = opcodes.entry(instr.opcode).or_default();
        row.count += 1;
        row.elements += elements;
        if peak.as_ref().is_none_or(|p| p.bytes < site.live_bytes) {
            let after = super::stop::full_name(site.module, instr.parent(), site.id);
            *peak = Some(Peak { bytes: site.live_bytes, after });
        }
        // A parameter is bound, not executed: nothing was entered.
        if instr.opcode != Opcode::Parameter
            && let Some(stack) = running.get_mut(&site.device)
            && let Some(done) = stack.pop()
        {
            let whole = now.duration_since(done.since);
            row.bytes += done.read + written;
            row.time += whole.saturating_sub(done.inner);
            if let Some(caller) = stack.last_mut() {
                caller.inner += whole;
            }
        }
        Flow::Continue
    }
}

/// Elements and bytes of a value.
fn size(value: &Value) -> (u64, u64) {
    match value {
        Value::Array(t) => (t.len() as u64, t.bytes()),
        Value::Tuple(t) => t.iter().map(size).fold((0, 0), |(n, b), (m, c)| (n + m, b + c)),
        Value::Token | Value::Pending(_) => (0, 0),
    }
}
