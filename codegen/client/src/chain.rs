//! Chained execution: a plan of programs whose arguments are data and results of earlier steps, run in one call (XRT's `XRTExecuteChained`).
//!
//! **Invariants:** a plan is checked whole before anything of it runs; what a step leaves stays on the device and is dropped after its last use; data handles are never
//! released; when a step fails, what the steps before it left is dropped.

use crate::buffer::Buffer;
use crate::error::{Code, Error};
use crate::executable::Executable;
use crate::handles::{Handle, Handles, Value, check_arguments};
use crate::options::ExecuteOptions;

/// Where an argument comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChainInput {
    /// An earlier step.
    pub step: usize,
    /// 0: its whole value; n: element n-1 of it.
    pub output: usize,
}

/// What of a step is a result of the plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChainOutput {
    /// 0: its whole value; n: element n-1 of it.
    pub output: usize,
    /// Which result of the plan.
    pub result: usize,
}

/// What a step does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ChainOperation {
    /// Is what a handle names.
    Data(Handle),
    /// Executes the program of a handle.
    Execute {
        /// The program.
        program: Handle,
        /// Its arguments.
        inputs: Vec<ChainInput>,
    },
}

/// A step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChainStep {
    /// What it does.
    pub operation: ChainOperation,
    /// What of it are results of the plan.
    pub outputs: Vec<ChainOutput>,
}

/// The most results of a plan.
const MAX_RESULTS: usize = 1 << 16;

enum Operation {
    Data(Value),
    Execute(Executable, Vec<ChainInput>),
}

/// A plan that was checked, and can be run any number of times.
pub struct Chain<'h> {
    handles: &'h Handles,
    steps: Vec<(Operation, Vec<ChainOutput>)>,
    /// By step, the last one that uses it.
    last_use: Vec<usize>,
    results: usize,
}

impl std::fmt::Debug for Chain<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Chain({} steps)", self.steps.len())
    }
}

fn invalid<T>(message: String) -> Result<T, Error> {
    Err(Error::new(Code::InvalidArgument, message))
}

impl Handles {
    /// Checks a plan and takes hold of its programs and data.
    ///
    /// # Errors
    /// A step that uses itself or a later one, results that are missing or said twice ([`Code::InvalidArgument`]); handles that do not exist
    /// ([`Code::NotFound`]).
    pub fn chain(&self, plan: &[ChainStep]) -> Result<Chain<'_>, Error> {
        let mut last_use: Vec<usize> = (0..plan.len()).collect();
        let mut results: Vec<Option<usize>> = Vec::new();
        let mut steps = Vec::with_capacity(plan.len());
        for (n, step) in plan.iter().enumerate() {
            let operation = match &step.operation {
                ChainOperation::Data(handle) => Operation::Data(self.value(*handle)?),
                ChainOperation::Execute { program, inputs } => {
                    for input in inputs {
                        if input.step >= n {
                            return invalid(format!(
                                "step {n} uses step {}, which does not come before it",
                                input.step
                            ));
                        }
                        last_use[input.step] = n;
                    }
                    let executable = self.program(*program)?;
                    if executable.parameters().len() != inputs.len() {
                        let (takes, given) = (executable.parameters().len(), inputs.len());
                        return invalid(format!(
                            "step {n}: {} takes {takes} arguments, not {given}",
                            executable.name()
                        ));
                    }
                    Operation::Execute(executable, inputs.clone())
                }
            };
            for output in &step.outputs {
                if output.result >= MAX_RESULTS {
                    return invalid(format!(
                        "step {n} gives result {}, more than there can be",
                        output.result
                    ));
                }
                if results.len() <= output.result {
                    results.resize(output.result + 1, None);
                }
                if let Some(other) = results[output.result].replace(n) {
                    return invalid(format!("steps {other} and {n} both give result {}", output.result));
                }
            }
            steps.push((operation, step.outputs.clone()));
        }
        if let Some(missing) = results.iter().position(Option::is_none) {
            return invalid(format!("no step gives result {missing}"));
        }
        Ok(Chain { handles: self, steps, last_use, results: results.len() })
    }
}

impl Chain<'_> {
    /// Runs the steps; the results get handles.
    ///
    /// # Errors
    /// That of the step that fails, with its number. No result is left then.
    pub fn run(&self, options: &ExecuteOptions) -> Result<Vec<Handle>, Error> {
        let mut values: Vec<Option<Value>> = Vec::with_capacity(self.steps.len());
        let mut results: Vec<Option<Value>> = vec![None; self.results];
        for (n, (operation, outputs)) in self.steps.iter().enumerate() {
            let value = match operation {
                Operation::Data(value) => value.clone(),
                Operation::Execute(executable, inputs) => {
                    let value = self.step(executable, inputs, &values, options);
                    for input in inputs.iter().filter(|input| self.last_use[input.step] == n) {
                        values[input.step] = None;
                    }
                    value.map_err(|e| Error::new(e.code(), format!("step {n}: {e}")))?
                }
            };
            for output in outputs {
                results[output.result] = Some(picked(&value, output.output, n)?);
            }
            values.push((self.last_use[n] > n).then_some(value));
        }
        let results: Option<Vec<Value>> = results.into_iter().collect();
        let results = results.expect("invariant: every result is a step's");
        Ok(results.into_iter().map(|value| self.handles.insert(value)).collect())
    }

    fn step(
        &self,
        executable: &Executable,
        inputs: &[ChainInput],
        values: &[Option<Value>],
        options: &ExecuteOptions,
    ) -> Result<Value, Error> {
        let mut arguments = Vec::with_capacity(inputs.len());
        for input in inputs {
            let value = values[input.step].as_ref();
            let value = value.expect("invariant: a value lives until its last use");
            arguments.push(picked(value, input.output, input.step)?);
        }
        check_arguments(executable, &[], &arguments)?;
        let buffers: Vec<&Buffer> = arguments.iter().flat_map(Value::leaves).collect();
        let results = executable.execute_with(&buffers, options)?;
        let value = Value::of_leaves(executable.result(), &mut results.into_iter());
        value.ok_or_else(|| Error::new(Code::Internal, "a result has too few arrays"))
    }
}

/// The whole of a value, or an element of it.
fn picked(value: &Value, output: usize, step: usize) -> Result<Value, Error> {
    match output.checked_sub(1) {
        None => Ok(value.clone()),
        Some(element) => match value.at(&[element]) {
            Some(element) => Ok(element.clone()),
            None => invalid(format!("step {step} gives {}: it has no element {element}", value.shape())),
        },
    }
}
