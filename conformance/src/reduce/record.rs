//! The values of a reference run, for moves that put a value in place of what computes it.

use std::sync::{Arc, Mutex, PoisonError};

use hlo::{ArrayLiteral, InstrId, Literal};
use hlo_interp::observe::{Flow, Observer, Site};
use hlo_interp::{Device, Devices, Interpreter, Options, Value};
use rustc_hash::FxHashMap;

use super::Candidate;
use crate::inputs::to_parameters;

/// How far a run of the original may go.
pub(crate) const FUEL: u64 = 100_000_000;
/// The most bytes alive in a run of the reference.
pub(crate) const MEMORY: u64 = 4 << 30;
/// The most bytes of values that are kept.
const KEPT: u64 = 1 << 30;

/// The first value of each instruction on each device; arrays only. What does not run gives what it had until then.
#[derive(Debug, Default)]
pub(crate) struct Recorded {
    values: Values,
    devices: Devices,
    /// Instructions executed on a device, if the run ended well.
    pub(crate) fuel: Option<u64>,
}

type Values = FxHashMap<(InstrId, Device), Value>;

/// Values, and how many bytes they are.
#[derive(Debug, Default)]
struct Recorder {
    kept: Mutex<(Values, u64)>,
}

impl Observer for Recorder {
    fn leave(&self, site: &Site<'_>, result: &Value) -> Flow {
        if site.execution == 0 && site.nesting == 0 && result.as_array().is_some() {
            let bytes: u64 = result.arrays().iter().map(|a| a.bytes()).sum();
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            if kept.1 + bytes <= KEPT {
                kept.1 += bytes;
                kept.0.insert((site.id, site.device), result.clone());
            }
        }
        Flow::Continue
    }
}

impl Recorded {
    /// Runs a program and keeps the values of its instructions.
    pub(crate) fn of(candidate: &Candidate, fuel: u64) -> Recorded {
        let module = &candidate.module;
        let Some(devices) = Devices::new(module.replica_count(), module.num_partitions()) else {
            return Recorded::default();
        };
        let arguments: Result<Vec<Vec<Literal>>, _> =
            candidate.inputs.iter().map(|arrays| to_parameters(module, arrays.clone())).collect();
        let Ok(arguments) = arguments else { return Recorded::default() };
        let arguments =
            arguments.into_iter().map(|a| a.into_iter().map(Value::from_literal).collect()).collect();
        let recorder = Arc::new(Recorder::default());
        let observer: Arc<dyn Observer> = recorder.clone();
        let options = Options {
            fuel: Some(fuel),
            memory_limit_bytes: MEMORY,
            observer: Some(observer),
            ..Options::default()
        };
        // A run that traps has recorded what came before.
        let ran = Interpreter::new(module, options).run_devices(devices, arguments);
        let fuel = ran.ok().map(|devices| devices.iter().map(|(_, stats)| stats.fuel).max().unwrap_or(0));
        let values = std::mem::take(&mut recorder.kept.lock().unwrap_or_else(PoisonError::into_inner).0);
        Recorded { values, devices, fuel }
    }

    /// The value of an instruction on each device.
    pub(crate) fn on_devices(&self, id: InstrId) -> Option<Vec<ArrayLiteral>> {
        (0..self.devices.count()).map(|d| self.on(id, self.devices.device(d))).collect()
    }

    /// The value of an instruction, where it is the same on all devices.
    pub(crate) fn value(&self, id: InstrId) -> Option<ArrayLiteral> {
        let all = self.on_devices(id)?;
        let first = all.first()?;
        all.iter().all(|v| v == first).then(|| first.clone())
    }

    /// Elements of the value of an instruction.
    pub(crate) fn len(&self, id: InstrId) -> Option<usize> {
        self.values.get(&(id, Device::default()))?.as_array().map(|t| t.len())
    }

    fn on(&self, id: InstrId, device: Device) -> Option<ArrayLiteral> {
        match self.values.get(&(id, device))?.clone().into_literal() {
            Literal::Array(a) => Some(a),
            Literal::Tuple(_) | Literal::Token => None,
        }
    }
}
