//! The reference's values between its run and the engine's.
//!
//! Mostly the reference runs first and everything fits. A program whose values are too many runs beside the
//! engine instead, in lockstep: the reference waits while too much is kept, unless the engine waits for a
//! value that is yet to come.
//!
//! **Invariant:** neither run waits while the other waits for it: who puts goes on when anybody takes in
//! vain, and everybody goes on when the other run has ended.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use hlo::elided::splitmix64;
use hlo::{ComputationId, InstrId};
use hlo_interp::Value;
use rustc_hash::{FxHashMap, FxHashSet};

/// An execution of an instruction of the source: by the calls that led to it, so that an engine that leaves
/// out another call of the same computation does not shift it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Key {
    /// Number of the device.
    pub(super) device: u32,
    /// The instruction.
    pub(super) id: InstrId,
    /// [`extend`] of the calls.
    pub(super) path: u64,
}

/// One run of a computation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Frame {
    /// Number of the device.
    pub(super) device: u32,
    /// The computation, of the source.
    pub(super) computation: ComputationId,
    /// The calling instruction and the [`extend`] of the calls to that; `None` of the entry.
    pub(super) caller: Option<(InstrId, u64)>,
    /// For a loop its iteration.
    pub(super) iteration: u64,
}

/// The path of one call more; that of no calls is 0. Of two executions of an instruction it is the same by
/// accident once in 2^64.
pub(super) fn extend(path: u64, (caller, iteration): (InstrId, u64)) -> u64 {
    // Every bit of what goes in reaches every bit of what comes out.
    splitmix64(splitmix64(path ^ splitmix64(caller.index() as u64)).wrapping_add(iteration))
}

/// What the reference has at an execution.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) value: Value,
    /// How often the instruction ran before in the reference.
    pub(super) execution: u64,
    /// What it works on: values that are kept anyway, of other instructions or of the program's arguments;
    /// empty if nobody asks for them.
    pub(super) operands: Vec<Value>,
}

/// The values that were put and not taken yet.
#[derive(Debug)]
pub(super) struct Store {
    state: Mutex<State>,
    changed: Condvar,
    /// More bytes than this are put only when somebody waits for a value.
    soft: u64,
    /// More bytes than this are never kept.
    hard: u64,
    /// Whether the two runs are side by side.
    lockstep: bool,
}

#[derive(Debug, Default)]
struct State {
    values: FxHashMap<Key, Entry>,
    frames: FxHashSet<Frame>,
    bytes: u64,
    /// What is taken in vain until it is put.
    awaited: FxHashSet<Key>,
    /// No more values will come.
    done: bool,
    /// Nobody takes values any more.
    abandoned: bool,
    /// There was no space for a value.
    overflow: bool,
}

