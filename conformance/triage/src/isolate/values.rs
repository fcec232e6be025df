//! Values of the reference that programs of one instruction take.

use std::sync::{Mutex, PoisonError};

use hlo::{ArrayLiteral, InstrId};
use hlo_interp::observe::{Flow, Observer, Site};
use hlo_interp::{Devices, Value};
use rustc_hash::{FxHashMap, FxHashSet};

/// An execution of an instruction: device, instruction, how often it ran before.
pub type At = (u32, InstrId, u64);

/// Keeps the values of some executions.
#[derive(Debug)]
pub struct Keeper {
    /// Instruction and execution.
    wanted: FxHashSet<(InstrId, u64)>,
    devices: Devices,
    values: Mutex<FxHashMap<At, Value>>,
}

impl Keeper {
    pub(crate) fn new(wanted: FxHashSet<(InstrId, u64)>, devices: Devices) -> Self {
        Self { wanted, devices, values: Mutex::default() }
    }

    /// The values that were kept.
    pub fn take(&self) -> FxHashMap<At, Value> {
        std::mem::take(&mut self.values.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Observer for Keeper {
    fn only_looks_on(&self) -> bool {
        true
    }

    fn leave(&self, site: &Site<'_>, result: &Value) -> Flow {
        if site.nesting == 0 && self.wanted.contains(&(site.id, site.execution)) {
            let device = site.device.replica * self.devices.partitions() + site.device.partition;
            let mut values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
            values.insert((device, site.id, site.execution), result.clone());
        }
        Flow::Continue
    }
}

/// Which instructions run, when, and how often.
#[derive(Debug)]
pub(super) struct Survey {
    devices: Devices,
    state: Mutex<Surveyed>,
}

#[derive(Debug, Default)]
struct Surveyed {
    /// By device, instructions in the order of their first executions.
    orders: Vec<Vec<InstrId>>,
    executions: FxHashMap<At, u64>,
    /// The calls that led to the first execution.
    calls: FxHashMap<InstrId, Vec<(InstrId, u64)>>,
}

/// An instruction that runs.
#[derive(Debug)]
pub(super) struct Runs {
    pub(super) id: InstrId,
    /// The number of executions, on the device where that is most.
    pub(super) executions: u64,
    /// The calls that led to its first execution.
    pub(super) calls: Vec<(InstrId, u64)>,
}

impl Survey {
    pub(super) fn new(devices: Devices) -> Self {
        let orders = vec![Vec::new(); devices.count() as usize];
        Self { devices, state: Mutex::new(Surveyed { orders, ..Surveyed::default() }) }
    }

    /// Instructions in the order of their first execution on the first device, then those that only others
    /// run.
    pub(super) fn take(&self) -> Vec<Runs> {
        let mut seen = std::mem::take(&mut *self.state.lock().unwrap_or_else(PoisonError::into_inner));
        let mut most: FxHashMap<InstrId, u64> = FxHashMap::default();
        for ((_, id, _), n) in seen.executions {
            let m = most.entry(id).or_default();
            *m = n.max(*m);
        }
        let order = seen.orders.into_iter().flatten();
        let runs = |id| {
            let calls = seen.calls.remove(&id).unwrap_or_default();
            Some(Runs { id, executions: most.remove(&id)?, calls })
        };
        order.filter_map(runs).collect()
    }
}

impl Observer for Survey {
    fn only_looks_on(&self) -> bool {
        true
    }

    fn leave(&self, site: &Site<'_>, _result: &Value) -> Flow {
        if site.nesting == 0 {
            let device = site.device.replica * self.devices.partitions() + site.device.partition;
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let executions = state.executions.entry((device, site.id, 0)).or_default();
            *executions += 1;
            if *executions == 1 {
                state.orders[device as usize].push(site.id);
                let calls = || site.calls().map(|c| (c.caller, c.iteration)).collect();
                state.calls.entry(site.id).or_insert_with(calls);
            }
        }
        Flow::Continue
    }
}

/// The arrays of a value, tuples flattened.
pub fn arrays(value: &Value) -> Vec<ArrayLiteral> {
    value.arrays().into_iter().map(hlo_interp::Tensor::to_literal).collect()
}
