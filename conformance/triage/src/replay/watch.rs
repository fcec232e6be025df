//! The two observers of a replay: of the reference, whose values it keeps, and of the engine, into which it
//! puts them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hlo::InstrId;
use hlo_interp::observe::{Flow, Observer, Site};
use hlo_interp::{Devices, Value};
use rustc_hash::{FxHashMap, FxHashSet};

use super::store::{self, Entry, Frame, Key, Store};

/// Keeps the values of the instructions that the engine's form has.
#[derive(Debug)]
pub(super) struct Recorder {
    pub(super) store: Arc<Store>,
    /// By instruction of the source.
    pub(super) wanted: Arc<[bool]>,
    pub(super) devices: Devices,
    /// By device, operands of what was entered and not left; `None`: nobody asks for them.
    pub(super) entered: Option<Vec<Mutex<Entered>>>,
}

/// Instructions that a device has entered, and their operands.
type Entered = Vec<(InstrId, Vec<Value>)>;

impl Recorder {
    /// The operands of an instruction that is left.
    fn operands(&self, site: &Site<'_>) -> Vec<Value> {
        let Some(entered) = &self.entered else { return Vec::new() };
        let device = number(self.devices, site) as usize;
        let mut entered = entered[device].lock().unwrap_or_else(PoisonError::into_inner);
        let Some(at) = entered.iter().rposition(|(id, _)| *id == site.id) else { return Vec::new() };
        entered.truncate(at + 1);
        entered.pop().map_or_else(Vec::new, |(_, operands)| operands)
    }
}

impl Observer for Recorder {
    fn enter(&self, site: &Site<'_>, operands: &[Value]) {
        if let Some(entered) = &self.entered
            && site.nesting == 0
            && self.wanted[site.id.index()]
        {
            let device = number(self.devices, site) as usize;
            let mut entered = entered[device].lock().unwrap_or_else(PoisonError::into_inner);
            entered.push((site.id, operands.to_vec()));
        }
    }

    fn leave(&self, site: &Site<'_>, result: &Value) -> Flow {
        if site.nesting > 0 || !self.wanted[site.id.index()] {
            return Flow::Continue;
        }
        let operands = self.operands(site);
        if is_promised(result) {
            return Flow::Continue;
        }
        let device = number(self.devices, site);
        let calls = site.calls().map(|c| (c.caller, c.iteration));
        let (path, frame) = frame(device, site.computation(), calls);
        let entry = Entry { value: result.clone(), execution: site.execution, operands };
        if self.store.put(Key { device, id: site.id, path }, frame, entry) {
            Flow::Continue
        } else {
            Flow::Stop
        }
    }
}

fn number(devices: Devices, site: &Site<'_>) -> u32 {
    site.device.replica * devices.partitions() + site.device.partition
}

/// The path of an instruction's calls, and the run of the computation that it is in.
fn frame(
    device: u32,
    computation: hlo::ComputationId,
    calls: impl Iterator<Item = (InstrId, u64)>,
) -> (u64, Frame) {
    let (mut path, mut caller, mut iteration) = (0, None, 0);
    for call in calls {
        caller = Some((call.0, path));
        iteration = call.1;
        path = store::extend(path, call);
    }
    (path, Frame { device, computation, caller, iteration })
}

/// Whether something in a value is only promised: that belongs to its run.
pub(super) fn is_promised(value: &Value) -> bool {
    match value {
        Value::Array(_) | Value::Token => false,
        Value::Tuple(t) => t.iter().any(is_promised),
        Value::Pending(_) => true,
    }
}

/// Puts the reference's values into the run of an engine and keeps what the engine had there, if its bits
/// differ.
#[derive(Debug)]
pub(super) struct Injector {
    pub(super) store: Arc<Store>,
    /// By instruction of the form, that of the source.
    pub(super) origins: Vec<Option<InstrId>>,
    /// By instruction of the source, whether it is looked at.
    pub(super) wanted: Arc<[bool]>,
    /// By instruction of the source, its computation.
    pub(super) parents: Vec<hlo::ComputationId>,
    pub(super) devices: Devices,
    pub(super) nan_bits: bool,
    /// The maximum number of bytes of the engine's values that are kept.
    pub(super) limit: u64,
    pub(super) seen: Mutex<Seen>,
}