impl Store {
    /// Keeps at most `limit` bytes.
    pub(super) fn new(limit: u64, lockstep: bool) -> Self {
        let soft = if lockstep { limit / 2 } else { limit };
        Self { state: Mutex::default(), changed: Condvar::new(), soft, hard: limit, lockstep }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the value of an execution. False: the memory limit is reached, and the run is of no use.
    pub(super) fn put(&self, key: Key, frame: Frame, entry: Entry) -> bool {
        let bytes = bytes(&entry.value);
        let mut state = self.lock();
        while self.lockstep
            && state.bytes.saturating_add(bytes) > self.soft
            && state.bytes > 0
            && state.awaited.is_empty()
            && !state.abandoned
        {
            state = self.wait(state);
        }
        if state.abandoned {
            return true;
        }
        if state.overflow || state.bytes.saturating_add(bytes) > self.hard {
            state.overflow = true;
            self.changed.notify_all();
            return false;
        }
        state.bytes += bytes;
        state.frames.insert(frame);
        state.values.insert(key, entry);
        // From here on nobody waits for it, although whoever did has yet to wake up.
        if state.awaited.remove(&key) {
            self.changed.notify_all();
        }
        true
    }

    /// Takes the value of an execution; `None`: the reference has none.
    pub(super) fn take(&self, key: &Key) -> Option<Entry> {
        let mut state = self.lock();
        loop {
            if let Some(entry) = state.values.remove(key) {
                state.bytes -= bytes(&entry.value);
                if self.lockstep {
                    self.changed.notify_all();
                }
                return Some(entry);
            }
            if state.done || state.overflow {
                return None;
            }
            state.awaited.insert(*key);
            self.changed.notify_all();
            state = self.wait(state);
        }
    }

    /// Says that no more values will come.
    pub(super) fn finish(&self) {
        self.lock().done = true;
        self.changed.notify_all();
    }

    /// Says that nobody takes values any more.
    pub(super) fn abandon(&self) {
        let mut state = self.lock();
        state.abandoned = true;
        state.values.clear();
        self.changed.notify_all();
    }

    /// Whether there was no space for a value.
    pub(super) fn overflown(&self) -> bool {
        self.lock().overflow
    }

    /// Whether the reference ran this computation so.
    pub(super) fn has_frame(&self, frame: &Frame) -> bool {
        self.lock().frames.contains(frame)
    }

    /// All runs of computations in the reference.
    pub(super) fn frames(&self) -> Vec<Frame> {
        self.lock().frames.iter().copied().collect()
    }
}

/// Bytes of the arrays of a value.
pub(super) fn bytes(value: &Value) -> u64 {
    match value {
        Value::Array(t) => t.bytes(),
        Value::Tuple(t) => t.iter().map(bytes).sum(),
        Value::Token | Value::Pending(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use hlo_interp::Tensor;

    fn key(i: usize) -> Key {
        Key { device: 0, id: InstrId::from_index(i), path: 0 }
    }

    fn put(store: &Store, i: usize) -> bool {
        let frame =
            Frame { device: 0, computation: ComputationId::from_index(0), caller: None, iteration: 0 };
        let value = Tensor::from_vec(hlo::Dims::from_slice(&[4]), vec![0f32; 4]).into();
        store.put(key(i), frame, Entry { value, execution: 0, operands: Vec::new() })
    }

    #[test]
    fn without_lockstep_what_does_not_fit_is_refused() {
        let store = Store::new(32, false);
        assert!(put(&store, 0) && put(&store, 1) && !put(&store, 2));
        assert!(store.overflown());
    }

    #[test]
    fn in_lockstep_all_values_pass_through_little_room() {
        for backwards in [false, true] {
            let store = Arc::new(Store::new(if backwards { 16 * 64 } else { 48 }, true));
            let puts = store.clone();
            let thread = std::thread::spawn(move || {
                let all = (0..64).all(|i| put(&puts, i));
                puts.finish();
                all
            });
            for i in 0..64 {
                let i = if backwards { 63 - i } else { i };
                assert!(store.take(&key(i)).is_some());
            }
            assert!(store.take(&key(64)).is_none());
            assert!(thread.join().unwrap());
        }
    }

    #[test]
    fn nobody_waits_for_a_run_that_has_ended() {
        let store = Arc::new(Store::new(32, true));
        let puts = store.clone();
        let thread = std::thread::spawn(move || (0..64).all(|i| put(&puts, i)));
        store.abandon();
        assert!(thread.join().unwrap());
    }

    #[test]
    fn paths_tell_iterations_and_callers_apart() {
        let at = |c: &[(usize, u64)]| c.iter().map(|&(id, n)| (InstrId::from_index(id), n)).fold(0, extend);
        let all = [
            at(&[]),
            at(&[(0, 0)]),
            at(&[(0, 1)]),
            at(&[(1, 0)]),
            at(&[(0, 0), (1, 0)]),
            at(&[(1, 0), (0, 0)]),
        ];
        let mut unique = all.to_vec();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), all.len());
    }
}
