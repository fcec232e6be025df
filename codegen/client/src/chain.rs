//! Chained execution: a plan of programs whose arguments are data and results of earlier steps, run in one
//! call (XRT's `XRTExecuteChained`).
//!
//! **Invariants:** a plan is checked whole before anything of it runs; what a step leaves stays on the device
//! and is dropped after its last use; data handles are never released; when a step fails, what the steps
//! before it left is dropped.
//!
//! All array leaves of all steps have slots in one table, which later runs reuse; arguments of steps are
//! slots. So a plan that was run before allocates nothing, however many steps it has, if its programs
//! allocate nothing ([`Executable::execute_into`]).

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use hlo::{ArrayShape, Shape};
use smallvec::SmallVec;

use crate::buffer::Buffer;
use crate::error::{Code, Error};
use crate::executable::{Executable, fits};
use crate::handles::{Handle, Handles, Value};
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

/// What a step does; arrays are named by their slots.
enum Operation {
    /// These arrays are stored in its slots.
    Data(Vec<Buffer>),
    /// It takes the arrays of these slots.
    Execute { executable: Executable, arguments: Vec<usize> },
}

struct Step {
    operation: Operation,
    /// The slots of its arrays.
    slots: Range<usize>,
    /// What nobody needs after it.
    last_uses: Vec<Range<usize>>,
}

/// What a result of the plan is made of.
struct Output {
    shape: Shape,
    slots: Range<usize>,
}

/// The arrays of a run, by slot.
type Table = Vec<Option<Buffer>>;

/// A plan that was checked, and can be run any number of times, by several threads at once.
pub struct Chain<'h> {
    handles: &'h Handles,
    steps: Vec<Step>,
    results: Vec<Output>,
    slots: usize,
    tables: Mutex<Vec<Table>>,
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
    /// A step that uses itself or a later one, results that are missing or said twice
    /// ([`Code::InvalidArgument`]); handles that do not exist ([`Code::NotFound`]).
    pub fn chain(&self, plan: &[ChainStep]) -> Result<Chain<'_>, Error> {
        let mut last_use: Vec<usize> = (0..plan.len()).collect();
        let mut outputs: Vec<Option<(usize, Output)>> = Vec::new();
        let mut steps: Vec<Step> = Vec::with_capacity(plan.len());
        let mut shapes: Vec<Shape> = Vec::with_capacity(plan.len());
        let mut slots = 0;
        for (n, step) in plan.iter().enumerate() {
            let (operation, shape) = match &step.operation {
                ChainOperation::Data(handle) => {
                    let value = self.value(*handle)?;
                    (Operation::Data(value.leaves().into_iter().cloned().collect()), value.shape())
                }
                ChainOperation::Execute { program, inputs } => {
                    if let Some(input) = inputs.iter().find(|input| input.step >= n) {
                        let step = input.step;
                        return invalid(format!("step {n} uses step {step}, which does not come before it"));
                    }
                    inputs.iter().for_each(|input| last_use[input.step] = n);
                    let executable = self.program(*program)?;
                    let arguments = arguments(n, &executable, inputs, &shapes, &steps)?;
                    let shape = executable.result().clone();
                    (Operation::Execute { executable, arguments }, shape)
                }
            };
            let own = slots..slots + array_leaves(&shape).count();
            slots = own.end;
            for &ChainOutput { output, result } in &step.outputs {
                if result >= MAX_RESULTS {
                    return invalid(format!("step {n} gives result {result}, more than there can be"));
                }
                if outputs.len() <= result {
                    outputs.resize_with(result + 1, || None);
                }
                let (shape, slots) = picked(&shape, &own, output, n)?;
                let output = Output { shape: shape.clone(), slots };
                if let Some((other, _)) = outputs[result].replace((n, output)) {
                    return invalid(format!("steps {other} and {n} both give result {result}"));
                }
            }
            steps.push(Step { operation, slots: own, last_uses: Vec::new() });
            shapes.push(shape);
        }
        if let Some(missing) = outputs.iter().position(Option::is_none) {
            return invalid(format!("no step gives result {missing}"));
        }
        for (n, step) in plan.iter().enumerate() {
            // What is a result, or part of one, lives until the plan has ended.
            if step.outputs.is_empty() {
                let slots = steps[n].slots.clone();
                steps[last_use[n]].last_uses.push(slots);
            }
        }
        let results = outputs.into_iter().flatten().map(|(_, output)| output).collect();
        Ok(Chain { handles: self, steps, results, slots, tables: Mutex::default() })
    }
}

fn array_leaves(shape: &Shape) -> impl Iterator<Item = &ArrayShape> {
    shape.leaves().into_iter().filter_map(Shape::as_array)
}

