//! Watching a run: what a trace, a profile, coverage and isolation are made of.
//!
//! An [`Observer`] in [`crate::Options`] is notified of every executed instruction: before it runs, with its
//! operands, and after it, with its result. **Invariants:** without an observer an instruction costs one test
//! of an `Option`; an observer that keeps no value changes neither the result nor what the run allocates,
//! because operands are shown before they are consumed. The interpreter reads no clock: an observer that
//! times takes the time itself in both calls.
//!
//! Computations that are applied to elements run on any thread, in blocks and mostly as bytecode: of those
//! [`Observer::applied`] tells how often, not instruction by instruction. Where one is not bytecode its
//! instructions are told with [`Site::nesting`] above 0, in no particular order.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hlo::{ComputationId, InstrId, Instruction, Module};

use crate::device::Device;
use crate::engine::Frame;
use crate::value::Value;

/// How a run continues after an instruction.
#[derive(Clone, Debug, Default)]
pub enum Flow {
    /// The instruction's own value.
    #[default]
    Continue,
    /// This value in place of the instruction's. One that does not fit the instruction's shape ends the run
    /// with [`crate::ErrorKind::Arguments`].
    Replace(Value),
    /// Nothing: the run ends here and the instruction's value is its result. Not obeyed where
    /// [`Site::nesting`] is above 0.
    Stop,
}

/// An observer of runs. It may be called from several threads at once: devices run concurrently.
pub trait Observer: Debug + Send + Sync {
    /// Whether it is passive: it never changes a value nor ends the run.
    fn only_looks_on(&self) -> bool {
        false
    }

    /// Whether it asks for the results of an instruction. Those who would have to copy them to show them need
    /// not.
    fn looks_at(&self, id: InstrId) -> bool {
        let _ = id;
        true
    }

    /// An instruction is about to run on `operands`. Of a tuple that only `get-tuple-element` reads, elements
    /// that were moved out already are [`Value::Token`]. Not called for parameters.
    fn enter(&self, site: &Site<'_>, operands: &[Value]) {
        let _ = (site, operands);
    }

    /// An instruction has this result. What an instruction calls is entered and left in between.
    fn leave(&self, site: &Site<'_>, result: &Value) -> Flow {
        let _ = (site, result);
        Flow::Continue
    }

    /// The instruction `at` applied `computation` to elements, about that many times and at least once.
    fn applied(
        &self,
        module: &Module,
        at: InstrId,
        computation: ComputationId,
        device: Device,
        elements: u64,
    ) {
        let _ = (module, at, computation, device, elements);
    }
}

/// An instruction that is being executed, and its call path.
#[derive(Clone, Copy)]
pub struct Site<'a> {
    /// The program.
    pub module: &'a Module,
    /// The instruction.
    pub id: InstrId,
    /// How often the instruction has run before, on this device and in this run.
    pub execution: u64,
    /// The device that runs it.
    pub device: Device,
    /// The number of enclosing instructions that apply computations to elements.
    pub nesting: u32,
    /// Live bytes; 0 outside of the interpreter.
    pub live_bytes: u64,
    way: Way<'a>,
}

/// A call path.
#[derive(Clone, Copy)]
enum Way<'a> {
    /// The interpreter's frames.
    Frames(&'a [Frame<'a>]),
    /// The calls of another engine.
    Calls(&'a [Call]),
}

/// One call of a path.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Call {
    /// The calling instruction: `call`, `fusion`, `while`, `conditional` or `async-start`.
    pub caller: InstrId,
    /// For a `while` the iteration, from 0 (a condition belongs to the iteration that it decides about);
    /// otherwise 0.
    pub iteration: u64,
}

impl<'a> Site<'a> {
    /// The instruction.
    pub fn instr(&self) -> &'a Instruction {
        self.module.instr(self.id)
    }

    /// The computation that the instruction is in.
    pub fn computation(&self) -> ComputationId {
        self.instr().parent()
    }

    /// The calls from the entry computation (or, if [`Site::nesting`] is above 0, the applied one) to here,
    /// outermost first.
    pub fn calls(&self) -> impl ExactSizeIterator<Item = Call> + 'a {
        let way = self.way;
        let count = match way {
            Way::Frames(frames) => frames.len().saturating_sub(1),
            Way::Calls(calls) => calls.len(),
        };
        (0..count).map(move |i| match way {
            Way::Frames(frames) => Call { caller: frames[i].current(), iteration: frames[i + 1].iteration },
            Way::Calls(calls) => calls[i],
        })
    }

    /// An instruction that another engine than the interpreter executes, for the `execution`th time, with its
    /// call path.
    pub fn elsewhere(
        module: &'a Module,
        (id, execution): (InstrId, u64),
        device: Device,
        calls: &'a [Call],
    ) -> Self {
        Self { module, id, execution, device, nesting: 0, live_bytes: 0, way: Way::Calls(calls) }
    }
}

impl Debug for Site<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Site")
            .field("instr", &self.instr().name)
            .field("execution", &self.execution)
            .field("device", &self.device)
            .field("calls", &self.calls().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

/// The observer of one run on one device, and how often each instruction ran.
#[derive(Debug)]
pub(crate) struct Watch {
    pub(crate) observer: Arc<dyn Observer>,
    executions: Box<[AtomicU64]>,
}

impl Watch {
    pub(crate) fn new(observer: &Arc<dyn Observer>, module: &Module) -> Self {
        let executions = (0..module.instruction_capacity()).map(|_| AtomicU64::new(0)).collect();
        Self { observer: observer.clone(), executions }
    }

    /// Counts an execution; returns how many there were before.
    pub(crate) fn count(&self, id: InstrId) -> u64 {
        self.executions[id.index()].fetch_add(1, Ordering::Relaxed)
    }
}

impl<'a> Site<'a> {
    pub(crate) fn new(
        module: &'a Module,
        (id, execution): (InstrId, u64),
        device: Device,
        nesting: u32,
        live_bytes: u64,
        frames: &'a [Frame<'a>],
    ) -> Self {
        Self { module, id, execution, device, nesting, live_bytes, way: Way::Frames(frames) }
    }
}
