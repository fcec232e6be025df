//! The rendezvous of the devices of a run.
//!
//! Devices exchange values in [`Rendezvous`]: each member arrives once, with what it contributes, and may
//! later wait until all have arrived. Arriving never blocks. A rendezvous is known by its [`RendezvousKey`],
//! which every member finds from the program alone, so nothing depends on who comes first.
//!
//! **Invariants:** a device waits only in [`Exchange::wait`]. A deadlock is that some devices wait and none
//! runs: then no rendezvous can complete, and all that wait are released. So it is found exactly when it
//! exists, without a clock. What a device that fails does not contribute is never contributed; the others go
//! on until they end or wait for it in vain, so which devices fail does not depend on timing.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use hlo::InstrId;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::error::RunError;
use crate::value::Tensor;

/// The key of a rendezvous, the same for all its members.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum RendezvousKey {
    /// A group of a collective, the nth time that its members execute it.
    Group { instr: InstrId, group: u32, execution: u64 },
    /// Source-target pair number `pair` of a collective, between two devices, the nth time that they execute
    /// it.
    Pair { instr: InstrId, pair: u32, source: u32, execution: u64 },
    /// The nth transfer from one device to another over a channel.
    Transfer { channel: i64, source: u32, target: u32, number: u64 },
}

/// A rendezvous (XLA: `Rendezvous`): devices that exchange values once.
#[derive(Debug)]
pub(crate) struct Rendezvous {
    pub(crate) key: RendezvousKey,
    /// Numbers of the devices, in the order that the program gives.
    pub(crate) members: Arc<[u32]>,
    contributions: Box<[OnceLock<Vec<Tensor>>]>,
    missing: AtomicUsize,
    /// A value that is the same for all members, computed by the first that needs it.
    pub(crate) shared: OnceLock<Result<Vec<Tensor>, RunError>>,
}

impl Rendezvous {
    fn new(key: RendezvousKey, members: Arc<[u32]>) -> Self {
        let contributions = members.iter().map(|_| OnceLock::new()).collect();
        let missing = AtomicUsize::new(members.len());
        Self { key, members, contributions, missing, shared: OnceLock::new() }
    }

    /// Whether all members have arrived.
    fn is_complete(&self) -> bool {
        self.missing.load(Ordering::Acquire) == 0
    }

    /// The contributions of the members, in the order of [`Rendezvous::members`]. Panics before all have
    /// arrived.
    pub(crate) fn contributions(&self) -> impl Iterator<Item = &[Tensor]> {
        self.contributions
            .iter()
            .map(|c| c.get().expect("invariant: values are taken out after everybody arrived").as_slice())
    }

    /// The members that have not arrived.
    pub(super) fn absent(&self) -> impl Iterator<Item = u32> {
        self.members.iter().zip(&self.contributions).filter(|(_, c)| c.get().is_none()).map(|(&m, _)| m)
    }
}

/// The rendezvous that an operation of a device waits for.
pub(crate) type RendezvousList = SmallVec<[Arc<Rendezvous>; 1]>;

/// The state of a device.
#[derive(Clone, Debug)]
pub(super) enum Status {
    /// It runs.
    Running,
    /// It waits, at this instruction.
    Waiting { at: InstrId, awaited: RendezvousList },
    /// It has finished the program.
    Finished,
    /// It failed.
    Failed,
}

/// The state of each device.
pub(super) type Statuses = SmallVec<[Status; 1]>;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Exchange {
    state: Mutex<State>,
    /// One for each device, notified when it may go on.
    wake: SmallVec<[Condvar; 1]>,
}

#[derive(Debug)]
struct State {
    /// Those that somebody has not arrived at yet.
    incomplete: FxHashMap<RendezvousKey, Arc<Rendezvous>>,
    devices: Statuses,
    running: usize,
    /// No device runs and some wait.
    stuck: bool,
}

/// Nobody can complete what was waited for.
#[derive(Debug)]
pub(crate) struct Stuck;

impl Exchange {
    /// For `devices` devices, all of which run until [`Exchange::end`].
    pub(super) fn new(devices: usize) -> Self {
        let state = State {
            incomplete: FxHashMap::default(),
            devices: (0..devices).map(|_| Status::Running).collect(),
            running: devices,
            stuck: false,
        };
        Self { state: Mutex::new(state), wake: (0..devices).map(|_| Condvar::new()).collect() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Brings the contribution of `members[rank]` to a rendezvous.
    pub(crate) fn arrive(
        &self,
        key: RendezvousKey,
        members: &Arc<[u32]>,
        rank: usize,
        contribution: Vec<Tensor>,
    ) -> Arc<Rendezvous> {
        let mut state = self.state();
        let rendezvous = match state.incomplete.get(&key) {
            Some(rendezvous) => rendezvous.clone(),
            None => {
                let rendezvous = Arc::new(Rendezvous::new(key.clone(), members.clone()));
                state.incomplete.insert(key.clone(), rendezvous.clone());
                rendezvous
            }
        };
        if rendezvous.contributions[rank].set(contribution).is_err() {
            unreachable!("invariant: a device arrives at a rendezvous once");
        }
        if rendezvous.missing.fetch_sub(1, Ordering::AcqRel) == 1 {
            state.incomplete.remove(&key);
            for &member in rendezvous.members.iter() {
                state.release(member, &self.wake);
            }
        }
        rendezvous
    }

    /// Waits until all members of all these rendezvous have arrived. `at` is where the device stands, for
    /// reports.
    pub(crate) fn wait(&self, device: u32, at: InstrId, awaited: &RendezvousList) -> Result<(), Stuck> {
        if awaited.iter().all(|m| m.is_complete()) {
            return Ok(());
        }
        let device = device as usize;
        let mut state = self.state();
        if awaited.iter().all(|m| m.is_complete()) {
            return Ok(());
        }
        state.devices[device] = Status::Waiting { at, awaited: awaited.clone() };
        state.stop_running(&self.wake);
        while !state.stuck {
            if matches!(state.devices[device], Status::Running) {
                return Ok(());
            }
            state = self.wake[device].wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        Err(Stuck)
    }

    /// A device has finished. One that was stuck stays so for the report.
    pub(super) fn end(&self, device: u32, failed: bool) {
        let mut state = self.state();
        let status = &mut state.devices[device as usize];
        if let Status::Running = status {
            *status = if failed { Status::Failed } else { Status::Finished };
            state.stop_running(&self.wake);
        }
    }

    /// The last action of each device.
    pub(super) fn statuses(&self) -> Statuses {
        self.state().devices.clone()
    }
}

impl State {
    /// Lets a device go on if it waits for nothing any more.
    fn release(&mut self, device: u32, wake: &[Condvar]) {
        let status = &mut self.devices[device as usize];
        if let Status::Waiting { awaited, .. } = status
            && awaited.iter().all(|m| m.is_complete())
        {
            *status = Status::Running;
            self.running += 1;
            wake[device as usize].notify_one();
        }
    }

    /// One device less runs.
    fn stop_running(&mut self, wake: &[Condvar]) {
        self.running -= 1;
        if self.running == 0 && self.devices.iter().any(|d| matches!(d, Status::Waiting { .. })) {
            self.stuck = true;
            wake.iter().for_each(Condvar::notify_one);
        }
    }
}
