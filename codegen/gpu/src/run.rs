//! Execution of a program on a device.
//!
//! **Invariant:** a device is asked for launches, copies and fills of slices in the order of the plan;
//! predicates and selectors of control flow are the only values that are read back before the end.

use std::fmt;

use hlo::diag::codes;
use hlo::{ArrayLiteral, Diagnostic, Literal, Span};
use hlo_codegen::runtime::raw::{buffer_of, bytes_of};
use hlo_opt::buffers::{AllocationKind, Slice};
use hlo_threads::cancel;

use crate::program::{Action, Plan, Program, SequenceId, Step};

/// A device: the memory of a program, and actions on it.
pub trait Device {
    /// Allocates allocation `index` of the program, of that many bytes, with these contents if given.
    fn allocate(
        &mut self,
        index: usize,
        name: &str,
        bytes: u64,
        contents: Option<&[u8]>,
    ) -> Result<(), RunError>;
    /// Executes steps that are no control flow, in order.
    fn sequence(&mut self, id: SequenceId, steps: &[Step]) -> Result<(), RunError>;
    /// The bytes of a slice, after everything asked for before. `what` names it in errors.
    fn read(&mut self, slice: Slice, what: &str) -> Result<Vec<u8>, RunError>;
}

/// Why there is no result.
#[derive(Clone, Debug)]
pub enum RunError {
    /// The arguments do not match the program's parameters.
    Arguments(String),
    /// Out of memory.
    OutOfMemory(String),
    /// Over the limit of steps, or of instructions of threads.
    OutOfFuel(String),
    /// Over the time limit.
    TimedOut(String),
    /// A fault of a kernel: reported by the checker of the interpreter, or by the device.
    Kernel(String),
    /// Unsupported by the device, or by the PTX interpreter.
    Unsupported(String),
    /// A failed check of a run-time size.
    Sizes(Box<hlo_interp::RunError>),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Arguments(m)
            | RunError::OutOfMemory(m)
            | RunError::OutOfFuel(m)
            | RunError::TimedOut(m)
            | RunError::Kernel(m)
            | RunError::Unsupported(m) => f.write_str(m),
            RunError::Sizes(e) => e.to_diagnostic().message.fmt(f),
        }
    }
}

impl std::error::Error for RunError {}

impl RunError {
    /// As an error for people.
    pub fn diagnostic(&self) -> Diagnostic {
        let code = match self {
            RunError::Sizes(e) => return e.to_diagnostic(),
            RunError::Arguments(_) => codes::WRONG_ARGUMENTS,
            RunError::OutOfMemory(_) => codes::OUT_OF_MEMORY,
            RunError::OutOfFuel(_) => codes::OUT_OF_FUEL,
            RunError::TimedOut(_) => codes::ENGINE_TIMED_OUT,
            RunError::Kernel(_) => codes::COMPILER_DEFECT,
            RunError::Unsupported(_) => codes::UNSUPPORTED_OPCODE,
        };
        Diagnostic::error(code, Span::NONE, self.to_string())
    }
}

/// Limits of a run.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Steps of the plan, those of loops each time.
    pub steps: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { steps: u64::MAX }
    }
}

/// Runs a program on arguments: one literal a parameter. Returns the array leaves of its result.
pub fn execute(
    program: &Program,
    device: &mut dyn Device,
    arguments: &[&Literal],
    limits: Limits,
) -> Result<Vec<ArrayLiteral>, RunError> {
    let leaves: Vec<&ArrayLiteral> = arguments.iter().flat_map(|a| a.arrays()).collect();
    let lifted: Vec<ArrayLiteral>;
    let leaves: Vec<&ArrayLiteral> = match &program.run_time_sizes {
        Some(sizes) => {
            lifted = sizes.pad(leaves.into_iter()).map_err(RunError::Arguments)?;
            lifted.iter().collect()
        }
        None => leaves,
    };
    upload(program, device, &leaves)?;
    run(program, device, limits)?;
    let results = download(program, device)?;
    match &program.run_time_sizes {
        Some(sizes) => sizes.cut(results).map_err(|e| RunError::Sizes(Box::new(e))),
        None => Ok(results),
    }
}

