//! The values of a reference run, for moves that put a value in place of what computes it.

use std::sync::{Arc, Mutex, PoisonError};

use hlo::{ArrayLiteral, InstrId, Literal};
use hlo_interp::observe::{Flow, Observer, Site};
use hlo_interp::{Device, Devices, Interpreter, Options, Value};
use rustc_hash::FxHashMap;

use super::Candidate;
use hlo_execution::run::to_parameters;

/// The maximum number of bytes alive in a run of the reference.
pub(crate) const MEMORY_LIMIT_BYTES: u64 = 4 << 30;
/// The maximum number of bytes of values that are kept.
const MAX_KEPT_BYTES: u64 = 1 << 30;

/// The first value of each instruction on each device, and the last of those that run more than once; arrays
/// only. What does not run gives what it had until then.
#[derive(Debug, Default)]
pub(crate) struct Recorded {
    values: Values,
    last: Values,
    devices: Devices,
}

type Values = FxHashMap<(InstrId, Device), Value>;

/// First values, and how many bytes they are; small last values.
#[derive(Debug, Default)]
struct Recorder {
    kept: Mutex<(Values, u64, Values)>,
}

/// The maximum number of elements of a last value that is kept.
const MAX_LAST_VALUE_ELEMENTS: usize = 1024;

impl Observer for Recorder {
    fn only_looks_on(&self) -> bool {
        true
    }

    fn leave(&self, site: &Site<'_>, result: &Value) -> Flow {
        let small = result.as_array().is_some_and(|t| t.len() <= MAX_LAST_VALUE_ELEMENTS);
        if site.execution > 0 && site.nesting == 0 && small {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.2.insert((site.id, site.device), result.clone());
        }
        if site.execution == 0 && site.nesting == 0 && result.as_array().is_some() {
            let bytes: u64 = result.arrays().iter().map(|a| a.bytes()).sum();
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            if kept.1 + bytes <= MAX_KEPT_BYTES {
                kept.1 += bytes;
                kept.0.insert((site.id, site.device), result.clone());
            }
        }
        Flow::Continue
    }
}

impl Recorded {
    /// Runs a program and keeps the values of its instructions; what comes before a run traps or is out of
    /// fuel is kept too.
    pub(crate) fn of(candidate: &Candidate, fuel: u64) -> Recorded {
        let recorder = Arc::new(Recorder::default());
        let Some((devices, _)) = run(candidate, fuel, Some(recorder.clone())) else {
            return Recorded::default();
        };
        let (values, _, last) =
            std::mem::take(&mut *recorder.kept.lock().unwrap_or_else(PoisonError::into_inner));
        Recorded { values, last, devices }
    }

    /// The value of an instruction on each device.
    pub(crate) fn on_devices(&self, id: InstrId) -> Option<Vec<ArrayLiteral>> {
        (0..self.devices.count()).map(|d| on(&self.values, id, self.devices.device(d))).collect()
    }

    /// The last value of an instruction that runs more than once, where it is the same on all devices.
    pub(crate) fn last(&self, id: InstrId) -> Option<ArrayLiteral> {
        let all = (0..self.devices.count()).map(|d| on(&self.last, id, self.devices.device(d)));
        let all: Vec<ArrayLiteral> = all.collect::<Option<_>>()?;
        let first = all.first()?;
        all.iter().all(|v| v == first).then(|| first.clone())
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
}

fn on(values: &Values, id: InstrId, device: Device) -> Option<ArrayLiteral> {
    match values.get(&(id, device))?.clone().into_literal() {
        Literal::Array(a) => Some(a),
        Literal::Tuple(_) | Literal::Token => None,
    }
}

/// How many instructions a program executes on a device; `None` if it does not end well, or not within
/// `most`.
pub(crate) fn fuel(candidate: &Candidate, most: u64) -> Option<u64> {
    run(candidate, most, None)?.1
}

/// Runs a program: on which devices, and the fuel if it ends well. `None` if it cannot be started.
fn run(candidate: &Candidate, fuel: u64, recorder: Option<Arc<Recorder>>) -> Option<(Devices, Option<u64>)> {
    let module = &candidate.module;
    let devices = Devices::new(module.replica_count(), module.num_partitions())?;
    let arguments: Result<Vec<Vec<Literal>>, _> =
        candidate.inputs.iter().map(|arrays| to_parameters(module, arrays.clone())).collect();
    let arguments =
        arguments.ok()?.into_iter().map(|a| a.into_iter().map(Value::from_literal).collect()).collect();
    let observer = recorder.map(|r| -> Arc<dyn Observer> { r });
    let custom_calls = hlo_system::loaded::registry();
    let options = Options {
        fuel: Some(fuel),
        memory_limit_bytes: MEMORY_LIMIT_BYTES,
        observer,
        custom_calls,
        ..Options::default()
    };
    let ran = Interpreter::new(module, options).run_devices(devices, arguments);
    Some((devices, ran.ok().map(|devices| devices.iter().map(|(_, stats)| stats.fuel).max().unwrap_or(0))))
}
