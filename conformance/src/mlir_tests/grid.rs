//! `interpreter.run_parallel`: a function on each device of a grid, as a custom call.
//!
//! All programs of the grid must be one function: devices meet at the instructions of one program.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use hlo::{AttrKey, AttrValue, ComputationId, Module, Shape};
use hlo_interp::custom_call::{Call, CustomCall, Invocation};
use hlo_interp::device::host::Host;
use hlo_interp::{Devices, Interpreter, Options, RunError, Value};

/// The implementation, which runs programs as these options say.
pub(super) struct RunParallel {
    pub(super) accumulate: hlo_interp::Accumulate,
    pub(super) fuel: Option<u64>,
    pub(super) memory_limit_bytes: u64,
}

/// The feeds of the devices: values in the order of requests.
#[derive(Debug)]
struct Queue(Mutex<VecDeque<Value>>);

impl Host for Queue {
    fn infeed(&self, _: u32, shape: &Shape, _: &str) -> Result<Value, String> {
        let next = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let value = next.ok_or("the queue is empty")?;
        if value.shape().compatible(shape) {
            Ok(value)
        } else {
            Err("the queue has a value of another type".to_owned())
        }
    }

    fn outfeed(&self, _: u32, _: &Value, _: &str) -> Result<(), String> {
        Ok(())
    }

    fn receive(&self, _: u32, channel: i64, _: &Shape) -> Result<Value, String> {
        Err(format!("no host sends over channel {channel}"))
    }

    fn send(&self, _: u32, _: i64, _: &Value) -> Result<(), String> {
        Ok(())
    }
}

impl RunParallel {
    fn options(&self) -> Options {
        Options {
            accumulate: self.accumulate,
            fuel: self.fuel,
            memory_limit_bytes: self.memory_limit_bytes,
            ..Options::default()
        }
    }
}

/// The same module with another entry.
fn with_entry(module: &Module, entry: ComputationId) -> Module {
    let mut module = module.clone();
    module.set_entry(entry);
    module
}

impl CustomCall for RunParallel {
    fn run(
        &self,
        call: &Call<'_>,
        _invocation: &Invocation<'_>,
        operands: Vec<Value>,
    ) -> Result<Value, RunError> {
        let called = match call.instruction.attrs.get(AttrKey::CalledComputations) {
            Some(AttrValue::Computations(list)) => &list[..],
            _ => &[],
        };
        let mut sizes = call.backend_config().split(' ').map(|n| n.parse::<i64>().unwrap_or(0));
        let (replicas, partitions) = (sizes.next().unwrap_or(0), sizes.next().unwrap_or(0));
        let Some(devices) = Devices::new(replicas, partitions) else {
            return Err(call.unsupported("is of a grid without devices"));
        };
        let count = devices.count() as usize;
        let Some((programs, feeds)) = called.split_at_checked(count) else {
            return Err(call.unsupported("names fewer programs than devices"));
        };
        let program = programs[0];
        if programs.iter().any(|&p| p != program) {
            return Err(call.unsupported("runs different functions on the devices"));
        }
        let mut queue = VecDeque::new();
        for &feed in feeds {
            let module = with_entry(call.module, feed);
            let value = Interpreter::new(&module, self.options()).run(Vec::new())?;
            queue.push_back(value);
        }
        let module = with_entry(call.module, program);
        let arguments = module.computation(program).parameters().len();
        if operands.len() != arguments * count {
            return Err(call.unsupported("has not as many operands as the functions have arguments"));
        }
        let mut operands = operands.into_iter();
        let arguments: Vec<Vec<Value>> =
            (0..count).map(|_| operands.by_ref().take(arguments).collect()).collect();
        let options = Options { host: std::sync::Arc::new(Queue(Mutex::new(queue))), ..self.options() };
        let interpreter = Interpreter::new(&module, options);
        let results = interpreter.run_devices(devices, arguments)?;
        let mut all = Vec::new();
        for (value, _) in results {
            match value.as_tuple() {
                Some(parts) => all.extend(parts.iter().cloned()),
                None => all.push(value),
            }
        }
        Ok(Value::tuple(all))
    }
}