/// Allocates the memory of a program, with its arguments (the leaves of its parameters, padded to their
/// bounds) and constants in it.
pub fn upload(program: &Program, device: &mut dyn Device, leaves: &[&ArrayLiteral]) -> Result<(), RunError> {
    let expected: Vec<_> = program.parameter_leaves().collect();
    if expected.len() != leaves.len() {
        let (takes, got) = (expected.len(), leaves.len());
        return Err(RunError::Arguments(format!("the program takes {takes} arrays, {got} are given")));
    }
    for (n, (shape, array)) in expected.iter().zip(leaves).enumerate() {
        let got = array.buffer.element_type();
        if shape.elements() != array.buffer.len() || shape.element_type != got {
            let message = format!("array {n} is {got}[{}], the program takes {shape}", array.buffer.len());
            return Err(RunError::Arguments(message));
        }
    }
    for (index, allocation) in program.buffers.allocations.iter().enumerate() {
        let (name, contents) = match allocation.kind {
            AllocationKind::Parameter { leaf, .. } => {
                (format!("parameter {leaf}"), leaves.get(leaf as usize).map(|a| bytes_of(&a.buffer)))
            }
            AllocationKind::Constant { index } => {
                let array = program.constants.get(index as usize).and_then(|l| l.as_array());
                (format!("constant {index}"), array.map(|a| bytes_of(&a.buffer)))
            }
            AllocationKind::Result { leaf } => (format!("result {leaf}"), None),
            AllocationKind::Arena => ("temporaries".to_owned(), None),
            AllocationKind::Frame => ("scratch memory".to_owned(), None),
        };
        device.allocate(index, &name, allocation.bytes, contents)?;
    }
    Ok(())
}

/// Executes the plan of a program whose memory is allocated. The device may still be running afterwards.
pub fn run(program: &Program, device: &mut dyn Device, limits: Limits) -> Result<(), RunError> {
    Run { device, steps: limits.steps }.plan(&program.plan)
}

/// Reads the array leaves of the result.
pub fn download(program: &Program, device: &mut dyn Device) -> Result<Vec<ArrayLiteral>, RunError> {
    let mut results = Vec::new();
    for (leaf, (slice, shape)) in program.buffers.results.iter().zip(program.result_leaves()).enumerate() {
        let bytes = device.read(*slice, &format!("result {leaf}"))?;
        let buffer = buffer_of(shape.element_type, &bytes);
        results.push(ArrayLiteral { dims: shape.dims.clone(), buffer: buffer.into() });
    }
    Ok(results)
}

struct Run<'a> {
    device: &'a mut dyn Device,
    steps: u64,
}

impl Run<'_> {
    fn plan(&mut self, plan: &Plan) -> Result<(), RunError> {
        let mut rest = &plan.steps[..];
        while let [step, ..] = rest {
            cancel::poll();
            let straight = rest.iter().take_while(|s| s.is_straight()).count();
            let left = self.steps.checked_sub(straight.max(1) as u64);
            self.steps =
                left.ok_or_else(|| RunError::OutOfFuel("the program takes more steps than it may".into()))?;
            if straight > 0 {
                let first = (plan.steps.len() - rest.len()) as u32;
                self.device.sequence(SequenceId { plan: plan.ordinal, first }, &rest[..straight])?;
                rest = &rest[straight..];
                continue;
            }
            rest = &rest[1..];
            match &step.action {
                // Done above.
                Action::Launch(_) | Action::Copy { .. } | Action::Fill { .. } => {}
                Action::While { condition, predicate, body, iterations } => {
                    let mut done = 0;
                    loop {
                        let goes_on = match iterations {
                            Some(iterations) => done < *iterations,
                            None => {
                                self.plan(condition)?;
                                let what = format!("the predicate of `{}`", step.name);
                                self.device.read(*predicate, &what)?.first().is_some_and(|&b| b != 0)
                            }
                        };
                        if !goes_on {
                            break;
                        }
                        self.plan(body)?;
                        done += 1;
                        let left = self.steps.checked_sub(1);
                        self.steps = left.ok_or_else(|| {
                            let message =
                                format!("the loop `{}` takes more iterations than it may", step.name);
                            RunError::OutOfFuel(message)
                        })?;
                    }
                }
                Action::Conditional { selector, is_predicate, branches } => {
                    let what = format!("the selector of `{}`", step.name);
                    let bytes = self.device.read(*selector, &what)?;
                    let branch = if *is_predicate {
                        usize::from(bytes.first() == Some(&0))
                    } else {
                        let index = bytes.first_chunk().map_or(-1, |b| i32::from_le_bytes(*b));
                        usize::try_from(index).unwrap_or(usize::MAX)
                    };
                    let branch = branches.get(branch).or(branches.last());
                    branch.map_or(Ok(()), |plan| self.plan(plan))?;
                }
            }
        }
        Ok(())
    }
}