/// The slots of a step's arguments, whose shapes are checked as far as they are known before a run.
fn arguments(
    n: usize,
    executable: &Executable,
    inputs: &[ChainInput],
    shapes: &[Shape],
    steps: &[Step],
) -> Result<Vec<usize>, Error> {
    let (name, parameters) = (executable.name(), executable.parameters());
    if parameters.len() != inputs.len() {
        let (takes, given) = (parameters.len(), inputs.len());
        return invalid(format!("step {n}: {name} takes {takes} arguments, not {given}"));
    }
    let mut arguments = Vec::new();
    for (k, (input, wanted)) in inputs.iter().zip(parameters).enumerate() {
        let (given, slots) = picked(&shapes[input.step], &steps[input.step].slots, input.output, input.step)
            .map_err(|e| Error::new(e.code(), format!("step {n}: {e}")))?;
        // A result whose sizes are known only when it is there is checked then.
        let fit = |(given, wanted): (&ArrayShape, &ArrayShape)| given.is_dynamic() || fits(given, wanted);
        let as_many = array_leaves(given).count() == array_leaves(wanted).count();
        if !as_many || !array_leaves(given).zip(array_leaves(wanted)).all(fit) {
            return invalid(format!("step {n}: argument {k} of {name} is {given}, not {wanted}"));
        }
        arguments.extend(slots);
    }
    Ok(arguments)
}

impl Chain<'_> {
    /// Runs the steps; the results get handles.
    ///
    /// # Errors
    /// That of the step that fails, with its number. No result is left then.
    pub fn run(&self, options: &ExecuteOptions) -> Result<Vec<Handle>, Error> {
        let mut results = Vec::with_capacity(self.results.len());
        self.run_into(options, &mut results)?;
        Ok(results)
    }

    /// Runs the steps, and appends the handles of the results.
    ///
    /// # Errors
    /// As [`Chain::run`]; then nothing is appended.
    pub fn run_into(&self, options: &ExecuteOptions, results: &mut Vec<Handle>) -> Result<(), Error> {
        let mut table = self.tables().pop().unwrap_or_else(|| vec![None; self.slots]);
        let outcome = self.run_on(&mut table, options).map(|()| {
            for output in &self.results {
                // What another result has in common with this one, both share.
                let mut leaves = table[output.slots.clone()].iter().flatten().cloned();
                let value = Value::of_leaves(&output.shape, &mut leaves);
                let value = value.expect("invariant: a result has an array in each of its slots");
                results.push(self.handles.insert(value));
            }
        });
        table.fill(None);
        self.tables().push(table);
        outcome
    }

    fn tables(&self) -> std::sync::MutexGuard<'_, Vec<Table>> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run_on(&self, table: &mut Table, options: &ExecuteOptions) -> Result<(), Error> {
        for (n, step) in self.steps.iter().enumerate() {
            match &step.operation {
                Operation::Data(arrays) => {
                    for (slot, array) in step.slots.clone().zip(arrays) {
                        table[slot] = Some(array.clone());
                    }
                }
                Operation::Execute { executable, arguments } => {
                    let given = arguments.iter().map(|&slot| {
                        table[slot].as_ref().expect("invariant: an array lives until its last use")
                    });
                    let given: SmallVec<[&Buffer; 8]> = given.collect();
                    let mut made: SmallVec<[Buffer; 4]> = SmallVec::new();
                    let executed = executable.execute_into(&given, options, &mut made);
                    drop(given);
                    executed.map_err(|e| Error::new(e.code(), format!("step {n}: {e}")))?;
                    for (slot, array) in step.slots.clone().zip(made) {
                        table[slot] = Some(array);
                    }
                }
            }
            for slots in &step.last_uses {
                table[slots.clone()].fill(None);
            }
        }
        Ok(())
    }
}

/// The whole of a value, or an element of it: its shape and the slots of its arrays.
fn picked<'s>(
    shape: &'s Shape,
    slots: &Range<usize>,
    output: usize,
    step: usize,
) -> Result<(&'s Shape, Range<usize>), Error> {
    let Some(element) = output.checked_sub(1) else { return Ok((shape, slots.clone())) };
    let elements = match shape {
        Shape::Tuple(elements) => &elements[..],
        Shape::Array(_) | Shape::Token | Shape::Opaque | Shape::Buffer(_) => &[],
    };
    let Some(shape) = elements.get(element) else {
        return invalid(format!("step {step} gives {shape}: it has no element {element}"));
    };
    let first = slots.start + elements[..element].iter().map(|e| array_leaves(e).count()).sum::<usize>();
    Ok((shape, first..first + array_leaves(shape).count()))
}