/// What was seen of a run.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// By device, how many instructions it has executed.
    clock: FxHashMap<u32, u64>,
    /// By instruction of the source, executions that were compared.
    pub(super) executions: FxHashMap<InstrId, u64>,
    /// Executions without an instruction of the source, or by a way that the source does not have.
    pub(super) unmatched: u64,
    /// Executions whose bits differ.
    pub(super) differing: FxHashMap<Key, Differs>,
    /// Differing executions whose values were too many to keep.
    pub(super) dropped: u64,
    bytes: u64,
    /// Runs of computations, and when they began.
    pub(super) frames: FxHashMap<Frame, u64>,
    /// Runs of computations that the reference does not have, in order.
    pub(super) extra: Vec<(u64, Frame)>,
    known_extra: FxHashSet<Frame>,
}

/// An execution whose bits differ.
#[derive(Debug)]
pub(super) struct Differs {
    /// When it was, on its device.
    pub(super) order: u64,
    /// The calls that led to it, of the source, and how often the instruction ran before.
    pub(super) calls: Vec<(InstrId, u64)>,
    pub(super) execution: u64,
    pub(super) expected: Value,
    pub(super) actual: Value,
    /// What it works on; empty if that was not kept.
    pub(super) operands: Vec<Value>,
}

impl Injector {
    pub(super) fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The calls of a site as those of the source; `None` if some caller has no origin.
    fn calls(&self, site: &Site<'_>) -> Option<Vec<(InstrId, u64)>> {
        site.calls().map(|c| Some((self.origins[c.caller.index()]?, c.iteration))).collect()
    }
}

impl Observer for Injector {
    fn looks_at(&self, id: InstrId) -> bool {
        self.origins[id.index()].is_none_or(|origin| self.wanted[origin.index()])
    }

    fn leave(&self, site: &Site<'_>, result: &Value) -> Flow {
        if site.nesting > 0 || !self.looks_at(site.id) {
            return Flow::Continue;
        }
        let device = number(self.devices, site);
        let order = {
            let mut seen = self.lock();
            let clock = seen.clock.entry(device).or_default();
            *clock += 1;
            *clock
        };
        let (Some(id), Some(calls)) = (self.origins[site.id.index()], self.calls(site)) else {
            self.lock().unmatched += 1;
            return Flow::Continue;
        };
        if is_promised(result) {
            return Flow::Continue;
        }
        let (path, frame) = frame(device, self.parents[id.index()], calls.iter().copied());
        let key = Key { device, id, path };
        let taken = self.store.take(&key);
        let mut seen = self.lock();
        let Some(entry) = taken else {
            // Where the reference did run the computation this instruction is needed by nothing there.
            seen.unmatched += 1;
            if !self.store.has_frame(&frame) && seen.known_extra.insert(frame) {
                seen.extra.push((order, frame));
            }
            return Flow::Continue;
        };
        seen.frames.entry(frame).or_insert(order);
        *seen.executions.entry(id).or_default() += 1;
        if same_value(&entry.value, result, true) {
            return Flow::Continue;
        }
        if self.nan_bits || !same_value(&entry.value, result, false) {
            let bytes = store::bytes(result) + store::bytes(&entry.value);
            if seen.bytes.saturating_add(bytes) > self.limit {
                seen.dropped += 1;
            } else {
                seen.bytes += bytes;
                let (expected, actual) = (entry.value.clone(), result.clone());
                let (execution, mut operands) = (entry.execution, entry.operands);
                let more = operands.iter().map(store::bytes).sum::<u64>();
                if seen.bytes.saturating_add(more) > self.limit {
                    operands.clear();
                } else {
                    seen.bytes += more;
                }
                seen.differing.insert(key, Differs { order, calls, execution, expected, actual, operands });
            }
        }
        Flow::Replace(entry.value)
    }
}

/// Whether two values have the same bits; all NaNs being the same unless `nan_bits`.
fn same_value(a: &Value, b: &Value, nan_bits: bool) -> bool {
    match (a, b) {
        (Value::Array(a), Value::Array(b)) => {
            a.dims() == b.dims() && hlo_execution::verdict::same_buffers(a.buffer(), b.buffer(), nan_bits)
        }
        (Value::Tuple(a), Value::Tuple(b)) => {
            a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| same_value(a, b, nan_bits))
        }
        (Value::Token, Value::Token) => true,
        (Value::Array(_) | Value::Tuple(_) | Value::Token | Value::Pending(_), _) => false,
    }
}
