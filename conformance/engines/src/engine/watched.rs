//! Compiled programs whose steps an observer sees.
//!
//! **Invariant:** what is observed of a step is the whole result of an instruction of the lowered module, in
//! its buffer, and what the observer writes there is what later steps read.

use std::sync::atomic::{AtomicU64, Ordering};

use hlo::{ArrayShape, Dims, InstrId, Module, Shape};
use hlo_codegen::compilation::Compilation;
use hlo_codegen::compile::Stages;
use hlo_codegen::plan::{Action, Plan};
use hlo_codegen::program::Program;
use hlo_codegen::runtime::executable::{RunError, Watch};
use hlo_codegen::runtime::raw::{buffer_of, bytes_of};
use hlo_interp::observe::{Call, Site};
use hlo_interp::{Device, Devices, Flow, Observer, Tensor, Value};
use hlo_opt::passes::Steps;

/// Keeps the module that is lowered.
#[derive(Debug, Default)]
pub(super) struct Keep(pub(super) Option<Module>);

impl Steps for Keep {}

impl Stages for Keep {
    fn lowered(&mut self, compilation: &Compilation) {
        self.0 = Some(compilation.module().clone());
    }
}

/// The instructions that the steps of a program execute.
#[derive(Debug)]
pub(super) struct LoweredForm {
    /// Fused and scheduled.
    pub(super) module: Module,
    /// By instruction, whether a step leaves its result.
    pub(super) seen: Vec<bool>,
    /// Whether its parameters and results are those of the program.
    pub(super) whole: bool,
}

impl LoweredForm {
    /// Of a module and what it was compiled to.
    pub(super) fn new(module: Module, program: &Program) -> Self {
        let mut seen = vec![false; module.instruction_capacity()];
        see(&program.plan, &mut seen);
        Self { module, seen, whole: program.run_time_sizes.is_none() }
    }
}

fn see(plan: &Plan, seen: &mut [bool]) {
    for step in &plan.steps {
        if let Some(executed) = step.executes.as_ref().filter(|e| e.visible().is_some()) {
            seen[executed.instr.index()] = true;
        }
        match &step.action {
            Action::While { rotations } => {
                for rotation in rotations {
                    see(&rotation.condition, seen);
                    see(&rotation.body, seen);
                }
            }
            Action::Conditional { branches, .. } => branches.iter().for_each(|b| see(b, seen)),
            Action::Kernel { .. }
            | Action::Library { .. }
            | Action::Copy { .. }
            | Action::Interpret { .. } => {}
        }
    }
}

/// The observers of the devices of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watchers<'a> {
    /// The observer, and the lowered module.
    pub(super) watched: Option<(&'a dyn Observer, &'a Module)>,
    pub(super) devices: Devices,
}

impl<'a> Watchers<'a> {
    /// The observer of a device.
    pub(super) fn of(&self, number: u32) -> Option<Watcher<'a>> {
        let (observer, module) = self.watched?;
        let partitions = self.devices.partitions();
        let device = Device { replica: number / partitions, partition: number % partitions };
        let executions = (0..module.instruction_capacity()).map(|_| AtomicU64::new(0)).collect();
        Some(Watcher { observer, module, device, executions })
    }
}

/// Shows an observer the steps of one device.
#[derive(Debug)]
pub(super) struct Watcher<'a> {
    observer: &'a dyn Observer,
    module: &'a Module,
    device: Device,
    /// By instruction, how often it was seen.
    executions: Box<[AtomicU64]>,
}

impl Watch for Watcher<'_> {
    fn left(&self, instr: InstrId, calls: &[Call], results: &mut [&mut [u8]]) -> Result<(), RunError> {
        let execution = self.executions[instr.index()].fetch_add(1, Ordering::Relaxed);
        if !self.observer.looks_at(instr) {
            return Ok(());
        }
        let site = Site::elsewhere(self.module, (instr, execution), self.device, calls);
        let mut leaves = results.iter().map(|bytes| &**bytes);
        let value = value(&self.module.instr(instr).shape, &mut leaves);
        let shown = value.as_ref().map_or(Flow::Continue, |value| self.observer.leave(&site, value));
        match shown {
            Flow::Continue => Ok(()),
            Flow::Replace(value) => put(&value, results),
            Flow::Stop => Err(RunError::Arguments("the run was stopped by who watched it".into())),
        }
    }
}

/// The value of a shape whose array leaves have these bytes. `None`: it has other leaves.
fn value<'b>(shape: &Shape, leaves: &mut impl Iterator<Item = &'b [u8]>) -> Option<Value> {
    match shape {
        Shape::Array(array) => leaves.next().map(|bytes| tensor(array, bytes).into()),
        Shape::Tuple(parts) => {
            let parts: Option<Vec<Value>> = parts.iter().map(|s| value(s, leaves)).collect();
            parts.map(Value::tuple)
        }
        Shape::Token | Shape::Buffer(_) | Shape::Opaque => None,
    }
}

fn tensor(shape: &ArrayShape, bytes: &[u8]) -> Tensor {
    Tensor::new(Dims::clone(&shape.dims), buffer_of(shape.element_type, bytes))
}

/// Puts the arrays of a value where those of a step's result are. Errors: they do not fit.
fn put(value: &Value, results: &mut [&mut [u8]]) -> Result<(), RunError> {
    let arrays = value.arrays();
    let fit = || RunError::Arguments("a value that was put in the place of a step's does not fit".into());
    if arrays.len() != results.len() {
        return Err(fit());
    }
    for (array, result) in arrays.into_iter().zip(results) {
        let bytes = bytes_of(array.buffer());
        if bytes.len() != result.len() {
            return Err(fit());
        }
        result.copy_from_slice(bytes);
    }
    Ok(())
}
