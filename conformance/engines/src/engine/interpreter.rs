//! The reference interpreter as an engine.

use std::sync::Arc;
use std::time::Instant;

use hlo::Module;
use hlo::diag::Diagnostic;
use hlo_interp::{Devices, Interpreter, Observer, Options, Value};

use super::{Engine, Executable, Finished, Form, Inputs, Outcome, RunOptions, flatten, support};

/// The reference interpreter.
#[derive(Clone, Copy, Debug, Default)]
pub struct InterpreterEngine;

impl Engine for InterpreterEngine {
    fn name(&self) -> &str {
        "interpreter"
    }

    fn supports(&self, module: &Module, _devices: Devices) -> Result<(), Diagnostic> {
        support::custom_calls(module, self.name())
    }

    fn compile<'m>(&'m self, module: &'m Module) -> Result<Box<dyn Executable + 'm>, Outcome> {
        Ok(Box::new(Interpreted { module }))
    }
}

/// A program that the interpreter runs as it is.
#[derive(Debug)]
struct Interpreted<'m> {
    module: &'m Module,
}

impl Executable for Interpreted<'_> {
    fn run(&self, inputs: Inputs, options: &RunOptions, observer: Option<Arc<dyn Observer>>) -> Outcome {
        interpret(self.module, inputs, options, observer)
    }

    fn form(&self) -> Option<Form<'_>> {
        Some(Form::same(self.module))
    }
}

/// Runs a verified program in the interpreter.
pub fn interpret(
    module: &Module,
    inputs: Inputs,
    options: &RunOptions,
    observer: Option<Arc<dyn Observer>>,
) -> Outcome {
    let budget = inputs.memory_budget(options);
    let interpreter = Interpreter::new(
        module,
        Options {
            accumulate: options.accumulate,
            fuel: options.limits.fuel,
            memory_limit_bytes: budget.bytes,
            memory_limit_of: budget.of,
            seed: options.seed,
            observer,
            host: inputs.host,
            custom_calls: hlo_system::loaded::registry(),
            ..Options::default()
        },
    );
    let arguments = inputs.arguments.into_iter();
    let arguments = arguments.map(|a| a.into_iter().map(Value::from_literal).collect()).collect();
    let start = Instant::now();
    match interpreter.run_devices(options.devices, arguments) {
        Ok(devices) => {
            let time = start.elapsed();
            let fuel = devices.iter().map(|(_, stats)| stats.fuel).sum();
            let peak_bytes = devices.iter().map(|(_, stats)| stats.peak_bytes).max().unwrap_or(0);
            let results = devices.into_iter().map(|(value, _)| {
                let mut results = Vec::new();
                flatten(value.into_literal(), &mut results);
                results
            });
            Outcome::Finished(Finished { results: results.collect(), fuel, peak_bytes, time, compiled: None })
        }
        Err(e) => Outcome::of_interpreter(&e),
    }
}
